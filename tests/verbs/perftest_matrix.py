#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs perftest's whole matrix with no VM: every program, transport and combination of modes.

Modes: all message sizes (-a), many QPs (-q), completions by events (-e), both directions (-b).
Without a mode, each program also runs with memory that is registered on demand (--odp).
Combinations that perftest itself does not support must be refused, with the words below. Each
single mode also runs between QPs that connect by librdmacm (-R). Everything runs as an ordinary
user in a container (sandbox.py). Timing is no condition: only a program that never ends fails.
Prints a line for each case; the last one is "N passed, N failed, N skipped". Exit status 0: nothing
failed; 77: perftest is not installed.
"""
import argparse
import itertools
import pathlib
import re
import subprocess
import sys

import hosts
import sandbox
import tries

LONGEST = 2000  # characters of a program's output
ROOT = pathlib.Path(__file__).resolve().parents[2]
OPERATIONS = ("send", "write", "read", "atomic")
TRANSPORTS = ("RC", "UC", "UD", "XRC", "DC")
MODES = ("-a", "-q", "-e", "-b")
QPS, FEW_QPS = 64, 4
# If several reasons apply, perftest names the first of these.
NO_UD = "UD connection only possible in SEND verb"
NO_UC = "UC connection not possible in READ/ATOMIC verbs"
ONE_SIZE = "Message size cannot be changed for Atomic tests"
NO_EVENTS = "Events feature not available on WRITE verb"
ONE_QP = "Multiple QPs only available on bw tests"
ONE_WAY = "Bidirectional is only available in BW test"
# With --odp.
NO_PAGING = {"UC": "ODP does not support UC"}
NO_PAGED_ATOMICS = "ODP does not support ATOMICS"
# With -R.
NO_CM = {"UC": "UC is not supported in librdmacm", "XRC": "XRC does not support RDMA_CM",
         "DC": "DC does not support RDMA_CM"}
# perftest 4.5 takes some completions for each event, not all, and may wait for an event with the
# rest in the CQ (its pull request 203, and issue 137 on a ConnectX-5). With FEW_QPS it always takes
# all, except in these cases:
MAY_HANG = "perftest may leave receive completions in the CQ and wait for an event"
# Before 4.5-0.20, over DC, destroy_ctx() (perftest_resources.c) leaves the receive CQ that
# create_cqs() has made: on the server of SENDs, and on every initiator of READs and atomics.
# ibv_destroy_comp_channel() is then refused, as it must be while a CQ is bound to the channel;
# nothing else may go wrong. Its commit 869f961 fixes it.
KEEPS_CQ = "perftest keeps a CQ, and therefore its event channel"
ITS_FAULTS = {"Failed to close event channel", "Couldn't destroy all SEND resources"}
# The pattern does not match whole lines: lines of standard error may begin within a line of
# standard output.
FAULT = re.compile(r"(?:Failed|Couldn't|Completion with error)[^\n]*")


class Case:
    """A program with options."""

    def __init__(self, operation, kind, transport, modes):
        self.operation, self.kind, self.transport, self.modes = operation, kind, transport, modes
        # 5 is the least that perftest accepts
        iterations = 5 if "-a" in modes or "-q" in modes else 200
        if transport in ("XRC", "DC") and "-q" in modes:
            # The QPs share one receive queue, of as many WQEs as a QP has messages. With fewer WQEs
            # than QPs they starve; for --use-srq perftest says so ("SRQ depth should be greater").
            iterations = 20 if "-a" in modes else 100
        # the largest message of 64 QPs is 1 GiB of buffers, which perftest fills with random bytes
        few = "-e" in modes or ("-a" in modes and transport != "UD") or \
            (transport in ("XRC", "DC") and "-b" in modes)
        options = [f"-q {FEW_QPS if few else QPS}" if mode == "-q" else mode for mode in modes]
        self.name = " ".join([f"ib_{operation}_{kind}", "-c", transport, *options,
                              "-n", str(iterations)])

    def refusals(self):
        """Returns the reasons why perftest has no such case."""
        rules = (
            (ONE_SIZE, self.operation == "atomic" and "-a" in self.modes),
            (ONE_WAY, self.kind == "lat" and "-b" in self.modes),
            (NO_UD, self.transport == "UD" and self.operation != "send"),
            (NO_UC, self.transport == "UC" and self.operation in ("read", "atomic")),
            (ONE_QP, self.kind == "lat" and "-q" in self.modes),
            (NO_EVENTS, self.operation == "write" and "-e" in self.modes),
        )
        return [words for words, applies in rules if applies]

    def left_out(self):
        """Returns why the case need not end on a ConnectX, or None."""
        if self.operation == "send" and {"-q", "-e", "-b"} <= set(self.modes) and not self.refusals():
            return MAY_HANG
        return None

    def keeps_cq(self, on, command):
        """Runs the case. All messages must arrive, and either side may complain only about its
        event channel."""
        note = ""
        ends = on.both(*command)
        for process, text in ends:
            faults = set(FAULT.findall(text))
            if (process.returncode and not faults) or faults - ITS_FAULTS:
                raise hosts.Failure(f"{process.command}: exit status {process.returncode}\n{text}")
            note = KEEPS_CQ if faults else note
        # a latency test has its figures on the client only
        if not re.search(r"#bytes.*\n\s*\d+", ends[0][1]):
            raise hosts.Failure(f"{ends[0][0].command}: no figures\n{ends[0][1]}")
        return note

    def check(self, on):
        command = [*self.name.split(), *hosts.PERFTEST]
        expected = self.refusals()
        if not expected and self.transport == "DC" and "-e" in self.modes:
            return self.keeps_cq(on, command)
        if not expected:
            on.pair(*command)
            return ""
        process = on.start(*command, "-p", str(hosts.free_port()))
        text = process.communicate(timeout=hosts.PATIENCE)[0]
        if not process.returncode or not any(words in text for words in expected):
            raise hosts.Failure(f"is not refused with '{expected[0]}'\n{text}")
        return f"perftest: {next(words for words in expected if words in text)}"


class Addressed(Case):
    """The same, but the sides connect by their HCAs' addresses."""

    def __init__(self, *words):
        super().__init__(*words)
        self.name += " -R"

    def refusals(self):
        return super().refusals() + ([NO_CM[self.transport]] if self.transport in NO_CM else [])

    def check(self, on):
        if self.refusals():
            return super().check(on)
        command = [*self.name.split(), "-F"]
        text, _ = hosts.by_address(on, command, *command, hosts.SERVER_IP)
        if not re.search(r"#bytes.*\n\s*\d+", text):
            raise hosts.Failure(f"{self.name}: no figures\n{text}")
        return ""


