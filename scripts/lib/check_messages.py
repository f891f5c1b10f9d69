#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks that each message of hcasim in docs/troubleshooting.md is a message of the source.

A message is a heading in backticks under a heading "Messages of hcasim" or "Messages of the device"; `...` stands
for what differs. Its fixed parts must all occur in the string literals of one source file: not in its comments, and
not in a test that expects the message. Prints one line for each message that no file has; exit status 0 means that
there is none.
"""
import io
import pathlib
import re
import subprocess
import sys
import tokenize

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/troubleshooting.md"
SOURCES = ("*.c", "*.h", "*.def", "*.py", "scripts")
# The conformance program, the simulator and their reports are under tests, and have messages of their own.
NO_SOURCE = re.compile(r"docs/|tests/(?!conformance/|report/|sim/fabric/)|(.*/)?test_\w+\.(py|c)$|scripts/lib/check_messages\.py$")
SHORTEST = 3  # characters of a part that says something
CONVERSION = re.compile(r'%[-0-9.]*(?:hh|ll|[hlzj])?[a-zA-Z]|"\s*(?:G_GUINT64_FORMAT|PRI\w+)\s*"')
QUOTED = re.compile(r"[a-zA-Z]*(\"{3}|'{3}|\"|')(.*)\1", re.S)
# A string literal of C, or a comment or a character constant.
LITERAL = re.compile(r'("(?:[^"\\\n]|\\.)*")|/\*.*?\*/|//[^\n]*|\'(?:\\.|[^\'\\])+\'', re.S)
INTERPOLATION = re.compile(r"\$\{[^}]*\}|\$\w+|\$\*|\{[^{}]*\}")


def messages(page):
    """Returns the messages of hcasim's own that the page explains."""
    found, own = [], False
    for line in page.splitlines():
        if line.startswith("## "):
            own = line.startswith(("## Messages of hcasim", "## Messages of the device"))
        elif own and line.startswith("### `"):
            found.append(line[len("### `"):].rstrip("`"))
    return found


def c_strings(text):
    """The string literals of C code, adjacent ones joined."""
    code = LITERAL.sub(lambda found: found[1] or " ", text)
    return re.findall(r'"((?:[^"\\]|\\.)*)"', re.sub(r'"\s*\\?\s*"', "", CONVERSION.sub(" ", code)))


def python_strings(text):
    """The string literals of a Python file, adjacent ones joined, without docstrings."""
    found, before = [], tokenize.NEWLINE
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in (tokenize.NL, tokenize.COMMENT):
            continue
        if token.type == tokenize.STRING:
            content = QUOTED.fullmatch(token.string)[2]
            if before == tokenize.STRING and found:
                found[-1] += content
            elif before not in (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT):
                found.append(content)
        before = token.type
    return found


def strings(path):
    """The strings of a file as lines, with each conversion as a blank; of a shell script, its lines that are code."""
    text = path.read_text(encoding="utf-8")
    if path.suffix in (".c", ".h", ".def"):
        return "\n".join(c_strings(text))
    if path.suffix == ".py" or text.startswith("#!/usr/bin/env python3"):
        return INTERPOLATION.sub(" ", "\n".join(python_strings(text)))
    return INTERPOLATION.sub(" ", re.sub(r"^\s*#.*$", "", text, flags=re.M))


def has(text, part):
    """Returns whether the text has the part, whole or in two pieces (of which the source inserts one)."""
    pieces = [(part[:i], part[i + 1:]) for i, character in enumerate(part) if character == " "]
    return part in text or any(min(len(a), len(b)) >= SHORTEST and a in text and b in text for a, b in pieces)


def main():
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *SOURCES],
                            cwd=ROOT, check=True, capture_output=True, text=True).stdout
    texts = []
    for name in sorted(set(listed.split("\0")) - {""}):
        if NO_SOURCE.match(name):
            continue
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
