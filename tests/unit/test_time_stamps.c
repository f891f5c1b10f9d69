/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests the formats of time stamps of QPs (qpc.ts_format): of the free-running timer or of the
 * card's real-time clock. tests/unit/test_eth_tx.c and test_eth_rx.c test those of SQs and RQs.
 */
#include "model/core/real_time.h"
#include "tests/unit/requester_bench.h"
#include "tests/unit/suite.h"

#define SECOND 1000000000ull
#define NOON   (1700000000ull * SECOND + 999999000) /* one microsecond before a second begins */

static uint64_t now(struct lab_side *side)
{
    return hca_now(&side->hca);
}

/* Sends a message over QPs of that format. Returns the time stamps of both CQEs. */
static void exchange(uint8_t st, uint8_t ts_format, uint64_t *sent, uint64_t *received)
{
    struct lab_qp_attr attr = lab_rc;
    uint64_t addr = lab_mem(left, 64, 1);
    struct lab_wr wr = {.opcode = PRM_WQE_OPCODE_SEND, .sge = {{addr, 64, 0}}, .num_sge = 1};
    struct lab_cqe cqe;

    attr.st = st;
    attr.ts_format = ts_format;
    lab_qp_new(left, &attr, &a);
    lab_qp_new(right, &attr, &b);
    lab_connect(lab, &a, &b, &lab_path);
    lab_post_recv(&b, lab_mem(right, 128, 0), 128);
    lab_post(&a, &wr);
    lab_run(lab);
    ck_assert(lab_poll(left, &cqe));
    ck_assert_uint_eq(cqe.opcode, PRM_CQE_OPCODE_REQ);
    *sent = cqe.stamp;
    ck_assert(lab_poll(right, &cqe));
    ck_assert_uint_eq(cqe.opcode, PRM_CQE_OPCODE_RESP_SEND);
    *received = cqe.stamp;
}

/* A stamp of the real-time clock has seconds and nanoseconds (Linux: mlx5_real_time_cyc2time()). It
 * is the same moment as that of the free-running timer. */
START_TEST(each_format_is_the_clock_that_it_names)
{
    static const uint8_t types[] = {PRM_QP_ST_RC, PRM_QP_ST_UC};
    uint8_t format = (uint8_t)(_i % 3), st = types[_i / 3];
    uint64_t sent, received;

    left->hca.limits.real_time = right->hca.limits.real_time = true;
    real_time_set(left->hca.real_time, now(left), NOON);
    real_time_set(right->hca.real_time, now(right), NOON + 5 * SECOND);
    lab_advance(lab, 1500); /* over the second */
    exchange(st, format, &sent, &received);
    if (format == PRM_TS_FORMAT_FREE_RUNNING) {
        ck_assert_uint_eq(sent, now(left));
        ck_assert_uint_eq(received, now(right));
    } else {
        ck_assert_uint_eq(sent, 1700000001ull << 32 | 500);
        ck_assert_uint_eq(received, 1700000006ull << 32 | 500);
    }
}
END_TEST

/* A card without such a clock: the default is the free-running timer. */
START_TEST(the_default_is_what_the_card_has)
{
    uint64_t sent, received;

    real_time_set(left->hca.real_time, now(left), NOON);
    exchange(PRM_QP_ST_RC, PRM_TS_FORMAT_DEFAULT, &sent, &received);
    ck_assert_uint_eq(sent, now(left));
}
END_TEST

/* An error CQE has no time stamp; its bytes say what went wrong. */
START_TEST(an_error_cqe_has_its_syndrome_in_every_format)
{
    struct lab_qp_attr attr = lab_rc;
    struct lab_wr wr = {.opcode = PRM_WQE_OPCODE_SEND, .sge = {{0, 64, 0xbad00}}, .num_sge = 1};

    left->hca.limits.real_time = true;
    attr.ts_format = PRM_TS_FORMAT_REAL_TIME;
    lab_qp_new(left, &attr, &a);
    attr.ts_format = PRM_TS_FORMAT_FREE_RUNNING;
    lab_qp_new(right, &attr, &b);
    lab_connect(lab, &a, &b, &lab_path);
    lab_post(&a, &wr);
    lab_run(lab);
    expect_error(PRM_WQE_OPCODE_SEND, 0, PRM_CQE_SYNDROME_LOCAL_PROT_ERR);
}
END_TEST

/* The clock goes faster or slower as software has tuned it, from that moment on, and never jumps.
 */
START_TEST(a_tuned_clock_keeps_its_time)
{
    struct real_time clock = {0};

    ck_assert_uint_eq(real_time_ns(&clock, 12345), 12345);
    real_time_set(&clock, 1000, NOON);
    real_time_tune(&clock, 2000, 100 << 16); /* 100 ppm */
    ck_assert_uint_eq(real_time_ns(&clock, 2000), NOON + 1000);
    ck_assert_uint_eq(real_time_ns(&clock, 2000 + SECOND), NOON + 1000 + SECOND + 100000);
    real_time_tune(&clock, 2000 + SECOND, -(100 << 16));
    ck_assert_uint_eq(real_time_ns(&clock, 2000 + SECOND), NOON + 1000 + SECOND + 100000);
    ck_assert_uint_eq(real_time_ns(&clock, 2000 + 2 * SECOND), NOON + 1000 + 2 * SECOND);
    /* a hundred years, and no overflow on the way */
    ck_assert_uint_eq(real_time_ns(&clock, 2000 + SECOND + 3155760000ull * SECOND) - NOON,
                      1000 + SECOND + 100000 + 3155760000ull * (SECOND - 100000));
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("time-stamps");
    TCase *tc = tcase_create("time-stamps");

    tcase_add_checked_fixture(tc, setup_bare, teardown);
    tcase_add_loop_test(tc, each_format_is_the_clock_that_it_names, 0, 6);
    tcase_add_test(tc, the_default_is_what_the_card_has);
    tcase_add_test(tc, an_error_cqe_has_its_syndrome_in_every_format);
    tcase_add_test(tc, a_tuned_clock_keeps_its_time);
    suite_add_tcase(suite, tc);
    return suite;
}
