/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds the QP that a received RoCE packet is for, and checks whether the QP may take it.
 *
 * The checks of IBTA 9.6.1 and annex A17 come in this order: destination GID, QP and its service,
 * state, P_Key, Q_Key or the connection's addresses. A packet that fails a check is dropped and
 * counted, and is not answered. Other packets go to the requester (responses) or the responder
 * (requests).
 */
#include <string.h>
#include "model/rdma/dci.h"
#include "model/rdma/dct.h"
#include "model/rdma/mcg.h"
#include "model/rdma/notification_point.h"
#include "model/rdma/qp.h"
#include "model/rdma/rdma.h"
#include "model/rdma/reaction_point.h"

#define QPN_GSI       1
#define QPN_MULTICAST 0xffffff
#define PKEY_FULL     0x8000

#define S(name)       (1u << PRM_QP_STATE_##name)
/* States in which a QP takes requests, and in which it takes responses (IBTA 10.3.1). */
#define REQUEST_STATES  (S(RTR) | S(RTS) | S(SQER) | S(SQD) | S(SQ_DRAINING))
#define RESPONSE_STATES (S(RTS) | S(SQD) | S(SQ_DRAINING))

bool roce_gid_is_multicast(const uint8_t gid[16])
{
    static const uint8_t ipv4_prefix[12] = {[10] = 0xff, [11] = 0xff};

    return gid[0] == 0xff || (memcmp(gid, ipv4_prefix, 12) == 0 && gid[12] >> 4 == 0xe);
}

static bool roce_rx_transport_ok(const struct qp *qp, uint8_t opcode)
{
    return bth_opcodes[opcode].transport == qp->service->transport;
}

static bool roce_rx_half_ok(const struct qp *qp, uint32_t flags)
{
    return !qp->service->one_half || qp_is_target(qp) == !(flags & PKT_RESPONSE);
}

/* IBTA 10.9.3: the same key without the membership bit, and one of the two a full member. */
bool roce_rx_pkey_ok(uint16_t theirs, uint16_t ours)
{
    return ((theirs ^ ours) & 0x7fff) == 0 && ((theirs | ours) & PKEY_FULL);
}

/* roce_rx_is_of_connection(), compiled into the check that each packet passes. */
static inline bool roce_rx_comes_from(struct peer *peer, const struct roce_packet *pkt)
{
    peer_path_check(peer, peer->qp->hca);
    return memcmp(pkt->addr.sgid, peer->path.dgid, 16) == 0 &&
           memcmp(pkt->addr.dgid, peer->path.sgid, 16) == 0 && pkt->addr.is_v1 == peer->path.is_v1;
}

bool roce_rx_is_of_connection(struct peer *peer, const struct roce_packet *pkt)
{
    return roce_rx_comes_from(peer, pkt);
}

/* Whether a packet is for one of the vport's GIDs and its VLAN. A connection that takes packets has
 * such a GID (peer_path_update()), so its packets need no lookup in the table. A tag of VLAN 0
 * carries only a priority (IEEE 802.1Q). *is_of_connection: roce_rx_is_of_connection() has been
 * found to hold. */
static inline bool roce_rx_is_for_vport(struct hca *hca, struct qp *qp,
                                        const struct roce_packet *pkt, bool *is_of_connection)
{
    uint16_t vlan_id = pkt->addr.vlan_tci & 0xfff;
    bool has_vlan = pkt->addr.has_vlan && vlan_id;

    *is_of_connection = G_LIKELY(qp && qp->service->connected) && REQUEST_STATES >> qp->state & 1 &&
                        roce_rx_comes_from(&qp->peer, pkt);
    if (*is_of_connection && !qp->peer.path_gone && qp->peer.path.has_vlan == has_vlan &&
        (!has_vlan || (qp->peer.path.vlan_tci & 0xfff) == vlan_id)) {
        return true;
    }
    return vport_find_gid(hca->vport, pkt->addr.dgid, pkt->addr.is_v1, has_vlan, vlan_id) >= 0;
}

/* Makes the checks that need the QP, and delivers the packet. is_of_connection: it is known to be
 * of the connection. */
