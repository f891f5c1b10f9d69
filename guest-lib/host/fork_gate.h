/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Makes fork() wait until a thread of this library sleeps. A child has only the forking thread, so
 * anything that another thread was doing stays half done for ever. An example is a lock of a
 * sanitizer's malloc(), which does not handle fork(). (The C library's malloc() does.)
 */
#ifndef HCASIM_GUEST_LIB_HOST_FORK_GATE_H
#define HCASIM_GUEST_LIB_HOST_FORK_GATE_H

#include <semaphore.h>
#include <stdbool.h>
#include <time.h>
#include "wire/cancel.h"

struct fork_gate {
    sem_t open; /* posted while the thread sleeps */
    bool held;  /* the forking thread holds the gate */
};

/* To be called before the thread is made. The thread begins awake. */
static inline void fork_gate_init(struct fork_gate *gate)
{
    sem_init(&gate->open, 0, 0);
    gate->held = false;
}

static inline void fork_gate_fini(struct fork_gate *gate)
{
    sem_destroy(&gate->open);
}

/* The thread calls these two around each wait. */
static inline void fork_gate_sleeps(struct fork_gate *gate)
{
    sem_post(&gate->open);
}

static inline void fork_gate_wakes(struct fork_gate *gate)
{
    while (sem_wait(&gate->open)) {
    }
}

/* The forking thread calls these two around fork(), in the parent. A thread that does not sleep
 * within a second is not waited for any longer: it may wait for a lock that the forking thread has
 * (a signal handler may fork). */
static inline void fork_gate_before(struct fork_gate *gate)
{
    int state = cancel_disable();
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec++;
    gate->held = sem_timedwait(&gate->open, &until) == 0;
    cancel_restore(state);
}

static inline void fork_gate_after(struct fork_gate *gate)
{
    if (gate->held) {
        gate->held = false;
        sem_post(&gate->open);
    }
}

#endif
