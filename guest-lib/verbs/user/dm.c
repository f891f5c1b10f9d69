/* SPDX-License-Identifier: BSD-2-Clause */
/* Device memory, as libmlx5 gives it to a program. */
#include <sys/mman.h>
#include "guest-lib/verbs/dv.h"
#include "guest-lib/verbs/user/user.h"

/* As MLX5_DM_ALLOWED_ACCESS. The kernel refuses the optional rights, though. */
#define DM_ACCESS                                                                                  \
    (unsigned)(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE |         \
               IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_ZERO_BASED | IBV_ACCESS_OPTIONAL_RANGE)

/* Finds the words that a copy of the program is about; a card has no shorter ones. 0 or errno. */
static int dm_words(struct ibv_dm *dm, uint64_t offset, size_t length, uint32_t **at)
{
    if (offset + length > hv_dm(dm)->length || offset + length < offset) {
        return EFAULT;
    }
    *at = (uint32_t *)((uint8_t *)hv_dm(dm)->map + offset);
    return (length | offset) & 3 ? EINVAL : 0;
}

static int dm_copy_to(struct ibv_dm *dm, uint64_t offset, const void *from, size_t length)
{
    uint32_t *at, word;
    int err = dm_words(dm, offset, length, &at);

    for (size_t i = 0; !err && i < length; i += sizeof(word)) {
        memcpy(&word, (const uint8_t *)from + i, sizeof(word));
        __atomic_store_n(at++, word, __ATOMIC_RELAXED);
    }
    return err;
}

static int dm_copy_from(void *to, struct ibv_dm *dm, uint64_t offset, size_t length)
{
    uint32_t *at, word;
    int err = dm_words(dm, offset, length, &at);

    for (size_t i = 0; !err && i < length; i += sizeof(word)) {
        word = __atomic_load_n(at++, __ATOMIC_RELAXED);
        memcpy((uint8_t *)to + i, &word, sizeof(word));
    }
    return err;
}

static struct hv_dm *dm_new(struct ibv_context *context)
{
    struct hv_dm *dm = calloc(1, sizeof(*dm));

    if (dm) {
        dm->ibv.context = context;
        dm->ibv.comp_mask = IBV_DM_MASK_HANDLE;
        dm->ibv.memcpy_to_dm = dm_copy_to;
        dm->ibv.memcpy_from_dm = dm_copy_from;
    }
    return dm;
}

static void dm_free_own(struct hv_dm *dm)
{
    if (dm->map) {
        munmap(dm->map, dm->length);
    }
    free(dm);
}

/* Memory for steering does not exist: no flow table can be owned by software. */
struct ibv_dm *hv_dv_alloc_dm(struct ibv_context *ctx, struct ibv_alloc_dm_attr *attr,
                              struct mlx5dv_alloc_dm_attr *dv)
{
    bool is_memic = dv->type == MLX5DV_DM_TYPE_MEMIC;
    struct hv_dm *dm;
    int err;

    if (attr->comp_mask || dv->comp_mask ||
        (is_memic && attr->length > HV_DM_CAP(hv_hca_of(ctx), max_memic_size))) {
        errno = EINVAL;
        return NULL;
    }
    if (!is_memic) {
        errno = EOPNOTSUPP;
        return NULL;
    }
    dm = dm_new(ctx);
    if (!dm) {
        return NULL;
    }
    dm->length = attr->length;
    if (hv_kernel(uverbs_alloc_dm(dm, attr->log_align_req))) {
        free(dm);
        return NULL;
    }
    err = uverbs_mmap_dm(dm);
    if (hv_kernel(err)) {
        uverbs_free_dm(&dm->ibv);
        free(dm);
        return NULL;
    }
    return &dm->ibv;
}

static struct ibv_dm *alloc_dm(struct ibv_context *context, struct ibv_alloc_dm_attr *attr)
{
    return hv_dv_alloc_dm(context, attr,
                          &(struct mlx5dv_alloc_dm_attr){.type = MLX5DV_DM_TYPE_MEMIC});
}

static int free_dm(struct ibv_dm *dm)
{
    int err = hv_kernel(uverbs_free_dm(dm));

    if (!err) {
        dm_free_own(hv_dm(dm));
    }
    return err;
}

HV_EXPORT struct ibv_dm *ibv_import_dm(struct ibv_context *context, uint32_t dm_handle)
{
    struct hv_dm *dm = dm_new(context);
    int err;

    if (!dm) {
        return NULL;
    }
    dm->imported = true;
    dm->ibv.comp_mask = 0; /* as libmlx5 leaves it */
    err = uverbs_query_dm(dm, dm_handle);
    err = err ? err : uverbs_mmap_dm(dm);
    if (hv_kernel(err)) {
        free(dm);
        return NULL;
    }
    return &dm->ibv;
}

HV_EXPORT void ibv_unimport_dm(struct ibv_dm *dm)
{
    dm_free_own(hv_dm(dm));
}

static struct ibv_mr *reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t dm_offset,
                                size_t length, unsigned access)
{
    struct hv_mr *mr;

    if ((access & ~DM_ACCESS) || !(access & IBV_ACCESS_ZERO_BASED)) {
        errno = EINVAL;
        return NULL;
    }
    mr = calloc(1, sizeof(*mr));
    if (!mr) {
        return NULL;
    }
    mr->ibv = (struct ibv_mr){.context = pd->context, .pd = pd, .length = length};
    mr->access = access;
    mr->kind = HV_MR_DM;
    mr->pd = hv_real_pd(pd);
    if (hv_kernel(uverbs_reg_dm_mr(mr, pd, dm, dm_offset, length, access))) {
        free(mr);
        return NULL;
    }
    return &mr->ibv;
}

void *hv_dv_dm_map_op_addr(struct ibv_dm *dm, uint8_t op)
{
    void *addr = NULL;

    return hv_kernel(uverbs_map_dm_op(dm, op, &addr)) ? NULL : addr;
}

void hv_dm_ops(struct verbs_context *ops)
{
    ops->alloc_dm = alloc_dm;
    ops->free_dm = free_dm;
    ops->reg_dm_mr = reg_dm_mr;
}
