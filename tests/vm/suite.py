# SPDX-License-Identifier: BSD-2-Clause
"""Tests what two stock guests must be able to do with each other through the device.

Each check is a statement and the function that finds out whether it holds. The checks run in this
order in one boot of two guests, from power-on to power-off. A check that needs RDMA does not test
the bring-up: if the bring-up fails, all later checks fail.
"""
import concurrent.futures
import json
import os
import re

import capture
import transport_rules
from vmlib import VmError

CHECKS = []

# Iterations and sizes are small: a guest under TCG moves tens of MB a second.
BANDWIDTH = "-F -d {dev} -x {gid} -s 65536 -n 200"
LATENCY = "-F -d {dev} -x {gid} -s 8 -n 500"


class Skip(Exception):
    """The check does not apply; the message is the reason."""


def registrar(checks):
    """Returns a decorator that puts a check on a list, with its statement and the device that it is
    about."""
    def check_(statement, only=None):
        def register(function):
            checks.append((statement, only, function))
            return function
        return register
    return check_


check = registrar(CHECKS)


def expect(condition, message):
    if not condition:
        raise AssertionError(message)


# Bring-up


@check("both guests boot")
def boots(lab):
    lab.boot()


@check("lspci shows a ConnectX-5 (15b3:1017)", only="hcasim")
def lspci(lab):
    for vm in lab.vms:
        found = vm.run("lspci -nn -d 15b3:").out
        expect("[15b3:1017]" in found and "ConnectX-5" in found, f"lspci: {found!r}")
        # The driver and vfio look for an MSI-X table and a function-level reset.
        details = vm.run("lspci -vv -d 15b3:").out
        for what in ("MSI-X:", "FLReset+", "Express", "Part number: MCX516A-CCAT", "checksum good",
                     "Alternative Routing-ID", "Secondary PCI Express"):
            expect(what in details, f"no {what} in lspci -vv:\n{details}")


@check("the drivers load; a netdev with carrier and an active RDMA port appear")
def comes_up(lab):
    lab.up()


@check("ibv_devinfo: PORT_ACTIVE, Ethernet, an MTU of 1024 or more")
def devinfo(lab):
    for vm, host in zip(lab.vms, lab.hosts):
        text = vm.run(f"ibv_devinfo -v -d {host['ibdev']}").out
        expect("PORT_ACTIVE" in text and re.search(r"link_layer:\s+Ethernet", text), text)
        mtu = int(re.search(r"active_mtu:\s+(\d+)", text)[1])
        expect(mtu >= 1024, f"active_mtu {mtu}")


@check("RoCEv2 GIDs stand for the IPv4 and the IPv6 link-local address")
def gids(lab):
    for vm, host in zip(lab.vms, lab.hosts):
        port = f"/sys/class/infiniband/{host['ibdev']}/ports/1"
        # Most of the table is empty: reading such an entry's type fails.
        table = vm.run(f"cd {port}; grep -Hs v2 gid_attrs/types/* | while IFS=/: read -r _ _ i _; "
                       "do cat gids/$i; done").out
        v2 = table.split()
        expect(any(gid.startswith("fe80:") for gid in v2), f"no link-local GID:\n{table}")
        expect(any(":ffff:0a00:000" in gid for gid in v2), f"no IPv4 GID:\n{table}")


def v1_gid(vm, host):
    """Returns the index of the host's GID of RoCE version 1 that is its IPv4 address."""
    return vm.run(f"cd /sys/class/infiniband/{host['ibdev']}/ports/1; want=$(cat gids/{host['gid']}); "
                  "grep -ls 'RoCE v1' gid_attrs/types/* | while IFS=/ read -r _ _ i; "
                  "do [ $(cat gids/$i) = $want ] && echo $i; done; true").out.strip()


@check("each address has a GID of RoCE version 1, and RC, UC and UD messages and WRITEs arrive by it as they were sent",
       only="hcasim")
def roce_v1(lab):
    usual = lab.hosts
    lab.hosts = [dict(host, gid=v1_gid(vm, host)) for vm, host in zip(lab.vms, usual)]
    try:
        for host, other in zip(lab.hosts, usual):
            expect(host["gid"] and host["gid"] != other["gid"], f"GID {host['gid']} of version 1, {other['gid']} of 2")
        for kind in ("rc", "uc", "ud"):
            pingpong(lab, kind)
        perftest(lab, "ib_write_bw", BANDWIDTH)
        perftest(lab, "ib_read_lat", LATENCY)
        lab.has_v1 = True
    finally:
        lab.hosts = usual
    return f"index {v1_gid(lab.vms[0], usual[0])}"


# The netdev


@check("ping reaches the peer, both ways, without loss")
def ping(lab):
    for vm, peer in zip(lab.vms, reversed(lab.hosts)):
        vm.run(f"ping -c 10 -i 0.2 -W 5 {peer['ip']}")


@check("ping of a full 1500-byte frame that may not be fragmented")
def ping_full(lab):
    for vm, peer in zip(lab.vms, reversed(lab.hosts)):
        vm.run(f"ping -M do -s 1472 -c 3 -i 0.2 -W 5 {peer['ip']}")


@check("ping of datagrams of 60000 bytes, which travel as fragments")
def ping_fragments(lab):
    lab.vms[0].run(f"ping -s 60000 -c 3 -i 0.2 -W 5 {lab.hosts[1]['ip']}")


@check("ping over IPv6 link-local addresses")
def ping6(lab):
    address = lab.vms[1].run(
        f"ip -6 -br addr show dev {lab.hosts[1]['netdev']} scope link").out.split()[2]
    lab.vms[0].run(f"ping -6 -c 3 -i 0.2 -W 5 {address.split('/')[0]}%{lab.hosts[0]['netdev']}")


@check("a jumbo frame of 9000 bytes passes after the MTU is raised on both sides")
def jumbo(lab):
    def set_mtu(mtu):
        for vm, host in zip(lab.vms, lab.hosts):
            vm.run(f"ip link set {host['netdev']} mtu {mtu}")
            vm.until(f"grep -qx 1 /sys/class/net/{host['netdev']}/carrier")
    set_mtu(9000)
    try:
        lab.vms[0].run(f"ping -M do -s 8972 -c 3 -i 0.2 -W 5 {lab.hosts[1]['ip']}")
    finally:
        set_mtu(1500)


