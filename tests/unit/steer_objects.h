/* SPDX-License-Identifier: BSD-2-Clause */
/* Fills in the inputs of commands on steering. Each function returns the bytes of the input. */
#ifndef HCASIM_TESTS_STEER_OBJECTS_H
#define HCASIM_TESTS_STEER_OBJECTS_H

#include "model/memory/sw_icm.h"
#include "prm/prm.h"

/* A block of the memory for steering entries. */
static inline size_t steer_fill_memory(void *in, uint32_t block)
{
    struct prm_sw_icm *object =
        PRM_PTR(general_object_in, (struct prm_general_object_in *)in, object);

    PRM_SET(general_obj_in_cmd_hdr, in, obj_type, PRM_GENERAL_OBJ_TYPE_SW_ICM);
    PRM_SET(sw_icm, object, log_sw_icm_size, SW_ICM_LOG_BLOCK);
    PRM_SET(sw_icm, object, sw_icm_start_addr, SW_ICM_STE_START + (uint64_t)block * SW_ICM_BLOCK);
    return PRM_SIZE(general_object_in) + PRM_SIZE(sw_icm);
}

/* An entry of a group that matches TCP ports. It drops frames for the port
 * index. */
static inline size_t steer_fill_entry(void *in, uint32_t table, uint32_t group, uint32_t index)
{
    struct prm_flow_context *ctx = PRM_PTR(set_fte_in, (struct prm_set_fte_in *)in, flow_context);

    PRM_SET(set_fte_in, in, table_id, table);
    PRM_SET(set_fte_in, in, flow_index, index);
    PRM_SET(flow_context, ctx, group_id, group);
    PRM_SET(flow_context, ctx, action, PRM_FLOW_ACTION_DROP);
    PRM_SET(fte_match_set_lyr_2_4,
            PRM_PTR(fte_match_param, PRM_PTR(flow_context, ctx, match_value), outer_headers),
            tcp_dport, index);
    return PRM_SIZE(set_fte_in);
}

static inline size_t steer_fill_sampler(void *in, uint32_t copies, uint32_t all)
{
    struct prm_flow_sampler *object =
        PRM_PTR(general_object_in, (struct prm_general_object_in *)in, object);

    PRM_SET(general_obj_in_cmd_hdr, in, obj_type, PRM_GENERAL_OBJ_TYPE_SAMPLER);
    PRM_SET(flow_sampler, object, sample_ratio, 1);
    PRM_SET(flow_sampler, object, ignore_flow_level, 1);
    PRM_SET(flow_sampler, object, sample_table_id, copies);
    PRM_SET(flow_sampler, object, default_table_id, all);
    return PRM_SIZE(general_object_in) + PRM_SIZE(flow_sampler);
}

static inline size_t steer_fill_meter(void *in, uint32_t table)
{
    struct prm_flow_meter *object =
        PRM_PTR(general_object_in, (struct prm_general_object_in *)in, object);

    PRM_SET(general_obj_in_cmd_hdr, in, obj_type, PRM_GENERAL_OBJ_TYPE_FLOW_METER);
    PRM_SET(flow_meter, object, destination_table_id, table);
    return PRM_SIZE(general_object_in) + PRM_SIZE(flow_meter);
}

#endif
