/* SPDX-License-Identifier: BSD-2-Clause */
/* Receives messages of connection management: from any sender, in any order, any number of
 * times. */
#include "guest-lib/cm/cm_internal.h"

#define CLASS_VERSION 2
#define METHOD_SEND   3

/* The event for a message, with its private data. */
#define EVENT(event_type, of, layout, msg)                                                         \
    {                                                                                              \
        .type = (event_type), .id = (of), .private_data = PRM_PTR(layout, msg, private_data),      \
        .private_len = PRM_COUNT(layout, private_data)                                             \
    }

static void cm_recv_tell(struct cm_id *id, const struct cm_event *event)
{
    if (id->handler) {
        id->handler(id, event);
    }
}

static void cm_recv_duplicate(struct cm *cm, const void *mad)
{
    cm->stats.duplicates[PRM_GET(mad_hdr, mad, attr_id) - PRM_CM_ATTR_REQ]++;
}

/* -- REQ ----------------------------------------------------------------------------------------
 */

static void cm_recv_again(struct cm_id *id, const void *mad)
{
    cm_recv_duplicate(id->cm, mad);
    if (id->state == CM_MRA_REQ_SENT) {
        cm_repeat_mra(id, PRM_CM_MESSAGE_REQ);
    } else if (id->state == CM_TIMEWAIT) {
        cm_issue_rej(id->cm, &id->av, mad, PRM_CM_MESSAGE_REQ, PRM_CM_REJ_REASON_STALE_CONN);
    }
}

/* The resources that the sender offers are those that the recipient may use, and vice versa. */
static void cm_recv_take_req(struct cm_id *id, const struct cm_av *from,
                             const struct prm_cm_req *req)
{
    const struct prm_cm_path *path = PRM_PTR(cm_req, req, primary);

    id->av = *from;
    id->av.flow_label = PRM_GET(cm_path, path, flow_label);
    id->av.traffic_class = (uint8_t)PRM_GET(cm_path, path, traffic_class);
    id->av.sl = (uint8_t)PRM_GET(cm_path, path, sl);
    id->rate = (uint8_t)PRM_GET(cm_path, path, packet_rate);
    id->ack_timeout = (uint8_t)PRM_GET(cm_path, path, local_ack_timeout);
    id->remote_id = PRM_GET(cm_req, req, local_comm_id);
    id->remote_guid = PRM_GET(cm_req, req, local_ca_guid);
    id->service_id = PRM_GET(cm_req, req, service_id);
    id->tid = PRM_GET(mad_hdr, PRM_PTR(cm_req, req, hdr), tid);
    id->timeout_ms = cm_ms((uint8_t)PRM_GET(cm_req, req, local_cm_timeout));
    id->max_retries = PRM_GET(cm_req, req, max_cm_retries);
    id->transport = (uint8_t)PRM_GET(cm_req, req, transport);
    id->is_asked = true;
    id->remote_qpn = PRM_GET(cm_req, req, local_qpn);
    id->initiator_depth = (uint8_t)PRM_GET(cm_req, req, responder_resources);
    id->responder_resources = (uint8_t)PRM_GET(cm_req, req, initiator_depth);
    id->path_mtu = (uint8_t)PRM_GET(cm_req, req, path_mtu);
    id->sq_psn = PRM_GET(cm_req, req, starting_psn);
    id->retry_count = (uint8_t)PRM_GET(cm_req, req, retry_count);
    id->rnr_retry_count = (uint8_t)PRM_GET(cm_req, req, rnr_retry_count);
    id->state = CM_REQ_RCVD;
    cm_meet(id);
}

static struct cm_params cm_recv_req_params(const struct cm_id *id, const struct prm_cm_req *req)
{
    return (struct cm_params){
        .qpn = id->remote_qpn,
        .starting_psn = id->sq_psn,
        .responder_resources = id->responder_resources,
        .initiator_depth = id->initiator_depth,
        .flow_control = (uint8_t)PRM_GET(cm_req, req, flow_control),
        .retry_count = id->retry_count,
        .rnr_retry_count = id->rnr_retry_count,
        .srq = (uint8_t)PRM_GET(cm_req, req, srq),
        .vendor_id = PRM_GET(cm_req, req, vendor_id),
        .attr_mod = PRM_GET(mad_hdr, PRM_PTR(cm_req, req, hdr), attr_mod),
    };
}

