/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Controls the requester's life, and the life of a WQE: fetched, started, completed, or flushed.
 *
 * One struct work does everything that is not a reaction to a packet. It runs when the doorbell
 * rings, when a response has made room, when a timer has fired, or when the wire has credit again.
 * It does a burst at a time so that QPs take turns.
 *
 * Fences (ctrl.fm) delay the start of a WQE: FENCE until no READ or atomic is outstanding,
 * STRONG_ORDERING until everything before is done. INITIATOR_SMALL causes no delay, because WQEs
 * that change a key are carried out when they are started, in order.
 */
#include "model/queue/uar.h"
#include "model/rdma/cross.h"
#include "model/rdma/dci.h"
#include "model/rdma/qp_sched.h"
#include "model/rdma/rdma.h"
#include "model/rdma/reaction_point.h"
#include "model/rdma/requester_internal.h"
#include "model/rdma/trace_wqe.h"
#include "model/rdma/wqe_source.h"

/* Packets or WQEs that the work does in one turn. */
#define BURST 16

/* The PSNs in flight must be fewer than half the number space (IBTA 9.7.1). */
#define MAX_PSNS ((1u << 23) - 1)

static struct qp *requester_work_qp(struct work *work)
{
    return (struct qp *)((char *)work - offsetof(struct qp, req.work));
}

/* -- machines ---------------------------------------------------------------------------------- */

#define IGNORES MACHINE_IGNORES

static const char *const queue_states[] = {
    [QUEUE_OPEN] = "open",
    [QUEUE_FAILED] = "failed",
    [QUEUE_RESUMING] = "resuming",
};

static const char *const queue_events[] = {
    [QUEUE_WQE_FAILED] = "WQE failed", [QUEUE_RTS] = "RTS",
    [QUEUE_FLUSHES] = "flushes",       [QUEUE_STREAM_FAILED] = "stream failed",
    [QUEUE_FLUSHED] = "flushed",
};

#define OPEN     QUEUE_OPEN
#define FAILED   QUEUE_FAILED
#define RESUMING QUEUE_RESUMING

/* clang-format off */
static const uint8_t queue_next[] = {
    /*             WQE failed RTS       flushes  stream failed flushed */
    /* open     */ FAILED,    IGNORES,  IGNORES, OPEN,         OPEN,
    /* failed   */ FAILED,    RESUMING, FAILED,  OPEN,         OPEN,
    /* resuming */ IGNORES,   RESUMING, FAILED,  IGNORES,      OPEN,
};
/* clang-format on */

#undef OPEN
#undef FAILED
#undef RESUMING

const struct machine requester_queue_machine = MACHINE("send queue", queue);

static const char *const recovery_states[] = {
    [RECOVERY_NONE] = "none",
    [RECOVERY_WENT_BACK] = "went back",
    [RECOVERY_RNR_WAIT] = "RNR wait",
};

static const char *const recovery_events[] = {
    [RECOVERY_PROGRESS] = "progress",       [RECOVERY_NAK] = "NAK",
    [RECOVERY_RNR_NAK] = "RNR NAK",         [RECOVERY_ACK_TIMEOUT] = "ACK timeout",
    [RECOVERY_RNR_TIMEOUT] = "RNR timeout", [RECOVERY_ENDS] = "ends",
};

#define NONE      RECOVERY_NONE
#define WENT_BACK RECOVERY_WENT_BACK
#define RNR_WAIT  RECOVERY_RNR_WAIT

/* clang-format off */
static const uint8_t recovery_next[] = {
    /*              progress  NAK        RNR NAK   ACK timeout RNR timeout ends */
    /* none      */ NONE,     WENT_BACK, RNR_WAIT, NONE,       IGNORES,    NONE,
    /* went back */ NONE,     IGNORES,   RNR_WAIT, NONE,       IGNORES,    NONE,
    /* RNR wait  */ RNR_WAIT, IGNORES,   IGNORES,  IGNORES,    NONE,       NONE,
};
/* clang-format on */

#undef NONE
#undef WENT_BACK
#undef RNR_WAIT
#undef IGNORES

