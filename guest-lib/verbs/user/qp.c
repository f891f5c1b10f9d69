/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queue pairs: sizes and rings, creation, destruction, queries.
 *
 * A QP's ring has the receive queue first, then the send queue. A raw packet QP has a ring for each
 * queue. Sizes are libmlx5's: a send WQE has room for the largest overhead of its service type and
 * of the operations that the program named (sq_overhead()), plus its gather list or inline data, in
 * blocks of 64 bytes. Requested sizes are rounded up, and the program gets the results.
 */
#include <string.h>
#include "guest-lib/verbs/exp/peer.h"
#include "guest-lib/verbs/exp/dct.h"
#include "guest-lib/verbs/user/cq.h"
#include "guest-lib/verbs/user/qp.h"

#define WQEBB          64u
#define ETH_INLINE_HDR 16 /* besides the segment's own two bytes: struct mlx5_wqe_eth_seg */

/* The size of the segments before the data in the largest WQE of these operations, without those of
 * the service type. */
static unsigned qp_ops_overhead(uint64_t ops, bool configures_mkeys)
{
    const uint64_t umr = IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_LOCAL_INV,
                   atomic = IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD,
                   rdma = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
                          IBV_QP_EX_WITH_RDMA_READ;

    if (ops & umr || configures_mkeys) {
        return PRM_SIZE(wqe_ctrl_seg) + PRM_SIZE(wqe_umr_ctrl_seg) + PRM_SIZE(mkc) + 64;
    }
    if (ops & atomic) {
        return PRM_SIZE(wqe_ctrl_seg) + PRM_SIZE(wqe_raddr_seg) + PRM_SIZE(wqe_atomic_seg);
    }
    return PRM_SIZE(wqe_ctrl_seg) + (ops & rdma ? PRM_SIZE(wqe_raddr_seg) : 0);
}

/* The size of all segments before the data. 0: the service type is unsupported. A program that does
 * not name the operations that it will post may post all that the service supports: for connected
 * services that includes a UMR (window bind). */
static unsigned qp_overhead(const struct ibv_qp_init_attr_ex *attr, const struct hv_qp_extra *extra)
{
    bool datagram = attr->qp_type == IBV_QPT_UD || attr->qp_type == IBV_QPT_RAW_PACKET;
    uint64_t ops = attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS ? attr->send_ops_flags
                   : datagram                                        ? IBV_QP_EX_WITH_SEND
                                                                     : IBV_QP_EX_WITH_BIND_MW;
    unsigned size = qp_ops_overhead(ops, extra && extra->configures_mkeys);

    if (extra && extra->max_atomic_arg) { /* a masked compare and swap has four operands */
        size = MAX(size, PRM_SIZE(wqe_ctrl_seg) + PRM_SIZE(wqe_raddr_seg) +
                             4 * MIN(extra->max_atomic_arg, 256));
    }
    switch (attr->qp_type) {
    case IBV_QPT_RC:
    case IBV_QPT_UC:
        return size;
    case IBV_QPT_XRC_SEND:
    case IBV_QPT_XRC_RECV:
        return size + PRM_SIZE(wqe_xrc_seg);
    case IBV_QPT_DRIVER: /* a DCI */
    case IBV_QPT_UD:
        return size + PRM_SIZE(wqe_datagram_seg);
    /* always with room for headers, even if the device does not need them */
    case IBV_QPT_RAW_PACKET:
        return size + PRM_SIZE(wqe_eth_seg) + ETH_INLINE_HDR;
    default:
        return 0;
    }
}

static uint32_t qp_power_of_two(uint32_t n)
{
    return n <= 1 ? 1 : 1u << g_bit_storage(n - 1);
}

