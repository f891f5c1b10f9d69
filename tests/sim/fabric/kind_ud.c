/* SPDX-License-Identifier: BSD-2-Clause */
/* Datagrams: SENDs with immediate data, which may be lost. */
#include "tests/sim/fabric/datagrams.h"

static void kind_ud_make(struct job *job)
{
    datagrams_init(job->state, job, IBV_QPT_UD, job->host[0], job->host[1]);
}

static bool kind_ud_step(struct job *job)
{
    return datagrams_step(job->state);
}

static bool kind_ud_is_done(const struct job *job)
{
    return datagrams_is_done(job->state);
}

static void kind_ud_check(struct job *job)
{
    datagrams_check(job->state);
}

static void kind_ud_free(struct job *job)
{
    datagrams_free(job->state);
}

const struct kind kind_ud = {
    .name = "ud",
    .about = "datagrams",
    .usual = true,
    .hosts = 2,
    .size = sizeof(struct datagrams),
    .make = kind_ud_make,
    .step = kind_ud_step,
    .is_done = kind_ud_is_done,
    .check = kind_ud_check,
    .free = kind_ud_free,
};
