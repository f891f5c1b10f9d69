/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads and writes of the process's memory that survive unmapped memory.
 *
 * An access opens a window: it stores, for its thread, where to continue after a fault. If a fault
 * happens while a window is open, execution continues there, and the access reports that it failed.
 * __builtin_setjmp() stores only three words, so a window costs an access no more than two calls.
 * The window lives in the frame of the function that opened it. Accesses to memory that the library
 * owns need no window.
 */
#define _GNU_SOURCE
#include "guest-lib/host/memory.h"
#include "guest-lib/host/far.h"
#include "guest-lib/host/mmio.h"
#include <pthread.h>
#include <signal.h>
#include <ucontext.h>
#include <glib.h>
#ifdef __SANITIZE_ADDRESS__
#define IS_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define IS_ASAN 1
#endif
#endif
#ifdef IS_ASAN
#include <sanitizer/asan_interface.h>
#endif

/* The library is loaded when the program starts, or its TLS is small enough to be loaded later. */
static __thread void **volatile window __attribute__((tls_model("initial-exec")));

/* -- faults ------------------------------------------------------------------------------------ */

#define ACTIONS 16 /* per signal: how often it may be set while a handler reads one */

/* The program's actions for these signals. A thread may set an action while another thread has a
 * fault, so an action is never changed in place. */
static struct memory_action {
    int signal;
    struct sigaction action[ACTIONS];
    unsigned set, now; /* how often it was set; the index of the present one */
} actions[] = {{.signal = SIGSEGV}, {.signal = SIGBUS}};
static bool taken; /* whether the signals' handlers are installed */

/* The action of one of the two signals. */
static struct memory_action *memory_action_of(int signal)
{
    return &actions[signal == SIGBUS];
}

/* NULL: neither of the two signals. */
static struct memory_action *memory_find_action(int signal)
{
    return signal == SIGSEGV || signal == SIGBUS ? memory_action_of(signal) : NULL;
}

static struct sigaction *memory_program_action(struct memory_action *of)
{
    return &of->action[__atomic_load_n(&of->now, __ATOMIC_ACQUIRE) % ACTIONS];
}

static void memory_set_action(struct memory_action *of, const struct sigaction *action)
{
    unsigned at = __atomic_add_fetch(&of->set, 1, __ATOMIC_RELAXED);

    of->action[at % ACTIONS] = *action;
    __atomic_store_n(&of->now, at, __ATOMIC_RELEASE);
}

/* Continues where the window was opened. Where possible, it does so by returning from the handler:
 * then the kernel unblocks the signals that were blocked meanwhile, and a tool that wraps handlers,
 * such as ThreadSanitizer, sees the handler end. (No local variable may have its address taken
 * here: __builtin_longjmp() leaves this frame, too.) */
static void memory_leave_window(ucontext_t *context)
{
#ifdef __x86_64__
    greg_t *regs = context->uc_mcontext.gregs;

    regs[REG_RBP] = (greg_t)window[0]; /* as __builtin_longjmp() loads them */
    regs[REG_RIP] = (greg_t)window[1];
    regs[REG_RSP] = (greg_t)window[2];
#else
    __builtin_longjmp(window, 1);
#endif
}

/* Calls the program's handler as the kernel would, but on the stack of this library's handler.
 * Signals that are blocked for it are unblocked when this library's handler returns. */
static void memory_call_program(struct memory_action *of, siginfo_t *info, void *context)
{
    struct sigaction action = *memory_program_action(of);
    sigset_t blocked = action.sa_mask;

    if (!(action.sa_flags & SA_NODEFER)) {
        sigaddset(&blocked, of->signal);
    }
    if (action.sa_flags & (int)SA_RESETHAND) {
        memory_set_action(of, &(struct sigaction){.sa_handler = SIG_DFL});
    }
    pthread_sigmask(SIG_BLOCK, &blocked, NULL);
    if (action.sa_flags & SA_SIGINFO) {
        action.sa_sigaction(of->signal, info, context);
    } else {
        action.sa_handler(of->signal);
    }
}

static void memory_end_program(int signal, const siginfo_t *info, const struct sigaction *action)
{
    __atomic_store_n(&taken, false, __ATOMIC_RELAXED);
    sigaction(signal, action, NULL);
    if (info->si_code <= 0) {
        raise(signal); /* a fault repeats by itself */
    }
}

/* Handles a signal that belongs to the program. A fault ends the program even if the signal is
 * ignored. */
static G_GNUC_NO_INLINE void memory_pass_on(int signal, siginfo_t *info, void *context)
{
    struct memory_action *of = memory_action_of(signal);
    const struct sigaction *action = memory_program_action(of);
    bool calls = action->sa_flags & SA_SIGINFO ||
                 (action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN);

    if (calls) {
        memory_call_program(of, info, context);
    } else if (action->sa_handler == SIG_DFL || info->si_code > 0) {
        memory_end_program(signal, info, action);
    }
}

static void memory_on_fault(int signal, siginfo_t *info, void *context)
{
    if (window && info->si_code > 0) { /* from the kernel, not from kill() */
        memory_leave_window(context);
        return;
    }
    if (signal == SIGBUS && info->si_code > 0 && mmio_fault(info, context)) {
        return;
    }
    memory_pass_on(signal, info, context);
}

