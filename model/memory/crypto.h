/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The transform that encrypts or decrypts the data behind a key with AES-XTS.
 *
 * The data below the transform is a sequence of data units. Unit n has the tweak of the key's
 * descriptor plus n, as a number of 128 bits, which XTS takes in little-endian form (IEEE 1619).
 * The last unit may be shorter; fewer than 16 bytes, which XTS cannot encrypt, stay as they are.
 *
 * A whole unit is encrypted at a time. If a write has only a part of a unit, as a packet has of a
 * long one, the rest is read from memory, and the whole unit is written. So packets may come again,
 * from any byte on.
 */
#ifndef HCASIM_MODEL_CRYPTO_H
#define HCASIM_MODEL_CRYPTO_H

#include "model/memory/dek.h"
#include "model/memory/transform.h"

/* The crypto descriptor of a key. It is allocated with the key. */
struct crypto {
    struct transform transform;
    uint32_t unit;     /* bytes of a data unit; 0: no descriptor */
    uint8_t order;     /* PRM_CRYPTO_ORDER_ */
    uint32_t dek;      /* number of the key */
    uint32_t pdn;      /* of the memory key */
    uint64_t tweak[2]; /* of the first unit: low and high half */
    uint8_t keytag[DEK_KEYTAG_BYTES];
    uint64_t total; /* bytes of data */
};

extern const struct transform_ops crypto_ops;

/* Reads a descriptor into *crypto. False: it is not valid, or the DEK does not exist in the PD. */
bool crypto_parse(struct hca *hca, uint32_t pdn, const struct prm_crypto_bsf *descriptor,
                  struct crypto *crypto);

/* Whether the data on the wire is the encrypted data; otherwise the data in memory is. */
static inline bool crypto_is_of_wire(const struct crypto *crypto)
{
    return crypto->order == PRM_CRYPTO_ORDER_WIRE_SIGNATURE ||
           crypto->order == PRM_CRYPTO_ORDER_RAW_WIRE;
}

/* Whether signatures lie between the encryption and memory; otherwise between it and the wire. */
static inline bool crypto_is_above_sig(const struct crypto *crypto)
{
    return crypto->order == PRM_CRYPTO_ORDER_WIRE_SIGNATURE ||
           crypto->order == PRM_CRYPTO_ORDER_RAW_MEMORY;
}

#endif
