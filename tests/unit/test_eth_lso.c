/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests large send: one WQE becomes many frames. */
#include <check.h>
#include <string.h>
#include "model/eth/eth_queue.h"
#include "tests/unit/eth_bench.h"
#include "tests/unit/suite.h"

#define FIN   0x01
#define PSH   0x08
#define ACK   0x10
#define ECE   0x40
#define CWR   0x80
#define MSS   500
#define LEAST 60 /* bytes of a frame without its FCS (IEEE 802.3 4.2.3.3) */

static struct bench *b;
static struct bench_queue sq;
static uint8_t message[8192];

static void setup(void)
{
    b = bench_new();
    bench_sq_new(b, b->tisn, &sq);
}

static void teardown(void)
{
    bench_free(b);
}

static struct bench_pkt packet(uint8_t version, uint8_t proto, size_t payload)
{
    return (struct bench_pkt){
        .dmac = bench_peer_mac,
        .ip_version = version,
        .proto = proto,
        .src = {10, 0, 0, 1},
        .dst = {10, 0, 0, 2},
        .sport = 1111,
        .dport = 2222,
        .tcp_flags = ACK | PSH | FIN | CWR | ECE,
        .seq = 0xffffff00, /* wraps within the message */
        .id = 0xfffe,      /* so does this */
        .payload = payload,
    };
}

/* Returns the message's WQE: all headers inline, the payload in two segments. */
static struct bench_wr wr_of(const struct bench_pkt *pkt)
{
    size_t headers = bench_headers(pkt), half = pkt->payload / 2 + 7;
    struct bench_wr wr = {
        .opcode = PRM_WQE_OPCODE_TSO,
        .mss = MSS,
        .cs_flags = CS_L3 | CS_L4,
        .hdr = message,
        .hdr_len = headers,
        .num_sge = 2,
    };

    bench_build(message, pkt);
    wr.sge[0] = (struct bench_sge){bench_mem(b, message + headers, half), (uint32_t)half, 0};
    wr.sge[1] = (struct bench_sge){bench_mem(b, message + headers + half, pkt->payload - half),
                                   (uint32_t)(pkt->payload - half), 0};
    return wr;
}

/* Checks that the sent frames are exactly the message's segments. */
static void expect_segments(const struct bench_pkt *pkt)
{
    size_t headers = bench_headers(pkt), done = 0;
    size_t l3 = pkt->vlan ? 18 : 14, l4 = l3 + (pkt->ip_version == 4 ? 20 : 40);

    for (unsigned i = 0; done < pkt->payload; i++) {
        size_t n = MIN(MSS, pkt->payload - done);
        const uint8_t *frame = b->frames[i].data;
        bool last = done + n == pkt->payload;
        uint8_t flags = pkt->tcp_flags;

        ck_assert_uint_lt(i, b->num_frames);
        ck_assert_uint_eq(b->frames[i].len, MAX(headers + n, LEAST));
        for (size_t at = headers + n; at < LEAST; at++) { /* the padding */
            ck_assert_uint_eq(frame[at], 0);
        }
        ck_assert_mem_eq(frame, message, l3);
        ck_assert_mem_eq(frame + headers, message + headers + done, n);
        ck_assert(bench_sums_ok(frame, headers + n));
        if (pkt->ip_version == 4) {
            ck_assert_uint_eq(prm_load16(frame + l3 + 2), headers - l3 + n);
            ck_assert_uint_eq(prm_load16(frame + l3 + 4), (uint16_t)(pkt->id + i));
        } else {
            ck_assert_uint_eq(prm_load16(frame + l3 + 4), headers - l4 + n);
        }
        if (pkt->proto == 6) {
            flags &= (uint8_t) ~(last ? 0 : FIN | PSH);
            flags &= (uint8_t) ~(i ? CWR : 0); /* RFC 3168 6.1.2: once */
            ck_assert_uint_eq(prm_load32(frame + l4 + 4), (uint32_t)(pkt->seq + done));
            ck_assert_uint_eq(frame[l4 + 13], flags);
        } else {
            ck_assert_uint_eq(prm_load16(frame + l4 + 4), 8 + n);
        }
        done += n;
        ck_assert(!last || b->num_frames == i + 1);
    }
}

