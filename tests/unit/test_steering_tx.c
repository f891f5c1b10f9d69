/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests rules for sent frames: the NIC transmit domain (driver: fs_core.c, egress_root_fs, whose
 * rules have the action ALLOW).
 */
#include <check.h>
#include <string.h>
#include "model/steering/steering.h"
#include "tests/unit/eth_bench.h"
#include "tests/unit/suite.h"

#define MSS 500

static struct bench *b;
static struct bench_queue sq, other;
static uint8_t packet[2048];

static void setup(void)
{
    b = bench_new();
    b->table_type = PRM_FLOW_TABLE_TYPE_NIC_TX;
    bench_sq_new(b, b->tisn, &sq);
    bench_sq_new(b, b->tisn, &other);
}

static void teardown(void)
{
    bench_free(b);
}

static uint32_t counter_new(void)
{
    uint32_t id;

    ck_assert_int_eq(flow_counter_alloc(&b->rig.hca, 0, 1, &id), SYN_OK);
    return id;
}

static uint64_t counted(uint32_t id)
{
    return flow_counter_find(&b->rig.hca, id)->packets;
}

/* Makes a table of one rule, for frames with these values under this mask; NULL: for all frames.
 * Returns the table. */
static uint32_t rule(unsigned level, const struct prm_fte_match_param *mask,
                     const struct prm_fte_match_param *value, uint8_t enable, uint16_t action,
                     uint32_t counter)
{
    static const struct prm_fte_match_param none[1];
    struct bench_fte fte = {.table = bench_table(b, level, 0),
                            .param = value,
                            .action = action | PRM_FLOW_ACTION_COUNT,
                            .counters = {counter},
                            .num_counters = 1};

    ck_assert_int_eq(bench_try_group(b, fte.table, enable, mask ? mask : none, &fte.group), SYN_OK);
    ck_assert_int_eq(bench_fte_set(b, &fte), SYN_OK);
    return fte.table;
}

static void set_root(uint32_t table)
{
    ck_assert_int_eq(flow_table_set_root(&b->rig.hca, b->table_type, table, true), SYN_OK);
}

/* Sends a packet, and returns how many frames came out. The WQE completes in any case. */
static unsigned sends(struct bench_queue *queue, uint32_t metadata)
{
    struct bench_pkt pkt = {.dmac = bench_peer_mac,
                            .ip_version = 4,
                            .proto = 17,
                            .sport = 1000,
                            .dport = 2000,
                            .payload = 100};
    struct bench_wr wr = {
        .opcode = PRM_WQE_OPCODE_SEND, .hdr = packet, .hdr_len = bench_build(packet, &pkt)};

    return bench_send_metadata(queue, &wr, metadata);
}

START_TEST(a_rule_drops_what_it_matches_and_the_rest_is_sent)
{
    struct prm_fte_match_param mask[1] = {0}, value[1] = {0};
    struct prm_fte_match_set_lyr_2_4 *outer = PRM_PTR(fte_match_param, mask, outer_headers);
    uint32_t counter = counter_new(), root;

    PRM_SET(fte_match_set_lyr_2_4, outer, udp_dport, 0xffff);
    outer = PRM_PTR(fte_match_param, value, outer_headers);
    PRM_SET(fte_match_set_lyr_2_4, outer, udp_dport, 2000);
    ck_assert_uint_eq(sends(&sq, 0), 1);
    root =
        rule(0, mask, value, 1 << PRM_MATCH_CRITERIA_OUTER_HEADERS, PRM_FLOW_ACTION_DROP, counter);
    ck_assert_uint_eq(sends(&sq, 0), 1); /* it is not the root yet */
    set_root(root);
    ck_assert_uint_eq(sends(&sq, 0), 0);
    ck_assert_uint_eq(counted(counter), 1);
    PRM_SET(fte_match_set_lyr_2_4, outer, udp_dport, 2001);
    set_root(
        rule(0, mask, value, 1 << PRM_MATCH_CRITERIA_OUTER_HEADERS, PRM_FLOW_ACTION_DROP, counter));
    ck_assert_uint_eq(sends(&sq, 0), 1); /* a miss goes on to the wire */
    ck_assert_uint_eq(counted(counter), 1);
}
END_TEST

START_TEST(an_allowed_frame_is_counted_and_sent)
{
    uint32_t counter = counter_new();

    set_root(rule(0, NULL, NULL, 0, PRM_FLOW_ACTION_ALLOW, counter));
    ck_assert_uint_eq(sends(&sq, 0), 1);
    ck_assert_uint_eq(sends(&other, 0), 1);
    ck_assert_uint_eq(counted(counter), 2);
    ck_assert_uint_eq(flow_counter_find(&b->rig.hca, counter)->bytes, 2 * 142);
    /* without a root, frames are sent uncounted */
    ck_assert_int_eq(flow_table_set_root(&b->rig.hca, b->table_type, 1, false), SYN_OK);
    ck_assert_uint_eq(sends(&sq, 0), 1);
    ck_assert_uint_eq(counted(counter), 2);
}
END_TEST

