/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests companion queues, by which a GPU learns of completions without a look at a CQ (DOCA's
 * gpunetio, doca_gpu_dev_verbs_put_counter(); NCCL's GIN counters): a second QP waits until the CQ
 * of the first has had a CQE, and then adds to a word in memory. Both are made by DevX and share a
 * doorbell page. The CPU stores here what a kernel stores there.
 *
 * gpunetio means to set cd_master, but its macro for fields of 64 bits writes the bit elsewhere, so
 * cards get a QP without it, and carry out its WAITs. Both forms are tested.
 */
#include <check.h>
#include <stdlib.h>
#include "guest-lib/verbs/kernel/kernel.h"
#include "tests/unit/suite.h"
#include "tests/verbs/gpu_queues.h"
#include "tests/verbs/verbs_table.h"

#define LEN 64

static struct verbs_table *v;
static struct mlx5dv_devx_uar *uar;
static struct gpu_queue first, companion;
static struct gpu_target there, here;
static struct ibv_mr *near, *far, *words;
static uint64_t *counter;

static void make(bool master)
{
    const struct gpu_terms terms = {.mtu = IBV_MTU_1024, .timeout = 14};
    struct gpu_queue_attr attr = {.ctx = v->a,
                                  .pd = v->hosts->host[0].pd,
                                  .devx = true,
                                  .collapsed = true,
                                  .order = GPU_DOORBELL_TWICE,
                                  .uar = uar};

    gpu_queue_new(&first, &attr, gpu_store_now, NULL);
    attr.collapsed = false;
    attr.master = master;
    gpu_queue_new(&companion, &attr, gpu_store_now, NULL);
    gpu_target_new(&there, v->b, v->hosts->host[1].pd, false);
    gpu_target_new(&here, v->a, v->hosts->host[0].pd, false);
    gpu_connect(&first, &there, &terms);
    gpu_connect(&companion, &here, &terms);
}

static void setup(void)
{
    v = verbs_table_new();
    uar = hv_dv_devx_alloc_uar(v->a, MLX5DV_UAR_ALLOC_TYPE_NC);
    ck_assert_ptr_nonnull(uar);
    near = table_mr_new(v, 0);
    far = table_mr_new(v, 1);
    words = table_mr_new(v, 0);
    counter = words->addr;
    *counter = 0;
}

static void teardown(void)
{
    gpu_queue_free(&first);
    gpu_queue_free(&companion);
    gpu_target_free(&there);
    gpu_target_free(&here);
    hv_dv_devx_free_uar(uar);
    table_mr_free(words);
    table_mr_free(far);
    table_mr_free(near);
    verbs_table_free(v);
}

static struct gpu_op between(enum gpu_what what)
{
    return (struct gpu_op){.what = what,
                           .raddr = (uintptr_t)far->addr,
                           .rkey = far->rkey,
                           .laddr = (uintptr_t)near->addr,
                           .lkey = near->lkey,
                           .len = LEN};
}

/* Posts what adds 1 to the counter when the first queue's WQE with this index has completed. Each
 * WQE of the first queue has a CQE, so the numbers of both are the same. */
static void post_count(uint32_t index)
{
    const struct gpu_op wait = {
        .what = GPU_WAIT, .wait_cqn = first.cq_obj->id, .wait_index = index};
    const struct gpu_op add = {.what = GPU_FA,
                               .raddr = (uintptr_t)counter,
                               .rkey = words->rkey,
                               .laddr = (uintptr_t)(counter + 1),
                               .lkey = words->lkey,
                               .len = 8,
                               .operand = {1}};

    gpu_post(&companion.sq, &wait);
    gpu_post_and_ring(&companion.sq, &add);
}

static void expect_cqe(uint32_t index, uint8_t opcode)
{
    struct gpu_cqe cqe;

    ck_assert(gpu_poll(&companion.cq, &cqe));
    ck_assert_uint_eq(cqe.index, index & 0xffff);
    ck_assert_uint_eq(cqe.opcode, opcode);
}

static void expect_no_cqe(void)
{
    struct gpu_cqe cqe;

    ck_assert(!gpu_poll(&companion.cq, &cqe));
}

/* doca_gpu_dev_verbs_put_counter(); several times around both rings. */
START_TEST(a_companion_counts_the_completions_of_its_queue)
{
    struct gpu_op write = between(GPU_WRITE);

    make(_i);
    for (uint32_t i = 0; i < 100; i++) {
        memset(near->addr, (int)i + 1, LEN);
        post_count(i);
        table_wait(v);
        ck_assert_uint_eq(*counter, i);
        expect_no_cqe();
        gpu_post_and_ring(&first.sq, &write);
        table_wait(v);
        ck_assert_uint_eq(*counter, i + 1);
        ck_assert_mem_eq(near->addr, far->addr, LEN);
        expect_cqe(2 * i, 0);     /* the WAIT */
        expect_cqe(2 * i + 1, 0); /* the addition */
        expect_no_cqe();
    }
}
END_TEST

/* A CQE that was written long ago ends a WAIT at once. */
START_TEST(a_wait_for_the_past_ends_at_once)
{
    struct gpu_op write = between(GPU_WRITE);

    make(_i);
    for (uint32_t i = 0; i < 8; i++) {
        gpu_post_and_ring(&first.sq, &write);
    }
    table_wait(v);
    for (uint32_t i = 8; i-- > 0;) {
        post_count(i);
        table_wait(v);
        ck_assert_uint_eq(*counter, 8 - i);
    }
}
END_TEST

/* doca_gpu_dev_verbs_get_counter(): the data of a READ is in memory when a DUMP behind it has
 * completed, and that is what the companion waits for. */
START_TEST(a_dump_behind_a_read_is_counted)
{
    struct gpu_op read = between(GPU_READ), dump = between(GPU_DUMP);

    make(_i);
    dump.fence = true;
    post_count(1);
    gpu_post_and_ring(&first.sq, &read);
    table_wait(v);
    ck_assert_uint_eq(*counter, 0); /* the READ's CQE is number 0 */
    ck_assert_mem_eq(near->addr, far->addr, LEN);
    gpu_post_and_ring(&first.sq, &dump);
    table_wait(v);
    ck_assert_uint_eq(*counter, 1);
}
END_TEST

/* The queues fail with a WAIT that nothing ends: it is flushed like any WQE. */
START_TEST(a_wait_without_end_is_flushed)
{
    make(_i);
    post_count(0);
    table_wait(v);
    expect_no_cqe();
    gpu_queue_fail(&companion);
    table_wait(v);
    expect_cqe(0, GPU_CQE_ERROR);
    expect_cqe(1, GPU_CQE_ERROR);
    ck_assert_uint_eq(*counter, 0);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *s = suite_create("companion queues");
    TCase *tc = tcase_create("counters");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    /* without and with cd_master */
    tcase_add_loop_test(tc, a_companion_counts_the_completions_of_its_queue, 0, 2);
    tcase_add_loop_test(tc, a_wait_for_the_past_ends_at_once, 0, 2);
    tcase_add_loop_test(tc, a_dump_behind_a_read_is_counted, 0, 2);
    tcase_add_loop_test(tc, a_wait_without_end_is_flushed, 0, 2);
    suite_add_tcase(s, tc);
    return s;
}
