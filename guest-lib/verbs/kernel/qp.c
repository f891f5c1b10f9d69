/* SPDX-License-Identifier: BSD-2-Clause */
/* Queue pairs: the commands that create and destroy them (mlx5_ib create_user_qp()). */
#include "guest-lib/verbs/kernel/events.h"
#include "guest-lib/verbs/kernel/hca.h"
#include "guest-lib/verbs/kernel/memlock.h"
#include "guest-lib/verbs/kernel/mkey.h"
#include "guest-lib/verbs/kernel/odp.h"
#include "guest-lib/verbs/kernel/qp.h"

/* offload_type of a QP whose messages an XRQ receives. */
#define OFFLOAD_RNDV 1

/* Indexed by enum ibv_qp_type. */
static const uint8_t service_types[] = {
    [IBV_QPT_RC] = PRM_QP_ST_RC,        [IBV_QPT_UC] = PRM_QP_ST_UC,
    [IBV_QPT_UD] = PRM_QP_ST_UD,        [IBV_QPT_XRC_SEND] = PRM_QP_ST_XRC,
    [IBV_QPT_XRC_RECV] = PRM_QP_ST_XRC,
};

static unsigned qp_service_type(const struct hv_qp *qp)
{
    return qp->dc == HV_DC_DCI ? PRM_QP_ST_DCI : service_types[qp->ibv.qp_type];
}

static bool qp_is_xrc(enum ibv_qp_type type)
{
    return type == IBV_QPT_XRC_SEND || type == IBV_QPT_XRC_RECV;
}

/* Gives the context an XRC domain: XRC send QPs must name one, like all XRC QPs. mlx5_ib has one
 * for all of them; here each context has its own, which ends with its user. */
static int qp_use_xrcd(struct hv_context *ctx)
{
    struct prm_alloc_xrcd_in in[1] = {0};
    struct prm_alloc_xrcd_out out[1] = {0};
    int err = 0;

    pthread_mutex_lock(&ctx->hca->xrcd_lock);
    if (!ctx->has_xrcdn) {
        PRM_SET(alloc_xrcd_in, in, opcode, PRM_CMD_OP_ALLOC_XRCD);
        PRM_SET(alloc_xrcd_in, in, uid, ctx->uid);
        err = hv_cmd(ctx->hca, in, sizeof(in), out, sizeof(out));
        ctx->xrcdn = PRM_GET(alloc_xrcd_out, out, xrcd);
        ctx->has_xrcdn = !err;
    }
    pthread_mutex_unlock(&ctx->hca->xrcd_lock);
    return err;
}

/* An XRC target belongs to the kernel: it is in the kernel's PD and has no queue of its own
 * (create_xrc_tgt_qp()). */
void hv_qp_fill_identity(const struct hv_qp *qp, struct prm_qpc *qpc)
{
    struct ibv_pd *pd = hv_qp_pd(qp);

    PRM_SET(qpc, qpc, st, qp_service_type(qp));
    PRM_SET(qpc, qpc, pm_state, PRM_QP_PM_STATE_MIGRATED);
    PRM_SET(qpc, qpc, pd, pd ? hv_real_pd(pd)->pdn : hv_drv(qp->hca)->pdn);
    if (qp->send_cq) {
        PRM_SET(qpc, qpc, cqn_snd, qp->send_cq->cqn);
    }
    if (qp->recv_cq) {
        PRM_SET(qpc, qpc, cqn_rcv, qp->recv_cq->cqn);
    }
}

