/* SPDX-License-Identifier: BSD-2-Clause */
/* Commands of the rdma_cm ABI that query an identifier. */
#include "guest-lib/cm/ucma_internal.h"

#define PORT_NUM  1
#define PKEY      0xffff
#define EXACTLY   2 /* selectors of a path record */
#define HOP_LIMIT 64

static void ucma_query_put_path(const struct ucma_context *context, struct ib_user_path_rec *path)
{
    const struct cma_id *id = context->cma;
    const struct cma_device *device = cma_device_of(id);

    path->pkey = GUINT16_TO_BE(PKEY);
    if (id->src.ss_family != AF_IB) { /* here GIDs are those of IP addresses */
        memcpy(path->sgid, cma_gid(device, id->sgid_index), sizeof(path->sgid));
    }
    if (id->dst.ss_family != AF_IB) {
        cma_addr_to_gid((const struct sockaddr *)&id->dst, path->dgid);
    }
    if (!id->has_route) {
        return;
    }
    memcpy(path->dgid, id->dgid, sizeof(path->dgid));
    path->reversible = 1;
    path->mtu = id->path_mtu;
    path->hop_limit = HOP_LIMIT;
    path->traffic_class = id->tos;
    path->mtu_selector = path->rate_selector = path->packet_life_time_selector = EXACTLY;
    path->rate = device->rate;
    path->packet_life_time = id->packet_life_time;
}

int ucma_query_route(struct ucma_call *call)
{
    struct rdma_ucm_query_route_resp *resp = call->out;
    const struct cma_id *id = call->context->cma;
    const struct cma_device *device = cma_device_of(id);

    memcpy(&resp->src_addr, &id->src, sizeof(resp->src_addr));
    memcpy(&resp->dst_addr, &id->dst, sizeof(resp->dst_addr));
    if (device) {
        resp->node_guid = device->node_guid;
        resp->ibdev_index = id->device;
        resp->port_num = PORT_NUM;
        resp->num_paths = id->has_route;
        ucma_query_put_path(call->context, &resp->ib_route[0]);
    }
    return 0;
}

static int ucma_query_addr(struct ucma_call *call)
{
    struct rdma_ucm_query_addr_resp *resp = call->out;
    const struct cma_id *id = call->context->cma;
    const struct cma_device *device = cma_device_of(id);

    call->out_len = sizeof(*resp);
    if (call->out_room < offsetof(struct rdma_ucm_query_addr_resp, ibdev_index)) {
        return ENOSPC;
    }
    resp->src_size = (uint16_t)cma_addr_size((const struct sockaddr *)&id->src);
    memcpy(&resp->src_addr, &id->src, resp->src_size);
    resp->dst_size = (uint16_t)cma_addr_size((const struct sockaddr *)&id->dst);
    memcpy(&resp->dst_addr, &id->dst, resp->dst_size);
    if (device) {
        resp->node_guid = device->node_guid;
        resp->ibdev_index = id->device;
        resp->port_num = PORT_NUM;
        resp->pkey = id->pkey;
    }
    return 0;
}

/* An address in the form of AF_IB. gid NULL: it belongs to no device. */
static void ucma_query_put_gid(const struct cma_id *id, const struct sockaddr_storage *addr,
                               const uint8_t *gid, void *out)
{
    const struct sockaddr *own = (const struct sockaddr *)addr;
    struct cma_sockaddr_ib ib = {.family = AF_IB};

    if (own->sa_family == AF_IB) {
        memcpy(&ib, own, sizeof(ib));
    } else {
        ib.sid = GUINT64_TO_BE(cma_service_id(id, own));
        if (gid) {
            ib.pkey = id->pkey;
            memcpy(ib.addr, gid, sizeof(ib.addr));
        }
    }
    memcpy(out, &ib, sizeof(ib));
}

static int ucma_query_gid(struct ucma_call *call)
{
    struct rdma_ucm_query_addr_resp *resp = call->out;
    const struct cma_id *id = call->context->cma;
    const struct cma_device *device = cma_device_of(id);
    int err = ucma_query_addr(call);

    if (err) {
        return err;
    }
    memset(&resp->src_addr, 0, sizeof(resp->src_addr));
    memset(&resp->dst_addr, 0, sizeof(resp->dst_addr));
    resp->src_size = resp->dst_size = sizeof(struct cma_sockaddr_ib);
    ucma_query_put_gid(id, &id->src, device ? cma_gid(device, id->sgid_index) : NULL,
                       &resp->src_addr);
    ucma_query_put_gid(id, &id->dst, device ? id->dgid : NULL, &resp->dst_addr);
    return 0;
}

/* The 64 bytes of an SA path record (IBTA 15.2.5.16). */
static int ucma_query_path(struct ucma_call *call)
{
    struct rdma_ucm_query_path_resp *resp = call->out;
    const struct cma_id *id = call->context->cma;
    const struct cma_device *device = cma_device_of(id);
    uint8_t *record = (uint8_t *)resp->path_data[0].path_rec;

    call->out_len = sizeof(*resp);
    if (call->out_room < sizeof(*resp)) {
        return ENOSPC;
    }
    resp->num_paths = id->has_route;
    if (!device || !id->has_route ||
        call->out_room < sizeof(*resp) + sizeof(struct ib_path_rec_data)) {
        return 0;
    }
    call->out_len += sizeof(struct ib_path_rec_data);
    resp->path_data[0].flags = UCMA_PATH_FLAGS;
    memcpy(record + 8, id->dgid, 16);
    memcpy(record + 24, cma_gid(device, id->sgid_index), 16);
    prm_store32(record + 44, HOP_LIMIT);
    record[48] = id->tos;
    record[49] = 0x80; /* reversible */
    prm_store16(record + 50, PKEY);
    record[54] = (uint8_t)(EXACTLY << 6 | id->path_mtu);
    record[55] = (uint8_t)(EXACTLY << 6 | device->rate);
    record[56] = (uint8_t)(EXACTLY << 6 | id->packet_life_time);
    return 0;
}

int ucma_query(struct ucma_call *call)
{
    static ucma_command *const options[] = {
        [RDMA_USER_CM_QUERY_ADDR] = ucma_query_addr,
        [RDMA_USER_CM_QUERY_PATH] = ucma_query_path,
        [RDMA_USER_CM_QUERY_GID] = ucma_query_gid,
    };
    const struct rdma_ucm_query *cmd = call->in;

    return cmd->option < G_N_ELEMENTS(options) ? options[cmd->option](call) : ENOSYS;
}
