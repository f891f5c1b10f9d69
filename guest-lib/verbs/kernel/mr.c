/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory regions.
 *
 * A key's page list names process addresses, in the smallest page size that needs at most two
 * entries (mr_choose_log_page()). Only addresses inside the region are ever accessed. The memory is
 * populated as if it were pinned, which also tells whether it exists and may be written (EFAULT).
 * It is not pinned: a program that unmaps a region before deregistering it takes the memory away
 * from the device. Regions of on-demand paging are made in odp.c, keys without memory of the
 * process in mr_keys.c.
 */
#include <inttypes.h>
#include "guest-lib/verbs/kernel/mkey.h"
#include "guest-lib/verbs/kernel/odp.h"
#include "guest-lib/verbs/kernel/umem.h"
#include "guest-lib/verbs/kernel/uverbs.h"

/* As IB_ACCESS_SUPPORTED: FLUSH_GLOBAL and FLUSH_PERSISTENT are the last rights that are not in
 * OPTIONAL. */
#define ACCESS_FLUSH     (3u << 8)
#define ACCESS_SUPPORTED ((1u << 10) - 1)

#define LOG_PAGE_MIN     12
#define LOG_PAGE_MAX     31 /* log_page_size has 5 bits without umr_extended_log_page_size */
#define MTT_FEW          2

/* As ib_check_mr_access(). Also refuses what a device without flush refuses. */
int hv_mr_check_access(struct hv_hca *hca, unsigned access)
{
    if ((access & (IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_REMOTE_WRITE)) &&
        !(access & IBV_ACCESS_LOCAL_WRITE)) {
        return hv_refuse(hca, EINVAL,
                         "reg_mr: access 0x%x has IBV_ACCESS_REMOTE_WRITE or "
                         "IBV_ACCESS_REMOTE_ATOMIC, which need IBV_ACCESS_LOCAL_WRITE, too",
                         access);
    }
    if (access & ~(ACCESS_SUPPORTED | IBV_ACCESS_OPTIONAL_RANGE)) {
        return hv_refuse(hca, EINVAL, "reg_mr: access has unknown bits 0x%x",
                         access & ~(unsigned)(ACCESS_SUPPORTED | IBV_ACCESS_OPTIONAL_RANGE));
    }
    if (access & IBV_ACCESS_ON_DEMAND && !hv_odp_is_offered(hca)) {
        return hv_refuse(hca, EOPNOTSUPP,
                         "reg_mr: the device has no on-demand paging (IBV_ACCESS_ON_DEMAND)");
    }
    if (access & ACCESS_FLUSH) {
        return hv_refuse(hca, EOPNOTSUPP, "reg_mr: the device has no FLUSH (access 0x%x)", access);
    }
    return 0;
}

static uint64_t mr_pages_at(uint64_t addr, uint64_t len, unsigned log_page)
{
    return ((addr + len - 1) >> log_page) - (addr >> log_page) + 1;
}

/* The smallest page size that needs few entries. address and iova must have the same offset in a
 * page, and no page may begin at 0, because such an entry counts as missing. */
static unsigned mr_choose_log_page(uint64_t addr, uint64_t len, uint64_t iova)
{
    unsigned log_page = LOG_PAGE_MIN;

    while (log_page < LOG_PAGE_MAX && mr_pages_at(addr, len, log_page) > MTT_FEW &&
           !((addr ^ iova) >> log_page & 1) && addr >> (log_page + 1)) {
        log_page++;
    }
    return log_page;
}

void hv_mr_set_rights(struct hv_hca *hca, struct prm_mkc *mkc, unsigned access)
{
    bool relaxed = access & IBV_ACCESS_RELAXED_ORDERING;

    PRM_SET(mkc, mkc, a, !!(access & IBV_ACCESS_REMOTE_ATOMIC));
    PRM_SET(mkc, mkc, rw, !!(access & IBV_ACCESS_REMOTE_WRITE));
    PRM_SET(mkc, mkc, rr, !!(access & IBV_ACCESS_REMOTE_READ));
    PRM_SET(mkc, mkc, lw, !!(access & IBV_ACCESS_LOCAL_WRITE));
    PRM_SET(mkc, mkc, lr, 1);
    PRM_SET(mkc, mkc, tunneled_atomic, !!(access & HV_ACCESS_TUNNELED));
    PRM_SET(mkc, mkc, relaxed_ordering_write, relaxed && HV_CAP(hca, relaxed_ordering_write));
    PRM_SET(mkc, mkc, relaxed_ordering_read, relaxed && HV_CAP(hca, relaxed_ordering_read));
}

