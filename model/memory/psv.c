/* SPDX-License-Identifier: BSD-2-Clause */
/* Creates, finds and destroys signature values. */
#include "model/memory/psv.h"
#include "model/core/pd.h"

struct psv *psv_find(struct hca *hca, uint32_t psvn, uint32_t pdn)
{
    struct psv *psv = (struct psv *)obj_find(&hca->psvs, psvn);

    return psv && psv->pd->num == pdn ? psv : NULL;
}

void psv_set(struct hca *hca, struct psv *psv, uint64_t value)
{
    psv->value = value;
    psv->stamp = ++hca->psv_stamp;
}

void psv_free(struct hca *hca, struct obj *obj)
{
    obj_unref(obj, ((struct psv *)obj)->pd);
    obj_end(hca, obj);
}

enum syn psv_destroy(struct hca *hca, uint16_t uid, uint32_t psvn)
{
    struct obj *obj = obj_find(&hca->psvs, psvn);

    if (!obj) {
        return SYN_NO_PSV;
    }
    if (!uid_owns(obj, uid)) {
        return SYN_BAD_UID;
    }
    psv_free(hca, obj);
    return SYN_OK;
}

static enum syn psv_create_one(struct hca *hca, uint16_t uid, struct obj *pd, uint32_t *psvn)
{
    struct psv *psv = obj_make(hca, OBJ_PSV, uid, sizeof(*psv));

    if (!psv) {
        return SYN_NO_MEMORY;
    }
    psv->pd = pd;
    obj_ref(&psv->obj, pd);
    psv_set(hca, psv, 0);
    *psvn = psv->obj.num;
    return SYN_OK;
}

enum syn psv_create(struct hca *hca, uint16_t uid, uint32_t pdn, uint32_t n, uint32_t psvn[PSV_MAX])
{
    struct obj *pd = obj_find(&hca->pds, pdn);
    enum syn syn = n == 0 || n > PSV_MAX ? SYN_PSV_COUNT : uid_check(pd, uid, SYN_NO_PD);

    for (uint32_t i = 0; i < n && !syn; i++) {
        syn = psv_create_one(hca, uid, pd, &psvn[i]);
        for (; syn && i; i--) {
            psv_destroy(hca, uid, psvn[i - 1]);
        }
    }
    return syn;
}