/* Chooses the sizes of the send queue: 0 or errno. */
static int qp_size_sq(struct user_qp *qp, struct ibv_qp_cap *cap, uint32_t fixed)
{
    uint32_t gather, inl, wqe, max = HV_CAP(qp->hca, max_wqe_sz_sq);
    uint32_t ring = 1u << HV_CAP(qp->hca, log_max_qp_sz); /* WQEBBs */

    if (!cap->max_send_wr) {
        return 0;
    }
    if (!fixed) {
        return hv_refuse(qp->hca, EINVAL, "create_qp: the device does not support qp_type %u",
                         (unsigned)qp->ibv.qp_type);
    }
    if (cap->max_send_wr > ring) {
        return hv_refuse(qp->hca, EINVAL, "create_qp: max_send_wr is %u; the device allows %u",
                         cap->max_send_wr, ring);
    }
    if (cap->max_send_sge > max / 16) {
        return hv_refuse(qp->hca, EINVAL, "create_qp: max_send_sge is %u; the device allows %u",
                         cap->max_send_sge, (max - fixed) / 16);
    }
    if (cap->max_inline_data > max) {
        return hv_refuse(qp->hca, EINVAL, "create_qp: max_inline_data is %u; the device allows %u",
                         cap->max_inline_data, max - fixed - 4);
    }
    if (qp->max_tso_header > max) {
        return hv_refuse(qp->hca, EINVAL, "create_qp: max_tso_header is %u; the device allows %u",
                         qp->max_tso_header, max - fixed);
    }
    gather = fixed + ((qp->max_tso_header + 15) & ~15u) + cap->max_send_sge * 16;
    inl = cap->max_inline_data ? fixed + ((cap->max_inline_data + 4 + 15) & ~15u) : 0;
    inl = MAX(inl, qp->max_inl_klms ? fixed + qp->max_inl_klms * 16 : 0);
    wqe = (MAX(gather, inl) + WQEBB - 1) & ~(WQEBB - 1);
    if (wqe > max) {
        return hv_refuse(qp->hca, EINVAL,
                         "create_qp: a send WQE with max_send_sge %u or max_inline_data %u has %u "
                         "bytes; the device allows %u",
                         cap->max_send_sge, cap->max_inline_data, wqe, max);
    }
    qp->sq.wqe_shift = 6;
    qp->sq.wqe_cnt = qp_power_of_two(cap->max_send_wr * (wqe / WQEBB));
    if (qp->sq.wqe_cnt > ring) {
        return hv_refuse(qp->hca, EINVAL,
                         "create_qp: max_send_wr is %u; with WQEs of %u bytes (max_send_sge %u, "
                         "max_inline_data %u) the device allows %u",
                         cap->max_send_wr, wqe, cap->max_send_sge, cap->max_inline_data,
                         ring / (wqe / WQEBB));
    }
    qp->sq.max_post = qp->sq.wqe_cnt / (wqe / WQEBB);
    qp->sq.max_gs = cap->max_send_sge;
    qp->max_inline = wqe > fixed ? wqe - fixed - 4 : 0;
    cap->max_send_wr = qp->sq.max_post;
    cap->max_inline_data = wqe - fixed - 4; /* wraps below 0 if there is no room */
    return 0;
}

/* Chooses the sizes of the receive queue: 0 or EINVAL. If receive WQEs may be taken out of order,
 * the ring has twice as many entries as may be posted at a time, so that a new WQE never overwrites
 * one that is not completed (mlx5_get_max_recv_wr()). With an SRQ there is no receive queue, but
 * the requested number is checked first, as in mlx5_calc_rq_size(). */
static int qp_size_rq(struct user_qp *qp, struct ibv_qp_cap *cap, bool srq)
{
    uint32_t wqe, spare = qp->ooo && cap->max_recv_wr > 1;

    if (cap->max_recv_wr > (1u << HV_CAP(qp->hca, log_max_qp_sz)) >> spare) {
        return hv_refuse(qp->hca, EINVAL, "create_qp: max_recv_wr is %u; the device allows %u",
                         cap->max_recv_wr, (1u << HV_CAP(qp->hca, log_max_qp_sz)) >> spare);
    }
    if (srq || !cap->max_recv_wr) {
        cap->max_recv_wr = cap->max_recv_sge = 0;
        return 0;
    }
    if (cap->max_recv_sge > HV_CAP(qp->hca, max_wqe_sz_rq) / 16) {
        return hv_refuse(qp->hca, EINVAL, "create_qp: max_recv_sge is %u; the device allows %u",
                         cap->max_recv_sge, HV_CAP(qp->hca, max_wqe_sz_rq) / 16);
    }
    wqe = qp_power_of_two(MAX(cap->max_recv_sge, 1)) * 16;
    qp->rq.wqe_shift = (uint32_t)g_bit_storage(wqe) - 1;
    qp->rq.wqe_cnt = MAX(qp_power_of_two(cap->max_recv_wr << spare), WQEBB / wqe);
    qp->rq.max_post = qp->rq.wqe_cnt >> spare;
    qp->rq.max_gs = wqe / 16;
    cap->max_recv_wr = qp->rq.max_post;
    cap->max_recv_sge = qp->rq.max_gs;
    return 0;
}

/* -- creation and destruction ------------------------------------------------------------------ */

