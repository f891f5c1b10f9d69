/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A filter that causes faults in what its client sends: it loses, duplicates, corrupts, delays and
 * reorders frames, as tc-netem(8) does where an interface sends. Frames that the client receives
 * pass unchanged. If both directions of a link shall have faults, both ends need a filter.
 *
 * Frames of ARP and neighbour discovery have no faults: a host whose address cannot be resolved
 * could send nothing that may be lost.
 *
 * Each kind of fault draws from a random stream of its own, in the order in which the client sends.
 * So the same seed, stream and frames give the same decisions, and a change of one kind of fault
 * changes nothing for the others. How many frames a client sends, and when, depends on real time as
 * soon as it retransmits.
 *
 * Delayed frames wait in a store. The filter owns them: it sends them when they are due, on the
 * thread that polls, or on a thread that waits for wire_fd(), which a timer makes readable. If the
 * receiver has no credit then, a frame waits for the credit; frames to other receivers pass it. The
 * store holds STORE_BYTES (faults.c). If it is full, reservations fail for lack of credit until it
 * is half empty, so nothing is lost that was not meant to be lost.
 */
#ifndef HCASIM_WIRE_FAULTS_H
#define HCASIM_WIRE_FAULTS_H

#include <glib.h>
#include "wire/port.h"

struct wire_faults_config {
    /* Frames with this fault, per million. */
    unsigned loss;
    unsigned duplication;
    unsigned reorder; /* frames that are held back while later frames pass them */
    /* Frames with one wrong bit, which the ICRC detects. A frame that is not RoCE has no ICRC: it
     * is lost instead, as the line's own check (FCS) would drop it. */
    unsigned corruption;
    uint64_t delay_ns;  /* of each frame */
    uint64_t jitter_ns; /* added to the delay, at most; frames keep their order */
    uint64_t seed, stream;
};

struct wire_faults_stats {
    uint64_t frames; /* sent by the client, and not spared */
    uint64_t lost, duplicated, reordered, corrupted;
    uint64_t delayed; /* frames that were kept for delay and jitter */
    uint64_t unsent;  /* delayed frames that had no credit at the end (wire_faults_settle()) */
};

/* Whether any fault is set. */
bool wire_faults_any(const struct wire_faults_config *config);

/*
 * Wraps inner. capture: the capture among the filters that inner consists of, which gets comments
 * and lost frames (wire/capture.h), or NULL. A result of NULL means that there are no descriptors
 * (*err, of WIRE_ERROR); inner is then as before. Otherwise the new port owns inner.
 */
struct wire_port *wire_faults_new(struct wire_port *inner, const struct wire_faults_config *config,
                                  struct wire_port *capture, GError **err);

void wire_faults_get_stats(const struct wire_port *port, struct wire_faults_stats *stats);

/* The client sends no more: delayed frames leave at once, as frames on a cable still arrive after
 * their sender has ended. Frames without credit are dropped and counted (unsent). Closing the port
 * does the same. */
void wire_faults_settle(struct wire_port *port);

#endif
