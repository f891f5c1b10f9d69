/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements the target of dynamic connections as an object; see model/rdma/dct.h. */
#include <string.h>
#include "model/core/pd.h"
#include "model/queue/cqe.h"
#include "model/queue/eq.h"
#include "model/rdma/dct.h"
#include "model/rdma/early.h"
#include "model/rdma/paging.h"
#include "model/rdma/responder_internal.h"
#include "model/rdma/tags.h"
#include "model/rdma/xrq_dci.h"

/* Looks, 250 ms apart, at responders that owe an answer for which the wire has no credit. */
#define DRAIN_LOOKS 4

struct dct *dct_find(struct hca *hca, uint32_t dctn)
{
    return obj_find_kind(&hca->qpns, dctn, OBJ_DCT);
}

static void dct_event(struct dct *dct, uint8_t type)
{
    struct prm_dct_events data[1] = {0};

    PRM_SET(dct_events, data, dct_number, dct->qp.obj.num);
    eq_async(dct->qp.hca, type, 0, data);
}

void dct_key_violated(struct dct *dct)
{
    dct->violations++;
    if (dct->armed) {
        dct->armed = false;
        dct_event(dct, PRM_EVENT_TYPE_DCT_KEY_VIOLATION);
    }
}

/* -- creation ---------------------------------------------------------------------------------- */

static enum syn dct_check(const struct hca *hca, const struct prm_dctc *dctc)
{
    uint32_t mtu = PRM_GET(dctc, dctc, mtu);

    if (PRM_GET(dctc, dctc, state)) {
        return SYN_DCT_STATE;
    }
    if (PRM_GET(dctc, dctc, atomic_like_write_en)) {
        return SYN_QP_FEATURE;
    }
    if (PRM_GET(dctc, dctc, cs_res) && PRM_GET(dctc, dctc, cs_res) != PRM_CS_RES_UP_TO_64B) {
        return SYN_DCT_CS_RES;
    }
    if (mtu < PRM_QP_MTU_256 || mtu > PRM_QP_MTU_4096) {
        return SYN_QP_MTU;
    }
    if (PRM_GET(dctc, dctc, port) > 1) {
        return SYN_QP_PORT;
    }
    if (PRM_GET(dctc, dctc, pkey_index)) {
        return SYN_QP_PKEY;
    }
    return PRM_GET(dctc, dctc, my_addr_index) < hca->limits.max_gid ? SYN_OK : SYN_QP_GID;
}

static unsigned dct_order(const struct prm_dctc *dctc)
{
    return PRM_GET(dctc, dctc, dp_ordering_1) << 1 | PRM_GET(dctc, dctc, dp_ordering_0);
}

static bool dct_order_is_ok(const struct qp *qp, const struct prm_dctc *dctc)
{
    bool long_atomics =
        PRM_GET(dctc, dctc, rae) && PRM_GET(dctc, dctc, atomic_mode) > PRM_ATOMIC_MODE_UP_TO_8B;

    return qp_order_is_ok(qp, dct_order(dctc), PRM_GET(dctc, dctc, dp_ordering_force),
                          long_atomics);
}

static enum syn dct_find_refs(struct qp *qp, uint16_t uid, const struct prm_dctc *dctc)
{
    struct hca *hca = qp->hca;

    qp->pd = obj_find(&hca->pds, PRM_GET(dctc, dctc, pd));
    if (!qp->pd || !uid_may_use(qp->pd, uid)) {
        return SYN_QP_PD;
    }
    qp->recv_cq = cq_find(hca, PRM_GET(dctc, dctc, cqn));
    if (!qp->recv_cq || !uid_may_use(cq_obj(qp->recv_cq), uid)) {
        return SYN_QP_CQ;
    }
    qp->srq = srq_find(hca, PRM_GET(dctc, dctc, srqn_xrqn));
    if (!qp->srq || qp->srq->obj.kind == OBJ_XRC_SRQ || !uid_may_use(&qp->srq->obj, uid)) {
        return SYN_QP_SRQ;
    }
    return PRM_GET(dctc, dctc, offload_type) <= (qp->srq->tags ? PRM_QP_OFFLOAD_RNDV : 0)
               ? SYN_OK
               : SYN_QP_FEATURE;
}

