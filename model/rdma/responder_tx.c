/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the responder sends: ACKs, NAKs, READ data, atomic results; and, in ERR, flushing.
 *
 * Answers go out in the order of the requests, so that no ACK overtakes the data of an earlier
 * READ (the requester would take it for an implied NAK). An ACK at the end of the queue is replaced
 * by a newer one: an ACK acknowledges everything before it, a NAK too (IBTA 9.7.5.1). For the same
 * reason the ACK that answers a duplicate says nothing beside a NAK that waits there. So between
 * two READs or atomics there is one ACK at most, and the queue's size is bounded by the number of
 * those.
 *
 * The queue's owner is the work item: it sends until the queue is empty, its share of the turn is
 * used up (it reschedules itself) or the wire has no room (the port wakes it).
 *
 * An ACK costs the peer as much as a small request costs this side. So while requests come without
 * waiting for their ACKs, an ACK waits for the next ones, for a few looks at the wire within its
 * turn (IBTA 9.7.5.1.2 lets one ACK answer several requests). A peer that waits for each ACK has it
 * at once.
 *
 * A receive queue has no doorbell register, so nothing tells the device about WQEs posted in ERR,
 * which software waits for all the same: to drain a queue, the kernel posts one more WQE after the
 * transition and waits for its completion. The device looks at the doorbell record again at once,
 * and then more and more seldom; a QP where it found nothing for long waits with all others like it
 * (hca_wait_late()), so that QPs left behind in ERR cost next to nothing however many there are.
 */
#include <stddef.h>
#include <string.h>
#include "model/rdma/responder_internal.h"

#define FLUSH_DELAY_MIN 1000000ull  /* ns */
#define FLUSH_DELAY_MAX 32000000ull /* looks of its own up to this */

/* When an ACK waits for company. */
#define STREAM      8  /* requests of late that had not waited for an ACK */
#define STREAM_MOST 16 /* so many are remembered */
#define ACK_PACKETS 16 /* it covers this many at most: a sender's window has several times that */
#define ACK_LOOKS   8  /* in a row that bring it nothing more */

static struct response *queue_at(struct responder_state *s, unsigned i)
{
    return &s->queue[(s->head + i) % s->queue_size];
}

static void pop(struct responder_state *s)
{
    struct response *r = queue_at(s, 0);

    if (r->kind != RESPONSE_ACK) {
        s->answers--;
        s->fresh -= !r->duplicate;
    }
    s->acked_psn = r->psn;
    s->head = (s->head + 1) % s->queue_size;
    s->count--;
}

/* The queue is an ACK alone, of a stream that may go on. */
static bool may_wait(struct responder_state *s)
{
    const struct response *r = queue_at(s, 0);

    return s->count == 1 && r->kind == RESPONSE_ACK && r->syndrome == AETH_ACK &&
           s->stream >= STREAM && psn_diff(r->psn, s->acked_psn) < ACK_PACKETS;
}

static void push(struct qp *qp, const struct response *response)
{
    struct responder_state *s = qp->resp.s;

    g_assert(s->count < s->queue_size);
    *queue_at(s, s->count++) = *response;
    hca_schedule(qp->hca, &qp->resp.work);
}

static void queue_clear(struct responder_state *s)
{
    s->head = s->count = s->fresh = s->answers = 0;
}

void responder_ack(struct qp *qp, uint32_t psn, uint8_t syndrome)
{
    struct responder_state *s = qp->resp.s;
    struct response response = {
        .kind = RESPONSE_ACK,
        .syndrome = syndrome,
        .psn = psn & PSN_MASK,
        .msn = qp->resp.msn,
    };

    if (s->count && queue_at(s, s->count - 1)->kind == RESPONSE_ACK) {
        struct response *last = queue_at(s, s->count - 1);

        if (psn_diff(response.psn, last->psn) >= 0) {
            *last = response;
            s->stream = MIN(s->stream + 1, STREAM_MOST);
        }
    } else {
        s->ack_looks = 0;
        push(qp, &response);
    }
}

