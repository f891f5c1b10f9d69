/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queue pairs: sizes and rings, creating, destroying, asking.
 *
 * A QP's ring has the receive queue first, then the send queue. Sizes are libmlx5's: a send WQE
 * has room for the largest overhead of its service type, its gather list or inline data, in blocks
 * of 64 bytes; what was asked for is rounded up, and the program is told.
 */
#include "guest-lib/verbs/qp.h"
#include <string.h>

#define WQEBB 64u

/* Segments before the data in the largest WQE of a service type: of RC, UC a UMR (window bind). */
static unsigned overhead(enum ibv_qp_type type)
{
    switch (type) {
    case IBV_QPT_RC:
    case IBV_QPT_UC:
        return PRM_SIZE(wqe_ctrl_seg) + PRM_SIZE(wqe_umr_ctrl_seg) + PRM_SIZE(mkc) + 64;
    case IBV_QPT_UD:
        return PRM_SIZE(wqe_ctrl_seg) + PRM_SIZE(wqe_datagram_seg);
    default:
        return 0;
    }
}

static uint8_t service_type(enum ibv_qp_type type)
{
    return type == IBV_QPT_RC ? PRM_QP_ST_RC : type == IBV_QPT_UC ? PRM_QP_ST_UC : PRM_QP_ST_UD;
}

static uint32_t power_of_two(uint32_t n)
{
    return n <= 1 ? 1 : 1u << g_bit_storage(n - 1);
}

/* 0 or errno. */
static int size_sq(struct hv_qp *qp, struct ibv_qp_cap *cap, enum ibv_qp_type type)
{
    uint32_t fixed = overhead(type), gather, inl, wqe, max = HV_CAP(qp->hca, max_wqe_sz_sq);

    if (!cap->max_send_wr) {
        return 0;
    }
    if (cap->max_send_wr > 1u << HV_CAP(qp->hca, log_max_qp_sz) || cap->max_send_sge > max / 16 ||
        cap->max_inline_data > max) {
        return EINVAL;
    }
    gather = fixed + MAX(cap->max_send_sge, 1) * 16;
    inl = cap->max_inline_data ? fixed + ((cap->max_inline_data + 4 + 15) & ~15u) : 0;
    wqe = (MAX(gather, inl) + WQEBB - 1) & ~(WQEBB - 1);
    if (wqe > max) {
        return EINVAL;
    }
    qp->sq.wqe_shift = 6;
    qp->sq.wqe_cnt = power_of_two(cap->max_send_wr * (wqe / WQEBB));
    if (qp->sq.wqe_cnt > 1u << HV_CAP(qp->hca, log_max_qp_sz)) {
        return EINVAL;
    }
    qp->sq.max_post = qp->sq.wqe_cnt / (wqe / WQEBB);
    qp->sq.max_gs = (wqe - fixed) / 16;
    qp->max_inline = wqe - fixed - 4;
    cap->max_send_wr = qp->sq.max_post;
    cap->max_send_sge = qp->sq.max_gs;
    cap->max_inline_data = qp->max_inline;
    return 0;
}

static int size_rq(struct hv_qp *qp, struct ibv_qp_cap *cap, bool srq)
{
    uint32_t wqe;

    if (srq || !cap->max_recv_wr) {
        cap->max_recv_wr = cap->max_recv_sge = 0;
        return 0;
    }
    if (cap->max_recv_wr > 1u << HV_CAP(qp->hca, log_max_qp_sz) ||
        cap->max_recv_sge > HV_CAP(qp->hca, max_wqe_sz_rq) / 16) {
        return EINVAL;
    }
    wqe = power_of_two(MAX(cap->max_recv_sge, 1)) * 16;
    qp->rq.wqe_shift = (uint32_t)g_bit_storage(wqe) - 1;
    qp->rq.wqe_cnt = MAX(power_of_two(cap->max_recv_wr), WQEBB / wqe);
    qp->rq.max_post = qp->rq.wqe_cnt;
    qp->rq.max_gs = wqe / 16;
    cap->max_recv_wr = qp->rq.max_post;
    cap->max_recv_sge = qp->rq.max_gs;
    return 0;
}

/* -- life -------------------------------------------------------------------------------------- */

static struct hv_pd *allocator(const struct hv_qp *qp)
{
    return hv_pd(qp->ibv.pd);
}

static void free_qp(struct hv_qp *qp)
{
    struct hv_context *ctx = hv_context(qp->ibv.context);

    if (qp->ring) {
        hv_buf_free(allocator(qp), qp->ring, qp->ring_size, MLX5DV_RES_TYPE_QP, qp->ring_custom);
    }
    if (qp->dbrec) {
        hv_db_free(ctx, allocator(qp), qp->dbrec, qp->dbrec_custom);
    }
    if (qp->uidx >= 0) {
        hv_uidx_free(ctx, (uint32_t)qp->uidx);
    }
    g_free(qp->sq.wrid);
    g_free(qp->sq.wr_data);
    g_free(qp->sq_wqe_head);
    g_free(qp->rq.wrid);
    free(qp->dv);
    free(qp);
}

