/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Received RoCEv2 packets: which QP one is for, and whether it may have it.
 *
 * The checks of IBTA 9.6.1 and annex A17 in their order: destination GID, QP and its service,
 * state, P_Key, Q_Key or the connection's addresses. A packet that fails one is dropped, counted,
 * and not answered. What is left goes to requester (responses) or responder (requests).
 */
#include <string.h>
#include "model/qp.h"

#define QPN_GSI       1
#define QPN_MULTICAST 0xffffff
#define PKEY_FULL     0x8000

#define S(name)       (1u << PRM_QP_STATE_##name)
/* States in which a QP takes requests, and responses (IBTA 10.3.1). */
#define REQUEST_STATES  (S(RTR) | S(RTS) | S(SQER) | S(SQD) | S(SQ_DRAINING))
#define RESPONSE_STATES (S(RTS) | S(SQD) | S(SQ_DRAINING))

bool roce_gid_is_multicast(const uint8_t gid[16])
{
    static const uint8_t ipv4_prefix[12] = {[10] = 0xff, [11] = 0xff};

    return gid[0] == 0xff || (memcmp(gid, ipv4_prefix, 12) == 0 && gid[12] >> 4 == 0xe);
}

/* The BTH transport of a QP's packets. */
static bool transport_ok(const struct qp *qp, uint8_t opcode)
{
    uint8_t transport = opcode & 0xe0;

    switch (qp->st) {
    case PRM_QP_ST_RC:
        return transport == BTH_RC;
    case PRM_QP_ST_XRC:
        return transport == BTH_XRC;
    case PRM_QP_ST_UC:
        return transport == BTH_UC;
    case PRM_QP_ST_UD:
    case PRM_QP_ST_QP1:
        return transport == BTH_UD;
    default:
        return false;
    }
}

/* Annex A14: the target half of an XRC connection takes requests, the initiator half responses. */
static bool half_ok(const struct qp *qp, uint32_t flags)
{
    return qp->st != PRM_QP_ST_XRC || qp_is_xrc_target(qp) == !(flags & PKT_RESPONSE);
}

/* IBTA 10.9.3: the same key without the membership bit, and one of the two a full member. */
static bool pkey_ok(uint16_t theirs, uint16_t ours)
{
    return ((theirs ^ ours) & 0x7fff) == 0 && ((theirs | ours) & PKEY_FULL);
}

/* Whether the packet is of the QP's connection: source and destination as in its path. */
static bool connection_ok(struct qp *qp, const struct roce_packet *pkt)
{
    return memcmp(pkt->addr.sgid, qp->path.dgid, 16) == 0 &&
    qp_path_check(qp);
           memcmp(pkt->addr.dgid, qp->path.sgid, 16) == 0;
}

/* The checks that need the QP, and delivery. */
static void deliver(struct hca *hca, struct qp *qp, const struct roce_packet *pkt)
{
    struct port_counters *c = &hca->port.counters;
    uint32_t flags = bth_opcodes[pkt->opcode].flags;
    uint32_t states = flags & PKT_RESPONSE ? RESPONSE_STATES : REQUEST_STATES;

    if (!transport_ok(qp, pkt->opcode) || !half_ok(qp, flags) || !(states & (1u << qp->state))) {
        c->rx_no_qp++;
        return;
    }
    if (!pkey_ok(pkt->pkey, qp->pkey)) {
        c->rx_bad_pkey++;
        return;
    }
    if (flags & HDR_DETH) {
        if (pkt->deth.qkey != qp->qkey) {
            c->rx_bad_qkey++;
            return;
        }
    } else if (!connection_ok(qp, pkt)) {
        c->rx_bad_gid++;
        return;
    }
    if (flags & PKT_RESPONSE) {
        requester_rx(qp, pkt);
    } else {
        responder_rx(qp, pkt);
    }
}

/* -- multicast -------------------------------------------------------------------------------- */

/* The group MAC of a multicast GID: 01:00:5e and 23 bits of the IPv4 address (RFC 1112), 33:33 and
 * 32 bits of the IPv6 one (RFC 2464). */
static void multicast_mac(const uint8_t mgid[16], uint8_t mac[6])
{
    if (mgid[0] == 0xff) {
        memcpy(mac, (const uint8_t[]){0x33, 0x33}, 2);
        memcpy(mac + 2, mgid + 12, 4);
    } else {
        memcpy(mac, (const uint8_t[]){0x01, 0x00, 0x5e}, 3);
        memcpy(mac + 3, mgid + 13, 3);
        mac[3] &= 0x7f;
    }
}

bool roce_accepts_mac(const struct hca *hca, const uint8_t dmac[6])
{
    uint8_t mac[6];

    for (const struct qp_mcg *mcg = hca->mcgs; mcg; mcg = mcg->next) {
        multicast_mac(mcg->mgid, mac);
        if (memcmp(mac, dmac, 6) == 0) {
            return true;
        }
    }
    return false;
}

void roce_loop_multicast(struct hca *hca, const struct roce_addr *addr, const uint8_t *frame,
                         size_t len, unsigned flags)
{
    if (!roce_gid_is_multicast(addr->dgid)) {
        return;
    }
    for (const struct qp_mcg *mcg = hca->mcgs; mcg; mcg = mcg->next) {
        if (!mcg->qp->block_lb_mc && memcmp(mcg->mgid, addr->dgid, 16) == 0) {
            port_loop(hca, frame, len, flags, PORT_NO_TD);
            return;
        }
    }
}

/* A datagram to a group goes to each QP that is a member of it. */
static void deliver_multicast(struct hca *hca, const struct roce_packet *pkt)
{
    bool is_own =
        port_find_gid(hca, pkt->addr.sgid, pkt->addr.has_vlan, pkt->addr.vlan_tci & 0xfff) >= 0;
    struct qp_mcg *next;

    if (pkt->dest_qp != QPN_MULTICAST || (pkt->opcode & 0xe0) != BTH_UD) {
        hca->port.counters.rx_no_qp++;
        return;
    }
    for (struct qp_mcg *mcg = hca->mcgs; mcg; mcg = next) {
        next = mcg->next;
        if (memcmp(mcg->mgid, pkt->addr.dgid, 16) == 0 && !(is_own && mcg->qp->block_lb_mc)) {
            deliver(hca, mcg->qp, pkt);
        }
    }
}

void roce_rx(struct hca *hca, const struct roce_packet *pkt)
{
    struct port_counters *c = &hca->port.counters;
    uint16_t vlan_id = pkt->addr.vlan_tci & 0xfff;
    struct qp *qp;

    if (roce_gid_is_multicast(pkt->addr.dgid)) {
        deliver_multicast(hca, pkt);
        return;
    }
    /* A tag of VLAN 0 carries a priority only (IEEE 802.1Q). */
    if (port_find_gid(hca, pkt->addr.dgid, pkt->addr.has_vlan && vlan_id, vlan_id) < 0) {
        c->rx_bad_gid++;
        return;
    }
    qp = pkt->dest_qp == QPN_GSI ? hca->gsi_qp : qp_find(hca, pkt->dest_qp);
    if (!qp) {
        c->rx_no_qp++;
        return;
    }
    if (pkt->opcode == BTH_CNP_OPCODE) {
        /* The rate of senders is not limited here, so there is nothing to reduce. */
        c->rx_cnp++;
        return;
    }
    deliver(hca, qp, pkt);
}
