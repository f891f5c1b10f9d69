/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Accesses memory through keys: checks, translation, and the copies between packets and host
 * memory.
 *
 * mkey_walk() goes through a range of a key piece by piece and hands each run of addresses to an
 * operation. It allocates nothing. It indexes a page list and searches a KLM list by halving. It
 * follows keys behind keys to a fixed depth, so that a list that names itself ends.
 */
#include "model/memory/mkey_priv.h"
#include "model/memory/number.h"

/* The operation on each contiguous run of memory. */
struct mem_op {
    enum {
        OP_READ,
        OP_WRITE,
        OP_PLACE
    } kind;
    uint8_t *buf;           /* next byte; OP_PLACE: not used */
    struct mem_place place; /* OP_PLACE: receives where the range is; it must be one run */
    bool is_null;           /* OP_PLACE: the range is in the null key */
    bool is_noted;          /* the refusal is noted for mkey_why() already */
};

static enum mem_result mkey_walk(struct hca *hca, const struct mkey *mkey, uint64_t va,
                                 uint64_t len, struct mem_op *op, unsigned depth);

static enum mem_result mkey_run_op(struct hca *hca, struct mem_place at, uint64_t len,
                                   struct mem_op *op)
{
    bool ok = true;

    switch (op->kind) {
    case OP_READ:
        ok = mem_place_read(hca, at, op->buf, len);
        op->buf += len;
        break;
    case OP_WRITE:
        ok = mem_place_write(hca, at, op->buf, len);
        op->buf += len;
        break;
    case OP_PLACE:
        op->place = at;
        break;
    }
    return ok ? MEM_OK : MEM_NO_ANSWER;
}

static enum mem_result mkey_run_bus(struct hca *hca, uint64_t addr, uint64_t len, struct mem_op *op)
{
    return mkey_run_op(hca, (struct mem_place){MEM_SPACE_HOST, addr}, len, op);
}

static void mkey_null_op(uint64_t len, struct mem_op *op)
{
    switch (op->kind) {
    case OP_READ:
        memset(op->buf, 0, len);
        op->buf += len;
        break;
    case OP_WRITE:
        op->buf += len;
        break;
    case OP_PLACE:
        op->is_null = true;
        break;
    }
}

/* -- the cache of key runs -------------------------------------------------------------------- */

/*
 * A message makes an access for each of its packets, and the next message often goes to the same
 * memory. Therefore the result of a key's checks and page walk is cached: one run of pages for each
 * of a few keys, as in a card's translation buffer. Any change of any key empties the cache
 * (mkey_changed()).
 */

static inline struct key_run *mkey_run_of(struct hca *hca, uint32_t key)
{
    return &hca->key_runs[(key >> 8) % HCA_KEY_RUNS];
}

/* Whether the whole range is in the run, and the access is one that the key allows. */
static inline bool mkey_run_has(const struct key_run *run, uint32_t key, uint32_t pdn, uint64_t va,
                                uint64_t len, unsigned access)
{
    return run->key == key && va - run->va < run->len && len <= run->len - (va - run->va) &&
           !(access & ~(unsigned)run->rights) && (pdn == run->pdn || pdn == MKEY_ANY_PD);
}

void mkey_changed(struct hca *hca)
{
    memset(hca->key_runs, 0, sizeof(hca->key_runs));
}

/* -- checks ----------------------------------------------------------------------------------- */

/* The reserved lkey reaches all of memory. Only PDs of the kernel may use it, and only for local
 * access. */
static bool mkey_reserved_lkey_ok(struct hca *hca, uint32_t pdn, unsigned access)
{
    const struct obj *pd = obj_find(&hca->pds, pdn);
    bool kernel = pdn == MKEY_ANY_PD || (pd && pd->uid == 0);

    return kernel && mkey_is_local(access);
}

/* The key if the access may use it, else NULL. */
static const struct mkey *mkey_lookup(struct hca *hca, uint32_t key, uint32_t pdn, unsigned access)
{
    const struct mkey *mkey = mkey_find(hca, key >> 8);

    if (!mkey || mkey->free || mkey->variant != (key & 0xff) ||
        (pdn != MKEY_ANY_PD && mkey->pdn != pdn) || access & ~(unsigned)mkey->rights) {
        return NULL;
    }
    return mkey;
}

