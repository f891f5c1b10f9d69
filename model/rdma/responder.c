/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The responder of connected QPs: the order of requests, their checks, their execution.
 *
 * A reliable request takes these steps (IBTA 9.7.4, 9.7.5):
 *
 *   PSN       expected: go on. Earlier: a duplicate, answered from what is known and never executed
 *             a second time (but READ). Later: NAK once, then silence until the expected one.
 *   opcode    FIRST, MIDDLE, LAST, ONLY in an order that makes sense, and enabled on this QP.
 *   length    FIRST and MIDDLE are exactly the path MTU, the message is as long as it said.
 *   resources a receive WQE (else RNR NAK), a place for READ and atomic.
 *   access    rkey, then the memory itself.
 *   completion and acknowledge.
 *
 * Each of these ends in a verdict; a table says what becomes of it. A fault is final for a
 * reliable QP: NAK, a completion in error or an event, ERR. An unreliable QP forgets the message
 * and waits for the next FIRST; a receive WQE that the message had taken is kept for the next one
 * (IBTA 9.8.2). Only a fault of its own memory or queue ends an unreliable QP.
 *
 * End-to-end credits are not given: every ACK carries the credit count 31, which tells the
 * requester so (IBTA 9.7.7.2); an empty receive queue then shows as an RNR NAK.
 */
#include <string.h>
#include "model/queue/q_counter.h"
#include "model/rdma/responder_internal.h"

#define MAX_MESSAGE 0x80000000ull /* bytes of a message at most (C9-94) */

/* What becomes of the verdicts that end a QP. */
static const struct fault {
    uint8_t nak;   /* 0: the requester hears nothing */
    uint8_t cqe;   /* syndrome of the receive WQE that the request had taken, if any; */
    uint8_t event; /* else this */
} faults[] = {
    [VERDICT_INVALID] = {AETH_NAK_INVALID, PRM_CQE_SYNDROME_REMOTE_INVAL_REQ_ERR,
                         PRM_EVENT_TYPE_WQ_INVAL_REQ_ERROR},
    [VERDICT_LENGTH] = {AETH_NAK_INVALID, PRM_CQE_SYNDROME_LOCAL_LENGTH_ERR,
                        PRM_EVENT_TYPE_WQ_INVAL_REQ_ERROR},
    [VERDICT_ACCESS] = {AETH_NAK_ACCESS, PRM_CQE_SYNDROME_LOCAL_ACCESS_ERR,
                        PRM_EVENT_TYPE_WQ_ACCESS_ERROR},
    [VERDICT_LOCAL_PROT] = {AETH_NAK_OP, PRM_CQE_SYNDROME_LOCAL_PROT_ERR,
                            PRM_EVENT_TYPE_WQ_CATAS_ERROR},
    [VERDICT_OPERATION] = {AETH_NAK_OP, PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR,
                           PRM_EVENT_TYPE_WQ_CATAS_ERROR},
    [VERDICT_INVALIDATE] = {0, PRM_CQE_SYNDROME_MW_BIND_ERR, PRM_EVENT_TYPE_WQ_ACCESS_ERROR},
};

enum verdict verdict_of(enum mem_result result)
{
    switch (result) {
    case MEM_OK:
        return VERDICT_OK;
    case MEM_NO_ANSWER:
        return VERDICT_OPERATION;
    case MEM_BUSY:
        return VERDICT_DROP;
    default:
        return VERDICT_ACCESS;
    }
}

/* The SRQ of the message that is arriving; NULL if the QP is no XRC QP, or the SRQ is gone. */
static struct srq *message_srq(const struct qp *qp)
{
    const struct responder_state *s = qp->resp.s;
    struct srq *srq;

    if (!qp->service->names_srq) {
        return NULL;
    }
    srq = srq_find(qp->hca, s->srqn);
    return srq && srq->xrcd == qp->xrcd ? srq : NULL;
}

/* Completes the WQE held in error. An XRC SRQ may be destroyed under it, and then nobody waits. */
static void abandon_wqe(struct qp *qp, uint8_t syndrome)
{
    struct responder_state *s = qp->resp.s;
    struct srq *srq = message_srq(qp);

    s->have_wqe = false;
    if (srq || !qp->service->names_srq) {
        qp_complete_recv_error(qp, srq, &s->wqe, syndrome);
    }
}

