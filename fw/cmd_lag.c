/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Link aggregation: a function whose port is bonded with no other's. It does not report lag_master,
 * so no driver makes a LAG; programs ask all the same (UCX does as it opens a device).
 */
#include "fw/cmd.h"

/* A LAG's context of zeros: not bonded, no port to choose. */
static enum syn cmd_query_lag(struct fw *fw, struct fw_cmd *cmd)
{
    return SYN_OK;
}

const struct fw_cmd_row cmds_lag[] = {
    FW_CMD(QUERY_LAG, cmd_query_lag),
    {0},
};
