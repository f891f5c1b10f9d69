/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The getter and the setter of the device's property "health". */
#ifndef HCASIM_QEMU_DEV_HEALTH_H
#define HCASIM_QEMU_DEV_HEALTH_H

#include "fw/fw.h"
#include "qemu-dev/compat.h"

/* Returns the device's health as text, which the caller frees. fw may be NULL: the device is not
 * realized. */
char *hcasim_health_get(const struct fw *fw);
void hcasim_health_set(struct fw *fw, const char *value, Error **errp);

#endif