static int alloc_memory(struct hv_qp *qp, struct hv_context *ctx)
{
    size_t rq = (size_t)qp->rq.wqe_cnt << qp->rq.wqe_shift;
    size_t sq = (size_t)qp->sq.wqe_cnt * WQEBB;

    qp->ring_size = MAX((rq + sq + PCI_PAGE - 1) & ~(size_t)(PCI_PAGE - 1), PCI_PAGE);
    qp->ring = hv_buf_alloc(allocator(qp), qp->ring_size, MLX5DV_RES_TYPE_QP, &qp->ring_custom);
    qp->dbrec = qp->ring ? hv_db_alloc(ctx, allocator(qp), &qp->dbrec_custom) : NULL;
    qp->uidx = qp->dbrec ? hv_uidx_alloc(ctx, HV_RSC_QP, qp) : -1;
    if (qp->uidx < 0) {
        return ENOMEM;
    }
    qp->rq.buf = qp->ring;
    qp->sq.buf = qp->ring + rq;
    qp->sq.wrid = g_new0(uint64_t, MAX(qp->sq.wqe_cnt, 1));
    qp->sq.wr_data = g_new0(uint8_t, MAX(qp->sq.wqe_cnt, 1));
    qp->sq_wqe_head = g_new0(uint32_t, MAX(qp->sq.wqe_cnt, 1));
    qp->rq.wrid = g_new0(uint64_t, MAX(qp->rq.wqe_cnt, 1));
    return 0;
}

static int create_device_qp(struct hv_qp *qp, struct hv_context *ctx)
{
    size_t pages = qp->ring_size / PCI_PAGE, len = PRM_SIZE(create_qp_in) + pages * 8;
    g_autofree uint8_t *in = g_malloc0(len);
    uint8_t out[PRM_SIZE(create_qp_out)];
    uint8_t *qpc = PRM_PTR(create_qp_in, in, qpc);
    int err;

    PRM_SET(create_qp_in, in, opcode, PRM_CMD_OP_CREATE_QP);
    PRM_SET(create_qp_in, in, uid, ctx->uid);
    PRM_SET(qpc, qpc, st, service_type(qp->ibv.qp_type));
    PRM_SET(qpc, qpc, pm_state, 3);
    PRM_SET(qpc, qpc, block_lb_mc, qp->block_self_mcast);
    PRM_SET(qpc, qpc, pd, hv_real_pd(qp->ibv.pd)->pdn);
    PRM_SET(qpc, qpc, uar_page, qp->uar->page);
    PRM_SET(qpc, qpc, user_index, (uint32_t)qp->uidx);
    PRM_SET(qpc, qpc, cqn_snd, hv_cq(qp->ibv.send_cq)->cqn);
    PRM_SET(qpc, qpc, cqn_rcv, hv_cq(qp->ibv.recv_cq)->cqn);
    PRM_SET(qpc, qpc, dbr_addr, (uintptr_t)qp->dbrec);
    if (qp->sq.wqe_cnt) {
        PRM_SET(qpc, qpc, log_sq_size, g_bit_storage(qp->sq.wqe_cnt) - 1);
    } else {
        PRM_SET(qpc, qpc, no_sq, 1);
    }
    if (qp->ibv.srq) {
        PRM_SET(qpc, qpc, rq_type, 1);
        PRM_SET(qpc, qpc, srqn_rmpn_xrqn, hv_srq(qp->ibv.srq)->srqn);
    } else if (qp->rq.wqe_cnt) {
        PRM_SET(qpc, qpc, log_rq_size, g_bit_storage(qp->rq.wqe_cnt) - 1);
        PRM_SET(qpc, qpc, log_rq_stride, qp->rq.wqe_shift - 4);
    } else {
        PRM_SET(qpc, qpc, rq_type, 3);
    }
    for (size_t i = 0; i < pages; i++) {
        PRM_SET_AT(create_qp_in, in, pas, i, (uintptr_t)qp->ring + i * PCI_PAGE);
    }
    err = hv_cmd(ctx->hca, in, len, out, sizeof(out));
    qp->ibv.qp_num = PRM_GET(create_qp_out, out, qpn);
    return err;
}

static void use_objects(struct hv_qp *qp, int change)
{
    g_atomic_int_add(&hv_pd(qp->ibv.pd)->refs, change);
    g_atomic_int_add(&hv_cq(qp->ibv.send_cq)->users, change);
    g_atomic_int_add(&hv_cq(qp->ibv.recv_cq)->users, change);
    if (qp->ibv.srq) {
        g_atomic_int_add(&hv_srq(qp->ibv.srq)->users, change);
    }
}

static struct ibv_qp *create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr)
{
    const uint32_t known = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS |
                           IBV_QP_INIT_ATTR_CREATE_FLAGS | IBV_QP_INIT_ATTR_MAX_TSO_HEADER;
    const uint32_t flags = IBV_QP_CREATE_BLOCK_SELF_MCAST_LB;
    struct hv_context *ctx = hv_context(context);
    struct hv_qp *qp;
    int err;

