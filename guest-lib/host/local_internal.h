/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the files of a local HCA share. local.c makes and ends it, and connects the device with the
 * driver; progress.c lets it work; helper.c is the thread that lets it work when no other thread
 * does; local_neighbours.c finds the hosts of its wire.
 */
#ifndef HCASIM_GUEST_LIB_HOST_LOCAL_INTERNAL_H
#define HCASIM_GUEST_LIB_HOST_LOCAL_INTERNAL_H

#include <pthread.h>
#include <time.h>
#include "guest-lib/host/fork_gate.h"
#include "guest-lib/host/local.h"
#include "guest-lib/host/memory.h"
#include "guest-lib/host/neighbours.h"
#include "guest-lib/host/notes.h"
#include "wire/fault/fault.h"
#include "wire/port.h"

#define POLL_GRACE 1000000u /* ns after a poll during which the poller is trusted to poll again */
#define LINE       64       /* bytes of a cache line */

/* Who lets the HCA work. */
enum local_driven {
    LOCAL_BY_THREADS, /* the threads of this process, or its helper */
    LOCAL_BY_WORLD,
    LOCAL_BY_PARENT, /* no thread here: this process is a child of the HCA's process */
    LOCAL_BY_DRIVER, /* the thread that closes it: its program has closed it */
    LOCAL_BY_NOBODY  /* no thread: it was removed, or has ended */
};

/* The thread that works for the others (progress.c). Changed under the lock. */
struct local_worker {
    bool polled;       /* the program polls, and so reads the wire */
    pthread_t thread;  /* the last one that polled, or rang a doorbell while polled */
    uint64_t there_ns; /* when it did so */
    bool waited_for;   /* a thread that has polled in vain for long waits for it */
};

/* How the program polls and posts, which decides whether it is trusted to poll again. */
struct local_poller {
    uint64_t last_poll_ns, last_doorbell_ns;
    unsigned doorbells;        /* doorbells since the last poll that may wait */
    bool posts_and_leaves;     /* they would wait for a poll that may not come */
    uint64_t left_ns;          /* when that was seen last */
    uint64_t armed_ns;         /* when a CQ was armed last */
    uint64_t polling_since_ns; /* since then no pause was longer than POLL_GRACE */
    uint64_t trusted_since_ns; /* valid while worker.polled */
    uint64_t probation_ns;     /* it must poll for so long before it is trusted */
    unsigned idle_polls;
    unsigned full_polls; /* polls that found completions, before it was trusted to poll */
    clockid_t clock;     /* the clock of the poller's processor time */
    uint64_t ran_ns;     /* that time when the helper last read it; UINT64_MAX: not yet */
};

/* Interrupts that the HCA raised. */
struct local_irqs {
    uint32_t raised; /* not reported yet: a bit for each vector, the last bit for the rest */
    uint64_t due_ns; /* in a world with whims: when they are reported; 0: not chosen yet */
};

/* Memory that is scanned for doorbells (local_lock_scan()). */
struct local_scan {
    unsigned things;  /* number of things to look at */
    uint64_t rang_ns; /* time of the last doorbell found, or of the last new thing */
};

/* The thread that works when no other thread does (helper.c). */
struct local_helper {
    pthread_t thread;
    struct fork_gate gate;
    int wake_fd;
    bool started, stop;
    bool asleep;
    uint64_t asleep_until_ns;
    uint64_t last_work_ns;     /* when it last did something */
    bool missed;               /* since its last check of the poller it found the lock taken */
    uint64_t crowded_until_ns; /* until then others need the processor, so it does not linger */
    uint64_t crowded_ns;       /* how long that was assumed the last time */
    unsigned in_time;          /* times since then that it got the processor back soon */
};

/* The owner's callbacks (local_start()). */
struct local_owner {
    void (*irq)(void *opaque, uint32_t vectors);
    bool (*scan)(void *opaque, uint64_t now_ns);
    void *opaque;
};

/* Members that many threads read or write all the time have cache lines of their own. */
struct local_hca {
    enum local_driven driven; /* read with local_driven_by() */
    bool said_so;             /* the message that it belongs to the parent was written */
    unsigned outside;         /* threads in a call without the lock (local_enter()) */
    struct inproc_world *world;
    struct inproc_member member;
    uint64_t away_until_ns; /* in a world with whims: no turn before this time */
    _Alignas(LINE) struct local_worker worker;
    _Alignas(LINE) struct notes notes;   /* queues that other threads rang for */
    _Alignas(LINE) pthread_mutex_t lock; /* around every call into fw */
    struct fw *fw;
    void *device_memory;       /* FW_DEVICE_MEMORY bytes */
    struct hca_host_ops ops;   /* the HCA's callbacks: local_ops, or those of local_gpu.c */
    struct wire_port *port;    /* NULL: it was removed */
    struct wire_port *capture; /* the capture in it, or NULL */
    struct local_scan scan;
    struct memory_missed missed;
    int wire_fd;
    int log_level;
    char *name;
    struct trace_file *trace; /* or NULL */
    /* Written under the lock, read by all threads. */
    uint64_t deadline_ns;
    uint64_t last_deadline_ns; /* the last timer; new timers are most likely later */
    bool woken;                /* the HCA asked for a turn */
    struct local_irqs irqs;
    bool busy;        /* a thread looks at the wire, so it need not wake anyone */
    uint64_t turn_ns; /* the HCA's time, constant during a turn; 0: between two turns */
    struct local_poller poller;
    /* The wire's hosts, and the card, which gets the frames that pass them. */
    struct neighbours *neighbours;
    const struct wire_client *card;
    void *card_opaque;
    void (*answered)(void *opaque);
    void *answered_opaque;
    void (*ended)(void *opaque); /* called when a host of the wire may have ended */
    void *ended_opaque;
    struct local_faults {
        struct fault_set *set;  /* NULL: the HCA has no faults */
        struct wire_port *port; /* the filter, which is then `port` */
        bool is_settled;        /* the HCA sends no more */
        struct inproc_member member;
        uint64_t due_ns; /* in a world: when the filter wants to be called */
    } faults;
    struct local_helper helper;
    struct local_owner owner;
};

