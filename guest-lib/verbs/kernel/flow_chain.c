/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The tables of an HCA's flows, one chain for each type of tables. A chain has two places for each
 * priority: for rules that pass packets on (IBV_FLOW_ATTR_FLAGS_DONT_TRAP), and behind it for those
 * that do not; the last place is for default rules (ib_prio_to_core_prio() of mlx5_ib). A place has
 * a table only while it has rules. The first table is the root of the type. A packet that a table
 * does not match goes on to the next table, and so does a packet that a rule passes on.
 *
 * Each rule has its own mask, so it is an entry in a group of its own, and the first entry that
 * matches gets the packet. In mlx5_ib two rules of a priority with equal values both get it. Here
 * the older rule gets it.
 *
 * Rules that end in a miss lead to a table without entries, which is no place of the chain.
 */
#include "guest-lib/verbs/kernel/flow_chain.h"
#include "guest-lib/verbs/kernel/hca.h"

#define PLACES   (2 * HV_FLOW_PRIORITIES + 1)
#define LOG_SIZE 8 /* of a table */
#define ENTRIES  (1u << LOG_SIZE)

struct chain_table {
    uint32_t id;
    unsigned used;
    struct hv_flow_entry *entries[ENTRIES];
};

struct hv_flow_table {
    struct chain_table *at[PLACES];
    unsigned tables;
    uint32_t miss_id; /* of the table without entries */
    unsigned misses;  /* rules that lead there */
};

static unsigned chain_place(const struct hv_flow_rule *rule)
{
    return rule->priority == HV_FLOW_PRIORITIES ? PLACES - 1
                                                : 2 * rule->priority + !rule->passes_on;
}

/* The nearest table before that place, or behind it; NULL: there is none. */
static struct chain_table *chain_before(const struct hv_flow_table *chain, unsigned place)
{
    while (place-- > 0) {
        if (chain->at[place]) {
            return chain->at[place];
        }
    }
    return NULL;
}

static struct chain_table *chain_behind(const struct hv_flow_table *chain, unsigned place)
{
    while (++place < PLACES) {
        if (chain->at[place]) {
            return chain->at[place];
        }
    }
    return NULL;
}

/* -- entries ----------------------------------------------------------------------------------- */

/* Writes an entry. next: the table behind its own, or NULL. */
static int chain_write(struct hv_hca *hca, const struct hv_flow_table *chain,
                       const struct hv_flow_entry *entry, const struct chain_table *next,
                       bool change)
{
    const struct hv_flow_rule *rule = &entry->rule;
    struct hv_flow_dest dests[2] = {rule->dest};
    unsigned num = 1;

    if (rule->misses) {
        dests[0].id = chain->miss_id;
    }
    if (rule->passes_on && next) {
        dests[num++] = (struct hv_flow_dest){PRM_FLOW_DESTINATION_TYPE_FLOW_TABLE, next->id};
    }
    return hv_flow_set_entry(hca, &entry->place, rule, dests, num, change);
}

static bool chain_is_forwarding(const struct hv_flow_rule *rule)
{
    return rule->passes_on && rule->action & PRM_FLOW_ACTION_FWD_DEST;
}

/* -- links ------------------------------------------------------------------------------------- */

/* Makes a table, or the root if table is NULL, lead to next, or nowhere. old: the root, or NULL. */
static int chain_link(struct hv_hca *hca, uint8_t type, const struct hv_flow_table *chain,
                      const struct chain_table *table, const struct chain_table *next,
                      const struct chain_table *old)
{
    int err;

    if (!table) {
        return next  ? hv_flow_set_root(hca, type, next->id)
               : old ? hv_flow_unset_root(hca, type, old->id)
                     : 0;
    }
    err = hv_flow_set_miss(hca, type, table->id, next ? &next->id : NULL);
    for (unsigned i = 0; !err && i < ENTRIES; i++) {
        if (table->entries[i] && chain_is_forwarding(&table->entries[i]->rule)) {
            err = chain_write(hca, chain, table->entries[i], next, true);
        }
    }
    return err;
}

/* Makes the table of a place and puts it into the chain: 0 or errno. */
static int chain_insert(struct hv_hca *hca, uint8_t type, struct hv_flow_table *chain,
                        unsigned place)
{
    struct chain_table *before = chain_before(chain, place), *behind = chain_behind(chain, place);
    const struct hv_flow_shape shape = {
        .type = type, .level = (uint8_t)place, .log_size = LOG_SIZE};
    struct chain_table *table = g_new0(struct chain_table, 1);
    int err = hv_flow_create_table(hca, &shape, behind ? &behind->id : NULL, &table->id);

    if (!err) {
        err = chain_link(hca, type, chain, before, table, NULL);
        if (err) {
            chain_link(hca, type, chain, before, behind, table);
            hv_flow_destroy_table(hca, type, table->id);
        }
    }
    if (err) {
        g_free(table);
        return err;
    }
    chain->at[place] = table;
    chain->tables++;
    return 0;
}

