# SPDX-License-Identifier: BSD-2-Clause
"""Tests links that go down, drivers that are removed and loaded, functions that are reset: always
under traffic.

A third list of checks for tests/vm/run (--suite lifecycle). Every step requires that the traffic
under way ends in one way or another, that later traffic works, and that no kernel complains.
"""
import os
import re
import time

import suite
from suite import expect, pingpong

CHECKS = []
check = suite.registrar(CHECKS)

RELOADS = int(os.environ.get("HCASIM_RELOADS", "20"))

check("both guests boot")(suite.boots)
check("the drivers load; a netdev with carrier and an active RDMA port appear")(suite.comes_up)


class Traffic:
    """RDMA WRITEs and a TCP stream between the guests for some seconds, whether or not they
    survive."""

    def __init__(self, lab, seconds):
        rdma = f"ib_write_bw -F -d {{dev}} -x {{gid}} -D {seconds}"
        self.jobs = []
        for vm, host, peer in zip(reversed(lab.vms), reversed(lab.hosts), ("", lab.hosts[1]["ip"])):
            stop = f"timeout -s KILL {seconds + 20} "
            self.jobs.append(vm.spawn(stop + rdma.format(dev=host["ibdev"], gid=host["gid"]) +
                                      f" {peer}"))
            self.jobs.append(vm.spawn(stop + (f"iperf3 -c {peer} -t {seconds}" if peer
                                              else "iperf3 -s -1")))
            if not peer:
                vm.until("ss -Htln sport = :18515 | grep -q . && ss -Htln sport = :5201 | grep -q .")
        lab.vms[0].run("sleep 2")

    def end(self):
        for job in self.jobs:
            job.wait(120)


def works(lab):
    lab.up()
    lab.vms[0].until(f"ping -c 1 -W 2 {lab.hosts[1]['ip']}")
    pingpong(lab, "rc", "-n 100")


@check("ip link set down and up three times under traffic")
def link_flaps(lab):
    traffic = Traffic(lab, 12)
    for vm, host in ((lab.vms[0], lab.hosts[0]), (lab.vms[1], lab.hosts[1]),
                     (lab.vms[0], lab.hosts[0])):
        vm.run(f"ip link set {host['netdev']} down; sleep 0.5; ip link set {host['netdev']} up")
    traffic.end()
    works(lab)


@check("the MTU changes to 9000, 1280 and 1500 under traffic")
def mtu_changes(lab):
    traffic = Traffic(lab, 12)
    for mtu in (9000, 1280, 1500):
        for vm, host in zip(lab.vms, lab.hosts):
            vm.run(f"ip link set {host['netdev']} mtu {mtu}")
    traffic.end()
    works(lab)


@check(f"modprobe -r mlx5_ib mlx5_core and back, {RELOADS} times, with traffic between",
       only="hcasim")
def reloads(lab):
    for _ in range(RELOADS):
        lab.vms[0].run("modprobe -r mlx5_ib mlx5_core && ! grep -q ^mlx5 /proc/modules", 120)
        lab.up()
        pingpong(lab, "rc", "-n 50")


@check("unloading the drivers under traffic of the other side", only="hcasim")
def unload_under_traffic(lab):
    traffic = Traffic(lab, 8)
    # Programs that use the device keep the module in use: they have to end first.
    lab.vms[0].run("pkill ib_write_bw; pkill iperf3; "
                   "until modprobe -r mlx5_ib mlx5_core; do sleep 0.2; done", 120)
    traffic.end()
    works(lab)


def sysfs_reset(lab, vm, host):
    vm.run(f"echo 1 >/sys/bus/pci/devices/{host['pci']}/reset", 120)


@check("the function is removed under traffic, found by a rescan, and works", only="hcasim")
def remove_under_traffic(lab):
    vm, host = lab.vms[0], lab.hosts[0]
    traffic = Traffic(lab, 8)
    vm.run(f"echo 1 >/sys/bus/pci/devices/{host['pci']}/remove", 120)
    expect(not vm.run(f"lspci -s {host['pci']}").out, "still on the bus")
    traffic.end()
    vm.run("echo 1 >/sys/bus/pci/rescan", 120)
    works(lab)


