/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The UDP ports at which a function expects VXLAN. A new function, and one after a reset, expects
 * it at 4789 alone: DPDK's driver adds no port, and relies on that.
 */
#ifndef HCASIM_MODEL_ETH_VXLAN_PORTS_H
#define HCASIM_MODEL_ETH_VXLAN_PORTS_H

#include "model/core/hca.h"

void vxlan_ports_init(struct hca *hca);

/* Adds a port; adding one that is there has no effect, because mlx5_core adds 4789 when it loads.
 * SYN_LIMIT: there are ETH_VXLAN_PORTS_MAX. SYN_VXLAN_PORT: the port is 0. */
enum syn vxlan_port_add(struct hca *hca, uint16_t port);
/* SYN_VXLAN_PORT: there is no such port. */
enum syn vxlan_port_delete(struct hca *hca, uint16_t port);

#endif
