/* SPDX-License-Identifier: BSD-2-Clause */
/* Records what a run has done, in one number and, for debugging, line by line. */
#ifndef HCASIM_TESTS_TRACE_H
#define HCASIM_TESTS_TRACE_H

#include "tests/sim/fabric/sim.h"

/* Records that a frame left a host (arrives false) or came to one, or was lost there (fabric.h). */
void trace_frame(struct sim *sim, unsigned host, bool arrives, const uint8_t *frame, size_t len,
                 unsigned fate);

#endif
