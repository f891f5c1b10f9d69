/* SPDX-License-Identifier: BSD-2-Clause */
/* An HCA in this process: host callbacks below, the driver's PCI view above, a helper between. */
#define _GNU_SOURCE
#include "guest-lib/host/local.h"
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "guest-lib/host/held.h"
#include "guest-lib/host/memory.h"
#include "wire/bytes.h"
#include "wire/cancel.h"
#include "wire/capture.h"
#include "wire/encap/eth.h"
#include "wire/open.h"

#define BUDGET        512 /* pieces (fw/fw.h) of one turn */
#define LOOK_EVERY    8   /* doorbells of a program that polls, too, after which it looks */
#define SETTLE        4   /* turns of one that is not trusted to come again, if there is work */
#define POLL_GRACE    1000000u /* ns after a poll for which the poller is trusted to come again */
#define PROBATION     4000000u /* ns for which a poller that did not come has to come all the time */
#define PROBATION_MAX 256000000u /* the most; it doubles each time */
#define HELPER_SLICE  100000u    /* ns, the least that may be asked for */
#define IDLE_POLLS    100        /* in a row, after which other processes may have the processor */
#define SPIN_PERIOD   20u        /* us between looks at watched doorbells when nothing happens */
#define LINGER        50000u     /* ns after its last work for which the helper looks for more */

/* Who lets it work. */
enum local_driven {
    LOCAL_BY_THREADS, /* of this process, by its helper at the least */
    LOCAL_BY_WORLD,
    LOCAL_BY_PARENT /* this process is a child of the one whose HCA it is */
};

struct local_hca {
    enum local_driven driven;
    struct inproc_world *world;
    struct inproc_member member;
    pthread_mutex_t lock; /* around every call into fw */
    struct fw *fw;
    struct wire_port *port;
    struct memory_missed missed;
    int wire_fd, wake_fd;
    int log_level;
    char *name;
    /* written under the lock, read by all */
    uint64_t deadline_ns;
    bool woken;       /* the HCA asked for a turn */
    bool irq_raised;  /* and nobody told yet */
    bool busy;        /* the wire need not wake anyone: somebody looks */
    bool polled;      /* it is the program that does */
    uint64_t turn_ns; /* the HCA's time, which stands still during a turn; 0: between two */
    uint64_t last_poll_ns, last_doorbell_ns;
    unsigned doorbells;
    uint64_t polling_since_ns; /* without a pause of POLL_GRACE */
    uint64_t trusted_since_ns; /* while polled */
    uint64_t probation_ns;     /* polls do not keep the helper away before they come for so long */
    unsigned idle_polls;
    pthread_t poller;       /* who polled last */
    clockid_t poller_clock; /* its processor time */
    uint64_t poller_ran_ns; /* that, when the helper last looked; UINT64_MAX: it has not */
    /* the helper */
    pthread_t helper;
    bool started, stop;
    bool said_so;
    bool asleep;
    uint64_t asleep_until_ns;
    void (*irq)(void *opaque);
    bool (*scan)(void *opaque);
    const gint *watching;
    void *opaque;
};

static uint64_t timespec_ns(const struct timespec *ts)
{
    return (uint64_t)ts->tv_sec * 1000000000u + (uint64_t)ts->tv_nsec;
}

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return timespec_ns(&now);
}

/* The HCA's clock: real, or its world's. */
static uint64_t local_now_ns(const struct local_hca *hca)
{
    return hca->world ? hca->world->now_ns : now_ns();
}

/* -- what the HCA sees (model/core/host.h)
 * -----------------------------------------------------------
 */

static void local_log(void *host, enum hca_log_level level, const char *line)
{
    const struct local_hca *hca = host;

    if ((int)level <= hca->log_level) {
        int state = cancel_disable();

        fprintf(stderr, "%s: %s\n", hca->name, line);
        cancel_restore(state);
    }
}

static void local_unanswered(void *host, uint64_t addr, size_t len)
{
    g_autofree char *line = g_strdup_printf("no memory at 0x%" G_GINT64_MODIFIER
                                            "x (%zu bytes): it was unmapped, or never there",
                                            addr, len);

    local_log(host, HCA_LOG_GUEST_ERROR, line);
}

