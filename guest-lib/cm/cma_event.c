/* SPDX-License-Identifier: BSD-2-Clause */
/* Turns events of the connection manager into events of rdma_cm. */
#include <netinet/in.h>
#include "guest-lib/cm/cma_internal.h"

#define PORT_NUM 1

int cma_tell(struct cma_id *id, enum cma_event type, int status)
{
    struct rdma_ucm_event_resp event = {.event = type, .status = (uint32_t)status};

    return id->cma->ops->event(id->cma->opaque, NULL, id, &event);
}

void cma_fill_ah(const struct cma_id *id, const uint8_t dgid[16], struct ib_uverbs_ah_attr *ah)
{
    memcpy(ah->grh.dgid, dgid, 16);
    ah->grh.sgid_index = (uint8_t)id->sgid_index;
    ah->grh.hop_limit = CMA_HOP_LIMIT;
    ah->grh.traffic_class = id->tos;
    ah->is_global = 1;
    ah->port_num = PORT_NUM;
}

static void cma_event_put_private(uint8_t *to, uint8_t *len, const struct cm_event *event,
                                  size_t skip)
{
    *len = (uint8_t)(event->private_len - skip);
    memcpy(to, event->private_data + skip, *len);
}

static void cma_event_put_params(struct rdma_ucm_event_resp *resp, const struct cm_params *params)
{
    struct rdma_ucm_conn_param *to = &resp->param.conn;

    to->qp_num = params->qpn;
    to->responder_resources = params->responder_resources;
    to->initiator_depth = params->initiator_depth;
    to->flow_control = params->flow_control;
    to->retry_count = params->retry_count;
    to->rnr_retry_count = params->rnr_retry_count;
    to->srq = params->srq;
    resp->ece.vendor_id = params->vendor_id;
    resp->ece.attr_mod = params->attr_mod;
}

/* -- requests -----------------------------------------------------------------------------------
 */

/* Whether a request to this address is for the listener (cma_match_private_data()). */
static bool cma_event_is_for(struct cma_id *listener, const struct sockaddr *to)
{
    const struct sockaddr *addr = cma_src(listener);
    bool any = cma_addr_is_any(addr);

    if ((any && !listener->afonly) || addr->sa_family == AF_IB) {
        return true;
    }
    return addr->sa_family == to->sa_family && (any || cma_addr_is_same(addr, to));
}

static struct cma_id *cma_event_find_listener(struct cma *cma, uint64_t service_id,
                                              const struct sockaddr *to, unsigned device)
{
    struct cma_bind *bind = g_hash_table_lookup(cma->binds, GUINT_TO_POINTER((uint32_t)service_id));

    for (guint i = 0; bind && i < bind->ids->len; i++) {
        struct cma_id *id = bind->ids->pdata[i];

        if (id->state == CMA_LISTEN && (id->device == CMA_NO_DEVICE || id->device == device) &&
            cma_event_is_for(id, to)) {
            return id;
        }
    }
    return NULL;
}

static struct cma_id *cma_event_new_id(struct cma_id *listener, struct cm_id *cm, uint8_t qp_type)
{
    struct cma_id *id = cma_create_id(listener->cma, listener->ps, qp_type, NULL);

    id->state = CMA_CONNECT;
    id->device = cm->av.port;
    id->sgid_index = cm->av.sgid_index;
    memcpy(id->dgid, cm->av.dgid, sizeof(id->dgid));
    id->tos = cm->av.traffic_class;
    id->path_mtu = cm->path_mtu ? cm->path_mtu : listener->cma->devices[id->device].mtu;
    id->packet_life_time = CMA_PACKET_LIFE_TIME;
    id->has_route = cm->state == CM_REQ_RCVD;
    id->cm = cm;
    return id;
}

/* The type of the queue pair that will answer a request. */
static uint8_t cma_event_qp_type(const struct cm_event *event)
{
    if (event->type == CM_EVENT_SIDR_REQ) {
        return CMA_QPT_UD;
    }
    return event->id->transport == PRM_CM_TRANSPORT_RC   ? CMA_QPT_RC
           : event->id->transport == PRM_CM_TRANSPORT_UC ? CMA_QPT_UC
                                                         : CMA_QPT_XRC_RECV;
}

