/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two hosts with a protection domain each that no other job uses, a connection between them, and a
 * key at each end that any peer of that domain may invalidate. A peer of another domain must not
 * invalidate it. The outsider at the other end checks whether the key is still valid.
 */
#ifndef HCASIM_TESTS_OUTSIDER_H
#define HCASIM_TESTS_OUTSIDER_H

#include "guest-lib/verbs/dv.h"
#include "tests/sim/fabric/sim.h"

struct outsider {
    struct ibv_pd *pd;
    struct ibv_cq *cq;
    struct ibv_qp *qp;
    struct span span; /* the memory of the key, and room for the bytes that are read */
    struct mlx5dv_mkey *key;
    bool laid;   /* the key is valid */
    bool reads;  /* a READ is under way */
    bool broken; /* its connection has ended, which may happen if frames are lost */
};

/* Makes both outsiders on the first two hosts of the job. */
void outsiders_init(struct job *job, struct outsider outsider[2]);
void outsiders_free(struct job *job, struct outsider outsider[2]);
/* Handles completions. Returns false if there were none. */
bool outsiders_step(struct job *job, struct outsider outsider[2]);
/* Reads through the key of that host, unless a READ is already under way. */
void outsiders_look(struct job *job, struct outsider outsider[2], unsigned host);
/* Returns whether nothing is under way. */
bool outsiders_are_done(const struct outsider outsider[2]);

#endif
