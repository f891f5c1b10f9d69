#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs the installed rdma-core's pyverbs suite on the verbs libraries of a build, with no VM.

The suite and the bindings are Debian's own (package python3-pyverbs). Each test runs in its own
process, with both ends on one HCA in that process. tests/verbs/pyverbs.list has the expected
results: a test passes, or skips or ends in an error for the reason given. Another result, a test
that is not listed, or a listed test that does not exist, is a failure. So is a test that passes in
a guest (tests/vm/pyverbs.list, a newer suite) and does not have to pass here, unless this suite has
no such test. The two processes of RDMA-CM's tests are two hosts. With --profile NAME, the tests of
pyverbs.NAME.list run on a device of that profile, which has more than the default one. With
--release NAME, all of this runs on the system of another Debian release, with the suite of that
release (scripts/lib/in-release); the libraries stay those of this machine's build. Exit status 0:
nothing failed; 77: the suite is not installed, or is another version than the list's.
"""
import argparse
import concurrent.futures
import gzip
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "scripts/lib"))

import tries  # noqa: E402

LIST = HERE / "pyverbs.list"
VM_LIST = ROOT / "tests/vm/pyverbs.list"
# The keys and the credential that test_mlx5_crypto asks for (docs/adr/0027).
CREDENTIALS = ROOT / "tests/vm/guest/mlx5_crypto_test.json"
HUGE_PAGES = pathlib.Path("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages")
SUITE = pathlib.Path("/usr/share/doc/rdma-core/tests")
BINDINGS = pathlib.Path("/usr/lib/python3/dist-packages/pyverbs")
VERSIONS = ("44", "56")  # versions of rdma-core whose suites the list covers
# The bindings belong to the system's interpreter.
PYTHON = "/usr/bin/python3"
IN_RELEASE = ROOT / "scripts/lib/in-release"
RUNNER = ROOT / "tests/vm/guest/run_pyverbs.py"
GID = "1"
# The suite asks sysfs and ip(8) for the netdev's addresses; here they are known: host 1 of a wire.
HOST = "1"
BASE_HAS = """
def _get_ip_mac(self, dev, port, idx):
    self.args.append([dev, port, idx, "10.0.0.1", "02:68:0a:00:00:01"])


RDMATestCase._get_ip_mac = _get_ip_mac
"""
# RDMA-CM's tests have two processes on one machine with one address; here each process is a host.
CM_BASE_HAS = """
def _as_a_host(flow):
    def run(self, *args, passive=None, **kwargs):
        os.environ["HCASIM_HOST"] = "2" if passive else "3"  # 1 is the test itself
        self.ip_addr = "10.0.0.2"
        return flow(self, *args, passive=passive, **kwargs)
    return run


for _flow in "rdmacm_traffic", "rdmacm_multicast_traffic", "rdmacm_remote_traffic":
    setattr(RDMACMBaseTest, _flow, _as_a_host(getattr(RDMACMBaseTest, _flow)))
"""
CM_ADDRESSES = """
import os

_AddrInfo = AddrInfo


def AddrInfo(src=None, dst=None, **more):
    # who reaches somebody comes from its own address
    return _AddrInfo(src=f"10.0.0.{os.environ['HCASIM_HOST']}" if dst else src, dst=dst, **more)
"""
# A kernel lets only root have raw packet QPs; an HCA in the process belongs to the user. And a
# kernel shows a port's P_Keys in sysfs: the first is the default one (IBTA 10.9.1.2). devlink knows no
# device without a kernel's driver; this one has no e-switch that could encapsulate.
UTILS_HAVE = """
def is_root():
    return True


def get_pkey_from_kernel(device, port=1, index=0):
    return 0xffff if index == 0 else 0


def encap_mode_check(dev_name):
    return True
"""

# A child of fork() cannot use an HCA of its parent; here each process opens a device of its own.
DEVICE_HAS = """
import os

_alloc_dm = DMTest.alloc_dm


def _alloc_dm_on_own_device(self, res_queue, size):
    os.environ.pop("HCASIM_HOST", None)  # 1 is the test itself
    self.create_context()
    _alloc_dm(self, res_queue, size)


