/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory keys: which memory the holder of an lkey or rkey may read and write.
 *
 * A key is (mkey index << 8) | variant byte. A key translates a virtual range to host pages through
 * an MTT list, to ranges of other keys through KLMs or KSMs, or (PA access mode, and the reserved
 * lkey) not at all. Every access is checked: the key exists and is not free; PD, rights and bounds
 * allow the access.
 *
 * A key is free (mkc.free: it refuses every access) or in use. A UMR can set either state; an
 * invalidation sets free. Two keys are not objects. The reserved lkey stands for bus addresses, and
 * only the kernel's own queues may use it, for local access (mkey_denied()). The null key is for
 * local access: reads return zeros, writes have no effect. A peer reaches it only through a key
 * that allows remote access.
 */
#ifndef HCASIM_MODEL_MKEY_H
#define HCASIM_MODEL_MKEY_H

#include "model/core/hca.h"
#include "model/memory/masked.h"
#include "prm/prm.h"

/* Rights of an access; compared with mkc.lr/lw/rr/rw/a. */
enum mem_access {
    MEM_LOCAL_READ = 1 << 0,
    MEM_LOCAL_WRITE = 1 << 1,
    MEM_REMOTE_READ = 1 << 2,
    MEM_REMOTE_WRITE = 1 << 3,
    MEM_REMOTE_ATOMIC = 1 << 4,
};

enum mem_result {
    MEM_OK,
    MEM_BAD_KEY,    /* no such key, free, wrong variant byte, wrong PD, or missing rights */
    MEM_BAD_BOUNDS, /* the range is outside the key's range */
    MEM_NO_ANSWER,  /* the host does not answer at the translated address */
    MEM_FAULT,      /* a page is missing but may come; hca->fault describes the access */
    /* the host's CPUs changed the word too often during an atomic; the peer must ask again */
    MEM_BUSY,
};

/* Mkey indices below this one are never given out: 0x100 ends scatter lists, 0x400 in a KLM list
 * means an interleaved layout, and the special keys are in this range. */
#define MKEY_FIRST 16

/* Limits that capabilities report. */
#define MKEY_LOG_MAX_KLM 16 /* entries of a KLM list (log_max_klm_list_size) */
#define MKEY_MAX_DEPTH   4  /* lists from the first key to the memory (max_indirection) */

struct mkey;
struct umem;

/* The pdn of a QP that may use the keys of every PD: the kernel's QP of service type REG_UMR. It is
 * made without a PD (driver: create_kernel_qp()) and gathers with its DMA key. */
#define MKEY_ANY_PD 0xffffffffu

/* No key has this value: indices begin with MKEY_FIRST. */
#define MKEY_NONE 0u

/* The lkey that the WQEs of a queue may not name. It is the reserved lkey, unless the queue's
 * context allows that (rlky, which drivers set only for the kernel's own queues). The PD's uid does
 * not suffice for this check: a program's queue may be in a PD of uid 0, because not every program
 * has a user context. */
static inline uint32_t mkey_denied(const struct hca *hca, bool rlky)
{
    return rlky ? MKEY_NONE : hca->resd_lkey;
}

/* One piece of a scatter/gather list. */
struct sge {
    uint64_t va;
    uint32_t len;
    uint32_t lkey;
};

/* pdn here and below is the PD that accesses are checked against: the QP's own, or the PD of the
 * SRQ that the receive comes from. */

/* Whether [va, va + len) may be accessed through key. A len of 0 always may (C9-88: a zero-length
 * request's key is not checked). Does not touch memory; keys behind a KLM or KSM list are checked
 * when they are used. */
enum mem_result mkey_check(struct hca *hca, uint32_t key, uint32_t pdn, uint64_t va, uint64_t len,
                           unsigned access);

/* Whether mkc.qpn allows QP qpn to use the key (a type 2 memory window may be bound to one QP).
 * True for a key that does not exist; mkey_check() refuses that. */
bool mkey_allows_qp(struct hca *hca, uint32_t key, uint32_t qpn);

/* Says in words which check refused the last access that mkey_check(), mkey_allows_qp(),
 * mkey_invalidate(), a copy or an atomic refused: "rkey 0x1234 does not exist". For the log, right
 * after the refusal: the checks are made again. The result lies in words. */
struct mkey_words {
    char text[256];
};
const char *mkey_why(struct hca *hca, struct mkey_words *words);

/* Copies between a buffer and a key's memory, with all checks. On failure a part may have been
 * copied. */
enum mem_result mkey_read(struct hca *hca, uint32_t key, uint32_t pdn, uint64_t va, void *buf,
                          size_t len, unsigned access);
enum mem_result mkey_write(struct hca *hca, uint32_t key, uint32_t pdn, uint64_t va,
                           const void *buf, size_t len, unsigned access);

/* A 64-bit atomic at va: compare and swap, or fetch and add. va must be 8-byte aligned, else the
 * result is MEM_BAD_BOUNDS. The word in memory has the host's byte order. *original receives the
 * value before. */
enum mem_result mkey_cmp_swap(struct hca *hca, uint32_t key, uint32_t pdn, uint64_t va,
                              uint64_t compare, uint64_t swap, uint64_t *original);
enum mem_result mkey_fetch_add(struct hca *hca, uint32_t key, uint32_t pdn, uint64_t va,
                               uint64_t add, uint64_t *original);
/* An extended atomic (model/memory/masked.h) on the len bytes at va, which must be a multiple of
 * len. original receives the number before. An operation on more than 8 bytes is atomic to other
 * functions of the card, but not to the host's CPUs. */
enum mem_result mkey_masked(struct hca *hca, uint32_t key, uint32_t pdn, uint64_t va,
                            enum masked_op masked, size_t len, const uint8_t *operands,
                            uint8_t *original);

