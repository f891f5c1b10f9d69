/* SPDX-License-Identifier: BSD-2-Clause */
/* Sends messages of connection management, and enters the states that they lead to. */
#include "guest-lib/cm/cm_internal.h"

#define BASE_VERSION  1
#define CLASS_VERSION 2
#define METHOD_SEND   3
#define NO_LID        0xffff
#define NO_FAILOVER   0

void cm_begin(uint8_t mad[CM_MAD_LEN], uint16_t attr, uint64_t tid)
{
    struct prm_mad_hdr *hdr = (void *)mad;

    memset(mad, 0, CM_MAD_LEN);
    PRM_SET(mad_hdr, hdr, base_version, BASE_VERSION);
    PRM_SET(mad_hdr, hdr, mgmt_class, PRM_MAD_CLASS_COMM_MGT);
    PRM_SET(mad_hdr, hdr, class_version, CLASS_VERSION);
    PRM_SET(mad_hdr, hdr, method, METHOD_SEND);
    PRM_SET(mad_hdr, hdr, tid, tid);
    PRM_SET(mad_hdr, hdr, attr_id, attr);
}

void cm_send(struct cm *cm, const struct cm_av *av, const uint8_t mad[CM_MAD_LEN])
{
    cm->stats.sent[PRM_GET(mad_hdr, (const void *)mad, attr_id) - PRM_CM_ATTR_REQ]++;
    cm->ops->send(cm->opaque, av, mad);
}

void cm_send_and_wait(struct cm_id *id, enum cm_state state, unsigned ms)
{
    cm_enter(id, state);
    cm_meet(id);
    id->timeout_ms = ms;
    id->retries = 0;
    cm_send(id->cm, &id->av, id->mad);
    cm_set_timer(id, ms);
}

/* The ID of a transaction that this identifier begins. */
static uint64_t cm_mad_new_tid(const struct cm_id *id)
{
    return (uint64_t)id->cm->id_operand << 32 | id->local_id;
}

/* Writes the two communication IDs with which most messages begin. */
static void cm_mad_names(void *mad, const struct cm_id *id)
{
    PRM_SET(cm_rtu, mad, local_comm_id, id->local_id);
    PRM_SET(cm_rtu, mad, remote_comm_id, id->remote_id);
}

/* Writes the private data. False: it is too long. */
static bool cm_mad_private(void *to, size_t room, const void *from, unsigned len)
{
    if (len > room) {
        return false;
    }
    if (len) {
        memcpy(to, from, len);
    }
    return true;
}

/* -- connections --------------------------------------------------------------------------------
 */

static void cm_mad_fill_path(struct prm_cm_path *path, const struct cm_req_param *param,
                             uint8_t ack_timeout)
{
    PRM_SET(cm_path, path, local_lid, NO_LID);
    PRM_SET(cm_path, path, remote_lid, NO_LID);
    memcpy(PRM_PTR(cm_path, path, local_gid), param->sgid, 16);
    memcpy(PRM_PTR(cm_path, path, remote_gid), param->av.dgid, 16);
    PRM_SET(cm_path, path, flow_label, param->av.flow_label);
    PRM_SET(cm_path, path, packet_rate, param->rate);
    PRM_SET(cm_path, path, traffic_class, param->av.traffic_class);
    PRM_SET(cm_path, path, hop_limit, param->av.hop_limit);
    PRM_SET(cm_path, path, sl, param->av.sl);
    PRM_SET(cm_path, path, subnet_local, param->av.hop_limit <= 1);
    PRM_SET(cm_path, path, local_ack_timeout, ack_timeout);
}

static void cm_mad_fill_req(struct prm_cm_req *req, const struct cm_params *p)
{
    PRM_SET(mad_hdr, PRM_PTR(cm_req, req, hdr), attr_mod, p->attr_mod);
    PRM_SET(cm_req, req, vendor_id, p->vendor_id & 0xffffff);
    PRM_SET(cm_req, req, local_qpn, p->qpn & 0xffffff);
    PRM_SET(cm_req, req, initiator_depth, p->initiator_depth);
    PRM_SET(cm_req, req, flow_control, p->flow_control != 0);
    PRM_SET(cm_req, req, starting_psn, p->starting_psn & 0xffffff);
    if (PRM_GET(cm_req, req, transport) == PRM_CM_TRANSPORT_EXTENDED) {
        PRM_SET(cm_req, req, extended_transport, PRM_CM_EXTENDED_TRANSPORT_XRC);
        return; /* of an XRC initiator, which never responds to requests */
    }
    PRM_SET(cm_req, req, responder_resources, p->responder_resources);
    PRM_SET(cm_req, req, retry_count, MIN(p->retry_count, 7));
    PRM_SET(cm_req, req, rnr_retry_count, MIN(p->rnr_retry_count, 7));
    PRM_SET(cm_req, req, srq, p->srq != 0);
}

