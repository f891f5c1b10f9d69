/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The port of one member of a shared-memory segment (layout and membership: segment.h).
 *
 * tx.c: if the destination of a unicast frame has been learned, the frame is built in a slot of the
 * receiver's region and published by one store to the ring from this member to that receiver. Any
 * other frame is built in `stage` and copied at commit; a frame for all members goes to this
 * member's log. If a frame in `stage` turns out to be for one receiver without credit, it stays
 * there (`stashed`) and blocks further sending.
 *
 * rx.c: wire_poll() visits the rings of the recent senders, a few frames each in turn, and the logs
 * that have something new. Consuming a frame of a ring has three steps: callback, free the slot,
 * advance the tail. If a receiver dies between them, its successor sees a free or newer slot under
 * the old entry and skips the entry.
 *
 * Waiting, and what wakes the waiter:
 * - A receiver without frames makes `sleep` odd, fences, and looks again; a sender publishes,
 *   fences, and reads `sleep`. One of the two sees the other. The sender writes to the FIFO first
 *   and then makes `sleep` even with a compare-and-swap; the receiver that takes the byte out gives
 *   `sleep` another value. So a sender that dies between the two steps, or resumes late, does not
 *   cancel another wake-up. The sender's fence waits for each cache line that it wrote, so frames
 *   with WIRE_MORE share one fence.
 * - A receiver that has found a ring empty for long takes its sender out of `senders`, fences, and
 *   looks once more; a sender publishes, fences (the same fence), and puts itself back if it is not
 *   in the set.
 * - A sender without credit adds itself to the receiver's `waiters`, fences, and tries again. The
 *   receiver frees slots, fences, looks at `waiters`, adds itself to the `credits` of each waiter
 *   and wakes the waiter if it sleeps. (The receiver fences at the next poll or flush, because a
 *   fence waits for these stores; if it has sent frames itself, their fence serves.) If the
 *   receiver is dead, or dies during this, the sender's own timer (SHM_RECHECK_MS, in wire_fd() and
 *   checked by wire_poll()) makes it check: a dead receiver is detached, and its addresses are then
 *   unknown.
 * - A transport whose answer does not come calls shm_tx_is_paused(). A receiver that lives but has
 *   not settled what was sent to it is stopped or has no processor: the sender waits for it without
 *   a limit. The kernel tells whether it lives, so no sender waits for a killed receiver.
 * - A port that watches for the ends of others (ends.c) is woken by a watch of the segment's file.
 * - Slots that dead senders had reserved: if a sender waits for a receiver's credit, the receiver
 *   frees these slots, unless published frames of that dead sender still wait.
 */
#include "wire/shm/shm.h"
#include "wire/cancel.h"
#include "wire/open.h"
#include "wire/shm/file.h"
#include "wire/shm/port.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

/* How many rounds one wire_poll() takes frames that have come meanwhile; then the owner's main loop
 * runs first. */
#define MAX_ROUNDS 16

/* Senders that are given credit at a time: each may be asleep, and waking one takes three system
 * calls. Senders with credit send, and the frames that they send bring the next ones their turn. */
#define WAKES_PER_ROUND 32

static uint64_t shm_now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* ---- waking ---- */

/* A descriptor of a member's FIFO, or -1. A few descriptors are kept open; members whose ids fall
 * on the same entry replace each other. */
static int shm_wake_fd(struct shm_port *sp, unsigned id, uint32_t gen)
{
    struct shm_wake *w = &sp->wake[id % SHM_WAKE_FDS];

    if (w->fd < 0 || w->id != id || w->gen != gen) {
        if (w->fd >= 0) {
            close(w->fd);
        }
        *w = (struct shm_wake){shm_segment_open_wake(&sp->seg, id), id, gen};
    }
    return w->fd;
}

/* sleep: the value of the member's word when it was seen to sleep. */
static __attribute__((noinline)) void shm_wake_sleeper(struct shm_port *sp, unsigned id,
                                                       uint32_t sleep)
{
    struct shm_member *m = shm_member_at(sp, id);
    int state = cancel_disable(), fd = shm_wake_fd(sp, id, atomic_load(&m->gen));

    if (fd >= 0) {
        sp->stats.wakeups++;
        /* A full FIFO is as good as a written one: its reader has not looked yet. */
        if (write(fd, "", 1) == 1 || errno == EAGAIN) {
            atomic_compare_exchange_strong(&m->sleep, &sleep, sleep + 1);
        }
    }
    cancel_restore(state);
}

