/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Computes CRCs by ISA-L, or by tables if the machine has no ISA-L or its version lacks the
 * function. Tables process eight bytes at a time: table n has the effect of a byte that n more
 * bytes follow. docs/adr/0026 has measurements.
 */
#include "model/memory/sig_sum.h"

#include <dlfcn.h>
#include <glib.h>
#include <string.h>

#define SLICES 8

/* Reflected polynomials. A CRC of 32 bits is a CRC of 64 bits whose upper half stays 0. */
static const uint64_t sig_polynomials[] = {
    [SIG_CRC32] = 0xedb88320,
    [SIG_CRC32C] = 0x82f63b78,
    [SIG_CRC64_XP10] = 0x9a6c9329ac4bc9b5,
};
#define T10_POLYNOMIAL 0x8bb7

static uint64_t sig_tables[G_N_ELEMENTS(sig_polynomials)][SLICES][256];
static uint16_t sig_t10_table[SLICES][256];

/* The functions of ISA-L. All except crc32_iscsi() and crc16_t10dif() take and return the inverse
 * of the state. NULL: not there. */
static struct {
    uint16_t (*crc16_t10dif)(uint16_t crc, const uint8_t *bytes, uint64_t len);
    uint32_t (*crc32_gzip_refl)(uint32_t crc, const uint8_t *bytes, uint64_t len);
    uint32_t (*crc32_iscsi)(const uint8_t *bytes, int len, uint32_t crc);
    uint64_t (*crc64_rocksoft_refl)(uint64_t crc, const uint8_t *bytes, uint64_t len);
} isal;

#define SIG_LIBRARY "libisal.so.2"

bool sig_sum_use_library(bool wanted)
{
    void *library = wanted ? dlopen(SIG_LIBRARY, RTLD_NOW | RTLD_LOCAL) : NULL;

    memset(&isal, 0, sizeof(isal));
    if (library) {
        *(void **)&isal.crc16_t10dif = dlsym(library, "crc16_t10dif");
        *(void **)&isal.crc32_gzip_refl = dlsym(library, "crc32_gzip_refl");
        *(void **)&isal.crc32_iscsi = dlsym(library, "crc32_iscsi");
        *(void **)&isal.crc64_rocksoft_refl = dlsym(library, "crc64_rocksoft_refl");
    }
    return library;
}

static uint64_t sig_reflected_byte(uint64_t polynomial, unsigned byte)
{
    uint64_t crc = byte;

    for (unsigned bit = 0; bit < 8; bit++) {
        crc = crc >> 1 ^ (crc & 1 ? polynomial : 0);
    }
    return crc;
}

static uint16_t sig_t10_byte(unsigned byte)
{
    unsigned crc = byte << 8;

    for (unsigned bit = 0; bit < 8; bit++) {
        crc = crc << 1 ^ (crc & 0x8000 ? T10_POLYNOMIAL : 0);
    }
    return (uint16_t)crc;
}

static void sig_make_tables(void)
{
    for (unsigned kind = SIG_CRC32; kind < G_N_ELEMENTS(sig_polynomials); kind++) {
        uint64_t(*table)[256] = sig_tables[kind];

        for (unsigned byte = 0; byte < 256; byte++) {
            table[0][byte] = sig_reflected_byte(sig_polynomials[kind], byte);
        }
        for (unsigned n = 1; n < SLICES; n++) {
            for (unsigned byte = 0; byte < 256; byte++) {
                uint64_t before = table[n - 1][byte];

                table[n][byte] = before >> 8 ^ table[0][before & 0xff];
            }
        }
    }
    for (unsigned byte = 0; byte < 256; byte++) {
        sig_t10_table[0][byte] = sig_t10_byte(byte);
    }
    for (unsigned n = 1; n < SLICES; n++) {
        for (unsigned byte = 0; byte < 256; byte++) {
            uint16_t before = sig_t10_table[n - 1][byte];

            sig_t10_table[n][byte] = (uint16_t)(before << 8 ^ sig_t10_table[0][before >> 8]);
        }
    }
}

void sig_sum_init(void)
{
    static gsize done;

    if (g_once_init_enter(&done)) {
        sig_make_tables();
        sig_sum_use_library(true);
        g_once_init_leave(&done, 1);
    }
}

