/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table of an HCA's flows.
 *
 * All flows of an HCA are in one flow table, the root of what is received. It is made with the
 * first flow and goes with the last one. A flow is an entry in a group of its own, as each has its
 * own mask; the first entry that matches takes the packet, so that entries are in the order of
 * their priority. mlx5_ib has a table for each priority, and gives a packet that two flows match
 * with equal values to both; here the older one gets it.
 */
#include <string.h>
#include "guest-lib/verbs/kernel/flow.h"
#include "guest-lib/verbs/kernel/hca.h"

#define OF_PRIORITY 256 /* flows of one */
#define ENTRIES     ((HV_FLOW_PRIORITIES + 1) * OF_PRIORITY)
#define LOG_SIZE    13 /* of the table: not below ENTRIES */

struct hv_flow {
    struct ibv_flow ibv;
    struct hv_hca *hca;
    struct hv_qp *qp;
    gint *users;
    uint32_t index, group_id;
};

struct hv_flow_table {
    uint32_t id;
    unsigned used;
    bool taken[ENTRIES];
};

static int flow_set_root(struct hv_hca *hca, uint32_t table_id, uint16_t op_mod)
{
    struct prm_set_flow_table_root_in in[1] = {0};

    PRM_SET(set_flow_table_root_in, in, opcode, PRM_CMD_OP_SET_FLOW_TABLE_ROOT);
    PRM_SET(set_flow_table_root_in, in, op_mod, op_mod);
    PRM_SET(set_flow_table_root_in, in, table_type, PRM_FLOW_TABLE_TYPE_NIC_RX);
    PRM_SET(set_flow_table_root_in, in, table_id, table_id);
    return hv_cmd_simple(hca, in, sizeof(in));
}

static void flow_destroy_table(struct hv_hca *hca, uint32_t table_id)
{
    struct prm_destroy_flow_table_in in[1] = {0};

    flow_set_root(hca, table_id, PRM_SET_FLOW_TABLE_ROOT_OP_UNSET);
    PRM_SET(destroy_flow_table_in, in, opcode, PRM_CMD_OP_DESTROY_FLOW_TABLE);
    PRM_SET(destroy_flow_table_in, in, table_type, PRM_FLOW_TABLE_TYPE_NIC_RX);
    PRM_SET(destroy_flow_table_in, in, table_id, table_id);
    hv_cmd_simple(hca, in, sizeof(in));
}

static int flow_create_table(struct hv_hca *hca, uint32_t *table_id)
{
    struct prm_create_flow_table_in in[1] = {0};
    struct prm_create_flow_table_out out[1] = {0};
    int err;

    PRM_SET(create_flow_table_in, in, opcode, PRM_CMD_OP_CREATE_FLOW_TABLE);
    PRM_SET(create_flow_table_in, in, table_type, PRM_FLOW_TABLE_TYPE_NIC_RX);
    PRM_SET(flow_table_context, PRM_PTR(create_flow_table_in, in, flow_table_context), log_size,
            LOG_SIZE);
    err = hv_cmd(hca, in, sizeof(in), out, sizeof(out));
    if (err) {
        return err;
    }
    *table_id = PRM_GET(create_flow_table_out, out, table_id);
    err = flow_set_root(hca, *table_id, PRM_SET_FLOW_TABLE_ROOT_OP_SET);
    if (err) {
        flow_destroy_table(hca, *table_id);
    }
    return err;
}

/* The HCA's table, made if there is none: 0 or errno. Under the lock. */
static int flow_get_table(struct hv_hca *hca, struct hv_flow_table **table)
{
    uint32_t id;
    int err;

    *table = hca->flow_table;
    if (*table) {
        return 0;
    }
    err = flow_create_table(hca, &id);
    if (!err) {
        *table = g_new0(struct hv_flow_table, 1);
        (*table)->id = id;
        hca->flow_table = *table;
    }
    return err;
}

