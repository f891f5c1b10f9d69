/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Raw packet QPs. The device has no such object, so they consist of others: an SQ, whose packets a
 * TIS describes, and an RQ, to which a TIR leads (mlx5_ib create_raw_packet_qp()). The QP's number
 * is its SQ's, or its RQ's if it cannot send. An RSS QP is only a TIR that selects from an
 * indirection table.
 */
#include <string.h>
#include "guest-lib/verbs/kernel/mkey.h"
#include "guest-lib/verbs/kernel/qp.h"
#include "guest-lib/verbs/kernel/rate.h"

#define SQ_STRIDE 6 /* log2 of a basic block */

/* -- common parts of the commands -------------------------------------------------------------- */

static int raw_destroy_part(struct hv_qp *qp, uint16_t op, uint32_t num)
{
    struct prm_destroy_tir_in in[1] = {0};

    /* the commands for all four objects have this layout */
    PRM_SET(destroy_tir_in, in, opcode, op);
    PRM_SET(destroy_tir_in, in, uid, qp->uid);
    PRM_SET(destroy_tir_in, in, tirn, num);
    return hv_cmd_simple(qp->hca, in, sizeof(in));
}

static void raw_fill_wq(struct hv_qp *qp, struct prm_wq *wq, const struct hv_wq *ring)
{
    PRM_SET(wq, wq, wq_type, PRM_WQ_TYPE_CYCLIC);
    PRM_SET(wq, wq, pd, hv_real_pd(qp->ibv.pd)->pdn);
    PRM_SET(wq, wq, dbr_addr, (uintptr_t)shadow_real(qp->dbrec));
    PRM_SET(wq, wq, log_wq_stride, ring->wqe_shift);
    PRM_SET(wq, wq, log_wq_sz, g_bit_storage(ring->wqe_cnt) - 1);
    PRM_SET(wq, wq, page_offset, hv_ring_offset(ring->buf));
    hv_set_pas(PRM_PTR(wq, wq, pas), ring->buf, (size_t)ring->wqe_cnt << ring->wqe_shift);
}

/* -- the send half -----------------------------------------------------------------------------
 */

static int raw_create_tis(struct hv_qp *qp)
{
    struct prm_create_tis_in in[1] = {0};
    struct prm_create_tis_out out[1] = {0};
    int err;

    PRM_SET(create_tis_in, in, opcode, PRM_CMD_OP_CREATE_TIS);
    PRM_SET(create_tis_in, in, uid, qp->uid);
    PRM_SET(tisc, PRM_PTR(create_tis_in, in, ctx), transport_domain,
            hv_context(qp->ibv.context)->tdn);
    err = hv_cmd(qp->hca, in, sizeof(in), out, sizeof(out));
    qp->tisn = PRM_GET(create_tis_out, out, tisn);
    return err;
}

static int raw_create_sq(struct hv_qp *qp)
{
    size_t len =
        PRM_SIZE(create_sq_in) + 8 * hv_ring_pages(qp->sq.buf, (size_t)qp->sq.wqe_cnt << SQ_STRIDE);
    g_autofree struct prm_create_sq_in *in = g_malloc0(len);
    struct prm_create_sq_out out[1] = {0};
    struct prm_sqc *sqc = PRM_PTR(create_sq_in, in, ctx);
    int err = raw_create_tis(qp);

    if (err) {
        return err;
    }
    PRM_SET(create_sq_in, in, opcode, PRM_CMD_OP_CREATE_SQ);
    PRM_SET(create_sq_in, in, uid, qp->uid);
    PRM_SET(sqc, sqc, flush_in_error_en, 1);
    PRM_SET(sqc, sqc, allow_swp, HV_ETH_CAP(qp->hca, swp));
    PRM_SET(sqc, sqc, state, PRM_SQC_STATE_RST);
    PRM_SET(sqc, sqc, user_index, (uint32_t)qp->uidx);
    PRM_SET(sqc, sqc, cqn, qp->send_cq->cqn);
    PRM_SET(sqc, sqc, ts_format, hv_cq_ts_format(qp->send_cq));
    PRM_SET(sqc, sqc, tis_lst_sz, 1);
    PRM_SET(sqc, sqc, tis_num_0, qp->tisn);
    PRM_SET(wq, PRM_PTR(sqc, sqc, wq), uar_page, qp->uar->page);
    raw_fill_wq(qp, PRM_PTR(sqc, sqc, wq), &qp->sq);
    err = hv_cmd(qp->hca, in, len, out, sizeof(out));
    qp->sqn = PRM_GET(create_sq_out, out, sqn);
    if (err) {
        raw_destroy_part(qp, PRM_CMD_OP_DESTROY_TIS, qp->tisn);
    }
    return err;
}

