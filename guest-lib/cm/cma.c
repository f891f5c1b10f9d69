/* SPDX-License-Identifier: BSD-2-Clause */
/* The requests that a consumer makes to rdma_cm. */
#include <netinet/in.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include "guest-lib/cm/cma_internal.h"

#define COMM_EST 4 /* enum ibv_event_type */

struct cma *cma_new(const struct cma_ops *ops, void *opaque, const struct cma_device *devices,
                    unsigned num_devices)
{
    struct cma *cma = g_new0(struct cma, 1);

    cma->ops = ops;
    cma->opaque = opaque;
    cma->devices = devices;
    cma->num_devices = num_devices;
    cma->cm = cm_new(&ops->cm, opaque);
    cma->binds = g_hash_table_new(NULL, NULL);
    return cma;
}

void cma_free(struct cma *cma)
{
    cm_free(cma->cm);
    g_hash_table_destroy(cma->binds);
    g_free(cma);
}

struct cm *cma_cm(struct cma *cma)
{
    return cma->cm;
}

const struct cma_device *cma_device_of(const struct cma_id *id)
{
    return id->device == CMA_NO_DEVICE ? NULL : &id->cma->devices[id->device];
}

const uint8_t *cma_gid(const struct cma_device *device, unsigned sgid_index)
{
    return device->gid[sgid_index % CMA_GIDS];
}

void cma_remove_device(struct cma *cma, unsigned device)
{
    cma->removed |= 1ull << device;
    cma_give_up_resolving(cma, device);
}

struct cma_id *cma_create_id(struct cma *cma, uint16_t ps, uint8_t qp_type, void *context)
{
    struct cma_id *id = g_new0(struct cma_id, 1);

    id->cma = cma;
    id->ps = ps;
    id->qp_type = qp_type;
    id->context = context;
    id->device = CMA_NO_DEVICE;
    id->seq_num = cma->ops->cm.random(cma->opaque) & 0xffffff;
    return id;
}

void cma_destroy_id(struct cma_id *id)
{
    if (id->cm) {
        cm_destroy_id(id->cm);
    }
    if (id->state == CMA_ADDR_QUERY) {
        cma_stop_resolving(id);
    }
    cma_put_port(id);
    g_free(id);
}

/* -- addresses ----------------------------------------------------------------------------------
 */

static int cma_bind_source(struct cma_id *id, const struct sockaddr *addr)
{
    int err;

    memcpy(&id->src, addr, cma_addr_size(addr));
    if (!cma_addr_is_any(addr) && addr->sa_family == AF_IB) {
        return ENODEV; /* no device is found by a GID (cma_ib.c) */
    }
    if (!cma_addr_is_any(addr) && !cma_addr_find(id->cma, addr, &id->device, &id->sgid_index)) {
        return EADDRNOTAVAIL;
    }
    if (!id->afonly_set) {
        id->afonly = addr->sa_family == AF_INET;
    }
    id->dst.ss_family = addr->sa_family;
    cma_addr_to_gid(cma_dst(id), id->dgid);
    err = cma_get_port(id);
    if (err) {
        id->device = CMA_NO_DEVICE;
    }
    return err;
}

int cma_bind_addr(struct cma_id *id, const struct sockaddr *addr)
{
    int err;

    if (!cma_addr_size(addr)) {
        return EAFNOSUPPORT;
    }
    if (id->state != CMA_IDLE) {
        return EINVAL;
    }
    err = cma_bind_source(id, addr);
    if (!err) {
        id->state = CMA_ADDR_BOUND;
    }
    return err;
}

int cma_set_path(struct cma_id *id, const struct cma_path *path)
{
    if (id->state != CMA_ADDR_RESOLVED || !path->mtu || path->mtu > CMA_MAX_MTU ||
        path->packet_life_time > CMA_MAX_PACKET_LIFE_TIME) {
        return EINVAL;
    }
    if (id->dst.ss_family == AF_IB) {
        return ENODEV;
    }
    memcpy(id->dgid, path->dgid, sizeof(id->dgid));
    id->tos = path->traffic_class;
    id->path_mtu = path->mtu;
    id->packet_life_time = path->packet_life_time;
    id->has_route = true;
    id->state = CMA_ROUTE_RESOLVED;
    cma_tell(id, CMA_EVENT_ROUTE_RESOLVED, 0);
    return 0;
}

int cma_resolve_route(struct cma_id *id)
{
    struct cma_path path = {.traffic_class = id->tos, .packet_life_time = CMA_PACKET_LIFE_TIME};

    if (id->state != CMA_ADDR_RESOLVED) {
        return EINVAL;
    }
    memcpy(path.dgid, id->dgid, sizeof(path.dgid));
    path.mtu = cma_device_of(id)->mtu;
    return cma_set_path(id, &path);
}

