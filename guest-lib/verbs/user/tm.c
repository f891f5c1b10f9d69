/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tag matching: the library's side of an XRQ's list.
 *
 * An entry of the list has a number, its handle, by which program and device know it. Free entries
 * are a queue. One of them is never used, because the device must be told with each entry which
 * entry is next. An entry is free again when all completions that concern it have been polled: that
 * of its message, and that of each list operation for which the program wanted a completion.
 *
 * Both the device and the program count unexpected messages: if the program did not know of an
 * unexpected message when it added an entry, the entry may not match. Completions of list
 * operations contain the device's count; if it differs from the program's, they are marked
 * IBV_WC_TM_SYNC_REQ (mlx5_post_srq_ops(), handle_tag_matching()).
 */
#include "guest-lib/verbs/user/tm.h"
#include <string.h>
#include "guest-lib/verbs/user/cqe_data.h"
#include "guest-lib/verbs/user/qp.h"
#include "guest-lib/verbs/user/to_itself.h"

#define FLAG_SW_CNT  0x40u /* in the segment of a WQE */
#define FLAG_CQE_REQ 0x80u
#define SUCCESS      (1u << 31) /* in the first word of a list operation's CQE */
#define MAX_UNKNOWN  0x3fffu    /* unexpected messages that were not reported to the device */
/* Ends a scatter list. */
#define TERMINATOR_LKEY 0x100

struct tm_tag {
    struct tm_tag *next; /* next free entry */
    uint64_t wr_id;
    uint16_t unexpected; /* the program's count when the entry was added */
    uint8_t expect_cqe;  /* number of completions that are still to come */
    void *ptr;
    uint32_t size;
};

/* A list operation for which a completion was requested. */
struct tm_list_op {
    struct tm_tag *tag; /* NULL: it concerns no entry */
    uint64_t wr_id;
    uint32_t sq_head; /* the queue's head behind it */
};

struct hv_tm {
    struct user_qp *qp; /* the command QP */
    struct tm_tag *tags, *free_head, *free_tail;
    struct tm_list_op *ops; /* one for each basic block of the QP */
    uint32_t op_head, op_tail;
    uint32_t unexpected_in, unexpected_out; /* messages seen; messages reported to the device */
};

static void tm_lock(struct hv_srq *srq)
{
    if (!srq->single_threaded) {
        pthread_spin_lock(&srq->lock);
    }
}

static void tm_unlock(struct hv_srq *srq)
{
    if (!srq->single_threaded) {
        pthread_spin_unlock(&srq->lock);
    }
}

/* A completion that concerns the entry was polled, or will not come. */
static void tm_release(struct hv_tm *tm, struct tm_tag *tag)
{
    if (tag->expect_cqe && --tag->expect_cqe == 0) {
        tag->next = NULL;
        tm->free_tail->next = tag;
        tm->free_tail = tag;
    }
}

/* -- the command QP -----------------------------------------------------------------------------
 */

/* Connects the command QP to itself. It sends no messages. (libmlx5 gives it no path, which a
 * kernel accepts only for an InfiniBand port.) */
static int tm_connect(struct ibv_qp *qp)
{
    return hv_connect_to_itself(qp, &(const struct ibv_qp_attr){.path_mtu = IBV_MTU_256});
}

int hv_tm_refuse_gpu(struct hv_srq *srq)
{
    return hv_refuse(srq->hca, EOPNOTSUPP,
                     "create_srq: an SRQ with tag matching cannot lie in memory of a GPU, because "
                     "the library posts to it");
}

static int tm_create_qp(struct hv_srq *srq, uint32_t max_ops)
{
    struct ibv_qp_init_attr attr = {
        .qp_type = IBV_QPT_RC,
        .srq = &srq->ibv,
        .cap = {.max_send_wr = max_ops, .max_send_sge = 1},
        .send_cq = &srq->cq->ibv,
        .recv_cq = &srq->cq->ibv,
    };
    struct ibv_qp *qp = ibv_create_qp(srq->ibv.pd, &attr);
    int err;

    if (!qp) {
        return errno;
    }
    err = user_qp(qp)->sq.gpu_max ? hv_tm_refuse_gpu(srq) : tm_connect(qp);
    if (err) {
        ibv_destroy_qp(qp);
        return err;
    }
    srq->tm->qp = user_qp(qp);
    return 0;
}

void hv_tm_free(struct hv_srq *srq)
{
    free(srq->tm->tags);
    free(srq->tm->ops);
    free(srq->tm);
    srq->tm = NULL;
}

