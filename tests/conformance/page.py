#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""usage: page.py CONFORMANCE SCRIPT... [--page docs/reference/conformance-cases.md] [--write]

Plays the scripts and says what came of each rule, as the tables that end the page. Without --write:
whether the page has the same ones (exit status 1: it has others).
"""
import argparse
import pathlib
import re
import subprocess
import sys

BEGIN = "<!-- From here on made by tests/conformance/page.py --write. -->\n"
CASE = re.compile(r"^(\S+):(\d+): (.*)$")
RULE = re.compile(r"^    (\S+)\s+(.*)$")


def output(*command):
    return subprocess.run(command, text=True, stdout=subprocess.PIPE, check=False).stdout


def cases(program, script):
    """Yields title, line and rules of each case."""
    found = []
    for line in output(program, "--list", script).splitlines():
        case, rule = CASE.match(line), RULE.match(line)
        if case:
            found.append((case[3], int(case[2]), []))
        elif rule:
            found[-1][2].append((rule[1], rule[2]))
    return found


def verdicts(program, script):
    """Returns the titles of the cases that hold."""
    return {line[5:] for line in output(program, script).splitlines() if line.startswith("ok   ")}


def about(script):
    """Returns the first sentence of the script's head comment."""
    lines = script.read_text().splitlines()[1:]
    text = " ".join(line[2:] for line in lines[:3] if line.startswith("# "))
    return text.split(". ")[0].rstrip(".")


def tables(program, scripts):
    parts = [BEGIN]
    total, known = 0, set()
    for script in scripts:
        held = verdicts(program, script)
        parts.append(f"\n## {about(script)}\n\n`tests/conformance/{script.name}`\n\n"
                     "| chapter | rule | case | verdict |\n|---|---|---|---|\n")
        for title, line, rules in cases(program, script):
            total += 1
            known.update(rules)
            verdict = "holds" if title in held else "**does not hold**"
            for chapter, rule in rules:
                parts.append(f"| {chapter} | {rule} | {title} (line {line}) | {verdict} |\n")
    parts.insert(1, f"\n{total} cases, {len(known)} rules.\n")
    return "".join(parts)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("scripts", type=pathlib.Path, nargs="+")
    parser.add_argument("--page", type=pathlib.Path,
                        default=pathlib.Path(__file__).resolve().parents[2] / "docs/reference/conformance-cases.md")
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    head, found, has = args.page.read_text().partition(BEGIN)
    made = tables(args.program.resolve(), args.scripts)
    if args.write:
        args.page.write_text(head + made)
    elif found + has != made:
        print(f"{args.page} is not what {' '.join(sys.argv)} --write makes")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
