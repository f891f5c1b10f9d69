/* SPDX-License-Identifier: BSD-2-Clause */
/* Queues of events, and the tokens in their descriptors (event_queue.h). */
#define _GNU_SOURCE
#include "guest-lib/host/event_queue.h"
#include <errno.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <unistd.h>
#include "wire/cancel.h"
#include "wire/signals.h"

/* The queue's owner holds it, and each thread that is in hv_event_take(). */
struct hv_event_store {
    gint holders;
    pid_t made_by; /* in a child of fork() another thread may have had the lock, and is not there */
    pthread_mutex_t lock; /* before those of the objects that events are about */
    GQueue events;
    int fd; /* -1: the queue has ended, and the descriptor may be another's; atomic */
    bool closed;
    GDestroyNotify free_event; /* or NULL */
};

static void event_release(void *opaque)
{
    struct hv_event_store *store = opaque;

    if (g_atomic_int_dec_and_test(&store->holders)) {
        pthread_mutex_destroy(&store->lock);
        g_free(store);
    }
}

int hv_event_queue_init(struct hv_event_queue *queue, GDestroyNotify free_event)
{
    int fd = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);

    if (fd < 0) {
        return errno;
    }
    queue->store = g_new0(struct hv_event_store, 1);
    pthread_mutex_init(&queue->store->lock, NULL);
    g_queue_init(&queue->store->events);
    queue->store->holders = 1;
    queue->store->made_by = getpid();
    queue->store->free_event = free_event;
    queue->store->fd = queue->fd = fd;
    queue->holds_signals = false;
    return 0;
}

static void event_drop_all(struct hv_event_store *store)
{
    if (store->free_event) {
        g_queue_clear_full(&store->events, store->free_event);
    } else {
        g_queue_clear(&store->events);
    }
}

void hv_event_queue_fini(struct hv_event_queue *queue)
{
    struct hv_event_store *store = queue->store;
    bool is_ours = store->made_by == getpid();
    int state = cancel_disable();

    if (is_ours) {
        pthread_mutex_lock(&store->lock);
    }
    __atomic_store_n(&store->fd, -1, __ATOMIC_RELAXED);
    close(queue->fd);
    event_drop_all(store);
    if (is_ours) {
        pthread_mutex_unlock(&store->lock);
    }
    event_release(store);
    cancel_restore(state);
}

guint hv_event_count(const struct hv_event_queue *queue)
{
    guint count;

    pthread_mutex_lock(&queue->store->lock);
    count = queue->store->events.length;
    pthread_mutex_unlock(&queue->store->lock);
    return count;
}

/* It holds 2^64 - 2 of them. */
static void event_put_token(struct hv_event_store *store)
{
    uint64_t one = 1;

    if (write(store->fd, &one, sizeof(one)) != sizeof(one)) {
        g_warning("an event's descriptor: %s", g_strerror(errno));
    }
}

void hv_event_put(struct hv_event_queue *queue, void *event)
{
    struct hv_event_store *store = queue->store;
    int state = cancel_disable();

    pthread_mutex_lock(&store->lock);
    if (!store->closed) {
        g_queue_push_tail(&store->events, event);
        event_put_token(store);
    } else if (store->free_event) {
        store->free_event(event);
    }
    pthread_mutex_unlock(&store->lock);
    cancel_restore(state);
}

/* With a token. NULL: the event that it was for has gone (*again), or stays, with its token, as the
 * one of a closed queue does; or the queue has ended. */
static void *event_take_first(struct hv_event_store *store, bool (*take)(void *event, void *arg),
                              void *arg, bool *again)
{
    void *event;
    int err = 0;

    pthread_mutex_lock(&store->lock);
    event = g_queue_peek_head(&store->events);
    *again = !event && !store->closed && store->fd >= 0;
    if (event && take(event, arg)) {
        g_queue_pop_head(&store->events);
    } else if (event || store->closed) {
        err = event ? errno : EIO;
        event = NULL;
        if (store->fd >= 0) {
            event_put_token(store);
        }
    } else if (store->fd < 0) {
        err = EBADF;
    }
    pthread_mutex_unlock(&store->lock);
    if (err) {
        errno = err;
    }
    return event;
}

