/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Allocates device memory, and executes the accesses to it: those of keys (a mem_space), and those
 * of a CPU to the windows of BAR0.
 *
 * The memory that a CPU may access directly is accessed here by the same rules as the host's memory
 * (model/core/host.h): the last word of a write is stored last, and atomics are those of the CPU.
 */
#include "model/core/pd.h"
#include "model/memory/memic.h"
#include "model/memory/number.h"
#include "model/memory/place.h"

static uint8_t *memic_at(struct hca *hca, uint64_t addr)
{
    return hca->device_memory + (addr - MEMIC_BAR_START);
}

static bool memic_in_window(uint64_t addr, uint64_t len)
{
    return addr >= MEMIC_BAR_START && addr - MEMIC_BAR_START <= MEMIC_BAR_SIZE &&
           len <= MEMIC_BAR_SIZE - (addr - MEMIC_BAR_START);
}

static uint64_t memic_start(const struct memic *memic)
{
    return MEMIC_BAR_START + (uint64_t)memic->obj.num * MEMIC_PAGE_SIZE;
}

static uint32_t memic_pages(uint32_t size)
{
    return (size + MEMIC_PAGE_SIZE - 1) / MEMIC_PAGE_SIZE;
}

/* -- accesses through keys -------------------------------------------------------------------- */

/* A key lies in an allocation, which it references. These checks are for a key that something else
 * has made. */
static bool memic_answers(struct hca *hca, uint64_t addr, size_t len)
{
    hca_spend(hca, 1);
    return hca->device_memory && memic_in_window(addr, len);
}

static bool memic_read(struct hca *hca, uint64_t addr, void *buf, size_t len)
{
    if (!memic_answers(hca, addr, len)) {
        return false;
    }
    memcpy(buf, memic_at(hca, addr), len);
    return true;
}

static bool memic_write(struct hca *hca, uint64_t addr, const void *buf, size_t len)
{
    if (!memic_answers(hca, addr, len)) {
        return false;
    }
    host_copy_in_order(memic_at(hca, addr), buf, len);
    return true;
}

static bool memic_atomic(struct hca *hca, uint64_t addr, size_t len, struct host_atomic *op)
{
    if (!memic_answers(hca, addr, len)) {
        return false;
    }
    host_atomic_do(memic_at(hca, addr), len, op);
    return true;
}

static const struct mem_space memic_space = {memic_read, memic_write, memic_atomic};

void memic_init(struct hca *hca, void *memory)
{
    hca->device_memory = memory;
    hca->device_memory_is_owners = memory != NULL;
    mem_space_set(hca, MEM_SPACE_DEVICE, &memic_space);
}

/* -- allocation ------------------------------------------------------------------------------- */

struct memic *memic_find(struct hca *hca, uint64_t addr, uint64_t len)
{
    uint32_t page;

    if (!memic_in_window(addr, len)) {
        return NULL;
    }
    /* At most MEMIC_MAX_SIZE before it: 32 pages. */
    page = (uint32_t)(addr - MEMIC_BAR_START) / MEMIC_PAGE_SIZE;
    for (uint32_t i = 0; i <= page && i <= MEMIC_MAX_SIZE / MEMIC_PAGE_SIZE; i++) {
        struct memic *memic = (struct memic *)obj_find(&hca->memics, page - i);

        if (memic) {
            uint64_t at = addr - memic_start(memic);

            return at <= memic->size && len <= memic->size - at ? memic : NULL;
        }
    }
    return NULL;
}

/* Whether none of the pages belongs to an allocation. */
static bool memic_pages_are_free(struct hca *hca, uint32_t first, uint32_t n)
{
    const struct obj *next = obj_next(&hca->memics, first);

    return (!next || next->num >= first + n) &&
           !memic_find(hca, MEMIC_BAR_START + (uint64_t)first * MEMIC_PAGE_SIZE, 1);
}

/* The first page of a place for the memory, or of none: 1 << MEMIC_LOG_PAGES. */
static uint32_t memic_place(struct hca *hca, const struct memic_request *want)
{
    uint32_t align = MAX((1u << (want->log_align + MEMIC_LOG_UNIT)) / MEMIC_PAGE_SIZE, 1);
    uint32_t first = (uint32_t)(want->start - MEMIC_BAR_START) / MEMIC_PAGE_SIZE;
    uint32_t end = first + want->range / MEMIC_PAGE_SIZE, n = memic_pages(want->size);

    first = (first + align - 1) / align * align;
    for (; first + n <= end; first += align) {
        if (memic_pages_are_free(hca, first, n)) {
            return first;
        }
    }
    return 1u << MEMIC_LOG_PAGES;
}

