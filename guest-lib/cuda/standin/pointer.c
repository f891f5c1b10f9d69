/* SPDX-License-Identifier: BSD-2-Clause */
/* Attributes of addresses, and the dma-buf descriptors that stand for a range of the stand-in GPU.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "guest-lib/cuda/standin/standin_internal.h"

/* -- attributes -------------------------------------------------------------------------------- */

/* The value of each attribute of an address. */
struct pointer_facts {
    CUcontext context;
    unsigned memory_type, sync_memops, is_managed, access;
    int ordinal, yes, no;
    CUdeviceptr device_pointer;
    void *host_pointer, *start, *none;
    size_t len;
    unsigned long long id, handle_types;
};

#define POINTER_FACT(attribute, member)                                                            \
    {                                                                                              \
        CU_POINTER_ATTRIBUTE_##attribute, offsetof(struct pointer_facts, member),                  \
            sizeof(((struct pointer_facts *)0)->member)                                            \
    }

static const struct {
    CUpointer_attribute attribute;
    size_t offset, len;
} pointer_attributes[] = {
    POINTER_FACT(CONTEXT, context),
    POINTER_FACT(MEMORY_TYPE, memory_type),
    POINTER_FACT(DEVICE_POINTER, device_pointer),
    POINTER_FACT(HOST_POINTER, host_pointer),
    POINTER_FACT(SYNC_MEMOPS, sync_memops),
    POINTER_FACT(BUFFER_ID, id),
    POINTER_FACT(IS_MANAGED, is_managed),
    POINTER_FACT(DEVICE_ORDINAL, ordinal),
    POINTER_FACT(IS_LEGACY_CUDA_IPC_CAPABLE, no),
    POINTER_FACT(RANGE_START_ADDR, start),
    POINTER_FACT(RANGE_SIZE, len),
    POINTER_FACT(MAPPED, yes),
    POINTER_FACT(ALLOWED_HANDLE_TYPES, handle_types),
    POINTER_FACT(IS_GPU_DIRECT_RDMA_CAPABLE, yes),
    POINTER_FACT(ACCESS_FLAGS, access),
    POINTER_FACT(MEMPOOL_HANDLE, none),
    POINTER_FACT(MAPPING_SIZE, len),
    POINTER_FACT(MAPPING_BASE_ADDR, start),
    POINTER_FACT(MEMORY_BLOCK_ID, id),
};

/* False: nothing is known of the address. */
static bool pointer_look(CUdeviceptr addr, struct pointer_facts *facts)
{
    const struct standin_range *range = standin_map_find(&standin_memory, addr);

    if (!range) {
        return false;
    }
    *facts = (struct pointer_facts){
        .context = range->context ? range->context->handle : NULL,
        .memory_type = standin_is_of_host(range) ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE,
        .sync_memops = range->sync_memops,
        .is_managed = range->memory == STANDIN_MANAGED,
        .access = range->access,
        .yes = 1,
        .device_pointer = addr,
        .host_pointer = standin_is_reached(range) ? (void *)(uintptr_t)addr : NULL,
        .start = (void *)(uintptr_t)range->addr,
        .len = range->len,
        .id = range->id,
    };
    return true;
}

