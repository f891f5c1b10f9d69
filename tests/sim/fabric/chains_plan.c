/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Draws rounds of chains.
 *
 * The operands of a message are slots that are never written to, or results that are known to be
 * there when the message starts: its queue, or the owner that enables it, has waited for their CQE
 * before. Each result has a slot of its own. So the bytes of a result do not depend on the order in
 * which queues take their turns.
 *
 * Most rounds are to end: they wait only for what the steps before suffice for, and in the end
 * everything is enabled and has its receive. In the others chains may hang, and some do.
 */
#include "tests/sim/fabric/chains.h"
#include <string.h>

#define OPS     7u
#define MOST    40u /* draws of a round, at least 12 */
#define SOME    12u
#define AGAIN   24u
#define SPARE   4u /* steps that a queue keeps for the end of the round */
#define NO_SLOT UINT_MAX

/* The state of a round while it is drawn. */
struct chains_draft {
    struct chains_plan *plan;
    struct chance *chance;
    bool may_hang;
    bool known[CHAINS_QUEUES][CHAINS_SLOTS];
    uint8_t value[CHAINS_HOSTS][CHAINS_SLOTS][CHAINS_ELEMENT];
    unsigned enabled[CHAINS_QUEUES][CHAINS_HALVES]; /* so many WQEs, by drawn steps */
};

void chains_draw_queues(struct chains_plan *plan)
{
    struct chance *chance = &plan->job->chance;

    for (unsigned q = 0; q < CHAINS_QUEUES; q++) {
        struct chains_queue *queue = &plan->queue[q];
        unsigned host = q / 3, end = q % 3, other = (host + end) % CHAINS_HOSTS;

        queue->host = host;
        /* end 1 of host h is connected to end 2 of host h + 1 */
        queue->peer = end == 0 ? q : 3 * other + 3 - end;
        for (unsigned half = 0; half < CHAINS_HALVES; half++) {
            queue->managed[half] = end && chance_one_in(chance, 2);
            queue->owner[half] = 3 * host + (unsigned)chance_below(chance, 3);
            if (queue->owner[half] == q || chance_one_in(chance, 2)) {
                queue->owner[half] = 3 * host;
            }
        }
    }
}

/* -- slots and results ------------------------------------------------------------------------- */

static unsigned draft_take_slots(struct chains_draft *d, unsigned host, unsigned n)
{
    unsigned first = d->plan->slots[host];

    if (first + n > CHAINS_SLOTS) {
        return NO_SLOT;
    }
    d->plan->slots[host] += n;
    return first;
}

static uint64_t draft_load(const uint8_t *at)
{
    uint64_t number;

    memcpy(&number, at, sizeof(number));
    return GUINT64_FROM_BE(number);
}

static uint64_t draft_add_fp(uint64_t a, uint64_t b)
{
    double x, y;

    memcpy(&x, &a, sizeof(x));
    memcpy(&y, &b, sizeof(y));
    x += y;
    if (x != x) {
        return 0x7ffull << 52 | 1ull << 51;
    }
    memcpy(&a, &x, sizeof(a));
    return a;
}

/* One more operand. The numbers of the operations are those of opmod (libmlx5). */
static void draft_add_operand(uint8_t op, uint8_t *sum, const uint8_t *operand)
{
    uint64_t a = draft_load(sum), b = draft_load(operand);
    const uint64_t made[OPS] = {
        [1] = a + b, [2] = draft_add_fp(a, b), [4] = a & b, [5] = a | b, [6] = a ^ b};
    uint64_t value = GUINT64_TO_BE(made[op]);

    if (op == 3) {
        bool larger = b > a || (b == a && draft_load(operand + 8) < draft_load(sum + 8));

        memcpy(sum, larger ? operand : sum, CHAINS_ELEMENT);
    } else {
        memcpy(sum, &value, sizeof(value));
    }
}

static void draft_set_result(const struct chains_draft *d, struct chains_step *step, unsigned host)
{
    bool first = true;

    for (unsigned i = 0; i < step->pieces; i++) {
        for (unsigned n = 0; n < step->piece[i].n; n++) {
            const uint8_t *operand = d->value[host][step->piece[i].slot + n];

            if (first) {
                memcpy(step->result, operand, CHAINS_ELEMENT);
            } else {
                draft_add_operand(step->op, step->result, operand);
            }
            first = false;
        }
    }
}

