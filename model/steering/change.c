/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements change.h. */
#include "model/steering/change.h"
#include <string.h>

#define SCRATCH_PLACES 4 /* states of a frame that exist at a time, and the one that changes */

struct steering_scratch {
    unsigned used;  /* places that have states of frames, the lowest first */
    uint64_t users; /* what may change frames; the last of them takes the places away */
    uint8_t place[SCRATCH_PLACES][STEER_PLACE];
};

enum syn steering_take_scratch(struct hca *hca)
{
    struct steering_scratch **scratch = &hca->steering->scratch;

    if (!*scratch) {
        *scratch = ledger_alloc(&hca->memory, sizeof(**scratch));
        if (!*scratch) {
            return SYN_NO_MEMORY;
        }
    }
    (*scratch)->users++;
    return SYN_OK;
}

void steering_give_scratch(struct hca *hca)
{
    if (--hca->steering->scratch->users == 0) {
        steering_free_scratch(hca);
    }
}

void steering_free_scratch(struct hca *hca)
{
    ledger_free(&hca->memory, hca->steering->scratch, sizeof(struct steering_scratch));
    hca->steering->scratch = NULL;
}

static unsigned change_scratch_used(const struct walk *walk)
{
    const struct steering_scratch *scratch = walk->hca->steering->scratch;

    return scratch ? scratch->used : 0;
}

static void change_leave_scratch(struct walk *walk, unsigned used)
{
    if (walk->hca->steering->scratch) {
        walk->hca->steering->scratch->used = used;
    }
}

void steering_note_change(struct walk *walk)
{
    if (walk->changes++ == 0) {
        walk->scratch_before = change_scratch_used(walk);
    }
}

void steering_end_changes(struct walk *walk)
{
    change_leave_scratch(walk, walk->scratch_before);
}

/* Makes the frame one that can be written. False: all scratch places have states of it. */
static bool change_begin(struct walk *walk, struct steer_packet *packet)
{
    struct steering_scratch *scratch = walk->hca->steering->scratch;

    steering_note_change(walk);
    if (!walk->writable) {
        uint8_t *to;

        if (scratch->used == SCRATCH_PLACES) {
            return false;
        }
        to = scratch->place[scratch->used++] + STEER_HEADROOM;
        memcpy(to, walk->frame, walk->len);
        walk->frame = to;
        walk->headroom = STEER_HEADROOM;
        walk->writable = true;
    }
    *packet = (struct steer_packet){
        .bytes = (uint8_t *)walk->frame, .len = walk->len, .headroom = walk->headroom};
    return true;
}

/* The walk goes on with the changed frame. False: that is no frame any more. */
static bool change_end(struct walk *walk, const struct steer_packet *packet)
{
    walk->frame = packet->bytes;
    walk->len = packet->len;
    walk->headroom = packet->headroom;
    walk->info = &walk->own_info;
    steering_changed(walk);
    return eth_parse(walk->frame, walk->len, &walk->own_info);
}

uint8_t *steering_free_place(struct walk *walk)
{
    struct steering_scratch *scratch = walk->hca->steering->scratch;

    return scratch->used < SCRATCH_PLACES ? scratch->place[scratch->used] : NULL;
}

bool steering_take_place(struct walk *walk, const struct steer_packet *packet)
{
    steering_note_change(walk);
    walk->hca->steering->scratch->used++;
    walk->writable = true;
    return change_end(walk, packet);
}

/* The tunnel of the frame as it is now. False: it has none. */
static bool change_find_tunnel(struct walk *walk)
{
    return steering_tunnel(walk)->kind != ETH_TUNNEL_NONE;
}

static bool change_decap_l2(struct walk *walk, struct steer_packet *packet)
{
    return change_find_tunnel(walk) && walk->tunnel.inner_eth &&
           reformat_decap_l2(packet, walk->tunnel.inner_off);
}

/* If the tunnel carries an Ethernet frame, its Ethernet header goes, too. */
static bool change_decap_l3(struct walk *walk, struct steer_packet *packet,
                            const struct packet_reformat *reformat)
{
    size_t inner;

    if (!change_find_tunnel(walk)) {
        return false;
    }
    inner = walk->tunnel.inner_eth ? walk->tunnel.inner.l3_off : walk->tunnel.inner_off;
    return reformat_decap_l3(packet, inner, reformat->headers, reformat->len);
}

