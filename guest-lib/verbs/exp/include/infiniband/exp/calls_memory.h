/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls about memory.
 */
#ifndef HCASIM_INFINIBAND_EXP_CALLS_MEMORY_H
#define HCASIM_INFINIBAND_EXP_CALLS_MEMORY_H

#include "context.h"

/* Registers memory. */
static inline struct ibv_mr *ibv_exp_reg_mr(struct ibv_exp_reg_mr_in *in)
{
    struct verbs_context_exp *exp = verbs_get_exp_ctx_op(in->pd->context, lib_exp_reg_mr);

    if (!exp) {
        errno = ENOSYS;
        return NULL;
    }
    IBV_EXP_RET_NULL_ON_INVALID_COMP_MASK(in->comp_mask, IBV_EXP_REG_MR_RESERVED - 1);
    return exp->lib_exp_reg_mr(in);
}

/* Registers the memory of a region that another process shares, by the region's handle. This is the
 * call before MLNX_OFED 4.6, whose own header has one that fails with ENOSYS on every device. */
static inline struct ibv_mr *ibv_exp_reg_shared_mr(struct ibv_exp_reg_shared_mr_in *in)
{
    struct verbs_context_exp *exp =
        verbs_get_exp_ctx_op(in->pd->context, lib_exp_ibv_reg_shared_mr);

    if (!exp) {
        errno = ENOSYS;
        return NULL;
    }
    IBV_EXP_RET_NULL_ON_INVALID_COMP_MASK(in->comp_mask, IBV_EXP_REG_SHARED_MR_RESERVED - 1);
    return exp->lib_exp_ibv_reg_shared_mr(in);
}

/* Makes pages of a region present that is paged on demand. Returns an errno. */
static inline int ibv_exp_prefetch_mr(struct ibv_mr *mr, struct ibv_exp_prefetch_attr *attr)
{
    struct verbs_context_exp *exp = verbs_get_exp_ctx_op(mr->context, lib_exp_prefetch_mr);

    if (!exp) {
        errno = ENOSYS;
        return ENOSYS;
    }
    IBV_EXP_RET_EINVAL_ON_INVALID_COMP_MASK(attr->comp_mask, IBV_EXP_PREFETCH_MR_RESERVED - 1);
    return exp->lib_exp_prefetch_mr(mr, attr);
}

/* Makes a memory key that UMR work requests fill. */
static inline struct ibv_mr *ibv_exp_create_mr(struct ibv_exp_create_mr_in *in)
{
    struct verbs_context_exp *exp = verbs_get_exp_ctx_op(in->pd->context, lib_exp_create_mr);
    struct ibv_mr *mr;

    if (!exp) {
        errno = ENOSYS;
        return NULL;
    }
    IBV_EXP_RET_NULL_ON_INVALID_COMP_MASK(in->comp_mask, IBV_EXP_CREATE_MR_IN_RESERVED - 1);
    mr = exp->lib_exp_create_mr(in);
    if (mr) {
        mr->pd = in->pd;
    }
    return mr;
}

/* Says how many entries a key of ibv_exp_create_mr() can have. Returns an errno. */
static inline int ibv_exp_query_mkey(struct ibv_mr *mr, struct ibv_exp_mkey_attr *attr)
{
    struct verbs_context_exp *exp = verbs_get_exp_ctx_op(mr->context, lib_exp_query_mkey);

    if (!exp) {
        errno = ENOSYS;
        return ENOSYS;
    }
    IBV_EXP_RET_EINVAL_ON_INVALID_COMP_MASK(attr->comp_mask, IBV_EXP_MKEY_ATTR_RESERVED - 1);
    return exp->lib_exp_query_mkey(mr, attr);
}

/* Allocates memory for the list of a UMR work request that does not fit into the WQE. */
static inline struct ibv_exp_mkey_list_container *
ibv_exp_alloc_mkey_list_memory(struct ibv_exp_mkey_list_container_attr *attr)
{
    struct verbs_context_exp *exp =
        verbs_get_exp_ctx_op(attr->pd->context, lib_exp_alloc_mkey_list_memory);

    if (!exp) {
        errno = ENOSYS;
        return NULL;
    }
    IBV_EXP_RET_NULL_ON_INVALID_COMP_MASK(attr->comp_mask,
                                          IBV_EXP_MKEY_LIST_CONTAINER_RESERVED - 1);
    return exp->lib_exp_alloc_mkey_list_memory(attr);
}

static inline int ibv_exp_dealloc_mkey_list_memory(struct ibv_exp_mkey_list_container *mem)
{
    struct verbs_context_exp *exp =
        verbs_get_exp_ctx_op(mem->context, lib_exp_dealloc_mkey_list_memory);

    if (!exp) {
        errno = ENOSYS;
        return ENOSYS;
    }
    return exp->lib_exp_dealloc_mkey_list_memory(mem);
}

/* Binds a memory window of type 1. Returns an errno. */
static inline int ibv_exp_bind_mw(struct ibv_exp_mw_bind *mw_bind)
{
    struct verbs_context_exp *exp = verbs_get_exp_ctx_op(mw_bind->mw->context, lib_exp_bind_mw);

    if (!exp) {
        errno = ENOSYS;
        return ENOSYS;
    }
    IBV_EXP_RET_EINVAL_ON_INVALID_COMP_MASK(mw_bind->comp_mask, IBV_EXP_BIND_MW_RESERVED - 1);
    return exp->lib_exp_bind_mw(mw_bind);
}

/* Allocates memory of the device. errno stays as it is if the device has none. */
static inline struct ibv_exp_dm *ibv_exp_alloc_dm(struct ibv_context *context,
                                                  struct ibv_exp_alloc_dm_attr *attr)
{
    struct verbs_context_exp *exp = verbs_get_exp_ctx_op(context, exp_alloc_dm);

    IBV_EXP_RET_NULL_ON_INVALID_COMP_MASK(attr->comp_mask, IBV_EXP_ALLOC_DM_ATTR_RESERVED - 1);
    return exp ? exp->exp_alloc_dm(context, attr) : NULL;
}

static inline int ibv_exp_free_dm(struct ibv_exp_dm *dm)
{
    struct verbs_context_exp *exp = verbs_get_exp_ctx_op(dm->context, exp_free_dm);

    return exp ? exp->exp_free_dm(dm) : ENOSYS;
}

/* Copies between memory of the process and memory of the device. Returns an errno. */
static inline int ibv_exp_memcpy_dm(struct ibv_exp_dm *dm, struct ibv_exp_memcpy_dm_attr *attr)
{
    struct verbs_context_exp *exp = verbs_get_exp_ctx_op(dm->context, exp_memcpy_dm);

    IBV_EXP_RET_EINVAL_ON_INVALID_COMP_MASK(attr->comp_mask, IBV_EXP_DM_CPY_COMP_MASK_RESERVED - 1);
    return exp ? exp->exp_memcpy_dm(dm, attr) : ENOSYS;
}

#endif
