/* SPDX-License-Identifier: BSD-2-Clause */
/* Looks for a smaller run that fails, too. */
#ifndef HCASIM_TESTS_SHRINK_H
#define HCASIM_TESTS_SHRINK_H

#include "tests/sim/fabric/sim.h"

/* Of one that failed, and said so. In *said, which is taken, what the smaller one says; in *runs
 * how many it took. The texts of what is returned are for sim_options_clear(). */
struct sim_options shrink(const struct sim_options *failed, char **said, unsigned *runs);

#endif
