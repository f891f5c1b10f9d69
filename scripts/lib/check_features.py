#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks that the tests that docs/reference/features.md names exist.

A row has five cells. Its state is works, part or no. With works or part it names at least one test
as `FILE: TEST`, what the tests assert, and the generations. In a C file TEST is a START_TEST, in a
pyverbs list it is a test that passes, elsewhere it is the text of a check. A generation is the name
of a profile. Prints what is wrong; exit status 0: nothing.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/reference/features.md"


def has_test(path, name):
    text = path.read_text()
    if path.suffix == ".c":
        return re.search(rf"START_TEST\({re.escape(name)}\)", text)
    if path.suffix == ".list":
        return re.search(rf"^{re.escape(name)}\s+pass\b", text, re.M)
    # A statement may span two lines, or consist of parts.
    return name in re.sub(r'"\s*\n\s*f?"', "", text)


def wrong_with(cells, profiles):
    """Yields what is wrong with a row of five cells."""
    feature, state, shown, asserted, generations = cells
    if state == "no":
        return [f"{feature}: names a test or a generation"] if shown or asserted or generations else []
    if state not in ("works", "part"):
        return [f"{feature}: is neither works, part nor no"]
    found = []
    references = re.findall(r"`([^`:]+): ([^`]+)`", shown)
    if not references:
        found.append(f"{feature}: no test shows it")
    for file, name in references:
        path = ROOT / file
        if not path.is_file() or not has_test(path, name):
            found.append(f"{feature}: {file} has no passing test {name}")
    if not asserted:
        found.append(f"{feature}: does not say what its tests assert")
    named = re.findall(r"\bcx\w+|\ball\b", generations)
    if not named:
        found.append(f"{feature}: no generation has it")
    found += [f"{feature}: there is no generation {name}" for name in named
              if name != "all" and name not in profiles]
    return found


def main():
    profiles = set(re.findall(r'^\s*\.name = "(\w+)"', (ROOT / "fw/profile.c").read_text(), re.M))
    rows = 0
    found = []
    for line in PAGE.read_text().splitlines():
        if not line.startswith("|") or re.match(r"\|( feature |-)", line):
            continue
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        rows += 1
        found += wrong_with(cells, profiles) if len(cells) == 5 else [f"not five cells: {line}"]
    if not rows:
        found.append("no row at all")
    for line in found:
        print(f"docs/reference/features.md: {line}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
