/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ACCESS_REGISTER: reads and writes of port and device registers, by table.
 *
 * A register that is not in a table is refused with BAD_PARAM, as a device refuses one that its
 * capability masks (PCAM, MCAM) do not name.
 */
#include <string.h>
#include "fw/cmd.h"
#include "fw/regs.h"

#define LOCAL_PORT_AT 1 /* byte of local_port in a port register */

static const struct fw_reg *const tables[] = {regs_port, regs_module, regs_device};

const struct fw_reg *fw_reg_find(uint16_t id)
{
    for (size_t i = 0; i < G_N_ELEMENTS(tables); i++) {
        for (const struct fw_reg *reg = tables[i]; reg->size; reg++) {
            if (reg->id == id) {
                return reg;
            }
        }
    }
    return NULL;
}

void fw_reg_mask(uint16_t first, void *mask)
{
    uint8_t *bytes = mask;

    for (unsigned i = 0; i < REG_GROUP; i++) {
        if (fw_reg_find((uint16_t)(first + i))) {
            bytes[REG_GROUP / 8 - 1 - i / 8] |= (uint8_t)(1u << i % 8);
        }
    }
}

static enum syn cmd_access_reg(struct fw *fw, struct fw_cmd *cmd)
{
    uint16_t id = (uint16_t)PRM_GET(access_register_in, cmd->in, register_id);
    const struct fw_reg *reg = fw_reg_find(id);
    size_t in_at = PRM_OFFSET(access_register_in, register_data);
    size_t out_at = PRM_OFFSET(access_register_out, register_data);
    uint8_t in[REG_MAX_BYTES] = {0}, out[REG_MAX_BYTES] = {0};
    fw_reg_fn *access;
    enum syn syn;

    if (!reg) {
        hca_log(&fw->hca, HCA_LOG_GUEST_ERROR, "unhandled register 0x%x", id);
        return SYN_NO_REG;
    }
    if (cmd->in_len < in_at + PRM_STRIDE(access_register_in, register_data)) {
        return SYN_IN_LEN;
    }
    access = cmd->op_mod == PRM_ACCESS_REGISTER_OP_READ ? reg->query : reg->write;
    if (!access) {
        return SYN_REG_ACCESS;
    }
    memcpy(in, cmd->in + in_at, MIN(cmd->in_len - in_at, reg->size));
    if (reg->port && in[LOCAL_PORT_AT] != fw_uplink(fw)->number) {
        return SYN_NO_PORT;
    }
    out[LOCAL_PORT_AT] = reg->port ? in[LOCAL_PORT_AT] : 0;
    if (cmd->op_mod == PRM_ACCESS_REGISTER_OP_WRITE) {
        memcpy(out, in, reg->size);
    }
    syn = access(fw, in, out);
    if (!syn) {
        memcpy(cmd->out + out_at, out, MIN(cmd->out_len - out_at, reg->size));
    }
    return syn;
}

const struct fw_cmd_row cmds_access_reg[] = {
    {PRM_COMMAND(ACCESS_REG), CMD_ENABLED | CMD_READY, false, cmd_access_reg},
    {0},
};
