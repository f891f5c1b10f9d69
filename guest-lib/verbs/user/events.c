/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Events: completion channels, asynchronous events, and waiting for their acknowledgement.
 *
 * A channel and a context each have a queue (event_queue.h). An event that is handed out is counted
 * on its object until it is acknowledged; destroying the object waits for that.
 */
#include "guest-lib/verbs/kernel/hca.h"
#include <string.h>
#include "wire/cancel.h"
#include "guest-lib/verbs/kernel/event_queue.h"

/* -- what waits to be acknowledged ------------------------------------------------------------- */

/* Where an object counts its events that are handed out and not acknowledged. */
struct unacked {
    pthread_mutex_t *mutex;
    pthread_cond_t *cond;
    uint32_t *count;
};

#define UNACKED(obj, counter) ((struct unacked){&(obj)->ibv.mutex, &(obj)->ibv.cond, counter})

static void count(struct unacked unacked, int change)
{
    pthread_mutex_lock(unacked.mutex);
    *unacked.count += (uint32_t)change;
    if (change < 0) {
        pthread_cond_broadcast(unacked.cond);
    }
    pthread_mutex_unlock(unacked.mutex);
}

static void wait_acked(struct unacked unacked)
{
    pthread_mutex_lock(unacked.mutex);
    while (*unacked.count) {
        pthread_cond_wait(unacked.cond, unacked.mutex);
    }
    pthread_mutex_unlock(unacked.mutex);
}

/* -- completion channels ----------------------------------------------------------------------- */

struct channel {
    struct ibv_comp_channel ibv;
    struct hv_event_queue queue; /* struct hv_cq */
};

static struct channel *channel_of(struct ibv_comp_channel *channel)
{
    return (struct channel *)channel;
}

HV_EXPORT struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
    struct channel *channel = calloc(1, sizeof(*channel));

    if (!channel) {
        return NULL;
    }
    errno = hv_event_queue_init(&channel->queue);
    if (errno) {
        free(channel);
        return NULL;
    }
    channel->ibv.context = context;
    channel->ibv.fd = channel->queue.fd;
    return &channel->ibv;
}

/* refcnt counts the channel's CQs (hv_cq_create()). */
HV_EXPORT int ibv_destroy_comp_channel(struct ibv_comp_channel *ibchannel)
{
    struct channel *channel = channel_of(ibchannel);
    struct ibv_context *context = ibchannel->context;
    int refcnt;

    pthread_mutex_lock(&context->mutex);
    refcnt = ibchannel->refcnt;
    pthread_mutex_unlock(&context->mutex);
    if (refcnt) {
        return EBUSY;
    }
    hv_event_queue_fini(&channel->queue, NULL);
    free(channel);
    return 0;
}

static bool take_comp(void *event, void *arg)
{
    struct hv_cq *cq = event;

    count(UNACKED(cq, &cq->unacked_comp), 1);
    return true;
}

HV_EXPORT int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq,
                               void **cq_context)
{
    struct hv_cq *hv;

    if (!hv_is_ours(hv_hca_of(channel->context))) {
        errno = EIO; /* the descriptor is the parent's, too */
        return -1;
    }
    local_rest(hv_hca_of(channel->context)->local);
    hv = hv_event_take(&channel_of(channel)->queue, take_comp, NULL);
    if (!hv) {
        return -1;
    }
    __atomic_add_fetch(&hv->arm_sn, 1, __ATOMIC_RELAXED);
    *cq = &hv->ibv;
    *cq_context = hv->ibv.cq_context;
    return 0;
}

HV_EXPORT void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int nevents)
{
    count(UNACKED(hv_cq(cq), &hv_cq(cq)->unacked_comp), -(int)nevents);
}

/* -- asynchronous events ----------------------------------------------------------------------- */

struct hv_async {
    struct hv_event_queue queue; /* struct ibv_async_event */
};

int hv_async_open(struct hv_context *ctx)
{
    int err;

    ctx->async = calloc(1, sizeof(*ctx->async));
    if (!ctx->async) {
        return ENOMEM;
    }
    err = hv_event_queue_init(&ctx->async->queue);
    if (err) {
        free(ctx->async);
        return err;
    }
    ctx->ibv.context.async_fd = ctx->async->queue.fd;
    return 0;
}

void hv_async_close(struct hv_context *ctx)
{
    hv_event_queue_fini(&ctx->async->queue, g_free);
    free(ctx->async);
}

