/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Handles the responses of a reliable QP's responder (what they acknowledge, deliver, refuse or ask
 * to be repeated), and timeouts if no response comes.
 *
 * A response names a PSN. If the PSN is not among the sent and unacknowledged ones, the response is
 * a ghost, and is ignored (IBTA 9.7.6.1). Otherwise it also acknowledges everything before it. But
 * a READ or atomic is acknowledged only by its own response. If that response is missing, the later
 * response counts as a NAK (implied NAK), or is kept until the missing one has come
 * (model/rdma/early.h).
 *
 * After a NAK the requester goes back once. Further NAKs that come from packets under way at that
 * time do not make it go back again; the ACK timer detects if a packet is lost a second time.
 * Retries are counted since the last progress (9.7.6.1.3, C9-140 to C9-142; 9.9.2).
 *
 * While the wire to the peer is paused (wire/port.h), no time passes for the timer.
 */
#include <string.h>
#include "model/queue/cqe.h"
#include "model/queue/q_counter.h"
#include "model/rdma/dci.h"
#include "model/rdma/early.h"
#include "model/rdma/rdma.h"
#include "model/rdma/requester_internal.h"
#include "model/rdma/sig_report.h"
#include "model/rdma/wqe_source.h"
#include "wire/packet/describe.h"

#define RNR_RETRY_FOREVER   7
#define ACK_TIMEOUT_LOG_MAX 31u

/* -- timer ------------------------------------------------------------------------------------- */

/* Nanoseconds until a retry. With qpc.log_rtm the time grows by the factor 2^log_rtm at each retry
 * in a row (UCX: EXP_BACKOFF), up to the largest time that ack_timeout can express. */
static uint64_t requester_ack_timeout(const struct qp *qp)
{
    unsigned log = qp->ack_timeout + (unsigned)qp->log_rtm * qp->req.flight->retries;

    return 4096ull << MIN(log, ACK_TIMEOUT_LOG_MAX);
}

void requester_watch(struct qp *qp)
{
    struct flight *flight = qp->req.flight;

    /* The timer is not moved with every packet. Instead requester_timeout() checks whether there
     * was progress. Therefore a timeout takes between one and two times the configured time
     * (9.7.6.1.3 allows four). */
    if (qp->ack_timeout && !flight->timer.pos) {
        flight->watched_psn = qp->req.unacked_psn;
        hca_timer_set(qp->hca, &flight->timer, hca_now(qp->hca) + requester_ack_timeout(qp));
    }
}

static bool requester_is_waiting(const struct qp *qp)
{
    return qp->req.flight && qp->req.unacked_psn != qp->req.flight->sent_psn;
}

/* Whether packets are unacknowledged only because they could not be sent yet. */
static bool requester_is_held(const struct qp *qp)
{
    return qp->req.waits == SEND_WAITS_CREDIT || qp->req.waits == SEND_WAITS_RATE;
}

struct send_desc *requester_oldest(struct flight *flight)
{
    for (uint32_t num = flight->head; num != flight->tail; num++) {
        if (flight_desc(flight, num)->status != SEND_DONE) {
            return flight_desc(flight, num);
        }
    }
    return NULL;
}

void requester_go_back(struct qp *qp, enum wire_note_why why)
{
    struct flight *flight = qp->req.flight;

    if (G_UNLIKELY(qp->dci)) {
        dci_went_back(qp);
    }
    flight->tx = flight->head;
    flight->tx_psn = qp->req.unacked_psn;
    flight->why_back = (uint8_t)why;
    hca_schedule(qp->hca, &qp->req.work);
}

/* Goes back and counts it, if a retry is left: the counters count only what could be repaired. */
static void requester_retry(struct qp *qp, uint64_t *counter, enum wire_note_why why)
{
    struct flight *flight = qp->req.flight;

    if (flight->retries >= qp->retry_count) {
        requester_fail(qp, requester_oldest(flight), PRM_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR);
        return;
    }
    flight->retries++;
    ++*counter;
    requester_go_back(qp, why);
}

