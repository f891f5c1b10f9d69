#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""An MPI program over UCX's verbs transports with no VM, again and again: is every value right?

Runs tests/programs/collective.c (all-to-all, all-reduce, puts and accumulates into windows, tickets by
fetch-and-op and compare-and-swap; each value compared) under Open MPI: payload, atomics, completions
and doorbells of four processes on whatever processors there are. HCASIM_MPI_RUNS runs (20) of
HCASIM_MPI_ROUNDS rounds (2); what the project vouches for is 1000. It is worth most on a machine that
has other work.

UCX 1.13 wants a name /dev/infiniband/uverbs0: where there is none, root makes one for the time of the
test. The last line is "N passed, N failed, N skipped". Exit status 0: nothing failed; 77: what it
needs is not installed, or the name is missing.
"""
import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
SKIPPED = 77
RANKS = 4
RUNS = int(os.environ.get("HCASIM_MPI_RUNS", "20"))
ROUNDS = int(os.environ.get("HCASIM_MPI_ROUNDS", "2"))
PATIENCE = 600  # seconds for a run
UVERBS = pathlib.Path("/dev/infiniband/uverbs0")
ENVIRONMENT = {
    "UCX_TLS": "rc_v,ud_v,self", "UCX_NET_DEVICES": "mlx5_0:1", "UCX_IB_GID_INDEX": "1",
    "UCX_WARN_UNUSED_ENV_VARS": "n",
    "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
}
MPIRUN = ["mpirun", "-np", str(RANKS), "--oversubscribe", "--mca", "pml", "ucx", "--mca", "osc", "ucx",
          "--mca", "btl", "^openib,vader,tcp"]


class Uverbs:
    """The name is there, or was made by us and goes again."""

    def __enter__(self):
        self.made = []
        if not UVERBS.exists():
            if not UVERBS.parent.exists():
                UVERBS.parent.mkdir()
                self.made.append(UVERBS.parent)
            UVERBS.symlink_to("/dev/null")
            self.made.append(UVERBS)

    def __exit__(self, *_):
        for path in reversed(self.made):
            path.rmdir() if path == UVERBS.parent else path.unlink()


def run(program, build, seed):
    """None, or what was wrong."""
    environment = {**os.environ, **ENVIRONMENT, "HCASIM_WIRE": f"mpi-{os.getpid()}"}
    command = [*MPIRUN, ROOT / "scripts/hcasim", "run", "--build", build, "--", program, str(ROUNDS),
               str(seed)]
    try:
        done = subprocess.run(command, env=environment, timeout=PATIENCE, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    except subprocess.TimeoutExpired as err:
        return f"does not end: {err.output}"
    if done.returncode or not done.stdout.endswith(f"{ROUNDS} rounds, 0 wrong\n"):
        return f"exit status {done.returncode}\n{done.stdout}"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=lambda p: pathlib.Path(p).resolve(), default=ROOT / "build")
    parser.add_argument("--first", type=int, default=1, metavar="SEED", help="of the first run (1)")
    args = parser.parse_args()
    absent = [name for name in ("mpirun", "mpicc") if not shutil.which(name)]
    if absent:
        print(f"skip {' '.join(absent)} not installed (packages openmpi-bin libopenmpi-dev)\n"
              "0 passed, 0 failed, 1 skipped")
        return SKIPPED
    if not UVERBS.exists() and os.getuid():
        print(f"skip there is no {UVERBS}, which UCX wants, and only root can make it\n"
              "0 passed, 0 failed, 1 skipped")
        return SKIPPED
    passed = failed = 0
    with Uverbs(), tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder) / "collective"
        subprocess.run(["mpicc", "-O2", "-o", program, ROOT / "tests/programs/collective.c"], check=True)
        for seed in range(args.first, args.first + RUNS):
            started = time.monotonic()
            wrong = run(program, args.build, seed)
            passed += not wrong
            failed += bool(wrong)
            print(f"{'FAIL' if wrong else 'ok  '} run with seed {seed} "
                  f"({time.monotonic() - started:.1f} s){': ' + wrong if wrong else ''}", flush=True)
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
