/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The parts of configuration space that lspci shows, other than the BAR, MSI-X, VPD and the
 * vendor's gateway: power management, PCI Express and its link, and the extended capabilities. All
 * of it is as on a ConnectX-5, with two exceptions: SR-IOV is unsupported, and ACS is absent,
 * because a single-function device must not have it (PCI Express 3.0, 6.12). Later generations have
 * a faster link, but not the capabilities that PCI Express 4.0 and 5.0 add.
 */
#ifndef HCASIM_QEMU_DEV_CONFIG_H
#define HCASIM_QEMU_DEV_CONFIG_H

#include "qemu-dev/compat.h"
#include "fw/fw.h"

/* Adds the capabilities. False: *errp says why; some capabilities may have been added. */
bool config_init(PCIDevice *dev, const struct fw_pci_id *id, Error **errp);
/* Removes the capabilities that config_init() has added, all or some. */
void config_exit(PCIDevice *dev);

/* To be called after config_init(). Lets the function request atomics (DEVCTL2), and lets the root
 * port above it report that memory supports atomics of 4 and 8 bytes: a driver checks this before
 * it enables them. True: the port did not report it before. */
bool config_init_atomics(PCIDevice *dev);
/* Makes the port stop reporting it. */
void config_exit_atomics(PCIDevice *dev);
/* To be called when the function is reset. */
void config_reset(PCIDevice *dev);

/* The value of LNKCAP after config_init(). */
uint32_t config_link(const PCIDevice *dev);
/* To be called before configuration space is read. Restores LNKCAP: when QEMU 7.2 injects an
 * uncorrectable error (pcie_aer_inject_error), it writes four bytes of device status, which has
 * only two, and so overwrites LNKCAP. */
void config_reading(PCIDevice *dev, uint32_t link);
/* To be called after configuration space was written. */
void config_written(PCIDevice *dev, uint32_t addr, uint32_t val, int len);

#endif
