/* SPDX-License-Identifier: BSD-2-Clause */
/* Events: from the EQ to the queues that programs read. */
#include "guest-lib/verbs/kernel/devx.h"
#include "guest-lib/verbs/kernel/events.h"
#include "guest-lib/verbs/kernel/gsi.h"
#include "guest-lib/verbs/kernel/hca.h"

/* To a context that is open. Objects of one that is closed stay while another one shares its file:
 * nobody is told of them. */
static void async_put(struct hv_hca *hca, struct hv_context *ctx,
                      const struct ibv_async_event *event)
{
    if (g_ptr_array_find(hca->contexts, ctx, NULL)) {
        hv_event_put(&ctx->async->queue, g_memdup2(event, sizeof(*event)));
    }
}

enum hv_about hv_event_about(enum ibv_event_type type)
{
    switch (type) {
    case IBV_EVENT_CQ_ERR:
        return HV_ABOUT_CQ;
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_PATH_MIG:
    case IBV_EVENT_PATH_MIG_ERR:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
        return HV_ABOUT_QP;
    case IBV_EVENT_SRQ_ERR:
    case IBV_EVENT_SRQ_LIMIT_REACHED:
        return HV_ABOUT_SRQ;
    case IBV_EVENT_WQ_FATAL:
        return HV_ABOUT_WQ;
    default:
        return HV_ABOUT_PORT;
    }
}

/* The device numbers queues of all kinds in one space: a number is a QP's, its SQ's or RQ's, or a
 * WQ's. */
static const struct {
    uint8_t eqe;
    enum ibv_event_type ibv;
} object_events[] = {
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

    switch (hv_event_about(type)) {
    case HV_ABOUT_CQ:
        cq = g_hash_table_lookup(hca->cqs, GUINT_TO_POINTER(num));
        if (cq) {
            event.element.cq = &cq->ibv;
            context = cq->ibv.context;
        }
        break;
    case HV_ABOUT_QP:
        qp = g_hash_table_lookup(hca->qps, GUINT_TO_POINTER(num));
        if (qp && qp->dc == HV_DC_DCT) {
            break; /* mlx5_ib lets none of a DCT's through (dct_allowed_event_types()) */
        }
        for (struct hv_qp *other = qp ? qp->next_handle : NULL; other && other != qp;
             other = other->next_handle) {
            event.element.qp = &other->ibv;
            async_put(hca, hv_context(other->ibv.context), &event);
        }
        if (qp) {
            event.element.qp = &qp->ibv;
            context = qp->ibv.context;
        }
        break;
    case HV_ABOUT_WQ:
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
        async_put(hca, hv_context(context), &event);
    }
}

/* event_sub_type of PORT_CHANGE */
#define PORT_DOWN 1
#define PORT_UP   4

static void events_put_all(struct hv_hca *hca, const struct ibv_async_event *event)
{
    for (guint i = 0; i < hca->contexts->len; i++) {
        async_put(hca, hca->contexts->pdata[i], event);
    }
}

void hv_events_fatal(struct hv_hca *hca)
{
    struct ibv_async_event event = {.event_type = IBV_EVENT_DEVICE_FATAL};

    pthread_mutex_lock(&hca->reg_lock);
    events_put_all(hca, &event);
    pthread_mutex_unlock(&hca->reg_lock);
}

static bool async_is_of_object(const void *event, const void *unused)
{
    return hv_event_about(((const struct ibv_async_event *)event)->event_type) != HV_ABOUT_PORT;
}

void hv_events_removed(struct hv_hca *hca)
{
    pthread_mutex_lock(&hca->reg_lock);
    if (hca->gsi) {
        hv_gsi_removed(hca->gsi);
    }
    for (guint i = 0; i < hca->contexts->len; i++) {
        struct hv_context *ctx = hca->contexts->pdata[i];

        hv_event_take_out(&ctx->async->queue, async_is_of_object, NULL, g_free);
    }
    events_put_all(hca, &(struct ibv_async_event){.event_type = IBV_EVENT_DEVICE_FATAL});
    pthread_mutex_unlock(&hca->reg_lock);
    hv_event_files_removed(hca);
}

static void port_event(struct hv_hca *hca, uint8_t sub_type)
{
    struct ibv_async_event event = {.element.port_num = 1};

    if (sub_type != PORT_DOWN && sub_type != PORT_UP) {
        return;
    }
    event.event_type = sub_type == PORT_UP ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR;
    events_put_all(hca, &event);
}

void hv_events_dispatch(struct hv_hca *hca, const struct drv_event *event)
{
    pthread_mutex_lock(&hca->reg_lock);
    if (hv_is_removed(hca)) {
        pthread_mutex_unlock(&hca->reg_lock);
        return;
    }
    if (event->type == PRM_EVENT_TYPE_COMP) {
        struct hv_cq *cq = g_hash_table_lookup(hca->cqs, GUINT_TO_POINTER(event->num));

        hv_gsi_event(hca, event->num);
        if (cq && cq->ibv.channel) {
            hv_event_put(&hv_channel(cq->ibv.channel)->file.queue, cq);
        }
    } else if (event->type == PRM_EVENT_TYPE_PORT_CHANGE) {
        port_event(hca, event->sub_type);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(object_events); i++) {
        if (object_events[i].eqe == event->type) {
            object_event(hca, object_events[i].ibv, event->num);
        }
    }
    pthread_mutex_unlock(&hca->reg_lock);
    hv_dv_event(hca, event);
}
