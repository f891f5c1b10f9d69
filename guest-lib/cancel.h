/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Cancellation (pthread_cancel()) ends a thread where it waits, not where it holds a lock of the
 * library: what is between these two is not cancelled, whichever system calls it makes.
 */
#ifndef HCASIM_GUEST_LIB_CANCEL_H
#define HCASIM_GUEST_LIB_CANCEL_H

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
