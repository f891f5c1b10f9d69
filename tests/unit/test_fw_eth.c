/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests commands about Ethernet queues, as a driver sends them. */
#include <check.h>
#include "fw/fw_internal.h"
#include "tests/unit/suite.h"
#include "tests/unit/test_fw_driver.h"

static struct fwd d;

static void setup(void)
{
    fwd_init(&d);
    fwd_bring_up(&d);
}

static void teardown(void)
{
    fwd_clear(&d);
}

static enum syn set_delay_drop(uint16_t timeout)
{
    struct prm_set_delay_drop_params_in in[1] = {0};
    struct prm_set_delay_drop_params_out out[1];

    PRM_SET(set_delay_drop_params_in, in, opcode, PRM_CMD_OP_SET_DELAY_DROP_PARAMS);
    PRM_SET(set_delay_drop_params_in, in, delay_drop_timeout, timeout);
    return fwd_cmd(&d, in, sizeof(in), out, sizeof(out));
}

/* Driver: mlx5_core_set_delay_drop() divides microseconds by 100. */
START_TEST(the_timeout_of_delayed_drop_counts_hundreds_of_microseconds)
{
    ck_assert_int_eq(set_delay_drop(1000), SYN_OK); /* MLX5_MAX_DELAY_DROP_TIMEOUT_MS */
    ck_assert_uint_eq(d.fw->hca.delay_drop_ns, 100000000);
    ck_assert_int_eq(set_delay_drop(0), SYN_OK);
    ck_assert_uint_eq(d.fw->hca.delay_drop_ns, 0);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("fw_eth");
    TCase *tcase = tcase_create("queues");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, the_timeout_of_delayed_drop_counts_hundreds_of_microseconds);
    suite_add_tcase(suite, tcase);
    return suite;
}
