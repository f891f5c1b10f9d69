/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Implements queue pairs as objects: creation from a qpc, the states, query.
 *
 * States and who changes them (IBTA 10.3.1, figure 125):
 *
 *   RST -> INIT -> RTR -> RTS          commands
 *   RTS -> SQ_DRAINING -> SQD -> RTS   command; the requester when nothing is in flight; command
 *   RTS -> SQER -> RTS                 the requester of an unreliable QP on a failed WQE; command
 *   any -> ERR                         command, or requester, responder, CQ on a fatal error
 *   any -> RST                         command
 *
 * A QP holds a reference on its PD, CQs, SRQ and XRC domain, and on the UAR page of its send queue.
 * If the QP does not have a queue, the CQ that qpc names for that queue is ignored.
 */
#include <string.h>
#include "model/core/pd.h"
#include "model/core/trace.h"
#include "model/queue/cqe.h"
#include "model/queue/cqe_vendor.h"
#include "model/queue/eq.h"
#include "model/queue/q_counter.h"
#include "model/rdma/cross.h"
#include "model/rdma/dci.h"
#include "model/rdma/early.h"
#include "model/rdma/mcg.h"
#include "model/rdma/paging.h"
#include "model/rdma/qp.h"
#include "model/rdma/qp_sched.h"
#include "model/rdma/rdma.h"
#include "model/rdma/reserved_qpn.h"
#include "model/rdma/tags.h"

#define S(name) (1u << PRM_QP_STATE_##name)

/* States that may follow each state. */
static const uint16_t next_states[] = {
    [PRM_QP_STATE_RST] = S(RST) | S(INIT) | S(ERR),
    [PRM_QP_STATE_INIT] = S(RST) | S(INIT) | S(RTR) | S(ERR),
    [PRM_QP_STATE_RTR] = S(RST) | S(RTS) | S(ERR),
    [PRM_QP_STATE_RTS] = S(RST) | S(RTS) | S(SQ_DRAINING) | S(SQER) | S(ERR),
    [PRM_QP_STATE_SQER] = S(RST) | S(RTS) | S(ERR),
    [PRM_QP_STATE_SQD] = S(RST) | S(RTS) | S(SQER) | S(ERR),
    [PRM_QP_STATE_ERR] = S(RST) | S(ERR),
    [PRM_QP_STATE_SQ_DRAINING] = S(RST) | S(SQD) | S(SQER) | S(ERR),
};

struct qp *qp_find(struct hca *hca, uint32_t qpn)
{
    return obj_find_kind(&hca->qpns, qpn, OBJ_QP);
}

/* -- state ------------------------------------------------------------------------------------- */

void qp_event(struct qp *qp, uint8_t event_type)
{
    eq_async_qp(qp->hca, event_type, qp->service->owner->event_queue, qp->obj.num);
}

void qp_set_state(struct qp *qp, uint8_t state)
{
    g_assert(state < G_N_ELEMENTS(next_states));
    if (state == qp->state && state != PRM_QP_STATE_RST) {
        return;
    }
    if (qp->state == PRM_QP_STATE_ERR && state != PRM_QP_STATE_RST) {
        return; /* other errors change nothing */
    }
    g_assert(next_states[qp->state] & (1u << state));
    if (qp->hca->tracing) {
        trace_qp_state(qp->hca, qp->obj.num, qp->state, state);
    }
    if (state != PRM_QP_STATE_ERR && state != PRM_QP_STATE_SQER) {
        qp->error = qp->vendor_error = 0;
    }
    qp->state = state;
    switch (state) {
    case PRM_QP_STATE_RST:
        requester_reset(qp, 0);
        responder_reset(&qp->peer, 0);
        early_clear(&qp->peer);
        rq_flush_stop(qp);
        if (qp->cross) {
            cross_reset(qp);
        }
        qp->rq.ci = qp->rq.pi = 0;
        qp->sq.ci = qp->sq.pi = 0;
        qp->sq.told = 0;
        qp->sq.rung = false;
        blueflame_drop(&qp->sq);
        break;
    case PRM_QP_STATE_RTS:
        requester_start(qp);
        break;
    case PRM_QP_STATE_SQ_DRAINING:
        requester_drain(qp);
        break;
    case PRM_QP_STATE_SQER:
        requester_flush(qp);
        break;
    case PRM_QP_STATE_ERR:
        if (qp->cross) {
            cross_flush_recv(qp);
        }
        qp->service->owner->flush(qp);
        break;
    default:
        break;
    }
}