static void put_async(struct hv_context *ctx, const struct ibv_async_event *event)
{
    hv_event_put(&ctx->async->queue, g_memdup2(event, sizeof(*event)));
}

/* What an event is about, by its type. */
enum about {
    ABOUT_CQ,
    ABOUT_QP,
    ABOUT_SRQ,
    ABOUT_WQ,
    ABOUT_PORT
};

static enum about about(enum ibv_event_type type)
{
    switch (type) {
    case IBV_EVENT_CQ_ERR:
        return ABOUT_CQ;
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_PATH_MIG:
    case IBV_EVENT_PATH_MIG_ERR:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
        return ABOUT_QP;
    case IBV_EVENT_SRQ_ERR:
    case IBV_EVENT_SRQ_LIMIT_REACHED:
        return ABOUT_SRQ;
    case IBV_EVENT_WQ_FATAL:
        return ABOUT_WQ;
    default:
        return ABOUT_PORT;
    }
}

/* False: it is about no object. */
static bool unacked_of(const struct ibv_async_event *event, struct unacked *unacked)
{
    struct hv_cq *cq = hv_cq(event->element.cq);
    struct hv_qp *qp = hv_qp(event->element.qp);
    struct hv_srq *srq = hv_srq(event->element.srq);
    struct hv_rwq *wq = hv_rwq(event->element.wq);

    switch (about(event->event_type)) {
    case ABOUT_CQ:
        *unacked = UNACKED(cq, &cq->unacked_async);
        return true;
    case ABOUT_QP:
        *unacked = UNACKED(qp, &qp->unacked_async);
        return true;
    case ABOUT_SRQ:
        *unacked = UNACKED(srq, &srq->unacked_async);
        return true;
    case ABOUT_WQ:
        *unacked = UNACKED(wq, &wq->unacked_async);
        return true;
    default:
        return false;
    }
}

static void count_async(const struct ibv_async_event *event, int change)
{
    struct unacked unacked;

    if (unacked_of(event, &unacked)) {
        count(unacked, change);
    }
}

static bool take_async(void *event, void *arg)
{
    count_async(event, 1);
    return true;
}

HV_EXPORT int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
    struct ibv_async_event *got;

    if (!hv_is_ours(hv_hca_of(context))) {
        errno = EIO;
        return -1;
    }
    got = hv_event_take(&hv_context(context)->async->queue, take_async, NULL);
    if (!got) {
        return -1;
    }
    *event = *got;
    g_free(got);
    return 0;
}

HV_EXPORT void ibv_ack_async_event(struct ibv_async_event *event)
{
    count_async(event, -1);
}

/* -- objects that go --------------------------------------------------------------------------- */

static bool is_pointer(const void *event, const void *obj)
{
    return event == obj;
}

static bool is_about(const void *event, const void *obj)
{
    const struct ibv_async_event *async = event;

    return about(async->event_type) != ABOUT_PORT && (const void *)async->element.cq == obj;
}

static void forget_async(struct ibv_context *context, const void *obj)
{
    hv_event_take_out(&hv_context(context)->async->queue, is_about, obj, g_free);
}

void hv_event_drain_cq(struct hv_cq *cq)
{
    if (cq->ibv.channel) {
        hv_event_take_out(&channel_of(cq->ibv.channel)->queue, is_pointer, cq, NULL);
    }
    forget_async(cq->ibv.context, cq);
    wait_acked(UNACKED(cq, &cq->unacked_comp));
    wait_acked(UNACKED(cq, &cq->unacked_async));
}

void hv_event_drain_qp(struct hv_qp *qp)
{
    forget_async(qp->ibv.context, qp);
    wait_acked(UNACKED(qp, &qp->unacked_async));
}

void hv_event_drain_srq(struct hv_srq *srq)
{
    forget_async(srq->ibv.context, srq);
    wait_acked(UNACKED(srq, &srq->unacked_async));
}

void hv_event_drain_wq(struct hv_rwq *wq)
{
    forget_async(wq->ibv.context, wq);
    wait_acked(UNACKED(wq, &wq->unacked_async));
}

/* -- from the EQ ------------------------------------------------------------------------------- */

/* The device numbers queues of all kinds in one space: a number is a QP's, its SQ's or RQ's, or a
 * WQ's. */
