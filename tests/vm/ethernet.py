# SPDX-License-Identifier: BSD-2-Clause
"""Tests the netdev: tunnels and stacked VLAN tags over it, with segmentation and checksums of the
device; settings that change while TCP uses it; XDP programs.

A list of checks for tests/vm/run (--suite ethernet), with two guests of two processors each, so
that a netdev has two channels.
"""
import base64
import contextlib
import pathlib

import suite
from suite import ethtool_counters, expect

HERE = pathlib.Path(__file__).resolve().parent
CHECKS = []
check = suite.registrar(CHECKS)

check("both guests boot")(suite.boots)
check("the drivers load; a netdev with carrier and an active RDMA port appear")(suite.comes_up)

MIB = 8  # of a file


@contextlib.contextmanager
def netdevs(lab, commands):
    """Creates a netdev t0 in each guest, which the commands end in, with 10.0.9.N; yields the
    addresses. {netdev} {ip} {peer} in the commands are those of the netdev below."""
    try:
        for i, (vm, host, peer) in enumerate(zip(lab.vms, lab.hosts, reversed(lab.hosts)), 1):
            vm.run(commands.format(netdev=host["netdev"], ip=host["ip"], peer=peer["ip"]))
            vm.run(f"ip addr add 10.0.9.{i}/24 dev t0; ip link set t0 up")
        lab.vms[0].until("ping -c 1 -W 1 10.0.9.2")
        yield "10.0.9.1", "10.0.9.2"
    finally:
        for vm in lab.vms:
            vm.run("ip link del t0; ip link del t1", check=False)


def fetch(lab, address, sender=1):
    """A file goes over TCP from a guest, which has the address, to the other one, unchanged."""
    vm = lab.vms[sender]
    want = vm.run(f"head -c {MIB}M /dev/urandom >/tmp/sent; sha256sum /tmp/sent").out.split()[0]
    got, _ = lab.pair(suite.SERVE, suite.FETCH.replace("{peer}", address), listens="tcp:8000", swap=not sender)
    expect(got.out.strip() == want, f"the file has another hash: {got.out}")


def grown(lab, before, name):
    """How much a counter of ethtool has grown in each guest."""
    return [ethtool_counters(vm, host)[name] - old[name] for vm, host, old in zip(lab.vms, lab.hosts, before)]


def no_bad_sums(lab):
    for vm in lab.vms:
        vm.run("! dmesg | grep -i 'csum failure'")


# Tunnels. mlx5e knows VXLAN at the UDP ports that the kernel tells it, GENEVE at 6081.
TUNNELS = {
    "VXLAN": "modprobe vxlan; ip link add t0 type vxlan id 42 local {ip} remote {peer} dstport 4789",
    "VXLAN at UDP port 8472": "modprobe vxlan; ip link add t0 type vxlan id 42 local {ip} remote {peer} dstport 8472",
    "GENEVE": "modprobe geneve; ip link add t0 type geneve id 42 remote {peer}",
    "GRE": "modprobe ip_gre; ip link add t0 type gre local {ip} remote {peer}",
    "GRE with Ethernet in it": "modprobe ip_gre; ip link add t0 type gretap local {ip} remote {peer}",
}
# The second of each is for tunnels whose outer checksum is used.
UDP_OFFLOADS = ("tx-udp_tnl-segmentation", "tx-udp_tnl-csum-segmentation")
GRE_OFFLOADS = ("tx-gre-segmentation", "tx-gre-csum-segmentation")


def segmentation(lab, offloads, state):
    for vm, host in zip(lab.vms, lab.hosts):
        vm.run(f"ethtool -K {host['netdev']} " + " ".join(f"{offload} {state}" for offload in offloads))


def tunnel(lab, kind):
    offloads = GRE_OFFLOADS if kind.startswith("GRE") else UDP_OFFLOADS
    for vm, host in zip(lab.vms, lab.hosts):
        said = vm.run(f"ethtool -k {host['netdev']}").out
        for offload in offloads:
            expect(f"{offload}: on" in said, f"{offload} is not on:\n{said}")
    with netdevs(lab, TUNNELS[kind]) as addresses:
        lab.vms[0].run(f"ping -c 3 -i 0.2 -W 5 -s 1200 {addresses[1]}; ping -c 3 -i 0.2 -W 5 -s 9000 {addresses[1]}")
        before = [ethtool_counters(vm, host) for vm, host in zip(lab.vms, lab.hosts)]
        for sender in (0, 1):
            fetch(lab, addresses[sender], sender)
        packets = grown(lab, before, "tx_tso_inner_packets")
        expect(min(packets) > 0, f"no message in a tunnel was segmented by the device: {packets}")
        # Without segmentation by the device each packet comes from the kernel.
        try:
            segmentation(lab, offloads, "off")
            before = [ethtool_counters(vm, host) for vm, host in zip(lab.vms, lab.hosts)]
            fetch(lab, addresses[1])
            expect(grown(lab, before, "tx_tso_inner_packets") == [0, 0], "it is segmented, though that is off")
        finally:
            segmentation(lab, offloads, "on")
    no_bad_sums(lab)
    return f"{packets[0]} and {packets[1]} messages"


