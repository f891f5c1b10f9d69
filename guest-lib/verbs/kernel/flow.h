/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Flows of an HCA: which received packets a TIR gets. flow.c makes them of verbs' specifications,
 * dv_flow.c of match parameters as the device has them.
 */
#ifndef HCASIM_GUEST_LIB_VERBS_KERNEL_FLOW_H
#define HCASIM_GUEST_LIB_VERBS_KERNEL_FLOW_H

#include "guest-lib/verbs/kernel/uverbs.h"

#define HV_FLOW_PRIORITIES 16 /* of ordinary flows; the one behind is the defaults' */
#define HV_FLOW_TAG_LIMIT  (1u << 24)

/* What a flow asks for. */
struct hv_flow_rule {
    struct prm_fte_match_param mask[1], value[1];
    uint8_t criteria;  /* which parts of the mask count: bits PRM_MATCH_CRITERIA_ */
    unsigned priority; /* 0 to HV_FLOW_PRIORITIES, 0 first */
    bool drop;
    bool sniffs; /* copies of all frames, in both directions; nothing above counts */
    uint32_t tag;
    uint32_t tirn; /* if it is not dropped */
};

/*
 * Adds a flow, which ibv_destroy_flow() takes back. qp, or NULL, cannot be destroyed before; users,
 * or NULL, counts the flow while it is there. NULL, and errno is set, if the device or the table
 * has no place for it.
 */
struct ibv_flow *hv_flow_new(struct ibv_context *ctx, const struct hv_flow_rule *rule,
                             struct hv_qp *qp, gint *users);

/* Whether QP is one that flows can bring packets to. */
bool hv_flow_can_reach(const struct hv_qp *qp);

int hv_flow_free(struct ibv_flow *flow);

struct hv_flow;
struct mlx5dv_flow_matcher;
/* 0 or errno. The structure stays. */
int uverbs_destroy_flow(struct hv_flow *flow);
int uverbs_destroy_matcher(struct mlx5dv_flow_matcher *matcher);

#endif
