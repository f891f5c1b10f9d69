/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared receive queues: ordinary ones, which are RMPs to the device as with mlx5_ib, and XRC
 * SRQs, which name their CQ.
 *
 * The WQEs are a linked list that the device follows: each one's next segment names the one
 * that is posted after it. A completed WQE goes to the list's end. The last one in the list is
 * never posted, so that there is always one to append to.
 */
#include <infiniband/mlx5dv.h>
#include "guest-lib/verbs/verbs.h"

#define NEXT_SEG        16
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

static uint8_t *wqe_at(const struct hv_srq *srq, uint32_t index)
{
    return srq->ring + ((size_t)index << srq->wqe_shift);
}

static uint32_t next_of(const struct hv_srq *srq, uint32_t index)
{
    return PRM_GET(wqe_srq_next_seg, wqe_at(srq, index), next_wqe_index);
}

static void set_next(struct hv_srq *srq, uint32_t index, uint32_t next)
{
    PRM_SET(wqe_srq_next_seg, wqe_at(srq, index), next_wqe_index, next);
}

void hv_srq_free_wqe(struct hv_srq *srq, uint16_t index)
{
    srq_lock(srq);
    set_next(srq, srq->tail, index);
    srq->tail = index;
    srq_unlock(srq);
}

static void write_wqe(struct hv_srq *srq, uint8_t *wqe, const struct ibv_recv_wr *wr)
{
    uint8_t *seg = wqe + NEXT_SEG;

    for (int i = 0; i < wr->num_sge; i++, seg += DATA_SEG) {
        PRM_SET(wqe_data_seg, seg, byte_count, wr->sg_list[i].length);
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
            err = EINVAL;
        } else if (srq->head == srq->tail) {
            err = ENOMEM;
        }
        if (err) {
            *bad_wr = wr;
            break;
        }
        srq->wrid[srq->head] = wr->wr_id;
        write_wqe(srq, wqe_at(srq, srq->head), wr);
        srq->head = next_of(srq, srq->head);
    }
    if (posted) {
        srq->counter = (uint16_t)(srq->counter + posted);
        /* the WQEs are written before the doorbell record says that they are */
        __atomic_store_n(srq->dbrec, GUINT32_TO_BE((uint32_t)srq->counter), __ATOMIC_RELEASE);
    }
    srq_unlock(srq);
    return err;
}

/* -- commands -----------------------------------------------------------------------------------
 */

/* XRC SRQs are the kernel's (mlx5_ib create_srq_user()). */
static uint16_t srq_uid(const struct hv_srq *srq)
{
    return srq->type == IBV_SRQT_XRC ? 0 : hv_context(srq->ibv.context)->uid;
}

static void set_pas(uint8_t *pas, const struct hv_srq *srq)
{
    for (uint64_t i = 0; i < srq->ring_size / PCI_PAGE; i++) {
        prm_store64(pas + 8 * i, (uintptr_t)srq->ring + i * PCI_PAGE);
    }
}

static int create_rmp(struct hv_srq *srq)
{
    size_t len = PRM_SIZE(create_rmp_in) + 8 * (srq->ring_size / PCI_PAGE);
    g_autofree uint8_t *in = g_malloc0(len);
    uint8_t out[PRM_SIZE(create_rmp_out)] = {0};
    uint8_t *rmpc = PRM_PTR(create_rmp_in, in, ctx), *wq = PRM_PTR(rmpc, rmpc, wq);
    int err;

    PRM_SET(create_rmp_in, in, opcode, PRM_CMD_OP_CREATE_RMP);
    PRM_SET(create_rmp_in, in, uid, srq_uid(srq));
    PRM_SET(rmpc, rmpc, state, PRM_RMPC_STATE_RDY);
    PRM_SET(wq, wq, wq_type, PRM_WQ_TYPE_LINKED_LIST);
    PRM_SET(wq, wq, log_wq_stride, srq->wqe_shift);
    PRM_SET(wq, wq, log_wq_sz, (uint32_t)g_bit_storage(srq->wqe_cnt) - 1);
    PRM_SET(wq, wq, pd, srq->pd->pdn);
    PRM_SET(wq, wq, dbr_addr, (uintptr_t)srq->dbrec);
    set_pas(PRM_PTR(wq, wq, pas), srq);
    err = hv_cmd(srq->hca, in, len, out, sizeof(out));
    srq->srqn = PRM_GET(create_rmp_out, out, rmpn);
    return err;
}