static struct hv_pd *qp_allocator(const struct user_qp *qp)
{
    struct ibv_pd *pd = hv_qp_pd(&qp->hv);

    return pd ? hv_pd(pd) : NULL;
}

/* The size of the send queue's own ring. */
static size_t qp_sq_ring_size(const struct user_qp *qp)
{
    return hv_whole_pages((size_t)qp->sq.wqe_cnt * WQEBB);
}

static void qp_free_memory(struct user_qp *qp)
{
    struct hv_pd *pd = qp_allocator(qp);

    if (qp->peer_sq) {
        exp_peer_free_sq(qp);
    }
    if (qp->dbrec && qp->dbrec_from != HV_FROM_PEER) {
        hv_db_free(hv_context(qp->ibv.context), pd, qp->dbrec, qp->dbrec_from);
    }
    if (qp->ring) {
        hv_buf_free(pd, qp->ring, qp->ring_size, MLX5DV_RES_TYPE_QP, qp->ring_from);
    }
    if (hv_qp_has_two_rings(&qp->hv) && qp->sq.buf) {
        hv_buf_free(pd, qp->sq.buf, qp_sq_ring_size(qp), MLX5DV_RES_TYPE_QP, qp->sq_ring_from);
    }
}

static void qp_free(struct user_qp *qp)
{
    if (qp->uidx >= 0) {
        hv_uidx_free(hv_context(qp->ibv.context), (uint32_t)qp->uidx);
    }
    g_free(qp->sq.wrid);
    g_free(qp->sq.wr_data);
    g_free(qp->sq_wqe_head);
    g_free(qp->rq.wrid);
    g_atomic_int_add(&qp->uar->qps, -1);
    free(qp->dct);
    free(qp->dv);
    free(qp);
}

/* The alignment that libmlx5 asks a program's allocator for: what the page_offset of a QP's context
 * can say if the ring is one page, and the size of a WQE (mlx5_set_custom_qp_alignment()). */
static size_t qp_ring_alignment(const struct user_qp *qp, size_t size)
{
    size_t page = qp_power_of_two((uint32_t)hv_whole_pages(size));

    return MAX(page / 64, (size_t)1 << MAX(qp->sq.wqe_shift, qp->rq.wqe_shift));
}

/* Allocates the rings: 0 or ENOMEM. As libmlx5 does it, except that libmlx5 also asks the program
 * for 0 bytes if there is no queue. */
static int qp_alloc_rings(struct user_qp *qp)
{
    size_t rq = (size_t)qp->rq.wqe_cnt << qp->rq.wqe_shift;
    size_t sq = (size_t)qp->sq.wqe_cnt * WQEBB;
    bool raw = qp->ibv.qp_type == IBV_QPT_RAW_PACKET, two = hv_qp_has_two_rings(&qp->hv);
    size_t size = two ? rq : rq + sq;
    size_t alignment = raw || !size ? PCI_PAGE : qp_ring_alignment(qp, size);
    struct hv_pd *pd = size ? qp_allocator(qp) : NULL;

    qp->ring_size = MAX((size + alignment - 1) & ~(alignment - 1), WQEBB);
    qp->ring = hv_buf_alloc(pd, qp->ring_size, alignment, MLX5DV_RES_TYPE_QP, &qp->ring_from);
    if (!qp->ring) {
        return ENOMEM;
    }
    qp->rq.buf = qp->ring;
    qp->sq.buf =
        two ? hv_buf_alloc(pd, qp_sq_ring_size(qp), PCI_PAGE, MLX5DV_RES_TYPE_QP, &qp->sq_ring_from)
            : qp->ring + rq;
    return qp->sq.buf ? 0 : ENOMEM;
}

static void qp_leave_queue_to_gpu(struct hv_wq *wq)
{
    wq->gpu_max = wq->max_post;
    wq->max_post = 0;
}

/* If a ring or the record is memory of a GPU, only the GPU posts. No CPU reads the WQEs then, so no
 * CQE may hold data for their lists. False: the GPU does not take the record. */
static bool qp_leave_to_gpu(struct user_qp *qp)
{
    bool own = shadow_is(qp->ring) || shadow_is(qp->sq.buf) || shadow_is(qp->dbrec);

    if (own) {
        qp_leave_queue_to_gpu(&qp->sq);
        qp_leave_queue_to_gpu(&qp->rq);
    }
    if (own || (qp->srq && qp->srq->on_gpu)) {
        qp->scatter_to_cqe = qp->allow_scatter_to_cqe = false;
    }
    return shadow_flush(qp->dbrec, HV_DBREC_SIZE);
}

