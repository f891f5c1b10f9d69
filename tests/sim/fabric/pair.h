/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two QPs with a reliable connection, a flow each way. Now and then something ends it: an operation
 * that must fail, a QP that is moved to the error state or destroyed in the midst of it, or the
 * fabric. Then both are drained, what is left of the flows is settled, and when nothing of it can
 * be on its way any more, they are connected again.
 *
 * Or the host of the first end is gone all of a sudden. The other one has to find out by itself,
 * and the pair is over.
 */
#ifndef HCASIM_TESTS_PAIR_H
#define HCASIM_TESTS_PAIR_H

#include "tests/sim/fabric/connect.h"
#include "tests/sim/fabric/flow.h"
#include "tests/sim/fabric/witness.h"

struct pair_end {
    struct sim_host *host;
    struct ibv_comp_channel *channel; /* NULL: it only polls */
    /* A notice is asked for, of solicited completions alone perhaps; and which have come since. */
    bool armed, for_solicited, noticed;
    unsigned since, solicited_since;
    bool excused;       /* there may be a notice of what is gone with its QP, or none */
    uint64_t notice_ns; /* by then it must be there; 0: nothing that it is for has come */
    struct ibv_cq *cq;
    struct ibv_qp *qp;
    struct ibv_srq *srq; /* another's, or NULL */
    struct intake own, *intake;
    bool flushes; /* its receives do, being its own */
    bool gone;
    struct witness_end seen;
    struct sim_told told;
};

enum pair_state {
    PAIR_RUNS,
    PAIR_IS_HALF, /* the first end is gone, and the other does not know; until quiet_ns */
    PAIR_DRAINS,
    PAIR_IS_QUIET, /* until quiet_ns */
    PAIR_IS_OVER,
};

struct pair {
    struct job *job;
    struct pair_end end[2];
    struct flow flow[2]; /* [i]: from end[i] to the other */
    enum pair_state state;
    uint64_t quiet_ns;
    bool destroyed;
    struct connect_terms terms;
    uint64_t had_received; /* by then, by that end */
    uint64_t late_ns;      /* until then the second end may stay in RTR; 0: it does not */
    /* Which end has stopped answering, which one posting receives. */
    unsigned silent, starved;
    bool knocked;
    unsigned cq_depth;
};

void pair_init(struct pair *pair, struct job *job, struct sim_host *a, struct sim_host *b);
/* Before that, if receives come from elsewhere than a queue of the QP's own. */
void pair_share_receives(struct pair *pair, unsigned end, struct intake *in);
/* The first end goes: what it has is destroyed, now. Stores what memory it had (pair_bury()). The
 * other end is left alone for some time, or until an operation fails. */
#define PAIR_GRAVES 3
void pair_bury(struct pair *pair, struct span graves[PAIR_GRAVES], uint64_t alone_ns);
bool pair_step(struct pair *pair);
bool pair_is_done(const struct pair *pair);
void pair_check(struct pair *pair);
void pair_free(struct pair *pair);

#endif
