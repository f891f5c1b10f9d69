/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A faulty requester: before a request it sends another request with the same PSN, wrong in a way
 * that a responder must refuse for good (IBTA 9.7.4): out of its place in a message, too short or
 * too long, empty, or of another length than it says.
 *
 * And a faulty responder: before an answer it sends another answer that is out of its place, too
 * short, too long, or belongs to another operation. A requester then ends its operation with a bad
 * response (IBTA 9.9.2).
 */
#ifndef HCASIM_TESTS_ROGUE_H
#define HCASIM_TESTS_ROGUE_H

#include "tests/sim/fabric/sim.h"

/* Draws one of the mistakes, of a requester or of a responder. */
unsigned rogue_draw(struct chance *chance, bool answer);
/* Makes the mistake before a request or answer that leaves a host, on a connection of that path
 * MTU. Returns false if the mistake cannot be made with this frame. */
bool rogue_frame(struct sim *sim, unsigned mistake, unsigned host, uint32_t mtu,
                 const uint8_t *frame, size_t len);

/* Sends frames that must have no effect: a frame that leaves a host, twice; and a READ that another
 * host has answered, to that host again and asking for more bytes (IBTA 9.7.5.1.1). */
void rogue_again(struct sim *sim, unsigned host, const uint8_t *frame, size_t len);
void rogue_read_more(struct sim *sim, unsigned host, unsigned to, const uint8_t *frame, size_t len,
                     uint32_t more);

#endif
