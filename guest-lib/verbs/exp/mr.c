/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory regions of experimental verbs: with memory that the library allocates or that processes
 * share, of bus addresses, with tunneled atomics, and keys of keys. Checks and errnos are those of
 * the old libraries and of MLNX_OFED's kernel (libmlx5: mlx5_exp_reg_mr(), uverbs_cmd_exp.c);
 * shared regions, which its last version has no more, are those of the manual (docs/adr/0032).
 */
#include <sys/mman.h>
#include "guest-lib/verbs/exp/mem.h"
#include "guest-lib/verbs/kernel/shared_mr.h"

#define SHARED_FLAGS                                                                               \
    (IBV_EXP_ACCESS_SHARED_MR_USER_READ | IBV_EXP_ACCESS_SHARED_MR_USER_WRITE |                    \
     IBV_EXP_ACCESS_SHARED_MR_GROUP_READ | IBV_EXP_ACCESS_SHARED_MR_GROUP_WRITE |                  \
     IBV_EXP_ACCESS_SHARED_MR_OTHER_READ | IBV_EXP_ACCESS_SHARED_MR_OTHER_WRITE)

/* As MLX5_DM_ALLOWED_ACCESS. */
#define DM_ACCESS                                                                                  \
    (IBV_EXP_ACCESS_LOCAL_WRITE | IBV_EXP_ACCESS_REMOTE_WRITE | IBV_EXP_ACCESS_REMOTE_READ |       \
     IBV_EXP_ACCESS_REMOTE_ATOMIC)

/* The rights that go to the kernel as they are (KEEP_ACCESS_FLAGS). */
#define PLAIN_ACCESS                                                                               \
    (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |                   \
     IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED | IBV_ACCESS_ON_DEMAND)

static unsigned exp_mr_access(uint64_t exp_access)
{
    return (unsigned)(exp_access & PLAIN_ACCESS) |
           (exp_access & IBV_EXP_ACCESS_ON_DEMAND ? IBV_ACCESS_ON_DEMAND : 0) |
           (exp_access & IBV_EXP_ACCESS_TUNNELED_ATOMIC ? HV_ACCESS_TUNNELED : 0);
}

/* The mode of a file with the permissions of a shared region. */
static unsigned exp_mr_mode(uint64_t exp_access)
{
    return (exp_access & IBV_EXP_ACCESS_SHARED_MR_USER_READ ? 0400 : 0) |
           (exp_access & IBV_EXP_ACCESS_SHARED_MR_USER_WRITE ? 0200 : 0) |
           (exp_access & IBV_EXP_ACCESS_SHARED_MR_GROUP_READ ? 0040 : 0) |
           (exp_access & IBV_EXP_ACCESS_SHARED_MR_GROUP_WRITE ? 0020 : 0) |
           (exp_access & IBV_EXP_ACCESS_SHARED_MR_OTHER_READ ? 0004 : 0) |
           (exp_access & IBV_EXP_ACCESS_SHARED_MR_OTHER_WRITE ? 0002 : 0);
}

/* -- memory that the library allocates --------------------------------------------------------- */

static bool exp_mr_allocates(const struct ibv_exp_reg_mr_in *in)
{
    return (!in->addr && in->exp_access & IBV_EXP_ACCESS_ALLOCATE_MR) ||
           (in->comp_mask & IBV_EXP_REG_MR_CREATE_FLAGS &&
            in->create_flags & IBV_EXP_REG_MR_CREATE_CONTIG);
}

/* Allocates the memory of a region, at the address that the program asks for, if it does. The pages
 * of a contiguous allocation replace what is there, as in the old library. Returns 0 or errno. */
static int exp_mr_allocate(struct hv_mr *mr, const struct ibv_exp_reg_mr_in *in)
{
    struct hv_hca *hca = hv_hca_of(in->pd->context);
    uintptr_t in_page = (uintptr_t)in->addr & (PCI_PAGE - 1);
    uint8_t *at = (uint8_t *)in->addr - in_page;
    size_t len = in->length > SIZE_MAX / 2 ? 0 : hv_whole_pages(in_page + in->length);
    bool fixed = in->addr != NULL;
    int err;

    if (!in->length || !len) {
        return hv_refuse(hca, EINVAL, "reg_mr: length is %zu, so no memory can be allocated",
                         in->length);
    }
    if (in->exp_access & SHARED_FLAGS) {
        err = hv_shared_new(hca, len, exp_mr_mode(in->exp_access), fixed ? at : NULL, &mr->shared);
        if (err) {
            return err;
        }
        at = mr->shared->addr;
    } else {
        at = mmap(fixed ? at : NULL, len, PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS | (fixed ? MAP_FIXED : 0), -1, 0);
        if (at == MAP_FAILED) {
            return hv_refuse(hca, ENOMEM, "reg_mr: no memory for %zu bytes", in->length);
        }
        mr->allocated = at;
        mr->allocated_len = len;
    }
    mr->ibv.addr = at + in_page;
    return 0;
}

