/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One end of a link: where frames leave and arrive.
 *
 * A port is a table of operations. A backend implements them (in-process pair, shared memory, or an
 * owner's own backend such as a QEMU netdev), and filters (capture, faults) wrap them. The side
 * that uses a port, its client, supplies a table of callbacks. Frames are whole Ethernet frames
 * without preamble and FCS, at most WIRE_FRAME_MAX bytes.
 *
 * Nothing is lost inside a lossless backend: each frame needs a credit of its receiver. If there is
 * no credit, wire_tx_reserve() fails and the client is told later when to try again, as priority
 * flow control does for a NIC. A client waits for a class of credits. Receivers share
 * WIRE_CREDIT_CLASSES classes; the class tells the client which of its frames may go on when some
 * receivers have credit again. Frames sent while the link is down vanish, as they do on a cable
 * that is pulled out.
 *
 * Sending: call wire_tx_reserve_to(), write the frame, call wire_tx_commit(). One reservation at a
 * time.
 *
 * Receiving, and how a port sleeps: wire_poll() hands out frames, on the owner's thread and only
 * there. If it returns fewer frames than max, nothing is waiting and the port is armed: the next
 * frame, or the credit that a failed reservation waits for, makes wire_fd() readable (a backend
 * without a descriptor calls rx_ready or tx_ready directly). If it returns max frames, the port is
 * not armed and the caller must poll again before it sleeps. An owner that polls all the time and
 * never sleeps says so with wire_set_busy(), so that its peers need not wake it.
 *
 * Pause: a receiver that lives but does not run (its process is stopped, its VM is paused, it waits
 * for a processor) holds up its senders, as a NIC does with priority flow control. A transport that
 * waits for an answer must not count that time: wire_is_paused() reports the pause for as long as
 * the receiver lives. Frames that a receiver has taken but not finished working on count the same
 * way: wire_owe().
 *
 * Ends: if a process ends without closing its port, however it ends, the hosts that have called
 * wire_watch_hosts() are notified.
 *
 * Callbacks may reserve and commit on any port. They may not poll or close the port that calls
 * them.
 */
#ifndef HCASIM_WIRE_PORT_H
#define HCASIM_WIRE_PORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/note.h"

/* Ethernet header with two VLAN tags + 9978 bytes of MTU, rounded up to a slot size. */
#define WIRE_FRAME_MAX      10240

#define WIRE_CREDIT_CLASSES 64

struct wire_port;

/* What a backend counts since the port was opened. */
struct wire_stats {
    uint64_t rx_frames, rx_bytes; /* delivered to the client */
    uint64_t tx_frames, tx_bytes; /* committed by the client */
    uint64_t tx_no_room;          /* flooded frames that were dropped for lack of memory */
    uint64_t rx_missed;           /* flooded frames that this port read too late */
    uint64_t tx_no_dest;   /* frames without a receiver: link down, or the port's own address */
    uint64_t rx_malformed; /* peers' descriptors that failed a check; not delivered */
    uint64_t tx_blocked;   /* reservations that found no credit */
    uint64_t wakeups;      /* times a sleeping peer had to be woken by a system call */
};

/* What a receiver must know of a frame beside its bytes. */
enum wire_frame_flags {
    /* A RoCEv2 frame with space for an ICRC but no ICRC in it. Between a sender and a receiver that
     * share memory, an ICRC would detect nothing. */
    WIRE_NO_ICRC = 1 << 0,
    /* More frames, or wire_tx_flush(), follow at once; the receiver need not be told before that.
     * Every port accepts this flag. The receiver does not see it. */
    WIRE_MORE = 1 << 1,
};

/* The positions that a receiver must reach before its pause is over; for wire_is_paused(). All
 * zero: not asked yet. */
struct wire_pause {
    uint64_t receiver;
    uint32_t tx, rx;
};

struct wire_client {
    /*
     * A frame has arrived; it is valid during the call only. flags: enum wire_frame_flags. Called
     * from wire_poll() only. The bytes may lie in memory that a hostile sender still writes to:
     * read a length or index once, check what was read, use that.
     */
    void (*rx)(void *client, const uint8_t *frame, size_t len, unsigned flags);
    /* There is credit again after a wire_tx_reserve() that found none. wire_tx_credits() says in
     * which classes. */
    void (*tx_ready)(void *client);
    /* The cable was plugged in or pulled out (wire_link_up() tells which). */
    void (*link_change)(void *client);
    /* Frames may be waiting: call wire_poll() soon. Called on the owner's thread, from any call in
     * which the backend notices the frames. */
    void (*rx_ready)(void *client);
    /* A host may have ended (wire_has_ended() tells which), and all that it sent before has been
     * handed out. Called from wire_poll(). */
    void (*host_ended)(void *client);
};

struct wire_port_ops {
    /* Returns where a frame of up to len <= WIRE_FRAME_MAX bytes may be built. NULL: no credit now;
     * tx_ready follows. */
    uint8_t *(*tx_reserve)(struct wire_port *port, size_t len);
    /* Sends the first len bytes of the reservation. len 0 gives the credit back. A frame that is
     * shorter than an Ethernet header is not sent. flags: WIRE_MORE, and those that the port
     * offers. */
    void (*tx_commit)(struct wire_port *port, size_t len, unsigned flags);
    /* Takes up to max waiting frames and returns how many. Each is delivered to the client, unless
     * a check refuses it (rx_malformed). */
    unsigned (*poll)(struct wire_port *port, unsigned max);
    bool (*link_up)(struct wire_port *port);
    void (*close)(struct wire_port *port);

    /* The other operations may be NULL; the wrappers below say what that means. */
    uint8_t *(*tx_reserve_to)(struct wire_port *port, const uint8_t dmac[6], size_t len);
    unsigned (*tx_credit_class)(struct wire_port *port);
    uint64_t (*tx_credits)(struct wire_port *port);
    void (*tx_flush)(struct wire_port *port);
    void (*owe)(struct wire_port *port, bool owes);
    bool (*is_paused)(struct wire_port *port, const uint8_t dmac[6], struct wire_pause *pause);
    bool (*knows)(struct wire_port *port, const uint8_t mac[6]);
    bool (*tells_hosts)(struct wire_port *port); /* NULL: a port that has knows() does */
    bool (*watch_hosts)(struct wire_port *port);
    uint64_t (*host_at)(struct wire_port *port, const uint8_t mac[6]);
    bool (*has_ended)(struct wire_port *port, uint64_t host);
    int (*fd)(struct wire_port *port);
    void (*fd_event)(struct wire_port *port);
    void (*set_busy)(struct wire_port *port, bool busy);
    void (*get_stats)(struct wire_port *port, struct wire_stats *stats);
    void (*note)(struct wire_port *port, const struct wire_note *note);
};

/* The head of every backend's own structure. */
struct wire_port {
    const struct wire_port_ops *ops;
    const struct wire_client *client; /* NULL: no callbacks */
    void *opaque;                     /* first argument of the client's callbacks */
    unsigned offers;                  /* enum wire_frame_flags that the client may use */
    bool far;         /* usually another processor reads a frame where it was built */
    bool wants_notes; /* wire_note() has an effect: a filter shows notes */
};

static inline void wire_set_client(struct wire_port *port, const struct wire_client *client,
                                   void *opaque)
{
    port->client = client;
    port->opaque = opaque;
}

static inline uint8_t *wire_tx_reserve(struct wire_port *port, size_t len)
{
    return port->ops->tx_reserve(port, len);
}

/*
 * As wire_tx_reserve(), for a frame whose destination is known. Such a frame can be built where the
 * receiver will read it, and it waits for this receiver's credit only. dmac must be the destination
 * address of the frame.
 */
static inline uint8_t *wire_tx_reserve_to(struct wire_port *port, const uint8_t dmac[6], size_t len)
{
    return port->ops->tx_reserve_to ? port->ops->tx_reserve_to(port, dmac, len)
                                    : port->ops->tx_reserve(port, len);
}

/*
 * wire_tx_credit_class(): the class of credit that the reservation which has just failed waits for.
 * wire_tx_credits(), within tx_ready: the classes in which there is credit again, one bit each; a
 * reservation that waits for another class would fail again. Receivers share classes, so tx_ready
 * may come in vain. A backend without these operations has only class 0, and with tx_ready there is
 * credit in all classes.
 */
static inline unsigned wire_tx_credit_class(struct wire_port *port)
{
    return port->ops->tx_credit_class ? port->ops->tx_credit_class(port) : 0;
}

static inline uint64_t wire_tx_credits(struct wire_port *port)
{
    return port->ops->tx_credits ? port->ops->tx_credits(port) : ~0ull;
}

/* Says why the reserved frame is sent. To be called between reservation and commit, and only if
 * port->wants_notes. The note is valid during the call only, and is about that frame alone. */
static inline void wire_note(struct wire_port *port, const struct wire_note *note)
{
    if (port->ops->note) {
        port->ops->note(port, note);
    }
}

static inline void wire_tx_commit(struct wire_port *port, size_t len)
{
    port->ops->tx_commit(port, len, 0);
}

/* wire_tx_commit() with flags: WIRE_MORE, and flags of port->offers. */
static inline void wire_tx_commit_as(struct wire_port *port, size_t len, unsigned flags)
{
    port->ops->tx_commit(port, len, flags);
}

/* To be called after the last of the frames that were sent with WIRE_MORE, and at the end of a
 * turn: all answers to the frames of the last wire_poll() have been sent. (Without this call, the
 * next poll implies it.) */
static inline void wire_tx_flush(struct wire_port *port)
{
    if (port->ops->tx_flush) {
        port->ops->tx_flush(port);
    }
}

/* owes true: the owner still has work to do for frames that it took, so the end of a turn does not
 * mean that they have been answered. owes false: all frames that were taken count as answered. An
 * owner that says true must later say false, because a peer whose frame was lost waits for that. */
static inline void wire_owe(struct wire_port *port, bool owes)
{
    if (port->ops->owe) {
        port->ops->owe(port, owes);
    }
}

/*
 * Whether an answer to what was sent to dmac cannot be expected yet. At the first call (*pause all
 * zero) the port notes in *pause the frames that are on the way in both directions. It returns
 * true, then and at each later call, until all of this holds: the receiver has taken those frames,
 * the turn in which it took them has ended, its owner owes nothing, and its frames that waited here
 * have been taken. It returns false (and sets *pause to all zero again) when that holds, when the
 * receiver is dead or unknown, or when the backend does not support pauses.
 */
static inline bool wire_is_paused(struct wire_port *port, const uint8_t dmac[6],
                                  struct wire_pause *pause)
{
    bool paused = port->ops->is_paused && port->ops->is_paused(port, dmac, pause);

    if (!paused) {
        *pause = (struct wire_pause){0};
    }
    return paused;
}

/* Whether another host that is on the link now has sent with this address. False also for a backend
 * that cannot tell. */
static inline bool wire_knows(struct wire_port *port, const uint8_t mac[6])
{
    return port->ops->knows && port->ops->knows(port, mac);
}

/* Whether the backend can tell which addresses have hosts: then wire_knows() is an answer. */
static inline bool wire_tells_hosts(struct wire_port *port)
{
    return port->ops->tells_hosts ? port->ops->tells_hosts(port) : port->ops->knows != NULL;
}

/* From now on host_ended is called, and the other hosts that called this function are notified of
 * this host's end. False: the backend cannot tell, or the machine lacks the resources to watch
 * (inotify). */
static inline bool wire_watch_hosts(struct wire_port *port)
{
    return port->ops->watch_hosts && port->ops->watch_hosts(port);
}

/* The host that is at an address now, for wire_has_ended(). 0: its end will not be reported. */
static inline uint64_t wire_host_at(struct wire_port *port, const uint8_t mac[6])
{
    return port->ops->host_at ? port->ops->host_at(port, mac) : 0;
}

/* Whether that host's process has ended without closing its port. Makes a system call. */
static inline bool wire_has_ended(struct wire_port *port, uint64_t host)
{
    return host && port->ops->has_ended && port->ops->has_ended(port, host);
}

static inline unsigned wire_poll(struct wire_port *port, unsigned max)
{
    return port->ops->poll(port, max);
}

static inline bool wire_link_up(struct wire_port *port)
{
    return port->ops->link_up(port);
}

static inline void wire_close(struct wire_port *port)
{
    port->ops->close(port);
}

/* A descriptor that the owner's main loop watches for reading. -1: this port needs none. */
static inline int wire_fd(struct wire_port *port)
{
    return port->ops->fd ? port->ops->fd(port) : -1;
}

/* To be called when wire_fd() is readable: calls rx_ready and tx_ready as needed. An extra call
 * does no harm. */
static inline void wire_fd_event(struct wire_port *port)
{
    if (port->ops->fd_event) {
        port->ops->fd_event(port);
    }
}

/* busy true: the owner calls wire_poll() in a loop, so the port need not arm itself. busy false
 * (the state after opening): the next wire_poll() arms it again. */
static inline void wire_set_busy(struct wire_port *port, bool busy)
{
    if (port->ops->set_busy) {
        port->ops->set_busy(port, busy);
    }
}

/* All zero for a backend that does not count. */
static inline void wire_get_stats(struct wire_port *port, struct wire_stats *stats)
{
    *stats = (struct wire_stats){0};
    if (port->ops->get_stats) {
        port->ops->get_stats(port, stats);
    }
}

#endif
