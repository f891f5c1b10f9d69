/* SPDX-License-Identifier: BSD-2-Clause */
/* Registers of the device: byte order, description, timeouts, firmware version, which there are. */
#include <string.h>
#include "fw/regs.h"

/* HOST_ENDIANNESS: the byte order of the host's memory; the model runs on little-endian ones. */
static enum syn regs_endianness_write(struct fw *fw, const void *in, void *out)
{
    return PRM_GET(register_host_endianness, in, he) ? SYN_REG_VALUE : SYN_OK;
}

static enum syn regs_endianness_query(struct fw *fw, const void *in, void *out)
{
    PRM_SET(register_host_endianness, out, he, 0);
    return SYN_OK;
}

void regs_reset(struct fw *fw)
{
    memset(fw->node_desc, 0, sizeof(fw->node_desc));
    g_snprintf(fw->node_desc, sizeof(fw->node_desc), "hcasim %s", fw->profile->name);
}

static enum syn regs_node_desc_query(struct fw *fw, const void *in, void *out)
{
    memcpy(out, fw->node_desc, sizeof(fw->node_desc));
    return SYN_OK;
}

static enum syn regs_node_desc_write(struct fw *fw, const void *in, void *out)
{
    memcpy(fw->node_desc, in, sizeof(fw->node_desc));
    return SYN_OK;
}

/* DTOR: how long the driver should wait for what (tout.c). */
static void regs_put_timeout(struct prm_default_timeout *timeout, uint32_t seconds)
{
    PRM_SET(default_timeout, timeout, to_multiplier, PRM_TIMEOUT_UNIT_SECONDS);
    PRM_SET(default_timeout, timeout, to_value, seconds);
}

static enum syn regs_dtor_query(struct fw *fw, const void *in, void *out)
{
    regs_put_timeout(PRM_PTR(dtor_reg, out, pcie_toggle_to), 2);
    regs_put_timeout(PRM_PTR(dtor_reg, out, health_poll_to), 2);
    regs_put_timeout(PRM_PTR(dtor_reg, out, full_crdump_to), 60);
    regs_put_timeout(PRM_PTR(dtor_reg, out, fw_reset_to), 60);
    regs_put_timeout(PRM_PTR(dtor_reg, out, flush_on_err_to), 2);
    regs_put_timeout(PRM_PTR(dtor_reg, out, pci_sync_update_to), 30);
    regs_put_timeout(PRM_PTR(dtor_reg, out, tear_down_to), 3);
    regs_put_timeout(PRM_PTR(dtor_reg, out, fsm_reactivate_to), 5);
    regs_put_timeout(PRM_PTR(dtor_reg, out, reclaim_pages_to), 5);
    regs_put_timeout(PRM_PTR(dtor_reg, out, reclaim_vfs_pages_to), 120);
    regs_put_timeout(PRM_PTR(dtor_reg, out, reset_unload_to), 300);
    return SYN_OK;
}

/* MCQS, MCQI: the firmware's components. There is one, the running image, and no update of it. */

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

    if (PRM_GET(mcqi_reg, in, component_index) || PRM_GET(mcqi_reg, in, offset) ||
        PRM_GET(mcqi_reg, in, data_size) > PRM_SIZE(mcqi_version)) {
        return SYN_REG_VALUE;
    }
    memcpy(out, in, PRM_SIZE(mcqi_reg));
    switch (type) {
    case PRM_MCQI_INFO_TYPE_CAPABILITIES: /* which kinds of information there are; nothing can be
                                             written */
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

/* MCAM: which registers 0x9000 to 0x91ff there are, a group at a time, and no feature of theirs. */
#define MCAM_FIRST  0x9000
#define MCAM_GROUPS 4

static enum syn regs_mcam_query(struct fw *fw, const void *in, void *out)
{
    uint32_t group = PRM_GET(mcam_reg, in, access_reg_group);

    if (group >= MCAM_GROUPS || PRM_GET(mcam_reg, in, feature_group)) {
        return SYN_REG_VALUE;
    }
    PRM_SET(mcam_reg, out, access_reg_group, group);
    fw_reg_mask((uint16_t)(MCAM_FIRST + group * REG_GROUP),
                PRM_PTR(mcam_reg, out, mng_access_reg_cap_mask_access_regs));
    return SYN_OK;
}

const struct fw_reg regs_device[] = {
    {PRM_REG_ID_HOST_ENDIANNESS, PRM_SIZE(register_host_endianness), false, regs_endianness_query,
     regs_endianness_write},
    {PRM_REG_ID_NODE_DESC, PRM_SIZE(set_node_in), false, regs_node_desc_query,
     regs_node_desc_write},
    {PRM_REG_ID_MCQS, PRM_SIZE(mcqs_reg), false, regs_mcqs_query, NULL},
    {PRM_REG_ID_MCQI, PRM_SIZE(mcqi_reg) + PRM_SIZE(mcqi_version), false, regs_mcqi_query, NULL},
    {PRM_REG_ID_MCAM, PRM_SIZE(mcam_reg), false, regs_mcam_query, NULL},
    {PRM_REG_ID_DTOR, PRM_SIZE(dtor_reg), false, regs_dtor_query, NULL},
    {0},
};
