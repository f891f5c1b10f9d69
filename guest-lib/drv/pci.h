/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A PCI function as a user-space driver sees it: BAR0, DMA memory, and waiting.
 *
 * The driver half of guest-lib accesses its device only through this table. So the same driver runs
 * an HCA in the process (guest-lib/host/inproc.h) and can run a real function.
 */
#ifndef HCASIM_GUEST_LIB_DRV_PCI_H
#define HCASIM_GUEST_LIB_DRV_PCI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pci_ops {
    /* BAR0 registers, big-endian as fw/fw.h says: value is the register's number. */
    uint64_t (*mmio_read)(void *pci, uint64_t offset, unsigned size);
    void (*mmio_write)(void *pci, uint64_t offset, uint64_t value, unsigned size);
    /* Zeroed memory, page aligned, size rounded up to pages. *bus is its bus address. */
    void *(*dma_alloc)(void *pci, size_t size, uint64_t *bus);
    void (*dma_free)(void *pci, void *ptr, size_t size);
    /* Lets the device work. False: it was idle for timeout_ns, with nothing to do. */
    bool (*wait)(void *pci, uint64_t timeout_ns);
    uint64_t (*now)(void *pci); /* nanoseconds */
};

struct pci_dev {
    const struct pci_ops *ops;
    void *pci;
};

#define PCI_PAGE 4096u

#endif
