/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Blocks whose sizes are powers of two, with a list of free blocks for each size. A block never
 * changes its size. The memory of a free block of a page or more is given back to the system. Such
 * blocks are linked in a separate table, so that linking does not touch their memory; smaller
 * blocks are linked through themselves.
 */
#define _GNU_SOURCE
#include "guest-lib/host/held.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "guest-lib/drv/pci.h"
#include "wire/forks.h"

#define RANGE    (1ull << 34) /* address space, not memory */
#define LOG_MIN  6            /* a doorbell record's cache line */
#define LOG_MAX  34
#define LOG_PAGE 12

struct block {
    struct block *next;
};

uintptr_t held_start;
size_t held_size;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static size_t reserved;
static struct block *free_blocks[LOG_PAGE];
/* Free blocks of a page or more: the number of the first page in the range, plus 1; 0: none. */
static uint32_t free_pages[LOG_MAX + 1];
static uint32_t *next_pages; /* indexed by that number minus 1 */

static void held_before_fork(void)
{
    pthread_mutex_lock(&lock);
}

static void held_after_fork(void)
{
    pthread_mutex_unlock(&lock);
}

static void held_reserve(void)
{
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    void *range = mmap(NULL, RANGE, PROT_NONE, flags, -1, 0);
    void *table = mmap(NULL, (RANGE >> LOG_PAGE) * sizeof(next_pages[0]), PROT_READ | PROT_WRITE,
                       flags, -1, 0);

    if (range != MAP_FAILED && table != MAP_FAILED) {
        held_start = (uintptr_t)range;
        next_pages = table;
        reserved = RANGE;
    } else if (range != MAP_FAILED) {
        munmap(range, RANGE); /* address space is limited */
    }
}

FORKS_INNER_LOCK static void held_watch_forks(void)
{
    pthread_atfork(held_before_fork, held_after_fork, held_after_fork);
}

static unsigned held_log_size(size_t size)
{
    unsigned log = LOG_MIN;

    while (log <= LOG_MAX && (size_t)1 << log < size) {
        log++;
    }
    return log;
}

/* Takes a block of unused memory from the range, at least a page. NULL: there is none, or log is
 * above LOG_MAX. */
static void *held_take_fresh(unsigned log)
{
    size_t size = (size_t)1 << log;
    void *fresh = (uint8_t *)held_start + held_size;

    if (log > LOG_MAX || size > reserved - held_size ||
        mprotect(fresh, size, PROT_READ | PROT_WRITE)) {
        return NULL;
    }
    __atomic_store_n(&held_size, held_size + size, __ATOMIC_RELEASE);
    return fresh;
}

static void *held_take_pages(unsigned log)
{
    uint32_t page = log <= LOG_MAX ? free_pages[log] : 0;

    if (page == 0) {
        return held_take_fresh(log);
    }
    free_pages[log] = next_pages[page - 1];
    return (uint8_t *)held_start + ((size_t)(page - 1) << LOG_PAGE);
}

static void held_give_pages(void *ptr, unsigned log)
{
    uint32_t page = (uint32_t)(((uintptr_t)ptr - held_start) >> LOG_PAGE) + 1;

    next_pages[page - 1] = free_pages[log];
    free_pages[log] = page;
}

static void held_give_piece(void *ptr, unsigned log)
{
    struct block *block = ptr;

    block->next = free_blocks[log];
    free_blocks[log] = block;
}

static void *held_take_piece(unsigned log)
{
    struct block *block = free_blocks[log];
    uint8_t *page;

    if (block) {
        free_blocks[log] = block->next;
        block->next = NULL;
        return block;
    }
    page = held_take_pages(LOG_PAGE);
    for (size_t at = (size_t)1 << log; page && at < 1u << LOG_PAGE; at += (size_t)1 << log) {
        held_give_piece(page + at, log);
    }
    return page;
}

/* -- without a reserved range ------------------------------------------------------------------ */

static size_t held_pages(size_t size)
{
    return (size + PCI_PAGE - 1) & ~(size_t)(PCI_PAGE - 1);
}

static void *held_plain_alloc(size_t size)
{
    void *ptr;

    if (size < PCI_PAGE) {
        size = (size_t)1 << held_log_size(size);
        ptr = aligned_alloc(size, size);
        return ptr ? memset(ptr, 0, size) : NULL;
    }
    ptr = mmap(NULL, held_pages(size), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return ptr == MAP_FAILED ? NULL : ptr;
}

static void held_plain_free(void *ptr, size_t size)
{
    if (size < PCI_PAGE) {
        free(ptr);
    } else {
        munmap(ptr, held_pages(size));
    }
}

/* -- allocation -------------------------------------------------------------------------------- */

void *held_alloc(size_t size)
{
    unsigned log = held_log_size(size);
    void *ptr;

    pthread_once(&once, held_reserve);
    pthread_mutex_lock(&lock);
    ptr = log < LOG_PAGE ? held_take_piece(log) : held_take_pages(log);
    pthread_mutex_unlock(&lock);
    return ptr ? ptr : held_plain_alloc(size);
}

void held_free(void *ptr, size_t size)
{
    unsigned log = held_log_size(size);

    if (!ptr) {
        return;
    }
    if (!held_has((uintptr_t)ptr, size)) {
        held_plain_free(ptr, size);
        return;
    }
    if (log < LOG_PAGE || madvise(ptr, (size_t)1 << log, MADV_DONTNEED)) {
        memset(ptr, 0, (size_t)1 << log);
    }
    pthread_mutex_lock(&lock);
    if (log < LOG_PAGE) {
        held_give_piece(ptr, log);
    } else {
        held_give_pages(ptr, log);
    }
    pthread_mutex_unlock(&lock);
}
