/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads what the tests of captures have written, and checks that it is whole: one section, whose
 * blocks reach to the end. */
#ifndef HCASIM_TESTS_UNIT_CAPTURE_READER_H
#define HCASIM_TESTS_UNIT_CAPTURE_READER_H

#include <glib.h>
#include <stddef.h>
#include <stdint.h>

#define CAPTURE_CLOSER 0xee /* a frame of these bytes is counted apart */

struct capture_contents {
    unsigned interfaces, packets;
    unsigned of_interface[16], closers[16];
    uint64_t missing_of[16];
    char names[16][65];
    uint64_t missing;
};

/* The bytes of a frame must all be the same. */
struct capture_contents capture_read(const uint8_t *bytes, size_t len);
struct capture_contents capture_read_file(const char *path);

/* The comments of each packet, with " | " between two. The caller frees the array. first gets the
 * first byte of each frame; it may be NULL. */
GPtrArray *capture_read_comments(const char *path, GByteArray *first);

#endif