const struct machine requester_recovery_machine = MACHINE("recovery", recovery);

bool requester_queue_step(struct qp *qp, enum requester_queue_event event)
{
    return machine_step(&requester_queue_machine, qp->hca, qp->obj.num, &qp->req.flight->queue,
                        event);
}

bool requester_recovery_step(struct qp *qp, enum requester_recovery_event event)
{
    return machine_step(&requester_recovery_machine, qp->hca, qp->obj.num,
                        &qp->req.flight->recovery, event);
}

/* -- lines ------------------------------------------------------------------------------------- */

static void requester_line_forget(struct send_line *line, const struct qp *qp)
{
    if (line->qp == qp) {
        line->qp = NULL;
    }
}

void requester_forget_lines(struct qp *qp)
{
    requester_line_forget(qp->req.flight->tx_line, qp);
    requester_line_forget(qp->req.flight->rx_line, qp);
}

void requester_line_fill(struct qp *qp, struct send_line *line, uint32_t num, enum wqe_source_id id,
                         uint16_t index, unsigned max_bb)
{
    line->syndrome = wqe_source_fetch(qp, id, index, max_bb, &line->wqe);
    line->qp = qp;
    line->num = num;
    line->source = (uint8_t)id;
    line->cursor = (struct sge_cursor){0};
}

/* Whether a key of the list is gone. */
static bool requester_lacks_key(struct qp *qp, const struct send_wqe *wqe, uint32_t pdn)
{
    for (unsigned i = 0; i < wqe->num_sge; i++) {
        if (!wqe->inl[i] && sge_lacks_key(qp->hca, &wqe->sge[i], 1, pdn)) {
            return true;
        }
    }
    return false;
}

/* Elements of keys with signatures have the length that the key gives them (docs/adr/0026). A key
 * that is gone gives none. Otherwise, the program has written over the WQE. */
uint8_t requester_why_changed(struct qp *qp, const struct send_line *line,
                              const struct send_desc *desc)
{
    bool length = !line->syndrome && line->wqe.opcode == desc->opcode &&
                  line->wqe.num_bb == desc->num_bb && line->wqe.len != desc->len;

    return length && requester_lacks_key(qp, &line->wqe, wqe_source_pdn(qp, desc->source))
               ? PRM_CQE_SYNDROME_LOCAL_PROT_ERR
               : PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR;
}

/* -- parking ----------------------------------------------------------------------------------- */

static enum fault_op requester_fault_op(const struct send_wqe *wqe)
{
    unsigned flags = wqe->op->flags;

    return flags & SEND_OP_ATOMIC ? FAULT_ATOMIC
           : flags & SEND_OP_READ ? FAULT_READ
           : wqe->opcode == PRM_WQE_OPCODE_RDMA_WRITE ||
                   wqe->opcode == PRM_WQE_OPCODE_RDMA_WRITE_IMM
               ? FAULT_WRITE
               : FAULT_SEND;
}

/* What the pager is told of a WQE that misses a page. The WQEs of the device's own are in no ring
 * that a driver could read, and drivers do not know the form of a copy's WQE. Of these, the range
 * that is missing is described instead. */
static void requester_describe(struct hca *hca, const struct wqe_part *part)
{
    uint64_t whole = part->wqe->calc ? part->wqe->calc_len : part->wqe->len;

    hca->fault.step = (struct fault_step){
        .op = requester_fault_op(part->wqe),
        .is_wqe = !part->is_hidden,
        .wqe_index = part->index,
        .key = hca->fault.key,
        .va = hca->fault.va,
        .done = part->is_hidden ? 0 : part->offset,
        .len = part->is_hidden ? hca->fault.len : whole,
        .part = part->len,
    };
}

