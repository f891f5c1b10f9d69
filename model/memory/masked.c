/* SPDX-License-Identifier: BSD-2-Clause */
/* The arithmetic of extended atomics. */
#include <glib.h>
#include <string.h>
#include "model/memory/masked.h"

static void masked_cmp_swap(size_t len, const uint8_t *operands, const uint8_t *held, uint8_t *made)
{
    const uint8_t *swap = operands, *compare = operands + len;
    const uint8_t *swap_mask = operands + 2 * len, *compare_mask = operands + 3 * len;

    memcpy(made, held, len);
    for (size_t i = 0; i < len; i++) {
        if ((held[i] ^ compare[i]) & compare_mask[i]) {
            return;
        }
    }
    for (size_t i = 0; i < len; i++) {
        made[i] = (uint8_t)((held[i] & ~swap_mask[i]) | (swap[i] & swap_mask[i]));
    }
}

/* The top bit of each field is added without carry; therefore no carry leaves the field. */
static void masked_fetch_add(size_t len, const uint8_t *operands, const uint8_t *held,
                             uint8_t *made)
{
    const uint8_t *add = operands, *boundary = operands + len;
    unsigned carry = 0;

    for (size_t n = 0; n < len; n++) {
        size_t i = len - 1 - n;
        uint8_t top = boundary[i];
        unsigned sum = (unsigned)(held[i] & ~top & 0xff) + (unsigned)(add[i] & ~top & 0xff) + carry;

        made[i] = (uint8_t)(sum ^ ((held[i] ^ add[i]) & top));
        carry = sum >> 8;
    }
}

bool masked_compute(enum masked_op op, size_t len, const uint8_t *operands, const uint8_t *held,
                    uint8_t *made)
{
    if (op == MASKED_CMP_SWAP) {
        masked_cmp_swap(len, operands, held, made);
    } else {
        masked_fetch_add(len, operands, held, made);
    }
    return memcmp(held, made, len) != 0;
}

uint64_t masked_compute_word(enum masked_op op, const uint64_t *operands, uint64_t held)
{
    if (op == MASKED_CMP_SWAP) {
        uint64_t swap = operands[0], compare = operands[1];
        uint64_t swap_mask = operands[2], compare_mask = operands[3];

        return (held ^ compare) & compare_mask ? held : (held & ~swap_mask) | (swap & swap_mask);
    }
    uint64_t add = operands[0], top = operands[1];

    return ((held & ~top) + (add & ~top)) ^ ((held ^ add) & top);
}