/* -- registration ------------------------------------------------------------------------------ */

/* Whether what the program asks for is well formed: 0 or errno. */
static int exp_mr_check(const struct ibv_exp_reg_mr_in *in)
{
    struct hv_hca *hca = hv_hca_of(in->pd->context);

    if (in->exp_access & IBV_EXP_ACCESS_ALLOCATE_MR && in->addr) {
        return hv_refuse(hca, EINVAL, "reg_mr: addr must be NULL with IBV_EXP_ACCESS_ALLOCATE_MR");
    }
    if (in->comp_mask >= IBV_EXP_REG_MR_RESERVED || in->exp_access >= IBV_EXP_ACCESS_RESERVED) {
        return hv_refuse(hca, EINVAL, "reg_mr: comp_mask or exp_access has unknown bits");
    }
    if (in->comp_mask & IBV_EXP_REG_MR_DM && (!in->dm || in->exp_access & ~(uint64_t)DM_ACCESS)) {
        return hv_refuse(hca, EINVAL,
                         "reg_mr: dm is NULL, or exp_access has other rights than device memory "
                         "can have");
    }
    if (in->exp_access & SHARED_FLAGS && !exp_mr_allocates(in)) {
        return hv_refuse(hca, EINVAL,
                         "reg_mr: only memory that the library allocates can be shared "
                         "(IBV_EXP_ACCESS_ALLOCATE_MR or IBV_EXP_REG_MR_CREATE_CONTIG)");
    }
    return 0;
}

/* The kernel's part: 0 or errno. */
static int exp_mr_register(struct hv_mr *mr, const struct ibv_exp_reg_mr_in *in)
{
    void *addr = mr->ibv.addr;

    if (in->exp_access & IBV_EXP_ACCESS_PHYSICAL_ADDR) {
        mr->kind = HV_MR_PHYSICAL;
        return uverbs_reg_physical_mr(mr, in->pd, (uintptr_t)addr, in->length, mr->access);
    }
    if (in->exp_access & IBV_EXP_ACCESS_NO_RDMA && mr->shared) {
        mr->kind = HV_MR_NO_RDMA;
        mr->ibv.handle = mr->shared->number;
        return 0;
    }
    return uverbs_reg_mr(mr, in->pd, addr, in->length, (uintptr_t)addr, mr->access);
}

/* From now on the program knows the region by the number that other processes use. */
static void exp_mr_show_number(struct hv_mr *mr)
{
    if (mr->shared && mr->kind != HV_MR_NO_RDMA) {
        mr->own_handle = mr->ibv.handle;
        mr->ibv.handle = mr->shared->number;
    }
}

static struct hv_mr *exp_mr_new(struct ibv_pd *pd, void *addr, size_t length, uint64_t exp_access)
{
    struct hv_mr *mr = calloc(1, sizeof(*mr));

    if (mr) {
        mr->ibv = (struct ibv_mr){.context = pd->context, .pd = pd, .addr = addr, .length = length};
        mr->access = exp_mr_access(exp_access);
        mr->kind = HV_MR_USER;
        mr->pd = hv_real_pd(pd);
    }
    return mr;
}

/* A region of a part of device memory. Its addresses begin at 0, and addr is the place in the
 * memory. */
static struct ibv_mr *exp_reg_dm_mr(const struct ibv_exp_reg_mr_in *in)
{
    struct ibv_dm *dm = hv_exp_dm(in->dm);
    uint64_t offset = (uintptr_t)in->addr;
    struct ibv_mr *mr = NULL;

