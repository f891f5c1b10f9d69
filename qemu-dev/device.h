/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The device type hcasim, as the plugin's entry needs it.
 */
#ifndef HCASIM_QEMU_DEV_DEVICE_H
#define HCASIM_QEMU_DEV_DEVICE_H

/* Registers -device hcasim. Called once, before QEMU creates its devices. */
void hcasim_device_register(void);

/* Prints the device's properties with their descriptions to standard output. */
void hcasim_device_help(void);

#endif