void shm_wake_fenced(struct shm_port *sp, unsigned id)
{
    uint32_t sleep = atomic_load_explicit(&shm_member_at(sp, id)->sleep, memory_order_relaxed);

    if (sleep & 1) {
        shm_wake_sleeper(sp, id, sleep);
    }
}

void shm_wake(struct shm_port *sp, unsigned id)
{
    atomic_thread_fence(memory_order_seq_cst);
    shm_wake_fenced(sp, id);
}

/* Gives credit to up to `most` waiters in one word, among those in mask. Returns how many. */
static unsigned shm_wake_word(struct shm_port *sp, unsigned id, unsigned word, uint64_t mask,
                              unsigned most)
{
    struct shm_set *waiters = &shm_member_at(sp, id)->waiters;
    uint64_t bits = atomic_load_explicit(&waiters->word[word], memory_order_relaxed) & mask;
    unsigned n;

    for (n = 0; bits && n < most; bits &= bits - 1, n++) {
        unsigned waiter = word * 64 + (unsigned)__builtin_ctzll(bits);

        shm_set_remove(waiters, waiter);
        if (waiter != sp->seg.id) {
            shm_set_add(&shm_member_at(sp, waiter)->credits, id);
            shm_wake(sp, waiter);
        }
        sp->next_waiter = (waiter + 1) % SHM_MEMBERS;
    }
    return n;
}

/* Takes the waiters in turn, beginning after the one that was given credit last. */
static __attribute__((noinline)) void shm_wake_some_waiters(struct shm_port *sp, unsigned id,
                                                            unsigned most)
{
    struct shm_set *waiters = &shm_member_at(sp, id)->waiters;
    unsigned first = sp->next_waiter;
    uint64_t from_first = ~0ull << first % 64, some = shm_set_take_some(waiters);

    for (unsigned w = 0; w <= SHM_WORDS; w++) {
        unsigned word = (first / 64 + w) % SHM_WORDS;

        if (some >> word & 1) {
            /* The first word is visited twice: its upper part first, its lower part last. */
            uint64_t mask = w == 0 ? from_first : w == SHM_WORDS ? ~from_first : ~0ull;

            most -= shm_wake_word(sp, id, word, mask, most);
        }
    }
    for (unsigned w = 0; w < SHM_WORDS; w++) {
        if (some >> w & 1 && atomic_load(&waiters->word[w])) {
            atomic_fetch_or(&waiters->some, 1ull << w); /* for the next time */
        }
    }
}

void shm_wake_waiters(struct shm_port *sp, unsigned id, unsigned most)
{
    atomic_thread_fence(memory_order_seq_cst);
    if (shm_set_any(&shm_member_at(sp, id)->waiters)) {
        shm_wake_some_waiters(sp, id, most);
    }
}

void shm_give_credits(struct shm_port *sp, bool fenced)
{
    if (sp->credits_due) {
        sp->credits_due = false;
        if (!fenced) {
            atomic_thread_fence(memory_order_seq_cst);
        }
        if (shm_set_any(&sp->self->waiters)) {
            shm_wake_some_waiters(sp, sp->seg.id, WAKES_PER_ROUND);
        }
    }
}

void shm_arm_timer(struct shm_port *sp)
{
    struct itimerspec in = {.it_value.tv_nsec = SHM_RECHECK_MS * 1000000L};

    if (!sp->timer_armed) {
        sp->timer_armed = timerfd_settime(sp->timer_fd, 0, &in, NULL) == 0;
        sp->recheck_at_ms[SHM_RECHECK_BLOCKED] = shm_now_ms() + SHM_RECHECK_MS;
    }
}

bool shm_recheck_due(struct shm_port *sp, enum shm_recheck what)
{
    uint64_t now = shm_now_ms();

    if (now < sp->recheck_at_ms[what]) {
        return false;
    }
    sp->recheck_at_ms[what] = now + SHM_RECHECK_MS;
    return true;
}