@check("a VLAN interface reaches its peer")
def vlan(lab):
    for i, (vm, host) in enumerate(zip(lab.vms, lab.hosts), 1):
        vm.run(f"modprobe 8021q; ip link add v7 link {host['netdev']} type vlan id 7; "
               f"ip addr add 10.0.7.{i}/24 dev v7; ip link set v7 up")
    try:
        lab.vms[0].run("ping -c 3 -i 0.2 -W 5 10.0.7.2")
    finally:
        for vm in lab.vms:
            vm.run("ip link del v7")


TC_TUNNEL = (
    "modprobe -a act_tunnel_key act_vlan act_mirred cls_flower vxlan veth; ip link add t0 type veth peer name t1 && "
    "ip addr add 10.0.8.{i}/24 dev t1 && ip link set t1 mtu 1400 up && ip link set t0 up && "
    "ip link add vx0 type vxlan external dstport 4789 && ip link set vx0 up && "
    "tc qdisc add dev t0 ingress && tc qdisc add dev vx0 ingress && "
    "tc filter add dev t0 ingress protocol all flower action vlan push id 9 pipe action tunnel_key set "
    "src_ip {ip} dst_ip {peer} id 42 dst_port 4789 pipe action mirred egress redirect dev vx0 && "
    "tc filter add dev vx0 ingress protocol 802.1q flower enc_key_id 42 vlan_id 9 action tunnel_key unset pipe "
    "action vlan pop pipe action mirred egress redirect dev t0")


@check("tc flower puts frames with a VLAN tag into VXLAN tunnels and takes them out, under ping and TCP")
def tc_tunnel(lab):
    for i, (vm, host, peer) in enumerate(zip(lab.vms, lab.hosts, reversed(lab.hosts)), 1):
        vm.run(TC_TUNNEL.format(i=i, ip=host["ip"], peer=peer["ip"]))
    try:
        lab.vms[0].run("ping -c 3 -i 0.2 -W 5 -s 1300 10.0.8.2")
        lab.pair("iperf3 -s -1", "iperf3 -c 10.0.8.2 -n 4M", listens="tcp:5201")
    finally:
        for vm in lab.vms:
            vm.run("ip link del vx0; ip link del t0", check=False)


@check("ethtool -N drops the frames of a rule, and of no other", only="hcasim")
def ntuple(lab):
    (a, b), host = lab.vms, lab.hosts[1]
    ping = "ping -c 2 -i 0.2 -W 1 10.0.0."
    b.run(f"ip addr add 10.0.0.12/24 dev {host['netdev']} && ethtool -K {host['netdev']} ntuple on && "
          f"ethtool -N {host['netdev']} flow-type ip4 src-ip {lab.hosts[0]['ip']} dst-ip 10.0.0.12 action -1 loc 5")
    try:
        a.run(f"{ping}2")
        expect(a.run(f"{ping}12", check=False).status, "frames of the rule arrive")
        b.run(f"ethtool -N {host['netdev']} delete 5")
        a.run(f"{ping}12")
    finally:
        b.run(f"ip addr del 10.0.0.12/24 dev {host['netdev']}; ethtool -K {host['netdev']} ntuple off")


IPERF_MIB = 32
# iperf3 before 3.17 ends when everything is in the sender's socket: unread data may then be in its
# buffer (tcp_wmem: 4 MiB) and in the receiver's (tcp_rmem: 6 MiB).
IPERF_UNDER_WAY_MIB = 10


def iperf_mbps(lab, arguments):
    client, _ = lab.pair("iperf3 -s -1", f"iperf3 -c {{peer}} -n {IPERF_MIB}M -J {arguments}",
                         listens="tcp:5201")
    end = json.loads(client.out)["end"]
    received = end["sum_received"]["bytes"]
    expect(received >= IPERF_MIB - IPERF_UNDER_WAY_MIB << 20, f"only {received} bytes arrived")
    return end["sum_received"]["bits_per_second"] / 1e6


def iperf(lab, arguments):
    return f"{iperf_mbps(lab, arguments) / 8:.1f} MB/s"


@check("iperf3: TCP from a to b")
def iperf_forward(lab):
    return iperf(lab, "")


@check("iperf3: TCP from b to a")
def iperf_reverse(lab):
    return iperf(lab, "-R")


# Serves one file, and prints the hash of what the other side gets.
SERVE = ("cd /tmp && python3 -c 'import http.server as h; "
         "h.HTTPServer((\"\", 8000), h.SimpleHTTPRequestHandler).handle_request()'")
FETCH = ("python3 -c 'import urllib.request as u, hashlib as h; "
         "print(h.sha256(u.urlopen(\"http://{peer}:8000/sent\").read()).hexdigest())'")


def ethtool_counters(vm, host):
    text = vm.run(f"ethtool -S {host['netdev']}").out
    return {name: int(value) for name, value in re.findall(r"(\w+): (\d+)", text)}


@check("mlx5e compresses CQEs if rx_cqe_compress is on, and a file and TCP traffic arrive unchanged, on, off and on again",
       only="hcasim")
def compressed_cqes(lab):
    said = []
    flag = "ethtool --set-priv-flags {} rx_cqe_compress {}"
    want = lab.vms[1].run("head -c 20M /dev/urandom >/tmp/sent; sha256sum /tmp/sent").out.split()[0]
    try:
        for state in ("on", "off", "on"):
            for vm, host in zip(lab.vms, lab.hosts):
                vm.run(flag.format(host["netdev"], state))
                vm.until(f"grep -qx 1 /sys/class/net/{host['netdev']}/carrier")
            before = [ethtool_counters(vm, host) for vm, host in zip(lab.vms, lab.hosts)]
            got, _ = lab.pair(SERVE, FETCH, listens="tcp:8000")
            expect(got.out.strip() == want, f"{state}: the file has another hash: {got.out}")
            speed = iperf(lab, "")
            lab.vms[0].run(f"ping -c 10 -i 0.05 -s 60000 {lab.hosts[1]['ip']}")
            for vm, host, old in zip(lab.vms, lab.hosts, before):
                new = ethtool_counters(vm, host)
                blocks, packets, all_packets = (
                    new[name] - old[name]
                    for name in ("rx_cqe_compress_blks", "rx_cqe_compress_pkts", "rx_packets"))
                expect((blocks > 0) == (state == "on"), f"{vm.name}, {state}: {blocks} sessions")
                said.append(f"{vm.name} {state}: {packets} of {all_packets} packets in {blocks} "
                            f"sessions, {speed}")
    finally:
        for vm, host in zip(lab.vms, lab.hosts):
            vm.run(flag.format(host["netdev"], "off"))
    for vm in lab.vms:
        vm.run("! dmesg | grep -i 'csum failure'")
    return "; ".join(said)


