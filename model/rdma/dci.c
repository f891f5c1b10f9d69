/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements the initiator of dynamic connections; see model/rdma/dci.h. */
#include <string.h>
#include "model/core/ledger.h"
#include "model/rdma/dci.h"
#include "model/rdma/early.h"
#include "model/rdma/notification_point.h"
#include "model/rdma/rdma.h"
#include "model/rdma/wqe_source.h"

/* Interval of the looks for an idle session. A session in which nothing happens from one look to
 * the next is ended. */
#define DCI_LOOK_NS 1000000ull

/* The first wait after a refusal is this part of the ACK timeout. The wait doubles with each
 * further refusal. */
#define DCI_WAIT_SHARE  16
#define DCI_WAIT_MIN_NS 1000000ull
#define DCI_WAIT_MAX_NS (64 * DCI_WAIT_MIN_NS)

static bool dci_in_flight(const struct qp *qp)
{
    return requester_started(qp) != 0;
}

/* -- CONNECT ----------------------------------------------------------------------------------- */

/* False: the wire has no credit. */
static bool dci_send_connect(struct qp *qp)
{
    struct dci *dci = qp->dci;
    struct roce_packet pkt = {.addr = qp->peer.path, .dest_qp = qp->peer.qpn};
    struct dcceth connect = {
        .reconnect = dci->reconnect,
        .psn = qp->req.flight->tx_psn,
        .key = PRM_GET(wqe_av, dci->av, dc_key),
    };
    uint8_t *payload;

    pkt.opcode = BTH_DC | BTH_CONNECT;
    pkt.migreq = true;
    pkt.pkey = qp->pkey;
    pkt.psn = connect.psn;
    dc_address(&qp->peer, &pkt);
    payload = port_tx_reserve_roce(qp->hca, &pkt, DCC_ETH_BYTES);
    if (!payload) {
        return false;
    }
    dcceth_build(payload, &connect);
    if (G_UNLIKELY(port_wants_note(qp->hca))) {
        port_note(qp->hca, &(struct wire_note){.qpn = qp->obj.num, .why = WIRE_NOTE_CONNECTS});
    }
    port_tx_commit_roce(qp->hca, &pkt, DCC_ETH_BYTES);
    dci->connect_due = false;
    return true;
}

/* -- sessions ---------------------------------------------------------------------------------- */

static bool dci_find_path(struct qp *qp, struct roce_addr *path)
{
    const struct prm_wqe_av *av = qp->dci->av;
    bool found =
        PRM_GET(wqe_av, av, ext)
            ? send_wqe_address(qp->hca, av, path)
            : peer_find_path(qp->hca, PRM_PTR(qpc, qp->qpc, primary_address_path), path) == SYN_OK;

    if (!found || roce_gid_is_multicast(path->dgid)) {
        return false;
    }
    uplink_mark_path(qp->hca->vport->uplink, path);
    if (path->udp_sport == 0) {
        path->udp_sport = (uint16_t)(0xc000 | ((qp->obj.num ^ qp->peer.qpn) & 0x3fff));
    }
    return true;
}

/* Ends the session and tells the target. Nothing may be outstanding, or nothing may be repeated any
 * more. */
static void dci_close(struct qp *qp)
{
    struct dci *dci = qp->dci;
    struct notice_text disconnect = {
        .addr = qp->peer.path,
        .dest_qp = qp->peer.qpn,
        .psn = qp->req.flight ? qp->req.flight->sent_psn : qp->req.next_psn,
        .session = qp->peer.session,
        .number = qp->obj.num,
        .pkey = qp->pkey,
    };

    if (dci->open) {
        dci->open = dci->connect_due = false;
        notice_send_first(qp->hca, NOTICE_DISCONNECT, &disconnect);
    }
}

/* Opens a session to the target of dci->av. False: there is no path. */
static bool dci_open(struct qp *qp)
{
    struct dci *dci = qp->dci;
    struct roce_addr path;

    qp->peer.qpn = PRM_GET(wqe_av, dci->av, dqp_dct);
    if (!dci_find_path(qp, &path)) {
        qp->peer.path_gone = true;
        return false;
    }
    peer_set_path(&qp->peer, &path);
    qp->peer.session = dc_new_session(qp->hca);
    dci->open = dci->connect_due = true;
    dci->confirmed = dci->reconnect = false;
    dci->msn = 0;
    dci->idle_psn = qp->req.next_psn;
    dci->heard_at = hca_now(qp->hca);
    if (!dci->idle_timer.pos) {
        hca_timer_set(qp->hca, &dci->idle_timer, hca_now(qp->hca) + DCI_LOOK_NS);
    }
    return true;
}

