/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Commands on a virtual port: state, NIC context (addresses, filters, RoCE), counters. The
 * dispatcher has found the vport (fw/cmd_about.c).
 */
#include <string.h>
#include "fw/cmd.h"
#include "model/port/eswitch.h"

#define MAX_LIST_SIZE 0xfff /* allowed_list_size has 12 bits */

static enum syn cmd_query_vport_state(struct fw *fw, struct fw_cmd *cmd)
{
    struct prm_query_vport_state_out *out = cmd->out;

    if (cmd->op_mod == PRM_VPORT_STATE_OP_ESW_VPORT) { /* the function manages no e-switch */
        return SYN_BAD_OP_MOD;
    }
    PRM_SET(query_vport_state_out, out, admin_state, PRM_VPORT_ADMIN_STATE_UP);
    PRM_SET(query_vport_state_out, out, state,
            uplink_is_up(cmd->vport->uplink) ? PRM_VPORT_STATE_UP : PRM_VPORT_STATE_DOWN);
    return SYN_OK;
}

/* -- NIC vport context ------------------------------------------------------------------------- */

static void cmd_vport_put_mac(struct prm_mac_address_layout *layout, const uint8_t mac[6])
{
    memcpy(layout->bytes + PRM_SIZE(mac_address_layout) - 6, mac, 6);
}

static void cmd_vport_get_mac(const struct prm_mac_address_layout *layout, uint8_t mac[6])
{
    memcpy(mac, layout->bytes + PRM_SIZE(mac_address_layout) - 6, 6);
}

static bool cmd_vlan_is_set(const struct vport *vport, unsigned vlan)
{
    return vport->vlans[vlan / 8] >> vlan % 8 & 1;
}

/* The vport's list of that type. NULL: the list of VLANs, which is kept elsewhere. */
static struct mac_list *cmd_list_of(struct vport *vport, uint32_t type)
{
    if (type == PRM_ALLOWED_LIST_TYPE_VLAN_LIST) {
        return NULL;
    }
    return type == PRM_ALLOWED_LIST_TYPE_CURRENT_UC_MAC_ADDRESS ? &vport->uc : &vport->mc;
}

static unsigned cmd_list_size(struct vport *vport, uint32_t type)
{
    const struct mac_list *macs = cmd_list_of(vport, type);
    unsigned n = 0;

    if (macs) {
        return macs->n;
    }
    for (unsigned vlan = 0; vlan < VPORT_MAX_VLANS; vlan++) {
        n += cmd_vlan_is_set(vport, vlan);
    }
    return MIN(n, MAX_LIST_SIZE);
}

/* Fills in the entries, 8 bytes each, which follow the context. */
static void cmd_fill_list(struct vport *vport, uint32_t type, unsigned n, void *list)
{
    const struct mac_list *macs = cmd_list_of(vport, type);

    for (unsigned i = 0; macs && i < n; i++) {
        cmd_vport_put_mac(list + i * PRM_SIZE(mac_address_layout), macs->mac[i]);
    }
    for (unsigned vlan = 0; !macs && n && vlan < VPORT_MAX_VLANS; vlan++) {
        if (cmd_vlan_is_set(vport, vlan)) {
            PRM_SET(vlan_layout, list, vlan, vlan);
            list += PRM_SIZE(vlan_layout);
            n--;
        }
    }
}

/* IBTA 14.2.5.6: violation counters stop at their largest value. */
static uint16_t cmd_vport_violations(uint64_t count)
{
    return (uint16_t)MIN(count, UINT16_MAX);
}

static enum syn cmd_query_nic_vport_context(struct fw *fw, struct fw_cmd *cmd)
{
    struct vport *vport = cmd->vport;
    struct prm_nic_vport_context *ctx =
        PRM_PTR(query_nic_vport_context_out, cmd->out, nic_vport_context);
    uint32_t type = PRM_GET(query_nic_vport_context_in, cmd->in, allowed_list_type);
    size_t room = (cmd->out_len - PRM_SIZE(query_nic_vport_context_out)) / 8;
    unsigned n;