for _kind in TUNNELS:
    check(f"{_kind}: files arrive unchanged both ways, in segments that the device makes", only="hcasim")(
        lambda lab, kind=_kind: tunnel(lab, kind))


@check("VLAN tags in VLAN tags (802.1ad and 802.1Q): ping and files both ways")
def stacked_tags(lab):
    commands = ("modprobe 8021q; ip link add t1 link {netdev} type vlan proto 802.1ad id 100; ip link set t1 up; "
                "ip link add t0 link t1 mtu 1496 type vlan id 7")
    with netdevs(lab, commands) as addresses:
        lab.vms[0].run(f"ping -M do -s 1468 -c 3 -i 0.2 -W 5 {addresses[1]}")
        for sender in (0, 1):
            fetch(lab, addresses[sender], sender)
    no_bad_sums(lab)


# Settings that change under traffic

STREAM_PORT = 5401
END = "/tmp/stream-ends"


def put_in_guests(lab, name):
    text = base64.b64encode((HERE / "guest" / name).read_bytes()).decode()
    for vm in lab.vms:
        vm.run(f"echo {text} | base64 -d >/tmp/{name}")


@contextlib.contextmanager
def stream(lab):
    """Bytes go both ways over one connection meanwhile. Every byte must arrive."""
    put_in_guests(lab, "stream.py")
    for vm in lab.vms:
        vm.run(f"rm -f {END}")
    jobs = [lab.vms[1].spawn(f"python3 /tmp/stream.py serve {STREAM_PORT}")]
    try:
        lab.vms[1].until(f"ss -Htln sport = :{STREAM_PORT} | grep -q .")
        jobs.append(lab.vms[0].spawn(f"python3 /tmp/stream.py connect {lab.hosts[1]['ip']} {STREAM_PORT} {END}"))
        lab.vms[0].run("sleep 1")
        yield
        lab.vms[0].run(f"sleep 1; touch {END}")
        counts = [int(job.wait(120, check=True).out.split()[0]) for job in jobs]
        expect(min(counts) > 1 << 20, f"only {counts} bytes")
        lab.said = f"{counts[0] >> 20} and {counts[1] >> 20} MiB"
    finally:
        for job in jobs:
            job.kill()


def change(lab, *commands):
    """Does each of the commands in both guests, one after another, under traffic. {netdev}: the
    netdev."""
    with stream(lab):
        for command in commands:
            for vm, host in zip(lab.vms, lab.hosts):
                vm.run(command.format(netdev=host["netdev"]))
    return lab.said


@check("ethtool -L: one channel and two in turn, under TCP", only="hcasim")
def channels(lab):
    return change(lab, *["ethtool -L {netdev} combined 1", "ethtool -L {netdev} combined 2"] * 3)


@check("ethtool -G: rings of other lengths, under TCP", only="hcasim")
def rings(lab):
    return change(lab, *[f"ethtool -G {{netdev}} rx {rx} tx {tx}" for rx, tx in
                         ((256, 256), (4096, 512), (512, 4096), (1024, 1024))])


@check("ethtool -K: each offload off and on, under TCP", only="hcasim")
def offloads(lab):
    names = ("tso", "gro", "tx", "rx", "sg", "rxvlan", "txvlan", "rxhash", "ntuple", "rx-vlan-filter")
    return change(lab, *[f"ethtool -K {{netdev}} {name} {state}" for name in names for state in ("off", "on")],
                  "ethtool -K {netdev} ntuple off tso on tx on rx on sg on")


@check("ethtool --set-priv-flags: receive and send queues of other kinds, under TCP", only="hcasim")
def kinds_of_queues(lab):
    flags = ("rx_striding_rq", "skb_tx_mpwqe", "xdp_tx_mpwqe", "tx_cqe_moder", "rx_cqe_moder")
    return change(lab, *[f"ethtool --set-priv-flags {{netdev}} {flag} {state}" for flag in flags
                         for state in ("off", "on")])


