/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Power management, PCI Express and the extended capabilities (qemu-dev/config.h). */
#include "qemu-dev/config.h"
#include "hw/pci/pcie.h"
#include "qapi/error.h"

/* Offsets of the capabilities, as on ConnectX cards. */
#define CAP_PM      0x40
#define CAP_EXPRESS 0x60
#define CAP_AER     0x100
#define CAP_ARI     0x150
#define CAP_SECPCI  0x1c0

/* Bits 2:0 of PCI_PM_PMC: version 1.2 of the specification. */
#define PM_VERSION 3

/* Secondary PCI Express: link control 3, lane errors, then 2 bytes of equalization per lane. */
#define SECPCI_VERSION       1
#define SECPCI_SIZEOF(lanes) (0x0c + 2 * (lanes))

/* QEMU's default is the slowest possible link. A speed is the number of its generation (PCI Express
 * 5.0, 7.5.3.6). Each card also supports the slower speeds: bits of LNKCAP2, from bit 1 on. */
static void config_init_link(PCIDevice *dev, const struct fw_pci_id *id)
{
    unsigned speed = id->link_speed, width = id->link_width;
    uint8_t *cap = dev->config + dev->exp.exp_cap;

    if (pcie_cap_get_type(dev) != PCI_EXP_TYPE_ENDPOINT) {
        return;
    }
    pci_long_test_and_clear_mask(cap + PCI_EXP_LNKCAP, PCI_EXP_LNKCAP_SLS | PCI_EXP_LNKCAP_MLW);
    pci_long_test_and_set_mask(cap + PCI_EXP_LNKCAP,
                               QEMU_PCI_EXP_LNKCAP_MLS(speed) | QEMU_PCI_EXP_LNKCAP_MLW(width));
    pci_word_test_and_clear_mask(cap + PCI_EXP_LNKSTA, PCI_EXP_LNKSTA_CLS | PCI_EXP_LNKSTA_NLW);
    pci_word_test_and_set_mask(cap + PCI_EXP_LNKSTA,
                               QEMU_PCI_EXP_LNKSTA_CLS(speed) | QEMU_PCI_EXP_LNKSTA_NLW(width));
    pci_long_test_and_set_mask(cap + PCI_EXP_LNKCAP2, ((1u << speed) - 1) << 1);
    pci_word_test_and_set_mask(cap + PCI_EXP_LNKCTL2, speed);
}

static bool config_init_pm(PCIDevice *dev, Error **errp)
{
    int pm = compat_pm_init(dev, CAP_PM, errp);

    if (pm < 0) {
        return false;
    }
    pci_set_word(dev->config + pm + PCI_PM_PMC, PM_VERSION);
    pci_set_word(dev->config + pm + PCI_PM_CTRL, PCI_PM_CTRL_NO_SOFT_RESET);
    pci_set_word(dev->wmask + pm + PCI_PM_CTRL, PCI_PM_CTRL_STATE_MASK);
    return true;
}

/*
 * The other capabilities that PCI Express requires of such a device. ARI: there is no function
 * after this one. Secondary PCI Express is required for 8 GT/s; its registers are for the port
 * above the link.
 */
static void config_init_extended(PCIDevice *dev, const struct fw_pci_id *id)
{
    pcie_add_capability(dev, PCI_EXT_CAP_ID_ARI, PCI_ARI_VER, CAP_ARI, PCI_ARI_SIZEOF);
    pcie_add_capability(dev, PCI_EXT_CAP_ID_SECPCI, SECPCI_VERSION, CAP_SECPCI,
                        SECPCI_SIZEOF(id->link_width));
}

bool config_init(PCIDevice *dev, const struct fw_pci_id *id, Error **errp)
{
    if (!config_init_pm(dev, errp)) {
        return false;
    }
    if (pcie_endpoint_cap_init(dev, CAP_EXPRESS) < 0) {
        error_setg(errp, "hcasim: no room for the PCI Express capability");
        return false;
    }
    config_init_link(dev, id);
    pcie_cap_deverr_init(dev); /* lets the system enable error reporting */
    pcie_cap_flr_init(dev);
    if (pcie_aer_init(dev, PCI_ERR_VER, CAP_AER, PCI_ERR_SIZEOF, errp) < 0) {
        return false;
    }
    config_init_extended(dev, id);
    return true;
}

#define COMPLETES (PCI_EXP_DEVCAP2_ATOMIC_COMP32 | PCI_EXP_DEVCAP2_ATOMIC_COMP64)

/* The root port's device capabilities 2. NULL: the function is not behind a root port. */
static uint8_t *config_port_devcap2(PCIDevice *dev)
{
    PCIDevice *port = pci_get_bus(dev)->parent_dev;

    if (!port || !port->exp.exp_cap || pcie_cap_get_type(port) != PCI_EXP_TYPE_ROOT_PORT) {
        return NULL;
    }
    return port->config + port->exp.exp_cap + PCI_EXP_DEVCAP2;
}

bool config_init_atomics(PCIDevice *dev)
{
    uint8_t *port = config_port_devcap2(dev);

    pci_word_test_and_set_mask(dev->wmask + dev->exp.exp_cap + PCI_EXP_DEVCTL2,
                               PCI_EXP_DEVCTL2_ATOMIC_REQ);
    if (!port || pci_get_long(port) & COMPLETES) {
        return false;
    }
    pci_long_test_and_set_mask(port, COMPLETES);
    return true;
}

void config_exit_atomics(PCIDevice *dev)
{
    uint8_t *port = config_port_devcap2(dev);

    if (port) {
        pci_long_test_and_clear_mask(port, COMPLETES);
    }
}

void config_reset(PCIDevice *dev)
{
    if (dev->exp.exp_cap) {
        pcie_cap_deverr_reset(dev);
        pci_word_test_and_clear_mask(dev->config + dev->exp.exp_cap + PCI_EXP_DEVCTL2,
                                     PCI_EXP_DEVCTL2_ATOMIC_REQ);
    }
}

void config_exit(PCIDevice *dev)
{
    if (dev->exp.aer_cap) {
        pcie_aer_exit(dev);
    }
    if (dev->exp.exp_cap) {
        pcie_cap_exit(dev);
    }
}

uint32_t config_link(const PCIDevice *dev)
{
    return pci_get_long(dev->config + dev->exp.exp_cap + PCI_EXP_LNKCAP);
}

void config_reading(PCIDevice *dev, uint32_t link)
{
    pci_set_long(dev->config + dev->exp.exp_cap + PCI_EXP_LNKCAP, link);
}

void config_written(PCIDevice *dev, uint32_t addr, uint32_t val, int len)
{
    pcie_cap_flr_write_config(dev, addr, val, len);
    pcie_aer_write_config(dev, addr, val, len);
}
