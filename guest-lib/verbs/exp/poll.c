/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ibv_exp_poll_cq(). A struct ibv_exp_wc begins with the members of struct ibv_wc, which
 * ibv_poll_cq()'s function fills. The members behind them say which queue completed, when, and what
 * a packet was.
 */
#include "guest-lib/verbs/exp/dct.h"
#include "guest-lib/verbs/exp/exp.h"
#include "guest-lib/verbs/exp/peer.h"
#include "guest-lib/verbs/user/cq.h"
#include "guest-lib/verbs/user/tm.h"

#define SAME_PLACE(a, b)                                                                           \
    G_STATIC_ASSERT(offsetof(struct ibv_exp_wc, a) == offsetof(struct ibv_wc, b))
SAME_PLACE(wr_id, wr_id);
SAME_PLACE(status, status);
SAME_PLACE(exp_opcode, opcode);
SAME_PLACE(byte_len, byte_len);
SAME_PLACE(imm_data, imm_data);
SAME_PLACE(reserved, wc_flags);
SAME_PLACE(dlid_path_bits, dlid_path_bits);

/* The opcodes that have other values in enum ibv_exp_wc_opcode. */
static enum ibv_exp_wc_opcode exp_poll_opcode(enum ibv_wc_opcode opcode)
{
    switch (opcode) {
    case IBV_WC_TSO:
        return IBV_EXP_WC_TSO;
    case IBV_WC_DRIVER1:
        return IBV_EXP_WC_UMR;
    case IBV_WC_TM_ADD:
        return IBV_EXP_WC_TM_ADD;
    case IBV_WC_TM_DEL:
        return IBV_EXP_WC_TM_DEL;
    case IBV_WC_TM_SYNC:
        return IBV_EXP_WC_TM_SYNC;
    case IBV_WC_TM_RECV:
        return IBV_EXP_WC_TM_RECV;
    case IBV_WC_TM_NO_TAG:
        return IBV_EXP_WC_TM_NO_TAG;
    default:
        return (enum ibv_exp_wc_opcode)opcode;
    }
}

/* The flags of tag matching (mlx5_exp_poll_cq()'s tables). A message whose rendezvous ended early,
 * and an entry that was gone, are flags here; in ibv_poll_cq() they are statuses. */
static uint64_t exp_poll_tm_flags(struct ibv_exp_wc *wc, const struct prm_cqe64 *cqe, bool sync)
{
    unsigned flags = hv_tm_wc_flags(cqe);
    uint64_t exp = (flags & IBV_WC_TM_MATCH ? IBV_EXP_WC_TM_MATCH : 0) |
                   (flags & IBV_WC_TM_DATA_VALID ? IBV_EXP_WC_TM_DATA_VALID : 0) |
                   (sync ? IBV_EXP_WC_TM_SYNC_REQ : 0);

    if (wc->status == IBV_WC_TM_RNDV_INCOMPLETE) {
        wc->status = IBV_WC_SUCCESS;
        exp |= IBV_EXP_WC_TM_RNDV_INCOMPLETE;
    } else if (wc->status == IBV_WC_TM_ERR) {
        wc->status = IBV_WC_SUCCESS;
        exp |= IBV_EXP_WC_TM_DEL_FAILED;
    }
    return exp;
}

static void exp_poll_tm(struct ibv_exp_wc *wc, uint32_t wc_size, const struct prm_cqe64 *cqe)
{
    wc->exp_opcode = exp_poll_opcode(hv_tm_wc_opcode(cqe));
    if (wc_size >= sizeof(*wc)) {
        /* the header of the message as it was received: opcode, application context, tag */
        wc->tm_info.priv = cqe_is_data(cqe) ? 0 : (uint32_t)prm_load32(&cqe->bytes[4]);
        wc->tm_info.tag = cqe_is_data(cqe) ? 0 : prm_load64(&cqe->bytes[8]);
    }
}

