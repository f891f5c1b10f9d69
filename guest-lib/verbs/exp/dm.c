/* SPDX-License-Identifier: BSD-2-Clause */
/* Device memory of experimental verbs (libmlx5: mlx5_exp_alloc_dm(), mlx5_exp_memcpy_dm()). */
#include <string.h>
#include "guest-lib/verbs/dv.h"
#include "guest-lib/verbs/exp/mem.h"

static struct ibv_exp_dm *exp_alloc_dm(struct ibv_context *context,
                                       struct ibv_exp_alloc_dm_attr *attr)
{
    struct ibv_alloc_dm_attr plain = {.length = attr->length};
    struct mlx5dv_alloc_dm_attr memic = {.type = MLX5DV_DM_TYPE_MEMIC};
    struct hv_exp_dm *exp = calloc(1, sizeof(*exp));

    if (!exp) {
        return NULL;
    }
    exp->dm = hv_dv_alloc_dm(context, &plain, &memic);
    if (!exp->dm) {
        free(exp);
        return NULL;
    }
    exp->exp.context = context;
    exp->exp.handle = exp->dm->handle;
    return &exp->exp;
}

static int exp_free_dm(struct ibv_exp_dm *exp)
{
    int err = hv_context(exp->context)->ibv.free_dm(hv_exp_dm(exp));

    if (!err) {
        free(exp);
    }
    return err;
}

/* A card takes words of 4 bytes. Of the last word, the bytes behind the copy stay as they are. */
static void exp_copy_to_dm(uint8_t *to, const uint8_t *from, size_t length)
{
    uint32_t word;

    for (size_t part; length; to += part, from += part, length -= part) {
        part = MIN(length, sizeof(word));
        word = part < sizeof(word) ? __atomic_load_n((uint32_t *)(void *)to, __ATOMIC_RELAXED) : 0;
        memcpy(&word, from, part);
        __atomic_store_n((uint32_t *)(void *)to, word, __ATOMIC_RELAXED);
    }
}

static void exp_copy_from_dm(uint8_t *to, const uint8_t *from, size_t length)
{
    uint32_t word;

    for (size_t part; length; to += part, from += part, length -= part) {
        part = MIN(length, sizeof(word));
        word = __atomic_load_n((const uint32_t *)(const void *)from, __ATOMIC_RELAXED);
        memcpy(to, &word, part);
    }
}

static int exp_memcpy_dm(struct ibv_exp_dm *exp, struct ibv_exp_memcpy_dm_attr *attr)
{
    const struct hv_dm *dm = hv_dm(hv_exp_dm(exp));
    uint8_t *at = (uint8_t *)dm->map + attr->dm_offset;

    if (attr->dm_offset > dm->length || attr->length > dm->length - attr->dm_offset ||
        attr->dm_offset % sizeof(uint32_t)) {
        return EINVAL;
    }
    if (attr->memcpy_dir == IBV_EXP_DM_CPY_TO_DEVICE) {
        exp_copy_to_dm(at, attr->host_addr, attr->length);
    } else {
        exp_copy_from_dm(attr->host_addr, at, attr->length);
    }
    return 0;
}

void hv_exp_dm_ops(struct verbs_context_exp *ops)
{
    ops->exp_alloc_dm = exp_alloc_dm;
    ops->exp_free_dm = exp_free_dm;
    ops->exp_memcpy_dm = exp_memcpy_dm;
}
