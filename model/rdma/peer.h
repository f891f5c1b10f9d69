/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The other end of a connection, as the local QP knows it: its identity, the path to it, and all
 * that the responder keeps about its requests. A QP of a connected service has one peer. A QP that
 * takes datagrams also has one: it stands for all senders.
 */
#ifndef HCASIM_MODEL_PEER_H
#define HCASIM_MODEL_PEER_H

#include "model/core/hca.h"
#include "model/port/vport.h"
#include "model/rdma/responder.h"
#include "prm/prm.h"
#include "wire/encap/roce.h"

struct early;
struct limiter;
struct qp;

struct peer {
    struct qp *qp;         /* the QP whose peer it is */
    uint32_t qpn;          /* number of the peer's QP: qpc.remote_qpn */
    struct roce_addr path; /* path to it, for connected services; datagrams use the WQE's AV */
    uint32_t session;      /* DC: session of the packets in both directions */
    bool path_gone;        /* the entry of the RoCE address table cannot serve the path */
    uint32_t path_version; /* port.gid_version when the path was looked up */
    struct responder resp;
    struct early *early;     /* NULL: early packets are dropped (model/rdma/early.h) */
    struct limiter *limiter; /* NULL: no rate limit (model/rdma/reaction_point.h) */
};

/*
 * The owner of a peer: a QP, which has one peer, or a DCT, which has one for each initiator
 * (model/rdma/dct.h). To its peers a DCT looks like a QP without queues. The responder calls these
 * functions where the two owners differ.
 */
struct peer_owner {
    uint8_t event_queue; /* the queue type in events about its number: PRM_EVENT_QUEUE_TYPE_ */
    /* A request, or its answer, has failed. A QP then goes to ERR; a DCT goes on without this peer.
     * event: the PRM_EVENT_TYPE_ to raise if no completion has reported the fault, or 0. */
    void (*fatal)(struct peer *peer, uint8_t event);
    /* Tells the pager about a page that the peer's request misses; about one page at a time. False:
     * the page will not come. */
    bool (*park)(struct peer *peer);
    /* The page is there, or (error) it will never be. */
    void (*resume)(struct qp *qp, bool error);
    /* Flushes what the QP has queued or holds for its peer, when it is in ERR. */
    void (*flush)(struct qp *qp);
    /* See peer_path_update(). */
    void (*path_update)(struct peer *peer);
    /* Sets what a packet to the peer carries beside its path; NULL: nothing. */
    void (*address)(const struct peer *peer, struct roce_packet *pkt);
    /* Whether the device can fetch what a matched request, in one packet, asks for; fetch() does
     * it, into the taken entry (model/rdma/tags.h). */
    bool (*can_fetch)(const struct peer *peer, const struct roce_packet *pkt);
    void (*fetch)(struct peer *peer, const struct roce_packet *pkt, uint16_t handle);
};

extern const struct peer_owner qp_owner;  /* model/rdma/qp_owner.c */
extern const struct peer_owner dct_owner; /* model/rdma/dct.c */

/* The addresses of a connected QP's packets, from the context's ads. */
enum syn peer_find_path(const struct hca *hca, const struct prm_ads *ads, struct roce_addr *path);
/* Stores a path that was just looked up. */
void peer_set_path(struct peer *peer, const struct roce_addr *path);

/* Updates a peer after the RoCE address table has changed since its path was looked up. A QP's
 * context names its source by index (ads.src_addr_index), like the address vector of a datagram. So
 * connected QPs send from the present address of the entry, and are reached at it. Without an
 * address a QP sends nothing: its WQEs fail with LOCAL_QP_OP_ERR, like those of a datagram QP, and
 * its responses are dropped. */
void peer_path_update(struct peer *peer);

/* Called before a peer's path is used. hca is that of the peer's QP. */
static inline void peer_path_check(struct peer *peer, const struct hca *hca)
{
    if (G_UNLIKELY(peer->path_version != hca->vport->gid_version)) {
        peer_path_update(peer);
    }
}

#endif
