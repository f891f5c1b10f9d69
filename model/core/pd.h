/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Objects that are only numbers which others refer to: protection domains, transport domains, XRC
 * domains.
 *
 * An object that refers to a domain counts in the domain's obj.refs. Deallocation fails while the
 * count is not 0 (PRM, the ALLOC_/DEALLOC_ commands of each).
 */
#ifndef HCASIM_MODEL_PD_H
#define HCASIM_MODEL_PD_H

#include "model/core/hca.h"

/* Objects of this uid may be used by every user context (the driver's MLX5_SHARED_RESOURCE_UID). */
#define UID_SHARED 0xffff

/* Whether a command of user context uid may name obj. The kernel (0) may name every object; a user
 * context may name an object that it created or that is shared. */
static inline bool uid_may_use(const struct obj *obj, uint16_t uid)
{
    return uid == 0 || uid == UID_SHARED || obj->uid == uid || obj->uid == UID_SHARED;
}

/* The same as a syndrome: SYN_BAD_UID if uid may not name obj; none if obj is NULL. */
static inline enum syn uid_check(const struct obj *obj, uint16_t uid, enum syn none)
{
    return !obj ? none : uid_may_use(obj, uid) ? SYN_OK : SYN_BAD_UID;
}

/* Whether a command of user context uid may modify or destroy obj: the kernel and the context that
 * created obj may. */
static inline bool uid_owns(const struct obj *obj, uint16_t uid)
{
    return uid == 0 || obj->uid == uid;
}

/* A transport domain. It decides which TIRs receive what the domain's own queues send
 * (model/eth/tir.c). */
struct td {
    struct obj obj;     /* refs: TIRs and TISs */
    uint32_t tirs;      /* number of the domain's TIRs */
    uint32_t listening; /* number of the domain's TIRs that take its own multicasts */
};

/* Destroys an object that owns no others. It must belong to uid (else SYN_BAD_UID), and no object
 * may name it (else SYN_IN_USE). none: the syndrome for a number that no object has. */
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