/* What the requester and the counters learn of a fault. */
static const struct fault *report_fault(struct qp *qp, enum verdict verdict, uint32_t psn)
{
    const struct fault *fault = &faults[verdict];

    hca_log(qp->hca, HCA_LOG_GUEST_ERROR, "qp 0x%x: request with psn 0x%x failed, nak 0x%x",
            qp->obj.num, psn, fault->nak);
    if (qp->service->reliable && fault->nak) {
        qp->resp.s->failed = true;
        responder_ack(qp, psn, fault->nak);
    }
    qp_counters(qp)->resp_remote_access_errors += verdict == VERDICT_ACCESS;
    qp_counters(qp)->resp_remote_invalid_request += verdict == VERDICT_INVALID;
    return fault;
}

void responder_fail(struct qp *qp, enum verdict verdict, uint32_t psn)
{
    const struct fault *fault = report_fault(qp, verdict, psn);
    struct responder_state *s = qp->resp.s;

    s->msg = MSG_NONE;
    if (s->have_wqe) {
        abandon_wqe(qp, fault->cqe);
        qp_set_state(qp, PRM_QP_STATE_ERR);
    } else {
        qp_fatal(qp, fault->event);
    }
}

void responder_fail_answer(struct qp *qp, enum verdict verdict, uint32_t psn)
{
    qp_fatal(qp, report_fault(qp, verdict, psn)->event);
}

enum verdict responder_take(struct qp *qp)
{
    struct responder_state *s = qp->resp.s;

    if (s->have_wqe) {
        return VERDICT_OK;
    }
    switch (qp_take_recv(qp, message_srq(qp), &s->wqe)) {
    case RECV_OK:
        s->have_wqe = true;
        return VERDICT_OK;
    case RECV_EMPTY:
        qp_counters(qp)->out_of_buffer++;
        return VERDICT_RNR;
    default:
        return VERDICT_OPERATION;
    }
}

void responder_complete(struct qp *qp, enum prm_cqe_opcode opcode, uint64_t byte_cnt, uint8_t *cqe,
                        bool solicited)
{
    struct responder_state *s = qp->resp.s;

    s->have_wqe = false;
    qp_complete_recv(qp, message_srq(qp), &s->wqe, opcode, (uint32_t)byte_cnt, solicited, cqe);
}

/* -- SEND, WRITE ------------------------------------------------------------------------------- */

/* Whether the packet's place in its message fits the message that is arriving (IBTA 9.7.4). */
static bool sequence_ok(const struct responder_state *s, uint32_t flags)
{
    enum responder_msg msg = flags & PKT_SEND ? MSG_SEND : flags & PKT_WRITE ? MSG_WRITE : MSG_NONE;

    return flags & PKT_FIRST ? s->msg == MSG_NONE : s->msg == msg;
}

/* All but the last packet of a message are as long as the path MTU; the last one of several is not
 * empty (C9-92). */
static bool packet_len_ok(const struct qp *qp, uint32_t flags, size_t len)
{
    if (!(flags & PKT_LAST)) {
        return len == qp->mtu;
    }
    return len <= qp->mtu && (len > 0 || (flags & PKT_FIRST));
}

static void complete(struct qp *qp, const struct roce_packet *pkt, uint32_t flags)
{
    struct responder_state *s = qp->resp.s;
    uint8_t cqe[PRM_SIZE(cqe64)] = {0};
    enum prm_cqe_opcode opcode = PRM_CQE_OPCODE_RESP_SEND;

    if (flags & HDR_IETH) {
        opcode = PRM_CQE_OPCODE_RESP_SEND_INV;
        PRM_SET(cqe64, cqe, inval_rkey, pkt->imm);
    } else if (flags & HDR_IMM_DT) {
        opcode = flags & PKT_WRITE ? PRM_CQE_OPCODE_RESP_WR_IMM : PRM_CQE_OPCODE_RESP_SEND_IMM;
        PRM_SET(cqe64, cqe, immediate, pkt->imm);
    }
    PRM_SET(cqe64, cqe, rqpn, qp->remote_qpn);
    responder_complete(qp, opcode, s->done, cqe, pkt->solicited);
}

static enum verdict exec_send(struct qp *qp, const struct roce_packet *pkt, uint32_t flags)
{
    struct responder_state *s = qp->resp.s;

