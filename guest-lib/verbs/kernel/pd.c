/* SPDX-License-Identifier: BSD-2-Clause */
/* Protection domains and doorbell pages: commands. */
#include "guest-lib/verbs/kernel/uverbs.h"
#include "guest-lib/verbs/kernel/watch.h"

/* -- doorbell pages -----------------------------------------------------------------------------
 */

int hv_uar_alloc(struct hv_context *ctx, struct hv_uar *uar)
{
    struct prm_alloc_uar_in in[1] = {0};
    struct prm_alloc_uar_out out[1] = {0};
    int err;

    PRM_SET(alloc_uar_in, in, opcode, PRM_CMD_OP_ALLOC_UAR);
    PRM_SET(alloc_uar_in, in, uid, ctx->uid);
    err = hv_cmd(ctx->hca, in, sizeof(in), out, sizeof(out));
    uar->page = PRM_GET(alloc_uar_out, out, uar);
    uar->bf_toggle = 0;
    if (!err) {
        hv_watch_forget_uar(ctx->hca,
                            uar->page); /* of a user that has ended, together with its UARs */
    }
    return err;
}

void hv_uar_free(struct hv_context *ctx, struct hv_uar *uar)
{
    struct prm_dealloc_uar_in in[1] = {0};

    PRM_SET(dealloc_uar_in, in, opcode, PRM_CMD_OP_DEALLOC_UAR);
    PRM_SET(dealloc_uar_in, in, uid, ctx->uid);
    PRM_SET(dealloc_uar_in, in, uar, uar->page);
    hv_watch_forget_uar(ctx->hca, uar->page); /* before another UAR can get the number */
    hv_cmd_simple(ctx->hca, in, sizeof(in));
}

/* -- protection domains -------------------------------------------------------------------------
 */

int uverbs_alloc_pd(struct hv_pd *pd)
{
    struct hv_context *ctx = hv_context(pd->ibv.context);
    struct prm_alloc_pd_in in[1] = {0};
    struct prm_alloc_pd_out out[1] = {0};
    int err;

    PRM_SET(alloc_pd_in, in, opcode, PRM_CMD_OP_ALLOC_PD);
    PRM_SET(alloc_pd_in, in, uid, ctx->uid);
    err = hv_cmd(ctx->hca, in, sizeof(in), out, sizeof(out));
    if (!err) {
        pd->pdn = PRM_GET(alloc_pd_out, out, pd);
        pd->ibv.handle = hv_handle_add(pd->ibv.context, HV_HANDLE_PD, pd);
    }
    return err;
}

int uverbs_dealloc_pd(struct ibv_pd *ibpd)
{
    struct prm_dealloc_pd_in in[1] = {0};
    struct hv_context *ctx = hv_context(ibpd->context);
    struct hv_pd *pd = hv_real_pd(ibpd);
    int err = hv_pd_check(ibpd);

    if (err) {
        return err;
    }
    if (g_atomic_int_get(&pd->refs)) {
        return hv_refuse(ctx->hca, EBUSY,
                         "dealloc_pd: %d objects are in the PD (QPs, MRs, MWs, AHs, SRQs, WQs); "
                         "destroy them first",
                         g_atomic_int_get(&pd->refs));
    }
    PRM_SET(dealloc_pd_in, in, opcode, PRM_CMD_OP_DEALLOC_PD);
    PRM_SET(dealloc_pd_in, in, uid, ctx->uid);
    PRM_SET(dealloc_pd_in, in, pd, pd->pdn);
    err = hv_cmd_simple(ctx->hca, in, sizeof(in));
    if (err) {
        return err;
    }
    hv_handle_del(ibpd->context, ibpd->handle);
    return 0;
}

void uverbs_use_pd(struct ibv_pd *ibpd, int change)
{
    struct hv_pd *pd = hv_pd(ibpd), *real = hv_real_pd(ibpd);

    g_atomic_int_add(&real->refs, change);
    if (pd->kind == HV_PD_PARENT_DOMAIN) {
        g_atomic_int_add(&pd->refs, change);
    }
}
