/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements rules_draw.h. Rules are made from frames like those that will be sent, so they often
 * match. */
#include "tests/sim/fabric/rules_draw.h"
#include <glib.h>
#include <string.h>
#include "tests/sim/fabric/rules_cmd.h"

/* One of the values that rewrites write. */
static uint32_t rules_draw_reg(const struct rules_terms *terms)
{
    return 0x1000 + (uint32_t)chance_below(terms->chance, 3);
}

static void rules_draw_sample(struct rules_frame *frame, const struct rules_terms *terms)
{
    rules_frame_draw(frame, terms->chance, terms->dmac, terms->smac, true, 0);
    if (!terms->queues) {
        frame->field[RULES_SOURCE_SQ] = terms->sqn[chance_below(terms->chance, 2)];
    }
    if (chance_one_in(terms->chance, 3)) {
        frame->field[RULES_REG_C0] = rules_draw_reg(terms);
    }
}

/* -- tables ------------------------------------------------------------------------------------ */

/* A table leads only to tables behind it, and a miss only to a table with a higher level. */
void rules_draw_miss(struct rules_domain *domain, unsigned which, const struct rules_terms *terms)
{
    struct rules_table *table = &domain->table[which];
    unsigned to = (unsigned)chance_below(terms->chance, domain->tables);

    table->miss = RULES_MISS_ENDS;
    if (to > which && domain->table[to].level > table->level) {
        table->miss = RULES_MISS_FORWARD;
        table->miss_to = to;
    } else if (terms->is_roce && chance_one_in(terms->chance, 2)) {
        table->miss = RULES_MISS_SWITCH;
    }
}

void rules_draw_tables(struct rules_domain *domain, unsigned tables,
                       const struct rules_terms *terms)
{
    for (unsigned i = 1; i < RULES_REWRITES; i++) {
        struct rules_rewrite *rewrite = &domain->rewrite[i];

        rewrite->smac = chance_one_in(terms->chance, 2);
        rewrite->reg = !rewrite->smac || chance_one_in(terms->chance, 2);
        rewrite->smac_low = (uint16_t)(0x2000 + chance_below(terms->chance, 3));
        rewrite->reg_value = rules_draw_reg(terms);
    }
    domain->tables = tables;
    domain->table[0].level = 1; /* behind the root */
    for (unsigned i = 1; i < tables; i++) {
        domain->table[i].level =
            domain->table[i - 1].level + (unsigned)chance_below(terms->chance, 3);
    }
    for (unsigned i = 0; i < tables; i++) {
        rules_draw_miss(domain, i, terms);
    }
}

/* -- groups ------------------------------------------------------------------------------------ */

static enum rules_field rules_draw_field(const struct rules_frame *sample,
                                         const struct rules_terms *terms)
{
    unsigned fields = terms->is_roce  ? RULES_REG_C0
                      : terms->queues ? RULES_SOURCE_SQ
                                      : RULES_FIELDS;
    unsigned field;
    bool any = chance_one_in(terms->chance, 6);

    do {
        field = (unsigned)chance_below(terms->chance, fields);
    } while (!any && !sample->field[field]);
    return field;
}

static bool rules_group_has(const struct rules_group *group, enum rules_field field)
{
    for (unsigned i = 0; i < group->parts; i++) {
        if (group->field[i] == field) {
            return true;
        }
    }
    return false;
}

void rules_draw_group(struct rules_group *group, const struct rules_terms *terms)
{
    unsigned parts = (unsigned)chance_below(terms->chance, RULES_PARTS + 1);
    struct rules_frame sample;

    rules_draw_sample(&sample, terms);
    group->parts = 0;
    for (unsigned i = 0; i < parts; i++) {
        enum rules_field field = rules_draw_field(&sample, terms);
        uint32_t mask = rules_cmd_mask(field);

        if (chance_one_in(terms->chance, 3)) {
            mask &= (uint32_t)chance_next(terms->chance);
        }
        if (mask && !rules_group_has(group, field)) {
            group->field[group->parts] = field;
            group->mask[group->parts++] = mask;
        }
    }
}

/* -- entries ----------------------------------------------------------------------------------- */

/* Adds a destination that the entry does not have. */
static void rules_add_dest(struct rules_entry *entry, struct rules_dest dest)
{
    for (unsigned i = 0; i < entry->dests; i++) {
        if (entry->dest[i].is_table == dest.is_table && entry->dest[i].which == dest.which) {
            return;
        }
    }
    entry->dest[entry->dests++] = dest;
}

/* The root leads to two tables at most, another table to one. */
static void rules_draw_dests(struct rules_entry *entry, const struct rules_domain *domain,
                             unsigned which, const struct rules_terms *terms)
{
    unsigned dests = (unsigned)chance_from(terms->chance, terms->queues ? 1 : 0, RULES_DESTS);
    unsigned tables = which ? 1 : 2, behind = domain->tables - which - 1;

    for (unsigned i = 0; i < dests; i++) {
        if (tables && behind && chance_one_in(terms->chance, 2)) {
            tables--;
            rules_add_dest(entry,
                           (struct rules_dest){
                               .is_table = true,
                               .which = which + 1 + (unsigned)chance_below(terms->chance, behind)});
        } else if (terms->queues) {
            rules_add_dest(entry, (struct rules_dest){.which = (unsigned)chance_below(
                                                          terms->chance, terms->queues)});
        }
    }
}

/* Tags are removed from received frames, and added to sent ones. */
static void rules_draw_change(struct rules_change *change, const struct rules_terms *terms)
{
    unsigned tags = (unsigned)chance_below(terms->chance, 3);

    *change = (struct rules_change){
        .pops = terms->queues ? tags : 0,
        .pushes = terms->queues ? 0 : tags,
        .rewrite = (unsigned)chance_below(terms->chance, RULES_REWRITES),
    };
    for (unsigned i = 0; i < 2; i++) {
        change->tag[i].tpid = chance_one_in(terms->chance, 2) ? 0x8100 : 0x88a8;
        change->tag[i].tci = (uint16_t)chance_next(terms->chance);
    }
}

void rules_draw_actions(struct rules_entry *entry, const struct rules_domain *domain,
                        unsigned which, const struct rules_terms *terms)
{
    unsigned counter = (unsigned)chance_below(terms->chance, RULES_COUNTERS);

    entry->drops = chance_one_in(terms->chance, 6);
    entry->tag =
        chance_one_in(terms->chance, 4) ? 0 : (uint32_t)chance_below(terms->chance, 1 << 24);
    entry->dests = 0;
    entry->change = (struct rules_change){0};
    if (!entry->drops && !terms->is_roce && chance_one_in(terms->chance, 3)) {
        rules_draw_change(&entry->change, terms);
    }
    if (!entry->drops) {
        rules_draw_dests(entry, domain, which, terms);
    }
    entry->counters = (unsigned)chance_below(terms->chance, 3);
    entry->counter[0] = counter;
    entry->counter[1] =
        (counter + (unsigned)chance_from(terms->chance, 1, RULES_COUNTERS - 1)) % RULES_COUNTERS;
}

void rules_draw_entry(struct rules_entry *entry, const struct rules_domain *domain, unsigned which,
                      unsigned group, const struct rules_terms *terms)
{
    const struct rules_group *of = &domain->table[which].group[group];
    struct rules_frame sample;

    memset(entry, 0, sizeof(*entry));
    rules_draw_sample(&sample, terms);
    entry->group = group;
    for (unsigned i = 0; i < of->parts; i++) {
        entry->value[i] = sample.field[of->field[i]] & of->mask[i];
    }
    rules_draw_actions(entry, domain, which, terms);
}
