#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs the programs of docs/start/first-program.md under hcasim run, and checks that they print what it says.

    first_program.py BUILD c           the C program, and each mistake of the page's table in it
    first_program.py BUILD python      the Python program; exit status 77 without python3-pyverbs

Exit status 0: each printed what the page says.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/start/first-program.md"
C = ROOT / "docs/examples/first_program.c"
PYTHON = ROOT / "docs/examples/first_program.py"
INTERPRETER = "/usr/bin/python3"  # for which Debian packages pyverbs
ROW = re.compile(r"^\| `(.+?)` \| (?:`(.+?)`|nothing) \| `(.+?)` \|", re.M)
SKIPPED = 77


def output(build, *command):
    """Everything that the command prints under hcasim run, and its exit status."""
    result = subprocess.run([ROOT / "scripts/hcasim", "run", "--build", build, "--wire", f"first-{os.getpid()}", "--",
                             *command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=240,
                            check=False)
    return result.stdout.splitlines(), result.returncode


def differs(what, expected, found):
    if expected == found:
        return 0
    print(f"{what}: the page says {expected}, it is {found}")
    return 1


def c_program(build, page):
    said = re.search(r"^It prints:\n\n((?:    .*\n)+)", page, re.M)[1]
    source = C.read_text(encoding="utf-8")
    rows = ROW.findall(page)
    with tempfile.TemporaryDirectory(prefix="hcasim-first.") as folder:
        program = pathlib.Path(folder) / "first_program"

        def run(text):
            subprocess.run(["gcc", "-w", "-x", "c", "-", "-o", program, "-libverbs"], input=text, text=True, check=True)
            return output(build, program)

        bad = differs("the program", ([line.strip() for line in said.splitlines()], 0), run(source))
        bad += differs("its mistakes, are there some", True, len(rows) > 0)
        for old, new, last in rows:
            if source.count(old) != 1:
                bad += differs(f"'{old}' is in the program", 1, source.count(old))
                continue
            lines, status = run(source.replace(old, new))
            bad += differs(f"'{new}' for '{old}'", (last, 1), (lines[-1] if lines else "", status))
    return bad


def python_program(build, _page):
    if subprocess.run([INTERPRETER, "-c", "import pyverbs"], stderr=subprocess.DEVNULL, check=False).returncode:
        print("python3-pyverbs is not installed")
        sys.exit(SKIPPED)
    lines, status = output(build, INTERPRETER, PYTHON)
    return differs("the program", ("received: hello from queue pair 0", 0), (lines[-1] if lines else "", status))


def main():
    if len(sys.argv) != 3 or sys.argv[2] not in ("c", "python"):
        sys.exit(__doc__)
    part = c_program if sys.argv[2] == "c" else python_program
    return 1 if part(sys.argv[1], PAGE.read_text(encoding="utf-8")) else 0


if __name__ == "__main__":
    sys.exit(main())
