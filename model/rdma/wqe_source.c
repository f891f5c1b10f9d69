/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Implements the guest's ring as a source of WQEs, and chooses between the ring and a source of the
 * device's own.
 */
#include "model/queue/cqe.h"
#include "model/queue/q_counter.h"
#include "model/rdma/cross.h"
#include "model/rdma/requester_internal.h"
#include "model/rdma/wqe_source.h"

/* -- the ring: completions --------------------------------------------------------------------- */

static void ring_count_error(struct q_counter *c, uint8_t syndrome)
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

static struct cqe_about ring_about(const struct qp *qp, uint16_t index)
{
    return (struct cqe_about){
        .qpn = qp->obj.num, .srqn = qp_cqe_srqn(qp), .index = index, .real_time = qp->real_time};
}

static void ring_complete_error(struct qp *qp, uint16_t index, uint8_t opcode, uint8_t syndrome)
{
    struct prm_cqe64 cqe[1] = {0};
    struct q_counter *counters = qp_counters(qp);

    qp_note_error(qp, PRM_CQE_OPCODE_REQ_ERR, syndrome);
    counters->req_cqe_error++;
    ring_count_error(counters, syndrome);
    cqe_send_failed(cqe, ring_about(qp, index), opcode, syndrome);
    qp_post_cqe(qp, qp->send_cq, cqe, true);
}

bool wqe_source_tells_end(const struct send_desc *desc)
{
    return desc->source == WQE_SOURCE_RING &&
           (desc->ce == PRM_WQE_CE_ALWAYS || desc->ce == PRM_WQE_CE_ALWAYS_EQE);
}

static void ring_complete(struct qp *qp, const struct send_desc *desc)
{
    bool has_bytes = desc->flags & (SEND_OP_READ | SEND_OP_ATOMIC);
    struct prm_cqe64 cqe[1] = {0};

    if (!wqe_source_tells_end(desc)) {
        return;
    }
    cqe_sent(cqe, ring_about(qp, desc->index), desc->opcode, has_bytes ? desc->len : 0);
    qp_post_cqe_data(qp, qp->send_cq, cqe, desc->ce == PRM_WQE_CE_ALWAYS_EQE,
                     qp->req.flight->in_cqe);
    qp->req.flight->in_cqe = NULL;
}

/* -- the ring: WQEs ---------------------------------------------------------------------------- */

void wqe_source_set_limits(struct qp *qp)
{
    qp->req.limits = (struct send_limits){
        .service = qp->service,
        .log_msg_max = qp->log_msg_max,
        .max_wqe = (uint16_t)MIN(qp->hca->limits.max_sq_wqe, WQE_MAX_BYTES),
        .denied = mkey_denied(qp->hca, qp->rlky),
        .master = qp->cross && qp->cross->master,
    };
}

static bool ring_flush_one(struct qp *qp)
{
    uint16_t index = (uint16_t)qp->sq.ci;
    unsigned num_bb;
    uint8_t opcode;

    if (wq_posted(&qp->sq) == 0) {
        return false;
    }
    num_bb = send_wqe_peek(qp->hca, &qp->sq, index, wq_posted(&qp->sq), &opcode);
    if (num_bb == 0) {
        /* The start of the next WQE is unknown, so this WQE stands for all that follow. */
        num_bb = wq_posted(&qp->sq);
    }
    qp->sq.ci = (qp->sq.ci + num_bb) & 0xffff;
    if (qp->cross) {
        cross_took(qp);
    }
    ring_complete_error(qp, index, opcode, PRM_CQE_SYNDROME_WR_FLUSH_ERR);
    return true;
}

/* -- either source ----------------------------------------------------------------------------- */

static unsigned device_posted(const struct qp *qp)
{
    const struct wqe_source *source = qp->req.device;

    return source ? (uint16_t)(source->end - source->next) : 0;
}

void wqe_source_attach(struct qp *qp, struct wqe_source *source)
{
    qp->req.device = source;
    wqe_source_kick(qp);
}

void wqe_source_kick(struct qp *qp)
{
    requester_kick(qp);
}