/* Gives the memory back if the function allocated it itself and nothing is in it. */
static void memic_drop_unused(struct hca *hca)
{
    if (!hca->device_memory_is_owners && !hca->memics.count) {
        ledger_free(&hca->memory, hca->device_memory, MEMIC_BAR_SIZE);
        hca->device_memory = NULL;
    }
}

enum syn memic_alloc(struct hca *hca, const struct memic_request *want, uint64_t *addr)
{
    struct memic *memic;
    uint32_t page;

    if (!memic_in_window(want->start, want->range) || want->start % MEMIC_PAGE_SIZE ||
        want->range % MEMIC_PAGE_SIZE) {
        return SYN_MEMIC_RANGE;
    }
    if (!want->size || want->size % (1u << MEMIC_LOG_UNIT) || want->size > MEMIC_MAX_SIZE ||
        want->log_align > MEMIC_LOG_ALIGN) {
        return SYN_MEMIC_SIZE;
    }
    page = memic_place(hca, want);
    if (page == 1u << MEMIC_LOG_PAGES) {
        return SYN_MEMIC_FULL;
    }
    memic = obj_new(hca, OBJ_MEMIC, 0, sizeof(*memic));
    if (!memic) {
        return SYN_NO_MEMORY;
    }
    if (!hca->device_memory) {
        hca->device_memory = ledger_alloc(&hca->memory, MEMIC_BAR_SIZE);
    }
    if (!hca->device_memory || !obj_insert_at(&hca->memics, &memic->obj, page)) {
        obj_free(hca, &memic->obj);
        memic_drop_unused(hca);
        return SYN_NO_MEMORY;
    }
    memic->size = want->size;
    /* also what the last owner of these pages has left, and what a CPU has written since then */
    memset(memic_at(hca, memic_start(memic)), 0, (size_t)memic_pages(want->size) * MEMIC_PAGE_SIZE);
    hca_spend(hca, memic_pages(want->size));
    *addr = memic_start(memic);
    return SYN_OK;
}

void memic_free(struct hca *hca, struct obj *obj)
{
    obj_end(hca, obj);
    memic_drop_unused(hca);
}

/* The allocation that begins at addr, or NULL. */
static struct memic *memic_from(struct hca *hca, uint64_t addr)
{
    struct memic *memic = memic_find(hca, addr, 0);

    return memic && memic_start(memic) == addr ? memic : NULL;
}

enum syn memic_dealloc(struct hca *hca, uint64_t addr, uint32_t size)
{
    struct memic *memic = memic_from(hca, addr);

    if (!memic) {
        return SYN_NO_MEMIC;
    }
    if (memic->size != size) {
        return SYN_MEMIC_SIZE;
    }
    if (memic->obj.refs || memic->ops) {
        return SYN_IN_USE;
    }
    memic_free(hca, &memic->obj);
    return SYN_OK;
}

/* -- operations ------------------------------------------------------------------------------- */

/* Finds the allocation whose operation is to change. */
static enum syn memic_op_of(struct hca *hca, uint16_t uid, uint64_t addr, unsigned op,
                            struct memic **memic)
{
    *memic = memic_from(hca, addr);
    if (!*memic) {
        return SYN_NO_MEMIC;
    }
    if (!uid_owns(&(*memic)->obj, uid)) {
        return SYN_BAD_UID;
    }
    return op < MEMIC_OPS ? SYN_OK : SYN_MEMIC_OP;
}

enum syn memic_op_alloc(struct hca *hca, uint16_t uid, uint64_t addr, unsigned op,
                        uint64_t *op_addr)
{
    struct memic *memic;
    enum syn syn = memic_op_of(hca, uid, addr, op, &memic);

    if (syn) {
        return syn;
    }
    if (memic->ops >> op & 1) {
        return SYN_MEMIC_OP_STATE;
    }
    memic->ops |= (uint8_t)(1u << op);
    *op_addr = addr + MEMIC_OP_OFFSET(op);
    return SYN_OK;
}

