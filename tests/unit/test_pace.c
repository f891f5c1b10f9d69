/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests packet pacing: the table of rates, and how the send queues that name a rate keep it. */
#include <check.h>
#include "model/eth/eth_queue.h"
#include "model/port/pace.h"
#include "tests/unit/flow_bench.h"
#include "tests/unit/suite.h"

#define INDEX PRM_MODIFY_SQ_PACKET_PACING_RATE_LIMIT_INDEX

static struct bench *b;
static struct flow one, two;
static struct flow *const both[] = {&one, &two};

static void setup(void)
{
    b = bench_new();
    flow_new(b, &one, 1514);
    flow_new(b, &two, 1514);
}

static void teardown(void)
{
    bench_free(b);
}

static enum syn set_as(uint16_t uid, unsigned index, uint32_t kbps)
{
    struct pace_rate rate = {.kbps = kbps, .uid = uid};

    return pace_set(&b->rig.hca, index, &rate);
}

static void set(unsigned index, uint32_t kbps)
{
    ck_assert_int_eq(set_as(0, index, kbps), SYN_OK);
}

static void pace(struct flow *flow, unsigned index)
{
    ck_assert_int_eq(flow_modify(flow, 0, INDEX, index), SYN_OK);
}

static void run(unsigned n, uint64_t ns)
{
    flow_run(b, (struct flow **)both, n, ns);
}

/* -- rates ------------------------------------------------------------------------------------- */

static const struct {
    uint32_t kbps;
    size_t frame;
} rates[] = {
    {1000, 64}, {1000, 1514}, {10000, 9000}, {100000, 1514}, {123456, 777}, {2500000, 9000},
};

START_TEST(a_queue_keeps_its_rate)
{
    struct flow flow, *flows[] = {&flow};

    flow_new(b, &flow, rates[_i].frame);
    set(7, rates[_i].kbps);
    pace(&flow, 7);
    flow_run(b, flows, 1, FLOW_S);
    flow_expect_rate(&flow, rates[_i].kbps, FLOW_S);
}
END_TEST

/* The segments of one large send are held one by one. */
START_TEST(large_sends_keep_the_rate_between_their_frames)
{
    struct flow flow, *flows[] = {&flow};
    uint64_t first;

    flow_new_lso(b, &flow, 60000, 1460);
    set(1, 10000);
    pace(&flow, 1);
    flow_run(b, flows, 1, FLOW_S);
    flow_expect_rate(&flow, 10000, FLOW_S);
    b->num_frames = 0;
    first = b->rig.host.now;
    while (b->num_frames < 3) {
        b->rig.host.now = b->rig.host.deadline;
        bench_run(b);
    }
    ck_assert_uint_ge(b->rig.host.now - first, 2ull * 1514 * 8 * 100);
}
END_TEST

/* "Even though a rate can be shared, each queue is being rate limited independently of others"
 * (Linux, "net/mlx5: Rate limit tables support"). */
START_TEST(queues_of_one_index_have_the_rate_each)
{
    set(3, 20000);
    pace(&one, 3);
    pace(&two, 3);
    run(2, FLOW_S);
    flow_expect_rate(&one, 20000, FLOW_S);
    flow_expect_rate(&two, 20000, FLOW_S);
}
END_TEST

