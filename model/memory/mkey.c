/* SPDX-License-Identifier: BSD-2-Clause */
/* Creates, queries and destroys memory keys, and stores their translation entries. */
#include "model/core/pd.h"
#include "model/memory/memic.h"
#include "model/memory/mkey_priv.h"
#include "model/memory/sw_icm.h"
#include "model/memory/umem.h"

/* The most memory of this process that a key's translation entries may take, in bytes. */
#define XLT_MAX_BYTES (512ULL << 20)

/* UMR writes entries in multiples of 64 bytes (driver: MLX5_UMR_FLEX_ALIGNMENT), also to keys that
 * were created with fewer entries. Therefore a key always has entries for whole multiples of 64
 * bytes. */
#define XLT_ALIGN_OCTWORDS 4

static uint32_t mkey_mkc_mode(const struct prm_mkc *mkc)
{
    return PRM_GET(mkc, mkc, access_mode_4_2) << 2 | PRM_GET(mkc, mkc, access_mode_1_0);
}

/* A key whose length is 2^64 has at most so many bytes of memory if it has transforms. */
#define MKEY_TRANSFORMED_MAX (1ULL << 62)

/* Makes the stack of transforms of a key that can have a descriptor. */
static void mkey_stack_transforms(struct mkey *mkey)
{
    struct sig *sig = mkey->sig;
    uint64_t memory = mkey->length64 ? MKEY_TRANSFORMED_MAX : MIN(mkey->len, MKEY_TRANSFORMED_MAX);

    bool has_sig = sig->mem.kind || sig->wire.kind;
    struct crypto *crypto = mkey->crypto && mkey->crypto->unit ? mkey->crypto : NULL;

    sig->expected_count = (uint8_t)PRM_GET(mkc, mkey->mkc, expected_sigerr_count);
    if (!PRM_GET(mkc, mkey->mkc, bsf_en) || !(has_sig || crypto)) {
        return;
    }
    sig->transform.below = NULL;
    mkey->transform = &sig->transform;
    if (has_sig) {
        sig_changed(sig, memory);
    }
    if (crypto) {
        bool is_above = has_sig && crypto_is_above_sig(crypto);

        crypto->total = is_above ? transform_length(&sig->transform, memory) : memory;
        crypto->transform.below = is_above ? &sig->transform : NULL;
        sig->transform.below = is_above ? NULL : &crypto->transform;
        mkey->transform = has_sig && !is_above ? &sig->transform : &crypto->transform;
    }
    mkey->len = transform_length(mkey->transform, memory);
    mkey->length64 = false;
}

void mkey_parse(struct mkey *mkey)
{
    const struct prm_mkc *mkc = mkey->mkc;

    mkey->mode = mkey_mkc_mode(mkc);
    mkey->log_page = PRM_GET(mkc, mkc, log_page_size);
    mkey->variant = PRM_GET(mkc, mkc, mkey_7_0);
    mkey->rights = (PRM_GET(mkc, mkc, lr) ? MEM_LOCAL_READ : 0) |
                   (PRM_GET(mkc, mkc, lw) ? MEM_LOCAL_WRITE : 0) |
                   (PRM_GET(mkc, mkc, rr) ? MEM_REMOTE_READ : 0) |
                   (PRM_GET(mkc, mkc, rw) ? MEM_REMOTE_WRITE : 0) |
                   (PRM_GET(mkc, mkc, a) ? MEM_REMOTE_ATOMIC : 0);
    mkey->tunneled = PRM_GET(mkc, mkc, tunneled_atomic);
    mkey->free = PRM_GET(mkc, mkc, free);
    mkey->length64 = PRM_GET(mkc, mkc, length64);
    mkey->pdn = PRM_GET(mkc, mkc, pd);
    mkey->qpn = PRM_GET(mkc, mkc, qpn);
    mkey->start = mkey_is_device(mkey) ? 0 : PRM_GET(mkc, mkc, start_addr);
    mkey->len = PRM_GET(mkc, mkc, len);
    mkey->transform = NULL;
    if (mkey->sig) {
        mkey_stack_transforms(mkey);
    }
}

bool mkey_log_page_ok(uint8_t mode, uint32_t log_page)
{
    /* KLM ranges have lengths of their own; PA keys have no pages */
    return (mode != PRM_MKC_ACCESS_MODE_MTT && mode != PRM_MKC_ACCESS_MODE_KSM) ||
           (log_page >= 12 && log_page <= 62);
}

/* -- translation entries ---------------------------------------------------------------------- */

