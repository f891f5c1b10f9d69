/* SPDX-License-Identifier: BSD-2-Clause */
/* Takes numbers from the bytes of an input. At its end all are 0. */
#ifndef HCASIM_TESTS_FUZZ_TAKE_H
#define HCASIM_TESTS_FUZZ_TAKE_H

#include <stddef.h>
#include <stdint.h>

static inline uint8_t take_u8_from(const uint8_t **data, size_t *size)
{
    if (!*size) {
        return 0;
    }
    --*size;
    return *(*data)++;
}

static inline uint32_t take_u32_from(const uint8_t **data, size_t *size)
{
    uint32_t v = 0;

    for (int i = 0; i < 4; i++) {
        v = v << 8 | take_u8_from(data, size);
    }
    return v;
}

#endif
