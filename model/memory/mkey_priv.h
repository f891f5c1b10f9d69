/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Defines the inside of a memory key, for model/memory/mkey*.c and klm.c only.
 *
 * mkc is the truth. mkey_parse() sets the fields from mode to len from it after every change.
 * Translation entries are kept in host order: MTTs as bus addresses with MTT_READ and MTT_WRITE,
 * KLMs and KSMs as struct klm. A KLM list is treated as rounds of ranges, so that one search finds
 * a range of both the plain and the interleaved form (model/memory/klm.c).
 */
#ifndef HCASIM_MODEL_MKEY_PRIV_H
#define HCASIM_MODEL_MKEY_PRIV_H

#include "model/memory/crypto.h"
#include "model/memory/mkey.h"
#include "model/memory/place.h"
#include "model/memory/sig.h"
#include "model/memory/transform.h"
#include "prm/prm.h"

/* Accesses that an entry allows, as software writes them. An entry without them maps no page. */
#define MTT_READ       1ULL
#define MTT_WRITE      2ULL
#define MTT_RIGHTS     (MTT_READ | MTT_WRITE)
#define MTT_ENTRY_SIZE 8
#define KLM_ENTRY_SIZE PRM_SIZE(wqe_klm_seg)
#define OCTWORD        16

struct klm {
    uint32_t count; /* dword 0: bytes of the range; in an interleaved list, stride and bytes */
    uint32_t key;   /* dword 1 */
    uint64_t va;    /* dwords 2 and 3 */
    /* sum of klm_halves() of this range and of ranges before it (model/memory/klm.c) */
    uint64_t sum;
};

struct mkey {
    struct obj obj;
    struct prm_mkc mkc[1];

    uint8_t mode; /* PRM_MKC_ACCESS_MODE_ */
    uint8_t log_page;
    uint8_t variant;
    uint8_t rights; /* enum mem_access */
    bool free, length64;
    bool tunneled; /* an RDMA WRITE is an atomic (model/memory/tunneled.c) */
    uint8_t space; /* enum mem_space_id: the space of its addresses */
    /* the entries of CREATE_MKEY have access bits; else they allow all accesses. A driver asks for
     * access bits where pages may be missing */
    bool pg_access;
    uint32_t pdn, qpn;
    uint64_t start, len;

    /* The stack of transforms of its data (model/memory/transform.h), or NULL. If there is one, len
     * above is the length of the wire domain. */
    struct transform *transform;
    struct sig *sig;       /* of a key that can have a descriptor, else NULL */
    struct crypto *crypto; /* of a key that can have a crypto descriptor, else NULL */

    struct obj *pd; /* the key references this and the next */
    /* the umem whose pages it has, the device memory (memic, sw_icm) that it is in, or
     * NULL */
    struct obj *backing;
    uint32_t capacity; /* translation entries */
    union {
        void *xlt;
        uint64_t *mtt;
        struct klm *klm;
    };
    /* layout of a KLM list */
    uint32_t rounds;
    uint64_t round_len; /* total bytes of the ranges of a round; 0: there are none */
    bool repeat;        /* interleaved: range r of round n begins at va + n * stride */
};

/* Bytes of one translation entry as software writes it; 0 for keys without entries. */
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

/* Whether the key is a piece of a memory of the device's own. start_addr is the place of its first
 * byte there; addresses in the key begin at 0. */
static inline bool mkey_is_device(const struct mkey *mkey)
{
    return mkey->mode == PRM_MKC_ACCESS_MODE_MEMIC || mkey->mode == PRM_MKC_ACCESS_MODE_SW_ICM;
}

/* Whether the key's entries name other keys. */
static inline bool mkey_has_list(const struct mkey *mkey)
{
    return mkey->mode == PRM_MKC_ACCESS_MODE_KLMS || mkey->mode == PRM_MKC_ACCESS_MODE_KSM;
}

/* Bytes that the key has for its descriptor. */
static inline size_t mkey_bsf_room(const struct mkey *mkey)
{
    return (size_t)PRM_GET(mkc, mkey->mkc, bsf_octword_size) * OCTWORD;
}

/* Whether a key with transforms encrypts its data. Then an element of a list counts bytes of the
 * wire (docs/adr/0027). */
static inline bool mkey_is_encrypted(const struct mkey *mkey)
{
    return mkey->crypto && mkey->crypto->unit;
}

static inline struct mkey *mkey_find(struct hca *hca, uint32_t index)
{
    return (struct mkey *)obj_find(&hca->mkeys, index);
}

/* Carries out an RDMA WRITE of len bytes to a key with tunneled_atomic, which allows it: the
 * payload is a struct prm_tunneled_atomic. MEM_BAD_BOUNDS: it is not. */
enum mem_result mkey_tunneled(struct hca *hca, const struct mkey *mkey, uint64_t va,
                              const void *payload, uint64_t len) __attribute__((cold));
/* Finds the place of len bytes in the key's bounds, which must be one piece: the walk of an atomic.
 * *is_null: the bytes are in the null key and have no place. */
enum mem_result mkey_find_place(struct hca *hca, const struct mkey *mkey, uint64_t va, uint64_t len,
                                struct mem_place *place, bool *is_null);

void mkey_parse(struct mkey *mkey);
/* Called when a key has changed that others may have found: empties the cache of key runs. */
void mkey_changed(struct hca *hca);
/* Whether a log page size is valid for the key's mode. */
bool mkey_log_page_ok(uint8_t mode, uint32_t log_page);
/* Stores n entries of software's big-endian image xlt, from entry first on. The caller has checked
 * that they fit. pg_access: MTTs have access bits. Without them, an MTT that is not 0 allows all
 * accesses. */
void mkey_set_xlt(struct hca *hca, struct mkey *mkey, uint32_t first, const void *xlt, uint32_t n,
                  bool pg_access);
/* Updates the sums after n entries of a KLM list, from first on, have changed. Returns how many
 * sums it has computed. */
uint32_t klm_changed(struct mkey *mkey, uint32_t first, uint32_t n);

/* The bytes of a range in the form of the sums: the upper 16 bits of the count are kept apart from
 * the lower 16 bits. */
static inline uint64_t klm_halves(uint32_t count)
{
    return (uint64_t)(count >> 16) << 32 | (count & 0xffff);
}

/* Total bytes of the ranges that have this sum. */
static inline uint64_t klm_bytes(const struct mkey *mkey, uint64_t sum)
{
    return (mkey->repeat ? 0 : sum >> 32 << 16) + (uint32_t)sum;
}

/* -- checks that mkey_why() makes again ------------------------------------------------------- */

static inline bool mkey_is_reserved_lkey(const struct hca *hca, uint32_t key)
{
    return hca->resd_lkey && key == hca->resd_lkey;
}

static inline bool is_null_mkey(const struct hca *hca, uint32_t key)
{
    return hca->null_mkey && key == hca->null_mkey;
}

static inline bool mkey_is_local(unsigned access)
{
    return !(access & ~(unsigned)(MEM_LOCAL_READ | MEM_LOCAL_WRITE));
}

static inline bool mkey_in_bounds(const struct mkey *mkey, uint64_t va, uint64_t len)
{
    if (mkey->length64) {
        return len == 0 || va <= UINT64_MAX - (len - 1);
    }
    return va >= mkey->start && va - mkey->start <= mkey->len &&
           len <= mkey->len - (va - mkey->start);
}

/* Notes a refused access for mkey_why(). Returns its result. */
enum mem_result mkey_refuse(struct hca *hca, const struct mem_refusal *refusal)
    __attribute__((cold));

#endif
