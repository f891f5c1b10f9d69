/* SPDX-License-Identifier: BSD-2-Clause */
/* Separate work queues (RQs), and the indirection tables from which an RSS QP selects: commands. */
#include "guest-lib/verbs/kernel/events.h"
#include "guest-lib/verbs/kernel/hca.h"
#include "guest-lib/verbs/kernel/memlock.h"
#include "guest-lib/verbs/kernel/mkey.h"
#include "guest-lib/verbs/kernel/uverbs.h"

#define RQ_STATES 3

static int wq_destroy_rq(struct hv_rwq *wq)
{
    struct prm_destroy_rq_in in[1] = {0};

    PRM_SET(destroy_rq_in, in, opcode, PRM_CMD_OP_DESTROY_RQ);
    PRM_SET(destroy_rq_in, in, uid, hv_context(wq->ibv.context)->uid);
    PRM_SET(destroy_rq_in, in, rqn, wq->rqn);
    return hv_cmd_simple(wq->hca, in, sizeof(in));
}

/* MLX5_MAX_DELAY_DROP_TIMEOUT_MS, in units of 100 microseconds. */
#define WQ_DELAY_DROP_TIMEOUT 1000

static int wq_set_delay_drop(struct hv_hca *hca)
{
    struct prm_set_delay_drop_params_in in[1] = {0};

    PRM_SET(set_delay_drop_params_in, in, opcode, PRM_CMD_OP_SET_DELAY_DROP_PARAMS);
    PRM_SET(set_delay_drop_params_in, in, delay_drop_timeout, WQ_DELAY_DROP_TIMEOUT);
    return hv_cmd_simple(hca, in, sizeof(in));
}

/* The first WQ with delayed drop sets the timeout (set_delay_drop() of mlx5_ib). */
static int wq_begin_delay_drop(struct hv_hca *hca)
{
    int err = g_atomic_int_get(&hca->delays_drop) ? 0 : wq_set_delay_drop(hca);

    if (!err) {
        g_atomic_int_set(&hca->delays_drop, true);
    }
    return err;
}

void uverbs_delay_drop_event(struct hv_hca *hca)
{
    if (wq_set_delay_drop(hca)) {
        g_atomic_int_set(&hca->delays_drop, false);
    }
}