@check("ethtool -C: moderation of completions, fixed and adaptive, under TCP", only="hcasim")
def moderation(lab):
    return change(lab, *[f"ethtool -C {{netdev}} {setting}" for setting in (
        "adaptive-rx off adaptive-tx off", "rx-usecs 0 rx-frames 1 tx-usecs 0 tx-frames 1",
        "rx-usecs 200 rx-frames 64 tx-usecs 200 tx-frames 64", "adaptive-rx on adaptive-tx on")])


@check("ethtool -X: another table, key and function of receive-side scaling, under TCP", only="hcasim")
def scaling(lab):
    return change(lab, *[f"ethtool -X {{netdev}} {setting}" for setting in (
        "weight 0 1", "weight 1 0", "equal 2", "hfunc xor", "hfunc toeplitz",
        "hkey " + ":".join(f"{i * 7 + 1 & 0xff:02x}" for i in range(40)), "default")])


@check("ethtool -N: rules and fields of the hash, under TCP", only="hcasim")
def rules(lab):
    return change(lab, "ethtool -K {netdev} ntuple on",
                  f"ethtool -N {{netdev}} flow-type tcp4 dst-port {STREAM_PORT} action 1 loc 5",
                  f"ethtool -N {{netdev}} flow-type tcp4 src-port {STREAM_PORT} action 1 loc 6",
                  "ethtool -N {netdev} flow-type tcp4 src-ip 10.0.0.1 action 0 loc 4",
                  "ethtool -n {netdev} | grep -q 'Total 3 rules'",
                  "ethtool -N {netdev} delete 5; ethtool -N {netdev} delete 6; ethtool -N {netdev} delete 4",
                  "ethtool -N {netdev} rx-flow-hash udp4 sdfn; ethtool -N {netdev} rx-flow-hash udp4 sd",
                  "ethtool -K {netdev} ntuple off")


@check("MTUs from 1280 to 9000, under TCP", only="hcasim")
def mtus(lab):
    return change(lab, *[f"ip link set {{netdev}} mtu {mtu}" for mtu in (9000, 1280, 4200, 1500)])


# XDP

FRAMES = 1000
READY = "/tmp/xdp-ready"
VERDICTS = {"pass": ("lost", "rx_packets"), "drop": ("lost", "rx_xdp_drop"), "tx": ("back", "rx_xdp_tx_xmit"),
            "redirect": ("back", "rx_xdp_redirect")}


@contextlib.contextmanager
def serving(vm, command):
    """A command of xdp.py that serves in a guest meanwhile."""
    vm.run(f"rm -f {READY}")
    job = vm.spawn(f"python3 /tmp/xdp.py {command} {READY}")
    try:
        # if it has ended, it will never be ready
        vm.run(f"until [ -e {READY} ]; do [ -d /run/hcasim/{job.number} ] || exit 1; sleep 0.1; done", check=False)
        yield
        vm.run(f"rm {READY}", check=False)
        job.wait(check=True)
    finally:
        job.kill()


def mac_of(lab, i):
    return lab.vms[i].run(f"cat /sys/class/net/{lab.hosts[i]['netdev']}/address").out.strip()


def no_warnings(lab):
    for vm in lab.vms:
        vm.run("! dmesg | grep -E 'WARNING:|BUG:|Call Trace|csum failure|mlx5_core.*(rror|timeout)'")


@check("XDP programs pass, drop, return and redirect frames, under TCP", only="hcasim")
def verdicts(lab):
    """Each verdict of an XDP program in guest b on frames of guest a, while TCP goes on."""
    (a, b), (client, server) = lab.vms, lab.hosts
    put_in_guests(lab, "xdp.py")
    with stream(lab):
        for name, (fate, counter) in VERDICTS.items():
            with serving(b, f"verdict {server['netdev']} {name}"):
                before = ethtool_counters(b, server)[counter]
                a.run(f"python3 /tmp/xdp.py frames {client['netdev']} {mac_of(lab, 1)} {FRAMES} {fate}")
                count = ethtool_counters(b, server)[counter] - before
                expect(count == FRAMES or name == "pass" and count > FRAMES, f"{name}: {counter} grew by {count}")
    no_warnings(lab)
    return lab.said


check("no warning or error of mlx5 or infiniband in either guest's dmesg")(suite.clean_dmesg)
check("both guests power off")(suite.powers_off)
check("no warning or error on either console, power-off included")(suite.clean_console)
check("the device reported no unhandled command or register, and no error", only="hcasim")(suite.clean_device_log)