unsigned wqe_source_max(const struct qp *qp)
{
    const struct wqe_source *source = qp->req.device;

    return MAX(1u << qp->sq.log_size, source ? source->most : 0);
}

bool wqe_source_look(struct qp *qp, enum wqe_source_id *id, unsigned *posted)
{
    *posted = device_posted(qp);
    *id = *posted ? WQE_SOURCE_DEVICE : WQE_SOURCE_RING;
    if (*posted || !qp->sq.rung) {
        return true;
    }
    if (wq_posted(&qp->sq) == 0 && !wq_update_pi(qp->hca, &qp->sq)) {
        return false;
    }
    *posted = wq_posted(&qp->sq);
    return true;
}

bool wqe_source_has_posted(const struct qp *qp)
{
    return wq_posted(&qp->sq) || device_posted(qp);
}

uint32_t wqe_source_pdn(const struct qp *qp, enum wqe_source_id id)
{
    return id == WQE_SOURCE_RING ? qp->pdn : qp_recv_pdn(qp);
}

uint16_t wqe_source_next(const struct qp *qp, enum wqe_source_id id)
{
    return id == WQE_SOURCE_RING ? (uint16_t)qp->sq.ci : qp->req.device->next;
}

/* The lengths of the list become lengths on the wire, of which the whole message is limited. */
static G_GNUC_NO_INLINE __attribute__((cold)) uint8_t wqe_source_to_wire(struct qp *qp,
                                                                         struct send_wqe *wqe)
{
    if (wqe->op->flags & SEND_OP_LOCAL) {
        return 0;
    }
    if (wqe->calc) {
        wqe->len = wqe->calc_len;
        mkey_list_to_wire(qp->hca, wqe->sge, wqe->num_sge, &wqe->len);
        return send_wqe_set_calc_length(wqe);
    }
    mkey_list_to_wire(qp->hca, wqe->sge, wqe->num_sge, &wqe->len);
    return wqe->len > 1ULL << qp->req.limits.log_msg_max ? PRM_CQE_SYNDROME_LOCAL_LENGTH_ERR : 0;
}

uint8_t wqe_source_fetch(struct qp *qp, enum wqe_source_id id, uint16_t index, unsigned max_bb,
                         struct send_wqe *wqe)
{
    uint8_t syndrome;

    if (id == WQE_SOURCE_DEVICE) {
        return qp->req.device->ops->fetch(qp->req.device, qp, index, wqe);
    }
    syndrome = send_wqe_fetch(qp->hca, &qp->sq, index, max_bb, &qp->req.limits, wqe);
    return G_LIKELY(!qp->hca->transforms) || syndrome ? syndrome : wqe_source_to_wire(qp, wqe);
}

void wqe_source_advance(struct qp *qp, enum wqe_source_id id, unsigned num_bb)
{
    if (id == WQE_SOURCE_RING) {
        qp->sq.ci = (qp->sq.ci + MAX(num_bb, 1)) & 0xffff;
        if (G_UNLIKELY(qp->sq.gate)) {
            cross_took(qp);
        }
    } else {
        qp->req.device->next++;
    }
}

void wqe_source_done(struct qp *qp, const struct send_desc *desc)
{
    if (desc->source == WQE_SOURCE_RING) {
        ring_complete(qp, desc);
    } else {
        qp->req.device->ops->ended(qp->req.device, qp, desc->index, 0);
    }
}

void wqe_source_failed(struct qp *qp, const struct send_desc *desc, uint8_t syndrome)
{
    if (desc->source == WQE_SOURCE_RING) {
        ring_complete_error(qp, desc->index, desc->opcode, syndrome);
    } else {
        qp_note_error(qp, PRM_CQE_OPCODE_REQ_ERR, syndrome);
        qp->req.device->ops->ended(qp->req.device, qp, desc->index, syndrome);
    }
}

bool wqe_source_flush_one(struct qp *qp)
{
    if (device_posted(qp)) {
        struct wqe_source *source = qp->req.device;

        source->ops->ended(source, qp, source->next++, PRM_CQE_SYNDROME_WR_FLUSH_ERR);
        return true;
    }
    return ring_flush_one(qp);
}
