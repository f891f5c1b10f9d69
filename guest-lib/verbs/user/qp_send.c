/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queue pairs: posting by lists (ibv_post_send(), ibv_post_recv()).
 *
 * A WQE is posted when the doorbell record says so.
 */
#include <string.h>
#include "guest-lib/verbs/exp/peer.h"
#include "guest-lib/verbs/user/send_wqe.h"
#include "guest-lib/verbs/user/trace.h"

/* These functions return the dword of the control segment beside the opcode. */
static uint32_t send_imm_data(const struct ibv_send_wr *wr)
{
    return GUINT32_FROM_BE(wr->imm_data);
}

static uint32_t send_imm_key(const struct ibv_send_wr *wr)
{
    return wr->invalidate_rkey;
}

static uint32_t send_imm_window(const struct ibv_send_wr *wr)
{
    return wr->bind_mw.mw->rkey;
}

/* These functions write the segments before the data, or in the place of data. */
static void send_put_rdma(struct user_qp *qp, const struct ibv_send_wr *wr)
{
    hv_wqe_put_raddr(qp, wr->wr.rdma.remote_addr, wr->wr.rdma.rkey);
}

static void send_put_cmp_swap(struct user_qp *qp, const struct ibv_send_wr *wr)
{
    hv_wqe_put_raddr(qp, wr->wr.atomic.remote_addr, wr->wr.atomic.rkey);
    hv_wqe_put_atomic(qp, true, wr->wr.atomic.compare_add, wr->wr.atomic.swap);
}

static void send_put_fetch_add(struct user_qp *qp, const struct ibv_send_wr *wr)
{
    hv_wqe_put_raddr(qp, wr->wr.atomic.remote_addr, wr->wr.atomic.rkey);
    hv_wqe_put_atomic(qp, false, wr->wr.atomic.compare_add, wr->wr.atomic.swap);
}

static void send_put_window(struct user_qp *qp, const struct ibv_send_wr *wr)
{
    hv_wqe_put_bind(qp, wr->bind_mw.mw->type, wr->bind_mw.rkey, &wr->bind_mw.bind_info);
}

static void send_put_local_inv(struct user_qp *qp, const struct ibv_send_wr *wr)
{
    const struct ibv_mw_bind_info none = {0};

    hv_wqe_put_bind(qp, IBV_MW_TYPE_2, 0, &none);
}

static const struct send_op {
    bool known;
    uint8_t opcode, wc;
    uint8_t answer; /* of an atomic: its bytes; 0: the list has its own lengths */
    /* the types of QP that support the opcode: bit per enum ibv_qp_type */
    unsigned types;
    uint32_t (*imm)(const struct ibv_send_wr *wr);                 /* or NULL */
    void (*put)(struct user_qp *qp, const struct ibv_send_wr *wr); /* or NULL */
} ops[] = {
#define T(type)   (1u << IBV_QPT_##type)
#define RELIABLE  (T(RC) | T(XRC_SEND))
#define CONNECTED (RELIABLE | T(UC))
    [IBV_WR_RDMA_WRITE] = {.known = true,
                           .opcode = PRM_WQE_OPCODE_RDMA_WRITE,
                           .types = CONNECTED,
                           .put = send_put_rdma},
    [IBV_WR_RDMA_WRITE_WITH_IMM] = {.known = true,
                                    .opcode = PRM_WQE_OPCODE_RDMA_WRITE_IMM,
                                    .types = CONNECTED,
                                    .imm = send_imm_data,
                                    .put = send_put_rdma},
    [IBV_WR_SEND] = {.known = true,
                     .opcode = PRM_WQE_OPCODE_SEND,
                     .types = CONNECTED | T(UD) | T(RAW_PACKET)},
    [IBV_WR_SEND_WITH_IMM] = {.known = true,
                              .opcode = PRM_WQE_OPCODE_SEND_IMM,
                              .types = CONNECTED | T(UD),
                              .imm = send_imm_data},
    [IBV_WR_RDMA_READ] = {.known = true,
                          .opcode = PRM_WQE_OPCODE_RDMA_READ,
                          .types = RELIABLE,
                          .put = send_put_rdma},
    [IBV_WR_ATOMIC_CMP_AND_SWP] = {.known = true,
                                   .opcode = PRM_WQE_OPCODE_ATOMIC_CS,
                                   .answer = 8,
                                   .types = RELIABLE,
                                   .put = send_put_cmp_swap},
    [IBV_WR_ATOMIC_FETCH_AND_ADD] = {.known = true,
                                     .opcode = PRM_WQE_OPCODE_ATOMIC_FA,
                                     .answer = 8,
                                     .types = RELIABLE,
                                     .put = send_put_fetch_add},
    [IBV_WR_LOCAL_INV] = {.known = true,
                          .opcode = PRM_WQE_OPCODE_UMR,
                          .wc = IBV_WC_LOCAL_INV,
                          .types = CONNECTED,
                          .imm = send_imm_key,
                          .put = send_put_local_inv},
    [IBV_WR_BIND_MW] = {.known = true,
                        .opcode = PRM_WQE_OPCODE_UMR,
                        .wc = IBV_WC_BIND_MW,
                        .types = CONNECTED,
                        .imm = send_imm_window,
                        .put = send_put_window},
    [IBV_WR_SEND_WITH_INV] = {.known = true,
                              .opcode = PRM_WQE_OPCODE_SEND_INVAL,
                              .types = CONNECTED,
                              .imm = send_imm_key},
    [IBV_WR_TSO] = {.known = true, .opcode = PRM_WQE_OPCODE_TSO, .types = T(RAW_PACKET)},
    /* used by libmlx5's builders */
    [IBV_WR_DRIVER1] = {.known = true, .opcode = PRM_WQE_OPCODE_UMR},
#undef CONNECTED
#undef RELIABLE
#undef T
};

