/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests RLIMIT_MEMLOCK, if the configuration enables it (guest-lib/verbs/kernel/memlock.c): the
 * results are those of ib_umem_get().
 */
#define _GNU_SOURCE
#include <check.h>
#include <errno.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "guest-lib/verbs/dv.h"
#include "tests/programs/own_wire.h"

#define PAGE  4096
#define LIMIT 64 /* pages */

static struct ibv_device **list;
static struct ibv_context *ctx;
static struct ibv_pd *pd;
static uint8_t memory[2 * LIMIT * PAGE] __attribute__((aligned(PAGE)));

static void allow(unsigned pages)
{
    struct rlimit limit = {.rlim_cur = (rlim_t)pages * PAGE, .rlim_max = (rlim_t)LIMIT * PAGE};

    ck_assert_int_eq(setrlimit(RLIMIT_MEMLOCK, &limit), 0);
}

/* From now on the limit applies to this process. */
static void give_up_rights(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

    ck_assert_int_eq(syscall(SYS_capget, &header, data), 0);
    data[CAP_TO_INDEX(CAP_IPC_LOCK)].effective &= ~CAP_TO_MASK(CAP_IPC_LOCK);
    ck_assert_int_eq(syscall(SYS_capset, &header, data), 0);
}

static void setup(void)
{
    give_up_rights();
    list = ibv_get_device_list(NULL);
    ck_assert(list && list[0]);
    ctx = ibv_open_device(list[0]);
    ck_assert_ptr_nonnull(ctx);
    pd = ibv_alloc_pd(ctx);
    ck_assert_ptr_nonnull(pd);
    allow(LIMIT);
}

static void teardown(void)
{
    ck_assert_int_eq(ibv_dealloc_pd(pd), 0);
    ck_assert_int_eq(ibv_close_device(ctx), 0);
    ibv_free_device_list(list);
}

static struct ibv_mr *reg(unsigned pages)
{
    errno = 0;
    return ibv_reg_mr(pd, memory, (size_t)pages * PAGE, IBV_ACCESS_LOCAL_WRITE);
}

static struct ibv_mr *must_reg(unsigned pages)
{
    struct ibv_mr *mr = reg(pages);

    ck_assert_msg(mr, "%u pages: errno %d", pages, errno);
    return mr;
}

/* Checks how many pages are left: a further page fails with ENOMEM. */
static void expect_left(unsigned pages)
{
    if (pages) {
        ck_assert_int_eq(ibv_dereg_mr(must_reg(pages)), 0);
    }
    ck_assert_ptr_null(reg(pages + 1));
    ck_assert_int_eq(errno, ENOMEM);
}

START_TEST(pages_of_regions_count)
{
    struct ibv_mr *mr = must_reg(LIMIT - 4), *again = must_reg(3), *part;

    expect_left(1);
    part = ibv_reg_mr(pd, memory + PAGE - 1, 2, IBV_ACCESS_LOCAL_WRITE); /* of two pages */
    ck_assert_ptr_null(part);
    ck_assert_int_eq(errno, ENOMEM);
    ck_assert_int_eq(ibv_dereg_mr(again), 0);
    part = ibv_reg_mr(pd, memory + PAGE - 1, 2, IBV_ACCESS_LOCAL_WRITE);
    ck_assert_ptr_nonnull(part);
    expect_left(2);
    ck_assert_int_eq(ibv_dereg_mr(part), 0);
    ck_assert_int_eq(ibv_dereg_mr(mr), 0);
    expect_left(LIMIT);
}
END_TEST

/* Memory that cannot be registered is not counted. */
START_TEST(a_failed_registration_is_not_counted)
{
    ck_assert_ptr_null(ibv_reg_mr(pd, (void *)PAGE, PAGE, IBV_ACCESS_LOCAL_WRITE));
    ck_assert_int_eq(errno, EFAULT);
    expect_left(LIMIT);
}
END_TEST

/* The new memory is pinned before the old memory is unpinned. */
START_TEST(a_region_moves_within_the_limit)
{
    struct ibv_mr *mr = must_reg(10);

    ck_assert_int_eq(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, memory, 20 * PAGE, 0),
                     0);
    expect_left(LIMIT - 20);
    ck_assert_int_eq(
        ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, memory, (LIMIT - 10) * PAGE, 0),
        IBV_REREG_MR_ERR_CMD);
    ck_assert_int_eq(errno, ENOMEM);
    expect_left(LIMIT - 20);
    ck_assert_int_eq(ibv_dereg_mr(mr), 0);
}
END_TEST

