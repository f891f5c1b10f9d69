/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements the store of early packets; see model/rdma/early.h. */
#include <string.h>
#include "model/rdma/early.h"
#include "model/rdma/requester.h"
#include "model/rdma/rdma.h"
#include "model/rdma/responder_internal.h"

/* -- the packets of a function ----------------------------------------------------------------- */

bool early_pool_fill(struct hca *hca)
{
    struct early_pool *pool = &hca->rdma->early;

    while (pool->made < EARLY_PACKETS) {
        struct early_packet *early = ledger_alloc(&hca->memory, sizeof(*early));

        if (!early) {
            /* the pool was never full, so no connection has a packet of it */
            early_pool_empty(hca);
            return false;
        }
        early->next = pool->free;
        pool->free = early;
        pool->made++;
    }
    return true;
}

void early_pool_empty(struct hca *hca)
{
    struct early_pool *pool = &hca->rdma->early;

    while (pool->free) {
        struct early_packet *early = pool->free;

        pool->free = early->next;
        pool->made--;
        ledger_free(&hca->memory, early, sizeof(*early));
    }
    g_assert(pool->made == 0);
}

void early_give(struct peer *peer, struct early_packet *early)
{
    struct early_pool *pool = &peer->qp->hca->rdma->early;

    early->next = pool->free;
    pool->free = early;
}

/* -- the lists of a connection ----------------------------------------------------------------- */

struct early_packet *early_take(struct peer *peer, struct early_list *list)
{
    struct early_packet *early = list->first;

    list->first = early->next;
    peer->early->num--;
    return early;
}

const struct roce_packet *early_first(struct peer *peer, struct early_list *list, uint32_t psn)
{
    while (list->first && psn_diff(list->first->pkt.psn, psn) < 0) {
        early_give(peer, early_take(peer, list));
    }
    return list->first ? &list->first->pkt : NULL;
}

static struct early_packet **early_place(struct early_list *list, uint32_t psn)
{
    struct early_packet **place = &list->first;

    while (*place && psn_diff((*place)->pkt.psn, psn) < 0) {
        place = &(*place)->next;
    }
    return place;
}

static void early_watch(struct early *e)
{
    if (!e->look.prev) {
        hca_wait_late(e->peer->qp->hca, &e->look);
    }
}

bool early_keep(struct peer *peer, struct early_list *list, const struct roce_packet *pkt)
{
    struct early_pool *pool = &peer->qp->hca->rdma->early;
    struct early_packet **place = early_place(list, pkt->psn);
    struct early_packet *early = pool->free;

    if (*place && (*place)->pkt.psn == pkt->psn) {
        return true;
    }
    if (!early || peer->early->num == EARLY_MOST || pkt->payload_len > EARLY_PAYLOAD) {
        return false;
    }
    pool->free = early->next;
    early->looks = 0;
    early->pkt = *pkt;
    early->pkt.payload = early->payload;
    if (pkt->payload_len) {
        memcpy(early->payload, pkt->payload, pkt->payload_len);
    }
    early->next = *place;
    *place = early;
    peer->early->num++;
    early_watch(peer->early);
    return true;
}

void early_forget(struct peer *peer)
{
    struct early *e = peer->early;
    struct early_list *lists[2];

    if (!e) {
        return;
    }
    lists[0] = &e->requests;
    lists[1] = &e->responses;
    for (size_t i = 0; i < G_N_ELEMENTS(lists); i++) {
        while (lists[i]->first) {
            early_give(peer, early_take(peer, lists[i]));
        }
    }
    hca_unschedule(&e->due);
    hca_unschedule_late(peer->qp->hca, &e->look);
}

/* -- missing packets -------------------------------------------------------------------------- */

/* A target whose CQ has failed takes no packets any more. Its connections stay, but have no use for
 * early packets. */
static bool early_is_over(struct peer *peer)
{
    if (peer->qp->state != PRM_QP_STATE_ERR) {
        return false;
    }
    early_forget(peer);
    return true;
}

/* Forgets the packets that have waited for too long. */
static void early_grow_old(struct peer *peer, struct early_list *list)
{
    struct early_packet **place = &list->first;

    while (*place) {
        struct early_packet *early = *place;

        if (++early->looks > EARLY_LOOKS) {
            *place = early->next;
            peer->early->num--;
            early_give(peer, early);
        } else {
            place = &early->next;
        }
    }
}

/* Whether the first packet has waited since the last look, and still waits for the same missing
 * PSN. */
static bool early_is_stuck(struct early_list *list, uint32_t missing)
{
    bool stuck = list->first && list->first->looks > 1 && list->missing == missing;

    list->missing = missing;
    return stuck;
}

static void early_look(struct hca *hca, struct work *work)
{
    struct early *e = (struct early *)((char *)work - offsetof(struct early, look));
    struct peer *peer = e->peer;
    bool requests, responses;

    if (early_is_over(peer)) {
        return;
    }
    early_grow_old(peer, &e->requests);
    early_grow_old(peer, &e->responses);
    requests = early_is_stuck(&e->requests, peer->resp.epsn);
    responses = early_is_stuck(&e->responses, peer->qp->req.unacked_psn);
    if (requests && peer->resp.state == RESPONDER_EXPECTS) {
        responder_rx_gap(peer);
    }
    if (responses) {
        requester_rx_lost(peer->qp);
    }
    if (e->num) {
        hca_wait_late(hca, work);
    }
}

static void early_due(struct hca *hca, struct work *work)
{
    struct early *e = (struct early *)((char *)work - offsetof(struct early, due));

    (void)hca;
    if (!early_is_over(e->peer)) {
        responder_rx_early(e->peer);
    }
}

/* -- life -------------------------------------------------------------------------------------- */

bool early_init(struct peer *peer)
{
    if (peer->early) {
        return true;
    }
    if (!early_pool_fill(peer->qp->hca)) {
        return false;
    }
    peer->early = qp_alloc(peer->qp, sizeof(*peer->early));
    if (!peer->early) {
        return false;
    }
    peer->early->peer = peer;
    peer->early->due.run = early_due;
    peer->early->look.run = early_look;
    return true;
}

void early_clear(struct peer *peer)
{
    if (peer->early) {
        early_forget(peer);
        qp_dealloc(peer->qp, peer->early, sizeof(*peer->early));
        peer->early = NULL;
    }
}
