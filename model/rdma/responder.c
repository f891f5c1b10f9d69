/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Handles the requests of connected QPs: their order, their checks, and their results.
 *
 * A reliable request takes these steps (IBTA 9.7.4, 9.7.5):
 *
 *   PSN       expected: go on. Earlier: a duplicate, which is answered from what is known and
 *             never executed a second time (except READ). Later: one NAK, then silence until the
 *             expected one comes; or it is kept until it is due (model/rdma/early.h).
 *   opcode    FIRST, MIDDLE, LAST, ONLY in a valid order, and enabled on this QP.
 *   length    FIRST and MIDDLE have exactly the path MTU; the message has its announced length.
 *   resources a receive WQE (else RNR NAK), a place for READ and atomic.
 *   access    rkey, then the memory itself.
 *   completion and acknowledge.
 *
 * Each of these steps gives a verdict; a table says what the verdict causes. A fault is final for a
 * reliable QP: NAK, a completion in error or an event, ERR. An unreliable QP forgets the message
 * and waits for the next FIRST; it keeps a receive WQE that the message has taken for the next
 * message (IBTA 9.8.2). Only a fault of its own memory or queue ends an unreliable QP.
 *
 * The responder gives no end-to-end credits. Every ACK carries the credit count 31, which tells the
 * requester so (IBTA 9.7.7.2). Therefore an empty receive queue causes an RNR NAK.
 */
#include <stdarg.h>
#include "model/queue/q_counter.h"
#include "model/rdma/early.h"
#include "model/rdma/paging.h"
#include "model/rdma/rdma.h"
#include "model/rdma/responder_internal.h"
#include "model/rdma/tags.h"

static const char *const responder_states[] = {
    [RESPONDER_EXPECTS] = "expects",
    [RESPONDER_REFUSES] = "refuses",
    [RESPONDER_WAITS] = "waits",
    [RESPONDER_FAILED] = "failed",
};

static const char *const responder_events[] = {
    [RESPONDER_CARRIED_OUT] = "carried out",
    [RESPONDER_GAP] = "gap",
    [RESPONDER_NOT_READY] = "not ready",
    [RESPONDER_FAULT] = "fault",
    [RESPONDER_RESET] = "reset",
};

#define IGNORES MACHINE_IGNORES
#define EXPECTS RESPONDER_EXPECTS
#define REFUSES RESPONDER_REFUSES
#define WAITS   RESPONDER_WAITS
#define FAILED  RESPONDER_FAILED

/* clang-format off */
static const uint8_t responder_next[] = {
    /*            carried out  gap      not ready  fault    reset */
    /* expects */ EXPECTS,     REFUSES, WAITS,     FAILED,  EXPECTS,
    /* refuses */ EXPECTS,     IGNORES, WAITS,     FAILED,  EXPECTS,
    /* waits   */ EXPECTS,     IGNORES, WAITS,     FAILED,  EXPECTS,
    /* failed  */ IGNORES,     IGNORES, IGNORES,   IGNORES, EXPECTS,
};
/* clang-format on */

#undef IGNORES
#undef EXPECTS
#undef REFUSES
#undef WAITS
#undef FAILED

const struct machine responder_machine = MACHINE("responder", responder);

bool responder_step(struct peer *peer, enum responder_event event)
{
    const struct qp *qp = peer->qp;

    return machine_step(&responder_machine, qp->hca, qp->obj.num, &peer->resp.state, event);
}