START_TEST(a_queue_can_be_made_with_a_rate)
{
    struct prm_sqc sqc[1] = {0};

    set(9, 5000);
    pace(&one, 9);
    ck_assert_int_eq(eth_sq_query(&b->rig.hca, one.sq.num, sqc), SYN_OK);
    ck_assert_uint_eq(PRM_GET(sqc, sqc, packet_pacing_rate_limit_index), 9);
    PRM_SET(sqc, sqc, state, PRM_SQC_STATE_RST);
    {
        struct mem_buf buf;
        uint32_t sqn;

        rig_ring(&b->rig, 64u << BENCH_LOG_SQ, &buf);
        PRM_SET(sqc, sqc, packet_pacing_rate_limit_index, 8);
        ck_assert_int_eq(eth_sq_create(&b->rig.hca, 0, sqc, &buf, one.sq.dbr, &sqn),
                         SYN_PACE_INDEX);
        PRM_SET(sqc, sqc, packet_pacing_rate_limit_index, 9);
        ck_assert_int_eq(eth_sq_create(&b->rig.hca, 0, sqc, &buf, one.sq.dbr, &sqn), SYN_OK);
        ck_assert_int_eq(eth_sq_destroy(&b->rig.hca, 0, sqn), SYN_OK);
    }
}
END_TEST

/* burst_upper_bound: what may leave at once after a pause, if frames have the typical size. */
START_TEST(after_a_pause_a_burst_is_no_longer_than_its_bound)
{
    static const struct {
        uint32_t burst;
        uint16_t typical;
        unsigned frames;
    } table[] = {{0, 0, 1}, {1000, 1514, 1}, {1514 * 5, 1514, 5}};

    for (unsigned i = 0; i < G_N_ELEMENTS(table); i++) {
        struct pace_rate rate = {
            .kbps = 1000, .burst = table[i].burst, .typical = table[i].typical};

        ck_assert_int_eq(pace_set(&b->rig.hca, 2, &rate), SYN_OK);
        pace(&one, 2);
        one.stopped = true;
        run(1, 10 * FLOW_S);
        b->num_frames = 0;
        for (unsigned n = 0; n < 8; n++) {
            bench_write_wqe(&one.sq, &one.wr);
            one.posted++;
        }
        bench_ring_sq(&one.sq);
        bench_run(b);
        ck_assert_uint_eq(b->num_frames, table[i].frames);
        run(1, 10 * FLOW_S);
        ck_assert_uint_eq(one.posted, 0);
    }
}
END_TEST

/* A turn that comes late costs the queue nothing: the mean is the rate. */
START_TEST(time_that_a_late_turn_takes_is_made_up_for)
{
    set(1, 10000);
    pace(&one, 1);
    for (unsigned i = 0; i < 500; i++) {
        run(1, 0);
        b->rig.host.now += 2 * FLOW_MS;
    }
    run(1, 0);
    flow_expect_rate(&one, 10000, FLOW_S);
}
END_TEST

/* -- changes while a frame waits --------------------------------------------------------------- */

/* Makes the first queue wait for 12 s at 1 kb/s. */
static void let_one_wait(void)
{
    set(1, 1);
    pace(&one, 1);
    run(1, FLOW_MS);
    one.sent = 0;
    run(1, FLOW_S);
    ck_assert_uint_eq(one.sent, 0);
    ck_assert_uint_ne(b->rig.host.deadline, UINT64_MAX);
}

START_TEST(a_waiting_frame_follows_the_rate_of_its_index)
{
    let_one_wait();
    set(1, 50000);
    run(1, FLOW_S + 10 * FLOW_MS); /* PACE_LOOK_NS */
    flow_expect_rate(&one, 50000, FLOW_S);
}
END_TEST

START_TEST(a_waiting_frame_follows_its_queue_to_another_index)
{
    let_one_wait();
    set(2, 50000);
    pace(&one, 2);
    run(1, FLOW_S);
    flow_expect_rate(&one, 50000, FLOW_S);
}
END_TEST

/* Whatever ends the rate, all that is posted leaves at once. */
START_TEST(a_rate_that_ends_holds_nothing)
{
    let_one_wait();
    one.stopped = true;
    if (_i == 0) {
        pace(&one, 0);
    } else if (_i == 1) {
        set(1, 0);
    } else {
        ck_assert_int_eq(set_as(RIG_USER, 1, 1), SYN_BAD_UID);
        set(1, 0);
        ck_assert_int_eq(set_as(RIG_USER, 1, 1), SYN_OK);
        pace_forget(&b->rig.hca, RIG_USER);
    }
    run(1, 10 * FLOW_MS);
    ck_assert_uint_eq(one.posted, 0);
    ck_assert_uint_eq(b->rig.host.deadline, UINT64_MAX);
}
END_TEST

