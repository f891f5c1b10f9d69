#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs meson's tests of a build and prints a line for each program, then "N passed, N failed, N
skipped".

A Check program counts as many tests as it reports. A program whose own last line is "N passed, N
failed, N skipped" counts as many as that line says. Any other program counts as one. A program of
the suite real-time that fails is tried again (tries.py), because it has processes or depends on a
clock. All others run in virtual time and are never repeated.
"""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys

import tries

REAL_TIME = "real-time"


def counts(entry):
    """Returns (passed, failed, skipped) of one program."""
    if entry["result"] in ("SKIP", "EXPECTEDFAIL"):
        return 0, 0, 1
    summary = re.search(r"\d+%: Checks: (\d+), Failures: (\d+), Errors: (\d+)",
                        entry.get("stdout", ""))
    own = re.search(r"^(\d+) passed, (\d+) failed, (\d+) skipped\n*\Z", entry.get("stdout", ""), re.M)
    good = entry["result"] == "OK"
    if summary:
        total, failures, errors = map(int, summary.groups())
        failed = failures + errors
        # A program can fail apart from its tests: a sanitizer's report at exit, a time-out.
        if not good and not failed:
            failed, total = 1, total + 1
        return total - failed, failed, 0
    if own and (good or int(own[2])):
        return tuple(map(int, own.groups()))
    return int(good), int(not good), 0


def entries(log):
    """Yields meson's records of the programs that it ran, with their names without their suites."""
    if not log.is_file():
        return []
    found = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    for entry in found:
        entry["suites"], _, entry["name"] = entry["name"].rpartition(" / ")
    return found


def said_by(entry):
    return (entry.get("stdout", "") + entry.get("stderr", "")).rstrip() or f"{entry['result']}, without a word"


def why_skipped(entry):
    """Returns the reason that a skipped program printed, or the beginning of its last line."""
    words = re.search(r"^.*\bskip(?:ped)?\b:? *(.*)$", said_by(entry), re.M | re.I)
    return words[1] if words and words[1] else said_by(entry).splitlines()[-1][:150]


class Build:
    """A build directory whose tests are run."""

    def __init__(self, folder, verbose=False):
        self.folder, self.verbose = folder, verbose

    def run(self, names, aloud=True):
        """Runs the programs of these names, or all, and returns their results."""
        log = pathlib.Path(self.folder) / "meson-logs/testlog.json"
        log.unlink(missing_ok=True)
        aloud = aloud and self.verbose
        subprocess.run(["meson", "test", "-C", self.folder, "--no-rebuild", "--num-processes", str(len(os.sched_getaffinity(0)) + 1),
                        "--verbose" if aloud else "--quiet", *names],
                       stdout=None if aloud else subprocess.DEVNULL, check=False)
        # The log decides, not the exit status: the log distinguishes skipped from passed.
        return entries(log)


def report(cases, entry, again):
    """Counts a program's tests; again() runs it once more, if it may be repeated."""
    name = entry["name"]
    passed, failed, skipped = counts(entry)
    number = 1
    seconds = entry["duration"]
    real_time = again and REAL_TIME in entry["suites"]
    while failed and real_time and not cases.final(said_by(entry), number):
        cases.failed_try(name, said_by(entry), number)
        number += 1
        entry = again(name)
        seconds += entry["duration"]
        passed, failed, skipped = counts(entry)
    remark = f"{passed} of {passed + failed + skipped}"
    if failed:
        cases.failed(name, said_by(entry), remark, seconds, number, many=failed)
    elif passed:
        cases.passed(name, remark, seconds, number)
    if skipped and not passed + failed:
        # A program prints what is missing.
        cases.skipped(name, why_skipped(entry), missing=bool(re.search(r"\binstall", said_by(entry))))
    elif skipped:
        cases.more("skipped", name, skipped)
    rest = passed if failed else passed - 1
    if rest > 0:
        cases.more("passed", name, rest)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-v", "--verbose", action="store_true", help="Also prints the output of the test programs.")
    parser.add_argument("--log", type=pathlib.Path, help="Reports the results in this testlog.json, and runs no test.")
    parser.add_argument("build", nargs="?", default="build")
    parser.add_argument("names", nargs="*", help="The tests to run (default: all).")
    args = parser.parse_args()
    cases = tries.Cases(f"meson-{pathlib.Path(args.build).name}")
    build = Build(args.build, args.verbose)
    found = entries(args.log) if args.log else build.run([cases.only] if cases.only else args.names)
    if not found:
        cases.failed(args.build, "no tests ran")

    def again(name):
        once_more = build.run([name], aloud=False)
        return once_more[0] if once_more else {"name": name, "suites": REAL_TIME, "result": "FAIL", "duration": 0,
                                               "stdout": "meson did not run it again"}

    for entry in found:
        report(cases, entry, None if args.log else again)
    return cases.end()


if __name__ == "__main__":
    sys.exit(main())
