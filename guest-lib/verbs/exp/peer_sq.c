/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Send queues that a peer starts: lists that commit WQEs, and their rollback.
 *
 * sq_post is behind the last posted WQE, committed behind the last WQE of a list, and the doorbell
 * record behind the last WQE that the peer has started:
 *
 *     record <= committed <= sq_post
 *
 * A rollback moves sq_post back to the beginning of a list. It never moves it below the record,
 * because the device has such WQEs.
 */
#include <inttypes.h>
#include <string.h>
#include "guest-lib/verbs/exp/peer.h"
#include "guest-lib/verbs/kernel/watch.h"
#include "guest-lib/verbs/user/send_wqe.h"

#define RECORD_LINE  64u  /* bytes of a cache line, which a record has for itself */
#define BF_BYTES     256u /* of a BlueFlame buffer */
#define COMMIT_OPS   3u
#define SEND_COUNTER 1u /* dword of the record */
#define LIST_UNKNOWN "no list of the QP begins there"

int exp_peer_check_qp(struct hv_hca *hca, const struct ibv_exp_peer_direct_attr *attr)
{
    return exp_peer_check(hca, "create_qp", attr,
                          IBV_EXP_PEER_OP_FENCE_CAP | IBV_EXP_PEER_OP_STORE_DWORD_CAP |
                              IBV_EXP_PEER_OP_STORE_QWORD_CAP,
                          0);
}

int exp_peer_new_sq(struct user_qp *qp, const struct ibv_exp_peer_direct_attr *attr)
{
    struct exp_peer_sq *sq = g_new0(struct exp_peer_sq, 1);
    int err;

    qp->peer_sq = sq;
    sq->peer = *attr;
    sq->list_end = g_new0(uint32_t, MAX(qp->sq.wqe_cnt, 1));
    if (exp_peer_alloc(qp->hca, attr, RECORD_LINE, RECORD_LINE,
                       IBV_EXP_PEER_DIRECTION_FROM_PEER | IBV_EXP_PEER_DIRECTION_TO_HCA,
                       &sq->record, &err)) {
        qp->dbrec_from = HV_FROM_PEER;
    } else if (!err) {
        sq->record.at = hv_db_alloc(hv_context(qp->ibv.context), NULL, &qp->dbrec_from);
        sq->record.size = RECORD_LINE;
        err = sq->record.at ? 0 : ENOMEM;
    }
    if (err) {
        return err;
    }
    qp->dbrec = sq->record.at;
    qp->dbrec[0] = qp->dbrec[1] = 0;
    return exp_peer_register(qp->hca, attr, &sq->record, sq->record.buf);
}

int exp_peer_open_page(struct user_qp *qp)
{
    struct exp_peer_sq *sq = qp->peer_sq;
    struct hv_context *ctx = hv_context(qp->ibv.context);
    uint8_t *page = hv_watch_uar(ctx, qp->uar->page);
    uint32_t sqn = qp->ibv.qp_type == IBV_QPT_RAW_PACKET ? qp->sqn : qp->ibv.qp_num;
    int err = page ? hv_watch_queue(ctx, &qp->hv, HV_WATCH_SQ, sqn, qp->uar->page,
                                    qp->dbrec + SEND_COUNTER)
                   : errno;

    if (err) {
        return err;
    }
    sq->page.at = page + PRM_OFFSET(uar, blue_flame);
    sq->page.size = BF_BYTES;
    return exp_peer_register(qp->hca, &sq->peer, &sq->page, IBV_EXP_PEER_IOMEMORY);
}

void exp_peer_free_sq(struct user_qp *qp)
{
    struct exp_peer_sq *sq = qp->peer_sq;

    exp_peer_release(&sq->peer, &sq->record);
    exp_peer_release(&sq->peer, &sq->page);
    g_free(sq->list_end);
    g_free(sq);
    qp->peer_sq = NULL;
}

void exp_peer_reset_sq(struct user_qp *qp)
{
    struct exp_peer_sq *sq = qp->peer_sq;

    pthread_spin_lock(&qp->sq.lock);
    sq->committed = 0;
    sq->last = NULL;
    sq->uncommitted = 0;
    memset(sq->list_end, 0, qp->sq.wqe_cnt * sizeof(*sq->list_end));
    pthread_spin_unlock(&qp->sq.lock);
}

void exp_peer_posted(struct user_qp *qp)
{
    qp->peer_sq->last = qp->cur_ctrl->bytes;
    qp->peer_sq->uncommitted += (unsigned)qp->nreq;
}

/* -- commit ------------------------------------------------------------------------------------ */

