/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sends request packets: builds the next part of a started WQE in place on the wire.
 *
 * Messages are cut at the path MTU. On a reliable QP at most a window of request packets is
 * unacknowledged at a time. A READ counts as one packet, whatever its length. The AckReq bit is set
 * on the last packet of a message, and within the message as often as qpc.log_ack_req_freq says,
 * but at least every quarter window, so that the window keeps moving (docs/adr/0007).
 */
#include <string.h>
#include "model/core/ledger.h"
#include "model/rdma/dc.h"
#include "model/rdma/rdma.h"
#include "model/rdma/qp_sched.h"
#include "model/rdma/reaction_point.h"
#include "model/rdma/requester_internal.h"
#include "model/rdma/sig_report.h"
#include "model/rdma/vec_calc.h"
#include "model/rdma/wqe_source.h"

/* The most packets that may be lost, and have to be sent again, at a time. */
#define WINDOW_PACKETS     128
#define WINDOW_MIN_PACKETS 16
#define WINDOW_BYTES       (256u << 10)

/* The window in packets: a power of two, like the MTU. */
static uint32_t send_window(const struct qp *qp)
{
    return CLAMP(WINDOW_BYTES >> __builtin_ctz(qp->mtu), WINDOW_MIN_PACKETS, WINDOW_PACKETS);
}

/* Whether the nth packet of a message asks for an ACK, although the message has more packets. */
static bool send_asks_for_ack(const struct qp *qp, const struct send_desc *desc, uint32_t nth)
{
    uint32_t every = MIN(send_window(qp) / 4, qp->ack_req_freq); /* both are powers of two */

    return ((desc->first_req + nth) & (every - 1)) == 0;
}

static bool send_is_one_packet(const struct send_desc *desc)
{
    return desc->flags & (SEND_OP_READ | SEND_OP_ATOMIC);
}

/* Running number of the oldest unacknowledged request packet. */
static uint32_t send_unacked_req(const struct qp *qp)
{
    struct flight *flight = qp->req.flight;
    const struct send_desc *desc = flight_desc(flight, flight->head);

    if (send_is_one_packet(desc) || desc->npsn == 0 ||
        psn_diff(qp->req.unacked_psn, desc->first_psn) < 0) {
        return desc->first_req;
    }
    return desc->first_req + ((qp->req.unacked_psn - desc->first_psn) & PSN_MASK);
}

/* The position of a packet in its message: first, middle, last or only. */
static uint8_t send_bth_op(const struct send_op *op, bool is_first, bool is_last)
{
    if (is_first) {
        return is_last ? op->only : op->first;
    }
    return is_last ? op->last : op->middle;
}

/* Sets the fields of a datagram that come from the WQE's address vector. False: the source GID is
 * gone. */
static bool send_address_datagram(const struct qp *qp, const struct send_wqe *wqe,
                                  struct roce_packet *pkt)
{
    uint32_t qkey = PRM_GET(wqe_av, wqe->av, qkey);

    if (!send_wqe_address(qp->hca, wqe->av, &pkt->addr)) {
        return false;
    }
    pkt->dest_qp = PRM_GET(wqe_av, wqe->av, dqp_dct);
    /* IBTA 10.2.5: a Q_Key with the high bit set means the QP's own Q_Key. */
    pkt->deth.qkey = qkey & 0x80000000u ? qp->qkey : qkey;
    pkt->deth.src_qp = qp->src_qpn;
    return true;
}

/* Whether the message completes a receive WQE: only then SE has an effect (IBTA 9.2.3). */
static bool send_completes_a_receive(const struct send_op *op)
{
    return !(op->flags & SEND_OP_RADDR) || (op->flags & SEND_OP_IMM);
}

/* Fills in the headers of the packet at tx_psn. *offset and *len receive the range of the message
 * that it carries. */
