/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements rules.h with lists that are walked. */
#include "tests/sim/fabric/rules.h"
#include <glib.h>
#include <stdlib.h>
#include <string.h>

static bool rules_match(const struct rules_group *group, const struct rules_entry *entry,
                        const struct rules_state *state)
{
    for (unsigned i = 0; i < group->parts; i++) {
        if ((rules_state_field(state, group->field[i]) & group->mask[i]) != entry->value[i]) {
            return false;
        }
    }
    return true;
}

static const struct rules_entry *rules_find(const struct rules_table *table,
                                            const struct rules_state *state)
{
    const struct rules_entry *found = NULL;

    for (unsigned i = 0; i < RULES_ENTRIES; i++) {
        const struct rules_entry *entry = &table->entry[i];
        bool is_better = !found || (entry->group == found->group && entry->number < found->number);

        if (entry->exists && is_better && rules_match(&table->group[entry->group], entry, state)) {
            found = entry;
        }
    }
    return found;
}

static void rules_deliver(const struct rules_state *state, unsigned queue, uint32_t tag,
                          struct rules_outcome *outcome)
{
    uint8_t bytes[RULES_FRAME_MOST];
    uint32_t len = rules_state_write(state, bytes);

    g_assert_cmpuint(outcome->copies, <, RULES_COPIES);
    outcome->copy[outcome->copies].queue = queue;
    outcome->copy[outcome->copies].tag = tag;
    outcome->copy[outcome->copies].len = len;
    outcome->copy[outcome->copies++].print = rules_state_print(bytes, len);
}

static void rules_visit(const struct rules_domain *domain, unsigned which,
                        struct rules_state *state, struct rules_outcome *outcome)
{
    const struct rules_table *table = &domain->table[which];
    const struct rules_entry *entry = rules_find(table, state);

    if (!entry) {
        outcome->switched |= table->miss == RULES_MISS_SWITCH;
        if (table->miss == RULES_MISS_FORWARD) {
            rules_visit(domain, table->miss_to, state, outcome);
        }
        return;
    }
    for (unsigned i = 0; i < entry->counters; i++) {
        outcome->hits[entry->counter[i]].packets++;
        outcome->hits[entry->counter[i]].bytes += rules_state_len(state);
    }
    outcome->dropped |= entry->drops;
    rules_state_change(state, &entry->change, domain->rewrite);
    for (unsigned i = 0; i < entry->dests; i++) {
        struct rules_state copy = *state;
        bool is_last = i + 1 == entry->dests;

        if (entry->dest[i].is_table) {
            rules_visit(domain, entry->dest[i].which, is_last ? state : &copy, outcome);
        } else {
            rules_deliver(state, entry->dest[i].which, entry->tag, outcome);
        }
    }
}

void rules_apply(const struct rules_domain *domain, struct rules_state *state,
                 struct rules_outcome *outcome)
{
    state->reg = 0; /* a register is new in each domain */
    if (domain->tables) {
        rules_visit(domain, 0, state, outcome);
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
