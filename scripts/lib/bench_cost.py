# SPDX-License-Identifier: BSD-2-Clause
"""Instructions that a message costs, both HCAs and the program together (scripts/bench cost).

Runs tests/programs/one_thread.c on one processor under `perf stat`, with no VM, and takes the least of
some runs less what an empty one takes. Unlike times, these figures hardly move with the machine's load:
only polls that find nothing add to them. With --vs another build is counted in turn with it. Exit status
77 if perf is not installed (package linux-perf) or counts no instructions here.
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
SKIPPED = 77
# one_thread's arguments: operation, bytes, how many, outstanding.
CASES = ["write 64 200000 64", "send 64 200000 64", "send 64 50000 1", "read 64 100000 16",
         "add 8 100000 16", "write 65536 5000 4", "read 65536 5000 4"]


def instructions(program, build, case):
    """Of all threads, outside the kernel; None: they cannot be counted."""
    done = subprocess.run(
        ["taskset", "-c", str(min(os.sched_getaffinity(0))),
         "perf", "stat", "-x,", "-e", "instructions:u", ROOT / "scripts/hcasim", "run", "--build", build,
         "--devices", "2", "--wire", f"cost-{os.getpid()}", "--", program, *case.split()],
        text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    if done.returncode:
        raise SystemExit(f"one_thread {case}: exit status {done.returncode}\n{done.stderr}")
    counted = re.search(r"^(\d+),,instructions", done.stderr, re.M)
    return int(counted[1]) if counted else None


def cost(program, build, case):
    """Instructions for one message."""
    operation, size, count, outstanding = case.split()
    empty = instructions(program, build, f"{operation} {size} 0 {outstanding}")
    return (instructions(program, build, case) - empty) / int(count)


def main():
    parser = argparse.ArgumentParser(prog="scripts/bench cost", description=__doc__)
    parser.add_argument("-n", type=int, default=5, metavar="RUNS")
    parser.add_argument("-k", default="", metavar="TEXT")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--vs", type=pathlib.Path, metavar="BUILD")
    args = parser.parse_args()
    program = args.build.resolve() / "tests/programs/one_thread"
    builds = [build.resolve() for build in (args.build, args.vs) if build]
    if not shutil.which("perf") or instructions(program, builds[0], "write 64 0 1") is None:
        print("perf is not installed (package linux-perf), or counts no instructions here")
        return SKIPPED
    print(f"{'operation, bytes, count, outstanding':38}" + "".join(f"  {build}" for build in builds))
    for case in CASES:
        if args.k not in case:
            continue
        runs = [[cost(program, build, case) for build in builds] for _ in range(args.n)]
        least = [min(run[i] for run in runs) for i in range(len(builds))]
        print(f"{case:38}" + "".join(f"  {value:{len(str(build))}.0f}"
                                     for value, build in zip(least, builds)) +
              (f"  {least[0] / least[1]:.3f}" if len(least) > 1 else ""), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