/* Allocates the doorbell record: 0 or errno. */
static int qp_alloc_record(struct user_qp *qp, struct hv_context *ctx,
                           const struct hv_qp_extra *extra)
{
    if (extra && extra->peer) {
        return exp_peer_new_sq(qp, extra->peer);
    }
    qp->dbrec = hv_db_alloc(ctx, qp_allocator(qp), &qp->dbrec_from);
    return qp->dbrec ? 0 : ENOMEM;
}

static int qp_alloc_memory(struct user_qp *qp, struct hv_context *ctx,
                           const struct hv_qp_extra *extra)
{
    int err = qp_alloc_rings(qp);

    err = err ? err : qp_alloc_record(qp, ctx, extra);
    if (err) {
        return err;
    }
    if (!qp_leave_to_gpu(qp)) {
        return EFAULT;
    }
    if (qp->ibv.qp_type != IBV_QPT_XRC_RECV) {
        qp->uidx = hv_uidx_alloc(ctx, HV_RSC_QP, qp);
        if (qp->uidx < 0) {
            return ENOMEM;
        }
    }
    qp->sq.wrid = g_new0(uint64_t, MAX(qp->sq.wqe_cnt, 1));
    qp->sq.wr_data = g_new0(uint8_t, MAX(qp->sq.wqe_cnt, 1));
    qp->sq_wqe_head = g_new0(uint32_t, MAX(qp->sq.wqe_cnt, 1));
    qp->rq.wrid = g_new0(uint64_t, MAX(qp->rq.wqe_cnt, 1));
    return 0;
}

/* The checks that libmlx5 makes before it chooses sizes: 0 or errno. */
static int qp_check_attr(struct hv_hca *hca, const struct ibv_qp_init_attr_ex *attr,
                         const struct hv_qp_extra *extra)
{
    const uint32_t known = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_XRCD |
                           IBV_QP_INIT_ATTR_SEND_OPS_FLAGS | IBV_QP_INIT_ATTR_CREATE_FLAGS |
                           IBV_QP_INIT_ATTR_MAX_TSO_HEADER | IBV_QP_INIT_ATTR_IND_TABLE |
                           IBV_QP_INIT_ATTR_RX_HASH;
    uint32_t flags = attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS ? attr->create_flags : 0;
    bool no_tso = attr->qp_type != IBV_QPT_RAW_PACKET;
    bool rss = attr->comp_mask & IBV_QP_INIT_ATTR_RX_HASH;

    if (attr->comp_mask & ~known) {
        return hv_refuse(hca, EINVAL, "create_qp: comp_mask has unknown bits 0x%x",
                         attr->comp_mask & ~known);
    }
    if (attr->comp_mask & IBV_QP_INIT_ATTR_MAX_TSO_HEADER && no_tso) {
        return hv_refuse(hca, EINVAL, "create_qp: only RAW_PACKET QPs have max_tso_header");
    }
    if (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS && rss) {
        return hv_refuse(hca, EINVAL,
                         "create_qp: a QP with rx_hash_conf sends nothing, so it has "
                         "no send_ops_flags");
    }
    if (flags & IBV_QP_CREATE_SOURCE_QPN && attr->qp_type != IBV_QPT_UD) {
        return hv_refuse(hca, EINVAL, "create_qp: only UD QPs have IBV_QP_CREATE_SOURCE_QPN");
    }
    if (attr->qp_type == IBV_QPT_DRIVER && !extra) {
        return hv_refuse(hca, EOPNOTSUPP,
                         "create_qp: qp_type IBV_QPT_DRIVER needs mlx5dv_create_qp()");
    }
    return 0;
}

/* The checks of the flags by libibverbs, then by the kernel: 0 or errno. */
static int qp_check_flags(struct hv_hca *hca, enum ibv_qp_type type, uint32_t flags)
{
    const uint32_t known = IBV_QP_CREATE_BLOCK_SELF_MCAST_LB | IBV_QP_CREATE_SCATTER_FCS |
                           IBV_QP_CREATE_CVLAN_STRIPPING | IBV_QP_CREATE_SOURCE_QPN |
                           IBV_QP_CREATE_PCI_WRITE_END_PADDING;
    uint32_t possible =
        IBV_QP_CREATE_BLOCK_SELF_MCAST_LB |
        (type == IBV_QPT_RAW_PACKET ? IBV_QP_CREATE_CVLAN_STRIPPING : 0) |
        (type == IBV_QPT_RAW_PACKET && HV_ETH_CAP(hca, scatter_fcs) ? IBV_QP_CREATE_SCATTER_FCS
                                                                    : 0) |
        (HV_CAP(hca, end_pad) ? IBV_QP_CREATE_PCI_WRITE_END_PADDING : 0);

    return hv_refuse(hca,
                     flags & ~known      ? EINVAL
                     : flags & ~possible ? EOPNOTSUPP
                                         : 0,
                     "create_qp: create_flags has bits 0x%x; this QP may have 0x%x",
                     flags & ~possible, possible);
}

