/* SPDX-License-Identifier: BSD-2-Clause */
/* Manages the pool of flights. An idle flight is found by a clock hand that goes round the pool. */
#include <stddef.h>
#include <string.h>
#include "model/core/ledger.h"
#include "model/rdma/rdma.h"
#include "model/rdma/requester_internal.h"
#include "model/rdma/vec_calc.h"
#include "model/rdma/wqe_source.h"

/* How many flights are examined before a new one is made; and how many if none can be made. */
#define LOOKS      16
#define LOOKS_MOST 1024

static bool flight_is_idle(const struct flight *flight)
{
    return flight->head == flight->tail && flight->queue == QUEUE_OPEN &&
           flight->recovery == RECOVERY_NONE && !flight->local.len;
}

static void flight_put(struct flight_pool *pool, struct flight *flight)
{
    flight->qp = NULL;
    flight->next = pool->free;
    pool->free = flight;
}

/* Makes one more free flight. */
static bool flight_make(struct hca *hca)
{
    struct flight_pool *pool = &hca->rdma->flights;
    struct flight *flight = ledger_alloc(&hca->memory, sizeof(*flight));

    if (!flight) {
        return false;
    }
    g_ptr_array_add(pool->all, flight);
    flight_put(pool, flight);
    return true;
}

/* Frees the flight of an idle queue. */
static bool flight_find_idle(struct hca *hca, unsigned looks)
{
    struct flight_pool *pool = &hca->rdma->flights;

    for (unsigned i = 0; i < MIN(looks, pool->all->len); i++) {
        struct flight *flight = pool->all->pdata[pool->hand++ % pool->all->len];

        if (flight->qp && flight_is_idle(flight)) {
            flight_leave(flight->qp);
            return true;
        }
    }
    return false;
}

static struct flight *flight_take(struct hca *hca)
{
    struct flight_pool *pool = &hca->rdma->flights;
    struct flight *flight;

    if (!pool->free && !flight_find_idle(hca, LOOKS) && !flight_make(hca)) {
        hca_spend(hca, LOOKS_MOST / HCA_PIECE_ENTRIES);
        flight_find_idle(hca, LOOKS_MOST);
    }
    flight = pool->free;
    if (flight) {
        pool->free = flight->next;
    }
    return flight;
}

struct flight *flight_get(struct qp *qp)
{
    struct flight *flight = qp->req.flight;

    if (flight) {
        return flight;
    }
    flight = flight_take(qp->hca);
    if (flight) {
        memset(flight, 0, offsetof(struct flight, ring));
        flight->qp = qp;
        flight->timer.fire = requester_timeout;
        flight->tx_line = &qp->hca->rdma->lines.tx[qp->obj.num % WQE_LINES];
        flight->rx_line = &qp->hca->rdma->lines.rx[qp->obj.num % WQE_LINES];
        flight->mask = MIN(wqe_source_max(qp), STARTED_MAX) - 1;
        flight->tx_psn = flight->sent_psn = flight->watched_psn = qp->req.next_psn;
        qp->req.flight = flight;
    }
    return flight;
}

void flight_leave(struct qp *qp)
{
    struct flight *flight = qp->req.flight;

    if (flight) {
        requester_forget_read(qp);
        ledger_free(&qp->hca->memory, flight->calc, sizeof(*flight->calc));
        flight->calc = NULL;
        requester_forget_lines(qp);
        hca_timer_stop(qp->hca, &flight->timer);
        flight_put(&qp->hca->rdma->flights, flight);
        qp->req.flight = NULL;
    }
}

bool flight_reserve(struct hca *hca)
{
    while (hca->rdma->flights.all->len < FLIGHTS_LEAST) {
        if (!flight_make(hca)) {
            return false;
        }
    }
    return true;
}

void flight_pool_empty(struct hca *hca)
{
    GPtrArray *all = hca->rdma->flights.all;

    for (unsigned i = 0; i < all->len; i++) {
        struct flight *flight = all->pdata[i];

        g_assert(!flight->qp);
        ledger_free(&hca->memory, flight, sizeof(*flight));
    }
    g_ptr_array_set_size(all, 0);
    hca->rdma->flights.free = NULL;
}
