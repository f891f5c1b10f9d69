/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Implements the initialization segment: the registers by which a driver finds and watches the
 * firmware.
 *
 * Layout: PRM initial_seg and health_buffer; the driver's struct mlx5_init_seg adds the timeouts,
 * the free-running timer and the real-time clock. The timer follows the host's clock. fw/health.c
 * fills in the health buffer and its counter.
 */
#include "fw/cmd.h"
#include "fw/fw_internal.h"
#include "model/card/card.h"
#include "model/core/real_time.h"

#define ISEG(field)   PRM_OFFSET(initial_seg, field)
#define ISEG_CLR_INT  0x100c /* the dword of clear_int */
#define ISEG_CLR_INTX 0x200c

/* A timeout is a value, with its unit in bits 31:29 (tout.c). */
#define TIMEOUT_SECONDS(s)    ((uint32_t)PRM_TIMEOUT_UNIT_SECONDS << 29 | (s))

#define CMDQ_ADDR_HI          ISEG(cmdq_phy_addr_63_32)
#define CMDQ_ADDR_LO          ISEG(cmdq_phy_addr_31_12) /* and nic_interface */
#define CMD_DOORBELL          ISEG(command_doorbell_vector)
#define HEALTH                ISEG(health_buffer)

#define COMMAND_INTERFACE_REV 5

/* The bit beside "initializing". It says that the device supports PRM_NIC_INTERFACE_SW_RESET (the
 * driver's MLX5_FW_RESET_SUPPORTED_OFFSET). */
#define FW_RESET_SUPPORTED (1u << 30)

static uint32_t iseg_dword(const uint8_t *image, uint64_t offset)
{
    return (uint32_t)image[offset] << 24 | (uint32_t)image[offset + 1] << 16 |
           (uint32_t)image[offset + 2] << 8 | image[offset + 3];
}

static uint32_t iseg_identity(const struct fw *fw, uint64_t offset)
{
    uint8_t image[8] = {0}; /* the first bytes of the segment */
    void *seg = image;

    PRM_SET(initial_seg, seg, fw_rev_major, fw->profile->fw_major);
    PRM_SET(initial_seg, seg, fw_rev_minor, fw->profile->fw_minor);
    PRM_SET(initial_seg, seg, cmd_interface_rev, COMMAND_INTERFACE_REV);
    PRM_SET(initial_seg, seg, fw_rev_subminor, fw->profile->fw_subminor);
    return iseg_dword(image, offset);
}

static uint32_t iseg_health(struct fw *fw, uint64_t offset)
{
    struct prm_health_buffer image[1] = {0};

    health_fill(fw, image);
    return iseg_dword(image->bytes, offset - HEALTH);
}

/* The free-running timer. Its ticks have the rate device_frequency_khz, so they are nanoseconds. */
static uint64_t iseg_timer_now(struct fw *fw)
{
    return hca_now(&fw->hca);
}

/* The real-time clock: seconds and nanoseconds. 0 on a card without one. */
static uint64_t iseg_real_time(struct fw *fw)
{
    return fw->hca.limits.real_time ? real_time_stamp(fw->hca.real_time, hca_now(&fw->hca)) : 0;
}