static enum mem_result mkey_judge(struct hca *hca, uint32_t key, uint32_t pdn, uint64_t va,
                                  uint64_t len, unsigned access)
{
    const struct mkey *mkey;

    if (len == 0 || mkey_run_has(mkey_run_of(hca, key), key, pdn, va, len, access)) {
        return MEM_OK;
    }
    if (is_null_mkey(hca, key)) {
        return mkey_is_local(access) ? MEM_OK : MEM_BAD_KEY;
    }
    if (mkey_is_reserved_lkey(hca, key)) {
        return mkey_reserved_lkey_ok(hca, pdn, access) ? MEM_OK : MEM_BAD_KEY;
    }
    mkey = mkey_lookup(hca, key, pdn, access);
    if (!mkey) {
        return MEM_BAD_KEY;
    }
    return mkey_in_bounds(mkey, va, len) ? MEM_OK : MEM_BAD_BOUNDS;
}

/* Notes a refused access for mkey_why(). Returns result. */
static __attribute__((cold)) enum mem_result
mkey_refuse_access(struct hca *hca, enum mem_result result, uint32_t key, uint32_t pdn, uint64_t va,
                   uint64_t len, unsigned access)
{
    return mkey_refuse(hca, &(struct mem_refusal){.result = (uint8_t)result,
                                                  .access = (uint8_t)access,
                                                  .key = key,
                                                  .pdn = pdn,
                                                  .va = va,
                                                  .len = len});
}

enum mem_result mkey_check(struct hca *hca, uint32_t key, uint32_t pdn, uint64_t va, uint64_t len,
                           unsigned access)
{
    enum mem_result result = mkey_judge(hca, key, pdn, va, len, access);

    return G_LIKELY(result == MEM_OK) ? MEM_OK
                                      : mkey_refuse_access(hca, result, key, pdn, va, len, access);
}

bool mkey_allows_qp(struct hca *hca, uint32_t key, uint32_t qpn)
{
    const struct mkey *mkey = mkey_find(hca, key >> 8);

    if (!mkey || mkey->qpn == 0xffffff || mkey->qpn == qpn) {
        return true;
    }
    mkey_refuse(hca, &(struct mem_refusal){.result = MEM_BAD_KEY, .key = key, .qpn = qpn});
    return false;
}

/* -- translation ------------------------------------------------------------------------------ */

/* Called when a page is missing, or does not allow the access. If the function has a pager,
 * describes the access in hca->fault and returns MEM_FAULT. */
static enum mem_result mkey_page_missing(struct hca *hca, const struct mkey *mkey, uint64_t va,
                                         uint64_t len, const struct mem_op *op)
{
    if (!hca->pager) {
        return MEM_NO_ANSWER;
    }
    hca->fault = (struct mem_fault){.key = mkey->obj.num << 8 | mkey->variant,
                                    .va = va,
                                    .len = len,
                                    .is_write = op->kind != OP_READ};
    return MEM_FAULT;
}

/* Whether memory of the key that does not answer is a page that is missing. */
static bool mkey_may_go(const struct hca *hca, const struct mkey *mkey)
{
    return mkey->pg_access && hca->ops->pages_may_go;
}

/* The part of a range that lies in the first page of the range. */
struct mkey_page_run {
    uint64_t page; /* index of the page in the list */
    uint64_t offset, len;
};

/* in_page: offset of the key's first byte in its first page. False: the list has no such page. */
static inline bool mkey_page_run(const struct mkey *mkey, uint64_t in_page, uint64_t va,
                                 uint64_t len, struct mkey_page_run *run)
{
    uint64_t page_size = 1ULL << mkey->log_page;
    uint64_t pos = va - mkey->start + in_page;

    run->page = pos >> mkey->log_page;
    run->offset = pos & (page_size - 1);
    run->len = MIN(len, page_size - run->offset);
    return run->page < mkey->capacity;
}

/* The accesses (enum mem_access) that a page with this entry allows. */
static inline uint8_t mkey_page_rights(uint64_t mtt)
{
    return (mtt & MTT_READ ? MEM_LOCAL_READ | MEM_REMOTE_READ : 0) |
           (mtt & MTT_WRITE ? MEM_LOCAL_WRITE | MEM_REMOTE_WRITE : 0) |
           ((mtt & MTT_RIGHTS) == MTT_RIGHTS ? MEM_REMOTE_ATOMIC : 0);
}