static bool local_dma_read(void *host, uint64_t addr, void *buf, size_t len)
{
    if (held_has(addr, len)) {
        memory_take(addr, buf, len);
        return true;
    }
    return memory_read(addr, buf, len, &((struct local_hca *)host)->missed);
}

static bool local_dma_write(void *host, uint64_t addr, const void *buf, size_t len)
{
    if (held_has(addr, len)) {
        if (len == MEMORY_ENTRY) {
            memory_put_entry(addr, buf);
        } else {
            memory_put(addr, buf, len);
        }
        return true;
    }
    return memory_write(addr, buf, len, &((struct local_hca *)host)->missed);
}

static bool local_dma_cmpxchg64(void *host, uint64_t addr, uint64_t *expected, uint64_t desired)
{
    return memory_cmpxchg64(addr, expected, desired, &((struct local_hca *)host)->missed);
}

static void local_irq(void *host, unsigned vector)
{
    struct local_hca *hca = host;

    __atomic_store_n(&hca->irq_raised, true, __ATOMIC_RELEASE);
}

static uint64_t local_clock_ns(void *host)
{
    const struct local_hca *hca = host;

    return hca->turn_ns ? hca->turn_ns : local_now_ns(hca);
}

static void local_timer_arm(void *host, uint64_t deadline_ns)
{
    struct local_hca *hca = host;

    __atomic_store_n(&hca->deadline_ns, deadline_ns, __ATOMIC_RELEASE);
}

static void local_wake(void *host)
{
    struct local_hca *hca = host;

    __atomic_store_n(&hca->woken, true, __ATOMIC_RELEASE);
}

static const struct hca_host_ops host_ops = {
    .dma_read = local_dma_read,
    .dma_write = local_dma_write,
    /* Nothing is mapped: what the model did with it could not be stopped at a fault. */
    .dma_map = NULL,
    .dma_unmap = NULL,
    .dma_cmpxchg64 = local_dma_cmpxchg64,
    .irq = local_irq,
    .clock_ns = local_clock_ns,
    .timer_arm = local_timer_arm,
    .wake = local_wake,
    .log = local_log,
};

/* -- turns --------------------------------------------------------------------------------------
 */

/* With the lock held. look: for frames, too, should no wake-up tell of them. True: something was
 * done. */
static bool local_turn(struct local_hca *hca, uint64_t now, bool look)
{
    uint64_t before = fw_pieces(hca->fw);
    bool rang = hca->scan && g_atomic_int_get(hca->watching) && hca->scan(hca->opaque);

    if (look && hca->busy && hca->port && hca->port->client && hca->port->client->rx_ready) {
        hca->port->client->rx_ready(hca->port->opaque); /* no wake-up says so: look */
    }
    if (__atomic_exchange_n(&hca->woken, false, __ATOMIC_ACQ_REL) || hca->deadline_ns <= now) {
        hca->turn_ns = now;
        if (fw_run(hca->fw, BUDGET)) {
            __atomic_store_n(&hca->woken, true, __ATOMIC_RELEASE);
        }
        hca->turn_ns = 0;
    }
    return rang || fw_pieces(hca->fw) != before;
}

