/* SPDX-License-Identifier: BSD-2-Clause */
/* Lets a local HCA work: by the threads that ring and poll, or by a world. */
#define _GNU_SOURCE
#include <sched.h>
#include "guest-lib/host/gpu.h"
#include "guest-lib/host/local_internal.h"
#include "prm/prm.h"
#include "wire/cancel.h"

#define BUDGET        512 /* pieces (fw/fw.h) of one turn */
#define GATHER        8   /* doorbells of a program that polls, of which one is worked on at once */
#define SETTLE        4  /* turns, if there is work, when the caller is not trusted to come again */
#define FINISH        64 /* turns for the remaining work when the process ends */
#define FULL_POLLS    8  /* polls that find completions, of which one counts as a poll */
#define ARMS          250000000u /* ns after arming a CQ in which a program waits for events */
#define IDLE_POLLS    100        /* polls in vain after which a thread yields its processor */
#define CROWDED_POLLS 4          /* the same, if threads that it may wait for need the processor */
#define MOST_POLLS    3200       /* the same, if yielding brought nothing */
#define CROWD         2000u      /* ns of a yield from which on others used the processor */
#define PROCESSORS    1024       /* processors that are distinguished */

static uint64_t local_whim(const struct local_hca *hca, uint64_t n)
{
    const struct inproc_whims *whims = hca->world->whims;

    return whims->below(whims->opaque, n);
}

static unsigned local_budget(const struct local_hca *hca)
{
    return hca->world && hca->world->whims ? 1u << local_whim(hca, 10) : BUDGET;
}

/*
 * -- threads that leave the work to another thread ----------------------------------------------
 *
 * (docs/adr/0016-one-thread-works-for-the-others.md)
 *
 * A turn touches some hundred cache lines of the HCA. If threads take turns, these lines travel
 * from one processor to the other each time, which takes longer than the work itself. So while the
 * thread that worked last keeps calling, the others leave the work to it: polling an empty CQ only
 * reads the CQE, and a doorbell only leaves a note, which the next turn takes. If that thread has
 * not called for THERE, any thread may take its place.
 *
 * A thread that leaves a note checks afterwards whether the program is still trusted to poll, and
 * rings by itself if it is not. The thread that ends this trust, at the latest the helper, takes
 * the notes afterwards. So no note is lost.
 */

#define THERE  20000u /* ns after a call in which work is left to the calling thread */
#define PAUSES 10     /* pauses of a thread that meanwhile finds its CQ empty */
#define LONG   256    /* pieces of a turn; after a longer turn THERE counts from its end */

#define LATE   200000u  /* ns in a turn after which its thread may have lost its processor */
#define SLICE  4000000u /* ns for which a thread that may have taken the processor then waits */

/* State of the calling thread: until when it knows that another thread works; how many more polls
 * in vain it makes before it yields, out of how many; and whether a turn of it did something since
 * it last yielded. */
static __thread struct spinner {
    const struct local_hca *hca;
    uint64_t until_ns;
    unsigned patience, of;
    bool did;
} another __attribute__((tls_model("initial-exec"))) = {.patience = IDLE_POLLS, .of = IDLE_POLLS};

/* For each processor: the thread of this process that yielded it last. */
static const struct spinner *gave_away[PROCESSORS];

static G_GNUC_NO_INLINE bool local_look_for_another(const struct local_hca *hca)
{
    uint64_t now = local_monotonic_ns();

    if (another.hca != hca || now >= another.until_ns) {
        another.until_ns = __atomic_load_n(&hca->worker.there_ns, __ATOMIC_RELAXED) + THERE;
        another.hca = hca;
    }
    return now < another.until_ns;
}

/* Pauses between two reads of a CQ that another thread will write to, so that the cache line stays
 * there for a while. */
static void local_pause(void)
{
#ifdef __x86_64__
    for (unsigned i = 0; i < PAUSES; i++) {
        __builtin_ia32_pause();
    }
#endif
}

/* Yields the processor, and chooses after how many polls in vain this thread yields again. If other
 * spinning threads of this process ran meanwhile, or if something came since the last yield, it
 * yields sooner. If a thread ran that only computes, this thread lost a slice of the scheduler and
 * got nothing: then it polls twice as long before it yields again. */
