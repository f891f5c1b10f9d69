/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests the faults of commands that a device's owner wants (fw/inject.c), through the driver's
 * command queue.
 */
#include "fw/fw_internal.h"
#include "tests/unit/suite.h"
#include "tests/unit/test_fw_driver.h"
#include "wire/fault/fault.h"

#include <check.h>

#define MS 1000000ull

static struct fwd d;
static struct fault_set *set;

static uint64_t clock_ns(void *opaque)
{
    return d.host.now;
}

static void begin(const char *rules)
{
    const struct fault_options options = {.clock_ns = clock_ns, .names = &fw_fault_names};
    g_autoptr(GError) err = NULL;

    fwd_open(&d);
    set = fault_set_new(&options);
    ck_assert_msg(fault_set_add(set, rules, &err), "%s", err ? err->message : "");
    fw_set_faults(d.fw, set);
}

static void end(void)
{
    fw_set_faults(d.fw, NULL);
    fault_set_free(set);
    fwd_clear(&d);
}

static enum syn alloc_pd(void)
{
    return fwd_simple(&d, PRM_CMD_OP_ALLOC_PD, 0);
}

static void prepare_alloc_pd(void)
{
    struct prm_alloc_pd_in in[1] = {0};

    PRM_SET(alloc_pd_in, in, opcode, PRM_CMD_OP_ALLOC_PD);
    fwd_prepare(&d, in, sizeof(in), PRM_SIZE(alloc_pd_out));
}

START_TEST(a_command_fails_as_often_as_the_rule_says)
{
    begin("command ALLOC_PD fail nth 2 once");
    ck_assert_int_eq(alloc_pd(), SYN_OK);
    ck_assert_int_eq(alloc_pd(), SYN_INJECTED);
    ck_assert_int_eq(alloc_pd(), SYN_OK);
    end();
}
END_TEST

START_TEST(a_rule_chooses_status_and_syndrome)
{
    struct prm_alloc_pd_out out[1];

    begin("command any fail once status NO_RES syndrome 0x123456");
    prepare_alloc_pd();
    ck_assert_int_eq(fwd_ring(&d), 0);
    fwd_output(&d, out, sizeof(out));
    ck_assert_uint_eq(PRM_GET(alloc_pd_out, out, status), PRM_CMD_STATUS_NO_RES);
    ck_assert_uint_eq(PRM_GET(alloc_pd_out, out, syndrome), 0x123456);
    end();
}
END_TEST

/* The command waits for the timer that it set, and the next command waits behind it. */
START_TEST(a_slow_command_is_executed_when_its_time_has_come)
{
    begin("command ALLOC_PD slow 10ms once");
    prepare_alloc_pd();
    d.host.deadline = UINT64_MAX;
    fw_mmio_write(d.fw, PRM_OFFSET(initial_seg, command_doorbell_vector), 1, 4);
    while (fw_run(d.fw, 1000)) {
    }
    ck_assert_uint_eq(PRM_GET(cmd_queue_entry, fwd_entry(&d), ownership), 1);
    ck_assert_uint_eq(d.host.deadline, d.host.now + 10 * MS);
    d.host.now += 10 * MS;
    while (fw_run(d.fw, 1000)) {
    }
    ck_assert_uint_eq(PRM_GET(cmd_queue_entry, fwd_entry(&d), ownership), 0);
    ck_assert_int_eq(alloc_pd(), SYN_OK);
    end();
}
END_TEST

/* Nobody waits for it any more, and the next driver's commands do not wait for it. */
START_TEST(a_reset_ends_the_wait_of_a_slow_command)
{
    begin("command ALLOC_PD slow 10ms once");
    prepare_alloc_pd();
    fw_mmio_write(d.fw, PRM_OFFSET(initial_seg, command_doorbell_vector), 1, 4);
    while (fw_run(d.fw, 1000)) {
    }
    ck_assert(inject_command_waits(d.fw));
    fw_reset(d.fw);
    while (fw_run(d.fw, 1000)) {
    }
    ck_assert(!inject_command_waits(d.fw));
    end();
}
END_TEST

START_TEST(a_function_without_rules_has_no_faults)
{
    begin("none");
    ck_assert_int_eq(alloc_pd(), SYN_OK);
    fw_set_faults(d.fw, NULL);
    ck_assert_ptr_null(d.fw->hca.inject);
    ck_assert_int_eq(alloc_pd(), SYN_OK);
    end();
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("fw inject");
    TCase *tc = tcase_create("inject");

    tcase_add_test(tc, a_command_fails_as_often_as_the_rule_says);
    tcase_add_test(tc, a_rule_chooses_status_and_syndrome);
    tcase_add_test(tc, a_slow_command_is_executed_when_its_time_has_come);
    tcase_add_test(tc, a_reset_ends_the_wait_of_a_slow_command);
    tcase_add_test(tc, a_function_without_rules_has_no_faults);
    suite_add_tcase(suite, tc);
    return suite;
}
