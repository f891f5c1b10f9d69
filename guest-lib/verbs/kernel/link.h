/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The speed of a port in InfiniBand's terms, width and speed. They are derived from the Ethernet
 * mode that PTYS reports, as mlx5_ib does (translate_eth_proto_oper()). Every place that reports a
 * port's speed uses this: ibv_query_port(), sysfs, ethtool.
 */
#ifndef HCASIM_GUEST_LIB_VERBS_KERNEL_LINK_H
#define HCASIM_GUEST_LIB_VERBS_KERNEL_LINK_H

#include <stdint.h>

struct hv_hca;

struct hv_link {
    uint8_t width, speed; /* as in ibv_port_attr.active_width and active_speed */
    uint32_t mbps;        /* 0: the mode is unknown, or the link is down */
};

/* The link of a mode, which is one bit of enum eth_link_mode (legacy) or of enum ext_eth_link_mode
 * (ext); if both are set, ext applies. An unknown mode is 4X QDR, as in mlx5_query_port_roce(). */
struct hv_link hv_link_of_mode(uint32_t legacy, uint32_t ext);

/* The link that PTYS reports now. */
struct hv_link hv_link_now(struct hv_hca *hca);

#endif