static void dci_look(struct hca *hca, struct hca_timer *timer)
{
    struct dci *dci = (struct dci *)((char *)timer - offsetof(struct dci, idle_timer));
    struct qp *qp = dci->qp;

    if (!dci->open || !qp_may_send(qp)) {
        return;
    }
    if (!dci_in_flight(qp) && dci->idle_psn == qp->req.next_psn) {
        dci_close(qp);
        return;
    }
    dci->idle_psn = qp->req.next_psn;
    hca_timer_set(hca, &dci->idle_timer, hca_now(hca) + DCI_LOOK_NS);
}

/* Whether the target would answer to the same addresses. */
static bool dci_same_way_back(const struct roce_addr *a, const struct roce_addr *b)
{
    return memcmp(a->smac, b->smac, sizeof(a->smac)) == 0 && a->is_v1 == b->is_v1 &&
           a->has_vlan == b->has_vlan && a->vlan_tci == b->vlan_tci;
}

/* Tells the target when this side's MAC address or VLAN has changed. If the GID has changed, the
 * target would see another initiator, so the session ends. */
void dci_path_update(struct qp *qp)
{
    struct dci *dci = qp->dci;
    struct roce_addr path;

    if (!dci->open) {
        return;
    }
    qp->peer.path_gone = !dci_find_path(qp, &path);
    if (!qp->peer.path_gone && memcmp(path.sgid, qp->peer.path.sgid, sizeof(path.sgid)) != 0) {
        if (!dci_in_flight(qp)) {
            dci_close(qp);
            return;
        }
        qp->peer.path_gone = true;
    }
    if (!qp->peer.path_gone) {
        if (!dci_same_way_back(&path, &qp->peer.path)) {
            dci->connect_due = dci->reconnect = true;
        }
        qp->peer.path = path;
    }
}

static bool dci_is_for(const struct dci *dci, const struct prm_wqe_av *av)
{
    return memcmp(dci->av, av, PRM_GET(wqe_av, av, ext) ? PRM_SIZE(wqe_av) : WQE_SHORT_AV) == 0;
}

/* Called before unacknowledged packets are sent again. If the target has not answered yet, it may
 * have no session, or wrong addresses to answer to: send a CONNECT first. */
void dci_went_back(struct qp *qp)
{
    struct dci *dci = qp->dci;

    if (dci->open && (!dci->confirmed || qp->req.flight->recovery == RECOVERY_NONE)) {
        dci->connect_due = dci->reconnect = true;
    }
}

bool dci_step(struct qp *qp, enum send_wait *waits)
{
    struct dci *dci = qp->dci;
    struct flight *flight = qp->req.flight;

    *waits = SEND_GOES_ON;
    if (flight->tx == flight->tail) {
        return false;
    }
    if (psn_diff(flight->tx_psn, flight->sent_psn) < 0 &&
        flight_desc(flight, flight->tx)->status == SEND_ACTIVE &&
        hca_now(qp->hca) - dci->heard_at > DC_REPEAT_NS) {
        requester_fail(qp, requester_oldest(flight), PRM_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR);
        return true;
    }
    if (dci->connect_due && !qp->peer.path_gone) {
        if (!dci_send_connect(qp)) {
            *waits = SEND_WAITS_CREDIT;
        }
        return true;
    }
    return false;
}

/* -- responses --------------------------------------------------------------------------------- */

/* The target has no free responder. If the session is confirmed, it has one; then the refusal is
 * late and is ignored. */
static void dci_rx_cnak(struct qp *qp, const struct roce_packet *pkt)
{
    struct flight *flight = qp->req.flight;
    uint64_t wait =
        CLAMP((4096ull << qp->ack_timeout) / DCI_WAIT_SHARE, DCI_WAIT_MIN_NS, DCI_WAIT_MAX_NS);

    if (qp->dci->confirmed || !flight || !qp_may_send(qp) ||
        flight->recovery == RECOVERY_RNR_WAIT || qp->req.unacked_psn == flight->sent_psn ||
        pkt->psn != qp->req.unacked_psn) {
        return;
    }
    if (flight->retries >= qp->retry_count) {
        requester_fail(qp, requester_oldest(flight), PRM_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR);
        return;
    }
    /* Initiators that were refused at the same time try again at different times. */
    wait += wait / 8 * (qp->obj.num & 7);
    requester_recovery_step(qp, RECOVERY_RNR_NAK);
    requester_go_back(qp, WIRE_NOTE_NO_RESPONDER);
    hca_timer_set(qp->hca, &flight->timer, hca_now(qp->hca) + (wait << MIN(flight->retries, 7)));
    flight->retries++;
}

