# SPDX-License-Identifier: BSD-2-Clause
"""Compares verbs without a VM with UCX over TCP and over shared memory (scripts/bench verbs).

Two processes run on two processors, each program on each transport in turn. perftest's 64 KiB WRITE
is compared with UCX's put, SEND with its tagged send, and small WRITEs with small puts.

A virtual machine's processors may share a cache now and be far from each other a second later. Then
everything that two of them do together is slower. Therefore the time that a cache line takes
between them is measured before and after each round, and rounds with far processors have a line of
their own.

Exit status 0 even if a target is missed (the machine may be busy); 1 if a program fails; 77 if the
programs are not installed.
"""
import argparse
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/verbs"), str(ROOT / "scripts/lib")]
from hosts import Failure, Hosts, PERFTEST, free_port, wait_listening  # noqa: E402
from tries import SKIPPED  # noqa: E402

PROGRAMS = ("ib_write_bw", "ib_send_lat", "ibv_rc_pingpong", "ibv_asyncwatch", "ucx_perftest")
UCX = {
    "tcp": {"UCX_TLS": "tcp", "UCX_NET_DEVICES": "lo"},
    # Shared memory between buffers that a program allocates as it likes; verbs know only such
    # buffers.
    "shm": {"UCX_TLS": "posix", "UCX_ALLOC_PRIO": "heap"},
    # Buffers within the shared segment itself, where ucx_perftest puts them if it may: a put is one
    # memcpy() in which no other processor takes part.
    "shm-seg": {"UCX_TLS": "posix"},
}
# Title; perftest's command and column; ucx_perftest's command and column from the right (of its
# final line: percentile, average, overall of overhead, bandwidth, rate); factor to the unit; unit;
# whether more is better; aims. The aims are alternatives: each is the least ratio to each of some
# sides, or for HCASIM the figure itself.
HCASIM = "hcasim"
CASES = [
    ("64 KiB WRITE", "ib_write_bw -s 65536 -n 5000", 3,
     "-t ucp_put_bw -s 65536 -n 5000 -w 500", -3, 1, "MiB/s", True, [{"tcp": 4, "shm": 0.8}]),
    ("2 B SEND latency", "ib_send_lat -s 2 -n 5000", 4,
     "-t tag_lat -s 2 -n 5000 -w 500", -7, 1, "us", False, [{HCASIM: 1.2}, {"shm": 0.5}]),
    ("64 B WRITE rate", "ib_write_bw -s 64 -n 200000", 4,
     "-t ucp_put_bw -s 64 -n 200000 -w 2000", -1, 1e-6, "Mmsg/s", True, [{}]),
    ("64 B SEND rate", "ib_send_bw -s 64 -n 200000", 4,
     "-t tag_bw -s 64 -n 200000 -w 2000", -1, 1e-6, "Mmsg/s", True, [{HCASIM: 3.5}, {"shm": 0.5}]),
]
START_TO_EXIT = 0.2  # seconds
RESIDENT = 10        # MB
QPS, THREADS = 8, (1, 2, 4, 8)  # tests/programs/many_qps
MESSAGES = 200000               # the number of messages of each QP


FAR_NS = 200  # the time of a cache line there and back; with a common cache it takes a quarter of that, or less


def is_far(hosts):
    text = subprocess.run([hosts.build / "tests/programs/cache_line"], stdout=subprocess.PIPE, text=True,
                          check=False).stdout
    return float(text.split()[0]) > FAR_NS if text else False  # a single processor is near


def rounds_of(hosts, rounds, sides):
    """Calls each side's measure() in each of so many rounds. Yields (title, medians of the sides),
    first for the rounds in which the processors were near, then for the others."""
    near, far = [], []
    was_far = is_far(hosts)
    for _ in range(rounds):
        values = {side: measure() for side, measure in sides.items()}
        now_far = is_far(hosts)
        (far if was_far or now_far else near).append(values)
        was_far = now_far
    for kind, measured in (("", near), (f"{len(far)} far of {rounds}", far)):
        if measured:
            yield kind, {side: statistics.median(values[side] for values in measured) for side in sides}


def perftest(hosts, command, column):
    client, _ = hosts.pair(*command.split(), *PERFTEST, "-F")
    rows = [line.split() for line in client.splitlines() if re.match(r"\s*\d+\s+\d+\s+[\d.]", line)]
    if not rows:
        raise Failure(f"{command} has no result:\n{client}")
    return float(rows[-1][column])