static void flow_put_table(struct hv_hca *hca, struct hv_flow_table *table)
{
    if (!table->used) {
        flow_destroy_table(hca, table->id);
        g_free(table);
        hca->flow_table = NULL;
    }
}

/* -- entries ------------------------------------------------------------------------------------
 */

static int flow_create_group(struct hv_flow *flow, const struct hv_flow_table *table,
                             const struct hv_flow_rule *rule)
{
    struct prm_create_flow_group_in in[1] = {0};
    struct prm_create_flow_group_out out[1] = {0};
    int err;

    PRM_SET(create_flow_group_in, in, opcode, PRM_CMD_OP_CREATE_FLOW_GROUP);
    PRM_SET(create_flow_group_in, in, table_type, PRM_FLOW_TABLE_TYPE_NIC_RX);
    PRM_SET(create_flow_group_in, in, table_id, table->id);
    PRM_SET(create_flow_group_in, in, start_flow_index, flow->index);
    PRM_SET(create_flow_group_in, in, end_flow_index, flow->index);
    PRM_SET(create_flow_group_in, in, match_criteria_enable, rule->criteria);
    memcpy(PRM_PTR(create_flow_group_in, in, match_criteria), rule->mask, sizeof(rule->mask));
    err = hv_cmd(flow->hca, in, sizeof(in), out, sizeof(out));
    flow->group_id = PRM_GET(create_flow_group_out, out, group_id);
    return err;
}

static int flow_destroy_group(const struct hv_flow *flow, const struct hv_flow_table *table)
{
    struct prm_destroy_flow_group_in in[1] = {0};

    PRM_SET(destroy_flow_group_in, in, opcode, PRM_CMD_OP_DESTROY_FLOW_GROUP);
    PRM_SET(destroy_flow_group_in, in, table_type, PRM_FLOW_TABLE_TYPE_NIC_RX);
    PRM_SET(destroy_flow_group_in, in, table_id, table->id);
    PRM_SET(destroy_flow_group_in, in, group_id, flow->group_id);
    return hv_cmd_simple(flow->hca, in, sizeof(in));
}

static int flow_set_entry(struct hv_flow *flow, const struct hv_flow_table *table,
                          const struct hv_flow_rule *rule)
{
    size_t len = PRM_SIZE(set_fte_in) + (rule->drop ? 0 : PRM_SIZE(dest_format_struct));
    g_autofree struct prm_set_fte_in *in = g_malloc0(len);
    struct prm_flow_context *ctx = PRM_PTR(set_fte_in, in, flow_context);

    PRM_SET(set_fte_in, in, opcode, PRM_CMD_OP_SET_FLOW_TABLE_ENTRY);
    PRM_SET(set_fte_in, in, table_type, PRM_FLOW_TABLE_TYPE_NIC_RX);
    PRM_SET(set_fte_in, in, table_id, table->id);
    PRM_SET(set_fte_in, in, flow_index, flow->index);
    PRM_SET(flow_context, ctx, group_id, flow->group_id);
    PRM_SET(flow_context, ctx, flow_tag, rule->tag);
    PRM_SET(flow_context, ctx, action,
            rule->drop ? PRM_FLOW_ACTION_DROP : PRM_FLOW_ACTION_FWD_DEST);
    memcpy(PRM_PTR(flow_context, ctx, match_value), rule->value, sizeof(rule->value));
    if (!rule->drop) {
        struct prm_dest_format_struct *dest = PRM_PTR_AT(flow_context, ctx, destination, 0);

        PRM_SET(flow_context, ctx, destination_list_size, 1);
        PRM_SET(dest_format_struct, dest, destination_type, PRM_FLOW_DESTINATION_TYPE_TIR);
        PRM_SET(dest_format_struct, dest, destination_id, rule->tirn);
    }
    return hv_cmd_simple(flow->hca, in, len);
}