void requester_timeout(struct hca *hca, struct hca_timer *timer)
{
    struct flight *flight = (struct flight *)((char *)timer - offsetof(struct flight, timer));
    struct qp *qp = flight->qp;

    if (!qp_may_send(qp)) {
        return;
    }
    if (requester_recovery_step(qp, RECOVERY_RNR_TIMEOUT)) {
        hca_schedule(hca, &qp->req.work);
        if (requester_is_waiting(qp)) {
            requester_watch(qp);
        }
        return;
    }
    if (!requester_is_waiting(qp)) {
        return;
    }
    if (flight_is_parked(flight) || flight->watched_psn != qp->req.unacked_psn ||
        requester_is_held(qp)) {
        flight->pause = (struct wire_pause){0};
    } else if (!port_is_paused(hca, qp->peer.path.dmac, &flight->pause)) {
        requester_recovery_step(qp, RECOVERY_ACK_TIMEOUT);
        hca->rdma->counts.ack_timeouts++;
        requester_retry(qp, &qp_counters(qp)->local_ack_timeout_err, WIRE_NOTE_ACK_TIMEOUT);
    }
    if (qp_may_send(qp)) {
        requester_watch(qp);
    }
}

/* -- acknowledging ----------------------------------------------------------------------------- */

static void requester_note_progress(struct qp *qp)
{
    struct flight *flight = qp->req.flight;
    bool was_long; /* the timer was set for a longer timeout */

    if (G_UNLIKELY(flight->recovery != RECOVERY_NONE)) {
        requester_recovery_step(qp, RECOVERY_PROGRESS);
    }
    was_long = flight->retries && qp->log_rtm && flight->recovery != RECOVERY_RNR_WAIT;
    flight->retries = 0;
    flight->rnr_retries = 0;
    if (G_UNLIKELY(was_long)) {
        hca_timer_stop(qp->hca, &flight->timer);
        requester_watch(qp);
    }
}

/* Skips packets that are acknowledged, so that they are not sent again. */
static void requester_skip_acked(struct qp *qp)
{
    struct flight *flight = qp->req.flight;

    if (flight->tx == flight->head && flight->tx != flight->tail &&
        psn_diff(flight->tx_psn, qp->req.unacked_psn) < 0) {
        flight->tx_psn = qp->req.unacked_psn;
    }
}

/*
 * Acknowledges all requests up to psn, and completes the WQEs that are done by that. False: a READ
 * or atomic at or before psn has no response yet; everything before that one is acknowledged.
 */
static bool requester_ack_through(struct qp *qp, uint32_t psn)
{
    struct flight *flight = qp->req.flight;
    bool complete = true;

    for (uint32_t num = flight->head; num != flight->tail; num++) {
        struct send_desc *desc = flight_desc(flight, num);
        uint32_t last = (desc->first_psn + desc->npsn - 1) & PSN_MASK;

        if (desc->status == SEND_FAILED) {
            break;
        }
        if (desc->status == SEND_DONE) {
            continue;
        }
        if (psn_diff(psn, qp->req.unacked_psn) < 0) {
            break;
        }
        if (desc->flags & (SEND_OP_READ | SEND_OP_ATOMIC)) {
            complete = false;
            break;
        }
        requester_note_progress(qp);
        if (psn_diff(psn, last) < 0) {
            qp->req.unacked_psn = (psn + 1) & PSN_MASK;
            break;
        }
        qp->req.unacked_psn = (last + 1) & PSN_MASK;
        desc->status = SEND_DONE;
    }
    requester_retire(qp);
    requester_skip_acked(qp);
    return complete;
}

static void requester_rx_gap(struct qp *qp, uint64_t *counter, enum wire_note_why why)
{
    if (requester_recovery_step(qp, RECOVERY_NAK)) {
        requester_retry(qp, counter, why);
    }
}

