/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Objects that are no more than a number others refer to: protection domains, transport domains,
 * XRC domains.
 *
 * Who refers to one counts itself in obj.refs; deallocation fails while anybody does (PRM, the
 * ALLOC_/DEALLOC_ commands of each).
 */
#ifndef HCASIM_MODEL_PD_H
#define HCASIM_MODEL_PD_H

#include "model/core/hca.h"

/* Objects of this uid may be used by every user context (the driver's MLX5_SHARED_RESOURCE_UID). */
#define UID_SHARED 0xffff

/* Whether a command of user context uid may name obj: the kernel (0) may name everything, a user
 * what its context created or what is shared. */
static inline bool uid_may_use(const struct obj *obj, uint16_t uid)
{
    return uid == 0 || uid == UID_SHARED || obj->uid == uid || obj->uid == UID_SHARED;
}

/* The same as an answer: SYN_BAD_UID if it may not, none if there is no such object. */
static inline enum syn uid_check(const struct obj *obj, uint16_t uid, enum syn none)
{
    return !obj ? none : uid_may_use(obj, uid) ? SYN_OK : SYN_BAD_UID;
}

/* Whether it may modify or destroy obj: the kernel, and the context that created it. */
static inline bool uid_owns(const struct obj *obj, uint16_t uid)
{
    return uid == 0 || obj->uid == uid;
}

/* A transport domain: which TIRs take what its own queues send (model/eth/tir.c). */
struct td {
    struct obj obj;     /* refs: TIRs and TISs */
    uint32_t tirs;      /* of this domain */
    uint32_t listening; /* those of them that take its own multicasts */
};

/* What ends an object that holds no others: it must be uid's (SYN_BAD_UID) and named by none
 * (SYN_IN_USE). none: what it fails with if there is no such object. */
enum syn obj_dealloc(struct hca *hca, struct obj_table *table, uint16_t uid, uint32_t num,
                     enum syn none);

/* SYN_NO_MEMORY: all numbers are taken. */
enum syn pd_alloc(struct hca *hca, uint16_t uid, uint32_t *pdn);
enum syn pd_dealloc(struct hca *hca, uint16_t uid, uint32_t pdn);
enum syn td_alloc(struct hca *hca, uint16_t uid, uint32_t *tdn);
enum syn td_dealloc(struct hca *hca, uint16_t uid, uint32_t tdn);
enum syn xrcd_alloc(struct hca *hca, uint16_t uid, uint32_t *xrcdn);
enum syn xrcd_dealloc(struct hca *hca, uint16_t uid, uint32_t xrcdn);

#endif
