/* SPDX-License-Identifier: BSD-2-Clause */
/* The GID and P_Key tables of a port, and the MAC addresses of GIDs. */
#include <string.h>
#include "guest-lib/verbs/kernel/facts.h"
#include "guest-lib/verbs/kernel/hca.h"
#include "guest-lib/verbs/kernel/addresses.h"
#include "guest-lib/verbs/kernel/kernel.h"
#include "guest-lib/host/neighbours.h"
#include "wire/cancel.h"

G_STATIC_ASSERT(HV_GIDS == 4); /* HV_GIDS_USED */

unsigned hv_gid_table_len(struct hv_hca *hca)
{
    return PRM_GET(roce_cap, hv_drv(hca)->roce_cap, roce_address_table_size);
}

static int gid_at(struct ibv_context *context, uint8_t port_num, int index, union ibv_gid *gid)
{
    if (hv_is_removed(hv_hca_of(context))) {
        return EIO;
    }
    if (port_num != 1 || index < 0 || index >= (int)hv_gid_table_len(hv_hca_of(context))) {
        return EINVAL;
    }
    if (index >= HV_GIDS) {
        return ENODATA;
    }
    *gid = *hv_config_gid(hv_device(context->device)->config, (unsigned)index);
    return 0;
}

#undef ibv_query_gid
HV_EXPORT int ibv_query_gid(struct ibv_context *context, uint8_t port_num, int index,
                            union ibv_gid *gid)
{
    int err = gid_at(context, port_num, index, gid);

    if (err == ENODATA) {
        memset(gid, 0, sizeof(*gid));
        return 0;
    }
    if (err) {
        errno = err;
        return -1;
    }
    return 0;
}

int ibv_query_gid_type(struct ibv_context *context, uint8_t port_num, unsigned int index,
                       unsigned int *type);
HV_EXPORT int ibv_query_gid_type(struct ibv_context *context, uint8_t port_num, unsigned int index,
                                 unsigned int *type)
{
    union ibv_gid gid;
    int err = gid_at(context, port_num, (int)index, &gid);

    /* 0: RoCE v1, and the type of an empty entry. 1: RoCE v2. */
    *type = !err && !hv_config_gid_is_v1(index);
    if (err && err != ENODATA) {
        errno = err;
        return -1;
    }
    return 0;
}

static void gid_fill_entry(const struct ibv_context *context, struct ibv_gid_entry *to, size_t size,
                           uint32_t index)
{
    const struct hv_device *device = hv_device(context->device);
    struct ibv_gid_entry entry = {.gid = *hv_config_gid(device->config, index),
                                  .gid_index = index,
                                  .port_num = 1,
                                  .gid_type = hv_config_gid_is_v1(index) ? IBV_GID_TYPE_ROCE_V1
                                                                         : IBV_GID_TYPE_ROCE_V2,
                                  .ndev_ifindex = hv_facts_ifindex(device->index)};

    memset(to, 0, size);
    memcpy(to, &entry, MIN(size, sizeof(entry)));
}

HV_EXPORT int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port_num, uint32_t gid_index,
                                struct ibv_gid_entry *entry, uint32_t flags, size_t entry_size)
{
    union ibv_gid gid;
    int err = flags           ? EOPNOTSUPP
              : port_num != 1 ? EINVAL
                              : gid_at(context, 1, (int)gid_index, &gid);

    if (!err) {
        gid_fill_entry(context, entry, entry_size, gid_index);
    }
    return hv_kernel(err);
}

HV_EXPORT ssize_t _ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries,
                                       size_t max_entries, uint32_t flags, size_t entry_size)
{
    if (flags) {
        return -hv_kernel(EOPNOTSUPP);
    }
    if (hv_is_removed(hv_hca_of(context))) {
        return -hv_kernel(EIO);
    }
    if (max_entries < HV_GIDS) {
        return -hv_kernel(EINVAL);
    }
    for (uint32_t i = 0; i < HV_GIDS; i++) {
        gid_fill_entry(context, (struct ibv_gid_entry *)((char *)entries + i * entry_size),
                       entry_size, i);
    }
    return HV_GIDS;
}

HV_EXPORT int ibv_query_pkey(struct ibv_context *context, uint8_t port_num, int index, __be16 *pkey)
{
    if (hv_is_removed(hv_hca_of(context))) {
        errno = ENOENT; /* as for a missing file in sysfs */
        return -1;
    }
    if (port_num != 1 || index != 0) {
        errno = EINVAL;
        return -1;
    }
    *pkey = 0xffff;
    return 0;
}

HV_EXPORT int ibv_get_pkey_index(struct ibv_context *context, uint8_t port_num, __be16 pkey)
{
    if (hv_is_removed(hv_hca_of(context)) || port_num != 1 || pkey != 0xffff) {
        errno = ENOENT;
        return -1;
    }
    return 0;
}

/* -- addresses ----------------------------------------------------------------------------------
 */

/* Whether a link-local address contains its host's MAC address. It does unless the host was
 * configured otherwise. */
static bool gid_has_mac(const uint8_t *gid)
{
    return gid[11] == 0xff && gid[12] == 0xfe;
}

static bool gid_is_link_local(const uint8_t *gid)
{
    return gid[0] == 0xfe && (gid[1] & 0xc0) == 0x80;
}

/* The MAC address of a host of the verbs library with default addresses. False: there is no such
 * host. */