static bool cm_recv_knows_transport(const struct prm_cm_req *req)
{
    uint32_t transport = PRM_GET(cm_req, req, transport);

    return transport == PRM_CM_TRANSPORT_RC || transport == PRM_CM_TRANSPORT_UC ||
           (transport == PRM_CM_TRANSPORT_EXTENDED &&
            PRM_GET(cm_req, req, extended_transport) == PRM_CM_EXTENDED_TRANSPORT_XRC);
}

/* Reports a new identifier to its listener. If the listener does not want it, the identifier is
 * destroyed. */
static void cm_recv_offer(struct cm_id *listener, struct cm_id *id, const struct cm_event *event)
{
    int err;

    id->handler = listener->handler;
    id->context = listener->context;
    err = listener->handler(listener, event);
    if (err == ENOMEM) {
        id->cm->stats.full++;
        cm_forget(id);
    } else if (err) {
        cm_destroy_id(id);
    }
}

static void cm_recv_req(struct cm *cm, const struct cm_av *from, const void *mad)
{
    const struct prm_cm_req *req = mad;
    uint64_t guid = PRM_GET(cm_req, req, local_ca_guid);
    struct cm_id *id, *other, *listener;

    listener = cm_find_listener(cm, PRM_GET(cm_req, req, service_id));
    id = cm_create_id(cm, NULL, NULL);
    if (!id) {
        return; /* the peer may repeat its request */
    }
    other = cm_find_same_name(id, PRM_GET(cm_req, req, local_comm_id), guid);
    if (other) {
        cm_recv_again(other, mad);
        cm_forget(id);
        return;
    }
    other = cm_find_same_qp(id, PRM_GET(cm_req, req, local_qpn), guid);
    if (other) {
        cm_issue_rej(cm, from, mad, PRM_CM_MESSAGE_REQ, PRM_CM_REJ_REASON_STALE_CONN);
        cm_forget(id);
        cm_send_dreq(other); /* the peer has forgotten this connection */
    } else if (!listener || !cm_recv_knows_transport(req)) {
        cm_issue_rej(cm, from, mad, PRM_CM_MESSAGE_REQ, PRM_CM_REJ_REASON_INVALID_SERVICE_ID);
        cm_forget(id);
    } else {
        struct cm_event event = EVENT(CM_EVENT_REQ, id, cm_req, req);

        cm_recv_take_req(id, from, req);
        event.params = cm_recv_req_params(id, req);
        cm_recv_offer(listener, id, &event);
    }
}

/* -- MRA, REJ -----------------------------------------------------------------------------------
 */

static void cm_recv_mra(struct cm *cm, const struct cm_av *from, const void *mad)
{
    unsigned message = PRM_GET(cm_mra, mad, message);
    uint32_t remote = message == PRM_CM_MESSAGE_REQ ? 0 : PRM_GET(cm_mra, mad, local_comm_id);
    struct cm_id *id = cm_find(cm, PRM_GET(cm_mra, mad, remote_comm_id), remote);

    if (!id) {
        return;
    }
    if (id->state == CM_REQ_SENT && message == PRM_CM_MESSAGE_REQ) {
        id->state = CM_MRA_REQ_RCVD;
    } else if (id->state == CM_REP_SENT && message == PRM_CM_MESSAGE_REP) {
        id->state = CM_MRA_REP_RCVD;
    } else {
        cm_recv_duplicate(cm, mad);
        return;
    }
    cm_set_timer(id,
                 cm_ms((uint8_t)PRM_GET(cm_mra, mad, service_timeout)) + cm_ms(id->ack_timeout));
}

/* Finds the identifier that a REJ is for. A peer that gave up waiting may not know this side's ID
 * yet. */
static struct cm_id *cm_recv_rejected(struct cm *cm, const struct prm_cm_rej *rej)
{
    uint32_t remote = PRM_GET(cm_rej, rej, local_comm_id);
    struct cm_id nobody = {.cm = cm};

    if (PRM_GET(cm_rej, rej, reason) == PRM_CM_REJ_REASON_TIMEOUT) {
        return cm_find_same_name(&nobody, remote, prm_load64(PRM_PTR(cm_rej, rej, ari)));
    }
    if (PRM_GET(cm_rej, rej, message) == PRM_CM_MESSAGE_REQ) {
        remote = 0;
    }
    return cm_find(cm, PRM_GET(cm_rej, rej, remote_comm_id), remote);
}

