/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Device memory (MEMIC): memory on the card that programs access through BAR0, and the network
 * through memory keys of access mode MEMIC.
 *
 * BAR0 has three windows of MEMIC_BAR_SIZE bytes behind the UAR pages. The first is the memory
 * itself. The others are one for each operation: an access at an offset in such a window is that
 * operation on the byte at the same offset in the memory. ALLOC_MEMIC gives out whole pages of the
 * memory, because the driver maps whole pages into a process: two allocations never share a page.
 * A page of an operation's window answers only after MODIFY_MEMIC has asked for that operation on
 * the allocation.
 *
 * Addresses here are offsets in BAR0, as in the commands and in the keys. An allocation references
 * nothing. The keys on it reference it, so it cannot be freed while there are keys.
 * docs/adr/0025 has the rules for which no public source exists.
 */
#ifndef HCASIM_MODEL_MEMIC_H
#define HCASIM_MODEL_MEMIC_H

#include "model/core/hca.h"
#include "prm/prm.h"

#define MEMIC_LOG_PAGES 8 /* the driver knows 256 pages (MLX5_MAX_MEMIC_PAGES) */
#define MEMIC_PAGE_SIZE 4096u
#define MEMIC_BAR_SIZE  (MEMIC_PAGE_SIZE << MEMIC_LOG_PAGES)
#define MEMIC_BAR_START (28u << 20) /* UAR pages end here */
#define MEMIC_LOG_UNIT  6 /* a size is a multiple of 64 bytes (MLX5_MEMIC_ALLOC_SIZE_MASK) */
/* max_dm_size in most outputs of ibv_devinfo -v that users have published. */
#define MEMIC_MAX_SIZE      (128u << 10)
#define MEMIC_LOG_ALIGN     (17 - MEMIC_LOG_UNIT) /* greatest alignment: MEMIC_MAX_SIZE */

#define MEMIC_OPS           2                   /* enum prm_memic_operation */
#define MEMIC_OP_SIZES      (1u | 2u | 4u | 8u) /* of a word, in bytes */
#define MEMIC_OP_OFFSET(op) ((1u + (op)) * MEMIC_BAR_SIZE)
#define MEMIC_BAR_END       (MEMIC_BAR_START + (1u + MEMIC_OPS) * MEMIC_BAR_SIZE)

struct memic {
    struct obj obj; /* its number is the index of its first page */
    uint32_t size;  /* bytes */
    uint8_t ops;    /* a bit for each operation that has an address */
};

/* Prepares a function's device memory. memory: MEMIC_BAR_SIZE bytes of the owner's, aligned to a
 * page, which must live as long as the function. NULL: the function allocates memory when there are
 * allocations. */
void memic_init(struct hca *hca, void *memory);

/* The arguments of ALLOC_MEMIC. Sizes are in bytes. */
struct memic_request {
    uint64_t start;     /* the range in which the memory is to lie */
    uint32_t range;     /* size of that range */
    uint32_t size;      /* size of the memory */
    unsigned log_align; /* log2 of the alignment, in units of 64 bytes */
};

/* *addr receives the address of zeroed memory. SYN_MEMIC_FULL: the range has no room; the driver
 * tries another one. */
enum syn memic_alloc(struct hca *hca, const struct memic_request *want, uint64_t *addr);
/* addr and size are those of an allocation. SYN_IN_USE: there are keys or operations on it. */
enum syn memic_dealloc(struct hca *hca, uint64_t addr, uint32_t size);
void memic_free(struct hca *hca, struct obj *obj); /* for the table of object classes */

/* MODIFY_MEMIC. An operation has one address for each allocation; *op_addr receives it. */
enum syn memic_op_alloc(struct hca *hca, uint16_t uid, uint64_t addr, unsigned op,
                        uint64_t *op_addr);
enum syn memic_op_dealloc(struct hca *hca, uint16_t uid, uint64_t addr, unsigned op);

/* The allocation that has the whole range, or NULL. */
struct memic *memic_find(struct hca *hca, uint64_t addr, uint64_t len);

static inline bool memic_has_offset(uint64_t offset)
{
    return offset >= MEMIC_BAR_START && offset < MEMIC_BAR_END;
}

/*
 * An access of a CPU to one of the windows, at an offset in BAR0. size is 1, 2, 4 or 8, and value
 * has the byte order of fw_mmio_write(). A CPU may also access the memory directly, without a call
 * here, if the owner has mapped it. Reads where there is no memory return 0, and writes there are
 * ignored; both are logged as guest errors.
 */
uint64_t memic_mmio_read(struct hca *hca, uint64_t offset, unsigned size);
void memic_mmio_write(struct hca *hca, uint64_t offset, uint64_t value, unsigned size);

#endif
