/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One end of a link: where frames leave and arrive.
 *
 * A port is a table of operations that a backend implements (in-process pair, shared memory, an
 * owner's own such as a QEMU netdev) and that filters (capture, faults) wrap. The side that uses
 * a port, its client, hands over a table of callbacks. Frames are whole Ethernet frames without
 * preamble and FCS, at most WIRE_FRAME_MAX bytes.
 *
 * Nothing is lost inside a lossless backend: each frame needs a credit of its receiver. Where there
 * is none, wire_tx_reserve() says so and the client is told when to try again, as a NIC is by
 * priority flow control. A client waits for a class of credits: receivers share WIRE_CREDIT_CLASSES
 * of them, by which it knows what may go on when some have credit again. Frames sent
 * while the link is down vanish, as they do on a cable that is pulled out.
 *
 * Sending: wire_tx_reserve_to(), write the frame, wire_tx_commit(). One reservation at a time.
 *
 * Receiving, and how a port sleeps: wire_poll() hands out frames, on the owner's thread and only
 * there. When it returns fewer frames than it was allowed to, nothing is waiting and the port is
 * armed: the next frame, or the credit that a failed reservation waits for, makes wire_fd()
 * readable (or, for a backend without one, is told by rx_ready or tx_ready directly). When it
 * returns as many as it was allowed to, the port is not armed and the caller must poll again
 * before it sleeps. An owner that polls all the time and never sleeps says so with
 * wire_set_busy() and spares its peers the wake-ups.
 *
 * Pause: a receiver that lives but does not run (its process is stopped, its VM paused, it waits
 * for a processor) holds its senders up, as a NIC does by priority flow control. For what waits for
 * an answer no time passes then: wire_is_paused() says so, for as long as that receiver lives. What
 * a receiver has taken and is still at work on is no different: wire_owe().
 *
 * Ends: a host whose process ends, however it does, without closing its port, is told of to who
 * wants to know: wire_watch_hosts().
 *
 * Callbacks may reserve and commit on any port; they may not poll or close the port that calls.
 */
#ifndef HCASIM_WIRE_PORT_H
#define HCASIM_WIRE_PORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Ethernet header with two VLAN tags + 9978 bytes of MTU, rounded up to a slot size. */
#define WIRE_FRAME_MAX      10240

#define WIRE_CREDIT_CLASSES 64

struct wire_port;

/* What a backend counts since the port was opened. */
struct wire_stats {
    uint64_t rx_frames, rx_bytes; /* delivered to the client */
    uint64_t tx_frames, tx_bytes; /* committed by the client */
    uint64_t tx_no_room;          /* flooded frames that nobody got for lack of memory */
    uint64_t rx_missed;           /* flooded frames for which this port came too late */
    uint64_t tx_no_dest;   /* frames with nobody to go to: link down, or the port's own address */
    uint64_t rx_malformed; /* peers' descriptors that failed a check; nothing was delivered */
    uint64_t tx_blocked;   /* reservations that found no credit */
    uint64_t wakeups;      /* times a sleeping peer had to be woken by a system call */
};

/* What is to be known of a frame beside its bytes. */
enum wire_frame_flags {
    /* A RoCEv2 frame that has no ICRC, only the room for it. Between a sender and a receiver who
     * share memory there is nothing that it would detect. */
    WIRE_NO_ICRC = 1 << 0,
    /* Others or wire_tx_flush() follow at once, until which a receiver may not be told. Every port
     * takes this one; it does not arrive. */
    WIRE_MORE = 1 << 1,
};

/* Up to where a receiver has to come; for wire_is_paused(). All zero: not asked yet. */
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
    /* There is credit after a wire_tx_reserve() that found none; wire_tx_credits() says in which
     * classes. */
    void (*tx_ready)(void *client);
    /* The cable was plugged in or pulled out (wire_link_up() tells which). */
    void (*link_change)(void *client);
    /* Frames may be waiting: call wire_poll() soon. Called from wherever the backend learns it,
     * on the owner's thread. */
    void (*rx_ready)(void *client);
    /* A host may have ended (wire_has_ended() knows which), and what it sent before has been handed
     * out. Called from wire_poll(). */
    void (*host_ended)(void *client);
};

struct wire_port_ops {
    /* Where a frame of up to len <= WIRE_FRAME_MAX bytes may be built, or NULL if there is no
     * credit now; then tx_ready follows. */
    uint8_t *(*tx_reserve)(struct wire_port *port, size_t len);
    /* Sends the first len bytes of what was reserved; len 0 gives the credit back. What is
     * shorter than an Ethernet header does not go out. flags: of those that the port offers. */
    void (*tx_commit)(struct wire_port *port, size_t len, unsigned flags);
    /* Takes up to max waiting frames; returns how many. They are delivered to the client, but for
     * those that a check refuses (rx_malformed). */
    unsigned (*poll)(struct wire_port *port, unsigned max);
    bool (*link_up)(struct wire_port *port);
    void (*close)(struct wire_port *port);

