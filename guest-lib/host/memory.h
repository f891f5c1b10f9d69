/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The process's memory as its HCA reaches it: addresses are process addresses.
 *
 * Hardware pins the pages of a region until the region is deregistered. Here nothing pins them:
 * memory that the program has unmapped, or made unreadable, may be gone when a peer accesses it.
 * Such an access is a fault of the thread that runs the HCA, and is turned into an access without
 * an answer (docs/adr/0005-a-fault-is-an-access-that-nobody-answers.md).
 */
#ifndef HCASIM_GUEST_LIB_HOST_MEMORY_H
#define HCASIM_GUEST_LIB_HOST_MEMORY_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "model/core/host.h"

/* Sizes that are copied without a function call: */
#define MEMORY_ENTRY   64 /* a block of a WQE, a CQE */
#define MEMORY_SEGMENT 16 /* a receive WQE of one segment */

/* Installs handlers for the signals that faults raise. Faults of other code go to the handlers that
 * were there before. One call is enough. */
void memory_catch_faults(void);
/* Implements sigaction(2) for a program that later sets the action of one of these signals: its
 * action gets the faults that are not the HCA's. False: another signal, or memory_catch_faults()
 * was not called yet. Safe in a signal handler. */
bool memory_sigaction(int signal, const struct sigaction *action, struct sigaction *old);
/* Unblocks these two signals in the calling thread, which blocks the program's signals. */
void memory_unblock_faults(void);

/* -- accesses that cannot fault: to memory that the library owns (guest-lib/host/held.h), or inside
 * the guarded accesses below. An aligned word of 4 bytes is read before what follows in program
 * order, and written after what precedes it. */

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
        /* A doorbell record: the entries that it tells of are read after it. */
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
        /* All that was written before this word is visible before it. */
        uint32_t word;

        memcpy(&word, buf, sizeof(word));
        __atomic_store_n((uint32_t *)memory_at(addr), word, __ATOMIC_RELEASE);
    } else {
        host_copy_in_order(memory_at(addr), buf, len);
        __atomic_thread_fence(__ATOMIC_RELEASE);
    }
}

/* Writes a CQE or EQE. Software polls its last word, which is stored after the rest. */
static inline void memory_put_entry(uint64_t addr, const void *buf)
{
    size_t last = MEMORY_ENTRY - sizeof(uint32_t);
    uint32_t word;

    memcpy(memory_at(addr), buf, last);
    memcpy(&word, (const uint8_t *)buf + last, sizeof(word));
    __atomic_store_n((uint32_t *)memory_at(addr + last), word, __ATOMIC_RELEASE);
}

/* -- accesses that may fault: false if not all of the memory is accessible --------------------- */

/* The zero page is never memory: an address that is missing in a command is 0. */
static inline bool memory_is(uint64_t addr, size_t len)
{
    return addr >= 4096 && addr + len >= addr;
}

/* The callback that is called for an access that failed. */
struct memory_missed {
    void (*tell)(void *opaque, uint64_t addr, size_t len);
    void *opaque;
};

/* missed may be NULL. */
bool memory_read(uint64_t addr, void *buf, size_t len, const struct memory_missed *missed);
/* As memory_read(), to a buffer that another processor reads next (guest-lib/host/far.h). */
bool memory_read_far(uint64_t addr, void *buf, size_t len, const struct memory_missed *missed);
bool memory_write(uint64_t addr, const void *buf, size_t len, const struct memory_missed *missed);
/* As dma_atomic of struct hca_host_ops. */
bool memory_atomic(uint64_t addr, size_t len, struct host_atomic *op,
                   const struct memory_missed *missed);

#endif