void requester_rx_lost(struct qp *qp)
{
    if (requester_is_waiting(qp) && qp_may_send(qp)) {
        requester_rx_gap(qp, &qp_counters(qp)->implied_nak_seq_err, WIRE_NOTE_IMPLIED_NAK);
    }
}

static void requester_rx_implied_nak(struct qp *qp, const struct roce_packet *pkt)
{
    struct peer *peer = &qp->peer;

    if (!peer->early || !early_keep(peer, &peer->early->responses, pkt)) {
        requester_rx_lost(qp);
    }
}

/*
 * Acknowledges everything before the response's PSN. Returns the WQE that the response belongs to.
 * NULL: an earlier response is missing, or the QP does not send any more; then the packet needs no
 * further handling.
 */
static struct send_desc *requester_answered(struct qp *qp, const struct roce_packet *pkt)
{
    uint32_t psn = pkt->psn;

    if (psn != qp->req.unacked_psn && !requester_ack_through(qp, (psn - 1) & PSN_MASK)) {
        if (qp_may_send(qp)) {
            requester_rx_implied_nak(qp, pkt);
        }
        return NULL;
    }
    if (!qp_may_send(qp) || qp->req.unacked_psn != psn) {
        return NULL;
    }
    return requester_oldest(qp->req.flight);
}

/* -- ACK and NAK ------------------------------------------------------------------------------- */

static void requester_rx_rnr_nak(struct qp *qp, struct send_desc *desc, unsigned timer)
{
    struct flight *flight = qp->req.flight;

    if (flight->recovery == RECOVERY_RNR_WAIT) {
        return;
    }
    if (qp->rnr_retry != RNR_RETRY_FOREVER) {
        if (flight->rnr_retries >= qp->rnr_retry) {
            requester_fail(qp, desc, PRM_CQE_SYNDROME_RNR_RETRY_EXC_ERR);
            return;
        }
        flight->rnr_retries++;
    }
    qp_counters(qp)->rnr_nak_retry_err++;
    requester_recovery_step(qp, RECOVERY_RNR_NAK);
    requester_go_back(qp, WIRE_NOTE_RNR);
    hca_timer_set(qp->hca, &flight->timer, hca_now(qp->hca) + aeth_rnr_delay[timer] * 10000ull);
}

static void requester_rx_nak(struct qp *qp, struct send_desc *desc, unsigned syndrome)
{
    switch (syndrome) {
    case AETH_NAK_SEQ:
        requester_rx_gap(qp, &qp_counters(qp)->packet_seq_err, WIRE_NOTE_NAK_SEQUENCE);
        break;
    case AETH_NAK_INVALID:
        requester_fail(qp, desc, PRM_CQE_SYNDROME_REMOTE_INVAL_REQ_ERR);
        break;
    case AETH_NAK_ACCESS:
        requester_fail(qp, desc, PRM_CQE_SYNDROME_REMOTE_ACCESS_ERR);
        break;
    case AETH_NAK_OP:
        requester_fail(qp, desc, PRM_CQE_SYNDROME_REMOTE_OP_ERR);
        break;
    default:
        break;
    }
}

static void requester_rx_ack(struct qp *qp, const struct roce_packet *pkt)
{
    struct send_desc *desc;

    switch (aeth_class(pkt->aeth.syndrome)) {
    case AETH_CLASS_ACK:
        if (!requester_ack_through(qp, pkt->psn) && qp_may_send(qp)) {
            requester_rx_implied_nak(qp, pkt);
        }
        break;
    case AETH_CLASS_RNR_NAK:
        qp->hca->rdma->counts.rnr_naks_received++;
        desc = requester_answered(qp, pkt);
        if (desc) {
            requester_rx_rnr_nak(qp, desc, aeth_value(pkt->aeth.syndrome));
        }
        break;
    case AETH_CLASS_NAK:
        qp->hca->rdma->counts.naks_received++;
        desc = requester_answered(qp, pkt);
        if (desc) {
            requester_rx_nak(qp, desc, pkt->aeth.syndrome);
        }
        break;
    default:
        break;
    }
}

