/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests hairpin queues: an SQ sends the frames that an RQ of the same card receives. Drivers use
 * them in transobj.c (mlx5_core_hairpin_create()) of Linux, and in mlx5_devx.c and mlx5_trigger.c
 * of DPDK's mlx5.
 */
#include <check.h>
#include <string.h>
#include "model/eth/eth_hairpin.h"
#include "model/eth/eth_queue.h"
#include "model/queue/q_counter.h"
#include "model/steering/contexts.h"
#include "model/steering/steering.h"
#include "tests/unit/eth_bench.h"
#include "tests/unit/suite.h"

enum {
    FRAME = 100,
    LOG_DATA = 9, /* five frames of FRAME bytes fit */
    LOG_PACKETS = 2,
    PACKETS = 1 << LOG_PACKETS,
    NOBODY = 0x123456,
};

static const uint8_t stranger[6] = {2, 0, 0, 0, 0, 9};
static const uint8_t mac_of[2][6] = {{2, 0, 0, 0, 0, 1}, {2, 0, 0, 0, 0, 0x11}};

static struct card *card;
static struct bench *b[2];
static uint32_t counter_set, rqn, sqn; /* the RQ is function 0's, the SQ function 1's */

static struct hca *hca_of(unsigned i)
{
    return &b[i]->rig.hca;
}

/* -- queues as drivers make them: with no CQ, PD, UAR and pages -------------------------------- */

static struct prm_wq *put_size(struct prm_wq *wq, unsigned log_data, unsigned log_packets)
{
    PRM_SET(wq, wq, log_hairpin_data_sz, log_data);
    PRM_SET(wq, wq, log_hairpin_num_packets, log_packets);
    return wq;
}

static enum syn try_rq(unsigned of, uint16_t uid, unsigned log_data, unsigned log_packets,
                       uint32_t *num)
{
    struct prm_rqc rqc[1] = {0};
    struct mem_buf none = {0};

    PRM_SET(rqc, rqc, hairpin, 1);
    PRM_SET(rqc, rqc, flush_in_error_en, 1);
    PRM_SET(rqc, rqc, counter_set_id, counter_set);
    put_size(PRM_PTR(rqc, rqc, wq), log_data, log_packets);
    return eth_rq_create(hca_of(of), uid, rqc, &none, 0, num);
}

static enum syn try_sq(unsigned of, uint16_t uid, unsigned log_data, unsigned log_packets,
                       uint32_t *num)
{
    struct prm_sqc sqc[1] = {0};
    struct mem_buf none = {0};

    PRM_SET(sqc, sqc, hairpin, 1);
    PRM_SET(sqc, sqc, flush_in_error_en, 1);
    put_size(PRM_PTR(sqc, sqc, wq), log_data, log_packets);
    return eth_sq_create(hca_of(of), uid, sqc, &none, 0, num);
}

static uint32_t new_rq(unsigned of)
{
    uint32_t num;

    ck_assert_int_eq(try_rq(of, 0, LOG_DATA, LOG_PACKETS, &num), SYN_OK);
    return num;
}

static uint32_t new_sq(unsigned of)
{
    uint32_t num;

    ck_assert_int_eq(try_sq(of, 0, LOG_DATA, LOG_PACKETS, &num), SYN_OK);
    return num;
}

static enum syn move_rq(unsigned of, uint32_t num, uint8_t from, uint8_t to, unsigned peer_of,
                        uint32_t peer)
{
    struct prm_rqc rqc[1] = {0};

    PRM_SET(rqc, rqc, state, to);
    PRM_SET(rqc, rqc, hairpin_peer_vhca, peer_of);
    PRM_SET(rqc, rqc, hairpin_peer_sq, peer);
    return eth_rq_modify(hca_of(of), 0, num, from, 0, rqc);
}

static enum syn move_sq(unsigned of, uint32_t num, uint8_t from, uint8_t to, unsigned peer_of,
                        uint32_t peer)
{
    struct prm_sqc sqc[1] = {0};

    PRM_SET(sqc, sqc, state, to);
    PRM_SET(sqc, sqc, hairpin_peer_vhca, peer_of);
    PRM_SET(sqc, sqc, hairpin_peer_rq, peer);
    return eth_sq_modify(hca_of(of), 0, num, from, 0, sqc);
}

static void sq_ready(void)
{
    ck_assert_int_eq(move_sq(1, sqn, PRM_SQC_STATE_RST, PRM_SQC_STATE_RDY, 0, rqn), SYN_OK);
}

static void rq_ready(void)
{
    ck_assert_int_eq(move_rq(0, rqn, PRM_RQC_STATE_RST, PRM_RQC_STATE_RDY, 1, sqn), SYN_OK);
}

static void setup(void)
{
    card = card_new();
    for (unsigned i = 0; i < 2; i++) {
        b[i] = bench_new_on(card, i);
        hca_of(i)->limits.hairpin = true;
    }
    ck_assert_int_eq(q_counter_alloc(hca_of(0), 0, &counter_set), SYN_OK);
    rqn = new_rq(0);
    sqn = new_sq(1);
    bench_catch_all(b[0], bench_direct_tir(b[0], rqn));
}

static void setup_pair(void)
{
    setup();
    sq_ready();
    rq_ready();
}

static void teardown(void)
{
    bench_free(b[0]);
    bench_free(b[1]);
    card_free(card);
}

/* -- frames ------------------------------------------------------------------------------------ */

