/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * User memory (DevX): pages of a process that can hold rings and doorbell records, and that keys
 * are made of. The kernel releases the pages when DESTROY_UMEM has succeeded. Therefore every
 * object that has bus addresses of the pages references the umem until then
 * (model/core/obj_classes.def).
 */
#ifndef HCASIM_MODEL_UMEM_H
#define HCASIM_MODEL_UMEM_H

#include "model/core/hca.h"
#include "model/memory/mem.h"

struct umem {
    struct obj obj;
    struct mtt *mtt;      /* its page list, whose umem field names this umem */
    uint64_t page_offset; /* bytes from the first page's start to byte 0 */
    uint64_t size;        /* bytes */
};

/* NULL: no such umem. */
static inline struct umem *umem_find(const struct hca *hca, uint32_t id)
{
    return (struct umem *)obj_find(&hca->umems, id);
}

bool umem_trim(struct hca *hca, struct obj *obj);
void umem_free(struct hca *hca, struct obj *obj);

#endif
