/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Computes extended atomics. Numbers are 4 to 128 bytes long (a power of two). In WQEs and packets
 * the most significant byte comes first; in the host's memory a number has the host's byte order
 * (docs/adr/0011).
 */
#ifndef HCASIM_MODEL_MASKED_H
#define HCASIM_MODEL_MASKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MASKED_MIN 4
#define MASKED_MAX 128

enum masked_op {
    MASKED_CMP_SWAP,  /* operands: swap, compare, swap mask, compare mask */
    MASKED_FETCH_ADD, /* operands: add, field boundary */
};

/* Length of all operands, in bytes, for an operation on len bytes. */
static inline size_t masked_operand_bytes(enum masked_op op, size_t len)
{
    return (op == MASKED_CMP_SWAP ? 4 : 2) * len;
}
#define MASKED_OPERANDS_MAX (4 * MASKED_MAX)

static inline bool masked_len_ok(size_t len)
{
    return len >= MASKED_MIN && len <= MASKED_MAX && (len & (len - 1)) == 0;
}

/*
 * Computes an extended atomic on the number held, and stores the result in made. Returns false if
 * the result equals held.
 *
 * Compare and swap: number and compare must agree in each bit that is 1 in the compare mask. If
 * they do, each bit that is 1 in the swap mask becomes the bit of swap. Fetch and add: the number
 * is divided into fields. A 1 in the boundary marks the top bit of a field. No carry leaves its
 * field.
 */
bool masked_compute(enum masked_op op, size_t len, const uint8_t *operands, const uint8_t *held,
                    uint8_t *made);

/* The same for a number that fits into a word. Each operand is a word; their order is the same. If
 * the number is shorter than a word, ignore the upper bits of the result. */
uint64_t masked_compute_word(enum masked_op op, const uint64_t *operands, uint64_t held);
#define MASKED_OPERAND_WORDS 4

#endif