/* The accesses for which a run of the key may stand: RDMA WRITEs to tunneled keys are no writes. */
static inline uint8_t mkey_run_rights(const struct mkey *mkey)
{
    return mkey->tunneled ? mkey->rights & (uint8_t)~MEM_REMOTE_WRITE : mkey->rights;
}

/* The most pages that a cached run covers. */
#define RUN_PAGES 16

/* Caches the run of pages that begins with the page of va. va is in the key's bounds. */
static void mkey_keep_run(struct hca *hca, uint32_t key, const struct mkey *mkey, uint64_t va)
{
    uint64_t page_size = 1ULL << mkey->log_page, pages = 1, before;
    const uint64_t *mtt = mkey->mtt;
    struct mkey_page_run at;

    if (mkey_is_device(mkey)) { /* one piece of device memory */
        *mkey_run_of(hca, key) = (struct key_run){
            .key = key,
            .pdn = mkey->pdn,
            .rights = mkey_run_rights(mkey),
            .space = mkey->space,
            .len = mkey->len,
            .address = PRM_GET(mkc, mkey->mkc, start_addr),
        };
        return;
    }
    if (mkey->mode != PRM_MKC_ACCESS_MODE_MTT || mkey->length64 ||
        !mkey_page_run(mkey, mkey->start & (page_size - 1), va, 1, &at) ||
        !(mtt[at.page] & MTT_RIGHTS)) {
        return;
    }
    while (pages < RUN_PAGES && at.page + pages < mkey->capacity &&
           mtt[at.page + pages] == mtt[at.page] + pages * page_size) {
        pages++;
    }
    before = MIN(at.offset, va - mkey->start);
    *mkey_run_of(hca, key) = (struct key_run){
        .key = key,
        .pdn = mkey->pdn,
        .rights = mkey_run_rights(mkey) & mkey_page_rights(mtt[at.page]),
        .space = mkey->space,
        .va = va - before,
        .len = MIN(pages * page_size - at.offset + before, mkey->len - (va - before - mkey->start)),
        .address = (mtt[at.page] & ~MTT_RIGHTS) + at.offset - before,
    };
}

static enum mem_result mkey_walk_mtt(struct hca *hca, const struct mkey *mkey, uint64_t va,
                                     uint64_t len, struct mem_op *op)
{
    uint64_t page_size = 1ULL << mkey->log_page;
    uint64_t in_page = mkey->start & (page_size - 1);
    uint64_t needs = op->kind == OP_READ ? MTT_READ : op->kind == OP_WRITE ? MTT_WRITE : MTT_RIGHTS;
    struct mkey_page_run run;

    while (len) {
        enum mem_result result;
        uint64_t pa;

        if (!mkey_page_run(mkey, in_page, va, len, &run)) {
            return MEM_BAD_BOUNDS;
        }
        pa = mkey->mtt[run.page];
        if ((pa & needs) != needs) {
            return mkey_page_missing(hca, mkey, va, len, op);
        }
        while (run.len < len && run.page + 1 < mkey->capacity &&
               mkey->mtt[run.page + 1] == mkey->mtt[run.page] + page_size) {
            run.page++;
            run.len += MIN(len - run.len, page_size);
        }
        result = mkey_run_op(hca, (struct mem_place){mkey->space, (pa & ~MTT_RIGHTS) + run.offset},
                             run.len, op);
        if (result) {
            return mkey_may_go(hca, mkey) ? mkey_page_missing(hca, mkey, va, len, op) : result;
        }
        if (op->kind == OP_PLACE && run.len < len) {
            return MEM_BAD_BOUNDS;
        }
        va += run.len;
        len -= run.len;
    }
    return MEM_OK;
}

/* -- transforms ------------------------------------------------------------------------------- */

enum mem_result transform_memory(struct transform_access *access, uint64_t offset, uint8_t *buf,
                                 uint64_t len, bool is_write)
{
    struct mem_op op = {.kind = is_write ? OP_WRITE : OP_READ, .buf = buf};
    enum mem_result result =
        mkey_walk(access->hca, access->mkey, access->mkey->start + offset, len, &op, 1);

    access->is_noted |= op.is_noted;
    return result;
}