static void shm_disarm(struct shm_port *sp)
{
    uint32_t sleep = atomic_load(&sp->self->sleep);

    if (sleep & 1) {
        atomic_compare_exchange_strong(&sp->self->sleep, &sleep, sleep + 1);
    }
}

/* The sender that wrote the byte which was just taken may make `sleep` even only now, or later. By
 * then `sleep` must have another value: a wake-up that has been taken must not count for the next
 * sleep. */
static void shm_renew_sleep(struct shm_port *sp)
{
    uint32_t sleep = atomic_load(&sp->self->sleep);

    if (sleep & 1) {
        atomic_compare_exchange_strong(&sp->self->sleep, &sleep, sleep + 2);
    }
}

/* Makes wire_fd() readable. */
static void shm_self_wake(struct shm_port *sp)
{
    int state = cancel_disable();
    /* a full FIFO is as good */
    ssize_t n = write(sp->seg.wake_fd, "", 1);

    (void)n;
    cancel_restore(state);
}

static void shm_arm(struct shm_port *sp)
{
    uint32_t sleep = atomic_load_explicit(&sp->self->sleep, memory_order_relaxed);

    if (!(sleep & 1)) {
        atomic_store_explicit(&sp->self->sleep, sleep + 1, memory_order_relaxed);
    }
    atomic_thread_fence(memory_order_seq_cst);
}

static bool shm_anything_waits(struct shm_port *sp)
{
    return shm_set_any(&sp->self->credits) || shm_rx_waits(sp);
}

static unsigned shm_poll(struct wire_port *port, unsigned max)
{
    struct shm_port *sp = shm_port_of(port);
    unsigned n = 0, taken;

    shm_rx_settle(sp);
    sp->credit_short |= shm_set_any(&sp->self->waiters); /* before they are given credit */
    shm_give_credits(sp, false);
    if (shm_anything_waits(sp)) {
        shm_disarm(sp); /* senders need not wake a port that is working */
    }
    for (int round = 0; round < MAX_ROUNDS; round++) {
        shm_tx_check_blocked(sp);
        taken = shm_rx_drain(sp, max - n);
        n += taken;
        sp->credits_due |= taken > 0;
        if (sp->busy) {
            break; /* the owner's turn ends with a flush, and the next poll is near */
        }
        if (n == max) {
            shm_give_credits(sp, false);
            return n;
        }
        shm_arm(sp);
        shm_give_credits(sp, true);
        if (!shm_anything_waits(sp)) {
            break;
        }
        shm_disarm(sp);
        if (round == MAX_ROUNDS - 1) {
            shm_self_wake(sp); /* what is left is for the next call */
        }
    }
    if (sp->credit_short && shm_recheck_due(sp, SHM_RECHECK_OWNERS)) {
        sp->credit_short = false;
        if (shm_rx_reap(sp)) {
            sp->credits_due = true;
            shm_give_credits(sp, false);
        }
    }
    if (sp->ended && n < max) {
        shm_ends_tell(sp);
    }
    return n;
}

/* ---- the owner's main loop ---- */

static int shm_fd(struct wire_port *port)
{
    return shm_port_of(port)->epoll_fd;
}

static void shm_fd_event(struct wire_port *port)
{
    struct shm_port *sp = shm_port_of(port);
    uint64_t expired;
    char bytes[256];

    /* If a process goes on writing, the rest is left for the next call. */
    for (int i = 0; i < 16 && read(sp->seg.wake_fd, bytes, sizeof(bytes)) == sizeof(bytes); i++) {
    }
    shm_renew_sleep(sp);
    shm_ends_look(sp);
    if (read(sp->timer_fd, &expired, sizeof(expired)) == (ssize_t)sizeof(expired)) {
        sp->timer_armed = false;
        sp->recheck_at_ms[SHM_RECHECK_BLOCKED] = 0;
    }
    shm_tx_check_blocked(sp);
    if (port->client && port->client->rx_ready) {
        port->client->rx_ready(port->opaque);
    }
}

