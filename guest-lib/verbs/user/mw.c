/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory windows: keys of their own over part of a region, which a send WQE binds.
 *
 * Type 1 is bound with ibv_bind_mw(), which posts that WQE; type 2 by the program itself
 * (IBV_WR_BIND_MW). The window's key gets a new variant with every bind.
 */
#include "guest-lib/verbs/verbs.h"

/* mlx5_ib_alloc_mw(): KLM entries of a window, one in use */
#define MW_KLMS 4

struct hv_mw {
    struct ibv_mw ibv; /* whose rkey is the program's to change */
    struct hv_pd *pd;
    uint32_t key; /* as it was made */
};

/* ib_uverbs_alloc_mw(): 0 or errno. */
static int create_key(struct hv_mw *mw, enum ibv_mw_type type)
{
    uint8_t in[PRM_SIZE(create_mkey_in)] = {0};
    uint8_t *mkc = PRM_PTR(create_mkey_in, in, memory_key_mkey_entry);
    int err = hv_pd_check(mw->ibv.pd);

    if (!err && type != IBV_MW_TYPE_1 && type != IBV_MW_TYPE_2) {
        err = EINVAL;
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
        mw->ibv.handle = hv_handle_add(mw->ibv.context, HV_HANDLE_MW, mw);
        g_atomic_int_inc(&mw->pd->refs);
    }
    return err;
}

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
    if (hv_kernel(create_key(mw, type))) {
        free(mw);
        return NULL;
    }
    mw->ibv.rkey = mw->key;
    return &mw->ibv;
}

/* ib_uverbs_dealloc_mw(): 0 or errno. */
static int destroy_key(struct hv_mw *mw)
{
    struct ibv_context *context = mw->ibv.context;
    int err = hv_handle_check(context, HV_HANDLE_MW, mw->ibv.handle, mw);

    err = err ? err : hv_mkey_destroy(hv_hca_of(context), mw->key);
    if (!err) {
        hv_handle_del(context, mw->ibv.handle);
        g_atomic_int_add(&mw->pd->refs, -1);
    }
    return err;
}

static int dealloc_mw(struct ibv_mw *ibmw)
{
    struct hv_mw *mw = (struct hv_mw *)ibmw;
    int err = hv_kernel(destroy_key(mw));

    if (!err) {
        free(mw);
    }
    return err;
}

/* A region that a window may lie over. */
static int check_region(const struct ibv_mr *ibmr)
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

    if (bind->bind_info.mw_access_flags & IBV_ACCESS_ZERO_BASED) {
        err = EINVAL;
    } else if (bind->bind_info.mr) {
        err = check_region(bind->bind_info.mr);
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
