/* SPDX-License-Identifier: BSD-2-Clause */
/* A device's port, as the connection manager uses it. */
#ifndef HCASIM_GUEST_LIB_VERBS_CM_PORT_H
#define HCASIM_GUEST_LIB_VERBS_CM_PORT_H

#include "guest-lib/cm/cma.h"
#include "guest-lib/verbs/verbs.h"

struct cm_port {
    struct ibv_context *context; /* NULL: there is no such device */
    struct hv_gsi *gsi;
    unsigned index; /* among the connection manager's ports */
};

/* Opens queue pair 1 of the port, and fills *device with the port's addresses. arrived: as for
 * hv_gsi_open(). Returns 0 or errno. */
int cm_port_open(struct cm_port *port, unsigned index, struct ibv_context *context,
                 void (*arrived)(void *opaque), void *opaque, struct cma_device *device);
void cm_port_close(struct cm_port *port);
void cm_port_send(struct cm_port *port, const struct cm_av *av, const uint8_t *mad);
/* Whether the location of a peer is known; returns as hv_find_mac(). */
int cm_port_find(const struct cm_port *port, unsigned sgid_index, const uint8_t dgid[16]);
/* Whether a neighbour has answered since the last call. */
bool cm_port_is_answered(struct cm_port *port);
/* cm_port_is_host_ended(): whether a host of the wire may have ended since the last call.
 * cm_port_tells_ends(): whether ends are reported at all. cm_port_host_at(), cm_port_has_ended():
 * as wire_host_at() and wire_has_ended(). */
bool cm_port_is_host_ended(struct cm_port *port);
bool cm_port_tells_ends(const struct cm_port *port);
uint64_t cm_port_host_at(const struct cm_port *port, const struct cm_av *av);
bool cm_port_has_ended(const struct cm_port *port, uint64_t host);
/* Whether the port's device was removed. */
bool cm_port_is_removed(const struct cm_port *port);
/* Passes received datagrams on, at most CM_PORT_TURN. True: there may be more. */
#define CM_PORT_TURN 64
bool cm_port_run(struct cm_port *port, struct cm *cm);

#endif
