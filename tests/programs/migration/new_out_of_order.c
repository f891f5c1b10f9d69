/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Out-of-order placement, new: rdma-core has no verb for it. The administrator of the fabric or the
 * driver decides, or the program by MLX5DV_QP_CREATE_OOO_DP from release 53 on.
 */
#include <infiniband/mlx5dv.h>
#include "tests/programs/migration/both.h"

#define CREATE_OOO_DP 0x80 /* enum mlx5dv_qp_create_flags of the newer release */

int main(void)
{
    struct both b = both_begin(0);
    struct ibv_qp_init_attr_ex attr = {
        .send_cq = b.cq,
        .recv_cq = b.cq,
        .cap = {.max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = IBV_QPT_RC,
        .comp_mask = IBV_QP_INIT_ATTR_PD,
        .pd = b.pd,
    };
    struct mlx5dv_qp_init_attr dv = {.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS,
                                     .create_flags = CREATE_OOO_DP};
    struct ibv_qp *qp = mlx5dv_create_qp(b.ctx, &attr, &dv);

    NEED(qp);
    both_loop(qp);
    for (uint32_t i = 0; i < 8; i++) {
        both_write(qp, both_from(&b) + i * 4000, 4000, b.mr->lkey,
                   (uintptr_t)both_to(&b) + i * 4000, b.mr->rkey);
    }
    for (unsigned i = 0; i < 8; i++) {
        both_done(b.cq);
    }
    printf("8 WRITEs, data %s\n", both_same(&b, 32000) ? "right" : "wrong");
    return 0;
}
