/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests who may open a shared region: another user may do what the flags of the region say. Only
 * root can become another user, so the program is skipped for others. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include "guest-lib/verbs/kernel/shared_mr.h"
#include "tests/unit/suite.h"
#include "tests/verbs/exp_memory_bench.h"

/* Tries to open a region in a process of another user. Returns 0 or errno. */
static int open_as_other(uint32_t handle, bool writable)
{
    int status;
    pid_t pid = fork();

    if (!pid) {
        struct hv_shared *shared = NULL;

        if (setgid(65534) || setuid(65534)) {
            _exit(77);
        }
        _exit(hv_shared_open(v->hca[0], handle, writable, NULL, &shared));
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFEXITED(status));
    return WEXITSTATUS(status);
}

START_TEST(permissions_are_those_of_the_flags)
{
    uint64_t of_user = RIGHTS | IBV_EXP_ACCESS_ALLOCATE_MR | IBV_EXP_ACCESS_SHARED_MR_USER_READ |
                       IBV_EXP_ACCESS_SHARED_MR_USER_WRITE;
    struct ibv_mr *user = reg(NULL, PAGE, of_user);
    struct ibv_mr *others = reg(NULL, PAGE, of_user | IBV_EXP_ACCESS_SHARED_MR_OTHER_READ);

    ck_assert_ptr_nonnull(user);
    ck_assert_ptr_nonnull(others);
    ck_assert_uint_ne(user->handle, others->handle);
    ck_assert_int_eq(open_as_other(user->handle, false), EACCES);
    ck_assert_int_eq(open_as_other(others->handle, true), EACCES);
    ck_assert_int_eq(open_as_other(others->handle, false), 0);
    ck_assert_int_eq(ibv_dereg_mr(user), 0);
    ck_assert_int_eq(ibv_dereg_mr(others), 0);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("shared regions of another user");
    TCase *tc = tcase_create("permissions");

    if (geteuid()) {
        puts("skipped: only root can become another user");
        exit(77); /* meson: the program was skipped */
    }
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, permissions_are_those_of_the_flags);
    suite_add_tcase(suite, tc);
    return suite;
}
