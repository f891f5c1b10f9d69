/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests what an SQ fills in for packets in tunnels: checksums, and the segments of a large send.
 * Every expected frame is scapy's (tunnel_frames.py), compared byte by byte.
 */
#include <check.h>
#include <string.h>
#include "model/eth/eth_queue.h"
#include "model/eth/vxlan_ports.h"
#include "tests/unit/eth_bench.h"
#include "tests/unit/hex_frame.h"
#include "tests/unit/suite.h"
#include "wire/bytes.h"
#include "wire/encap/tunnel.h"

#define CS_ALL         0xf0

#define SWP_INNER_IPV6 0x01
#define SWP_INNER_UDP  0x02
#define SWP_OUTER_IPV6 0x10
#define SWP_OUTER_UDP  0x20

#define MSS            8
#define PAYLOAD        "abcdefghijklmnopqrst"

static const struct {
    const char *name, *hex;
} frames[] = {
#define FRAME(name, made_by, hex) {#name, hex},
#include "tests/unit/tunnel_frames.def"
#undef FRAME
};

static const struct message {
    const char *name;
    uint8_t cs_flags;
    const char *headers, *segments[3];
} messages[] = {
#define MESSAGE(name, cs_flags, made_by, headers, ...) {#name, cs_flags, headers, {__VA_ARGS__}},
#include "tests/unit/tunnel_segments.def"
#undef MESSAGE
};

static struct bench *b;
static struct bench_queue sq;

/* A frame of scapy's, to the other end of the cable. */
static struct hex_frame to_peer(const char *hex)
{
    struct hex_frame f = hex_frame(hex);

    memcpy(f.bytes, bench_peer_mac, 6);
    return f;
}

static void setup(void)
{
    b = bench_new();
    b->swp = true;
    bench_sq_new(b, b->tisn, &sq);
}

static void teardown(void)
{
    bench_free(b);
}

static void expect_frame(const char *name, unsigned n, const uint8_t *want, size_t len)
{
    const struct bench_frame *got = &b->frames[n];

    ck_assert_msg(n < b->num_frames, "%s: %u frames", name, b->num_frames);
    ck_assert_msg(got->len == MAX(len, 60), "%s: frame %u has %zu bytes", name, n, got->len);
    for (size_t i = 0; i < len; i++) {
        ck_assert_msg(got->data[i] == want[i], "%s: frame %u, byte %zu is 0x%02x, not 0x%02x", name,
                      n, i, got->data[i], want[i]);
    }
}

/* The checksum fields of a frame: outer L3 and L4, inner L3 and L4; 0: there is none. */
struct fields {
    size_t outer_l3, outer_l4, inner_l3, inner_l4;
};

static size_t l4_field(const struct eth_info *info)
{
    return info->l4 == ETH_L4_NONE ? 0 : info->l4_off + (info->l4 == ETH_L4_TCP ? 16 : 6);
}

static struct fields fields_of(const struct hex_frame *f)
{
    struct eth_info info;
    struct eth_tunnel t;

    ck_assert(eth_parse(f->bytes, f->len, &info));
    ck_assert(eth_tunnel_parse(f->bytes, &info, NULL, &t));
    return (struct fields){
        .outer_l3 = info.ip_version == 4 ? info.l3_off + 10 : 0,
        .outer_l4 = l4_field(&info),
        .inner_l3 = t.inner.ip_version == 4 ? t.inner.l3_off + 10 : 0,
        .inner_l4 = l4_field(&t.inner),
    };
}

static void spoil(struct hex_frame *f, size_t field)
{
    if (field) {
        put16(f->bytes + field, 0xdead);
    }
}

/* Sends the packet, with as much inline as the WQE has room for. */
static void send_packet(const struct hex_frame *f, struct bench_wr wr)
{
    b->num_frames = 0;
    wr.opcode = PRM_WQE_OPCODE_SEND;
    wr.hdr = f->bytes;
    wr.hdr_len = 18;
    wr.num_sge = 1;
    wr.sge[0] =
        (struct bench_sge){bench_mem(b, f->bytes + 18, f->len - 18), (uint32_t)f->len - 18, 0};
    bench_send(&sq, &wr);
}