/* A ring counts, and the page of its doorbell record, which a context's queues share. */
START_TEST(queues_count)
{
    struct ibv_cq *cq = ibv_create_cq(ctx, 15, NULL, NULL, 0), *other;
    struct ibv_qp_init_attr init = {
        .send_cq = cq, .recv_cq = cq, .cap = {1, 1, 1, 1, 0}, .qp_type = IBV_QPT_UD};
    struct ibv_qp *qp;

    ck_assert_ptr_nonnull(cq);
    expect_left(LIMIT - 2);
    other = ibv_create_cq(ctx, 127, NULL, NULL, 0);
    ck_assert_ptr_nonnull(other);
    expect_left(LIMIT - 4);
    ck_assert_int_eq(ibv_resize_cq(other, 63), 0);
    expect_left(LIMIT - 3);
    qp = ibv_create_qp(pd, &init);
    ck_assert_ptr_nonnull(qp);
    expect_left(LIMIT - 4);
    ck_assert_int_eq(ibv_destroy_qp(qp), 0);
    ck_assert_int_eq(ibv_destroy_cq(other), 0);
    ck_assert_int_eq(ibv_destroy_cq(cq), 0);
    expect_left(LIMIT);
    allow(1);
    ck_assert_ptr_null(ibv_create_cq(ctx, 15, NULL, NULL, 0));
    ck_assert_int_eq(errno, ENOMEM);
    expect_left(1);
}
END_TEST

START_TEST(user_memory_counts)
{
    struct mlx5dv_devx_umem *umem =
        hv_dv_devx_umem_reg(ctx, memory, 5 * PAGE, IBV_ACCESS_LOCAL_WRITE);

    ck_assert_ptr_nonnull(umem);
    expect_left(LIMIT - 5);
    ck_assert_int_eq(hv_dv_devx_umem_dereg(umem), 0);
    expect_left(LIMIT);
}
END_TEST

/* can_do_mlock() */
START_TEST(a_limit_of_0_is_a_missing_right)
{
    allow(0);
    ck_assert_ptr_null(reg(1));
    ck_assert_int_eq(errno, EPERM);
}
END_TEST

/* Memory of a device that closes is unpinned. */
START_TEST(a_device_that_closes_counts_no_more)
{
    struct ibv_context *opened = ibv_open_device(list[0]);
    static struct ibv_pd *volatile left_pd; /* the program's, for good */
    static struct ibv_mr *volatile left;
    static struct ibv_cq *volatile left_cq;

    left_pd = ibv_alloc_pd(opened);
    left = ibv_reg_mr(left_pd, memory, 7 * PAGE, IBV_ACCESS_LOCAL_WRITE);
    left_cq = ibv_create_cq(opened, 15, NULL, NULL, 0);
    ck_assert(left && left_cq);
    expect_left(LIMIT - 9);
    ck_assert_int_eq(ibv_close_device(opened), 0);
    expect_left(LIMIT);
}
END_TEST

/* The child's own mm has pinned nothing. */
START_TEST(a_child_begins_at_0)
{
    struct ibv_mr *mr = must_reg(LIMIT);
    int status;
    pid_t pid = fork();

    if (!pid) {
        setup(); /* its own device */
        expect_left(LIMIT);
        _exit(0);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    ck_assert_int_eq(ibv_dereg_mr(mr), 0);
}
END_TEST

/* By default nothing counts. */
START_TEST(without_the_option_there_is_no_limit)
{
    unsetenv("HCASIM_MEMLOCK");
    setup();
    ck_assert_int_eq(ibv_dereg_mr(must_reg(2 * LIMIT)), 0);
    teardown();
}
END_TEST

/* ib_umem_odp_get() pins nothing. */
START_TEST(paged_memory_does_not_count)
{
    struct ibv_mr *mr[2];

    allow(1);
    mr[0] = ibv_reg_mr(pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND);
    ck_assert_ptr_nonnull(mr[0]);
    mr[1] = ibv_reg_mr(pd, NULL, SIZE_MAX, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND);
    ck_assert_ptr_nonnull(mr[1]);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(ibv_dereg_mr(mr[i]), 0);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("verbs-memlock");
    TCase *tc = tcase_create("limit"), *none = tcase_create("none");

    setenv("HCASIM_MEMLOCK", "1", 1);
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, pages_of_regions_count);
    tcase_add_test(tc, a_failed_registration_is_not_counted);
    tcase_add_test(tc, a_region_moves_within_the_limit);
    tcase_add_test(tc, queues_count);
    tcase_add_test(tc, user_memory_counts);
    tcase_add_test(tc, a_limit_of_0_is_a_missing_right);
    tcase_add_test(tc, a_device_that_closes_counts_no_more);
    tcase_add_test(tc, a_child_begins_at_0);
    tcase_add_test(tc, paged_memory_does_not_count);
    suite_add_tcase(suite, tc);
    tcase_add_test(none, without_the_option_there_is_no_limit);
    suite_add_tcase(suite, none);
    return run_on_own_wire(suite, "verbs-memlock");
}
