/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Commands on memory keys.
 *
 * A user context (DevX) names pages by umem: the key's page list is then made here from the umem's,
 * in pages of the size that the mkc asks for.
 */
#include "fw/cmd.h"
#include "fw/devx.h"
#include "model/mkey.h"
#include "model/pd.h"

/* Pages of a key made from a umem, 16 GiB in small ones; a list in a command ends sooner. */
#define XLT_MAX_PAGES (1ULL << 22)

#define MTT_BYTES     PRM_SIZE(mtt)

/* Translation entries as CREATE_MKEY would carry them. */
struct xlt {
    uint8_t *entries;
    size_t len; /* bytes */
};

/* Those for an mkc that covers a umem from offset on. Its pages must not be larger than the umem's,
 * nor begin inside one of its own. */
static enum syn umem_xlt(struct fw *fw, struct fw_cmd *cmd, const uint8_t *mkc, struct xlt *xlt)
{
    struct umem *umem = devx_umem_find(fw, PRM_GET(create_mkey_in, cmd->in, mkey_umem_id));
    uint64_t offset = PRM_GET(create_mkey_in, cmd->in, mkey_umem_offset);
    uint64_t start = PRM_GET(mkc, mkc, start_addr), len = PRM_GET(mkc, mkc, len);
    uint32_t log_page = PRM_GET(mkc, mkc, log_page_size);
    uint64_t room = PRM_GET(mkc, mkc, translations_octword_size) * 2ULL;
    uint64_t in_page, pos, end;
    uint8_t *entry;

    if (!umem) {
        return SYN_NO_UMEM;
    }
    if (!uid_may_use(&umem->obj, cmd->uid)) {
        return SYN_BAD_UID;
    }
    if (PRM_GET(mkc, mkc, access_mode_1_0) != PRM_MKC_ACCESS_MODE_MTT ||
        PRM_GET(mkc, mkc, access_mode_4_2) || PRM_GET(mkc, mkc, length64)) {
        return SYN_MKEY_MODE;
    }
    if (log_page < 12 || log_page > umem->mtt->log_page) {
        return SYN_MKEY_PAGE_SIZE;
    }
    if (offset > umem->size || len > umem->size - offset) {
        return SYN_UMEM_RANGE;
    }
    in_page = start & ((1ULL << log_page) - 1);
    pos = umem->page_offset + offset;
    end = pos + len;
    if ((pos & ((1ULL << log_page) - 1)) != in_page) {
        return SYN_UMEM_RANGE;
    }
    if ((in_page + len) >> log_page > MIN(room, XLT_MAX_PAGES)) {
        return SYN_MKEY_XLT;
    }
    pos -= in_page;
    xlt->len = (end - pos + (1ULL << log_page) - 1) / (1ULL << log_page) * MTT_BYTES;
    entry = xlt->entries = ledger_alloc(&fw->hca.memory, xlt->len);
    if (!entry) {
        return SYN_NO_MEMORY;
    }
    for (; pos < end; pos += 1ULL << log_page, entry += MTT_BYTES) {
        uint64_t page = pos >> umem->mtt->log_page;
        uint64_t at = pos & ((1ULL << umem->mtt->log_page) - 1);

        prm_store64(entry, umem->mtt->pa[page] + at);
    }
    return SYN_OK;
}

static enum syn create_mkey(struct fw *fw, struct fw_cmd *cmd)
{
    const uint8_t *mkc = PRM_PTR(create_mkey_in, cmd->in, memory_key_mkey_entry);
    const uint8_t *xlt = PRM_PTR(create_mkey_in, cmd->in, klm_pas_mtt);
    size_t xlt_len = cmd->in_len - PRM_OFFSET(create_mkey_in, klm_pas_mtt);
    uint64_t actual =
        PRM_GET(create_mkey_in, cmd->in, translations_octword_actual_size) * (uint64_t)16;
    uint32_t index = 0;
    enum syn syn;

    if (PRM_GET(create_mkey_in, cmd->in, data_direct)) {
        return SYN_MKEY_MODE;
    }
    if (PRM_GET(create_mkey_in, cmd->in, mkey_umem_valid)) {
        struct xlt pages = {0};

        syn = umem_xlt(fw, cmd, mkc, &pages);
        if (!syn) {
            syn = mkey_create(&fw->hca, cmd->uid, mkc, pages.entries, pages.len, true, &index);
        }
        ledger_free(&fw->hca.memory, pages.entries, pages.len);
    } else if (actual > xlt_len) {
        return SYN_MKEY_XLT;
    } else {
        syn = mkey_create(&fw->hca, cmd->uid, mkc, xlt, actual, false, &index);
    }
    PRM_SET(create_mkey_out, cmd->out, mkey_index, index);
    return syn;
}

static enum syn query_mkey(struct fw *fw, struct fw_cmd *cmd)
{
    return mkey_query(&fw->hca, PRM_GET(query_mkey_in, cmd->in, mkey_index),
                      PRM_PTR(query_mkey_out, cmd->out, memory_key_mkey_entry));
}

static enum syn destroy_mkey(struct fw *fw, struct fw_cmd *cmd)
{
    return mkey_destroy(&fw->hca, cmd->uid, PRM_GET(destroy_mkey_in, cmd->in, mkey_index));
}

const struct fw_cmd_row cmds_mkey[] = {
    FW_CMD_ROW(CREATE_MKEY, create_mkey, create_mkey),
    FW_CMD_ROW(QUERY_MKEY, query_mkey, query_mkey),
    FW_CMD_ROW(DESTROY_MKEY, destroy_mkey, destroy_mkey),
    {0},
};
