/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Events: completion channels, asynchronous events, and waiting for their acknowledgement.
 *
 * A channel and a context each have a queue (event_queue.h). An event that is handed out is counted
 * on its object until it is acknowledged; destroying the object waits for that.
 */
#include "guest-lib/verbs/kernel/events.h"
#include "guest-lib/verbs/user/user.h"

/* -- what waits to be acknowledged ------------------------------------------------------------- */

/* Where an object counts its events that are handed out and not acknowledged. */
struct unacked {
    pthread_mutex_t *mutex;
    pthread_cond_t *cond;
    uint32_t *count;
};

#define UNACKED(obj, counter) ((struct unacked){&(obj)->ibv.mutex, &(obj)->ibv.cond, counter})

static void events_unacked_count(struct unacked unacked, int change)
{
    pthread_mutex_lock(unacked.mutex);
    *unacked.count += (uint32_t)change;
    if (change < 0) {
        pthread_cond_broadcast(unacked.cond);
    }
    pthread_mutex_unlock(unacked.mutex);
}

static void events_unacked_wait(struct unacked unacked)
{
    pthread_mutex_lock(unacked.mutex);
    while (*unacked.count) {
        pthread_cond_wait(unacked.cond, unacked.mutex);
    }
    pthread_mutex_unlock(unacked.mutex);
}

/* -- completion channels ----------------------------------------------------------------------- */

HV_EXPORT struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
    struct hv_channel *channel = calloc(1, sizeof(*channel));

    if (!channel) {
        return NULL;
    }
    if (hv_kernel(hv_channel_open(hv_hca_of(context), &channel->queue, NULL))) {
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
    struct hv_channel *channel = hv_channel(ibchannel);
    struct ibv_context *context = ibchannel->context;
    int refcnt;

    pthread_mutex_lock(&context->mutex);
    refcnt = ibchannel->refcnt;
    pthread_mutex_unlock(&context->mutex);
    if (refcnt) {
        return EBUSY;
    }
    hv_channel_close(&channel->queue);
    free(channel);
    return 0;
}

static bool comp_take(void *event, void *arg)
{
    struct user_cq *cq = event;

    events_unacked_count(UNACKED(cq, &cq->unacked_comp), 1);
    return true;
}

HV_EXPORT int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq,
                               void **cq_context)
{
    struct user_cq *hv;

    if (!hv_is_ours(hv_hca_of(channel->context))) {
        errno = EIO; /* the descriptor is the parent's, too */
        return -1;
    }
    hv_rest(hv_hca_of(channel->context));
    hv = hv_event_take(&hv_channel(channel)->queue, comp_take, NULL);
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
    events_unacked_count(UNACKED(user_cq(cq), &user_cq(cq)->unacked_comp), -(int)nevents);
}

/* -- asynchronous events ----------------------------------------------------------------------- */

int hv_async_open(struct hv_context *ctx)
{
    int err;

    ctx->async = calloc(1, sizeof(*ctx->async));
    if (!ctx->async) {
        return ENOMEM;
    }
    err = hv_event_queue_init(&ctx->async->queue, g_free);
    if (err) {
        free(ctx->async);
        return err;
    }
    ctx->ibv.context.async_fd = ctx->async->queue.fd;
    return 0;
}

void hv_async_close(struct hv_context *ctx)
{
    hv_event_queue_fini(&ctx->async->queue);
    free(ctx->async);
}

/* False: it is about no object. */
static bool events_unacked_of(const struct ibv_async_event *event, struct unacked *unacked)
{
    struct user_cq *cq = user_cq(event->element.cq);
    struct user_qp *qp = user_qp(event->element.qp);
    struct hv_srq *srq = hv_srq(event->element.srq);
    struct hv_rwq *wq = hv_rwq(event->element.wq);

    switch (hv_event_about(event->event_type)) {
    case HV_ABOUT_CQ:
        *unacked = UNACKED(cq, &cq->unacked_async);
        return true;
    case HV_ABOUT_QP:
        *unacked = UNACKED(qp, &qp->unacked_async);
        return true;
    case HV_ABOUT_SRQ:
        *unacked = UNACKED(srq, &srq->unacked_async);
        return true;
    case HV_ABOUT_WQ:
        *unacked = UNACKED(wq, &wq->unacked_async);
        return true;
    default:
        return false;
    }
}

static void async_count(const struct ibv_async_event *event, int change)
{
    struct unacked unacked;

    if (events_unacked_of(event, &unacked)) {
        events_unacked_count(unacked, change);
    }
}

static bool async_take(void *event, void *arg)
{
    async_count(event, 1);
    return true;
}

HV_EXPORT int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
    struct ibv_async_event *got;

    if (!hv_is_ours(hv_hca_of(context))) {
        errno = EIO;
        return -1;
    }
    got = hv_event_take(&hv_context(context)->async->queue, async_take, NULL);
    if (!got) {
        return -1;
    }
    *event = *got;
    g_free(got);
    return 0;
}

HV_EXPORT void ibv_ack_async_event(struct ibv_async_event *event)
{
    async_count(event, -1);
}

/* -- objects that go --------------------------------------------------------------------------- */

static bool comp_is_about(const void *event, const void *obj)
{
    return event == obj;
}

static bool async_is_about(const void *event, const void *obj)
{
    const struct ibv_async_event *async = event;

    return hv_event_about(async->event_type) != HV_ABOUT_PORT &&
           (const void *)async->element.cq == obj;
}

static void async_forget(struct ibv_context *context, const void *obj)
{
    hv_event_take_out(&hv_context(context)->async->queue, async_is_about, obj, g_free);
}

void hv_event_drain_cq(struct user_cq *cq)
{
    if (cq->ibv.channel) {
        hv_event_take_out(&hv_channel(cq->ibv.channel)->queue, comp_is_about, cq, NULL);
    }
    async_forget(cq->ibv.context, cq);
    events_unacked_wait(UNACKED(cq, &cq->unacked_comp));
    events_unacked_wait(UNACKED(cq, &cq->unacked_async));
}

void hv_event_drain_qp(struct user_qp *qp)
{
    async_forget(qp->ibv.context, qp);
    events_unacked_wait(UNACKED(qp, &qp->unacked_async));
}

void hv_event_drain_srq(struct hv_srq *srq)
{
    async_forget(srq->ibv.context, srq);
    events_unacked_wait(UNACKED(srq, &srq->unacked_async));
}

void hv_event_drain_wq(struct hv_rwq *wq)
{
    async_forget(wq->ibv.context, wq);
    events_unacked_wait(UNACKED(wq, &wq->unacked_async));
}
