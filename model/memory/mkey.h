/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory keys: what an lkey or rkey lets its holder read and write.
 *
 * A key is (mkey index << 8) | variant byte. A key translates a virtual range to host pages through
 * an MTT list, to ranges of other keys through KLMs or KSMs, or (PA access mode, and the reserved
 * lkey) not at all. Every access is checked: key exists and is not free, PD, rights, bounds.
 *
 * A key is free (mkc.free: refuses every access) or in use. UMR takes it to either, invalidation to
 * free. Two keys are no objects: the reserved lkey (bus addresses, local access by the kernel's own
 * queues only: mkey_denied()) and the null key (local access: reads zeros, writes nowhere; a peer
 * comes to it only through a key that lets peers in).
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
    MEM_BAD_KEY,    /* no such key, free, wrong variant byte, wrong PD, rights missing */
    MEM_BAD_BOUNDS, /* outside the key's range */
    MEM_NO_ANSWER,  /* the host does not answer at the translated address */
    MEM_FAULT,      /* a page is missing that may come: hca->fault says which */
    MEM_BUSY,       /* an atomic lost to the host's CPUs too often: to be asked for again */
};

/* Mkey indices below are never handed out: 0x100 ends scatter lists, 0x400 in a KLM list means an
 * interleaved layout, and the special keys have room there. */
#define MKEY_FIRST 16

/* Limits that capabilities report. */
#define MKEY_LOG_MAX_KLM 16 /* entries of a KLM list (log_max_klm_list_size) */
#define MKEY_MAX_DEPTH   4  /* keys on the way from the first to the memory (max_indirection) */

struct mkey;
struct umem;

/* pdn of a QP that may use the keys of every PD: the kernel's, of service type REG_UMR, which is
 * made without a PD (driver: create_kernel_qp()) and gathers with its DMA key. */
#define MKEY_ANY_PD 0xffffffffu

/* No key has it: indices begin with MKEY_FIRST. */
#define MKEY_NONE 0u

/* The lkey that the WQEs of a queue may not name: the reserved one, unless the queue's context says
 * that it may be used (rlky, which drivers set for the kernel's own queues alone). A program's
 * queue may be in a PD of uid 0, too: not every program has a user context. */
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

/* pdn here and below: the PD that access checks are made against: a QP's own, or that of the SRQ
 * which a receive is from. */

/* Whether [va, va + len) may be accessed through key; len 0 always may (C9-88: a zero-length
 * request's key is not checked). Does not touch memory; keys behind a KLM or KSM list are checked
 * when they are used. */
enum mem_result mkey_check(struct hca *hca, uint32_t key, uint32_t pdn, uint64_t va, uint64_t len,
                           unsigned access);

/* Whether QP qpn may use the key as far as mkc.qpn says (type 2 memory windows bound to one QP);
 * true for keys that do not exist, which mkey_check() refuses. */
bool mkey_allows_qp(struct hca *hca, uint32_t key, uint32_t qpn);

/* Copies between a buffer and a key's memory, with all checks. On failure a part may have been
 * copied. */
enum mem_result mkey_read(struct hca *hca, uint32_t key, uint32_t pdn, uint64_t va, void *buf,
                          size_t len, unsigned access);
enum mem_result mkey_write(struct hca *hca, uint32_t key, uint32_t pdn, uint64_t va,
                           const void *buf, size_t len, unsigned access);

/* The 64-bit atomic at va (8-byte aligned, else MEM_BAD_BOUNDS): memory is a word of the host's
 * byte order. compare and swap, or fetch and add; *original receives what was there. */
enum mem_result mkey_cmp_swap(struct hca *hca, uint32_t key, uint32_t pdn, uint64_t va,
                              uint64_t compare, uint64_t swap, uint64_t *original);
enum mem_result mkey_fetch_add(struct hca *hca, uint32_t key, uint32_t pdn, uint64_t va,
                               uint64_t add, uint64_t *original);
/* An extended atomic (model/memory/masked.h) on the len bytes at va, which is a multiple of len.
 * original receives the number that was there. One of more than 8 bytes is atomic beside what other
 * functions of the card do, not beside the host's CPUs. */
