/* SPDX-License-Identifier: BSD-2-Clause */
/* The rules of a host that change while frames arrive: each change is made in the reference
 * (rules.h) and in the HCA (rules_cmd.h). */
#ifndef HCASIM_TESTS_STEER_RULES_H
#define HCASIM_TESTS_STEER_RULES_H

#include "tests/sim/fabric/rules_cmd.h"
#include "tests/sim/fabric/rules_draw.h"

/* What a counter of the HCA must show: between these values, if frames that were on their way while
 * the rules changed may have been counted or not. */
struct steer_counter {
    uint64_t packets[2], bytes[2];
};

struct steer_rules {
    struct rules_hca hca;
    uint64_t entries; /* that were ever added */
    struct steer_counter counter[RULES_COUNTERS];
};

/* Makes random tables with groups and entries in a domain, and its root. */
void steer_rules_make(struct steer_rules *rules, struct rules_domain *domain, unsigned tables,
                      const struct rules_terms *terms);
void steer_rules_free(struct steer_rules *rules, struct rules_domain *domain);
/* Makes a random change. */
void steer_rules_change(struct steer_rules *rules, struct rules_domain *domain,
                        const struct rules_terms *terms);
/* Adds what a frame must have counted: at least and at most. */
void steer_rules_count(struct steer_rules *rules, const struct rules_hits least[RULES_COUNTERS],
                       const struct rules_hits most[RULES_COUNTERS]);
/* Checks all counters. No frame is on its way. */
void steer_rules_check(struct steer_rules *rules);

#endif