    if (attr->comp_mask & ~known || !overhead(attr->qp_type) ||
        (attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS && attr->create_flags & ~flags)) {
        errno = EOPNOTSUPP;
        return NULL;
    }
    if (!(attr->comp_mask & IBV_QP_INIT_ATTR_PD) || !attr->pd || !attr->send_cq || !attr->recv_cq) {
        errno = EINVAL;
        return NULL;
    }
    qp = calloc(1, sizeof(*qp));
    if (!qp) {
        return NULL;
    }
    qp->hca = ctx->hca;
    qp->uidx = -1;
    qp->ibv.context = context;
    qp->ibv.qp_context = attr->qp_context;
    qp->ibv.pd = attr->pd;
    qp->ibv.send_cq = attr->send_cq;
    qp->ibv.recv_cq = attr->recv_cq;
    qp->ibv.srq = attr->srq;
    qp->ibv.qp_type = attr->qp_type;
    qp->ibv.state = IBV_QPS_RESET;
    qp->sq_sig_all = attr->sq_sig_all;
    qp->block_self_mcast = attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS &&
                           attr->create_flags & IBV_QP_CREATE_BLOCK_SELF_MCAST_LB;
    qp->uar = hv_pd(attr->pd)->td ? &hv_pd(attr->pd)->td->uar : &ctx->uar;
    pthread_mutex_init(&qp->ibv.mutex, NULL);
    pthread_cond_init(&qp->ibv.cond, NULL);
    pthread_spin_init(&qp->sq.lock, PTHREAD_PROCESS_PRIVATE);
    pthread_spin_init(&qp->rq.lock, PTHREAD_PROCESS_PRIVATE);
    err = size_sq(qp, &attr->cap, attr->qp_type);
    err = err ? err : size_rq(qp, &attr->cap, attr->srq != NULL);
    err = err ? err : alloc_memory(qp, ctx);
    err = err ? err : create_device_qp(qp, ctx);
    if (!err && (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)) {
        err = hv_qp_init_builders(qp, attr->send_ops_flags);
    }
    if (err) {
        free_qp(qp);
        errno = err;
        return NULL;
    }
    use_objects(qp, 1);
    hv_event_add_qp(ctx->hca, qp);
    return &qp->ibv;
}

HV_EXPORT struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
    struct ibv_qp_init_attr_ex ex = {
        .qp_context = attr->qp_context,
        .send_cq = attr->send_cq,
        .recv_cq = attr->recv_cq,
        .srq = attr->srq,
        .cap = attr->cap,
        .qp_type = attr->qp_type,
        .sq_sig_all = attr->sq_sig_all,
        .comp_mask = IBV_QP_INIT_ATTR_PD,
        .pd = pd,
    };
    struct ibv_qp *qp = hv_context(pd->context)->ibv.create_qp_ex(pd->context, &ex);

    if (qp) {
        attr->cap = ex.cap;
    }
    return qp;
}

HV_EXPORT int ibv_destroy_qp(struct ibv_qp *ibqp)
{
    struct hv_qp *qp = hv_qp(ibqp);
    struct hv_cq *send_cq = hv_cq(ibqp->send_cq), *recv_cq = hv_cq(ibqp->recv_cq);
    struct hv_srq *srq = ibqp->srq ? hv_srq(ibqp->srq) : NULL;
    struct hv_context *ctx = hv_context(ibqp->context);
    uint8_t in[PRM_SIZE(destroy_qp_in)] = {0};
    int err;

    PRM_SET(destroy_qp_in, in, opcode, PRM_CMD_OP_DESTROY_QP);
    PRM_SET(destroy_qp_in, in, uid, ctx->uid);
    PRM_SET(destroy_qp_in, in, qpn, ibqp->qp_num);
    err = hv_cmd_simple(qp->hca, in, sizeof(in));
    if (err) {
        return err;
    }
    hv_event_del_qp(qp->hca, qp);
    hv_event_drain_qp(qp);
    hv_cq_lock_pair(send_cq, recv_cq);
    hv_cq_clean(recv_cq, (uint32_t)qp->uidx, srq);
    if (send_cq != recv_cq) {
        hv_cq_clean(send_cq, (uint32_t)qp->uidx, NULL);
    }
    hv_uidx_free(ctx, (uint32_t)qp->uidx);
    qp->uidx = -1;
    hv_cq_unlock_pair(send_cq, recv_cq);
    use_objects(qp, -1);
    free_qp(qp);
    return 0;
}

HV_EXPORT struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *qp)
{
    return hv_qp(qp)->ex.wr_start ? &hv_qp(qp)->ex : NULL;
}

void hv_qp_ops(struct verbs_context *ops)
{
    ops->create_qp_ex = create_qp_ex;
    hv_qp_modify_ops(ops);
    hv_qp_send_ops(ops);
}

void hv_eth_ops(struct verbs_context *ops)
{
}
