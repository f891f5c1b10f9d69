/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Polls a completion queue: finds the work request that a CQE completes.
 *
 * A CQE names its queue by user index. The wr_id of a WQE is in the queue's own tables, and taking
 * a completion advances the queue's tail. If a CQ is empty, the HCA works and the CQ is polled once
 * more, so a program that polls drives its HCA itself.
 */
#include "guest-lib/verbs/exp/peer.h"
#include "guest-lib/verbs/user/cqe_data.h"
#include "guest-lib/verbs/user/dv_sig.h"
#include "guest-lib/verbs/user/explain.h"
#include "guest-lib/verbs/user/tm.h"
#include "guest-lib/verbs/user/trace.h"

/* By enum cqe_syndrome; all others are IBV_WC_GENERAL_ERR. */
static const enum ibv_wc_status status_of_syndrome[256] = {
    [PRM_CQE_SYNDROME_LOCAL_LENGTH_ERR] = IBV_WC_LOC_LEN_ERR,
    [PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR] = IBV_WC_LOC_QP_OP_ERR,
    [PRM_CQE_SYNDROME_LOCAL_PROT_ERR] = IBV_WC_LOC_PROT_ERR,
    [PRM_CQE_SYNDROME_WR_FLUSH_ERR] = IBV_WC_WR_FLUSH_ERR,
    [PRM_CQE_SYNDROME_MW_BIND_ERR] = IBV_WC_MW_BIND_ERR,
    [PRM_CQE_SYNDROME_BAD_RESP_ERR] = IBV_WC_BAD_RESP_ERR,
    [PRM_CQE_SYNDROME_LOCAL_ACCESS_ERR] = IBV_WC_LOC_ACCESS_ERR,
    [PRM_CQE_SYNDROME_REMOTE_INVAL_REQ_ERR] = IBV_WC_REM_INV_REQ_ERR,
    [PRM_CQE_SYNDROME_REMOTE_ACCESS_ERR] = IBV_WC_REM_ACCESS_ERR,
    [PRM_CQE_SYNDROME_REMOTE_OP_ERR] = IBV_WC_REM_OP_ERR,
    [PRM_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR] = IBV_WC_RETRY_EXC_ERR,
    [PRM_CQE_SYNDROME_RNR_RETRY_EXC_ERR] = IBV_WC_RNR_RETRY_EXC_ERR,
    [PRM_CQE_SYNDROME_REMOTE_ABORTED_ERR] = IBV_WC_REM_ABORT_ERR,
};

/* The opcode and the fields of the work completion of a send WQE, by the WQE's opcode. For opcodes
 * that are not in this table, the posting function has stored the completion's opcode (wr_data). */
static const struct {
    bool known;
    uint8_t opcode;
    uint8_t wc_flags;
    bool has_byte_cnt;
    uint8_t byte_len; /* used if the CQE has no byte_cnt */
} sends[256] = {
    [PRM_WQE_OPCODE_RDMA_WRITE] = {true, IBV_WC_RDMA_WRITE, 0, false, 0},
    [PRM_WQE_OPCODE_RDMA_WRITE_IMM] = {true, IBV_WC_RDMA_WRITE, IBV_WC_WITH_IMM, false, 0},
    [PRM_WQE_OPCODE_SEND] = {true, IBV_WC_SEND, 0, false, 0},
    [PRM_WQE_OPCODE_SEND_IMM] = {true, IBV_WC_SEND, IBV_WC_WITH_IMM, false, 0},
    [PRM_WQE_OPCODE_SEND_INVAL] = {true, IBV_WC_SEND, 0, false, 0},
    [PRM_WQE_OPCODE_TSO] = {true, IBV_WC_TSO, 0, false, 0},
    [PRM_WQE_OPCODE_RDMA_READ] = {true, IBV_WC_RDMA_READ, 0, true, 0},
    [PRM_WQE_OPCODE_ATOMIC_CS] = {true, IBV_WC_COMP_SWAP, 0, false, 8},
    [PRM_WQE_OPCODE_ATOMIC_FA] = {true, IBV_WC_FETCH_ADD, 0, false, 8},
};

/* The queue that a CQE names, or NULL. The CQ remembers the last one. */
static inline const struct hv_rsc *cq_poll_find_rsc(struct user_cq *cq, const struct prm_cqe64 *cqe)
{
    uint32_t uidx = PRM_GET(cqe64, cqe, srqn);

    if (uidx != cq->cur_uidx || !cq->cur_rsc || cq->cur_rsc->type == HV_RSC_NONE) {
        cq->cur_rsc = hv_uidx_find(hv_context(cq->ibv.context), uidx);
        cq->cur_uidx = uidx;
    }
    return cq->cur_rsc;
}