static uint32_t *exp_peer_list_at(const struct user_qp *qp, uint32_t counter)
{
    return &qp->peer_sq->list_end[counter & (qp->sq.wqe_cnt - 1)];
}

/* Whether the peer may copy the WQE to the BlueFlame buffer: it is one WQE, which fits, and does
 * not wrap around the end of the ring. */
static bool exp_peer_may_copy(const struct user_qp *qp)
{
    const struct exp_peer_sq *sq = qp->peer_sq;
    size_t len = (size_t)(qp->sq_post - sq->committed) * HV_WQEBB;
    uint32_t index = sq->committed & (qp->sq.wqe_cnt - 1);

    return sq->peer.caps & IBV_EXP_PEER_OP_COPY_BLOCK_CAP && sq->uncommitted == 1 &&
           len <= MIN(BF_BYTES, sq->peer.peer_dma_op_map_len) &&
           index + len / HV_WQEBB <= qp->sq.wqe_cnt;
}

/* The operation by which the peer rings. */
static void exp_peer_fill_ring(const struct user_qp *qp, struct peer_op_wr *op)
{
    const struct exp_peer_sq *sq = qp->peer_sq;

    if (exp_peer_may_copy(qp)) {
        op->type = IBV_EXP_PEER_OP_COPY_BLOCK;
        op->wr.copy_op.src = qp->sq.buf + (size_t)(sq->committed & (qp->sq.wqe_cnt - 1)) * HV_WQEBB;
        op->wr.copy_op.target_id = sq->page.id;
        op->wr.copy_op.offset = 0;
        op->wr.copy_op.len = (size_t)(qp->sq_post - sq->committed) * HV_WQEBB;
        return;
    }
    op->type = IBV_EXP_PEER_OP_STORE_QWORD;
    memcpy(&op->wr.qword_va.data, sq->last, sizeof(op->wr.qword_va.data));
    op->wr.qword_va.target_id = sq->page.id;
    op->wr.qword_va.offset = 0;
}

/* The record first, then the doorbell, with a fence between them (mlx5_exp_peer_commit_qp()). */
static void exp_peer_fill_commit(const struct user_qp *qp, struct peer_op_wr *op[COMMIT_OPS])
{
    const struct exp_peer_sq *sq = qp->peer_sq;

    op[0]->type = IBV_EXP_PEER_OP_STORE_DWORD;
    op[0]->wr.dword_va.data = GUINT32_TO_BE(qp->sq_post & 0xffff);
    op[0]->wr.dword_va.target_id = sq->record.id;
    op[0]->wr.dword_va.offset = SEND_COUNTER * sizeof(uint32_t);
    op[1]->type = IBV_EXP_PEER_OP_FENCE;
    op[1]->wr.fence.fence_flags =
        IBV_EXP_PEER_FENCE_OP_WRITE | IBV_EXP_PEER_FENCE_FROM_HCA |
        (sq->record.buf ? IBV_EXP_PEER_FENCE_MEM_PEER : IBV_EXP_PEER_FENCE_MEM_SYS);
    exp_peer_fill_ring(qp, op[2]);
}

static int exp_peer_commit_locked(struct user_qp *qp, struct ibv_exp_peer_commit *commit)
{
    struct exp_peer_sq *sq = qp->peer_sq;
    struct peer_op_wr *op[COMMIT_OPS];

    if (commit->entries < COMMIT_OPS || !exp_peer_take_list(commit->storage, op, COMMIT_OPS)) {
        return hv_refuse(qp->hca, ENOSPC,
                         "exp_peer_commit_qp: storage has %u entries at most; %u are needed",
                         commit->entries, COMMIT_OPS);
    }
    if (!sq->last) {
        commit->entries = 0;
        return 0;
    }
    exp_peer_fill_commit(qp, op);
    commit->entries = COMMIT_OPS;
    commit->rollback_id = sq->committed | (uint64_t)qp->sq_post << 32;
    *exp_peer_list_at(qp, sq->committed) = qp->sq_post;
    sq->committed = qp->sq_post;
    sq->last = NULL;
    sq->uncommitted = 0;
    return 0;
}

/* Its errors are negative (mlx5_exp_peer_commit_qp()). */
int exp_peer_commit(struct ibv_qp *ibqp, struct ibv_exp_peer_commit *commit)
{
    struct user_qp *qp = user_qp(ibqp);
    int err;

    if (!qp->peer_sq) {
        return -hv_refuse(qp->hca, EINVAL,
                          "exp_peer_commit_qp: QP 0x%x has no peer (peer_direct_attrs)",
                          ibqp->qp_num);
    }
    pthread_spin_lock(&qp->sq.lock);
    err = exp_peer_commit_locked(qp, commit);
    pthread_spin_unlock(&qp->sq.lock);
    return -err;
}

