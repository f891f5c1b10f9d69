/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The creation functions of direct verbs: mlx5dv_create_cq(), _create_qp(), _create_wq(), and the
 * options that they add to verbs.
 */
#include "guest-lib/verbs/dv.h"
#include "guest-lib/verbs/user/cq.h"
#include "guest-lib/verbs/user/qp.h"

struct ibv_cq_ex *hv_dv_create_cq(struct ibv_context *ctx, struct ibv_cq_init_attr_ex *attr,
                                  struct mlx5dv_cq_init_attr *dv)
{
    struct user_cq *cq = hv_cq_create(ctx, attr, true, dv);

    return cq ? &cq->ex : NULL;
}

struct ibv_wq *hv_dv_create_wq(struct ibv_context *ctx, struct ibv_wq_init_attr *attr,
                               struct mlx5dv_wq_init_attr *dv)
{
    return hv_wq_create(ctx, attr, dv);
}

#define KNOWN_QP_MASK                                                                              \
    (MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS | MLX5DV_QP_INIT_ATTR_MASK_DC |                      \
     MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS | MLX5DV_QP_INIT_ATTR_MASK_DCI_STREAMS)
#define UMR_OPS                                                                                    \
    (MLX5DV_QP_EX_WITH_MR_INTERLEAVED | MLX5DV_QP_EX_WITH_MR_LIST |                                \
     MLX5DV_QP_EX_WITH_MKEY_CONFIGURE)
/* For raw packet QPs. These flags have no effect, because the model never blocks a port's own
 * packets. */
#define TIR_LOOPBACK                                                                               \
    (MLX5DV_QP_CREATE_TIR_ALLOW_SELF_LOOPBACK_UC | MLX5DV_QP_CREATE_TIR_ALLOW_SELF_LOOPBACK_MC)
#define SCATTER_TO_CQE                                                                             \
    (MLX5DV_QP_CREATE_DISABLE_SCATTER_TO_CQE | MLX5DV_QP_CREATE_ALLOW_SCATTER_TO_CQE)

/* MLX5DV_QP_CREATE_OOO_DP, which older headers lack; programs may be built with newer ones. */
#define OOO_DP (1u << 7)

/* Whether data of such a QP may be placed out of order (is_qpt_ooo_sup()). */
static bool dv_qp_may_be_ooo(struct hv_hca *hca, enum ibv_qp_type type)
{
    if (!HV_CAP_2(hca, dp_ordering_force)) {
        return false;
    }
    switch (type) {
    case IBV_QPT_DRIVER:
        return HV_CAP(hca, dp_ordering_ooo_all_dc);
    case IBV_QPT_RC:
        return HV_CAP(hca, dp_ordering_ooo_all_rc);
    case IBV_QPT_XRC_SEND:
    case IBV_QPT_XRC_RECV:
        return HV_CAP(hca, dp_ordering_ooo_all_xrc);
    case IBV_QPT_UC:
        return HV_CAP(hca, dp_ordering_ooo_all_uc);
    case IBV_QPT_UD:
        return HV_CAP(hca, dp_ordering_ooo_all_ud);
    default:
        return false;
    }
}

/* Checks the flags: 0, or the errno for one that is unsupported. */
static int dv_qp_check_flags(struct hv_hca *hca, enum ibv_qp_type type, uint32_t flags)
{
    if ((flags & SCATTER_TO_CQE) == SCATTER_TO_CQE) {
        return EINVAL;
    }
    flags &= ~(uint32_t)SCATTER_TO_CQE;
    if (HV_CAP(hca, drain_sigerr)) {
        flags &= ~(uint32_t)MLX5DV_QP_CREATE_SIG_PIPELINING;
    }
    if (type == IBV_QPT_RAW_PACKET) {
        flags &= ~(uint32_t)TIR_LOOPBACK;
        if (hv_dv_tunnel_offloads(hca)) {
            flags &= ~(uint32_t)MLX5DV_QP_CREATE_TUNNEL_OFFLOADS;
        }
    }
    if (dv_qp_may_be_ooo(hca, type)) {
        flags &= ~(uint32_t)OOO_DP;
    }
    return flags ? EOPNOTSUPP : 0;
}

