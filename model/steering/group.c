/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Creates and destroys flow groups. A group is a range of a table's entries which have the same
 * mask. Groups and entries belong to their table. Entries may have equal keys: a driver that
 * replaces the last entry of a table sets the new one before it deletes the old one
 * (mlx5_chains_update_prio_prevs()).
 */
#include "model/core/pd.h"
#include "model/steering/tables.h"

void steering_entry_release(struct hca *hca, struct flow_entry *entry)
{
    hca_free(hca, OBJ_FLOW_ENTRY, entry, steering_entry_size(entry->key.num_words));
}

void steering_group_enter(struct flow_group *group, struct flow_entry *entry)
{
    struct flow_entry *oldest = g_hash_table_lookup(group->by_key, &entry->key);

    entry->next = entry->prev = entry;
    if (!oldest) {
        g_hash_table_insert(group->by_key, &entry->key, entry);
        return;
    }
    entry->next = oldest;
    entry->prev = oldest->prev;
    entry->next->prev = entry->prev->next = entry;
}

void steering_group_leave(struct flow_group *group, struct flow_entry *entry)
{
    if (g_hash_table_lookup(group->by_key, &entry->key) == entry) {
        if (entry->next == entry) {
            g_hash_table_remove(group->by_key, &entry->key);
        } else {
            g_hash_table_replace(group->by_key, &entry->next->key, entry->next);
        }
    }
    entry->next->prev = entry->prev;
    entry->prev->next = entry->next;
}

void steering_group_free(struct hca *hca, struct flow_group *group)
{
    g_assert(!g_hash_table_size(group->by_key)); /* entries hold references, so they go first */
    g_hash_table_destroy(group->by_key);
    hca_free(hca, OBJ_FLOW_GROUP, group, sizeof(*group));
}

void steering_groups_free(struct hca *hca, struct flow_table *table)
{
    for (unsigned i = 0; i < table->groups->len; i++) {
        steering_group_free(hca, g_ptr_array_index(table->groups, i));
    }
    g_ptr_array_set_size(table->groups, 0);
}

struct flow_group *steering_find_group(struct hca *hca, struct flow_table *table, uint32_t id)
{
    hca_spend(hca, table->groups->len / HCA_PIECE_ENTRIES);
    for (unsigned i = 0; i < table->groups->len; i++) {
        struct flow_group *group = g_ptr_array_index(table->groups, i);

        if (group->id == id) {
            return group;
        }
    }
    return NULL;
}

/* The position of a group with that range in the order of groups. False: the range overlaps another
 * group. */
static bool steering_group_place(const struct flow_table *table, uint32_t start, uint32_t end,
                                 int *place)
{
    unsigned i;

    for (i = 0; i < table->groups->len; i++) {
        const struct flow_group *group = g_ptr_array_index(table->groups, i);

        if (start <= group->end && group->start <= end) {
            return false;
        }
        if (group->start > end) {
            break;
        }
    }
    *place = (int)i;
    return true;
}

enum syn flow_group_create(struct hca *hca, uint16_t uid, const struct prm_create_flow_group_in *in,
                           uint32_t *group_id)
{
    uint32_t start = PRM_GET(create_flow_group_in, in, start_flow_index);
    uint32_t end = PRM_GET(create_flow_group_in, in, end_flow_index);
    struct flow_table *table;
    struct flow_group *group;
    struct flow_mask mask;
    enum syn syn =
        steering_find_own_table(hca, uid, (uint8_t)PRM_GET(create_flow_group_in, in, table_type),
                                PRM_GET(create_flow_group_in, in, table_id), &table);
    int place;

    if (syn != SYN_OK) {
        return syn;
    }
    if (PRM_GET(create_flow_group_in, in, group_type) != PRM_FLOW_GROUP_TYPE_TCAM_SUBTABLE) {
        return SYN_FG_TYPE;
    }
    if (table->sw_owner) {
        return SYN_FT_FEATURE;
    }
    hca_spend(hca, table->groups->len / HCA_PIECE_ENTRIES);
    if (start > end || end >> table->log_size || !steering_group_place(table, start, end, &place)) {
        return SYN_FG_RANGE;
    }
    syn = flow_mask_read(table->domain, in, &mask);
    if (syn != SYN_OK) {
        return syn;
    }
    group = hca_alloc(hca, OBJ_FLOW_GROUP, sizeof(*group));
    if (!group) {
        return SYN_NO_MEMORY;
    }
    group->id = table->next_group_id++;
    group->start = start;
    group->end = end;
    group->mask = mask;
    group->by_key = flow_key_table_new();
    g_ptr_array_insert(table->groups, place, group);
    *group_id = group->id;
    return SYN_OK;
}

enum syn flow_group_query(struct hca *hca, uint8_t type, uint32_t table_id, uint32_t group_id,
                          struct prm_query_flow_group_out *out)
{
    struct flow_table *table = steering_find_table(hca, type, table_id);
    struct flow_group *group = table ? steering_find_group(hca, table, group_id) : NULL;

    if (!group) {
        return table ? SYN_FG_NOT_FOUND : SYN_FT_NOT_FOUND;
    }
    PRM_SET(query_flow_group_out, out, start_flow_index, group->start);
    PRM_SET(query_flow_group_out, out, end_flow_index, group->end);
    PRM_SET(query_flow_group_out, out, match_criteria_enable, group->mask.enable);
    flow_mask_write(&group->mask, PRM_PTR(query_flow_group_out, out, match_criteria));
    return SYN_OK;
}

enum syn flow_group_destroy(struct hca *hca, uint16_t uid, uint8_t type, uint32_t table_id,
                            uint32_t group_id)
{
    struct flow_group *group;
    struct flow_table *table;
    enum syn syn = steering_find_own_table(hca, uid, type, table_id, &table);

    if (syn != SYN_OK) {
        return syn;
    }
    group = steering_find_group(hca, table, group_id);
    if (!group) {
        return SYN_FG_NOT_FOUND;
    }
    if (g_hash_table_size(group->by_key)) {
        return SYN_IN_USE;
    }
    g_ptr_array_remove(table->groups, group);
    steering_group_free(hca, group);
    return SYN_OK;
}