void qp_note_error(struct qp *qp, uint8_t opcode, uint8_t syndrome)
{
    if (qp->state != PRM_QP_STATE_ERR && qp->state != PRM_QP_STATE_SQER &&
        syndrome != PRM_CQE_SYNDROME_WR_FLUSH_ERR) {
        qp->error = syndrome;
        qp->vendor_error = cqe_vendor_synd(opcode, syndrome);
    }
}

void qp_fatal(struct qp *qp, uint8_t event_type)
{
    if (qp->state == PRM_QP_STATE_ERR) {
        return;
    }
    qp_set_state(qp, PRM_QP_STATE_ERR);
    qp_event(qp, event_type);
}

/* Notes that a CQ of the QP takes no CQEs any more. */
static void qp_note_own_error(struct qp *qp, bool is_send_cq)
{
    qp_note_error(qp, is_send_cq ? PRM_CQE_OPCODE_REQ_ERR : PRM_CQE_OPCODE_RESP_ERR,
                  PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR);
}

void qp_post_cqe_data(struct qp *qp, struct cq *cq, struct prm_cqe64 *cqe, bool solicited,
                      const struct cqe_data *data)
{
    if (!cq_post_data(qp->hca, cq, cqe, solicited, data) && qp->state != PRM_QP_STATE_ERR) {
        qp_counters(qp)->cq_overflow += cq_has_overrun(cq);
        qp_note_own_error(qp, cq == qp->send_cq);
        qp_fatal(qp, PRM_EVENT_TYPE_WQ_CATAS_ERROR);
    }
}

uint32_t qp_cqe_srqn(const struct qp *qp)
{
    if (qp->user_index != USER_INDEX_CQE_V0) {
        return qp->user_index;
    }
    return qp->srq ? qp->srq->obj.num : 0;
}

struct q_counter *qp_counters(struct qp *qp)
{
    return q_counter_get(qp->hca, qp->counter_set_id);
}

/* -- creation ---------------------------------------------------------------------------------- */

static bool qp_has_rq(const struct prm_qpc *qpc)
{
    return PRM_GET(qpc, qpc, rq_type) == PRM_RQ_TYPE_REGULAR &&
           !services[PRM_GET(qpc, qpc, st)].is_umr;
}

static bool qp_has_srq(const struct prm_qpc *qpc)
{
    uint32_t type = PRM_GET(qpc, qpc, rq_type);

    if (services[PRM_GET(qpc, qpc, st)].dynamic) {
        return false; /* drivers name an SRQ, but a DCI does not use it */
    }
    return type == PRM_RQ_TYPE_SRQ || type == PRM_RQ_TYPE_RMP;
}

static uint64_t qp_rq_bytes(const struct prm_qpc *qpc)
{
    uint32_t log_stride = PRM_GET(qpc, qpc, log_rq_stride) + 4;

    if (PRM_GET(qpc, qpc, rq_type) != PRM_RQ_TYPE_REGULAR) {
        return 0;
    }
    return 1ull << (PRM_GET(qpc, qpc, log_rq_size) + log_stride);
}

static uint64_t qp_sq_bytes(const struct prm_qpc *qpc)
{
    return PRM_GET(qpc, qpc, no_sq) ? 0 : 64ull << PRM_GET(qpc, qpc, log_sq_size);
}

uint64_t qp_ring_size(const struct prm_qpc *qpc)
{
    return qp_rq_bytes(qpc) + qp_sq_bytes(qpc);
}

bool qp_has_dbr(const struct prm_qpc *qpc)
{
    return qp_rq_bytes(qpc) ||
           (qp_sq_bytes(qpc) && PRM_GET(qpc, qpc, send_dbr_mode) == PRM_SEND_DBR_MODE_DBR_VALID);
}

/* Bytes of data that a CQE is to carry. -1: invalid value. */
static int qp_asked_in_cqe(uint32_t value, uint32_t for_32, uint32_t for_64)
{
    return value == 0 ? 0 : value == for_32 ? CQE_DATA_32 : value == for_64 ? CQE_DATA_64 : -1;
}

static int qp_recv_asked(const struct prm_qpc *qpc)
{
    return qp_asked_in_cqe(PRM_GET(qpc, qpc, cs_res), PRM_CS_RES_UP_TO_32B, PRM_CS_RES_UP_TO_64B);
}