/* -- progress.c -------------------------------------------------------------------------------- */

static inline enum local_driven local_driven_by(const struct local_hca *hca)
{
    return __atomic_load_n(&hca->driven, __ATOMIC_RELAXED);
}

/* To be called around accesses without the lock, which are rare. The thread that closes the HCA
 * waits for them (local_shut()). False: closing has begun, or the HCA was removed or has ended. */
static inline bool local_enter(struct local_hca *hca)
{
    __atomic_add_fetch(&hca->outside, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&hca->driven, __ATOMIC_SEQ_CST) < LOCAL_BY_DRIVER) {
        return true;
    }
    __atomic_sub_fetch(&hca->outside, 1, __ATOMIC_SEQ_CST);
    return false;
}

static inline void local_exit(struct local_hca *hca)
{
    __atomic_sub_fetch(&hca->outside, 1, __ATOMIC_SEQ_CST);
}

static inline uint64_t local_timespec_ns(const struct timespec *ts)
{
    return (uint64_t)ts->tv_sec * 1000000000u + (uint64_t)ts->tv_nsec;
}

static inline uint64_t local_monotonic_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return local_timespec_ns(&now);
}

/* The HCA's clock: real time, or its world's. */
static inline uint64_t local_now_ns(const struct local_hca *hca)
{
    return hca->world ? hca->world->now_ns : local_monotonic_ns();
}

/* Whether there is memory to scan for doorbells. */
static inline bool local_is_watching(const struct local_hca *hca)
{
    return __atomic_load_n(&hca->scan.things, __ATOMIC_SEQ_CST) != 0;
}

/* Works on the doorbells that were left as notes. With the lock held. */
void local_take_notes(struct local_hca *hca);
/* Sets whether the program polls, and so reads the wire. With the lock held. A caller that passes
 * false must see that notes left before are taken, most likely in a turn. */
static inline void local_set_polled(struct local_hca *hca, bool polled)
{
    __atomic_store_n(&hca->worker.polled, polled, __ATOMIC_SEQ_CST);
}
/* Runs one turn, with the lock held. look: reads the wire even if no wake-up told of frames. True:
 * something was done. */
bool local_turn(struct local_hca *hca, uint64_t now, bool look);
/* Sets whether a thread looks at the wire, so that the wire need not wake anyone. With the lock
 * held. */
void local_set_busy(struct local_hca *hca, bool busy);
/* Notes that the program does not poll after it has posted. With the lock held. */
void local_note_departure(struct local_hca *hca, uint64_t now);
/* To be called after a turn: wakes the helper if it sleeps and there is something that it must not
 * miss. */
void local_leave_rest_to_helper(struct local_hca *hca);

/* The HCA runs on a world's clock from now on; ends that. */
void local_join(struct local_hca *hca, struct inproc_world *world);
void local_leave(struct local_hca *hca);

/* -- local.c ----------------------------------------------------------------------------------- */

/* The host callbacks of an HCA that reaches only memory that CPUs reach. */
extern const struct hca_host_ops local_ops;

/* -- local_faults.c ---------------------------------------------------------------------------- */

/* Puts the filter of the configured faults before the port. capture: NULL, or a filter in it. */
bool local_plug_in_faults(struct local_hca *hca, const struct local_config *config,
                          struct wire_port *capture, GError **err);
/* The HCA sends no more: sends what its faults still delay, and writes to the log how many frames
 * had faults. With the lock held, or when no other thread is in a call. */
void local_settle_faults(struct local_hca *hca);
/* Frees the rules, after the port was closed. */
void local_end_faults(struct local_hca *hca);

/* -- local_neighbours.c ------------------------------------------------------------------------ */

/* The wire is open: announces the host. */
void local_meet_neighbours(struct local_hca *hca, const struct local_config *config);
void local_leave_neighbours(struct local_hca *hca);

/* -- helper.c ---------------------------------------------------------------------------------- */

void local_helper_wake(struct local_hca *hca);
/* False: no thread could be made (errno). */
bool local_helper_start(struct local_hca *hca);
/* Ends the helper, if there is one. */
void local_helper_stop(struct local_hca *hca);

#endif
