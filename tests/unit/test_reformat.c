/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests how tunnel headers and VLAN tags are inserted and removed, byte by byte. */
#include "model/steering/reformat.h"
#include "tests/unit/steer_frames.h"
#include "tests/unit/suite.h"

#define FRAME_TAGS                                                                                 \
    "248a07a52801248a07a528c888a8006481000064080045000028000700004011"                             \
    "66bc0a0000020a00000103e807d000144066404142434445464748494a4b"

/* What software gives: the fields that the device fills in are anything. */
static const char vxlan4_given[] = "0200000000010200000000020800"
                                   "4500dead0000"
                                   "4000ff11beefc0000201c0000202"
                                   "04d212b5ffffdead"
                                   "0800000011223300";
/* What a frame of 54 bytes gets; IPv4's identification is 0x1234. */
static const char vxlan4_before[] = "0200000000010200000000020800"
                                    "4500005a1234"
                                    "4000ff11e55ac0000201c0000202";
static const char vxlan4_after[] = "12b5004600000800000011223300";

static const char geneve6_given[] =
    "0200000000010200000000028100000786dd"
    "60000000ffff1140"
    "20010db800000000000000000000000120010db8000000000000000000000002"
    "000017c100000000"
    "0000655811223300";
static const char geneve6_before[] =
    "0200000000010200000000028100000786dd"
    "6000000000461140"
    "20010db800000000000000000000000120010db8000000000000000000000002";
static const char geneve6_after[] = "17c1004600000000655811223300";

static const char gre_given[] = "0200000000010200000000020800"
                                "450000000000"
                                "0000402f0000c0000201c0000202"
                                "2000080000000055";
static const char gre_l3[] = "0200000000010200000000020800"
                             "450000441234"
                             "0000402fe453c0000201c0000202"
                             "2000080000000055"
                             "45000028000700004011"
                             "66bc0a0000020a00000103e807d000144066404142434445464748494a4b";

static struct steer_frame f;
static uint16_t ip_id;

static void setup(void)
{
    ip_id = 0x1234;
}

static bool encap(const char *headers, bool keep_l2)
{
    uint8_t bytes[256];
    size_t len = steer_hex(bytes, headers);

    return reformat_encap(&f.packet, bytes, len, keep_l2, &ip_id);
}

static bool decap_l3(size_t inner, const char *header)
{
    uint8_t bytes[64];
    size_t len = steer_hex(bytes, header);

    return reformat_decap_l3(&f.packet, inner, bytes, len);
}

/* Expects the bytes before and after a UDP source port of the range 0xc000 to 0xffff, which it
 * returns, and then the frame. */
static unsigned expect_tunnel(const char *before, const char *after, const char *frame)
{
    uint8_t bytes[512], *port;
    size_t len = steer_hex(bytes, before);

    port = bytes + len;
    memcpy(port, f.packet.bytes + len, 2);
    ck_assert_uint_ge(port[0], 0xc0);
    len += 2;
    len += steer_hex(bytes + len, after);
    len += steer_hex(bytes + len, frame);
    steer_expect(&f, bytes, len, before);
    return (unsigned)(port[0] << 8 | port[1]);
}

START_TEST(the_device_fills_in_what_a_tunnel_says_of_its_frame)
{
    steer_load(&f, FRAME_UDP4);
    ck_assert(encap(vxlan4_given, true));
    expect_tunnel(vxlan4_before, vxlan4_after, FRAME_UDP4);
    ck_assert_uint_eq(ip_id, 0x1235); /* the next frame's */

    steer_load(&f, FRAME_UDP4);
    ck_assert(encap(geneve6_given, true));
    expect_tunnel(geneve6_before, geneve6_after, FRAME_UDP4);
    ck_assert_uint_eq(ip_id, 0x1235); /* IPv6 has none */
}
END_TEST

/* RFC 7348 5: the source port is a hash of the inner headers, so that paths of equal cost share the
 * flows, and a flow keeps its path. */
START_TEST(the_source_port_tells_flows_apart)
{
    static const size_t at[] = {29, 33, 35, 37}; /* a byte of each address and port */
    unsigned port[G_N_ELEMENTS(at) + 1];
    unsigned first;

    steer_load(&f, FRAME_UDP4);
    ck_assert(encap(vxlan4_given, true));
    first = expect_tunnel(vxlan4_before, vxlan4_after, FRAME_UDP4);
    for (size_t i = 0; i < G_N_ELEMENTS(at); i++) {
        ip_id = 0x1234;
        steer_load(&f, FRAME_UDP4);
        f.packet.bytes[at[i]] ^= 0x40;
        ck_assert(encap(vxlan4_given, true));
        port[i] = (unsigned)(f.packet.bytes[34] << 8 | f.packet.bytes[35]);
        ck_assert_uint_ne(port[i], first);
    }
    ip_id = 0x1234;
    steer_load(&f, FRAME_UDP4);
    f.packet.bytes[19] ^= 0x40; /* the identification: another frame of the flow */
    ck_assert(encap(vxlan4_given, true));
    ck_assert_uint_eq((unsigned)(f.packet.bytes[34] << 8 | f.packet.bytes[35]), first);
}
END_TEST

START_TEST(an_l3_tunnel_takes_the_place_of_the_ethernet_header)
{
    steer_load(&f, FRAME_UDP4);
    ck_assert(encap(gre_given, false));
    steer_expect_hex(&f, gre_l3, "GRE");

    ip_id = 0x1234;
    steer_load(&f, FRAME_TAGS); /* the tags are removed, too */
    ck_assert(encap(gre_given, false));
    steer_expect_hex(&f, gre_l3, "GRE, two tags");
}
END_TEST

