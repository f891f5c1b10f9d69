/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests delayed drop: frames wait for receive WQEs, for a time. (mlx5_ib: delay_drop_handler();
 * ibv_create_wq(3): "Packets won't be dropped immediately if no receive WQEs".)
 */
#include <check.h>
#include <string.h>
#include "model/eth/eth_delay.h"
#include "model/eth/eth_queue.h"
#include "model/queue/q_counter.h"
#include "tests/unit/eth_bench.h"
#include "tests/unit/suite.h"

enum {
    TIMEOUT = 50,             /* in units of 100 us */
    UNIT = ETH_DELAY_UNIT_NS, /* ns */
    WAIT = TIMEOUT * UNIT,
};

static struct bench *b;
static struct bench_queue rq;
static uint32_t counter_set;

static void make(uint8_t type, struct bench_queue *out, bool delays)
{
    struct prm_rqc rqc[1] = {0};

    b->rq_type = type;
    ck_assert_int_eq(q_counter_alloc(&b->rig.hca, 0, &counter_set), SYN_OK);
    PRM_SET(rqc, rqc, counter_set_id, counter_set);
    PRM_SET(rqc, rqc, delay_drop_en, delays);
    PRM_SET(rqc, rqc, flush_in_error_en, 1);
    bench_rq_new(b, rqc, out);
}

static void setup(void)
{
    b = bench_new();
    make(PRM_WQ_TYPE_CYCLIC, &rq, true);
    bench_catch_all(b, bench_direct_tir(b, rq.num));
    eth_delay_set(&b->rig.hca, TIMEOUT);
}

static void teardown(void)
{
    bench_free(b);
}

static void receive(uint8_t mark)
{
    uint8_t frame[100] = {2, 0, 0, 0, 0, 1};

    frame[50] = mark;
    bench_rx(b, frame, sizeof(frame));
}

static uint64_t post(void)
{
    uint64_t addr = bench_mem(b, NULL, BENCH_RX_SIZE);

    bench_post_recv(&rq, addr, BENCH_RX_SIZE);
    return addr;
}

/* Expects the next completion, of a frame with this mark. */
static void expect(uint64_t addr, uint8_t mark)
{
    const struct prm_cqe64 *cqe = bench_cqe(&rq);

    ck_assert_ptr_nonnull(cqe);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, opcode), PRM_CQE_OPCODE_RESP_SEND);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, byte_cnt), 100);
    ck_assert_uint_eq(*(uint8_t *)fake_host_ptr(&b->rig.host, addr + 50, 1), mark);
}

static uint64_t dropped(void)
{
    return q_counter_get(&b->rig.hca, counter_set)->out_of_buffer;
}

static void expect_event(void)
{
    const struct prm_eqe *eqe = rig_eq_next(&b->rig, &b->eq);

    ck_assert_ptr_nonnull(eqe);
    ck_assert_uint_eq(PRM_GET(eqe, eqe, event_type), PRM_EVENT_TYPE_GENERAL_EVENT);
    ck_assert_uint_eq(PRM_GET(eqe, eqe, event_sub_type), PRM_GENERAL_SUBTYPE_DELAY_DROP_TIMEOUT);
}

static void expect_no_event(void)
{
    ck_assert_ptr_null(rig_eq_peek(&b->rig, &b->eq));
}

/* Nothing is left that could end a wait. */
static void expect_no_timer(void)
{
    ck_assert_uint_eq(b->rig.hca.timers->len, 0);
    ck_assert_uint_eq(b->rig.hca.delayed_bytes, 0);
}

/* No doorbell announces the WQEs: the queue looks for them within a unit of time. */
START_TEST(frames_wait_for_wqes_and_keep_their_order)
{
    uint64_t addr[3];

    for (uint8_t i = 0; i < 3; i++) {
        receive(i);
    }
    bench_expect_none(&rq);
    rig_advance(&b->rig, WAIT - 1);
    for (unsigned i = 0; i < 3; i++) {
        addr[i] = post();
    }
    rig_advance(&b->rig, 1);
    for (uint8_t i = 0; i < 3; i++) {
        expect(addr[i], i);
    }
    ck_assert_uint_eq(dropped(), 0);
    expect_no_event();
    expect_no_timer();
}
END_TEST

START_TEST(a_later_frame_comes_behind_those_that_wait)
{
    uint64_t first, second;

    receive(1);
    receive(2);
    first = post();
    receive(3); /* it finds the WQE, which belongs to the first frame */
    expect(first, 1);
    bench_expect_none(&rq);
    second = post();
    first = post();
    rig_advance(&b->rig, UNIT);
    expect(second, 2);
    expect(first, 3);
    expect_no_timer();
}
END_TEST

