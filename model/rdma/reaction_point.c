/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Limits the rate at which packets are sent to a peer. A CNP decreases the rate in proportion to
 * alpha, at most once in a monitor period. alpha follows the share of its periods that had a CNP.
 * From one decrease to the next, the rate increases by time and by bytes sent. Up to the threshold,
 * an increase halves the distance to the target (fast recovery). When one of the two counts has
 * reached the threshold, an increase also moves the target (additive). When both are beyond it, the
 * target moves faster (hyper).
 *
 * The state is brought up to date when a CNP comes or a packet is to be sent. This takes a bounded
 * number of steps, however long ago the last update was. A rate is never below the configured
 * minimum, so every packet is sent at some time. When the rate reaches the maximum, the limiter
 * ends.
 */
#include <stddef.h>
#include "model/rdma/reaction_point.h"
#include "model/rdma/rdma.h"

#define ALPHA_ONE   (1u << 20)
#define ALPHA_SHIFT 10 /* alpha has more fractional bits than the parameters have */

#define KBPS        1000u
#define US          1000ull

/* Increases that are computed one by one. After this many, the rate differs from the target only by
 * one step of the target. */
#define STEPS_MOST 64

/* A packet that is late because its turn came late lets the next one leave earlier, by at most this
 * time. */
#define CREDIT_NS 10000
/* A waiting packet looks again after this time, because the rate may have grown. */
#define LOOK_NS 1000000

static struct cong *reaction_cong(const struct peer *peer)
{
    return &peer->qp->hca->vport->uplink->cong;
}

/* A rate parameter in kb/s, at most the link's speed. */
static uint32_t reaction_kbps(const struct peer *peer, uint32_t mbps)
{
    return MIN(mbps, peer->qp->hca->vport->uplink->line_mbps) * KBPS;
}

static uint32_t reaction_most(const struct peer *peer)
{
    uint32_t most = reaction_cong(peer)->rp.rpg_max_rate;

    return reaction_kbps(peer, most ? most : UINT32_MAX);
}

static bool reaction_is_enabled(const struct peer *peer)
{
    unsigned priority = uplink_roce_priority(peer->qp->hca->vport->uplink, &peer->path);

    return reaction_cong(peer)->rp_side.enabled >> priority & 1;
}

/* -- updates over time ------------------------------------------------------------------------ */

/* Credit of a higher rate than the present one is lost. */
static void reaction_refill(struct limiter *l, uint64_t now)
{
    int64_t credit = (int64_t)l->current * CREDIT_NS;

    bucket_refill(&l->bucket, now, l->current, credit);
    l->bucket.debt = MAX(l->bucket.debt, -credit);
}

/* base^n, in units of 1 / ALPHA_ONE. */
static uint32_t reaction_power(uint32_t base, uint64_t n)
{
    uint64_t power = ALPHA_ONE, square = base;

    for (; n && power; n >>= 1) {
        if (n & 1) {
            power = power * square / ALPHA_ONE;
        }
        square = square * square / ALPHA_ONE;
    }
    return (uint32_t)power;
}

/* Each period multiplies alpha by g. If a CNP came in the period, 1 - g is added. */
static void reaction_update_alpha(struct limiter *l, uint64_t now)
{
    const struct cong_rp *rp = &reaction_cong(l->peer)->rp;
    uint64_t period = rp->dce_tcp_rtt * US;
    uint64_t n = (now - l->alpha_at) / period;
    uint32_t g = rp->dce_tcp_g << ALPHA_SHIFT;

    if (!n) {
        return;
    }
    l->alpha_at += n * period;
    if (l->cnp_seen) {
        l->cnp_seen = false;
        l->alpha = (uint32_t)((uint64_t)l->alpha * g / ALPHA_ONE) + (ALPHA_ONE - g);
        n--;
    }
    l->alpha = (uint32_t)((uint64_t)l->alpha * reaction_power(g, n) / ALPHA_ONE);
}

