/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests what a NIC finds in a frame, its checksums, and the receive-side scaling hash.
 */
#include "wire/encap/eth.h"
#include "tests/unit/suite.h"

#include <arpa/inet.h>
#include <check.h>
#include <stdlib.h>
#include <string.h>

/* A frame put together from parts. */
struct frame {
    uint8_t bytes[512];
    size_t len;
};

static void add(struct frame *f, const void *bytes, size_t len)
{
    memcpy(f->bytes + f->len, bytes, len);
    f->len += len;
}

static void add16(struct frame *f, unsigned v)
{
    uint8_t b[2] = {(uint8_t)(v >> 8), (uint8_t)v};

    add(f, b, 2);
}

static void add_zeros(struct frame *f, size_t n)
{
    memset(f->bytes + f->len, 0, n);
    f->len += n;
}

static void start(struct frame *f, int tags, unsigned ethertype)
{
    f->len = 0;
    add(f, "\x02\x00\x00\x00\x00\x01\x02\x00\x00\x00\x00\x02", 12);
    if (tags == 2) {
        add(f, "\x88\xa8\x00\x64", 4);
    }
    if (tags >= 1) {
        add(f, "\x81\x00\xa1\x23", 4);
    }
    add16(f, ethertype);
}

static void add_ipv4(struct frame *f, uint8_t proto, size_t options, size_t payload)
{
    uint8_t ihl = (uint8_t)(0x45 + options / 4);

    add(f, &ihl, 1);
    add(f, "\xb8", 1);
    add16(f, (unsigned)(20 + options + payload));
    add(f, "\x12\x34\x00\x00\x3f", 5);
    add(f, &proto, 1);
    add(f, "\x00\x00\xc0\x00\x02\x01\xc6\x33\x64\x07", 10);
    memset(f->bytes + f->len, 1, options);
    f->len += options;
}

static void add_ipv6(struct frame *f, uint8_t next, size_t payload)
{
    add(f, "\x6b\x8f\xed\xcb", 4);
    add16(f, (unsigned)payload);
    add(f, &next, 1);
    add(f, "\x40", 1);
    add(f, "\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x01", 16);
    add(f, "\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\xff\x02", 16);
}

static void add_udp(struct frame *f, size_t payload)
{
    add(f, "\x30\x39\x00\x35", 4);
    add16(f, (unsigned)(8 + payload));
    add16(f, 0);
    for (size_t i = 0; i < payload; i++) {
        f->bytes[f->len++] = (uint8_t)(7 * i + 1);
    }
}

static void add_tcp(struct frame *f, size_t options, size_t payload)
{
    uint8_t doff = (uint8_t)((5 + options / 4) << 4 | 1);

    add(f, "\x01\xbb\xc0\x00\x11\x22\x33\x44\x55\x66\x77\x88", 12);
    add(f, &doff, 1);
    add(f, "\x12\xff\xff\x00\x00\x00\x00", 7);
    add_zeros(f, options);
    for (size_t i = 0; i < payload; i++) {
        f->bytes[f->len++] = (uint8_t)(5 * i + 3);
    }
}

/* RFC 1071, a word at a time. */
static uint16_t naive_sum(const uint8_t *p, size_t len)
{
    uint32_t sum = 0;

    for (size_t i = 0; i < len; i++) {
        sum += i % 2 ? p[i] : (uint32_t)p[i] << 8;
        sum = (sum & 0xffff) + (sum >> 16);
    }
    return (uint16_t)sum;
}

