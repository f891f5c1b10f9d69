/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Implements delayed drop: if no receive WQE is posted on a queue with delay_drop_en, its frames
 * wait, as in the receive buffer of a card, until software posts WQEs. No doorbell announces those,
 * so the queue looks at its doorbell record with each further frame and every ETH_DELAY_UNIT_NS.
 *
 * If a queue's first frame has waited for the timeout of the function, the wait has failed: the
 * frames are dropped and counted (out_of_buffer), the event DELAY_DROP_TIMEOUT is raised, and no
 * queue of the function delays drops any more until SET_DELAY_DROP_PARAMS comes again (driver:
 * delay_drop_handler() of mlx5_ib sends it after each event).
 *
 * Who ends a wait: a posted WQE; the timeout; a timeout of another queue; the state of the queue
 * (ERR, RST), its failure or its end. A function keeps at most ETH_DELAY_BYTES; a frame beyond that
 * is dropped as without delay, as frames are that find a card's buffer full.
 */
#include <string.h>
#include "model/eth/eth_delay.h"
#include "model/queue/eq.h"
#include "model/queue/q_counter.h"

/* A frame that waits. */
struct eth_kept {
    struct eth_kept *next;
    size_t size; /* of this block */
    struct eth_arrival arrival;
    struct eth_info info;
    struct rss rss;
    struct eth_tunnel tunnel;
    struct eth_merged merged;
    uint8_t bytes[];
};

struct eth_delay {
    struct eth_rq *rq;
    struct hca_timer timer; /* armed while frames wait */
    struct eth_kept *first, **end;
    uint64_t since; /* clock_ns() from when the first frame waits */
};

void eth_delay_set(struct hca *hca, uint16_t timeout)
{
    hca->delay_drop_ns = (uint64_t)timeout * ETH_DELAY_UNIT_NS;
}

static void eth_delay_release(struct hca *hca, struct eth_kept *kept)
{
    hca->delayed_bytes -= kept->size;
    ledger_free(&hca->memory, kept, kept->size);
}

void eth_delay_end(struct hca *hca, struct eth_rq *rq)
{
    struct eth_delay *delay = rq->delay;
    uint64_t dropped = 0;

    if (!delay) {
        return;
    }
    hca_timer_stop(hca, &delay->timer);
    while (delay->first) {
        struct eth_kept *kept = delay->first;

        delay->first = kept->next;
        eth_delay_release(hca, kept);
        dropped++;
    }
    delay->end = &delay->first;
    q_counter_get(hca, rq->counter_set_id)->out_of_buffer += dropped;
    hca_spend(hca, dropped / HCA_PIECE_ENTRIES);
}

bool eth_delay_pass(struct hca *hca, struct eth_rq *rq)
{
    struct eth_delay *delay = rq->delay;

    while (delay->first && hca_may_go_on(hca)) {
        struct eth_kept *kept = delay->first;

        /* off the list, because the queue may fail with it */
        delay->first = kept->next;
        if (!eth_rq_try(hca, rq, &kept->arrival)) {
            kept->next = delay->first;
            delay->first = kept;
            if (!kept->next) {
                delay->end = &kept->next;
            }
            return false;
        }
        if (!delay->first) {
            delay->end = &delay->first;
        }
        eth_delay_release(hca, kept);
        delay->since = hca_now(hca);
    }
    if (!delay->first) {
        hca_timer_stop(hca, &delay->timer);
    }
    return !delay->first;
}

bool eth_delay_keep(struct hca *hca, struct eth_rq *rq, const struct eth_arrival *a)
{
    struct eth_delay *delay = rq->delay;
    size_t size = sizeof(struct eth_kept) + a->len;
    struct eth_kept *kept;

    if (!hca->delay_drop_ns || rq->state != PRM_RQC_STATE_RDY ||
        hca->delayed_bytes + size > ETH_DELAY_BYTES) {
        return false;
    }
    kept = ledger_alloc(&hca->memory, size);
    if (!kept) {
        return false;
    }
    hca->delayed_bytes += size;
    kept->size = size;
    kept->info = *a->info;
    kept->rss = *a->rss;
    if (a->rss->tunnel) {
        kept->tunnel = *a->rss->tunnel;
        kept->rss.tunnel = &kept->tunnel;
    }
    kept->arrival = *a;
    kept->arrival.info = &kept->info;
    kept->arrival.rss = &kept->rss;
    if (a->merged) {
        kept->merged = *a->merged;
        kept->arrival.merged = &kept->merged;
    }
    kept->arrival.frame = memcpy(kept->bytes, a->frame, a->len);
    if (!delay->first) {
        delay->since = hca_now(hca);
        hca_timer_set(hca, &delay->timer,
                      delay->since + MIN(hca->delay_drop_ns, ETH_DELAY_UNIT_NS));
    }
    *delay->end = kept;
    delay->end = &kept->next;
    return true;
}

static void eth_delay_fire(struct hca *hca, struct hca_timer *timer)
{
    struct eth_delay *delay =
        (struct eth_delay *)((char *)timer - offsetof(struct eth_delay, timer));
    struct eth_rq *rq = delay->rq;
    uint64_t now;

    if (eth_delay_pass(hca, rq)) {
        return;
    }
    now = hca_now(hca);
    if (hca->delay_drop_ns && now < delay->since + hca->delay_drop_ns) {
        hca_timer_set(hca, timer, MIN(now + ETH_DELAY_UNIT_NS, delay->since + hca->delay_drop_ns));
        return;
    }
    eth_delay_end(hca, rq);
    if (hca->delay_drop_ns) {
        const uint8_t data[EQE_DATA_LEN] = {0};

        hca->delay_drop_ns = 0;
        hca_log(hca, HCA_LOG_INFO,
                "RQ 0x%x: no receive was posted in time, drops are not delayed "
                "any more",
                rq->obj.num);
        eq_async(hca, PRM_EVENT_TYPE_GENERAL_EVENT, PRM_GENERAL_SUBTYPE_DELAY_DROP_TIMEOUT, data);
    }
}

enum syn eth_delay_init(struct hca *hca, struct eth_rq *rq)
{
    struct eth_delay *delay;

    if (!PRM_GET(rqc, rq->rqc, delay_drop_en)) {
        return SYN_OK;
    }
    delay = ledger_alloc(&hca->memory, sizeof(*delay));
    if (!delay) {
        return SYN_NO_MEMORY;
    }
    delay->rq = rq;
    delay->timer.fire = eth_delay_fire;
    delay->end = &delay->first;
    rq->delay = delay;
    return SYN_OK;
}

void eth_delay_free(struct hca *hca, struct eth_rq *rq)
{
    if (rq->delay) {
        eth_delay_end(hca, rq);
        ledger_free(&hca->memory, rq->delay, sizeof(*rq->delay));
        rq->delay = NULL;
    }
}
