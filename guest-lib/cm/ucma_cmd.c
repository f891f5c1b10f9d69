/* SPDX-License-Identifier: BSD-2-Clause */
/* Commands of the rdma_cm ABI that change something, with the errnos of rdma_ucm. */
#include <fcntl.h>
#include "guest-lib/cm/ucma_internal.h"
#include "guest-lib/host/memory.h"

#define QPT_RC       2 /* enum ibv_qp_type */
#define QPT_UD       4
#define QPT_XRC_SEND 9
#define QPS_ERR      6 /* enum ibv_qp_state: the last state */
#define UCMA_MAX_OPTION                                                                            \
    (4u << 20) /* bytes of one option: what a kernel copies (KMALLOC_MAX_SIZE) */

/* The type of queue pair follows from the port space; with RDMA_PS_IB the program chooses it. */
static int ucma_qp_type(const struct rdma_ucm_create_id *cmd, uint8_t *type)
{
    static const struct {
        uint16_t ps;
        uint8_t type;
    } types[] = {{RDMA_PS_TCP, QPT_RC}, {RDMA_PS_UDP, QPT_UD}, {RDMA_PS_IPOIB, QPT_UD}};

    for (size_t i = 0; i < G_N_ELEMENTS(types); i++) {
        if (types[i].ps == cmd->ps) {
            *type = types[i].type;
            return 0;
        }
    }
    *type = cmd->qp_type;
    return cmd->ps == RDMA_PS_IB ? 0 : EINVAL;
}

int ucma_create_id(struct ucma_call *call)
{
    const struct rdma_ucm_create_id *cmd = call->in;
    struct rdma_ucm_create_id_resp *resp = call->out;
    struct ucma_context *context;
    uint8_t type;
    int err = ucma_qp_type(cmd, &type);

    if (err) {
        return err;
    }
    context = ucma_new_context(call->file, cmd->uid);
    context->cma = cma_create_id(call->ucma->cma, cmd->ps, type, context);
    resp->id = context->id;
    return 0;
}

int ucma_destroy_id(struct ucma_call *call)
{
    struct rdma_ucm_destroy_id_resp *resp = call->out;

    resp->events_reported = ucma_free_context(call->context);
    return 0;
}

/* -- addresses ----------------------------------------------------------------------------------
 */

/* Whether the family is known and its addresses fit into the older commands. */
static bool ucma_is_ip(const struct sockaddr *addr)
{
    return cma_addr_size(addr) && cma_addr_size(addr) <= sizeof(struct sockaddr_in6);
}

int ucma_bind_ip(struct ucma_call *call)
{
    const struct rdma_ucm_bind_ip *cmd = call->in;
    const struct sockaddr *addr = (const struct sockaddr *)&cmd->addr;

    return ucma_is_ip(addr) ? cma_bind_addr(call->context->cma, addr) : EINVAL;
}

/* Whether the family is known and the size is that of its addresses. */
static bool ucma_is_size(const struct sockaddr *addr, size_t size)
{
    return size && cma_addr_size(addr) == size;
}

int ucma_bind(struct ucma_call *call)
{
    const struct rdma_ucm_bind *cmd = call->in;
    const struct sockaddr *addr = (const struct sockaddr *)&cmd->addr;

    if (cmd->reserved || !ucma_is_size(addr, cmd->addr_size)) {
        return EINVAL;
    }
    return cma_bind_addr(call->context->cma, addr);
}

int ucma_resolve_ip(struct ucma_call *call)
{
    const struct rdma_ucm_resolve_ip *cmd = call->in;
    const struct sockaddr *src = (const struct sockaddr *)&cmd->src_addr;
    const struct sockaddr *dst = (const struct sockaddr *)&cmd->dst_addr;

    if ((src->sa_family && !ucma_is_ip(src)) || !ucma_is_ip(dst)) {
        return EINVAL;
    }
    return cma_resolve_addr(call->context->cma, src, dst, cmd->timeout_ms);
}

int ucma_resolve_addr(struct ucma_call *call)
{
    const struct rdma_ucm_resolve_addr *cmd = call->in;
    const struct sockaddr *src = (const struct sockaddr *)&cmd->src_addr;
    const struct sockaddr *dst = (const struct sockaddr *)&cmd->dst_addr;

    if (cmd->reserved || (cmd->src_size && !ucma_is_size(src, cmd->src_size)) ||
        !ucma_is_size(dst, cmd->dst_size)) {
        return EINVAL;
    }
    return cma_resolve_addr(call->context->cma, src, dst, cmd->timeout_ms);
}

int ucma_resolve_route(struct ucma_call *call)
{
    return cma_resolve_route(call->context->cma);
}

