/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of experimental verbs of a context. */
#include "guest-lib/verbs/exp/exp.h"

/* Where a program looks for the table: at ctx - (sz - sizeof(struct ibv_context)) it ends, and its
 * last member is its own size. The bit that announces it is in the member before sz. */
G_STATIC_ASSERT(sizeof(struct verbs_context_exp) == 664);
G_STATIC_ASSERT(offsetof(struct hv_context, ibv) ==
                offsetof(struct hv_context, exp) + sizeof(struct verbs_context_exp));
G_STATIC_ASSERT(sizeof(struct hv_context) ==
                offsetof(struct hv_context, ibv) + sizeof(struct verbs_context));
G_STATIC_ASSERT(offsetof(struct verbs_context, context) + sizeof(struct ibv_context) ==
                sizeof(struct verbs_context));
G_STATIC_ASSERT(offsetof(struct verbs_context_exp, sz) + sizeof(size_t) ==
                sizeof(struct verbs_context_exp));
G_STATIC_ASSERT(offsetof(struct verbs_context, _ABI_placeholder3) + sizeof(uint64_t) ==
                offsetof(struct verbs_context, sz));

/* The topics: each fills in the calls of its file. */
static void (*const exp_topics[])(struct verbs_context_exp *ops) = {
    hv_exp_cq_ops,   hv_exp_dct_ops,  hv_exp_device_ops, hv_exp_dm_ops,   hv_exp_domain_ops,
    hv_exp_ec_ops,   hv_exp_flow_ops, hv_exp_intf_ops,   hv_exp_mr_ops,   hv_exp_peer_ops,
    hv_exp_poll_ops, hv_exp_port_ops, hv_exp_qp_ops,     hv_exp_send_ops, hv_exp_srq_ops,
    hv_exp_umr_ops,  hv_exp_wq_ops,   hv_exp_task_ops,
};

void hv_exp_init(struct hv_context *ctx)
{
    ctx->exp.sz = sizeof(ctx->exp);
    ctx->ibv._ABI_placeholder3 |= VERBS_CONTEXT_EXP;
    for (size_t i = 0; i < G_N_ELEMENTS(exp_topics); i++) {
        exp_topics[i](&ctx->exp);
    }
}
