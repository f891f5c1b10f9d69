# SPDX-License-Identifier: BSD-2-Clause
"""Tests the device against an independent implementation of RoCEv2: Linux soft-RoCE in the other
guest.

Guest a has the device on a QEMU netdev, guest b rdma_rxe on a virtio NIC; both netdevs are the two
ends of a datagram link. Each program runs twice: the device is once the client and once the server.
THREE is the list for three hosts on one wire: a hub in guest a's QEMU joins these two with a process
with no VM, by -netdev stream. It and each guest connect by address, since it has no TCP on the wire.
The other programs do not run there, because a hub takes all frames at once and so holds nobody up.
"""
import pathlib
import re
import subprocess
import time

import suite
import vmlib
from suite import expect

# perftest asks for as many outstanding READs and atomics as its own device supports, and the other
# side's driver refuses more than it supports: both support 16.
OUTSTANDING = "-o 16"
# A second until a retransmission (4.096 us << 18; the default is 67 ms): a guest on a busy machine
# may answer slowly, and repeated READs make soft-RoCE slower still.
PATIENCE = "-u 18"
CHECKS = [
    ("both guests boot", None, suite.boots),
    ("the drivers load; netdevs with carrier and active RDMA ports appear", None, suite.comes_up),
    ("ping reaches the peer, both ways, without loss", None, suite.ping),
]


def both_ways(statement):
    """Registers a check for each direction; the function gets lab and swap."""
    def register(function):
        for role, swap in (("client", False), ("server", True)):
            CHECKS.append((f"{statement}, the device as {role}", None,
                           lambda lab, swap=swap: function(lab, swap)))
        return function
    return register


def pingpong(lab, kind, arguments, swap):
    results = lab.pair(f"ibv_{kind}_pingpong -c -d {{dev}} -g {{gid}} {arguments}", swap=swap)
    for result in results:
        expect("iters in" in result.out and "invalid" not in result.out + result.err, str(result))


# One QP of ibv_srq_pingpong: with its 16 QPs a client that has all its messages may leave while the
# last messages of its server are on the way. soft-RoCE repeats those for ever, because a retry_cnt
# of 7 means no limit there.
for _kind, _options in (("rc", ""), ("uc", ""), ("ud", ""), ("srq", "-q 1")):
    both_ways(f"ibv_{_kind}_pingpong -c {_options}".rstrip())(
        lambda lab, swap, kind=_kind, options=_options: pingpong(lab, kind, f"-n 100 {options}", swap))

both_ways("ibv_rc_pingpong -c with messages of 64 KiB, of many packets each")(
    lambda lab, swap: pingpong(lab, "rc", "-s 65536 -n 10", swap))


def perftest(lab, program, arguments, swap):
    client, _ = lab.pair(f"{program} -F -d {{dev}} -x {{gid}} {PATIENCE} {arguments}",
                         swap=swap)
    expect(re.search(r"^\s*\d+\s+\d+\s+[\d.]", client.out, re.M), f"no result:\n{client}")


for _verb in ("send", "write", "read"):
    _more = OUTSTANDING if _verb == "read" else ""
    both_ways(f"ib_{_verb}_bw: 16 KiB messages over RC")(
        lambda lab, swap, verb=_verb, more=_more:
        perftest(lab, f"ib_{verb}_bw", f"-s 16384 -n 50 {more}", swap))

for _operation in ("FETCH_AND_ADD", "CMP_AND_SWAP"):
    both_ways(f"ib_atomic_lat: {_operation} over RC")(
        lambda lab, swap, operation=_operation:
        perftest(lab, "ib_atomic_lat", f"-A {operation} -n 50 {OUTSTANDING}", swap))


@both_ways("rping -V: connections by the RDMA-CM, READ and WRITE with the data compared")
def rping(lab, swap):
    client, _ = lab.pair("rping -s -V -C 20", "rping -c -V -C 20 -a {peer}", listens="cm",
                         swap=swap)
    expect("error" not in (client.out + client.err).lower(), str(client))


ROOT = pathlib.Path(__file__).resolve().parents[2]
THIRD, THIRD_MAC = "10.0.0.3", vmlib.mac_of(3)
THIRD_SECONDS = 120 * vmlib.SLOWNESS


def third(lab, command):
    """Starts a command as the third host. It finds its link down until the stream is connected."""
    return subprocess.Popen(
        [ROOT / "scripts/hcasim", "run", "--wire", lab.third_wire(), "--host", "3", "--ip", THIRD, "--mac", THIRD_MAC,
         "--mtu", "1500", "--", "sh", "-c", command], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def asked_again(command):
    """A client whose server may not listen yet asks again."""
    return f"for i in $(seq 20); do {command} 2>&1 && exit 0; sleep 0.5; done; exit 1"


def served_by_guest(lab, guest, server, client):
    job = lab.vms[guest].spawn(server)
    try:
        lab.vms[guest].until("rdma resource show cm_id | grep -q 'state LISTEN'")
        process = third(lab, asked_again(client.format(peer=lab.hosts[guest]["ip"])))
        try:
            said = process.communicate(timeout=THIRD_SECONDS)[0]
        finally:
            process.kill()
        expect(process.returncode == 0, said)
        job.wait(check=True)
    finally:
        job.kill()


def served_by_process(lab, guest, server, client):
    process = third(lab, f"exec {server} 2>&1")
    try:
        time.sleep(1)  # nothing shows when it listens
        result = lab.vms[guest].run(asked_again(client.format(peer=THIRD)), 120, check=False)
        if result.status:
            process.kill()
            expect(False, f"{result}\n--- its server said: {process.communicate()[0]}")
        said = process.communicate(timeout=THIRD_SECONDS)[0]
        expect(process.returncode == 0, said)
    finally:
        process.kill()


# Not rping: Debian 12's may end with a status although all is done (RPING_IS_DONE in tests/verbs/host_processes.py).
# The client of ib_write_bw connects twice and does not wait for its server: a server in a guest is too slow for that.
WITH_THIRD = (("rdma_server", "rdma_client -s {peer}", "both"), ("ucmatose -c 20", "ucmatose -c 20 -s {peer}", "both"),
              ("udaddy", "udaddy -s {peer}", "both"),
              (f"ib_write_bw -R -F -n 50 {PATIENCE}", f"ib_write_bw -R -F -n 50 {PATIENCE} {{peer}}", "process"))


THREE = CHECKS[:3]  # they boot, and come up


def add_third(guest, device, row):
    server, client, sides = row
    for side, function in (("process", served_by_process), ("guest", served_by_guest)):
        if sides in (side, "both"):
            THREE.append((f"{server.split()[0]}: a process with no VM and a guest with {device}, the server is the {side}",
                           None, lambda lab, run=function: run(lab, guest, server, client)))


for _guest, _device in enumerate(("the device", "soft-RoCE")):
    for _row in WITH_THIRD:
        add_third(_guest, _device, _row)

LAST = [
    ("no warning or error of mlx5 or infiniband in either guest's dmesg", None,
     suite.clean_dmesg),
    ("both guests power off", None, suite.powers_off),
    ("the device reported no unhandled command or register, and no error", None,
     suite.clean_device_log),
]
CHECKS += LAST
THREE += LAST
