/* SPDX-License-Identifier: BSD-2-Clause */
/* The generated tables (prm_table.c), sorted by name. Only prm/reflect.c includes this. */
#ifndef HCASIM_PRM_TABLE_H
#define HCASIM_PRM_TABLE_H

#include "prm/reflect.h"

extern const struct prm_enum prm_enums[];
extern const size_t prm_n_enums;
extern const struct prm_struct prm_structs[];
extern const size_t prm_n_structs;

#endif
