/* SPDX-License-Identifier: BSD-2-Clause */
/* The helper thread of a local HCA: when it works, how long it sleeps, and when it leaves the work
 * to other threads. */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "guest-lib/host/local_internal.h"
#include "wire/cancel.h"

/* ns for which a poller that stayed away has to poll without a pause */
#define PROBATION     4000000u
#define PROBATION_MAX 256000000u /* the longest; it doubles each time */
#define HELPER_SLICE  100000u    /* ns, the shortest that may be requested */
#define LOOK_LEAST    20000u     /* ns between two scans of doorbell pages, at least */
#define LOOK_MOST     4000000u   /* at most */
#define LOOK_SHARE    64u        /* the divisor: scans come after 1/64 of the time without news */
#define LINGER        50000u     /* ns after its last work in which the helper looks for more */
#define CROWDED       1000000u   /* ns without lingering after others kept the processor; doubles */
#define CROWDED_MAX   256000000u /* the longest */
#define IN_TIME       64u        /* quick returns of the processor: it is not crowded */

static void helper_wake(struct local_hca *hca)
{
    uint64_t one = 1;
    int state = cancel_disable();

    if (write(hca->helper.wake_fd, &one, sizeof(one)) < 0 && errno != EAGAIN) {
        g_warning("%s: waking the helper: %s", hca->name, g_strerror(errno));
    }
    cancel_restore(state);
}

void local_helper_wake(struct local_hca *hca)
{
    if (local_enter(hca)) {
        helper_wake(hca);
        local_exit(hca);
    }
}

/* How long the next scan of the doorbell pages may wait. A store to memory wakes no thread. The
 * longer the pages had no doorbell, the less often they are scanned
 * (docs/adr/0018-doorbells-are-memory-that-is-looked-at.md). */
static uint64_t helper_look_ns(const struct local_hca *hca, uint64_t now)
{
    uint64_t rang = __atomic_load_n(&hca->scan.rang_ns, __ATOMIC_RELAXED);
    uint64_t last = MAX(rang, hca->helper.last_work_ns);

    return CLAMP(now > last ? (now - last) / LOOK_SHARE : 0, LOOK_LEAST, LOOK_MOST);
}

/* How long the helper may sleep; 0: not at all. If each message sets a timer that its answer stops,
 * the helper would have to be woken for each. So it wakes for the last timer, whether or not that
 * was stopped: timers that are set meanwhile are later. */
static uint64_t helper_sleep_ns(struct local_hca *hca, bool polled, uint64_t now)
{
    uint64_t until = __atomic_load_n(&hca->deadline_ns, __ATOMIC_ACQUIRE);
    uint64_t last = __atomic_load_n(&hca->last_deadline_ns, __ATOMIC_ACQUIRE);
    uint64_t most = polled ? POLL_GRACE : UINT64_MAX;

    if (until == UINT64_MAX && last > now) {
        until = last;
    }

    if (!polled && (__atomic_load_n(&hca->woken, __ATOMIC_ACQUIRE) ||
                    __atomic_load_n(&hca->worker.polled, __ATOMIC_SEQ_CST))) {
        /* a thread has begun to poll: the helper checks every POLL_GRACE whether it still does */
        return 0;
    }
    if (local_is_watching(hca)) {
        most = MIN(most, helper_look_ns(hca, now));
    }
    if (polled || until == UINT64_MAX) {
        return most; /* the poller handles timers, or there is none */
    }
    return until <= now ? 0 : MIN(until - now, most);
}

static void helper_sleep(struct local_hca *hca, uint64_t ns)
{
    struct pollfd fds[2] = {{.fd = hca->helper.wake_fd, .events = POLLIN},
                            {.fd = hca->wire_fd, .events = POLLIN}};
    struct timespec ts = {.tv_sec = (time_t)(ns / 1000000000u),
                          .tv_nsec = (long)(ns % 1000000000u)};
    uint64_t count;
    int n;

    fork_gate_sleeps(&hca->helper.gate);
    n = ppoll(fds, hca->wire_fd >= 0 ? 2 : 1, ns == UINT64_MAX ? NULL : &ts, NULL);
    fork_gate_wakes(&hca->helper.gate);
    __atomic_store_n(&hca->helper.asleep, false, __ATOMIC_SEQ_CST);
    if (n > 0 && (fds[0].revents & POLLIN) &&
        read(hca->helper.wake_fd, &count, sizeof(count)) < 0 && errno != EAGAIN) {
        g_warning("%s: the helper's descriptor: %s", hca->name, g_strerror(errno));
    }
    if (n > 0 && hca->wire_fd >= 0 && (fds[1].revents & POLLIN)) {
        pthread_mutex_lock(&hca->lock);
        wire_fd_event(hca->port);
        pthread_mutex_unlock(&hca->lock);
    }
}

