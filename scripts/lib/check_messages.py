#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks that each message of hcasim in docs/troubleshooting.md is a message of the source.

A message is a heading in backticks under a heading "Messages of hcasim" or "Messages of the device"; `...` stands
for what differs. Its fixed parts must all occur in the strings of one source file. Prints one line for each message
that no file has; exit status 0 means that there is none.
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/troubleshooting.md"
SOURCES = ("*.c", "*.def", "*.py", "scripts", "guest-lib", "wire", "qemu-dev", "model", "fw", ":!tests/unit", ":!docs")
SHORTEST = 3  # characters of a part that says something
CONVERSION = re.compile(r'%[-0-9.]*(?:hh|ll|[hlzj])?[a-zA-Z]|"\s*(?:G_GUINT64_FORMAT|PRI\w+)\s*"')
INTERPOLATION = re.compile(r"\$\{[^}]*\}|\$\w+|\$\*|\{[^{}]*\}")


def messages(page):
    """The messages of hcasim's own that the page explains."""
    found, own = [], False
    for line in page.splitlines():
        if line.startswith("## "):
            own = line.startswith(("## Messages of hcasim", "## Messages of the device"))
        elif own and line.startswith("### `"):
            found.append(line[len("### `"):].rstrip("`"))
    return found


def strings(path):
    """The text of a file, with adjacent string literals joined and each conversion as a blank."""
    variable = CONVERSION if path.suffix in (".c", ".h", ".def") else INTERPOLATION
    return variable.sub(" ", re.sub(r'"\s*\\?\n?\s*f?"', "", path.read_text(encoding="utf-8")))


def has(text, part):
    """Whether the text has the part, whole or in two pieces (of which the source inserts one)."""
    pieces = [(part[:i], part[i + 1:]) for i, character in enumerate(part) if character == " "]
    return part in text or any(min(len(a), len(b)) >= SHORTEST and a in text and b in text for a, b in pieces)


def main():
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *SOURCES],
                            cwd=ROOT, check=True, capture_output=True, text=True).stdout
    texts = []
    for name in set(listed.split("\0")) - {"", "scripts/lib/check_messages.py"}:
        try:
            texts.append(strings(ROOT / name))
        except (OSError, UnicodeDecodeError):
            continue
    known = messages(PAGE.read_text(encoding="utf-8"))
    wrong = [] if known else [f"{PAGE.name}: no message at all"]
    for message in known:
        parts = [part.strip(" :") for part in message.removeprefix("hcasim: ").split("...")]
        parts = [part for part in parts if len(part) >= SHORTEST]
        if not any(all(has(text, part) for part in parts) for text in texts):
            wrong.append(f"docs/{PAGE.name}: no source has the message '{message}'")
    print("\n".join(wrong), end="\n" if wrong else "")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