    if (offset > hv_dm(dm)->length || in->length > hv_dm(dm)->length - offset) {
        errno = EFAULT;
    } else {
        mr = hv_context(in->pd->context)
                 ->ibv.reg_dm_mr(in->pd, dm, offset, in->length,
                                 exp_mr_access(in->exp_access) | IBV_ACCESS_ZERO_BASED);
    }
    if (mr) {
        mr->addr = in->addr;
    }
    return mr;
}

static int exp_prefetch_mr(struct ibv_mr *ibmr, struct ibv_exp_prefetch_attr *attr);

static struct ibv_mr *exp_reg_mr(struct ibv_exp_reg_mr_in *in)
{
    struct hv_mr *mr;
    int err = exp_mr_check(in);

    if (err) {
        errno = err;
        return NULL;
    }
    if (in->comp_mask & IBV_EXP_REG_MR_DM) {
        return exp_reg_dm_mr(in);
    }
    mr = exp_mr_new(in->pd, in->addr, in->length, in->exp_access);
    if (!mr) {
        return NULL;
    }
    err = exp_mr_allocates(in) ? exp_mr_allocate(mr, in) : 0;
    if (!err && !(in->exp_access & (IBV_EXP_ACCESS_ON_DEMAND | IBV_EXP_ACCESS_PHYSICAL_ADDR))) {
        hv_fork_note_memory();
    }
    mr->iova = (uintptr_t)mr->ibv.addr;
    err = err ? err : exp_mr_register(mr, in);
    if (hv_kernel(err)) {
        hv_mr_free_memory(mr);
        free(mr);
        return NULL;
    }
    exp_mr_show_number(mr);
    in->addr = mr->ibv.addr;
    if (in->exp_access & IBV_EXP_ACCESS_RELAXED && in->exp_access & IBV_EXP_ACCESS_ON_DEMAND) {
        /* the pages come now, as in the old library; that they could not come is no error */
        exp_prefetch_mr(
            &mr->ibv,
            &(struct ibv_exp_prefetch_attr){
                .flags = mr->access & IBV_ACCESS_LOCAL_WRITE ? IBV_EXP_PREFETCH_WRITE_ACCESS : 0,
                .addr = in->addr,
                .length = in->length,
            });
    }
    return &mr->ibv;
}

/* "it expects not to exceed the given permissions when the original MR was created" (manual of
 * ibv_exp_reg_shared_mr()) */
static struct ibv_mr *exp_reg_shared_mr(struct ibv_exp_reg_shared_mr_in *in)
{
    const uint64_t rights =
        PLAIN_ACCESS & ~(unsigned)(IBV_ACCESS_ZERO_BASED | IBV_ACCESS_ON_DEMAND);
    struct hv_hca *hca = hv_hca_of(in->pd->context);
    struct hv_mr *mr;
    int err = 0;

    if (in->comp_mask || in->exp_access & ~(rights | IBV_EXP_ACCESS_NO_RDMA)) {
        errno = hv_refuse(hca, EINVAL,
                          "reg_shared_mr: comp_mask is not 0, or exp_access has unknown bits");
        return NULL;
    }
    mr = exp_mr_new(in->pd, NULL, 0, in->exp_access);
    if (!mr) {
        return NULL;
    }
    err = hv_shared_open(hca, in->mr_handle, mr->access & ~(unsigned)IBV_ACCESS_REMOTE_READ,
                         in->addr, &mr->shared);
    if (!err) {
        struct ibv_exp_reg_mr_in reg = {
            .pd = in->pd, .length = mr->shared->length, .exp_access = in->exp_access};

        mr->ibv.addr = mr->shared->addr;
        mr->ibv.length = mr->shared->length;
        mr->iova = (uintptr_t)mr->ibv.addr;
        hv_fork_note_memory();
        err = exp_mr_register(mr, &reg);
    }
    if (hv_kernel(err)) {
        hv_mr_free_memory(mr);
        free(mr);
        return NULL;
    }
    exp_mr_show_number(mr);
    return &mr->ibv;
}

/* The library's own call of a driver. */
static int exp_dereg_mr(struct ibv_mr *ibmr, struct ibv_exp_dereg_out *out)
{
    const struct hv_mr *mr = hv_mr(ibmr);

    out->need_dofork = mr->kind == HV_MR_USER && !mr->allocated && !mr->shared && !mr->umem.odp;
    return ibv_dereg_mr(ibmr);
}