/* Removes an empty table. If the device refuses to lead past it, the table stays where it is. */
static void chain_take_out(struct hv_hca *hca, uint8_t type, struct hv_flow_table *chain,
                           unsigned place)
{
    struct chain_table *table = chain->at[place];

    if (chain_link(hca, type, chain, chain_before(chain, place), chain_behind(chain, place),
                   table)) {
        return;
    }
    hv_flow_destroy_table(hca, type, table->id);
    g_free(table);
    chain->at[place] = NULL;
    chain->tables--;
}

/* -- rules ------------------------------------------------------------------------------------- */

static int chain_take_miss(struct hv_hca *hca, uint8_t type, struct hv_flow_table *chain)
{
    const struct hv_flow_shape shape = {.type = type, .level = PLACES};
    int err = chain->misses ? 0 : hv_flow_create_table(hca, &shape, NULL, &chain->miss_id);

    chain->misses += !err;
    return err;
}

static void chain_give_miss(struct hv_hca *hca, uint8_t type, struct hv_flow_table *chain)
{
    if (--chain->misses == 0) {
        hv_flow_destroy_table(hca, type, chain->miss_id);
    }
}

/* Gives back what the rule has of the chain, and the chain if nothing is left. */
static void chain_leave(struct hv_hca *hca, const struct hv_flow_rule *rule, bool has_miss)
{
    struct hv_flow_table *chain = hca->flow_tables[rule->table];
    unsigned place = chain_place(rule);

    if (chain->at[place] && !chain->at[place]->used) {
        chain_take_out(hca, rule->table, chain, place);
    }
    if (has_miss) {
        chain_give_miss(hca, rule->table, chain);
    }
    if (!chain->tables) {
        g_free(chain);
        hca->flow_tables[rule->table] = NULL;
    }
}

static int chain_add_entry(struct hv_hca *hca, struct hv_flow_table *chain, unsigned place,
                           struct hv_flow_entry *entry)
{
    struct chain_table *table = chain->at[place];
    uint32_t index = 0;
    int err;

    while (index < ENTRIES && table->entries[index]) {
        index++;
    }
    if (index == ENTRIES) {
        return ENOSPC;
    }
    entry->place =
        (struct hv_flow_place){.type = entry->rule.table, .table_id = table->id, .index = index};
    err = hv_flow_create_group(hca, &entry->place, &entry->rule);
    if (err) {
        return err;
    }
    err = chain_write(hca, chain, entry, chain_behind(chain, place), false);
    if (err) {
        hv_flow_destroy_group(hca, &entry->place);
        return err;
    }
    table->entries[index] = entry;
    table->used++;
    return 0;
}

int hv_flow_chain_add(struct hv_hca *hca, struct hv_flow_entry *entry)
{
    const struct hv_flow_rule *rule = &entry->rule;
    struct hv_flow_table *chain = hca->flow_tables[rule->table];
    unsigned place = chain_place(rule);
    bool has_miss = false;
    int err = 0;

    if (!chain) {
        chain = hca->flow_tables[rule->table] = g_new0(struct hv_flow_table, 1);
    }
    if (rule->misses) {
        err = chain_take_miss(hca, rule->table, chain);
        has_miss = !err;
    }
    if (!err && !chain->at[place]) {
        err = chain_insert(hca, rule->table, chain, place);
    }
    err = err ? err : chain_add_entry(hca, chain, place, entry);
    if (err) {
        chain_leave(hca, rule, has_miss);
    }
    return err;
}

int hv_flow_chain_remove(struct hv_hca *hca, struct hv_flow_entry *entry)
{
    struct chain_table *table = hca->flow_tables[entry->rule.table]->at[chain_place(&entry->rule)];
    int err = hv_flow_delete_entry(hca, &entry->place);

    if (!err) {
        hv_flow_destroy_group(hca, &entry->place);
        table->entries[entry->place.index] = NULL;
        table->used--;
        chain_leave(hca, &entry->rule, entry->rule.misses);
    }
    return err;
}

void hv_flow_chain_free(struct hv_hca *hca)
{
    for (size_t type = 0; type < G_N_ELEMENTS(hca->flow_tables); type++) {
        for (unsigned i = 0; hca->flow_tables[type] && i < PLACES; i++) {
            g_free(hca->flow_tables[type]->at[i]);
        }
        g_free(hca->flow_tables[type]);
    }
}
