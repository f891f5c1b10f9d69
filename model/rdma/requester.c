/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The requester's life, and that of a WQE: fetched, started, completed, or flushed.
 *
 * One struct work does everything that is not an answer to a packet. It runs when the doorbell
 * rings, when a response has made room, when a timer fired or when the wire has room again, and
 * does a burst at a time so that QPs take turns.
 *
 * Fences (ctrl.fm) hold back the start of a WQE: FENCE until no READ or atomic is outstanding,
 * STRONG_ORDERING until everything before is done. INITIATOR_SMALL needs no waiting, because what
 * changes a key is carried out when it is started, in order.
 */
#include <string.h>
#include "model/core/trace.h"
#include "model/queue/cqe.h"
#include "model/queue/q_counter.h"
#include "model/rdma/requester_state.h"

/* Packets or WQEs in one turn. */
#define BURST 16

/* PSNs in flight must be fewer than half the number space (IBTA 9.7.1). */
#define MAX_PSNS ((1u << 23) - 1)

static struct qp *work_qp(struct work *work)
{
    return (struct qp *)((char *)work - offsetof(struct qp, req.work));
}

/* -- completions ------------------------------------------------------------------------------- */

static void count_error(struct q_counter *c, uint8_t syndrome)
{
    switch (syndrome) {
    case PRM_CQE_SYNDROME_LOCAL_LENGTH_ERR:
        c->req_local_length_error++;
        break;
    case PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR:
        c->local_operation_error++;
        break;
    case PRM_CQE_SYNDROME_LOCAL_PROT_ERR:
        c->req_local_protection++;
        break;
    case PRM_CQE_SYNDROME_WR_FLUSH_ERR:
        c->req_cqe_flush_error++;
        break;
    case PRM_CQE_SYNDROME_MW_BIND_ERR:
        c->req_mw_binding++;
        break;
    case PRM_CQE_SYNDROME_BAD_RESP_ERR:
        c->req_bad_response++;
        break;
    case PRM_CQE_SYNDROME_REMOTE_INVAL_REQ_ERR:
        c->req_remote_invalid_request++;
        break;
    case PRM_CQE_SYNDROME_REMOTE_ACCESS_ERR:
        c->req_remote_access_errors++;
        break;
    case PRM_CQE_SYNDROME_REMOTE_OP_ERR:
        c->req_remote_operation_errors++;
        break;
    case PRM_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR:
        c->req_transport_retries_exceeded++;
        break;
    case PRM_CQE_SYNDROME_RNR_RETRY_EXC_ERR:
        c->req_rnr_retries_exceeded++;
        break;
    default:
        break;
    }
}

static struct cqe_about requester_about(const struct qp *qp, uint16_t index)
{
    return (struct cqe_about){.qpn = qp->obj.num, .srqn = qp_cqe_srqn(qp), .index = index};
}

static void requester_complete_error(struct qp *qp, uint16_t index, uint8_t opcode,
                                     uint8_t syndrome)
{
    uint8_t cqe[PRM_SIZE(cqe64)] = {0};
    struct q_counter *counters = qp_counters(qp);

    counters->req_cqe_error++;
    count_error(counters, syndrome);
    cqe_send_failed(cqe, requester_about(qp, index), opcode, syndrome);
    qp_post_cqe(qp, qp->send_cq, cqe, true);
}

static void requester_complete(struct qp *qp, const struct send_desc *desc)
{
    bool has_bytes = desc->flags & (SEND_OP_READ | SEND_OP_ATOMIC);
    uint8_t cqe[PRM_SIZE(cqe64)] = {0};

    if (desc->ce != PRM_WQE_CE_ALWAYS && desc->ce != PRM_WQE_CE_ALWAYS_EQE) {
        return;
    }
    cqe_sent(cqe, requester_about(qp, desc->index), desc->opcode, has_bytes ? desc->len : 0);
    qp_post_cqe(qp, qp->send_cq, cqe, desc->ce == PRM_WQE_CE_ALWAYS_EQE);
}

static void enter_error(struct qp *qp)
{
    qp_set_state(qp, qp->service->has_sqe ? PRM_QP_STATE_SQER : PRM_QP_STATE_ERR);
    requester_flush(qp);
}

