/* SPDX-License-Identifier: BSD-2-Clause */
/* Doorbell records: each has a cache line of its own, in pages that stay until the driver
 * closes. */
#include "guest-lib/drv/drv_internal.h"

#define RECORD 64u

struct drv_db {
    uint32_t *rec;
    uint64_t bus;
};

static void drv_add_db_page(struct drv *drv)
{
    struct drv_mem page = drv_alloc(drv, PCI_PAGE);

    g_array_append_val(drv->db_pages, page);
    for (uint32_t at = PCI_PAGE; at > 0; at -= RECORD) { /* the first one is taken first */
        struct drv_db db = {(uint32_t *)((uint8_t *)page.ptr + at - RECORD),
                            page.bus + at - RECORD};

        g_array_append_val(drv->free_dbs, db);
    }
}

uint32_t *drv_new_db(struct drv *drv, uint64_t *bus)
{
    struct drv_db db;

    if (!drv->free_dbs->len) {
        drv_add_db_page(drv);
    }
    db = g_array_index(drv->free_dbs, struct drv_db, drv->free_dbs->len - 1);
    g_array_set_size(drv->free_dbs, drv->free_dbs->len - 1);
    db.rec[0] = db.rec[1] = 0;
    *bus = db.bus;
    return db.rec;
}

void drv_free_db(struct drv *drv, uint32_t *rec, uint64_t bus)
{
    struct drv_db db = {rec, bus};

    g_array_append_val(drv->free_dbs, db);
}

void drv_init_dbs(struct drv *drv)
{
    drv->db_pages = g_array_new(FALSE, FALSE, sizeof(struct drv_mem));
    drv->free_dbs = g_array_new(FALSE, FALSE, sizeof(struct drv_db));
}

void drv_close_dbs(struct drv *drv)
{
    for (guint i = 0; i < drv->db_pages->len; i++) {
        drv_free(drv, &g_array_index(drv->db_pages, struct drv_mem, i));
    }
    g_array_free(drv->db_pages, TRUE);
    g_array_free(drv->free_dbs, TRUE);
}
