/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests what a NIC finds in a frame that carries another packet. The frames are scapy's
 * (tunnel_frames.def).
 */
#include "tests/unit/hex_frame.h"
#include "tests/unit/suite.h"
#include "wire/encap/tunnel.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static struct hex_frame named(const char *name)
{
#define FRAME(frame_name, made_by, hex)                                                            \
    if (!strcmp(name, #frame_name)) {                                                              \
        return hex_frame(hex);                                                                     \
    }
#include "tests/unit/tunnel_frames.def"
#undef FRAME
    ck_abort_msg("no frame %s", name);
    return (struct hex_frame){0};
}

static struct eth_tunnel parse(const struct hex_frame *f)
{
    struct eth_tunnel tunnel;
    struct eth_info info;

    ck_assert(eth_parse(f->bytes, f->len, &info));
    ck_assert(eth_tunnel_possible(&info));
    ck_assert(eth_tunnel_parse(f->bytes, &info, NULL, &tunnel));
    return tunnel;
}

static bool has_tunnel(const struct hex_frame *f)
{
    struct eth_tunnel tunnel, zero;
    struct eth_info info;

    memset(&zero, 0, sizeof(zero));
    ck_assert(eth_parse(f->bytes, f->len, &info));
    if (eth_tunnel_parse(f->bytes, &info, NULL, &tunnel)) {
        return true;
    }
    ck_assert_mem_eq(&tunnel, &zero, sizeof(zero));
    return false;
}

/* The tunnel and the inner headers of each frame. */
START_TEST(each_kind_is_found_with_its_inner_packet)
{
    static const struct {
        const char *name;
        enum eth_tunnel_kind kind;
        uint32_t off, inner_off; /* of the tunnel's header and of the packet in it */
        bool inner_eth;
        uint16_t protocol;
        uint8_t ip_version;
        enum eth_l4 l4;
        uint32_t l3_off, l4_off; /* of the inner packet */
    } want[] = {
        {"vxlan", ETH_TUNNEL_VXLAN, 42, 50, true, 0x6558, 4, ETH_L4_TCP, 64, 84},
        {"vxlan_v6", ETH_TUNNEL_VXLAN, 62, 70, true, 0x6558, 6, ETH_L4_UDP, 88, 128},
        {"gpe", ETH_TUNNEL_VXLAN_GPE, 42, 50, false, 0x0800, 4, ETH_L4_UDP, 50, 70},
        {"geneve", ETH_TUNNEL_GENEVE, 42, 58, true, 0x6558, 6, ETH_L4_TCP, 72, 112},
        {"geneve_ip", ETH_TUNNEL_GENEVE, 62, 70, false, 0x0800, 4, ETH_L4_TCP, 70, 90},
        {"gre", ETH_TUNNEL_GRE, 34, 38, false, 0x0800, 4, ETH_L4_UDP, 38, 58},
        {"gre_all", ETH_TUNNEL_GRE, 34, 50, false, 0x86dd, 6, ETH_L4_TCP, 50, 90},
        {"nvgre", ETH_TUNNEL_GRE, 38, 46, true, 0x6558, 4, ETH_L4_TCP, 60, 80},
        {"gretap", ETH_TUNNEL_GRE, 54, 62, true, 0x6558, 6, ETH_L4_UDP, 76, 116},
        {"ip4in4", ETH_TUNNEL_IP, 34, 34, false, 0x0800, 4, ETH_L4_TCP, 34, 54},
        {"ip6in4", ETH_TUNNEL_IP, 34, 34, false, 0x86dd, 6, ETH_L4_TCP, 34, 74},
        {"ip4in6", ETH_TUNNEL_IP, 54, 54, false, 0x0800, 4, ETH_L4_UDP, 54, 74},
        {"ip6in6", ETH_TUNNEL_IP, 54, 54, false, 0x86dd, 6, ETH_L4_UDP, 54, 94},
        {"mpls", ETH_TUNNEL_MPLS, 14, 22, false, 0x0800, 4, ETH_L4_TCP, 22, 42},
        {"mpls_udp", ETH_TUNNEL_MPLS, 42, 46, false, 0x86dd, 6, ETH_L4_UDP, 46, 86},
        {"mpls_gre", ETH_TUNNEL_MPLS, 42, 46, false, 0x0800, 4, ETH_L4_UDP, 46, 66},
    };

    for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
        struct hex_frame f = named(want[i].name);
        struct eth_tunnel t = parse(&f);
        bool tcp = want[i].l4 == ETH_L4_TCP;

        ck_assert_msg(t.kind == want[i].kind, "%s: kind %d", want[i].name, t.kind);
        ck_assert_msg(t.off == want[i].off && t.inner_off == want[i].inner_off,
                      "%s: tunnel at %u, inner packet at %u", want[i].name, t.off, t.inner_off);
        ck_assert_msg(t.inner_eth == want[i].inner_eth && t.protocol == want[i].protocol,
                      "%s: protocol 0x%x", want[i].name, t.protocol);
        ck_assert_msg(t.inner.ip_version == want[i].ip_version && t.inner.l4 == want[i].l4,
                      "%s: inner IP version %u, l4 %d", want[i].name, t.inner.ip_version,
                      t.inner.l4);
        ck_assert_msg(t.inner.l3_off == want[i].l3_off && t.inner.l4_off == want[i].l4_off,
                      "%s: inner headers at %u and %u", want[i].name, t.inner.l3_off,
                      t.inner.l4_off);
        ck_assert(!t.inner.malformed && !t.inner.fragment);
        ck_assert_uint_eq(t.inner.payload_off, want[i].l4_off + (tcp ? 20 : 8));
        ck_assert_uint_eq(t.inner.ip_end, f.len);
        ck_assert_uint_eq(t.inner.frame_len, f.len);
        ck_assert_uint_eq(t.inner.sport, tcp ? 443 : 1000);
        ck_assert_uint_eq(t.inner.dport, tcp ? 50000 : 2000);
        /* scapy's checksums are right; a bit of payload makes them wrong */
        ck_assert(t.inner.ip_version == 6 || eth_csum_ipv4_ok(f.bytes, &t.inner));
        ck_assert(eth_csum_l4_ok(f.bytes, &t.inner));
        f.bytes[f.len - 1] ^= 1;
        ck_assert(!eth_csum_l4_ok(f.bytes, &t.inner));
    }
}
END_TEST

