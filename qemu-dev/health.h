/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What stands behind the device's property "health". */
#ifndef HCASIM_QEMU_DEV_HEALTH_H
#define HCASIM_QEMU_DEV_HEALTH_H

#include "fw/fw.h"
#include "qemu-dev/compat.h"

/* The caller frees it. fw may be NULL: not realized. */
char *hcasim_health_get(const struct fw *fw);
void hcasim_health_set(struct fw *fw, const char *value, Error **errp);

#endif
