/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The firmware's own view of itself, for the files under fw/.
 */
#ifndef HCASIM_FW_FW_INTERNAL_H
#define HCASIM_FW_FW_INTERNAL_H

#include "fw/fw.h"
#include "model/hca.h"

struct fw {
    struct hca hca; /* the hardware */
};

#endif
