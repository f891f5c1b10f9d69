/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Changes the frame of a walk as entries say (model/steering/reformat.h, rewrite.h).
 *
 * A frame that is walked is the sender's or the wire's, and cannot be written. The first change
 * copies it to a scratch place of the function; further changes are made there. If an entry leads
 * to several destinations, each of them sees the frame as the entry leaves it: a state that is kept
 * cannot be written either, so the next change makes another copy. The function has scratch places,
 * which its ledger pays for, as long as it has an entry that may change frames.
 *
 * An entry's actions happen in this order, whatever their order in a program: decapsulation, VLAN
 * pop, header rewrite, VLAN push, encapsulation. Rules of a driver rely on it: it matches a tunnel,
 * and rewrites what was in it (rdma-core: dr_ste_v0_set_actions_rx(), dr_ste_v0_set_actions_tx()).
 */
#ifndef HCASIM_MODEL_STEERING_CHANGE_H
#define HCASIM_MODEL_STEERING_CHANGE_H

#include "model/steering/walk.h"

/* Actions that change a frame or its registers. */
#define CHANGE_ACTIONS                                                                             \
    (PRM_FLOW_ACTION_PACKET_REFORMAT | PRM_FLOW_ACTION_DECAP | PRM_FLOW_ACTION_MOD_HDR |           \
     PRM_FLOW_ACTION_VLAN_POP | PRM_FLOW_ACTION_VLAN_POP_2 | PRM_FLOW_ACTION_VLAN_PUSH |           \
     PRM_FLOW_ACTION_VLAN_PUSH_2)

/* Does the entry's actions of CHANGE_ACTIONS. False: it cannot be done, and the frame is lost: it
 * has no tunnel that could be removed, it would be too long, or rules fan out too far. */
bool steering_change(struct walk *walk, const struct flow_entry *entry);
/* Inserts or removes a tunnel as the context says, on the way to one destination. */
bool steering_reformat(struct walk *walk, const struct packet_reformat *reformat);

/* A state of the frame that is kept while a destination is served. */
struct change_kept {
    const uint8_t *frame;
    size_t len, headroom;
    const struct eth_info *info;
    unsigned scratch_used;
    uint32_t changes;
    bool writable;
    struct flow_regs regs;
};
void steering_keep(struct walk *walk, struct change_kept *kept);
/* Goes back to the kept state. */
void steering_go_back(struct walk *walk, const struct change_kept *kept);

/* Call it before a change of the frame or of its registers. */
void steering_note_change(struct walk *walk);
/* At the end of a walk with changes: leaves the scratch places that were free before it. */
void steering_end_changes(struct walk *walk);

/* For software's entries, which make the next state of the frame themselves: STEER_PLACE bytes in
 * which they may do it. NULL: all scratch places have states of frames. */
uint8_t *steering_free_place(struct walk *walk);
/* The walk goes on with the frame that they have made there. False: that is no frame. */
bool steering_take_place(struct walk *walk, const struct steer_packet *packet);

/* Whether the entry may change frames, so that it needs the scratch places. */
static inline bool steering_may_change(const struct flow_entry *entry)
{
    return entry->extended || entry->action & CHANGE_ACTIONS;
}
/* For one such entry, or a table that software lays out: takes the scratch places, and allocates
 * them for the first. */
enum syn steering_take_scratch(struct hca *hca);
/* For an entry or table that took them: frees them with the last. */
void steering_give_scratch(struct hca *hca);
/* Frees them, whoever took them. */
void steering_free_scratch(struct hca *hca);

#endif