static bool send_op_known(enum ibv_wr_opcode op)
{
    return (unsigned)op < G_N_ELEMENTS(ops) && ops[op].known;
}

/* Writes the segment that QPs of this type have behind the control segment. */
static void send_put_type(struct user_qp *qp, const struct ibv_send_wr *wr)
{
    switch (qp->ibv.qp_type) {
    case IBV_QPT_UD:
        hv_wqe_put_av(qp, wr->wr.ud.ah, wr->wr.ud.remote_qpn, wr->wr.ud.remote_qkey);
        break;
    case IBV_QPT_RAW_PACKET:
        hv_wqe_put_eth(qp, wr->send_flags & IBV_SEND_IP_CSUM, wr->tso.mss,
                       wr->opcode == IBV_WR_TSO ? wr->tso.hdr : NULL, wr->tso.hdr_sz);
        break;
    case IBV_QPT_XRC_SEND:
        if (ops[wr->opcode].opcode != PRM_WQE_OPCODE_UMR) {
            hv_wqe_put_xrc(qp, wr->qp_type.xrc.remote_srqn);
        }
        break;
    default:
        break;
    }
}

/* Whether the data of a large send is short enough, counted as in mlx5_post_send(). */
static bool send_fits_tso(const struct user_qp *qp, size_t num, const struct ibv_sge *sge)
{
    uint64_t left = qp->max_tso;

    for (size_t i = 0; i < num; i++) {
        if (sge[i].length > left) {
            return false;
        }
        left -= sge[i].length;
    }
    return true;
}

/* Writes the data of the request's list, even if the opcode has no use for data. */
void hv_send_put_data(struct user_qp *qp, const struct ibv_send_wr *wr)
{
    struct ibv_data_buf bufs[64];

    if (!(wr->send_flags & IBV_SEND_INLINE) || !wr->num_sge) {
        if (ops[wr->opcode].answer) {
            hv_wqe_put_answer(qp, (size_t)wr->num_sge, wr->sg_list, ops[wr->opcode].answer);
            return;
        }
        if (wr->opcode == IBV_WR_TSO && !send_fits_tso(qp, (size_t)wr->num_sge, wr->sg_list)) {
            hv_wqe_fail(qp, EINVAL, "more data than a large send may have, which is %u",
                        qp->max_tso);
            return;
        }
        hv_wqe_put_sges(qp, (size_t)wr->num_sge, wr->sg_list);
        return;
    }
    if ((uint32_t)wr->num_sge > MIN(qp->sq.max_gs, G_N_ELEMENTS(bufs))) {
        hv_wqe_fail(qp, ENOMEM, "num_sge is %d; max_send_sge is %u", wr->num_sge, qp->sq.max_gs);
        return;
    }
    for (int i = 0; i < wr->num_sge; i++) {
        bufs[i].addr = (void *)(uintptr_t)wr->sg_list[i].addr;
        bufs[i].length = wr->sg_list[i].length;
    }
    hv_wqe_put_inline(qp, (size_t)wr->num_sge, bufs);
}

