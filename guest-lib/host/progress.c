/* SPDX-License-Identifier: BSD-2-Clause */
/* Who lets a local HCA work: the threads that ring and poll, or a world. */
#define _GNU_SOURCE
#include <sched.h>
#include "guest-lib/host/local_internal.h"
#include "prm/prm.h"
#include "wire/cancel.h"

#define BUDGET        512 /* pieces (fw/fw.h) of one turn */
#define GATHER        8  /* doorbells of a program that polls, too, between which it does nothing */
#define SETTLE        4  /* turns of one that is not trusted to come again, if there is work */
#define FINISH        64 /* turns for what is left when the process ends */
#define FULL_POLLS    8  /* polls that find completions, of which one is noted */
#define ARMS          250000000u /* ns for which a program that armed a CQ waits for events */
#define IDLE_POLLS    100        /* in vain, after which others may have the processor */
#define CROWDED_POLLS 4          /* the same where others want it that this thread may wait for */
#define MOST_POLLS    3200       /* the same where those had it that bring it nothing */
#define CROWD         2000u      /* ns until it came back: others want it */
#define PROCESSORS    1024       /* that are told apart */

static uint64_t local_whim(const struct local_hca *hca, uint64_t n)
{
    const struct inproc_whims *whims = hca->world->whims;

    return whims->below(whims->opaque, n);
}

static unsigned local_budget(const struct local_hca *hca)
{
    return hca->world && hca->world->whims ? 1u << local_whim(hca, 10) : BUDGET;
}

/* -- who leaves the work to another thread -------------------------------------------------------
 *
 * (docs/adr/0016-one-thread-works-for-the-others.md)
 *
 * What a turn needs of the HCA is some hundred cache lines. Where threads take turns, these travel
 * from one processor to the other each time, which takes longer than the work itself. So while the
 * thread that worked last is there, the others leave it to that one: to poll an empty CQ is no more
 * than a look at the CQE, and a doorbell is a note, which the next turn takes. A thread that has
 * not been there for THERE makes room for whoever comes.
 *
 * Who leaves a note looks afterwards whether the program is still trusted to poll, and rings itself
 * if it is not. Who ends that trust, the helper at the latest, takes the notes afterwards. So none
 * is lost.
 */

#define THERE  20000u /* ns after a call for which the work is left to the thread that made it */
#define PAUSES 10     /* of one that finds its CQ empty meanwhile */
#define LONG   256    /* pieces of a turn that THERE is counted from the end of */

#define LATE   200000u  /* ns in a turn, then its thread may have lost its processor */
#define SLICE  4000000u /* ns for which another thread, which may have taken it, waits then */

/* Until when the calling thread knows that another one is there; how many more polls in vain there
 * are before it lets others run, of how many; and whether a turn of it did something since it last
 * did so. */
static __thread struct spinner {
    const struct local_hca *hca;
    uint64_t until_ns;
    unsigned patience, of;
    bool did;
} another __attribute__((tls_model("initial-exec"))) = {.patience = IDLE_POLLS, .of = IDLE_POLLS};

/* The thread of this process that was the last one to give a processor away. */
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

/* Between two looks at a CQ that another thread is going to write to: its line stays there for a
 * while. */
static void local_pause(void)
{
#ifdef __x86_64__
    for (unsigned i = 0; i < PAUSES; i++) {
        __builtin_ia32_pause();
    }
#endif
}

/* Lets others have the processor. If threads of this process that spin, too, had it, or if
 * something came since the last time, this thread is sooner done with its next polls in vain. If
 * somebody had it that just computes, this thread was gone for a slice of the scheduler's and got
 * nothing: then it polls twice as long before it gives the processor away again. */
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

/* Whether this poll in vain is one too many. */
static bool local_is_impatient(void)
{
    if (another.patience > 0) {
        another.patience--;
        return false;
    }
    return true;
}

/* Of more threads than processors, those that spin keep the processor from those whose messages
 * they wait for, for as long as a slice lasts. So one that leaves the work to another thread lets
 * others run now and then. True: it did, and something may have come meanwhile. */
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

/* Whether the thread that works lets others run: because it had nothing to do for so many polls in
 * a row, or because another thread waits for what it does. Its turns count as polls in vain. */
static bool local_is_idle(struct local_hca *hca, bool did)
{
    another.did |= did;
    return local_is_impatient() &&
           (hca->poller.idle_polls > IDLE_POLLS || local_is_waited_for(hca));
}

/* Whether the program polls, in another thread than this one: the lock, if it is taken, is most
 * likely that one's. Else it is with the helper, who looks and goes away again, or with a command.
 */
static bool local_is_polled_by_another(const struct local_hca *hca)
{
    return __atomic_load_n(&hca->worker.polled, __ATOMIC_RELAXED) &&
           !pthread_equal(__atomic_load_n(&hca->worker.thread, __ATOMIC_RELAXED), pthread_self());
}

/* Whether the program is trusted to poll, and another thread works, and was there just now. */
static bool local_is_anothers(const struct local_hca *hca)
{
    return local_is_polled_by_another(hca) && local_look_for_another(hca);
}

/* A send doorbell: the queue's number, and the page. Which of the page's two buffers it was written
 * to is no matter, nor is the rest of the value: the doorbell record says what was posted. */
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

/* True: the doorbell is left to another thread. */
static bool local_leave_note(struct local_hca *hca, uint64_t offset, uint64_t value)
{
    if (!notes_leave(&hca->notes, NOTE(NOTE_PAGE(offset), NOTE_QUEUE(value)))) {
        return false;
    }
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    return __atomic_load_n(&hca->worker.polled, __ATOMIC_SEQ_CST);
}

