/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Commands on memory keys.
 *
 * A user context (DevX) names pages by a umem. Then this file makes the key's page list from the
 * umem's list, with pages of the size that the mkc asks for.
 */
#include "fw/cmd.h"
#include "model/memory/mkey.h"
#include "model/core/pd.h"
#include "model/memory/umem.h"

/* The most pages of a key made from a umem: 16 GiB in pages of 4 KiB. A list in a command is
 * shorter. */
#define XLT_MAX_PAGES (1ULL << 22)

#define MTT_BYTES     PRM_SIZE(mtt)

/* Describes the entries of a key on a umem's pages. They are the entries that CREATE_MKEY would
 * carry. */
struct cmd_umem_xlt {
    struct umem *umem;
    uint8_t log_page; /* log2 of the key's page size */
    uint64_t pos; /* position of the key's first page, from the start of the umem's first page */
    size_t len;   /* length of the entries in bytes */
};

/* The key's pages must not be larger than the umem's pages, and the key must begin at one of its
 * own page boundaries. */
static enum syn cmd_umem_xlt(struct fw *fw, struct fw_cmd *cmd, struct cmd_umem_xlt *xlt)
{
    const struct prm_create_mkey_in *in = cmd->in;
    const struct prm_mkc *mkc = PRM_PTR(create_mkey_in, in, memory_key_mkey_entry);
    struct umem *umem = umem_find(&fw->hca, PRM_GET(create_mkey_in, in, mkey_umem_id));
    uint64_t offset = PRM_GET(create_mkey_in, in, mkey_umem_offset);
    uint64_t start = PRM_GET(mkc, mkc, start_addr), len = PRM_GET(mkc, mkc, len);
    uint32_t log_page = PRM_GET(mkc, mkc, log_page_size);
    uint64_t room = PRM_GET(mkc, mkc, translations_octword_size) * 2ULL;
    uint64_t in_page, pos;

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
    if ((pos & ((1ULL << log_page) - 1)) != in_page) {
        return SYN_UMEM_RANGE;
    }
    if ((in_page + len) >> log_page > MIN(room, XLT_MAX_PAGES)) {
        return SYN_MKEY_XLT;
    }
    *xlt = (struct cmd_umem_xlt){
        .umem = umem,
        .log_page = (uint8_t)log_page,
        .pos = pos - in_page,
        .len = ((in_page + len + (1ULL << log_page) - 1) >> log_page) * MTT_BYTES,
    };
    return SYN_OK;
}

/* Makes len bytes of entries from the umem's list, beginning with byte at of the key's entries. */
static void cmd_umem_entries(const struct cmd_umem_xlt *xlt, size_t at, uint8_t *entries,
                             size_t len)
{
    const struct mtt *mtt = xlt->umem->mtt;

    for (size_t i = 0; i < len; i += MTT_BYTES) {
        uint64_t pos = xlt->pos + ((at + i) / MTT_BYTES << xlt->log_page);

        prm_store64(entries + i,
                    mtt->pa[pos >> mtt->log_page] + (pos & ((1ULL << mtt->log_page) - 1)));
    }
}

static void cmd_drop_mkey(struct fw *fw, struct fw_cmd *cmd)
{
    mkey_drop(&fw->hca, cmd->at.list.object);
}

/* umem: the umem whose pages the key gets, or NULL. */
static enum syn cmd_begin_mkey(struct fw *fw, struct fw_cmd *cmd, size_t len, struct umem *umem)
{
    struct mkey *mkey = NULL;
    enum syn syn =
        mkey_new(&fw->hca, cmd->uid, PRM_PTR(create_mkey_in, cmd->in, memory_key_mkey_entry), len,
                 umem != NULL, &mkey);

    if (mkey && PRM_GET(create_mkey_in, cmd->in, pg_access) && !umem) {
        mkey_use_pg_access(mkey);
    }
    if (mkey && umem) {
        mkey_keep_umem(mkey, umem);
    }
    cmd->at.list.object = mkey;
    cmd->drop = mkey ? cmd_drop_mkey : NULL;
    return syn;
}

/* Takes over the entries of the command, or of the umem that it names, in parts. */
static enum syn cmd_create_mkey(struct fw *fw, struct fw_cmd *cmd)
{
    const struct prm_create_mkey_in *in = cmd->in;
    const uint8_t *list = PRM_PTR(create_mkey_in, in, klm_pas_mtt);
    struct cmd_umem_xlt xlt = {
        .len = PRM_GET(create_mkey_in, in, translations_octword_actual_size) * (size_t)16};
    bool has_umem = PRM_GET(create_mkey_in, in, mkey_umem_valid);
    struct list_progress *at = &cmd->at.list;
    uint8_t entries[FW_LIST_PART * MTT_BYTES];
    uint32_t index = 0;
    enum syn syn = SYN_OK;

    if (PRM_GET(create_mkey_in, in, data_direct)) {
        return SYN_MKEY_MODE;
    }
    if (has_umem) {
        syn = cmd_umem_xlt(fw, cmd, &xlt);
    } else if (xlt.len > cmd->in_len - PRM_OFFSET(create_mkey_in, klm_pas_mtt)) {
        syn = SYN_MKEY_XLT;
    }
    if (!syn && !at->object) {
        syn = cmd_begin_mkey(fw, cmd, xlt.len, xlt.umem);
    }
    if (syn) {
        return syn;
    }
    while (at->done < xlt.len) {
        size_t part = MIN(xlt.len - at->done, sizeof(entries));

        if (has_umem) {
            cmd_umem_entries(&xlt, at->done, entries, part);
        }
        mkey_fill(&fw->hca, at->object, at->done, has_umem ? entries : list + at->done, part);
        at->done += part;
        if (!hca_may_go_on(&fw->hca)) {
            return SYN_AGAIN;
        }
    }
    cmd->drop = NULL;
    syn = mkey_enter(&fw->hca, at->object, &index);
    PRM_SET(create_mkey_out, cmd->out, mkey_index, index);
    return syn;
}

/* The answer also has as much of the key's list as there is room for. From the list of an indirect
 * key, the driver learns which on-demand keys a page fault is about
 * (pagefault_single_data_segment()). */
static enum syn cmd_query_mkey(struct fw *fw, struct fw_cmd *cmd)
{
    const size_t list = PRM_OFFSET(query_mkey_out, bsf0_klm0_pas_mtt0_1);
    uint32_t index = PRM_GET(query_mkey_in, cmd->in, mkey_index);
    enum syn syn =
        mkey_query(&fw->hca, index, PRM_PTR(query_mkey_out, cmd->out, memory_key_mkey_entry));

    if (syn == SYN_OK && cmd->out_len > list) {
        mkey_query_list(&fw->hca, cmd->uid, index, cmd->out + list, cmd->out_len - list);
    }
    return syn;
}

static enum syn cmd_destroy_mkey(struct fw *fw, struct fw_cmd *cmd)
{
    return mkey_destroy(&fw->hca, cmd->uid, PRM_GET(destroy_mkey_in, cmd->in, mkey_index));
}

const struct fw_cmd_row cmds_mkey[] = {
    FW_CMD(CREATE_MKEY, cmd_create_mkey),
    FW_CMD(QUERY_MKEY, cmd_query_mkey),
    FW_CMD(DESTROY_MKEY, cmd_destroy_mkey),
    {0},
};
