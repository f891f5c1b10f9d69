#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Processes as hosts of `hcasim switch`: programs that end, a switch that ends, other wires, a QEMU, ports that flap.

The hosts run as an ordinary user in a container (sandbox.py). Each switch is this run's own, and its statistics must add
up when it ends. Timing is no condition: only a program that never ends fails. HCASIM_SWITCH_RANKS=128 is a mesh of as
many hosts (the default is 12), HCASIM_SWITCH_FLAPS the number of times that a port goes down meanwhile. Exit status 0:
none fails; 77: all are skipped.
"""
import argparse
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts/lib"))

from host_processes import HCASIM, PATIENCE, Failure, Hosts, free_port, remove_xrc_files, wait_listening  # noqa: E402
import mesh  # noqa: E402
import qemu_links  # noqa: E402
import sandbox  # noqa: E402
import tries  # noqa: E402

ON_DEVICE = ["-d", "mlx5_0", "-g", "1"]
PERFTEST = ["-F", "-d", "mlx5_0", "-x", "1"]
RANKS = int(os.environ.get("HCASIM_SWITCH_RANKS", "12"))
FLAPS = int(os.environ.get("HCASIM_SWITCH_FLAPS", "20"))
ROUNDS = int(os.environ.get("HCASIM_SWITCH_ROUNDS", "50"))
MEMORY_KB = 200_000  # resident, of a switch with many hosts


class Switch:
    """A switch of its own, with a socket at which hosts connect and one for commands."""

    def __init__(self, build, folder, *options, name="switch"):
        self.at, self.ctl = f"{folder}/{name}", f"{folder}/{name}.ctl"
        self.build = build
        self.command = [HCASIM, "switch", "--build", build, "--listen", self.at, "--control", self.ctl, *options]

    def __enter__(self):
        self.process = subprocess.Popen(self.command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if "listening at" not in (line := self.process.stdout.readline()):
            raise Failure(f"{self.command}\n{line}{self.process.communicate()[1]}")
        return self

    def __exit__(self, kind, *_):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        self.said, self.warned = self.process.communicate(timeout=PATIENCE)
        if kind is None and self.process.returncode not in (0, -signal.SIGKILL):
            raise Failure(f"the switch: exit status {self.process.returncode}\n{self.said}{self.warned}")

    @property
    def wire(self):
        return f"connect:{self.at}"

    def ask(self, command, *arguments):
        result = subprocess.run([HCASIM, "ctl", "--build", self.build, "--json", self.ctl, command, *arguments],
                                capture_output=True, text=True, timeout=PATIENCE)
        if result.returncode:
            raise Failure(f"{command}: {result.stdout}{result.stderr}")
        return json.loads(result.stdout)

    def resident_kb(self):
        return int(re.search(r"VmHWM:\s+(\d+)", pathlib.Path(f"/proc/{self.process.pid}/status").read_text())[1])


def start(hosts, number, wire, *command):
    return hosts.start(*command, options=["--wire", wire, "--host", str(number)])


def pair(hosts, wires, *command):
    """A server on the first wire and its client on the second; both must succeed."""
    port = free_port()
    server = start(hosts, 1, wires[0], *command, "-p", str(port))
    wait_listening(server, port)
    client = start(hosts, 2, wires[1], *command, "-p", str(port), "localhost")
    for side in client, server:
        hosts.output(side)


COMMANDS = ("ibv_rc_pingpong -c", "ibv_uc_pingpong -n 200", "ibv_ud_pingpong -c -n 200", "ib_write_bw -n 200", "ib_read_lat -n 100",
            "ib_send_bw -c UD -n 5", "ib_atomic_bw -n 100")


def pairs(hosts, wires, commands=COMMANDS):
    for command in commands:
        program, *options = command.split()
        pair(hosts, wires, program, *(PERFTEST if program.startswith("ib_") else ON_DEVICE), *options)


def programs_through_a_switch(hosts):
    """Pingpongs and perftest pass through a switch, with and without a rate, marks and pauses."""
    with tempfile.TemporaryDirectory() as folder:
        with Switch(hosts.build, folder) as switch:
            pairs(hosts, [switch.wire] * 2)
            total = switch.ask("query-switch")["total"]
            if total["full"] or total["flooded"] > 100:
                raise Failure(f"frames were dropped, or flooded: {total}")
        with Switch(hosts.build, folder, "--rate", "2G", "--latency", "20us", "--ecn", "50K:200K:20", "--pfc", "100K:50K") as switch:
            pairs(hosts, [switch.wire] * 2, ("ibv_rc_pingpong -c", "ib_write_bw -n 200"))
        with Switch(hosts.build, folder, "--listen", f"127.0.0.1:{(port := free_port())}") as switch:
            pairs(hosts, [switch.wire, f"connect:127.0.0.1:{port}"], COMMANDS[:1])


def a_wire_of_shared_memory(hosts):
    """Hosts of a wire in shared memory and hosts on a socket are in one segment."""
    with tempfile.TemporaryDirectory() as folder:
        wire = f"{hosts.wire}-switch"
        with Switch(hosts.build, folder, "--port", f"shm:{wire}") as switch:
            for wires in (switch.wire, f"shm:{wire}"), (f"shm:{wire}", switch.wire):
                pairs(hosts, wires, ("ibv_rc_pingpong -c", "ibv_ud_pingpong -c -n 200", "ib_write_bw -n 200"))


def a_stopped_host_of_many(hosts):
    """A host of a wire in shared memory that is stopped under traffic does not hold up the other hosts of that wire."""
    with tempfile.TemporaryDirectory() as folder:
        wire = f"{hosts.wire}-switch"
        with Switch(hosts.build, folder, "--port", f"shm:{wire}") as switch:
            server, _ = endless(hosts, (f"shm:{wire}", switch.wire))
            server.send_signal(signal.SIGSTOP)
            time.sleep(0.2)
            port = free_port()
            command = ["ibv_rc_pingpong", *ON_DEVICE, "-p", str(port)]
            other = start(hosts, 3, f"shm:{wire}", *command)
            wait_listening(other, port)
            hosts.output(start(hosts, 4, switch.wire, *command, "localhost"))
            hosts.output(other)
            server.send_signal(signal.SIGCONT)
            hosts.kill()


def two_switches(hosts):
    """A switch is a port of another one, by a stream and by UDP."""
    with tempfile.TemporaryDirectory() as folder:
        near, far = free_port(), free_port()
        for port in f"connect:{folder}/a", f"udp:{near}:127.0.0.1:{far}":
            other = ["--port", f"udp:{far}:127.0.0.1:{near}"] if port.startswith("udp") else []
            with Switch(hosts.build, folder, *other, name="a") as a, Switch(hosts.build, folder, "--port", port, name="b") as b:
                pairs(hosts, (a.wire, b.wire), ("ibv_rc_pingpong -c", "ib_write_bw -n 50"))


def a_qemu_is_a_port(hosts):
    """QEMU's -netdev stream connects to a switch."""
    if not shutil.which(qemu_links.QEMU):
        raise tries.Missing("no QEMU")
    with tempfile.TemporaryDirectory() as folder, Switch(hosts.build, folder) as switch:
        with qemu_links.Qemu(f"stream,server=off,addr.type=unix,addr.path={switch.at}",
                             f"stream,server=on,addr.type=unix,addr.path={folder}/far"):
            pairs(hosts, (switch.wire, f"connect:{folder}/far"), ("ibv_rc_pingpong -c", "ib_write_bw -n 50"))


