/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The device's property "control": its control socket (wire/control, fw/control.h), which QEMU's
 * main loop serves.
 */
#ifndef HCASIM_QEMU_DEV_CONTROL_H
#define HCASIM_QEMU_DEV_CONTROL_H

#include "qemu-dev/compat.h"
#include "fw/control.h"

struct control;

struct hcasim_control {
    struct control *server; /* NULL: the device has no control socket */
    struct fw_control commands;
};

/* Listens at path. device and wire live as long as the device; wire may be NULL. False with
 * *errp. */
bool hcasim_control_init(struct hcasim_control *c, const char *path, struct fw *fw,
                         const char *device, const char *wire, Error **errp);
/* Removes the socket, if there is one. To be called before the firmware ends. */
void hcasim_control_end(struct hcasim_control *c);

#endif
