/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls about WQs, SRQs, steering rules, resource domains and accelerated verbs.
 */
#ifndef HCASIM_INFINIBAND_EXP_CALLS_WQ_H
#define HCASIM_INFINIBAND_EXP_CALLS_WQ_H

#include "context.h"

static inline struct ibv_exp_wq *ibv_exp_create_wq(struct ibv_context *context,
                                                   struct ibv_exp_wq_init_attr *attr)
{
    struct verbs_context_exp *exp = verbs_get_exp_ctx_op(context, exp_create_wq);

    if (!exp) {
        errno = ENOSYS;
        return NULL;
    }
    IBV_EXP_RET_NULL_ON_INVALID_COMP_MASK(attr->comp_mask, IBV_EXP_CREATE_WQ_RESERVED - 1);
    return exp->exp_create_wq(context, attr);
}

static inline int ibv_exp_modify_wq(struct ibv_exp_wq *wq, struct ibv_exp_wq_attr *attr)
{
    struct verbs_context_exp *exp = verbs_get_exp_ctx_op(wq->context, exp_modify_wq);

    if (!exp) {
        return ENOSYS;
    }
    IBV_EXP_RET_EINVAL_ON_INVALID_COMP_MASK(attr->attr_mask, IBV_EXP_WQ_ATTR_RESERVED - 1);
    return exp->exp_modify_wq(wq, attr);
}

static inline int ibv_exp_destroy_wq(struct ibv_exp_wq *wq)
{
    struct verbs_context_exp *exp = verbs_get_exp_ctx_op(wq->context, exp_destroy_wq);

    return exp ? exp->exp_destroy_wq(wq) : ENOSYS;
}

static inline struct ibv_exp_rwq_ind_table *
ibv_exp_create_rwq_ind_table(struct ibv_context *context,
                             struct ibv_exp_rwq_ind_table_init_attr *attr)
{
    struct verbs_context_exp *exp = verbs_get_exp_ctx_op(context, exp_create_rwq_ind_table);

    if (!exp) {
        errno = ENOSYS;
        return NULL;
    }
    IBV_EXP_RET_NULL_ON_INVALID_COMP_MASK(attr->comp_mask, IBV_EXP_CREATE_IND_TABLE_RESERVED - 1);
    return exp->exp_create_rwq_ind_table(context, attr);
}

static inline int ibv_exp_destroy_rwq_ind_table(struct ibv_exp_rwq_ind_table *table)
{
    struct verbs_context_exp *exp = verbs_get_exp_ctx_op(table->context, exp_destroy_rwq_ind_table);

    return exp ? exp->exp_destroy_rwq_ind_table(table) : ENOSYS;
}

static inline struct ibv_srq *ibv_exp_create_srq(struct ibv_context *context,
                                                 struct ibv_exp_create_srq_attr *attr)
{
    struct verbs_context_exp *exp = verbs_get_exp_ctx_op(context, exp_create_srq);

    if (!exp) {
        errno = ENOSYS;
        return NULL;
    }
    IBV_EXP_RET_NULL_ON_INVALID_COMP_MASK(attr->comp_mask, IBV_EXP_CREATE_SRQ_RESERVED - 1);
    return exp->exp_create_srq(context, attr);
}

/* Changes the list of tags of an SRQ with tag matching. Returns an errno. */
static inline int ibv_exp_post_srq_ops(struct ibv_srq *srq, struct ibv_exp_ops_wr *op,
                                       struct ibv_exp_ops_wr **bad_op)
{
    struct verbs_context_exp *exp = verbs_get_exp_ctx_op(srq->context, exp_post_srq_ops);

    if (!exp) {
        *bad_op = op;
        return ENOSYS;
    }
    return exp->exp_post_srq_ops(srq, op, bad_op);
}

/* Adds a steering rule. flow->reserved counts as 0. Without the call, errno stays as it is. */
static inline struct ibv_exp_flow *ibv_exp_create_flow(struct ibv_qp *qp,
                                                       struct ibv_exp_flow_attr *flow)
{
    struct verbs_context_exp *exp = verbs_get_exp_ctx_op(qp->context, lib_exp_ibv_create_flow);

    if (!exp) {
        return NULL;
    }
    if (flow->reserved != 0) {
        fprintf(stderr, "%s: flow->reserved is not 0, it is set to 0\n", __func__);
        flow->reserved = 0;
    }
    return exp->lib_exp_ibv_create_flow(qp, flow);
}

/* Removes a steering rule. Returns an errno; without the call, a negative one. */
static inline int ibv_exp_destroy_flow(struct ibv_exp_flow *flow)
{
    struct verbs_context_exp *exp = verbs_get_exp_ctx_op(flow->context, lib_exp_ibv_destroy_flow);

    return exp ? exp->lib_exp_ibv_destroy_flow(flow) : -ENOSYS;
}

static inline struct ibv_exp_res_domain *
ibv_exp_create_res_domain(struct ibv_context *context, struct ibv_exp_res_domain_init_attr *attr)
{
    struct verbs_context_exp *exp = verbs_get_exp_ctx_op(context, exp_create_res_domain);

    if (!exp) {
        errno = ENOSYS;
        return NULL;
    }
    IBV_EXP_RET_NULL_ON_INVALID_COMP_MASK(attr->comp_mask, IBV_EXP_RES_DOMAIN_RESERVED - 1);
    return exp->exp_create_res_domain(context, attr);
}

/* attr may be NULL. Returns an errno. */
static inline int ibv_exp_destroy_res_domain(struct ibv_context *context,
                                             struct ibv_exp_res_domain *res_dom,
                                             struct ibv_exp_destroy_res_domain_attr *attr)
{
    struct verbs_context_exp *exp = verbs_get_exp_ctx_op(context, exp_destroy_res_domain);

    if (!exp) {
        errno = ENOSYS;
        return ENOSYS;
    }
    if (attr) {
        IBV_EXP_RET_EINVAL_ON_INVALID_COMP_MASK(attr->comp_mask,
                                                IBV_EXP_DESTROY_RES_DOMAIN_RESERVED - 1);
    }
    return exp->exp_destroy_res_domain(context, res_dom, attr);
}

/* Returns a family of functions of a QP, CQ or WQ. If it returns NULL, *status has the reason. */
static inline void *ibv_exp_query_intf(struct ibv_context *context,
                                       struct ibv_exp_query_intf_params *params,
                                       enum ibv_exp_query_intf_status *status)
{
    struct verbs_context_exp *exp = verbs_get_exp_ctx_op(context, exp_query_intf);

    if (!exp) {
        errno = ENOSYS;
        return NULL;
    }
    IBV_EXP_RET_NULL_ON_INVALID_COMP_MASK(params->comp_mask, IBV_EXP_QUERY_INTF_RESERVED - 1);
    return exp->exp_query_intf(context, params, status);
}

/* params may be NULL. Returns an errno. */
static inline int ibv_exp_release_intf(struct ibv_context *context, void *intf,
                                       struct ibv_exp_release_intf_params *params)
{
    struct verbs_context_exp *exp = verbs_get_exp_ctx_op(context, exp_release_intf);

    if (!exp) {
        errno = ENOSYS;
        return ENOSYS;
    }
    if (params) {
        IBV_EXP_RET_EINVAL_ON_INVALID_COMP_MASK(params->comp_mask,
                                                IBV_EXP_RELEASE_INTF_RESERVED - 1);
    }
    return exp->exp_release_intf(context, intf, params);
}

#endif
