/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sends the responder's packets: READ data, atomic results, ACKs and NAKs.
 *
 * The answers to READs and atomics are sent in the order of the requests. After them comes the one
 * ACK or NAK that is due. One suffices, because a newer ACK or NAK acknowledges everything before
 * it (IBTA 9.7.5.1). The answer to a new READ or atomic does so, too, and replaces a due ACK. While
 * a NAK is due, a duplicate needs no ACK of its own.
 *
 * If a small READ has no answers before it, its data is sent when the READ comes, if that is
 * possible; so it is the data of that moment. The work item sends everything else.
 *
 * The work item sends until nothing is left, until it has sent a burst or its share of the turn is
 * used up (then it reschedules itself, behind other work), or until the wire has no credit (then
 * the port wakes it).
 *
 * An ACK costs the peer as much as a small request costs this side. Therefore, while requests come
 * without waiting for their ACKs, an ACK waits for further requests, for a few looks at the wire
 * within its turn (IBTA 9.7.5.1.2 allows one ACK to answer several requests). A peer that waits for
 * each ACK gets it at once.
 */
#include <stddef.h>
#include <string.h>
#include "model/rdma/paging.h"
#include "model/rdma/rdma.h"
#include "model/rdma/qp_sched.h"
#include "model/rdma/reaction_point.h"
#include "model/rdma/responder_internal.h"
#include "model/rdma/sig_report.h"

/* Conditions under which an ACK waits for further requests. */
#define STREAM      8  /* recent requests that did not wait for an ACK, from which on it waits */
#define STREAM_MOST 16 /* the largest such number that is kept */
/* requests that one ACK covers at most; a sender's window has several times as many */
#define ACK_PACKETS 16
#define ACK_LOOKS   8 /* looks in a row without a new request, after which the ACK is sent */

/* Packets in one turn. */
#define BURST 16

/* Most bytes of a READ whose data is sent at once. */
#define AT_ONCE_BYTES 2048

static bool responder_has_answers(const struct responder *resp)
{
    return resp->answers && resp->answers->count;
}

static void responder_answer_over(struct responder *resp, const struct answer *answer)
{
    struct answers *a = resp->answers;

    a->fresh -= !answer->duplicate;
    a->head = (a->head + 1) % RESPONDER_ANSWERS;
    a->count--;
}

static void responder_answer_sent(struct responder *resp, const struct answer *answer)
{
    resp->acked_psn = answer->psn;
    responder_answer_over(resp, answer);
}

/* Whether only an ACK is to be sent, of a stream that may go on. */
static bool responder_ack_may_wait(const struct responder *resp)
{
    return resp->ack_due && resp->ack_syndrome == AETH_ACK && resp->stream >= STREAM &&
           !responder_has_answers(resp) && psn_diff(resp->ack_psn, resp->acked_psn) < ACK_PACKETS;
}

static void responder_forget_answers(struct responder *resp)
{
    resp->ack_due = false;
    if (resp->answers) {
        resp->answers->head = resp->answers->count = resp->answers->fresh = 0;
    }
}

void responder_ack(struct peer *peer, uint32_t psn, uint8_t syndrome)
{
    struct responder *resp = &peer->resp;

    psn &= PSN_MASK;
    if (resp->ack_due) {
        if (psn_diff(psn, resp->ack_psn) < 0) {
            return;
        }
        resp->stream = (uint8_t)MIN(resp->stream + 1, STREAM_MOST);
    } else {
        resp->ack_looks = 0;
        resp->ack_due = true;
        hca_schedule(peer->qp->hca, &resp->work);
    }
    resp->ack_again = false;
    resp->ack_syndrome = syndrome;
    resp->ack_psn = psn;
    resp->ack_msn = resp->msn;
}

void responder_ack_again(struct peer *peer)
{
    struct responder *resp = &peer->resp;
    bool was_due = resp->ack_due;

    responder_ack(peer, resp->epsn - 1, AETH_ACK);
    resp->ack_again = !was_due;
}

