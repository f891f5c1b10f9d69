/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements the contexts and states of Ethernet send and receive queues. */
#include <string.h>
#include "model/core/pd.h"
#include "model/eth/eth_delay.h"
#include "model/eth/eth_hairpin.h"
#include "model/eth/eth_lro.h"
#include "model/eth/eth_priv.h"
#include "model/eth/eth_queue.h"
#include "model/eth/eth_stride.h"
#include "model/queue/cqe.h"
#include "model/queue/eq.h"
#include "model/queue/srq.h"

#define DBR_RECV 0
#define DBR_SEND 4

/* SQs and RQs use the same numbers for their states: RST 0, RDY 1, ERR 3. */
#define RST (1 << PRM_SQC_STATE_RST)
#define RDY (1 << PRM_SQC_STATE_RDY)
#define ERR (1 << PRM_SQC_STATE_ERR)
static const uint8_t sq_moves[4] = {
    [PRM_SQC_STATE_RST] = RST | RDY | ERR,
    [PRM_SQC_STATE_RDY] = RST | RDY | ERR,
    [PRM_SQC_STATE_ERR] = RST | ERR,
};
static const uint8_t rq_moves[4] = {
    [PRM_RQC_STATE_RST] = RST | RDY,
    [PRM_RQC_STATE_RDY] = RST | RDY | ERR,
    [PRM_RQC_STATE_ERR] = RST | ERR,
};

static bool eth_move_is_legal(const uint8_t moves[4], uint8_t from, uint8_t to)
{
    return from < 4 && to < 4 && moves[from] & 1 << to;
}

uint64_t eth_wq_size(const struct prm_wq *wq)
{
    unsigned log_size = PRM_GET(wq, wq, log_wq_sz);
    unsigned log_stride = PRM_GET(wq, wq, log_wq_stride);

    if (log_size > 15 || log_stride < 4 || log_stride > 12) {
        return 0;
    }
    return 1ull << (log_size + log_stride);
}

/* Sets up the work queue of obj, which was just made. */
static void eth_wq_init(struct obj *obj, struct wq *out, const struct prm_wq *wq,
                        const struct mem_buf *buf, uint64_t dbr)
{
    mem_buf_take(obj, &out->buf, buf);
    out->log_size = (uint8_t)PRM_GET(wq, wq, log_wq_sz);
    out->log_stride = (uint8_t)PRM_GET(wq, wq, log_wq_stride);
    out->dbr = dbr;
}

/* Fills in the context as software gave it, with the device's counters. */
static void eth_wq_query(const struct wq *wq, struct prm_wq *out)
{
    PRM_SET(wq, out, hw_counter, wq->ci);
    PRM_SET(wq, out, sw_counter, wq->pi);
}

/* Finds the PD and CQ of a new queue. PD 0 means none: mlx5e makes its drop RQ so. Such a queue has
 * access to no memory key. A hairpin queue has neither, whatever its context says. */
static enum syn eth_find_pd_cq(struct hca *hca, uint16_t uid, bool hairpin, uint32_t pdn,
                               uint32_t cqn, struct obj **pd, struct cq **cq)
{
    if (hairpin) {
        *pd = NULL;
        *cq = NULL;
        return SYN_OK;
    }
    *pd = obj_find(&hca->pds, pdn);
    *cq = cq_find(hca, cqn);
    if (!*pd && pdn != 0) {
        return SYN_ETH_PD;
    }
    if (!*cq) {
        return SYN_ETH_CQ;
    }
    return (!*pd || uid_may_use(*pd, uid)) && uid_may_use(cq_obj(*cq), uid) ? SYN_OK : SYN_BAD_UID;
}

/* The srqn in a queue's CQEs: the number that its owner chose. CQEs of version 0 have no such
 * number; their srqn is 0, because these queues have no SRQ. */
static uint32_t eth_user_index(uint32_t user_index)
{
    return user_index == USER_INDEX_CQE_V0 ? 0 : user_index;
}

/* -- SQ -----------------------------------------------------------------------------------------
 */

void eth_sq_stop(struct hca *hca, struct eth_sq *sq)
{
    sq->counted = false;
    eth_hairpin_sq_part(hca, sq);
    pace_stop(hca, &sq->pace);
    sched_stop(&sq->sched);
    hca_timer_stop(hca, &sq->wait_timer);
}

