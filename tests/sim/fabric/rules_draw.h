/* SPDX-License-Identifier: BSD-2-Clause */
/* Random tables, groups and entries for rules.h. They make no loops, and at most RULES_COPIES
 * copies of a frame. */
#ifndef HCASIM_TESTS_RULES_DRAW_H
#define HCASIM_TESTS_RULES_DRAW_H

#include "tests/sim/fabric/rules.h"

/* What random rules may name. */
struct rules_terms {
    struct chance *chance;
    const uint8_t *dmac, *smac; /* of the frames */
    unsigned queues;            /* 0: the rules are those of sent frames */
    const uint32_t *sqn;        /* of sent frames: two send queues */
    bool is_roce;               /* the rules are those of RoCE frames: they change no frame, and a
                                   miss may lead to the rules for other frames */
};

/* Draws levels and misses of the tables, with no groups. */
void rules_draw_tables(struct rules_domain *domain, unsigned tables,
                       const struct rules_terms *terms);
void rules_draw_miss(struct rules_domain *domain, unsigned which, const struct rules_terms *terms);
/* Draws what a group matches. Its range must be set. */
void rules_draw_group(struct rules_group *group, const struct rules_terms *terms);
/* Draws an entry for a group: what it matches, and what it does. */
void rules_draw_entry(struct rules_entry *entry, const struct rules_domain *domain, unsigned which,
                      unsigned group, const struct rules_terms *terms);
void rules_draw_actions(struct rules_entry *entry, const struct rules_domain *domain,
                        unsigned which, const struct rules_terms *terms);

#endif
