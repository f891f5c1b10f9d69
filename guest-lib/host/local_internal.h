/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the files of a local HCA share: local.c has its life, and what device and driver see of each
 * other; progress.c lets it work; helper.c is the thread that does when nobody else does;
 * local_neighbours.c finds the hosts of its wire.
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
#include "wire/port.h"

#define POLL_GRACE 1000000u /* ns after a poll for which the poller is trusted to come again */
#define LINE       64       /* bytes that processors share or have alone */

/* Who lets it work. */
enum local_driven {
    LOCAL_BY_THREADS, /* of this process, by its helper at the least */
    LOCAL_BY_WORLD,
    LOCAL_BY_PARENT, /* this process is a child of the one whose HCA it is */
    LOCAL_BY_DRIVER, /* its program has closed it: by the thread that does that */
    LOCAL_BY_NOBODY  /* it was pulled out, or has ended */
};

/* The thread that the others leave the work to (progress.c). Changed under the lock. */
struct local_worker {
    bool polled;       /* it is the program that looks at the wire */
    pthread_t thread;  /* who polled last, or worked on a doorbell meanwhile */
    uint64_t there_ns; /* when that was */
    bool waited_for;   /* by a thread that has polled in vain for long */
};

/* How the program polls and posts: whether it may be trusted to come again. */
struct local_poller {
    uint64_t last_poll_ns, last_doorbell_ns;
    unsigned doorbells;        /* since the last poll, of those that may wait */
    bool posts_and_leaves;     /* they would wait for a poll that may not come */
    uint64_t left_ns;          /* when that was seen last */
    uint64_t armed_ns;         /* when a CQ was armed last */
    uint64_t polling_since_ns; /* without a pause of POLL_GRACE */
    uint64_t trusted_since_ns; /* while polled */
    uint64_t probation_ns;     /* polls do not keep the helper away before they come for so long */
    unsigned idle_polls;
    unsigned full_polls; /* that found completions, before the program was trusted to poll */
    clockid_t clock;     /* its processor time */
    uint64_t ran_ns;     /* that, when the helper last looked; UINT64_MAX: it has not */
};

/* Interrupts that the HCA raised. */
struct local_irqs {
    uint32_t raised; /* and nobody told yet: a bit for each vector, the last for the rest */
    uint64_t due_ns; /* in a world with whims: when they are told; 0: not decided */
};

/* Memory that is looked at for doorbells (local_lock_scan()). */
struct local_scan {
    unsigned things;  /* to look at */
    uint64_t rang_ns; /* when there was a doorbell last, or a new thing to look at */
};

/* The thread that works when nobody else does (helper.c). */
struct local_helper {
    pthread_t thread;
    struct fork_gate gate;
    int wake_fd;
    bool started, stop;
    bool asleep;
    uint64_t asleep_until_ns;
    uint64_t last_work_ns;     /* when it last did something */
    bool missed;               /* since it last looked at the poller it once did so in vain */
    uint64_t crowded_until_ns; /* others want the processor that it would look for frames with */
    uint64_t crowded_ns;       /* for how long that was taken to be so the last time */
    unsigned in_time;          /* times that they let it have the processor soon, since */
};

/* What its owner is called for (local_start()). */
struct local_owner {
    void (*irq)(void *opaque, uint32_t vectors);
    bool (*scan)(void *opaque);
    void *opaque;
};

/* What many threads read or write all the time has lines of its own. */
struct local_hca {
    enum local_driven driven; /* read with local_driven_by() */
    bool said_so;             /* that it is its parent's */
    unsigned outside;         /* threads that are in a call without the lock (local_enter()) */
    struct inproc_world *world;
    struct inproc_member member;
    uint64_t away_until_ns; /* in a world with whims: no turn before */
    _Alignas(LINE) struct local_worker worker;
    _Alignas(LINE) struct notes notes;   /* queues that the others rang for */
    _Alignas(LINE) pthread_mutex_t lock; /* around every call into fw */
    struct fw *fw;
    struct wire_port *port; /* NULL: it was pulled out */
    struct local_scan scan;
    struct memory_missed missed;
    int wire_fd;
    int log_level;
    char *name;
    /* written under the lock, read by all */
    uint64_t deadline_ns;
    uint64_t last_deadline_ns; /* that there was; later ones most likely are behind it */
    bool woken;                /* the HCA asked for a turn */
    struct local_irqs irqs;
    bool busy;        /* the wire need not wake anyone: somebody looks */
    uint64_t turn_ns; /* the HCA's time, which stands still during a turn; 0: between two */
    struct local_poller poller;
    /* the wire's hosts, and the card, which gets the frames behind them */
    struct neighbours *neighbours;
    const struct wire_client *card;
    void *card_opaque;
    void (*answered)(void *opaque);
    void *answered_opaque;
    void (*ended)(void *opaque); /* a host of the wire may have */
    void *ended_opaque;
    struct local_helper helper;
    struct local_owner owner;
};

/* -- progress.c -------------------------------------------------------------------------------- */

static inline enum local_driven local_driven_by(const struct local_hca *hca)
{
    return __atomic_load_n(&hca->driven, __ATOMIC_RELAXED);
}

/* Around what a call does of its own without the lock, seldom: who closes the HCA waits until it is
 * done (local_shut()). False: that has begun, or the HCA was pulled out or has ended. */
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

/* The HCA's clock: real, or its world's. */
static inline uint64_t local_now_ns(const struct local_hca *hca)
{
    return hca->world ? hca->world->now_ns : local_monotonic_ns();
}

/* Whether there is memory to be looked at that tells of doorbells. */
static inline bool local_is_watching(const struct local_hca *hca)
{
    return __atomic_load_n(&hca->scan.things, __ATOMIC_SEQ_CST) != 0;
}

/* Does what was left as notes. With the lock held. */
void local_take_notes(struct local_hca *hca);
/* Whether the program looks at the wire. With the lock held; who says no sees to the notes that
 * were left before, most likely in a turn. */
static inline void local_set_polled(struct local_hca *hca, bool polled)
{
    __atomic_store_n(&hca->worker.polled, polled, __ATOMIC_SEQ_CST);
}
/* With the lock held. look: for frames, too, should no wake-up tell of them. True: something was
 * done. */
bool local_turn(struct local_hca *hca, uint64_t now, bool look);
/* Whether somebody looks at the wire, so that it need not wake anyone. With the lock held. */
void local_set_busy(struct local_hca *hca, bool busy);
/* With the lock held: the program is one that does not poll after it has posted. */
void local_note_departure(struct local_hca *hca, uint64_t now);
/* After a turn: is there something that the sleeping helper must not sleep over? */
void local_leave_rest_to_helper(struct local_hca *hca);

/* On a world's clock from now on, or no more. */
void local_join(struct local_hca *hca, struct inproc_world *world);
void local_leave(struct local_hca *hca);

/* -- local_neighbours.c ------------------------------------------------------------------------ */

/* The cable is in: announces the host. */
void local_meet_neighbours(struct local_hca *hca, const struct local_config *config);
void local_leave_neighbours(struct local_hca *hca);

/* -- helper.c ---------------------------------------------------------------------------------- */

void local_helper_wake(struct local_hca *hca);
/* False: errno. */
bool local_helper_start(struct local_hca *hca);
/* Ends it, if there is one. */
void local_helper_stop(struct local_hca *hca);

#endif
