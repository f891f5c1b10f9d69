/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Registers of the port's receive buffers: PBMC, their sizes and thresholds, and PPTB, which buffer
 * a priority uses (dcb buffer). Settings are checked as those of a card, so that a driver's
 * arithmetic is tested. They hold nothing back: the port's function takes frames from the cable
 * when it has room for them, and meanwhile the cable lets the sender wait. So no buffer fills, and
 * no threshold is reached.
 */
#include "fw/regs.h"

static enum syn regs_pbmc_query(struct fw *fw, const void *in, void *out)
{
    const struct uplink_buffer *buffers = fw_uplink(fw)->phy.buffers;

    (void)in;
    PRM_SET(pbmc_reg, out, port_buffer_size, FW_BUFFER_CELLS);
    for (unsigned i = 0; i < UPLINK_BUFFERS; i++) {
        void *buffer = PRM_PTR_AT(pbmc_reg, out, buffer, i);

        PRM_SET(bufferx_reg, buffer, lossy, buffers[i].lossy);
        PRM_SET(bufferx_reg, buffer, size, buffers[i].size);
        PRM_SET(bufferx_reg, buffer, xoff_threshold, buffers[i].xoff);
        PRM_SET(bufferx_reg, buffer, xon_threshold, buffers[i].xon);
    }
    return SYN_OK;
}

static enum syn regs_pbmc_write(struct fw *fw, const void *in, void *out)
{
    struct uplink_buffer wished[UPLINK_BUFFERS];
    uint32_t cells = 0;

    (void)out;
    for (unsigned i = 0; i < UPLINK_BUFFERS; i++) {
        const void *buffer = PRM_PTR_AT(pbmc_reg, in, buffer, i);

        wished[i] = (struct uplink_buffer){
            .lossy = PRM_GET(bufferx_reg, buffer, lossy),
            .size = (uint16_t)PRM_GET(bufferx_reg, buffer, size),
            .xoff = (uint16_t)PRM_GET(bufferx_reg, buffer, xoff_threshold),
            .xon = (uint16_t)PRM_GET(bufferx_reg, buffer, xon_threshold),
        };
        cells += wished[i].size;
        if (wished[i].xon > wished[i].xoff || wished[i].xoff > wished[i].size) {
            return SYN_REG_VALUE;
        }
    }
    if (cells > FW_BUFFER_CELLS) {
        return SYN_REG_VALUE;
    }
    memcpy(fw_uplink(fw)->phy.buffers, wished, sizeof(wished));
    return SYN_OK;
}

static enum syn regs_pptb_query(struct fw *fw, const void *in, void *out)
{
    (void)in;
    PRM_SET(pptb_reg, out, prio_x_buff, fw_uplink(fw)->phy.priority_buffer);
    return SYN_OK;
}

/* Takes the priorities of pm; a priority has four bits. */
static enum syn regs_pptb_write(struct fw *fw, const void *in, void *out)
{
    uint32_t wished = PRM_GET(pptb_reg, in, prio_x_buff), taken = 0;
    uint32_t priorities = PRM_GET(pptb_reg, in, pm);

    (void)out;
    for (unsigned i = 0; i < PRIORITIES; i++) {
        if (priorities >> i & 1) {
            taken |= 0xfu << 4 * i;
            if ((wished >> 4 * i & 0xf) >= UPLINK_BUFFERS) {
                return SYN_REG_VALUE;
            }
        }
    }
    fw_uplink(fw)->phy.priority_buffer =
        (fw_uplink(fw)->phy.priority_buffer & ~taken) | (wished & taken);
    return SYN_OK;
}

const struct fw_reg regs_buffers[] = {
    {PRM_REG_ID_PBMC, PRM_SIZE(pbmc_reg), true, regs_pbmc_query, regs_pbmc_write},
    {PRM_REG_ID_PPTB, PRM_SIZE(pptb_reg), true, regs_pptb_query, regs_pptb_write},
    {0},
};
