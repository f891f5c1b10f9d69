/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Keeps the real-time clock of a card (MTUTC; the PTP clock of Linux). It runs with the
 * free-running timer, faster or slower by what software has adjusted. Software sets it. Until then
 * it shows the free-running timer.
 */
#ifndef HCASIM_MODEL_REAL_TIME_H
#define HCASIM_MODEL_REAL_TIME_H

#include <glib.h>
#include <stdint.h>

#define REAL_TIME_SECOND 1000000000u

struct real_time {
    uint64_t since; /* when the clock was set or adjusted, on the free-running timer */
    uint64_t ns;    /* what it showed then, nanoseconds */
    int32_t tuned;  /* how much faster it runs: millionths, in units of 2^-16 (scaled ppm) */
};

/* Nanoseconds that the clock shows at a time of the free-running timer. */
static inline uint64_t real_time_ns(const struct real_time *clock, uint64_t now)
{
    uint64_t run = now - clock->since;

    if (G_UNLIKELY(clock->tuned)) {
        run += (uint64_t)(int64_t)((__int128)run * clock->tuned / (1000000ll << 16));
    }
    return clock->ns + run;
}

/* A time stamp: seconds in the high half, nanoseconds in the low half (Linux:
 * mlx5_real_time_cyc2time()). */
static inline uint64_t real_time_stamp(const struct real_time *clock, uint64_t now)
{
    uint64_t ns = real_time_ns(clock, now);

    return ns / REAL_TIME_SECOND << 32 | ns % REAL_TIME_SECOND;
}

static inline void real_time_set(struct real_time *clock, uint64_t now, uint64_t ns)
{
    clock->since = now;
    clock->ns = ns;
}

/* Changes the rate from now on. */
static inline void real_time_tune(struct real_time *clock, uint64_t now, int32_t scaled_ppm)
{
    real_time_set(clock, now, real_time_ns(clock, now));
    clock->tuned = scaled_ppm;
}

#endif