START_TEST(udp_over_ipv4)
{
    struct eth_info info;
    struct frame f;

    start(&f, 0, 0x0800);
    add_ipv4(&f, 17, 0, 8 + 10);
    add_udp(&f, 10);
    add_zeros(&f, 8); /* Ethernet's padding to 60 bytes */
    ck_assert(eth_parse(f.bytes, f.len, &info));
    ck_assert(!info.malformed && !info.fragment);
    ck_assert_uint_eq(info.frame_len, 60);
    ck_assert_uint_eq(info.vlan_count, 0);
    ck_assert_uint_eq(info.ethertype, ETH_TYPE_IPV4);
    ck_assert_uint_eq(info.ip_version, 4);
    ck_assert_uint_eq(info.proto, 17);
    ck_assert_uint_eq(info.tos, 0xb8);
    ck_assert_uint_eq(info.ttl, 63);
    ck_assert_int_eq(info.l4, ETH_L4_UDP);
    ck_assert_uint_eq(info.sport, 12345);
    ck_assert_uint_eq(info.dport, 53);
    ck_assert_uint_eq(info.l3_off, 14);
    ck_assert_uint_eq(info.l4_off, 34);
    ck_assert_uint_eq(info.payload_off, 42);
    ck_assert_uint_eq(info.ip_end, 52);
}
END_TEST

START_TEST(tcp_over_ipv4_with_options_and_a_tag)
{
    struct eth_info info;
    struct frame f;

    start(&f, 1, 0x0800);
    add_ipv4(&f, 6, 8, 20 + 12 + 33);
    add_tcp(&f, 12, 33);
    ck_assert(eth_parse(f.bytes, f.len, &info));
    ck_assert_uint_eq(info.vlan_count, 1);
    ck_assert_uint_eq(info.vlan_tpid[0], 0x8100);
    ck_assert_uint_eq(info.vlan_tci[0], 0xa123);
    ck_assert_int_eq(info.l4, ETH_L4_TCP);
    ck_assert_uint_eq(info.sport, 443);
    ck_assert_uint_eq(info.dport, 0xc000);
    ck_assert_uint_eq(info.tcp_flags, 0x100 | TCP_SYN | TCP_ACK);
    ck_assert_uint_eq(info.l3_off, 18);
    ck_assert_uint_eq(info.l4_off, 18 + 28);
    ck_assert_uint_eq(info.payload_off, 18 + 28 + 32);
    ck_assert_uint_eq(info.ip_end, f.len);
}
END_TEST

START_TEST(tcp_over_ipv6_behind_two_tags)
{
    struct eth_info info;
    struct frame f;

    start(&f, 2, 0x86dd);
    add_ipv6(&f, 6, 20 + 5);
    add_tcp(&f, 0, 5);
    ck_assert(eth_parse(f.bytes, f.len, &info));
    ck_assert_uint_eq(info.vlan_count, 2);
    ck_assert_uint_eq(info.vlan_tpid[0], 0x88a8);
    ck_assert_uint_eq(info.vlan_tci[0], 0x64);
    ck_assert_uint_eq(info.vlan_tpid[1], 0x8100);
    ck_assert_uint_eq(info.vlan_tci[1], 0xa123);
    ck_assert_uint_eq(info.ip_version, 6);
    ck_assert_uint_eq(info.tos, 0xb8);
    ck_assert_uint_eq(info.flow_label, 0xfedcb);
    ck_assert_uint_eq(info.ttl, 64);
    ck_assert_int_eq(info.l4, ETH_L4_TCP);
    ck_assert_uint_eq(info.l4_off, 22 + 40);
}
END_TEST

