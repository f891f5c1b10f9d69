/* SPDX-License-Identifier: BSD-2-Clause */
/* DC and on-demand paging, new: the capabilities of mlx5dv_query_device(). */
#include <infiniband/mlx5dv.h>
#include "tests/programs/migration/both.h"

int main(void)
{
    struct both b = both_begin(0);
    struct mlx5dv_context attr = {.comp_mask = MLX5DV_CONTEXT_MASK_DC_ODP_CAPS};

    NEED(!mlx5dv_query_device(b.ctx, &attr));
    NEED(attr.comp_mask & MLX5DV_CONTEXT_MASK_DC_ODP_CAPS);
    printf("DC pages on demand: send %s, write %s, receive from an SRQ %s\n",
           attr.dc_odp_caps & IBV_ODP_SUPPORT_SEND ? "yes" : "no",
           attr.dc_odp_caps & IBV_ODP_SUPPORT_WRITE ? "yes" : "no",
           attr.dc_odp_caps & IBV_ODP_SUPPORT_SRQ_RECV ? "yes" : "no");
    return 0;
}
