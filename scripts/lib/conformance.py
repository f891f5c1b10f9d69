#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Plays the conformance scripts (docs/howto/conformance.md): conversations at packet level, each with the rules
that it checks.

    scripts/hcasim conformance                            # against the device of this tree, in seconds
    scripts/hcasim conformance --only READ                # cases with READ in their title or a rule
    scripts/hcasim conformance --peer FILE                # against a foreign device on a wire
    scripts/hcasim conformance --soft-roce                # against Linux soft-RoCE in a guest

Prints a line for each case when it ends; what does not hold is told on standard error, with the step and all
packets so far. The last line is "N passed, N failed, N skipped". Exit status 0: nothing failed.
"""
import argparse
import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def main():
    parser = argparse.ArgumentParser(prog="scripts/hcasim conformance", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scripts", type=pathlib.Path, nargs="*", metavar="SCRIPT",
                        help="files with cases (default: all of tests/conformance)")
    parser.add_argument("--list", action="store_true", help="print cases and rules, and play none")
    parser.add_argument("--only", metavar="TEXT", help="only cases with TEXT in their title or a rule")
    parser.add_argument("--report", metavar="FILE",
                        help="write what does not hold, and what was not tried, there (Markdown)")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--peer", metavar="FILE",
                       help="play against the foreign device that this key file describes")
    where.add_argument("--soft-roce", action="store_true",
                       help="play against rdma_rxe in a Debian guest (tests/vm/soft-roce)")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build", metavar="DIR",
                        help="the build to take the player from (default: build)")
    args = parser.parse_args()
    program = args.build.resolve() / "tests/conformance/conformance"
    if not program.exists():
        sys.exit(f"hcasim: {program} is not built: see scripts/setup")
    command = [program]
    if args.soft_roce and not args.list:
        command = [ROOT / "tests/vm/soft-roce", "--build", args.build]
    command += ["--list"] if args.list else []
    for option in ("only", "report", "peer"):
        if getattr(args, option):
            command += [f"--{option}", getattr(args, option)]
    command += args.scripts or sorted((ROOT / "tests/conformance").glob("*.txt"))
    os.execv(command[0], [str(word) for word in command])


if __name__ == "__main__":
    main()
