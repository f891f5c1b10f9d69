/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Says in words why a memory key refused an access (mkey_why() in mkey.h).
 *
 * The access is in hca->refused. The checks of mkey_access.c are made again in the same order, and
 * the first check that fails is named, with the values that it compares.
 */
#include <inttypes.h>
#include <stdarg.h>
#include "model/memory/mkey_priv.h"

static const char *const mkey_right_names[] = {
    "local read", "local write", "remote read", "remote write", "remote atomic",
};

enum mem_result mkey_refuse(struct hca *hca, const struct mem_refusal *refusal)
{
    hca->refused = *refusal;
    return (enum mem_result)refusal->result;
}

static void G_GNUC_PRINTF(2, 3) mkey_say(struct mkey_words *words, const char *fmt, ...)
{
    size_t len = strlen(words->text);
    va_list ap;

    va_start(ap, fmt);
    g_vsnprintf(words->text + len, sizeof(words->text) - len, fmt, ap);
    va_end(ap);
}

static void mkey_say_rights(struct mkey_words *words, unsigned rights)
{
    const char *comma = "";

    for (unsigned i = 0; i < G_N_ELEMENTS(mkey_right_names); i++) {
        if (rights >> i & 1) {
            mkey_say(words, "%s%s", comma, mkey_right_names[i]);
            comma = ", ";
        }
    }
    mkey_say(words, "%s", rights ? "" : "nothing");
}

/* "8 bytes at 0x1000 are", "1 byte at 0x1000 is" */
static void mkey_say_range(struct mkey_words *words, const struct mem_refusal *r)
{
    mkey_say(words, "%" PRIu64 " byte%s at 0x%" PRIx64 " %s", r->len, r->len == 1 ? "" : "s", r->va,
             r->len == 1 ? "is" : "are");
}

/* The key exists and allows the access as far as its own checks go. */
static void mkey_say_behind(struct hca *hca, struct mkey_words *words, const struct mem_refusal *r,
                            const char *kind)
{
    if (!r->access) {
        mkey_say(words, "%s 0x%x is not for invalidation by a peer", kind, r->key);
    } else if (r->result == MEM_BAD_KEY && mkey_find(hca, r->key >> 8)->transform) {
        mkey_say(words,
                 r->outer == MKEY_NONE ? "a signature value (PSV) of %s 0x%x is gone"
                                       : "%s 0x%x has signatures, so no list may name it",
                 kind, r->key);
    } else if (r->result == MEM_BAD_KEY) {
        mkey_say(words, "the lists of keys before %s 0x%x are more than %d deep", kind, r->key,
                 MKEY_MAX_DEPTH);
    } else if (r->access & MEM_REMOTE_WRITE && mkey_find(hca, r->key >> 8)->tunneled) {
        mkey_say(words,
                 "%s 0x%x takes only tunneled atomics: 16 bytes with an operation, for an aligned "
                 "word in one piece of its memory",
                 kind, r->key);
    } else if (r->access & MEM_REMOTE_ATOMIC) {
        mkey_say_range(words, r);
        mkey_say(words, " not aligned, or not in one piece of the memory of %s 0x%x", kind, r->key);
    } else {
        mkey_say_range(words, r);
        mkey_say(words, " not inside the list of %s 0x%x, which is too short", kind, r->key);
    }
}

static void mkey_say_key(struct hca *hca, const struct mem_refusal *r, struct mkey_words *words)
{
    const char *kind = r->qpn || !mkey_is_local(r->access) ? "rkey" : r->access ? "lkey" : "key";
    const struct mkey *mkey = mkey_find(hca, r->key >> 8);

    if (r->result == MEM_NO_ANSWER) {
        mkey_say(words,
                 "the memory of %s 0x%x does not answer: it was unmapped, protected or never there",
                 kind, r->key);
    } else if (r->result == MEM_FAULT) {
        mkey_say(words, "%s 0x%x has a page that is missing and will not come", kind, r->key);
    } else if (is_null_mkey(hca, r->key)) {
        mkey_say(words, "%s 0x%x is the null key, which allows only local access", kind, r->key);
    } else if (mkey_is_reserved_lkey(hca, r->key)) {
        mkey_say(words,
                 "%s 0x%x is the reserved lkey, which allows only local access by queues of the "
                 "kernel",
                 kind, r->key);
    } else if (!mkey) {
        mkey_say(words, "%s 0x%x does not exist", kind, r->key);
    } else if (mkey->variant != (r->key & 0xff)) {
        mkey_say(words, "%s 0x%x does not exist; the key with this index is 0x%x", kind, r->key,
                 mkey->obj.num << 8 | mkey->variant);
    } else if (mkey->free) {
        mkey_say(words, "%s 0x%x is free: it was invalidated, or is not registered", kind, r->key);
    } else if (r->qpn) {
        mkey_say(words, "%s 0x%x is bound to QP 0x%x; QP 0x%x may not use it", kind, r->key,
                 mkey->qpn, r->qpn);
    } else if (r->pdn != MKEY_ANY_PD && mkey->pdn != r->pdn) {
        mkey_say(words, "%s 0x%x is in PD 0x%x, but the access needs a key of PD 0x%x", kind,
                 r->key, mkey->pdn, r->pdn);
    } else if (r->access & ~(unsigned)mkey->rights) {
        mkey_say(words, "%s 0x%x does not allow ", kind, r->key);
        mkey_say_rights(words, r->access & ~(unsigned)mkey->rights);
        mkey_say(words, "; it allows ");
        mkey_say_rights(words, mkey->rights);
    } else if (r->access && !mkey_in_bounds(mkey, r->va, r->len)) {
        mkey_say_range(words, r);
        if (mkey->length64) {
            mkey_say(words, " beyond the last address, where %s 0x%x ends", kind, r->key);
        } else {
            mkey_say(words, " not inside %s 0x%x, which has %" PRIu64 " bytes at 0x%" PRIx64, kind,
                     r->key, mkey->len, mkey->start);
        }
    } else {
        mkey_say_behind(hca, words, r, kind);
    }
}

const char *mkey_why(struct hca *hca, struct mkey_words *words)
{
    const struct mem_refusal *r = &hca->refused;

    words->text[0] = 0;
    if (r->key == MKEY_NONE && r->result == MEM_BAD_BOUNDS) {
        mkey_say(words, "the list is shorter than the data");
    } else {
        mkey_say_key(hca, r, words);
    }
    if (r->outer != MKEY_NONE) {
        mkey_say(words, "; the list of key 0x%x names it", r->outer);
    }
    return words->text;
}