    if (type > PRM_ALLOWED_LIST_TYPE_VLAN_LIST) {
        return SYN_BAD_LIST;
    }
    n = cmd_list_size(vport, type);
    PRM_SET(nic_vport_context, ctx, roce_en, vport->roce_enabled);
    PRM_SET(nic_vport_context, ctx, mtu, vport->mtu);
    PRM_SET(nic_vport_context, ctx, system_image_guid, vport->sw->system_image_guid);
    PRM_SET(nic_vport_context, ctx, port_guid, vport->port_guid);
    PRM_SET(nic_vport_context, ctx, node_guid, vport->node_guid);
    PRM_SET(nic_vport_context, ctx, qkey_violation_counter,
            cmd_vport_violations(vport->counters.rx_bad_qkey));
    PRM_SET(nic_vport_context, ctx, disable_uc_local_lb, vport->no_loop_uc);
    PRM_SET(nic_vport_context, ctx, disable_mc_local_lb, vport->no_loop_mc);
    PRM_SET(nic_vport_context, ctx, promisc_uc, vport->promisc_uc);
    PRM_SET(nic_vport_context, ctx, promisc_mc, vport->promisc_mc);
    PRM_SET(nic_vport_context, ctx, promisc_all, vport->promisc_all);
    PRM_SET(nic_vport_context, ctx, allowed_list_type, type);
    PRM_SET(nic_vport_context, ctx, allowed_list_size, n);
    cmd_vport_put_mac(PRM_PTR(nic_vport_context, ctx, permanent_address), vport->mac);
    /* A caller that asks only for the context leaves no room for the list, and gets as much as
     * fits. */
    cmd_fill_list(vport, type, (unsigned)MIN(n, room),
                  PRM_PTR(nic_vport_context, ctx, current_uc_mac_address));
    return SYN_OK;
}

static enum syn cmd_set_list(const struct fw *fw, struct vport *vport,
                             const struct prm_nic_vport_context *ctx, size_t room)
{
    uint32_t type = PRM_GET(nic_vport_context, ctx, allowed_list_type);
    uint32_t n = PRM_GET(nic_vport_context, ctx, allowed_list_size);
    const void *list = PRM_PTR(nic_vport_context, ctx, current_uc_mac_address);
    uint8_t taken[PORT_MAX_MACS][6];
    struct mac_list *macs;

    if (type > PRM_ALLOWED_LIST_TYPE_VLAN_LIST) {
        return SYN_BAD_LIST;
    }
    if (n > room) {
        return SYN_IN_LEN;
    }
    macs = cmd_list_of(vport, type);
    if (!macs) {
        memset(vport->vlans, 0, sizeof(vport->vlans));
        for (uint32_t i = 0; i < n; i++) {
            uint32_t vlan = PRM_GET(vlan_layout, list + i * PRM_SIZE(vlan_layout), vlan);

            vport->vlans[vlan / 8] |= (uint8_t)(1u << vlan % 8);
        }
        return SYN_OK;
    }
    if (n > PORT_MAX_MACS || (macs == &vport->uc && n > 1u << fw->caps.log_max_current_uc_list)) {
        return SYN_LIMIT;
    }
    for (uint32_t i = 0; i < n; i++) {
        cmd_vport_get_mac(list + i * PRM_SIZE(mac_address_layout), taken[i]);
        if (macs == &vport->uc && mac_is_group(taken[i])) {
            return SYN_BAD_MAC; /* frames to a group address would not leave the card */
        }
    }
    vport_set_macs(vport, macs, (const uint8_t(*)[6])taken, n);
    return SYN_OK;
}

