# SPDX-License-Identifier: BSD-2-Clause
"""Measures small messages from all to all, over RC and over DC (scripts/bench alltoall).

Many processes with a device each share one wire, with no VM. tests/programs/alltoall checks every
byte. RC has a queue pair for each pair of processes; DC has a target and a few initiators in each
process. The two run in turn. Prints the medians, and RC's figure as a multiple of DC's. Exit status
0: each run was right; 77: the program is not built.
"""
import argparse
import os
import pathlib
import re
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
SKIPPED = 77
PATIENCE = 900  # seconds
LINE = re.compile(r"(\d+) QPs each, (\d+) in all, ([\d.]+) MB each, .* in ([\d.]+) s \((\d+) messages/s\), "
                  r"([\d.]+) s from start to end")
# The values in the program's line, in its order.
COLUMNS = ("QPs of a process", "QPs in all", "MB resident, a process", "seconds of the rounds",
           "messages a second", "seconds from start to end")


def once(build, transport, args):
    wire = f"alltoall-{os.getpid()}"
    command = [ROOT / "scripts/hcasim", "run", "--build", build, "--wire", wire, "--",
               build / "tests/programs/alltoall", "-g", "1", "-n", str(args.processes),
               "-r", str(args.rounds), "-s", str(args.size), "-i", str(args.initiators), transport]
    try:
        result = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    finally:
        for left in pathlib.Path("/dev/shm").glob(f"hcasim-{os.getuid()}-{wire}*"):
            left.unlink()
    found = LINE.search(result.stdout)
    if result.returncode or not found:
        sys.exit(f"{transport}: status {result.returncode}\n{result.stdout[-1000:]}"
                 f"{result.stderr[-1000:]}")
    return [float(value) for value in found.groups()]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", type=int, default=3, metavar="RUNS", help="The number of runs of each kind (default: 3).")
    parser.add_argument("--build", type=lambda p: pathlib.Path(p).resolve(), default=ROOT / "build")
    parser.add_argument("--processes", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=50,
                        help="The number of messages that a process sends to each other process.")
    parser.add_argument("--size", type=int, default=64, help="The length of a message, in bytes.")
    parser.add_argument("--initiators", type=int, default=4, help="The number of DCIs of a process.")
    args = parser.parse_args()
    if not (args.build / "tests/programs/alltoall").exists():
        print("tests/programs/alltoall is not built: rdma-core's headers are missing")
        return SKIPPED
    runs = {transport: [] for transport in ("rc", "dc")}
    for _ in range(args.n):
        for transport, seen in runs.items():
            seen.append(once(args.build, transport, args))
    rc, dc = ([statistics.median(column) for column in zip(*seen)] for seen in runs.values())
    print(f"{args.processes} processes, {args.rounds} rounds of {args.size} bytes, "
          f"load average {os.getloadavg()[0]:.1f}")
    print(f"{'':28}{'RC':>12}{'DC':>12}{'RC / DC':>10}")
    for name, a, b in zip(COLUMNS, rc, dc):
        print(f"{name:28}{a:12g}{b:12g}{a / b:10.3g}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