/* What the verdicts cause that end a QP. */
static const struct fault {
    uint8_t nak;     /* NAK for the requester; 0: none */
    uint8_t cqe;     /* syndrome for the receive WQE that the request has taken */
    uint8_t event;   /* event, if there is no such WQE */
    const char *why; /* in the log; NULL: the detail says it all (responder_log_fault()) */
    bool key;        /* a key refused the access: mkey_why() says why */
} faults[] = {
    [VERDICT_INVALID] = {AETH_NAK_INVALID, PRM_CQE_SYNDROME_REMOTE_INVAL_REQ_ERR,
                         PRM_EVENT_TYPE_WQ_INVAL_REQ_ERROR, NULL, false},
    [VERDICT_LENGTH] = {AETH_NAK_INVALID, PRM_CQE_SYNDROME_LOCAL_LENGTH_ERR,
                        PRM_EVENT_TYPE_WQ_INVAL_REQ_ERROR,
                        "the message is longer than the receive that it takes", false},
    [VERDICT_ACCESS] = {AETH_NAK_ACCESS, PRM_CQE_SYNDROME_LOCAL_ACCESS_ERR,
                        PRM_EVENT_TYPE_WQ_ACCESS_ERROR, NULL, true},
    [VERDICT_LOCAL_PROT] = {AETH_NAK_OP, PRM_CQE_SYNDROME_LOCAL_PROT_ERR,
                            PRM_EVENT_TYPE_WQ_CATAS_ERROR,
                            "a key of the receive that it takes does not allow the write", true},
    [VERDICT_OPERATION] = {AETH_NAK_OP, PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR,
                           PRM_EVENT_TYPE_WQ_CATAS_ERROR,
                           "the receive queue is unreadable or in error", false},
    [VERDICT_MEMORY] = {AETH_NAK_OP, PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR,
                        PRM_EVENT_TYPE_WQ_CATAS_ERROR, "the device cannot carry it out", true},
    [VERDICT_INVALIDATE] = {0, PRM_CQE_SYNDROME_MW_BIND_ERR, PRM_EVENT_TYPE_WQ_ACCESS_ERROR,
                            "the key that it invalidates cannot be invalidated", true},
};

bool responder_park(struct peer *peer, const struct fault_step *step)
{
    struct responder *resp = &peer->resp;
    struct hca *hca = peer->qp->hca;

    if (resp->paging == PAGING_NEVER) {
        resp->paging = PAGING_NONE;
        if (resp->page == fault_page(&hca->fault)) {
            return false;
        }
    }
    if (resp->paging == PAGING_NONE) {
        hca->fault.step = *step;
        if (!peer->qp->service->owner->park(peer)) {
            return false;
        }
        resp->page = fault_page(&hca->fault);
    }
    return true;
}

void responder_resume(struct peer *peer, bool error)
{
    if (peer->resp.paging == PAGING_PARKED) {
        peer->resp.paging = error ? PAGING_NEVER : PAGING_NONE; /* the peer will ask again */
    }
}

enum verdict verdict_of(struct peer *peer, enum mem_result result)
{
    switch (result) {
    case MEM_OK:
        return VERDICT_OK;
    case MEM_NO_ANSWER:
        return VERDICT_MEMORY;
    case MEM_BUSY:
        return VERDICT_DROP;
    default:
        return VERDICT_ACCESS;
    }
}

enum verdict verdict_of_remote(struct peer *peer, enum mem_result result,
                               const struct fault_step *step)
{
    if (G_UNLIKELY(result == MEM_FAULT)) {
        return responder_park(peer, step) ? VERDICT_FAULT : VERDICT_ACCESS;
    }
    return verdict_of(peer, result);
}

enum verdict responder_invalid(struct peer *peer, const char *fmt, ...)
{
    struct rdma *rdma = peer->qp->hca->rdma;
    va_list ap;

    if (peer->qp->service->reliable) { /* an unreliable QP drops the request without a word */
        va_start(ap, fmt);
        g_vsnprintf(rdma->invalid, sizeof(rdma->invalid), fmt, ap);
        va_end(ap);
    }
    return VERDICT_INVALID;
}

static void responder_log_fault(const struct qp *qp, const struct fault *fault, uint32_t psn)
{
    struct mkey_words words;
    const char *detail = fault->key   ? mkey_why(qp->hca, &words)
                         : fault->why ? NULL
                                      : qp->hca->rdma->invalid;

    hca_log(qp->hca, HCA_LOG_GUEST_ERROR,
            "qp 0x%x: a request of the peer (psn 0x%x) fails: %s%s%s (syndrome 0x%x, nak 0x%x)",
            qp->obj.num, psn, fault->why ? fault->why : "", fault->why && detail ? ": " : "",
            detail ? detail : "", fault->cqe, fault->nak);
}

/* Reports a fault to the requester and in the counters. */
static const struct fault *responder_report(struct peer *peer, enum verdict verdict, uint32_t psn)
{
    struct qp *qp = peer->qp;
    const struct fault *fault = &faults[verdict];

    peer->resp.nak = fault->nak;
    peer->resp.nak_psn = psn;
    responder_log_fault(qp, fault, psn);
    qp_note_error(qp, PRM_CQE_OPCODE_RESP_ERR, fault->cqe);
    if (qp->service->reliable && fault->nak) {
        responder_step(peer, RESPONDER_FAULT);
        responder_ack(peer, psn, fault->nak);
    }
    qp_counters(qp)->resp_remote_access_errors += verdict == VERDICT_ACCESS;
    qp_counters(qp)->resp_remote_invalid_request += verdict == VERDICT_INVALID;
    return fault;
}