/* The checks of the other attributes by libibverbs, then by the kernel: 0 or errno. */
static int qp_check_create(struct hv_hca *hca, const struct ibv_qp_init_attr_ex *attr,
                           const struct hv_qp_extra *extra)
{
    const uint32_t rss = IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH;
    uint32_t flags = attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS ? attr->create_flags : 0;
    bool raw = attr->qp_type == IBV_QPT_RAW_PACKET;
    int err;

    if (!qp_overhead(attr, extra)) {
        return hv_refuse(hca, EINVAL, "create_qp: the device does not support qp_type %u",
                         (unsigned)attr->qp_type);
    }
    err = qp_check_flags(hca, attr->qp_type, flags);
    if (err) {
        return err;
    }
    if (extra && extra->dc != HV_DC_NONE && !HV_CAP(hca, dct)) {
        return hv_refuse(hca, EOPNOTSUPP, "create_qp: this generation of the device has no DC");
    }
    if (extra && extra->dc == HV_DC_DCI && (attr->cap.max_recv_wr || attr->cap.max_recv_sge)) {
        return hv_refuse(hca, EINVAL,
                         "create_qp: a DCI receives nothing; max_recv_wr and "
                         "max_recv_sge must be 0");
    }
    if (attr->comp_mask & rss) {
        return (attr->comp_mask & rss) == rss && raw && attr->rwq_ind_tbl &&
                       (attr->comp_mask & IBV_QP_INIT_ATTR_PD) && attr->pd && !attr->cap.max_send_wr
                   ? 0
                   : hv_refuse(hca, EINVAL,
                               "create_qp: an RSS QP has qp_type IBV_QPT_RAW_PACKET, a PD, "
                               "rwq_ind_tbl, rx_hash_conf and max_send_wr 0");
    }
    if (attr->qp_type == IBV_QPT_XRC_RECV) {
        return (attr->comp_mask & IBV_QP_INIT_ATTR_XRCD) && attr->xrcd
                   ? 0
                   : hv_refuse(hca, EINVAL, "create_qp: an XRC_RECV QP needs an xrcd");
    }
    if (!(attr->comp_mask & IBV_QP_INIT_ATTR_PD) || !attr->pd) {
        return hv_refuse(hca, EINVAL, "create_qp: the QP needs a PD");
    }
    if (!attr->send_cq) {
        return hv_refuse(hca, EINVAL, "create_qp: send_cq is NULL");
    }
    return attr->recv_cq || attr->qp_type == IBV_QPT_XRC_SEND
               ? 0
               : hv_refuse(hca, EINVAL, "create_qp: recv_cq is NULL");
}

/* Whether CQEs may hold small data, as libmlx5 decides it. libmlx5's posting functions for a DCI do
 * not support that. The libmlx5 of MLNX_OFED does not read the variable: there, the program wants
 * the data or not. */
static void qp_choose_scatter_to_cqe(struct user_qp *qp, const struct ibv_qp_init_attr_ex *attr,
                                     const struct hv_qp_extra *extra)
{
    const char *env = getenv("MLX5_SCATTER_TO_CQE");
    bool posts = attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS || (extra && extra->builders);

    qp->scatter_to_cqe = !env || strcmp(env, "0") != 0;
    if (extra) {
        qp->allow_scatter_to_cqe = extra->allow_scatter_to_cqe;
        qp->scatter_to_cqe = extra->allow_scatter_to_cqe || extra->wants_scatter_to_cqe ||
                             (qp->scatter_to_cqe && !extra->no_scatter_to_cqe);
        qp->scatter_to_cqe &= !(extra->dc == HV_DC_DCI && posts);
    }
}

/* Fills in what libibverbs writes for programs to read (set_qp()): the attributes that the program
 * gave, used or not. */
static void qp_init_public(struct ibv_qp *qp, const struct ibv_qp_init_attr_ex *attr)
{
    qp->qp_context = attr->qp_context;
    qp->pd = attr->pd;
    qp->send_cq = attr->send_cq;
    qp->recv_cq = attr->recv_cq;
    qp->srq = attr->srq;
    qp->qp_type = attr->qp_type;
    qp->state = IBV_QPS_RESET;
    pthread_mutex_init(&qp->mutex, NULL);
    pthread_cond_init(&qp->cond, NULL);
}

