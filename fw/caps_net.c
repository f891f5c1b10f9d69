/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Capabilities of the Ethernet half: offloads of SQs and RQs, and flow tables.
 *
 * The driver's network part needs checksum, LSO, VLAN and RSS (mlx5_eth_supported) and a chain of
 * receive flow tables (fs_core.c FS_CHAINING_CAPS). With striding_rq, umr_ptr_rlky and reg_umr_sq
 * the driver receives into striding queues (mlx5e_build_rq_params()). With
 * enhanced_multi_pkt_send_wqe it sends several packets in a WQE. It enables LRO only on striding
 * queues, and only if there is none in tunnels.
 */
#include "fw/caps.h"
#include "model/eth/eth_lro.h"
#include "model/eth/eth_queue.h"
#include "model/steering/contexts.h"
#include "model/steering/key.h"
#include "model/steering/ste.h"
#include "model/steering/steering.h"

#define ETH(name, n, ...)                                                                          \
    {                                                                                              \
        CAP_NAMED(per_protocol_networking_offload_caps, name), .value = (n), ##__VA_ARGS__         \
    }

#define LRO_PERIOD(i)                                                                              \
    {                                                                                              \
        .field = PRM_per_protocol_networking_offload_caps_lro_timer_supported_periods_ARRAY +      \
                 ((uint32_t)(i)*32 << 8),                                                          \
        .name = "lro_timer_supported_periods", .value = ETH_LRO_PERIOD_##i                         \
    }

const struct cap caps_ethernet[] = {
    ETH(csum_cap, 1),
    ETH(vlan_cap, 1),
    ETH(reg_umr_sq, 1),
    ETH(wqe_vlan_insert, 1),
    ETH(self_lb_en_modifiable, 1, CAP_NEEDS(PRM_CMD_OP_MODIFY_TIR)),
    ETH(max_lso_cap, ETH_LOG_MAX_LSO),
    ETH(scatter_fcs, 1),
    ETH(lro_cap, 1),
    ETH(lro_psh_flag, 1),
    LRO_PERIOD(0),
    LRO_PERIOD(1),
    LRO_PERIOD(2),
    LRO_PERIOD(3),
    ETH(wqe_inline_mode, PRM_CAP_INLINE_MODE_NOT_REQUIRED),
    ETH(rss_ind_tbl_cap, 8),
    ETH(enhanced_multi_pkt_send_wqe, 1),
    ETH(tunnel_stateless_gre, 1),
    ETH(tunnel_stateless_vxlan, 1,
        CAP_NEEDS(PRM_CMD_OP_ADD_VXLAN_UDP_DPORT, PRM_CMD_OP_DELETE_VXLAN_UDP_DPORT)),
    ETH(max_vxlan_udp_ports, ETH_VXLAN_PORTS_MAX),
    ETH(swp, 1),
    ETH(swp_csum, 1),
    ETH(swp_lso, 1),
    ETH(cqe_checksum_full, 1),
    ETH(tunnel_stateless_geneve_tx, 1),
    ETH(tunnel_stateless_geneve_rx, 1),
    ETH(tunnel_stateless_vxlan_gpe, 1),
    ETH(tunnel_stateless_ip_over_ip, 1),
    ETH(tunnel_stateless_ip_over_ip_rx, 1),
    ETH(tunnel_stateless_ip_over_ip_tx, 1),
    {0},
};

/* Properties of a type of flow tables, at a member of flow_table_nic_cap. */
#define FT_FIELD CAP_FT_FIELD
#define FT(at, f, n, ...)                                                                          \
    {                                                                                              \
        .field = FT_FIELD(at, flow_table_prop_layout, f), .name = #f, .value = (n), ##__VA_ARGS__  \
    }

/*
 * Header fields that rules can match, completely and under a mask: the rows of
 * model/steering/match_fields.def, for the domain DOMAIN with its capabilities at AT. The
 * capability for MPLS has a bit for each part of a label.
 */
