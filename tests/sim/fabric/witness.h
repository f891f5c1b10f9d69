/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Looks at the frames of reliable connections, as they leave a host and as they come to one, and
 * holds them against what IBTA says of each alone and of their order: what two devices with the
 * same mistake agree upon, and their programs do not see. It reads frames with a parser of its own.
 *
 * It knows the connections that it was told of, which are those of pairs (pair.h), until one of
 * their ends is in error, or its host is gone. It leaves all others alone: where keys are taken
 * away under traffic (reach.h), where a device READs by itself what no program asked it for (tag
 * matching), and every service but RC.
 */
#ifndef HCASIM_TESTS_WITNESS_H
#define HCASIM_TESTS_WITNESS_H

#include "tests/sim/fabric/sim.h"

struct witness;

/* What one end of a connection was told. */
struct witness_end {
    unsigned port; /* of the fabric */
    uint32_t ip;   /* its address, as a number */
    uint32_t qpn;
    uint32_t psn; /* its first request's */
    uint32_t mtu; /* bytes */
    uint8_t max_reads;
    uint8_t rnr_timer; /* that it asks its peer to wait */
    uint8_t timeout;
};

/* The cable of that port goes out or in. What is sent to a cable that is out is gone unseen: of
 * connections that had it, nothing more is looked at. */
void witness_cable(struct witness *w, unsigned port);

struct witness *witness_new(struct sim *sim);
void witness_free(struct witness *witness);
/* Two ends are connected; or are in error, or gone: nothing of theirs is looked at any more. */
void witness_connected(const struct job *job, const struct witness_end *a,
                       const struct witness_end *b);
void witness_parted(const struct job *job, const struct witness_end *a,
                    const struct witness_end *b);
/* One end answers nothing any more. */
void witness_falls_silent(const struct job *job, const struct witness_end *end);
/* From now on wrong requests, or answers, come to an end beside the right ones of its peer
 * (rogue.h). And whether any has: that the connection goes on is a mistake then. */
void witness_be_rogue(const struct job *job, const struct witness_end *end, bool answers);
bool witness_was_rogue(const struct job *job, const struct witness_end *end);
/* How often an end has gone back unasked to what it had sent before, since it last heard of its
 * peer; and how often its request was refused in a row by one that was not ready. */
unsigned witness_repeats(const struct job *job, const struct witness_end *end);
unsigned witness_refusals(const struct job *job, const struct witness_end *end);
/* Nothing befalls a frame of this run. */
bool witness_is_quiet(const struct job *job);
/* A frame that leaves a host, or comes to one. */
void witness_frame(struct witness *witness, unsigned port, bool arrives, const uint8_t *frame,
                   size_t len);

#endif
