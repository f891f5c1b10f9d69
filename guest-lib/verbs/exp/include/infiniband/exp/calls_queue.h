/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls about QPs, CQs, DCTs, work requests and completions.
 */
#ifndef HCASIM_INFINIBAND_EXP_CALLS_QUEUE_H
#define HCASIM_INFINIBAND_EXP_CALLS_QUEUE_H

#include "context.h"

/* Creates a CQ. */
static inline struct ibv_cq *ibv_exp_create_cq(struct ibv_context *context, int cqe,
                                               void *cq_context, struct ibv_comp_channel *channel,
                                               int comp_vector, struct ibv_exp_cq_init_attr *attr)
{
    struct verbs_context_exp *exp = verbs_get_exp_ctx_op(context, exp_create_cq);
    struct ibv_cq *cq;

    if (!exp) {
        errno = ENOSYS;
        return NULL;
    }
    IBV_EXP_RET_NULL_ON_INVALID_COMP_MASK(attr->comp_mask, IBV_EXP_CQ_INIT_ATTR_RESERVED1 - 1);
    pthread_mutex_lock(&context->mutex);
    cq = exp->exp_create_cq(context, cqe, channel, comp_vector, attr);
    if (cq) {
        /* The device's function leaves these members to its caller. */
        cq->context = context;
        cq->channel = channel;
        if (channel) {
            channel->refcnt++;
        }
        cq->cq_context = cq_context;
        cq->comp_events_completed = 0;
        cq->async_events_completed = 0;
        pthread_mutex_init(&cq->mutex, NULL);
        pthread_cond_init(&cq->cond, NULL);
    }
    pthread_mutex_unlock(&context->mutex);
    return cq;
}

/* Changes a CQ: cq_attr_mask has bits of enum ibv_exp_cq_attr_mask. Returns an errno. */
static inline int ibv_exp_modify_cq(struct ibv_cq *cq, struct ibv_exp_cq_attr *cq_attr,
                                    int cq_attr_mask)
{
    struct verbs_context_exp *exp = verbs_get_exp_ctx_op(cq->context, lib_exp_modify_cq);

    if (!exp) {
        return ENOSYS;
    }
    IBV_EXP_RET_EINVAL_ON_INVALID_COMP_MASK(cq_attr->comp_mask, IBV_EXP_CQ_ATTR_RESERVED - 1);
    return exp->lib_exp_modify_cq(cq, cq_attr, cq_attr_mask);
}

/* Takes completions. wc_size is sizeof(*wc). Returns how many it took, or a negative errno. */
static inline int ibv_exp_poll_cq(struct ibv_cq *cq, int num_entries, struct ibv_exp_wc *wc,
                                  uint32_t wc_size)
{
    struct verbs_context_exp *exp = verbs_get_exp_ctx_op(cq->context, drv_exp_ibv_poll_cq);

    return exp ? exp->drv_exp_ibv_poll_cq(cq, num_entries, wc, wc_size) : -ENOSYS;
}

/* Creates a QP. With a comp_mask of IBV_EXP_QP_INIT_ATTR_PD alone it is ibv_create_qp(). */
static inline struct ibv_qp *ibv_exp_create_qp(struct ibv_context *context,
                                               struct ibv_exp_qp_init_attr *attr)
{
    struct verbs_context_exp *exp;

    if (attr->comp_mask == IBV_EXP_QP_INIT_ATTR_PD) {
        return ibv_create_qp(attr->pd, (struct ibv_qp_init_attr *)attr);
    }
    exp = verbs_get_exp_ctx_op(context, lib_exp_create_qp);
    if (!exp) {
        errno = ENOSYS;
        return NULL;
    }
    IBV_EXP_RET_NULL_ON_INVALID_COMP_MASK(attr->comp_mask, IBV_EXP_QP_INIT_ATTR_RESERVED1 - 1);
    return exp->lib_exp_create_qp(context, attr);
}

/* Changes a QP: mask has bits of enum ibv_exp_qp_attr_mask. Returns an errno. */
static inline int ibv_exp_modify_qp(struct ibv_qp *qp, struct ibv_exp_qp_attr *attr, uint64_t mask)
{
    struct verbs_context_exp *exp = verbs_get_exp_ctx_op(qp->context, lib_exp_modify_qp);

    if (!exp) {
        errno = ENOSYS;
        return ENOSYS;
    }
    IBV_EXP_RET_EINVAL_ON_INVALID_COMP_MASK(attr->comp_mask, IBV_EXP_QP_ATTR_RESERVED - 1);
    return exp->lib_exp_modify_qp(qp, attr, mask);
}

/* Posts work requests. Returns an errno; without the call, a negative one. */
static inline int ibv_exp_post_send(struct ibv_qp *qp, struct ibv_exp_send_wr *wr,
                                    struct ibv_exp_send_wr **bad_wr)
{
    struct verbs_context_exp *exp = verbs_get_exp_ctx_op(qp->context, drv_exp_post_send);

    return exp ? exp->drv_exp_post_send(qp, wr, bad_wr) : -ENOSYS;
}

/* Posts requests to several queues, in their order. Returns an errno. */
static inline int ibv_exp_post_task(struct ibv_context *context, struct ibv_exp_task *task,
                                    struct ibv_exp_task **bad_task)
{
    struct verbs_context_exp *exp = verbs_get_exp_ctx_op(context, lib_exp_post_task);