static int qp_send_asked(const struct prm_qpc *qpc)
{
    return qp_asked_in_cqe(PRM_GET(qpc, qpc, cs_req), PRM_CS_REQ_UP_TO_32B, PRM_CS_REQ_UP_TO_64B);
}

/* CQEs can carry data of connections: received messages of RC and UC, and responses of RC and
 * DC. */
static void qp_load_in_cqe(struct qp *qp, const struct prm_qpc *qpc)
{
    const struct service *service = qp->service;

    if (qp->recv_cq && service->connected) {
        qp->recv_in_cqe = (uint8_t)cq_data_room(
            qp->srq && qp->srq->tags ? qp->srq->cq : qp->recv_cq, (unsigned)qp_recv_asked(qpc));
    }
    if (qp->send_cq && service->reliable && !service->names_srq) {
        qp->send_in_cqe = (uint8_t)cq_data_room(qp->send_cq, (unsigned)qp_send_asked(qpc));
    }
}

/* Checks a qpc for features that the device does not have, and for values that do not go
 * together. */
static enum syn qp_check_qpc(struct hca *hca, const struct prm_qpc *qpc)
{
    uint32_t st = PRM_GET(qpc, qpc, st);

    if (st >= SERVICES || !services[st].name || services[st].owner != &qp_owner) {
        return SYN_QP_SERVICE;
    }
    if (PRM_GET(qpc, qpc, ulp_stateless_offload_mode) ||
        PRM_GET(qpc, qpc, end_padding_mode) > PRM_WQ_END_PADDING_ALIGN || qp_recv_asked(qpc) < 0 ||
        qp_send_asked(qpc) < 0) {
        return SYN_QP_FEATURE;
    }
    if (!queue_ts_format_ok(hca, PRM_GET(qpc, qpc, ts_format))) {
        return SYN_TS_FORMAT;
    }
    if (PRM_GET(qpc, qpc, send_dbr_mode) >
        (hca->limits.no_send_dbr ? PRM_SEND_DBR_MODE_NO_DBR_EXT : PRM_SEND_DBR_MODE_DBR_VALID)) {
        return SYN_QP_DBR_MODE;
    }
    if (PRM_GET(qpc, qpc, rq_type) == PRM_RQ_TYPE_REGULAR &&
        (PRM_GET(qpc, qpc, log_rq_size) > hca->limits.log_max_qp_sz ||
         16u << PRM_GET(qpc, qpc, log_rq_stride) > hca->limits.max_rq_wqe)) {
        return SYN_QP_SIZE;
    }
    if (!PRM_GET(qpc, qpc, no_sq) && PRM_GET(qpc, qpc, log_sq_size) > hca->limits.log_max_qp_sz) {
        return SYN_QP_SIZE;
    }
    if (services[st].dynamic) {
        if (PRM_GET(qpc, qpc, rq_type) == PRM_RQ_TYPE_REGULAR || PRM_GET(qpc, qpc, no_sq) ||
            PRM_GET(qpc, qpc, log_num_dci_stream_channels) > DCI_LOG_STREAMS ||
            PRM_GET(qpc, qpc, log_num_dci_errored_streams) > DCI_LOG_STREAMS) {
            return SYN_QP_FEATURE;
        }
    } else if (services[st].names_srq) {
        /* The two halves as the driver creates them: SRQs are the receive queues. */
        if (PRM_GET(qpc, qpc, rq_type) != PRM_RQ_TYPE_SRQ) {
            return SYN_QP_FEATURE;
        }
    } else if (qp_has_srq(qpc) && services[st].is_umr) {
        return SYN_QP_FEATURE;
    }
    if (services[st].is_gsi && hca->rdma->gsi_qp) {
        return SYN_QP_GSI;
    }
    return SYN_OK;
}

/* An XRQ matches the messages of reliable connections. offload_type is valid only for a QP on such
 * an XRQ. */
static bool qp_check_tags(const struct qp *qp, const struct prm_qpc *qpc)
{
    bool has_tags = qp->srq && qp->srq->tags;

    if (has_tags && !(qp->service->reliable && qp->service->connected)) {
        return false;
    }
    switch (PRM_GET(qpc, qpc, offload_type)) {
    case PRM_QP_OFFLOAD_NONE:
        return true;
    case PRM_QP_OFFLOAD_RNDV:
        return has_tags;
    default:
        return false;
    }
}

