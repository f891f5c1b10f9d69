/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Gives the device's rings access to host memory: page lists (MTT) and buffers on them.
 *
 * A page list comes from a command's pas[] or from a DevX umem; a buffer is a byte range on it.
 * Every access is checked against the list. An access that the host does not answer fails.
 */
#ifndef HCASIM_MODEL_MEM_H
#define HCASIM_MODEL_MEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hca;
struct obj;

/* A list of pages of equal size. A umem and the objects on it share the list by reference count. */
struct mtt {
    struct hca *hca; /* its ledger pays for the list; or NULL */
    /* the umem that the pages belong to, or NULL; a ring on the list references that umem */
    struct obj *umem;
    unsigned refs;
    uint8_t log_page; /* log2 of the page size in bytes, 12 to 31 */
    uint32_t npages;
    uint64_t pa[]; /* bus addresses, page aligned, host byte order */
};

/* Makes a page list from npages big-endian entries as commands carry them. The bits below the 4 KiB
 * boundary are flags and are cut off. The caller has the only reference. */
struct mtt *mtt_new(const void *pas, uint32_t npages, uint8_t log_page);
/* The same, paid for by hca->memory. NULL: the ledger refuses it. */
struct mtt *mtt_new_for(struct hca *hca, const void *pas, uint32_t npages, uint8_t log_page);
/* The same in parts: mtt_empty() makes the list, mtt_put() stores n pages from first on. All pages
 * must be stored before the list is used. */
struct mtt *mtt_empty(struct hca *hca, uint32_t npages, uint8_t log_page);
void mtt_put(struct mtt *mtt, uint32_t first, const void *pas, uint32_t n);
/* Called before the last mtt_unref() of a long list: frees a part of the list. False: there is more
 * to free, but the turn is used up. */
bool mtt_trim(struct mtt *mtt);
struct mtt *mtt_ref(struct mtt *mtt);
void mtt_unref(struct mtt *mtt); /* NULL is allowed */

/* A byte range on a page list. */
struct mem_buf {
    struct mtt *mtt;
    uint64_t offset; /* where the buffer begins on the list */
    uint64_t size;
    struct obj *dbr_umem; /* of a queue's ring: the umem that has its doorbell record, or NULL */
};

/* False if the list does not cover offset..offset+size-1. Else the buffer holds a reference to the
 * list. */
bool mem_buf_init(struct mem_buf *buf, struct mtt *mtt, uint64_t offset, uint64_t size);
void mem_buf_clear(struct mem_buf *buf);
/* The same for the ring of an object. mem_buf_take() moves buf to the ring, and holder then
 * references the umems of the ring and of its doorbell record. mem_buf_drop() gives ring and
 * references back. */
void mem_buf_take(struct obj *holder, struct mem_buf *ring, const struct mem_buf *buf);
void mem_buf_drop(struct obj *holder, struct mem_buf *ring);

/* False: the range is outside the buffer, or the host does not answer. */
bool mem_buf_read(struct hca *hca, const struct mem_buf *buf, uint64_t offset, void *data,
                  size_t len);
bool mem_buf_write(struct hca *hca, const struct mem_buf *buf, uint64_t offset, const void *data,
                   size_t len);

#endif
