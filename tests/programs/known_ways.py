# SPDX-License-Identifier: BSD-2-Clause
"""The ways to run the programs of tests/programs/known: on one host, on two hosts that meet by port
or by address, and under MPI.

Each way takes the wire (hosts.Hosts) and the commands, and returns the output of the last program.
If a program fails, it raises hosts.Failure.
"""
import json
import os
import pathlib
import random
import re
import shlex
import signal
import socket
import struct
import subprocess
import tempfile
import time

import hosts

ROOT = pathlib.Path(__file__).resolve().parents[2]
SERVER, CLIENT = "10.7.0.1", "10.7.0.2"
RANKS = 4
ISER_TARGET = "iqn.2001-04.example:disk"
LEAST_PACKETS = 50  # the least number between two ranks; there are hundreds
MAKEFILE = """check: program
\t./program | grep mlx5_0
program: program.c
\t$(CC) -o $@ $< -libverbs
"""
PROGRAM = """#include <infiniband/verbs.h>
#include <stdio.h>
int main(void)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_context *ctx = list && *list ? ibv_open_device(*list) : NULL;
    puts(ctx ? ibv_get_device_name(*list) : "no device");
    return !ctx;
}
"""
PYTEST = """import pyverbs.device
def test_port():
    assert pyverbs.device.Context(name="mlx5_0").query_port(1).state == 4
"""
MADE = {"Makefile": MAKEFILE, "program.c": PROGRAM, "test_port.py": PYTEST}


def fill(command, folder, **words):
    """Returns the words of a command."""
    return shlex.split(command.format(server=SERVER, client=CLIENT, folder=folder, **words))


def one(wire, commands, folder, case):
    for name, text in MADE.items():
        pathlib.Path(folder, name).write_text(text)
    return wire.run(*fill(commands[0], folder, case=case))


def until_interrupted(wire, commands, folder, case):
    """Runs a program that prints at once, and then waits."""
    process = wire.start("stdbuf", "-oL", *fill(commands[0], folder, case=case))
    text = process.stdout.readline()
    process.send_signal(signal.SIGINT)
    return text + process.communicate(timeout=hosts.PATIENCE)[0]


def by_port(wire, commands, folder, case):
    """The client meets its server on a TCP port of the machine."""
    port = hosts.free_port()
    server = wire.start(*fill(commands[0], folder, case=case, port=port))
    hosts.wait_listening(server, port)
    client = wire.start(*fill(commands[1], folder, case=case, port=port))
    text = wire.output(client)
    wire.output(server)
    return text


def by_port_unserved(wire, commands, folder, case):
    """Like by_port(), but the server goes on when its client has ended."""
    port = hosts.free_port()
    server = wire.start(*fill(commands[0], folder, case=case, port=port), options=["--ip", SERVER])
    hosts.wait_listening(server, port)
    try:
        return wire.run(*fill(commands[1], folder, case=case, port=port), options=["--ip", CLIENT])
    finally:
        wire.kill()


def by_address(wire, commands, folder, case, served=True):
    """The client reaches its server by the IP address of its HCA."""
    words = [fill(command, folder, case=case, port=hosts.free_port()) for command in commands]
    return hosts.by_address(wire, words[0], *words[1], served=served)[0]


def unserved(wire, commands, folder, case):
    return by_address(wire, commands, folder, case, served=False)


def by_group(wire, commands, folder, case):
    receiver = wire.start(*fill(commands[0], folder, case=case), options=["--ip", SERVER])
    while "receiving" not in (line := receiver.stdout.readline()) and "MULTICAST" not in line:
        if not line:
            raise hosts.Failure("the receiver does not receive")
    text = wire.run(*fill(commands[1], folder, case=case), options=["--ip", CLIENT])
    wire.output(receiver)
    return text


def copied(wire, commands, folder, case):
    sent, got = pathlib.Path(folder, "sent"), pathlib.Path(folder, "got")
    sent.write_bytes(bytes(range(251)) * 4000)
    text = unserved(wire, commands, folder, case)
    if sent.read_bytes() != got.read_bytes():
        raise hosts.Failure(f"what arrived is not what was sent\n{text}")
    return text


