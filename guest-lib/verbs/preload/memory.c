/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The calls by which a program changes its memory: regions of on-demand paging are told of each
 * change afterwards (docs/adr/0024). Calls that the C library makes itself, as free() does, do not
 * come here; the device meets those changes at its next access.
 */
#define _GNU_SOURCE
/* mmap() and mmap64() must be two functions in this file. */
#undef _FILE_OFFSET_BITS
#include <stdarg.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include "guest-lib/verbs/preload/preload.h"
#include "guest-lib/verbs/preload/real.h"

#define FUNCTIONS(X)                                                                               \
    X(munmap)                                                                                      \
    X(mmap)                                                                                        \
    X(mmap64)                                                                                      \
    X(mremap)                                                                                      \
    X(madvise)                                                                                     \
    X(mprotect)                                                                                    \
    X(shmdt)
REAL_TABLE(FUNCTIONS)

PRELOAD_EXPORT int munmap(void *addr, size_t len)
{
    int result = REAL(munmap)(addr, len);

    if (!result) {
        self_memory_changed(addr, len);
    }
    return result;
}

/* Only a mapping at a fixed address can take the place of another one. */
static void *memory_mapped(void *mapped, size_t len, int flags)
{
    if ((flags & MAP_FIXED) && mapped != MAP_FAILED) {
        self_memory_changed(mapped, len);
    }
    return mapped;
}

PRELOAD_EXPORT void *mmap(void *addr, size_t len, int prot, int flags, int fd, off_t offset)
{
    return memory_mapped(REAL(mmap)(addr, len, prot, flags, fd, offset), len, flags);
}

PRELOAD_EXPORT void *mmap64(void *addr, size_t len, int prot, int flags, int fd, off64_t offset)
{
    return memory_mapped(REAL(mmap64)(addr, len, prot, flags, fd, offset), len, flags);
}

PRELOAD_EXPORT void *mremap(void *old, size_t old_len, size_t len, int flags, ...)
{
    void *to = NULL, *result;

    if (flags & MREMAP_FIXED) {
        va_list args;

        va_start(args, flags);
        to = va_arg(args, void *);
        va_end(args);
    }
    result = flags & MREMAP_FIXED ? REAL(mremap)(old, old_len, len, flags, to)
                                  : REAL(mremap)(old, old_len, len, flags);
    if (result != MAP_FAILED) {
        self_memory_changed(old, old_len);
        if (flags & MREMAP_FIXED) {
            self_memory_changed(to, len);
        }
    }
    return result;
}

/* Advice that takes pages away. */
static bool memory_goes(int advice)
{
    return advice == MADV_DONTNEED || advice == MADV_FREE || advice == MADV_REMOVE ||
           advice == 21 /* MADV_PAGEOUT */ || advice == 24 /* MADV_DONTNEED_LOCKED */;
}

PRELOAD_EXPORT int madvise(void *addr, size_t len, int advice)
{
    int result = REAL(madvise)(addr, len, advice);

    if (!result && memory_goes(advice)) {
        self_memory_changed(addr, len);
    }
    return result;
}

PRELOAD_EXPORT int mprotect(void *addr, size_t len, int prot)
{
    int result = REAL(mprotect)(addr, len, prot);

    if (!result) {
        self_memory_changed(addr, len);
    }
    return result;
}

/* The size of the segment is not known here. */
PRELOAD_EXPORT int shmdt(const void *addr)
{
    int result = REAL(shmdt)(addr);

    if (!result) {
        self_memory_changed(addr, SIZE_MAX - (size_t)addr);
    }
    return result;
}