static int raw_destroy_sq(struct hv_qp *qp)
{
    int err = qp->sq.wqe_cnt ? raw_destroy_part(qp, PRM_CMD_OP_DESTROY_SQ, qp->sqn) : 0;

    if (!err && qp->sq.wqe_cnt) {
        hv_rate_remove(qp->hca, qp->rate_index);
        qp->rate_index = 0;
        err = raw_destroy_part(qp, PRM_CMD_OP_DESTROY_TIS, qp->tisn);
    }
    return err;
}

static bool raw_rates_are_equal(const struct hv_rate *a, const struct hv_rate *b)
{
    return a->kbps == b->kbps && a->burst == b->burst && a->typical == b->typical;
}

/* Takes an index of the device's table for the rate: 0 or errno. */
static int raw_add_rate(struct hv_qp *qp, const struct hv_rate *rate, uint16_t *index)
{
    struct prm_set_pp_rate_limit_context ctx[1] = {0};

    *index = 0;
    if (!rate->kbps) {
        return 0;
    }
    PRM_SET(set_pp_rate_limit_context, ctx, rate_limit, rate->kbps);
    PRM_SET(set_pp_rate_limit_context, ctx, burst_upper_bound, rate->burst);
    PRM_SET(set_pp_rate_limit_context, ctx, typical_packet_size, rate->typical);
    return hv_rate_add(qp->hca, ctx, HV_UID_SHARED, false, index);
}

/* Sets the SQ's state and rate. Only a ready queue has a rate. The old rate ends after the queue
 * has the new one, so the queue never names an index that may get the rate of somebody else
 * (modify_raw_packet_qp_sq()). */
static int raw_modify_sq(struct hv_qp *qp, uint8_t state, const struct hv_rate *rate)
{
    struct prm_modify_sq_in in[1] = {0};
    struct prm_sqc *sqc = PRM_PTR(modify_sq_in, in, ctx);
    struct hv_rate next = state == PRM_SQC_STATE_RDY ? *rate : (struct hv_rate){0};
    uint16_t index = qp->rate_index, old = index;
    int err = 0;

    if (!raw_rates_are_equal(&next, &qp->rate)) {
        err = raw_add_rate(qp, &next, &index);
        PRM_SET(modify_sq_in, in, modify_bitmask, PRM_MODIFY_SQ_PACKET_PACING_RATE_LIMIT_INDEX);
        PRM_SET(sqc, sqc, packet_pacing_rate_limit_index, index);
    }
    if (err) {
        return err;
    }
    PRM_SET(modify_sq_in, in, opcode, PRM_CMD_OP_MODIFY_SQ);
    PRM_SET(modify_sq_in, in, uid, qp->uid);
    PRM_SET(modify_sq_in, in, sq_state, qp->sq_state);
    PRM_SET(modify_sq_in, in, sqn, qp->sqn);
    PRM_SET(sqc, sqc, state, state);
    err = hv_cmd_simple(qp->hca, in, sizeof(in));
    if (raw_rates_are_equal(&next, &qp->rate)) {
        qp->sq_state = err ? qp->sq_state : state;
        return err;
    }
    hv_rate_remove(qp->hca, err ? index : old);
    if (!err) {
        qp->sq_state = state;
        qp->rate = next;
        qp->rate_index = index;
    }
    return err;
}

static int raw_query_sq(struct hv_qp *qp)
{
    struct prm_query_sq_in in[1] = {0};
    struct prm_query_sq_out out[1];
    int err;

    PRM_SET(query_sq_in, in, opcode, PRM_CMD_OP_QUERY_SQ);
    PRM_SET(query_sq_in, in, sqn, qp->sqn);
    err = hv_cmd(qp->hca, in, sizeof(in), out, sizeof(out));
    if (!err) {
        qp->sq_state = (uint8_t)PRM_GET(sqc, PRM_PTR(query_sq_out, out, sq_context), state);
    }
    return err;
}

