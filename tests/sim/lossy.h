/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A bad cable: a filter around a wire port that loses, duplicates, reorders and corrupts the frames
 * that arrive there, controlled by a seeded generator. The same seed and the same frames give the
 * same faults.
 */
#ifndef HCASIM_TESTS_LOSSY_H
#define HCASIM_TESTS_LOSSY_H

#include "wire/port.h"

/* Per thousand frames. */
struct lossy_config {
    uint32_t seed;
    unsigned lose, twice, late, corrupt;
    bool fcs;       /* frames with a corrupted Ethernet header are lost: no ICRC covers it */
    bool strangers; /* it does not know who is on the wire (wire_knows()); otherwise it says that
                       everybody is */
};

/* Called for what arrives at a port, faults included, before the port's client sees it. */
typedef void lossy_trace_fn(void *opaque, const uint8_t *frame, size_t len);

/* Owns inner. trace may be NULL. */
struct wire_port *lossy_new(struct wire_port *inner, const struct lossy_config *config,
                            lossy_trace_fn *trace, void *opaque);

/* Returns the number of faults so far. */
unsigned lossy_faults(const struct wire_port *port);

#endif