/* cs_flags says which checksums are filled in; the others stay as they are. */
START_TEST(checksums_of_both_packets_are_filled_in)
{
    static const uint8_t flags[] = {
        CS_ALL, CS_L3, CS_L4, CS_L3_INNER, CS_L4_INNER, 0, CS_L3 | CS_L3_INNER | CS_L4_INNER};

    for (size_t i = 0; i < G_N_ELEMENTS(frames); i++) {
        for (size_t j = 0; j < G_N_ELEMENTS(flags); j++) {
            struct hex_frame want = to_peer(frames[i].hex), spoiled = want;
            struct fields at = fields_of(&want);

            /* an outer UDP checksum covers the inner ones: it is right if all are right */
            spoil(&want, flags[j] & CS_L3 ? 0 : at.outer_l3);
            spoil(&want, flags[j] & CS_L3_INNER ? 0 : at.inner_l3);
            spoil(&want, flags[j] & CS_L4_INNER ? 0 : at.inner_l4);
            spoil(&want, flags[j] & CS_L4 ? 0 : at.outer_l4);
            spoil(&spoiled, at.outer_l3);
            spoil(&spoiled, at.outer_l4);
            spoil(&spoiled, at.inner_l3);
            spoil(&spoiled, at.inner_l4);
            send_packet(&spoiled, (struct bench_wr){.cs_flags = flags[j]});
            if (flags[j] == CS_L4 && at.outer_l4) {
                struct eth_info info;

                ck_assert(eth_parse(b->frames[0].data, b->frames[0].len, &info));
                ck_assert(eth_csum_l4_ok(b->frames[0].data, &info));
                memcpy(want.bytes + at.outer_l4, b->frames[0].data + at.outer_l4, 2);
            }
            expect_frame(frames[i].name, 0, want.bytes, want.len);
            ck_assert_uint_eq(b->num_frames, 1);
            ck_assert_ptr_nonnull(bench_cqe(&sq));
        }
    }
}
END_TEST

/* VXLAN is expected at the ports that software has added. */
START_TEST(inner_checksums_need_a_port_that_the_device_knows)
{
    struct hex_frame want = to_peer(frames[0].hex), spoiled;
    struct fields at = fields_of(&want);

    put16(want.bytes + 36, 8472);
    spoil(&want, at.outer_l4);
    spoiled = want;
    spoil(&spoiled, at.inner_l3);
    spoil(&spoiled, at.inner_l4);
    send_packet(&spoiled, (struct bench_wr){.cs_flags = CS_L3_INNER | CS_L4_INNER});
    expect_frame("unknown port", 0, spoiled.bytes, spoiled.len);
    ck_assert_int_eq(vxlan_port_add(&b->rig.hca, 8472), SYN_OK);
    send_packet(&spoiled, (struct bench_wr){.cs_flags = CS_L3_INNER | CS_L4_INNER});
    expect_frame("added port", 0, want.bytes, want.len);
    ck_assert_int_eq(vxlan_port_delete(&b->rig.hca, 8472), SYN_OK);
    send_packet(&spoiled, (struct bench_wr){.cs_flags = CS_L3_INNER | CS_L4_INNER});
    expect_frame("deleted port", 0, spoiled.bytes, spoiled.len);
}
END_TEST

/* -- large send -------------------------------------------------------------------------------- */

static struct bench_wr large_send(const struct message *m, const struct hex_frame *headers)
{
    return (struct bench_wr){
        .opcode = PRM_WQE_OPCODE_TSO,
        .mss = MSS,
        .cs_flags = m->cs_flags,
        .hdr = headers->bytes,
        .hdr_len = headers->len,
        .num_sge = 1,
        .sge = {{bench_mem(b, PAYLOAD, 20), 20, 0}},
    };
}