    if (flags & PKT_FIRST) {
        enum verdict verdict = responder_take(qp);

        if (verdict != VERDICT_OK) {
            return verdict;
        }
        s->msg = MSG_SEND;
        s->done = 0;
        memset(&s->cursor, 0, sizeof(s->cursor));
    }
    if (s->done + pkt->payload_len > s->wqe.len) {
        return VERDICT_LENGTH;
    }
    if (s->done + pkt->payload_len > 1ull << qp->log_msg_max) {
        return VERDICT_INVALID;
    }
    if (pkt->payload_len) {
        enum mem_result result = sge_scatter(qp->hca, s->wqe.sge, s->wqe.num_sge, s->recv_pdn,
                                             &s->cursor, s->done, pkt->payload, pkt->payload_len);

        if (result != MEM_OK) {
            return result == MEM_NO_ANSWER ? VERDICT_OPERATION : VERDICT_LOCAL_PROT;
        }
        s->done += pkt->payload_len;
    }
    if (flags & PKT_LAST) {
        if ((flags & HDR_IETH) && (!mkey_allows_qp(qp->hca, pkt->imm, qp->obj.num) ||
                                   mkey_invalidate(qp->hca, pkt->imm, s->pdn, true) != MEM_OK)) {
            return VERDICT_INVALIDATE;
        }
        s->msg = MSG_NONE;
        complete(qp, pkt, flags);
    }
    return VERDICT_OK;
}

/* The RETH of a WRITE or READ. */
static enum verdict check_reth(struct qp *qp, const struct roce_packet *pkt, unsigned access)
{
    if (pkt->reth.len > MAX_MESSAGE || pkt->reth.len > 1ull << qp->log_msg_max) {
        return VERDICT_INVALID;
    }
    if (pkt->reth.len && !mkey_allows_qp(qp->hca, pkt->reth.rkey, qp->obj.num)) {
        return VERDICT_ACCESS;
    }
    return verdict_of(
        mkey_check(qp->hca, pkt->reth.rkey, qp->resp.s->pdn, pkt->reth.va, pkt->reth.len, access));
}

static enum verdict exec_write(struct qp *qp, const struct roce_packet *pkt, uint32_t flags)
{
    struct responder_state *s = qp->resp.s;
    bool first = flags & PKT_FIRST, last = flags & PKT_LAST;
    uint64_t left = first ? pkt->reth.len : s->left;
    uint64_t va = first ? pkt->reth.va : s->va;
    uint32_t rkey = first ? pkt->reth.rkey : s->rkey;
    enum verdict verdict;

    if (first && !qp->rwe) {
        return VERDICT_INVALID;
    }
    /* The packets carry what the RETH announced, neither more nor less (IBTA 9.7.4). */
    if (last ? pkt->payload_len != left : pkt->payload_len >= left) {
        return VERDICT_INVALID;
    }
    /* Before the key is looked at: it is this WQE that reports a bad one. */
    if (flags & HDR_IMM_DT) {
        verdict = responder_take(qp);
        if (verdict != VERDICT_OK) {
            return verdict;
        }
    }
    if (first) {
        verdict = check_reth(qp, pkt, MEM_REMOTE_WRITE);
        if (verdict != VERDICT_OK) {
            return verdict;
        }
        qp_counters(qp)->rx_write_requests++;
        s->done = 0;
    }
    if (pkt->payload_len) {
        verdict = verdict_of(mkey_write(qp->hca, rkey, s->pdn, va, pkt->payload, pkt->payload_len,
                                        MEM_REMOTE_WRITE));
        if (verdict != VERDICT_OK) {
            return verdict;
        }
    }
    s->msg = last ? MSG_NONE : MSG_WRITE;
    s->rkey = rkey;
    s->va = va + pkt->payload_len;
    s->left = left - pkt->payload_len;
    s->done += pkt->payload_len;
    if (flags & HDR_IMM_DT) {
        complete(qp, pkt, flags);
    }
    return VERDICT_OK;
}

/* -- READ, atomics ----------------------------------------------------------------------------- */

static uint32_t read_packets(const struct qp *qp, uint32_t len)
{
    return len ? (uint32_t)(((uint64_t)len + qp->mtu - 1) / qp->mtu) : 1;
}