void mkey_set_xlt(struct hca *hca, struct mkey *mkey, uint32_t first, const void *xlt, uint32_t n,
                  bool pg_access)
{
    const struct prm_wqe_klm_seg *entry = xlt;
    const uint8_t *page = xlt;

    hca_spend(hca, n / HCA_PIECE_ENTRIES);
    if (mkey->mode == PRM_MKC_ACCESS_MODE_MTT) {
        for (uint32_t i = 0; i < n; i++, page += MTT_ENTRY_SIZE) {
            uint64_t ptag = prm_load64(page);

            if (!pg_access && ptag) {
                ptag |= MTT_RIGHTS;
            }
            /* bits 11:0 are flags; an entry without rights maps nothing */
            mkey->mtt[first + i] = ptag & MTT_RIGHTS ? (ptag & ~0xfffULL) | (ptag & MTT_RIGHTS) : 0;
        }
        return;
    }
    for (uint32_t i = 0; i < n; i++, entry++) {
        struct klm *klm = &mkey->klm[first + i];

        klm->count = PRM_GET(wqe_klm_seg, entry, byte_count);
        klm->key = PRM_GET(wqe_klm_seg, entry, mkey);
        klm->va = PRM_GET(wqe_klm_seg, entry, va);
    }
    if (mkey->mode == PRM_MKC_ACCESS_MODE_KLMS) {
        hca_spend(hca, klm_changed(mkey, first, n) / HCA_PIECE_ENTRIES);
    }
}

static uint64_t mkey_xlt_bytes(const struct mkey *mkey)
{
    size_t kept = mkey->mode == PRM_MKC_ACCESS_MODE_MTT ? sizeof(uint64_t) : sizeof(struct klm);

    return (uint64_t)mkey->capacity * kept;
}

/* Allocates the entries that mkc.translations_octword_size asks for. */
static enum syn mkey_xlt_alloc(struct hca *hca, struct mkey *mkey)
{
    uint64_t octwords = PRM_GET(mkc, mkey->mkc, translations_octword_size);
    size_t entry = xlt_entry_size(mkey);
    uint64_t entries;

    if (!entry || !octwords) {
        return SYN_OK;
    }
    octwords = (octwords + XLT_ALIGN_OCTWORDS - 1) / XLT_ALIGN_OCTWORDS * XLT_ALIGN_OCTWORDS;
    entries = octwords * OCTWORD / entry;
    if (entries > UINT32_MAX ||
        (mkey->mode == PRM_MKC_ACCESS_MODE_KLMS && entries > 1u << MKEY_LOG_MAX_KLM)) {
        return SYN_LIMIT;
    }
    mkey->capacity = entries;
    if (mkey_xlt_bytes(mkey) > XLT_MAX_BYTES) {
        return SYN_LIMIT;
    }
    mkey->xlt = ledger_alloc(&hca->memory, mkey_xlt_bytes(mkey));
    return mkey->xlt ? SYN_OK : SYN_NO_MEMORY;
}

/* -- object ----------------------------------------------------------------------------------- */

/* How many MTT entries a key needs to cover its range. */
static uint64_t mkey_mtt_needed(const struct mkey *mkey)
{
    uint64_t in_page = mkey->start & ((1ULL << mkey->log_page) - 1);

    return mkey->len > UINT64_MAX - in_page ? UINT64_MAX
           : mkey->len                      ? ((in_page + mkey->len - 1) >> mkey->log_page) + 1
                                            : 0;
}

/* Whether the key may have the room for a descriptor that it asks for. Drivers make such keys free,
 * and fill the descriptor in by UMR. */
static bool mkey_bsf_ok(const struct mkey *mkey)
{
    size_t room = mkey_bsf_room(mkey);

    if (!room) {
        return !PRM_GET(mkc, mkey->mkc, bsf_en);
    }
    return mkey->free &&
           room <= PRM_SIZE(bsf) + (PRM_GET(mkc, mkey->mkc, crypto_en) ? PRM_SIZE(crypto_bsf) : 0);
}

static enum syn mkey_sig_alloc(struct hca *hca, struct mkey *mkey)
{
    if (PRM_GET(mkc, mkey->mkc, crypto_en) && !crypto_is_there(hca)) {
        return SYN_MKEY_MODE;
    }
    if (!mkey_bsf_room(mkey)) {
        return SYN_OK;
    }
    mkey->sig = ledger_alloc(&hca->memory, sizeof(*mkey->sig));
    if (!mkey->sig) {
        return SYN_NO_MEMORY;
    }
    mkey->sig->transform.ops = &sig_ops;
    if (PRM_GET(mkc, mkey->mkc, crypto_en)) {
        mkey->crypto = ledger_alloc(&hca->memory, sizeof(*mkey->crypto));
        if (!mkey->crypto) {
            ledger_free(&hca->memory, mkey->sig, sizeof(*mkey->sig));
            mkey->sig = NULL;
            return SYN_NO_MEMORY;
        }
        mkey->crypto->transform.ops = &crypto_ops;
    }
    hca->transforms++;
    sig_sum_init();
    return SYN_OK;
}

