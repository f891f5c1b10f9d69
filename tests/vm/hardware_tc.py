# SPDX-License-Identifier: BSD-2-Clause
"""Tests tc rules that the device carries out (skip_sw).

Debian's kernels have tc offload in mlx5_core up to 6.1 (CONFIG_MLX5_CLS_ACT), so these checks are for guests of Debian
12, among the checks of another release.
"""
import suite
from suite import expect, registrar

CHECKS = []
# Prints the datagrams that come to port 7002 before the one that says "end".
TC_RECEIVE = ("python3 -c 'import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind((\"\", 7002))\n"
              "for said in iter(lambda: s.recv(99), b\"end\"): print(said.decode(), flush=True)'")
TC_SEND = ("python3 -c 'import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
           "for port in 7001, 7003, 7005, 7004: s.sendto(b\"to %d\" % port, (\"{ip}\", port))\n"
           "s.sendto(b\"end\", (\"{ip}\", 7002))'")


@registrar(CHECKS)("tc flower skip_sw: the device drops, counts and rewrites frames (pedit), by rules of two priorities",
                   only="hcasim")
def tc_hardware(lab):
    vm, host = lab.vms[1], lab.hosts[1]
    rule = (f"tc filter add dev {host['netdev']} ingress protocol ip prio {{}} flower skip_sw ip_proto udp "
            "dst_port {} action {}")
    to_7002 = "pedit ex munge udp dport set 7002 pipe action csum udp pipe action pass"
    vm.run(f"tc qdisc add dev {host['netdev']} ingress")
    try:
        for prio, port, action in ((1, 7001, to_7002), (1, 7003, "drop"), (2, 7004, to_7002), (2, 7005, "drop")):
            vm.run(rule.format(prio, port, action))
        receiver = vm.spawn(TC_RECEIVE)
        vm.until("ss -Huln sport = :7002 | grep -q .")
        lab.vms[0].run(TC_SEND.format(ip=host["ip"]))
        said = receiver.wait(30, check=True).out.split("\n")[:-1]
        expect(said == ["to 7001", "to 7004"], f"to port 7002 came: {said}")
        # The driver reads the counters once a second.
        vm.until(f"[ $(tc -s filter show dev {host['netdev']} ingress | grep -c 'Sent hardware .* 1 pkt') = 6 ]")
    finally:
        vm.run(f"tc qdisc del dev {host['netdev']} ingress", check=False)


# Prints sender, destination and text of the datagrams to port 7001 that come from the wire, up to the one that says "end".
REDIRECTED = """python3 -c 'import socket; s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x800))
s.bind(("{netdev}", 0)); print("bound", flush=True); said = ""
while said != "end":
    f = s.recv(2000)
    if f[23] == 17 and f[36:38] == (7001).to_bytes(2, "big"):
        said = f[42:34 + int.from_bytes(f[38:40], "big")].decode(); print(f[6:12].hex(":"), f[0:6].hex(":"), said, flush=True)'"""
REDIRECT_SEND = ("python3 -c 'import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
                 "for said in \"one\", \"two\", \"x\" * 1400, \"end\": s.sendto(said.encode(), (\"{ip}\", 7001))'")


@registrar(CHECKS)("tc flower skip_sw, mirred redirect: frames leave by hairpin queues, and no host sees them",
                   only="hcasim")
def tc_redirect(lab):
    """Guest b sends back what guest a has sent to it, with other addresses (pedit): the wire learns where senders are."""
    (a, b), host = lab.vms, lab.hosts[1]
    mac = [vm.run(f"cat /sys/class/net/{h['netdev']}/address").out.strip() for vm, h in zip(lab.vms, lab.hosts)]
    b.run(f"tc qdisc add dev {host['netdev']} ingress")
    try:
        b.run(f"tc filter add dev {host['netdev']} ingress protocol ip prio 1 flower skip_sw ip_proto udp dst_port 7001 "
              f"action pedit ex munge eth src set {mac[1]} munge eth dst set {mac[0]} pipe "
              f"action mirred egress redirect dev {host['netdev']}")
        receiver = a.spawn(REDIRECTED.format(netdev=lab.hosts[0]["netdev"]))
        a.run("sleep 1")
        a.run(REDIRECT_SEND.format(ip=host["ip"]))
        said = receiver.wait(30, check=True).out.split("\n")[1:-1]
        expect(said == [f"{mac[1]} {mac[0]} {text}" for text in ("one", "two", "x" * 1400, "end")], f"came back: {said}")
        b.until(f"tc -s filter show dev {host['netdev']} ingress | grep 'Sent hardware .* 4 pkt'")
        b.run(f"tc filter del dev {host['netdev']} ingress prio 1")
        seen = b.spawn(TC_RECEIVE.replace("7002", "7001"))
        b.until("ss -Huln sport = :7001 | grep -q .")
        a.run(REDIRECT_SEND.format(ip=host["ip"]))
        seen = seen.wait(30, check=True).out.split("\n")[:-1]
        expect(len(seen) == 3, f"without the rule, guest b gets {seen}")
    finally:
        b.run(f"tc qdisc del dev {host['netdev']} ingress", check=False)


AFTER = next(i for i, entry in enumerate(suite.RELEASE_CHECKS) if "devlink health succeed" in entry[0]) + 1
RELEASE_CHECKS = suite.RELEASE_CHECKS[:AFTER] + CHECKS + suite.RELEASE_CHECKS[AFTER:]