static bool send_build_packet(const struct qp *qp, const struct send_desc *desc,
                              const struct send_wqe *wqe, struct roce_packet *pkt, uint64_t *offset,
                              uint32_t *len)
{
    const struct flight *flight = qp->req.flight;
    uint32_t nth = (flight->tx_psn - desc->first_psn) & PSN_MASK;
    bool is_last = send_is_one_packet(desc) || nth == desc->npsn - 1;

    *offset = (uint64_t)nth * qp->mtu;
    *len = (uint32_t)MIN(desc->len - *offset, qp->mtu);
    *pkt = (struct roce_packet){
        .opcode =
            qp->service->transport |
            (send_is_one_packet(desc) ? wqe->op->only : send_bth_op(wqe->op, nth == 0, is_last)),
        .solicited = is_last && wqe->solicited && send_completes_a_receive(wqe->op),
        .migreq = true,
        .ackreq = qp->service->reliable && (is_last || send_asks_for_ack(qp, desc, nth)),
        .pkey = qp->pkey,
        .dest_qp = qp->peer.qpn,
        .psn = flight->tx_psn,
        .reth = {.va = wqe->raddr, .rkey = wqe->rkey, .len = desc->len},
        .imm = wqe->imm,
        .xrc_srqn = wqe->xrc_srqn,
    };
    if (desc->flags & SEND_OP_READ) {
        /* A repeated READ asks only for the data that has not come (9.7.3.2). */
        pkt->reth.va += *offset;
        pkt->reth.len -= (uint32_t)*offset;
        *len = 0;
    } else if (desc->flags & SEND_OP_EXTENDED && desc->flags & SEND_OP_ATOMIC) {
        pkt->opcode = qp->service->extended | wqe->op->only;
        *len = wqe->operands_len;
    } else if (desc->flags & SEND_OP_ATOMIC) {
        pkt->atomic.va = wqe->raddr;
        pkt->atomic.rkey = wqe->rkey;
        pkt->atomic.swap_add = wqe->swap_add;
        pkt->atomic.compare = wqe->compare;
        *len = 0;
    }
    if (G_UNLIKELY(qp->dci)) {
        dc_address(&qp->peer, pkt);
    } else if (wqe->av) {
        return send_address_datagram(qp, wqe, pkt);
    }
    pkt->addr = qp->peer.path;
    return !qp->peer.path_gone;
}

/* The packet at tx_psn was sent. */
static void send_advance(struct qp *qp, struct send_desc *desc)
{
    struct flight *flight = qp->req.flight;
    uint32_t end = (desc->first_psn + desc->npsn) & PSN_MASK;

    flight->tx_psn = send_is_one_packet(desc) ? end : (flight->tx_psn + 1) & PSN_MASK;
    if (psn_diff(flight->tx_psn, flight->sent_psn) > 0) {
        flight->sent_psn = flight->tx_psn;
    } else {
        qp->hca->rdma->counts.retransmitted++;
    }
    if (flight->tx_psn == end) {
        flight->tx++;
    }
    if (qp->service->reliable) {
        requester_watch(qp);
        return;
    }
    qp->req.unacked_psn = flight->tx_psn;
    if (flight->tx_psn == end) {
        desc->status = SEND_DONE;
        requester_retire(qp);
    }
}

/* The data of a packet could not be read. */
static G_GNUC_NO_INLINE __attribute__((cold)) enum send_wait
send_without_data(struct qp *qp, struct send_desc *desc, enum mem_result result,
                  const struct send_wqe *wqe, uint64_t offset, uint32_t len)
{
    struct wqe_part part = {wqe, desc->index,
                            desc->source != WQE_SOURCE_RING || send_op_computes(desc->flags),
                            offset, wqe->calc ? wqe->calc_len : len};

    if (result == MEM_FAULT && requester_park(qp, false, &part)) {
        return SEND_WAITS_PAGE;
    }
    requester_fail(qp, desc, PRM_CQE_SYNDROME_LOCAL_PROT_ERR);
    return SEND_GOES_ON;
}

/* Does a step of the calculation of a packet's data. False: the packet cannot be sent yet, or
 * never; *waits says which. */
static G_GNUC_NO_INLINE __attribute__((cold)) bool
send_has_results(struct qp *qp, struct send_desc *desc, const struct send_wqe *wqe, uint64_t offset,
                 uint32_t len, enum send_wait *waits)
{
    struct flight *flight = qp->req.flight;
    enum mem_result result;
    bool is_done = false;

    *waits = SEND_GOES_ON;
    if (!flight->calc) {
        flight->calc = ledger_alloc(&qp->hca->memory, sizeof(*flight->calc));
    }
    if (!flight->calc) {
        requester_fail(qp, desc, PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR);
        return false;
    }
    result = vec_calc_step(qp->hca, flight->calc, wqe->vectors, flight->tx, qp->pdn,
                           qp->req.limits.denied, offset, &is_done);
    if (result != MEM_OK) {
        *waits = send_without_data(qp, desc, result, wqe, offset, len);
    }
    return is_done;
}

