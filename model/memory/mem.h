/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Host memory as the device's rings see it: page lists (MTT) and buffers on them.
 *
 * A page list comes from a command's pas[] or from a DevX umem; a buffer is a byte range on it.
 * Every access is checked against the list, and an access the host does not answer fails.
 */
#ifndef HCASIM_MODEL_MEM_H
#define HCASIM_MODEL_MEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hca;
struct obj;

/* A list of equally large pages; shared by reference count (a umem and the objects on it). */
struct mtt {
    struct hca *hca;  /* whose ledger pays for it, or NULL */
    struct obj *umem; /* whose pages these are: what reads them keeps it; or NULL */
    unsigned refs;
    uint8_t log_page; /* log2 of the page size in bytes, 12 to 31 */
    uint32_t npages;
    uint64_t pa[]; /* bus addresses, page aligned, host byte order */
};

/* From npages big-endian entries as commands carry them; the low bits below the 4 KiB boundary
 * are flags and cut off. Has one reference. */
struct mtt *mtt_new(const void *pas, uint32_t npages, uint8_t log_page);
/* The same, paid for by hca->memory. NULL: refused. */
struct mtt *mtt_new_for(struct hca *hca, const void *pas, uint32_t npages, uint8_t log_page);
/* The same in parts: a list of pages that are put in by and by, all before it is used. */
struct mtt *mtt_empty(struct hca *hca, uint32_t npages, uint8_t log_page);
void mtt_put(struct mtt *mtt, uint32_t first, const void *pas, uint32_t n);
/* Before the last mtt_unref(): gives back pages of a long list. False: there are more, but the turn
 * is over. */
bool mtt_trim(struct mtt *mtt);
struct mtt *mtt_ref(struct mtt *mtt);
void mtt_unref(struct mtt *mtt); /* NULL is fine */

/* A byte range on a page list. */
struct mem_buf {
    struct mtt *mtt;
    uint64_t offset; /* of byte 0 on the list */
    uint64_t size;
    struct obj *dbr_umem; /* of a queue's ring: the umem of its doorbell record, or NULL */
};

/* False if the list does not cover offset..offset+size-1; else *buf holds a reference. */
bool mem_buf_init(struct mem_buf *buf, struct mtt *mtt, uint64_t offset, uint64_t size);
void mem_buf_clear(struct mem_buf *buf);
/* The same for the ring of an object, which names the umems that ring and doorbell record lie in:
 * it takes buf over; it has no ring any more. */
void mem_buf_take(struct obj *holder, struct mem_buf *ring, const struct mem_buf *buf);
void mem_buf_drop(struct obj *holder, struct mem_buf *ring);

/* False: outside the buffer, or the host does not answer. */
bool mem_buf_read(struct hca *hca, const struct mem_buf *buf, uint64_t offset, void *data,
                  size_t len);
bool mem_buf_write(struct hca *hca, const struct mem_buf *buf, uint64_t offset, const void *data,
                   size_t len);

#endif
