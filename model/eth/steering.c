/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Creates, changes and destroys flow tables, groups and entries.
 *
 * An entry references the objects that it names (tables, TIRs, counters), so that they cannot be
 * destroyed while it exists. Groups and entries belong to their table.
 */
#include <string.h>
#include "model/core/pd.h"
#include "model/eth/steering_priv.h"

#define DEST_LEN    PRM_STRIDE(flow_context, destination)
#define COUNTER_LEN PRM_SIZE(flow_counter_list)

/* Bits of the outer headers that cannot be matched; steering_key_from_frame() fills in all
 * others. */
static const struct {
    unsigned word;
    uint32_t unsupported;
} unsupported_bits[] = {
    {0x18 / 4, 0xffffff00}, /* l4_type, ipv4_ihl */
};

/* Random factors of the hash. A guest chooses the keys, but does not know the factors. So it cannot
 * make all its keys collide in a group's hash table. */
static uint64_t key_factors[KEY_WORDS];

static void steering_key_factors_init(void)
{
    static gsize done;

    if (g_once_init_enter(&done)) {
        for (unsigned i = 0; i < KEY_WORDS; i++) {
            key_factors[i] = (uint64_t)g_random_int() << 32 | g_random_int();
        }
        g_once_init_leave(&done, 1);
    }
}

static guint steering_key_hash(gconstpointer p)
{
    const struct flow_key *key = p;
    uint64_t sum = 0;

    for (unsigned i = 0; i < KEY_WORDS; i++) {
        sum += key_factors[i] * key->word[i];
    }
    return (guint)(sum >> 32);
}

static gboolean steering_key_equal(gconstpointer a, gconstpointer b)
{
    return memcmp(a, b, sizeof(struct flow_key)) == 0;
}

static const uint8_t domain_types[STEERING_DOMAINS] = {
    [STEERING_NIC_RX] = PRM_FLOW_TABLE_TYPE_NIC_RX,
    [STEERING_RDMA_RX] = PRM_FLOW_TABLE_TYPE_RDMA_RX,
    [STEERING_SNIFFER_RX] = PRM_FLOW_TABLE_TYPE_SNIFFER_RX,
    [STEERING_SNIFFER_TX] = PRM_FLOW_TABLE_TYPE_SNIFFER_TX,
};

/* The root of the tables of a type. NULL: there are no such tables. */
static struct flow_table **steering_root_of(struct hca *hca, uint8_t type)
{
    for (unsigned i = 0; i < STEERING_DOMAINS; i++) {
        if (domain_types[i] == type) {
            return &hca->steering->roots[i];
        }
    }
    return NULL;
}

/* -- tables -------------------------------------------------------------------------------------
 */

static struct flow_table *steering_find_table(struct hca *hca, uint8_t type, uint32_t id)
{
    struct flow_table *table = flow_table_find(hca, id);

    return table && table->type == type ? table : NULL;
}

/* As steering_find_table(), for a command that changes the table: only the table's owner may. */
static enum syn steering_find_own_table(struct hca *hca, uint16_t uid, uint8_t type, uint32_t id,
                                        struct flow_table **table)
{
    *table = steering_find_table(hca, type, id);
    if (!*table) {
        return SYN_FT_NOT_FOUND;
    }
    return uid_owns(&(*table)->obj, uid) ? SYN_OK : SYN_BAD_UID;
}

/* Finds a table of the same type that this table may lead to. It must have a higher level, unless
 * any_level. none: the syndrome if there is no such table. */
static enum syn steering_find_next_table(struct hca *hca, const struct flow_table *table,
                                         uint32_t id, bool any_level, enum syn none,
                                         struct flow_table **next)
{
    enum syn syn;

    *next = steering_find_table(hca, table->type, id);
    syn = uid_check((const struct obj *)*next, table->obj.uid, none);
    return syn == SYN_OK && !any_level && (*next)->level <= table->level ? SYN_FT_LEVEL : syn;
}

/* Sets the table's miss action. If it leads to another table, that table must have a higher level,
 * and is then referenced. */
static enum syn steering_set_miss(struct hca *hca, struct flow_table *table, uint8_t action,
                                  uint32_t id)
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