int cm_send_req(struct cm_id *id, const struct cm_req_param *param)
{
    struct cm *cm = id->cm;
    struct prm_cm_req *req = (void *)id->mad;
    const struct cm_params *p = &param->params;

    if (id->state != CM_IDLE || param->private_len > PRM_COUNT(cm_req, private_data)) {
        return EINVAL;
    }
    id->av = param->av;
    id->service_id = param->service_id;
    id->remote_id = 0;
    id->tid = cm_mad_new_tid(id);
    id->transport = param->transport;
    id->is_asked = false;
    id->path_mtu = param->path_mtu;
    id->ack_timeout = cm_ack_timeout_of(0, param->packet_life_time);
    id->max_retries = MIN(param->max_cm_retries, CM_MAX_RETRIES);
    id->local_qpn = p->qpn;
    id->rq_psn = p->starting_psn;
    id->initiator_depth = p->initiator_depth;
    id->responder_resources = p->responder_resources;
    id->retry_count = p->retry_count;
    cm_begin(id->mad, PRM_CM_ATTR_REQ, id->tid);
    PRM_SET(cm_req, req, local_comm_id, id->local_id);
    PRM_SET(cm_req, req, service_id, param->service_id);
    PRM_SET(cm_req, req, local_ca_guid, cm->ops->ca_guid(cm->opaque, param->av.port));
    PRM_SET(cm_req, req, remote_cm_timeout, param->cm_timeout);
    PRM_SET(cm_req, req, transport, param->transport);
    PRM_SET(cm_req, req, local_cm_timeout, param->cm_timeout);
    PRM_SET(cm_req, req, pkey, 0xffff);
    PRM_SET(cm_req, req, path_mtu, param->path_mtu);
    PRM_SET(cm_req, req, max_cm_retries, id->max_retries);
    cm_mad_fill_req(req, p);
    cm_mad_fill_path(PRM_PTR(cm_req, req, primary), param, id->ack_timeout);
    cm_mad_private(PRM_PTR(cm_req, req, private_data), PRM_COUNT(cm_req, private_data),
                   param->private_data, param->private_len);
    cm_send_and_wait(id, CM_REQ_SENT,
                     2 * cm_ms(param->packet_life_time) + cm_ms(param->cm_timeout));
    return 0;
}

static void cm_mad_fill_rep(struct prm_cm_rep *rep, const struct cm_params *p, bool is_xrc)
{
    uint32_t qpn = p->qpn & 0xffffff;

    PRM_SET(mad_hdr, PRM_PTR(cm_rep, rep, hdr), attr_mod, p->attr_mod);
    PRM_SET(cm_rep, rep, vendor_id_high, p->vendor_id >> 16 & 0xff);
    PRM_SET(cm_rep, rep, vendor_id_mid, p->vendor_id >> 8 & 0xff);
    PRM_SET(cm_rep, rep, vendor_id_low, p->vendor_id & 0xff);
    PRM_SET(cm_rep, rep, starting_psn, p->starting_psn & 0xffffff);
    PRM_SET(cm_rep, rep, responder_resources, p->responder_resources);
    PRM_SET(cm_rep, rep, failover_accepted, NO_FAILOVER);
    PRM_SET(cm_rep, rep, rnr_retry_count, MIN(p->rnr_retry_count, 7));
    if (is_xrc) { /* an XRC target, which sends no requests */
        PRM_SET(cm_rep, rep, local_eecn, qpn);
        PRM_SET(cm_rep, rep, srq, 1);
        return;
    }
    PRM_SET(cm_rep, rep, local_qpn, qpn);
    PRM_SET(cm_rep, rep, initiator_depth, p->initiator_depth);
    PRM_SET(cm_rep, rep, flow_control, p->flow_control != 0);
    PRM_SET(cm_rep, rep, srq, p->srq != 0);
}

