/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests what a CQE says of a frame with a tunnel, and the hash over its inner headers. The frames
 * are scapy's (tunnel_frames.py).
 */
#include <check.h>
#include <string.h>
#include "model/eth/tir.h"
#include "model/eth/vxlan_ports.h"
#include "tests/unit/eth_bench.h"
#include "tests/unit/hex_frame.h"
#include "tests/unit/suite.h"
#include "wire/bytes.h"
#include "wire/encap/tunnel.h"

#define IPS   (1u << PRM_RX_HASH_FIELD_SRC_IP | 1u << PRM_RX_HASH_FIELD_DST_IP)
#define PORTS (1u << PRM_RX_HASH_FIELD_L4_SPORT | 1u << PRM_RX_HASH_FIELD_L4_DPORT)

static const struct row {
    const char *name, *hex;
} frames[] = {
#define FRAME(name, made_by, hex) {#name, hex},
#include "tests/unit/tunnel_frames.def"
#undef FRAME
};

static const uint8_t key[TOEPLITZ_KEY_LEN] = {1,  2,  3,    4,  5,  0xaa, 7,  0x88,
                                              9,  10, 0x55, 12, 13, 0xc0, 15, 16,
                                              17, 18, 0xf1, 20, 21, 22,   23, 24};

static struct bench *b;
static struct bench_queue rq;
static uint32_t tirn;

/* A direct TIR that receives every frame. */
static void make_tir(bool tunnels, uint32_t outer_fields, uint32_t inner_fields, uint8_t version,
                     uint8_t proto)
{
    struct prm_tirc tirc[1] = {0};
    struct prm_rx_hash_field_select *outer = PRM_PTR(tirc, tirc, rx_hash_field_selector_outer),
                                    *inner = PRM_PTR(tirc, tirc, rx_hash_field_selector_inner);

    bench_rq_new(b, NULL, &rq);
    PRM_SET(tirc, tirc, inline_rqn, rq.num);
    PRM_SET(tirc, tirc, transport_domain, b->tdn);
    PRM_SET(tirc, tirc, tunneled_offload_en, tunnels);
    PRM_SET(tirc, tirc, rx_hash_fn, PRM_RX_HASH_FN_TOEPLITZ);
    memcpy(PRM_PTR(tirc, tirc, rx_hash_toeplitz_key), key, sizeof(key));
    PRM_SET(rx_hash_field_select, outer, selected_fields, outer_fields);
    PRM_SET(rx_hash_field_select, inner, selected_fields, inner_fields);
    PRM_SET(rx_hash_field_select, inner, l3_prot_type,
            version == 6 ? PRM_L3_PROT_TYPE_IPV6 : PRM_L3_PROT_TYPE_IPV4);
    PRM_SET(rx_hash_field_select, inner, l4_prot_type,
            proto == 17 ? PRM_L4_PROT_TYPE_UDP : PRM_L4_PROT_TYPE_TCP);
    ck_assert_int_eq(tir_create(&b->rig.hca, 0, tirc, &tirn), SYN_OK);
    bench_catch_all(b, tirn);
}

static const struct prm_cqe64 *receive(const struct hex_frame *f)
{
    const struct prm_cqe64 *cqe;

    bench_post_recv(&rq, bench_mem(b, NULL, BENCH_RX_SIZE), BENCH_RX_SIZE);
    bench_rx(b, f->bytes, f->len);
    cqe = bench_cqe(&rq);
    ck_assert_ptr_nonnull(cqe);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, opcode), PRM_CQE_OPCODE_RESP_SEND);
    return cqe;
}

static struct hex_frame named(const char *name)
{
    for (size_t i = 0; i < G_N_ELEMENTS(frames); i++) {
        if (!strcmp(frames[i].name, name)) {
            return hex_frame(frames[i].hex);
        }
    }
    ck_abort_msg("no frame %s", name);
    return (struct hex_frame){0};
}

static void setup(void)
{
    b = bench_new();
}

static void teardown(void)
{
    bench_free(b);
}

