/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A requester that makes mistakes: before a request comes another one with its PSN, and wrong in a
 * way that a responder has to refuse for good (IBTA 9.7.4): out of its place in a message, too
 * short, empty, or not as long as it says.
 */
#ifndef HCASIM_TESTS_ROGUE_H
#define HCASIM_TESTS_ROGUE_H

#include "tests/sim/fabric/sim.h"

/* One of the mistakes. */
unsigned rogue_draw(struct chance *chance);
/* A request that leaves a host. False: the mistake is not one that can be made with it. */
bool rogue_frame(struct sim *sim, unsigned mistake, unsigned host, const uint8_t *frame,
                 size_t len);

#endif