static void steering_entry_release(struct hca *hca, struct flow_entry *entry)
{
    hca_free(hca, OBJ_FLOW_ENTRY, entry, sizeof(*entry));
}

/* Frees a group and its entries, without giving their references back. */
static void steering_group_free(struct hca *hca, struct flow_group *group)
{
    GHashTableIter iter;
    gpointer entry;

    g_hash_table_iter_init(&iter, group->by_key);
    while (g_hash_table_iter_next(&iter, NULL, &entry)) {
        steering_entry_release(hca, entry);
    }
    g_hash_table_destroy(group->by_key);
    hca_free(hca, OBJ_FLOW_GROUP, group, sizeof(*group));
}

static void steering_groups_free(struct hca *hca, struct flow_table *table)
{
    for (unsigned i = 0; i < table->groups->len; i++) {
        steering_group_free(hca, g_ptr_array_index(table->groups, i));
    }
    g_ptr_array_set_size(table->groups, 0);
}

/* Whether the table needs features that QUERY_HCA_CAP does not report: tables that software lays
 * out, or entries that decapsulate or reformat packets. */
static bool steering_asks_for_more(const struct prm_flow_table_context *ctx)
{
    return PRM_GET(flow_table_context, ctx, sw_owner) ||
           PRM_GET(flow_table_context, ctx, reformat_en) ||
           PRM_GET(flow_table_context, ctx, decap_en) ||
           PRM_GET(flow_table_context, ctx, termination_table) ||
           PRM_GET(flow_table_context, ctx, lag_master_next_table_id);
}