static void *event_take_quietly(struct hv_event_store *store, bool holds_signals,
                                bool (*take)(void *event, void *arg), void *arg, bool *again)
{
    void *event;
    int state = cancel_disable();
    sigset_t signals;

    if (holds_signals) {
        signals_hold(&signals);
    }
    event = event_take_first(store, take, arg, again);
    if (holds_signals) {
        signals_release(&signals);
    }
    cancel_restore(state);
    return event;
}

struct hv_event_store *hv_event_hold(const struct hv_event_queue *queue)
{
    g_atomic_int_inc(&queue->store->holders);
    return queue->store;
}

static void *event_wait(struct hv_event_store *store, bool holds_signals,
                        bool (*take)(void *event, void *arg), void *arg)
{
    void *event = NULL;

    for (bool again = true; again;) {
        uint64_t one;
        int fd = __atomic_load_n(&store->fd, __ATOMIC_RELAXED);

        again = read(fd, &one, sizeof(one)) == sizeof(one);
        if (again) {
            event = event_take_quietly(store, holds_signals, take, arg, &again);
        }
    }
    return event;
}

void *hv_event_take_held(struct hv_event_store *held, bool holds_signals,
                         bool (*take)(void *event, void *arg), void *arg)
{
    void *volatile event = NULL;

    pthread_cleanup_push(event_release, held);
    event = event_wait(held, holds_signals, take, arg);
    pthread_cleanup_pop(true);
    return event;
}

void *hv_event_take(struct hv_event_queue *queue, bool (*take)(void *event, void *arg), void *arg)
{
    return hv_event_take_held(hv_event_hold(queue), queue->holds_signals, take, arg);
}

/* Takes a token if there is one; never waits, whether or not the descriptor would. */
static void event_take_token(struct hv_event_store *store)
{
    uint64_t one;
    struct iovec iov = {.iov_base = &one, .iov_len = sizeof(one)};

    if (preadv2(store->fd, &iov, 1, -1, RWF_NOWAIT) < 0 && errno != EAGAIN) {
        g_warning("an event's descriptor: %s", g_strerror(errno));
    }
}

void hv_event_queue_close(struct hv_event_queue *queue)
{
    struct hv_event_store *store = queue->store;
    void *event;
    int state = cancel_disable();

    pthread_mutex_lock(&store->lock);
    while ((event = g_queue_pop_head(&store->events))) {
        event_take_token(store);
        if (store->free_event) {
            store->free_event(event);
        }
    }
    store->closed = true;
    event_put_token(store); /* which stays */
    pthread_mutex_unlock(&store->lock);
    cancel_restore(state);
}

void hv_event_take_out(struct hv_event_queue *queue, bool (*match)(const void *, const void *),
                       const void *obj, GDestroyNotify free_event)
{
    struct hv_event_store *store = queue->store;
    int state = cancel_disable();
    GList *next;

    pthread_mutex_lock(&store->lock);
    for (GList *at = store->events.head; at; at = next) {
        next = at->next;
        if (match(at->data, obj)) {
            if (free_event) {
                free_event(at->data);
            }
            g_queue_delete_link(&store->events, at);
            event_take_token(store);
        }
    }
    pthread_mutex_unlock(&store->lock);
    cancel_restore(state);
}

void hv_event_move(struct hv_event_queue *from_queue, struct hv_event_queue *to_queue,
                   bool (*match)(const void *, const void *), const void *obj,
                   void (*moved)(void *event, void *arg), void *arg)
{
    struct hv_event_store *from = from_queue->store, *to = to_queue->store;
    int state = cancel_disable();
    GList *next;

    pthread_mutex_lock(&from->lock);
    pthread_mutex_lock(&to->lock);
    for (GList *at = from->events.head; at; at = next) {
        next = at->next;
        if (match(at->data, obj)) {
            moved(at->data, arg);
            g_queue_unlink(&from->events, at);
            event_take_token(from);
            g_queue_push_tail_link(&to->events, at);
            event_put_token(to);
        }
    }
    pthread_mutex_unlock(&to->lock);
    pthread_mutex_unlock(&from->lock);
    cancel_restore(state);
}
