/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The filter that causes the faults of a set (wire/fault/fault.h) in the frames of a port, in both
 * directions, and takes its link down.
 *
 * Frames of ARP and neighbour discovery have no faults, except those of a link that is down and of
 * a partition by MAC address: a host whose address cannot be resolved could send nothing that may
 * be lost.
 *
 * Delayed frames wait in a store, one for each direction. The filter owns them. It sends them when
 * they are due: on the thread that polls, or on a thread that waits for wire_fd(), which a timer
 * makes readable (or wake_at()). It hands received frames out in wire_poll(). If the receiver has
 * no credit then, a frame waits for the credit; frames to other receivers pass it. A store holds 8
 * MiB. If it is full, reservations fail for lack of credit until it is half empty, and nothing is
 * taken from the inner port, so nothing is lost that was not meant to be lost.
 */
#ifndef HCASIM_WIRE_FAULT_PORT_H
#define HCASIM_WIRE_FAULT_PORT_H

#include "wire/fault/fault.h"
#include "wire/port.h"

struct wire_fault_options {
    /* The capture among the filters that inner consists of, which gets comments and lost frames
     * (wire/capture.h), or NULL. */
    struct wire_port *capture;
    /* Asks for a call of wire_fd_event() at a time of the set's clock; the last call counts, and
     * UINT64_MAX asks for none. NULL: the set's clock is CLOCK_MONOTONIC, and the port's descriptor
     * becomes readable at that time. */
    void (*wake_at)(void *wake_opaque, uint64_t time_ns);
    void *wake_opaque;
    bool owns_set; /* closing the port frees the set */
};

struct wire_fault_stats {
    uint64_t frames; /* of both directions, which rules were asked about */
    uint64_t lost, duplicated, reordered, corrupted, marked;
    uint64_t delayed; /* frames that were kept for delay, jitter and rate */
    uint64_t unsent;  /* delayed frames that had no credit at the end (wire_fault_settle()) */
};

/*
 * Wraps inner. set: lives as long as the port, and may have no rules yet. options: NULL is all
 * zero. A result of NULL means that there are no descriptors (*err, of WIRE_ERROR); inner is then
 * as before. Otherwise the new port owns inner.
 */
struct wire_port *wire_fault_new(struct wire_port *inner, struct fault_set *set,
                                 const struct wire_fault_options *options, GError **err);

/* The rules of a port that is such a filter; NULL: it is none. */
struct fault_set *wire_fault_rules(struct wire_port *port);

void wire_fault_get_stats(const struct wire_port *port, struct wire_fault_stats *stats);

/* The client sends no more: delayed frames leave at once, as frames on a cable still arrive after
 * their sender has ended. Frames without credit are dropped and counted (unsent), and so are
 * received frames that were not handed out. Closing the port does the same. */
void wire_fault_settle(struct wire_port *port);

#endif
