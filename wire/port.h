/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One end of a link: where frames leave and arrive.
 *
 * A port is a table of operations that a backend implements (in-process pair, shared memory, an
 * owner's own such as a QEMU netdev) and that filters (capture, faults) wrap. The side that uses
 * a port, its client, hands over a table of callbacks. Frames are whole Ethernet frames without
 * preamble and FCS, at most WIRE_FRAME_MAX bytes.
 *
 * Nothing is lost inside a lossless backend: when the peer has no room, wire_tx_reserve() says
 * so and the client is told when to try again, as a NIC is by priority flow control.
 */
#ifndef HCASIM_WIRE_PORT_H
#define HCASIM_WIRE_PORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Ethernet header with two VLAN tags + 9978 bytes of MTU, rounded up to a slot size. */
#define WIRE_FRAME_MAX 10240

struct wire_port;

struct wire_client {
    /* A frame has arrived; it is valid during the call only. Called from wire_poll() only. */
    void (*rx)(void *client, const uint8_t *frame, size_t len);
    /* Room is back after a wire_tx_reserve() that found none. */
    void (*tx_ready)(void *client);
    /* The cable was plugged in or pulled out (wire_link_up() tells which). */
    void (*link_change)(void *client);
    /* Frames may be waiting: call wire_poll() soon. Called from wherever the backend learns it,
     * on the owner's thread. */
    void (*rx_ready)(void *client);
};

struct wire_port_ops {
    /* Where a frame of up to len bytes may be built, or NULL if there is no room now. */
    uint8_t *(*tx_reserve)(struct wire_port *port, size_t len);
    /* Sends the first len bytes of what was reserved; len 0 gives the room back. */
    void (*tx_commit)(struct wire_port *port, size_t len);
    /* Delivers up to max waiting frames to the client; returns how many. */
    unsigned (*poll)(struct wire_port *port, unsigned max);
    bool (*link_up)(struct wire_port *port);
    void (*close)(struct wire_port *port);
};

/* The head of every backend's own structure. */
struct wire_port {
    const struct wire_port_ops *ops;
    const struct wire_client *client; /* NULL: nobody listens */
    void *opaque;                     /* first argument of the client's callbacks */
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

static inline void wire_tx_commit(struct wire_port *port, size_t len)
{
    port->ops->tx_commit(port, len);
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

#endif
