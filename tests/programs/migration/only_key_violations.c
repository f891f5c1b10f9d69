/* SPDX-License-Identifier: BSD-2-Clause */
/* DC: an armed target reports a sender with a wrong key by an event, and counts it. */
#include <infiniband/verbs_exp.h>
#include "tests/programs/migration/both.h"

#define KEY       0x1234
#define VIOLATION 32 /* IBV_EXP_EVENT_DCT_KEY_VIOLATION */

static struct ibv_qp *initiator(struct both *b)
{
    struct ibv_exp_qp_init_attr init = {.send_cq = b->cq,
                                        .recv_cq = b->cq,
                                        .cap = {.max_send_wr = 16, .max_send_sge = 1},
                                        .qp_type = IBV_EXP_QPT_DC_INI,
                                        .comp_mask = IBV_EXP_QP_INIT_ATTR_PD,
                                        .pd = b->pd};
    struct ibv_qp *qp = ibv_exp_create_qp(b->ctx, &init);
    struct ibv_exp_qp_attr attr = {.qp_state = IBV_QPS_INIT,
                                   .port_num = 1,
                                   .dct_key = KEY,
                                   .path_mtu = IBV_MTU_1024,
                                   .ah_attr = both_towards_itself(b->ctx),
                                   .timeout = 14,
                                   .retry_cnt = 1,
                                   .rnr_retry = 1,
                                   .max_rd_atomic = 1};

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
    struct ibv_srq_init_attr srq_attr = {.attr = {.max_wr = 16, .max_sge = 1}};
    struct ibv_exp_dct_init_attr dct_attr = {.pd = b.pd,
                                             .cq = b.cq,
                                             .srq = ibv_create_srq(b.pd, &srq_attr),
                                             .dc_key = KEY,
                                             .port = 1,
                                             .access_flags = IBV_ACCESS_LOCAL_WRITE,
                                             .min_rnr_timer = 12,
                                             .mtu = IBV_MTU_1024,
                                             .gid_index = 1,
                                             .hop_limit = 1};
    struct ibv_exp_dct *dct = ibv_exp_create_dct(b.ctx, &dct_attr);
    struct ibv_qp *dci = initiator(&b);
    struct ibv_exp_arm_attr arm = {0};
    struct ibv_exp_dct_attr said = {0};
    struct ibv_ah_attr ah_attr = both_towards_itself(b.ctx);
    struct ibv_sge from = {(uintptr_t)both_from(&b), 100, b.mr->lkey};
    struct ibv_exp_send_wr wr = {.sg_list = &from,
                                 .num_sge = 1,
                                 .exp_opcode = IBV_EXP_WR_SEND,
                                 .exp_send_flags = IBV_EXP_SEND_SIGNALED,
                                 .dc = {.dct_access_key = KEY + 1}};
    struct ibv_exp_send_wr *bad;
    struct ibv_async_event event;

    NEED(dct && !ibv_exp_arm_dct(dct, &arm));
    NEED(wr.dc.ah = ibv_create_ah(b.pd, &ah_attr));
    wr.dc.dct_number = dct->dct_num;
    NEED(!ibv_exp_post_send(dci, &wr, &bad));
    NEED(!ibv_get_async_event(b.ctx, &event));
    printf("event %d for the target\n", (int)event.event_type);
    NEED(both_wait(b.cq).status != IBV_WC_SUCCESS);
    NEED(!ibv_exp_query_dct(dct, &said));
    printf("counted: %s\n", said.key_violations ? "yes" : "no");
    return event.event_type == VIOLATION ? 0 : 1;
}
