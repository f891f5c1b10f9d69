/* SPDX-License-Identifier: BSD-2-Clause */
/* Reliable connections: every operation in both directions, errors, and reconnection. */
#include "tests/sim/fabric/pair.h"

static void kind_rc_make(struct job *job)
{
    pair_init(job->state, job, job->host[0], job->host[1]);
}

static bool kind_rc_step(struct job *job)
{
    return pair_step(job->state);
}

static bool kind_rc_is_done(const struct job *job)
{
    return pair_is_done(job->state);
}

static void kind_rc_check(struct job *job)
{
    pair_check(job->state);
}

static void kind_rc_free(struct job *job)
{
    pair_free(job->state);
}

const struct kind kind_rc = {
    .name = "rc",
    .about = "a reliable connection: all operations both ways, errors, connecting again",
    .usual = true,
    .hosts = 2,
    .size = sizeof(struct pair),
    .make = kind_rc_make,
    .step = kind_rc_step,
    .is_done = kind_rc_is_done,
    .check = kind_rc_check,
    .free = kind_rc_free,
};
