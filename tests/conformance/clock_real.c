/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements clock.h for real time. */
#include "tests/conformance/clock.h"
#include <time.h>

#define SECOND_NS 1000000000ull

static uint64_t real_now(struct play_clock *clock)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * SECOND_NS + (uint64_t)now.tv_nsec;
}

static bool real_step(struct play_clock *clock, uint64_t limit_ns)
{
    struct real_clock *real = (struct real_clock *)clock;

    if (real_now(clock) >= limit_ns) {
        return false;
    }
    real->wait(real->opaque, limit_ns);
    return true;
}

/* A device does not report when it has done what was requested; after this time it should have. */
static void real_settle(struct play_clock *clock)
{
    uint64_t limit_ns = real_now(clock) + ((struct real_clock *)clock)->settle_ns;

    while (real_step(clock, limit_ns)) {
    }
}

void real_clock_init(struct real_clock *real, uint64_t settle_ns, uint64_t patience_ns,
                     void (*wait)(void *opaque, uint64_t until_ns), void *opaque)
{
    *real = (struct real_clock){
        .clock = {.now = real_now,
                  .settle = real_settle,
                  .step = real_step,
                  .is_real = true,
                  .patience_ns = patience_ns},
        .settle_ns = settle_ns,
        .wait = wait,
        .opaque = opaque,
    };
}
