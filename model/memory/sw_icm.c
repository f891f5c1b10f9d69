/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Gives out steering memory, and executes the accesses to it.
 *
 * hca->sw_icm_owner has the object of each block of both regions, so that an address is looked up
 * in one step. It exists while there are objects.
 */
#include "model/memory/place.h"
#include "model/memory/sw_icm.h"

static const struct {
    uint64_t start;
    unsigned log_size;
    uint32_t base; /* of its blocks in hca->sw_icm_owner */
} sw_icm_regions[SW_ICM_REGIONS] = {
    [SW_ICM_STE] = {SW_ICM_STE_START, SW_ICM_LOG_STE_SIZE, 0},
    [SW_ICM_MODIFY] = {SW_ICM_MODIFY_START, SW_ICM_LOG_MODIFY_SIZE,
                       1u << (SW_ICM_LOG_STE_SIZE - SW_ICM_LOG_BLOCK)},
};

#define OWNERS                                                                                     \
    ((1u << (SW_ICM_LOG_STE_SIZE - SW_ICM_LOG_BLOCK)) +                                            \
     (1u << (SW_ICM_LOG_MODIFY_SIZE - SW_ICM_LOG_BLOCK)))
#define OWNERS_BYTES (OWNERS * sizeof(struct sw_icm *))

/* The region that has the whole range, or SW_ICM_REGIONS. */
static unsigned sw_icm_region_of(uint64_t addr, uint64_t len)
{
    for (unsigned i = 0; i < SW_ICM_REGIONS; i++) {
        uint64_t size = 1ull << sw_icm_regions[i].log_size;

        if (addr >= sw_icm_regions[i].start && addr - sw_icm_regions[i].start <= size &&
            len <= size - (addr - sw_icm_regions[i].start)) {
            return i;
        }
    }
    return SW_ICM_REGIONS;
}

/* The object that has the byte. *offset receives its place in the object. */
static struct sw_icm *sw_icm_at(struct hca *hca, uint64_t addr, uint64_t *offset)
{
    unsigned region = sw_icm_region_of(addr, 1);
    struct sw_icm *icm;
    uint64_t in_region;

    if (region == SW_ICM_REGIONS || !hca->sw_icm_owner) {
        return NULL;
    }
    in_region = addr - sw_icm_regions[region].start;
    icm = hca->sw_icm_owner[sw_icm_regions[region].base + (in_region >> SW_ICM_LOG_BLOCK)];
    if (!icm) {
        return NULL;
    }
    *offset = in_region - ((uint64_t)icm->first << SW_ICM_LOG_BLOCK);
    return *offset >> SW_ICM_LOG_BLOCK < icm->kept ? icm : NULL;
}

struct sw_icm *sw_icm_find(struct hca *hca, uint64_t addr, uint64_t len)
{
    uint64_t offset = 0;
    struct sw_icm *icm = sw_icm_at(hca, addr, &offset);

    return icm && len <= ((uint64_t)icm->n << SW_ICM_LOG_BLOCK) - offset ? icm : NULL;
}

/* -- accesses --------------------------------------------------------------------------------- */

bool sw_icm_read(struct hca *hca, uint64_t addr, void *buf, size_t len)
{
    uint8_t *to = buf;

    while (len) {
        uint64_t offset = 0;
        struct sw_icm *icm = sw_icm_at(hca, addr, &offset);
        size_t part = MIN(len, SW_ICM_BLOCK - offset % SW_ICM_BLOCK);
        const uint8_t *block;

        if (!icm) {
            return false;
        }
        block = icm->block[offset >> SW_ICM_LOG_BLOCK];
        if (block) {
            memcpy(to, block + offset % SW_ICM_BLOCK, part);
        } else {
            memset(to, 0, part);
        }
        to += part;
        addr += part;
        len -= part;
    }
    return true;
}

static bool sw_icm_key_read(struct hca *hca, uint64_t addr, void *buf, size_t len)
{
    hca_spend(hca, 1);
    return sw_icm_read(hca, addr, buf, len);
}

static bool sw_icm_key_write(struct hca *hca, uint64_t addr, const void *buf, size_t len)
{
    const uint8_t *from = buf;

    hca_spend(hca, 1);
    while (len) {
        uint64_t offset = 0;
        struct sw_icm *icm = sw_icm_at(hca, addr, &offset);
        size_t part = MIN(len, SW_ICM_BLOCK - offset % SW_ICM_BLOCK);
        uint8_t **block;

        if (!icm) {
            return false;
        }
        block = &icm->block[offset >> SW_ICM_LOG_BLOCK];
        if (!*block) {
            hca_spend(hca, SW_ICM_BLOCK >> 12);
            *block = ledger_alloc(&hca->memory, SW_ICM_BLOCK);
        }
        if (!*block) {
            hca_log(hca, HCA_LOG_GUEST_ERROR,
                    "write to steering memory at 0x%" G_GINT64_MODIFIER "x: the function's memory "
                    "is used up",
                    addr);
            return false;
        }
        memcpy(*block + offset % SW_ICM_BLOCK, from, part);
        from += part;
        addr += part;
        len -= part;
    }
    return true;
}

