/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds a peer: which device leads to its address, and whether the peer answers. */
#include <netinet/in.h>
#include "guest-lib/cm/cma_internal.h"

/* Addresses that may be on the wire: IPv4, and IPv6 addresses of this link. */
static bool cma_is_on_link(const struct sockaddr *addr)
{
    const struct in6_addr *in6 = &((const struct sockaddr_in6 *)addr)->sin6_addr;

    return addr->sa_family == AF_INET || IN6_IS_ADDR_LINKLOCAL(in6) || IN6_IS_ADDR_V4MAPPED(in6) ||
           IN6_IS_ADDR_MULTICAST(in6);
}

/* The first device that was not removed. CMA_NO_DEVICE: there is none. */
static unsigned cma_first_device(const struct cma *cma)
{
    unsigned i = 0;

    while (i < cma->num_devices && !cma_has_device(cma, i)) {
        i++;
    }
    return i < cma->num_devices ? i : CMA_NO_DEVICE;
}

/* The peer's GID, and the device and GID that lead to it. Loopback and own addresses lead to the
 * device itself. */
static int cma_resolve_peer(struct cma_id *id)
{
    const struct sockaddr *dst = cma_dst(id);
    struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)dst;
    struct cma_resolving *to = &id->resolving;
    unsigned first = cma_first_device(id->cma);

    if (first == CMA_NO_DEVICE) {
        return ENODEV;
    }
    if (cma_addr_is_any(dst)) {
        to->device = id->device == CMA_NO_DEVICE ? first : id->device;
        to->sgid_index = dst->sa_family == AF_INET;
        memcpy(id->dgid, id->cma->devices[to->device].gid[to->sgid_index], 16);
    } else if (cma_addr_find(id->cma, dst, &to->device, &to->sgid_index)) {
        cma_addr_to_gid(dst, id->dgid);
    } else if (cma_is_on_link(dst)) {
        to->device = first;
        to->sgid_index = dst->sa_family == AF_INET || IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr);
        cma_addr_to_gid(dst, id->dgid);
    } else {
        return ENETUNREACH;
    }
    if (id->device != CMA_NO_DEVICE) {
        to->device = id->device;
        to->sgid_index = id->sgid_index;
    }
    return 0;
}

/* The peer was found. */
static void cma_resolved(struct cma_id *id)
{
    if (id->device == CMA_NO_DEVICE) {
        id->device = id->resolving.device;
        id->sgid_index = id->resolving.sgid_index;
        cma_addr_from_gid(cma_src(id), cma_gid(cma_device_of(id), id->sgid_index));
    }
    id->state = CMA_ADDR_RESOLVED;
    cma_tell(id, CMA_EVENT_ADDR_RESOLVED, 0);
}

static int cma_find_peer(const struct cma_id *id)
{
    const struct cma_ops *ops = id->cma->ops;

    return ops->find(id->cma->opaque, id->resolving.device, id->resolving.sgid_index, id->dgid);
}

int cma_resolve_addr(struct cma_id *id, const struct sockaddr *src, const struct sockaddr *dst,
                     uint32_t timeout_ms)
{
    struct sockaddr_storage any = {.ss_family = dst->sa_family};
    struct cma *cma = id->cma;
    uint64_t now;
    int err;

    if (!cma_addr_size(dst)) {
        return EAFNOSUPPORT;
    }
    if (dst->sa_family == AF_IB) {
        cma_ib((struct sockaddr *)&any)->pkey = cma_ib(dst)->pkey;
    }
    if (id->state == CMA_IDLE) {
        err = cma_bind_addr(id, src && src->sa_family ? src : (const struct sockaddr *)&any);
        if (err) {
            return err;
        }
    }
    if (id->state != CMA_ADDR_BOUND) {
        return EINVAL;
    }
    memset(&id->dst, 0, sizeof(id->dst));
    memcpy(&id->dst, dst, cma_addr_size(dst));
    if (id->src.ss_family != dst->sa_family) {
        return EINVAL;
    }
    if (dst->sa_family == AF_IB) {
        err = cma_ib_resolve(id);
    } else {
        err = cma_resolve_peer(id);
        err = err ? err : cma_find_peer(id);
    }
    if (!err) {
        cma_resolved(id);
    }
    if (err != EAGAIN) {
        return err;
    }
    now = cma->ops->cm.now_ns(cma->opaque);
    if (!cma->resolving.length) {
        cma->look_ns = now + CMA_ASK_AGAIN_NS;
    }
    id->state = CMA_ADDR_QUERY;
    id->resolving.until_ns = now + timeout_ms * 1000000ull;
    id->resolving.link.data = id;
    g_queue_push_tail_link(&cma->resolving, &id->resolving.link);
    return 0;
}

void cma_stop_resolving(struct cma_id *id)
{
    g_queue_unlink(&id->cma->resolving, &id->resolving.link);
}

/* Reports what addr_handler() of the kernel's rdma_cm reports. */
static void cma_look_for(struct cma_id *id, uint64_t now)
{
    int err = cma_find_peer(id);

    if (err == EAGAIN && now < id->resolving.until_ns) {
        return;
    }
    cma_stop_resolving(id);
    if (!err) {
        cma_resolved(id);
        return;
    }
    id->state = CMA_ADDR_BOUND;
    cma_tell(id, CMA_EVENT_ADDR_ERROR, err == EAGAIN ? -ETIMEDOUT : -err);
}

void cma_give_up_resolving(struct cma *cma, unsigned device)
{
    for (GList *at = cma->resolving.head, *next; at; at = next) {
        struct cma_id *id = at->data;

        next = at->next;
        if (id->resolving.device == device && id->device == CMA_NO_DEVICE) {
            cma_stop_resolving(id);
            id->state = CMA_ADDR_BOUND;
            cma_tell(id, CMA_EVENT_ADDR_ERROR, -ENODEV);
        }
    }
}

/* The time at which a timeout expires, or all identifiers are tried again. */
static uint64_t cma_resolving_deadline_ns(const struct cma *cma)
{
    uint64_t deadline = cma->resolving.length ? cma->look_ns : CM_NEVER;

    for (const GList *at = cma->resolving.head; at; at = at->next) {
        deadline = MIN(deadline, ((const struct cma_id *)at->data)->resolving.until_ns);
    }
    return deadline;
}

void cma_run(struct cma *cma, bool answered)
{
    uint64_t now = cma->ops->cm.now_ns(cma->opaque);

    cm_run(cma->cm);
    if (!answered && now < cma_resolving_deadline_ns(cma)) {
        return;
    }
    for (GList *at = cma->resolving.head, *next; at; at = next) {
        next = at->next;
        cma_look_for(at->data, now);
    }
    if (now >= cma->look_ns) {
        cma->look_ns = now + CMA_ASK_AGAIN_NS;
    }
}

uint64_t cma_deadline_ns(const struct cma *cma)
{
    return MIN(cm_deadline_ns(cma->cm), cma_resolving_deadline_ns(cma));
}