enum syn flow_table_create(struct hca *hca, uint16_t uid, uint8_t type,
                           const struct prm_flow_table_context *ctx, uint32_t *table_id)
{
    struct flow_table *table;
    enum syn syn;

    if (!steering_root_of(hca, type)) {
        return SYN_FT_TYPE;
    }
    if (steering_asks_for_more(ctx)) {
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
    table->level = (uint8_t)PRM_GET(flow_table_context, ctx, level);
    table->log_size = (uint8_t)PRM_GET(flow_table_context, ctx, log_size);
    syn =
        steering_set_miss(hca, table, (uint8_t)PRM_GET(flow_table_context, ctx, table_miss_action),
                          PRM_GET(flow_table_context, ctx, table_miss_id));
    if (syn == SYN_OK && !obj_insert(&hca->steering->tables, &table->obj)) {
        steering_set_miss(hca, table, PRM_FLOW_TABLE_MISS_ACTION_DEF, 0);
        syn = SYN_NO_MEMORY;
    }
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
    PRM_SET(flow_table_context, ctx, level, table->level);
    PRM_SET(flow_table_context, ctx, log_size, table->log_size);
    PRM_SET(flow_table_context, ctx, table_miss_action, table->miss_action);
    PRM_SET(flow_table_context, ctx, table_miss_id, table->miss_id);
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

static void steering_table_free(struct hca *hca, struct flow_table *table)
{
    obj_remove(&hca->steering->tables, &table->obj);
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
    is_root = *steering_root_of(hca, type) == table;
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
    struct flow_table **roots = hca->steering->roots, **root = steering_root_of(hca, type);

    if (!table) {
        return SYN_FT_NOT_FOUND;
    }
    if (!set && *root != table) {
        return SYN_FT_NOT_ROOT;
    }
    *root = set ? table : NULL;
    hca->steers_roce = roots[STEERING_RDMA_RX] || roots[STEERING_SNIFFER_RX];
    hca->sniffs_tx = roots[STEERING_SNIFFER_TX];
    return SYN_OK;
}

/* -- groups -------------------------------------------------------------------------------------
 */

static struct flow_group *steering_find_group(struct hca *hca, struct flow_table *table,
                                              uint32_t id)
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

static bool steering_all_zero(const uint8_t *p, size_t len)
{
    return len == 0 || (p[0] == 0 && memcmp(p, p + 1, len - 1) == 0);
}

/* Reads a group's mask. Only outer headers can be matched, and only the fields of a frame's key. */
static enum syn steering_read_mask(const struct prm_create_flow_group_in *in, struct flow_key *mask)
{
    const struct prm_fte_match_param *criteria = PRM_PTR(create_flow_group_in, in, match_criteria);
    uint8_t enable = (uint8_t)PRM_GET(create_flow_group_in, in, match_criteria_enable);
    size_t outer = PRM_SIZE(fte_match_set_lyr_2_4);

    memset(mask, 0, sizeof(*mask));
    if (enable & ~(1u << PRM_MATCH_CRITERIA_OUTER_HEADERS)) {
        return SYN_FG_CRITERIA;
    }
    if (!steering_all_zero(criteria->bytes + outer, PRM_SIZE(fte_match_param) - outer)) {
        return SYN_FG_CRITERIA;
    }
    if (enable) {
        memcpy(mask->word, criteria, outer);
    } else if (!steering_all_zero(criteria->bytes, outer)) {
        return SYN_FG_CRITERIA;
    }
    for (size_t i = 0; i < G_N_ELEMENTS(unsupported_bits); i++) {
        if (GUINT32_FROM_BE(mask->word[unsupported_bits[i].word]) &
            unsupported_bits[i].unsupported) {
            return SYN_FG_CRITERIA;
        }
    }
    return SYN_OK;
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
    struct flow_key mask;
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
    hca_spend(hca, table->groups->len / HCA_PIECE_ENTRIES);
    if (start > end || end >> table->log_size || !steering_group_place(table, start, end, &place)) {
        return SYN_FG_RANGE;
    }
    syn = steering_read_mask(in, &mask);
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
    group->criteria_enable = (uint8_t)PRM_GET(create_flow_group_in, in, match_criteria_enable);
    group->mask = mask;
    group->by_key = g_hash_table_new(steering_key_hash, steering_key_equal);
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
    PRM_SET(query_flow_group_out, out, match_criteria_enable, group->criteria_enable);
    memcpy(PRM_PTR(query_flow_group_out, out, match_criteria), &group->mask, sizeof(group->mask));
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

/* -- entries ------------------------------------------------------------------------------------
 */

/* References an entry's destinations and counters (by is +1), or gives the references back (-1). */
static void steering_hold(struct hca *hca, struct flow_table *table, const struct flow_entry *entry,
                          int by)
{
    for (unsigned i = 0; i < entry->num_dests; i++) {
        struct obj *obj = entry->dests[i].type == PRM_FLOW_DESTINATION_TYPE_TIR
                              ? obj_find(&hca->tirs, entry->dests[i].id)
                              : &flow_table_find(hca, entry->dests[i].id)->obj;

        obj_count(&table->obj, obj, by);
    }
    for (unsigned i = 0; i < entry->num_counters; i++) {
        obj_count(&table->obj, &flow_counter_find(hca, entry->counters[i])->obj, by);
    }
}

/* Reads an entry's destinations. The owner of the table must be allowed to use them. any_level:
 * destination tables need not have higher levels; if that makes a loop, the walk of a frame is cut
 * off. */
static enum syn steering_read_dests(struct hca *hca, const struct flow_table *table,
                                    const struct prm_dest_format_struct *list, bool any_level,
                                    struct flow_entry *entry)
{
    for (unsigned i = 0; i < entry->num_dests; i++, list++) {
        struct flow_dest *dest = &entry->dests[i];
        struct flow_table *next;
        enum syn syn = SYN_FTE_DEST;

        dest->type = (uint8_t)PRM_GET(dest_format_struct, list, destination_type);
        dest->id = PRM_GET(dest_format_struct, list, destination_id);
        if (dest->type == PRM_FLOW_DESTINATION_TYPE_TIR) {
            syn = uid_check(obj_find(&hca->tirs, dest->id), table->obj.uid, SYN_FTE_DEST);
        } else if (dest->type == PRM_FLOW_DESTINATION_TYPE_FLOW_TABLE) {
            syn = steering_find_next_table(hca, table, dest->id, any_level, SYN_FTE_DEST, &next);
        }
        if (syn != SYN_OK) {
            return syn;
        }
    }
    return SYN_OK;
}

static enum syn steering_read_counters(struct hca *hca, const struct flow_table *table,
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
static bool steering_action_ok(const struct flow_entry *entry)
{
    uint16_t known = PRM_FLOW_ACTION_ALLOW | PRM_FLOW_ACTION_DROP | PRM_FLOW_ACTION_FWD_DEST |
                     PRM_FLOW_ACTION_COUNT;
    bool forward = entry->action & PRM_FLOW_ACTION_FWD_DEST;

    return !(entry->action & ~known) && forward == (entry->num_dests > 0) &&
           !(forward && entry->action & PRM_FLOW_ACTION_DROP) &&
           (entry->num_counters == 0 || entry->action & PRM_FLOW_ACTION_COUNT);
}

/* Reads action, tag and lists of a set_fte_in into entry. Key, index and group do not change. */
static enum syn steering_read_entry(struct hca *hca, const struct flow_table *table,
                                    const struct prm_set_fte_in *in, size_t in_len,
                                    struct flow_entry *entry)
{
    const struct prm_flow_context *ctx = PRM_PTR(set_fte_in, in, flow_context);
    const struct prm_dest_format_struct *dests = PRM_PTR_AT(flow_context, ctx, destination, 0);
    const void *counters;
    enum syn syn;

    entry->action = (uint16_t)PRM_GET(flow_context, ctx, action);
    entry->flow_tag = PRM_GET(flow_context, ctx, flow_tag);
    entry->num_dests = PRM_GET(flow_context, ctx, destination_list_size);
    entry->num_counters = PRM_GET(flow_context, ctx, flow_counter_list_size);
    if (PRM_GET(flow_context, ctx, extended_destination)) {
        return SYN_FTE_DEST;
    }
    if (entry->num_dests > STEERING_MAX_DEST || entry->num_counters > STEERING_MAX_COUNTERS) {
        return SYN_LIMIT;
    }
    if (in_len < (size_t)(dests->bytes - in->bytes) + entry->num_dests * DEST_LEN +
                     entry->num_counters * COUNTER_LEN) {
        return SYN_IN_LEN;
    }
    if (!steering_action_ok(entry)) {
        return SYN_FTE_ACTION;
    }
    counters = dests + entry->num_dests;
    syn = steering_read_dests(hca, table, dests, PRM_GET(set_fte_in, in, ignore_flow_level), entry);
    return syn ? syn : steering_read_counters(hca, table, counters, entry);
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
    }
    if (select & 1u << PRM_SET_FTE_MODIFY_FLOW_TAG) {
        merged.flow_tag = next.flow_tag;
    }
    if (select & 1u << PRM_SET_FTE_MODIFY_DESTINATION_LIST) {
        merged.num_dests = next.num_dests;
        memcpy(merged.dests, next.dests, sizeof(next.dests));
    }
    if (select & 1u << PRM_SET_FTE_MODIFY_FLOW_COUNTERS) {
        merged.num_counters = next.num_counters;
        memcpy(merged.counters, next.counters, sizeof(next.counters));
    }
    if (!steering_action_ok(&merged)) {
        return SYN_FTE_ACTION;
    }
    steering_hold(hca, table, &merged, 1);
    steering_hold(hca, table, entry, -1);
    *entry = merged;
    return SYN_OK;
}

static enum syn steering_new_entry(struct hca *hca, struct flow_table *table,
                                   const struct prm_set_fte_in *in, size_t in_len, uint32_t index)
{
    const struct prm_flow_context *ctx = PRM_PTR(set_fte_in, in, flow_context);
    struct flow_group *group =
        steering_find_group(hca, table, PRM_GET(flow_context, ctx, group_id));
    struct flow_entry *entry;
    struct flow_key value;
    enum syn syn;

    if (!group || index < group->start || index > group->end) {
        return SYN_FTE_GROUP;
    }
    entry = hca_alloc(hca, OBJ_FLOW_ENTRY, sizeof(*entry));
    if (!entry) {
        return SYN_NO_MEMORY;
    }
    memcpy(&value, PRM_PTR(flow_context, ctx, match_value), sizeof(value));
    flow_key_mask(&entry->key, &value, &group->mask);
    entry->index = index;
    entry->group = group;
    syn = steering_read_entry(hca, table, in, in_len, entry);
    if (syn == SYN_OK && g_hash_table_contains(group->by_key, &entry->key)) {
        syn = SYN_FTE_EXISTS;
    }
    if (syn != SYN_OK) {
        steering_entry_release(hca, entry);
        return syn;
    }
    steering_hold(hca, table, entry, 1);
    g_hash_table_insert(group->by_key, &entry->key, entry);
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
    void *list;

    if (!table) {
        return SYN_FT_NOT_FOUND;
    }
    entry = g_hash_table_lookup(table->entries, GUINT_TO_POINTER(index));
    if (!entry) {
        return SYN_FTE_NOT_FOUND;
    }
    if (ctx_len <
        PRM_SIZE(flow_context) + entry->num_dests * DEST_LEN + entry->num_counters * COUNTER_LEN) {
        return SYN_OUT_LEN;
    }
    PRM_SET(flow_context, ctx, group_id, entry->group->id);
    PRM_SET(flow_context, ctx, flow_tag, entry->flow_tag);
    PRM_SET(flow_context, ctx, action, entry->action);
    PRM_SET(flow_context, ctx, destination_list_size, entry->num_dests);
    PRM_SET(flow_context, ctx, flow_counter_list_size, entry->num_counters);
    memcpy(PRM_PTR(flow_context, ctx, match_value), &entry->key, sizeof(entry->key));
    list = PRM_PTR_AT(flow_context, ctx, destination, 0);
    for (unsigned i = 0; i < entry->num_dests; i++, list += DEST_LEN) {
        PRM_SET(dest_format_struct, list, destination_type, entry->dests[i].type);
        PRM_SET(dest_format_struct, list, destination_id, entry->dests[i].id);
    }
    for (unsigned i = 0; i < entry->num_counters; i++, list += COUNTER_LEN) {
        PRM_SET(flow_counter_list, list, flow_counter_id, entry->counters[i]);
    }
    return SYN_OK;
}

/* Frees an entry that is no longer in its table. */
static void steering_entry_free(struct hca *hca, struct flow_table *table, struct flow_entry *entry)
{
    steering_hold(hca, table, entry, -1);
    g_hash_table_remove(entry->group->by_key, &entry->key);
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

/* -- a user context is destroyed --------------------------------------------------------------- */

/* Ends a step of emptying a table. Returns whether there may be another step in this turn. */
static bool steering_next_step(struct hca *hca)
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
        if (!steering_next_step(hca)) {
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
        if (!steering_next_step(hca)) {
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
        if (!steering_next_step(hca)) {
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

/* -- counters -----------------------------------------------------------------------------------
 */

enum syn flow_counter_alloc(struct hca *hca, uint16_t uid, uint32_t *id)
{
    struct flow_counter *counter = obj_make(hca, OBJ_FLOW_COUNTER, uid, sizeof(*counter));

    if (!counter) {
        return SYN_NO_MEMORY;
    }
    *id = counter->obj.num;
    return SYN_OK;
}

struct flow_counter *flow_counter_find(struct hca *hca, uint32_t id)
{
    return obj_find_kind(&hca->flow_counters, id, OBJ_FLOW_COUNTER);
}

enum syn flow_counter_dealloc(struct hca *hca, uint16_t uid, uint32_t id)
{
    return obj_dealloc(hca, &hca->flow_counters, uid, id, SYN_FC_NOT_FOUND);
}

/* -- life ---------------------------------------------------------------------------------------
 */

void steering_init(struct hca *hca)
{
    steering_key_factors_init();
    hca->steering = g_new0(struct steering, 1);
    hca->steers_roce = hca->sniffs_tx = false;
    obj_table_init(&hca->steering->tables, &hca->memory, 1, 1u << STEERING_LOG_FT_NUM);
}

/* Frees all tables, whatever references them. */
void steering_clear(struct hca *hca)
{
    uint32_t num = 0;
    struct obj *obj;

    while ((obj = obj_next(&hca->steering->tables, num))) {
        num = obj->num + 1;
        steering_table_free(hca, (struct flow_table *)obj);
    }
    obj_table_clear(&hca->steering->tables);
    g_free(hca->steering);
    hca->steering = NULL;
}
