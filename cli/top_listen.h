/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes the socket at which `hcasim top --prometheus` is asked. */
#ifndef HCASIM_CLI_TOP_LISTEN_H
#define HCASIM_CLI_TOP_LISTEN_H

#include <glib.h>

/* Listens at /PATH, a Unix socket for this user alone, or at HOST:PORT. -1: *err. */
int top_listen(const char *address, GError **err);

#endif