#define MATCH_VALUE(in, domain, f)                                                                 \
    ((in)&IN(domain) ? (1u << PRM_FIELD_WIDTH(PRM_flow_table_fields_supported_##f##_FIELD)) - 1 : 0)
#define MATCH_AS(at, domain, support, in, f)                                                       \
    {.field = FT_FIELD(at, flow_table_fields_supported, f) +                                       \
              ((uint32_t)PRM_flow_table_prop_layout_##support##_OFFSET * 8 << 8),                  \
     .name = #f,                                                                                   \
     .value = MATCH_VALUE(in, domain, f)},
#define MATCH_BOTH(at, domain, in, f)                                                              \
    MATCH_AS(at, domain, ft_field_support, in, f)                                                  \
    MATCH_AS(at, domain, ft_field_bitmask_support, in, f)
#define MATCH(in, section, layout, field_, f)              MATCH_BOTH(AT, DOMAIN, in, f)
#define MATCH_BYTES(in, section, layout, field_, bytes, f) MATCH_BOTH(AT, DOMAIN, in, f)
#define MORE(in, section, layout, field_)

/* Fields in the second list of a domain. */
#define MATCH_2(at, f)                                                                             \
    {                                                                                              \
        .field = FT_FIELD(at, flow_table_fields_supported_2, f), .name = #f, .value = 1            \
    }

#define PROPERTIES(at)                                                                             \
    FT(at, ft_support, 1), FT(at, flow_modify_en, 1),                                              \
        FT(at, modify_root, 1, CAP_NEEDS(PRM_CMD_OP_SET_FLOW_TABLE_ROOT)),                         \
        FT(at, identified_miss_table_mode, 1),                                                     \
        FT(at, flow_table_modify, 1, CAP_NEEDS(PRM_CMD_OP_MODIFY_FLOW_TABLE)),                     \
        FT(at, ignore_flow_level, 1), FT(at, log_max_ft_size, STEERING_LOG_FT_SIZE),               \
        FT(at, max_ft_level, STEERING_MAX_LEVEL), FT(at, log_max_ft_num, STEERING_LOG_FT_NUM),     \
        FT(at, log_max_destination, CAP_LOG2(STEERING_MAX_DEST)),                                  \
        FT(at, log_max_flow, STEERING_LOG_FT_SIZE),                                                \
        FT(at, flow_counter, 1, CAP_NEEDS(PRM_CMD_OP_ALLOC_FLOW_COUNTER)),                         \
        FT(at, log_max_flow_counter, 16, CAP_NEEDS(PRM_CMD_OP_ALLOC_FLOW_COUNTER))

static uint64_t caps_drop_address(const struct fw *fw)
{
    return ste_end_address(STE_DROP, 0);
}

static uint64_t caps_allow_address(const struct fw *fw)
{
    return ste_end_address(STE_ALLOW, 0);
}

/* Actions of entries that change frames (model/steering/actions.c). */
#define CHANGES(at)                                                                                \
    FT(at, reformat, 1, CAP_NEEDS(PRM_CMD_OP_ALLOC_PACKET_REFORMAT_CONTEXT)),                      \
        FT(at, reformat_and_vlan_action, 1), FT(at, reformat_and_modify_action, 1),                \
        FT(at, reformat_and_fwd_to_table, 1),                                                      \
        FT(at, log_max_modify_header_context, REWRITE_LOG_MAX,                                     \
           CAP_NEEDS(PRM_CMD_OP_ALLOC_MODIFY_HEADER_CONTEXT)),                                     \
        FT(at, max_modify_header_actions, REWRITE_MAX,                                             \
           CAP_NEEDS(PRM_CMD_OP_ALLOC_MODIFY_HEADER_CONTEXT))

const struct cap caps_flow_table[] = {
    {CAP_NAMED(flow_table_nic_cap, nic_rx_multi_path_tirs), .value = 1},
    {CAP_NAMED(flow_table_nic_cap, nic_rx_multi_path_tirs_fts), .value = 1},
    {CAP_NAMED(flow_table_nic_cap, encap_general_header), .value = 1},
    {CAP_NAMED(flow_table_nic_cap, log_max_packet_reformat_context), .value = REFORMAT_LOG_MAX},
    {CAP_NAMED(flow_table_nic_cap, max_encap_header_size), .value = REFORMAT_MAX},
    {CAP_NAMED(flow_table_nic_cap, allow_sniffer_and_nic_rx_shared_tir), .value = 1},
    PROPERTIES(flow_table_properties_nic_receive),
    CHANGES(flow_table_properties_nic_receive),
    FT(flow_table_properties_nic_receive, decap, 1),
    FT(flow_table_properties_nic_receive, reformat_l3_tunnel_to_l2, 1),
    FT(flow_table_properties_nic_receive, pop_vlan, 1),
    FT(flow_table_properties_nic_receive, pop_vlan_2, 1),
#define AT     flow_table_properties_nic_receive
#define DOMAIN NIC_RX
#include "model/steering/match_fields.def"
#undef AT
#undef DOMAIN
    MATCH_2(ft_field_support_2_nic_receive, bth_opcode),
    MATCH_2(ft_field_support_2_nic_receive, tunnel_header_0_1),
    /* steering by software: a profile without the format of entries has none of these */
    FT(flow_table_properties_nic_receive, termination_table, 1),
    FT(flow_table_properties_nic_receive, sw_owner, 1, CAP_NEEDS(PRM_CMD_OP_SYNC_STEERING)),
    {CAP_NAMED(flow_table_nic_cap, sw_steering_nic_rx_action_drop_icm_address),
     .of = caps_drop_address},
    PROPERTIES(flow_table_properties_nic_receive_rdma),
    FT(flow_table_properties_nic_receive_rdma, table_miss_action_domain, 1),
#define AT     flow_table_properties_nic_receive_rdma
#define DOMAIN RDMA_RX
#include "model/steering/match_fields.def"
#undef AT
#undef DOMAIN
    PROPERTIES(flow_table_properties_nic_transmit),
    CHANGES(flow_table_properties_nic_transmit),
    FT(flow_table_properties_nic_transmit, reformat_l2_to_l3_tunnel, 1),
    FT(flow_table_properties_nic_transmit, push_vlan, 1),
    FT(flow_table_properties_nic_transmit, push_vlan_2, 1),
    FT(flow_table_properties_nic_transmit, sw_owner, 1, CAP_NEEDS(PRM_CMD_OP_SYNC_STEERING)),
    {CAP_NAMED(flow_table_nic_cap, sw_steering_nic_tx_action_drop_icm_address),
     .of = caps_drop_address},
    {CAP_NAMED(flow_table_nic_cap, sw_steering_nic_tx_action_allow_icm_address),
     .of = caps_allow_address},
#define AT     flow_table_properties_nic_transmit
#define DOMAIN NIC_TX
#include "model/steering/match_fields.def"
#undef AT
#undef DOMAIN
    PROPERTIES(flow_table_properties_nic_transmit_rdma),
#define AT     flow_table_properties_nic_transmit_rdma
#define DOMAIN RDMA_TX
#include "model/steering/match_fields.def"
#undef AT
#undef DOMAIN
    MATCH_2(ft_field_support_2_nic_receive_rdma, bth_opcode),
    MATCH_2(ft_field_support_2_nic_transmit_rdma, bth_opcode),
    PROPERTIES(flow_table_properties_nic_receive_sniffer),
#define AT     flow_table_properties_nic_receive_sniffer
#define DOMAIN SNIFFER_RX
#include "model/steering/match_fields.def"
#undef AT
#undef DOMAIN
    PROPERTIES(flow_table_properties_nic_transmit_sniffer),
#define AT     flow_table_properties_nic_transmit_sniffer
#define DOMAIN SNIFFER_TX
#include "model/steering/match_fields.def"
#undef AT
#undef DOMAIN
    {0},
};