def ucx(hosts, side, command, column):
    """Like perftest(). The port is for the programs' own exchange of parameters."""
    port = free_port()
    program = ["ucx_perftest", "-p", str(port), *command.split(), "-f"]
    environment = {**os.environ, **UCX[side], "UCX_WARN_UNUSED_ENV_VARS": "n"}

    def start(*arguments):
        process = subprocess.Popen([*program, *arguments], env=environment, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        process.command = " ".join(program)
        hosts.started.append(process)
        return process

    server = start()
    wait_listening(server, port)
    client = start("localhost")
    text = hosts.output(client)
    hosts.output(server)
    rows = [line.split() for line in text.splitlines()
            if re.match(r"\s*\d+(\s+[\d.]+){7}\s*$", line)]
    if not rows:
        raise Failure(f"{client.command} has no result:\n{text}")
    return float(rows[-1][column])


def start_to_exit(hosts):
    """Returns the seconds from start to exit of a pingpong's client, `hcasim run` included."""
    port = str(free_port())
    command = ["ibv_rc_pingpong", "-d", "mlx5_0", "-g", "1", "-p", port]
    server = hosts.start(*command)
    wait_listening(server, int(port))
    begin = time.monotonic()
    client = hosts.start(*command, "localhost")
    hosts.output(client)
    passed = time.monotonic() - begin
    hosts.output(server)
    return passed


def resident(hosts):
    """Returns the MB of a process that has the device open and waits for its events."""
    idle = hosts.start("ibv_asyncwatch", "-d", "mlx5_0")
    idle.stdout.readline()  # it prints a line when it waits
    status = pathlib.Path(f"/proc/{idle.pid}/status").read_text()
    idle.kill()
    idle.communicate()
    return int(re.search(r"VmRSS:\s*(\d+) kB", status)[1]) * 1024 / 1e6


def rate_of_threads(hosts, threads):
    """Returns million messages a second of all QPs together, divided among so many threads."""
    text = hosts.run(str(hosts.build / "tests/programs/many_qps"), "1", *map(str, (QPS, threads, MESSAGES)))
    return float(re.search(r": ([\d.]+) Mmsg/s", text)[1])


def compare_threads(hosts, rounds):
    """Compares each number of threads with one thread."""
    sides = {threads: lambda threads=threads: rate_of_threads(hosts, threads) for threads in THREADS}
    for kind, medians in rounds_of(hosts, rounds, sides):
        line = ", ".join(f"{threads}: {median:.3g}" for threads, median in medians.items())
        missed = "" if medians[2] > medians[1] else ", misses it"
        title = f"{QPS} QPs of 64 B SENDs in one process, by threads"
        print(f"{'  ' + kind if kind else title}: {line} Mmsg/s (aim: 2 faster than 1{missed})", flush=True)


def misses(aims, ours, ratios, more_is_better):
    """Returns a text if no alternative is met."""
    def met(side, least):
        if side == HCASIM:
            return ours >= least if more_is_better else ours <= least
        return ratios[side] >= least

    if any(all(met(*aim) for aim in sides.items()) for sides in aims):
        return ""
    return "misses " + " or ".join(
        " and ".join(f"{least} x {side}" if side != HCASIM else f"{least}" for side, least in sides.items())
        for sides in aims)


def compare(hosts, case, rounds):
    title, ours, column, theirs, ucx_column, factor, unit, more_is_better, aims = case
    sides = {HCASIM: lambda: perftest(hosts, ours, column),
             **{side: lambda side=side: ucx(hosts, side, theirs, ucx_column) * factor for side in UCX}}
    for kind, medians in rounds_of(hosts, rounds, sides):
        ratios = {side: medians[HCASIM] / medians[side] if more_is_better
                  else medians[side] / medians[HCASIM] for side in UCX}
        missed = misses(aims, medians[HCASIM], ratios, more_is_better)
        print(f"{'  ' + kind if kind else title:18}" + "".join(f"{medians[side]:10.4g}" for side in sides) +
              f" {unit:8}" + "".join(f"{ratios[side]:8.2f}" for side in UCX) + "  " + missed, flush=True)


def limit(title, measure, rounds, unit, most):
    median = statistics.median(measure() for _ in range(rounds))
    print(f"{title:40} {median:.3g} {unit} (aim: below {most})", flush=True)


def main():
    parser = argparse.ArgumentParser(prog="scripts/bench verbs", description=__doc__)
    parser.add_argument("-n", type=int, default=7, metavar="ROUNDS")
    parser.add_argument("-k", default="", metavar="TEXT")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    args = parser.parse_args()
    absent = [program for program in PROGRAMS if not shutil.which(program)]
    if absent:
        print(f"not installed: {' '.join(absent)} (packages perftest, ibverbs-utils, ucx-utils)")
        return SKIPPED
    hosts = Hosts(args.build)
    failures = 0
    limits = [
        ("ibv_rc_pingpong, start to exit", lambda: start_to_exit(hosts), "s", START_TO_EXIT),
        ("resident in an idle process", lambda: resident(hosts), "MB", RESIDENT),
    ]
    print(f"medians of {args.n} runs; load average {os.getloadavg()[0]:.1f}\n")
    print(f"{'':18}" + "".join(f"{side:>10}" for side in (HCASIM, *UCX)) + f" {'unit':8}" +
          "".join(f"{'x ' + side:>8}" for side in UCX))
    try:
        for title, step in (
                [(case[0], lambda case=case: compare(hosts, case, args.n)) for case in CASES] +
                [(f"{QPS} QPs, threads", lambda: compare_threads(hosts, args.n))] +
                [(one[0], lambda one=one: limit(one[0], one[1], args.n, *one[2:]))
                 for one in limits]):
            if args.k not in title:
                continue
            try:
                step()
            except (Failure, subprocess.TimeoutExpired) as error:
                failures += 1
                print(f"{title:18} FAILED: {error}", flush=True)
    finally:
        hosts.end()
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
