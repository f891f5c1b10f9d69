/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests the WQEs that builders leave in the send queue (ibv_wr_start() and later calls): they are
 * those of libmlx5. */
#include <check.h>
#include "guest-lib/verbs/user/queues.h"
#include "tests/unit/suite.h"
#include "tests/verbs/verbs_table.h"

static struct verbs_table *v;
static struct ibv_cq *cq[2];
static struct ibv_qp *a, *b;
static struct ibv_qp_ex *ex;

static void setup(void)
{
    struct ibv_qp_init_attr_ex attr = {
        .qp_type = IBV_QPT_RC,
        .cap = {.max_send_wr = 8, .max_send_sge = 1, .max_recv_wr = 1, .max_recv_sge = 1},
        .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
        .send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_LOCAL_INV};

    v = verbs_table_new();
    cq[0] = ibv_create_cq(v->a, 63, NULL, NULL, 0);
    cq[1] = ibv_create_cq(v->b, 63, NULL, NULL, 0);
    attr.send_cq = attr.recv_cq = cq[0];
    attr.pd = v->hosts->host[0].pd;
    a = ibv_create_qp_ex(v->a, &attr);
    ck_assert_ptr_nonnull(a);
    b = table_qp_new(v, 1, cq[1], NULL);
    table_connect(v, a, b);
    ex = ibv_qp_to_qp_ex(a);
}

static void teardown(void)
{
    table_qp_free(a);
    table_qp_free(b);
    ck_assert_int_eq(ibv_destroy_cq(cq[0]), 0);
    ck_assert_int_eq(ibv_destroy_cq(cq[1]), 0);
    verbs_table_free(v);
}

/* Builds a SEND and aborts it, or not; returns the fence of its WQE. */
static unsigned fence_of_send(bool abort)
{
    const struct user_qp *qp = user_qp(a);
    const struct prm_wqe_ctrl_seg *wqe =
        (const void *)(qp->sq.buf + (size_t)(qp->sq_post & (qp->sq.wqe_cnt - 1)) * 64);

    ibv_wr_start(ex);
    ibv_wr_send(ex);
    ibv_wr_set_sge(ex, 0, 0, 0);
    if (abort) {
        ibv_wr_abort(ex);
    } else {
        ck_assert_int_eq(ibv_wr_complete(ex), 0);
    }
    return PRM_GET(wqe_ctrl_seg, wqe, fm);
}

static void invalidate(void)
{
    ibv_wr_local_inv(ex, 0x100);
}

/* Only the first WQE after a UMR waits for it. */
START_TEST(what_follows_a_umr_waits_for_it)
{
    ibv_wr_start(ex);
    invalidate();
    ck_assert_int_eq(ibv_wr_complete(ex), 0);
    ck_assert_uint_eq(fence_of_send(false), PRM_WQE_FM_INITIATOR_SMALL);
    ck_assert_uint_eq(fence_of_send(false), PRM_WQE_FM_NONE);
}
END_TEST

/* mlx5_send_wr_abort(): the next WQE waits if it would have waited without the aborted series. */
START_TEST(what_is_given_up_did_not_wait)
{
    ibv_wr_start(ex);
    invalidate();
    ck_assert_int_eq(ibv_wr_complete(ex), 0);
    ck_assert_uint_eq(fence_of_send(true), PRM_WQE_FM_INITIATOR_SMALL);
    ck_assert_uint_eq(fence_of_send(false), PRM_WQE_FM_INITIATOR_SMALL);
    ibv_wr_start(ex);
    invalidate();
    ibv_wr_abort(ex);
    ck_assert_uint_eq(fence_of_send(false), PRM_WQE_FM_NONE);
}
END_TEST

/* The same holds if ibv_wr_complete() fails. */
START_TEST(what_fails_did_not_wait)
{
    const struct ibv_sge none[2] = {0};

    ibv_wr_start(ex);
    invalidate();
    ck_assert_int_eq(ibv_wr_complete(ex), 0);
    ibv_wr_start(ex);
    ibv_wr_send(ex);
    ibv_wr_set_sge_list(ex, 2, none); /* one more than there is room for */
    ck_assert_int_eq(ibv_wr_complete(ex), ENOMEM);
    ck_assert_uint_eq(fence_of_send(false), PRM_WQE_FM_INITIATOR_SMALL);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("verbs-post");
    TCase *tc = tcase_create("verbs-post");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, what_follows_a_umr_waits_for_it);
    tcase_add_test(tc, what_is_given_up_did_not_wait);
    tcase_add_test(tc, what_fails_did_not_wait);
    suite_add_tcase(suite, tc);
    return suite;
}
