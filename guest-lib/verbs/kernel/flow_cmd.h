/* SPDX-License-Identifier: BSD-2-Clause */
/* Commands about flow tables of an HCA, groups and entries (flow_cmd.c). Each returns 0 or errno.
 */
#ifndef HCASIM_GUEST_LIB_VERBS_KERNEL_FLOW_CMD_H
#define HCASIM_GUEST_LIB_VERBS_KERNEL_FLOW_CMD_H

#include "guest-lib/verbs/kernel/flow.h"

/* Where an entry is, alone in its group. */
struct hv_flow_place {
    uint8_t type; /* of the table: PRM_FLOW_TABLE_TYPE_ */
    uint32_t table_id, group_id, index;
};

/* The root of its type from now on. */
int hv_flow_create_table(struct hv_hca *hca, uint8_t type, unsigned log_size, uint32_t *table_id);
void hv_flow_destroy_table(struct hv_hca *hca, uint8_t type, uint32_t table_id);

/* The group of place's index alone, by the rule's mask: writes its number there. */
int hv_flow_create_group(struct hv_hca *hca, struct hv_flow_place *place,
                         const struct hv_flow_rule *rule);
int hv_flow_destroy_group(struct hv_hca *hca, const struct hv_flow_place *place);

/* The entry: a rule, and the TIRs that what it matches goes to, unless it is dropped. change: it is
 * there, and gets these TIRs. */
int hv_flow_set_entry(struct hv_hca *hca, const struct hv_flow_place *place,
                      const struct hv_flow_rule *rule, const uint32_t *tirns, unsigned num_tirns,
                      bool change);
int hv_flow_delete_entry(struct hv_hca *hca, const struct hv_flow_place *place);

#endif
