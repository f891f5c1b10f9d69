/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The pager: answers page faults and prefetches, and invalidates pages whose memory has changed,
 * one after the other, as a kernel's work queue does.
 *
 * In real time it is a thread, because bringing in a page may take as long as any access to memory
 * (a file, swap, a page that the program itself supplies). So no thread of the program waits for a
 * page of the device. In a world (inproc.h) it is a member that works between the program's calls.
 *
 * Changes of memory come as notes, in slots of fixed memory that are never freed. The thread that
 * changes memory takes no lock for a note and does not wait, so it may hold any lock itself, such
 * as an allocator's. It need not wait: the device reaches memory by the addresses of the process,
 * and so the processor has taken the pages from the device already. A note that finds no free slot
 * is dropped. Then the device meets the change at its next access (docs/adr/0024).
 */
#include <errno.h>
#include <semaphore.h>
#include <signal.h>
#include <time.h>
#include "guest-lib/host/memory.h"
#include "guest-lib/verbs/kernel/odp_internal.h"

#define NOTES     64 /* of each pager */
#define LISTENERS 16 /* pagers of the process that get notes */

/* -- notes of changed memory --------------------------------------------------------------------
 */

struct odp_note {
    enum {
        NOTE_EMPTY,
        NOTE_TAKEN, /* a thread writes it */
        NOTE_FULL
    } state;
    uint64_t start, end;
};

/* A pager's notes. They outlive it, because other threads may be about to leave one. */
static struct odp_listener {
    bool in_use;
    bool listens;
    uint64_t low, high; /* the addresses of its regions */
    sem_t work;         /* posted for each note, and for other work */
    struct odp_note notes[NOTES];
} listeners[LISTENERS];
static unsigned num_listening; /* a process without pagers only looks at this */

