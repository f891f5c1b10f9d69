/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests Ethernet receive queues: where a frame lands and what its CQE says (driver: en_rx.c). */
#include <check.h>
#include <string.h>
#include "model/core/real_time.h"
#include "model/eth/eth_priv.h"
#include "model/eth/eth_queue.h"
#include "model/queue/q_counter.h"
#include "tests/programs/cqe_decoder.h"
#include "tests/unit/eth_bench.h"
#include "tests/unit/suite.h"

static struct bench *b;
static struct bench_queue rq;
static uint32_t counter_set;

/* Makes an RQ with a counter set that receives every frame. */
static void make_rq(bool vsd, bool flush)
{
    struct prm_rqc rqc[1] = {0};

    ck_assert_int_eq(q_counter_alloc(&b->rig.hca, 0, &counter_set), SYN_OK);
    PRM_SET(rqc, rqc, vsd, vsd);
    PRM_SET(rqc, rqc, flush_in_error_en, flush);
    PRM_SET(rqc, rqc, counter_set_id, counter_set);
    bench_rq_new(b, rqc, &rq);
    bench_catch_all(b, bench_direct_tir(b, rq.num));
}

static void setup(void)
{
    b = bench_new();
}

static void teardown(void)
{
    bench_free(b);
}

static struct bench_pkt packet(uint8_t version, uint8_t proto, size_t payload)
{
    return (struct bench_pkt){
        .ip_version = version,
        .proto = proto,
        .src = {10, 0, 0, 2, 5, 6, 7, 8},
        .dst = {10, 0, 0, 1, 25, 26},
        .sport = 1111,
        .dport = 2222,
        .tcp_flags = 0x10,
        .payload = payload,
    };
}

static uint64_t post(void)
{
    uint64_t addr = bench_mem(b, NULL, BENCH_RX_SIZE);

    bench_post_recv(&rq, addr, BENCH_RX_SIZE);
    return addr;
}

/* Receives one frame; returns its CQE. */
static const void *receive(const uint8_t *frame, size_t len, const uint8_t **stored)
{
    uint64_t addr = post();
    const struct prm_cqe64 *cqe;

    bench_rx(b, frame, len);
    cqe = bench_cqe(&rq);
    ck_assert_ptr_nonnull(cqe);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, opcode), PRM_CQE_OPCODE_RESP_SEND);
    *stored = fake_host_ptr(&b->rig.host, addr, BENCH_RX_SIZE);
    return cqe;
}

static uint32_t rq_state(void)
{
    struct prm_rqc rqc[1];

    ck_assert_int_eq(eth_rq_query(&b->rig.hca, rq.num, rqc), SYN_OK);
    return PRM_GET(rqc, rqc, state);
}

/* -- scatter ----------------------------------------------------------------------------------- */

START_TEST(the_frame_lands_in_the_wqe_and_nowhere_else)
{
    struct bench_pkt pkt = packet(4, 6, 400);
    uint8_t frame[1024];
    size_t len = bench_build(frame, &pkt);
    const uint8_t *stored;
    const struct prm_cqe64 *cqe;

    make_rq(false, false);
    for (unsigned i = 0; i < 20; i++) { /* more than the ring holds */
        cqe = receive(frame, len, &stored);
        ck_assert_mem_eq(stored, frame, len);
        ck_assert_uint_eq(stored[len], 0);
        ck_assert_uint_eq(PRM_GET(cqe64, cqe, byte_cnt), len);
        ck_assert_uint_eq(PRM_GET(cqe64, cqe, wqe_counter), i);
        ck_assert_uint_eq(PRM_GET(cqe64, cqe, qpn), 0xabcdef); /* the flow tag */
    }
}
END_TEST

/* wq.end_padding_mode: whole cache lines are written, as far as the WQE reaches. */
START_TEST(a_frame_is_padded_to_the_end_of_a_cache_line)
{
    struct bench_pkt pkt = packet(4, 6, 400);
    struct prm_rqc rqc[1] = {0};
    uint8_t frame[1024], *stored;
    size_t len = bench_build(frame, &pkt), line_end = (len + 63) & ~(size_t)63;
    uint64_t addr = (bench_mem(b, NULL, BENCH_RX_SIZE + 64) + 63) & ~63ull;
    uint32_t room = _i == 2 ? (uint32_t)len + 3 : BENCH_RX_SIZE;

    ck_assert_uint_gt(line_end, len + 3);
    PRM_SET(wq, PRM_PTR(rqc, rqc, wq), end_padding_mode,
            _i ? PRM_WQ_END_PADDING_ALIGN : PRM_WQ_END_PADDING_NONE);
    bench_rq_new(b, rqc, &rq);
    bench_catch_all(b, bench_direct_tir(b, rq.num));
    stored = memset(fake_host_ptr(&b->rig.host, addr, BENCH_RX_SIZE), 0xee, BENCH_RX_SIZE);
    bench_post_recv(&rq, addr, room);
    bench_rx(b, frame, len);
    bench_expect(&rq, PRM_CQE_OPCODE_RESP_SEND, 0, 0);
    ck_assert_mem_eq(stored, frame, len);
    for (size_t i = len; i < BENCH_RX_SIZE; i++) {
        ck_assert_uint_eq(stored[i], _i && i < MIN(line_end, room) ? 0 : 0xee);
    }
}
END_TEST