bool responder_has_room(struct qp *qp)
{
    struct responder_state *s = qp->resp.s;

    return s->answers < 2 * s->num_resources;
}

void responder_answer(struct qp *qp, const struct response *response)
{
    struct responder_state *s = qp->resp.s;

    s->answers++;
    s->fresh += !response->duplicate;
    push(qp, response);
}

/* -- sending ----------------------------------------------------------------------------------- */

/* Opcode of the next packet of a READ answer: FIRST, MIDDLE and LAST, or ONLY (IBTA 9.4.4). */
static uint8_t read_opcode(const struct response *r, uint32_t mtu)
{
    bool last = r->len <= mtu;

    if (r->started) {
        return last ? BTH_READ_RESP_LAST : BTH_READ_RESP_MIDDLE;
    }
    return last ? BTH_READ_RESP_ONLY : BTH_READ_RESP_FIRST;
}

static void fill_packet(const struct qp *qp, const struct response *r, struct roce_packet *pkt)
{
    uint8_t transport = qp->service->transport;

    pkt->addr = qp->path;
    pkt->migreq = true;
    pkt->pkey = qp->pkey;
    pkt->dest_qp = qp->remote_qpn;
    pkt->psn = r->psn;
    pkt->aeth.syndrome = AETH_ACK;
    pkt->aeth.msn = r->msn;
    switch (r->kind) {
    case RESPONSE_ACK:
        pkt->opcode = transport | BTH_ACK;
        pkt->aeth.syndrome = r->syndrome;
        break;
    case RESPONSE_READ:
        pkt->opcode = transport | read_opcode(r, qp->mtu);
        break;
    case RESPONSE_ATOMIC:
        pkt->opcode = transport | BTH_ATOMIC_ACK;
        pkt->atomic_ack = r->value;
        break;
    }
}

/* Sends one packet of what is first in the queue. False: the wire has no room. */
static bool send_one(struct qp *qp)
{
    struct responder_state *s = qp->resp.s;
    struct response *r = queue_at(s, 0);
    struct roce_packet pkt = {0};
    size_t len = r->kind == RESPONSE_READ ? MIN(r->len, qp->mtu) : 0;
    uint8_t *frame, *payload;

    if (qp->path_gone) {
        queue_clear(s);
        return true;
    }
    fill_packet(qp, r, &pkt);
    frame = port_tx_reserve(qp->hca, qp->path.dmac, roce_frame_len(&pkt, len));
    if (!frame) {
        return false;
    }
    payload = roce_build(frame, &pkt, len);
    if (len) {
        enum mem_result result =
            mkey_read(qp->hca, r->rkey, r->pdn, r->va, payload, len, MEM_REMOTE_READ);

        if (result != MEM_OK) {
            uint32_t psn = r->psn;

            /* What follows answers requests after this one, and those are not executed. */
            port_tx_commit(qp->hca, 0, PORT_NO_TD);
            queue_clear(s);
            responder_fail_answer(qp, verdict_of(result), psn);
            return true;
        }
    }
    port_tx_commit_roce(qp->hca, &pkt, len);
    if (r->kind == RESPONSE_READ && r->len > len) {
        r->started = true;
        r->psn = (r->psn + 1) & PSN_MASK;
        r->va += len;
        r->len -= (uint32_t)len;
    } else {
        pop(s);
    }
    return true;
}

/* What is sent next is an ACK that waits for another look at the wire. */
static bool waits_for_company(struct qp *qp)
{
    struct responder_state *s = qp->resp.s;
    uint32_t psn;

    if (!may_wait(s)) {
        return false;
    }
    psn = queue_at(s, 0)->psn;
    s->ack_looks = psn == s->ack_psn ? s->ack_looks : 0;
    s->ack_psn = psn;
    if (s->ack_looks++ < ACK_LOOKS) {
        return hca_wait_frames(qp->hca, &qp->resp.work);
    }
    s->stream /= 2;
    return false;
}

