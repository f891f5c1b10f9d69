#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs an MPI program over UCX with no VM, again and again: is every value right?

Runs tests/programs/collective.c (all-to-all, all-reduce, puts and accumulates into windows, tickets
by fetch-and-op and compare-and-swap; each value compared) under Open MPI. This tests payload,
atomics, completions and doorbells of some processes on the processors that the machine has. It
makes HCASIM_MPI_RUNS runs (20) of HCASIM_MPI_ROUNDS rounds (2); the project vouches for 1000 runs.
It finds most on a machine that does other work, too.

By default it uses Debian's UCX and its verbs transports; --ucx PREFIX uses a UCX that was built
with the accelerated ones (docs/howto/ucx.md): mpi_stress.py --ucx /opt/ucx --transport dc_x+tm
--ranks 8.

The last line is "N passed, N failed, N skipped". Exit status 0: nothing failed; 77: what it needs
is not installed.
"""
import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import ucx

import tries  # after ucx, which knows the folder of tries

ROOT = pathlib.Path(__file__).resolve().parents[2]
RUNS = int(os.environ.get("HCASIM_MPI_RUNS", "20"))
ROUNDS = int(os.environ.get("HCASIM_MPI_ROUNDS", "2"))
PATIENCE = 600  # seconds for a run
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
MPIRUN = ["mpirun", "--oversubscribe", "--mca", "pml", "ucx", "--mca", "osc", "ucx", "--mca", "btl",
          "^openib,vader,tcp"]


def run(program, args, seed):
    environment = {**os.environ, **AS_ROOT, **ucx.environment(args.transport),
                   "HCASIM_WIRE": f"mpi-{os.getpid()}"}
    if args.ucx:
        environment["LD_LIBRARY_PATH"] = f"{args.ucx}/lib"
    command = [*MPIRUN, "-np", str(args.ranks), ROOT / "scripts/hcasim", "run", "--build", args.build,
               "--", program, str(ROUNDS), str(seed)]
    done = subprocess.run(command, env=environment, timeout=PATIENCE, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False)
    if done.returncode or not done.stdout.endswith(f"{ROUNDS} rounds, 0 wrong\n"):
        raise tries.Failure(f"exit status {done.returncode}\n{done.stdout}")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=lambda p: pathlib.Path(p).resolve(), default=ROOT / "build")
    parser.add_argument("--first", type=int, default=1, metavar="SEED", help="The seed of the first run (default: 1).")
    parser.add_argument("--ucx", metavar="PREFIX", help="The folder where another UCX is installed.")
    parser.add_argument("--transport", default="rc_v,ud_v",
                        help="UCX's transports, with commas between them. +tm behind them: hardware tag matching; +odp: "
                             "all memory is registered on demand.")
    parser.add_argument("--ranks", type=int, default=4)
    args = parser.parse_args()
    cases = tries.Cases("mpi-stress")
    absent = [name for name in ("mpirun", "mpicc") if not shutil.which(name)]
    if absent:
        cases.skipped("all runs", f"no {' '.join(absent)} (packages openmpi-bin libopenmpi-dev)", missing=True, many=RUNS)
        return cases.end()
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder) / "collective"
        subprocess.run(["mpicc", "-O2", "-o", program, ROOT / "tests/programs/collective.c"], check=True)
        for seed in range(args.first, args.first + RUNS):
            cases.run(f"run with seed {seed}", lambda: run(program, args, seed))
    return cases.end()


if __name__ == "__main__":
    sys.exit(main())