/* The CRC of IEEE 802.3 3.2.9, bit by bit. Its low byte is the first one on a cable. */
static uint32_t fcs_of(const uint8_t *frame, size_t len)
{
    uint32_t crc = UINT32_MAX;

    for (size_t i = 0; i < len; i++) {
        crc ^= frame[i];
        for (unsigned bit = 0; bit < 8; bit++) {
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
        }
    }
    return ~crc;
}

static enum syn set_fcs(bool on)
{
    struct prm_rqc rqc[1] = {0};

    PRM_SET(rqc, rqc, state, PRM_RQC_STATE_RDY);
    PRM_SET(rqc, rqc, scatter_fcs, on);
    return eth_rq_modify(&b->rig.hca, 0, rq.num, PRM_RQC_STATE_RDY, PRM_MODIFY_RQ_SCATTER_FCS, rqc);
}

/* rqc.scatter_fcs: four bytes behind the frame, which count in byte_cnt. They are those of the
 * cable, also if a tag was stripped. A sum over the whole frame covers them. */
START_TEST(the_frame_check_sequence_may_be_stored)
{
    struct bench_pkt pkt = packet(4, 6, 100 + _i % 2);
    struct prm_rqc rqc[1] = {0};
    const struct prm_cqe64 *cqe;
    const uint8_t *stored;
    uint8_t frame[512];
    size_t len, kept;
    uint32_t fcs;

    pkt.vlan = _i & 2;
    b->rig.hca.limits.cqe_checksum_full = _i & 4;
    len = bench_build(frame, &pkt);
    kept = len - (pkt.vlan ? 4 : 0);
    fcs = fcs_of(frame, len);
    PRM_SET(rqc, rqc, scatter_fcs, 1);
    bench_rq_new(b, rqc, &rq);
    bench_catch_all(b, bench_direct_tir(b, rq.num));
    cqe = receive(frame, len, &stored);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, byte_cnt), kept + 4);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, cv), pkt.vlan);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, l4_ok), 1);
    for (unsigned i = 0; i < 4; i++) {
        ck_assert_uint_eq(stored[kept + i], fcs >> 8 * i & 0xff);
    }
    ck_assert_uint_eq(stored[kept + 4], 0);
    if (_i & 4) {
        ck_assert_uint_eq(PRM_GET(cqe64, cqe, check_sum), bench_sum(stored + 14, kept - 10, 0));
    }
    ck_assert_int_eq(set_fcs(false), SYN_OK);
    cqe = receive(frame, len, &stored);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, byte_cnt), kept);
    ck_assert_uint_eq(stored[kept], 0);
    ck_assert_int_eq(set_fcs(true), SYN_OK);
    bench_post_recv(&rq, bench_mem(b, NULL, len + 4), (uint32_t)kept + 3); /* one byte too short */
    bench_rx(b, frame, len);
    bench_expect_none(&rq);
}
END_TEST

/* A WQE of several segments, as mlx5e posts it for an MTU beyond a page. */
START_TEST(segments_are_filled_in_order)
{
    struct bench_pkt pkt = packet(4, 17, 1000);
    static const uint32_t lens[3] = {13, 600, 1000};
    uint8_t frame[1100], joined[1613];
    uint64_t at[3];
    struct prm_wqe_data_seg *wqe;
    size_t len = bench_build(frame, &pkt), n = 0;

    make_rq(false, false);
    post();
    wqe = fake_host_ptr(&b->rig.host, rq.ring, 64);
    for (unsigned i = 0; i < 3; i++) {
        at[i] = bench_mem(b, NULL, lens[i]);
        PRM_SET(wqe_data_seg, &wqe[i], byte_count, lens[i]);
        PRM_SET(wqe_data_seg, &wqe[i], lkey, RIG_RESD_LKEY);
        PRM_SET(wqe_data_seg, &wqe[i], addr, at[i]);
    }
    PRM_SET(wqe_data_seg, &wqe[3], lkey, 0x100);
    bench_rx(b, frame, len);
    bench_expect(&rq, PRM_CQE_OPCODE_RESP_SEND, 0, 0);
    for (unsigned i = 0; i < 3; i++) {
        memcpy(joined + n, fake_host_ptr(&b->rig.host, at[i], lens[i]), lens[i]);
        n += lens[i];
    }
    ck_assert_mem_eq(joined, frame, len);
}
END_TEST

/* -- VLAN -------------------------------------------------------------------------------------- */

START_TEST(vlan_tag_goes_into_the_cqe_unless_vsd)
{
    struct bench_pkt pkt = packet(4, 6, 200);
    uint8_t tagged[512], plain[512];
    size_t len = bench_build(plain, &pkt);
    const uint8_t *stored;
    const struct prm_cqe64 *cqe;

    pkt.vlan = true;
    pkt.tci = 0x6007;
    bench_build(tagged, &pkt);
    make_rq(_i, false);
    cqe = receive(tagged, len + 4, &stored);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, cv), !_i);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, vlan_info), _i ? 0 : 0x6007);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, byte_cnt), _i ? len + 4 : len);
    ck_assert_mem_eq(stored, _i ? tagged : plain, _i ? len + 4 : len);
    /* from the IP header on, with the tag or without */
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, check_sum), bench_sum(plain + 14, len - 14, 0));
    ck_assert(PRM_GET(cqe64, cqe, l4_ok));
}
END_TEST

