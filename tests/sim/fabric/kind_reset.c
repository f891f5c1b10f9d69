/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A host whose HCA disappears and returns, again and again, while it has connections with others:
 * its function is reset, or its driver is removed and loaded again. Its peers find out: their
 * outstanding work ends in time, with a retry counter exceeded or flushed. Packets that were sent
 * to the old life reach the new one, which has the same addresses, queue pair numbers and keys.
 * They write nothing, neither where the old life had its memory nor in the new one's. Each life
 * begins with the same resources as the first.
 *
 * The host is the job's own; the peers are any hosts.
 */
#include "tests/sim/fabric/pair.h"
#include <string.h>

#define PEERS 2u
#define LIVES 4u /* the most lives */

struct reset {
    struct sim_host host;
    struct wire_port *port;
    unsigned number; /* number of the port */
    unsigned life, lives;
    struct sim_host first; /* its resources when it was new */
    struct pair pair[PEERS];
    bool is_down;
    uint64_t up_ns;
    struct span graves[LIVES * PEERS * PAIR_GRAVES];
    unsigned num_graves;
};

static void kind_reset_begin_life(struct job *job, struct reset *r)
{
    sim_host_up(job->sim, &r->host, r->port);
    sim_host_begin(&r->host);
    if (!r->life++) {
        r->first = r->host;
    }
    sim_check(job,
              r->host.objects == r->first.objects && r->host.icm == r->first.icm &&
                  r->host.memory == r->first.memory,
              "life %u begins with %" G_GUINT64_FORMAT " objects, %" G_GUINT64_FORMAT
              " bytes of ICM, %" G_GUINT64_FORMAT " of memory, and the first with"
              " %" G_GUINT64_FORMAT ", %" G_GUINT64_FORMAT ", %" G_GUINT64_FORMAT,
              r->life, r->host.objects, r->host.icm, r->host.memory, r->first.objects, r->first.icm,
              r->first.memory);
    r->is_down = false;
    sim_note(job, "begins life %u", r->life);
}

static void kind_reset_connect(struct job *job, struct reset *r)
{
    for (unsigned i = 0; i < PEERS; i++) {
        memset(&r->pair[i], 0, sizeof(r->pair[i]));
        pair_init(&r->pair[i], job, &r->host, job->host[i]);
    }
}

static void kind_reset_make(struct job *job)
{
    struct reset *r = job->state;

    r->host.number = (unsigned)job->sim->options.hosts + job->number;
    r->number = fabric_num_ports(job->sim->fabric);
    sim_check(job, r->number < FABRIC_PORTS, "there is no port for another host");
    r->host.port = r->number;
    r->port = fabric_plug(job->sim->fabric);
    r->lives = (unsigned)chance_from(&job->chance, 2, LIVES);
    kind_reset_begin_life(job, r);
    kind_reset_connect(job, r);
}

/* Ends the life now, whatever it does. Its peers are alone for longer than they retransmit
 * anything, or for no time. */
static void kind_reset_end_life(struct job *job, struct reset *r)
{
    struct chance *chance = &job->chance;
    bool reset = chance_one_in(chance, 2);

    sim_note(job, reset ? "its function is reset" : "its driver is taken out");
    if (reset) {
        sim_host_reset(&r->host);
    }
    for (unsigned i = 0; i < PEERS; i++) {
        pair_bury(&r->pair[i], &r->graves[r->num_graves],
                  chance_one_in(chance, 2) ? 3 * SIM_SECOND : chance_below(chance, 10 * SIM_MS));
        r->num_graves += PAIR_GRAVES;
    }
    sim_host_down(&r->host);
    r->port = fabric_plug_again(job->sim->fabric, r->number);
    r->is_down = true;
    r->up_ns = job->sim->world->now_ns +
               chance_below(chance, chance_one_in(chance, 2) ? 1000 : SIM_SECOND);
}

/* Checks that nothing has been written to the memory of a life since it ended. */
static void kind_reset_check_graves(struct job *job, const struct reset *r)
{
    for (unsigned i = 0; i < r->num_graves; i++) {
        const struct span *grave = &r->graves[i];

        sim_check(job, !grave->at[0] && !memcmp(grave->at, grave->at + 1, grave->len - 1),
                  "memory of a life that is over was written to");
    }
}

static bool kind_reset_is_over(const struct reset *r)
{
    bool over = true;

    for (unsigned i = 0; i < PEERS; i++) {
        over &= r->pair[i].state == PAIR_IS_OVER;
    }
    return over;
}

static bool kind_reset_step(struct job *job)
{
    struct reset *r = job->state;
    bool did = false, has_gone = r->pair[0].end[0].gone;

    if (!r->is_down) {
        sim_poll_events(job, &r->host);
    }
    for (unsigned i = 0; i < PEERS; i++) {
        did |= pair_step(&r->pair[i]);
    }
    if (r->is_down && job->sim->world->now_ns >= r->up_ns) {
        kind_reset_begin_life(job, r);
        return true;
    }
    if (has_gone && !r->is_down && kind_reset_is_over(r)) {
        for (unsigned i = 0; i < PEERS; i++) {
            pair_free(&r->pair[i]);
        }
        kind_reset_check_graves(job, r);
        kind_reset_connect(job, r);
        return true;
    }
    if (!has_gone && r->life < r->lives && chance_one_in(&job->chance, 50)) {
        kind_reset_end_life(job, r);
        return true;
    }
    return did;
}

static bool kind_reset_is_done(const struct job *job)
{
    const struct reset *r = job->state;
    bool done = r->life == r->lives;

    for (unsigned i = 0; i < PEERS; i++) {
        done &= pair_is_done(&r->pair[i]);
    }
    return done;
}

static void kind_reset_check(struct job *job)
{
    struct reset *r = job->state;

    for (unsigned i = 0; i < PEERS; i++) {
        pair_check(&r->pair[i]);
    }
    kind_reset_check_graves(job, r);
}

static void kind_reset_free(struct job *job)
{
    struct reset *r = job->state;

    for (unsigned i = 0; i < PEERS; i++) {
        pair_free(&r->pair[i]);
    }
    sim_host_down(&r->host);
}

const struct kind kind_reset = {
    .name = "reset",
    .about = "a host whose function is reset, or its driver reloaded, under traffic",
    .usual = true,
    .hosts = PEERS,
    .size = sizeof(struct reset),
    .make = kind_reset_make,
    .step = kind_reset_step,
    .is_done = kind_reset_is_done,
    .check = kind_reset_check,
    .free = kind_reset_free,
};