void responder_fail(struct peer *peer, enum verdict verdict, uint32_t psn)
{
    const struct fault *fault = responder_report(peer, verdict, psn);
    struct responder *resp = &peer->resp;

    resp->msg = MSG_NONE;
    if (resp->have_wqe) {
        responder_abandon(peer, fault->cqe);
        peer->qp->service->owner->fatal(peer, 0);
    } else {
        peer->qp->service->owner->fatal(peer, fault->event);
    }
}

void responder_fail_answer(struct peer *peer, enum verdict verdict, uint32_t psn)
{
    bool had_failed = peer->resp.state == RESPONDER_FAILED; /* the READ was requested again */
    const struct fault *fault = responder_report(peer, verdict, psn);

    peer->qp->service->owner->fatal(peer, had_failed ? 0 : fault->event);
}

/* -- RC and XRC -------------------------------------------------------------------------------- */

/* The READ or atomic that psn belongs to. If PSNs have wrapped since, the newest. */
static const struct responder_resource *responder_find_resource(const struct peer *peer,
                                                                uint32_t psn, bool atomic)
{
    const struct answers *a = peer->resp.answers;
    unsigned n = a ? 1u << peer->qp->log_rra_max : 0;

    for (unsigned i = 1; i <= n; i++) {
        const struct responder_resource *res = &a->resources[(a->next_resource - i) & (n - 1)];

        if (res->valid && res->atomic == atomic && ((psn - res->psn) & PSN_MASK) < res->npsn) {
            return res;
        }
    }
    return NULL;
}

/* Answers a duplicate READ: it asks for the same range as an earlier one, or for the end of that
 * range (IBTA 9.7.5). Its key is checked again, but a bad key is never a fault (docs/adr/0015): see
 * responder_drops(). */
static void responder_repeat_read(struct peer *peer, const struct roce_packet *pkt)
{
    const struct responder_resource *res = responder_find_resource(peer, pkt->psn, false);
    uint64_t skipped;

    if (!res) {
        return;
    }
    skipped = (uint64_t)((pkt->psn - res->psn) & PSN_MASK) * peer->qp->mtu;
    if (pkt->reth.rkey != res->rkey || pkt->reth.va != res->va + skipped ||
        pkt->reth.len > res->len - skipped || !responder_has_room(peer)) {
        return;
    }
    if (pkt->reth.len && !mkey_allows_qp(peer->qp->hca, res->rkey, peer->qp->obj.num)) {
        return;
    }
    if (psn_diff(peer->resp.read_psn, pkt->psn) >= 0 &&
        psn_diff(peer->resp.read_psn, res->psn + res->npsn) < 0) {
        peer->resp.read_waits = false; /* its data is about to be read again */
    }
    responder_answer(peer, &(struct answer){
                               .is_read = true,
                               .duplicate = true,
                               .psn = pkt->psn,
                               .msn = peer->resp.msn,
                               .va = pkt->reth.va,
                               .pdn = res->pdn,
                               .rkey = pkt->reth.rkey,
                               .len = pkt->reth.len,
                               .resource = (uint8_t)(res - peer->resp.answers->resources),
                           });
}

/* Answers a duplicate atomic: it is not executed again; its result is sent again (IBTA 9.7.5). */
static void responder_repeat_atomic(struct peer *peer, const struct roce_packet *pkt)
{
    const struct responder_resource *res = responder_find_resource(peer, pkt->psn, true);

    if (res && responder_has_room(peer)) {
        responder_answer(peer, &(struct answer){
                                   .duplicate = true,
                                   .psn = pkt->psn,
                                   .msn = peer->resp.msn,
                                   .value = res->value,
                                   .len = res->len,
                                   .resource = (uint8_t)(res - peer->resp.answers->resources),
                               });
    }
}

