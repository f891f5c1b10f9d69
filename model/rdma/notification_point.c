/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * CNPs: made as packets come, sent by a work item, for the wire may have no room.
 *
 * The least time between two is the port's (mlxconfig: MIN_TIME_BETWEEN_CNPS, "from the port"),
 * whatever the flow: a mark that comes too early is not remembered.
 */
#include "model/rdma/notification_point.h"
#include "model/rdma/qp.h"
#include "model/rdma/rdma.h"

static struct cong *notification_cong(struct hca *hca)
{
    return &hca->vport->uplink->cong;
}

void notification_count_mark(struct hca *hca)
{
    notification_cong(hca)->counters.marked++;
}

/* What is sent back, as a ConnectX-4 Lx does it: a DSCP of its own, and marked ECT(0). */
static void notification_address(const struct cong_np *np, const struct peer *peer,
                                 unsigned priority, struct roce_addr *addr)
{
    *addr = peer->path;
    addr->tclass = (uint8_t)(np->cnp_dscp << 2 | ECN_ECT0);
    if (addr->has_vlan) {
        priority = np->cnp_prio_mode ? priority : np->cnp_802p_prio;
        addr->vlan_tci = (uint16_t)(priority << 13 | (addr->vlan_tci & 0xfff));
    }
}

void notification_answer_mark(struct peer *peer, const struct roce_packet *pkt)
{
    struct hca *hca = peer->qp->hca;
    struct notification_point *point = &hca->rdma->np;
    struct cong *cong = notification_cong(hca);
    unsigned priority = roce_priority(&pkt->addr);
    uint64_t now = hca_now(hca);
    struct cnp *cnp;

    peer_path_check(peer, hca);
    if (!(cong->np_side.enabled >> priority & 1) || now < cong->cnp_at || peer->path_gone ||
        point->count == NP_CNPS) {
        return;
    }
    cong->cnp_at = now + cong->np.min_time_between_cnps * 1000ull;
    cnp = &point->cnps[(point->head + point->count++) % NP_CNPS];
    notification_address(&cong->np, peer, priority, &cnp->addr);
    cnp->dest_qp = peer->qpn;
    cnp->pkey = peer->qp->pkey;
    cnp->session = peer->qp->dci ? peer->session : 0;
    cnp->number = peer->qp->dci ? peer->qp->obj.num : 0;
    hca_schedule(hca, &point->work);
}

/* False: the wire has no room. */
static bool notification_send(struct hca *hca, const struct cnp *cnp)
{
    struct roce_packet pkt = {
        .addr = cnp->addr,
        .opcode = BTH_CNP_OPCODE,
        .becn = true,
        .pkey = cnp->pkey,
        .dest_qp = cnp->dest_qp,
        .dceth.version = cnp->session ? hca->limits.dc_version : 0,
        .dceth.session = cnp->session,
        .dceth.number = cnp->number,
    };
    uint8_t *frame = port_tx_reserve(hca, pkt.addr.dmac, roce_frame_len(&pkt, 0));

    if (!frame) {
        return false;
    }
    roce_build(frame, &pkt, 0);
    port_tx_commit_roce(hca, &pkt, 0);
    notification_cong(hca)->counters.cnps_sent++;
    return true;
}

static void notification_work(struct hca *hca, struct work *work)
{
    struct notification_point *point = &hca->rdma->np;

    while (point->count) {
        if (!notification_send(hca, &point->cnps[point->head])) {
            hca_wait_tx(hca, work);
            return;
        }
        point->head = (point->head + 1) % NP_CNPS;
        point->count--;
        if (point->count && !hca_may_go_on(hca)) {
            hca_schedule(hca, work);
            return;
        }
    }
}

void notification_init(struct hca *hca)
{
    hca->rdma->np.work.run = notification_work;
}

void notification_reset(struct hca *hca)
{
    hca_unschedule(&hca->rdma->np.work);
    hca->rdma->np.head = hca->rdma->np.count = 0;
}