static bool dct_takes_early(const struct prm_dctc *dctc)
{
    return dct_order(dctc) && PRM_GET(dctc, dctc, dp_ordering_force);
}

static void dct_load(struct dct *dct)
{
    const struct prm_dctc *dctc = dct->dctc;
    struct qp *qp = &dct->qp;

    dct->key = PRM_GET(dctc, dctc, dc_access_key);
    dct->takes_early = dct_takes_early(dctc);
    qp->pdn = PRM_GET(dctc, dctc, pd);
    qp->rlky = PRM_GET(dctc, dctc, rlky);
    qp->counter_set_id = PRM_GET(dctc, dctc, counter_set_id);
    qp->user_index = PRM_GET(dctc, dctc, user_index);
    qp->pkey = 0xffff;
    qp->mtu = (uint16_t)(128u << PRM_GET(dctc, dctc, mtu));
    qp->log_msg_max = (uint8_t)qp->hca->limits.log_max_msg;
    qp->log_rra_max = (uint8_t)qp->hca->limits.log_max_ra_res_qp;
    qp->min_rnr_nak = (uint8_t)PRM_GET(dctc, dctc, min_rnr_nak);
    qp->rre = PRM_GET(dctc, dctc, rre);
    qp->rwe = PRM_GET(dctc, dctc, rwe);
    qp->rae = PRM_GET(dctc, dctc, rae);
    qp->atomic_mode = (uint8_t)PRM_GET(dctc, dctc, atomic_mode);
    if (PRM_GET(dctc, dctc, cs_res) &&
        cq_data_room(qp->srq->tags ? qp->srq->cq : qp->recv_cq, CQE_DATA_64) == CQE_DATA_64) {
        qp->recv_in_cqe = CQE_DATA_64;
    }
}

static void dct_count_refs(struct qp *qp, int n)
{
    obj_count(&qp->obj, qp->pd, n);
    obj_count(&qp->obj, cq_obj(qp->recv_cq), n);
    obj_count(&qp->obj, &qp->srq->obj, n);
}

static void dct_drain_work(struct hca *hca, struct work *work);

enum syn dct_create(struct hca *hca, uint16_t uid, const struct prm_dctc *dctc, uint32_t *dctn)
{
    enum syn syn = dct_check(hca, dctc);
    struct dct *dct;

    if (syn != SYN_OK) {
        return syn;
    }
    dct = obj_new(hca, OBJ_DCT, uid, sizeof(*dct));
    if (!dct) {
        return SYN_NO_MEMORY;
    }
    dct->qp.hca = hca;
    dct->qp.service = &services[PRM_QP_ST_DCT];
    dct->qp.state = PRM_QP_STATE_RTR;
    memcpy(dct->dctc, dctc, sizeof(dct->dctc));
    g_queue_init(&dct->responders);
    dct->drain.run = dct_drain_work;
    syn = dct_order_is_ok(&dct->qp, dctc) ? dct_find_refs(&dct->qp, uid, dctc) : SYN_QP_FEATURE;
    if (syn == SYN_OK && ((dct_takes_early(dctc) && !early_pool_fill(hca)) ||
                          !obj_insert(&hca->qpns, &dct->qp.obj))) {
        syn = SYN_NO_MEMORY;
    }
    if (syn != SYN_OK) {
        obj_free(hca, &dct->qp.obj);
        return syn;
    }
    dct_load(dct);
    dct_count_refs(&dct->qp, 1);
    *dctn = dct->qp.obj.num;
    return SYN_OK;
}

enum syn dct_query(struct hca *hca, uint32_t dctn, struct prm_dctc *dctc)
{
    const struct dct *dct = dct_find(hca, dctn);