START_TEST(a_rule_knows_the_send_queue)
{
    struct prm_fte_match_param mask[1] = {0}, value[1] = {0};

    PRM_SET(fte_match_set_misc, PRM_PTR(fte_match_param, mask, misc_parameters), source_sqn,
            0xffffff);
    PRM_SET(fte_match_set_misc, PRM_PTR(fte_match_param, value, misc_parameters), source_sqn,
            other.num);
    set_root(rule(0, mask, value, 1 << PRM_MATCH_CRITERIA_MISC_PARAMETERS, PRM_FLOW_ACTION_DROP,
                  counter_new()));
    ck_assert_uint_eq(sends(&sq, 0), 1);
    ck_assert_uint_eq(sends(&other, 0), 0);
}
END_TEST

/* wqe_eth_seg.flow_table_metadata is register A. */
START_TEST(a_rule_knows_the_metadata_of_the_wqe)
{
    struct prm_fte_match_param mask[1] = {0}, value[1] = {0};

    PRM_SET(fte_match_set_misc2, PRM_PTR(fte_match_param, mask, misc_parameters_2), metadata_reg_a,
            0xffff0000);
    PRM_SET(fte_match_set_misc2, PRM_PTR(fte_match_param, value, misc_parameters_2), metadata_reg_a,
            0xcafe0000);
    set_root(rule(0, mask, value, 1 << PRM_MATCH_CRITERIA_MISC_PARAMETERS_2, PRM_FLOW_ACTION_DROP,
                  counter_new()));
    ck_assert_uint_eq(sends(&sq, 0xcafe1234), 0);
    ck_assert_uint_eq(sends(&sq, 0xcaff1234), 1);
}
END_TEST

START_TEST(a_rule_leads_to_another_table)
{
    uint32_t counter = counter_new();
    uint32_t next = rule(1, NULL, NULL, 0, PRM_FLOW_ACTION_DROP, counter);
    struct bench_fte fte = {.table = bench_table(b, 0, 0),
                            .dests = {{PRM_FLOW_DESTINATION_TYPE_FLOW_TABLE, next}},
                            .num_dests = 1};

    fte.group = bench_group(b, fte.table, 0, 0, NULL);
    ck_assert_int_eq(bench_fte_set(b, &fte), SYN_OK);
    set_root(fte.table);
    ck_assert_uint_eq(sends(&sq, 0), 0);
    ck_assert_uint_eq(counted(counter), 1);
}
END_TEST

/* A sent frame goes to no receive queue by its rules. */
START_TEST(a_rule_does_not_lead_to_a_tir)
{
    struct bench_queue rq;
    struct bench_fte fte = {.table = bench_table(b, 0, 0), .num_dests = 1};

    bench_rq_new(b, NULL, &rq);
    fte.dests[0] = (struct bench_dest){PRM_FLOW_DESTINATION_TYPE_TIR, bench_direct_tir(b, rq.num)};
    fte.group = bench_group(b, fte.table, 0, 0, NULL);
    ck_assert_int_eq(bench_fte_set(b, &fte), SYN_FTE_DEST);
}
END_TEST

/* The cable holds 16 frames. A message of 25 segments waits for credit on its way; each segment is
 * counted once. */
START_TEST(segments_that_wait_for_credit_are_counted_once)
{
    struct bench_pkt pkt = {.dmac = bench_peer_mac,
                            .ip_version = 4,
                            .proto = 6,
                            .tcp_flags = 0x10,
                            .payload = 25 * MSS};
    uint8_t message[25 * MSS + 100];
    size_t headers = bench_headers(&pkt);
    struct bench_wr wr = {
        .opcode = PRM_WQE_OPCODE_TSO, .mss = MSS, .hdr = message, .hdr_len = headers, .num_sge = 1};
    uint32_t counter = counter_new();

    set_root(rule(0, NULL, NULL, 0, PRM_FLOW_ACTION_ALLOW, counter));
    bench_build(message, &pkt);
    wr.sge[0] =
        (struct bench_sge){bench_mem(b, message + headers, pkt.payload), (uint32_t)pkt.payload, 0};
    bench_write_wqe(&sq, &wr);
    bench_ring_sq(&sq);
    rig_run(&b->rig);
    bench_expect_none(&sq);
    ck_assert_uint_eq(counted(counter), 16);
    bench_run(b);
    bench_expect(&sq, PRM_CQE_OPCODE_REQ, 0, 0);
    ck_assert_uint_eq(b->num_frames, 25);
    ck_assert_uint_eq(counted(counter), 25);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("steering_tx");
    TCase *tcase = tcase_create("steering_tx");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, a_rule_drops_what_it_matches_and_the_rest_is_sent);
    tcase_add_test(tcase, an_allowed_frame_is_counted_and_sent);
    tcase_add_test(tcase, a_rule_knows_the_send_queue);
    tcase_add_test(tcase, a_rule_knows_the_metadata_of_the_wqe);
    tcase_add_test(tcase, a_rule_leads_to_another_table);
    tcase_add_test(tcase, a_rule_does_not_lead_to_a_tir);
    tcase_add_test(tcase, segments_that_wait_for_credit_are_counted_once);
    suite_add_tcase(suite, tcase);
    return suite;
}
