/* SPDX-License-Identifier: BSD-2-Clause */
/* A table of kinds of jobs for tests: kind_rc works, and the others fail, each in its way. */
#include <string.h>
#include "fw/fw_internal.h"
#include "guest-lib/host/local_internal.h"
#include "guest-lib/verbs/kernel/hca.h"
#include "model/rdma/flight.h"
#include "model/rdma/qp.h"
#include "tests/sim/fabric/pair.h"

extern const struct kind kind_rc;

struct liar {
    unsigned steps;
    struct ibv_mr *mr;
    uint8_t bytes[64];
};

static void liar_make(struct job *job)
{
}

/* Reports a failure in its tenth step, if it has that many operations. */
static bool liar_step(struct job *job)
{
    struct liar *liar = job->state;

    sim_check(job, liar->steps < 10, "is a liar");
    liar->steps++;
    return true;
}

static bool liar_is_done(const struct job *job)
{
    return ((const struct liar *)job->state)->steps >= job->sim->options.ops;
}

static void liar_free(struct job *job)
{
}

static const struct kind kind_liar = {.name = "liar",
                                      .hosts = 2,
                                      .size = sizeof(struct liar),
                                      .make = liar_make,
                                      .step = liar_step,
                                      .is_done = liar_is_done,
                                      .free = liar_free};

/* Never ends. */
static bool idler_step(struct job *job)
{
    return false;
}

static bool idler_is_done(const struct job *job)
{
    return false;
}

static const struct kind kind_idler = {.name = "idler",
                                       .hosts = 2,
                                       .size = 1,
                                       .make = liar_make,
                                       .step = idler_step,
                                       .is_done = idler_is_done,
                                       .free = liar_free};

/* Does not destroy what it made. */
static void leaker_make(struct job *job)
{
    struct ibv_cq *cq = ibv_create_cq(job->host[0]->ctx, 16, NULL, NULL, 0);

    sim_check(job, cq, "no CQ");
}

static const struct kind kind_leaker = {.name = "leaker",
                                        .hosts = 2,
                                        .size = sizeof(struct liar),
                                        .make = leaker_make,
                                        .step = idler_step,
                                        .is_done = liar_is_done,
                                        .free = liar_free};

/* A connection whose first host loses its queues' ACK timers, or their turns. */
static void robber_make(struct job *job)
{
    kind_rc.make(job);
}

static void robber_rob(const struct sim_host *host, bool timers)
{
    struct hca *hca = &hv_context(host->ctx)->hca->local->fw->hca;

    OBJ_TABLE_FOREACH (obj, &hca->qpns) {
        struct qp *qp = (struct qp *)obj;

        if (obj->kind == OBJ_QP && !timers) {
            hca_unschedule(&qp->req.work);
        } else if (obj->kind == OBJ_QP && qp->req.flight) {
            hca_timer_stop(hca, &qp->req.flight->timer);
        }
    }
}

static bool robber_step(struct job *job)
{
    bool did = kind_rc.step(job);

    robber_rob(job->host[0], job->number % 2);
    return did;
}

static bool robber_is_done(const struct job *job)
{
    return kind_rc.is_done(job);
}

static void robber_free(struct job *job)
{
    kind_rc.free(job);
}

/* kind_rc's state is a struct pair. */
static const struct kind kind_robber = {.name = "robber",
                                        .hosts = 2,
                                        .size = sizeof(struct pair),
                                        .make = robber_make,
                                        .step = robber_step,
                                        .is_done = robber_is_done,
                                        .free = robber_free};

static const struct kind *const kinds[] = {&kind_rc,     &kind_liar,   &kind_idler,
                                           &kind_leaker, &kind_robber, NULL};

const struct kind *kind_at(unsigned nth)
{
    return kinds[nth];
}

const struct kind *kind_find(const char *name)
{
    for (unsigned i = 0; kinds[i]; i++) {
        if (!strcmp(kinds[i]->name, name)) {
            return kinds[i];
        }
    }
    return NULL;
}
