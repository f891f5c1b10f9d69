/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory that the library holds for its HCAs: rings and doorbell records.
 *
 * All of it lies in one range of addresses, which is reserved once, made accessible as it is
 * needed, and never unmapped, so that an access of the HCA to it cannot fault
 * (guest-lib/host/memory.h). Where there is no room for such a range (RLIMIT_AS), it is memory like
 * the program's.
 */
#ifndef HCASIM_GUEST_LIB_HOST_HELD_H
#define HCASIM_GUEST_LIB_HOST_HELD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zeroed; aligned to its size, or to a page if it is larger. NULL: errno. */
void *held_alloc(size_t size);
/* ptr may be NULL; size as it was asked for. */
void held_free(void *ptr, size_t size);

extern uintptr_t held_start;
extern size_t held_size; /* bytes that may be accessed, from the start on; it only grows */

/* Whether all of it lies where an access cannot fault: not in what is only reserved. */
static inline bool held_has(uint64_t addr, size_t len)
{
    size_t size = __atomic_load_n(&held_size, __ATOMIC_ACQUIRE);

    return addr - held_start < size && len <= size - (addr - held_start);
}

#endif
