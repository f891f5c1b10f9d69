/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds the control sockets that a user names: one of them, or a folder of them. */
#ifndef HCASIM_CLI_SOCKETS_H
#define HCASIM_CLI_SOCKETS_H

#include <glib.h>

/* The sockets at a path, as paths: those of a folder in the order of their names, else the path
 * itself. Some may be of processes that have ended. NULL: *err. */
GPtrArray *sockets_find(const char *path, GError **err);

#endif