static int dv_qp_check_ops(struct hv_hca *hca, enum ibv_qp_type type, uint64_t ops)
{
    uint64_t possible = MLX5DV_QP_EX_WITH_RAW_WQE | (type == IBV_QPT_RC ? UMR_OPS : 0);

    if ((type == IBV_QPT_RC || type == IBV_QPT_DRIVER) && hv_dv_max_memcpy(hca)) {
        possible |= MLX5DV_QP_EX_WITH_MEMCPY;
    }
    return ops & ~possible ? EOPNOTSUPP : 0;
}

/* Checks the attributes of a DCT (libmlx5's create_dct()): 0 or EINVAL. */
static int dv_qp_check_dct(const struct ibv_qp_init_attr_ex *attr,
                           const struct mlx5dv_qp_init_attr *dv)
{
    const uint64_t possible =
        MLX5DV_QP_INIT_ATTR_MASK_DC | MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS;
    uint32_t flags =
        dv->comp_mask & MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS ? dv->create_flags : 0;

    flags &= ~(uint32_t)(MLX5DV_QP_CREATE_DISABLE_SCATTER_TO_CQE | OOO_DP);
    return (attr->comp_mask & ~(uint32_t)IBV_QP_INIT_ATTR_PD) || (dv->comp_mask & ~possible) ||
                   flags
               ? EINVAL
               : 0;
}

/* Takes the streams of a DCI: 0 or EINVAL. */
static int dv_qp_take_streams(struct hv_hca *hca, const struct mlx5dv_dci_streams *streams,
                              struct hv_qp_extra *extra)
{
    if (streams->log_num_concurent > HV_CAP(hca, log_max_dci_stream_channels) ||
        streams->log_num_errored > HV_CAP(hca, log_max_dci_errored_streams) ||
        !HV_CAP(hca, log_max_dci_stream_channels)) {
        return EINVAL;
    }
    extra->dci_streams = true;
    extra->dci_log_streams = streams->log_num_concurent;
    extra->dci_log_errored = streams->log_num_errored;
    return 0;
}

/* Takes the attributes of a QP of type IBV_QPT_DRIVER: 0 or errno. */
static int dv_qp_take_dc(struct hv_hca *hca, const struct ibv_qp_init_attr_ex *attr,
                         const struct mlx5dv_qp_init_attr *dv, struct hv_qp_extra *extra)
{
    bool wanted = dv && dv->comp_mask & MLX5DV_QP_INIT_ATTR_MASK_DC;

    if (wanted != (attr->qp_type == IBV_QPT_DRIVER)) {
        return EINVAL;
    }
    if (!wanted) {
        return 0;
    }
    switch (dv->dc_init_attr.dc_type) {
    case MLX5DV_DCTYPE_DCT:
        extra->dc = HV_DC_DCT;
        extra->dct_access_key = dv->dc_init_attr.dct_access_key;
        return dv_qp_check_dct(attr, dv);
    case MLX5DV_DCTYPE_DCI:
        extra->dc = HV_DC_DCI;
        return dv->comp_mask & MLX5DV_QP_INIT_ATTR_MASK_DCI_STREAMS
                   ? dv_qp_take_streams(hca, &dv->dc_init_attr.dci_streams, extra)
                   : 0;
    default:
        return EINVAL;
    }
}