static void run(struct hca *hca, struct work *work)
{
    struct qp *qp = (struct qp *)((char *)work - offsetof(struct qp, resp.work));
    struct responder_state *s = qp->resp.s;

    if (waits_for_company(qp)) {
        return;
    }
    qp_path_check(qp);
    while (s->count) {
        if (!send_one(qp)) {
            hca_wait_tx(hca, work);
            return;
        }
        if (s->count && !hca_may_go_on(hca)) {
            hca_schedule(hca, work);
            return;
        }
    }
}

static void flush_run(struct hca *hca, struct work *work)
{
    struct responder_state *s =
        (struct responder_state *)((char *)work - offsetof(struct responder_state, flush_work));
    unsigned before = s->qp->rq.ci;

    if (qp_flush_rq(s->qp)) {
        hca_schedule(hca, work);
        return;
    }
    s->flush_delay = before == s->qp->rq.ci ? s->flush_delay * 2 : FLUSH_DELAY_MIN;
    if (s->flush_delay <= FLUSH_DELAY_MAX) {
        hca_timer_set(hca, &s->flush_timer, hca_now(hca) + s->flush_delay);
    } else {
        s->flush_delay = FLUSH_DELAY_MAX;
        hca_wait_late(hca, work);
    }
}

static void flush_again(struct hca *hca, struct hca_timer *timer)
{
    struct responder_state *s =
        (struct responder_state *)((char *)timer - offsetof(struct responder_state, flush_timer));

    hca_schedule(hca, &s->flush_work);
}

static void flush_stop(struct qp *qp)
{
    hca_timer_stop(qp->hca, &qp->resp.s->flush_timer);
    hca_stop_late(qp->hca, &qp->resp.s->flush_work);
}

/* -- life -------------------------------------------------------------------------------------- */

bool responder_tx_init(struct qp *qp)
{
    struct responder_state *s = qp->resp.s;
    bool executes = qp->service->reliable && (!qp->service->one_half || qp_is_target(qp));

    s->num_resources = executes ? 1u << qp->hca->limits.log_max_ra_res_qp : 0;
    s->queue_size = 4 * s->num_resources + 1;
    s->flush_timer.fire = flush_again;
    s->flush_work.run = flush_run;
    qp->resp.work.run = run;
    s->resources =
        s->num_resources ? qp_alloc(qp, s->num_resources * sizeof(s->resources[0])) : NULL;
    s->queue = qp_alloc(qp, s->queue_size * sizeof(s->queue[0]));
    return s->queue && (s->resources || !s->num_resources);
}

void responder_tx_clear(struct qp *qp)
{
    struct responder_state *s = qp->resp.s;

    hca_unschedule(&qp->resp.work);
    flush_stop(qp);
    qp_dealloc(qp, s->resources, s->num_resources * sizeof(s->resources[0]));
    qp_dealloc(qp, s->queue, s->queue_size * sizeof(s->queue[0]));
}

void responder_tx_reset(struct qp *qp)
{
    struct responder_state *s = qp->resp.s;

    s->stream = 0;
    hca_unschedule(&qp->resp.work);
    flush_stop(qp);
    queue_clear(s);
    for (unsigned i = 0; i < s->num_resources; i++) {
        s->resources[i].valid = false;
    }
}

void responder_tx_flush(struct qp *qp)
{
    struct responder_state *s = qp->resp.s;

    if (!s->failed) {
        queue_clear(s);
    }
    if (qp->has_rq) {
        flush_stop(qp);
        s->flush_delay = FLUSH_DELAY_MIN;
        hca_schedule(qp->hca, &s->flush_work);
    }
    hca_unschedule(&qp->resp.work);
    hca_schedule(qp->hca, &qp->resp.work);
}