void dci_rx(struct qp *qp, const struct roce_packet *pkt)
{
    struct dci *dci = qp->dci;

    if (!dci->open || pkt->dceth.version != qp->hca->limits.dc_version ||
        pkt->dceth.number != qp->peer.qpn) {
        return;
    }
    if (pkt->opcode == (BTH_DC | BTH_ACK) && pkt->aeth.syndrome == AETH_CNAK) {
        dci_rx_cnak(qp, pkt);
    } else if (pkt->dceth.session == qp->peer.session) {
        dci->confirmed = true;
        dci->connect_due = false;
        dci->heard_at = hca_now(qp->hca);
        if (G_UNLIKELY(notification_is_marked(pkt))) {
            notification_answer_mark(&qp->peer, pkt);
        }
        requester_rx(qp, pkt);
    }
}

/* -- streams ----------------------------------------------------------------------------------- */

static unsigned dci_fold(const struct dci *dci, uint32_t id)
{
    return id & ((1u << dci->log_streams) - 1);
}

static bool dci_stream_failed(const struct dci *dci, unsigned stream)
{
    return dci->failed >> stream & 1;
}

static unsigned dci_stream_of(const struct dci *dci, const struct send_wqe *wqe)
{
    return dci_fold(dci, PRM_GET(wqe_ctrl_seg, wqe->ctrl, dci_stream_channel_id));
}

void dci_note_stream(struct qp *qp, uint32_t num, const struct send_wqe *wqe)
{
    struct dci *dci = qp->dci;

    dci->stream_of[num & qp->req.flight->mask] = (uint8_t)dci_stream_of(dci, wqe);
}

enum syn dci_check_stream(const struct qp *qp, uint16_t id)
{
    const struct dci *dci = qp->dci;
    bool failed = dci && dci->log_streams && dci_stream_failed(dci, dci_fold(dci, id));

    return failed ? SYN_OK : SYN_QP_STREAM;
}

void dci_reset_stream(struct qp *qp, uint16_t id)
{
    struct dci *dci = qp->dci;

    dci->failed &= ~(1ull << dci_fold(dci, id));
    dci->num_failed--;
}

bool dci_may_start(struct qp *qp, const struct send_wqe *wqe, uint8_t *syndrome)
{
    struct dci *dci = qp->dci;

    if (dci_stream_failed(dci, dci_stream_of(dci, wqe))) {
        *syndrome = PRM_CQE_SYNDROME_WR_FLUSH_ERR;
        return true;
    }
    if (*syndrome || !wqe->av) {
        return true;
    }
    if (!dci_in_flight(qp)) {
        if (hca_now(qp->hca) - dci->heard_at > DC_SECOND) {
            /* this host did not run for long: the target may have given the responder away */
            dci_close(qp);
        }
        dci->heard_at = hca_now(qp->hca);
    }
    if (dci->open && dci_is_for(dci, wqe->av)) {
        return true;
    }
    if (dci_in_flight(qp)) {
        return false;
    }
    dci_close(qp);
    memset(dci->av, 0, sizeof(dci->av));
    memcpy(dci->av, wqe->av, PRM_GET(wqe_av, wqe->av, ext) ? PRM_SIZE(wqe_av) : WQE_SHORT_AV);
    if (!dci_open(qp)) {
        *syndrome = PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR;
    }
    return true;
}

/* What is known about the requests behind a failed one. */
enum dci_rest {
    /* The target has refused the failed request, and therefore all requests after it; or it had not
     * received the whole of it. */
    REST_NOT_CARRIED_OUT,
    REST_GOES_ON, /* the target knows of no fault */
    REST_UNKNOWN, /* the target was not heard, or found the fault later */
};

static enum dci_rest dci_rest_of(const struct qp *qp, const struct send_desc *failed)
{
    const struct dci *dci = qp->dci;
    uint32_t sent_psn = qp->req.flight->sent_psn;