int hv_tm_create(struct hv_srq *srq, uint32_t max_ops)
{
    struct hv_tm *tm = calloc(1, sizeof(*tm));
    int err;

    if (!tm) {
        return ENOMEM;
    }
    srq->tm = tm;
    err = tm_create_qp(srq, max_ops);
    if (!err) {
        tm->tags = calloc((size_t)srq->max_tags + 1, sizeof(*tm->tags));
        tm->ops = calloc(MAX(tm->qp->sq.wqe_cnt, 1), sizeof(*tm->ops));
        err = tm->tags && tm->ops ? 0 : ENOMEM;
    }
    if (err) {
        if (tm->qp) {
            ibv_destroy_qp(&tm->qp->ibv);
        }
        hv_tm_free(srq);
        return err;
    }
    for (uint32_t i = 0; i < srq->max_tags; i++) {
        tm->tags[i].next = &tm->tags[i + 1];
    }
    tm->free_head = &tm->tags[0];
    tm->free_tail = &tm->tags[srq->max_tags];
    return 0;
}

int hv_tm_stop(struct hv_srq *srq)
{
    if (srq->tm->qp) {
        int err = ibv_destroy_qp(&srq->tm->qp->ibv);

        if (err) {
            return err;
        }
        srq->tm->qp = NULL;
    }
    return 0;
}

/* -- list operations ----------------------------------------------------------------------------
 */

/* A WQE of the command QP. */
struct tm_wqe {
    struct prm_wqe_ctrl_seg ctrl[1];
    struct prm_wqe_tm_seg tm[1];
    struct prm_wqe_data_seg data[1]; /* for an entry that is added */
};

static void tm_fill(struct tm_wqe *wqe, const struct ibv_ops_wr *wr, unsigned opcode,
                    uint32_t index)
{
    unsigned flags = wr->flags & IBV_OPS_SIGNALED ? FLAG_CQE_REQ : 0;

    if (wr->flags & IBV_OPS_TM_SYNC) {
        flags |= FLAG_SW_CNT;
        PRM_SET(wqe_tm_seg, wqe->tm, sw_cnt, wr->tm.unexpected_cnt & 0xffff);
    }
    PRM_SET(wqe_tm_seg, wqe->tm, opcode, opcode);
    PRM_SET(wqe_tm_seg, wqe->tm, flags, flags);
    PRM_SET(wqe_tm_seg, wqe->tm, index, index);
}

static void tm_fill_add(struct hv_tm *tm, struct tm_wqe *wqe, struct tm_tag *tag,
                        const struct ibv_ops_wr *wr)
{
    const struct ibv_sge *sge = wr->tm.add.sg_list;

    tm_fill(wqe, wr, PRM_TM_OPCODE_APPEND, (uint32_t)(tag->next - tm->tags));
    PRM_SET(wqe_tm_seg, wqe->tm, append_tag, wr->tm.add.tag);
    PRM_SET(wqe_tm_seg, wqe->tm, append_mask, wr->tm.add.mask);
    if (wr->tm.add.num_sge && sge->length) { /* a message may be empty */
        PRM_SET(wqe_data_seg, wqe->data, byte_count, sge->length & 0x7fffffff);
        PRM_SET(wqe_data_seg, wqe->data, lkey, sge->lkey);
        PRM_SET(wqe_data_seg, wqe->data, addr, sge->addr);
        tag->ptr = (void *)(uintptr_t)sge->addr;
        tag->size = sge->length;
    } else {
        PRM_SET(wqe_data_seg, wqe->data, lkey, TERMINATOR_LKEY);
        tag->size = 0;
    }
}

static void tm_post(struct hv_tm *tm, struct tm_wqe *wqe, size_t size, const struct ibv_ops_wr *wr,
                    struct tm_tag *tag)
{
    PRM_SET(wqe_ctrl_seg, wqe->ctrl, opcode, PRM_WQE_OPCODE_TAG_MATCHING);
    PRM_SET(wqe_ctrl_seg, wqe->ctrl, qpn, tm->qp->ibv.qp_num);
    PRM_SET(wqe_ctrl_seg, wqe->ctrl, ds, size / 16);
    hv_wr_post_wqe(tm->qp, wqe, (unsigned)size / 16, 0, true);
    if (wr->flags & IBV_OPS_SIGNALED) {
        struct tm_list_op *op = &tm->ops[tm->op_tail++ & (tm->qp->sq.wqe_cnt - 1)];

        *op = (struct tm_list_op){.tag = tag, .wr_id = wr->wr_id, .sq_head = tm->qp->sq.head};
        if (tag) {
            tag->expect_cqe++;
        }
    }
}

