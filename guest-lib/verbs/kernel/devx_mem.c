/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * DevX: the resources of a program's own queues: user memory (umem), doorbell pages (UAR), EQ
 * numbers.
 */
#include <sys/mman.h>
#include "guest-lib/verbs/kernel/devx.h"
#include "guest-lib/verbs/kernel/umem.h"
#include "guest-lib/verbs/kernel/watch.h"

/* -- user memory ------------------------------------------------------------------------------- */

#define MAX_LOG_PAGE 31 /* of CREATE_UMEM */

/* The largest page size for which the memory is a whole number of pages; else 4 KiB, with an offset
 * in the first page. */
static unsigned devx_mem_log_page_of(uintptr_t addr, size_t size, uint64_t allowed)
{
    for (unsigned log = MAX_LOG_PAGE; log > 12; log--) {
        uint64_t page = 1ull << log;

        if ((allowed & page) && addr % page == 0 && size % page == 0) {
            return log;
        }
    }
    return allowed & PCI_PAGE ? 12 : 0;
}

/* memory has the mapping of a dma-buf, or is zeroed. */
static struct mlx5dv_devx_umem *umem_reg(struct ibv_context *ctx, void *addr, size_t size,
                                         uint32_t access, uint64_t page_sizes,
                                         struct hv_umem memory)
{
    const uint32_t known = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                           IBV_ACCESS_REMOTE_READ | IBV_ACCESS_RELAXED_ORDERING;
    struct prm_create_umem_out out[1] = {0};
    struct prm_create_umem_in *in;
    struct prm_umem *mem;
    struct hv_dv_umem *umem;
    uintptr_t start = (uintptr_t)addr;
    size_t in_len, num;
    unsigned log_page;
    int err;

    if ((access & ~known) || size == 0 ||
        ((access & IBV_ACCESS_REMOTE_WRITE) && !(access & IBV_ACCESS_LOCAL_WRITE))) {
        hv_umem_put(&memory);
        errno = EINVAL;
        return NULL;
    }
    err = start + size < start
              ? EFAULT
              : hv_umem_get(hv_context(ctx), addr, size, access & IBV_ACCESS_LOCAL_WRITE, &memory);
    if (err) {
        hv_umem_put(&memory);
        errno = err;
        return NULL;
    }
    log_page = devx_mem_log_page_of(start, size, page_sizes);
    if (!log_page) {
        hv_umem_put(&memory);
        errno = EINVAL;
        return NULL;
    }
    num = ((start + size - 1) >> log_page) - (start >> log_page) + 1;
    in_len = PRM_SIZE(create_umem_in) + num * PRM_SIZE(mtt);
    in = g_malloc0(in_len);
    mem = PRM_PTR(create_umem_in, in, umem);
    PRM_SET(create_umem_in, in, opcode, PRM_CMD_OP_CREATE_UMEM);
    PRM_SET(create_umem_in, in, uid, hv_context(ctx)->uid);
    PRM_SET(umem, mem, num_of_mtt, num);
    PRM_SET(umem, mem, log_page_size, log_page - 12);
    PRM_SET(umem, mem, page_offset, start & ((1ull << log_page) - 1));
    for (size_t i = 0; i < num; i++) {
        uint64_t page = ((start >> log_page) + i) << log_page;

        prm_store64(PRM_PTR_AT(umem, mem, mtt, i),
                    page | 1 | (access & IBV_ACCESS_LOCAL_WRITE ? 2 : 0));
    }
    err = hv_cmd(hv_hca_of(ctx), in, in_len, out, sizeof(out));
    g_free(in);
    if (err) {
        hv_umem_put(&memory);
        errno = err;
        return NULL;
    }
    umem = g_new0(struct hv_dv_umem, 1);
    umem->dv.umem_id = PRM_GET(create_umem_out, out, umem_id);
    umem->context = ctx;
    umem->addr = addr;
    umem->size = size;
    umem->umem = memory;
    umem->handle = hv_handle_add(ctx, HV_HANDLE_UMEM, umem);
    return &umem->dv;
}

struct mlx5dv_devx_umem *hv_dv_devx_umem_reg(struct ibv_context *ctx, void *addr, size_t size,
                                             uint32_t access)
{
    return umem_reg(ctx, addr, size, access, UINT64_MAX, (struct hv_umem){0});
}

struct mlx5dv_devx_umem *hv_dv_devx_umem_reg_ex(struct ibv_context *ctx,
                                                struct mlx5dv_devx_umem_in *in)
{
    struct hv_umem memory = {0};
    void *addr = in->addr;
    int err;