/* Finds the objects that the qpc names, and stores them in the QP. Does not reference them yet. */
static enum syn qp_find_refs(struct qp *qp, uint16_t uid, const struct prm_qpc *qpc)
{
    struct hca *hca = qp->hca;
    enum syn syn;

    if (!qp->service->is_umr) {
        qp->pd = obj_find(&hca->pds, PRM_GET(qpc, qpc, pd));
        if (!qp->pd || !uid_may_use(qp->pd, uid)) {
            return SYN_QP_PD;
        }
    }
    if (qp->has_sq) {
        qp->send_cq = cq_find(hca, PRM_GET(qpc, qpc, cqn_snd));
        if (!qp->send_cq || !uid_may_use(cq_obj(qp->send_cq), uid)) {
            return SYN_QP_CQ;
        }
        syn = uid_check(obj_find(&hca->uars, PRM_GET(qpc, qpc, uar_page)), uid, SYN_NO_UAR);
        if (syn != SYN_OK) {
            return syn;
        }
    }
    if (qp->service->names_srq) {
        /* The SRQ and CQ that it names are the driver's defaults, which are never used. */
        qp->xrcd = obj_find(&hca->xrcds, PRM_GET(qpc, qpc, xrcd));
        if (!qp->xrcd || !uid_may_use(qp->xrcd, uid)) {
            return SYN_QP_XRCD;
        }
    } else if (qp_has_srq(qpc)) {
        qp->srq = srq_find(hca, PRM_GET(qpc, qpc, srqn_rmpn_xrqn));
        if (!qp->srq || qp->srq->obj.kind == OBJ_XRC_SRQ || !uid_may_use(&qp->srq->obj, uid)) {
            return SYN_QP_SRQ;
        }
    }
    if (!qp_check_tags(qp, qpc)) {
        return SYN_QP_FEATURE;
    }
    if (qp->has_rq || qp->srq) {
        qp->recv_cq = cq_find(hca, PRM_GET(qpc, qpc, cqn_rcv));
        if (!qp->recv_cq || !uid_may_use(cq_obj(qp->recv_cq), uid)) {
            return SYN_QP_CQ;
        }
    }
    return SYN_OK;
}

static void qp_count_refs(struct qp *qp, int n)
{
    struct obj *const refs[] = {
        qp->pd,
        qp->send_cq ? cq_obj(qp->send_cq) : NULL,
        qp->recv_cq ? cq_obj(qp->recv_cq) : NULL,
        qp->srq ? &qp->srq->obj : NULL,
        qp->xrcd,
        /* the page of its doorbell, whose number stays that of the qpc */
        qp->has_sq ? obj_find(&qp->hca->uars, PRM_GET(qpc, qp->qpc, uar_page)) : NULL,
    };

    for (size_t i = 0; i < G_N_ELEMENTS(refs); i++) {
        obj_count(&qp->obj, refs[i], n);
    }
}

static void qp_init_rings(struct qp *qp, const struct prm_qpc *qpc, struct mem_buf *buf,
                          uint64_t dbr)
{
    if (qp->has_rq) {
        qp->rq.buf = *buf;
        qp->rq.log_size = PRM_GET(qpc, qpc, log_rq_size);
        qp->rq.log_stride = PRM_GET(qpc, qpc, log_rq_stride) + 4;
        qp->rq.dbr = dbr + 0;
    }
    if (qp->has_sq) {
        qp->sq.buf = *buf;
        qp->sq.offset = qp_rq_bytes(qpc);
        qp->sq.log_size = PRM_GET(qpc, qpc, log_sq_size);
        qp->sq.log_stride = 6;
        qp->sq.no_record = PRM_GET(qpc, qpc, send_dbr_mode) == PRM_SEND_DBR_MODE_NO_DBR_EXT;
        qp->sq.dbr = dbr + 4;
    }
}

void *qp_alloc(struct qp *qp, size_t bytes)
{
    struct hca *hca = qp->hca;
    void *block = NULL;

    if (ledger_take(&hca->icm, bytes)) {
        block = ledger_alloc(&hca->memory, bytes);
        if (!block) {
            ledger_give(&hca->icm, bytes);
        }
    }
    return block;
}