bool responder_need_answers(struct peer *peer)
{
    if (!peer->resp.answers) {
        peer->resp.answers = qp_alloc(peer->qp, sizeof(*peer->resp.answers));
    }
    return peer->resp.answers != NULL;
}

bool responder_need_numbers(struct peer *peer)
{
    struct answers *answers;

    if (!responder_need_answers(peer)) {
        return false;
    }
    answers = peer->resp.answers;
    if (!answers->numbers) {
        answers->numbers = qp_alloc(peer->qp, RESPONDER_NUMBERS_BYTES);
    }
    return answers->numbers != NULL;
}

bool responder_has_room(const struct peer *peer)
{
    return peer->resp.answers->count < RESPONDER_ANSWERS;
}

void responder_answer(struct peer *peer, const struct answer *answer)
{
    struct answers *a = peer->resp.answers;

    g_assert(a->count < RESPONDER_ANSWERS);
    a->queue[(a->head + a->count++) % RESPONDER_ANSWERS] = *answer;
    if (!answer->duplicate) {
        a->fresh++;
        peer->resp.ack_due = false;
    }
    hca_schedule(peer->qp->hca, &peer->resp.work);
}

/* -- sending ----------------------------------------------------------------------------------- */

/* Opcode of the next packet of a READ answer: FIRST, MIDDLE and LAST, or ONLY (IBTA 9.4.4). */
static uint8_t responder_read_opcode(const struct answer *answer, uint32_t mtu)
{
    bool last = answer->len <= mtu;

    if (answer->started) {
        return last ? BTH_READ_RESP_LAST : BTH_READ_RESP_MIDDLE;
    }
    return last ? BTH_READ_RESP_ONLY : BTH_READ_RESP_FIRST;
}

/* Sets the fields that all packets to the peer have in common. */
static void responder_address(const struct peer *peer, struct roce_packet *pkt)
{
    pkt->addr = peer->path;
    pkt->migreq = true;
    pkt->pkey = peer->qp->pkey;
    pkt->dest_qp = peer->qpn;
    if (G_UNLIKELY(peer->qp->service->owner->address)) {
        peer->qp->service->owner->address(peer, pkt);
    }
}

/* Why the ACK or NAK is sent. */
static enum wire_note_why responder_ack_why(const struct responder *resp)
{
    switch (aeth_class(resp->ack_syndrome)) {
    case AETH_CLASS_ACK:
        return resp->ack_again ? WIRE_NOTE_DUPLICATE : WIRE_NOTE_FIRST;
    case AETH_CLASS_RNR_NAK:
        return WIRE_NOTE_NOT_READY;
    default:
        return resp->ack_syndrome == AETH_NAK_SEQ ? WIRE_NOTE_GAP : WIRE_NOTE_REFUSES;
    }
}

/* Notes for trace and capture why the reserved response is sent. */
static G_GNUC_NO_INLINE __attribute__((cold)) void
responder_note(const struct qp *qp, uint32_t request_psn, enum wire_note_why why)
{
    port_note(qp->hca, &(struct wire_note){
                           .qpn = qp->obj.num,
                           .is_response = true,
                           .request_psn = request_psn,
                           .why = (uint8_t)why,
                       });
}

/* Sends the ACK or NAK. False: the wire has no credit. */
static bool responder_send_ack(struct peer *peer)
{
    struct qp *qp = peer->qp;
    struct responder *resp = &peer->resp;
    struct roce_packet pkt = {
        .opcode = qp->service->transport | BTH_ACK,
        .psn = resp->ack_psn,
        .aeth = {.syndrome = resp->ack_syndrome, .msn = resp->ack_msn},
    };

    responder_address(peer, &pkt);
    hca_dma_settle(qp->hca);
    if (!port_tx_reserve_roce(qp->hca, &pkt, 0)) {
        return false;
    }
    if (G_UNLIKELY(port_wants_note(qp->hca))) {
        responder_note(qp, resp->ack_psn, responder_ack_why(resp));
    }
    port_tx_commit_roce(qp->hca, &pkt, 0);
    if (G_UNLIKELY(aeth_class(resp->ack_syndrome) != AETH_CLASS_ACK)) {
        bool waits = aeth_class(resp->ack_syndrome) == AETH_CLASS_RNR_NAK;

        qp->hca->rdma->counts.rnr_naks_sent += waits;
        qp->hca->rdma->counts.naks_sent += !waits;
    }
    resp->ack_due = false;
    resp->acked_psn = resp->ack_psn;
    return true;
}

