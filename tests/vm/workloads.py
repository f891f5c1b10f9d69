# SPDX-License-Identifier: BSD-2-Clause
"""Runs the programs that RDMA users run, in their many modes: every size, transport and way to
wait.

A second list of checks for tests/vm/run (--suite workloads), with the same two guests as suite.py.
"""
import json
import re

import suite
from suite import expect, perftest

CHECKS = []
check = suite.registrar(CHECKS)

check("both guests boot")(suite.boots)
check("the drivers load; a netdev with carrier and an active RDMA port appear")(suite.comes_up)

# The client of a round may start before the server of that round listens.
CLIENT = """
once() {
    for try in $(seq 100); do
        said=$("$@" 2>&1); status=$?
        case $said in *"Couldn't connect"*) sleep 0.1 ;; *) break ;; esac
    done
    echo "$said"; return $status
}
"""


def rounds(lab, command, values):
    """Runs a ping-pong program once for each value of {v}: all servers in one call, and all clients
    in another."""
    # lab.pair() uses str.format(), so the shell's own braces are doubled.
    def quoted(text):
        return text.replace("{", "{{").replace("}", "}}")
    words = " ".join(map(str, values))
    server = f"for v in {words}; do {command} || exit 1; done"
    client = quoted(CLIENT) + f"for v in {words}; do once {command} {{peer}} || exit 1; done"
    results = lab.pair(server, client, timeout=60 + 5 * len(values))
    for result in results:
        expect(result.out.count("iters in") == len(values), str(result))
        expect("invalid" not in result.out + result.err, str(result))


SIZES = (1, 2, 3, 63, 64, 1023, 1024, 1025, 4096, 65537, 1 << 20)

for _kind, _sizes in (("rc", SIZES), ("uc", SIZES), ("srq", SIZES),
                      ("ud", [size for size in SIZES if size <= 1024])):
    for _wait, _how in (("", "polling"), (" -e", "by events")):
        check(f"ibv_{_kind}_pingpong -c{_wait}: {_sizes[0]} to {_sizes[-1]} bytes, {_how}")(
            lambda lab, kind=_kind, sizes=_sizes, wait=_wait: rounds(
                lab, f"ibv_{kind}_pingpong -c{wait} -n 20 -s $v -d {{dev}} -g {{gid}}",
                sizes))


# Connections by the kernel's connection manager


def cm_pair(lab, server, client, timeout=120):
    results = lab.pair(server, client, listens="cm", timeout=timeout)
    for result in results:
        said = (result.out + result.err).lower()
        expect("error" not in said and "fail" not in said, str(result))


@check("rping -V -C 1000")
def rping(lab):
    cm_pair(lab, "rping -s -V -C 1000", "rping -c -V -C 1000 -a {peer}")


@check("ucmatose: 10 connections, 50 messages each")
def ucmatose(lab):
    cm_pair(lab, "ucmatose -c 10 -C 50 -S 1000", "ucmatose -c 10 -C 50 -S 1000 -s {peer}")


@check("udaddy: 4 datagram connections, 20 messages each")
def udaddy(lab):
    cm_pair(lab, "udaddy -c 4 -C 20", "udaddy -c 4 -C 20 -s {peer}")


@check("cmtime: 50 connections made and ended")
def cmtime(lab):
    cm_pair(lab, "cmtime -c 50", "cmtime -c 50 -s {peer}")


@check("rstream: stream sockets over RDMA, data verified")
def rstream(lab):
    cm_pair(lab, "rstream -T v -I 20", "rstream -T v -I 20 -s {peer}")


# perftest

USUAL = "-F -d {dev} -x {gid}"
# -a: 2 bytes to 8 MiB, or to the MTU over UD; -n is the least that perftest accepts.
EVERY_SIZE = USUAL + " -a -n 5"

EXTENDED = ("XRC", "DC")


def connections(lab, transport):
    """Runs one rping after another, until ib_send_bw is through with its sizes."""
    rping = lab.vms[1].spawn("rping -s -P")
    try:
        lab.vms[1].until("rdma resource show cm_id | grep -q 'state LISTEN'")
        client = lab.vms[0].spawn(
            "n=0; until [ -e /run/through ]; do "
            f"rping -c -V -C 50 -a {lab.hosts[1]['ip']} || exit 1; n=$((n + 1)); done; echo $n")
        try:
            perftest(lab, "ib_send_bw", f"{EVERY_SIZE} -c {transport}", timeout=180)
            lab.vms[0].run("touch /run/through")
            times = int(client.wait(60, check=True).out.split()[-1])
        finally:
            lab.vms[0].run("rm -f /run/through")
            client.kill()
    finally:
        rping.kill()
    expect(times > 0, "rping did not end once")
    return f"{times} connections"


