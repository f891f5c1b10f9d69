/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests QPs whose data may be placed out of order (mlx5dv_create_qp(), MLX5DV_QP_CREATE_OOO_DP):
 * what is refused, as by libmlx5 and the kernel, and what the device is told. */
#include <check.h>
#include <stdlib.h>
#include "guest-lib/verbs/dv.h"
#include "tests/unit/suite.h"
#include "tests/verbs/verbs_table.h"

#define OOO_DP (1u << 7) /* older headers do not have it */

static struct verbs_table *v;
static struct ibv_cq *cq[2];

static void setup(void)
{
    v = verbs_table_new();
    cq[0] = ibv_create_cq(v->a, 63, NULL, NULL, 0);
    cq[1] = ibv_create_cq(v->b, 63, NULL, NULL, 0);
}

static void teardown(void)
{
    ck_assert_int_eq(ibv_destroy_cq(cq[0]), 0);
    ck_assert_int_eq(ibv_destroy_cq(cq[1]), 0);
    verbs_table_free(v);
}

static struct ibv_qp *make(int side, enum ibv_qp_type type, uint32_t max_recv)
{
    struct ibv_qp_init_attr_ex attr = {
        .qp_type = type,
        .send_cq = cq[side],
        .recv_cq = cq[side],
        .cap = {.max_send_wr = 16, .max_send_sge = 1, .max_recv_wr = max_recv, .max_recv_sge = 1},
        .comp_mask = IBV_QP_INIT_ATTR_PD,
        .pd = v->hosts->host[side].pd};
    struct mlx5dv_qp_init_attr dv = {.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS,
                                     .create_flags = OOO_DP};

    errno = 0;
    return hv_dv_create_qp(side ? v->b : v->a, &attr, &dv);
}

static uint32_t most_recv(void)
{
    return 1u << HV_CAP(v->hca[0], log_max_qp_sz);
}

/* mlx5_get_max_recv_wr(): a ring has twice as many entries, of which half may be posted at a
 * time. */
START_TEST(a_ring_has_twice_the_requested_receives)
{
    struct ibv_qp *qp = make(0, IBV_QPT_RC, most_recv() / 2);
    struct ibv_qp_init_attr init;
    struct ibv_qp_attr attr;
    const int to_init = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
    struct ibv_recv_wr wr = {.num_sge = 0}, *bad;

    ck_assert_ptr_nonnull(qp);
    ck_assert_int_eq(ibv_query_qp(qp, &attr, IBV_QP_CAP, &init), 0);
    ck_assert_uint_eq(init.cap.max_recv_wr, most_recv() / 2);
    ck_assert_int_eq(ibv_destroy_qp(qp), 0);
    ck_assert_ptr_null(make(0, IBV_QPT_RC, most_recv() / 2 + 1));
    ck_assert_int_eq(errno, EINVAL);

    qp = make(0, IBV_QPT_RC, 8);
    attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_INIT, .port_num = 1};
    ck_assert_int_eq(ibv_modify_qp(qp, &attr, to_init), 0);
    for (int i = 0; i < 8; i++) {
        ck_assert_int_eq(ibv_post_recv(qp, &wr, &bad), 0);
    }
    ck_assert_int_eq(ibv_post_recv(qp, &wr, &bad), ENOMEM);
    ck_assert_int_eq(ibv_destroy_qp(qp), 0);
}
END_TEST

/* is_qpt_ooo_sup(): NVIDIA supports it for RC, XRC and DC. */
START_TEST(other_services_refuse_it)
{
    static const enum ibv_qp_type types[] = {IBV_QPT_UC, IBV_QPT_UD, IBV_QPT_RAW_PACKET};

    for (size_t i = 0; i < G_N_ELEMENTS(types); i++) {
        ck_assert_ptr_null(make(0, types[i], 4));
        ck_assert_int_eq(errno, EOPNOTSUPP);
    }
}
END_TEST

/* mlx5_ib: INIT2RTR_QP contains dp_ordering, and atomics have 8 bytes at most. */
START_TEST(dp_ordering_is_set_on_the_way_to_rtr)
{
    struct ibv_qp *a = make(0, IBV_QPT_RC, 8), *b = make(1, IBV_QPT_RC, 8);
    struct prm_query_qp_in in[1] = {0};
    struct prm_query_qp_out out[1];
    const struct prm_qpc *qpc = PRM_PTR(query_qp_out, out, qpc);
    struct ibv_recv_wr recv = {.wr_id = 7}, *bad_recv;
    struct ibv_send_wr send = {.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED}, *bad_send;

    table_connect(v, a, b);
    PRM_SET(query_qp_in, in, opcode, PRM_CMD_OP_QUERY_QP);
    PRM_SET(query_qp_in, in, qpn, a->qp_num);
    ck_assert_int_eq(hv_cmd(v->hca[0], in, sizeof(in), out, sizeof(out)), 0);
    ck_assert_uint_eq(PRM_GET(qpc, qpc, dp_ordering_0), 0);
    ck_assert_uint_eq(PRM_GET(qpc, qpc, dp_ordering_1), 1);
    ck_assert_uint_eq(PRM_GET(qpc, qpc, dp_ordering_force), 1);
    ck_assert_uint_eq(PRM_GET(qpc, qpc, atomic_mode), PRM_ATOMIC_MODE_UP_TO_8B);

    for (int i = 0; i < 20; i++) {
        ck_assert_int_eq(ibv_post_recv(b, &recv, &bad_recv), 0);
        ck_assert_int_eq(ibv_post_send(a, &send, &bad_send), 0);
        ck_assert_int_eq(table_wc(v, cq[0]).status, IBV_WC_SUCCESS);
        ck_assert_uint_eq(table_wc(v, cq[1]).wr_id, 7);
    }
    ck_assert_int_eq(ibv_destroy_qp(a), 0);
    ck_assert_int_eq(ibv_destroy_qp(b), 0);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("order");
    TCase *tc = tcase_create("order");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, a_ring_has_twice_the_requested_receives);
    tcase_add_test(tc, other_services_refuse_it);
    tcase_add_test(tc, dp_ordering_is_set_on_the_way_to_rtr);
    suite_add_tcase(suite, tc);
    return suite;
}
