/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests DevX: Ethernet queues that have no ring of their own. */
#include <check.h>
#include <string.h>
#include "guest-lib/verbs/kernel/devx.h"
#include "guest-lib/verbs/kernel/hca.h"
#include "tests/unit/suite.h"
#include "tests/verbs/verbs_table.h"

static struct verbs_table *v;

static void setup(void)
{
    v = verbs_table_new();
}

static void teardown(void)
{
    verbs_table_free(v);
}

static void hairpin_wq(struct prm_wq *wq)
{
    PRM_SET(wq, wq, log_hairpin_data_sz, 16);
    PRM_SET(wq, wq, log_hairpin_num_packets, 10);
}

/* The kernel sets the flags of umems for each queue of a user, also for hairpin queues and for
 * queues with an RMP, which have no ring. DPDK makes both. */
START_TEST(queues_without_a_ring_name_no_umem)
{
    struct prm_create_sq_in sq_in[1] = {0};
    struct prm_create_sq_out sq_out[1] = {0};
    struct prm_create_rq_in rq_in[1] = {0};
    struct prm_create_rq_out rq_out[1] = {0};
    struct prm_create_rmp_in rmp_in[1] = {0};
    struct prm_create_rmp_out rmp_out[1] = {0};
    struct prm_sqc *sqc = PRM_PTR(create_sq_in, sq_in, ctx);
    struct prm_rqc *rqc = PRM_PTR(create_rq_in, rq_in, ctx);
    struct prm_rmpc *rmpc = PRM_PTR(create_rmp_in, rmp_in, ctx);
    struct prm_wq *wq = PRM_PTR(rmpc, rmpc, wq);
    struct ibv_pd *pd = ibv_alloc_pd(v->a);
    struct ibv_cq *cq = ibv_create_cq(v->a, 16, NULL, NULL, 0);
    struct table_umem ring = table_umem_new(v->a, PCI_PAGE), dbr = table_umem_new(v->a, 64);
    struct mlx5dv_devx_obj *sq, *rq, *rmp;

    PRM_SET(create_sq_in, sq_in, opcode, PRM_CMD_OP_CREATE_SQ);
    PRM_SET(sqc, sqc, hairpin, 1);
    hairpin_wq(PRM_PTR(sqc, sqc, wq));
    sq = hv_dv_devx_obj_create(v->a, sq_in, sizeof(sq_in), sq_out, sizeof(sq_out));
    ck_assert_ptr_nonnull(sq);
    PRM_SET(create_rq_in, rq_in, opcode, PRM_CMD_OP_CREATE_RQ);
    PRM_SET(rqc, rqc, hairpin, 1);
    hairpin_wq(PRM_PTR(rqc, rqc, wq));
    rq = hv_dv_devx_obj_create(v->a, rq_in, sizeof(rq_in), rq_out, sizeof(rq_out));
    ck_assert_ptr_nonnull(rq);
    ck_assert_int_eq(hv_dv_devx_obj_destroy(rq), 0);
    ck_assert_int_eq(hv_dv_devx_obj_destroy(sq), 0);
    /* there is no memory that could be a hairpin queue's */
    PRM_SET(wq, PRM_PTR(sqc, sqc, wq), wq_umem_id, ring.umem->umem_id);
    ck_assert_ptr_null(hv_dv_devx_obj_create(v->a, sq_in, sizeof(sq_in), sq_out, sizeof(sq_out)));

    PRM_SET(create_rmp_in, rmp_in, opcode, PRM_CMD_OP_CREATE_RMP);
    PRM_SET(rmpc, rmpc, state, PRM_RMPC_STATE_RDY);
    PRM_SET(rmpc, rmpc, basic_cyclic_rcv_wqe, 1);
    PRM_SET(wq, wq, wq_type, PRM_WQ_TYPE_CYCLIC);
    PRM_SET(wq, wq, log_wq_stride, 4);
    PRM_SET(wq, wq, log_wq_sz, 4);
    PRM_SET(wq, wq, pd, hv_pd(pd)->pdn);
    PRM_SET(wq, wq, wq_umem_id, ring.umem->umem_id);
    PRM_SET(wq, wq, dbr_umem_id, dbr.umem->umem_id);
    rmp = hv_dv_devx_obj_create(v->a, rmp_in, sizeof(rmp_in), rmp_out, sizeof(rmp_out));
    ck_assert_ptr_nonnull(rmp);
    memset(rqc, 0, PRM_SIZE(rqc));
    PRM_SET(rqc, rqc, mem_rq_type, PRM_RQC_MEM_RQ_TYPE_MEMORY_RQ_RMP);
    PRM_SET(rqc, rqc, rmpn, rmp->id);
    PRM_SET(rqc, rqc, cqn, hv_cq(cq)->cqn);
    rq = hv_dv_devx_obj_create(v->a, rq_in, sizeof(rq_in), rq_out, sizeof(rq_out));
    ck_assert_ptr_nonnull(rq);
    ck_assert_int_eq(hv_dv_devx_obj_destroy(rq), 0);
    ck_assert_int_eq(hv_dv_devx_obj_destroy(rmp), 0);
    table_umem_free(&ring);
    table_umem_free(&dbr);
    ck_assert_int_eq(ibv_destroy_cq(cq), 0);
    ck_assert_int_eq(ibv_dealloc_pd(pd), 0);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("devx-queues");
    TCase *tc = tcase_create("devx-queues");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, queues_without_a_ring_name_no_umem);
    suite_add_tcase(suite, tc);
    return suite;
}
