/* SPDX-License-Identifier: BSD-2-Clause */
/* Looks at segments from outside; see wire/look.h. */
#ifndef HCASIM_WIRE_SHM_LOOK_H
#define HCASIM_WIRE_SHM_LOOK_H

#include "wire/look.h"

/* Describes the file at path. NULL: there is none, or it is the FIFO of a member whose segment is
 * there. */
struct wire_view *wire_shm_look(const char *path, const char *name);

/* Finds the processes of all tenants of these views: one search through /proc. */
void wire_shm_find_processes(const GPtrArray *views);

#endif