START_TEST(what_was_inserted_can_be_removed)
{
    steer_load(&f, FRAME_UDP4);
    ck_assert(encap(vxlan4_given, true));
    ck_assert(reformat_decap_l2(&f.packet, 50));
    steer_expect_hex(&f, FRAME_UDP4, "VXLAN");

    steer_load(&f, FRAME_UDP4);
    ck_assert(encap(gre_given, false));
    ck_assert(decap_l3(42, "248a07a52801248a07a528c80800"));
    steer_expect_hex(&f, FRAME_UDP4, "GRE");

    steer_load(&f, gre_l3); /* with two tags, more bytes than the tunnel had are inserted */
    ck_assert(decap_l3(42, "248a07a52801248a07a528c888a80064810000640800"));
    steer_expect_hex(&f, FRAME_TAGS, "GRE, two tags");
}
END_TEST

START_TEST(what_does_not_fit_changes_nothing)
{
    size_t room;

    steer_load(&f, FRAME_UDP4);
    f.packet.len = WIRE_FRAME_MAX - 49; /* of 50 */
    ck_assert(!encap(vxlan4_given, true));
    ck_assert(encap(gre_given, true)); /* 42 */
    f.packet.len = WIRE_FRAME_MAX - 3;
    ck_assert(!reformat_push_vlan(&f.packet, 0x8100, 1));

    steer_load(&f, FRAME_UDP4);
    while (encap(vxlan4_given, true)) {
    }
    room = f.packet.headroom;
    ck_assert_uint_lt(room, 50);
    while (reformat_push_vlan(&f.packet, 0x8100, 1)) {
        room -= 4;
    }
    ck_assert_uint_eq(f.packet.headroom, room);
    ck_assert_uint_lt(room, 4);

    steer_load(&f, FRAME_UDP4); /* 54 bytes */
    ck_assert(!reformat_decap_l2(&f.packet, 41));
    ck_assert(!reformat_decap_l2(&f.packet, SIZE_MAX));
    ck_assert(!decap_l3(54, "248a07a52801248a07a528c80800"));
    steer_expect_hex(&f, FRAME_UDP4, "refused");
    ck_assert(reformat_decap_l2(&f.packet, 40));
    ck_assert_uint_eq(f.packet.len, 14);

    steer_load(&f, "248a07a52801248a07"); /* no Ethernet header */
    ck_assert(!encap(gre_given, false));
    ck_assert(!reformat_decap_l2(&f.packet, 0));
    ck_assert(!reformat_push_vlan(&f.packet, 0x8100, 1));
    reformat_pop_vlan(&f.packet);
    steer_expect_hex(&f, "248a07a52801248a07", "a part of a header");
}
END_TEST

/* Headers that are no tunnel, or whose IP header is not whole, are inserted as they are. */
START_TEST(other_headers_stay_as_they_are)
{
    steer_load(&f, FRAME_UDP4);
    ck_assert(encap("020000000001020000000002"
                    "8847"
                    "00064140",
                    true));
    steer_expect_hex(&f,
                     "020000000001020000000002"
                     "8847"
                     "00064140" FRAME_UDP4,
                     "MPLS");
    steer_load(&f, FRAME_UDP4);
    ck_assert(encap("020000000001020000000002"
                    "0800"
                    "4500dead00004000ff11",
                    true));
    steer_expect_hex(&f,
                     "020000000001020000000002"
                     "0800"
                     "4500dead00004000ff11" FRAME_UDP4,
                     "half an IPv4 header");
    ck_assert_uint_eq(ip_id, 0x1234);
}
END_TEST

START_TEST(tags_are_pushed_and_popped_at_the_front)
{
    static const char plain[] = "248a07a52801248a07a528c80800";

    steer_load(&f, plain);
    reformat_pop_vlan(&f.packet);
    steer_expect_hex(&f, plain, "no tag");
    ck_assert(reformat_push_vlan(&f.packet, 0x8100, 0x6064));
    steer_expect_hex(&f, "248a07a52801248a07a528c8810060640800", "one tag");
    ck_assert(reformat_push_vlan(&f.packet, 0x88a8, 0x0007));
    steer_expect_hex(&f, "248a07a52801248a07a528c888a80007810060640800", "two tags");
    reformat_pop_vlan(&f.packet);
    steer_expect_hex(&f, "248a07a52801248a07a528c8810060640800", "one tag again");
    reformat_pop_vlan(&f.packet);
    steer_expect_hex(&f, plain, "no tag again");
}
END_TEST

Suite *unit_suite(void)
{
    Suite *s = suite_create("reformat");
    TCase *tc = tcase_create("reformat");

    tcase_add_checked_fixture(tc, setup, NULL);
    tcase_add_test(tc, the_device_fills_in_what_a_tunnel_says_of_its_frame);
    tcase_add_test(tc, the_source_port_tells_flows_apart);
    tcase_add_test(tc, an_l3_tunnel_takes_the_place_of_the_ethernet_header);
    tcase_add_test(tc, what_was_inserted_can_be_removed);
    tcase_add_test(tc, what_does_not_fit_changes_nothing);
    tcase_add_test(tc, other_headers_stay_as_they_are);
    tcase_add_test(tc, tags_are_pushed_and_popped_at_the_front);
    suite_add_tcase(s, tc);
    return s;
}
