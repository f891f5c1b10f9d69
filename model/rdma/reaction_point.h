/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The reaction point (DCQCN, SIGCOMM 2015): who is told of congestion on the way to a peer sends
 * more slowly, and speeds up again as no more is told. docs/explanation/congestion.md has the rules
 * and parameters.
 *
 * A peer has a limiter from the first CNP about it on until it may be sent to at full speed again:
 * requests and READ data of a connection, READ data of a session of a DC target. One without pays a
 * branch a packet. The limiter goes by the clock when somebody looks at it: it needs no timer but
 * that of a packet that waits.
 */
#ifndef HCASIM_MODEL_REACTION_POINT_H
#define HCASIM_MODEL_REACTION_POINT_H

#include "model/port/cong.h"
#include "model/rdma/qp.h"

/* Rates are kb/s, times clock_ns(). */
struct limiter {
    struct peer *peer;
    struct hca_timer timer;   /* a packet may be due */
    uint32_t current, target; /* rate, and what it goes back to */
    uint32_t alpha;           /* how congested the way seems: ALPHA_ONE is entirely */
    bool cnp_seen;            /* since alpha was last brought up to date */
    bool decrease_due;        /* by a CNP that came too soon after the last one */
    uint32_t by_time;         /* increases since the last decrease: by time, */
    uint32_t by_bytes;        /* and by bytes */
    uint32_t bytes;           /* sent since the last one by bytes */
    uint64_t alpha_at, decreased_at, increased_at; /* when each was last done */
    int64_t debt;     /* millionths of a bit that were sent too early; below 0: credit, */
    uint64_t debt_at; /* as of then */
};

/* A CNP that has come to this function. peer: NULL, or of whom it tells. */
void reaction_rx_cnp(struct hca *hca, struct peer *peer, const struct roce_packet *pkt);

/* Of a peer that has a limiter: it lets a packet go, or looks again in time. */
bool reaction_is_time(struct peer *peer);
/* Likewise: the packet has left, with so many bytes from Ethernet header to ICRC. */
void reaction_note_sent(struct peer *peer, size_t bytes);
/* The peer has no limiter any more, and what waits for it looks again: whoever frees the peer takes
 * its work off all lists afterwards. */
void reaction_end(struct peer *peer);

/* Before a packet of data. False: not yet; the work that sends to the peer runs when it is. */
static inline bool reaction_may_send(struct peer *peer)
{
    return G_LIKELY(!peer->limiter) || reaction_is_time(peer);
}

#endif