/* The CQE describes the inner packet. */
START_TEST(a_cqe_speaks_of_the_inner_headers)
{
    make_tir(true, 0, 0, 4, 6);
    for (size_t i = 0; i < G_N_ELEMENTS(frames); i++) {
        const char *name = frames[i].name;
        struct hex_frame f = hex_frame(frames[i].hex);
        const struct prm_cqe64 *cqe = receive(&f);
        bool outer_v4 = get16(f.bytes + 12) == 0x0800 || !strcmp(name, "nvgre");
        struct eth_info info;
        struct eth_tunnel t;

        eth_parse(f.bytes, f.len, &info);
        if (!strcmp(name, "mpls")) { /* there is no outer IP packet */
            ck_assert_uint_eq(PRM_GET(cqe64, cqe, tunneled), 0);
            continue;
        }
        ck_assert(eth_tunnel_parse(f.bytes, &info, NULL, &t));
        ck_assert_msg(PRM_GET(cqe64, cqe, tunneled), "%s", name);
        ck_assert_uint_eq(PRM_GET(cqe64, cqe, outer_l3_type), !outer_v4);
        ck_assert_msg(PRM_GET(cqe64, cqe, l3_ok) && PRM_GET(cqe64, cqe, l4_ok), "%s", name);
        ck_assert_uint_eq(PRM_GET(cqe64, cqe, l3_hdr_type), t.inner.ip_version == 4
                                                                ? PRM_CQE_L3_HDR_TYPE_IPV4
                                                                : PRM_CQE_L3_HDR_TYPE_IPV6);
        ck_assert_uint_eq(PRM_GET(cqe64, cqe, l4_hdr_type),
                          t.inner.l4 == ETH_L4_UDP ? PRM_CQE_L4_HDR_TYPE_UDP
                                                   : PRM_CQE_L4_HDR_TYPE_TCP_ACK_AND_DATA);
        /* the sum still covers the outer packet */
        ck_assert_uint_eq(PRM_GET(cqe64, cqe, check_sum),
                          bench_sum(f.bytes + info.l3_off, f.len - info.l3_off, 0));
    }
}
END_TEST

/* l3_ok and l4_ok: the stack is told that both levels were verified. */
START_TEST(a_wrong_checksum_of_either_packet_is_seen)
{
    static const struct {
        const char *name;
        size_t at;
        bool l3_ok, l4_ok;
    } rows[] = {
        {"vxlan", 14 + 10, false, true},  /* the outer IP header */
        {"vxlan", 64 + 10, false, false}, /* the inner one; the outer UDP checksum covers it */
        {"vxlan", 34 + 6, true, false},   /* outer UDP */
        {"vxlan", 84 + 16, true, false},  /* inner TCP */
        {"gre", 58 + 6, true, false},     {"gre", 38 + 10, false, true},
        {"ip6in4", 74 + 16, true, false}, {"geneve_ip", 54 + 6, true, false},
    };

    make_tir(true, 0, 0, 4, 6);
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        struct hex_frame f = named(rows[i].name);
        const struct prm_cqe64 *cqe;

        f.bytes[rows[i].at] ^= 0x10;
        cqe = receive(&f);
        ck_assert_msg(PRM_GET(cqe64, cqe, l3_ok) == rows[i].l3_ok &&
                          PRM_GET(cqe64, cqe, l4_ok) == rows[i].l4_ok,
                      "%s, byte %zu", rows[i].name, rows[i].at);
    }
}
END_TEST

/* RFC 768; RFC 6935 for IPv6. */
START_TEST(an_outer_udp_checksum_may_be_absent)
{
    const char *names[] = {"vxlan", "vxlan_v6"};

    make_tir(true, 0, 0, 4, 6);
    for (unsigned i = 0; i < 2; i++) {
        struct hex_frame f = named(names[i]);

        put16(f.bytes + (i ? 54 : 34) + 6, 0);
        ck_assert_uint_eq(PRM_GET(cqe64, receive(&f), l4_ok), 1);
    }
}
END_TEST

START_TEST(a_tir_that_does_not_look_into_tunnels_reports_the_outer_packet)
{
    struct hex_frame f = named("vxlan");
    const struct prm_cqe64 *cqe;

    make_tir(false, 0, 0, 4, 6);
    cqe = receive(&f);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, tunneled), 0);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, l4_hdr_type), PRM_CQE_L4_HDR_TYPE_UDP);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, l4_ok), 1);
}
END_TEST

START_TEST(an_inner_packet_that_is_not_ip_has_no_headers)
{
    struct hex_frame f = named("vxlan");
    const struct prm_cqe64 *cqe;

    make_tir(true, 0, 0, 4, 6);
    put16(f.bytes + 62, 0x0806); /* ARP */
    cqe = receive(&f);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, tunneled), 1);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, l3_ok), 0);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, l4_ok), 0);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, l3_hdr_type), 0);
}
END_TEST

/* -- receive-side scaling ---------------------------------------------------------------------- */

