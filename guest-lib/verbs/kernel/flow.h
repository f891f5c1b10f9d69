/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Flows of an HCA: rules that say which received packets a TIR gets, which sent packets leave, and
 * what is changed in them. flow.c makes them from verbs' specifications, dv_flow.c from match
 * parameters in the device's layout.
 */
#ifndef HCASIM_GUEST_LIB_VERBS_KERNEL_FLOW_H
#define HCASIM_GUEST_LIB_VERBS_KERNEL_FLOW_H

#include "guest-lib/verbs/kernel/uverbs.h"

#define HV_FLOW_PRIORITIES 16 /* of ordinary flows; default flows have the next one */
#define HV_FLOW_TAG_LIMIT  (1u << 24)

#define HV_FLOW_ACTIONS                                                                            \
    2 /* of ibv_flow_action in a flow (MLX5_IB_CREATE_FLOW_MAX_FLOW_ACTIONS)                       \
       */

/* The most objects that a flow uses, and that may not end before it: a matcher, counters, and
 * actions. */
#define HV_FLOW_USERS (2 + HV_FLOW_ACTIONS)

struct hv_flow_dest {
    uint8_t type; /* PRM_FLOW_DESTINATION_TYPE_ */
    uint32_t id;
};

/* A flow's rule. */
struct hv_flow_rule {
    struct prm_fte_match_param mask[1], value[1];
    uint8_t criteria;  /* which parts of the mask apply: bits PRM_MATCH_CRITERIA_ */
    uint8_t table;     /* PRM_FLOW_TABLE_TYPE_ */
    unsigned priority; /* 0 to HV_FLOW_PRIORITIES; 0 is matched first */
    bool sniffs; /* gets copies of all frames, in both directions; only dest counts besides it */
    uint16_t action;          /* bits PRM_FLOW_ACTION_ */
    struct hv_flow_dest dest; /* with FWD_DEST */
    bool passes_on;           /* what it matches also goes on to the rules behind it */
    bool misses;              /* with FWD_DEST, in place of dest: as if no rule matched */
    uint32_t tag, counter, reformat, modify;
    unsigned num_users;
    gint *users[HV_FLOW_USERS]; /* where the flow is counted while it exists */
};

/* An object of mlx5dv_create_flow_action_*() (flow_action.c). */
struct hv_flow_action {
    struct ibv_flow_action ibv;
    uint16_t action; /* PRM_FLOW_ACTION_DECAP, PACKET_REFORMAT or MOD_HDR */
    uint32_t id;     /* of the device's context; of DECAP: 0 */
    uint32_t handle;
    gint flows; /* number of flows that have it */
};

/* Counters of flows (counters.c). hv_counters_take() adds them to a rule: 0; EINVAL: the rule has
 * some already, nothing is attached to them, or too much; or the errno of a command. */
struct hv_counters;
void hv_counters_ops(struct verbs_context *ops);
int hv_counters_take(struct hv_flow_rule *rule, struct ibv_counters *counters);
/* Ends counters: 0 or errno. The structure stays. */
int uverbs_destroy_counters(struct hv_counters *counters);

/* The device's type (PRM_FLOW_TABLE_TYPE_) of a table that a program names by its
 * mlx5dv_flow_table_type. False: there is no such type. */
bool hv_flow_table_type(unsigned asked, uint8_t *type);
void hv_flow_action_ops(struct verbs_context *ops);
/* Adds the action to a rule: 0; EINVAL: the rule has one of the kind, or HV_FLOW_ACTIONS of them.
 */
int hv_flow_take_action(struct hv_flow_rule *rule, struct ibv_flow_action *action);
/* Ends an action: 0 or errno. The structure stays. */
int uverbs_destroy_flow_action(struct hv_flow_action *action);

/*
 * Adds a flow; ibv_destroy_flow() removes it. While the flow exists, qp (may be NULL) cannot be
 * destroyed. NULL with errno: the device or the table has no place for it.
 */
struct ibv_flow *hv_flow_new(struct ibv_context *ctx, const struct hv_flow_rule *rule,
                             struct hv_qp *qp);

/* Whether flows can direct packets to a QP. */
bool hv_flow_can_reach(const struct hv_qp *qp);

int hv_flow_free(struct ibv_flow *flow);

struct hv_flow;
struct mlx5dv_flow_matcher;
/* Each returns 0 or errno. The structure stays. */
int uverbs_destroy_flow(struct hv_flow *flow);
int uverbs_destroy_matcher(struct mlx5dv_flow_matcher *matcher);

#endif
