/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion queues of experimental verbs: ibv_exp_create_cq(), ibv_exp_modify_cq(). */
#include "guest-lib/verbs/exp/exp.h"
#include "guest-lib/verbs/exp/peer.h"
#include "guest-lib/verbs/user/cq.h"

/* Without IBV_EXP_CQ_AS_NOTIFY, which only a POWER9 has (docs/adr/0032), and without
 * IBV_EXP_CQ_TIMESTAMP_TO_SYS_TIME: time stamps are in cycles of the device's clock. */
#define EXP_CQ_FLAGS                                                                               \
    (IBV_EXP_CQ_CREATE_CROSS_CHANNEL | IBV_EXP_CQ_TIMESTAMP | IBV_EXP_CQ_COMPRESSED_CQE)

/* The checks of libmlx5, then of the kernel: 0 or errno. */
static int exp_cq_check(struct hv_hca *hca, int cqe, const struct ibv_exp_cq_init_attr *attr,
                        uint32_t flags)
{
    if (cqe <= 0) {
        return hv_refuse(hca, EINVAL, "exp_create_cq: cqe is %d; it must be 1 or more", cqe);
    }
    if (attr->comp_mask & IBV_EXP_CQ_INIT_ATTR_RES_DOMAIN && !attr->res_domain) {
        return hv_refuse(hca, EINVAL, "exp_create_cq: res_domain is NULL");
    }
    if (flags & IBV_EXP_CQ_AS_NOTIFY) {
        return hv_refuse(hca, EOPNOTSUPP,
                         "exp_create_cq: IBV_EXP_CQ_AS_NOTIFY needs a POWER9 machine");
    }
    if (flags & ~(uint32_t)EXP_CQ_FLAGS) {
        return hv_refuse(hca, EINVAL, "exp_create_cq: flags has bits 0x%x; it may have 0x%x",
                         flags & ~(uint32_t)EXP_CQ_FLAGS, (unsigned)EXP_CQ_FLAGS);
    }
    if (flags & IBV_EXP_CQ_CREATE_CROSS_CHANNEL && !HV_CAP(hca, cd)) {
        return hv_refuse(hca, EINVAL, "exp_create_cq: this generation has no cross-channel queues");
    }
    return attr->comp_mask & IBV_EXP_CQ_INIT_ATTR_PEER_DIRECT
               ? exp_peer_check_cq(hca, attr->peer_direct_attrs)
               : 0;
}

/*
 * The inline call of the header fills in the members that rdma-core's library fills in itself, so
 * the channel is counted by the call alone. IBV_EXP_CQ_COMPRESSED_CQE permits the device to
 * compress; it does not oblige it to, and this library leaves CQEs as they are.
 */
static struct ibv_cq *exp_create_cq(struct ibv_context *context, int cqe,
                                    struct ibv_comp_channel *channel, int comp_vector,
                                    struct ibv_exp_cq_init_attr *attr)
{
    uint32_t flags = attr->comp_mask & IBV_EXP_CQ_INIT_ATTR_FLAGS ? attr->flags : 0;
    struct ibv_cq_init_attr_ex ex = {.cqe = (uint32_t)cqe,
                                     .channel = channel,
                                     .comp_vector = (uint32_t)comp_vector,
                                     .wc_flags = IBV_WC_STANDARD_FLAGS};
    int err = exp_cq_check(hv_hca_of(context), cqe, attr, flags);
    struct user_cq *cq;

    if (err) {
        errno = err;
        return NULL;
    }
    if (attr->comp_mask & IBV_EXP_CQ_INIT_ATTR_RES_DOMAIN &&
        !hv_exp_domain_is_safe(attr->res_domain)) {
        ex.comp_mask |= IBV_CQ_INIT_ATTR_MASK_FLAGS;
        ex.flags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED;
    }
    cq = attr->comp_mask & IBV_EXP_CQ_INIT_ATTR_PEER_DIRECT
             ? hv_cq_create_for_peer(context, &ex, NULL, attr->peer_direct_attrs)
             : hv_cq_create(context, &ex, false, NULL);
    if (!cq) {
        return NULL;
    }
    cq->exp_timestamps = flags & IBV_EXP_CQ_TIMESTAMP;
    if (channel) {
        g_atomic_int_add(&channel->refcnt, -1);
    }
    return &cq->ibv;
}

/* The period has 12 bits; a longer one becomes the longest (mlx5_ib_exp_modify_cq()). */
#define MAX_PERIOD 0xfff

static int exp_modify_cq(struct ibv_cq *ibcq, struct ibv_exp_cq_attr *attr, int mask)
{
    struct ibv_modify_cq_attr moderation = {
        .attr_mask = IBV_CQ_ATTR_MODERATE,
        .moderate = {attr->moderation.cq_count, MIN(attr->moderation.cq_period, MAX_PERIOD)}};
    int err = 0;

    if (mask & IBV_EXP_CQ_MODERATION) {
        err = hv_kernel(uverbs_modify_cq(hv_cq(ibcq), &moderation));
    }
    if (!err && mask & IBV_EXP_CQ_CAP_FLAGS) {
        err = hv_kernel(
            uverbs_ignore_overrun(hv_cq(ibcq), attr->cq_cap_flags & IBV_EXP_CQ_IGNORE_OVERRUN));
    }
    return err;
}

void hv_exp_cq_ops(struct verbs_context_exp *ops)
{
    ops->exp_create_cq = exp_create_cq;
    ops->drv_exp_modify_cq = exp_modify_cq;
    ops->lib_exp_modify_cq = exp_modify_cq;
}
