/* SPDX-License-Identifier: BSD-2-Clause */
/* What the driver's files share among themselves. */
#ifndef HCASIM_GUEST_LIB_DRV_DRV_INTERNAL_H
#define HCASIM_GUEST_LIB_DRV_DRV_INTERNAL_H

#include "guest-lib/drv/drv.h"

/* A doorbell record of its own cache line, never given back before drv_close(). */
uint32_t *drv_new_db(struct drv *drv, uint64_t *bus);

static inline size_t drv_pages(size_t size)
{
    return (size + PCI_PAGE - 1) / PCI_PAGE;
}

/* Writes the page list of mem to a command's pas[]. */
void drv_set_pas(uint8_t *pas, const struct drv_mem *mem);

/* Ends the UMR queue (drv_umr.c), if there is one. */
void drv_umr_close(struct drv *drv);

#endif
