/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Commands on flow steering: tables, groups, entries, counters (model/steering/steering.h).
 *
 * The kernel passes a process's commands on with the process's uid (driver:
 * devx_is_obj_create_cmd()), except SET_FLOW_TABLE_ROOT, which only the kernel uses.
 */
#include "fw/cmd.h"
#include <string.h>
#include "fw/fw_internal.h"
#include "model/core/pd.h"
#include "model/memory/mkey.h"
#include "model/steering/ste.h"
#include "model/steering/steering.h"

static enum syn cmd_set_root(struct fw *fw, struct fw_cmd *cmd)
{
    const struct prm_set_flow_table_root_in *in = cmd->in;

    if (PRM_GET(set_flow_table_root_in, in, underlay_qpn)) {
        return SYN_FT_TYPE;
    }
    return flow_table_set_root(&fw->hca, (uint8_t)PRM_GET(set_flow_table_root_in, in, table_type),
                               PRM_GET(set_flow_table_root_in, in, table_id),
                               cmd->op_mod == PRM_SET_FLOW_TABLE_ROOT_OP_SET);
}

static enum syn cmd_create_table(struct fw *fw, struct fw_cmd *cmd)
{
    const struct prm_create_flow_table_in *in = cmd->in;
    const struct prm_flow_table_context *ctx =
        PRM_PTR(create_flow_table_in, in, flow_table_context);
    uint32_t id = 0;
    enum syn syn;
    uint64_t address;

    if (PRM_GET(flow_table_context, ctx, sw_owner) &&
        !caps_have_general_type(fw, PRM_GENERAL_OBJ_TYPE_SW_ICM)) {
        return SYN_FT_FEATURE;
    }
    syn = flow_table_create(&fw->hca, cmd->uid,
                            (uint8_t)PRM_GET(create_flow_table_in, in, table_type), ctx, &id);
    address = PRM_GET(flow_table_context, ctx, sw_owner)
                  ? PRM_GET(flow_table_context, ctx, sws_sw_owner_icm_root_0)
                  : ste_end_address(STE_TABLE, id);
    PRM_SET(create_flow_table_out, cmd->out, table_id, id);
    PRM_SET(create_flow_table_out, cmd->out, icm_address_63_40,
            (uint32_t)(address >> 40) & 0xffffff);
    PRM_SET(create_flow_table_out, cmd->out, icm_address_39_32, address >> 32 & 0xff);
    PRM_SET(create_flow_table_out, cmd->out, icm_address_31_0, (uint32_t)address);
    return syn;
}

static enum syn cmd_query_table(struct fw *fw, struct fw_cmd *cmd)
{
    const struct prm_query_flow_table_in *in = cmd->in;

    return flow_table_query(&fw->hca, (uint8_t)PRM_GET(query_flow_table_in, in, table_type),
                            PRM_GET(query_flow_table_in, in, table_id),
                            PRM_PTR(query_flow_table_out, cmd->out, flow_table_context));
}

static enum syn cmd_modify_table(struct fw *fw, struct fw_cmd *cmd)
{
    const struct prm_modify_flow_table_in *in = cmd->in;

    return flow_table_modify(&fw->hca, cmd->uid,
                             (uint8_t)PRM_GET(modify_flow_table_in, in, table_type),
                             PRM_GET(modify_flow_table_in, in, table_id),
                             (uint16_t)PRM_GET(modify_flow_table_in, in, modify_field_select),
                             PRM_PTR(modify_flow_table_in, in, flow_table_context));
}

static enum syn cmd_destroy_table(struct fw *fw, struct fw_cmd *cmd)
{
    const struct prm_destroy_flow_table_in *in = cmd->in;

    return flow_table_destroy(&fw->hca, cmd->uid,
                              (uint8_t)PRM_GET(destroy_flow_table_in, in, table_type),
                              PRM_GET(destroy_flow_table_in, in, table_id));
}

static enum syn cmd_create_group(struct fw *fw, struct fw_cmd *cmd)
{
    uint32_t id = 0;
    enum syn syn;

    syn = flow_group_create(&fw->hca, cmd->uid, cmd->in, &id);
    PRM_SET(create_flow_group_out, cmd->out, group_id, id);
    return syn;
}

static enum syn cmd_query_group(struct fw *fw, struct fw_cmd *cmd)
{
    const struct prm_query_flow_group_in *in = cmd->in;

