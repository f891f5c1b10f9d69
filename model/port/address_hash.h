/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hashes MACs and GIDs for the lookup tables. The addresses of one subnet or group differ in their
 * last bytes. In a product only the upper bits depend on all bytes of an address. Therefore a table
 * of 2^n places uses the upper n bits of the hash.
 */
#ifndef HCASIM_MODEL_ADDRESS_HASH_H
#define HCASIM_MODEL_ADDRESS_HASH_H

#include <stdint.h>
#include <string.h>

#define ADDRESS_HASH_FACTOR 0x9e3779b97f4a7c15u

static inline uint32_t mac_hash(const uint8_t mac[6])
{
    uint64_t key = 0;

    memcpy(&key, mac, 6);
    return (uint32_t)(key * ADDRESS_HASH_FACTOR >> 32);
}

static inline uint32_t gid_hash(const uint8_t gid[16])
{
    uint64_t half[2];

    memcpy(half, gid, sizeof(half));
    return (uint32_t)((half[0] ^ half[1] * 0xff51afd7ed558ccdu) * ADDRESS_HASH_FACTOR >> 32);
}

static inline unsigned mac_place(const uint8_t mac[6], unsigned log_places)
{
    return mac_hash(mac) >> (32 - log_places);
}

static inline unsigned gid_place(const uint8_t gid[16], unsigned log_places)
{
    return gid_hash(gid) >> (32 - log_places);
}

#endif