/* Creates a key over process memory, which must be mapped: 0 or errno. */
static int mr_create_key(struct hv_pd *pd, uint64_t addr, uint64_t len, uint64_t iova,
                         unsigned access, uint32_t *key)
{
    struct hv_hca *hca = hv_hca_of(pd->ibv.context);
    unsigned log_page = mr_choose_log_page(addr, len, iova);
    uint64_t pages = mr_pages_at(addr, len, log_page), octwords = (pages + 1) / 2;
    uint64_t base = addr >> log_page << log_page;
    size_t in_len = PRM_SIZE(create_mkey_in) + octwords * 16;
    g_autofree struct prm_create_mkey_in *in = g_try_malloc0(in_len);
    struct prm_mkc *mkc;
    uint8_t *mtt;

    if (!in) {
        return ENOMEM;
    }
    mkc = PRM_PTR(create_mkey_in, in, memory_key_mkey_entry);
    mtt = PRM_PTR(create_mkey_in, in, klm_pas_mtt);
    hv_mr_set_rights(hca, mkc, access);
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

/* Checks a range as the kernel does (ib_umem_get()), counts its pages, and creates the key: 0 or
 * errno. */
static int mr_register_range(struct hv_pd *pd, void *addr, size_t length, uint64_t iova,
                             unsigned access, uint32_t *key, struct hv_umem *umem)
{
    struct hv_hca *hca = hv_hca_of(pd->ibv.context);
    uint64_t start = (uintptr_t)addr;
    int err;

    if (access & IBV_ACCESS_ON_DEMAND) {
        const struct hv_odp_range range = {.start = start, .len = length, .iova = iova};

        *umem = (struct hv_umem){0};
        return hv_odp_reg(pd, &range, access, &umem->odp, key);
    }
    if (start + length < start || start + length > UINT64_MAX - PCI_PAGE || iova + length < iova) {
        return hv_refuse(hca, EINVAL, "reg_mr: %zu bytes at %p go past the end of the addresses",
                         length, addr);
    }
    /* The range is counted in pages. A region of length 0 has one page, unless it begins at the
     * start of a page. */
    if (!length && !(start & (PCI_PAGE - 1))) {
        return hv_refuse(hca, EINVAL, "reg_mr: length is 0");
    }
    err = hv_umem_get(hv_context(pd->ibv.context), addr, length, access & HV_ACCESS_WRITABLE, umem);
    if (err == EFAULT) {
        return hv_refuse(hca, err, "reg_mr: the %zu bytes at %p are not all mapped%s", length, addr,
                         access & HV_ACCESS_WRITABLE ? " and writable" : "");
    }
    if (err) {
        return hv_refuse(
            hca, err, "reg_mr: %zu bytes are more than RLIMIT_MEMLOCK leaves (ulimit -l)", length);
    }
    err = mr_create_key(pd, start, length, iova, access, key);
    if (err) {
        hv_umem_put(umem);
    }
    return err;
}

/* Ends a key and gives its memory back. Returns 0 or errno. */
static int mr_unregister(struct hv_hca *hca, uint32_t key, struct hv_umem *umem)
{
    int err = umem->odp ? hv_odp_dereg(umem->odp) : hv_mkey_destroy(hca, key);

    if (!err) {
        umem->odp = NULL;
        hv_umem_put(umem);
    }
    return err;
}

/* Registers a range under the handle of a region: 0 or errno. */
static int mr_register(struct hv_mr *mr, struct ibv_pd *pd, void *addr, size_t length,
                       uint64_t iova, unsigned access)
{
    uint32_t key = 0;
    int err = hv_pd_check(pd);

    err = err ? err : mr_register_range(mr->pd, addr, length, iova, access, &key, &mr->umem);
    if (err) {
        return err;
    }
    mr->ibv.lkey = mr->ibv.rkey = key;
    mr->ibv.handle = hv_handle_add(pd->context, HV_HANDLE_MR, mr);
    g_atomic_int_inc(&mr->pd->refs);
    return 0;
}

/* The kernel's conditions for tunneled atomics (ib_check_mr_access(), mlx5_ib_reg_user_mr()): 0 or
 * errno. */
static int mr_check_tunneled(struct hv_hca *hca, unsigned access)
{
    const unsigned needs = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;

    if ((access & needs) != needs) {
        return hv_refuse(hca, EINVAL,
                         "reg_mr: IBV_EXP_ACCESS_TUNNELED_ATOMIC needs IBV_ACCESS_LOCAL_WRITE and "
                         "IBV_ACCESS_REMOTE_WRITE, too; access is 0x%x",
                         access & ~HV_ACCESS_TUNNELED);
    }
    if (!HV_CAP(hca, tunneled_atomic)) {
        return hv_refuse(hca, EINVAL, "reg_mr: the device has no tunneled atomics");
    }
    if (access & IBV_ACCESS_ON_DEMAND) {
        return hv_refuse(hca, EINVAL,
                         "reg_mr: a region with tunneled atomics cannot be paged on demand");
    }
    return 0;
}

int uverbs_reg_mr(struct hv_mr *mr, struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
                  unsigned access)
{
    int err;

    if (((uintptr_t)addr ^ iova) & (PCI_PAGE - 1)) {
        return hv_refuse(hv_hca_of(pd->context), EINVAL,
                         "reg_mr: addr %p and iova 0x%" PRIx64
                         " lie at other places of their pages",
                         addr, iova);
    }
    err = hv_mr_check_access(hv_hca_of(pd->context), access & ~HV_ACCESS_TUNNELED);
    if (!err && access & HV_ACCESS_TUNNELED) {
        err = mr_check_tunneled(hv_hca_of(pd->context), access);
    }
    return err ? err : mr_register(mr, pd, addr, length, iova, access);
}

#define MASK_BIT(field) (1ull << PRM_MKEY_MASK_##field)

/* Changes the access rights and the PD of a key in place (mlx5r_umr_rereg_pd_access()): 0 or
 * errno. */
static int mr_change_key(struct hv_mr *mr, struct hv_pd *pd, unsigned access)
{
    struct hv_hca *hca = hv_hca_of(mr->ibv.context);
    struct prm_mkc mkc[1] = {0};
    bool writable = access & HV_ACCESS_WRITABLE;
    int err;

    if (mr->umem.odp) { /* as ib_umem_check_rereg() */
        err = writable && !hv_odp_is_writable(mr->umem.odp) ? EACCES : 0;
    } else {
        err = hv_umem_recheck(&mr->umem, mr->ibv.addr, mr->ibv.length, writable);
    }
    if (err) {
        return err;
    }
    hv_mr_set_rights(hca, mkc, access);
    PRM_SET(mkc, mkc, pd, pd->pdn);
    PRM_SET(mkc, mkc, qpn, 0xffffff);
    PRM_SET(mkc, mkc, mkey_7_0, mr->ibv.lkey & 0xff);
    return hv_umr(hca, mr->ibv.lkey,
                  MASK_BIT(LR) | MASK_BIT(LW) | MASK_BIT(RR) | MASK_BIT(RW) | MASK_BIT(A) |
                      MASK_BIT(PD),
                  mkc);
}

/* As can_use_umr_rereg_access(): only these rights can be changed in place. This device has no
 * capability to change relaxed ordering by UMR. */
static bool mr_can_change_key(const struct hv_mr *mr, int flags, unsigned access)
{
    unsigned changeable = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                          IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

    return !(flags & IBV_REREG_MR_CHANGE_TRANSLATION) && !((mr->access ^ access) & ~changeable);
}

/* Notes that the region is now in this PD with these rights. */
static void mr_move(struct hv_mr *mr, struct hv_pd *pd, unsigned access)
{
    g_atomic_int_add(&mr->pd->refs, -1);
    g_atomic_int_inc(&pd->refs);
    mr->pd = pd;
    mr->access = access;
    if (mr->umem.odp) {
        hv_odp_moved(mr->umem.odp, pd, access);
    }
}

/* The handle of a region. Of a shared region, the program sees the number instead. */
static uint32_t mr_handle(const struct hv_mr *mr)
{
    return mr->shared ? mr->own_handle : mr->ibv.handle;
}

/* If the key cannot be changed in place, a new key replaces it, as in mlx5_ib. */
int uverbs_rereg_mr(struct hv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length,
                    unsigned access)
{
    struct ibv_mr *ibmr = &mr->ibv;
    struct hv_hca *hca = hv_hca_of(ibmr->context);
    struct hv_pd *new_pd = flags & IBV_REREG_MR_CHANGE_PD ? hv_real_pd(pd) : mr->pd;
    uint64_t iova = mr->iova;
    struct hv_umem umem = {0};
    uint32_t key;
    int err;

    if (!flags) {
        return EINVAL;
    }
    err = hv_handle_check(ibmr->context, HV_HANDLE_MR, mr_handle(mr), mr);
    if (!err && mr->dm) {
        err = hv_refuse(hca, EINVAL, "rereg_mr: a region of device memory cannot be changed");
    }
    if (!err && (flags & IBV_REREG_MR_CHANGE_ACCESS)) {
        err = hv_mr_check_access(hca, access);
    } else {
        access = mr->access;
    }
    if (!err && (flags & IBV_REREG_MR_CHANGE_PD)) {
        err = hv_pd_check(pd);
    }
    if (err) {
        return err;
    }
    if (mr_can_change_key(mr, flags, access)) {
        err = mr_change_key(mr, new_pd, access);
        if (!err) {
            mr_move(mr, new_pd, access);
        }
        return err;
    }
    if (flags & IBV_REREG_MR_CHANGE_TRANSLATION || mr->umem.odp) {
        iova = (uintptr_t)
            addr; /* without pinned memory, the region is made again as the program says */
    } else {
        addr = ibmr->addr;
        length = ibmr->length;
        access &= ~(unsigned)IBV_ACCESS_ON_DEMAND; /* the pinned memory stays (create_real_mr()) */
    }
    err = mr_register_range(new_pd, addr, length, iova, access, &key, &umem);
    if (err) {
        return err;
    }
    err = mr_unregister(hca, ibmr->lkey, &mr->umem);
    if (err) {
        mr_unregister(hca, key, &umem);
        return err;
    }
    mr->umem = umem;
    mr_move(mr, new_pd, access);
    mr->iova = iova;
    ibmr->lkey = ibmr->rkey = key;
    return 0;
}

/* Removes the region of a handle from the device. A context that imported the region may do that,
 * too. */
int uverbs_dereg_mr(struct hv_mr *mr)
{
    struct ibv_context *context = mr->ibv.context;
    int err;
    uint32_t handle = mr_handle(mr);
    struct hv_mr *owner = hv_handle_get(context, HV_HANDLE_MR, handle, &err);

    if (owner && mr->kind != HV_MR_IMPORTED && owner != mr) {
        err = EINVAL;
    }
    if (!err && owner->kind == HV_MR_KEYS) {
        hv_odp_del_indirect(hv_hca_of(context), owner->ibv.lkey);
    }
    err = err ? err : mr_unregister(hv_hca_of(context), owner->ibv.lkey, &owner->umem);
    if (!err) {
        hv_handle_del(context, handle);
        if (owner->dm) {
            g_atomic_int_add(&owner->dm->refs, -1);
        }
        g_atomic_int_add(&owner->pd->refs, -1);
    }
    return err;
}

/* The rights that UVERBS_METHOD_REG_DMABUF_MR allows: the optional flags that the device does not
 * know are refused, too. */
#define DMABUF_ACCESS                                                                              \
    (unsigned)(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE |         \
               IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_RELAXED_ORDERING)

int uverbs_reg_dmabuf_mr(struct hv_mr *mr, struct ibv_pd *pd, uint64_t offset, size_t length,
                         uint64_t iova, int fd, unsigned access)
{
    struct hv_hca *hca = hv_hca_of(pd->context);
    void *addr;
    int err;

    if ((offset ^ iova) & (PCI_PAGE - 1)) {
        return hv_refuse(hca, EINVAL,
                         "reg_dmabuf_mr: offset %" PRIu64 " and iova 0x%" PRIx64
                         " lie at other places of their pages",
                         offset, iova);
    }
    if (access & ~DMABUF_ACCESS) {
        return hv_refuse(hca, EINVAL, "reg_dmabuf_mr: access has bits 0x%x; it may have 0x%x",
                         access & ~DMABUF_ACCESS, DMABUF_ACCESS);
    }
    err = hv_mr_check_access(hca, access);
    err = err ? err : hv_umem_of_dmabuf(hca, "reg_dmabuf_mr", fd, offset, length, &addr, &mr->umem);
    if (err) {
        return err;
    }
    err = mr_register(mr, pd, addr, length, iova, access);
    if (err) {
        hv_umem_put(&mr->umem);
    }
    return err;
}