/* -- messages ---------------------------------------------------------------------------------- */

static bool draft_takes_receive(const struct chains_step *step)
{
    return step->what == CHAINS_SEND || step->what == CHAINS_WRITE_IMM;
}

/* The slot of the nth message that takes a receive of queue q. NO_SLOT: it is not drawn yet. */
static unsigned draft_arrival(const struct chains_draft *d, unsigned q, unsigned nth)
{
    const struct chains_queue *queue = &d->plan->queue[q], *peer = &d->plan->queue[queue->peer];
    unsigned n = 0;

    for (unsigned i = 0; i < peer->num[CHAINS_SENDS]; i++) {
        const struct chains_step *step = &peer->step[i];

        if (draft_takes_receive(step) && n++ == nth) {
            return step->what == CHAINS_WRITE_IMM      ? step->to
                   : nth < queue->num[CHAINS_RECEIVES] ? queue->receive[nth]
                                                       : NO_SLOT;
        }
    }
    return NO_SLOT;
}

static const struct chains_step *draft_message(const struct chains_draft *d, unsigned q,
                                               unsigned nth)
{
    const struct chains_queue *peer = &d->plan->queue[d->plan->queue[q].peer];
    unsigned n = 0;

    for (unsigned i = 0; i < peer->num[CHAINS_SENDS]; i++) {
        if (draft_takes_receive(&peer->step[i]) && n++ == nth) {
            return &peer->step[i];
        }
    }
    return NULL;
}

/* CQEs of the drawn steps and messages. */
static unsigned draft_cqes(const struct chains_draft *d, unsigned q, enum chains_half half)
{
    const struct chains_queue *queue = &d->plan->queue[q];
    unsigned n = 0;

    if (half == CHAINS_RECEIVES) {
        while (draft_message(d, q, n)) {
            n++;
        }
        return n;
    }
    for (unsigned i = 0; i < queue->num[CHAINS_SENDS]; i++) {
        n += queue->step[i].signaled;
    }
    return n;
}

static void draft_post(struct chains_draft *d, unsigned q, enum chains_half half)
{
    unsigned host = d->plan->queue[q].host;

    d->plan->post[host][d->plan->posts[host]++] = (struct chains_post){q, half};
    d->plan->queue[q].num[half]++;
}

/* False: there is no room for another receive. */
static bool draft_add_receive(struct chains_draft *d, unsigned q)
{
    struct chains_queue *queue = &d->plan->queue[q];
    unsigned nth = queue->num[CHAINS_RECEIVES];
    unsigned slot = nth < CHAINS_STEPS ? draft_take_slots(d, queue->host, 1) : NO_SLOT;

    if (slot == NO_SLOT) {
        return false;
    }
    queue->receive[nth] = slot;
    draft_post(d, q, CHAINS_RECEIVES);
    return true;
}

/* A slot with a known value: of its own queue, or of the owner that is going to enable it. */
static unsigned draft_known_slot(struct chains_draft *d, unsigned q)
{
    const struct chains_queue *queue = &d->plan->queue[q];
    unsigned owner = queue->managed[CHAINS_SENDS] ? queue->owner[CHAINS_SENDS] : q;
    unsigned slot, n = 0, found = (unsigned)chance_below(d->chance, CHAINS_FIXED);

    for (slot = CHAINS_FIXED; slot < d->plan->slots[queue->host]; slot++) {
        if ((d->known[q][slot] || d->known[owner][slot]) && chance_one_in(d->chance, ++n)) {
            found = slot;
        }
    }
    return found;
}

static void draft_operands(struct chains_draft *d, unsigned q, struct chains_step *step)
{
    step->op = (uint8_t)chance_below(d->chance, OPS);
    step->pieces = step->op ? (unsigned)chance_from(d->chance, 1, CHAINS_PIECES) : 1;
    for (unsigned i = 0; i < step->pieces; i++) {
        step->piece[i].slot = draft_known_slot(d, q);
        step->piece[i].n = 1;
        if (step->op && step->piece[i].slot < CHAINS_FIXED) {
            step->piece[i].n =
                (unsigned)chance_from(d->chance, 1, CHAINS_FIXED - step->piece[i].slot);
        }
    }
    draft_set_result(d, step, d->plan->queue[q].host);
}

