/* SPDX-License-Identifier: BSD-2-Clause */
/* Frames written as hex digits (tunnel_frames.def, tunnel_segments.def). */
#ifndef HCASIM_TESTS_HEX_FRAME_H
#define HCASIM_TESTS_HEX_FRAME_H

#include <check.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct hex_frame {
    uint8_t bytes[256];
    size_t len;
};

static inline struct hex_frame hex_frame(const char *hex)
{
    struct hex_frame f = {.len = strlen(hex) / 2};

    ck_assert_uint_le(f.len, sizeof(f.bytes));
    for (size_t i = 0; i < f.len; i++) {
        unsigned byte;

        ck_assert_int_eq(sscanf(hex + 2 * i, "%2x", &byte), 1);
        f.bytes[i] = (uint8_t)byte;
    }
    return f;
}

#endif