    if (in->comp_mask & ~(uint64_t)MLX5DV_UMEM_MASK_DMABUF) {
        errno = EOPNOTSUPP;
        return NULL;
    }
    if (in->comp_mask & MLX5DV_UMEM_MASK_DMABUF) {
        /* addr is an offset (mlx5dv_devx_umem_reg_ex(3)) */
        err = hv_umem_of_dmabuf(hv_hca_of(ctx), "devx_umem_reg_ex", in->dmabuf_fd,
                                (uintptr_t)in->addr, in->size, &addr, &memory);
        if (err) {
            errno = err;
            return NULL;
        }
    }
    return umem_reg(ctx, addr, in->size, in->access, in->pgsz_bitmap, memory);
}

int uverbs_dereg_umem(struct hv_dv_umem *umem)
{
    struct prm_destroy_umem_in in[1] = {0};
    int err;

    PRM_SET(destroy_umem_in, in, opcode, PRM_CMD_OP_DESTROY_UMEM);
    PRM_SET(destroy_umem_in, in, uid, hv_context(umem->context)->uid);
    PRM_SET(destroy_umem_in, in, umem_id, umem->dv.umem_id);
    err = hv_cmd_simple(hv_hca_of(umem->context), in, sizeof(in));
    if (!err) {
        hv_handle_del(umem->context, umem->handle);
        hv_umem_put(&umem->umem);
    }
    return err;
}

int hv_dv_devx_umem_dereg(struct mlx5dv_devx_umem *dv)
{
    struct hv_dv_umem *umem = DV_CONTAINER(dv, struct hv_dv_umem);
    int err = hv_check_there(hv_hca_of(umem->context));

    err = hv_kernel(err ? err : uverbs_dereg_umem(umem));
    if (!err) {
        g_free(umem);
    }
    return err;
}

struct place {
    uint32_t umem_id;
    uint64_t offset;
    size_t size;
    void *at;
};

static bool umem_has(void *obj, void *arg)
{
    const struct hv_dv_umem *umem = obj;
    struct place *place = arg;

    if (umem->dv.umem_id != place->umem_id) {
        return false;
    }
    if (place->size <= umem->size && place->offset <= umem->size - place->size &&
        place->offset % 4 == 0) {
        place->at = (char *)umem->addr + place->offset;
    }
    return true;
}

/* All contexts of a file share its umems, because the device has one user for each file. */
void *hv_dv_umem_at(struct ibv_context *ctx, uint32_t umem_id, uint64_t offset, size_t size)
{
    struct place place = {umem_id, offset, size, NULL};

    hv_handle_find(ctx, HV_HANDLE_UMEM, umem_has, &place);
    return place.at;
}

/* -- doorbell pages ---------------------------------------------------------------------------- */

struct mlx5dv_devx_uar *hv_dv_devx_alloc_uar(struct ibv_context *ctx, uint32_t flags)
{
    struct hv_dv_uar *uar;
    void *page;
    int err;

    /* besides the kernel's types there is one of the library, for a page that is not shared */
    if (flags & ~(MLX5DV_UAR_ALLOC_TYPE_NC | 1u << 31)) {
        errno = EOPNOTSUPP;
        return NULL;
    }
    uar = g_new0(struct hv_dv_uar, 1);
    err = hv_uar_alloc(hv_context(ctx), &uar->uar);
    if (err) {
        g_free(uar);
        errno = err;
        return NULL;
    }
    page = hv_uar_mmap(hv_context(ctx), uar->uar.page); /* memory: see watch.c */
    if (!page) {
        err = errno;
        hv_uar_free(hv_context(ctx), &uar->uar);
        g_free(uar);
        errno = err;
        return NULL;
    }
    uar->context = ctx;
    uar->handle = hv_handle_add(ctx, HV_HANDLE_UAR, uar);
    uar->dv.base_addr = page;
    uar->dv.reg_addr = (char *)page + PRM_OFFSET(uar, blue_flame);
    uar->dv.page_id = uar->uar.page;
    uar->dv.mmap_off = hv_uar_offset(uar->uar.page);
    return &uar->dv;
}

/* The page that the program writes to stays mapped. */
int uverbs_free_uar(struct hv_dv_uar *uar)
{
    hv_uar_free(hv_context(uar->context), &uar->uar);
    hv_handle_del(uar->context, uar->handle);
    return 0;
}

void hv_dv_devx_free_uar(struct mlx5dv_devx_uar *dv)
{
    struct hv_dv_uar *uar = DV_CONTAINER(dv, struct hv_dv_uar);

    uverbs_free_uar(uar);
    munmap(dv->base_addr, PCI_PAGE);
    g_free(uar);
}

int hv_dv_devx_query_eqn(struct ibv_context *ctx, uint32_t vector, uint32_t *eqn)
{
    if (vector >= (uint32_t)ctx->num_comp_vectors) {
        return hv_kernel(ENOENT); /* mlx5_comp_eqn_get() */
    }
    *eqn = hv_comp_eqn(hv_hca_of(ctx), vector);
    return 0;
}
