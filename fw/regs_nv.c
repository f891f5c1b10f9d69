/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Registers of the configuration that a card stores (mlxconfig): which items exist, and their
 * values.
 *
 * The device stores nothing: its configuration was given before it was powered on. Therefore each
 * item can be read but not changed, and its default value, its present value and its value after
 * the next reset are the same. Only items that say something about this device exist. It has no
 * virtual functions, so the items about these are missing, as on a card without them
 * (nv_global_pci_cap.sriov_support).
 */
#include <string.h>
#include "fw/regs.h"
#include "model/port/eswitch.h"

#define MIB (1u << 20)

static void nv_base_mac_guid(const struct fw *fw, void *data)
{
    PRM_SET(nv_base_mac_guid, data, base_mac, regs_base_mac(fw));
    PRM_SET(nv_base_mac_guid, data, base_guid, regs_first_vport(fw)->node_guid);
}

static void nv_base_mac_guid_cap(const struct fw *fw, void *data)
{
    PRM_SET(nv_base_mac_guid_cap, data, mac_en, 1);
    PRM_SET(nv_base_mac_guid_cap, data, guid_en, 1);
    PRM_SET(nv_base_mac_guid_cap, data, num_of_allocated_macs, fw->hca.vport->sw->num_vports);
    PRM_SET(nv_base_mac_guid_cap, data, num_of_allocated_guids, fw->hca.vport->sw->num_vports);
}

static void nv_vpi_link_type(const struct fw *fw, void *data)
{
    PRM_SET(nv_vpi_link_type, data, default_link_type, PRM_NV_LINK_TYPE_ETH);
}

static uint32_t nv_log_bar_mib(const struct fw *fw)
{
    return (uint32_t)g_bit_nth_msf((gulong)(fw->profile->pci.bar_size / MIB), -1);
}

static void nv_global_pci_conf(const struct fw *fw, void *data)
{
    PRM_SET(nv_global_pci_conf, data, num_pfs_valid, 1);
    PRM_SET(nv_global_pci_conf, data, num_pfs, fw->hca.vport->sw->num_functions);
    PRM_SET(nv_global_pci_conf, data, num_pf_msix_valid, 1);
    PRM_SET(nv_global_pci_conf, data, num_pf_msix, fw->hca.limits.num_msix - 1);
    PRM_SET(nv_global_pci_conf, data, pf_bar_size_valid, 1);
    PRM_SET(nv_global_pci_conf, data, log_pf_uar_bar_size, nv_log_bar_mib(fw));
}

static void nv_global_pci_cap(const struct fw *fw, void *data)
{
    PRM_SET(nv_global_pci_cap, data, num_pfs_supported, 1);
    PRM_SET(nv_global_pci_cap, data, max_num_pfs, fw->hca.vport->sw->num_functions);
    PRM_SET(nv_global_pci_cap, data, num_pf_msix_supported, 1);
    PRM_SET(nv_global_pci_cap, data, max_num_pf_msix, fw->hca.limits.num_msix - 1);
    PRM_SET(nv_global_pci_cap, data, pf_bar_size_supported, 1);
    PRM_SET(nv_global_pci_cap, data, max_log_pf_uar_bar_size, nv_log_bar_mib(fw));
}

#define ITEM(class, param, layout)                                                                 \
    {                                                                                              \
        PRM_NV_CLASS_##class, PRM_NV_PARAM_##param, PRM_SIZE(layout), layout                       \
    }

static const struct nv_item {
    uint8_t class;
    uint16_t param;
    uint16_t bytes;
    void (*fill)(const struct fw *fw, void *data); /* data is zeroed */
} items[] = {
    ITEM(GLOBAL, BASE_MAC_GUID, nv_base_mac_guid),
    ITEM(GLOBAL, BASE_MAC_GUID_CAP, nv_base_mac_guid_cap),
    ITEM(GLOBAL, GLOBAL_PCI_CONF, nv_global_pci_conf),
    ITEM(GLOBAL, GLOBAL_PCI_CAP, nv_global_pci_cap),
    ITEM(PORT, VPI_LINK_TYPE, nv_vpi_link_type),
};

/* NULL: there is no such item. */
static const struct nv_item *regs_nv_find(const struct fw *fw, const void *type)
{
    uint32_t class = PRM_GET(nv_type, type, param_class), port = PRM_GET(nv_type, type, port);

    if (port != (class == PRM_NV_CLASS_PORT ? fw_uplink(fw)->number : 0)) {
        return NULL;
    }
    for (size_t i = 0; i < G_N_ELEMENTS(items); i++) {
        if (items[i].class == class && items[i].param == PRM_GET(nv_type, type, param_idx)) {
            return &items[i];
        }
    }
    return NULL;
}

static enum syn regs_nvqc_query(struct fw *fw, const void *in, void *out)
{
    const void *type = PRM_PTR(mnvqc_reg, in, type);

    memcpy(PRM_PTR(mnvqc_reg, out, type), type, PRM_SIZE(nv_type));
    PRM_SET(mnvqc_reg, out, support_rd, regs_nv_find(fw, type) != NULL);
    return SYN_OK;
}

static enum syn regs_nvgc_query(struct fw *fw, const void *in, void *out)
{
    PRM_SET(mnvgc_reg, out, nvda_read_current_settings, 1);
    PRM_SET(mnvgc_reg, out, nvda_read_factory_settings, 1);
    return SYN_OK;
}

static enum syn regs_nvda_query(struct fw *fw, const void *in, void *out)
{
    const struct nv_item *item = regs_nv_find(fw, PRM_PTR(mnvda_reg, in, type));

    if (!item) {
        return SYN_NO_NV_ITEM;
    }
    if (PRM_GET(mnvda_reg, in, length) < item->bytes) {
        return SYN_REG_VALUE;
    }
    memcpy(out, in, PRM_OFFSET(mnvda_reg, data));
    PRM_SET(mnvda_reg, out, length, item->bytes);
    item->fill(fw, PRM_PTR(mnvda_reg, out, data));
    return SYN_OK;
}

const struct fw_reg regs_nv[] = {
    {PRM_REG_ID_NVQC, PRM_SIZE(mnvqc_reg), false, regs_nvqc_query, NULL},
    {PRM_REG_ID_NVGC, PRM_SIZE(mnvgc_reg), false, regs_nvgc_query, NULL},
    {PRM_REG_ID_NVDA, PRM_SIZE(mnvda_reg), false, regs_nvda_query, NULL},
    {0},
};
