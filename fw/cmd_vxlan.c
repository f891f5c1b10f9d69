/* SPDX-License-Identifier: BSD-2-Clause */
/* Commands on the UDP ports of VXLAN (model/eth/vxlan_ports.h). */
#include "fw/cmd.h"
#include "model/eth/vxlan_ports.h"

static enum syn cmd_add_vxlan_udp_dport(struct fw *fw, struct fw_cmd *cmd)
{
    return vxlan_port_add(&fw->hca,
                          (uint16_t)PRM_GET(add_vxlan_udp_dport_in, cmd->in, vxlan_udp_port));
}

static enum syn cmd_delete_vxlan_udp_dport(struct fw *fw, struct fw_cmd *cmd)
{
    return vxlan_port_delete(&fw->hca,
                             (uint16_t)PRM_GET(delete_vxlan_udp_dport_in, cmd->in, vxlan_udp_port));
}

const struct fw_cmd_row cmds_vxlan[] = {
    FW_KERNEL_CMD(ADD_VXLAN_UDP_DPORT, cmd_add_vxlan_udp_dport),
    FW_KERNEL_CMD(DELETE_VXLAN_UDP_DPORT, cmd_delete_vxlan_udp_dport),
    {0},
};
