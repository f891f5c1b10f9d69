/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Creates, changes and destroys flow tables, and chooses the root table of each domain.
 */
#include "model/core/pd.h"
#include "model/steering/change.h"
#include "model/steering/ste.h"

static const uint8_t domain_types[STEERING_DOMAINS] = {
    [STEERING_NIC_RX] = PRM_FLOW_TABLE_TYPE_NIC_RX,
    [STEERING_NIC_TX] = PRM_FLOW_TABLE_TYPE_NIC_TX,
    [STEERING_RDMA_RX] = PRM_FLOW_TABLE_TYPE_RDMA_RX,
    [STEERING_RDMA_TX] = PRM_FLOW_TABLE_TYPE_RDMA_TX,
    [STEERING_SNIFFER_RX] = PRM_FLOW_TABLE_TYPE_SNIFFER_RX,
    [STEERING_SNIFFER_TX] = PRM_FLOW_TABLE_TYPE_SNIFFER_TX,
};

/* The domain of the tables of a type. STEERING_DOMAINS: there are no such tables. */
static enum steering_domain table_domain(uint8_t type)
{
    enum steering_domain domain = 0;

    while (domain < STEERING_DOMAINS && domain_types[domain] != type) {
        domain++;
    }
    return domain;
}

struct flow_table *steering_find_table(struct hca *hca, uint8_t type, uint32_t id)
{
    struct flow_table *table = flow_table_find(hca, id);

    return table && table->type == type ? table : NULL;
}

enum syn steering_find_own_table(struct hca *hca, uint16_t uid, uint8_t type, uint32_t id,
                                 struct flow_table **table)
{
    *table = steering_find_table(hca, type, id);
    if (!*table) {
        return SYN_FT_NOT_FOUND;
    }
    return uid_owns(&(*table)->obj, uid) ? SYN_OK : SYN_BAD_UID;
}

enum syn steering_find_next_table(struct hca *hca, const struct flow_table *table, uint32_t id,
                                  bool any_level, enum syn none, struct flow_table **next)
{
    enum syn syn;

    *next = steering_find_table(hca, table->type, id);
    syn = uid_check((const struct obj *)*next, table->obj.uid, none);
    return syn == SYN_OK && !any_level && (*next)->level <= table->level ? SYN_FT_LEVEL : syn;
}

enum syn steering_set_miss(struct hca *hca, struct flow_table *table, uint8_t action, uint32_t id)
{
    struct flow_table *next = NULL;

    if (action == PRM_FLOW_TABLE_MISS_ACTION_FWD) {
        enum syn syn = steering_find_next_table(hca, table, id, false, SYN_FT_NOT_FOUND, &next);

        if (syn != SYN_OK) {
            return syn;
        }
        obj_ref(&table->obj, &next->obj);
    } else if (action != PRM_FLOW_TABLE_MISS_ACTION_DEF &&
               (action != PRM_FLOW_TABLE_MISS_ACTION_SWITCH_DOMAIN ||
                table->type != PRM_FLOW_TABLE_TYPE_RDMA_RX)) {
        return SYN_FT_MISS_ACTION;
    }
    if (table->miss_action == PRM_FLOW_TABLE_MISS_ACTION_FWD) {
        obj_unref(&table->obj, &flow_table_find(hca, table->miss_id)->obj);
    }
    table->miss_action = action;
    table->miss_id = next ? id : 0;
    return SYN_OK;
}

/* Whether the table needs features that QUERY_HCA_CAP does not report: tables of other domains
 * that software lays out or that are the last, or entries that decapsulate or reformat packets in a
 * domain that does not have that. */
static bool table_asks_for_more(enum steering_domain domain,
                                const struct prm_flow_table_context *ctx)
{
    bool is_nic = domain == STEERING_NIC_RX || domain == STEERING_NIC_TX;

    return (PRM_GET(flow_table_context, ctx, sw_owner) && !is_nic) ||
           (PRM_GET(flow_table_context, ctx, reformat_en) && !is_nic) ||
           (PRM_GET(flow_table_context, ctx, decap_en) && domain != STEERING_NIC_RX) ||
           (PRM_GET(flow_table_context, ctx, termination_table) && domain != STEERING_NIC_RX) ||
           PRM_GET(flow_table_context, ctx, lag_master_next_table_id);
}

/* Takes what the table needs, and gives it a number. Nothing is taken if it fails. */
static enum syn table_enter(struct hca *hca, struct flow_table *table,
                            const struct prm_flow_table_context *ctx)
{
    enum syn syn = table->sw_owner ? steering_take_scratch(hca) : SYN_OK;

    if (syn != SYN_OK) {
        return syn;
    }
    syn =
        steering_set_miss(hca, table, (uint8_t)PRM_GET(flow_table_context, ctx, table_miss_action),
                          PRM_GET(flow_table_context, ctx, table_miss_id));
    if (syn == SYN_OK && !obj_insert(&hca->steering->tables, &table->obj)) {
        steering_set_miss(hca, table, PRM_FLOW_TABLE_MISS_ACTION_DEF, 0);
        syn = SYN_NO_MEMORY;
    }
    if (syn != SYN_OK && table->sw_owner) {
        steering_give_scratch(hca);
    }
    return syn;
}

