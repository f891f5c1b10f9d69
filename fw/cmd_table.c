/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Has the table of all commands, and checks each command before its handler runs.
 *
 * The order of the checks is opcode, state of the function, user context, lengths, op_mod, reserved
 * bits, and the target of the command (fw/cmd_about.c). The first check that fails gives the
 * status. Reserved bits are those that no field of the command's layout covers (prm), also behind
 * the end of the layout, unless a list is there. So an input that is longer than the known layout
 * is accepted if the rest is zero. A command that a real device knows but that is not in a table
 * here is refused as an unknown opcode. It is logged as unhandled, so that the refusal does not
 * stay unnoticed.
 */
#include <string.h>
#include "fw/cmd_table.h"
#include "model/queue/cqe_compress.h"
#include "model/core/pd.h"

/* One line for each file of commands. */
static const struct fw_cmd_row *const tables[] = {
    cmds_hca,       cmds_pages,   cmds_caps,   cmds_vport, cmds_access_reg, cmds_roce,
    cmds_devx,      cmds_general, cmds_pd_uar, cmds_mkey,  cmds_eq,         cmds_cq,
    cmds_q_counter, cmds_qp,      cmds_dct,    cmds_srq,   cmds_eth_queue,  cmds_tir,
    cmds_flow,      cmds_lag,     cmds_cong,   cmds_memic, cmds_page_fault, cmds_psv,
    cmds_reformat,  cmds_qos,     cmds_vxlan,
};

/* The rows by opcode. Known opcodes have 12 bits. */
static const struct fw_cmd_row *rows[0x1000];

static void cmd_rows_init(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(tables); i++) {
        for (const struct fw_cmd_row *row = tables[i]; row->handler; row++) {
            uint16_t opcode = row->command->opcode;

            g_assert(opcode < G_N_ELEMENTS(rows) && !rows[opcode]);
            rows[opcode] = row;
        }
    }
}

