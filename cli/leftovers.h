/* SPDX-License-Identifier: BSD-2-Clause */
/* Removes the files that killed programs left: wires on which no host lives, and files of /sys. */
#ifndef HCASIM_CLI_LEFTOVERS_H
#define HCASIM_CLI_LEFTOVERS_H

#include <glib.h>

/* Adds the paths of what was removed to `removed` (freed with g_free()), which may be NULL. */
void leftovers_remove(GPtrArray *removed);

#endif
