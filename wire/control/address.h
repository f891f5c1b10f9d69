/* SPDX-License-Identifier: BSD-2-Clause */
/* The address of a control socket, and whether a process listens there. */
#ifndef HCASIM_WIRE_CONTROL_ADDRESS_H
#define HCASIM_WIRE_CONTROL_ADDRESS_H

#include "wire/control/json.h"

#include <stdbool.h>
#include <sys/un.h>

/* False: *err says that the path is too long, or empty. */
bool control_address(struct sockaddr_un *at, const char *path, GError **err);

/* Whether the file is a socket at which no process listens any more. */
bool control_is_stale(const struct sockaddr_un *at);

#endif