static void qp_fill_queues(struct hv_qp *qp, struct hv_context *ctx, struct prm_qpc *qpc)
{
    enum ibv_qp_type type = qp->ibv.qp_type;

    PRM_SET(qpc, qpc, user_index, qp->uidx < 0 ? HV_UIDX_NONE : (uint32_t)qp->uidx);
    if (qp->sq.wqe_cnt) {
        PRM_SET(qpc, qpc, log_sq_size, g_bit_storage(qp->sq.wqe_cnt) - 1);
    } else {
        PRM_SET(qpc, qpc, no_sq, 1);
    }
    if (qp_is_xrc(type)) {
        PRM_SET(qpc, qpc, rq_type, PRM_RQ_TYPE_SRQ);
        PRM_SET(qpc, qpc, xrcd, type == IBV_QPT_XRC_RECV ? qp->xrcd->xrcdn : ctx->xrcdn);
    } else if (qp->srq) {
        PRM_SET(qpc, qpc, rq_type, PRM_RQ_TYPE_SRQ);
        PRM_SET(qpc, qpc, srqn_rmpn_xrqn, qp->srq->srqn);
        PRM_SET(qpc, qpc, offload_type, qp->srq->type == IBV_SRQT_TM ? OFFLOAD_RNDV : 0);
    } else if (qp->rq.wqe_cnt) {
        PRM_SET(qpc, qpc, log_rq_size, g_bit_storage(qp->rq.wqe_cnt) - 1);
        PRM_SET(qpc, qpc, log_rq_stride, qp->rq.wqe_shift - 4);
    } else {
        PRM_SET(qpc, qpc, rq_type, PRM_RQ_TYPE_ZERO_SIZE);
    }
}

/* Lets small data go to CQEs, as much as they have room for (configure_requester_scat_cqe()). */
static void qp_fill_scatter_to_cqe(const struct hv_qp *qp, struct prm_qpc *qpc)
{
    enum ibv_qp_type type = qp->ibv.qp_type;
    bool is_dci = qp->dc == HV_DC_DCI;

    if (!qp->scatter_to_cqe || !HV_CAP(qp->hca, sctr_data_cqe)) {
        return;
    }
    if (type == IBV_QPT_RC || type == IBV_QPT_UC) {
        PRM_SET(qpc, qpc, cs_res,
                qp->recv_cq->cqe_size == 128 ? PRM_CS_RES_UP_TO_64B : PRM_CS_RES_UP_TO_32B);
    }
    if ((type != IBV_QPT_RC && !is_dci) || !(qp->allow_scatter_to_cqe || qp->sq_sig_all)) {
        return;
    }
    if (qp->send_cq->cqe_size == 128) {
        PRM_SET(qpc, qpc, cs_req, PRM_CS_REQ_UP_TO_64B);
    } else if (!is_dci || HV_CAP(qp->hca, dc_req_scat_data_cqe)) {
        PRM_SET(qpc, qpc, cs_req, PRM_CS_REQ_UP_TO_32B);
    }
}

uint32_t hv_qp_ece(const struct hv_qp *qp)
{
    return HV_CAP(qp->hca, ece_support) ? qp->ece.asked : 0;
}

/* Sets the format of the time stamps (mlx5_ib: get_qp_ts_format()). Both CQs must ask for the same.
 * 0 or errno. */
static int qp_fill_ts_format(const struct hv_qp *qp, struct prm_qpc *qpc)
{
    uint8_t send = qp->send_cq ? hv_cq_ts_format(qp->send_cq) : PRM_TS_FORMAT_FREE_RUNNING;
    uint8_t recv = qp->recv_cq ? hv_cq_ts_format(qp->recv_cq) : PRM_TS_FORMAT_FREE_RUNNING;

    if (send != recv) {
        return hv_refuse(qp->hca, EOPNOTSUPP,
                         "create_qp: the CQs ask for time stamps of two different clocks");
    }
    PRM_SET(qpc, qpc, ts_format, send);
    return 0;
}

