/* SPDX-License-Identifier: BSD-2-Clause */
/* Copies small data from CQEs to the buffers of WQEs (as libmlx5's mlx5_copy_to_recv_wqe() and
 * similar functions). */
#include <string.h>
#include "guest-lib/verbs/user/cqe_data.h"

#define WQEBB 64u

/* The data that is still to be copied to a scatter list. */
struct cqe_data_left {
    const uint8_t *bytes;
    uint32_t len;
    uint32_t lost_lkey; /* data for this key is discarded (ibv_alloc_null_mr()) */
    bool failed;        /* a buffer is memory of a GPU that does not take it */
};

/* Finds the data in the CQE. False: the CQE cannot hold it. */
static bool cqe_data_find(const struct user_cq *cq, const struct prm_cqe64 *cqe,
                          struct cqe_data_left *left)
{
    bool is_32 = PRM_GET(cqe64, cqe, format) == PRM_CQE_FORMAT_INLINE_32;

    left->bytes = is_32 ? cqe->bytes : cqe->bytes - PRM_SIZE(cqe64);
    left->len = PRM_GET(cqe64, cqe, byte_cnt);
    left->failed = false;
    left->lost_lkey = hv_drv(cq->hca)->dump_fill_mkey;
    return left->len <= (is_32 ? PRM_SIZE(cqe64) / 2 : PRM_SIZE(cqe64)) &&
           (is_32 || cq->cqe_size == 2 * PRM_SIZE(cqe64));
}

static void cqe_data_copy(struct cqe_data_left *left, const struct prm_wqe_data_seg *seg)
{
    uint32_t part = MIN(left->len, PRM_GET(wqe_data_seg, seg, byte_count));
    /* bus addresses are process addresses */
    void *to = (void *)(uintptr_t)PRM_GET(wqe_data_seg, seg, addr);

    if (part && (!left->lost_lkey || PRM_GET(wqe_data_seg, seg, lkey) != left->lost_lkey)) {
        left->failed |= !reach_write(to, left->bytes, part);
    }
    left->bytes += part;
    left->len -= part;
}

static enum ibv_wc_status cqe_data_status(const struct cqe_data_left *left)
{
    return left->len ? IBV_WC_LOC_LEN_ERR : left->failed ? IBV_WC_LOC_PROT_ERR : IBV_WC_SUCCESS;
}

/* segs: the segments of a WQE; the last ones may have length 0. */
static enum ibv_wc_status cqe_data_to_list(const struct user_cq *cq, const struct prm_cqe64 *cqe,
                                           const struct prm_wqe_data_seg *segs, uint32_t num)
{
    struct cqe_data_left left;

    if (!cqe_data_find(cq, cqe, &left)) {
        return IBV_WC_LOC_LEN_ERR;
    }
    for (uint32_t i = 0; i < num && left.len; i++) {
        cqe_data_copy(&left, &segs[i]);
    }
    return cqe_data_status(&left);
}

enum ibv_wc_status hv_cqe_data_to_rq(const struct user_cq *cq, const struct prm_cqe64 *cqe,
                                     const struct hv_wq *rq)
{
    uint32_t index = PRM_GET(cqe64, cqe, wqe_counter) & (rq->wqe_cnt - 1);

    return cqe_data_to_list(cq, cqe, (const void *)(rq->buf + ((size_t)index << rq->wqe_shift)),
                            rq->max_gs);
}

enum ibv_wc_status hv_cqe_data_to_srq(const struct user_cq *cq, const struct prm_cqe64 *cqe,
                                      const struct hv_srq *srq)
{
    size_t at = (size_t)PRM_GET(cqe64, cqe, wqe_counter) << srq->wqe_shift;

    return cqe_data_to_list(cq, cqe, (const void *)(srq->ring + at + PRM_SIZE(wqe_srq_next_seg)),
                            srq->max_gs);
}

/* The offset of the scatter list in a WQE, by its opcode. 0: CQEs of this opcode have no data. The
 * device puts no answer of a masked atomic into a CQE (docs/adr/0013). */
static size_t cqe_data_list_at(const struct prm_wqe_ctrl_seg *ctrl)
{
    switch (PRM_GET(wqe_ctrl_seg, ctrl, opcode)) {
    case PRM_WQE_OPCODE_RDMA_READ:
        return PRM_SIZE(wqe_ctrl_seg) + PRM_SIZE(wqe_raddr_seg);
    case PRM_WQE_OPCODE_ATOMIC_CS:
    case PRM_WQE_OPCODE_ATOMIC_FA:
        return PRM_SIZE(wqe_ctrl_seg) + PRM_SIZE(wqe_raddr_seg) + PRM_SIZE(wqe_atomic_seg);
    default:
        return 0;
    }
}

/* Puts the answer of an atomic into the host's order. Other data stays as it is. */
static void cqe_data_swap_answer(struct cqe_data_left *left, const struct prm_wqe_ctrl_seg *ctrl,
                                 uint64_t *answer)
{
    uint8_t opcode = (uint8_t)PRM_GET(wqe_ctrl_seg, ctrl, opcode);

    if ((opcode == PRM_WQE_OPCODE_ATOMIC_CS || opcode == PRM_WQE_OPCODE_ATOMIC_FA) &&
        left->len == sizeof(*answer)) {
        *answer = prm_load64(left->bytes);
        left->bytes = (const uint8_t *)answer;
    }
}

/* A send WQE that reaches the ring's end continues at its start. libmlx5 does not support data of a
 * DCI; that of experimental verbs does. */
enum ibv_wc_status hv_cqe_data_to_sq(const struct user_cq *cq, const struct prm_cqe64 *cqe,
                                     const struct user_qp *qp)
{
    size_t ring = (size_t)qp->sq.wqe_cnt * WQEBB;
    size_t wqe = PRM_GET(cqe64, cqe, wqe_counter) * (size_t)WQEBB;
    const struct prm_wqe_ctrl_seg *ctrl = (const void *)(qp->sq.buf + wqe % ring);
    size_t end = wqe + PRM_GET(wqe_ctrl_seg, ctrl, ds) * (size_t)PRM_SIZE(wqe_data_seg);
    size_t before = cqe_data_list_at(ctrl);
    bool exp_dci = qp->dc == HV_DC_DCI && (int)qp->ibv.qp_type == IBV_EXP_QP_TYPE_START;
    struct cqe_data_left left;
    uint64_t answer;

    if (qp->ibv.qp_type != IBV_QPT_RC && !exp_dci) {
        return IBV_WC_GENERAL_ERR;
    }
    if (!before) {
        return IBV_WC_REM_INV_REQ_ERR;
    }
    before += exp_dci ? PRM_SIZE(wqe_av) : 0;
    if (!cqe_data_find(cq, cqe, &left)) {
        return IBV_WC_LOC_LEN_ERR;
    }
    if (qp->swaps_answers) {
        cqe_data_swap_answer(&left, ctrl, &answer);
    }
    for (size_t at = wqe + before; at < end && left.len; at += PRM_SIZE(wqe_data_seg)) {
        cqe_data_copy(&left, (const void *)(qp->sq.buf + at % ring));
    }
    return cqe_data_status(&left);
}
