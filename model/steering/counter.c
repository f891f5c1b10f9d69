/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements flow counters. */
#include "model/core/pd.h"
#include "model/steering/tables.h"

enum syn flow_counter_alloc(struct hca *hca, uint16_t uid, uint32_t *id)
{
    struct flow_counter *counter = obj_make(hca, OBJ_FLOW_COUNTER, uid, sizeof(*counter));

    if (!counter) {
        return SYN_NO_MEMORY;
    }
    *id = counter->obj.num;
    return SYN_OK;
}

struct flow_counter *flow_counter_find(struct hca *hca, uint32_t id)
{
    return obj_find_kind(&hca->flow_counters, id, OBJ_FLOW_COUNTER);
}

enum syn flow_counter_dealloc(struct hca *hca, uint16_t uid, uint32_t id)
{
    return obj_dealloc(hca, &hca->flow_counters, uid, id, SYN_FC_NOT_FOUND);
}
