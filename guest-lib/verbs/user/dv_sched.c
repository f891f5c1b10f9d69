/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Scheduling elements: trees that divide the bandwidth of a port among queues. A node divides what
 * it gets among its children; a leaf is a group of QPs. They are general objects, made by DevX
 * commands, so the device refuses to end an element that has children or QPs.
 */
#include "guest-lib/verbs/dv.h"
#include "guest-lib/verbs/kernel/kernel.h"

#define SCHED_FLAGS                                                                                \
    (MLX5DV_SCHED_ELEM_ATTR_FLAGS_BW_SHARE | MLX5DV_SCHED_ELEM_ATTR_FLAGS_MAX_AVG_BW)

struct sched_in {
    struct prm_general_obj_in_cmd_hdr head[1];
    struct prm_sched_elem_obj obj[1];
};

/* The errno of a command that failed: the errno itself or, if the device refused it, its status. */
static int sched_errno(int err, const void *out)
{
    return err == EREMOTEIO ? hv_status_errno((int)PRM_GET(cmd_out, out, status)) : err;
}

/* -- what libmlx5 checks ----------------------------------------------------------------------- */

static bool sched_is_there(struct hv_hca *hca)
{
    const unsigned types =
        1u << PRM_SCHEDULING_ELEMENT_TYPE_TSAR | 1u << PRM_SCHEDULING_ELEMENT_TYPE_QUEUE_GROUP;

    return (HV_QOS_CAP(hca, nic_element_type) & types) == types &&
           HV_QOS_CAP(hca, nic_tsar_type) & 1u << PRM_TSAR_TYPE_DWRR;
}

/* 0; EINVAL: only a root has no parent, and it is a node without share and limit; EOPNOTSUPP: the
 * device has no such share or limit. */
static int sched_check(struct hv_hca *hca, const struct mlx5dv_sched_attr *attr, bool leaf)
{
    if (!attr || attr->comp_mask || attr->flags & ~(uint32_t)SCHED_FLAGS ||
        (!attr->parent && (leaf || attr->flags))) {
        return EINVAL;
    }
    if ((attr->flags & MLX5DV_SCHED_ELEM_ATTR_FLAGS_BW_SHARE && !HV_QOS_CAP(hca, nic_bw_share)) ||
        (attr->flags & MLX5DV_SCHED_ELEM_ATTR_FLAGS_MAX_AVG_BW &&
         !HV_QOS_CAP(hca, nic_rate_limit))) {
        return EOPNOTSUPP;
    }
    return 0;
}

/* -- elements ---------------------------------------------------------------------------------- */

static void sched_fill(struct sched_in *in, uint16_t opcode, const struct mlx5dv_sched_attr *attr,
                       bool leaf)
{
    struct prm_scheduling_context *ctx = PRM_PTR(sched_elem_obj, in->obj, scheduling_context);
    struct prm_tsar_element *tsar = PRM_PTR(scheduling_context, ctx, element_attributes);

    PRM_SET(general_obj_in_cmd_hdr, in->head, opcode, opcode);
    PRM_SET(general_obj_in_cmd_hdr, in->head, obj_type, PRM_GENERAL_OBJ_TYPE_SCHED_ELEM);
    PRM_SET(sched_elem_obj, in->obj, modify_field_select, attr->flags);
    PRM_SET(sched_elem_obj, in->obj, scheduling_hierarchy, PRM_SCHEDULING_HIERARCHY_NIC);
    PRM_SET(scheduling_context, ctx, element_type,
            leaf ? PRM_SCHEDULING_ELEMENT_TYPE_QUEUE_GROUP : PRM_SCHEDULING_ELEMENT_TYPE_TSAR);
    if (attr->flags & MLX5DV_SCHED_ELEM_ATTR_FLAGS_BW_SHARE) {
        PRM_SET(scheduling_context, ctx, bw_share, attr->bw_share);
    }
    if (attr->flags & MLX5DV_SCHED_ELEM_ATTR_FLAGS_MAX_AVG_BW) {
        PRM_SET(scheduling_context, ctx, max_average_bw, attr->max_avg_bw);
    }
    PRM_SET(tsar_element, tsar, tsar_type, PRM_TSAR_TYPE_DWRR);
}