/* -- READ and atomic responses ----------------------------------------------------------------- */

/* Response data could not be written. */
static G_GNUC_NO_INLINE __attribute__((cold)) bool
requester_not_delivered(struct qp *qp, struct send_desc *desc, enum mem_result result,
                        const struct send_wqe *wqe, uint64_t offset, size_t len)
{
    if (result != MEM_FAULT ||
        !requester_park(qp, true,
                        &(struct wqe_part){wqe, desc->index, desc->source != WQE_SOURCE_RING,
                                           offset, (uint32_t)len})) {
        desc->answered = true;
        requester_fail(qp, desc, PRM_CQE_SYNDROME_LOCAL_PROT_ERR);
    }
    return false;
}

/* The WQE that gets response data. NULL: the WQE has changed, and fails. */
static inline const struct send_wqe *requester_answered_wqe(struct qp *qp, struct send_desc *desc)
{
    struct flight *flight = qp->req.flight;
    struct send_line *line = flight->rx_line;
    uint32_t num = flight->head;
    const struct send_wqe *wqe;

    while (flight_desc(flight, num) != desc) {
        num++;
    }
    wqe = requester_wqe(qp, line, num);
    if (!wqe) {
        desc->answered = true;
        requester_fail(qp, desc, requester_why_changed(qp, line, desc));
    }
    return wqe;
}

/* Writes response data to the WQE's list. If the list does not take it, the WQE fails. */
static bool requester_deliver(struct qp *qp, struct send_desc *desc, uint64_t offset,
                              const void *data, size_t len)
{
    const struct send_wqe *wqe = requester_answered_wqe(qp, desc);
    struct send_line *line = qp->req.flight->rx_line;
    enum mem_result result;
    uint32_t pdn;

    if (!wqe) {
        return false;
    }
    if (!len) {
        return true;
    }
    pdn = wqe_source_pdn(qp, desc->source);
    result = sge_scatter(qp->hca, wqe->sge, wqe->num_sge, pdn, &line->cursor, offset, data, len);
    if (result == MEM_OK) {
        return sig_check_sent(qp, pdn);
    }
    return requester_not_delivered(qp, desc, result, wqe, offset, len);
}

/* Whether the WQE's CQE carries its response data, all of which is in this packet. Only the oldest
 * WQE will get the next CQE. The number of an extended atomic never goes into a CQE: rdma-core's
 * library does not expect it in CQEs with data. */
static bool requester_is_in_cqe(const struct qp *qp, const struct send_desc *desc)
{
    struct flight *flight = qp->req.flight;

    return desc->len <= qp->send_in_cqe && desc->len && desc == flight_desc(flight, flight->head) &&
           wqe_source_tells_end(desc) && !(desc->flags & SEND_OP_EXTENDED);
}

/* One more PSN of a READ or atomic has its response. */
static void requester_answer_done(struct qp *qp, struct send_desc *desc, bool is_last)
{
    struct flight *flight = qp->req.flight;

    requester_note_progress(qp);
    qp->req.unacked_psn = (qp->req.unacked_psn + 1) & PSN_MASK;
    if (is_last) {
        desc->status = SEND_DONE;
        flight->reads--;
        requester_retire(qp);
    }
    requester_skip_acked(qp);
}

/* Takes the only response of a WQE, whose data goes into its CQE. */
static void requester_answer_in_cqe(struct qp *qp, struct send_desc *desc, const void *bytes)
{
    struct cqe_data data = {bytes, (uint8_t)desc->len, qp->send_in_cqe};

    qp->req.flight->in_cqe = &data;
    requester_answer_done(qp, desc, true);
}

/* Calculates with a packet of response data. The last packet's result goes to the list. If a page
 * of the list is missing, the last packet comes again, and the sum is as it was. */
