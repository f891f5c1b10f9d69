/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests that long Ethernet queues and wide rules do not make long turns: a flush is done over
 * several turns, in order, and a frame goes to a bounded number of queues. (unit-turns tests what a
 * turn counts.)
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "model/eth/eth_priv.h"
#include "model/eth/eth_queue.h"
#include "model/steering/steering.h"
#include "tests/unit/eth_bench.h"
#include "tests/unit/suite.h"

#define BUDGET   64 /* pieces of a turn that a test takes itself */
#define STEP     16 /* additional cost of the last step */
#define LOG_SIZE 9
#define POSTED   400

static struct bench *b;
static struct hca *hca;
static struct bench_queue sq, rq, other; /* other: an SQ that must not be affected */
static const struct bench_wr nop = {.opcode = PRM_WQE_OPCODE_NOP};

static void setup(void)
{
    struct prm_rqc rqc[1] = {0};

    b = bench_new();
    hca = &b->rig.hca;
    PRM_SET(rqc, rqc, flush_in_error_en, 1);
    bench_sq_new_sized(b, b->tisn, LOG_SIZE, &sq);
    bench_rq_new_sized(b, rqc, LOG_SIZE, &rq);
    bench_sq_new(b, b->tisn, &other);
    bench_run(b);
    hca->most_pieces = 0;
}

static void teardown(void)
{
    bench_free(b);
}

static void post_nops(unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        bench_write_wqe(&sq, &nop);
    }
    bench_ring_sq(&sq);
}

static void post_recvs(unsigned n, uint32_t len)
{
    uint64_t mem = bench_mem(b, NULL, 2048);

    for (unsigned i = 0; i < n; i++) {
        bench_post_recv(&rq, mem, len);
    }
}

/* Takes completions of WQEs from, from + 1..., all flushed; returns the number behind the last. */
static uint16_t take(struct bench_queue *queue, uint16_t from)
{
    const void *cqe;

    while ((cqe = bench_cqe(queue))) {
        ck_assert_uint_eq(PRM_GET(cqe64, cqe, opcode),
                          queue == &sq ? PRM_CQE_OPCODE_REQ_ERR : PRM_CQE_OPCODE_RESP_ERR);
        ck_assert_uint_eq(PRM_GET(err_cqe, cqe, syndrome), PRM_CQE_SYNDROME_WR_FLUSH_ERR);
        ck_assert_uint_eq(PRM_GET(cqe64, cqe, wqe_counter), from);
        from++;
    }
    return from;
}

/* Takes turns until everything is flushed up to the number end: each turn does a part, none does
 * everything, and a queue without an error gets its turn in between. */
static void expect_flush(struct bench_queue *queue, uint16_t from, uint16_t end)
{
    unsigned turns = 0;

    while (from < end) {
        uint16_t before = from;

        hca_run(hca, BUDGET);
        from = take(queue, from);
        ck_assert_uint_gt(from, before);
        ck_assert_uint_le(from - before, BUDGET);
        if (turns++ == 0) {
            bench_write_wqe(&other, &nop);
            bench_ring_sq(&other);
        }
        if (turns == 3) {
            bench_expect(&other, PRM_CQE_OPCODE_REQ, 0, 0);
        }
    }
    ck_assert_uint_ge(turns, POSTED / BUDGET);
    ck_assert_uint_le(hca->most_pieces, BUDGET + STEP);
    bench_run(b);
    bench_expect_none(queue);
}

/* -- send queues ------------------------------------------------------------------------------- */

/* The queue goes on by itself, some WQEs at a time. */
START_TEST(one_doorbell_is_enough_for_a_long_send_queue)
{
    unsigned completed = 0;
    bool more;

    post_nops(POSTED);
    do {
        more = hca_run(hca, BUDGET);
        for (const void *cqe; (cqe = bench_cqe(&sq)); completed++) {
            ck_assert_uint_eq(PRM_GET(cqe64, cqe, opcode), PRM_CQE_OPCODE_REQ);
        }
    } while (more);
    ck_assert_uint_eq(completed, POSTED);
}
END_TEST

START_TEST(a_long_send_queue_is_flushed_over_several_turns)
{
    post_nops(POSTED);
    ck_assert_int_eq(bench_sq_move(&sq, PRM_SQC_STATE_RDY, PRM_SQC_STATE_ERR), SYN_OK);
    bench_expect_none(&sq);
    expect_flush(&sq, 0, POSTED);

    /* what is posted in ERR is flushed too */
    post_nops(3);
    bench_run(b);
    ck_assert_uint_eq(take(&sq, POSTED), POSTED + 3);
}
END_TEST

