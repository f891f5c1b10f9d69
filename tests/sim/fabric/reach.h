/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two hosts with connections, over which each reaches into places (place.h) of the other, while a
 * kind makes their keys, and takes them away. The model: an operation whose keys were good from
 * its post to its end succeeds, with its bytes; one with a key that was not ends in that error; one
 * in between may do either, whole or in part; and what has lost its key changes no more. What ends
 * in error takes its connection along: both QPs are drained, and when all is quiet they are
 * connected again.
 */
#ifndef HCASIM_TESTS_REACH_H
#define HCASIM_TESTS_REACH_H

#include "tests/sim/fabric/place.h"

#define REACH_CONNS    2
#define REACH_PLACES   4
#define REACH_WINDOW   32u
#define REACH_RECEIVES 8u

enum reach_what {
    REACH_WRITE,
    REACH_READ,
    REACH_FETCH_ADD,
    REACH_CTRL, /* the kind's */
};

struct reach_op {
    enum reach_what what;
    struct place *near, *far;
    unsigned near_slot, far_slot;
    uint32_t len;
    uint64_t add, found;      /* of an atomic: what it must find */
    bool near_lost, far_lost; /* its key may have gone before it ended */
    bool near_bad, far_bad;   /* the key was not good when it was posted */
    unsigned near_need, far_need;
    /* the kind's */
    unsigned ctrl;
    void *about;
    bool must_fail; /* with MW_BIND_ERR */
    bool in_vain;   /* a SEND that the receiver refuses, and says nothing of */
};

struct reach_end {
    struct sim_host *host;
    struct ibv_cq *cq;
    struct ibv_qp *qp;
    struct reach_op ops[REACH_WINDOW];
    uint64_t posted, done, settled; /* settled: those before have nothing left to do */
    unsigned receives;
    bool broken;
    bool refuses; /* a SEND is on its way here that it must refuse, */
    bool refused; /* and it has */
};

enum reach_state {
    REACH_RUNS,
    REACH_DRAINS,
    REACH_IS_QUIET, /* until quiet_ns */
};

struct reach_conn {
    struct reach_end end[2];
    enum reach_state state;
    uint64_t quiet_ns, ops;
    bool destroyed;
    bool troubled; /* something that it was asked for may be refused */
};

struct reach {
    struct job *job;
    struct reach_conn conn[REACH_CONNS];
    /* Of each host: memory that it uses itself, and that the other one reaches. Maybe the same. */
    struct place *near[2][REACH_PLACES], *far[2][REACH_PLACES];
    unsigned window;
    uint64_t limit;
    /* The kind's. May be NULL, but the first. */
    struct ibv_qp *(*make_qp)(struct reach *r, struct sim_host *host, struct ibv_cq *cq);
    void (*ctrl_done)(struct reach *r, struct reach_conn *c, unsigned end,
                      const struct reach_op *op, enum ibv_wc_status status);
    void (*received)(struct reach *r, struct reach_conn *c, unsigned end, const struct ibv_wc *wc);
    void (*ended)(struct reach *r, struct reach_conn *c); /* nothing of it is outstanding */
};

/* After the members that are the kind's have been set. */
void reach_init(struct reach *r, struct job *job);
/* Operations, completions, ends. A kind's step does that, and its own. */
bool reach_step(struct reach *r);
bool reach_is_done(const struct reach *r);
void reach_check(struct reach *r);
void reach_free(struct reach *r);
struct ibv_qp *reach_make_qp(struct reach *r, struct sim_host *host, struct ibv_cq *cq);

/* Something rude may be done now: it makes operations fail. */
bool reach_may_be_rude(struct reach *r);
/* A request of the kind's own is to be posted there: its entry, with wr_id in *id. NULL: no room.
 */
struct reach_op *reach_claim(struct reach *r, struct reach_conn *c, unsigned end, uint64_t *id);
/* That request is a SEND which the other end must refuse as IBTA says of faults of class J (9.9):
 * its receive fails with MW_BIND_ERR, and the sender hears nothing, until its retries run out. */
void reach_is_in_vain(struct reach_conn *c, unsigned end, struct reach_op *op);
/* The place's key is about to lose these rights; and it has. */
void reach_loses(struct reach *r, struct place *p, unsigned rights);
void reach_has_lost(struct reach *r, struct place *p);
/* Or it has not, after all. */
void reach_keeps(struct place *p);
/* Ends a connection. destroy: its QPs are destroyed, as they are. */
void reach_end_conn(struct reach *r, struct reach_conn *c, bool destroy);

#endif