void qp_dealloc(struct qp *qp, void *block, size_t bytes)
{
    if (block) {
        ledger_give(&qp->hca->icm, bytes);
        ledger_free(&qp->hca->memory, block, bytes);
    }
}

/* Frees the QP's own memory. */
static void qp_release(struct qp *qp)
{
    requester_clear(qp);
    cross_clear(qp);
    responder_clear(&qp->peer);
    dci_free(qp);
    rq_flush_stop(qp);
    obj_free(qp->hca, &qp->obj);
}

/* Gives the QP a number and enters it in the table. */
static enum syn qp_enter(struct qp *qp, uint32_t wished)
{
    struct hca *hca = qp->hca;
    struct obj *range;

    if (!wished) {
        return obj_insert(&hca->qpns, &qp->obj) ? SYN_OK : SYN_NO_MEMORY;
    }
    range = reserved_qpn_find(hca, wished);
    if (!range || !uid_owns(range, qp->obj.uid) || !obj_insert_at(&hca->qpns, &qp->obj, wished)) {
        return SYN_QP_INPUT_QPN;
    }
    obj_ref(&qp->obj, range);
    return SYN_OK;
}

static void qp_leave(struct qp *qp)
{
    struct obj *range = reserved_qpn_find(qp->hca, qp->obj.num);

    obj_remove(&qp->hca->qpns, &qp->obj);
    obj_unref(&qp->obj, range);
}

enum syn qp_create_as(struct hca *hca, uint16_t uid, const struct prm_qpc *qpc, struct mem_buf *buf,
                      uint64_t dbr, uint32_t wished, uint32_t *qpn)
{
    enum syn syn = qp_check_qpc(hca, qpc);
    struct qp *qp;

    if (syn != SYN_OK) {
        return syn;
    }
    if (buf->size < qp_ring_size(qpc)) {
        return SYN_BAD_PAS;
    }
    qp = obj_new(hca, OBJ_QP, uid, sizeof(*qp));
    if (!qp) {
        return SYN_NO_MEMORY;
    }
    qp->hca = hca;
    qp->peer.qp = qp;
    qp->service = &services[PRM_GET(qpc, qpc, st)];
    qp->state = PRM_QP_STATE_RST;
    qp->has_rq = qp_has_rq(qpc);
    qp->has_sq = !PRM_GET(qpc, qpc, no_sq);
    qp->pdn = PRM_GET(qpc, qpc, pd);
    qp->user_index = PRM_GET(qpc, qpc, user_index);
    qp->rlky = PRM_GET(qpc, qpc, rlky);
    qp->fre = PRM_GET(qpc, qpc, fre);
    qp->rq_signature = PRM_GET(qpc, qpc, wq_signature);
    qp->block_lb_mc = PRM_GET(qpc, qpc, block_lb_mc);
    qp->mmo = hca->limits.mmo_sq;
    memcpy(qp->qpc, qpc, sizeof(qp->qpc));

    syn = qp_find_refs(qp, uid, qpc);
    if (syn == SYN_OK) {
        qp_init_rings(qp, qpc, buf, dbr);
        rq_flush_init(qp);
        syn = tags_init(&qp->peer) && cross_init(qp, qpc) && requester_init(qp) &&
                      (!qp->service->dynamic || dci_new(qp))
                  ? qp_enter(qp, wished)
                  : SYN_NO_MEMORY;
    }
    if (syn != SYN_OK) {
        qp_release(qp);
        return syn;
    }
    responder_init(&qp->peer);
    qp_load_in_cqe(qp, qpc);
    qp->pads_end = PRM_GET(qpc, qpc, end_padding_mode) == PRM_WQ_END_PADDING_ALIGN;
    /* The completions of an XRC target go to CQs that know nothing of its format. mlx5_ib sets the
     * default, and says that it means free-running there. */
    qp->real_time = queue_real_time(hca, PRM_GET(qpc, qpc, ts_format)) &&
                    !(PRM_GET(qpc, qpc, st) == PRM_QP_ST_XRC &&
                      PRM_GET(qpc, qpc, ts_format) == PRM_TS_FORMAT_DEFAULT);
    qp_count_refs(qp, 1);
    mem_buf_take(&qp->obj, &qp->buf, buf);
    qp_load(qp);
    if (qp->service->is_gsi) {
        hca->rdma->gsi_qp = qp;
    }
    *qpn = qp->obj.num;
    return SYN_OK;
}

