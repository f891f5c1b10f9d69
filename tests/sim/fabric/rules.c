/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements rules.h with lists that are walked. */
#include "tests/sim/fabric/rules.h"
#include <glib.h>
#include <stdlib.h>
#include <string.h>

static bool rules_match(const struct rules_group *group, const struct rules_entry *entry,
                        const uint32_t field[RULES_FIELDS])
{
    for (unsigned i = 0; i < group->parts; i++) {
        if ((field[group->field[i]] & group->mask[i]) != entry->value[i]) {
            return false;
        }
    }
    return true;
}

static const struct rules_entry *rules_find(const struct rules_table *table,
                                            const uint32_t field[RULES_FIELDS])
{
    for (unsigned i = 0; i < RULES_ENTRIES; i++) {
        const struct rules_entry *entry = &table->entry[i];

        if (entry->exists && rules_match(&table->group[entry->group], entry, field)) {
            return entry;
        }
    }
    return NULL;
}

static void rules_visit(const struct rules_domain *domain, unsigned which,
                        const uint32_t field[RULES_FIELDS], struct rules_outcome *outcome)
{
    const struct rules_table *table = &domain->table[which];
    const struct rules_entry *entry = rules_find(table, field);

    if (!entry) {
        outcome->switched |= table->miss == RULES_MISS_SWITCH;
        if (table->miss == RULES_MISS_FORWARD) {
            rules_visit(domain, table->miss_to, field, outcome);
        }
        return;
    }
    for (unsigned i = 0; i < entry->counters; i++) {
        outcome->hits[entry->counter[i]]++;
    }
    outcome->dropped |= entry->drops;
    for (unsigned i = 0; i < entry->dests; i++) {
        if (entry->dest[i].is_table) {
            rules_visit(domain, entry->dest[i].which, field, outcome);
            continue;
        }
        g_assert_cmpuint(outcome->copies, <, RULES_COPIES);
        outcome->copy[outcome->copies].queue = entry->dest[i].which;
        outcome->copy[outcome->copies++].tag = entry->tag;
    }
}

void rules_apply(const struct rules_domain *domain, const uint32_t field[RULES_FIELDS],
                 struct rules_outcome *outcome)
{
    if (domain->tables) {
        rules_visit(domain, 0, field, outcome);
    }
}

static int rules_compare(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(((struct rules_outcome *)NULL)->copy[0]));
}

void rules_sort(struct rules_outcome *outcome)
{
    qsort(outcome->copy, outcome->copies, sizeof(outcome->copy[0]), rules_compare);
}

bool rules_same_copies(const struct rules_outcome *a, const struct rules_outcome *b)
{
    return a->copies == b->copies && !memcmp(a->copy, b->copy, a->copies * sizeof(a->copy[0]));
}

bool rules_has_twin(const struct rules_table *table, const struct rules_entry *entry)
{
    const struct rules_group *group = &table->group[entry->group];

    for (unsigned i = 0; i < RULES_ENTRIES; i++) {
        const struct rules_entry *other = &table->entry[i];

        if (other->exists && other->group == entry->group &&
            !memcmp(other->value, entry->value, group->parts * sizeof(entry->value[0]))) {
            return true;
        }
    }
    return false;
}