static void eth_sq_count_refs(struct hca *hca, struct eth_sq *sq, int by)
{
    obj_count(&sq->obj, obj_find(&hca->pds, sq->pdn), by);
    obj_count(&sq->obj, cq_obj(sq->cq), by);
    obj_count(&sq->obj, sq->uar, by);
    obj_count(&sq->obj, sq->tis ? &sq->tis->obj : NULL, by);
}

enum syn eth_sq_create(struct hca *hca, uint16_t uid, const struct prm_sqc *sqc,
                       struct mem_buf *buf, uint64_t dbr, uint32_t *sqn)
{
    const struct prm_wq *wq = PRM_PTR(sqc, sqc, wq);
    struct eth_tis *tis = NULL;
    struct eth_sq *sq;
    struct obj *pd, *uar;
    struct cq *cq;
    const struct pace_rate *rate;
    struct sched_elem *group;
    bool hairpin = PRM_GET(sqc, sqc, hairpin);
    enum syn syn =
        eth_find_pd_cq(hca, uid, hairpin, PRM_GET(wq, wq, pd), PRM_GET(sqc, sqc, cqn), &pd, &cq);

    if (syn != SYN_OK) {
        return syn;
    }
    if (PRM_GET(sqc, sqc, state) != PRM_SQC_STATE_RST) {
        return SYN_ETH_STATE;
    }
    if ((PRM_GET(sqc, sqc, allow_swp) && !hca->limits.swp) ||
        (PRM_GET(sqc, sqc, allow_multi_pkt_send_wqe) && !hca->limits.multi_packet)) {
        return SYN_ETH_WQ;
    }
    if ((!hairpin &&
         (PRM_GET(wq, wq, wq_type) != PRM_WQ_TYPE_CYCLIC || PRM_GET(wq, wq, log_wq_stride) != 6)) ||
        PRM_GET(sqc, sqc, non_wire) || PRM_GET(sqc, sqc, cd_master) || PRM_GET(wq, wq, cd_slave)) {
        return SYN_ETH_WQ;
    }
    if (!queue_ts_format_ok(hca, PRM_GET(sqc, sqc, ts_format))) {
        return SYN_TS_FORMAT;
    }
    uar = hairpin ? NULL : obj_find(&hca->uars, PRM_GET(wq, wq, uar_page));
    syn = hairpin ? SYN_OK : uid_check(uar, uid, SYN_NO_UAR);
    if (syn != SYN_OK) {
        return syn;
    }
    if (PRM_GET(sqc, sqc, tis_lst_sz)) {
        tis = obj_find_kind(&hca->tiss, PRM_GET(sqc, sqc, tis_num_0), OBJ_TIS);
        if (!tis || !uid_may_use(&tis->obj, uid)) {
            return SYN_ETH_TIS;
        }
    }
    syn = pace_find(hca, uid, PRM_GET(sqc, sqc, packet_pacing_rate_limit_index), &rate);
    if (syn == SYN_OK) {
        syn = sched_find_group(hca, uid, PRM_GET(sqc, sqc, qos_queue_group_id), &group);
    }
    if (syn != SYN_OK) {
        return syn;
    }
    sq = obj_make(hca, OBJ_SQ, uid, sizeof(*sq));
    if (!sq) {
        return SYN_NO_MEMORY;
    }
    sq->work.run = eth_sq_run;
    syn = hairpin ? eth_hairpin_sq_init(hca, sq, wq) : SYN_OK;
    if (syn != SYN_OK) {
        obj_end(hca, &sq->obj);
        return syn;
    }
    memcpy(sq->sqc, sqc, sizeof(sq->sqc));
    eth_wq_init(&sq->obj, &sq->wq, wq, buf, dbr + DBR_SEND);
    sq->state = PRM_SQC_STATE_RST;
    sq->real_time = queue_real_time(hca, PRM_GET(sqc, sqc, ts_format));
    sq->user_index = eth_user_index(PRM_GET(sqc, sqc, user_index));
    sq->pdn = hairpin ? 0 : PRM_GET(wq, wq, pd);
    sq->cq = cq;
    sq->uar = uar;
    sq->tis = tis;
    sq->tdn = tis ? PRM_GET(tisc, tis->tisc, transport_domain) : PORT_NO_TD;
    sq->swp = PRM_GET(sqc, sqc, allow_swp);
    pace_start(hca, &sq->pace, rate, &sq->work);
    sched_join(hca, &sq->obj, &sq->sched, group, &sq->work);
    eth_sq_count_refs(hca, sq, 1);
    *sqn = sq->obj.num;
    return SYN_OK;
}