/* RFC 8200 4.1: the upper layer is behind the extension headers. */
START_TEST(ipv6_extension_headers_are_skipped)
{
    struct eth_info info;
    struct frame f;

    start(&f, 0, 0x86dd);
    add_ipv6(&f, 0, 8 + 16 + 12 + 8 + 4);
    add(&f, "\x3c\x00\0\0\0\0\0\0", 8);                  /* hop by hop, 8 bytes */
    add(&f, "\x33\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 16); /* destination, 16 */
    add(&f, "\x11\x01\0\0\0\0\0\1\0\0\0\1", 12);         /* AH, 12 */
    add_udp(&f, 4);
    ck_assert(eth_parse(f.bytes, f.len, &info));
    ck_assert_uint_eq(info.proto, 17);
    ck_assert_int_eq(info.l4, ETH_L4_UDP);
    ck_assert_uint_eq(info.l4_off, 14 + 40 + 36);
    ck_assert_uint_eq(info.dport, 53);
}
END_TEST

/* A NIC reads only so many bytes of a frame: everything behind them is IP's payload, of no known
 * kind. */
START_TEST(headers_are_looked_for_at_the_beginning)
{
    struct eth_info info;
    struct frame f;

    for (unsigned ext = 8; ext <= 400; ext += 8) {
        uint8_t first[2] = {17, (uint8_t)(ext / 8 - 1)};

        start(&f, 0, 0x86dd);
        add_ipv6(&f, 60, ext + 8 + 4);
        add(&f, first, 2);
        add_zeros(&f, ext - 2);
        add_udp(&f, 4);
        ck_assert(eth_parse(f.bytes, f.len, &info));
        ck_assert(!info.malformed);
        ck_assert_uint_eq(info.ip_version, 6);
        ck_assert_uint_eq(info.l4_off, 14 + 40 + ext);
        ck_assert_int_eq(info.l4, 14 + 40 + ext + 20 <= 256 ? ETH_L4_UDP : ETH_L4_NONE);
    }
}
END_TEST

START_TEST(fragments_have_no_l4)
{
    struct eth_info info;
    struct frame f;

    start(&f, 0, 0x0800);
    add_ipv4(&f, 17, 0, 16);
    add_udp(&f, 8);
    f.bytes[20] = 0x20; /* more fragments */
    ck_assert(eth_parse(f.bytes, f.len, &info));
    ck_assert(info.fragment && !info.malformed);
    ck_assert_uint_eq(info.ip_version, 4);
    ck_assert_uint_eq(info.proto, 17);
    ck_assert_int_eq(info.l4, ETH_L4_NONE);
    f.bytes[20] = 0;
    f.bytes[21] = 1; /* an offset */
    ck_assert(eth_parse(f.bytes, f.len, &info));
    ck_assert(info.fragment && info.l4 == ETH_L4_NONE);
    f.bytes[20] = 0x40; /* DF is not a fragment */
    f.bytes[21] = 0;
    ck_assert(eth_parse(f.bytes, f.len, &info));
    ck_assert(!info.fragment && info.l4 == ETH_L4_UDP);

    start(&f, 0, 0x86dd);
    add_ipv6(&f, 44, 8 + 16);
    add(&f, "\x11\x00\x00\x01\0\0\0\7", 8); /* M flag */
    add_udp(&f, 8);
    ck_assert(eth_parse(f.bytes, f.len, &info));
    ck_assert(info.fragment && info.proto == 17 && info.l4 == ETH_L4_NONE);
    /* RFC 6946: offset 0 and no more is a whole packet. */
    f.bytes[14 + 40 + 3] = 0;
    ck_assert(eth_parse(f.bytes, f.len, &info));
    ck_assert(!info.fragment && info.l4 == ETH_L4_UDP);
}
END_TEST

START_TEST(a_frame_of_arp_is_not_ip)
{
    struct eth_info info;
    struct frame f;

    start(&f, 0, 0x0806);
    add_zeros(&f, 46);
    ck_assert(eth_parse(f.bytes, f.len, &info));
    ck_assert_uint_eq(info.ethertype, ETH_TYPE_ARP);
    ck_assert_uint_eq(info.ip_version, 0);
    ck_assert(!info.malformed);
    ck_assert(!eth_parse(f.bytes, 13, &info));
    ck_assert_uint_eq(info.frame_len, 13);
}
END_TEST

START_TEST(contradicting_lengths_are_malformed)
{
    struct eth_info info;
    struct frame f;

    start(&f, 0, 0x0800);
    add_ipv4(&f, 6, 0, 20);
    add_tcp(&f, 0, 0);
    f.bytes[14 + 20 + 12] = 0x40; /* data offset below 5 */
    ck_assert(eth_parse(f.bytes, f.len, &info));
    ck_assert(info.malformed && info.ip_version == 4 && info.l4 == ETH_L4_NONE);
    f.bytes[14 + 20 + 12] = 0x60; /* beyond the packet */
    ck_assert(eth_parse(f.bytes, f.len, &info));
    ck_assert(info.malformed && info.l4 == ETH_L4_NONE);
    f.bytes[14 + 20 + 12] = 0x50;
    f.bytes[17] = 41; /* IP longer than the frame */
    ck_assert(eth_parse(f.bytes, f.len, &info));
    ck_assert(info.malformed && info.ip_version == 4 && info.l4 == ETH_L4_TCP);
    ck_assert_uint_eq(info.ip_end, f.len);
    f.bytes[17] = 19; /* shorter than its header */
    ck_assert(eth_parse(f.bytes, f.len, &info));
    ck_assert(info.malformed && info.ip_version == 0);
    f.bytes[17] = 40;
    f.bytes[14] = 0x44;
    ck_assert(eth_parse(f.bytes, f.len, &info));
    ck_assert(info.malformed && info.ip_version == 0);
    f.bytes[14] = 0x65;
    ck_assert(eth_parse(f.bytes, f.len, &info));
    ck_assert(info.malformed && info.ip_version == 0);
}
END_TEST

/* Every prefix of every kind of frame, in memory of exactly its size: the offsets stay inside, and
 * so do the checksum functions. */
START_TEST(truncations_stay_inside)
{
    struct frame f;

    for (int kind = 0; kind < 4; kind++) {
        start(&f, kind % 3, kind & 1 ? 0x86dd : 0x0800);
        if (kind & 1) {
            add_ipv6(&f, 0, 8 + (kind & 2 ? 40 : 20));
            add(&f, kind & 2 ? "\x11\0\0\0\0\0\0\0" : "\x06\0\0\0\0\0\0\0", 8);
        } else {
            add_ipv4(&f, kind & 2 ? 17 : 6, 4, kind & 2 ? 40 : 20);
        }
        if (kind & 2) {
            add_udp(&f, 32);
        } else {
            add_tcp(&f, 0, 0);
        }
        for (size_t len = 0; len <= f.len; len++) {
            uint8_t *piece = malloc(len ? len : 1);
            struct eth_info info;

            memcpy(piece, f.bytes, len);
            ck_assert(eth_parse(piece, len, &info) == (len >= 14));
            ck_assert(len == f.len ? !info.malformed && info.l4 : info.malformed || !info.l4);
            ck_assert(info.ip_end <= len && info.l4_off <= len && info.payload_off <= len);
            ck_assert_uint_le(info.ip_end, len);
            eth_csum_fill_ipv4(piece, &info);
            eth_csum_fill_l4(piece, &info);
            ck_assert(eth_csum_l4_ok(piece, &info) == (len == f.len));

            eth_parse_headers(piece, len, &info);
            ck_assert_uint_le(info.ip_end, len);
            ck_assert_uint_le(info.l4_off, len);
            ck_assert_uint_le(info.payload_off, len);
            free(piece);
        }
    }
}
END_TEST

/* A segmentation request's headers come without the payload that their lengths may mention. */
START_TEST(headers_alone)
{
    struct eth_info info;
    struct frame f;

    start(&f, 0, 0x0800);
    add_ipv4(&f, 6, 0, 20);
    add_tcp(&f, 12, 0);
    f.bytes[16] = 0xff; /* total length 65 thousand, and after that 0 */
    f.bytes[17] = 0xff;
    ck_assert(eth_parse_headers(f.bytes, f.len, &info));
    ck_assert(info.l4 == ETH_L4_TCP && info.payload_off == f.len && info.ip_end == f.len);
    f.bytes[16] = f.bytes[17] = 0;
    ck_assert(eth_parse_headers(f.bytes, f.len, &info));
    ck_assert(info.l4 == ETH_L4_TCP && info.payload_off == f.len);
    start(&f, 0, 0x86dd);
    add_ipv6(&f, 6, 0);
    add_tcp(&f, 0, 0);
    ck_assert(eth_parse_headers(f.bytes, f.len, &info));
    ck_assert(info.l4 == ETH_L4_TCP && info.payload_off == f.len);
}
END_TEST

START_TEST(ones_complement_sum)
{
    /* RFC 1071 3. */
    static const uint8_t rfc[] = {0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7};
    uint8_t bytes[300];

    ck_assert_uint_eq(csum_partial(rfc, sizeof(rfc)), 0xddf2);
    for (size_t i = 0; i < sizeof(bytes); i++) {
        bytes[i] = (uint8_t)(i % 5 ? 0xff - i % 3 : i * 31);
    }
    for (size_t at = 0; at < 9; at++) {
        for (size_t len = 0; len + at <= sizeof(bytes); len++) {
            if (csum_partial(bytes + at, len) != naive_sum(bytes + at, len)) {
                ck_abort_msg("at %zu length %zu", at, len);
            }
        }
    }
    memset(bytes, 0xff, sizeof(bytes));
    ck_assert_uint_eq(csum_partial(bytes, sizeof(bytes)), 0xffff);
    ck_assert_uint_eq(csum_add(0xffff, 1), 1);
    ck_assert_uint_eq(csum_add(0x8000, 0x8001), 2);
}
END_TEST

START_TEST(ipv4_header_checksum)
{
    /* The sample header that the literature uses: checksum b861. */
    static const uint8_t header[] = {0x45, 0x00, 0x00, 0x73, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11,
                                     0xb8, 0x61, 0xc0, 0xa8, 0x00, 0x01, 0xc0, 0xa8, 0x00, 0xc7};
    struct eth_info info;
    struct frame f;

    start(&f, 0, 0x0800);
    add(&f, header, sizeof(header));
    add_zeros(&f, 0x73 - 20);
    ck_assert(eth_parse(f.bytes, f.len, &info));
    ck_assert(eth_csum_ipv4_ok(f.bytes, &info));
    f.bytes[24] = 0x12;
    ck_assert(!eth_csum_ipv4_ok(f.bytes, &info));
    eth_csum_fill_ipv4(f.bytes, &info);
    ck_assert_mem_eq(f.bytes + 14, header, sizeof(header));
    /* Without IPv4 there is no checksum to be right. */
    start(&f, 0, 0x86dd);
    add_ipv6(&f, 59, 0);
    ck_assert(eth_parse(f.bytes, f.len, &info));
    ck_assert(!eth_csum_ipv4_ok(f.bytes, &info));
}
END_TEST

/* RFC 9293 3.1, RFC 768, RFC 8200 8.1: over addresses, protocol, length, header and data. */
START_TEST(l4_checksums)
{
    for (int kind = 0; kind < 4; kind++) {
        for (size_t payload = 0; payload < 40; payload++) {
            bool ipv6 = kind & 1, udp = kind & 2;
            size_t l4_len = (udp ? 8 : 20) + payload, off;
            uint8_t pseudo[40 + 64] = {0};
            struct eth_info info;
            struct frame f;

            start(&f, 0, ipv6 ? 0x86dd : 0x0800);
            if (ipv6) {
                add_ipv6(&f, udp ? 17 : 6, l4_len);
            } else {
                add_ipv4(&f, udp ? 17 : 6, 0, l4_len);
            }
            if (udp) {
                add_udp(&f, payload);
            } else {
                add_tcp(&f, 0, payload);
            }
            add(&f, "\xa5\x5a\xa5\x5a\xa5", 5); /* padding is not covered */
            ck_assert(eth_parse(f.bytes, f.len, &info));
            eth_csum_fill_l4(f.bytes, &info);
            ck_assert(eth_csum_l4_ok(f.bytes, &info));

            off = info.l4_off;
            memcpy(pseudo, f.bytes + (ipv6 ? 22 : 26), ipv6 ? 32 : 8);
            pseudo[35] = (uint8_t)l4_len;
            pseudo[39] = udp ? 17 : 6;
            memcpy(pseudo + 40, f.bytes + off, l4_len);
            ck_assert_uint_eq(naive_sum(pseudo, 40 + l4_len), 0xffff);

            for (size_t at = off; at < off + l4_len; at++) {
                if (udp && (at == off + 4 || at == off + 5)) {
                    continue; /* UDP's own length is another test's */
                }
                f.bytes[at] ^= 0x10;
                ck_assert(!eth_csum_l4_ok(f.bytes, &info));
                f.bytes[at] ^= 0x10;
            }
        }
    }
}
END_TEST

START_TEST(udp_without_a_checksum)
{
    struct eth_info info;
    struct frame f;

    /* RFC 768: the sender made none. */
    start(&f, 0, 0x0800);
    add_ipv4(&f, 17, 0, 12);
    add_udp(&f, 4);
    ck_assert(eth_parse(f.bytes, f.len, &info));
    ck_assert(eth_csum_l4_ok(f.bytes, &info));
    /* RFC 8200 8.1: not with IPv6. */
    start(&f, 0, 0x86dd);
    add_ipv6(&f, 17, 12);
    add_udp(&f, 4);
    ck_assert(eth_parse(f.bytes, f.len, &info));
    ck_assert(!eth_csum_l4_ok(f.bytes, &info));
}
END_TEST

/* RFC 768: a sum of 0 is sent as ffff. */
START_TEST(udp_checksum_is_never_sent_as_zero)
{
    struct eth_info info;
    struct frame f;
    uint16_t sum;

    start(&f, 0, 0x0800);
    add_ipv4(&f, 17, 0, 10);
    add_udp(&f, 2);
    ck_assert(eth_parse(f.bytes, f.len, &info));
    eth_csum_fill_l4(f.bytes, &info);
    /* Data that replaces the checksum makes the rest sum up to 0. */
    sum = (uint16_t)(f.bytes[40] << 8 | f.bytes[41]);
    sum = csum_add(sum, (uint16_t)(f.bytes[42] << 8 | f.bytes[43]));
    f.bytes[42] = (uint8_t)(sum >> 8);
    f.bytes[43] = (uint8_t)sum;
    eth_csum_fill_l4(f.bytes, &info);
    ck_assert_uint_eq(f.bytes[40] << 8 | f.bytes[41], 0xffff);
    ck_assert(eth_csum_l4_ok(f.bytes, &info));
}
END_TEST

START_TEST(udp_length_must_fit)
{
    struct eth_info info;
    struct frame f;

    start(&f, 0, 0x0800);
    add_ipv4(&f, 17, 0, 12);
    add_udp(&f, 4);
    f.bytes[39] = 13;
    ck_assert(eth_parse(f.bytes, f.len, &info));
    ck_assert(!eth_csum_l4_ok(f.bytes, &info));
    eth_csum_fill_l4(f.bytes, &info);
    ck_assert_uint_eq(f.bytes[40] | f.bytes[41], 0);
    f.bytes[39] = 7;
    ck_assert(!eth_csum_l4_ok(f.bytes, &info));
}
END_TEST

/* The verification suite that Microsoft publishes with "RSS hashing functions". */
static const uint8_t rss_key[40] = {
    0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3,
    0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3,
    0x80, 0x30, 0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
};

static const struct {
    int family;
    const char *dst, *src;
    unsigned dport, sport;
    uint32_t addresses, with_ports;
} rss[] = {
    {AF_INET, "161.142.100.80", "66.9.149.187", 1766, 2794, 0x323e8fc2, 0x51ccc178},
    {AF_INET, "65.69.140.83", "199.92.111.2", 4739, 14230, 0xd718262a, 0xc626b0ea},
    {AF_INET, "12.22.207.184", "24.19.198.95", 38024, 12898, 0xd2d0a5de, 0x5c2b394a},
    {AF_INET, "209.142.163.6", "38.27.205.30", 2217, 48228, 0x82989176, 0xafc7327f},
    {AF_INET, "202.188.127.2", "153.39.163.191", 1303, 44251, 0x5d1809c5, 0x10e828a2},
    {AF_INET6, "3ffe:2501:200:3::1", "3ffe:2501:200:1fff::7", 1766, 2794, 0x2cc18cd5, 0x40207d3d},
    {AF_INET6, "ff02::1", "3ffe:501:8::260:97ff:fe40:efab", 4739, 14230, 0x0f0c461c, 0xdde51bbf},
    {AF_INET6, "fe80::200:f8ff:fe21:67cf", "3ffe:1900:4545:3:200:f8ff:fe21:67cf", 38024, 44251,
     0x4b61e985, 0x02d1feef},
};

START_TEST(toeplitz_known_answers)
{
    size_t alen = rss[_i].family == AF_INET ? 4 : 16;
    struct toeplitz_table table;
    uint8_t in[36];

    ck_assert_int_eq(inet_pton(rss[_i].family, rss[_i].src, in), 1);
    ck_assert_int_eq(inet_pton(rss[_i].family, rss[_i].dst, in + alen), 1);
    in[2 * alen] = (uint8_t)(rss[_i].sport >> 8);
    in[2 * alen + 1] = (uint8_t)rss[_i].sport;
    in[2 * alen + 2] = (uint8_t)(rss[_i].dport >> 8);
    in[2 * alen + 3] = (uint8_t)rss[_i].dport;
    ck_assert_uint_eq(toeplitz_hash(rss_key, in, 2 * alen), rss[_i].addresses);
    ck_assert_uint_eq(toeplitz_hash(rss_key, in, 2 * alen + 4), rss[_i].with_ports);
    toeplitz_table_init(&table, rss_key);
    ck_assert_uint_eq(toeplitz_table_hash(&table, in, 2 * alen), rss[_i].addresses);
    ck_assert_uint_eq(toeplitz_table_hash(&table, in, 2 * alen + 4), rss[_i].with_ports);
}
END_TEST

START_TEST(toeplitz_looks_at_36_bytes)
{
    uint8_t in[48];

    memset(in, 0x5a, sizeof(in));
    ck_assert_uint_eq(toeplitz_hash(rss_key, in, 48), toeplitz_hash(rss_key, in, 36));
    ck_assert_uint_eq(toeplitz_hash(rss_key, in, 0), 0);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *s = suite_create("wire eth");
    TCase *tc = tcase_create("eth");

    tcase_add_test(tc, udp_over_ipv4);
    tcase_add_test(tc, tcp_over_ipv4_with_options_and_a_tag);
    tcase_add_test(tc, tcp_over_ipv6_behind_two_tags);
    tcase_add_test(tc, ipv6_extension_headers_are_skipped);
    tcase_add_test(tc, headers_are_looked_for_at_the_beginning);
    tcase_add_test(tc, fragments_have_no_l4);
    tcase_add_test(tc, a_frame_of_arp_is_not_ip);
    tcase_add_test(tc, contradicting_lengths_are_malformed);
    tcase_add_test(tc, truncations_stay_inside);
    tcase_add_test(tc, headers_alone);
    tcase_add_test(tc, ones_complement_sum);
    tcase_add_test(tc, ipv4_header_checksum);
    tcase_add_test(tc, l4_checksums);
    tcase_add_test(tc, udp_without_a_checksum);
    tcase_add_test(tc, udp_checksum_is_never_sent_as_zero);
    tcase_add_test(tc, udp_length_must_fit);
    tcase_add_loop_test(tc, toeplitz_known_answers, 0, (int)(sizeof(rss) / sizeof(rss[0])));
    tcase_add_test(tc, toeplitz_looks_at_36_bytes);
    suite_add_tcase(s, tc);
    return s;
}