static int create_xrc_srq(struct hv_srq *srq)
{
    size_t len = PRM_SIZE(create_xrc_srq_in) + 8 * (srq->ring_size / PCI_PAGE);
    g_autofree uint8_t *in = g_malloc0(len);
    uint8_t out[PRM_SIZE(create_xrc_srq_out)] = {0};
    uint8_t *ctx = PRM_PTR(create_xrc_srq_in, in, xrc_srq_context_entry);
    uint64_t dbr = (uintptr_t)srq->dbrec;
    int err;

    PRM_SET(create_xrc_srq_in, in, opcode, PRM_CMD_OP_CREATE_XRC_SRQ);
    PRM_SET(create_xrc_srq_in, in, uid, srq_uid(srq));
    PRM_SET(xrc_srqc, ctx, log_xrc_srq_size, (uint32_t)g_bit_storage(srq->wqe_cnt) - 1);
    PRM_SET(xrc_srqc, ctx, log_rq_stride, srq->wqe_shift - 4);
    PRM_SET(xrc_srqc, ctx, xrcd, srq->xrcd->xrcdn);
    PRM_SET(xrc_srqc, ctx, cqn, srq->cq->cqn);
    PRM_SET(xrc_srqc, ctx, user_index, (uint32_t)srq->uidx);
    PRM_SET(xrc_srqc, ctx, pd, srq->pd->pdn);
    PRM_SET(xrc_srqc, ctx, db_record_addr_h, (uint32_t)(dbr >> 32));
    PRM_SET(xrc_srqc, ctx, db_record_addr_l, (uint32_t)dbr >> 2);
    set_pas(PRM_PTR(create_xrc_srq_in, in, pas), srq);
    err = hv_cmd(srq->hca, in, len, out, sizeof(out));
    srq->srqn = PRM_GET(create_xrc_srq_out, out, xrc_srqn);
    return err;
}

static int destroy_cmd(struct hv_srq *srq)
{
    uint8_t rmp[PRM_SIZE(destroy_rmp_in)] = {0}, xrc[PRM_SIZE(destroy_xrc_srq_in)] = {0};

    if (srq->type == IBV_SRQT_XRC) {
        PRM_SET(destroy_xrc_srq_in, xrc, opcode, PRM_CMD_OP_DESTROY_XRC_SRQ);
        PRM_SET(destroy_xrc_srq_in, xrc, uid, srq_uid(srq));
        PRM_SET(destroy_xrc_srq_in, xrc, xrc_srqn, srq->srqn);
        return hv_cmd_simple(srq->hca, xrc, sizeof(xrc));
    }
    PRM_SET(destroy_rmp_in, rmp, opcode, PRM_CMD_OP_DESTROY_RMP);
    PRM_SET(destroy_rmp_in, rmp, uid, srq_uid(srq));
    PRM_SET(destroy_rmp_in, rmp, rmpn, srq->srqn);
    return hv_cmd_simple(srq->hca, rmp, sizeof(rmp));
}

