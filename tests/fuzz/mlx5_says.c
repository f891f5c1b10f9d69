/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements mlx5_says.h: a small model of libmlx5's checks. */
#include "tests/fuzz/mlx5_says.h"
#include <errno.h>

#define SQ_WQE     1024
#define RQ_WQE     512
#define QUEUE_WQES 32768
#define SRQ_WQES   32768

static uint64_t up_to_power(uint64_t n)
{
    uint64_t power = 1;

    while (power < n) {
        power *= 2;
    }
    return power;
}

static uint64_t up_to(uint64_t unit, uint64_t n)
{
    return (n + unit - 1) / unit * unit;
}

int says_create_cq(const struct ibv_cq_init_attr_ex *attr, int vectors)
{
    bool flags = attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS;

    if (attr->wc_flags & ~(uint64_t)IBV_CREATE_CQ_SUP_WC_FLAGS) {
        return EOPNOTSUPP; /* the header's */
    }
    if (!attr->cqe || attr->comp_mask > IBV_CQ_INIT_ATTR_MASK_FLAGS || (flags && attr->flags > 3)) {
        return EINVAL;
    }
    return attr->cqe >= 1u << 22 || attr->comp_vector >= (uint32_t)vectors ? EINVAL : 0;
}

int says_create_srq(struct ibv_srq_attr *attr)
{
    uint64_t wqe;

    if (attr->max_wr > SRQ_WQES || attr->max_sge > RQ_WQE / 16 ||
        up_to_power(attr->max_wr + 1ull) > SRQ_WQES) {
        return EINVAL;
    }
    wqe = up_to_power(16 + 16 * attr->max_sge);
    wqe = wqe < 32 ? 32 : wqe;
    if (wqe > RQ_WQE) {
        return EINVAL;
    }
    attr->max_wr = (uint32_t)up_to_power(attr->max_wr + 1ull) - 1;
    attr->max_sge = (uint32_t)(wqe - 16) / 16;
    return 0;
}

/* Sizes of a receive queue: WQEs and pieces. Returns false if they are too large. */
static bool says_receive(uint32_t wr, uint32_t sge, uint32_t *posts, uint32_t *gather)
{
    uint64_t stride = up_to_power(16ull * (sge ? sge : 1)), bytes;

    if (wr > QUEUE_WQES || stride > RQ_WQE) {
        return false;
    }
    bytes = up_to_power(wr) * stride;
    bytes = bytes < 64 ? 64 : bytes;
    *posts = (uint32_t)(bytes / stride);
    *gather = (uint32_t)stride / 16;
    return true;
}

int says_create_wq(struct ibv_wq_init_attr *attr)
{
    bool flags = attr->comp_mask & IBV_WQ_INIT_ATTR_FLAGS;
    const uint32_t has =
        IBV_WQ_FLAGS_CVLAN_STRIPPING | IBV_WQ_FLAGS_SCATTER_FCS | IBV_WQ_FLAGS_DELAY_DROP;
    uint32_t posts, gather;

    if (attr->wq_type != IBV_WQT_RQ || !attr->max_wr ||
        !says_receive(attr->max_wr, attr->max_sge, &posts, &gather) || attr->comp_mask > 1) {
        return EINVAL;
    }
    if (flags && attr->create_flags & ~has) {
        return EOPNOTSUPP;
    }
    attr->max_wr = posts;
    attr->max_sge = gather;
    return 0;
}

/* Returns the builders of a type: bits of enum ibv_qp_create_send_ops_flags. */
static uint64_t says_builders(enum ibv_qp_type type)
{
    switch (type) {
    case IBV_QPT_RC:
    case IBV_QPT_XRC_SEND:
        return 0x3ff;
    case IBV_QPT_UC:
        return IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
               IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_SEND_WITH_INV |
               IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_LOCAL_INV;
    case IBV_QPT_UD:
        return IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;
    case IBV_QPT_RAW_PACKET:
        return IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_TSO;
    default:
        return 0;
    }
}

/* Returns the bytes of a send WQE before its data; 0: there is no such type. */
static uint32_t says_overhead(const struct ibv_qp_init_attr_ex *attr)
{
    bool says = attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    uint64_t ops = attr->send_ops_flags;
    uint32_t size = 16;
    bool binds = says ? ops & (IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_LOCAL_INV) : true;

    if (attr->qp_type == IBV_QPT_UD) {
        return size + 48;
    }
    if (attr->qp_type == IBV_QPT_RAW_PACKET) {
        return size + 32;
    }
    if (says && ops & (IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_RDMA_WRITE |
                       IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM)) {
        size = 32;
    }
    if (says && ops & (IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD)) {
        size = 48;
    }
    if (binds) {
        size = 16 + 48 + 64 + 64;
    }
    switch (attr->qp_type) {
    case IBV_QPT_RC:
    case IBV_QPT_UC:
        return size;
    case IBV_QPT_XRC_SEND:
    case IBV_QPT_XRC_RECV:
        return size + 16;
    default:
        return 0;
    }
}

static int says_size_sq(const struct ibv_qp_init_attr_ex *attr, struct ibv_qp_cap *cap,
                        struct says_queue *sq)
{
    uint64_t overhead = says_overhead(attr), gathered, inlined, wqe, bytes;
    bool tso = attr->comp_mask & IBV_QP_INIT_ATTR_MAX_TSO_HEADER;