static void mkey_sig_free(struct hca *hca, struct mkey *mkey)
{
    if (mkey->sig) {
        sig_end(hca, mkey->sig);
        ledger_free(&hca->memory, mkey->sig, sizeof(*mkey->sig));
        ledger_free(&hca->memory, mkey->crypto, sizeof(*mkey->crypto));
        hca->transforms--;
    }
}

static enum syn mkey_check_new(const struct hca *hca, const struct mkey *mkey, uint16_t uid,
                               size_t xlt_len, bool physical_ok)
{
    size_t entry = xlt_entry_size(mkey);
    /* nor may a user context choose a place in device memory, which belongs to the kernel */
    bool physical = mkey->mode == PRM_MKC_ACCESS_MODE_PA || mkey_is_device(mkey) ||
                    (mkey->mode == PRM_MKC_ACCESS_MODE_MTT && xlt_len && !physical_ok);

    if ((mkey->mode > PRM_MKC_ACCESS_MODE_KSM && !mkey_is_device(mkey)) || !mkey_bsf_ok(mkey) ||
        (mkey->tunneled && !hca->limits.tunneled)) {
        return SYN_MKEY_MODE;
    }
    if (uid && physical) {
        return SYN_MKEY_PHYSICAL;
    }
    if (!mkey_log_page_ok(mkey->mode, mkey->log_page)) {
        return SYN_MKEY_PAGE_SIZE;
    }
    if (xlt_len && !entry) {
        return SYN_MKEY_XLT;
    }
    if (mkey->mode == PRM_MKC_ACCESS_MODE_MTT && !mkey->free && !mkey->length64 &&
        mkey_mtt_needed(mkey) > xlt_len / entry) {
        return SYN_MKEY_XLT;
    }
    return SYN_OK;
}

/* A key of device memory lies in one allocation, which it references. */
static enum syn mkey_find_device(struct hca *hca, struct mkey *mkey)
{
    bool is_memic = mkey->mode == PRM_MKC_ACCESS_MODE_MEMIC;
    uint64_t at = PRM_GET(mkc, mkey->mkc, start_addr);
    void *found = mkey->length64 ? NULL
                  : is_memic     ? (void *)memic_find(hca, at, mkey->len)
                                 : (void *)sw_icm_find(hca, at, mkey->len);

    if (!found) {
        return SYN_MKEY_DEVICE;
    }
    mkey->space = is_memic ? MEM_SPACE_DEVICE : MEM_SPACE_SW_ICM;
    mkey->backing = found;
    obj_ref(&mkey->obj, found);
    return SYN_OK;
}

void mkey_drop(struct hca *hca, struct mkey *mkey)
{
    obj_unref(&mkey->obj, mkey->pd);
    obj_unref(&mkey->obj, mkey->backing);
    ledger_free(&hca->memory, mkey->xlt, mkey_xlt_bytes(mkey));
    mkey_sig_free(hca, mkey);
    obj_free(hca, &mkey->obj);
}

enum syn mkey_new(struct hca *hca, uint16_t uid, const struct prm_mkc *mkc, size_t xlt_len,
                  bool physical_ok, struct mkey **made)
{
    struct mkey *mkey = obj_new(hca, OBJ_MKEY, uid, sizeof(*mkey));
    size_t entry;
    enum syn syn;

    if (!mkey) {
        return SYN_NO_MEMORY;
    }
    memcpy(mkey->mkc, mkc, sizeof(mkey->mkc));
    mkey_parse(mkey);
    mkey->pd = obj_find(&hca->pds, mkey->pdn);
    obj_ref(&mkey->obj, mkey->pd);
    syn = !mkey->pd                     ? SYN_NO_PD
          : !uid_may_use(mkey->pd, uid) ? SYN_BAD_UID
                                        : mkey_check_new(hca, mkey, uid, xlt_len, physical_ok);
    if (!syn && mkey_is_device(mkey)) {
        syn = mkey_find_device(hca, mkey);
    }
    if (!syn) {
        syn = mkey_xlt_alloc(hca, mkey);
    }
    if (!syn) {
        syn = mkey_sig_alloc(hca, mkey);
    }
    entry = xlt_entry_size(mkey);
    if (!syn && entry && xlt_len / entry > mkey->capacity) {
        syn = SYN_MKEY_XLT;
    }
    if (syn) {
        mkey_drop(hca, mkey);
        return syn;
    }
    *made = mkey;
    return SYN_OK;
}