static enum syn cmd_check_select(const struct fw *fw,
                                 const struct prm_modify_nic_vport_field_select *select,
                                 const struct prm_nic_vport_context *ctx)
{
    uint8_t mac[6];

    /* GUIDs, affiliation and change events are for functions that manage virtual ports. */
    if (PRM_GET(modify_nic_vport_field_select, select, affiliation) ||
        PRM_GET(modify_nic_vport_field_select, select, node_guid) ||
        PRM_GET(modify_nic_vport_field_select, select, port_guid) ||
        PRM_GET(modify_nic_vport_field_select, select, change_event) ||
        PRM_GET(modify_nic_vport_field_select, select, min_inline)) {
        return SYN_VPORT_FIELD;
    }
    if (PRM_GET(modify_nic_vport_field_select, select, roce_en) &&
        PRM_GET(nic_vport_context, ctx, roce_en) && !fw->caps.roce) {
        return SYN_VPORT_FIELD;
    }
    if (PRM_GET(modify_nic_vport_field_select, select, mtu)) {
        uint32_t mtu = PRM_GET(nic_vport_context, ctx, mtu);

        if (mtu < FW_MIN_MTU || mtu > PORT_MAX_MTU) {
            return SYN_BAD_MTU;
        }
    }
    cmd_vport_get_mac(PRM_PTR(nic_vport_context, ctx, permanent_address), mac);
    if (PRM_GET(modify_nic_vport_field_select, select, permanent_address) && (mac[0] & 1)) {
        return SYN_BAD_MAC;
    }
    return SYN_OK;
}

static enum syn cmd_modify_nic_vport_context(struct fw *fw, struct fw_cmd *cmd)
{
    const struct prm_modify_nic_vport_context_in *in = cmd->in;
    struct vport *vport = cmd->vport;
    const struct prm_modify_nic_vport_field_select *select =
        PRM_PTR(modify_nic_vport_context_in, in, field_select);
    const struct prm_nic_vport_context *ctx =
        PRM_PTR(modify_nic_vport_context_in, in, nic_vport_context);
    size_t room = (cmd->in_len - PRM_SIZE(modify_nic_vport_context_in)) / 8;
    enum syn syn;

    syn = cmd_check_select(fw, select, ctx);
    if (!syn && PRM_GET(modify_nic_vport_field_select, select, addresses_list)) {
        syn = cmd_set_list(fw, vport, ctx, room);
    }
    if (syn) {
        return syn;
    }
    if (PRM_GET(modify_nic_vport_field_select, select, roce_en)) {
        vport->roce_enabled = PRM_GET(nic_vport_context, ctx, roce_en);
    }
    if (PRM_GET(modify_nic_vport_field_select, select, permanent_address)) {
        uint8_t mac[6];

        cmd_vport_get_mac(PRM_PTR(nic_vport_context, ctx, permanent_address), mac);
        vport_set_mac(vport, mac);
    }
    if (PRM_GET(modify_nic_vport_field_select, select, promisc)) {
        vport_set_promisc(vport, PRM_GET(nic_vport_context, ctx, promisc_uc),
                          PRM_GET(nic_vport_context, ctx, promisc_mc),
                          PRM_GET(nic_vport_context, ctx, promisc_all));
    }
    if (PRM_GET(modify_nic_vport_field_select, select, disable_uc_local_lb)) {
        vport->no_loop_uc = PRM_GET(nic_vport_context, ctx, disable_uc_local_lb);
    }
    if (PRM_GET(modify_nic_vport_field_select, select, disable_mc_local_lb)) {
        vport->no_loop_mc = PRM_GET(nic_vport_context, ctx, disable_mc_local_lb);
    }
    if (PRM_GET(modify_nic_vport_field_select, select, mtu)) {
        vport->mtu = (uint16_t)PRM_GET(nic_vport_context, ctx, mtu);
    }
    return SYN_OK;
}

/* -- counters ---------------------------------------------------------------------------------- */

#define OF(field) offsetof(struct vport_counters, field)
#define NOTHING   SIZE_MAX

/* A counter of packets and octets: traffic of a class, minus a part of it. RoCE traffic does not
 * count as Ethernet traffic. */
