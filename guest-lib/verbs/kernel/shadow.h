/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Host memory that stands for a queue's memory of a GPU while the library writes to it.
 *
 * The allocators of a parent domain may return memory of a GPU for rings and doorbell records. No
 * CPU can store there. So the library works on a shadow, and copies to the GPU what a queue must
 * hold when it begins (shadow_flush()). The device and the program get the addresses of the GPU's
 * memory (shadow_real()). From then on only the GPU drives the queue.
 *
 * All functions may be called from any thread. While there are no shadows, they only look at a
 * counter.
 */
#ifndef HCASIM_GUEST_LIB_VERBS_KERNEL_SHADOW_H
#define HCASIM_GUEST_LIB_VERBS_KERNEL_SHADOW_H

#include "guest-lib/host/reach.h"
#include "guest-lib/verbs/verbs.h"

/* If *ptr is memory of a GPU, claims it for the device, and makes *ptr its shadow, which begins
 * with zeroes. Returns 0 or errno. EFAULT: a part of the memory is not allocated. */
int shadow_take(struct hv_hca *hca, void **ptr, size_t size);
/* Makes a shadow of memory of the host: the library's writes to it are to stay there. NULL: there
 * is no memory. */
void *shadow_cover(void *real, size_t size);

extern unsigned shadow_count;
void *shadow_free(void *ptr);
void *shadow_find_real(const void *ptr);
bool shadow_copy(const void *ptr, size_t size);

static inline bool shadow_any(void)
{
    return __atomic_load_n(&shadow_count, __ATOMIC_RELAXED) != 0;
}

/* The address that an address in a shadow stands for; any other address is returned as it is. */
static inline void *shadow_real(const void *ptr)
{
    return shadow_any() ? shadow_find_real(ptr) : (void *)(uintptr_t)ptr;
}

static inline bool shadow_is(const void *ptr)
{
    return shadow_real(ptr) != ptr;
}

/* Ends a shadow and its claim. Returns what it stood for; memory that is no shadow is returned as
 * it is. */
static inline void *shadow_end(void *ptr)
{
    return shadow_is(ptr) ? shadow_free(ptr) : ptr;
}

/* Copies a part of a shadow to what it stands for, and waits until it is there. False: the GPU does
 * not take it. */
static inline bool shadow_flush(const void *ptr, size_t size)
{
    return !shadow_is(ptr) || shadow_copy(ptr, size);
}

#endif
