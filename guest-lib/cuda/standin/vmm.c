/* SPDX-License-Identifier: BSD-2-Clause */
/* Virtual memory management of the stand-in GPU: addresses are reserved, memory is made, and one is
 * mapped to the other. */
#include <stdlib.h>
#include "guest-lib/cuda/standin/standin_internal.h"

/* Memory of cuMemCreate(). */
struct vmm_allocation {
    CUmemGenericAllocationHandle handle;
    CUmemAllocationProp prop;
    struct standin_block *block;
    size_t len;
    unsigned long long id;
    unsigned holders; /* handles that were given out and not released */
    unsigned mappings;
};

/* Reserved addresses. */
static struct standin_map reservations;

static bool vmm_is_whole(unsigned long long value)
{
    return value % STANDIN_GRANULARITY == 0;
}

static bool vmm_is_range(CUdeviceptr addr, size_t len)
{
    return len && vmm_is_whole(addr) && vmm_is_whole(len) && addr + len > addr;
}

static struct vmm_allocation *vmm_find(CUmemGenericAllocationHandle handle)
{
    return standin_handle_find(STANDIN_ALLOCATION, (void *)(uintptr_t)handle);
}

static CUresult vmm_check_prop(const CUmemAllocationProp *prop)
{
    if (!prop || prop->type != CU_MEM_ALLOCATION_TYPE_PINNED) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    if (!standin_is_device(prop->location.id)) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    return prop->requestedHandleTypes ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
}

/* Frees it when neither a handle nor a mapping is left. */
static void vmm_drop(struct vmm_allocation *allocation)
{
    if (allocation->holders || allocation->mappings) {
        return;
    }
    standin_handle_end(STANDIN_ALLOCATION, (void *)(uintptr_t)allocation->handle);
    standin.counts.memory -= allocation->len;
    standin_block_drop(allocation->block);
    free(allocation);
}

/* -- addresses --------------------------------------------------------------------------------- */

CUresult cuMemGetAllocationGranularity(size_t *granularity, const CUmemAllocationProp *prop,
                                       CUmemAllocationGranularity_flags option)
{
    CUresult result = standin_begin();

    if (result) {
        return result;
    }
    result = vmm_check_prop(prop);
    if (!result && (!granularity || (unsigned)option > CU_MEM_ALLOC_GRANULARITY_RECOMMENDED)) {
        result = CUDA_ERROR_INVALID_VALUE;
    }
    if (!result) {
        *granularity = STANDIN_GRANULARITY;
    }
    return standin_end(result);
}

CUresult cuMemAddressReserve(CUdeviceptr *addr, size_t len, size_t alignment, CUdeviceptr wish,
                             unsigned long long flags)
{
    struct standin_range range = {.len = len};
    CUresult result = standin_begin();

    if (result) {
        return result;
    }
    if (!addr || !len || !vmm_is_whole(len) || alignment & (alignment - 1) || flags ||
        alignment > SIZE_MAX - len) {
        return standin_end(CUDA_ERROR_INVALID_VALUE);
    }
    range.addr = standin_addresses_take(
        len, alignment > STANDIN_GRANULARITY ? alignment : STANDIN_GRANULARITY, wish);
    if (!range.addr) {
        return standin_end(CUDA_ERROR_OUT_OF_MEMORY);
    }
    if (!standin_map_add(&reservations, &range)) {
        standin_addresses_give(range.addr, len);
        return standin_end(CUDA_ERROR_OUT_OF_MEMORY);
    }
    *addr = range.addr;
    return standin_end(CUDA_SUCCESS);
}

CUresult cuMemAddressFree(CUdeviceptr addr, size_t len)
{
    struct standin_range *range;
    CUresult result = standin_begin();

    if (result) {
        return result;
    }
    range = standin_map_find(&reservations, addr);
    if (!range || range->addr != addr || range->len != len ||
        standin_map_overlap(&standin_memory, addr, len)) {
        return standin_end(CUDA_ERROR_INVALID_VALUE);
    }
    standin_map_remove(&reservations, range);
    standin_addresses_give(addr, len);
    return standin_end(CUDA_SUCCESS);
}

/* -- memory ------------------------------------------------------------------------------------ */