static void memory_install(void)
{
    struct sigaction action = {.sa_sigaction = memory_on_fault,
                               .sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK};

    for (size_t i = 0; i < G_N_ELEMENTS(actions); i++) {
        sigaction(actions[i].signal, NULL, &actions[i].action[0]);
        sigaction(actions[i].signal, &action, NULL);
    }
    __atomic_store_n(&taken, true, __ATOMIC_RELEASE);
}

bool memory_sigaction(int signal, const struct sigaction *action, struct sigaction *old)
{
    struct memory_action *of = memory_find_action(signal);

    if (!of || !__atomic_load_n(&taken, __ATOMIC_ACQUIRE)) {
        return false;
    }
    if (old) {
        *old = *memory_program_action(of);
    }
    if (action) {
        memory_set_action(of, action);
    }
    return true;
}

void memory_catch_faults(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, memory_install);
}

void memory_unblock_faults(void)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGSEGV);
    sigaddset(&set, SIGBUS);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

/* -- accesses ---------------------------------------------------------------------------------- */

static bool memory_miss(const struct memory_missed *missed, uint64_t addr, size_t len)
{
    if (missed) {
        missed->tell(missed->opaque, addr, len);
    }
    return false;
}

/*
 * An access that may fault is a function (NAME_there), which another function (NAME_in_window)
 * calls in a window. Compilers do not know that a fault leads from the first function into the
 * second. If the two were one function, a value that it keeps for after the fault might lie where
 * something else has been stored by the time of the fault. So the function with the window keeps
 * nothing: after a fault it needs only its frame. Sanitizers, which would keep values there, are
 * switched off for it.
 */
#ifdef __SANITIZE_THREAD__
void __tsan_func_exit(void *); /* ThreadSanitizer tracks calls, and did not see this one return */
#define WINDOW_LEFT __tsan_func_exit(NULL)
#elif defined(IS_ASAN)
/* The frames below this one are gone, but AddressSanitizer did not see them return, so its marks
 * around their variables still forbid accesses. The frames have this size at most. */
#define FRAMES_LEFT ((size_t)4096)
#define WINDOW_LEFT                                                                                \
    __asan_unpoison_memory_region((uint8_t *)__builtin_frame_address(0) - FRAMES_LEFT, FRAMES_LEFT)
#else
#define WINDOW_LEFT (void)0
#endif
#define WINDOW_KEEPS_NOTHING                                                                       \
    __attribute__((noinline, no_sanitize("address"), no_sanitize("undefined")))
#define IN_A_WINDOW(name, parameters, arguments, access)                                           \
    static G_GNUC_NO_INLINE void name##_there parameters                                           \
    {                                                                                              \
        access;                                                                                    \
    }                                                                                              \
    WINDOW_KEEPS_NOTHING static bool name##_in_window parameters                                   \
    {                                                                                              \
        void *go_on[5];                                                                            \
                                                                                                   \
        if (__builtin_setjmp(go_on)) {                                                             \
            WINDOW_LEFT;                                                                           \
            window = NULL;                                                                         \
            return false;                                                                          \
        }                                                                                          \
        window = go_on;                                                                            \
        __atomic_signal_fence(__ATOMIC_SEQ_CST);                                                   \
        name##_there arguments;                                                                    \
        __atomic_signal_fence(__ATOMIC_SEQ_CST);                                                   \
        window = NULL;                                                                             \
        return true;                                                                               \
    }

IN_A_WINDOW(memory_read, (uint64_t addr, void *buf, size_t len), (addr, buf, len),
            memory_take(addr, buf, len))

bool memory_read(uint64_t addr, void *buf, size_t len, const struct memory_missed *missed)
{
    return (memory_is(addr, len) && memory_read_in_window(addr, buf, len)) ||
           memory_miss(missed, addr, len);
}

/* If there is a fault, the stores before it have left the processor when its handler returns. */
IN_A_WINDOW(memory_read_far, (uint64_t addr, void *buf, size_t len), (addr, buf, len),
            far_copy(buf, memory_at(addr), len))

bool memory_read_far(uint64_t addr, void *buf, size_t len, const struct memory_missed *missed)
{
    return (memory_is(addr, len) && memory_read_far_in_window(addr, buf, len)) ||
           memory_miss(missed, addr, len);
}

IN_A_WINDOW(memory_write, (uint64_t addr, const void *buf, size_t len), (addr, buf, len),
            memory_put(addr, buf, len))

bool memory_write(uint64_t addr, const void *buf, size_t len, const struct memory_missed *missed)
{
    return (memory_is(addr, len) && memory_write_in_window(addr, buf, len)) ||
           memory_miss(missed, addr, len);
}

/* ThreadSanitizer holds a lock of its own during an atomic access, which a fault must not leave
 * locked. So another access, which changes nothing, comes first and takes the fault. */
static inline void memory_fault_before_atomic(uint64_t addr)
{
#ifdef __SANITIZE_THREAD__
    __asm__ volatile("lock orb $0, %0" : "+m"(*(uint8_t *)memory_at(addr)));
#endif
}

IN_A_WINDOW(memory_atomic, (uint64_t addr, size_t len, struct host_atomic *op), (addr, len, op),
            memory_fault_before_atomic(addr);
            host_atomic_do(memory_at(addr), len, op))

bool memory_atomic(uint64_t addr, size_t len, struct host_atomic *op,
                   const struct memory_missed *missed)
{
    return (memory_is(addr, len) && addr % len == 0 && memory_atomic_in_window(addr, len, op)) ||
           memory_miss(missed, addr, len);
}