void qp_resume(struct qp *qp, enum fault_side side, bool error)
{
    if (side == FAULT_REQUESTER) {
        requester_resume(qp, error);
    } else {
        qp->service->owner->resume(qp, error);
    }
}

/* -- end --------------------------------------------------------------------------------------- */

void qp_free(struct hca *hca, struct obj *obj)
{
    struct qp *qp = (struct qp *)obj;

    mcg_leave(qp);
    paging_forget(qp);
    tags_reset(&qp->peer);
    if (hca->rdma->gsi_qp == qp) {
        hca->rdma->gsi_qp = NULL;
    }
    qp_sched_leave(qp);
    qp_count_refs(qp, -1);
    mem_buf_drop(&qp->obj, &qp->buf);
    qp_leave(qp);
    qp_release(qp);
}

void qp_cq_failed(struct hca *hca, struct obj *obj, const struct cq *cq)
{
    struct qp *qp = (struct qp *)obj;

    if ((qp->send_cq == cq || qp->recv_cq == cq) && qp->state != PRM_QP_STATE_RST &&
        qp->state != PRM_QP_STATE_ERR) {
        qp_note_own_error(qp, cq == qp->send_cq);
        qp_fatal(qp, PRM_EVENT_TYPE_WQ_CATAS_ERROR);
    }
}

enum syn qp_destroy(struct hca *hca, uint16_t uid, uint32_t qpn)
{
    struct qp *qp = qp_find(hca, qpn);

    if (!qp) {
        return SYN_QP_NUM;
    }
    if (!uid_owns(&qp->obj, uid)) {
        return SYN_BAD_UID;
    }
    if (qp->obj.refs) {
        return SYN_IN_USE;
    }
    if (qp->dci) {
        dci_leave(qp);
    }
    qp_free(hca, &qp->obj);
    return SYN_OK;
}

/* -- query ------------------------------------------------------------------------------------- */

enum syn qp_query(struct hca *hca, uint32_t qpn, struct prm_qpc *qpc)
{
    struct qp *qp = qp_find(hca, qpn);

    if (!qp) {
        return SYN_QP_NUM;
    }
    memcpy(qpc, qp->qpc, sizeof(qp->qpc));
    PRM_SET(qpc, qpc, state, qp->state);
    if (qp->service->connected && !PRM_GET(qpc, qpc, mtu)) {
        /* gpunetio queries a QP that has no path yet, and takes no MTU of 0 */
        PRM_SET(qpc, qpc, mtu, PRM_QP_MTU_256);
    }
    PRM_SET(qpc, qpc, next_send_psn, qp->req.next_psn & PSN_MASK);
    PRM_SET(qpc, qpc, last_acked_psn, (qp->req.unacked_psn - 1) & PSN_MASK);
    PRM_SET(qpc, qpc, ssn, qp->req.ssn & PSN_MASK);
    PRM_SET(qpc, qpc, next_rcv_psn, qp->peer.resp.epsn & PSN_MASK);
    PRM_SET(qpc, qpc, rmsn, qp->peer.resp.msn & PSN_MASK);
    PRM_SET(qpc, qpc, hw_sq_wqebb_counter, qp->sq.ci & 0xffff);
    PRM_SET(qpc, qpc, sw_sq_wqebb_counter, qp->sq.pi & 0xffff);
    PRM_SET(qpc, qpc, hw_rq_counter, qp->rq.ci & 0xffff);
    PRM_SET(qpc, qpc, sw_rq_counter, qp->rq.pi & 0xffff);
    return SYN_OK;
}

void qp_query_extension(struct hca *hca, uint32_t qpn, struct prm_qp_context_extension *ext)
{
    const struct qp *qp = qp_find(hca, qpn);
    struct prm_cqe_error_syndrome *error = PRM_PTR(qp_context_extension, ext, error_syndrome);

    if (!qp) {
        return;
    }
    qp_sched_query(qp, ext);
    PRM_SET(qp_context_extension, ext, mmo, qp->mmo && qp_mmo_is_possible(hca, qp->service));
    if (qp->state == PRM_QP_STATE_ERR || qp->state == PRM_QP_STATE_SQER) {
        PRM_SET(cqe_error_syndrome, error, syndrome, qp->error);
        PRM_SET(cqe_error_syndrome, error, vendor_error_syndrome, qp->vendor_error);
    }
}