static int qp_create_cmd(struct hv_qp *qp, struct hv_context *ctx)
{
    size_t len = PRM_SIZE(create_qp_in) + 8 * hv_ring_pages(qp->ring, qp->ring_size);
    g_autofree struct prm_create_qp_in *in = g_malloc0(len);
    struct prm_create_qp_out out[1];
    struct prm_qpc *qpc = PRM_PTR(create_qp_in, in, qpc);
    int err = qp->ibv.qp_type == IBV_QPT_XRC_SEND ? qp_use_xrcd(ctx) : 0;

    if (err) {
        return err;
    }
    PRM_SET(create_qp_in, in, opcode, PRM_CMD_OP_CREATE_QP);
    PRM_SET(create_qp_in, in, uid, qp->uid);
    PRM_SET(create_qp_in, in, ece, hv_qp_ece(qp));
    hv_qp_fill_identity(qp, qpc);
    err = qp_fill_ts_format(qp, qpc);
    if (err) {
        return err;
    }
    PRM_SET(qpc, qpc, block_lb_mc, qp->block_self_mcast);
    PRM_SET(qpc, qpc, end_padding_mode, qp->end_padding);
    PRM_SET(qpc, qpc, cd_master, !!(qp->exp_flags & IBV_EXP_QP_CREATE_CROSS_CHANNEL));
    PRM_SET(qpc, qpc, cd_slave_send, !!(qp->exp_flags & IBV_EXP_QP_CREATE_MANAGED_SEND));
    PRM_SET(qpc, qpc, cd_slave_receive, !!(qp->exp_flags & IBV_EXP_QP_CREATE_MANAGED_RECV));
    PRM_SET(qpc, qpc, uar_page, qp->uar->page);
    PRM_SET(qpc, qpc, dbr_addr, (uintptr_t)shadow_real(qp->dbrec));
    if (qp->dci_streams) {
        PRM_SET(qpc, qpc, log_num_dci_stream_channels, qp->dci_log_streams);
        PRM_SET(qpc, qpc, log_num_dci_errored_streams, qp->dci_log_errored);
    }
    qp_fill_queues(qp, ctx, qpc);
    qp_fill_scatter_to_cqe(qp, qpc);
    PRM_SET(qpc, qpc, page_offset, hv_ring_offset(qp->ring));
    hv_set_pas(PRM_PTR(create_qp_in, in, pas), qp->ring, qp->ring_size);
    err = hv_cmd(ctx->hca, in, len, out, sizeof(out));
    qp->ibv.qp_num = PRM_GET(create_qp_out, out, qpn);
    qp->ece.answered = PRM_GET(create_qp_out, out, ece);
    return err;
}

/* Whether the QP has a queue for which the device has no page faults (odp_cap): all of an
 * unreliable connection or a raw packet QP, and the receive queue of a datagram QP. */
static bool qp_may_not_fault(const struct hv_qp *qp)
{
    return hv_qp_pd(qp) &&
           (qp->ibv.qp_type == IBV_QPT_UC || qp->ibv.qp_type == IBV_QPT_RAW_PACKET ||
            (qp->ibv.qp_type == IBV_QPT_UD && !qp->srq));
}

void uverbs_use_qp(struct hv_qp *qp, int change)
{
    gint *counts[] = {
        qp->send_cq ? &qp->send_cq->users : NULL, qp->recv_cq ? &qp->recv_cq->users : NULL,
        qp->srq ? &qp->srq->users : NULL,         qp->xrcd ? &qp->xrcd->refs : NULL,
        qp->ind ? &qp->ind->users : NULL,
    };

    for (size_t i = 0; i < G_N_ELEMENTS(counts); i++) {
        if (counts[i]) {
            g_atomic_int_add(counts[i], change);
        }
    }
    if (hv_qp_pd(qp)) {
        uverbs_use_pd(hv_qp_pd(qp), change);
    }
    if (qp_may_not_fault(qp)) {
        hv_odp_note_queue(qp->hca, hv_real_pd(hv_qp_pd(qp)), change);
    }
}

/* Checks the handles of the objects that the QP names (UVERBS_METHOD_QP_CREATE): 0 or errno. */
static int qp_check_handles(const struct hv_qp *qp)
{
    int err = hv_qp_pd(qp) ? hv_pd_check(hv_qp_pd(qp)) : 0;

    err = err || !qp->ind ? err : hv_ind_table_check(&qp->ind->ibv);
    err = err || !qp->xrcd ? err : hv_xrcd_check(&qp->xrcd->ibv);
    err = err || !qp->send_cq ? err : hv_cq_check(&qp->send_cq->ibv);
    err = err || !qp->recv_cq ? err : hv_cq_check(&qp->recv_cq->ibv);
    return err || !qp->srq ? err : hv_srq_check(&qp->srq->ibv);
}

/* As mlx5_ib's destroy_qp_common(): a QP that was in use is stopped first. */
static int qp_destroy_cmd(struct hv_qp *qp)
{
    struct prm_destroy_qp_in in[1] = {0};

    if (qp->ibv.qp_type == IBV_QPT_RAW_PACKET) {
        return hv_raw_destroy(qp);
    }
    if (qp->dc == HV_DC_DCT) {
        return hv_dct_destroy(qp);
    }
    if (qp->state != IBV_QPS_RESET) {
        /* if this fails, destroying the QP reports the reason */
        hv_qp_stop(qp, PRM_CMD_OP_2RST_QP);
    }
    PRM_SET(destroy_qp_in, in, opcode, PRM_CMD_OP_DESTROY_QP);
    PRM_SET(destroy_qp_in, in, uid, qp->uid);
    PRM_SET(destroy_qp_in, in, qpn, qp->ibv.qp_num);
    return hv_cmd_simple(qp->hca, in, sizeof(in));
}

