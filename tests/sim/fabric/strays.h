/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Frames that nobody was to send: a request under way is copied, other bytes are put into it, and
 * it comes with another P_Key, from another address, or as that of another transport. A host has to
 * drop each of them (IBTA 9.6), so nothing else changes by them; that it does is for the jobs to
 * see.
 */
#ifndef HCASIM_TESTS_STRAYS_H
#define HCASIM_TESTS_STRAYS_H

#include "tests/sim/fabric/sim.h"

/* A frame that leaves a host. */
void strays_frame(struct sim *sim, unsigned host, const uint8_t *frame, size_t len);

#endif
