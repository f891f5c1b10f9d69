/* SPDX-License-Identifier: BSD-2-Clause */
/* Who lets a local HCA work: the threads that ring and poll, or a world. */
#define _GNU_SOURCE
#include <sched.h>
#include "guest-lib/host/local_internal.h"
#include "wire/cancel.h"

#define BUDGET     512 /* pieces (fw/fw.h) of one turn */
#define GATHER     8   /* doorbells of a program that polls, too, between which it does nothing */
#define SETTLE     4   /* turns of one that is not trusted to come again, if there is work */
#define FINISH     64  /* turns for what is left when the process ends */
#define IDLE_POLLS 100 /* in a row, after which other processes may have the processor */

static uint64_t local_whim(const struct local_hca *hca, uint64_t n)
{
    const struct inproc_whims *whims = hca->world->whims;

    return whims->below(whims->opaque, n);
}

static unsigned local_budget(const struct local_hca *hca)
{
    return hca->world && hca->world->whims ? 1u << local_whim(hca, 10) : BUDGET;
}

bool local_turn(struct local_hca *hca, uint64_t now, bool look)
{
    uint64_t before = fw_pieces(hca->fw);
    bool rang = hca->scan && g_atomic_int_get(hca->watching) && hca->scan(hca->opaque);

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
    return rang || fw_pieces(hca->fw) != before;
}

void local_tell_irq(struct local_hca *hca)
{
    /* who is told arms the EQ again, which raises the next one at once if an event is there */
    while (__atomic_load_n(&hca->irqs_raised, __ATOMIC_ACQUIRE) && hca->irq) {
        uint32_t vectors = __atomic_exchange_n(&hca->irqs_raised, 0, __ATOMIC_ACQ_REL);
        int state = cancel_disable();

        if (vectors) {
            hca->irq(hca->opaque, vectors);
        }
        cancel_restore(state);
    }
}

/* Notes that the calling thread polls. True: it is trusted to go on, and was not before. */
static bool local_note_poll(struct local_hca *hca, uint64_t now)
{
    if (!pthread_equal(hca->poller, pthread_self())) {
        hca->poller = pthread_self();
        pthread_getcpuclockid(hca->poller, &hca->poller_clock);
        hca->poller_ran_ns = UINT64_MAX;
    }
    if (now >= hca->last_poll_ns + POLL_GRACE) {
        hca->polling_since_ns = now;
    }
    hca->last_poll_ns = now;
    if (hca->polled || now < hca->polling_since_ns + hca->probation_ns) {
        return false;
    }
    /* before it is looked whether the helper sleeps */
    __atomic_store_n(&hca->polled, true, __ATOMIC_SEQ_CST);
    hca->trusted_since_ns = now;
    return true;
}

