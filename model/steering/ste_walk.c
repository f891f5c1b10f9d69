/* SPDX-License-Identifier: BSD-2-Clause */
/* Walks through steering entries. */
#include <libdeflate.h>
#include <string.h>
#include "model/memory/sw_icm.h"
#include "model/steering/ste.h"

/* Two addresses of an entry hold the number of a function, which is that of this one: 0. */
#define OWN_GVMI 0

/* A table of entries, or the end of the walk. */
struct ste_next {
    uint64_t base;
    uint64_t entries;
    uint8_t lookup;
    uint16_t byte_mask;
};

/* Base and size are one number in units of 32 bytes: the lowest bit set is the number of entries. A
 * table is aligned to its size, so no bit of its base is lost. 0: there is no next table. */
static struct ste_next ste_next_of(const struct prm_ste *ste)
{
    uint64_t both = (uint64_t)PRM_GET(ste, ste, next_table_base_39_32_size) << 27 |
                    PRM_GET(ste, ste, next_table_base_31_5_size);
    uint64_t entries = both & -both;

    if (PRM_GET(ste, ste, next_table_base_63_48) != OWN_GVMI) {
        entries = 0;
    }
    return (struct ste_next){
        .base = (both ^ entries) << 5,
        .entries = entries,
        .lookup = (uint8_t)PRM_GET(ste, ste, next_lu_type),
        .byte_mask = (uint16_t)PRM_GET(ste, ste, byte_mask),
    };
}

/* The entry of the table that the frame's tag chooses (driver: dr_ste_calc_hash_index(); CRC-32
 * without inversions, its bytes swapped). */
static uint64_t ste_index(struct ste_walk *walk, const struct ste_next *next)
{
    uint8_t tag[STE_TAG_BYTES];
    uint32_t crc;

    if (next->entries <= 1 || !next->byte_mask) {
        return 0;
    }
    ste_tag(walk, next->lookup, tag);
    for (unsigned i = 0; i < STE_TAG_BYTES; i++) {
        if (!(next->byte_mask >> (STE_TAG_BYTES - 1 - i) & 1)) {
            tag[i] = 0;
        }
    }
    crc = ~libdeflate_crc32(UINT32_MAX, tag, sizeof(tag));
    return GUINT32_SWAP_LE_BE(crc) & (next->entries - 1);
}

static bool ste_hits(struct ste_walk *walk, const struct prm_ste *ste)
{
    const uint8_t *want = PRM_PTR(ste, ste, tag), *mask = PRM_PTR(ste, ste, mask);
    uint8_t tag[STE_TAG_BYTES];
    bool has_headers = ste_tag(walk, (uint8_t)PRM_GET(ste, ste, entry_sub_type), tag);

    for (unsigned i = 0; i < STE_TAG_BYTES; i++) {
        if ((tag[i] & mask[i]) != want[i] || (mask[i] && !has_headers)) {
            return false;
        }
    }
    return true;
}

/* Reads an address that is not in steering memory. */
static enum ste_end ste_end_of(uint64_t address, uint32_t *num)
{
    uint64_t end = (address >> 32) - 0x10;

    *num = (uint32_t)(address & UINT32_MAX) >> 6;
    return end < STE_ENDS && address % STE_BYTES == 0 ? (enum ste_end)end : STE_DROP;
}

enum ste_end ste_run(struct ste_walk *walk, uint64_t address, unsigned max_steps, uint32_t *num)
{
    struct prm_ste ste[1];

    while (walk->len <= WIRE_FRAME_MAX && walk->steps < max_steps) {
        struct ste_next next;

        if (address >= ste_end_address(0, 0)) {
            return ste_end_of(address, num);
        }
        walk->steps++;
        if (address % STE_BYTES || !sw_icm_read(walk->hca, address, ste, sizeof(ste))) {
            break;
        }
        if (!ste_hits(walk, ste)) {
            if (PRM_GET(ste, ste, miss_address_63_48) != OWN_GVMI) {
                break;
            }
            address = (uint64_t)PRM_GET(ste, ste, miss_address_39_32) << 32 |
                      (uint64_t)PRM_GET(ste, ste, miss_address_31_6) << 6;
            continue;
        }
        next = ste_next_of(ste);
        if (!ste_act(walk, ste) || !next.entries) {
            break;
        }
        address = next.base + ste_index(walk, &next) * STE_BYTES;
    }
    *num = 0;
    return STE_DROP;
}
