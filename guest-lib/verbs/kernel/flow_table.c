/* SPDX-License-Identifier: BSD-2-Clause */
/* A program's flows: what each keeps alive, and its handle. Their entries are in the tables of
 * flow_chain.c; sniffers are in those of flow_sniffer.c. */
#include "guest-lib/verbs/kernel/flow_chain.h"
#include "guest-lib/verbs/kernel/flow_sniffer.h"
#include "guest-lib/verbs/kernel/hca.h"

struct hv_flow {
    struct ibv_flow ibv;
    struct hv_hca *hca;
    struct hv_qp *qp;
    struct hv_flow_entry entry; /* of a sniffer, only the rule */
};

struct ibv_flow *hv_flow_new(struct ibv_context *ctx, const struct hv_flow_rule *rule,
                             struct hv_qp *qp)
{
    struct hv_flow *flow = calloc(1, sizeof(*flow));
    int err;

    if (!flow) {
        return NULL;
    }
    flow->hca = hv_context(ctx)->hca;
    flow->qp = qp;
    flow->entry.rule = *rule;
    flow->ibv.context = ctx;
    pthread_mutex_lock(&flow->hca->flow_lock);
    err = rule->sniffs ? hv_sniffer_add(flow->hca, rule->dest.id)
                       : hv_flow_chain_add(flow->hca, &flow->entry);
    pthread_mutex_unlock(&flow->hca->flow_lock);
    if (hv_kernel(err)) {
        free(flow);
        return NULL;
    }
    flow->ibv.handle = hv_handle_add(ctx, HV_HANDLE_FLOW, flow);
    if (qp) {
        g_atomic_int_inc(&qp->refs);
    }
    for (unsigned i = 0; i < rule->num_users; i++) {
        g_atomic_int_inc(rule->users[i]);
    }
    return &flow->ibv;
}

/* Under the lock. */
static int flow_remove_flow(struct hv_flow *flow)
{
    if (flow->entry.rule.sniffs) {
        hv_sniffer_remove(flow->hca, flow->entry.rule.dest.id);
        return 0;
    }
    return hv_flow_chain_remove(flow->hca, &flow->entry);
}

/* As ib_uverbs_ex_destroy_flow(). */
int uverbs_destroy_flow(struct hv_flow *flow)
{
    struct ibv_context *context = flow->ibv.context;
    int err = hv_handle_check(context, HV_HANDLE_FLOW, flow->ibv.handle, flow);

    if (err) {
        return err;
    }
    pthread_mutex_lock(&flow->hca->flow_lock);
    err = flow_remove_flow(flow);
    if (!err) {
        hv_handle_del(context, flow->ibv.handle);
    }
    pthread_mutex_unlock(&flow->hca->flow_lock);
    if (!err && flow->qp) {
        g_atomic_int_add(&flow->qp->refs, -1);
    }
    for (unsigned i = 0; !err && i < flow->entry.rule.num_users; i++) {
        g_atomic_int_add(flow->entry.rule.users[i], -1);
    }
    return err;
}

int hv_flow_free(struct ibv_flow *ibflow)
{
    struct hv_flow *flow = (struct hv_flow *)ibflow;
    int err = hv_kernel(uverbs_destroy_flow(flow));

    if (!err) {
        free(flow);
    }
    return err;
}
