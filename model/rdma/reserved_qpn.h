/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reserved QP numbers: ranges of numbers that no QP gets automatically. The user that has reserved
 * a range may use its numbers for things that are not QPs (a DC target behind RDMA-CM), or create
 * QPs with them.
 */
#ifndef HCASIM_MODEL_RESERVED_QPN_H
#define HCASIM_MODEL_RESERVED_QPN_H

#include "model/core/hca.h"

/* Numbers in a range. A range begins at a multiple of it. */
#define RESERVED_QPNS (1u << OBJ_LOG_RESERVED)

/* At most half of all numbers can be reserved, so that enough are left for other QPs. */
static inline bool reserved_qpns_exist(const struct hca *hca)
{
    return hca->qpns.end >= 4 * RESERVED_QPNS;
}

/* CREATE_GENERAL_OBJECT; its input has no fields for a range. SYN_NO_MEMORY: no range is left.
 * *first is also the range's number in hca->reserved_qpns. */
enum syn reserved_qpn_create(struct hca *hca, uint16_t uid, const void *nothing, uint32_t *first);
void reserved_qpn_free(struct hca *hca, struct obj *obj);

/* The range that a QP number belongs to, or NULL. QPs with such numbers count in its refs. */
static inline struct obj *reserved_qpn_find(const struct hca *hca, uint32_t qpn)
{
    return obj_find(&hca->reserved_qpns, qpn & ~(RESERVED_QPNS - 1));
}

#endif
