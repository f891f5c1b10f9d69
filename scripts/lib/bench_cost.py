# SPDX-License-Identifier: BSD-2-Clause
"""Counts the instructions that a message costs (scripts/bench cost).

Runs tests/programs/one_thread.c on one processor with no VM, and counts its instructions outside
the kernel, in both HCAs and the program together. Takes the least of some runs, minus the cost of
an empty run. Unlike times, these figures hardly depend on the machine's load: only polls that find
nothing add to them. With --vs, another build is counted in turn with this one.

`perf stat` counts them on the processor. Where the processor does not count (in many virtual
machines), valgrind counts a tenth of the messages. Its figures are a little higher, because the
first messages weigh ten times as much; compare them only with other figures from valgrind. Exit
status 77 if neither is installed (packages linux-perf, valgrind).
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
# one_thread's arguments: operation, bytes, number of messages, number outstanding.
CASES = ["write 64 200000 64", "send 64 200000 64", "send 64 50000 1", "read 64 100000 16",
         "add 8 100000 16", "write 65536 5000 4", "read 65536 5000 4"]


def run(build, command):
    """Runs the command on one processor; returns its standard error."""
    done = subprocess.run(
        ["taskset", "-c", str(min(os.sched_getaffinity(0))), *command[0], ROOT / "scripts/hcasim", "run",
         "--build", build, "--devices", "2", "--wire", f"cost-{os.getpid()}", "--", *command[1]],
        text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command[1]))}: exit status {done.returncode}\n{done.stderr}")
    return done.stderr


def count_by_perf(program, build, arguments):
    """Counts all threads, outside the kernel. Returns None if this processor does not count
    instructions."""
    said = run(build, (["perf", "stat", "-x,", "-e", "instructions:u"], [program, *arguments]))
    counted = re.search(r"^(\d+),,instructions", said, re.M)
    return int(counted[1]) if counted else None


def count_by_valgrind(program, build, arguments):
    said = run(build, ([], ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", program, *arguments]))
    return int(re.search(r"Collected : (\d+)", said)[1])


def counter(program, build):
    """Returns the function that counts, and the divisor of the numbers of messages for it; None if
    nothing here can count."""
    if shutil.which("perf") and count_by_perf(program, build, ["write", "64", "0", "1"]) is not None:
        return count_by_perf, 1
    return (count_by_valgrind, 10) if shutil.which("valgrind") else None


def cost(counting, program, build, case):
    """Returns the instructions for one message."""
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
