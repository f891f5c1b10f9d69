/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Direct verbs' ways to make queues: mlx5dv_create_cq(), _create_qp(), _create_wq(), and what they
 * may ask for beyond verbs.
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
    /* striding RQs come with a capability that the device lacks */
    if (dv && dv->comp_mask) {
        errno = dv->comp_mask & ~(uint64_t)MLX5DV_WQ_INIT_ATTR_MASK_STRIDING_RQ ? EINVAL : ENOTSUP;
        return NULL;
    }
    return ibv_create_wq(ctx, attr);
}

#define KNOWN_QP_MASK                                                                              \
    (MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS | MLX5DV_QP_INIT_ATTR_MASK_DC |                      \
     MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS | MLX5DV_QP_INIT_ATTR_MASK_DCI_STREAMS)
#define UMR_OPS                                                                                    \
    (MLX5DV_QP_EX_WITH_MR_INTERLEAVED | MLX5DV_QP_EX_WITH_MR_LIST |                                \
     MLX5DV_QP_EX_WITH_MKEY_CONFIGURE)
/* Of a raw packet QP: asks for nothing, as the model never blocks a port's own packets. */
#define TIR_LOOPBACK                                                                               \
    (MLX5DV_QP_CREATE_TIR_ALLOW_SELF_LOOPBACK_UC | MLX5DV_QP_CREATE_TIR_ALLOW_SELF_LOOPBACK_MC)
/* Payload is never put into a CQE: forbidding it and allowing it are both fulfilled. */
#define SCATTER_TO_CQE                                                                             \
    (MLX5DV_QP_CREATE_DISABLE_SCATTER_TO_CQE | MLX5DV_QP_CREATE_ALLOW_SCATTER_TO_CQE)

/* 0 or the errno of a wish that cannot be fulfilled. */
static int dv_qp_check_flags(enum ibv_qp_type type, uint32_t flags)
{
    if ((flags & SCATTER_TO_CQE) == SCATTER_TO_CQE) {
        return EINVAL;
    }
    flags &= ~(uint32_t)SCATTER_TO_CQE;
    if (type == IBV_QPT_RAW_PACKET) {
        flags &= ~(uint32_t)TIR_LOOPBACK;
    }
    return flags ? EOPNOTSUPP : 0;
}

static int dv_qp_check_ops(enum ibv_qp_type type, uint64_t ops)
{
    uint64_t possible = MLX5DV_QP_EX_WITH_RAW_WQE | (type == IBV_QPT_RC ? UMR_OPS : 0);

    return ops & ~possible ? EOPNOTSUPP : 0;
}

struct ibv_qp *hv_dv_create_qp(struct ibv_context *ctx, struct ibv_qp_init_attr_ex *attr,
                               struct mlx5dv_qp_init_attr *dv)
{
    struct ibv_qp_init_attr_ex own = *attr;
    uint64_t ops = 0;
    struct ibv_qp *qp;
    int err = 0;

    if (dv && (dv->comp_mask & ~(uint64_t)KNOWN_QP_MASK)) {
        err = EINVAL;
    } else if (dv && (dv->comp_mask &
                      (MLX5DV_QP_INIT_ATTR_MASK_DC | MLX5DV_QP_INIT_ATTR_MASK_DCI_STREAMS))) {
        err = EOPNOTSUPP; /* no DC */
    } else if (dv) {
        if (dv->comp_mask & MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS) {
            err = dv_qp_check_flags(attr->qp_type, dv->create_flags);
        }
        if (!err && (dv->comp_mask & MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS)) {
            ops = dv->send_ops_flags;
            err = dv_qp_check_ops(attr->qp_type, ops);
        }
    }
    if (err) {
        errno = err;
        return NULL;
    }
    if (ops && !(own.comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)) {
        own.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
        own.send_ops_flags = 0;
    }
    qp = hv_context(ctx)->ibv.create_qp_ex(ctx, &own);
    if (!qp) {
        return NULL;
    }
    attr->cap = own.cap;
    if (ops) {
        user_qp(qp)->dv = hv_dv_qp_new(user_qp(qp));
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

    if (!qp->dv) { /* nothing was asked for: nothing can be called */
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

/* mlx5_ib has RTS2RTS_QP for connected QPs only. */
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