    /* The rest may be NULL; the wrappers below say what that means. */
    uint8_t *(*tx_reserve_to)(struct wire_port *port, const uint8_t dmac[6], size_t len);
    unsigned (*tx_credit_class)(struct wire_port *port);
    uint64_t (*tx_credits)(struct wire_port *port);
    void (*tx_flush)(struct wire_port *port);
    void (*owe)(struct wire_port *port, bool owes);
    bool (*is_paused)(struct wire_port *port, const uint8_t dmac[6], struct wire_pause *pause);
    bool (*knows)(struct wire_port *port, const uint8_t mac[6]);
    bool (*watch_hosts)(struct wire_port *port);
    uint64_t (*host_at)(struct wire_port *port, const uint8_t mac[6]);
    bool (*has_ended)(struct wire_port *port, uint64_t host);
    int (*fd)(struct wire_port *port);
    void (*fd_event)(struct wire_port *port);
    void (*set_busy)(struct wire_port *port, bool busy);
    void (*get_stats)(struct wire_port *port, struct wire_stats *stats);
};

/* The head of every backend's own structure. */
struct wire_port {
    const struct wire_port_ops *ops;
    const struct wire_client *client; /* NULL: nobody listens */
    void *opaque;                     /* first argument of the client's callbacks */
    unsigned offers;                  /* enum wire_frame_flags that frames may be sent with */
    bool far; /* another processor reads a frame where it was built, as a rule */
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
 * The same for a frame whose destination is known: such a frame can be built where the receiver
 * will read it, and it waits for this receiver's credit only. dmac must be what the frame gets as
 * its destination address.
 */
static inline uint8_t *wire_tx_reserve_to(struct wire_port *port, const uint8_t dmac[6], size_t len)
{
    return port->ops->tx_reserve_to ? port->ops->tx_reserve_to(port, dmac, len)
                                    : port->ops->tx_reserve(port, len);
}

/*
 * The class of the credit that a reservation waits for that has just failed; and, from within
 * tx_ready, the classes in which there is credit again, a bit for each. What waits for another one
 * would wait again. A class may be shared, so tx_ready may come in vain. A backend that does not
 * tell has class 0, and with tx_ready there is credit in all.
 */
static inline unsigned wire_tx_credit_class(struct wire_port *port)
{
    return port->ops->tx_credit_class ? port->ops->tx_credit_class(port) : 0;
}

static inline uint64_t wire_tx_credits(struct wire_port *port)
{
    return port->ops->tx_credits ? port->ops->tx_credits(port) : ~0ull;
}

static inline void wire_tx_commit(struct wire_port *port, size_t len)
{
    port->ops->tx_commit(port, len, 0);
}

/* The same with flags: WIRE_MORE, and such as port->offers. */
static inline void wire_tx_commit_as(struct wire_port *port, size_t len, unsigned flags)
{
    port->ops->tx_commit(port, len, flags);
}

/* After the last of some frames that were sent with WIRE_MORE, and at the end of a turn: what was
 * to be sent in answer to frames of the last wire_poll() has been. (Else the next poll says so.) */
static inline void wire_tx_flush(struct wire_port *port)
{
    if (port->ops->tx_flush) {
        port->ops->tx_flush(port);
    }
}

/* Until it is told otherwise the end of a turn does not mean that what was taken has been answered:
 * the owner has work of it left. With false all that was taken counts as answered. Who says the
 * one must come to say the other, for a peer whose frame was lost waits for that. */
static inline void wire_owe(struct wire_port *port, bool owes)
{
    if (port->ops->owe) {
        port->ops->owe(port, owes);
    }
}

/*
 * Whether an answer to what was sent to dmac cannot be expected yet. When first asked (*pause all
 * zero) the port notes in *pause what is on the way, there and back; it is true, then and whenever
 * asked again, until the receiver has taken all of that, the turn in which it did has ended and its
 * owner owes nothing, and what of its frames waited here has been taken. False (and *pause all zero
 * again): that is so, or the receiver is dead or unknown, or the backend has no notion of it.
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

/* Whether somebody else who is on the link now has sent with this address. False also for a backend
 * that does not know. */
static inline bool wire_knows(struct wire_port *port, const uint8_t mac[6])
{
    return port->ops->knows && port->ops->knows(port, mac);
}

/* From now on host_ended is called; and those who have said the same are told of this host's end.
 * False: the backend cannot tell, or the machine has nothing left to tell it by. */
static inline bool wire_watch_hosts(struct wire_port *port)
{
    return port->ops->watch_hosts && port->ops->watch_hosts(port);
}

/* Who is at an address now, for wire_has_ended(); 0: its end will not be told. */
static inline uint64_t wire_host_at(struct wire_port *port, const uint8_t mac[6])
{
    return port->ops->host_at ? port->ops->host_at(port, mac) : 0;
}

/* Whether that host's process has ended, rather than closed its port. A system call. */
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

/* A descriptor for the owner's main loop to watch for reading, or -1: this port needs none. */
static inline int wire_fd(struct wire_port *port)
{
    return port->ops->fd ? port->ops->fd(port) : -1;
}

/* To be called when wire_fd() is readable: calls rx_ready and tx_ready as they are due. A call
 * too many does no harm. */
static inline void wire_fd_event(struct wire_port *port)
{
    if (port->ops->fd_event) {
        port->ops->fd_event(port);
    }
}

/* busy: the owner calls wire_poll() in a loop; the port need not arm itself. False (the state
 * after opening) arms it again at the next wire_poll(). */
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
