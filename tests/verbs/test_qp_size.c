/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests the send queue that a program gets: as libmlx5 sizes it (sq_overhead(),
 * mlx5_calc_sq_size()), for the operations that the program declares. */
#include <check.h>
#include <stdlib.h>
#include "guest-lib/verbs/dv.h"
#include "tests/unit/suite.h"
#include "tests/verbs/verbs_table.h"

static struct verbs_table *v;
static struct ibv_cq *cq;

static void setup(void)
{
    v = verbs_table_new();
    cq = ibv_create_cq(v->a, 63, NULL, NULL, 0);
}

static void teardown(void)
{
    ck_assert_int_eq(ibv_destroy_cq(cq), 0);
    verbs_table_free(v);
}

struct kind {
    enum ibv_qp_type type;
    uint64_t ops, dv_ops; /* 0: the program declares none */
    uint32_t max_inline;  /* with one data segment: the rest of the WQE's blocks */
};

/* Returns NULL with errno if it is refused. */
static struct ibv_qp *make(const struct kind *kind, uint32_t max_send_wr, struct ibv_qp_cap *got)
{
    struct ibv_qp_init_attr_ex attr = {
        .qp_type = kind->type,
        .send_cq = cq,
        .recv_cq = cq,
        .cap = {.max_send_wr = max_send_wr, .max_send_sge = 1},
        .comp_mask = IBV_QP_INIT_ATTR_PD | (kind->ops ? IBV_QP_INIT_ATTR_SEND_OPS_FLAGS : 0),
        .send_ops_flags = kind->ops,
        .pd = v->hosts->host[0].pd};
    struct mlx5dv_qp_init_attr dv = {.comp_mask =
                                         kind->dv_ops ? MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS : 0,
                                     .send_ops_flags = kind->dv_ops};
    struct ibv_qp *qp;

    errno = 0;
    qp = hv_dv_create_qp(v->a, &attr, &dv);
    *got = attr.cap;
    return qp;
}

START_TEST(a_wqe_has_room_for_what_is_said_to_be_posted)
{
    const uint64_t send = IBV_QP_EX_WITH_SEND, write = send | IBV_QP_EX_WITH_RDMA_WRITE,
                   atomic = write | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD,
                   bind = atomic | IBV_QP_EX_WITH_BIND_MW;
    const struct kind kinds[] = {
        {IBV_QPT_RC, send, 0, 64 - 16 - 4},
        {IBV_QPT_RC, write, 0, 64 - 32 - 4},
        {IBV_QPT_UC, write, 0, 64 - 32 - 4},
        {IBV_QPT_RC, atomic, 0, 64 - 48 - 4},
        {IBV_QPT_XRC_SEND, send, 0, 64 - 32 - 4},
        {IBV_QPT_RC, bind, 0, 256 - 192 - 4},
        {IBV_QPT_RC, send | IBV_QP_EX_WITH_LOCAL_INV, 0, 256 - 192 - 4},
        {IBV_QPT_RC, send, MLX5DV_QP_EX_WITH_MR_LIST, 256 - 192 - 4},
        {IBV_QPT_RC, 0, 0, 256 - 192 - 4},
        {IBV_QPT_UD, send, 0, 128 - 64 - 4},
        {IBV_QPT_UD, 0, 0, 128 - 64 - 4},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(kinds); i++) {
        struct ibv_qp_cap got;
        struct ibv_qp *qp = make(&kinds[i], 8, &got);

        ck_assert_msg(qp, "kind %zu: %s", i, strerror(errno));
        ck_assert_msg(got.max_inline_data == kinds[i].max_inline, "kind %zu: %u bytes inline", i,
                      got.max_inline_data);
        ck_assert_uint_eq(got.max_send_wr, 8);
        ck_assert_int_eq(ibv_destroy_qp(qp), 0);
    }
}
END_TEST

/* The queue takes as many WQEs of one block as it has blocks, and a quarter of that of WQEs of four
 * blocks. */
START_TEST(the_largest_number_of_wqes_has_a_block_each)
{
    const uint32_t blocks = 1u << HV_CAP(v->hca[0], log_max_qp_sz);
    const struct kind writes = {.type = IBV_QPT_RC,
                                .ops = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_WRITE},
                      anything = {.type = IBV_QPT_RC};
    struct ibv_qp_cap got;
    struct ibv_qp *qp = make(&writes, blocks, &got);

    ck_assert_ptr_nonnull(qp);
    ck_assert_uint_eq(got.max_send_wr, blocks);
    ck_assert_int_eq(ibv_destroy_qp(qp), 0);
    qp = make(&anything, blocks / 4, &got);
    ck_assert_ptr_nonnull(qp);
    ck_assert_int_eq(ibv_destroy_qp(qp), 0);
    ck_assert_ptr_null(make(&anything, blocks / 4 + 1, &got));
    ck_assert_int_eq(errno, EINVAL);
}
END_TEST

/* Nothing checks a raw WQE. A WQE that is longer than the ring wraps around in it. */
START_TEST(a_wqe_longer_than_the_ring_stays_in_it)
{
    const struct kind raw = {
        .type = IBV_QPT_RC, .ops = IBV_QP_EX_WITH_SEND, .dv_ops = MLX5DV_QP_EX_WITH_RAW_WQE};
    struct prm_wqe_ctrl_seg wqe[16];
    struct ibv_qp_cap got;
    struct ibv_qp *qp = make(&raw, 1, &got);
    struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(qp);
    struct mlx5dv_qp_ex *mqp = hv_dv_qp_ex_from_ibv_qp_ex(ex);
    struct mlx5dv_qp dv = {0};
    struct mlx5dv_obj obj = {.qp = {.in = qp, .out = &dv}};
    uint8_t *ring;

    ck_assert_int_eq(hv_dv_init_obj(&obj, MLX5DV_OBJ_QP), 0);
    ck_assert_uint_eq(dv.sq.wqe_cnt, 1);
    ring = dv.sq.buf;
    memset(wqe, 0xaa, sizeof(wqe));
    PRM_SET(wqe_ctrl_seg, wqe, ds, G_N_ELEMENTS(wqe));
    ibv_wr_start(ex);
    mqp->wr_raw_wqe(mqp, wqe);
    ibv_wr_abort(ex);
    for (unsigned i = 64; i < sizeof(wqe); i++) {
        ck_assert_uint_eq(ring[i], 0);
    }
    ck_assert_int_eq(ibv_destroy_qp(qp), 0);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("qp size");
    TCase *tc = tcase_create("qp size");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, a_wqe_has_room_for_what_is_said_to_be_posted);
    tcase_add_test(tc, the_largest_number_of_wqes_has_a_block_each);
    tcase_add_test(tc, a_wqe_longer_than_the_ring_stays_in_it);
    suite_add_tcase(suite, tc);
    return suite;
}