/* -- rollback ---------------------------------------------------------------------------------- */

/* How many blocks the peer has not started. The record is the peer's: its value may be anything. */
static uint16_t exp_peer_not_started(const struct user_qp *qp)
{
    uint32_t record = __atomic_load_n(&qp->dbrec[SEND_COUNTER], __ATOMIC_ACQUIRE);

    return (uint16_t)(qp->sq_post - GUINT32_FROM_BE(record));
}

/* Whether a list begins at this counter, or the WQEs that are in no list. */
static bool exp_peer_begins_at(const struct user_qp *qp, uint32_t counter)
{
    uint32_t len = *exp_peer_list_at(qp, counter) - counter;

    return counter == qp->peer_sq->committed || (len && len <= qp->peer_sq->committed - counter);
}

/* Finds the counter to which the send queue goes back. Returns 0 or errno. */
static int exp_peer_find_target(const struct user_qp *qp,
                                const struct ibv_exp_rollback_ctx *rollback, uint32_t *target)
{
    uint32_t old = (uint32_t)rollback->rollback_id;
    uint32_t end = (uint32_t)(rollback->rollback_id >> 32);

    if (rollback->flags & IBV_EXP_ROLLBACK_ABORT_UNCOMMITED) {
        *target = qp->sq_post - exp_peer_not_started(qp);
        return 0;
    }
    *target = old;
    if (end != qp->sq_post && !(rollback->flags & IBV_EXP_ROLLBACK_ABORT_LATE)) {
        return hv_refuse(qp->hca, ERANGE,
                         "exp_rollback_qp: WQEs were posted behind the list; roll them back first, "
                         "or set IBV_EXP_ROLLBACK_ABORT_LATE");
    }
    return end - old - 1 >= qp->sq.wqe_cnt || *exp_peer_list_at(qp, old) != end
               ? hv_refuse(qp->hca, ERANGE, "exp_rollback_qp: rollback_id: " LIST_UNKNOWN)
               : 0;
}

/* Takes back all WQEs from this counter on. Should a peer start them later, against the rules,
 * their completions free no WQE of others. */
static void exp_peer_take_back(struct user_qp *qp, uint32_t target)
{
    struct exp_peer_sq *sq = qp->peer_sq;
    uint32_t mask = qp->sq.wqe_cnt - 1, head = qp->sq_wqe_head[target & mask];

    for (uint32_t i = target; i != qp->sq_post; i++) {
        qp->sq_wqe_head[i & mask] = head - 1;
        sq->list_end[i & mask] = 0;
    }
    qp->sq.head = head;
    qp->sq_post = sq->committed = target;
    qp->small_fence = true; /* the WQE before may be a UMR */
    sq->last = NULL;
    sq->uncommitted = 0;
}

static int exp_peer_roll_back_locked(struct user_qp *qp,
                                     const struct ibv_exp_rollback_ctx *rollback)
{
    uint32_t target;
    int err = exp_peer_find_target(qp, rollback, &target);

    if (err || target == qp->sq_post) {
        return err;
    }
    /* the order of the checks: the peer's record may be wrong by any amount */
    if (qp->sq_post - target > exp_peer_not_started(qp) || qp->sq_post - target > qp->sq.wqe_cnt) {
        return hv_refuse(qp->hca, ERANGE,
                         "exp_rollback_qp: the doorbell record says that the peer has started WQEs "
                         "of the list");
    }
    if (!exp_peer_begins_at(qp, target)) {
        return hv_refuse(qp->hca, ERANGE, "exp_rollback_qp: doorbell record: " LIST_UNKNOWN);
    }
    exp_peer_take_back(qp, target);
    return 0;
}

/* Its errors are negative (mlx5_exp_rollback_send()). */
int exp_peer_roll_back(struct ibv_qp *ibqp, struct ibv_exp_rollback_ctx *rollback)
{
    struct user_qp *qp = user_qp(ibqp);
    int err;

    if (!qp->peer_sq) {
        return -hv_refuse(qp->hca, EINVAL,
                          "exp_rollback_qp: QP 0x%x has no peer (peer_direct_attrs)", ibqp->qp_num);
    }
    pthread_spin_lock(&qp->sq.lock);
    err = exp_peer_roll_back_locked(qp, rollback);
    pthread_spin_unlock(&qp->sq.lock);
    return -err;
}