static CUresult vmm_create(CUmemGenericAllocationHandle *handle, size_t len,
                           const CUmemAllocationProp *prop)
{
    struct vmm_allocation *allocation;

    if (len > STANDIN_TOTAL - standin.counts.memory) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    allocation = calloc(1, sizeof(*allocation));
    if (!allocation) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    allocation->block = standin_block_new(len);
    allocation->handle =
        allocation->block ? (uintptr_t)standin_handle_new(STANDIN_ALLOCATION, allocation) : 0;
    if (!allocation->handle) {
        if (allocation->block) {
            standin_block_drop(allocation->block);
        }
        free(allocation);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    allocation->prop = *prop;
    allocation->len = len;
    allocation->id = standin_memory_id();
    allocation->holders = 1;
    standin.counts.memory += len;
    *handle = allocation->handle;
    return CUDA_SUCCESS;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t len,
                     const CUmemAllocationProp *prop, unsigned long long flags)
{
    CUresult result = standin_begin();

    if (result) {
        return result;
    }
    result = vmm_check_prop(prop);
    if (!result && (!handle || !len || !vmm_is_whole(len) || flags)) {
        result = CUDA_ERROR_INVALID_VALUE;
    }
    return standin_end(result ? result : vmm_create(handle, len, prop));
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
    struct vmm_allocation *allocation;
    CUresult result = standin_begin();

    if (result) {
        return result;
    }
    allocation = vmm_find(handle);
    if (!allocation || !allocation->holders) {
        return standin_end(CUDA_ERROR_INVALID_VALUE);
    }
    allocation->holders--;
    vmm_drop(allocation);
    return standin_end(CUDA_SUCCESS);
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *addr)
{
    const struct standin_range *range;
    CUresult result = standin_begin();

    if (result) {
        return result;
    }
    range = standin_map_find(&standin_memory, (uintptr_t)addr);
    if (!handle || !range || range->memory != STANDIN_MAPPED) {
        return standin_end(CUDA_ERROR_INVALID_VALUE);
    }
    vmm_find(range->allocation)->holders++;
    *handle = range->allocation;
    return standin_end(CUDA_SUCCESS);
}

CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *prop,
                                                CUmemGenericAllocationHandle handle)
{
    const struct vmm_allocation *allocation;
    CUresult result = standin_begin();

    if (result) {
        return result;
    }
    allocation = vmm_find(handle);
    if (!prop || !allocation) {
        return standin_end(CUDA_ERROR_INVALID_VALUE);
    }
    *prop = allocation->prop;
    return standin_end(CUDA_SUCCESS);
}

/* -- mappings ---------------------------------------------------------------------------------- */

CUresult cuMemMap(CUdeviceptr addr, size_t len, size_t offset, CUmemGenericAllocationHandle handle,
                  unsigned long long flags)
{
    struct vmm_allocation *allocation;
    const struct standin_range *reserved;
    struct standin_range range;
    CUresult result = standin_begin();

    if (result) {
        return result;
    }
    allocation = vmm_find(handle);
    reserved = standin_map_find(&reservations, addr);
    if (!allocation || !vmm_is_range(addr, len) || offset || flags || len > allocation->len ||
        !reserved || addr + len > reserved->addr + reserved->len ||
        standin_map_overlap(&standin_memory, addr, len)) {
        return standin_end(CUDA_ERROR_INVALID_VALUE);
    }
    range = (struct standin_range){.addr = addr,
                                   .len = len,
                                   .memory = STANDIN_MAPPED,
                                   .block = allocation->block,
                                   .id = allocation->id,
                                   .allocation = handle};
    if (!standin_map_add(&standin_memory, &range)) {
        return standin_end(CUDA_ERROR_OUT_OF_MEMORY);
    }
    allocation->block->refs++;
    allocation->mappings++;
    return standin_end(CUDA_SUCCESS);
}

/* Whether these addresses are mapped, without a hole and without a part of a mapping. */
static bool vmm_are_mappings(CUdeviceptr addr, size_t len)
{
    CUdeviceptr end = addr + len;

    if (!vmm_is_range(addr, len)) {
        return false;
    }
    while (addr < end) {
        const struct standin_range *range = standin_map_find(&standin_memory, addr);

        if (!range || range->memory != STANDIN_MAPPED || range->addr != addr) {
            return false;
        }
        addr += range->len;
    }
    return addr == end;
}

/* The driver does not wait here for what streams still do with the memory. */
CUresult cuMemUnmap(CUdeviceptr addr, size_t len)
{
    struct standin_range *range;
    CUresult result = standin_begin();

    if (result) {
        return result;
    }
    if (!vmm_are_mappings(addr, len)) {
        return standin_end(CUDA_ERROR_INVALID_VALUE);
    }
    while ((range = standin_map_overlap(&standin_memory, addr, len))) {
        struct vmm_allocation *allocation = vmm_find(range->allocation);

        standin_block_drop(range->block);
        standin_map_remove(&standin_memory, range);
        allocation->mappings--;
        vmm_drop(allocation);
    }
    return standin_end(CUDA_SUCCESS);
}

CUresult cuMemSetAccess(CUdeviceptr addr, size_t len, const CUmemAccessDesc *access, size_t count)
{
    CUresult result = standin_begin();

    if (result) {
        return result;
    }
    if (!access || !vmm_are_mappings(addr, len)) {
        return standin_end(CUDA_ERROR_INVALID_VALUE);
    }
    for (size_t i = 0; i < count; i++) {
        if (access[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE) {
            return standin_end(CUDA_ERROR_NOT_SUPPORTED);
        }
        if (!standin_is_device(access[i].location.id)) {
            return standin_end(CUDA_ERROR_INVALID_DEVICE);
        }
    }
    for (CUdeviceptr at = addr; count && at < addr + len;) {
        struct standin_range *range = standin_map_find(&standin_memory, at);

        range->access = access[count - 1].flags;
        at += range->len;
    }
    return standin_end(CUDA_SUCCESS);
}

CUresult cuMemGetAccess(unsigned long long *flags, const CUmemLocation *location, CUdeviceptr addr)
{
    const struct standin_range *range;
    CUresult result = standin_begin();

    if (result) {
        return result;
    }
    range = standin_map_find(&standin_memory, addr);
    if (!flags || !location || location->type != CU_MEM_LOCATION_TYPE_DEVICE ||
        !standin_is_device(location->id) || !range) {
        return standin_end(CUDA_ERROR_INVALID_VALUE);
    }
    *flags = range->access;
    return standin_end(CUDA_SUCCESS);
}
