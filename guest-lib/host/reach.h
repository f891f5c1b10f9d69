/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads and writes memory of the program, wherever it is: in the process, or on a GPU (gpu.h). For
 * the library's own accesses; those of the HCA are host callbacks (local_gpu.c), which know more.
 */
#ifndef HCASIM_GUEST_LIB_HOST_REACH_H
#define HCASIM_GUEST_LIB_HOST_REACH_H

#include <string.h>
#include "guest-lib/host/gpu.h"
#include "guest-lib/host/memory.h"

/* False: not all of the memory answers. */
static inline bool reach_read(uint64_t addr, void *buf, size_t len)
{
    return gpu_has(addr) ? gpu_read(addr, buf, len) : memory_read(addr, buf, len, NULL);
}

/* Writes to a buffer of the program, and waits until the data is there. The process's own memory
 * must be mapped. False: the GPU does not take it. */
static inline bool reach_write(void *to, const void *from, size_t len)
{
    if (gpu_has((uintptr_t)to)) {
        return gpu_write((uintptr_t)to, from, len) && gpu_settle();
    }
    memcpy(to, from, len);
    return true;
}

#endif
