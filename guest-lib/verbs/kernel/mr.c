/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory regions.
 *
 * A key's page list names process addresses, in the largest pages with which two entries do: only
 * what is inside the region is ever looked at. The memory is populated as pinning does, which
 * also tells whether it is there and may be written (EFAULT). It is not pinned: a program that
 * unmaps a region before it deregisters it loses the memory under the device.
 */
#include <sys/mman.h>
#include <unistd.h>
#include "guest-lib/verbs/verbs.h"

/* ib_access_writable() */
#define ACCESS_WRITABLE                                                                            \
    (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC |                 \
     IBV_ACCESS_MW_BIND)
/* IB_ACCESS_SUPPORTED: FLUSH_GLOBAL and FLUSH_PERSISTENT are the last of those without OPTIONAL */
#define ACCESS_FLUSH     (3u << 8)
#define ACCESS_SUPPORTED ((1u << 10) - 1)

#define LOG_PAGE_MIN     12
#define LOG_PAGE_MAX     31 /* log_page_size has 5 bits without umr_extended_log_page_size */
#define MTT_FEW          2

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ  22
#define MADV_POPULATE_WRITE 23
#endif

/* -- keys ---------------------------------------------------------------------------------------
 */

uint8_t hv_key_variant(void)
{
    static gint variant;

    return (uint8_t)(g_atomic_int_add(&variant, 1) + 1);
}

int hv_mkey_create(struct hv_hca *hca, void *in, size_t in_len, uint32_t *key)
{
    uint8_t out[PRM_SIZE(create_mkey_out)] = {0};
    uint8_t variant = hv_key_variant();
    int err;

    PRM_SET(create_mkey_in, in, opcode, PRM_CMD_OP_CREATE_MKEY);
    PRM_SET(mkc, PRM_PTR(create_mkey_in, in, memory_key_mkey_entry), mkey_7_0, variant);
    err = hv_cmd(hca, in, in_len, out, sizeof(out));
    *key = PRM_GET(create_mkey_out, out, mkey_index) << 8 | variant;
    return err;
}

int hv_mkey_destroy(struct hv_hca *hca, uint32_t key)
{
    uint8_t in[PRM_SIZE(destroy_mkey_in)] = {0};

    PRM_SET(destroy_mkey_in, in, opcode, PRM_CMD_OP_DESTROY_MKEY);
    PRM_SET(destroy_mkey_in, in, mkey_index, key >> 8);
    return hv_cmd_simple(hca, in, sizeof(in));
}

/* -- memory -------------------------------------------------------------------------------------
 */

/* Kernels before 5.14 and some sandboxes cannot populate on request. */
static bool can_populate(void)
{
    static gsize once;

    if (g_once_init_enter(&once)) {
        void *page =
            mmap(NULL, PCI_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        bool can = page != MAP_FAILED && !madvise(page, PCI_PAGE, MADV_POPULATE_WRITE);

        if (page != MAP_FAILED) {
            munmap(page, PCI_PAGE);
        }
        g_once_init_leave(&once, can ? 2 : 1);
    }
    return once == 2;
}

/* 0; or EFAULT: some of it is not mapped, or not as the access needs it. */
static int check_mapped(uintptr_t addr, size_t len, bool writable)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t start = addr & ~(page - 1);
    size_t size = ((addr + len + page - 1) & ~(page - 1)) - start;
    unsigned char in_core[256];

    if (can_populate()) {
        int advice = writable ? MADV_POPULATE_WRITE : MADV_POPULATE_READ;

        while (madvise((void *)start, size, advice)) {
            if (errno != EAGAIN && errno != EINTR) {
                return EFAULT;
            }
        }
        return 0;
    }
    while (size) {
        size_t part = MIN(size, sizeof(in_core) * page);

        if (mincore((void *)start, part, in_core)) {
            return EFAULT;
        }
        start += part;
        size -= part;
    }
    return 0;
}

/* ib_check_mr_access(), and what a device without on-demand paging and flush refuses */
static int check_access(struct hv_hca *hca, unsigned access)
{
    if ((access & (IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_REMOTE_WRITE)) &&
        !(access & IBV_ACCESS_LOCAL_WRITE)) {
        return EINVAL;
    }
    if (access & ~(ACCESS_SUPPORTED | IBV_ACCESS_OPTIONAL_RANGE)) {
        return EINVAL;
    }
    if ((access & IBV_ACCESS_ON_DEMAND) || (access & ACCESS_FLUSH)) {
        return EOPNOTSUPP;
    }
    return 0;
}

