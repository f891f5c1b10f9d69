#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A first verbs program in Python: two queue pairs of one process are connected to each other, and
the first one sends a message that the second one receives. docs/start/first-program.md explains
each step."""
import sys

from pyverbs import enums
from pyverbs.addr import AHAttr, GlobalRoute
from pyverbs.cq import CQ, cqe_status_to_str
from pyverbs.device import Context, get_device_list
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import SGE, RecvWR, SendWR

GID_INDEX = 1  # the GID made from the device's IPv4 address; packets are RoCE v2
MESSAGE = b"hello from queue pair 0"


def connect(qp, dest, gid):
    """Takes a queue pair from RESET to RTS, connected to queue pair `dest` at address `gid`."""
    attr = QPAttr(port_num=1)
    attr.dest_qp_num = dest
    attr.path_mtu = enums.IBV_MTU_1024
    attr.min_rnr_timer = 12
    attr.max_dest_rd_atomic = attr.max_rd_atomic = 1
    attr.timeout, attr.retry_cnt, attr.rnr_retry = 14, 7, 3
    route = GlobalRoute(dgid=gid, sgid_index=GID_INDEX, hop_limit=64)
    attr.ah_attr = AHAttr(gr=route, is_global=1, port_num=1)
    qp.to_rts(attr)  # by way of INIT and RTR


def main():
    devices = get_device_list()
    if not devices:
        sys.exit("no RDMA device")
    ctx = Context(name=devices[0].name.decode())
    pd = PD(ctx)
    mr_from, mr_to = (MR(pd, 64, enums.IBV_ACCESS_LOCAL_WRITE) for _ in range(2))
    mr_from.write(MESSAGE, len(MESSAGE))
    cq = CQ(ctx, 16)
    init = QPInitAttr(qp_type=enums.IBV_QPT_RC, scq=cq, rcq=cq, cap=QPCap(1, 1, 1, 1))
    qps = [QP(pd, init), QP(pd, init)]
    gid = ctx.query_gid(port_num=1, index=GID_INDEX)
    connect(qps[0], qps[1].qp_num, gid)
    connect(qps[1], qps[0].qp_num, gid)

    sge_to = SGE(mr_to.buf, 64, mr_to.lkey)
    qps[1].post_recv(RecvWR(wr_id=1, sg=[sge_to], num_sge=1))
    sge_from = SGE(mr_from.buf, len(MESSAGE), mr_from.lkey)
    qps[0].post_send(SendWR(wr_id=2, sg=[sge_from], num_sge=1))

    completed = 0
    while completed < 2:  # one completion of each queue pair
        count, completions = cq.poll(1)
        if count:
            wc = completions[0]
            print(f"work request {wc.wr_id}: {cqe_status_to_str(wc.status)}")
            if wc.status != enums.IBV_WC_SUCCESS:
                return 1
            completed += 1
    received = mr_to.read(len(MESSAGE), 0)
    print(f"received: {received.decode()}")
    return received != MESSAGE


if __name__ == "__main__":
    sys.exit(main())
