/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The reference of chains: which steps start, which messages arrive, and which CQEs there are, when
 * nothing goes on any more. The order in which queues take their turns does not matter: no step
 * takes anything from another one.
 */
#include "tests/sim/fabric/chains.h"

struct reference {
    const struct chains_plan *plan;
    const struct chains_seen *most;
    struct chains_state *state;
};

static bool ref_is_held_by_fence(const struct reference *r, unsigned q, unsigned step)
{
    const struct chains_step *steps = r->plan->queue[q].step;
    unsigned done = r->state->queue[q].done;

    for (unsigned i = done; i < step; i++) {
        if (steps[step].fence == 3 || (steps[step].fence && steps[i].what == CHAINS_READ)) {
            return true;
        }
    }
    return false;
}

/* The next step of the queue starts, if it may. */
static bool ref_start(const struct reference *r, unsigned q)
{
    const struct chains_queue *queue = &r->plan->queue[q];
    unsigned nth = r->state->queue[q].started;
    const struct chains_step *step = &queue->step[nth];

    if (nth == r->most->queue[q].posted[CHAINS_SENDS] ||
        (queue->managed[CHAINS_SENDS] && nth >= r->state->queue[q].enabled[CHAINS_SENDS]) ||
        ref_is_held_by_fence(r, q, nth) ||
        (step->what == CHAINS_WAIT &&
         r->state->queue[step->queue].cqes[step->half] < step->count)) {
        return false;
    }
    if (step->what == CHAINS_ENABLE) {
        unsigned *enabled = &r->state->queue[step->queue].enabled[step->half];

        *enabled = MAX(*enabled, step->count);
    }
    r->state->queue[q].started++;
    return true;
}

/* Messages arrive in order. A SEND, and a WRITE with immediate, need a receive. */
static bool ref_deliver(const struct reference *r, unsigned q)
{
    unsigned nth = r->state->queue[q].delivered, p = r->plan->queue[q].peer;
    enum chains_what what = r->plan->queue[q].step[nth].what;

    if (nth == r->state->queue[q].started) {
        return false;
    }
    if (what == CHAINS_SEND || what == CHAINS_WRITE_IMM) {
        unsigned taken = r->state->queue[p].taken;

        if (taken == r->most->queue[p].posted[CHAINS_RECEIVES] ||
            taken == r->most->queue[p].cqes[CHAINS_RECEIVES] ||
            (r->plan->queue[p].managed[CHAINS_RECEIVES] &&
             taken >= r->state->queue[p].enabled[CHAINS_RECEIVES])) {
            return false;
        }
        r->state->queue[p].cqes[CHAINS_RECEIVES] = ++r->state->queue[p].taken;
    }
    r->state->queue[q].delivered++;
    return true;
}

/* Steps complete in order. */
static bool ref_complete(const struct reference *r, unsigned q)
{
    unsigned nth = r->state->queue[q].done, *cqes = &r->state->queue[q].cqes[CHAINS_SENDS];
    bool signaled = r->plan->queue[q].step[nth].signaled;

    if (nth == r->state->queue[q].delivered ||
        (signaled && *cqes == r->most->queue[q].cqes[CHAINS_SENDS])) {
        return false;
    }
    *cqes += signaled;
    r->state->queue[q].done++;
    return true;
}

void chains_run_reference(const struct chains_plan *plan, const struct chains_seen *most,
                          struct chains_state *state)
{
    const struct reference r = {plan, most, state};
    bool did = true;

    *state = (struct chains_state){0};
    while (did) {
        did = false;
        for (unsigned q = 0; q < CHAINS_QUEUES; q++) {
            did |= ref_start(&r, q) || ref_deliver(&r, q) || ref_complete(&r, q);
        }
    }
}