int cma_on_request(struct cm_id *listening, const struct cm_event *event)
{
    struct cma *cma = listening->context;
    struct cm_id *cm = event->id;
    struct rdma_ucm_event_resp resp = {.event = CMA_EVENT_CONNECT_REQUEST};
    struct sockaddr_storage src, dst;
    uint8_t qp_type = cma_event_qp_type(event);
    bool is_ud = qp_type == CMA_QPT_UD;
    struct cma_id *listener, *id;
    int err;

    if (!cma_take_hdr((const void *)event->private_data, (uint16_t)listening->service_id, &src,
                      &dst)) {
        return EINVAL;
    }
    listener =
        cma_event_find_listener(cma, listening->service_id, (struct sockaddr *)&src, cm->av.port);
    if (!listener || (listener->qp_type && qp_type != listener->qp_type)) {
        return EINVAL;
    }
    if (listener->src.ss_family == AF_IB) {
        return ENODEV; /* the new identifier would have no device (cma_ib.c) */
    }
    id = cma_event_new_id(listener, cm, qp_type);
    id->src = src;
    id->dst = dst;
    if (is_ud) {
        cma_event_put_private(resp.param.ud.private_data, &resp.param.ud.private_data_len, event,
                              PRM_SIZE(cm_ip_hdr));
    } else {
        cma_event_put_private(resp.param.conn.private_data, &resp.param.conn.private_data_len,
                              event, PRM_SIZE(cm_ip_hdr));
        cma_event_put_params(&resp, &event->params);
    }
    cm->handler = cma_on_event;
    cm->context = id;
    err = cma->ops->event(cma->opaque, listener, id, &resp);
    if (err) {
        id->cm = NULL;
        cma_destroy_id(id);
    } else if (!is_ud) {
        cm_delay_answer(cm, CMA_MRA_TIMEOUT);
    }
    return err;
}

/* -- connections --------------------------------------------------------------------------------
 */

/* The rdma_cm event for each event of a connection. */
static const struct {
    enum cma_event event;
    int status;
    enum cma_state in, then;
} cma_events[] = {
    [CM_EVENT_REQ_ERROR] = {CMA_EVENT_UNREACHABLE, -ETIMEDOUT, CMA_CONNECT, CMA_CONNECT},
    [CM_EVENT_REP] = {CMA_EVENT_CONNECT_RESPONSE, 0, CMA_CONNECT, CMA_CONNECT},
    [CM_EVENT_REP_ERROR] = {CMA_EVENT_UNREACHABLE, -ETIMEDOUT, CMA_CONNECT, CMA_CONNECT},
    [CM_EVENT_RTU] = {CMA_EVENT_ESTABLISHED, 0, CMA_CONNECT, CMA_CONNECT},
    [CM_EVENT_REJ] = {CMA_EVENT_REJECTED, 0, CMA_CONNECT, CMA_CONNECT},
    [CM_EVENT_DREQ] = {CMA_EVENT_DISCONNECTED, 0, CMA_CONNECT, CMA_DISCONNECT},
    [CM_EVENT_DREQ_ERROR] = {CMA_EVENT_DISCONNECTED, -ETIMEDOUT, CMA_CONNECT, CMA_DISCONNECT},
    [CM_EVENT_DREP] = {CMA_EVENT_DISCONNECTED, 0, CMA_CONNECT, CMA_DISCONNECT},
    [CM_EVENT_TIMEWAIT_EXIT] = {CMA_EVENT_TIMEWAIT_EXIT, 0, CMA_DISCONNECT, CMA_DISCONNECT},
    [CM_EVENT_SIDR_REQ_ERROR] = {CMA_EVENT_UNREACHABLE, -ETIMEDOUT, CMA_CONNECT, CMA_CONNECT},
    [CM_EVENT_SIDR_REP] = {CMA_EVENT_ESTABLISHED, 0, CMA_CONNECT, CMA_CONNECT},
};

static void cma_event_put_sidr(struct cma_id *id, const struct cm_event *event,
                               struct rdma_ucm_event_resp *resp)
{
    struct rdma_ucm_ud_param *ud = &resp->param.ud;

    cma_event_put_private(ud->private_data, &ud->private_data_len, event, 0);
    if (event->status != PRM_CM_SIDR_STATUS_SUCCESS) {
        resp->event = CMA_EVENT_UNREACHABLE;
        resp->status = event->status;
        return;
    }
    id->qkey = event->qkey;
    ud->qp_num = event->params.qpn;
    ud->qkey = event->qkey;
    cma_fill_ah(id, id->dgid, &ud->ah_attr);
}

int cma_on_event(struct cm_id *cm, const struct cm_event *event)
{
    struct cma_id *id = cm->context;
    struct rdma_ucm_event_resp resp = {.event = cma_events[event->type].event,
                                       .status = (uint32_t)cma_events[event->type].status};

    if (id->state != cma_events[event->type].in) {
        return 0;
    }
    id->state = cma_events[event->type].then;
    if (event->type == CM_EVENT_REP) {
        cm_delay_answer(cm, CMA_MRA_TIMEOUT);
        cma_event_put_params(&resp, &event->params);
    }
    if (event->type == CM_EVENT_REP || event->type == CM_EVENT_REJ) {
        cma_event_put_private(resp.param.conn.private_data, &resp.param.conn.private_data_len,
                              event, 0);
    }
    if (event->type == CM_EVENT_REJ) {
        resp.status = event->status;
    }
    if (event->type == CM_EVENT_SIDR_REP) {
        cma_event_put_sidr(id, event, &resp);
    }
    return id->cma->ops->event(id->cma->opaque, NULL, id, &resp);
}