static bool odp_leave_note(struct odp_listener *listener, uint64_t start, uint64_t end)
{
    for (unsigned i = 0; i < NOTES; i++) {
        struct odp_note *note = &listener->notes[i];
        int empty = NOTE_EMPTY;

        if (__atomic_compare_exchange_n((int *)&note->state, &empty, NOTE_TAKEN, false,
                                        __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
            note->start = start;
            note->end = end;
            __atomic_store_n((int *)&note->state, NOTE_FULL, __ATOMIC_RELEASE);
            return true;
        }
    }
    return false;
}

void hv_odp_changed(uint64_t start, uint64_t len)
{
    uint64_t end = start + len < start ? UINT64_MAX : start + len;
    int err = errno;

    if (!__atomic_load_n(&num_listening, __ATOMIC_ACQUIRE)) {
        return;
    }
    for (unsigned i = 0; i < LISTENERS; i++) {
        struct odp_listener *listener = &listeners[i];

        if (__atomic_load_n(&listener->listens, __ATOMIC_ACQUIRE) &&
            start < __atomic_load_n(&listener->high, __ATOMIC_RELAXED) &&
            end > __atomic_load_n(&listener->low, __ATOMIC_RELAXED) &&
            odp_leave_note(listener, start, end)) {
            sem_post(&listener->work);
        }
    }
    errno = err;
}

/* A child of fork() has no pagers. */
static void odp_after_fork_in_child(void)
{
    for (unsigned i = 0; i < LISTENERS; i++) {
        listeners[i].listens = listeners[i].in_use = false;
        sem_init(&listeners[i].work, 0, 0);
        for (unsigned j = 0; j < NOTES; j++) {
            listeners[i].notes[j].state = NOTE_EMPTY;
        }
    }
    num_listening = 0;
}

/* All writable private pages are write-protected by fork(). */
static void odp_after_fork_in_parent(void)
{
    hv_odp_changed(0, UINT64_MAX);
}

__attribute__((constructor)) static void odp_watch_forks(void)
{
    for (unsigned i = 0; i < LISTENERS; i++) {
        sem_init(&listeners[i].work, 0, 0);
    }
    pthread_atfork(NULL, odp_after_fork_in_parent, odp_after_fork_in_child);
}

/* -- the pager ----------------------------------------------------------------------------------
 */

struct odp_work {
    struct odp_work *next;
    struct odp_prefetch *prefetch; /* or NULL: a page fault */
    struct drv_event fault;
};

struct odp_pager {
    struct odp *odp;
    struct odp_listener *listener; /* NULL: all are in use, so it gets no notes */
    sem_t *work;
    sem_t own_work;
    pthread_mutex_t lock; /* around the queue */
    struct odp_work *first, **last;
    bool stop;
    pthread_t thread;
    struct fork_gate gate;
    bool forks; /* a thread wants to fork: the pager pauses between two pieces of work */
    struct inproc_world *world; /* NULL: it is a thread */
    struct inproc_member member;
};

static struct odp_work *odp_pager_take(struct odp_pager *pager)
{
    struct odp_work *work;

    pthread_mutex_lock(&pager->lock);
    work = pager->first;
    if (work) {
        pager->first = work->next;
        pager->last = pager->first ? pager->last : &pager->first;
    }
    pthread_mutex_unlock(&pager->lock);
    return work;
}

static void odp_pager_put(struct odp_pager *pager, struct odp_work *work)
{
    pthread_mutex_lock(&pager->lock);
    *pager->last = work;
    pager->last = &work->next;
    pthread_mutex_unlock(&pager->lock);
    sem_post(pager->work);
}

/* Invalidates what the notes name. True: there was a note. */
static bool odp_pager_read_notes(struct odp_pager *pager)
{
    bool any = false;

    for (unsigned i = 0; pager->listener && i < NOTES; i++) {
        struct odp_note *note = &pager->listener->notes[i];

        if (__atomic_load_n((int *)&note->state, __ATOMIC_ACQUIRE) == NOTE_FULL) {
            uint64_t start = note->start, end = note->end;

            __atomic_store_n((int *)&note->state, NOTE_EMPTY, __ATOMIC_RELEASE);
            odp_invalidate(pager->odp, start, end);
            any = true;
        }
    }
    return any;
}

/* Does one piece of work. False: there is none. */
static bool odp_pager_work(struct odp_pager *pager)
{
    bool any = odp_pager_read_notes(pager);
    struct odp_work *work = odp_pager_take(pager);

    if (!work) {
        return any;
    }
    if (work->prefetch) {
        odp_prefetch_do(pager->odp, work->prefetch);
        g_free(work->prefetch);
    } else {
        odp_fault_answer(pager->odp, &work->fault);
    }
    g_free(work);
    return true;
}

/* Sleeps until there is work, or for a moment if a thread wants to fork. */
static void odp_pager_sleep(struct odp_pager *pager, bool moment)
{
    const struct timespec pause = {.tv_nsec = 100000};

    fork_gate_sleeps(&pager->gate);
    if (moment) {
        nanosleep(&pause, NULL);
    } else {
        while (sem_wait(pager->work) && errno == EINTR) {
        }
        while (!sem_trywait(pager->work)) { /* one look at the queue is for all */
        }
    }
    fork_gate_wakes(&pager->gate);
}

static void *odp_pager_main(void *opaque)
{
    struct odp_pager *pager = opaque;

    memory_unblock_faults();
    while (!__atomic_load_n(&pager->stop, __ATOMIC_ACQUIRE)) {
        bool did = odp_pager_work(pager), forks = __atomic_load_n(&pager->forks, __ATOMIC_ACQUIRE);

        if (!did || forks) {
            odp_pager_sleep(pager, did || forks);
        }
    }
    return NULL;
}

static struct odp_pager *odp_pager_of(const struct inproc_member *member)
{
    return (struct odp_pager *)((char *)member - offsetof(struct odp_pager, member));
}

/* While a thread of the program waits for a command, it holds the command lock and steps the world.
 * The pager needs that lock. */
static bool odp_member_run(struct inproc_member *member, uint64_t now_ns)
{
    struct odp_pager *pager = odp_pager_of(member);

    (void)now_ns;
    if (pthread_mutex_trylock(&pager->odp->hca->cmd_lock)) {
        return false;
    }
    pthread_mutex_unlock(&pager->odp->hca->cmd_lock);
    return odp_pager_work(pager);
}

static uint64_t odp_member_deadline_ns(const struct inproc_member *member)
{
    (void)member;
    return UINT64_MAX;
}

/* -- starting and ending ------------------------------------------------------------------------
 */

static struct odp_listener *odp_take_listener(void)
{
    for (unsigned i = 0; i < LISTENERS; i++) {
        bool free = false;

        if (__atomic_compare_exchange_n(&listeners[i].in_use, &free, true, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_RELAXED)) {
            listeners[i].low = UINT64_MAX;
            listeners[i].high = 0;
            return &listeners[i];
        }
    }
    return NULL;
}

static void odp_listen(struct odp_listener *listener, bool listens)
{
    __atomic_store_n(&listener->listens, listens, __ATOMIC_RELEASE);
    __atomic_add_fetch(&num_listening, listens ? 1 : -1, __ATOMIC_ACQ_REL);
}

static int odp_pager_thread(struct odp_pager *pager)
{
    sigset_t all, old;
    int err;

    fork_gate_init(&pager->gate);
    /* the program's signals must not run on this thread */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    err = pthread_create(&pager->thread, NULL, odp_pager_main, pager);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return err;
}

static void odp_pager_free(struct odp_pager *pager)
{
    if (pager->listener) {
        __atomic_store_n(&pager->listener->in_use, false, __ATOMIC_RELEASE);
    }
    sem_destroy(&pager->own_work);
    pthread_mutex_destroy(&pager->lock);
    g_free(pager);
}

int odp_pager_start(struct odp *odp)
{
    struct odp_pager *pager = g_new0(struct odp_pager, 1);
    int err = 0;

    pager->odp = odp;
    pager->last = &pager->first;
    pager->world = odp->hca->device->config->world;
    pager->listener = odp_take_listener();
    sem_init(&pager->own_work, 0, 0);
    pager->work = pager->listener ? &pager->listener->work : &pager->own_work;
    pthread_mutex_init(&pager->lock, NULL);
    if (pager->world) {
        pager->member = (struct inproc_member){odp_member_run, odp_member_deadline_ns};
        inproc_join(pager->world, &pager->member);
    } else {
        err = odp_pager_thread(pager);
    }
    if (err) {
        odp_pager_free(pager);
        return err;
    }
    if (pager->listener) {
        odp_listen(pager->listener, true);
    }
    __atomic_store_n(&odp->pager, pager, __ATOMIC_RELEASE);
    return 0;
}

void hv_odp_stop(struct hv_hca *hca)
{
    struct odp_pager *pager = hca->odp ? hca->odp->pager : NULL;
    struct odp_work *work;

    if (!pager) {
        return;
    }
    if (pager->listener) {
        odp_listen(pager->listener, false);
    }
    if (pager->world) {
        inproc_leave(pager->world, &pager->member);
    } else {
        __atomic_store_n(&pager->stop, true, __ATOMIC_RELEASE);
        sem_post(pager->work);
        pthread_join(pager->thread, NULL);
        fork_gate_fini(&pager->gate);
    }
    __atomic_store_n(&hca->odp->pager, NULL, __ATOMIC_RELEASE);
    while ((work = odp_pager_take(pager))) {
        g_free(work->prefetch);
        g_free(work);
    }
    odp_pager_free(pager);
}

void hv_odp_before_fork(struct hv_hca *hca)
{
    struct odp_pager *pager = hca->odp ? hca->odp->pager : NULL;

    if (pager && !pager->world) {
        __atomic_store_n(&pager->forks, true, __ATOMIC_RELEASE);
        fork_gate_before(&pager->gate);
    }
}

void hv_odp_after_fork(struct hv_hca *hca)
{
    struct odp_pager *pager = hca->odp ? hca->odp->pager : NULL;

    if (pager && !pager->world) {
        __atomic_store_n(&pager->forks, false, __ATOMIC_RELEASE);
        fork_gate_after(&pager->gate);
    }
}

/* -- work ---------------------------------------------------------------------------------------
 */

void hv_odp_event(struct hv_hca *hca, const struct drv_event *event)
{
    struct odp *odp = __atomic_load_n(&hca->odp, __ATOMIC_ACQUIRE);
    struct odp_pager *pager = odp ? __atomic_load_n(&odp->pager, __ATOMIC_ACQUIRE) : NULL;
    struct odp_work *work;

    if (pager) {
        work = g_new0(struct odp_work, 1);
        work->fault = *event;
        odp_pager_put(pager, work);
    }
}

void odp_pager_prefetch(struct odp *odp, struct odp_prefetch *prefetch)
{
    struct odp_work *work = g_new0(struct odp_work, 1);

    work->prefetch = prefetch;
    odp_pager_put(odp->pager, work);
}

bool odp_pager_help(struct odp *odp)
{
    return odp->pager->world && odp_pager_work(odp->pager);
}

void odp_pager_covers(struct odp *odp, uint64_t start, uint64_t end)
{
    struct odp_listener *listener = odp->pager->listener;

    if (listener) {
        pthread_mutex_lock(&odp->lock);
        __atomic_store_n(&listener->low, MIN(listener->low, start), __ATOMIC_RELAXED);
        __atomic_store_n(&listener->high, MAX(listener->high, end), __ATOMIC_RELAXED);
        pthread_mutex_unlock(&odp->lock);
    }
}
