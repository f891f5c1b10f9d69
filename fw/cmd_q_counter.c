/* SPDX-License-Identifier: BSD-2-Clause */
/* Commands on Q counter sets. */
#include "fw/cmd.h"
#include "model/queue/q_counter.h"

static enum syn cmd_alloc_q_counter(struct fw *fw, struct fw_cmd *cmd)
{
    uint32_t id = 0;
    enum syn syn = q_counter_alloc(&fw->hca, cmd->uid, &id);

    PRM_SET(alloc_q_counter_out, cmd->out, counter_set_id, id);
    return syn;
}

static enum syn cmd_dealloc_q_counter(struct fw *fw, struct fw_cmd *cmd)
{
    return q_counter_dealloc(&fw->hca, cmd->uid,
                             PRM_GET(dealloc_q_counter_in, cmd->in, counter_set_id));
}

static enum syn cmd_query_q_counter(struct fw *fw, struct fw_cmd *cmd)
{
    const struct prm_query_q_counter_in *in = cmd->in;

    if (PRM_GET(query_q_counter_in, in, aggregate)) {
        return SYN_Q_COUNTER_VPORT;
    }
    return q_counter_query(&fw->hca, PRM_GET(query_q_counter_in, in, counter_set_id),
                           PRM_GET(query_q_counter_in, in, clear), cmd->out);
}

const struct fw_cmd_row cmds_q_counter[] = {
    FW_CMD(ALLOC_Q_COUNTER, cmd_alloc_q_counter),
    FW_CMD(DEALLOC_Q_COUNTER, cmd_dealloc_q_counter),
    FW_CMD(QUERY_Q_COUNTER, cmd_query_q_counter),
    {0},
};