/* The flags of a raw packet: its headers, and their sums. */
static uint64_t exp_poll_packet_flags(const struct prm_cqe64 *cqe)
{
    unsigned l3 = PRM_GET(cqe64, cqe, l3_hdr_type);

    return (PRM_GET(cqe64, cqe, l3_ok) ? IBV_EXP_WC_RX_IP_CSUM_OK : 0) |
           (PRM_GET(cqe64, cqe, l4_ok) ? IBV_EXP_WC_RX_TCP_UDP_CSUM_OK : 0) |
           (l3 == PRM_CQE_L3_HDR_TYPE_IPV4 ? IBV_EXP_WC_RX_IPV4_PACKET : 0) |
           (l3 == PRM_CQE_L3_HDR_TYPE_IPV6 ? IBV_EXP_WC_RX_IPV6_PACKET : 0);
}

/* A packet of a multi-packet WQ: its place and length; a filler has none. The flags say whether its
 * WQE takes no more. libmlx5 has these members for SRQs, and no such WQ in ibv_exp_poll_cq(). */
static uint64_t exp_poll_strides(struct ibv_exp_wc *wc, const struct prm_cqe64 *cqe,
                                 const struct completion *done)
{
    wc->exp_opcode = done->len ? IBV_EXP_WC_RECV : IBV_EXP_WC_RECV_NOP;
    wc->mp_wr.strides_offset = (uint16_t)PRM_GET(cqe64, cqe, wqe_counter);
    wc->mp_wr.byte_len = (uint16_t)done->len;
    return done->last ? IBV_EXP_WC_MP_WR_CONSUMED : 0;
}

/* Names the queue of the completion; returns the flags that say so. Each member is written only if
 * the caller's structure has it. */
static uint64_t exp_poll_queue(const struct hv_rsc *rsc, bool receive, struct ibv_exp_wc *wc,
                               uint32_t wc_size)
{
    struct user_qp *qp = rsc->type == HV_RSC_QP ? rsc->obj : NULL;
    struct hv_srq *srq = rsc->type == HV_RSC_XSRQ ? rsc->obj : NULL;
    uint64_t flags = 0;

    if (qp && receive) {
        srq = qp->srq;
    }
    if (qp && qp->dc != HV_DC_DCT && wc_size > offsetof(struct ibv_exp_wc, qp)) {
        wc->qp = &qp->ibv;
        flags |= IBV_EXP_WC_QP;
    }
    if (qp && qp->exp_dct && wc_size > offsetof(struct ibv_exp_wc, dct)) {
        wc->dct = &qp->exp_dct->ibv;
        flags |= IBV_EXP_WC_DCT;
    }
    if (srq && wc_size > offsetof(struct ibv_exp_wc, srq)) {
        wc->srq = hv_srq_of_program(srq);
        flags |= IBV_EXP_WC_SRQ;
    }
    return flags;
}

/* A global route header is in the buffer of datagrams, and of messages to a DCT; other messages
 * have none in their data. */
static bool exp_poll_has_grh(const struct hv_rsc *rsc)
{
    const struct user_qp *qp = rsc->type == HV_RSC_QP ? rsc->obj : NULL;

    return qp && (qp->ibv.qp_type == IBV_QPT_UD || qp->dc == HV_DC_DCT);
}