static void expect_segments(const struct message *m)
{
    for (unsigned n = 0; n < 3; n++) {
        struct hex_frame want = to_peer(m->segments[n]);

        expect_frame(m->name, n, want.bytes, want.len);
    }
    ck_assert_uint_eq(b->num_frames, 3);
}

static const struct message *message(const char *name)
{
    for (size_t i = 0; i < G_N_ELEMENTS(messages); i++) {
        if (!strcmp(messages[i].name, name)) {
            return &messages[i];
        }
    }
    ck_abort_msg("no message %s", name);
    return NULL;
}

START_TEST(a_message_in_a_tunnel_becomes_segments)
{
    const struct message *m = &messages[_i];
    struct hex_frame headers = to_peer(m->headers);
    struct bench_wr wr = large_send(m, &headers);

    if (!strcmp(m->name, "unknown_port")) { /* see the next test */
        wr.swp[0] = 7;
        wr.swp[1] = 17;
        wr.swp[2] = 32;
        wr.swp[3] = 42;
        wr.swp_flags = SWP_OUTER_UDP;
    }
    bench_send(&sq, &wr);
    expect_segments(m);
    bench_expect(&sq, PRM_CQE_OPCODE_REQ, 0, 0);
}
END_TEST

static void expect_refused(const struct bench_wr *wr)
{
    bench_expect_failure(&sq, wr, PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR, 0);
}

START_TEST(a_message_whose_inner_headers_are_not_found_is_refused)
{
    const struct message *m = message("unknown_port");
    struct hex_frame headers = to_peer(m->headers);
    struct bench_wr wr = large_send(m, &headers);

    expect_refused(&wr); /* the device knows no tunnel at that port */
    m = message("vxlan");
    headers = to_peer(m->headers);
    for (size_t len = 43; len < headers.len; len++) { /* 42 is a UDP message, without a tunnel */
        wr = large_send(m, &headers);
        wr.hdr_len = len;
        expect_refused(&wr);
    }
}
END_TEST

/* -- software parser ---------------------------------------------------------------------------
 */

/* GENEVE at an unknown port, as a packet: the WQE says where the headers are. */
static struct hex_frame unknown(void)
{
    return to_peer(message("unknown_port")->segments[0]);
}

static struct bench_wr with_swp(void)
{
    return (struct bench_wr){
        .cs_flags = CS_L3 | CS_L3_INNER | CS_L4_INNER,
        .swp = {14 / 2, 34 / 2, 64 / 2, 84 / 2},
        .swp_flags = SWP_OUTER_UDP,
    };
}

START_TEST(software_says_where_headers_are)
{
    struct hex_frame want = unknown(), spoiled = want;
    struct bench_wr wr = with_swp();

    spoil(&spoiled, 14 + 10);
    spoil(&spoiled, 64 + 10);
    spoil(&spoiled, 84 + 16);
    send_packet(&spoiled, wr);
    expect_frame("swp", 0, want.bytes, want.len);
    bench_expect(&sq, PRM_CQE_OPCODE_REQ, 0, 0);
}
END_TEST

START_TEST(software_names_ipv6_and_udp_by_flags)
{
    static const struct {
        const char *name;
        uint8_t swp[4], flags;
    } rows[] = {
        {"vxlan_v6", {14 / 2, 54 / 2, 88 / 2, 128 / 2}, 0x33},
        {"geneve", {14 / 2, 34 / 2, 72 / 2, 112 / 2}, SWP_OUTER_UDP | SWP_INNER_IPV6},
        {"gre", {14 / 2, 0, 38 / 2, 58 / 2}, SWP_INNER_UDP},
        {"ip6in6", {14 / 2, 0, 54 / 2, 94 / 2}, SWP_OUTER_IPV6 | 0x03},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        for (size_t j = 0; j < G_N_ELEMENTS(frames); j++) {
            struct hex_frame want, spoiled;
            struct bench_wr wr = {.cs_flags = CS_ALL, .swp_flags = rows[i].flags};
            struct fields at;

            if (strcmp(frames[j].name, rows[i].name) != 0) {
                continue;
            }
            want = spoiled = to_peer(frames[j].hex);
            at = fields_of(&want);
            spoil(&spoiled, at.outer_l3);
            spoil(&spoiled, at.outer_l4);
            spoil(&spoiled, at.inner_l3);
            spoil(&spoiled, at.inner_l4);
            memcpy(wr.swp, rows[i].swp, 4);
            send_packet(&spoiled, wr);
            expect_frame(rows[i].name, 0, want.bytes, want.len);
        }
    }
}
END_TEST

