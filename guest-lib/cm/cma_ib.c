/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Addresses that are GIDs (AF_IB), as Linux handles them on a RoCE device. An address with an
 * unspecified GID can be bound, and an identifier can listen on it. A GID is resolved by its
 * subnet. Nothing else works: a RoCE device is found and reached through a network interface, which
 * a GID does not name (cma_validate_port(), cma_iboe_set_path_rec_l2_fields()). So there is no
 * route to a GID, and a listener gets no requests.
 */
#include "guest-lib/cm/cma_internal.h"

#define PORT_SPACES 0xffffffffffff0000ull /* bits of a service ID (IBTA annex A11) */
#define PKEY        0xffff
#define MEMBERSHIP  0x8000 /* of a partition key: full membership */
#define SUBNET      8      /* bytes of a GID's subnet prefix */

uint16_t cma_ib_port_space(struct cma_id *id)
{
    static const uint16_t spaces[] = {RDMA_PS_IB, RDMA_PS_TCP, RDMA_PS_UDP};
    struct cma_sockaddr_ib *src = cma_ib(cma_src(id));
    uint64_t mask = GUINT64_FROM_BE(src->sid_mask) & PORT_SPACES;
    uint64_t sid = GUINT64_FROM_BE(src->sid) & mask;

    for (size_t i = 0; i < G_N_ELEMENTS(spaces); i++) {
        uint64_t space = (uint64_t)spaces[i] << 16;

        if ((id->ps == RDMA_PS_IB || id->ps == spaces[i]) && sid == (space & mask)) {
            src->sid = GUINT64_TO_BE(space | cma_addr_port(cma_src(id)));
            src->sid_mask |= GUINT64_TO_BE(PORT_SPACES);
            return spaces[i];
        }
    }
    return 0;
}

static bool cma_ib_leads_to(const uint8_t gid[16], const uint8_t to[16])
{
    return !memcmp(gid, to, SUBNET);
}

int cma_ib_resolve(struct cma_id *id)
{
    struct cma_sockaddr_ib *src = cma_ib(cma_src(id)), *dst = cma_ib(cma_dst(id));
    bool is_own = cma_addr_is_any(cma_dst(id));
    const struct cma *cma = id->cma;

    if (!is_own && (GUINT16_FROM_BE(dst->pkey) | MEMBERSHIP) != PKEY) {
        return ENODEV;
    }
    for (unsigned i = 0; i < cma->num_devices; i++) {
        for (unsigned j = 0; j < CMA_GIDS && cma_has_device(cma, i); j++) {
            const uint8_t *gid = cma->devices[i].gid[j];

            if (is_own || cma_ib_leads_to(gid, dst->addr)) {
                id->device = i;
                id->sgid_index = j;
                id->pkey = is_own ? GUINT16_TO_BE(PKEY) : src->pkey;
                memcpy(src->addr, is_own ? cma_loopback : gid, sizeof(src->addr));
                memcpy(id->dgid, is_own ? gid : dst->addr, sizeof(id->dgid));
                return 0;
            }
        }
    }
    return ENODEV;
}