static void cm_recv_rej(struct cm *cm, const struct cm_av *from, const void *mad)
{
    const struct prm_cm_rej *rej = mad;
    struct cm_id *id = cm_recv_rejected(cm, rej);
    struct cm_event event = EVENT(CM_EVENT_REJ, id, cm_rej, rej);

    if (!id || !cm_states[id->state].rejected) {
        return;
    }
    event.status = PRM_GET(cm_rej, rej, reason);
    /* REP_SENT: packets of the connection may be on the way only if this side rejects (IBTA
     * 12.9.8.3) */
    if (id->state == CM_ESTABLISHED || id->state == CM_DREQ_SENT || id->state == CM_REP_RCVD ||
        id->state == CM_MRA_REP_SENT || event.status == PRM_CM_REJ_REASON_STALE_CONN) {
        cm_enter_timewait(id);
    } else {
        cm_enter(id, CM_IDLE);
    }
    cm_recv_tell(id, &event);
}

/* -- REP, RTU -----------------------------------------------------------------------------------
 */

/* Finds the identifier whose two communication IDs are in a message. */
static struct cm_id *cm_recv_named(struct cm *cm, const void *mad)
{
    return cm_find(cm, PRM_GET(cm_rtu, mad, remote_comm_id), PRM_GET(cm_rtu, mad, local_comm_id));
}

static void cm_recv_rep_again(struct cm *cm, const void *mad)
{
    struct cm_id *id = cm_recv_named(cm, mad);

    cm_recv_duplicate(cm, mad);
    if (id && id->state == CM_ESTABLISHED) {
        cm_repeat_rtu(id);
    } else if (id && id->state == CM_MRA_REP_SENT) {
        cm_repeat_mra(id, PRM_CM_MESSAGE_REP);
    }
}

/* An XRC target puts its queue pair's number where a reliable datagram has its EE context. */
static uint32_t cm_recv_rep_qpn(const struct cm_id *id, const struct prm_cm_rep *rep)
{
    return id->transport == PRM_CM_TRANSPORT_EXTENDED ? PRM_GET(cm_rep, rep, local_eecn)
                                                      : PRM_GET(cm_rep, rep, local_qpn);
}

static void cm_recv_rep(struct cm *cm, const struct cm_av *from, const void *mad)
{
    const struct prm_cm_rep *rep = mad;
    struct cm_id *id = cm_find(cm, PRM_GET(cm_rep, rep, remote_comm_id), 0), *other;
    struct cm_event event = EVENT(CM_EVENT_REP, id, cm_rep, rep);
    uint64_t guid = PRM_GET(cm_rep, rep, local_ca_guid);

    if (!id || (id->state != CM_REQ_SENT && id->state != CM_MRA_REQ_RCVD) ||
        cm_find_same_name(id, PRM_GET(cm_rep, rep, local_comm_id), guid)) {
        cm_recv_rep_again(cm, mad);
        return;
    }
    other = cm_find_same_qp(id, cm_recv_rep_qpn(id, rep), guid);
    if (other) {
        cm_issue_rej(cm, from, mad, PRM_CM_MESSAGE_REP, PRM_CM_REJ_REASON_STALE_CONN);
        cm_send_dreq(other);
        return;
    }
    cm_enter(id, CM_REP_RCVD);
    id->remote_id = PRM_GET(cm_rep, rep, local_comm_id);
    id->remote_guid = guid;
    id->remote_qpn = cm_recv_rep_qpn(id, rep);
    id->initiator_depth = (uint8_t)PRM_GET(cm_rep, rep, responder_resources);
    id->responder_resources = (uint8_t)PRM_GET(cm_rep, rep, initiator_depth);
    id->sq_psn = PRM_GET(cm_rep, rep, starting_psn);
    id->rnr_retry_count = (uint8_t)PRM_GET(cm_rep, rep, rnr_retry_count);
    id->ack_timeout = cm_ack_timeout_of((uint8_t)PRM_GET(cm_rep, rep, target_ack_delay),
                                        (uint8_t)(id->ack_timeout - (id->ack_timeout > 0)));
    event.params = (struct cm_params){
        .qpn = id->remote_qpn,
        .starting_psn = id->sq_psn,
        .responder_resources = id->responder_resources,
        .initiator_depth = id->initiator_depth,
        .flow_control = (uint8_t)PRM_GET(cm_rep, rep, flow_control),
        .rnr_retry_count = id->rnr_retry_count,
        .srq = (uint8_t)PRM_GET(cm_rep, rep, srq),
        .vendor_id = PRM_GET(cm_rep, rep, vendor_id_high) << 16 |
                     PRM_GET(cm_rep, rep, vendor_id_mid) << 8 | PRM_GET(cm_rep, rep, vendor_id_low),
        .attr_mod = PRM_GET(mad_hdr, PRM_PTR(cm_rep, rep, hdr), attr_mod),
    };
    cm_recv_tell(id, &event);
}

