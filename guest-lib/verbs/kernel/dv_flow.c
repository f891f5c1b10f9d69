/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Flows in the device's own layout: a matcher has the mask; a flow of it has the values and the
 * actions. Mask and values are a fte_match_param, whose end a program may leave out.
 *
 * These calls work like MLX5_IB_METHOD_FLOW_MATCHER_CREATE and MLX5_IB_METHOD_CREATE_FLOW of
 * mlx5_ib. Only the table of received packets is supported, not one of sent packets.
 */
#include <string.h>
#include "guest-lib/verbs/dv.h"
#include "guest-lib/verbs/kernel/flow.h"

/* Reads a program's match parameters: 0; EINVAL: they are longer than the device's. */
static int dv_flow_read_match(struct prm_fte_match_param *to,
                              const struct mlx5dv_flow_match_parameters *match)
{
    if (match->match_sz > PRM_SIZE(fte_match_param)) {
        return EINVAL;
    }
    memcpy(to, match->match_buf, match->match_sz);
    return 0;
}

static bool dv_flow_is_egress(const struct mlx5dv_flow_matcher_attr *attr)
{
    if (attr->comp_mask & MLX5DV_FLOW_MATCHER_MASK_FT_TYPE) {
        return attr->ft_type != MLX5DV_FLOW_TABLE_TYPE_NIC_RX;
    }
    return attr->flags & IBV_FLOW_ATTR_FLAGS_EGRESS;
}

static int dv_flow_check_matcher(const struct mlx5dv_flow_matcher_attr *attr)
{
    if ((attr->comp_mask & ~(uint64_t)MLX5DV_FLOW_MATCHER_MASK_FT_TYPE) ||
        attr->type != IBV_FLOW_ATTR_NORMAL || dv_flow_is_egress(attr)) {
        return EOPNOTSUPP;
    }
    if (attr->flags || attr->priority >= HV_FLOW_PRIORITIES) {
        return EINVAL;
    }
    return 0;
}

struct mlx5dv_flow_matcher *hv_dv_create_flow_matcher(struct ibv_context *ctx,
                                                      struct mlx5dv_flow_matcher_attr *attr)
{
    struct mlx5dv_flow_matcher *matcher = calloc(1, sizeof(*matcher));
    int err = matcher ? hv_check_there(hv_hca_of(ctx)) : ENOMEM;

    err = err ? err : dv_flow_check_matcher(attr);
    if (!err) {
        err = dv_flow_read_match(matcher->mask, attr->match_mask);
    }
    if (err) {
        free(matcher);
        errno = err;
        return NULL;
    }
    matcher->context = ctx;
    matcher->priority = attr->priority;
    matcher->criteria = attr->match_criteria_enable;
    matcher->handle = hv_handle_add(ctx, HV_HANDLE_MATCHER, matcher);
    return matcher;
}

int uverbs_destroy_matcher(struct mlx5dv_flow_matcher *matcher)
{
    if (g_atomic_int_get(&matcher->flows)) {
        return EBUSY;
    }
    hv_handle_del(matcher->context, matcher->handle);
    return 0;
}

int hv_dv_destroy_flow_matcher(struct mlx5dv_flow_matcher *matcher)
{
    int err = hv_check_there(hv_hca_of(matcher->context));

    err = hv_kernel(err ? err : uverbs_destroy_matcher(matcher));
    if (!err) {
        free(matcher);
    }
    return err;
}

/* The result of all actions. */
struct outcome {
    struct hv_flow_rule *rule;
    struct hv_qp *qp;
    unsigned destinations;
};

static int dv_flow_to_qp(struct outcome *out, const struct mlx5dv_flow_action_attr *action)
{
    int err = hv_qp_check(action->qp);

    out->qp = hv_qp(action->qp);
    out->rule->tirn = out->qp->tirn;
    out->destinations++;
    return err || hv_flow_can_reach(out->qp) ? err : EINVAL;
}

static int dv_flow_to_devx(struct outcome *out, const struct mlx5dv_flow_action_attr *action)
{
    out->rule->tirn = action->obj->id;
    out->destinations++;
    return action->obj->object == PRM_OBJECT(TIR) ? 0 : EOPNOTSUPP;
}

static int dv_flow_drop(struct outcome *out, const struct mlx5dv_flow_action_attr *action)
{
    (void)action;
    out->rule->drop = true;
    out->destinations++;
    return 0;
}

static int dv_flow_tag(struct outcome *out, const struct mlx5dv_flow_action_attr *action)
{
    out->rule->tag = action->tag_value;
    return action->tag_value < HV_FLOW_TAG_LIMIT ? 0 : EINVAL;
}

static int (*const actions_of[])(struct outcome *, const struct mlx5dv_flow_action_attr *) = {
    [MLX5DV_FLOW_ACTION_DEST_IBV_QP] = dv_flow_to_qp,
    [MLX5DV_FLOW_ACTION_DROP] = dv_flow_drop,
    [MLX5DV_FLOW_ACTION_TAG] = dv_flow_tag,
    [MLX5DV_FLOW_ACTION_DEST_DEVX] = dv_flow_to_devx,
};

static int dv_flow_read_action(struct outcome *out, const struct mlx5dv_flow_action_attr *action)
{
    size_t type = action->type;

    if (type >= G_N_ELEMENTS(actions_of) || !actions_of[type]) {
        return EOPNOTSUPP;
    }
    return actions_of[type](out, action);
}

struct ibv_flow *hv_dv_create_flow(struct mlx5dv_flow_matcher *matcher,
                                   struct mlx5dv_flow_match_parameters *value, size_t num_actions,
                                   struct mlx5dv_flow_action_attr actions[])
{
    struct hv_flow_rule rule = {.criteria = matcher->criteria, .priority = matcher->priority};
    struct outcome out = {.rule = &rule};
    int err = dv_flow_read_match(rule.value, value);

    memcpy(rule.mask, matcher->mask, sizeof(rule.mask));
    for (size_t i = 0; i < PRM_SIZE(fte_match_param); i++) {
        rule.value->bytes[i] &= rule.mask->bytes[i];
    }
    for (size_t i = 0; !err && i < num_actions; i++) {
        err = dv_flow_read_action(&out, &actions[i]);
    }
    /* exactly one destination (mlx5_ib: get_dests()) */
    if (!err && out.destinations != 1) {
        err = EINVAL;
    }
    if (err) {
        errno = err;
        return NULL;
    }
    return hv_flow_new(matcher->context, &rule, out.qp, &matcher->flows);
}
