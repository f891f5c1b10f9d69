/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Manages the receive WQE of the arriving message. The WQE is taken with the message's first
 * packet, or kept from a message that did not end. It is filled and completed. The parsed WQE is in
 * a line that other QPs may take (model/rdma/wqe_lines.h); then it is read from its queue again by
 * its number.
 */
#include "model/core/inject.h"
#include "model/memory/end_pad.h"
#include "model/queue/q_counter.h"
#include "model/rdma/rdma.h"
#include "model/rdma/responder_internal.h"
#include "model/rdma/sig_report.h"

struct srq *responder_srq(const struct peer *peer)
{
    const struct qp *qp = peer->qp;
    struct srq *srq;

    if (!qp->service->names_srq) {
        return peer->resp.tags ? qp->srq : NULL;
    }
    srq = srq_find(qp->hca, peer->resp.srqn);
    return srq && srq->xrcd == qp->xrcd ? srq : NULL;
}

void responder_forget_wqe(struct peer *peer)
{
    struct recv_line *line = peer->resp.line;

    if (line && line->peer == peer) {
        line->peer = NULL;
    }
}

enum verdict responder_take(struct peer *peer)
{
    struct responder *resp = &peer->resp;
    struct recv_line *line = peer->resp.line;

    if (resp->have_wqe) {
        return VERDICT_OK;
    }
    line->peer = NULL;
    switch (qp_take_recv(peer->qp, responder_srq(peer), &line->wqe)) {
    case RECV_OK:
        mkey_list_to_wire(peer->qp->hca, line->wqe.sge, line->wqe.num_sge, &line->wqe.len);
        line->peer = peer;
        resp->have_wqe = true;
        resp->wqe_index = line->wqe.index;
        resp->wqe_len = line->wqe.len;
        return VERDICT_OK;
    case RECV_EMPTY:
        qp_counters(peer->qp)->out_of_buffer++;
        return VERDICT_RNR;
    default:
        return VERDICT_OPERATION;
    }
}

/* The held WQE, from its line or its queue. NULL: the WQE has changed, *verdict says why: a key
 * that is gone does not tell the length of its element (docs/adr/0026), or the program has written
 * over the WQE. */
static const struct recv_wqe *responder_wqe(struct peer *peer, enum verdict *verdict)
{
    struct responder *resp = &peer->resp;
    struct recv_line *line = peer->resp.line;

    *verdict = VERDICT_OPERATION;
    if (line->peer != peer) {
        line->peer = NULL;
        if (qp_reread_recv(peer->qp, responder_srq(peer), resp->wqe_index, &line->wqe) != RECV_OK) {
            return NULL;
        }
        mkey_list_to_wire(peer->qp->hca, line->wqe.sge, line->wqe.num_sge, &line->wqe.len);
        line->peer = peer;
    }
    if (G_LIKELY(line->wqe.len == resp->wqe_len)) {
        return &line->wqe;
    }
    if (sge_lacks_key(peer->qp->hca, line->wqe.sge, line->wqe.num_sge, resp->recv_pdn)) {
        *verdict = VERDICT_LOCAL_PROT;
    }
    return NULL;
}

/* Returns the WQE of an SRQ to the program, because a rule of the device's owner says so. The
 * message takes another WQE when the peer sends it again. */
static void responder_return(struct peer *peer)
{
    responder_forget_wqe(peer);
    peer->resp.have_wqe = false;
    qp_return_recv(peer->qp, responder_srq(peer), peer->resp.wqe_index);
}

/* Parks the responder at a receive buffer. The buffer of a tag list entry is in no WQE that a
 * driver could read, so its range is described instead. */
static bool responder_parks_recv(struct peer *peer, const struct sge *sge, uint64_t offset,
                                 size_t len)
{
    const struct recv_line *line = peer->resp.line;
    const struct srq *srq = peer->qp->srq ? peer->qp->srq : responder_srq(peer);
    struct hca *hca = peer->qp->hca;
    bool is_wqe = line->peer == peer && sge == line->wqe.sge;

    if (!responder_park(peer, &(struct fault_step){
                                  .op = srq ? FAULT_SRQ_RECEIVE : FAULT_RECEIVE,
                                  .is_wqe = is_wqe,
                                  .wqe_index = (uint16_t)peer->resp.wqe_index,
                                  .srqn = srq ? srq->obj.num : 0,
                                  .key = hca->fault.key,
                                  .va = hca->fault.va,
                                  .done = is_wqe ? offset : 0,
                                  .len = is_wqe ? peer->resp.wqe_len : hca->fault.len,
                                  .part = (uint32_t)len,
                              })) {
        return false;
    }
    /* only with the first packet: a WQE that has data of a message cannot be exchanged */
    if (G_UNLIKELY(hca->inject) && srq && is_wqe && !peer->resp.done &&
        inject_receive(hca, peer->qp->obj.num)) {
        responder_return(peer);
    }
    return true;
}

enum verdict responder_scatter_to(struct peer *peer, const struct sge *sge, unsigned num_sge,
                                  uint64_t offset, const void *data, size_t len)
{
    struct responder *resp = &peer->resp;
    enum mem_result result =
        sge_scatter(peer->qp->hca, sge, num_sge, resp->recv_pdn, &resp->cursor, offset, data, len);

    if (result == MEM_OK) {
        return sig_check_received(peer, resp->recv_pdn) ? VERDICT_OK : VERDICT_DROP;
    }
    if (result == MEM_FAULT && responder_parks_recv(peer, sge, offset, len)) {
        return VERDICT_FAULT;
    }
    return result == MEM_NO_ANSWER ? VERDICT_MEMORY : VERDICT_LOCAL_PROT;
}

enum verdict responder_scatter(struct peer *peer, uint64_t offset, const void *data, size_t len)
{
    enum verdict verdict;
    const struct recv_wqe *wqe = responder_wqe(peer, &verdict);

    return wqe ? responder_scatter_to(peer, wqe->sge, wqe->num_sge, offset, data, len) : verdict;
}

void responder_pad_end(struct peer *peer, uint64_t len)
{
    enum verdict verdict;
    const struct recv_wqe *wqe = responder_wqe(peer, &verdict);

    if (wqe) {
        sge_pad_end(peer->qp->hca, wqe->sge, wqe->num_sge, peer->resp.recv_pdn, len);
    }
}

void responder_complete(struct peer *peer, enum prm_cqe_opcode opcode, uint64_t byte_cnt,
                        struct prm_cqe64 *cqe, bool solicited, const struct cqe_data *data)
{
    struct responder *resp = &peer->resp;

    resp->have_wqe = false;
    qp_complete_recv(peer->qp, responder_srq(peer), resp->wqe_index, opcode, (uint32_t)byte_cnt,
                     solicited, cqe, data);
}

/* If an XRC SRQ was destroyed while its WQE was held, no program waits for the completion. */
void responder_abandon(struct peer *peer, uint8_t syndrome)
{
    struct responder *resp = &peer->resp;
    struct srq *srq = responder_srq(peer);

    resp->have_wqe = false;
    if (srq || !peer->qp->service->names_srq) {
        qp_complete_recv_error(peer->qp, srq, resp->wqe_index, syndrome);
    }
}
