/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements the function's list of VXLAN ports. */
#include "model/eth/vxlan_ports.h"

void vxlan_ports_init(struct hca *hca)
{
    hca->vxlan = (struct eth_vxlan_ports){.port = {UDP_PORT_VXLAN}, .count = 1};
}

/* The index of a port, or the count if it is not in the list. */
static unsigned vxlan_port_find(const struct eth_vxlan_ports *ports, uint16_t port)
{
    unsigned i = 0;

    while (i < ports->count && ports->port[i] != port) {
        i++;
    }
    return i;
}

enum syn vxlan_port_add(struct hca *hca, uint16_t port)
{
    struct eth_vxlan_ports *ports = &hca->vxlan;

    if (port == 0) {
        return SYN_VXLAN_PORT;
    }
    if (vxlan_port_find(ports, port) < ports->count) {
        return SYN_OK;
    }
    if (ports->count == ETH_VXLAN_PORTS_MAX) {
        return SYN_LIMIT;
    }
    ports->port[ports->count++] = port;
    return SYN_OK;
}

enum syn vxlan_port_delete(struct hca *hca, uint16_t port)
{
    struct eth_vxlan_ports *ports = &hca->vxlan;
    unsigned i = vxlan_port_find(ports, port);

    if (i == ports->count) {
        return SYN_VXLAN_PORT;
    }
    ports->port[i] = ports->port[--ports->count];
    return SYN_OK;
}