def second_hca(lab):
    """Sets up guest a's second HCA, on its own subnet, in which guest b also has an address."""
    a, b = lab.vms
    pci = a.run("lspci -D -d 15b3:").out.split("\n")[1].split()[0]
    device = f"/sys/bus/pci/devices/{pci}"
    netdev, ibdev = a.run(f"basename {device}/net/*; basename {device}/infiniband/*").out.split()
    # Otherwise each of the two netdevs answers for the addresses of both. A peer that hears the
    # wrong answer first sends its RoCE packets to an HCA that does not know their addresses.
    a.run("sysctl -q net.ipv4.conf.all.arp_ignore=1 net.ipv4.conf.all.arp_announce=2")
    a.run(f"ip link set {netdev} up; ip addr replace 10.0.3.1/24 dev {netdev}")
    b.run(f"ip addr replace 10.0.3.2/24 dev {lab.hosts[1]['netdev']}")
    a.until(f"grep -qx 1 /sys/class/net/{netdev}/carrier && ping -c 1 -W 1 10.0.3.2")
    return {"netdev": netdev, "ibdev": ibdev, "pci": pci, "ip": "10.0.3.1",
            "gid": a.run(f"/hcasim/gid {ibdev} 10.0.3.1").out.strip()}


def link_local_gid(vm, ibdev):
    """Returns the index of the RoCEv2 GID that is a link-local address."""
    port = f"/sys/class/infiniband/{ibdev}/ports/1"
    return vm.run(f"cd {port}; for i in $(seq 0 15); do case $(cat gids/$i) in fe80:*) "
                  "grep -qs v2 gid_attrs/types/$i && echo $i && break ;; esac; done").out.strip()


@check("two HCAs in one guest: each reaches the other guest, and each the other one", only="hcasim")
def two_hcas(lab):
    a, b = lab.vms
    second, usual = second_hca(lab), lab.hosts
    peer = dict(usual[1], ip="10.0.3.2",
                gid=b.run(f"/hcasim/gid {usual[1]['ibdev']} 10.0.3.2").out.strip())
    try:
        lab.hosts = [second, peer]
        pingpong(lab, "rc")
        # An IPv4 address of the same host is routed to its loopback; link-local addresses use the
        # link.
        lab.hosts = [dict(host, gid=link_local_gid(a, host["ibdev"])) for host in (second, usual[0])]
        lab.vms = [a, a]
        pingpong(lab, "rc")
        pingpong(lab, "ud", "-s 1024")
    finally:
        lab.hosts, lab.vms = usual, [a, b]


@check("a guest that QEMU stops for longer than all retries pauses its peer, and no connection fails",
       only="hcasim")
def stopped_guests(lab):
    # Timeout 10 is 4.2 ms and perftest retries 7 times: 34 ms of silence end a connection.
    command = "ib_write_bw -F -d {dev} -x {gid} -u 10 -D 10 --report_gbits"
    for vm in lab.vms:
        server, client = reversed(lab.vms)
        there, here = reversed(lab.hosts)
        jobs = [server.spawn(command.format(dev=there["ibdev"], gid=there["gid"]))]
        server.until("ss -Htln sport = :18515 | grep -q .")
        jobs.append(client.spawn(command.format(dev=here["ibdev"], gid=here["gid"]) +
                                 f" {there['ip']}"))
        time.sleep(3)
        vm.qmp("stop")
        time.sleep(3)
        vm.qmp("cont")
        for job in jobs:
            job.wait(60, check=True)


check("no warning or error of mlx5 or infiniband in either guest's dmesg")(suite.clean_dmesg)


