/* SPDX-License-Identifier: BSD-2-Clause */
/* Seeds, each in a process of its own: what one breaks is no other's. */
#ifndef HCASIM_TESTS_RUNNER_H
#define HCASIM_TESTS_RUNNER_H

#include "tests/sim/fabric/sim.h"

/* One seed has ended. */
struct verdict {
    bool passed;
    struct sim_tally tally; /* of one that passed */
    char *said;             /* what it said on standard error, without line end; g_free() */
};

/* Runs one, and waits. */
struct verdict runner_run(const struct sim_options *options);

/* Runs options->seeds of them, so many at a time as the options say, with progress on standard
 * error. told gets each verdict, with the options of its seed. */
typedef void runner_told_fn(void *opaque, const struct sim_options *options,
                            const struct verdict *verdict);
void runner_run_all(const struct sim_options *options, runner_told_fn *told, void *opaque);

#endif