START_TEST(vxlan_has_a_network_identifier)
{
    struct hex_frame f = named("vxlan");
    struct eth_tunnel t = parse(&f);

    ck_assert_uint_eq(t.vni, 0xabcdef);
    ck_assert_uint_eq(t.flags, VXLAN_HAS_VNI);
    ck_assert_uint_eq(t.inner.vlan_count, 0);
    f = named("vxlan_v6");
    t = parse(&f);
    ck_assert_uint_eq(t.vni, 5);
    ck_assert_uint_eq(t.inner.vlan_count, 1);
    ck_assert_uint_eq(t.inner.vlan_tci[0], 9);
    f = named("gpe");
    t = parse(&f);
    ck_assert_uint_eq(t.vni, 0x123456);
    ck_assert_uint_eq(t.flags, VXLAN_HAS_VNI | VXLAN_GPE_HAS_PROTOCOL);
    ck_assert_uint_eq(t.next, 1);
}
END_TEST

START_TEST(vxlan_is_expected_at_the_ports_of_the_nic)
{
    struct eth_vxlan_ports ports = {.port = {4789, 8472}, .count = 2};
    struct hex_frame f = named("vxlan");
    struct eth_tunnel t;
    struct eth_info info;

    f.bytes[36] = 8472 >> 8;
    f.bytes[37] = 8472 & 255;
    eth_parse(f.bytes, f.len, &info);
    ck_assert(!eth_tunnel_parse(f.bytes, &info, NULL, &t));
    ck_assert(eth_tunnel_parse(f.bytes, &info, &ports, &t));
    ck_assert_int_eq(t.kind, ETH_TUNNEL_VXLAN);
    ck_assert_uint_eq(t.vni, 0xabcdef);
    ports.count = 1;
    ck_assert(!eth_tunnel_parse(f.bytes, &info, &ports, &t));
}
END_TEST

START_TEST(vxlan_gpe_says_what_it_carries)
{
    static const struct {
        uint8_t flags, next;
        uint16_t protocol;
    } rows[] = {
        {0x0c, 1, 0x0800}, {0x0c, 2, 0x86dd}, {0x0c, 3, 0x6558},
        {0x0c, 4, 0},      {0x08, 1, 0x6558}, /* without the P bit it is VXLAN */
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct hex_frame f = named("gpe");
        struct eth_tunnel t;

        f.bytes[42] = rows[i].flags;
        f.bytes[45] = rows[i].next;
        t = parse(&f);
        ck_assert_uint_eq(t.protocol, rows[i].protocol);
        ck_assert_uint_eq(t.inner.ip_version, i == 0 ? 4 : 0);
    }
}
END_TEST