static void shm_set_busy(struct wire_port *port, bool busy)
{
    struct shm_port *sp = shm_port_of(port);

    sp->busy = busy;
    if (busy) {
        shm_disarm(sp);
    }
}

static void shm_owe(struct wire_port *port, bool owes)
{
    struct shm_port *sp = shm_port_of(port);

    sp->owes = owes;
    shm_rx_settle(sp);
}

static bool shm_link_up(struct wire_port *port)
{
    return true;
}

static void shm_get_stats(struct wire_port *port, struct wire_stats *stats)
{
    *stats = shm_port_of(port)->stats;
}

static void shm_free_port(struct shm_port *sp)
{
    for (unsigned i = 0; i < SHM_WAKE_FDS; i++) {
        if (sp->wake[i].fd >= 0) {
            close(sp->wake[i].fd);
        }
    }
    for (unsigned id = 0; id < SHM_MEMBERS; id++) {
        g_free(sp->peer[id]);
    }
    g_free(sp);
}

static void shm_close(struct wire_port *port)
{
    struct shm_port *sp = shm_port_of(port);

    shm_tx_cancel(sp);
    shm_tx_flush(port);
    /* Senders that wait for this member find at their next try that it has left. */
    shm_segment_detach(&sp->seg);
    shm_wake_waiters(sp, sp->seg.id, SHM_MEMBERS);
    shm_segment_leave(&sp->seg);
    if (sp->ends_fd >= 0) {
        close(sp->ends_fd);
    }
    close(sp->timer_fd);
    close(sp->epoll_fd);
    shm_free_port(sp);
}

static const struct wire_port_ops shm_ops = {
    .tx_reserve = shm_tx_reserve,
    .tx_commit = shm_tx_commit,
    .poll = shm_poll,
    .link_up = shm_link_up,
    .close = shm_close,
    .tx_reserve_to = shm_tx_reserve_to,
    .tx_credit_class = shm_tx_credit_class,
    .tx_credits = shm_tx_credits,
    .tx_flush = shm_tx_flush,
    .owe = shm_owe,
    .is_paused = shm_tx_is_paused,
    .knows = shm_tx_knows,
    .watch_hosts = shm_ends_watch,
    .host_at = shm_ends_host_at,
    .has_ended = shm_ends_has_ended,
    .fd = shm_fd,
    .fd_event = shm_fd_event,
    .set_busy = shm_set_busy,
    .get_stats = shm_get_stats,
};

static bool shm_watch(int epoll_fd, int fd)
{
    struct epoll_event event = {.events = EPOLLIN};

    return epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0;
}

struct wire_port *wire_shm_open(const char *path, bool own_only, GError **err)
{
    struct shm_port *sp = g_new0(struct shm_port, 1);

    for (unsigned i = 0; i < SHM_WAKE_FDS; i++) {
        sp->wake[i].fd = -1;
    }
    sp->ends_fd = -1;
    if (!shm_segment_join(&sp->seg, path, own_only, err)) {
        shm_free_port(sp);
        return NULL;
    }
    sp->port.ops = &shm_ops;
    sp->port.offers = WIRE_NO_ICRC;
    sp->port.far = g_get_num_processors() > 1;
    sp->self = shm_member_at(sp, sp->seg.id);
    sp->tag = shm_tag(sp->seg.id, sp->seg.gen);
    sp->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    sp->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (sp->epoll_fd < 0 || sp->timer_fd < 0 || !shm_watch(sp->epoll_fd, sp->seg.wake_fd) ||
        !shm_watch(sp->epoll_fd, sp->timer_fd)) {
        g_set_error(err, WIRE_ERROR, WIRE_ERROR_IO, "%s: %s", path, g_strerror(errno));
        shm_segment_leave(&sp->seg);
        if (sp->epoll_fd >= 0) {
            close(sp->epoll_fd);
        }
        if (sp->timer_fd >= 0) {
            close(sp->timer_fd);
        }
        shm_free_port(sp);
        return NULL;
    }
    shm_rx_begin(sp);
    shm_self_wake(sp); /* an earlier member with this id may have left frames */
    return &sp->port;
}

void wire_shm_sweep(const char *dir, const char *prefix, GPtrArray *removed)
{
    shm_file_sweep(dir, prefix, removed);
}
