/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Implements ACCESS_REGISTER: reads and writes port and device registers, by tables. Also serves
 * accesses that do not come by a command.
 *
 * A register that is not in a table is refused with BAD_PARAM, as a device refuses a register that
 * its capability masks (PCAM, MCAM) do not name.
 */
#include <string.h>
#include "fw/cmd.h"
#include "fw/regs.h"

#define LOCAL_PORT_AT 1 /* byte offset of local_port in a port register */

static const struct fw_reg *const tables[] = {regs_port,   regs_link,   regs_module,  regs_qos,
                                              regs_device, regs_clock,  regs_buffers, regs_update,
                                              regs_nv,     regs_of_dump};

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

static enum fw_reg_status reg_status(enum syn syn)
{
    switch (syn) {
    case SYN_OK:
        return FW_REG_OK;
    case SYN_REG_ACCESS:
        return FW_REG_BAD_METHOD;
    case SYN_NO_NV_ITEM:
        return FW_REG_NO_RESOURCE;
    default:
        return FW_REG_BAD_PARAM;
    }
}

/* data is what is written, or selects what is read. *to receives the register's value. */
static enum syn reg_access(struct fw *fw, const struct fw_reg *reg, bool is_write, const void *data,
                           size_t len, void *to, size_t to_len)
{
    uint8_t in[REG_MAX_BYTES] = {0}, out[REG_MAX_BYTES] = {0};
    fw_reg_fn *access = is_write ? reg->write : reg->query;
    enum syn syn;

    if (!access) {
        return SYN_REG_ACCESS;
    }
    memcpy(in, data, MIN(len, reg->size));
    if (reg->port && in[LOCAL_PORT_AT] != fw_uplink(fw)->number) {
        return SYN_NO_PORT;
    }
    out[LOCAL_PORT_AT] = reg->port ? in[LOCAL_PORT_AT] : 0;
    if (is_write) {
        memcpy(out, in, reg->size);
    }
    syn = access(fw, in, out);
    if (!syn) {
        memcpy(to, out, MIN(to_len, reg->size));
    }
    return syn;
}

enum fw_reg_status fw_access_reg(struct fw *fw, uint16_t id, bool is_write, void *data, size_t len)
{
    const struct fw_reg *reg = fw_reg_find(id);
    enum syn syn;

    if (!reg) {
        return FW_REG_UNKNOWN;
    }
    if (fw->hca.off || fw->health.fatal || !entry_begin(fw)) {
        return FW_REG_BUSY;
    }
    syn = reg_access(fw, reg, is_write, data, len, data, len);
    entry_end(fw);
    return reg_status(syn);
}

static enum syn cmd_access_reg(struct fw *fw, struct fw_cmd *cmd)
{
    uint16_t id = (uint16_t)PRM_GET(access_register_in, cmd->in, register_id);
    const struct fw_reg *reg = fw_reg_find(id);
    size_t in_at = PRM_OFFSET(access_register_in, register_data);
    size_t out_at = PRM_OFFSET(access_register_out, register_data);

    if (!reg) {
        hca_log(&fw->hca, HCA_LOG_GUEST_ERROR, "unhandled register 0x%x", id);
        return SYN_NO_REG;
    }
    if (cmd->in_len < in_at + PRM_STRIDE(access_register_in, register_data)) {
        return SYN_IN_LEN;
    }
    return reg_access(fw, reg, cmd->op_mod == PRM_ACCESS_REGISTER_OP_WRITE, cmd->in + in_at,
                      cmd->in_len - in_at, cmd->out + out_at, cmd->out_len - out_at);
}

const struct fw_cmd_row cmds_access_reg[] = {
    {PRM_COMMAND(ACCESS_REG), CMD_ENABLED | CMD_READY, false, cmd_access_reg},
    {0},
};