static void cm_recv_rtu(struct cm *cm, const struct cm_av *from, const void *mad)
{
    const struct prm_cm_rtu *rtu = mad;
    struct cm_id *id = cm_recv_named(cm, mad);
    struct cm_event event = EVENT(CM_EVENT_RTU, id, cm_rtu, rtu);

    if (!id) {
        return;
    }
    if (id->state != CM_REP_SENT && id->state != CM_MRA_REP_RCVD) {
        cm_recv_duplicate(cm, mad);
        return;
    }
    cm_enter(id, CM_ESTABLISHED);
    cm_recv_tell(id, &event);
}

/* -- the end ------------------------------------------------------------------------------------
 */

static void cm_recv_dreq(struct cm *cm, const struct cm_av *from, const void *mad)
{
    const struct prm_cm_dreq *dreq = mad;
    struct cm_id *id = cm_recv_named(cm, mad);
    struct cm_event event = EVENT(CM_EVENT_DREQ, id, cm_dreq, dreq);

    if (!id) {
        cm_recv_duplicate(cm, mad);
        cm_issue_drep(cm, from, mad);
        return;
    }
    if (id->local_qpn != PRM_GET(cm_dreq, dreq, remote_qpn)) {
        return;
    }
    switch (id->state) {
    case CM_REP_SENT:
    case CM_MRA_REP_RCVD:
    case CM_DREQ_SENT:
    case CM_ESTABLISHED:
        cm_enter(id, CM_DREQ_RCVD);
        id->tid = PRM_GET(mad_hdr, mad, tid);
        cm_recv_tell(id, &event);
        break;
    case CM_TIMEWAIT:
        cm_recv_duplicate(cm, mad);
        id->tid = PRM_GET(mad_hdr, mad, tid);
        cm_repeat_drep(id);
        break;
    default:
        cm_recv_duplicate(cm, mad);
    }
}

static void cm_recv_drep(struct cm *cm, const struct cm_av *from, const void *mad)
{
    const struct prm_cm_drep *drep = mad;
    struct cm_id *id = cm_recv_named(cm, mad);
    struct cm_event event = EVENT(CM_EVENT_DREP, id, cm_drep, drep);

    if (!id || (id->state != CM_DREQ_SENT && id->state != CM_DREQ_RCVD)) {
        return;
    }
    cm_enter_timewait(id);
    cm_recv_tell(id, &event);
}

/* -- datagrams ----------------------------------------------------------------------------------
 */

static void cm_recv_sidr_req(struct cm *cm, const struct cm_av *from, const void *mad)
{
    const struct prm_cm_sidr_req *req = mad;
    uint32_t request = PRM_GET(cm_sidr_req, req, request_id);
    struct cm_id *id, *listener = cm_find_listener(cm, PRM_GET(cm_sidr_req, req, service_id));
    struct cm_event event = EVENT(CM_EVENT_SIDR_REQ, NULL, cm_sidr_req, req);

    if (cm_find_sidr(cm, NULL, from, request)) {
        cm_recv_duplicate(cm, mad);
        return;
    }
    id = cm_create_id(cm, NULL, NULL);
    if (!id) {
        return;
    }
    id->av = *from;
    id->remote_id = request;
    id->service_id = PRM_GET(cm_sidr_req, req, service_id);
    id->tid = PRM_GET(mad_hdr, mad, tid);
    id->state = CM_SIDR_REQ_RCVD;
    if (!listener) {
        cm_send_sidr_rep(id, PRM_CM_SIDR_STATUS_UNSUPPORTED, 0, 0, NULL, 0);
        cm_forget(id);
        return;
    }
    event.id = id;
    cm_recv_offer(listener, id, &event);
}

