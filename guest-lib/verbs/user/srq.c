/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared receive queues and their rings: ordinary ones, XRC SRQs, and those with tag matching.
 *
 * The WQEs are a linked list that the device follows: each WQE's next segment names the WQE that is
 * posted after it. A completed WQE is appended to the list. The last WQE in the list is never
 * posted, so that there is always one to append to.
 *
 * A device may give a receive back whose pages are not present (a responder's error CQE with the
 * syndromes that cq_take_own() looks for). The library posts it again, and the program hears
 * nothing of it. Such a WQE may still be in use by the device for a while. So if the device allows
 * it, the ring has twice as many WQEs: those beyond wqe_cnt form a second list. The WQE that was
 * given back is appended there, and the first WQE of that list takes its place (libmlx5:
 * mlx5_complete_odp_fault()).
 */
#include "guest-lib/verbs/user/tm.h"
#include "guest-lib/verbs/user/trace.h"

#define NEXT_SEG        PRM_SIZE(wqe_srq_next_seg)
#define DATA_SEG        PRM_SIZE(wqe_data_seg)
#define WQE_MIN         32
#define TERMINATOR_LKEY 0x100 /* ends a scatter list */

static void srq_lock(struct hv_srq *srq)
{
    if (!srq->single_threaded) {
        pthread_spin_lock(&srq->lock);
    }
}

static void srq_unlock(struct hv_srq *srq)
{
    if (!srq->single_threaded) {
        pthread_spin_unlock(&srq->lock);
    }
}

/* -- WQEs ---------------------------------------------------------------------------------------
 */

static struct prm_wqe_srq_next_seg *srq_wqe_at(const struct hv_srq *srq, uint32_t index)
{
    return (void *)(srq->ring + ((size_t)index << srq->wqe_shift));
}

static uint32_t srq_next_of(const struct hv_srq *srq, uint32_t index)
{
    return PRM_GET(wqe_srq_next_seg, srq_wqe_at(srq, index), next_wqe_index);
}

static void srq_set_next(struct hv_srq *srq, uint32_t index, uint32_t next)
{
    PRM_SET(wqe_srq_next_seg, srq_wqe_at(srq, index), next_wqe_index, next);
}

void hv_srq_free_wqe(struct hv_srq *srq, uint16_t index)
{
    if (srq->on_gpu) {
        return;
    }
    srq_lock(srq);
    srq_set_next(srq, srq->tail, index);
    srq->tail = index;
    srq_unlock(srq);
}

static bool srq_rests(const struct hv_srq *srq)
{
    return srq->ring_cnt > srq->wqe_cnt;
}

/* Posts the scatter list of a WQE again, in the WQE at the head. */
static void srq_repost(struct hv_srq *srq, uint32_t index)
{
    struct prm_wqe_srq_next_seg *to = srq_wqe_at(srq, srq->head), *from = srq_wqe_at(srq, index);

    if (to != from) {
        memcpy(to + 1, from + 1, ((size_t)1 << srq->wqe_shift) - NEXT_SEG);
        srq->wrid[srq->head] = srq->wrid[index];
    }
    srq->head = srq_next_of(srq, srq->head);
    srq->counter++;
    __atomic_store_n(srq->dbrec, GUINT32_TO_BE((uint32_t)srq->counter), __ATOMIC_RELEASE);
}

void hv_srq_fault(struct hv_srq *srq, uint16_t index)
{
    uint32_t last = index;

    if (srq->on_gpu) {
        return;
    }
    srq_lock(srq);
    if (srq_rests(srq)) {
        srq_set_next(srq, srq->rest_tail, index);
        srq->rest_tail = index;
        last = srq->rest_head;
        srq->rest_head = srq_next_of(srq, srq->rest_head);
    }
    srq_set_next(srq, srq->tail, last);
    srq->tail = last;
    srq_repost(srq, index);
    srq_unlock(srq);
}

static void srq_write_wqe(struct hv_srq *srq, struct prm_wqe_srq_next_seg *wqe,
                          const struct ibv_recv_wr *wr)
{
    struct prm_wqe_data_seg *seg = (void *)(wqe + 1);

    for (int i = 0; i < wr->num_sge; i++, seg++) {
        PRM_SET(wqe_data_seg, seg, byte_count, wr->sg_list[i].length & 0x7fffffff);
        PRM_SET(wqe_data_seg, seg, lkey, wr->sg_list[i].lkey);
        PRM_SET(wqe_data_seg, seg, addr, wr->sg_list[i].addr);
    }
    if ((uint32_t)wr->num_sge < srq->max_gs) {
        PRM_SET(wqe_data_seg, seg, byte_count, 0);
        PRM_SET(wqe_data_seg, seg, lkey, TERMINATOR_LKEY);
        PRM_SET(wqe_data_seg, seg, addr, 0);
    }
}