static const struct {
    uint8_t eqe;
    enum ibv_event_type ibv;
} objects[] = {
    {PRM_EVENT_TYPE_CQ_ERROR, IBV_EVENT_CQ_ERR},
    {PRM_EVENT_TYPE_COMM_EST, IBV_EVENT_COMM_EST},
    {PRM_EVENT_TYPE_SQ_DRAINED, IBV_EVENT_SQ_DRAINED},
    {PRM_EVENT_TYPE_SRQ_LAST_WQE, IBV_EVENT_QP_LAST_WQE_REACHED},
    {PRM_EVENT_TYPE_WQ_CATAS_ERROR, IBV_EVENT_QP_FATAL},
    {PRM_EVENT_TYPE_WQ_CATAS_ERROR, IBV_EVENT_WQ_FATAL},
    {PRM_EVENT_TYPE_WQ_INVAL_REQ_ERROR, IBV_EVENT_QP_REQ_ERR},
    {PRM_EVENT_TYPE_WQ_ACCESS_ERROR, IBV_EVENT_QP_ACCESS_ERR},
    {PRM_EVENT_TYPE_SRQ_CATAS_ERROR, IBV_EVENT_SRQ_ERR},
    {PRM_EVENT_TYPE_SRQ_RQ_LIMIT, IBV_EVENT_SRQ_LIMIT_REACHED},
};

/* With the registry's lock: the object cannot go meanwhile. */
static void object_event(struct hv_hca *hca, enum ibv_event_type type, uint32_t num)
{
    struct ibv_async_event event = {.event_type = type};
    struct ibv_context *context = NULL;
    struct hv_cq *cq;
    struct hv_qp *qp;
    struct hv_srq *srq;
    struct hv_rwq *wq;

    switch (about(type)) {
    case ABOUT_CQ:
        cq = g_hash_table_lookup(hca->cqs, GUINT_TO_POINTER(num));
        if (cq) {
            event.element.cq = &cq->ibv;
            context = cq->ibv.context;
        }
        break;
    case ABOUT_QP:
        qp = g_hash_table_lookup(hca->qps, GUINT_TO_POINTER(num));
        for (struct hv_qp *other = qp ? qp->next_handle : NULL; other && other != qp;
             other = other->next_handle) {
            event.element.qp = &other->ibv;
            put_async(hv_context(other->ibv.context), &event);
        }
        if (qp) {
            event.element.qp = &qp->ibv;
            context = qp->ibv.context;
        }
        break;
    case ABOUT_WQ:
        wq = g_hash_table_lookup(hca->wqs, GUINT_TO_POINTER(num));
        if (wq) {
            event.element.wq = &wq->ibv;
            context = wq->ibv.context;
        }
        break;
    default:
        srq = g_hash_table_lookup(hca->srqs, GUINT_TO_POINTER(num));
        if (srq) {
            event.element.srq = &srq->ibv;
            context = srq->ibv.context;
        }
    }
    if (context) {
        put_async(hv_context(context), &event);
    }
}

/* event_sub_type of PORT_CHANGE */
#define PORT_DOWN 1
#define PORT_UP   4

static void port_event(struct hv_hca *hca, uint8_t sub_type)
{
    struct ibv_async_event event = {.element.port_num = 1};

    if (sub_type != PORT_DOWN && sub_type != PORT_UP) {
        return;
    }
    event.event_type = sub_type == PORT_UP ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR;
    for (guint i = 0; i < hca->contexts->len; i++) {
        put_async(hca->contexts->pdata[i], &event);
    }
}

void hv_events_dispatch(struct hv_hca *hca, const struct drv_event *event)
{
    pthread_mutex_lock(&hca->reg_lock);
    if (event->type == PRM_EVENT_TYPE_COMP) {
        struct hv_cq *cq = g_hash_table_lookup(hca->cqs, GUINT_TO_POINTER(event->num));

        if (cq && cq->ibv.channel) {
            hv_event_put(&channel_of(cq->ibv.channel)->queue, cq);
        }
    } else if (event->type == PRM_EVENT_TYPE_PORT_CHANGE) {
        port_event(hca, event->sub_type);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(objects); i++) {
        if (objects[i].eqe == event->type) {
            object_event(hca, objects[i].ibv, event->num);
        }
    }
    pthread_mutex_unlock(&hca->reg_lock);
    hv_dv_event(hca, event);
}