/* Builds a WQE. If this type of QP does not support the opcode, the request is sent to the device
 * anyway, without the opcode's own segments; the device completes it with an error. */
void hv_send_build(struct user_qp *qp, const struct ibv_send_wr *wr)
{
    const struct send_op *op;
    uint32_t imm = 0;
    bool fits;

    if (!send_op_known(wr->opcode)) {
        hv_wqe_fail(qp, EINVAL, "the device does not support opcode %u", (unsigned)wr->opcode);
        return;
    }
    if ((uint32_t)wr->num_sge > qp->sq.max_gs) {
        hv_wqe_fail(qp, ENOMEM, "num_sge is %d; max_send_sge is %u", wr->num_sge, qp->sq.max_gs);
        return;
    }
    op = &ops[wr->opcode];
    fits = qp->dc == HV_DC_NONE && (op->types >> qp->ibv.qp_type & 1);
    /* otherwise wr->bind_mw.mw may be invalid */
    if (op->imm && (fits || op->imm != send_imm_window)) {
        imm = op->imm(wr);
    }
    if (!hv_wqe_begin(qp, op->opcode, wr->send_flags, wr->wr_id, fits ? op->wc : 0, imm)) {
        return;
    }
    send_put_type(qp, wr);
    if (fits && op->put) {
        op->put(qp, wr);
    }
    hv_send_put_data(qp, wr);
    if (!qp->wr_err) {
        hv_wqe_end(qp);
    }
}

/* Releases the lock, and tells the device of the WQEs that were posted under it. Returns 0 or
 * EIO. */
static int send_unlock_and_ring(struct user_qp *qp)
{
    bool any = qp->nreq;
    uint64_t ctrl = 0;

    if (G_UNLIKELY(qp->peer_sq) && any) {
        exp_peer_posted(qp); /* its peer rings */
        any = false;
    }
    if (any) {
        ctrl = prm_load64(qp->cur_ctrl);
        __atomic_store_n(&qp->dbrec[1], GUINT32_TO_BE(qp->sq_post & 0xffff), __ATOMIC_RELEASE);
    }
    pthread_spin_unlock(&qp->sq.lock);
    return any ? hv_ring_sq(qp->hca, qp->uar, ctrl) : 0;
}

void hv_wr_begin_list(struct user_qp *qp)
{
    pthread_spin_lock(&qp->sq.lock);
    qp->wr_err = qp->nreq = 0;
    qp->ex.wr_flags = 0;
}

int hv_wr_end_list(struct user_qp *qp)
{
    return send_unlock_and_ring(qp);
}

int hv_send_refuse_state(struct user_qp *qp, bool known)
{
    return hv_refuse(qp->hca, known ? ENOMEM : EINVAL,
                     "post_send (QP 0x%x): the QP is in %s; it must be in RTS", qp->ibv.qp_num,
                     hv_qp_state_name(qp->state));
}

static int qp_post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
    struct user_qp *qp = user_qp(ibqp);
    struct ibv_send_wr *first = wr;
    int err, lost;

    if (!qp->can_send && wr) { /* as in libmlx5 */
        *bad_wr = wr;
        return hv_send_refuse_state(qp, send_op_known(wr->opcode));
    }
    pthread_spin_lock(&qp->sq.lock);
    qp->wr_err = qp->nreq = 0;
    for (; wr; wr = wr->next) {
        hv_send_build(qp, wr);
        if (qp->wr_err) {
            *bad_wr = wr;
            break;
        }
    }
    err = qp->wr_err;
    lost = send_unlock_and_ring(qp);
    if (lost) {
        *bad_wr = first;
    }
    return lost ? lost : err;
}

