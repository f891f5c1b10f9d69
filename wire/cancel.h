/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Holds off cancellation (pthread_cancel()) while a thread holds a lock of this library. A
 * cancelled thread may end where it waits. Between cancel_disable() and cancel_restore() it does
 * not end, whichever system calls it makes.
 *
 * A thread of a program may run the device and its wire in each poll and doorbell. There the guard
 * is only around the few system calls that are made now and then (wake-ups, captures, logs,
 * interrupts), because a guard around each poll and doorbell would be too expensive for small
 * messages. Commands are guarded as a whole.
 */
#ifndef HCASIM_WIRE_CANCEL_H
#define HCASIM_WIRE_CANCEL_H

#include <pthread.h>

/* Returns the state to give to cancel_restore(). */
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
