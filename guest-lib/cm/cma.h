/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connections between IP addresses and ports, over the connection manager of cm.h, as the kernel's
 * rdma_cm. Addresses belong to devices. The service ID of a port, and the header before the private
 * data of a request, are those of IBTA annex A11, as Linux uses them.
 *
 * Calls return 0 or an errno of rdma_cm. The caller serializes them. Events are those of the ABI
 * (rdma/rdma_user_cm.h), except that the fields which identify the program's object are missing.
 *
 *   cma_addr.c     addresses, GIDs, ports
 *   cma_ib.c       addresses that are GIDs (AF_IB), as far as RoCE supports them
 *   cma_resolve.c  finding a peer
 *   cma.c          the other calls of a consumer
 *   cma_event.c    events of the connection manager
 *   cma_attr.c     attributes of queue pairs
 */
#ifndef HCASIM_GUEST_LIB_CM_CMA_H
#define HCASIM_GUEST_LIB_CM_CMA_H

#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_cm.h>
#include <sys/socket.h>
#include "guest-lib/cm/cm.h"

/* enum rdma_cm_event_type of librdmacm, which is not in the ABI's header. */
enum cma_event {
    CMA_EVENT_ADDR_RESOLVED,
    CMA_EVENT_ADDR_ERROR,
    CMA_EVENT_ROUTE_RESOLVED,
    CMA_EVENT_ROUTE_ERROR,
    CMA_EVENT_CONNECT_REQUEST,
    CMA_EVENT_CONNECT_RESPONSE,
    CMA_EVENT_CONNECT_ERROR,
    CMA_EVENT_UNREACHABLE,
    CMA_EVENT_REJECTED,
    CMA_EVENT_ESTABLISHED,
    CMA_EVENT_DISCONNECTED,
    CMA_EVENT_DEVICE_REMOVAL,
    CMA_EVENT_MULTICAST_JOIN,
    CMA_EVENT_MULTICAST_ERROR,
    CMA_EVENT_ADDR_CHANGE,
    CMA_EVENT_TIMEWAIT_EXIT
};

#define CMA_GIDS      2 /* of a device: first the link-local GID, then that of its IPv4 address */
#define CMA_UDP_QKEY  0x01234567
#define CMA_NO_DEVICE UINT_MAX

/* A device, with one port on the wire. */
struct cma_device {
    uint64_t node_guid; /* big-endian, as in the ABI */
    uint8_t gid[CMA_GIDS][16];
    uint8_t mtu, rate; /* enum ibv_mtu, enum ibv_rate */
};

enum cma_state {
    CMA_IDLE,
    CMA_ADDR_BOUND,
    CMA_ADDR_QUERY, /* a neighbour is being asked for its MAC address */
    CMA_ADDR_RESOLVED,
    CMA_ROUTE_RESOLVED,
    CMA_LISTEN,
    CMA_CONNECT,
    CMA_DISCONNECT
};

struct cma_bind;
struct cma_id {
    struct cma *cma;
    enum cma_state state;
    uint16_t ps;
    uint8_t qp_type; /* enum ibv_qp_type */
    struct sockaddr_storage src, dst;
    unsigned device; /* CMA_NO_DEVICE: any device */
    unsigned sgid_index;
    uint8_t dgid[16];
    uint16_t pkey; /* partition, as QUERY returns it: big-endian; 0 for an Ethernet interface */
    struct cma_resolving {
        unsigned device, sgid_index; /* used by the identifier after it is resolved */
        uint64_t until_ns;
        GList link;
    } resolving; /* in CMA_ADDR_QUERY */
    bool has_route;
    bool afonly, afonly_set, reuseaddr;
    uint8_t tos, path_mtu, packet_life_time; /* packet_life_time: 4.096 us << n */
    /* 4.096 us << n that the consumer asked for; 0: none */
    uint8_t ack_timeout;
    uint32_t qp_num, seq_num, qkey;
    uint8_t srq;
    struct cma_bind *bind; /* the port that it holds, or NULL */
    struct cm_id *cm;      /* or NULL */
    void *context;
};

