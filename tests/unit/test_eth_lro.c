/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests large receive offload. A merged packet is completed as the driver does it
 * (mlx5e_lro_update_hdr() of en_rx.c), and must then be a right TCP packet.
 */
#include <check.h>
#include <string.h>
#include "model/eth/eth_lro.h"
#include "model/eth/eth_queue.h"
#include "model/eth/tir.h"
#include "tests/unit/eth_bench.h"
#include "tests/unit/suite.h"

enum {
    ROOM = 1 << 17, /* of a receive WQE */
    PERIOD_US = 32,
    PERIOD = PERIOD_US * 1000,
    MOST = 255, /* in 256 bytes */
    IPV4_HEADERS = 14 + 20 + 20,
};

static struct bench *b;
static struct bench_queue rq;
static uint32_t tirn;
static uint64_t memory[64];
static unsigned posted, taken;

static enum syn set_lro(uint32_t mask, uint32_t most)
{
    struct prm_modify_tir_bitmask bits[1] = {0};
    struct prm_tirc tirc[1] = {0};

    PRM_SET(modify_tir_bitmask, bits, packet_merge, 1);
    PRM_SET(tirc, tirc, packet_merge_mask, mask);
    PRM_SET(tirc, tirc, lro_max_ip_payload_size, most);
    PRM_SET(tirc, tirc, lro_timeout_period_usecs, PERIOD_US);
    return tir_modify(&b->rig.hca, 0, tirn, bits, tirc);
}

static void post(unsigned n)
{
    while (n--) {
        memory[posted] = bench_mem(b, NULL, ROOM / 16);
        bench_post_recv(&rq, memory[posted++], ROOM / 16);
    }
}

static void setup(void)
{
    b = bench_new();
    posted = taken = 0;
    bench_rq_new_sized(b, NULL, 6, &rq);
    tirn = bench_direct_tir(b, rq.num);
    bench_catch_all(b, tirn);
    ck_assert_int_eq(set_lro(3, MOST), SYN_OK);
    post(32);
}

static void teardown(void)
{
    bench_free(b);
}

static struct bench_pkt segment(uint32_t seq, size_t payload)
{
    return (struct bench_pkt){
        .ip_version = 4,
        .proto = 6,
        .src = {10, 0, 0, 2},
        .dst = {10, 0, 0, 1},
        .sport = 1111,
        .dport = 2222,
        .tcp_flags = 0x10,
        .seq = seq,
        .payload = payload,
    };
}

static void receive(const struct bench_pkt *pkt)
{
    uint8_t frame[2048];

    bench_rx(b, frame, bench_build(frame, pkt));
}

static void receive_seq(uint32_t seq, size_t payload, uint8_t flags)
{
    struct bench_pkt pkt = segment(seq, payload);

    pkt.tcp_flags = flags;
    receive(&pkt);
}

/* Returns the next packet, as the driver completes it; *len is its length. */
static uint8_t *complete(unsigned segments, size_t *len)
{
    const struct prm_cqe64 *cqe = bench_cqe(&rq);
    uint8_t *frame, *ip, *tcp;
    bool ipv4;

    ck_assert_ptr_nonnull(cqe);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, opcode), PRM_CQE_OPCODE_RESP_SEND);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, lro_num_seg), segments > 1 ? segments : 0);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, srqn), BENCH_RQ_INDEX);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, l3_ok), 1);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, l4_ok), 1);
    *len = PRM_GET(cqe64, cqe, byte_cnt);
    frame = fake_host_ptr(&b->rig.host, memory[taken++], ROOM / 16);
    if (segments <= 1) {
        return frame;
    }
    ip = frame + 14;
    ipv4 = ip[0] >> 4 == 4;
    tcp = ip + (ipv4 ? 20 : 40);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, l4_hdr_type), PRM_CQE_L4_HDR_TYPE_TCP_ACK_AND_DATA);
    if (ipv4) {
        prm_store16(ip + 2, *len - 14);
        ip[8] = (uint8_t)PRM_GET(cqe64, cqe, lro_min_ttl);
        prm_store16(ip + 10, 0);
        prm_store16(ip + 10, (uint16_t)~bench_sum(ip, 20, 0));
    } else {
        prm_store16(ip + 4, *len - 54);
        ip[7] = (uint8_t)PRM_GET(cqe64, cqe, lro_min_ttl);
    }
    prm_store32(tcp + 8, PRM_GET(cqe64, cqe, lro_ack_seq_num));
    prm_store16(tcp + 14, PRM_GET(cqe64, cqe, lro_tcp_win));
    tcp[13] =
        (uint8_t)((tcp[13] & ~8) | (PRM_GET(cqe64, cqe, lro_tcppsh_abort_dupack) >> 6 & 1) << 3);
    prm_store16(tcp + 16, 0);
    /* tcp_v4_check(): pseudo header, TCP header, and the sum of the CQE for the payload */
    prm_store16(tcp + 16, (uint16_t)~bench_sum(
                              ipv4 ? ip + 12 : ip + 8, ipv4 ? 8 : 32,
                              bench_sum(tcp, (tcp[12] >> 4) * 4u, PRM_GET(cqe64, cqe, check_sum)) +
                                  6 + (uint32_t)(frame + *len - tcp)));
    ck_assert(bench_sums_ok(frame, *len));
    return frame;
}