DMTest.alloc_dm = _alloc_dm_on_own_device
"""
# The suite of rdma-core 44 expects TEST_AND_SET to set all bits. rdma-core 50 corrected that: "The
# expected behaviour of test_and_set is to set the memory to 0x1" (c4f1885b4).
CORRECTED = {"test_mlx5_dm_ops.py": (("assertEqual(val, 255)", "assertEqual(val, 1)"),
                                     ("assertEqual(val, num_threads - 1,",
                                      "assertEqual(val, num_threads + 1,"))}


def unpack(folder):
    """Unpacks the suite: Debian compresses documentation, and so parts of the suite."""
    shutil.copytree(SUITE, folder / "tests")
    for packed in (folder / "tests").glob("*.gz"):
        packed.with_suffix("").write_bytes(gzip.decompress(packed.read_bytes()))
        packed.unlink()
    for name, text in (("base.py", BASE_HAS + CM_BASE_HAS), ("utils.py", UTILS_HAVE),
                       ("base_rdmacm.py", CM_ADDRESSES), ("rdmacm_utils.py", CM_ADDRESSES),
                       ("test_device.py", DEVICE_HAS)):
        with (folder / "tests" / name).open("a") as module:
            module.write(text)
    for name, changes in CORRECTED.items():
        module = folder / "tests" / name
        text = module.read_text()
        for mistake, correction in changes:
            text = text.replace(mistake, correction)
        module.write_text(text)


def installed():
    """Returns the version of the suite, as "44.0"; "": it is not installed. The name of librdmacm,
    which pyverbs needs, ends with the version of rdma-core, also where dpkg knows nothing of the
    system (scripts/lib/in-release)."""
    if not BINDINGS.is_dir():
        return ""
    return next((path.name.removeprefix("librdmacm.so.1.3.")
                 for path in pathlib.Path("/usr/lib").glob("*/librdmacm.so.1.3.*")), "")


def why_not():
    """Returns None if the suite can run, otherwise the reason."""
    version = installed()
    if not version:
        return "the package python3-pyverbs is not installed"
    if version.split(".")[0] not in VERSIONS:
        return f"python3-pyverbs is {version}, the list is of {' and '.join(VERSIONS)}"
    if not SUITE.is_dir():
        return f"{SUITE} of python3-pyverbs is not there: dpkg leaves documentation out here"
    return None


def huge_pages():
    """Returns "" if there are huge pages, otherwise the list's word for what is missing."""
    if not HUGE_PAGES.exists():
        return "no-huge-page-size"  # this processor has none, or this is a chroot without /sys
    return "" if int(HUGE_PAGES.read_text()) > 0 else "no-huge-pages"


def read_list(path, lacking=""):
    """Reads the expected result of each test: name -> (outcome, reason)."""
    here = {"", installed().split(".")[0], lacking}
    expected = {}
    for line in path.read_text().splitlines():
        found = re.match(r"(\w+\.\w+\.\w+)\s+(pass|skip|error|less)@?([\w-]*)(?:\s+(.*))?$", line)
        if found and found[3] in here:
            expected[found[1]] = (found[2], found[4] or "")
    return expected


def less_than_in_guests(there):
    """Returns tests of this suite that pass in a guest and that the list lets skip, or does not
    contain."""
    ours = read_list(LIST)
    return [name for name, (outcome, _) in read_list(VM_LIST).items()
            if outcome == "pass" and name in there
            and ours.get(name, ("",))[0] not in ("pass", "less")]


def call(folder, args, names, part=0):
    """Starts the suite's runner on a wire of its own."""
    build = args.build
    profile = {"HCASIM_PROFILE": args.profile, "MLX5_CRYPTO_TEST_INFO": str(CREDENTIALS)} if args.profile else {}
    env = dict(os.environ, **profile, HCASIM_WIRE=f"pyverbs-{folder.name}-{part}", HCASIM_HOST=HOST,
               PYTHONDONTWRITEBYTECODE="1",
               LD_LIBRARY_PATH=f"{build}/guest-lib/verbs",
               LD_PRELOAD=f"{build}/guest-lib/verbs/libhcasim.so")
    job = subprocess.Popen([PYTHON, str(RUNNER), str(folder), "mlx5_0", GID, str(args.seconds)],
                           env=env, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, cwd=folder)
    job.stdin.write(" ".join(names))
    job.stdin.close()
    return job


def judge(outcome, reason, want):
    wanted = "skip" if want[0] == "less" else want[0]
    if outcome != wanted:
        return f"{outcome} {reason}".strip() + f", but the list says {wanted}"
    if outcome != "pass" and want[1] not in reason:
        return f"{outcome} for another reason: {reason}"
    return None


