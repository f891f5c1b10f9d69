/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Cross channel: chains of steps over the queues of three hosts (chains.h). In each round the hosts
 * post what was drawn, piece by piece. At any time, the CQEs that are there must be CQEs that the
 * reference allows after the others; in the end, they are those of the reference, and the memory
 * has the results. Rounds in which a chain never ends are ended by a reset, or by the destruction
 * of the queues.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include "tests/sim/fabric/chains_rings.h"

#define BATCH            8u  /* posts of a host at a time, at most */
#define MOST_BEGUN       16u /* rounds of a job, at most */

#define CQE_OF_SEND      0x2
#define CQE_OF_WRITE_IMM 0x1

struct chains {
    struct chains_plan plan;
    struct chains_ring ring[CHAINS_QUEUES];
    struct mlx5dv_devx_uar *page[CHAINS_HOSTS];
    struct span memory[CHAINS_HOSTS];
    struct chains_seen seen;
    struct chains_state end; /* of the reference, with everything posted */
    unsigned posts[CHAINS_HOSTS];
    uint16_t index[CHAINS_QUEUES][CHAINS_STEPS]; /* of WQEs */
    /* Before the round: CQEs, WQEs and receives. */
    uint32_t cqes[CHAINS_QUEUES][CHAINS_HALVES];
    uint16_t wqes[CHAINS_QUEUES][CHAINS_HALVES];
    uint64_t begun;
    enum {
        CHAINS_RUNS,
        CHAINS_IS_STILL, /* everything has come; until quiet_ns nothing more may come */
        CHAINS_IS_OVER,  /* the queues are reset or gone; until quiet_ns packets are under way */
    } state;
    bool destroyed;
    uint64_t quiet_ns;
};

/* -- rounds ------------------------------------------------------------------------------------ */

static void chains_fill_memory(struct chains *c)
{
    for (unsigned h = 0; h < CHAINS_HOSTS; h++) {
        memset(c->memory[h].at, CHAINS_POISON, c->memory[h].len);
        memcpy(c->memory[h].at, c->plan.fixed[h], sizeof(c->plan.fixed[h]));
    }
}

static void chains_begin(struct chains *c)
{
    struct chains_seen all;

    chains_draw_round(&c->plan);
    chains_fill_memory(c);
    memset(&c->seen, 0, sizeof(c->seen));
    memset(c->posts, 0, sizeof(c->posts));
    memset(&all, 0xff, sizeof(all));
    for (unsigned q = 0; q < CHAINS_QUEUES; q++) {
        for (unsigned half = 0; half < CHAINS_HALVES; half++) {
            all.queue[q].posted[half] = c->plan.queue[q].num[half];
            c->cqes[q][half] = c->ring[q].cq[half].ci;
        }
        c->wqes[q][CHAINS_SENDS] = c->ring[q].wqe;
        c->wqes[q][CHAINS_RECEIVES] = c->ring[q].receive;
    }
    chains_run_reference(&c->plan, &all, &c->end);
    c->begun++;
    c->state = CHAINS_RUNS;
}

static void chains_connect(struct chains *c, const struct job *job)
{
    for (unsigned q = 0; q < CHAINS_QUEUES; q++) {
        if (c->destroyed) {
            memcpy(c->ring[q].managed, c->plan.queue[q].managed, sizeof(c->ring[q].managed));
            chains_ring_make(&c->ring[q], job);
        }
    }
    for (unsigned q = 0; q < CHAINS_QUEUES; q++) {
        struct chains_ring *const ends[] = {&c->ring[q], &c->ring[c->plan.queue[q].peer]};

        if (q <= c->plan.queue[q].peer) {
            chains_ring_connect(ends, job);
        }
    }
    c->destroyed = false;
}

/* -- posting ----------------------------------------------------------------------------------- */