/* Each WQE in time gives the frames behind it the whole time again. */
START_TEST(progress_begins_the_wait_anew)
{
    uint64_t addr;

    receive(1);
    receive(2);
    rig_advance(&b->rig, WAIT - UNIT);
    addr = post();
    rig_advance(&b->rig, UNIT);
    expect(addr, 1);
    rig_advance(&b->rig, WAIT - UNIT);
    addr = post();
    rig_advance(&b->rig, UNIT);
    expect(addr, 2);
    expect_no_event();
}
END_TEST

/* Then nothing waits until the driver sets the timeout again. */
START_TEST(a_timeout_drops_and_ends_all_waiting)
{
    uint64_t addr;

    receive(1);
    receive(2);
    rig_advance(&b->rig, WAIT - 1);
    expect_no_event();
    ck_assert_uint_eq(dropped(), 0);
    rig_advance(&b->rig, 1);
    expect_event();
    expect_no_event();
    ck_assert_uint_eq(dropped(), 2);
    expect_no_timer();
    receive(3);
    ck_assert_uint_eq(dropped(), 3);
    expect_no_timer();
    eth_delay_set(&b->rig.hca, TIMEOUT);
    receive(4);
    addr = post();
    rig_advance(&b->rig, UNIT);
    expect(addr, 4);
    ck_assert_uint_eq(dropped(), 3);
}
END_TEST

/* The frames of another queue wait no longer either; only one event tells of it. */
START_TEST(a_timeout_ends_the_waits_of_other_queues)
{
    struct bench_queue other;
    uint32_t first_set = counter_set, tirn = bench_direct_tir(b, rq.num);
    struct eth_info info;
    struct rss rss = {0};
    uint8_t frame[60] = {2};

    ck_assert_uint_ne(tirn, 0);
    make(PRM_WQ_TYPE_CYCLIC, &other, true);
    receive(1);
    rig_advance(&b->rig, 2 * UNIT);
    ck_assert(eth_parse(frame, sizeof(frame), &info));
    eth_rq_receive(
        &b->rig.hca, eth_rq_find(&b->rig.hca, other.num),
        &(struct eth_arrival){.frame = frame, .len = sizeof(frame), .info = &info, .rss = &rss});
    rig_advance(&b->rig, WAIT - 2 * UNIT);
    expect_event();
    rig_advance(&b->rig, UNIT);
    ck_assert_uint_eq(q_counter_get(&b->rig.hca, first_set)->out_of_buffer, 1);
    ck_assert_uint_eq(dropped(), 1);
    expect_no_event();
    expect_no_timer();
}
END_TEST

/* Without delay_drop_en, or without a timeout, a frame is dropped at once. */
START_TEST(without_delay_frames_are_dropped_at_once)
{
    if (_i) {
        eth_delay_set(&b->rig.hca, 0);
        receive(1);
        ck_assert_uint_eq(dropped(), 1);
        expect_no_timer();
        return;
    }
    ck_assert_int_eq(eth_rq_destroy(&b->rig.hca, 0, rq.num), SYN_IN_USE);
    bench_free(b);
    b = bench_new();
    make(PRM_WQ_TYPE_CYCLIC, &rq, false);
    bench_catch_all(b, bench_direct_tir(b, rq.num));
    eth_delay_set(&b->rig.hca, TIMEOUT);
    receive(1);
    ck_assert_uint_eq(dropped(), 1);
    expect_no_timer();
}
END_TEST

START_TEST(what_waits_is_bounded)
{
    unsigned n = ETH_DELAY_BYTES / 100;

    for (unsigned i = 0; i < n; i++) {
        receive((uint8_t)i);
    }
    ck_assert_uint_le(b->rig.hca.delayed_bytes, ETH_DELAY_BYTES);
    ck_assert_uint_gt(b->rig.hca.delayed_bytes, ETH_DELAY_BYTES - 2048);
    ck_assert_uint_gt(dropped(), 0);
    ck_assert_uint_lt(dropped(), n - 100);
    rig_advance(&b->rig, WAIT);
    expect_event();
    ck_assert_uint_eq(dropped(), n);
    expect_no_timer();
}
END_TEST

/* -- who else ends a wait ---------------------------------------------------------------------- */

START_TEST(a_change_of_state_ends_the_wait)
{
    receive(1);
    receive(2);
    ck_assert_int_eq(
        bench_rq_move(&rq, PRM_RQC_STATE_RDY, _i ? PRM_RQC_STATE_RST : PRM_RQC_STATE_ERR), SYN_OK);
    ck_assert_uint_eq(b->rig.hca.delayed_bytes, 0);
    ck_assert_uint_eq(dropped(), 2);
    rig_advance(&b->rig, 2 * WAIT);
    expect_no_event();
    bench_expect_none(&rq);
}
END_TEST

