/* SPDX-License-Identifier: BSD-2-Clause */
/* Commands on the function's host pages (driver: pagealloc.c); the ledger is fw/pages.c. */
#include "fw/cmd.h"

/* op_mod of QUERY_PAGES (mlx5_ifc.h MLX5_QUERY_PAGES_IN_OP_MOD_*). */
enum query_pages_mod {
    BOOT_PAGES = 1,
    INIT_PAGES = 2,
    REGULAR_PAGES = 3,
};

/* op_mod of MANAGE_PAGES (the driver's MLX5_PAGES_*). */
enum manage_pages_mod {
    PAGES_CANT_GIVE = 0,
    PAGES_GIVE = 1,
    PAGES_TAKE = 2,
};

static enum syn cmd_query_pages(struct fw *fw, struct fw_cmd *cmd)
{
    int32_t n;

    if (PRM_GET(query_pages_in, cmd->in, function_id)) {
        return SYN_NO_FUNCTION;
    }
    switch (cmd->op_mod) {
    case BOOT_PAGES:
        n = (int32_t)pages_wanted_boot(fw);
        break;
    case INIT_PAGES:
        n = (int32_t)pages_wanted_init(fw);
        break;
    case REGULAR_PAGES:
        n = pages_wanted_regular(fw);
        break;
    default:
        return SYN_BAD_OP_MOD;
    }
    PRM_SET(query_pages_out, cmd->out, num_pages, (uint32_t)n);
    return SYN_OK;
}

static enum syn cmd_manage_pages(struct fw *fw, struct fw_cmd *cmd)
{
    uint32_t n = PRM_GET(manage_pages_in, cmd->in, input_num_entries);
    struct pages_progress *at = &cmd->at.pages;
    size_t in_room = (cmd->in_len - PRM_SIZE(manage_pages_in)) / 8;
    size_t out_room = (cmd->out_len - PRM_SIZE(manage_pages_out)) / 8;
    enum syn syn;

    if (PRM_GET(manage_pages_in, cmd->in, function_id)) {
        return SYN_NO_FUNCTION;
    }
    switch (cmd->op_mod) {
    case PAGES_CANT_GIVE:
        pages_cant_give(fw);
        return SYN_OK;
    case PAGES_GIVE:
        return n > in_room ? SYN_IN_LEN
                           : pages_give(fw, PRM_PTR(manage_pages_in, cmd->in, pas), n, at);
    case PAGES_TAKE:
        if (n > out_room) {
            return SYN_OUT_LEN;
        }
        syn = pages_take(fw, PRM_PTR(manage_pages_out, cmd->out, pas), n, at);
        PRM_SET(manage_pages_out, cmd->out, output_num_entries, at->n);
        return syn;
    default:
        return SYN_BAD_OP_MOD;
    }
}

const struct fw_cmd_row cmds_pages[] = {
    {PRM_CMD_OP_QUERY_PAGES, CMD_ENABLED | CMD_READY, false, PRM_SIZE(query_pages_in),
     PRM_SIZE(query_pages_out), cmd_query_pages},
    {PRM_CMD_OP_MANAGE_PAGES, CMD_ENABLED | CMD_READY, false, PRM_SIZE(manage_pages_in),
     PRM_SIZE(manage_pages_out), cmd_manage_pages},
    {0},
};
