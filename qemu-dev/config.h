/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What lspci shows of the card beside its BAR, MSI-X, VPD and the vendor's gateway: power
 * management, PCI Express and its link, and the extended capabilities. All of it as on a
 * ConnectX-5, but for SR-IOV, which is not here, and ACS, which a function that has no other beside
 * it must not have (PCI Express 3.0, 6.12). Later generations have a faster link, and nothing of
 * what PCI Express 4.0 and 5.0 add beside it.
 */
#ifndef HCASIM_QEMU_DEV_CONFIG_H
#define HCASIM_QEMU_DEV_CONFIG_H

#include "qemu-dev/compat.h"
#include "fw/fw.h"

/* Adds the capabilities. False: *errp says why; some may be left. */
bool config_init(PCIDevice *dev, const struct fw_pci_id *id, Error **errp);
/* Takes back what config_init() has added, all of it or a part. */
void config_exit(PCIDevice *dev);

/* After config_init(): the function may ask for atomics (DEVCTL2), and the root port that it is
 * behind says that memory does them, 4 and 8 bytes: what a driver looks for before it enables
 * them. True: the port did not say so before. */
bool config_init_atomics(PCIDevice *dev);
/* The port does not say so any more. */
void config_exit_atomics(PCIDevice *dev);
/* The function is reset. */
void config_reset(PCIDevice *dev);

/* What LNKCAP is after config_init(). */
uint32_t config_link(const PCIDevice *dev);
/* To be called before configuration space is read: LNKCAP is what it was, although QEMU 7.2 writes
 * four bytes of device status, of which there are two, when it injects an uncorrectable error
 * (pcie_aer_inject_error). */
void config_reading(PCIDevice *dev, uint32_t link);
/* To be called after configuration space was written. */
void config_written(PCIDevice *dev, uint32_t addr, uint32_t val, int len);

#endif