/* How far an increase moves the target, in kb/s. */
static uint32_t reaction_step(const struct limiter *l)
{
    const struct cong_rp *rp = &reaction_cong(l->peer)->rp;
    uint32_t threshold = rp->rpg_threshold;

    if (MAX(l->by_time, l->by_bytes) < threshold) {
        return 0;
    }
    return reaction_kbps(l->peer, MIN(l->by_time, l->by_bytes) > threshold ? rp->rpg_hai_rate
                                                                           : rp->rpg_ai_rate);
}

static uint32_t reaction_count_up(uint32_t count, uint64_t n)
{
    return (uint32_t)MIN(count + n, UINT32_MAX);
}

static void reaction_increase(struct limiter *l)
{
    uint64_t target = (uint64_t)l->target + reaction_step(l);

    l->target = (uint32_t)MIN(target, reaction_most(l->peer));
    l->current = (uint32_t)(((uint64_t)l->current + l->target + 1) / 2);
}

/* Does n further increases by time at once; the rate stays one step behind the target. */
static void reaction_increase_many(struct limiter *l, uint64_t n)
{
    uint32_t step, most = reaction_most(l->peer);
    uint64_t target;

    l->by_time = reaction_count_up(l->by_time, n);
    step = reaction_step(l);
    target = step && n > most / step ? most : l->target + n * step;
    l->target = (uint32_t)MIN(target, most);
    l->current = l->target == most ? most : MAX(l->current, l->target - MIN(step, l->target));
}

static void reaction_increase_by_time(struct limiter *l, uint64_t now)
{
    uint64_t period = reaction_cong(l->peer)->rp.rpg_time_reset * US;

    for (unsigned i = 0; now - l->increased_at >= period && l->current < reaction_most(l->peer);
         i++) {
        uint64_t n = i < STEPS_MOST ? 1 : (now - l->increased_at) / period;

        l->increased_at += n * period;
        reaction_refill(l, MAX(l->increased_at, l->bucket.debt_at));
        if (n == 1) {
            l->by_time = reaction_count_up(l->by_time, 1);
            reaction_increase(l);
        } else {
            reaction_increase_many(l, n);
        }
    }
}

static void reaction_go_on(struct limiter *l, uint64_t now)
{
    reaction_update_alpha(l, now);
    reaction_increase_by_time(l, now);
    reaction_refill(l, now);
}

/* The target is the rate before the congestion. A second CNP leaves it unchanged, unless the rate
 * has increased meanwhile in a way that counts, or the configuration says that the target follows
 * the rate (clamp_tgt_rate). */
static void reaction_decrease(struct limiter *l, uint64_t now)
{
    const struct cong_rp *rp = &reaction_cong(l->peer)->rp;
    uint64_t cut = (uint64_t)l->current * l->alpha >> (rp->rpg_gd + ALPHA_SHIFT);
    uint64_t least = MAX((uint64_t)l->current * rp->rpg_min_dec_fac / 100,
                         MIN(reaction_kbps(l->peer, rp->rpg_min_rate), reaction_most(l->peer)));

    if (rp->clamp_tgt_rate || l->by_bytes || (l->by_time && rp->clamp_tgt_rate_after_time_inc)) {
        l->target = l->current;
    }
    l->current = (uint32_t)MAX(l->current - cut, least);
    l->target = MAX(l->target, l->current);
    l->by_time = l->by_bytes = l->bytes = 0;
    l->decrease_due = false;
    l->decreased_at = l->increased_at = now;
}

/* Brings the limiter up to date. */
static void reaction_look(struct limiter *l, uint64_t now)
{
    uint64_t due = l->decreased_at + reaction_cong(l->peer)->rp.rate_reduce_monitor_period * US;

    now = MAX(now, l->bucket.debt_at);
    if (l->decrease_due && due <= now) {
        /* State that is already newer than due is not turned back. */
        reaction_go_on(l, MAX(due, l->bucket.debt_at));
        reaction_decrease(l, MAX(due, l->bucket.debt_at));
    }
    reaction_go_on(l, now);
    l->current = MIN(l->current, reaction_most(l->peer)); /* the link may have become slower */
}

/* -- packets ----------------------------------------------------------------------------------- */

/* Runs the work that waits for the limiter. Both sides of the QP share the limiter and its timer.
 * The responder's side holds only answers; an initiator that the device makes itself has no such
 * side. */