/* MODIFY_SQ, the fields of the bitmask. */
static enum syn eth_sq_take_fields(struct hca *hca, struct eth_sq *sq, uint16_t uid,
                                   uint64_t bitmask, const struct prm_sqc *sqc)
{
    const uint64_t index = PRM_MODIFY_SQ_PACKET_PACING_RATE_LIMIT_INDEX;
    const uint64_t group = PRM_MODIFY_SQ_QOS_QUEUE_GROUP_ID;
    const struct pace_rate *rate = NULL;
    struct sched_elem *leaf = NULL;
    enum syn syn = bitmask & ~(index | group) ? SYN_ETH_MODIFY : SYN_OK;

    if (syn == SYN_OK && bitmask & index) {
        syn = pace_find(hca, uid, PRM_GET(sqc, sqc, packet_pacing_rate_limit_index), &rate);
    }
    if (syn == SYN_OK && bitmask & group) {
        syn = sched_find_group(hca, uid, PRM_GET(sqc, sqc, qos_queue_group_id), &leaf);
    }
    if (syn != SYN_OK) {
        return syn;
    }
    if (bitmask & index) {
        PRM_SET(sqc, sq->sqc, packet_pacing_rate_limit_index,
                PRM_GET(sqc, sqc, packet_pacing_rate_limit_index));
        pace_start(hca, &sq->pace, rate, &sq->work);
    }
    if (bitmask & group) {
        PRM_SET(sqc, sq->sqc, qos_queue_group_id, PRM_GET(sqc, sqc, qos_queue_group_id));
        sched_join(hca, &sq->obj, &sq->sched, leaf, &sq->work);
    }
    return SYN_OK;
}

enum syn eth_sq_modify(struct hca *hca, uint16_t uid, uint32_t sqn, uint8_t cur_state,
                       uint64_t bitmask, const struct prm_sqc *sqc)
{
    struct eth_sq *sq = eth_sq_find(hca, sqn);
    uint8_t next = (uint8_t)PRM_GET(sqc, sqc, state);
    bool joins;
    enum syn syn;

    if (!sq) {
        return SYN_ETH_NOT_FOUND;
    }
    if (!uid_owns(&sq->obj, uid)) {
        return SYN_BAD_UID;
    }
    if (cur_state != sq->state || !eth_move_is_legal(sq_moves, sq->state, next)) {
        return SYN_ETH_STATE;
    }
    joins = sq->hairpin && sq->state == PRM_SQC_STATE_RST && next == PRM_SQC_STATE_RDY;
    syn = joins ? eth_hairpin_find_rq(hca, uid, PRM_GET(sqc, sqc, hairpin_peer_vhca),
                                      PRM_GET(sqc, sqc, hairpin_peer_rq))
                : SYN_OK;
    if (syn == SYN_OK) {
        syn = eth_sq_take_fields(hca, sq, uid, bitmask, sqc);
    }
    if (syn != SYN_OK) {
        return syn;
    }
    if (next != sq->state) {
        sq->state = next;
        eth_umr_forget(hca, sq);
        if (next == PRM_SQC_STATE_RST) {
            eth_sq_stop(hca, sq);
            hca_unschedule(&sq->work);
            sq->wq.ci = sq->wq.pi = 0;
            sq->traced = false;
            blueflame_drop(&sq->wq);
            sq->done = 0;
            sq->counted = false;
        } else if (next == PRM_SQC_STATE_ERR) {
            eth_sq_flush(hca, sq);
        }
    }
    if (joins) {
        PRM_SET(sqc, sq->sqc, hairpin_peer_vhca, PRM_GET(sqc, sqc, hairpin_peer_vhca));
        PRM_SET(sqc, sq->sqc, hairpin_peer_rq, PRM_GET(sqc, sqc, hairpin_peer_rq));
        eth_hairpin_sq_ready(hca, sq);
    }
    return SYN_OK;
}