def endless(hosts, wires):
    """WRITEs without an end, under way. Returns server and client."""
    port = free_port()
    command = ["stdbuf", "-oL", "ib_write_bw", *PERFTEST, "--run_infinitely", "-p", str(port)]
    server = start(hosts, 1, wires[0], *command)
    wait_listening(server, port)
    client = start(hosts, 2, wires[1], *command, "localhost")
    while "remote address" not in (line := client.stdout.readline()):
        if not line:
            raise Failure("the client ended")
    time.sleep(0.5)
    return server, client


def expect_retry_error(client, of):
    text = client.communicate(timeout=PATIENCE)[0]
    if "status 12" not in text:
        raise Failure(f"the client {of} says\n{text}")


def a_killed_end(hosts):
    """A killed host is like a pulled cable: its peer gets RETRY_EXC_ERR, and its port is free again."""
    with tempfile.TemporaryDirectory() as folder, Switch(hosts.build, folder) as switch:
        server, client = endless(hosts, [switch.wire] * 2)
        server.send_signal(signal.SIGKILL)
        expect_retry_error(client, "of a killed server")
        pairs(hosts, [switch.wire] * 2, COMMANDS[:1])
        if ports := switch.ask("query-ports"):
            raise Failure(f"ports are left: {ports}")


def a_killed_switch(hosts):
    """A killed switch ends in RETRY_EXC_ERR; another one at the same path serves the next hosts, and those that wait."""
    with tempfile.TemporaryDirectory() as folder:
        with Switch(hosts.build, folder) as switch:
            _, client = endless(hosts, [switch.wire] * 2)
            switch.process.send_signal(signal.SIGKILL)
            switch.process.wait()
            expect_retry_error(client, "of a killed switch")
            hosts.kill()
            port = free_port()
            server = start(hosts, 1, switch.wire, "ibv_rc_pingpong", *ON_DEVICE, "-p", str(port))  # no switch is there
            wait_listening(server, port)
        with Switch(hosts.build, folder) as switch:
            hosts.output(start(hosts, 2, switch.wire, "ibv_rc_pingpong", *ON_DEVICE, "-p", str(port), "localhost"))
            hosts.output(server)


