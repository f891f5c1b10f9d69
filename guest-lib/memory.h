/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The process's memory as its HCA reaches it: addresses are process addresses.
 *
 * Hardware holds the pages of a region until it is deregistered. Here nothing does: what the
 * program has unmapped is gone, or made unreadable, when a peer asks for it. Then an access is a
 * fault of the thread that runs the HCA, and becomes an access that nobody answers
 * (docs/adr/0005-a-fault-is-an-access-that-nobody-answers.md).
 */
#ifndef HCASIM_GUEST_LIB_MEMORY_H
#define HCASIM_GUEST_LIB_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Takes the signals that faults are; others go to whoever had them before. Once is enough. */
void memory_catch_faults(void);
/* Lets the calling thread, which blocks the program's signals, have those two. */
void memory_unblock_faults(void);

/* The zero page is never memory: what was left out of a command points there. */
static inline bool memory_is(uint64_t addr, size_t len)
{
    return addr >= 4096 && addr + len >= addr;
}

/* False: there is no memory, or not all of it may be accessed so. 4 bytes that are aligned are read
 * before what follows in program order, and written after what precedes it. */
bool memory_read(uint64_t addr, void *buf, size_t len);
bool memory_write(uint64_t addr, const void *buf, size_t len);
/* As struct hca_host_ops's dma_cmpxchg64. */
bool memory_cmpxchg64(uint64_t addr, uint64_t *expected, uint64_t desired);

#endif