START_TEST(wqes_behind_a_bad_one_are_flushed_over_several_turns)
{
    const struct bench_wr bad = {.opcode = PRM_WQE_OPCODE_RDMA_READ};

    bench_write_wqe(&sq, &bad);
    post_nops(POSTED);
    hca_run(hca, 1);
    bench_expect(&sq, PRM_CQE_OPCODE_REQ_ERR, PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR, 0);
    expect_flush(&sq, 1, POSTED + 1);
}
END_TEST

START_TEST(to_rst_drops_what_is_left_of_a_send_queues_flush)
{
    post_nops(POSTED);
    ck_assert_int_eq(bench_sq_move(&sq, PRM_SQC_STATE_RDY, PRM_SQC_STATE_ERR), SYN_OK);
    hca_run(hca, BUDGET);
    take(&sq, 0);
    ck_assert_int_eq(bench_sq_move(&sq, PRM_SQC_STATE_ERR, PRM_SQC_STATE_RST), SYN_OK);
    bench_run(b);
    bench_expect_none(&sq);
    ck_assert_int_eq(bench_sq_move(&sq, PRM_SQC_STATE_RST, PRM_SQC_STATE_RDY), SYN_OK);
    sq.pi = 0;
    bench_send(&sq, &nop);
    bench_expect(&sq, PRM_CQE_OPCODE_REQ, 0, 0);
}
END_TEST

/* A CQ that overruns during a flush makes the rest go unseen; the queue is as one that was
 * flushed. */
START_TEST(a_cq_that_overruns_during_a_flush_does_not_keep_it)
{
    const struct prm_eqe *eqe;
    unsigned errors = 0;

    post_nops(POSTED);
    ck_assert_int_eq(bench_sq_move(&sq, PRM_SQC_STATE_RDY, PRM_SQC_STATE_ERR), SYN_OK);
    bench_run(b);
    post_nops(POSTED); /* 800 for the CQ's 512 entries */
    bench_run(b);
    while ((eqe = rig_eq_next(&b->rig, &b->eq))) {
        errors += PRM_GET(eqe, eqe, event_type) == PRM_EVENT_TYPE_CQ_ERROR;
    }
    ck_assert_uint_eq(errors, 1);
    ck_assert_uint_eq(take(&sq, 0), 1 << BENCH_CQ_LOG);
    ck_assert_int_eq(bench_sq_move(&sq, PRM_SQC_STATE_ERR, PRM_SQC_STATE_RST), SYN_OK);
    bench_write_wqe(&other, &nop);
    bench_ring_sq(&other);
    bench_run(b);
    bench_expect(&other, PRM_CQE_OPCODE_REQ, 0, 0);
}
END_TEST

START_TEST(destruction_ends_a_flush)
{
    post_nops(POSTED);
    post_recvs(POSTED, 2048);
    ck_assert_int_eq(bench_sq_move(&sq, PRM_SQC_STATE_RDY, PRM_SQC_STATE_ERR), SYN_OK);
    ck_assert_int_eq(bench_rq_move(&rq, PRM_RQC_STATE_RDY, PRM_RQC_STATE_ERR), SYN_OK);
    hca_run(hca, BUDGET);
    take(&sq, 0);
    take(&rq, 0);
    ck_assert_int_eq(eth_sq_destroy(hca, 0, sq.num), SYN_OK);
    ck_assert_int_eq(eth_rq_destroy(hca, 0, rq.num), SYN_OK);
    bench_run(b);
    bench_expect_none(&sq);
    bench_expect_none(&rq);
}
END_TEST

/* -- receive queues ---------------------------------------------------------------------------- */

START_TEST(a_long_receive_queue_is_flushed_over_several_turns)
{
    post_recvs(POSTED, 2048);
    ck_assert_int_eq(bench_rq_move(&rq, PRM_RQC_STATE_RDY, PRM_RQC_STATE_ERR), SYN_OK);
    bench_expect_none(&rq);
    expect_flush(&rq, 0, POSTED);
}
END_TEST

/* A WQE whose key denies the access fails at once; the other WQEs follow over several turns. */
START_TEST(wqes_behind_one_that_fails_are_flushed_over_several_turns)
{
    struct bench_pkt pkt = {.ip_version = 4, .proto = 17, .payload = 100};
    uint8_t frame[WIRE_FRAME_MAX], *room;
    size_t len = bench_build(frame, &pkt);

    bench_catch_all(b, bench_direct_tir(b, rq.num));
    post_recvs(POSTED, 2048);
    PRM_SET(rqc, eth_rq_find(hca, rq.num)->rqc, rlky, 0); /* as a program's queue */
    room = wire_tx_reserve(b->far, len);
    memcpy(room, frame, len);
    wire_tx_commit(b->far, len);
    hca_run(hca, 8);
    bench_expect(&rq, PRM_CQE_OPCODE_RESP_ERR, PRM_CQE_SYNDROME_LOCAL_PROT_ERR, 0);
    expect_flush(&rq, take(&rq, 1), POSTED);
}
END_TEST

