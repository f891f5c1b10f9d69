/* SPDX-License-Identifier: BSD-2-Clause */
/* What a run has done, in one number, and line by line for those who look for what went wrong. */
#ifndef HCASIM_TESTS_TRACE_H
#define HCASIM_TESTS_TRACE_H

#include "tests/sim/fabric/sim.h"

/* A frame left (arrives false) or came to a host. */
void trace_frame(struct sim *sim, unsigned host, bool arrives, const uint8_t *frame, size_t len);

#endif
