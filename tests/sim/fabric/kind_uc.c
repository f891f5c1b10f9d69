/* SPDX-License-Identifier: BSD-2-Clause */
/* Unreliable connections: SENDs and WRITEs with immediate data. */
#include "tests/sim/fabric/datagrams.h"

static void kind_uc_make(struct job *job)
{
    datagrams_init(job->state, job, IBV_QPT_UC, job->host[0], job->host[1]);
}

static bool kind_uc_step(struct job *job)
{
    return datagrams_step(job->state);
}

static bool kind_uc_is_done(const struct job *job)
{
    return datagrams_is_done(job->state);
}

static void kind_uc_check(struct job *job)
{
    datagrams_check(job->state);
}

static void kind_uc_free(struct job *job)
{
    datagrams_free(job->state);
}

const struct kind kind_uc = {
    .name = "uc",
    .about = "an unreliable connection: SENDs and WRITEs",
    .usual = true,
    .hosts = 2,
    .size = sizeof(struct datagrams),
    .make = kind_uc_make,
    .step = kind_uc_step,
    .is_done = kind_uc_is_done,
    .check = kind_uc_check,
    .free = kind_uc_free,
};