int hv_rq_refuse(struct hv_hca *hca, const struct hv_wq *rq, const struct ibv_recv_wr *wr, int err,
                 const char *verb)
{
    if (err == EINVAL) {
        return hv_refuse(hca, err, "%s: num_sge is %d; max_recv_sge is %u", verb, wr->num_sge,
                         rq->max_gs);
    }
    if (rq->gpu_max) {
        return hv_refuse(hca, EOPNOTSUPP, "%s: " HV_GPU_POSTS, verb, "queue");
    }
    if (!rq->max_post) {
        return hv_refuse(
            hca, err, "%s: the QP has no receive queue (max_recv_wr is 0, or it has an SRQ)", verb);
    }
    return hv_refuse(hca, err,
                     "%s: the receive queue is full: %u WRs wait to be completed and polled, "
                     "max_recv_wr is %u",
                     verb, rq->head - __atomic_load_n(&rq->tail, __ATOMIC_RELAXED), rq->max_post);
}

int hv_rq_post(struct hv_wq *rq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
    int err = 0;

    for (; wr; wr = wr->next) {
        uint32_t index = rq->head & (rq->wqe_cnt - 1);
        struct prm_wqe_data_seg *seg = (void *)(rq->buf + ((size_t)index << rq->wqe_shift));
        uint32_t n = 0;

        if (rq->head - __atomic_load_n(&rq->tail, __ATOMIC_ACQUIRE) >= rq->max_post &&
            !(rq->unchecked && rq->max_post)) {
            err = ENOMEM;
        } else if (wr->num_sge < 0 || (uint32_t)wr->num_sge > rq->max_gs) {
            err = EINVAL;
        }
        if (err) {
            *bad_wr = wr;
            break;
        }
        for (int i = 0; i < wr->num_sge; i++) {
            if (wr->sg_list[i].length) {
                PRM_SET(wqe_data_seg, &seg[n], inl, 0);
                PRM_SET(wqe_data_seg, &seg[n], byte_count, wr->sg_list[i].length & 0x7fffffff);
                PRM_SET(wqe_data_seg, &seg[n], lkey, wr->sg_list[i].lkey);
                PRM_SET(wqe_data_seg, &seg[n], addr, wr->sg_list[i].addr);
                n++;
            }
        }
        if (n < rq->max_gs) { /* the list is shorter than the WQE */
            memset(&seg[n], 0, sizeof(seg[n]));
            PRM_SET(wqe_data_seg, &seg[n], lkey, 0x100);
        }
        rq->wrid[index] = wr->wr_id;
        rq->head++;
    }
    return err;
}

/* Traces the receives that were posted, from head on. */
static HV_COLD void qp_trace_receives(struct user_qp *qp, uint32_t head)
{
    for (; head != qp->rq.head; head++) {
        hv_trace_receive(qp->hca, false, qp->ibv.qp_num, head,
                         qp->rq.wrid[head & (qp->rq.wqe_cnt - 1)]);
    }
}

static int qp_post_recv(struct ibv_qp *ibqp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
    struct user_qp *qp = user_qp(ibqp);
    bool early = qp->state == IBV_QPS_RESET && qp->rq.max_post;
    uint32_t head;
    int err;

    if (wr && (early || !hv_is_ours(qp->hca))) {
        *bad_wr = wr;
        return early ? hv_refuse(qp->hca, EINVAL,
                                 "post_recv: QP 0x%x is in RESET; it must be in INIT or later",
                                 ibqp->qp_num)
                     : EIO;
    }
    pthread_spin_lock(&qp->rq.lock);
    head = qp->rq.head;
    /* a QP without a receive queue behaves as if it were always full */
    err = hv_rq_post(&qp->rq, wr, bad_wr);
    if (G_UNLIKELY(hv_traces)) {
        qp_trace_receives(qp, head);
    }
    /* the RQ of a raw packet QP is ready before the QP may receive */
    if (qp->rq.head != head && (ibqp->qp_type != IBV_QPT_RAW_PACKET || qp->state >= IBV_QPS_RTR)) {
        __atomic_store_n(&qp->dbrec[0], GUINT32_TO_BE(qp->rq.head & 0xffff), __ATOMIC_RELEASE);
    }
    if (err) {
        err = hv_rq_refuse(qp->hca, &qp->rq, *bad_wr, err, "post_recv");
    }
    pthread_spin_unlock(&qp->rq.lock);
    return err;
}

void hv_qp_send_ops(struct verbs_context *verbs)
{
    verbs->context.ops.post_send = qp_post_send;
    verbs->context.ops.post_recv = qp_post_recv;
}
