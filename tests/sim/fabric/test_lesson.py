#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs the commands of docs/howto/simulation.md that show output, and compares what they print with the page.

usage: test_lesson.py HCASIM

A seed decides everything, so the page shows what every machine prints. If a change of the device or of the simulator
changes these lines, change the page, with numbers and names in its text.
"""
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs/howto/simulation.md"
SHOWN = "hcasim"  # how the page calls the program, behind "scripts/"
INDENT = "    "


def blocks(text):
    """The indented blocks of a text, without their indentation."""
    return [re.sub(f"^{INDENT}", "", found[0], flags=re.M)
            for found in re.finditer(rf"(?<=\n\n)(?:{INDENT}.*\n)+", text)]


def shell(hcasim, commands):
    """What the commands print, in a folder of their own."""
    with tempfile.TemporaryDirectory(prefix="hcasim-lesson.") as folder:
        done = subprocess.run(["bash", "-e", "-c", commands.replace(f"scripts/{SHOWN}", str(hcasim))], cwd=folder,
                              stdout=subprocess.PIPE, text=True, timeout=300, check=True)
    return done.stdout


def differ(what, expected, found):
    if expected == found:
        return 0
    print(f"{what}: the page says\n{expected}\nbut it is\n{found}")
    return 1


def lesson(hcasim, page):
    """A block of commands, the block that they print, and a command that counts, with the counts behind it."""
    section = re.search(r"^## A lesson: .*?(?=^## )", page, re.M | re.S)[0]
    commands, said, *_ = blocks(section)
    printed = shell(hcasim, commands)
    command, cable, host = re.search(r"`(grep '\\\[lost' [^`]*)` finds all lost frames: (\d+) frames that a cable lost "
                                     r"\(`\[lost\]`\), and (\d+) frames with the reason `the host has no open device`",
                                     " ".join(section.split())).groups()
    lost = shell(hcasim, f"{commands}{command}").removeprefix(printed).splitlines()
    count = [sum(line.endswith(f"[{fate}]") for line in lost) for fate in ("lost", "lost: the host has no open device")]
    return (differ("the lesson", said, printed) + differ("how many frames a cable lost", int(cable), count[0]) +
            differ("how many frames had no host", int(host), count[1]) + differ("how many are lost", len(lost), sum(count)))


def shown_lines(hcasim, page):
    """Lines of a longer trace."""
    command, lines = re.search(rf"^These lines are from `([^`]+)`:\n\n((?:{INDENT}.*\n)+)", page, re.M).groups()
    printed = shell(hcasim, command.replace("\n", " ")).splitlines()
    shown = re.sub(f"^{INDENT}", "", lines, flags=re.M).splitlines()
    return sum(differ("the trace", line, "not there") for line in shown if line not in printed)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    hcasim = pathlib.Path(sys.argv[1]).resolve()
    page = PAGE.read_text(encoding="utf-8")
    return 1 if lesson(hcasim, page) + shown_lines(hcasim, page) else 0


if __name__ == "__main__":
    sys.exit(main())