@check("ethtool -K lro on: mlx5e gets merged TCP segments, and a file and TCP traffic arrive unchanged, on and off",
       only="hcasim")
def large_receive_offload(lab):
    said = []
    want = lab.vms[1].run("head -c 8M /dev/urandom >/tmp/sent; sha256sum /tmp/sent").out.split()[0]
    try:
        for state in ("on", "off"):
            for vm, host in zip(lab.vms, lab.hosts):
                vm.run(f"ethtool -K {host['netdev']} lro {state}")
                vm.run(f"ethtool -k {host['netdev']} | grep -x 'large-receive-offload: {state}'")
                vm.until(f"grep -qx 1 /sys/class/net/{host['netdev']}/carrier")
            before = [ethtool_counters(vm, host) for vm, host in zip(lab.vms, lab.hosts)]
            got, _ = lab.pair(SERVE, FETCH, listens="tcp:8000")
            expect(got.out.strip() == want, f"{state}: the file has another hash: {got.out}")
            speed = iperf(lab, "")
            for vm, host, old in zip(lab.vms, lab.hosts, before):
                new = ethtool_counters(vm, host)
                merged, size = (new[name] - old[name] for name in ("rx_lro_packets", "rx_lro_bytes"))
                said.append(f"{vm.name} {state}: {merged} packets of {size} bytes, {speed}")
                # each of them receives 8 MB or more, either the file or iperf3's data
                expect((size > 2 << 20) == (state == "on"), said[-1])
    finally:
        for vm, host in zip(lab.vms, lab.hosts):
            vm.run(f"ethtool -K {host['netdev']} lro off")
    for vm in lab.vms:
        vm.run("! dmesg | grep -i 'csum failure'")
    return "; ".join(said)


# Prints how many of 5 echo replies come with the right frame check sequence.
SEES_FCS = """cat >/tmp/fcs.py <<'END'
import socket, subprocess, sys, zlib
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
s.bind((sys.argv[1], 0))
s.settimeout(20)
subprocess.Popen(["ping", "-c", "5", "-i", "0.2", sys.argv[2]], stdout=subprocess.DEVNULL)
right = seen = 0
while seen < 5:
    frame, address = s.recvfrom(4096)
    if address[2] != socket.PACKET_OUTGOING and frame[12:14] == b"\\x08\\x00" and frame[23] == 1:
        seen += 1
        right += zlib.crc32(frame[:-4]) == int.from_bytes(frame[-4:], "little")
print(right)
END
python3 /tmp/fcs.py {} {}"""


@check("ethtool -K rx-fcs on: packet sockets see the frame check sequence, and TCP works", only="hcasim")
def frame_check_sequence(lab):
    vm, host = lab.vms[0], lab.hosts[0]
    see = SEES_FCS.format(host["netdev"], lab.hosts[1]["ip"])
    try:
        vm.run(f"ethtool -K {host['netdev']} rx-fcs on")
        vm.until(f"grep -qx 1 /sys/class/net/{host['netdev']}/carrier")
        expect(vm.run(see).out.strip() == "5", "a frame lacks its frame check sequence")
        iperf(lab, "-R")
    finally:
        vm.run(f"ethtool -K {host['netdev']} rx-fcs off")
    expect(vm.run(see).out.strip() == "0", "a frame still has a frame check sequence")
    vm.run("! dmesg | grep -i 'csum failure'")


@check("a program in a guest reads CQs with compressed CQEs itself", only="hcasim")
def compressed_by_a_program(lab):
    said = lab.vms[0].run(f"/mnt/compressed -d {lab.hosts[0]['ibdev']} -g {lab.hosts[0]['gid']}").out
    least = min(float(figure) for figure in re.findall(r"([\d.]+) bytes of CQEs", said))
    expect(least < 32, said)
    return f"{least} bytes of CQEs for a completion"


@check("wall clock stamps of completions are the time of the PTP clock", only="hcasim")
def stamps_of_the_ptp_clock(lab):
    vm, host = lab.vms[0], lab.hosts[0]
    index = re.search(r"(?:PTP Hardware Clock|provider index): (\d+)", vm.run(f"ethtool -T {host['netdev']}").out)[1]
    return vm.run(f"/mnt/stamps -d {host['ibdev']} -g {host['gid']} /dev/ptp{index}").out.strip()


# RDMA


def pingpong(lab, kind, arguments=""):
    command = f"ibv_{kind}_pingpong -c -d {{dev}} -g {{gid}} {arguments}"
    client, server = lab.pair(command)
    for result in (client, server):
        expect("iters in" in result.out and "invalid" not in result.out + result.err, str(result))
    return re.search(r"= ([\d.]+ usec/iter)", client.out)[1]


for _kind in ("rc", "uc", "ud", "srq"):
    check(f"ibv_{_kind}_pingpong -c: every message arrives as it was sent")(
        lambda lab, kind=_kind: pingpong(lab, kind))


@check("ibv_rc_pingpong --dm -c: messages from device memory to device memory arrive as they were sent")
def pingpong_dm(lab):
    return pingpong(lab, "rc", "--dm")


@check("device_memory: WRITEs, READs, SENDs and atomics from the memory of one device to that of the other; every byte compared",
       only="hcasim")
def memory_to_memory(lab):
    results = lab.pair("/mnt/device_memory -d {dev} -g {gid} -p 18515")
    for result in results:
        expect("48 lengths" in result.out and "all data right" in result.out, str(result))
    return results[0].out.strip()


def xsrq_pingpong(lab, arguments=""):
    """Runs ibv_xsrq_pingpong. It has no option that compares the data; its -c is the number of clients."""
    results = lab.pair(f"ibv_xsrq_pingpong -d {{dev}} -g {{gid}} {arguments}")
    for result in results:
        expect(result.out.rstrip().endswith("success"), str(result))


