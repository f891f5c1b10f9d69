/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Resource domains: a doorbell page of their own for the QPs in them, and a promise about threads.
 * The promise frees CQs of their locks; QPs keep theirs.
 */
#include "guest-lib/verbs/exp/exp.h"

struct exp_domain {
    struct ibv_exp_res_domain ibv;
    enum ibv_exp_thread_model threads;
    struct hv_uar uar;
};

static struct exp_domain *exp_domain(struct ibv_exp_res_domain *ibv)
{
    return (struct exp_domain *)ibv;
}

static struct ibv_exp_res_domain *exp_create_domain(struct ibv_context *context,
                                                    struct ibv_exp_res_domain_init_attr *attr)
{
    struct exp_domain *domain = calloc(1, sizeof(*domain));
    int err = domain ? hv_kernel(hv_uar_alloc(hv_context(context), &domain->uar)) : ENOMEM;

    if (err) {
        free(domain);
        errno = err;
        return NULL;
    }
    domain->ibv.context = context;
    if (attr->comp_mask & IBV_EXP_RES_DOMAIN_THREAD_MODEL) {
        domain->threads = attr->thread_model;
    }
    return &domain->ibv;
}

/* libmlx5 destroys a domain whose QPs still exist; these QPs would then ring on a page that belongs
 * to others. */
static int exp_destroy_domain(struct ibv_context *context, struct ibv_exp_res_domain *ibv,
                              struct ibv_exp_destroy_res_domain_attr *attr)
{
    int qps;

    (void)attr;
    if (!ibv) {
        return hv_refuse(hv_hca_of(context), EINVAL, "exp_destroy_res_domain: the domain is NULL");
    }
    qps = g_atomic_int_get(&exp_domain(ibv)->uar.qps);
    if (qps) {
        return hv_refuse(hv_hca_of(context), EBUSY,
                         "exp_destroy_res_domain: %d QPs use the domain; destroy them first", qps);
    }
    hv_uar_free(hv_context(context), &exp_domain(ibv)->uar);
    free(ibv);
    return 0;
}

bool hv_exp_domain_is_safe(const struct ibv_exp_res_domain *ibv)
{
    return ((const struct exp_domain *)ibv)->threads == IBV_EXP_THREAD_SAFE;
}

struct hv_uar *hv_exp_domain_uar(struct ibv_exp_res_domain *ibv)
{
    return ibv ? &exp_domain(ibv)->uar : NULL;
}

void hv_exp_domain_ops(struct verbs_context_exp *ops)
{
    ops->exp_create_res_domain = exp_create_domain;
    ops->exp_destroy_res_domain = exp_destroy_domain;
}
