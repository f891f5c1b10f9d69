/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Commands on the function's virtual port: state, NIC context (addresses, filters, RoCE), counters.
 *
 * The function has one virtual port, its own (number 0); it manages no others. What filters
 * frames lives in struct vport; what only the driver reads back lives in struct fw_vport.
 */
#include <string.h>
#include "fw/cmd.h"

#define MAX_LIST_SIZE 0xfff /* allowed_list_size has 12 bits */

/* The MAC with 0300 in its middle, as this vendor's adapters derive GUIDs. */
static uint64_t guid_from_mac(const uint8_t mac[6])
{
    return (uint64_t)mac[0] << 56 | (uint64_t)mac[1] << 48 | (uint64_t)mac[2] << 40 |
           0x0300000000ull | (uint64_t)mac[3] << 16 | (uint64_t)mac[4] << 8 | mac[5];
}

void vport_reset(struct fw *fw)
{
    uint64_t guid = guid_from_mac(fw->hca.vport->permanent_mac);

    memset(&fw->vport, 0, sizeof(fw->vport));
    fw->vport.node_guid = fw->vport.port_guid = fw->vport.system_image_guid = guid;
    fw->vport.mtu = fw->hca.vport->mtu;
    fw->vport.cleared = fw->hca.vport->counters;
}

/* PortInfo.PortState and PortPhysicalState (IBTA 14.2.5.6) */
#define PORT_DOWN    1
#define PORT_ACTIVE  4
#define PHYS_POLLING 2
#define PHYS_LINK_UP 5

static enum syn cmd_query_vport_state(struct fw *fw, struct fw_cmd *cmd)
{
    if (PRM_GET(query_vport_state_in, cmd->in, other_vport)) {
        return SYN_NO_VPORT;
    }
    if (cmd->op_mod == PRM_VPORT_STATE_OP_ESW_VPORT) { /* the function manages no e-switch */
        return SYN_BAD_OP_MOD;
    }
    PRM_SET(query_vport_state_out, cmd->out, admin_state, PRM_VPORT_ADMIN_STATE_UP);
    PRM_SET(query_vport_state_out, cmd->out, state,
            port_is_up(&fw->hca) ? PRM_VPORT_STATE_UP : PRM_VPORT_STATE_DOWN);
    return SYN_OK;
}

/* -- NIC vport context ------------------------------------------------------------------------- */

static void put_mac(uint8_t *layout, const uint8_t mac[6])
{
    memcpy(layout + PRM_SIZE(mac_address_layout) - 6, mac, 6);
}

static void get_mac(const uint8_t *layout, uint8_t mac[6])
{
    memcpy(mac, layout + PRM_SIZE(mac_address_layout) - 6, 6);
}

static bool vlan_is_set(const struct fw *fw, unsigned vlan)
{
    return fw->vport.vlans[vlan / 8] >> vlan % 8 & 1;
}

static unsigned list_size(const struct fw *fw, uint32_t type)
{
    unsigned n = 0;

    if (type == PRM_ALLOWED_LIST_TYPE_CURRENT_UC_MAC_ADDRESS ||
        type == PRM_ALLOWED_LIST_TYPE_CURRENT_MC_MAC_ADDRESS) {
        return type == PRM_ALLOWED_LIST_TYPE_CURRENT_UC_MAC_ADDRESS ? fw->hca.vport->num_uc
                                                                    : fw->hca.vport->num_mc;
    }
    for (unsigned vlan = 0; vlan < FW_MAX_VLANS; vlan++) {
        n += vlan_is_set(fw, vlan);
    }
    return MIN(n, MAX_LIST_SIZE);
}

/* Entries are 8 bytes each, after the context. */
static void fill_list(const struct fw *fw, uint32_t type, unsigned n, uint8_t *list)
{
    const struct vport *vport = fw->hca.vport;

    if (type == PRM_ALLOWED_LIST_TYPE_VLAN_LIST) {
        for (unsigned vlan = 0; n && vlan < FW_MAX_VLANS; vlan++) {
            if (vlan_is_set(fw, vlan)) {
                PRM_SET(vlan_layout, list, vlan, vlan);
                list += PRM_SIZE(vlan_layout);
                n--;
            }
        }
        return;
    }
    for (unsigned i = 0; i < n; i++) {
        put_mac(list, type == PRM_ALLOWED_LIST_TYPE_CURRENT_UC_MAC_ADDRESS ? vport->uc_list[i]
                                                                           : vport->mc_list[i]);
        list += PRM_SIZE(mac_address_layout);
    }
}

