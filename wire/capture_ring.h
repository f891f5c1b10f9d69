/* SPDX-License-Identifier: BSD-2-Clause */
/* The files of a ring of captures: their names, and what becomes of the full and the old ones. All
 * calls belong into the turn of the file at path (wire/capture_file.c). */
#ifndef HCASIM_WIRE_CAPTURE_RING_H
#define HCASIM_WIRE_CAPTURE_RING_H

#include <stdbool.h>
#include "wire/capture_blocks.h"

/* The name under which the next file is made. */
char *capture_ring_next_name(const char *path);

/* Removes the oldest file if there are as many as the ring may have, gives the file at path, whose
 * record it is, the name of its number, and puts the file next into the place of path. There is a
 * file at path at any time. False: errno. */
bool capture_ring_advance(const char *path, const char *next, const struct capture_record *record);

/* Removes the older files of the ring whose newest file has this record. */
void capture_ring_remove(const char *path, const struct capture_record *record);

#endif
