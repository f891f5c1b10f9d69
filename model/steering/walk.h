/* SPDX-License-Identifier: BSD-2-Clause */
/* The way of one frame through the tables of a domain, for the files of model/steering only. */
#ifndef HCASIM_MODEL_STEERING_WALK_H
#define HCASIM_MODEL_STEERING_WALK_H

#include "model/steering/packet.h"
#include "model/steering/tables.h"
#include "wire/encap/tunnel.h"

struct walk {
    struct hca *hca;
    const uint8_t *frame;
    size_t len;
    const struct eth_info *info;
    uint32_t from_td;
    uint32_t sqn; /* the send queue; 0: none */
    struct flow_regs regs;
    /* What entries have done to the frame (model/steering/change.c). */
    bool writable;            /* the frame is in a scratch place, and nobody keeps this state */
    size_t headroom;          /* if so: bytes before it that may be written */
    uint32_t changes;         /* how many */
    unsigned scratch_before;  /* if there are any: scratch places that were used before them */
    bool counted;             /* counters have counted the frame before */
    struct eth_info own_info; /* of a changed frame */
    /* What can be matched of the frame as it is now (model/steering/match_frame.c).
     * steering_changed() makes it unknown. */
    bool knows_tunnel;
    uint8_t filled; /* bits of the sections of key that are filled in */
    struct eth_tunnel tunnel;
    uint32_t key[MATCH_WORDS];
    unsigned offered, delivered; /* copies offered to TIRs; copies that they took */
    unsigned steps, nesting;     /* nesting: software's tables that the frame is in */
    bool dropped;                /* by the action of an entry */
    bool switched;               /* to the other domain, by the miss action of a table */
    /* The key under a group's mask, a struct flow_key. It is here and not on the stack, because
     * rules may lead a walk thousands of calls deep. */
    uint32_t masked[1 + MATCH_WORDS];
};

/* Fills in these sections of the frame's key. */
void steering_fill_key(struct walk *walk, uint8_t sections);
/* The frame's tunnel; its kind is ETH_TUNNEL_NONE if there is none. */
const struct eth_tunnel *steering_tunnel(struct walk *walk);
/* Call it after a change of the frame or of its registers. */
static inline void steering_changed(struct walk *walk)
{
    walk->knows_tunnel = false;
    walk->filled = 0;
}

/* Goes on with the frame in this table (model/steering/walk.c). NULL: no further. */
void steering_walk_table(struct walk *walk, struct flow_table *table);
/* Goes on with the frame in a table of software's entries (model/steering/walk_sw.c). */
void steering_walk_software(struct walk *walk, const struct flow_table *table);
/* Passes the frame to a TIR (model/steering/apply.c). */
void steering_deliver(struct walk *walk, uint32_t tirn, uint32_t flow_tag);
/* Does with the frame what the entry says (model/steering/apply.c). */
void steering_apply(struct walk *walk, const struct flow_entry *entry);

#endif
