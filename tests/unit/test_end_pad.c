/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests the padding of received messages to the end of a cache line (qpc.end_padding_mode): which
 * bytes behind a message become zero, and which never do. Each byte of the memory is compared.
 */
#include <string.h>
#include "tests/unit/rdma_bench.h"
#include "tests/unit/suite.h"

#define MTU  256
#define GRH  40
#define QKEY 0x11111111
#define ROOM 1024
#define OLD  0xee /* what memory had before */

static struct bench b;
static struct bench_qp qp;
static uint64_t mem;
static uint32_t all;
static uint8_t data[4 * MTU];

static void setup_qp(uint8_t st, bool pads)
{
    bench_init(&b);
    bench_qp_rts(
        &b,
        &(struct bench_qp_attr){.st = st, .qkey = st == PRM_QP_ST_UD ? QKEY : 0, .pads_end = pads},
        &qp);
    mem = fake_host_alloc(&b.host, 64 << 10, 4096);
    all = bench_mkey(&b, mem, 64 << 10, MEM_LOCAL_READ | MEM_LOCAL_WRITE | MEM_REMOTE_WRITE);
    memset(data, 0x5a, sizeof(data));
}

static void teardown(void)
{
    bench_clear(&b);
}

static uint8_t *fill(void)
{
    return memset(fake_host_ptr(&b.host, mem, ROOM), OLD, ROOM);
}

/* The first bytes are data, then come zeros up to the end of the padding, and then what was there.
 */
static void expect(size_t from, size_t len, size_t padded_to)
{
    const uint8_t *bytes = fake_host_ptr(&b.host, mem, ROOM);

    for (size_t i = 0; i < ROOM; i++) {
        if (i < from || i >= padded_to) {
            ck_assert_msg(bytes[i] == OLD, "byte %zu was written", i);
        } else if (i >= from + len) {
            ck_assert_msg(!bytes[i], "byte %zu is no padding", i);
        } else {
            ck_assert_msg(bytes[i] == 0x5a, "byte %zu is no data", i);
        }
    }
}

static void receive(uint32_t psn, size_t len)
{
    struct roce_packet pkt = bench_packet(&qp, BTH_RC | BTH_SEND_ONLY, psn);
    const struct prm_cqe64 *cqe;

    bench_rx(&b, &pkt, data, len);
    cqe = bench_poll(&b, &b.cq);
    ck_assert_ptr_nonnull(cqe);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, opcode), PRM_CQE_OPCODE_RESP_SEND);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, byte_cnt), len);
}

START_TEST(the_last_cache_line_is_filled_up)
{
    static const struct {
        size_t at, len, room, padded_to;
    } cases[] = {
        {0, 1, 500, 64},    {0, 63, 500, 64},  {0, 64, 500, 64},
        {0, 65, 500, 128},  {10, 10, 500, 64}, {10, 54, 500, 64},
        {60, 1, 500, 64},   {60, 5, 500, 128}, {0, 100, 100, 100}, /* not beyond the WQE */
        {0, 100, 110, 110}, {0, 0, 100, 0},
    };
    uint32_t psn = 0;

    setup_qp(PRM_QP_ST_RC, true);
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        fill();
        bench_post_recv(&qp, mem + cases[i].at, (uint32_t)cases[i].room, all);
        receive(psn++, cases[i].len);
        expect(cases[i].at, cases[i].len, cases[i].padded_to);
    }
}
END_TEST

/* SET_HCA_CAP, cache_line_128byte. */
START_TEST(a_cache_line_may_have_128_bytes)
{
    setup_qp(PRM_QP_ST_RC, true);
    b.hca.long_cache_lines = true;
    fill();
    bench_post_recv(&qp, mem, 500, all);
    receive(0, 20);
    expect(0, 20, 128);
}
END_TEST

