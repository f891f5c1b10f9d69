/* SPDX-License-Identifier: BSD-2-Clause */
/* A device's port as the connection manager has it. */
#ifndef HCASIM_GUEST_LIB_VERBS_CM_PORT_H
#define HCASIM_GUEST_LIB_VERBS_CM_PORT_H

#include "guest-lib/cm/cma.h"
#include "guest-lib/verbs/verbs.h"

struct cm_port {
    struct ibv_context *context; /* NULL: there is no such device */
    struct hv_gsi *gsi;
    unsigned index; /* of the connection manager's ports */
};

/* Opens queue pair 1, and says what the port is. arrived as hv_gsi_open()'s. 0 or errno. */
int cm_port_open(struct cm_port *port, unsigned index, struct ibv_context *context,
                 void (*arrived)(void *opaque), void *opaque, struct cma_device *device);
void cm_port_close(struct cm_port *port);
void cm_port_send(struct cm_port *port, const struct cm_av *av, const uint8_t *mad);
/* Where a peer is: hv_find_mac()'s answer. */
int cm_port_find(const struct cm_port *port, unsigned sgid_index, const uint8_t dgid[16]);
/* Whether a neighbour has answered since this was asked last. */
bool cm_port_is_answered(struct cm_port *port);
/* Whether a host of its wire may have ended since this was asked last; whether that is told; who is
 * there, and whether that one has (wire_host_at(), wire_has_ended()). */
bool cm_port_is_host_ended(struct cm_port *port);
bool cm_port_tells_ends(const struct cm_port *port);
uint64_t cm_port_host_at(const struct cm_port *port, const struct cm_av *av);
bool cm_port_has_ended(const struct cm_port *port, uint64_t host);
/* Whether its device was removed. */
bool cm_port_is_removed(const struct cm_port *port);
/* Hands on what has come in, CM_PORT_TURN datagrams at most. True: there may be more. */
#define CM_PORT_TURN 64
bool cm_port_run(struct cm_port *port, struct cm *cm);

#endif