static uint64_t sig_add_reflected(const uint64_t table[SLICES][256], uint64_t crc,
                                  const uint8_t *bytes, size_t len)
{
    for (; len >= SLICES; bytes += SLICES, len -= SLICES) {
        uint64_t word;

        memcpy(&word, bytes, sizeof(word));
        word = GUINT64_FROM_LE(word) ^ crc;
        crc = table[7][word & 0xff] ^ table[6][word >> 8 & 0xff] ^ table[5][word >> 16 & 0xff] ^
              table[4][word >> 24 & 0xff] ^ table[3][word >> 32 & 0xff] ^
              table[2][word >> 40 & 0xff] ^ table[1][word >> 48 & 0xff] ^ table[0][word >> 56];
    }
    for (; len; bytes++, len--) {
        crc = crc >> 8 ^ table[0][(crc ^ *bytes) & 0xff];
    }
    return crc;
}

static uint64_t sig_add_t10(uint16_t crc, const uint8_t *bytes, size_t len)
{
    for (; len >= SLICES; bytes += SLICES, len -= SLICES) {
        crc = sig_t10_table[7][bytes[0] ^ crc >> 8] ^ sig_t10_table[6][bytes[1] ^ (crc & 0xff)] ^
              sig_t10_table[5][bytes[2]] ^ sig_t10_table[4][bytes[3]] ^ sig_t10_table[3][bytes[4]] ^
              sig_t10_table[2][bytes[5]] ^ sig_t10_table[1][bytes[6]] ^ sig_t10_table[0][bytes[7]];
    }
    for (; len; bytes++, len--) {
        crc = (uint16_t)(crc << 8 ^ sig_t10_table[0][crc >> 8 ^ *bytes]);
    }
    return crc;
}

/* Folds a ones' complement sum to 16 bits. */
static uint64_t sig_fold(uint64_t sum)
{
    while (sum >> 16) {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    return sum;
}

/* The sum of numbers in the host's byte order is the sum of the big-endian numbers with its two
 * bytes swapped, or not (RFC 1071, 2(B)). A piece that begins at an odd byte has them the other way
 * round. */
static uint64_t sig_add_csum(uint64_t state, uint64_t at, const uint8_t *bytes, size_t len)
{
    uint64_t sum = 0;
    bool swaps = (G_BYTE_ORDER == G_LITTLE_ENDIAN) != (at & 1);

    for (; len >= sizeof(uint32_t); bytes += sizeof(uint32_t), len -= sizeof(uint32_t)) {
        uint32_t word;

        memcpy(&word, bytes, sizeof(word));
        sum += word;
    }
    for (size_t i = 0; i < len; i += 2) {
        uint8_t pair[2] = {bytes[i], i + 1 < len ? bytes[i + 1] : 0};
        uint16_t word;

        memcpy(&word, pair, sizeof(word));
        sum += word;
    }
    sum = sig_fold(sum);
    return sig_fold(state + (swaps ? (sum & 0xff) << 8 | sum >> 8 : sum));
}

uint64_t sig_sum_add(enum sig_kind kind, uint64_t state, uint64_t at, const void *bytes, size_t len)
{
    switch (kind) {
    case SIG_T10_CRC:
        return isal.crc16_t10dif ? isal.crc16_t10dif((uint16_t)state, bytes, len)
                                 : sig_add_t10((uint16_t)state, bytes, len);
    case SIG_T10_CSUM:
        return sig_add_csum(state, at, bytes, len);
    case SIG_CRC32:
        if (isal.crc32_gzip_refl) {
            return ~isal.crc32_gzip_refl(~(uint32_t)state, bytes, len);
        }
        break;
    case SIG_CRC32C:
        if (isal.crc32_iscsi) {
            return isal.crc32_iscsi(bytes, (int)len, (uint32_t)state);
        }
        break;
    case SIG_CRC64_XP10:
        if (isal.crc64_rocksoft_refl) {
            return ~isal.crc64_rocksoft_refl(~state, bytes, len);
        }
        break;
    default:
        return 0;
    }
    return sig_add_reflected((const uint64_t(*)[256])sig_tables[kind], state, bytes, len);
}

uint64_t sig_sum_end(enum sig_kind kind, uint64_t state)
{
    switch (kind) {
    case SIG_T10_CSUM:
        return ~state & 0xffff;
    case SIG_CRC32:
    case SIG_CRC32C:
        return ~state & 0xffffffff;
    case SIG_CRC64_XP10:
        return ~state;
    default:
        return state;
    }
}