START_TEST(geneve_has_options)
{
    struct hex_frame f = named("geneve");
    struct eth_tunnel t = parse(&f);

    ck_assert_uint_eq(t.vni, 0x102030);
    ck_assert_uint_eq(t.opt_len, 8);
    ck_assert(t.oam && t.critical);
    ck_assert_mem_eq(f.bytes + t.off + 12, "wxyz", 4);
    f = named("geneve_ip");
    t = parse(&f);
    ck_assert_uint_eq(t.vni, 7);
    ck_assert_uint_eq(t.opt_len, 0);
    ck_assert(!t.oam && !t.critical);
    f.bytes[62] |= 0x40; /* RFC 8926 3.4: the version is 0 */
    ck_assert(!has_tunnel(&f));
    f.bytes[62] = 0x3f; /* options as long as they may be, and longer than the packet */
    ck_assert(!has_tunnel(&f));
}
END_TEST

START_TEST(gre_has_optional_fields)
{
    struct hex_frame f = named("gre_all");
    struct eth_tunnel t = parse(&f);

    ck_assert_uint_eq(t.gre_flags, GRE_HAS_CSUM | GRE_HAS_KEY | GRE_HAS_SEQ);
    ck_assert_uint_eq(t.gre_key, 0x11223344);
    ck_assert_uint_eq(t.gre_seq, 0x55667788);
    ck_assert(!t.nvgre);
    f = named("gretap");
    t = parse(&f);
    ck_assert_uint_eq(t.gre_flags, GRE_HAS_SEQ);
    ck_assert_uint_eq(t.gre_seq, 9);
    ck_assert(!t.nvgre);
    f = named("nvgre"); /* RFC 7637 3.2: a key, no checksum, no sequence number */
    t = parse(&f);
    ck_assert(t.nvgre);
    ck_assert_uint_eq(t.vni, 0xabcdef);
    ck_assert_uint_eq(t.gre_key, 0xabcdef07);
    f.bytes[39] = 1; /* version 1: is read, but for frames with an acknowledgment */
    t = parse(&f);
    ck_assert_int_eq(t.kind, ETH_TUNNEL_GRE);
    ck_assert_uint_eq(t.gre_key, 0xabcdef07);
    ck_assert(!t.nvgre);
    f.bytes[39] = 0x81;
    ck_assert(!has_tunnel(&f));
    f.bytes[39] = 2;
    ck_assert(!has_tunnel(&f));
    f.bytes[39] = 0;
    f.bytes[38] |= 0x40; /* routing (RFC 1701) */
    ck_assert(!has_tunnel(&f));
}
END_TEST

START_TEST(mpls_has_a_stack)
{
    struct hex_frame f = named("mpls");
    struct eth_tunnel t = parse(&f);

    ck_assert_int_eq(t.over, ETH_MPLS_OVER_ETH);
    ck_assert_uint_eq(t.labels, 2);
    ck_assert_uint_eq(t.mpls, 0xabcdeu << 12 | 5 << 9 | 9);
    f = named("mpls_udp");
    t = parse(&f);
    ck_assert_int_eq(t.over, ETH_MPLS_OVER_UDP);
    ck_assert_uint_eq(t.mpls, 0x12345u << 12 | 1 << 8 | 64);
    f = named("mpls_gre");
    t = parse(&f);
    ck_assert_int_eq(t.over, ETH_MPLS_OVER_GRE);
    ck_assert_uint_eq(t.labels, 1);
    ck_assert_uint_eq(t.gre_key, 5);
    /* RFC 4023: the protocol number of MPLS */
    f = named("ip4in4");
    f.bytes[23] = 137;
    memcpy(f.bytes + 34, "\x00\x01\x01\x40", 4);
    t = parse(&f);
    ck_assert_int_eq(t.over, ETH_MPLS_OVER_IP);
    ck_assert_uint_eq(t.protocol, 0); /* what follows is no IP header */
    ck_assert_uint_eq(t.inner.ip_version, 0);
}
END_TEST

START_TEST(a_stack_without_a_bottom_is_no_tunnel)
{
    struct hex_frame f = {.len = 14 + 4 * 40};

    memcpy(f.bytes, "\x02\0\0\0\0\1\x02\0\0\0\0\2\x88\x47", 14);
    ck_assert(!has_tunnel(&f));
    f.bytes[14 + 4 * 8 + 2] = 1; /* the ninth entry: a NIC reads eight */
    ck_assert(!has_tunnel(&f));
    f.bytes[14 + 4 * 7 + 2] = 1;
    ck_assert(has_tunnel(&f));
    ck_assert_uint_eq(parse(&f).labels, 8);
}
END_TEST

