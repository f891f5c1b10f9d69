/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Takes a QP's receive WQEs, from its own queue or a shared one, and completes them.
 */
#include <string.h>
#include "model/core/trace_event.h"
#include "model/queue/cqe.h"
#include "model/queue/q_counter.h"
#include "model/rdma/qp.h"
#include "model/rdma/rdma.h"
#include "model/rdma/trace_wqe.h"

static enum recv_result qp_recv_take_own(struct qp *qp, struct recv_wqe *wqe)
{
    enum recv_result result = rq_peek(qp->hca, &qp->rq, qp->rq_signature, wqe);

    if (result == RECV_OK) {
        qp->rq.ci = (qp->rq.ci + 1) & 0xffff;
    }
    return result;
}

static enum recv_result qp_recv_denied(const struct qp *qp, enum recv_result result,
                                       struct recv_wqe *wqe)
{
    if (result == RECV_OK && !qp->rlky) {
        recv_wqe_deny(wqe, qp->hca->resd_lkey);
    }
    return result;
}

/* before: the producer counter before the device looked for a WQE. wqe: what it took, or NULL. */
static void qp_recv_trace(const struct qp *qp, const struct srq *srq, uint32_t before,
                          const struct recv_wqe *wqe)
{
    uint32_t now = srq ? srq->wq.pi : qp->rq.pi;

    if (now != before && qp->hca->tracing & HCA_TRACES_EVENTS) {
        trace_event_posted(qp->hca, srq, srq ? srq->obj.num : qp->obj.num, (uint16_t)before,
                           (uint16_t)now);
    }
    if (wqe) {
        trace_recv_wqe(qp, srq, wqe);
    }
}

enum recv_result qp_take_recv(struct qp *qp, struct srq *xrc_srq, struct recv_wqe *wqe)
{
    struct srq *srq = xrc_srq ? xrc_srq : qp->srq;
    const struct wq *ring = srq ? &srq->wq : &qp->rq;
    enum recv_result result = RECV_EMPTY;
    uint32_t before = ring->pi;

    if (srq) {
        result = srq_take(qp->hca, srq, wqe);
    } else if (qp->has_rq) {
        result = qp_recv_take_own(qp, wqe);
    }
    if (G_UNLIKELY(qp->hca->tracing)) {
        qp_recv_trace(qp, srq, before, result == RECV_OK ? wqe : NULL);
    }
    return qp_recv_denied(qp, result, wqe);
}

enum recv_result qp_reread_recv(struct qp *qp, struct srq *xrc_srq, uint32_t index,
                                struct recv_wqe *wqe)
{
    struct srq *srq = xrc_srq ? xrc_srq : qp->srq;

    return qp_recv_denied(qp,
                          srq ? srq_read(qp->hca, srq, index, wqe, NULL)
                              : rq_read(qp->hca, &qp->rq, index, qp->rq_signature, wqe),
                          wqe);
}

/* The srqn in a receive CQE. An XRC SRQ or XRQ has a user index of its own, whatever the QP. */
static uint32_t qp_recv_cqe_srqn(const struct qp *qp, const struct srq *xrc_srq)
{
    return xrc_srq ? srq_cqe_srqn(xrc_srq) : qp_cqe_srqn(qp);
}

static struct cq *recv_cq(struct qp *qp, struct srq *xrc_srq)
{
    return xrc_srq ? xrc_srq->cq : qp->recv_cq;
}

static struct cqe_about recv_about(const struct qp *qp, const struct srq *xrc_srq, uint32_t index)
{
    return (struct cqe_about){.qpn = qp->obj.num,
                              .srqn = qp_recv_cqe_srqn(qp, xrc_srq),
                              .index = (uint16_t)index,
                              .real_time = qp->real_time};
}

void qp_complete_recv(struct qp *qp, struct srq *xrc_srq, uint32_t index,
                      enum prm_cqe_opcode opcode, uint32_t byte_cnt, bool solicited,
                      struct prm_cqe64 *cqe, const struct cqe_data *data)
{
    cqe_received(cqe, recv_about(qp, xrc_srq, index), opcode, byte_cnt, solicited);
    qp->hca->rdma->counts.receives++;
    qp_post_cqe_data(qp, recv_cq(qp, xrc_srq), cqe, solicited, data);
}

void qp_complete_recv_error(struct qp *qp, struct srq *xrc_srq, uint32_t index, uint8_t syndrome)
{
    struct prm_cqe64 cqe[1] = {0};
    struct q_counter *counters = qp_counters(qp);

    qp_note_error(qp, PRM_CQE_OPCODE_RESP_ERR, syndrome);
    counters->resp_cqe_error++;
    counters->resp_cqe_flush_error += syndrome == PRM_CQE_SYNDROME_WR_FLUSH_ERR;
    counters->resp_local_length_error += syndrome == PRM_CQE_SYNDROME_LOCAL_LENGTH_ERR;
    counters->resp_local_qp_error += syndrome == PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR;
    counters->resp_local_protection += syndrome == PRM_CQE_SYNDROME_LOCAL_PROT_ERR;
    cqe_receive_failed(cqe, recv_about(qp, xrc_srq, index), syndrome);
    qp_post_cqe(qp, recv_cq(qp, xrc_srq), cqe, true);
}

void qp_return_recv(struct qp *qp, struct srq *xrc_srq, uint32_t index)
{
    struct prm_cqe64 cqe[1] = {0};

    qp_counters(qp)->resp_cqe_error++;
    cqe_receive_failed(cqe, recv_about(qp, xrc_srq, index), PRM_CQE_SYNDROME_REMOTE_ABORTED_ERR);
    qp_post_cqe(qp, recv_cq(qp, xrc_srq), cqe, true);
}

bool qp_flush_rq(struct qp *qp)
{
    if (!qp->has_rq) {
        return false;
    }
    if (wq_posted(&qp->rq) == 0 && !wq_update_pi(qp->hca, &qp->rq)) {
        return false;
    }
    while (wq_posted(&qp->rq)) {
        uint32_t index = qp->rq.ci;

        qp->rq.ci = (qp->rq.ci + 1) & 0xffff;
        qp_complete_recv_error(qp, NULL, index, PRM_CQE_SYNDROME_WR_FLUSH_ERR);
        hca_spend(qp->hca, 1);
        if (!hca_may_go_on(qp->hca)) {
            return true;
        }
    }
    return false;
}