/* Hot, because datagrams are not rare. */
__attribute__((hot)) static void roce_rx_deliver(struct hca *hca, struct qp *qp,
                                                 const struct roce_packet *pkt,
                                                 bool is_of_connection)
{
    struct vport_counters *c = &hca->vport->counters;
    uint32_t flags = bth_opcodes[pkt->opcode].flags;
    uint32_t states = flags & PKT_RESPONSE ? RESPONSE_STATES : REQUEST_STATES;

    if (!roce_rx_transport_ok(qp, pkt->opcode) || !roce_rx_half_ok(qp, flags) ||
        !(states & (1u << qp->state))) {
        c->rx_no_qp++;
        return;
    }
    if (!roce_rx_pkey_ok(pkt->pkey, qp->pkey)) {
        c->rx_bad_pkey++;
        return;
    }
    if (flags & HDR_DETH) {
        if (pkt->deth.qkey != qp->qkey) {
            c->rx_bad_qkey++;
            return;
        }
    } else if (!is_of_connection && !roce_rx_is_of_connection(&qp->peer, pkt)) {
        c->rx_bad_gid++;
        return;
    }
    if (G_UNLIKELY(notification_is_marked(pkt)) && qp->service->connected) {
        notification_answer_mark(&qp->peer, pkt);
    }
    if (G_UNLIKELY(qp->dci)) {
        dci_rx(qp, pkt);
    } else if (flags & PKT_RESPONSE) {
        requester_rx(qp, pkt);
    } else {
        responder_rx(&qp->peer, pkt);
    }
}

/* The QP of that number, or an initiator of the device's own. */
static struct qp *roce_rx_find(struct hca *hca, uint32_t qpn)
{
    struct obj *obj = obj_find(&hca->qpns, qpn);

    return obj && (obj->kind == OBJ_QP || obj->kind == OBJ_XRQ_DCI) ? (struct qp *)obj : NULL;
}

/* -- multicast -------------------------------------------------------------------------------- */

bool roce_wants_copy(struct hca *hca, const struct roce_addr *addr)
{
    const struct mcg *mcg = roce_gid_is_multicast(addr->dgid) ? mcg_find(hca, addr->dgid) : NULL;

    for (unsigned i = 0; mcg && i < mcg->num_qps; i++) {
        if (!mcg->qps[i]->block_lb_mc) {
            return true;
        }
    }
    return false;
}

/* Delivers a datagram to each QP that is a member of its group. */
static void roce_rx_deliver_multicast(struct hca *hca, const struct roce_packet *pkt)
{
    bool is_own = vport_find_gid(hca->vport, pkt->addr.sgid, pkt->addr.is_v1, pkt->addr.has_vlan,
                                 pkt->addr.vlan_tci & 0xfff) >= 0;
    const struct mcg *mcg = mcg_find(hca, pkt->addr.dgid);
    bool is_first = true;

    if (pkt->dest_qp != QPN_MULTICAST || bth_opcodes[pkt->opcode].transport != BTH_UD) {
        hca->vport->counters.rx_no_qp++;
        return;
    }
    for (unsigned i = 0; mcg && i < mcg->num_qps; i++) {
        if (is_own && mcg->qps[i]->block_lb_mc) {
            continue;
        }
        if (port_may_copy(hca, is_first)) {
            roce_rx_deliver(hca, mcg->qps[i], pkt, false);
        }
        is_first = false;
    }
}

void roce_rx(struct hca *hca, const struct roce_packet *pkt)
{
    struct vport_counters *c = &hca->vport->counters;
    struct qp *qp;
    bool is_of_connection;

    if (G_UNLIKELY(notification_is_marked(pkt))) {
        notification_count_mark(hca);
    }
    if (roce_gid_is_multicast(pkt->addr.dgid)) {
        roce_rx_deliver_multicast(hca, pkt);
        return;
    }
    qp = pkt->dest_qp == QPN_GSI ? hca->rdma->gsi_qp : roce_rx_find(hca, pkt->dest_qp);
    if (!roce_rx_is_for_vport(hca, qp, pkt, &is_of_connection)) {
        c->rx_bad_gid++;
        return;
    }
    if (!qp && bth_opcodes[pkt->opcode].transport == BTH_DC) {
        dct_rx(hca, pkt);
        return;
    }
    if (G_UNLIKELY(pkt->opcode == BTH_CNP_OPCODE)) {
        reaction_rx_cnp(hca, qp ? &qp->peer : dct_find_peer(hca, pkt), pkt);
        return;
    }
    if (!qp) {
        c->rx_no_qp++;
        return;
    }
    roce_rx_deliver(hca, qp, pkt, is_of_connection);
}
