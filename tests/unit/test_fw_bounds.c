/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a guest can make the function keep, and what it costs to let go of it again.
 *
 * Times are printed, never judged: what is held against a bound is the work.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "fw/fw_internal.h"
#include "tests/unit/test_fw_driver.h"

#define MANY_PDS  1000000
#define MANY_KEYS 100000

static struct fwd d;

/* A command that must succeed, as the millionth of its kind too: ck_assert() would tell the test's
 * parent each time. */
static void must(const void *in, size_t in_len, void *out, size_t out_len)
{
    int status = drv_cmd(d.drv, in, in_len, out, out_len);

    if (status) {
        ck_abort_msg("%s: status %d", prm_cmd_op_name(PRM_GET(cmd_in, in, opcode)), status);
    }
}

static void setup(void)
{
    fwd_init(&d);
    fwd_bring_up(&d);
}

static void teardown(void)
{
    fwd_clear(&d);
}

static void give_pages(uint32_t n)
{
    while (n) {
        uint32_t batch = MIN(n, 1024);

        ck_assert_uint_eq(fwd_give_pages(&d, batch), PRM_CMD_STATUS_OK);
        n -= batch;
    }
}

static uint32_t alloc_pd(void)
{
    uint8_t in[PRM_SIZE(alloc_pd_in)] = {0}, out[PRM_SIZE(alloc_pd_out)];

    PRM_SET(alloc_pd_in, in, opcode, PRM_CMD_OP_ALLOC_PD);
    must(in, sizeof(in), out, sizeof(out));
    return PRM_GET(alloc_pd_out, out, pd);
}

/* A memory region of eight pages. */
static void create_key(uint32_t pdn)
{
    uint8_t in[PRM_SIZE(create_mkey_in) + 64] = {0}, out[PRM_SIZE(create_mkey_out)];
    uint8_t *mkc = PRM_PTR(create_mkey_in, in, memory_key_mkey_entry);

    PRM_SET(create_mkey_in, in, opcode, PRM_CMD_OP_CREATE_MKEY);
    PRM_SET(create_mkey_in, in, translations_octword_actual_size, 4);
    PRM_SET(mkc, mkc, access_mode_1_0, PRM_MKC_ACCESS_MODE_MTT);
    PRM_SET(mkc, mkc, log_page_size, 12);
    PRM_SET(mkc, mkc, len, 8 * 4096);
    PRM_SET(mkc, mkc, pd, pdn);
    PRM_SET(mkc, mkc, translations_octword_size, 4);
    must(in, sizeof(in), out, sizeof(out));
}

static uint64_t steps(void)
{
    return d.fw->hca.pds.steps + d.fw->hca.mkeys.steps;
}

/* A driver that dies leaves everything to the function's reset, which the host's other guests
 * wait for. */
START_TEST(a_reset_takes_time_in_proportion_to_the_objects)
{
    const uint64_t objects = MANY_PDS + MANY_KEYS;
    uint64_t before;
    uint32_t pdn = 0;
    int64_t begin;

    give_pages(32 * 1024);
    for (unsigned i = 0; i < MANY_PDS; i++) {
        pdn = alloc_pd();
    }
    for (unsigned i = 0; i < MANY_KEYS; i++) {
        create_key(pdn);
    }
    before = steps();
    ck_assert_uint_le(before, 3 * objects);

    begin = g_get_monotonic_time();
    fw_reset(d.fw);
    g_print("# reset of %u PDs and %u keys: %.3f s\n", MANY_PDS, MANY_KEYS,
            (double)(g_get_monotonic_time() - begin) / 1e6);
    ck_assert_uint_eq(d.fw->hca.pds.count, 0);
    ck_assert_uint_eq(d.fw->hca.mkeys.count, 0);
    ck_assert_uint_le(steps() - before, 3 * objects);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("fw bounds");
    TCase *tc = tcase_create("bounds");
    SRunner *sr;
    int failed;

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 600);
    tcase_add_test(tc, a_reset_takes_time_in_proportion_to_the_objects);
    suite_add_tcase(s, tc);
    sr = srunner_create(s);
    srunner_run_all(sr, CK_NORMAL);
    failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