@check("ibv_xsrq_pingpong: XRC QPs and their shared receive queues")
def pingpong_xsrq(lab):
    # Its client does not wait until the server's QPs are ready to receive. Of a message of several
    # packets the first packet would now and then be lost, and the next would be a sequence error,
    # which is right, and is counted; a message of one packet is only retransmitted.
    return xsrq_pingpong(lab, "-s 1024")


@check("ibv_rc_pingpong -c with messages of 256 KiB, of many packets each")
def pingpong_long(lab):
    return pingpong(lab, "rc", "-s 262144 -n 50")


@check("ibv_rc_pingpong -c -e: completion events wake the program")
def pingpong_events(lab):
    return pingpong(lab, "rc", "-e -n 300")


@check("ibv_srq_pingpong -c -e with 16 QPs: completion events wake the program")
def pingpong_srq_events(lab):
    return pingpong(lab, "srq", "-e -n 300")


@check("rping -V -C 100: connections by the RDMA-CM, READ and WRITE with the data compared")
def rping(lab):
    client, _ = lab.pair("rping -s -V -C 100", "rping -c -V -C 100 -a {peer}", listens="cm")
    expect("error" not in (client.out + client.err).lower(), str(client))


@check("rping over IPv6 link-local addresses")
def rping6(lab):
    address = lab.vms[1].run(
        f"ip -6 -br addr show dev {lab.hosts[1]['netdev']} scope link").out.split()[2]
    lab.pair("rping -s -V -C 10 -a ::",
             f"rping -c -V -C 10 -a {address.split('/')[0]}%{lab.hosts[0]['netdev']}",
             listens="cm")


# perftest prints this if it does not find its clock's frequency because the machine is busy: then
# all its operations are right, and all its figures are 0.
NO_CLOCK = "Correlation coefficient"


def perftest(lab, program, arguments, timeout=60):
    client, _ = lab.pair(f"{program} {arguments}", timeout=timeout)
    rows = [line.split() for line in client.out.splitlines()
            if re.match(r"\s*\d+\s+\d+\s+[\d.]", line)]
    expect(rows, f"no result:\n{client}")
    # Bandwidth: bytes, iterations, peak, average, Mmsg/s. Latency: ..., min, max, typical.
    bandwidth = program.endswith("_bw")
    value = float(rows[-1][3 if bandwidth else 4])
    if value == 0 and NO_CLOCK in client.out + client.err:
        expect(int(rows[-1][1]) > 0, f"no iterations:\n{client}")
        return "no figure: perftest did not find its clock's frequency"
    expect(value > 0, f"a rate or time of nothing:\n{client}")
    return f"{value:g} {'MiB/s' if bandwidth else 'us typical'}"


for _verb in ("send", "write", "read"):
    check(f"ib_{_verb}_bw: 64 KiB messages over RC")(
        lambda lab, verb=_verb: perftest(lab, f"ib_{verb}_bw", BANDWIDTH))
    check(f"ib_{_verb}_lat: 8-byte messages over RC")(
        lambda lab, verb=_verb: perftest(lab, f"ib_{verb}_lat", LATENCY))

for _operation in ("FETCH_AND_ADD", "CMP_AND_SWAP"):
    _arguments = f"-F -d {{dev}} -x {{gid}} -A {_operation}"
    check(f"ib_atomic_bw: {_operation} over RC")(
        lambda lab, arguments=_arguments: perftest(lab, "ib_atomic_bw", arguments + " -n 500"))
    check(f"ib_atomic_lat: {_operation} over RC")(
        lambda lab, arguments=_arguments: perftest(lab, "ib_atomic_lat", arguments + " -n 300"))


@check("ib_write_bw in both directions at once", only="hcasim")  # soft-RoCE of Linux 6.12 fails it
def bidirectional(lab):
    return perftest(lab, "ib_write_bw", BANDWIDTH + " -b")


@check("ib_send_bw with 8 QPs")
def many_qps(lab):
    return perftest(lab, "ib_send_bw", "-F -d {dev} -x {gid} -s 4096 -n 200 -q 8")


# The number of operations of the data check below; the project vouches for HCASIM_DATA_OPS=100000.
DATA_OPS = int(os.environ.get("HCASIM_DATA_OPS", "10000"))
DATA_SEED = int(os.environ.get("HCASIM_DATA_SEED", "1"))


@check("datacheck: random operations of every kind over RC, SRQ, UC and UD; every byte compared",
       only="hcasim")
