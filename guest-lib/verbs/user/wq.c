/* SPDX-License-Identifier: BSD-2-Clause */
/* Separate work queues (RQs), and the indirection tables from which an RSS QP selects. */
#include <string.h>
#include "guest-lib/verbs/user/cq.h"
#include "guest-lib/verbs/user/qp.h"

#define MIN_RING 64
#define DATA_SEG PRM_SIZE(wqe_data_seg)

static uint32_t wq_power_of_two(uint32_t n)
{
    return n <= 1 ? 1 : 1u << g_bit_storage(n - 1);
}

/* -- posting -----------------------------------------------------------------------------------
 */

static int wq_post_recv(struct ibv_wq *ibwq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
    struct hv_rwq *wq = hv_rwq(ibwq);
    int err;

    if (!hv_is_ours(wq->hca)) {
        *bad_wr = wr;
        return EIO;
    }
    pthread_spin_lock(&wq->rq.lock);
    err = hv_rq_post(&wq->rq, wr, bad_wr);
    if (err) {
        err = hv_rq_refuse(wq->hca, &wq->rq, *bad_wr, err, "post_wq_recv");
    }
    __atomic_store_n(&wq->dbrec[0], GUINT32_TO_BE(wq->rq.head & 0xffff), __ATOMIC_RELEASE);
    pthread_spin_unlock(&wq->rq.lock);
    return err;
}

/* -- creation ----------------------------------------------------------------------------------
 */

/* Bytes of a WQE before its data segments: WQEs of a striding queue begin with a next segment. */
static uint32_t wq_first_segment(const struct hv_rwq *wq)
{
    return wq->log_strides ? PRM_SIZE(wqe_srq_next_seg) : 0;
}

/* Chooses sizes, rounded up as in libmlx5: 0 or errno. */
static int wq_choose_size(struct hv_rwq *wq, const struct ibv_wq_init_attr *attr)
{
    uint32_t first = wq_first_segment(wq), stride;
    uint32_t max_stride = HV_CAP(wq->hca, max_wqe_sz_rq) - first;

    if (!attr->max_wr || attr->max_wr > 1u << HV_CAP(wq->hca, log_max_qp_sz) ||
        attr->max_sge > max_stride / DATA_SEG) {
        return hv_refuse(wq->hca, EINVAL,
                         "create_wq: max_wr is %u and max_sge %u; they may be 1 to %u and 0 to %u",
                         attr->max_wr, attr->max_sge, 1u << HV_CAP(wq->hca, log_max_qp_sz),
                         (uint32_t)(max_stride / DATA_SEG));
    }
    stride = wq_power_of_two(MAX(attr->max_sge, 1) * DATA_SEG + first);
    wq->rq.wqe_shift = (uint32_t)g_bit_storage(stride) - 1;
    wq->rq.wqe_cnt = MAX(wq_power_of_two(attr->max_wr), MIN_RING / stride);
    wq->rq.max_post = wq->rq.wqe_cnt;
    wq->rq.max_gs = (stride - first) / DATA_SEG;
    wq->ring_size = hv_whole_pages((size_t)wq->rq.wqe_cnt * stride);
    return 0;
}

static void wq_free_memory(struct hv_rwq *wq)
{
    if (wq->dbrec) {
        hv_db_free(hv_context(wq->ibv.context), wq->pd, wq->dbrec, wq->dbrec_from);
    }
    if (wq->ring) {
        hv_buf_free(wq->pd, wq->ring, wq->ring_size, MLX5DV_RES_TYPE_RWQ, wq->ring_from);
    }
}

static void wq_free(struct hv_rwq *wq)
{
    if (wq->uidx >= 0) {
        hv_uidx_free(hv_context(wq->ibv.context), (uint32_t)wq->uidx);
    }
    free(wq->rq.wrid);
    free(wq->strides_used);
    pthread_mutex_destroy(&wq->ibv.mutex);
    pthread_cond_destroy(&wq->ibv.cond);
    pthread_spin_destroy(&wq->rq.lock);
    free(wq);
}