/* The first frame that waits fails the queue; those behind it are dropped. */
START_TEST(a_queue_that_fails_ends_the_wait)
{
    for (uint8_t i = 0; i < 3; i++) {
        receive(i);
    }
    PRM_SET(rqc, eth_rq_find(&b->rig.hca, rq.num)->rqc, rlky, !_i);
    if (_i) {
        post(); /* the reserved key is denied */
    } else {
        b->rig.host.hole = rq.dbr;
    }
    rig_advance(&b->rig, UNIT);
    if (_i) {
        bench_expect(&rq, PRM_CQE_OPCODE_RESP_ERR, PRM_CQE_SYNDROME_LOCAL_PROT_ERR, 0);
    } else {
        bench_expect_fatal(&rq, PRM_EVENT_QUEUE_TYPE_RQ);
    }
    ck_assert_uint_eq(dropped(), 2);
    ck_assert_uint_eq(b->rig.hca.delayed_bytes, 0);
    rig_advance(&b->rig, 2 * WAIT);
    expect_no_event();
}
END_TEST

START_TEST(a_reset_ends_the_wait)
{
    receive(1);
    hca_reset(&b->rig.hca);
    ck_assert_uint_eq(b->rig.hca.delayed_bytes, 0);
    ck_assert_uint_eq(b->rig.hca.delay_drop_ns, 0);
    rig_advance(&b->rig, 2 * WAIT);
}
END_TEST

/* A frame of a striding queue waits, too, and takes its strides when it has its place. */
START_TEST(frames_wait_for_striding_wqes)
{
    struct prm_wqe_srq_next_seg *first;
    struct prm_wqe_data_seg *seg;
    struct eth_info info;
    struct rss rss = {.hash = 0x1234};
    uint8_t frame[700] = {2};
    const struct prm_cqe64 *cqe;

    make(PRM_WQ_TYPE_CYCLIC_STRIDING_RQ, &rq, true); /* one WQE: 512 strides of 64 bytes */
    ck_assert(eth_parse(frame, sizeof(frame), &info));
    for (unsigned i = 0; i < 2; i++) {
        eth_rq_receive(
            &b->rig.hca, eth_rq_find(&b->rig.hca, rq.num),
            &(struct eth_arrival){
                .frame = frame, .len = sizeof(frame), .info = &info, .rss = &rss, .flow_tag = 77});
    }
    memset(&rss, 0xff, sizeof(rss));
    first = fake_host_ptr(&b->rig.host, rq.ring, 64);
    seg = (void *)(first + 1);
    PRM_SET(wqe_data_seg, seg, byte_count, 512 * 64);
    PRM_SET(wqe_data_seg, seg, lkey, RIG_RESD_LKEY);
    PRM_SET(wqe_data_seg, seg, addr, bench_mem(b, NULL, 512 * 64));
    PRM_SET(wqe_data_seg, seg + 1, lkey, WQE_TERMINATOR_LKEY);
    PRM_SET(qp_dbr, fake_host_ptr(&b->rig.host, rq.dbr, 8), rcv_counter, 1);
    rig_advance(&b->rig, UNIT);
    for (unsigned i = 0; i < 2; i++) {
        cqe = bench_cqe(&rq);
        ck_assert_ptr_nonnull(cqe);
        ck_assert_uint_eq(PRM_GET(cqe64, cqe, wqe_counter), i * 11);
        ck_assert_uint_eq(PRM_GET(cqe64, cqe, byte_cnt), 11 << 16 | 700);
        ck_assert_uint_eq(PRM_GET(cqe64, cqe, rx_hash_result), 0x1234);
        ck_assert_uint_eq(PRM_GET(cqe64, cqe, qpn), 77);
    }
    expect_no_timer();
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("eth_delay");
    TCase *tcase = tcase_create("delayed drop");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, frames_wait_for_wqes_and_keep_their_order);
    tcase_add_test(tcase, a_later_frame_comes_behind_those_that_wait);
    tcase_add_test(tcase, progress_begins_the_wait_anew);
    tcase_add_test(tcase, a_timeout_drops_and_ends_all_waiting);
    tcase_add_test(tcase, a_timeout_ends_the_waits_of_other_queues);
    tcase_add_loop_test(tcase, without_delay_frames_are_dropped_at_once, 0, 2);
    tcase_add_test(tcase, what_waits_is_bounded);
    tcase_add_loop_test(tcase, a_change_of_state_ends_the_wait, 0, 2);
    tcase_add_loop_test(tcase, a_queue_that_fails_ends_the_wait, 0, 2);
    tcase_add_test(tcase, a_reset_ends_the_wait);
    tcase_add_test(tcase, frames_wait_for_striding_wqes);
    suite_add_tcase(suite, tcase);
    return suite;
}
