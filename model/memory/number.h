/* SPDX-License-Identifier: BSD-2-Clause */
/* Big-endian numbers of any number of bytes up to eight, as packets and the BAR have them. */
#ifndef HCASIM_MODEL_NUMBER_H
#define HCASIM_MODEL_NUMBER_H

#include <stddef.h>
#include <stdint.h>

static inline uint64_t number_load(const uint8_t *number, size_t len)
{
    uint64_t word = 0;

    for (size_t i = 0; i < len; i++) {
        word = word << 8 | number[i];
    }
    return word;
}

/* Stores the lowest bytes of the word. */
static inline void number_store(uint8_t *number, uint64_t word, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        number[i] = (uint8_t)(word >> 8 * (len - 1 - i));
    }
}

#endif