uint32_t iseg_read(struct fw *fw, uint64_t offset)
{
    if (offset < 8) {
        return iseg_identity(fw, offset);
    }
    if (offset >= HEALTH && offset < HEALTH + PRM_SIZE(health_buffer)) {
        return iseg_health(fw, offset);
    }
    switch (offset) {
    case CMDQ_ADDR_HI:
        return (uint32_t)(fw->cmdq.addr >> 32);
    case CMDQ_ADDR_LO:
        return (uint32_t)fw->cmdq.addr | (uint32_t)fw->nic_interface << 8 | CMDQ_LOG_ENTRIES << 4 |
               CMDQ_LOG_STRIDE;
    case CMD_DOORBELL:
        return fw->cmdq.pending;
    case ISEG(initializing):
        /* initializing; nic_interface_supported: full driver and disabled */
        return FW_RESET_SUPPORTED | (fw->entry.reset ? 1u << 31 : 0) |
               (1u << PRM_NIC_INTERFACE_FULL_DRIVER | 1u << PRM_NIC_INTERFACE_DISABLED) << 24;
    case ISEG(cmd_exec_to):
        return TIMEOUT_SECONDS(60);
    case ISEG(cmd_q_init_to):
        return TIMEOUT_SECONDS(2);
    case ISEG(internal_timer_h):
        return (uint32_t)(iseg_timer_now(fw) >> 32);
    case ISEG(internal_timer_l):
        return (uint32_t)iseg_timer_now(fw);
    case ISEG(health_syndrome):
        return health_counter(fw);
    case ISEG(real_time_h):
        return (uint32_t)(iseg_real_time(fw) >> 32);
    case ISEG(real_time_l):
        return (uint32_t)iseg_real_time(fw);
    case ISEG_CLR_INT:
    case ISEG_CLR_INTX:
        return 0;
    default:
        hca_log(&fw->hca, HCA_LOG_GUEST_ERROR,
                "read of offset 0x%" G_GINT64_MODIFIER "x: no register", offset);
        return 0;
    }
}

static void iseg_write_nic_interface(struct fw *fw, uint8_t nic_interface)
{
    switch (nic_interface) {
    case PRM_NIC_INTERFACE_FULL_DRIVER:
        fw->nic_interface = PRM_NIC_INTERFACE_FULL_DRIVER;
        break;
    case PRM_NIC_INTERFACE_DISABLED:
    case PRM_NIC_INTERFACE_SW_RESET:
        /* The driver leaves (last step of a fast teardown), or asks for a firmware reset. In both
         * cases the function forgets everything, and then reads as disabled. A firmware reset also
         * restarts the port and the firmware's health. */
        cmdq_forget(fw);
        fw_set_state(fw, CMD_DISABLED);
        if (!hca_reset_part(&fw->hca)) {
            return; /* the write will be done again */
        }
        pages_reset(fw);
        if (nic_interface == PRM_NIC_INTERFACE_SW_RESET) {
            cmdq_reset(fw);
            fw_restart(fw);
        }
        fw->nic_interface = PRM_NIC_INTERFACE_DISABLED;
        break;
    default:
        hca_log(&fw->hca, HCA_LOG_GUEST_ERROR, "NIC interface state %u is not known",
                nic_interface);
        break;
    }
}

static uint8_t iseg_nic_interface_of(uint32_t addr_lo)
{
    return addr_lo >> 8 & 7;
}

bool iseg_disables(uint64_t offset, uint64_t value, unsigned size)
{
    bool whole = (size == 4 && offset == CMDQ_ADDR_LO) || (size == 8 && offset == CMDQ_ADDR_HI);
    uint8_t nic_interface = iseg_nic_interface_of((uint32_t)value);

    return whole && (nic_interface == PRM_NIC_INTERFACE_DISABLED ||
                     nic_interface == PRM_NIC_INTERFACE_SW_RESET);
}

void iseg_write(struct fw *fw, uint64_t offset, uint32_t value)
{
    switch (offset) {
    case CMDQ_ADDR_HI:
        fw->cmdq.addr = (uint64_t)value << 32 | (uint32_t)fw->cmdq.addr;
        break;
    case CMDQ_ADDR_LO:
        fw->cmdq.addr = (fw->cmdq.addr & ~0xffffffffull) | (value & ~0xfffu);
        iseg_write_nic_interface(fw, iseg_nic_interface_of(value));
        break;
    case CMD_DOORBELL:
        cmdq_doorbell(fw, value);
        break;
    case ISEG_CLR_INT:
    case ISEG_CLR_INTX:
        break; /* INTx is not connected: every event is an MSI-X message */
    default:
        hca_log(&fw->hca, HCA_LOG_GUEST_ERROR,
                "write of 0x%x to offset 0x%" G_GINT64_MODIFIER "x: no register", value, offset);
        break;
    }
}
