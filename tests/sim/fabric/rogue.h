/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A requester that makes mistakes: before a request comes another one with its PSN, and wrong in a
 * way that a responder has to refuse for good (IBTA 9.7.4): out of its place in a message, too
 * short or too long, empty, or not as long as it says.
 *
 * And a responder that does: before an answer comes another one, which is out of its place in it,
 * too short, too long, or that of another operation. A requester ends its operation with a bad
 * response then (IBTA 9.9.2).
 */
#ifndef HCASIM_TESTS_ROGUE_H
#define HCASIM_TESTS_ROGUE_H

#include "tests/sim/fabric/sim.h"

/* One of the mistakes: of a requester, or of a responder. */
unsigned rogue_draw(struct chance *chance, bool answer);
/* A request or answer that leaves a host, on a connection of that path MTU. False: the mistake is
 * not one that can be made with it. */
bool rogue_frame(struct sim *sim, unsigned mistake, unsigned host, uint32_t mtu,
                 const uint8_t *frame, size_t len);

/* What must have no effect. A frame that leaves a host, twice. A READ of a host that another one
 * has answered comes there again, and asks for more bytes (IBTA 9.7.5.1.1). */
void rogue_again(struct sim *sim, unsigned host, const uint8_t *frame, size_t len);
void rogue_read_more(struct sim *sim, unsigned host, unsigned to, const uint8_t *frame, size_t len,
                     uint32_t more);

#endif