START_TEST(untagged_frames_and_service_tags_are_left_as_they_are)
{
    struct bench_pkt pkt = packet(4, 6, 200);
    uint8_t frame[512];
    size_t len;
    const uint8_t *stored;
    const struct prm_cqe64 *cqe;

    make_rq(false, false);
    len = bench_build(frame, &pkt);
    cqe = receive(frame, len, &stored);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, cv), 0);
    pkt.vlan = true;
    len = bench_build(frame, &pkt);
    prm_store16(frame + 12, 0x88a8);
    cqe = receive(frame, len, &stored);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, cv), 0);
    ck_assert_mem_eq(stored, frame, len);
}
END_TEST

/* -- what the CQE says ------------------------------------------------------------------------- */

START_TEST(header_types_and_checksums)
{
    static const struct {
        uint8_t version, proto, flags;
        size_t payload;
        uint8_t l3, l4;
    } cases[] = {
        {4, 17, 0, 30, PRM_CQE_L3_HDR_TYPE_IPV4, PRM_CQE_L4_HDR_TYPE_UDP},
        {6, 17, 0, 31, PRM_CQE_L3_HDR_TYPE_IPV6, PRM_CQE_L4_HDR_TYPE_UDP},
        {4, 6, 0x02, 0, PRM_CQE_L3_HDR_TYPE_IPV4, PRM_CQE_L4_HDR_TYPE_TCP_NO_ACK},
        {4, 6, 0x10, 0, PRM_CQE_L3_HDR_TYPE_IPV4, PRM_CQE_L4_HDR_TYPE_TCP_ACK_NO_DATA},
        {6, 6, 0x18, 99, PRM_CQE_L3_HDR_TYPE_IPV6, PRM_CQE_L4_HDR_TYPE_TCP_ACK_AND_DATA},
    };

    make_rq(false, false);
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        struct bench_pkt pkt = packet(cases[i].version, cases[i].proto, cases[i].payload);
        uint8_t frame[256] = {0};
        const uint8_t *stored;
        const struct prm_cqe64 *cqe;
        size_t len;

        pkt.tcp_flags = cases[i].flags;
        len = bench_build(frame, &pkt);
        cqe = receive(frame, len, &stored);
        ck_assert_uint_eq(PRM_GET(cqe64, cqe, l3_hdr_type), cases[i].l3);
        ck_assert_uint_eq(PRM_GET(cqe64, cqe, l4_hdr_type), cases[i].l4);
        ck_assert_uint_eq(PRM_GET(cqe64, cqe, hds_ip_ext), 7); /* l4_ok, l3_ok, l2_ok */
        ck_assert_uint_eq(PRM_GET(cqe64, cqe, check_sum), bench_sum(frame + 14, len - 14, 0));
        ck_assert_uint_eq(PRM_GET(cqe64, cqe, ip_frag), 0);
    }
}
END_TEST

/* The sum ends where the IP packet ends: the driver adds the padding of the frame
 * (tail_padding_csum). */
START_TEST(padding_is_not_in_the_sum)
{
    struct bench_pkt pkt = packet(4, 17, 3);
    uint8_t frame[100];
    const uint8_t *stored;
    const struct prm_cqe64 *cqe;
    size_t len;

    memset(frame, 0xee, sizeof(frame));
    len = bench_build(frame, &pkt);
    make_rq(false, false);
    cqe = receive(frame, sizeof(frame), &stored);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, byte_cnt), sizeof(frame));
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, check_sum), bench_sum(frame + 14, len - 14, 0));
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, hds_ip_ext), 7);
}
END_TEST

START_TEST(wrong_checksums_are_not_ok)
{
    struct bench_pkt pkt = packet(4, 6, 100);
    uint8_t frame[256];
    size_t len = bench_build(frame, &pkt);
    const uint8_t *stored;
    const struct prm_cqe64 *cqe;

    make_rq(false, false);
    frame[60] ^= 1; /* payload */
    cqe = receive(frame, len, &stored);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, l3_ok), 1);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, l4_ok), 0);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, check_sum), bench_sum(frame + 14, len - 14, 0));
    frame[60] ^= 1;
    frame[22] ^= 1; /* TTL */
    cqe = receive(frame, len, &stored);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, l3_ok), 0);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, l4_ok), 1);
}
END_TEST

/* The byte of header types is read by DPDK (mlx5_set_ptype_table(): bit 7 is the fragment) and VPP
 * (foreach_cqe_rx_field: bit 1 says that there are options). */
