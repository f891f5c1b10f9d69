/* SPDX-License-Identifier: BSD-2-Clause */
/* Does what a steering entry says with a frame that hits it. */
#include <string.h>
#include "model/core/pd.h"
#include "model/memory/sw_icm.h"
#include "model/steering/contexts.h"
#include "model/steering/reformat.h"
#include "model/steering/ste.h"
#include "model/steering/steering.h"
#include "wire/bytes.h"

#define FLOW_TAG_THERE (1u << 31)
#define FLOW_TAG_MASK  0xffffffu
#define LIST_UNIT      64 /* bytes */

/* Makes the frame one that can be changed: a copy with room before it. False: there is no room. */
static bool ste_own(struct ste_walk *walk)
{
    if (!walk->changed && walk->room) {
        walk->changed = true;
        memcpy(walk->room + STEER_HEADROOM, walk->frame, walk->len);
        walk->packet = (struct steer_packet){
            .bytes = walk->room + STEER_HEADROOM, .len = walk->len, .headroom = STEER_HEADROOM};
        walk->frame = walk->packet.bytes; /* also if the change then turns out to be impossible */
    }
    return walk->changed;
}

/* The frame has changed: its headers are parsed again when they are needed. */
static void ste_changed(struct ste_walk *walk)
{
    walk->frame = walk->packet.bytes;
    walk->len = walk->packet.len;
    walk->parsed = walk->has_tunnel = false;
}

static void ste_count(struct ste_walk *walk, const struct prm_ste *ste)
{
    uint32_t id =
        PRM_GET(ste, ste, counter_trigger_23_16) << 16 | PRM_GET(ste, ste, counter_trigger_15_0);
    struct flow_counter *counter = id ? flow_counter_find(walk->hca, id) : NULL;

    if (counter && !walk->counted && uid_may_use(&counter->obj, walk->uid)) {
        counter->packets++;
        counter->bytes += walk->len;
    }
}

/* The offset of what is inside the frame's tunnel. False: there is none. */
static bool ste_find_inner(struct ste_walk *walk, size_t *inner, bool *is_eth)
{
    uint8_t unused[STE_TAG_BYTES];

    ste_tag(walk, PRM_STE_LOOKUP_ETHL2_DST_D, unused); /* parses */
    *inner = walk->tunnel.inner_off;
    *is_eth = walk->tunnel.inner_eth;
    return walk->has_tunnel;
}

static bool ste_decap_l2(struct ste_walk *walk)
{
    size_t inner;
    bool is_eth;

    if (!ste_find_inner(walk, &inner, &is_eth) || !is_eth) {
        return false;
    }
    if (!ste_own(walk) || !reformat_decap_l2(&walk->packet, inner)) {
        return false;
    }
    ste_changed(walk);
    return true;
}

/* The new Ethernet header is empty; the entry's list fills it in (driver:
 * dr_ste_v0_set_action_decap_l3_list()). */
static bool ste_decap_l3(struct ste_walk *walk, bool has_vlan)
{
    uint8_t header[ETH_BYTES + VLAN_BYTES] = {0};
    size_t inner;
    bool is_eth;

    if (!ste_find_inner(walk, &inner, &is_eth)) {
        return false;
    }
    if (is_eth) {
        inner = walk->tunnel.inner.l3_off;
        if (!walk->tunnel.inner.ip_version) {
            return false;
        }
    }
    put16(header + ETH_BYTES - 2, has_vlan ? ETH_TYPE_VLAN : 0);
    if (!ste_own(walk) || !reformat_decap_l3(&walk->packet, inner, header,
                                             has_vlan ? ETH_BYTES + VLAN_BYTES : ETH_BYTES)) {
        return false;
    }
    ste_changed(walk);
    return true;
}

static bool ste_pop_vlan(struct ste_walk *walk)
{
    if (!ste_own(walk)) {
        return false;
    }
    reformat_pop_vlan(&walk->packet);
    ste_changed(walk);
    return true;
}