def a_restarted_switch(hosts):
    """Traffic survives a switch that is replaced in time: the ends connect again, and RC repeats what was lost."""
    with tempfile.TemporaryDirectory() as folder:
        with Switch(hosts.build, folder) as switch:
            port = free_port()
            command = ["ib_write_bw", *PERFTEST, "-D", "4", "-u", "20", "-p", str(port)]
            server = start(hosts, 1, switch.wire, *command)
            wait_listening(server, port)
            client = start(hosts, 2, switch.wire, *command, "localhost")
            time.sleep(1.5)
        with Switch(hosts.build, folder) as switch:
            hosts.output(client)
            hosts.output(server)


def no_more_ports(hosts):
    """An end beyond the limit is refused, with a line that says so; it is a port when another one has gone."""
    with tempfile.TemporaryDirectory() as folder:
        with Switch(hosts.build, folder, "--ports", "2") as switch:
            waiting = [start(hosts, n, switch.wire, "ibv_asyncwatch", "-d", "mlx5_0") for n in (1, 2)]
            for program in waiting:
                program.stdout.readline()
            late = start(hosts, 3, switch.wire, "ibv_asyncwatch", "-d", "mlx5_0")
            late.stdout.readline()
            time.sleep(0.5)
            if len(switch.ask("query-ports")) != 2:
                raise Failure("the third end is a port")
            hosts_of = {port["about"] for port in switch.ask("query-ports")}
            waiting[0].kill()
            end = time.monotonic() + PATIENCE
            while {port["about"] for port in switch.ask("query-ports")} == hosts_of or len(switch.ask("query-ports")) != 2:
                if time.monotonic() > end:
                    raise Failure("the third end is no port after the first has gone")
                time.sleep(0.1)
            hosts.kill()
        if "all 2 ports are used (--ports)" not in switch.warned:
            raise Failure(f"the switch does not say that it refused an end: {switch.warned}")


def settings_at_run_time(hosts):
    """A port that goes down ends the traffic of its host, and the traffic goes on when it is up in time."""
    with tempfile.TemporaryDirectory() as folder, Switch(hosts.build, folder) as switch:
        _, client = endless(hosts, [switch.wire] * 2)
        numbers = [port["port"] for port in switch.ask("query-ports")]

        def sent():
            return switch.ask("query-switch")["total"]["sent"]

        for setting in ("link", "down", "up"), ("island", "1", "0"), ("vlan", "10", "all"):
            switch.ask("port-set", f"port={numbers[0]}", f"key={setting[0]}", f"value={setting[1]}")
            time.sleep(0.1)
            before = sent()
            time.sleep(0.2)
            if sent() - before > 50:  # the other host floods and repeats a little
                raise Failure(f"traffic goes on at a port with {setting}")
            switch.ask("port-set", f"port={numbers[0]}", f"key={setting[0]}", f"value={setting[2]}")
            end = time.monotonic() + PATIENCE
            while sent() - before < 500:
                if client.poll() is not None or time.monotonic() > end:
                    raise Failure(f"no traffic after {setting}\n{client.communicate()[0]}")
                time.sleep(0.05)
        hosts.kill()