/* -- connections --------------------------------------------------------------------------------
 */

/* A queue key is only for AF_IB, and no identifier of AF_IB gets as far as a connection
 * (cma_ib.c). */
static struct rdma_ucm_conn_param ucma_conn_param(const struct rdma_ucm_conn_param *param)
{
    struct rdma_ucm_conn_param copy = *param;

    copy.qkey = 0;
    return copy;
}

int ucma_connect(struct ucma_call *call)
{
    const struct rdma_ucm_connect *cmd = call->in;
    struct rdma_ucm_conn_param param = ucma_conn_param(&cmd->conn_param);

    if (call->in_len < offsetof(struct rdma_ucm_connect, ece) || !param.valid) {
        return EINVAL;
    }
    return cma_connect(call->context->cma, &param, &cmd->ece);
}

int ucma_listen(struct ucma_call *call)
{
    const struct rdma_ucm_listen *cmd = call->in;
    bool usual = (int32_t)cmd->backlog <= 0 || cmd->backlog > UCMA_MAX_BACKLOG;

    g_atomic_int_set(&call->context->backlog, (gint)(usual ? UCMA_MAX_BACKLOG : cmd->backlog));
    return cma_listen(call->context->cma);
}

int ucma_accept(struct ucma_call *call)
{
    const struct rdma_ucm_accept *cmd = call->in;
    struct rdma_ucm_conn_param param = ucma_conn_param(&cmd->conn_param);
    int err;

    if (call->in_len < offsetof(struct rdma_ucm_accept, ece)) {
        return EINVAL;
    }
    err = cma_accept(call->context->cma, param.valid ? &param : NULL, &cmd->ece);
    if (!err && param.valid) {
        call->context->uid = cmd->uid;
    }
    return err;
}

int ucma_reject(struct ucma_call *call)
{
    const struct rdma_ucm_reject *cmd = call->in;
    unsigned reason = cmd->reason ? cmd->reason : PRM_CM_REJ_REASON_CONSUMER_DEFINED;

    if (reason != PRM_CM_REJ_REASON_CONSUMER_DEFINED && reason != PRM_CM_REJ_REASON_VENDOR_OPTION) {
        return EINVAL;
    }
    return cma_reject(call->context->cma, reason, cmd->private_data, cmd->private_data_len);
}

int ucma_disconnect(struct ucma_call *call)
{
    return cma_disconnect(call->context->cma);
}

int ucma_init_qp_attr(struct ucma_call *call)
{
    const struct rdma_ucm_init_qp_attr *cmd = call->in;
    struct ib_uverbs_qp_attr *attr = call->out;

    if (cmd->qp_state > QPS_ERR) {
        return EINVAL;
    }
    attr->qp_state = cmd->qp_state;
    return cma_init_qp_attr(call->context->cma, attr);
}

int ucma_notify(struct ucma_call *call)
{
    return cma_notify(call->context->cma, ((const struct rdma_ucm_notify *)call->in)->event);
}

/* -- options ------------------------------------------------------------------------------------
 */

static int ucma_set_tos(struct cma_id *id, unsigned value)
{
    id->tos = (uint8_t)value;
    return 0;
}

static int ucma_set_reuseaddr(struct cma_id *id, unsigned value)
{
    return cma_set_reuseaddr(id, value != 0);
}

static int ucma_set_afonly(struct cma_id *id, unsigned value)
{
    return cma_set_afonly(id, value != 0);
}

static int ucma_set_ack_timeout(struct cma_id *id, unsigned value)
{
    if ((id->qp_type != QPT_RC && id->qp_type != QPT_XRC_SEND) || value > 31) {
        return EINVAL;
    }
    id->ack_timeout = (uint8_t)value;
    return 0;
}

static const struct {
    int (*set)(struct cma_id *id, unsigned value);
    size_t len;
} ucma_options[] = {
    [RDMA_OPTION_ID_TOS] = {ucma_set_tos, sizeof(uint8_t)},
    [RDMA_OPTION_ID_REUSEADDR] = {ucma_set_reuseaddr, sizeof(int)},
    [RDMA_OPTION_ID_AFONLY] = {ucma_set_afonly, sizeof(int)},
    [RDMA_OPTION_ID_ACK_TIMEOUT] = {ucma_set_ack_timeout, sizeof(uint8_t)},
};

/* Reads the fields that RoCE uses from a path record of subnet administration (IBTA 15.2.5.16). */
static struct cma_path ucma_path(const struct ib_path_rec_data *data)
{
    const uint8_t *record = (const uint8_t *)data->path_rec;
    struct cma_path path = {.traffic_class = record[48],
                            .mtu = record[54] & 0x3f,
                            .packet_life_time = record[56] & 0x3f};

