/* SPDX-License-Identifier: BSD-2-Clause */
/* Cross channel for the steps of the host, by the experimental verbs of hcasim's library. */
#include "guest-lib/verbs/exp/include/infiniband/verbs_exp.h"
#include "tests/conformance/host.h"

struct ibv_qp *direct_make_cross(const struct host *host, const struct ibv_qp_init_attr *init,
                                 unsigned cross)
{
    struct ibv_exp_qp_init_attr attr = {
        .send_cq = init->send_cq,
        .recv_cq = init->recv_cq,
        .srq = init->srq,
        .cap = init->cap,
        .qp_type = IBV_QPT_RC,
        .sq_sig_all = init->sq_sig_all,
        .pd = host->pd,
        .comp_mask = IBV_EXP_QP_INIT_ATTR_PD | IBV_EXP_QP_INIT_ATTR_CREATE_FLAGS,
        .exp_create_flags =
            IBV_EXP_QP_CREATE_CROSS_CHANNEL |
            (cross & HOST_MANAGED_SEND ? (uint32_t)IBV_EXP_QP_CREATE_MANAGED_SEND : 0) |
            (cross & HOST_MANAGED_RECV ? (uint32_t)IBV_EXP_QP_CREATE_MANAGED_RECV : 0),
    };

    return ibv_exp_create_qp(host->ctx, &attr);
}

int direct_cross(struct ibv_qp *master, const struct ibv_send_wr *wr, enum host_cross_op op,
                 struct ibv_qp *qp, uint32_t count)
{
    struct ibv_exp_send_wr exp = {
        .wr_id = wr->wr_id,
        .exp_send_flags =
            IBV_EXP_SEND_WAIT_EN_LAST |
            (wr->send_flags & IBV_SEND_SIGNALED ? (uint64_t)IBV_EXP_SEND_SIGNALED : 0),
    };
    struct ibv_exp_send_wr *bad;

    if (op == HOST_WAIT) {
        exp.exp_opcode = IBV_EXP_WR_CQE_WAIT;
        exp.task.cqe_wait.cq = qp->send_cq;
        exp.task.cqe_wait.cq_count = (int32_t)count;
    } else {
        exp.exp_opcode = op == HOST_SEND_ENABLE ? IBV_EXP_WR_SEND_ENABLE : IBV_EXP_WR_RECV_ENABLE;
        exp.task.wqe_enable.qp = qp;
        exp.task.wqe_enable.wqe_count = (int32_t)count;
    }
    return ibv_exp_post_send(master, &exp, &bad);
}
