/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Cross channel: ibv_exp_post_task(), and the requests by which a QP waits for completions of other
 * queues and starts managed queues. The device takes indices from these requests; programs give
 * counts. The numbers from which they count are kept in the CQs and QPs, as in libmlx5
 * (__mlx5_post_send_one_rc_dc()):
 *
 *   of a CQ: the number of completions that earlier waits have gone past
 *   of a managed queue: the number of requests that earlier enables have gone past
 *
 * A request with IBV_EXP_SEND_WAIT_EN_LAST goes past the largest count since the last such request.
 * Until then requests count from the same place, whoever posts them.
 *
 * libmlx5 writes no doorbell record for a managed send queue. This library does: it starts nothing,
 * and it tells the device what it has to flush (docs/adr/0029).
 */
#include "guest-lib/verbs/exp/send.h"
#include "guest-lib/verbs/user/send_wqe.h"

/* Protects the indices. It is taken inside the lock of the send queue that is posted to, which need
 * not be the queue that the indices are of. */
static pthread_mutex_t exp_task_indices = PTHREAD_MUTEX_INITIALIZER;

/* Begins the WQE, if the QP may have it. False: wr_err. */
static bool exp_task_begin(struct user_qp *qp, const struct ibv_exp_send_wr *wr, uint8_t opcode)
{
    const uint64_t flags = IBV_EXP_SEND_FENCE | IBV_EXP_SEND_SIGNALED | IBV_EXP_SEND_SOLICITED;

    if (!(qp->exp_flags & IBV_EXP_QP_CREATE_CROSS_CHANNEL)) {
        hv_wqe_fail(qp, EINVAL, "opcode 0x%x needs a QP with IBV_EXP_QP_CREATE_CROSS_CHANNEL",
                    (unsigned)wr->exp_opcode);
        return false;
    }
    return hv_wqe_begin(qp, opcode, (unsigned)(wr->exp_send_flags & flags), wr->wr_id, IBV_WC_SEND,
                        0);
}

static void exp_task_end(struct user_qp *qp, uint32_t pi, uint32_t num)
{
    struct prm_wqe_wait_en_seg seg[1] = {0};

    PRM_SET(wqe_wait_en_seg, seg, pi, pi);
    PRM_SET(wqe_wait_en_seg, seg, obj_num, num);
    hv_wqe_put(qp, seg, sizeof(seg));
    hv_wqe_end(qp);
}

/* Returns the index that is count past the place from which counts are counted. */
static uint32_t exp_task_index(struct user_task_index *at, uint32_t count, bool last)
{
    uint32_t index = at->from + count;

    at->most = MAX(at->most, count);
    if (last) {
        at->from += at->most;
        at->most = 0;
    }
    return index;
}

static void exp_task_wait(struct user_qp *qp, const struct ibv_exp_send_wr *wr)
{
    struct user_cq *cq = user_cq(wr->task.cqe_wait.cq);
    uint32_t index;

    if (exp_task_begin(qp, wr, PRM_WQE_OPCODE_CQE_WAIT)) {
        pthread_mutex_lock(&exp_task_indices);
        index = exp_task_index(&cq->waited, (uint32_t)wr->task.cqe_wait.cq_count,
                               wr->exp_send_flags & IBV_EXP_SEND_WAIT_EN_LAST);
        pthread_mutex_unlock(&exp_task_indices);
        exp_task_end(qp, index - 1, cq->cqn); /* the first completion has index 0 */
    }
}

static void exp_task_enable(struct user_qp *qp, const struct ibv_exp_send_wr *wr)
{
    bool send = wr->exp_opcode == IBV_EXP_WR_SEND_ENABLE;
    struct user_qp *target = user_qp(wr->task.wqe_enable.qp);
    uint32_t head = __atomic_load_n(send ? &target->sq.head : &target->rq.head, __ATOMIC_RELAXED);
    struct user_task_index *at = send ? &target->sends_enabled : &target->receives_enabled;
    uint32_t count = (uint32_t)wr->task.wqe_enable.wqe_count;

    if (!(target->exp_flags &
          (send ? IBV_EXP_QP_CREATE_MANAGED_SEND : IBV_EXP_QP_CREATE_MANAGED_RECV))) {
        hv_wqe_fail(qp, EINVAL, "QP 0x%x was not created with IBV_EXP_QP_CREATE_MANAGED_%s",
                    target->ibv.qp_num, send ? "SEND" : "RECV");
        return;
    }
    pthread_mutex_lock(&exp_task_indices);
    count = count ? count : head - at->from; /* 0: everything that is posted */
    if ((int32_t)(head - (at->from + count)) < 0) {
        hv_wqe_fail(qp, EINVAL, "wqe_count is %u; QP 0x%x has %u requests that are not enabled",
                    count, target->ibv.qp_num, head - at->from);
    } else if (exp_task_begin(qp, wr,
                              send ? PRM_WQE_OPCODE_SEND_ENABLE : PRM_WQE_OPCODE_RECV_ENABLE)) {
        exp_task_end(qp, exp_task_index(at, count, wr->exp_send_flags & IBV_EXP_SEND_WAIT_EN_LAST),
                     target->ibv.qp_num);
    }
    pthread_mutex_unlock(&exp_task_indices);
}

void hv_exp_task_resized(struct user_cq *cq)
{
    pthread_mutex_lock(&exp_task_indices);
    cq->waited.from++;
    pthread_mutex_unlock(&exp_task_indices);
}

void hv_exp_build_cross(struct user_qp *qp, const struct ibv_exp_send_wr *wr)
{
    if (wr->exp_opcode == IBV_EXP_WR_CQE_WAIT) {
        exp_task_wait(qp, wr);
    } else {
        exp_task_enable(qp, wr);
    }
}

static int exp_task_post(struct ibv_exp_task *task)
{
    struct ibv_exp_send_wr *bad_send;
    struct ibv_recv_wr *bad_recv;

    switch (task->task_type) {
    case IBV_EXP_TASK_SEND:
        return ibv_exp_post_send(task->item.qp, task->item.send_wr, &bad_send);
    case IBV_EXP_TASK_RECV:
        return ibv_post_recv(task->item.qp, task->item.recv_wr, &bad_recv);
    default:
        return -1;
    }
}

/* Tasks of one context do not mix, so that the counts of a list are counted from one place. */
static int exp_post_task(struct ibv_context *context, struct ibv_exp_task *task,
                         struct ibv_exp_task **bad_task)
{
    pthread_mutex_t *lock = &hv_context(context)->task_lock;
    int err = 0;

    pthread_mutex_lock(lock);
    for (; task && !err; task = task->next) {
        err = exp_task_post(task);
        if (err && bad_task) {
            *bad_task = task;
        }
    }
    pthread_mutex_unlock(lock);
    return err;
}

void hv_exp_task_ops(struct verbs_context_exp *ops)
{
    ops->drv_exp_post_task = exp_post_task;
    ops->lib_exp_post_task = exp_post_task;
}
