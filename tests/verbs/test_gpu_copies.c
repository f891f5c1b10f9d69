/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests copies by the device (mlx5dv_wr_memcpy()) from and to memory of a GPU, and on-demand
 * regions of such memory, under the stand-in GPU.
 */
#include <check.h>
#include <string.h>
#include "guest-lib/verbs/dv.h"
#include "tests/unit/suite.h"
#include "tests/verbs/gpu_areas.h"

#define LEN       (100u << 10)
#define PAIRS     (AREA_KINDS * AREA_KINDS - 1) /* of which a GPU has at least one */
#define KIND_A(i) ((enum area_kind)((i) / AREA_KINDS))
#define KIND_B(i) ((enum area_kind)((i) % AREA_KINDS))

static struct ibv_qp *copier;
static struct ibv_cq *cq;

static void begin_as(const char *profile)
{
    areas_begin_as(NULL, profile);
    cq = areas.cq[0];
}

static void setup(void)
{
    struct ibv_qp_init_attr_ex attr;
    struct mlx5dv_qp_init_attr dv = {.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS,
                                     .send_ops_flags = MLX5DV_QP_EX_WITH_MEMCPY};

    begin_as("cx6dx");
    attr = (struct ibv_qp_init_attr_ex){
        .qp_type = IBV_QPT_RC,
        .send_cq = cq,
        .recv_cq = cq,
        .cap = {.max_send_wr = 16, .max_recv_wr = 1, .max_send_sge = 2, .max_recv_sge = 1},
        .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
        .pd = area_pd(0),
        .send_ops_flags = IBV_QP_EX_WITH_SEND,
    };
    copier = mlx5dv_create_qp(areas.v->a, &attr, &dv);
    ck_assert_ptr_nonnull(copier);
    verbs_connect(copier, &areas.v->hosts->host[0], copier->qp_num, NULL);
}

static void teardown(void)
{
    table_qp_free(copier);
    areas_end();
}

static void copy(const struct area *from, size_t at, const struct area *to, size_t to_at,
                 size_t len)
{
    struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(copier);

    ibv_wr_start(ex);
    ex->wr_flags = IBV_SEND_SIGNALED;
    mlx5dv_wr_memcpy(mlx5dv_qp_ex_from_ibv_qp_ex(ex), to->mr->lkey, (uintptr_t)to->mr->addr + to_at,
                     from->mr->lkey, (uintptr_t)from->mr->addr + at, len);
    ck_assert_int_eq(ibv_wr_complete(ex), 0);
}

/* Within the kinds of memory and between them. */
START_TEST(copies_move_the_data)
{
    static const struct {
        size_t from, to, len;
    } moves[] = {{0, 0, 1}, {3, 8, 9}, {1, 4095, 4098}, {100, 50, 9000}, {0, 5, LEN - 5}};
    struct area from = area_new(area_pd(0), KIND_A(_i), LEN, 1);
    struct area to = area_new(area_pd(0), KIND_B(_i), LEN, 2);

    for (size_t i = 0; i < G_N_ELEMENTS(moves); i++) {
        copy(&from, moves[i].from, &to, moves[i].to, moves[i].len);
        area_expect(cq, IBV_WC_SUCCESS);
        area_expect_bytes(&to, moves[i].to, moves[i].len, 1, moves[i].from);
        area_expect_rest(&to, moves[i].to, moves[i].len, 2);
        area_expect_bytes(&from, 0, LEN, 1, 0);
        area_fill(&to, 2);
    }
    area_end(&from);
    area_end(&to);
}
END_TEST

/* A copy from or to memory of a GPU that was freed fails, and leaves the other side as it was. */
START_TEST(copies_of_freed_memory_fail)
{
    struct area lost = area_new(area_pd(0), AREA_DEVICE, LEN, 1);
    struct area other = area_new(area_pd(0), _i / 2 ? AREA_DEVICE : AREA_PLAIN, LEN, 2);

    area_drop(&lost);
    copy(_i % 2 ? &other : &lost, 0, _i % 2 ? &lost : &other, 0, 5000);
    area_expect(cq, IBV_WC_LOC_PROT_ERR);
    area_expect_bytes(&other, 0, LEN, 2, 0);
    area_end(&lost);
    area_end(&other);
}
END_TEST