static inline int cq_poll_complete_send(const struct user_cq *cq, const struct hv_rsc *rsc,
                                        const struct prm_cqe64 *cqe, struct completion *done)
{
    struct user_qp *qp = rsc->obj;
    uint8_t opcode = (uint8_t)PRM_GET(cqe64, cqe, send_wqe_opcode);
    uint32_t index;

    if (rsc->type != HV_RSC_QP || !qp->sq.wqe_cnt) {
        return CQ_POLL_ERR;
    }
    index = PRM_GET(cqe64, cqe, wqe_counter) & (qp->sq.wqe_cnt - 1);
    done->wr_id = qp->sq.wrid[index];
    done->opcode = sends[opcode].known && qp->sq.wr_data[index] != IBV_WC_DRIVER2
                       ? sends[opcode].opcode
                       : qp->sq.wr_data[index];
    if (done->status == IBV_WC_SUCCESS && G_UNLIKELY(cqe_has_data(cqe))) {
        done->status = hv_cqe_data_to_sq(cq, cqe, qp);
    }
    __atomic_store_n(&qp->sq.tail, qp->sq_wqe_head[index] + 1, __ATOMIC_RELEASE);
    return 0;
}

static inline int cq_poll_complete_srq(const struct user_cq *cq, struct hv_srq *srq,
                                       const struct prm_cqe64 *cqe, struct completion *done)
{
    uint32_t index = PRM_GET(cqe64, cqe, wqe_counter);

    if (index >= srq->ring_cnt) {
        return CQ_POLL_ERR;
    }
    done->wr_id = srq->wrid[index];
    if (done->status == IBV_WC_SUCCESS && cqe_has_data(cqe)) {
        done->status = hv_cqe_data_to_srq(cq, cqe, srq);
    }
    hv_srq_free_wqe(srq, (uint16_t)index);
    return 0;
}

static inline int cq_poll_complete_rq(const struct user_cq *cq, struct hv_wq *rq,
                                      const struct prm_cqe64 *cqe, struct completion *done)
{
    if (!rq->wqe_cnt) {
        return CQ_POLL_ERR;
    }
    done->wr_id = rq->wrid[PRM_GET(cqe64, cqe, wqe_counter) & (rq->wqe_cnt - 1)];
    if (done->status == IBV_WC_SUCCESS && cqe_has_data(cqe)) {
        done->status = hv_cqe_data_to_rq(cq, cqe, rq);
    }
    __atomic_store_n(&rq->tail, rq->tail + 1, __ATOMIC_RELEASE);
    return 0;
}

/* A packet, or a filler, of a WQE that takes many: the WQE ends with the CQE of its last stride. A
 * failed CQE names the WQE as those of other queues do, and ends it. */
static G_GNUC_NO_INLINE int cq_poll_complete_strides(struct hv_rwq *wq, const struct prm_cqe64 *cqe,
                                                     struct completion *done)
{
    bool failed = done->status != IBV_WC_SUCCESS;
    uint32_t index =
        (uint32_t)(failed ? PRM_GET(cqe64, cqe, wqe_counter) : PRM_GET(cqe64, cqe, wqe_id)) &
        (wq->rq.wqe_cnt - 1);
    uint32_t byte_cnt = PRM_GET(cqe64, cqe, byte_cnt), len = byte_cnt & HV_STRIDES_BYTES;

    done->wr_id = wq->rq.wrid[index];
    done->strides = true;
    done->len = byte_cnt & HV_STRIDES_FILLER ? 0 : len - MIN(len, wq->stride_shift ? 2u : 0);
    wq->strides_used[index] += HV_STRIDES_NUM(byte_cnt);
    done->last = failed || wq->strides_used[index] >= 1u << wq->log_strides;
    if (done->last) {
        wq->strides_used[index] = 0;
        __atomic_store_n(&wq->rq.tail, wq->rq.tail + 1, __ATOMIC_RELEASE);
    }
    return 0;
}