static bool gid_derive_mac(const uint8_t *gid, bool ipv4, uint8_t mac[6])
{
    if (ipv4) {
        hv_mac_of_ipv4((uint32_t)prm_load32(gid + 12), mac);
    } else if (gid_has_mac(gid)) {
        memcpy(mac, gid + 8, 3);
        mac[0] ^= 2;
        memcpy(mac + 3, gid + 13, 3);
    } else {
        return false;
    }
    return true;
}

static int gid_find_neighbour(struct hv_hca *hca, const uint8_t *gid, bool ipv4, uint8_t mac[6])
{
    uint8_t derived[6];
    bool has = gid_derive_mac(gid, ipv4, derived);

    if (!ipv4 && !gid_is_link_local(gid)) {
        return EHOSTUNREACH;
    }
    if (!hv_is_ours(hca)) {
        return EIO;
    }
    return local_find_neighbour(hca->local, gid, has ? derived : NULL, mac) ? 0 : EAGAIN;
}

int hv_find_mac(struct hv_context *ctx, uint8_t port, unsigned sgid_index,
                const union ibv_gid *dgid, uint8_t mac[6])
{
    bool ipv4 = hv_gid_is_ipv4(dgid);
    const uint8_t *gid = dgid->raw;
    const struct hv_port_config *config = hv_device(ctx->ibv.context.device)->config;

    if (hv_is_removed(ctx->hca)) {
        return EIO;
    }
    if (port != 1 || sgid_index >= HV_GIDS) {
        return EINVAL;
    }
    if (!memcmp(dgid, &config->gid[0], 16) || !memcmp(dgid, &config->gid[1], 16)) {
        memcpy(mac, config->mac, 6);
    } else if (hv_gid_is_multicast(dgid) && !ipv4) {
        mac[0] = mac[1] = 0x33;
        memcpy(mac + 2, gid + 12, 4);
    } else if (hv_gid_is_multicast(dgid)) {
        mac[0] = 0x01;
        mac[1] = 0x00;
        mac[2] = 0x5e;
        mac[3] = gid[13] & 0x7f;
        memcpy(mac + 4, gid + 14, 2);
    } else {
        return gid_find_neighbour(ctx->hca, gid, ipv4, mac);
    }
    return 0;
}

int hv_resolve_mac(struct hv_context *ctx, uint8_t port, unsigned sgid_index,
                   const union ibv_gid *dgid, uint8_t mac[6])
{
    int state, err = hv_find_mac(ctx, port, sgid_index, dgid, mac);
    const struct pci_dev *dev = &ctx->hca->drv->dev;
    uint64_t now, end;

    if (err != EAGAIN) {
        return err;
    }
    state = cancel_disable();
    now = dev->ops->now(dev->pci);
    end = now + HV_RESOLVE_NS;
    while (err == EAGAIN && now < end) {
        dev->ops->wait(dev->pci, MIN(NEIGHBOURS_RETRY_NS, end - now));
        local_tell_irq(ctx->hca->local);
        err = hv_find_mac(ctx, port, sgid_index, dgid, mac);
        now = dev->ops->now(dev->pci);
    }
    cancel_restore(state);
    return err == EAGAIN ? ETIMEDOUT : err;
}

int hv_refuse_path(struct hv_context *ctx, int err, const char *verb,
                   const struct ibv_ah_attr *attr)
{
    struct hv_words dgid;

    if (!hv_says(ctx->hca)) {
        return err;
    }
    hv_gid_name(&attr->grh.dgid, &dgid);
    if (err == EINVAL && attr->port_num != 1) {
        return hv_refuse(ctx->hca, err, "%sport_num is %u; the device has port 1", verb,
                         attr->port_num);
    }
    if (err == EINVAL) {
        return hv_refuse(ctx->hca, err, "%sgrh.sgid_index %u is empty; " HV_GIDS_USED, verb,
                         attr->grh.sgid_index);
    }
    if (err == EIO) {
        return hv_refuse(ctx->hca, err,
                         "%sgrh.dgid cannot be looked for: the device has been removed", verb);
    }
    if (err == EHOSTUNREACH) {
        return hv_refuse(ctx->hca, err,
                         "%sgrh.dgid is %s, which is neither an IPv4 address nor a link-local one",
                         verb, dgid.text);
    }
    return hv_refuse(ctx->hca, err, "%sgrh.dgid is %s; no host on the wire has this address", verb,
                     dgid.text);
}

void hv_on_neighbour(struct hv_hca *hca, void (*answered)(void *opaque), void *opaque)
{
    local_on_neighbour(hca->local, answered, opaque);
}

bool hv_on_host_end(struct hv_hca *hca, void (*ended)(void *opaque), void *opaque)
{
    return local_on_host_end(hca->local, ended, opaque);
}

bool hv_knows_host(struct hv_hca *hca, const uint8_t mac[6])
{
    return local_knows(hca->local, mac);
}

bool hv_tells_hosts(struct hv_hca *hca)
{
    return local_tells_hosts(hca->local);
}

uint64_t hv_host_at(struct hv_hca *hca, const uint8_t mac[6])
{
    return local_host_at(hca->local, mac);
}

bool hv_has_ended(struct hv_hca *hca, uint64_t host)
{
    return local_has_ended(hca->local, host);
}

HV_EXPORT int ibv_resolve_eth_l2_from_gid(struct ibv_context *context, struct ibv_ah_attr *attr,
                                          uint8_t eth_mac[6], uint16_t *vid)
{
    int err = hv_resolve_mac(hv_context(context), attr->port_num, attr->grh.sgid_index,
                             &attr->grh.dgid, eth_mac);

    if (err) {
        errno = err;
        return -1;
    }
    if (vid) {
        *vid = 0xffff; /* no VLAN */
    }
    return 0;
}