/* Accesses a range of a key's wire domain that is within bounds. Atomics are refused: the words of
 * the wire domain have no places. */
static __attribute__((cold)) enum mem_result mkey_run_transforms(struct hca *hca,
                                                                 const struct mkey *mkey,
                                                                 uint64_t va, uint64_t len,
                                                                 struct mem_op *op)
{
    struct transform_access access = {.hca = hca, .mkey = mkey, .is_write = op->kind == OP_WRITE};
    struct transform *top = mkey->transform;
    enum mem_result result;

    if (op->kind == OP_PLACE) {
        return MEM_BAD_BOUNDS;
    }
    result = top->ops->run(&access, top, va - mkey->start, op->buf, len);
    op->is_noted |= access.is_noted;
    op->buf += len;
    return result;
}

/* Refuses an access to a key that another key's list names. */
static __attribute__((cold)) enum mem_result
mkey_refuse_inner(struct hca *hca, enum mem_result result, const struct mkey *outer, uint32_t key,
                  uint64_t va, uint64_t len, struct mem_op *op)
{
    op->is_noted = true;
    return mkey_refuse(
        hca, &(struct mem_refusal){.result = (uint8_t)result,
                                   .access = op->kind == OP_READ ? MEM_LOCAL_READ : MEM_LOCAL_WRITE,
                                   .key = key,
                                   .pdn = outer->pdn,
                                   .outer = outer->obj.num << 8 | outer->variant,
                                   .va = va,
                                   .len = len});
}

/* Accesses a range of a key that another key's list names. The outer key's rights have been
 * checked. The inner key must allow the same access as a local access in the outer key's PD. */
static enum mem_result mkey_walk_inner(struct hca *hca, const struct mkey *outer, uint32_t key,
                                       uint64_t va, uint64_t len, struct mem_op *op, unsigned depth)
{
    unsigned access = op->kind == OP_READ ? MEM_LOCAL_READ : MEM_LOCAL_WRITE;
    const struct mkey *inner;

    if (is_null_mkey(hca, key)) {
        mkey_null_op(len, op);
        return MEM_OK;
    }
    if (mkey_is_reserved_lkey(hca, key)) {
        return mkey_reserved_lkey_ok(hca, outer->pdn, access)
                   ? mkey_run_bus(hca, va, len, op)
                   : mkey_refuse_inner(hca, MEM_BAD_KEY, outer, key, va, len, op);
    }
    inner = mkey_lookup(hca, key, outer->pdn, access);
    /* A list may not name a key with transforms. It could name itself in this way. */
    if (!inner || (depth >= MKEY_MAX_DEPTH && mkey_has_list(inner)) || inner->transform) {
        return mkey_refuse_inner(hca, MEM_BAD_KEY, outer, key, va, len, op);
    }
    if (!mkey_in_bounds(inner, va, len)) {
        return mkey_refuse_inner(hca, MEM_BAD_BOUNDS, outer, key, va, len, op);
    }
    return mkey_walk(hca, inner, va, len, op, depth + 1);
}

/* Unlike a page list, a KSM list begins with the key's first byte, whatever the address of that
 * byte. UCX relies on this: it shifts a key's addresses by some bytes (its atomic keys). Linux
 * takes only page addresses for a KSM.
 *
 * In a list of the kernel's, the null key stands for a child key that does not exist yet: its
 * implicit on-demand regions begin with a list full of it (driver: mlx5_ib_alloc_implicit_mr()). */
static enum mem_result mkey_walk_ksm(struct hca *hca, const struct mkey *mkey, uint64_t va,
                                     uint64_t len, struct mem_op *op, unsigned depth)
{
    struct mkey_page_run run;

    while (len) {
        const struct klm *klm;
        enum mem_result result;

        if (!mkey_page_run(mkey, 0, va, len, &run) || (op->kind == OP_PLACE && run.len < len)) {
            return MEM_BAD_BOUNDS;
        }
        klm = &mkey->klm[run.page];
        if (is_null_mkey(hca, klm->key) && hca->pager && mkey->obj.uid == 0) {
            return mkey_page_missing(hca, mkey, va, len, op);
        }
        result = mkey_walk_inner(hca, mkey, klm->key, klm->va + run.offset, run.len, op, depth);
        if (result) {
            return result;
        }
        va += run.len;
        len -= run.len;
    }
    return MEM_OK;
}

