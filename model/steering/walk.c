/* SPDX-License-Identifier: BSD-2-Clause */
/* Walks a frame through the flow tables. Allocates nothing. */
#include "model/port/port.h"
#include "model/steering/walk.h"

/* Tables and groups whose visits together cost the same as one call of the host. */
#define STEPS_A_PIECE 8

static const struct flow_entry *walk_lookup(struct walk *walk, const struct flow_table *table)
{
    for (unsigned i = 0; i < table->groups->len && walk->steps < STEERING_MAX_STEPS; i++) {
        const struct flow_group *group = g_ptr_array_index(table->groups, i);
        const struct flow_entry *entry;
        struct flow_key masked;

        walk->steps++;
        flow_key_mask(&masked, &walk->key, &group->mask);
        entry = g_hash_table_lookup(group->by_key, &masked);
        if (entry) {
            return entry;
        }
    }
    return NULL;
}

void steering_walk_table(struct walk *walk, struct flow_table *table)
{
    while (table && walk->steps++ < STEERING_MAX_STEPS) {
        const struct flow_entry *entry = walk_lookup(walk, table);

        if (!entry) {
            walk->switched |= table->miss_action == PRM_FLOW_TABLE_MISS_ACTION_SWITCH_DOMAIN;
            table = table->miss_action == PRM_FLOW_TABLE_MISS_ACTION_FWD
                        ? flow_table_find(walk->hca, table->miss_id)
                        : NULL;
            continue;
        }
        steering_apply(walk, entry);
        return;
    }
}

/* Walks a domain, unless it has no root. */
static void steering_walk_domain(struct walk *walk, enum steering_domain domain)
{
    struct flow_table *root = walk->hca->steering->roots[domain];

    if (root) {
        flow_key_from_frame(&walk->key, walk->frame, walk->info);
        steering_walk_table(walk, root);
        hca_spend(walk->hca, walk->steps / STEPS_A_PIECE);
    }
}

static struct walk steering_walk_of(struct hca *hca, const uint8_t *frame, size_t len,
                                    const struct eth_info *info, uint32_t from_td)
{
    return (struct walk){.hca = hca, .frame = frame, .len = len, .info = info, .from_td = from_td};
}

unsigned steering_rx(struct hca *hca, const uint8_t *frame, size_t len, const struct eth_info *info,
                     uint32_t from_td)
{
    struct walk walk = steering_walk_of(hca, frame, len, info, from_td);

    steering_walk_domain(&walk, STEERING_NIC_RX);
    return walk.delivered;
}

bool steering_rx_rdma(struct hca *hca, const uint8_t *frame, size_t len,
                      const struct eth_info *info)
{
    struct walk walk = steering_walk_of(hca, frame, len, info, PORT_NO_TD);

    steering_walk_domain(&walk, STEERING_RDMA_RX);
    if (walk.switched && !walk.dropped) {
        hca->vport->counters.rx_no_steering += steering_rx(hca, frame, len, info, PORT_NO_TD) == 0;
    }
    return !walk.dropped && !walk.offered && !walk.switched;
}

static void walk_copy(struct hca *hca, enum steering_domain domain, const uint8_t *frame,
                      size_t len, const struct eth_info *info)
{
    struct walk walk = steering_walk_of(hca, frame, len, info, PORT_NO_TD);

    walk.offered = 1; /* the frame's own receiver counts as the first */
    steering_walk_domain(&walk, domain);
}

void steering_sniff(struct hca *hca, const uint8_t *frame, size_t len, const struct eth_info *info)
{
    walk_copy(hca, STEERING_SNIFFER_RX, frame, len, info);
}

void steering_sniff_tx(struct hca *hca, const uint8_t *frame, size_t len,
                       const struct eth_info *info)
{
    walk_copy(hca, STEERING_SNIFFER_TX, frame, len, info);
}
