/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Computes the guards of block signatures: the CRCs and the IP checksum.
 *
 * A computation is begun, is fed the bytes of a block in order, in pieces of any length, and is
 * ended. Polynomials and conventions:
 *
 *   T10 CRC     0x8bb7, most significant bit first, no final inversion (T10 SBC-3)
 *   IP checksum ones' complement of the ones' complement sum of big-endian 16-bit numbers (RFC
 * 1071) CRC32       0x04c11db7, reflected, inverted at the end (ANSI X3.230; Ethernet) CRC32C
 * 0x1edc6f41, reflected, inverted at the end (RFC 3720) CRC64-XP10  0xad93d23594c93659, reflected,
 * inverted at the end
 */
#ifndef HCASIM_MODEL_SIG_SUM_H
#define HCASIM_MODEL_SIG_SUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum sig_kind {
    SIG_NONE,
    SIG_T10_CRC,
    SIG_T10_CSUM,
    SIG_CRC32,
    SIG_CRC32C,
    SIG_CRC64_XP10,
};

/* Called before any other function of this file. Any thread may call it, any number of times. Loads
 * ISA-L (libisal.so.2), if the machine has it; programs without signatures never load it. */
void sig_sum_init(void);

/* For tests: whether ISA-L computes what it can compute. Returns whether it does so from now on. */
bool sig_sum_use_library(bool wanted);

/* Feeds bytes to a computation, which begins with the seed as its state. at: the number of bytes
 * that were fed before. Returns the new state. */
uint64_t sig_sum_add(enum sig_kind kind, uint64_t state, uint64_t at, const void *bytes,
                     size_t len);
/* The guard. */
uint64_t sig_sum_end(enum sig_kind kind, uint64_t state);

#endif