enum syn eth_sq_query(struct hca *hca, uint32_t sqn, struct prm_sqc *sqc)
{
    const struct eth_sq *sq = eth_sq_find(hca, sqn);

    if (!sq) {
        return SYN_ETH_NOT_FOUND;
    }
    memcpy(sqc, sq->sqc, sizeof(sq->sqc));
    PRM_SET(sqc, sqc, state, sq->state);
    eth_wq_query(&sq->wq, PRM_PTR(sqc, sqc, wq));
    return SYN_OK;
}

void eth_sq_free(struct hca *hca, struct obj *obj)
{
    struct eth_sq *sq = (struct eth_sq *)obj;

    eth_sq_stop(hca, sq);
    eth_hairpin_sq_free(hca, sq);
    sched_join(hca, obj, &sq->sched, NULL, NULL);
    hca_unschedule(&sq->work);
    blueflame_drop(&sq->wq);
    eth_umr_forget(hca, sq);
    eth_sq_count_refs(hca, sq, -1);
    mem_buf_drop(obj, &sq->wq.buf);
    obj_end(hca, obj);
}

enum syn eth_sq_destroy(struct hca *hca, uint16_t uid, uint32_t sqn)
{
    struct eth_sq *sq = eth_sq_find(hca, sqn);

    if (!sq) {
        return SYN_ETH_NOT_FOUND;
    }
    if (!uid_owns(&sq->obj, uid)) {
        return SYN_BAD_UID;
    }
    eth_sq_free(hca, &sq->obj);
    return SYN_OK;
}

/* -- RQ -----------------------------------------------------------------------------------------
 */

static void eth_rq_count_refs(struct hca *hca, struct eth_rq *rq, int by)
{
    obj_count(&rq->obj, obj_find(&hca->pds, rq->pdn), by);
    obj_count(&rq->obj, cq_obj(rq->cq), by);
    obj_count(&rq->obj, rq->rmp ? &rq->rmp->obj : NULL, by);
}

/* Finds the pool of an RQ that has no ring. Its WQEs name memory by the PD of the pool. */
static enum syn eth_find_rmp(struct hca *hca, uint16_t uid, uint32_t rmpn, struct srq **rmp)
{
    struct obj *obj = obj_find_kind(&hca->srqs, rmpn, OBJ_RMP);

    *rmp = (struct srq *)obj;
    return uid_check(obj, uid, SYN_SRQ_NUM);
}

/* Checks the part of the context that describes the RQ's ring. An RQ that takes its WQEs from an
 * RMP has no ring, and a hairpin queue has none either. */
static enum syn eth_rq_check_wq(const struct prm_rqc *rqc)
{
    const struct prm_wq *wq = PRM_PTR(rqc, rqc, wq);
    uint32_t type = PRM_GET(rqc, rqc, mem_rq_type);
    bool hairpin = PRM_GET(rqc, rqc, hairpin);

    if (type > PRM_RQC_MEM_RQ_TYPE_MEMORY_RQ_RMP || (type && hairpin) ||
        PRM_GET(wq, wq, cd_slave) || PRM_GET(wq, wq, end_padding_mode) > PRM_WQ_END_PADDING_ALIGN) {
        return SYN_ETH_WQ;
    }
    return type || hairpin || eth_stride_ok(wq) ? SYN_OK : SYN_ETH_WQ;
}

enum syn eth_rq_create(struct hca *hca, uint16_t uid, const struct prm_rqc *rqc,
                       struct mem_buf *buf, uint64_t dbr, uint32_t *rqn)
{
    const struct prm_wq *wq = PRM_PTR(rqc, rqc, wq);
    struct srq *rmp = NULL;
    struct eth_rq *rq;
    struct obj *pd;
    struct cq *cq;
    uint32_t pdn = PRM_GET(rqc, rqc, mem_rq_type) ? 0 : PRM_GET(wq, wq, pd);
    bool hairpin = PRM_GET(rqc, rqc, hairpin);
    enum syn syn = eth_find_pd_cq(hca, uid, hairpin, pdn, PRM_GET(rqc, rqc, cqn), &pd, &cq);

