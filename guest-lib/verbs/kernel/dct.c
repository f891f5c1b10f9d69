/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * DC targets, which are QPs of type IBV_QPT_DRIVER (mlx5_ib_create_dct(), _modify_dct()).
 *
 *   RESET -> INIT    the kernel stores the attributes
 *   INIT -> RTR      CREATE_DCT: now it has a number and takes messages; it cannot change any more
 *
 * To destroy it: DRAIN_DCT, which ends its connections; the event that reports their end;
 * DESTROY_DCT.
 */
#include <string.h>
#include "guest-lib/verbs/kernel/qp.h"

static struct prm_dctc *dct_context(struct hv_qp *qp)
{
    return PRM_PTR(create_dct_in, qp->dct, dct_context_entry);
}

int hv_dct_create(struct hv_qp *qp)
{
    struct prm_dctc *dctc;

    if (!HV_CAP(qp->hca, dct)) {
        return EOPNOTSUPP;
    }
    if (!qp->srq || !qp->recv_cq) {
        return EINVAL;
    }
    qp->dct = calloc(1, sizeof(*qp->dct));
    if (!qp->dct) {
        return ENOMEM;
    }
    PRM_SET(create_dct_in, qp->dct, opcode, PRM_CMD_OP_CREATE_DCT);
    PRM_SET(create_dct_in, qp->dct, uid, qp->uid);
    dctc = dct_context(qp);
    PRM_SET(dctc, dctc, pd, hv_real_pd(qp->ibv.pd)->pdn);
    PRM_SET(dctc, dctc, srqn_xrqn, qp->srq->srqn);
    PRM_SET(dctc, dctc, cqn, qp->recv_cq->cqn);
    PRM_SET(dctc, dctc, dc_access_key, qp->dct_access_key);
    PRM_SET(dctc, dctc, user_index, (uint32_t)qp->uidx);
    PRM_SET(dctc, dctc, ece, hv_qp_ece(qp));
    if (qp->scatter_to_cqe && qp->recv_cq->cqe_size == 128) {
        PRM_SET(dctc, dctc, cs_res, PRM_CS_RES_UP_TO_64B); /* a DCT has no setting for 32 */
    }
    return 0;
}

/* Whether mask has exactly these attributes. */
static bool dct_mask_is(int mask, int wanted)
{
    return mask == (wanted | IBV_QP_STATE);
}

static int dct_to_init(struct hv_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
    struct prm_dctc *dctc = dct_context(qp);
    unsigned access = attr->qp_access_flags;

    if (!dct_mask_is(mask, IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_PORT)) {
        return EINVAL;
    }
    PRM_SET(dctc, dctc, rre, !!(access & IBV_ACCESS_REMOTE_READ));
    PRM_SET(dctc, dctc, rwe, !!(access & IBV_ACCESS_REMOTE_WRITE));
    if (access & IBV_ACCESS_REMOTE_ATOMIC) {
        if (!hv_qp_atomic_mode(qp)) {
            return EOPNOTSUPP;
        }
        PRM_SET(dctc, dctc, rae, 1);
        PRM_SET(dctc, dctc, atomic_mode, hv_qp_atomic_mode(qp));
    }
    PRM_SET(dctc, dctc, pkey_index, attr->pkey_index);
    PRM_SET(dctc, dctc, port, attr->port_num);
    return 0;
}

static int dct_to_rtr(struct hv_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
    const struct ibv_ah_attr *ah = &attr->ah_attr;
    struct prm_create_dct_out out[1] = {0};
    struct prm_dctc *dctc = dct_context(qp);
    int err;

    if (!dct_mask_is(mask, IBV_QP_MIN_RNR_TIMER | IBV_QP_AV | IBV_QP_PATH_MTU) || !ah->is_global ||
        ah->grh.sgid_index >= hv_gid_table_len(qp->hca)) {
        return EINVAL;
    }
    PRM_SET(dctc, dctc, min_rnr_nak, attr->min_rnr_timer & 31);
    PRM_SET(dctc, dctc, tclass, ah->grh.traffic_class);
    PRM_SET(dctc, dctc, flow_label, ah->grh.flow_label & 0xfffff);
    PRM_SET(dctc, dctc, mtu, attr->path_mtu);
    PRM_SET(dctc, dctc, my_addr_index, ah->grh.sgid_index);
    PRM_SET(dctc, dctc, hop_limit, ah->grh.hop_limit);
    PRM_SET(dctc, dctc, eth_prio, ah->sl & 7);
    PRM_SET(dctc, dctc, offload_type, qp->exp_dct && qp->srq->type == IBV_SRQT_TM);
    PRM_SET(dctc, dctc, dp_ordering_0, qp->ooo_rw && !qp->ooo);
    PRM_SET(dctc, dctc, dp_ordering_1, qp->ooo);
    PRM_SET(dctc, dctc, dp_ordering_force, qp->ooo || qp->ooo_rw);
    err = hv_cmd(qp->hca, qp->dct, sizeof(*qp->dct), out, sizeof(out));
    if (!err) {
        qp->ibv.qp_num = PRM_GET(create_dct_out, out, dctn);
        qp->ece.answered = PRM_GET(create_dct_out, out, ece);
        qp->dct_exists = true;
    }
    return err;
}

