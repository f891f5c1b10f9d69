/* SPDX-License-Identifier: BSD-2-Clause */
/* Handles the peer of a QP: see struct peer_owner. */
#include "model/rdma/dci.h"
#include "model/rdma/tags.h"

static void qp_owner_fatal(struct peer *peer, uint8_t event)
{
    if (event) {
        qp_fatal(peer->qp, event);
    } else {
        qp_set_state(peer->qp, PRM_QP_STATE_ERR);
    }
}

static bool qp_owner_park(struct peer *peer)
{
    struct hca *hca = peer->qp->hca;

    if (!hca->pager->fault(hca->pager, peer->qp, FAULT_RESPONDER, &hca->fault)) {
        return false;
    }
    peer->resp.paging = PAGING_PARKED;
    return true;
}

static void qp_owner_resume(struct qp *qp, bool error)
{
    responder_resume(&qp->peer, error);
}

static void qp_owner_flush(struct qp *qp)
{
    requester_flush(qp);
    responder_flush(&qp->peer);
    rq_flush_start(qp);
    if (qp->srq || qp_is_target(qp)) {
        /* IBTA 11.6.3.1: this QP will take no more WQEs from the SRQ. */
        qp_event(qp, PRM_EVENT_TYPE_SRQ_LAST_WQE);
    }
}

static void qp_owner_path_update(struct peer *peer)
{
    struct qp *qp = peer->qp;
    struct roce_addr path;

    if (qp->dci) {
        dci_path_update(qp);
        return;
    }
    if (!qp->service->connected || qp->state == PRM_QP_STATE_RST ||
        qp->state == PRM_QP_STATE_INIT) {
        return;
    }
    peer->path_gone =
        peer_find_path(qp->hca, PRM_PTR(qpc, qp->qpc, primary_address_path), &path) != SYN_OK;
    if (!peer->path_gone) {
        path.udp_sport = peer->path.udp_sport;
        peer->path = path;
    }
}

/* The QP's own send queue fetches. */
static bool qp_owner_can_fetch(const struct peer *peer, const struct roce_packet *pkt)
{
    return peer->qp->req.device;
}

static void qp_owner_fetch(struct peer *peer, const struct roce_packet *pkt, uint16_t handle)
{
    rendezvous_begin(peer->qp, &peer->resp.tags->rendezvous, handle);
}

const struct peer_owner qp_owner = {
    .event_queue = PRM_EVENT_QUEUE_TYPE_QP,
    .fatal = qp_owner_fatal,
    .park = qp_owner_park,
    .resume = qp_owner_resume,
    .flush = qp_owner_flush,
    .path_update = qp_owner_path_update,
    .can_fetch = qp_owner_can_fetch,
    .fetch = qp_owner_fetch,
};
