/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory windows: keys of their own over part of a region. A send WQE binds a window.
 *
 * A window of type 1 is bound with ibv_bind_mw(), which posts that WQE. A window of type 2 is bound
 * by the program itself (IBV_WR_BIND_MW). The window's key gets a new variant with every bind.
 */
#include "guest-lib/verbs/user/user.h"

static struct ibv_mw *alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
    struct hv_mw *mw = calloc(1, sizeof(*mw));

    if (!mw) {
        return NULL;
    }
    mw->pd = hv_real_pd(pd);
    mw->ibv.context = pd->context;
    mw->ibv.pd = pd;
    mw->ibv.type = type;
    if (hv_kernel(uverbs_alloc_mw(mw, type))) {
        free(mw);
        return NULL;
    }
    mw->ibv.rkey = mw->key;
    return &mw->ibv;
}

static int dealloc_mw(struct ibv_mw *ibmw)
{
    struct hv_mw *mw = (struct hv_mw *)ibmw;
    int err = hv_kernel(uverbs_dealloc_mw(mw));

    if (!err) {
        free(mw);
    }
    return err;
}

/* Checks that a window may be bound to this region: 0 or errno. */
static int mw_check_region(const struct ibv_mr *ibmr)
{
    const struct hv_mr *mr = (const struct hv_mr *)ibmr;

    if (mr->kind != HV_MR_USER) {
        return ENOTSUP;
    }
    return mr->access & IBV_ACCESS_ZERO_BASED ? EINVAL : 0;
}

static int bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
    struct ibv_send_wr *bad_wr = NULL;
    struct ibv_send_wr wr = {
        .opcode = IBV_WR_BIND_MW,
        .wr_id = bind->wr_id,
        .send_flags = bind->send_flags,
    };
    int err = 0;

    /* a WQE of a datagram queue needs an address handle, and there is none here */
    if (qp->qp_type == IBV_QPT_UD) {
        err = hv_refuse(hv_hca_of(qp->context), EINVAL, "bind_mw: UD QPs bind no memory windows");
    } else if (bind->bind_info.mw_access_flags & IBV_ACCESS_ZERO_BASED) {
        err = hv_refuse(hv_hca_of(qp->context), EINVAL,
                        "bind_mw: windows of type 1 cannot have IBV_ACCESS_ZERO_BASED");
    } else if (bind->bind_info.mr) {
        err = mw_check_region(bind->bind_info.mr);
        hv_refuse(hv_hca_of(qp->context), err,
                  "bind_mw: the region is zero-based, or was not made by ibv_reg_mr()");
    }
    if (err) {
        errno = err;
        return err;
    }
    wr.bind_mw.bind_info = bind->bind_info;
    wr.bind_mw.mw = mw;
    wr.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
    err = qp->context->ops.post_send(qp, &wr, &bad_wr);
    if (!err) {
        mw->rkey = wr.bind_mw.rkey;
    }
    return err;
}

void hv_mw_ops(struct verbs_context *ops)
{
    ops->context.ops.alloc_mw = alloc_mw;
    ops->context.ops.dealloc_mw = dealloc_mw;
    ops->context.ops.bind_mw = bind_mw;
}
