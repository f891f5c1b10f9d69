/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared receive queues and tag matching of experimental verbs, by those of verbs (user/srq.c,
 * user/tm.c). */
#include "guest-lib/verbs/exp/exp.h"
#include "guest-lib/verbs/user/queues.h"

static int exp_srq_check(struct hv_hca *hca, const struct ibv_exp_create_srq_attr *attr)
{
    if (attr->srq_type != IBV_EXP_SRQT_BASIC && attr->srq_type != IBV_EXP_SRQT_XRC &&
        attr->srq_type != IBV_EXP_SRQT_TAG_MATCHING) {
        return hv_refuse(hca, EINVAL, "exp_create_srq: srq_type is %u", (unsigned)attr->srq_type);
    }
    if (!attr->pd) {
        return hv_refuse(hca, EINVAL, "exp_create_srq: pd is NULL");
    }
    if (attr->comp_mask & IBV_EXP_CREATE_SRQ_DC_OFFLOAD_PARAMS) {
        return hv_refuse(hca, EOPNOTSUPP, "exp_create_srq: the device fetches no data for DC");
    }
    if (attr->comp_mask & IBV_EXP_CREATE_SRQ_MP_WR) {
        return hv_refuse(hca, EOPNOTSUPP,
                         "exp_create_srq: SRQs have one message in a WQE; leave out "
                         "IBV_EXP_CREATE_SRQ_MP_WR");
    }
    if (attr->srq_type == IBV_EXP_SRQT_TAG_MATCHING && !(attr->comp_mask & IBV_EXP_CREATE_SRQ_TM)) {
        return hv_refuse(hca, EINVAL, "exp_create_srq: tag matching needs tm_cap");
    }
    return 0;
}

static struct ibv_srq *exp_create_srq(struct ibv_context *context,
                                      struct ibv_exp_create_srq_attr *attr)
{
    bool tm = attr->srq_type == IBV_EXP_SRQT_TAG_MATCHING;
    struct ibv_srq_init_attr_ex ex = {
        .srq_context = attr->base.srq_context,
        .attr = attr->base.attr,
        .comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
                     (attr->comp_mask & IBV_EXP_CREATE_SRQ_XRCD ? IBV_SRQ_INIT_ATTR_XRCD : 0) |
                     (attr->comp_mask & IBV_EXP_CREATE_SRQ_CQ ? IBV_SRQ_INIT_ATTR_CQ : 0) |
                     (tm ? IBV_SRQ_INIT_ATTR_TM : 0),
        .srq_type = tm ? IBV_SRQT_TM : (enum ibv_srq_type)attr->srq_type,
        .pd = attr->pd,
        .xrcd = attr->xrcd,
        .cq = attr->cq,
        .tm_cap = {attr->tm_cap.max_num_tags, attr->tm_cap.max_ops},
    };
    int err = exp_srq_check(hv_hca_of(context), attr);
    struct ibv_srq *srq;

    if (err) {
        errno = err;
        return NULL;
    }
    /* ibv_exp_poll_cq() reads the results of tag matching from any CQ, so that an extended CQ,
     * which ibv_create_srq_ex() needs, is not needed */
    srq = hv_srq_create(&ex, ex.srq_type);
    if (srq) {
        srq->srq_context = attr->base.srq_context;
        attr->base.attr = ex.attr;
    }
    return srq;
}

/* The structures have the same members in the same places, and the same values. */
#define SAME(member)                                                                               \
    G_STATIC_ASSERT(offsetof(struct ibv_exp_ops_wr, member) == offsetof(struct ibv_ops_wr, member))
SAME(opcode);
SAME(flags);
SAME(tm.unexpected_cnt);
SAME(tm.handle);
SAME(tm.add.recv_wr_id);
SAME(tm.add.mask);
G_STATIC_ASSERT(sizeof(struct ibv_exp_ops_wr) == sizeof(struct ibv_ops_wr));
G_STATIC_ASSERT((int)IBV_EXP_WR_TAG_SYNC == (int)IBV_WR_TAG_SYNC);
G_STATIC_ASSERT((int)IBV_EXP_OPS_TM_SYNC == (int)IBV_OPS_TM_SYNC);

static int exp_post_srq_ops(struct ibv_srq *srq, struct ibv_exp_ops_wr *op,
                            struct ibv_exp_ops_wr **bad_op)
{
    return ibv_post_srq_ops(srq, (struct ibv_ops_wr *)op, (struct ibv_ops_wr **)bad_op);
}

void hv_exp_srq_ops(struct verbs_context_exp *ops)
{
    ops->exp_create_srq = exp_create_srq;
    ops->exp_post_srq_ops = exp_post_srq_ops;
}
