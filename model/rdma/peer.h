/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The other end of a connection, as the QP here knows it: who it is and how it is reached, and all
 * that the responder keeps of its requests. A QP of a connected service has one peer. So has one
 * that takes datagrams: whoever sends to it.
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
    struct qp *qp;         /* whose peer it is */
    uint32_t qpn;          /* its own QP's number: qpc.remote_qpn */
    struct roce_addr path; /* towards it: connected services; datagrams use the WQE's AV */
    uint32_t session;      /* DC: of the packets in both directions */
    bool path_gone;        /* the entry of the RoCE address table does not serve the path */
    uint32_t path_version; /* port.gid_version when the path was looked up */
    struct responder resp;
    struct early *early;     /* NULL: packets that come early are dropped (model/rdma/early.h) */
    struct limiter *limiter; /* NULL: it is sent to at full speed (model/rdma/reaction_point.h) */
};

/*
 * Whose peer it is: a QP, which has one, or a DCT, which has one for each initiator
 * (model/rdma/dct.h) and to them is a QP without queues. What the responder cannot do without
 * knowing which, it asks for here.
 */
struct peer_owner {
    uint8_t event_queue; /* what an event says of its number: PRM_EVENT_QUEUE_TYPE_ */
    /* A request has failed, or its answer. A QP is in ERR then; a DCT goes on, without this peer.
     * event: PRM_EVENT_TYPE_ of what no completion has told, or 0. */
    void (*fatal)(struct peer *peer, uint8_t event);
    /* The pager is to be told of a page that is missing for the peer; once of one at a time. */
    void (*park)(struct peer *peer);
    /* The page is there, or never will be: error. */
    void (*resume)(struct qp *qp, bool error);
    /* It is in ERR: what it has queued, or holds for its peer, is flushed. */
    void (*flush)(struct qp *qp);
    /* See peer_path_update(). */
    void (*path_update)(struct peer *peer);
    /* What a packet to the peer carries beside its path; NULL: nothing. */
    void (*address)(const struct peer *peer, struct roce_packet *pkt);
    /* Whether the device can fetch what a matched request, in one packet, asks it to; it does, into
     * the taken entry (model/rdma/tags.h). */
    bool (*can_fetch)(const struct peer *peer, const struct roce_packet *pkt);
    void (*fetch)(struct peer *peer, const struct roce_packet *pkt, uint16_t handle);
};

extern const struct peer_owner qp_owner;  /* model/rdma/qp_owner.c */
extern const struct peer_owner dct_owner; /* model/rdma/dct.c */

/* The addresses of a connected QP's packets, as its context's ads says. */
enum syn peer_find_path(const struct hca *hca, const struct prm_ads *ads, struct roce_addr *path);
/* It was found just now. */
void peer_set_path(struct peer *peer, const struct roce_addr *path);

/* The RoCE address table has changed since the path was looked up. A QP's context names its source
 * by index (ads.src_addr_index), as a datagram's address vector does: connected QPs send from, and
 * are reached at, what the entry says now. Without an address a QP sends nothing: its WQEs fail
 * with LOCAL_QP_OP_ERR, as those of a datagram QP do, and its responses are dropped. */
void peer_path_update(struct peer *peer);

/* Before a peer's path is used. hca: of its QP. */
static inline void peer_path_check(struct peer *peer, const struct hca *hca)
{
    if (G_UNLIKELY(peer->path_version != hca->vport->gid_version)) {
        peer_path_update(peer);
    }
}

#endif
