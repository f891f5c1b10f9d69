/* SPDX-License-Identifier: BSD-2-Clause */
/* The RoCE address table: source GIDs with their MAC and VLAN (PRM roce_addr_layout). */
#include <string.h>
#include "fw/cmd.h"
#include "model/rdma/qp.h"

static void cmd_roce_get_mac(const struct prm_roce_addr_layout *addr, uint8_t mac[6])
{
    uint32_t high = PRM_GET(roce_addr_layout, addr, source_mac_47_32);
    uint32_t low = PRM_GET(roce_addr_layout, addr, source_mac_31_0);

    mac[0] = (uint8_t)(high >> 8);
    mac[1] = (uint8_t)high;
    mac[2] = (uint8_t)(low >> 24);
    mac[3] = (uint8_t)(low >> 16);
    mac[4] = (uint8_t)(low >> 8);
    mac[5] = (uint8_t)low;
}

static void cmd_roce_put_mac(struct prm_roce_addr_layout *addr, const uint8_t mac[6])
{
    PRM_SET(roce_addr_layout, addr, source_mac_47_32, (uint32_t)mac[0] << 8 | mac[1]);
    PRM_SET(roce_addr_layout, addr, source_mac_31_0,
            (uint32_t)mac[2] << 24 | (uint32_t)mac[3] << 16 | (uint32_t)mac[4] << 8 | mac[5]);
}

/* An all-zero GID empties the entry, whatever the rest of the layout has. */
static enum syn cmd_set_roce_address(struct fw *fw, struct fw_cmd *cmd)
{
    const struct prm_set_roce_address_in *in = cmd->in;
    static const uint8_t zero[16];
    const struct prm_roce_addr_layout *addr = PRM_PTR(set_roce_address_in, in, roce_address);
    const uint8_t *gid = PRM_PTR(roce_addr_layout, addr, source_l3_address);
    uint32_t index = PRM_GET(set_roce_address_in, in, roce_address_index);
    uint32_t version = PRM_GET(roce_addr_layout, addr, roce_version);
    uint32_t l3_type = PRM_GET(roce_addr_layout, addr, roce_l3_type);
    struct vport_gid entry = {.valid = true};

    if (index >= fw->hca.limits.max_gid) {
        return SYN_BAD_GID_INDEX;
    }
    if (memcmp(gid, zero, sizeof(zero)) == 0) {
        vport_set_gid(cmd->vport, index, NULL);
        return SYN_OK;
    }
    if (version > PRM_ROCE_VERSION_V2 || !(ROCE_VERSIONS >> version & 1) ||
        l3_type > PRM_ROCE_L3_TYPE_IPV6) {
        return SYN_BAD_ROCE_TYPE;
    }
    entry.version = (uint8_t)version;
    entry.l3_type = (uint8_t)l3_type;
    memcpy(entry.gid, gid, sizeof(entry.gid));
    cmd_roce_get_mac(addr, entry.mac);
    entry.has_vlan = PRM_GET(roce_addr_layout, addr, vlan_valid);
    entry.vlan_id = entry.has_vlan ? (uint16_t)PRM_GET(roce_addr_layout, addr, vlan_id) : 0;
    vport_set_gid(cmd->vport, index, &entry);
    return SYN_OK;
}

static enum syn cmd_query_roce_address(struct fw *fw, struct fw_cmd *cmd)
{
    struct prm_roce_addr_layout *addr = PRM_PTR(query_roce_address_out, cmd->out, roce_address);
    uint32_t index = PRM_GET(query_roce_address_in, cmd->in, roce_address_index);
    const struct vport_gid *entry;

    if (index >= fw->hca.limits.max_gid) {
        return SYN_BAD_GID_INDEX;
    }
    entry = &cmd->vport->gids[index];
    if (entry->valid) {
        memcpy(PRM_PTR(roce_addr_layout, addr, source_l3_address), entry->gid, sizeof(entry->gid));
        cmd_roce_put_mac(addr, entry->mac);
        PRM_SET(roce_addr_layout, addr, vlan_valid, entry->has_vlan);
        PRM_SET(roce_addr_layout, addr, vlan_id, entry->vlan_id);
        PRM_SET(roce_addr_layout, addr, roce_version, entry->version);
        PRM_SET(roce_addr_layout, addr, roce_l3_type, entry->l3_type);
    }
    return SYN_OK;
}

const struct fw_cmd_row cmds_roce[] = {
    FW_KERNEL_CMD(SET_ROCE_ADDRESS, cmd_set_roce_address),
    FW_CMD(QUERY_ROCE_ADDRESS, cmd_query_roce_address),
    {0},
};
