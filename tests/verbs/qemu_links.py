#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""QEMU at the other end of sockets: two processes as hosts, joined by the netdevs of a QEMU without a guest.

The QEMU has two netdevs of the kinds that a row names, and a hub that passes frames from one to the other. It has no
machine and no devices, so its own code for `-netdev stream` and `-netdev dgram` is all that runs. The hosts run as an
ordinary user in a container (sandbox.py). Exit status 0: none fails; 77: all are skipped.
"""
import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts/lib"))

from host_processes import PATIENCE, Failure, Hosts, free_port, wait_listening  # noqa: E402
import sandbox  # noqa: E402
import tries  # noqa: E402

NO_NICS = "warning: hub 1 with no nics"
QEMU = os.environ.get("QEMU", "qemu-system-x86_64")
ON_DEVICE = ["-d", "mlx5_0", "-g", "1"]
PERFTEST = ["-F", "-d", "mlx5_0", "-x", "1"]


class Place:
    """Addresses for the two ends of one socket: paths, or ports of this machine."""

    def __init__(self, folder, name, is_unix):
        self.ours, self.theirs = ((f"{folder}/{name}.host", f"{folder}/{name}.qemu") if is_unix
                                  else (free_port(), free_port()))
        self.is_unix = is_unix

    def of_qemu(self, key, end):
        return f"{key}.type=unix,{key}.path={end}" if self.is_unix else f"{key}.type=inet,{key}.host=127.0.0.1,{key}.port={end}"

    def of_host(self, end):
        return end if self.is_unix else f"127.0.0.1:{end}"


# Each returns the options of QEMU's netdev and the wire of the process.
def qemu_listens(place):
    return f"stream,server=on,{place.of_qemu('addr', place.theirs)}", f"connect:{place.of_host(place.theirs)}"


def qemu_connects(place):
    return f"stream,server=off,{place.of_qemu('addr', place.ours)}", f"listen:{place.of_host(place.ours)}"


def datagrams(place):
    netdev = f"dgram,{place.of_qemu('local', place.theirs)},{place.of_qemu('remote', place.ours)}"
    return netdev, (f"unix:{place.ours}:{place.theirs}" if place.is_unix else f"udp:{place.ours}:127.0.0.1:{place.theirs}")


class Qemu:
    """A QEMU that is a hub of netdevs. Its other ends are told to connect when it starts: QEMU before 8.0 connects once,
    so a process must listen by then."""

    def __init__(self, *netdevs):
        command = [QEMU, "-nodefaults", "-no-user-config", "-display", "none", "-machine", "none", "-qmp", "stdio"]
        for i, netdev in enumerate(netdevs):
            kind, rest = netdev.split(",", 1)
            command += ["-netdev", f"{kind},id=n{i},{rest}", "-netdev", f"hubport,id=h{i},hubid=1,netdev=n{i}"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.process.stdin.write(json.dumps({"execute": "qmp_capabilities"}) + "\n")
        self.process.stdin.flush()
        if "QMP" not in self.process.stdout.readline() or "return" not in self.process.stdout.readline():
            raise Failure(f"{' '.join(command)}\n{self.end()}")

    def end(self):
        self.process.kill()
        return self.process.communicate()[1]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()


def start(hosts, number, wire, *command):
    return hosts.start(*command, options=["--wire", wire, "--host", str(number)])




def through_qemu(hosts, kinds, commands):
    """The first kind joins the server. A server that listens for QEMU starts before QEMU, one after the other."""
    with tempfile.TemporaryDirectory(prefix="hcasim-qemu.") as folder:
        (near, ours), (far, theirs) = (make(Place(folder, name, is_unix)) for name, (make, is_unix) in zip("ab", kinds))
        early = ours.startswith("listen:")
        qemu = None if early else Qemu(near, far)
        try:
            for command in commands:
                port = free_port()
                server = start(hosts, 1, ours, *command, "-p", str(port))
                wait_listening(server, port)
                qemu = qemu or Qemu(near, far)
                client = start(hosts, 2, theirs, *command, "-p", str(port), "localhost")
                for side in client, server:
                    hosts.output(side)
        finally:
            said = qemu.end() if qemu else ""
        if strange := [line for line in said.splitlines() if NO_NICS not in line]:
            raise Failure("\n".join(strange))


PINGPONGS = [[f"ibv_{transport}_pingpong", *ON_DEVICE, "-c"] for transport in ("rc", "uc", "ud")]
BANDWIDTH = [["ib_write_bw", *PERFTEST, "-n", "100"], ["ib_read_lat", *PERFTEST, "-n", "100"]]


def streams_that_qemu_awaits(hosts):
    """-netdev stream,server=on: a Unix socket to one process, TCP to the other."""
    through_qemu(hosts, ((qemu_listens, True), (qemu_listens, False)), PINGPONGS)


def streams_that_qemu_connects_unix(hosts):
    """-netdev stream,server=off: QEMU connects to a process on a Unix socket."""
    through_qemu(hosts, ((qemu_connects, True), (qemu_listens, False)), PINGPONGS[:1])


def streams_that_qemu_connects_tcp(hosts):
    """-netdev stream,server=off: QEMU connects to a process by TCP."""
    through_qemu(hosts, ((qemu_connects, False), (qemu_listens, True)), PINGPONGS[:1])


def datagram_netdevs(hosts):
    """-netdev dgram: Unix sockets to one process, UDP to the other; perftest, too, since the link is always up."""
    through_qemu(hosts, ((datagrams, True), (datagrams, False)), PINGPONGS + BANDWIDTH)


def datagrams_to_stream(hosts):
    """-netdev dgram at one end, -netdev stream at the other."""
    through_qemu(hosts, ((datagrams, True), (qemu_listens, True)), PINGPONGS[:2])


def qemu_that_comes_anew(hosts):
    """A process outlives a QEMU: its stream is down until the next QEMU listens, and a message that was sent waits."""
    with tempfile.TemporaryDirectory(prefix="hcasim-qemu.") as folder:
        (near, ours), (far, theirs) = (qemu_listens(Place(folder, name, True)) for name in "ab")
        port = free_port()
        command = [*PINGPONGS[0], "-p", str(port)]
        with Qemu(near, far):
            server = start(hosts, 1, ours, *command)
            wait_listening(server, port)
        client = start(hosts, 2, theirs, *command, "localhost")
        time.sleep(0.3)  # the client's first message finds no QEMU
        with Qemu(near, far) as qemu:
            for side in client, server:
                hosts.output(side)
            if qemu.process.poll() is not None:
                raise Failure(f"QEMU has ended\n{qemu.end()}")


STATEMENTS = (streams_that_qemu_awaits, streams_that_qemu_connects_unix, streams_that_qemu_connects_tcp, datagram_netdevs,
              datagrams_to_stream, qemu_that_comes_anew)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=lambda p: pathlib.Path(p).resolve(), default=ROOT / "build")
    parser.add_argument("names", nargs="*", help="The statements to check (default: all).")
    args = parser.parse_args()
    sandbox.enter(__file__, {"--build": args.build})
    cases = tries.Cases("qemu-links")
    hosts = Hosts(args.build)
    try:
        for statement in STATEMENTS:
            if args.names and statement.__name__ not in args.names:
                continue
            if not shutil.which(QEMU):
                cases.skipped(statement.__doc__, f"no {QEMU}", missing=True)
                continue
            cases.run(statement.__name__, lambda: statement(hosts), title=statement.__doc__.splitlines()[0], again=hosts.end)
        return cases.end()
    finally:
        hosts.end()


if __name__ == "__main__":
    sys.exit(main())