START_TEST(a_queue_may_be_destroyed_while_a_frame_waits)
{
    let_one_wait();
    ck_assert_int_eq(eth_sq_destroy(&b->rig.hca, 0, one.sq.num), SYN_OK);
    rig_advance(&b->rig, FLOW_S);
    ck_assert_uint_eq(b->rig.host.deadline, UINT64_MAX);
    b->num_frames = 0;
    bench_run(b);
    ck_assert_uint_eq(b->num_frames, 0);
}
END_TEST

START_TEST(a_queue_in_error_flushes_what_its_rate_held)
{
    let_one_wait();
    ck_assert_int_eq(bench_sq_move(&one.sq, PRM_SQC_STATE_RDY, PRM_SQC_STATE_ERR), SYN_OK);
    b->num_frames = 0;
    bench_run(b);
    ck_assert_uint_eq(b->num_frames, 0);
    for (unsigned i = 0; i < one.posted; i++) {
        bench_expect(&one.sq, PRM_CQE_OPCODE_REQ_ERR, PRM_CQE_SYNDROME_WR_FLUSH_ERR,
                     (uint16_t)(one.sq.pi - one.posted + i));
    }
    rig_advance(&b->rig, FLOW_S);
    ck_assert_uint_eq(b->rig.host.deadline, UINT64_MAX);
}
END_TEST

/* The queue keeps its rate, but owes nothing of its former life. */
START_TEST(a_queue_that_is_reset_begins_anew)
{
    let_one_wait();
    ck_assert_int_eq(bench_sq_move(&one.sq, PRM_SQC_STATE_RDY, PRM_SQC_STATE_RST), SYN_OK);
    rig_advance(&b->rig, FLOW_MS);
    ck_assert_uint_eq(b->rig.host.deadline, UINT64_MAX);
    ck_assert_int_eq(bench_sq_move(&one.sq, PRM_SQC_STATE_RST, PRM_SQC_STATE_RDY), SYN_OK);
    one.sq.pi = 0;
    one.posted = 0;
    b->num_frames = 0;
    for (unsigned i = 0; i < 2; i++) {
        bench_write_wqe(&one.sq, &one.wr);
        one.posted++;
    }
    bench_ring_sq(&one.sq);
    bench_run(b);
    ck_assert_uint_eq(b->num_frames, 1);
    rig_advance(&b->rig, 13 * FLOW_S);
    bench_run(b);
    ck_assert_uint_eq(b->num_frames, 2);
}
END_TEST

START_TEST(a_reset_of_the_function_ends_waits_and_rates)
{
    const struct pace_rate *rate;

    let_one_wait();
    hca_reset(&b->rig.hca);
    ck_assert_uint_eq(b->rig.host.deadline, UINT64_MAX);
    ck_assert_int_eq(pace_find(&b->rig.hca, 0, 1, &rate), SYN_PACE_INDEX);
    rig_advance(&b->rig, FLOW_S);
    bench_free(b);
    b = bench_new();
}
END_TEST

/* A queue without a rate sets no timer and reads no clock. */
START_TEST(a_queue_without_a_rate_knows_nothing_of_it)
{
    set(1, 1000);
    two.stopped = true;
    bench_send(&two.sq, &two.wr);
    ck_assert_uint_eq(b->num_frames, 1);
    ck_assert_uint_eq(b->rig.host.deadline, UINT64_MAX);
}
END_TEST

/* -- what is refused --------------------------------------------------------------------------- */