static int flow_delete_entry(const struct hv_flow *flow, const struct hv_flow_table *table)
{
    struct prm_delete_fte_in in[1] = {0};

    PRM_SET(delete_fte_in, in, opcode, PRM_CMD_OP_DELETE_FLOW_TABLE_ENTRY);
    PRM_SET(delete_fte_in, in, table_type, PRM_FLOW_TABLE_TYPE_NIC_RX);
    PRM_SET(delete_fte_in, in, table_id, table->id);
    PRM_SET(delete_fte_in, in, flow_index, flow->index);
    return hv_cmd_simple(flow->hca, in, sizeof(in));
}

/* A place among those of its priority: 0 or ENOSPC. */
static int flow_take_index(struct hv_flow *flow, struct hv_flow_table *table, unsigned priority)
{
    for (uint32_t i = priority * OF_PRIORITY; i < (priority + 1) * OF_PRIORITY; i++) {
        if (!table->taken[i]) {
            table->taken[i] = true;
            table->used++;
            flow->index = i;
            return 0;
        }
    }
    return ENOSPC;
}

static void flow_give_index(const struct hv_flow *flow, struct hv_flow_table *table)
{
    table->taken[flow->index] = false;
    table->used--;
}

/* Under the lock. */
static int flow_add_flow(struct hv_flow *flow, const struct hv_flow_rule *rule)
{
    struct hv_flow_table *table;
    int err = flow_get_table(flow->hca, &table);

    if (err) {
        return err;
    }
    err = flow_take_index(flow, table, rule->priority);
    if (!err) {
        err = flow_create_group(flow, table, rule);
        if (!err) {
            err = flow_set_entry(flow, table, rule);
            if (err) {
                flow_destroy_group(flow, table);
            }
        }
        if (err) {
            flow_give_index(flow, table);
        }
    }
    flow_put_table(flow->hca, table);
    return err;
}

struct ibv_flow *hv_flow_new(struct ibv_context *ctx, const struct hv_flow_rule *rule,
                             struct hv_qp *qp, gint *users)
{
    struct hv_flow *flow = calloc(1, sizeof(*flow));
    int err;

    if (!flow) {
        return NULL;
    }
    flow->hca = hv_context(ctx)->hca;
    flow->qp = qp;
    flow->users = users;
    flow->ibv.context = ctx;
    pthread_mutex_lock(&flow->hca->flow_lock);
    err = flow_add_flow(flow, rule);
    pthread_mutex_unlock(&flow->hca->flow_lock);
    if (hv_kernel(err)) {
        free(flow);
        return NULL;
    }
    flow->ibv.handle = hv_handle_add(ctx, HV_HANDLE_FLOW, flow);
    if (qp) {
        g_atomic_int_inc(&qp->refs);
    }
    if (users) {
        g_atomic_int_inc(users);
    }
    return &flow->ibv;
}

/* ib_uverbs_ex_destroy_flow(). */
int uverbs_destroy_flow(struct hv_flow *flow)
{
    struct ibv_context *context = flow->ibv.context;
    struct hv_flow_table *table;
    int err = hv_handle_check(context, HV_HANDLE_FLOW, flow->ibv.handle, flow);

    if (err) {
        return err;
    }
    pthread_mutex_lock(&flow->hca->flow_lock);
    table = flow->hca->flow_table;
    err = flow_delete_entry(flow, table);
    if (!err) {
        flow_destroy_group(flow, table);
        flow_give_index(flow, table);
        flow_put_table(flow->hca, table);
        hv_handle_del(context, flow->ibv.handle);
    }
    pthread_mutex_unlock(&flow->hca->flow_lock);
    if (!err && flow->qp) {
        g_atomic_int_add(&flow->qp->refs, -1);
    }
    if (!err && flow->users) {
        g_atomic_int_add(flow->users, -1);
    }
    return err;
}

int hv_flow_free(struct ibv_flow *ibflow)
{
    struct hv_flow *flow = (struct hv_flow *)ibflow;
    int err = hv_kernel(uverbs_destroy_flow(flow));

    if (!err) {
        free(flow);
    }
    return err;
}
