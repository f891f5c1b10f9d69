/* SPDX-License-Identifier: BSD-2-Clause */
/* Takes events from the EQ to the queues that programs read. */
#include "guest-lib/verbs/kernel/devx.h"
#include "guest-lib/verbs/kernel/events.h"
#include "guest-lib/verbs/kernel/gsi.h"
#include "guest-lib/verbs/kernel/hca.h"
#include "guest-lib/verbs/kernel/odp.h"

/* Reports an event to a context, if it is open. Objects of a closed context stay while another
 * context shares its file, but their events are not reported. */
static void async_put(struct hv_hca *hca, struct hv_context *ctx,
                      const struct ibv_async_event *event)
{
    if (g_ptr_array_find(hca->contexts, ctx, NULL)) {
        hv_event_put(&ctx->async->queue, g_memdup2(event, sizeof(*event)));
    }
}

/* How an EQE names each kind of object. The device numbers queues of all kinds in one space: a
 * number belongs to a QP, to its SQ or RQ, or to a WQ. */
static const struct object_event {
    uint8_t eqe;
    enum hv_about about;
    enum ibv_event_type ibv;
} object_events[] = {
    {PRM_EVENT_TYPE_CQ_ERROR, HV_ABOUT_CQ, IBV_EVENT_CQ_ERR},
    {PRM_EVENT_TYPE_PATH_MIG, HV_ABOUT_QP, IBV_EVENT_PATH_MIG},
    {PRM_EVENT_TYPE_PATH_MIG_FAILED, HV_ABOUT_QP, IBV_EVENT_PATH_MIG_ERR},
    {PRM_EVENT_TYPE_COMM_EST, HV_ABOUT_QP, IBV_EVENT_COMM_EST},
    {PRM_EVENT_TYPE_SQ_DRAINED, HV_ABOUT_QP, IBV_EVENT_SQ_DRAINED},
    {PRM_EVENT_TYPE_SRQ_LAST_WQE, HV_ABOUT_QP, IBV_EVENT_QP_LAST_WQE_REACHED},
    {PRM_EVENT_TYPE_WQ_INVAL_REQ_ERROR, HV_ABOUT_QP, IBV_EVENT_QP_REQ_ERR},
    {PRM_EVENT_TYPE_WQ_ACCESS_ERROR, HV_ABOUT_QP, IBV_EVENT_QP_ACCESS_ERR},
    {PRM_EVENT_TYPE_WQ_CATAS_ERROR, HV_ABOUT_QP, IBV_EVENT_QP_FATAL},
    {PRM_EVENT_TYPE_WQ_CATAS_ERROR, HV_ABOUT_WQ, IBV_EVENT_WQ_FATAL},
    {PRM_EVENT_TYPE_SRQ_CATAS_ERROR, HV_ABOUT_SRQ, IBV_EVENT_SRQ_ERR},
    {PRM_EVENT_TYPE_SRQ_RQ_LIMIT, HV_ABOUT_SRQ, IBV_EVENT_SRQ_LIMIT_REACHED},
    /* mlx5_ib_dct_event() of MLNX_OFED */
    {PRM_EVENT_TYPE_DCT_KEY_VIOLATION, HV_ABOUT_DCT, HV_EVENT_DCT_KEY_VIOLATION},
    {PRM_EVENT_TYPE_WQ_ACCESS_ERROR, HV_ABOUT_DCT, HV_EVENT_DCT_ACCESS_ERR},
    {PRM_EVENT_TYPE_WQ_INVAL_REQ_ERROR, HV_ABOUT_DCT, HV_EVENT_DCT_REQ_ERR},
};

enum hv_about hv_event_about(enum ibv_event_type type)
{
    for (size_t i = 0; i < G_N_ELEMENTS(object_events); i++) {
        if (object_events[i].ibv == type) {
            return object_events[i].about;
        }
    }
    return HV_ABOUT_PORT;
}

/* Each kind of object begins with its context, and the event's element points to the object. */
static void event_put_object(struct hv_hca *hca, enum ibv_event_type type, void *obj)
{
    struct ibv_async_event event = {.event_type = type, .element.cq = obj};

    async_put(hca, hv_context(*(struct ibv_context **)obj), &event);
}

/* Reports to all handles of a QP (xrc_tgt.c). mlx5_ib reports no events of a DCT
 * (dct_allowed_event_types()). */
static void event_put_qp(struct hv_hca *hca, enum ibv_event_type type, struct hv_qp *qp)
{
    if (qp->dc == HV_DC_DCT) {
        return;
    }
    for (struct hv_qp *other = qp->next_handle; other && other != qp; other = other->next_handle) {
        event_put_object(hca, type, other);
    }
    event_put_object(hca, type, qp);
}

/* To be called with the registry's lock, so that the objects cannot be destroyed meanwhile. */
static void events_put_objects(struct hv_hca *hca, const struct drv_event *event)
{
    for (size_t i = 0; i < G_N_ELEMENTS(object_events); i++) {
        const struct object_event *row = &object_events[i];
        void *obj = row->eqe == event->type ? hv_number_find(hca, row->about, event->num) : NULL;

        if (obj && row->about == HV_ABOUT_QP) {
            event_put_qp(hca, row->ibv, obj);
        } else if (obj) {
            event_put_object(hca, row->ibv, obj);
        }
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
    if (event->type == PRM_EVENT_TYPE_PAGE_FAULT) {
        hv_odp_event(hca, event);
        return;
    }
    pthread_mutex_lock(&hca->reg_lock);
    if (hv_is_removed(hca)) {
        pthread_mutex_unlock(&hca->reg_lock);
        return;
    }
    if (event->type == PRM_EVENT_TYPE_COMP) {
        struct hv_cq *cq = hv_number_find(hca, HV_ABOUT_CQ, event->num);

        hv_gsi_event(hca, event->num);
        if (cq && cq->ibv.channel) {
            hv_event_put(&hv_channel(cq->ibv.channel)->file.queue, cq);
        }
    } else if (event->type == PRM_EVENT_TYPE_PORT_CHANGE) {
        port_event(hca, event->sub_type);
    }
    events_put_objects(hca, event);
    pthread_mutex_unlock(&hca->reg_lock);
    hv_dv_event(hca, event);
    if (event->type == PRM_EVENT_TYPE_GENERAL_EVENT &&
        event->sub_type == PRM_GENERAL_SUBTYPE_DELAY_DROP_TIMEOUT) {
        uverbs_delay_drop_event(hca);
    }
}