void local_tell_irq(struct local_hca *hca)
{
    /* who is told arms the EQ again, which raises the next one at once if an event is there */
    while (__atomic_load_n(&hca->irq_raised, __ATOMIC_ACQUIRE) && hca->irq &&
           __atomic_exchange_n(&hca->irq_raised, false, __ATOMIC_ACQ_REL)) {
        int state = cancel_disable();

        hca->irq(hca->opaque);
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
    hca->polled = true;
    hca->trusted_since_ns = now;
    return true;
}

static void helper_wake(struct local_hca *hca)
{
    uint64_t one = 1;
    int state = cancel_disable();

    if (write(hca->wake_fd, &one, sizeof(one)) < 0 && errno != EAGAIN) {
        g_warning("%s: waking the helper: %s", hca->name, g_strerror(errno));
    }
    cancel_restore(state);
}

/* After a turn: is there something that the sleeping helper must not sleep over? */
static void local_leave_rest_to_helper(struct local_hca *hca)
{
    if (__atomic_load_n(&hca->asleep, __ATOMIC_SEQ_CST) &&
        (__atomic_load_n(&hca->woken, __ATOMIC_ACQUIRE) ||
         __atomic_load_n(&hca->deadline_ns, __ATOMIC_ACQUIRE) <
             __atomic_load_n(&hca->asleep_until_ns, __ATOMIC_ACQUIRE))) {
        helper_wake(hca);
    }
}

static void local_set_busy(struct local_hca *hca, bool busy)
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
    now = now_ns();
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
        helper_wake(hca);
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
    hca->polled = false;
    local_set_busy(hca, false);
    pthread_mutex_unlock(&hca->lock);
    helper_wake(hca);
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

bool local_doorbell(struct local_hca *hca, uint64_t offset, uint64_t value)
{
    if (hca->driven != LOCAL_BY_THREADS) {
        return local_note_doorbell(hca, offset, value);
    }
    pthread_mutex_lock(&hca->lock);
    fw_mmio_write(hca->fw, offset, value, 8);
    hca->last_doorbell_ns = now_ns();
    if (hca->polled) {
        /* As good as a poll: one in LOOK_EVERY looks at the wire, too. */
        hca->last_poll_ns = hca->last_doorbell_ns;
        local_turn(hca, hca->last_doorbell_ns, hca->doorbells++ % LOOK_EVERY == 0);
    } else {
        for (unsigned i = 0;
             i < SETTLE && local_turn(hca, hca->last_doorbell_ns, true) && hca->woken; i++) {
        }
    }
    pthread_mutex_unlock(&hca->lock);
    local_leave_rest_to_helper(hca);
    local_tell_irq(hca);
    return true;
}

/* -- on a world's clock --------------------------------------------------------------------------
 */

static struct local_hca *local_of_member(const struct inproc_member *member)
{
    return (struct local_hca *)((char *)member - offsetof(struct local_hca, member));
}

static bool local_member_run(struct inproc_member *member, uint64_t now_ns)
{
    struct local_hca *hca = local_of_member(member);
    bool irq = hca->irq_raised && hca->irq;
    bool due = hca->woken || hca->deadline_ns <= now_ns || irq;

    if (due || (hca->scan && g_atomic_int_get(hca->watching))) {
        pthread_mutex_lock(&hca->lock);
        due |= local_turn(hca, now_ns, true);
        pthread_mutex_unlock(&hca->lock);
        local_tell_irq(hca);
    }
    return due;
}

static uint64_t local_member_deadline_ns(const struct inproc_member *member)
{
    return local_of_member(member)->deadline_ns;
}

static void local_join(struct local_hca *hca, struct inproc_world *world)
{
    hca->driven = LOCAL_BY_WORLD;
    hca->world = world;
    hca->member = (struct inproc_member){local_member_run, local_member_deadline_ns};
    inproc_join(world, &hca->member);
}

static void local_leave(struct local_hca *hca)
{
    if (hca->world) {
        inproc_leave(hca->world, &hca->member);
    }
}

/* -- the helper ---------------------------------------------------------------------------------
 */

/* How long it may sleep: 0 not at all. */
static uint64_t helper_sleep_ns(struct local_hca *hca, bool polled, uint64_t now)
{
    uint64_t until = __atomic_load_n(&hca->deadline_ns, __ATOMIC_ACQUIRE);
    uint64_t most = polled ? POLL_GRACE : UINT64_MAX;

    if (__atomic_load_n(&hca->woken, __ATOMIC_ACQUIRE) && !polled) {
        return 0;
    }
    if (g_atomic_int_get(hca->watching)) {
        most = MIN(most, SPIN_PERIOD * 1000u);
    }
    if (polled) {
        return most; /* the poller sees to timers */
    }
    return until <= now ? 0 : MIN(until - now, most);
}

static void helper_sleep(struct local_hca *hca, uint64_t ns)
{
    struct pollfd fds[2] = {{.fd = hca->wake_fd, .events = POLLIN},
                            {.fd = hca->wire_fd, .events = POLLIN}};
    struct timespec ts = {.tv_sec = (time_t)(ns / 1000000000u),
                          .tv_nsec = (long)(ns % 1000000000u)};
    uint64_t count;
    int n = ppoll(fds, hca->wire_fd >= 0 ? 2 : 1, ns == UINT64_MAX ? NULL : &ts, NULL);

    __atomic_store_n(&hca->asleep, false, __ATOMIC_SEQ_CST);
    if (n > 0 && (fds[0].revents & POLLIN) && read(hca->wake_fd, &count, sizeof(count)) < 0 &&
        errno != EAGAIN) {
        g_warning("%s: the helper's descriptor: %s", hca->name, g_strerror(errno));
    }
    if (n > 0 && hca->wire_fd >= 0 && (fds[1].revents & POLLIN)) {
        pthread_mutex_lock(&hca->lock);
        wire_fd_event(hca->port);
        pthread_mutex_unlock(&hca->lock);
    }
}

/* Asks for short slices: then a program that spins on its memory does not keep the helper, which is
 * to change that memory, from the processor until its own slice ends. Kernels before 6.12 do not
 * look at this. */
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

/* Processor time that the poller has used since the last call of this; 0: it has ended, or is
 * another one than then. */
static uint64_t helper_poller_ran(struct local_hca *hca)
{
    struct timespec ran;
    uint64_t before = hca->poller_ran_ns;

    if (clock_gettime(hca->poller_clock, &ran)) {
        return 0;
    }
    hca->poller_ran_ns = timespec_ns(&ran);
    return before == UINT64_MAX ? 0 : hca->poller_ran_ns - before;
}

/* The poller did not come again. If frames waited for it although it had the processor, it is a
 * program that polls a CQ now and then and looks at its memory in between: then the helper stays
 * until the program has polled for some time. One that had to wait for a processor, or sleeps, is
 * welcome back at once. */
static void helper_take_over(struct local_hca *hca, uint64_t now, uint64_t ran)
{
    struct wire_stats before, after;

    if (now - hca->trusted_since_ns > PROBATION_MAX) {
        hca->probation_ns = 0;
    }
    hca->polled = false;
    wire_get_stats(hca->port, &before);
    local_set_busy(hca, false);
    local_turn(hca, now, true);
    wire_get_stats(hca->port, &after);
    if (after.rx_frames != before.rx_frames && ran > POLL_GRACE / 2) {
        hca->probation_ns = CLAMP(hca->probation_ns * 2, PROBATION, PROBATION_MAX);
        hca->polling_since_ns = now;
    }
}

/* Where one frame came the next is near, and to sleep between them costs both sides more than a
 * frame does: the sender a system call, this one a context switch. So the helper of a program that
 * leaves everything to it looks for a while. One that is at work itself may need the processor. */
static bool helper_lingers(const struct local_hca *hca, uint64_t last_work_ns, uint64_t now)
{
    return !hca->polled && now < last_work_ns + LINGER &&
           now > MAX(hca->last_poll_ns, hca->last_doorbell_ns) + POLL_GRACE;
}

static void *helper_main(void *opaque)
{
    struct local_hca *hca = opaque;
    uint64_t last_work_ns = 0;

    memory_unblock_faults();
    helper_ask_for_short_slices();
    while (!__atomic_load_n(&hca->stop, __ATOMIC_ACQUIRE)) {
        uint64_t ns, now;
        bool polled, linger;

        pthread_mutex_lock(&hca->lock);
        now = now_ns();
        if (hca->polled) {
            uint64_t ran = helper_poller_ran(hca);

            if (now >= hca->last_poll_ns + POLL_GRACE) {
                helper_take_over(hca, now, ran);
            }
        }
        polled = hca->polled;
        if ((!polled || g_atomic_int_get(hca->watching)) && local_turn(hca, now, true)) {
            last_work_ns = now;
        }
        linger = helper_lingers(hca, last_work_ns, now);
        local_set_busy(hca, polled || linger);
        pthread_mutex_unlock(&hca->lock);
        local_tell_irq(hca);
        if (linger) {
            sched_yield();
            continue;
        }
        /* who leaves work from now on wakes us, or we see the work */
        __atomic_store_n(&hca->asleep_until_ns, UINT64_MAX, __ATOMIC_RELEASE);
        __atomic_store_n(&hca->asleep, !polled, __ATOMIC_SEQ_CST);
        ns = helper_sleep_ns(hca, polled, now_ns());
        if (ns != 0) {
            __atomic_store_n(&hca->asleep_until_ns, ns == UINT64_MAX ? UINT64_MAX : now_ns() + ns,
                             __ATOMIC_RELEASE);
            helper_sleep(hca, ns);
        }
        __atomic_store_n(&hca->asleep, false, __ATOMIC_SEQ_CST);
    }
    return NULL;
}

bool local_start(struct local_hca *hca, void (*irq)(void *opaque), bool (*scan)(void *opaque),
                 const gint *watching, void *opaque)
{
    sigset_t all, old;
    int err;

    hca->irq = irq;
    hca->scan = scan;
    hca->watching = watching;
    hca->opaque = opaque;
    if (hca->driven == LOCAL_BY_WORLD) {
        return true;
    }
    /* the program's signals are not for this thread */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    err = pthread_create(&hca->helper, NULL, helper_main, hca);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    hca->started = err == 0;
    errno = err;
    return hca->started;
}

/* -- life ---------------------------------------------------------------------------------------
 */

#define ARP_LEN 42 /* with its Ethernet header */

/* An ARP announcement (RFC 5227 2.3), as hosts send it when a link comes up. A host that only
 * receives would otherwise never be learned by the wire, which floods frames to unknown addresses
 * and does not wait for room for those. */
static void local_announce(struct wire_port *port, const uint8_t mac[6], uint32_t ipv4)
{
    uint8_t *frame = wire_tx_reserve(port, ARP_LEN);

    if (!frame) {
        return;
    }
    memset(frame, 0, ARP_LEN);
    memset(frame, 0xff, 6);
    memcpy(frame + 6, mac, 6);
    put16(frame + 12, ETH_TYPE_ARP);
    put16(frame + 14, 1); /* Ethernet */
    put16(frame + 16, ETH_TYPE_IPV4);
    put16(frame + 18, 6 << 8 | 4); /* lengths of the addresses */
    put16(frame + 20, 1);          /* request */
    memcpy(frame + 22, mac, 6);
    put32(frame + 28, ipv4);
    put32(frame + 38, ipv4);
    wire_tx_commit(port, ARP_LEN);
}

static uint64_t world_clock_ns(void *opaque)
{
    return ((const struct inproc_world *)opaque)->now_ns;
}

static bool local_plug_in(struct local_hca *hca, const struct local_config *config, GError **err)
{
    struct wire_port *port;

    hca->port = config->port ? config->port : wire_open(config->wire, err);
    if (!hca->port) {
        return false;
    }
    if (config->capture) {
        port = wire_capture_new(hca->port, config->capture, hca->world ? world_clock_ns : NULL,
                                hca->world, err);
        if (!port) {
            wire_close(hca->port);
            return false;
        }
        hca->port = port;
    }
    hca->wire_fd = wire_fd(hca->port);
    fw_set_wire(hca->fw, hca->port);
    if (config->ipv4) {
        local_announce(hca->port, config->fw.mac, config->ipv4);
    }
    return true;
}

struct local_hca *local_hca_new(const struct local_config *config, GError **err)
{
    struct local_hca *hca = g_new0(struct local_hca, 1);
    pthread_mutexattr_t attr;

    memory_catch_faults();
    hca->missed = (struct memory_missed){local_unanswered, hca};
    pthread_mutexattr_init(&attr);
    pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ADAPTIVE_NP);
    pthread_mutex_init(&hca->lock, &attr);
    pthread_mutexattr_destroy(&attr);
    hca->deadline_ns = UINT64_MAX;
    hca->log_level = config->log_level;
    hca->name = g_strdup(config->name);
    hca->wire_fd = -1;
    if (config->world) {
        local_join(hca, config->world);
    }
    hca->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    hca->fw = fw_new(&host_ops, hca, &config->fw, err);
    if (hca->fw && local_plug_in(hca, config, err)) {
        return hca;
    }
    if (hca->fw) {
        fw_free(hca->fw);
    }
    local_leave(hca);
    close(hca->wake_fd);
    g_free(hca->name);
    g_free(hca);
    return NULL;
}

