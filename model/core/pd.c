/* SPDX-License-Identifier: BSD-2-Clause */
/* Protection, transport and XRC domains: numbers with an owner and users. */
#include "model/core/pd.h"

static enum syn pd_number_alloc(struct hca *hca, enum obj_kind kind, uint16_t uid, size_t size,
                                uint32_t *num)
{
    struct obj *obj = obj_make(hca, kind, uid, size);

    if (!obj) {
        return SYN_NO_MEMORY;
    }
    *num = obj->num;
    return SYN_OK;
}

enum syn obj_dealloc(struct hca *hca, struct obj_table *table, uint16_t uid, uint32_t num,
                     enum syn none)
{
    struct obj *obj = obj_find(table, num);

    if (!obj) {
        return none;
    }
    if (!uid_owns(obj, uid)) {
        return SYN_BAD_UID;
    }
    if (obj->refs) {
        return SYN_IN_USE;
    }
    obj_end(hca, obj);
    return SYN_OK;
}

enum syn pd_alloc(struct hca *hca, uint16_t uid, uint32_t *pdn)
{
    return pd_number_alloc(hca, OBJ_PD, uid, sizeof(struct obj), pdn);
}

enum syn pd_dealloc(struct hca *hca, uint16_t uid, uint32_t pdn)
{
    return obj_dealloc(hca, &hca->pds, uid, pdn, SYN_NO_PD);
}

enum syn td_alloc(struct hca *hca, uint16_t uid, uint32_t *tdn)
{
    return pd_number_alloc(hca, OBJ_TD, uid, sizeof(struct td), tdn);
}

enum syn td_dealloc(struct hca *hca, uint16_t uid, uint32_t tdn)
{
    return obj_dealloc(hca, &hca->tds, uid, tdn, SYN_NO_TD);
}

enum syn xrcd_alloc(struct hca *hca, uint16_t uid, uint32_t *xrcdn)
{
    return pd_number_alloc(hca, OBJ_XRCD, uid, sizeof(struct obj), xrcdn);
}

enum syn xrcd_dealloc(struct hca *hca, uint16_t uid, uint32_t xrcdn)
{
    return obj_dealloc(hca, &hca->xrcds, uid, xrcdn, SYN_NO_XRCD);
}
