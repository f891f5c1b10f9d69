#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Does what a page of docs/course tells its reader to do, and compares what is printed with the page.

    labs.py BUILD PAGE...

A page's blocks of "console" have commands behind `$`, each followed by what it prints. There, `...` stands for any
text of a line, and a line that is only `...` stands for any lines. The commands of a page run one after the other, in
a new folder with a copy of docs/course. Exit status 0: everything is as the pages say.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
COURSE = ROOT / "docs/course"
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.M | re.S)
NOT_OURS = re.compile(r"^(Running as user \"root\" and group \"root\"|.*This could be dangerous).*\n", re.M)
LIMIT = 120  # seconds for one command
WRAPPER = '#!/bin/sh\ncommand=$1\nshift\nexec "{program}" "$command" --build "{build}" "$@"\n'


def commands(page):
    """Returns the commands of a page, each with the lines that it is to print."""
    found = []
    for block in BLOCK.findall(page.read_text(encoding="utf-8")):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append((line[2:], []))
            else:
                found[-1][1].append(line)
    return found


def pattern(lines):
    """Returns a pattern for what a command prints."""
    parts = []
    for line in lines:
        if line.strip() == "...":
            parts.append(r"(?:.*\n)*?")
        else:
            parts.append(r"[^\n]*?".join(re.escape(part) for part in line.split("...")) + r"[ \t]*\n")
    return re.compile("".join(parts))


def play(page, environment):
    """Runs the commands of a page. Returns how many of them print something else."""
    bad = 0
    with tempfile.TemporaryDirectory(prefix="hcasim-course.") as folder:
        copy = pathlib.Path(folder) / "rdma-course"
        shutil.copytree(COURSE, copy)
        for command, expected in commands(page):
            try:
                result = subprocess.run(["bash", "-c", command], cwd=copy, env=environment, timeout=LIMIT, text=True,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, errors="replace")
                printed = NOT_OURS.sub("", result.stdout)
            except subprocess.TimeoutExpired:
                printed = f"no end after {LIMIT} seconds\n"
            if not pattern(expected).fullmatch(printed):
                bad += 1
                print(f"{page.name}: {command}\n-- the page says:\n" + "\n".join(expected) + f"\n-- it printed:\n{printed}")
    return bad


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    build, pages = pathlib.Path(sys.argv[1]).resolve(), [pathlib.Path(page).resolve() for page in sys.argv[2:]]
    bad = number = 0
    with tempfile.TemporaryDirectory(prefix="hcasim-course.") as folder:
        wrapper = pathlib.Path(folder) / "hcasim"
        wrapper.write_text(WRAPPER.format(program=ROOT / "scripts/hcasim", build=build), encoding="utf-8")
        wrapper.chmod(0o755)
        environment = {name: value for name, value in os.environ.items() if not name.startswith("HCASIM_")}
        environment |= {"PATH": f"{folder}:{environment['PATH']}", "HCASIM_WIRE": f"course-{os.getpid()}", "LC_ALL": "C.UTF-8"}
        for page in pages:
            number += len(commands(page))
            bad += play(page, environment)
    print(f"{number} commands, {bad} of them print something else than the page says")
    return 1 if bad or not number else 0


if __name__ == "__main__":
    sys.exit(main())
