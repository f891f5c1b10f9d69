/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Frames that no host was to send: copies a request under way, changes its data, and sends it with
 * another P_Key, from another address, or as a packet of another transport. A host has to drop each
 * of them (IBTA 9.6), so they change nothing else. The jobs notice if they do.
 */
#ifndef HCASIM_TESTS_STRAYS_H
#define HCASIM_TESTS_STRAYS_H

#include "tests/sim/fabric/sim.h"

/* Handles a frame that leaves a host. */
void strays_frame(struct sim *sim, unsigned host, const uint8_t *frame, size_t len);

#endif
