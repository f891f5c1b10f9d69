/* SPDX-License-Identifier: BSD-2-Clause */
/* Searches for a smaller run that fails, too. */
#ifndef HCASIM_TESTS_SHRINK_H
#define HCASIM_TESTS_SHRINK_H

#include "tests/sim/fabric/sim.h"

/* Shrinks a failed run. *said is the failed run's output: it is consumed and replaced with the
 * smaller run's output. *runs gets the number of runs that the search took. The caller clears the
 * returned options with sim_options_clear(). */
struct sim_options shrink(const struct sim_options *failed, char **said, unsigned *runs);

#endif