    switch (failed->syndrome) {
    case PRM_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR:
    case PRM_CQE_SYNDROME_BAD_RESP_ERR:
    case PRM_CQE_SYNDROME_RNR_RETRY_EXC_ERR: /* the NAK may be older than the last repeat */
        return REST_UNKNOWN;
    case PRM_CQE_SYNDROME_LOCAL_PROT_ERR:
    case PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR:
        if (failed->answered) {
            return REST_GOES_ON;
        }
        /* Otherwise it failed when it was to be sent, perhaps for the second time. */
        return psn_diff(sent_psn, (failed->first_psn + failed->npsn) & PSN_MASK) >= 0
                   ? REST_UNKNOWN
                   : REST_NOT_CARRIED_OUT;
    default:
        /* The target may refuse a READ only when it sends the data; then it has counted the READ as
         * taken. */
        return psn_diff(dci->target_msn, dci->msn) < 0 ? REST_NOT_CARRIED_OUT : REST_UNKNOWN;
    }
}

/* All requests that were sent and not answered fail like the one before them. */
static void dci_fail_sent(struct qp *qp, uint8_t syndrome)
{
    struct flight *flight = qp->req.flight;

    for (uint32_t num = flight->head; num != flight->tail; num++) {
        struct send_desc *desc = flight_desc(flight, num);

        if (desc->status == SEND_ACTIVE && psn_diff(desc->first_psn, flight->sent_psn) < 0) {
            desc->status = SEND_FAILED;
            desc->syndrome = syndrome;
            desc->npsn = 0;
        }
    }
}

/* Assigns new PSNs, from psn on, to the descriptors from num on that were started but not sent.
 * Descriptors of failed streams get none; they are flushed in their turn. True: there is something
 * to send. */
static bool dci_renumber(struct qp *qp, uint32_t num, uint32_t psn)
{
    struct flight *flight = qp->req.flight;
    uint32_t req = num == flight->tail ? flight->next_req : flight_desc(flight, num)->first_req;
    bool any = false;

    for (; num != flight->tail; num++) {
        struct send_desc *desc = flight_desc(flight, num);

        desc->first_psn = psn & PSN_MASK;
        desc->first_req = req;
        if (desc->status != SEND_ACTIVE) {
            continue;
        }
        if (dci_stream_failed(qp->dci, qp->dci->stream_of[num & flight->mask])) {
            desc->status = SEND_FAILED;
            desc->syndrome = PRM_CQE_SYNDROME_WR_FLUSH_ERR;
            desc->npsn = 0;
            continue;
        }
        psn += desc->npsn;
        req += desc->flags & (SEND_OP_READ | SEND_OP_ATOMIC) ? 1 : desc->npsn;
        any = true;
    }
    qp->req.next_psn = psn & PSN_MASK;
    flight->next_req = req;
    return any;
}

/* A READ or atomic was answered and failed here: the session goes on with the next request. */
static void dci_go_on_behind(struct qp *qp, const struct send_desc *failed)
{
    struct flight *flight = qp->req.flight;
    uint32_t num = flight->head;

    qp->req.unacked_psn = (failed->first_psn + failed->npsn) & PSN_MASK;
    while (num != flight->tail &&
           psn_diff(flight_desc(flight, num)->first_psn, flight->sent_psn) < 0) {
        num++;
    }
    if (num != flight->tail) {
        dci_renumber(qp, num, flight_desc(flight, num)->first_psn);
    }
    if (psn_diff(flight->sent_psn, qp->req.unacked_psn) < 0) {
        flight->sent_psn = qp->req.unacked_psn;
    }
}

/* Sends the requests that were not sent in a new session. */
static void dci_begin_anew(struct qp *qp)
{
    struct flight *flight = qp->req.flight;
    uint32_t psn = qp->req.next_psn;

    dci_close(qp);
    early_forget(&qp->peer);
    requester_recovery_step(qp, RECOVERY_ENDS);
    hca_timer_stop(qp->hca, &flight->timer);
    flight->retries = flight->rnr_retries = 0;
    flight->paging = PAGING_NONE;
    flight->tx = flight->head;
    flight->tx_psn = flight->sent_psn = qp->req.unacked_psn = psn;
    if (dci_renumber(qp, flight->head, psn)) {
        dci_open(qp);
    }
}

