/* SPDX-License-Identifier: BSD-2-Clause */
/* What programs read of a device in sysfs: ibv_device.ibdev_path, and the files near it. */
#define _GNU_SOURCE
#include <check.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* UCX reads vendor and device two folders above ibdev_path (ucs_topo_resolve_sysfs_path()). */
static void ck_file_is(const char *ibdev_path, const char *name, const char *text)
{
    char *path = NULL, line[16] = "";
    FILE *file;

    ck_assert_int_ge(asprintf(&path, "%s/../../%s", ibdev_path, name), 0);
    file = fopen(path, "r");
    ck_assert_msg(file != NULL, "no %s", path);
    ck_assert_ptr_nonnull(fgets(line, sizeof(line), file));
    fclose(file);
    ck_assert_str_eq(line, text);
    free(path);
}

START_TEST(a_program_finds_which_card_it_is)
{
    struct ibv_device **list;
    int n;

    setenv("HCASIM_SYSFS", SYSFS_TREE, 1);
    setenv("HCASIM_PROFILE", "cx7", 1);
    list = ibv_get_device_list(&n);
    ck_assert_int_eq(n, 1);
    ck_assert_int_eq(access(list[0]->ibdev_path, F_OK), 0);
    ck_file_is(list[0]->ibdev_path, "vendor", "0x15b3\n");
    ck_file_is(list[0]->ibdev_path, "device", "0x1021\n");
    ibv_free_device_list(list);
}
END_TEST

START_TEST(without_such_a_tree_the_path_is_the_kernels)
{
    struct ibv_device **list;
    int n;

    setenv("HCASIM_SYSFS", "/nowhere", 1);
    list = ibv_get_device_list(&n);
    ck_assert_int_eq(n, 1);
    ck_assert_str_eq(list[0]->ibdev_path, "/sys/class/infiniband/mlx5_0");
    ibv_free_device_list(list);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("sysfs");
    Suite *suite = suite_create("verbs-sysfs");
    SRunner *runner;
    int failed;

    tcase_add_test(tc, a_program_finds_which_card_it_is);
    tcase_add_test(tc, without_such_a_tree_the_path_is_the_kernels);
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