START_TEST(fragments_and_plain_frames_have_no_tunnel)
{
    struct hex_frame f = named("vxlan");

    f.bytes[20] = 0x20; /* more fragments */
    ck_assert(!has_tunnel(&f));
    f = named("gre");
    f.bytes[21] = 8; /* an offset */
    ck_assert(!has_tunnel(&f));
    f = named("vxlan");
    f.bytes[37]--; /* another UDP port */
    f.bytes[37]--;
    ck_assert(!has_tunnel(&f));
    f = named("ip4in4");
    f.bytes[23] = 6;
    ck_assert(!has_tunnel(&f));
}
END_TEST

/* However a frame is cut, what the parser reports lies in the frame. */
START_TEST(headers_that_are_not_whole_are_no_tunnel)
{
    static const struct {
        const char *name, *hex;
    } frames[] = {
#define FRAME(frame_name, made_by, hex) {#frame_name, hex},
#include "tests/unit/tunnel_frames.def"
#undef FRAME
    };

    for (size_t i = 0; i < sizeof(frames) / sizeof(frames[0]); i++) {
        struct hex_frame f = hex_frame(frames[i].hex);
        struct eth_tunnel whole = parse(&f);

        for (size_t len = 14; len < f.len; len++) {
            uint8_t *cut = malloc(len); /* checkers see what is read behind it */
            struct eth_tunnel t;
            struct eth_info info;

            memcpy(cut, f.bytes, len);
            eth_parse(cut, len, &info);
            if (eth_tunnel_parse(cut, &info, NULL, &t)) {
                ck_assert_int_eq(t.kind, whole.kind);
                ck_assert_uint_le(t.inner_off, len);
                ck_assert_uint_le(t.inner.ip_end, len);
                ck_assert_uint_eq(t.inner.frame_len, len);
                ck_assert(!t.inner.ip_version || t.inner.malformed);
            } else {
                ck_assert_uint_lt(len, whole.inner_off);
            }
            free(cut);
        }
    }
}
END_TEST

/* The inner packet's length is limited by the outer packet, not by the frame. */
START_TEST(the_inner_packet_ends_with_the_outer_one)
{
    struct hex_frame f = named("ip4in4");
    struct eth_tunnel t;

    f.len += 10; /* padding */
    t = parse(&f);
    ck_assert_uint_eq(t.inner.ip_end, f.len - 10);
    ck_assert(!t.inner.malformed);
    f.bytes[14 + 20 + 3] += 5; /* the inner length is five bytes longer than the outer one allows */
    t = parse(&f);
    ck_assert_uint_eq(t.inner.ip_end, f.len - 10);
    ck_assert(t.inner.malformed);
}
END_TEST

/* Of a segmentation request only the headers are there, and their lengths say nothing. */
START_TEST(headers_alone_are_parsed)
{
    struct hex_frame f = named("vxlan");
    struct eth_tunnel t;
    struct eth_info info;
    size_t headers = 84 + 20;

    ck_assert(eth_parse_headers(f.bytes, headers, &info));
    ck_assert(eth_tunnel_parse_headers(f.bytes, &info, NULL, &t));
    ck_assert(!t.inner.malformed);
    ck_assert_int_eq(t.inner.l4, ETH_L4_TCP);
    ck_assert_uint_eq(t.inner.payload_off, headers);
    ck_assert_uint_eq(t.inner.ip_end, headers);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *s = suite_create("wire tunnel");
    TCase *tc = tcase_create("tunnel");

    tcase_add_test(tc, each_kind_is_found_with_its_inner_packet);
    tcase_add_test(tc, vxlan_has_a_network_identifier);
    tcase_add_test(tc, vxlan_is_expected_at_the_ports_of_the_nic);
    tcase_add_test(tc, vxlan_gpe_says_what_it_carries);
    tcase_add_test(tc, geneve_has_options);
    tcase_add_test(tc, gre_has_optional_fields);
    tcase_add_test(tc, mpls_has_a_stack);
    tcase_add_test(tc, a_stack_without_a_bottom_is_no_tunnel);
    tcase_add_test(tc, fragments_and_plain_frames_have_no_tunnel);
    tcase_add_test(tc, headers_that_are_not_whole_are_no_tunnel);
    tcase_add_test(tc, the_inner_packet_ends_with_the_outer_one);
    tcase_add_test(tc, headers_alone_are_parsed);
    suite_add_tcase(s, tc);
    return s;
}
