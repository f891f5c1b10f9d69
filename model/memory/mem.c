/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements page lists and the buffers on them. Every offset and length is checked. */
#include <glib.h>
#include <string.h>
#include "model/core/hca.h"
#include "model/memory/mem.h"

static uint64_t mem_mtt_bytes(uint32_t npages)
{
    return sizeof(struct mtt) + (uint64_t)npages * sizeof(uint64_t);
}

static struct mtt *mem_mtt_begin(struct mtt *mtt, struct hca *hca, uint32_t npages,
                                 uint8_t log_page)
{
    mtt->hca = hca;
    mtt->umem = NULL;
    mtt->refs = 1;
    mtt->log_page = log_page;
    mtt->npages = npages;
    return mtt;
}

void mtt_put(struct mtt *mtt, uint32_t first, const void *pas, uint32_t n)
{
    const uint8_t *entry = pas;

    for (uint32_t i = 0; i < n; i++, entry += 8) {
        uint64_t pa;

        memcpy(&pa, entry, 8);
        mtt->pa[first + i] = GUINT64_FROM_BE(pa) & ~0xfffULL;
    }
}

struct mtt *mtt_new(const void *pas, uint32_t npages, uint8_t log_page)
{
    struct mtt *mtt = mem_mtt_begin(g_malloc(mem_mtt_bytes(npages)), NULL, npages, log_page);

    mtt_put(mtt, 0, pas, npages);
    return mtt;
}

struct mtt *mtt_empty(struct hca *hca, uint32_t npages, uint8_t log_page)
{
    struct mtt *mtt = ledger_alloc(&hca->memory, mem_mtt_bytes(npages));

    return mtt ? mem_mtt_begin(mtt, hca, npages, log_page) : NULL;
}

struct mtt *mtt_new_for(struct hca *hca, const void *pas, uint32_t npages, uint8_t log_page)
{
    struct mtt *mtt = mtt_empty(hca, npages, log_page);

    if (mtt) {
        hca_spend(hca, npages / HCA_PIECE_ENTRIES);
        mtt_put(mtt, 0, pas, npages);
    }
    return mtt;
}

struct mtt *mtt_ref(struct mtt *mtt)
{
    mtt->refs++;
    return mtt;
}

void mtt_unref(struct mtt *mtt)
{
    if (mtt && --mtt->refs == 0) {
        if (mtt->hca) {
            ledger_free(&mtt->hca->memory, mtt, mem_mtt_bytes(mtt->npages));
        } else {
            g_free(mtt);
        }
    }
}

bool mtt_trim(struct mtt *mtt)
{
    uint64_t bytes = mem_mtt_bytes(mtt->npages);

    while (!ledger_trim(&mtt->hca->memory, mtt, &bytes)) {
        mtt->npages = (uint32_t)((bytes - sizeof(*mtt)) / sizeof(mtt->pa[0]));
        hca_spend(mtt->hca, LEDGER_TRIM_PAGES);
        if (!hca_has_room(mtt->hca)) {
            return false;
        }
    }
    return true;
}

bool mem_buf_init(struct mem_buf *buf, struct mtt *mtt, uint64_t offset, uint64_t size)
{
    uint64_t covered = (uint64_t)mtt->npages << mtt->log_page;

    if (offset > covered || size > covered - offset) {
        return false;
    }
    buf->mtt = mtt_ref(mtt);
    buf->offset = offset;
    buf->size = size;
    buf->dbr_umem = NULL;
    return true;
}

void mem_buf_clear(struct mem_buf *buf)
{
    mtt_unref(buf->mtt);
    memset(buf, 0, sizeof(*buf));
}

static void mem_buf_count(struct obj *holder, const struct mem_buf *ring, int by)
{
    obj_count(holder, ring->mtt ? ring->mtt->umem : NULL, by);
    obj_count(holder, ring->dbr_umem, by);
}

void mem_buf_take(struct obj *holder, struct mem_buf *ring, const struct mem_buf *buf)
{
    *ring = *buf;
    mem_buf_count(holder, ring, 1);
}

void mem_buf_drop(struct obj *holder, struct mem_buf *ring)
{
    mem_buf_count(holder, ring, -1);
    mem_buf_clear(ring);
}

/* Reads or writes a range page by page, with one DMA for each run of adjacent pages. */
static bool mem_buf_access(struct hca *hca, const struct mem_buf *buf, uint64_t offset,
                           uint8_t *data, size_t len, bool is_write)
{
    const struct mtt *mtt = buf->mtt;
    uint64_t page_size, pos;

    if (len == 0) {
        return true;
    }
    if (!mtt || offset > buf->size || len > buf->size - offset) {
        return false;
    }
    page_size = 1ULL << mtt->log_page;
    pos = buf->offset + offset;
    while (len) {
        uint64_t page = pos >> mtt->log_page;
        uint64_t in_page = pos & (page_size - 1);
        uint64_t addr = mtt->pa[page] + in_page;
        size_t run = MIN((uint64_t)len, page_size - in_page);
        bool ok;

        while (run < len && mtt->pa[page] + page_size == mtt->pa[page + 1]) {
            page++;
            run += MIN((uint64_t)(len - run), page_size);
        }
        ok = is_write ? hca_dma_write(hca, addr, data, run) : hca_dma_read(hca, addr, data, run);
        if (!ok) {
            return false;
        }
        data += run;
        pos += run;
        len -= run;
    }
    return true;
}

bool mem_buf_read(struct hca *hca, const struct mem_buf *buf, uint64_t offset, void *data,
                  size_t len)
{
    return mem_buf_access(hca, buf, offset, data, len, false);
}

bool mem_buf_write(struct hca *hca, const struct mem_buf *buf, uint64_t offset, const void *data,
                   size_t len)
{
    return mem_buf_access(hca, buf, offset, (uint8_t *)data, len, true);
}
