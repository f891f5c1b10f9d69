/* SPDX-License-Identifier: BSD-2-Clause */
/* UMR, new: mlx5dv_wr_mr_list() joins two ranges; mlx5dv_wr_mr_interleaved() repeats with gaps. */
#include <infiniband/mlx5dv.h>
#include "tests/programs/migration/both.h"

#define ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)

static struct ibv_qp *umr_qp(struct both *b)
{
    struct ibv_qp_init_attr_ex attr = {
        .send_cq = b->cq,
        .recv_cq = b->cq,
        .cap = {.max_send_wr = 8,
                .max_recv_wr = 8,
                .max_send_sge = 1,
                .max_recv_sge = 1,
                .max_inline_data = 128},
        .qp_type = IBV_QPT_RC,
        .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
        .pd = b->pd,
        .send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE,
    };
    struct mlx5dv_qp_init_attr dv = {.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS,
                                     .send_ops_flags = MLX5DV_QP_EX_WITH_MR_INTERLEAVED |
                                                       MLX5DV_QP_EX_WITH_MR_LIST};
    struct ibv_qp *qp = mlx5dv_create_qp(b->ctx, &attr, &dv);

    NEED(qp);
    both_loop(qp);
    return qp;
}

int main(void)
{
    struct both b = both_begin(0);
    struct ibv_qp *qp = umr_qp(&b);
    struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(qp);
    struct mlx5dv_qp_ex *dv = mlx5dv_qp_ex_from_ibv_qp_ex(ex);
    struct mlx5dv_mkey_init_attr attr = {
        .pd = b.pd, .create_flags = MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT, .max_entries = 4};
    struct mlx5dv_mkey *key = mlx5dv_create_mkey(&attr);
    uint64_t to = (uintptr_t)both_to(&b);
    struct ibv_sge list[2] = {{to + 1000, 100, b.mr->lkey}, {to, 100, b.mr->lkey}};
    struct mlx5dv_mr_interleaved block = {to, 50, 30, b.mr->lkey};

    NEED(key);
    ibv_wr_start(ex);
    ex->wr_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED;
    mlx5dv_wr_mr_list(dv, key, ACCESS, 2, list);
    NEED(!ibv_wr_complete(ex));
    both_done(b.cq);
    both_write(qp, both_from(&b), 200, b.mr->lkey, 0, key->rkey);
    both_done(b.cq);
    printf("two ranges: %s\n", !memcmp(both_to(&b) + 1000, both_from(&b), 100) &&
                                       !memcmp(both_to(&b), both_from(&b) + 100, 100)
                                   ? "right"
                                   : "wrong");
    memset(both_to(&b), 0, 2000);
    ibv_wr_start(ex);
    ex->wr_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED;
    mlx5dv_wr_mr_interleaved(dv, key, ACCESS, 2, 1, &block);
    NEED(!ibv_wr_complete(ex));
    both_done(b.cq);
    both_write(qp, both_from(&b), 100, b.mr->lkey, 0, key->rkey);
    both_done(b.cq);
    printf("a block with gaps: %s\n", !memcmp(both_to(&b), both_from(&b), 50) && !both_to(&b)[50] &&
                                              !both_to(&b)[79] &&
                                              !memcmp(both_to(&b) + 80, both_from(&b) + 50, 50)
                                          ? "right"
                                          : "wrong");
    NEED(!mlx5dv_destroy_mkey(key));
    return 0;
}