bool requester_park(struct qp *qp, bool repeat, const struct wqe_part *part)
{
    struct flight *flight = qp->req.flight;
    bool is_told;

    if (flight->paging == PAGING_NEVER) {
        flight->paging = PAGING_NONE;
        if (flight->page == fault_page(&qp->hca->fault)) {
            return false;
        }
    }
    is_told = flight_is_parked(flight);
    if (!is_told) {
        requester_describe(qp->hca, part);
        if (!qp->hca->pager->fault(qp->hca->pager, qp, FAULT_REQUESTER, &qp->hca->fault)) {
            return false;
        }
        flight->page = fault_page(&qp->hca->fault);
    }
    if (repeat || !is_told) {
        flight->paging = repeat ? PAGING_REPEATS : PAGING_PARKED;
    }
    return true;
}

void requester_resume(struct qp *qp, bool error)
{
    struct flight *flight = qp->req.flight;

    if (!flight || !flight_is_parked(flight)) {
        return;
    }
    if (flight->paging == PAGING_REPEATS) {
        flight->tx = flight->head;
        flight->tx_psn = qp->req.unacked_psn;
        flight->why_back = WIRE_NOTE_PAGE;
    }
    flight->paging = error ? PAGING_NEVER : PAGING_NONE;
    hca_schedule(qp->hca, &qp->req.work);
}

/* -- retiring ---------------------------------------------------------------------------------- */

static void requester_enter_error(struct qp *qp)
{
    qp_set_state(qp, qp->service->has_sqe ? PRM_QP_STATE_SQER : PRM_QP_STATE_ERR);
    requester_flush(qp);
}

void requester_retire(struct qp *qp)
{
    struct flight *flight = qp->req.flight;

    while (flight->head != flight->tail) {
        struct send_desc desc = *flight_desc(flight, flight->head);

        if (desc.status == SEND_ACTIVE) {
            break;
        }
        /* Otherwise the next WQE with this number would find this WQE in the line. */
        if (qp->req.flight->rx_line->num == flight->head) {
            requester_line_forget(qp->req.flight->rx_line, qp);
        }
        flight->head++;
        if (G_UNLIKELY(qp->dci) && dci_retire(qp, flight->head - 1, &desc)) {
            flight->in_cqe = NULL; /* the data belonged to this WQE, which is flushed */
            if (!qp_may_send(qp)) {
                return;
            }
            continue;
        }
        if (desc.status == SEND_FAILED) {
            wqe_source_failed(qp, &desc, desc.syndrome);
            /* The QP may already have failed by an overrun of the CQ. */
            if (qp_may_send(qp)) {
                requester_enter_error(qp);
            }
            return;
        }
        wqe_source_done(qp, &desc);
        if (!qp_may_send(qp)) {
            return;
        }
    }
    if ((int32_t)(flight->tx - flight->head) < 0) {
        flight->tx = flight->head;
        flight->tx_psn = flight->tx == flight->tail ? qp->req.next_psn
                                                    : flight_desc(flight, flight->tx)->first_psn;
    }
}

void requester_fail(struct qp *qp, struct send_desc *desc, uint8_t syndrome)
{
    const char *opcode = prm_enum_name("wqe_opcode", desc->opcode);
    const char *error = prm_enum_name("cqe_syndrome", syndrome);
    bool key = syndrome == PRM_CQE_SYNDROME_LOCAL_PROT_ERR;
    struct mkey_words words;

    hca_log(qp->hca, HCA_LOG_GUEST_ERROR,
            "qp 0x%x: WQE %u (%s 0x%x) fails with %s (syndrome 0x%x)%s%s", qp->obj.num, desc->index,
            opcode ? opcode : "opcode", desc->opcode, error ? error : "an error", syndrome,
            key ? ": " : "", key ? mkey_why(qp->hca, &words) : "");
    desc->status = SEND_FAILED;
    desc->syndrome = syndrome;
    requester_queue_step(qp, QUEUE_WQE_FAILED);
    requester_retire(qp);
}

/* -- starting a WQE ---------------------------------------------------------------------------- */

/* The most bytes of a datagram: what fits into a frame of the port's MTU, in powers of two, as the
 * driver computes active_mtu (iboe_get_mtu). */
static uint32_t requester_datagram_max(const struct qp *qp)
{
    const uint32_t fcs = 4;
    uint32_t mtu = qp->mtu;

    while (mtu > 256 && mtu + ROCE_HEADER_MAX + ICRC_BYTES + fcs > port_mtu(qp->hca)) {
        mtu /= 2;
    }
    return mtu;
}