START_TEST(indices_and_rates_have_bounds)
{
    const struct pace_rate *rate;

    ck_assert_int_eq(set_as(0, 0, 1), SYN_PACE_INDEX);
    ck_assert_int_eq(set_as(0, PACE_RATES, 1), SYN_PACE_INDEX);
    ck_assert_int_eq(set_as(0, 65535, 1), SYN_PACE_INDEX);
    ck_assert_int_eq(set_as(0, 1, PACE_MAX_KBPS + 1), SYN_PACE_RATE);
    ck_assert_int_eq(pace_find(&b->rig.hca, 0, 1, &rate), SYN_PACE_INDEX);
    ck_assert_int_eq(set_as(0, PACE_RATES - 1, PACE_MAX_KBPS), SYN_OK);
    ck_assert_int_eq(pace_find(&b->rig.hca, 0, PACE_RATES - 1, &rate), SYN_OK);
    ck_assert_int_eq(pace_find(&b->rig.hca, 0, PACE_RATES, &rate), SYN_PACE_INDEX);
    ck_assert_int_eq(flow_modify(&one, 0, INDEX, 5), SYN_PACE_INDEX);
    ck_assert_int_eq(flow_modify(&one, 0, 1u << 5, 0), SYN_ETH_MODIFY);
}
END_TEST

START_TEST(a_user_names_only_rates_of_its_own_and_shared_ones)
{
    const struct pace_rate *rate;
    struct hca *hca = &b->rig.hca;

    ck_assert_int_eq(set_as(0, 1, 10), SYN_OK);
    ck_assert_int_eq(set_as(RIG_USER, 2, 10), SYN_OK);
    ck_assert_int_eq(set_as(UID_SHARED, 3, 10), SYN_OK);
    ck_assert_int_eq(pace_find(hca, RIG_USER, 1, &rate), SYN_BAD_UID);
    ck_assert_int_eq(pace_find(hca, RIG_USER, 2, &rate), SYN_OK);
    ck_assert_int_eq(pace_find(hca, RIG_USER, 3, &rate), SYN_OK);
    ck_assert_int_eq(pace_find(hca, RIG_USER + 1, 2, &rate), SYN_BAD_UID);
    ck_assert_int_eq(set_as(RIG_USER + 1, 2, 20), SYN_BAD_UID);
    for (unsigned i = 1; i <= 3; i++) {
        ck_assert_int_eq(pace_find(hca, 0, i, &rate), SYN_OK);
    }
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("pace");
    TCase *tcase = tcase_create("pace");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 60);
    tcase_add_loop_test(tcase, a_queue_keeps_its_rate, 0, G_N_ELEMENTS(rates));
    tcase_add_test(tcase, large_sends_keep_the_rate_between_their_frames);
    tcase_add_test(tcase, queues_of_one_index_have_the_rate_each);
    tcase_add_test(tcase, a_queue_can_be_made_with_a_rate);
    tcase_add_test(tcase, after_a_pause_a_burst_is_no_longer_than_its_bound);
    tcase_add_test(tcase, time_that_a_late_turn_takes_is_made_up_for);
    tcase_add_test(tcase, a_waiting_frame_follows_the_rate_of_its_index);
    tcase_add_test(tcase, a_waiting_frame_follows_its_queue_to_another_index);
    tcase_add_loop_test(tcase, a_rate_that_ends_holds_nothing, 0, 3);
    tcase_add_test(tcase, a_queue_may_be_destroyed_while_a_frame_waits);
    tcase_add_test(tcase, a_queue_in_error_flushes_what_its_rate_held);
    tcase_add_test(tcase, a_queue_that_is_reset_begins_anew);
    tcase_add_test(tcase, a_reset_of_the_function_ends_waits_and_rates);
    tcase_add_test(tcase, a_queue_without_a_rate_knows_nothing_of_it);
    tcase_add_test(tcase, indices_and_rates_have_bounds);
    tcase_add_test(tcase, a_user_names_only_rates_of_its_own_and_shared_ones);
    suite_add_tcase(suite, tcase);
    return suite;
}