class MeshWire(mesh.Wire):
    """mesh.py's processes, as hosts of a switch."""

    def __init__(self, build, switch):
        super().__init__(build, "switch")
        self.switch = switch

    def start(self, program, *arguments):
        # Each new host asks all others for their addresses, by floods: some time lies between hosts, so that their answers
        # come within the 3 s in which a program waits for them, on a busy machine, too.
        time.sleep(RANKS / 500)
        process = subprocess.Popen(
            [HCASIM, "run", "--build", self.build, "--wire", self.switch.wire, "--host", str(len(self.started) + 1), "--",
             self.build / "tests/programs" / program, *map(str, arguments)],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        process.command = program
        self.started.append(process)
        return process


def flap(switch, chance, flaps):
    """Takes ports down for 10 to 50 ms, one after the other."""
    numbers = [port["port"] for port in switch.ask("query-ports")]
    for _ in range(flaps):
        number = chance.choice(numbers)
        switch.ask("port-set", f"port={number}", "key=link", "value=down")
        time.sleep(chance.uniform(0.01, 0.05))
        switch.ask("port-set", f"port={number}", "key=link", "value=up")


def a_mesh_with_ports_that_flap(hosts):
    """Many hosts exchange messages over RC, each with each, while ports go down and up: no byte differs, nobody is lost."""
    if not (hosts.build / "tests/programs/mesh").exists():
        raise tries.Missing("mesh is not built")
    with tempfile.TemporaryDirectory() as folder, Switch(hosts.build, folder, "--ecn", "200K:800K:10") as switch:
        files = pathlib.Path(folder) / "mesh"
        files.mkdir()
        with MeshWire(hosts.build, switch) as wire:
            begin = time.monotonic()
            ranks = mesh.Mesh(wire, files, RANKS, ROUNDS)
            ranks.wait_all("ready")
            connected = time.monotonic()
            ranks.say("go")
            flap(switch, random.Random(1), FLAPS)
            rounds = ranks.end()
            whole = switch.ask("query-switch")
            kb = switch.resident_kb()
        total = whole["total"]
        print(f"     {RANKS} hosts, {RANKS * (RANKS - 1)} QPs, {rounds} rounds, {FLAPS} flaps: connected in {connected - begin:.1f} s, "
              f"done in {time.monotonic() - begin:.1f} s; {total['rx_frames']} frames, {total['down'] + total['rx_down']} lost by "
              f"flaps, {total['full'] + total['no_buffer']} dropped, {total['marked']} marked, {total['flooded']} flooded; the "
              f"switch had at most {kb} kB resident", flush=True)
        if not whole["adds-up"] or kb > MEMORY_KB:
            raise Failure(f"the switch: {kb} kB, {whole}")
        if not total["down"] + total["rx_down"]:
            raise Failure(f"no frame was lost by a flap: {total}")


STATEMENTS = (programs_through_a_switch, a_wire_of_shared_memory, a_stopped_host_of_many, two_switches, a_qemu_is_a_port, a_killed_end, a_killed_switch,
              a_restarted_switch, no_more_ports, settings_at_run_time, a_mesh_with_ports_that_flap)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=lambda p: pathlib.Path(p).resolve(), default=ROOT / "build")
    parser.add_argument("names", nargs="*", help="The statements to check (default: all).")
    args = parser.parse_args()
    remove_xrc_files()
    sandbox.enter(__file__, {"--build": args.build})
    hosts = Hosts(args.build)
    cases = tries.Cases("switch")
    try:
        for statement in STATEMENTS:
            if not args.names or statement.__name__ in args.names:
                cases.run(statement.__name__, lambda: statement(hosts), title=statement.__doc__.splitlines()[0], again=hosts.end)
        return cases.end()
    finally:
        hosts.end()


if __name__ == "__main__":
    sys.exit(main())
