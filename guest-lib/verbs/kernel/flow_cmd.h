/* SPDX-License-Identifier: BSD-2-Clause */
/* Commands for an HCA's flow tables, groups and entries (flow_cmd.c). Those that return a value
 * return 0 or errno. */
#ifndef HCASIM_GUEST_LIB_VERBS_KERNEL_FLOW_CMD_H
#define HCASIM_GUEST_LIB_VERBS_KERNEL_FLOW_CMD_H

#include "guest-lib/verbs/kernel/flow.h"

/* The place of an entry, which is alone in its group. */
struct hv_flow_place {
    uint8_t type; /* of the table: PRM_FLOW_TABLE_TYPE_ */
    uint32_t table_id, group_id, index;
};

struct hv_flow_shape {
    uint8_t type;      /* PRM_FLOW_TABLE_TYPE_ */
    uint8_t level;     /* entries lead to tables of higher levels */
    unsigned log_size; /* log2 of its entries */
};

/* Creates a table. Packets that no entry matches go on to table *next, or are treated as those for
 * which there is no table (next is NULL). */
int hv_flow_create_table(struct hv_hca *hca, const struct hv_flow_shape *shape,
                         const uint32_t *next, uint32_t *table_id);
int hv_flow_set_miss(struct hv_hca *hca, uint8_t type, uint32_t table_id, const uint32_t *next);
void hv_flow_destroy_table(struct hv_hca *hca, uint8_t type, uint32_t table_id);
/* Makes a table the root of its type, in place of another one; ends that. */
int hv_flow_set_root(struct hv_hca *hca, uint8_t type, uint32_t table_id);
int hv_flow_unset_root(struct hv_hca *hca, uint8_t type, uint32_t table_id);

/* Creates a group with only the index of place, and with the rule's mask; stores the group's number
 * in place. */
int hv_flow_create_group(struct hv_hca *hca, struct hv_flow_place *place,
                         const struct hv_flow_rule *rule);
int hv_flow_destroy_group(struct hv_hca *hca, const struct hv_flow_place *place);

/* Writes the entry: a rule, and its destinations, if it has any. change: the entry exists, and gets
 * these destinations. */
int hv_flow_set_entry(struct hv_hca *hca, const struct hv_flow_place *place,
                      const struct hv_flow_rule *rule, const struct hv_flow_dest *dests,
                      unsigned num, bool change);
int hv_flow_delete_entry(struct hv_hca *hca, const struct hv_flow_place *place);

#endif
