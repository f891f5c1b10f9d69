/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A kind of jobs for the simulator, in a program outside of hcasim's tree: CQs of random sizes are
 * made and destroyed, and each has as many entries as were asked for.
 *
 *     cc -o own_kind own_kind.c $(pkg-config --cflags --libs hcasim-sim)
 *     ./own_kind --workload ring --seeds 10
 */
#include <tests/sim/fabric/sim.h>

struct ring {
    uint64_t made;
};

static bool kind_ring_step(struct job *job)
{
    struct ring *ring = job->state;
    int cqe = (int)chance_from(&job->chance, 1, 4096);
    struct ibv_cq *cq = ibv_create_cq(job->host[0]->ctx, cqe, NULL, NULL, 0);

    sim_check(job, cq && cq->cqe >= cqe, "the CQ of %d entries is missing or too small", cqe);
    sim_must(job, ibv_destroy_cq(cq));
    ring->made++;
    return true;
}

static bool kind_ring_is_done(const struct job *job)
{
    return ((const struct ring *)job->state)->made >= job->sim->options.ops;
}

static void kind_ring_nothing(struct job *job)
{
}

static const struct kind kind_ring = {
    .name = "ring",
    .about = "CQs of every size",
    .hosts = 2,
    .size = sizeof(struct ring),
    .make = kind_ring_nothing,
    .step = kind_ring_step,
    .is_done = kind_ring_is_done,
    .free = kind_ring_nothing,
};

/* The simulator finds the kinds of this program here. */
const struct kind *const sim_own_kinds[] = {&kind_ring, NULL};
