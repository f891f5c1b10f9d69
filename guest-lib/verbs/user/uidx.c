/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * User indices: the numbers by which CQEs name their queue.
 *
 * Looking one up takes no lock. Chunks of the table stay until the context closes, so a reader of
 * an index that was just freed finds an empty entry, never freed memory.
 */
#include "guest-lib/verbs/user/user.h"

#define CHUNK_SIZE (1u << HV_UIDX_CHUNK_SHIFT)

/* The entry of an index; allocates its chunk if necessary. Under the table's lock. NULL: out of
 * memory. */
static struct hv_rsc *uidx_entry(struct hv_uidx_table *table, uint32_t uidx)
{
    struct hv_rsc *chunk = table->chunk[uidx >> HV_UIDX_CHUNK_SHIFT];

    if (!chunk) {
        chunk = calloc(CHUNK_SIZE, sizeof(*chunk));
        if (!chunk) {
            return NULL;
        }
        __atomic_store_n(&table->chunk[uidx >> HV_UIDX_CHUNK_SHIFT], chunk, __ATOMIC_RELEASE);
    }
    return &chunk[uidx & (CHUNK_SIZE - 1)];
}

int hv_uidx_alloc(struct hv_context *ctx, enum hv_rsc_type type, void *obj)
{
    struct hv_uidx_table *table = &ctx->uidx;
    int found = -1;

    pthread_mutex_lock(&table->lock);
    for (uint32_t tried = 0; tried < HV_UIDX_NONE && found < 0; tried++) {
        uint32_t uidx = (table->next + tried) % HV_UIDX_NONE;
        struct hv_rsc *rsc = uidx_entry(table, uidx);

        if (!rsc) {
            break;
        }
        if (rsc->type == HV_RSC_NONE) {
            rsc->obj = obj;
            __atomic_store_n(&rsc->type, type, __ATOMIC_RELEASE);
            table->next = (uidx + 1) % HV_UIDX_NONE;
            found = (int)uidx;
        }
    }
    pthread_mutex_unlock(&table->lock);
    if (found < 0) {
        errno = ENOMEM;
    }
    return found;
}

void hv_uidx_free(struct hv_context *ctx, uint32_t uidx)
{
    struct hv_uidx_table *table = &ctx->uidx;
    struct hv_rsc *rsc;

    pthread_mutex_lock(&table->lock);
    rsc = uidx_entry(table, uidx);
    if (rsc) {
        __atomic_store_n(&rsc->type, HV_RSC_NONE, __ATOMIC_RELEASE);
        rsc->obj = NULL;
        /* low numbers are used again, so that few chunks are needed */
        table->next = MIN(table->next, uidx);
    }
    pthread_mutex_unlock(&table->lock);
}

void hv_uidx_fini(struct hv_context *ctx)
{
    for (size_t i = 0; i < G_N_ELEMENTS(ctx->uidx.chunk); i++) {
        free(ctx->uidx.chunk[i]);
        ctx->uidx.chunk[i] = NULL;
    }
    ctx->uidx.next = 0;
}
