/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Changes memory keys by WQE: UMR (registration, binding, re-registration, revocation) and
 * invalidation.
 *
 * A UMR is checked as a whole before anything is changed. A table has the fields of the mkc that a
 * UMR can change (driver: MLX5_MKEY_MASK_*, rdma-core: MLX5_WQE_UMR_CTRL_MKEY_MASK_*).
 */
#include "model/core/pd.h"
#include "model/memory/mkey_priv.h"

#define BIT(name) (1ULL << PRM_MKEY_MASK_##name)

/* Copies a field of the mkc from one image to another. */
#define COPY(field)                                                                                \
    static void copy_##field(struct prm_mkc *to, const struct prm_mkc *from)                       \
    {                                                                                              \
        PRM_SET(mkc, to, field, PRM_GET(mkc, from, field));                                        \
    }
COPY(start_addr)
COPY(pd)
COPY(en_rinval)
COPY(expected_sigerr_count)
COPY(bsf_en)
COPY(mkey_7_0)
COPY(qpn)
COPY(lr)
COPY(lw)
COPY(rr)
COPY(rw)
COPY(a)
COPY(small_fence_on_rdma_read_response)
COPY(relaxed_ordering_write)
COPY(relaxed_ordering_read)
COPY(tunneled_atomic)
COPY(free)
#undef COPY

static void umr_copy_len(struct prm_mkc *to, const struct prm_mkc *from)
{
    PRM_SET(mkc, to, len, PRM_GET(mkc, from, len));
    PRM_SET(mkc, to, length64, PRM_GET(mkc, from, length64));
}

/* The mask bit PAGE_SIZE selects the lower five bits of the page size; PAGE_SIZE_5 selects the
 * sixth bit. */
static void umr_copy_page_size(struct prm_mkc *to, const struct prm_mkc *from)
{
    PRM_SET(mkc, to, log_page_size,
            (PRM_GET(mkc, to, log_page_size) & 0x20) | (PRM_GET(mkc, from, log_page_size) & 0x1f));
}

static void umr_copy_page_size_5(struct prm_mkc *to, const struct prm_mkc *from)
{
    PRM_SET(mkc, to, log_page_size,
            (PRM_GET(mkc, to, log_page_size) & 0x1f) | (PRM_GET(mkc, from, log_page_size) & 0x20));
}

static const struct {
    uint64_t mask;
    void (*copy)(struct prm_mkc *to, const struct prm_mkc *from);
} umr_fields[] = {
    {BIT(LEN), umr_copy_len},
    {BIT(PAGE_SIZE), umr_copy_page_size},
    {BIT(START_ADDR), copy_start_addr},
    {BIT(PD), copy_pd},
    {BIT(EN_RINVAL), copy_en_rinval},
    {BIT(EN_SIGERR), copy_expected_sigerr_count},
    {BIT(BSF_EN), copy_bsf_en},
    {BIT(KEY), copy_mkey_7_0},
    {BIT(QPN), copy_qpn},
    {BIT(LR), copy_lr},
    {BIT(LW), copy_lw},
    {BIT(RR), copy_rr},
    {BIT(RW), copy_rw},
    {BIT(A), copy_a},
    {BIT(SMALL_FENCE), copy_small_fence_on_rdma_read_response},
    {BIT(RELAXED_ORDERING_WRITE), copy_relaxed_ordering_write},
    {BIT(RELAXED_ORDERING_READ), copy_relaxed_ordering_read},
    {BIT(FREE), copy_free},
    {BIT(TUNNELED_ATOMIC), copy_tunneled_atomic},
    {BIT(PAGE_SIZE_5), umr_copy_page_size_5},
};

/* The fields that a program may change in a key with pages. The kernel put bus addresses into that
 * key. */
#define USER_PAGE_KEY_MASK (BIT(FREE) | BIT(KEY) | BIT(EN_RINVAL))

/* Whether the UMR may bring in bus addresses, as pages or through the reserved lkey. Only the
 * kernel's own QPs may. A user context writes the contexts of its QPs itself, but its PDs are its
 * own. */
static bool umr_is_kernels(struct hca *hca, const struct mkey_umr *umr)
{
    const struct obj *pd = obj_find(&hca->pds, umr->pdn);

    return umr->privileged || (umr->fast && pd && !pd->uid);
}