START_TEST(fragments_have_no_transport)
{
    struct bench_pkt pkt = packet(4, 17, 100);
    uint8_t frame[256];
    size_t len = bench_build(frame, &pkt);
    const uint8_t *stored;
    const struct prm_cqe64 *cqe;

    make_rq(false, false);
    frame[20] = 0x20;
    prm_store16(frame + 24, 0);
    prm_store16(frame + 24, (uint16_t)~bench_sum(frame + 14, 20, 0));
    cqe = receive(frame, len, &stored);
    ck_assert_uint_eq(cqe->bytes[0x1d], 0x80 | PRM_CQE_L3_HDR_TYPE_IPV4 << 2);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, l4_hdr_type), PRM_CQE_L4_HDR_TYPE_NONE);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, l3_ok), 1);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, l4_ok), 0);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, check_sum), bench_sum(frame + 14, len - 14, 0));
}
END_TEST

/* rqc.ts_format: the free-running timer, or seconds and nanoseconds of the real-time clock. */
START_TEST(time_stamps_are_of_the_clock_that_the_queue_asks_for)
{
    struct bench_pkt pkt = packet(4, 17, 64);
    uint8_t frame[256];
    size_t len = bench_build(frame, &pkt);
    const uint8_t *stored;
    struct prm_rqc rqc[1] = {0};
    struct mem_buf buf = {0};
    const struct prm_cqe64 *cqe;
    uint32_t num;

    b->ts_format = (uint8_t)_i;
    b->rig.hca.limits.real_time = true;
    real_time_set(b->rig.hca.real_time, b->rig.host.now, 5000000007ull);
    make_rq(false, false);
    cqe = receive(frame, len, &stored);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, timestamp), _i ? 5ull << 32 | 7 : b->rig.host.now);

    b->rig.hca.limits.real_time = false;
    PRM_SET(rqc, rqc, cqn, rq.cqn);
    PRM_SET(wq, PRM_PTR(rqc, rqc, wq), wq_type, PRM_WQ_TYPE_CYCLIC);
    PRM_SET(rqc, rqc, ts_format, PRM_TS_FORMAT_REAL_TIME);
    ck_assert_int_eq(eth_rq_create(&b->rig.hca, 0, rqc, &buf, 0, &num), SYN_TS_FORMAT);
    PRM_SET(wq, PRM_PTR(rqc, rqc, wq), cd_slave, 1);
    ck_assert_int_eq(eth_rq_create(&b->rig.hca, 0, rqc, &buf, 0, &num), SYN_ETH_WQ);
}
END_TEST

/* Packets of four kinds that come together: their CQEs are one session in the format of header
 * types, and none in the format of flow tags, because no two in a row have the same types. */
START_TEST(header_types_are_compressed_with_the_packets)
{
    bool by_tag = _i == 1;
    struct cqe_decoder d;
    const uint8_t *cqe;

    b->mini_format = by_tag ? PRM_MINI_CQE_FORMAT_FTAG_STRIDX : PRM_MINI_CQE_FORMAT_L34H_STRIDX;
    make_rq(false, false);
    cqe_decoder_init(&d, fake_host_ptr(&b->rig.host, rq.cq_ring, 64 << BENCH_CQ_LOG), BENCH_CQ_LOG,
                     64);
    d.format = (enum dec_format)b->mini_format;
    for (unsigned i = 0; i < 8; i++) {
        struct bench_pkt pkt = packet(i & 1 ? 6 : 4, i & 2 ? 6 : 17, 100 + i);
        uint8_t frame[512];
        size_t len = bench_build(frame, &pkt);

        post();
        bench_put(b, frame, len);
    }
    bench_run(b);
    for (unsigned i = 0; i < 8; i++) {
        struct bench_pkt pkt = packet(i & 1 ? 6 : 4, i & 2 ? 6 : 17, 100 + i);

        cqe = cqe_decoder_next(&d, NULL);
        ck_assert_msg(cqe != NULL, "CQE %u: %s", i, d.fault ? d.fault : "is not there");
        ck_assert_uint_eq(cqe[DEC_HEADERS] >> 2 & 3,
                          i & 1 ? PRM_CQE_L3_HDR_TYPE_IPV6 : PRM_CQE_L3_HDR_TYPE_IPV4);
        ck_assert_int_eq((cqe[DEC_HEADERS] >> 4 & 7) == PRM_CQE_L4_HDR_TYPE_UDP, !(i & 2));
        ck_assert_uint_eq(dec_32(cqe + DEC_FLOW_TAG - 1) & 0xffffff, 0xabcdef);
        ck_assert_uint_eq(dec_32(cqe + DEC_BYTE_CNT), bench_headers(&pkt) + 100 + i);
        ck_assert_uint_eq(dec_16(cqe + DEC_COUNTER), i);
    }
    ck_assert_ptr_null(cqe_decoder_next(&d, NULL));
    ck_assert_ptr_null(d.fault);
    ck_assert_uint_eq(d.sessions, by_tag ? 0 : 1);
}
END_TEST

START_TEST(options_behind_the_network_header_are_reported)
{
    struct bench_pkt pkt = packet(4, 17, 100);
    uint8_t frame[256];
    size_t len = bench_build(frame, &pkt);
    const uint8_t *stored;
    const struct prm_cqe64 *cqe;

    make_rq(false, false);
    memmove(frame + 38, frame + 34, len - 34);
    memset(frame + 34, 1, 4); /* four options NOP */
    frame[14] = 0x46;
    prm_store16(frame + 16, (uint16_t)(prm_load16(frame + 16) + 4));
    prm_store16(frame + 24, 0);
    prm_store16(frame + 24, (uint16_t)~bench_sum(frame + 14, 24, 0));
    cqe = receive(frame, len + 4, &stored);
    ck_assert_uint_eq(cqe->bytes[0x1d],
                      PRM_CQE_L4_HDR_TYPE_UDP << 4 | PRM_CQE_L3_HDR_TYPE_IPV4 << 2 | 1 << 1);
}
END_TEST