static int arm(struct hv_srq *srq, uint16_t limit)
{
    uint8_t rmp[PRM_SIZE(modify_rmp_in)] = {0}, xrc[PRM_SIZE(arm_xrc_srq_in)] = {0};
    uint8_t *rmpc = PRM_PTR(modify_rmp_in, rmp, ctx);

    if (srq->type == IBV_SRQT_XRC) {
        PRM_SET(arm_xrc_srq_in, xrc, opcode, PRM_CMD_OP_ARM_XRC_SRQ);
        PRM_SET(arm_xrc_srq_in, xrc, op_mod, PRM_ARM_XRC_SRQ_OP_XRC_SRQ);
        PRM_SET(arm_xrc_srq_in, xrc, uid, srq_uid(srq));
        PRM_SET(arm_xrc_srq_in, xrc, xrc_srqn, srq->srqn);
        PRM_SET(arm_xrc_srq_in, xrc, lwm, limit);
        return hv_cmd_simple(srq->hca, xrc, sizeof(xrc));
    }
    PRM_SET(modify_rmp_in, rmp, opcode, PRM_CMD_OP_MODIFY_RMP);
    PRM_SET(modify_rmp_in, rmp, uid, srq_uid(srq));
    PRM_SET(modify_rmp_in, rmp, rmp_state, PRM_RMPC_STATE_RDY);
    PRM_SET(modify_rmp_in, rmp, rmpn, srq->srqn);
    PRM_SET(rmp_bitmask, PRM_PTR(modify_rmp_in, rmp, bitmask), lwm, 1);
    PRM_SET(rmpc, rmpc, state, PRM_RMPC_STATE_RDY);
    PRM_SET(wq, PRM_PTR(rmpc, rmpc, wq), lwm, limit);
    return hv_cmd_simple(srq->hca, rmp, sizeof(rmp));
}

static int query_limit(struct hv_srq *srq, uint32_t *limit)
{
    int err;

    if (srq->type == IBV_SRQT_XRC) {
        uint8_t in[PRM_SIZE(query_xrc_srq_in)] = {0}, out[PRM_SIZE(query_xrc_srq_out)] = {0};

        PRM_SET(query_xrc_srq_in, in, opcode, PRM_CMD_OP_QUERY_XRC_SRQ);
        PRM_SET(query_xrc_srq_in, in, xrc_srqn, srq->srqn);
        err = hv_cmd(srq->hca, in, sizeof(in), out, sizeof(out));
        *limit = PRM_GET(xrc_srqc, PRM_PTR(query_xrc_srq_out, out, xrc_srq_context_entry), lwm);
    } else {
        uint8_t in[PRM_SIZE(query_rmp_in)] = {0}, out[PRM_SIZE(query_rmp_out)] = {0};
        uint8_t *rmpc = PRM_PTR(query_rmp_out, out, rmp_context);

        PRM_SET(query_rmp_in, in, opcode, PRM_CMD_OP_QUERY_RMP);
        PRM_SET(query_rmp_in, in, rmpn, srq->srqn);
        err = hv_cmd(srq->hca, in, sizeof(in), out, sizeof(out));
        *limit = PRM_GET(wq, PRM_PTR(rmpc, rmpc, wq), lwm);
    }
    return err;
}

/* -- creation -----------------------------------------------------------------------------------
 */

/* Counts and sizes, rounded up as libmlx5 does: 0 or EINVAL. */
static int choose_size(struct hv_srq *srq, const struct ibv_srq_attr *attr)
{
    uint32_t max_wqes = 1u << HV_CAP(srq->hca, log_max_srq_sz);
    uint32_t max_wqe_size = HV_CAP(srq->hca, max_wqe_sz_rq);
    uint32_t size;

    if (attr->max_wr >= max_wqes || attr->max_sge > max_wqe_size / DATA_SEG) {
        return EINVAL;
    }
    srq->wqe_cnt = 1u << (attr->max_wr ? g_bit_storage(attr->max_wr) : 0);
    size = MAX(NEXT_SEG + attr->max_sge * DATA_SEG, WQE_MIN);
    srq->wqe_shift = (uint32_t)g_bit_storage(size - 1);
    if (1u << srq->wqe_shift > max_wqe_size) {
        return EINVAL;
    }
    srq->max_gs = ((1u << srq->wqe_shift) - NEXT_SEG) / DATA_SEG;
    srq->ring_size =
        (((size_t)srq->wqe_cnt << srq->wqe_shift) + PCI_PAGE - 1) & ~(size_t)(PCI_PAGE - 1);
    return 0;
}

