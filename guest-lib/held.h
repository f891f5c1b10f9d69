/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory that the library holds for its HCAs: rings and doorbell records.
 *
 * All of it lies in one range of addresses, which is reserved once and never unmapped, so that an
 * access of the HCA to it cannot fault (guest-lib/memory.h). Where there is no room for such a
 * range (RLIMIT_AS), it is memory like the program's.
 */
#ifndef HCASIM_GUEST_LIB_HELD_H
#define HCASIM_GUEST_LIB_HELD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zeroed; aligned to its size, or to a page if it is larger. NULL: errno. */
void *held_alloc(size_t size);
/* ptr may be NULL; size as it was asked for. */
void held_free(void *ptr, size_t size);

extern uintptr_t held_start;
extern size_t held_size; /* 0 as long as there is no range */

/* Whether all of it lies in the range. */
static inline bool held_has(uint64_t addr, size_t len)
{
    return addr - held_start < held_size && len <= held_size - (addr - held_start);
}

#endif
