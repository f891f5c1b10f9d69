/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How fast a port is, in the words of InfiniBand: width and speed, as mlx5_ib makes them up from
 * the Ethernet mode that PTYS tells (translate_eth_proto_oper()). All that tells a port's speed
 * asks here: ibv_query_port(), sysfs, ethtool.
 */
#ifndef HCASIM_GUEST_LIB_VERBS_KERNEL_LINK_H
#define HCASIM_GUEST_LIB_VERBS_KERNEL_LINK_H

#include <stdint.h>

struct hv_hca;

struct hv_link {
    uint8_t width, speed; /* as ibv_port_attr.active_width and active_speed have them */
    uint32_t mbps;        /* 0: the mode is unknown, or the link is down */
};

/* The link of a mode: one bit of enum eth_link_mode, or of enum ext_eth_link_mode, which counts if
 * both are there. An unknown mode is 4X QDR, as mlx5_query_port_roce() has it. */
struct hv_link hv_link_of_mode(uint32_t legacy, uint32_t ext);

/* The link as PTYS tells it now. */
struct hv_link hv_link_now(struct hv_hca *hca);

#endif