int uverbs_create_wq(struct hv_rwq *wq, uint32_t flags)
{
    struct hv_context *ctx = hv_context(wq->ibv.context);
    size_t len = PRM_SIZE(create_rq_in) + 8 * hv_ring_pages(wq->ring, wq->ring_size);
    g_autofree struct prm_create_rq_in *in = g_malloc0(len);
    struct prm_create_rq_out out[1] = {0};
    struct prm_rqc *rqc = PRM_PTR(create_rq_in, in, ctx);
    struct prm_wq *ring = PRM_PTR(rqc, rqc, wq);
    int err = hv_pd_check(wq->ibv.pd);

    err = err ? err : hv_cq_check(wq->ibv.cq);
    err = err ? err : hv_ring_check(wq->hca, "create_wq", wq->ring, HV_WQ_OFFSETS);
    err =
        err ? err : hv_pin_queue(wq->ibv.context, wq->ring, wq->ring_size, wq->dbrec, &wq->pinned);
    if (err) {
        return err;
    }
    PRM_SET(create_rq_in, in, opcode, PRM_CMD_OP_CREATE_RQ);
    PRM_SET(create_rq_in, in, uid, ctx->uid);
    PRM_SET(rqc, rqc, vsd, !(flags & IBV_WQ_FLAGS_CVLAN_STRIPPING));
    PRM_SET(rqc, rqc, scatter_fcs, !!(flags & IBV_WQ_FLAGS_SCATTER_FCS));
    PRM_SET(rqc, rqc, delay_drop_en, !!(flags & IBV_WQ_FLAGS_DELAY_DROP));
    PRM_SET(rqc, rqc, mem_rq_type, PRM_RQC_MEM_RQ_TYPE_MEMORY_RQ_INLINE);
    PRM_SET(rqc, rqc, state, PRM_RQC_STATE_RST);
    PRM_SET(rqc, rqc, flush_in_error_en, 1);
    PRM_SET(rqc, rqc, user_index, (uint32_t)wq->uidx);
    PRM_SET(rqc, rqc, cqn, hv_cq(wq->ibv.cq)->cqn);
    PRM_SET(rqc, rqc, ts_format, hv_cq_ts_format(hv_cq(wq->ibv.cq)));
    PRM_SET(wq, ring, wq_type,
            wq->log_strides ? PRM_WQ_TYPE_CYCLIC_STRIDING_RQ : PRM_WQ_TYPE_CYCLIC);
    if (wq->log_strides) {
        PRM_SET(wq, ring, log_wqe_stride_size, wq->log_stride - 6u);
        PRM_SET(wq, ring, log_wqe_num_of_strides, (wq->log_strides - 9u) & 0xf); /* signed */
        PRM_SET(wq, ring, two_byte_shift_en, wq->stride_shift);
    }
    PRM_SET(wq, ring, end_padding_mode, !!(flags & IBV_WQ_FLAGS_PCI_WRITE_END_PADDING));
    PRM_SET(wq, ring, pd, hv_real_pd(wq->ibv.pd)->pdn);
    PRM_SET(wq, ring, dbr_addr, (uintptr_t)shadow_real(wq->dbrec));
    PRM_SET(wq, ring, log_wq_stride, wq->rq.wqe_shift);
    PRM_SET(wq, ring, log_wq_sz, g_bit_storage(wq->rq.wqe_cnt) - 1);
    PRM_SET(wq, ring, page_offset, hv_ring_offset(wq->ring));
    hv_set_pas(PRM_PTR(wq, ring, pas), wq->ring, wq->ring_size);
    err = hv_cmd(wq->hca, in, len, out, sizeof(out));
    if (err) {
        hv_unpin_queue(wq->ibv.context, wq->dbrec, &wq->pinned);
        return err;
    }
    wq->rqn = wq->ibv.wq_num = PRM_GET(create_rq_out, out, rqn);
    if (flags & IBV_WQ_FLAGS_DELAY_DROP) {
        err = wq_begin_delay_drop(wq->hca);
        if (err) {
            wq_destroy_rq(wq);
            hv_unpin_queue(wq->ibv.context, wq->dbrec, &wq->pinned);
            return err;
        }
    }
    wq->ibv.handle = hv_handle_add(wq->ibv.context, HV_HANDLE_WQ, wq);
    hv_event_add_wq(wq->hca, wq);
    uverbs_use_wq(wq, 1);
    return 0;
}

void uverbs_use_wq(struct hv_rwq *wq, int change)
{
    uverbs_use_pd(wq->ibv.pd, change);
    g_atomic_int_add(&hv_cq(wq->ibv.cq)->users, change);
}

int uverbs_destroy_wq(struct hv_rwq *wq)
{
    int err = hv_wq_check(&wq->ibv);

    if (!err && g_atomic_int_get(&wq->users)) {
        err = hv_refuse(wq->hca, EBUSY, "destroy_wq: %d indirection tables use the WQ",
                        g_atomic_int_get(&wq->users));
    }
    if (err) {
        return err;
    }
    err = wq_destroy_rq(wq);
    if (!err) {
        hv_handle_del(wq->ibv.context, wq->ibv.handle);
        hv_event_del_wq(wq->hca, wq);
        hv_unpin_queue(wq->ibv.context, wq->dbrec, &wq->pinned);
    }
    return err;
}

static uint8_t wq_state_of(enum ibv_wq_state state)
{
    static const uint8_t states[RQ_STATES] = {[IBV_WQS_RESET] = PRM_RQC_STATE_RST,
                                              [IBV_WQS_RDY] = PRM_RQC_STATE_RDY,
                                              [IBV_WQS_ERR] = PRM_RQC_STATE_ERR};

    return states[state];
}

