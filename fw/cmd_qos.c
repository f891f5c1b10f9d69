/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Commands on the quality of service of send queues: rates of packet pacing, and scheduling
 * elements. A user context makes scheduling elements as general objects (fw/cmd_general.c).
 */
#include <string.h>
#include "fw/cmd.h"
#include "model/port/pace.h"
#include "model/port/sched.h"

/* The driver allocates the indices; the uid says whose queues may name the rate. */
static enum syn cmd_set_pp_rate_limit(struct fw *fw, struct fw_cmd *cmd)
{
    const struct prm_set_pp_rate_limit_context *ctx = PRM_PTR(set_pp_rate_limit_in, cmd->in, ctx);
    struct pace_rate rate = {
        .kbps = PRM_GET(set_pp_rate_limit_context, ctx, rate_limit),
        .burst = PRM_GET(set_pp_rate_limit_context, ctx, burst_upper_bound),
        .typical = (uint16_t)PRM_GET(set_pp_rate_limit_context, ctx, typical_packet_size),
        .uid = cmd->uid,
    };

    return pace_set(&fw->hca, PRM_GET(set_pp_rate_limit_in, cmd->in, rate_limit_index), &rate);
}

static enum syn cmd_create_scheduling_element(struct fw *fw, struct fw_cmd *cmd)
{
    const struct prm_create_scheduling_element_in *in = cmd->in;
    uint32_t id = 0;
    enum syn syn;

    if (PRM_GET(create_scheduling_element_in, in, scheduling_hierarchy) !=
        PRM_SCHEDULING_HIERARCHY_NIC) {
        return SYN_SCHED_TREE;
    }
    syn = sched_create(&fw->hca, cmd->uid,
                       PRM_PTR(create_scheduling_element_in, in, scheduling_context), &id);
    PRM_SET(create_scheduling_element_out, cmd->out, scheduling_element_id, id);
    return syn;
}

/* The element that the other three commands name; they have the same head. */
static enum syn cmd_find_element(struct fw *fw, const struct fw_cmd *cmd, struct sched_elem **elem)
{
    const struct prm_destroy_scheduling_element_in *in = cmd->in;

    if (PRM_GET(destroy_scheduling_element_in, in, scheduling_hierarchy) !=
        PRM_SCHEDULING_HIERARCHY_NIC) {
        return SYN_SCHED_TREE;
    }
    return sched_find(&fw->hca, cmd->uid,
                      PRM_GET(destroy_scheduling_element_in, in, scheduling_element_id), elem);
}

static enum syn cmd_query_scheduling_element(struct fw *fw, struct fw_cmd *cmd)
{
    struct sched_elem *elem;
    enum syn syn = cmd_find_element(fw, cmd, &elem);

    if (syn == SYN_OK) {
        memcpy(PRM_PTR(query_scheduling_element_out, cmd->out, scheduling_context),
               PRM_PTR(sched_elem_obj, elem->ctx, scheduling_context),
               PRM_SIZE(scheduling_context));
    }
    return syn;
}

static enum syn cmd_modify_scheduling_element(struct fw *fw, struct fw_cmd *cmd)
{
    const struct prm_modify_scheduling_element_in *in = cmd->in;
    struct sched_elem *elem;
    enum syn syn = cmd_find_element(fw, cmd, &elem);

    return syn ? syn
               : sched_modify(&fw->hca, elem,
                              PRM_GET(modify_scheduling_element_in, in, modify_bitmask),
                              PRM_PTR(modify_scheduling_element_in, in, scheduling_context));
}

static enum syn cmd_destroy_scheduling_element(struct fw *fw, struct fw_cmd *cmd)
{
    struct sched_elem *elem;
    enum syn syn = cmd_find_element(fw, cmd, &elem);

    if (syn != SYN_OK) {
        return syn;
    }
    if (elem->obj.refs) {
        return SYN_IN_USE;
    }
    sched_free(&fw->hca, &elem->obj);
    return SYN_OK;
}

const struct fw_cmd_row cmds_qos[] = {
    FW_CMD(SET_PP_RATE_LIMIT, cmd_set_pp_rate_limit),
    FW_KERNEL_CMD(CREATE_SCHEDULING_ELEMENT, cmd_create_scheduling_element),
    FW_KERNEL_CMD(QUERY_SCHEDULING_ELEMENT, cmd_query_scheduling_element),
    FW_KERNEL_CMD(MODIFY_SCHEDULING_ELEMENT, cmd_modify_scheduling_element),
    FW_KERNEL_CMD(DESTROY_SCHEDULING_ELEMENT, cmd_destroy_scheduling_element),
    {0},
};