/* IBTA 14.2.5.6: violation counters stop at their largest value. */
static uint16_t violations(uint64_t count)
{
    return (uint16_t)MIN(count, UINT16_MAX);
}

static enum syn cmd_query_nic_vport_context(struct fw *fw, struct fw_cmd *cmd)
{
    const struct vport *vport = fw->hca.vport;
    uint8_t *ctx = PRM_PTR(query_nic_vport_context_out, cmd->out, nic_vport_context);
    uint32_t type = PRM_GET(query_nic_vport_context_in, cmd->in, allowed_list_type);
    size_t room = (cmd->out_len - PRM_SIZE(query_nic_vport_context_out)) / 8;
    unsigned n;

    if (PRM_GET(query_nic_vport_context_in, cmd->in, other_vport)) {
        return SYN_NO_VPORT;
    }
    if (type > PRM_ALLOWED_LIST_TYPE_VLAN_LIST) {
        return SYN_BAD_LIST;
    }
    n = list_size(fw, type);
    PRM_SET(nic_vport_context, ctx, roce_en, vport->roce_enabled);
    PRM_SET(nic_vport_context, ctx, mtu, fw->vport.mtu);
    PRM_SET(nic_vport_context, ctx, system_image_guid, fw->vport.system_image_guid);
    PRM_SET(nic_vport_context, ctx, port_guid, fw->vport.port_guid);
    PRM_SET(nic_vport_context, ctx, node_guid, fw->vport.node_guid);
    PRM_SET(nic_vport_context, ctx, qkey_violation_counter,
            violations(vport->counters.rx_bad_qkey));
    PRM_SET(nic_vport_context, ctx, promisc_uc, vport->promisc_uc);
    PRM_SET(nic_vport_context, ctx, promisc_mc, vport->promisc_mc);
    PRM_SET(nic_vport_context, ctx, promisc_all, vport->promisc_all);
    PRM_SET(nic_vport_context, ctx, allowed_list_type, type);
    PRM_SET(nic_vport_context, ctx, allowed_list_size, n);
    put_mac(PRM_PTR(nic_vport_context, ctx, permanent_address), vport->mac);
    /* A caller that asks for the context alone leaves no room for the list: it gets what fits. */
    fill_list(fw, type, (unsigned)MIN(n, room),
              PRM_PTR(nic_vport_context, ctx, current_uc_mac_address));
    return SYN_OK;
}

static enum syn set_list(struct fw *fw, const uint8_t *ctx, size_t room)
{
    struct vport *vport = fw->hca.vport;
    uint32_t type = PRM_GET(nic_vport_context, ctx, allowed_list_type);
    uint32_t n = PRM_GET(nic_vport_context, ctx, allowed_list_size);
    const uint8_t *list = PRM_PTR(nic_vport_context, ctx, current_uc_mac_address);

    if (type > PRM_ALLOWED_LIST_TYPE_VLAN_LIST) {
        return SYN_BAD_LIST;
    }
    if (n > room) {
        return SYN_IN_LEN;
    }
    if (type == PRM_ALLOWED_LIST_TYPE_VLAN_LIST) {
        memset(fw->vport.vlans, 0, sizeof(fw->vport.vlans));
        for (uint32_t i = 0; i < n; i++) {
            uint32_t vlan = PRM_GET(vlan_layout, list + i * PRM_SIZE(vlan_layout), vlan);

            fw->vport.vlans[vlan / 8] |= (uint8_t)(1u << vlan % 8);
        }
        return SYN_OK;
    }
    if (n > PORT_MAX_MACS || (type == PRM_ALLOWED_LIST_TYPE_CURRENT_UC_MAC_ADDRESS &&
                              n > 1u << fw->caps.log_max_current_uc_list)) {
        return SYN_LIMIT;
    }
    for (uint32_t i = 0; i < n; i++) {
        get_mac(list + i * PRM_SIZE(mac_address_layout),
                type == PRM_ALLOWED_LIST_TYPE_CURRENT_UC_MAC_ADDRESS ? vport->uc_list[i]
                                                                     : vport->mc_list[i]);
    }
    *(type == PRM_ALLOWED_LIST_TYPE_CURRENT_UC_MAC_ADDRESS ? &vport->num_uc : &vport->num_mc) = n;
    return SYN_OK;
}

