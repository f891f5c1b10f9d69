/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * DevX objects: user contexts (uid) and user memory (umem).
 */
#ifndef HCASIM_FW_DEVX_H
#define HCASIM_FW_DEVX_H

#include "fw/fw_internal.h"

/* User memory that rings and doorbell records can lie in. */
struct umem {
    struct obj obj;
    struct mtt *mtt;
    uint64_t page_offset; /* bytes from the first page's start to byte 0 */
    uint64_t size;        /* bytes */
};

/* NULL: no such umem. */
struct umem *devx_umem_find(const struct fw *fw, uint32_t id);

#endif