START_TEST(the_hash_covers_the_inner_headers)
{
    struct hex_frame f = named("vxlan"), gre = named("gre_all"), plain;
    const struct prm_cqe64 *cqe;
    uint8_t in[36];

    make_tir(true, 0, IPS | PORTS, 4, 6);
    cqe = receive(&f);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, rx_hash_result), toeplitz_hash(key, f.bytes + 76, 12));
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, rx_hash_type_l4), PRM_RSS_HASH_L4_TCP);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, rx_hash_type_ip), PRM_RSS_HASH_IP_IPV4);
    /* another kind of inner packet than the TIR's */
    cqe = receive(&gre);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, rx_hash_result), 0);
    /* a frame without a tunnel has no inner fields */
    plain = f;
    put16(plain.bytes + 36, 1);
    cqe = receive(&plain);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, rx_hash_result), 0);

    make_tir(true, 0, IPS | PORTS, 6, 6);
    cqe = receive(&gre);
    memcpy(in, gre.bytes + 58, 32);
    memcpy(in + 32, gre.bytes + 90, 4);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, rx_hash_result), toeplitz_hash(key, in, 36));
}
END_TEST

START_TEST(without_inner_fields_the_outer_ones_count)
{
    struct hex_frame f = named("vxlan");
    const struct prm_cqe64 *cqe;

    make_tir(true, IPS, 0, 4, 6);
    cqe = receive(&f);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, rx_hash_result), toeplitz_hash(key, f.bytes + 26, 8));
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, tunneled), 1);
}
END_TEST

/* MODIFY_TIR changes the inner fields with the outer ones. */
START_TEST(inner_fields_can_be_modified)
{
    struct hex_frame f = named("vxlan");
    struct prm_modify_tir_bitmask bitmask[1] = {0};
    struct prm_tirc tirc[1];
    void *inner = PRM_PTR(tirc, tirc, rx_hash_field_selector_inner);

    make_tir(true, 0, IPS | PORTS, 4, 6);
    ck_assert_int_eq(tir_query(&b->rig.hca, tirn, tirc), SYN_OK);
    ck_assert_uint_eq(PRM_GET(rx_hash_field_select, inner, selected_fields), IPS | PORTS);
    PRM_SET(rx_hash_field_select, inner, selected_fields, IPS);
    PRM_SET(modify_tir_bitmask, bitmask, hash, 1);
    ck_assert_int_eq(tir_modify(&b->rig.hca, 0, tirn, bitmask, tirc), SYN_OK);
    ck_assert_uint_eq(PRM_GET(cqe64, receive(&f), rx_hash_result),
                      toeplitz_hash(key, f.bytes + 76, 8));
    ck_assert_int_eq(tir_query(&b->rig.hca, tirn, tirc), SYN_OK);
    ck_assert_uint_eq(PRM_GET(rx_hash_field_select, inner, selected_fields), IPS);
}
END_TEST

START_TEST(inner_fields_need_a_tir_that_looks_into_tunnels)
{
    struct prm_tirc tirc[1];
    uint32_t another;

    make_tir(true, 0, IPS, 4, 6);
    ck_assert_int_eq(tir_query(&b->rig.hca, tirn, tirc), SYN_OK);
    ck_assert_int_eq(tir_create(&b->rig.hca, 0, tirc, &another), SYN_OK);
    PRM_SET(tirc, tirc, tunneled_offload_en, 0);
    ck_assert_int_eq(tir_create(&b->rig.hca, 0, tirc, &another), SYN_ETH_HASH);
}
END_TEST

START_TEST(a_device_that_reports_no_tunnels_refuses_such_a_tir)
{
    struct prm_tirc tirc[1];
    uint32_t another;

    make_tir(true, 0, 0, 4, 6);
    ck_assert_int_eq(tir_query(&b->rig.hca, tirn, tirc), SYN_OK);
    b->rig.hca.limits.tunnels = false;
    ck_assert_int_eq(tir_create(&b->rig.hca, 0, tirc, &another), SYN_ETH_TUNNELS);
    PRM_SET(tirc, tirc, tunneled_offload_en, 0);
    ck_assert_int_eq(tir_create(&b->rig.hca, 0, tirc, &another), SYN_OK);
}
END_TEST

/* -- ports of VXLAN ---------------------------------------------------------------------------- */