static enum syn check_select(const struct fw *fw, const uint8_t *select, const uint8_t *ctx)
{
    uint8_t mac[6];

    /* GUIDs, affiliation and change events belong to a function that manages virtual ports. */
    if (PRM_GET(modify_nic_vport_field_select, select, affiliation) ||
        PRM_GET(modify_nic_vport_field_select, select, node_guid) ||
        PRM_GET(modify_nic_vport_field_select, select, port_guid) ||
        PRM_GET(modify_nic_vport_field_select, select, change_event) ||
        PRM_GET(modify_nic_vport_field_select, select, min_inline) ||
        PRM_GET(modify_nic_vport_field_select, select, disable_uc_local_lb) ||
        PRM_GET(modify_nic_vport_field_select, select, disable_mc_local_lb)) {
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
    get_mac(PRM_PTR(nic_vport_context, ctx, permanent_address), mac);
    if (PRM_GET(modify_nic_vport_field_select, select, permanent_address) && (mac[0] & 1)) {
        return SYN_BAD_MAC;
    }
    return SYN_OK;
}

static enum syn cmd_modify_nic_vport_context(struct fw *fw, struct fw_cmd *cmd)
{
    struct vport *vport = fw->hca.vport;
    const uint8_t *select = PRM_PTR(modify_nic_vport_context_in, cmd->in, field_select);
    const uint8_t *ctx = PRM_PTR(modify_nic_vport_context_in, cmd->in, nic_vport_context);
    size_t room = (cmd->in_len - PRM_SIZE(modify_nic_vport_context_in)) / 8;
    enum syn syn;