static void fill_frame(uint8_t *frame, const uint8_t *dmac, uint8_t mark)
{
    memset(frame, mark, FRAME);
    memcpy(frame, dmac, 6);
    memcpy(frame + 6, bench_peer_mac, 6);
    prm_store16(frame + 12, 0x88b5); /* local experimental */
}

/* A frame comes over the cable to function 0; only that has a turn. */
static void come(uint8_t mark)
{
    uint8_t frame[FRAME];

    fill_frame(frame, stranger, mark);
    bench_rx(b[0], frame, sizeof(frame));
}

/* Function 1 has its turns, and then the cable's other end looks. */
static void leave(void)
{
    bench_run(b[1]);
    bench_run(b[0]);
}

static void expect_sent(unsigned n)
{
    ck_assert_uint_eq(b[0]->num_frames, n);
}

static void expect_frame(unsigned i, uint8_t mark)
{
    uint8_t frame[FRAME];

    fill_frame(frame, stranger, mark);
    ck_assert_uint_eq(b[0]->frames[i].len, FRAME);
    ck_assert_mem_eq(b[0]->frames[i].data, frame, FRAME);
}

static uint64_t dropped(void)
{
    return q_counter_get(hca_of(0), counter_set)->out_of_buffer;
}

START_TEST(frames_of_the_rq_leave_by_the_sq_of_another_function)
{
    come(1);
    expect_sent(0); /* it is the SQ's function that sends */
    come(2);
    leave();
    expect_sent(2);
    expect_frame(0, 1);
    expect_frame(1, 2);
    ck_assert_uint_eq(hca_of(1)->vport->counters.tx.frames[FRAME_UNICAST], 2);
    ck_assert_uint_eq(dropped(), 0);
}
END_TEST

/* The ring of bytes wraps within frames. */
START_TEST(frames_leave_unchanged_in_their_order_for_ever)
{
    for (unsigned i = 0; i < 100; i++) {
        come((uint8_t)i);
        if (i % 3 == 2) {
            leave();
        }
    }
    leave();
    expect_sent(100);
    for (unsigned i = 0; i < 100; i++) {
        expect_frame(i, (uint8_t)i);
    }
}
END_TEST

START_TEST(both_queues_may_be_of_one_function)
{
    uint32_t rq = new_rq(0), sq = new_sq(0);

    ck_assert_int_eq(move_rq(0, rq, PRM_RQC_STATE_RST, PRM_RQC_STATE_RDY, 0, sq), SYN_OK);
    ck_assert_int_eq(move_sq(0, sq, PRM_SQC_STATE_RST, PRM_SQC_STATE_RDY, 0, rq), SYN_OK);
    bench_catch_all(b[0], bench_direct_tir(b[0], rq));
    come(7);
    expect_sent(1);
    expect_frame(0, 7);
}
END_TEST

START_TEST(a_short_frame_is_padded)
{
    uint8_t frame[FRAME];

    fill_frame(frame, stranger, 0xee);
    bench_rx(b[0], frame, 20);
    leave();
    expect_sent(1);
    ck_assert_uint_eq(b[0]->frames[0].len, 60);
    ck_assert_uint_eq(b[0]->frames[0].data[19], 0xee);
    for (unsigned i = 20; i < 60; i++) {
        ck_assert_uint_eq(b[0]->frames[0].data[i], 0);
    }
}
END_TEST

/* There is no CQE that could tell the tag. */
START_TEST(a_vlan_tag_stays_in_the_frame)
{
    uint8_t frame[FRAME];

    fill_frame(frame, stranger, 5);
    prm_store16(frame + 12, 0x8100);
    prm_store16(frame + 14, 0x2123);
    bench_rx(b[0], frame, sizeof(frame));
    leave();
    expect_sent(1);
    ck_assert_mem_eq(b[0]->frames[0].data, frame, FRAME);
}
END_TEST

/* -- room -------------------------------------------------------------------------------------- */

START_TEST(a_frame_beyond_the_number_is_dropped_and_counted)
{
    for (unsigned i = 0; i < PACKETS + 3; i++) {
        come((uint8_t)i);
    }
    ck_assert_uint_eq(dropped(), 3);
    leave();
    expect_sent(PACKETS);
    expect_frame(PACKETS - 1, PACKETS - 1);
    come(9);
    leave();
    expect_sent(PACKETS + 1);
    ck_assert_uint_eq(dropped(), 3);
}
END_TEST

START_TEST(a_frame_beyond_the_bytes_is_dropped_and_counted)
{
    uint8_t frame[513];

    memset(frame, 0, sizeof(frame));
    fill_frame(frame, stranger, 1);
    bench_rx(b[0], frame, sizeof(frame)); /* never fits */
    ck_assert_uint_eq(dropped(), 1);
    bench_rx(b[0], frame, 300);
    bench_rx(b[0], frame, 213);
    ck_assert_uint_eq(dropped(), 2);
    bench_rx(b[0], frame, 212);
    leave();
    expect_sent(2);
    bench_rx(b[0], frame, 512);
    leave();
    expect_sent(3);
    ck_assert_uint_eq(dropped(), 2);
}
END_TEST

/* A send queue without credit waits, and goes on with the frame that found none. */
START_TEST(frames_wait_for_credit_of_the_cable)
{
    unsigned n = 0;

    while (dropped() == 0) {
        uint8_t frame[FRAME];

        fill_frame(frame, stranger, (uint8_t)n++);
        bench_put(b[0], frame, sizeof(frame));
        rig_run(&b[0]->rig); /* nobody looks at the other end */
        rig_run(&b[1]->rig);
    }
    expect_sent(0);
    for (unsigned i = 0; i < PACKETS; i++) {
        leave();
    }
    expect_sent(n - 1);
    for (unsigned i = 0; i < n - 1; i++) {
        expect_frame(i, (uint8_t)i);
    }
}
END_TEST

