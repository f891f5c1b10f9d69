/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Some hosts with a reliable connection each to one that receives all of it by a shared receive
 * queue. A failing connection takes nobody else's receives.
 */
#include "tests/sim/fabric/pair.h"
#include <errno.h>

#define PEERS (JOB_HOSTS - 1)

struct many {
    struct ibv_srq *srq;
    struct intake in;
    struct pair pair[PEERS];
};

static void kind_srq_make(struct job *job)
{
    struct many *m = job->state;
    struct ibv_srq_init_attr attr = {.attr = {.max_wr = INTAKE_SLOTS, .max_sge = 1}};

    m->srq = ibv_create_srq(job->host[0]->pd, &attr);
    sim_check(job, m->srq, "no SRQ: errno %d", errno);
    intake_init(&m->in, job, job->host[0], INTAKE_SLOTS, job->sim->options.size);
    m->in.srq = m->srq;
    for (unsigned i = 0; i < PEERS; i++) {
        pair_share_receives(&m->pair[i], 0, &m->in);
        pair_init(&m->pair[i], job, job->host[0], job->host[i + 1]);
    }
}

static bool kind_srq_step(struct job *job)
{
    struct many *m = job->state;
    bool did = false;

    for (unsigned i = 0; i < PEERS; i++) {
        did |= pair_step(&m->pair[i]);
    }
    return did;
}

static bool kind_srq_is_done(const struct job *job)
{
    const struct many *m = job->state;
    bool done = true;

    for (unsigned i = 0; i < PEERS; i++) {
        done &= pair_is_done(&m->pair[i]);
    }
    return done;
}

static void kind_srq_check(struct job *job)
{
    struct many *m = job->state;

    for (unsigned i = 0; i < PEERS; i++) {
        pair_check(&m->pair[i]);
    }
}

static void kind_srq_free(struct job *job)
{
    struct many *m = job->state;

    for (unsigned i = 0; i < PEERS; i++) {
        pair_free(&m->pair[i]);
    }
    sim_must(job, ibv_destroy_srq(m->srq));
    intake_free(&m->in);
}

const struct kind kind_srq = {
    .name = "srq",
    .about = "reliable connections of several hosts to one shared receive queue",
    .usual = true,
    .hosts = 1 + PEERS,
    .size = sizeof(struct many),
    .make = kind_srq_make,
    .step = kind_srq_step,
    .is_done = kind_srq_is_done,
    .check = kind_srq_check,
    .free = kind_srq_free,
};
