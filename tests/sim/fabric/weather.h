/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes partitions and link failures, at times that the seed chooses, until the storm is over. */
#ifndef HCASIM_TESTS_WEATHER_H
#define HCASIM_TESTS_WEATHER_H

#include "tests/sim/fabric/sim.h"

/* Starts them. */
void weather_begin(struct sim *sim);

#endif
