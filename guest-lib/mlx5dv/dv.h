/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The way from libmlx5.so.1 into libibverbs.so.1.
 *
 * libmlx5.so.1 has no state and no HCA of its own: each mlx5dv_ function finds its context and
 * calls through this table, which every device and context carries. So neither library exports a
 * symbol that rdma-core's do not.
 */
#ifndef HCASIM_GUEST_LIB_MLX5DV_DV_H
#define HCASIM_GUEST_LIB_MLX5DV_DV_H

#include <infiniband/mlx5dv.h>
#include "guest-lib/verbs/verbs.h"

/* Grows with the functions that are there; what is missing answers as docs/verbs.md says. */
struct hv_dv_ops {
    int (*query_device)(struct ibv_context *context, struct mlx5dv_context *attrs);
    int (*init_obj)(struct mlx5dv_obj *obj, uint64_t obj_type);
};

extern const struct hv_dv_ops hv_dv_ops;

#endif