/* -- pairs ------------------------------------------------------------------------------------- */

static void expect_apart(void)
{
    uint64_t before = dropped();

    b[0]->num_frames = 0;
    come(1);
    leave();
    expect_sent(0);
    ck_assert_uint_eq(dropped(), before + 1);
}

static void expect_joined(void)
{
    uint64_t before = dropped();

    b[0]->num_frames = 0;
    come(2);
    leave();
    expect_sent(1);
    expect_frame(0, 2);
    ck_assert_uint_eq(dropped(), before);
}

/* mlx5_hairpin_pair_queues() makes the SQs ready first, DPDK's mlx5_hairpin_auto_bind() too. */
START_TEST(queues_join_when_both_are_ready_in_either_order)
{
    sq_ready();
    rq_ready();
    expect_joined();
    ck_assert_int_eq(move_sq(1, sqn, PRM_SQC_STATE_RDY, PRM_SQC_STATE_RST, 0, 0), SYN_OK);
    expect_apart();
    sq_ready();
    expect_joined();
    ck_assert_int_eq(move_rq(0, rqn, PRM_RQC_STATE_RDY, PRM_RQC_STATE_RST, 0, 0), SYN_OK);
    rq_ready();
    expect_joined();
}
END_TEST

/* A queue in error joins no other one until it was reset, and a queue that stays RDY keeps its
 * peer. */
START_TEST(a_queue_joins_only_on_its_way_from_reset_to_ready)
{
    uint32_t other_rq = new_rq(0), other_sq = new_sq(1);

    sq_ready();
    rq_ready();
    ck_assert_int_eq(move_rq(0, rqn, PRM_RQC_STATE_RDY, PRM_RQC_STATE_RDY, 1, other_sq), SYN_OK);
    ck_assert_int_eq(move_sq(1, sqn, PRM_SQC_STATE_RDY, PRM_SQC_STATE_RDY, 0, other_rq), SYN_OK);
    expect_joined();
    ck_assert_int_eq(move_rq(0, rqn, PRM_RQC_STATE_RDY, PRM_RQC_STATE_ERR, 0, 0), SYN_OK);
    ck_assert_int_eq(move_sq(1, sqn, PRM_SQC_STATE_RDY, PRM_SQC_STATE_ERR, 0, 0), SYN_OK);
    ck_assert_int_eq(move_rq(0, rqn, PRM_RQC_STATE_ERR, PRM_RQC_STATE_RDY, 1, sqn), SYN_ETH_STATE);
    ck_assert_int_eq(move_sq(1, sqn, PRM_SQC_STATE_ERR, PRM_SQC_STATE_RDY, 0, rqn), SYN_ETH_STATE);
    ck_assert_int_eq(move_rq(0, rqn, PRM_RQC_STATE_ERR, PRM_RQC_STATE_RST, 0, 0), SYN_OK);
    rq_ready(); /* an SQ in error may be named, and takes nothing */
    expect_apart();
    ck_assert_int_eq(move_sq(1, sqn, PRM_SQC_STATE_ERR, PRM_SQC_STATE_RST, 0, 0), SYN_OK);
    expect_apart();
    sq_ready();
    expect_joined();
}
END_TEST

/* The RQ holds the frames. DPDK gives both queues the same size, mlx5e gives the SQ none. */
START_TEST(the_size_of_the_sq_does_not_matter)
{
    static const uint8_t log_data[] = {ETH_HAIRPIN_LOG_DATA_MIN, ETH_HAIRPIN_LOG_DATA_MAX};

    for (unsigned i = 0; i < G_N_ELEMENTS(log_data); i++) {
        rqn = new_rq(0);
        ck_assert_int_eq(try_sq(1, 0, log_data[i], i ? ETH_HAIRPIN_LOG_PACKETS_MAX : 0, &sqn),
                         SYN_OK);
        bench_catch_all(b[0], bench_direct_tir(b[0], rqn));
        sq_ready();
        rq_ready();
        b[0]->num_frames = 0;
        for (unsigned n = 0; n < PACKETS; n++) {
            come((uint8_t)n);
        }
        ck_assert_uint_eq(dropped(), i);
        come(PACKETS); /* the RQ is full */
        ck_assert_uint_eq(dropped(), i + 1);
        leave();
        expect_sent(PACKETS);
    }
}
END_TEST

/* The RQ's rules and TIR hold it, the peer does not. */
START_TEST(either_queue_may_end_before_the_other)
{
    for (unsigned i = 0; i < 2; i++) {
        uint32_t rq = new_rq(0), sq = new_sq(1);

        ck_assert_int_eq(move_rq(0, rq, PRM_RQC_STATE_RST, PRM_RQC_STATE_RDY, 1, sq), SYN_OK);
        ck_assert_int_eq(move_sq(1, sq, PRM_SQC_STATE_RST, PRM_SQC_STATE_RDY, 0, rq), SYN_OK);
        if (i) {
            ck_assert_int_eq(eth_rq_destroy(hca_of(0), 0, rq), SYN_OK);
            ck_assert_int_eq(eth_sq_destroy(hca_of(1), 0, sq), SYN_OK);
        } else {
            ck_assert_int_eq(eth_sq_destroy(hca_of(1), 0, sq), SYN_OK);
            ck_assert_int_eq(eth_rq_destroy(hca_of(0), 0, rq), SYN_OK);
        }
        ck_assert_uint_eq(hca_of(0)->hairpin_rqs, 1); /* those of setup() are left */
        ck_assert_uint_eq(hca_of(1)->hairpin_sqs, 1);
    }
    sq_ready();
    ck_assert_int_eq(eth_rq_destroy(hca_of(0), 0, rqn), SYN_IN_USE);
}
END_TEST