/*
 * Gathers from, or scatters to, the byte range [offset, offset + len) of the concatenated list.
 * *next remembers where the previous call ended, so that walking a message from front to back costs
 * nothing extra; start with a zeroed cursor. MEM_BAD_BOUNDS if the list is shorter.
 */
struct sge_cursor {
    unsigned index; /* the list element of the last access */
    uint64_t base;  /* list offset of that element's first byte */
};
enum mem_result sge_gather(struct hca *hca, const struct sge *list, unsigned n, uint32_t pdn,
                           struct sge_cursor *next, uint64_t offset, void *buf, size_t len);
enum mem_result sge_scatter(struct hca *hca, const struct sge *list, unsigned n, uint32_t pdn,
                            struct sge_cursor *next, uint64_t offset, const void *buf, size_t len);
/* Returns whether a key of the list is gone, or was never there. */
bool sge_lacks_key(struct hca *hca, const struct sge *list, unsigned n, uint32_t pdn)
    __attribute__((cold));

/*
 * The lengths in a WQE's list say how much of the memory domain of a key with transforms is used:
 * signatures that both domains have count, others do not (docs/adr/0026). Converts such elements
 * into ranges of the wire domain, which is what accesses see. *len, the length of the list, is
 * changed accordingly.
 */
void mkey_list_transform(struct hca *hca, struct sge *list, unsigned n, uint64_t *len)
    __attribute__((cold));
static inline void mkey_list_to_wire(struct hca *hca, struct sge *list, unsigned n, uint64_t *len)
{
    if (G_UNLIKELY(hca->transforms)) {
        mkey_list_transform(hca, list, n, len);
    }
}

/* Remote invalidate (SEND with IETH; needs mkc.en_rinval) and local invalidate. The key becomes
 * free: it refuses every access until a UMR makes it valid again. MEM_BAD_KEY if the key may not be
 * invalidated. The driver's LOCAL_INV is a UMR that sets free. */
enum mem_result mkey_invalidate(struct hca *hca, uint32_t key, uint32_t pdn, bool remote);

/* A UMR WQE: changes the key that the immediate field of its control segment names. */
struct mkey_umr {
    uint32_t key;      /* with its present variant byte, or the new one (mkey_mask KEY) */
    uint32_t pdn, qpn; /* of the QP that posts the WQE */
    bool privileged;   /* QP of service type REG_UMR: may change keys of any PD, and their PD */
    bool fast;         /* the QP may register memory in its PD (qpc.fre, as the kernel's own QPs) */
    const struct prm_wqe_umr_ctrl_seg *ctrl;
    const struct prm_mkc *mkey_seg; /* memory key segment, laid out like an mkc */
    const void *xlt;                /* translation entries: inline, or read by the caller */
    size_t xlt_len;                 /* bytes at xlt */
    const void *bsf;                /* the descriptor (BSF), if bsf_len is not 0 */
    size_t bsf_len;
};
/* Carries out a UMR. MEM_BAD_KEY: this QP may not change the key, or the key is in the wrong
 * state. MEM_BAD_BOUNDS: a value or the translation range is out of range. On an error nothing
 * is changed. */
enum mem_result mkey_umr(struct hca *hca, const struct mkey_umr *umr);

/*
 * CREATE_MKEY in one call. mkc and the translation entries (MTTs of 8 bytes, KLMs and KSMs of 16)
 * are as in the command. *index receives the mkey index; the driver adds the variant byte that it
 * put in mkc.mkey_7_0. A user context may not choose bus addresses. Therefore its MTTs are accepted
 * only with physical_ok, which says that they come from a umem that the kernel pinned.
 */
enum syn mkey_create(struct hca *hca, uint16_t uid, const struct prm_mkc *mkc, const void *xlt,
                     size_t xlt_len, bool physical_ok, uint32_t *index);
/*
 * The same in parts, because there may be millions of entries. mkey_new() makes a key that cannot
 * be found yet, with room for xlt_len bytes of entries. mkey_fill() stores whole entries at byte
 * at. At the end, mkey_enter() makes the key usable, or frees it if that fails; mkey_drop() frees
 * it instead.
 */
enum syn mkey_new(struct hca *hca, uint16_t uid, const struct prm_mkc *mkc, size_t xlt_len,
                  bool physical_ok, struct mkey **made);
/* The entries that mkey_fill() stores have access bits (create_mkey_in.pg_access). */
void mkey_use_pg_access(struct mkey *mkey);
/* The key consists of the umem's pages, and keeps the umem alive. */
void mkey_keep_umem(struct mkey *mkey, struct umem *umem);
void mkey_fill(struct hca *hca, struct mkey *mkey, size_t at, const void *xlt, size_t len);
enum syn mkey_enter(struct hca *hca, struct mkey *mkey, uint32_t *index);
void mkey_drop(struct hca *hca, struct mkey *mkey);
/* QUERY_MKEY: fills the 64 bytes of mkc. */
enum syn mkey_query(struct hca *hca, uint32_t index, struct prm_mkc *mkc);
/* Fills in as many ranges of a KLM or KSM list as len bytes hold. Of a key with pages, and for a
 * user context that does not own the key, nothing is filled in. */
void mkey_query_list(struct hca *hca, uint16_t uid, uint32_t index, void *list, size_t len);
/* SYN_AGAIN: a part of the key's many entries is freed, and none can be used any more; call
 * again. */
enum syn mkey_destroy(struct hca *hca, uint16_t uid, uint32_t index);
bool mkey_trim(struct hca *hca, struct obj *obj); /* for the table of object classes */
void mkey_free(struct hca *hca, struct obj *obj);

#endif