for _verb, _transports in (("send", ("RC", "UC", "UD")), ("write", ("RC", "UC")), ("read", ("RC",))):
    for _transport in _transports:
        for _what in ("bw", "lat"):
            check(f"ib_{_verb}_{_what} -a over {_transport}: every power of two")(
                lambda lab, program=f"ib_{_verb}_{_what}", transport=_transport: perftest(
                    lab, program, f"{EVERY_SIZE} -c {transport}", timeout=180))

# Tests that only the device supports, not soft-RoCE. XRC and DC have each of perftest's programs.
for _transport in EXTENDED:
    for _verb in ("send", "write", "read"):
        for _what in ("bw", "lat"):
            check(f"ib_{_verb}_{_what} -a over {_transport}: every power of two", only="hcasim")(
                lambda lab, program=f"ib_{_verb}_{_what}", transport=_transport: perftest(
                    lab, program, f"{EVERY_SIZE} -c {transport}", timeout=180))
    for _operation in ("FETCH_AND_ADD", "CMP_AND_SWAP"):
        for _what in ("bw", "lat"):
            check(f"ib_atomic_{_what}: {_operation} over {_transport}", only="hcasim")(
                lambda lab, program=f"ib_atomic_{_what}", transport=_transport,
                operation=_operation: perftest(
                    lab, program, USUAL + f" -A {operation} -n 200 -c {transport}"))
    for _verb, _more in (("write", ""), ("read", ""), ("atomic", "-A FETCH_AND_ADD")):
        check(f"ib_{_verb}_bw -q 64 over {_transport}", only="hcasim")(
            lambda lab, verb=_verb, more=_more, transport=_transport: perftest(
                lab, f"ib_{verb}_bw", USUAL + f" {more} -q 64 -n 20 -c {transport}" +
                ("" if more else " -s 4096"), timeout=120))
    for _program in ("send_bw", "send_lat", "read_bw", "read_lat", "atomic_bw", "atomic_lat"):
        check(f"ib_{_program} -e over {_transport}: completion events", only="hcasim")(
            lambda lab, program=f"ib_{_program}", transport=_transport: perftest(
                lab, program, USUAL + f" -e -n 200 -c {transport}"))


for _transport in EXTENDED:
    check(f"rping -V meanwhile, as {_transport} carries messages of every size", only="hcasim")(
        lambda lab, transport=_transport: connections(lab, transport))

for _verb in ("send", "write", "read"):
    check(f"ib_{_verb}_bw -q 64")(
        lambda lab, verb=_verb: perftest(lab, f"ib_{verb}_bw", USUAL + " -q 64 -s 4096 -n 20",
                                         timeout=120))

for _verb, _more in (("send", ""), ("read", ""), ("atomic", " -A FETCH_AND_ADD")):
    check(f"ib_{_verb}_bw -b: both directions at once")(
        lambda lab, verb=_verb, more=_more: perftest(lab, f"ib_{verb}_bw",
                                                     USUAL + " -b -n 200" + more))

# WRITE is left out: perftest refuses it ("Events feature not available on WRITE verb").
for _program, _transport in (("send_bw", "RC"), ("send_lat", "RC"), ("send_lat", "UC"),
                             ("send_lat", "UD"), ("read_bw", "RC"), ("read_lat", "RC")):
    check(f"ib_{_program} -e over {_transport}: completion events")(
        lambda lab, program=f"ib_{_program}", transport=_transport: perftest(
            lab, program, USUAL + f" -e -n 200 -c {transport}"))


# Ethernet and RDMA at the same time


def set_mtu(lab, mtu):
    for vm, host in zip(lab.vms, lab.hosts):
        vm.run(f"ip link set {host['netdev']} mtu {mtu}")
        vm.until(f"grep -qx 1 /sys/class/net/{host['netdev']}/carrier")
    for vm, peer in zip(lab.vms, reversed(lab.hosts)):
        vm.until(f"ping -c 1 -W 1 {peer['ip']}")


def received(client):
    end = json.loads(client.out)["end"]
    return end.get("sum_received", end.get("sum"))["bytes"]


