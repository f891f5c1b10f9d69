/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory regions as a program sees them, and the kinds of memory that the device does not
 * support. */
#include <sys/mman.h>
#include "guest-lib/verbs/kernel/shared_mr.h"
#include "guest-lib/verbs/user/user.h"

HV_EXPORT struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length,
                                          uint64_t iova, unsigned int access)
{
    struct hv_mr *mr = calloc(1, sizeof(*mr));

    if (!(access & IBV_ACCESS_ON_DEMAND)) {
        hv_fork_note_memory();
    }
    if (!mr) {
        return NULL;
    }
    mr->ibv = (struct ibv_mr){.context = pd->context, .pd = pd, .addr = addr, .length = length};
    mr->iova = iova;
    mr->access = access;
    mr->kind = HV_MR_USER;
    mr->pd = hv_real_pd(pd);
    if (hv_kernel(uverbs_reg_mr(mr, pd, addr, length, iova, access))) {
        free(mr);
        return NULL;
    }
    return &mr->ibv;
}

#undef ibv_reg_mr
HV_EXPORT struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
    return ibv_reg_mr_iova2(pd, addr, length, (uintptr_t)addr, (unsigned)access);
}

#undef ibv_reg_mr_iova
HV_EXPORT struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length,
                                         uint64_t iova, int access)
{
    return ibv_reg_mr_iova2(pd, addr, length, iova, (unsigned)access);
}

HV_EXPORT struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length,
                                           uint64_t iova, int fd, int access)
{
    struct hv_mr *mr = calloc(1, sizeof(*mr));

    if (!mr) {
        return NULL;
    }
    mr->ibv = (struct ibv_mr){.context = pd->context,
                              .pd = pd,
                              .addr = (void *)(uintptr_t)offset, /* as rdma-core */
                              .length = length};
    mr->iova = iova;
    mr->access = (unsigned)access;
    mr->kind = HV_MR_DMABUF;
    mr->pd = hv_real_pd(pd);
    if (hv_kernel(uverbs_reg_dmabuf_mr(mr, pd, offset, length, iova, fd, (unsigned)access))) {
        free(mr);
        return NULL;
    }
    return &mr->ibv;
}

/* Whether the flags and arguments of the change are valid. The memory is not checked yet. */
static bool mr_rereg_args_ok(const struct hv_mr *mr, int flags, const void *addr, size_t length,
                             int access)
{
    if ((mr->kind != HV_MR_USER && mr->kind != HV_MR_DM) ||
        (flags & ~IBV_REREG_MR_FLAGS_SUPPORTED)) {
        return false;
    }
    if ((flags & IBV_REREG_MR_CHANGE_TRANSLATION) && (!length || !addr)) {
        return false;
    }
    return !access || (flags & IBV_REREG_MR_CHANGE_ACCESS);
}

HV_EXPORT int ibv_rereg_mr(struct ibv_mr *ibmr, int flags, struct ibv_pd *pd, void *addr,
                           size_t length, int access)
{
    if (!mr_rereg_args_ok(hv_mr(ibmr), flags, addr, length, access)) {
        errno = EINVAL;
        return IBV_REREG_MR_ERR_INPUT;
    }
    if (hv_kernel(uverbs_rereg_mr(hv_mr(ibmr), flags, pd, addr, length, (unsigned)access))) {
        return IBV_REREG_MR_ERR_CMD;
    }
    if (flags & IBV_REREG_MR_CHANGE_PD) {
        ibmr->pd = pd;
    }
    if (flags & IBV_REREG_MR_CHANGE_TRANSLATION) {
        ibmr->addr = addr;
        ibmr->length = length;
    }
    return 0;
}

HV_EXPORT int ibv_dereg_mr(struct ibv_mr *ibmr)
{
    struct hv_mr *mr = hv_mr(ibmr);

    if (mr->kind == HV_MR_USER || mr->kind == HV_MR_DMABUF || mr->kind == HV_MR_DM ||
        mr->kind == HV_MR_IMPORTED || mr->kind == HV_MR_PHYSICAL || mr->kind == HV_MR_KEYS) {
        int err = hv_kernel(uverbs_dereg_mr(mr));

        if (err) {
            return err;
        }
    }
    if (mr->kind != HV_MR_IMPORTED) {
        hv_mr_free_memory(mr);
    }
    free(mr);
    return 0;
}

void hv_mr_free_memory(struct hv_mr *mr)
{
    if (mr->allocated) {
        munmap(mr->allocated, mr->allocated_len);
    }
    hv_shared_free(mr->shared);
}

HV_EXPORT struct ibv_mr *ibv_import_mr(struct ibv_pd *pd, uint32_t mr_handle)
{
    struct hv_mr *mr = calloc(1, sizeof(*mr)), *owner;
    int err;

    if (!mr) {
        return NULL;
    }
    owner = hv_handle_get(pd->context, HV_HANDLE_MR, mr_handle, &err);
    err = hv_is_removed(hv_hca_of(pd->context)) ? EIO : err;
    if (hv_kernel(err)) {
        free(mr);
        return NULL;
    }
    mr->ibv = owner->ibv;
    mr->iova = owner->iova;
    mr->access = owner->access;
    mr->ibv.context = pd->context;
    mr->ibv.pd = pd;
    mr->ibv.addr = NULL;
    mr->kind = HV_MR_IMPORTED;
    return &mr->ibv;
}

HV_EXPORT void ibv_unimport_mr(struct ibv_mr *mr)
{
    free(mr);
}

/* A region of all addresses, to which writes are discarded. libmlx5 uses the device's dump-fill key
 * for it, and has no other method. */
static struct ibv_mr *alloc_null_mr(struct ibv_pd *pd)
{
    struct hv_hca *hca = hv_hca_of(pd->context);
    struct hv_mr *mr;

    if (!HV_CAP(hca, dump_fill_mkey)) {
        errno = ENOTSUP;
        return NULL;
    }
    mr = calloc(1, sizeof(*mr));
    if (!mr) {
        return NULL;
    }
    mr->ibv = (struct ibv_mr){
        .context = pd->context,
        .pd = pd,
        .length = SIZE_MAX,
        .lkey = hv_drv(hca)->dump_fill_mkey,
    };
    mr->kind = HV_MR_NULL;
    return &mr->ibv;
}

static int advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
                     struct ibv_sge *sg_list, uint32_t num_sge)
{
    return hv_kernel(uverbs_advise_mr(pd, advice, flags, sg_list, num_sge));
}

void hv_mr_ops(struct verbs_context *ops)
{
    ops->alloc_null_mr = alloc_null_mr;
    ops->advise_mr = advise_mr;
}