    if (!dct) {
        return SYN_DCT_NUM;
    }
    memcpy(dctc, dct->dctc, sizeof(dct->dctc));
    PRM_SET(dctc, dctc, state, dct->state);
    PRM_SET(dctc, dctc, dc_access_key_violation_count, dct->violations);
    return SYN_OK;
}

enum syn dct_arm(struct hca *hca, uint16_t uid, uint32_t dctn)
{
    struct dct *dct = dct_find(hca, dctn);

    if (!dct) {
        return SYN_DCT_NUM;
    }
    if (!uid_owns(&dct->qp.obj, uid)) {
        return SYN_BAD_UID;
    }
    dct->armed = true;
    return SYN_OK;
}

/* -- end --------------------------------------------------------------------------------------- */

/* Frees responders; each costs one piece. */
bool dct_trim(struct hca *hca, struct obj *obj)
{
    struct dct *dct = (struct dct *)obj;

    hca_unschedule_late(hca, &dct->drain);
    dct->state = PRM_DCTC_STATE_DRAINED; /* it takes no more requests */
    while (dct->responders.length) {
        dc_responder_free(dct->responders.head->data, false);
        hca_spend(hca, 1);
        if (dct->responders.length && !hca_has_room(hca)) {
            return false;
        }
    }
    return true;
}

/* Looks at each responder once; this may take several turns. Responders that owe nothing are freed.
 * The last look frees the others, too. */
static void dct_drain_work(struct hca *hca, struct work *work)
{
    struct dct *dct = (struct dct *)((char *)work - offsetof(struct dct, drain));

    while (dct->drain_left && dct->responders.length) {
        struct dc_responder *responder = dct->responders.head->data;

        dct->drain_left--;
        if (dct->drain_looks == DRAIN_LOOKS || dc_responder_is_quiet(responder)) {
            dc_responder_free(responder, true);
        } else {
            g_queue_unlink(&dct->responders, &responder->in_dct);
            g_queue_push_tail_link(&dct->responders, &responder->in_dct);
        }
        hca_spend(hca, 1);
        if (dct->drain_left && !hca_may_go_on(hca)) {
            hca_schedule(hca, work);
            return;
        }
    }
    if (dct->responders.length) {
        dct->drain_looks++;
        dct->drain_left = dct->responders.length;
        hca_wait_late(hca, work);
        return;
    }
    dct->state = PRM_DCTC_STATE_DRAINED;
    dct_event(dct, PRM_EVENT_TYPE_DCT_DRAINED);
}

enum syn dct_drain(struct hca *hca, uint16_t uid, uint32_t dctn)
{
    struct dct *dct = dct_find(hca, dctn);

    if (!dct) {
        return SYN_DCT_NUM;
    }
    if (!uid_owns(&dct->qp.obj, uid)) {
        return SYN_BAD_UID;
    }
    if (dct->state != PRM_DCTC_STATE_ACTIVE) {
        return SYN_DCT_STATE;
    }
    dct->state = PRM_DCTC_STATE_DRAINING;
    dct->drain_left = dct->responders.length;
    hca_schedule(hca, &dct->drain);
    return SYN_OK;
}

void dct_free(struct hca *hca, struct obj *obj)
{
    struct dct *dct = (struct dct *)obj;

    g_assert(!dct->responders.length);
    paging_forget(&dct->qp);
    dct_count_refs(&dct->qp, -1);
    obj_end(hca, obj);
}

enum syn dct_destroy(struct hca *hca, uint16_t uid, uint32_t dctn)
{
    struct dct *dct = dct_find(hca, dctn);

    if (!dct) {
        return SYN_DCT_NUM;
    }
    if (!uid_owns(&dct->qp.obj, uid)) {
        return SYN_BAD_UID;
    }
    if (!dct_trim(hca, &dct->qp.obj)) {
        return SYN_AGAIN;
    }
    dct_free(hca, &dct->qp.obj);
    return SYN_OK;
}