static void local_yield(void)
{
    const struct spinner **last = &gave_away[(unsigned)sched_getcpu() % PROCESSORS];
    uint64_t before = local_monotonic_ns();

    __atomic_store_n(last, &another, __ATOMIC_RELAXED);
    sched_yield();
    if (local_monotonic_ns() - before <= CROWD) {
        another.of = IDLE_POLLS;
    } else if (another.did || __atomic_load_n(last, __ATOMIC_RELAXED) != &another) {
        another.of = CROWDED_POLLS;
    } else {
        another.of = MIN(2 * another.of, MOST_POLLS);
    }
    another.patience = another.of;
    another.did = false;
}

/* Whether the thread has polled in vain often enough to yield. */
static bool local_is_impatient(void)
{
    if (another.patience > 0) {
        another.patience--;
        return false;
    }
    return true;
}

/* If there are more threads than processors, spinning threads keep the processor from the threads
 * whose messages they wait for, for a whole slice. So a thread that leaves the work to another one
 * yields now and then. True: it yielded, and something may have come meanwhile. */
static bool local_gives_way(struct local_hca *hca)
{
    if (!local_is_impatient()) {
        return false;
    }
    __atomic_store_n(&hca->worker.waited_for, true, __ATOMIC_RELAXED);
    local_yield();
    return true;
}

static bool local_is_waited_for(struct local_hca *hca)
{
    return __atomic_load_n(&hca->worker.waited_for, __ATOMIC_RELAXED) &&
           __atomic_exchange_n(&hca->worker.waited_for, false, __ATOMIC_RELAXED);
}

/* Whether the working thread yields: because it had nothing to do for so many polls in a row, or
 * because another thread waits for its work. Its turns count as polls in vain. */
static bool local_is_idle(struct local_hca *hca, bool did)
{
    another.did |= did;
    return local_is_impatient() &&
           (hca->poller.idle_polls > IDLE_POLLS || local_is_waited_for(hca));
}

/* Whether the program polls in another thread than this one. If the lock is taken, that thread most
 * likely has it; otherwise the helper has it, which looks and leaves again, or a command. */
static bool local_is_polled_by_another(const struct local_hca *hca)
{
    return __atomic_load_n(&hca->worker.polled, __ATOMIC_RELAXED) &&
           !pthread_equal(__atomic_load_n(&hca->worker.thread, __ATOMIC_RELAXED), pthread_self());
}

/* Whether the program is trusted to poll, and another thread works and has called just now. */
static bool local_is_anothers(const struct local_hca *hca)
{
    return local_is_polled_by_another(hca) && local_look_for_another(hca);
}

/* A note about a send doorbell: the queue's number and the page. It does not matter to which of the
 * page's two buffers the doorbell was written, nor what the rest of its value is: the doorbell
 * record says what was posted. */
#define NOTE_QUEUE(value) ((value) >> 8 & 0xffffff)
#define NOTE_PAGE(offset) ((offset) / PCI_PAGE)
#define NOTE_PAGES        (1ull << 38)
#define NOTE(page, queue) (1ull << 63 | (page) << 24 | (queue))
#define NOTE_OFFSET(note)                                                                          \
    (((note) >> 24 & (NOTE_PAGES - 1)) * PCI_PAGE + PRM_OFFSET(uar, blue_flame))
#define NOTE_VALUE(note) (((note)&0xffffff) << 8)

static void local_take_note(void *opaque, uint64_t note)
{
    struct local_hca *hca = opaque;

    fw_mmio_write(hca->fw, NOTE_OFFSET(note), NOTE_VALUE(note), 8);
}

void local_take_notes(struct local_hca *hca)
{
    if (notes_any(&hca->notes)) {
        notes_take(&hca->notes, local_take_note, hca);
    }
}

/* Leaves a note. True: another thread will work on the doorbell. */
static bool local_leave_note(struct local_hca *hca, uint64_t offset, uint64_t value)
{
    if (!notes_leave(&hca->notes, NOTE(NOTE_PAGE(offset), NOTE_QUEUE(value)))) {
        return false;
    }
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    return __atomic_load_n(&hca->worker.polled, __ATOMIC_SEQ_CST);
}

/* Waits for the lock if the poller has been in a turn for long. It may have lost its processor to
 * this thread, which therefore sleeps until the turn ends. The wait is limited, because a thread
 * may be stopped. (ThreadSanitizer does not know pthread_mutex_clocklock().) */