enum syn flow_table_create(struct hca *hca, uint16_t uid, uint8_t type,
                           const struct prm_flow_table_context *ctx, uint32_t *table_id)
{
    struct flow_table *table;
    enum syn syn;

    if (table_domain(type) == STEERING_DOMAINS) {
        return SYN_FT_TYPE;
    }
    if (table_asks_for_more(table_domain(type), ctx)) {
        return SYN_FT_FEATURE;
    }
    if (PRM_GET(flow_table_context, ctx, level) >= STEERING_MAX_LEVEL ||
        PRM_GET(flow_table_context, ctx, log_size) > STEERING_LOG_FT_SIZE) {
        return SYN_LIMIT;
    }
    table = obj_new(hca, OBJ_FLOW_TABLE, uid, sizeof(*table));
    if (!table) {
        return SYN_NO_MEMORY;
    }
    table->type = type;
    table->domain = table_domain(type);
    table->reformats = PRM_GET(flow_table_context, ctx, reformat_en);
    table->decaps = PRM_GET(flow_table_context, ctx, decap_en);
    table->level = (uint8_t)PRM_GET(flow_table_context, ctx, level);
    table->log_size = (uint8_t)PRM_GET(flow_table_context, ctx, log_size);
    table->is_last = PRM_GET(flow_table_context, ctx, termination_table);
    table->sw_owner = PRM_GET(flow_table_context, ctx, sw_owner);
    table->sw_root[0] = PRM_GET(flow_table_context, ctx, sws_sw_owner_icm_root_0);
    table->sw_root[1] = PRM_GET(flow_table_context, ctx, sws_sw_owner_icm_root_1);
    syn = table_enter(hca, table, ctx);
    if (syn != SYN_OK) {
        obj_free(hca, &table->obj);
        return syn;
    }
    table->groups = g_ptr_array_new();
    table->entries = g_hash_table_new(NULL, NULL);
    table->next_group_id = 1;
    *table_id = table->obj.num;
    return SYN_OK;
}

enum syn flow_table_query(struct hca *hca, uint8_t type, uint32_t table_id,
                          struct prm_flow_table_context *ctx)
{
    const struct flow_table *table = steering_find_table(hca, type, table_id);

    if (!table) {
        return SYN_FT_NOT_FOUND;
    }
    PRM_SET(flow_table_context, ctx, reformat_en, table->reformats);
    PRM_SET(flow_table_context, ctx, decap_en, table->decaps);
    PRM_SET(flow_table_context, ctx, level, table->level);
    PRM_SET(flow_table_context, ctx, log_size, table->log_size);
    PRM_SET(flow_table_context, ctx, table_miss_action, table->miss_action);
    PRM_SET(flow_table_context, ctx, table_miss_id, table->miss_id);
    PRM_SET(flow_table_context, ctx, termination_table, table->is_last);
    PRM_SET(flow_table_context, ctx, sw_owner, table->sw_owner);
    /* of a table that software does not lay out: where its entries go to reach the table */
    PRM_SET(flow_table_context, ctx, sws_sw_owner_icm_root_0,
            table->sw_owner ? table->sw_root[0] : ste_end_address(STE_TABLE, table_id));
    PRM_SET(flow_table_context, ctx, sws_sw_owner_icm_root_1, table->sw_root[1]);
    return SYN_OK;
}

enum syn flow_table_modify(struct hca *hca, uint16_t uid, uint8_t type, uint32_t table_id,
                           uint16_t select, const struct prm_flow_table_context *ctx)
{
    struct flow_table *table;
    enum syn syn = steering_find_own_table(hca, uid, type, table_id, &table);

    if (syn != SYN_OK) {
        return syn;
    }
    if (select & ~PRM_MODIFY_FLOW_TABLE_MISS_TABLE_ID) {
        return SYN_FT_MODIFY;
    }
    if (!select) {
        return SYN_OK;
    }
    return steering_set_miss(hca, table,
                             (uint8_t)PRM_GET(flow_table_context, ctx, table_miss_action),
                             PRM_GET(flow_table_context, ctx, table_miss_id));
}

void steering_table_free(struct hca *hca, struct flow_table *table)
{
    obj_remove(&hca->steering->tables, &table->obj);
    if (table->sw_owner) {
        steering_give_scratch(hca);
    }
    steering_groups_free(hca, table);
    g_ptr_array_free(table->groups, TRUE);
    g_hash_table_destroy(table->entries);
    obj_free(hca, &table->obj);
}

enum syn flow_table_destroy(struct hca *hca, uint16_t uid, uint8_t type, uint32_t table_id)
{
    struct flow_table *table;
    bool is_root;
    enum syn syn = steering_find_own_table(hca, uid, type, table_id, &table);

    if (syn != SYN_OK) {
        return syn;
    }
    /* A table may be destroyed although it is the root: the driver destroys its last table in that
     * state (update_root_ft_destroy()). Then there is no root. */
    is_root = hca->steering->roots[table->domain] == table;
    if (table->obj.refs || table->groups->len) {
        return SYN_IN_USE;
    }
    if (is_root) {
        flow_table_set_root(hca, type, table_id, false);
    }
    steering_set_miss(hca, table, PRM_FLOW_TABLE_MISS_ACTION_DEF, 0);
    steering_table_free(hca, table);
    return SYN_OK;
}

enum syn flow_table_set_root(struct hca *hca, uint8_t type, uint32_t table_id, bool set)
{
    struct flow_table *table = steering_find_table(hca, type, table_id);
    struct flow_table **roots = hca->steering->roots;

    if (!table) {
        return SYN_FT_NOT_FOUND;
    }
    if (!set && roots[table->domain] != table) {
        return SYN_FT_NOT_ROOT;
    }
    roots[table->domain] = set ? table : NULL;
    hca->steers_roce = roots[STEERING_RDMA_RX] || roots[STEERING_SNIFFER_RX];
    hca->sniffs_tx = roots[STEERING_SNIFFER_TX] || roots[STEERING_RDMA_TX];
    return SYN_OK;
}
