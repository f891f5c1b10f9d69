/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The front before the CUDA driver: `hcasim run` puts it where the loader finds libcuda.so.1, and
 * it has that SONAME. It needs the driver's own library by another name (CUDA_FRONT_DRIVER, a link
 * that `hcasim run` makes). So a program that links with libcuda.so.1 or loads it finds the few
 * functions here first, and all other functions in the driver
 * (docs/adr/0022-a-front-that-the-loader-finds-before-libcuda.md).
 *
 * The functions here pass each call on. Two things are different:
 *
 * - Programs register doorbell pages with CU_MEMHOSTREGISTER_IOMEMORY, because those of a card are
 *   a BAR. The doorbell pages of hcasim are memory, for which the driver refuses this flag. The
 *   flag is taken away if the whole range consists of doorbell pages of hcasim.
 * - Exported dma-bufs are noted, because no call of the driver tells which memory a descriptor
 *   stands for. The verbs library asks hcasim_cuda_dmabuf().
 *
 * Programs that link the CUDA runtime statically ask cuGetProcAddress() for all functions, so this
 * function returns those of the front, including itself.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "guest-lib/cuda/cuda_api.h"
#include "guest-lib/cuda/doorbell_file.h"
#include "guest-lib/cuda/front.h"

/* The functions that the front has. Name: as cuGetProcAddress() knows it, without a version. Since:
 * the first version of CUDA that has the function; the newest function of a name comes last. */
#define FRONT_FUNCTIONS(X)                                                                         \
    X(cuMemHostRegister, cuMemHostRegister, 4000)                                                  \
    X(cuMemHostRegister_v2, cuMemHostRegister, 6050)                                               \
    X(cuMemGetHandleForAddressRange, cuMemGetHandleForAddressRange, 11070)                         \
    X(cuGetProcAddress, cuGetProcAddress, 11030)                                                   \
    X(cuGetProcAddress_v2, cuGetProcAddress, 12000)

/* The driver's own functions; NULL: this driver does not have it. */
static struct {
#define FRONT_DRIVER(symbol, name, since) __typeof__(symbol) *symbol;
    FRONT_FUNCTIONS(FRONT_DRIVER)
#undef FRONT_DRIVER
} front_driver;

/* Finds the functions while the front is loaded: a program may hold locks when it calls them, and
 * the loader has a lock, too. The driver is loaded already, because this library needs it. No
 * reference to it is kept: it is to be unloaded with this library, or the loader would take it for
 * libcuda.so.1 the next time. */
__attribute__((constructor)) static void front_find_driver(void)
{
    void *driver = dlopen(CUDA_FRONT_DRIVER, RTLD_LAZY | RTLD_NOLOAD);

    if (driver) {
#define FRONT_FIND(symbol, name, since) front_driver.symbol = dlsym(driver, #symbol);
        FRONT_FUNCTIONS(FRONT_FIND)
#undef FRONT_FIND
        dlclose(driver);
    }
}

/* -- doorbell pages ---------------------------------------------------------------------------- */

/* Whether a line of /proc/self/maps is a shared mapping of doorbell pages. *begin, *end: what it
 * maps. */
static bool front_read_mapping(const char *line, unsigned long *begin, unsigned long *end)
{
    static const char file[] = "/memfd:" DOORBELL_FILE;
    char rights[5];
    int path = 0;

    return sscanf(line, "%lx-%lx %4s %*x %*x:%*x %*u %n", begin, end, rights, &path) == 3 && path &&
           rights[3] == 's' && !strncmp(line + path, file, strlen(file));
}

/* Whether the process maps doorbell pages of hcasim, and nothing else, in the whole range. */
static bool front_is_doorbells(const void *ptr, size_t len)
{
    unsigned long at = (uintptr_t)ptr, last, begin, end;
    FILE *maps;
    char *line = NULL;
    size_t room = 0;
    bool done = false;

    if (!len || __builtin_add_overflow(at, len, &last) ||
        !(maps = fopen("/proc/self/maps", "re"))) {
        return false;
    }
    /* The mappings come in the order of their addresses. */
    while (!done && getline(&line, &room, maps) > 0) {
        if (front_read_mapping(line, &begin, &end) && begin <= at && at < end) {
            at = end;
            done = at >= last;
        }
    }
    free(line);
    fclose(maps);
    return done;
}

static CUresult front_register(__typeof__(cuMemHostRegister) *driver, void *ptr, size_t len,
                               unsigned flags)
{
    if (!driver) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    if ((flags & CU_MEMHOSTREGISTER_IOMEMORY) && front_is_doorbells(ptr, len)) {
        flags &= ~(unsigned)CU_MEMHOSTREGISTER_IOMEMORY;
    }
    return driver(ptr, len, flags);
}

