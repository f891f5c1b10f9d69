/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements steer_rules.h. */
#include "tests/sim/fabric/steer_rules.h"
#include <inttypes.h>

#define LEAST 0
#define MOST  1

/* -- single changes ---------------------------------------------------------------------------- */

/* Adds a random entry, if there is a free index. */
static void steer_add(struct steer_rules *rules, struct rules_domain *domain, unsigned which,
                      const struct rules_terms *terms)
{
    struct rules_table *table = &domain->table[which];
    unsigned group = (unsigned)chance_below(terms->chance, RULES_GROUPS);
    struct rules_entry entry;
    unsigned index;

    if (!table->group[group].exists) {
        return;
    }
    index =
        (unsigned)chance_from(terms->chance, table->group[group].start, table->group[group].end);
    if (table->entry[index].exists) {
        return;
    }
    rules_draw_entry(&entry, domain, which, group, terms);
    sim_check(rules->hca.job, rules_cmd_set_entry(&rules->hca, domain, table, index, &entry, true),
              "the HCA refuses entry %u of table %u", index, which);
    entry.exists = true;
    entry.number = ++rules->entries;
    table->entry[index] = entry;
}

static void steer_change(struct steer_rules *rules, struct rules_domain *domain, unsigned which,
                         const struct rules_terms *terms)
{
    struct rules_table *table = &domain->table[which];
    unsigned index = (unsigned)chance_below(terms->chance, RULES_ENTRIES);
    struct rules_entry *entry = &table->entry[index];

    if (entry->exists) {
        rules_draw_actions(entry, domain, which, terms);
        sim_check(rules->hca.job,
                  rules_cmd_set_entry(&rules->hca, domain, table, index, entry, false),
                  "the HCA refuses to change entry %u of table %u", index, which);
    }
}

static void steer_remove(struct steer_rules *rules, struct rules_domain *domain, unsigned which,
                         unsigned index)
{
    struct rules_table *table = &domain->table[which];

    if (table->entry[index].exists) {
        table->entry[index].exists = false;
        rules_cmd_delete_entry(&rules->hca, domain, table, index);
    }
}

static void steer_change_miss(struct steer_rules *rules, struct rules_domain *domain,
                              unsigned which, const struct rules_terms *terms)
{
    rules_draw_miss(domain, which, terms);
    rules_cmd_set_miss(&rules->hca, domain, &domain->table[which]);
}

/* Replaces a group that has no entries by one that matches other fields. */
static void steer_replace_group(struct steer_rules *rules, struct rules_domain *domain,
                                unsigned which, const struct rules_terms *terms)
{
    struct rules_table *table = &domain->table[which];
    unsigned nth = (unsigned)chance_below(terms->chance, RULES_GROUPS);
    struct rules_group *group = &table->group[nth];

    for (unsigned i = group->start; i <= group->end; i++) {
        if (table->entry[i].exists) {
            return;
        }
    }
    if (group->exists) {
        rules_cmd_free_group(&rules->hca, domain, table, group);
    }
    rules_draw_group(group, terms);
    rules_cmd_make_group(&rules->hca, domain, table, group);
    group->exists = true;
}

void steer_rules_change(struct steer_rules *rules, struct rules_domain *domain,
                        const struct rules_terms *terms)
{
    unsigned which = (unsigned)chance_below(terms->chance, domain->tables);

    switch (chance_below(terms->chance, 8)) {
    case 0:
        steer_remove(rules, domain, which, (unsigned)chance_below(terms->chance, RULES_ENTRIES));
        break;
    case 1:
        steer_change_miss(rules, domain, which, terms);
        break;
    case 2:
        steer_replace_group(rules, domain, which, terms);
        break;
    case 3:
    case 4:
    case 5:
        steer_change(rules, domain, which, terms);
        break;
    default:
        steer_add(rules, domain, which, terms);
        break;
    }
}

/* -- whole domains ----------------------------------------------------------------------------- */

/* The ranges of a table's groups cover its indices, so that groups can be in any order of time. */
static void steer_set_ranges(struct rules_table *table, const struct rules_terms *terms)
{
    unsigned first = (unsigned)chance_from(terms->chance, 1, RULES_ENTRIES - 2);
    unsigned second = (unsigned)chance_from(terms->chance, first + 1, RULES_ENTRIES - 1);

    table->group[0].end = first - 1;
    table->group[1].start = first;
    table->group[1].end = second - 1;
    table->group[2].start = second;
    table->group[2].end = RULES_ENTRIES - 1;
}