/* The regions' bounds are checked as for any copy. */
START_TEST(copies_beyond_a_region_fail)
{
    struct area from = area_new(area_pd(0), AREA_DEVICE, LEN, 1);
    struct area to = area_new(area_pd(0), AREA_DEVICE, LEN, 2);

    copy(&from, _i ? LEN - 99 : 0, &to, _i ? 0 : LEN - 99, 100);
    area_expect(cq, IBV_WC_LOC_PROT_ERR);
    area_expect_bytes(&to, 0, LEN, 2, 0);
    area_end(&from);
    area_end(&to);
}
END_TEST

/* -- on-demand regions ------------------------------------------------------------------------- */

static const char *const paged_profiles[] = {"cx5", "cx7"}; /* one for each scheme */

static void teardown_paged(void)
{
    areas_end();
}

static struct ibv_mr *reg_paged(int side, const struct area *area)
{
    return ibv_reg_mr(area_pd(side), (void *)(uintptr_t)area->addr, area->len,
                      AREA_RIGHTS | IBV_ACCESS_ON_DEMAND);
}

/* The kernel makes an on-demand region of any addresses, and looks for pages at faults. No process
 * has pages where memory of a GPU is: the operation fails, on either side, and the other queue
 * pairs go on. */
START_TEST(an_on_demand_region_has_no_memory_of_a_gpu)
{
    bool is_remote = _i / 2;
    struct area gpu, near, far;
    struct ibv_mr *paged;
    struct ibv_sge sge;
    struct area target;

    begin_as(paged_profiles[_i % 2]);
    gpu = area_new(area_pd(is_remote), AREA_DEVICE, LEN, 1);
    near = area_new(area_pd(0), AREA_PLAIN, LEN, 2);
    far = area_new(area_pd(1), AREA_PLAIN, LEN, 3);
    paged = reg_paged(is_remote, &gpu);
    ck_assert_ptr_nonnull(paged);
    sge = area_part(&near, 0, 64);
    target = far;
    if (is_remote) {
        target.mr = paged;
    } else {
        sge = (struct ibv_sge){.addr = gpu.addr, .length = 64, .lkey = paged->lkey};
    }
    area_post(IBV_WR_RDMA_WRITE, sge, &target, 0, 0);
    area_expect(cq, is_remote ? IBV_WC_REM_ACCESS_ERR : IBV_WC_LOC_PROT_ERR);
    area_expect_bytes(&gpu, 0, LEN, 1, 0);
    area_expect_bytes(&far, 0, LEN, 3, 0);
    verbs_must_be_0(ibv_dereg_mr(paged));
    area_end(&gpu);
    area_end(&near);
    area_end(&far);
}
END_TEST

/* Memory of the host that CUDA has pinned or registered is memory of the process. */
START_TEST(an_on_demand_region_may_have_pinned_memory)
{
    struct area pinned, far;
    struct ibv_mr *paged;

    begin_as(paged_profiles[_i % 2]);
    pinned = area_new(area_pd(0), _i / 2 ? AREA_PINNED : AREA_REGISTERED, LEN, 1);
    far = area_new(area_pd(1), AREA_PLAIN, LEN, 3);
    paged = reg_paged(0, &pinned);
    ck_assert_ptr_nonnull(paged);
    area_post(IBV_WR_RDMA_WRITE,
              (struct ibv_sge){.addr = pinned.addr, .length = LEN, .lkey = paged->lkey}, &far, 0,
              0);
    area_expect(cq, IBV_WC_SUCCESS);
    area_expect_bytes(&far, 0, LEN, 1, 0);
    verbs_must_be_0(ibv_dereg_mr(paged));
    area_end(&pinned);
    area_end(&far);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *s = suite_create("copies and pages of a GPU");
    TCase *tc = tcase_create("copies"), *paged = tcase_create("paged");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, copies_move_the_data, 0, PAIRS);
    tcase_add_loop_test(tc, copies_of_freed_memory_fail, 0, 4);
    tcase_add_loop_test(tc, copies_beyond_a_region_fail, 0, 2);
    suite_add_tcase(s, tc);
    tcase_add_checked_fixture(paged, NULL, teardown_paged);
    tcase_set_timeout(paged, 60);
    tcase_add_loop_test(paged, an_on_demand_region_has_no_memory_of_a_gpu, 0, 4);
    tcase_add_loop_test(paged, an_on_demand_region_may_have_pinned_memory, 0, 4);
    suite_add_tcase(s, paged);
    return s;
}
