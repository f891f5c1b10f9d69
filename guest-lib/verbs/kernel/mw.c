/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory windows: creates and destroys their keys. */
#include "guest-lib/verbs/kernel/mkey.h"
#include "guest-lib/verbs/kernel/odp.h"
#include "guest-lib/verbs/kernel/uverbs.h"

/* as in mlx5_ib_alloc_mw(): KLM entries of a window, of which one is used */
#define MW_KLMS 4

int uverbs_alloc_mw(struct hv_mw *mw, enum ibv_mw_type type)
{
    struct prm_create_mkey_in in[1] = {0};
    struct prm_mkc *mkc = PRM_PTR(create_mkey_in, in, memory_key_mkey_entry);
    int err = hv_pd_check(mw->ibv.pd);

    if (!err && type != IBV_MW_TYPE_1 && type != IBV_MW_TYPE_2) {
        err = hv_refuse(hv_hca_of(mw->ibv.context), EINVAL,
                        "alloc_mw: type is %u; it may be IBV_MW_TYPE_1 or IBV_MW_TYPE_2",
                        (unsigned)type);
    }
    if (err) {
        return err;
    }
    PRM_SET(mkc, mkc, free, 1);
    PRM_SET(mkc, mkc, translations_octword_size, MW_KLMS);
    PRM_SET(mkc, mkc, pd, mw->pd->pdn);
    PRM_SET(mkc, mkc, umr_en, 1);
    PRM_SET(mkc, mkc, lr, 1);
    PRM_SET(mkc, mkc, access_mode_1_0, PRM_MKC_ACCESS_MODE_KLMS);
    PRM_SET(mkc, mkc, en_rinval, type == IBV_MW_TYPE_2);
    PRM_SET(mkc, mkc, qpn, 0xffffff);
    err = hv_mkey_create(hv_hca_of(mw->ibv.context), in, sizeof(in), &mw->key);
    if (!err) {
        hv_odp_add_indirect(hv_hca_of(mw->ibv.context), mw->key, MW_KLMS);
        mw->ibv.handle = hv_handle_add(mw->ibv.context, HV_HANDLE_MW, mw);
        g_atomic_int_inc(&mw->pd->refs);
    }
    return err;
}

int uverbs_dealloc_mw(struct hv_mw *mw)
{
    struct ibv_context *context = mw->ibv.context;
    int err = hv_handle_check(context, HV_HANDLE_MW, mw->ibv.handle, mw);

    if (err) {
        return err;
    }
    hv_odp_del_indirect(hv_hca_of(context), mw->key);
    err = hv_mkey_destroy(hv_hca_of(context), mw->key);
    if (!err) {
        hv_handle_del(context, mw->ibv.handle);
        g_atomic_int_add(&mw->pd->refs, -1);
    }
    return err;
}
