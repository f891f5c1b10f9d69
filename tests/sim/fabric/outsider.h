/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two hosts with a protection domain each that is nobody else's, a connection between these, and a
 * key at each end that any peer of that domain may invalidate. One of another domain must not;
 * whether the key is still good, the outsider at the other end finds out.
 */
#ifndef HCASIM_TESTS_OUTSIDER_H
#define HCASIM_TESTS_OUTSIDER_H

#include "guest-lib/verbs/dv.h"
#include "tests/sim/fabric/sim.h"

struct outsider {
    struct ibv_pd *pd;
    struct ibv_cq *cq;
    struct ibv_qp *qp;
    struct span span; /* what the key is laid over, and room for what is read */
    struct mlx5dv_mkey *key;
    bool laid;   /* the key is good */
    bool reads;  /* a READ is under way */
    bool broken; /* its connection has ended, as it may where frames are lost */
};

/* At the first two hosts of the job. */
void outsiders_init(struct job *job, struct outsider outsider[2]);
void outsiders_free(struct job *job, struct outsider outsider[2]);
/* Takes what has completed. False: nothing has. */
bool outsiders_step(struct job *job, struct outsider outsider[2]);
/* By the key of that host is read, unless it is already. */
void outsiders_look(struct job *job, struct outsider outsider[2], unsigned host);
/* Nothing is under way. */
bool outsiders_are_done(const struct outsider outsider[2]);

#endif
