/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements exp_queues_bench.h: the bench for queues of experimental verbs. */
#include "tests/verbs/exp_queues_bench.h"
#include <check.h>
#include <string.h>

struct verbs_table *v;
struct ibv_cq *cq[2];
struct ibv_mr *mr[2];
struct ibv_qp *qp[2];

struct ibv_cq *cq_new(int side, uint32_t comp_mask, uint32_t flags)
{
    struct ibv_exp_cq_init_attr attr = {.comp_mask = comp_mask, .flags = flags};

    errno = 0;
    return ibv_exp_create_cq(side ? v->b : v->a, 63, &cq, NULL, 0, &attr);
}

struct ibv_exp_qp_init_attr qp_attr(int side)
{
    return (struct ibv_exp_qp_init_attr){
        .send_cq = cq[side],
        .recv_cq = cq[side],
        .cap = {.max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 2, .max_recv_sge = 1},
        .qp_type = IBV_QPT_RC,
        .comp_mask = IBV_EXP_QP_INIT_ATTR_PD | IBV_EXP_QP_INIT_ATTR_ATOMICS_ARG,
        .pd = v->hosts->host[side].pd,
        .max_atomic_arg = 64,
    };
}

struct ibv_qp *qp_new(int side, struct ibv_exp_qp_init_attr attr)
{
    errno = 0;
    return ibv_exp_create_qp(side ? v->b : v->a, &attr);
}

void setup(void)
{
    v = verbs_table_new();
    for (int i = 0; i < 2; i++) {
        cq[i] = cq_new(i, IBV_EXP_CQ_INIT_ATTR_FLAGS, IBV_EXP_CQ_TIMESTAMP);
        mr[i] = table_mr_new(v, i);
        ck_assert_ptr_nonnull(cq[i]);
        qp[i] = qp_new(i, qp_attr(i));
        ck_assert_ptr_nonnull(qp[i]);
    }
    table_connect(v, qp[0], qp[1]);
}

void teardown(void)
{
    for (int i = 0; i < 2; i++) {
        table_qp_free(qp[i]);
        table_mr_free(mr[i]);
        ck_assert_int_eq(ibv_destroy_cq(cq[i]), 0);
    }
    verbs_table_free(v);
}

struct ibv_exp_wc wc_of(struct ibv_cq *of)
{
    struct ibv_exp_wc wc;

    memset(&wc, 0xff, sizeof(wc));
    for (int i = 0; i < 100 && !ibv_exp_poll_cq(of, 1, &wc, sizeof(wc)); i++) {
        table_wait(v);
    }
    ck_assert_uint_ne(wc.wr_id, UINT64_MAX);
    return wc;
}

static int post_on(int side, struct ibv_exp_send_wr *wr)
{
    struct ibv_exp_send_wr *bad = NULL;
    int err = ibv_exp_post_send(qp[side], wr, &bad);

    ck_assert_ptr_eq(bad, err ? wr : NULL);
    return err;
}

int post(struct ibv_exp_send_wr *wr)
{
    return post_on(0, wr);
}

struct ibv_exp_wc complete_on(int side, struct ibv_exp_send_wr *wr)
{
    wr->exp_send_flags |= IBV_EXP_SEND_SIGNALED;
    ck_assert_int_eq(post_on(side, wr), 0);
    return wc_of(cq[side]);
}

struct ibv_exp_wc complete(struct ibv_exp_send_wr *wr)
{
    return complete_on(0, wr);
}

void post_recv(void)
{
    struct ibv_sge sge = {.addr = (uintptr_t)mr[1]->addr, .length = 64, .lkey = mr[1]->lkey};
    struct ibv_recv_wr wr = {.wr_id = 7, .sg_list = &sge, .num_sge = 1}, *bad;

    ck_assert_int_eq(ibv_post_recv(qp[1], &wr, &bad), 0);
}

struct ibv_exp_send_wr masked(struct ibv_sge *sge, unsigned log_size, bool swap)
{
    *sge = (struct ibv_sge){
        .addr = (uintptr_t)mr[0]->addr, .length = 1u << log_size, .lkey = mr[0]->lkey};
    return (struct ibv_exp_send_wr){
        .sg_list = sge,
        .num_sge = 1,
        .exp_opcode = swap ? IBV_EXP_WR_EXT_MASKED_ATOMIC_CMP_AND_SWP
                           : IBV_EXP_WR_EXT_MASKED_ATOMIC_FETCH_AND_ADD,
        .exp_send_flags = IBV_EXP_SEND_EXT_ATOMIC_INLINE,
        .ext_op.masked_atomics = {.log_arg_sz = log_size,
                                  .remote_addr = (uintptr_t)mr[1]->addr,
                                  .rkey = mr[1]->rkey},
    };
}
