/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests the lines of the trace about Ethernet frames (docs/reference/trace.md), word for word: WQEs
 * of send and receive queues, and the way of a frame through flow tables.
 */
#include <check.h>
#include <string.h>
#include "model/steering/steering.h"
#include "tests/unit/eth_bench.h"
#include "tests/unit/suite.h"

#define MSS 500

static struct bench *b;
static struct bench_queue sq;
static struct hca_host_ops traced_ops;
static GString *said;
static uint8_t packet[30000];

static void note_trace(void *host, enum hca_log_level level, const char *line)
{
    if (level == HCA_LOG_TRACE) {
        g_string_append_printf(said, "%s\n", line);
    }
}

static void setup(void)
{
    b = bench_new();
    b->table_type = PRM_FLOW_TABLE_TYPE_NIC_TX;
    bench_sq_new(b, b->tisn, &sq);
    said = g_string_new(NULL);
    traced_ops = *b->rig.hca.ops;
    traced_ops.log = note_trace;
    b->rig.hca.ops = &traced_ops;
    b->rig.hca.tracing = HCA_TRACES_TEXT;
}

static void teardown(void)
{
    bench_free(b);
    g_string_free(said, true);
}

static unsigned count_said(const char *what)
{
    unsigned n = 0;

    for (const char *at = said->str; (at = strstr(at, what)); at++) {
        n++;
    }
    return n;
}

/* Makes a table of one entry, which takes all frames; flow_tag, actions and destinations are those
 * of fte. Returns the table. */
static uint32_t rule(unsigned level, const struct bench_fte *fte)
{
    struct bench_fte all = *fte;

    all.table = bench_table(b, level, 0);
    all.group = bench_group(b, all.table, 0, 0, NULL);
    ck_assert_int_eq(bench_fte_set(b, &all), SYN_OK);
    return all.table;
}

static void set_root(uint32_t table)
{
    ck_assert_int_eq(flow_table_set_root(&b->rig.hca, b->table_type, table, true), SYN_OK);
}

static uint32_t counter_new(void)
{
    uint32_t id;

    ck_assert_int_eq(flow_counter_alloc(&b->rig.hca, 0, 1, &id), SYN_OK);
    return id;
}

START_TEST(a_sent_frame_is_traced_from_wqe_to_cable)
{
    struct bench_pkt pkt = {.dmac = bench_peer_mac, .ip_version = 4, .proto = 17, .payload = 100};
    struct bench_wr wr = {.opcode = PRM_WQE_OPCODE_SEND,
                          .cs_flags = CS_L3,
                          .hdr = packet,
                          .hdr_len = bench_build(packet, &pkt)};
    uint32_t last =
        rule(5, &(struct bench_fte){.action = PRM_FLOW_ACTION_ALLOW | PRM_FLOW_ACTION_COUNT,
                                    .counters = {counter_new()},
                                    .num_counters = 1});
    uint32_t first =
        rule(1, &(struct bench_fte){.dests = {{PRM_FLOW_DESTINATION_TYPE_FLOW_TABLE, last}},
                                    .num_dests = 1});
    g_autofree char *lines = NULL;

    set_root(first);
    bench_send(&sq, &wr);
    lines = g_strdup_printf(
        "sq 0x%x: send wqe 0 SEND, 142 bytes: ce=ALWAYS eth{l3_csum=1 inline_hdr_sz=0x8e}\n"
        "NIC_TX table 0x%x: entry 0 of group 1: FWD_DEST to table 0x%x\n"
        "NIC_TX table 0x%x: entry 0 of group 1: ALLOW COUNT\n"
        "-> %02x:%02x:%02x:%02x:%02x:%02x ethertype 0x0800, 142 bytes\n"
        "cq 0x%x: cqe REQ SEND qp 0x%x wqe 0\n",
        sq.num, first, last, last, bench_peer_mac[0], bench_peer_mac[1], bench_peer_mac[2],
        bench_peer_mac[3], bench_peer_mac[4], bench_peer_mac[5], sq.cqn, sq.num);
    ck_assert_str_eq(said->str, lines);
}
END_TEST

