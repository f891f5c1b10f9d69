/* SPDX-License-Identifier: BSD-2-Clause */
/* Does with a frame what an entry says: counts it, drops it, passes it on. */
#include "model/port/port.h"
#include "model/steering/change.h"

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
        walk->delivered +=
            steering_receivers.tir(walk->hca, tirn, walk->frame, walk->len, walk->info, flow_tag,
                                   walk->regs.b, walk->from_td);
    }
}

/* Passes the frame, as it is now, on to one destination. If it cannot be reformatted for it, this
 * copy is lost. A sent frame is then not sent. */
static void apply_dest(struct walk *walk, const struct flow_entry *entry,
                       const struct flow_dest *dest)
{
    if (G_UNLIKELY(dest->reformat) &&
        !steering_reformat(walk, packet_reformat_find(walk->hca, dest->reformat))) {
        walk->dropped = true;
        return;
    }
    if (dest->type == PRM_FLOW_DESTINATION_TYPE_FLOW_TABLE) {
        steering_walk_table(walk, flow_table_find(walk->hca, dest->id));
    } else {
        steering_deliver(walk, dest->id, entry->flow_tag);
    }
}

/* Each destination gets the frame as the entry leaves it. The last one may change it for good. */
static void apply_dests(struct walk *walk, const struct flow_entry *entry)
{
    struct change_kept kept;

    for (unsigned i = 0; i + 1 < entry->num_dests; i++) {
        steering_keep(walk, &kept);
        apply_dest(walk, entry, &entry->dests[i]);
        steering_go_back(walk, &kept);
    }
    apply_dest(walk, entry, &entry->dests[entry->num_dests - 1]);
}

void steering_apply(struct walk *walk, const struct flow_entry *entry)
{
    for (unsigned i = 0; i < entry->num_counters; i++) {
        struct flow_counter *counter = flow_counter_find(walk->hca, entry->counters[i]);

        if (counter && !walk->counted) {
            counter->packets++;
            counter->bytes += walk->len;
        }
    }
    walk->dropped |= (entry->action & PRM_FLOW_ACTION_DROP) != 0;
    if (G_UNLIKELY(entry->action & CHANGE_ACTIONS) && !steering_change(walk, entry)) {
        walk->dropped = true;
        return;
    }
    if (!(entry->action & PRM_FLOW_ACTION_FWD_DEST)) {
        return;
    }
    apply_dests(walk, entry);
}