/* Steering memory has no atomics: mlx5_ib allows keys no such access
 * (MLX5_IB_DM_SW_ICM_ALLOWED_ACCESS). */
static bool sw_icm_key_atomic(struct hca *hca, uint64_t addr, size_t len, struct host_atomic *op)
{
    return false;
}

static const struct mem_space sw_icm_space = {sw_icm_key_read, sw_icm_key_write, sw_icm_key_atomic};

void sw_icm_init(struct hca *hca)
{
    mem_space_set(hca, MEM_SPACE_SW_ICM, &sw_icm_space);
}

/* -- objects ---------------------------------------------------------------------------------- */

/* Frees the table of owners if nothing uses it. */
static void sw_icm_drop_unused(struct hca *hca)
{
    if (!hca->sw_icms.count) {
        ledger_free(&hca->memory, hca->sw_icm_owner, OWNERS_BYTES);
        hca->sw_icm_owner = NULL;
    }
}

static void sw_icm_own(struct hca *hca, const struct sw_icm *icm, struct sw_icm *owner)
{
    uint32_t first = sw_icm_regions[icm->region].base + icm->first;

    for (uint32_t i = 0; i < icm->n; i++) {
        hca->sw_icm_owner[first + i] = owner;
    }
    hca_spend(hca, icm->n / HCA_PIECE_ENTRIES);
}

static bool sw_icm_range_is_free(struct hca *hca, unsigned region, uint32_t first, uint32_t n)
{
    hca_spend(hca, n / HCA_PIECE_ENTRIES);
    for (uint32_t i = 0; hca->sw_icm_owner && i < n; i++) {
        if (hca->sw_icm_owner[sw_icm_regions[region].base + first + i]) {
            return false;
        }
    }
    return true;
}

enum syn sw_icm_create(struct hca *hca, uint16_t uid, const void *ctx, uint32_t *num)
{
    const struct prm_sw_icm *object = ctx;
    uint64_t start = PRM_GET(sw_icm, object, sw_icm_start_addr);
    unsigned log_size = PRM_GET(sw_icm, object, log_sw_icm_size);
    unsigned region =
        log_size < 64 ? sw_icm_region_of(start, 1ull << log_size) : (unsigned)SW_ICM_REGIONS;
    struct sw_icm *icm;
    uint32_t first, n;
    size_t size;

    if (region == SW_ICM_REGIONS || log_size < SW_ICM_LOG_BLOCK || start % SW_ICM_BLOCK) {
        return SYN_SW_ICM_RANGE;
    }
    first = (uint32_t)((start - sw_icm_regions[region].start) >> SW_ICM_LOG_BLOCK);
    n = 1u << (log_size - SW_ICM_LOG_BLOCK);
    if (!sw_icm_range_is_free(hca, region, first, n)) {
        return SYN_SW_ICM_TAKEN;
    }
    size = sizeof(*icm) + n * sizeof(icm->block[0]);
    icm = obj_make(hca, OBJ_SW_ICM, uid, size);
    if (!icm) {
        return SYN_NO_MEMORY;
    }
    if (!hca->sw_icm_owner) {
        hca->sw_icm_owner = ledger_alloc(&hca->memory, OWNERS_BYTES);
    }
    if (!hca->sw_icm_owner) {
        obj_end(hca, &icm->obj);
        return SYN_NO_MEMORY;
    }
    icm->region = (uint8_t)region;
    icm->first = first;
    icm->n = icm->kept = n;
    sw_icm_own(hca, icm, icm);
    PRM_SET(sw_icm, icm->ctx, sw_icm_start_addr, start);
    PRM_SET(sw_icm, icm->ctx, log_sw_icm_size, log_size);
    *num = icm->obj.num;
    return SYN_OK;
}

bool sw_icm_trim(struct hca *hca, struct obj *obj)
{
    struct sw_icm *icm = (struct sw_icm *)obj;

    while (icm->kept) {
        icm->kept--;
        if (!icm->block[icm->kept]) {
            continue;
        }
        ledger_free(&hca->memory, icm->block[icm->kept], SW_ICM_BLOCK);
        icm->block[icm->kept] = NULL;
        hca_spend(hca, SW_ICM_BLOCK >> 12);
        if (!hca_has_room(hca)) {
            return false;
        }
    }
    return true;
}

void sw_icm_free(struct hca *hca, struct obj *obj)
{
    struct sw_icm *icm = (struct sw_icm *)obj;

    while (icm->kept) {
        icm->kept--;
        ledger_free(&hca->memory, icm->block[icm->kept], SW_ICM_BLOCK);
    }
    sw_icm_own(hca, icm, NULL);
    obj_end(hca, obj);
    sw_icm_drop_unused(hca);
}
