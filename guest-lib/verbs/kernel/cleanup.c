/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How each kind of object ends that is left in a closing file: as if the program destroyed it. Its
 * references to other objects end, too (uverbs_destroy_ufile_hw()).
 *
 * The object ends in the device and in the kernel half. Its structure, rings and doorbell records
 * stay, as with a kernel: the program has pointers to them, and another thread may still poll.
 */
#include "guest-lib/verbs/kernel/cleanup.h"
#include "guest-lib/verbs/kernel/devx.h"
#include "guest-lib/verbs/kernel/flow.h"
#include "guest-lib/verbs/kernel/qp.h"
#include "guest-lib/verbs/kernel/rate.h"

static int cleanup_pd(void *pd)
{
    return uverbs_dealloc_pd(&((struct hv_pd *)pd)->ibv);
}

static int cleanup_mr(void *mr)
{
    return uverbs_dereg_mr(mr);
}

static int cleanup_mw(void *mw)
{
    return uverbs_dealloc_mw(mw);
}

static int cleanup_ah(void *ah)
{
    return uverbs_destroy_ah(ah);
}

static int cleanup_cq(void *cq)
{
    return uverbs_destroy_cq(cq);
}

static int cleanup_srq(void *obj)
{
    struct hv_srq *srq = obj;
    int err = uverbs_destroy_srq(srq);

    if (!err) {
        uverbs_use_srq(srq, -1);
    }
    return err;
}

/* Multicast groups are not objects of their own, so they are left here (uverbs_free_qp()). */
static int cleanup_qp(void *obj)
{
    struct hv_qp *qp = obj;
    int err;

    hv_mcast_leave_all(qp);
    err = uverbs_destroy_qp(qp);
    if (!err) {
        uverbs_use_qp(qp, -1);
    }
    return err;
}

static int cleanup_xrcd(void *xrcd)
{
    return uverbs_close_xrcd(xrcd);
}

static int cleanup_wq(void *obj)
{
    struct hv_rwq *wq = obj;
    int err = uverbs_destroy_wq(wq);

    if (!err) {
        uverbs_use_wq(wq, -1);
    }
    return err;
}

static int cleanup_ind_table(void *table)
{
    return uverbs_destroy_ind_table(table);
}

static int cleanup_flow(void *flow)
{
    return uverbs_destroy_flow(flow);
}

static int cleanup_dm(void *dm)
{
    return uverbs_free_dm(&((struct hv_dm *)dm)->ibv);
}

static int cleanup_matcher(void *matcher)
{
    return uverbs_destroy_matcher(matcher);
}

static int cleanup_devx_obj(void *obj)
{
    return uverbs_destroy_devx_obj(obj);
}

static int cleanup_umem(void *umem)
{
    return uverbs_dereg_umem(umem);
}

static int cleanup_uar(void *uar)
{
    return uverbs_free_uar(uar);
}

static int cleanup_pp(void *pp)
{
    return uverbs_free_pp(pp);
}

static int cleanup_flow_action(void *action)
{
    return uverbs_destroy_flow_action(action);
}

static int cleanup_counters(void *counters)
{
    return uverbs_destroy_counters(counters);
}

static int (*const cleanup_of[HV_HANDLE_KINDS])(void *obj) = {
    [HV_HANDLE_PD] = cleanup_pd,
    [HV_HANDLE_MR] = cleanup_mr,
    [HV_HANDLE_MW] = cleanup_mw,
    [HV_HANDLE_AH] = cleanup_ah,
    [HV_HANDLE_CQ] = cleanup_cq,
    [HV_HANDLE_SRQ] = cleanup_srq,
    [HV_HANDLE_QP] = cleanup_qp,
    [HV_HANDLE_XRCD] = cleanup_xrcd,
    [HV_HANDLE_WQ] = cleanup_wq,
    [HV_HANDLE_IND_TABLE] = cleanup_ind_table,
    [HV_HANDLE_FLOW] = cleanup_flow,
    [HV_HANDLE_DM] = cleanup_dm,
    [HV_HANDLE_MATCHER] = cleanup_matcher,
    [HV_HANDLE_DEVX_OBJ] = cleanup_devx_obj,
    [HV_HANDLE_UMEM] = cleanup_umem,
    [HV_HANDLE_UAR] = cleanup_uar,
    [HV_HANDLE_PP] = cleanup_pp,
    [HV_HANDLE_FLOW_ACTION] = cleanup_flow_action,
    [HV_HANDLE_COUNTERS] = cleanup_counters,
};

void hv_cleanup_file(struct hv_hca *hca, struct hv_file *file)
{
    unsigned left = hv_file_end_objects(file, cleanup_of);

    if (left) {
        g_warning("%u objects of a closed device cannot be destroyed", left);
    }
    hv_event_forget_file(hca, file);
    hv_dv_unsubscribe_file(hca, file);
    hv_event_files_end(hca, file);
}
