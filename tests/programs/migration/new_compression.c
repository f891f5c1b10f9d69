/* SPDX-License-Identifier: BSD-2-Clause */
/* CQE compression, new: MLX5DV_CQ_INIT_ATTR_MASK_COMPRESSED_CQE of mlx5dv_create_cq(). */
#include <infiniband/mlx5dv.h>
#include "tests/programs/migration/both.h"

int main(void)
{
    struct both b = both_begin(0);
    struct ibv_cq_init_attr_ex attr = {.cqe = 64, .wc_flags = IBV_WC_STANDARD_FLAGS};
    struct mlx5dv_cq_init_attr dv = {.comp_mask = MLX5DV_CQ_INIT_ATTR_MASK_COMPRESSED_CQE,
                                     .cqe_comp_res_format = MLX5DV_CQE_RES_FORMAT_HASH};
    struct ibv_cq_ex *cq = mlx5dv_create_cq(b.ctx, &attr, &dv);

    printf("a CQ with compressed CQEs: %s\n", cq ? "made" : "refused");
    NEED(!cq || !ibv_destroy_cq(ibv_cq_ex_to_cq(cq)));
    return 0;
}
