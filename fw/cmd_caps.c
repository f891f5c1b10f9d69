/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Implements QUERY_HCA_CAP and SET_HCA_CAP. op_mod is section << 1; in a query, bit 0 is set for
 * the present values.
 */
#include <string.h>
#include "fw/cmd.h"

static enum syn cmd_query_hca_cap(struct fw *fw, struct fw_cmd *cmd)
{
    uint8_t cap[CAP_SECTION_BYTES] = {0};
    size_t at = PRM_OFFSET(query_hca_cap_out, capability);

    if (!caps_fill(fw, cmd->op_mod >> 1, !(cmd->op_mod & PRM_HCA_CAP_MODE_CUR), cap)) {
        return SYN_NO_CAP_SECTION;
    }
    memcpy(cmd->out + at, cap, MIN(sizeof(cap), cmd->out_len - at));
    return SYN_OK;
}

static enum syn cmd_set_hca_cap(struct fw *fw, struct fw_cmd *cmd)
{
    uint8_t cap[CAP_SECTION_BYTES] = {0};
    size_t at = PRM_OFFSET(set_hca_cap_in, capability);

    memcpy(cap, cmd->in + at, MIN(sizeof(cap), cmd->in_len - at));
    return caps_set(fw, cmd->op_mod >> 1, cap);
}

const struct fw_cmd_row cmds_caps[] = {
    /* the caller may ask only for the beginning of a section, because the union of an older
     * interface is shorter */
    {PRM_COMMAND(QUERY_HCA_CAP), CMD_ENABLED | CMD_READY, true, cmd_query_hca_cap},
    {PRM_COMMAND(SET_HCA_CAP), CMD_ENABLED, false, cmd_set_hca_cap},
    {0},
};
