/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls of erasure coding.
 */
#ifndef HCASIM_INFINIBAND_EXP_CALLS_EC_H
#define HCASIM_INFINIBAND_EXP_CALLS_EC_H

#include "context.h"

static inline struct ibv_exp_ec_calc *ibv_exp_alloc_ec_calc(struct ibv_pd *pd,
                                                            struct ibv_exp_ec_calc_init_attr *attr)
{
    struct verbs_context_exp *exp = verbs_get_exp_ctx_op(pd->context, alloc_ec_calc);

    if (!exp) {
        errno = ENOSYS;
        return NULL;
    }
    IBV_EXP_RET_NULL_ON_INVALID_COMP_MASK(attr->comp_mask, IBV_EXP_EC_CALC_INIT_ATTR_RESERVED - 1);
    return exp->alloc_ec_calc(pd, attr);
}

static inline void ibv_exp_dealloc_ec_calc(struct ibv_exp_ec_calc *calc)
{
    struct verbs_context_exp *exp = verbs_get_exp_ctx_op(calc->pd->context, dealloc_ec_calc);

    if (exp) {
        exp->dealloc_ec_calc(calc);
    } else {
        errno = ENOSYS;
    }
}

/*
 * Computes the blocks of code from the blocks of data. The asynchronous calls return at once and
 * call comp->done() at the end. All return 0 or an error.
 */
static inline int ibv_exp_ec_encode_async(struct ibv_exp_ec_calc *calc, struct ibv_exp_ec_mem *mem,
                                          struct ibv_exp_ec_comp *comp)
{
    struct verbs_context_exp *exp = verbs_get_exp_ctx_op(calc->pd->context, ec_encode_async);

    return exp ? exp->ec_encode_async(calc, mem, comp) : ENOSYS;
}

static inline int ibv_exp_ec_encode_sync(struct ibv_exp_ec_calc *calc, struct ibv_exp_ec_mem *mem)
{
    struct verbs_context_exp *exp = verbs_get_exp_ctx_op(calc->pd->context, ec_encode_sync);

    return exp ? exp->ec_encode_sync(calc, mem) : ENOSYS;
}

/* Computes lost blocks: erasures has a byte for each of the k + m blocks, not 0 if it is lost. */
static inline int ibv_exp_ec_decode_async(struct ibv_exp_ec_calc *calc, struct ibv_exp_ec_mem *mem,
                                          uint8_t *erasures, uint8_t *decode_matrix,
                                          struct ibv_exp_ec_comp *comp)
{
    struct verbs_context_exp *exp = verbs_get_exp_ctx_op(calc->pd->context, ec_decode_async);

    return exp ? exp->ec_decode_async(calc, mem, erasures, decode_matrix, comp) : ENOSYS;
}

static inline int ibv_exp_ec_decode_sync(struct ibv_exp_ec_calc *calc, struct ibv_exp_ec_mem *mem,
                                         uint8_t *erasures, uint8_t *decode_matrix)
{
    struct verbs_context_exp *exp = verbs_get_exp_ctx_op(calc->pd->context, ec_decode_sync);

    return exp ? exp->ec_decode_sync(calc, mem, erasures, decode_matrix) : ENOSYS;
}

/*
 * Computes blocks of code anew for changed blocks of data: mem's data are the old blocks of code,
 * then the old and the new block of each change. The maps have a byte for each block.
 */
static inline int ibv_exp_ec_update_async(struct ibv_exp_ec_calc *calc, struct ibv_exp_ec_mem *mem,
                                          uint8_t *data_updates, uint8_t *code_updates,
                                          struct ibv_exp_ec_comp *comp)
{
    struct verbs_context_exp *exp = verbs_get_exp_ctx_op(calc->pd->context, ec_update_async);

    return exp ? exp->ec_update_async(calc, mem, data_updates, code_updates, comp) : -ENOSYS;
}

static inline int ibv_exp_ec_update_sync(struct ibv_exp_ec_calc *calc, struct ibv_exp_ec_mem *mem,
                                         uint8_t *data_updates, uint8_t *code_updates)
{
    struct verbs_context_exp *exp = verbs_get_exp_ctx_op(calc->pd->context, ec_update_sync);

    return exp ? exp->ec_update_sync(calc, mem, data_updates, code_updates) : -ENOSYS;
}

/* Ends up to n calculations of a calc with polling. Returns how many. */
static inline int ibv_exp_ec_poll(struct ibv_exp_ec_calc *calc, int n)
{
    struct verbs_context_exp *exp = verbs_get_exp_ctx_op(calc->pd->context, ec_poll);

    return exp ? exp->ec_poll(calc, n) : ENOSYS;
}

/* Sends the blocks of data, computes the blocks of code, and sends them. */
static inline int ibv_exp_ec_encode_send(struct ibv_exp_ec_calc *calc, struct ibv_exp_ec_mem *mem,
                                         struct ibv_exp_ec_stripe *data_stripes,
                                         struct ibv_exp_ec_stripe *code_stripes)
{
    struct verbs_context_exp *exp = verbs_get_exp_ctx_op(calc->pd->context, ec_encode_send);

    return exp ? exp->ec_encode_send(calc, mem, data_stripes, code_stripes) : -ENOSYS;
}

#endif
