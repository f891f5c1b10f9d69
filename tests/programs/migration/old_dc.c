/* SPDX-License-Identifier: BSD-2-Clause */
/* Dynamic connections, old: ibv_exp_create_dct(), and a queue pair of type IBV_EXP_QPT_DC_INI, both
 * in old.c. */
#include "tests/programs/migration/old.h"

#define KEY 0x1234

int main(void)
{
    struct both b = both_begin(0);
    struct ibv_cq *recvs = ibv_create_cq(b.ctx, 16, NULL, NULL, 0);
    struct ibv_srq_init_attr srq_attr = {.attr = {.max_wr = 16, .max_sge = 1}};
    struct ibv_srq *srq = ibv_create_srq(b.pd, &srq_attr);
    struct ibv_exp_dct *dct = old_target(&b, recvs, srq, KEY);
    struct ibv_qp *dci = old_initiator(&b, KEY, 7);
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
