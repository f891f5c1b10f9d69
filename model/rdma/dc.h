/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The dynamically connected transport: what both of its ends keep to (docs/explanation/dc.md,
 * docs/adr/0009).
 *
 * An initiator (DCI, model/rdma/dci.h) opens a session with a target (DCT, model/rdma/dct.h) by a
 * CONNECT, behind which its requests go out at once, and ends it by a DISCONNECT, which nothing
 * answers. Within a session everything is as on a reliable connection. A request must be carried
 * out once, though sessions come and go and any packet may be lost, repeated or late; so
 *
 *   - sessions of a function are numbered on, and a target takes none that is older than the last
 *     one of the same initiator (but after DC_LATE_NS, when nothing of it can be under way);
 *   - an initiator ends a session when nothing of it is outstanding, or when it gives up what is;
 *   - a responder stays with its initiator until it is told the end, or DC_IDLE_NS have passed: an
 *     initiator repeats nothing for longer than DC_REPEAT_NS after it last heard from the target.
 */
#ifndef HCASIM_MODEL_DC_H
#define HCASIM_MODEL_DC_H

#include "model/rdma/peer.h"

#define DC_SECOND    1000000000ull
#define DC_LATE_NS   (4 * DC_SECOND) /* a packet is under way for less than this */
#define DC_REPEAT_NS (30 * DC_SECOND)
#define DC_IDLE_NS   (DC_REPEAT_NS + 2 * DC_LATE_NS)

/* What all packets of a session carry. */
void dc_address(const struct peer *peer, struct roce_packet *pkt);
/* The number of a function's next session. Not 0. */
uint32_t dc_new_session(struct hca *hca);

#endif
