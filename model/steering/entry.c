/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Creates, changes and destroys flow table entries.
 *
 * An entry references the objects that it names (tables, TIRs, counters), so that they cannot be
 * destroyed while it exists.
 */
#include <string.h>
#include "model/core/pd.h"
#include "model/steering/change.h"

#define COUNTER_LEN PRM_SIZE(flow_counter_list)

/* Bytes of a destination. */
static size_t entry_dest_len(bool extended)
{
    return extended ? PRM_SIZE(extended_dest_format) : PRM_STRIDE(flow_context, destination);
}

/* References an entry's destinations, counters and contexts (by is +1), or gives the references
 * back (-1). */
static void entry_hold(struct hca *hca, struct flow_table *table, const struct flow_entry *entry,
                       int by)
{
    for (unsigned i = 0; i < entry->num_dests; i++) {
        struct obj *obj = entry->dests[i].type == PRM_FLOW_DESTINATION_TYPE_TIR
                              ? obj_find(&hca->tirs, entry->dests[i].id)
                              : &flow_table_find(hca, entry->dests[i].id)->obj;

        obj_count(&table->obj, obj, by);
        obj_count(&table->obj, (struct obj *)packet_reformat_find(hca, entry->dests[i].reformat),
                  by);
    }
    obj_count(&table->obj, (struct obj *)entry->reformat, by);
    obj_count(&table->obj, (struct obj *)entry->modify, by);
    for (unsigned i = 0; i < entry->num_counters; i++) {
        obj_count(&table->obj, &flow_counter_find(hca, entry->counters[i])->obj, by);
    }
}

/* Takes what the entry needs. entry_give() gives it back. */
static enum syn entry_take(struct hca *hca, struct flow_table *table,
                           const struct flow_entry *entry)
{
    enum syn syn = steering_may_change(entry) ? steering_take_scratch(hca) : SYN_OK;

    if (syn == SYN_OK) {
        entry_hold(hca, table, entry, 1);
    }
    return syn;
}

static void entry_give(struct hca *hca, struct flow_table *table, const struct flow_entry *entry)
{
    entry_hold(hca, table, entry, -1);
    if (steering_may_change(entry)) {
        steering_give_scratch(hca);
    }
}

/* Reads the reformat on the way to an extended destination. */
static enum syn entry_read_dest_reformat(struct hca *hca, const struct flow_table *table,
                                         const struct prm_dest_format_struct *in,
                                         struct flow_dest *dest)
{
    const struct prm_extended_dest_format *extended = (const void *)in;
    struct packet_reformat *reformat;

    if (!PRM_GET(dest_format_struct, in, packet_reformat)) {
        return SYN_OK;
    }
    dest->reformat = PRM_GET(extended_dest_format, extended, packet_reformat_id);
    return steering_find_reformat(hca, table, dest->reformat, &reformat);
}

/* Reads an entry's destinations. The owner of the table must be allowed to use them. any_level:
 * destination tables need not have higher levels; if that makes a loop, the walk of a frame is cut
 * off. */
static enum syn entry_read_dests(struct hca *hca, const struct flow_table *table, const void *list,
                                 bool any_level, struct flow_entry *entry)
{
    for (unsigned i = 0; i < entry->num_dests; i++, list += entry_dest_len(entry->extended)) {
        struct flow_dest *dest = &entry->dests[i];
        struct flow_table *next;
        enum syn syn = SYN_FTE_DEST;

        dest->type = (uint8_t)PRM_GET(dest_format_struct, list, destination_type);
        dest->id = PRM_GET(dest_format_struct, list, destination_id);
        dest->reformat = 0;
        if (dest->type == PRM_FLOW_DESTINATION_TYPE_TIR && !steering_is_tx(table->domain)) {
            syn = uid_check(obj_find(&hca->tirs, dest->id), table->obj.uid, SYN_FTE_DEST);
        } else if (dest->type == PRM_FLOW_DESTINATION_TYPE_FLOW_TABLE && !table->is_last) {
            syn = steering_find_next_table(hca, table, dest->id, any_level, SYN_FTE_DEST, &next);
        }
        if (syn == SYN_OK && entry->extended) {
            syn = entry_read_dest_reformat(hca, table, list, dest);
        }
        if (syn != SYN_OK) {
            return syn;
        }
    }
    return SYN_OK;
}

static enum syn entry_read_counters(struct hca *hca, const struct flow_table *table,
                                    const struct prm_flow_counter_list *list,
                                    struct flow_entry *entry)
{
    for (unsigned i = 0; i < entry->num_counters; i++, list++) {
        enum syn syn;

        entry->counters[i] = PRM_GET(flow_counter_list, list, flow_counter_id);
        syn = uid_check((const struct obj *)flow_counter_find(hca, entry->counters[i]),
                        table->obj.uid, SYN_FTE_COUNTER);
        if (syn != SYN_OK) {
            return syn;
        }
    }
    return SYN_OK;
}