enum mem_result mkey_masked(struct hca *hca, uint32_t key, uint32_t pdn, uint64_t va,
                            enum masked_op masked, size_t len, const uint8_t *operands,
                            uint8_t *original);

/*
 * Gather and scatter over a list: byte range [offset, offset + len) of the concatenated list.
 * *next remembers where the previous call ended so that a message walked front to back costs
 * nothing extra; start with a zeroed cursor. MEM_BAD_BOUNDS if the list is shorter.
 */
struct sge_cursor {
    unsigned index; /* element that byte base is in */
    uint64_t base;  /* list offset of that element's first byte */
};
enum mem_result sge_gather(struct hca *hca, const struct sge *list, unsigned n, uint32_t pdn,
                           struct sge_cursor *next, uint64_t offset, void *buf, size_t len);
enum mem_result sge_scatter(struct hca *hca, const struct sge *list, unsigned n, uint32_t pdn,
                            struct sge_cursor *next, uint64_t offset, const void *buf, size_t len);

/* Remote invalidate (SEND with IETH; needs mkc.en_rinval) and local invalidate: frees the key for
 * further use until a UMR makes it valid again. MEM_BAD_KEY if the key may not be invalidated.
 * The driver's LOCAL_INV is a UMR that sets free. */
enum mem_result mkey_invalidate(struct hca *hca, uint32_t key, uint32_t pdn, bool remote);

/* A UMR WQE: changes the key that the immediate field of its control segment names. */
struct mkey_umr {
    uint32_t key;      /* with the variant byte it has, or is to have (mkey_mask KEY) */
    uint32_t pdn, qpn; /* of the QP that posts it */
    bool privileged;   /* QP of service type REG_UMR: any PD's keys, and may change the PD */
    bool fast; /* the QP may register memory (qpc.fre, as the kernel's own QPs), in its PD */
    const struct prm_wqe_umr_ctrl_seg *ctrl;
    const struct prm_mkc *mkey_seg; /* memory key segment, which is like an mkc */
    const void *xlt;                /* translation entries: inline, or read by the caller */
    size_t xlt_len;                 /* bytes there */
};
/* MEM_BAD_KEY: the key may not be changed by this QP or is in the wrong state; MEM_BAD_BOUNDS: a
 * value or the translation range is out of range. Then nothing was changed. */
enum mem_result mkey_umr(struct hca *hca, const struct mkey_umr *umr);

/*
 * CREATE_MKEY at once: mkc and the translation entries (MTTs of 8 bytes, KLMs and KSMs of 16) as
 * the command carries them. *index receives the mkey index (the driver adds the variant byte it put
 * in mkc.mkey_7_0). A user context may not choose bus addresses: MTTs are taken from it only with
 * physical_ok, which says that they come from a umem that the kernel pinned.
 */
enum syn mkey_create(struct hca *hca, uint16_t uid, const struct prm_mkc *mkc, const void *xlt,
                     size_t xlt_len, bool physical_ok, uint32_t *index);
/*
 * The same in parts, for there may be millions of entries: a key that nobody finds yet, with room
 * for xlt_len bytes of them; those at byte at, whole ones; and the end, which makes it a key, or
 * frees it if that fails. Or it is dropped.
 */
enum syn mkey_new(struct hca *hca, uint16_t uid, const struct prm_mkc *mkc, size_t xlt_len,
                  bool physical_ok, struct mkey **made);
/* It is made of the umem's pages, which stay as long as it does. */
void mkey_keep_umem(struct mkey *mkey, struct umem *umem);
void mkey_fill(struct hca *hca, struct mkey *mkey, size_t at, const void *xlt, size_t len);
enum syn mkey_enter(struct hca *hca, struct mkey *mkey, uint32_t *index);
void mkey_drop(struct hca *hca, struct mkey *mkey);
/* QUERY_MKEY: fills the 64 bytes of mkc. */
enum syn mkey_query(struct hca *hca, uint32_t index, struct prm_mkc *mkc);
/* SYN_AGAIN: of its many entries a part is gone, none can be used any more. */
enum syn mkey_destroy(struct hca *hca, uint16_t uid, uint32_t index);
bool mkey_trim(struct hca *hca, struct obj *obj); /* for the class of objects */
void mkey_free(struct hca *hca, struct obj *obj);

#endif
