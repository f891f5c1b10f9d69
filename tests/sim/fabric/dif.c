/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements dif.h. */
#include "tests/sim/fabric/dif.h"
#include <glib.h>
#include <string.h>

unsigned dif_bytes(const struct dif_format *f)
{
    return f->kind == DIF_NONE ? 0 : f->kind == DIF_CRC32 || f->kind == DIF_CRC32C ? 4 : 8;
}

uint32_t dif_length(const struct dif_format *f, uint32_t data)
{
    return f->kind == DIF_NONE ? data : data + data / f->block * dif_bytes(f);
}

/* -- guards ------------------------------------------------------------------------------------ */

/* A CRC whose numbers have their least significant bit first. */
static uint64_t dif_reflected(uint64_t polynomial, uint64_t crc, const uint8_t *at, uint32_t len)
{
    for (uint32_t i = 0; i < 8 * len; i++) {
        crc = crc >> 1 ^ ((crc ^ at[i / 8] >> i % 8) & 1 ? polynomial : 0);
    }
    return crc;
}

static uint16_t dif_t10_crc(uint16_t crc, const uint8_t *at, uint32_t len)
{
    for (uint32_t i = 0; i < 8 * len; i++) {
        bool one = (crc >> 15 ^ at[i / 8] >> (7 - i % 8)) & 1;

        crc = (uint16_t)(crc << 1 ^ (one ? 0x8bb7 : 0));
    }
    return crc;
}

static uint16_t dif_checksum(uint32_t sum, const uint8_t *at, uint32_t len)
{
    for (uint32_t i = 0; i < len; i += 2) {
        sum += (uint32_t)at[i] << 8 | at[i + 1];
        sum = (sum & 0xffff) + (sum >> 16);
    }
    return (uint16_t)~sum;
}

static uint64_t dif_guard(const struct dif_format *f, const uint8_t *data)
{
    switch (f->kind) {
    case DIF_T10_CRC:
        return dif_t10_crc((uint16_t)f->seed, data, f->block);
    case DIF_T10_CHECKSUM:
        return dif_checksum((uint16_t)f->seed, data, f->block);
    case DIF_CRC32:
        return (uint32_t)~dif_reflected(0xedb88320, f->seed, data, f->block);
    case DIF_CRC32C:
        return (uint32_t)~dif_reflected(0x82f63b78, f->seed, data, f->block);
    default:
        return ~dif_reflected(0x9a6c9329ac4bc9b5, f->seed, data, f->block);
    }
}

/* -- signatures -------------------------------------------------------------------------------- */

/* The signature of the nth block. */
static void dif_sign(const struct dif_format *f, uint32_t nth, const uint8_t *data, uint8_t *field)
{
    uint64_t guard = dif_guard(f, data);
    uint32_t ref = f->ref + (f->ref_grows ? nth : 0);

    if (!dif_is_t10(f)) {
        for (unsigned i = 0; i < dif_bytes(f); i++) {
            field[i] = (uint8_t)(guard >> 8 * i);
        }
        return;
    }
    field[0] = (uint8_t)(guard >> 8);
    field[1] = (uint8_t)guard;
    field[2] = (uint8_t)(f->app >> 8);
    field[3] = (uint8_t)f->app;
    for (unsigned i = 0; i < 4; i++) {
        field[4 + i] = (uint8_t)(ref >> 8 * (3 - i));
    }
}

/* The number in len bytes of a signature. */
static uint64_t dif_number(const struct dif_format *f, const uint8_t *at, unsigned len)
{
    uint64_t number = 0;

    for (unsigned i = 0; i < len; i++) {
        number = number << 8 | at[dif_is_t10(f) ? i : len - 1 - i];
    }
    return number;
}

static bool dif_escapes(const struct dif_format *f, const uint8_t *field)
{
    if (!dif_is_t10(f) || dif_number(f, field + 2, 2) != 0xffff) {
        return false;
    }
    return f->app_escapes || (f->app_ref_escapes && dif_number(f, field + 4, 4) == 0xffffffff);
}

/* Compares a signature with the one that the block should have. */
static struct dif_error dif_compare(const struct dif_format *f, uint8_t check, const uint8_t *field,
                                    const uint8_t *right)
{
    static const struct {
        enum dif_bad bad;
        unsigned at, len;
    } parts[] = {{DIF_BAD_GUARD, 0, 2}, {DIF_BAD_APP, 2, 2}, {DIF_BAD_REF, 4, 4}};
    unsigned num = dif_is_t10(f) ? 3 : 1;

    for (unsigned p = 0; p < num && !dif_escapes(f, field); p++) {
        unsigned at = parts[p].at, len = num == 1 ? dif_bytes(f) : parts[p].len;

        for (unsigned i = at; i < at + len; i++) {
            if (check & 0x80 >> i && field[i] != right[i]) {
                return (struct dif_error){.bad = parts[p].bad,
                                          .found = dif_number(f, field + at, len),
                                          .computed = dif_number(f, right + at, len)};
            }
        }
    }
    return (struct dif_error){.bad = DIF_GOOD};
}

/* -- images ------------------------------------------------------------------------------------ */

void dif_make(const struct dif_format *f, const uint8_t *data, uint32_t len, uint8_t *image)
{
    for (uint32_t nth = 0; f->kind && (nth + 1) * f->block <= len; nth++) {
        memcpy(image, data + nth * f->block, f->block);
        dif_sign(f, nth, data + nth * f->block, image + f->block);
        image += f->block + dif_bytes(f);
    }
    memcpy(image, data + (f->kind ? len / f->block * f->block : 0), f->kind ? len % f->block : len);
}

/* Takes the data out of its image, and finds the first damaged block. */
static struct dif_error dif_open(const struct dif_format *f, uint8_t check, const uint8_t *image,
                                 uint32_t len, uint8_t *data)
{
    struct dif_error first = {.bad = DIF_GOOD};
    const uint8_t *block = image;

    for (uint32_t nth = 0; f->kind && (nth + 1) * f->block <= len; nth++) {
        uint8_t right[DIF_FIELD];
        struct dif_error error;

        memcpy(data + nth * f->block, block, f->block);
        dif_sign(f, nth, block, right);
        error = dif_compare(f, check, block + f->block, right);
        error.offset = (uint64_t)(block - image);
        first = first.bad ? first : error;
        block += f->block + dif_bytes(f);
    }
    memcpy(data + (f->kind ? len / f->block * f->block : 0), block, f->kind ? len % f->block : len);
    return first;
}

struct dif_error dif_pass(const struct dif_format *in, const struct dif_format *out, uint8_t check,
                          uint8_t copy, uint32_t len, const uint8_t *from, uint8_t *to)
{
    g_autofree uint8_t *data = g_malloc(len);
    struct dif_error error = dif_open(in, check, from, len, data);
    uint32_t unit = out->block + dif_bytes(out);

    dif_make(out, data, len, to);
    for (uint32_t nth = 0; copy && (nth + 1) * out->block <= len; nth++) {
        for (unsigned i = 0; i < dif_bytes(out); i++) {
            uint32_t at = nth * unit + out->block + i;

            to[at] = copy & 0x80 >> i ? from[at] : to[at];
        }
    }
    return error;
}
