/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory of gpu_probes: of a GPU if the process has one (libcuda.so.1), else of the host. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "tests/programs/gpu/probes.h"

#define PIECES 64u

/* Values of the driver API. */
#define HOST_REGISTER_PORTABLE  1u
#define HOST_REGISTER_DEVICEMAP 2u
#define HOST_REGISTER_IOMEMORY  4u
#define RANGE_HANDLE_DMA_BUF    1
#define ATTRIBUTE_DMA_BUF       124

static struct {
    int (*init)(unsigned flags);
    int (*device_get)(int *device, int ordinal);
    int (*device_attribute)(int *value, int attribute, int device);
    int (*ctx_retain)(void **context, int device);
    int (*ctx_set)(void *context);
    int (*alloc)(uint64_t *at, size_t size);
    int (*free)(uint64_t at);
    int (*to_gpu)(uint64_t to, const void *from, size_t size);
    int (*from_gpu)(void *to, uint64_t from, size_t size);
    int (*host_register)(void *at, size_t size, unsigned flags);
    int (*host_unregister)(void *at);
    int (*host_address)(uint64_t *at, void *host, unsigned flags);
    int (*range_handle)(void *handle, uint64_t at, size_t size, int type, unsigned long long flags);
} cuda;
static bool is_there, makes_dmabufs;
static uint64_t piece[PIECES]; /* where each piece begins that was allocated */
static unsigned pieces;

bool gpu_is_there(void)
{
    return is_there;
}

bool gpu_start(void)
{
    static const struct {
        const char *name;
        void *to;
    } functions[] = {
        {"cuInit", &cuda.init},
        {"cuDeviceGet", &cuda.device_get},
        {"cuDeviceGetAttribute", &cuda.device_attribute},
        {"cuDevicePrimaryCtxRetain", &cuda.ctx_retain},
        {"cuCtxSetCurrent", &cuda.ctx_set},
        {"cuMemAlloc_v2", &cuda.alloc},
        {"cuMemFree_v2", &cuda.free},
        {"cuMemcpyHtoD_v2", &cuda.to_gpu},
        {"cuMemcpyDtoH_v2", &cuda.from_gpu},
        {"cuMemHostRegister_v2", &cuda.host_register},
        {"cuMemHostUnregister", &cuda.host_unregister},
        {"cuMemHostGetDevicePointer_v2", &cuda.host_address},
        {"cuMemGetHandleForAddressRange", &cuda.range_handle},
    };
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL), *context;
    int device, dmabuf = 0;

    if (!library) {
        return give_up("%s", dlerror());
    }
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
        void *function = dlsym(library, functions[i].name);

        if (!function) {
            return give_up("libcuda.so.1 has no %s", functions[i].name);
        }
        memcpy(functions[i].to, &function, sizeof(function));
    }
    if (cuda.init(0) || cuda.device_get(&device, 0) || cuda.ctx_retain(&context, device) ||
        cuda.ctx_set(context)) {
        return give_up("no context of a GPU");
    }
    makes_dmabufs = !cuda.device_attribute(&dmabuf, ATTRIBUTE_DMA_BUF, device) && dmabuf;
    is_there = true;
    return true;
}

int gpu_export(const void *at, size_t size)
{
    int fd = -1;

    return makes_dmabufs && !cuda.range_handle(&fd, (uintptr_t)at, size, RANGE_HANDLE_DMA_BUF, 0)
               ? fd
               : -1;
}

bool gpu_map_uar(void *reg, size_t size)
{
    uint64_t at;
    int err;

    if (!is_there) {
        return true;
    }
    err = cuda.host_register(
        reg, size, HOST_REGISTER_PORTABLE | HOST_REGISTER_DEVICEMAP | HOST_REGISTER_IOMEMORY);
    if (err) {
        return give_up("the GPU does not map the doorbell register (cuMemHostRegister: %d)", err);
    }
    err = cuda.host_address(&at, reg, 0);
    return !err || give_up("cuMemHostGetDevicePointer: %d", err);
}

void gpu_unmap_uar(void *reg)
{
    if (is_there) {
        cuda.host_unregister(reg);
    }
}

/* Keeps what is to be freed at the end. */
static void memory_keep(uint64_t at)
{
    if (pieces == PIECES) {
        fprintf(stderr, "gpu_probes: more than %u pieces of memory\n", PIECES);
        exit(1);
    }
    piece[pieces++] = at;
}

void *memory_new(size_t size)
{
    uint64_t at = 0;
    void *zeroes;

    size = (size + GPU_PAGE - 1) & ~(size_t)(GPU_PAGE - 1);
    if (!is_there) {
        void *made = aligned_alloc(GPU_PAGE, size);

        memory_keep((uintptr_t)made);
        return memset(made, 0, size);
    }
    if (cuda.alloc(&at, size + GPU_PAGE)) {
        fprintf(stderr, "gpu_probes: the GPU has no memory\n");
        exit(1);
    }
    memory_keep(at);
    at = (at + GPU_PAGE - 1) & ~(uint64_t)(GPU_PAGE - 1);
    zeroes = calloc(1, size);
    memory_put((void *)(uintptr_t)at, zeroes, size);
    free(zeroes);
    return (void *)(uintptr_t)at;
}

void memory_free_all(void)
{
    while (pieces) {
        uint64_t at = piece[--pieces];

        if (is_there) {
            cuda.free(at);
        } else {
            free((void *)(uintptr_t)at);
        }
    }
}

void memory_put(void *to, const void *from, size_t size)
{
    if (!is_there) {
        memcpy(to, from, size);
    } else if (cuda.to_gpu((uintptr_t)to, from, size)) {
        fprintf(stderr, "gpu_probes: a copy to the GPU fails\n");
        exit(1);
    }
}

void memory_get(void *to, const void *from, size_t size)
{
    if (!is_there) {
        memcpy(to, from, size);
    } else if (cuda.from_gpu(to, (uintptr_t)from, size)) {
        fprintf(stderr, "gpu_probes: a copy from the GPU fails\n");
        exit(1);
    }
}
