/* SPDX-License-Identifier: BSD-2-Clause */
/* Address handles: the kernel's part, which is to find the destination. */
#include "guest-lib/verbs/kernel/uverbs.h"

int uverbs_create_ah(struct hv_ah *ah, const struct ibv_ah_attr *attr, uint8_t mac[6])
{
    struct ibv_context *context = ah->ibv.context;
    int err = hv_resolve_mac(hv_context(context), attr->port_num, attr->grh.sgid_index,
                             &attr->grh.dgid, mac);

    if (err) {
        return hv_refuse_path(hv_context(context), err, "create_ah: ", attr);
    }
    err = hv_check_there(hv_hca_of(context));
    err = err ? err : hv_pd_check(ah->ibv.pd);
    if (!err) {
        ah->ibv.handle = hv_handle_add(context, HV_HANDLE_AH, ah);
        ah->pd = hv_real_pd(ah->ibv.pd);
        g_atomic_int_inc(&ah->pd->refs);
    }
    return err;
}

int uverbs_destroy_ah(struct hv_ah *ah)
{
    int err = hv_handle_check(ah->ibv.context, HV_HANDLE_AH, ah->ibv.handle, ah);

    if (!err) {
        hv_handle_del(ah->ibv.context, ah->ibv.handle);
        g_atomic_int_add(&ah->pd->refs, -1);
    }
    return err;
}
