/* SPDX-License-Identifier: BSD-2-Clause */
/* The table through which libmlx5.so.1 calls this library. */
#include "guest-lib/verbs/dv.h"
#include "guest-lib/verbs/user/dv_sig.h"

static struct ibv_context *dv_ops_open_device(struct ibv_device *device,
                                              struct mlx5dv_context_attr *attr)
{
    /* every context supports DevX, whether or not that was asked for */
    if (attr->comp_mask || (attr->flags & ~(uint32_t)MLX5DV_CONTEXT_FLAGS_DEVX)) {
        errno = EOPNOTSUPP;
        return NULL;
    }
    return ibv_open_device(device);
}

const struct hv_dv_ops hv_dv_ops = {
    .init_obj = hv_dv_init_obj,
    .query_port = hv_dv_query_port,
    .qp_ex_from_ibv_qp_ex = hv_dv_qp_ex_from_ibv_qp_ex,
    .open_device = dv_ops_open_device,
    .reg_dmabuf_mr = ibv_reg_dmabuf_mr,
    .mkey_check = hv_dv_mkey_check,
#define DV_OP(ret, name, ops, params, args) .name = hv_dv_##name,
#define DV_ERRNO(name, err, params)
#define DV_NULL(type, name, err, params)
#define DV_VOID(name, params)
#define DV_DR(type, name, params)
#include "guest-lib/verbs/dv_functions.def"
};