/* Whether all actions are supported, and fit the lists that come with them. */
static bool entry_action_ok(const struct flow_table *table, const struct flow_entry *entry)
{
    uint16_t known = PRM_FLOW_ACTION_ALLOW | PRM_FLOW_ACTION_DROP | PRM_FLOW_ACTION_FWD_DEST |
                     PRM_FLOW_ACTION_COUNT | CHANGE_ACTIONS;
    bool forward = entry->action & PRM_FLOW_ACTION_FWD_DEST;

    return !(entry->action & ~known) && forward == (entry->num_dests > 0) &&
           !(forward && entry->action & PRM_FLOW_ACTION_DROP) &&
           (entry->num_counters == 0 || entry->action & PRM_FLOW_ACTION_COUNT) &&
           steering_changes_ok(table, entry);
}

/* Reads action, tag and lists of a set_fte_in into entry. Key, index and group do not change. */
static enum syn steering_read_entry(struct hca *hca, const struct flow_table *table,
                                    const struct prm_set_fte_in *in, size_t in_len,
                                    struct flow_entry *entry)
{
    const struct prm_flow_context *ctx = PRM_PTR(set_fte_in, in, flow_context);
    const void *dests = PRM_PTR_AT(flow_context, ctx, destination, 0), *counters;
    size_t dest_bytes;
    enum syn syn;

    entry->action = (uint16_t)PRM_GET(flow_context, ctx, action);
    entry->flow_tag = PRM_GET(flow_context, ctx, flow_tag);
    entry->num_dests = PRM_GET(flow_context, ctx, destination_list_size);
    entry->num_counters = PRM_GET(flow_context, ctx, flow_counter_list_size);
    entry->extended = PRM_GET(flow_context, ctx, extended_destination);
    if (entry->num_dests > STEERING_MAX_DEST || entry->num_counters > STEERING_MAX_COUNTERS) {
        return SYN_LIMIT;
    }
    dest_bytes = entry->num_dests * entry_dest_len(entry->extended);
    if (in_len < (size_t)((const uint8_t *)dests - in->bytes) + dest_bytes +
                     entry->num_counters * COUNTER_LEN) {
        return SYN_IN_LEN;
    }
    syn = steering_read_changes(hca, table, ctx, entry);
    if (syn != SYN_OK) {
        return syn;
    }
    if (!entry_action_ok(table, entry)) {
        return SYN_FTE_ACTION;
    }
    counters = dests + dest_bytes;
    syn = entry_read_dests(hca, table, dests, PRM_GET(set_fte_in, in, ignore_flow_level), entry);
    return syn ? syn : entry_read_counters(hca, table, counters, entry);
}

static enum syn steering_modify_entry(struct hca *hca, struct flow_table *table,
                                      const struct prm_set_fte_in *in, size_t in_len,
                                      struct flow_entry *entry)
{
    uint8_t select = (uint8_t)PRM_GET(set_fte_in, in, modify_enable_mask);
    uint8_t known = 1u << PRM_SET_FTE_MODIFY_ACTION | 1u << PRM_SET_FTE_MODIFY_FLOW_TAG |
                    1u << PRM_SET_FTE_MODIFY_DESTINATION_LIST |
                    1u << PRM_SET_FTE_MODIFY_FLOW_COUNTERS;
    struct flow_entry next = *entry, merged = *entry;
    enum syn syn = steering_read_entry(hca, table, in, in_len, &next);

    if (syn != SYN_OK) {
        return syn;
    }
    if (select & ~known) {
        return SYN_FTE_MODIFY;
    }
    if (select & 1u << PRM_SET_FTE_MODIFY_ACTION) {
        merged.action = next.action;
        merged.reformat = next.reformat;
        merged.modify = next.modify;
        memcpy(merged.vlans, next.vlans, sizeof(next.vlans));
    }
    if (select & 1u << PRM_SET_FTE_MODIFY_FLOW_TAG) {
        merged.flow_tag = next.flow_tag;
    }
    if (select & 1u << PRM_SET_FTE_MODIFY_DESTINATION_LIST) {
        merged.num_dests = next.num_dests;
        merged.extended = next.extended;
        memcpy(merged.dests, next.dests, sizeof(next.dests));
    }
    if (select & 1u << PRM_SET_FTE_MODIFY_FLOW_COUNTERS) {
        merged.num_counters = next.num_counters;
        memcpy(merged.counters, next.counters, sizeof(next.counters));
    }
    if (!entry_action_ok(table, &merged)) {
        return SYN_FTE_ACTION;
    }
    syn = entry_take(hca, table, &merged);
    if (syn == SYN_OK) {
        entry_give(hca, table, entry);
        *entry = merged;
    }
    return syn;
}

