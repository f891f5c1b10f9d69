/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory keys: what an lkey or rkey lets its holder read and write.
 *
 * A key is (mkey index << 8) | variant byte. A key translates a virtual range to host pages through an MTT
 * list, to other keys through KLMs, or (PA access mode, and the reserved lkey) not at all.
 * Every access is checked: key exists and is not free, PD, rights, bounds.
 */
#ifndef HCASIM_MODEL_MKEY_H
#define HCASIM_MODEL_MKEY_H

#include "model/hca.h"

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
};

struct mkey;

/* One piece of a scatter/gather list. */
struct sge {
    uint64_t va;
    uint32_t len;
    uint32_t lkey;
};

/* The PD that access checks are made against. A QP's own PD number. */

/* Whether [va, va + len) may be accessed through key; len 0 always may (C9-88: a zero-length
 * request's key is not checked). Does not touch memory. */
enum mem_result mkey_check(struct hca *hca, uint32_t key, uint32_t pdn, uint64_t va, uint64_t len,
                           unsigned access);

/* Copies between a buffer and a key's memory, with all checks. On failure a part may have been
 * copied. */
enum mem_result mkey_read(struct hca *hca, uint32_t key, uint32_t pdn, uint64_t va, void *buf,
                          size_t len, unsigned access);
enum mem_result mkey_write(struct hca *hca, uint32_t key, uint32_t pdn, uint64_t va,
                           const void *buf, size_t len, unsigned access);

/* The 64-bit atomic at va (8-byte aligned): memory is a word of the host's byte order.
 * compare and swap, or fetch and add; *original receives what was there. */
enum mem_result mkey_cmp_swap(struct hca *hca, uint32_t key, uint32_t pdn, uint64_t va,
                              uint64_t compare, uint64_t swap, uint64_t *original);
enum mem_result mkey_fetch_add(struct hca *hca, uint32_t key, uint32_t pdn, uint64_t va,
                               uint64_t add, uint64_t *original);

/*
 * Gather and scatter over a list: byte range [offset, offset + len) of the concatenated list.
 * *next remembers where the previous call ended so that a message walked front to back costs
 * nothing extra; start with a zeroed cursor.
 */
struct sge_cursor {
    unsigned index;    /* element that byte base is in */
    uint64_t base;     /* list offset of that element's first byte */
};
enum mem_result sge_gather(struct hca *hca, const struct sge *list, unsigned n, uint32_t pdn,
                           struct sge_cursor *next, uint64_t offset, void *buf, size_t len);
enum mem_result sge_scatter(struct hca *hca, const struct sge *list, unsigned n, uint32_t pdn,
                            struct sge_cursor *next, uint64_t offset, const void *buf, size_t len);

/* Local invalidate (LOCAL_INV WQE) and remote invalidate (SEND with IETH): frees the key for
 * further use until a UMR makes it valid again. MEM_BAD_KEY if the key may not be invalidated. */
enum mem_result mkey_invalidate(struct hca *hca, uint32_t key, uint32_t pdn, bool remote);

/*
 * UMR: changes the key named in the WQE's control segment. umr_ctrl is wqe_umr_ctrl_seg, mkey_seg the
 * mkey context segment (mkc-shaped, wqe_mkey_context_seg), xlt the translation entries (inline,
 * or gathered by the caller from the data segment), xlt_len their bytes.
 */
enum mem_result mkey_umr(struct hca *hca, uint32_t key, uint32_t pdn, const void *umr_ctrl,
                         const void *mkey_seg, const void *xlt, size_t xlt_len);

/*
 * CREATE_MKEY: mkc and the translation entries (MTTs of 8 bytes, KLMs of 16) as the command
 * carries them. *key receives index << 8 (the driver adds the variant byte it put in mkc.mkey_7_0).
 */
enum syn mkey_create(struct hca *hca, uint16_t uid, const void *mkc, const void *xlt,
                     size_t xlt_len, uint32_t *index);
/* QUERY_MKEY: fills the 64 bytes of mkc. */
enum syn mkey_query(struct hca *hca, uint32_t index, void *mkc);
enum syn mkey_destroy(struct hca *hca, uint16_t uid, uint32_t index);
void mkey_free(struct hca *hca, struct obj *obj); /* for hca_reset() */

#endif
