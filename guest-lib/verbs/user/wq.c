/* SPDX-License-Identifier: BSD-2-Clause */
/* Work queues of their own (RQs), and tables of them that an RSS QP picks from. */
#include <infiniband/mlx5dv.h>
#include <string.h>
#include "guest-lib/verbs/user/qp.h"

#define MIN_RING  64
#define DATA_SEG  PRM_SIZE(wqe_data_seg)
#define RQ_STATES 3

static uint32_t power_of_two(uint32_t n)
{
    return n <= 1 ? 1 : 1u << g_bit_storage(n - 1);
}

/* -- posting -----------------------------------------------------------------------------------
 */

static int post_recv(struct ibv_wq *ibwq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
    struct hv_rwq *wq = hv_rwq(ibwq);
    int err;

    if (!hv_is_ours(wq->hca)) {
        *bad_wr = wr;
        return EIO;
    }
    pthread_spin_lock(&wq->rq.lock);
    err = hv_rq_post(&wq->rq, wr, bad_wr);
    __atomic_store_n(&wq->dbrec[0], GUINT32_TO_BE(wq->rq.head & 0xffff), __ATOMIC_RELEASE);
    pthread_spin_unlock(&wq->rq.lock);
    return err;
}

/* -- creation ----------------------------------------------------------------------------------
 */

/* Sizes as libmlx5 rounds them up: 0 or errno. */
static int choose_size(struct hv_rwq *wq, const struct ibv_wq_init_attr *attr)
{
    uint32_t max_stride = HV_CAP(wq->hca, max_wqe_sz_rq), stride;

    if (!attr->max_wr || attr->max_wr > 1u << HV_CAP(wq->hca, log_max_qp_sz) ||
        attr->max_sge > max_stride / DATA_SEG) {
        return EINVAL;
    }
    stride = power_of_two(MAX(attr->max_sge, 1)) * DATA_SEG;
    wq->rq.wqe_shift = (uint32_t)g_bit_storage(stride) - 1;
    wq->rq.wqe_cnt = MAX(power_of_two(attr->max_wr), MIN_RING / stride);
    wq->rq.max_post = wq->rq.wqe_cnt;
    wq->rq.max_gs = stride / DATA_SEG;
    wq->ring_size = ((size_t)wq->rq.wqe_cnt * stride + PCI_PAGE - 1) & ~(size_t)(PCI_PAGE - 1);
    return 0;
}

static int create_rq(struct hv_rwq *wq, const struct ibv_wq_init_attr *attr)
{
    struct hv_context *ctx = hv_context(wq->ibv.context);
    size_t pages = wq->ring_size / PCI_PAGE, len = PRM_SIZE(create_rq_in) + 8 * pages;
    uint32_t flags = attr->comp_mask & IBV_WQ_INIT_ATTR_FLAGS ? attr->create_flags : 0;
    g_autofree uint8_t *in = g_malloc0(len);
    uint8_t out[PRM_SIZE(create_rq_out)] = {0};
    uint8_t *rqc = PRM_PTR(create_rq_in, in, ctx), *ring = PRM_PTR(rqc, rqc, wq);
    int err;

    PRM_SET(create_rq_in, in, opcode, PRM_CMD_OP_CREATE_RQ);
    PRM_SET(create_rq_in, in, uid, ctx->uid);
    PRM_SET(rqc, rqc, vsd, !(flags & IBV_WQ_FLAGS_CVLAN_STRIPPING));
    PRM_SET(rqc, rqc, mem_rq_type, PRM_RQC_MEM_RQ_TYPE_MEMORY_RQ_INLINE);
    PRM_SET(rqc, rqc, state, PRM_RQC_STATE_RST);
    PRM_SET(rqc, rqc, flush_in_error_en, 1);
    PRM_SET(rqc, rqc, user_index, (uint32_t)wq->uidx);
    PRM_SET(rqc, rqc, cqn, hv_cq(wq->ibv.cq)->cqn);
    PRM_SET(wq, ring, wq_type, PRM_WQ_TYPE_CYCLIC);
    PRM_SET(wq, ring, end_padding_mode, !!(flags & IBV_WQ_FLAGS_PCI_WRITE_END_PADDING));
    PRM_SET(wq, ring, pd, hv_real_pd(wq->ibv.pd)->pdn);
    PRM_SET(wq, ring, dbr_addr, (uintptr_t)wq->dbrec);
    PRM_SET(wq, ring, log_wq_stride, wq->rq.wqe_shift);
    PRM_SET(wq, ring, log_wq_sz, g_bit_storage(wq->rq.wqe_cnt) - 1);
    for (size_t i = 0; i < pages; i++) {
        prm_store64(PRM_PTR(wq, ring, pas) + 8 * i, (uintptr_t)wq->ring + i * PCI_PAGE);
    }
    err = hv_cmd(wq->hca, in, len, out, sizeof(out));
    wq->rqn = PRM_GET(create_rq_out, out, rqn);
    return err;
}