struct cma_ops {
    struct cm_ops cm;
    /* Reports an event. For a connection request, listener is the listening identifier and id is
     * new; otherwise listener is NULL. Returns 0; ENOMEM: there is no room for this request now. */
    int (*event)(void *opaque, struct cma_id *listener, struct cma_id *id,
                 const struct rdma_ucm_event_resp *event);
    /* Whether the consumer may bind ports below 1024. */
    bool (*has_low_ports)(void *opaque);
    /* Whether the location of a peer on the device's wire is known: 0, or an errno; EAGAIN: the
     * wire is being asked. */
    int (*find)(void *opaque, unsigned device, unsigned sgid_index, const uint8_t dgid[16]);
};

struct cma *cma_new(const struct cma_ops *ops, void *opaque, const struct cma_device *devices,
                    unsigned num_devices);
void cma_free(struct cma *cma);
struct cm *cma_cm(struct cma *cma);
/* cma_run() does what is due, also in the connection manager; answered: ops->find may have new
 * answers. cma_deadline_ns() tells when something will be due next. */
void cma_run(struct cma *cma, bool answered);
uint64_t cma_deadline_ns(const struct cma *cma);
const struct cma_device *cma_device_of(const struct cma_id *id); /* or NULL */
/* A device's GID. Indexes from CMA_GIDS on name the same GIDs for RoCE v1: a connection that was
 * asked for by RoCE v1 has such an index. */
const uint8_t *cma_gid(const struct cma_device *device, unsigned sgid_index);
/* The device is gone: its addresses belong to no host, and no peer can be reached through it. The
 * consumer must end the identifiers that are bound to it. An identifier that only resolves a peer
 * through it gets an error event. To be called once. */
void cma_remove_device(struct cma *cma, unsigned device);

struct cma_id *cma_create_id(struct cma *cma, uint16_t ps, uint8_t qp_type, void *context);
void cma_destroy_id(struct cma_id *id);
int cma_bind_addr(struct cma_id *id, const struct sockaddr *addr);
/* src may be NULL or of family 0. If the peer has not been found after timeout_ms, the event is
 * CMA_EVENT_ADDR_ERROR. */
int cma_resolve_addr(struct cma_id *id, const struct sockaddr *src, const struct sockaddr *dst,
                     uint32_t timeout_ms);
int cma_resolve_route(struct cma_id *id);
/* Instead of cma_resolve_route(): sets a route that the consumer supplies. */
struct cma_path {
    uint8_t dgid[16], traffic_class, mtu, packet_life_time;
};
int cma_set_path(struct cma_id *id, const struct cma_path *path);
int cma_listen(struct cma_id *id);
/* ece: options of enhanced connection establishment, which are sent to the peer; all 0: none. */
int cma_connect(struct cma_id *id, const struct rdma_ucm_conn_param *param,
                const struct rdma_ucm_ece *ece);
/* param NULL: accepts the reply that arrived. */
int cma_accept(struct cma_id *id, const struct rdma_ucm_conn_param *param,
               const struct rdma_ucm_ece *ece);
int cma_reject(struct cma_id *id, unsigned reason, const void *private_data, unsigned len);
int cma_disconnect(struct cma_id *id);
int cma_notify(struct cma_id *id, uint32_t event);
/* Fills *event for a group that was joined; the caller reports it. */
int cma_join(struct cma_id *id, const struct sockaddr *addr, struct rdma_ucm_event_resp *event);
int cma_set_reuseaddr(struct cma_id *id, bool reuse);
int cma_set_afonly(struct cma_id *id, bool afonly);
/* Fills the attributes for a transition to attr->qp_state. */
int cma_init_qp_attr(struct cma_id *id, struct ib_uverbs_qp_attr *attr);

/* -- addresses ----------------------------------------------------------------------------------
 */

/* struct sockaddr_ib of Linux: a GID, and those bits of a service ID that sid_mask has. Big-endian
 * except the family and the scope. */
struct cma_sockaddr_ib {
    uint16_t family, pkey;
    uint32_t flowinfo;
    uint8_t addr[16];
    uint64_t sid, sid_mask, scope_id;
};

/* The length of an address. 0: its family is unknown. */
size_t cma_addr_size(const struct sockaddr *addr);
void cma_addr_to_gid(const struct sockaddr *addr, uint8_t gid[16]);
/* The service ID of a port, in host byte order; for an AF_IB address, its own service ID. */
uint64_t cma_service_id(const struct cma_id *id, const struct sockaddr *addr);

#endif