# Where a packet that came by the device can be lost: no buffer posted, the kernel's backlog, a
# socket.
DROPS = ("ethtool -S {netdev} | grep -E 'out_of_buffer|discards|dropped'; "
         "cat /proc/net/softnet_stat /proc/net/raw /proc/net/raw6")


def all_at_once(lab, mtu, family):
    """Runs flood ping, TCP and UDP streams beside ib_write_bw."""
    set_mtu(lab, mtu)
    # A raw socket's usual buffer holds a dozen jumbo frames: ping may sleep longer than that.
    for vm in lab.vms:
        vm.run("echo 8388608 > /proc/sys/net/core/rmem_max; "
               "echo 8388608 > /proc/sys/net/core/rmem_default")
    addresses = [host["ip"] for host in lab.hosts]
    if family == 6:
        for i, (vm, host) in enumerate(zip(lab.vms, lab.hosts), 1):
            vm.run(f"ip -6 addr replace fd00::{i}/64 dev {host['netdev']} nodad")
        addresses = ["fd00::1", "fd00::2"]
        lab.vms[0].until(f"ping -c 1 -W 1 {addresses[1]}")
    rdma = "timeout -s INT 60 ib_write_bw " + USUAL + " -D 12"
    servers = [lab.vms[1].spawn(f"iperf3 -s -1 -p {port}") for port in (5301, 5302)]
    try:
        server = lab.vms[1].spawn(rdma.format(dev=lab.hosts[1]["ibdev"], gid=lab.hosts[1]["gid"]))
        lab.vms[1].until("ss -Htln sport = :18515 | grep -q .")
        client = lab.vms[0].spawn(rdma.format(dev=lab.hosts[0]["ibdev"], gid=lab.hosts[0]["gid"]) +
                                  f" {lab.hosts[1]['ip']}")
        jobs = [lab.vms[0].spawn(command) for command in (
            f"ping -f -q -c 300 -s {mtu - 48} {addresses[1]}",
            f"iperf3 -c {addresses[1]} -p 5301 -n 4M -J",
            f"iperf3 -c {addresses[1]} -p 5302 -u -b 8M -l {mtu - 48} -n 1M -J")]
        ping, tcp, udp = (job.wait(90, check=True) for job in jobs)
        expect(" 0% packet loss" in ping.out, ping.out + "\n".join(
            str(vm.run(DROPS.format(netdev=host["netdev"]), check=False))
            for vm, host in zip(lab.vms, lab.hosts)))
        expect(received(tcp) >= 4 << 20, tcp.out[-500:])
        expect(received(udp) > 0, udp.out[-500:])
        result = client.wait(90, check=True)
        server.wait(90, check=True)
        expect(re.search(r"^\s*65536\s+\d+", result.out, re.M), str(result))
    finally:
        for job in servers:
            job.kill()
        set_mtu(lab, 1500)


for _mtu in (1500, 9000):
    for _family in (4, 6):
        check(f"flood ping, iperf3 over TCP and UDP, IPv{_family}, MTU {_mtu}, RDMA at the same time",
              only="hcasim")(
            lambda lab, mtu=_mtu, family=_family: all_at_once(lab, mtu, family))


# The end

check("no counter of sequence, access or length errors has moved in all this traffic",
      only="hcasim")(suite.no_errors_counted)

# Runs after the counters were checked. All QPs receive from one queue, which perftest requires to
# be longer than the number of QPs, and makes as long as a QP has messages. Most QPs find it empty,
# and packets behind an RNR NAK are out of sequence.
for _transport in EXTENDED:
    check(f"ib_send_bw -q 64 over {_transport}", only="hcasim")(
        lambda lab, transport=_transport: perftest(
            lab, "ib_send_bw", USUAL + f" -q 64 -n 100 -c {transport} -s 4096", timeout=120))

# The client does not wait for its server (suite.pingpong_xsrq).
for _wait, _how in (("", "polling"), (" -e", "by events")):
    check(f"ibv_xsrq_pingpong{_wait}: 1 byte to 1 MiB, {_how}", only="hcasim")(
        lambda lab, wait=_wait: [suite.xsrq_pingpong(lab, f"{wait} -n 20 -s {size}")
                                 for size in (1, 1025, 65537, 1 << 20)] and None)

check("no warning or error of mlx5 or infiniband in either guest's dmesg")(suite.clean_dmesg)
check("both guests power off")(suite.powers_off)
check("no warning or error on either console, power-off included")(suite.clean_console)
check("the device reported no unhandled command or register, and no error", only="hcasim")(
    suite.clean_device_log)
