/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory that the library owns for its HCAs: rings and doorbell records.
 *
 * All of it lies in one range of addresses. The range is reserved once, made accessible as needed,
 * and never unmapped, so that the HCA cannot fault when it accesses this memory
 * (guest-lib/host/memory.h). If there is no address space for such a range (RLIMIT_AS), the memory
 * is allocated like the program's own.
 */
#ifndef HCASIM_GUEST_LIB_HOST_HELD_H
#define HCASIM_GUEST_LIB_HOST_HELD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Allocates zeroed memory, aligned to its size, or to a page if it is larger than a page. NULL:
 * errno. */
void *held_alloc(size_t size);
/* ptr may be NULL. size must be the size that was asked for. */
void held_free(void *ptr, size_t size);

extern uintptr_t held_start;
extern size_t held_size; /* accessible bytes from held_start on; it only grows */

/* Whether the whole range lies where an access cannot fault, that is, in the accessible part of the
 * reserved range. */
static inline bool held_has(uint64_t addr, size_t len)
{
    size_t size = __atomic_load_n(&held_size, __ATOMIC_ACQUIRE);

    return addr - held_start < size && len <= size - (addr - held_start);
}

#endif
