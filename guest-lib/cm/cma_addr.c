/* SPDX-License-Identifier: BSD-2-Clause */
/* Addresses, their GIDs, and ports. */
#include <netinet/in.h>
#include "guest-lib/cm/cma_internal.h"

#define FIRST_PORT 32768 /* first port that is assigned, as in net.ipv4.ip_local_port_range */
#define LAST_PORT  60999
#define LOW_PORTS  1024 /* ports below this need CAP_NET_BIND_SERVICE */
#define IPV4       12   /* offset of an IPv4 address in a GID or an IPv4-mapped address */

const uint8_t cma_loopback[16] = {[15] = 1};
static const uint8_t mapped[IPV4] = {[10] = 0xff, [11] = 0xff};

static struct sockaddr_in *cma_in(const struct sockaddr *addr)
{
    return (struct sockaddr_in *)addr;
}

static struct sockaddr_in6 *cma_in6(const struct sockaddr *addr)
{
    return (struct sockaddr_in6 *)addr;
}

/* The 16 bytes of an IPv6 address or a GID. */
static uint8_t *cma_addr_bytes(const struct sockaddr *addr)
{
    return addr->sa_family == AF_IB ? cma_ib(addr)->addr : cma_in6(addr)->sin6_addr.s6_addr;
}

size_t cma_addr_size(const struct sockaddr *addr)
{
    switch (addr->sa_family) {
    case AF_INET:
        return sizeof(struct sockaddr_in);
    case AF_INET6:
        return sizeof(struct sockaddr_in6);
    case AF_IB:
        return sizeof(struct cma_sockaddr_ib);
    default:
        return 0;
    }
}

void cma_addr_to_gid(const struct sockaddr *addr, uint8_t gid[16])
{
    if (addr->sa_family == AF_INET) {
        memcpy(gid, mapped, IPV4);
        memcpy(gid + IPV4, &cma_in(addr)->sin_addr, 4);
    } else {
        memcpy(gid, cma_addr_bytes(addr), 16);
    }
}

void cma_addr_from_gid(struct sockaddr *addr, const uint8_t gid[16])
{
    if (addr->sa_family == AF_INET) {
        memcpy(&cma_in(addr)->sin_addr, gid + IPV4, 4);
    } else {
        memcpy(cma_addr_bytes(addr), gid, 16);
    }
}

bool cma_addr_is_zero(const struct sockaddr *addr)
{
    static const uint8_t zero[16];

    return addr->sa_family == AF_INET ? !cma_in(addr)->sin_addr.s_addr
                                      : !memcmp(cma_addr_bytes(addr), zero, 16);
}