static inline int cq_poll_complete_recv(const struct user_cq *cq, const struct hv_rsc *rsc,
                                        const struct prm_cqe64 *cqe, struct completion *done)
{
    struct user_qp *qp = rsc->obj;

    switch (rsc->type) {
    case HV_RSC_QP:
        if (qp->srq) {
            return cq_poll_complete_srq(cq, qp->srq, cqe, done);
        }
        done->csum_valid = qp->rx_csum_valid;
        return cq_poll_complete_rq(cq, &qp->rq, cqe, done);
    case HV_RSC_XSRQ:
        return cq_poll_complete_srq(cq, rsc->obj, cqe, done);
    case HV_RSC_RWQ:
        if (G_UNLIKELY(((struct hv_rwq *)rsc->obj)->log_strides)) {
            return cq_poll_complete_strides(rsc->obj, cqe, done);
        }
        return cq_poll_complete_rq(cq, &((struct hv_rwq *)rsc->obj)->rq, cqe, done);
    default:
        return CQ_POLL_ERR;
    }
}

static G_GNUC_NO_INLINE int cq_poll_complete_tm(struct user_cq *cq, const struct hv_rsc *rsc,
                                                const struct prm_cqe64 *cqe,
                                                struct completion *done)
{
    struct hv_srq *srq = rsc->obj;

    if (rsc->type != HV_RSC_XSRQ || !srq->tm) {
        return CQ_POLL_ERR;
    }
    hv_tm_complete(cq, srq, cqe, done);
    return 0;
}

#define VENDOR_PAGE_FAULT 0x93 /* MLX5_CQE_VENDOR_SYNDROME_ODP_PFAULT */

/* The SRQ of a receive that the device gave back because pages were missing, or NULL. */
static struct hv_srq *cq_poll_faulted_srq(const struct hv_rsc *rsc, const struct prm_cqe64 *cqe)
{
    if (cqe_op_own(cqe) >> 4 != PRM_CQE_OPCODE_RESP_ERR ||
        PRM_GET(err_cqe, cqe_failed(cqe), syndrome) != PRM_CQE_SYNDROME_REMOTE_ABORTED_ERR ||
        PRM_GET(err_cqe, cqe_failed(cqe), vendor_err_synd) != VENDOR_PAGE_FAULT) {
        return NULL;
    }
    return rsc->type == HV_RSC_QP     ? ((struct user_qp *)rsc->obj)->srq
           : rsc->type == HV_RSC_XSRQ ? rsc->obj
                                      : NULL;
}

/* A CQE of a failed WQE, a signature error, or a CQE that names no queue (rsc is NULL). */
static G_GNUC_NO_INLINE __attribute__((cold)) int
cq_poll_complete_failed(struct user_cq *cq, const struct hv_rsc *rsc, const struct prm_cqe64 *cqe,
                        struct completion *done)
{
    uint8_t opcode = cqe_op_own(cqe) >> 4;
    uint32_t index = PRM_GET(cqe64, cqe, wqe_counter);
    struct hv_srq *srq;

    if (opcode == PRM_CQE_OPCODE_SIG_ERR) {
        return hv_dv_sig_error(cq->ibv.context, cqe) ? CQ_POLL_ERR : CQ_OWN;
    }
    if (!rsc) {
        if (cq->on_gpu) {
            hv_cq_poll_lost(cq);
        }
        return CQ_POLL_ERR;
    }
    if (opcode != PRM_CQE_OPCODE_REQ_ERR && opcode != PRM_CQE_OPCODE_RESP_ERR) {
        return CQ_POLL_ERR;
    }
    srq = cq_poll_faulted_srq(rsc, cqe);
    if (srq) {
        if (index >= srq->ring_cnt) {
            return CQ_POLL_ERR;
        }
        hv_srq_fault(srq, (uint16_t)index);
        return CQ_OWN;
    }
    done->status = status_of_syndrome[PRM_GET(err_cqe, cqe_failed(cqe), syndrome)];
    if (done->status == IBV_WC_SUCCESS) {
        done->status = IBV_WC_GENERAL_ERR;
    }
    if (hv_explains(cq->hca)) {
        hv_explain(cq, rsc, cqe, done->status);
    }
    return opcode == PRM_CQE_OPCODE_REQ_ERR ? cq_poll_complete_send(cq, rsc, cqe, done)
                                            : cq_poll_complete_recv(cq, rsc, cqe, done);
}

