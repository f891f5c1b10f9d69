/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Cancellation (pthread_cancel()) ends a thread where it waits, not where it holds a lock of ours:
 * what is between these two is not cancelled, whichever system calls it makes.
 *
 * A thread of a program may run the device and its wire in each poll and doorbell. There the guard
 * is around the few system calls that are made now and then (wake-ups, captures, logs, interrupts),
 * for it costs a small message more than they save; commands are guarded as a whole.
 */
#ifndef HCASIM_WIRE_CANCEL_H
#define HCASIM_WIRE_CANCEL_H

#include <pthread.h>

/* Returns what cancel_restore() is to be given. */
static inline int cancel_disable(void)
{
    int state;

    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    return state;
}

static inline void cancel_restore(int state)
{
    pthread_setcancelstate(state, &state);
}

#endif