static struct chains_names chains_name(const struct chains *c, unsigned q,
                                       const struct chains_step *step)
{
    unsigned near = c->plan.queue[q].host, far = c->plan.queue[c->plan.queue[q].peer].host;
    struct chains_names names = {.on = &c->ring[step->queue],
                                 .near = {(uintptr_t)c->memory[near].at, c->memory[near].mr->lkey},
                                 .far = {(uintptr_t)c->memory[far].at, c->memory[far].mr->rkey}};

    names.index = step->what == CHAINS_WAIT
                      ? (c->cqes[step->queue][step->half] + step->count - 1) & 0xffffff
                      : (uint16_t)(c->wqes[step->queue][step->half] + step->count);
    return names;
}

static void chains_post(struct chains *c, struct chains_post post)
{
    const struct chains_queue *queue = &c->plan.queue[post.queue];
    struct chains_ring *ring = &c->ring[post.queue];
    unsigned nth = c->seen.queue[post.queue].posted[post.half]++;
    const struct span *memory = &c->memory[queue->host];

    if (post.half == CHAINS_RECEIVES) {
        chains_ring_write_receive(
            ring, (uintptr_t)memory->at + queue->receive[nth] * CHAINS_ELEMENT, memory->mr->lkey);
    } else {
        const struct chains_names names = chains_name(c, post.queue, &queue->step[nth]);

        c->index[post.queue][nth] = chains_ring_write(ring, &queue->step[nth], &names);
    }
}

/* A host posts some of its steps and receives, and then rings. A managed queue has no doorbell; if
 * software rings nevertheless, nothing happens. */
static bool chains_step_posts(struct chains *c, unsigned h, struct chance *chance)
{
    unsigned n = (unsigned)chance_below(chance, BATCH + 1), did = 0;

    while (did < n && c->posts[h] < c->plan.posts[h]) {
        chains_post(c, c->plan.post[h][c->posts[h]++]);
        did++;
    }
    for (unsigned q = 3 * h; did && q < 3 * h + 3; q++) {
        if (!c->ring[q].managed[CHAINS_SENDS] || chance_one_in(chance, 4)) {
            chains_ring_tell(&c->ring[q]);
        }
    }
    return did;
}

/* -- results ----------------------------------------------------------------------------------- */

/* The step whose CQE is the nth of the send queue in this round, or the message whose receive it
 * is. */
static unsigned chains_step_of(const struct chains_queue *queue, unsigned nth, bool receives)
{
    unsigned i = 0;

    for (;; i++) {
        const struct chains_step *step = &queue->step[i];
        bool counts =
            receives ? step->what == CHAINS_SEND || step->what == CHAINS_WRITE_IMM : step->signaled;

        if (counts && nth-- == 0) {
            return i;
        }
    }
}

static void chains_take(struct chains *c, const struct job *job, unsigned q, enum chains_half half,
                        const struct gpu_cqe *cqe)
{
    bool receives = half == CHAINS_RECEIVES;
    const struct chains_queue *queue = &c->plan.queue[receives ? c->plan.queue[q].peer : q];
    unsigned nth = c->seen.queue[q].cqes[half]++, at;

    sim_check(job, nth < c->end.queue[q].cqes[half],
              "CQE %u of the %s of queue %u: the chains do not come so far", nth,
              receives ? "receives" : "sends", q);
    at = chains_step_of(queue, nth, receives);
    if (receives) {
        bool imm = queue->step[at].what == CHAINS_WRITE_IMM;

        sim_check(job,
                  cqe->opcode == (imm ? CQE_OF_WRITE_IMM : CQE_OF_SEND) &&
                      cqe->index == (uint16_t)(c->wqes[q][half] + nth),
                  "receive %u of queue %u: CQE with opcode %u of WQE %u", nth, q, cqe->opcode,
                  cqe->index);
    } else {
        sim_check(job, cqe->opcode == 0 && cqe->index == c->index[q][at],
                  "step %u of queue %u: CQE with opcode %u, syndrome 0x%x, of WQE %u and not %u",
                  at, q, cqe->opcode, cqe->syndrome, cqe->index, c->index[q][at]);
    }
    job->sim->tally.checks++;
}

static bool chains_poll(struct chains *c, const struct job *job)
{
    struct gpu_cqe cqe;
    bool did = false;

    for (unsigned q = 0; q < CHAINS_QUEUES; q++) {
        for (unsigned half = 0; half < CHAINS_HALVES; half++) {
            while (gpu_poll(&c->ring[q].cq[half], &cqe)) {
                chains_take(c, job, q, (enum chains_half)half, &cqe);
                did = true;
            }
        }
    }
    return did;
}

