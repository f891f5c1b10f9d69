/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The tables of an HCA's flows.
 *
 * All flows of an HCA except sniffers are in one flow table for each type of tables, which is the
 * root of the type. A table is made with its first flow and destroyed with its last one. Each flow
 * has its own mask, so it is an entry in a group of its own. The first entry that matches gets the
 * packet, so entries are in the order of their priority. mlx5_ib has a table for each priority; if
 * two flows with equal values match a packet, both get it. Here the older flow gets it.
 */
#include <string.h>
#include "guest-lib/verbs/kernel/flow_cmd.h"
#include "guest-lib/verbs/kernel/flow_sniffer.h"
#include "guest-lib/verbs/kernel/hca.h"

#define OF_PRIORITY 256 /* flows of one priority */
#define ENTRIES     ((HV_FLOW_PRIORITIES + 1) * OF_PRIORITY)
#define LOG_SIZE    13 /* of the table: at least ENTRIES */

struct hv_flow {
    struct ibv_flow ibv;
    struct hv_hca *hca;
    struct hv_qp *qp;
    unsigned num_users;
    gint *users[1 + HV_FLOW_ACTIONS];
    bool sniffs;
    uint32_t tirn;              /* of a sniffer */
    struct hv_flow_place place; /* of all others */
};

struct hv_flow_table {
    uint32_t id;
    unsigned used;
    bool taken[ENTRIES];
};

/* Gets the HCA's table of a type, and makes it if there is none: 0 or errno. Under the lock. */
static int flow_get_table(struct hv_hca *hca, uint8_t type, struct hv_flow_table **table)
{
    uint32_t id;
    int err;

    *table = hca->flow_tables[type];
    if (*table) {
        return 0;
    }
    err = hv_flow_create_table(hca, type, LOG_SIZE, &id);
    if (!err) {
        *table = g_new0(struct hv_flow_table, 1);
        (*table)->id = id;
        hca->flow_tables[type] = *table;
    }
    return err;
}

static void flow_put_table(struct hv_hca *hca, uint8_t type, struct hv_flow_table *table)
{
    if (!table->used) {
        hv_flow_destroy_table(hca, type, table->id);
        g_free(table);
        hca->flow_tables[type] = NULL;
    }
}

/* -- entries ------------------------------------------------------------------------------------
 */

/* Takes a free index for this priority: 0 or ENOSPC. */
static int flow_take_index(struct hv_flow *flow, struct hv_flow_table *table, unsigned priority)
{
    for (uint32_t i = priority * OF_PRIORITY; i < (priority + 1) * OF_PRIORITY; i++) {
        if (!table->taken[i]) {
            table->taken[i] = true;
            table->used++;
            flow->place.index = i;
            return 0;
        }
    }
    return ENOSPC;
}

static void flow_give_index(const struct hv_flow *flow, struct hv_flow_table *table)
{
    table->taken[flow->place.index] = false;
    table->used--;
}

/* Under the lock. */
static int flow_add_flow(struct hv_flow *flow, const struct hv_flow_rule *rule)
{
    struct hv_flow_table *table;
    int err;

    if (rule->sniffs) {
        return hv_sniffer_add(flow->hca, rule->dest);
    }
    err = flow_get_table(flow->hca, rule->table, &table);
    if (err) {
        return err;
    }
    flow->place.type = rule->table;
    flow->place.table_id = table->id;
    err = flow_take_index(flow, table, rule->priority);
    if (!err) {
        err = hv_flow_create_group(flow->hca, &flow->place, rule);
        if (!err) {
            err = hv_flow_set_entry(flow->hca, &flow->place, rule, &rule->dest, 1, false);
            if (err) {
                hv_flow_destroy_group(flow->hca, &flow->place);
            }
        }
        if (err) {
            flow_give_index(flow, table);
        }
    }
    flow_put_table(flow->hca, rule->table, table);
    return err;
}

struct ibv_flow *hv_flow_new(struct ibv_context *ctx, const struct hv_flow_rule *rule,
                             struct hv_qp *qp)
{
    struct hv_flow *flow = calloc(1, sizeof(*flow));
    int err;

    if (!flow) {
        return NULL;
    }
    flow->hca = hv_context(ctx)->hca;
    flow->qp = qp;
    flow->num_users = rule->num_users;
    memcpy(flow->users, rule->users, sizeof(flow->users));
    flow->sniffs = rule->sniffs;
    flow->tirn = rule->dest;
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
    for (unsigned i = 0; i < flow->num_users; i++) {
        g_atomic_int_inc(flow->users[i]);
    }
    return &flow->ibv;
}

/* Under the lock. */
static int flow_remove_flow(struct hv_flow *flow)
{
    struct hv_flow_table *table = flow->hca->flow_tables[flow->place.type];
    int err;

    if (flow->sniffs) {
        hv_sniffer_remove(flow->hca, flow->tirn);
        return 0;
    }
    err = hv_flow_delete_entry(flow->hca, &flow->place);
    if (!err) {
        hv_flow_destroy_group(flow->hca, &flow->place);
        flow_give_index(flow, table);
        flow_put_table(flow->hca, flow->place.type, table);
    }
    return err;
}

/* As ib_uverbs_ex_destroy_flow(). */
int uverbs_destroy_flow(struct hv_flow *flow)
{
    struct ibv_context *context = flow->ibv.context;
    int err = hv_handle_check(context, HV_HANDLE_FLOW, flow->ibv.handle, flow);

    if (err) {
        return err;
    }
    pthread_mutex_lock(&flow->hca->flow_lock);
    err = flow_remove_flow(flow);
    if (!err) {
        hv_handle_del(context, flow->ibv.handle);
    }
    pthread_mutex_unlock(&flow->hca->flow_lock);
    if (!err && flow->qp) {
        g_atomic_int_add(&flow->qp->refs, -1);
    }
    for (unsigned i = 0; !err && i < flow->num_users; i++) {
        g_atomic_int_add(flow->users[i], -1);
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
