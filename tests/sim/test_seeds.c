/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests the seeds that the environment chooses (tests/sim/seeds.h). */
#include <glib.h>
#include <stdbool.h>
#include <stdlib.h>
#include "tests/sim/seeds.h"
#include "tests/unit/suite.h"

static struct seeds chosen(const char *first, const char *num)
{
    g_unsetenv("HCASIM_SIM_SEED");
    g_unsetenv("HCASIM_SIM_SEEDS");
    if (first) {
        g_setenv("HCASIM_SIM_SEED", first, true);
    }
    if (num) {
        g_setenv("HCASIM_SIM_SEEDS", num, true);
    }
    return seeds_of_run(20);
}

static void expect(const char *first, const char *num, uint32_t expected, uint32_t expected_num)
{
    struct seeds seeds = chosen(first, num);

    ck_assert_uint_eq(seeds.first, expected);
    ck_assert_uint_eq(seeds.num, expected_num);
}

START_TEST(what_the_environment_says)
{
    expect(NULL, NULL, 1, 20);
    expect("7", NULL, 7, 20);
    expect(NULL, "3", 1, 3);
    expect("0", "2147483647", 0, INT32_MAX);
}
END_TEST

/* The seeds of a run end with the largest seed. */
START_TEST(seeds_do_not_begin_anew)
{
    expect("4294967295", NULL, UINT32_MAX, 1);
    expect("4294967290", "6", UINT32_MAX - 5, 6);
}
END_TEST

static const struct {
    const char *first, *num;
} refused[] = {
    {"4294967290", "7"}, {"0", "2147483648"}, {"4294967296", NULL}, {"1", "18446744073709551615"},
    {NULL, "0"},         {NULL, "-1"},        {"", NULL},           {"12x", NULL},
};

START_TEST(what_is_refused)
{
    chosen(refused[_i].first, refused[_i].num);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("seeds");
    TCase *tc = tcase_create("environment");

    tcase_add_test(tc, what_the_environment_says);
    tcase_add_test(tc, seeds_do_not_begin_anew);
    tcase_add_loop_exit_test(tc, what_is_refused, EXIT_FAILURE, 0, (int)G_N_ELEMENTS(refused));
    suite_add_tcase(suite, tc);
    return suite;
}
