# SPDX-License-Identifier: BSD-2-Clause
"""Compares the device as a NIC with QEMU's own NICs, in one pair of guests (scripts/bench ethernet).

Each guest has the device, virtio-net and a model of an Intel card (igb, or e1000e if this QEMU has no
igb), each on a stream socket of its own to the other guest, and a second device on a wire in shared
memory. iperf3 uses the kernel's drivers. testpmd uses DPDK's: one sends, the other one counts. The
programs run on the NICs in turn. Then one guest creates rules in the device, by DPDK's two ways and
by tc. Prints tables as docs/explanation/performance.md has them: medians, and their ratios.
"""
import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

import vmlib
from lab import Lab

PACKAGES = "dpdk-dev,librte-net-mlx5-25,librte-net-virtio25,librte-net-e1000-25"
DRIVERS = {"hcasim": "mlx5", "shm": "mlx5", "virtio-net": "virtio", "igb": "e1000", "e1000e": "e1000"}
PMD = ("dpdk-testpmd --lcores 0@0,1@0 -n 1 -m 256 -d librte_mempool_ring.so -d librte_net_{driver}.so -a {pci} -- "
       "--total-num-mbufs=8192 --rxd=512 --txd=512 --forward-mode={mode} --auto-start --no-mlockall {more}")
FLOW_PERF = ("ulimit -l unlimited; dpdk-test-flow-perf --lcores 0@0,1@0 -n 1 -m 256 -d librte_mempool_ring.so "
             "-d librte_net_mlx5.so -a {pci} -- --ingress --ether --ipv4 --udp --queue --deletion-rate --group={group} "
             "--rules-count={count} --rules-batch={batch}")
SECONDS = 4


def intel_card():
    said = subprocess.run([vmlib.QEMU, "-device", "help"], stdout=subprocess.PIPE, text=True, check=True).stdout
    return "igb" if 'name "igb"' in said else "e1000e"