    if (PRM_GET(modify_nic_vport_context_in, cmd->in, other_vport)) {
        return SYN_NO_VPORT;
    }
    syn = check_select(fw, select, ctx);
    if (!syn && PRM_GET(modify_nic_vport_field_select, select, addresses_list)) {
        syn = set_list(fw, ctx, room);
    }
    if (syn) {
        return syn;
    }
    if (PRM_GET(modify_nic_vport_field_select, select, roce_en)) {
        vport->roce_enabled = PRM_GET(nic_vport_context, ctx, roce_en);
    }
    if (PRM_GET(modify_nic_vport_field_select, select, permanent_address)) {
        get_mac(PRM_PTR(nic_vport_context, ctx, permanent_address), vport->mac);
    }
    if (PRM_GET(modify_nic_vport_field_select, select, promisc)) {
        vport->promisc_uc = PRM_GET(nic_vport_context, ctx, promisc_uc);
        vport->promisc_mc = PRM_GET(nic_vport_context, ctx, promisc_mc);
        vport->promisc_all = PRM_GET(nic_vport_context, ctx, promisc_all);
    }
    if (PRM_GET(modify_nic_vport_field_select, select, mtu)) {
        fw->vport.mtu = (uint16_t)PRM_GET(nic_vport_context, ctx, mtu);
    }
    return SYN_OK;
}

/* -- counters ---------------------------------------------------------------------------------- */

/* How far a counter has come since it was last cleared. */
#define SINCE(field)  (now->field - base->field)
#define COUNTER(name) PRM_PTR(query_vport_counter_out, cmd->out, name)

static void put_counter(uint8_t *counter, uint64_t packets, uint64_t octets)
{
    PRM_SET(traffic_counter, counter, packets, packets);
    PRM_SET(traffic_counter, counter, octets, octets);
}

/* What is RoCE's is not Ethernet's. */
#define PUT(name, from) put_counter(COUNTER(name), SINCE(from##_frames), SINCE(from##_bytes))
#define PUT_LESS(name, from, part)                                                                 \
    put_counter(COUNTER(name), SINCE(from##_frames) - SINCE(part##_frames),                        \
                SINCE(from##_bytes) - SINCE(part##_bytes))

static enum syn cmd_query_vport_counter(struct fw *fw, struct fw_cmd *cmd)
{
    const struct vport_counters *now = &fw->hca.vport->counters;
    const struct vport_counters *base = &fw->vport.cleared;

    if (PRM_GET(query_vport_counter_in, cmd->in, other_vport)) {
        return SYN_NO_VPORT;
    }
    put_counter(
        COUNTER(received_errors),
        SINCE(rx_truncated) + SINCE(rx_bad_header) + SINCE(rx_bad_icrc) + SINCE(rx_oversize), 0);
    PUT(received_ib_unicast, rx_roce_unicast);
    PUT(transmitted_ib_unicast, tx_roce_unicast);
    PUT(received_ib_multicast, rx_roce_multicast);
    PUT(transmitted_ib_multicast, tx_roce_multicast);
    PUT(received_eth_broadcast, rx_broadcast);
    PUT(transmitted_eth_broadcast, tx_broadcast);
    PUT_LESS(received_eth_unicast, rx_unicast, rx_roce_unicast);
    PUT_LESS(transmitted_eth_unicast, tx_unicast, tx_roce_unicast);
    PUT_LESS(received_eth_multicast, rx_multicast, rx_roce_multicast);
    PUT_LESS(transmitted_eth_multicast, tx_multicast, tx_roce_multicast);
    if (PRM_GET(query_vport_counter_in, cmd->in, clear)) {
        fw->vport.cleared = *now;
    }
    return SYN_OK;
}

#undef PUT_LESS
#undef PUT
#undef COUNTER
#undef SINCE

static enum syn cmd_query_vnic_env(struct fw *fw, struct fw_cmd *cmd)
{
    uint8_t *env = PRM_PTR(query_vnic_env_out, cmd->out, vport_env);

    if (PRM_GET(query_vnic_env_in, cmd->in, other_vport)) {
        return SYN_NO_VPORT;
    }
    PRM_SET(vnic_diagnostic_statistics, env, nic_receive_steering_discard,
            fw->hca.vport->counters.rx_no_steering);
    PRM_SET(vnic_diagnostic_statistics, env, invalid_command, fw->invalid_commands);
    PRM_SET(vnic_diagnostic_statistics, env, cq_overrun, fw->hca.cq_overruns);
    return SYN_OK;
}

/* The view of the port that InfiniBand has, which is where packets with a wrong P_Key are counted
 * (driver: mlx5_query_hca_vport_context()). They raise no event: the trap of IBTA 14.2.5.1 is a
 * subnet manager's, and a RoCE port has none. */
static enum syn cmd_query_hca_vport_context(struct fw *fw, struct fw_cmd *cmd)
{
    const struct vport *vport = fw->hca.vport;
    uint8_t *ctx = PRM_PTR(query_hca_vport_context_out, cmd->out, hca_vport_context);
    bool up = port_is_up(&fw->hca);

    if (PRM_GET(query_hca_vport_context_in, cmd->in, other_vport) ||
        PRM_GET(query_hca_vport_context_in, cmd->in, port_num) > 1) {
        return SYN_NO_VPORT;
    }
    PRM_SET(hca_vport_context, ctx, port_physical_state, up ? PHYS_LINK_UP : PHYS_POLLING);
    PRM_SET(hca_vport_context, ctx, port_state, up ? PORT_ACTIVE : PORT_DOWN);
    PRM_SET(hca_vport_context, ctx, vport_state, up ? PORT_ACTIVE : PORT_DOWN);
    PRM_SET(hca_vport_context, ctx, system_image_guid, fw->vport.system_image_guid);
    PRM_SET(hca_vport_context, ctx, port_guid, fw->vport.port_guid);
    PRM_SET(hca_vport_context, ctx, node_guid, fw->vport.node_guid);
    PRM_SET(hca_vport_context, ctx, qkey_violation_counter,
            violations(vport->counters.rx_bad_qkey));
    PRM_SET(hca_vport_context, ctx, pkey_violation_counter,
            violations(vport->counters.rx_bad_pkey));
    return SYN_OK;
}

/* A RoCE port has one P_Key, the default one, at index 0 (annex A16.4.3); the rest of the table
 * that pkey_table_size describes is empty. */
static enum syn cmd_query_hca_vport_pkey(struct fw *fw, struct fw_cmd *cmd)
{
    uint32_t first = PRM_GET(query_hca_vport_pkey_in, cmd->in, pkey_index);
    uint32_t size = 128; /* pkey_table_size 0 */
    uint32_t n = first == 0xffff ? size : 1;
    size_t stride = PRM_STRIDE(query_hca_vport_pkey_out, pkey);

    if (PRM_GET(query_hca_vport_pkey_in, cmd->in, other_vport) ||
        PRM_GET(query_hca_vport_pkey_in, cmd->in, port_num) > 1) {
        return SYN_NO_VPORT;
    }
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