/* Checks what only the start of a WQE can find out. Returns 0 or the syndrome with which it fails.
 * The keys for the response data of a READ or atomic are not checked before the data comes: the
 * request is sent, and the responder may refuse it first. */
static uint8_t requester_check_start(struct qp *qp, const struct send_wqe *wqe)
{
    struct roce_addr addr;

    if (wqe->operands_len > qp->mtu) {
        return PRM_CQE_SYNDROME_LOCAL_LENGTH_ERR;
    }
    if (wqe->av && !qp->dci) {
        if (wqe->len > requester_datagram_max(qp)) {
            return PRM_CQE_SYNDROME_LOCAL_LENGTH_ERR;
        }
        if (!send_wqe_address(qp->hca, wqe->av, &addr)) {
            return PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR;
        }
    }
    return 0;
}

/* The number of PSNs of a message: its packets, or the response packets of a READ; at least one. */
static uint32_t requester_psns(const struct qp *qp, const struct send_wqe *wqe)
{
    if (wqe->op->flags & SEND_OP_LOCAL) {
        return 0;
    }
    return wqe->len <= qp->mtu ? 1 : (uint32_t)((wqe->len + qp->mtu - 1) / qp->mtu);
}

/* Whether the start of the WQE must wait for responses. They will run the work again. */
static bool requester_must_wait(const struct qp *qp, const struct send_wqe *wqe)
{
    const struct flight *flight = qp->req.flight;
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
        if (flight->reads) {
            return true;
        }
        break;
    default:
        if (flight->head != flight->tail) {
            return true;
        }
        break;
    }
    if (wqe->op->flags & (SEND_OP_READ | SEND_OP_ATOMIC) &&
        flight->reads >= 1u << qp->log_sra_max) {
        return true;
    }
    return in_flight && in_flight + requester_psns(qp, wqe) > MAX_PSNS;
}

/* Makes the WQE in the line descriptor tail. */
static struct send_desc *requester_take_wqe(struct qp *qp, enum wqe_source_id id,
                                            const struct send_wqe *wqe)
{
    struct flight *flight = qp->req.flight;
    struct send_desc *desc = flight_desc(flight, flight->tail);

    *desc = (struct send_desc){
        .first_psn = qp->req.next_psn,
        .first_req = flight->next_req,
        .index = wqe->index,
        .opcode = wqe->opcode,
        .num_bb = wqe->num_bb,
        .ce = wqe->ce,
        .source = id,
    };
    if (qp->hca->tracing) {
        trace_send_wqe(qp, wqe);
    }
    if (G_UNLIKELY(qp->dci)) {
        dci_note_stream(qp, flight->tail, wqe);
    }
    flight->tail++;
    wqe_source_advance(qp, id, wqe->num_bb);
    return desc;
}

static void requester_assign_psns(struct qp *qp, struct send_desc *desc, const struct send_wqe *wqe)
{
    struct flight *flight = qp->req.flight;

    desc->len = (uint32_t)wqe->len;
    desc->flags = wqe->op->flags;
    desc->npsn = requester_psns(qp, wqe);
    qp->req.next_psn = (qp->req.next_psn + desc->npsn) & PSN_MASK;
    if (desc->flags & (SEND_OP_READ | SEND_OP_ATOMIC)) {
        flight->reads++;
        flight->next_req++;
    } else {
        flight->next_req += desc->npsn;
    }
    if (desc->npsn) {
        qp->req.ssn = (qp->req.ssn + 1) & PSN_MASK;
        qp->hca->rdma->counts.messages++;
    }
}

/* Fetches the next posted WQE into the line. Otherwise says why no WQE may be started. */
static enum send_wait requester_next_wqe(struct qp *qp, enum wqe_source_id *id)
{
    struct flight *flight = qp->req.flight;
    struct send_line *line = qp->req.flight->tx_line;
    unsigned posted;

