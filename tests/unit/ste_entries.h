/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Steering entries as bytes, for the tests of steering by software. The layout of an entry and the
 * hash are stated here again, independently of the device.
 */
#ifndef HCASIM_TESTS_STE_ENTRIES_H
#define HCASIM_TESTS_STE_ENTRIES_H

#include <check.h>
#include <string.h>
#include "model/memory/place.h"
#include "model/memory/sw_icm.h"
#include "model/steering/steering.h"

#define STE_ANY 0x0f /* the lookup type of an entry that looks at nothing */

/* An entry, in the terms of its fields. */
struct entry {
    uint8_t type; /* 0: RX */
    uint8_t lookup, next_lookup;
    uint16_t byte_mask;
    uint64_t hit;     /* address of the next table, or of an end */
    uint32_t entries; /* 0: 1 */
    uint16_t hit_gvmi, miss_gvmi;
    uint64_t miss;
    uint32_t counter, word3, pointer;
    uint8_t tunneling, description;
    bool never; /* no frame hits it */
    uint8_t tag[16], mask[16];
};

static inline void be(uint8_t *p, uint64_t value, unsigned bytes)
{
    while (bytes--) {
        p[bytes] = (uint8_t)value;
        value >>= 8;
    }
}

static inline void ste_put_bytes(struct hca *hca, uint64_t at, const void *bytes, size_t len)
{
    ck_assert(mem_place_write(hca, (struct mem_place){MEM_SPACE_SW_ICM, at}, bytes, len));
}

/* type: of an entry whose own is 0. */
static inline void ste_put(struct hca *hca, uint8_t type, uint64_t at, const struct entry *e)
{
    uint64_t both = e->hit >> 5 | (e->entries ? e->entries : 1);
    uint8_t s[64] = {0};

    s[0] = (uint8_t)((e->type ? e->type : type) << 4);
    s[1] = e->lookup;
    be(s + 2, e->byte_mask, 2);
    be(s + 4, e->hit_gvmi, 2);
    s[6] = e->next_lookup;
    s[7] = (uint8_t)(both >> 27);
    be(s + 8, both << 5, 4);
    be(s + 12, e->word3, 4);
    be(s + 16, e->pointer, 4);
    s[20] = (uint8_t)(e->tunneling << 4 | e->description);
    be(s + 22, e->counter, 2);
    be(s + 24, e->miss_gvmi, 2);
    s[26] = (uint8_t)(e->counter >> 16);
    s[27] = (uint8_t)(e->miss >> 32);
    be(s + 28, e->miss, 4);
    memcpy(s + 32, e->tag, 16);
    memcpy(s + 48, e->mask, 16);
    if (e->never) {
        s[32] = 0xdc; /* driver: dr_ste_set_always_miss() */
    }
    ste_put_bytes(hca, at, s, sizeof(s));
}

/* Takes the first block of a region of steering memory. */
static inline void ste_take_memory(struct hca *hca, uint64_t start, uint32_t *num)
{
    struct prm_sw_icm object[1] = {0};

    PRM_SET(sw_icm, object, sw_icm_start_addr, start);
    PRM_SET(sw_icm, object, log_sw_icm_size, SW_ICM_LOG_BLOCK);
    ck_assert_int_eq(sw_icm_create(hca, 0, object, num), SYN_OK);
}

/* A table that software lays out, which begins with the entry at root. */
static inline uint32_t ste_table(struct hca *hca, uint16_t uid, uint8_t type, uint64_t root)
{
    struct prm_flow_table_context ctx[1] = {0};
    uint32_t id;

    PRM_SET(flow_table_context, ctx, sw_owner, 1);
    PRM_SET(flow_table_context, ctx, level, 100);
    PRM_SET(flow_table_context, ctx, sws_sw_owner_icm_root_0, root);
    ck_assert_int_eq(flow_table_create(hca, uid, type, ctx, &id), SYN_OK);
    return id;
}

/* CRC-32 bit by bit, as in the driver's dr_crc32.c: it begins with 0 and is not inverted; the bytes
 * of the result are swapped. */
static inline uint32_t ste_hash(const uint8_t tag[16])
{
    uint32_t crc = 0;

    for (unsigned i = 0; i < 16; i++) {
        crc ^= tag[i];
        for (unsigned bit = 0; bit < 8; bit++) {
            crc = crc & 1 ? crc >> 1 ^ 0xedb88320u : crc >> 1;
        }
    }
    return __builtin_bswap32(crc);
}

#endif
