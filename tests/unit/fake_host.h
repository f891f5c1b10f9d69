/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A host for an HCA under test: flat memory at one bus address, interrupt counters, a clock that
 * stands still until the test advances it.
 *
 * Addresses outside the memory do not answer. Mapping counts are kept so that a test can check that
 * every map was undone. Allocation is a bump pointer: memory is not freed before fake_host_clear().
 */
#ifndef HCASIM_TESTS_FAKE_HOST_H
#define HCASIM_TESTS_FAKE_HOST_H

#include "model/core/host.h"

#define FAKE_HOST_BASE    0x80000000ull /* bus address of the memory's first byte */
#define FAKE_HOST_SIZE    (16u << 20)
#define FAKE_HOST_VECTORS 64

/* The callbacks, so that a hook can re-enter the function from one of them. */
enum fake_call {
    FAKE_READ,
    FAKE_WRITE,
    FAKE_MAP,
    FAKE_UNMAP,
    FAKE_ATOMIC,
    FAKE_IRQ,
    FAKE_TIMER,
    FAKE_WAKE,
    FAKE_LOG,
    FAKE_CLOCK,
    FAKE_CALLS
};

struct fake_host {
    /* Called at the end of every callback, after the callback's effect; NULL: not called. */
    void (*hook)(void *opaque, enum fake_call call);
    void *hook_opaque;
    bool atomics_lose; /* atomics lose against CPUs that change the same words */
    uint8_t *ram;
    uint64_t next;                    /* bus address where the next allocation starts */
    uint64_t now;                     /* clock, nanoseconds */
    uint64_t deadline;                /* deadline of the last timer_arm(); UINT64_MAX: none */
    unsigned irqs[FAKE_HOST_VECTORS]; /* interrupts seen, by vector */
    unsigned bad_irqs;                /* interrupts on vectors that do not exist */
    unsigned wakes;
    uint64_t reads;        /* dma_read() and dma_read_far() calls */
    uint64_t far_reads;    /* dma_read_far() calls alone */
    unsigned lines;        /* log lines of any level but trace */
    unsigned open_maps;    /* maps that are still mapped */
    bool no_map;           /* dma_map fails, which forces the copying path */
    unsigned map_limit;    /* the most bytes of one map; 0: no limit */
    uint64_t hole;         /* the 8 bytes from here on do not answer; 0: all do */
    unsigned guest_errors; /* log lines of that level */
    char last_line[256];   /* last log line of any level but trace */
};

/* The opaque of these callbacks is a struct fake_host. */
extern const struct hca_host_ops fake_host_ops;

void fake_host_init(struct fake_host *host);
void fake_host_clear(struct fake_host *host);

/* Returns the bus address of zeroed memory of size bytes aligned to align (a power of two). Aborts
 * when the memory is used up, which is an error in the test. */
uint64_t fake_host_alloc(struct fake_host *host, size_t size, size_t align);

/* Returns a pointer to the len bytes at a bus address, as the host's CPU sees them; aborts outside
 * the memory. */
void *fake_host_ptr(struct fake_host *host, uint64_t addr, size_t len);

#endif
