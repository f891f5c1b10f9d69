/* SPDX-License-Identifier: BSD-2-Clause */
/* Walks a frame through the flow tables. Allocates nothing. */
#include "model/port/port.h"
#include "model/steering/change.h"
#include "model/steering/trace_flow.h"

/* Tables and groups whose visits together cost the same as one call of the host. */
#define STEPS_A_PIECE 8

static const struct flow_entry *walk_lookup(struct walk *walk, const struct flow_table *table)
{
    struct flow_key *masked = (struct flow_key *)walk->masked;

    for (unsigned i = 0; i < table->groups->len && walk->steps < STEERING_MAX_STEPS; i++) {
        const struct flow_group *group = g_ptr_array_index(table->groups, i);
        uint8_t missing = group->mask.sections & (uint8_t)~walk->filled;
        const struct flow_entry *entry;

        walk->steps++;
        if (missing) {
            steering_fill_key(walk, missing);
        }
        flow_key_take(masked, walk->key, &group->mask);
        entry = g_hash_table_lookup(group->by_key, masked);
        if (entry) {
            return entry;
        }
    }
    return NULL;
}

/* No entry of the table matches. Returns the table that follows, or NULL. */
static struct flow_table *walk_miss(struct walk *walk, const struct flow_table *table)
{
    struct flow_table *next = table->miss_action == PRM_FLOW_TABLE_MISS_ACTION_FWD
                                  ? flow_table_find(walk->hca, table->miss_id)
                                  : NULL;

    walk->switched |= table->miss_action == PRM_FLOW_TABLE_MISS_ACTION_SWITCH_DOMAIN;
    if (G_UNLIKELY(walk->hca->tracing)) {
        steering_trace_miss(walk, table, next);
    }
    return next;
}

void steering_walk_table(struct walk *walk, struct flow_table *table)
{
    while (table && walk->steps++ < STEERING_MAX_STEPS) {
        const struct flow_entry *entry;

        if (G_UNLIKELY(table->sw_owner)) {
            steering_walk_software(walk, table);
            return;
        }
        entry = walk_lookup(walk, table);
        if (entry) {
            if (G_UNLIKELY(walk->hca->tracing)) {
                steering_trace_entry(walk, table, entry);
            }
            steering_apply(walk, entry);
            return;
        }
        table = walk_miss(walk, table);
    }
}

/* Begins a walk. The frame's key and tunnel are large, and are filled in only when they are
 * needed. */
static void walk_begin(struct walk *walk, struct hca *hca, const uint8_t *frame, size_t len,
                       const struct eth_info *info, uint32_t from_td)
{
    walk->hca = hca;
    walk->frame = frame;
    walk->len = len;
    walk->info = info;
    walk->from_td = from_td;
    walk->sqn = 0;
    walk->regs = (struct flow_regs){0};
    walk->writable = false;
    walk->changes = 0;
    walk->headroom = 0;
    walk->counted = false;
    walk->offered = walk->delivered = walk->steps = walk->nesting = 0;
    walk->dropped = walk->switched = false;
    steering_changed(walk);
}

/* Walks a domain, unless it has no root. */
static void walk_domain(struct walk *walk, enum steering_domain domain)
{
    struct flow_table *root = walk->hca->steering->roots[domain];

    if (root) {
        steering_walk_table(walk, root);
        if (G_UNLIKELY(walk->changes)) {
            steering_end_changes(walk);
        }
        hca_spend(walk->hca, walk->steps / STEPS_A_PIECE);
    }
}

unsigned steering_rx(struct hca *hca, const uint8_t *frame, size_t len, const struct eth_info *info,
                     uint32_t from_td)
{
    struct walk walk;

    walk_begin(&walk, hca, frame, len, info, from_td);
    walk_domain(&walk, STEERING_NIC_RX);
    return walk.delivered;
}

bool steering_rx_rdma(struct hca *hca, const uint8_t *frame, size_t len,
                      const struct eth_info *info)
{
    struct walk walk;

    walk_begin(&walk, hca, frame, len, info, PORT_NO_TD);
    walk_domain(&walk, STEERING_RDMA_RX);
    if (walk.switched && !walk.dropped) {
        hca->vport->counters.rx_no_steering += steering_rx(hca, frame, len, info, PORT_NO_TD) == 0;
    }
    return !walk.dropped && !walk.offered && !walk.switched;
}

bool steering_tx(struct hca *hca, const struct steering_sent *sent, const uint8_t **frame,
                 size_t *len)
{
    struct eth_info info;
    struct walk walk;

    if (!eth_parse(*frame, *len, &info)) {
        return true;
    }
    walk_begin(&walk, hca, *frame, *len, &info, PORT_NO_TD);
    walk.counted = sent->counted;
    walk.sqn = sent->sqn;
    walk.regs.a = sent->metadata;
    walk_domain(&walk, STEERING_NIC_TX);
    *frame = walk.frame;
    *len = walk.len;
    return !walk.dropped;
}

bool steering_tx_rdma(struct hca *hca, const uint8_t *frame, size_t len)
{
    struct eth_info info;
    struct walk walk;

    if (!eth_parse(frame, len, &info)) {
        return true;
    }
    walk_begin(&walk, hca, frame, len, &info, PORT_NO_TD);
    walk_domain(&walk, STEERING_RDMA_TX);
    return !walk.dropped;
}

static void walk_copy(struct hca *hca, enum steering_domain domain, const uint8_t *frame,
                      size_t len, const struct eth_info *info)
{
    struct walk walk;

    walk_begin(&walk, hca, frame, len, info, PORT_NO_TD);
    walk.offered = 1; /* the frame's own receiver counts as the first */
    walk_domain(&walk, domain);
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