static G_GNUC_NO_INLINE __attribute__((cold)) void
requester_answer_calc(struct qp *qp, struct send_desc *desc, const struct roce_packet *pkt,
                      bool is_first, bool is_last)
{
    struct flight *flight = qp->req.flight;
    const struct send_wqe *wqe = requester_answered_wqe(qp, desc);
    size_t n = pkt->payload_len / CALC_ELEMENT;
    uint8_t sum[CALC_ELEMENT];

    if (!wqe) {
        return;
    }
    if (!wqe->calc) {
        desc->answered = true;
        requester_fail(qp, desc, PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR);
        return;
    }
    memcpy(sum, flight->sum, sizeof(sum));
    if (is_first) {
        calc_begin(wqe->calc, sum, pkt->payload, n);
    } else {
        calc_fold(wqe->calc, sum, pkt->payload, n);
    }
    if (!is_last) {
        memcpy(flight->sum, sum, sizeof(sum));
        requester_answer_done(qp, desc, false);
    } else if (requester_deliver(qp, desc, 0, sum, sizeof(sum))) {
        desc->len = CALC_ELEMENT; /* for the CQE */
        requester_answer_done(qp, desc, true);
    }
}

/*
 * A READ response must be the next one of its READ, and must have the full path MTU, except the
 * last, which has the rest. A repeated READ begins with FIRST again; therefore FIRST and MIDDLE are
 * treated alike here. Any other response ends the WQE with BAD_RESP_ERR (9.9.2).
 */
static void requester_rx_read(struct qp *qp, const struct roce_packet *pkt)
{
    uint32_t flags = bth_opcodes[pkt->opcode].flags;
    struct send_desc *desc = requester_answered(qp, pkt);
    uint64_t offset;
    uint32_t nth;
    bool is_last;

    if (!desc) {
        return;
    }
    nth = (pkt->psn - desc->first_psn) & PSN_MASK;
    is_last = nth + 1 == desc->npsn;
    offset = (uint64_t)nth * qp->mtu;
    if (!(desc->flags & SEND_OP_READ) || is_last != !!(flags & PKT_LAST) ||
        pkt->payload_len != (is_last ? desc->len - offset : qp->mtu) ||
        ((flags & HDR_AETH) && aeth_class(pkt->aeth.syndrome) != AETH_CLASS_ACK)) {
        requester_fail(qp, desc, PRM_CQE_SYNDROME_BAD_RESP_ERR);
        return;
    }
    if (requester_is_in_cqe(qp, desc)) {
        requester_answer_in_cqe(qp, desc, pkt->payload);
    } else if (G_UNLIKELY(desc->flags & SEND_OP_EXTENDED)) {
        requester_answer_calc(qp, desc, pkt, nth == 0, is_last);
    } else if (requester_deliver(qp, desc, offset, pkt->payload, pkt->payload_len)) {
        requester_answer_done(qp, desc, is_last);
    }
}

/* Whether the response has the type that its request asks for. */
static bool requester_atomic_ok(const struct send_desc *desc, const struct roce_packet *pkt)
{
    bool extended = bth_opcodes[pkt->opcode].flags & HDR_PAYLOAD;

    return (desc->flags & SEND_OP_ATOMIC) && extended == !!(desc->flags & SEND_OP_EXTENDED) &&
           (!extended || pkt->payload_len == desc->len) &&
           aeth_class(pkt->aeth.syndrome) == AETH_CLASS_ACK;
}

/* Delivers the original number of an atomic. In a CQE it always has the byte order of packets
 * (docs/adr/0013). A number of 8 bytes that goes to memory is converted to the host's byte order if
 * the driver has asked for that (capability atomic_req_8B_endianness_mode). The responder's memory
 * has a word in host byte order in any case. */