/* No CQE is there too early: with only these CQEs and posts, the reference comes as far. */
static void chains_check_order(struct chains *c, const struct job *job)
{
    struct chains_state state;

    chains_run_reference(&c->plan, &c->seen, &state);
    for (unsigned q = 0; q < CHAINS_QUEUES; q++) {
        for (unsigned half = 0; half < CHAINS_HALVES; half++) {
            sim_check(job, state.queue[q].cqes[half] == c->seen.queue[q].cqes[half],
                      "queue %u has CQE %u of its %s, which others do not allow yet", q,
                      state.queue[q].cqes[half], half == CHAINS_SENDS ? "sends" : "receives");
        }
    }
}

static bool chains_has_all(const struct chains *c)
{
    for (unsigned q = 0; q < CHAINS_QUEUES; q++) {
        for (unsigned half = 0; half < CHAINS_HALVES; half++) {
            if (c->seen.queue[q].cqes[half] != c->end.queue[q].cqes[half]) {
                return false;
            }
        }
    }
    for (unsigned h = 0; h < CHAINS_HOSTS; h++) {
        if (c->posts[h] != c->plan.posts[h]) {
            return false;
        }
    }
    return true;
}

/* -- the end of a round ------------------------------------------------------------------------ */

static void chains_expect(uint8_t *want, unsigned slot, const struct chains_step *step)
{
    memcpy(want + (size_t)slot * CHAINS_ELEMENT, step->result, CHAINS_ELEMENT);
}

/* The memory of a host has the results of all messages that arrive, and nothing else. */
static void chains_check_memory(const struct chains *c, const struct job *job, unsigned host)
{
    g_autofree uint8_t *want = g_malloc(CHAINS_SLOTS * CHAINS_ELEMENT);
    const struct chains_plan *plan = &c->plan;

    memset(want, CHAINS_POISON, CHAINS_SLOTS * CHAINS_ELEMENT);
    memcpy(want, plan->fixed[host], sizeof(plan->fixed[host]));
    for (unsigned q = 0; q < CHAINS_QUEUES; q++) {
        const struct chains_queue *queue = &plan->queue[q], *peer = &plan->queue[queue->peer];
        unsigned taken = 0;

        for (unsigned i = 0; i < c->end.queue[q].delivered; i++) {
            const struct chains_step *step = &queue->step[i];
            bool takes = step->what == CHAINS_SEND || step->what == CHAINS_WRITE_IMM;

            if (step->what == CHAINS_READ && queue->host == host) {
                chains_expect(want, step->to, step);
            } else if (step->what >= CHAINS_SEND && step->what != CHAINS_READ &&
                       peer->host == host) {
                chains_expect(want, step->what == CHAINS_SEND ? peer->receive[taken] : step->to,
                              step);
            }
            taken += takes;
        }
    }
    for (unsigned slot = 0; slot < CHAINS_SLOTS; slot++) {
        const size_t at = (size_t)slot * CHAINS_ELEMENT;

        sim_check(job, !memcmp(c->memory[host].at + at, want + at, CHAINS_ELEMENT),
                  "slot %u of host %u has other bytes than the reference", slot, host);
    }
}

static bool chains_is_complete(const struct chains *c)
{
    for (unsigned q = 0; q < CHAINS_QUEUES; q++) {
        if (c->end.queue[q].done != c->plan.queue[q].num[CHAINS_SENDS] ||
            c->end.queue[q].taken != c->plan.queue[q].num[CHAINS_RECEIVES]) {
            return false;
        }
    }
    return true;
}

