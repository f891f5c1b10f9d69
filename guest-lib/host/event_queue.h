/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A queue of events with a descriptor that is readable while an event waits, and that honours
 * O_NONBLOCK.
 *
 * The descriptor is an eventfd with one token for each event that no thread has taken. A thread
 * that takes an event waits for a token first, without the lock, as in read() on the kernel's
 * descriptors. If an object is destroyed, its events are removed with as many tokens; a thread that
 * already had one of these tokens waits again. An event that is taken is counted before the lock is
 * released, so a thread that destroys an object finds each of its events either in the queue or
 * counted.
 *
 * If the device of a queue is gone, the queue is closed: it has no events any more, and threads
 * that read or wait get an error. Its descriptor is readable from then on. (A kernel's descriptor
 * reports POLLERR instead, or POLLIN with POLLRDHUP; an eventfd cannot report that.)
 *
 * A queue may end while a thread waits for its events. A kernel's file stays until read() returns;
 * here, too, the thread goes on waiting, and holds the part that it accesses afterwards (struct
 * hv_event_store).
 */
#ifndef HCASIM_GUEST_LIB_HOST_EVENT_QUEUE_H
#define HCASIM_GUEST_LIB_HOST_EVENT_QUEUE_H

#include <glib.h>
#include <pthread.h>
#include <stdbool.h>

struct hv_event_store; /* the part that a waiting thread holds */
struct hv_event_queue {
    struct hv_event_store *store;
    int fd;
    bool holds_signals; /* block signals while an event is taken: a handler may call exit() */
};

/* Returns 0 or errno. free_event: frees the events that no thread will take, or NULL. */
int hv_event_queue_init(struct hv_event_queue *queue, GDestroyNotify free_event);
/* Ends the queue. Threads may be in hv_event_take(), but in no other call. */
void hv_event_queue_fini(struct hv_event_queue *queue);
/* Removes the events, refuses new ones, and wakes the threads that wait. To be called once. */
void hv_event_queue_close(struct hv_event_queue *queue);

void hv_event_put(struct hv_event_queue *queue, void *event);
/* Waits for an event, unless the descriptor is O_NONBLOCK; the thread may be cancelled while it
 * waits. take is called with the lock held; if it returns false, the event stays in its place.
 * Returns NULL with errno if there is no event (EIO: and there never will be one; EBADF: the queue
 * has ended), or with errno as take left it. */
void *hv_event_take(struct hv_event_queue *queue, bool (*take)(void *event, void *arg), void *arg);
/* The same in two steps; the queue may end between them. hv_event_take_held() gives back what
 * hv_event_hold() holds. */
struct hv_event_store *hv_event_hold(const struct hv_event_queue *queue);
void *hv_event_take_held(struct hv_event_store *held, bool holds_signals,
                         bool (*take)(void *event, void *arg), void *arg);
/* The number of events that wait. */
guint hv_event_count(const struct hv_event_queue *queue);
/* Removes every event for which match(event, obj) is true. */
void hv_event_take_out(struct hv_event_queue *queue, bool (*match)(const void *, const void *),
                       const void *obj, GDestroyNotify free_event);
/* Moves every event for which match(event, obj) is true to the end of the other queue, in order.
 * moved(event, arg) is called for each with both locks held, before the event is in the other
 * queue. The caller serializes moves. */
void hv_event_move(struct hv_event_queue *from, struct hv_event_queue *to,
                   bool (*match)(const void *, const void *), const void *obj,
                   void (*moved)(void *event, void *arg), void *arg);

#endif
