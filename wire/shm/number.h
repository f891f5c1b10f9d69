/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Numbers on a shared-memory segment; see wire/open.h for what a number is.
 */
#ifndef HCASIM_WIRE_SHM_NUMBER_H
#define HCASIM_WIRE_SHM_NUMBER_H

#include "wire/open.h"

/* Implements wire_number_take() for the segment whose file is path. */
struct wire_number *wire_shm_number_take(const char *path, bool own_only, unsigned wanted,
                                         GError **err);
/* Implements wire_number_look() for that segment. */
unsigned wire_shm_number_look(const char *path, unsigned beyond);

#endif