/* Finds the range that holds byte *offset of a round. The round must have that byte. *offset
 * becomes the offset in the range. */
static const struct klm *mkey_klm_search(const struct mkey *mkey, uint64_t *offset)
{
    uint32_t before = 0;

    for (uint32_t step = 1u << (31 - __builtin_clz(mkey->capacity)); step; step >>= 1) {
        uint64_t bytes;

        if (before + step > mkey->capacity) {
            continue;
        }
        bytes = klm_bytes(mkey, mkey->klm[before + step - 1].sum);
        if (bytes <= *offset) {
            *offset -= bytes;
            before += step;
        }
    }
    return &mkey->klm[before];
}

static enum mem_result mkey_walk_klm(struct hca *hca, const struct mkey *mkey, uint64_t va,
                                     uint64_t len, struct mem_op *op, unsigned depth)
{
    uint64_t pos = va - mkey->start;

    while (len) {
        uint64_t round = mkey->round_len ? pos / mkey->round_len : 0;
        uint64_t at = mkey->round_len ? pos % mkey->round_len : 0;
        const struct klm *range;
        enum mem_result result;
        uint64_t run;

        if (!mkey->round_len || round >= mkey->rounds) {
            return MEM_BAD_BOUNDS;
        }
        hca_spend(hca, 1);
        range = mkey_klm_search(mkey, &at);
        run = MIN(len, klm_bytes(mkey, klm_halves(range->count)) - at);
        if (op->kind == OP_PLACE && run < len) {
            return MEM_BAD_BOUNDS;
        }
        if (mkey->repeat) {
            at += round * (range->count >> 16);
        }
        result = mkey_walk_inner(hca, mkey, range->key, range->va + at, run, op, depth);
        if (result) {
            return result;
        }
        pos += run;
        len -= run;
    }
    return MEM_OK;
}

/* Walks a range that is within the key's bounds. */
static enum mem_result mkey_walk(struct hca *hca, const struct mkey *mkey, uint64_t va,
                                 uint64_t len, struct mem_op *op, unsigned depth)
{
    switch (mkey->mode) {
    case PRM_MKC_ACCESS_MODE_PA:
        return mkey_run_op(hca, (struct mem_place){mkey->space, va}, len, op);
    case PRM_MKC_ACCESS_MODE_MEMIC:
    case PRM_MKC_ACCESS_MODE_SW_ICM:
        return mkey_run_op(
            hca, (struct mem_place){mkey->space, PRM_GET(mkc, mkey->mkc, start_addr) + va}, len,
            op);
    case PRM_MKC_ACCESS_MODE_MTT:
        return mkey_walk_mtt(hca, mkey, va, len, op);
    case PRM_MKC_ACCESS_MODE_KLMS:
        return mkey_walk_klm(hca, mkey, va, len, op, depth);
    case PRM_MKC_ACCESS_MODE_KSM:
        return mkey_walk_ksm(hca, mkey, va, len, op, depth);
    default:
        return MEM_BAD_KEY;
    }
}

enum mem_result mkey_find_place(struct hca *hca, const struct mkey *mkey, uint64_t va, uint64_t len,
                                struct mem_place *place, bool *is_null)
{
    struct mem_op op = {.kind = OP_PLACE};
    enum mem_result result =
        mkey->transform ? MEM_BAD_BOUNDS : mkey_walk(hca, mkey, va, len, &op, 1);

    *place = op.place;
    *is_null = op.is_null;
    return result;
}

/* Called when the memory of a cached run does not answer. */
static __attribute__((cold)) enum mem_result mkey_run_unanswered(struct hca *hca, uint32_t key,
                                                                 uint64_t va, uint64_t len,
                                                                 const struct mem_op *op)
{
    const struct mkey *mkey = mkey_find(hca, key >> 8);

    return mkey && mkey_may_go(hca, mkey) ? mkey_page_missing(hca, mkey, va, len, op)
                                          : MEM_NO_ANSWER;
}