/* -- the receive half --------------------------------------------------------------------------
 */

static int raw_create_tir(struct hv_qp *qp, struct prm_create_tir_in *in)
{
    struct prm_create_tir_out out[1] = {0};
    int err;

    PRM_SET(create_tir_in, in, opcode, PRM_CMD_OP_CREATE_TIR);
    PRM_SET(create_tir_in, in, uid, qp->uid);
    PRM_SET(tirc, PRM_PTR(create_tir_in, in, ctx), transport_domain,
            hv_context(qp->ibv.context)->tdn);
    PRM_SET(tirc, PRM_PTR(create_tir_in, in, ctx), tunneled_offload_en, qp->tunnels);
    err = hv_cmd(qp->hca, in, PRM_SIZE(create_tir_in), out, sizeof(out));
    qp->tirn = PRM_GET(create_tir_out, out, tirn);
    return err;
}

static int raw_create_direct_tir(struct hv_qp *qp)
{
    struct prm_create_tir_in in[1] = {0};
    struct prm_tirc *tirc = PRM_PTR(create_tir_in, in, ctx);

    PRM_SET(tirc, tirc, disp_type, PRM_TIRC_DISP_TYPE_DIRECT);
    PRM_SET(tirc, tirc, inline_rqn, qp->rqn);
    return raw_create_tir(qp, in);
}

static int raw_create_rq(struct hv_qp *qp)
{
    size_t size = (size_t)qp->rq.wqe_cnt << qp->rq.wqe_shift;
    size_t len = PRM_SIZE(create_rq_in) + 8 * hv_ring_pages(qp->rq.buf, size);
    g_autofree struct prm_create_rq_in *in = g_malloc0(len);
    struct prm_create_rq_out out[1] = {0};
    struct prm_rqc *rqc = PRM_PTR(create_rq_in, in, ctx);
    int err;

    PRM_SET(create_rq_in, in, opcode, PRM_CMD_OP_CREATE_RQ);
    PRM_SET(create_rq_in, in, uid, qp->uid);
    PRM_SET(rqc, rqc, vsd, !qp->strip_vlan);
    PRM_SET(rqc, rqc, scatter_fcs, qp->scatter_fcs);
    PRM_SET(rqc, rqc, mem_rq_type, PRM_RQC_MEM_RQ_TYPE_MEMORY_RQ_INLINE);
    PRM_SET(rqc, rqc, state, PRM_RQC_STATE_RST);
    PRM_SET(rqc, rqc, flush_in_error_en, 1);
    PRM_SET(rqc, rqc, user_index, (uint32_t)qp->uidx);
    PRM_SET(rqc, rqc, cqn, qp->recv_cq->cqn);
    PRM_SET(rqc, rqc, ts_format, hv_cq_ts_format(qp->recv_cq));
    raw_fill_wq(qp, PRM_PTR(rqc, rqc, wq), &qp->rq);
    PRM_SET(wq, PRM_PTR(rqc, rqc, wq), end_padding_mode, qp->end_padding);
    err = hv_cmd(qp->hca, in, len, out, sizeof(out));
    if (err) {
        return err;
    }
    qp->rqn = PRM_GET(create_rq_out, out, rqn);
    err = raw_create_direct_tir(qp);
    if (err) {
        raw_destroy_part(qp, PRM_CMD_OP_DESTROY_RQ, qp->rqn);
    }
    return err;
}

static int raw_modify_rq(struct hv_qp *qp, uint8_t state)
{
    struct prm_modify_rq_in in[1] = {0};
    int err;

    PRM_SET(modify_rq_in, in, opcode, PRM_CMD_OP_MODIFY_RQ);
    PRM_SET(modify_rq_in, in, uid, qp->uid);
    PRM_SET(modify_rq_in, in, rq_state, qp->rq_state);
    PRM_SET(modify_rq_in, in, rqn, qp->rqn);
    PRM_SET(rqc, PRM_PTR(modify_rq_in, in, ctx), state, state);
    err = hv_cmd_simple(qp->hca, in, sizeof(in));
    qp->rq_state = err ? qp->rq_state : state;
    return err;
}

