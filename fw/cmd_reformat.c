/* SPDX-License-Identifier: BSD-2-Clause */
/* Commands on what flow entries do to frames (model/steering/contexts.h). */
#include "fw/cmd.h"
#include "model/core/pd.h"
#include "model/steering/contexts.h"

/* The bytes of headers that fit behind a context that begins at offset at. */
static size_t reformat_room(size_t len, size_t at)
{
    size_t headers = at + PRM_OFFSET(packet_reformat_context_in, reformat_data);

    return len > headers ? len - headers : 0;
}

static enum syn cmd_alloc_reformat(struct fw *fw, struct fw_cmd *cmd)
{
    size_t at = PRM_OFFSET(alloc_packet_reformat_context_in, packet_reformat_context);
    uint32_t id = 0;
    enum syn syn = packet_reformat_create(
        &fw->hca, cmd->uid,
        PRM_PTR(alloc_packet_reformat_context_in, cmd->in, packet_reformat_context),
        reformat_room(cmd->in_len, at), &id);

    PRM_SET(alloc_packet_reformat_context_out, cmd->out, packet_reformat_id, id);
    return syn;
}

static enum syn cmd_query_reformat(struct fw *fw, struct fw_cmd *cmd)
{
    size_t at = PRM_OFFSET(query_packet_reformat_context_out, packet_reformat_context);

    return packet_reformat_query(
        &fw->hca, cmd->uid, PRM_GET(query_packet_reformat_context_in, cmd->in, packet_reformat_id),
        PRM_PTR_AT(query_packet_reformat_context_out, cmd->out, packet_reformat_context, 0),
        reformat_room(cmd->out_len, at));
}

static enum syn cmd_dealloc_reformat(struct fw *fw, struct fw_cmd *cmd)
{
    return obj_dealloc(&fw->hca, &fw->hca.packet_reformats, cmd->uid,
                       PRM_GET(dealloc_packet_reformat_context_in, cmd->in, packet_reformat_id),
                       SYN_NO_REFORMAT);
}

static enum syn cmd_alloc_modify_header(struct fw *fw, struct fw_cmd *cmd)
{
    const struct prm_alloc_modify_header_context_in *in = cmd->in;
    uint32_t n = PRM_GET(alloc_modify_header_context_in, in, num_of_actions), id = 0;
    enum syn syn;

    if (cmd->in_len < PRM_SIZE(alloc_modify_header_context_in) +
                          n * PRM_STRIDE(alloc_modify_header_context_in, actions)) {
        return SYN_IN_LEN;
    }
    syn = modify_header_create(&fw->hca, cmd->uid,
                               (uint8_t)PRM_GET(alloc_modify_header_context_in, in, table_type),
                               PRM_PTR_AT(alloc_modify_header_context_in, in, actions, 0), n, &id);
    PRM_SET(alloc_modify_header_context_out, cmd->out, modify_header_id, id);
    return syn;
}

static enum syn cmd_dealloc_modify_header(struct fw *fw, struct fw_cmd *cmd)
{
    return obj_dealloc(&fw->hca, &fw->hca.modify_headers, cmd->uid,
                       PRM_GET(dealloc_modify_header_context_in, cmd->in, modify_header_id),
                       SYN_NO_MODIFY_HEADER);
}

const struct fw_cmd_row cmds_reformat[] = {
    FW_CMD(ALLOC_PACKET_REFORMAT_CONTEXT, cmd_alloc_reformat),
    FW_CMD(QUERY_PACKET_REFORMAT_CONTEXT, cmd_query_reformat),
    FW_CMD(DEALLOC_PACKET_REFORMAT_CONTEXT, cmd_dealloc_reformat),
    FW_CMD(ALLOC_MODIFY_HEADER_CONTEXT, cmd_alloc_modify_header),
    FW_CMD(DEALLOC_MODIFY_HEADER_CONTEXT, cmd_dealloc_modify_header),
    {0},
};