    if (qp->state != PRM_QP_STATE_RTS) {
        return SEND_WAITS_STATE;
    }
    if (flight->queue != QUEUE_OPEN) {
        return SEND_WAITS_ANSWER;
    }
    if (!wqe_source_look(qp, id, &posted)) {
        hca_log(qp->hca, HCA_LOG_GUEST_ERROR,
                "qp 0x%x: doorbell record is unreadable or impossible", qp->obj.num);
        qp_note_error(qp, PRM_CQE_OPCODE_REQ_ERR, PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR);
        qp_fatal(qp, PRM_EVENT_TYPE_WQ_CATAS_ERROR);
        return SEND_WAITS_STATE;
    }
    if (posted == 0) {
        return flight->head != flight->tail ? SEND_WAITS_ANSWER : SEND_WAITS_POST;
    }
    if (G_UNLIKELY(qp->sq.gate) && *id == WQE_SOURCE_RING && cross_must_pause(qp)) {
        return SEND_WAITS_PAUSE;
    }
    /* Posted WQEs have been looked at before; a queue that waits for room runs again at the next
     * response. */
    if (flight->tail - flight->head > flight->mask) {
        return SEND_WAITS_ANSWER;
    }
    /* While a WQE waits, a WQE of the device's own may overtake it and get its number. */
    if (!requester_line_has(line, qp, flight->tail) || line->source != *id) {
        requester_line_fill(qp, line, flight->tail, *id, wqe_source_next(qp, *id), posted);
    }
    return SEND_GOES_ON;
}

/* Carries out a WQE that sends nothing on the wire, or completes a WQE that cannot be started. */
static void requester_end_local(struct qp *qp, struct send_desc *desc, const struct send_wqe *wqe,
                                uint8_t syndrome)
{
    if (!syndrome) {
        syndrome = requester_execute_local(qp, wqe);
    }
    requester_forget_read(qp);
    if (syndrome) {
        requester_fail(qp, desc, syndrome);
    } else {
        desc->status = SEND_DONE;
        requester_retire(qp);
    }
}

/* Starts the next posted WQE, if there is one and it need not wait. */
static enum send_wait requester_start_next(struct qp *qp)
{
    enum wqe_source_id id;
    enum send_wait waits = requester_next_wqe(qp, &id);
    struct send_line *line = qp->req.flight->tx_line;
    const struct send_wqe *wqe = &line->wqe;
    struct send_desc *desc;
    uint8_t syndrome;

    if (waits != SEND_GOES_ON) {
        return waits;
    }
    syndrome = line->syndrome;
    if (!syndrome && requester_must_wait(qp, wqe)) {
        return SEND_WAITS_ANSWER;
    }
    if (G_UNLIKELY(qp->dci) && !dci_may_start(qp, wqe, &syndrome)) {
        return SEND_WAITS_ANSWER;
    }
    if (!syndrome && !requester_read_local(qp, line, &syndrome)) {
        return wqe->opcode == PRM_WQE_OPCODE_CQE_WAIT ? SEND_WAITS_CQE : SEND_GOES_ON;
    }
    desc = requester_take_wqe(qp, id, wqe);
    if (!syndrome) {
        syndrome = requester_check_start(qp, wqe);
    }
    if (!syndrome) {
        requester_assign_psns(qp, desc, wqe);
    }
    if (!desc->npsn) {
        requester_end_local(qp, desc, wqe, syndrome);
    }
    return SEND_GOES_ON;
}

/* -- work -------------------------------------------------------------------------------------- */

static enum send_wait requester_go_on(struct qp *qp)
{
    struct flight *flight = qp->req.flight;

    if (flight_is_parked(flight)) {
        return SEND_WAITS_PAGE;
    }
    if (flight->recovery == RECOVERY_RNR_WAIT) {
        return SEND_WAITS_RNR;
    }
    if (G_UNLIKELY(qp->dci)) {
        enum send_wait waits;

        if (dci_step(qp, &waits)) {
            return waits;
        }
    }
    while (flight->tx != flight->tail && flight_desc(flight, flight->tx)->status == SEND_DONE) {
        flight->tx++;
        flight->tx_psn = flight->tx == flight->tail ? qp->req.next_psn
                                                    : flight_desc(flight, flight->tx)->first_psn;
    }
    if (flight->tx == flight->tail) {
        return requester_start_next(qp);
    }
    if (flight_desc(flight, flight->tx)->status == SEND_FAILED) {
        return SEND_WAITS_ANSWER;
    }
    return requester_send(qp, flight_desc(flight, flight->tx));
}