static void expect(unsigned segments, size_t payload)
{
    size_t len;

    complete(segments, &len);
    ck_assert_uint_eq(len, IPV4_HEADERS + payload);
}

static uint32_t seq_of(const uint8_t *frame)
{
    return (uint32_t)prm_load32(frame + 14 + 20 + 4);
}

/* Payloads of odd lengths come to odd places, where the halves of a sum change. */
START_TEST(segments_in_order_become_one_packet)
{
    static const size_t lens[] = {1000, 333, 1001, 1, 500};
    struct bench_pkt pkt = segment(5000, 0);
    uint8_t sent[2048], joined[4096], *frame;
    size_t len, n = 0, headers;

    if (_i) {
        pkt.ip_version = 6;
    }
    headers = bench_headers(&pkt);
    for (unsigned i = 0; i < G_N_ELEMENTS(lens); i++) {
        pkt.payload = lens[i];
        pkt.tcp_flags = i + 1 == G_N_ELEMENTS(lens) ? 0x18 : 0x10;
        bench_expect_none(&rq);
        len = bench_build(sent, &pkt);
        bench_rx(b, sent, len);
        memcpy(joined + n, sent + headers, lens[i]);
        n += lens[i];
        pkt.seq += (uint32_t)lens[i];
    }
    frame = complete(G_N_ELEMENTS(lens), &len);
    ck_assert_uint_eq(len, headers + n);
    ck_assert_mem_eq(frame + headers, joined, n);
    ck_assert_uint_eq(frame[headers - 20 + 13], 0x18); /* PSH of the last segment */
    bench_expect_none(&rq);
    ck_assert_uint_eq(b->rig.hca.timers->len, 0);
}
END_TEST

START_TEST(a_session_ends_after_its_period)
{
    receive_seq(1, 100, 0x10);
    rig_advance(&b->rig, PERIOD - 1);
    receive_seq(101, 100, 0x10);
    bench_expect_none(&rq);
    rig_advance(&b->rig, 1);
    expect(2, 200);
    receive_seq(201, 100, 0x10);
    rig_advance(&b->rig, PERIOD);
    expect(1, 100); /* an ordinary packet */
}
END_TEST

/* The packet that does not continue the session comes behind it. */
START_TEST(what_does_not_continue_a_session_ends_it)
{
    static const struct {
        uint32_t seq;
        uint8_t flags;
        size_t payload;
        uint16_t no_csum;
    } others[] = {
        {102, 0x10, 100, 0}, /* a gap */
        {1, 0x10, 100, 0},   /* once more */
        {101, 0x11, 100, 0}, /* FIN */
        {101, 0x14, 0, 0},   /* RST */
        {101, 0x30, 100, 0}, /* URG */
        {101, 0x10, 0, 0},   /* no data */
        {101, 0x50, 100, 0}, /* ECE */
        {101, 0x10, 100, 1}, /* a wrong checksum */
    };
    struct bench_pkt pkt = segment(others[_i].seq, others[_i].payload);
    const struct prm_cqe64 *cqe;
    uint8_t *frame;

    pkt.tcp_flags = others[_i].flags;
    pkt.no_csum = others[_i].no_csum;
    receive_seq(1, 60, 0x10);
    receive_seq(61, 40, 0x10);
    receive(&pkt);
    expect(2, 100);
    rig_advance(&b->rig, PERIOD);
    cqe = bench_cqe(&rq);
    ck_assert_ptr_nonnull(cqe);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, lro_num_seg), 0);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, l4_ok), !pkt.no_csum);
    frame = fake_host_ptr(&b->rig.host, memory[taken++], 2048);
    ck_assert_uint_eq(seq_of(frame), others[_i].seq);
    bench_expect_none(&rq);
}
END_TEST

START_TEST(connections_have_sessions_of_their_own)
{
    for (uint32_t i = 0; i < 3; i++) {
        for (uint16_t port = 0; port < 4; port++) {
            struct bench_pkt pkt = segment(i * 100, 100);

            pkt.sport = port;
            receive(&pkt);
        }
    }
    bench_expect_none(&rq);
    rig_advance(&b->rig, PERIOD);
    for (unsigned i = 0; i < 4; i++) {
        expect(3, 300);
    }
}
END_TEST