/* -- steps ------------------------------------------------------------------------------------- */

static bool draft_read(struct chains_draft *d, unsigned q, struct chains_step *step)
{
    const struct chains_queue *queue = &d->plan->queue[q];
    unsigned n = (unsigned)chance_from(d->chance, 1, 20);

    step->op = (uint8_t)chance_from(d->chance, 1, OPS - 1);
    step->pieces = 1;
    step->piece[0].n = n;
    step->piece[0].slot = (unsigned)chance_below(d->chance, CHAINS_FIXED - n);
    step->to = draft_take_slots(d, queue->host, n);
    step->signaled = true;
    draft_set_result(d, step, d->plan->queue[queue->peer].host);
    return step->to != NO_SLOT;
}

static bool draft_message_step(struct chains_draft *d, unsigned q, struct chains_step *step)
{
    unsigned peer = d->plan->queue[q].peer;

    if (step->what == CHAINS_READ) {
        return draft_read(d, q, step);
    }
    draft_operands(d, q, step);
    if (step->what != CHAINS_SEND) {
        step->to = draft_take_slots(d, d->plan->queue[peer].host, 1);
    }
    step->signaled |= step->what == CHAINS_WRITE;
    if (draft_takes_receive(step) && chance_below(d->chance, 8)) {
        draft_add_receive(d, peer);
    }
    return step->what == CHAINS_SEND || step->to != NO_SLOT;
}

/* After a wait, the queue knows the data of the messages and READs that it has waited for. */
static void draft_learn(struct chains_draft *d, unsigned q, const struct chains_step *step)
{
    const struct chains_queue *on = &d->plan->queue[step->queue];
    unsigned n = 0;

    for (unsigned i = 0; step->half == CHAINS_RECEIVES && i < step->count; i++) {
        unsigned slot = draft_arrival(d, step->queue, i);

        if (slot != NO_SLOT) {
            d->known[q][slot] = true;
            memcpy(d->value[on->host][slot], draft_message(d, step->queue, i)->result,
                   CHAINS_ELEMENT);
        }
    }
    for (unsigned i = 0; step->half == CHAINS_SENDS && i < on->num[CHAINS_SENDS]; i++) {
        if (on->step[i].signaled && n++ < step->count && on->step[i].what == CHAINS_READ) {
            d->known[q][on->step[i].to] = true;
            memcpy(d->value[on->host][on->step[i].to], on->step[i].result, CHAINS_ELEMENT);
        }
    }
}

/* Whether the steps that are drawn so far suffice for the CQE that the step waits for. */
static bool draft_comes(const struct chains_draft *d, const struct chains_step *step)
{
    struct chains_seen all;
    struct chains_state state;

    memset(&all, 0xff, sizeof(all));
    for (unsigned q = 0; q < CHAINS_QUEUES; q++) {
        memcpy(all.queue[q].posted, d->plan->queue[q].num, sizeof(all.queue[q].posted));
    }
    chains_run_reference(d->plan, &all, &state);
    return state.queue[step->queue].cqes[step->half] >= step->count;
}

static bool draft_wait(struct chains_draft *d, unsigned q, struct chains_step *step)
{
    unsigned cqes;

    step->queue = 3 * d->plan->queue[q].host + (unsigned)chance_below(d->chance, 3);
    step->half = (enum chains_half)chance_below(d->chance, CHAINS_HALVES);
    cqes = draft_cqes(d, step->queue, step->half);
    if (!cqes && !chance_one_in(d->chance, 16)) {
        return false;
    }
    step->count = cqes ? (unsigned)chance_from(d->chance, 1, cqes) : 1;
    step->count += chance_one_in(d->chance, 24);
    if (!d->may_hang && !draft_comes(d, step)) {
        return false;
    }
    draft_learn(d, q, step);
    return true;
}