class Paged(Case):
    """The same, with memory that is registered on demand."""

    def __init__(self, *words):
        super().__init__(*words)
        self.name += " --odp"

    def refusals(self):
        paging = [NO_PAGED_ATOMICS] if self.operation == "atomic" else []
        return super().refusals() + paging + ([NO_PAGING[self.transport]] if self.transport in NO_PAGING else [])


def cases():
    for operation, kind, transport in itertools.product(OPERATIONS, ("bw", "lat"), TRANSPORTS):
        for count in range(len(MODES) + 1):
            for modes in itertools.combinations(MODES, count):
                yield Case(operation, kind, transport, modes)
        yield Paged(operation, kind, transport, ())
        for modes in ((), *((mode,) for mode in MODES)):
            yield Addressed(operation, kind, transport, modes)


def try_case(case, on):
    if case.left_out():
        raise tries.Skip(case.left_out())
    try:
        return case.check(on)
    except (hosts.Failure, subprocess.TimeoutExpired) as err:
        # The client's words come first, followed by a great number of QPs' addresses.
        faults = "".join(f"{line}\n" for line in FAULT.findall(str(err)[:-LONGEST]))
        raise hosts.Failure(faults + str(err)[-LONGEST:]) from err


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=lambda p: pathlib.Path(p).resolve(), default=ROOT / "build")
    parser.add_argument("-k", metavar="TEXT", default="", help="Only cases with TEXT in their name.")
    args = parser.parse_args()
    hosts.remove_xrc_files()
    sandbox.enter(__file__, {"--build": args.build})
    counted = tries.Cases("perftest-matrix")
    for name in sandbox.lacking():
        counted.skipped("sandbox", sandbox.LACKING[name])
    on = hosts.Hosts(args.build)
    try:
        for case in cases():
            if args.k not in case.name:
                continue
            counted.run(case.name, lambda: try_case(case, on), again=lambda: on.end()[-LONGEST:])
    finally:
        on.end()
    return counted.end()


if __name__ == "__main__":
    sys.exit(main())