static bool change_encap(struct walk *walk, struct steer_packet *packet,
                         const struct packet_reformat *reformat)
{
    return reformat_encap(packet, reformat->headers, reformat->len,
                          reformat->type != PRM_REFORMAT_TYPE_L2_TO_L3_TUNNEL,
                          &walk->hca->steering->ip_id);
}

static bool change_decap(struct walk *walk, struct steer_packet *packet,
                         const struct flow_entry *entry)
{
    if (entry->action & PRM_FLOW_ACTION_DECAP) {
        return change_decap_l2(walk, packet);
    }
    return !entry->reformat || !packet_reformat_is_decap(entry->reformat->type) ||
           change_decap_l3(walk, packet, entry->reformat);
}

static void change_pop(struct steer_packet *packet, uint16_t action)
{
    if (action & PRM_FLOW_ACTION_VLAN_POP) {
        reformat_pop_vlan(packet);
    }
    if (action & PRM_FLOW_ACTION_VLAN_POP_2) {
        reformat_pop_vlan(packet);
    }
}

static bool change_push(struct steer_packet *packet, const struct flow_entry *entry)
{
    const struct flow_vlan *vlans = entry->vlans;

    return (!(entry->action & PRM_FLOW_ACTION_VLAN_PUSH) ||
            reformat_push_vlan(packet, vlans[0].tpid, vlans[0].tci)) &&
           (!(entry->action & PRM_FLOW_ACTION_VLAN_PUSH_2) ||
            reformat_push_vlan(packet, vlans[1].tpid, vlans[1].tci));
}

static bool change_all(struct walk *walk, struct steer_packet *packet,
                       const struct flow_entry *entry)
{
    const struct packet_reformat *reformat = entry->reformat;

    if (!change_decap(walk, packet, entry)) {
        return false;
    }
    change_pop(packet, entry->action);
    if (entry->modify) {
        rewrite_run(entry->modify->actions, entry->modify->count, packet, &walk->regs);
    }
    return change_push(packet, entry) && (!reformat || packet_reformat_is_decap(reformat->type) ||
                                          change_encap(walk, packet, reformat));
}

/* Whether the entry changes no more than registers. */
static bool change_is_of_registers(const struct flow_entry *entry)
{
    return (entry->action & CHANGE_ACTIONS) == PRM_FLOW_ACTION_MOD_HDR &&
           !entry->modify->writes_frame;
}

bool steering_change(struct walk *walk, const struct flow_entry *entry)
{
    struct steer_packet packet;

    if (change_is_of_registers(entry)) {
        packet = (struct steer_packet){.bytes = (uint8_t *)walk->frame, .len = walk->len};
        rewrite_run(entry->modify->actions, entry->modify->count, &packet, &walk->regs);
        steering_note_change(walk);
        steering_changed(walk);
        return true;
    }
    if (!change_begin(walk, &packet)) {
        return false;
    }
    /* What cannot be done loses the frame, so it does not matter which part was done. */
    return change_all(walk, &packet, entry) && change_end(walk, &packet);
}

bool steering_reformat(struct walk *walk, const struct packet_reformat *reformat)
{
    struct steer_packet packet;

    if (!change_begin(walk, &packet)) {
        return false;
    }
    return (packet_reformat_is_decap(reformat->type) ? change_decap_l3(walk, &packet, reformat)
                                                     : change_encap(walk, &packet, reformat)) &&
           change_end(walk, &packet);
}

void steering_keep(struct walk *walk, struct change_kept *kept)
{
    *kept = (struct change_kept){.frame = walk->frame,
                                 .len = walk->len,
                                 .headroom = walk->headroom,
                                 .info = walk->info,
                                 .scratch_used = change_scratch_used(walk),
                                 .changes = walk->changes,
                                 .writable = walk->writable,
                                 .regs = walk->regs};
    walk->writable = false;
}

void steering_go_back(struct walk *walk, const struct change_kept *kept)
{
    bool changed = walk->changes != kept->changes;

    walk->writable = kept->writable;
    if (!changed) {
        return;
    }
    walk->frame = kept->frame;
    walk->len = kept->len;
    walk->headroom = kept->headroom;
    walk->info = kept->info;
    walk->regs = kept->regs;
    change_leave_scratch(walk, kept->scratch_used);
    if (walk->info == &walk->own_info) {
        eth_parse(walk->frame, walk->len, &walk->own_info);
    }
    steering_changed(walk);
}
