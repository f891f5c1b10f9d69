/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Defines what both ends of the dynamically connected transport share (docs/explanation/dc.md,
 * docs/adr/0009).
 *
 * An initiator (DCI, model/rdma/dci.h) opens a session with a target (DCT, model/rdma/dct.h) by a
 * CONNECT; its requests follow at once. It ends the session by a DISCONNECT, which is not answered.
 * Within a session everything works as on a reliable connection. A request must be carried out
 * once, although sessions come and go and any packet may be lost, repeated or late. Therefore
 *
 *   - the sessions of a function have increasing numbers, and a target takes no session that is
 *     older than the last one of the same initiator (except after DC_LATE_NS, when no packet of
 *     that session can be under way any more);
 *   - an initiator ends a session when nothing is outstanding, or when it gives up what is;
 *   - a responder stays with its initiator until it receives the DISCONNECT, or until DC_IDLE_NS
 *     have passed. An initiator repeats nothing for longer than DC_REPEAT_NS after it last heard
 *     from the target.
 */
#ifndef HCASIM_MODEL_DC_H
#define HCASIM_MODEL_DC_H

#include "model/rdma/peer.h"

#define DC_SECOND    1000000000ull
#define DC_LATE_NS   (4 * DC_SECOND) /* no packet is under way for longer */
#define DC_REPEAT_NS (30 * DC_SECOND)
#define DC_IDLE_NS   (DC_REPEAT_NS + 2 * DC_LATE_NS)

/* Sets the fields that all packets of a session carry. */
void dc_address(const struct peer *peer, struct roce_packet *pkt);
/* The number of a function's next session. Never 0. */
uint32_t dc_new_session(struct hca *hca);

#endif
