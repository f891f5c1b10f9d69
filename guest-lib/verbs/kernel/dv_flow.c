/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Flows in the device's own layout: a matcher has the mask; a flow of it has the values and the
 * actions. Mask and values are a fte_match_param, whose end a program may leave out.
 *
 * These calls work like MLX5_IB_METHOD_FLOW_MATCHER_CREATE and MLX5_IB_METHOD_CREATE_FLOW of
 * mlx5_ib. There is no e-switch (FDB). MLX5DV_FLOW_ACTION_DEFAULT_MISS leads to the kernel's tables
 * there; the kernel half of the library has none, so it does what happens if no rule matches.
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

/* The type of the matcher's table: 0 or errno (mlx5_ib_matcher_ns()). */
static int dv_flow_read_type(const struct mlx5dv_flow_matcher_attr *attr, uint8_t *type)
{
    bool named = attr->comp_mask & MLX5DV_FLOW_MATCHER_MASK_FT_TYPE;
    unsigned asked = named                                      ? attr->ft_type
                     : attr->flags & IBV_FLOW_ATTR_FLAGS_EGRESS ? MLX5DV_FLOW_TABLE_TYPE_NIC_TX
                                                                : MLX5DV_FLOW_TABLE_TYPE_NIC_RX;

    if (attr->flags & ~(uint32_t)IBV_FLOW_ATTR_FLAGS_EGRESS || (named && attr->flags) ||
        !hv_flow_table_type(asked, type)) {
        return EINVAL;
    }
    return *type == PRM_FLOW_TABLE_TYPE_FDB ? EOPNOTSUPP : 0;
}

static int dv_flow_check_matcher(const struct mlx5dv_flow_matcher_attr *attr)
{
    if ((attr->comp_mask & ~(uint64_t)MLX5DV_FLOW_MATCHER_MASK_FT_TYPE) ||
        attr->type != IBV_FLOW_ATTR_NORMAL) {
        return EOPNOTSUPP;
    }
    return attr->priority >= HV_FLOW_PRIORITIES ? EINVAL : 0;
}

struct mlx5dv_flow_matcher *hv_dv_create_flow_matcher(struct ibv_context *ctx,
                                                      struct mlx5dv_flow_matcher_attr *attr)
{
    struct mlx5dv_flow_matcher *matcher = calloc(1, sizeof(*matcher));
    int err = matcher ? hv_check_there(hv_hca_of(ctx)) : ENOMEM;