static int post_srq_recv(struct ibv_srq *ibsrq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
    struct hv_srq *srq = hv_srq(ibsrq);
    uint16_t posted = 0;
    int err = 0;

    if (!hv_is_ours(srq->hca)) {
        *bad_wr = wr;
        return EIO;
    }
    srq_lock(srq);
    for (; wr; wr = wr->next, posted++) {
        if (wr->num_sge < 0 || (uint32_t)wr->num_sge > srq->max_gs) {
            err = hv_refuse(srq->hca, EINVAL, "post_srq_recv: num_sge is %d; max_sge is %u",
                            wr->num_sge, srq->max_gs);
        } else if (srq->head == srq->tail && srq->on_gpu) {
            err = hv_refuse(srq->hca, EOPNOTSUPP, "post_srq_recv: " HV_GPU_POSTS, "SRQ");
        } else if (srq->head == srq->tail) {
            err =
                hv_refuse(srq->hca, ENOMEM,
                          "post_srq_recv: the SRQ is full: %u WRs wait to be completed and polled",
                          srq->wqe_cnt - 1);
        }
        if (err) {
            *bad_wr = wr;
            break;
        }
        srq->wrid[srq->head] = wr->wr_id;
        srq_write_wqe(srq, srq_wqe_at(srq, srq->head), wr);
        if (G_UNLIKELY(hv_traces)) {
            hv_trace_receive(srq->hca, true, srq->srqn, srq->head, wr->wr_id);
        }
        srq->head = srq_next_of(srq, srq->head);
    }
    if (posted) {
        srq->counter = (uint16_t)(srq->counter + posted);
        /* the WQEs are written before the doorbell record counts them */
        __atomic_store_n(srq->dbrec, GUINT32_TO_BE((uint32_t)srq->counter), __ATOMIC_RELEASE);
    }
    srq_unlock(srq);
    return err;
}

/* -- creation -----------------------------------------------------------------------------------
 */

static uint32_t srq_power_of_two(uint32_t n)
{
    return 1u << (n > 1 ? g_bit_storage(n - 1) : 0);
}

/* Chooses counts and sizes, rounded up as in libmlx5 (mlx5_alloc_srq_buf()): 0 or EINVAL. */
static int srq_choose_size(struct hv_srq *srq, const struct ibv_srq_attr *attr)
{
    uint32_t max_wqes = 1u << HV_CAP(srq->hca, log_max_srq_sz);
    uint32_t max_wqe_size = HV_CAP(srq->hca, max_wqe_sz_rq);
    uint32_t size;

    if (attr->max_wr >= max_wqes) {
        return hv_refuse(srq->hca, EINVAL, "create_srq: max_wr is %u; the device allows %u",
                         attr->max_wr, max_wqes - 1);
    }
    if (attr->max_sge > max_wqe_size / DATA_SEG) {
        return hv_refuse(srq->hca, EINVAL, "create_srq: max_sge is %u; the device allows %u",
                         attr->max_sge, (uint32_t)((max_wqe_size - NEXT_SEG) / DATA_SEG));
    }
    srq->wqe_cnt = srq_power_of_two(attr->max_wr + 1);
    srq->ring_cnt = srq_power_of_two(2 * attr->max_wr + 1);
    if (2 * attr->max_wr + 1 > max_wqes) {
        srq->ring_cnt = srq->wqe_cnt;
    }
    size = MAX(NEXT_SEG + attr->max_sge * DATA_SEG, WQE_MIN);
    srq->wqe_shift = (uint32_t)g_bit_storage(size - 1);
    if (1u << srq->wqe_shift > max_wqe_size) {
        return hv_refuse(srq->hca, EINVAL, "create_srq: max_sge is %u; the device allows %u",
                         attr->max_sge, (uint32_t)((max_wqe_size - NEXT_SEG) / DATA_SEG));
    }
    srq->max_gs = ((1u << srq->wqe_shift) - NEXT_SEG) / DATA_SEG;
    srq->ring_size = (size_t)srq->ring_cnt << srq->wqe_shift;
    return 0;
}