static int exp_prefetch_mr(struct ibv_mr *ibmr, struct ibv_exp_prefetch_attr *attr)
{
    struct ibv_sge sge = {.addr = (uintptr_t)attr->addr, .lkey = ibmr->lkey};
    enum ibv_advise_mr_advice advice = attr->flags & IBV_EXP_PREFETCH_WRITE_ACCESS
                                           ? IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE
                                           : IBV_ADVISE_MR_ADVICE_PREFETCH;
    uint64_t start = (uintptr_t)ibmr->addr, left = attr->length;
    int err = 0;

    if (attr->comp_mask >= IBV_EXP_PREFETCH_MR_RESERVED ||
        attr->flags & ~(uint32_t)IBV_EXP_PREFETCH_WRITE_ACCESS ||
        !(hv_mr(ibmr)->access & IBV_ACCESS_ON_DEMAND)) {
        return EINVAL;
    }
    if (sge.addr < start || sge.addr - start > ibmr->length ||
        left > ibmr->length - (sge.addr - start)) {
        return EFAULT;
    }
    while (!err && left) {
        sge.length = (uint32_t)MIN(left, 1u << 30);
        err = uverbs_advise_mr(ibmr->pd, advice, 0, &sge, 1);
        sge.addr += sge.length;
        left -= sge.length;
    }
    return hv_kernel(err);
}

/* -- keys of keys ------------------------------------------------------------------------------ */

static struct ibv_mr *exp_create_mr(struct ibv_exp_create_mr_in *in)
{
    struct hv_hca *hca = hv_hca_of(in->pd->context);
    bool equal = in->attr.create_flags == IBV_EXP_MR_FIXED_BUFFER_SIZE;
    struct hv_mr *mr;

    if (in->attr.create_flags & IBV_EXP_MR_SIGNATURE_EN) {
        errno = hv_refuse(hca, EOPNOTSUPP, "create_mr: experimental verbs have no signatures");
        return NULL;
    }
    if (!equal && in->attr.create_flags != IBV_EXP_MR_INDIRECT_KLMS) {
        errno = hv_refuse(hca, EINVAL,
                          "create_mr: create_flags is 0x%x; it may be IBV_EXP_MR_INDIRECT_KLMS or "
                          "IBV_EXP_MR_FIXED_BUFFER_SIZE",
                          in->attr.create_flags);
        return NULL;
    }
    mr = exp_mr_new(in->pd, NULL, 0, in->attr.exp_access_flags);
    if (!mr) {
        return NULL;
    }
    mr->kind = HV_MR_KEYS;
    if (hv_kernel(uverbs_create_keys_mr(mr, in->pd, in->attr.max_klm_list_size, equal))) {
        free(mr);
        return NULL;
    }
    return &mr->ibv;
}

static int exp_query_mkey(struct ibv_mr *mr, struct ibv_exp_mkey_attr *attr)
{
    attr->max_klm_list_size = hv_mr(mr)->max_klms;
    return 0;
}

static int exp_bind_mw(struct ibv_exp_mw_bind *bind)
{
    struct ibv_mw_bind plain = {
        .wr_id = bind->wr_id,
        .send_flags = (unsigned)bind->exp_send_flags,
        .bind_info = {.mr = bind->bind_info.mr,
                      .addr = bind->bind_info.addr,
                      .length = bind->bind_info.length,
                      .mw_access_flags = exp_mr_access(bind->bind_info.exp_mw_access_flags)},
    };

    return bind->qp->context->ops.bind_mw(bind->qp, bind->mw, &plain);
}

void hv_exp_mr_ops(struct verbs_context_exp *ops)
{
    ops->drv_exp_reg_mr = ops->lib_exp_reg_mr = exp_reg_mr;
    ops->drv_exp_ibv_reg_shared_mr = ops->lib_exp_ibv_reg_shared_mr = exp_reg_shared_mr;
    ops->drv_exp_dereg_mr = exp_dereg_mr;
    ops->drv_exp_prefetch_mr = ops->lib_exp_prefetch_mr = exp_prefetch_mr;
    ops->drv_exp_create_mr = ops->lib_exp_create_mr = exp_create_mr;
    ops->drv_exp_query_mkey = ops->lib_exp_query_mkey = exp_query_mkey;
    ops->drv_exp_bind_mw = ops->lib_exp_bind_mw = exp_bind_mw;
}