static int wq_alloc_memory(struct hv_rwq *wq, struct hv_context *ctx)
{
    wq->ring = hv_buf_alloc(wq->pd, wq->ring_size, PCI_PAGE, MLX5DV_RES_TYPE_RWQ, &wq->ring_from);
    if (!wq->ring) {
        return ENOMEM;
    }
    wq->rq.buf = wq->ring + wq_first_segment(wq);
    wq->rq.wrid = calloc(wq->rq.wqe_cnt, sizeof(*wq->rq.wrid));
    wq->strides_used = wq->log_strides ? calloc(wq->rq.wqe_cnt, sizeof(*wq->strides_used)) : NULL;
    if (!wq->rq.wrid || (wq->log_strides && !wq->strides_used)) {
        return ENOMEM;
    }
    wq->dbrec = hv_db_alloc(ctx, wq->pd, &wq->dbrec_from);
    wq->uidx = wq->dbrec ? hv_uidx_alloc(ctx, HV_RSC_RWQ, wq) : -1;
    if (wq->uidx >= 0 && (shadow_is(wq->ring) || shadow_is(wq->dbrec))) {
        wq->rq.gpu_max = wq->rq.max_post;
        wq->rq.max_post = 0;
        return shadow_flush(wq->dbrec, HV_DBREC_SIZE) ? 0 : EFAULT;
    }
    return wq->uidx < 0 ? ENOMEM : 0;
}

/* The checks of the attributes by libibverbs, then by the kernel: 0 or errno. */
static int wq_check_attr(struct hv_hca *hca, const struct ibv_wq_init_attr *attr)
{
    const uint32_t possible = IBV_WQ_FLAGS_CVLAN_STRIPPING |
                              (HV_ETH_CAP(hca, scatter_fcs) ? IBV_WQ_FLAGS_SCATTER_FCS : 0) |
                              (HV_CAP(hca, rq_delay_drop) ? IBV_WQ_FLAGS_DELAY_DROP : 0) |
                              (HV_CAP(hca, end_pad) ? IBV_WQ_FLAGS_PCI_WRITE_END_PADDING : 0);
    bool has_flags = attr->comp_mask & IBV_WQ_INIT_ATTR_FLAGS;

    if (attr->comp_mask >= IBV_WQ_INIT_ATTR_RESERVED) {
        return EINVAL;
    }
    return has_flags && attr->create_flags & ~possible ? EOPNOTSUPP : 0;
}

/* Takes the options of direct verbs: 0 or errno. */
static int wq_take_strides(struct hv_rwq *wq, const struct mlx5dv_wq_init_attr *dv)
{
    const struct mlx5dv_striding_rq_init_attr *strides = &dv->striding_rq_attrs;
    uint32_t least =
        HV_CAP(wq->hca, ext_stride_num_range) ? HV_MIN_LOG_STRIDES_EXT : HV_MIN_LOG_STRIDES;

    if (dv->comp_mask & ~(uint64_t)MLX5DV_WQ_INIT_ATTR_MASK_STRIDING_RQ) {
        return EINVAL;
    }
    if (!dv->comp_mask) {
        return 0;
    }
    if (!HV_CAP(wq->hca, striding_rq)) {
        return hv_refuse(wq->hca, EINVAL, "create_wq: the device has no striding RQs");
    }
    if (strides->single_stride_log_num_of_bytes < HV_MIN_LOG_STRIDE ||
        strides->single_stride_log_num_of_bytes > HV_MAX_LOG_STRIDE ||
        strides->single_wqe_log_num_of_strides < least ||
        strides->single_wqe_log_num_of_strides > HV_MAX_LOG_STRIDES) {
        return hv_refuse(wq->hca, EINVAL,
                         "create_wq: a stride has 2^%u bytes and a WQE 2^%u strides; they may "
                         "be %u to %u and %u to %u",
                         strides->single_stride_log_num_of_bytes,
                         strides->single_wqe_log_num_of_strides, HV_MIN_LOG_STRIDE,
                         HV_MAX_LOG_STRIDE, least, HV_MAX_LOG_STRIDES);
    }
    wq->log_stride = (uint8_t)strides->single_stride_log_num_of_bytes;
    wq->log_strides = (uint8_t)strides->single_wqe_log_num_of_strides;
    wq->stride_shift = strides->two_byte_shift_en;
    return 0;
}