/* The root, whose only entry matches the receiver's address. */
static void steer_make_front(struct steer_rules *rules, struct rules_domain *domain,
                             const struct rules_terms *terms)
{
    const uint8_t *mac = terms->dmac;
    struct rules_table *front = &domain->front;
    struct rules_entry *entry = &front->entry[0];

    front->group[0] = (struct rules_group){.parts = 2,
                                           .field = {RULES_OUTER_DMAC_HIGH, RULES_OUTER_DMAC_LOW},
                                           .mask = {0xffffffff, 0xffff}};
    *entry = (struct rules_entry){.dests = 1, .dest = {{.is_table = true}}};
    entry->value[0] =
        (uint32_t)mac[0] << 24 | (uint32_t)mac[1] << 16 | (uint32_t)mac[2] << 8 | mac[3];
    entry->value[1] = (uint32_t)mac[4] << 8 | mac[5];
    rules_cmd_make_table(&rules->hca, domain, front);
    rules_cmd_make_group(&rules->hca, domain, front, &front->group[0]);
    sim_check(rules->hca.job, rules_cmd_set_entry(&rules->hca, domain, front, 0, entry, true),
              "the HCA refuses the entry of the root");
    rules_cmd_set_root(&rules->hca, domain);
}

static void steer_free_front(struct steer_rules *rules, struct rules_domain *domain)
{
    rules_cmd_delete_entry(&rules->hca, domain, &domain->front, 0);
    rules_cmd_free_group(&rules->hca, domain, &domain->front, &domain->front.group[0]);
    rules_cmd_free_table(&rules->hca, domain, &domain->front);
}

void steer_rules_make(struct steer_rules *rules, struct rules_domain *domain, unsigned tables,
                      const struct rules_terms *terms)
{
    rules_draw_tables(domain, tables, terms);
    if (!terms->is_roce) {
        rules_cmd_make_rewrites(&rules->hca, domain);
    }
    for (unsigned i = tables; i--;) { /* a miss leads to a table that exists */
        steer_set_ranges(&domain->table[i], terms);
        rules_cmd_make_table(&rules->hca, domain, &domain->table[i]);
    }
    for (unsigned i = 0; i < tables; i++) {
        for (unsigned j = 0; j < 2 * RULES_GROUPS; j++) {
            steer_replace_group(rules, domain, i, terms);
        }
        for (unsigned j = 0; j < RULES_ENTRIES; j++) {
            steer_add(rules, domain, i, terms);
        }
    }
    steer_make_front(rules, domain, terms);
}

void steer_rules_free(struct steer_rules *rules, struct rules_domain *domain)
{
    if (domain->tables) {
        steer_free_front(rules, domain);
    }
    for (unsigned i = 0; i < domain->tables; i++) {
        for (unsigned j = 0; j < RULES_ENTRIES; j++) {
            steer_remove(rules, domain, i, j);
        }
        for (unsigned j = 0; j < RULES_GROUPS; j++) {
            if (domain->table[i].group[j].exists) {
                rules_cmd_free_group(&rules->hca, domain, &domain->table[i],
                                     &domain->table[i].group[j]);
            }
        }
        rules_cmd_free_table(&rules->hca, domain, &domain->table[i]);
    }
    if (domain->rewrite_id[1]) {
        rules_cmd_free_rewrites(&rules->hca, domain);
    }
}

/* -- counters ---------------------------------------------------------------------------------- */

void steer_rules_count(struct steer_rules *rules, const struct rules_hits least[RULES_COUNTERS],
                       const struct rules_hits most[RULES_COUNTERS])
{
    for (unsigned i = 0; i < RULES_COUNTERS; i++) {
        struct steer_counter *counter = &rules->counter[i];

        counter->packets[LEAST] += least[i].packets;
        counter->packets[MOST] += most[i].packets;
        counter->bytes[LEAST] += least[i].bytes;
        counter->bytes[MOST] += most[i].bytes;
    }
}

void steer_rules_check(struct steer_rules *rules)
{
    for (unsigned i = 0; i < RULES_COUNTERS; i++) {
        struct steer_counter *counter = &rules->counter[i];
        uint64_t packets, bytes;

        rules_cmd_query_counter(&rules->hca, i, &packets, &bytes);
        sim_check(rules->hca.job,
                  packets >= counter->packets[LEAST] && packets <= counter->packets[MOST] &&
                      bytes >= counter->bytes[LEAST] && bytes <= counter->bytes[MOST],
                  "counter %u shows %" PRIu64 " packets and %" PRIu64 " bytes, not %" PRIu64
                  " to %" PRIu64 " packets and %" PRIu64 " to %" PRIu64 " bytes",
                  i, packets, bytes, counter->packets[LEAST], counter->packets[MOST],
                  counter->bytes[LEAST], counter->bytes[MOST]);
        *counter = (struct steer_counter){{packets, packets}, {bytes, bytes}};
    }
}
