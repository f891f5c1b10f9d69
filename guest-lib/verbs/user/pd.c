/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Protection domains, thread domains and parent domains.
 *
 * A thread domain has a doorbell page of its own. A parent domain joins a PD with a thread domain
 * or with the program's own allocators; it can be used wherever a PD can. An imported PD refers to
 * the PD whose handle it was made from.
 */
#include "guest-lib/verbs/user/user.h"

HV_EXPORT struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
    struct hv_pd *pd = calloc(1, sizeof(*pd));

    if (!pd) {
        return NULL;
    }
    pd->ibv.context = context;
    pd->holders = 1;
    if (hv_kernel(uverbs_alloc_pd(pd))) {
        free(pd);
        return NULL;
    }
    return &pd->ibv;
}

static int pd_dealloc_parent_domain(struct hv_pd *pd)
{
    if (g_atomic_int_get(&pd->refs) || g_atomic_int_get(&pd->domains)) {
        return hv_refuse(hv_hca_of(pd->ibv.context), EBUSY,
                         "dealloc_pd: %d objects and %d parent domains use the parent domain; "
                         "destroy them first",
                         g_atomic_int_get(&pd->refs), g_atomic_int_get(&pd->domains));
    }
    g_atomic_int_add(&pd->parent->domains, -1);
    if (pd->td) {
        g_atomic_int_add(&pd->td->refs, -1);
    }
    free(pd);
    return 0;
}

/* Frees the structure of a PD when neither the program nor imported PDs use it any more. */
static void pd_let_go(struct hv_pd *pd)
{
    if (g_atomic_int_dec_and_test(&pd->holders)) {
        free(pd);
    }
}

static void pd_free_imported(struct hv_pd *pd)
{
    pd_let_go(pd->parent);
    free(pd);
}

HV_EXPORT int ibv_dealloc_pd(struct ibv_pd *ibpd)
{
    struct hv_pd *pd = hv_pd(ibpd);
    int err;

    if (pd->kind == HV_PD_PARENT_DOMAIN) {
        return pd_dealloc_parent_domain(pd);
    }
    if (g_atomic_int_get(&pd->domains)) {
        return hv_refuse(hv_hca_of(ibpd->context), EBUSY,
                         "dealloc_pd: %d parent domains are of this PD; deallocate them first",
                         g_atomic_int_get(&pd->domains));
    }
    err = hv_kernel(uverbs_dealloc_pd(ibpd));
    if (err) {
        return err;
    }
    if (pd->kind == HV_PD_IMPORTED) {
        pd_free_imported(pd);
    } else {
        pd_let_go(pd);
    }
    return 0;
}

static void pd_hold(void *pd, void *held)
{
    g_atomic_int_inc(&((struct hv_pd *)pd)->holders);
    *(struct hv_pd **)held = pd;
}

HV_EXPORT struct ibv_pd *ibv_import_pd(struct ibv_context *context, uint32_t pd_handle)
{
    struct hv_pd *pd = calloc(1, sizeof(*pd)), *real;
    int err = hv_check_there(hv_hca_of(context));

    if (!pd) {
        return NULL;
    }
    if (!err) {
        hv_handle_use(context, HV_HANDLE_PD, pd_handle, pd_hold, &real, &err);
    }
    if (hv_kernel(err)) {
        free(pd);
        return NULL;
    }
    pd->ibv.context = context;
    pd->ibv.handle = pd_handle;
    pd->kind = HV_PD_IMPORTED;
    pd->parent = real;
    pd->pdn = real->pdn;
    return &pd->ibv;
}

HV_EXPORT void ibv_unimport_pd(struct ibv_pd *pd)
{
    g_assert(hv_pd(pd)->kind == HV_PD_IMPORTED);
    pd_free_imported(hv_pd(pd));
}

static struct ibv_td *pd_alloc_td(struct ibv_context *context, struct ibv_td_init_attr *attr)
{
    struct hv_td *td;

    if (attr->comp_mask) {
        errno = EINVAL;
        return NULL;
    }
    td = calloc(1, sizeof(*td));
    if (!td) {
        return NULL;
    }
    if (hv_kernel(hv_uar_alloc(hv_context(context), &td->uar))) {
        free(td);
        return NULL;
    }
    td->ibv.context = context;
    return &td->ibv;
}

static int pd_dealloc_td(struct ibv_td *ibtd)
{
    struct hv_td *td = (struct hv_td *)ibtd;

    if (g_atomic_int_get(&td->refs)) {
        return EBUSY;
    }
    hv_uar_free(hv_context(ibtd->context), &td->uar);
    free(td);
    return 0;
}

static struct ibv_pd *pd_alloc_parent_domain(struct ibv_context *context,
                                             struct ibv_parent_domain_init_attr *attr)
{
    struct hv_pd *pd;

    if (!attr->pd || (attr->comp_mask & ~(IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS |
                                          IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT))) {
        errno = EINVAL;
        return NULL;
    }
    pd = calloc(1, sizeof(*pd));
    if (!pd) {
        return NULL;
    }
    pd->kind = HV_PD_PARENT_DOMAIN;
    pd->ibv.context = context;
    pd->ibv.handle = attr->pd->handle;
    pd->pdn = hv_pd(attr->pd)->pdn;
    pd->parent = hv_pd(attr->pd);
    g_atomic_int_inc(&pd->parent->domains);
    if (attr->td) {
        pd->td = (struct hv_td *)attr->td;
        g_atomic_int_inc(&pd->td->refs);
    }
    /* libmlx5 uses neither function unless both are there (mlx5_is_custom_alloc()) */
    if (attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS && attr->alloc && attr->free) {
        pd->alloc = attr->alloc;
        pd->free = attr->free;
    }
    if (attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT) {
        pd->pd_context = attr->pd_context;
    }
    return &pd->ibv;
}

void hv_pd_ops(struct verbs_context *ops)
{
    ops->alloc_td = pd_alloc_td;
    ops->dealloc_td = pd_dealloc_td;
    ops->alloc_parent_domain = pd_alloc_parent_domain;
}
