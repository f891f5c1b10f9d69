/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The seeds of a run, which the environment may choose: HCASIM_SIM_SEED is the first,
 * HCASIM_SIM_SEEDS is their number. A value that is not such a number ends the program, with
 * EXIT_FAILURE and a line that says why.
 */
#ifndef HCASIM_TESTS_SEEDS_H
#define HCASIM_TESTS_SEEDS_H

#include <stdint.h>

struct seeds {
    uint32_t first, num; /* first + num - 1 is a seed, too; num fits an int */
};

/* Returns the seeds from number 1 on, as many as usual, if the environment says nothing. */
struct seeds seeds_of_run(uint32_t usual);

/* Returns a number from the environment, from least to most. */
uint64_t seeds_number(const char *name, uint64_t usual, uint64_t least, uint64_t most);

#endif