static void requester_rx_atomic(struct qp *qp, const struct roce_packet *pkt)
{
    struct send_desc *desc = requester_answered(qp, pkt);
    uint64_t number = GUINT64_TO_BE(pkt->atomic_ack);
    const void *bytes = &number;

    if (!desc) {
        return;
    }
    if (!requester_atomic_ok(desc, pkt)) {
        requester_fail(qp, desc, PRM_CQE_SYNDROME_BAD_RESP_ERR);
        return;
    }
    if (desc->flags & SEND_OP_EXTENDED) {
        bytes = pkt->payload;
    }
    if (requester_is_in_cqe(qp, desc)) {
        requester_answer_in_cqe(qp, desc, bytes);
        return;
    }
    if (desc->len == sizeof(number) && !qp->hca->big_endian_replies) {
        memcpy(&number, bytes, sizeof(number));
        number = GUINT64_FROM_BE(number);
        bytes = &number;
    }
    if (requester_deliver(qp, desc, 0, bytes, desc->len)) {
        requester_answer_done(qp, desc, true);
    }
}

static void requester_rx_one(struct qp *qp, const struct roce_packet *pkt, uint32_t flags)
{
    if (flags & PKT_READ) {
        requester_rx_read(qp, pkt);
    } else if (flags & PKT_ATOMIC) {
        requester_rx_atomic(qp, pkt);
    } else {
        if (G_UNLIKELY(qp->dci)) {
            qp->dci->target_msn = pkt->aeth.msn; /* an earlier request may be carried out later */
        }
        requester_rx_ack(qp, pkt);
    }
}

/* Whether no READ or atomic before this response still waits for its own. */
static bool requester_is_turn(struct qp *qp, const struct roce_packet *pkt)
{
    struct flight *flight = qp->req.flight;
    bool is_ack = !(bth_opcodes[pkt->opcode].flags & (PKT_READ | PKT_ATOMIC)) &&
                  aeth_class(pkt->aeth.syndrome) == AETH_CLASS_ACK;

    for (uint32_t num = flight->head; num != flight->tail; num++) {
        const struct send_desc *desc = flight_desc(flight, num);
        uint32_t psn = desc->first_psn;

        if (desc->status == SEND_DONE || !(desc->flags & (SEND_OP_READ | SEND_OP_ATOMIC))) {
            continue;
        }
        if (psn_diff(psn, qp->req.unacked_psn) < 0) {
            psn = qp->req.unacked_psn; /* a part of it has been answered */
        }
        return psn_diff(pkt->psn, psn) < !is_ack; /* an ACK cannot answer it */
    }
    return true;
}

static bool requester_may_take(const struct qp *qp, const struct roce_packet *pkt, uint32_t flags)
{
    const struct flight *flight = qp->req.flight;

    return flight && flight->paging != PAGING_REPEATS && qp_may_send(qp) && qp->service->reliable &&
           (flags & PKT_RESPONSE) && psn_diff(pkt->psn, qp->req.unacked_psn) >= 0 &&
           psn_diff(pkt->psn, flight->sent_psn) < 0;
}

/* Handles the early responses that are due now. */
static void requester_rx_early(struct qp *qp)
{
    struct peer *peer = &qp->peer;
    struct early_list *list = &peer->early->responses;
    const struct roce_packet *first = early_first(peer, list, qp->req.unacked_psn);

    while (first && requester_may_take(qp, first, bth_opcodes[first->opcode].flags) &&
           requester_is_turn(qp, first)) {
        struct early_packet *early = early_take(peer, list);

        requester_rx_one(qp, &early->pkt, bth_opcodes[early->pkt.opcode].flags);
        early_give(peer, early);
        first = early_first(peer, list, qp->req.unacked_psn);
    }
}

void requester_rx(struct qp *qp, const struct roce_packet *pkt)
{
    struct flight *flight = qp->req.flight;
    uint32_t flags = bth_opcodes[pkt->opcode].flags;

    if (!requester_may_take(qp, pkt, flags)) {
        return;
    }
    requester_rx_one(qp, pkt, flags);
    if (G_UNLIKELY(qp->peer.early)) {
        requester_rx_early(qp);
    }
    if (flight->tx != flight->tail || wqe_source_has_posted(qp) ||
        qp->state == PRM_QP_STATE_SQ_DRAINING) {
        hca_schedule(qp->hca, &qp->req.work);
    }
}