/* Ends the round. If everything is complete, the queues may go on as they are. */
static void chains_end(struct chains *c, struct job *job)
{
    bool complete = chains_is_complete(c);

    for (unsigned h = 0; h < CHAINS_HOSTS; h++) {
        chains_check_memory(c, job, h);
    }
    for (unsigned q = 0; q < CHAINS_QUEUES; q++) {
        job->sim->tally.messages += c->end.queue[q].delivered;
    }
    sim_note(job, "round %" PRIu64 " is %s", c->begun,
             complete ? "complete" : "stuck, as it must be");
    if (complete && chance_below(&job->chance, 4)) {
        c->quiet_ns = 0;
    } else {
        c->destroyed = chance_one_in(&job->chance, 4);
        for (unsigned q = 0; q < CHAINS_QUEUES; q++) {
            if (c->destroyed) {
                chains_ring_destroy(&c->ring[q], job);
            } else {
                chains_ring_reset(&c->ring[q]);
            }
        }
        if (c->destroyed) {
            chains_draw_queues(&c->plan);
        }
        c->quiet_ns = sim_quiet_ns(job->sim);
    }
    c->state = CHAINS_IS_OVER;
}

static uint64_t chains_limit(const struct job *job)
{
    return MIN(1 + job->sim->options.ops / 16, MOST_BEGUN);
}

static bool chains_step_over(struct chains *c, struct job *job)
{
    if (c->begun == chains_limit(job) || job->sim->world->now_ns < c->quiet_ns) {
        return false;
    }
    if (c->quiet_ns) {
        chains_connect(c, job);
    }
    chains_begin(c);
    return true;
}

/* -- the kind ---------------------------------------------------------------------------------- */

static void kind_chains_make(struct job *job)
{
    struct chains *c = job->state;

    c->plan.job = job;
    chains_draw_queues(&c->plan);
    for (unsigned h = 0; h < CHAINS_HOSTS; h++) {
        c->page[h] = hv_dv_devx_alloc_uar(job->host[h]->ctx, MLX5DV_UAR_ALLOC_TYPE_NC);
        sim_check(job, c->page[h], "no doorbell page: errno %d", errno);
        c->memory[h] = sim_span(job, job->host[h], CHAINS_SLOTS * CHAINS_ELEMENT);
    }
    for (unsigned q = 0; q < CHAINS_QUEUES; q++) {
        c->ring[q].host = job->host[c->plan.queue[q].host];
        c->ring[q].page = c->page[c->plan.queue[q].host];
        c->ring[q].memory = sim_memory(job->sim, CHAINS_RING_BYTES);
    }
    c->destroyed = true;
    chains_connect(c, job);
    chains_begin(c);
}

static bool kind_chains_step(struct job *job)
{
    struct chains *c = job->state;
    bool did = false;

    if (c->state == CHAINS_IS_OVER) {
        return chains_step_over(c, job);
    }
    for (unsigned h = 0; h < CHAINS_HOSTS; h++) {
        did |= chains_step_posts(c, h, &job->chance);
    }
    if (chains_poll(c, job)) {
        chains_check_order(c, job);
        did = true;
    }
    if (c->state == CHAINS_RUNS && chains_has_all(c)) {
        c->state = CHAINS_IS_STILL;
        c->quiet_ns = sim_quiet_ns(job->sim);
        return true;
    }
    if (c->state == CHAINS_IS_STILL && job->sim->world->now_ns >= c->quiet_ns) {
        chains_end(c, job);
        return true;
    }
    return did;
}

static bool kind_chains_is_done(const struct job *job)
{
    const struct chains *c = job->state;

    return c->state == CHAINS_IS_OVER && c->begun == chains_limit(job);
}

static void kind_chains_free(struct job *job)
{
    struct chains *c = job->state;

    for (unsigned q = 0; q < CHAINS_QUEUES && !c->destroyed; q++) {
        chains_ring_destroy(&c->ring[q], job);
    }
    for (unsigned h = 0; h < CHAINS_HOSTS; h++) {
        sim_span_free(job, &c->memory[h]);
        hv_dv_devx_free_uar(c->page[h]);
    }
}

const struct kind kind_chains = {
    .name = "chains",
    .about = "cross channel: queues that wait for CQEs, enable other queues and calculate",
    .usual = true,
    .hosts = CHAINS_HOSTS,
    .size = sizeof(struct chains),
    .make = kind_chains_make,
    .step = kind_chains_step,
    .is_done = kind_chains_is_done,
    .free = kind_chains_free,
};
