/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sigaction() and its predecessors, for the two signals that report faults. The library takes over
 * these signals when a program opens a device, because the device's own accesses fault where the
 * program has unmapped memory (docs/adr/0005-a-fault-is-an-access-that-nobody-answers.md). If a
 * program later sets a handler of its own, that handler gets the program's faults only.
 */
#define _GNU_SOURCE
#include <signal.h>
#include "guest-lib/verbs/preload/preload.h"
#include "guest-lib/verbs/preload/real.h"

sighandler_t bsd_signal(int number, sighandler_t handler);
sighandler_t __sysv_signal(int number, sighandler_t handler);

#define FUNCTIONS(X)                                                                               \
    X(sigaction)                                                                                   \
    X(signal)                                                                                      \
    X(bsd_signal)                                                                                  \
    X(ssignal)                                                                                     \
    X(sysv_signal)                                                                                 \
    X(__sysv_signal)
REAL_TABLE(FUNCTIONS)

static bool signals_is_fault(int number)
{
    return number == SIGSEGV || number == SIGBUS;
}

PRELOAD_EXPORT int sigaction(int number, const struct sigaction *action, struct sigaction *old)
{
    if (signals_is_fault(number) && self_sigaction(number, action, old)) {
        return 0;
    }
    return REAL(sigaction)(number, action, old);
}

static sighandler_t signals_set(int number, sighandler_t handler, int flags)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags}, old;

    sigemptyset(&action.sa_mask);
    return sigaction(number, &action, &old) ? SIG_ERR : old.sa_handler;
}

/* Inside the C library these call an internal sigaction(), which cannot be replaced. */
#define SIGNAL(name, flags)                                                                        \
    PRELOAD_EXPORT sighandler_t name(int number, sighandler_t handler)                             \
    {                                                                                              \
        return signals_is_fault(number) ? signals_set(number, handler, flags)                      \
                                        : REAL(name)(number, handler);                             \
    }
SIGNAL(signal, SA_RESTART)
SIGNAL(bsd_signal, SA_RESTART)
SIGNAL(ssignal, SA_RESTART)
SIGNAL(sysv_signal, (int)SA_RESETHAND | SA_NODEFER)
SIGNAL(__sysv_signal, (int)SA_RESETHAND | SA_NODEFER)
