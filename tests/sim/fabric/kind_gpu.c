/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two hosts with a stand-in GPU each (gpu_lane.h). The GPUs post to queues that they drive by loads
 * and stores alone: made by DevX or by verbs, RC or DC, with collapsed or ordinary CQs, in each
 * order of stores. Queues of a host may share a doorbell page, on which their doorbells replace
 * each other. All queues of a direction add to one word.
 */
#include "tests/sim/fabric/gpu_lane.h"
#include <errno.h>
#include <inttypes.h>

struct gpu_job {
    struct gpu_lane lane[GPU_LANES]; /* the odd ones go from the second host to the first */
    unsigned num;
    struct gpu_warps warps[2]; /* of each host */
    struct sim_host *host[2];
    struct sim_host newest; /* a host of the job's own, of the generation that has queues without a
                               doorbell record; or unused */
    /* Of each host: the doorbell page that its queues may share, and the word of the others. */
    struct mlx5dv_devx_uar *shared_page[2], *own_page[GPU_LANES];
    struct span shared[2];
};

static struct mlx5dv_devx_uar *kind_gpu_make_page(struct job *job, const struct sim_host *host)
{
    struct mlx5dv_devx_uar *page = hv_dv_devx_alloc_uar(host->ctx, MLX5DV_UAR_ALLOC_TYPE_NC);

    sim_check(job, page, "no doorbell page: errno %d", errno);
    return page;
}

static void kind_gpu_make_lane(struct job *job, struct gpu_job *g, unsigned n)
{
    struct chance *chance = &job->chance;
    struct sim_host *from = g->host[n % 2], *to = g->host[!(n % 2)];
    struct gpu_queue_attr attr = {
        .ctx = from->ctx,
        .pd = from->pd,
        .devx = chance_below(chance, 4),
        .dc = chance_one_in(chance, 3),
        .srq = chance_one_in(chance, 2),
        .order = (enum gpu_order)chance_below(chance, GPU_ORDERS),
    };

    if (attr.devx && from->profile && chance_one_in(chance, 2)) {
        attr.order = GPU_NO_RECORD; /* a page has room for the doorbells of one such queue */
    }
    attr.collapsed = attr.devx && chance_below(chance, 3);
    if (attr.devx && (attr.order == GPU_NO_RECORD || chance_one_in(chance, 3))) {
        g->own_page[n] = kind_gpu_make_page(job, from);
    }
    attr.uar = g->own_page[n] ? g->own_page[n] : g->shared_page[n % 2];
    sim_note(job, "lane %u: %s, %s, %s CQ, order %d, %s page", n, attr.devx ? "DevX" : "verbs",
             attr.dc ? "DC" : "RC", attr.collapsed ? "collapsed" : "ordinary", attr.order,
             g->own_page[n] ? "own" : "shared");
    gpu_lane_init(&g->lane[n], job, n, &attr, &g->warps[n % 2], from, to, &g->shared[!(n % 2)]);
}

static struct sim_host *kind_gpu_make_host(struct job *job, struct gpu_job *g)
{
    struct sim_host *host = &g->newest;

    host->number = (unsigned)job->sim->options.hosts + job->number;
    host->port = fabric_num_ports(job->sim->fabric);
    sim_check(job, host->port < FABRIC_PORTS, "there is no port for another host");
    host->profile = "cx8";
    sim_host_up(job->sim, host, fabric_plug(job->sim->fabric));
    sim_host_begin(host);
    return host;
}

static void kind_gpu_make(struct job *job)
{
    struct gpu_job *g = job->state;

    g->host[0] = chance_one_in(&job->chance, 3) ? kind_gpu_make_host(job, g) : job->host[0];
    g->host[1] = job->host[1];
    for (unsigned i = 0; i < 2; i++) {
        g->shared_page[i] = kind_gpu_make_page(job, g->host[i]);
        g->shared[i] = sim_span(job, g->host[i], sizeof(uint64_t));
    }
    g->num = (unsigned)chance_from(&job->chance, 1, GPU_LANES);
    for (unsigned n = 0; n < g->num; n++) {
        kind_gpu_make_lane(job, g, n);
    }
}

static bool kind_gpu_step(struct job *job)
{
    struct gpu_job *g = job->state;
    bool did = false;

    if (g->newest.ctx) {
        sim_poll_events(job, &g->newest);
    }
    for (unsigned n = 0; n < g->num; n++) {
        if (chance_below(&job->chance, 4)) {
            did |= gpu_lane_step(&g->lane[n]);
        }
    }
    return did;
}

static bool kind_gpu_is_done(const struct job *job)
{
    const struct gpu_job *g = job->state;
    bool done = true;

    for (unsigned n = 0; n < g->num; n++) {
        done &= gpu_lane_is_done(&g->lane[n]);
    }
    return done;
}

static void kind_gpu_check(struct job *job)
{
    const struct gpu_job *g = job->state;
    uint64_t sum[2] = {0};

    for (unsigned n = 0; n < g->num; n++) {
        gpu_lane_check(&g->lane[n]);
        sum[!(n % 2)] += gpu_lane_shared(&g->lane[n]);
    }
    for (unsigned i = 0; i < 2; i++) {
        uint64_t word;

        memcpy(&word, g->shared[i].at, sizeof(word));
        sim_check(job, word == sum[i],
                  "the shared word of host %u is 0x%" PRIx64 ", not 0x%" PRIx64, g->host[i]->number,
                  word, sum[i]);
    }
}

static void kind_gpu_free(struct job *job)
{
    struct gpu_job *g = job->state;

    for (unsigned n = 0; n < g->num; n++) {
        gpu_lane_free(&g->lane[n]);
        if (g->own_page[n]) {
            hv_dv_devx_free_uar(g->own_page[n]);
        }
    }
    for (unsigned i = 0; i < 2; i++) {
        sim_span_free(job, &g->shared[i]);
        hv_dv_devx_free_uar(g->shared_page[i]);
    }
    if (g->newest.ctx) {
        sim_host_down(&g->newest);
    }
}

const struct kind kind_gpu = {
    .name = "gpu",
    .about = "queues that a GPU drives by loads and stores alone, in the orders of its libraries",
    .usual = true,
    .hosts = 2,
    .size = sizeof(struct gpu_job),
    .make = kind_gpu_make,
    .step = kind_gpu_step,
    .is_done = kind_gpu_is_done,
    .check = kind_gpu_check,
    .free = kind_gpu_free,
};