static uint64_t pages_at(uint64_t addr, uint64_t len, unsigned log_page)
{
    return ((addr + len - 1) >> log_page) - (addr >> log_page) + 1;
}

/* The smallest page size that needs few entries. Inside a page, address and iova must agree, and
 * no page may begin at 0: such an entry counts as missing. */
static unsigned choose_log_page(uint64_t addr, uint64_t len, uint64_t iova)
{
    unsigned log_page = LOG_PAGE_MIN;

    while (log_page < LOG_PAGE_MAX && pages_at(addr, len, log_page) > MTT_FEW &&
           !((addr ^ iova) >> log_page & 1) && addr >> (log_page + 1)) {
        log_page++;
    }
    return log_page;
}

static void set_rights(struct hv_hca *hca, uint8_t *mkc, unsigned access)
{
    bool relaxed = access & IBV_ACCESS_RELAXED_ORDERING;

    PRM_SET(mkc, mkc, a, !!(access & IBV_ACCESS_REMOTE_ATOMIC));
    PRM_SET(mkc, mkc, rw, !!(access & IBV_ACCESS_REMOTE_WRITE));
    PRM_SET(mkc, mkc, rr, !!(access & IBV_ACCESS_REMOTE_READ));
    PRM_SET(mkc, mkc, lw, !!(access & IBV_ACCESS_LOCAL_WRITE));
    PRM_SET(mkc, mkc, lr, 1);
    PRM_SET(mkc, mkc, relaxed_ordering_write, relaxed && HV_CAP(hca, relaxed_ordering_write));
    PRM_SET(mkc, mkc, relaxed_ordering_read, relaxed && HV_CAP(hca, relaxed_ordering_read));
}

/* A key over process memory, which must be mapped: 0 or errno. */
static int create_key(struct hv_pd *pd, uint64_t addr, uint64_t len, uint64_t iova, unsigned access,
                      uint32_t *key)
{
    struct hv_hca *hca = hv_hca_of(pd->ibv.context);
    unsigned log_page = choose_log_page(addr, len, iova);
    uint64_t pages = pages_at(addr, len, log_page), octwords = (pages + 1) / 2;
    uint64_t base = addr >> log_page << log_page;
    size_t in_len = PRM_SIZE(create_mkey_in) + octwords * 16;
    g_autofree uint8_t *in = g_try_malloc0(in_len);
    uint8_t *mkc, *mtt;

    if (!in) {
        return ENOMEM;
    }
    mkc = PRM_PTR(create_mkey_in, in, memory_key_mkey_entry);
    mtt = PRM_PTR(create_mkey_in, in, klm_pas_mtt);
    set_rights(hca, mkc, access);
    PRM_SET(create_mkey_in, in, translations_octword_actual_size, octwords);
    PRM_SET(mkc, mkc, access_mode_1_0, PRM_MKC_ACCESS_MODE_MTT);
    PRM_SET(mkc, mkc, umr_en, 1);
    PRM_SET(mkc, mkc, qpn, 0xffffff);
    PRM_SET(mkc, mkc, pd, pd->pdn);
    PRM_SET(mkc, mkc, start_addr, iova);
    PRM_SET(mkc, mkc, len, len);
    PRM_SET(mkc, mkc, translations_octword_size, octwords);
    PRM_SET(mkc, mkc, log_page_size, log_page);
    for (uint64_t i = 0; i < pages; i++) {
        prm_store64(mtt + 8 * i, base + (i << log_page));
    }
    return hv_mkey_create(hca, in, in_len, key);
}

/* -- registration -------------------------------------------------------------------------------
 */

/* What the kernel checks of a range (ib_umem_get()), and the key: 0 or errno. */
static int register_range(struct hv_pd *pd, void *addr, size_t length, uint64_t iova,
                          unsigned access, uint32_t *key)
{
    uint64_t start = (uintptr_t)addr;
    int err;

    if (start + length < start || start + length > UINT64_MAX - PCI_PAGE || iova + length < iova) {
        return EINVAL;
    }
    /* Pages are what counts: no bytes are a region of one page, but at the beginning of a page. */
    if (!length && !(start & (PCI_PAGE - 1))) {
        return EINVAL;
    }
    err = check_mapped(start, length, access & ACCESS_WRITABLE);
    return err ? err : create_key(pd, start, length, iova, access, key);
}

