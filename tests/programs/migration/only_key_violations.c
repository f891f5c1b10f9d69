/* SPDX-License-Identifier: BSD-2-Clause */
/* DC: an armed target reports a sender with a wrong key by an event, and counts it. */
#include "tests/programs/migration/old.h"

#define KEY       0x1234
#define VIOLATION 32 /* IBV_EXP_EVENT_DCT_KEY_VIOLATION */

int main(void)
{
    struct both b = both_begin(0);
    struct ibv_srq_init_attr srq_attr = {.attr = {.max_wr = 16, .max_sge = 1}};
    struct ibv_exp_dct *dct = old_target(&b, b.cq, ibv_create_srq(b.pd, &srq_attr), KEY);
    struct ibv_qp *dci = old_initiator(&b, KEY, 1);
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

    NEED(!ibv_exp_arm_dct(dct, &arm));
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
