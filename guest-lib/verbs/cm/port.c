/* SPDX-License-Identifier: BSD-2-Clause */
/* A device's port: its addresses, and its datagrams through queue pair 1. */
#include "guest-lib/verbs/cm/port.h"
#include <string.h>
#include "guest-lib/verbs/kernel/config.h"
#include "guest-lib/verbs/kernel/gsi.h"
#include "guest-lib/verbs/kernel/kernel.h"

#define HOP_LIMIT 64

int cm_port_open(struct cm_port *port, unsigned index, struct ibv_context *context,
                 void (*arrived)(void *opaque), void *opaque, struct cma_device *device)
{
    const struct hv_port_config *config = hv_device(context->device)->config;
    struct ibv_port_attr attr;
    int err = ibv_query_port(context, 1, &attr);

    port->context = context;
    port->index = index;
    if (err) {
        return err;
    }
    device->node_guid = hv_config_guid(config);
    device->mtu = (uint8_t)attr.active_mtu;
    device->rate =
        IBV_RATE_MAX; /* the port's own rate: RoCE has no static rate (cma_resolve_iboe_route()) */
    G_STATIC_ASSERT(CMA_GIDS == HV_ADDRESSES);
    for (unsigned i = 0; i < CMA_GIDS; i++) {
        memcpy(device->gid[i], config->gid[i].raw, sizeof(device->gid[i]));
    }
    return hv_gsi_open(hv_context(context), arrived, opaque, &port->gsi);
}

void cm_port_close(struct cm_port *port)
{
    hv_gsi_close(port->gsi);
}

void cm_port_send(struct cm_port *port, const struct cm_av *av, const uint8_t *mad)
{
    union ibv_gid dgid;

    memcpy(dgid.raw, av->dgid, sizeof(dgid.raw));
    hv_gsi_send(port->gsi, av->sgid_index, &dgid, mad);
}

int cm_port_find(const struct cm_port *port, unsigned sgid_index, const uint8_t dgid[16])
{
    union ibv_gid gid;
    uint8_t mac[6];

    memcpy(gid.raw, dgid, sizeof(gid.raw));
    return hv_find_mac(hv_context(port->context), 1, sgid_index, &gid, mac);
}

bool cm_port_is_answered(struct cm_port *port)
{
    return hv_gsi_is_answered(port->gsi);
}

bool cm_port_is_host_ended(struct cm_port *port)
{
    return hv_gsi_is_host_ended(port->gsi);
}

bool cm_port_tells_ends(const struct cm_port *port)
{
    return hv_gsi_tells_ends(port->gsi);
}

uint64_t cm_port_host_at(const struct cm_port *port, const struct cm_av *av)
{
    union ibv_gid dgid;

    memcpy(dgid.raw, av->dgid, sizeof(dgid.raw));
    return hv_gsi_host_at(port->gsi, av->sgid_index, &dgid);
}

bool cm_port_has_ended(const struct cm_port *port, uint64_t host)
{
    return hv_gsi_has_ended(port->gsi, host);
}

bool cm_port_is_removed(const struct cm_port *port)
{
    return hv_gsi_is_removed(port->gsi);
}

/* The index of the port's GID that a datagram was sent to. Its answers, and a connection that it
 * asks for, have its version of RoCE. */
static unsigned cm_port_gid_index(const struct cm_port *port, const struct hv_datagram *datagram)
{
    const struct hv_port_config *config = hv_device(port->context->device)->config;
    unsigned i = 0;

    while (i < HV_ADDRESSES - 1 &&
           memcmp(&config->gid[i], &datagram->dgid, sizeof(datagram->dgid)) != 0) {
        i++;
    }
    return datagram->is_v1 ? i + HV_ADDRESSES : i;
}

bool cm_port_run(struct cm_port *port, struct cm *cm)
{
    struct hv_datagram datagram;
    unsigned n = 0;

    while (n < CM_PORT_TURN && hv_gsi_poll(port->gsi, &datagram)) {
        struct cm_av from = {.port = port->index,
                             .sgid_index = (uint8_t)cm_port_gid_index(port, &datagram),
                             .hop_limit = HOP_LIMIT};

        memcpy(from.dgid, datagram.sgid.raw, sizeof(from.dgid));
        cm_recv(cm, &from, datagram.mad, datagram.len);
        n++;
    }
    return n == CM_PORT_TURN;
}