/* A place for one more READ or atomic. More than the QP was set up for are a fault of the
 * requester (IBTA 9.7.4: NAK invalid request); a queue full of answers to duplicates is not. */
static enum verdict check_room(struct qp *qp)
{
    if (qp->resp.s->fresh >= 1u << qp->log_rra_max) {
        return VERDICT_INVALID;
    }
    return responder_has_room(qp) ? VERDICT_OK : VERDICT_DROP;
}

static struct responder_resource *new_resource(struct qp *qp)
{
    struct responder_state *s = qp->resp.s;
    struct responder_resource *res = &s->resources[s->next_resource];

    s->next_resource = (s->next_resource + 1) & ((1u << qp->log_rra_max) - 1);
    return res;
}

static enum verdict exec_read(struct qp *qp, const struct roce_packet *pkt)
{
    enum verdict verdict;

    if (!qp->rre) {
        return VERDICT_INVALID;
    }
    verdict = check_reth(qp, pkt, MEM_REMOTE_READ);
    if (verdict == VERDICT_OK) {
        verdict = check_room(qp);
    }
    if (verdict != VERDICT_OK) {
        return verdict;
    }
    qp_counters(qp)->rx_read_requests++;
    *new_resource(qp) = (struct responder_resource){
        .valid = true,
        .psn = pkt->psn,
        .npsn = read_packets(qp, pkt->reth.len),
        .va = pkt->reth.va,
        .pdn = qp->resp.s->pdn,
        .rkey = pkt->reth.rkey,
        .len = pkt->reth.len,
    };
    responder_answer(qp, &(struct response){
                             .kind = RESPONSE_READ,
                             .psn = pkt->psn,
                             .msn = (qp->resp.msn + 1) & PSN_MASK,
                             .va = pkt->reth.va,
                             .pdn = qp->resp.s->pdn,
                             .rkey = pkt->reth.rkey,
                             .len = pkt->reth.len,
                         });
    return VERDICT_OK;
}

static enum verdict exec_atomic(struct qp *qp, const struct roce_packet *pkt)
{
    uint8_t op = pkt->opcode & 0x1f;
    uint32_t pdn = qp->resp.s->pdn;
    enum mem_result result;
    enum verdict verdict;
    uint64_t value = 0;

    if (!qp->rae || qp->atomic_mode == PRM_ATOMIC_MODE_NONE || pkt->atomic.va % 8) {
        return VERDICT_INVALID;
    }
    verdict = check_room(qp);
    if (verdict != VERDICT_OK) {
        return verdict;
    }
    if (!mkey_allows_qp(qp->hca, pkt->atomic.rkey, qp->obj.num)) {
        return VERDICT_ACCESS;
    }
    if (op == BTH_CMP_SWAP) {
        result = mkey_cmp_swap(qp->hca, pkt->atomic.rkey, pdn, pkt->atomic.va, pkt->atomic.compare,
                               pkt->atomic.swap_add, &value);
    } else {
        result = mkey_fetch_add(qp->hca, pkt->atomic.rkey, pdn, pkt->atomic.va,
                                pkt->atomic.swap_add, &value);
    }
    if (result != MEM_OK) {
        return verdict_of(result);
    }
    qp_counters(qp)->rx_atomic_requests++;
    *new_resource(qp) = (struct responder_resource){
        .valid = true,
        .atomic = true,
        .psn = pkt->psn,
        .npsn = 1,
        .value = value,
    };
    responder_answer(qp, &(struct response){
                             .kind = RESPONSE_ATOMIC,
                             .psn = pkt->psn,
                             .msn = (qp->resp.msn + 1) & PSN_MASK,
                             .value = value,
                         });
    return VERDICT_OK;
}

/* -- RC and XRC -------------------------------------------------------------------------------- */

/* The READ or atomic that psn belongs to: the newest, should PSNs have come round since. */
static const struct responder_resource *find_resource(const struct qp *qp, uint32_t psn,
                                                      bool atomic)
{
    const struct responder_state *s = qp->resp.s;

    unsigned n = s->num_resources ? 1u << qp->log_rra_max : 0;

    for (unsigned i = 1; i <= n; i++) {
        const struct responder_resource *res = &s->resources[(s->next_resource - i) & (n - 1)];

        if (res->valid && res->atomic == atomic && ((psn - res->psn) & PSN_MASK) < res->npsn) {
            return res;
        }
    }
    return NULL;
}