const struct fw_cmd_row *fw_cmd_find(uint16_t opcode)
{
    static gsize done;

    if (g_once_init_enter(&done)) {
        cmd_rows_init();
        g_once_init_leave(&done, 1);
    }
    return opcode < G_N_ELEMENTS(rows) ? rows[opcode] : NULL;
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

/* Whether a layout, or a layout nested at its end, ends with a list of unlimited length. */
static bool cmd_has_list(const struct prm_struct *s)
{
    for (size_t i = 0; i < s->n_fields; i++) {
        const struct prm_field *f = &s->fields[i];

        if (f->count == 0 ||
            (f->type && f->bit / 8 + f->type->size == s->size && cmd_has_list(f->type))) {
            return true;
        }
    }
    return false;
}

/* uid is not a field of commands that need no user context, but the driver puts it into all
 * commands. */
#define RESERVED_FROM PRM_OFFSET(general_obj_in_cmd_hdr, uid) + 2

#define ZEROS         4096 /* bytes that are compared at a time, for one piece */

/* Skips whole blocks of ZEROS zero bytes. The next byte that is not 0 is at or after the result. */
static size_t cmd_skip_zeros(const uint8_t *p, size_t at, size_t end)
{
    static const uint8_t zeros[ZEROS];

    while (end - at >= ZEROS && memcmp(p + at, zeros, ZEROS) == 0) {
        at += ZEROS;
    }
    return at;
}

static bool cmd_reserved_clear(struct fw *fw, const struct prm_struct *layout,
                               const struct fw_cmd *cmd)
{
    bool is_open = cmd_has_list(layout);

    for (size_t at = RESERVED_FROM; at < cmd->in_len; at++) {
        uint8_t mask = 0xff;

        if (at < layout->size) {
            mask = layout->reserved[at];
        } else if (is_open) {
            return true;
        } else if (at == layout->size) {
            hca_spend(&fw->hca, (cmd->in_len - at) / ZEROS);
            at = cmd_skip_zeros(cmd->in, at, cmd->in_len);
            if (at == cmd->in_len) {
                return true;
            }
        }
        if (((const uint8_t *)cmd->in)[at] & mask) {
            hca_log(&fw->hca, HCA_LOG_GUEST_ERROR, "command %s: reserved bits of byte 0x%zx",
                    prm_cmd_op_name(cmd->opcode), at);
            return false;
        }
    }
    return true;
}

static enum syn cmd_check(struct fw *fw, const struct fw_cmd_row *row, const struct fw_cmd *cmd)
{
    if (!row || !caps_allow_command(fw, cmd->opcode)) {
        return SYN_BAD_OPCODE;
    }
    if (!(row->states & fw->state)) {
        return SYN_SYS_STATE;
    }
    /* the kernel uses UID_SHARED for objects that everybody may use */
    if (cmd->uid && cmd->uid != UID_SHARED && (!row->any_uid || !devx_uid_exists(fw, cmd->uid))) {
        return SYN_BAD_UID;
    }
    if (cmd->in_len < row->command->in_least) {
        return SYN_IN_LEN;
    }
    if (cmd->out_len < row->command->out_least) {
        return SYN_OUT_LEN;
    }
    if (!prm_command_has_variant(row->command, cmd->op_mod)) {
        return SYN_BAD_OP_MOD;
    }
    if (!cmd_reserved_clear(fw, row->command->in, cmd)) {
        return SYN_RESERVED;
    }
    return SYN_OK;
}

/* Reads opcode, op_mod and uid of the command, and checks whether it may run. */
static enum syn cmd_begin(struct fw *fw, struct fw_cmd *cmd)
{
    const struct fw_cmd_row *row;
    enum syn syn;

    cmd->opcode = PRM_GET(cmd_in, cmd->in, opcode);
    cmd->op_mod = PRM_GET(cmd_in, cmd->in, op_mod);
    cmd->uid = PRM_GET(general_obj_in_cmd_hdr, cmd->in, uid);
    row = fw_cmd_find(cmd->opcode);
    if (!row) {
        hca_log(&fw->hca, HCA_LOG_GUEST_ERROR, "unhandled command %s (0x%x)",
                prm_cmd_op_name(cmd->opcode), cmd->opcode);
    }
    syn = cmd_check(fw, row, cmd);
    if (syn == SYN_OK) {
        syn = fw_cmd_resolve(fw, cmd);
    }
    cmd->row = syn == SYN_OK ? row : NULL;
    return syn;
}

/* changes: what the trace says of a command that modifies an object, or NULL. */
static void cmd_finish(struct fw *fw, const struct fw_cmd *cmd, enum syn syn, const char *changes)
{
    struct prm_cmd_out *out = cmd->out;

    cqe_sessions_close(&fw->hca);
    if (syn != SYN_OK) {
        fw->invalid_commands++;
        fw->quota_exceeded +=
            syn_status(syn) == PRM_CMD_STATUS_NO_RES || syn_status(syn) == PRM_CMD_STATUS_LIM_ERR;
        memset(cmd->out, 0, cmd->out_len);
        hca_log(&fw->hca, HCA_LOG_GUEST_ERROR, "command %s (0x%x) op_mod 0x%x: %s",
                prm_cmd_op_name(cmd->opcode), cmd->opcode, cmd->op_mod, syn_text(syn));
    }
    PRM_SET(cmd_out, out, status, syn_status(syn));
    PRM_SET(cmd_out, out, syndrome, syn_code(syn));
    if (syn == SYN_INJECTED) {
        inject_fill(fw, out);
    }
    if (fw->hca.tracing) {
        fw_cmd_trace(fw, cmd, syn, changes);
    }
    if (fw->state == CMD_READY) {
        pages_balance(fw);
    }
}

bool fw_execute(struct fw *fw, struct fw_cmd *cmd)
{
    bool is_new = !cmd->row;
    enum syn syn = is_new ? cmd_begin(fw, cmd) : SYN_OK;
    g_autofree char *changes = NULL;

    if (G_UNLIKELY(fw->hca.inject) && is_new && syn == SYN_OK) {
        syn = inject_command(fw, cmd);
    }

    if (syn == SYN_OK) {
        syn = fw->hca.tracing ? fw_cmd_run_traced(fw, cmd, &changes) : cmd->row->handler(fw, cmd);
    }
    if (syn == SYN_AGAIN) {
        return false;
    }
    cmd_finish(fw, cmd, syn, changes);
    return true;
}
