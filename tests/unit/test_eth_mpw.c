/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests send WQEs of several packets (enhanced multi-packet send), and data that is in a WQE.
 */
#include <check.h>
#include <string.h>
#include "model/eth/eth_queue.h"
#include "tests/unit/eth_bench.h"
#include "tests/unit/suite.h"
#include "wire/bytes.h"

static struct bench *b;
static struct bench_queue sq;
static uint8_t packets[4][256];
static size_t lens[4];

static void setup(void)
{
    b = bench_new();
    b->multi_packet = true;
    bench_sq_new(b, b->tisn, &sq);
}

static void teardown(void)
{
    bench_free(b);
}

/* A WQE of four packets without checksums. The packets of which inline_mask has a bit are in the
 * WQE, the others in memory. */
static struct bench_wr four_packets(unsigned inline_mask)
{
    struct bench_wr wr = {
        .opcode = PRM_WQE_OPCODE_ENHANCED_MPSW, .cs_flags = CS_L3 | CS_L4, .num_sge = 4};

    for (unsigned i = 0; i < 4; i++) {
        struct bench_pkt pkt = {.dmac = bench_peer_mac,
                                .ip_version = i & 1 ? 6 : 4,
                                .proto = i & 2 ? 6 : 17,
                                .src = {10, 0, 0, 1},
                                .dst = {10, 0, 0, 2},
                                .tcp_flags = 0x10,
                                .no_csum = true,
                                .payload = 31 + 17 * i};

        lens[i] = bench_build(packets[i], &pkt);
        wr.sge[i].len = (uint32_t)lens[i];
        if (inline_mask >> i & 1) {
            wr.inline_data[i] = packets[i];
        } else {
            wr.sge[i].addr = bench_mem(b, packets[i], lens[i]);
        }
    }
    return wr;
}

/* A frame is the nth packet, with right checksums, and this tag if it is not 0. */
static void expect_packet(unsigned frame, unsigned n, uint32_t tag)
{
    uint8_t got[300];
    size_t len = b->frames[frame].len;

    ck_assert_uint_lt(frame, b->num_frames);
    memcpy(got, b->frames[frame].data, len);
    if (tag) {
        ck_assert_uint_eq(get32(got + 12), tag);
        memmove(got + 12, got + 16, len - 16);
        len -= 4;
    }
    ck_assert_uint_eq(len, lens[n]);
    ck_assert(bench_sums_ok(got, len));
    ck_assert_mem_eq(got + len - 31, packets[n] + len - 31, 31); /* payload */
    ck_assert_mem_eq(got, packets[n], 24);                       /* up to IPv4's checksum */
}

/* Each mixture of data in memory and in the WQE; one completion for all. */
START_TEST(a_wqe_of_packets_is_sent)
{
    struct bench_wr wr = four_packets((unsigned)_i);
    const struct prm_cqe64 *cqe;

    bench_send(&sq, &wr);
    ck_assert_uint_eq(b->num_frames, 4);
    for (unsigned i = 0; i < 4; i++) {
        expect_packet(i, i, 0);
    }
    cqe = bench_cqe(&sq);
    ck_assert_ptr_nonnull(cqe);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, send_wqe_opcode), PRM_WQE_OPCODE_ENHANCED_MPSW);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, wqe_counter), 0);
    bench_expect_none(&sq);
}
END_TEST

START_TEST(a_tag_is_inserted_into_each_packet)
{
    struct bench_wr wr = four_packets(5);

    for (int svlan = 0; svlan < 2; svlan++) {
        b->num_frames = 0;
        wr.insert_vlan = true;
        wr.svlan = svlan;
        wr.vlan_tci = 0x0fa7;
        bench_send(&sq, &wr);
        for (unsigned i = 0; i < 4; i++) {
            expect_packet(i, i, (svlan ? 0x88a80000 : 0x81000000) | 0x0fa7);
        }
        bench_expect(&sq, PRM_CQE_OPCODE_REQ, 0, (uint16_t)(svlan * (sq.pi / 2)));
    }
}
END_TEST

/* The wire has room for two of the four packets: the others follow, and none is sent twice. */
START_TEST(packets_that_find_the_wire_full_follow_later)
{
    struct bench_wr wr = four_packets(2);

    for (unsigned i = 0; i < 14; i++) {
        ck_assert_ptr_nonnull(wire_tx_reserve(b->wire, 60));
        wire_tx_commit(b->wire, 60);
    }
    bench_write_wqe(&sq, &wr);
    bench_ring_sq(&sq);
    rig_run(&b->rig);
    bench_expect_none(&sq);
    ck_assert_uint_eq(wire_poll(b->far, 14), 14);
    b->num_frames = 0;
    bench_run(b);
    ck_assert_uint_eq(b->num_frames, 4);
    for (unsigned i = 0; i < 4; i++) {
        expect_packet(i, i, 0);
    }
    bench_expect(&sq, PRM_CQE_OPCODE_REQ, 0, 0);
    bench_expect_none(&sq);
}
END_TEST

/* A turn may end between two packets. */
START_TEST(packets_leave_others_their_turn)
{
    struct bench_wr wr = four_packets(0);
    unsigned turns = 0;

    bench_write_wqe(&sq, &wr);
    bench_ring_sq(&sq);
    while (hca_run(&b->rig.hca, 1)) {
        turns++;
    }
    bench_run(b);
    ck_assert_uint_ge(turns, 3);
    ck_assert_uint_eq(b->num_frames, 4);
    bench_expect(&sq, PRM_CQE_OPCODE_REQ, 0, 0);
    bench_expect_none(&sq);
}
END_TEST