static bool local_wait_for_turn(struct local_hca *hca)
{
    struct timespec end;

    if (!local_is_polled_by_another(hca) ||
        local_monotonic_ns() <= __atomic_load_n(&hca->worker.there_ns, __ATOMIC_RELAXED) + LATE) {
        return false;
    }
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_nsec += SLICE;
    end.tv_sec += end.tv_nsec / 1000000000;
    end.tv_nsec %= 1000000000;
    return !pthread_mutex_timedlock(&hca->lock, &end);
}

/* Takes the lock, unless another thread is working. */
static bool local_lock_if_free(struct local_hca *hca)
{
    return !pthread_mutex_trylock(&hca->lock) || local_wait_for_turn(hca);
}

/* Takes the lock for a doorbell. False: another thread is working and got a note instead, because
 * sleeping until a turn ends, and being woken, costs more than the turn. A program that was seen to
 * post and then do something else may not come back for the note; for it this waits. */
static bool local_lock_or_note(struct local_hca *hca, uint64_t offset, uint64_t value,
                               bool may_wait)
{
    if (local_lock_if_free(hca)) {
        return true;
    }
    if (may_wait && local_is_polled_by_another(hca) &&
        !__atomic_load_n(&hca->poller.posts_and_leaves, __ATOMIC_RELAXED) &&
        local_leave_note(hca, offset, value)) {
        return false;
    }
    pthread_mutex_lock(&hca->lock);
    return true;
}

bool local_turn(struct local_hca *hca, uint64_t now, bool look)
{
    uint64_t before = fw_pieces(hca->fw);
    bool rang = local_is_watching(hca) && hca->owner.scan(hca->owner.opaque, now);

    if (rang) {
        __atomic_store_n(&hca->scan.rang_ns, now, __ATOMIC_RELAXED);
    }
    local_take_notes(hca);
    if (look && hca->busy && hca->port && hca->port->client && hca->port->client->rx_ready) {
        hca->port->client->rx_ready(hca->port->opaque); /* no wake-up reports frames now, so look */
    }
    if (__atomic_exchange_n(&hca->woken, false, __ATOMIC_ACQ_REL) || hca->deadline_ns <= now) {
        hca->turn_ns = now;
        if (fw_run(hca->fw, local_budget(hca))) {
            __atomic_store_n(&hca->woken, true, __ATOMIC_RELEASE);
        }
        if (G_UNLIKELY(hca->ops.dma_expect)) {
            gpu_end_turn();
        }
        hca->turn_ns = 0;
    }
    if (fw_pieces(hca->fw) - before > LONG && pthread_equal(hca->worker.thread, pthread_self())) {
        __atomic_store_n(&hca->worker.there_ns, local_now_ns(hca), __ATOMIC_RELAXED);
    }
    return rang || fw_pieces(hca->fw) != before;
}

/* Reports interrupts until there are none. The owner arms the EQ again, which raises the next
 * interrupt at once if an event is there. */
static void local_tell_irqs(struct local_hca *hca)
{
    while (__atomic_load_n(&hca->irqs.raised, __ATOMIC_ACQUIRE) && hca->owner.irq) {
        uint32_t vectors = __atomic_exchange_n(&hca->irqs.raised, 0, __ATOMIC_ACQ_REL);
        int state = cancel_disable();

        if (vectors) {
            hca->owner.irq(hca->owner.opaque, vectors);
        }
        cancel_restore(state);
    }
}

void local_tell_irq(struct local_hca *hca)
{
    if (__atomic_load_n(&hca->irqs.raised, __ATOMIC_ACQUIRE) && local_enter(hca)) {
        local_tell_irqs(hca);
        local_exit(hca);
    }
}

/* Whether threads still drive the HCA. While the lock is held, that does not change. If not,
 * releases the lock. */
static bool local_is_still_ours(struct local_hca *hca)
{
    if (G_LIKELY(local_driven_by(hca) == LOCAL_BY_THREADS)) {
        return true;
    }
    pthread_mutex_unlock(&hca->lock);
    return false;
}

/* Notes that work is left to the calling thread. With the lock held. */
static void local_note_caller(struct local_hca *hca, uint64_t now)
{
    if (!pthread_equal(hca->worker.thread, pthread_self())) {
        __atomic_store_n(&hca->worker.thread, pthread_self(), __ATOMIC_RELAXED);
        pthread_getcpuclockid(hca->worker.thread, &hca->poller.clock);
        hca->poller.ran_ns = UINT64_MAX;
    }
    __atomic_store_n(&hca->worker.there_ns, now, __ATOMIC_RELAXED);
}