/* Only a GPU posts to the SRQ: for posts by this library it looks full. Returns 0 or errno. */
static int srq_leave_to_gpu(struct hv_srq *srq)
{
    if (srq->type == IBV_SRQT_TM) {
        return hv_tm_refuse_gpu(srq);
    }
    srq->head = srq->tail;
    return shadow_flush(srq->ring, srq->ring_size) && shadow_flush(srq->dbrec, HV_DBREC_SIZE)
               ? 0
               : EFAULT;
}

static int srq_alloc_memory(struct hv_srq *srq)
{
    struct hv_context *ctx = hv_context(srq->ibv.context);

    srq->ring =
        hv_buf_alloc(srq->pd, srq->ring_size, PCI_PAGE, MLX5DV_RES_TYPE_SRQ, &srq->ring_from);
    srq->wrid = srq->ring ? calloc(srq->ring_cnt, sizeof(*srq->wrid)) : NULL;
    srq->dbrec = srq->wrid ? hv_db_alloc(ctx, srq->pd, &srq->dbrec_from) : NULL;
    if (!srq->dbrec) {
        return ENOMEM;
    }
    for (uint32_t i = 0; i + 1 < srq->wqe_cnt; i++) {
        srq_set_next(srq, i, i + 1);
    }
    for (uint32_t i = srq->wqe_cnt; i + 1 < srq->ring_cnt; i++) {
        srq_set_next(srq, i, i + 1);
    }
    srq->head = 0;
    srq->tail = srq->wqe_cnt - 1;
    srq->rest_head = srq->wqe_cnt;
    srq->rest_tail = srq->ring_cnt - 1;
    srq->on_gpu = shadow_is(srq->ring) || shadow_is(srq->dbrec);
    return srq->on_gpu ? srq_leave_to_gpu(srq) : 0;
}

static void srq_free_memory(struct hv_srq *srq)
{
    struct hv_context *ctx = hv_context(srq->ibv.context);

    if (srq->dbrec) {
        hv_db_free(ctx, srq->pd, srq->dbrec, srq->dbrec_from);
    }
    if (srq->ring) {
        hv_buf_free(srq->pd, srq->ring, srq->ring_size, MLX5DV_RES_TYPE_SRQ, srq->ring_from);
    }
}

static void srq_free(struct hv_srq *srq)
{
    if (srq->uidx >= 0) {
        hv_uidx_free(hv_context(srq->ibv.context), (uint32_t)srq->uidx);
    }
    free(srq->wrid);
    pthread_mutex_destroy(&srq->ibv.mutex);
    pthread_cond_destroy(&srq->ibv.cond);
    pthread_spin_destroy(&srq->lock);
    free(srq->legacy);
    free(srq);
}

/* The checks of libibverbs before it asks the kernel (ibv_cmd_create_srq_ex()): 0 or errno. */
static int srq_check_ex(const struct ibv_srq_init_attr_ex *ex, enum ibv_srq_type type)
{
    bool has_cq = ex->comp_mask & IBV_SRQ_INIT_ATTR_CQ && ex->cq;

    if (type == IBV_SRQT_BASIC) {
        return 0;
    }
    if (ex->comp_mask >= IBV_SRQ_INIT_ATTR_RESERVED) {
        return EOPNOTSUPP;
    }
    if (!(ex->comp_mask & IBV_SRQ_INIT_ATTR_PD) || !has_cq) {
        return EINVAL;
    }
    if (type == IBV_SRQT_XRC) {
        return ex->comp_mask & IBV_SRQ_INIT_ATTR_XRCD && ex->xrcd ? 0 : EINVAL;
    }
    return ex->comp_mask & IBV_SRQ_INIT_ATTR_TM && ex->tm_cap.max_num_tags ? 0 : EINVAL;
}

struct ibv_srq *hv_srq_create(struct ibv_srq_init_attr_ex *ex, enum ibv_srq_type type)
{
    struct ibv_pd *pd = ex->pd;
    struct hv_context *ctx = hv_context(pd->context);
    struct hv_srq *srq = calloc(1, sizeof(*srq));
    int err;