/* Checks and pins the QP's memory. An XRC target has no queue, and a DCT has no memory of its own.
 */
static int qp_pin(struct hv_qp *qp)
{
    unsigned offsets = qp->ibv.qp_type == IBV_QPT_RAW_PACKET ? HV_WQ_OFFSETS : HV_QUEUE_OFFSETS;
    uint64_t sq_pinned;
    int err;

    if (qp->ibv.qp_type == IBV_QPT_XRC_RECV || qp->dc == HV_DC_DCT) {
        return 0;
    }
    err = hv_ring_check(qp->hca, "create_qp", qp->ring, offsets);
    if (!err && hv_qp_has_two_rings(qp)) {
        err = hv_ring_check(qp->hca, "create_qp", qp->sq.buf, offsets);
    }
    err =
        err ? err : hv_pin_queue(qp->ibv.context, qp->ring, qp->ring_size, qp->dbrec, &qp->pinned);
    if (err || !hv_qp_has_two_rings(qp)) {
        return err;
    }
    err = hv_pin(qp->hca, qp->sq.buf, (size_t)qp->sq.wqe_cnt << qp->sq.wqe_shift, &sq_pinned);
    qp->pinned += sq_pinned;
    return err;
}

int uverbs_create_qp(struct hv_qp *qp)
{
    int err = qp_check_handles(qp);

    err = err ? err : qp_pin(qp);
    if (!err) {
        err = qp->ibv.qp_type == IBV_QPT_RAW_PACKET ? hv_raw_create(qp)
              : qp->dc == HV_DC_DCT                 ? hv_dct_create(qp)
                                    : qp_create_cmd(qp, hv_context(qp->ibv.context));
    }
    if (err) {
        hv_unpin_queue(qp->ibv.context, qp->dbrec, &qp->pinned);
        return err;
    }
    qp->ibv.handle = hv_handle_add(qp->ibv.context, HV_HANDLE_QP, qp);
    uverbs_use_qp(qp, 1);
    if (qp->dc != HV_DC_DCT) {
        hv_event_add_qp(qp->hca, qp);
    }
    return 0;
}

int uverbs_create_rss_qp(struct hv_qp *qp, const struct ibv_rx_hash_conf *conf)
{
    int err = qp_check_handles(qp);

    err = err ? err : hv_rss_create(qp, conf);
    if (err) {
        return err;
    }
    qp->ibv.handle = hv_handle_add(qp->ibv.context, HV_HANDLE_QP, qp);
    uverbs_use_qp(qp, 1);
    return 0;
}

int uverbs_destroy_qp(struct hv_qp *qp)
{
    int err = hv_qp_check(&qp->ibv);

    if (!err && hv_is_removed(qp->hca)) {
        hv_mcast_leave_all(qp);
    }
    if (!err && g_atomic_int_get(&qp->refs)) {
        err = hv_refuse(qp->hca, EBUSY,
                        "destroy_qp: QP 0x%x is in %d multicast groups or flows; detach it first",
                        qp->ibv.qp_num, g_atomic_int_get(&qp->refs));
    }
    if (err) {
        return err;
    }
    if (!hv_xrc_tgt_leave(qp)) {
        err = qp_destroy_cmd(qp);
        if (err && qp->xrcd) {
            hv_event_add_qp(qp->hca, qp);
        }
        if (!err && qp->exp_dct) {
            hv_event_del_dct(qp->hca, qp);
        } else if (!err && !qp->ind && qp->dc != HV_DC_DCT) {
            hv_event_del_qp(qp->hca, qp);
        }
    }
    if (!err) {
        hv_unpin_queue(qp->ibv.context, qp->dbrec, &qp->pinned);
        hv_handle_del(qp->ibv.context, qp->ibv.handle);
    }
    return err;
}
