#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests UCX with no VM: its own benchmark, and programs that check every byte.

Two processes on a wire: ucx_perftest proves that each operation completes, and
tests/programs/ucp_data compares the data that arrives. One process whose thread has both sides:
tests/programs/ucp_rndv. By default it uses Debian's UCX, whose transports are built on verbs (rc_v,
ud_v); with --ucx PREFIX a UCX that was built with the accelerated transports (docs/howto/ucx.md):

    tests/verbs/ucx.py --ucx /opt/ucx rc_x ud_x dc_x rc_x+tm dc_x+tm

+tm is hardware tag matching; with +odp all memory is registered on demand. Timing is no condition. The last line is "N passed, N failed, N
skipped". Exit status 0: nothing failed; 77: what it needs is not installed (ucx-utils, libucx-dev).
"""
import argparse
import contextlib
import os
import pathlib
import re
import struct
import tempfile
import sys

import hosts
import tries

ROOT = pathlib.Path(__file__).resolve().parents[2]
ROUNDS = int(os.environ.get("HCASIM_UCX_ROUNDS", "3"))
LESS = int(os.environ.get("HCASIM_UCX_LESS", "1"))
# If only RMA is requested, UCX 1.21 and 1.22 do not progress the transport before the first key of
# the other side's memory has come, and wait for it in ucp_worker_flush_nbx(). Therefore adaptive
# progress is off.
ENVIRONMENT = {"UCX_ADAPTIVE_PROGRESS": "n", "UCX_NET_DEVICES": "mlx5_0:1",
               "UCX_IB_ROCE_REACHABILITY_MODE": "all", "UCX_WARN_UNUSED_ENV_VARS": "n"}
RESULT = re.compile(r"^\s*\d+(\s+[\d.]+){7}\s*$", re.M)  # iterations, and how long they took
# A tagged message of 64 KiB and more is fetched by the other side (rendezvous).
TESTS = ("tag_lat -s 8 -n 500", "tag_bw -s 64 -n 2000", "tag_bw -s 4096 -n 500",
         "tag_bw -s 1000000 -n 20", "ucp_put_lat -s 8 -n 500", "ucp_put_bw -s 65536 -n 200",
         "ucp_get -s 65536 -n 200", "stream_bw -s 4096 -n 500", "ucp_am_bw -s 4096 -n 500",
         "ucp_add -s 8 -n 500", "ucp_fadd -s 4 -n 500", "ucp_fadd -s 8 -n 500",
         "ucp_swap -s 8 -n 500", "ucp_cswap -s 8 -n 500")


def environment(transport):
    """Returns the variables that make UCX use only this transport, except within a process."""
    name, _, matching = transport.partition("+")
    chosen = {**ENVIRONMENT, "UCX_TLS": f"{name},self"}
    if matching == "tm":
        chosen |= {"UCX_RC_TM_ENABLE": "y", "UCX_DC_TM_ENABLE": "y"}
    if matching == "odp":
        chosen |= {"UCX_IB_REG_METHODS": "odp,direct"}
    return chosen


def pair(wire, program, *arguments):
    """Runs a server and its client, which must succeed. Returns the output of both."""
    port = hosts.free_port()
    server = wire.start(program, "-p", str(port), *arguments)
    hosts.wait_listening(server, port)
    client = wire.start(program, "-p", str(port), *arguments, "localhost")
    return wire.output(client), wire.output(server)


def benchmark(wire, perftest, test):
    """Runs a benchmark. An accelerated transport polls its memory without a call: if all processors
    are busy, its HCA, which is a thread beside it, has to wait for its turn. HCASIM_UCX_LESS
    divides the iterations."""
    name, _, size, _, count = test.split()
    client, _ = pair(wire, perftest, "-t", name, "-s", size, "-n", str(int(count) // LESS), "-w", "5", "-f")
    if not RESULT.search(client):
        raise hosts.Failure(f"{test} has no result:\n{client}")


def data(wire, program, *options):
    for said in pair(wire, program, "-n", str(ROUNDS), *options):
        if not said.rstrip().endswith(", 0 wrong"):
            raise hosts.Failure(said)


def rendezvous(wire, program):
    """Messages of all sizes and alignments, with both sides in one thread."""
    said = wire.output(wire.start(program))
    if not said.rstrip().endswith(", 0 wrong"):
        raise hosts.Failure(said)


def rendezvous_by_the_device(wire, program):
    with by_the_device():
        rendezvous(wire, program)


def frames(capture):
    """Yields the frames of a pcapng file."""
    data, at = capture.read_bytes(), 0
    while at + 32 <= len(data):
        kind, length, captured = *struct.unpack_from("<II", data, at), struct.unpack_from("<I", data, at + 20)[0]
        if kind == 6:  # Enhanced Packet Block
            yield data[at + 28:at + 28 + captured]
        at += length


def fins(capture):
    """Counts the SENDs of one packet that begin with FIN (a tag matching header of operation 2):
    only the device sends that, when it has fetched the data of a rendezvous."""
    found = 0
    for frame in frames(capture):
        if frame[12:14] == b"\x08\x00" and frame[36:38] == struct.pack(">H", 4791):
            opcode = frame[42]
            payload = frame[54 + (8 if opcode >> 5 == 2 else 0):]  # DC packets have a DCETH
            found += opcode & 0x1f == 4 and len(payload) == 32 + 4 and payload[0] == 2
    return found


@contextlib.contextmanager
def by_the_device():
    """Returns variables that make UCX leave rendezvous to the device, also of small messages. UCX's
    newer protocols would rather READ by themselves."""
    chosen = {"UCX_PROTO_ENABLE": "n", "UCX_TM_THRESH": "1"}
    os.environ.update(chosen)
    try:
        yield
    finally:
        for name in chosen:
            del os.environ[name]


def data_by_the_device(wire, program):
    with by_the_device():
        data(wire, program, "-m")  # the older protocols have no puts


def fetched(wire, perftest):
    """The device fetches what the receiver has posted before the request comes: nearly every
    message of a ping-pong."""
    count = 200 // LESS
    test = ["-t", "tag_lat", "-s", "100000", "-n", str(count), "-w", "5", "-f"]
    port = hosts.free_port()
    with by_the_device(), tempfile.TemporaryDirectory() as folder:
        capture = pathlib.Path(folder) / "client.pcap"
        server = wire.start(perftest, "-p", str(port), *test)
        hosts.wait_listening(server, port)
        client = wire.start(perftest, "-p", str(port), *test, "localhost", options=["--capture", str(capture)])
        wire.output(client)
        wire.output(server)
        found = fins(capture)
    if found < count:  # of 2 * count messages
        raise hosts.Failure(f"{found} of {2 * count} messages were fetched by the device")


def check(cases, transport, build, prefix, only):
    perftest = f"{prefix}/bin/ucx_perftest" if prefix else "ucx_perftest"
    program, both_sides = (str(build / "tests/programs" / name) for name in ("ucp_data", "ucp_rndv"))
    os.environ.update(environment(transport))
    statements = [("data", lambda wire: data(wire, program)),
                  ("rendezvous at any alignment", lambda wire: rendezvous(wire, both_sides))]
    statements += [(test, lambda wire, test=test: benchmark(wire, perftest, test)) for test in TESTS]
    if transport.endswith("+tm"):
        statements += [("data, rendezvous by the device", lambda wire: data_by_the_device(wire, program)),
                       ("rendezvous at any alignment, by the device",
                        lambda wire: rendezvous_by_the_device(wire, both_sides)),
                       ("rendezvous by the device", lambda wire: fetched(wire, perftest))]
    for name, statement in statements:
        if only and only not in name:
            continue
        wire = hosts.Hosts(build)
        try:
            cases.run(f"{transport} {name}", lambda: statement(wire), again=wire.end)
        finally:
            wire.end()


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=lambda p: pathlib.Path(p).resolve(), default=ROOT / "build")
    parser.add_argument("--ucx", metavar="PREFIX", help="The folder where another UCX is installed.")
    parser.add_argument("--only", metavar="WORD", help="Only tests with WORD in their command.")
    parser.add_argument("transports", nargs="*", default=["rc_v", "ud_v", "rc_v+odp"])
    args = parser.parse_args()
    cases = tries.Cases("ucx")
    if args.ucx:
        os.environ["LD_LIBRARY_PATH"] = f"{args.ucx}/lib"
    for transport in args.transports:
        check(cases, transport, args.build, args.ucx, args.only)
    return cases.end()


if __name__ == "__main__":
    sys.exit(main())
