/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds the pages of rings and doorbell records: in the list that a command carries, or in a DevX
 * umem (declared in fw/cmd.h).
 */
#include "fw/cmd.h"
#include "model/core/pd.h"
#include "model/memory/umem.h"

/* A doorbell record has at most two 32-bit counters. */
#define DBR_BYTES 8

static enum syn ring_find_umem(struct fw *fw, const struct fw_cmd *cmd, uint32_t id,
                               struct umem **umem)
{
    *umem = umem_find(&fw->hca, id);
    return uid_check((const struct obj *)*umem, cmd->uid, SYN_NO_UMEM);
}

enum syn fw_ring(struct fw *fw, struct fw_cmd *cmd, const struct fw_ring_ref *ref, uint64_t size,
                 struct mem_buf *buf)
{
    uint64_t npages, listed;
    struct mtt *mtt;
    bool covered;

    if (ref->umem_valid) {
        struct umem *umem;
        enum syn syn = ring_find_umem(fw, cmd, ref->umem_id, &umem);

        if (syn) {
            return syn;
        }
        if (ref->umem_offset > umem->size || size > umem->size - ref->umem_offset ||
            !mem_buf_init(buf, umem->mtt, umem->page_offset + ref->umem_offset, size)) {
            return SYN_UMEM_RANGE;
        }
        return SYN_OK;
    }
    if (ref->log_page < 12 || ref->log_page > 31 || size == 0 || size > UINT32_MAX ||
        ref->page_offset >= 1u << ref->log_page || ref->pas_off > cmd->in_len) {
        return SYN_BAD_PAS;
    }
    npages = (size + ref->page_offset + (1ull << ref->log_page) - 1) >> ref->log_page;
    listed = (cmd->in_len - ref->pas_off) / 8;
    if (npages > listed) {
        return SYN_BAD_PAS;
    }
    mtt = mtt_new_for(&fw->hca, cmd->in + ref->pas_off, (uint32_t)npages, ref->log_page);
    if (!mtt) {
        return SYN_NO_MEMORY;
    }
    covered = mem_buf_init(buf, mtt, ref->page_offset, size);
    mtt_unref(mtt);
    return covered ? SYN_OK : SYN_BAD_PAS;
}

enum syn fw_dbr(struct fw *fw, struct fw_cmd *cmd, bool umem_valid, uint32_t umem_id,
                uint64_t dbr_addr, struct fw_dbr *dbr)
{
    const struct mtt *mtt;
    struct umem *umem;
    uint64_t pos;
    enum syn syn;

    if (dbr_addr % 4) {
        return SYN_BAD_DBR;
    }
    if (!umem_valid) {
        *dbr = (struct fw_dbr){dbr_addr, NULL};
        return SYN_OK;
    }
    syn = ring_find_umem(fw, cmd, umem_id, &umem);
    if (syn) {
        return syn;
    }
    pos = umem->page_offset + dbr_addr;
    mtt = umem->mtt;
    if (dbr_addr > umem->size || DBR_BYTES > umem->size - dbr_addr ||
        (pos & ((1ull << mtt->log_page) - 1)) > (1ull << mtt->log_page) - DBR_BYTES) {
        return SYN_UMEM_RANGE;
    }
    *dbr = (struct fw_dbr){
        mtt->pa[pos >> mtt->log_page] + (pos & ((1ull << mtt->log_page) - 1)),
        &umem->obj,
    };
    return SYN_OK;
}
