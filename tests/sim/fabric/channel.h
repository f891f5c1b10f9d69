/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One direction from host to host over two QPs: an initiator, which sends, and a target, whose
 * messages go to a shared receive queue. The kind makes the QPs and connects them.
 */
#ifndef HCASIM_TESTS_CHANNEL_H
#define HCASIM_TESTS_CHANNEL_H

#include "tests/sim/fabric/flow.h"

#define CHANNEL_TIMEOUT 15 /* 134 ms: no storm lasts longer than eight of these */

/* Rights of a target. */
#define CHANNEL_ACCESS (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

enum channel_state {
    CHANNEL_RUNS,
    CHANNEL_DRAINS,
    CHANNEL_IS_QUIET, /* until quiet_ns */
};

struct channel {
    struct flow flow; /* flow.qp is the initiator, made by the kind; the flow is the first member,
                         so a pointer to it is also one to the channel */
    struct ibv_cq *cq, *to_cq;
    struct ibv_qp *target;
    struct ibv_srq *srq;
    struct intake in;
    /* Connects QPs that have a connection, from RESET on. QPs without a connection keep their
     * state. */
    void (*connect)(struct channel *c);
    bool target_connects;
    enum channel_state state;
    uint64_t quiet_ns;
};

/* Makes CQs and memory. */
void channel_init(struct channel *c, struct job *job, struct sim_host *from, struct sim_host *to);
/* The receives come from that SRQ. NULL: it could not be made, which fails the run. */
void channel_set_srq(struct channel *c, struct ibv_srq *srq);
bool channel_step(struct channel *c);
bool channel_is_done(const struct channel *c);
/* Frees QPs, SRQ, CQs and memory. The kind frees everything else that it has made. */
void channel_free(struct channel *c);

#endif