int cm_send_rep(struct cm_id *id, const struct cm_params *params, const void *private_data,
                unsigned len)
{
    struct cm *cm = id->cm;
    struct prm_cm_rep *rep = (void *)id->mad;

    if ((id->state != CM_REQ_RCVD && id->state != CM_MRA_REQ_SENT) ||
        len > PRM_COUNT(cm_rep, private_data)) {
        return EINVAL;
    }
    id->local_qpn = params->qpn & 0xffffff;
    id->rq_psn = params->starting_psn;
    id->initiator_depth = params->initiator_depth;
    id->responder_resources = params->responder_resources;
    cm_begin(id->mad, PRM_CM_ATTR_REP, id->tid);
    cm_mad_names(rep, id);
    cm_mad_fill_rep(rep, params, id->transport == PRM_CM_TRANSPORT_EXTENDED);
    PRM_SET(cm_rep, rep, local_ca_guid, cm->ops->ca_guid(cm->opaque, id->av.port));
    cm_mad_private(PRM_PTR(cm_rep, rep, private_data), PRM_COUNT(cm_rep, private_data),
                   private_data, len);
    cm_send_and_wait(id, CM_REP_SENT, id->timeout_ms);
    return 0;
}

/* Sends an answer that has nothing but the names of both ends. */
static void cm_mad_repeat(struct cm_id *id, uint16_t attr)
{
    uint8_t mad[CM_MAD_LEN];

    cm_begin(mad, attr, id->tid);
    cm_mad_names(mad, id);
    cm_send(id->cm, &id->av, mad);
}

void cm_repeat_rtu(struct cm_id *id)
{
    cm_mad_repeat(id, PRM_CM_ATTR_RTU);
}

int cm_send_rtu(struct cm_id *id)
{
    if (id->state != CM_REP_RCVD && id->state != CM_MRA_REP_SENT) {
        return EINVAL;
    }
    cm_enter(id, CM_ESTABLISHED);
    cm_meet(id);
    cm_repeat_rtu(id);
    return 0;
}

void cm_repeat_mra(struct cm_id *id, unsigned message)
{
    uint8_t mad[CM_MAD_LEN];

    cm_begin(mad, PRM_CM_ATTR_MRA, id->tid);
    cm_mad_names(mad, id);
    PRM_SET(cm_mra, (void *)mad, message, message);
    PRM_SET(cm_mra, (void *)mad, service_timeout, id->service_timeout);
    cm_send(id->cm, &id->av, mad);
}

int cm_delay_answer(struct cm_id *id, uint8_t service_timeout)
{
    if (id->state != CM_REQ_RCVD && id->state != CM_REP_RCVD) {
        return EINVAL;
    }
    id->service_timeout = service_timeout;
    id->state = id->state == CM_REQ_RCVD ? CM_MRA_REQ_SENT : CM_MRA_REP_SENT;
    return 0;
}

int cm_establish(struct cm_id *id)
{
    if (id->state == CM_ESTABLISHED) {
        return EISCONN;
    }
    if (id->state != CM_REP_SENT && id->state != CM_MRA_REP_RCVD) {
        return EINVAL;
    }
    cm_enter(id, CM_ESTABLISHED);
    return 0;
}

/* -- rejections -------------------------------------------------------------------------------- */

int cm_send_rej(struct cm_id *id, unsigned reason, const void *ari, unsigned ari_len,
                const void *private_data, unsigned len)
{
    const struct cm_state_row *row = &cm_states[id->state];
    uint8_t mad[CM_MAD_LEN];
    struct prm_cm_rej *rej = (void *)mad;

    if (!row->rejects) {
        return EINVAL;
    }
    cm_begin(mad, PRM_CM_ATTR_REJ, id->tid);
    cm_mad_names(rej, id);
    if (row->answering) {
        PRM_SET(cm_rej, rej, local_comm_id, 0);
    }
    PRM_SET(cm_rej, rej, message, row->message);
    PRM_SET(cm_rej, rej, reason, reason);
    PRM_SET(cm_rej, rej, ari_length, ari_len);
    if (!cm_mad_private(PRM_PTR(cm_rej, rej, ari), PRM_COUNT(cm_rej, ari), ari, ari_len) ||
        !cm_mad_private(PRM_PTR(cm_rej, rej, private_data), PRM_COUNT(cm_rej, private_data),
                        private_data, len)) {
        return EINVAL;
    }
    if (row->after_reject == CM_TIMEWAIT) {
        cm_enter_timewait(id);
    } else {
        cm_enter(id, row->after_reject);
    }
    cm_send(id->cm, &id->av, mad);
    return 0;
}