/* -- connections --------------------------------------------------------------------------------
 */

int cma_listen(struct cma_id *id)
{
    struct sockaddr_storage any = {.ss_family = AF_INET};
    int err;

    if (id->state == CMA_IDLE) {
        err = cma_bind_addr(id, (const struct sockaddr *)&any);
        if (err) {
            return err;
        }
    }
    if (id->state != CMA_ADDR_BOUND) {
        return EINVAL;
    }
    err = cma_check_listen(id);
    if (err) {
        return err;
    }
    if (!id->bind->cm) {
        id->bind->cm = cm_create_id(id->cma->cm, cma_on_request, id->cma);
        if (!id->bind->cm) {
            return ENOMEM;
        }
        err = cm_listen(id->bind->cm, cma_service_id(id, cma_src(id)));
        if (err) {
            cm_destroy_id(id->bind->cm);
            id->bind->cm = NULL;
            return err;
        }
    }
    id->state = CMA_LISTEN;
    return 0;
}

static struct cm_av cma_av(const struct cma_id *id)
{
    struct cm_av av = {.port = id->device,
                       .sgid_index = (uint8_t)id->sgid_index,
                       .traffic_class = id->tos,
                       .hop_limit = CMA_HOP_LIMIT};

    memcpy(av.dgid, id->dgid, sizeof(av.dgid));
    return av;
}

static struct cm_params cma_params(const struct cma_id *id, const struct rdma_ucm_conn_param *param,
                                   const struct rdma_ucm_ece *ece)
{
    return (struct cm_params){
        .qpn = id->qp_num,
        .starting_psn = id->seq_num,
        .responder_resources = param->responder_resources,
        .initiator_depth = param->initiator_depth,
        .flow_control = param->flow_control,
        .retry_count = MIN(param->retry_count, 7),
        .rnr_retry_count = MIN(param->rnr_retry_count, 7),
        .srq = id->srq,
        .vendor_id = ece->vendor_id,
        .attr_mod = ece->attr_mod,
    };
}

static uint8_t cma_transport(const struct cma_id *id)
{
    return id->qp_type == CMA_QPT_UC   ? PRM_CM_TRANSPORT_UC
           : id->qp_type == CMA_QPT_RC ? PRM_CM_TRANSPORT_RC
                                       : PRM_CM_TRANSPORT_EXTENDED;
}

static int cma_send_request(struct cma_id *id, const struct rdma_ucm_conn_param *param,
                            const struct rdma_ucm_ece *ece, const uint8_t *private_data,
                            unsigned len)
{
    const struct cma_device *device = cma_device_of(id);
    struct cm_req_param req = {
        .av = cma_av(id),
        .service_id = cma_service_id(id, cma_dst(id)),
        .transport = cma_transport(id),
        .path_mtu = id->path_mtu,
        .rate = device->rate,
        .packet_life_time = id->ack_timeout ? (uint8_t)(id->ack_timeout - 1) : id->packet_life_time,
        .cm_timeout = CMA_CM_TIMEOUT,
        .max_cm_retries = CMA_MAX_CM_RETRIES,
        .params = cma_params(id, param, ece),
        .private_data = private_data,
        .private_len = len,
    };

    memcpy(req.sgid, cma_gid(device, id->sgid_index), sizeof(req.sgid));
    return cm_send_req(id->cm, &req);
}

static int cma_send_sidr_request(struct cma_id *id, const uint8_t *private_data, unsigned len)
{
    struct cm_sidr_req_param req = {
        .av = cma_av(id),
        .service_id = cma_service_id(id, cma_dst(id)),
        .timeout_ms = 1u << (CMA_CM_TIMEOUT - 8),
        .max_cm_retries = CMA_MAX_CM_RETRIES,
        .private_data = private_data,
        .private_len = len,
    };

    return cm_send_sidr_req(id->cm, &req);
}

static void cma_take_qp(struct cma_id *id, const struct rdma_ucm_conn_param *param)
{
    id->qp_num = param->qp_num & 0xffffff;
    id->srq = param->srq;
}

