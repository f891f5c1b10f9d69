/* SPDX-License-Identifier: BSD-2-Clause */
/* What the driver's files share among themselves. */
#ifndef HCASIM_GUEST_LIB_DRV_DRV_INTERNAL_H
#define HCASIM_GUEST_LIB_DRV_DRV_INTERNAL_H

#include "guest-lib/drv/drv.h"

/* Doorbell records (drv_db.c): zeroed, in a cache line of its own; given back. */
uint32_t *drv_new_db(struct drv *drv, uint64_t *bus);
void drv_free_db(struct drv *drv, uint32_t *rec, uint64_t bus);
void drv_init_dbs(struct drv *drv);
void drv_close_dbs(struct drv *drv);

static inline size_t drv_pages(size_t size)
{
    return (size + PCI_PAGE - 1) / PCI_PAGE;
}

/* Writes the page list of mem to a command's pas[]. */
void drv_set_pas(uint8_t *pas, const struct drv_mem *mem);

/* Pages for the firmware (drv.c): gives it n; asks for up to n and returns how many came. */
int drv_give_pages(struct drv *drv, uint32_t n);
uint32_t drv_reclaim_pages(struct drv *drv, uint32_t n);

/* Event queues (drv_eq.c). Those that were made are destroyed; then their memory is given back. */
int drv_create_async_eq(struct drv *drv);
void drv_destroy_eqs(struct drv *drv);
void drv_free_eqs(struct drv *drv);

/* Ends the UMR queue (drv_umr.c), if there is one. */
void drv_umr_close(struct drv *drv);

#endif
