/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Signals wait until a call is done, as they do for a system call: a handler that comes back into
 * this library, or calls exit(), meets none of its locks held by the thread that it interrupted.
 *
 * Those that a thread brings upon itself cannot wait. For calls that are made now and then.
 */
#ifndef HCASIM_WIRE_SIGNALS_H
#define HCASIM_WIRE_SIGNALS_H

#include <pthread.h>
#include <signal.h>

static inline void signals_hold(sigset_t *old)
{
    static const int own[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGABRT, SIGSYS};
    sigset_t held;

    sigfillset(&held);
    for (unsigned i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
        sigdelset(&held, own[i]);
    }
    pthread_sigmask(SIG_BLOCK, &held, old);
}

static inline void signals_release(const sigset_t *old)
{
    pthread_sigmask(SIG_SETMASK, old, NULL);
}

#endif