static void requester_check_drained(struct qp *qp)
{
    const struct flight *flight = qp->req.flight;

    if (qp->state == PRM_QP_STATE_SQ_DRAINING && (!flight || flight->head == flight->tail)) {
        qp_set_state(qp, PRM_QP_STATE_SQD);
        qp_event(qp, PRM_EVENT_TYPE_SQ_DRAINED);
    }
}

static void requester_run_send(struct qp *qp)
{
    for (unsigned n = 0; n < BURST && qp_may_send(qp) && (n == 0 || hca_may_go_on(qp->hca)); n++) {
        enum send_wait waits = requester_go_on(qp);

        if (waits != SEND_GOES_ON) {
            qp->req.waits = (uint8_t)waits;
            if (waits == SEND_WAITS_CREDIT) {
                hca_wait_tx(qp->hca, &qp->req.work);
            } else {
                requester_check_drained(qp);
            }
            return;
        }
    }
    hca_schedule(qp->hca, &qp->req.work);
}

/* Completes one WQE with WR_FLUSH_ERR: a started one, else a posted one, as far as the device
 * knows. False: there is none. */
static bool requester_flush_one(struct qp *qp)
{
    struct flight *flight = qp->req.flight;

    if (flight->head != flight->tail) {
        wqe_source_failed(qp, flight_desc(flight, flight->head++), PRM_CQE_SYNDROME_WR_FLUSH_ERR);
        return true;
    }
    return wqe_source_flush_one(qp);
}

/* Flushes as long as the turn allows; in ERR and SQER also WQEs that are posted meanwhile. True:
 * more may be left. */
static bool requester_flush_all(struct qp *qp)
{
    struct flight *flight = qp->req.flight;
    bool only_known = flight->queue == QUEUE_RESUMING;

    while (requester_flush_one(qp) || (!only_known && qp->sq.rung &&
                                       wq_update_pi(qp->hca, &qp->sq) && requester_flush_one(qp))) {
        hca_spend(qp->hca, 1);
        if (!hca_may_go_on(qp->hca)) {
            return true;
        }
    }
    flight->tx = flight->head;
    flight->tx_psn = flight->sent_psn = qp->req.unacked_psn = qp->req.next_psn;
    requester_queue_step(qp, QUEUE_FLUSHED);
    if (qp->cross && qp_may_send(qp)) {
        cross_restart(qp);
    }
    return false;
}

/* Hot, because every message takes the branches that gcc considers rare (and "rep stos" is slow
 * there). */
__attribute__((hot)) static void requester_work(struct hca *hca, struct work *work)
{
    struct qp *qp = requester_work_qp(work);
    struct flight *flight;

    if (!qp_may_request(qp)) {
        requester_check_drained(qp);
        return;
    }
    flight = flight_get(qp);
    if (!flight) {
        qp->req.waits = SEND_WAITS_MEMORY;
        hca_wait_late(hca, work); /* other QPs use all flights, and will free some */
        return;
    }
    qp->req.waits = SEND_GOES_ON;
    peer_path_check(&qp->peer, hca);
    if (qp_may_send(qp) && flight->queue != QUEUE_RESUMING) {
        requester_run_send(qp);
    } else if (qp->state == PRM_QP_STATE_ERR || qp->state == PRM_QP_STATE_SQER ||
               flight->queue == QUEUE_RESUMING) {
        if (requester_flush_all(qp) || qp_may_send(qp)) {
            hca_schedule(hca, work);
        } else {
            qp->req.waits = SEND_WAITS_POST;
        }
    } else {
        qp->req.waits = SEND_WAITS_STATE;
    }
}

/* -- life -------------------------------------------------------------------------------------- */