class Suite:
    """Runs the listed tests and compares the results."""

    def __init__(self, folder, args, expected, cases):
        self.folder, self.args, self.expected, self.cases = folder, args, expected, cases
        self.again = []  # names of the tests whose result was not the listed one

    def part(self, names, number):
        """Runs tests one after another. Returns (name, outcome, reason, further output, seconds) of
        each."""
        job = call(self.folder, self.args, names, number)
        results, said, since = {}, "", time.monotonic()
        for line in job.stdout:
            found = re.match(r"(\w+) (\w+\.\w+\.\w+) ?(.*)", line)
            if found and found[2] in self.expected:
                now = time.monotonic()
                results[found[2]] = [found[2], found[1], found[3], "", now - since]
                since = now
            elif results:
                list(results.values())[-1][3] += line
            else:
                said += line
        for name in names:
            results.setdefault(name, [name, "nothing", f"came back\n{said}", "", 0])
        return list(results.values())

    def take(self, results, number):
        """Counts results. Keeps the tests that failed and may be tried again."""
        for name, outcome, reason, said, seconds in results:
            if self.args.raw:
                print(f"{name:<74} {outcome} {reason}".rstrip(), flush=True)
            wrong = judge(outcome, reason, self.expected[name])
            text = f"{said}{wrong}"
            if not wrong and outcome == "skip":
                self.cases.skipped(name, reason)
            elif not wrong and outcome == "error":
                self.cases.expected(name, reason, "", seconds)
            elif not wrong:
                self.cases.passed(name, "", seconds, number)
            elif self.cases.final(text, number):
                self.cases.failed(name, text, "", seconds, number)
            else:
                self.cases.failed_try(name, text, number)
                self.again.append(name)

    def run(self, names):
        """Runs a part of the tests on each CPU, every part on a wire of its own; then the failed
        tests again, alone."""
        parts = min(self.args.jobs, len(names)) or 1
        with concurrent.futures.ThreadPoolExecutor(parts) as pool:
            jobs = [pool.submit(self.part, names[i::parts], i) for i in range(parts)]
            for job in concurrent.futures.as_completed(jobs):
                self.take(job.result(), 1)
        for number in range(2, self.cases.most + 1):
            names, self.again = self.again, []
            for name in names:
                self.take(self.part([name], 0), number)


def enter(release):
    """Runs this program on the system of another release, if that can be made. Returns why not."""
    tried = subprocess.run([IN_RELEASE, release, "true"], capture_output=True, text=True, check=False)
    if tried.returncode:
        return f"no system of Debian {release}: {tried.stderr.strip() or tried.returncode}"
    without_it = argparse.ArgumentParser(add_help=False)
    without_it.add_argument("--release")
    os.execv(IN_RELEASE, [str(IN_RELEASE), release, PYTHON, str(HERE / "pyverbs_run.py"),
                          *without_it.parse_known_args()[1]])
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=ROOT / "build", type=lambda p: pathlib.Path(p).resolve())
    parser.add_argument("--seconds", type=int, default=30, help="The time limit of a test (default: 30).")
    parser.add_argument("-j", "--jobs", type=int, default=len(os.sched_getaffinity(0)), metavar="N",
                        help="The number of tests that run at a time (default: one for each CPU).")
    parser.add_argument("-k", metavar="TEXT", action="append", default=[],
                        help="Only tests with TEXT in their name. The option may be given several times.")
    parser.add_argument("--profile", metavar="NAME",
                        help="The profile of the device. The list is pyverbs.NAME.list.")
    parser.add_argument("--release", metavar="NAME", help="Runs the suite of another Debian release (trixie).")
    parser.add_argument("-v", "--verbose", action="store_true", help="Also prints the tests that pass.")
    parser.add_argument("--raw", action="store_true", help="Prints the outcomes as the lines of a list.")
    parser.add_argument("--all", action="store_true", help="Runs all tests, also those that are not in the list.")
    args = parser.parse_args()
    listed = HERE / f"pyverbs.{args.profile}.list" if args.profile else LIST
    if not listed.exists():
        parser.error(f"there is no {listed.name}")
    without = enter(args.release) if args.release else why_not()
    cases = tries.Cases("pyverbs", quiet=not args.verbose)
    expected = read_list(listed, huge_pages())
    if without:
        cases.skipped("the whole list", without, missing=True, many=len(expected))
        return cases.end()
    with tempfile.TemporaryDirectory(prefix="hcasim-pyverbs.") as temporary:
        folder = pathlib.Path(temporary)
        unpack(folder)
        there = call(folder, args, []).stdout.read().split()
        if args.all:
            expected = {name: expected.get(name, ("pass", "")) for name in there}
        elif not cases.only and not args.profile:
            for name in there:
                if name not in expected:
                    cases.failed(name, f"is not in {LIST.name}")
            for name in less_than_in_guests(there):
                cases.failed(name, f"passes in a guest ({VM_LIST.relative_to(ROOT)})")
        names = [name for name in expected
                 if cases.wanted(name) and (not args.k or any(text in name for text in args.k))]
        Suite(folder, args, expected, cases).run(names)
    # A skip that is not listed, or has another reason, is a failure (judge()).
    return cases.end()


if __name__ == "__main__":
    sys.exit(main())