/* Whether the answer is that of an extended atomic, whose number is in its resource. */
static bool responder_is_extended(const struct answer *answer)
{
    return !answer->is_read && answer->len;
}

static void responder_fill_answer(const struct qp *qp, const struct answer *answer,
                                  struct roce_packet *pkt)
{
    uint8_t op = answer->is_read ? responder_read_opcode(answer, qp->mtu) : BTH_ATOMIC_ACK;

    pkt->opcode = G_UNLIKELY(responder_is_extended(answer))
                      ? qp->service->extended | BTH_EXTENDED_ACK
                      : qp->service->transport | op;
    pkt->psn = answer->psn;
    pkt->aeth.syndrome = AETH_ACK;
    pkt->aeth.msn = answer->msn;
    pkt->atomic_ack = answer->value;
}

/* How many responses of the answer's READ come before this one. *res is NULL if later requests have
 * taken the resource; then the peer has had all responses. */
static uint32_t responder_read_place(const struct answers *answers, const struct answer *answer,
                                     const struct responder_resource **res)
{
    uint32_t before;

    *res = &answers->resources[answer->resource];
    before = (answer->psn - (*res)->psn) & PSN_MASK;
    if (!(*res)->valid || (*res)->atomic || before >= (*res)->npsn) {
        *res = NULL;
    }
    return before;
}

static void responder_read_sent(struct answers *answers, const struct answer *answer)
{
    const struct responder_resource *res;
    uint32_t before = responder_read_place(answers, answer, &res);

    if (res) {
        answers->resources[answer->resource].value = MAX(res->value, before + 1);
    }
}

/* Whether the data of the answer was sent before, or the READ is so old that the peer has had all
 * data. Then this copy of the READ may be a ghost, which the peer will not repeat. */
static bool responder_was_sent(const struct peer *peer, const struct answer *answer)
{
    const struct responder_resource *res;
    uint32_t before = responder_read_place(peer->resp.answers, answer, &res);

    return !res || before < res->value;
}

/* Whether the answer is dropped without a NAK: the READ's data was sent once, and its key has
 * become invalid since. This copy of the READ may be a ghost: the peer has had the data, and its
 * program has rightly closed the key. If the peer has not had the data, it repeats the READ until
 * its retries are used up. A responder that has failed repeats its NAK. */
static bool responder_drops(const struct peer *peer, const struct answer *answer,
                            enum verdict verdict)
{
    return responder_was_sent(peer, answer) && verdict == VERDICT_ACCESS &&
           peer->resp.state != RESPONDER_FAILED;
}

/* The data of an answer could not be read. */
static void responder_answer_without_data(struct peer *peer, const struct answer *answer,
                                          enum mem_result result)
{
    uint32_t psn = answer->psn;
    /* what was sent of the READ before is of no interest: the answer has its own address */
    enum verdict verdict = verdict_of_remote(peer, result,
                                             &(struct fault_step){
                                                 .op = FAULT_READ,
                                                 .key = answer->rkey,
                                                 .va = answer->va,
                                                 .len = answer->len,
                                                 .part = (uint32_t)MIN(answer->len, peer->qp->mtu),
                                             });
    /* The READ counted as complete when it was taken, but the MSN must not include it (IBTA 9.7.7).
     * A DC initiator is an exception: it learns from the MSN what was carried out behind the READ
     * (docs/adr/0009). */
    uint32_t msn = answer->duplicate ? answer->msn : (answer->msn - 1) & PSN_MASK;
    bool was_sent = responder_was_sent(peer, answer);