/* The number of a queue that has ended may come back. A queue that named the old one is
 * not joined with the new one, which names no peer. */
START_TEST(a_queue_with_the_number_of_an_old_peer_is_not_joined)
{
    uint32_t old = sqn;

    sq_ready();
    rq_ready();
    ck_assert_int_eq(eth_sq_destroy(hca_of(1), 0, old), SYN_OK);
    while ((sqn = new_sq(1)) != old) {
        ck_assert_int_eq(eth_sq_destroy(hca_of(1), 0, sqn), SYN_OK);
    }
    expect_apart();
    sq_ready(); /* both name each other again */
    expect_joined();
}
END_TEST

START_TEST(an_rq_without_a_ready_peer_drops_and_counts)
{
    rq_ready();
    expect_apart();
    sq_ready();
    expect_joined();
}
END_TEST

/* No queue can be used by a queue that it does not name. */
START_TEST(queues_that_do_not_name_each_other_do_not_join)
{
    uint32_t other = new_sq(1);

    rq_ready();
    ck_assert_int_eq(move_sq(1, other, PRM_SQC_STATE_RST, PRM_SQC_STATE_RDY, 0, rqn), SYN_OK);
    expect_apart();
    sq_ready();
    expect_joined();
}
END_TEST

/* The same numbers in another function are other queues. */
START_TEST(a_peer_is_named_by_its_function_too)
{
    uint32_t twin = new_rq(1), mine = new_sq(1);

    while (rqn < twin) {
        rqn = new_rq(0);
    }
    ck_assert_uint_eq(twin, rqn);
    bench_catch_all(b[0], bench_direct_tir(b[0], rqn));
    ck_assert_int_eq(move_sq(1, mine, PRM_SQC_STATE_RST, PRM_SQC_STATE_RDY, 1, twin), SYN_OK);
    ck_assert_int_eq(move_rq(0, rqn, PRM_RQC_STATE_RST, PRM_RQC_STATE_RDY, 1, mine), SYN_OK);
    expect_apart();
}
END_TEST

/* The RQ names an SQ of its own function, which has the number of the SQ that names the RQ. */
START_TEST(an_rq_names_the_function_of_its_peer_too)
{
    uint32_t twin = new_sq(0);

    while (sqn < twin) {
        sqn = new_sq(1);
    }
    ck_assert_uint_eq(twin, sqn);
    sq_ready();
    ck_assert_int_eq(move_rq(0, rqn, PRM_RQC_STATE_RST, PRM_RQC_STATE_RDY, 0, twin), SYN_OK);
    expect_apart();
    ck_assert_int_eq(move_sq(1, sqn, PRM_SQC_STATE_RDY, PRM_SQC_STATE_RST, 0, 0), SYN_OK);
    sq_ready();
    expect_apart();
}
END_TEST

static void rq_to_reset(void)
{
    ck_assert_int_eq(move_rq(0, rqn, PRM_RQC_STATE_RDY, PRM_RQC_STATE_RST, 0, 0), SYN_OK);
}

static void rq_to_error(void)
{
    ck_assert_int_eq(move_rq(0, rqn, PRM_RQC_STATE_RDY, PRM_RQC_STATE_ERR, 0, 0), SYN_OK);
}

static void sq_to_reset(void)
{
    ck_assert_int_eq(move_sq(1, sqn, PRM_SQC_STATE_RDY, PRM_SQC_STATE_RST, 0, 0), SYN_OK);
}

static void sq_to_error(void)
{
    ck_assert_int_eq(move_sq(1, sqn, PRM_SQC_STATE_RDY, PRM_SQC_STATE_ERR, 0, 0), SYN_OK);
}

static void sq_ends(void)
{
    ck_assert_int_eq(eth_sq_destroy(hca_of(1), 0, sqn), SYN_OK);
}

static void function_of_the_sq_restarts(void)
{
    hca_reset(hca_of(1));
}

static void function_of_the_sq_is_off(void)
{
    hca_of(1)->off = true;
    come(5); /* a function that is off takes nothing */
    hca_of(1)->off = false;
    ck_assert_uint_eq(dropped(), 1);
    sq_ends();
    q_counter_get(hca_of(0), counter_set)->out_of_buffer--;
}

static void (*const endings[])(void) = {
    rq_to_reset,
    rq_to_error,
    sq_to_reset,
    sq_to_error,
    sq_ends,
    function_of_the_sq_restarts,
    function_of_the_sq_is_off,
};

/* Whatever ends a pair ends the wait of the frames between the queues. */
START_TEST(the_end_of_a_pair_drops_and_counts_its_frames)
{
    come(1);
    come(2);
    endings[_i]();
    ck_assert_uint_eq(dropped(), 2);
    leave();
    expect_sent(0);
    come(3);
    leave();
    expect_sent(0);
}
END_TEST

START_TEST(a_pair_that_joins_again_begins_empty)
{
    come(1);
    come(2);
    sq_to_reset();
    sq_ready();
    come(3);
    leave();
    expect_sent(1);
    expect_frame(0, 3);
    sq_to_reset();
    ck_assert_uint_eq(dropped(), 2);
}
END_TEST

