/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * All commands, and the checks that each passes before its handler runs.
 *
 * Order of the checks: opcode, state of the function, user context, lengths. The first that
 * fails gives the status. What a real device also knows but a table here does not list is refused
 * as an unknown opcode, and logged as unhandled so that nothing goes missing silently.
 */
#include <string.h>
#include "fw/cmd_table.h"
#include "model/pd.h"

/* One line per file of commands. */
static const struct fw_cmd_row *const tables[] = {
    cmds_hca,  cmds_pages,  cmds_caps,      cmds_vport, cmds_access_reg, cmds_roce,
    cmds_devx, cmds_pd_uar, cmds_mkey,      cmds_eq,    cmds_cq,         cmds_q_counter,
    cmds_qp,   cmds_srq,    cmds_eth_queue, cmds_tir,   cmds_flow,
};

const struct fw_cmd_row *fw_cmd_find(uint16_t opcode)
{
    for (size_t i = 0; i < G_N_ELEMENTS(tables); i++) {
        for (const struct fw_cmd_row *row = tables[i]; row->handler; row++) {
            if (row->opcode == opcode) {
                return row;
            }
        }
    }
    return NULL;
}

const struct fw_cmd_row *fw_cmd_at(size_t i)
{
    for (size_t t = 0; t < G_N_ELEMENTS(tables); t++) {
        for (const struct fw_cmd_row *row = tables[t]; row->handler; row++) {
            if (i-- == 0) {
                return row;
            }
        }
    }
    return NULL;
}

static enum syn check(struct fw *fw, const struct fw_cmd_row *row, const struct fw_cmd *cmd)
{
    if (!row) {
        return SYN_BAD_OPCODE;
    }
    if (!(row->states & fw->state)) {
        return SYN_SYS_STATE;
    }
    /* UID_SHARED is what the kernel makes for everybody to use */
    if (cmd->uid && cmd->uid != UID_SHARED && (!row->any_uid || !devx_uid_exists(fw, cmd->uid))) {
        return SYN_BAD_UID;
    }
    if (cmd->in_len < row->in_len) {
        return SYN_IN_LEN;
    }
    if (cmd->out_len < row->out_len) {
        return SYN_OUT_LEN;
    }
    if (fw->state == CMD_READY && !pages_have_room(fw, cmd->opcode)) {
        return SYN_NO_MEMORY;
    }
    return SYN_OK;
}

void fw_execute(struct fw *fw, const uint8_t *in, size_t in_len, uint8_t *out, size_t out_len)
{
    struct fw_cmd cmd = {
        .opcode = PRM_GET(cmd_in, in, opcode),
        .op_mod = PRM_GET(cmd_in, in, op_mod),
        .uid = PRM_GET(general_obj_in_cmd_hdr, in, uid),
        .in = in,
        .in_len = in_len,
        .out = out,
        .out_len = out_len,
    };
    const struct fw_cmd_row *row = fw_cmd_find(cmd.opcode);
    enum syn syn = check(fw, row, &cmd);

    if (syn == SYN_OK) {
        hca_log(&fw->hca, HCA_LOG_TRACE, "command %s (0x%x) op_mod 0x%x uid %u",
                prm_cmd_op_name(cmd.opcode), cmd.opcode, cmd.op_mod, cmd.uid);
        syn = row->handler(fw, &cmd);
    } else if (!row) {
        hca_log(&fw->hca, HCA_LOG_GUEST_ERROR, "unhandled command %s (0x%x)",
                prm_cmd_op_name(cmd.opcode), cmd.opcode);
    }
    if (syn != SYN_OK) {
        fw->invalid_commands++;
        memset(out, 0, out_len);
        hca_log(&fw->hca, HCA_LOG_GUEST_ERROR, "command %s (0x%x) op_mod 0x%x: %s",
                prm_cmd_op_name(cmd.opcode), cmd.opcode, cmd.op_mod, syn_text(syn));
    }
    PRM_SET(cmd_out, out, status, syn_status(syn));
    PRM_SET(cmd_out, out, syndrome, syn_code(syn));
    if (fw->state == CMD_READY) {
        pages_balance(fw);
    }
}
