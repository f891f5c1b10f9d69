/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory regions that are deregistered, registered again and changed while they are read, written
 * and sent from, and QPs that are destroyed meanwhile. Once a call has returned, a removed key lets
 * no operation in, not even an operation under way.
 */
#include "tests/sim/fabric/reach.h"
#include <errno.h>

#define EVERYTHING                                                                                 \
    (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |                   \
     IBV_ACCESS_REMOTE_ATOMIC)

struct region {
    struct place place;
    uint8_t *memory[2]; /* the region uses one of them */
    unsigned which;
    struct ibv_mr *mr; /* NULL: not registered */
    bool goes;         /* deregister when it is not in use */
};

struct dereg {
    struct reach reach; /* first member, so a pointer to it is also one to the struct */
    struct region region[2][REACH_PLACES];
};

/* The address identifies the region, so a key that was given to another region is noticed. */
static void dereg_lay(struct region *g, unsigned which)
{
    g->which = which;
    g->place.part[0] = (struct place_part){g->memory[which], place_bytes(&g->place)};
    g->place.num_parts = 1;
    place_fill(&g->place);
}

static void dereg_opened(struct region *g, unsigned access)
{
    place_open(&g->place, (uintptr_t)g->memory[g->which], g->mr->rkey, PLACE_LOCAL | access);
}

static void dereg_register(struct region *g)
{
    struct place *p = &g->place;

    if (!p->busy) {
        dereg_lay(g, (unsigned)chance_below(&p->job->chance, 2));
    }
    g->mr = ibv_reg_mr(p->host->pd, g->memory[g->which], place_bytes(p), EVERYTHING);
    sim_check(p->job, g->mr, "no region: errno %d", errno);
    dereg_opened(g, EVERYTHING);
}

static void dereg_deregister(struct reach *r, struct region *g)
{
    sim_note(r->job, "host %u deregisters 0x%x", g->place.host->number, g->place.key);
    reach_loses(r, &g->place, PLACE_ALL);
    sim_must(r->job, ibv_dereg_mr(g->mr));
    g->mr = NULL;
    reach_has_lost(r, &g->place);
    g->place.rests = false;
}

/* Changes the rights, and keeps the key. More rights could let an operation succeed that had failed
 * for lack of them. Therefore a region in use only loses rights. */
static void dereg_change_rights(struct reach *r, struct region *g)
{
    struct place *p = &g->place;
    unsigned had = p->rights & EVERYTHING;
    unsigned access = (unsigned)chance_next(&r->job->chance) & EVERYTHING & (p->busy ? had : ~0u);

    access |= IBV_ACCESS_LOCAL_WRITE;
    sim_note(r->job, "host %u changes the rights of 0x%x to 0x%x", p->host->number, p->key, access);
    reach_loses(r, p, had & ~access);
    sim_must(r->job, ibv_rereg_mr(g->mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, (int)access));
    reach_has_lost(r, p);
    sim_check(r->job, g->mr->rkey == p->key, "a region with other rights has another key");
    p->rights |= access;
    p->rests = false;
}

/* Registers memory, possibly another one, with another key. */
static void dereg_move(struct reach *r, struct region *g)
{
    struct place *p = &g->place;
    unsigned to = p->busy ? g->which : (unsigned)chance_below(&r->job->chance, 2);

    sim_note(r->job, "host %u moves 0x%x", p->host->number, p->key);
    reach_loses(r, p, PLACE_ALL);
    sim_must(r->job,
             ibv_rereg_mr(g->mr, IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_ACCESS, NULL,
                          g->memory[to], place_bytes(p), EVERYTHING));
    reach_has_lost(r, p);
    if (!p->busy) {
        dereg_lay(g, to);
    }
    dereg_opened(g, EVERYTHING);
}

/* Waits until the region is not in use, or does not wait. */
static bool dereg_step_region(struct reach *r, struct region *g)
{
    if (!g->mr) {
        if (chance_one_in(&r->job->chance, 4)) {
            dereg_register(g);
            return true;
        }
        return false;
    }
    if (!g->goes) {
        g->goes = chance_one_in(&r->job->chance, 16);
        g->place.rests = g->goes && !reach_may_be_rude(r);
    }
    if (!g->goes || (g->place.rests && g->place.busy)) {
        return false;
    }
    g->goes = false;
    switch (chance_below(&r->job->chance, 4)) {
    case 0:
        dereg_change_rights(r, g);
        break;
    case 1:
        dereg_move(r, g);
        break;
    default:
        dereg_deregister(r, g);
    }
    return true;
}

static void kind_dereg_make(struct job *job)
{
    struct dereg *d = job->state;

    for (unsigned i = 0; i < 2 * REACH_PLACES; i++) {
        struct region *g = &d->region[i % 2][i / 2];

        place_init(&g->place, job, job->host[i % 2]);
        g->memory[0] = sim_memory(job->sim, place_bytes(&g->place));
        g->memory[1] = sim_memory(job->sim, place_bytes(&g->place));
        dereg_register(g);
        d->reach.near[i % 2][i / 2] = d->reach.far[i % 2][i / 2] = &g->place;
    }
    d->reach.make_qp = reach_make_qp;
    reach_init(&d->reach, job);
}

static bool kind_dereg_step(struct job *job)
{
    struct dereg *d = job->state;
    struct reach_conn *c = &d->reach.conn[chance_below(&job->chance, REACH_CONNS)];
    bool did = reach_step(&d->reach);

    did |= dereg_step_region(
        &d->reach,
        &d->region[chance_below(&job->chance, 2)][chance_below(&job->chance, REACH_PLACES)]);
    if (chance_happens(&job->chance, (unsigned)job->sim->options.errors) &&
        c->state == REACH_RUNS) {
        reach_end_conn(&d->reach, c, chance_below(&job->chance, 4));
    }
    return did;
}

static bool kind_dereg_is_done(const struct job *job)
{
    return reach_is_done(job->state);
}

static void kind_dereg_check(struct job *job)
{
    reach_check(job->state);
}

static void kind_dereg_free(struct job *job)
{
    struct dereg *d = job->state;

    reach_free(&d->reach);
    for (unsigned i = 0; i < 2 * REACH_PLACES; i++) {
        struct region *g = &d->region[i % 2][i / 2];

        if (g->mr) {
            sim_must(job, ibv_dereg_mr(g->mr));
        }
        place_free(&g->place);
    }
}

const struct kind kind_dereg = {
    .name = "dereg",
    .about = "regions that are deregistered and changed under traffic, QPs that are destroyed",
    .usual = true,
    .hosts = 2,
    .size = sizeof(struct dereg),
    .make = kind_dereg_make,
    .step = kind_dereg_step,
    .is_done = kind_dereg_is_done,
    .check = kind_dereg_check,
    .free = kind_dereg_free,
};