static CUresult pointer_get(void *value, CUpointer_attribute attribute,
                            const struct pointer_facts *facts)
{
    for (size_t i = 0; i < sizeof(pointer_attributes) / sizeof(pointer_attributes[0]); i++) {
        if (pointer_attributes[i].attribute != attribute) {
            continue;
        }
        memcpy(value, (const uint8_t *)facts + pointer_attributes[i].offset,
               pointer_attributes[i].len);
        return attribute == CU_POINTER_ATTRIBUTE_HOST_POINTER && !facts->host_pointer
                   ? CUDA_ERROR_INVALID_VALUE
                   : CUDA_SUCCESS;
    }
    return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuPointerGetAttribute(void *value, CUpointer_attribute attribute, CUdeviceptr addr)
{
    struct pointer_facts facts;
    CUresult result = standin_begin();

    if (result) {
        return result;
    }
    if (!value || !pointer_look(addr, &facts)) {
        return standin_end(CUDA_ERROR_INVALID_VALUE);
    }
    return standin_end(pointer_get(value, attribute, &facts));
}

/* As the driver: attributes that an address does not have are 0, and the call succeeds. */
CUresult cuPointerGetAttributes(unsigned count, CUpointer_attribute *attributes, void **values,
                                CUdeviceptr addr)
{
    struct pointer_facts facts = {.none = NULL}, nothing = {.none = NULL};
    CUresult result = standin_begin();

    if (result) {
        return result;
    }
    if (!attributes || !values) {
        return standin_end(CUDA_ERROR_INVALID_VALUE);
    }
    if (!pointer_look(addr, &facts)) {
        nothing.ordinal = -2; /* no device, and not the host's number -1 */
        facts = nothing;
    }
    for (unsigned i = 0; i < count; i++) {
        result = pointer_get(values[i], attributes[i], &facts);
        if (result && attributes[i] != CU_POINTER_ATTRIBUTE_HOST_POINTER) {
            return standin_end(result);
        }
    }
    return standin_end(CUDA_SUCCESS);
}

CUresult cuPointerSetAttribute(const void *value, CUpointer_attribute attribute, CUdeviceptr addr)
{
    struct standin_range *range;
    unsigned on;
    CUresult result = standin_begin();

    if (result) {
        return result;
    }
    range = standin_map_find(&standin_memory, addr);
    if (!value || !range || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS) {
        return standin_end(CUDA_ERROR_INVALID_VALUE);
    }
    memcpy(&on, value, sizeof(on));
    range->sync_memops = on != 0;
    return standin_end(CUDA_SUCCESS);
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *len, CUdeviceptr addr)
{
    const struct standin_range *range;
    CUresult result = standin_begin();

    if (result) {
        return result;
    }
    range = standin_map_find(&standin_memory, addr);
    if (!range) {
        return standin_end(CUDA_ERROR_NOT_FOUND);
    }
    if (base) {
        *base = range->addr;
    }
    if (len) {
        *len = range->len;
    }
    return standin_end(CUDA_SUCCESS);
}

/* -- dma-bufs ---------------------------------------------------------------------------------- */

#define DMABUFS 4096 /* that are remembered: the last */

/* The descriptor may be copied, passed on and closed. Its inode stays its own. */
static struct pointer_dmabuf {
    dev_t dev;
    ino_t ino;
    CUdeviceptr addr;
    size_t len;
    unsigned long long id; /* of the memory at addr */
} dmabufs[DMABUFS];

static unsigned next_dmabuf;

/* A descriptor that cannot be mapped, because it is open for writing only, nor be written,
 * because it is sealed. As that of a dma-buf, its end is at the length of the memory. */
static int pointer_dmabuf_new(size_t len, struct stat *st)
{
    char path[32];
    int file = memfd_create("hcasim-dmabuf", MFD_CLOEXEC | MFD_ALLOW_SEALING), fd = -1;

    if (file < 0) {
        return -1;
    }
    snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
    if (!ftruncate(file, (off_t)len) && !fstat(file, st)) {
        fd = open(path, O_WRONLY | O_CLOEXEC);
    }
    fcntl(file, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL);
    close(file);
    return fd;
}

CUresult cuMemGetHandleForAddressRange(void *handle, CUdeviceptr addr, size_t len,
                                       CUmemRangeHandleType type, unsigned long long flags)
{
    struct standin_context *context;
    const struct standin_range *range;
    struct stat st;
    int fd;
    CUresult result = standin_begin_in(&context);

    if (result) {
        return result;
    }
    range = standin_map_find(&standin_memory, addr);
    if (!handle || type != CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD || flags > 1 || !len ||
        addr % STANDIN_PAGE || len % STANDIN_PAGE || !range ||
        (range->memory != STANDIN_DEVICE && range->memory != STANDIN_MAPPED) ||
        !standin_may_access(addr, len, CU_MEM_ACCESS_FLAGS_PROT_READ)) {
        return standin_end(CUDA_ERROR_INVALID_VALUE);
    }
    fd = pointer_dmabuf_new(len, &st);
    if (fd < 0) {
        return standin_end(CUDA_ERROR_OPERATING_SYSTEM);
    }
    dmabufs[next_dmabuf++ % DMABUFS] = (struct pointer_dmabuf){
        .dev = st.st_dev, .ino = st.st_ino, .addr = addr, .len = len, .id = range->id};
    *(int *)handle = fd;
    return standin_end(CUDA_SUCCESS);
}

int hcasim_cuda_dmabuf(int fd, unsigned long long *addr, size_t *len)
{
    const struct standin_range *range;
    struct stat st;
    int found = -1;

    if (fstat(fd, &st) || standin_begin()) {
        return -1;
    }
    for (unsigned i = 0; i < DMABUFS && found; i++) {
        range = dmabufs[i].len && dmabufs[i].dev == st.st_dev && dmabufs[i].ino == st.st_ino
                    ? standin_map_find(&standin_memory, dmabufs[i].addr)
                    : NULL;
        if (range && range->id == dmabufs[i].id) {
            *addr = dmabufs[i].addr;
            *len = dmabufs[i].len;
            found = 0;
        }
    }
    standin_end(CUDA_SUCCESS);
    return found;
}