    if (responder_drops(peer, answer, verdict)) {
        responder_answer_over(&peer->resp, answer);
        return;
    }
    /* The following answers belong to later requests. These will be sent again, or never. */
    responder_forget_answers(&peer->resp);
    if (verdict == VERDICT_FAULT) {
        peer->resp.read_waits = true;
        peer->resp.read_was_sent = was_sent;
        peer->resp.read_psn = peer->resp.drop_psn = psn;
        responder_ack(peer, psn, AETH_RNR | paging_rnr_timer(peer->qp));
    } else {
        responder_fail_answer(peer, verdict, psn);
    }
    if (!peer->qp->service->dynamic && peer->resp.ack_psn == psn) {
        peer->resp.ack_msn = msn;
    }
}

/* The number of an extended atomic. NULL: a later request has taken the resource, so the peer has
 * had the answer (IBTA 9.7.5.1.4: no more requests are outstanding than there are resources). */
static const uint8_t *responder_number(const struct answers *answers, const struct answer *answer)
{
    const struct responder_resource *res = &answers->resources[answer->resource];

    return res->psn == answer->psn && res->atomic && res->len == answer->len
               ? answers->numbers[answer->resource]
               : NULL;
}

/* Sends one packet of the first answer. False: the wire has no credit. */
static bool responder_send_answer(struct peer *peer)
{
    struct qp *qp = peer->qp;
    struct responder *resp = &peer->resp;
    struct answer *answer = &resp->answers->queue[resp->answers->head];
    struct roce_packet pkt = {0};
    size_t len = MIN(answer->len, qp->mtu);
    const uint8_t *number = NULL;
    uint32_t pdn = answer->pdn;
    uint8_t *payload;

    if (G_UNLIKELY(responder_is_extended(answer))) {
        number = responder_number(resp->answers, answer);
        if (!number) {
            responder_answer_sent(resp, answer);
            return true;
        }
    }
    responder_address(peer, &pkt);
    responder_fill_answer(qp, answer, &pkt);
    payload = port_tx_reserve_roce(qp->hca, &pkt, len);
    if (!payload) {
        return false;
    }
    if (number) {
        memcpy(payload, number, len);
    } else if (len) {
        enum mem_result result;

        hca_dma_expect(qp->hca, answer->len);
        result = mkey_read(qp->hca, answer->rkey, answer->pdn, answer->va, payload, len,
                           MEM_REMOTE_READ);
        if (result != MEM_OK) {
            port_tx_commit(qp->hca, 0, PORT_NO_TD);
            responder_answer_without_data(peer, answer, result);
            return true;
        }
    }
    hca_dma_settle(qp->hca);
    if (G_UNLIKELY(port_wants_note(qp->hca))) {
        responder_note(qp, resp->answers->resources[answer->resource].psn,
                       answer->duplicate ? WIRE_NOTE_DUPLICATE : WIRE_NOTE_FIRST);
    }
    port_tx_commit_roce(qp->hca, &pkt, len);
    if (G_UNLIKELY(peer->limiter)) {
        reaction_note_sent(peer, roce_frame_len(&pkt, len));
    }
    if (G_UNLIKELY(qp->sched)) {
        sched_note_sent(&qp->sched->member[QP_SCHED_RESPONDER], roce_frame_len(&pkt, len));
    }
    if (answer->is_read) {
        responder_read_sent(resp->answers, answer);
    }
    if (answer->is_read && answer->len > len) {
        answer->started = true;
        answer->psn = (answer->psn + 1) & PSN_MASK;
        answer->va += len;
        answer->len -= (uint32_t)len;
    } else {
        responder_answer_sent(resp, answer);
    }
    (void)sig_check_received(peer, pdn);
    return true;
}

/* Sends one packet. False: the wire has no credit. */
static bool responder_send_one(struct peer *peer)
{
    if (peer->path_gone) {
        responder_forget_answers(&peer->resp);
        return true;
    }
    return responder_has_answers(&peer->resp) ? responder_send_answer(peer)
                                              : responder_send_ack(peer);
}