static const struct {
    size_t at; /* offset in the command's output */
    size_t traffic, less;
    enum frame_class class;
} traffic_counters[] = {
#define ROW(name, ...)                                                                             \
    {                                                                                              \
        PRM_OFFSET(query_vport_counter_out, name), __VA_ARGS__                                     \
    }
    ROW(received_ib_unicast, OF(rx_roce), NOTHING, FRAME_UNICAST),
    ROW(received_ib_multicast, OF(rx_roce), NOTHING, FRAME_MULTICAST),
    ROW(transmitted_ib_unicast, OF(tx_roce), NOTHING, FRAME_UNICAST),
    ROW(transmitted_ib_multicast, OF(tx_roce), NOTHING, FRAME_MULTICAST),
    ROW(received_eth_unicast, OF(rx), OF(rx_roce), FRAME_UNICAST),
    ROW(received_eth_multicast, OF(rx), OF(rx_roce), FRAME_MULTICAST),
    ROW(received_eth_broadcast, OF(rx), NOTHING, FRAME_BROADCAST),
    ROW(transmitted_eth_unicast, OF(tx), OF(tx_roce), FRAME_UNICAST),
    ROW(transmitted_eth_multicast, OF(tx), OF(tx_roce), FRAME_MULTICAST),
    ROW(transmitted_eth_broadcast, OF(tx), NOTHING, FRAME_BROADCAST),
#undef ROW
};

/* Traffic of a vport since its counters were last cleared. */
static void cmd_since_cleared(const struct vport *vport, size_t traffic, enum frame_class class,
                              uint64_t *packets, uint64_t *octets)
{
    const struct traffic *now = (const void *)((const char *)&vport->counters + traffic);
    const struct traffic *then = (const void *)((const char *)&vport->cleared + traffic);

    *packets = now->frames[class] - then->frames[class];
    *octets = now->bytes[class] - then->bytes[class];
}

static void cmd_put_traffic(const struct vport *vport, size_t row, void *out)
{
    struct prm_traffic_counter *counter = out + traffic_counters[row].at;
    uint64_t packets, octets, less_packets = 0, less_octets = 0;

    cmd_since_cleared(vport, traffic_counters[row].traffic, traffic_counters[row].class, &packets,
                      &octets);
    if (traffic_counters[row].less != NOTHING) {
        cmd_since_cleared(vport, traffic_counters[row].less, traffic_counters[row].class,
                          &less_packets, &less_octets);
    }
    PRM_SET(traffic_counter, counter, packets, packets - less_packets);
    PRM_SET(traffic_counter, counter, octets, octets - less_octets);
}

static uint64_t cmd_vport_errors(const struct vport_counters *c)
{
    return c->rx_truncated + c->rx_bad_header + c->rx_bad_icrc + c->rx_oversize;
}

static enum syn cmd_query_vport_counter(struct fw *fw, struct fw_cmd *cmd)
{
    struct vport *vport = cmd->vport;

    for (size_t i = 0; i < G_N_ELEMENTS(traffic_counters); i++) {
        cmd_put_traffic(vport, i, cmd->out);
    }
    PRM_SET(traffic_counter, PRM_PTR(query_vport_counter_out, cmd->out, received_errors), packets,
            cmd_vport_errors(&vport->counters) - cmd_vport_errors(&vport->cleared));
    if (PRM_GET(query_vport_counter_in, cmd->in, clear)) {
        vport->cleared = vport->counters;
    }
    return SYN_OK;
}

static enum syn cmd_query_vnic_env(struct fw *fw, struct fw_cmd *cmd)
{
    struct prm_vnic_diagnostic_statistics *env = PRM_PTR(query_vnic_env_out, cmd->out, vport_env);

    PRM_SET(vnic_diagnostic_statistics, env, nic_receive_steering_discard,
            cmd->vport->counters.rx_no_steering);
    PRM_SET(vnic_diagnostic_statistics, env, invalid_command, fw->invalid_commands);
    PRM_SET(vnic_diagnostic_statistics, env, quota_exceeded_command, fw->quota_exceeded);
    PRM_SET(vnic_diagnostic_statistics, env, cq_overrun, fw->hca.cq_overruns);
    /* events of completions wait for room (eq_post_comp()), so none is ever lost */
    PRM_SET(vnic_diagnostic_statistics, env, async_eq_overrun, fw->hca.eq_overruns);
    PRM_SET(vnic_diagnostic_statistics, env, eth_wqe_too_small,
            (uint32_t)cmd->vport->counters.rx_wqe_too_small);
    return SYN_OK;
}

