/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A port on a shared-memory segment; see wire/open.h for what a segment does.
 */
#ifndef HCASIM_WIRE_SHM_SHM_H
#define HCASIM_WIRE_SHM_SHM_H

#include "wire/port.h"

#include <glib.h>

/* Joins the segment whose file is path. own_only: fails if the file belongs to another user. */
struct wire_port *wire_shm_open(const char *path, bool own_only, GError **err);

/* Removes the segments in dir that killed processes left behind and whose names begin with
 * prefix. Adds the paths of the removed files to `removed`, which may be NULL. */
void wire_shm_sweep(const char *dir, const char *prefix, GPtrArray *removed);

#endif