static int dv_qp_check(struct hv_hca *hca, const struct ibv_qp_init_attr_ex *attr,
                       const struct mlx5dv_qp_init_attr *dv, struct hv_qp_extra *extra)
{
    int err = 0;

    if (dv && (dv->comp_mask & ~(uint64_t)KNOWN_QP_MASK)) {
        return EINVAL;
    }
    if (dv && dv->comp_mask & MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS) {
        err = dv_qp_check_flags(hca, attr->qp_type, dv->create_flags);
        extra->ooo = dv->create_flags & OOO_DP;
        extra->tunnels = dv->create_flags & MLX5DV_QP_CREATE_TUNNEL_OFFLOADS;
        extra->drains = dv->create_flags & MLX5DV_QP_CREATE_SIG_PIPELINING;
        extra->no_scatter_to_cqe = dv->create_flags & MLX5DV_QP_CREATE_DISABLE_SCATTER_TO_CQE;
        extra->allow_scatter_to_cqe = dv->create_flags & MLX5DV_QP_CREATE_ALLOW_SCATTER_TO_CQE;
    }
    err = err ? err : dv_qp_take_dc(hca, attr, dv, extra);
    if (!err && dv && dv->comp_mask & MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS) {
        err = dv_qp_check_ops(hca, attr->qp_type, dv->send_ops_flags);
        extra->builders = true;
        extra->configures_mkeys =
            dv->send_ops_flags & (MLX5DV_QP_EX_WITH_MR_INTERLEAVED | MLX5DV_QP_EX_WITH_MR_LIST |
                                  MLX5DV_QP_EX_WITH_MKEY_CONFIGURE);
    }
    return err;
}

struct ibv_qp *hv_dv_create_qp(struct ibv_context *ctx, struct ibv_qp_init_attr_ex *attr,
                               struct mlx5dv_qp_init_attr *dv)
{
    struct hv_qp_extra extra = {.dc = HV_DC_NONE};
    struct ibv_qp *qp;
    int err = dv_qp_check(hv_hca_of(ctx), attr, dv, &extra);

    if (err) {
        errno = err;
        return NULL;
    }
    qp = hv_qp_create(ctx, attr, &extra);
    if (qp) {
        user_qp(qp)->enables_drain = extra.drains;
    }
    if (qp && extra.builders && dv->send_ops_flags & MLX5DV_QP_EX_WITH_MEMCPY) {
        user_qp(qp)->enables_mmo = HV_CAP(hv_hca_of(ctx), dma_mmo_qp);
    }
    if (qp && ((extra.builders && dv->send_ops_flags) || extra.dc == HV_DC_DCI)) {
        user_qp(qp)->dv = hv_dv_qp_new(user_qp(qp), extra.builders ? dv->send_ops_flags : 0);
        if (!user_qp(qp)->dv) {
            ibv_destroy_qp(qp);
            errno = ENOMEM;
            return NULL;
        }
    }
    return qp;
}

struct mlx5dv_qp_ex *hv_dv_qp_ex_from_ibv_qp_ex(struct ibv_qp_ex *ex)
{
    struct user_qp *qp = user_qp(&ex->qp_base);

    if (!qp->dv) { /* the QP was created without these operations */
        struct hv_dv_qp *dv = calloc(1, sizeof(*dv));

        if (!dv) {
            return NULL;
        }
        dv->context = qp->ibv.context;
        dv->qp = qp;
        qp->dv = dv;
    }
    return &((struct hv_dv_qp *)qp->dv)->ex;
}

int hv_dv_dci_stream_id_reset(struct ibv_qp *qp, uint16_t stream_id)
{
    struct hv_hca *hca = hv_hca_of(qp->context);
    struct prm_rts2rts_qp_ext_in in[1] = {0};
    struct prm_rts2rts_qp_out out[1] = {0};
    const uint64_t stream_mask = 1; /* MLX5_QPC_OPT_MASK_32_DCI_STREAM_CHANNEL_ID */
    int err;

    if (!HV_CAP(hca, log_max_dci_errored_streams) || !HV_CAP(hca, qpc_extension) ||
        qp->state != IBV_QPS_RTS) {
        return EOPNOTSUPP;
    }
    if (hv_qp(qp)->dc != HV_DC_DCI) {
        return EINVAL;
    }
    err = hv_kernel(hv_qp_check(qp));
    if (err) {
        return err;
    }
    PRM_SET(rts2rts_qp_ext_in, in, opcode, PRM_CMD_OP_RTS2RTS_QP);
    PRM_SET(rts2rts_qp_ext_in, in, uid, hv_context(qp->context)->uid);
    PRM_SET(rts2rts_qp_ext_in, in, qpn, qp->qp_num);
    PRM_SET(rts2rts_qp_ext_in, in, qpc_ext, 1);
    PRM_SET(rts2rts_qp_ext_in, in, opt_param_mask_95_32, stream_mask);
    PRM_SET(qp_context_extension, PRM_PTR(rts2rts_qp_ext_in, in, qpc_data_ext),
            dci_stream_channel_id, stream_id);
    return hv_kernel(hv_cmd(hca, in, sizeof(in), out, sizeof(out)));
}

