/* SPDX-License-Identifier: BSD-2-Clause */
/* Registers of the device: byte order, description, timeouts. */
#include <string.h>
#include "fw/regs.h"

/* HOST_ENDIANNESS: the byte order of the host's memory; the model runs on little-endian ones. */
static enum syn endianness_write(struct fw *fw, const uint8_t *in, uint8_t *out)
{
    return PRM_GET(register_host_endianness, in, he) ? SYN_REG_VALUE : SYN_OK;
}

static enum syn endianness_query(struct fw *fw, const uint8_t *in, uint8_t *out)
{
    PRM_SET(register_host_endianness, out, he, 0);
    return SYN_OK;
}

static enum syn node_desc_query(struct fw *fw, const uint8_t *in, uint8_t *out)
{
    memcpy(out, fw->regs.node_desc, sizeof(fw->regs.node_desc));
    return SYN_OK;
}

static enum syn node_desc_write(struct fw *fw, const uint8_t *in, uint8_t *out)
{
    memcpy(fw->regs.node_desc, in, sizeof(fw->regs.node_desc));
    return SYN_OK;
}

/* DTOR: how long the driver should wait for what (tout.c). */
#define DTOR_SECONDS 1

static void put_timeout(uint8_t *timeout, uint32_t seconds)
{
    PRM_SET(default_timeout, timeout, to_multiplier, DTOR_SECONDS);
    PRM_SET(default_timeout, timeout, to_value, seconds);
}

static enum syn dtor_query(struct fw *fw, const uint8_t *in, uint8_t *out)
{
    put_timeout(PRM_PTR(dtor_reg, out, pcie_toggle_to), 2);
    put_timeout(PRM_PTR(dtor_reg, out, health_poll_to), 2);
    put_timeout(PRM_PTR(dtor_reg, out, full_crdump_to), 60);
    put_timeout(PRM_PTR(dtor_reg, out, fw_reset_to), 60);
    put_timeout(PRM_PTR(dtor_reg, out, flush_on_err_to), 2);
    put_timeout(PRM_PTR(dtor_reg, out, pci_sync_update_to), 30);
    put_timeout(PRM_PTR(dtor_reg, out, tear_down_to), 3);
    put_timeout(PRM_PTR(dtor_reg, out, fsm_reactivate_to), 5);
    put_timeout(PRM_PTR(dtor_reg, out, reclaim_pages_to), 5);
    put_timeout(PRM_PTR(dtor_reg, out, reclaim_vfs_pages_to), 120);
    put_timeout(PRM_PTR(dtor_reg, out, reset_unload_to), 300);
    return SYN_OK;
}

const struct fw_reg regs_device[] = {
    {REG_HOST_ENDIANNESS, PRM_SIZE(register_host_endianness), false, endianness_query,
     endianness_write},
    {REG_NODE_DESC, PRM_SIZE(set_node_in), false, node_desc_query, node_desc_write},
    {REG_DTOR, PRM_SIZE(dtor_reg), false, dtor_query, NULL},
    {0},
};