int cq_complete(struct user_cq *cq, const struct prm_cqe64 *cqe, struct completion *done)
{
    const struct hv_rsc *rsc = cq_poll_find_rsc(cq, cqe);

    *done = (struct completion){.status = IBV_WC_SUCCESS};
    if (G_UNLIKELY(!rsc)) {
        return cq_poll_complete_failed(cq, rsc, cqe, done);
    }
    switch (cqe_op_own(cqe) >> 4) {
    case PRM_CQE_OPCODE_REQ:
        return cq_poll_complete_send(cq, rsc, cqe, done);
    case PRM_CQE_OPCODE_RESP_WR_IMM:
    case PRM_CQE_OPCODE_RESP_SEND:
    case PRM_CQE_OPCODE_RESP_SEND_IMM:
    case PRM_CQE_OPCODE_RESP_SEND_INV:
        return G_UNLIKELY(hv_tm_is_cqe(cqe)) ? cq_poll_complete_tm(cq, rsc, cqe, done)
                                             : cq_poll_complete_recv(cq, rsc, cqe, done);
    case PRM_CQE_OPCODE_NO_PACKET:
        return hv_tm_is_cqe(cqe) ? cq_poll_complete_tm(cq, rsc, cqe, done) : CQ_POLL_ERR;
    default:
        return cq_poll_complete_failed(cq, rsc, cqe, done);
    }
}

/* -- ibv_poll_cq() ------------------------------------------------------------------------------
 */

static inline void cq_poll_fill_send(struct ibv_wc *wc, const struct prm_cqe64 *cqe,
                                     const struct completion *done)
{
    uint8_t opcode = (uint8_t)PRM_GET(cqe64, cqe, send_wqe_opcode);

    wc->opcode = done->opcode;
    if (sends[opcode].known) {
        wc->wc_flags = sends[opcode].wc_flags;
        if (sends[opcode].has_byte_cnt) {
            wc->byte_len = PRM_GET(cqe64, cqe, byte_cnt);
        } else if (sends[opcode].byte_len) {
            wc->byte_len = sends[opcode].byte_len;
        }
    }
}

static inline void cq_poll_fill_recv(struct ibv_wc *wc, const struct prm_cqe64 *cqe,
                                     const struct completion *done)
{
    wc->byte_len = G_UNLIKELY(done->strides) ? done->len : PRM_GET(cqe64, cqe, byte_cnt);
    wc->wc_flags = done->csum_valid ? cqe_csum_ok(cqe) : 0;
    switch (cqe_op_own(cqe) >> 4) {
    case PRM_CQE_OPCODE_RESP_WR_IMM:
        wc->opcode = IBV_WC_RECV_RDMA_WITH_IMM;
        wc->wc_flags |= IBV_WC_WITH_IMM;
        wc->imm_data = GUINT32_TO_BE(PRM_GET(cqe64, cqe, immediate));
        break;
    case PRM_CQE_OPCODE_RESP_SEND_IMM:
        wc->opcode = IBV_WC_RECV;
        wc->wc_flags |= IBV_WC_WITH_IMM;
        wc->imm_data = GUINT32_TO_BE(PRM_GET(cqe64, cqe, immediate));
        break;
    case PRM_CQE_OPCODE_RESP_SEND_INV:
        wc->opcode = IBV_WC_RECV;
        wc->wc_flags |= IBV_WC_WITH_INV;
        wc->invalidated_rkey = PRM_GET(cqe64, cqe, inval_rkey);
        break;
    default:
        wc->opcode = IBV_WC_RECV;
        break;
    }
    if (cqe_is_data(cqe)) {
        wc->slid = wc->sl = wc->dlid_path_bits = 0;
        wc->src_qp = 0;
    } else {
        wc->slid = (uint16_t)PRM_GET(cqe64, cqe, slid);
        wc->sl = (uint8_t)PRM_GET(cqe64, cqe, sl);
        wc->src_qp = PRM_GET(cqe64, cqe, rqpn);
        wc->dlid_path_bits = PRM_GET(cqe64, cqe, ml_path) & 0x7f;
        wc->wc_flags |= PRM_GET(cqe64, cqe, grh) ? IBV_WC_GRH : 0;
    }
    wc->pkey_index = PRM_GET(cqe64, cqe, pkey) & 0xffff;
}

/* Polls one completion: 0, CQ_OWN, or CQ_POLL_ERR. */
static inline int poll_take(struct user_cq *cq, const struct prm_cqe64 *cqe, struct ibv_wc *wc,
                            struct completion *done)
{
    uint8_t opcode = cqe_op_own(cqe) >> 4;
    int err = cq_complete(cq, cqe, done);