/* The longest copy in bytes; 0: the device makes no copies (mlx5_query_device_ctx()). */
size_t hv_dv_max_memcpy(struct hv_hca *hca)
{
    unsigned log_max = HV_CAP(hca, log_dma_mmo_max_size);

    if (!HV_CAP(hca, dma_mmo_sq) && !HV_CAP(hca, dma_mmo_qp)) {
        return 0;
    }
    return (size_t)1 << (log_max ? log_max : 31);
}

/* Memory to memory operations are enabled in the state INIT (qp_enable_mmo()): 0 or errno. */
int hv_dv_enable_mmo(struct user_qp *qp)
{
    struct prm_init2init_qp_ext_in in[1] = {0};
    struct prm_init2init_qp_out out[1] = {0};
    const uint64_t mmo_mask = 1 << 3; /* MLX5_QPC_OPT_MASK_32_INIT2INIT_MMO */

    PRM_SET(init2init_qp_ext_in, in, opcode, PRM_CMD_OP_INIT2INIT_QP);
    PRM_SET(init2init_qp_ext_in, in, uid, hv_context(qp->ibv.context)->uid);
    PRM_SET(init2init_qp_ext_in, in, qpn, qp->ibv.qp_num);
    PRM_SET(init2init_qp_ext_in, in, qpc_ext, 1);
    PRM_SET(init2init_qp_ext_in, in, opt_param_mask_95_32, mmo_mask);
    PRM_SET(qp_context_extension, PRM_PTR(init2init_qp_ext_in, in, qpc_data_ext), mmo, 1);
    return hv_cmd(qp->hca, in, sizeof(in), out, sizeof(out));
}

/* mlx5_ib supports RTS2RTS_QP only for connected QPs. */
int hv_dv_modify_qp_udp_sport(struct ibv_qp *qp, uint16_t udp_sport)
{
    struct prm_rts2rts_qp_in in[1] = {0};
    struct prm_rts2rts_qp_out out[1] = {0};
    const uint64_t udp_sport_mask = 1 << 2; /* MLX5_QPC_OPT_MASK_32_UDP_SPORT */
    int err = hv_kernel(hv_qp_check(qp));

    if (err) {
        return err;
    }
    if ((qp->qp_type != IBV_QPT_RC && qp->qp_type != IBV_QPT_UC) || qp->state != IBV_QPS_RTS ||
        !HV_CAP(hv_hca_of(qp->context), rts2rts_qp_udp_sport)) {
        return hv_kernel(EOPNOTSUPP);
    }
    PRM_SET(rts2rts_qp_in, in, opcode, PRM_CMD_OP_RTS2RTS_QP);
    PRM_SET(rts2rts_qp_in, in, uid, hv_context(qp->context)->uid);
    PRM_SET(rts2rts_qp_in, in, qpn, qp->qp_num);
    PRM_SET(rts2rts_qp_in, in, opt_param_mask_95_32, udp_sport_mask);
    PRM_SET(ads, PRM_PTR(qpc, PRM_PTR(rts2rts_qp_in, in, qpc), primary_address_path), udp_sport,
            udp_sport);
    return hv_kernel(hv_cmd(hv_hca_of(qp->context), in, sizeof(in), out, sizeof(out)));
}
