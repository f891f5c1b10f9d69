#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks that each file that a document links to exists, and each file of docs that any file of the tree names.

A link is `[text](path#heading)`, relative to the document's folder; the heading must be one of the file's. A
name is `docs/...` with a suffix, in any tracked file, relative to the top of the tree. Every page of docs must
be reachable from docs/index.md. A block of code that follows a comment `file: PATH` must be that file's text.
Prints one line for each mistake; exit status 0 means that there is none.
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
INDEX = ROOT / "docs/index.md"
LINK = re.compile(r"\]\(([^)\s]+)\)")
NAME = re.compile(r"(?<![\w/.-])docs/[\w/-]+\.(?:md|svg|patch|c|py)\b")
COPY = re.compile(r"^<!-- file: (\S+) -->\n```\w*\n(.*?)^```$", re.M | re.S)
# An indented block is code only behind an empty line; otherwise it continues the line before.
CODE = re.compile(r"(?:(?<=\n\n)|\A)(?:    .*\n)+|`[^`\n]*`")


def anchors(page):
    """Returns the anchors of a document's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ +(.*?)\s*$", page.read_text(encoding="utf-8"), re.M)
    return {re.sub(r"[^\w\s-]", "", heading).lower().replace(" ", "-") for heading in headings}


def links(page):
    """Returns the files that a document links to, and the faults of its links."""
    targets, wrong = set(), []
    for target in LINK.findall(CODE.sub("", page.read_text(encoding="utf-8"))):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        if not file.exists():
            wrong.append(f"links to {target}, which does not exist")
        elif anchor and anchor not in anchors(file):
            wrong.append(f"links to {target}, but the file has no such heading")
        targets.add(file)
    return targets, wrong


def copies(page):
    """Returns the faults of the document's copies of files."""
    return [f"its copy of {name} differs from the file" for name, text in COPY.findall(page.read_text(encoding="utf-8"))
            if not (ROOT / name).is_file() or (ROOT / name).read_text(encoding="utf-8") != text]


def names(file):
    """Returns the files of docs that a file names and that do not exist."""
    try:
        text = file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return []
    return [name for name in sorted(set(NAME.findall(text))) if not (ROOT / name).exists()]


def main():
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT,
                            check=True, capture_output=True, text=True).stdout
    files = [ROOT / name for name in listed.split("\0") if name and (ROOT / name).is_file()]
    pages = {file for file in files if file.suffix == ".md"}
    found, reached = [], {INDEX}
    linked = {}
    for page in sorted(pages):
        linked[page], wrong = links(page)
        found += [f"{page.relative_to(ROOT)}: {line}" for line in [*wrong, *copies(page)]]
    todo = [INDEX]
    while todo:
        new = (linked.get(todo.pop(), set()) & pages) - reached
        reached |= new
        todo += new
    found += [f"{page.relative_to(ROOT)}: no way of links leads here from docs/index.md"
              for page in sorted(pages - reached) if ROOT / "docs" in page.parents]
    for file in files:
        found += [f"{file.relative_to(ROOT)}: names {name}, which does not exist" for name in names(file)]
    print("\n".join(found), end="\n" if found else "")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
