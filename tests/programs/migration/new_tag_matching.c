/* SPDX-License-Identifier: BSD-2-Clause */
/* Tag matching, new: an SRQ of type IBV_SRQT_TM, and ibv_post_srq_ops(). */
#include <endian.h>
#include <infiniband/tm_types.h>
#include "tests/programs/migration/new.h"

#define TAG 0xabcdull

int main(void)
{
    struct both b = both_begin(0);
    struct ibv_cq_init_attr_ex cq_attr = {
        .cqe = 32, .wc_flags = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_TM_INFO};
    struct ibv_cq_ex *recvs = ibv_create_cq_ex(b.ctx, &cq_attr);
    struct ibv_srq_init_attr_ex attr = {
        .attr = {.max_wr = 16, .max_sge = 1},
        .srq_type = IBV_SRQT_TM,
        .pd = b.pd,
        .comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_CQ |
                     IBV_SRQ_INIT_ATTR_TM,
        .cq = ibv_cq_ex_to_cq(recvs),
        .tm_cap = {.max_num_tags = 16, .max_ops = 16},
    };
    struct ibv_srq *srq = ibv_create_srq_ex(b.ctx, &attr);
    struct ibv_qp_init_attr init = {.send_cq = b.cq,
                                    .recv_cq = ibv_cq_ex_to_cq(recvs),
                                    .srq = srq,
                                    .cap = {.max_send_wr = 8, .max_send_sge = 1},
                                    .qp_type = IBV_QPT_RC};
    struct ibv_sge sge = {(uintptr_t)both_to(&b), 4096, b.mr->lkey};
    struct ibv_recv_wr recv = {.sg_list = &sge, .num_sge = 1}, *bad_recv;
    struct ibv_ops_wr *bad,
        add = {
            .wr_id = 7,
            .opcode = IBV_WR_TAG_ADD,
            .flags = IBV_OPS_SIGNALED | IBV_OPS_TM_SYNC,
            .tm = {.add =
                       {.recv_wr_id = 8, .sg_list = &sge, .num_sge = 1, .tag = TAG, .mask = ~0ull}},
        };
    struct ibv_tmh *header = (void *)both_from(&b);
    struct ibv_wc_tm_info info;
    struct ibv_qp *qp;

    NEED(srq);
    NEED(qp = ibv_create_qp(b.pd, &init));
    both_loop(qp);
    NEED(!ibv_post_srq_recv(srq, &recv, &bad_recv));
    NEED(!ibv_post_srq_ops(srq, &add, &bad));
    new_done(recvs);
    NEED(ibv_wc_read_opcode(recvs) == IBV_WC_TM_ADD);
    ibv_end_poll(recvs);
    header->opcode = IBV_TMH_EAGER;
    header->app_ctx = 0;
    header->tag = htobe64(TAG);
    both_send(qp, header, 16 + 1000, b.mr->lkey);
    both_done(b.cq);
    new_done(recvs);
    ibv_wc_read_tm_info(recvs, &info);
    printf("tag %" PRIx64 ", %u bytes, %s; matched: %s\n", info.tag, ibv_wc_read_byte_len(recvs),
           memcmp(both_to(&b), header + 1, 1000) ? "wrong" : "right",
           ibv_wc_read_wc_flags(recvs) & IBV_WC_TM_MATCH ? "yes" : "no");
    ibv_end_poll(recvs);
    return 0;
}