static int raw_query_rq(struct hv_qp *qp)
{
    struct prm_query_rq_in in[1] = {0};
    struct prm_query_rq_out out[1];
    int err;

    PRM_SET(query_rq_in, in, opcode, PRM_CMD_OP_QUERY_RQ);
    PRM_SET(query_rq_in, in, rqn, qp->rqn);
    err = hv_cmd(qp->hca, in, sizeof(in), out, sizeof(out));
    if (!err) {
        qp->rq_state = (uint8_t)PRM_GET(rqc, PRM_PTR(query_rq_out, out, rq_context), state);
    }
    return err;
}

/* -- the QP ------------------------------------------------------------------------------------
 */

int hv_raw_create(struct hv_qp *qp)
{
    int err = 0;

    if (!qp->sq.wqe_cnt && !qp->rq.wqe_cnt) {
        return EINVAL;
    }
    if (qp->sq.wqe_cnt) {
        err = raw_create_sq(qp);
    }
    if (!err && qp->rq.wqe_cnt) {
        err = raw_create_rq(qp);
        if (err) {
            raw_destroy_sq(qp);
        }
    }
    qp->ibv.qp_num = qp->sq.wqe_cnt ? qp->sqn : qp->rqn;
    qp->rx_csum_valid = true;
    return err;
}

int hv_raw_destroy(struct hv_qp *qp)
{
    int err =
        qp->ind || qp->rq.wqe_cnt ? raw_destroy_part(qp, PRM_CMD_OP_DESTROY_TIR, qp->tirn) : 0;

    if (!err && qp->rq.wqe_cnt) {
        err = raw_destroy_part(qp, PRM_CMD_OP_DESTROY_RQ, qp->rqn);
    }
    return err ? err : raw_destroy_sq(qp);
}

/* The states of the two queues for each state of the QP. The RQ is ready from INIT on. */
static const struct {
    uint8_t rq, sq;
} queue_states[] = {
    [IBV_QPS_RESET] = {PRM_RQC_STATE_RST, PRM_SQC_STATE_RST},
    [IBV_QPS_INIT] = {PRM_RQC_STATE_RDY, PRM_SQC_STATE_RST},
    [IBV_QPS_RTR] = {PRM_RQC_STATE_RDY, PRM_SQC_STATE_RST},
    [IBV_QPS_RTS] = {PRM_RQC_STATE_RDY, PRM_SQC_STATE_RDY},
    [IBV_QPS_SQD] = {PRM_RQC_STATE_RDY, PRM_SQC_STATE_RDY},
    [IBV_QPS_SQE] = {PRM_RQC_STATE_RDY, PRM_SQC_STATE_ERR},
    [IBV_QPS_ERR] = {PRM_RQC_STATE_ERR, PRM_SQC_STATE_ERR},
};

int hv_raw_modify(struct hv_qp *qp, enum ibv_qp_state to, const struct hv_rate *rate)
{
    uint8_t rq_to = queue_states[to].rq, sq_to = queue_states[to].sq;
    int err = 0;

    if (qp->rq.wqe_cnt && qp->rq_state != rq_to) {
        err = raw_modify_rq(qp, rq_to);
    }
    if (!err && qp->sq.wqe_cnt &&
        (qp->sq_state != sq_to || !raw_rates_are_equal(rate, &qp->rate))) {
        err = raw_modify_sq(qp, sq_to, rate);
    }
    return err;
}

/* The queues only tell if the device has found an error (mlx5_ib sqrq_state_to_qp_state()). INIT,
 * RTR and RTS are the same for them, so the last state that was set is returned. */
int hv_raw_query_state(struct hv_qp *qp, enum ibv_qp_state *state)
{
    bool rq_failed, sq_failed, sends = qp->sq.wqe_cnt, receives = qp->rq.wqe_cnt;
    int err = sends ? raw_query_sq(qp) : 0;

    if (!err && receives) {
        err = raw_query_rq(qp);
    }
    if (err) {
        return err;
    }
    sq_failed = sends && qp->sq_state == PRM_SQC_STATE_ERR;
    rq_failed = receives && qp->rq_state == PRM_RQC_STATE_ERR;
    if (rq_failed && sq_failed != sends) {
        return EINVAL; /* these two states do not form a state of a QP */
    }
    *state = rq_failed ? IBV_QPS_ERR : sq_failed && receives ? IBV_QPS_SQE : qp->state;
    return 0;
}