static void reaction_wake(const struct limiter *l)
{
    struct peer *peer = l->peer;
    struct hca *hca = peer->qp->hca;

    if (qp_may_request(peer->qp)) {
        hca_schedule(hca, &peer->qp->req.work);
    }
    if (peer->resp.answers) {
        hca_schedule(hca, &peer->resp.work);
    }
}

static void reaction_due(struct hca *hca, struct hca_timer *timer)
{
    reaction_wake((struct limiter *)((char *)timer - offsetof(struct limiter, timer)));
}

bool reaction_is_time(struct peer *peer)
{
    struct hca *hca = peer->qp->hca;
    struct limiter *l = peer->limiter;
    uint64_t now = hca_now(hca);

    reaction_look(l, now);
    if (l->current >= reaction_most(peer) || !reaction_is_enabled(peer)) {
        reaction_end(peer);
        return true;
    }
    if (l->bucket.debt <= 0) {
        return true;
    }
    hca_timer_set(hca, &l->timer, now + MIN(bucket_wait(&l->bucket, l->current), LOOK_NS));
    return false;
}

void reaction_note_sent(struct peer *peer, size_t bytes)
{
    struct limiter *l = peer->limiter;
    uint32_t reset = reaction_cong(peer)->rp.rpg_byte_reset;

    l->bucket.debt += bucket_cost(bytes);
    l->bytes += (uint32_t)bytes;
    if (reset && l->bytes >= reset) {
        l->bytes = 0;
        l->by_bytes = reaction_count_up(l->by_bytes, 1);
        reaction_increase(l);
    }
}

/* -- life -------------------------------------------------------------------------------------- */

/* Whether the QP is in a state in which it sends requests or answers them. */
static bool reaction_reacts(const struct qp *qp)
{
    return (qp->service->connected || qp->service->dynamic) && qp->state != PRM_QP_STATE_RST &&
           qp->state != PRM_QP_STATE_INIT && qp->state != PRM_QP_STATE_ERR;
}

static struct limiter *reaction_begin(struct peer *peer, uint64_t now)
{
    struct cong *cong = reaction_cong(peer);
    struct limiter *l = qp_alloc(peer->qp, sizeof(*l));

    if (!l) {
        return NULL;
    }
    peer->limiter = l;
    cong->flows++;
    cong->counters.sum_flows++;
    l->peer = peer;
    l->timer.fire = reaction_due;
    l->alpha = cong->rp.initial_alpha_value << ALPHA_SHIFT;
    l->current = l->target = reaction_most(peer);
    l->alpha_at = l->increased_at = l->decreased_at = l->bucket.debt_at = now;
    if (cong->rp.rate_to_set_on_first_cnp) {
        l->current = l->target = MAX(reaction_kbps(peer, cong->rp.rate_to_set_on_first_cnp), KBPS);
    } else {
        reaction_decrease(l, now);
    }
    return l;
}

void reaction_end(struct peer *peer)
{
    struct limiter *l = peer->limiter;

    if (l) {
        reaction_wake(l); /* the timer will not fire for the waiting work */
        hca_timer_stop(peer->qp->hca, &l->timer);
        reaction_cong(peer)->flows--;
        peer->limiter = NULL;
        qp_dealloc(peer->qp, l, sizeof(*l));
    }
}

static void reaction_react(struct limiter *l, uint64_t now)
{
    reaction_look(l, now);
    l->cnp_seen = true;
    l->decrease_due = true;
    reaction_look(l, now);
}

void reaction_rx_cnp(struct hca *hca, struct peer *peer, const struct roce_packet *pkt)
{
    struct cong_counters *c = &hca->vport->uplink->cong.counters;
    uint64_t now;

    if (!peer || !reaction_reacts(peer->qp) || !reaction_is_enabled(peer) ||
        !roce_rx_is_of_connection(peer, pkt)) {
        c->cnps_ignored++;
        return;
    }
    now = hca_now(hca);
    if (peer->limiter) {
        reaction_react(peer->limiter, now);
    } else if (!reaction_begin(peer, now)) {
        c->cnps_ignored++;
        return;
    }
    c->cnps_handled++;
}