/* Accesses a range that is not in a cached run. len is not 0. */
static enum mem_result access_uncached(struct hca *hca, uint32_t key, uint32_t pdn, uint64_t va,
                                       uint64_t len, unsigned access, struct mem_op *op)
{
    const struct mkey *mkey;

    if (is_null_mkey(hca, key)) {
        if (!mkey_is_local(access)) {
            return MEM_BAD_KEY;
        }
        mkey_null_op(len, op);
        return MEM_OK;
    }
    if (mkey_is_reserved_lkey(hca, key)) {
        return mkey_reserved_lkey_ok(hca, pdn, access) ? mkey_run_bus(hca, va, len, op)
                                                       : MEM_BAD_KEY;
    }
    mkey = mkey_lookup(hca, key, pdn, access);
    if (!mkey) {
        return MEM_BAD_KEY;
    }
    if (!mkey_in_bounds(mkey, va, len)) {
        return MEM_BAD_BOUNDS;
    }
    if (G_UNLIKELY(mkey->tunneled) && access & MEM_REMOTE_WRITE && op->kind == OP_WRITE) {
        return mkey_tunneled(hca, mkey, va, op->buf, len);
    }
    if (G_UNLIKELY(mkey->transform)) {
        return mkey_run_transforms(hca, mkey, va, len, op);
    }
    mkey_keep_run(hca, key, mkey, va);
    return mkey_walk(hca, mkey, va, len, op, 1);
}

/* Accesses a range of a key with all checks. A cached run stands for them. */
static inline enum mem_result access_checked(struct hca *hca, uint32_t key, uint32_t pdn,
                                             uint64_t va, uint64_t len, unsigned access,
                                             struct mem_op *op)
{
    const struct key_run *run = mkey_run_of(hca, key);

    if (len == 0) {
        return MEM_OK;
    }
    if (G_LIKELY(mkey_run_has(run, key, pdn, va, len, access))) {
        enum mem_result result = mkey_run_op(
            hca, (struct mem_place){run->space, run->address + (va - run->va)}, len, op);

        return G_LIKELY(result == MEM_OK) ? MEM_OK : mkey_run_unanswered(hca, key, va, len, op);
    }
    return access_uncached(hca, key, pdn, va, len, access, op);
}

static inline enum mem_result access_key(struct hca *hca, uint32_t key, uint32_t pdn, uint64_t va,
                                         uint64_t len, unsigned access, struct mem_op *op)
{
    enum mem_result result = access_checked(hca, key, pdn, va, len, access, op);

    if (G_UNLIKELY(result != MEM_OK) && !op->is_noted) {
        mkey_refuse_access(hca, result, key, pdn, va, len, access);
    }
    return result;
}

enum mem_result mkey_read(struct hca *hca, uint32_t key, uint32_t pdn, uint64_t va, void *buf,
                          size_t len, unsigned access)
{
    struct mem_op op = {.kind = OP_READ, .buf = buf};

    return access_key(hca, key, pdn, va, len, access, &op);
}

enum mem_result mkey_write(struct hca *hca, uint32_t key, uint32_t pdn, uint64_t va,
                           const void *buf, size_t len, unsigned access)
{
    struct mem_op op = {.kind = OP_WRITE, .buf = (uint8_t *)(uintptr_t)buf};

    return access_key(hca, key, pdn, va, len, access, &op);
}

/* -- atomics ---------------------------------------------------------------------------------- */

static enum mem_result mkey_atomic_place(struct hca *hca, uint32_t key, uint32_t pdn, uint64_t va,
                                         size_t len, struct mem_op *op)
{
    *op = (struct mem_op){.kind = OP_PLACE};
    if (va % len == 0) {
        enum mem_result result = access_key(hca, key, pdn, va, len, MEM_REMOTE_ATOMIC, op);

        if (result || op->is_null || op->place.address % len == 0) {
            return result;
        }
    }
    return mkey_refuse_access(hca, MEM_BAD_BOUNDS, key, pdn, va, len, MEM_REMOTE_ATOMIC);
}

/* Called when the memory at the place of an atomic does not answer. If its page is missing, a read
 * of the same bytes finds the same. Else notes the atomic for mkey_why(). */