/* Allocates the structure, with what the service type has. */
static struct user_qp *qp_new(struct hv_context *ctx, const struct ibv_qp_init_attr_ex *attr,
                              const struct hv_qp_extra *extra)
{
    struct user_qp *qp = calloc(1, sizeof(*qp));
    bool tgt = attr->qp_type == IBV_QPT_XRC_RECV, ini = attr->qp_type == IBV_QPT_XRC_SEND;
    bool rss = attr->comp_mask & IBV_QP_INIT_ATTR_IND_TABLE;

    if (!qp) {
        return NULL;
    }
    qp->hca = ctx->hca;
    qp->uidx = -1;
    qp->uid = tgt ? 0 : ctx->uid;
    qp->ibv.context = &ctx->ibv.context;
    qp_init_public(&qp->ibv, attr);
    qp->send_cq = tgt || rss || !attr->send_cq ? NULL : hv_cq(attr->send_cq);
    qp->recv_cq = tgt || ini || rss || !attr->recv_cq ? NULL : hv_cq(attr->recv_cq);
    qp->srq = tgt || ini || rss || !attr->srq ? NULL : hv_srq(attr->srq);
    qp->state = IBV_QPS_RESET;
    qp->xrcd = tgt ? (struct hv_xrcd *)attr->xrcd : NULL;
    qp->ind = rss ? (struct hv_ind_table *)attr->rwq_ind_tbl : NULL;
    qp->sq_sig_all = attr->sq_sig_all;
    qp->inline_l2 = attr->qp_type == IBV_QPT_RAW_PACKET &&
                    HV_ETH_CAP(qp->hca, wqe_inline_mode) == PRM_CAP_INLINE_MODE_L2;
    /* Other QPs have no large send: libmlx5 refuses one that has data. */
    qp->max_tso = attr->qp_type == IBV_QPT_RAW_PACKET ? 1u << HV_ETH_CAP(qp->hca, max_lso_cap) : 0;
    qp->max_tso_header =
        attr->comp_mask & IBV_QP_INIT_ATTR_MAX_TSO_HEADER ? attr->max_tso_header : 0;
    qp->end_padding = attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS &&
                      attr->create_flags & IBV_QP_CREATE_PCI_WRITE_END_PADDING;
    qp->block_self_mcast = attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS &&
                           attr->create_flags & IBV_QP_CREATE_BLOCK_SELF_MCAST_LB;
    qp->strip_vlan = attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS &&
                     attr->create_flags & IBV_QP_CREATE_CVLAN_STRIPPING;
    qp->scatter_fcs = attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS &&
                      attr->create_flags & IBV_QP_CREATE_SCATTER_FCS;
    if (extra) {
        qp->dc = extra->dc;
        qp->dct_access_key = extra->dct_access_key;
        qp->dci_streams = extra->dci_streams;
        qp->dci_log_streams = extra->dci_log_streams;
        qp->dci_log_errored = extra->dci_log_errored;
        qp->ooo = extra->ooo;
        qp->tunnels = extra->tunnels;
        qp->max_inl_klms = extra->max_inl_klms;
        qp->exp_flags = extra->exp_flags;
        qp->sq.unchecked = extra->exp_flags & IBV_EXP_QP_CREATE_IGNORE_SQ_OVERFLOW;
        qp->rq.unchecked = extra->exp_flags & IBV_EXP_QP_CREATE_IGNORE_RQ_OVERFLOW;
        qp->max_atomic_arg = extra->max_atomic_arg;
        qp->swaps_answers = extra->exp && hv_atomics_have_host_order(ctx->hca);
    }
    qp_choose_scatter_to_cqe(qp, attr, extra);
    qp->uar = !tgt && qp->ibv.pd && hv_pd(qp->ibv.pd)->td ? &hv_pd(qp->ibv.pd)->td->uar
              : extra && extra->uar                       ? extra->uar
                                                          : &ctx->uar;
    g_atomic_int_inc(&qp->uar->qps);
    pthread_spin_init(&qp->sq.lock, PTHREAD_PROCESS_PRIVATE);
    pthread_spin_init(&qp->rq.lock, PTHREAD_PROCESS_PRIVATE);
    return qp;
}