/* Whether the QP may make this change, and the key's state allows it. */
static bool umr_allowed(struct hca *hca, const struct mkey_umr *umr, const struct mkey *mkey,
                        uint64_t mask)
{
    if (!PRM_GET(mkc, mkey->mkc, umr_en)) {
        return false;
    }
    if (!(mask & BIT(KEY)) && mkey->variant != (umr->key & 0xff)) {
        return false;
    }
    /* a key of device memory stays in the allocation that it references */
    if (mkey_is_device(mkey) && mask & (BIT(LEN) | BIT(START_ADDR))) {
        return false;
    }
    if (!umr->privileged && (mkey->pdn != umr->pdn || mask & BIT(PD))) {
        return false;
    }
    if (!umr_is_kernels(hca, umr) && !mkey_has_list(mkey) &&
        (mask & ~USER_PAGE_KEY_MASK || PRM_GET(wqe_umr_ctrl_seg, umr->ctrl, xlt_octowords))) {
        return false;
    }
    if (PRM_GET(wqe_umr_ctrl_seg, umr->ctrl, check_qpn) &&
        !mkey_allows_qp(hca, umr->key, umr->qpn)) {
        return false;
    }
    switch (PRM_GET(wqe_umr_ctrl_seg, umr->ctrl, check_free)) {
    case PRM_UMR_CHECK_NONE:
        return true;
    case PRM_UMR_CHECK_NOT_FREE:
        return mkey->free;
    case PRM_UMR_CHECK_FREE:
        return !mkey->free;
    default:
        return false;
    }
}

/* The range of translation entries that a UMR writes. False: the range is not inside the key's
 * entries. */
static bool umr_xlt_range(const struct mkey_umr *umr, const struct mkey *mkey, uint32_t *first,
                          uint32_t *n)
{
    uint64_t octwords = PRM_GET(wqe_umr_ctrl_seg, umr->ctrl, xlt_octowords);
    uint64_t offset = 0;
    size_t entry = xlt_entry_size(mkey);

    *first = *n = 0;
    if (!octwords) {
        return true;
    }
    if (PRM_GET(wqe_umr_ctrl_seg, umr->ctrl, translation_offset_en)) {
        offset = (uint64_t)PRM_GET(wqe_umr_ctrl_seg, umr->ctrl, xlt_offset_47_16) << 16 |
                 PRM_GET(wqe_umr_ctrl_seg, umr->ctrl, xlt_offset);
    }
    if (!entry || octwords * OCTWORD > umr->xlt_len) {
        return false;
    }
    if ((offset + octwords) * OCTWORD / entry > mkey->capacity) {
        return false;
    }
    *first = offset * OCTWORD / entry;
    *n = octwords * OCTWORD / entry;
    return true;
}

/* Whether any of n entries of a list of keys names the reserved lkey. */
static bool umr_names_reserved(struct hca *hca, const struct prm_wqe_klm_seg *entry, uint32_t n)
{
    hca_spend(hca, n / HCA_PIECE_ENTRIES);
    while (n && PRM_GET(wqe_klm_seg, entry, mkey) != hca->resd_lkey) {
        entry++;
        n--;
    }
    return n && hca->resd_lkey;
}

/* The descriptors that a key has after a UMR. */
struct umr_descriptors {
    struct sig sig;
    struct crypto crypto;
};

/* Takes the crypto descriptor, if the UMR has one: it is the last. *len receives the bytes before
 * it. False: it is not valid. */
static bool umr_new_crypto(struct hca *hca, const struct mkey_umr *umr, const struct mkey *mkey,
                           uint32_t pdn, struct crypto *crypto, size_t *len)
{
    const struct prm_crypto_bsf *last = umr->bsf;

    if (!mkey->crypto) {
        return true;
    }
    crypto->unit = 0;
    if (*len < sizeof(*last)) {
        return true;
    }
    last = (const void *)((const uint8_t *)umr->bsf + *len - sizeof(*last));
    if (!PRM_GET(crypto_bsf, last, crypto)) {
        return true;
    }
    *len -= sizeof(*last);
    return crypto_parse(hca, pdn, last, crypto);
}

