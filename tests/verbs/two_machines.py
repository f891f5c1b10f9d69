#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Two network namespaces as two machines: programs in them are hosts that a socket, a tap interface or a card joins.

Each machine has a card `lan` with an IP address, by which the programs find each other and tunnels pass, and a card
`port0` without addresses, whose cable leads to the other machine or to an Open vSwitch between them. The switch runs in
a namespace of its own, with its datapath in user space, which needs no module of the kernel. Delay and loss are
hcasim's own (--delay, --loss), since many kernels have no netem.

Needs root. Exit status 0: nothing failed; 77: everything was skipped.
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts/lib"))

from host_processes import HCASIM, PATIENCE, Failure, wait_listening  # noqa: E402
import tries  # noqa: E402

ON_DEVICE = ["-d", "mlx5_0", "-g", "1"]
PERFTEST = ["-F", "-d", "mlx5_0", "-x", "1"]
PORT = "18515"  # each machine has all ports for itself
LAN = ("10.99.0.1", "10.99.0.2")
CARDS = ("--mtu", "1500")  # what a card without settings carries
FAR = ("--delay", "5ms", "--loss", "1%")  # on both machines: a round trip takes 20 ms
PINGPONGS = [[f"ibv_{kind}_pingpong", *ON_DEVICE, "-c", "-p", PORT] for kind in ("rc", "uc", "ud")]
BANDWIDTH = [[program, *PERFTEST, "-p", PORT, *more] for program, *more in (
    ("ib_write_bw", "-n", "100"), ("ib_read_lat", "-n", "100"), ("ib_atomic_bw", "-n", "100"))]
FIGURES = re.compile(r"^\s*\d+\s+\d+\s+[\d.]", re.M)


def ip(*words):
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise Failure(f"ip {' '.join(words)}: {done.stderr}")


