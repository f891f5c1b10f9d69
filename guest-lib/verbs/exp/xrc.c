/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * XRC by the calls of OFED 1.5 (<infiniband/ofa_verbs.h>), over XRC domains, XRC SRQs and XRC
 * targets. They do what libibverbs of MLNX_OFED 4.6 did, with one difference: that library knew QPs
 * by their numbers alone, so that two devices of a process could not have the same number; here
 * each device has its own numbers.
 */
#include <string.h>
#include "guest-lib/verbs/exp/exp.h"
#include "guest-lib/verbs/kernel/uverbs.h"
#include "guest-lib/verbs/user/queues.h"

/* The structure that programs of OFED 1.5 read, in front of what this library keeps. */
G_STATIC_ASSERT(offsetof(struct ibv_srq_legacy, handle) == offsetof(struct ibv_srq, handle));
G_STATIC_ASSERT(offsetof(struct ibv_srq_legacy, ibv_srq) == HV_LEGACY_SRQ_AT);
G_STATIC_ASSERT(LEGACY_XRC_SRQ_HANDLE == HV_LEGACY_SRQ);
G_STATIC_ASSERT(IBV_QPT_XRC == HV_QPT_XRC);

HV_EXPORT struct ibv_xrc_domain *ibv_open_xrc_domain(struct ibv_context *context, int fd, int oflag)
{
    struct ibv_xrcd_init_attr attr = {
        .comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = fd, .oflags = oflag};
    struct ibv_xrcd *xrcd = ibv_open_xrcd(context, &attr);

    if (xrcd) {
        g_atomic_int_set(&hv_context(context)->legacy_xrc, 1);
    }
    return (struct ibv_xrc_domain *)xrcd;
}

HV_EXPORT int ibv_close_xrc_domain(struct ibv_xrc_domain *domain)
{
    return ibv_close_xrcd((struct ibv_xrcd *)domain);
}

HV_EXPORT struct ibv_srq *ibv_create_xrc_srq(struct ibv_pd *pd, struct ibv_xrc_domain *domain,
                                             struct ibv_cq *cq, struct ibv_srq_init_attr *attr)
{
    struct ibv_srq_init_attr_ex ex = {
        .attr = attr->attr,
        .comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD |
                     IBV_SRQ_INIT_ATTR_CQ,
        .srq_type = IBV_SRQT_XRC,
        .pd = pd,
        .xrcd = (struct ibv_xrcd *)domain,
        .cq = cq,
    };
    struct ibv_srq_legacy *legacy = calloc(1, sizeof(*legacy));
    struct ibv_srq *srq = legacy ? hv_srq_create(&ex, IBV_SRQT_XRC) : NULL;

    if (!srq) {
        free(legacy);
        return NULL;
    }
    *legacy = (struct ibv_srq_legacy){
        .context = pd->context,
        .srq_context = attr->srq_context,
        .pd = pd,
        .handle = LEGACY_XRC_SRQ_HANDLE,
        .xrc_srq_num_bin_compat = hv_srq(srq)->srqn,
        .xrc_domain_bin_compat = domain,
        .xrc_cq_bin_compat = cq,
        .ibv_srq = srq,
        .xrc_srq_num = hv_srq(srq)->srqn,
        .xrc_domain = domain,
        .xrc_cq = cq,
    };
    srq->srq_context = attr->srq_context;
    hv_srq(srq)->legacy = legacy;
    return (struct ibv_srq *)legacy;
}

/* -- receiving QPs ----------------------------------------------------------------------------- */

static struct ibv_qp *xrc_find(struct ibv_xrc_domain *domain, uint32_t qpn)
{
    struct hv_qp *qp = uverbs_xrc_registered(hv_hca_of(domain->context), qpn);

    return qp ? &qp->ibv : NULL;
}

HV_EXPORT int ibv_create_xrc_rcv_qp(struct ibv_qp_init_attr *attr, uint32_t *xrc_rcv_qpn)
{
    const struct ibv_xrc_qp_init_attr *init = (const struct ibv_xrc_qp_init_attr *)attr;
    struct ibv_qp_init_attr_ex ex = {.qp_type = IBV_QPT_XRC_RECV,
                                     .comp_mask = IBV_QP_INIT_ATTR_XRCD};
    struct ibv_qp *qp;

    if (!init || !init->xrc_domain) {
        return EINVAL;
    }
    ex.xrcd = (struct ibv_xrcd *)init->xrc_domain;
    qp = ibv_create_qp_ex(ex.xrcd->context, &ex);
    if (!qp) {
        return errno;
    }
    *xrc_rcv_qpn = qp->qp_num;
    return uverbs_xrc_register(hv_qp(qp)) ? 0 : EEXIST;
}

HV_EXPORT int ibv_modify_xrc_rcv_qp(struct ibv_xrc_domain *domain, uint32_t qpn,
                                    struct ibv_qp_attr *attr, int attr_mask)
{
    struct ibv_qp *qp = xrc_find(domain, qpn);

    return qp ? ibv_modify_qp(qp, attr, attr_mask) : EINVAL;
}

HV_EXPORT int ibv_query_xrc_rcv_qp(struct ibv_xrc_domain *domain, uint32_t qpn,
                                   struct ibv_qp_attr *attr, int attr_mask,
                                   struct ibv_qp_init_attr *init_attr)
{
    struct ibv_qp *qp = xrc_find(domain, qpn);

    return qp ? ibv_query_qp(qp, attr, attr_mask, init_attr) : EINVAL;
}

HV_EXPORT int ibv_reg_xrc_rcv_qp(struct ibv_xrc_domain *domain, uint32_t qpn)
{
    struct ibv_qp_open_attr attr = {.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD |
                                                 IBV_QP_OPEN_ATTR_TYPE,
                                    .qp_num = qpn,
                                    .xrcd = (struct ibv_xrcd *)domain,
                                    .qp_type = IBV_QPT_XRC_RECV};
    struct ibv_qp *qp = ibv_open_qp(domain->context, &attr);

    if (!qp) {
        return errno;
    }
    if (!uverbs_xrc_register(hv_qp(qp))) {
        ibv_destroy_qp(qp);
        return EEXIST;
    }
    return 0;
}

HV_EXPORT int ibv_unreg_xrc_rcv_qp(struct ibv_xrc_domain *domain, uint32_t qpn)
{
    struct ibv_qp *qp = xrc_find(domain, qpn);

    return qp ? ibv_destroy_qp(qp) : EINVAL;
}
