/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A reference of the fields GF(2^w), w = 1, 2, 4, 8, and of erasure codes in them, for tests. It
 * multiplies bit by bit.
 */
#ifndef HCASIM_TESTS_GF_REF_H
#define HCASIM_TESTS_GF_REF_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Russian peasant multiplication, from the highest bit down. */
static inline unsigned gf_ref_multiply(unsigned w, unsigned x, unsigned y)
{
    static const unsigned polynomials[] = {[1] = 0x3, [2] = 0x7, [4] = 0x13, [8] = 0x11d};
    unsigned product = 0;

    for (unsigned bit = w; bit--;) {
        product <<= 1;
        if (product & 1u << w) {
            product ^= polynomials[w];
        }
        if (y & 1u << bit) {
            product ^= x;
        }
    }
    return product;
}

static inline unsigned gf_ref_inverse(unsigned w, unsigned x)
{
    unsigned y = 1;

    while (gf_ref_multiply(w, x, y) != 1) {
        y++;
    }
    return y;
}

/* Multiplies the symbols of a byte by a constant. */
static inline uint8_t gf_ref_byte(unsigned w, unsigned constant, uint8_t byte)
{
    unsigned mask = (1u << w) - 1, product = 0;

    for (unsigned at = 0; at < 8; at += w) {
        product |= gf_ref_multiply(w, constant & mask, byte >> at & mask) << at;
    }
    return (uint8_t)product;
}

/* -- codes ------------------------------------------------------------------------------------- */

#define CODE_MOST 256u

/* A Cauchy code: any k of its k + m blocks give all others. */
struct code {
    unsigned k, m, w;
    uint8_t matrix[CODE_MOST * CODE_MOST / 4]; /* k rows, m columns */
};

static inline void code_make(struct code *code, unsigned k, unsigned m, unsigned w)
{
    code->k = k;
    code->m = m;
    code->w = w;
    for (unsigned i = 0; i < k; i++) {
        for (unsigned j = 0; j < m; j++) {
            code->matrix[i * m + j] = (uint8_t)gf_ref_inverse(w, i ^ (k + j));
        }
    }
}

/* The constant with which data block i counts in block b of all k + m. */
static inline unsigned code_constant(const struct code *code, unsigned b, unsigned i)
{
    return b < code->k ? b == i : code->matrix[i * code->m + b - code->k];
}

/* Byte at of code block j; data[i]: the data blocks. */
static inline uint8_t code_byte(const struct code *code, uint8_t *const *data, unsigned j,
                                uint32_t at)
{
    uint8_t sum = 0;

    for (unsigned i = 0; i < code->k; i++) {
        sum ^= gf_ref_byte(code->w, code->matrix[i * code->m + j], data[i][at]);
    }
    return sum;
}

/* Inverts the matrix a of n rows, which has an inverse, by Gauss and Jordan. */
static inline void code_invert(unsigned w, unsigned n, uint8_t *a, uint8_t *inverse)
{
    memset(inverse, 0, (size_t)n * n);
    for (unsigned i = 0; i < n; i++) {
        inverse[i * n + i] = 1;
    }
    for (unsigned c = 0; c < n; c++) {
        unsigned pivot = c, scale;

        while (!a[pivot * n + c]) {
            pivot++;
        }
        for (unsigned j = 0; j < n; j++) {
            uint8_t swap = a[c * n + j], other = inverse[c * n + j];

            a[c * n + j] = a[pivot * n + j];
            a[pivot * n + j] = swap;
            inverse[c * n + j] = inverse[pivot * n + j];
            inverse[pivot * n + j] = other;
        }
        scale = gf_ref_inverse(w, a[c * n + c]);
        for (unsigned j = 0; j < n; j++) {
            a[c * n + j] = (uint8_t)gf_ref_multiply(w, scale, a[c * n + j]);
            inverse[c * n + j] = (uint8_t)gf_ref_multiply(w, scale, inverse[c * n + j]);
        }
        for (unsigned i = 0; i < n; i++) {
            unsigned factor = a[i * n + c];

            for (unsigned j = 0; i != c && factor && j < n; j++) {
                a[i * n + j] ^= (uint8_t)gf_ref_multiply(w, factor, a[c * n + j]);
                inverse[i * n + j] ^= (uint8_t)gf_ref_multiply(w, factor, inverse[c * n + j]);
            }
        }
    }
}

#define CODE_SMALL 16u /* the most data blocks of code_decoder() */

/* Fills the matrix that gives the lost blocks from the first k that are left: k rows, a column for
 * each lost block. Returns the number of columns. */
static inline unsigned code_decoder(const struct code *code, const uint8_t *lost, uint8_t *decoder)
{
    uint8_t left[CODE_SMALL * CODE_SMALL], inverse[CODE_SMALL * CODE_SMALL];
    unsigned k = code->k, rows = 0, columns = 0, column = 0;

    for (unsigned b = 0; b < k + code->m; b++) {
        columns += lost[b] != 0;
        for (unsigned i = 0; !lost[b] && rows < k && i < k; i++) {
            left[rows * k + i] = (uint8_t)code_constant(code, b, i);
        }
        rows += !lost[b] && rows < k;
    }
    code_invert(code->w, k, left, inverse);
    for (unsigned b = 0; b < k + code->m; b++) {
        for (unsigned s = 0; lost[b] && s < k; s++) {
            unsigned sum = 0;

            for (unsigned i = 0; i < k; i++) {
                sum ^= gf_ref_multiply(code->w, code_constant(code, b, i), inverse[i * k + s]);
            }
            decoder[s * columns + column] = (uint8_t)sum;
        }
        column += lost[b] != 0;
    }
    return columns;
}

#endif
