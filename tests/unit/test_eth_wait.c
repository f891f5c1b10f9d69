/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests WAIT on time: packets of a send queue leave when the clock reaches their time. */
#include <check.h>
#include <string.h>
#include "model/core/real_time.h"
#include "model/eth/eth_queue.h"
#include "tests/unit/eth_bench.h"
#include "tests/unit/suite.h"

#define SECOND 1000000000ull
/* The mask of DPDK: eight seconds (mlx5_txq_dynf_timestamp_set()). */
#define REAL_MASK ((8ull << 32) - 1)
#define FREE_MASK ((8 * SECOND | 0xffffffff) >> 1) /* any mask of low bits */

static struct bench *b;
static struct bench_queue sq;

static void open_sq(uint8_t ts_format)
{
    b->ts_format = ts_format;
    bench_sq_new(b, b->tisn, &sq);
}

static void setup(void)
{
    b = bench_new();
    b->rig.hca.limits.wait_on_time = b->rig.hca.limits.real_time = true;
    b->rig.host.now = 100 * SECOND;
    real_time_set(b->rig.hca.real_time, b->rig.host.now, 1700000000 * SECOND);
}

static void teardown(void)
{
    bench_free(b);
}

static void post_wait_as(uint8_t operation, uint64_t value, uint64_t mask, uint8_t ds,
                         uint8_t opmod)
{
    struct bench_wr wr = {.opcode = PRM_WQE_OPCODE_CQE_WAIT, .unsignaled = true};
    uint8_t *wqe = bench_write_wqe(&sq, &wr);
    void *seg = wqe + 16;

    memset(seg, 0, 48);
    PRM_SET(wqe_ctrl_seg, (struct prm_wqe_ctrl_seg *)wqe, opmod, opmod);
    PRM_SET(wqe_ctrl_seg, (struct prm_wqe_ctrl_seg *)wqe, ds, ds);
    PRM_SET(wqe_wait_time_seg, seg, operation, operation);
    PRM_SET(wqe_wait_time_seg, seg, value, value);
    PRM_SET(wqe_wait_time_seg, seg, mask, mask);
}

static void post_wait(uint64_t value, uint64_t mask)
{
    post_wait_as(PRM_WAIT_CONDITION_CYCLIC_SMALLER, value, mask, 3, PRM_WAIT_OPMOD_TIME);
}

/* A frame behind what was posted. */
static void post_frame(void)
{
    uint8_t frame[100] = {0};
    struct bench_wr wr = {.opcode = PRM_WQE_OPCODE_SEND, .num_sge = 1};

    memcpy(frame, bench_peer_mac, 6);
    wr.sge[0] = (struct bench_sge){bench_mem(b, frame, sizeof(frame)), sizeof(frame), 0};
    bench_send(&sq, &wr);
}

/* The time at which the frame leaves, counted from now. */
static uint64_t leaves_after(uint64_t most)
{
    uint64_t begin = b->rig.host.now;

    while (!b->num_frames && b->rig.host.now < begin + most) {
        b->rig.host.now = MIN(begin + most, MAX(b->rig.host.deadline, b->rig.host.now + 1));
        bench_run(b);
    }
    return b->num_frames ? b->rig.host.now - begin : UINT64_MAX;
}

START_TEST(a_frame_leaves_at_its_time_of_the_free_running_timer)
{
    open_sq(PRM_TS_FORMAT_FREE_RUNNING);
    post_wait(b->rig.host.now + 2500000001, (1ull << 41) - 1);
    post_frame();
    ck_assert_uint_eq(b->num_frames, 0);
    ck_assert_uint_eq(leaves_after(4 * SECOND), 2500000001);
}
END_TEST

/* Seconds in the upper half, nanoseconds in the lower half; also across a second. */
START_TEST(a_frame_leaves_at_its_time_of_the_real_time_clock)
{
    const uint64_t wait = _i ? 1500000000 : 700;
    uint64_t at = 1700000000 * SECOND + 800000000 + wait;

    open_sq(PRM_TS_FORMAT_REAL_TIME);
    b->rig.host.now += 800000000;
    post_wait(at / SECOND << 32 | at % SECOND, REAL_MASK);
    post_frame();
    ck_assert_uint_eq(b->num_frames, 0);
    ck_assert_uint_eq(leaves_after(3 * SECOND), wait);
}
END_TEST

/* A time in the past, up to half a cycle ago, and waits for nothing. */
START_TEST(a_time_that_is_past_holds_nothing)
{
    open_sq(PRM_TS_FORMAT_FREE_RUNNING);
    post_wait(b->rig.host.now, UINT64_MAX);
    post_wait(b->rig.host.now - FREE_MASK / 2, FREE_MASK);
    post_wait(b->rig.host.now + 1, 0);
    post_wait_as(PRM_WAIT_CONDITION_ALWAYS_TRUE, 0, 0, 3, PRM_WAIT_OPMOD_TIME);
    post_frame();
    ck_assert_uint_eq(b->num_frames, 1);
}
END_TEST

