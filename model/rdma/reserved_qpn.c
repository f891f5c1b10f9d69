/* SPDX-License-Identifier: BSD-2-Clause */
/* Keeps ranges of reserved QP numbers, as objects whose number is the range's first number. */
#include "model/rdma/reserved_qpn.h"

enum syn reserved_qpn_create(struct hca *hca, uint16_t uid, const void *nothing, uint32_t *first)
{
    struct obj *range;

    (void)nothing;
    if (hca->reserved_qpns.count >= hca->qpns.end / RESERVED_QPNS / 2) {
        return SYN_NO_MEMORY;
    }
    range = obj_new(hca, OBJ_RESERVED_QPN, uid, sizeof(*range));
    if (!range) {
        return SYN_NO_MEMORY;
    }
    if (!obj_reserve(&hca->qpns, first)) {
        obj_free(hca, range);
        return SYN_NO_MEMORY;
    }
    if (!obj_insert_at(&hca->reserved_qpns, range, *first)) {
        obj_unreserve(&hca->qpns, *first);
        obj_free(hca, range);
        return SYN_NO_MEMORY;
    }
    return SYN_OK;
}

void reserved_qpn_free(struct hca *hca, struct obj *obj)
{
    obj_unreserve(&hca->qpns, obj->num);
    obj_end(hca, obj);
}
