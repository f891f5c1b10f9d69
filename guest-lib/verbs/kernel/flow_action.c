/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What flows do to frames: mlx5dv_create_flow_action_modify_header() and _packet_reformat(), as the
 * kernel's MLX5_IB_METHOD_FLOW_ACTION_CREATE_* do them. An action may be in many flows; it cannot
 * be destroyed before them.
 */
#include <string.h>
#include "guest-lib/verbs/dv.h"
#include "guest-lib/verbs/kernel/flow.h"

#define MOST_DATA UINT16_MAX /* of an attribute of uverbs */

/* The device's type of a table that a program names. False: there is none. */
bool hv_flow_table_type(unsigned asked, uint8_t *type)
{
    static const uint8_t types[] = {
        [MLX5DV_FLOW_TABLE_TYPE_NIC_RX] = PRM_FLOW_TABLE_TYPE_NIC_RX,
        [MLX5DV_FLOW_TABLE_TYPE_NIC_TX] = PRM_FLOW_TABLE_TYPE_NIC_TX,
        [MLX5DV_FLOW_TABLE_TYPE_FDB] = PRM_FLOW_TABLE_TYPE_FDB,
        [MLX5DV_FLOW_TABLE_TYPE_RDMA_RX] = PRM_FLOW_TABLE_TYPE_RDMA_RX,
        [MLX5DV_FLOW_TABLE_TYPE_RDMA_TX] = PRM_FLOW_TABLE_TYPE_RDMA_TX,
    };

    *type = asked < G_N_ELEMENTS(types) ? types[asked] : 0;
    return asked < G_N_ELEMENTS(types);
}

/* Makes the object for a program. NULL with errno. */
static struct ibv_flow_action *flow_action_new(struct ibv_context *ctx, uint16_t action,
                                               uint32_t id, int err)
{
    struct hv_flow_action *made;

    if (hv_kernel(err)) {
        return NULL;
    }
    made = g_new0(struct hv_flow_action, 1);
    made->ibv.context = ctx;
    made->action = action;
    made->id = id;
    made->handle = hv_handle_add(ctx, HV_HANDLE_FLOW_ACTION, made);
    return &made->ibv;
}

/* -- header rewrite ---------------------------------------------------------------------------- */

/* How many actions a context for tables of this type may have (mlx5_cmd_modify_header_alloc()). */
static size_t flow_action_most(struct hv_hca *hca, uint8_t type)
{
    switch (type) {
    case PRM_FLOW_TABLE_TYPE_NIC_RX:
        return HV_FLOW_CAP(hca, nic_receive, max_modify_header_actions);
    case PRM_FLOW_TABLE_TYPE_NIC_TX:
        return HV_FLOW_CAP(hca, nic_transmit, max_modify_header_actions);
    case PRM_FLOW_TABLE_TYPE_RDMA_TX:
        return HV_FLOW_CAP(hca, nic_transmit_rdma, max_modify_header_actions);
    default:
        return 0;
    }
}

static int flow_action_alloc_modify(struct hv_hca *hca, size_t size, const uint64_t *actions,
                                    unsigned asked, uint32_t *id)
{
    const size_t each = PRM_STRIDE(alloc_modify_header_context_in, actions);
    size_t len = PRM_SIZE(alloc_modify_header_context_in) + size;
    g_autofree struct prm_alloc_modify_header_context_in *in = NULL;
    struct prm_alloc_modify_header_context_out out[1] = {0};
    uint8_t type;
    int err;

    if (!size || size % each || size > MOST_DATA || !hv_flow_table_type(asked, &type)) {
        return hv_refuse(hca, EINVAL,
                         "create_flow_action_modify_header: %zu bytes of actions for a "
                         "table of type %u; actions have %zu bytes each",
                         size, asked, each);
    }
    if (size / each > flow_action_most(hca, type)) {
        return hv_refuse(hca, EOPNOTSUPP,
                         "create_flow_action_modify_header: %zu actions; for this "
                         "type of table the device allows %zu",
                         size / each, flow_action_most(hca, type));
    }
    in = g_malloc0(len);
    PRM_SET(alloc_modify_header_context_in, in, opcode, PRM_CMD_OP_ALLOC_MODIFY_HEADER_CONTEXT);
    PRM_SET(alloc_modify_header_context_in, in, table_type, type);
    PRM_SET(alloc_modify_header_context_in, in, num_of_actions, size / each);
    memcpy(PRM_PTR_AT(alloc_modify_header_context_in, in, actions, 0), actions, size);
    err = hv_cmd(hca, in, len, out, sizeof(out));
    *id = PRM_GET(alloc_modify_header_context_out, out, modify_header_id);
    return err;
}