static void cm_recv_sidr_rep(struct cm *cm, const struct cm_av *from, const void *mad)
{
    const struct prm_cm_sidr_rep *rep = mad;
    struct cm_id *id = cm_find(cm, PRM_GET(cm_sidr_rep, rep, request_id), 0);
    struct cm_event event = EVENT(CM_EVENT_SIDR_REP, id, cm_sidr_rep, rep);

    if (!id || id->state != CM_SIDR_REQ_SENT) {
        return;
    }
    cm_enter(id, CM_IDLE);
    event.status = PRM_GET(cm_sidr_rep, rep, status);
    event.params.qpn = PRM_GET(cm_sidr_rep, rep, qpn);
    event.qkey = PRM_GET(cm_sidr_rep, rep, qkey);
    cm_recv_tell(id, &event);
}

/* -- alternate paths, which are unsupported ---------------------------------------------------- */

static void cm_recv_lap(struct cm *cm, const struct cm_av *from, const void *mad)
{
    struct cm_id *id = cm_recv_named(cm, mad);
    uint8_t answer[CM_MAD_LEN];

    if (!id || id->state != CM_ESTABLISHED) {
        return;
    }
    cm_begin(answer, PRM_CM_ATTR_APR, PRM_GET(mad_hdr, mad, tid));
    PRM_SET(cm_apr, (void *)answer, local_comm_id, id->local_id);
    PRM_SET(cm_apr, (void *)answer, remote_comm_id, id->remote_id);
    PRM_SET(cm_apr, (void *)answer, ap_status, PRM_CM_APR_STATUS_UNSUPPORTED);
    cm_send(cm, &id->av, answer);
}

/* Ignored: no identifier here asks for an APR. */
static void cm_recv_apr(struct cm *cm, const struct cm_av *from, const void *mad)
{
}

static void (*const handlers[CM_MESSAGES])(struct cm *cm, const struct cm_av *from,
                                           const void *mad) = {
    [PRM_CM_ATTR_REQ - PRM_CM_ATTR_REQ] = cm_recv_req,
    [PRM_CM_ATTR_MRA - PRM_CM_ATTR_REQ] = cm_recv_mra,
    [PRM_CM_ATTR_REJ - PRM_CM_ATTR_REQ] = cm_recv_rej,
    [PRM_CM_ATTR_REP - PRM_CM_ATTR_REQ] = cm_recv_rep,
    [PRM_CM_ATTR_RTU - PRM_CM_ATTR_REQ] = cm_recv_rtu,
    [PRM_CM_ATTR_DREQ - PRM_CM_ATTR_REQ] = cm_recv_dreq,
    [PRM_CM_ATTR_DREP - PRM_CM_ATTR_REQ] = cm_recv_drep,
    [PRM_CM_ATTR_SIDR_REQ - PRM_CM_ATTR_REQ] = cm_recv_sidr_req,
    [PRM_CM_ATTR_SIDR_REP - PRM_CM_ATTR_REQ] = cm_recv_sidr_rep,
    [PRM_CM_ATTR_LAP - PRM_CM_ATTR_REQ] = cm_recv_lap,
    [PRM_CM_ATTR_APR - PRM_CM_ATTR_REQ] = cm_recv_apr,
};

void cm_recv(struct cm *cm, const struct cm_av *from, const uint8_t *mad, size_t len)
{
    const struct prm_mad_hdr *hdr = (const void *)mad;
    uint32_t message;

    if (len != CM_MAD_LEN || PRM_GET(mad_hdr, hdr, base_version) != 1 ||
        PRM_GET(mad_hdr, hdr, mgmt_class) != PRM_MAD_CLASS_COMM_MGT ||
        PRM_GET(mad_hdr, hdr, class_version) != CLASS_VERSION ||
        PRM_GET(mad_hdr, hdr, method) != METHOD_SEND) {
        cm->stats.malformed++;
        return;
    }
    message = PRM_GET(mad_hdr, hdr, attr_id) - PRM_CM_ATTR_REQ;
    if (message >= CM_MESSAGES) {
        cm->stats.malformed++;
        return;
    }
    cm->stats.received[message]++;
    handlers[message](cm, from, mad);
}