static enum syn steering_new_entry(struct hca *hca, struct flow_table *table,
                                   const struct prm_set_fte_in *in, size_t in_len, uint32_t index)
{
    const struct prm_flow_context *ctx = PRM_PTR(set_fte_in, in, flow_context);
    struct flow_group *group =
        steering_find_group(hca, table, PRM_GET(flow_context, ctx, group_id));
    uint32_t value[PRM_SIZE(fte_match_param) / 4];
    struct flow_entry *entry;
    enum syn syn;

    if (!group || index < group->start || index > group->end) {
        return SYN_FTE_GROUP;
    }
    entry = hca_alloc(hca, OBJ_FLOW_ENTRY, steering_entry_size(group->mask.num_words));
    if (!entry) {
        return SYN_NO_MEMORY;
    }
    memcpy(value, PRM_PTR(flow_context, ctx, match_value), sizeof(value));
    flow_key_take(&entry->key, value, &group->mask);
    entry->index = index;
    entry->group = group;
    syn = steering_read_entry(hca, table, in, in_len, entry);
    if (syn == SYN_OK) {
        syn = entry_take(hca, table, entry);
    }
    if (syn != SYN_OK) {
        steering_entry_release(hca, entry);
        return syn;
    }
    steering_group_enter(group, entry);
    g_hash_table_insert(table->entries, GUINT_TO_POINTER(index), entry);
    return SYN_OK;
}

enum syn flow_entry_set(struct hca *hca, uint16_t uid, const struct prm_set_fte_in *in,
                        size_t in_len, bool modify)
{
    uint32_t index = PRM_GET(set_fte_in, in, flow_index);
    struct flow_table *table;
    struct flow_entry *entry;
    enum syn syn = steering_find_own_table(hca, uid, (uint8_t)PRM_GET(set_fte_in, in, table_type),
                                           PRM_GET(set_fte_in, in, table_id), &table);

    if (syn != SYN_OK) {
        return syn;
    }
    entry = g_hash_table_lookup(table->entries, GUINT_TO_POINTER(index));
    if (modify) {
        return entry ? steering_modify_entry(hca, table, in, in_len, entry) : SYN_FTE_NOT_FOUND;
    }
    return entry ? SYN_FTE_EXISTS : steering_new_entry(hca, table, in, in_len, index);
}

enum syn flow_entry_query(struct hca *hca, uint8_t type, uint32_t table_id, uint32_t index,
                          struct prm_flow_context *ctx, size_t ctx_len)
{
    struct flow_table *table = steering_find_table(hca, type, table_id);
    const struct flow_entry *entry;
    size_t dest_len;
    void *list;

    if (!table) {
        return SYN_FT_NOT_FOUND;
    }
    entry = g_hash_table_lookup(table->entries, GUINT_TO_POINTER(index));
    if (!entry) {
        return SYN_FTE_NOT_FOUND;
    }
    dest_len = entry_dest_len(entry->extended);
    if (ctx_len <
        PRM_SIZE(flow_context) + entry->num_dests * dest_len + entry->num_counters * COUNTER_LEN) {
        return SYN_OUT_LEN;
    }
    PRM_SET(flow_context, ctx, group_id, entry->group->id);
    PRM_SET(flow_context, ctx, flow_tag, entry->flow_tag);
    PRM_SET(flow_context, ctx, action, entry->action);
    PRM_SET(flow_context, ctx, extended_destination, entry->extended);
    steering_write_changes(entry, ctx);
    PRM_SET(flow_context, ctx, destination_list_size, entry->num_dests);
    PRM_SET(flow_context, ctx, flow_counter_list_size, entry->num_counters);
    flow_key_write(&entry->key, &entry->group->mask, PRM_PTR(flow_context, ctx, match_value));
    list = PRM_PTR_AT(flow_context, ctx, destination, 0);
    for (unsigned i = 0; i < entry->num_dests; i++, list += dest_len) {
        PRM_SET(dest_format_struct, list, destination_type, entry->dests[i].type);
        PRM_SET(dest_format_struct, list, destination_id, entry->dests[i].id);
        if (entry->dests[i].reformat) {
            PRM_SET(dest_format_struct, list, packet_reformat, 1);
            PRM_SET(extended_dest_format, list, packet_reformat_id, entry->dests[i].reformat);
        }
    }
    for (unsigned i = 0; i < entry->num_counters; i++, list += COUNTER_LEN) {
        PRM_SET(flow_counter_list, list, flow_counter_id, entry->counters[i]);
    }
    return SYN_OK;
}

void steering_entry_free(struct hca *hca, struct flow_table *table, struct flow_entry *entry)
{
    entry_give(hca, table, entry);
    steering_group_leave(entry->group, entry);
    steering_entry_release(hca, entry);
}

enum syn flow_entry_delete(struct hca *hca, uint16_t uid, uint8_t type, uint32_t table_id,
                           uint32_t index)
{
    struct flow_table *table;
    struct flow_entry *entry;
    enum syn syn = steering_find_own_table(hca, uid, type, table_id, &table);

    if (syn != SYN_OK) {
        return syn;
    }
    entry = g_hash_table_lookup(table->entries, GUINT_TO_POINTER(index));
    if (!entry) {
        return SYN_FTE_NOT_FOUND;
    }
    g_hash_table_remove(table->entries, GUINT_TO_POINTER(index));
    steering_entry_free(hca, table, entry);
    return SYN_OK;
}