    if (syn != SYN_OK) {
        return syn;
    }
    if (PRM_GET(rqc, rqc, state) != PRM_RQC_STATE_RST) {
        return SYN_ETH_STATE;
    }
    syn = eth_rq_check_wq(rqc);
    if (syn == SYN_OK && PRM_GET(rqc, rqc, mem_rq_type)) {
        syn = eth_find_rmp(hca, uid, PRM_GET(rqc, rqc, rmpn), &rmp);
    }
    if (syn != SYN_OK) {
        return syn;
    }
    if (!queue_ts_format_ok(hca, PRM_GET(rqc, rqc, ts_format))) {
        return SYN_TS_FORMAT;
    }
    rq = obj_make(hca, OBJ_RQ, uid, sizeof(*rq));
    if (!rq) {
        return SYN_NO_MEMORY;
    }
    memcpy(rq->rqc, rqc, sizeof(rq->rqc));
    syn = hairpin ? eth_hairpin_rq_init(hca, rq, wq) : rmp ? SYN_OK : eth_stride_init(hca, rq, wq);
    if (syn == SYN_OK) {
        syn = eth_delay_init(hca, rq);
    }
    if (syn != SYN_OK) {
        eth_hairpin_rq_free(hca, rq);
        eth_stride_free(hca, rq);
        obj_end(hca, &rq->obj);
        return syn;
    }
    eth_wq_init(&rq->obj, &rq->wq, wq, buf, dbr + DBR_RECV);
    rq->wq.start_padding = true;
    rq->state = PRM_RQC_STATE_RST;
    rq->vsd = PRM_GET(rqc, rqc, vsd);
    rq->fcs = PRM_GET(rqc, rqc, scatter_fcs);
    rq->real_time = queue_real_time(hca, PRM_GET(rqc, rqc, ts_format));
    rq->pads_end = PRM_GET(wq, wq, end_padding_mode) == PRM_WQ_END_PADDING_ALIGN;
    rq->user_index = eth_user_index(PRM_GET(rqc, rqc, user_index));
    rq->counter_set_id = PRM_GET(rqc, rqc, counter_set_id);
    rq->rmp = rmp;
    rq->pdn = hairpin ? 0 : rmp ? rmp->attr.pdn : pdn;
    rq->cq = cq;
    rq->flush_work.run = eth_rq_flush_run;
    eth_rq_count_refs(hca, rq, 1);
    *rqn = rq->obj.num;
    return SYN_OK;
}

void eth_rq_stop(struct hca *hca, struct eth_rq *rq)
{
    eth_hairpin_rq_part(hca, rq);
    eth_delay_end(hca, rq);
    eth_lro_forget(hca, rq);
}

enum syn eth_rq_modify(struct hca *hca, uint16_t uid, uint32_t rqn, uint8_t cur_state,
                       uint64_t bitmask, const struct prm_rqc *rqc)
{
    uint64_t known =
        PRM_MODIFY_RQ_VSD | PRM_MODIFY_RQ_SCATTER_FCS | PRM_MODIFY_RQ_RQ_COUNTER_SET_ID;
    struct eth_rq *rq = eth_rq_find(hca, rqn);
    uint8_t next = (uint8_t)PRM_GET(rqc, rqc, state);
    bool joins;
    enum syn syn;

    if (!rq) {
        return SYN_ETH_NOT_FOUND;
    }
    if (!uid_owns(&rq->obj, uid)) {
        return SYN_BAD_UID;
    }
    if (cur_state != rq->state || !eth_move_is_legal(rq_moves, rq->state, next)) {
        return SYN_ETH_STATE;
    }
    if (bitmask & ~known) {
        return SYN_ETH_MODIFY;
    }
    joins = rq->hairpin && rq->state == PRM_RQC_STATE_RST && next == PRM_RQC_STATE_RDY;
    syn = joins ? eth_hairpin_find_sq(hca, uid, PRM_GET(rqc, rqc, hairpin_peer_vhca),
                                      PRM_GET(rqc, rqc, hairpin_peer_sq))
                : SYN_OK;
    if (syn != SYN_OK) {
        return syn;
    }
    if (bitmask & PRM_MODIFY_RQ_VSD) {
        rq->vsd = PRM_GET(rqc, rqc, vsd);
        PRM_SET(rqc, rq->rqc, vsd, rq->vsd);
    }
    if (bitmask & PRM_MODIFY_RQ_SCATTER_FCS) {
        rq->fcs = PRM_GET(rqc, rqc, scatter_fcs);
        PRM_SET(rqc, rq->rqc, scatter_fcs, rq->fcs);
    }
    if (bitmask & PRM_MODIFY_RQ_RQ_COUNTER_SET_ID) {
        rq->counter_set_id = PRM_GET(rqc, rqc, counter_set_id);
        PRM_SET(rqc, rq->rqc, counter_set_id, rq->counter_set_id);
    }
    if (next != rq->state) {
        rq->state = next;
        eth_rq_stop(hca, rq);
        if (next == PRM_RQC_STATE_RST) {
            hca_unschedule_late(hca, &rq->flush_work);
            rq->wq.ci = rq->wq.pi = 0;
            eth_stride_reset(rq);
        } else if (next == PRM_RQC_STATE_ERR) {
            eth_rq_flush(hca, rq);
        }
    }
    if (joins) {
        PRM_SET(rqc, rq->rqc, hairpin_peer_vhca, PRM_GET(rqc, rqc, hairpin_peer_vhca));
        PRM_SET(rqc, rq->rqc, hairpin_peer_sq, PRM_GET(rqc, rqc, hairpin_peer_sq));
        eth_hairpin_rq_ready(hca, rq);
    }
    return SYN_OK;
}

