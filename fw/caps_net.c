/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Capabilities of the Ethernet half: offloads of SQs and RQs, and flow tables.
 *
 * The driver's network part needs checksum, LSO, VLAN and RSS (mlx5_eth_supported) and a chain of
 * receive flow tables (fs_core.c FS_CHAINING_CAPS). The device does not offer tunnels, striding,
 * LRO, and transmit tables other than the sniffer's.
 */
#include "fw/caps.h"
#include "model/eth/eth_queue.h"
#include "model/steering/steering.h"

#define ETH(name, n, ...)                                                                          \
    {                                                                                              \
        CAP_NAMED(per_protocol_networking_offload_caps, name), .value = (n), ##__VA_ARGS__         \
    }

const struct cap caps_ethernet[] = {
    ETH(csum_cap, 1),
    ETH(vlan_cap, 1),
    ETH(wqe_vlan_insert, 1),
    ETH(self_lb_en_modifiable, 1, CAP_NEEDS(PRM_CMD_OP_MODIFY_TIR)),
    ETH(max_lso_cap, ETH_LOG_MAX_LSO),
    ETH(wqe_inline_mode, PRM_CAP_INLINE_MODE_NOT_REQUIRED),
    ETH(rss_ind_tbl_cap, 8),
    {0},
};

/* Properties of a type of flow tables, at a member of flow_table_nic_cap. */
#define FT_FIELD(at, layout, name)                                                                 \
    (PRM_##layout##_##name##_FIELD + ((uint32_t)PRM_flow_table_nic_cap_##at##_OFFSET * 8 << 8))
#define FT(at, f, n, ...)                                                                          \
    {                                                                                              \
        .field = FT_FIELD(at, flow_table_prop_layout, f), .name = #f, .value = (n), ##__VA_ARGS__  \
    }

/* A header field that a rule can match completely and under a mask. */
#define MATCH_AS(at, support, f)                                                                   \
    {                                                                                              \
        .field = FT_FIELD(at, flow_table_fields_supported, f) +                                    \
                 ((uint32_t)PRM_flow_table_prop_layout_##support##_OFFSET * 8 << 8),               \
        .name = #f, .value = 1                                                                     \
    }
#define MATCH(at, f) MATCH_AS(at, ft_field_support, f), MATCH_AS(at, ft_field_bitmask_support, f)

/* Headers of layers 2 to 4, without tunnels. */
#define MATCHES(at)                                                                                \
    MATCH(at, outer_dmac), MATCH(at, outer_smac), MATCH(at, outer_ether_type),                     \
        MATCH(at, outer_ip_version), MATCH(at, outer_first_prio), MATCH(at, outer_first_cfi),      \
        MATCH(at, outer_first_vid), MATCH(at, outer_sip), MATCH(at, outer_dip),                    \
        MATCH(at, outer_frag), MATCH(at, outer_ip_protocol), MATCH(at, outer_ip_ecn),              \
        MATCH(at, outer_ip_dscp), MATCH(at, outer_ipv4_ttl), MATCH(at, outer_udp_sport),           \
        MATCH(at, outer_udp_dport), MATCH(at, outer_tcp_sport), MATCH(at, outer_tcp_dport),        \
        MATCH(at, outer_tcp_flags)

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
        FT(at, log_max_flow_counter, 16, CAP_NEEDS(PRM_CMD_OP_ALLOC_FLOW_COUNTER)), MATCHES(at)

const struct cap caps_flow_table[] = {
    {CAP_NAMED(flow_table_nic_cap, allow_sniffer_and_nic_rx_shared_tir), .value = 1},
    PROPERTIES(flow_table_properties_nic_receive),
    PROPERTIES(flow_table_properties_nic_receive_rdma),
    FT(flow_table_properties_nic_receive_rdma, table_miss_action_domain, 1),
    PROPERTIES(flow_table_properties_nic_receive_sniffer),
    PROPERTIES(flow_table_properties_nic_transmit_sniffer),
    {0},
};