/* A duplicate READ asks for what an earlier one asked for, or for the end of it (IBTA 9.7.5). */
static void repeat_read(struct qp *qp, const struct roce_packet *pkt)
{
    const struct responder_resource *res = find_resource(qp, pkt->psn, false);
    uint64_t skipped;

    if (!res) {
        return;
    }
    skipped = (uint64_t)((pkt->psn - res->psn) & PSN_MASK) * qp->mtu;
    if (pkt->reth.rkey != res->rkey || pkt->reth.va != res->va + skipped ||
        pkt->reth.len > res->len - skipped || !responder_has_room(qp)) {
        return;
    }
    responder_answer(qp, &(struct response){
                             .kind = RESPONSE_READ,
                             .duplicate = true,
                             .psn = pkt->psn,
                             .msn = qp->resp.msn,
                             .va = pkt->reth.va,
                             .pdn = res->pdn,
                             .rkey = pkt->reth.rkey,
                             .len = pkt->reth.len,
                         });
}

/* An atomic is not executed again: its result is sent again (IBTA 9.7.5). */
static void repeat_atomic(struct qp *qp, const struct roce_packet *pkt)
{
    const struct responder_resource *res = find_resource(qp, pkt->psn, true);

    if (res && responder_has_room(qp)) {
        responder_answer(qp, &(struct response){
                                 .kind = RESPONSE_ATOMIC,
                                 .duplicate = true,
                                 .psn = pkt->psn,
                                 .msn = qp->resp.msn,
                                 .value = res->value,
                             });
    }
}

static void rx_duplicate(struct qp *qp, const struct roce_packet *pkt, uint32_t flags)
{
    qp_counters(qp)->duplicate_request++;
    if (flags & PKT_READ) {
        repeat_read(qp, pkt);
    } else if (flags & PKT_ATOMIC) {
        repeat_atomic(qp, pkt);
    } else {
        /* C9-105: acknowledged as of now, not as of then. */
        responder_ack(qp, qp->resp.epsn - 1, AETH_ACK);
    }
}

/* Whose memory and WQEs the request may use: the QP's, or with XRC those of the SRQ that it names,
 * which belongs to the QP's XRC domain and is the same throughout a message (annex A14). The keys
 * in an SRQ's WQEs are of the SRQ's domain, which need not be the QP's (IBTA 10.2.3.1). */
static bool find_recipient(struct qp *qp, const struct roce_packet *pkt, uint32_t flags)
{
    struct responder_state *s = qp->resp.s;
    const struct srq *srq;

    if (!qp->service->names_srq) {
        s->pdn = qp->pdn;
        s->recv_pdn = qp_recv_pdn(qp);
        return true;
    }
    if (flags & PKT_FIRST) {
        s->srqn = pkt->xrc_srqn;
    }
    srq = message_srq(qp);
    if (!srq || pkt->xrc_srqn != s->srqn) {
        return false;
    }
    s->pdn = s->recv_pdn = srq->attr.pdn;
    return true;
}

static enum verdict execute(struct qp *qp, const struct roce_packet *pkt, uint32_t flags)
{
    if (!sequence_ok(qp->resp.s, flags) || !find_recipient(qp, pkt, flags)) {
        return VERDICT_INVALID;
    }
    if (flags & PKT_READ) {
        return exec_read(qp, pkt);
    }
    if (flags & PKT_ATOMIC) {
        return exec_atomic(qp, pkt);
    }
    if (!packet_len_ok(qp, flags, pkt->payload_len)) {
        return VERDICT_INVALID;
    }
    return flags & PKT_SEND ? exec_send(qp, pkt, flags) : exec_write(qp, pkt, flags);
}

