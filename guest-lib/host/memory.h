/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The process's memory as its HCA reaches it: addresses are process addresses.
 *
 * Hardware holds the pages of a region until it is deregistered. Here nothing does: what the
 * program has unmapped is gone, or made unreadable, when a peer asks for it. Then an access is a
 * fault of the thread that runs the HCA, and becomes an access that nobody answers
 * (docs/adr/0005-a-fault-is-an-access-that-nobody-answers.md).
 */
#ifndef HCASIM_GUEST_LIB_HOST_MEMORY_H
#define HCASIM_GUEST_LIB_HOST_MEMORY_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "model/core/host.h"

/* Copied without a call: */
#define MEMORY_ENTRY   64 /* a block of a WQE, a CQE */
#define MEMORY_SEGMENT 16 /* a receive WQE of one segment */

/* Takes the signals that faults are; others go to whoever had them before. Once is enough. */
void memory_catch_faults(void);
/* As sigaction(2), for who sets one of these signals' actions afterwards: it gets those that are
 * none of ours. False: the signal is another one, or was not taken yet. Safe in a handler. */
bool memory_sigaction(int signal, const struct sigaction *action, struct sigaction *old);
/* Lets the calling thread, which blocks the program's signals, have those two. */
void memory_unblock_faults(void);

/* -- accesses that cannot fault: of what the library holds (guest-lib/host/held.h), or within those
 * below. 4 bytes that are aligned are read before what follows in program order, and written after
 * what precedes it. */

static inline void *memory_at(uint64_t addr)
{
    return (void *)(uintptr_t)addr;
}

static inline bool memory_is_word(uint64_t addr, size_t len)
{
    return len == sizeof(uint32_t) && addr % sizeof(uint32_t) == 0;
}

static inline void memory_take(uint64_t addr, void *buf, size_t len)
{
    if (memory_is_word(addr, len)) {
        /* A doorbell record: what it tells of is read after it. */
        uint32_t word = __atomic_load_n((const uint32_t *)memory_at(addr), __ATOMIC_ACQUIRE);

        memcpy(buf, &word, sizeof(word));
    } else if (len == MEMORY_ENTRY) {
        memcpy(buf, memory_at(addr), MEMORY_ENTRY);
    } else if (len == MEMORY_SEGMENT) {
        memcpy(buf, memory_at(addr), MEMORY_SEGMENT);
    } else {
        memcpy(buf, memory_at(addr), len);
    }
}

static inline void memory_put(uint64_t addr, const void *buf, size_t len)
{
    if (memory_is_word(addr, len)) {
        /* What was written before it is there. */
        uint32_t word;

        memcpy(&word, buf, sizeof(word));
        __atomic_store_n((uint32_t *)memory_at(addr), word, __ATOMIC_RELEASE);
    } else {
        host_copy_in_order(memory_at(addr), buf, len);
        __atomic_thread_fence(__ATOMIC_RELEASE);
    }
}

/* A CQE or EQE: its last word is what software polls, and is stored after the rest. */
static inline void memory_put_entry(uint64_t addr, const void *buf)
{
    size_t last = MEMORY_ENTRY - sizeof(uint32_t);
    uint32_t word;

    memcpy(memory_at(addr), buf, last);
    memcpy(&word, (const uint8_t *)buf + last, sizeof(word));
    __atomic_store_n((uint32_t *)memory_at(addr + last), word, __ATOMIC_RELEASE);
}

/* -- accesses that may: false: there is no memory, or not all of it may be accessed so --------- */

/* The zero page is never memory: what was left out of a command points there. */
static inline bool memory_is(uint64_t addr, size_t len)
{
    return addr >= 4096 && addr + len >= addr;
}

/* Who is told of an access that failed. */
struct memory_missed {
    void (*tell)(void *opaque, uint64_t addr, size_t len);
    void *opaque;
};

/* missed may be NULL. */
bool memory_read(uint64_t addr, void *buf, size_t len, const struct memory_missed *missed);
/* To memory that another processor reads (guest-lib/host/far.h). */
bool memory_read_far(uint64_t addr, void *buf, size_t len, const struct memory_missed *missed);
bool memory_write(uint64_t addr, const void *buf, size_t len, const struct memory_missed *missed);
/* As struct hca_host_ops's dma_atomic. */
bool memory_atomic(uint64_t addr, size_t len, struct host_atomic *op,
                   const struct memory_missed *missed);

#endif
