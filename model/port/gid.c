/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The RoCE address table: its entries, and a hash table that finds the entry of a GID.
 *
 * The hash table is rebuilt at each change, because changes are few, and there are two lookups for
 * each packet. A GID may be in many entries, each in another VLAN or of another RoCE version; a
 * lookup then goes through all of them.
 */
#include <glib.h>
#include <string.h>
#include "model/port/address_hash.h"
#include "model/port/vport.h"
#include "prm/prm.h"

bool vport_gid_is_usable(const struct vport_gid *entry)
{
    return entry->valid &&
           (entry->version == PRM_ROCE_VERSION_V1 || entry->version == PRM_ROCE_VERSION_V2);
}

static void gids_index(struct vport *vport)
{
    memset(vport->gid_slots, 0, sizeof(vport->gid_slots));
    for (unsigned i = 0; i < PORT_MAX_GIDS; i++) {
        const struct vport_gid *entry = &vport->gids[i];
        unsigned at;

        if (!vport_gid_is_usable(entry)) {
            continue;
        }
        at = gid_place(entry->gid, VPORT_LOG_GID_SLOTS);
        while (vport->gid_slots[at]) {
            at = (at + 1) % VPORT_GID_SLOTS;
        }
        vport->gid_slots[at] = (uint16_t)(i + 1);
    }
}

void vport_set_gid(struct vport *vport, unsigned index, const struct vport_gid *gid)
{
    g_assert(index < PORT_MAX_GIDS);
    vport->gids[index] = gid ? *gid : (struct vport_gid){0};
    vport->gid_version++;
    gids_index(vport);
}

void vport_clear_gids(struct vport *vport)
{
    memset(vport->gids, 0, sizeof(vport->gids));
    memset(vport->gid_slots, 0, sizeof(vport->gid_slots));
    vport->gid_version++;
}

int vport_find_gid(const struct vport *vport, const uint8_t gid[16], bool is_v1, bool has_vlan,
                   uint16_t vlan_id)
{
    uint8_t version = is_v1 ? PRM_ROCE_VERSION_V1 : PRM_ROCE_VERSION_V2;

    for (unsigned at = gid_place(gid, VPORT_LOG_GID_SLOTS); vport->gid_slots[at];
         at = (at + 1) % VPORT_GID_SLOTS) {
        unsigned i = vport->gid_slots[at] - 1u;
        const struct vport_gid *entry = &vport->gids[i];

        if (memcmp(entry->gid, gid, 16) == 0 && entry->version == version &&
            entry->has_vlan == has_vlan && (!has_vlan || entry->vlan_id == vlan_id)) {
            return (int)i;
        }
    }
    return -1;
}