/* The descriptors that the key has after the UMR. False: they do not fit, or are not valid. */
static bool umr_new_descriptors(struct hca *hca, const struct mkey_umr *umr,
                                const struct mkey *mkey, const struct prm_mkc *mkc,
                                struct umr_descriptors *made)
{
    uint32_t pdn = PRM_GET(mkc, mkc, pd);
    size_t len = umr->bsf_len;

    if (!mkey->sig) {
        return !PRM_GET(mkc, mkc, bsf_en); /* software that has no descriptors may clear the bit */
    }
    made->sig = *mkey->sig;
    if (mkey->crypto) {
        made->crypto = *mkey->crypto;
    }
    if (!len) {
        return true;
    }
    memset(&made->sig.mem, 0, sizeof(made->sig.mem));
    memset(&made->sig.wire, 0, sizeof(made->sig.wire));
    made->sig.copy_mask = 0;
    return len <= mkey_bsf_room(mkey) && umr_new_crypto(hca, umr, mkey, pdn, &made->crypto, &len) &&
           (!len || bsf_parse(hca, pdn, umr->bsf, len, &made->sig));
}

enum mem_result mkey_umr(struct hca *hca, const struct mkey_umr *umr)
{
    struct mkey *mkey = mkey_find(hca, umr->key >> 8);
    uint64_t mask = PRM_GET(wqe_umr_ctrl_seg, umr->ctrl, mkey_mask);
    uint64_t known = 0;
    struct prm_mkc mkc[1];
    struct umr_descriptors made;
    struct obj *pd;
    uint32_t first, n;

    if (!mkey || !umr_allowed(hca, umr, mkey, mask)) {
        return MEM_BAD_KEY;
    }
    memcpy(mkc, mkey->mkc, sizeof(mkc));
    for (size_t i = 0; i < G_N_ELEMENTS(umr_fields); i++) {
        known |= umr_fields[i].mask;
        if (mask & umr_fields[i].mask) {
            umr_fields[i].copy(mkc, umr->mkey_seg);
        }
    }
    pd = obj_find(&hca->pds, PRM_GET(mkc, mkc, pd));
    if (mask & ~known || !pd || (PRM_GET(mkc, mkc, tunneled_atomic) && !hca->limits.tunneled)) {
        return MEM_BAD_KEY;
    }
    if (!mkey_log_page_ok(mkey->mode, PRM_GET(mkc, mkc, log_page_size)) ||
        !umr_xlt_range(umr, mkey, &first, &n) || !umr_new_descriptors(hca, umr, mkey, mkc, &made)) {
        return MEM_BAD_BOUNDS;
    }
    if (n && mkey_has_list(mkey) && !umr_is_kernels(hca, umr) &&
        umr_names_reserved(hca, umr->xlt, n)) {
        return MEM_BAD_KEY;
    }
    memcpy(mkey->mkc, mkc, sizeof(mkc));
    if (mkey->sig) {
        *mkey->sig = made.sig;
    }
    if (mkey->crypto) {
        *mkey->crypto = made.crypto;
    }
    mkey_parse(mkey);
    mkey_changed(hca);
    if (n) {
        mkey_set_xlt(hca, mkey, first, umr->xlt, n, true);
    }
    if (pd != mkey->pd) {
        obj_unref(&mkey->obj, mkey->pd);
        obj_ref(&mkey->obj, pd);
        mkey->pd = pd;
    }
    return MEM_OK;
}

enum mem_result mkey_invalidate(struct hca *hca, uint32_t key, uint32_t pdn, bool remote)
{
    struct mkey *mkey = mkey_find(hca, key >> 8);

    if (!mkey || mkey->free || mkey->variant != (key & 0xff) || mkey->pdn != pdn ||
        !PRM_GET(mkc, mkey->mkc, umr_en) || (remote && !PRM_GET(mkc, mkey->mkc, en_rinval))) {
        return mkey_refuse(hca,
                           &(struct mem_refusal){.result = MEM_BAD_KEY, .key = key, .pdn = pdn});
    }
    PRM_SET(mkc, mkey->mkc, free, 1);
    mkey_parse(mkey);
    mkey_changed(hca);
    return MEM_OK;
}
