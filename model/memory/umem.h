/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * User memory (DevX): pages of a process in which rings and doorbell records can lie, and of which
 * keys are made. The kernel lets go of the pages when DESTROY_UMEM has succeeded: whatever has
 * their bus addresses names the umem until then (model/core/obj_classes.def).
 */
#ifndef HCASIM_MODEL_UMEM_H
#define HCASIM_MODEL_UMEM_H

#include "model/core/hca.h"
#include "model/memory/mem.h"

struct umem {
    struct obj obj;
    struct mtt *mtt;      /* its umem is this one */
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
