# SPDX-License-Identifier: BSD-2-Clause
"""Runs two guests on one wire, ready for programs that exchange data.

    with Lab(work) as lab:
        lab.up()
        lab.pair("ibv_rc_pingpong -c {dev}", port=18515)

The device under test is hcasim. With "rxe", Linux soft-RoCE on virtio NICs runs the same programs,
as the baseline for figures. With "interop", guest a has hcasim and guest b soft-RoCE, on a QEMU
netdev. "three" is the same with a hub in guest a's QEMU, which joins both with a third host, a
process with no VM (Lab.third_wire).
"""
import os
import pathlib
import re

import vmlib

SERVER_PORT = 18515


class Lab:
    """Guests a (10.0.0.1) and b (10.0.0.2): .vms, and .hosts, which after up() has for each guest
    the names of its netdev and RDMA device, its PCI address, and the GID index of its IPv4
    address. release: the guests' Debian release; kernel_release: the release of their kernel
    alone. twin: guest a has a second HCA on the wire. .provoked: patterns of the messages that
    checks have caused on purpose. Files (logs, captures) are left in work/."""

    def __init__(self, work, device="hcasim", capture=False, guest=None, properties=None, twin=False,
                 release=None, kernel_release=None, **options):
        self.twin = twin
        self.work = pathlib.Path(work)
        self.device = device
        self.wire = f"hcasim-{os.getpid()}"
        self.has_v1 = False  # whether the captures have packets of RoCE version 1
        self.captures = [self.work / f"{name}.pcap" for name in "ab"] if capture else []
        self.hosts = []
        self.provoked = []
        self.release = release
        guest = guest or vmlib.Guest.prepare(release=release, kernel_release=kernel_release)
        self.vms = [vmlib.VM(name, work, guest, self._devices(i, properties or {}), **options)
                    for i, name in enumerate("ab")]

    def _devices(self, i, properties):
        mac = vmlib.mac_of(i + 1)
        capture = self.captures[i] if self.captures else None
        if self.device == "hcasim":
            arguments = vmlib.hcasim_device(wire=f"shm:{self.wire}", mac=mac, capture=capture,
                                            **properties)
            if self.twin and i == 0:
                arguments += vmlib.hcasim_device(wire=f"shm:{self.wire}", mac=vmlib.mac_of(3), slot=2)
            return arguments
        sockets = [self.work / f"{name}.net" for name in "ab"]
        if self.device == "interop" and i == 0:
            return (vmlib.dgram_netdev(sockets[0], sockets[1]) +
                    vmlib.hcasim_device(netdev="net", mac=mac, capture=capture, **properties))
        if self.device == "three" and i == 0:
            return (vmlib.dgram_netdev(sockets[0], sockets[1]) +
                    vmlib.stream_netdev("third", True, self.work / "third.net") +
                    vmlib.hub("net", "third") +
                    vmlib.hcasim_device(netdev="hub", mac=mac, capture=capture, **properties))
        arguments = vmlib.virtio_nic(mac, sockets[i], sockets[1 - i])
        if capture:
            arguments += ["-object", f"filter-dump,id=dump,netdev=net,file={capture},maxlen=16384"]
        return arguments

    def third_wire(self):
        """Returns the wire of a process that is the third host of "three"."""
        return f"connect:{self.work / 'third.net'}"

    def __enter__(self):
        try:
            for vm in self.vms:
                vm.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for vm in self.vms:
            vm.kill()
        for leftover in pathlib.Path("/dev/shm").glob(f"*{self.wire}*"):
            leftover.unlink(missing_ok=True)

    def boot(self):
        for vm in self.vms:
            vm.wait_up()

    def up(self):
        """Loads the drivers and sets the addresses on both sides, at the same time."""
        jobs = [vm.spawn(f"/hcasim/up {i}") for i, vm in enumerate(self.vms, 1)]
        self.hosts = [dict(re.findall(r"(\w+)=(\S+)", job.wait(120, check=True).out))
                      for job in jobs]
        for i, (vm, host) in enumerate(zip(self.vms, self.hosts), 1):
            host["ip"] = f"10.0.0.{i}"
            host["gid"] = vm.run(f"/hcasim/gid {host['ibdev']} {host['ip']}").out.strip()

    def poweroff(self):
        for vm in self.vms:
            vm.poweroff()

    def pair(self, server, client=None, listens=f"tcp:{SERVER_PORT}", timeout=60, swap=False):
        """Runs a server in guest b and, once it listens, its client in guest a (swap: the other way
        round). In both commands {dev} {gid} {netdev} {ip} are those of the command's own side,
        and {peer} is the other side's IPv4 address. Without client, the client's command is the
        server's with the peer's address appended. listens: tcp:PORT, or cm for a listener of the
        RDMA connection manager. Returns both Results, client first; CommandFailed if either
        fails."""
        order = [1, 0] if not swap else [0, 1]
        (server_vm, client_vm) = (self.vms[i] for i in order)
        hosts = [self.hosts[i] for i in order]
        client = client or server + " {peer}"
        job = server_vm.spawn(server.format(**hosts[0], peer=hosts[1]["ip"],
                                            dev=hosts[0]["ibdev"]))
        try:
            if listens == "cm":
                listening = "rdma resource show cm_id | grep -q 'state LISTEN'"
            else:
                listening = f"ss -Htln sport = :{listens.split(':')[1]} | grep -q ."
            # A server that has ended will never listen, so it is not waited for.
            server_vm.run(f"end=$((SECONDS + 30)); until {listening}; do "
                          f"[ -d /run/hcasim/{job.number} ] && [ $SECONDS -lt $end ] || exit 1; "
                          "sleep 0.1; done", check=False)
            result = client_vm.run(client.format(**hosts[1], peer=hosts[0]["ip"],
                                                 dev=hosts[1]["ibdev"]), timeout, check=False)
            if result.status:
                try:
                    said = job.wait(2)
                except vmlib.VmError as error:
                    said = error
                raise vmlib.CommandFailed(result, f"\n--- its server said: {said}")
            return result, job.wait(timeout, check=True)
        finally:
            job.kill()