/* All messages that may get this answer have their communication IDs in the same place. */
void cm_issue_rej(struct cm *cm, const struct cm_av *to, const void *mad, unsigned message,
                  unsigned reason)
{
    uint8_t answer[CM_MAD_LEN];
    struct prm_cm_rej *rej = (void *)answer;
    bool has_remote = message != PRM_CM_MESSAGE_REQ;

    cm_begin(answer, PRM_CM_ATTR_REJ, PRM_GET(mad_hdr, mad, tid));
    PRM_SET(cm_rej, rej, remote_comm_id, PRM_GET(cm_rej, mad, local_comm_id));
    PRM_SET(cm_rej, rej, local_comm_id, has_remote ? PRM_GET(cm_rej, mad, remote_comm_id) : 0);
    PRM_SET(cm_rej, rej, message, message);
    PRM_SET(cm_rej, rej, reason, reason);
    cm_send(cm, to, answer);
}

/* -- disconnecting ----------------------------------------------------------------------------- */

int cm_send_dreq(struct cm_id *id)
{
    struct prm_cm_dreq *dreq = (void *)id->mad;

    if (id->state != CM_ESTABLISHED) {
        return EINVAL;
    }
    id->tid = cm_mad_new_tid(id);
    cm_begin(id->mad, PRM_CM_ATTR_DREQ, id->tid);
    cm_mad_names(dreq, id);
    PRM_SET(cm_dreq, dreq, remote_qpn, id->remote_qpn);
    cm_send_and_wait(id, CM_DREQ_SENT, id->timeout_ms);
    return 0;
}

void cm_repeat_drep(struct cm_id *id)
{
    cm_mad_repeat(id, PRM_CM_ATTR_DREP);
}

int cm_send_drep(struct cm_id *id)
{
    if (id->state != CM_DREQ_RCVD) {
        return EINVAL;
    }
    cm_enter_timewait(id);
    cm_repeat_drep(id);
    return 0;
}

void cm_issue_drep(struct cm *cm, const struct cm_av *to, const void *mad)
{
    uint8_t answer[CM_MAD_LEN];

    cm_begin(answer, PRM_CM_ATTR_DREP, PRM_GET(mad_hdr, mad, tid));
    PRM_SET(cm_drep, (void *)answer, remote_comm_id, PRM_GET(cm_dreq, mad, local_comm_id));
    PRM_SET(cm_drep, (void *)answer, local_comm_id, PRM_GET(cm_dreq, mad, remote_comm_id));
    cm_send(cm, to, answer);
}

/* -- datagrams ----------------------------------------------------------------------------------
 */

int cm_send_sidr_req(struct cm_id *id, const struct cm_sidr_req_param *param)
{
    struct prm_cm_sidr_req *req = (void *)id->mad;

    if (id->state != CM_IDLE || param->private_len > PRM_COUNT(cm_sidr_req, private_data)) {
        return EINVAL;
    }
    id->av = param->av;
    id->service_id = param->service_id;
    id->remote_id = 0;
    id->max_retries = MIN(param->max_cm_retries, CM_MAX_RETRIES);
    id->tid = cm_mad_new_tid(id);
    cm_begin(id->mad, PRM_CM_ATTR_SIDR_REQ, id->tid);
    PRM_SET(cm_sidr_req, req, request_id, id->local_id);
    PRM_SET(cm_sidr_req, req, pkey, 0xffff);
    PRM_SET(cm_sidr_req, req, service_id, param->service_id);
    cm_mad_private(PRM_PTR(cm_sidr_req, req, private_data), PRM_COUNT(cm_sidr_req, private_data),
                   param->private_data, param->private_len);
    cm_send_and_wait(id, CM_SIDR_REQ_SENT, param->timeout_ms);
    return 0;
}

int cm_send_sidr_rep(struct cm_id *id, unsigned status, uint32_t qpn, uint32_t qkey,
                     const void *private_data, unsigned len)
{
    uint8_t mad[CM_MAD_LEN];
    struct prm_cm_sidr_rep *rep = (void *)mad;

    if (id->state != CM_SIDR_REQ_RCVD) {
        return EINVAL;
    }
    cm_begin(mad, PRM_CM_ATTR_SIDR_REP, id->tid);
    PRM_SET(cm_sidr_rep, rep, request_id, id->remote_id);
    PRM_SET(cm_sidr_rep, rep, status, status);
    PRM_SET(cm_sidr_rep, rep, qpn, qpn & 0xffffff);
    PRM_SET(cm_sidr_rep, rep, service_id, id->service_id);
    PRM_SET(cm_sidr_rep, rep, qkey, qkey);
    if (!cm_mad_private(PRM_PTR(cm_sidr_rep, rep, private_data),
                        PRM_COUNT(cm_sidr_rep, private_data), private_data, len)) {
        return EINVAL;
    }
    cm_enter(id, CM_IDLE);
    cm_send(id->cm, &id->av, mad);
    return 0;
}