/* NULL with errno. */
static struct mlx5dv_devx_obj *sched_new(struct ibv_context *ctx,
                                         const struct mlx5dv_sched_attr *attr, bool leaf)
{
    struct prm_general_obj_out_cmd_hdr out[1] = {0};
    struct hv_hca *hca = hv_hca_of(ctx);
    struct mlx5dv_devx_obj *obj = NULL;
    struct sched_in in = {0};
    int err = sched_check(hca, attr, leaf);

    if (!err && !leaf && !sched_is_there(hca)) {
        err = EOPNOTSUPP;
    }
    if (!err) {
        sched_fill(&in, PRM_CMD_OP_CREATE_GENERAL_OBJECT, attr, leaf);
        PRM_SET(scheduling_context, PRM_PTR(sched_elem_obj, in.obj, scheduling_context),
                parent_element_id, attr->parent ? attr->parent->obj->id : 0);
        obj = hv_dv_devx_obj_create(ctx, &in, sizeof(in), out, sizeof(out));
        err = obj ? 0 : sched_errno(errno, out);
    }
    if (err) {
        errno = err;
    }
    return obj;
}

static int sched_modify(struct mlx5dv_devx_obj *obj, const struct mlx5dv_sched_attr *attr,
                        bool leaf)
{
    struct prm_general_obj_out_cmd_hdr out[1] = {0};
    struct sched_in in = {0};
    int err = hv_kernel(sched_check(hv_hca_of(obj->context), attr, leaf));

    if (err) {
        return err;
    }
    sched_fill(&in, PRM_CMD_OP_MODIFY_GENERAL_OBJECT, attr, leaf);
    PRM_SET(general_obj_in_cmd_hdr, in.head, obj_id, obj->id);
    err = hv_dv_devx_obj_modify(obj, &in, sizeof(in), out, sizeof(out));
    return err ? sched_errno(err, out) : 0;
}

struct mlx5dv_sched_node *hv_dv_sched_node_create(struct ibv_context *ctx,
                                                  const struct mlx5dv_sched_attr *attr)
{
    struct mlx5dv_devx_obj *obj = sched_new(ctx, attr, false);
    struct mlx5dv_sched_node *node;

    if (!obj) {
        return NULL;
    }
    node = g_new0(struct mlx5dv_sched_node, 1);
    node->obj = obj;
    return node;
}

struct mlx5dv_sched_leaf *hv_dv_sched_leaf_create(struct ibv_context *ctx,
                                                  const struct mlx5dv_sched_attr *attr)
{
    struct mlx5dv_devx_obj *obj = sched_new(ctx, attr, true);
    struct mlx5dv_sched_leaf *leaf;

    if (!obj) {
        return NULL;
    }
    leaf = g_new0(struct mlx5dv_sched_leaf, 1);
    leaf->obj = obj;
    return leaf;
}

int hv_dv_sched_node_modify(struct mlx5dv_sched_node *node, const struct mlx5dv_sched_attr *attr)
{
    return sched_modify(node->obj, attr, false);
}

int hv_dv_sched_leaf_modify(struct mlx5dv_sched_leaf *leaf, const struct mlx5dv_sched_attr *attr)
{
    return sched_modify(leaf->obj, attr, true);
}

int hv_dv_sched_node_destroy(struct mlx5dv_sched_node *node)
{
    int err = hv_dv_devx_obj_destroy(node->obj);

    if (!err) {
        g_free(node);
    }
    return err;
}

int hv_dv_sched_leaf_destroy(struct mlx5dv_sched_leaf *leaf)
{
    int err = hv_dv_devx_obj_destroy(leaf->obj);

    if (!err) {
        g_free(leaf);
    }
    return err;
}