static int alloc_memory(struct hv_srq *srq)
{
    struct hv_context *ctx = hv_context(srq->ibv.context);

    srq->ring = hv_buf_alloc(srq->pd, srq->ring_size, MLX5DV_RES_TYPE_SRQ, &srq->ring_custom);
    srq->wrid = srq->ring ? calloc(srq->wqe_cnt, sizeof(*srq->wrid)) : NULL;
    srq->dbrec = srq->wrid ? hv_db_alloc(ctx, srq->pd, &srq->dbrec_custom) : NULL;
    if (!srq->dbrec) {
        return ENOMEM;
    }
    for (uint32_t i = 0; i + 1 < srq->wqe_cnt; i++) {
        set_next(srq, i, i + 1);
    }
    srq->head = 0;
    srq->tail = srq->wqe_cnt - 1;
    return 0;
}

static void free_srq(struct hv_srq *srq)
{
    struct hv_context *ctx = hv_context(srq->ibv.context);

    if (srq->uidx >= 0) {
        hv_uidx_free(ctx, (uint32_t)srq->uidx);
    }
    if (srq->dbrec) {
        hv_db_free(ctx, srq->pd, srq->dbrec, srq->dbrec_custom);
    }
    if (srq->ring) {
        hv_buf_free(srq->pd, srq->ring, srq->ring_size, MLX5DV_RES_TYPE_SRQ, srq->ring_custom);
    }
    free(srq->wrid);
    pthread_spin_destroy(&srq->lock);
    free(srq);
}

/* What is named by handle (ib_uverbs_create_srq()): 0 or errno. */
static int check_handles(const struct hv_srq *srq)
{
    int err = srq->xrcd ? hv_xrcd_check(&srq->xrcd->ibv) : 0;

    if (!err && srq->cq) {
        err = hv_cq_check(&srq->cq->ibv);
    }
    return err ? err : hv_pd_check(srq->ibv.pd);
}

/* Creates either kind; attr's sizes become those of the queue. */
static struct ibv_srq *create(struct ibv_pd *pd, enum ibv_srq_type type, void *srq_context,
                              struct ibv_srq_attr *attr, struct hv_xrcd *xrcd, struct hv_cq *cq)
{
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
    srq->xrcd = xrcd;
    srq->cq = cq;
    srq->ibv.context = pd->context;
    srq->ibv.srq_context = srq_context;
    srq->ibv.pd = pd;
    err = choose_size(srq, attr);
    if (!err) {
        err = alloc_memory(srq);
    }
    if (!err && type == IBV_SRQT_XRC) {
        srq->uidx = hv_uidx_alloc(ctx, HV_RSC_XSRQ, srq);
        err = srq->uidx < 0 ? ENOMEM : 0;
    }
    err = err ? err : check_handles(srq);
    if (!err) {
        err = type == IBV_SRQT_XRC ? create_xrc_srq(srq) : create_rmp(srq);
    }
    if (err) {
        free_srq(srq);
        errno = err;
        return NULL;
    }
    srq->ibv.handle = hv_handle_add(pd->context, HV_HANDLE_SRQ, srq);
    pthread_mutex_init(&srq->ibv.mutex, NULL);
    pthread_cond_init(&srq->ibv.cond, NULL);
    hv_pd_use(pd, 1);
    if (type == IBV_SRQT_XRC) {
        g_atomic_int_inc(&xrcd->refs);
        g_atomic_int_inc(&cq->users);
    }
    attr->max_wr = srq->wqe_cnt - 1;
    attr->max_sge = srq->max_gs;
    hv_event_add_srq(srq->hca, srq);
    return &srq->ibv;
}

HV_EXPORT struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
    return create(pd, IBV_SRQT_BASIC, attr->srq_context, &attr->attr, NULL, NULL);
}

