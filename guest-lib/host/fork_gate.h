/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fork() waits until a thread of ours sleeps. A child has the forking thread alone, and what
 * another one was in the midst of stays so in it for ever: a lock of malloc()'s, if that is a
 * sanitizer's, which does not know of fork(). (The C library's does.)
 */
#ifndef HCASIM_GUEST_LIB_HOST_FORK_GATE_H
#define HCASIM_GUEST_LIB_HOST_FORK_GATE_H

#include <semaphore.h>
#include <stdbool.h>
#include <time.h>
#include "wire/cancel.h"

struct fork_gate {
    sem_t open; /* while the thread sleeps */
    bool held;  /* by who forks */
};

/* Before the thread is made: it is awake. */
static inline void fork_gate_init(struct fork_gate *gate)
{
    sem_init(&gate->open, 0, 0);
    gate->held = false;
}

static inline void fork_gate_fini(struct fork_gate *gate)
{
    sem_destroy(&gate->open);
}

/* The thread: around whatever it waits in. */
static inline void fork_gate_sleeps(struct fork_gate *gate)
{
    sem_post(&gate->open);
}

static inline void fork_gate_wakes(struct fork_gate *gate)
{
    while (sem_wait(&gate->open)) {
    }
}

/* Around fork(), in the parent. A thread that does not come to sleep within a second, since it
 * waits for what the forking thread has (a signal handler may fork), is waited for no longer. */
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