void local_stop(struct local_hca *hca)
{
    if (hca->started) {
        __atomic_store_n(&hca->stop, true, __ATOMIC_RELEASE);
        helper_wake(hca);
        pthread_join(hca->helper, NULL);
    }
    hca->started = false;
    hca->irq = NULL;
}

void local_hca_free(struct local_hca *hca)
{
    local_stop(hca);
    local_leave(hca);
    fw_set_wire(hca->fw, NULL);
    wire_close(hca->port);
    fw_free(hca->fw);
    close(hca->wake_fd);
    pthread_mutex_destroy(&hca->lock);
    g_free(hca->name);
    g_free(hca);
}

void local_hca_abandon(struct local_hca *hca)
{
    hca->driven = LOCAL_BY_PARENT;
}

bool local_is_ours(struct local_hca *hca)
{
    if (hca->driven == LOCAL_BY_PARENT &&
        !__atomic_exchange_n(&hca->said_so, true, __ATOMIC_RELAXED)) {
        fprintf(stderr, "%s: was opened before fork(): it stays with the parent\n", hca->name);
    }
    return hca->driven != LOCAL_BY_PARENT;
}

/* -- what the driver sees (guest-lib/drv/pci.h)
 * -----------------------------------------------------
 */

static uint64_t local_pci_mmio_read(void *pci, uint64_t offset, unsigned size)
{
    struct local_hca *hca = pci;
    uint64_t value;

    if (hca->driven == LOCAL_BY_PARENT) {
        return UINT64_MAX; /* as from a function that is not there */
    }
    pthread_mutex_lock(&hca->lock);
    value = fw_mmio_read(hca->fw, offset, size);
    pthread_mutex_unlock(&hca->lock);
    return value;
}