static void dci_repair(struct qp *qp, const struct send_desc *failed)
{
    struct flight *flight = qp->req.flight;
    enum dci_rest rest = dci_rest_of(qp, failed);

    if (rest == REST_GOES_ON) {
        dci_go_on_behind(qp, failed);
    } else {
        if (rest == REST_UNKNOWN) {
            dci_fail_sent(qp, failed->syndrome);
        }
        dci_begin_anew(qp);
    }
    flight->reads = 0;
    for (uint32_t num = flight->head; num != flight->tail; num++) {
        const struct send_desc *desc = flight_desc(flight, num);

        flight->reads +=
            desc->status == SEND_ACTIVE && desc->flags & (SEND_OP_READ | SEND_OP_ATOMIC);
    }
}

/* What happens to a WQE that is done or failed. */
enum dci_verdict {
    WQE_COMPLETES,   /* it completes as on any queue */
    WQE_IS_FLUSHED,  /* it is flushed: its stream failed before */
    WQE_ENDS_STREAM, /* it fails, and its stream with it */
    WQE_ENDS_ALONE,  /* it fails alone: each WQE is a stream of its own */
    WQE_ENDS_QP,     /* it fails, and the QP with it */
};

static enum dci_verdict dci_judge(const struct qp *qp, unsigned stream,
                                  const struct send_desc *desc)
{
    const struct dci *dci = qp->dci;
    unsigned most = 1u << PRM_GET(qpc, qp->qpc, log_num_dci_errored_streams);

    /* A WQE that was flushed in the queue did not fail itself, even if software has reset its
     * stream since. */
    if (dci_stream_failed(dci, stream) ||
        (desc->status == SEND_FAILED && desc->syndrome == PRM_CQE_SYNDROME_WR_FLUSH_ERR)) {
        return WQE_IS_FLUSHED;
    }
    if (desc->status == SEND_DONE) {
        return WQE_COMPLETES;
    }
    if (dci->alone) {
        return WQE_ENDS_ALONE;
    }
    return !dci->log_streams || dci->num_failed + 1u >= most ? WQE_ENDS_QP : WQE_ENDS_STREAM;
}

bool dci_retire(struct qp *qp, uint32_t num, const struct send_desc *desc)
{
    struct dci *dci = qp->dci;
    unsigned stream = dci->stream_of[num & qp->req.flight->mask];
    enum dci_verdict verdict = dci_judge(qp, stream, desc);

    if (desc->npsn) {
        dci->msn = (dci->msn + 1) & PSN_MASK;
    }
    if (verdict == WQE_COMPLETES || verdict == WQE_ENDS_QP) {
        return false;
    }
    wqe_source_failed(qp, desc,
                      verdict == WQE_IS_FLUSHED ? PRM_CQE_SYNDROME_WR_FLUSH_ERR : desc->syndrome);
    if (!qp_may_send(qp)) {
        return true;
    }
    if (verdict == WQE_ENDS_STREAM) {
        dci->failed |= 1ull << stream;
        dci->num_failed++;
    }
    if (desc->status == SEND_FAILED) {
        if (desc->npsn) {
            dci_repair(qp, desc);
        }
        requester_queue_step(qp, QUEUE_STREAM_FAILED);
        hca_schedule(qp->hca, &qp->req.work);
    }
    return true;
}

/* -- life -------------------------------------------------------------------------------------- */

bool dci_new(struct qp *qp)
{
    qp->dci = ledger_alloc(&qp->hca->memory, sizeof(*qp->dci));
    if (!qp->dci) {
        return false;
    }
    qp->dci->qp = qp;
    qp->dci->idle_timer.fire = dci_look;
    qp->dci->log_streams = (uint8_t)PRM_GET(qpc, qp->qpc, log_num_dci_stream_channels);
    return true;
}

void dci_free(struct qp *qp)
{
    if (qp->dci) {
        hca_timer_stop(qp->hca, &qp->dci->idle_timer);
        ledger_free(&qp->hca->memory, qp->dci, sizeof(*qp->dci));
        qp->dci = NULL;
    }
}

void dci_leave(struct qp *qp)
{
    hca_timer_stop(qp->hca, &qp->dci->idle_timer);
    dci_close(qp);
}

void dci_reset(struct qp *qp)
{
    dci_leave(qp);
    qp->dci->failed = 0;
    qp->dci->num_failed = 0;
}
