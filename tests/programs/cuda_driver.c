/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A CUDA driver for the tests of the front before it (guest-lib/cuda/front.c): a library with the
 * SONAME libcuda.so.1 that notes what it is asked, and has no GPU. If DRIVER_LOADED names a file,
 * the library makes it when it is loaded.
 *
 * As in the driver, cuGetProcAddress() gives functions that are not the exported ones.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "guest-lib/cuda/cuda_api.h"
#include "tests/programs/cuda_driver.h"

static _Thread_local struct cuda_asked driver_asked;

__attribute__((constructor)) static void driver_load(void)
{
    const char *path = getenv("DRIVER_LOADED");
    int fd = path ? open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600) : -1;

    if (fd >= 0) {
        close(fd);
    }
}

CUDA_EXPORT struct cuda_asked cuda_driver_asked(void)
{
    return driver_asked;
}

CUresult cuInit(unsigned flags)
{
    return CUDA_ERROR_NO_DEVICE;
}

static CUresult driver_register(void *ptr, size_t len, unsigned flags)
{
    driver_asked = (struct cuda_asked){.version = 1, .ptr = ptr, .len = len, .flags = flags};
    return CUDA_SUCCESS;
}

static CUresult driver_register_v2(void *ptr, size_t len, unsigned flags)
{
    driver_asked = (struct cuda_asked){.version = 2, .ptr = ptr, .len = len, .flags = flags};
    return CUDA_SUCCESS;
}

CUresult cuMemHostRegister(void *ptr, size_t len, unsigned flags)
{
    return driver_register(ptr, len, flags);
}

CUresult cuMemHostRegister_v2(void *ptr, size_t len, unsigned flags)
{
    return driver_register_v2(ptr, len, flags);
}

static CUresult driver_export(void *handle, CUdeviceptr addr, size_t len, CUmemRangeHandleType type,
                              unsigned long long flags)
{
    if (addr & 1) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *(int *)handle = memfd_create("dma-buf", MFD_CLOEXEC);
    return CUDA_SUCCESS;
}

CUresult cuMemGetHandleForAddressRange(void *handle, CUdeviceptr addr, size_t len,
                                       CUmemRangeHandleType type, unsigned long long flags)
{
    return driver_export(handle, addr, len, type, flags);
}

static CUresult driver_get(const char *name, void **function, int version, uint64_t flags);
static CUresult driver_get_v2(const char *name, void **function, int version, uint64_t flags,
                              CUdriverProcAddressQueryResult *found);

static void *driver_find(const char *name, int version)
{
    const struct {
        const char *name;
        int since;
        void *function;
    } rows[] = {
        {"cuGetProcAddress", 12000, (void *)driver_get_v2},
        {"cuGetProcAddress", 11030, (void *)driver_get},
        {"cuInit", 2000, (void *)cuInit},
        {"cuMemGetHandleForAddressRange", 11070, (void *)driver_export},
        {"cuMemHostRegister", 6050, (void *)driver_register_v2},
        {"cuMemHostRegister", 4000, (void *)driver_register},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (!strcmp(name, rows[i].name) && version >= rows[i].since) {
            return rows[i].function;
        }
    }
    return NULL;
}

static CUresult driver_get(const char *name, void **function, int version, uint64_t flags)
{
    void *found = driver_find(name, version);

    *function = found ? found : *function;
    return found ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

static CUresult driver_get_v2(const char *name, void **function, int version, uint64_t flags,
                              CUdriverProcAddressQueryResult *found)
{
    *function = driver_find(name, version);
    *found = *function ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    return CUDA_SUCCESS;
}

CUresult cuGetProcAddress(const char *name, void **function, int version, uint64_t flags)
{
    return driver_get(name, function, version, flags);
}

CUresult cuGetProcAddress_v2(const char *name, void **function, int version, uint64_t flags,
                             CUdriverProcAddressQueryResult *found)
{
    return driver_get_v2(name, function, version, flags, found);
}