START_TEST(a_received_frame_is_traced_from_cable_to_cqe)
{
    struct bench_pkt pkt = {.ip_version = 4, .proto = 17, .payload = 100};
    struct bench_queue rq;
    uint32_t tir, second, first;
    g_autofree char *lines = NULL;

    b->table_type = 0;
    bench_rq_new(b, NULL, &rq);
    tir = bench_direct_tir(b, rq.num);
    second = rule(5, &(struct bench_fte){.flow_tag = 7,
                                         .dests = {{PRM_FLOW_DESTINATION_TYPE_TIR, tir}},
                                         .num_dests = 1});
    first = bench_table(b, 1, 0); /* without entries */
    {
        struct prm_flow_table_context ctx[1] = {0};

        PRM_SET(flow_table_context, ctx, table_miss_action, PRM_FLOW_TABLE_MISS_ACTION_FWD);
        PRM_SET(flow_table_context, ctx, table_miss_id, second);
        ck_assert_int_eq(flow_table_modify(&b->rig.hca, 0, 0, first, 1, ctx), SYN_OK);
    }
    set_root(first);
    bench_post_recv(&rq, bench_mem(b, NULL, BENCH_RX_SIZE), BENCH_RX_SIZE);
    bench_rx(b, packet, bench_build(packet, &pkt));
    lines = g_strdup_printf("NIC_RX table 0x%x: no entry matches: to table 0x%x\n"
                            "NIC_RX table 0x%x: entry 0 of group 1: FWD_DEST to TIR 0x%x\n"
                            "rq 0x%x: receive wqe 0, 142 bytes\n"
                            "cq 0x%x: cqe RESP_SEND ",
                            first, second, second, tir, rq.num, rq.cqn);
    ck_assert_msg(strstr(said->str, lines), "not '%s' but '%s'", lines, said->str);
}
END_TEST

/* The cable holds 16 frames, so a message of 25 segments waits for credit, and the send queue reads
 * its WQE several times. */
START_TEST(a_wqe_that_waits_is_traced_once)
{
    struct bench_pkt pkt = {.dmac = bench_peer_mac,
                            .ip_version = 4,
                            .proto = 6,
                            .tcp_flags = 0x10,
                            .payload = 25 * MSS};
    size_t headers = bench_headers(&pkt);
    struct bench_wr wr = {
        .opcode = PRM_WQE_OPCODE_TSO, .mss = MSS, .hdr = packet, .hdr_len = headers, .num_sge = 1};

    set_root(rule(0, &(struct bench_fte){.action = PRM_FLOW_ACTION_ALLOW}));
    bench_build(packet, &pkt);
    wr.sge[0] =
        (struct bench_sge){bench_mem(b, packet + headers, pkt.payload), (uint32_t)pkt.payload, 0};
    bench_send(&sq, &wr);
    bench_send(&sq, &wr);
    ck_assert_uint_eq(b->num_frames, 50);
    ck_assert_uint_eq(count_said(": send wqe "), 2);
    ck_assert_uint_eq(count_said(" TSO, 12554 bytes:"), 2);
    ck_assert_uint_eq(count_said("NIC_TX table "), 50);
    ck_assert_uint_eq(count_said("-> "), 50);
}
END_TEST

/* Levels are ignored, and two tables lead to each other. Each step is a line; there are as many as
 * a frame may go, and the stack has room for them. */
START_TEST(a_loop_of_tables_is_traced_to_its_end)
{
    struct bench_pkt pkt = {.dmac = bench_peer_mac, .ip_version = 4, .proto = 17, .payload = 100};
    struct bench_wr wr = {
        .opcode = PRM_WQE_OPCODE_SEND, .hdr = packet, .hdr_len = bench_build(packet, &pkt)};
    struct bench_fte fte = {.table = bench_table(b, 3, 0), .num_dests = 1, .any_level = true};

    fte.group = bench_group(b, fte.table, 0, 0, NULL);
    fte.dests[0] = (struct bench_dest){
        PRM_FLOW_DESTINATION_TYPE_FLOW_TABLE,
        rule(4, &(struct bench_fte){.dests = {{PRM_FLOW_DESTINATION_TYPE_FLOW_TABLE, fte.table}},
                                    .num_dests = 1,
                                    .any_level = true})};
    ck_assert_int_eq(bench_fte_set(b, &fte), SYN_OK);
    set_root(fte.table);
    bench_send(&sq, &wr);
    ck_assert_uint_eq(count_said("NIC_TX table "), STEERING_MAX_STEPS / 2);
    ck_assert_int_eq(flow_entry_delete(&b->rig.hca, 0, b->table_type, fte.table, 0), SYN_OK);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("eth_trace");
    TCase *tcase = tcase_create("eth_trace");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, a_sent_frame_is_traced_from_wqe_to_cable);
    tcase_add_test(tcase, a_received_frame_is_traced_from_cable_to_cqe);
    tcase_add_test(tcase, a_wqe_that_waits_is_traced_once);
    tcase_add_test(tcase, a_loop_of_tables_is_traced_to_its_end);
    suite_add_tcase(suite, tcase);
    return suite;
}
