/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements exp_memory_bench.h: the bench for memory of experimental verbs. */
#include <check.h>
#include "tests/verbs/exp_memory_bench.h"

struct verbs_table *v;
struct ibv_pd *pd;
struct ibv_cq *cq, *far_cq;
struct ibv_qp *qp, *far_qp;
struct ibv_mr *far;

void setup(void)
{
    struct ibv_exp_qp_init_attr attr = {
        .qp_type = IBV_QPT_RC,
        .comp_mask = IBV_EXP_QP_INIT_ATTR_PD | IBV_EXP_QP_INIT_ATTR_CREATE_FLAGS |
                     IBV_EXP_QP_INIT_ATTR_MAX_INL_KLMS,
        .exp_create_flags = IBV_EXP_QP_CREATE_UMR,
        .max_inl_send_klms = HV_EXP_MAX_INLINE_KLMS,
    };

    v = verbs_table_new();
    cq = ibv_create_cq(v->a, 63, NULL, NULL, 0);
    far_cq = ibv_create_cq(v->b, 63, NULL, NULL, 0);
    far_qp = table_qp_new(v, 1, far_cq, NULL);
    far = table_mr_new(v, 1);
    pd = ibv_alloc_pd(v->a);
    attr.pd = pd;
    attr.send_cq = attr.recv_cq = cq;
    attr.cap = (struct ibv_qp_cap){
        .max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 2, .max_recv_sge = 2};
    qp = ibv_exp_create_qp(v->a, &attr);
    ck_assert_ptr_nonnull(qp);
    table_connect(v, qp, far_qp);
}

void teardown(void)
{
    ck_assert_int_eq(ibv_destroy_qp(qp), 0);
    ck_assert_int_eq(ibv_dealloc_pd(pd), 0);
    table_mr_free(far);
    table_qp_free(far_qp);
    ck_assert_int_eq(ibv_destroy_cq(cq), 0);
    ck_assert_int_eq(ibv_destroy_cq(far_cq), 0);
    verbs_table_free(v);
}

struct ibv_mr *reg(void *addr, size_t length, uint64_t access)
{
    struct ibv_exp_reg_mr_in in = {.pd = pd, .addr = addr, .length = length, .exp_access = access};

    errno = 0;
    return ibv_exp_reg_mr(&in);
}

enum ibv_wc_status move(enum ibv_wr_opcode opcode, uint32_t lkey, uint64_t addr, size_t len)
{
    struct ibv_sge sge = {.addr = addr, .length = (uint32_t)len, .lkey = lkey};
    struct ibv_send_wr wr = {
        .sg_list = &sge, .num_sge = 1, .opcode = opcode, .send_flags = IBV_SEND_SIGNALED};
    struct ibv_send_wr *bad;

    wr.wr.rdma.remote_addr = (uintptr_t)far->addr;
    wr.wr.rdma.rkey = far->rkey;
    ck_assert_int_eq(ibv_post_send(qp, &wr, &bad), 0);
    return table_wc(v, cq).status;
}