/*
 * The driver uses check_sum for every frame with IP's ethertype, and reports a hardware error ("hw
 * csum failure") if it does not fit. It must be right whatever the headers say.
 */
START_TEST(the_sum_is_right_for_headers_that_make_no_sense)
{
    struct bench_pkt pkt = packet(4, 6, 100);
    uint8_t good[256], frame[256];
    size_t len = bench_build(good, &pkt);
    const uint8_t *stored;
    const struct prm_cqe64 *cqe;
    static const struct {
        size_t at;
        uint8_t value;
    } damage[] = {
        {14, 0x00},           /* no version */
        {14, 0x4f},           /* IP header longer than its options can be */
        {14, 0x41},           /* and shorter */
        {14, 0x65},           /* IPv6 under IPv4's ethertype */
        {16, 0xff},           /* length beyond the frame */
        {14 + 20 + 12, 0x00}, /* TCP header too short */
        {14 + 20 + 12, 0xf0}, /* options that are data */
    };

    make_rq(false, false);
    for (unsigned i = 0; i < G_N_ELEMENTS(damage); i++) {
        memcpy(frame, good, len);
        frame[damage[i].at] = damage[i].value;
        cqe = receive(frame, len, &stored);
        ck_assert_uint_eq(PRM_GET(cqe64, cqe, check_sum), bench_sum(frame + 14, len - 14, 0));
        ck_assert_mem_eq(stored, frame, len);
    }
    memcpy(frame, good, len);
    prm_store16(frame + 12, 0x86dd); /* IPv4 under IPv6's */
    cqe = receive(frame, len, &stored);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, check_sum), bench_sum(frame + 14, len - 14, 0));
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, l3_ok), 0);
}
END_TEST

START_TEST(frames_that_are_not_ip_have_only_their_fcs_checked)
{
    uint8_t frame[60] = {2, 0, 0, 0, 0, 1, [12] = 0x08, 0x06};
    const uint8_t *stored;
    const struct prm_cqe64 *cqe;

    make_rq(false, false);
    cqe = receive(frame, sizeof(frame), &stored);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, hds_ip_ext), 1);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, l4_l3_hdr_type), 0);
}
END_TEST

/* -- no room ----------------------------------------------------------------------------------- */

START_TEST(a_frame_without_a_wqe_is_counted_and_dropped)
{
    uint8_t frame[60] = {2, 0, 0, 0, 0, 1};
    const uint8_t *stored;

    make_rq(false, false);
    bench_rx(b, frame, sizeof(frame));
    bench_rx(b, frame, sizeof(frame));
    bench_expect_none(&rq);
    ck_assert_uint_eq(q_counter_get(&b->rig.hca, counter_set)->out_of_buffer, 2);
    ck_assert_uint_eq(rq_state(), PRM_RQC_STATE_RDY);
    receive(frame, sizeof(frame), &stored);
}
END_TEST

/* The last line of the log is about the queue and ends with these words. */
static void said(const char *why)
{
    char line[256];

    snprintf(line, sizeof(line), "RQ 0x%x: %s", rq.num, why);
    ck_assert_str_eq(b->rig.host.last_line, line);
}

/* counters.rst: "number of dropped received packets due to length which arrived to RQ and exceed
 * software buffer size". The WQE takes the next frame that fits. */
START_TEST(a_frame_longer_than_its_wqe_is_dropped_and_counted)
{
    uint8_t frame[100] = {2, 0, 0, 0, 0, 1};

    make_rq(false, false);
    bench_post_recv(&rq, bench_mem(b, NULL, 99), 99);
    for (unsigned i = 1; i <= 20; i++) {
        bench_rx(b, frame, sizeof(frame));
        bench_expect_none(&rq);
        ck_assert_uint_eq(b->rig.hca.vport->counters.rx_wqe_too_small, i);
    }
    said("WQE 0x0 cannot take a frame of 100 bytes: it has room for 99 bytes");
    ck_assert_uint_eq(rq_state(), PRM_RQC_STATE_RDY);
    bench_rx(b, frame, 99);
    bench_expect(&rq, PRM_CQE_OPCODE_RESP_SEND, 0, 0);
    ck_assert_uint_eq(b->rig.hca.vport->counters.rx_wqe_too_small, 20);
}
END_TEST

/* Only stored bytes count: a stripped tag needs no room. */
START_TEST(a_stripped_tag_needs_no_room)
{
    struct bench_pkt pkt = packet(4, 6, 200);
    uint8_t frame[512];
    size_t len;

    pkt.vlan = true;
    len = bench_build(frame, &pkt);
    make_rq(false, false);
    bench_post_recv(&rq, bench_mem(b, NULL, len), (uint32_t)len - 4);
    bench_rx(b, frame, len);
    bench_expect(&rq, PRM_CQE_OPCODE_RESP_SEND, 0, 0);
}
END_TEST

