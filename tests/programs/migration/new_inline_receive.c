/* SPDX-License-Identifier: BSD-2-Clause */
/* Inline receive, new: MLX5DV_QP_CREATE_ALLOW_SCATTER_TO_CQE of mlx5dv_create_qp(). */
#include <infiniband/mlx5dv.h>
#include "tests/programs/migration/both.h"

static struct ibv_qp *rc(struct both *b, struct ibv_cq *cq)
{
    struct ibv_qp_init_attr_ex attr = {
        .send_cq = cq,
        .recv_cq = cq,
        .cap = {.max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = IBV_QPT_RC,
        .comp_mask = IBV_QP_INIT_ATTR_PD,
        .pd = b->pd,
    };
    struct mlx5dv_qp_init_attr dv = {.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS,
                                     .create_flags = MLX5DV_QP_CREATE_ALLOW_SCATTER_TO_CQE};
    struct ibv_qp *qp = mlx5dv_create_qp(b->ctx, &attr, &dv);

    NEED(qp);
    return qp;
}

int main(void)
{
    /* no data are in CQEs unless the program asks for it */
    int err = setenv("MLX5_SCATTER_TO_CQE", "0", 1);
    struct both b = both_begin(0);
    struct ibv_cq *recvs = ibv_create_cq(b.ctx, 16, NULL, NULL, 0);
    struct ibv_qp *one = rc(&b, b.cq), *other = rc(&b, recvs);

    NEED(!err);
    both_connect(one, other);
    for (uint32_t len = 20; len <= 200; len += 180) {
        memset(both_to(&b), 0, len);
        both_recv(other, both_to(&b), len, b.mr->lkey);
        both_send(one, both_from(&b), len, b.mr->lkey);
        both_done(b.cq);
        /* the message is acknowledged, so its data are in the CQE or in the buffer */
        printf("in the %s", both_to(&b)[1] ? "buffer" : "CQE");
        printf(": %u bytes", both_done(recvs).byte_len);
        printf(", after the poll %s\n", both_same(&b, len) ? "right" : "wrong");
    }
    return 0;
}
