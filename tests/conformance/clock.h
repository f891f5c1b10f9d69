/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Time as a case sees it: virtual time if the device runs in this process (sim.c), real time if the
 * device is a foreign one on a wire (clock_real.c).
 */
#ifndef HCASIM_TESTS_CONFORMANCE_CLOCK_H
#define HCASIM_TESTS_CONFORMANCE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

struct play_clock {
    uint64_t (*now)(struct play_clock *clock); /* ns */
    /* Waits until everything that was begun has had its effects. */
    void (*settle)(struct play_clock *clock);
    /* Lets a little time pass, in which something may have happened. Returns false when limit_ns is
     * reached. */
    bool (*step)(struct play_clock *clock, uint64_t limit_ns);
    bool is_real;
    uint64_t patience_ns; /* how long to wait for what must come */
};

/* Real time. wait() sleeps, until that time at most. */
struct real_clock {
    struct play_clock clock;
    uint64_t settle_ns;
    void (*wait)(void *opaque, uint64_t until_ns);
    void *opaque;
};

void real_clock_init(struct real_clock *real, uint64_t settle_ns, uint64_t patience_ns,
                     void (*wait)(void *opaque, uint64_t until_ns), void *opaque);

#endif