/* rqc.rlky: a program's queue cannot use bus addresses. */
START_TEST(the_reserved_lkey_is_not_every_queues)
{
    uint8_t frame[100] = {2, 0, 0, 0, 0, 1};

    make_rq(false, false);
    PRM_SET(rqc, eth_rq_find(&b->rig.hca, rq.num)->rqc, rlky, 0);
    post();
    bench_rx(b, frame, sizeof(frame));
    bench_expect(&rq, PRM_CQE_OPCODE_RESP_ERR, PRM_CQE_SYNDROME_LOCAL_PROT_ERR, 0);
}
END_TEST

START_TEST(memory_that_does_not_answer_fails_the_queue)
{
    uint8_t frame[100] = {2, 0, 0, 0, 0, 1};

    make_rq(false, true);
    bench_post_recv(&rq, FAKE_HOST_BASE + FAKE_HOST_SIZE - 10, 2048);
    post();
    post();
    bench_rx(b, frame, sizeof(frame));
    said("WQE 0x0 cannot take a frame of 100 bytes: the memory of lkey 0x500 does not answer: it "
         "was unmapped, protected or never there");
    bench_expect(&rq, PRM_CQE_OPCODE_RESP_ERR, PRM_CQE_SYNDROME_LOCAL_PROT_ERR, 0);
    /* flush_in_error_en, as mlx5_ib sets it for raw packet QPs */
    bench_expect(&rq, PRM_CQE_OPCODE_RESP_ERR, PRM_CQE_SYNDROME_WR_FLUSH_ERR, 1);
    bench_expect(&rq, PRM_CQE_OPCODE_RESP_ERR, PRM_CQE_SYNDROME_WR_FLUSH_ERR, 2);
    bench_expect_none(&rq);
}
END_TEST

/* Overwrites the stack that the device's functions will use. */
static void __attribute__((noinline)) dirty_the_stack(void)
{
    volatile uint8_t junk[16384];

    for (unsigned i = 0; i < sizeof(junk); i++) {
        junk[i] = 0xa5;
    }
}

/* The WQE's place is known, so its completion reports the failure. Its contents are not known: the
 * log says that nothing was there. */
START_TEST(a_ring_that_does_not_answer_fails_the_queue)
{
    uint8_t frame[100] = {2, 0, 0, 0, 0, 1};

    make_rq(false, false);
    post();
    b->rig.host.hole = rq.ring;
    dirty_the_stack();
    bench_rx(b, frame, sizeof(frame));
    bench_expect(&rq, PRM_CQE_OPCODE_RESP_ERR, PRM_CQE_SYNDROME_LOCAL_PROT_ERR, 0);
    ck_assert_uint_eq(rq_state(), PRM_RQC_STATE_ERR);
    ck_assert_uint_eq(q_counter_get(&b->rig.hca, counter_set)->resp_cqe_error, 1);
    ck_assert_uint_eq(b->rig.host.guest_errors, 1);
    said("WQE 0x0 cannot take a frame of 100 bytes: it cannot be read, or is invalid");
}
END_TEST

/* IBTA 11.6.3.2, local work queue catastrophic error: if completions cannot be reported, there is
 * an event. Without a doorbell record there is no WQE that a completion could name. Nothing is
 * flushed; frames are counted and dropped. */
START_TEST(a_doorbell_record_that_cannot_be_fails_the_queue)
{
    uint8_t frame[100] = {2, 0, 0, 0, 0, 1};

    make_rq(false, true);
    if (_i) {
        b->rig.host.hole = rq.dbr;
    } else {
        PRM_SET(qp_dbr, fake_host_ptr(&b->rig.host, rq.dbr, 8), rcv_counter, 9); /* of 8 */
    }
    dirty_the_stack();
    bench_rx(b, frame, sizeof(frame));
    bench_expect_none(&rq);
    bench_expect_fatal(&rq, PRM_EVENT_QUEUE_TYPE_RQ);
    ck_assert_uint_eq(rq_state(), PRM_RQC_STATE_ERR);
    ck_assert_uint_eq(b->rig.hca.vport->counters.rx_no_steering, 1);
    ck_assert_uint_eq(b->rig.host.guest_errors, 1);
    ck_assert_ptr_nonnull(
        strstr(b->rig.host.last_line, "doorbell record is unreadable or impossible"));
    bench_rx(b, frame, sizeof(frame));
    ck_assert_uint_eq(b->rig.hca.vport->counters.rx_no_steering, 2);
    ck_assert_ptr_null(rig_eq_next(&b->rig, &b->eq));
}
END_TEST

/* IBTA 10.2.9.3, 11.6.3.2: a CQ that fails makes its work queues fail. The frame whose completion
 * is lost was stored; the next frame is dropped. */
