#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs the pingpongs under memory checkers: Valgrind, and libraries built with ASan and UBSan.

The programs are Debian's, unmodified, under `scripts/hcasim run`. An invalid access, a use of
uninitialised memory, undefined behaviour or memory lost at the end is a failure. A program with
bugs of that kind (tests/programs/membug.c) shows that the checkers see what the HCA does with a
program's memory. Timing is no condition. Exit status 0: all hold; 1: one does not; 77: something is
not installed.
"""
import argparse
import concurrent.futures
import itertools
import pathlib
import re
import shutil
import subprocess
import sys

import hosts
import sandbox
import tries

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOUND = 9  # exit status of a program in which a checker found something
AT_A_TIME = 2
TRANSPORTS = ("rc", "uc", "ud", "srq", "xsrq")
MODES = ([], ["-e", "-c"])  # polling; by events, with the data checked
VALGRIND = ["valgrind", f"--error-exitcode={FOUND}", "--leak-check=full",
            "--show-leak-kinds=definite,indirect", "--errors-for-leak-kinds=definite,indirect"]
ASAN = [f"ASAN_OPTIONS=detect_leaks=1:strict_string_checks=1:verbosity=1:exitcode={FOUND}",
        f"UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1:exitcode={FOUND}"]


class Checker:
    """A way to run programs that finds bugs: a build, and the words before the program."""

    def __init__(self, build, before, clean, bugs):
        self.hosts = hosts.Hosts(build)
        self.hosts.wire += f"-{build.name}"
        self.before, self.clean, self.bugs = before, clean, bugs

    def judge(self, text):
        """Checks the output of a program that ended without an error: it must show that the checker
        ran and found nothing."""
        if self.clean not in text:
            raise hosts.Failure(f"nothing says that the checker was there:\n{text}")

    def pingpong(self, transport, mode, iterations):
        if transport == "xsrq":  # it has no option -c
            mode = [option for option in mode if option != "-c"]
        for text in self.hosts.pair(*self.before, f"ibv_{transport}_pingpong", *hosts.ON_DEVICE,
                                    "-n", str(iterations), *mode):
            self.judge(text)

    def pingpongs(self, iterations):
        with concurrent.futures.ThreadPoolExecutor(AT_A_TIME) as pool:
            jobs = [pool.submit(self.pingpong, *what, iterations)
                    for what in itertools.product(TRANSPORTS, MODES)]
            for job in jobs:
                job.result()

    def finds(self):
        """Checks that the bugs of membug are found, and nothing without its bugs."""
        program = str(self.hosts.build / "tests/programs/membug")
        self.judge(self.hosts.run(*self.before, program))
        for bug, said in self.bugs.items():
            process = self.hosts.start(*self.before, program, bug)
            text = process.communicate(timeout=hosts.PATIENCE)[0]
            if process.returncode != FOUND or said not in text:
                raise hosts.Failure(f"{process.command}: exit status {process.returncode}\n{text}")


def valgrind_pingpongs(valgrind, asan):
    """All pingpongs run under Valgrind without an error and leak no memory."""
    valgrind.pingpongs(30)


def valgrind_finds(valgrind, asan):
    """Valgrind reports HCA reads of freed memory, and leaks."""
    valgrind.finds()


def asan_pingpongs(valgrind, asan):
    """All pingpongs run under ASan and UBSan without an error and leak no memory."""
    asan.pingpongs(200)


def asan_finds(valgrind, asan):
    """ASan reports HCA reads of freed memory, and leaks."""
    asan.finds()


STATEMENTS = (valgrind_pingpongs, valgrind_finds, asan_pingpongs, asan_finds)


def asan_library(build):
    """Returns the run-time library that the build needs; it must come before all others."""
    library = build / "guest-lib/verbs/libibverbs.so.1"
    said = subprocess.run(["ldd", library], capture_output=True, text=True, check=True).stdout
    found = re.search(r"libasan\S* => (\S+)", said)
    if not found:
        sys.exit(f"{library} is not built with ASan")
    return found[1]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    for option, default in (("--build", "build"), ("--asan-build", "build-asan")):
        parser.add_argument(option, type=lambda p: pathlib.Path(p).resolve(), default=ROOT / default)
    parser.add_argument("names", nargs="*", help="The statements to check (default: all).")
    args = parser.parse_args()
    sandbox.enter(__file__, {"--build": args.build, "--asan-build": args.asan_build})
    cases = tries.Cases("checkers")
    missing = [p for p in ("ibv_rc_pingpong", "valgrind") if not shutil.which(p)]
    if missing:
        for statement in STATEMENTS:
            cases.skipped(statement.__name__, f"no {', '.join(missing)} (packages ibverbs-utils, valgrind)", missing=True)
        return cases.end()
    hosts.PATIENCE = 600
    valgrind = Checker(args.build, VALGRIND, "ERROR SUMMARY: 0 errors",
                       {"freed": "Invalid read", "lost": "are definitely lost"})
    # with verbosity in ASAN_OPTIONS the run-time library reports itself
    asan = Checker(args.asan_build, ["env", f"LD_PRELOAD={asan_library(args.asan_build)}", *ASAN],
                   "AddressSanitizer Init done",
                   {"freed": "heap-use-after-free", "lost": "LeakSanitizer: detected memory leaks"})
    def clear_up():
        return valgrind.hosts.end() + asan.hosts.end()

    try:
        return hosts.check(cases, STATEMENTS, args.names, (valgrind, asan), clear_up)
    finally:
        clear_up()


if __name__ == "__main__":
    sys.exit(main())
