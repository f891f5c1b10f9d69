/* SPDX-License-Identifier: BSD-2-Clause */
/* The stand-in GPU's lock, its handles, the entry of each call, and what tests set. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <time.h>
#include "guest-lib/cuda/standin/standin_internal.h"

#define HANDLES 4096 /* of each kind */

struct standin_state standin = {
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .done = PTHREAD_COND_INITIALIZER,
};

__thread bool standin_is_worker;

static bool in_child;

/* -- handles ----------------------------------------------------------------------------------- */

struct standin_slot {
    void *object;
    unsigned generation;
};

static struct standin_slot slots[STANDIN_KINDS][HANDLES];
static unsigned next_slot[STANDIN_KINDS];

/* kind + 1, generation, index. */
static uintptr_t standin_number(enum standin_kind kind, unsigned i)
{
    return (uintptr_t)(kind + 1) << 44 | (uintptr_t)(slots[kind][i].generation & 0xffffff) << 16 |
           i;
}

void *standin_handle_new(enum standin_kind kind, void *object)
{
    for (unsigned n = 0; n < HANDLES; n++) {
        unsigned i = (next_slot[kind] + n) % HANDLES;

        if (!slots[kind][i].object) {
            next_slot[kind] = i + 1;
            slots[kind][i].object = object;
            slots[kind][i].generation++;
            return (void *)standin_number(kind, i);
        }
    }
    return NULL;
}

static struct standin_slot *standin_slot_of(enum standin_kind kind, const void *handle)
{
    unsigned i = (uintptr_t)handle & 0xffff;

    return i < HANDLES && slots[kind][i].object && standin_number(kind, i) == (uintptr_t)handle
               ? &slots[kind][i]
               : NULL;
}

void *standin_handle_find(enum standin_kind kind, const void *handle)
{
    struct standin_slot *slot = standin_slot_of(kind, handle);

    return slot ? slot->object : NULL;
}

void standin_handle_end(enum standin_kind kind, const void *handle)
{
    struct standin_slot *slot = standin_slot_of(kind, handle);

    if (slot) {
        slot->object = NULL;
    }
}

void *standin_handle_next(enum standin_kind kind, unsigned *at)
{
    while (*at < HANDLES) {
        void *object = slots[kind][(*at)++].object;

        if (object) {
            return object;
        }
    }
    return NULL;
}

/* -- calls ------------------------------------------------------------------------------------- */

bool standin_in_child(void)
{
    return __atomic_load_n(&in_child, __ATOMIC_RELAXED);
}

CUresult standin_begin(void)
{
    CUresult result = CUDA_SUCCESS;

    if (standin_in_child()) {
        return CUDA_ERROR_NOT_INITIALIZED; /* another thread may have had the lock at fork() */
    }
    if (standin_is_worker) {
        return CUDA_ERROR_NOT_PERMITTED; /* a function in a stream must not call the driver */
    }
    pthread_mutex_lock(&standin.lock);
    if (standin.ended) {
        result = CUDA_ERROR_DEINITIALIZED;
    } else if (!standin.initialised) {
        result = CUDA_ERROR_NOT_INITIALIZED;
    }
    if (result) {
        pthread_mutex_unlock(&standin.lock);
    }
    return result;
}

CUresult standin_begin_in(struct standin_context **context)
{
    CUresult result = standin_begin();

    if (!result) {
        result = standin_context_current(context);
        if (result) {
            standin_end(result);
        }
    }
    return result;
}

CUresult standin_end(CUresult result)
{
    pthread_mutex_unlock(&standin.lock);
    return result;
}

static void standin_after_fork(void)
{
    __atomic_store_n(&in_child, true, __ATOMIC_RELAXED);
}

CUresult cuInit(unsigned flags)
{
    pthread_condattr_t attr;

    if (standin_in_child()) {
        return CUDA_ERROR_NOT_INITIALIZED;
    }
    if (flags) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    pthread_mutex_lock(&standin.lock);
    if (standin.ended) {
        return standin_end(CUDA_ERROR_DEINITIALIZED);
    }
    if (!standin.initialised) {
        pthread_condattr_init(&attr);
        pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
        pthread_cond_init(&standin.work, &attr);
        pthread_condattr_destroy(&attr);
        pthread_atfork(NULL, NULL, standin_after_fork);
        standin.initialised = true;
    }
    return standin_end(CUDA_SUCCESS);
}

/* Whatever still waits returns. Memory stays, because other threads may be in calls. */
static __attribute__((destructor)) void standin_exit(void)
{
    if (standin_in_child()) {
        return;
    }
    pthread_mutex_lock(&standin.lock);
    standin.ended = true;
    pthread_cond_broadcast(&standin.done);
    if (standin.initialised) {
        standin_worker_stop();
    }
    pthread_mutex_unlock(&standin.lock);
}

/* -- for tests --------------------------------------------------------------------------------- */

void hcasim_standin_delay(unsigned us)
{
    pthread_mutex_lock(&standin.lock);
    standin.delay_ns = us * 1000ull;
    pthread_mutex_unlock(&standin.lock);
}

void hcasim_standin_hold(unsigned work)
{
    pthread_mutex_lock(&standin.lock);
    standin.held = work;
    if (standin.initialised) {
        pthread_cond_signal(&standin.work);
    }
    pthread_mutex_unlock(&standin.lock);
}

void hcasim_standin_fail(unsigned work, CUresult error)
{
    pthread_mutex_lock(&standin.lock);
    standin.failing = error ? work : 0;
    standin.failure = error;
    pthread_mutex_unlock(&standin.lock);
}

void *hcasim_standin_memory(CUdeviceptr addr, size_t len)
{
    size_t got = len;
    uint8_t *at = NULL;
    struct standin_block *block;

    pthread_mutex_lock(&standin.lock);
    block = standin_memory_at(addr, CU_MEM_ACCESS_FLAGS_PROT_READ, &at, &got);
    if (block) {
        standin_block_drop(block); /* the range of addresses still has it */
    }
    pthread_mutex_unlock(&standin.lock);
    return block && got == len ? at : NULL;
}

void hcasim_standin_count(struct standin_counts *counts)
{
    pthread_mutex_lock(&standin.lock);
    *counts = standin.counts;
    pthread_mutex_unlock(&standin.lock);
}