START_TEST(ports_of_vxlan_are_added_and_deleted)
{
    struct hca *hca = &b->rig.hca;
    struct hex_frame f = named("vxlan");

    make_tir(true, 0, 0, 4, 6);
    ck_assert_uint_eq(PRM_GET(cqe64, receive(&f), tunneled), 1); /* 4789, without a command */
    ck_assert_int_eq(vxlan_port_add(hca, 4789), SYN_OK);
    ck_assert_int_eq(vxlan_port_add(hca, 0), SYN_VXLAN_PORT);
    ck_assert_int_eq(vxlan_port_delete(hca, 8472), SYN_VXLAN_PORT);
    put16(f.bytes + 36, 8472);
    ck_assert_uint_eq(PRM_GET(cqe64, receive(&f), tunneled), 0);
    ck_assert_int_eq(vxlan_port_add(hca, 8472), SYN_OK);
    ck_assert_uint_eq(PRM_GET(cqe64, receive(&f), tunneled), 1);
    for (uint16_t port = 1; port <= ETH_VXLAN_PORTS_MAX - 2; port++) {
        ck_assert_int_eq(vxlan_port_add(hca, port), SYN_OK);
    }
    ck_assert_int_eq(vxlan_port_add(hca, 9999), SYN_LIMIT);
    ck_assert_int_eq(vxlan_port_delete(hca, 4789), SYN_OK);
    ck_assert_uint_eq(PRM_GET(cqe64, receive(&f), tunneled), 1);
    put16(f.bytes + 36, 4789);
    ck_assert_uint_eq(PRM_GET(cqe64, receive(&f), tunneled), 0);
    ck_assert_int_eq(vxlan_port_add(hca, 9999), SYN_OK);
}
END_TEST

/* -- sums -------------------------------------------------------------------------------------- */

/* cqe_checksum_full: everything that is stored behind the first 14 bytes, padding too. */
START_TEST(a_full_sum_covers_the_stored_frame)
{
    struct hex_frame f = named("gre"), arp = {.len = 60};

    b->rig.hca.limits.cqe_checksum_full = true;
    make_tir(true, 0, 0, 4, 6);
    memset(f.bytes + f.len, 0x77, 5);
    f.len += 5;
    ck_assert_uint_eq(PRM_GET(cqe64, receive(&f), check_sum),
                      bench_sum(f.bytes + 14, f.len - 14, 0));
    memcpy(arp.bytes, "\xff\xff\xff\xff\xff\xff\2\0\0\0\0\2\x08\x06\1\2\3\4\5", 19);
    ck_assert_uint_eq(PRM_GET(cqe64, receive(&arp), check_sum), bench_sum(arp.bytes + 14, 46, 0));
    memmove(arp.bytes + 16, arp.bytes + 12, 44);
    memcpy(arp.bytes + 12, "\x81\x00\x12\x34", 4); /* is stripped */
    ck_assert_uint_eq(PRM_GET(cqe64, receive(&arp), check_sum), bench_sum(arp.bytes + 18, 42, 0));
}
END_TEST

/* IEEE 802.1ad: an S-tag stays in the frame, and the checks look behind it. */
START_TEST(an_outer_s_tag_is_not_stripped)
{
    struct hex_frame f = named("nvgre");
    const struct prm_cqe64 *cqe;

    make_tir(true, 0, 0, 4, 6);
    memmove(f.bytes + 16, f.bytes + 12, f.len - 12);
    memcpy(f.bytes + 12, "\x88\xa8\x00\x05", 4);
    f.len += 4;
    cqe = receive(&f);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, cv), 0);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, byte_cnt), f.len);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, tunneled), 1);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, l4_ok), 1);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("eth_tunnel_rx");
    TCase *tcase = tcase_create("eth_tunnel_rx");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, a_cqe_speaks_of_the_inner_headers);
    tcase_add_test(tcase, a_wrong_checksum_of_either_packet_is_seen);
    tcase_add_test(tcase, an_outer_udp_checksum_may_be_absent);
    tcase_add_test(tcase, a_tir_that_does_not_look_into_tunnels_reports_the_outer_packet);
    tcase_add_test(tcase, an_inner_packet_that_is_not_ip_has_no_headers);
    tcase_add_test(tcase, the_hash_covers_the_inner_headers);
    tcase_add_test(tcase, without_inner_fields_the_outer_ones_count);
    tcase_add_test(tcase, inner_fields_can_be_modified);
    tcase_add_test(tcase, inner_fields_need_a_tir_that_looks_into_tunnels);
    tcase_add_test(tcase, a_device_that_reports_no_tunnels_refuses_such_a_tir);
    tcase_add_test(tcase, ports_of_vxlan_are_added_and_deleted);
    tcase_add_test(tcase, a_full_sum_covers_the_stored_frame);
    tcase_add_test(tcase, an_outer_s_tag_is_not_stripped);
    suite_add_tcase(suite, tcase);
    return suite;
}
