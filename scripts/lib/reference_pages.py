#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Compares the pages of docs/reference that hcasim writes from its tables with what it writes now.

The name of a page, without its suffix, is an argument of `hcasim --markdown`. Exit status 1: a page
differs. With --write, the pages are written.
"""
import argparse
import difflib
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = ("command-line", "settings", "faults")
MOST_LINES = 20


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("hcasim", type=pathlib.Path, help="The program hcasim of a build folder: BUILD/cli/hcasim.")
    parser.add_argument("--write", action="store_true", help="Writes the pages.")
    args = parser.parse_args()
    hcasim, differ = args.hcasim.resolve(), False
    made_pages = {}
    for name in PAGES:      # all of them, before the first one is written
        done = subprocess.run([hcasim, "--markdown", name], check=False, stdout=subprocess.PIPE, text=True)
        if done.returncode or not done.stdout:
            return f"{hcasim} does not make the page {name}.md, so no page was looked at"
        made_pages[name] = done.stdout
    for name, made in made_pages.items():
        page = ROOT / f"docs/reference/{name}.md"
        found = page.read_text(encoding="utf-8") if page.exists() else ""
        if args.write:
            page.write_text(made, encoding="utf-8")
        elif made != found:
            differ = True
            print(f"{page.relative_to(ROOT)} differs from the tables of hcasim. Run: "
                  f"scripts/lib/reference_pages.py {os.path.relpath(hcasim, ROOT)} --write")
            lines = difflib.unified_diff(found.splitlines(), made.splitlines(), "page", "tables", lineterm="", n=0)
            print(*list(lines)[:MOST_LINES], sep="\n")
    return differ


if __name__ == "__main__":
    sys.exit(main())
