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

/* A field of a layout that lies in another one, at a member of that. */
#define WITHIN(outer, member, layout, name)                                                        \
    (PRM_##layout##_##name##_FIELD + ((uint32_t)PRM_##outer##_##member##_OFFSET * 8 << 8))

#define RX(layout, name) WITHIN(flow_table_nic_cap, flow_table_properties_nic_receive, layout, name)

#define FT(f, n, ...)                                                                              \
    {                                                                                              \
        .field = RX(flow_table_prop_layout, f), .name = #f, .value = (n), ##__VA_ARGS__            \
    }

/* A header field that a receive rule can match on, whole and under a mask. */
#define MATCH_AS(support, f)                                                                       \
    {                                                                                              \
        .field = RX(flow_table_fields_supported, f) +                                              \
                 ((uint32_t)PRM_flow_table_prop_layout_##support##_OFFSET * 8 << 8),               \
        .name = #f, .value = 1                                                                     \
    }
#define MATCH(f) MATCH_AS(ft_field_support, f), MATCH_AS(ft_field_bitmask_support, f)

const struct cap caps_flow_table[] = {
    FT(ft_support, 1),
    FT(flow_modify_en, 1),
    FT(modify_root, 1, CAP_NEEDS(PRM_CMD_OP_SET_FLOW_TABLE_ROOT)),
    FT(identified_miss_table_mode, 1),
    FT(flow_table_modify, 1, CAP_NEEDS(PRM_CMD_OP_MODIFY_FLOW_TABLE)),
    FT(ignore_flow_level, 1),
    FT(log_max_ft_size, STEERING_LOG_FT_SIZE),
    FT(max_ft_level, STEERING_MAX_LEVEL),
    FT(log_max_ft_num, STEERING_LOG_FT_NUM),
    FT(log_max_destination, CAP_LOG2(STEERING_MAX_DEST)),
    FT(log_max_flow, STEERING_LOG_FT_SIZE),
    FT(flow_counter, 1, CAP_NEEDS(PRM_CMD_OP_ALLOC_FLOW_COUNTER)),
    FT(log_max_flow_counter, 16, CAP_NEEDS(PRM_CMD_OP_ALLOC_FLOW_COUNTER)),
    /* untunnelled layers 2 to 4 */
    MATCH(outer_dmac),
    MATCH(outer_smac),
    MATCH(outer_ether_type),
    MATCH(outer_ip_version),
    MATCH(outer_first_prio),
    MATCH(outer_first_cfi),
    MATCH(outer_first_vid),
    MATCH(outer_sip),
    MATCH(outer_dip),
    MATCH(outer_frag),
    MATCH(outer_ip_protocol),
    MATCH(outer_ip_ecn),
    MATCH(outer_ip_dscp),
    MATCH(outer_ipv4_ttl),
    MATCH(outer_udp_sport),
    MATCH(outer_udp_dport),
    MATCH(outer_tcp_sport),
    MATCH(outer_tcp_dport),
    MATCH(outer_tcp_flags),
    {0},
};
