/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Capabilities of the Ethernet half: offloads of SQs and RQs, and flow tables.
 *
 * The driver's network part needs checksum, LSO, VLAN and RSS (mlx5_eth_supported) and a chain
 * of receive flow tables (fs_core.c FS_CHAINING_CAPS); tunnels, striding, LRO and transmit tables
 * are not offered.
 */
#include "fw/caps.h"
#include "model/eth/eth_queue.h"
#include "model/eth/steering.h"

/* per_protocol_networking_offload_caps.wqe_inline_mode: headers need not be inline in the WQE. */

bool caps_have_ethernet(void)
{
    static const uint16_t needed[] = {PRM_CMD_OP_CREATE_SQ, PRM_CMD_OP_CREATE_RQ,
                                      PRM_CMD_OP_CREATE_TIR, PRM_CMD_OP_CREATE_TIS,
                                      PRM_CMD_OP_CREATE_RQT};

    for (size_t i = 0; i < G_N_ELEMENTS(needed); i++) {
        if (!caps_has_command(needed[i])) {
            return false;
        }
    }
    return true;
}

#define ETH(field, value) PRM_SET(per_protocol_networking_offload_caps, cap, field, value)

void caps_fill_ethernet(const struct fw *fw, bool max, uint8_t *cap)
{
    ETH(csum_cap, 1);
    ETH(vlan_cap, 1);
    ETH(wqe_vlan_insert, 1);
    ETH(self_lb_en_modifiable, 1);
    ETH(max_lso_cap, ETH_LOG_MAX_LSO);
    ETH(wqe_inline_mode, PRM_CAP_INLINE_MODE_NOT_REQUIRED);
    ETH(rss_ind_tbl_cap, 8);
}

#define MATCH(field) PRM_SET(flow_table_fields_supported, match, field, 1)

/* Header fields that a receive rule can match on: untunnelled layers 2 to 4. */
static void fill_match(uint8_t *match)
{
    MATCH(outer_dmac);
    MATCH(outer_smac);
    MATCH(outer_ether_type);
    MATCH(outer_ip_version);
    MATCH(outer_first_prio);
    MATCH(outer_first_cfi);
    MATCH(outer_first_vid);
    MATCH(outer_sip);
    MATCH(outer_dip);
    MATCH(outer_frag);
    MATCH(outer_ip_protocol);
    MATCH(outer_ip_ecn);
    MATCH(outer_ip_dscp);
    MATCH(outer_ipv4_ttl);
    MATCH(outer_udp_sport);
    MATCH(outer_udp_dport);
    MATCH(outer_tcp_sport);
    MATCH(outer_tcp_dport);
    MATCH(outer_tcp_flags);
}

#define FT(field, value) PRM_SET(flow_table_prop_layout, ft, field, value)

/* Tables of the domains of model/eth/steering.h are alike. */
static void fill_properties(uint8_t *ft)
{
    FT(ft_support, 1);
    FT(flow_modify_en, 1);
    FT(modify_root, 1);
    FT(identified_miss_table_mode, 1);
    FT(flow_table_modify, 1);
    FT(ignore_flow_level, 1);
    FT(log_max_ft_size, STEERING_LOG_FT_SIZE);
    FT(max_ft_level, STEERING_MAX_LEVEL);
    FT(log_max_ft_num, STEERING_LOG_FT_NUM);
    FT(log_max_destination, g_bit_storage(STEERING_MAX_DEST) - 1);
    FT(log_max_flow, STEERING_LOG_FT_SIZE);
    if (caps_has_command(PRM_CMD_OP_ALLOC_FLOW_COUNTER)) {
        FT(flow_counter, 1);
        FT(log_max_flow_counter, 16);
    }
    fill_match(PRM_PTR(flow_table_prop_layout, ft, ft_field_support));
    fill_match(PRM_PTR(flow_table_prop_layout, ft, ft_field_bitmask_support));
}

/* RoCE's domain lacks table_miss_action_domain, without which Linux makes no tables there. */
void caps_fill_flow_table(const struct fw *fw, bool max, uint8_t *cap)
{
    fill_properties(PRM_PTR(flow_table_nic_cap, cap, flow_table_properties_nic_receive));
    fill_properties(PRM_PTR(flow_table_nic_cap, cap, flow_table_properties_nic_receive_rdma));
    fill_properties(PRM_PTR(flow_table_nic_cap, cap, flow_table_properties_nic_receive_sniffer));
}
