/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a memory key is made of, for model/mkey*.c only.
 *
 * mkc is the truth; the fields below it are read from it by mkey_parse() after every change.
 * Translation entries are kept in host order: MTTs as bus addresses with MTT_PRESENT, KLMs and KSMs
 * as struct klm. A KLM list is laid out as rounds of ranges so that both the plain and the
 * interleaved form are found by one search (model/memory/klm.c).
 */
#ifndef HCASIM_MODEL_MKEY_PRIV_H
#define HCASIM_MODEL_MKEY_PRIV_H

#include "model/memory/mkey.h"
#include "model/memory/place.h"
#include "prm/prm.h"

#define MTT_PRESENT    1ULL /* in an entry that was written */
#define MTT_ENTRY_SIZE 8
#define KLM_ENTRY_SIZE PRM_SIZE(wqe_klm_seg)
#define OCTWORD        16

struct klm {
    uint32_t count; /* dword 0: bytes of the range; stride and bytes of an interleaved source */
    uint32_t key;   /* dword 1 */
    uint64_t va;    /* dwords 2 and 3 */
    uint64_t sum;   /* klm_halves() of this range and of some before it (model/memory/klm.c) */
};

struct mkey {
    struct obj obj;
    struct prm_mkc mkc[1];

    uint8_t mode; /* PRM_MKC_ACCESS_MODE_ */
    uint8_t log_page;
    uint8_t variant;
    uint8_t rights; /* enum mem_access */
    bool free, length64;
    uint8_t space;  /* enum mem_space_id: where its addresses are */
    bool on_demand; /* a page that is not present may come: MEM_FAULT */
    uint32_t pdn, qpn;
    uint64_t start, len;

    struct obj *pd;    /* this and the next: named */
    struct obj *umem;  /* whose pages it has, or NULL */
    uint32_t capacity; /* translation entries */
    union {
        void *xlt;
        uint64_t *mtt;
        struct klm *klm;
    };
    /* layout of a KLM list */
    uint32_t rounds;
    uint64_t round_len; /* of the ranges of a round; 0: there are none */
    bool repeat;        /* interleaved: range r of round n begins at va + n * stride */
};

/* Bytes of one translation entry as software writes it, 0 for keys that have none. */
static inline size_t xlt_entry_size(const struct mkey *mkey)
{
    switch (mkey->mode) {
    case PRM_MKC_ACCESS_MODE_MTT:
        return MTT_ENTRY_SIZE;
    case PRM_MKC_ACCESS_MODE_KLMS:
    case PRM_MKC_ACCESS_MODE_KSM:
        return KLM_ENTRY_SIZE;
    default:
        return 0;
    }
}

static inline struct mkey *mkey_find(struct hca *hca, uint32_t index)
{
    return (struct mkey *)obj_find(&hca->mkeys, index);
}

void mkey_parse(struct mkey *mkey);
/* A key that others may have found is not what it was: what is known of keys is forgotten. */
void mkey_changed(struct hca *hca);
/* Whether a log page size makes sense for the key's mode. */
bool mkey_log_page_ok(uint8_t mode, uint32_t log_page);
/* Stores n entries from software's big-endian image at entry first; the caller checked that
 * they fit. */
void mkey_set_xlt(struct hca *hca, struct mkey *mkey, uint32_t first, const void *xlt, uint32_t n);
/* n entries of a KLM list have changed, from first on. Returns how many sums that took. */
uint32_t klm_changed(struct mkey *mkey, uint32_t first, uint32_t n);

/* The bytes of a range as sums keep them: the upper 16 bits of the count apart from the lower. */
static inline uint64_t klm_halves(uint32_t count)
{
    return (uint64_t)(count >> 16) << 32 | (count & 0xffff);
}

/* Bytes of ranges whose halves sum up to this. */
static inline uint64_t klm_bytes(const struct mkey *mkey, uint64_t sum)
{
    return (mkey->repeat ? 0 : sum >> 32 << 16) + (uint32_t)sum;
}

#endif
