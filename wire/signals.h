/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Holds back signals during a call of this library, as the kernel does during a system call. So a
 * signal handler that calls this library or exit() never finds a lock held by the thread that it
 * interrupted.
 *
 * Signals that a thread causes itself (SIGSEGV, SIGABRT ...) cannot be held back. Each use costs
 * system calls, so this is for calls that are made rarely.
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
