/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mlx5dv_init_obj(): gives a program the rings of verbs' objects, so that it can drive them itself.
 *
 * Their doorbell registers are memory, which is scanned from then on (watch.c).
 */
#include "guest-lib/verbs/dv.h"
#include "guest-lib/verbs/kernel/watch.h"
#include "guest-lib/verbs/newer.h"
#include "guest-lib/verbs/user/user.h"

/* Returns the doorbell page of a queue that the program drives from now on, and registers the
 * queue: 0 or errno. */
static int dv_obj_own(struct ibv_context *context, const void *owner, enum hv_watch_kind kind,
                      uint32_t num, const struct hv_uar *uar, const uint32_t *dbrec, void **page)
{
    *page = hv_watch_uar(hv_context(context), uar->page);
    return *page ? hv_watch_queue(hv_context(context), owner, kind, num, uar->page, dbrec) : errno;
}

static int dv_obj_get_qp(struct ibv_qp *ibqp, struct mlx5dv_qp *out)
{
    struct user_qp *qp = user_qp(ibqp);
    uint32_t sqn = ibqp->qp_type == IBV_QPT_RAW_PACKET ? qp->sqn : ibqp->qp_num;
    uint64_t given = 0;
    void *page = NULL;
    int err = 0;

    if (qp->sq.wqe_cnt) {
        err = dv_obj_own(ibqp->context, hv_qp(ibqp), HV_WATCH_SQ, sqn, qp->uar,
                         shadow_real(qp->dbrec + MLX5_SND_DBR), &page);
    }
    if (err) {
        return err;
    }
    out->dbrec = shadow_real(qp->dbrec);
    out->sq.buf = shadow_real(qp->sq.buf);
    out->sq.wqe_cnt = qp->sq.wqe_cnt;
    out->sq.stride = 1u << qp->sq.wqe_shift;
    out->rq.buf = shadow_real(qp->rq.buf);
    out->rq.wqe_cnt = qp->rq.wqe_cnt;
    out->rq.stride = 1u << qp->rq.wqe_shift;
    out->bf.reg = page ? (uint8_t *)page + PRM_OFFSET(uar, blue_flame) : NULL;
    /* the register has two buffers that alternate */
    out->bf.size = (1u << HV_CAP(qp->hca, log_bf_reg_size)) / 2;
    if (out->comp_mask & MLX5DV_QP_MASK_UAR_MMAP_OFFSET) {
        out->uar_mmap_offset = hv_uar_offset(qp->uar->page);
        given |= MLX5DV_QP_MASK_UAR_MMAP_OFFSET;
    }
    if (out->comp_mask & MLX5DV_QP_MASK_RAW_QP_HANDLES) {
        out->tirn = qp->tirn;
        out->tisn = qp->tisn;
        out->rqn = qp->rqn;
        out->sqn = qp->sqn;
        given |= MLX5DV_QP_MASK_RAW_QP_HANDLES;
    }
    if (out->comp_mask & MLX5DV_QP_MASK_RAW_QP_TIR_ADDR) {
        out->tir_icm_addr = 0; /* steering memory is unsupported */
        given |= MLX5DV_QP_MASK_RAW_QP_TIR_ADDR;
    }
    out->comp_mask = given;
    return 0;
}

static int dv_obj_get_cq(struct ibv_cq *ibcq, struct mlx5dv_cq *out)
{
    struct user_cq *cq = user_cq(ibcq);
    void *page;
    int err = dv_obj_own(ibcq->context, hv_cq(ibcq), HV_WATCH_CQ, cq->cqn, cq->uar,
                         shadow_real(cq->dbrec + 1), &page);

    if (err) {
        return err;
    }
    out->buf = shadow_real(cq->ring);
    out->dbrec = shadow_real(cq->dbrec);
    out->cqe_cnt = 1u << cq->log_size;
    out->cqe_size = cq->cqe_size;
    out->cq_uar = page;
    out->cqn = cq->cqn;
    out->comp_mask = 0;
    return 0;
}

static void dv_obj_get_srq(struct ibv_srq *ibsrq, struct mlx5dv_srq *out)
{
    struct hv_srq *srq = hv_srq(ibsrq);
    uint64_t given = 0;

    out->buf = shadow_real(srq->ring);
    out->dbrec = shadow_real(srq->dbrec);
    out->stride = 1u << srq->wqe_shift;
    out->head = srq->on_gpu ? 0 : srq->head; /* the GPU alone moves it */
    out->tail = srq->tail;
    if (out->comp_mask & MLX5DV_SRQ_MASK_SRQN) {
        out->srqn = srq->srqn;
        given |= MLX5DV_SRQ_MASK_SRQN;
    }
    out->comp_mask = given;
}

static void dv_obj_get_rwq(struct ibv_wq *ibwq, struct mlx5dv_rwq *out)
{
    const struct hv_rwq *wq = (const struct hv_rwq *)ibwq;

    out->buf = shadow_real(wq->ring);
    out->dbrec = shadow_real(wq->dbrec);
    out->wqe_cnt = wq->rq.wqe_cnt;
    out->stride = 1u << wq->rq.wqe_shift;
    out->comp_mask = 0;
}

static void dv_obj_get_dm(struct ibv_dm *dm, struct mlx5dv_dm *out)
{
    uint64_t given = out->comp_mask & MLX5DV_DM_MASK_REMOTE_VA;

    out->buf = hv_dm(dm)->map;
    out->length = hv_dm(dm)->length;
    if (given) {
        out->remote_va = 0; /* only memory for steering has one */
    }
    out->comp_mask = given;
}

int hv_dv_init_obj(struct mlx5dv_obj *obj, uint64_t obj_type)
{
    int err = 0;

    if (obj_type & MLX5DV_OBJ_QP) {
        err = dv_obj_get_qp(obj->qp.in, obj->qp.out);
    }
    if (!err && (obj_type & MLX5DV_OBJ_CQ)) {
        err = dv_obj_get_cq(obj->cq.in, obj->cq.out);
    }
    if (err) {
        return err;
    }
    if (obj_type & MLX5DV_OBJ_SRQ) {
        dv_obj_get_srq(obj->srq.in, obj->srq.out);
    }
    if (obj_type & MLX5DV_OBJ_RWQ) {
        dv_obj_get_rwq(obj->rwq.in, obj->rwq.out);
    }
    if (obj_type & MLX5DV_OBJ_DM) {
        dv_obj_get_dm(obj->dm.in, obj->dm.out);
    }
    if (obj_type & MLX5DV_OBJ_AH) {
        obj->ah.out->av = (struct mlx5_wqe_av *)hv_ah(obj->ah.in)->av;
        obj->ah.out->comp_mask = 0;
    }
    if (obj_type & MLX5DV_OBJ_PD) {
        obj->pd.out->pdn = hv_pd(obj->pd.in)->pdn;
        obj->pd.out->comp_mask = 0;
    }
    if (obj_type & HV_OBJ_DEVX) {
        *hv_obj_newer(obj)->devx.out = hv_obj_newer(obj)->devx.in->id;
    }
    return 0;
}
