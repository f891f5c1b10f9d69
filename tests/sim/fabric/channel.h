/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One way from host to host over two QPs: an initiator, which sends, and a target, whose messages
 * go to a shared receive queue. What makes QPs, and connects them, is the kind's.
 */
#ifndef HCASIM_TESTS_CHANNEL_H
#define HCASIM_TESTS_CHANNEL_H

#include "tests/sim/fabric/flow.h"

#define CHANNEL_TIMEOUT 15 /* 134 ms: no storm outlasts eight of these */

/* Rights of a target. */
#define CHANNEL_ACCESS (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

enum channel_state {
    CHANNEL_RUNS,
    CHANNEL_DRAINS,
    CHANNEL_IS_QUIET, /* until quiet_ns */
};

struct channel {
    struct flow flow; /* flow.qp: the initiator, made by the kind; first, so it is found by that */
    struct ibv_cq *cq, *to_cq;
    struct ibv_qp *target;
    struct ibv_srq *srq;
    struct intake in;
    /* The QPs that have a connection, from RESET on; what else has none keeps its state. */
    void (*connect)(struct channel *c);
    bool target_connects;
    enum channel_state state;
    uint64_t quiet_ns;
};

/* CQs and memory. */
void channel_init(struct channel *c, struct job *job, struct sim_host *from, struct sim_host *to);
/* Receives come from there; NULL: it could not be made, which fails. */
void channel_set_srq(struct channel *c, struct ibv_srq *srq);
bool channel_step(struct channel *c);
bool channel_is_done(const struct channel *c);
/* QPs, SRQ, CQs and memory; what else a kind has made is its own. */
void channel_free(struct channel *c);

#endif
