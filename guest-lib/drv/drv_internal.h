/* SPDX-License-Identifier: BSD-2-Clause */
/* What the driver's files share. */
#ifndef HCASIM_GUEST_LIB_DRV_DRV_INTERNAL_H
#define HCASIM_GUEST_LIB_DRV_DRV_INTERNAL_H

#include "guest-lib/drv/drv.h"

/* Doorbell records (drv_db.c): allocates a zeroed record in a cache line of its own; frees one. */
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

/* Pages for the firmware (drv.c). drv_give_pages(): gives n pages to it. drv_reclaim_pages(): asks
 * for up to n pages and returns how many came back. */
int drv_give_pages(struct drv *drv, uint32_t n);
uint32_t drv_reclaim_pages(struct drv *drv, uint32_t n);

/* Event queues (drv_eq.c). drv_destroy_eqs() destroys those that were made; after that,
 * drv_free_eqs() frees their memory. */
int drv_create_async_eq(struct drv *drv);
void drv_destroy_eqs(struct drv *drv);
void drv_free_eqs(struct drv *drv);

/* Ends the UMR queue (drv_umr.c), if there is one. */
void drv_umr_close(struct drv *drv);

#endif
