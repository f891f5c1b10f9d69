/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Empties and destroys tables in steps that fit into turns: a user context is destroyed, or the
 * function is reset.
 */
#include "model/core/pd.h"
#include "model/steering/tables.h"

/* Ends a step of emptying a table. Returns whether there may be another step in this turn. */
static bool empty_next_step(struct hca *hca)
{
    hca_spend(hca, 1);
    return hca_has_room(hca);
}

/* False: entries are left. */
static bool steering_entries_empty(struct hca *hca, struct flow_table *table)
{
    GHashTableIter iter;
    gpointer value;

    if (!g_hash_table_size(table->entries)) {
        return true; /* otherwise the walk would go through all slots of the hash table */
    }
    g_hash_table_iter_init(&iter, table->entries);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        g_hash_table_iter_remove(&iter);
        steering_entry_free(hca, table, value);
        if (!empty_next_step(hca)) {
            return false;
        }
    }
    return true;
}

static bool steering_groups_empty(struct hca *hca, struct flow_table *table)
{
    while (table->groups->len) {
        steering_group_free(hca, g_ptr_array_index(table->groups, table->groups->len - 1));
        g_ptr_array_set_size(table->groups, (int)table->groups->len - 1);
        if (!empty_next_step(hca)) {
            return false;
        }
    }
    return true;
}

/* Empties a table. False: something is left. */
static bool steering_table_empty(struct hca *hca, struct flow_table *table)
{
    steering_set_miss(hca, table, PRM_FLOW_TABLE_MISS_ACTION_DEF, 0);
    return steering_entries_empty(hca, table) && steering_groups_empty(hca, table);
}

bool flow_tables_empty_of(struct hca *hca, uint16_t uid)
{
    OBJ_TABLE_FOREACH (obj, &hca->steering->tables) {
        struct flow_table *table = (struct flow_table *)obj;

        if (obj->uid != uid) {
            continue;
        }
        if (!steering_table_empty(hca, table)) {
            return false;
        }
    }
    return true;
}

bool flow_tables_empty_from(struct hca *hca, uint32_t *num)
{
    struct obj *obj;

    while ((obj = obj_next(&hca->steering->tables, *num))) {
        if (!steering_table_empty(hca, (struct flow_table *)obj)) {
            return false;
        }
        *num = obj->num + 1;
        if (!empty_next_step(hca)) {
            return false;
        }
    }
    return true;
}

unsigned flow_tables_destroy_of(struct hca *hca, uint16_t uid, unsigned *left)
{
    struct obj *next;
    unsigned gone = 0;

    *left = 0;
    for (struct obj *obj = obj_next(&hca->steering->tables, 0); obj; obj = next) {
        const struct flow_table *table = (const struct flow_table *)obj;

        next = obj_next(&hca->steering->tables, obj->num + 1);
        hca_spend(hca, 1);
        if (obj->uid != uid) {
            continue;
        }
        if (flow_table_destroy(hca, uid, table->type, obj->num) == SYN_OK) {
            gone++;
        } else {
            ++*left;
        }
    }
    return gone;
}