START_TEST(a_packet_that_cannot_be_sent_fails_the_wqe)
{
    struct bench_wr wr = four_packets(1);

    wr.sge[2].key = 0x123456;
    bench_expect_failure(&sq, &wr, PRM_CQE_SYNDROME_LOCAL_PROT_ERR, 2);
    wr = four_packets(1);
    wr.sge[1].len = 13; /* no Ethernet header */
    bench_expect_failure(&sq, &wr, PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR, 1);
    wr.sge[1].len = 0;
    bench_expect_failure(&sq, &wr, PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR, 1);
    wr.sge[1].len = WIRE_FRAME_MAX + 1;
    bench_expect_failure(&sq, &wr, PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR, 1);
    wr = four_packets(1);
    wr.num_sge = 0;
    bench_expect_failure(&sq, &wr, PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR, 0);
    wr = four_packets(0);
    wr.hdr = packets[0]; /* headers of all packets are no part of such a WQE */
    wr.hdr_len = 14;
    bench_expect_failure(&sq, &wr, PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR, 0);
    wr = four_packets(0);
    bench_send(&sq, &wr);
    bench_expect(&sq, PRM_CQE_OPCODE_REQ, 0, 0);
}
END_TEST

/* Data in a WQE must be whole there. */
START_TEST(inline_data_beyond_the_wqe_is_refused)
{
    uint8_t opcodes[] = {PRM_WQE_OPCODE_ENHANCED_MPSW, PRM_WQE_OPCODE_SEND};

    for (unsigned i = 0; i < G_N_ELEMENTS(opcodes); i++) {
        struct bench_wr wr = four_packets(15);
        void *ctrl;

        wr.opcode = opcodes[i];
        wr.num_sge = 1;
        ctrl = bench_write_wqe(&sq, &wr);
        PRM_SET(wqe_ctrl_seg, ctrl, ds, PRM_GET(wqe_ctrl_seg, ctrl, ds) - 1);
        b->num_frames = 0;
        bench_ring_sq(&sq);
        bench_run(b);
        bench_expect(&sq, PRM_CQE_OPCODE_REQ_ERR, PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR, 0);
        ck_assert_uint_eq(b->num_frames, 0);
        bench_sq_revive(&sq);
    }
}
END_TEST

/* mlx5e posts such WQEs to SQs that do not have allow_multi_pkt_send_wqe. */
START_TEST(an_sq_need_not_be_made_for_it)
{
    struct bench_wr wr = four_packets(0);

    b->multi_packet = false;
    bench_sq_new(b, b->tisn, &sq);
    bench_send(&sq, &wr);
    ck_assert_uint_eq(b->num_frames, 4);
}
END_TEST

START_TEST(a_generation_without_it_refuses_such_a_wqe)
{
    struct bench_wr wr = four_packets(0);

    b->rig.hca.limits.multi_packet = false;
    bench_expect_failure(&sq, &wr, PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR, 0);
}
END_TEST

/* A packet's pieces may be in memory, in the WQE, and in memory again. */
START_TEST(a_packet_may_be_partly_in_the_wqe)
{
    struct bench_wr wr = four_packets(0);
    size_t len = lens[0];

    for (size_t cut = 1; cut < 20; cut++) {
        uint16_t at = sq.pi;

        b->num_frames = 0;
        wr = (struct bench_wr){.opcode = PRM_WQE_OPCODE_SEND,
                               .hdr = packets[0],
                               .hdr_len = 14,
                               .num_sge = 4,
                               .cs_flags = CS_L3 | CS_L4};
        wr.sge[0] = (struct bench_sge){bench_mem(b, packets[0] + 14, cut), (uint32_t)cut, 0};
        wr.sge[1] = (struct bench_sge){0, 20, 0};
        wr.inline_data[1] = packets[0] + 14 + cut;
        wr.sge[2] = (struct bench_sge){0, 0, 0}; /* nothing */
        wr.inline_data[2] = packets[0];
        wr.sge[3] = (struct bench_sge){bench_mem(b, packets[0] + 34 + cut, len - 34 - cut),
                                       (uint32_t)(len - 34 - cut), 0};
        bench_send(&sq, &wr);
        ck_assert_uint_eq(b->num_frames, 1);
        expect_packet(0, 0, 0);
        bench_expect(&sq, PRM_CQE_OPCODE_REQ, 0, at);
    }
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("eth_mpw");
    TCase *tcase = tcase_create("eth_mpw");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, a_wqe_of_packets_is_sent, 0, 16);
    tcase_add_test(tcase, a_tag_is_inserted_into_each_packet);
    tcase_add_test(tcase, packets_that_find_the_wire_full_follow_later);
    tcase_add_test(tcase, packets_leave_others_their_turn);
    tcase_add_test(tcase, a_packet_that_cannot_be_sent_fails_the_wqe);
    tcase_add_test(tcase, inline_data_beyond_the_wqe_is_refused);
    tcase_add_test(tcase, an_sq_need_not_be_made_for_it);
    tcase_add_test(tcase, a_generation_without_it_refuses_such_a_wqe);
    tcase_add_test(tcase, a_packet_may_be_partly_in_the_wqe);
    suite_add_tcase(suite, tcase);
    return suite;
}
