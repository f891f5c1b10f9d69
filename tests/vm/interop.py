# SPDX-License-Identifier: BSD-2-Clause
"""Tests the device against an independent implementation of RoCEv2: Linux soft-RoCE in the other
guest.

Guest a has the device on a QEMU netdev, guest b rdma_rxe on a virtio NIC; both netdevs are the two
ends of a datagram link. Each program runs twice: the device is once the client and once the server.
"""
import re

import suite
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


CHECKS += [
    ("no warning or error of mlx5 or infiniband in either guest's dmesg", None,
     suite.clean_dmesg),
    ("both guests power off", None, suite.powers_off),
    ("the device reported no unhandled command or register, and no error", None,
     suite.clean_device_log),
]
