/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Receives datagrams: UD QPs and the GSI QP (IBTA 9.8.3, annex A17.7.2 for the network header).
 *
 * The first bytes of a receive buffer are for the network header (roce_put_grh()). The CQE says
 * which kind of header it is; its byte count includes the header. A datagram is dropped and counted
 * if there is no receive WQE. If it does not fit its WQE, it is dropped and counted, too, and the
 * WQE is kept for the next datagram (9.9.3, class D). But a WQE of an SRQ, which other QPs wait
 * for, is not kept: it completes with LOCAL_LENGTH_ERR, and the QP fails (class E).
 */
#include <string.h>
#include "model/queue/q_counter.h"
#include "model/rdma/responder_internal.h"

static enum verdict responder_scatter_ud(struct peer *peer, const struct roce_packet *pkt)
{
    uint8_t grh[GRH_BYTES];
    enum verdict verdict;

    if (GRH_BYTES + pkt->payload_len > peer->resp.wqe_len) {
        return VERDICT_LENGTH;
    }
    roce_put_grh(grh, pkt);
    peer->resp.recv_pdn = qp_recv_pdn(peer->qp);
    peer->resp.cursor = (struct sge_cursor){0};
    verdict = responder_scatter(peer, 0, grh, GRH_BYTES);
    if (verdict == VERDICT_OK && pkt->payload_len) {
        verdict = responder_scatter(peer, GRH_BYTES, pkt->payload, pkt->payload_len);
    }
    if (G_UNLIKELY(peer->qp->pads_end) && verdict == VERDICT_OK) {
        responder_pad_end(peer, GRH_BYTES + pkt->payload_len);
    }
    return verdict;
}

static void responder_complete_ud(struct peer *peer, const struct roce_packet *pkt)
{
    bool has_imm = bth_opcodes[pkt->opcode].flags & HDR_IMM_DT;
    struct prm_cqe64 cqe[1] = {0};

    PRM_SET(cqe64, cqe, rqpn, pkt->deth.src_qp);
    PRM_SET(cqe64, cqe, grh, PRM_CQE_GRH_IN_BUFFER);
    PRM_SET(cqe64, cqe, roce_l3_hdr_type,
            pkt->addr.is_ipv4 ? PRM_CQE_ROCE_L3_IPV4
            : pkt->addr.is_v1 ? PRM_CQE_ROCE_L3_GRH
                              : PRM_CQE_ROCE_L3_IPV6);
    if (pkt->addr.has_vlan) {
        PRM_SET(cqe64, cqe, cv, 1);
        PRM_SET(cqe64, cqe, vlan_info, pkt->addr.vlan_tci);
    }
    if (has_imm) {
        PRM_SET(cqe64, cqe, immediate, pkt->imm);
    } else if (peer->qp->service->is_gsi) {
        /* The driver looks this key up in the port's table (handle_responder()). */
        PRM_SET(cqe64, cqe, pkey, pkt->pkey);
    }
    responder_complete(peer, has_imm ? PRM_CQE_OPCODE_RESP_SEND_IMM : PRM_CQE_OPCODE_RESP_SEND,
                       GRH_BYTES + pkt->payload_len, cqe, pkt->solicited, NULL);
}

void responder_rx_ud(struct peer *peer, const struct roce_packet *pkt)
{
    struct qp *qp = peer->qp;
    enum verdict verdict;

    if (pkt->payload_len > qp->mtu) {
        return; /* longer than a datagram may be (IBTA 9.8.3) */
    }
    verdict = responder_take(peer);
    if (verdict == VERDICT_RNR) {
        return;
    }
    if (verdict == VERDICT_OK) {
        verdict = responder_scatter_ud(peer, pkt);
    }
    if (verdict == VERDICT_FAULT) {
        return; /* the WQE is kept for the next datagram */
    }
    if (verdict == VERDICT_LENGTH && !qp->srq) {
        qp_counters(qp)->resp_local_length_error++;
        hca_log(qp->hca, HCA_LOG_GUEST_ERROR,
                "qp 0x%x: datagram of %zu bytes is longer than its receive buffer, dropped",
                qp->obj.num, pkt->payload_len);
        return;
    }
    if (verdict == VERDICT_OK) {
        peer->resp.epsn = (pkt->psn + 1) & PSN_MASK;
        responder_complete_ud(peer, pkt);
    } else {
        responder_fail(peer, verdict, pkt->psn);
    }
}