/* ib_uverbs_reg_mr(): 0 or errno. */
static int reg_mr(struct hv_mr *mr, struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
                  unsigned access)
{
    uint32_t key = 0;
    int err;

    if (((uintptr_t)addr ^ iova) & (PCI_PAGE - 1)) {
        return EINVAL;
    }
    err = check_access(hv_hca_of(pd->context), access);
    err = err ? err : hv_pd_check(pd);
    err = err ? err : register_range(mr->pd, addr, length, iova, access, &key);
    if (err) {
        return err;
    }
    mr->ibv.lkey = mr->ibv.rkey = key;
    mr->ibv.handle = hv_handle_add(pd->context, HV_HANDLE_MR, mr);
    g_atomic_int_inc(&mr->pd->refs);
    return 0;
}

HV_EXPORT struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length,
                                          uint64_t iova, unsigned int access)
{
    struct hv_mr *mr = calloc(1, sizeof(*mr));

    if (!mr) {
        return NULL;
    }
    mr->ibv = (struct ibv_mr){.context = pd->context, .pd = pd, .addr = addr, .length = length};
    mr->iova = iova;
    mr->access = access;
    mr->kind = HV_MR_USER;
    mr->pd = hv_real_pd(pd);
    if (hv_kernel(reg_mr(mr, pd, addr, length, iova, access))) {
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

/* mlx5_ib registers dma-bufs by on-demand paging, which the device has not. */
HV_EXPORT struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length,
                                           uint64_t iova, int fd, int access)
{
    int err = (offset ^ iova) & (PCI_PAGE - 1)
                  ? EINVAL
                  : check_access(hv_hca_of(pd->context), (unsigned)access);

    err = err ? err : hv_pd_check(pd);
    hv_kernel(err ? err : EOPNOTSUPP);
    return NULL;
}

/* The flags of the change are good, the memory is not looked at yet. */
static bool rereg_args_ok(const struct hv_mr *mr, int flags, const void *addr, size_t length,
                          int access)
{
    if (mr->kind != HV_MR_USER || (flags & ~IBV_REREG_MR_FLAGS_SUPPORTED)) {
        return false;
    }
    if ((flags & IBV_REREG_MR_CHANGE_TRANSLATION) && (!length || !addr)) {
        return false;
    }
    return !access || (flags & IBV_REREG_MR_CHANGE_ACCESS);
}

#define MASK_BIT(field) (1ull << PRM_MKEY_MASK_##field)

/* Changes rights and PD of a key in place (mlx5r_umr_rereg_pd_access()): 0 or errno. */
static int change_key(struct hv_mr *mr, struct hv_pd *pd, unsigned access)
{
    struct hv_hca *hca = hv_hca_of(mr->ibv.context);
    uint8_t mkc[PRM_SIZE(mkc)] = {0};
    int err = check_mapped((uintptr_t)mr->ibv.addr, mr->ibv.length, access & ACCESS_WRITABLE);

    if (err) {
        return err;
    }
    set_rights(hca, mkc, access);
    PRM_SET(mkc, mkc, pd, pd->pdn);
    PRM_SET(mkc, mkc, qpn, 0xffffff);
    PRM_SET(mkc, mkc, mkey_7_0, mr->ibv.lkey & 0xff);
    return hv_umr(hca, mr->ibv.lkey,
                  MASK_BIT(LR) | MASK_BIT(LW) | MASK_BIT(RR) | MASK_BIT(RW) | MASK_BIT(A) |
                      MASK_BIT(PD),
                  mkc);
}

/* can_use_umr_rereg_access(): only these rights can be changed in place. A UMR has no capability
 * here to change relaxed ordering. */
static bool can_change_key(const struct hv_mr *mr, int flags, unsigned access)
{
    unsigned changeable = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                          IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

    return !(flags & IBV_REREG_MR_CHANGE_TRANSLATION) && !((mr->access ^ access) & ~changeable);
}

/* The region is now in this PD with these rights. */
static void move_mr(struct hv_mr *mr, struct hv_pd *pd, unsigned access)
{
    g_atomic_int_add(&mr->pd->refs, -1);
    g_atomic_int_inc(&pd->refs);
    mr->pd = pd;
    mr->access = access;
}

/* ib_uverbs_rereg_mr(): 0 or errno. Where the key cannot be changed a new one takes its place, as
 * mlx5_ib does. */
static int rereg_mr(struct hv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length,
                    unsigned access)
{
    struct ibv_mr *ibmr = &mr->ibv;
    struct hv_hca *hca = hv_hca_of(ibmr->context);
    struct hv_pd *new_pd = flags & IBV_REREG_MR_CHANGE_PD ? hv_real_pd(pd) : mr->pd;
    uint64_t iova = mr->iova;
    uint32_t key;
    int err;

    if (!flags) {
        return EINVAL;
    }
    err = hv_handle_check(ibmr->context, HV_HANDLE_MR, ibmr->handle, mr);
    if (!err && (flags & IBV_REREG_MR_CHANGE_ACCESS)) {
        err = check_access(hca, access);
    } else {
        access = mr->access;
    }
    if (!err && (flags & IBV_REREG_MR_CHANGE_PD)) {
        err = hv_pd_check(pd);
    }
    if (err) {
        return err;
    }
    if (can_change_key(mr, flags, access)) {
        err = change_key(mr, new_pd, access);
        if (!err) {
            move_mr(mr, new_pd, access);
        }
        return err;
    }
    if (flags & IBV_REREG_MR_CHANGE_TRANSLATION) {
        iova = (uintptr_t)addr;
    } else {
        addr = ibmr->addr;
        length = ibmr->length;
    }
    err = register_range(new_pd, addr, length, iova, access, &key);
    if (err) {
        return err;
    }
    err = hv_mkey_destroy(hca, ibmr->lkey);
    if (err) {
        hv_mkey_destroy(hca, key);
        return err;
    }
    move_mr(mr, new_pd, access);
    mr->iova = iova;
    ibmr->lkey = ibmr->rkey = key;
    return 0;
}

HV_EXPORT int ibv_rereg_mr(struct ibv_mr *ibmr, int flags, struct ibv_pd *pd, void *addr,
                           size_t length, int access)
{
    if (!rereg_args_ok(hv_mr(ibmr), flags, addr, length, access)) {
        errno = EINVAL;
        return IBV_REREG_MR_ERR_INPUT;
    }
    if (hv_kernel(rereg_mr(hv_mr(ibmr), flags, pd, addr, length, (unsigned)access))) {
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

/* The region that a handle stands for leaves the device: 0 or errno. Whoever imported it may do
 * that, too. */
static int dereg_mr(struct hv_mr *mr)
{
    struct ibv_context *context = mr->ibv.context;
    int err;
    struct hv_mr *owner = hv_handle_get(context, HV_HANDLE_MR, mr->ibv.handle, &err);

    if (owner && mr->kind == HV_MR_USER && owner != mr) {
        err = EINVAL;
    }
    err = err ? err : hv_mkey_destroy(hv_hca_of(context), owner->ibv.lkey);
    if (!err) {
        hv_handle_del(context, mr->ibv.handle);
        g_atomic_int_add(&owner->pd->refs, -1);
    }
    return err;
}

HV_EXPORT int ibv_dereg_mr(struct ibv_mr *ibmr)
{
    struct hv_mr *mr = hv_mr(ibmr);

    if (mr->kind == HV_MR_USER || mr->kind == HV_MR_IMPORTED) {
        int err = hv_kernel(dereg_mr(mr));

        if (err) {
            return err;
        }
    }
    free(mr);
    return 0;
}

HV_EXPORT struct ibv_mr *ibv_import_mr(struct ibv_pd *pd, uint32_t mr_handle)
{
    struct hv_mr *mr = calloc(1, sizeof(*mr)), *owner;
    int err;

    if (!mr) {
        return NULL;
    }
    owner = hv_handle_get(pd->context, HV_HANDLE_MR, mr_handle, &err);
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

/* -- other kinds --------------------------------------------------------------------------------
 */

/* A region of all addresses: what is written to it is lost. libmlx5 takes the device's dump-fill
 * key for it, and has no other way. */
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

/* mlx5_ib has this for on-demand paging only. */
static int advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
                     struct ibv_sge *sg_list, uint32_t num_sge)
{
    return hv_kernel(EOPNOTSUPP);
}

/* Device memory: there is none (max_dm_size is 0). */
static struct ibv_dm *alloc_dm(struct ibv_context *context, struct ibv_alloc_dm_attr *attr)
{
    errno = attr->comp_mask ? EINVAL : EOPNOTSUPP;
    return NULL;
}

HV_EXPORT struct ibv_dm *ibv_import_dm(struct ibv_context *context, uint32_t dm_handle)
{
    errno = ENOENT;
    return NULL;
}

/* No ibv_dm exists that could be passed. */
HV_EXPORT void ibv_unimport_dm(struct ibv_dm *dm)
{
}

void hv_mr_ops(struct verbs_context *ops)
{
    ops->alloc_null_mr = alloc_null_mr;
    ops->advise_mr = advise_mr;
    ops->alloc_dm = alloc_dm;
}