def fio(wire, commands, folder, case):
    """Runs fio. The reader is the server, whatever the verb. It uses threads, because a process of
    its own would survive a kill."""
    files = {"server": "[receiver]\nrw=read\n",
             "client": f"[sender]\nhostname={SERVER}\nverb={case}\nrw=write\n"}
    port = hosts.free_port()
    for name, text in files.items():
        pathlib.Path(folder, f"{name}.fio").write_text(
            f"[global]\nioengine=rdma\nport={port}\nthread\nbs=64k\nsize=10m\niodepth=16\n{text}")
    return by_address(wire, commands, folder, case)


def preloaded(wire, commands, folder, case):
    """Runs socket programs under librspreload.so: their data goes over queue pairs."""
    wrapper = pathlib.Path(folder, "rspreload")
    library = next(pathlib.Path("/usr/lib").glob("*/rsocket/librspreload.so"))
    wrapper.write_text(f'#!/bin/sh\nLD_PRELOAD={library}:$LD_PRELOAD HCASIM_CAPTURE=$0-$HCASIM_IP exec "$@"\n')
    wrapper.chmod(0o755)
    sent, got = pathlib.Path(folder, "sent"), pathlib.Path(folder, "got")
    sent.write_bytes(bytes(range(251)) * 4000)
    text = by_address(wire, commands, folder, case)
    seen = packets(pathlib.Path(f"{wrapper}-{CLIENT}"))
    if len(seen) != 2 or max(seen.values()) < LEAST_PACKETS:
        raise hosts.Failure(f"RC packets of {seen}\n{text}")
    if got.exists() and got.read_bytes() != sent.read_bytes():
        raise hosts.Failure("what arrived is not what was sent")
    return text


# -- QEMU --------------------------------------------------------------------------------------------------------


class Monitor:
    """A QMP connection over the socket that QEMU made."""

    def __init__(self, path, process):
        self.stream = socket.socket(socket.AF_UNIX)
        self.stream.settimeout(hosts.PATIENCE)
        end = time.monotonic() + hosts.PATIENCE
        while self.stream.connect_ex(str(path)):
            if process.poll() is not None or time.monotonic() > end:
                raise hosts.Failure(f"no monitor\n{hosts.said_until_now(process)}")
            time.sleep(0.02)
        self.lines = self.stream.makefile("r")
        self.run("qmp_capabilities")

    def run(self, command, **arguments):
        """Returns the result of the command. Skips events and the greeting."""
        self.stream.sendall(json.dumps({"execute": command, "arguments": arguments}).encode())
        for line in self.lines:
            reply = json.loads(line)
            if "error" in reply:
                raise hosts.Failure(f"{command}: {reply['error']['desc']}")
            if "return" in reply:
                return reply["return"]
        raise hosts.Failure(f"{command}: QEMU has gone")


def migrated(wire, commands, folder, case):
    """Migrates the memory of a guest that does not run from one QEMU to another. Returns the status
    that the source reports."""
    uri = f"rdma:{SERVER}:{hosts.free_port()}"
    memory, sent, got = 0x1000000, pathlib.Path(folder, "sent"), pathlib.Path(folder, "got")
    sent.write_bytes(random.Random(1).randbytes(16 << 20))
    ends = [(wire.start(*fill(command, folder, case=case), options=["--ip", ip]), ip)
            for command, ip in zip(commands, (SERVER, CLIENT))]
    to, source = (Monitor(pathlib.Path(folder, name), process) for name, (process, _) in zip(("to", "from"), ends))
    to.run("migrate-incoming", uri=uri)
    source.run("migrate", uri=uri)
    end = time.monotonic() + hosts.PATIENCE
    while (state := source.run("query-migrate"))["status"] in ("setup", "active", "device", "completed"):
        if state["status"] == "completed" and to.run("query-migrate").get("status") == "completed":
            break
        if time.monotonic() > end:
            break
        time.sleep(0.05)
    to.run("pmemsave", val=memory, size=sent.stat().st_size, filename=str(got))
    if got.read_bytes() != sent.read_bytes():
        raise hosts.Failure(f"the guest's memory is another: {state}")
    for monitor, (process, _) in zip((to, source), ends):
        monitor.run("quit")
        wire.output(process)
    return f"{state['status']}, {state['ram']['transferred']} bytes"


