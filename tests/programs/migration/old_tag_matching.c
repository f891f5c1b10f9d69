/* SPDX-License-Identifier: BSD-2-Clause */
/* Tag matching, old: an SRQ of type IBV_EXP_SRQT_TAG_MATCHING, and ibv_exp_post_srq_ops(). */
#include <endian.h>
#include "tests/programs/migration/old.h"

#define TAG 0xabcdull

int main(void)
{
    struct both b = both_begin(0);
    struct ibv_cq *recvs = ibv_create_cq(b.ctx, 32, NULL, NULL, 0);
    struct ibv_exp_create_srq_attr attr = {
        .base = {.attr = {.max_wr = 16, .max_sge = 1}},
        .srq_type = IBV_EXP_SRQT_TAG_MATCHING,
        .pd = b.pd,
        .comp_mask = IBV_EXP_CREATE_SRQ_CQ | IBV_EXP_CREATE_SRQ_TM,
        .cq = recvs,
        .tm_cap = {.max_num_tags = 16, .max_ops = 16},
    };
    struct ibv_srq *srq = ibv_exp_create_srq(b.ctx, &attr);
    struct ibv_qp_init_attr init = {.send_cq = b.cq,
                                    .recv_cq = recvs,
                                    .srq = srq,
                                    .cap = {.max_send_wr = 8, .max_send_sge = 1},
                                    .qp_type = IBV_QPT_RC};
    struct ibv_sge sge = {(uintptr_t)both_to(&b), 4096, b.mr->lkey};
    struct ibv_recv_wr recv = {.sg_list = &sge, .num_sge = 1}, *bad_recv;
    struct ibv_exp_ops_wr *bad,
        add = {
            .wr_id = 7,
            .opcode = IBV_EXP_WR_TAG_ADD,
            .flags = IBV_EXP_OPS_SIGNALED | IBV_EXP_OPS_TM_SYNC,
            .tm = {.add =
                       {.recv_wr_id = 8, .sg_list = &sge, .num_sge = 1, .tag = TAG, .mask = ~0ull}},
        };
    struct ibv_exp_tmh {
        uint8_t opcode, reserved[3];
        uint32_t app_ctx;
        uint64_t tag;
    } *header = (void *)both_from(&b);
    struct ibv_exp_wc wc;
    struct ibv_qp *qp;

    NEED(srq);
    NEED(qp = ibv_create_qp(b.pd, &init));
    both_loop(qp);
    NEED(!ibv_post_srq_recv(srq, &recv, &bad_recv));
    NEED(!ibv_exp_post_srq_ops(srq, &add, &bad));
    NEED(old_done(recvs).exp_opcode == IBV_EXP_WC_TM_ADD);
    header->opcode = 3; /* eager */
    header->app_ctx = 0;
    header->tag = htobe64(TAG);
    both_send(qp, header, 16 + 1000, b.mr->lkey);
    both_done(b.cq);
    wc = old_done(recvs);
    printf("tag %" PRIx64 ", %u bytes, %s; matched: %s\n", wc.tm_info.tag, wc.byte_len,
           memcmp(both_to(&b), header + 1, 1000) ? "wrong" : "right",
           wc.exp_wc_flags & IBV_EXP_WC_TM_MATCH ? "yes" : "no");
    return 0;
}