    if (!exp) {
        return ENOSYS;
    }
    IBV_EXP_RET_EINVAL_ON_INVALID_COMP_MASK(task->comp_mask, IBV_EXP_TASK_RESERVED - 1);
    return exp->lib_exp_post_task(context, task, bad_task);
}

/* Creates a DCT. */
static inline struct ibv_exp_dct *ibv_exp_create_dct(struct ibv_context *context,
                                                     struct ibv_exp_dct_init_attr *attr)
{
    struct verbs_context_exp *exp = verbs_get_exp_ctx_op(context, create_dct);
    struct ibv_exp_dct *dct;

    if (!exp) {
        errno = ENOSYS;
        return NULL;
    }
    IBV_EXP_RET_NULL_ON_INVALID_COMP_MASK(attr->comp_mask, IBV_EXP_DCT_INIT_ATTR_RESERVED - 1);
    pthread_mutex_lock(&context->mutex);
    dct = exp->create_dct(context, attr);
    if (dct) {
        dct->context = context;
    }
    pthread_mutex_unlock(&context->mutex);
    return dct;
}

static inline int ibv_exp_destroy_dct(struct ibv_exp_dct *dct)
{
    struct ibv_context *context = dct->context;
    struct verbs_context_exp *exp = verbs_get_exp_ctx_op(context, destroy_dct);
    int err;

    if (!exp) {
        errno = ENOSYS;
        return ENOSYS;
    }
    pthread_mutex_lock(&context->mutex);
    err = exp->destroy_dct(dct);
    pthread_mutex_unlock(&context->mutex);
    return err;
}

static inline int ibv_exp_query_dct(struct ibv_exp_dct *dct, struct ibv_exp_dct_attr *attr)
{
    struct ibv_context *context = dct->context;
    struct verbs_context_exp *exp = verbs_get_exp_ctx_op(context, query_dct);
    int err;

    if (!exp) {
        errno = ENOSYS;
        return ENOSYS;
    }
    IBV_EXP_RET_EINVAL_ON_INVALID_COMP_MASK(attr->comp_mask, IBV_EXP_DCT_ATTR_RESERVED - 1);
    pthread_mutex_lock(&context->mutex);
    err = exp->query_dct(dct, attr);
    pthread_mutex_unlock(&context->mutex);
    return err;
}

/* Asks for an event when a request with a wrong key comes next. Returns an errno. */
static inline int ibv_exp_arm_dct(struct ibv_exp_dct *dct, struct ibv_exp_arm_attr *attr)
{
    struct ibv_context *context = dct->context;
    struct verbs_context_exp *exp = verbs_get_exp_ctx_op(context, lib_exp_arm_dct);
    int err;

    if (!exp) {
        errno = ENOSYS;
        return ENOSYS;
    }
    IBV_EXP_RET_EINVAL_ON_INVALID_COMP_MASK(attr->comp_mask, IBV_EXP_ARM_ATTR_RESERVED - 1);
    pthread_mutex_lock(&context->mutex);
    err = exp->lib_exp_arm_dct(dct, attr);
    pthread_mutex_unlock(&context->mutex);
    return err;
}

/* -- functions of the data path, for programs that call them without a look-up */

typedef int (*drv_exp_post_send_func)(struct ibv_qp *qp, struct ibv_exp_send_wr *wr,
                                      struct ibv_exp_send_wr **bad_wr);
typedef int (*drv_post_send_func)(struct ibv_qp *qp, struct ibv_send_wr *wr,
                                  struct ibv_send_wr **bad_wr);
typedef int (*drv_exp_poll_cq_func)(struct ibv_cq *cq, int num_entries, struct ibv_exp_wc *wc,
                                    uint32_t wc_size);
typedef int (*drv_poll_cq_func)(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc);
typedef int (*drv_post_recv_func)(struct ibv_qp *qp, struct ibv_recv_wr *wr,
                                  struct ibv_recv_wr **bad_wr);

/* Returns a function of the type above that belongs to its name, or NULL with errno ENOSYS. */
static inline void *ibv_exp_get_provider_func(struct ibv_context *context,
                                              enum ibv_exp_func_name name)
{
    struct verbs_context_exp *exp = NULL;
    void *func = NULL;

    switch (name) {
    case IBV_EXP_POST_SEND_FUNC:
        exp = verbs_get_exp_ctx_op(context, drv_exp_post_send);
        func = exp ? (void *)exp->drv_exp_post_send : NULL;
        break;
    case IBV_EXP_POLL_CQ_FUNC:
        exp = verbs_get_exp_ctx_op(context, drv_exp_ibv_poll_cq);
        func = exp ? (void *)exp->drv_exp_ibv_poll_cq : NULL;
        break;
    case IBV_POST_SEND_FUNC:
        func = (void *)context->ops.post_send;
        break;
    case IBV_POLL_CQ_FUNC:
        func = (void *)context->ops.poll_cq;
        break;
    case IBV_POST_RECV_FUNC:
        func = (void *)context->ops.post_recv;
        break;
    default:
        break;
    }
    if (!func) {
        errno = ENOSYS;
    }
    return func;
}

#endif
