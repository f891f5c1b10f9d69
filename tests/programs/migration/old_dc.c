/* SPDX-License-Identifier: BSD-2-Clause */
/* Dynamic connections, old: ibv_exp_create_dct(), and a queue pair of type IBV_EXP_QPT_DC_INI. */
#include <infiniband/verbs_exp.h>
#include "tests/programs/migration/both.h"

#define KEY 0x1234

static struct ibv_qp *initiator(struct both *b)
{
    struct ibv_exp_qp_init_attr init = {
        .send_cq = b->cq,
        .recv_cq = b->cq,
        .cap = {.max_send_wr = 16, .max_send_sge = 1},
        .qp_type = IBV_EXP_QPT_DC_INI,
        .comp_mask = IBV_EXP_QP_INIT_ATTR_PD,
        .pd = b->pd,
    };
    struct ibv_qp *qp = ibv_exp_create_qp(b->ctx, &init);
    struct ibv_exp_qp_attr attr = {
        .qp_state = IBV_QPS_INIT,
        .port_num = 1,
        .dct_key = KEY,
        .path_mtu = IBV_MTU_1024,
        .ah_attr = both_towards_itself(b->ctx),
        .timeout = 14,
        .retry_cnt = 7,
        .rnr_retry = 7,
        .max_rd_atomic = 1,
    };

    NEED(qp);
    NEED(!ibv_exp_modify_qp(
        qp, &attr, IBV_EXP_QP_STATE | IBV_EXP_QP_PKEY_INDEX | IBV_EXP_QP_PORT | IBV_EXP_QP_DC_KEY));
    attr.qp_state = IBV_QPS_RTR;
    NEED(!ibv_exp_modify_qp(qp, &attr, IBV_EXP_QP_STATE | IBV_EXP_QP_PATH_MTU | IBV_EXP_QP_AV));
    attr.qp_state = IBV_QPS_RTS;
    NEED(!ibv_exp_modify_qp(qp, &attr,
                            IBV_EXP_QP_STATE | IBV_EXP_QP_TIMEOUT | IBV_EXP_QP_RETRY_CNT |
                                IBV_EXP_QP_RNR_RETRY | IBV_EXP_QP_MAX_QP_RD_ATOMIC));
    return qp;
}

int main(void)
{
    struct both b = both_begin(0);
    struct ibv_cq *recvs = ibv_create_cq(b.ctx, 16, NULL, NULL, 0);
    struct ibv_srq_init_attr srq_attr = {.attr = {.max_wr = 16, .max_sge = 1}};
    struct ibv_srq *srq = ibv_create_srq(b.pd, &srq_attr);
    struct ibv_exp_dct_init_attr dct_attr = {
        .pd = b.pd,
        .cq = recvs,
        .srq = srq,
        .dc_key = KEY,
        .port = 1,
        .access_flags = IBV_ACCESS_LOCAL_WRITE,
        .min_rnr_timer = 12,
        .mtu = IBV_MTU_1024,
        .gid_index = 1,
        .hop_limit = 1,
    };
    struct ibv_exp_dct *dct = ibv_exp_create_dct(b.ctx, &dct_attr);
    struct ibv_qp *dci = initiator(&b);
    struct ibv_ah_attr ah_attr = both_towards_itself(b.ctx);
    struct ibv_sge from = {(uintptr_t)both_from(&b), 2000, b.mr->lkey},
                   to = {(uintptr_t)both_to(&b), 2000, b.mr->lkey};
    struct ibv_recv_wr recv = {.sg_list = &to, .num_sge = 1}, *bad_recv;
    struct ibv_exp_send_wr wr = {.sg_list = &from,
                                 .num_sge = 1,
                                 .exp_opcode = IBV_EXP_WR_SEND,
                                 .exp_send_flags = IBV_EXP_SEND_SIGNALED,
                                 .dc = {.dct_access_key = KEY}};
    struct ibv_exp_send_wr *bad;

    NEED(dct);
    NEED(wr.dc.ah = ibv_create_ah(b.pd, &ah_attr));
    wr.dc.dct_number = dct->dct_num;
    NEED(!ibv_post_srq_recv(srq, &recv, &bad_recv));
    NEED(!ibv_exp_post_send(dci, &wr, &bad));
    both_done(b.cq);
    printf("%u bytes at the target", both_done(recvs).byte_len);
    printf(", %s\n", both_same(&b, 2000) ? "right" : "wrong");
    wr.dc.dct_access_key = KEY + 1;
    NEED(!ibv_exp_post_send(dci, &wr, &bad));
    printf("with a wrong key: %s\n", ibv_wc_status_str(both_wait(b.cq).status));
    NEED(!ibv_destroy_qp(dci) && !ibv_exp_destroy_dct(dct));
    return 0;
}