int cma_connect(struct cma_id *id, const struct rdma_ucm_conn_param *param,
                const struct rdma_ucm_ece *ece)
{
    uint8_t data[PRM_SIZE(cm_ip_hdr) + RDMA_MAX_PRIVATE_DATA] = {0};
    unsigned len = (unsigned)PRM_SIZE(cm_ip_hdr) + param->private_data_len;
    int err;

    if (id->state != CMA_ROUTE_RESOLVED) {
        return EINVAL;
    }
    cma_take_qp(id, param);
    id->cm = cm_create_id(id->cma->cm, cma_on_event, id);
    if (!id->cm) {
        return ENOMEM;
    }
    cma_put_hdr((void *)data, id);
    memcpy(data + PRM_SIZE(cm_ip_hdr), param->private_data, param->private_data_len);
    err = id->qp_type == CMA_QPT_UD ? cma_send_sidr_request(id, data, len)
                                    : cma_send_request(id, param, ece, data, len);
    if (err) {
        cm_destroy_id(id->cm);
        id->cm = NULL;
        return err;
    }
    id->state = CMA_CONNECT;
    return 0;
}

/* The qkey of a UD identifier is that of its port space, unless its consumer gives another one. */
static int cma_accept_datagrams(struct cma_id *id, const struct rdma_ucm_conn_param *param)
{
    id->qkey = param && param->qkey ? param->qkey : CMA_UDP_QKEY;
    return cm_send_sidr_rep(id->cm, PRM_CM_SIDR_STATUS_SUCCESS, id->qp_num, id->qkey,
                            param ? param->private_data : NULL,
                            param ? param->private_data_len : 0);
}

int cma_accept(struct cma_id *id, const struct rdma_ucm_conn_param *param,
               const struct rdma_ucm_ece *ece)
{
    struct cm_params params;
    int err;

    if (id->state != CMA_CONNECT || !id->cm) {
        return EINVAL;
    }
    if (param) {
        cma_take_qp(id, param);
    }
    if (id->qp_type == CMA_QPT_UD) {
        err = cma_accept_datagrams(id, param);
    } else if (param) {
        params = cma_params(id, param, ece);
        err = cm_send_rep(id->cm, &params, param->private_data, param->private_data_len);
    } else {
        err = cm_send_rtu(id->cm);
    }
    if (err) {
        cma_reject(id, PRM_CM_REJ_REASON_CONSUMER_DEFINED, NULL, 0);
    }
    return err;
}

int cma_reject(struct cma_id *id, unsigned reason, const void *private_data, unsigned len)
{
    if (!id->cm) {
        return EINVAL;
    }
    if (id->qp_type == CMA_QPT_UD) {
        return cm_send_sidr_rep(id->cm, PRM_CM_SIDR_STATUS_REJECT, 0, 0, private_data, len);
    }
    return cm_send_rej(id->cm, reason, NULL, 0, private_data, len);
}

int cma_disconnect(struct cma_id *id)
{
    if (!id->cm) {
        return EINVAL;
    }
    if (cm_send_dreq(id->cm)) {
        cm_send_drep(id->cm);
    }
    return 0;
}

int cma_notify(struct cma_id *id, uint32_t event)
{
    int err = id->cm && event == COMM_EST ? cm_establish(id->cm) : EINVAL;

    if (!err) {
        cma_tell(id, CMA_EVENT_ESTABLISHED, 0);
    }
    return err;
}

/* -- options ------------------------------------------------------------------------------------
 */

int cma_set_reuseaddr(struct cma_id *id, bool reuse)
{
    if (!reuse && id->state != CMA_IDLE) {
        return EINVAL;
    }
    id->reuseaddr = reuse;
    return 0;
}

int cma_set_afonly(struct cma_id *id, bool afonly)
{
    if (id->state != CMA_IDLE && id->state != CMA_ADDR_BOUND) {
        return EINVAL;
    }
    id->afonly_set = true;
    id->afonly = afonly;
    return 0;
}

/* -- multicast ----------------------------------------------------------------------------------
 */

/* Over RoCE the GID of a group follows from its address, so no query is sent. */
int cma_join(struct cma_id *id, const struct sockaddr *addr, struct rdma_ucm_event_resp *event)
{
    uint8_t mgid[16];

    if ((id->state != CMA_ADDR_BOUND && id->state != CMA_ADDR_RESOLVED) ||
        id->device == CMA_NO_DEVICE || id->qp_type != CMA_QPT_UD || cma_addr_is_zero(addr)) {
        return EINVAL;
    }
    if (id->src.ss_family == AF_IB) {
        return ENODEV;
    }
    if (addr->sa_family != AF_INET) {
        return EOPNOTSUPP;
    }
    cma_addr_to_gid(addr, mgid);
    id->qkey = CMA_UDP_QKEY;
    event->event = CMA_EVENT_MULTICAST_JOIN;
    event->param.ud.qp_num = 0xffffff;
    event->param.ud.qkey = id->ps == RDMA_PS_UDP ? CMA_UDP_QKEY : 0;
    cma_fill_ah(id, mgid, &event->param.ud.ah_attr);
    return 0;
}