/* Notes that the calling thread polls. True: from now on it is trusted to go on. */
static bool local_note_poll(struct local_hca *hca, uint64_t now)
{
    local_note_caller(hca, now);
    if (now >= hca->poller.last_poll_ns + POLL_GRACE) {
        hca->poller.polling_since_ns = now;
    }
    hca->poller.last_poll_ns = now;
    if (hca->worker.polled || now < hca->poller.polling_since_ns + hca->poller.probation_ns) {
        return false;
    }
    local_set_polled(hca, true); /* before helper.asleep is read */
    hca->poller.trusted_since_ns = now;
    return true;
}

void local_leave_rest_to_helper(struct local_hca *hca)
{
    if (__atomic_load_n(&hca->helper.asleep, __ATOMIC_SEQ_CST) &&
        (__atomic_load_n(&hca->woken, __ATOMIC_ACQUIRE) ||
         __atomic_load_n(&hca->deadline_ns, __ATOMIC_ACQUIRE) <
             __atomic_load_n(&hca->helper.asleep_until_ns, __ATOMIC_ACQUIRE))) {
        local_helper_wake(hca);
    }
}

void local_set_busy(struct local_hca *hca, bool busy)
{
    if (hca->busy != busy && hca->port) {
        hca->busy = busy;
        wire_set_busy(hca->port, busy);
        if (!busy && hca->port->client && hca->port->client->rx_ready) {
            hca->port->client->rx_ready(hca->port->opaque); /* one more look arms the wire */
        }
    }
}

bool local_run(struct local_hca *hca)
{
    bool did, idles, rest = false;
    uint64_t now;

    if (local_driven_by(hca) != LOCAL_BY_THREADS) {
        return false;
    }
    if (local_is_anothers(hca)) {
        local_pause();
        return local_gives_way(hca);
    }
    if (!local_lock_if_free(hca)) {
        return local_gives_way(hca);
    }
    if (!local_is_still_ours(hca)) {
        return false;
    }
    hca->poller.doorbells = 0;
    now = local_monotonic_ns();
    if (local_note_poll(hca, now)) {
        local_set_busy(hca, true);
        rest = true; /* the helper must learn that it need not stay in its long sleep */
    }
    did = local_turn(hca, now, true);
    for (unsigned i = 1; i < SETTLE && !hca->worker.polled && hca->woken; i++) {
        local_turn(hca, now, true); /* cheaper than waking the helper for the rest */
    }
    hca->poller.idle_polls = did ? 0 : hca->poller.idle_polls + 1;
    idles = local_is_idle(hca, did);
    pthread_mutex_unlock(&hca->lock);
    if (rest && __atomic_load_n(&hca->helper.asleep, __ATOMIC_SEQ_CST)) {
        local_helper_wake(hca);
    } else {
        local_leave_rest_to_helper(hca);
    }
    local_tell_irq(hca);
    if (idles) {
        local_yield(); /* the peer may be waiting for this core */
    }
    return did || idles; /* meanwhile the helper may have worked */
}

void local_run_now_and_then(struct local_hca *hca)
{
    if (local_driven_by(hca) == LOCAL_BY_THREADS &&
        !__atomic_load_n(&hca->worker.polled, __ATOMIC_RELAXED)) {
        unsigned polls = __atomic_load_n(&hca->poller.full_polls, __ATOMIC_RELAXED) + 1;

        __atomic_store_n(&hca->poller.full_polls, polls, __ATOMIC_RELAXED);
        if (polls % FULL_POLLS == 0 &&
            local_monotonic_ns() >
                __atomic_load_n(&hca->poller.armed_ns, __ATOMIC_RELAXED) + ARMS) {
            local_run(hca);
        }
    }
}

void local_rest(struct local_hca *hca)
{
    int state;

    if (local_driven_by(hca) != LOCAL_BY_THREADS) {
        return;
    }
    state = cancel_disable();
    pthread_mutex_lock(&hca->lock);
    if (local_is_still_ours(hca)) {
        hca->poller.last_poll_ns = hca->poller.last_doorbell_ns = 0;
        local_set_polled(hca, false);
        local_set_busy(hca, false);
        pthread_mutex_unlock(&hca->lock);
        local_helper_wake(hca);
    }
    cancel_restore(state);
}

void local_mmio_locked(struct local_hca *hca, uint64_t offset, uint64_t value)
{
    fw_mmio_write(hca->fw, offset, value, 8);
}

bool local_is_watched(const struct local_hca *hca)
{
    return local_is_watching(hca);
}