/* The RQ's counter set is gone with the function. */
START_TEST(a_restart_of_the_function_of_the_rq_leaves_the_sq_alone)
{
    struct prm_sqc sqc[1];

    come(1);
    hca_reset(hca_of(0));
    leave();
    expect_sent(0);
    ck_assert_int_eq(eth_sq_query(hca_of(1), sqn, sqc), SYN_OK);
    ck_assert_uint_eq(PRM_GET(sqc, sqc, state), PRM_SQC_STATE_RDY);
    ck_assert_uint_eq(PRM_GET(sqc, sqc, hairpin_peer_rq), rqn);
    ck_assert_uint_eq(PRM_GET(sqc, sqc, hairpin_peer_vhca), 0);
    ck_assert_int_eq(eth_sq_destroy(hca_of(1), 0, sqn), SYN_OK);
}
END_TEST

START_TEST(a_query_tells_the_peer_of_an_rq)
{
    struct prm_rqc rqc[1];

    ck_assert_int_eq(eth_rq_query(hca_of(0), rqn, rqc), SYN_OK);
    ck_assert_uint_eq(PRM_GET(rqc, rqc, hairpin_peer_sq), sqn);
    ck_assert_uint_eq(PRM_GET(rqc, rqc, hairpin_peer_vhca), 1);
    ck_assert_uint_eq(PRM_GET(rqc, rqc, hairpin), 1);
}
END_TEST

/* -- rules ------------------------------------------------------------------------------------- */

START_TEST(rules_for_sent_frames_see_what_a_hairpin_sends)
{
    uint32_t table;
    struct bench_fte fte = {.action = PRM_FLOW_ACTION_DROP};

    b[1]->table_type = PRM_FLOW_TABLE_TYPE_NIC_TX;
    table = bench_table(b[1], 0, 0);
    fte.table = table;
    fte.group = bench_group(b[1], table, 0, 0, NULL);
    ck_assert_int_eq(bench_fte_set(b[1], &fte), SYN_OK);
    ck_assert_int_eq(flow_table_set_root(hca_of(1), PRM_FLOW_TABLE_TYPE_NIC_TX, table, true),
                     SYN_OK);
    come(1);
    leave();
    expect_sent(0);
    ck_assert_int_eq(flow_table_set_root(hca_of(1), PRM_FLOW_TABLE_TYPE_NIC_TX, table, false),
                     SYN_OK);
    come(2);
    leave();
    expect_sent(1);
    expect_frame(0, 2);
}
END_TEST

/* The domain's only rule: what it does to a frame with a list of actions. */
static void set_rewrite(unsigned of, uint8_t type, const struct prm_set_action_in *actions,
                        unsigned n, uint32_t tirn)
{
    struct prm_set_fte_in in[2] = {0}; /* the second one has room for a destination */
    struct prm_flow_context *ctx = PRM_PTR(set_fte_in, in, flow_context);
    void *dest = PRM_PTR_AT(flow_context, ctx, destination, 0);
    uint32_t table, id;

    b[of]->table_type = type;
    table = bench_table(b[of], 0, 0);
    ck_assert_int_eq(modify_header_create(hca_of(of), 0, type, actions, n, &id), SYN_OK);
    PRM_SET(set_fte_in, in, table_type, type);
    PRM_SET(set_fte_in, in, table_id, table);
    PRM_SET(flow_context, ctx, group_id, bench_group(b[of], table, 0, 0, NULL));
    PRM_SET(flow_context, ctx, modify_header_id, id);
    PRM_SET(flow_context, ctx, action,
            PRM_FLOW_ACTION_MOD_HDR | (tirn ? PRM_FLOW_ACTION_FWD_DEST : PRM_FLOW_ACTION_ALLOW));
    if (tirn) {
        PRM_SET(flow_context, ctx, destination_list_size, 1);
        PRM_SET(dest_format_struct, dest, destination_type, PRM_FLOW_DESTINATION_TYPE_TIR);
        PRM_SET(dest_format_struct, dest, destination_id, tirn);
    }
    ck_assert_int_eq(
        flow_entry_set(hca_of(of), 0, in,
                       PRM_SIZE(set_fte_in) + (tirn ? PRM_SIZE(dest_format_struct) : 0), false),
        SYN_OK);
    ck_assert_int_eq(flow_table_set_root(hca_of(of), type, table, true), SYN_OK);
}

static void put_action(struct prm_set_action_in *action, unsigned field, unsigned bits,
                       uint32_t value)
{
    PRM_SET(set_action_in, action, action_type, PRM_MODIFY_HEADER_ACTION_SET);
    PRM_SET(set_action_in, action, field, field);
    PRM_SET(set_action_in, action, length, bits % 32); /* 0 means 32 */
    PRM_SET(set_action_in, action, data, value);
}

/* DPDK marks a frame in register B where it is received, and finds the mark in register A where it
 * is sent (flow_hairpin_split()). */
