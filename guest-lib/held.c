/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Blocks whose sizes are powers of two, with a list of free ones for each size, linked through
 * themselves. A block never changes its size; a free one of a page or more has its memory given
 * back to the system, but for the page with the link.
 */
#define _GNU_SOURCE
#include "guest-lib/held.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "guest-lib/pci.h"

#define RANGE    (1ull << 34) /* addresses, not memory */
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
static struct block *free_blocks[LOG_MAX + 1];

static void before_fork(void)
{
    pthread_mutex_lock(&lock);
}

static void after_fork(void)
{
    pthread_mutex_unlock(&lock);
}

static void reserve(void)
{
    void *range = mmap(NULL, RANGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (range != MAP_FAILED) {
        held_start = (uintptr_t)range;
        reserved = RANGE;
    }
    pthread_atfork(before_fork, after_fork, after_fork);
}

static unsigned log_size(size_t size)
{
    unsigned log = LOG_MIN;

    while (log <= LOG_MAX && (size_t)1 << log < size) {
        log++;
    }
    return log;
}

/* A block of fresh memory from the range: a page at least. */
static struct block *take_fresh(unsigned log)
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

/* log beyond LOG_MAX: there is none. */
static struct block *take(unsigned log)
{
    struct block *block = log <= LOG_MAX ? free_blocks[log] : NULL;

    if (block) {
        free_blocks[log] = block->next;
        block->next = NULL;
        return block;
    }
    if (log >= LOG_PAGE) {
        return take_fresh(log);
    }
    block = take(LOG_PAGE);
    for (size_t at = (size_t)1 << log; block && at < 1u << LOG_PAGE; at += (size_t)1 << log) {
        struct block *piece = (struct block *)((uint8_t *)block + at);

        piece->next = free_blocks[log];
        free_blocks[log] = piece;
    }
    return block;
}

/* -- where there is no range ------------------------------------------------------------------- */

static size_t pages(size_t size)
{
    return (size + PCI_PAGE - 1) & ~(size_t)(PCI_PAGE - 1);
}

static void *plain_alloc(size_t size)
{
    void *ptr;

    if (size < PCI_PAGE) {
        size = (size_t)1 << log_size(size);
        ptr = aligned_alloc(size, size);
        return ptr ? memset(ptr, 0, size) : NULL;
    }
    ptr = mmap(NULL, pages(size), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return ptr == MAP_FAILED ? NULL : ptr;
}

static void plain_free(void *ptr, size_t size)
{
    if (size < PCI_PAGE) {
        free(ptr);
    } else {
        munmap(ptr, pages(size));
    }
}

/* ---------------------------------------------------------------------------------------------- */

void *held_alloc(size_t size)
{
    void *ptr;

    pthread_once(&once, reserve);
    pthread_mutex_lock(&lock);
    ptr = take(log_size(size));
    pthread_mutex_unlock(&lock);
    return ptr ? ptr : plain_alloc(size);
}

void held_free(void *ptr, size_t size)
{
    unsigned log = log_size(size);
    struct block *block = ptr;

    if (!ptr) {
        return;
    }
    if (!held_has((uintptr_t)ptr, size)) {
        plain_free(ptr, size);
        return;
    }
    if (log < LOG_PAGE || madvise(ptr, (size_t)1 << log, MADV_DONTNEED)) {
        memset(ptr, 0, (size_t)1 << log);
    }
    pthread_mutex_lock(&lock);
    block->next = free_blocks[log];
    free_blocks[log] = block;
    pthread_mutex_unlock(&lock);
}
