/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two QPs with a reliable connection and a flow in each direction. Now and then something ends the
 * connection: an operation that must fail, a QP that is moved to the error state or destroyed under
 * traffic, or the fabric. Then both QPs are drained and the rest of the flows is settled. When no
 * packet of the connection can still be on its way, the QPs are connected again.
 *
 * Or the host of the first end disappears suddenly. The other end has to find out by itself, and
 * the pair is over.
 */
#ifndef HCASIM_TESTS_PAIR_H
#define HCASIM_TESTS_PAIR_H

#include "tests/sim/fabric/connect.h"
#include "tests/sim/fabric/flow.h"
#include "tests/sim/fabric/witness.h"

struct pair_end {
    struct sim_host *host;
    struct ibv_comp_channel *channel; /* NULL: the end only polls */
    /* A notice is requested, perhaps of solicited completions only; and the completions that came
     * since. */
    bool armed, for_solicited, noticed;
    unsigned since, solicited_since;
    bool excused; /* a notice of completions that disappeared with their QP may come or not */
    uint64_t
        notice_ns; /* the notice must come before this time; 0: no completion for it has come */
    struct ibv_cq *cq;
    struct ibv_qp *qp;
    struct ibv_srq *srq; /* shared with others, or NULL */
    struct intake own, *intake;
    bool flushes; /* its receives are flushed, because they are its own */
    bool gone;
    struct witness_end seen;
    struct sim_told told;
};

enum pair_state {
    PAIR_RUNS,
    PAIR_IS_HALF, /* the first end is gone, and the other end does not know it; until quiet_ns */
    PAIR_DRAINS,
    PAIR_IS_QUIET, /* until quiet_ns */
    PAIR_IS_OVER,
};

struct pair {
    struct job *job;
    struct pair_end end[2];
    struct flow flow[2]; /* [i]: from end[i] to the other end */
    enum pair_state state;
    uint64_t quiet_ns;
    bool destroyed;
    struct connect_terms terms;
    uint64_t had_received; /* the number of receives of that end at that time */
    uint64_t late_ns;      /* the second end may stay in RTR until then; 0: it does not stay */
    /* The end that has stopped answering, and the end that has stopped posting receives. */
    unsigned silent, starved;
    bool knocked;
    unsigned cq_depth;
};

void pair_init(struct pair *pair, struct job *job, struct sim_host *a, struct sim_host *b);
/* Call before pair_init() if an end does not receive from its QP's own queue. */
void pair_share_receives(struct pair *pair, unsigned end, struct intake *in);
/* Removes the first end: destroys its objects now, and stores its memory (pair_bury()). The other
 * end is left alone for some time, or until an operation fails. */
#define PAIR_GRAVES 3
void pair_bury(struct pair *pair, struct span graves[PAIR_GRAVES], uint64_t alone_ns);
bool pair_step(struct pair *pair);
bool pair_is_done(const struct pair *pair);
void pair_check(struct pair *pair);
void pair_free(struct pair *pair);

#endif