static __attribute__((cold)) enum mem_result
mkey_atomic_unanswered(struct hca *hca, uint32_t key, uint32_t pdn, uint64_t va, size_t len)
{
    uint8_t bytes[64];
    struct mem_op op = {.kind = OP_READ, .buf = bytes};

    if (hca->ops->pages_may_go && len <= sizeof(bytes) &&
        access_key(hca, key, pdn, va, len, MEM_REMOTE_ATOMIC, &op) == MEM_FAULT) {
        hca->fault.is_write = true;
        return MEM_FAULT;
    }
    return mkey_refuse_access(hca, MEM_NO_ANSWER, key, pdn, va, len, MEM_REMOTE_ATOMIC);
}

static inline enum mem_result mkey_atomic_end(struct hca *hca, enum mem_result result, uint32_t key,
                                              uint32_t pdn, uint64_t va, size_t len)
{
    return G_LIKELY(result != MEM_NO_ANSWER) ? result
                                             : mkey_atomic_unanswered(hca, key, pdn, va, len);
}

/* If CPUs change the word too often, the result is MEM_BUSY: the device treats the request as lost,
 * and the sender repeats it. So the HCA can do other work meanwhile. */
static enum mem_result mkey_atomic_word(struct hca *hca, struct mem_place at, size_t len,
                                        struct host_atomic *op, uint64_t *original)
{
    if (!mem_place_atomic(hca, at, len, op)) {
        return MEM_NO_ANSWER;
    }
    if (op->lost) {
        return MEM_BUSY;
    }
    *original = op->held;
    return MEM_OK;
}

enum mem_result mkey_cmp_swap(struct hca *hca, uint32_t key, uint32_t pdn, uint64_t va,
                              uint64_t compare, uint64_t swap, uint64_t *original)
{
    struct mem_op op;
    enum mem_result result = mkey_atomic_place(hca, key, pdn, va, 8, &op);

    *original = 0;
    if (result || op.is_null) {
        return result;
    }
    result = mkey_atomic_word(hca, op.place, 8,
                              &(struct host_atomic){
                                  .kind = HOST_ATOMIC_CMP_SWAP,
                                  .operand = swap,
                                  .compare = compare,
                              },
                              original);
    return mkey_atomic_end(hca, result, key, pdn, va, 8);
}

enum mem_result mkey_fetch_add(struct hca *hca, uint32_t key, uint32_t pdn, uint64_t va,
                               uint64_t add, uint64_t *original)
{
    struct mem_op op;
    enum mem_result result = mkey_atomic_place(hca, key, pdn, va, 8, &op);

    *original = 0;
    if (result || op.is_null) {
        return result;
    }
    result = mkey_atomic_word(
        hca, op.place, 8, &(struct host_atomic){.kind = HOST_ATOMIC_ADD, .operand = add}, original);
    return mkey_atomic_end(hca, result, key, pdn, va, 8);
}

/* Converts a number between the byte order of packets and the host's byte order. */
static void mkey_number_copy(uint8_t *to, const uint8_t *from, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        to[i] = from[G_BYTE_ORDER == G_LITTLE_ENDIAN ? len - 1 - i : i];
    }
}

struct masked_word {
    enum masked_op masked;
    uint64_t operands[MASKED_OPERAND_WORDS];
};

static uint64_t mkey_compute_word(const void *with, uint64_t held)
{
    const struct masked_word *word = with;

    return masked_compute_word(word->masked, word->operands, held);
}

/* An operation on 4 or 8 bytes, done by the host's own atomics. */
static enum mem_result mkey_masked_word(struct hca *hca, struct mem_place at, enum masked_op masked,
                                        size_t len, const uint8_t *operands, uint8_t *original)
{
    struct masked_word word = {.masked = masked};
    enum mem_result result;
    uint64_t held = 0;

    for (size_t i = 0; i < masked_operand_bytes(masked, len) / len; i++) {
        word.operands[i] = number_load(operands + i * len, len);
    }
    result = mkey_atomic_word(hca, at, len,
                              &(struct host_atomic){
                                  .kind = HOST_ATOMIC_COMPUTE,
                                  .compute = mkey_compute_word,
                                  .with = &word,
                                  .masked = masked,
                                  .operands = word.operands,
                              },
                              &held);
    if (result == MEM_OK) {
        number_store(original, held, len);
    }
    return result;
}