/* Asks for short slices. Then a program that spins on its memory does not keep the helper, which
 * will change that memory, from the processor for a whole slice. Kernels before 6.12 ignore
 * this. */
static void helper_ask_for_short_slices(void)
{
    struct {
        uint32_t size, policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t runtime, deadline, period;
    } attr = {.size = sizeof(attr)}; /* struct sched_attr, sched_setattr(2) */

    if (!syscall(SYS_sched_getattr, 0, &attr, attr.size, 0) && attr.policy == SCHED_OTHER) {
        attr.runtime = HELPER_SLICE;
        syscall(SYS_sched_setattr, 0, &attr, 0);
    }
}

/* The processor time that the poller has used since the last call. 0: the poller has ended, or is
 * another thread than at the last call. */
static uint64_t helper_poller_ran(struct local_hca *hca)
{
    struct timespec ran;
    uint64_t before = hca->poller.ran_ns;

    if (clock_gettime(hca->poller.clock, &ran)) {
        return 0;
    }
    hca->poller.ran_ns = local_timespec_ns(&ran);
    return before == UINT64_MAX ? 0 : hca->poller.ran_ns - before;
}

/* The poller did not poll again. If frames waited for it although it had the processor, the program
 * polls a CQ now and then and reads its memory in between: then the helper works until the program
 * has polled for some time. A poller that had to wait for a processor, or sleeps, is trusted again
 * at its next poll. What it posted last may have waited for its poll (local_doorbell_soon()); to a
 * poller that has the processor, this happens at most once in PROBATION_MAX. */
static void helper_take_over(struct local_hca *hca, uint64_t now, uint64_t ran)
{
    struct wire_stats before, after;

    if (now - hca->poller.trusted_since_ns > PROBATION_MAX) {
        hca->poller.probation_ns = 0;
    }
    if (hca->woken && hca->poller.doorbells > 1 && ran > POLL_GRACE / 2) {
        local_note_departure(hca, now);
    }
    local_set_polled(hca, false);
    wire_get_stats(hca->port, &before);
    local_set_busy(hca, false);
    local_turn(hca, now, true);
    wire_get_stats(hca->port, &after);
    if (after.rx_frames != before.rx_frames && ran > POLL_GRACE / 2) {
        hca->poller.probation_ns = CLAMP(hca->poller.probation_ns * 2, PROBATION, PROBATION_MAX);
        hca->poller.polling_since_ns = now;
    }
}

/* Where one frame came, the next is likely near. Sleeping between them costs both sides more than a
 * frame does: the sender a system call, this side a context switch. So the helper of a program that
 * leaves all work to it looks for more frames for a while. A program that works itself may need the
 * processor. */
static bool helper_lingers(const struct local_hca *hca, uint64_t now)
{
    return !hca->worker.polled && now < hca->helper.last_work_ns + LINGER &&
           now >= hca->helper.crowded_until_ns &&
           now > MAX(hca->poller.last_poll_ns, hca->poller.last_doorbell_ns) + POLL_GRACE;
}

/* Other threads kept the processor for long. That happens to any thread now and then, and a helper
 * that sleeps instead costs a sender a wake-up for each frame. So the first time the helper stops
 * lingering only for a short while. */
static void helper_note_crowd(struct local_hca *hca, uint64_t now)
{
    hca->helper.crowded_ns =
        hca->helper.in_time < IN_TIME ? MIN(hca->helper.crowded_ns * 2, CROWDED_MAX) : 0;
    hca->helper.crowded_ns = MAX(hca->helper.crowded_ns, CROWDED);
    hca->helper.crowded_until_ns = now + hca->helper.crowded_ns;
    hca->helper.in_time = 0;
}

/* Yields the processor between two looks. If it comes back late, the helper would have got it
 * sooner by sleeping: a thread that yields queues behind all spinning threads, a thread that is
 * woken goes before them. */
static void helper_yield(struct local_hca *hca)
{
    uint64_t before = local_monotonic_ns(), now;

    fork_gate_sleeps(&hca->helper.gate);
    sched_yield();
    fork_gate_wakes(&hca->helper.gate);
    now = local_monotonic_ns();
    if (now > before + LINGER) {
        helper_note_crowd(hca, now);
    } else {
        hca->helper.in_time++;
    }
}