struct ibv_flow_action *hv_dv_create_flow_action_modify_header(struct ibv_context *ctx,
                                                               size_t actions_sz,
                                                               uint64_t actions[],
                                                               enum mlx5dv_flow_table_type ft_type)
{
    uint32_t id = 0;
    int err = flow_action_alloc_modify(hv_hca_of(ctx), actions_sz, actions, ft_type, &id);

    return flow_action_new(ctx, PRM_FLOW_ACTION_MOD_HDR, id, err);
}

/* -- tunnels ----------------------------------------------------------------------------------- */

/* Whether tables of this type can do it (mlx5_ib_flow_action_packet_reformat_valid()). */
static bool flow_action_can_reformat(struct hv_hca *hca, unsigned kind, unsigned table)
{
    const struct prm_flow_table_nic_cap *caps = hv_drv(hca)->flow_cap;

    switch (kind) {
    case MLX5DV_FLOW_ACTION_PACKET_REFORMAT_TYPE_L2_TO_L2_TUNNEL:
        return table == MLX5DV_FLOW_TABLE_TYPE_NIC_TX &&
               PRM_GET(flow_table_nic_cap, caps, encap_general_header);
    case MLX5DV_FLOW_ACTION_PACKET_REFORMAT_TYPE_L2_TO_L3_TUNNEL:
        return table == MLX5DV_FLOW_TABLE_TYPE_NIC_TX &&
               HV_FLOW_CAP(hca, nic_transmit, reformat_l2_to_l3_tunnel);
    case MLX5DV_FLOW_ACTION_PACKET_REFORMAT_TYPE_L3_TUNNEL_TO_L2:
        return table == MLX5DV_FLOW_TABLE_TYPE_NIC_RX &&
               HV_FLOW_CAP(hca, nic_receive, reformat_l3_tunnel_to_l2);
    case MLX5DV_FLOW_ACTION_PACKET_REFORMAT_TYPE_L2_TUNNEL_TO_L2:
        return table == MLX5DV_FLOW_TABLE_TYPE_NIC_RX && HV_FLOW_CAP(hca, nic_receive, decap);
    default:
        return false;
    }
}

static int flow_action_alloc_reformat(struct hv_hca *hca, size_t size, const void *data,
                                      unsigned kind, uint32_t *id)
{
    static const uint8_t types[] = {
        [MLX5DV_FLOW_ACTION_PACKET_REFORMAT_TYPE_L2_TO_L2_TUNNEL] =
            PRM_REFORMAT_TYPE_L2_TO_L2_TUNNEL,
        [MLX5DV_FLOW_ACTION_PACKET_REFORMAT_TYPE_L3_TUNNEL_TO_L2] =
            PRM_REFORMAT_TYPE_L3_TUNNEL_TO_L2,
        [MLX5DV_FLOW_ACTION_PACKET_REFORMAT_TYPE_L2_TO_L3_TUNNEL] =
            PRM_REFORMAT_TYPE_L2_TO_L3_TUNNEL,
    };
    size_t most = PRM_GET(flow_table_nic_cap, hv_drv(hca)->flow_cap, max_encap_header_size);
    size_t at = PRM_OFFSET(alloc_packet_reformat_context_in, packet_reformat_context) +
                PRM_OFFSET(packet_reformat_context_in, reformat_data);
    size_t len = MAX((at + size + 3) & ~(size_t)3, PRM_SIZE(alloc_packet_reformat_context_in));
    g_autofree struct prm_alloc_packet_reformat_context_in *in = NULL;
    struct prm_alloc_packet_reformat_context_out out[1] = {0};
    struct prm_packet_reformat_context_in *ctx;
    int err;

    if (!data) {
        return hv_refuse(hca, ENOENT,
                         "create_flow_action_packet_reformat: this kind needs headers");
    }
    if (size > most) {
        return hv_refuse(hca, EINVAL,
                         "create_flow_action_packet_reformat: %zu bytes of headers; the "
                         "device allows %zu",
                         size, most);
    }
    in = g_malloc0(len);
    ctx = PRM_PTR(alloc_packet_reformat_context_in, in, packet_reformat_context);
    PRM_SET(alloc_packet_reformat_context_in, in, opcode, PRM_CMD_OP_ALLOC_PACKET_REFORMAT_CONTEXT);
    PRM_SET(packet_reformat_context_in, ctx, reformat_type, types[kind]);
    PRM_SET(packet_reformat_context_in, ctx, reformat_data_size, size);
    memcpy(in->bytes + at, data, size);
    err = hv_cmd(hca, in, len, out, sizeof(out));
    *id = PRM_GET(alloc_packet_reformat_context_out, out, packet_reformat_id);
    return err;
}