void requester_retire(struct qp *qp)
{
    struct requester_state *s = qp->req.s;

    while (s->head != s->tail) {
        struct send_desc desc = *send_desc(s, s->head);

        if (desc.status == SEND_ACTIVE) {
            break;
        }
        /* The next WQE of this number must not find this one's. */
        if (s->rx_wqe.num == s->head) {
            s->rx_wqe.valid = false;
        }
        s->head++;
        if (desc.status == SEND_FAILED) {
            requester_complete_error(qp, desc.index, desc.opcode, desc.syndrome);
            /* An overrun of the CQ may have been faster. */
            if (qp_may_send(qp)) {
                enter_error(qp);
            }
            return;
        }
        requester_complete(qp, &desc);
        if (!qp_may_send(qp)) {
            return;
        }
    }
    if ((int32_t)(s->tx - s->head) < 0) {
        s->tx = s->head;
        s->tx_psn = s->tx == s->tail ? qp->req.next_psn : send_desc(s, s->tx)->first_psn;
    }
}

void requester_fail(struct qp *qp, struct send_desc *desc, uint8_t syndrome)
{
    hca_log(qp->hca, HCA_LOG_TRACE, "qp 0x%x: wqe %u fails, syndrome 0x%x", qp->obj.num,
            desc->index, syndrome);
    desc->status = SEND_FAILED;
    desc->syndrome = syndrome;
    qp->req.s->failed = true;
    requester_retire(qp);
}

/* -- starting a WQE ---------------------------------------------------------------------------- */

static struct send_limits send_limits(const struct qp *qp)
{
    return (struct send_limits){
        .service = qp->service,
        .log_msg_max = MIN(qp->log_msg_max, qp->hca->limits.log_max_msg),
        .max_wqe = MIN(qp->hca->limits.max_sq_wqe, WQE_MAX_BYTES),
    };
}

static void cache_fill(struct qp *qp, struct wqe_cache *cache, uint32_t num, uint16_t index,
                       unsigned max_bb)
{
    struct send_limits limits = send_limits(qp);

    cache->syndrome = send_wqe_fetch(qp->hca, &qp->sq, index, max_bb, &limits, &cache->wqe);
    cache->num = num;
    cache->cursor = (struct sge_cursor){0};
    cache->valid = true;
}

const struct send_wqe *requester_wqe(struct qp *qp, struct wqe_cache *cache, uint32_t num)
{
    const struct send_desc *desc = send_desc(qp->req.s, num);

    if (!cache->valid || cache->num != num) {
        cache_fill(qp, cache, num, desc->index, desc->num_bb);
    }
    if (cache->syndrome || cache->wqe.opcode != desc->opcode || cache->wqe.len != desc->len ||
        cache->wqe.num_bb != desc->num_bb) {
        return NULL;
    }
    return &cache->wqe;
}

/* Bytes that a datagram may have: what fits a frame of the port's MTU, as the driver computes
 * active_mtu (iboe_get_mtu), in powers of two. */
static uint32_t datagram_max(const struct qp *qp)
{
    const uint32_t fcs = 4;
    uint32_t mtu = qp->mtu;

    while (mtu > 256 && mtu + ROCE_HEADER_MAX + ICRC_BYTES + fcs > qp->hca->port->mtu) {
        mtu /= 2;
    }
    return mtu;
}

/* What only starting a WQE can find out. Returns 0 or the syndrome that it fails with. The keys of
 * what a READ or atomic brings are not looked at before it comes: the request goes out, and the
 * responder may refuse it first. */
static uint8_t check_start(struct qp *qp, const struct send_wqe *wqe)
{
    struct roce_addr addr;

    if (wqe->av) {
        if (wqe->len > datagram_max(qp)) {
            return PRM_CQE_SYNDROME_LOCAL_LENGTH_ERR;
        }
        if (!send_wqe_address(qp->hca, wqe, &addr)) {
            return PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR;
        }
    }
    return 0;
}

/* PSNs that a message takes: its packets; a READ's response packets; at least one. */
static uint32_t psns(const struct qp *qp, const struct send_wqe *wqe)
{
    if (wqe->op->flags & SEND_OP_LOCAL) {
        return 0;
    }
    return wqe->len <= qp->mtu ? 1 : (uint32_t)((wqe->len + qp->mtu - 1) / qp->mtu);
}