/* -- RSS ---------------------------------------------------------------------------------------
 */

#define IPV4 (IBV_RX_HASH_SRC_IPV4 | IBV_RX_HASH_DST_IPV4)
#define IPV6 (IBV_RX_HASH_SRC_IPV6 | IBV_RX_HASH_DST_IPV6)
#define TCP  (IBV_RX_HASH_SRC_PORT_TCP | IBV_RX_HASH_DST_PORT_TCP)
#define UDP  (IBV_RX_HASH_SRC_PORT_UDP | IBV_RX_HASH_DST_PORT_UDP)
#define SRC  (IBV_RX_HASH_SRC_IPV4 | IBV_RX_HASH_SRC_IPV6)
#define DST  (IBV_RX_HASH_DST_IPV4 | IBV_RX_HASH_DST_IPV6)
#define SPRT (IBV_RX_HASH_SRC_PORT_TCP | IBV_RX_HASH_SRC_PORT_UDP)
#define DPRT (IBV_RX_HASH_DST_PORT_TCP | IBV_RX_HASH_DST_PORT_UDP)

/* Fills in the fields to hash: of at most one network protocol and one transport protocol. Returns
 * 0 or errno. */
static int raw_fill_hash(struct prm_rx_hash_field_select *select, uint64_t fields)
{
    uint32_t selected = 0;

    if (fields & ~(uint64_t)(IPV4 | IPV6 | TCP | UDP)) {
        return EOPNOTSUPP;
    }
    if ((fields & IPV4 && fields & IPV6) || (fields & TCP && fields & UDP)) {
        return EINVAL;
    }
    selected |= fields & SRC ? 1u << PRM_RX_HASH_FIELD_SRC_IP : 0;
    selected |= fields & DST ? 1u << PRM_RX_HASH_FIELD_DST_IP : 0;
    selected |= fields & SPRT ? 1u << PRM_RX_HASH_FIELD_L4_SPORT : 0;
    selected |= fields & DPRT ? 1u << PRM_RX_HASH_FIELD_L4_DPORT : 0;
    PRM_SET(rx_hash_field_select, select, l3_prot_type,
            fields & IPV6 ? PRM_L3_PROT_TYPE_IPV6 : PRM_L3_PROT_TYPE_IPV4);
    PRM_SET(rx_hash_field_select, select, l4_prot_type,
            fields & UDP ? PRM_L4_PROT_TYPE_UDP : PRM_L4_PROT_TYPE_TCP);
    PRM_SET(rx_hash_field_select, select, selected_fields, selected);
    return 0;
}

int hv_rss_create(struct hv_qp *qp, const struct ibv_rx_hash_conf *conf)
{
    struct prm_create_tir_in in[1] = {0};
    struct prm_tirc *tirc = PRM_PTR(create_tir_in, in, ctx);
    /* the fields are those of the inner headers */
    bool inner = conf->rx_hash_fields_mask & IBV_RX_HASH_INNER;
    uint64_t fields = conf->rx_hash_fields_mask & ~(uint64_t)IBV_RX_HASH_INNER;
    const size_t key_len =
        PRM_OFFSET(tirc, rx_hash_field_selector_outer) - PRM_OFFSET(tirc, rx_hash_toeplitz_key);
    int err;

    if (conf->rx_hash_function != IBV_RX_HASH_FUNC_TOEPLITZ || (inner && !qp->tunnels)) {
        return EOPNOTSUPP;
    }
    /* without fields, only one queue can be selected */
    if (conf->rx_hash_key_len != key_len || (!fields && qp->ind->num > 1)) {
        return EINVAL;
    }
    PRM_SET(tirc, tirc, disp_type, PRM_TIRC_DISP_TYPE_INDIRECT);
    PRM_SET(tirc, tirc, indirect_table, qp->ind->rqtn);
    PRM_SET(tirc, tirc, rx_hash_fn, PRM_RX_HASH_FN_TOEPLITZ);
    memcpy(PRM_PTR(tirc, tirc, rx_hash_toeplitz_key), conf->rx_hash_key, key_len);
    err = raw_fill_hash(inner ? PRM_PTR(tirc, tirc, rx_hash_field_selector_inner)
                              : PRM_PTR(tirc, tirc, rx_hash_field_selector_outer),
                        fields);
    return err ? err : raw_create_tir(qp, in);
}
