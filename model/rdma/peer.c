/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds the path to a peer: turns a QP's context and the RoCE address table into the addresses of
 * packets. */
#include <string.h>
#include "model/rdma/qp.h"

/* The path of a connection of a function with itself (force loopback). It needs no entry of the
 * address table and no peer address: both GIDs are of the function's own MAC, which no other
 * function has. */
static void peer_loop_back(const struct hca *hca, struct roce_addr *path)
{
    static const uint8_t link_local[2] = {0xfe, 0x80};

    memset(path, 0, sizeof(*path));
    memcpy(path->dmac, hca->vport->mac, 6);
    memcpy(path->smac, hca->vport->mac, 6);
    memcpy(path->sgid, link_local, sizeof(link_local));
    memcpy(path->sgid + 10, hca->vport->mac, 6);
    memcpy(path->dgid, path->sgid, 16);
    path->hop_limit = 1;
}

enum syn peer_find_path(const struct hca *hca, const struct prm_ads *ads, struct roce_addr *path)
{
    uint32_t index = PRM_GET(ads, ads, src_addr_index);
    const struct vport_gid *gid;
    uint16_t rmac_hi = (uint16_t)PRM_GET(ads, ads, rmac_47_32);
    uint32_t rmac_lo = PRM_GET(ads, ads, rmac_31_0);
    static const uint8_t ipv4_prefix[12] = {[10] = 0xff, [11] = 0xff};

    if (PRM_GET(ads, ads, fl)) {
        peer_loop_back(hca, path);
        return SYN_OK;
    }
    if (index >= hca->limits.max_gid || index >= PORT_MAX_GIDS) {
        return SYN_QP_GID;
    }
    gid = &hca->vport->gids[index];
    if (!vport_gid_is_usable(gid)) {
        return SYN_QP_GID;
    }
    memset(path, 0, sizeof(*path));
    path->dmac[0] = (uint8_t)(rmac_hi >> 8);
    path->dmac[1] = (uint8_t)rmac_hi;
    for (int i = 0; i < 4; i++) {
        path->dmac[2 + i] = (uint8_t)(rmac_lo >> (24 - 8 * i));
    }
    memcpy(path->smac, gid->mac, 6);
    memcpy(path->sgid, gid->gid, 16);
    memcpy(path->dgid, PRM_PTR(ads, ads, rgid_rip), 16);
    /* The entry decides whether packets are IPv4 or IPv6 (roce_l3_type). IPv6 can carry every GID,
     * also a mapped IPv4 address; IPv4 can carry only mapped addresses. Version 1 has a GRH. */
    path->is_v1 = gid->version == PRM_ROCE_VERSION_V1;
    path->is_ipv4 = !path->is_v1 && gid->l3_type == PRM_ROCE_L3_TYPE_IPV4;
    if ((path->is_ipv4 && memcmp(path->dgid, ipv4_prefix, 12) != 0) ||
        roce_gid_is_multicast(path->dgid)) {
        return SYN_QP_PATH;
    }
    path->has_vlan = gid->has_vlan;
    if (gid->has_vlan) {
        path->vlan_tci = (uint16_t)(PRM_GET(ads, ads, eth_prio) << 13 | (gid->vlan_id & 0xfff));
    }
    path->tclass = (uint8_t)(PRM_GET(ads, ads, dscp) << 2 | PRM_GET(ads, ads, ecn));
    uplink_mark_path(hca->vport->uplink, path);
    path->hop_limit = (uint8_t)PRM_GET(ads, ads, hop_limit);
    path->flow_label = path->is_ipv4 ? 0 : PRM_GET(ads, ads, flow_label);
    path->udp_sport = (uint16_t)PRM_GET(ads, ads, udp_sport);
    return SYN_OK;
}

void peer_set_path(struct peer *peer, const struct roce_addr *path)
{
    peer->path = *path;
    peer->path_gone = false;
    peer->path_version = peer->qp->hca->vport->gid_version;
}

void peer_path_update(struct peer *peer)
{
    peer->path_version = peer->qp->hca->vport->gid_version;
    peer->qp->service->owner->path_update(peer);
}