static struct ibv_srq *create_srq_ex(struct ibv_context *context, struct ibv_srq_init_attr_ex *attr)
{
    const uint32_t xrc_mask = IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;

    if (attr->comp_mask >= IBV_SRQ_INIT_ATTR_RESERVED) {
        errno = EOPNOTSUPP;
        return NULL;
    }
    if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_PD)) {
        errno = EINVAL;
        return NULL;
    }
    if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE) || attr->srq_type == IBV_SRQT_BASIC) {
        return create(attr->pd, IBV_SRQT_BASIC, attr->srq_context, &attr->attr, NULL, NULL);
    }
    /* the device has no tag matching: its list may have no entries */
    if (attr->srq_type != IBV_SRQT_XRC || (attr->comp_mask & xrc_mask) != xrc_mask || !attr->cq ||
        !attr->xrcd) {
        errno = EINVAL;
        return NULL;
    }
    return create(attr->pd, IBV_SRQT_XRC, attr->srq_context, &attr->attr,
                  (struct hv_xrcd *)attr->xrcd, hv_cq(attr->cq));
}

/* ib_uverbs_destroy_srq(): 0 or errno. */
static int destroy_device_srq(struct hv_srq *srq)
{
    int err = hv_srq_check(&srq->ibv);

    if (!err && g_atomic_int_get(&srq->users)) {
        err = EBUSY;
    }
    err = err ? err : destroy_cmd(srq);
    if (!err) {
        hv_handle_del(srq->ibv.context, srq->ibv.handle);
    }
    return err;
}

HV_EXPORT int ibv_destroy_srq(struct ibv_srq *ibsrq)
{
    struct hv_srq *srq = hv_srq(ibsrq);
    int err = hv_kernel(destroy_device_srq(srq));

    if (err) {
        return err;
    }
    hv_event_del_srq(srq->hca, srq);
    hv_event_drain_srq(srq);
    if (srq->type == IBV_SRQT_XRC) {
        hv_cq_lock(srq->cq);
        hv_cq_clean(srq->cq, (uint32_t)srq->uidx, NULL);
        hv_uidx_free(hv_context(ibsrq->context), (uint32_t)srq->uidx);
        hv_cq_unlock(srq->cq);
        srq->uidx = -1;
        g_atomic_int_add(&srq->xrcd->refs, -1);
        g_atomic_int_add(&srq->cq->users, -1);
    }
    hv_pd_use(ibsrq->pd, -1);
    pthread_mutex_destroy(&ibsrq->mutex);
    pthread_cond_destroy(&ibsrq->cond);
    free_srq(srq);
    return 0;
}

/* -- attributes ---------------------------------------------------------------------------------
 */

/* ib_uverbs_modify_srq(), mlx5_ib_modify_srq(): 0 or errno. */
static int modify(struct hv_srq *srq, const struct ibv_srq_attr *attr, int attr_mask)
{
    int err = hv_srq_check(&srq->ibv);

    if (err || (attr_mask & IBV_SRQ_MAX_WR)) {
        return err ? err : EINVAL;
    }
    if (!(attr_mask & IBV_SRQ_LIMIT)) {
        return 0;
    }
    return attr->srq_limit >= srq->wqe_cnt ? EINVAL : arm(srq, (uint16_t)attr->srq_limit);
}

HV_EXPORT int ibv_modify_srq(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr, int attr_mask)
{
    return hv_kernel(modify(hv_srq(ibsrq), attr, attr_mask));
}

HV_EXPORT int ibv_query_srq(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr)
{
    struct hv_srq *srq = hv_srq(ibsrq);
    uint32_t limit;
    int err = hv_srq_check(ibsrq);

    err = hv_kernel(err ? err : query_limit(srq, &limit));
    if (err) {
        return err;
    }
    attr->max_wr = srq->wqe_cnt - 1;
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
    ops->get_srq_num = get_srq_num;
    ops->context.ops.post_srq_recv = post_srq_recv;
}