# mlx5_core has no reset_prepare(): its health poll finds out about such a reset, reports it, and
# recovers, once in 20 minutes (MLX5_FW_REPORTER_PF_GRACEFUL_PERIOD).
@check("echo 1 > reset under traffic, and the drivers recover by themselves", only="hcasim")
def reset_under_traffic(lab):
    vm, pci = lab.vms[0], lab.hosts[0]["pci"]
    traffic = Traffic(lab, 8)
    vm.run(f"echo 1 >/sys/bus/pci/devices/{pci}/reset", 120)
    vm.until("dmesg | grep -q 'health recovery succeeded'", 120)
    traffic.end()
    works(lab)
    grave = [line for line in suite.complaints(vm.dmesg()) if "mlx5_core" not in line]
    expect(not grave, "\n".join(grave))


# Driver: poll_health(), mlx5_error_sw_reset(). Uses the other guest, whose driver has not recovered
# anything yet.
@check("a fault rule fails the firmware under traffic, and the driver resets it and recovers", only="hcasim")
def firmware_fails(lab):
    vm = lab.vms[1]
    path = "/machine/peripheral/hca1"
    expect(vm.qmp("qom-get", path=path, property="faults") == "", "there are rules before the first one")
    traffic = Traffic(lab, 8)
    vm.qmp("qom-set", path=path, property="faults", value="health 1 after 100ms; drop REQUEST nth 99 once")
    vm.until("dmesg | grep -q 'health recovery succeeded'", 120)
    traffic.end()
    expect(any("Issuing FW Reset" in line for _, line in vm.dmesg()), "the driver reset no firmware")
    expect(vm.qmp("qom-get", path=path, property="health") == "ok", "the reset did not heal")
    said = vm.qmp("qom-get", path=path, property="faults")
    expect(re.search(r"^1: health 1 after 100ms: matched 1, done 1$", said, re.M), said)
    works(lab)


@check("a rule returns receives whose pages are missing, and the guest's libmlx5 posts them again", only="hcasim")
def receives_are_returned(lab):
    place = {"path": "/machine/peripheral/hca1", "property": "faults"}
    for vm in lab.vms:
        vm.qmp("qom-set", value="receive returned", **place)
    # A region has the pages that its memory has when it is registered. Clearing the soft-dirty bits of
    # a process takes them from the device.
    takers = [vm.spawn("while true; do for p in $(pidof ibv_srq_pingpong); do echo 4 > /proc/$p/clear_refs; done;"
                       " sleep 0.02; done") for vm in lab.vms]
    try:
        pingpong(lab, "srq", "-o -n 3000")
    finally:
        for taker in takers:
            taker.kill()
    said = [vm.qmp("qom-get", **place) for vm in lab.vms]
    expect(re.search(r"receive returned: matched [1-9]", " ".join(said)), str(said))
    for vm in lab.vms:
        vm.qmp("qom-set", value="clear", **place)


@check("the firmware reports an error, and the driver goes on", only="hcasim")
def firmware_reports(lab):
    vm = lab.vms[1]
    path = "/machine/peripheral/hca1"
    vm.qmp("qom-set", path=path, property="health", value="report:8")
    expect(vm.qmp("qom-get", path=path, property="health") == "report:0x8", "health is another one")
    pingpong(lab, "rc", "-n 100")
    vm.qmp("qom-set", path=path, property="health", value="ok")
    vm.qmp("qom-set", path=path, property="faults", value="clear")
    expect(vm.qmp("qom-get", path=path, property="faults") == "", "rules are left")
    works(lab)


check("both guests power off")(suite.powers_off)


@check("the device reported nothing but queues that ended under traffic", only="hcasim")
def clean_device_log(lab):
    for vm in lab.vms:
        # If a function is reset or removed under traffic, bus mastering ends before the queues do,
        # and programs ring doorbells of queues that the kernel has destroyed.
        said = [line for line in suite.device_says(vm)
                if not re.search(r"hcasim( \w+)?: (CQ|EQ|QP) .* does not answer|send doorbell for QPN", line)]
        expect(not said, f"{vm.name}: QEMU said\n" + "\n".join(said[:20]))