START_TEST(register_b_of_the_rq_is_register_a_of_the_sq)
{
    struct prm_set_action_in action[1] = {0};
    struct prm_fte_match_param mask[1] = {0}, value[1] = {0};
    struct bench_fte fte = {.action = PRM_FLOW_ACTION_DROP, .param = value};
    uint32_t tirn = bench_direct_tir(b[0], rqn);

    b[1]->table_type = PRM_FLOW_TABLE_TYPE_NIC_TX;
    fte.table = bench_table(b[1], 0, 0);
    PRM_SET(fte_match_set_misc2, PRM_PTR(fte_match_param, mask, misc_parameters_2), metadata_reg_a,
            UINT32_MAX);
    PRM_SET(fte_match_set_misc2, PRM_PTR(fte_match_param, value, misc_parameters_2), metadata_reg_a,
            0x5a5a0001);
    ck_assert_int_eq(bench_try_group(b[1], fte.table, 1 << PRM_MATCH_CRITERIA_MISC_PARAMETERS_2,
                                     mask, &fte.group),
                     SYN_OK);
    ck_assert_int_eq(bench_fte_set(b[1], &fte), SYN_OK);
    ck_assert_int_eq(flow_table_set_root(hca_of(1), PRM_FLOW_TABLE_TYPE_NIC_TX, fte.table, true),
                     SYN_OK);
    come(1);
    leave();
    expect_sent(1);
    put_action(action, PRM_MODIFY_HEADER_FIELD_METADATA_REG_B, 32, 0x5a5a0001);
    set_rewrite(0, PRM_FLOW_TABLE_TYPE_NIC_RX, action, 1, tirn);
    come(2);
    leave();
    expect_sent(1);
}
END_TEST

/* The rules send the frame to the cable, which has no room, instead of to a function, which has. */
START_TEST(a_frame_that_rules_change_waits_for_credit_of_its_new_way)
{
    struct prm_set_action_in actions[2] = {0};
    struct bench_queue sq;
    uint8_t frame[FRAME], expected[FRAME];
    struct bench_wr wr = {.opcode = PRM_WQE_OPCODE_SEND, .num_sge = 1};
    unsigned n = 0;

    bench_sq_new(b[1], b[1]->tisn, &sq);
    fill_frame(frame, stranger, 0);
    wr.sge[0] = (struct bench_sge){bench_mem(b[1], frame, FRAME), FRAME, 0};
    put_action(&actions[0], PRM_MODIFY_HEADER_FIELD_OUT_DMAC_47_16, 32, 0x02000000);
    put_action(&actions[1], PRM_MODIFY_HEADER_FIELD_OUT_DMAC_15_0, 16, 0x0009);
    set_rewrite(1, PRM_FLOW_TABLE_TYPE_NIC_TX, actions, 2, 0);
    do {
        bench_write_wqe(&sq, &wr);
        bench_ring_sq(&sq);
        rig_run(&b[1]->rig);
    } while (bench_cqe(&sq) && ++n);
    fill_frame(frame, mac_of[0], 7);
    fill_frame(expected, stranger, 7);
    bench_put(b[0], frame, FRAME);
    rig_run(&b[0]->rig);
    rig_run(&b[1]->rig); /* there is no credit */
    for (unsigned i = 0; i < 4; i++) {
        leave();
    }
    expect_sent(n + 2); /* with that of the SQ's last WQE */
    ck_assert_int_eq(memcmp(b[0]->frames[n].data, expected, FRAME) &&
                         memcmp(b[0]->frames[n + 1].data, expected, FRAME),
                     0);
    ck_assert_uint_eq(dropped(), 0);
}
END_TEST

/* -- loops ------------------------------------------------------------------------------------- */

/* A frame to the function itself goes round and round, as on a card. Each turn ends, and so does
 * each moment of the clock. */
START_TEST(a_loop_leaves_room_for_time_to_pass)
{
    uint32_t rq = new_rq(0), sq = new_sq(0);
    uint8_t frame[FRAME];
    const uint64_t *received = &hca_of(0)->vport->counters.rx.frames[FRAME_UNICAST];

    ck_assert_int_eq(move_sq(0, sq, PRM_SQC_STATE_RST, PRM_SQC_STATE_RDY, 0, rq), SYN_OK);
    ck_assert_int_eq(move_rq(0, rq, PRM_RQC_STATE_RST, PRM_RQC_STATE_RDY, 0, sq), SYN_OK);
    bench_catch_all(b[0], bench_direct_tir(b[0], rq));
    fill_frame(frame, mac_of[0], 1);
    bench_rx(b[0], frame, sizeof(frame));
    ck_assert_uint_eq(*received, ETH_HAIRPIN_BURST + 1);
    rig_advance(&b[0]->rig, ETH_HAIRPIN_PAUSE_NS - 1);
    ck_assert_uint_eq(*received, ETH_HAIRPIN_BURST + 1);
    rig_advance(&b[0]->rig, 1);
    ck_assert_uint_eq(*received, 2 * ETH_HAIRPIN_BURST + 1);
    ck_assert_int_eq(move_sq(0, sq, PRM_SQC_STATE_RDY, PRM_SQC_STATE_RST, 0, 0), SYN_OK);
    ck_assert_uint_eq(hca_of(0)->timers->len, 0);
    ck_assert_uint_eq(dropped(), 1);
    rig_advance(&b[0]->rig, ETH_HAIRPIN_PAUSE_NS);
    ck_assert_uint_eq(*received, 2 * ETH_HAIRPIN_BURST + 1);
}
END_TEST

/* Function 1 sends back to function 0 what it gets from there. */
START_TEST(a_loop_through_two_functions_ends_each_turn)
{
    uint8_t frame[FRAME];

    fill_frame(frame, mac_of[0], 1);
    bench_rx(b[0], frame, sizeof(frame));
    for (unsigned i = 0; i < 4 * ETH_HAIRPIN_BURST; i++) {
        bench_run(b[i % 2]);
    }
    ck_assert_uint_eq(hca_of(0)->vport->counters.rx.frames[FRAME_UNICAST], ETH_HAIRPIN_BURST + 1);
    ck_assert_uint_eq(hca_of(1)->timers->len, 1);
}
END_TEST

