/* SPDX-License-Identifier: BSD-2-Clause */
/* Multi-packet RQ, new: striding_rq_caps of mlx5dv_query_device(), mlx5dv_create_wq(). */
#include <infiniband/mlx5dv.h>
#include "tests/programs/migration/both.h"

int main(void)
{
    struct both b = both_begin(0);
    struct mlx5dv_context attr = {.comp_mask = MLX5DV_CONTEXT_MASK_STRIDING_RQ,
                                  .striding_rq_caps.supported_qpts = ~0u};
    struct ibv_wq_init_attr wq = {
        .wq_type = IBV_WQT_RQ, .max_wr = 8, .max_sge = 1, .pd = b.pd, .cq = b.cq};
    struct mlx5dv_wq_init_attr dv = {.comp_mask = MLX5DV_WQ_INIT_ATTR_MASK_STRIDING_RQ,
                                     .striding_rq_attrs = {.single_wqe_log_num_of_strides = 9,
                                                           .single_stride_log_num_of_bytes = 6}};

    NEED(!mlx5dv_query_device(b.ctx, &attr));
    printf("the device has strides: %s\n",
           attr.comp_mask & MLX5DV_CONTEXT_MASK_STRIDING_RQ && attr.striding_rq_caps.supported_qpts
               ? "yes"
               : "no");
    errno = 0;
    printf("a queue with strides: %s\n",
           mlx5dv_create_wq(b.ctx, &wq, &dv) ? "made" : strerror(errno));
    return 0;
}
