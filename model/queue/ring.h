/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rings that the device writes and software reads: entries of 64 bytes whose last byte carries the
 * owner bit (EQE, CQE).
 */
#ifndef HCASIM_MODEL_RING_H
#define HCASIM_MODEL_RING_H

#include <string.h>
#include "model/core/hca.h"
#include "model/memory/mem.h"

#define RING_ENTRY 64

/* Bus address of a byte of the ring. Entries do not cross pages. */
static inline uint64_t ring_address(const struct mem_buf *ring, uint64_t offset)
{
    const struct mtt *mtt = ring->mtt;
    uint64_t pos = ring->offset + offset;

    return mtt->pa[pos >> mtt->log_page] + (pos & ((1ULL << mtt->log_page) - 1));
}

/* Writes the first len bytes of the entry at byte offset. The caller writes the words that announce
 * them afterwards. False: the host does not answer. */
static inline bool ring_write_bytes(struct hca *hca, const struct mem_buf *ring, uint64_t offset,
                                    const void *bytes, size_t len)
{
    return hca_dma_write(hca, ring_address(ring, offset), bytes, len);
}

/*
 * Writes the entry at byte offset. The last word is written after all others, because software
 * polls the owner bit in it. The ring begins on a multiple of 64 bytes, and so does each entry.
 * False: the host does not answer.
 */
static inline bool ring_write(struct hca *hca, const struct mem_buf *ring, uint64_t offset,
                              const void *entry)
{
    uint64_t addr = ring_address(ring, offset);
    size_t len = RING_ENTRY;
    uint8_t *p = hca_dma_map(hca, addr, &len, true);

    if (p && len == RING_ENTRY) {
        uint32_t last;

        memcpy(p, entry, RING_ENTRY - 4);
        memcpy(&last, entry + RING_ENTRY - 4, 4);
        __atomic_store_n((uint32_t *)(void *)(p + RING_ENTRY - 4), last, __ATOMIC_RELEASE);
        hca_dma_unmap(hca, p, len, true);
        return true;
    }
    if (p) {
        hca_dma_unmap(hca, p, len, true);
    }
    return hca_dma_write(hca, addr, entry, RING_ENTRY); /* this, too, writes the last word last */
}

#endif
