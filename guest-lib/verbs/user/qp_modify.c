/* SPDX-License-Identifier: BSD-2-Clause */
/* Queue pairs: the effect of a state change on the rings, and queries. */
#include <string.h>
#include "guest-lib/verbs/exp/peer.h"
#include "guest-lib/verbs/kernel/rate.h"
#include "guest-lib/verbs/user/dv_sig.h"
#include "guest-lib/verbs/user/explain.h"
#include "guest-lib/verbs/user/qp.h"

/* Goes to RESET: the rings begin again at 0, and the QP's completions are removed from the CQs. */
static void qp_reset_rings(struct user_qp *qp)
{
    hv_qp_clean_cqs(qp, false);
    qp->sq.head = qp->sq.tail = qp->rq.head = qp->rq.tail = qp->sq_post = 0;
    if (qp->dbrec) { /* only one handle on an XRC target has one */
        qp->dbrec[0] = qp->dbrec[1] = 0;
        shadow_flush(qp->dbrec, HV_DBREC_SIZE);
    }
    qp->small_fence = false;
    if (qp->peer_sq) {
        exp_peer_reset_sq(qp);
    }
    qp->sends_enabled = qp->receives_enabled = (struct user_task_index){0};
}

/* The first change after ibv_set_ece() asks for the options, and says which of them the device has
 * enabled. The options of a DCT stay to be asked for until RTR, when it is created. */
static void qp_ece_modified(struct user_qp *qp, enum ibv_qp_state to)
{
    if (qp->ece_wanted && (qp->dc != HV_DC_DCT || to == IBV_QPS_RTR)) {
        qp->ece_wanted = 0;
        qp->ece_enabled = qp->ece.answered;
    }
}

int hv_qp_modify(struct ibv_qp *ibqp, const struct ibv_qp_attr *attr, int mask,
                 const struct hv_rate *rate)
{
    struct user_qp *qp = user_qp(ibqp);
    enum ibv_qp_state to = mask & IBV_QP_STATE ? attr->qp_state : qp->state;
    bool noted;
    int err;

    if (qp->ind) {
        return EOPNOTSUPP;
    }
    qp->ece.asked = qp->ece_wanted;
    noted = mask & IBV_QP_STATE && hv_explain_moves(qp, to, true);
    err = uverbs_modify_qp(&qp->hv, attr, mask, rate);
    if (!err && qp->enables_drain && mask & IBV_QP_STATE && to == IBV_QPS_INIT) {
        err = hv_dv_enable_drain(qp);
    }
    if (!err && qp->enables_mmo && mask & IBV_QP_STATE && to == IBV_QPS_INIT) {
        err = hv_dv_enable_mmo(qp);
    }
    if (hv_kernel(err)) {
        if (noted) {
            hv_explain_moves(qp, to, false);
        }
        return err;
    }
    qp_ece_modified(qp, to);
    if (mask & IBV_QP_STATE) {
        ibqp->state = qp->state = to;
        hv_explain_moved(qp, to);
        qp->can_send = to == IBV_QPS_RTS || (qp->can_send && to != IBV_QPS_RESET);
    }
    uverbs_qp_changed(&qp->hv);
    if (mask & IBV_QP_STATE && to == IBV_QPS_RESET) {
        qp_reset_rings(qp);
    }
    if (ibqp->qp_type == IBV_QPT_RAW_PACKET && to == IBV_QPS_RTR) {
        /* its RQ has been ready since INIT, but nothing may be received before */
        pthread_spin_lock(&qp->rq.lock);
        __atomic_store_n(&qp->dbrec[0], GUINT32_TO_BE(qp->rq.head & 0xffff), __ATOMIC_RELEASE);
        pthread_spin_unlock(&qp->rq.lock);
    }
    return 0;
}

/* Only a mask with IBV_QP_RATE_LIMIT says that the program's structure has this member. */
HV_EXPORT int ibv_modify_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int mask)
{
    const struct hv_rate rate = {mask & IBV_QP_RATE_LIMIT ? attr->rate_limit : 0, 0, 0};

    return hv_qp_modify(ibqp, attr, mask, &rate);
}