    if (!cap->max_send_wr) {
        return 0;
    }
    if (!overhead) {
        return EINVAL;
    }
    inlined = cap->max_inline_data ? overhead + up_to(16, 4ull + cap->max_inline_data) : 0;
    gathered = overhead + (tso ? up_to(16, attr->max_tso_header) : 0) + 16ull * cap->max_send_sge;
    wqe = gathered > inlined ? gathered : inlined;
    if (wqe > SQ_WQE) {
        return EINVAL;
    }
    wqe = up_to(64, wqe);
    bytes = up_to_power(cap->max_send_wr * wqe);
    if (bytes / 64 > QUEUE_WQES) {
        return EINVAL;
    }
    sq->posts = cap->max_send_wr = (uint32_t)(bytes / wqe);
    sq->gather = cap->max_send_sge;
    sq->inline_data = cap->max_inline_data = (uint32_t)(wqe - overhead - 4);
    return 0;
}

static int says_size_rq(const struct ibv_qp_init_attr_ex *attr, struct ibv_qp_cap *cap,
                        struct says_queue *rq)
{
    if (cap->max_recv_wr > QUEUE_WQES) {
        return EINVAL;
    }
    if (!cap->max_recv_wr || attr->srq) {
        cap->max_recv_wr = cap->max_recv_sge = 0;
        return 0;
    }
    if (!says_receive(cap->max_recv_wr, cap->max_recv_sge, &rq->posts, &rq->gather)) {
        return EINVAL;
    }
    cap->max_recv_wr = rq->posts;
    cap->max_recv_sge = rq->gather;
    return 0;
}

/* First libibverbs' checks, then the kernel's. */
static int says_kernel_create_qp(const struct ibv_qp_init_attr_ex *attr)
{
    const uint32_t named = IBV_QP_CREATE_BLOCK_SELF_MCAST_LB | IBV_QP_CREATE_SCATTER_FCS |
                           IBV_QP_CREATE_CVLAN_STRIPPING | IBV_QP_CREATE_SOURCE_QPN |
                           IBV_QP_CREATE_PCI_WRITE_END_PADDING;
    uint32_t flags = attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS ? attr->create_flags : 0;
    uint32_t has = IBV_QP_CREATE_BLOCK_SELF_MCAST_LB |
                   (attr->qp_type == IBV_QPT_RAW_PACKET
                        ? IBV_QP_CREATE_CVLAN_STRIPPING | IBV_QP_CREATE_SCATTER_FCS
                        : 0);
    bool target = attr->qp_type == IBV_QPT_XRC_RECV;

    if (!says_overhead(attr) || flags & ~named) {
        return EINVAL;
    }
    if (flags & ~has) {
        return EOPNOTSUPP;
    }
    if (target) {
        return attr->comp_mask & IBV_QP_INIT_ATTR_XRCD && attr->xrcd ? 0 : EINVAL;
    }
    if (!(attr->comp_mask & IBV_QP_INIT_ATTR_PD) || !attr->pd || !attr->send_cq) {
        return EINVAL;
    }
    return attr->recv_cq || attr->qp_type == IBV_QPT_XRC_SEND ? 0 : EINVAL;
}

int says_create_qp(struct ibv_qp_init_attr_ex *attr, struct says_queue *sq, struct says_queue *rq)
{
    bool tso = attr->comp_mask & IBV_QP_INIT_ATTR_MAX_TSO_HEADER;
    bool ops = attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    bool source = attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS &&
                  attr->create_flags & IBV_QP_CREATE_SOURCE_QPN;
    int err;

    *sq = *rq = (struct says_queue){0};
    if (attr->comp_mask >= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS << 1 ||
        (tso && attr->qp_type != IBV_QPT_RAW_PACKET) || (source && attr->qp_type != IBV_QPT_UD)) {
        return EINVAL;
    }
    if (ops &&
        (!says_builders(attr->qp_type) || attr->send_ops_flags & ~says_builders(attr->qp_type))) {
        return EOPNOTSUPP;
    }
    err = says_size_sq(attr, &attr->cap, sq);
    err = err ? err : says_size_rq(attr, &attr->cap, rq);
    if (attr->qp_type == IBV_QPT_XRC_RECV) {
        *sq = (struct says_queue){0};
    }
    if (attr->qp_type == IBV_QPT_XRC_RECV || attr->qp_type == IBV_QPT_XRC_SEND) {
        *rq = (struct says_queue){0};
    }
    err = err ? err : says_kernel_create_qp(attr);
    if (!err && attr->qp_type == IBV_QPT_RAW_PACKET && !sq->posts && !rq->posts) {
        return EINVAL; /* create_raw_packet_qp() of the kernel */
    }
    return err;
}

int says_post_send(const struct says_queue *sq, bool ready, const struct ibv_send_wr *wr)
{
    uint64_t bytes = 0;

    if ((unsigned)wr->opcode > IBV_WR_DRIVER1) {
        return EINVAL;
    }
    if (sq->outstanding >= sq->posts || !ready || (uint32_t)wr->num_sge > sq->gather) {
        return ENOMEM;
    }
    for (int i = 0; i < wr->num_sge; i++) {
        bytes += wr->sg_list[i].length;
    }
    /* Only a QP of raw packets has large sends, and the fuzzer does not judge these. libmlx5
     * refuses the others when it counts the data of the list. */
    if (wr->opcode == IBV_WR_TSO && !(wr->send_flags & IBV_SEND_INLINE) && bytes) {
        return EINVAL;
    }
    /* a WQE without room has a negative size inline, as an int */
    return wr->send_flags & IBV_SEND_INLINE && wr->num_sge &&
                   (int64_t)bytes > (int32_t)sq->inline_data
               ? ENOMEM
               : 0;
}

int says_post_recv(const struct says_queue *rq, bool ready, const struct ibv_recv_wr *wr)
{
    if (rq->outstanding >= rq->posts) {
        return ENOMEM;
    }
    return !ready || (uint32_t)wr->num_sge > rq->gather ? EINVAL : 0;
}