int hv_dct_modify(struct hv_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
    if (!(mask & IBV_QP_STATE)) {
        return hv_refuse(qp->hca, EINVAL, "modify_qp (a DCT): attr_mask must have IBV_QP_STATE");
    }
    if (hv_qp_ece(qp)) { /* without, those that were asked for before stay */
        PRM_SET(dctc, dct_context(qp), ece, hv_qp_ece(qp));
    }
    if (qp->state == IBV_QPS_RESET && attr->qp_state == IBV_QPS_INIT) {
        return dct_to_init(qp, attr, mask);
    }
    if (qp->state == IBV_QPS_INIT && attr->qp_state == IBV_QPS_RTR && !qp->dct_exists) {
        return dct_to_rtr(qp, attr, mask);
    }
    return hv_refuse(qp->hca, EINVAL,
                     "modify_qp (a DCT): %s to %s is no transition; a DCT goes from RESET to INIT, "
                     "then to RTR",
                     hv_qp_state_name(qp->state), hv_qp_state_name(attr->qp_state));
}

static int dct_query_cmd(struct hv_qp *qp, struct prm_query_dct_out *out)
{
    struct prm_query_dct_in in[1] = {0};
    struct prm_general_obj_in_cmd_hdr *hdr = (void *)in; /* all inputs begin with it */

    PRM_SET(query_dct_in, in, opcode, PRM_CMD_OP_QUERY_DCT);
    PRM_SET(general_obj_in_cmd_hdr, hdr, uid, qp->uid);
    PRM_SET(query_dct_in, in, dctn, qp->ibv.qp_num);
    return hv_cmd(qp->hca, in, sizeof(in), out, PRM_SIZE(query_dct_out));
}

int hv_dct_query(struct hv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
    const int possible = IBV_QP_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_PORT | IBV_QP_MIN_RNR_TIMER |
                         IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_PKEY_INDEX;
    struct prm_query_dct_out out[1] = {0};
    const struct prm_dctc *dctc = PRM_PTR(query_dct_out, out, dct_context_entry);
    int err;

    if ((mask & ~possible) || !qp->dct_exists) {
        return EINVAL;
    }
    err = dct_query_cmd(qp, out);
    if (err) {
        return err;
    }
    if (mask & IBV_QP_STATE) {
        attr->qp_state = IBV_QPS_RTR;
    }
    if (mask & IBV_QP_ACCESS_FLAGS) {
        attr->qp_access_flags = (PRM_GET(dctc, dctc, rre) ? IBV_ACCESS_REMOTE_READ : 0) |
                                (PRM_GET(dctc, dctc, rwe) ? IBV_ACCESS_REMOTE_WRITE : 0) |
                                (PRM_GET(dctc, dctc, rae) ? IBV_ACCESS_REMOTE_ATOMIC : 0);
    }
    if (mask & IBV_QP_PORT) {
        attr->port_num = PRM_GET(dctc, dctc, port);
    }
    if (mask & IBV_QP_MIN_RNR_TIMER) {
        attr->min_rnr_timer = PRM_GET(dctc, dctc, min_rnr_nak);
    }
    if (mask & IBV_QP_AV) {
        attr->ah_attr.grh.traffic_class = PRM_GET(dctc, dctc, tclass);
        attr->ah_attr.grh.flow_label = PRM_GET(dctc, dctc, flow_label);
        attr->ah_attr.grh.sgid_index = PRM_GET(dctc, dctc, my_addr_index);
        attr->ah_attr.grh.hop_limit = PRM_GET(dctc, dctc, hop_limit);
    }
    if (mask & IBV_QP_PATH_MTU) {
        attr->path_mtu = PRM_GET(dctc, dctc, mtu);
    }
    if (mask & IBV_QP_PKEY_INDEX) {
        attr->pkey_index = PRM_GET(dctc, dctc, pkey_index);
    }
    return 0;
}

int hv_dct_destroy(struct hv_qp *qp)
{
    struct prm_destroy_dct_in in[1] = {0};
    int err = 0;

    if (qp->dct_exists) {
        err = hv_drain_dct(qp->hca, qp->uid, qp->ibv.qp_num);
        if (!err) {
            PRM_SET(destroy_dct_in, in, opcode, PRM_CMD_OP_DESTROY_DCT);
            PRM_SET(destroy_dct_in, in, uid, qp->uid);
            PRM_SET(destroy_dct_in, in, dctn, qp->ibv.qp_num);
            err = hv_cmd_simple(qp->hca, in, sizeof(in));
        }
    }
    if (!err) {
        free(qp->dct);
        qp->dct = NULL;
        qp->dct_exists = false;
    }
    return err;
}

int uverbs_query_dct(struct hv_qp *qp, struct prm_dctc *dctc)
{
    struct prm_query_dct_out out[1] = {0};
    int err = hv_check_there(qp->hca);

    err = err ? err : hv_qp_check(&qp->ibv);
    err = err ? err : dct_query_cmd(qp, out);
    if (!err) {
        memcpy(dctc, PRM_PTR(query_dct_out, out, dct_context_entry), PRM_SIZE(dctc));
    }
    return err;
}

int uverbs_arm_dct(struct hv_qp *qp)
{
    struct prm_arm_dct_in in[1] = {0};
    struct prm_general_obj_in_cmd_hdr *hdr = (void *)in; /* all inputs begin with it */
    int err = hv_check_there(qp->hca);

    err = err ? err : hv_qp_check(&qp->ibv);
    if (err) {
        return err;
    }
    PRM_SET(arm_dct_in, in, opcode, PRM_CMD_OP_ARM_DCT_FOR_KEY_VIOLATION);
    PRM_SET(general_obj_in_cmd_hdr, hdr, uid, qp->uid);
    PRM_SET(arm_dct_in, in, dct_number, qp->ibv.qp_num);
    return hv_cmd_simple(qp->hca, in, sizeof(in));
}
