/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A token bucket, which holds a sender to a rate. Bytes that a sender sends too early are its debt,
 * which shrinks at the rate; the sender may go on when it has no debt. A debt below 0 is credit.
 *
 * The bucket has no timer: its debt is brought up to date when it is looked at. Rates are in kb/s
 * and never 0, times are clock_ns(), and a debt is counted in millionths of a bit: that is what a
 * rate of 1 kb/s sends in a nanosecond.
 */
#ifndef HCASIM_MODEL_BUCKET_H
#define HCASIM_MODEL_BUCKET_H

#include <glib.h>
#include <stdint.h>

struct bucket {
    int64_t debt;
    uint64_t debt_at; /* the time of debt */
};

/* Converts bytes into units of a debt. */
static inline int64_t bucket_cost(uint64_t bytes)
{
    return (int64_t)(bytes * 8 * 1000000);
}

/* Reduces the debt by what could have been sent at the rate since the last time; at most to so much
 * credit. Credit that the bucket has already stays. */
static inline void bucket_refill(struct bucket *b, uint64_t now, uint32_t kbps, int64_t credit)
{
    const uint64_t one_second = 1000000000; /* whatever the rate is, this product fits */
    uint64_t passed = now - b->debt_at;
    int64_t most = b->debt + credit;

    b->debt_at = now;
    if (most <= 0) {
        return;
    }
    if (passed > one_second && passed > (uint64_t)most / kbps) {
        b->debt = -credit;
    } else {
        b->debt -= MIN((int64_t)(passed * kbps), most);
    }
}

/* Nanoseconds until a debt above 0 is gone. */
static inline uint64_t bucket_wait(const struct bucket *b, uint32_t kbps)
{
    return (uint64_t)b->debt / kbps + 1;
}

#endif
