/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The reaction point (DCQCN, SIGCOMM 2015): a QP that receives CNPs sends more slowly to that peer,
 * and speeds up again while no CNPs come. docs/explanation/congestion.md has the rules and
 * parameters.
 *
 * A peer has a limiter from its first CNP until the QP may send to it at full speed again. The
 * limiter holds requests and READ data of a connection, and READ data of a session of a DC target.
 * A peer without a limiter costs one branch for each packet. The limiter's state is brought up to
 * date whenever it is used. Therefore its only timer is for a packet that waits.
 */
#ifndef HCASIM_MODEL_REACTION_POINT_H
#define HCASIM_MODEL_REACTION_POINT_H

#include "model/core/bucket.h"
#include "model/port/cong.h"
#include "model/rdma/qp.h"

/* State of a rate limiter. Rates are in kb/s, times are clock_ns(). */
struct limiter {
    struct peer *peer;
    struct hca_timer timer;   /* when the waiting packet may be due */
    uint32_t current, target; /* the rate, and the rate that increases lead back to */
    uint32_t alpha;    /* estimated congestion of the path; ALPHA_ONE is complete congestion */
    bool cnp_seen;     /* a CNP has come since the last update of alpha */
    bool decrease_due; /* a CNP came too soon after the last decrease, which is still to be done */
    uint32_t by_time;  /* increases by time since the last decrease */
    uint32_t by_bytes; /* increases by bytes since the last decrease */
    uint32_t bytes;    /* bytes sent since the last increase by bytes */
    /* when alpha was last updated; the last decrease; the last increase */
    uint64_t alpha_at, decreased_at, increased_at;
    struct bucket bucket;
};

/* Takes a CNP. peer: the peer that the CNP is about, or NULL. */
void reaction_rx_cnp(struct hca *hca, struct peer *peer, const struct roce_packet *pkt);

/* For a peer with a limiter: whether a packet may be sent now. If not, the limiter's timer runs the
 * sender's work later. */
bool reaction_is_time(struct peer *peer);
/* For a peer with a limiter: a packet was sent, with this many bytes from Ethernet header to
 * ICRC. */
void reaction_note_sent(struct peer *peer, size_t bytes);
/* Frees the peer's limiter, and schedules the work that waits for it. A caller that frees the peer
 * must take the peer's work off all lists afterwards. */
void reaction_end(struct peer *peer);

/* Called before each packet of data. False: not yet; the work that sends to the peer runs when it
 * may. */
static inline bool reaction_may_send(struct peer *peer)
{
    return G_LIKELY(!peer->limiter) || reaction_is_time(peer);
}

#endif
