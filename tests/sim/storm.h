/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random values of a hostile guest, made of values that are interesting to a device.
 *
 * Random words hardly ever name an object or a page that exists. These values often do: a storm
 * keeps lists of numbers and addresses and mixes them with extremes and noise.
 */
#ifndef HCASIM_TESTS_STORM_H
#define HCASIM_TESTS_STORM_H

#include "tests/sim/two_hcas.h"

#define STORM_MAX 64

struct storm {
    GRand *rand;
    uint32_t nums[STORM_MAX]; /* object numbers, keys */
    unsigned num_nums;
    uint64_t addrs[STORM_MAX]; /* bus and virtual addresses */
    unsigned num_addrs;
};

void storm_init(struct storm *s, uint32_t seed);
void storm_clear(struct storm *s);
void storm_num(struct storm *s, uint32_t num);
void storm_addr(struct storm *s, uint64_t addr);

uint32_t storm_upto(struct storm *s, uint32_t max); /* Returns a number from 0 to max. */
uint32_t storm_word(struct storm *s);
uint64_t storm_address(struct storm *s);
/* Overwrites some of the bytes, a few or many. */
void storm_bend(struct storm *s, uint8_t *p, size_t len);

#endif