/* Only the end of the message is padded, not that of each packet. */
START_TEST(a_message_of_several_packets_is_padded_once)
{
    struct roce_packet pkt;

    setup_qp(PRM_QP_ST_RC, true);
    fill();
    bench_post_recv(&qp, mem + 4, 1000, all);
    pkt = bench_packet(&qp, BTH_RC | BTH_SEND_FIRST, 0);
    bench_rx(&b, &pkt, data, MTU);
    expect(4, MTU, 4 + MTU);
    pkt = bench_packet(&qp, BTH_RC | BTH_SEND_LAST, 1);
    bench_rx(&b, &pkt, data + MTU, 7);
    ck_assert_ptr_nonnull(bench_poll(&b, &b.cq));
    expect(4, MTU + 7, 320);
}
END_TEST

START_TEST(without_the_mode_nothing_is_padded)
{
    setup_qp(PRM_QP_ST_RC, false);
    fill();
    bench_post_recv(&qp, mem, 500, all);
    receive(0, 20);
    expect(0, 20, 20);
}
END_TEST

/* A key that ends within the cache line: the message is received, and nothing behind it written. */
START_TEST(a_key_that_ends_early_is_no_error)
{
    setup_qp(PRM_QP_ST_RC, true);
    fill();
    bench_post_recv(&qp, mem, 500, bench_mkey(&b, mem, 30, MEM_LOCAL_WRITE));
    receive(0, 20);
    expect(0, 20, 20);
}
END_TEST

/* The memory of a WRITE is the requester's choice, and never padded; nor is the receive WQE of its
 * immediate. */
START_TEST(a_write_is_never_padded)
{
    struct roce_packet pkt;

    setup_qp(PRM_QP_ST_RC, true);
    fill();
    bench_post_recv(&qp, mem + 512, 100, all);
    pkt = bench_packet(&qp, BTH_RC | BTH_WRITE_ONLY_IMM, 0);
    pkt.reth.va = mem;
    pkt.reth.rkey = all;
    pkt.reth.len = 20;
    bench_rx(&b, &pkt, data, 20);
    ck_assert_ptr_nonnull(bench_poll(&b, &b.cq));
    expect(0, 20, 20);
}
END_TEST

START_TEST(a_datagram_is_padded_behind_its_header)
{
    struct roce_packet pkt;

    setup_qp(PRM_QP_ST_UD, true);
    fill();
    bench_post_recv(&qp, mem, 500, all);
    pkt = bench_packet(&qp, BTH_UD | BTH_SEND_ONLY, 77);
    pkt.deth.qkey = QKEY;
    pkt.deth.src_qp = 0x777;
    bench_rx(&b, &pkt, data, 60);
    ck_assert_ptr_nonnull(bench_poll(&b, &b.cq));
    memset(fake_host_ptr(&b.host, mem, GRH), OLD, GRH);
    expect(GRH, 60, 128);
}
END_TEST

START_TEST(other_modes_are_refused)
{
    struct mem_buf buf;
    struct prm_qpc qpc[1];
    uint32_t qpn;

    setup_qp(PRM_QP_ST_RC, true);
    bench_qpc(&b, &(struct bench_qp_attr){.st = PRM_QP_ST_RC}, qpc);
    for (unsigned mode = 2; mode < 4; mode++) {
        uint64_t ring = fake_host_alloc(&b.host, 8192, 4096);

        PRM_SET(qpc, qpc, end_padding_mode, mode);
        buf = bench_buf(ring, 8192);
        ck_assert_int_eq(qp_create(&b.hca, 0, qpc, &buf, ring, &qpn), SYN_QP_FEATURE);
        mem_buf_clear(&buf);
    }
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("end-pad");
    TCase *tc = tcase_create("end-pad");

    tcase_add_checked_fixture(tc, NULL, teardown);
    tcase_add_test(tc, the_last_cache_line_is_filled_up);
    tcase_add_test(tc, a_cache_line_may_have_128_bytes);
    tcase_add_test(tc, a_message_of_several_packets_is_padded_once);
    tcase_add_test(tc, without_the_mode_nothing_is_padded);
    tcase_add_test(tc, a_key_that_ends_early_is_no_error);
    tcase_add_test(tc, a_write_is_never_padded);
    tcase_add_test(tc, a_datagram_is_padded_behind_its_header);
    tcase_add_test(tc, other_modes_are_refused);
    suite_add_tcase(suite, tc);
    return suite;
}
