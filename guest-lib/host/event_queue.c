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

int hv_event_queue_init(struct hv_event_queue *queue, GDestroyNotify free_event)
{
    queue->fd = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
    if (queue->fd < 0) {
        return errno;
    }
    pthread_mutex_init(&queue->lock, NULL);
    g_queue_init(&queue->events);
    queue->closed = false;
    queue->holds_signals = false;
    queue->free_event = free_event;
    return 0;
}

void hv_event_queue_fini(struct hv_event_queue *queue)
{
    close(queue->fd);
    if (queue->free_event) {
        g_queue_clear_full(&queue->events, queue->free_event);
    } else {
        g_queue_clear(&queue->events);
    }
    pthread_mutex_destroy(&queue->lock);
}

/* It holds 2^64 - 2 of them. */
static void event_put_token(struct hv_event_queue *queue)
{
    uint64_t one = 1;

    if (write(queue->fd, &one, sizeof(one)) != sizeof(one)) {
        g_warning("an event's descriptor: %s", g_strerror(errno));
    }
}

void hv_event_put(struct hv_event_queue *queue, void *event)
{
    int state = cancel_disable();

    pthread_mutex_lock(&queue->lock);
    if (!queue->closed) {
        g_queue_push_tail(&queue->events, event);
        event_put_token(queue);
    } else if (queue->free_event) {
        queue->free_event(event);
    }
    pthread_mutex_unlock(&queue->lock);
    cancel_restore(state);
}

/* With a token. NULL: the event that it was for has gone (*again), or stays, with its token, as the
 * one of a closed queue does. */
static void *event_take_first(struct hv_event_queue *queue, bool (*take)(void *event, void *arg),
                              void *arg, bool *again)
{
    void *event;
    int err = 0, state = cancel_disable();
    sigset_t signals;

    if (queue->holds_signals) {
        signals_hold(&signals);
    }
    pthread_mutex_lock(&queue->lock);
    event = g_queue_peek_head(&queue->events);
    *again = !event && !queue->closed;
    if (event && take(event, arg)) {
        g_queue_pop_head(&queue->events);
    } else if (event || queue->closed) {
        err = event ? errno : EIO;
        event = NULL;
        event_put_token(queue);
    }
    pthread_mutex_unlock(&queue->lock);
    if (queue->holds_signals) {
        signals_release(&signals);
    }
    cancel_restore(state);
    if (err) {
        errno = err;
    }
    return event;
}

void *hv_event_take(struct hv_event_queue *queue, bool (*take)(void *event, void *arg), void *arg)
{
    bool again = true;
    uint64_t one;
    void *event = NULL;

    while (again) {
        if (read(queue->fd, &one, sizeof(one)) != sizeof(one)) {
            return NULL;
        }
        event = event_take_first(queue, take, arg, &again);
    }
    return event;
}

/* Takes a token if there is one; never waits, whether or not the descriptor would. */
static void event_take_token(struct hv_event_queue *queue)
{
    uint64_t one;
    struct iovec iov = {.iov_base = &one, .iov_len = sizeof(one)};

    if (preadv2(queue->fd, &iov, 1, -1, RWF_NOWAIT) < 0 && errno != EAGAIN) {
        g_warning("an event's descriptor: %s", g_strerror(errno));
    }
}

void hv_event_queue_close(struct hv_event_queue *queue)
{
    void *event;
    int state = cancel_disable();

    pthread_mutex_lock(&queue->lock);
    while ((event = g_queue_pop_head(&queue->events))) {
        event_take_token(queue);
        if (queue->free_event) {
            queue->free_event(event);
        }
    }
    queue->closed = true;
    event_put_token(queue); /* which stays */
    pthread_mutex_unlock(&queue->lock);
    cancel_restore(state);
}

void hv_event_take_out(struct hv_event_queue *queue, bool (*match)(const void *, const void *),
                       const void *obj, GDestroyNotify free_event)
{
    int state = cancel_disable();
    GList *next;

    pthread_mutex_lock(&queue->lock);
    for (GList *at = queue->events.head; at; at = next) {
        next = at->next;
        if (match(at->data, obj)) {
            if (free_event) {
                free_event(at->data);
            }
            g_queue_delete_link(&queue->events, at);
            event_take_token(queue);
        }
    }
    pthread_mutex_unlock(&queue->lock);
    cancel_restore(state);
}

void hv_event_move(struct hv_event_queue *from, struct hv_event_queue *to,
                   bool (*match)(const void *, const void *), const void *obj,
                   void (*moved)(void *event, void *arg), void *arg)
{
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