/* Fills in what struct ibv_wc does not have. */
static void exp_poll_fill(struct user_cq *cq, const struct prm_cqe64 *cqe,
                          const struct completion *done, struct ibv_exp_wc *wc, uint32_t wc_size)
{
    const struct hv_rsc *rsc = cq->cur_rsc;
    uint8_t opcode = cqe_op_own(cqe) >> 4;
    bool failed = opcode == PRM_CQE_OPCODE_REQ_ERR || opcode == PRM_CQE_OPCODE_RESP_ERR;
    bool receive = opcode != PRM_CQE_OPCODE_REQ && opcode != PRM_CQE_OPCODE_REQ_ERR;
    struct ibv_wc *base = (struct ibv_wc *)wc;
    uint64_t flags;

    if (!exp_poll_has_grh(rsc)) {
        base->wc_flags &= ~(unsigned)IBV_WC_GRH;
    }
    flags = (base->wc_flags & (IBV_WC_GRH | IBV_WC_WITH_IMM | IBV_WC_WITH_INV)) |
            exp_poll_queue(rsc, receive, wc, wc_size);
    if (failed) {
        wc->exp_opcode =
            receive ? IBV_EXP_WC_RECV : exp_poll_opcode(hv_cq_failed_opcode(cqe, done->opcode));
    } else if (receive && hv_tm_is_cqe(cqe)) {
        exp_poll_tm(wc, wc_size, cqe);
        flags |= exp_poll_tm_flags(wc, cqe, done->tm_sync);
    } else if (!receive) {
        wc->exp_opcode = exp_poll_opcode(base->opcode);
        if (wc->exp_opcode == IBV_EXP_WC_MASKED_COMP_SWAP ||
            wc->exp_opcode == IBV_EXP_WC_MASKED_FETCH_ADD) {
            wc->byte_len = PRM_GET(cqe64, cqe, byte_cnt);
        }
    } else if (done->csum_valid || rsc->type == HV_RSC_RWQ) {
        flags |= exp_poll_packet_flags(cqe) | (done->strides ? exp_poll_strides(wc, cqe, done) : 0);
    }
    if (cq->exp_timestamps && !failed && wc_size > offsetof(struct ibv_exp_wc, timestamp)) {
        wc->timestamp = PRM_GET(cqe64, cqe, timestamp);
        flags |= IBV_EXP_WC_WITH_TIMESTAMP;
    }
    if (wc_size > offsetof(struct ibv_exp_wc, exp_wc_flags)) {
        wc->exp_wc_flags = flags;
    }
}

/* With a peer, it stops before an entry that a list waits for. */
static int exp_poll_locked(struct user_cq *cq, int num_entries, struct ibv_exp_wc *wc,
                           uint32_t wc_size)
{
    struct prm_cqe64 *cqe;
    struct completion done;
    int polled = 0, err = 0;

    while (polled < num_entries && err >= 0 && (!cq->peer_cq || exp_peer_may_poll(cq)) &&
           (cqe = cq_sw_cqe64(cq, cq->ci))) {
        cq->ci++;
        err = hv_cq_poll_one(cq, cqe, (struct ibv_wc *)wc, &done);
        if (!err) {
            exp_poll_fill(cq, cqe, &done, wc, wc_size);
            wc = (struct ibv_exp_wc *)((char *)wc + wc_size);
            polled++;
        }
        if (cq->peer_cq) {
            exp_peer_polled(cq, cqe);
        }
        cq_update_ci(cq);
    }
    return err < 0 ? err : polled;
}

/* Polls once more after the HCA has worked, as ibv_poll_cq(). */
static int exp_poll_cq(struct ibv_cq *ibcq, int num_entries, struct ibv_exp_wc *wc,
                       uint32_t wc_size)
{
    struct user_cq *cq = user_cq(ibcq);
    int polled;

    cq_lock(cq);
    polled = exp_poll_locked(cq, num_entries, wc, wc_size);
    cq_unlock(cq);
    if (polled > 0) {
        hv_progress_now_and_then(cq->hca);
        return polled;
    }
    if (!polled && num_entries > 0 && (hv_progress(cq->hca) || cq->peer_cq)) {
        cq_lock(cq);
        polled = exp_poll_locked(cq, num_entries, wc, wc_size);
        cq_unlock(cq);
    }
    return polled || hv_is_ours(cq->hca) ? polled : -1;
}

void hv_exp_poll_ops(struct verbs_context_exp *ops)
{
    ops->drv_exp_ibv_poll_cq = exp_poll_cq;
}
