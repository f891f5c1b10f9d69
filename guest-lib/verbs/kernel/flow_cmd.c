/* SPDX-License-Identifier: BSD-2-Clause */
/* Commands for flow tables, groups and entries. */
#include <string.h>
#include "guest-lib/verbs/kernel/flow_cmd.h"

static int flow_set_root(struct hv_hca *hca, uint8_t type, uint32_t table_id, uint16_t op_mod)
{
    struct prm_set_flow_table_root_in in[1] = {0};

    PRM_SET(set_flow_table_root_in, in, opcode, PRM_CMD_OP_SET_FLOW_TABLE_ROOT);
    PRM_SET(set_flow_table_root_in, in, op_mod, op_mod);
    PRM_SET(set_flow_table_root_in, in, table_type, type);
    PRM_SET(set_flow_table_root_in, in, table_id, table_id);
    return hv_cmd_simple(hca, in, sizeof(in));
}

int hv_flow_set_root(struct hv_hca *hca, uint8_t type, uint32_t table_id)
{
    return flow_set_root(hca, type, table_id, PRM_SET_FLOW_TABLE_ROOT_OP_SET);
}

int hv_flow_unset_root(struct hv_hca *hca, uint8_t type, uint32_t table_id)
{
    return flow_set_root(hca, type, table_id, PRM_SET_FLOW_TABLE_ROOT_OP_UNSET);
}

void hv_flow_destroy_table(struct hv_hca *hca, uint8_t type, uint32_t table_id)
{
    struct prm_destroy_flow_table_in in[1] = {0};

    PRM_SET(destroy_flow_table_in, in, opcode, PRM_CMD_OP_DESTROY_FLOW_TABLE);
    PRM_SET(destroy_flow_table_in, in, table_type, type);
    PRM_SET(destroy_flow_table_in, in, table_id, table_id);
    hv_cmd_simple(hca, in, sizeof(in));
}

/* Entries may do to frames what the device can do in tables of the type (get_flow_table()). */
static void flow_enable_changes(struct hv_hca *hca, uint8_t type,
                                struct prm_flow_table_context *ctx)
{
    if (type == PRM_FLOW_TABLE_TYPE_NIC_RX) {
        PRM_SET(flow_table_context, ctx, decap_en, HV_FLOW_CAP(hca, nic_receive, decap));
        PRM_SET(flow_table_context, ctx, reformat_en,
                HV_FLOW_CAP(hca, nic_receive, reformat_l3_tunnel_to_l2));
    } else if (type == PRM_FLOW_TABLE_TYPE_NIC_TX) {
        PRM_SET(flow_table_context, ctx, reformat_en, HV_FLOW_CAP(hca, nic_transmit, reformat));
    }
}

static void flow_put_miss(struct prm_flow_table_context *ctx, const uint32_t *next)
{
    PRM_SET(flow_table_context, ctx, table_miss_action,
            next ? PRM_FLOW_TABLE_MISS_ACTION_FWD : PRM_FLOW_TABLE_MISS_ACTION_DEF);
    PRM_SET(flow_table_context, ctx, table_miss_id, next ? *next : 0);
}

int hv_flow_create_table(struct hv_hca *hca, const struct hv_flow_shape *shape,
                         const uint32_t *next, uint32_t *table_id)
{
    struct prm_create_flow_table_in in[1] = {0};
    struct prm_create_flow_table_out out[1] = {0};
    struct prm_flow_table_context *ctx = PRM_PTR(create_flow_table_in, in, flow_table_context);
    int err;

    PRM_SET(create_flow_table_in, in, opcode, PRM_CMD_OP_CREATE_FLOW_TABLE);
    PRM_SET(create_flow_table_in, in, table_type, shape->type);
    PRM_SET(flow_table_context, ctx, level, shape->level);
    PRM_SET(flow_table_context, ctx, log_size, shape->log_size);
    flow_put_miss(ctx, next);
    flow_enable_changes(hca, shape->type, ctx);
    err = hv_cmd(hca, in, sizeof(in), out, sizeof(out));
    *table_id = PRM_GET(create_flow_table_out, out, table_id);
    return err;
}

int hv_flow_set_miss(struct hv_hca *hca, uint8_t type, uint32_t table_id, const uint32_t *next)
{
    struct prm_modify_flow_table_in in[1] = {0};

    PRM_SET(modify_flow_table_in, in, opcode, PRM_CMD_OP_MODIFY_FLOW_TABLE);
    PRM_SET(modify_flow_table_in, in, modify_field_select, PRM_MODIFY_FLOW_TABLE_MISS_TABLE_ID);
    PRM_SET(modify_flow_table_in, in, table_type, type);
    PRM_SET(modify_flow_table_in, in, table_id, table_id);
    flow_put_miss(PRM_PTR(modify_flow_table_in, in, flow_table_context), next);
    return hv_cmd_simple(hca, in, sizeof(in));
}