    err = err ? err : dv_flow_check_matcher(attr);
    err = err ? err : dv_flow_read_type(attr, &matcher->table);
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

/* -- actions ----------------------------------------------------------------------------------- */

/* The result of all actions. */
struct outcome {
    struct hv_flow_rule *rule;
    struct hv_qp *qp;
    bool decided; /* where the packets go, or that they are dropped */
    bool tagged;
};

static int dv_flow_to_qp(struct outcome *out, const struct mlx5dv_flow_action_attr *action)
{
    int err = hv_qp_check(action->qp);

    if (err || out->decided) {
        return err ? err : EOPNOTSUPP;
    }
    out->qp = hv_qp(action->qp);
    out->decided = true;
    out->rule->action |= PRM_FLOW_ACTION_FWD_DEST;
    out->rule->dest = (struct hv_flow_dest){PRM_FLOW_DESTINATION_TYPE_TIR, out->qp->tirn};
    return hv_flow_can_reach(out->qp) ? 0 : EINVAL;
}

static int dv_flow_to_devx(struct outcome *out, const struct mlx5dv_flow_action_attr *action)
{
    const struct prm_object *object = action->obj->object;

    if (out->decided) {
        return EOPNOTSUPP;
    }
    out->decided = true;
    out->rule->action |= PRM_FLOW_ACTION_FWD_DEST;
    out->rule->dest.type = object == PRM_OBJECT(TIR) ? PRM_FLOW_DESTINATION_TYPE_TIR
                                                     : PRM_FLOW_DESTINATION_TYPE_FLOW_TABLE;
    out->rule->dest.id = action->obj->id;
    return object == PRM_OBJECT(TIR) || object == PRM_OBJECT(FLOW_TABLE) ? 0 : EINVAL;
}

static int dv_flow_drop(struct outcome *out, const struct mlx5dv_flow_action_attr *action)
{
    (void)action;
    if (out->decided) {
        return EOPNOTSUPP;
    }
    out->decided = true;
    out->rule->action |= PRM_FLOW_ACTION_DROP;
    return 0;
}

static int dv_flow_miss(struct outcome *out, const struct mlx5dv_flow_action_attr *action)
{
    (void)action;
    if (out->decided) {
        return EOPNOTSUPP;
    }
    out->decided = true;
    out->rule->misses = true;
    out->rule->action |= PRM_FLOW_ACTION_FWD_DEST;
    out->rule->dest.type = PRM_FLOW_DESTINATION_TYPE_FLOW_TABLE;
    return 0;
}

static int dv_flow_tag(struct outcome *out, const struct mlx5dv_flow_action_attr *action)
{
    if (out->tagged || action->tag_value >= HV_FLOW_TAG_LIMIT) {
        return EINVAL;
    }
    out->tagged = true;
    out->rule->tag = action->tag_value;
    return 0;
}

static int dv_flow_count(struct outcome *out, const struct mlx5dv_flow_action_attr *action)
{
    if (out->rule->action & PRM_FLOW_ACTION_COUNT) {
        return EOPNOTSUPP;
    }
    out->rule->action |= PRM_FLOW_ACTION_COUNT;
    out->rule->counter = action->obj->id;
    return action->obj->object == PRM_OBJECT(FLOW_COUNTER) ? 0 : EINVAL;
}

static int dv_flow_change(struct outcome *out, const struct mlx5dv_flow_action_attr *action)
{
    return hv_flow_take_action(out->rule, action->action);
}

static int (*const actions_of[])(struct outcome *, const struct mlx5dv_flow_action_attr *) = {
    [MLX5DV_FLOW_ACTION_DEST_IBV_QP] = dv_flow_to_qp,
    [MLX5DV_FLOW_ACTION_DROP] = dv_flow_drop,
    [MLX5DV_FLOW_ACTION_TAG] = dv_flow_tag,
    [MLX5DV_FLOW_ACTION_DEST_DEVX] = dv_flow_to_devx,
    [MLX5DV_FLOW_ACTION_COUNTERS_DEVX] = dv_flow_count,
    [MLX5DV_FLOW_ACTION_IBV_FLOW_ACTION] = dv_flow_change,
    [MLX5DV_FLOW_ACTION_DEFAULT_MISS] = dv_flow_miss,
};

static int dv_flow_read_action(struct outcome *out, const struct mlx5dv_flow_action_attr *action)
{
    size_t type = action->type;

    if (type >= G_N_ELEMENTS(actions_of) || !actions_of[type]) {
        return EOPNOTSUPP;
    }
    return actions_of[type](out, action);
}

/* Whether packets of such a table may go there (get_dests()); sent packets that go nowhere else
 * leave. 0 or EINVAL. */
static int dv_flow_check_dest(struct hv_flow_rule *rule, bool decided)
{
    bool to_table = rule->action & PRM_FLOW_ACTION_FWD_DEST &&
                    rule->dest.type == PRM_FLOW_DESTINATION_TYPE_FLOW_TABLE;
    bool to_tir = rule->action & PRM_FLOW_ACTION_FWD_DEST && !to_table;

    switch (rule->table) {
    case PRM_FLOW_TABLE_TYPE_NIC_RX:
        return decided ? 0 : EINVAL;
    case PRM_FLOW_TABLE_TYPE_RDMA_RX:
        return to_tir || (to_table && !rule->misses) ? 0 : EINVAL;
    default:
        rule->action |= decided ? 0 : PRM_FLOW_ACTION_ALLOW;
        return to_tir ? EINVAL : 0;
    }
}

struct ibv_flow *hv_dv_create_flow(struct mlx5dv_flow_matcher *matcher,
                                   struct mlx5dv_flow_match_parameters *value, size_t num_actions,
                                   struct mlx5dv_flow_action_attr actions[])
{
    struct hv_flow_rule rule = {.criteria = matcher->criteria,
                                .table = matcher->table,
                                .priority = matcher->priority,
                                .num_users = 1,
                                .users = {&matcher->flows}};
    struct outcome out = {.rule = &rule};
    int err = dv_flow_read_match(rule.value, value);

    memcpy(rule.mask, matcher->mask, sizeof(rule.mask));
    for (size_t i = 0; i < PRM_SIZE(fte_match_param); i++) {
        rule.value->bytes[i] &= rule.mask->bytes[i];
    }
    for (size_t i = 0; !err && i < num_actions; i++) {
        err = dv_flow_read_action(&out, &actions[i]);
    }
    err = err ? err : dv_flow_check_dest(&rule, out.decided);
    if (err) {
        errno = err;
        return NULL;
    }
    return hv_flow_new(matcher->context, &rule, out.qp);
}