static enum mem_result mkey_masked_bytes(struct hca *hca, struct mem_place at,
                                         enum masked_op masked, size_t len, const uint8_t *operands,
                                         uint8_t *original)
{
    uint8_t memory[MASKED_MAX], made[MASKED_MAX];

    if (!mem_place_read(hca, at, memory, len)) {
        return MEM_NO_ANSWER;
    }
    mkey_number_copy(original, memory, len);
    if (!masked_compute(masked, len, operands, original, made)) {
        return MEM_OK;
    }
    mkey_number_copy(memory, made, len);
    return mem_place_write(hca, at, memory, len) ? MEM_OK : MEM_NO_ANSWER;
}

enum mem_result mkey_masked(struct hca *hca, uint32_t key, uint32_t pdn, uint64_t va,
                            enum masked_op masked, size_t len, const uint8_t *operands,
                            uint8_t *original)
{
    struct mem_op op;
    enum mem_result result = mkey_atomic_place(hca, key, pdn, va, len, &op);

    memset(original, 0, len);
    if (result || op.is_null) {
        return result;
    }
    result = len <= sizeof(uint64_t)
                 ? mkey_masked_word(hca, op.place, masked, len, operands, original)
                 : mkey_masked_bytes(hca, op.place, masked, len, operands, original);
    return mkey_atomic_end(hca, result, key, pdn, va, len);
}

/* -- lists ------------------------------------------------------------------------------------ */

static enum mem_result sge_access(struct hca *hca, const struct sge *list, unsigned n, uint32_t pdn,
                                  struct sge_cursor *next, uint64_t offset, size_t len,
                                  unsigned access, struct mem_op *op)
{
    if (offset < next->base) {
        *next = (struct sge_cursor){0};
    }
    while (len) {
        const struct sge *sge = &list[next->index];
        enum mem_result result;
        uint64_t at;
        size_t run;

        if (next->index >= n) {
            return mkey_refuse(hca, &(struct mem_refusal){.result = MEM_BAD_BOUNDS, .len = len});
        }
        at = offset - next->base;
        if (at >= sge->len) {
            next->base += sge->len;
            next->index++;
            continue;
        }
        run = MIN((uint64_t)len, sge->len - at);
        result = access_key(hca, sge->lkey, pdn, sge->va + at, run, access, op);
        if (result) {
            return result;
        }
        offset += run;
        len -= run;
    }
    return MEM_OK;
}

void mkey_list_transform(struct hca *hca, struct sge *list, unsigned n, uint64_t *len)
{
    for (struct sge *sge = list; sge < list + n; sge++) {
        const struct mkey *mkey = mkey_find(hca, sge->lkey >> 8);
        uint64_t first, end;

        if (!mkey || !mkey->transform || mkey_is_encrypted(mkey) || sge->va < mkey->start ||
            sge->va - mkey->start > UINT64_MAX / 4) {
            continue;
        }
        first = transform_of_element(mkey->transform, sge->va - mkey->start);
        end = transform_of_element(mkey->transform, sge->va - mkey->start + sge->len);
        if (end - first <= UINT32_MAX) {
            *len += end - first - sge->len;
            sge->va = mkey->start + first;
            sge->len = (uint32_t)(end - first);
        }
    }
}

bool sge_lacks_key(struct hca *hca, const struct sge *list, unsigned n, uint32_t pdn)
{
    uint8_t byte;

    for (unsigned i = 0; i < n; i++) {
        if (mkey_read(hca, list[i].lkey, pdn, list[i].va, &byte, 1, MEM_LOCAL_READ) ==
            MEM_BAD_KEY) {
            return true;
        }
    }
    return false;
}

enum mem_result sge_gather(struct hca *hca, const struct sge *list, unsigned n, uint32_t pdn,
                           struct sge_cursor *next, uint64_t offset, void *buf, size_t len)
{
    struct mem_op op = {.kind = OP_READ, .buf = buf};

    return sge_access(hca, list, n, pdn, next, offset, len, MEM_LOCAL_READ, &op);
}

enum mem_result sge_scatter(struct hca *hca, const struct sge *list, unsigned n, uint32_t pdn,
                            struct sge_cursor *next, uint64_t offset, const void *buf, size_t len)
{
    struct mem_op op = {.kind = OP_WRITE, .buf = (uint8_t *)(uintptr_t)buf};

    return sge_access(hca, list, n, pdn, next, offset, len, MEM_LOCAL_WRITE, &op);
}
