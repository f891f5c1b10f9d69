/* SPDX-License-Identifier: BSD-2-Clause */
/* Registers of the device: identity, byte order, description, timeouts, and which registers
 * exist. */
#include <string.h>
#include "fw/regs.h"
#include "model/port/eswitch.h"

#define NS_PER_SECOND 1000000000ull

/* HOST_ENDIANNESS: the byte order of the host's memory. The model supports only little-endian
 * hosts. */
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
    fw->restarted_ns = hca_now(&fw->hca);
    regs_update_reset(fw);
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

/* DTOR: how long the driver should wait for various operations (tout.c). */
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

/* MGIR: identity of the card. A field is 0 if this device has nothing to report: it has no build
 * number, no build date, and no expansion ROM. */
static enum syn regs_mgir_query(struct fw *fw, const void *in, void *out)
{
    const struct fw_profile *p = fw->profile;
    uint64_t mac = regs_base_mac(fw);
    void *chip = PRM_PTR(mgir_reg, out, hw_info), *image = PRM_PTR(mgir_reg, out, fw_info);

    PRM_SET(mgir_hardware_info, chip, device_hw_revision, p->pci.revision);
    PRM_SET(mgir_hardware_info, chip, device_id, p->pci.device);
    PRM_SET(mgir_hardware_info, chip, num_ports, 1);
    PRM_SET(mgir_hardware_info, chip, hw_dev_id, p->hw_id);
    PRM_SET(mgir_hardware_info, chip, manufacturing_base_mac_47_32, (uint32_t)(mac >> 32));
    PRM_SET(mgir_hardware_info, chip, manufacturing_base_mac_31_0, (uint32_t)mac);
    PRM_SET(mgir_hardware_info, chip, uptime,
            (uint32_t)((hca_now(&fw->hca) - fw->restarted_ns) / NS_PER_SECOND));
    PRM_SET(mgir_fw_info, image, major, p->fw_major);
    PRM_SET(mgir_fw_info, image, minor, p->fw_minor);
    PRM_SET(mgir_fw_info, image, extended_major, p->fw_major);
    PRM_SET(mgir_fw_info, image, extended_minor, p->fw_minor);
    PRM_SET(mgir_fw_info, image, extended_sub_minor, p->fw_subminor);
    memcpy(PRM_PTR(mgir_fw_info, image, psid), p->psid,
           MIN(strlen(p->psid), PRM_COUNT(mgir_fw_info, psid)));
    return SYN_OK;
}

/* MPCNT: the counters of the PCI port, the only node of its tree. The host's memory answers each
 * access at once and without errors, so nothing ever stalls, overflows or is wrong. All counters
 * are 0, whether or not they are cleared (clr). The life time counter is not there, because no open
 * source has its unit. */
static enum syn regs_mpcnt_query(struct fw *fw, const void *in, void *out)
{
    if (PRM_GET(mpcnt_reg, in, pcie_index) ||
        PRM_GET(mpcnt_reg, in, grp) != PRM_MPCNT_GRP_PERFORMANCE) {
        return SYN_REG_VALUE;
    }
    PRM_SET(mpcnt_reg, out, grp, PRM_MPCNT_GRP_PERFORMANCE);
    return SYN_OK;
}

/* MQIS: texts about the card, read in parts. A text that the card does not have is empty. */
static enum syn regs_mqis_query(struct fw *fw, const void *in, void *out)
{
    const char *const texts[] = {
        [PRM_MQIS_INFO_TYPE_MODEL_NAME] = fw->profile->pci.part_number,
        [PRM_MQIS_INFO_TYPE_MODEL_DESCRIPTION] = fw->profile->pci.product,
        [PRM_MQIS_INFO_TYPE_IMAGE_VSD] = "",
        [PRM_MQIS_INFO_TYPE_DEVICE_VSD] = "",
    };
    uint32_t type = PRM_GET(mqis_reg, in, info_type), at = PRM_GET(mqis_reg, in, read_offset);
    size_t len;

    if (type >= G_N_ELEMENTS(texts) || !texts[type] || at > strlen(texts[type])) {
        return SYN_REG_VALUE;
    }
    len = MIN(MIN(PRM_GET(mqis_reg, in, read_length), PRM_COUNT(mqis_reg, info_string)),
              strlen(texts[type]) - at);
    PRM_SET(mqis_reg, out, info_type, type);
    PRM_SET(mqis_reg, out, info_length, (uint32_t)strlen(texts[type]));
    PRM_SET(mqis_reg, out, read_offset, at);
    PRM_SET(mqis_reg, out, read_length, (uint32_t)len);
    memcpy(PRM_PTR(mqis_reg, out, info_string), texts[type] + at, len);
    return SYN_OK;
}

/* MCAM: which registers from 0x9000 to 0x91ff exist, a group at a time, and of their features those
 * of PCI's counters and of the real-time clock. */
#define MCAM_FIRST  0x9000
#define MCAM_GROUPS 4

static enum syn regs_mcam_query(struct fw *fw, const void *in, void *out)
{
    void *features = PRM_PTR(mcam_reg, out, mng_feature_cap_mask_enhanced_features);
    uint32_t group = PRM_GET(mcam_reg, in, access_reg_group);

    if (group >= MCAM_GROUPS || PRM_GET(mcam_reg, in, feature_group)) {
        return SYN_REG_VALUE;
    }
    PRM_SET(mcam_reg, out, access_reg_group, group);
    fw_reg_mask((uint16_t)(MCAM_FIRST + group * REG_GROUP),
                PRM_PTR(mcam_reg, out, mng_access_reg_cap_mask_access_regs));
    PRM_SET(mcam_enhanced_features, features, pcie_performance_group, 1);
    PRM_SET(mcam_enhanced_features, features, tx_overflow_buffer_pkt, 1);
    PRM_SET(mcam_enhanced_features, features, pcie_outbound_stalled, 1);
    if (fw->hca.limits.real_time) {
        PRM_SET(mcam_enhanced_features, features, ptpcyc2realtime_modify, 1);
        PRM_SET(mcam_enhanced_features, features, mtutc_time_adjustment_extended_range, 1);
        PRM_SET(mcam_enhanced_features, features, mtutc_freq_adj_units, 1);
    }
    return SYN_OK;
}

const struct fw_reg regs_device[] = {
    {PRM_REG_ID_HOST_ENDIANNESS, PRM_SIZE(register_host_endianness), false, regs_endianness_query,
     regs_endianness_write},
    {PRM_REG_ID_NODE_DESC, PRM_SIZE(set_node_in), false, regs_node_desc_query,
     regs_node_desc_write},
    {PRM_REG_ID_MGIR, PRM_SIZE(mgir_reg), false, regs_mgir_query, NULL},
    {PRM_REG_ID_MQIS, PRM_SIZE(mqis_reg), false, regs_mqis_query, NULL},
    {PRM_REG_ID_MPCNT, PRM_SIZE(mpcnt_reg), false, regs_mpcnt_query, NULL},
    {PRM_REG_ID_MCAM, PRM_SIZE(mcam_reg), false, regs_mcam_query, NULL},
    {PRM_REG_ID_DTOR, PRM_SIZE(dtor_reg), false, regs_dtor_query, NULL},
    {0},
};