/* The offsets do not count a tag that the device inserts (driver: mlx5e_eseg_swp_offsets_add_vlan()
 * only for tags that are in the headers). */
START_TEST(an_inserted_tag_does_not_move_the_headers)
{
    struct hex_frame want = unknown(), spoiled = want;
    struct bench_wr wr = with_swp();
    const uint8_t *frame = b->frames[0].data;

    for (int svlan = 0; svlan < 2; svlan++) {
        b->num_frames = 0;
        spoil(&spoiled, 14 + 10);
        spoil(&spoiled, 84 + 16);
        wr.opcode = PRM_WQE_OPCODE_SEND;
        wr.insert_vlan = true;
        wr.svlan = svlan;
        wr.vlan_tci = 0x2345;
        wr.num_sge = 1;
        wr.sge[0] =
            (struct bench_sge){bench_mem(b, spoiled.bytes, spoiled.len), (uint32_t)spoiled.len, 0};
        bench_send(&sq, &wr);
        ck_assert_uint_eq(b->frames[0].len, want.len + 4);
        ck_assert_mem_eq(frame, want.bytes, 12);
        ck_assert_uint_eq(get16(frame + 12), svlan ? 0x88a8 : 0x8100);
        ck_assert_uint_eq(get16(frame + 14), 0x2345);
        ck_assert_mem_eq(frame + 16, want.bytes + 12, want.len - 12);
        ck_assert_ptr_nonnull(bench_cqe(&sq));
    }
}
END_TEST

/* The same packet once, as the driver names it for IPsec without a tunnel: a large send adapts it
 * once. */
START_TEST(software_may_name_one_packet_twice)
{
    struct bench_pkt pkt = {.dmac = bench_peer_mac,
                            .ip_version = 4,
                            .proto = 6,
                            .id = 5,
                            .src = {10, 0, 0, 1},
                            .dst = {10, 0, 0, 2},
                            .tcp_flags = 0x10,
                            .seq = 1000,
                            .payload = 16};
    uint8_t frame[256];
    struct bench_wr wr = {
        .opcode = PRM_WQE_OPCODE_TSO,
        .mss = 8,
        .cs_flags = CS_L3 | CS_L3_INNER | CS_L4_INNER,
        .hdr = frame,
        .hdr_len = bench_headers(&pkt),
        .swp = {14 / 2, 0, 14 / 2, 34 / 2},
        .num_sge = 1,
    };
    size_t len = bench_build(frame, &pkt);

    wr.sge[0] = (struct bench_sge){bench_mem(b, frame + wr.hdr_len, 16), 16, 0};
    bench_send(&sq, &wr);
    ck_assert_uint_eq(b->num_frames, 2);
    for (unsigned i = 0; i < 2; i++) {
        ck_assert_uint_eq(b->frames[i].len, MAX(len - 8, 60));
        ck_assert_uint_eq(get16(b->frames[i].data + 18), 5 + i);
        ck_assert_uint_eq(get32(b->frames[i].data + 38), 1000 + 8 * i);
        ck_assert(bench_sums_ok(b->frames[i].data, len - 8));
    }
}
END_TEST

