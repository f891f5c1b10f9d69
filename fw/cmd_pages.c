/* SPDX-License-Identifier: BSD-2-Clause */
/* Commands on the function's host pages (driver: pagealloc.c). The ledger is in fw/pages.c. */
#include "fw/cmd.h"

static enum syn cmd_query_pages(struct fw *fw, struct fw_cmd *cmd)
{
    int32_t n;

    switch (cmd->op_mod) {
    case PRM_QUERY_PAGES_OP_BOOT_PAGES:
        n = (int32_t)pages_wanted_boot(fw);
        break;
    case PRM_QUERY_PAGES_OP_INIT_PAGES:
        n = (int32_t)pages_wanted_init(fw);
        break;
    default: /* PRM_QUERY_PAGES_OP_REGULAR_PAGES; the dispatcher has checked the variant */
        n = pages_wanted_regular(fw);
    }
    PRM_SET(query_pages_out, cmd->out, num_pages, (uint32_t)n);
    return SYN_OK;
}

static enum syn cmd_manage_pages(struct fw *fw, struct fw_cmd *cmd)
{
    const struct prm_manage_pages_in *in = cmd->in;
    struct prm_manage_pages_out *out = cmd->out;
    uint32_t n = PRM_GET(manage_pages_in, in, input_num_entries);
    struct pages_progress *at = &cmd->at.pages;
    size_t in_room = (cmd->in_len - PRM_SIZE(manage_pages_in)) / 8;
    size_t out_room = (cmd->out_len - PRM_SIZE(manage_pages_out)) / 8;
    enum syn syn;

    switch (cmd->op_mod) {
    case PRM_MANAGE_PAGES_OP_ALLOCATION_FAIL:
        pages_cant_give(fw);
        return SYN_OK;
    case PRM_MANAGE_PAGES_OP_ALLOCATION_SUCCESS:
        return n > in_room ? SYN_IN_LEN : pages_give(fw, PRM_PTR(manage_pages_in, in, pas), n, at);
    default: /* PRM_MANAGE_PAGES_OP_HCA_RETURN_PAGES */
        if (n > out_room) {
            return SYN_OUT_LEN;
        }
        syn = pages_take(fw, PRM_PTR(manage_pages_out, out, pas), n, at);
        PRM_SET(manage_pages_out, out, output_num_entries, at->n);
        return syn;
    }
}

const struct fw_cmd_row cmds_pages[] = {
    {PRM_COMMAND(QUERY_PAGES), CMD_ENABLED | CMD_READY, false, cmd_query_pages},
    {PRM_COMMAND(MANAGE_PAGES), CMD_ENABLED | CMD_READY, false, cmd_manage_pages},
    {0},
};
