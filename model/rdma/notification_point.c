/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Makes CNPs when marked packets come, and sends them as notices (model/rdma/notice.h).
 *
 * The least time between two CNPs belongs to the port, not to a flow (mlxconfig:
 * MIN_TIME_BETWEEN_CNPS, "from the port"). A mark that comes too early is not remembered.
 */
#include "model/rdma/notice.h"
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

/* The address fields of a CNP, as a ConnectX-4 Lx sends them: the CNP has a DSCP of its own, and
 * ECT(0). */
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
    struct cong *cong = notification_cong(hca);
    unsigned priority = uplink_roce_priority(hca->vport->uplink, &pkt->addr);
    bool is_initiator = peer->qp->dci;
    uint64_t now = hca_now(hca);
    struct notice_text cnp = {
        .dest_qp = peer->qpn,
        .pkey = peer->qp->pkey,
        .session = is_initiator ? peer->session : 0,
        .number = is_initiator ? peer->qp->obj.num : 0,
    };

    peer_path_check(peer, hca);
    if (!(cong->np_side.enabled >> priority & 1) || now < cong->cnp_at || peer->path_gone) {
        return;
    }
    cong->cnp_at = now + cong->np.min_time_between_cnps * 1000ull;
    notification_address(&cong->np, peer, priority, &cnp.addr);
    notice_send(hca, NOTICE_CNP, &cnp);
}