bool cma_addr_is_any(const struct sockaddr *addr)
{
    if (cma_addr_is_zero(addr)) {
        return true;
    }
    return addr->sa_family == AF_INET ? ntohl(cma_in(addr)->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET
                                      : !memcmp(cma_addr_bytes(addr), cma_loopback, 16);
}

bool cma_addr_is_same(const struct sockaddr *a, const struct sockaddr *b)
{
    uint8_t x[16], y[16];

    if (a->sa_family != b->sa_family) {
        return false;
    }
    cma_addr_to_gid(a, x);
    cma_addr_to_gid(b, y);
    return !memcmp(x, y, sizeof(x));
}

uint16_t cma_addr_port(const struct sockaddr *addr)
{
    switch (addr->sa_family) {
    case AF_INET:
        return ntohs(cma_in(addr)->sin_port);
    case AF_IB:
        return (uint16_t)GUINT64_FROM_BE(cma_ib(addr)->sid & cma_ib(addr)->sid_mask);
    default:
        return ntohs(cma_in6(addr)->sin6_port);
    }
}

static void cma_addr_set_port(struct sockaddr *addr, uint16_t port)
{
    switch (addr->sa_family) {
    case AF_INET:
        cma_in(addr)->sin_port = htons(port);
        break;
    case AF_IB:
        cma_ib(addr)->sid = (cma_ib(addr)->sid & cma_ib(addr)->sid_mask) | GUINT64_TO_BE(port);
        cma_ib(addr)->sid_mask = UINT64_MAX;
        break;
    default:
        cma_in6(addr)->sin6_port = htons(port);
    }
}

bool cma_addr_find(const struct cma *cma, const struct sockaddr *addr, unsigned *device,
                   unsigned *sgid_index)
{
    uint8_t gid[16];

    cma_addr_to_gid(addr, gid);
    for (unsigned i = 0; i < cma->num_devices; i++) {
        for (unsigned j = 0; j < CMA_GIDS && cma_has_device(cma, i); j++) {
            if (!memcmp(cma->devices[i].gid[j], gid, sizeof(gid))) {
                *device = i;
                *sgid_index = j;
                return true;
            }
        }
    }
    return false;
}

/* -- ports --------------------------------------------------------------------------------------
 */

uint64_t cma_service_id(const struct cma_id *id, const struct sockaddr *addr)
{
    return addr->sa_family == AF_IB ? GUINT64_FROM_BE(cma_ib(addr)->sid)
                                    : (uint64_t)id->ps << 16 | cma_addr_port(addr);
}

static struct cma_bind *cma_bind_find(const struct cma *cma, uint32_t key)
{
    return g_hash_table_lookup(cma->binds, GUINT_TO_POINTER(key));
}

static uint32_t cma_bind_key(uint16_t ps, unsigned port)
{
    return (uint32_t)ps << 16 | port;
}

static void cma_bind_take(struct cma_id *id, uint16_t ps, uint16_t port)
{
    uint32_t key = cma_bind_key(ps, port);
    struct cma_bind *bind = cma_bind_find(id->cma, key);

    if (!bind) {
        bind = g_new0(struct cma_bind, 1);
        bind->key = key;
        bind->ids = g_ptr_array_new();
        g_hash_table_insert(id->cma->binds, GUINT_TO_POINTER(key), bind);
    }
    g_ptr_array_add(bind->ids, id);
    id->bind = bind;
    cma_addr_set_port(cma_src(id), port);
}

/* Whether an identifier may share the port with its present holders (cma_check_port()). */
static int cma_bind_check(const struct cma_bind *bind, struct cma_id *id, bool reuse)
{
    for (guint i = 0; bind && i < bind->ids->len; i++) {
        struct cma_id *other = bind->ids->pdata[i];

        if (other == id || (other->state != CMA_LISTEN && reuse && other->reuseaddr) ||
            (id->afonly && other->afonly && id->src.ss_family != other->src.ss_family)) {
            continue;
        }
        if (cma_addr_is_any(cma_src(id)) || cma_addr_is_any(cma_src(other))) {
            return EADDRNOTAVAIL;
        }
        if (cma_addr_is_same(cma_src(id), cma_src(other))) {
            return EADDRINUSE;
        }
    }
    return 0;
}

int cma_check_listen(struct cma_id *id)
{
    return id->reuseaddr ? cma_bind_check(id->bind, id, false) : 0;
}

static int cma_bind_any_port(struct cma_id *id, uint16_t ps)
{
    unsigned count = LAST_PORT - FIRST_PORT + 1;
    unsigned first = id->cma->ops->cm.random(id->cma->opaque) % count;

    for (unsigned i = 0; i < count; i++) {
        unsigned port = FIRST_PORT + (first + i) % count;

        if (!cma_bind_find(id->cma, cma_bind_key(ps, port))) {
            cma_bind_take(id, ps, (uint16_t)port);
            return 0;
        }
    }
    return EADDRNOTAVAIL;
}

int cma_get_port(struct cma_id *id)
{
    uint16_t ps = id->src.ss_family == AF_IB ? cma_ib_port_space(id) : id->ps;
    uint16_t port = cma_addr_port(cma_src(id));
    int err;

    if (!ps) {
        return EPROTONOSUPPORT;
    }
    if (!port) {
        return cma_bind_any_port(id, ps);
    }
    if (port < LOW_PORTS && !id->cma->ops->has_low_ports(id->cma->opaque)) {
        return EACCES;
    }
    err = cma_bind_check(cma_bind_find(id->cma, cma_bind_key(ps, port)), id, id->reuseaddr);
    if (!err) {
        cma_bind_take(id, ps, port);
    }
    return err;
}

void cma_put_port(struct cma_id *id)
{
    struct cma_bind *bind = id->bind;
    bool listened = id->state == CMA_LISTEN, listening = false;

    if (!bind) {
        return;
    }
    id->bind = NULL;
    g_ptr_array_remove(bind->ids, id);
    for (guint i = 0; i < bind->ids->len; i++) {
        listening |= ((struct cma_id *)bind->ids->pdata[i])->state == CMA_LISTEN;
    }
    if (listened && !listening) {
        cm_destroy_id(bind->cm);
        bind->cm = NULL;
    }
    if (!bind->ids->len) {
        g_hash_table_remove(id->cma->binds, GUINT_TO_POINTER(bind->key));
        g_ptr_array_free(bind->ids, TRUE);
        g_free(bind);
    }
}

/* -- the header of annex A11 --------------------------------------------------------------------
 */

/* An IPv4 address is at the end, after zeros. */
static void cma_hdr_put_addr(uint8_t to[16], const struct sockaddr *addr)
{
    cma_addr_to_gid(addr, to);
    if (addr->sa_family == AF_INET) {
        memset(to, 0, IPV4);
    }
}

void cma_put_hdr(struct prm_cm_ip_hdr *hdr, struct cma_id *id)
{
    PRM_SET(cm_ip_hdr, hdr, ip_version, id->src.ss_family == AF_INET ? 4 : 6);
    PRM_SET(cm_ip_hdr, hdr, port, cma_addr_port(cma_src(id)));
    cma_hdr_put_addr(PRM_PTR(cm_ip_hdr, hdr, src), cma_src(id));
    cma_hdr_put_addr(PRM_PTR(cm_ip_hdr, hdr, dst), cma_dst(id));
}

bool cma_take_hdr(const struct prm_cm_ip_hdr *hdr, uint16_t port, struct sockaddr_storage *src,
                  struct sockaddr_storage *dst)
{
    unsigned version = PRM_GET(cm_ip_hdr, hdr, ip_version);

    if (PRM_GET(cm_ip_hdr, hdr, version) || (version != 4 && version != 6)) {
        return false;
    }
    memset(src, 0, sizeof(*src));
    memset(dst, 0, sizeof(*dst));
    src->ss_family = dst->ss_family = version == 4 ? AF_INET : AF_INET6;
    cma_addr_from_gid((struct sockaddr *)src, PRM_PTR(cm_ip_hdr, hdr, dst));
    cma_addr_from_gid((struct sockaddr *)dst, PRM_PTR(cm_ip_hdr, hdr, src));
    cma_addr_set_port((struct sockaddr *)src, port);
    cma_addr_set_port((struct sockaddr *)dst, (uint16_t)PRM_GET(cm_ip_hdr, hdr, port));
    return true;
}
