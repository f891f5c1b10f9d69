/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pauses: MAC control frames of the link partner hold what the port sends. A frame of priority flow
 * control (IEEE 802.1Q, clause 36; IEEE 802.3, annex 31D) holds some priorities, a PAUSE frame
 * (annex 31B) holds all of them. PFCC says which of these frames are obeyed.
 *
 * The priority of a frame is that of its queue: a TIS's prio for a send queue, the VLAN tag or the
 * DSCP of the path for RoCE (uplink_roce_priority()). A frame of a held priority finds no place
 * (port_tx_reserve()), as if the wire had no credit; frames of other priorities pass. Frames that
 * stay in the card are not held.
 *
 * A hold ends when its time runs out, by a frame with time 0, when PFCC no longer obeys such
 * frames, or when the link goes down. Its longest time is 65535 quanta of 512 bits, unless the
 * partner asks again. Work that waits is woken by the function's hold_timer, or by the frame.
 */
#ifndef HCASIM_MODEL_PAUSE_H
#define HCASIM_MODEL_PAUSE_H

#include "model/port/eswitch.h"

#define PAUSE_ETHERTYPE 0x8808 /* MAC control */

static inline bool pause_is_control(const uint8_t *frame)
{
    return frame[12] == PAUSE_ETHERTYPE >> 8 && frame[13] == (PAUSE_ETHERTYPE & 0xff);
}

/* Takes a MAC control frame, which no function receives. len is at least 14. */
void pause_rx(struct eswitch *sw, const uint8_t *frame, size_t len);

/* Whether a frame of this priority must wait; hca->credit_class then says for what. Called only
 * while some priority is held. */
bool pause_holds(struct hca *hca, unsigned priority);

/* PFCC has changed: holds that it does not allow any more end. */
void pause_settings_changed(struct eswitch *sw);
/* The link is down: all holds end. */
void pause_link_down(struct eswitch *sw);
/* Counts the time of holds until now. */
void pause_count(struct uplink *uplink, uint64_t now);

#endif
