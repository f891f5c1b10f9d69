/* SPDX-License-Identifier: BSD-2-Clause */
/* Partitions and cables that are out, at times that the seed chooses, until the storm is over. */
#ifndef HCASIM_TESTS_WEATHER_H
#define HCASIM_TESTS_WEATHER_H

#include "tests/sim/fabric/sim.h"

/* From now on. */
void weather_begin(struct sim *sim);

#endif