#define PCI_VENDOR_MELLANOX 0x15b3

/* libmlx5 names the vendor even if the device has no ECE; then there are no options. */
HV_EXPORT int ibv_query_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
    *ece = (struct ibv_ece){
        .vendor_id = PCI_VENDOR_MELLANOX,
        .options = user_qp(qp)->ece_enabled,
    };
    return 0;
}

/* libibverbs refuses a vendor of 0, then libmlx5 checks in this order. */
static int qp_check_ece(struct hv_hca *hca, const struct ibv_ece *ece)
{
    if (!ece->vendor_id) {
        return hv_refuse(hca, EOPNOTSUPP, "set_ece: vendor_id is 0; it must be 0x%x",
                         PCI_VENDOR_MELLANOX);
    }
    if (ece->comp_mask) {
        return hv_refuse(hca, EINVAL, "set_ece: comp_mask is 0x%x; it must be 0", ece->comp_mask);
    }
    if (ece->vendor_id != PCI_VENDOR_MELLANOX) {
        return hv_refuse(hca, EINVAL, "set_ece: vendor_id is 0x%x; it must be 0x%x", ece->vendor_id,
                         PCI_VENDOR_MELLANOX);
    }
    if (!HV_CAP(hca, ece_support)) {
        return hv_refuse(hca, EOPNOTSUPP, "set_ece: the device has no ECE (ece_support)");
    }
    return 0;
}

HV_EXPORT int ibv_set_ece(struct ibv_qp *ibqp, struct ibv_ece *ece)
{
    struct user_qp *qp = user_qp(ibqp);
    int err = qp_check_ece(qp->hca, ece);

    if (err) {
        errno = err;
        return err;
    }
    qp->ece_wanted = ece->options;
    qp->ece_enabled = 0;
    return 0;
}

static void qp_fill_init_attr(const struct user_qp *qp, struct ibv_qp_attr *attr,
                              struct ibv_qp_init_attr *init)
{
    attr->cap =
        (struct ibv_qp_cap){qp->sq.max_post + qp->sq.gpu_max, qp->rq.max_post + qp->rq.gpu_max,
                            qp->sq.max_gs, qp->rq.max_gs, qp->max_inline};
    *init = (struct ibv_qp_init_attr){
        .qp_context = qp->ibv.qp_context,
        .send_cq = qp->ibv.send_cq,
        .recv_cq = qp->ibv.recv_cq,
        .srq = qp->ibv.srq,
        .cap = attr->cap,
        .qp_type = qp->ibv.qp_type,
        .sq_sig_all = qp->sq_sig_all,
    };
}

HV_EXPORT int ibv_query_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int mask,
                           struct ibv_qp_init_attr *init)
{
    struct user_qp *qp = user_qp(ibqp);
    int err;

    if (qp->ind) {
        return EOPNOTSUPP;
    }
    err = hv_kernel(uverbs_query_qp(&qp->hv, attr, mask));
    if (err) {
        return err;
    }
    uverbs_qp_changed(&qp->hv); /* the device may have changed the state */
    qp_fill_init_attr(qp, attr, init);
    if (mask & IBV_QP_STATE) {
        ibqp->state = attr->qp_state;
    }
    return 0;
}

HV_EXPORT int ibv_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op, uint32_t flags)
{
    return 0;
}

static int modify_qp_rate_limit(struct ibv_qp *qp, struct ibv_qp_rate_limit_attr *attr)
{
    const struct ibv_qp_attr none = {0};
    const struct hv_rate rate = {attr->rate_limit, attr->max_burst_sz, attr->typical_pkt_sz};

    if (attr->comp_mask || hv_rate_check(user_qp(qp)->hca, &rate)) {
        return EINVAL;
    }
    if (user_qp(qp)->ind) {
        return hv_kernel(ENOSYS);
    }
    return hv_qp_modify(qp, &none, IBV_QP_RATE_LIMIT, &rate);
}

void hv_qp_modify_ops(struct verbs_context *ops)
{
    ops->modify_qp_rate_limit = modify_qp_rate_limit;
}