int hv_flow_create_group(struct hv_hca *hca, struct hv_flow_place *place,
                         const struct hv_flow_rule *rule)
{
    struct prm_create_flow_group_in in[1] = {0};
    struct prm_create_flow_group_out out[1] = {0};
    int err;

    PRM_SET(create_flow_group_in, in, opcode, PRM_CMD_OP_CREATE_FLOW_GROUP);
    PRM_SET(create_flow_group_in, in, table_type, place->type);
    PRM_SET(create_flow_group_in, in, table_id, place->table_id);
    PRM_SET(create_flow_group_in, in, start_flow_index, place->index);
    PRM_SET(create_flow_group_in, in, end_flow_index, place->index);
    PRM_SET(create_flow_group_in, in, match_criteria_enable, rule->criteria);
    memcpy(PRM_PTR(create_flow_group_in, in, match_criteria), rule->mask, sizeof(rule->mask));
    err = hv_cmd(hca, in, sizeof(in), out, sizeof(out));
    place->group_id = PRM_GET(create_flow_group_out, out, group_id);
    return err;
}

int hv_flow_destroy_group(struct hv_hca *hca, const struct hv_flow_place *place)
{
    struct prm_destroy_flow_group_in in[1] = {0};

    PRM_SET(destroy_flow_group_in, in, opcode, PRM_CMD_OP_DESTROY_FLOW_GROUP);
    PRM_SET(destroy_flow_group_in, in, table_type, place->type);
    PRM_SET(destroy_flow_group_in, in, table_id, place->table_id);
    PRM_SET(destroy_flow_group_in, in, group_id, place->group_id);
    return hv_cmd_simple(hca, in, sizeof(in));
}

int hv_flow_set_entry(struct hv_hca *hca, const struct hv_flow_place *place,
                      const struct hv_flow_rule *rule, const struct hv_flow_dest *dests,
                      unsigned num, bool change)
{
    unsigned num_dests = rule->action & PRM_FLOW_ACTION_FWD_DEST ? num : 0;
    unsigned counters = rule->action & PRM_FLOW_ACTION_COUNT ? 1 : 0;
    size_t counters_at = PRM_SIZE(set_fte_in) + num_dests * PRM_SIZE(dest_format_struct);
    size_t len = counters_at + counters * PRM_SIZE(flow_counter_list);
    g_autofree uint8_t *bytes = g_malloc0(len);
    struct prm_set_fte_in *in = (void *)bytes;
    struct prm_flow_context *ctx = PRM_PTR(set_fte_in, in, flow_context);

    PRM_SET(set_fte_in, in, opcode, PRM_CMD_OP_SET_FLOW_TABLE_ENTRY);
    if (change) {
        PRM_SET(set_fte_in, in, op_mod, PRM_SET_FTE_OP_MODIFY);
        PRM_SET(set_fte_in, in, modify_enable_mask, 1u << PRM_SET_FTE_MODIFY_DESTINATION_LIST);
    }
    PRM_SET(set_fte_in, in, table_type, place->type);
    PRM_SET(set_fte_in, in, table_id, place->table_id);
    PRM_SET(set_fte_in, in, flow_index, place->index);
    PRM_SET(flow_context, ctx, group_id, place->group_id);
    PRM_SET(flow_context, ctx, flow_tag, rule->tag);
    PRM_SET(flow_context, ctx, action, rule->action);
    PRM_SET(flow_context, ctx, packet_reformat_id, rule->reformat);
    PRM_SET(flow_context, ctx, modify_header_id, rule->modify);
    memcpy(PRM_PTR(flow_context, ctx, match_value), rule->value, sizeof(rule->value));
    PRM_SET(flow_context, ctx, destination_list_size, num_dests);
    PRM_SET(flow_context, ctx, flow_counter_list_size, counters);
    for (unsigned i = 0; i < num_dests; i++) {
        struct prm_dest_format_struct *dest = PRM_PTR_AT(flow_context, ctx, destination, i);

        PRM_SET(dest_format_struct, dest, destination_type, dests[i].type);
        PRM_SET(dest_format_struct, dest, destination_id, dests[i].id);
    }
    if (counters) {
        struct prm_flow_counter_list *list = (void *)(bytes + counters_at);

        PRM_SET(flow_counter_list, list, flow_counter_id, rule->counter);
    }
    return hv_cmd_simple(hca, in, len);
}

int hv_flow_delete_entry(struct hv_hca *hca, const struct hv_flow_place *place)
{
    struct prm_delete_fte_in in[1] = {0};

    PRM_SET(delete_fte_in, in, opcode, PRM_CMD_OP_DELETE_FLOW_TABLE_ENTRY);
    PRM_SET(delete_fte_in, in, table_type, place->type);
    PRM_SET(delete_fte_in, in, table_id, place->table_id);
    PRM_SET(delete_fte_in, in, flow_index, place->index);
    return hv_cmd_simple(hca, in, sizeof(in));
}
