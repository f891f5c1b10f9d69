/* SPDX-License-Identifier: BSD-2-Clause */
/* Inline receive, old: max_inl_recv of ibv_exp_create_qp(). */
#include <infiniband/verbs_exp.h>
#include "tests/programs/migration/both.h"

static struct ibv_qp *rc(struct both *b, struct ibv_cq *cq)
{
    struct ibv_exp_qp_init_attr attr = {
        .send_cq = cq,
        .recv_cq = cq,
        .cap = {.max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = IBV_QPT_RC,
        .comp_mask = IBV_EXP_QP_INIT_ATTR_PD | IBV_EXP_QP_INIT_ATTR_INL_RECV,
        .pd = b->pd,
        .max_inl_recv = 32,
    };
    struct ibv_qp *qp = ibv_exp_create_qp(b->ctx, &attr);

    NEED(qp && attr.max_inl_recv >= 32);
    return qp;
}

int main(void)
{
    /* no data are in CQEs unless the program asks for it */
    int err = setenv("MLX5_SCATTER_TO_CQE", "0", 1);
    struct both b = both_begin(0);
    struct ibv_cq *recvs = ibv_create_cq(b.ctx, 16, NULL, NULL, 0);
    struct ibv_qp *one = rc(&b, b.cq), *other = rc(&b, recvs);
    struct ibv_exp_device_attr attr = {.comp_mask = IBV_EXP_DEVICE_ATTR_INLINE_RECV_SZ};

    NEED(!ibv_exp_query_device(b.ctx, &attr) && attr.inline_recv_sz >= 32);
    NEED(!err);
    both_connect(one, other);
    for (uint32_t len = 20; len <= 200; len += 180) {
        memset(both_to(&b), 0, len);
        both_recv(other, both_to(&b), len, b.mr->lkey);
        both_send(one, both_from(&b), len, b.mr->lkey);
        both_done(b.cq);
        /* the message is acknowledged, so its data are in the CQE or in the buffer */
        printf("in the %s", both_to(&b)[1] ? "buffer" : "CQE");
        printf(": %u bytes", both_done(recvs).byte_len);
        printf(", after the poll %s\n", both_same(&b, len) ? "right" : "wrong");
    }
    return 0;
}