    if (G_UNLIKELY(err)) {
        return err;
    }
    if (G_UNLIKELY(hv_traces)) {
        hv_trace_poll(cq, cqe, done);
    }
    wc->wr_id = done->wr_id;
    wc->status = done->status;
    wc->qp_num = PRM_GET(cqe64, cqe, qpn);
    wc->wc_flags = 0;
    if (opcode == PRM_CQE_OPCODE_REQ) {
        cq_poll_fill_send(wc, cqe, done);
    } else if (opcode >= PRM_CQE_OPCODE_SIG_ERR) {
        wc->vendor_err = PRM_GET(err_cqe, cqe_failed(cqe), vendor_err_synd);
    } else {
        cq_poll_fill_recv(wc, cqe, done);
    }
    return 0;
}

static inline int poll_one(struct user_cq *cq, const struct prm_cqe64 *cqe, struct ibv_wc *wc)
{
    struct completion done;

    return poll_take(cq, cqe, wc, &done);
}

int hv_cq_poll_one(struct user_cq *cq, const struct prm_cqe64 *cqe, struct ibv_wc *wc,
                   struct completion *done)
{
    return poll_take(cq, cqe, wc, done);
}

enum ibv_wc_opcode hv_cq_failed_opcode(const struct prm_cqe64 *cqe, enum ibv_wc_opcode stored)
{
    uint8_t opcode = (uint8_t)PRM_GET(err_cqe, cqe_failed(cqe), send_wqe_opcode);

    return sends[opcode].known ? sends[opcode].opcode : stored;
}

static inline int poll_locked(struct user_cq *cq, int num_entries, struct ibv_wc *wc)
{
    int polled = 0, err = 0;

    while (polled < num_entries) {
        const struct prm_cqe64 *cqe = cq_sw_cqe64(cq, cq->ci);

        if (!cqe) {
            break;
        }
        cq->ci++;
        err = poll_one(cq, cqe, wc);
        if (G_LIKELY(!err)) {
            polled++;
            wc++;
        } else if (err == CQ_OWN) {
            cq_update_ci(cq);
            err = 0;
        } else {
            break;
        }
    }
    if (polled || err) {
        cq_update_ci(cq);
    }
    return err ? err : polled;
}

/* As poll_locked(), for a CQ with a peer: stops before an entry that a list waits for. */
static int poll_for_peer_locked(struct user_cq *cq, int num_entries, struct ibv_wc *wc)
{
    int polled = 0, err = 0;
    struct prm_cqe64 *cqe;

    while (polled < num_entries && err >= 0 && exp_peer_may_poll(cq) &&
           (cqe = cq_sw_cqe64(cq, cq->ci))) {
        cq->ci++;
        err = poll_one(cq, cqe, wc + polled);
        exp_peer_polled(cq, cqe);
        polled += !err;
        cq_update_ci(cq);
    }
    return err < 0 ? err : polled;
}

/* The HCA works before the second look, because it may carry out what the peer does. */
static G_GNUC_NO_INLINE __attribute__((cold)) int poll_for_peer(struct user_cq *cq, int num_entries,
                                                                struct ibv_wc *wc)
{
    int polled = 0;

    for (unsigned looks = 0; !polled && looks < 2 && num_entries > 0; looks++) {
        if (looks) {
            hv_progress(cq->hca);
        }
        cq_lock(cq);
        polled = poll_for_peer_locked(cq, num_entries, wc);
        cq_unlock(cq);
    }
    if (polled > 0) {
        hv_progress_now_and_then(cq->hca);
    }
    return polled || hv_is_ours(cq->hca) ? polled : -1;
}

int hv_poll_cq(struct ibv_cq *ibcq, int num_entries, struct ibv_wc *wc)
{
    struct user_cq *cq = user_cq(ibcq);
    int polled;

    if (G_UNLIKELY(cq->peer_cq)) {
        return poll_for_peer(cq, num_entries, wc);
    }
    cq_lock(cq);
    polled = poll_locked(cq, num_entries, wc);
    cq_unlock(cq);
    if (polled > 0) {
        hv_progress_now_and_then(cq->hca);
        return polled;
    }
    if (!polled && num_entries > 0 && hv_progress(cq->hca)) {
        cq_lock(cq);
        polled = poll_locked(cq, num_entries, wc);
        cq_unlock(cq);
    }
    return polled || hv_is_ours(cq->hca) ? polled : -1;
}