enum syn memic_op_dealloc(struct hca *hca, uint16_t uid, uint64_t addr, unsigned op)
{
    struct memic *memic;
    enum syn syn = memic_op_of(hca, uid, addr, op, &memic);

    if (syn) {
        return syn;
    }
    if (!(memic->ops >> op & 1)) {
        return SYN_MEMIC_OP_STATE;
    }
    memic->ops &= (uint8_t) ~(1u << op);
    return SYN_OK;
}

static void memic_increment(void *at, unsigned size, uint64_t operand)
{
    switch (size) {
    case 1:
        __atomic_fetch_add((uint8_t *)at, (uint8_t)operand, __ATOMIC_SEQ_CST);
        break;
    case 2:
        __atomic_fetch_add((uint16_t *)at, (uint16_t)operand, __ATOMIC_SEQ_CST);
        break;
    case 4:
        __atomic_fetch_add((uint32_t *)at, (uint32_t)operand, __ATOMIC_SEQ_CST);
        break;
    default:
        __atomic_fetch_add((uint64_t *)at, operand, __ATOMIC_SEQ_CST);
        break;
    }
}

static uint64_t memic_test_and_set(void *at, unsigned size)
{
    switch (size) {
    case 1:
        return __atomic_exchange_n((uint8_t *)at, 1, __ATOMIC_SEQ_CST);
    case 2:
        return __atomic_exchange_n((uint16_t *)at, 1, __ATOMIC_SEQ_CST);
    case 4:
        return __atomic_exchange_n((uint32_t *)at, 1, __ATOMIC_SEQ_CST);
    default:
        return __atomic_exchange_n((uint64_t *)at, 1, __ATOMIC_SEQ_CST);
    }
}

/* -- the windows ------------------------------------------------------------------------------ */

/* A number of the BAR, whose bytes are big-endian, as the word that a CPU of the host would have
 * read or written; and the other way round. */
static uint64_t memic_swap(uint64_t value, unsigned size)
{
    return G_BYTE_ORDER == G_BIG_ENDIAN ? value : __builtin_bswap64(value) >> (64 - 8 * size);
}

/* The window that the offset is in: 0 for the memory, and 1 + op. */
static unsigned memic_window(uint64_t offset)
{
    return (unsigned)((offset - MEMIC_BAR_START) / MEMIC_BAR_SIZE);
}

/* The memory that an access to a window is about, if it may be accessed in that way; else NULL. */
static uint8_t *memic_target(struct hca *hca, uint64_t offset, unsigned size, const char *what)
{
    unsigned window = memic_window(offset);
    uint64_t addr = offset - (uint64_t)window * MEMIC_BAR_SIZE;
    uint64_t page = addr - addr % MEMIC_PAGE_SIZE;
    /* a mapped page also has bytes behind the end of the allocation */
    const struct memic *memic = memic_find(hca, page, 0);

    if (memic && page < memic_start(memic) + memic->size && offset % size == 0 &&
        (!window || memic->ops >> (window - 1) & 1)) {
        return memic_at(hca, addr);
    }
    hca_log(hca, HCA_LOG_GUEST_ERROR,
            "%s of %u bytes at offset 0x%" G_GINT64_MODIFIER "x: no device memory there, or not "
            "for that operation",
            what, size, offset);
    return NULL;
}

uint64_t memic_mmio_read(struct hca *hca, uint64_t offset, unsigned size)
{
    uint8_t *at = memic_target(hca, offset, size, "read");

    if (!at) {
        return 0;
    }
    switch (memic_window(offset)) {
    case 1 + PRM_MEMIC_OPERATION_TEST_AND_SET:
        return memic_swap(memic_test_and_set(at, size), size);
    case 1 + PRM_MEMIC_OPERATION_INCREMENT: /* it has no result */
        return 0;
    default:
        return number_load(at, size);
    }
}

void memic_mmio_write(struct hca *hca, uint64_t offset, uint64_t value, unsigned size)
{
    uint8_t *at = memic_target(hca, offset, size, "write");

    if (!at) {
        return;
    }
    switch (memic_window(offset)) {
    case 1 + PRM_MEMIC_OPERATION_TEST_AND_SET: /* it happens at a read */
        break;
    case 1 + PRM_MEMIC_OPERATION_INCREMENT:
        memic_increment(at, size, memic_swap(value, size));
        break;
    default:
        number_store(at, value, size);
        break;
    }
}