START_TEST(to_rst_drops_what_is_left_of_a_receive_queues_flush)
{
    post_recvs(POSTED, 2048);
    ck_assert_int_eq(bench_rq_move(&rq, PRM_RQC_STATE_RDY, PRM_RQC_STATE_ERR), SYN_OK);
    hca_run(hca, BUDGET);
    ck_assert_uint_lt(take(&rq, 0), POSTED);
    ck_assert_int_eq(bench_rq_move(&rq, PRM_RQC_STATE_ERR, PRM_RQC_STATE_RST), SYN_OK);
    bench_run(b);
    bench_expect_none(&rq);
}
END_TEST

/* -- steering ---------------------------------------------------------------------------------- */

/* Five times 32 destinations: STEERING_MAX_DELIVERIES of them get the frame; the other copies are
 * dropped and counted. The next frame is treated the same. */
START_TEST(a_frame_goes_to_a_bounded_number_of_queues)
{
    enum {
        TABLES = 5
    };
    uint32_t root = bench_table(b, 0, 0), tirn = bench_direct_tir(b, rq.num);
    struct bench_fte to_tables = {
        .table = root, .group = bench_group(b, root, 0, 0, NULL), .num_dests = TABLES};
    struct bench_pkt pkt = {.ip_version = 4, .proto = 17, .payload = 10};
    uint8_t frame[WIRE_FRAME_MAX];
    size_t len = bench_build(frame, &pkt);

    for (unsigned i = 0; i < TABLES; i++) {
        uint32_t table = bench_table(b, 1, 0);
        struct bench_fte fte = {.table = table,
                                .group = bench_group(b, table, 0, 0, NULL),
                                .num_dests = STEERING_MAX_DEST};

        for (unsigned n = 0; n < STEERING_MAX_DEST; n++) {
            fte.dests[n] = (struct bench_dest){PRM_FLOW_DESTINATION_TYPE_TIR, tirn};
        }
        ck_assert_int_eq(bench_fte_set(b, &fte), SYN_OK);
        to_tables.dests[i] = (struct bench_dest){PRM_FLOW_DESTINATION_TYPE_FLOW_TABLE, table};
    }
    ck_assert_int_eq(bench_fte_set(b, &to_tables), SYN_OK);
    ck_assert_int_eq(flow_table_set_root(hca, PRM_FLOW_TABLE_TYPE_NIC_RX, root, true), SYN_OK);
    post_recvs(POSTED, 2048);
    for (unsigned n = 1; n <= 2; n++) {
        bench_rx(b, frame, len);
        for (unsigned i = 0; i < STEERING_MAX_DELIVERIES; i++) {
            ck_assert_uint_eq(PRM_GET(cqe64, bench_cqe(&rq), opcode), PRM_CQE_OPCODE_RESP_SEND);
        }
        bench_expect_none(&rq);
        ck_assert_uint_eq(hca->vport->counters.rx_discards,
                          n * (TABLES * STEERING_MAX_DEST - STEERING_MAX_DELIVERIES));
    }
    ck_assert_uint_le(hca->most_pieces, 1024 + 8 * STEERING_MAX_DELIVERIES);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("turns-eth");
    TCase *tcase = tcase_create("all");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, one_doorbell_is_enough_for_a_long_send_queue);
    tcase_add_test(tcase, a_long_send_queue_is_flushed_over_several_turns);
    tcase_add_test(tcase, wqes_behind_a_bad_one_are_flushed_over_several_turns);
    tcase_add_test(tcase, to_rst_drops_what_is_left_of_a_send_queues_flush);
    tcase_add_test(tcase, a_cq_that_overruns_during_a_flush_does_not_keep_it);
    tcase_add_test(tcase, destruction_ends_a_flush);
    tcase_add_test(tcase, a_long_receive_queue_is_flushed_over_several_turns);
    tcase_add_test(tcase, wqes_behind_one_that_fails_are_flushed_over_several_turns);
    tcase_add_test(tcase, to_rst_drops_what_is_left_of_a_receive_queues_flush);
    tcase_add_test(tcase, a_frame_goes_to_a_bounded_number_of_queues);
    suite_add_tcase(suite, tcase);
    return suite;
}
