/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Steering rules: ibv_exp_create_flow(). The specifications follow their ibv_exp_flow_attr.
 */
#ifndef HCASIM_INFINIBAND_EXP_FLOW_H
#define HCASIM_INFINIBAND_EXP_FLOW_H

#include <stdint.h>
#include <infiniband/verbs.h>

enum ibv_exp_flow_flags {
    IBV_EXP_FLOW_ATTR_FLAGS_ALLOW_LOOP_BACK = 1
};

enum ibv_exp_flow_attr_type {
    IBV_EXP_FLOW_ATTR_NORMAL = 0x0,
    IBV_EXP_FLOW_ATTR_ALL_DEFAULT = 0x1,
    IBV_EXP_FLOW_ATTR_MC_DEFAULT = 0x2,
    IBV_EXP_FLOW_ATTR_SNIFFER = 0x3
};

enum ibv_exp_flow_spec_type {
    IBV_EXP_FLOW_SPEC_ETH = 0x20,
    IBV_EXP_FLOW_SPEC_IB = 0x21,
    IBV_EXP_FLOW_SPEC_IPV4 = 0x30,
    IBV_EXP_FLOW_SPEC_IPV6 = 0x31,
    IBV_EXP_FLOW_SPEC_IPV4_EXT = 0x32,
    IBV_EXP_FLOW_SPEC_IPV6_EXT = 0x33,
    IBV_EXP_FLOW_SPEC_TCP = 0x40,
    IBV_EXP_FLOW_SPEC_UDP = 0x41,
    IBV_EXP_FLOW_SPEC_VXLAN_TUNNEL = 0x50,
    IBV_EXP_FLOW_SPEC_INNER = 0x100,
    IBV_EXP_FLOW_SPEC_ACTION_TAG = 0x1000,
    IBV_EXP_FLOW_SPEC_ACTION_DROP = 0x1001
};

struct ibv_exp_flow {
    struct ibv_context *context;
    uint32_t handle;
};

/* -- Link layers */

struct ibv_exp_flow_eth_filter {
    uint8_t dst_mac[6];
    uint8_t src_mac[6];
    uint16_t ether_type;
    uint16_t vlan_tag;
};

struct ibv_exp_flow_spec_eth {
    enum ibv_exp_flow_spec_type type;
    uint16_t size;
    struct ibv_exp_flow_eth_filter val;
    struct ibv_exp_flow_eth_filter mask;
};

struct ibv_exp_flow_ib_filter {
    uint32_t qpn;
    uint8_t dst_gid[16];
};

struct ibv_exp_flow_spec_ib {
    enum ibv_exp_flow_spec_type type;
    uint16_t size;
    struct ibv_exp_flow_ib_filter val;
    struct ibv_exp_flow_ib_filter mask;
};

/* -- IP */

struct ibv_exp_flow_ipv4_filter {
    uint32_t src_ip;
    uint32_t dst_ip;
};

struct ibv_exp_flow_spec_ipv4 {
    enum ibv_exp_flow_spec_type type;
    uint16_t size;
    struct ibv_exp_flow_ipv4_filter val;
    struct ibv_exp_flow_ipv4_filter mask;
};

struct ibv_exp_flow_ipv4_ext_filter {
    uint32_t src_ip;
    uint32_t dst_ip;
    uint8_t proto;
    uint8_t tos;
    uint8_t ttl;
    uint8_t flags;
};

struct ibv_exp_flow_spec_ipv4_ext {
    enum ibv_exp_flow_spec_type type;
    uint16_t size;
    struct ibv_exp_flow_ipv4_ext_filter val;
    struct ibv_exp_flow_ipv4_ext_filter mask;
};

struct ibv_exp_flow_ipv6_filter {
    uint8_t src_ip[16];
    uint8_t dst_ip[16];
};

struct ibv_exp_flow_spec_ipv6 {
    enum ibv_exp_flow_spec_type type;
    uint16_t size;
    struct ibv_exp_flow_ipv6_filter val;
    struct ibv_exp_flow_ipv6_filter mask;
};

struct ibv_exp_flow_ipv6_ext_filter {
    uint8_t src_ip[16];
    uint8_t dst_ip[16];
    uint32_t flow_label;
    uint8_t next_hdr;
    uint8_t traffic_class;
    uint8_t hop_limit;
};

struct ibv_exp_flow_spec_ipv6_ext {
    enum ibv_exp_flow_spec_type type;
    uint16_t size;
    struct ibv_exp_flow_ipv6_ext_filter val;
    struct ibv_exp_flow_ipv6_ext_filter mask;
};

/* -- Above IP */

struct ibv_exp_flow_tcp_udp_filter {
    uint16_t dst_port;
    uint16_t src_port;
};

struct ibv_exp_flow_spec_tcp_udp {
    enum ibv_exp_flow_spec_type type;
    uint16_t size;
    struct ibv_exp_flow_tcp_udp_filter val;
    struct ibv_exp_flow_tcp_udp_filter mask;
};

struct ibv_exp_flow_tunnel_filter {
    uint32_t tunnel_id;
};

struct ibv_exp_flow_spec_tunnel {
    enum ibv_exp_flow_spec_type type;
    uint16_t size;
    struct ibv_exp_flow_tunnel_filter val;
    struct ibv_exp_flow_tunnel_filter mask;
};

/* -- Actions */

struct ibv_exp_flow_spec_action_tag {
    enum ibv_exp_flow_spec_type type;
    uint16_t size;
    uint32_t tag_id;
};

struct ibv_exp_flow_spec_action_drop {
    enum ibv_exp_flow_spec_type type;
    uint16_t size;
};

struct ibv_exp_flow_spec {
    union {
        struct {
            uint32_t type;
            uint16_t size;
        } hdr;
        struct ibv_exp_flow_spec_ib ib;
        struct ibv_exp_flow_spec_eth eth;
        struct ibv_exp_flow_spec_ipv4 ipv4;
        struct ibv_exp_flow_spec_ipv4_ext ipv4_ext;
        struct ibv_exp_flow_spec_tcp_udp tcp_udp;
        struct ibv_exp_flow_spec_ipv6 ipv6;
        struct ibv_exp_flow_spec_ipv6_ext ipv6_ext;
        struct ibv_exp_flow_spec_tunnel tunnel;
        struct ibv_exp_flow_spec_action_tag flow_tag;
        struct ibv_exp_flow_spec_action_drop drop;
    };
};

struct ibv_exp_flow_attr {
    enum ibv_exp_flow_attr_type type;
    uint16_t size;
    uint16_t priority;
    uint8_t num_of_specs;
    uint8_t port;
    uint32_t flags;
    uint64_t reserved;
};

#endif