/* Allocates a handle of type XRC_RECV, still without a QP. NULL with errno. */
static struct user_qp *qp_new_xrc_tgt(struct ibv_context *context, struct ibv_xrcd *xrcd,
                                      void *qp_context)
{
    const struct ibv_qp_init_attr_ex attr = {
        .qp_type = IBV_QPT_XRC_RECV, .xrcd = xrcd, .qp_context = qp_context};

    return qp_new(hv_context(context), &attr, NULL);
}

static struct ibv_qp *open_qp(struct ibv_context *context, struct ibv_qp_open_attr *attr)
{
    const uint32_t need = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE;
    struct user_qp *qp;

    if (attr->comp_mask >= IBV_QP_OPEN_ATTR_RESERVED) {
        errno = EOPNOTSUPP;
        return NULL;
    }
    if ((attr->comp_mask & need) != need || attr->qp_type != IBV_QPT_XRC_RECV) {
        errno = EINVAL;
        return NULL;
    }
    qp = qp_new_xrc_tgt(context, attr->xrcd, attr->qp_context);
    if (!qp) {
        return NULL;
    }
    qp->ibv.qp_num = attr->qp_num;
    qp->ibv.state = IBV_QPS_UNKNOWN; /* until this handle queries or modifies it */
    if (hv_kernel(uverbs_open_qp(&qp->hv))) {
        qp_free(qp);
        return NULL;
    }
    return &qp->ibv;
}

/* Resets the sizes of a queue that libmlx5 computes although the QP does not have it. */
static void qp_forget_size(struct hv_wq *wq)
{
    wq->wqe_cnt = wq->max_post = wq->max_gs = wq->wqe_shift = 0;
}

/* Chooses the sizes of both queues, and tells them to the program: 0 or errno. For XRC, libmlx5
 * also computes the sizes of queues that do not exist: an XRC target has no queues, and an XRC
 * sender has no receive queue. */
static int qp_size(struct user_qp *qp, struct ibv_qp_init_attr_ex *attr,
                   const struct hv_qp_extra *extra)
{
    bool tgt = qp->ibv.qp_type == IBV_QPT_XRC_RECV, ini = qp->ibv.qp_type == IBV_QPT_XRC_SEND;
    int err = qp_size_sq(qp, &attr->cap, qp_overhead(attr, extra));

    err = err ? err : qp_size_rq(qp, &attr->cap, attr->srq != NULL);
    if (tgt) {
        qp_forget_size(&qp->sq);
        qp->max_inline = 0;
    }
    if (tgt || ini) {
        qp_forget_size(&qp->rq);
    }
    return err;
}

/* Tells the peer of the doorbell page of the QP, which was made; otherwise the QP ends. 0 or
 * errno. */
static int qp_open_page(struct user_qp *qp)
{
    int err = exp_peer_open_page(qp);

    if (err) {
        uverbs_destroy_qp(&qp->hv);
        hv_event_drain_qp(qp);
        hv_qp_clean_cqs(qp, true);
        uverbs_use_qp(&qp->hv, -1);
    }
    return err;
}

/* All checks are in libmlx5's order: if there are two mistakes, the order decides which errno is
 * returned. */
static int qp_create_queues(struct user_qp *qp, struct hv_context *ctx,
                            struct ibv_qp_init_attr_ex *attr, const struct hv_qp_extra *extra)
{
    bool says_ops = attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    int err = 0;

    if (says_ops || (extra && extra->builders)) {
        err = hv_qp_init_builders(qp, says_ops ? attr->send_ops_flags : 0);
    }
    err = err ? err : qp_size(qp, attr, extra);
    err = err ? err : qp_check_create(ctx->hca, attr, extra);
    if (!err && extra && extra->peer) {
        err = exp_peer_check_qp(ctx->hca, extra->peer);
    }
    err = err ? err : qp_alloc_memory(qp, ctx, extra);
    err = err ? err : uverbs_create_qp(&qp->hv);
    return err || !qp->peer_sq ? err : qp_open_page(qp);
}

static int qp_create_rss(struct user_qp *qp, struct hv_context *ctx,
                         const struct ibv_qp_init_attr_ex *attr)
{
    int err = qp_check_create(ctx->hca, attr, NULL);

    return err ? err : uverbs_create_rss_qp(&qp->hv, &attr->rx_hash_conf);
}