struct ibv_flow_action *
hv_dv_create_flow_action_packet_reformat(struct ibv_context *ctx, size_t data_sz, void *data,
                                         enum mlx5dv_flow_action_packet_reformat_type type,
                                         enum mlx5dv_flow_table_type ft_type)
{
    bool decap = type == MLX5DV_FLOW_ACTION_PACKET_REFORMAT_TYPE_L2_TUNNEL_TO_L2;
    struct hv_hca *hca = hv_hca_of(ctx);
    uint32_t id = 0;
    int err;

    if (!data != !data_sz) {
        errno = EINVAL;
        return NULL;
    }
    err = hv_check_there(hca);
    if (!err && !flow_action_can_reformat(hca, type, ft_type)) {
        err = hv_refuse(hca, EOPNOTSUPP,
                        "create_flow_action_packet_reformat: tables of type %u do "
                        "not have kind %u",
                        (unsigned)ft_type, (unsigned)type);
    }
    if (!err && !decap) {
        err = flow_action_alloc_reformat(hca, data_sz, data, type, &id);
    }
    return flow_action_new(ctx, decap ? PRM_FLOW_ACTION_DECAP : PRM_FLOW_ACTION_PACKET_REFORMAT, id,
                           err);
}

/* -- use and end ------------------------------------------------------------------------------- */

int hv_flow_take_action(struct hv_flow_rule *rule, struct ibv_flow_action *ibv)
{
    struct hv_flow_action *action = (struct hv_flow_action *)ibv;
    const uint16_t all =
        PRM_FLOW_ACTION_DECAP | PRM_FLOW_ACTION_PACKET_REFORMAT | PRM_FLOW_ACTION_MOD_HDR;
    int err = hv_handle_check(ibv->context, HV_HANDLE_FLOW_ACTION, action->handle, action);

    if (err) {
        return err;
    }
    if (rule->action & action->action ||
        __builtin_popcount(rule->action & all) == HV_FLOW_ACTIONS) {
        return EINVAL;
    }
    rule->action |= action->action;
    if (action->action == PRM_FLOW_ACTION_MOD_HDR) {
        rule->modify = action->id;
    } else if (action->action == PRM_FLOW_ACTION_PACKET_REFORMAT) {
        rule->reformat = action->id;
    }
    rule->users[rule->num_users++] = &action->flows;
    return 0;
}

/* The commands that end both kinds of contexts have the same layout. */
int uverbs_destroy_flow_action(struct hv_flow_action *action)
{
    struct prm_dealloc_modify_header_context_in in[1] = {0};
    int err = 0;

    if (g_atomic_int_get(&action->flows)) {
        return EBUSY;
    }
    PRM_SET(dealloc_modify_header_context_in, in, opcode,
            action->action == PRM_FLOW_ACTION_MOD_HDR ? PRM_CMD_OP_DEALLOC_MODIFY_HEADER_CONTEXT
                                                      : PRM_CMD_OP_DEALLOC_PACKET_REFORMAT_CONTEXT);
    PRM_SET(dealloc_modify_header_context_in, in, modify_header_id, action->id);
    if (action->action != PRM_FLOW_ACTION_DECAP) {
        err = hv_cmd_simple(hv_hca_of(action->ibv.context), in, sizeof(in));
    }
    if (!err) {
        hv_handle_del(action->ibv.context, action->handle);
    }
    return err;
}

static int destroy_flow_action(struct ibv_flow_action *ibv)
{
    struct hv_flow_action *action = (struct hv_flow_action *)ibv;
    int err = hv_handle_check(ibv->context, HV_HANDLE_FLOW_ACTION, action->handle, action);

    err = hv_kernel(err ? err : uverbs_destroy_flow_action(action));
    if (!err) {
        g_free(action);
    }
    return err;
}

void hv_flow_action_ops(struct verbs_context *ops)
{
    ops->destroy_flow_action = destroy_flow_action;
}