START_TEST(a_cq_that_fails_takes_its_queue_down)
{
    uint8_t frame[100] = {2, 0, 0, 0, 0, 1};

    make_rq(false, true);
    post();
    post();
    b->rig.host.hole = rq.cq_ring;
    bench_rx(b, frame, sizeof(frame));
    bench_expect_fatal(&rq, PRM_EVENT_QUEUE_TYPE_RQ);
    ck_assert_uint_eq(rq_state(), PRM_RQC_STATE_ERR);
    bench_rx(b, frame, sizeof(frame));
    ck_assert_uint_eq(b->rig.hca.vport->counters.rx_no_steering, 1);
    ck_assert_ptr_null(rig_eq_next(&b->rig, &b->eq));
}
END_TEST

/* PRM cqe64.srqn: "SRQ number, or user index (CQE version 1)"; the user index is rqc.user_index. */
START_TEST(completions_carry_the_user_index)
{
    uint8_t frame[60] = {2, 0, 0, 0, 0, 1};
    const uint8_t *stored;

    make_rq(false, true);
    ck_assert_uint_eq(PRM_GET(cqe64, receive(frame, sizeof(frame), &stored), srqn), BENCH_RQ_INDEX);
    post();
    ck_assert_int_eq(bench_rq_move(&rq, PRM_RQC_STATE_RDY, PRM_RQC_STATE_ERR), SYN_OK);
    bench_run(b);
    ck_assert_uint_eq(PRM_GET(err_cqe, bench_cqe(&rq), srqn), BENCH_RQ_INDEX);
}
END_TEST

/* -- states ------------------------------------------------------------------------------------ */

START_TEST(modify_to_err_flushes)
{
    make_rq(false, true);
    post();
    post();
    ck_assert_int_eq(bench_rq_move(&rq, PRM_RQC_STATE_RDY, PRM_RQC_STATE_ERR), SYN_OK);
    bench_run(b);
    bench_expect(&rq, PRM_CQE_OPCODE_RESP_ERR, PRM_CQE_SYNDROME_WR_FLUSH_ERR, 0);
    bench_expect(&rq, PRM_CQE_OPCODE_RESP_ERR, PRM_CQE_SYNDROME_WR_FLUSH_ERR, 1);
    bench_expect_none(&rq);
}
END_TEST

/* The device is not notified of a receive that is posted in ERR, but it flushes it (IBTA
 * 10.3.1). */
START_TEST(receives_posted_in_err_are_flushed_soon)
{
    make_rq(false, true);
    ck_assert_int_eq(bench_rq_move(&rq, PRM_RQC_STATE_RDY, PRM_RQC_STATE_ERR), SYN_OK);
    bench_run(b);
    for (uint16_t i = 0; i < 3; i++) {
        post();
        rig_advance(&b->rig, 250000000);
        bench_run(b);
        bench_expect(&rq, PRM_CQE_OPCODE_RESP_ERR, PRM_CQE_SYNDROME_WR_FLUSH_ERR, i);
    }
    /* in RST nobody checks the queue any more */
    ck_assert_int_eq(bench_rq_move(&rq, PRM_RQC_STATE_ERR, PRM_RQC_STATE_RST), SYN_OK);
    rq.pi = 0;
    post();
    rig_advance(&b->rig, 250000000);
    bench_expect_none(&rq);
}
END_TEST

START_TEST(a_queue_in_reset_drops_and_starts_again_at_0)
{
    uint8_t frame[60] = {2, 0, 0, 0, 0, 1};
    const uint8_t *stored;
    const struct prm_cqe64 *cqe;

    make_rq(false, false);
    receive(frame, sizeof(frame), &stored);
    post();
    ck_assert_int_eq(bench_rq_move(&rq, PRM_RQC_STATE_RDY, PRM_RQC_STATE_RST), SYN_OK);
    bench_rx(b, frame, sizeof(frame));
    bench_expect_none(&rq);
    ck_assert_int_eq(bench_rq_move(&rq, PRM_RQC_STATE_RST, PRM_RQC_STATE_RDY), SYN_OK);
    rq.pi = 0;
    cqe = receive(frame, sizeof(frame), &stored);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, wqe_counter), 0);
}
END_TEST

START_TEST(illegal_moves_and_fields_are_refused)
{
    struct prm_rqc rqc[1] = {0};
    struct hca *hca = &b->rig.hca;

    make_rq(false, false);
    ck_assert_int_eq(bench_rq_move(&rq, PRM_RQC_STATE_RST, PRM_RQC_STATE_RDY), SYN_ETH_STATE);
    ck_assert_int_eq(bench_rq_move(&rq, PRM_RQC_STATE_RDY, 2), SYN_ETH_STATE);
    ck_assert_int_eq(bench_rq_move(&rq, 15, 15), SYN_ETH_STATE);
    PRM_SET(rqc, rqc, state, PRM_RQC_STATE_RDY);
    ck_assert_int_eq(eth_rq_modify(hca, 0, rq.num, PRM_RQC_STATE_RDY, 1ull << 40, rqc),
                     SYN_ETH_MODIFY);
    ck_assert_int_eq(eth_rq_modify(hca, RIG_USER, rq.num, PRM_RQC_STATE_RDY, 0, rqc), SYN_BAD_UID);
    ck_assert_int_eq(eth_rq_destroy(hca, 0, rq.num), SYN_IN_USE); /* the TIR uses it */
    ck_assert_int_eq(eth_rq_destroy(hca, 0, 0xffffff), SYN_ETH_NOT_FOUND);
}
END_TEST

