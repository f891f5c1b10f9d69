#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs the programs of docs/start/first-program.md under hcasim run, and checks that they print what it says.

    first_program.py BUILD c           the C program, and each mistake of the page's table in it
    first_program.py BUILD python      the same in Python; exit status 77 without python3-pyverbs
    first_program.py BUILD trace       the C program's trace, which docs/reference/trace.md shows

Exit status 0: each program printed what the page says, and hcasim gave the reason that the page shows.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/start/first-program.md"
TRACE_PAGE = ROOT / "docs/reference/trace.md"
C = ROOT / "docs/examples/first_program.c"
PYTHON = ROOT / "docs/examples/first_program.py"
INTERPRETER = "/usr/bin/python3"  # for which Debian packages pyverbs
ROW = re.compile(r"^\| `(.+?)` \| (?:`(.+?)`|nothing) \| `(.+?)` \| `(.+?)` \|$", re.M)
SKIPPED = 77


def output(build, *command, log="guest"):
    """Returns everything that the command prints under hcasim run --explain, and its exit status."""
    result = subprocess.run([ROOT / "scripts/hcasim", "run", "--build", build, "--wire", f"first-{os.getpid()}",
                             "--log", log, "--", *command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=240,
                            env={**os.environ, "HCASIM_EXPLAIN": "1", "PYTHONUNBUFFERED": "1"}, check=False)
    return result.stdout.splitlines(), result.returncode


def differs(what, expected, found):
    if expected == found:
        return 0
    print(f"{what}: the page says {expected}, it is {found}")
    return 1


def reason(text):
    """Returns a pattern for a line with hcasim's reason, in which `...` stands for text that differs."""
    return re.compile(".*".join(map(re.escape, text.split("..."))))


def check_mistakes(source, rows, run):
    bad = differs("are there mistakes to try", True, len(rows) > 0)
    for old, new, last, why in rows:
        if source.count(old) != 1:
            bad += differs(f"how often '{old}' is in the program", 1, source.count(old))
            continue
        lines, status = run(source.replace(old, new))
        what = f"'{new}' for '{old}'"
        bad += differs(what, (last, 1), (lines[-1] if lines else "", status))
        if not any(map(reason(why).search, lines)):
            bad += differs(f"{what}, the reason", why, lines)
    return bad


def c_program(build, said, rows):
    source = C.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory(prefix="hcasim-first.") as folder:
        program = pathlib.Path(folder) / "first_program"

        def run(text):
            subprocess.run(["gcc", "-w", "-x", "c", "-", "-o", program, "-libverbs"], input=text, text=True, check=True)
            return output(build, program)

        return differs("the program", (said, 0), run(source)) + check_mistakes(source, rows, run)


def without_numbers(line):
    """Returns the line with a letter for each number that differs from run to run: addresses, keys, queues."""
    letters = {}
    return re.sub(r"0x[0-9a-f]+", lambda found: letters.setdefault(found[0], chr(ord("A") + len(letters))), line)


def trace(build):
    """Compares the lines of the trace's page with those of the program: the SEND, and each transition that it shows."""
    page = [line.strip() for line in TRACE_PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("    mlx5_0: ")]
    with tempfile.TemporaryDirectory(prefix="hcasim-trace.") as folder:
        program = pathlib.Path(folder) / "first_program"
        subprocess.run(["gcc", "-w", C, "-o", program, "-libverbs"], check=True)
        lines, status = output(build, program, log="trace")
    lines = [line for line in lines if line.startswith("mlx5_0: ")]
    first = next((i for i, line in enumerate(lines) if " send wqe 0 " in line), len(lines))
    shown = [line for line in page if "command " not in line and " state " not in line]
    bad = differs("the trace's end", 0, status)
    bad += differs("how many lines there are about the SEND", True, len(shown) > 5)
    sent = lines[first:first + len(shown)]
    bad += differs("the SEND", without_numbers("\n".join(shown)), without_numbers("\n".join(sent)))
    before = {without_numbers(line) for line in lines[:first]}
    return bad + sum(differs(line, True, without_numbers(line) in before) for line in page if line not in shown)


def python_program(build, said, rows):
    if subprocess.run([INTERPRETER, "-c", "import pyverbs"], stderr=subprocess.DEVNULL, check=False).returncode:
        print("python3-pyverbs is not installed")
        sys.exit(SKIPPED)
    lines, status = output(build, INTERPRETER, PYTHON)
    bad = differs("the program", (said, 0), (lines, status))
    return bad + check_mistakes(PYTHON.read_text(encoding="utf-8"), rows,
                                lambda text: output(build, INTERPRETER, "-c", text))


def main():
    if len(sys.argv) != 3 or sys.argv[2] not in ("c", "python", "trace"):
        sys.exit(__doc__)
    if sys.argv[2] == "trace":
        return 1 if trace(sys.argv[1]) else 0
    page = PAGE.read_text(encoding="utf-8")
    said = re.search(r"^It prints:\n\n((?:    .*\n)+)", page, re.M)[1]
    said = [line.strip() for line in said.splitlines()]
    in_c, in_python = page.partition("## Try a mistake")[2].split("### In Python")
    if sys.argv[2] == "c":
        bad = c_program(sys.argv[1], said, ROW.findall(in_c))
    else:
        bad = python_program(sys.argv[1], said, ROW.findall(in_python))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
