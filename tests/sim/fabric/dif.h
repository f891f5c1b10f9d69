/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Is the reference of block signatures: which signature a block has, which blocks are damaged, and
 * what a key with signatures makes of its input. It computes each guard bit by bit, and shares no
 * code with the device.
 */
#ifndef HCASIM_TESTS_DIF_H
#define HCASIM_TESTS_DIF_H

#include <stdbool.h>
#include <stdint.h>

enum dif_kind {
    DIF_NONE, /* no signatures */
    DIF_T10_CRC,
    DIF_T10_CHECKSUM,
    DIF_CRC32,
    DIF_CRC32C,
    DIF_CRC64_XP10,
    DIF_KINDS,
};

#define DIF_FIELD 8u /* the most bytes of a signature */

/* The form of data in a domain: blocks of data, each followed by its signature. Data behind the
 * last whole block has no signature. */
struct dif_format {
    enum dif_kind kind;
    uint32_t block; /* bytes of data in a block */
    uint64_t seed;
    /* of T10-DIF */
    uint16_t app;
    uint32_t ref;
    bool ref_grows;       /* with each block */
    bool app_escapes;     /* application tag 0xffff: the block is not checked */
    bool app_ref_escapes; /* the same, if the reference tag has all bits set, too */
};

static inline bool dif_is_t10(const struct dif_format *f)
{
    return f->kind == DIF_T10_CRC || f->kind == DIF_T10_CHECKSUM;
}
/* Bytes of a signature. */
unsigned dif_bytes(const struct dif_format *f);
/* Bytes of so much data with its signatures. */
uint32_t dif_length(const struct dif_format *f, uint32_t data);
/* Adds signatures: the image receives dif_length() bytes. */
void dif_make(const struct dif_format *f, const uint8_t *data, uint32_t len, uint8_t *image);

/* The first damaged block. */
struct dif_error {
    enum dif_bad {
        DIF_GOOD,
        DIF_BAD_GUARD,
        DIF_BAD_APP,
        DIF_BAD_REF,
    } bad;
    uint64_t offset;          /* of the block in its image */
    uint64_t found, computed; /* what the signature says, and what it should say */
};

/* Passes the image of so much data from one domain to another. Bit 7 of a mask is the first byte of
 * a signature: check has the bytes that are compared, copy those that the output takes over from
 * the input, which must then have the same blocks. Returns the first damaged block of the input. */
struct dif_error dif_pass(const struct dif_format *in, const struct dif_format *out, uint8_t check,
                          uint8_t copy, uint32_t data, const uint8_t *from, uint8_t *to);

#endif
