/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Events: completion channels, asynchronous events, and waiting for their acknowledgement.
 *
 * A channel and a context each have a queue (event_queue.h). The number of an object's events that
 * were handed out is internal to the library. The number of those that were acknowledged is in the
 * structure that the program sees, as in libibverbs. Destroying the object waits until both numbers
 * are equal.
 *
 * A thread may close the context while another thread waits here. The waiting thread reads nothing
 * of the context afterwards. A thread that reads a channel gets EIO. A thread that reads
 * asynchronous events goes on waiting, as in read(), because the kernel closes their file only with
 * the last descriptor (uverbs_async_event_release()).
 */
#include "guest-lib/verbs/exp/dct.h"
#include "guest-lib/verbs/kernel/events.h"
#include "guest-lib/verbs/user/user.h"
#include "wire/cancel.h"
#include "wire/forks.h"

/* -- acknowledgement --------------------------------------------------------------------------- */

/* The two counts of an object for one kind of event, and the mutex that protects them. */
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

/* refcnt is the number of the channel's CQs (hv_cq_create()). */
HV_EXPORT int ibv_destroy_comp_channel(struct ibv_comp_channel *ibchannel)
{
    struct hv_channel *channel = hv_channel(ibchannel);

    if (g_atomic_int_get(&ibchannel->refcnt)) {
        return hv_refuse(hv_hca_of(ibchannel->context), EBUSY,
                         "destroy_comp_channel: %d CQs use the channel; destroy them first",
                         g_atomic_int_get(&ibchannel->refcnt));
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
    struct hv_event_file *file = &hv_channel(channel)->file;
    struct hv_hca *hca = __atomic_load_n(&file->hca, __ATOMIC_ACQUIRE);
    struct user_cq *hv;

    if (hca && !hv_is_ours(hca)) {
        errno = EIO; /* the parent has the descriptor, too */
        return -1;
    }
    if (hca) {
        hv_rest(hca);
    }
    hv = hv_event_take(&file->queue, comp_take, NULL);
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

/* Protects the async pointer of each context: a thread that begins to read holds the queue before
 * the pointer is cleared. No other lock is taken under it. */
static pthread_mutex_t async_lock = PTHREAD_MUTEX_INITIALIZER;

static void async_before_fork(void)
{
    pthread_mutex_lock(&async_lock);
}

static void async_after_fork(void)
{
    pthread_mutex_unlock(&async_lock);
}

FORKS_INNER_LOCK static void async_watch_forks(void)
{
    pthread_atfork(async_before_fork, async_after_fork, async_after_fork);
}

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
        ctx->async = NULL;
        return err;
    }
    ctx->ibv.context.async_fd = ctx->async->queue.fd;
    return 0;
}

void hv_async_close(struct hv_context *ctx)
{
    struct hv_async *async = ctx->async;

    pthread_mutex_lock(&async_lock);
    ctx->async = NULL;
    pthread_mutex_unlock(&async_lock);
    hv_event_queue_fini(&async->queue);
    free(async);
}

/* Holds the context's queue for hv_event_take_held(). NULL with errno. */
static struct hv_event_store *async_hold(struct hv_context *ctx)
{
    struct hv_event_store *held = NULL;
    int state = cancel_disable();

    pthread_mutex_lock(&async_lock);
    if (!ctx->async) {
        errno = EBADF; /* as read() of a closed descriptor */
    } else if (!hv_is_ours(ctx->hca)) {
        errno = EIO;
    } else {
        held = hv_event_hold(&ctx->async->queue);
    }
    pthread_mutex_unlock(&async_lock);
    cancel_restore(state);
    return held;
}

/* Finds the counts of the event's object. False: it is about no object. */
static bool events_acks_of(const struct ibv_async_event *event, struct acks *acks)
{
    struct user_cq *cq = user_cq(event->element.cq);
    struct user_qp *qp = user_qp(event->element.qp);
    struct hv_srq *srq;
    struct hv_rwq *wq = hv_rwq(event->element.wq);
    struct hv_exp_dct *dct = (struct hv_exp_dct *)event->element.qp;

    switch (hv_event_about(event->event_type)) {
    case HV_ABOUT_CQ:
        *acks = ACKS(cq, async_);
        return true;
    case HV_ABOUT_QP:
        *acks = ACKS(qp, );
        return true;
    case HV_ABOUT_SRQ:
        srq = hv_srq(event->element.srq);
        *acks = ACKS(srq, );
        return true;
    case HV_ABOUT_WQ:
        *acks = ACKS(wq, );
        return true;
    case HV_ABOUT_DCT:
        *acks = ACKS(dct, );
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
    struct hv_event_store *held = async_hold(hv_context(context));
    struct ibv_async_event *got;

    got = held ? hv_event_take_held(held, false, async_take, NULL) : NULL;
    if (!got) {
        return -1;
    }
    *event = *got;
    g_free(got);
    if (hv_event_about(event->event_type) == HV_ABOUT_SRQ) {
        event->element.srq = hv_srq_of_program(hv_srq(event->element.srq));
    }
    return 0;
}

HV_EXPORT void ibv_ack_async_event(struct ibv_async_event *event)
{
    struct acks acks;

    if (events_acks_of(event, &acks)) {
        events_complete(acks, 1);
    }
}

/* -- objects that are destroyed ---------------------------------------------------------------- */

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

void hv_event_drain_dct(struct hv_exp_dct *dct)
{
    async_forget(dct->ibv.context, dct);
    events_wait(ACKS(dct, ));
}