void dct_cq_failed(struct hca *hca, struct obj *obj, const struct cq *cq)
{
    struct dct *dct = (struct dct *)obj;

    if (dct->qp.recv_cq == cq) {
        qp_fatal(&dct->qp, PRM_EVENT_TYPE_WQ_CATAS_ERROR);
    }
}

/* -- its peers --------------------------------------------------------------------------------- */

/* Peers can make any number of requests fail, and the driver's event queue is shared. Therefore a
 * target raises at most one event of each type in DC_SECOND. */
static void dct_fault_event(struct dct *dct, uint8_t type)
{
    static const uint8_t types[DCT_FAULT_EVENTS] = {PRM_EVENT_TYPE_WQ_INVAL_REQ_ERROR,
                                                    PRM_EVENT_TYPE_WQ_ACCESS_ERROR,
                                                    PRM_EVENT_TYPE_WQ_CATAS_ERROR};
    uint64_t now = hca_now(dct->qp.hca);
    unsigned i = 0;

    while (types[i] != type) {
        i++;
        g_assert(i < DCT_FAULT_EVENTS);
    }
    if (now >= dct->next_event[i]) {
        dct->next_event[i] = now + DC_SECOND;
        qp_event(&dct->qp, type);
    }
}

/* The peer's responder takes nothing more. */
static void dct_fatal(struct peer *peer, uint8_t event)
{
    if (peer->resp.state != RESPONDER_FAILED) {
        responder_step(peer, RESPONDER_FAULT);
    }
    if (peer->resp.have_wqe) {
        responder_abandon(peer, PRM_CQE_SYNDROME_WR_FLUSH_ERR);
    }
    early_forget(peer);
    tags_flush(peer);
    if (event) {
        dct_fault_event(dc_responder_of(peer)->dct, event);
    }
}

/* The pager is told once per side of a QP, until it resumes that side (model/core/fault.h), and its
 * answer names only the target. Therefore only one responder of the target at a time waits for the
 * pager. So no other responder takes the answer for its own. */
static bool dct_park(struct peer *peer)
{
    struct dct *dct = dc_responder_of(peer)->dct;
    struct hca *hca = dct->qp.hca;

    if (dct->pager_told) {
        return true;
    }
    if (!hca->pager->fault(hca->pager, &dct->qp, FAULT_RESPONDER, &hca->fault)) {
        return false;
    }
    dct->pager_told = true;
    dct->faulted = peer;
    peer->resp.paging = PAGING_PARKED;
    return true;
}

void dct_unpark(struct dct *dct, const struct peer *peer)
{
    if (dct->faulted == peer) {
        dct->faulted = NULL;
    }
}

static void dct_resume(struct qp *qp, bool error)
{
    struct dct *dct = (struct dct *)((char *)qp - offsetof(struct dct, qp));
    struct peer *peer = dct->faulted;

    dct->pager_told = false;
    dct->faulted = NULL;
    if (peer) {
        responder_resume(peer, error);
    }
}

/* The target's CQ has failed, so the target takes no packets any more. There is nothing to
 * flush. */
static void dct_flush(struct qp *qp)
{
}

static void dct_path_update(struct peer *peer)
{
    const struct roce_addr *path = &peer->path;

    peer->path_gone = vport_find_gid(peer->qp->hca->vport, path->sgid, path->is_v1, path->has_vlan,
                                     path->vlan_tci & 0xfff) < 0;
}

const struct peer_owner dct_owner = {
    .event_queue = PRM_EVENT_QUEUE_TYPE_DCT,
    .fatal = dct_fatal,
    .park = dct_park,
    .resume = dct_resume,
    .flush = dct_flush,
    .path_update = dct_path_update,
    .address = dc_address,
    .can_fetch = xrq_dci_can_fetch,
    .fetch = xrq_dci_begin,
};