/* The InfiniBand view of the port, which has the counter of packets with a wrong P_Key (driver:
 * mlx5_query_hca_vport_context()). Violations raise no event, because the trap of IBTA 14.2.5.1
 * goes to a subnet manager, and a RoCE port has none. */
static enum syn cmd_query_hca_vport_context(struct fw *fw, struct fw_cmd *cmd)
{
    const struct vport *vport = cmd->vport;
    struct prm_hca_vport_context *ctx =
        PRM_PTR(query_hca_vport_context_out, cmd->out, hca_vport_context);
    bool up = uplink_is_up(cmd->vport->uplink);
    enum prm_port_state state = up ? PRM_PORT_STATE_ACTIVE : PRM_PORT_STATE_DOWN;

    PRM_SET(hca_vport_context, ctx, port_physical_state,
            up ? PRM_PORT_PHYSICAL_STATE_LINK_UP : PRM_PORT_PHYSICAL_STATE_POLLING);
    PRM_SET(hca_vport_context, ctx, port_state, state);
    PRM_SET(hca_vport_context, ctx, vport_state, state);
    PRM_SET(hca_vport_context, ctx, system_image_guid, vport->sw->system_image_guid);
    PRM_SET(hca_vport_context, ctx, port_guid, vport->port_guid);
    PRM_SET(hca_vport_context, ctx, node_guid, vport->node_guid);
    PRM_SET(hca_vport_context, ctx, qkey_violation_counter,
            cmd_vport_violations(vport->counters.rx_bad_qkey));
    PRM_SET(hca_vport_context, ctx, pkey_violation_counter,
            cmd_vport_violations(vport->counters.rx_bad_pkey));
    return SYN_OK;
}

/* A RoCE port has one P_Key, the default P_Key, at index 0 (annex A16.4.3). The rest of the table,
 * whose size is pkey_table_size, is empty. */
static enum syn cmd_query_hca_vport_pkey(struct fw *fw, struct fw_cmd *cmd)
{
    uint32_t first = PRM_GET(query_hca_vport_pkey_in, cmd->in, pkey_index);
    uint32_t size = 128; /* pkey_table_size 0 */
    uint32_t n = first == 0xffff ? size : 1;
    size_t stride = PRM_STRIDE(query_hca_vport_pkey_out, pkey);

    if (first != 0xffff && first >= size) {
        return SYN_LIMIT;
    }
    if (cmd->out_len < PRM_SIZE(query_hca_vport_pkey_out) + n * stride) {
        return SYN_OUT_LEN;
    }
    if (first == 0 || first == 0xffff) {
        PRM_SET(pkey, PRM_PTR_AT(query_hca_vport_pkey_out, cmd->out, pkey, 0), pkey, 0xffff);
    }
    return SYN_OK;
}

const struct fw_cmd_row cmds_vport[] = {
    FW_CMD(QUERY_HCA_VPORT_CONTEXT, cmd_query_hca_vport_context),
    FW_CMD(QUERY_HCA_VPORT_PKEY, cmd_query_hca_vport_pkey),
    FW_CMD(QUERY_VPORT_STATE, cmd_query_vport_state),
    FW_CMD(QUERY_NIC_VPORT_CONTEXT, cmd_query_nic_vport_context),
    FW_KERNEL_CMD(MODIFY_NIC_VPORT_CONTEXT, cmd_modify_nic_vport_context),
    FW_CMD(QUERY_VPORT_COUNTER, cmd_query_vport_counter),
    FW_CMD(QUERY_VNIC_ENV, cmd_query_vnic_env),
    {0},
};
