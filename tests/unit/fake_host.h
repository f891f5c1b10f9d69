/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A host for an HCA under test: flat memory at one bus address, interrupt counters, a clock that
 * stands still until the test moves it.
 *
 * Addresses outside the memory do not answer. Mapping counts are kept so that a test can demand
 * that every map was undone. Allocation is a bump pointer: nothing is given back before
 * fake_host_clear().
 */
#ifndef HCASIM_TESTS_FAKE_HOST_H
#define HCASIM_TESTS_FAKE_HOST_H

#include "model/core/host.h"

#define FAKE_HOST_BASE    0x80000000ull /* bus address of the memory's first byte */
#define FAKE_HOST_SIZE    (16u << 20)
#define FAKE_HOST_VECTORS 64

/* The callbacks, for a hook that wants to come back into the function from one. */
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
    /* Called at the end of every callback, after it has had its effect; NULL: by none. */
    void (*hook)(void *opaque, enum fake_call call);
    void *hook_opaque;
    bool atomics_lose; /* to CPUs that change their words */
    uint8_t *ram;
    uint64_t next;                    /* bus address where the next allocation starts */
    uint64_t now;                     /* clock, nanoseconds */
    uint64_t deadline;                /* of the last timer_arm(); UINT64_MAX: none */
    unsigned irqs[FAKE_HOST_VECTORS]; /* interrupts seen, by vector */
    unsigned bad_irqs;                /* interrupts on vectors that do not exist */
    unsigned wakes;
    uint64_t reads;        /* dma_read() and dma_read_far() calls */
    uint64_t far_reads;    /* the latter */
    unsigned lines;        /* log lines of any level but trace */
    unsigned open_maps;    /* maps that were not unmapped yet */
    bool no_map;           /* dma_map fails: forces the copying path */
    unsigned map_limit;    /* most bytes of one map; 0: all */
    uint64_t hole;         /* the 8 bytes from here on do not answer; 0: all do */
    unsigned guest_errors; /* log lines of that level */
    char last_line[256];   /* last log line of any level but trace */
};

/* host is a struct fake_host. */
extern const struct hca_host_ops fake_host_ops;

void fake_host_init(struct fake_host *host);
void fake_host_clear(struct fake_host *host);

/* Zeroed memory of size bytes aligned to align (a power of two); returns its bus address. Aborts
 * when memory is used up: a test's mistake. */
uint64_t fake_host_alloc(struct fake_host *host, size_t size, size_t align);

/* The len bytes at a bus address as the host's CPU sees them; aborts outside the memory. */
void *fake_host_ptr(struct fake_host *host, uint64_t addr, size_t len);

#endif
