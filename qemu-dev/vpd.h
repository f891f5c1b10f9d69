/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Vital product data: the card's name, its part number and its serial number, through two registers
 * of configuration space (PCI specification 3.0, 6.4 and appendix I).
 */
#ifndef HCASIM_QEMU_DEV_VPD_H
#define HCASIM_QEMU_DEV_VPD_H

#include "qemu-dev/compat.h"
#include "fw/fw.h"

#define VPD_BYTES 256

struct vpd {
    uint8_t cap; /* offset of the capability */
    uint8_t data[VPD_BYTES];
};

/* Adds the capability at an offset of configuration space. The serial number is derived from the
 * MAC address, so no two cards have the same. False: *errp says why. */
bool vpd_init(struct vpd *vpd, PCIDevice *dev, uint8_t offset, const struct fw_pci_id *id,
              const uint8_t mac[6], Error **errp);

/* To be called after configuration space was written. */
void vpd_config_write(const struct vpd *vpd, PCIDevice *dev, uint32_t addr, uint32_t val, int len);

#endif