void local_lock_scan(struct local_hca *hca)
{
    pthread_mutex_lock(&hca->lock);
}

void local_unlock_scan(struct local_hca *hca, unsigned things)
{
    bool more = things > hca->scan.things;

    if (more) {
        __atomic_store_n(&hca->scan.rang_ns, local_now_ns(hca), __ATOMIC_RELAXED);
    }
    __atomic_store_n(&hca->scan.things, things, __ATOMIC_SEQ_CST);
    pthread_mutex_unlock(&hca->lock);
    if (more && local_driven_by(hca) == LOCAL_BY_THREADS) {
        local_helper_wake(hca); /* it may sleep without a time limit */
    }
}

/* A doorbell of an HCA that threads do not drive: a world's, a removed one's, or the parent's. */
static bool local_note_doorbell(struct local_hca *hca, uint64_t offset, uint64_t value)
{
    if (!local_is_ours(hca)) {
        return false;
    }
    pthread_mutex_lock(&hca->lock);
    if (local_driven_by(hca) == LOCAL_BY_WORLD) {
        fw_mmio_write(hca->fw, offset, value, 8);
    } /* else ignored: the pages that a kernel maps after removal take any write */
    pthread_mutex_unlock(&hca->lock);
    return true;
}

/* Whether a doorbell may wait for more. A program that polls will poll again soon. So the first
 * doorbell after a poll is worked on at once, and the work of the next ones waits for that poll, or
 * for the GATHER-th doorbell. Several WQEs in one turn cost less than each in its own turn, and
 * their frames share a fence (WIRE_MORE). A doorbell does not wait in a program that was seen to
 * post and then do something else, or that waits for events. */
static bool local_gathers(struct local_hca *hca)
{
    return hca->worker.polled && hca->poller.doorbells++ % GATHER && !hca->poller.posts_and_leaves;
}

void local_note_departure(struct local_hca *hca, uint64_t now)
{
    __atomic_store_n(&hca->poller.posts_and_leaves, true, __ATOMIC_RELAXED);
    hca->poller.left_ns = now;
}

/* Another thread in a call, most likely the helper, leaves it soon; but exit() may have been called
 * from within one, so the wait is limited. */
void local_finish(struct local_hca *hca)
{
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec++;
    if (local_driven_by(hca) != LOCAL_BY_THREADS || pthread_mutex_timedlock(&hca->lock, &until)) {
        return;
    }
    local_take_notes(hca);
    for (unsigned i = 0; i < FINISH && (hca->woken || (i == 0 && local_is_watching(hca))); i++) {
        local_turn(hca, local_monotonic_ns(), false);
    }
    local_settle_faults(hca);
    pthread_mutex_unlock(&hca->lock);
}

/* Runs a turn for a doorbell. With the lock held. */
static void local_answer_doorbell(struct local_hca *hca)
{
    hca->poller.last_doorbell_ns = local_monotonic_ns();
    if (hca->worker.polled) {
        /* This counts as a poll, but after the first doorbell since a poll the wire need not be
         * read. */
        hca->poller.last_poll_ns = hca->poller.last_doorbell_ns;
        local_note_caller(hca, hca->poller.last_doorbell_ns);
        local_turn(hca, hca->poller.last_doorbell_ns,
                   hca->poller.doorbells > GATHER && hca->poller.doorbells % GATHER == 1);
        return;
    }
    for (unsigned i = 0;
         i < SETTLE && local_turn(hca, hca->poller.last_doorbell_ns, true) && hca->woken; i++) {
    }
}

static bool local_ring(struct local_hca *hca, uint64_t offset, uint64_t value, bool may_wait)
{
    if (local_driven_by(hca) != LOCAL_BY_THREADS) {
        return local_note_doorbell(hca, offset, value);
    }
    if (may_wait && local_is_anothers(hca) && local_leave_note(hca, offset, value)) {
        return true;
    }
    if (!local_lock_or_note(hca, offset, value, may_wait) || !local_is_still_ours(hca)) {
        return true;
    }
    fw_mmio_write(hca->fw, offset, value, 8);
    if (!may_wait || !local_gathers(hca)) {
        local_answer_doorbell(hca);
    }
    if (!may_wait) {
        local_note_departure(hca, hca->poller.last_doorbell_ns);
        __atomic_store_n(&hca->poller.armed_ns, hca->poller.last_doorbell_ns, __ATOMIC_RELAXED);
    }
    pthread_mutex_unlock(&hca->lock);
    local_leave_rest_to_helper(hca);
    local_tell_irq(hca);
    return true;
}