int uverbs_modify_wq(struct hv_rwq *wq, const struct ibv_wq_attr *attr)
{
    struct ibv_wq *ibwq = &wq->ibv;
    struct prm_modify_rq_in in[1] = {0};
    struct prm_rqc *rqc = PRM_PTR(modify_rq_in, in, ctx);
    enum ibv_wq_state from =
        attr->attr_mask & IBV_WQ_ATTR_CURR_STATE ? attr->curr_wq_state : ibwq->state;
    enum ibv_wq_state to = attr->attr_mask & IBV_WQ_ATTR_STATE ? attr->wq_state : from;
    int err = hv_wq_check(ibwq);

    if (err) {
        return err;
    }
    if (!attr->attr_mask || attr->attr_mask >= IBV_WQ_ATTR_RESERVED ||
        (unsigned)from >= RQ_STATES || (unsigned)to >= RQ_STATES) {
        return hv_refuse(wq->hca, EINVAL, "modify_wq: attr_mask is 0x%x, the change from %u to %u",
                         attr->attr_mask, (unsigned)from, (unsigned)to);
    }
    PRM_SET(modify_rq_in, in, opcode, PRM_CMD_OP_MODIFY_RQ);
    PRM_SET(modify_rq_in, in, uid, hv_context(ibwq->context)->uid);
    PRM_SET(modify_rq_in, in, rq_state, wq_state_of(from));
    PRM_SET(modify_rq_in, in, rqn, wq->rqn);
    PRM_SET(rqc, rqc, state, wq_state_of(to));
    if (attr->attr_mask & IBV_WQ_ATTR_FLAGS) {
        if (attr->flags_mask & ~(uint32_t)IBV_WQ_FLAGS_CVLAN_STRIPPING) {
            return EOPNOTSUPP;
        }
        if (attr->flags_mask & IBV_WQ_FLAGS_CVLAN_STRIPPING) {
            PRM_SET(modify_rq_in, in, modify_bitmask, PRM_MODIFY_RQ_VSD);
            PRM_SET(rqc, rqc, vsd, !(attr->flags & IBV_WQ_FLAGS_CVLAN_STRIPPING));
        }
    }
    err = hv_cmd_simple(wq->hca, in, sizeof(in));
    if (!err && attr->attr_mask & IBV_WQ_ATTR_STATE) {
        ibwq->state = to;
    }
    return err;
}

int uverbs_create_ind_table(struct hv_ind_table *table)
{
    struct ibv_context *context = table->ibv.context;
    size_t len = PRM_SIZE(create_rqt_in) + table->num * PRM_SIZE(rq_num);
    g_autofree struct prm_create_rqt_in *in = g_malloc0(len);
    struct prm_create_rqt_out out[1] = {0};
    struct prm_rqtc *rqtc = PRM_PTR(create_rqt_in, in, rqt_context);
    int err = 0;

    PRM_SET(create_rqt_in, in, opcode, PRM_CMD_OP_CREATE_RQT);
    PRM_SET(create_rqt_in, in, uid, hv_context(context)->uid);
    PRM_SET(rqtc, rqtc, rqt_actual_size, table->num);
    PRM_SET(rqtc, rqtc, rqt_max_size, table->num);
    for (unsigned i = 0; i < table->num && !err; i++) {
        err = hv_wq_check(&table->wqs[i]->ibv);
        PRM_SET(rq_num, PRM_PTR_AT(rqtc, rqtc, rq_num, i), rq_num, table->wqs[i]->rqn);
    }
    err = err ? err : hv_cmd(hv_hca_of(context), in, len, out, sizeof(out));
    if (err) {
        return err;
    }
    table->rqtn = PRM_GET(create_rqt_out, out, rqtn);
    table->ibv.ind_tbl_num = (int)table->rqtn;
    table->ibv.ind_tbl_handle = (int)hv_handle_add(context, HV_HANDLE_IND_TABLE, table);
    for (unsigned i = 0; i < table->num; i++) {
        g_atomic_int_inc(&table->wqs[i]->users);
    }
    return 0;
}

int uverbs_destroy_ind_table(struct hv_ind_table *table)
{
    struct ibv_context *context = table->ibv.context;
    struct prm_destroy_rqt_in in[1] = {0};
    int err = hv_ind_table_check(&table->ibv);

    if (!err && g_atomic_int_get(&table->users)) {
        err = hv_refuse(hv_hca_of(context), EBUSY,
                        "destroy_rwq_ind_table: %d QPs use the indirection table",
                        g_atomic_int_get(&table->users));
    }
    if (err) {
        return err;
    }
    PRM_SET(destroy_rqt_in, in, opcode, PRM_CMD_OP_DESTROY_RQT);
    PRM_SET(destroy_rqt_in, in, uid, hv_context(context)->uid);
    PRM_SET(destroy_rqt_in, in, rqtn, table->rqtn);
    err = hv_cmd_simple(hv_hca_of(context), in, sizeof(in));
    if (!err) {
        hv_handle_del(context, (uint32_t)table->ibv.ind_tbl_handle);
        for (unsigned i = 0; i < table->num; i++) {
            g_atomic_int_add(&table->wqs[i]->users, -1);
        }
    }
    return err;
}
