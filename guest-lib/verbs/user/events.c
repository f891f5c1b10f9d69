/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Events: completion channels, asynchronous events, and waiting for their acknowledgement.
 *
 * A channel and a context each have a queue (event_queue.h). What an object counts of its events
 * that were handed out belongs to the library; how many of them were acknowledged it counts in the
 * structure that the program sees, as libibverbs does. Destroying the object waits until they are
 * the same.
 */
#include "guest-lib/verbs/kernel/events.h"
#include "guest-lib/verbs/user/user.h"

/* -- what waits to be acknowledged ------------------------------------------------------------- */

/* An object's two counts of a kind of event; the mutex is theirs. */
struct acks {
    pthread_mutex_t *mutex;
    pthread_cond_t *cond;
    uint32_t *reported, *completed;
};

#define ACKS(obj, kind)                                                                            \
    ((struct acks){&(obj)->ibv.mutex, &(obj)->ibv.cond, &(obj)->kind##events_reported,             \
                   &(obj)->ibv.kind##events_completed})

static void events_report(struct acks acks)
{
    pthread_mutex_lock(acks.mutex);
    ++*acks.reported;
    pthread_mutex_unlock(acks.mutex);
}

static void events_complete(struct acks acks, uint32_t num)
{
    pthread_mutex_lock(acks.mutex);
    *acks.completed += num;
    pthread_cond_broadcast(acks.cond);
    pthread_mutex_unlock(acks.mutex);
}

static void events_wait(struct acks acks)
{
    pthread_mutex_lock(acks.mutex);
    while (*acks.completed != *acks.reported) {
        pthread_cond_wait(acks.cond, acks.mutex);
    }
    pthread_mutex_unlock(acks.mutex);
}

/* -- completion channels ----------------------------------------------------------------------- */

HV_EXPORT struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
    struct hv_channel *channel = calloc(1, sizeof(*channel));

    if (!channel) {
        return NULL;
    }
    if (hv_kernel(hv_event_file_open(context, &channel->file, NULL))) {
        free(channel);
        return NULL;
    }
    channel->ibv.context = context;
    channel->ibv.fd = channel->file.queue.fd;
    return &channel->ibv;
}

/* refcnt counts the channel's CQs (hv_cq_create()). */
HV_EXPORT int ibv_destroy_comp_channel(struct ibv_comp_channel *ibchannel)
{
    struct hv_channel *channel = hv_channel(ibchannel);

    if (g_atomic_int_get(&ibchannel->refcnt)) {
        return EBUSY;
    }
    hv_event_file_close(&channel->file);
    free(channel);
    return 0;
}

static bool comp_take(void *event, void *arg)
{
    struct user_cq *cq = event;

    events_report(ACKS(cq, comp_));
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
    hv = hv_event_take(&hv_channel(channel)->file.queue, comp_take, NULL);
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
    events_complete(ACKS(user_cq(cq), comp_), nevents);
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
static bool events_acks_of(const struct ibv_async_event *event, struct acks *acks)
{
    struct user_cq *cq = user_cq(event->element.cq);
    struct user_qp *qp = user_qp(event->element.qp);
    struct hv_srq *srq = hv_srq(event->element.srq);
    struct hv_rwq *wq = hv_rwq(event->element.wq);

    switch (hv_event_about(event->event_type)) {
    case HV_ABOUT_CQ:
        *acks = ACKS(cq, async_);
        return true;
    case HV_ABOUT_QP:
        *acks = ACKS(qp, );
        return true;
    case HV_ABOUT_SRQ:
        *acks = ACKS(srq, );
        return true;
    case HV_ABOUT_WQ:
        *acks = ACKS(wq, );
        return true;
    default:
        return false;
    }
}

static bool async_take(void *event, void *arg)
{
    struct acks acks;

    if (events_acks_of(event, &acks)) {
        events_report(acks);
    }
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
    struct acks acks;

    if (events_acks_of(event, &acks)) {
        events_complete(acks, 1);
    }
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
        hv_event_take_out(&hv_channel(cq->ibv.channel)->file.queue, comp_is_about, cq, NULL);
    }
    async_forget(cq->ibv.context, cq);
    events_wait(ACKS(cq, comp_));
    events_wait(ACKS(cq, async_));
}

void hv_event_drain_qp(struct user_qp *qp)
{
    async_forget(qp->ibv.context, qp);
    events_wait(ACKS(qp, ));
}

void hv_event_drain_srq(struct hv_srq *srq)
{
    async_forget(srq->ibv.context, srq);
    events_wait(ACKS(srq, ));
}

void hv_event_drain_wq(struct hv_rwq *wq)
{
    async_forget(wq->ibv.context, wq);
    events_wait(ACKS(wq, ));
}
