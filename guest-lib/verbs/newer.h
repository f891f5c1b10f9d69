/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Describes what rdma-core's releases after 44 appended to structures of mlx5dv.h.
 *
 * A library that was built with the headers of an older release also serves programs that were
 * compiled with those of a newer one. A program asks for each new member by a bit, and only then
 * has its structure room for the member.
 */
#ifndef HCASIM_GUEST_LIB_VERBS_NEWER_H
#define HCASIM_GUEST_LIB_VERBS_NEWER_H

#include <stddef.h>
#include <infiniband/mlx5dv.h>

/* enum mlx5dv_context_comp_mask */
#define HV_CONTEXT_MASK_MAX_DC_RD_ATOM (1u << 14)
#define HV_CONTEXT_MASK_OOO_RECV_WRS   (1u << 16)

/* struct mlx5dv_ooo_recv_wrs_caps: receive WQEs of QPs whose data may be placed out of order */
struct hv_ooo_recv_wrs {
    uint32_t max_rc;
    uint32_t max_xrc;
    uint32_t max_dct;
    uint32_t max_ud;
    uint32_t max_uc;
};

/* The members of struct mlx5dv_context behind crypto_caps. */
struct hv_context_newer {
    uint64_t max_dc_rd_atom;
    uint64_t max_dc_init_rd_atom;
    uint32_t reg_c0_value;
    uint32_t reg_c0_mask;
    struct hv_ooo_recv_wrs ooo_recv_wrs_caps;
};

#define HV_CONTEXT_NEWER_OFFSET                                                                    \
    ((offsetof(struct mlx5dv_context, crypto_caps) + sizeof(struct mlx5dv_crypto_caps) + 7) & ~7ul)

static inline struct hv_context_newer *hv_context_newer(struct mlx5dv_context *attrs)
{
    return (void *)((char *)attrs + HV_CONTEXT_NEWER_OFFSET);
}

/* enum mlx5dv_obj_type, and the member of struct mlx5dv_obj behind pd */
#define HV_OBJ_DEVX (1u << 7)

struct hv_obj_newer {
    struct {
        struct mlx5dv_devx_obj *in;
        uint32_t *out; /* struct mlx5dv_devx, which is a handle */
    } devx;
};

static inline struct hv_obj_newer *hv_obj_newer(struct mlx5dv_obj *obj)
{
    return (void *)(&obj->pd + 1);
}

#ifdef HAVE_NEWER_MLX5DV
_Static_assert(MLX5DV_CONTEXT_MASK_MAX_DC_RD_ATOM == HV_CONTEXT_MASK_MAX_DC_RD_ATOM, "rdma-core");
_Static_assert(MLX5DV_CONTEXT_MASK_OOO_RECV_WRS == HV_CONTEXT_MASK_OOO_RECV_WRS, "rdma-core");
_Static_assert(MLX5DV_OBJ_DEVX == HV_OBJ_DEVX, "rdma-core");
#define HV_NEWER(field)                                                                            \
    (HV_CONTEXT_NEWER_OFFSET + offsetof(struct hv_context_newer, field) ==                         \
     offsetof(struct mlx5dv_context, field))
_Static_assert(HV_NEWER(max_dc_rd_atom) && HV_NEWER(max_dc_init_rd_atom), "rdma-core");
_Static_assert(HV_NEWER(ooo_recv_wrs_caps), "rdma-core");
#undef HV_NEWER
_Static_assert(sizeof(struct hv_ooo_recv_wrs) == sizeof(struct mlx5dv_ooo_recv_wrs_caps),
               "rdma-core");
_Static_assert(offsetof(struct mlx5dv_obj, devx) ==
                   offsetof(struct mlx5dv_obj, pd) + sizeof(struct hv_obj_newer),
               "rdma-core");
#endif

#endif
