/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Cross channel: a WRITE of a managed queue starts when another queue's WRITE has completed. Then a
 * SEND whose data the device adds up.
 */
#include <endian.h>
#include "tests/programs/migration/old.h"

static struct ibv_cq *cross_cq(struct both *b)
{
    struct ibv_exp_cq_init_attr attr = {.comp_mask = IBV_EXP_CQ_INIT_ATTR_FLAGS,
                                        .flags = IBV_EXP_CQ_CREATE_CROSS_CHANNEL};
    struct ibv_cq *cq = ibv_exp_create_cq(b->ctx, 16, NULL, NULL, 0, &attr);

    NEED(cq);
    return cq;
}

static struct ibv_qp *cross_qp(struct both *b, struct ibv_cq *cq, uint32_t more)
{
    struct ibv_exp_qp_init_attr attr = old_rc(b, cq);
    struct ibv_qp *qp;

    attr.comp_mask |= IBV_EXP_QP_INIT_ATTR_CREATE_FLAGS;
    attr.exp_create_flags = IBV_EXP_QP_CREATE_CROSS_CHANNEL | more;
    NEED(qp = ibv_exp_create_qp(b->ctx, &attr));
    both_loop(qp);
    return qp;
}

static void a_chain(struct both *b)
{
    struct ibv_cq *first_cq = cross_cq(b), *second_cq = cross_cq(b), *control_cq = cross_cq(b);
    struct ibv_qp *first = cross_qp(b, first_cq, 0), *control = cross_qp(b, control_cq, 0);
    struct ibv_qp *second = cross_qp(b, second_cq, IBV_EXP_QP_CREATE_MANAGED_SEND);
    struct ibv_exp_send_wr enable = {.exp_opcode = IBV_EXP_WR_SEND_ENABLE,
                                     .exp_send_flags = IBV_EXP_SEND_WAIT_EN_LAST,
                                     .task.wqe_enable = {second, 1}};
    struct ibv_exp_send_wr wait = {.exp_opcode = IBV_EXP_WR_CQE_WAIT,
                                   .exp_send_flags = IBV_EXP_SEND_WAIT_EN_LAST,
                                   .task.cqe_wait = {first_cq, 1},
                                   .next = &enable};
    struct ibv_exp_task task = {.task_type = IBV_EXP_TASK_SEND,
                                .item = {.qp = control, .send_wr = &wait}};
    struct ibv_exp_task *bad;
    struct ibv_wc wc;

    both_write(second, both_from(b), 100, b->mr->lkey, (uintptr_t)both_to(b), b->mr->rkey);
    NEED(!ibv_exp_post_task(b->ctx, &task, &bad));
    for (unsigned i = 0; i < 10000; i++) {
        NEED(!ibv_poll_cq(second_cq, 1, &wc));
    }
    printf("before: %s\n", both_to(b)[1] ? "written" : "nothing");
    both_write(first, both_from(b), 8, b->mr->lkey, (uintptr_t)both_to(b) + 500, b->mr->rkey);
    both_done(second_cq);
    both_done(first_cq);
    printf("after: %s\n", both_same(b, 100) ? "written" : "nothing");
}

static void a_sum(struct both *b)
{
    struct ibv_cq *cq = cross_cq(b);
    struct ibv_qp *qp = cross_qp(b, cq, 0);
    uint64_t *operands = (void *)both_from(b), *sum = (void *)both_to(b);
    struct ibv_sge sge[2] = {{(uintptr_t)operands, 16, b->mr->lkey},
                             {(uintptr_t)(operands + 2), 16, b->mr->lkey}};
    struct ibv_exp_send_wr wr = {.sg_list = sge,
                                 .num_sge = 2,
                                 .exp_opcode = IBV_EXP_WR_SEND,
                                 .exp_send_flags = IBV_EXP_SEND_SIGNALED | IBV_EXP_SEND_WITH_CALC,
                                 .op.calc = {IBV_EXP_CALC_OP_ADD, IBV_EXP_CALC_DATA_TYPE_UINT,
                                             IBV_EXP_CALC_DATA_SIZE_64_BIT}};
    struct ibv_exp_send_wr *bad;

    memset(operands, 0, 32);
    operands[0] = htobe64(40);
    operands[2] = htobe64(2);
    both_recv(qp, sum, 16, b->mr->lkey);
    NEED(!ibv_exp_post_send(qp, &wr, &bad));
    both_done(cq);
    both_done(cq);
    printf("40 + 2 = %" PRIu64 "\n", be64toh(*sum));
}

int main(void)
{
    struct both b = both_begin(0);
    struct ibv_exp_device_attr attr = {.comp_mask = IBV_EXP_DEVICE_ATTR_EXP_CAP_FLAGS};

    NEED(!ibv_exp_query_device(b.ctx, &attr));
    if (!(attr.exp_device_cap_flags & IBV_EXP_DEVICE_CROSS_CHANNEL)) {
        return ABSENT;
    }
    a_chain(&b);
    a_sum(&b);
    return 0;
}
