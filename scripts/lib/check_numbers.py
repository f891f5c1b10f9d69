#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks that the counts in docs/*.md and README.md match what can be counted, and have only one
place each.

A count of cases, rules or places that are broken grows stale unnoticed, and soon two pages have two
counts. Therefore each kind of count has its page (HOMES), which the tool that counts writes. Cheap
counts are counted again here, and a table of a run must add up. Prints what is wrong; exit status
0: nothing.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
SCRIPTS = ROOT / "tests/conformance"
MUTANTS, CONFORMANCE, SOFT_ROCE = "project/mutants.md", "reference/conformance-cases.md", "reference/conformance-soft-roce.md"
# A pattern for a count, and the pages that may contain it. The last row counts the result of one
# run, which its page names.
HOMES = ((re.compile(r"\b\d[\d,]* (?:conformance |scripted )?cases\b"), (CONFORMANCE, SOFT_ROCE)),
         (re.compile(r"\b\d[\d,]* (?:mutants|places(?= were found|, one at a time))"), (MUTANTS,)),
         (re.compile(r"\bseeds found \d+\b|\b\d+ by (?:a seed|a script)\b"), (MUTANTS,)))
DRAWN = "scripts/mutate --random"  # how many are drawn is an option, not a count


def out_of_place():
    for page in [*sorted(DOCS.glob("**/*.md")), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]:
        name = str(page.relative_to(ROOT)).removeprefix("docs/")
        for number, line in enumerate(page.read_text().splitlines(), 1):
            for pattern, homes in HOMES:
                found = pattern.search(line)
                if found and name not in homes and DRAWN not in line:
                    yield f"{page.relative_to(ROOT)}:{number}: \"{found[0]}\" stands in {homes[0]}, or nowhere"


def cases():
    """Compares the count of cases in conformance.md with the scripts, from which that page is made.
    """
    lines = [line.split() for path in SCRIPTS.glob("*.txt") for line in path.read_text().splitlines()]
    count = sum(line[:1] == ["case"] for line in lines)
    said = re.search(r"^(\d+) cases, \d+ rules\.$", (DOCS / CONFORMANCE).read_text(), re.M)
    if not said or int(said[1]) != count:
        yield f"{CONFORMANCE}: {said[1] if said else 'no'} cases, there are {count}"


def soft_roce():
    said = re.search(r"Of the (\d+), (\d+) hold, (\d+) do not, (\d+) were not tried", (DOCS / SOFT_ROCE).read_text())
    if not said or int(said[1]) != sum(map(int, said.groups()[1:])):
        yield f"{SOFT_ROCE}: what held and what did not are not all that were played"


def tables():
    """Checks mutants.md: each row adds up, and so does the row "all"."""
    rows = []
    for line in (DOCS / MUTANTS).read_text().splitlines():
        cells = [cell.strip(" `") for cell in line.strip("|").split("|")] if line.startswith("|") else []
        if not cells:
            rows = []
        elif cells[1:] and all(cell.isdigit() for cell in cells[1:]):
            numbers = list(map(int, cells[1:]))
            if numbers[0] != sum(numbers[1:]):
                yield f"{MUTANTS}: {line}: does not add up"
            if cells[0] == "all" and rows and numbers != [sum(column) for column in zip(*rows)]:
                yield f"{MUTANTS}: {line}: is not the sum of the rows above"
            rows.append(numbers)


def main():
    wrong = [*out_of_place(), *cases(), *soft_roce(), *tables()]
    print("\n".join(wrong), end="\n" if wrong else "")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