static bool draft_enable(struct chains_draft *d, unsigned q, struct chains_step *step, bool all)
{
    const struct chains_queue *on;
    unsigned *enabled;

    step->queue = 3 * d->plan->queue[q].host + (unsigned)chance_from(d->chance, 1, 2);
    step->half = (enum chains_half)chance_below(d->chance, CHAINS_HALVES);
    on = &d->plan->queue[step->queue];
    enabled = &d->enabled[step->queue][step->half];
    if (!on->managed[step->half] || on->owner[step->half] != q || !on->num[step->half] ||
        (all && *enabled == on->num[step->half])) {
        return false;
    }
    step->count =
        all ? on->num[step->half] : (unsigned)chance_from(d->chance, 0, on->num[step->half]);
    *enabled = MAX(*enabled, step->count);
    return true;
}

static void draft_step(struct chains_draft *d, unsigned q, bool finishes)
{
    static const uint8_t kinds[] = {CHAINS_NOP,    CHAINS_WAIT, CHAINS_WAIT,     CHAINS_WAIT,
                                    CHAINS_ENABLE, CHAINS_SEND, CHAINS_SEND,     CHAINS_SEND,
                                    CHAINS_WRITE,  CHAINS_READ, CHAINS_WRITE_IMM};
    struct chains_queue *queue = &d->plan->queue[q];
    unsigned nth = queue->num[CHAINS_SENDS];
    struct chains_step *step = &queue->step[nth];
    bool drawn = true;

    if (nth == CHAINS_STEPS - (finishes ? 0 : SPARE)) {
        return;
    }
    *step = (struct chains_step){
        .what = finishes ? CHAINS_ENABLE
                         : (enum chains_what)kinds[chance_below(d->chance, sizeof(kinds))],
        .signaled = chance_below(d->chance, 4),
        .fence = chance_one_in(d->chance, 12) ? (uint8_t)chance_from(d->chance, 2, 3) : 0};
    if (step->what == CHAINS_WAIT) {
        drawn = draft_wait(d, q, step);
    } else if (step->what == CHAINS_ENABLE) {
        drawn = draft_enable(d, q, step, finishes);
    } else if (step->what != CHAINS_NOP) {
        drawn = draft_message_step(d, q, step);
    }
    if (drawn) {
        draft_post(d, q, CHAINS_SENDS);
    }
}

static void draft_fix_values(struct chains_draft *d)
{
    for (unsigned h = 0; h < CHAINS_HOSTS; h++) {
        for (unsigned slot = 0; slot < CHAINS_FIXED; slot++) {
            double number = (double)chance_below(d->chance, 1u << 20) / 64;
            uint64_t words[2] = {chance_next(d->chance) >> chance_below(d->chance, 64),
                                 chance_next(d->chance)};

            if (chance_one_in(d->chance, 2)) {
                memcpy(words, &number, sizeof(number));
                words[0] = GUINT64_TO_BE(words[0]);
            }
            memcpy(d->plan->fixed[h][slot], words, CHAINS_ELEMENT);
            memcpy(d->value[h][slot], words, CHAINS_ELEMENT);
        }
    }
}

void chains_draw_round(struct chains_plan *plan)
{
    struct chains_draft *d = g_new0(struct chains_draft, 1);
    unsigned draws;

    d->plan = plan;
    d->chance = &plan->job->chance;
    d->may_hang = chance_one_in(d->chance, 3);
    for (unsigned h = 0; h < CHAINS_HOSTS; h++) {
        plan->slots[h] = CHAINS_FIXED;
        plan->posts[h] = 0;
    }
    for (unsigned q = 0; q < CHAINS_QUEUES; q++) {
        memset(plan->queue[q].num, 0, sizeof(plan->queue[q].num));
    }
    draft_fix_values(d);
    draws = (unsigned)chance_from(d->chance, SOME, MOST);
    while (draws--) {
        draft_step(d, (unsigned)chance_below(d->chance, CHAINS_QUEUES), false);
    }
    for (unsigned q = 0; !d->may_hang && q < CHAINS_QUEUES; q++) {
        while (plan->queue[q].num[CHAINS_RECEIVES] < draft_cqes(d, q, CHAINS_RECEIVES) &&
               draft_add_receive(d, q)) {
        }
    }
    /* A queue draws again until each queue that it owns was drawn. */
    for (unsigned i = 0; i < AGAIN * CHAINS_QUEUES && (!d->may_hang || chance_below(d->chance, 64));
         i++) {
        draft_step(d, i % CHAINS_QUEUES, true);
    }
    g_free(d);
}
