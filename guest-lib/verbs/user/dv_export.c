/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libmlx5.so.1: its functions, one line each in dv_functions.def, and the exceptions.
 *
 * This library has no state; see dv.h.
 */
#include <stdatomic.h>
#include <stdio.h>

#include "guest-lib/verbs/dv.h"
#include "guest-lib/verbs/newer.h"

/* Says once what a program needs that asks for mlx5dv_dr: DPDK's driver goes no further without it.
 */
static void dv_export_say_dr(const char *name)
{
    static atomic_flag said = ATOMIC_FLAG_INIT;

    if (!atomic_flag_test_and_set(&said)) {
        fprintf(stderr,
                "hcasim: %s() fails: a process with no VM has no steering by software (mlx5dv_dr), "
                "which DPDK needs. Run the program in a guest (docs/howto/dpdk.md)\n",
                name);
    }
}

#define DV_OP(ret, name, ops, params, args)                                                        \
    HV_EXPORT ret mlx5dv_##name params                                                             \
    {                                                                                              \
        return (ops)->name args;                                                                   \
    }
#define DV_ERRNO(name, err, params)                                                                \
    HV_EXPORT int mlx5dv_##name params                                                             \
    {                                                                                              \
        return err;                                                                                \
    }
#define DV_NULL(type, name, err, params)                                                           \
    HV_EXPORT type mlx5dv_##name params                                                            \
    {                                                                                              \
        errno = err;                                                                               \
        return NULL;                                                                               \
    }
#define DV_VOID(name, params)                                                                      \
    HV_EXPORT void mlx5dv_##name params                                                            \
    {                                                                                              \
    }
#define DV_DR(type, name, params)                                                                  \
    HV_EXPORT type mlx5dv_##name params                                                            \
    {                                                                                              \
        dv_export_say_dr("mlx5dv_" #name);                                                         \
        errno = EOPNOTSUPP;                                                                        \
        return NULL;                                                                               \
    }
#include "guest-lib/verbs/dv_functions.def"

static const struct hv_dv_ops *dv_export_ops_of(struct ibv_context *ctx)
{
    return hv_context(ctx)->dv;
}

/* -- exceptions -------------------------------------------------------------------------------- */

/* Every device of this library is supported. */
HV_EXPORT bool mlx5dv_is_supported(struct ibv_device *device)
{
    return device != NULL;
}

HV_EXPORT struct ibv_context *mlx5dv_open_device(struct ibv_device *device,
                                                 struct mlx5dv_context_attr *attr)
{
    return hv_device(device)->dv->open_device(device, attr);
}

/* libmlx5's function only calculates an address. Programs (perftest) call it for a DCT, too, which
 * has no mlx5dv_qp_ex. */
HV_EXPORT struct mlx5dv_qp_ex *mlx5dv_qp_ex_from_ibv_qp_ex(struct ibv_qp_ex *qp)
{
    return qp ? dv_export_ops_of(qp->qp_base.context)->qp_ex_from_ibv_qp_ex(qp) : NULL;
}

HV_EXPORT int _mlx5dv_query_port(struct ibv_context *ctx, uint32_t port_num,
                                 struct mlx5dv_port *info, size_t info_len)
{
    return dv_export_ops_of(ctx)->query_port(ctx, port_num, info, info_len);
}

HV_EXPORT int _mlx5dv_mkey_check(struct mlx5dv_mkey *mkey, struct mlx5dv_mkey_err *err_info,
                                 size_t err_info_size)
{
    return dv_export_ops_of(DV_CONTAINER(mkey, struct hv_dv_mkey)->context)
        ->mkey_check(mkey, err_info, err_info_size);
}

/* Returns a descriptor, not an errno. There is none. */
HV_EXPORT int mlx5dv_vfio_get_events_fd(struct ibv_context *ibctx)
{
    (void)ibctx;
    errno = EOPNOTSUPP;
    return -1;
}

static struct ibv_context *dv_export_context_of(struct mlx5dv_obj *obj, uint64_t obj_type)
{
    return obj_type & MLX5DV_OBJ_QP    ? obj->qp.in->context
           : obj_type & MLX5DV_OBJ_CQ  ? obj->cq.in->context
           : obj_type & MLX5DV_OBJ_SRQ ? obj->srq.in->context
           : obj_type & MLX5DV_OBJ_RWQ ? obj->rwq.in->context
           : obj_type & MLX5DV_OBJ_DM  ? obj->dm.in->context
           : obj_type & MLX5DV_OBJ_AH  ? obj->ah.in->context
           : obj_type & MLX5DV_OBJ_PD  ? obj->pd.in->context
           : obj_type & HV_OBJ_DEVX    ? hv_obj_newer(obj)->devx.in->context
                                       : NULL;
}

/* Two versions: MLX5_1.0 stores in cq_uar a pointer to the pointer. */
int hv_init_obj_1_2(struct mlx5dv_obj *obj, uint64_t obj_type);
int hv_init_obj_1_0(struct mlx5dv_obj *obj, uint64_t obj_type);

HV_EXPORT int hv_init_obj_1_2(struct mlx5dv_obj *obj, uint64_t obj_type)
{
    struct ibv_context *ctx = dv_export_context_of(obj, obj_type);

    return ctx ? dv_export_ops_of(ctx)->init_obj(obj, obj_type) : EINVAL;
}

HV_EXPORT int hv_init_obj_1_0(struct mlx5dv_obj *obj, uint64_t obj_type)
{
    static void *cq_uar; /* the same for all CQs of a process */
    int err = hv_init_obj_1_2(obj, obj_type);

    if (!err && (obj_type & MLX5DV_OBJ_CQ)) {
        cq_uar = obj->cq.out->cq_uar;
        obj->cq.out->cq_uar = &cq_uar;
    }
    return err;
}

__asm__(".symver hv_init_obj_1_2, mlx5dv_init_obj@@MLX5_1.2, remove");
__asm__(".symver hv_init_obj_1_0, mlx5dv_init_obj@MLX5_1.0, remove");

/* -- newer than the headers of some releases --------------------------------------------------- */

#ifndef HAVE_MLX5DV_REG_DMABUF_MR
struct ibv_mr *mlx5dv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length,
                                    uint64_t iova, int fd, int access, int mlx5_access);
int mlx5dv_get_data_direct_sysfs_path(struct ibv_context *context, char *buf, size_t buf_len);
#endif

HV_EXPORT struct ibv_mr *mlx5dv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length,
                                              uint64_t iova, int fd, int access, int mlx5_access)
{
    if (mlx5_access) { /* it asks for data direct (EINVAL, as from mlx5_ib) */
        errno = EINVAL;
        return NULL;
    }
    return dv_export_ops_of(pd->context)->reg_dmabuf_mr(pd, offset, length, iova, fd, access);
}

/* ENODEV: the device has no second PCI function for its data (as in mlx5_ib). NCCL ends if another
 * error comes from a device that takes dma-bufs. */
HV_EXPORT int mlx5dv_get_data_direct_sysfs_path(struct ibv_context *context, char *buf,
                                                size_t buf_len)
{
    return ENODEV;
}
