/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Traces commands. For a command that modifies an object, the trace shows the fields of the object
 * that have changed: the object is queried before and after the command.
 */
#include <string.h>
#include "fw/cmd_table.h"
#include "model/core/trace.h"
#include "model/eth/tir.h"

/* The longest answer to a query is that of an RQT with all its queues. An object with a longer one
 * is traced by the command's input. */
#define ANSWER_BYTES (PRM_SIZE(query_rqt_out) + RQT_MAX_SIZE * PRM_SIZE(rq_num))

/* Queries the object that a command is about. Returns the layout of the answer in the ANSWER_BYTES
 * at out, or NULL: the object cannot be queried. */
static const struct prm_struct *cmd_trace_query(struct fw *fw, const struct fw_cmd *cmd,
                                                uint8_t *out)
{
    const struct prm_command *command = cmd->row->command;
    const struct prm_command *query = command->object ? command->object->query : NULL;
    const struct fw_cmd_row *row = query ? fw_cmd_find(query->opcode) : NULL;
    uint8_t in[64] = {0};
    struct fw_cmd ask = {
        .row = row,
        .uid = cmd->uid,
        .vport = cmd->vport,
        .in = in,
        .out = out,
    };

    if (!row || query->in->size > sizeof(in) || query->out_least > ANSWER_BYTES) {
        return NULL;
    }
    ask.opcode = query->opcode;
    ask.in_len = query->in->size;
    ask.out_len = ANSWER_BYTES;
    memset(out, 0, ANSWER_BYTES);
    prm_copy_common(query->in, in, command->in, cmd->in, cmd->in_len);
    PRM_SET(cmd_in, (void *)in, opcode, query->opcode);
    PRM_SET(cmd_in, (void *)in, op_mod, 0);
    prm_set(in, query->number, prm_get(cmd->in, command->number), query->name);
    switch (row->handler(fw, &ask)) {
    case SYN_OK:
        return query->out;
    case SYN_AGAIN:
        if (ask.drop) {
            ask.drop(fw, &ask);
        }
        return NULL;
    default:
        return NULL;
    }
}

enum syn fw_cmd_run_traced(struct fw *fw, struct fw_cmd *cmd, char **changes)
{
    g_autofree uint8_t *was = NULL, *is = NULL;
    const struct prm_struct *layout = NULL;
    struct trace_line line;
    enum syn syn;

    if (cmd->row->command->act == PRM_MODIFIES) {
        was = g_malloc(ANSWER_BYTES);
        is = g_malloc(ANSWER_BYTES);
        layout = cmd_trace_query(fw, cmd, was);
    }
    syn = cmd->row->handler(fw, cmd);
    if (layout && syn == SYN_OK && cmd_trace_query(fw, cmd, is)) {
        trace_begin(&line);
        prm_line_add_changes(&line.line, layout, was, is, ANSWER_BYTES);
        *changes = g_strdup(line.text);
    }
    return syn;
}

void fw_cmd_trace(struct fw *fw, const struct fw_cmd *cmd, enum syn syn, const char *changes)
{
    const struct fw_cmd_row *row = fw_cmd_find(cmd->opcode);

    trace_command(&fw->hca, &(struct trace_command){
                                .command = row ? row->command : NULL,
                                .opcode = cmd->opcode,
                                .syn = syn,
                                .in = cmd->in,
                                .in_len = cmd->in_len,
                                .out = cmd->out,
                                .out_len = cmd->out_len,
                                .changes = changes,
                            });
}