    return flow_group_query(&fw->hca, (uint8_t)PRM_GET(query_flow_group_in, in, table_type),
                            PRM_GET(query_flow_group_in, in, table_id),
                            PRM_GET(query_flow_group_in, in, group_id), cmd->out);
}

static enum syn cmd_destroy_group(struct fw *fw, struct fw_cmd *cmd)
{
    const struct prm_destroy_flow_group_in *in = cmd->in;

    return flow_group_destroy(
        &fw->hca, cmd->uid, (uint8_t)PRM_GET(destroy_flow_group_in, in, table_type),
        PRM_GET(destroy_flow_group_in, in, table_id), PRM_GET(destroy_flow_group_in, in, group_id));
}

static enum syn cmd_set_entry(struct fw *fw, struct fw_cmd *cmd)
{
    return flow_entry_set(&fw->hca, cmd->uid, cmd->in, cmd->in_len,
                          cmd->op_mod == PRM_SET_FTE_OP_MODIFY);
}

static enum syn cmd_query_entry(struct fw *fw, struct fw_cmd *cmd)
{
    const struct prm_query_fte_in *in = cmd->in;

    return flow_entry_query(&fw->hca, (uint8_t)PRM_GET(query_fte_in, in, table_type),
                            PRM_GET(query_fte_in, in, table_id),
                            PRM_GET(query_fte_in, in, flow_index),
                            PRM_PTR(query_fte_out, cmd->out, flow_context),
                            cmd->out_len - PRM_OFFSET(query_fte_out, flow_context));
}

static enum syn cmd_delete_entry(struct fw *fw, struct fw_cmd *cmd)
{
    const struct prm_delete_fte_in *in = cmd->in;

    return flow_entry_delete(&fw->hca, cmd->uid, (uint8_t)PRM_GET(delete_fte_in, in, table_type),
                             PRM_GET(delete_fte_in, in, table_id),
                             PRM_GET(delete_fte_in, in, flow_index));
}

/* The counters that the command asks for: one, or 128 << n for each bit n of flow_counter_bulk.
 * The driver hands back all bits of the capability in one command, and counts on their sum
 * (mlx5_fc_bulk_create()). 0: there is no such bulk. */
static uint32_t cmd_counter_bulk(const struct prm_alloc_flow_counter_in *in)
{
    uint32_t bits = PRM_GET(alloc_flow_counter_in, in, flow_counter_bulk);

    if (PRM_GET(alloc_flow_counter_in, in, flow_counter_bulk_log_size) ||
        bits > STEERING_BULK_MAX) {
        return 0;
    }
    return bits ? bits * STEERING_BULK_UNIT : 1;
}

static enum syn cmd_alloc_counter(struct fw *fw, struct fw_cmd *cmd)
{
    uint32_t count = cmd_counter_bulk(cmd->in), id = 0;
    enum syn syn;

    if (!count) {
        return SYN_FC_BULK;
    }
    syn = flow_counter_alloc(&fw->hca, cmd->uid, count, &id);
    PRM_SET(alloc_flow_counter_out, cmd->out, flow_counter_id, id);
    return syn;
}

static enum syn cmd_dealloc_counter(struct fw *fw, struct fw_cmd *cmd)
{
    return flow_counter_dealloc(&fw->hca, cmd->uid,
                                PRM_GET(dealloc_flow_counter_in, cmd->in, flow_counter_id));
}

/* Whether the command's user may name the key to which counters are dumped. */
static enum syn cmd_counter_check_key(struct fw *fw, const struct fw_cmd *cmd)
{
    uint32_t key = PRM_GET(query_flow_counter_in, cmd->in, mkey);

    return uid_check(obj_find(&fw->hca.mkeys, key >> 8), cmd->uid, SYN_NO_MKEY);
}

/* Reports counter i of the list: in the output of the command or, with dump_to_memory, in memory
 * behind a key. False: that memory cannot be written. */