/* Takes the lock. False: the program polls, and is in a turn right now. If the helper waited for
 * the turn, each turn would end with a wake-up of the helper, which would be too late for the lock
 * each time. */
static bool helper_lock(struct local_hca *hca)
{
    if (!__atomic_load_n(&hca->worker.polled, __ATOMIC_SEQ_CST)) {
        pthread_mutex_lock(&hca->lock);
        return true;
    }
    return !pthread_mutex_trylock(&hca->lock);
}

/* Checks whether the program that polls still does. With the lock held. */
static void helper_look_for_poller(struct local_hca *hca, uint64_t now)
{
    uint64_t ran;

    hca->poller.ran_ns = hca->helper.missed ? UINT64_MAX : hca->poller.ran_ns;
    hca->helper.missed = false;
    ran = helper_poller_ran(hca);
    if (now >= hca->poller.last_poll_ns + POLL_GRACE) {
        helper_take_over(hca, now, ran);
    } else if (now >= hca->poller.left_ns + PROBATION_MAX) {
        __atomic_store_n(&hca->poller.posts_and_leaves, false, __ATOMIC_RELAXED);
    }
}

/* What the helper does after it has looked. */
enum helper_next {
    HELPER_SLEEPS, /* until it is woken, or something is due */
    /* the program polls: sleeps until it is time to check whether it still does */
    HELPER_LEAVES_IT,
    HELPER_YIELDS /* more is likely near: looks again after other threads could run */
};

/* Does the work that there is, under the lock. */
static enum helper_next helper_look(struct local_hca *hca)
{
    enum helper_next next;
    uint64_t now;

    if (!helper_lock(hca)) {
        hca->helper.missed = true;
        return HELPER_LEAVES_IT;
    }
    now = local_monotonic_ns();
    if (hca->worker.polled) {
        helper_look_for_poller(hca, now);
    }
    next = hca->worker.polled ? HELPER_LEAVES_IT : HELPER_SLEEPS;
    if ((!hca->worker.polled || local_is_watching(hca)) && local_turn(hca, now, true)) {
        hca->helper.last_work_ns = now;
    }
    if (helper_lingers(hca, now)) {
        next = HELPER_YIELDS;
    }
    local_set_busy(hca, next != HELPER_SLEEPS);
    pthread_mutex_unlock(&hca->lock);
    return next;
}

/* Sleeps. Threads that leave work from now on, or begin to poll, either wake the helper or are seen
 * here: after helper.asleep is set, it checks once more what they left. A timer that is later than
 * the planned wake-up need not wake the helper: there may be one with each message. */
static void helper_wait(struct local_hca *hca, enum helper_next next)
{
    bool polled = next == HELPER_LEAVES_IT;
    uint64_t now, ns;

    if (next == HELPER_YIELDS) {
        helper_yield(hca);
        return;
    }
    now = local_monotonic_ns();
    ns = helper_sleep_ns(hca, polled, now);
    __atomic_store_n(&hca->helper.asleep_until_ns, ns > UINT64_MAX - now ? UINT64_MAX : now + ns,
                     __ATOMIC_RELEASE);
    __atomic_store_n(&hca->helper.asleep, !polled, __ATOMIC_SEQ_CST);
    ns = MIN(ns, helper_sleep_ns(hca, polled, now));
    if (ns != 0) {
        helper_sleep(hca, ns);
    }
    __atomic_store_n(&hca->helper.asleep, false, __ATOMIC_SEQ_CST);
}

static void *helper_main(void *opaque)
{
    struct local_hca *hca = opaque;

    memory_unblock_faults();
    helper_ask_for_short_slices();
    while (!__atomic_load_n(&hca->helper.stop, __ATOMIC_ACQUIRE)) {
        enum helper_next next = helper_look(hca);

        local_tell_irq(hca);
        helper_wait(hca, next);
    }
    return NULL;
}

bool local_helper_start(struct local_hca *hca)
{
    sigset_t all, old;
    int err;

    fork_gate_init(&hca->helper.gate);
    /* the program's signals must not run on this thread */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    err = pthread_create(&hca->helper.thread, NULL, helper_main, hca);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    hca->helper.started = err == 0;
    errno = err;
    return hca->helper.started;
}

void local_helper_stop(struct local_hca *hca)
{
    if (hca->helper.started) {
        __atomic_store_n(&hca->helper.stop, true, __ATOMIC_RELEASE);
        helper_wake(hca);
        pthread_join(hca->helper.thread, NULL);
        fork_gate_fini(&hca->helper.gate);
    }
    hca->helper.started = false;
}