START_TEST(headers_that_are_not_where_software_says_are_refused)
{
    static const uint8_t bad[][4] = {
        {127, 0, 0, 0},                   /* behind the packet */
        {0, 0, 127, 0},  {0, 17, 0, 0},   /* a transport header of no packet */
        {0, 0, 0, 42},   {7, 16, 32, 42}, /* in the IP header */
        {7, 17, 32, 41}, {7, 17, 32, 55}, /* at the packet's end */
        {8, 17, 32, 42},                  /* no IP header is there */
        {7, 17, 33, 42}, {3, 0, 32, 42},  /* in the Ethernet header */
    };
    struct hex_frame f = unknown();
    struct bench_wr wr = with_swp();

    for (size_t i = 0; i < G_N_ELEMENTS(bad); i++) {
        memcpy(wr.swp, bad[i], 4);
        send_packet(&f, wr);
        bench_expect(&sq, PRM_CQE_OPCODE_REQ_ERR, PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR, 0);
        ck_assert_uint_eq(b->num_frames, 0);
        bench_sq_revive(&sq);
    }
    wr = with_swp();
    wr.swp_flags |= SWP_INNER_IPV6; /* the inner packet is IPv4 */
    send_packet(&f, wr);
    bench_expect(&sq, PRM_CQE_OPCODE_REQ_ERR, PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR, 0);
}
END_TEST

/* Without sqc.allow_swp the offsets mean nothing. */
START_TEST(an_sq_without_the_software_parser_parses_itself)
{
    struct hex_frame want = to_peer(frames[0].hex), spoiled = want;
    struct fields at = fields_of(&want);

    b->swp = false;
    bench_sq_new(b, b->tisn, &sq);
    spoil(&spoiled, at.inner_l4);
    send_packet(&spoiled, (struct bench_wr){.cs_flags = CS_L4_INNER, .swp = {9, 9, 9, 9}});
    expect_frame("no swp", 0, want.bytes, want.len);
    bench_expect(&sq, PRM_CQE_OPCODE_REQ, 0, 0);
}
END_TEST

/* An SQ of a generation that has no software parser cannot allow it. */
START_TEST(a_generation_without_it_refuses_such_an_sq)
{
    struct prm_sqc sqc[1] = {0};
    struct mem_buf buf = {0};
    uint32_t sqn;

    PRM_SET(sqc, sqc, cqn, sq.cqn);
    PRM_SET(wq, PRM_PTR(sqc, sqc, wq), pd, b->rig.pdn);
    b->rig.hca.limits.swp = b->rig.hca.limits.multi_packet = false;
    PRM_SET(sqc, sqc, allow_swp, 1);
    ck_assert_int_eq(eth_sq_create(&b->rig.hca, 0, sqc, &buf, 0, &sqn), SYN_ETH_WQ);
    PRM_SET(sqc, sqc, allow_swp, 0);
    PRM_SET(sqc, sqc, allow_multi_pkt_send_wqe, 1);
    ck_assert_int_eq(eth_sq_create(&b->rig.hca, 0, sqc, &buf, 0, &sqn), SYN_ETH_WQ);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("eth_tunnel_tx");
    TCase *tcase = tcase_create("eth_tunnel_tx");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, checksums_of_both_packets_are_filled_in);
    tcase_add_test(tcase, inner_checksums_need_a_port_that_the_device_knows);
    tcase_add_loop_test(tcase, a_message_in_a_tunnel_becomes_segments, 0,
                        (int)G_N_ELEMENTS(messages));
    tcase_add_test(tcase, a_message_whose_inner_headers_are_not_found_is_refused);
    tcase_add_test(tcase, software_says_where_headers_are);
    tcase_add_test(tcase, software_names_ipv6_and_udp_by_flags);
    tcase_add_test(tcase, an_inserted_tag_does_not_move_the_headers);
    tcase_add_test(tcase, software_may_name_one_packet_twice);
    tcase_add_test(tcase, headers_that_are_not_where_software_says_are_refused);
    tcase_add_test(tcase, an_sq_without_the_software_parser_parses_itself);
    tcase_add_test(tcase, a_generation_without_it_refuses_such_an_sq);
    suite_add_tcase(suite, tcase);
    return suite;
}
