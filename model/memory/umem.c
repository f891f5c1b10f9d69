/* SPDX-License-Identifier: BSD-2-Clause */
/* User memory: see umem.h. It is made by fw/cmd_devx.c, part by part. */
#include "model/memory/umem.h"

bool umem_trim(struct hca *hca, struct obj *obj)
{
    (void)hca;
    ((struct umem *)obj)->size = 0; /* in case the command that destroys it is not repeated */
    return mtt_trim(((struct umem *)obj)->mtt);
}

void umem_free(struct hca *hca, struct obj *obj)
{
    struct umem *umem = (struct umem *)obj;

    mtt_unref(umem->mtt);
    obj_end(hca, obj);
}
