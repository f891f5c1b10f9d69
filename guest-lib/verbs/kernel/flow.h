/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Flows of an HCA: rules that say which received packets a TIR gets. flow.c makes them from verbs'
 * specifications, dv_flow.c from match parameters in the device's layout.
 */
#ifndef HCASIM_GUEST_LIB_VERBS_KERNEL_FLOW_H
#define HCASIM_GUEST_LIB_VERBS_KERNEL_FLOW_H

#include "guest-lib/verbs/kernel/uverbs.h"

#define HV_FLOW_PRIORITIES 16 /* of ordinary flows; default flows have the next one */
#define HV_FLOW_TAG_LIMIT  (1u << 24)

/* A flow's rule. */
struct hv_flow_rule {
    struct prm_fte_match_param mask[1], value[1];
    uint8_t criteria;  /* which parts of the mask apply: bits PRM_MATCH_CRITERIA_ */
    unsigned priority; /* 0 to HV_FLOW_PRIORITIES; 0 is matched first */
    bool drop;
    bool sniffs; /* gets copies of all frames, in both directions; the fields above are ignored */
    uint32_t tag;
    uint32_t tirn; /* unless it drops */
};

/*
 * Adds a flow; ibv_destroy_flow() removes it. While the flow exists, qp (may be NULL) cannot be
 * destroyed, and the flow is counted in *users (may be NULL). NULL with errno: the device or the
 * table has no place for it.
 */
struct ibv_flow *hv_flow_new(struct ibv_context *ctx, const struct hv_flow_rule *rule,
                             struct hv_qp *qp, gint *users);

/* Whether flows can direct packets to a QP. */
bool hv_flow_can_reach(const struct hv_qp *qp);

int hv_flow_free(struct ibv_flow *flow);

struct hv_flow;
struct mlx5dv_flow_matcher;
/* Each returns 0 or errno. The structure stays. */
int uverbs_destroy_flow(struct hv_flow *flow);
int uverbs_destroy_matcher(struct mlx5dv_flow_matcher *matcher);

#endif