def data(lab):
    command = f"/mnt/datacheck -d {{dev}} -g {{gid}} -n {DATA_OPS} -s {DATA_SEED}"
    results = lab.pair(command, timeout=120 + DATA_OPS // 50)
    for result in results:
        expect(result.out.endswith(f"\n{DATA_OPS} operations, 0 differences\n"), str(result))
        expect("lists of up to 30 pieces" in result.out, str(result))
    return f"{DATA_OPS} operations"


@check("the device writes no page that mremap(), fork() or the swap has taken from an on-demand region, and loses no data",
       only="hcasim")
def pages_that_go(lab):
    vm, host = lab.vms[0], lab.hosts[0]
    vm.run("modprobe null_blk memory_backed=1 gb=1 && mkswap /dev/nullb0 && swapon /dev/nullb0")
    try:
        said = vm.run(f"RDEV_GID_INDEX={host['gid']} /mnt/paged_moves 5", timeout=180).out
    finally:
        vm.run("swapoff /dev/nullb0 && rmmod null_blk", timeout=60)
    expect(re.search(r"[1-9]\d* were swapped out", said), said)
    return said.strip()


@check("litmus: the peer's CPU sees WRITEs, SENDs and atomics in the promised order",
       only="hcasim")
def ordering(lab):
    # -1: TCG executes the locked instructions of a machine with one CPU as plain ones.
    results = lab.pair("/mnt/litmus -1 -d {dev} -g {gid} -n 300", timeout=180)
    for result in results:
        expect(result.out.endswith("\n300 rounds of each, 0 wrong\n"), str(result))


@check("atomics: one word changed by two HCAs at the same time is exact, and beside a CPU where promised",
       only="hcasim")
def everybodys_word(lab):
    # A guest of one CPU under TCG does not have such atomics: tests/vm/one-wire has a guest of two
    # CPUs.
    _, server = lab.pair("/mnt/atomics -d {dev} -g {gid} -p 18515", timeout=180)
    expect(server.out.count(": exact") == 3, str(server))


# Counters


def counters(vm, host):
    """Returns the RDMA port's counters as rdma statistic prints them."""
    # A number is after its name: "link mlx5_0/1 rx_write_requests 0 ...".
    words = vm.run(f"rdma statistic show link {host['ibdev']}/1").out.split()[2:]
    return {name: int(value) for name, value in zip(words[::2], words[1::2])}


@check("rdma statistic counts the WRITE, READ and atomic requests that a responder executed",
       only="hcasim")
def rdma_statistic(lab):
    for counter, command, atomic in (
            ("rx_write_requests", "ib_write_bw -s 1024", False),
            ("rx_read_requests", "ib_read_bw -s 1024", False),
            ("rx_atomic_requests", "ib_atomic_bw -A FETCH_AND_ADD", True)):
        before = counters(lab.vms[1], lab.hosts[1])[counter]
        lab.pair(command + " -F -d {dev} -x {gid} -n 100")
        grown = counters(lab.vms[1], lab.hosts[1])[counter] - before
        expect(grown >= 100, f"{counter} grew by {grown} in 100 requests")
        expect(grown <= 250, f"{counter} grew by {grown} in 100 requests and a warm-up")


@check("rdma statistic binds a counter to each QP while the QP exists",
       only="hcasim")
def rdma_statistic_of_a_qp(lab):
    vm, port = lab.vms[1], f"{lab.hosts[1]['ibdev']}/1"
    before = counters(vm, lab.hosts[1])["rx_write_requests"]
    vm.run(f"rdma statistic qp set link {port} auto type on")
    looks = vm.spawn("for i in $(seq 300); do "
                     f"rdma -j statistic qp show link {port} | tr -d '\\n' | grep '\"rx_write_requests\":[1-9]' && break; "
                     "sleep 0.1; done")
    lab.pair("ib_write_bw -F -d {dev} -x {gid} -s 1024 -D 3")
    shown = json.loads(looks.wait(60, check=True).out)
    vm.run(f"rdma statistic qp set link {port} auto off")
    expect(any(row["rx_write_requests"] for row in shown), f"no QP has counted a WRITE: {shown}")
    # The counts of a counter set that was destroyed are in the port's sum.
    after = counters(vm, lab.hosts[1])["rx_write_requests"]
    seen = max(row["rx_write_requests"] for row in shown)
    expect(after - before >= seen, f"the port counted {after - before} WRITEs, a QP of it {seen}")


@check("rdma statistic counts RoCE packets with congestion marks if the counter is enabled",
       only="hcasim")
def rdma_statistic_of_marked_packets(lab):
    vm, port = lab.vms[0], f"{lab.hosts[0]['ibdev']}/1"
    said = vm.run(f"rdma statistic mode supported link {port}").out
    expect("cc_rx_ce_pkts" in said, said)
    vm.run(f"rdma statistic set link {port} optional-counters cc_rx_ce_pkts")
    # 3 is "congestion experienced" (RFC 3168). No QP receives these packets: the rule counts them.
    marked = ("import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); "
              f"s.bind(('', {capture.PROGRAMS_PORT})); "
              "s.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, 3); "
              "[s.sendto(bytes(40), ('{ip}', 4791)) for _ in range(20)]")
    lab.vms[1].run(f'python3 -c "{marked.format(ip=lab.hosts[0]["ip"])}"')
    pingpong(lab, "rc", "-n 100")
    counted = counters(vm, lab.hosts[0])["cc_rx_ce_pkts"]
    expect(counted == 20, f"counted {counted} of 20")
    vm.run(f"rdma statistic unset link {port} optional-counters")
    pingpong(lab, "rc", "-n 100")


@check("a sniffer gets copies of RoCE packets in both directions", only="hcasim")
def sniffer(lab):
    vm, host = lab.vms[0], lab.hosts[0]
    job = vm.spawn(f"/mnt/sniffer {host['ibdev']} 150")
    vm.until(f"grep -q sniffing /run/hcasim/{job.number}/out")
    pingpong(lab, "rc", "-n 50")
    said = job.wait(30, check=True).out
    frames = {mac: int(count) for count, mac in re.findall(r"(\d+) frames from (\S+)", said)}
    macs = [guest.run(f"cat /sys/class/net/{at['netdev']}/address").out.strip()
            for guest, at in zip(lab.vms, lab.hosts)]
    expect(set(frames) == set(macs) and min(frames.values()) >= 50, said)


# Counters that a lossless wire and correct programs never raise. A local ACK timeout, and the
# duplicate after it, only mean that a busy host let a peer wait.
ERRORS = ("out_of_sequence", "packet_seq_err", "implied_nak_seq_err", "req_remote_access_errors",
          "resp_remote_access_errors", "req_remote_invalid_request", "resp_local_length_error")


@check("no counter of sequence, access or length errors has moved in all this traffic",
       only="hcasim")
def no_errors_counted(lab):
    for vm, host in zip(lab.vms, lab.hosts):
        counted = counters(vm, host)
        bad = {name: counted[name] for name in ERRORS if counted[name]}
        moved = {name: value for name, value in counted.items() if value}
        expect(not bad, f"{vm.name}: {bad}, of {moved}")


@check("ethtool -S counts the frames of a ping", only="hcasim")
def ethtool(lab):
    def packets(vm, host):
        text = vm.run(f"ethtool -S {host['netdev']}").out
        return {name: int(value) for name, value in re.findall(r"(\w+): (\d+)", text)}
    before = [packets(vm, host) for vm, host in zip(lab.vms, lab.hosts)]
    lab.vms[0].run(f"ping -c 20 -i 0.05 {lab.hosts[1]['ip']}")
    after = [packets(vm, host) for vm, host in zip(lab.vms, lab.hosts)]
    for old, new, vm in zip(before, after, lab.vms):
        for name in ("rx_packets", "tx_packets", "rx_packets_phy", "tx_packets_phy"):
            expect(name in new, f"{vm.name}: ethtool -S has no {name}")
            grown = new[name] - old[name]
            expect(20 <= grown <= 60, f"{vm.name}: {name} grew by {grown} in 20 pings")


@check("sysfs counts the port's data in both directions", only="hcasim")
def sysfs_counters(lab):
    def words(vm, host, name):
        path = f"/sys/class/infiniband/{host['ibdev']}/ports/1/counters/{name}"
        return int(vm.run(f"cat {path}").out)
    before = (words(lab.vms[0], lab.hosts[0], "port_xmit_data"),
              words(lab.vms[1], lab.hosts[1], "port_rcv_data"))
    lab.pair("ib_write_bw -F -d {dev} -x {gid} -s 65536 -n 100")
    after = (words(lab.vms[0], lab.hosts[0], "port_xmit_data"),
             words(lab.vms[1], lab.hosts[1], "port_rcv_data"))
    # The unit is four bytes (IBTA 16.1.3.5); a warm-up adds to it.
    least = 100 * 65536 // 4
    for old, new, name in zip(before, after, ("port_xmit_data", "port_rcv_data")):
        expect(least <= new - old < 3 * least, f"{name} grew by {new - old}, not about {least}")


# What users and monitoring read


@check("every counter file of the port in sysfs can be read and holds a number",
       only="hcasim")
def sysfs_files(lab):
    for vm, host in zip(lab.vms, lab.hosts):
        port = f"/sys/class/infiniband/{host['ibdev']}/ports/1"
        said = vm.run(f"cd {port}; for f in counters/* hw_counters/*; do "
                      "echo $f $(cat $f 2>&1); done").out.splitlines()
        # 23 of the first since Linux 6.1, 17 or more of the others on a ConnectX-5.
        expect(len(said) >= 40, f"{vm.name}: only {len(said)} files")
        bad = [line for line in said if not re.fullmatch(r"\S+ \d+", line)]
        expect(not bad, f"{vm.name}:\n" + "\n".join(bad))


@check("congestion control is read and set as on a card", only="hcasim")
def congestion(lab):
    vm, host = lab.vms[0], lab.hosts[0]
    params = f"/sys/kernel/debug/mlx5/{host['pci']}/cc_params"
    counters = f"/sys/class/infiniband/{host['ibdev']}/ports/1/hw_counters"
    for name in ("np_ecn_marked_roce_packets", "np_cnp_sent", "rp_cnp_handled", "rp_cnp_ignored"):
        said = vm.run(f"cat {counters}/{name}").out.strip()
        expect(said.isdigit(), f"{name}: {said!r}")
    said = vm.run(f"cd {params}; for f in *; do echo $f $(cat $f 2>&1); done").out.splitlines()
    values = dict(line.split(maxsplit=1) for line in said)
    expect(len(values) >= 18, f"only {len(values)} parameters: {said}")
    for name, value in (("rp_time_reset", "300"), ("rp_gd", "11"), ("rp_dce_tcp_g", "1019"),
                        ("np_cnp_dscp", "48"), ("np_cnp_prio", "6")):
        expect(values.get(name) == value, f"{name} is {values.get(name)!r}, not {value}")
    said = vm.run(f"cd {params}; for v in 40 5; do echo $v > rp_ai_rate; cat rp_ai_rate; done").out.split()
    expect(said == ["40", "5"], f"set to 40 and back to 5: {said}")


@check("ethtool -S -m -i -k --show-fec and devlink health succeed", only="hcasim")
def tools(lab):
    vm, host = lab.vms[0], lab.hosts[0]
    pci = f"pci/{host['pci']}"
    for command, pattern in (
            (f"ethtool -S {host['netdev']}", r"rx_packets_phy: \d+"),
            (f"ethtool -m {host['netdev']}", r"Identifier\s+: 0x11 \(QSFP28\)"),
            (f"ethtool -i {host['netdev']}", r"driver: mlx5_core"),
            (f"ethtool -k {host['netdev']}", r"rx-checksumming: on"),
            (f"ethtool --show-fec {host['netdev']}", r"Active FEC encoding: \w+"),
            (f"ethtool {host['netdev']}", r"Speed: 100000Mb/s"),
            ("devlink health show", r"reporter fw\n\s+state healthy"),
            (f"devlink health diagnose {pci} reporter fw", r"Syndrome: 0"),
            (f"devlink dev info {pci}", r"driver mlx5_core")):
        said = vm.run(command).out
        expect(re.search(pattern, said), f"{command}: no {pattern!r} in\n{said}")


@check("Mellanox's tools read the card: mstflint, mstconfig, mstlink, mstreg, mstmcra, mstvpd", only="hcasim")
def vendor_tools(lab):
    vm, host = lab.vms[0], lab.hosts[0]
    where = host["pci"].removeprefix("0000:")
    for command, patterns in (
            (f"mstflint -d {where} q full", (r"FW Version:\s+16\.", r"Part Number:\s+MCX516A-CCAT\n",
                                            r"Base MAC:\s+020000ca5101\s+1\n", r"PSID:\s+MT_0000000012\n")),
            (f"mstconfig -d {where} -e q", (r"Device type:\s+ConnectX5", r"LINK_TYPE_P1(\s+ETH\(2\)){3}")),
            (f"mstlink -d {where} -m -c --show_fec", (r"State\s+: .*Active", r"Speed\s+: .*100GbE", r"Width\s+: .*4x",
                                                     r"No issue was observed", r"SIMULATED-CABLE",
                                                     r"Raw Physical BER\s+: .*15E-255")),
            (f"mstreg -d {where} --reg_name PMTU --get --indexes local_port=0x1", (r"max_mtu\s+\| 0x000026fa",)),
            (f"mstmcra {where} 0xf0014", (r"0x0000020d",)),
            (f"mstvpd {where}", (r"PN:\s+MCX516A-CCAT",))):
        said = vm.run(command).out
        for pattern in patterns:
            expect(re.search(pattern, said), f"{command}: no {pattern!r} in\n{said}")
    # There are no virtual functions and no flash, and the tools report that.
    for command, pattern in ((f"mstconfig -d {where} q SRIOV_EN", "doesn't support SRIOV_EN"),
                             (f"mstflint -d {where} v", "NO_FLASH_DETECTED")):
        refused = vm.run(command, check=False)
        expect(refused.status and pattern in refused.out + refused.err, f"{command}: {refused}")


@check("ethtool -A sets pause and dcb sets priority flow control, on a link that comes up again",
       only="hcasim")
def flow_control(lab):
    vm, netdev = lab.vms[0], lab.hosts[0]["netdev"]
    try:
        for rx, tx in (("on", "off"), ("on", "on")):
            vm.run(f"ethtool -A {netdev} rx {rx} tx {tx}")
            said = vm.run(f"ethtool -a {netdev}").out
            expect(re.search(rf"RX:\s+{rx}\nTX:\s+{tx}\n", said), said)
        vm.run(f"dcb pfc set dev {netdev} prio-pfc all:off 3:on")
        said = vm.run(f"dcb pfc show dev {netdev} prio-pfc").out
        expect("2:off 3:on 4:off" in said, said)
    finally:
        vm.run(f"ethtool -A {netdev} rx off tx off; dcb pfc set dev {netdev} prio-pfc all:off")
    vm.until(f"grep -qx 1 /sys/class/net/{netdev}/carrier")


def expect_held(lab, mbps, what):
    """Expects that the first guest's TCP traffic, payload alone, is held to a rate on the wire."""
    found = iperf_mbps(lab, "")
    expect(mbps / 10 < found < mbps * 1.02, f"{what}: {found:.1f} Mb/s instead of {mbps}")
    return f"{found:.1f} Mb/s"


@check("dcb ets, maxrate and buffer set classes, limits and buffers; a limit holds TCP traffic", only="hcasim")
def bandwidth_shares(lab):
    vm, netdev = lab.vms[0], lab.hosts[0]["netdev"]

    def shows(what, *texts):
        said = vm.run(f"dcb {what} show dev {netdev}").out
        for text in texts:
            expect(text in said, f"dcb {what}: no {text!r} in\n{said}")

    try:
        shows("ets", "ets-cap 8", "prio-tc 0:1 1:0 2:2")
        vm.run(f"dcb ets set dev {netdev} tc-tsa all:strict 0:ets 1:ets tc-bw all:0 0:30 1:70 prio-tc 0:0 1:1 7:3")
        shows("ets", "prio-tc 0:0 1:1 2:2 3:3 4:4 5:5 6:6 7:3", "tc-tsa 0:ets 1:ets 2:strict",
              "tc-bw 0:30 1:70 2:0")
        # iproute2 6.1 gives the kernel bytes where it expects kilobits. The least limit of a card is 100 Mb/s.
        vm.run(f"dcb maxrate set dev {netdev} tc-maxrate 0:800Kbit")
        said = vm.run(f"dcb maxrate show dev {netdev}").out
        expect(re.search(r"0:(800Kbit|100Mbit) 1:0bit", said), said)
        speed = expect_held(lab, 100, "class 0, which has the queues")
        vm.run(f"dcb maxrate set dev {netdev} tc-maxrate all:0")
        vm.run(f"dcb buffer set dev {netdev} prio-buffer all:0 3:1 buffer-size all:0 0:131072 1:65536")
        shows("buffer", "prio-buffer 0:0 1:0 2:0 3:1 4:0", "buffer-size 0:128Kb 1:64Kb 2:0b")
    finally:
        vm.run(f"dcb buffer set dev {netdev} prio-buffer all:0 buffer-size all:0 0:262016; "
               f"dcb maxrate set dev {netdev} tc-maxrate all:0; "
               f"dcb ets set dev {netdev} tc-tsa all:strict tc-bw all:0 prio-tc 0:1 1:0 7:7", check=False)
    return speed


@check("dcb app maps a DSCP to a priority, and both ends count packets by it", only="hcasim")
def priorities_by_dscp(lab):
    def counted(vm, host):
        said = vm.run(f"ethtool -S {host['netdev']}").out
        return [int(re.search(rf"{way}_prio3_packets: (\d+)", said)[1]) for way in ("rx", "tx")]

    both = list(zip(lab.vms, lab.hosts))
    try:
        for vm, host in both:
            vm.run(f"dcb app add dev {host['netdev']} dscp-prio 26:3")
            expect("AF31:3" in vm.run(f"dcb app show dev {host['netdev']}").out, "it is not shown")
        before = [counted(*side) for side in both]
        lab.vms[0].run(f"ping -c 5 -i 0.2 -W 5 -Q 0x68 {lab.hosts[1]['ip']}")
        lab.vms[0].run(f"ping -c 3 -i 0.2 -W 5 {lab.hosts[1]['ip']}")
        for side, had in zip(both, before):
            expect([now - was for now, was in zip(counted(*side), had)] == [5, 5], f"{side[0].name}: {counted(*side)}")
    finally:
        for vm, host in both:
            vm.run(f"dcb app flush dev {host['netdev']}", check=False)


# Life of the function


@check("the netdev carries traffic again after it was taken down and brought up")
def down_up(lab):
    vm, host = lab.vms[0], lab.hosts[0]
    vm.run(f"ip link set {host['netdev']} down; ip link set {host['netdev']} up")
    vm.until(f"ping -c 1 -W 2 {lab.hosts[1]['ip']}")
    lab.up()
    pingpong(lab, "rc", "-n 100")


@check("mlx5_ib and mlx5_core unload, load again, and RDMA works as before", only="hcasim")
def reload(lab):
    jobs = [vm.spawn("modprobe -r mlx5_ib mlx5_core && ! grep -q ^mlx5 /proc/modules")
            for vm in lab.vms]
    for job in jobs:
        job.wait(120, check=True)
    lab.up()
    lab.vms[0].run(f"ping -c 3 -i 0.2 -W 5 {lab.hosts[1]['ip']}")
    pingpong(lab, "rc")


@check("a function-level reset leaves a function that the drivers bring up again", only="hcasim")
def function_level_reset(lab):
    vm, host = lab.vms[0], lab.hosts[0]
    pci = f"/sys/bus/pci/devices/{host['pci']}"
    vm.run("modprobe -r mlx5_ib mlx5_core", 120)
    vm.run(f"grep -qw flr {pci}/reset_method && echo flr >{pci}/reset_method && "
           f"echo 1 >{pci}/reset")
    lab.up()
    pingpong(lab, "rc")


@check("the function is removed from the bus, found by a rescan, and works", only="hcasim")
def rescan(lab):
    vm, host = lab.vms[0], lab.hosts[0]
    vm.run(f"echo 1 >/sys/bus/pci/devices/{host['pci']}/remove", 120)
    expect(not vm.run("lspci -d 15b3:").out, "still on the bus")
    vm.run("echo 1 >/sys/bus/pci/rescan")
    lab.up()
    pingpong(lab, "rc")


# No errors on the way


def complaints(lines, provoked=()):
    """Returns kernel messages about the drivers under test, and messages that no kernel should
    print. provoked: patterns of messages that a check has caused on purpose."""
    about = re.compile(r"mlx5|infiniband|\bib_|rdma|rxe|roce|pcieport|DMAR|AER:", re.I)
    grave = re.compile(r"BUG:|WARNING:|Oops|Call Trace|general protection|hung task|\bstall|lockup")
    # A program's error, as the device reports it (QUERY_QP), what mlx5e says of offloads that exclude each other,
    # and SMC's devices and links, of which the kernel tells by warnings.
    told = re.compile(r": QP \d+ error: |: Disabling rxhash, not supported when CQE compress is active|"
                      r": Dropping C-tag vlan stripping offload due to S-tag vlan|"
                      r"\bsmc: +((adding|removing) ib device mlx5_\d|ib device mlx5_\d port 1 has pnetid|"
                      r"SMC-R lg \w+ net \d+ link (added|removed): )")
    found = []
    for number, (level, line) in enumerate(lines):
        if grave.search(line):
            # A warning has its reason in the line before it.
            found += [said for _, said in lines[max(number - 1, 0):number]] + [line]
        elif level <= 4 and about.search(line) and not told.search(line) and not any(re.search(pattern, line)
                                                                                      for pattern in provoked):
            found.append(line)
    return found


@check("no warning or error of mlx5 or infiniband in either guest's dmesg")
def clean_dmesg(lab):
    for vm in lab.vms:
        lines = vm.dmesg()
        expect(len(lines) > 100, f"{vm.name}: only {len(lines)} lines")
        bad = complaints(lines, lab.provoked)
        expect(not bad, f"{vm.name}:\n" + "\n".join(bad[:20]))


@check("both guests power off")
def powers_off(lab):
    for vm in lab.vms:
        vm.wait_up(1)
    for vm in lab.vms:
        vm.poweroff()
        expect("reboot: Power down" in vm.console(), f"{vm.name} did not say so")


@check("no warning or error on either console, power-off included")
def clean_console(lab):
    for vm in lab.vms:
        said = vm.console()
        expect("reboot: Power down" in said, f"{vm.name}: not powered off")
        bad = complaints([(4, line) for line in said.splitlines()], lab.provoked)
        expect(not bad, f"{vm.name}:\n" + "\n".join(bad[:20]))


# The device's own information, with its id.
INFO = re.compile(r"(^|: )info: hcasim( \w+)?: ")

# Refusals of the device that are right, by release of the guests.
REFUSED = {
    # Its ib_send_bw leaves a CQ behind, and its libmlx5 frees a context's UARs before the kernel
    # cleans up after the program. DESTROY_UCTX frees the UAR.
    "bookworm": ("command DEALLOC_UAR (0x803) op_mod 0x0: object is referenced by another one",),
}


def device_says(vm):
    """Returns lines of a guest's QEMU except the device's information ("info: hcasim hca1: function
    is ready")."""
    return [line for line in vm.qemu_log().splitlines()
            if line.strip() and not re.search(r"(^|: )info: hcasim( \w+)?: ", line)]


@check("the device reported no unhandled command or register, and no error", only="hcasim")
def clean_device_log(lab):
    refused = REFUSED.get(lab.release, ())
    for vm in lab.vms:
        said = [line for line in device_says(vm) if not line.endswith(refused)
                and not any(re.search(pattern, line) for pattern in lab.provoked)]
        expect(not said, f"{vm.name}: QEMU said\n" + "\n".join(said[:20]))


def of_each(function, paths):
    """Returns a function's result for each capture, on a processor of its own: the guests are off,
    and it takes long."""
    with concurrent.futures.ProcessPoolExecutor(len(paths)) as pool:
        return list(zip(paths, pool.map(function, paths)))


@check("every captured RoCEv2 packet has a good ICRC")
def captured_icrc(lab):
    counts = []
    for path, (wrong, seen) in of_each(capture.wrong_icrcs, lab.captures):
        expect(capture.notices_a_flipped_bit(path), f"{path.name}: the ICRC proves nothing")
        for transport in ("RC", "UC", "UD") if lab.everything_ran else ("UD",):
            expect(seen[transport] > 0, f"{path.name}: {dict(seen)}")
        for transport in ("RC v1", "UC v1", "UD v1") if lab.has_v1 else ():
            expect(seen[transport] > 0, f"{path.name}: {dict(seen)}")
        expect(not seen["other"] and not seen["other v1"], f"{path.name}: {dict(seen)}")
        expect(not wrong, f"{path.name}: {len(wrong)} frames, such as number {wrong[:10]}")
        counts.append(sum(seen.values()))
    return " and ".join(str(count) for count in counts) + " packets"


def judged(path):
    verdict = transport_rules.judge(path)
    return verdict.counts, verdict.wrong


@check("every PSN, opcode sequence and answer in the captures is legal", only="hcasim")
def captured_sequences(lab):
    said = []
    for path, (counts, wrong) in of_each(judged, lab.captures):
        expect(counts["RC"] or not lab.everything_ran, f"{path.name}: no RC packet")
        expect(not wrong, f"{path.name}: {len(wrong)} illegal packets:\n" + "\n".join(wrong[:20]))
        said.append(", ".join(f"{count} {name}" for name, count in sorted(counts.items())))
    return "; ".join(said)


@check("tshark finds no malformed packet and no error in the captures")
def captured_frames(lab):
    for path in lab.captures:
        said = capture.tshark_complaints(path, checksums=lab.device == "hcasim")
        expect(not said, f"{path.name}: {len(said)} frames:\n" + "\n".join(said[:10]))


# The checks that are enough to see that the drivers of another release work: texts of statements.
RELEASE = (
    "both guests boot", "lspci shows", "the drivers load", "ibv_devinfo", "RoCEv2 GIDs", "ping reaches",
    "iperf3: TCP from a to b", "_pingpong -c: every", "rping -V -C 100", "ib_write_bw: 64 KiB",
    "counter file of the port", "devlink health succeed", "unload, load again", "guest's dmesg",
    "power off", "on either console", "no unhandled command")
RELEASE_CHECKS = [entry for entry in CHECKS if any(text in entry[0] for text in RELEASE)]
