/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements cross channel: gates, enables and waits; see model/rdma/cross.h. */
#include "model/rdma/cross.h"
#include "model/core/pd.h"
#include "model/rdma/qp.h"

/* -- life -------------------------------------------------------------------------------------- */

static void cross_set_gates(struct qp *qp)
{
    struct cross *cross = qp->cross;

    qp->sq.gate = cross->managed_send ? WQ_GATE_SEND : WQ_UNGATED;
    qp->rq.gate = cross->managed_recv ? WQ_GATE_RECV : WQ_UNGATED;
}

static void cross_pause_ends(struct hca *hca, struct work *work)
{
    struct cross *cross = (struct cross *)((char *)work - offsetof(struct cross, pause));

    hca_schedule(hca, cross->wait.work);
}

static bool cross_new(struct qp *qp)
{
    qp->cross = qp_alloc(qp, sizeof(*qp->cross));
    if (!qp->cross) {
        return false;
    }
    qp->cross->wait.work = &qp->req.work;
    qp->cross->pause.run = cross_pause_ends;
    return true;
}

bool cross_init(struct qp *qp, const struct prm_qpc *qpc)
{
    bool master = PRM_GET(qpc, qpc, cd_master), send = PRM_GET(qpc, qpc, cd_slave_send),
         recv = PRM_GET(qpc, qpc, cd_slave_receive);

    if (!master && !send && !recv) {
        return true;
    }
    if (!cross_new(qp)) {
        return false;
    }
    qp->cross->master = master;
    qp->cross->managed_send = send && qp->has_sq;
    qp->cross->managed_recv = recv && qp->has_rq;
    cross_set_gates(qp);
    return true;
}

/* The queue neither waits for a CQE nor pauses. */
static void cross_stop(struct qp *qp)
{
    cq_wait_end(&qp->cross->wait);
    hca_unschedule_late(qp->hca, &qp->cross->pause);
}

void cross_clear(struct qp *qp)
{
    if (qp->cross) {
        cross_stop(qp);
        qp_dealloc(qp, qp->cross, sizeof(*qp->cross));
        qp->cross = NULL;
    }
}

void cross_reset(struct qp *qp)
{
    struct cross *cross = qp->cross;

    cross_stop(qp);
    qp->sq.enabled = qp->sq.taken = qp->rq.enabled = 0;
    cross->run = 0;
    cross->seen = 0;
    cross_set_gates(qp);
}

/* If the record does not say what is posted, only what is enabled is known. */
void cross_flush_send(struct qp *qp)
{
    cross_stop(qp);
    if (qp->sq.gate) {
        qp->sq.gate = WQ_UNGATED;
        if (!wq_update_pi(qp->hca, &qp->sq)) {
            qp->sq.gate = WQ_GATE_SEND;
        }
    }
}

void cross_flush_recv(struct qp *qp)
{
    qp->rq.gate = WQ_UNGATED;
}

void cross_restart(struct qp *qp)
{
    if (qp->cross->managed_send && !qp->sq.gate) {
        qp->sq.gate = WQ_GATE_SEND;
        qp->sq.pi = qp->sq.ci;
    }
}

/* -- CQE_WAIT ---------------------------------------------------------------------------------- */

bool cross_wait(struct qp *qp, const struct send_wqe *wqe, uint8_t *syndrome)
{
    struct cq *cq = cq_find(qp->hca, PRM_GET(wqe_wait_en_seg, wqe->wait_en, obj_num));
    uint32_t index = PRM_GET(wqe_wait_en_seg, wqe->wait_en, pi);

    if (!qp->cross && !cross_new(qp)) {
        *syndrome = PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR;
        return true;
    }
    cq_wait_end(&qp->cross->wait);
    if (!cq || !uid_may_use(cq_obj(cq), qp->obj.uid)) {
        *syndrome = PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR;
        return true;
    }
    if (cq_has_had(cq, index)) {
        return true;
    }
    if (cq_has_failed(cq)) {
        *syndrome = PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR;
        return true;
    }
    cq_wait_begin(qp->hca, cq, index, &qp->cross->wait);
    return false;
}

/* -- SEND_ENABLE, RECV_ENABLE ------------------------------------------------------------------ */

/* The gate is open up to index pi. False: that is more than the ring can hold. */
static bool cross_open(struct wq *wq, uint16_t pi)
{
    uint16_t next = wq->gate == WQ_GATE_SEND ? wq->taken : (uint16_t)wq->ci;
    uint16_t ahead = (uint16_t)(pi - next);

    if (ahead > 1u << 15 || ahead <= wq_gate_open(wq)) {
        return true; /* a stale index */
    }
    if (ahead > 1u << wq->log_size) {
        return false;
    }
    wq->enabled = pi;
    return true;
}

uint8_t cross_enable(struct qp *qp, const struct send_wqe *wqe)
{
    struct qp *target = qp_find(qp->hca, PRM_GET(wqe_wait_en_seg, wqe->wait_en, obj_num));
    uint16_t pi = (uint16_t)PRM_GET(wqe_wait_en_seg, wqe->wait_en, pi);
    bool send = wqe->opcode == PRM_WQE_OPCODE_SEND_ENABLE;
    struct wq *wq;

    if (!target || target->pdn != qp->pdn || !uid_may_use(&target->obj, qp->obj.uid) ||
        !target->cross || !(send ? target->cross->managed_send : target->cross->managed_recv)) {
        return PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR;
    }
    wq = send ? &target->sq : &target->rq;
    if (target->state == PRM_QP_STATE_RST || !wq->gate) {
        return 0; /* the queue forgets its WQEs, or flushes them all */
    }
    if (!cross_open(wq, pi)) {
        return PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR;
    }
    if (send) {
        if (!qp->cross->managed_send) {
            cross_saw_software(target);
        }
        target->sq.rung = true;
        requester_kick(target);
    }
    return 0;
}

/* -- managed send queues ----------------------------------------------------------------------- */

void cross_took(struct qp *qp)
{
    struct cross *cross = qp->cross;

    qp->sq.taken++;
    if (qp->sq.gate) {
        qp->sq.pi = qp->sq.ci; /* the gate is asked for each WQE */
        cross->run++;
    }
}

void cross_saw_software(struct qp *qp)
{
    struct cross *cross = qp->cross;

    cross->run = 0;
    if (cross->pause.next) {
        hca_unschedule_late(qp->hca, &cross->pause);
    }
}

bool cross_must_pause(struct qp *qp)
{
    struct cross *cross = qp->cross;
    struct prm_srq_dbr record[1] = {0};

    if (cross->pause.next) {
        return true;
    }
    if (cross->run < MIN(CROSS_RUN, 1u << qp->sq.log_size)) {
        return false;
    }
    cross->run = 0;
    if (!qp->sq.no_record && hca_dma_read(qp->hca, qp->sq.dbr, record, sizeof(record)) &&
        PRM_GET(srq_dbr, record, counter) != cross->seen) {
        cross->seen = PRM_GET(srq_dbr, record, counter);
        return false;
    }
    hca_wait_late(qp->hca, &cross->pause);
    return true;
}
