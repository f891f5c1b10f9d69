/* SPDX-License-Identifier: BSD-2-Clause */
/* Multi-packet RQ, new: striding_rq_caps of mlx5dv_query_device(). */
#include <infiniband/mlx5dv.h>
#include "tests/programs/migration/both.h"

int main(void)
{
    struct both b = both_begin(0);
    struct mlx5dv_context attr = {.comp_mask = MLX5DV_CONTEXT_MASK_STRIDING_RQ};

    NEED(!mlx5dv_query_device(b.ctx, &attr));
    printf("log of bytes of a stride: %u to %u\n",
           attr.striding_rq_caps.min_single_stride_log_num_of_bytes,
           attr.striding_rq_caps.max_single_stride_log_num_of_bytes);
    return 0;
}