static void responder_rx_duplicate(struct peer *peer, const struct roce_packet *pkt, uint32_t flags)
{
    qp_counters(peer->qp)->duplicate_request++;
    peer->qp->hca->rdma->counts.duplicates++;
    if (flags & PKT_READ) {
        responder_repeat_read(peer, pkt);
    } else if (flags & PKT_ATOMIC) {
        responder_repeat_atomic(peer, pkt);
    } else {
        /* C9-105: acknowledges the present state, not the state at that request. */
        responder_ack_again(peer);
    }
}

/* Sends one NAK for a gap, with the missing PSN (IBTA 9.7.5). After an RNR NAK, gaps are not
 * reported: most later packets were under way before the requester received that NAK. If the
 * repeated request is lost, the requester's ACK timeout detects it. */
void responder_rx_gap(struct peer *peer)
{
    if (peer->resp.state == RESPONDER_WAITS) {
        return;
    }
    qp_counters(peer->qp)->out_of_sequence++;
    peer->qp->hca->rdma->counts.out_of_sequence++;
    if (responder_step(peer, RESPONDER_GAP)) {
        responder_ack(peer, peer->resp.epsn, AETH_NAK_SEQ);
    }
}

/* Carries out the request with the expected PSN. */
static void responder_rx_expected(struct peer *peer, const struct roce_packet *pkt, uint32_t flags)
{
    struct qp *qp = peer->qp;
    struct responder *resp = &peer->resp;
    enum verdict verdict;

    verdict = responder_execute(peer, pkt, flags);
    switch (verdict) {
    case VERDICT_OK:
        break;
    case VERDICT_DROP:
        return;
    case VERDICT_RNR:
    case VERDICT_FAULT:
        responder_step(peer, RESPONDER_NOT_READY);
        if (verdict == VERDICT_FAULT) {
            responder_ack(peer, pkt->psn, AETH_RNR | paging_rnr_timer(qp));
            return;
        }
        responder_ack(peer, pkt->psn, AETH_RNR | qp->min_rnr_nak);
        return;
    default:
        responder_fail(peer, verdict, pkt->psn);
        return;
    }
    if (qp->state == PRM_QP_STATE_ERR) {
        return; /* the completion found no room in its CQ */
    }
    if (G_UNLIKELY(resp->state != RESPONDER_EXPECTS)) {
        responder_step(peer, RESPONDER_CARRIED_OUT);
    }
    resp->epsn = (pkt->psn + (flags & PKT_READ ? responder_read_packets(peer, pkt->reth.len) : 1)) &
                 PSN_MASK;
    if (flags & PKT_LAST) {
        resp->msn = (resp->msn + 1) & PSN_MASK;
    }
    if (flags & PKT_READ) {
        responder_answer_read_at_once(peer);
    } else if (pkt->ackreq && !(flags & PKT_ATOMIC)) {
        responder_ack(peer, pkt->psn, AETH_ACK);
    }
}

/* Carries out the early requests that are due now. */
void responder_rx_early(struct peer *peer)
{
    struct responder *resp = &peer->resp;
    struct early_list *list = &peer->early->requests;
    const struct roce_packet *first = early_first(peer, list, resp->epsn);

    while (first && first->psn == resp->epsn && resp->state != RESPONDER_FAILED) {
        struct early_packet *early;

        if (!hca_may_go_on(peer->qp->hca)) {
            hca_schedule(peer->qp->hca, &peer->early->due);
            return;
        }
        early = early_take(peer, list);
        responder_rx_expected(peer, &early->pkt, bth_opcodes[early->pkt.opcode].flags);
        early_give(peer, early);
        hca_spend(peer->qp->hca, 1);
        first = early_first(peer, list, resp->epsn);
    }
}

/* Whether a READ waits for a page, and the peer will send this request again behind the READ. An
 * ACK for this request would tell the peer that the READ's responses are lost: the peer would count
 * a retry. Earlier READs and atomics have answers of their own. */
static bool responder_waits_for_read(struct responder *resp, const struct roce_packet *pkt,
                                     uint32_t flags)
{
    /* If the data was sent before, the READ may be a late duplicate of one whose data the peer has.
     * Then the peer goes back, but not to the READ. A new request alone shows nothing: the peer
     * sends it behind the READ, too, if the READ is to come again. */
    if (resp->read_was_sent && psn_diff(pkt->psn, resp->drop_psn) <= 0) {
        resp->read_waits = false;
    }
    return resp->read_waits &&
           (psn_diff(pkt->psn, resp->read_psn) > 0 || !(flags & (PKT_READ | PKT_ATOMIC)));
}