static bool cmd_counter_report(struct fw *fw, struct fw_cmd *cmd, uint32_t i,
                               const struct prm_traffic_counter *value)
{
    const struct prm_query_flow_counter_in *in = cmd->in;
    size_t size = PRM_SIZE(traffic_counter);

    if (!PRM_GET(query_flow_counter_in, in, dump_to_memory)) {
        memcpy(PRM_PTR_AT(query_flow_counter_out, cmd->out, flow_statistics, i), value, size);
        return true;
    }
    return mkey_write(&fw->hca, PRM_GET(query_flow_counter_in, in, mkey), MKEY_ANY_PD,
                      PRM_GET(query_flow_counter_in, in, address) + i * size, value, size,
                      MEM_LOCAL_WRITE) == MEM_OK;
}

/* num_of_counters 0 asks for one counter. In a bulk, a number that names no counter of this user
 * reads as zero. */
static enum syn cmd_query_counter(struct fw *fw, struct fw_cmd *cmd)
{
    const struct prm_query_flow_counter_in *in = cmd->in;
    uint32_t first = PRM_GET(query_flow_counter_in, in, flow_counter_id);
    uint32_t n = PRM_GET(query_flow_counter_in, in, num_of_counters);
    bool clear = PRM_GET(query_flow_counter_in, in, clear);
    bool dump = PRM_GET(query_flow_counter_in, in, dump_to_memory);
    size_t stride = PRM_STRIDE(query_flow_counter_out, flow_statistics);

    if (n == 0) {
        const struct flow_counter *one = flow_counter_find(&fw->hca, first);

        if (!one || !uid_may_use(&one->obj, cmd->uid)) {
            return one ? SYN_BAD_UID : SYN_FC_NOT_FOUND;
        }
        n = 1;
    }
    if (n > 1u << STEERING_LOG_COUNTER_BULK) {
        return SYN_LIMIT;
    }
    if (dump) {
        enum syn syn = cmd_counter_check_key(fw, cmd);

        if (syn != SYN_OK) {
            return syn;
        }
    } else if (cmd->out_len < PRM_SIZE(query_flow_counter_out) + n * stride) {
        return SYN_OUT_LEN;
    }
    hca_spend(&fw->hca, n / HCA_PIECE_ENTRIES);
    for (uint32_t i = 0; i < n; i++) {
        struct flow_counter *counter = flow_counter_find(&fw->hca, first + i);
        struct prm_traffic_counter value[1] = {0};

        if (counter && uid_may_use(&counter->obj, cmd->uid)) {
            PRM_SET(traffic_counter, value, packets, counter->packets);
            PRM_SET(traffic_counter, value, octets, counter->bytes);
            if (clear) {
                counter->packets = counter->bytes = 0;
            }
        }
        if (!cmd_counter_report(fw, cmd, i, value)) {
            return SYN_FC_MEMORY;
        }
    }
    return SYN_OK;
}

/* Software orders this before it uses memory again that entries had, so that no frame is still on
 * its way through them. Here a frame's way has always ended before a command is carried out, and
 * nothing that was read of entries is kept (docs/adr/0040). */
static enum syn cmd_sync_steering(struct fw *fw, struct fw_cmd *cmd)
{
    return SYN_OK;
}

const struct fw_cmd_row cmds_flow[] = {
    FW_KERNEL_CMD(SET_FLOW_TABLE_ROOT, cmd_set_root),
    FW_CMD(CREATE_FLOW_TABLE, cmd_create_table),
    FW_CMD(QUERY_FLOW_TABLE, cmd_query_table),
    FW_CMD(MODIFY_FLOW_TABLE, cmd_modify_table),
    FW_CMD(DESTROY_FLOW_TABLE, cmd_destroy_table),
    FW_CMD(CREATE_FLOW_GROUP, cmd_create_group),
    FW_CMD(QUERY_FLOW_GROUP, cmd_query_group),
    FW_CMD(DESTROY_FLOW_GROUP, cmd_destroy_group),
    FW_CMD(SET_FLOW_TABLE_ENTRY, cmd_set_entry),
    FW_CMD(QUERY_FLOW_TABLE_ENTRY, cmd_query_entry),
    FW_CMD(DELETE_FLOW_TABLE_ENTRY, cmd_delete_entry),
    FW_CMD(ALLOC_FLOW_COUNTER, cmd_alloc_counter),
    FW_CMD(DEALLOC_FLOW_COUNTER, cmd_dealloc_counter),
    FW_CMD(QUERY_FLOW_COUNTER, cmd_query_counter),
    FW_CMD(SYNC_STEERING, cmd_sync_steering),
    {0},
};