    memcpy(path.dgid, record + 8, sizeof(path.dgid));
    return path;
}

/* Uses the first path that carries messages in both directions and is not an alternate path. */
static int ucma_set_ib_path(struct ucma_call *call, const struct rdma_ucm_set_option *cmd)
{
    struct ib_path_rec_data data = {0};
    struct cma_path path;
    uint32_t at = 0;

    if (!cmd->optlen || cmd->optlen % sizeof(data) || cmd->optlen > UCMA_MAX_OPTION) {
        return EINVAL;
    }
    while (data.flags != UCMA_PATH_FLAGS) {
        if (at == cmd->optlen) {
            return EINVAL;
        }
        if (!memory_read(cmd->optval + at, &data, sizeof(data), NULL)) {
            return EFAULT;
        }
        at += (uint32_t)sizeof(data);
    }
    path = ucma_path(&data);
    return cma_set_path(call->context->cma, &path);
}

int ucma_set_option(struct ucma_call *call)
{
    const struct rdma_ucm_set_option *cmd = call->in;
    unsigned value = 0;

    if (cmd->level == RDMA_OPTION_IB && cmd->optname == RDMA_OPTION_IB_PATH) {
        return ucma_set_ib_path(call, cmd);
    }
    if (cmd->level != RDMA_OPTION_ID || cmd->optname >= G_N_ELEMENTS(ucma_options)) {
        return ENOSYS;
    }
    if (cmd->optlen != ucma_options[cmd->optname].len) {
        return EINVAL;
    }
    if (!memory_read(cmd->optval, &value, cmd->optlen, NULL)) {
        return EFAULT;
    }
    return ucma_options[cmd->optname].set(call->context->cma, value);
}

/* -- multicast ----------------------------------------------------------------------------------
 */

static int ucma_join(struct ucma_call *call, const struct sockaddr *addr, uint64_t uid)
{
    struct rdma_ucm_event_resp event = {0};
    struct rdma_ucm_create_id_resp *resp = call->out;
    struct ucma_group *group;
    int err = cma_join(call->context->cma, addr, &event);

    if (err) {
        return err;
    }
    group = ucma_new_group(call->context, uid);
    resp->id = group->id;
    ucma_put_event(call->context, NULL, group, &event);
    return 0;
}

int ucma_join_ip_mcast(struct ucma_call *call)
{
    const struct rdma_ucm_join_ip_mcast *cmd = call->in;
    const struct sockaddr *addr = (const struct sockaddr *)&cmd->addr;

    return ucma_is_ip(addr) ? ucma_join(call, addr, cmd->uid) : EINVAL;
}

int ucma_join_mcast(struct ucma_call *call)
{
    const struct rdma_ucm_join_mcast *cmd = call->in;
    const struct sockaddr *addr = (const struct sockaddr *)&cmd->addr;

    if (!cma_addr_size(addr) || cmd->addr_size != cma_addr_size(addr) ||
        cmd->join_flags >= RDMA_MC_JOIN_FLAG_RESERVED) {
        return EINVAL;
    }
    return ucma_join(call, addr, cmd->uid);
}

int ucma_leave_mcast(struct ucma_call *call)
{
    const struct rdma_ucm_destroy_id *cmd = call->in;
    struct rdma_ucm_destroy_id_resp *resp = call->out;
    struct ucma_group *group = g_hash_table_lookup(call->ucma->groups, GUINT_TO_POINTER(cmd->id));

    if (!group) {
        return ENOENT;
    }
    if (group->context->file != call->file) {
        return EINVAL;
    }
    if (!group->context->cma) {
        return ENXIO;
    }
    resp->events_reported = ucma_free_group(group);
    return 0;
}

/* -- moving an identifier to another file ------------------------------------------------------ */

int ucma_migrate_id(struct ucma_call *call)
{
    const struct rdma_ucm_migrate_id *cmd = call->in;
    struct rdma_ucm_migrate_resp *resp = call->out;
    struct ucma_file *from = call->file->file_of((int)cmd->fd);
    struct ucma_context *context;
    int err;

    if (!from) { /* not a file of rdma_cm, or not open */
        return fcntl((int)cmd->fd, F_GETFD) < 0 ? ENOENT : EINVAL;
    }
    context = ucma_find(from, cmd->id, &err);
    if (!context) {
        return err;
    }
    if (!context->cma) {
        return ENXIO;
    }
    if (from != call->file) {
        ucma_move_context(context, call->file);
    }
    resp->events_reported = (uint32_t)g_atomic_int_get(&context->events_reported);
    return 0;
}
