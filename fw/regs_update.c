/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Registers of firmware update (flint, the driver's devlink flash): the firmware's components,
 * information about them, and the states of an update.
 *
 * There is one component, the running image. An update begins and ends as on a card, so that a tool
 * gets a proper answer: no image fits this card, and no component's data is ever accepted or
 * returned. Each function has its own update. It ends with the function's reset, by the tool that
 * began it, and by a tool that forces it.
 */
#include <string.h>
#include "fw/regs.h"

/* -- MCQS, MCQI: components -------------------------------------------------------------------- */

static enum syn regs_mcqs_query(struct fw *fw, const void *in, void *out)
{
    if (PRM_GET(mcqs_reg, in, component_index)) {
        return SYN_REG_VALUE;
    }
    PRM_SET(mcqs_reg, out, last_index_flag, 1);
    PRM_SET(mcqs_reg, out, identifier, PRM_MCQS_IDENTIFIER_BOOT_IMAGE);
    PRM_SET(mcqs_reg, out, component_status, PRM_MCQS_COMPONENT_STATUS_PRESENT);
    return SYN_OK;
}

static void regs_fill_version(const struct fw *fw, struct prm_mcqi_version *version)
{
    const struct fw_profile *p = fw->profile;
    char *text = (char *)PRM_PTR(mcqi_version, version, version_string);
    int len = g_snprintf(text, (gulong)PRM_COUNT(mcqi_version, version_string), "%u.%u.%u",
                         p->fw_major, p->fw_minor, p->fw_subminor);

    PRM_SET(mcqi_version, version, version_string_length, (uint32_t)len);
    PRM_SET(mcqi_version, version, version,
            (uint32_t)p->fw_major << 24 | (uint32_t)p->fw_minor << 16 | p->fw_subminor);
}

static enum syn regs_mcqi_query(struct fw *fw, const void *in, void *out)
{
    void *data = PRM_PTR(mcqi_reg, out, data);
    uint32_t type = PRM_GET(mcqi_reg, in, info_type);

    /* A caller may ask for more bytes than there are; flint does. */
    if (PRM_GET(mcqi_reg, in, component_index) || PRM_GET(mcqi_reg, in, offset)) {
        return SYN_REG_VALUE;
    }
    memcpy(out, in, PRM_SIZE(mcqi_reg));
    switch (type) {
    /* which kinds of information exist; nothing can be written */
    case PRM_MCQI_INFO_TYPE_CAPABILITIES:
        PRM_SET(mcqi_cap, data, supported_info_bitmask,
                1u << PRM_MCQI_INFO_TYPE_CAPABILITIES | 1u << PRM_MCQI_INFO_TYPE_VERSION);
        PRM_SET(mcqi_reg, out, info_size, PRM_SIZE(mcqi_cap));
        return SYN_OK;
    case PRM_MCQI_INFO_TYPE_VERSION:
        regs_fill_version(fw, data);
        PRM_SET(mcqi_reg, out, info_size, PRM_SIZE(mcqi_version));
        return SYN_OK;
    default:
        return SYN_REG_VALUE;
    }
}

/* -- MCC, MCDA: an update ---------------------------------------------------------------------- */

#define UPDATE_HANDLES 0xffffffu

void regs_update_reset(struct fw *fw)
{
    fw->update = (struct fw_update){.handle = 1};
}

static void regs_mcc_fill(const struct fw_update *u, void *out)
{
    PRM_SET(mcc_reg, out, update_handle, u->handle);
    PRM_SET(mcc_reg, out, control_state, u->locked ? PRM_MCC_STATE_LOCKED : PRM_MCC_STATE_IDLE);
    PRM_SET(mcc_reg, out, error_code, u->error);
}

/* While no update is under way, the handle is that of the next update. */
static enum syn regs_mcc_query(struct fw *fw, const void *in, void *out)
{
    regs_mcc_fill(&fw->update, out);
    return SYN_OK;
}

static void regs_update_end(struct fw_update *u)
{
    *u = (struct fw_update){.handle = u->handle % UPDATE_HANDLES + 1};
}

static enum syn regs_mcc_write(struct fw *fw, const void *in, void *out)
{
    struct fw_update *u = &fw->update;
    uint32_t instruction = PRM_GET(mcc_reg, in, instruction);

    if (instruction != PRM_MCC_INSTRUCTION_FORCE_HANDLE_RELEASE &&
        (PRM_GET(mcc_reg, in, update_handle) != u->handle ||
         (instruction == PRM_MCC_INSTRUCTION_LOCK_UPDATE_HANDLE) == u->locked)) {
        return SYN_REG_VALUE;
    }
    switch (instruction) {
    case PRM_MCC_INSTRUCTION_LOCK_UPDATE_HANDLE:
        u->locked = true;
        break;
    case PRM_MCC_INSTRUCTION_RELEASE_UPDATE_HANDLE:
    case PRM_MCC_INSTRUCTION_FORCE_HANDLE_RELEASE:
        regs_update_end(u);
        break;
    case PRM_MCC_INSTRUCTION_UPDATE_COMPONENT:
        u->error = PRM_MCC_ERROR_REJECTED_NOT_APPLICABLE;
        break;
    case PRM_MCC_INSTRUCTION_CANCEL:
        u->error = PRM_MCC_ERROR_OK;
        break;
    default: /* for a state that is never reached */
        return SYN_REG_VALUE;
    }
    regs_mcc_fill(u, out);
    return SYN_OK;
}

/* No component is ever being loaded or read. */
static enum syn regs_mcda_access(struct fw *fw, const void *in, void *out)
{
    return SYN_REG_VALUE;
}

const struct fw_reg regs_update[] = {
    {PRM_REG_ID_MCQS, PRM_SIZE(mcqs_reg), false, regs_mcqs_query, NULL},
    {PRM_REG_ID_MCQI, PRM_SIZE(mcqi_reg) + PRM_SIZE(mcqi_version), false, regs_mcqi_query, NULL},
    {PRM_REG_ID_MCC, PRM_SIZE(mcc_reg), false, regs_mcc_query, regs_mcc_write},
    {PRM_REG_ID_MCDA, PRM_SIZE(mcda_reg), false, regs_mcda_access, regs_mcda_access},
    {0},
};