bool local_doorbell(struct local_hca *hca, uint64_t offset, uint64_t value)
{
    return local_ring(hca, offset, value, false);
}

bool local_doorbell_soon(struct local_hca *hca, uint64_t offset, uint64_t value)
{
    return local_ring(hca, offset, value, true);
}

/* -- on a world's clock --------------------------------------------------------------------------
 */

static struct local_hca *local_of_member(const struct inproc_member *member)
{
    return (struct local_hca *)((char *)member - offsetof(struct local_hca, member));
}

#define SELDOM 8 /* one turn of so many is late */

/* Reports interrupts that were raised, at once or when the world says so. */
static bool local_member_tell_irq(struct local_hca *hca, uint64_t now_ns)
{
    if (!hca->irqs.raised || !hca->owner.irq) {
        return false;
    }
    if (hca->world->whims && !hca->irqs.due_ns) {
        hca->irqs.due_ns = now_ns + local_whim(hca, hca->world->whims->late_ns + 1);
    }
    if (hca->irqs.due_ns > now_ns) {
        return false;
    }
    hca->irqs.due_ns = 0;
    local_tell_irq(hca);
    return true;
}

static bool local_member_run(struct inproc_member *member, uint64_t now_ns)
{
    struct local_hca *hca = local_of_member(member);
    const struct inproc_whims *whims = hca->world->whims;
    bool due = hca->woken || hca->deadline_ns <= now_ns, scans, did;

    if (local_driven_by(hca) == LOCAL_BY_NOBODY) {
        return false;
    }
    scans = local_is_watching(hca);
    if (hca->away_until_ns > now_ns) {
        due = scans = false;
    } else if (due && whims && hca->away_until_ns != now_ns && local_whim(hca, SELDOM) == 0) {
        hca->away_until_ns = now_ns + 1 + local_whim(hca, whims->late_ns + 1);
        due = scans = false;
    }
    did = due;
    if (due || scans) {
        pthread_mutex_lock(&hca->lock);
        did |= local_turn(hca, now_ns, true);
        pthread_mutex_unlock(&hca->lock);
    }
    return local_member_tell_irq(hca, now_ns) || did;
}

static uint64_t local_member_deadline_ns(const struct inproc_member *member)
{
    const struct local_hca *hca = local_of_member(member);
    uint64_t turn = hca->woken ? 0 : hca->deadline_ns;

    if (local_driven_by(hca) == LOCAL_BY_NOBODY) {
        return UINT64_MAX;
    }
    turn = MAX(turn, hca->away_until_ns);
    return hca->irqs.raised && hca->owner.irq ? MIN(turn, hca->irqs.due_ns) : turn;
}

void local_join(struct local_hca *hca, struct inproc_world *world)
{
    hca->driven = LOCAL_BY_WORLD;
    hca->world = world;
    hca->member = (struct inproc_member){local_member_run, local_member_deadline_ns};
    inproc_join(world, &hca->member);
}

void local_leave(struct local_hca *hca)
{
    if (hca->world) {
        inproc_leave(hca->world, &hca->member);
    }
}

/* -- starting, stopping -------------------------------------------------------------------------
 */

bool local_start(struct local_hca *hca, void (*irq)(void *opaque, uint32_t vectors),
                 bool (*scan)(void *opaque, uint64_t now_ns), void *opaque)
{
    hca->owner.irq = irq;
    hca->owner.scan = scan;
    hca->owner.opaque = opaque;
    return local_driven_by(hca) == LOCAL_BY_WORLD || local_helper_start(hca);
}

/* The HCA of a world stays driven by the owner of the world. */
void local_shut(struct local_hca *hca)
{
    enum local_driven by_threads = LOCAL_BY_THREADS;

    __atomic_compare_exchange_n(&hca->driven, &by_threads, LOCAL_BY_DRIVER, false, __ATOMIC_SEQ_CST,
                                __ATOMIC_SEQ_CST);
    pthread_mutex_lock(&hca->lock);
    pthread_mutex_unlock(&hca->lock);
    while (__atomic_load_n(&hca->outside, __ATOMIC_SEQ_CST)) {
        sched_yield();
    }
}

void local_stop(struct local_hca *hca)
{
    local_helper_stop(hca);
    hca->owner.irq = NULL;
}