class Machine:
    def __init__(self, name, build):
        self.name, self.build = name, build
        ip("netns", "add", name)
        ip("-n", name, "link", "set", "lo", "up")

    def ip(self, *words):
        ip("-n", self.name, *words)

    def command(self, *words):
        return ["ip", "netns", "exec", self.name, *words]

    def start(self, wire, number, options, *words):
        process = subprocess.Popen(self.command(HCASIM, "run", "--build", self.build, "--wire", wire, "--host", str(number),
                                                *options, "--", *words),
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        process.command = " ".join(words)
        return process

    def has(self, kind):
        """Whether the kernel makes interfaces of a kind here."""
        return not subprocess.run(["ip", "-n", self.name, "link", "add", "probe", *kind.split()], check=False,
                                  stderr=subprocess.DEVNULL).returncode and not self.ip("link", "del", "probe")


def cable(one, other, cards):
    """Joins two machines: the names of the two ends are in cards."""
    ip("-n", one.name, "link", "add", cards[0], "type", "veth", "peer", "name", cards[1], "netns", other.name)
    for machine, card in zip((one, other), cards):
        machine.ip("link", "set", "dev", card, "up")


class Switch:
    """An Open vSwitch between two machines, as users install it, but with files and processes of its own."""

    def __init__(self, machine, folder):
        self.machine, self.folder, self.daemons = machine, folder, []
        self.database = f"unix:{folder}/db.sock"

    def vsctl(self, *words):
        done = subprocess.run(self.machine.command("ovs-vsctl", "--timeout=30", f"--db={self.database}", *words),
                              capture_output=True, text=True, check=False)
        if done.returncode:
            raise Failure(f"ovs-vsctl {' '.join(words)}: {done.stderr}\n{self.log()}")
        return done.stdout

    def log(self):
        return "".join(path.read_text(errors="replace")[-3000:] for path in self.folder.glob("*.log"))

    def daemon(self, name, *words):
        log = open(self.folder / f"{name}.log", "wb")
        self.daemons.append(subprocess.Popen(
            self.machine.command(name, f"--unixctl={self.folder}/{name}.ctl", *words), stdout=log, stderr=log,
            env=dict(os.environ, OVS_RUNDIR=str(self.folder), OVS_LOGDIR=str(self.folder), OVS_DBDIR=str(self.folder))))
        log.close()

    def start(self, *cards):
        subprocess.run(["ovsdb-tool", "create", self.folder / "conf.db", "/usr/share/openvswitch/vswitch.ovsschema"], check=True)
        self.daemon("ovsdb-server", f"--remote=punix:{self.folder}/db.sock", self.folder / "conf.db")
        self.vsctl("--no-wait", "--retry", "init")
        self.daemon("ovs-vswitchd", self.database)
        words = ["add-br", "br0", "--", "set", "bridge", "br0", "datapath_type=netdev"]
        for card in cards:
            words += ["--", "add-port", "br0", card]
        self.vsctl(*words)

    def forwarded(self, card):
        """Returns how many packets the switch has received on a card."""
        return int(self.vsctl("get", "interface", card, "statistics:rx_packets"))

    def has_forwarded(self, card, packets):
        """Waits until the database says so: Open vSwitch writes its counters there every five seconds."""
        end = time.monotonic() + PATIENCE
        while self.forwarded(card) < packets and time.monotonic() < end:
            time.sleep(0.2)
        return self.forwarded(card) >= packets

    def end(self):
        for daemon in reversed(self.daemons):
            daemon.terminate()
            daemon.wait(PATIENCE)
        self.daemons.clear()


class Two:
    """The two machines, and the switch between them."""

    def __init__(self, folder, build):
        self.folder, self.build = folder, build
        self.machines, self.between, self.switch = [], None, None

    def start(self):
        for name in "ab":
            self.machines.append(Machine(f"hcasim-{os.getpid()}-{name}", self.build))
        cable(*self.machines, ("lan", "lan"))
        for machine, address in zip(self.machines, LAN):
            machine.ip("addr", "add", f"{address}/24", "dev", "lan")

    def cable(self):
        """A cable between the cards port0."""
        cable(*self.machines, ("port0", "port0"))

    def put_switch(self):
        """An Open vSwitch to which both cards port0 lead."""
        if not shutil.which("ovs-vswitchd"):
            raise tries.Missing("no ovs-vswitchd")
        self.between = Machine(f"hcasim-{os.getpid()}-s", self.build)
        for machine, card in zip(self.machines, "ab"):
            cable(machine, self.between, ("port0", card))
        self.switch = Switch(self.between, self.folder)
        self.switch.start("a", "b")

    def taps(self):
        """Each machine has a bridge of its card port0 and a tap interface."""
        for machine in self.machines:
            machine.ip("link", "add", "br0", "type", "bridge")
            machine.ip("tuntap", "add", "tap0", "mode", "tap")
            for port in ("port0", "tap0"):
                machine.ip("link", "set", port, "master", "br0")
                machine.ip("link", "set", port, "up")
            machine.ip("link", "set", "br0", "up")

    def pairs(self, wires, commands, options=()):
        """Runs each command as a server on the first machine and as its client on the second."""
        for command in commands:
            if not shutil.which(command[0]):
                raise tries.Missing(f"no {command[0]}")
            server = self.machines[0].start(wires[0], 1, options, *command)
            sides = [server]
            try:
                wait_listening(server, int(PORT))
                sides.append(self.machines[1].start(wires[1], 2, options, *command, LAN[0]))
                said = [side.communicate(timeout=PATIENCE)[0] for side in reversed(sides)]
            finally:
                for side in sides:
                    side.kill()
            for side, text in zip(reversed(sides), said):
                if side.returncode or (command[0].startswith("ib_") and not FIGURES.search(said[0])):
                    raise Failure(f"{side.command}: exit status {side.returncode}\n" + "\n--- the other side:\n".join(said))

    def end(self):
        """Removes everything. Returns what the switch has said."""
        said = ""
        if self.switch:
            self.switch.end()
            said = self.switch.log()
        for machine in filter(None, [*self.machines, self.between]):
            subprocess.run(["ip", "netns", "del", machine.name], check=False)
        return said


def udp_wires():
    return [f"udp:7001:{LAN[1]}:7002", f"udp:7002:{LAN[0]}:7001"]


def udp(two):
    """UDP between two machines."""
    two.pairs(udp_wires(), PINGPONGS + BANDWIDTH)


def udp_far(two):
    """UDP between two machines that are 10 ms apart and lose 1 % of the frames: perftest completes."""
    two.pairs(udp_wires(), FAR_COMMANDS, FAR)


def switches(two):
    """hcasim's switches on two machines, joined by UDP: hosts connect to the switch of their machine."""
    started = []
    try:
        for machine, name, wire in zip(two.machines, "ab", udp_wires()):
            path = two.folder / name
            started.append(subprocess.Popen(machine.command(HCASIM, "switch", "--build", two.build, "--listen", path, "--port", wire),
                                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True))
            if "listening" not in (line := started[-1].stdout.readline()):
                raise Failure(line + started[-1].communicate(timeout=PATIENCE)[0])
        two.pairs([f"connect:{two.folder / name}" for name in "ab"], PINGPONGS)
    finally:
        for switch in started:
            switch.kill()
            switch.communicate()


def tcp(two):
    """A stream of TCP between two machines."""
    two.pairs([f"listen:{LAN[0]}:7001", f"connect:{LAN[0]}:7001"], PINGPONGS)


def vxlan(two):
    """VXLAN between two machines, both ends ours."""
    two.pairs([f"vxlan:77:4789:{address}:4789" for address in reversed(LAN)], PINGPONGS + BANDWIDTH[:1])


def vxlan_of_linux(two):
    """VXLAN to a machine whose end is Linux's own: a program there takes the interface."""
    if not two.machines[1].has("type vxlan id 1 dstport 4790"):
        raise tries.Skip("this kernel makes no VXLAN interface")
    two.machines[1].ip("link", "add", "vx0", "type", "vxlan", "id", "77", "remote", LAN[0], "dstport", "4789")
    two.machines[1].ip("link", "set", "vx0", "up")
    two.pairs([f"vxlan:77:4789:{LAN[1]}:4789", "if:vx0"], PINGPONGS + BANDWIDTH[:1], CARDS)


def interfaces(two):
    """The cards of two machines, joined by a cable, taken as they are (if:)."""
    two.cable()
    two.pairs(["if:port0"] * 2, PINGPONGS + BANDWIDTH, CARDS)


def taps(two):
    """A tap interface in a bridge with the card, on each machine."""
    if not two.machines[0].has("type bridge"):
        raise tries.Skip("this kernel makes no bridge")
    two.cable()
    two.taps()
    two.pairs(["tap:tap0"] * 2, PINGPONGS + BANDWIDTH, CARDS)


def open_vswitch(two):
    """An Open vSwitch between two machines: one takes its card, the other a tap interface in a bridge with the card."""
    two.put_switch()
    two.taps()
    two.pairs(["if:port0", "tap:tap0"], PINGPONGS + BANDWIDTH, CARDS)
    for card in "ab":
        if not two.switch.has_forwarded(card, 1000):
            raise Failure(f"the switch has received {two.switch.forwarded(card)} packets on {card}\n{two.switch.log()}")


def open_vswitch_far(two):
    """Two machines 10 ms apart that lose 1 % of the frames, with Open vSwitch between: perftest completes."""
    two.put_switch()
    two.pairs(["if:port0"] * 2, FAR_COMMANDS, (*CARDS, *FAR))


# What mpirun calls in place of ssh: the machine, and what to run there. Each machine has a host name of its own.
AGENT = """#!/bin/sh
machine=$1; shift
exec ip netns exec "$machine" unshare --uts sh -c "hostname $machine; $*"
"""
# What each rank is: a host of the wire, with a number and a wire that follow from the machine (docs/howto/two-machines.md).
RANK = """#!/bin/sh
case $(hostname) in
*-a) exec {hcasim} run --build {build} --wire {wires[0]} --host 1 -- "$@" ;;
*) exec {hcasim} run --build {build} --wire {wires[1]} --host 2 -- "$@" ;;
esac
"""


def mpi(two):
    """A rank of Open MPI on each of two machines: all-to-all, reductions, puts and accumulates are compared."""
    if not (shutil.which("mpirun.openmpi") and shutil.which("mpicc.openmpi")):
        raise tries.Missing("no mpirun.openmpi or no mpicc.openmpi")
    program, agent, rank = two.folder / "collective", two.folder / "agent", two.folder / "rank"
    subprocess.run(["mpicc.openmpi", "-O1", "-o", program, ROOT / "tests/programs/collective.c"], check=True)
    agent.write_text(AGENT)
    rank.write_text(RANK.format(hcasim=HCASIM, build=two.build, wires=udp_wires()))
    for script in agent, rank:
        script.chmod(0o755)
    done = subprocess.run(
        two.machines[0].command(
            "mpirun.openmpi", "--mca", "plm_rsh_agent", agent, "--mca", "pml", "ucx", "--mca", "osc", "ucx", "--mca", "btl", "^openib,vader,tcp",
            "-np", "2", "--host", ",".join(machine.name for machine in two.machines),
            *[word for name in MPI_ENVIRONMENT for word in ("-x", name)], rank, program, "2", "1"),
        env=os.environ | MPI_ENVIRONMENT, capture_output=True, text=True, timeout=PATIENCE, check=False)
    if done.returncode or "2 rounds, 0 wrong" not in done.stdout:
        raise Failure(f"exit status {done.returncode}\n{done.stdout}\n{done.stderr}")


MPI_ENVIRONMENT = {"UCX_TLS": "rc_v,self", "UCX_NET_DEVICES": "mlx5_0:1", "UCX_IB_ROCE_REACHABILITY_MODE": "all",
                   "UCX_WARN_UNUSED_ENV_VARS": "n", "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
# The timer of -u 16 is 268 ms: a round trip takes 20 ms, and some of the packets of a message are lost several times.
FAR_COMMANDS = [[program, *PERFTEST, "-p", PORT, *more.split()] for program, more in (
    ("ib_write_bw", "-n 200 -s 8192 -u 16"), ("ib_read_bw", "-n 100 -s 8192 -u 16"), ("ib_send_lat", "-n 50 -u 16"))]
STATEMENTS = (udp, udp_far, tcp, switches, vxlan, vxlan_of_linux, interfaces, taps, open_vswitch, open_vswitch_far, mpi)


def check(statement, build):
    with tempfile.TemporaryDirectory(prefix="hcasim-two.") as folder:
        two = Two(pathlib.Path(folder), build)
        try:
            two.start()
            statement(two)
        finally:
            two.end()


def reason_to_skip():
    """Returns why there can be no machines here, or None."""
    if os.getuid():
        return "network namespaces with names need root"
    tried = subprocess.run(["unshare", "--net", "ip", "link", "add", "type", "veth"], capture_output=True, text=True, check=False)
    return f"no network namespaces with veth here: {tried.stderr.strip()}" if tried.returncode else None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=lambda p: pathlib.Path(p).resolve(), default=ROOT / "build")
    parser.add_argument("names", nargs="*", help="The statements to check (default: all).")
    args = parser.parse_args()
    cases = tries.Cases("two-machines")
    reason = reason_to_skip()
    for statement in STATEMENTS:
        title = statement.__doc__.splitlines()[0]
        if args.names and statement.__name__ not in args.names:
            continue
        if reason:
            cases.skipped(title, reason)
        else:
            cases.run(statement.__name__, lambda: check(statement, args.build), title=title)
    return cases.end()


if __name__ == "__main__":
    sys.exit(main())
