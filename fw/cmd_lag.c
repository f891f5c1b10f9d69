/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Commands on link aggregation, for a function whose port is not bonded. The function does not
 * report lag_master, so no driver makes a LAG. But programs query it (UCX does when it opens a
 * device).
 */
#include "fw/cmd.h"

/* Returns a LAG context of zeros: not bonded, no port to choose. */
static enum syn cmd_query_lag(struct fw *fw, struct fw_cmd *cmd)
{
    return SYN_OK;
}

const struct fw_cmd_row cmds_lag[] = {
    FW_CMD(QUERY_LAG, cmd_query_lag),
    {0},
};