static void free_wq(struct hv_rwq *wq)
{
    struct hv_context *ctx = hv_context(wq->ibv.context);

    if (wq->uidx >= 0) {
        hv_uidx_free(ctx, (uint32_t)wq->uidx);
    }
    if (wq->dbrec) {
        hv_db_free(ctx, wq->pd, wq->dbrec, wq->dbrec_custom);
    }
    if (wq->ring) {
        hv_buf_free(wq->pd, wq->ring, wq->ring_size, MLX5DV_RES_TYPE_RWQ, wq->ring_custom);
    }
    free(wq->rq.wrid);
    pthread_spin_destroy(&wq->rq.lock);
    free(wq);
}

static int alloc_memory(struct hv_rwq *wq, struct hv_context *ctx)
{
    wq->ring = hv_buf_alloc(wq->pd, wq->ring_size, MLX5DV_RES_TYPE_RWQ, &wq->ring_custom);
    wq->rq.buf = wq->ring;
    wq->rq.wrid = wq->ring ? calloc(wq->rq.wqe_cnt, sizeof(*wq->rq.wrid)) : NULL;
    wq->dbrec = wq->rq.wrid ? hv_db_alloc(ctx, wq->pd, &wq->dbrec_custom) : NULL;
    wq->uidx = wq->dbrec ? hv_uidx_alloc(ctx, HV_RSC_RWQ, wq) : -1;
    return wq->uidx < 0 ? ENOMEM : 0;
}

static struct ibv_wq *create_wq(struct ibv_context *context, struct ibv_wq_init_attr *attr)
{
    struct hv_context *ctx = hv_context(context);
    const uint32_t possible = IBV_WQ_FLAGS_CVLAN_STRIPPING |
                              (HV_CAP(ctx->hca, end_pad) ? IBV_WQ_FLAGS_PCI_WRITE_END_PADDING : 0);
    struct hv_rwq *wq;
    int err;

    if (attr->wq_type != IBV_WQT_RQ || !attr->pd || !attr->cq) {
        errno = EINVAL;
        return NULL;
    }
    if ((attr->comp_mask & ~(uint32_t)IBV_WQ_INIT_ATTR_FLAGS) ||
        (attr->comp_mask & IBV_WQ_INIT_ATTR_FLAGS && attr->create_flags & ~possible)) {
        errno = EOPNOTSUPP;
        return NULL;
    }
    wq = calloc(1, sizeof(*wq));
    if (!wq) {
        return NULL;
    }
    pthread_spin_init(&wq->rq.lock, PTHREAD_PROCESS_PRIVATE);
    wq->hca = ctx->hca;
    wq->uidx = -1;
    wq->pd = hv_pd(attr->pd);
    wq->ibv.context = context;
    wq->ibv.wq_context = attr->wq_context;
    wq->ibv.pd = attr->pd;
    wq->ibv.cq = attr->cq;
    wq->ibv.wq_type = attr->wq_type;
    wq->ibv.state = IBV_WQS_RESET;
    wq->ibv.post_recv = post_recv;
    err = choose_size(wq, attr);
    err = err ? err : alloc_memory(wq, ctx);
    err = err ? err : hv_pd_check(attr->pd);
    err = err ? err : hv_cq_check(attr->cq);
    err = err ? err : create_rq(wq, attr);
    if (err) {
        free_wq(wq);
        errno = err;
        return NULL;
    }
    wq->ibv.wq_num = wq->rqn;
    wq->ibv.handle = hv_handle_add(context, HV_HANDLE_WQ, wq);
    pthread_mutex_init(&wq->ibv.mutex, NULL);
    pthread_cond_init(&wq->ibv.cond, NULL);
    hv_event_add_wq(wq->hca, wq);
    hv_pd_use(attr->pd, 1);
    g_atomic_int_inc(&hv_cq(attr->cq)->users);
    attr->max_wr = wq->rq.max_post;
    attr->max_sge = wq->rq.max_gs;
    return &wq->ibv;
}