/* No copy of a group's frame comes back to the function that sends it. */
START_TEST(a_group_frame_leaves_once)
{
    static const uint8_t broadcast[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
    uint32_t rq = new_rq(0), sq = new_sq(0);
    uint8_t frame[FRAME];

    ck_assert_int_eq(move_sq(0, sq, PRM_SQC_STATE_RST, PRM_SQC_STATE_RDY, 0, rq), SYN_OK);
    ck_assert_int_eq(move_rq(0, rq, PRM_RQC_STATE_RST, PRM_RQC_STATE_RDY, 0, sq), SYN_OK);
    bench_catch_all(b[0], bench_direct_tir(b[0], rq));
    fill_frame(frame, broadcast, 1);
    bench_rx(b[0], frame, sizeof(frame));
    expect_sent(1);
}
END_TEST

/* -- what is refused --------------------------------------------------------------------------- */

START_TEST(sizes_are_within_the_capabilities)
{
    static const struct {
        unsigned log_data, log_packets;
        enum syn syn;
    } cases[] = {
        {ETH_HAIRPIN_LOG_DATA_MIN - 1, 0, SYN_HAIRPIN_SIZE},
        {ETH_HAIRPIN_LOG_DATA_MIN, 0, SYN_OK},
        {ETH_HAIRPIN_LOG_DATA_MAX, ETH_HAIRPIN_LOG_PACKETS_MAX, SYN_OK},
        {ETH_HAIRPIN_LOG_DATA_MAX + 1, 0, SYN_HAIRPIN_SIZE},
        {ETH_HAIRPIN_LOG_DATA_MAX, ETH_HAIRPIN_LOG_PACKETS_MAX + 1, SYN_HAIRPIN_SIZE},
    };
    uint32_t num;

    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        ck_assert_int_eq(try_rq(0, 0, cases[i].log_data, cases[i].log_packets, &num), cases[i].syn);
        ck_assert_int_eq(try_sq(0, 0, cases[i].log_data, cases[i].log_packets, &num), cases[i].syn);
    }
}
END_TEST

START_TEST(a_generation_without_hairpin_refuses_the_queues)
{
    uint32_t num;

    hca_of(0)->limits.hairpin = false;
    ck_assert_int_eq(try_rq(0, 0, LOG_DATA, LOG_PACKETS, &num), SYN_ETH_WQ);
    ck_assert_int_eq(try_sq(0, 0, LOG_DATA, LOG_PACKETS, &num), SYN_ETH_WQ);
}
END_TEST

START_TEST(a_function_has_as_many_hairpin_queues_as_it_says)
{
    uint64_t paid = hca_of(1)->memory.used;
    uint32_t first = new_rq(1), num;

    for (unsigned i = 1; i < 1u << ETH_HAIRPIN_LOG_QUEUES; i++) {
        new_rq(1);
        new_sq(1); /* one is there */
    }
    ck_assert_int_eq(try_rq(1, 0, LOG_DATA, LOG_PACKETS, &num), SYN_NO_MEMORY);
    ck_assert_int_eq(try_sq(1, 0, LOG_DATA, LOG_PACKETS, &num), SYN_NO_MEMORY);
    ck_assert_int_eq(eth_rq_destroy(hca_of(1), 0, first), SYN_OK);
    ck_assert_int_eq(eth_sq_destroy(hca_of(1), 0, sqn), SYN_OK);
    new_rq(1);
    new_sq(1);
    hca_reset(hca_of(1));
    ck_assert_uint_lt(hca_of(1)->memory.used, paid);
    ck_assert_uint_eq(hca_of(1)->hairpin_rqs, 0);
    ck_assert_uint_eq(hca_of(1)->hairpin_sqs, 0);
}
END_TEST

START_TEST(memory_for_the_frames_is_paid_for)
{
    uint32_t num;

    hca_of(0)->memory.limit = hca_of(0)->memory.used + (1u << ETH_HAIRPIN_LOG_DATA_MAX);
    ck_assert_int_eq(try_rq(0, 0, ETH_HAIRPIN_LOG_DATA_MAX, 0, &num), SYN_NO_MEMORY);
    hca_of(0)->memory.limit += 1u << ETH_HAIRPIN_LOG_DATA_MAX;
    ck_assert_int_eq(try_rq(0, 0, ETH_HAIRPIN_LOG_DATA_MAX, 0, &num), SYN_OK);
}
END_TEST

START_TEST(a_peer_must_be_a_hairpin_queue_of_a_function_of_the_card)
{
    struct bench_queue rq, sq;

    bench_rq_new(b[0], NULL, &rq);
    bench_sq_new(b[1], b[1]->tisn, &sq);
    ck_assert_int_eq(move_sq(1, sqn, PRM_SQC_STATE_RST, PRM_SQC_STATE_RDY, 2, rqn),
                     SYN_HAIRPIN_PEER);
    ck_assert_int_eq(move_sq(1, sqn, PRM_SQC_STATE_RST, PRM_SQC_STATE_RDY, 0, NOBODY),
                     SYN_HAIRPIN_PEER);
    ck_assert_int_eq(move_sq(1, sqn, PRM_SQC_STATE_RST, PRM_SQC_STATE_RDY, 0, rq.num),
                     SYN_HAIRPIN_PEER);
    ck_assert_int_eq(move_rq(0, rqn, PRM_RQC_STATE_RST, PRM_RQC_STATE_RDY, 2, sqn),
                     SYN_HAIRPIN_PEER);
    ck_assert_int_eq(move_rq(0, rqn, PRM_RQC_STATE_RST, PRM_RQC_STATE_RDY, 1, NOBODY),
                     SYN_HAIRPIN_PEER);
    ck_assert_int_eq(move_rq(0, rqn, PRM_RQC_STATE_RST, PRM_RQC_STATE_RDY, 1, sq.num),
                     SYN_HAIRPIN_PEER);
    sq_ready();
    rq_ready();
    expect_joined();
}
END_TEST