void mkey_keep_umem(struct mkey *mkey, struct umem *umem)
{
    mkey->backing = &umem->obj;
    obj_ref(&mkey->obj, mkey->backing);
}

void mkey_use_pg_access(struct mkey *mkey)
{
    mkey->pg_access = true;
}

void mkey_fill(struct hca *hca, struct mkey *mkey, size_t at, const void *xlt, size_t len)
{
    size_t entry = xlt_entry_size(mkey);

    mkey_set_xlt(hca, mkey, (uint32_t)(at / entry), xlt, (uint32_t)(len / entry), mkey->pg_access);
}

enum syn mkey_enter(struct hca *hca, struct mkey *mkey, uint32_t *index)
{
    if (!obj_insert(&hca->mkeys, &mkey->obj)) {
        mkey_drop(hca, mkey);
        return SYN_NO_MEMORY;
    }
    *index = mkey->obj.num;
    return SYN_OK;
}

enum syn mkey_create(struct hca *hca, uint16_t uid, const struct prm_mkc *mkc, const void *xlt,
                     size_t xlt_len, bool physical_ok, uint32_t *index)
{
    struct mkey *mkey;
    enum syn syn = mkey_new(hca, uid, mkc, xlt_len, physical_ok, &mkey);

    if (syn) {
        return syn;
    }
    if (xlt_len) {
        mkey_fill(hca, mkey, 0, xlt, xlt_len);
    }
    return mkey_enter(hca, mkey, index);
}

enum syn mkey_query(struct hca *hca, uint32_t index, struct prm_mkc *mkc)
{
    struct mkey *mkey = mkey_find(hca, index);

    if (!mkey) {
        return SYN_NO_MKEY;
    }
    memcpy(mkc, mkey->mkc, sizeof(mkey->mkc));
    return SYN_OK;
}

void mkey_query_list(struct hca *hca, uint16_t uid, uint32_t index, void *list, size_t len)
{
    const struct mkey *mkey = mkey_find(hca, index);
    struct prm_wqe_klm_seg *entry = list;
    size_t n = len / sizeof(*entry);

    if (!mkey || xlt_entry_size(mkey) != KLM_ENTRY_SIZE || !uid_owns(&mkey->obj, uid)) {
        return;
    }
    n = MIN(n, mkey->capacity);
    hca_spend(hca, n / HCA_PIECE_ENTRIES);
    for (size_t i = 0; i < n; i++, entry++) {
        PRM_SET(wqe_klm_seg, entry, byte_count, mkey->klm[i].count);
        PRM_SET(wqe_klm_seg, entry, mkey, mkey->klm[i].key);
        PRM_SET(wqe_klm_seg, entry, va, mkey->klm[i].va);
    }
}

/* Frees entries of the key from its end on. False: there are more, but the turn is used up. */
static bool mkey_xlt_trim(struct hca *hca, struct mkey *mkey)
{
    uint64_t bytes = mkey_xlt_bytes(mkey), entry = mkey->capacity ? bytes / mkey->capacity : 1;

    while (!ledger_trim(&hca->memory, mkey->xlt, &bytes)) {
        mkey->capacity = (uint32_t)(bytes / entry);
        mkey->round_len = 0;
        hca_spend(hca, LEDGER_TRIM_PAGES);
        if (!hca_has_room(hca)) {
            return false;
        }
    }
    return true;
}

bool mkey_trim(struct hca *hca, struct obj *obj)
{
    struct mkey *mkey = (struct mkey *)obj;

    mkey->free = true;
    mkey_changed(hca);
    return mkey_xlt_trim(hca, mkey);
}

enum syn mkey_destroy(struct hca *hca, uint16_t uid, uint32_t index)
{
    struct mkey *mkey = mkey_find(hca, index);

    if (!mkey) {
        return SYN_NO_MKEY;
    }
    if (!uid_owns(&mkey->obj, uid)) {
        return SYN_BAD_UID;
    }
    if (mkey->obj.refs) {
        return SYN_IN_USE;
    }
    if (!mkey_trim(hca, &mkey->obj)) {
        return SYN_AGAIN;
    }
    mkey_free(hca, &mkey->obj);
    return SYN_OK;
}

void mkey_free(struct hca *hca, struct obj *obj)
{
    struct mkey *mkey = (struct mkey *)obj;

    mkey_changed(hca);
    obj_remove(&hca->mkeys, obj);
    mkey_drop(hca, mkey);
}
