/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two hosts with connections over which each accesses places (place.h) of the other, while a kind
 * makes their keys and takes them away. The model: if an operation's keys are valid from its post
 * to its end, it succeeds, with its bytes. If a key was not valid, the operation ends in that
 * error. If a key changed in between, the operation may do either, completely or in part. An
 * operation that has lost its key changes nothing more. An operation that ends in error ends its
 * connection: both QPs are drained, and when all is quiet they are connected again.
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
    REACH_CTRL, /* a request of the kind */
};

struct reach_op {
    enum reach_what what;
    struct place *near, *far;
    unsigned near_slot, far_slot;
    uint32_t len;
    uint64_t add, found;      /* of an atomic: the value that it must find */
    bool near_lost, far_lost; /* its key may have become invalid before it ended */
    bool near_bad, far_bad;   /* the key was not valid when it was posted */
    unsigned near_need, far_need;
    /* for the kind's use */
    unsigned ctrl;
    void *about;
    bool must_fail; /* must fail with MW_BIND_ERR */
    bool in_vain;   /* a SEND that the receiver refuses without an answer */
};

struct reach_end {
    struct sim_host *host;
    struct ibv_cq *cq;
    struct ibv_qp *qp;
    struct reach_op ops[REACH_WINDOW];
    uint64_t posted, done, settled; /* settled: the operations before it have no more effects */
    unsigned receives;
    bool broken;
    bool refuses; /* a SEND is on its way here that it must refuse */
    bool refused; /* it has refused that SEND */
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
    bool troubled; /* a request of it may be refused */
};

struct reach {
    struct job *job;
    struct reach_conn conn[REACH_CONNS];
    /* Of each host: the places that it uses itself, and the places that the other host reaches.
     * They may be the same. */
    struct place *near[2][REACH_PLACES], *far[2][REACH_PLACES];
    unsigned window;
    uint64_t limit;
    /* Functions of the kind. All but the first may be NULL. */
    struct ibv_qp *(*make_qp)(struct reach *r, struct sim_host *host, struct ibv_cq *cq);
    void (*ctrl_done)(struct reach *r, struct reach_conn *c, unsigned end,
                      const struct reach_op *op, enum ibv_wc_status status);
    void (*received)(struct reach *r, struct reach_conn *c, unsigned end, const struct ibv_wc *wc);
    void (*ended)(struct reach *r,
                  struct reach_conn *c); /* nothing of the connection is outstanding */
};

/* Call after the kind's members have been set. */
void reach_init(struct reach *r, struct job *job);
/* Posts operations, handles completions and ends. A kind's step calls it and adds its own work. */
bool reach_step(struct reach *r);
bool reach_is_done(const struct reach *r);
void reach_check(struct reach *r);
void reach_free(struct reach *r);
struct ibv_qp *reach_make_qp(struct reach *r, struct sim_host *host, struct ibv_cq *cq);

/* Returns whether an action that makes operations fail is allowed now. */
bool reach_may_be_rude(struct reach *r);
/* Reserves an entry for a request of the kind's own at that end, with wr_id in *id. Returns NULL if
 * there is no room. */
struct reach_op *reach_claim(struct reach *r, struct reach_conn *c, unsigned end, uint64_t *id);
/* Declares that request to be a SEND that the other end must refuse as IBTA says of faults of class
 * J (9.9): its receive fails with MW_BIND_ERR, and the sender gets no answer until its retries run
 * out. */
void reach_is_in_vain(struct reach_conn *c, unsigned end, struct reach_op *op);
/* The place's key is about to lose these rights; and it has lost them. */
void reach_loses(struct reach *r, struct place *p, unsigned rights);
void reach_has_lost(struct reach *r, struct place *p);
/* The place's key keeps the rights after all. */
void reach_keeps(struct place *p);
/* Ends a connection. destroy: its QPs are destroyed in their present state. */
void reach_end_conn(struct reach *r, struct reach_conn *c, bool destroy);

#endif