/* ib_uverbs_ex_destroy_wq(): 0 or errno. */
static int destroy_rq(struct hv_rwq *wq)
{
    uint8_t in[PRM_SIZE(destroy_rq_in)] = {0};
    int err = hv_wq_check(&wq->ibv);

    if (!err && g_atomic_int_get(&wq->users)) {
        err = EBUSY;
    }
    if (err) {
        return err;
    }
    PRM_SET(destroy_rq_in, in, opcode, PRM_CMD_OP_DESTROY_RQ);
    PRM_SET(destroy_rq_in, in, uid, hv_context(wq->ibv.context)->uid);
    PRM_SET(destroy_rq_in, in, rqn, wq->rqn);
    err = hv_cmd_simple(wq->hca, in, sizeof(in));
    if (!err) {
        hv_handle_del(wq->ibv.context, wq->ibv.handle);
    }
    return err;
}

static int destroy_wq(struct ibv_wq *ibwq)
{
    struct hv_rwq *wq = hv_rwq(ibwq);
    struct hv_cq *cq = hv_cq(ibwq->cq);
    int err = hv_kernel(destroy_rq(wq));

    if (err) {
        return err;
    }
    hv_event_del_wq(wq->hca, wq);
    hv_event_drain_wq(wq);
    hv_cq_lock(cq);
    hv_cq_clean(cq, (uint32_t)wq->uidx, NULL);
    hv_uidx_free(hv_context(ibwq->context), (uint32_t)wq->uidx);
    wq->uidx = -1;
    hv_cq_unlock(cq);
    g_atomic_int_add(&cq->users, -1);
    hv_pd_use(ibwq->pd, -1);
    pthread_mutex_destroy(&ibwq->mutex);
    pthread_cond_destroy(&ibwq->cond);
    free_wq(wq);
    return 0;
}

/* -- states ------------------------------------------------------------------------------------
 */

static uint8_t rq_state(enum ibv_wq_state state)
{
    static const uint8_t states[RQ_STATES] = {[IBV_WQS_RESET] = PRM_RQC_STATE_RST,
                                              [IBV_WQS_RDY] = PRM_RQC_STATE_RDY,
                                              [IBV_WQS_ERR] = PRM_RQC_STATE_ERR};

    return states[state];
}

/* From RESET the queue is empty, whatever was in it. */
static void reset_ring(struct hv_rwq *wq)
{
    struct hv_cq *cq = hv_cq(wq->ibv.cq);

    hv_cq_lock(cq);
    hv_cq_clean(cq, (uint32_t)wq->uidx, NULL);
    hv_cq_unlock(cq);
    wq->rq.head = wq->rq.tail = 0;
    wq->dbrec[0] = 0;
}

/* ib_uverbs_ex_modify_wq(), mlx5_ib_modify_wq(): 0 or errno. */
static int modify_rq(struct hv_rwq *wq, const struct ibv_wq_attr *attr)
{
    struct ibv_wq *ibwq = &wq->ibv;
    uint8_t in[PRM_SIZE(modify_rq_in)] = {0};
    uint8_t *rqc = PRM_PTR(modify_rq_in, in, ctx);
    enum ibv_wq_state from =
        attr->attr_mask & IBV_WQ_ATTR_CURR_STATE ? attr->curr_wq_state : ibwq->state;
    enum ibv_wq_state to = attr->attr_mask & IBV_WQ_ATTR_STATE ? attr->wq_state : from;
    int err = hv_wq_check(ibwq);

    if (err) {
        return err;
    }
    if ((unsigned)from >= RQ_STATES || (unsigned)to >= RQ_STATES) {
        return EINVAL;
    }
    PRM_SET(modify_rq_in, in, opcode, PRM_CMD_OP_MODIFY_RQ);
    PRM_SET(modify_rq_in, in, uid, hv_context(ibwq->context)->uid);
    PRM_SET(modify_rq_in, in, rq_state, rq_state(from));
    PRM_SET(modify_rq_in, in, rqn, wq->rqn);
    PRM_SET(rqc, rqc, state, rq_state(to));
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
    if (!err) {
        ibwq->state = to;
    }
    return err;
}

