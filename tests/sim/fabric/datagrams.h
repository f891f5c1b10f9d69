/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages that may be lost: over unreliable connections and datagrams. Each message has its number
 * in its immediate data, so it is known whatever happened to the messages before it. Now and then
 * one of the QPs enters the error state. Then its outstanding work is flushed, and both QPs start
 * again.
 */
#ifndef HCASIM_TESTS_DATAGRAMS_H
#define HCASIM_TESTS_DATAGRAMS_H

#include "tests/sim/fabric/intake.h"

#define DATAGRAMS_KNOWN 1024 /* the newest messages, which are remembered */

struct datagram {
    uint64_t number;
    uint32_t len, at;
    bool write;
    bool lost; /* its receiver must not accept it: it has another Q_Key, or it is longer than any
                  receive */
    /* The expected status: success, or an error because its memory belongs to no key or it is
     * longer than an MTU. */
    enum ibv_wc_status ends;
    uint64_t seen; /* how many times it arrived */
};

enum datagrams_state {
    DATAGRAMS_RUN,
    DATAGRAMS_DRAIN,    /* a queue is in error: outstanding work is flushed */
    DATAGRAMS_ARE_QUIET /* until again_ns */
};

/* One direction. */
struct datagrams {
    struct job *job;
    struct sim_host *from, *to;
    struct ibv_qp *qp, *to_qp;
    struct ibv_cq *cq, *to_cq;
    struct ibv_ah *ah; /* NULL: a connection, not datagrams */
    struct intake in;
    struct span near, far;
    struct span over;    /* one byte more than a datagram may have */
    uint32_t size, most; /* bytes of a receive; of the longest message */
    uint64_t posted, sent, received, newest;
    uint64_t limit;
    uint64_t quiet_ns;
    enum datagrams_state state;
    bool broken;    /* a SEND has failed: the SENDs behind it are flushed */
    uint64_t first; /* number of the first message of this connection */
    uint64_t again_ns;
    uint64_t lost; /* messages lost with an ended connection, or that must not arrive */
    struct datagram known[DATAGRAMS_KNOWN];
};

#define DATAGRAMS_QKEY 0x11111111u
#define DATAGRAMS_GRH  40u

void datagrams_init(struct datagrams *d, struct job *job, enum ibv_qp_type type,
                    struct sim_host *from, struct sim_host *to);
bool datagrams_step(struct datagrams *d);
bool datagrams_is_done(const struct datagrams *d);
void datagrams_check(struct datagrams *d);
void datagrams_free(struct datagrams *d);

#endif
