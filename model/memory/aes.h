/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * AES of a library: XTS of data units (IEEE 1619), and the unwrapping of keys (RFC 3394).
 *
 * The library is OpenSSL's libcrypto. It is loaded when the first key is made, so that programs
 * without keys do not have it in their memory. Where it is missing, a device has no crypto.
 */
#ifndef HCASIM_MODEL_AES_H
#define HCASIM_MODEL_AES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define AES_BLOCK 16 /* the shortest data unit */

/* Whether the library can be loaded. The first call tries it, and unloads the library again. */
bool aes_is_there(void);

/* A key of 32 or 64 bytes: the key of the data, then the key of the tweak. NULL: the library
 * refuses it (both halves are equal), or there is no memory. */
struct aes_xts;
struct aes_xts *aes_xts_new(const uint8_t *key, size_t len);
void aes_xts_free(struct aes_xts *xts); /* NULL is allowed */

/* Encrypts or decrypts one data unit of len bytes, at least AES_BLOCK. in and out may be the same.
 * False: the library refuses. */
bool aes_xts_run(struct aes_xts *xts, bool encrypt, const uint8_t tweak[AES_BLOCK],
                 const uint8_t *in, uint8_t *out, size_t len);

/* Unwraps len bytes with a key of 16 or 32 bytes; key receives len - 8 bytes. False: they were not
 * wrapped with this key. */
bool aes_unwrap(const uint8_t *kek, size_t kek_len, const uint8_t *wrapped, size_t len,
                uint8_t *key);

#endif