/* A DCT has no rings: its messages go to an SRQ. */
static int qp_create_dct(struct user_qp *qp, struct hv_context *ctx,
                         const struct ibv_qp_init_attr_ex *attr, const struct hv_qp_extra *extra)
{
    int err = qp_check_create(ctx->hca, attr, extra);

    if (!err) {
        qp->uidx = hv_uidx_alloc(ctx, HV_RSC_QP, qp);
        err = qp->uidx < 0 ? ENOMEM : uverbs_create_qp(&qp->hv);
    }
    return err;
}

/* libmlx5 asks for version 1 of the options (bits 31:28) and no option. The device then answers
 * with the options that QPs of this service have unless asked otherwise. */
#define ECE_TRIGGER 0x10000000

struct ibv_qp *hv_qp_create(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr,
                            const struct hv_qp_extra *extra)
{
    struct hv_context *ctx = hv_context(context);
    struct user_qp *qp;
    int err = qp_check_attr(ctx->hca, attr, extra);

    if (err) {
        errno = err;
        return NULL;
    }
    qp = qp_new(ctx, attr, extra);
    if (!qp) {
        return NULL;
    }
    if (HV_CAP(ctx->hca, ece_support) && !qp->ind) {
        qp->ece.asked = ECE_TRIGGER;
    }
    err = qp->ind               ? qp_create_rss(qp, ctx, attr)
          : qp->dc == HV_DC_DCT ? qp_create_dct(qp, ctx, attr, extra)
                                : qp_create_queues(qp, ctx, attr, extra);
    if (err) {
        qp_free_memory(qp);
        qp_free(qp);
        errno = err;
        return NULL;
    }
    qp->ece_enabled = qp->ece.answered;
    return &qp->ibv;
}

/* IBV_QPT_XRC of OFED 1.5 was a sending QP in MLNX_OFED 4.6. rdma-core does not have the type, and
 * refuses it. */
static enum ibv_qp_type qp_type_of(const struct hv_context *ctx, enum ibv_qp_type type)
{
    return type == HV_QPT_XRC && g_atomic_int_get(&ctx->legacy_xrc) ? IBV_QPT_XRC_SEND : type;
}

static struct ibv_qp *create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr)
{
    if (attr->qp_type == IBV_EXP_QPT_DC_INI) {
        return hv_exp_create_dci(context, attr);
    }
    return hv_qp_create(context, attr, NULL);
}

HV_EXPORT struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
    struct ibv_qp_init_attr_ex ex = {
        .qp_context = attr->qp_context,
        .send_cq = attr->send_cq,
        .recv_cq = attr->recv_cq,
        .srq = attr->srq,
        .cap = attr->cap,
        .qp_type = qp_type_of(hv_context(pd->context), attr->qp_type),
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

void hv_qp_clean_cqs(struct user_qp *qp, bool forget)
{
    struct user_cq *send_cq = qp->send_cq ? user_cq(&qp->send_cq->ibv) : NULL;
    struct user_cq *recv_cq = qp->recv_cq ? user_cq(&qp->recv_cq->ibv) : NULL;

    if (qp->uidx < 0) {
        return;
    }
    hv_cq_lock_pair(send_cq, recv_cq);
    if (recv_cq) {
        hv_cq_clean(recv_cq, (uint32_t)qp->uidx, qp->srq);
    }
    if (send_cq && send_cq != recv_cq) {
        hv_cq_clean(send_cq, (uint32_t)qp->uidx, NULL);
    }
    if (forget) {
        hv_uidx_free(hv_context(qp->ibv.context), (uint32_t)qp->uidx);
        qp->uidx = -1;
    }
    hv_cq_unlock_pair(send_cq, recv_cq);
}

HV_EXPORT int ibv_destroy_qp(struct ibv_qp *ibqp)
{
    struct user_qp *qp = user_qp(ibqp);
    int err = hv_kernel(uverbs_destroy_qp(&qp->hv));

    if (err) {
        return err;
    }
    if (qp->exp_dct) {
        hv_event_drain_dct(qp->exp_dct);
    } else if (!qp->ind && qp->dc != HV_DC_DCT) {
        hv_event_drain_qp(qp);
    }
    hv_qp_clean_cqs(qp, true);
    qp_free_memory(qp);
    uverbs_use_qp(&qp->hv, -1); /* its parent domain's free() is not called any more */
    qp_free(qp);
    return 0;
}

HV_EXPORT struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *qp)
{
    return user_qp(qp)->ex.wr_start ? &user_qp(qp)->ex : NULL;
}

void hv_qp_ops(struct verbs_context *ops)
{
    ops->create_qp_ex = create_qp_ex;
    ops->open_qp = open_qp;
    hv_qp_modify_ops(ops);
    hv_qp_send_ops(ops);
}
