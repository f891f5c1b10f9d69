/* SPDX-License-Identifier: BSD-2-Clause */
/* More commands as a well-behaved driver sends them, for opcodes whose example (examples.h) is only
 * one of several forms: keys of each kind, compressed CQs, general objects of each type. */
#ifndef HCASIM_TESTS_VARIANTS_H
#define HCASIM_TESTS_VARIANTS_H

#include "tests/sim/examples.h"

/* Pages of an on-demand key; only the second (for reading) and the third are present. */
#define PAGED_PAGES 8u

/* Fills in one of the variants of a command as example() does. Variant 0, and each number if the
 * command has no variants, is the example; numbers beyond the last variant start over. */
size_t example_variant(struct guest *g, uint16_t opcode, unsigned variant, void *in);

/* Makes an on-demand key, which must succeed. Returns the key. */
uint32_t guest_paged_key(struct guest *g);

#endif