/* Puts data into the packet that do not come from a list. */
static G_GNUC_NO_INLINE __attribute__((cold)) void
send_put_other(const struct qp *qp, const struct send_desc *desc, const struct send_wqe *wqe,
               uint64_t offset, uint8_t *payload, uint32_t len)
{
    if (send_op_computes(desc->flags)) {
        vec_calc_copy(qp->req.flight->calc, wqe->vectors, offset, payload, len);
    } else {
        memcpy(payload, wqe->operands, len);
    }
}

/* Notes for trace and capture why the packet at tx_psn is sent. */
static G_GNUC_NO_INLINE __attribute__((cold)) void send_note(struct qp *qp,
                                                             const struct send_desc *desc)
{
    const struct flight *flight = qp->req.flight;
    bool repeats = psn_diff(flight->tx_psn, flight->sent_psn) < 0;

    port_note(qp->hca, &(struct wire_note){
                           .qpn = qp->obj.num,
                           .has_wqe = desc->source == WQE_SOURCE_RING,
                           .wqe = desc->index,
                           .first_psn = desc->first_psn,
                           .why = repeats ? flight->why_back : WIRE_NOTE_FIRST,
                           .retry = repeats ? MAX(flight->retries, flight->rnr_retries) : 0,
                       });
}

enum send_wait requester_send(struct qp *qp, struct send_desc *desc)
{
    struct flight *flight = qp->req.flight;
    uint32_t nth = send_is_one_packet(desc) ? 0 : (flight->tx_psn - desc->first_psn) & PSN_MASK;
    struct send_line *line = flight->tx_line;
    const struct send_wqe *wqe;
    struct roce_packet pkt;
    uint64_t offset;
    uint32_t len;
    uint8_t *payload;

    if (qp->service->reliable && desc->first_req + nth - send_unacked_req(qp) >= send_window(qp)) {
        return SEND_WAITS_ANSWER;
    }
    if (!reaction_may_send(&qp->peer) || !qp_sched_may_send(qp, QP_SCHED_REQUESTER)) {
        return SEND_WAITS_RATE;
    }
    wqe = requester_wqe(qp, line, flight->tx);
    if (!wqe || !send_build_packet(qp, desc, wqe, &pkt, &offset, &len)) {
        requester_fail(qp, desc, requester_why_changed(qp, line, desc));
        return SEND_GOES_ON;
    }
    if (G_UNLIKELY(qp->hca->ets) && !qp_sched_class_may_send(qp, QP_SCHED_REQUESTER, &pkt.addr)) {
        return SEND_WAITS_RATE;
    }
    if (G_UNLIKELY(send_op_computes(desc->flags))) {
        enum send_wait waits;

        if (!send_has_results(qp, desc, wqe, offset, len, &waits)) {
            return waits;
        }
    }
    payload = port_tx_reserve_roce(qp->hca, &pkt, len);
    if (!payload) {
        return SEND_WAITS_CREDIT;
    }
    if (G_UNLIKELY(len && desc->flags & SEND_OP_EXTENDED)) {
        send_put_other(qp, desc, wqe, offset, payload, len);
    } else if (len) {
        enum mem_result result;

        hca_dma_expect(qp->hca, desc->len - offset);
        result = send_wqe_gather(qp->hca, wqe, qp->pdn, &line->cursor, offset, payload, len);
        if (result != MEM_OK) {
            port_tx_commit(qp->hca, 0, PORT_NO_TD);
            return send_without_data(qp, desc, result, wqe, offset, len);
        }
    }
    if (G_UNLIKELY(port_wants_note(qp->hca))) {
        send_note(qp, desc);
    }
    port_tx_commit_roce(qp->hca, &pkt, len);
    if (G_UNLIKELY(qp->peer.limiter)) {
        reaction_note_sent(&qp->peer, roce_frame_len(&pkt, len));
    }
    if (G_UNLIKELY(qp->sched)) {
        sched_note_sent(&qp->sched->member[QP_SCHED_REQUESTER], roce_frame_len(&pkt, len));
    }
    if (sig_check_sent(qp, qp->pdn)) {
        send_advance(qp, desc);
    }
    return SEND_GOES_ON;
}