/* Whether the next packet is an ACK that waits for another look at the wire. */
static bool responder_waits_for_company(struct peer *peer)
{
    struct responder *resp = &peer->resp;

    if (!responder_ack_may_wait(resp)) {
        return false;
    }
    resp->ack_looks = resp->ack_psn == resp->looked_psn ? resp->ack_looks : 0;
    resp->looked_psn = resp->ack_psn;
    if (resp->ack_looks++ < ACK_LOOKS) {
        return hca_wait_frames(peer->qp->hca, &resp->work);
    }
    resp->stream /= 2;
    return false;
}

static bool responder_has_work(const struct responder *resp)
{
    return resp->ack_due || responder_has_answers(resp);
}

/* Whether the rate limit holds the answers (READ data is sent no faster than requests are), or the
 * scheduling element of the answers. */
static bool responder_is_held(struct peer *peer)
{
    struct qp *qp = peer->qp;

    if (G_LIKELY(!peer->limiter && !qp->sched && !qp->hca->ets) ||
        !responder_has_answers(&peer->resp)) {
        return false;
    }
    if (!reaction_may_send(peer) || !qp_sched_may_send(qp, QP_SCHED_RESPONDER)) {
        return true;
    }
    /* the answers of a DC target have many paths and one membership, so they are in no class */
    return qp->hca->ets && peer == &qp->peer &&
           !qp_sched_class_may_send(qp, QP_SCHED_RESPONDER, &peer->path);
}

void responder_answer_read_at_once(struct peer *peer)
{
    struct hca *hca = peer->qp->hca;
    struct responder *resp = &peer->resp;

    if (hca->late_reads || resp->answers->count != 1 ||
        resp->answers->queue[resp->answers->head].len > AT_ONCE_BYTES) {
        return;
    }
    peer_path_check(peer, hca);
    while (responder_has_answers(resp) && !peer->path_gone && !responder_is_held(peer)) {
        if (!responder_send_answer(peer)) {
            return;
        }
    }
    if (!responder_has_work(resp)) {
        hca_unschedule(&resp->work);
    }
}

static void responder_work(struct hca *hca, struct work *work)
{
    struct peer *peer = (struct peer *)((char *)work - offsetof(struct peer, resp.work));

    if (responder_waits_for_company(peer)) {
        return;
    }
    peer_path_check(peer, hca);
    for (unsigned n = 0; responder_has_work(&peer->resp) && !responder_is_held(peer); n++) {
        if (n == BURST || (n && !hca_may_go_on(hca))) {
            hca_schedule(hca, work);
            return;
        }
        if (!responder_send_one(peer)) {
            hca_wait_tx(hca, work);
            return;
        }
    }
}

/* -- life -------------------------------------------------------------------------------------- */

void responder_tx_init(struct peer *peer)
{
    peer->resp.work.run = responder_work;
}

void responder_tx_clear(struct peer *peer)
{
    hca_unschedule(&peer->resp.work);
    qp_sched_stop(peer->qp, QP_SCHED_RESPONDER);
    if (peer->resp.answers) {
        qp_dealloc(peer->qp, peer->resp.answers->numbers, RESPONDER_NUMBERS_BYTES);
    }
    qp_dealloc(peer->qp, peer->resp.answers, sizeof(*peer->resp.answers));
    peer->resp.answers = NULL;
}

void responder_tx_reset(struct peer *peer)
{
    responder_tx_clear(peer);
    peer->resp.ack_due = false;
    peer->resp.stream = 0;
}

void responder_tx_flush(struct peer *peer)
{
    if (peer->resp.state != RESPONDER_FAILED) {
        responder_forget_answers(&peer->resp);
    }
    hca_unschedule(&peer->resp.work);
    qp_sched_stop(peer->qp, QP_SCHED_RESPONDER);
    hca_schedule(peer->qp->hca, &peer->resp.work);
}
