/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Commands on RoCE congestion control of the port (model/port/cong.h): the two sides by priority,
 * their parameters, and their counters. The port belongs to the card, so all functions of a card
 * read and change the same settings.
 */
#include "fw/cmd.h"
#include "model/port/eswitch.h"

static struct cong *cmd_cong(const struct fw_cmd *cmd)
{
    return &cmd->vport->uplink->cong;
}

static enum syn cmd_cong_side(const struct fw_cmd *cmd, unsigned protocol, unsigned priority,
                              struct cong_side **side)
{
    *side = cong_side(cmd_cong(cmd), protocol);
    if (!*side) {
        return SYN_CONG_PROTOCOL;
    }
    return priority < CONG_PRIORITIES ? SYN_OK : SYN_CONG_PRIORITY;
}

static enum syn cmd_query_cong_status(struct fw *fw, struct fw_cmd *cmd)
{
    const struct prm_query_cong_status_in *in = cmd->in;
    unsigned priority = PRM_GET(query_cong_status_in, in, priority);
    struct cong_side *side;
    enum syn syn =
        cmd_cong_side(cmd, PRM_GET(query_cong_status_in, in, cong_protocol), priority, &side);

    if (syn == SYN_OK) {
        PRM_SET(query_cong_status_out, cmd->out, enable, side->enabled >> priority & 1);
        PRM_SET(query_cong_status_out, cmd->out, tag_enable, side->tagged >> priority & 1);
    }
    return syn;
}

static uint8_t cmd_cong_put(uint8_t bits, unsigned priority, bool value)
{
    return (uint8_t)((bits & ~(1u << priority)) | (unsigned)value << priority);
}

static enum syn cmd_modify_cong_status(struct fw *fw, struct fw_cmd *cmd)
{
    const struct prm_modify_cong_status_in *in = cmd->in;
    unsigned priority = PRM_GET(modify_cong_status_in, in, priority);
    struct cong_side *side;
    enum syn syn =
        cmd_cong_side(cmd, PRM_GET(modify_cong_status_in, in, cong_protocol), priority, &side);

    if (syn == SYN_OK) {
        side->enabled =
            cmd_cong_put(side->enabled, priority, PRM_GET(modify_cong_status_in, in, enable));
        side->tagged =
            cmd_cong_put(side->tagged, priority, PRM_GET(modify_cong_status_in, in, tag_enable));
        /* the setting changes the ECN bits of sent packets */
        eswitch_paths_changed(cmd->vport->sw);
    }
    return syn;
}

static enum syn cmd_query_cong_params(struct fw *fw, struct fw_cmd *cmd)
{
    const struct prm_query_cong_params_in *in = cmd->in;
    struct prm_query_cong_params_out *out = cmd->out;

    return cong_query(cmd_cong(cmd), PRM_GET(query_cong_params_in, in, cong_protocol),
                      PRM_PTR(query_cong_params_out, out, congestion_parameters));
}

static enum syn cmd_modify_cong_params(struct fw *fw, struct fw_cmd *cmd)
{
    const struct prm_modify_cong_params_in *in = cmd->in;

    return cong_modify(cmd_cong(cmd), PRM_GET(modify_cong_params_in, in, cong_protocol),
                       PRM_GET(modify_cong_params_in, in, field_select),
                       PRM_PTR(modify_cong_params_in, in, congestion_parameters));
}

#define CONG_PUT_64(out, field, value)                                                             \
    do {                                                                                           \
        PRM_SET(query_cong_statistics_out, out, field##_high, (value) >> 32);                      \
        PRM_SET(query_cong_statistics_out, out, field##_low, (value)&UINT32_MAX);                  \
    } while (0)

static enum syn cmd_query_cong_statistics(struct fw *fw, struct fw_cmd *cmd)
{
    struct cong *cong = cmd_cong(cmd);
    const struct cong_counters *c = &cong->counters;
    const struct prm_query_cong_statistics_in *in = cmd->in;
    struct prm_query_cong_statistics_out *out = cmd->out;
    uint64_t now = hca_now(&fw->hca);

    PRM_SET(query_cong_statistics_out, out, rp_cur_flows, cong->flows);
    PRM_SET(query_cong_statistics_out, out, sum_flows, c->sum_flows & UINT32_MAX);
    CONG_PUT_64(out, rp_cnp_ignored, c->cnps_ignored);
    CONG_PUT_64(out, rp_cnp_handled, c->cnps_handled);
    CONG_PUT_64(out, np_ecn_marked_roce_packets, c->marked);
    CONG_PUT_64(out, np_cnp_sent, c->cnps_sent);
    CONG_PUT_64(out, time_stamp, now);
    PRM_SET(query_cong_statistics_out, out, accumulators_period,
            MIN((now - c->since) / 1000, UINT32_MAX));
    if (PRM_GET(query_cong_statistics_in, in, clear)) {
        cong->counters = (struct cong_counters){.since = now};
    }
    return SYN_OK;
}

const struct fw_cmd_row cmds_cong[] = {
    FW_CMD(QUERY_CONG_STATUS, cmd_query_cong_status),
    FW_KERNEL_CMD(MODIFY_CONG_STATUS, cmd_modify_cong_status),
    FW_CMD(QUERY_CONG_PARAMS, cmd_query_cong_params),
    FW_KERNEL_CMD(MODIFY_CONG_PARAMS, cmd_modify_cong_params),
    FW_CMD(QUERY_CONG_STATISTICS, cmd_query_cong_statistics),
    {0},
};