/* Whether a WQE's start must wait for responses, which will run the work again. */
static bool must_wait(const struct qp *qp, const struct send_wqe *wqe)
{
    const struct requester_state *s = qp->req.s;
    uint32_t in_flight = (qp->req.next_psn - qp->req.unacked_psn) & PSN_MASK;

    if (!qp->service->reliable) {
        return false;
    }
    switch (wqe->fence) {
    case PRM_WQE_FM_NONE:
    case PRM_WQE_FM_INITIATOR_SMALL:
        break;
    case PRM_WQE_FM_FENCE:
    case PRM_WQE_FM_SMALL_AND_FENCE:
        if (s->reads) {
            return true;
        }
        break;
    default:
        if (s->head != s->tail) {
            return true;
        }
        break;
    }
    if (wqe->op->flags & (SEND_OP_READ | SEND_OP_ATOMIC) && s->reads >= 1u << qp->log_sra_max) {
        return true;
    }
    return in_flight && in_flight + psns(qp, wqe) > MAX_PSNS;
}

/* Takes the WQE in tx_wqe as descriptor tail. */
static struct send_desc *take_wqe(struct qp *qp)
{
    struct requester_state *s = qp->req.s;
    const struct send_wqe *wqe = &s->tx_wqe.wqe;
    struct send_desc *desc = send_desc(s, s->tail);

    *desc = (struct send_desc){
        .first_psn = qp->req.next_psn,
        .first_req = s->next_req,
        .index = wqe->index,
        .opcode = wqe->opcode,
        .num_bb = wqe->num_bb,
        .ce = wqe->ce,
    };
    if (qp->hca->tracing) {
        trace_send_wqe(qp->hca, qp->obj.num, wqe->index, wqe->opcode, wqe->image,
                       send_wqe_bytes(wqe));
    }
    s->tail++;
    qp->sq.ci = (qp->sq.ci + MAX(wqe->num_bb, 1)) & 0xffff;
    return desc;
}

static void assign_psns(struct qp *qp, struct send_desc *desc, const struct send_wqe *wqe)
{
    struct requester_state *s = qp->req.s;

    desc->len = (uint32_t)wqe->len;
    desc->flags = wqe->op->flags;
    desc->npsn = psns(qp, wqe);
    qp->req.next_psn = (qp->req.next_psn + desc->npsn) & PSN_MASK;
    if (desc->flags & (SEND_OP_READ | SEND_OP_ATOMIC)) {
        s->reads++;
        s->next_req++;
    } else {
        s->next_req += desc->npsn;
    }
    if (desc->npsn) {
        qp->req.ssn = (qp->req.ssn + 1) & PSN_MASK;
    }
}

/* Starts the next posted WQE, if there is one and it need not wait. */
static enum send_step start_next(struct qp *qp)
{
    struct requester_state *s = qp->req.s;
    const struct send_wqe *wqe = &s->tx_wqe.wqe;
    struct send_desc *desc;
    uint8_t syndrome;

    if (qp->state != PRM_QP_STATE_RTS || s->failed) {
        return STEP_IDLE;
    }
    if (wq_posted(&qp->sq) == 0 && !wq_update_pi(qp->hca, &qp->sq)) {
        hca_log(qp->hca, HCA_LOG_GUEST_ERROR,
                "qp 0x%x: doorbell record is unreadable or impossible", qp->obj.num);
        qp_fatal(qp, PRM_EVENT_TYPE_WQ_CATAS_ERROR);
        return STEP_IDLE;
    }
    /* Who waits for room has looked at what is posted: the next response runs the work again. */
    if (wq_posted(&qp->sq) == 0 || s->tail - s->head > s->mask) {
        return STEP_IDLE;
    }
    if (!s->tx_wqe.valid || s->tx_wqe.num != s->tail) {
        requester_forget_umr(qp); /* of the WQE as it was before packets were sent again */
        cache_fill(qp, &s->tx_wqe, s->tail, (uint16_t)qp->sq.ci, wq_posted(&qp->sq));
    }
    syndrome = s->tx_wqe.syndrome;
    if (!syndrome && must_wait(qp, wqe)) {
        return STEP_IDLE;
    }
    if (!syndrome && !requester_read_umr(qp, wqe, &syndrome)) {
        return STEP_DONE;
    }
    desc = take_wqe(qp);
    if (!syndrome) {
        syndrome = check_start(qp, wqe);
    }
    if (!syndrome) {
        assign_psns(qp, desc, wqe);
        if (desc->npsn) {
            return STEP_DONE;
        }
        syndrome = requester_execute_local(qp, wqe);
    }
    requester_forget_umr(qp);
    if (syndrome) {
        hca_log(qp->hca, HCA_LOG_GUEST_ERROR, "qp 0x%x: bad WQE %u, opcode 0x%x, syndrome 0x%x",
                qp->obj.num, desc->index, desc->opcode, syndrome);
        requester_fail(qp, desc, syndrome);
        return STEP_DONE;
    }
    desc->status = SEND_DONE;
    requester_retire(qp);
    return STEP_DONE;
}