void local_leave_rest_to_helper(struct local_hca *hca)
{
    if (__atomic_load_n(&hca->asleep, __ATOMIC_SEQ_CST) &&
        (__atomic_load_n(&hca->woken, __ATOMIC_ACQUIRE) ||
         __atomic_load_n(&hca->deadline_ns, __ATOMIC_ACQUIRE) <
             __atomic_load_n(&hca->asleep_until_ns, __ATOMIC_ACQUIRE))) {
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

    if (hca->driven != LOCAL_BY_THREADS || pthread_mutex_trylock(&hca->lock)) {
        return false;
    }
    hca->doorbells = 0;
    now = local_monotonic_ns();
    if (local_note_poll(hca, now)) {
        local_set_busy(hca, true);
        rest = true; /* the helper must learn that it need not stay in its long sleep */
    }
    did = local_turn(hca, now, true);
    for (unsigned i = 1; i < SETTLE && !hca->polled && hca->woken; i++) {
        local_turn(hca, now, true); /* to wake the helper for what is left costs more */
    }
    hca->idle_polls = did ? 0 : hca->idle_polls + 1;
    idles = hca->idle_polls > IDLE_POLLS;
    pthread_mutex_unlock(&hca->lock);
    if (rest && __atomic_load_n(&hca->asleep, __ATOMIC_SEQ_CST)) {
        local_helper_wake(hca);
    } else {
        local_leave_rest_to_helper(hca);
    }
    local_tell_irq(hca);
    if (idles) {
        sched_yield(); /* the peer may be waiting for this core */
    }
    return did;
}

void local_rest(struct local_hca *hca)
{
    int state;

    if (hca->driven != LOCAL_BY_THREADS) {
        return;
    }
    state = cancel_disable();
    pthread_mutex_lock(&hca->lock);
    hca->last_poll_ns = hca->last_doorbell_ns = 0;
    __atomic_store_n(&hca->polled, false, __ATOMIC_SEQ_CST);
    local_set_busy(hca, false);
    pthread_mutex_unlock(&hca->lock);
    local_helper_wake(hca);
    cancel_restore(state);
}

void local_mmio_locked(struct local_hca *hca, uint64_t offset, uint64_t value)
{
    fw_mmio_write(hca->fw, offset, value, 8);
}

/* One that somebody else works on, or nobody. */
static bool local_note_doorbell(struct local_hca *hca, uint64_t offset, uint64_t value)
{
    if (!local_is_ours(hca)) {
        return false;
    }
    pthread_mutex_lock(&hca->lock);
    fw_mmio_write(hca->fw, offset, value, 8);
    pthread_mutex_unlock(&hca->lock);
    return true;
}

/* Who polls is about to poll again. So the first doorbell after a poll is worked on at once, and
 * what the next ones ring for waits for that poll, or for the GATHER-th of them. Several WQEs in a
 * turn cost less than each in its own, and their frames share a fence (WIRE_MORE). Not for one that
 * was seen to post and then turn to something else, or that waits for events. */
static bool local_gathers(struct local_hca *hca)
{
    return hca->polled && hca->doorbells++ % GATHER && !hca->posts_and_leaves;
}

void local_note_departure(struct local_hca *hca, uint64_t now)
{
    hca->posts_and_leaves = true;
    hca->left_ns = now;
}

/* Who is in a call meanwhile, the helper most likely, is soon out of it; but exit() may have been
 * called from within one. */
void local_finish(struct local_hca *hca)
{
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec++;
    if (hca->driven != LOCAL_BY_THREADS || pthread_mutex_timedlock(&hca->lock, &until)) {
        return;
    }
    for (unsigned i = 0; i < FINISH && hca->woken; i++) {
        local_turn(hca, local_monotonic_ns(), false);
    }
    pthread_mutex_unlock(&hca->lock);
}

/* A turn for a doorbell. With the lock held. */
static void local_answer_doorbell(struct local_hca *hca)
{
    hca->last_doorbell_ns = local_monotonic_ns();
    if (hca->polled) {
        /* As good as a poll, but the first one after a poll need not look at the wire, too. */
        hca->last_poll_ns = hca->last_doorbell_ns;
        local_turn(hca, hca->last_doorbell_ns,
                   hca->doorbells > GATHER && hca->doorbells % GATHER == 1);
        return;
    }
    for (unsigned i = 0; i < SETTLE && local_turn(hca, hca->last_doorbell_ns, true) && hca->woken;
         i++) {
    }
}

static bool local_ring(struct local_hca *hca, uint64_t offset, uint64_t value, bool may_wait)
{
    if (hca->driven != LOCAL_BY_THREADS) {
        return local_note_doorbell(hca, offset, value);
    }
    pthread_mutex_lock(&hca->lock);
    fw_mmio_write(hca->fw, offset, value, 8);
    if (!may_wait || !local_gathers(hca)) {
        local_answer_doorbell(hca);
    }
    if (!may_wait) {
        local_note_departure(hca, hca->last_doorbell_ns);
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
    if (!hca->irqs_raised || !hca->irq) {
        return false;
    }
    if (hca->world->whims && !hca->irqs_due_ns) {
        hca->irqs_due_ns = now_ns + local_whim(hca, hca->world->whims->late_ns + 1);
    }
    if (hca->irqs_due_ns > now_ns) {
        return false;
    }
    hca->irqs_due_ns = 0;
    local_tell_irq(hca);
    return true;
}

static bool local_member_run(struct inproc_member *member, uint64_t now_ns)
{
    struct local_hca *hca = local_of_member(member);
    const struct inproc_whims *whims = hca->world->whims;
    bool due = hca->woken || hca->deadline_ns <= now_ns, scans, did;

    scans = hca->scan && g_atomic_int_get(hca->watching);
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

    turn = MAX(turn, hca->away_until_ns);
    return hca->irqs_raised && hca->irq ? MIN(turn, hca->irqs_due_ns) : turn;
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
                 bool (*scan)(void *opaque), const gint *watching, void *opaque)
{
    hca->irq = irq;
    hca->scan = scan;
    hca->watching = watching;
    hca->opaque = opaque;
    return hca->driven == LOCAL_BY_WORLD || local_helper_start(hca);
}

void local_stop(struct local_hca *hca)
{
    local_helper_stop(hca);
    hca->irq = NULL;
}
