/* SPDX-License-Identifier: BSD-2-Clause */
/* UMR, old: IBV_EXP_WR_UMR_FILL joins two ranges to one key, then repeats a block with gaps. */
#include <infiniband/verbs_exp.h>
#include "tests/programs/migration/both.h"

static struct ibv_qp *umr_qp(struct both *b)
{
    struct ibv_exp_qp_init_attr attr = {
        .send_cq = b->cq,
        .recv_cq = b->cq,
        .cap = {.max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = IBV_QPT_RC,
        .comp_mask = IBV_EXP_QP_INIT_ATTR_PD | IBV_EXP_QP_INIT_ATTR_CREATE_FLAGS |
                     IBV_EXP_QP_INIT_ATTR_MAX_INL_KLMS,
        .pd = b->pd,
        .exp_create_flags = IBV_EXP_QP_CREATE_UMR,
        .max_inl_send_klms = 4,
    };
    struct ibv_qp *qp = ibv_exp_create_qp(b->ctx, &attr);

    NEED(qp);
    both_loop(qp);
    return qp;
}

static void post(struct both *b, struct ibv_qp *qp, struct ibv_exp_send_wr *wr)
{
    struct ibv_exp_send_wr *bad;

    wr->exp_send_flags |= IBV_EXP_SEND_SIGNALED;
    NEED(!ibv_exp_post_send(qp, wr, &bad));
    both_done(b->cq);
}

int main(void)
{
    struct both b = both_begin(0);
    struct ibv_qp *qp = umr_qp(&b);
    struct ibv_exp_create_mr_in in = {
        .pd = b.pd,
        .attr = {.max_klm_list_size = 4,
                 .create_flags = IBV_EXP_MR_INDIRECT_KLMS,
                 .exp_access_flags = IBV_EXP_ACCESS_LOCAL_WRITE | IBV_EXP_ACCESS_REMOTE_WRITE}};
    struct ibv_mr *key = ibv_exp_create_mr(&in);
    uint64_t to = (uintptr_t)both_to(&b);
    struct ibv_exp_mem_region list[2] = {{to + 1000, b.mr, 100}, {to, b.mr, 100}};
    size_t count = 2, bytes = 50, stride = 80;
    struct ibv_exp_mem_repeat_block block = {to, b.mr, &bytes, &stride};
    struct ibv_exp_send_wr wr = {.exp_opcode = IBV_EXP_WR_UMR_FILL,
                                 .exp_send_flags = IBV_EXP_SEND_INLINE};

    NEED(key);
    wr.ext_op.umr.umr_type = IBV_EXP_UMR_MR_LIST;
    wr.ext_op.umr.exp_access = in.attr.exp_access_flags;
    wr.ext_op.umr.modified_mr = key;
    wr.ext_op.umr.base_addr = to;
    wr.ext_op.umr.num_mrs = 2;
    wr.ext_op.umr.mem_list.mem_reg_list = list;
    post(&b, qp, &wr);
    both_write(qp, both_from(&b), 200, b.mr->lkey, to, key->rkey);
    both_done(b.cq);
    printf("two ranges: %s\n", !memcmp(both_to(&b) + 1000, both_from(&b), 100) &&
                                       !memcmp(both_to(&b), both_from(&b) + 100, 100)
                                   ? "right"
                                   : "wrong");
    memset(both_to(&b), 0, 2000);
    wr.ext_op.umr.umr_type = IBV_EXP_UMR_REPEAT;
    wr.ext_op.umr.num_mrs = 1;
    wr.ext_op.umr.mem_list.rb.mem_repeat_block_list = &block;
    wr.ext_op.umr.mem_list.rb.repeat_count = &count;
    wr.ext_op.umr.mem_list.rb.stride_dim = 1;
    post(&b, qp, &wr);
    both_write(qp, both_from(&b), 100, b.mr->lkey, to, key->rkey);
    both_done(b.cq);
    printf("a block with gaps: %s\n", !memcmp(both_to(&b), both_from(&b), 50) && !both_to(&b)[50] &&
                                              !both_to(&b)[79] &&
                                              !memcmp(both_to(&b) + 80, both_from(&b) + 50, 50)
                                          ? "right"
                                          : "wrong");
    NEED(!ibv_dereg_mr(key));
    return 0;
}