static void rx_reliable(struct qp *qp, const struct roce_packet *pkt, uint32_t flags)
{
    struct responder_state *s = qp->resp.s;
    int32_t ahead = psn_diff(pkt->psn, qp->resp.epsn);
    enum verdict verdict;

    if (ahead < 0) {
        rx_duplicate(qp, pkt, flags);
        return;
    }
    if (ahead > 0) {
        qp_counters(qp)->out_of_sequence++;
        if (!s->nak_sent) {
            /* One NAK for a gap, with the PSN that is missing (IBTA 9.7.5). */
            s->nak_sent = true;
            responder_ack(qp, qp->resp.epsn, AETH_NAK_SEQ);
        }
        return;
    }

    verdict = execute(qp, pkt, flags);
    switch (verdict) {
    case VERDICT_OK:
        break;
    case VERDICT_DROP:
        return;
    case VERDICT_RNR:
        s->nak_sent = true;
        responder_ack(qp, pkt->psn, AETH_RNR | qp->min_rnr_nak);
        return;
    default:
        responder_fail(qp, verdict, pkt->psn);
        return;
    }
    if (qp->state == PRM_QP_STATE_ERR) {
        return; /* the completion found no room in its CQ */
    }
    s->nak_sent = false;
    qp->resp.epsn =
        (pkt->psn + (flags & PKT_READ ? read_packets(qp, pkt->reth.len) : 1)) & PSN_MASK;
    if (flags & PKT_LAST) {
        qp->resp.msn = (qp->resp.msn + 1) & PSN_MASK;
    }
    if (pkt->ackreq && !(flags & (PKT_READ | PKT_ATOMIC))) {
        responder_ack(qp, pkt->psn, AETH_ACK);
    }
}

/* -- unreliable connection --------------------------------------------------------------------- */

static void rx_uc(struct qp *qp, const struct roce_packet *pkt, uint32_t flags)
{
    struct responder_state *s = qp->resp.s;
    enum verdict verdict;

    if (flags & PKT_FIRST) {
        /* A new message begins with any PSN; what was before and did not end is lost (9.8.2). */
        qp->resp.epsn = pkt->psn;
        s->msg = MSG_NONE;
    } else if (pkt->psn != qp->resp.epsn) {
        qp_counters(qp)->out_of_sequence++;
        s->msg = MSG_NONE;
        return;
    }
    qp->resp.epsn = (pkt->psn + 1) & PSN_MASK;
    verdict = execute(qp, pkt, flags);
    if (verdict == VERDICT_LOCAL_PROT || verdict == VERDICT_OPERATION) {
        responder_fail(qp, verdict, pkt->psn);
    } else if (verdict != VERDICT_OK) {
        s->msg = MSG_NONE;
    } else if (flags & PKT_LAST) {
        qp->resp.msn = (qp->resp.msn + 1) & PSN_MASK;
    }
}

void responder_rx(struct qp *qp, const struct roce_packet *pkt)
{
    struct responder_state *s = qp->resp.s;
    uint32_t flags = bth_opcodes[pkt->opcode].flags;

    if (!qp->service->connected) {
        responder_rx_ud(qp, pkt);
        return;
    }
    if (qp->state == PRM_QP_STATE_RTR && !s->comm_est) {
        s->comm_est = true;
        qp_event(qp, PRM_EVENT_TYPE_COMM_EST);
    }
    if (qp->service->reliable) {
        rx_reliable(qp, pkt, flags);
    } else {
        rx_uc(qp, pkt, flags);
    }
}

/* -- life -------------------------------------------------------------------------------------- */

bool responder_init(struct qp *qp)
{
    qp->resp.s = qp_alloc(qp, sizeof(*qp->resp.s));
    if (!qp->resp.s) {
        return false;
    }
    qp->resp.s->qp = qp;
    return responder_tx_init(qp);
}

void responder_clear(struct qp *qp)
{
    if (qp->resp.s) {
        responder_tx_clear(qp);
        qp_dealloc(qp, qp->resp.s, sizeof(*qp->resp.s));
    }
}

void responder_reset(struct qp *qp, uint32_t next_rcv_psn)
{
    struct responder_state *s = qp->resp.s;

    responder_tx_reset(qp);
    s->acked_psn = (next_rcv_psn - 1) & PSN_MASK;
    qp->resp.epsn = next_rcv_psn & PSN_MASK;
    qp->resp.msn = 0;
    s->msg = MSG_NONE;
    s->have_wqe = s->nak_sent = s->comm_est = s->failed = false;
    s->next_resource = 0;
}

void responder_flush(struct qp *qp)
{
    struct responder_state *s = qp->resp.s;

    responder_tx_flush(qp);
    s->msg = MSG_NONE;
    if (s->have_wqe) {
        abandon_wqe(qp, PRM_CQE_SYNDROME_WR_FLUSH_ERR);
    }
}