/* -- work -------------------------------------------------------------------------------------- */

static enum send_step step(struct qp *qp)
{
    struct requester_state *s = qp->req.s;

    if (s->rnr_wait) {
        return STEP_IDLE;
    }
    while (s->tx != s->tail && send_desc(s, s->tx)->status == SEND_DONE) {
        s->tx++;
        s->tx_psn = s->tx == s->tail ? qp->req.next_psn : send_desc(s, s->tx)->first_psn;
    }
    if (s->tx == s->tail) {
        return start_next(qp);
    }
    if (send_desc(s, s->tx)->status == SEND_FAILED) {
        return STEP_IDLE;
    }
    return requester_send(qp, send_desc(s, s->tx));
}

static void check_drained(struct qp *qp)
{
    const struct requester_state *s = qp->req.s;

    if (qp->state == PRM_QP_STATE_SQ_DRAINING && (!s || s->head == s->tail)) {
        qp_set_state(qp, PRM_QP_STATE_SQD);
        qp_event(qp, PRM_EVENT_TYPE_SQ_DRAINED);
    }
}

static void run_send(struct qp *qp)
{
    struct requester_state *s = qp->req.s;

    for (unsigned n = 0; n < BURST && qp_may_send(qp) && (n == 0 || hca_may_go_on(qp->hca)); n++) {
        enum send_step result = step(qp);

        if (result == STEP_BLOCKED) {
            s->tx_blocked = true;
            hca_wait_tx(qp->hca, &qp->req.work);
            return;
        }
        if (result == STEP_IDLE) {
            check_drained(qp);
            return;
        }
    }
    hca_schedule(qp->hca, &qp->req.work);
}

/* One WQE to WR_FLUSH_ERR: a started one, else a posted one, as far as is known. False: there is
 * none. */
static bool flush_one(struct qp *qp)
{
    struct requester_state *s = qp->req.s;
    uint16_t index = (uint16_t)qp->sq.ci;
    unsigned num_bb;
    uint8_t opcode;

    if (s->head != s->tail) {
        const struct send_desc *desc = send_desc(s, s->head++);

        requester_complete_error(qp, desc->index, desc->opcode, PRM_CQE_SYNDROME_WR_FLUSH_ERR);
        return true;
    }
    if (wq_posted(&qp->sq) == 0) {
        return false;
    }
    num_bb = send_wqe_peek(qp->hca, &qp->sq, index, wq_posted(&qp->sq), &opcode);
    if (num_bb == 0) {
        /* Where the next one begins is unknown: this one stands for all that follow. */
        num_bb = wq_posted(&qp->sq);
    }
    qp->sq.ci = (qp->sq.ci + num_bb) & 0xffff;
    requester_complete_error(qp, index, opcode, PRM_CQE_SYNDROME_WR_FLUSH_ERR);
    return true;
}

/* Flushes as long as it may: in ERR and SQER also what is posted meanwhile. True: more may be left.
 */
static bool flush(struct qp *qp)
{
    struct requester_state *s = qp->req.s;

    while (flush_one(qp) || (!s->resuming && wq_update_pi(qp->hca, &qp->sq) && flush_one(qp))) {
        hca_spend(qp->hca, 1);
        if (!hca_may_go_on(qp->hca)) {
            return true;
        }
    }
    s->tx = s->head;
    s->tx_psn = s->sent_psn = qp->req.unacked_psn = qp->req.next_psn;
    s->failed = s->resuming = false;
    return false;
}

/* Hot: what gcc takes for its rarer branches is every message's way (and "rep stos" slow there). */
__attribute__((hot)) static void requester_work(struct hca *hca, struct work *work)
{
    struct qp *qp = work_qp(work);
    struct requester_state *s = qp->req.s;

    if (!s) {
        check_drained(qp);
        return;
    }
    s->tx_blocked = false;
    qp_path_check(qp);
    if (qp_may_send(qp) && !s->resuming) {
        run_send(qp);
    } else if (qp->state == PRM_QP_STATE_ERR || qp->state == PRM_QP_STATE_SQER || s->resuming) {
        if (flush(qp) || qp_may_send(qp)) {
            hca_schedule(hca, work);
        }
    }
}

