/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory of the stand-in GPU: which addresses are whose, allocation, pinned and registered memory.
 *
 * Memory that the CPU must not reach has two mappings: the program's addresses, which allow no
 * access, and the block behind them, of which only this library knows.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "guest-lib/cuda/standin/standin_internal.h"

#define RANGES 65536u /* in a map */
#define PITCH  512u   /* alignment of rows */
#define UNIT   65536u /* alignment of small allocations */

struct standin_map standin_memory;

size_t standin_round_up(size_t len, size_t unit)
{
    return (len + unit - 1) / unit * unit;
}

unsigned long long standin_memory_id(void)
{
    static unsigned long long last;

    return ++last;
}

/* -- maps -------------------------------------------------------------------------------------- */

/* The index of the first range that ends after the address. */
static size_t memory_index(const struct standin_map *map, CUdeviceptr addr)
{
    size_t low = 0, high = map->count;

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (map->ranges[middle]->addr + map->ranges[middle]->len > addr) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return low;
}

struct standin_range *standin_map_overlap(const struct standin_map *map, CUdeviceptr addr,
                                          size_t len)
{
    size_t i = memory_index(map, addr);

    return i < map->count && map->ranges[i]->addr < addr + len ? map->ranges[i] : NULL;
}

struct standin_range *standin_map_find(const struct standin_map *map, CUdeviceptr addr)
{
    return standin_map_overlap(map, addr, 1);
}

bool standin_map_add(struct standin_map *map, const struct standin_range *range)
{
    struct standin_range *copy;
    size_t i;

    if (map->count == RANGES) {
        return false;
    }
    if (map->count == map->room) {
        size_t room = map->room ? 2 * map->room : 64;
        struct standin_range **ranges = realloc(map->ranges, room * sizeof(struct standin_range *));

        if (!ranges) {
            return false;
        }
        map->ranges = ranges;
        map->room = room;
    }
    copy = malloc(sizeof(*copy));
    if (!copy) {
        return false;
    }
    *copy = *range;
    i = memory_index(map, range->addr);
    memmove(&map->ranges[i + 1], &map->ranges[i],
            (map->count - i) * sizeof(struct standin_range *));
    map->ranges[i] = copy;
    map->count++;
    return true;
}

void standin_map_remove(struct standin_map *map, struct standin_range *range)
{
    size_t i = memory_index(map, range->addr);

    map->count--;
    memmove(&map->ranges[i], &map->ranges[i + 1],
            (map->count - i) * sizeof(struct standin_range *));
    free(range);
}

/* -- addresses and blocks ---------------------------------------------------------------------- */