/* driver: mlx5e_modify_rq_vsd() */
START_TEST(vsd_can_be_changed_while_the_queue_runs)
{
    struct bench_pkt pkt = packet(4, 6, 200);
    uint8_t frame[512];
    struct prm_rqc rqc[1] = {0};
    const uint8_t *stored;
    const struct prm_cqe64 *cqe;
    size_t len;

    pkt.vlan = true;
    len = bench_build(frame, &pkt);
    make_rq(false, false);
    PRM_SET(rqc, rqc, state, PRM_RQC_STATE_RDY);
    PRM_SET(rqc, rqc, vsd, 1);
    ck_assert_int_eq(
        eth_rq_modify(&b->rig.hca, 0, rq.num, PRM_RQC_STATE_RDY, PRM_MODIFY_RQ_VSD, rqc), SYN_OK);
    cqe = receive(frame, len, &stored);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, cv), 0);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, byte_cnt), len);
}
END_TEST

/* Its counter set can be changed, too (PRM, MODIFY_RQ: rq_counter_set_id). */
START_TEST(another_counter_set_counts_from_then_on)
{
    uint8_t frame[60] = {2, 0, 0, 0, 0, 1};
    struct prm_rqc rqc[1] = {0};
    struct hca *hca = &b->rig.hca;
    uint32_t other;

    ck_assert_int_eq(q_counter_alloc(hca, 0, &other), SYN_OK);
    make_rq(false, false);
    bench_rx(b, frame, sizeof(frame));
    PRM_SET(rqc, rqc, state, PRM_RQC_STATE_RDY);
    PRM_SET(rqc, rqc, counter_set_id, other);
    ck_assert_int_eq(
        eth_rq_modify(hca, 0, rq.num, PRM_RQC_STATE_RDY, PRM_MODIFY_RQ_RQ_COUNTER_SET_ID, rqc),
        SYN_OK);
    bench_rx(b, frame, sizeof(frame));
    bench_rx(b, frame, sizeof(frame));
    ck_assert_uint_eq(q_counter_get(hca, counter_set)->out_of_buffer, 1);
    ck_assert_uint_eq(q_counter_get(hca, other)->out_of_buffer, 2);
    ck_assert_int_eq(eth_rq_query(hca, rq.num, rqc), SYN_OK);
    ck_assert_uint_eq(PRM_GET(rqc, rqc, counter_set_id), other);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("eth_rx");
    TCase *tcase = tcase_create("eth_rx");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, the_frame_lands_in_the_wqe_and_nowhere_else);
    tcase_add_loop_test(tcase, a_frame_is_padded_to_the_end_of_a_cache_line, 0, 3);
    tcase_add_loop_test(tcase, the_frame_check_sequence_may_be_stored, 0, 8);
    tcase_add_test(tcase, segments_are_filled_in_order);
    tcase_add_loop_test(tcase, vlan_tag_goes_into_the_cqe_unless_vsd, 0, 2);
    tcase_add_test(tcase, untagged_frames_and_service_tags_are_left_as_they_are);
    tcase_add_test(tcase, header_types_and_checksums);
    tcase_add_test(tcase, padding_is_not_in_the_sum);
    tcase_add_test(tcase, wrong_checksums_are_not_ok);
    tcase_add_test(tcase, fragments_have_no_transport);
    tcase_add_loop_test(tcase, time_stamps_are_of_the_clock_that_the_queue_asks_for, 0, 3);
    tcase_add_loop_test(tcase, header_types_are_compressed_with_the_packets, 0, 2);
    tcase_add_test(tcase, options_behind_the_network_header_are_reported);
    tcase_add_test(tcase, the_sum_is_right_for_headers_that_make_no_sense);
    tcase_add_test(tcase, frames_that_are_not_ip_have_only_their_fcs_checked);
    tcase_add_test(tcase, a_frame_without_a_wqe_is_counted_and_dropped);
    tcase_add_test(tcase, another_counter_set_counts_from_then_on);
    tcase_add_test(tcase, a_frame_longer_than_its_wqe_is_dropped_and_counted);
    tcase_add_test(tcase, a_stripped_tag_needs_no_room);
    tcase_add_test(tcase, memory_that_does_not_answer_fails_the_queue);
    tcase_add_test(tcase, the_reserved_lkey_is_not_every_queues);
    tcase_add_test(tcase, a_ring_that_does_not_answer_fails_the_queue);
    tcase_add_loop_test(tcase, a_doorbell_record_that_cannot_be_fails_the_queue, 0, 2);
    tcase_add_test(tcase, a_cq_that_fails_takes_its_queue_down);
    tcase_add_test(tcase, completions_carry_the_user_index);
    tcase_add_test(tcase, modify_to_err_flushes);
    tcase_add_test(tcase, receives_posted_in_err_are_flushed_soon);
    tcase_add_test(tcase, a_queue_in_reset_drops_and_starts_again_at_0);
    tcase_add_test(tcase, illegal_moves_and_fields_are_refused);
    tcase_add_test(tcase, vsd_can_be_changed_while_the_queue_runs);
    suite_add_tcase(suite, tcase);
    return suite;
}