class NICs(Lab):
    """Two guests with all NICs. .nics: of each kind, [(netdev, PCI address, IPv4 address)] of the two
    guests."""

    def __init__(self, work, intel, **options):
        self.kinds = ["hcasim", "shm", "virtio-net", intel]
        super().__init__(work, guest=vmlib.Guest.prepare(packages=PACKAGES), memory=1536, **options)

    def __enter__(self):
        """Starts guest b when guest a listens: QEMU before 8.0 connects once."""
        a, b = self.vms
        sockets = [self.work / f"{kind}.net" for kind in self.kinds if kind != "shm"]
        try:
            a.start()
            for _ in range(300):
                if all(socket.exists() for socket in sockets):
                    break
                time.sleep(0.1)
            else:
                raise vmlib.VmError(f"guest a does not listen at {', '.join(map(str, sockets))}")
            b.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    @staticmethod
    def mac(kind, guest):
        return f"02:00:00:ca:{0x60 + kind:02x}:{guest + 1:02x}"

    def _devices(self, i, properties):
        words = []
        for place, kind in enumerate(self.kinds):
            mac, net = self.mac(place, i), f"net{place}"
            if kind != "shm":
                words += ["-netdev", f"stream,id={net},server={'off' if i else 'on'},addr.type=unix,"
                                     f"addr.path={self.work / kind}.net"]
            if kind == "hcasim":
                words += vmlib.hcasim_device(netdev=net, mac=mac, **properties)
            elif kind == "shm":
                words += vmlib.hcasim_device(wire=f"shm:{self.wire}", mac=mac, slot=2, **properties)
            else:
                card = "virtio-net-pci" if kind == "virtio-net" else kind
                words += ["-device", f"pcie-root-port,id=nicport{place},chassis={place + 4},slot={place + 4}",
                          "-device", f"{card},netdev={net},mac={mac},bus=nicport{place}"]
        return words

    def up(self):
        self.nics = {kind: [] for kind in self.kinds}
        self.hosts = [{"ip": "", "ibdev": ""}] * 2  # pair() asks; commands here have addresses of their own
        for i, vm in enumerate(self.vms):
            vm.run("modprobe -a mlx5_core mlx5_ib ib_uverbs virtio_net; modprobe -a igb e1000e uio_pci_generic; "
                   "mkdir -p /dev/hugepages; mount -t hugetlbfs none /dev/hugepages; echo 160 >/proc/sys/vm/nr_hugepages",
                   check=False)
            for place, kind in enumerate(self.kinds):
                mac, ip = self.mac(place, i), f"10.{place}.0.{i + 1}"
                said = vm.run(f"""
                    end=$((SECONDS + 30)); until dev=$(grep -lx {mac} /sys/class/net/*/address) || [ $SECONDS -ge $end ]; do
                        sleep 0.2; done
                    dev=${{dev%/address}}; dev=${{dev##*/}}; pci=$(readlink -f /sys/class/net/$dev/device)
                    case $pci in */virtio*) pci=${{pci%/virtio*}};; esac
                    ip link set $dev up; ip addr replace {ip}/24 dev $dev; echo $dev ${{pci##*/}}""").out.split()
                self.nics[kind].append((*said, ip))

    def tcp(self, kind, more=""):
        """Gbit/s of TCP from a to b."""
        (_, _, source), (_, _, target) = self.nics[kind]
        client, _ = self.pair(f"iperf3 -s -1 -B {target}", f"iperf3 -c {target} -B {source} -t {SECONDS} -J {more}",
                              listens="tcp:5201", timeout=60)
        return json.loads(client.out)["end"]["sum_received"]["bits_per_second"] / 1e9

    def datagrams(self, kind):
        """Thousand datagrams of 64 bytes in a second that come from a to b by the kernel's drivers."""
        (_, _, source), (_, _, target) = self.nics[kind]
        client, _ = self.pair(f"iperf3 -s -1 -B {target}",
                              f"iperf3 -c {target} -B {source} -u -b 0 -l 64 -t {SECONDS} -J", listens="tcp:5201", timeout=60)
        end = json.loads(client.out)["end"]["sum"]
        return end["packets"] * (1 - end["lost_percent"] / 100) / end["seconds"] / 1e3

    def bind(self, kind):
        """Gives the NIC to DPDK: mlx5 shares it with the kernel, others leave the kernel."""
        if DRIVERS[kind] == "mlx5":
            return
        for vm, (netdev, pci, _) in zip(self.vms, self.nics[kind]):
            vm.run(f"[ -e /sys/bus/pci/drivers/uio_pci_generic/{pci} ] || {{ ip link set {netdev} down; cd /sys/bus/pci/devices/{pci}; "
                   f"echo uio_pci_generic >driver_override; echo {pci} >driver/unbind; echo {pci} >/sys/bus/pci/drivers_probe; }}")

    def frames(self, kind, size):
        """Thousand frames of a size in a second that come from a's testpmd to b's."""
        self.bind(kind)
        place = self.kinds.index(kind)
        words = {"driver": DRIVERS[kind]}
        counter, sender = (
            vm.spawn("ulimit -l unlimited; " + PMD.format(**words, pci=nic[1], mode=mode, more=more) +
                     f" --stats-period 1 </dev/zero >/tmp/pmd 2>&1 & sleep {seconds}; kill -INT $!; wait; cat /tmp/pmd")
            for vm, nic, mode, more, seconds in
            ((self.vms[1], self.nics[kind][1], "rxonly", "", SECONDS + 12),
             (self.vms[0], self.nics[kind][0], "txonly",
              f"--txpkts={size} --eth-peer=0,{self.mac(place, 1)}", SECONDS + 12)))
        sender.wait(60)
        said = counter.wait(60).out
        rates = [int(rate) for rate in re.findall(r"Rx-pps: +(\d+)", said)]
        rates = sorted(rate for rate in rates if rate)[1:]
        if len(rates) < 3:
            raise vmlib.VmError(f"no rates of {kind}: {said[-3000:]}")
        return statistics.median(rates) / 1e3

    def flow_perf(self, group, count):
        """Rules in a second that dpdk-test-flow-perf creates: of group 0, or by itself."""
        said = self.vms[0].run(FLOW_PERF.format(pci=self.nics["hcasim"][0][1], group=group, count=count, batch=count // 4),
                               240).out
        return 1e3 * float(re.search(r"Total flows insertion rate -> ([\d.]+) K", said)[1])

    def tc(self, count, where):
        """Rules in a second that tc's flower creates."""
        netdev = self.nics["hcasim"][0][0]
        said = self.vms[0].run(f"""
            ethtool -K {netdev} hw-tc-offload on; tc qdisc replace dev {netdev} ingress
            for ((i = 0; i < {count}; i++)); do
                echo "filter add dev {netdev} ingress protocol ip prio 1 flower {where} ip_proto udp dst_ip 10.9.$((i / 200)).$((i % 200)) dst_port 7 action drop"
            done >/tmp/rules
            begin=$EPOCHREALTIME; tc -batch /tmp/rules; end=$EPOCHREALTIME
            tc qdisc del dev {netdev} ingress; echo took $begin $end""", 240).out
        begin, end = map(float, re.search(r"took ([\d.]+) ([\d.]+)", said).groups())
        return count / (end - begin)


TRAFFIC = [
    ("iperf3, one TCP stream", "Gbit/s", NICs.tcp),
    ("iperf3, four TCP streams", "Gbit/s", lambda lab, kind: lab.tcp(kind, "-P 4")),
    ("iperf3, UDP of 64 bytes", "k/s", NICs.datagrams),
    ("testpmd, frames of 64 bytes", "k/s", lambda lab, kind: lab.frames(kind, 64)),
    ("testpmd, frames of 1500 bytes", "k/s", lambda lab, kind: lab.frames(kind, 1500)),
]
RULES = [
    ("DPDK, entries that it writes into the card's memory (group 1)", lambda lab: lab.flow_perf(1, 4096)),
    ("DPDK, rules by the kernel's commands (group 0)", lambda lab: lab.flow_perf(0, 512)),
    ("tc flower, in the device (skip_sw)", lambda lab: lab.tc(512, "skip_sw")),
    ("tc flower, in the kernel alone (skip_hw)", lambda lab: lab.tc(512, "skip_hw")),
]


def machine(accel):
    name = re.search(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text(encoding="ascii"))
    version = subprocess.run([vmlib.QEMU, "--version"], stdout=subprocess.PIPE, text=True, check=True).stdout.split()[3]
    return (f"{os.cpu_count()} processors ({name[1] if name else 'unknown'}), QEMU {version}, guests of one CPU with "
            f"{accel.upper()}")


def load():
    return " ".join(f"{value:.1f}" for value in os.getloadavg())


def in_turn(rounds, what, failures):
    """Runs each function of {name: function} in each round; returns {name: values}."""
    values = {name: [] for name in what}
    for _ in range(rounds):
        for name, run in what.items():
            try:
                values[name].append(run())
            except (vmlib.VmError, AttributeError, TypeError, KeyError) as error:
                failures.append(name)
                print(f"{name}: {str(error)[-1500:]}", file=sys.stderr, flush=True)
    return values


def traffic(lab, args, failures):
    theirs = lab.kinds[2:]
    print(f"| program | {' | '.join(lab.kinds)} | unit | {' | '.join(f'hcasim / {kind}' for kind in theirs)} |")
    print("|---" * (2 + len(lab.kinds) + len(theirs)) + "|", flush=True)
    for name, unit, run in TRAFFIC:
        if args.k not in name:
            continue
        values = in_turn(args.n, {kind: lambda kind=kind: run(lab, kind) for kind in lab.kinds}, failures)
        middle = {kind: statistics.median(found) if found else float("nan") for kind, found in values.items()}
        ratios = " | ".join(f"{middle['hcasim'] / middle[kind]:.2f}" for kind in theirs)
        print(f"| {name} | {' | '.join(f'{middle[kind]:.3g}' for kind in lab.kinds)} | {unit} | {ratios} |", flush=True)


def rules(lab, args, failures):
    print("\n| rules created by | in a second | times the rate of commands |\n|---|---|---|", flush=True)
    values = in_turn(args.n, {name: lambda run=run: run(lab) for name, run in RULES if args.k in name}, failures)
    middle = {name: statistics.median(found) for name, found in values.items() if found}
    for name, rate in middle.items():
        commands = middle.get(RULES[1][0])
        print(f"| {name} | {rate:.0f} | {rate / commands if commands else float('nan'):.1f} |")


def main():
    parser = argparse.ArgumentParser(prog="scripts/bench ethernet", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", type=int, default=3, metavar="ROUNDS")
    parser.add_argument("-k", default="", metavar="TEXT")
    parser.add_argument("--work")
    args = parser.parse_args()
    work = pathlib.Path(args.work or tempfile.mkdtemp(prefix="hcasim-bench."))
    work.mkdir(parents=True, exist_ok=True)
    failures = []
    with NICs(work, intel_card()) as lab:
        lab.boot()
        lab.up()
        print(f"Medians of {args.n} rounds. {machine(vmlib.accelerator(lab.vms[0].guest))}. Load average at the begin: {load()}.\n")
        traffic(lab, args, failures)
        rules(lab, args, failures)
        print(f"\nLoad average at the end: {load()}.")
        lab.poweroff()
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
