/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A queue of events with a descriptor that is readable while one waits, and that honours
 * O_NONBLOCK.
 *
 * The descriptor is an eventfd with a token for each event that nobody has come for. Who takes an
 * event waits for a token first, without the lock, as in read() on the kernel's descriptors. An
 * object that goes takes its events and as many tokens with it; who had one of these already waits
 * again. What has been taken is counted before the lock is given back, so that an object that goes
 * finds each of its events either in the queue or counted.
 *
 * A queue whose device is gone is closed: it has no events any more, and who reads or waits is told
 * so. Its descriptor is readable from then on. (A kernel's says POLLERR instead, or POLLIN with
 * POLLRDHUP: an eventfd has nothing of the kind to say.)
 *
 * A queue may end while a thread waits for its events: as with a kernel's file, which stays until
 * read() returns, the thread goes on waiting, and holds what it looks at afterwards.
 */
#ifndef HCASIM_GUEST_LIB_HOST_EVENT_QUEUE_H
#define HCASIM_GUEST_LIB_HOST_EVENT_QUEUE_H

#include <glib.h>
#include <pthread.h>
#include <stdbool.h>

struct hv_event_store; /* what a thread that waits holds */
struct hv_event_queue {
    struct hv_event_store *store;
    int fd;
    bool holds_signals; /* who takes: those that may call exit() meanwhile */
};

/* 0 or errno. free_event: for events that nobody comes for any more, or NULL. */
int hv_event_queue_init(struct hv_event_queue *queue, GDestroyNotify free_event);
/* Threads may be in hv_event_take(), and in nothing else. */
void hv_event_queue_fini(struct hv_event_queue *queue);
/* Its events go, no others come, and who waits for one wakes up. Once. */
void hv_event_queue_close(struct hv_event_queue *queue);

void hv_event_put(struct hv_event_queue *queue, void *event);
/* Waits for an event, unless the descriptor says not to; it may be cancelled there. take is called
 * with the lock held, and false leaves the event where it was. NULL with errno: there is none (EIO:
 * and never will be; EBADF: the queue has ended), or errno as take left it. */
void *hv_event_take(struct hv_event_queue *queue, bool (*take)(void *event, void *arg), void *arg);
/* The same in two steps: the queue may end between them. What was held is given back. */
struct hv_event_store *hv_event_hold(const struct hv_event_queue *queue);
void *hv_event_take_held(struct hv_event_store *held, bool holds_signals,
                         bool (*take)(void *event, void *arg), void *arg);
/* How many wait. */
guint hv_event_count(const struct hv_event_queue *queue);
/* Takes out every event for which match(event, obj) holds. */
void hv_event_take_out(struct hv_event_queue *queue, bool (*match)(const void *, const void *),
                       const void *obj, GDestroyNotify free_event);
/* Moves every event for which match(event, obj) holds, in their order, behind what is in the other
 * queue; moved(event, arg) is called for each, with both locks held, before it is there. Moves are
 * serialized by their caller. */
void hv_event_move(struct hv_event_queue *from, struct hv_event_queue *to,
                   bool (*match)(const void *, const void *), const void *obj,
                   void (*moved)(void *event, void *arg), void *arg);

#endif