START_TEST(a_message_becomes_segments)
{
    static const size_t payloads[] = {3 * MSS, 3 * MSS + 1, MSS + MSS / 2, MSS, 20};
    uint8_t versions[] = {4, 6}, protos[] = {6, 17};
    struct bench_pkt pkt = packet(versions[_i & 1], protos[_i >> 1 & 1], 0);

    pkt.vlan = _i & 4;
    pkt.tci = 0x3005;
    for (unsigned i = 0; i < G_N_ELEMENTS(payloads); i++) {
        uint16_t at = sq.pi;
        struct bench_wr wr;
        const struct prm_cqe64 *cqe;

        pkt.payload = payloads[i];
        b->num_frames = 0;
        wr = wr_of(&pkt);
        bench_send(&sq, &wr);
        expect_segments(&pkt);
        cqe = bench_cqe(&sq);
        ck_assert_ptr_nonnull(cqe);
        ck_assert_uint_eq(PRM_GET(cqe64, cqe, opcode), PRM_CQE_OPCODE_REQ);
        ck_assert_uint_eq(PRM_GET(cqe64, cqe, send_wqe_opcode), PRM_WQE_OPCODE_TSO);
        ck_assert_uint_eq(PRM_GET(cqe64, cqe, wqe_counter), at);
        bench_expect_none(&sq);
    }
}
END_TEST

/* The cable holds 16 frames: a message of 25 continues where it stopped. */
START_TEST(a_message_that_finds_the_wire_full_goes_on_later)
{
    struct bench_pkt pkt = packet(4, 6, MSS * 14 + 3);
    struct bench_wr wr = wr_of(&pkt);

    for (unsigned i = 0; i < 10; i++) {
        ck_assert_ptr_nonnull(wire_tx_reserve(b->wire, 60));
        wire_tx_commit(b->wire, 60);
    }
    bench_write_wqe(&sq, &wr);
    bench_ring_sq(&sq);
    rig_run(&b->rig);
    bench_expect_none(&sq);
    ck_assert_uint_eq(wire_poll(b->far, 10), 10);
    b->num_frames = 0;
    bench_run(b);
    expect_segments(&pkt);
    bench_expect(&sq, PRM_CQE_OPCODE_REQ, 0, 0);
}
END_TEST

START_TEST(a_message_cut_by_reset_is_forgotten)
{
    struct bench_pkt pkt = packet(4, 6, MSS * 14);
    struct bench_wr wr = wr_of(&pkt);

    for (unsigned i = 0; i < 10; i++) {
        ck_assert_ptr_nonnull(wire_tx_reserve(b->wire, 60));
        wire_tx_commit(b->wire, 60);
    }
    bench_write_wqe(&sq, &wr);
    bench_ring_sq(&sq);
    rig_run(&b->rig);
    ck_assert_int_eq(bench_sq_move(&sq, PRM_SQC_STATE_RDY, PRM_SQC_STATE_RST), SYN_OK);
    ck_assert_int_eq(bench_sq_move(&sq, PRM_SQC_STATE_RST, PRM_SQC_STATE_RDY), SYN_OK);
    sq.pi = 0;
    bench_run(b);
    ck_assert_uint_eq(b->num_frames, 16);
    b->num_frames = 0;
    bench_send(&sq, &wr);
    expect_segments(&pkt);
}
END_TEST

static void expect_refused(const struct bench_wr *wr)
{
    bench_expect_failure(&sq, wr, PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR, 0);
}