    if (!srq) {
        return NULL;
    }
    pthread_spin_init(&srq->lock, PTHREAD_PROCESS_PRIVATE);
    srq->hca = ctx->hca;
    srq->pd = hv_pd(pd);
    srq->single_threaded = srq->pd->td != NULL;
    srq->type = type;
    srq->uidx = -1;
    srq->xrcd = type == IBV_SRQT_XRC ? (struct hv_xrcd *)ex->xrcd : NULL;
    srq->cq = type == IBV_SRQT_BASIC || !ex->cq ? NULL : hv_cq(ex->cq);
    srq->max_tags = type == IBV_SRQT_TM ? ex->tm_cap.max_num_tags : 0;
    srq->ibv.context = pd->context;
    srq->ibv.pd = pd;
    err = srq_choose_size(srq, &ex->attr);
    if (!err) {
        err = srq_alloc_memory(srq);
    }
    if (!err && type != IBV_SRQT_BASIC) {
        srq->uidx = hv_uidx_alloc(ctx, HV_RSC_XSRQ, srq);
        err = srq->uidx < 0 ? ENOMEM : 0;
    }
    pthread_mutex_init(&srq->ibv.mutex, NULL);
    pthread_cond_init(&srq->ibv.cond, NULL);
    err = err ? err : srq_check_ex(ex, type);
    err = err ? err : uverbs_create_srq(srq);
    if (err) {
        srq_free_memory(srq);
        srq_free(srq);
        errno = err;
        return NULL;
    }
    ex->attr.max_wr = srq->wqe_cnt - 1;
    ex->attr.max_sge = srq->max_gs;
    if (type == IBV_SRQT_TM) {
        err = hv_tm_create(srq, ex->tm_cap.max_ops);
        if (err) {
            ibv_destroy_srq(&srq->ibv);
            errno = err;
            return NULL;
        }
    }
    return &srq->ibv;
}

HV_EXPORT struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
    struct ibv_srq_init_attr_ex ex = {.attr = attr->attr, .pd = pd};
    struct ibv_srq *srq = hv_srq_create(&ex, IBV_SRQT_BASIC);

    if (srq) {
        srq->srq_context = attr->srq_context; /* libibverbs does not set it for other kinds */
        attr->attr = ex.attr;
    }
    return srq;
}

static struct ibv_srq *create_srq_ex(struct ibv_context *context, struct ibv_srq_init_attr_ex *attr)
{
    bool basic = !(attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE) || attr->srq_type == IBV_SRQT_BASIC;
    bool tm = !basic && attr->srq_type == IBV_SRQT_TM;

    if (!attr->pd || (!basic && !tm && attr->srq_type != IBV_SRQT_XRC) ||
        /* only extended polling can read the results of tag matching */
        (tm && (!attr->cq || !user_cq(attr->cq)->ex.start_poll))) {
        errno = EINVAL;
        return NULL;
    }
    return hv_srq_create(attr, basic ? IBV_SRQT_BASIC : attr->srq_type);
}

HV_EXPORT int ibv_destroy_srq(struct ibv_srq *ibsrq)
{
    struct hv_srq *srq = hv_srq(ibsrq);
    int err = srq->tm ? hv_tm_stop(srq) : 0;

    err = err ? err : hv_kernel(uverbs_destroy_srq(srq));
    if (err) {
        return err;
    }
    hv_event_drain_srq(srq);
    if (srq->cq) {
        struct user_cq *cq = user_cq(&srq->cq->ibv);

        cq_lock(cq);
        hv_cq_clean(cq, (uint32_t)srq->uidx, NULL);
        hv_uidx_free(hv_context(ibsrq->context), (uint32_t)srq->uidx);
        cq_unlock(cq);
        srq->uidx = -1;
    }
    if (srq->tm) {
        hv_tm_free(srq);
    }
    srq_free_memory(srq);
    uverbs_use_srq(srq, -1); /* its parent domain's free() is not called any more */
    srq_free(srq);
    return 0;
}

/* -- attributes ---------------------------------------------------------------------------------
 */

HV_EXPORT int ibv_modify_srq(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr, int attr_mask)
{
    return hv_kernel(uverbs_modify_srq(hv_srq(ibsrq), attr, attr_mask));
}

HV_EXPORT int ibv_query_srq(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr)
{
    struct hv_srq *srq = hv_srq(ibsrq);
    uint32_t limit;
    int err = hv_kernel(uverbs_query_srq(srq, &limit));

    if (err) {
        return err;
    }
    attr->max_wr = srq->ring_cnt - 1; /* as in mlx5_ib_query_srq(); the creator was told wqe_cnt */
    attr->max_sge = srq->max_gs;
    attr->srq_limit = limit;
    return 0;
}

static int get_srq_num(struct ibv_srq *srq, uint32_t *srq_num)
{
    *srq_num = hv_srq(srq)->srqn;
    return 0;
}

void hv_srq_ops(struct verbs_context *ops)
{
    ops->create_srq_ex = create_srq_ex;
    hv_tm_ops(ops);
    ops->get_srq_num = get_srq_num;
    ops->context.ops.post_srq_recv = post_srq_recv;
}
