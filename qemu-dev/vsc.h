/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The card's vendor specific capability: a gateway in configuration space. Through it the driver
 * takes semaphores and could dump the card's registers, and Mellanox's tools identify the chip and
 * access registers.
 */
#ifndef HCASIM_QEMU_DEV_VSC_H
#define HCASIM_QEMU_DEV_VSC_H

#include "qemu-dev/compat.h"

#include "fw/fw.h"

#define VSC_SEMAPHORES 64
#define VSC_MAILBOX    1024 /* bytes of a command of the gateway */

struct vsc {
    uint8_t cap; /* offset of the capability */
    uint32_t counter;
    uint32_t semaphores[VSC_SEMAPHORES]; /* in the semaphore space; 0: free */
    uint32_t command;                    /* control register of the command space */
    uint8_t mailbox[VSC_MAILBOX];        /* mailbox of the command space */
};

/* Adds the capability at an offset of configuration space. False: *errp says why. */
bool vsc_init(struct vsc *vsc, PCIDevice *dev, uint8_t offset, Error **errp);

/* Frees all semaphores and discards commands. */
void vsc_reset(struct vsc *vsc, PCIDevice *dev);

/* To be called before configuration space is read, and after it was written. */
void vsc_config_read(struct vsc *vsc, PCIDevice *dev, uint32_t addr, int len);
void vsc_config_write(struct vsc *vsc, PCIDevice *dev, struct fw *fw, uint32_t addr, uint32_t val,
                      int len);

#endif