START_TEST(a_user_names_no_queue_of_another_user)
{
    struct prm_sqc sqc[1] = {0};
    struct prm_rqc rqc[1] = {0};
    uint32_t rq, sq, kernel_rq = new_rq(0), kernel_sq = new_sq(0);

    ck_assert_int_eq(try_rq(0, RIG_USER, LOG_DATA, LOG_PACKETS, &rq), SYN_OK);
    ck_assert_int_eq(try_sq(0, RIG_USER, LOG_DATA, LOG_PACKETS, &sq), SYN_OK);
    PRM_SET(sqc, sqc, state, PRM_SQC_STATE_RDY);
    PRM_SET(sqc, sqc, hairpin_peer_rq, kernel_rq);
    ck_assert_int_eq(eth_sq_modify(hca_of(0), RIG_USER, sq, PRM_SQC_STATE_RST, 0, sqc),
                     SYN_BAD_UID);
    PRM_SET(sqc, sqc, hairpin_peer_rq, rq);
    ck_assert_int_eq(eth_sq_modify(hca_of(0), RIG_USER, sq, PRM_SQC_STATE_RST, 0, sqc), SYN_OK);
    PRM_SET(rqc, rqc, state, PRM_RQC_STATE_RDY);
    PRM_SET(rqc, rqc, hairpin_peer_sq, kernel_sq);
    ck_assert_int_eq(eth_rq_modify(hca_of(0), RIG_USER, rq, PRM_RQC_STATE_RST, 0, rqc),
                     SYN_BAD_UID);
    PRM_SET(rqc, rqc, hairpin_peer_sq, sq);
    ck_assert_int_eq(eth_rq_modify(hca_of(0), RIG_USER, rq, PRM_RQC_STATE_RST, 0, rqc), SYN_OK);
}
END_TEST

/* A hairpin queue belongs to no page of doorbells. */
START_TEST(no_doorbell_reaches_a_hairpin_queue)
{
    ck_assert_uint_eq(eth_sq_sender.uar(obj_find(&hca_of(1)->qpns, sqn)), UINT32_MAX);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("hairpin");
    TCase *tc = tcase_create("pair");

    tcase_add_checked_fixture(tc, setup_pair, teardown);
    tcase_add_test(tc, frames_of_the_rq_leave_by_the_sq_of_another_function);
    tcase_add_test(tc, frames_leave_unchanged_in_their_order_for_ever);
    tcase_add_test(tc, a_short_frame_is_padded);
    tcase_add_test(tc, a_vlan_tag_stays_in_the_frame);
    tcase_add_test(tc, a_frame_beyond_the_number_is_dropped_and_counted);
    tcase_add_test(tc, a_frame_beyond_the_bytes_is_dropped_and_counted);
    tcase_add_test(tc, frames_wait_for_credit_of_the_cable);
    tcase_add_loop_test(tc, the_end_of_a_pair_drops_and_counts_its_frames, 0,
                        G_N_ELEMENTS(endings));
    tcase_add_test(tc, a_pair_that_joins_again_begins_empty);
    tcase_add_test(tc, a_restart_of_the_function_of_the_rq_leaves_the_sq_alone);
    tcase_add_test(tc, a_query_tells_the_peer_of_an_rq);
    tcase_add_test(tc, rules_for_sent_frames_see_what_a_hairpin_sends);
    tcase_add_test(tc, register_b_of_the_rq_is_register_a_of_the_sq);
    tcase_add_test(tc, a_frame_that_rules_change_waits_for_credit_of_its_new_way);
    tcase_add_test(tc, a_loop_through_two_functions_ends_each_turn);
    tcase_add_test(tc, no_doorbell_reaches_a_hairpin_queue);
    suite_add_tcase(suite, tc);

    tc = tcase_create("queues");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, both_queues_may_be_of_one_function);
    tcase_add_test(tc, queues_join_when_both_are_ready_in_either_order);
    tcase_add_test(tc, a_queue_joins_only_on_its_way_from_reset_to_ready);
    tcase_add_test(tc, the_size_of_the_sq_does_not_matter);
    tcase_add_test(tc, either_queue_may_end_before_the_other);
    tcase_add_test(tc, a_queue_with_the_number_of_an_old_peer_is_not_joined);
    tcase_add_test(tc, an_rq_without_a_ready_peer_drops_and_counts);
    tcase_add_test(tc, queues_that_do_not_name_each_other_do_not_join);
    tcase_add_test(tc, a_peer_is_named_by_its_function_too);
    tcase_add_test(tc, an_rq_names_the_function_of_its_peer_too);
    tcase_add_test(tc, a_loop_leaves_room_for_time_to_pass);
    tcase_add_test(tc, a_group_frame_leaves_once);
    tcase_add_test(tc, sizes_are_within_the_capabilities);
    tcase_add_test(tc, a_generation_without_hairpin_refuses_the_queues);
    tcase_add_test(tc, a_function_has_as_many_hairpin_queues_as_it_says);
    tcase_add_test(tc, memory_for_the_frames_is_paid_for);
    tcase_add_test(tc, a_peer_must_be_a_hairpin_queue_of_a_function_of_the_card);
    tcase_add_test(tc, a_user_names_no_queue_of_another_user);
    suite_add_tcase(suite, tc);
    return suite;
}
