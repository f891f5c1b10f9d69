/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads and writes of the process's memory that survive what is not mapped.
 *
 * An access opens a window: it notes, for its thread, where to go on. A fault while one is open
 * goes on there, and the access answers that there is nothing. __builtin_setjmp() stores three
 * words, so that a window costs an access no more than two calls; it lives in the frame of the
 * function that opened it. What the library itself holds needs none.
 */
#define _GNU_SOURCE
#include "guest-lib/host/memory.h"
#include "guest-lib/host/far.h"
#include <pthread.h>
#include <signal.h>
#include <ucontext.h>
#include <glib.h>

/* The library is there from the start of the program, or small enough for late ones. */
static __thread void **volatile window __attribute__((tls_model("initial-exec")));

/* -- faults ------------------------------------------------------------------------------------ */

#define ACTIONS 16 /* of one signal: as many may be set while a handler looks at one */

/* What the program does about these signals. A thread may set it while another one has a fault, so
 * it is never changed in its place. */
static struct memory_action {
    int signal;
    struct sigaction action[ACTIONS];
    unsigned set, now; /* how often it was set; where the last one is */
} actions[] = {{.signal = SIGSEGV}, {.signal = SIGBUS}};
static bool taken; /* the signals */

/* Of one of the two. */
static struct memory_action *memory_action_of(int signal)
{
    return &actions[signal == SIGBUS];
}

/* NULL: it is none of the two. */
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

/* Goes on where the window was opened. By returning from the handler, where that is known to be
 * possible: then the kernel gives back the signals that were blocked meanwhile, and who stands
 * between kernel and handler, as ThreadSanitizer does, sees it end. (No local whose address is
 * taken: what jumps out of a window leaves this frame, too.) */
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

/* As the kernel would, but on the stack that ours is on. The signals that are blocked for it are so
 * no more when ours returns. */
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
        raise(signal); /* a fault happens again by itself */
    }
}

/* A signal that is the program's. One that is ignored ends it, too, if it is a fault. */
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
    if (window && info->si_code > 0) { /* the kernel's, not kill()'s */
        memory_leave_window(context);
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
 * An access that may fault: a function (_there), which another one (_in_window) calls in a window.
 * No compiler knows that a fault leads from the one into the other. Were they one, what it keeps
 * for after the fault might lie where it has put something else by the time of the fault. So the
 * one with the window keeps nothing: after a fault it needs its frame alone, and sanitizers, which
 * would keep something there, stay out of it.
 */
#ifdef __SANITIZE_THREAD__
void __tsan_func_exit(void *); /* ThreadSanitizer counts who is called, and saw nobody leave */
#define WINDOW_LEFT __tsan_func_exit(NULL)
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

/* At a fault the stores before it have left the processor when its handler returns. */
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

/* ThreadSanitizer holds a lock of its own through an atomic access, which must not be left: another
 * access, which changes nothing, is the one that faults. */
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