/* The clock is set while a frame waits: the wait is over soon after. */
START_TEST(a_wait_follows_a_clock_that_is_set)
{
    open_sq(PRM_TS_FORMAT_REAL_TIME);
    post_wait((1700000000 + 3ull) << 32, REAL_MASK);
    post_frame();
    real_time_set(b->rig.hca.real_time, b->rig.host.now, 1700000003 * SECOND);
    ck_assert_uint_le(leaves_after(SECOND), 10000000);
}
END_TEST

/* A lower half that is no nanoseconds does not keep the device busy. */
START_TEST(a_value_that_is_no_time_is_looked_at_now_and_then)
{
    unsigned turns = 0;

    open_sq(PRM_TS_FORMAT_REAL_TIME);
    post_wait(1700000000ull << 32 | 0xc4653601, REAL_MASK);
    post_frame();
    while (b->rig.host.now < 101 * SECOND) {
        b->rig.host.now = MAX(b->rig.host.deadline, b->rig.host.now + 1);
        bench_run(b);
        turns++;
    }
    ck_assert_uint_le(turns, 102);
    ck_assert_uint_eq(b->num_frames, 1); /* the second is over */
}
END_TEST

static const struct {
    uint8_t operation, ds, opmod;
    uint64_t mask;
} bad_waits[] = {
    {PRM_WAIT_CONDITION_EQUAL, 3, PRM_WAIT_OPMOD_TIME, UINT64_MAX},
    {PRM_WAIT_CONDITION_CYCLIC_BIGGER, 3, PRM_WAIT_OPMOD_TIME, UINT64_MAX},
    {PRM_WAIT_CONDITION_CYCLIC_SMALLER, 2, PRM_WAIT_OPMOD_TIME, UINT64_MAX},
    {PRM_WAIT_CONDITION_CYCLIC_SMALLER, 4, PRM_WAIT_OPMOD_TIME, UINT64_MAX},
    {PRM_WAIT_CONDITION_CYCLIC_SMALLER, 3, PRM_WAIT_OPMOD_TIME, 5},
    {PRM_WAIT_CONDITION_CYCLIC_SMALLER, 3, PRM_WAIT_OPMOD_DATA, UINT64_MAX},
};

START_TEST(other_waits_are_no_valid_wqes)
{
    open_sq(PRM_TS_FORMAT_FREE_RUNNING);
    post_wait_as(bad_waits[_i].operation, b->rig.host.now + 1, bad_waits[_i].mask, bad_waits[_i].ds,
                 bad_waits[_i].opmod);
    bench_ring_sq(&sq);
    bench_run(b);
    bench_expect(&sq, PRM_CQE_OPCODE_REQ_ERR, PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR, 0);
}
END_TEST

START_TEST(a_card_without_the_ability_knows_no_wait)
{
    b->rig.hca.limits.wait_on_time = false;
    open_sq(PRM_TS_FORMAT_FREE_RUNNING);
    post_wait(b->rig.host.now, UINT64_MAX);
    bench_ring_sq(&sq);
    bench_run(b);
    bench_expect(&sq, PRM_CQE_OPCODE_REQ_ERR, PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR, 0);
}
END_TEST

/* ERR, RST and the end of an SQ end its wait. */
START_TEST(a_queue_may_end_while_it_waits)
{
    open_sq(PRM_TS_FORMAT_FREE_RUNNING);
    post_wait(b->rig.host.now + SECOND, UINT64_MAX);
    post_frame();
    if (_i == 0) {
        ck_assert_int_eq(bench_sq_move(&sq, PRM_SQC_STATE_RDY, PRM_SQC_STATE_ERR), SYN_OK);
        bench_run(b);
        bench_expect(&sq, PRM_CQE_OPCODE_REQ_ERR, PRM_CQE_SYNDROME_WR_FLUSH_ERR, 0);
    } else if (_i == 1) {
        ck_assert_int_eq(eth_sq_destroy(&b->rig.hca, 0, sq.num), SYN_OK);
    } else {
        hca_reset(&b->rig.hca);
    }
    ck_assert_uint_eq(leaves_after(3 * SECOND), UINT64_MAX);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("eth wait");
    TCase *tcase = tcase_create("eth wait");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, a_frame_leaves_at_its_time_of_the_free_running_timer);
    tcase_add_loop_test(tcase, a_frame_leaves_at_its_time_of_the_real_time_clock, 0, 2);
    tcase_add_test(tcase, a_time_that_is_past_holds_nothing);
    tcase_add_test(tcase, a_wait_follows_a_clock_that_is_set);
    tcase_add_test(tcase, a_value_that_is_no_time_is_looked_at_now_and_then);
    tcase_add_loop_test(tcase, other_waits_are_no_valid_wqes, 0, G_N_ELEMENTS(bad_waits));
    tcase_add_test(tcase, a_card_without_the_ability_knows_no_wait);
    tcase_add_loop_test(tcase, a_queue_may_end_while_it_waits, 0, 3);
    suite_add_tcase(suite, tcase);
    return suite;
}
