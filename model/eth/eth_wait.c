/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Implements WAIT on time: a WQE that is done when the card's clock has reached a value, so that
 * the packets behind it leave then (DPDK: mlx5_tx_schedule_send(), capability wait_on_time).
 *
 * The clock is that of the SQ's time stamps. Value and clock are compared under a mask, cyclically:
 * a value is past if the clock is less than half a cycle ahead of it. The mask is one of low bits.
 * Other comparisons and masks, and waits on data in memory, have no users and are no valid WQEs.
 *
 * A waiting SQ has its timer set. The real-time clock may be changed meanwhile, so the timer looks
 * again within WAIT_LOOK_NS. eth_sq_stop() ends the wait of an SQ that does not send any more.
 */
#include <stddef.h>
#include "model/core/real_time.h"
#include "model/eth/eth_priv.h"

#define WAIT_LOOK_NS 10000000ull

static void eth_wait_due(struct hca *hca, struct hca_timer *timer)
{
    struct eth_sq *sq = (struct eth_sq *)((char *)timer - offsetof(struct eth_sq, wait_timer));

    hca_schedule(hca, &sq->work);
}

/* Nanoseconds of a difference of time stamps, whose lower halves are nanoseconds: they borrow 2^32
 * from the seconds. A value that is no time stamp is looked at from time to time. */
static uint64_t eth_wait_real_ns(uint64_t gap, uint64_t value)
{
    uint64_t seconds = gap >> 32, part = gap & 0xffffffff;

    if ((value & 0xffffffff) >= REAL_TIME_SECOND) {
        return WAIT_LOOK_NS;
    }
    if (part >= REAL_TIME_SECOND) {
        part -= (1ull << 32) - REAL_TIME_SECOND;
    }
    return seconds * REAL_TIME_SECOND + part;
}

enum eth_sent eth_wait(struct hca *hca, struct eth_sq *sq, const void *seg, size_t len)
{
    uint64_t now = hca_now(hca);
    uint64_t clock = sq->real_time ? real_time_stamp(hca->real_time, now) : now;
    uint64_t value, mask, gap;

    if (len != PRM_SIZE(wqe_wait_time_seg)) {
        return ETH_BAD_WQE;
    }
    switch (PRM_GET(wqe_wait_time_seg, seg, operation)) {
    case PRM_WAIT_CONDITION_ALWAYS_TRUE:
        return ETH_SENT;
    case PRM_WAIT_CONDITION_CYCLIC_SMALLER:
        break;
    default:
        return ETH_BAD_WQE;
    }
    value = PRM_GET(wqe_wait_time_seg, seg, value);
    mask = PRM_GET(wqe_wait_time_seg, seg, mask);
    if (mask & (mask + 1)) {
        return ETH_BAD_WQE;
    }
    if (((clock - value) & mask) <= mask / 2) {
        return ETH_SENT;
    }
    gap = (value - clock) & mask;
    sq->wait_timer.fire = eth_wait_due;
    hca_timer_set(hca, &sq->wait_timer,
                  now + MIN(sq->real_time ? eth_wait_real_ns(gap, value) : gap, WAIT_LOOK_NS));
    return ETH_HELD;
}