/* -- the groups of a QP ------------------------------------------------------------------------ */

#define GROUP_MASK                                                                                 \
    (1ull << 1) /* in opt_param_mask_95_32: MLX5_QPC_OPT_MASK_32_QOS_QUEUE_GROUP_ID */

/* The same layout serves for both commands. */
static int sched_modify_qp(struct ibv_qp *qp, uint32_t requester, uint32_t responder)
{
    struct prm_rts2rts_qp_ext_in in[1] = {0};
    struct prm_rts2rts_qp_out out[1] = {0};
    struct prm_qp_context_extension *ext = PRM_PTR(rts2rts_qp_ext_in, in, qpc_data_ext);
    int err;

    if (qp->state != IBV_QPS_INIT && qp->state != IBV_QPS_RTS) {
        return EOPNOTSUPP;
    }
    PRM_SET(rts2rts_qp_ext_in, in, opcode,
            qp->state == IBV_QPS_INIT ? PRM_CMD_OP_INIT2INIT_QP : PRM_CMD_OP_RTS2RTS_QP);
    PRM_SET(rts2rts_qp_ext_in, in, qpc_ext, 1);
    PRM_SET(rts2rts_qp_ext_in, in, qpn, qp->qp_num);
    PRM_SET(rts2rts_qp_ext_in, in, opt_param_mask_95_32, GROUP_MASK);
    PRM_SET(qp_context_extension, ext, qos_queue_group_id_requester, requester);
    PRM_SET(qp_context_extension, ext, qos_queue_group_id_responder, responder);
    err = hv_dv_devx_qp_modify(qp, in, sizeof(in), out, sizeof(out));
    return err ? sched_errno(err, out) : 0;
}

static int sched_modify_raw_qp(struct ibv_qp *qp, uint32_t group)
{
    struct prm_modify_sq_in in[1] = {0};
    struct prm_modify_sq_out out[1] = {0};
    struct prm_sqc *sqc = PRM_PTR(modify_sq_in, in, ctx);
    int err;

    if (qp->state != IBV_QPS_RTS || !HV_QOS_CAP(hv_hca_of(qp->context), nic_sq_scheduling)) {
        return EOPNOTSUPP;
    }
    PRM_SET(modify_sq_in, in, opcode, PRM_CMD_OP_MODIFY_SQ);
    PRM_SET(modify_sq_in, in, sq_state, PRM_SQC_STATE_RDY);
    PRM_SET(modify_sq_in, in, sqn, hv_qp(qp)->sqn);
    PRM_SET(modify_sq_in, in, modify_bitmask, PRM_MODIFY_SQ_QOS_QUEUE_GROUP_ID);
    PRM_SET(sqc, sqc, state, PRM_SQC_STATE_RDY);
    PRM_SET(sqc, sqc, qos_queue_group_id, group & 0xffff);
    err = hv_dv_devx_qp_modify(qp, in, sizeof(in), out, sizeof(out));
    return err ? sched_errno(err, out) : 0;
}

int hv_dv_modify_qp_sched_elem(struct ibv_qp *qp, const struct mlx5dv_sched_leaf *requestor,
                               const struct mlx5dv_sched_leaf *responder)
{
    struct hv_hca *hca = hv_hca_of(qp->context);
    uint32_t requester_id = requestor ? requestor->obj->id : 0;

    switch (qp->qp_type) {
    case IBV_QPT_RAW_PACKET:
        return responder ? EINVAL : sched_modify_raw_qp(qp, requester_id);
    case IBV_QPT_UC:
    case IBV_QPT_UD:
        if (responder) {
            return EINVAL;
        }
        break;
    case IBV_QPT_RC:
        break;
    default:
        return EOPNOTSUPP;
    }
    if (!HV_CAP(hca, qpc_extension) || !HV_QOS_CAP(hca, nic_qp_scheduling)) {
        return EOPNOTSUPP;
    }
    return sched_modify_qp(qp, requester_id, responder ? responder->obj->id : 0);
}
