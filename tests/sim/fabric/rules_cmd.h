/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes the tables of rules.h in an HCA, by commands of its kernel. A function without a result
 * fails the simulation if the HCA refuses. */
#ifndef HCASIM_TESTS_RULES_CMD_H
#define HCASIM_TESTS_RULES_CMD_H

#include "tests/sim/fabric/rules.h"
#include "tests/sim/fabric/sim.h"

/* The HCA of a host, and the numbers that rules name. */
struct rules_hca {
    struct job *job;
    struct ibv_context *ctx;
    const uint32_t *tirn;             /* of each queue */
    uint32_t counter[RULES_COUNTERS]; /* numbers of the counters, one after the other */
};

/* Returns the bits that a field has. */
uint32_t rules_cmd_mask(enum rules_field field);

void rules_cmd_make_counters(struct rules_hca *hca);
void rules_cmd_free_counters(struct rules_hca *hca);
void rules_cmd_query_counter(struct rules_hca *hca, unsigned which, uint64_t *packets,
                             uint64_t *bytes);

/* Makes the domain's lists of rewrites in the HCA. */
void rules_cmd_make_rewrites(struct rules_hca *hca, struct rules_domain *domain);
void rules_cmd_free_rewrites(struct rules_hca *hca, const struct rules_domain *domain);

void rules_cmd_make_table(struct rules_hca *hca, const struct rules_domain *domain,
                          struct rules_table *table);
void rules_cmd_free_table(struct rules_hca *hca, const struct rules_domain *domain,
                          const struct rules_table *table);
/* Makes the front table the root. */
void rules_cmd_set_root(struct rules_hca *hca, const struct rules_domain *domain);
/* Tells the HCA the table's miss rule. */
void rules_cmd_set_miss(struct rules_hca *hca, const struct rules_domain *domain,
                        const struct rules_table *table);
void rules_cmd_make_group(struct rules_hca *hca, const struct rules_domain *domain,
                          const struct rules_table *table, struct rules_group *group);
void rules_cmd_free_group(struct rules_hca *hca, const struct rules_domain *domain,
                          const struct rules_table *table, const struct rules_group *group);
/* Returns whether the HCA takes the entry. is_new: it is added; otherwise it is changed: what it
 * does, not what it matches. */
bool rules_cmd_set_entry(struct rules_hca *hca, const struct rules_domain *domain,
                         const struct rules_table *table, unsigned index,
                         const struct rules_entry *entry, bool is_new);
void rules_cmd_delete_entry(struct rules_hca *hca, const struct rules_domain *domain,
                            const struct rules_table *table, unsigned index);

#endif