static int modify_wq(struct ibv_wq *ibwq, struct ibv_wq_attr *attr)
{
    bool to_ready = attr->attr_mask & IBV_WQ_ATTR_STATE && attr->wq_state == IBV_WQS_RDY;

    if (to_ready && attr->attr_mask & IBV_WQ_ATTR_CURR_STATE &&
        attr->curr_wq_state != ibwq->state) {
        return -EINVAL; /* libmlx5's sign */
    }
    if (to_ready && ibwq->state == IBV_WQS_RESET) {
        reset_ring(hv_rwq(ibwq));
    }
    return hv_kernel(modify_rq(hv_rwq(ibwq), attr));
}

/* -- indirection tables ------------------------------------------------------------------------
 */

/* ib_uverbs_ex_create_rwq_ind_table(): 0 or errno. */
static int create_rqt(struct hv_ind_table *table, struct ibv_context *context)
{
    size_t len = PRM_SIZE(create_rqt_in) + table->num * PRM_SIZE(rq_num);
    g_autofree uint8_t *in = g_malloc0(len);
    uint8_t out[PRM_SIZE(create_rqt_out)] = {0};
    uint8_t *rqtc = PRM_PTR(create_rqt_in, in, rqt_context);
    int err = 0;

    PRM_SET(create_rqt_in, in, opcode, PRM_CMD_OP_CREATE_RQT);
    PRM_SET(create_rqt_in, in, uid, hv_context(context)->uid);
    PRM_SET(rqtc, rqtc, rqt_actual_size, table->num);
    PRM_SET(rqtc, rqtc, rqt_max_size, table->num);
    for (unsigned i = 0; i < table->num && !err; i++) {
        err = hv_wq_check(&table->wqs[i]->ibv);
        PRM_SET(rq_num, rqtc + PRM_SIZE(rqtc) + i * PRM_SIZE(rq_num), rq_num, table->wqs[i]->rqn);
    }
    err = err ? err : hv_cmd(hv_hca_of(context), in, len, out, sizeof(out));
    table->rqtn = PRM_GET(create_rqt_out, out, rqtn);
    return err;
}

static struct ibv_rwq_ind_table *create_ind_table(struct ibv_context *context,
                                                  struct ibv_rwq_ind_table_init_attr *attr)
{
    struct hv_ind_table *table;
    unsigned num;

    if (attr->comp_mask || attr->log_ind_tbl_size > HV_CAP(hv_hca_of(context), log_max_rqt_size)) {
        errno = EINVAL;
        return NULL;
    }
    num = 1u << attr->log_ind_tbl_size;
    table = calloc(1, sizeof(*table) + num * sizeof(table->wqs[0]));
    if (!table) {
        return NULL;
    }
    table->num = num;
    for (unsigned i = 0; i < num; i++) {
        table->wqs[i] = hv_rwq(attr->ind_tbl[i]);
    }
    if (hv_kernel(create_rqt(table, context))) {
        free(table);
        return NULL;
    }
    for (unsigned i = 0; i < num; i++) {
        g_atomic_int_inc(&table->wqs[i]->users);
    }
    table->ibv.context = context;
    table->ibv.ind_tbl_num = (int)table->rqtn;
    table->ibv.ind_tbl_handle = (int)hv_handle_add(context, HV_HANDLE_IND_TABLE, table);
    return &table->ibv;
}

/* ib_uverbs_ex_destroy_rwq_ind_table(): 0 or errno. */
static int destroy_rqt(struct hv_ind_table *table)
{
    struct ibv_context *context = table->ibv.context;
    uint8_t in[PRM_SIZE(destroy_rqt_in)] = {0};
    int err = hv_ind_table_check(&table->ibv);

    if (!err && g_atomic_int_get(&table->users)) {
        err = EBUSY;
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
    }
    return err;
}

static int destroy_ind_table(struct ibv_rwq_ind_table *ibtable)
{
    struct hv_ind_table *table = (struct hv_ind_table *)ibtable;
    int err = hv_kernel(destroy_rqt(table));

    if (err) {
        return err;
    }
    for (unsigned i = 0; i < table->num; i++) {
        g_atomic_int_add(&table->wqs[i]->users, -1);
    }
    free(table);
    return 0;
}

void hv_eth_ops(struct verbs_context *ops)
{
    ops->create_wq = create_wq;
    ops->modify_wq = modify_wq;
    ops->destroy_wq = destroy_wq;
    ops->create_rwq_ind_table = create_ind_table;
    ops->destroy_rwq_ind_table = destroy_ind_table;
    hv_flow_ops(ops);
}
