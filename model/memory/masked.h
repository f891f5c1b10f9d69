/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Extended atomics: what they make of a number. Numbers are 4 to 128 bytes long (a power of two),
 * most significant byte first, as WQEs and packets have them; in the host's memory they lie in the
 * host's byte order (docs/adr/0011).
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

/* Bytes of the operands of an operation on len bytes. */
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
 * Compare and swap: where the compare mask has a 1, number and compare must agree; then the bits of
 * the swap mask are swap's. Fetch and add: the number is cut into fields, each of which ends, from
 * below, with a 1 of the boundary; none carries into the next.
 * The number before is in held, that after in made. False: they are the same.
 */
bool masked_compute(enum masked_op op, size_t len, const uint8_t *operands, const uint8_t *held,
                    uint8_t *made);

/* The same of a number that fits into a word: its operands, of which each is a word, in the same
 * order. The upper bits of what comes back mean nothing when the number is shorter than a word. */
uint64_t masked_compute_word(enum masked_op op, const uint64_t *operands, uint64_t held);
#define MASKED_OPERAND_WORDS 4

#endif
