/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs seeds, each in its own process: a crash of one seed does not affect the others. */
#ifndef HCASIM_TESTS_RUNNER_H
#define HCASIM_TESTS_RUNNER_H

#include "tests/sim/fabric/sim.h"

/* The result of a seed. */
struct verdict {
    bool passed;
    double seconds;         /* real time */
    struct sim_tally tally; /* the tally, if it passed */
    char *said;             /* its output on standard error, without the last line end; g_free() */
};

/* Runs one seed, and waits for it. */
struct verdict runner_run(const struct sim_options *options);

/* Runs options->seeds seeds, as many at a time as the options say, with progress on standard error.
 * told gets each verdict, with the options of its seed. */
typedef void runner_told_fn(void *opaque, const struct sim_options *options,
                            const struct verdict *verdict);
void runner_run_all(const struct sim_options *options, runner_told_fn *told, void *opaque);

#endif
