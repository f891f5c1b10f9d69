/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calculates with the data of a message (cross channel's calc_op): a list of elements becomes one
 * element, which is sent instead of the list.
 *
 * An element has 16 bytes in network byte order: a value of 8 bytes, then an id of 8 bytes
 * (libibverbs' cc_pingpong: pp_pack_data_for_calc()). The numbers of the operations are those that
 * libmlx5 writes to ctrl.opmod. docs/adr/0030 says what public sources do not: the length of a
 * result, the most operands, ties, and rounding.
 */
#ifndef HCASIM_MODEL_CALC_H
#define HCASIM_MODEL_CALC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum calc_op {
    CALC_NONE,
    CALC_ADD,    /* of integers of 64 bits, modulo 2^64 */
    CALC_ADD_FP, /* of floating point numbers of 64 bits (IEEE 754 binary64) */
    CALC_MAXLOC, /* the larger unsigned value, with its id; of equal values, the smaller id */
    CALC_AND,
    CALC_OR,
    CALC_XOR,
    CALC_OPS,
};

#define CALC_ELEMENT      16u
#define CALC_MAX_OPERANDS 256u
#define CALC_MAX_BYTES    (CALC_MAX_OPERANDS * CALC_ELEMENT)

/* Whether a list of so many bytes consists of operands, and is not too long. */
static inline bool calc_length_ok(uint64_t len)
{
    return len >= CALC_ELEMENT && len <= CALC_MAX_BYTES && len % CALC_ELEMENT == 0;
}

/*
 * Calculates sum = sum op element for each of n elements, in their order. All operations but MAXLOC
 * leave the id of the sum as it is: a result has the id of its first operand. Floating point
 * numbers are rounded to nearest, ties to even; a result that is no number is 0x7ff8000000000000.
 * On x86, the thread's floating point settings have no effect, and stay as they are.
 */
void calc_fold(enum calc_op op, uint8_t sum[CALC_ELEMENT], const uint8_t *elements, size_t n);

/* The same for the first elements of a list: the sum begins as the first element. n >= 1. */
void calc_begin(enum calc_op op, uint8_t sum[CALC_ELEMENT], const uint8_t *elements, size_t n);

#endif
