/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reserved QP numbers: ranges that no QP gets a number of by itself. Who has reserved one may use
 * its numbers for what is no QP (a DC target behind RDMA-CM), or make QPs of them.
 */
#ifndef HCASIM_MODEL_RESERVED_QPN_H
#define HCASIM_MODEL_RESERVED_QPN_H

#include "model/core/hca.h"

/* Numbers of a range, which begins at a multiple of that. */
#define RESERVED_QPNS (1u << OBJ_LOG_RESERVED)

/* No more than half of all numbers can be reserved: the others are for who reserves none. */
static inline bool reserved_qpns_exist(const struct hca *hca)
{
    return hca->qpns.end >= 4 * RESERVED_QPNS;
}

/* CREATE_GENERAL_OBJECT, which says nothing about a range. SYN_NO_MEMORY: there is no more. *first
 * is the range's number, too, in hca->reserved_qpns. */
enum syn reserved_qpn_create(struct hca *hca, uint16_t uid, const void *nothing, uint32_t *first);
void reserved_qpn_free(struct hca *hca, struct obj *obj);

/* The range that a QP number is of, or NULL. QPs with such numbers are counted in its refs. */
static inline struct obj *reserved_qpn_find(const struct hca *hca, uint32_t qpn)
{
    return obj_find(&hca->reserved_qpns, qpn & ~(RESERVED_QPNS - 1));
}

#endif