struct ibv_wq *hv_wq_create(struct ibv_context *context, struct ibv_wq_init_attr *attr,
                            const struct mlx5dv_wq_init_attr *dv)
{
    struct hv_context *ctx = hv_context(context);
    struct hv_rwq *wq;
    int err;

    if (attr->wq_type != IBV_WQT_RQ || !attr->pd || !attr->cq) {
        errno =
            hv_refuse(ctx->hca, EINVAL, "create_wq: a WQ needs wq_type IBV_WQT_RQ, a PD and a CQ");
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
    wq->ibv.post_recv = wq_post_recv;
    err = dv ? wq_take_strides(wq, dv) : 0;
    err = err ? err : wq_choose_size(wq, attr);
    err = err ? err : wq_check_attr(ctx->hca, attr);
    err = err ? err : wq_alloc_memory(wq, ctx);
    pthread_mutex_init(&wq->ibv.mutex, NULL);
    pthread_cond_init(&wq->ibv.cond, NULL);
    err = err ? err
              : uverbs_create_wq(wq,
                                 attr->comp_mask & IBV_WQ_INIT_ATTR_FLAGS ? attr->create_flags : 0);
    if (err) {
        wq_free_memory(wq);
        wq_free(wq);
        errno = err;
        return NULL;
    }
    attr->max_wr = wq->rq.max_post + wq->rq.gpu_max;
    attr->max_sge = wq->rq.max_gs;
    return &wq->ibv;
}

static struct ibv_wq *create_wq(struct ibv_context *context, struct ibv_wq_init_attr *attr)
{
    return hv_wq_create(context, attr, NULL);
}

static int destroy_wq(struct ibv_wq *ibwq)
{
    struct hv_rwq *wq = hv_rwq(ibwq);
    struct user_cq *cq = user_cq(ibwq->cq);
    int err = hv_kernel(uverbs_destroy_wq(wq));

    if (err) {
        return err;
    }
    hv_event_drain_wq(wq);
    cq_lock(cq);
    hv_cq_clean(cq, (uint32_t)wq->uidx, NULL);
    hv_uidx_free(hv_context(ibwq->context), (uint32_t)wq->uidx);
    wq->uidx = -1;
    cq_unlock(cq);
    wq_free_memory(wq);
    uverbs_use_wq(wq, -1); /* its parent domain's free() is not called any more */
    wq_free(wq);
    return 0;
}

/* -- states ------------------------------------------------------------------------------------
 */

/* Empties the queue, which begins again at 0 after RESET. */
static void wq_reset_ring(struct hv_rwq *wq)
{
    struct user_cq *cq = user_cq(wq->ibv.cq);

    cq_lock(cq);
    hv_cq_clean(cq, (uint32_t)wq->uidx, NULL);
    cq_unlock(cq);
    wq->rq.head = wq->rq.tail = 0;
    if (wq->strides_used) {
        memset(wq->strides_used, 0, wq->rq.wqe_cnt * sizeof(*wq->strides_used));
    }
    wq->dbrec[0] = 0;
    shadow_flush(wq->dbrec, HV_DBREC_SIZE);
}

static int modify_wq(struct ibv_wq *ibwq, struct ibv_wq_attr *attr)
{
    bool to_ready = attr->attr_mask & IBV_WQ_ATTR_STATE && attr->wq_state == IBV_WQS_RDY;

    if (to_ready && attr->attr_mask & IBV_WQ_ATTR_CURR_STATE &&
        attr->curr_wq_state != ibwq->state) {
        return -EINVAL; /* libmlx5 returns it negative */
    }
    if (to_ready && ibwq->state == IBV_WQS_RESET) {
        wq_reset_ring(hv_rwq(ibwq));
    }
    return hv_kernel(uverbs_modify_wq(hv_rwq(ibwq), attr));
}

/* -- indirection tables ------------------------------------------------------------------------
 */

static struct ibv_rwq_ind_table *wq_create_ind_table(struct ibv_context *context,
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
    table->ibv.context = context;
    if (hv_kernel(uverbs_create_ind_table(table))) {
        free(table);
        return NULL;
    }
    return &table->ibv;
}

static int wq_destroy_ind_table(struct ibv_rwq_ind_table *ibtable)
{
    struct hv_ind_table *table = (struct hv_ind_table *)ibtable;
    int err = hv_kernel(uverbs_destroy_ind_table(table));

    if (!err) {
        free(table);
    }
    return err;
}

void hv_wq_ops(struct verbs_context *ops)
{
    ops->create_wq = create_wq;
    ops->modify_wq = modify_wq;
    ops->destroy_wq = destroy_wq;
    ops->create_rwq_ind_table = wq_create_ind_table;
    ops->destroy_rwq_ind_table = wq_destroy_ind_table;
}