static int tm_post_add(struct hv_tm *tm, struct ibv_ops_wr *wr)
{
    struct tm_wqe wqe[1] = {0};
    struct tm_tag *tag = tm->free_head;

    if (!tag->next) {
        return ENOMEM;
    }
    tm_fill_add(tm, wqe, tag, wr);
    tm->free_head = tag->next;
    tag->next = NULL;
    tag->wr_id = wr->tm.add.recv_wr_id;
    if (wr->flags & IBV_OPS_TM_SYNC) {
        tm->unexpected_out = wr->tm.unexpected_cnt;
    }
    tag->unexpected = (uint16_t)tm->unexpected_out;
    tag->expect_cqe = 1;
    tm_post(tm, wqe, sizeof(*wqe), wr, tag);
    wr->tm.handle = (uint32_t)(tag - tm->tags);
    return 0;
}

static int tm_post_del(struct hv_srq *srq, const struct ibv_ops_wr *wr)
{
    struct tm_wqe wqe[1] = {0};
    struct hv_tm *tm = srq->tm;
    struct tm_tag *tag;

    if (wr->tm.handle > srq->max_tags || !tm->tags[wr->tm.handle].expect_cqe) {
        return ENOMEM; /* not in the device's list */
    }
    tag = &tm->tags[wr->tm.handle];
    tm_fill(wqe, wr, PRM_TM_OPCODE_REMOVE, wr->tm.handle);
    tm_post(tm, wqe, offsetof(struct tm_wqe, data), wr, tag);
    if (!(wr->flags & IBV_OPS_SIGNALED)) {
        tm_release(tm, tag);
    }
    return 0;
}

static int tm_post_one(struct hv_srq *srq, struct ibv_ops_wr *wr)
{
    struct hv_wq *sq = &srq->tm->qp->sq;
    struct tm_wqe wqe[1] = {0};

    if (sq->head - __atomic_load_n(&sq->tail, __ATOMIC_ACQUIRE) >= sq->max_post) {
        return ENOMEM;
    }
    switch (wr->opcode) {
    case IBV_WR_TAG_ADD:
        return tm_post_add(srq->tm, wr);
    case IBV_WR_TAG_DEL:
        return tm_post_del(srq, wr);
    case IBV_WR_TAG_SYNC:
        tm_fill(wqe, wr, PRM_TM_OPCODE_NOP, 0);
        tm_post(srq->tm, wqe, offsetof(struct tm_wqe, data), wr, NULL);
        return 0;
    default:
        return EINVAL;
    }
}

static int tm_post_srq_ops(struct ibv_srq *ibsrq, struct ibv_ops_wr *wr, struct ibv_ops_wr **bad_wr)
{
    struct hv_srq *srq = hv_srq(ibsrq);
    struct ibv_ops_wr *first = wr;
    int err = 0, lost;

    if (!srq->tm || !srq->tm->qp) {
        *bad_wr = wr;
        return EINVAL;
    }
    hv_wr_begin_list(srq->tm->qp);
    tm_lock(srq);
    for (; wr && !err; wr = err ? wr : wr->next) {
        err = tm_post_one(srq, wr);
    }
    tm_unlock(srq);
    if (err) {
        *bad_wr = wr;
    }
    lost = hv_wr_end_list(srq->tm->qp);
    if (lost) {
        *bad_wr = first;
    }
    return lost ? lost : err;
}

/* -- completions --------------------------------------------------------------------------------
 */

/* Completes a message for an entry of the list. */
static void tm_complete_match(struct user_cq *cq, struct hv_srq *srq, const struct prm_cqe64 *cqe,
                              struct completion *done)
{
    uint32_t op = PRM_GET(cqe64, cqe, app_op), index = PRM_GET(cqe64, cqe, app_info);
    uint32_t len = PRM_GET(cqe64, cqe, byte_cnt);
    struct tm_tag *tag;

    if (index > srq->max_tags || !srq->tm->tags[index].expect_cqe) {
        done->status = IBV_WC_GENERAL_ERR;
        return;
    }
    tag = &srq->tm->tags[index];
    done->wr_id = tag->wr_id;
    if (op == TM_OP_CONSUMED_SW_RNDV || op == TM_OP_CONSUMED_MSG_SW_RNDV || op == TM_OP_CANCELED) {
        done->status = IBV_WC_TM_RNDV_INCOMPLETE;
    }
    if (PRM_GET(cqe64, cqe, format) == PRM_CQE_FORMAT_INLINE_64) {
        if (len > tag->size || cq->cqe_size != 128 || len > PRM_SIZE(cqe64)) {
            done->status = IBV_WC_LOC_LEN_ERR;
        } else {
            memcpy(tag->ptr, cqe - 1, len);
        }
    }
    if (op != TM_OP_CONSUMED && op != TM_OP_CONSUMED_SW_RNDV) {
        tm_release(srq->tm, tag);
    }
}