/* The oldest session makes room. */
START_TEST(sessions_are_bounded)
{
    size_t len;
    uint8_t *frame;

    for (uint16_t port = 0; port <= ETH_LRO_SESSIONS; port++) {
        struct bench_pkt pkt = segment(7, 100);

        pkt.sport = port;
        receive(&pkt);
        if (port < ETH_LRO_SESSIONS) {
            bench_expect_none(&rq);
        }
    }
    frame = complete(1, &len);
    ck_assert_uint_eq(prm_load16(frame + 34), 0);
    bench_expect_none(&rq);
}
END_TEST

/* lro_max_ip_payload_size counts the TCP header, too. */
START_TEST(a_packet_has_a_greatest_length)
{
    ck_assert_int_eq(set_lro(1, 2), SYN_OK); /* 512 bytes */
    receive_seq(0, 246, 0x10);
    receive_seq(246, 246, 0x10);
    bench_expect_none(&rq);
    receive_seq(492, 1, 0x10);
    expect(2, 492);
    rig_advance(&b->rig, PERIOD);
    expect(1, 1);
}
END_TEST

START_TEST(the_tirs_mask_says_which_protocols)
{
    struct bench_pkt v6 = segment(1, 100);
    uint32_t v6_too = _i;

    v6.ip_version = 6;
    ck_assert_int_eq(set_lro(1 | v6_too << 1, MOST), SYN_OK);
    receive(&v6);
    ck_assert_uint_eq(bench_cqe(&rq) != NULL, !v6_too);
    taken++;
    receive_seq(1, 100, 0x10);
    bench_expect_none(&rq);
    ck_assert_int_eq(set_lro(0, MOST), SYN_OK); /* MODIFY_TIR delivers what is held */
    ck_assert_ptr_nonnull(bench_cqe(&rq));
    ck_assert_ptr_null(b->rig.hca.lro);
    receive_seq(101, 100, 0x10);
    ck_assert_ptr_nonnull(bench_cqe(&rq));
    ck_assert_int_eq(set_lro(4, MOST), SYN_ETH_LRO); /* SHAMPO */
}
END_TEST

/* The least TTL, and the last acknowledgement and window, are those that software gets. */
START_TEST(the_cqe_has_what_the_headers_lack)
{
    uint8_t frame[2048];
    struct bench_pkt pkt = segment(0, 100);
    static const uint8_t ttls[] = {60, 40, 50};
    size_t len;

    for (uint32_t i = 0; i < 3; i++) {
        struct eth_info info;

        pkt.seq = i * 100;
        len = bench_build(frame, &pkt);
        ck_assert(eth_parse(frame, len, &info));
        frame[22] = ttls[i];
        prm_store32(frame + 34 + 8, 1000 + i);
        prm_store16(frame + 34 + 14, 500 - i);
        eth_csum_fill_ipv4(frame, &info);
        eth_csum_fill_l4(frame, &info);
        bench_rx(b, frame, len);
    }
    rig_advance(&b->rig, PERIOD);
    memcpy(frame, complete(3, &len), IPV4_HEADERS);
    ck_assert_uint_eq(frame[22], 40);
    ck_assert_uint_eq(prm_load32(frame + 34 + 8), 1002);
    ck_assert_uint_eq(prm_load16(frame + 34 + 14), 498);
}
END_TEST

/* What is held for a queue goes with the queue, and the timer with it. */
START_TEST(a_queue_that_ends_takes_its_sessions_along)
{
    receive_seq(1, 100, 0x10);
    switch (_i) {
    case 0:
        ck_assert_int_eq(bench_rq_move(&rq, PRM_RQC_STATE_RDY, PRM_RQC_STATE_ERR), SYN_OK);
        break;
    case 1:
        ck_assert_int_eq(bench_rq_move(&rq, PRM_RQC_STATE_RDY, PRM_RQC_STATE_RST), SYN_OK);
        break;
    default:
        hca_reset(&b->rig.hca);
        ck_assert_ptr_null(b->rig.hca.lro);
        break;
    }
    rig_advance(&b->rig, PERIOD);
    ck_assert_uint_eq(b->rig.hca.vport->counters.rx_no_steering, 0);
    if (_i < 2) {
        bench_expect_none(&rq);
    }
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("eth_lro");
    TCase *tcase = tcase_create("large receive offload");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, segments_in_order_become_one_packet, 0, 2);
    tcase_add_test(tcase, a_session_ends_after_its_period);
    tcase_add_loop_test(tcase, what_does_not_continue_a_session_ends_it, 0, 8);
    tcase_add_test(tcase, connections_have_sessions_of_their_own);
    tcase_add_test(tcase, sessions_are_bounded);
    tcase_add_test(tcase, a_packet_has_a_greatest_length);
    tcase_add_loop_test(tcase, the_tirs_mask_says_which_protocols, 0, 2);
    tcase_add_test(tcase, the_cqe_has_what_the_headers_lack);
    tcase_add_loop_test(tcase, a_queue_that_ends_takes_its_sessions_along, 0, 3);
    suite_add_tcase(suite, tcase);
    return suite;
}