static void responder_rx_reliable(struct peer *peer, const struct roce_packet *pkt, uint32_t flags)
{
    struct responder *resp = &peer->resp;
    int32_t ahead = psn_diff(pkt->psn, resp->epsn);

    if (G_UNLIKELY(resp->read_waits) && responder_waits_for_read(resp, pkt, flags)) {
        resp->drop_psn = pkt->psn;
        return;
    }
    if (ahead < 0) {
        responder_rx_duplicate(peer, pkt, flags);
    } else if (ahead > 0) {
        if (!peer->early || resp->state == RESPONDER_FAILED ||
            !early_keep(peer, &peer->early->requests, pkt)) {
            responder_rx_gap(peer);
        }
    } else {
        responder_rx_expected(peer, pkt, flags);
        if (G_UNLIKELY(peer->early)) {
            responder_rx_early(peer);
        }
    }
}

/* -- unreliable connection --------------------------------------------------------------------- */

static void responder_rx_uc(struct peer *peer, const struct roce_packet *pkt, uint32_t flags)
{
    struct responder *resp = &peer->resp;
    enum verdict verdict;

    if (flags & PKT_FIRST) {
        /* A new message begins with any PSN; a message before it that did not end is lost
         * (9.8.2). */
        resp->msg = MSG_NONE;
    } else if (pkt->psn != resp->epsn) {
        qp_counters(peer->qp)->out_of_sequence++;
        peer->qp->hca->rdma->counts.out_of_sequence++;
        resp->msg = MSG_NONE;
        return;
    }
    resp->epsn = (pkt->psn + 1) & PSN_MASK;
    verdict = responder_execute(peer, pkt, flags);
    if (verdict == VERDICT_LOCAL_PROT || verdict == VERDICT_OPERATION ||
        verdict == VERDICT_MEMORY) {
        responder_fail(peer, verdict, pkt->psn);
    } else if (verdict != VERDICT_OK) {
        resp->msg = MSG_NONE;
    } else if (flags & PKT_LAST) {
        resp->msn = (resp->msn + 1) & PSN_MASK;
    }
}

void responder_rx(struct peer *peer, const struct roce_packet *pkt)
{
    struct qp *qp = peer->qp;
    struct responder *resp = &peer->resp;
    uint32_t flags = bth_opcodes[pkt->opcode].flags;

    if (!qp->service->connected && !qp->service->reliable) {
        responder_rx_ud(peer, pkt);
        return;
    }
    if (qp->state == PRM_QP_STATE_RTR && !resp->comm_est) {
        resp->comm_est = true;
        qp_event(qp, PRM_EVENT_TYPE_COMM_EST);
    }
    if (qp->service->reliable) {
        responder_rx_reliable(peer, pkt, flags);
    } else {
        responder_rx_uc(peer, pkt, flags);
    }
}

/* -- life -------------------------------------------------------------------------------------- */

void responder_init(struct peer *peer)
{
    const struct qp *qp = peer->qp;

    peer->resp.line = &qp->hca->rdma->lines.recv[(qp->obj.num + peer->qpn) % WQE_LINES];
    responder_tx_init(peer);
}

void responder_clear(struct peer *peer)
{
    early_clear(peer);
    tags_clear(peer);
    responder_tx_clear(peer);
    responder_forget_wqe(peer);
}

void responder_reset(struct peer *peer, uint32_t next_rcv_psn)
{
    struct responder *resp = &peer->resp;

    early_forget(peer);
    tags_reset(peer);
    responder_tx_reset(peer);
    responder_forget_wqe(peer);
    responder_step(peer, RESPONDER_RESET);
    resp->acked_psn = (next_rcv_psn - 1) & PSN_MASK;
    resp->epsn = next_rcv_psn & PSN_MASK;
    resp->msn = 0;
    resp->msg = MSG_NONE;
    resp->have_wqe = resp->comm_est = resp->read_waits = false;
    resp->paging = PAGING_NONE;
}

void responder_flush(struct peer *peer)
{
    early_forget(peer);
    responder_tx_flush(peer);
    tags_flush(peer);
    peer->resp.msg = MSG_NONE;
    if (peer->resp.have_wqe) {
        responder_abandon(peer, PRM_CQE_SYNDROME_WR_FLUSH_ERR);
    }
}
