/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Checks the frames of reliable connections, as they leave a host and as they come to one, against
 * what IBTA says of each frame and of their order. If two devices share a mistake, their programs
 * do not see it; the witness does. It has its own parser of frames.
 *
 * It knows the connections of pairs (pair.h), which report themselves, until one of their ends is
 * in error or its host is gone. It ignores all others: connections where keys are taken away under
 * traffic (reach.h), where a device READs by itself what no program requested (tag matching), and
 * every service but RC.
 */
#ifndef HCASIM_TESTS_WITNESS_H
#define HCASIM_TESTS_WITNESS_H

#include "tests/sim/fabric/sim.h"

struct witness;

/* The attributes of one end of a connection. */
struct witness_end {
    unsigned port; /* port of the fabric */
    uint32_t ip;   /* its address, as a number */
    uint32_t qpn;
    uint32_t psn; /* PSN of its first request */
    uint32_t mtu; /* bytes */
    uint8_t max_reads;
    uint8_t rnr_timer; /* the wait that it asks of its peer */
    uint8_t timeout;
};

/* The cable of that port is removed or plugged in. The witness does not see what is sent to a
 * removed cable, so it no longer checks connections that used it. */
void witness_cable(struct witness *w, unsigned port);

struct witness *witness_new(struct sim *sim);
void witness_free(struct witness *witness);
/* Two ends are connected; or they are in error or gone, and the witness no longer checks them. */
void witness_connected(const struct job *job, const struct witness_end *a,
                       const struct witness_end *b);
void witness_parted(const struct job *job, const struct witness_end *a,
                    const struct witness_end *b);
/* From now on this end answers nothing. */
void witness_falls_silent(const struct job *job, const struct witness_end *end);
/* From now on an end also gets wrong requests, or answers, beside the right ones of its peer
 * (rogue.h). The second function returns whether any has come: then the connection must not go
 * on. */
void witness_be_rogue(const struct job *job, const struct witness_end *end, bool answers);
bool witness_was_rogue(const struct job *job, const struct witness_end *end);
/* Return how many times an end has retransmitted without a request since it last heard from its
 * peer; and how many times in a row its request was refused because the peer was not ready. */
unsigned witness_repeats(const struct job *job, const struct witness_end *end);
unsigned witness_refusals(const struct job *job, const struct witness_end *end);
/* Returns whether this run has no faults of frames. */
bool witness_is_quiet(const struct job *job);
/* Handles a frame that leaves a host, or comes to one. */
void witness_frame(struct witness *witness, unsigned port, bool arrives, const uint8_t *frame,
                   size_t len);

#endif