START_TEST(headers_that_make_no_sense_are_refused)
{
    struct bench_pkt pkt = packet(4, 6, 2000);
    struct bench_wr good = wr_of(&pkt), wr;

    wr = good;
    wr.mss = 0;
    expect_refused(&wr);
    wr = good;
    wr.mss = 0x3fff; /* no frame is that long */
    expect_refused(&wr);
    for (size_t len = 0; len < 54; len++) { /* headers cut short */
        wr = good;
        wr.hdr_len = len;
        expect_refused(&wr);
    }
    wr = good;
    wr.hdr_len = 55; /* one byte of payload among the headers */
    expect_refused(&wr);
    wr = good;
    wr.insert_vlan = true; /* leaves no room for inline headers */
    expect_refused(&wr);
    prm_store16(message + 12, 0x0806);
    expect_refused(&good);
    prm_store16(message + 12, 0x0800);
    message[23] = 1; /* ICMP */
    expect_refused(&good);
    message[23] = 6;
    message[20] = 0x20; /* a fragment */
    expect_refused(&good);
    message[20] = 0;
    message[14 + 20 + 12] = 0xf0; /* a TCP header of 60 bytes, of which 20 are there */
    expect_refused(&good);
    message[14 + 20 + 12] = 0x50;
    bench_send(&sq, &good);
    expect_segments(&pkt);
}
END_TEST

START_TEST(payload_out_of_reach_fails_the_message)
{
    struct bench_pkt pkt = packet(4, 6, 2000);
    struct bench_wr wr = wr_of(&pkt);

    wr.sge[1].key = 0x123456;
    bench_send(&sq, &wr);
    ck_assert_uint_eq(b->num_frames, 2); /* the WQE before it was sent */
    bench_expect(&sq, PRM_CQE_OPCODE_REQ_ERR, PRM_CQE_SYNDROME_LOCAL_PROT_ERR, 0);
}
END_TEST

/* max_lso_cap is 18: longer messages are an error of the driver. They must not keep the device busy
 * with the billions of segments that four segments of 2 GiB with an mss of 1 would be. */
START_TEST(messages_longer_than_reported_are_refused)
{
    struct bench_pkt pkt = packet(4, 6, 1000);
    struct bench_wr wr = wr_of(&pkt);

    wr.mss = 1;
    wr.num_sge = 4;
    for (unsigned i = 0; i < 4; i++) {
        wr.sge[i] = (struct bench_sge){FAKE_HOST_BASE, 0x7fffffff, 0};
    }
    port_set_wire(&b->rig.hca, NULL); /* frames vanish: no back-pressure stops it */
    expect_refused(&wr);
}
END_TEST

/* A long message does not delay others: it is sent in pieces. */
START_TEST(a_long_message_leaves_others_their_turn)
{
    struct bench_pkt pkt = packet(4, 6, 1000);
    struct bench_wr wr = wr_of(&pkt);
    unsigned steps = 0;

    wr.mss = 1;
    wr.num_sge = 1;
    wr.sge[0] = (struct bench_sge){FAKE_HOST_BASE, 1u << 16, 0};
    port_set_wire(&b->rig.hca, NULL);
    bench_write_wqe(&sq, &wr);
    bench_ring_sq(&sq);
    while (hca_run(&b->rig.hca, 64)) {
        steps++;
    }
    ck_assert_uint_ge(steps, (1u << 16) / 64 - 1);
    bench_expect(&sq, PRM_CQE_OPCODE_REQ, 0, 0);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("eth_lso");
    TCase *tcase = tcase_create("eth_lso");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, a_message_becomes_segments, 0, 8);
    tcase_add_test(tcase, a_message_that_finds_the_wire_full_goes_on_later);
    tcase_add_test(tcase, a_message_cut_by_reset_is_forgotten);
    tcase_add_test(tcase, headers_that_make_no_sense_are_refused);
    tcase_add_test(tcase, payload_out_of_reach_fails_the_message);
    tcase_add_test(tcase, messages_longer_than_reported_are_refused);
    tcase_add_test(tcase, a_long_message_leaves_others_their_turn);
    suite_add_tcase(suite, tcase);
    return suite;
}