static void local_pci_mmio_write(void *pci, uint64_t offset, uint64_t value, unsigned size)
{
    struct local_hca *hca = pci;

    pthread_mutex_lock(&hca->lock);
    fw_mmio_write(hca->fw, offset, value, size);
    pthread_mutex_unlock(&hca->lock);
    local_leave_rest_to_helper(hca);
}

static void *local_pci_dma_alloc(void *pci, size_t size, uint64_t *bus)
{
    void *ptr = held_alloc(MAX(size, PCI_PAGE));

    if (!ptr) {
        g_error("out of memory for %zu bytes of DMA", size);
    }
    *bus = (uintptr_t)ptr;
    return ptr;
}

static void local_pci_dma_free(void *pci, void *ptr, size_t size)
{
    held_free(ptr, MAX(size, PCI_PAGE));
}

/* The driver waits for a command: the HCA works on it here. */
static bool local_pci_wait(void *pci, uint64_t timeout_ns)
{
    struct local_hca *hca = pci;
    bool did;

    if (hca->world) {
        return inproc_step(hca->world, hca->world->now_ns + timeout_ns);
    }
    pthread_mutex_lock(&hca->lock);
    did = local_turn(hca, now_ns(), true);
    pthread_mutex_unlock(&hca->lock);
    local_leave_rest_to_helper(hca);
    if (!did) {
        struct timespec pause = {.tv_nsec = 50000};

        nanosleep(&pause, NULL);
    }
    return did;
}

static uint64_t local_pci_now(void *pci)
{
    return local_now_ns(pci);
}

static const struct pci_ops local_pci_ops = {
    .mmio_read = local_pci_mmio_read,
    .mmio_write = local_pci_mmio_write,
    .dma_alloc = local_pci_dma_alloc,
    .dma_free = local_pci_dma_free,
    .wait = local_pci_wait,
    .now = local_pci_now,
};

struct pci_dev local_pci(struct local_hca *hca)
{
    return (struct pci_dev){.ops = &local_pci_ops, .pci = hca};
}
