/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Some hosts, each with a reliable connection to one host that receives all messages through a
 * shared receive queue. A failing connection takes no receives from the others.
 *
 * Now and then the queue is armed: when fewer receives than its limit wait in it, there is one
 * event, and none before (IBTA 10.2.9.2). A receive waits until a message takes it, which the
 * program does not see. But no more receives are taken than messages were sent, and no fewer than
 * messages were received.
 */
#include "tests/sim/fabric/pair.h"
#include <errno.h>

#define PEERS (JOB_HOSTS - 1)

struct many {
    struct ibv_srq *srq;
    struct intake in;
    struct sim_told told;
    struct pair pair[PEERS];
    /* 0: the queue is not armed */
    unsigned limit; /* 0: the queue is not armed */
    bool may, must; /* whether the event may or must come */
    uint64_t must_ns;
};

/* -- the limit --------------------------------------------------------------------------------- */

/* Returns how many receives messages may have taken that are not completed. */
static uint64_t kind_srq_taken(const struct many *m)
{
    uint64_t n = 0;

    for (unsigned i = 0; i < PEERS; i++) {
        const struct flow *flow = &m->pair[i].flow[1];

        n += flow->owed - flow->received + flow->doomed;
    }
    return n;
}

static void kind_srq_look_at_limit(struct job *job, struct many *m)
{
    m->may |= m->limit && m->in.posted < m->limit + kind_srq_taken(m);
    if (!m->must && m->in.posted < m->limit) {
        m->must = true;
        m->must_ns = job->sim->world->now_ns + SIM_MS + 20 * job->sim->options.whims;
    }
}

static void kind_srq_arm(struct job *job, struct many *m)
{
    struct ibv_srq_attr attr = {.srq_limit =
                                    (uint32_t)chance_from(&job->chance, 1, INTAKE_SLOTS - 1)};

    m->limit = attr.srq_limit;
    m->may = m->must = false;
    kind_srq_look_at_limit(job, m);
    sim_must(job, ibv_modify_srq(m->srq, &attr, IBV_SRQ_LIMIT));
    sim_note(job, "armed: %u receives wait, the limit is %u", m->in.posted, m->limit);
}

/* After its event the queue is no longer armed. */
static void kind_srq_query_limit(struct job *job, struct many *m)
{
    struct ibv_srq_attr attr;

    sim_must(job, ibv_query_srq(m->srq, &attr));
    sim_check(job, attr.srq_limit == m->limit || (!attr.srq_limit && m->may),
              "the limit is %u, and was set to %u", attr.srq_limit, m->limit);
    sim_check(job, !attr.srq_limit || !m->must,
              "the queue is armed, with %u receives where %u are the limit", m->in.posted,
              m->limit);
}

static bool kind_srq_step_limit(struct job *job, struct many *m)
{
    unsigned *events = &m->told.n[IBV_EVENT_SRQ_LIMIT_REACHED];

    kind_srq_look_at_limit(job, m);
    if (*events) {
        sim_check(job, m->limit && m->may && *events == 1,
                  "%u events of a queue with %u receives, whose limit is %u", *events, m->in.posted,
                  m->limit);
        sim_note(job, "the limit was reached");
        *events = m->limit = 0;
        m->must = false;
        job->sim->tally.checks++;
        return true;
    }
    sim_check(job, !m->must || job->sim->world->now_ns < m->must_ns,
              "no event tells that fewer than %u receives wait", m->limit);
    if (chance_one_in(&job->chance, 64)) {
        if (m->limit) {
            kind_srq_query_limit(job, m);
        } else {
            kind_srq_arm(job, m);
        }
    }
    return false;
}

/* -- the job ----------------------------------------------------------------------------------- */

static void kind_srq_make(struct job *job)
{
    struct many *m = job->state;
    struct ibv_srq_init_attr attr = {.srq_context = &m->told,
                                     .attr = {.max_wr = INTAKE_SLOTS, .max_sge = 1}};

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
        kind_srq_look_at_limit(job, m); /* posting receives may hide that the limit was reached */
        did |= pair_step(&m->pair[i]);
    }
    did |= kind_srq_step_limit(job, m);
    return did;
}

static bool kind_srq_is_done(const struct job *job)
{
    const struct many *m = job->state;
    bool done = !m->must;

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
    .about = "reliable connections of several hosts to one shared receive queue, and its limit",
    .usual = true,
    .hosts = 1 + PEERS,
    .size = sizeof(struct many),
    .make = kind_srq_make,
    .step = kind_srq_step,
    .is_done = kind_srq_is_done,
    .check = kind_srq_check,
    .free = kind_srq_free,
};
