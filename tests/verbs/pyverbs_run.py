#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs the installed rdma-core's pyverbs suite on the verbs libraries of a build, with no VM.

The suite and the bindings are Debian's own (package python3-pyverbs); each test runs in
a process of its own, on an HCA in that process, at both ends. What must come out is in
tests/verbs/pyverbs.list: a test passes, or skips for the reason given. Another outcome, a test of a
listed module that is not listed, or one that is listed and not there, is a failure. RDMA-CM's tests
are not in the list: they need a kernel's connection manager. Exit status 0: nothing failed; 77: the
suite is not installed.
"""
import argparse
import gzip
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
LIST = HERE / "pyverbs.list"
SUITE = pathlib.Path("/usr/share/doc/rdma-core/tests")
# The bindings belong to the system's interpreter.
PYTHON = "/usr/bin/python3"
RUNNER = ROOT / "tests/vm/guest/run_pyverbs.py"
GID = "1"
# The suite asks sysfs and ip(8) for the netdev's addresses; here they are known: host 1 of a wire.
HOST = "1"
ADDRESSES = """
def _get_ip_mac(self, dev, port, idx):
    self.args.append([dev, port, idx, "10.0.0.1", "02:68:0a:00:00:01"])


RDMATestCase._get_ip_mac = _get_ip_mac
"""
SKIPPED = 77


def unpack(folder):
    """Parts of the suite are compressed: documentation is, in Debian."""
    shutil.copytree(SUITE, folder / "tests")
    for packed in (folder / "tests").glob("*.gz"):
        packed.with_suffix("").write_bytes(gzip.decompress(packed.read_bytes()))
        packed.unlink()
    with (folder / "tests/base.py").open("a") as base:
        base.write(ADDRESSES)


def read_list():
    expected = {}
    for line in LIST.read_text().splitlines():
        found = re.match(r"(\w+\.\w+\.\w+)\s+(pass|skip)\s*(.*)", line)
        if found:
            expected[found[1]] = (found[2], found[3])
    return expected


def call(folder, build, names, seconds):
    """Starts the suite's runner. Its wire is nobody else's."""
    env = dict(os.environ, HCASIM_WIRE=f"pyverbs-{os.getpid()}", HCASIM_HOST=HOST,
               PYTHONDONTWRITEBYTECODE="1",
               LD_LIBRARY_PATH=f"{build}/guest-lib/verbs:{build}/guest-lib/mlx5dv")
    job = subprocess.Popen([PYTHON, str(RUNNER), str(folder), "mlx5_0", GID, str(seconds)],
                           env=env, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, cwd=folder)
    job.stdin.write(" ".join(names))
    job.stdin.close()
    return job


def judge(outcome, reason, want):
    if outcome != want[0]:
        return f"{outcome} {reason}".strip() + f", but the list says {want[0]}"
    if outcome == "skip" and want[1] not in reason:
        return f"skips for another reason: {reason}"
    return None


def run(folder, args, names, expected):
    """Prints a line for each test; returns how many passed and failed."""
    job = call(folder, args.build, names, args.seconds)
    passed = failed = 0
    seen = set()
    for line in job.stdout:
        found = re.match(r"(\w+) (\w+\.\w+\.\w+) ?(.*)", line)
        if not found or found[2] not in expected:
            print(f"       {line}", end="")
            continue
        outcome, name, reason = found.groups()
        seen.add(name)
        wrong = judge(outcome, reason, expected[name])
        failed += bool(wrong)
        passed += not wrong
        if args.raw:
            print(f"{name:<74} {outcome} {reason}".rstrip(), flush=True)
        elif wrong or args.verbose:
            print(f"{'FAIL' if wrong else outcome:4} {name}" + (f": {wrong}" if wrong else ""), flush=True)
    for name in sorted(set(names) - seen):
        failed += 1
        print(f"FAIL {name}: nothing came back")
    return passed, failed


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=ROOT / "build", type=lambda p: pathlib.Path(p).resolve())
    parser.add_argument("--seconds", type=int, default=30, help="a test may take (default: 30)")
    parser.add_argument("-k", metavar="TEXT", action="append", default=[],
                        help="only tests with TEXT in their name")
    parser.add_argument("-v", "--verbose", action="store_true", help="also tests that pass")
    parser.add_argument("--raw", action="store_true", help="outcomes as lines of a list")
    parser.add_argument("--all", action="store_true", help="every test there is, listed or not")
    args = parser.parse_args()
    if not SUITE.is_dir() or subprocess.run([PYTHON, "-c", "import pyverbs"], check=False,
                                            stderr=subprocess.DEVNULL).returncode:
        print("skipped: no pyverbs here (package python3-pyverbs)")
        print("0 passed, 0 failed, 1 skipped")
        return SKIPPED
    expected = read_list() if LIST.exists() else {}
    with tempfile.TemporaryDirectory(prefix="hcasim-pyverbs.") as temporary:
        folder = pathlib.Path(temporary)
        unpack(folder)
        there = call(folder, args.build, [], 0).stdout.read().split()
        modules = {name.split(".")[0] for name in expected}
        failed = 0
        if args.all:
            expected = {name: expected.get(name, ("pass", "")) for name in there
                        if "rdmacm" not in name}
        else:
            for name in there:
                if name.split(".")[0] in modules and name not in expected:
                    failed += 1
                    print(f"FAIL {name}: is not in {LIST.name}")
        names = [name for name in expected if not args.k or any(text in name for text in args.k)]
        passed, wrong = run(folder, args, names, expected)
    failed += wrong
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
