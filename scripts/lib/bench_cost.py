# SPDX-License-Identifier: BSD-2-Clause
"""Instructions that a message costs, both HCAs and the program together (scripts/bench cost).

Runs tests/programs/one_thread.c on one processor with no VM, counts its instructions outside the kernel, and
takes the least of some runs less what an empty one takes. Unlike times, these figures hardly move with the
machine's load: only polls that find nothing add to them. With --vs another build is counted in turn with it.

The processor counts them by `perf stat`. Where it does not (in many virtual machines), valgrind does, from a
tenth of the messages: its figures are a little higher, for the first messages count ten times as much, and stand
beside each other only. Exit status 77 if there is neither (packages linux-perf, valgrind).
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys

from tries import SKIPPED

ROOT = pathlib.Path(__file__).resolve().parents[2]
# one_thread's arguments: operation, bytes, how many, outstanding.
CASES = ["write 64 200000 64", "send 64 200000 64", "send 64 50000 1", "read 64 100000 16",
         "add 8 100000 16", "write 65536 5000 4", "read 65536 5000 4"]


def run(build, command):
    """Its standard error, from one processor."""
    done = subprocess.run(
        ["taskset", "-c", str(min(os.sched_getaffinity(0))), *command[0], ROOT / "scripts/hcasim", "run",
         "--build", build, "--devices", "2", "--wire", f"cost-{os.getpid()}", "--", *command[1]],
        text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command[1]))}: exit status {done.returncode}\n{done.stderr}")
    return done.stderr


def count_by_perf(program, build, arguments):
    """Of all threads, outside the kernel; None: this processor does not count them."""
    said = run(build, (["perf", "stat", "-x,", "-e", "instructions:u"], [program, *arguments]))
    counted = re.search(r"^(\d+),,instructions", said, re.M)
    return int(counted[1]) if counted else None


def count_by_valgrind(program, build, arguments):
    said = run(build, ([], ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", program, *arguments]))
    return int(re.search(r"Collected : (\d+)", said)[1])


def counter(program, build):
    """The function that counts, and by what the numbers of messages are divided for it; None: there is none."""
    if shutil.which("perf") and count_by_perf(program, build, ["write", "64", "0", "1"]) is not None:
        return count_by_perf, 1
    return (count_by_valgrind, 10) if shutil.which("valgrind") else None


def cost(counting, program, build, case):
    """Instructions for one message."""
    instructions, fewer = counting
    operation, size, count, outstanding = case.split()
    few, many = (instructions(program, build, [operation, size, str(n), outstanding])
                 for n in (0, int(count) // fewer))
    return (many - few) * fewer / int(count)


def main():
    parser = argparse.ArgumentParser(prog="scripts/bench cost", description=__doc__)
    parser.add_argument("-n", type=int, default=5, metavar="RUNS")
    parser.add_argument("-k", default="", metavar="TEXT")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--vs", type=pathlib.Path, metavar="BUILD")
    args = parser.parse_args()
    program = args.build.resolve() / "tests/programs/one_thread"
    builds = [build.resolve() for build in (args.build, args.vs) if build]
    counting = counter(program, builds[0])
    if not counting:
        print("neither perf (package linux-perf) nor valgrind counts instructions here")
        return SKIPPED
    print(f"counted by {counting[0].__name__.split('_')[-1]}")
    print(f"{'operation, bytes, count, outstanding':38}" + "".join(f"  {build}" for build in builds))
    for case in CASES:
        if args.k not in case:
            continue
        runs = [[cost(counting, program, build, case) for build in builds] for _ in range(args.n)]
        least = [min(run[i] for run in runs) for i in range(len(builds))]
        print(f"{case:38}" + "".join(f"  {value:{len(str(build))}.0f}"
                                     for value, build in zip(least, builds)) +
              (f"  {least[0] / least[1]:.3f}" if len(least) > 1 else ""), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