/* The poller was in a turn for long: what it lost its processor to may be this thread, which sleeps
 * until the turn ends, but not for ever, for a thread may be stopped. (ThreadSanitizer does not
 * know pthread_mutex_clocklock().) */
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

/* Gets the lock, unless somebody is at work. */
static bool local_lock_if_free(struct local_hca *hca)
{
    return !pthread_mutex_trylock(&hca->lock) || local_wait_for_turn(hca);
}

/* Gets it for a doorbell. False: another thread, which is at work, was left a note instead, for to
 * sleep until a turn ends, and be woken, costs more than the turn. A program that was seen to post
 * and then turn to something else may not come back for the note. */
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
    bool rang = local_is_watching(hca) && hca->owner.scan(hca->owner.opaque);

    if (rang) {
        __atomic_store_n(&hca->scan.rang_ns, now, __ATOMIC_RELAXED);
    }
    local_take_notes(hca);
    if (look && hca->busy && hca->port && hca->port->client && hca->port->client->rx_ready) {
        hca->port->client->rx_ready(hca->port->opaque); /* no wake-up says so: look */
    }
    if (__atomic_exchange_n(&hca->woken, false, __ATOMIC_ACQ_REL) || hca->deadline_ns <= now) {
        hca->turn_ns = now;
        if (fw_run(hca->fw, local_budget(hca))) {
            __atomic_store_n(&hca->woken, true, __ATOMIC_RELEASE);
        }
        hca->turn_ns = 0;
    }
    if (fw_pieces(hca->fw) - before > LONG && pthread_equal(hca->worker.thread, pthread_self())) {
        __atomic_store_n(&hca->worker.there_ns, local_now_ns(hca), __ATOMIC_RELAXED);
    }
    return rang || fw_pieces(hca->fw) != before;
}

/* The owner that is told arms the EQ again, which raises the next interrupt at once if an event is
 * there. */
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

/* Whether the threads still drive it: with the lock held it stays so. */
static bool local_is_still_ours(struct local_hca *hca)
{
    if (G_LIKELY(local_driven_by(hca) == LOCAL_BY_THREADS)) {
        return true;
    }
    pthread_mutex_unlock(&hca->lock);
    return false;
}

/* Notes that the calling thread is the one that the work is left to. With the lock held. */
static void local_note_caller(struct local_hca *hca, uint64_t now)
{
    if (!pthread_equal(hca->worker.thread, pthread_self())) {
        __atomic_store_n(&hca->worker.thread, pthread_self(), __ATOMIC_RELAXED);
        pthread_getcpuclockid(hca->worker.thread, &hca->poller.clock);
        hca->poller.ran_ns = UINT64_MAX;
    }
    __atomic_store_n(&hca->worker.there_ns, now, __ATOMIC_RELAXED);
}

/* Notes that the calling thread polls. True: it is trusted to go on, and was not before. */
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
    local_set_polled(hca, true); /* before it is looked whether the helper sleeps */
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
        local_turn(hca, now, true); /* to wake the helper for what is left costs more */
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
        local_helper_wake(hca); /* it may be in a sleep without an end */
    }
}

/* One that somebody else works on, or nobody. */
static bool local_note_doorbell(struct local_hca *hca, uint64_t offset, uint64_t value)
{
    if (!local_is_ours(hca)) {
        return false;
    }
    pthread_mutex_lock(&hca->lock);
    if (local_driven_by(hca) == LOCAL_BY_WORLD) {
        fw_mmio_write(hca->fw, offset, value, 8);
    } /* else: what a kernel maps in a removed function's place takes any write */
    pthread_mutex_unlock(&hca->lock);
    return true;
}

/* Who polls is about to poll again. So the first doorbell after a poll is worked on at once, and
 * what the next ones ring for waits for that poll, or for the GATHER-th of them. Several WQEs in a
 * turn cost less than each in its own, and their frames share a fence (WIRE_MORE). Not for one that
 * was seen to post and then turn to something else, or that waits for events. */
static bool local_gathers(struct local_hca *hca)
{
    return hca->worker.polled && hca->poller.doorbells++ % GATHER && !hca->poller.posts_and_leaves;
}

void local_note_departure(struct local_hca *hca, uint64_t now)
{
    __atomic_store_n(&hca->poller.posts_and_leaves, true, __ATOMIC_RELAXED);
    hca->poller.left_ns = now;
}

/* Who is in a call meanwhile, the helper most likely, is soon out of it; but exit() may have been
 * called from within one. */
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
    pthread_mutex_unlock(&hca->lock);
}

/* A turn for a doorbell. With the lock held. */
static void local_answer_doorbell(struct local_hca *hca)
{
    hca->poller.last_doorbell_ns = local_monotonic_ns();
    if (hca->worker.polled) {
        /* As good as a poll, but the first one after a poll need not look at the wire, too. */
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

#define SELDOM 8 /* one turn in so many is late */

/* Interrupts that were raised arrive, at once or when the world says so. */
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
                 bool (*scan)(void *opaque), void *opaque)
{
    hca->owner.irq = irq;
    hca->owner.scan = scan;
    hca->owner.opaque = opaque;
    return local_driven_by(hca) == LOCAL_BY_WORLD || local_helper_start(hca);
}

/* The HCA of a world is driven by the owner of the world, and stays so. */
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