# -- iSER --------------------------------------------------------------------------------------------------------


def iser(wire, commands, folder, case):
    """Exports a disk by tgtd to an initiator, by its address and its name, because this tgtd
    requires both. The disk's file must contain what a client wrote."""
    disk = pathlib.Path(folder, "disk")
    disk.write_bytes(bytes(8 << 20))
    environment = {**os.environ, "TGT_IPC_SOCKET": str(pathlib.Path(folder, "tgtd"))}
    server = wire.start("env", f"TGT_IPC_SOCKET={folder}/tgtd", *fill(commands[0], folder, case=case), options=["--ip", SERVER])
    settings = ((f"--mode target --op new -T {ISER_TARGET}", f"--mode logicalunit --op new --lun 1 -b {disk}",
                 "--mode target --op bind -I ALL", "--mode target --op bind -Q iqn.2008-11.org.linux-kvm"))
    end = time.monotonic() + hosts.PATIENCE
    for setting in settings:
        command = ["tgtadm", "--lld", "iser", "--tid", "1", *setting.split()]
        while (done := subprocess.run(command, env=environment, capture_output=True, text=True, check=False)).returncode:
            if server.poll() is not None or time.monotonic() > end or "connect" not in done.stderr:
                raise hosts.Failure(f"{setting}: {done.stderr}\n{hosts.said_until_now(server)}")
            time.sleep(0.1)  # it is not there yet
    text = wire.run(*fill(commands[1], folder, case=case, port=3260), options=["--ip", CLIENT])
    wire.kill()
    if disk.read_bytes() != bytes(4096) + b"\x5a" * 65536 + bytes(4096) + b"\xa5" * 65536 + bytes((8 << 20) - 139264):
        raise hosts.Failure(f"the disk has other bytes than were written\n{text}")
    return text


# -- MPI ---------------------------------------------------------------------------------------------------------


def packets(capture):
    """Counts the RC packets of each source in a capture."""
    data, at, seen = capture.read_bytes(), 0, {}
    while at + 32 <= len(data):
        kind, length = struct.unpack_from("<II", data, at)
        frame = data[at + 28:at + length]
        if kind == 6 and frame[12:14] == b"\x08\x00" and frame[36:38] == struct.pack(">H", 4791) and not frame[42] >> 5:
            seen[frame[26:30]] = seen.get(frame[26:30], 0) + 1
        at += length
    return seen


def mpi(wire, commands, folder, case):
    """Runs an MPI program. Each rank's HCA must have seen packets of each rank: the data that the
    program compared went over the wire."""
    compiler, command = commands
    program = pathlib.Path(folder, "collective")
    source = str(ROOT / "tests/programs/collective.c")
    made = subprocess.run([*fill(compiler, folder, case=case), "-o", str(program), source], capture_output=True,
                          text=True, check=False)
    if made.returncode:
        raise hosts.Failure(made.stderr)
    rank = pathlib.Path(folder, "rank")
    rank.write_text('#!/bin/sh\nHCASIM_CAPTURE=$(dirname "$0")/${OMPI_COMM_WORLD_RANK:-$PMI_RANK}.pcapng exec "$@"\n')
    rank.chmod(0o755)
    text = wire.run(*fill(command, folder, case=case))
    captures = [pathlib.Path(folder, f"{number}.pcapng") for number in range(RANKS)]
    for capture in captures:
        seen = packets(capture)
        if len(seen) != RANKS or min(seen.values()) < LEAST_PACKETS:
            raise hosts.Failure(f"{capture.name} has RC packets of {seen}\n{text}")
        capture.unlink()
    return text


def failing(way):
    """Returns a way whose program must fail, and returns its output."""
    def run(wire, commands, folder, case, **more):
        started = time.monotonic()
        try:
            way(wire, commands, folder, case, **more)
        except (hosts.Failure, subprocess.TimeoutExpired) as err:
            return f"{err}\n{wire.kill()}"
        raise hosts.Failure(f"it ended well in {time.monotonic() - started:.1f} s")
    return run