static uint8_t *memory_map(size_t len, int access)
{
    void *at = mmap(NULL, len, access, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (at == MAP_FAILED) {
        return NULL;
    }
    madvise(at, len, MADV_DONTFORK);
    return at;
}

CUdeviceptr standin_addresses_take(size_t len, size_t alignment, CUdeviceptr wish)
{
    uint8_t *at, *start;
    size_t before;

    if (wish && wish % alignment == 0) {
        void *got = mmap((void *)(uintptr_t)wish, len, PROT_NONE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);

        if (got == (void *)(uintptr_t)wish) {
            madvise(got, len, MADV_DONTFORK);
            return wish;
        }
        if (got != MAP_FAILED) {
            munmap(got, len); /* a kernel that does not know the flag */
        }
    }
    at = memory_map(len + alignment, PROT_NONE);
    if (!at) {
        return 0;
    }
    before = standin_round_up((uintptr_t)at, alignment) - (uintptr_t)at;
    start = at + before;
    if (before) {
        munmap(at, before);
    }
    if (alignment > before) {
        munmap(start + len, alignment - before);
    }
    return (uintptr_t)start;
}

void standin_addresses_give(CUdeviceptr addr, size_t len)
{
    munmap((void *)(uintptr_t)addr, len);
}

static struct standin_block *memory_block_at(uint8_t *at, size_t len, bool ours)
{
    struct standin_block *block = malloc(sizeof(*block));

    if (block) {
        *block = (struct standin_block){.at = at, .len = len, .ours = ours, .refs = 1};
    }
    return block;
}

struct standin_block *standin_block_new(size_t len)
{
    uint8_t *at = memory_map(len, PROT_READ | PROT_WRITE);
    struct standin_block *block = at ? memory_block_at(at, len, true) : NULL;

    if (at && !block) {
        munmap(at, len);
    }
    return block;
}

void standin_block_drop(struct standin_block *block)
{
    if (--block->refs) {
        return;
    }
    if (block->ours) {
        munmap(block->at, block->len);
    }
    free(block);
}

/* -- access ------------------------------------------------------------------------------------ */

bool standin_is_of_host(const struct standin_range *range)
{
    return range->memory == STANDIN_PINNED || range->memory == STANDIN_REGISTERED;
}

bool standin_is_reached(const struct standin_range *range)
{
    return standin_is_of_host(range) || range->memory == STANDIN_MANAGED;
}

bool standin_is_mapped(CUdeviceptr addr, size_t len)
{
    CUdeviceptr start = addr / STANDIN_PAGE * STANDIN_PAGE;
    unsigned char resident[256];

    for (CUdeviceptr end = addr + len; start < end;) {
        size_t part = standin_round_up(end - start, STANDIN_PAGE);

        part = part < sizeof(resident) * STANDIN_PAGE ? part : sizeof(resident) * STANDIN_PAGE;
        if (mincore((void *)(uintptr_t)start, part, resident)) {
            return false;
        }
        start += part;
    }
    return true;
}

bool standin_may_access(CUdeviceptr addr, size_t len, unsigned access)
{
    CUdeviceptr end = addr + len;

    if (end < addr) {
        return false;
    }
    do {
        const struct standin_range *range = standin_map_find(&standin_memory, addr);

        if (!range || (range->access & access) != access) {
            return false;
        }
        addr = range->addr + range->len;
        if (range->memory != STANDIN_MAPPED) {
            return addr >= end; /* two allocations are not one, even side by side */
        }
    } while (addr < end);
    return true;
}

struct standin_block *standin_memory_at(CUdeviceptr addr, unsigned access, uint8_t **at,
                                        size_t *len)
{
    struct standin_range *range = standin_map_find(&standin_memory, addr);
    size_t offset;

    if (!range || (range->access & access) != access) {
        return NULL;
    }
    offset = addr - range->addr;
    *at = range->block->at + offset;
    if (*len > range->len - offset) {
        *len = range->len - offset;
    }
    range->block->refs++;
    return range->block;
}

/* -- allocation -------------------------------------------------------------------------------- */

static bool memory_is_counted(const struct standin_range *range)
{
    return range->memory == STANDIN_DEVICE || range->memory == STANDIN_MANAGED;
}

/* Takes addresses for device memory. Small allocations lie side by side in a chunk, as those of the
 * driver do. 0: there are none. */
static CUdeviceptr memory_take_addresses(size_t len)
{
    static CUdeviceptr next, end; /* the rest of the last chunk */
    CUdeviceptr addr;

    if (len >= STANDIN_GRANULARITY) {
        return standin_addresses_take(len, STANDIN_GRANULARITY, 0);
    }
    if (end - next < len) {
        if (next < end) {
            standin_addresses_give(next, end - next);
        }
        next = standin_addresses_take(STANDIN_GRANULARITY, STANDIN_GRANULARITY, 0);
        end = next ? next + STANDIN_GRANULARITY : 0;
    }
    addr = next;
    next += next ? len : 0;
    return addr;
}

/* The number of addresses that device memory takes. */
static size_t memory_addresses(size_t len)
{
    return standin_round_up(len, len < STANDIN_GRANULARITY ? UNIT : STANDIN_PAGE);
}

static void memory_free(struct standin_range *range)
{
    if (range->memory == STANDIN_DEVICE) {
        standin_addresses_give(range->addr, memory_addresses(range->len));
    }
    if (memory_is_counted(range)) {
        standin.counts.memory -= range->len;
    }
    standin_block_drop(range->block);
    standin_map_remove(&standin_memory, range);
}

void standin_memory_end(const struct standin_context *context)
{
    for (size_t i = standin_memory.count; i-- > 0;) {
        if (standin_memory.ranges[i]->context == context) {
            memory_free(standin_memory.ranges[i]);
        }
    }
}

/* Makes memory of a kind and adds it. range has what differs between the kinds. */
static CUresult memory_new(struct standin_context *context, struct standin_range range,
                           CUdeviceptr *addr)
{
    size_t len = standin_round_up(range.len, STANDIN_PAGE);

    if (!range.len) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (len < range.len ||
        (memory_is_counted(&range) && range.len > STANDIN_TOTAL - standin.counts.memory)) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    range.block = standin_block_new(len);
    if (!range.block) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    range.addr = (uintptr_t)range.block->at;
    if (range.memory == STANDIN_DEVICE) {
        range.addr = memory_take_addresses(memory_addresses(range.len));
    }
    range.context = context;
    range.access = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    range.id = standin_memory_id();
    if (!range.addr || !standin_map_add(&standin_memory, &range)) {
        if (range.addr && range.memory == STANDIN_DEVICE) {
            standin_addresses_give(range.addr, memory_addresses(range.len));
        }
        standin_block_drop(range.block);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (memory_is_counted(&range)) {
        standin.counts.memory += range.len;
    }
    *addr = range.addr;
    return CUDA_SUCCESS;
}

static CUresult memory_begin_new(struct standin_range range, CUdeviceptr *addr)
{
    struct standin_context *context;
    CUresult result = standin_begin_in(&context);

    if (result) {
        return result;
    }
    return standin_end(addr ? memory_new(context, range, addr) : CUDA_ERROR_INVALID_VALUE);
}

/* Frees the memory that begins at addr, if it is of one of two kinds, after all that its context
 * still does. */
static CUresult memory_begin_free(CUdeviceptr addr, enum standin_memory kind,
                                  enum standin_memory other, CUresult missing)
{
    struct standin_context *context;
    struct standin_range *range;
    CUresult result = standin_begin_in(&context);

    if (result) {
        return result;
    }
    range = standin_map_find(&standin_memory, addr);
    if (!range || range->addr != addr || (range->memory != kind && range->memory != other)) {
        return standin_end(missing);
    }
    result = standin_stream_drain(range->context);
    /* Another thread may have freed it meanwhile. */
    range = standin_map_find(&standin_memory, addr);
    if (result || !range || range->addr != addr) {
        return standin_end(result ? result : missing);
    }
    memory_free(range);
    return standin_end(CUDA_SUCCESS);
}

CUresult cuMemGetInfo_v2(size_t *unused, size_t *total)
{
    struct standin_context *context;
    CUresult result = standin_begin_in(&context);

    if (result) {
        return result;
    }
    if (unused) {
        *unused = STANDIN_TOTAL - standin.counts.memory;
    }
    if (total) {
        *total = STANDIN_TOTAL;
    }
    return standin_end(CUDA_SUCCESS);
}

CUresult cuMemAlloc_v2(CUdeviceptr *addr, size_t len)
{
    return memory_begin_new((struct standin_range){.memory = STANDIN_DEVICE, .len = len}, addr);
}

CUresult cuMemAllocPitch_v2(CUdeviceptr *addr, size_t *pitch, size_t width, size_t height,
                            unsigned element)
{
    size_t row = standin_round_up(width, PITCH), len;

    if (!pitch || !width || (element != 4 && element != 8 && element != 16)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (row < width || __builtin_mul_overflow(row, height, &len)) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *pitch = row;
    return cuMemAlloc_v2(addr, len);
}

CUresult cuMemAllocManaged(CUdeviceptr *addr, size_t len, unsigned flags)
{
    if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return memory_begin_new((struct standin_range){.memory = STANDIN_MANAGED, .len = len}, addr);
}

CUresult cuMemFree_v2(CUdeviceptr addr)
{
    return memory_begin_free(addr, STANDIN_DEVICE, STANDIN_MANAGED, CUDA_ERROR_INVALID_VALUE);
}

/* -- memory of the host ------------------------------------------------------------------------ */

CUresult cuMemHostAlloc(void **ptr, size_t len, unsigned flags)
{
    CUdeviceptr addr;
    CUresult result;

    if (!ptr || flags & ~(unsigned)(CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP |
                                    CU_MEMHOSTALLOC_WRITECOMBINED)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    result = memory_begin_new(
        (struct standin_range){.memory = STANDIN_PINNED, .len = len, .flags = flags}, &addr);
    if (!result) {
        *ptr = (void *)(uintptr_t)addr;
    }
    return result;
}

CUresult cuMemAllocHost_v2(void **ptr, size_t len)
{
    return cuMemHostAlloc(ptr, len, 0);
}

CUresult cuMemFreeHost(void *ptr)
{
    return memory_begin_free((uintptr_t)ptr, STANDIN_PINNED, STANDIN_PINNED,
                             CUDA_ERROR_INVALID_VALUE);
}

static CUresult memory_register(struct standin_context *context, void *ptr, size_t len,
                                unsigned flags)
{
    CUdeviceptr addr = (uintptr_t)ptr;
    const struct standin_range *there;
    struct standin_range range = {.addr = addr,
                                  .len = len,
                                  .memory = STANDIN_REGISTERED,
                                  .context = context,
                                  .flags = flags,
                                  .access = flags & CU_MEMHOSTREGISTER_READ_ONLY
                                                ? CU_MEM_ACCESS_FLAGS_PROT_READ
                                                : CU_MEM_ACCESS_FLAGS_PROT_READWRITE};

    if (!ptr || !len || addr + len < addr ||
        flags & ~(unsigned)(CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP |
                            CU_MEMHOSTREGISTER_READ_ONLY)) {
        return CUDA_ERROR_INVALID_VALUE; /* IOMEMORY as well: this is memory */
    }
    there = standin_map_overlap(&standin_memory, addr, len);
    if (there) {
        return standin_is_of_host(there) ? CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED
                                         : CUDA_ERROR_INVALID_VALUE;
    }
    if (!standin_is_mapped(addr, len)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    range.block = memory_block_at(ptr, len, false);
    range.id = standin_memory_id();
    if (!range.block || !standin_map_add(&standin_memory, &range)) {
        free(range.block);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    return CUDA_SUCCESS;
}

CUresult cuMemHostRegister_v2(void *ptr, size_t len, unsigned flags)
{
    struct standin_context *context;
    CUresult result = standin_begin_in(&context);

    return result ? result : standin_end(memory_register(context, ptr, len, flags));
}

CUresult cuMemHostRegister(void *ptr, size_t len, unsigned flags)
{
    return cuMemHostRegister_v2(ptr, len, flags);
}

CUresult cuMemHostUnregister(void *ptr)
{
    return memory_begin_free((uintptr_t)ptr, STANDIN_REGISTERED, STANDIN_REGISTERED,
                             CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
}

/* Finds pinned or registered memory. */
static CUresult memory_begin_host(const void *out, const void *ptr, struct standin_range **range)
{
    struct standin_context *context;
    CUresult result = standin_begin_in(&context);

    if (result) {
        return result;
    }
    *range = standin_map_find(&standin_memory, (uintptr_t)ptr);
    return out && *range && standin_is_of_host(*range) ? CUDA_SUCCESS
                                                       : standin_end(CUDA_ERROR_INVALID_VALUE);
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *addr, void *ptr, unsigned flags)
{
    struct standin_range *range;
    CUresult result = memory_begin_host(addr, ptr, &range);

    if (result) {
        return result;
    }
    *addr = (uintptr_t)ptr;
    return standin_end(flags ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS);
}

CUresult cuMemHostGetFlags(unsigned *flags, void *ptr)
{
    struct standin_range *range;
    CUresult result = memory_begin_host(flags, ptr, &range);

    if (result) {
        return result;
    }
    *flags = range->flags | CU_MEMHOSTALLOC_DEVICEMAP; /* with one space of addresses always */
    return standin_end(CUDA_SUCCESS);
}
