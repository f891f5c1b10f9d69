# SPDX-License-Identifier: BSD-2-Clause
"""Runs tests of rdma-core's pyverbs suite in a guest, each in its own process.

usage: run_pyverbs.py TESTS DEVICE GID-INDEX SECONDS < names

TESTS is the unpacked suite (the folder that holds tests/). For each name from standard input it
prints "outcome name reason" with outcome pass, fail, error, skip or timeout, and the output of a
failed test in lines that begin with a blank. Without names it prints the names of all tests.
"""
import os
import re
import subprocess
import sys
import tempfile
import time
import unittest

suite_dir, device, gid, seconds = sys.argv[1:]
sys.path[:0] = [suite_dir, f"{suite_dir}/tests"]
sys.argv = ["run_tests.py", "--dev", device, "--port", "1", "--gid", gid]

import tests  # noqa: E402  the suite's own
import tests.utils  # noqa: E402
from args_parser import parser  # noqa: E402

parser.parse_args()
OUTCOMES = {0: "pass", 2: "fail", 3: "error", 4: "skip"}


def encap_mode_check(dev_name):
    """Tests of tunnels skip if an e-switch encapsulates. The suite asks devlink, and takes its error
    for such an e-switch. "Not supported" means that the NIC has no e-switch, so they may run."""
    show = ["devlink", "dev", "eswitch", "show", f"pci/{tests.utils.get_pci_name(dev_name)}"]
    return "not supported" in subprocess.run(show, capture_output=True, text=True).stderr or suite_check(dev_name)


suite_check = getattr(tests.utils, "encap_mode_check", None)  # older suites have none
tests.utils.encap_mode_check = encap_mode_check


def every_test(suite):
    for item in suite:
        if isinstance(item, unittest.TestSuite):
            yield from every_test(item)
        else:
            yield item.id().removeprefix("tests."), item


def run_here(test, output):
    """Runs one test, in the child; the exit status is its outcome."""
    os.setsid()
    os.dup2(output.fileno(), 1)
    os.dup2(output.fileno(), 2)
    status = 3
    try:
        with os.fdopen(os.dup(2), "w") as stream:
            result = unittest.TextTestRunner(stream=stream, verbosity=2).run(test)
        status = 3 if result.errors else 2 if result.failures else 4 if result.skipped else 0
    except BaseException as error:  # any exception belongs to the test
        print(repr(error))
    sys.stdout.flush()
    os._exit(status)


def run(test):
    with tempfile.TemporaryFile("w+", errors="replace") as output:
        pid = os.fork()
        if pid == 0:
            run_here(test, output)
        deadline = time.monotonic() + float(seconds)
        status = None
        while status is None and time.monotonic() < deadline:
            done, wait_status = os.waitpid(pid, os.WNOHANG)
            status = os.waitstatus_to_exitcode(wait_status) if done else None
            time.sleep(0.02)
        if status is None:
            os.killpg(pid, 9)
            os.waitpid(pid, 0)
        output.seek(0)
        said = output.read()
    outcome = "timeout" if status is None else OUTCOMES.get(status, f"signal{-status}")
    reasons = re.findall(r"^[\w.]*Error: (.*)" if outcome == "error" else r"skipped ['\"](.*)['\"]", said,
                         re.M)
    return outcome, reasons[-1] if reasons else "", said


def main():
    known = dict(every_test(unittest.defaultTestLoader.loadTestsFromModule(tests)))
    names = sys.stdin.read().split()
    if not names:
        print("\n".join(sorted(known)))
        return
    for name in names:
        if name not in known:
            print("missing", name, flush=True)
            continue
        outcome, reason, said = run(known[name])
        print(outcome, name, reason, flush=True)
        if outcome not in ("pass", "skip"):
            print("".join(f"  {line}\n" for line in said.splitlines()[-25:]), end="", flush=True)


main()
