/* SPDX-License-Identifier: BSD-2-Clause */
/* Does with a frame what an entry says: counts it, drops it, passes it on. */
#include "model/port/port.h"
#include "model/steering/walk.h"

/* Whether one more TIR gets a copy. If not, the lost copy is counted. */
static bool apply_may_deliver(struct walk *walk)
{
    if (walk->offered == STEERING_MAX_DELIVERIES) {
        walk->hca->vport->counters.rx_discards++;
        return false;
    }
    return port_may_copy(walk->hca, walk->offered++ == 0);
}

void steering_deliver(struct walk *walk, uint32_t tirn, uint32_t flow_tag)
{
    if (apply_may_deliver(walk)) {
        walk->delivered += steering_receivers.tir(walk->hca, tirn, walk->frame, walk->len,
                                                  walk->info, flow_tag, walk->from_td);
    }
}

void steering_apply(struct walk *walk, const struct flow_entry *entry)
{
    for (unsigned i = 0; i < entry->num_counters; i++) {
        struct flow_counter *counter = flow_counter_find(walk->hca, entry->counters[i]);

        if (counter) {
            counter->packets++;
            counter->bytes += walk->len;
        }
    }
    walk->dropped |= (entry->action & PRM_FLOW_ACTION_DROP) != 0;
    if (!(entry->action & PRM_FLOW_ACTION_FWD_DEST)) {
        return;
    }
    for (unsigned i = 0; i < entry->num_dests; i++) {
        if (entry->dests[i].type == PRM_FLOW_DESTINATION_TYPE_FLOW_TABLE) {
            steering_walk_table(walk, flow_table_find(walk->hca, entry->dests[i].id));
        } else {
            steering_deliver(walk, entry->dests[i].id, entry->flow_tag);
        }
    }
}