static void tm_complete_list_op(struct hv_srq *srq, const struct prm_cqe64 *cqe,
                                struct completion *done)
{
    struct hv_tm *tm = srq->tm;
    bool removes = PRM_GET(cqe64, cqe, app_op) == TM_OP_REMOVE;
    bool success = prm_load32(cqe) & SUCCESS;
    struct tm_list_op *op;

    if (tm->op_head == tm->op_tail) {
        done->status = IBV_WC_GENERAL_ERR;
        return;
    }
    op = &tm->ops[tm->op_head++ & (tm->qp->sq.wqe_cnt - 1)];
    if (removes && !success) {
        done->status = IBV_WC_TM_ERR; /* a message has matched it already */
    }
    if (op->tag) {
        done->tm_sync = prm_load16(&cqe->bytes[4]) != op->tag->unexpected;
        tm_release(tm, op->tag);
        if (removes && success) { /* no message will come */
            tm_release(tm, op->tag);
        }
    }
    done->wr_id = op->wr_id;
    __atomic_store_n(&tm->qp->sq.tail, op->sq_head, __ATOMIC_RELEASE);
}

void hv_tm_complete(struct user_cq *cq, struct hv_srq *srq, const struct prm_cqe64 *cqe,
                    struct completion *done)
{
    uint32_t op = PRM_GET(cqe64, cqe, app_op), index = PRM_GET(cqe64, cqe, wqe_counter);

    switch (op) {
    case TM_OP_APPEND:
    case TM_OP_REMOVE:
    case TM_OP_NOOP:
        tm_lock(srq);
        tm_complete_list_op(srq, cqe, done);
        tm_unlock(srq);
        break;
    case TM_OP_UNEXPECTED:
        tm_lock(srq); /* another thread may be posting an entry */
        srq->tm->unexpected_in++;
        done->tm_sync = srq->tm->unexpected_in - srq->tm->unexpected_out > MAX_UNKNOWN;
        tm_unlock(srq);
        /* fall through */
    case TM_OP_NO_TAG:
        if (index >= srq->ring_cnt) {
            done->status = IBV_WC_GENERAL_ERR;
            break;
        }
        done->wr_id = srq->wrid[index];
        if (cqe_has_data(cqe)) {
            done->status = hv_cqe_data_to_srq(cq, cqe, srq);
        }
        hv_srq_free_wqe(srq, (uint16_t)index);
        break;
    default:
        tm_lock(srq);
        tm_complete_match(cq, srq, cqe, done);
        tm_unlock(srq);
    }
}

enum ibv_wc_opcode hv_tm_wc_opcode(const struct prm_cqe64 *cqe)
{
    uint32_t op = PRM_GET(cqe64, cqe, app_op);
    bool packet = PRM_GET(cqe64, cqe, opcode) != PRM_CQE_OPCODE_NO_PACKET;

    switch (op) {
    case TM_OP_CONSUMED_MSG_SW_RNDV:
    case TM_OP_CONSUMED_MSG:
    case TM_OP_CONSUMED_SW_RNDV:
    case TM_OP_EXPECTED:
    case TM_OP_UNEXPECTED:
        return packet ? IBV_WC_TM_RECV : 0;
    case TM_OP_NO_TAG:
        return packet ? IBV_WC_TM_NO_TAG : 0;
    case TM_OP_REMOVE:
        return packet ? IBV_WC_RECV : IBV_WC_TM_DEL;
    case TM_OP_APPEND:
        return packet ? IBV_WC_RECV : IBV_WC_TM_ADD;
    case TM_OP_NOOP:
        return packet ? IBV_WC_RECV : IBV_WC_TM_SYNC;
    case TM_OP_CONSUMED:
        return packet ? IBV_WC_RECV : IBV_WC_TM_RECV;
    default:
        return packet ? IBV_WC_RECV : 0;
    }
}

unsigned hv_tm_wc_flags(const struct prm_cqe64 *cqe)
{
    switch (PRM_GET(cqe64, cqe, app_op)) {
    case TM_OP_CONSUMED_MSG_SW_RNDV:
    case TM_OP_CONSUMED_MSG:
    case TM_OP_CANCELED:
        return IBV_WC_TM_MATCH | IBV_WC_TM_DATA_VALID;
    case TM_OP_CONSUMED_SW_RNDV:
    case TM_OP_CONSUMED:
        return IBV_WC_TM_MATCH;
    case TM_OP_EXPECTED:
        return IBV_WC_TM_DATA_VALID;
    default:
        return 0;
    }
}

void hv_tm_ops(struct verbs_context *ops)
{
    ops->post_srq_ops = tm_post_srq_ops;
}
