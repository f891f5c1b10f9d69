/* SPDX-License-Identifier: BSD-2-Clause */
/* Ranges of reserved QP numbers: objects named by their first number. */
#include "model/core/pd.h"
#include "model/rdma/reserved_qpn.h"

enum syn reserved_qpn_create(struct hca *hca, uint16_t uid, uint32_t *first)
{
    struct obj *range;

    if (hca->reserved_qpns.count >= hca->qpns.end / RESERVED_QPNS / 2) {
        return SYN_NO_MEMORY;
    }
    range = obj_new(hca, OBJ_GENERAL_OBJECT, uid, sizeof(*range));
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

enum syn reserved_qpn_destroy(struct hca *hca, uint16_t uid, uint32_t first)
{
    struct obj *range = obj_find(&hca->reserved_qpns, first);

    if (!range) {
        return SYN_NO_GENERAL_OBJECT;
    }
    if (!uid_owns(range, uid)) {
        return SYN_BAD_UID;
    }
    if (range->refs) {
        return SYN_IN_USE;
    }
    reserved_qpn_free(hca, range);
    return SYN_OK;
}

void reserved_qpn_free(struct hca *hca, struct obj *obj)
{
    obj_unreserve(&hca->qpns, obj->num);
    obj_end(hca, obj);
}