bool requester_init(struct qp *qp)
{
    qp->req.work.run = requester_work;
    wqe_source_set_limits(qp);
    return !qp_may_request(qp) || flight_reserve(qp->hca);
}

static void requester_stop(struct qp *qp)
{
    reaction_end(&qp->peer);
    qp_sched_stop(qp, QP_SCHED_REQUESTER);
    hca_unschedule_late(qp->hca, &qp->req.work);
    if (qp->req.flight) {
        hca_timer_stop(qp->hca, &qp->req.flight->timer);
    }
}

void requester_clear(struct qp *qp)
{
    requester_stop(qp);
    blueflame_drop(&qp->sq);
    flight_leave(qp);
}

void requester_reset(struct qp *qp, uint32_t next_send_psn)
{
    requester_stop(qp);
    if (qp->dci) {
        dci_reset(qp);
    }
    blueflame_drop(&qp->sq);
    flight_leave(qp);
    qp->req.next_psn = qp->req.unacked_psn = next_send_psn & PSN_MASK;
    qp->req.ssn = 0;
    qp->sq.ci = qp->sq.pi = 0;
}

void requester_start(struct qp *qp)
{
    if (!qp_may_request(qp)) {
        return;
    }
    if (qp->req.flight && requester_queue_step(qp, QUEUE_RTS) && qp->sq.rung) {
        /* The QP is back from SQER before all WQEs were flushed: WQEs posted from now on are not
         * flushed. */
        wq_update_pi(qp->hca, &qp->sq);
    }
    if (qp->cross && !(qp->req.flight && qp->req.flight->queue == QUEUE_RESUMING)) {
        cross_restart(qp);
    }
    hca_schedule(qp->hca, &qp->req.work);
}

void requester_drain(struct qp *qp)
{
    hca_schedule(qp->hca, &qp->req.work);
}

void requester_flush(struct qp *qp)
{
    if (!qp_may_request(qp)) {
        return;
    }
    if (qp->req.flight) {
        qp->req.flight->reads = 0;
        qp->req.flight->paging = PAGING_NONE;
        requester_recovery_step(qp, RECOVERY_ENDS);
        requester_queue_step(qp, QUEUE_FLUSHES);
        requester_forget_read(qp);
        requester_forget_lines(qp);
    }
    requester_stop(qp);
    if (qp->dci) {
        dci_leave(qp);
    }
    if (qp->cross) {
        cross_flush_send(qp);
    }
    hca_schedule(qp->hca, &qp->req.work);
}

void requester_kick(struct qp *qp)
{
    bool listening = qp->state == PRM_QP_STATE_RTS || qp->state == PRM_QP_STATE_ERR ||
                     qp->state == PRM_QP_STATE_SQER;

    if (qp_may_request(qp) && listening) {
        hca_schedule(qp->hca, &qp->req.work);
    }
}

void requester_doorbell(struct qp *qp)
{
    if (qp->state != PRM_QP_STATE_RST) {
        qp->sq.rung = qp->has_sq; /* also before RTS; then the WQEs are taken in RTS */
        if (G_UNLIKELY(qp->cross)) {
            cross_saw_software(qp);
        }
    }
    requester_kick(qp);
}

unsigned requester_started(const struct qp *qp)
{
    return qp->req.flight ? qp->req.flight->tail - qp->req.flight->head : 0;
}

static uint32_t requester_qp_uar(const struct obj *obj)
{
    return PRM_GET(qpc, ((const struct qp *)obj)->qpc, uar_page);
}

static struct wq *requester_qp_sq(struct obj *obj)
{
    return &((struct qp *)obj)->sq;
}

static void requester_qp_doorbell(struct hca *hca, struct obj *obj, uint64_t ctrl)
{
    struct qp *qp = (struct qp *)obj;

    if (qp->sq.no_record && qp->state != PRM_QP_STATE_RST) {
        wq_tell_pi(&qp->sq, uar_told_counter(ctrl));
    }
    requester_doorbell(qp);
}

const struct obj_sender qp_sender = {
    .uar = requester_qp_uar,
    .wq = requester_qp_sq,
    .doorbell = requester_qp_doorbell,
};
