/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Multiplies bytes by constants of the fields GF(2^w), w = 1, 2, 4, 8, and adds the products.
 *
 * A byte holds 8 / w symbols, each of which is multiplied. The polynomials are x^2 + x + 1,
 * x^4 + x + 1 and x^8 + x^4 + x^3 + x^2 + 1, as in Jerasure and GF-Complete.
 */
#ifndef HCASIM_MODEL_GF_H
#define HCASIM_MODEL_GF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A multiplication by a constant: the products of the 16 values of a byte's low half, then those of
 * its high half. */
struct gf_map {
    uint8_t low[16], high[16];
};

/* The map of a constant, of which the low w bits count. */
const struct gf_map *gf_map_of(unsigned w, uint8_t constant);

/* The most results that gf_add() adds to, and the granularity of its lengths. */
#define GF_MAX_RESULTS 4
#define GF_GRAIN       64

/* Adds the product of the bytes at from and map[i] to the bytes at to[i], for each i below n. len
 * is a multiple of GF_GRAIN. */
void gf_add(const struct gf_map *map, unsigned n, const uint8_t *from, uint8_t *const *to,
            size_t len);

/* For tests: products come from ISA-L, if the machine has it, or from tables. False: not from
 * ISA-L. */
bool gf_use_library(bool wanted);

#endif
