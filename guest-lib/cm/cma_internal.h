/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of rdma_cm share. */
#ifndef HCASIM_GUEST_LIB_CM_CMA_INTERNAL_H
#define HCASIM_GUEST_LIB_CM_CMA_INTERNAL_H

#include <errno.h>
#include <string.h>
#include "guest-lib/cm/cma.h"

/* The values of Linux. */
#define CMA_CM_TIMEOUT           20 /* 4.3 s */
#define CMA_MAX_CM_RETRIES       15
#define CMA_PACKET_LIFE_TIME     16 /* for RoCE: 0.27 s */
#define CMA_MAX_PACKET_LIFE_TIME 30
#define CMA_MAX_MTU              5  /* enum ibv_mtu */
#define CMA_MRA_TIMEOUT          24 /* 69 s: how long a consumer may take to answer */
#define CMA_HOP_LIMIT            64
#define CMA_ASK_AGAIN_NS         1000000000ull /* net.ipv4.neigh.default.retrans_time_ms */

/* enum ibv_qp_type */
#define CMA_QPT_RC       2
#define CMA_QPT_UC       3
#define CMA_QPT_UD       4
#define CMA_QPT_XRC_SEND 9
#define CMA_QPT_XRC_RECV 10

struct cma {
    const struct cma_ops *ops;
    void *opaque;
    struct cm *cm;
    const struct cma_device *devices;
    unsigned num_devices;
    uint64_t removed;  /* devices that were removed: a bit for each */
    GHashTable *binds; /* port space << 16 | port -> struct cma_bind */
    GQueue resolving;  /* struct cma_id, linked by resolving.link */
    uint64_t look_ns;  /* when they are tried again, even without an answer */
};

/* A port, and the identifiers that hold it. */
struct cma_bind {
    uint32_t key;
    GPtrArray *ids;
    struct cm_id *cm; /* exists while one of them listens */
};

static inline struct sockaddr *cma_src(struct cma_id *id)
{
    return (struct sockaddr *)&id->src;
}

static inline struct sockaddr *cma_dst(struct cma_id *id)
{
    return (struct sockaddr *)&id->dst;
}

static inline bool cma_has_device(const struct cma *cma, unsigned device)
{
    return device < cma->num_devices && !(cma->removed >> device & 1);
}

/* -- cma_addr.c -------------------------------------------------------------------------------- */

extern const uint8_t cma_loopback[16]; /* of IPv6, also as a GID */
/* Whether the address is unspecified or loopback. */
bool cma_addr_is_any(const struct sockaddr *addr);
bool cma_addr_is_zero(const struct sockaddr *addr);
bool cma_addr_is_same(const struct sockaddr *a, const struct sockaddr *b);
uint16_t cma_addr_port(const struct sockaddr *addr);
/* Sets the address to that of a GID; the port stays. */
void cma_addr_from_gid(struct sockaddr *addr, const uint8_t gid[16]);
/* Finds the device that has the address, and the index of its GID. False: no device has it. */
bool cma_addr_find(const struct cma *cma, const struct sockaddr *addr, unsigned *device,
                   unsigned *sgid_index);

/* Takes the port of the identifier's address, or any port. EPROTONOSUPPORT: the address is of a
 * port space that the identifier may not use. */
int cma_get_port(struct cma_id *id);
void cma_put_port(struct cma_id *id);
/* Whether an identifier that shares its port may listen: 0 or errno. */
int cma_check_listen(struct cma_id *id);

/* Writes the header before the private data; reads the addresses from such a header. */
void cma_put_hdr(struct prm_cm_ip_hdr *hdr, struct cma_id *id);
bool cma_take_hdr(const struct prm_cm_ip_hdr *hdr, uint16_t port, struct sockaddr_storage *src,
                  struct sockaddr_storage *dst);

/* -- cma_ib.c ---------------------------------------------------------------------------------- */

static inline struct cma_sockaddr_ib *cma_ib(const struct sockaddr *addr)
{
    return (struct cma_sockaddr_ib *)addr;
}
/* The port space in the identifier's source address, which is of AF_IB. 0: none. */
uint16_t cma_ib_port_space(struct cma_id *id);
/* Finds the device that leads to the identifier's destination, which is of AF_IB, and sets the
 * source. ENODEV: there is none. */
int cma_ib_resolve(struct cma_id *id);

/* -- cma_resolve.c ----------------------------------------------------------------------------- */

/* Stops resolving the identifier. */
void cma_stop_resolving(struct cma_id *id);
/* The device is gone: identifiers that resolve a peer through it, and are not bound to it, get an
 * error event. */
void cma_give_up_resolving(struct cma *cma, unsigned device);

/* -- cma_event.c ------------------------------------------------------------------------------- */

int cma_tell(struct cma_id *id, enum cma_event event, int status);
void cma_fill_ah(const struct cma_id *id, const uint8_t dgid[16], struct ib_uverbs_ah_attr *ah);
/* cm_handler of a listener's service; cm_handler of an identifier's connection. */
int cma_on_request(struct cm_id *cm, const struct cm_event *event);
int cma_on_event(struct cm_id *cm, const struct cm_event *event);

#endif