/* -- life -------------------------------------------------------------------------------------- */

static size_t ring_bytes(const struct requester_state *s)
{
    return (s->mask + (size_t)1) * sizeof(s->ring[0]);
}

bool requester_init(struct qp *qp)
{
    struct requester_state *s;

    qp->req.work.run = requester_work;
    qp->req.timer.fire = requester_timeout;
    if (!qp->has_sq) {
        return true;
    }
    s = qp->req.s = qp_alloc(qp, sizeof(*s));
    if (!s) {
        return false;
    }
    s->mask = MIN(1u << qp->sq.log_size, STARTED_MAX) - 1;
    s->ring = qp_alloc(qp, ring_bytes(s));
    return s->ring != NULL;
}

void requester_clear(struct qp *qp)
{
    hca_unschedule(&qp->req.work);
    hca_timer_stop(qp->hca, &qp->req.timer);
    if (qp->req.s) {
        requester_forget_umr(qp);
        qp_dealloc(qp, qp->req.s->ring, ring_bytes(qp->req.s));
        qp_dealloc(qp, qp->req.s, sizeof(*qp->req.s));
        qp->req.s = NULL;
    }
}

/* Forgets what is in flight; nothing completes. */
static void forget(struct qp *qp)
{
    struct requester_state *s = qp->req.s;

    s->head = s->tx = s->tail;
    s->tx_psn = s->sent_psn = qp->req.unacked_psn = qp->req.next_psn;
    s->next_req = 0;
    s->reads = 0;
    s->retries = s->rnr_retries = 0;
    s->failed = s->resuming = s->rnr_wait = false;
    s->progress = s->went_back = s->tx_blocked = false;
    s->pause = (struct wire_pause){0};
    s->tx_wqe.valid = s->rx_wqe.valid = false;
    requester_forget_umr(qp);
}

void requester_reset(struct qp *qp, uint32_t next_send_psn)
{
    hca_unschedule(&qp->req.work);
    hca_timer_stop(qp->hca, &qp->req.timer);
    qp->req.next_psn = qp->req.unacked_psn = next_send_psn & PSN_MASK;
    qp->req.ssn = 0;
    qp->sq.ci = qp->sq.pi = 0;
    wq_set_blueflame(&qp->sq, 0, NULL, 0);
    if (qp->req.s) {
        forget(qp);
    }
}

void requester_start(struct qp *qp)
{
    struct requester_state *s = qp->req.s;

    if (!s) {
        return;
    }
    if (s->failed) {
        /* Back from SQER before everything was flushed. */
        s->resuming = true;
        wq_update_pi(qp->hca, &qp->sq);
    }
    hca_schedule(qp->hca, &qp->req.work);
}

void requester_drain(struct qp *qp)
{
    hca_schedule(qp->hca, &qp->req.work);
}

void requester_flush(struct qp *qp)
{
    struct requester_state *s = qp->req.s;

    if (!s) {
        return;
    }
    hca_timer_stop(qp->hca, &qp->req.timer);
    s->rnr_wait = s->resuming = false;
    s->reads = 0;
    s->tx_wqe.valid = s->rx_wqe.valid = false;
    requester_forget_umr(qp);
    hca_unschedule(&qp->req.work);
    hca_schedule(qp->hca, &qp->req.work);
}

void requester_doorbell(struct qp *qp)
{
    bool listening = qp->state == PRM_QP_STATE_RTS || qp->state == PRM_QP_STATE_ERR ||
                     qp->state == PRM_QP_STATE_SQER;

    if (qp->req.s && listening) {
        hca_schedule(qp->hca, &qp->req.work);
    }
}

static uint32_t qp_uar(const struct obj *obj)
{
    return PRM_GET(qpc, ((const struct qp *)obj)->qpc, uar_page);
}

static struct wq *qp_sq(struct obj *obj)
{
    return &((struct qp *)obj)->sq;
}

static void qp_doorbell(struct hca *hca, struct obj *obj, uint64_t ctrl)
{
    requester_doorbell((struct qp *)obj);
}

const struct obj_sender qp_sender = {
    .uar = qp_uar,
    .wq = qp_sq,
    .doorbell = qp_doorbell,
};