enum syn eth_rq_query(struct hca *hca, uint32_t rqn, struct prm_rqc *rqc)
{
    const struct eth_rq *rq = eth_rq_find(hca, rqn);

    if (!rq) {
        return SYN_ETH_NOT_FOUND;
    }
    memcpy(rqc, rq->rqc, sizeof(rq->rqc));
    PRM_SET(rqc, rqc, state, rq->state);
    eth_wq_query(&rq->wq, PRM_PTR(rqc, rqc, wq));
    return SYN_OK;
}

void eth_rq_free(struct hca *hca, struct obj *obj)
{
    struct eth_rq *rq = (struct eth_rq *)obj;

    hca_unschedule_late(hca, &rq->flush_work);
    eth_rq_count_refs(hca, rq, -1);
    eth_rq_stop(hca, rq);
    eth_hairpin_rq_free(hca, rq);
    eth_delay_free(hca, rq);
    eth_stride_free(hca, rq);
    mem_buf_drop(obj, &rq->wq.buf);
    obj_end(hca, obj);
}

enum syn eth_rq_destroy(struct hca *hca, uint16_t uid, uint32_t rqn)
{
    struct eth_rq *rq = eth_rq_find(hca, rqn);

    if (!rq) {
        return SYN_ETH_NOT_FOUND;
    }
    if (!uid_owns(&rq->obj, uid)) {
        return SYN_BAD_UID;
    }
    if (rq->obj.refs) {
        return SYN_IN_USE;
    }
    eth_rq_free(hca, &rq->obj);
    return SYN_OK;
}

/* -- failures -----------------------------------------------------------------------------------
 */

void eth_sq_fatal(struct hca *hca, struct eth_sq *sq)
{
    sq->state = PRM_SQC_STATE_ERR;
    sq->done = 0;
    eth_umr_forget(hca, sq);
    eth_sq_stop(hca, sq);
    eq_async_qp(hca, PRM_EVENT_TYPE_WQ_CATAS_ERROR, PRM_EVENT_QUEUE_TYPE_SQ, sq->obj.num);
}

void eth_rq_fatal(struct hca *hca, struct eth_rq *rq)
{
    rq->state = PRM_RQC_STATE_ERR;
    eth_rq_stop(hca, rq);
    eq_async_qp(hca, PRM_EVENT_TYPE_WQ_CATAS_ERROR, PRM_EVENT_QUEUE_TYPE_RQ, rq->obj.num);
}

void eth_sq_cq_failed(struct hca *hca, struct obj *obj, const struct cq *cq)
{
    struct eth_sq *sq = (struct eth_sq *)obj;

    if (sq->cq == cq && sq->state == PRM_SQC_STATE_RDY) {
        eth_sq_fatal(hca, sq);
    }
}

void eth_rq_cq_failed(struct hca *hca, struct obj *obj, const struct cq *cq)
{
    struct eth_rq *rq = (struct eth_rq *)obj;

    if (rq->cq == cq && rq->state == PRM_RQC_STATE_RDY) {
        eth_rq_fatal(hca, rq);
    }
}
