/* SPDX-License-Identifier: BSD-2-Clause */
/* Walks a received frame through the flow tables. Allocates nothing. */
#include <string.h>
#include "model/eth/eth.h"
#include "model/eth/steering_priv.h"
#include "model/port/port.h"

/* Tables and groups whose visits together cost the same as one call of the host. */
#define STEPS_A_PIECE 8

struct walk {
    struct hca *hca;
    const uint8_t *frame;
    size_t len;
    const struct eth_info *info;
    uint32_t from_td;
    struct flow_key key;
    unsigned offered, delivered; /* copies offered to TIRs; copies that they took */
    unsigned steps;
    bool dropped;  /* by the action of an entry */
    bool switched; /* to the other domain, by the miss action of a table */
};

/* Fills the frame's outer headers into the layout that entries use. */
static void steering_key_from_frame(struct flow_key *out, const uint8_t *frame,
                                    const struct eth_info *info)
{
    struct prm_fte_match_set_lyr_2_4 *key = (void *)out->word;

    memset(out, 0, sizeof(*out));
    PRM_SET(fte_match_set_lyr_2_4, key, dmac_47_16, prm_load32(frame));
    PRM_SET(fte_match_set_lyr_2_4, key, dmac_15_0, prm_load16(frame + 4));
    PRM_SET(fte_match_set_lyr_2_4, key, smac_47_16, prm_load32(frame + 6));
    PRM_SET(fte_match_set_lyr_2_4, key, smac_15_0, prm_load16(frame + 10));
    PRM_SET(fte_match_set_lyr_2_4, key, ethertype, info->ethertype);
    if (info->vlan_count) {
        PRM_SET(fte_match_set_lyr_2_4, key, first_prio, info->vlan_tci[0] >> 13);
        PRM_SET(fte_match_set_lyr_2_4, key, first_cfi, info->vlan_tci[0] >> 12 & 1);
        PRM_SET(fte_match_set_lyr_2_4, key, first_vid, info->vlan_tci[0] & 0xfff);
        PRM_SET(fte_match_set_lyr_2_4, key, cvlan_tag, info->vlan_tpid[0] == ETH_TYPE_VLAN);
        PRM_SET(fte_match_set_lyr_2_4, key, svlan_tag, info->vlan_tpid[0] == ETH_TYPE_QINQ);
    }
    if (!info->ip_version) {
        return;
    }
    PRM_SET(fte_match_set_lyr_2_4, key, ip_version, info->ip_version);
    PRM_SET(fte_match_set_lyr_2_4, key, ip_protocol, info->proto);
    PRM_SET(fte_match_set_lyr_2_4, key, ip_dscp, info->tos >> 2);
    PRM_SET(fte_match_set_lyr_2_4, key, ip_ecn, info->tos & 3);
    PRM_SET(fte_match_set_lyr_2_4, key, frag, info->fragment);
    PRM_SET(fte_match_set_lyr_2_4, key, ttl_hoplimit, info->ttl);
    if (info->ip_version == 4) {
        memcpy(PRM_PTR(fte_match_set_lyr_2_4, key, src_ipv4_src_ipv6) + 12,
               frame + info->l3_off + 12, 4);
        memcpy(PRM_PTR(fte_match_set_lyr_2_4, key, dst_ipv4_dst_ipv6) + 12,
               frame + info->l3_off + 16, 4);
    } else {
        memcpy(PRM_PTR(fte_match_set_lyr_2_4, key, src_ipv4_src_ipv6), frame + info->l3_off + 8,
               16);
        memcpy(PRM_PTR(fte_match_set_lyr_2_4, key, dst_ipv4_dst_ipv6), frame + info->l3_off + 24,
               16);
    }
    if (info->l4 == ETH_L4_TCP) {
        PRM_SET(fte_match_set_lyr_2_4, key, tcp_sport, info->sport);
        PRM_SET(fte_match_set_lyr_2_4, key, tcp_dport, info->dport);
        PRM_SET(fte_match_set_lyr_2_4, key, tcp_flags, info->tcp_flags);
    } else if (info->l4 == ETH_L4_UDP) {
        PRM_SET(fte_match_set_lyr_2_4, key, udp_sport, info->sport);
        PRM_SET(fte_match_set_lyr_2_4, key, udp_dport, info->dport);
    }
}

static const struct flow_entry *steering_lookup(struct walk *walk, const struct flow_table *table)
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

/* Whether one more TIR gets a copy. If not, the lost copy is counted. */
static bool steering_may_deliver(struct walk *walk)
{
    if (walk->offered == STEERING_MAX_DELIVERIES) {
        walk->hca->vport->counters.rx_discards++;
        return false;
    }
    return port_may_copy(walk->hca, walk->offered++ == 0);
}

static void steering_walk_table(struct walk *walk, struct flow_table *table)
{
    while (table && walk->steps++ < STEERING_MAX_STEPS) {
        const struct flow_entry *entry = steering_lookup(walk, table);

        if (!entry) {
            walk->switched |= table->miss_action == PRM_FLOW_TABLE_MISS_ACTION_SWITCH_DOMAIN;
            table = table->miss_action == PRM_FLOW_TABLE_MISS_ACTION_FWD
                        ? flow_table_find(walk->hca, table->miss_id)
                        : NULL;
            continue;
        }
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
            } else if (steering_may_deliver(walk)) {
                walk->delivered += tir_rx(walk->hca, entry->dests[i].id, walk->frame, walk->len,
                                          walk->info, entry->flow_tag, walk->from_td);
            }
        }
        return;
    }
}

/* Walks a domain, unless it has no root. */
static void steering_walk_domain(struct walk *walk, enum steering_domain domain)
{
    struct flow_table *root = walk->hca->steering->roots[domain];

    if (root) {
        steering_key_from_frame(&walk->key, walk->frame, walk->info);
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

static void steering_copy(struct hca *hca, enum steering_domain domain, const uint8_t *frame,
                          size_t len, const struct eth_info *info)
{
    struct walk walk = steering_walk_of(hca, frame, len, info, PORT_NO_TD);

    walk.offered = 1; /* the frame's own receiver counts as the first */
    steering_walk_domain(&walk, domain);
}

void steering_sniff(struct hca *hca, const uint8_t *frame, size_t len, const struct eth_info *info)
{
    steering_copy(hca, STEERING_SNIFFER_RX, frame, len, info);
}

void steering_sniff_tx(struct hca *hca, const uint8_t *frame, size_t len,
                       const struct eth_info *info)
{
    steering_copy(hca, STEERING_SNIFFER_TX, frame, len, info);
}