static bool ste_remove(struct ste_walk *walk, const struct prm_ste *ste)
{
    switch (PRM_GET(ste, ste, tunneling_action)) {
    case PRM_STE_TUNNELING_NONE:
    case PRM_STE_TUNNELING_ENABLE:
        return true;
    case PRM_STE_TUNNELING_DECAP:
        return ste_decap_l2(walk);
    case PRM_STE_TUNNELING_L3_DECAP:
        return ste_decap_l3(walk, PRM_GET(ste, ste, tunneling_description) & 1);
    case PRM_STE_TUNNELING_POP_VLAN:
        return ste_pop_vlan(walk);
    default:
        return false;
    }
}

static bool ste_modify_packet(struct ste_walk *walk, const struct prm_ste *ste)
{
    uint8_t list[STE_MAX_MODIFY * PRM_SIZE(ste_modify_set)];
    unsigned n = PRM_GET(ste, ste, number_of_re_write_actions);
    uint64_t at = SW_ICM_MODIFY_START + (uint64_t)PRM_GET(ste, ste, pointer) * LIST_UNIT;
    size_t bytes = n * PRM_SIZE(ste_modify_set);

    if (n > STE_MAX_MODIFY || !sw_icm_read(walk->hca, at, list, bytes)) {
        return false;
    }
    walk->steps += n; /* an action costs about as much as an entry */
    if (!ste_own(walk)) {
        return false;
    }
    ste_modify(&walk->packet, walk->regs, list, n);
    ste_changed(walk);
    return true;
}

static bool ste_push_vlan(struct ste_walk *walk, uint32_t tag)
{
    if (!ste_own(walk) ||
        !reformat_push_vlan(&walk->packet, (uint16_t)(tag >> 16), (uint16_t)tag)) {
        return false;
    }
    ste_changed(walk);
    return true;
}

static bool ste_encap(struct ste_walk *walk, uint32_t id, bool keep_l2)
{
    const struct packet_reformat *reformat = packet_reformat_find(walk->hca, id);

    if (!reformat || !uid_may_use(&reformat->obj, walk->uid) ||
        packet_reformat_is_decap(reformat->type) || !ste_own(walk) ||
        !reformat_encap(&walk->packet, reformat->headers, reformat->len, keep_l2, walk->ip_id)) {
        return false;
    }
    ste_changed(walk);
    return true;
}

static bool ste_insert(struct ste_walk *walk, const struct prm_ste *ste)
{
    uint32_t pointer = PRM_GET(ste, ste, pointer);

    switch (PRM_GET(ste, ste, action_type)) {
    case PRM_STE_TX_ACTION_NONE:
        return true;
    case PRM_STE_TX_ACTION_PUSH_VLAN:
        return ste_push_vlan(walk, pointer);
    case PRM_STE_TX_ACTION_ENCAP_L3:
        return ste_encap(walk, pointer, false);
    case PRM_STE_TX_ACTION_ENCAP:
        return ste_encap(walk, pointer, true);
    default:
        return false;
    }
}

bool ste_act(struct ste_walk *walk, const struct prm_ste *ste)
{
    uint32_t tag = PRM_GET(ste, ste, pointer);

    ste_count(walk, ste);
    switch (PRM_GET(ste, ste, entry_type)) {
    case PRM_STE_TYPE_RX:
        if (walk->is_tx) {
            return false;
        }
        if (tag & FLOW_TAG_THERE) {
            walk->flow_tag = tag & FLOW_TAG_MASK;
        }
        return ste_remove(walk, ste);
    case PRM_STE_TYPE_TX:
        return walk->is_tx && ste_insert(walk, ste);
    case PRM_STE_TYPE_MODIFY_PKT:
        return ste_remove(walk, ste) && ste_modify_packet(walk, ste);
    default:
        return false;
    }
}