CUresult cuMemHostRegister(void *ptr, size_t len, unsigned flags)
{
    return front_register(front_driver.cuMemHostRegister, ptr, len, flags);
}

CUresult cuMemHostRegister_v2(void *ptr, size_t len, unsigned flags)
{
    return front_register(front_driver.cuMemHostRegister_v2, ptr, len, flags);
}

/* -- dma-bufs ---------------------------------------------------------------------------------- */

/* The last exports. A program registers a dma-buf soon after its export. */
#define FRONT_EXPORTS 4096u

static struct front_export {
    dev_t dev;
    ino_t ino; /* of the dma-buf: no other one of this machine has it while this one is there */
    CUdeviceptr addr;
    size_t len;
} front_exports[FRONT_EXPORTS];
static unsigned long front_num_exports; /* ever made */
static pthread_mutex_t front_exports_lock = PTHREAD_MUTEX_INITIALIZER;

static void front_note_export(int fd, CUdeviceptr addr, size_t len)
{
    struct stat st;

    if (!fstat(fd, &st)) {
        pthread_mutex_lock(&front_exports_lock);
        front_exports[front_num_exports++ % FRONT_EXPORTS] =
            (struct front_export){st.st_dev, st.st_ino, addr, len};
        pthread_mutex_unlock(&front_exports_lock);
    }
}

CUresult cuMemGetHandleForAddressRange(void *handle, CUdeviceptr addr, size_t len,
                                       CUmemRangeHandleType type, unsigned long long flags)
{
    CUresult result = CUDA_ERROR_NOT_SUPPORTED;

    if (front_driver.cuMemGetHandleForAddressRange) {
        result = front_driver.cuMemGetHandleForAddressRange(handle, addr, len, type, flags);
    }
    if (result == CUDA_SUCCESS && type == CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD) {
        front_note_export(*(const int *)handle, addr, len);
    }
    return result;
}

int hcasim_cuda_dmabuf(int fd, unsigned long long *addr, size_t *len)
{
    int found = -1;
    struct stat st;

    if (fstat(fd, &st)) {
        return -1;
    }
    pthread_mutex_lock(&front_exports_lock);
    /* The newest comes first: the number of a dma-buf that is gone may be used again. */
    for (unsigned long i = front_num_exports;
         found && i > 0 && front_num_exports - i < FRONT_EXPORTS; i--) {
        const struct front_export *export = &front_exports[(i - 1) % FRONT_EXPORTS];

        if (export->dev == st.st_dev && export->ino == st.st_ino) {
            *addr = export->addr;
            *len = export->len;
            found = 0;
        }
    }
    pthread_mutex_unlock(&front_exports_lock);
    return found;
}

/* A child of fork() finds the lock free, though a thread of its parent may have held it. */
static void front_lock_exports(void)
{
    pthread_mutex_lock(&front_exports_lock);
}

static void front_unlock_exports(void)
{
    pthread_mutex_unlock(&front_exports_lock);
}

__attribute__((constructor)) static void front_prepare_fork(void)
{
    pthread_atfork(front_lock_exports, front_unlock_exports, front_unlock_exports);
}

/* -- functions by name ------------------------------------------------------------------------- */

/* Replaces the driver's function that cuGetProcAddress() has found for this version of CUDA. */
static void front_replace(const char *asked, int version, void **function)
{
#define FRONT_REPLACE(symbol, name, since)                                                         \
    if (front_driver.symbol && version >= (since) && !strcmp(asked, #name)) {                      \
        ours = (void *)symbol;                                                                     \
    }
    void *ours = *function;

    FRONT_FUNCTIONS(FRONT_REPLACE)
#undef FRONT_REPLACE
    *function = ours;
}

CUresult cuGetProcAddress(const char *name, void **function, int version, uint64_t flags)
{
    CUresult result = CUDA_ERROR_NOT_SUPPORTED;

    if (front_driver.cuGetProcAddress) {
        result = front_driver.cuGetProcAddress(name, function, version, flags);
    }
    if (result == CUDA_SUCCESS && *function) {
        front_replace(name, version, function);
    }
    return result;
}

CUresult cuGetProcAddress_v2(const char *name, void **function, int version, uint64_t flags,
                             CUdriverProcAddressQueryResult *found)
{
    CUresult result = CUDA_ERROR_NOT_SUPPORTED;

    if (front_driver.cuGetProcAddress_v2) {
        result = front_driver.cuGetProcAddress_v2(name, function, version, flags, found);
    }
    if (result == CUDA_SUCCESS && *function) {
        front_replace(name, version, function);
    }
    return result;
}
