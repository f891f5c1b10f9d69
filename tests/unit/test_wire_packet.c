/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests RoCE packets: the built packet is what the specification says, the parsed packet is the
 * built one, and a damaged or truncated packet is rejected. The rules are restated here
 * independently (a bitwise CRC, a table of header sizes), so that a mistake in wire/ is not
 * repeated.
 */
#include "wire/encap/roce.h"
#include "tests/unit/suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

/* A congestion notification that a ConnectX-4 Lx sent. */
static const uint8_t connectx_cnp[] = {
    0xe4, 0x1d, 0x2d, 0xab, 0x2b, 0xc2, 0x7c, 0xfe, 0x90, 0x64, 0x3b, 0x32, 0x08, 0x00, 0x45,
    0xc2, 0x00, 0x3c, 0x71, 0x8c, 0x40, 0x00, 0x40, 0x11, 0x91, 0x61, 0x0a, 0x00, 0x11, 0x01,
    0x0a, 0x00, 0x12, 0x01, 0x00, 0x00, 0x12, 0xb7, 0x00, 0x28, 0x00, 0x00, 0x81, 0x00, 0xff,
    0xff, 0x40, 0x00, 0x01, 0x18, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x82, 0xfd, 0x00, 0x2a,
};

/* What follows BTH in bytes, by opcode (IBTA 9.3 and tables 38 and 39, annexes A14 and A17). */
static const struct {
    uint8_t opcode, ext;
    bool payload;
} expected[] = {
    /* RC */
    {0x00, 0, true},
    {0x01, 0, true},
    {0x02, 0, true},
    {0x03, 4, true},
    {0x04, 0, true},
    {0x05, 4, true},
    {0x06, 16, true},
    {0x07, 0, true},
    {0x08, 0, true},
    {0x09, 4, true},
    {0x0a, 16, true},
    {0x0b, 20, true},
    {0x0c, 16, false},
    {0x0d, 4, true},
    {0x0e, 0, true},
    {0x0f, 4, true},
    {0x10, 4, true},
    {0x11, 4, false},
    {0x12, 12, false},
    {0x13, 28, false},
    {0x14, 28, false},
    {0x16, 4, true},
    {0x17, 4, true},
    /* UC */
    {0x20, 0, true},
    {0x21, 0, true},
    {0x22, 0, true},
    {0x23, 4, true},
    {0x24, 0, true},
    {0x25, 4, true},
    {0x26, 16, true},
    {0x27, 0, true},
    {0x28, 0, true},
    {0x29, 4, true},
    {0x2a, 16, true},
    {0x2b, 20, true},
    /* DC: 8 bytes more than RC's; a CONNECT's 16 bytes stand where data does */
    {0x40, 8, true},
    {0x41, 8, true},
    {0x42, 8, true},
    {0x43, 12, true},
    {0x44, 8, true},
    {0x45, 12, true},
    {0x46, 24, true},
    {0x47, 8, true},
    {0x48, 8, true},
    {0x49, 12, true},
    {0x4a, 24, true},
    {0x4b, 28, true},
    {0x4c, 24, false},
    {0x4d, 12, true},
    {0x4e, 8, true},
    {0x4f, 12, true},
    {0x50, 12, true},
    {0x51, 12, false},
    {0x52, 20, false},
    {0x53, 36, false},
    {0x54, 36, false},
    {0x55, 8, true},
    {0x56, 12, true},
    {0x57, 12, true},
    /* UD */
    {0x64, 8, true},
    {0x65, 12, true},
    /* CNP */
    {0x81, 16, false},
    /* XRC: requests have 4 bytes more than RC's, responses none */
    {0xa0, 4, true},
    {0xa1, 4, true},
    {0xa2, 4, true},
    {0xa3, 8, true},
    {0xa4, 4, true},
    {0xa5, 8, true},
    {0xa6, 20, true},
    {0xa7, 4, true},
    {0xa8, 4, true},
    {0xa9, 8, true},
    {0xaa, 20, true},
    {0xab, 24, true},
    {0xac, 20, false},
    {0xad, 4, true},
    {0xae, 0, true},
    {0xaf, 4, true},
    {0xb0, 4, true},
    {0xb1, 4, false},
    {0xb2, 12, false},
    {0xb3, 32, false},
    {0xb4, 32, false},
    {0xb6, 8, true},
    {0xb7, 8, true},
    /* extended atomics (docs/adr/0011): RC's, XRC's and DC's */
    {0xc0, 16, true},
    {0xc1, 16, true},
    {0xc2, 4, true},
    {0xc8, 20, true},
    {0xc9, 20, true},
    {0xca, 4, true},
    {0xd0, 24, true},
    {0xd1, 24, true},
    {0xd2, 12, true},
};

#define EXPECTED ((int)(sizeof(expected) / sizeof(expected[0])))

/* The six ways to carry a packet. A GRH looks like an IPv6 header, and has no UDP behind it. */
enum {
    CARRY_IPV6 = 1,
    CARRY_VLAN = 2,
    CARRY_V1 = 4 | CARRY_IPV6,
    CARRIES = 6,
};

static const int carries[CARRIES] = {
    0, CARRY_IPV6, CARRY_VLAN, CARRY_VLAN | CARRY_IPV6, CARRY_V1, CARRY_VLAN | CARRY_V1};

static bool is_v1(int carry)
{
    return carry & CARRY_V1 & ~CARRY_IPV6;
}

static size_t ip_off(int carry)
{
    return carry & CARRY_VLAN ? 18 : 14;
}

static size_t udp_off(int carry)
{
    return ip_off(carry) + (carry & CARRY_IPV6 ? 40 : 20);
}

static size_t bth_off(int carry)
{
    return udp_off(carry) + (is_v1(carry) ? 0 : 8);
}

static void sample(struct roce_packet *pkt, uint8_t opcode, int carry)
{
    static const uint8_t v4_src[16] = {[10] = 0xff, 0xff, 192, 0, 2, 1};
    static const uint8_t v4_dst[16] = {[10] = 0xff, 0xff, 192, 0, 2, 200};
    static const uint8_t v6_src[16] = {0x20, 0x01, 0x0d, 0xb8, [15] = 1};
    static const uint8_t v6_dst[16] = {0x20, 0x01, 0x0d, 0xb8, [14] = 7, 0xfe};
    static const uint8_t dmac[6] = {2, 1, 2, 3, 4, 5}, smac[6] = {2, 0x1a, 0x2b, 0x3c, 0x4d, 0x5e};

    memset(pkt, 0, sizeof(*pkt));
    memcpy(pkt->addr.dmac, dmac, 6);
    memcpy(pkt->addr.smac, smac, 6);
    pkt->addr.has_vlan = carry & CARRY_VLAN;
    pkt->addr.vlan_tci = carry & CARRY_VLAN ? 0x6123 : 0;
    pkt->addr.is_ipv4 = !(carry & CARRY_IPV6);
    pkt->addr.is_v1 = is_v1(carry);
    memcpy(pkt->addr.sgid, pkt->addr.is_ipv4 ? v4_src : v6_src, 16);
    memcpy(pkt->addr.dgid, pkt->addr.is_ipv4 ? v4_dst : v6_dst, 16);
    pkt->addr.tclass = 0x6a;
    pkt->addr.hop_limit = 63;
    pkt->addr.flow_label = carry & CARRY_IPV6 ? 0xabcde : 0;
    pkt->addr.udp_sport = is_v1(carry) ? 0 : 0xc123;
    pkt->opcode = opcode;
    pkt->solicited = true;
    pkt->migreq = true;
    pkt->ackreq = true;
    pkt->becn = true;
    pkt->pkey = 0x8001;
    pkt->dest_qp = 0x123456;
    pkt->psn = 0xfedcba;
    pkt->deth.qkey = 0x80010000;
    pkt->deth.src_qp = 0x00abcd;
    pkt->reth.va = 0x0123456789abcdef;
    pkt->reth.rkey = 0xdeadbeef;
    pkt->reth.len = 0x7fffffff;
    pkt->atomic.va = 0xfedcba9876543210;
    pkt->atomic.rkey = 0x01020304;
    pkt->atomic.swap_add = 0x1111222233334444;
    pkt->atomic.compare = 0x5555666677778888;
    pkt->aeth.syndrome = 0x65;
    pkt->aeth.msn = 0x00fffe;
    pkt->atomic_ack = 0x99aabbccddeeff00;
    pkt->imm = 0xcafef00d;
    pkt->xrc_srqn = 0x654321;
    pkt->dceth.version = 0x7f;
    pkt->dceth.session = 0x00fedc;
    pkt->dceth.number = 0xabcdef;
}

/* Builds a frame with payload_len bytes 1, 2, 3... in memory of exactly its size. */
static uint8_t *make(const struct roce_packet *pkt, size_t payload_len, size_t *len)
{
    uint8_t *frame = malloc(roce_frame_len(pkt, payload_len));
    uint8_t *payload = roce_build(frame, pkt, payload_len);

    ck_assert_ptr_eq(payload, frame + roce_header_len(pkt));
    for (size_t i = 0; i < payload_len; i++) {
        payload[i] = (uint8_t)(i + 1);
    }
    *len = roce_finish(frame, pkt, payload_len);
    ck_assert_uint_eq(*len, roce_frame_len(pkt, payload_len));
    return frame;
}

/* CRC-32 of IEEE 802.3, a bit at a time. */
static uint32_t crc_bits(uint32_t crc, uint8_t byte)
{
    crc ^= byte;
    for (int i = 0; i < 8; i++) {
        crc = crc & 1 ? crc >> 1 ^ 0xedb88320 : crc >> 1;
    }
    return crc;
}

/* Annex A17: the LRH counts as 8 bytes of ff; fields that routers change count as ff. */
static uint32_t naive_icrc(const uint8_t *frame, size_t len, int carry)
{
    size_t ip = ip_off(carry), udp = udp_off(carry);
    uint32_t crc = 0xffffffff;

    for (int i = 0; i < 8; i++) {
        crc = crc_bits(crc, 0xff);
    }
    for (size_t i = ip; i < len - 4; i++) {
        uint8_t mask = 0;

        if (carry & CARRY_IPV6) {
            mask = i == ip ? 0x0f : (i >= ip + 1 && i <= ip + 3) || i == ip + 7 ? 0xff : 0;
        } else if (i == ip + 1 || i == ip + 8 || i == ip + 10 || i == ip + 11) {
            mask = 0xff;
        }
        if ((!is_v1(carry) && (i == udp + 6 || i == udp + 7)) || i == bth_off(carry) + 4) {
            mask = 0xff;
        }
        crc = crc_bits(crc, frame[i] | mask);
    }
    return ~crc;
}

static uint32_t sent_icrc(const uint8_t *frame, size_t len)
{
    const uint8_t *p = frame + len - 4;

    return (uint32_t)p[3] << 24 | (uint32_t)p[2] << 16 | (uint32_t)p[1] << 8 | p[0];
}

/* Corrects the ICRC of a frame that a test has changed. */
static void repair(uint8_t *frame, size_t len, int carry)
{
    uint32_t crc = naive_icrc(frame, len, carry);

    for (int i = 0; i < 4; i++) {
        frame[len - 4 + (size_t)i] = (uint8_t)(crc >> 8 * i);
    }
}

static void repair_ipv4(uint8_t *frame, size_t ihl)
{
    uint32_t sum = 0;

    frame[24] = frame[25] = 0;
    for (size_t i = 14; i < 14 + ihl; i += 2) {
        sum += (uint32_t)frame[i] << 8 | frame[i + 1];
    }
    sum = (sum & 0xffff) + (sum >> 16);
    sum = ~(sum + (sum >> 16));
    frame[24] = (uint8_t)(sum >> 8);
    frame[25] = (uint8_t)sum;
}

START_TEST(opcode_table_is_the_specifications)
{
    bool exists[256] = {0};

    for (int i = 0; i < EXPECTED; i++) {
        const struct bth_opcode_info *info = &bth_opcodes[expected[i].opcode];

        exists[expected[i].opcode] = true;
        ck_assert_ptr_nonnull(info->name);
        ck_assert_msg(info->header_len == 12 + expected[i].ext, "%s", info->name);
        ck_assert_msg(!!(info->flags & HDR_PAYLOAD) == expected[i].payload, "%s", info->name);
    }
    for (int op = 0; op < 256; op++) {
        ck_assert_msg(exists[op] == !!bth_opcodes[op].name, "opcode %#x", op);
    }
}
END_TEST

START_TEST(roles_in_a_message)
{
    for (int op = 0; op < 256; op++) {
        const struct bth_opcode_info *info = &bth_opcodes[op];
        uint32_t kinds = PKT_SEND | PKT_WRITE | PKT_READ | PKT_ATOMIC;

        if (!info->name) {
            continue;
        }
        /* Every opcode except the CNP is a request or a response, never both. */
        ck_assert_int_eq(!!(info->flags & PKT_REQUEST) + !!(info->flags & PKT_RESPONSE),
                         op == 0x81 ? 0 : 1);
        /* A packet with an AETH is a response, a packet with an XRCETH is a request. */
        ck_assert(!(info->flags & HDR_AETH) || info->flags & PKT_RESPONSE);
        ck_assert(!(info->flags & HDR_XRC_ETH) || info->flags & PKT_REQUEST);
        /* Only a first packet has a RETH, only a last packet has immediate data or an IETH. */
        ck_assert(!(info->flags & HDR_RETH) || info->flags & PKT_FIRST);
        ck_assert(!(info->flags & (HDR_IMM_DT | HDR_IETH)) || info->flags & PKT_LAST);
        ck_assert_int_le(__builtin_popcount(info->flags & kinds), 1);
        /* Bits 7:5 name the transport (table 38), except for a manufacturer's opcodes. */
        ck_assert(op >= 0xc0 || info->transport == (op & 0xe0));
    }
    ck_assert_uint_eq(bth_opcodes[BTH_RC | BTH_WRITE_MIDDLE].flags & (PKT_FIRST | PKT_LAST), 0);
    ck_assert_uint_eq(bth_opcodes[BTH_RC | BTH_READ_RESP_ONLY].flags & (PKT_FIRST | PKT_LAST),
                      PKT_FIRST | PKT_LAST);
    ck_assert(bth_opcodes[BTH_XRC | BTH_WRITE_FIRST].flags & HDR_XRC_ETH);
}
END_TEST

START_TEST(a_connectx_cnp_is_understood)
{
    struct roce_packet pkt;

    ck_assert_int_eq(roce_parse(connectx_cnp, sizeof(connectx_cnp), &pkt), ROCE_OK);
    ck_assert_uint_eq(pkt.opcode, BTH_CNP_OPCODE);
    ck_assert(pkt.becn && !pkt.fecn && !pkt.ackreq && !pkt.solicited);
    ck_assert_uint_eq(pkt.dest_qp, 0x118);
    ck_assert_uint_eq(pkt.psn, 0);
    ck_assert_uint_eq(pkt.pkey, 0xffff);
    ck_assert_uint_eq(pkt.payload_len, 0);
    ck_assert_uint_eq(pkt.addr.tclass, 0xc2);
    ck_assert_uint_eq(pkt.addr.hop_limit, 64);
}
END_TEST

/* roce_parse() extracts enough from a frame for roce_build() to make the same frame, except IPv4's
 * identification, which the device chooses and which the header checksum covers. */
START_TEST(a_connectx_cnp_is_built_alike)
{
    uint8_t frame[sizeof(connectx_cnp)], want[sizeof(connectx_cnp)];
    struct roce_packet pkt;

    ck_assert_int_eq(roce_parse(connectx_cnp, sizeof(connectx_cnp), &pkt), ROCE_OK);
    memset(frame, 0xee, sizeof(frame));
    ck_assert_uint_eq(roce_frame_len(&pkt, 0), sizeof(frame));
    roce_build(frame, &pkt, 0);
    ck_assert_uint_eq(roce_finish(frame, &pkt, 0), sizeof(frame));

    memcpy(want, connectx_cnp, sizeof(want));
    want[18] = want[19] = 0;
    repair_ipv4(want, 20);
    repair(want, sizeof(want), 0);
    ck_assert_mem_eq(frame, want, sizeof(want));
}
END_TEST

START_TEST(build_then_parse_gives_the_same_packet)
{
    static const size_t payloads[] = {0, 1, 2, 3, 4, 63, 256, 4096, 8192};
    uint8_t opcode = expected[_i].opcode, bytes[8192];

    for (size_t i = 0; i < sizeof(bytes); i++) {
        bytes[i] = (uint8_t)(i + 1);
    }
    for (int c = 0; c < CARRIES; c++) {
        int carry = carries[c];
        for (size_t p = 0; p < sizeof(payloads) / sizeof(payloads[0]); p++) {
            size_t len, payload_len = expected[_i].payload ? payloads[p] : 0;
            uint32_t flags = bth_opcodes[opcode].flags;
            struct roce_packet in, out;
            uint8_t *frame;

            sample(&in, opcode, carry);
            memset(&out, 0xee, sizeof(out));
            frame = make(&in, payload_len, &len);
            ck_assert_uint_eq(len % 4, ip_off(carry) % 4);
            ck_assert_uint_eq(sent_icrc(frame, len), naive_icrc(frame, len, carry));
            ck_assert_int_eq(roce_parse(frame, len, &out), ROCE_OK);

            ck_assert_mem_eq(out.addr.dmac, in.addr.dmac, 6);
            ck_assert_mem_eq(out.addr.smac, in.addr.smac, 6);
            ck_assert_mem_eq(out.addr.sgid, in.addr.sgid, 16);
            ck_assert_mem_eq(out.addr.dgid, in.addr.dgid, 16);
            ck_assert(out.addr.has_vlan == in.addr.has_vlan);
            ck_assert(out.addr.is_ipv4 == in.addr.is_ipv4);
            ck_assert(out.addr.is_v1 == in.addr.is_v1);
            ck_assert_uint_eq(out.addr.vlan_tci, in.addr.vlan_tci);
            ck_assert_uint_eq(out.addr.tclass, in.addr.tclass);
            ck_assert_uint_eq(out.addr.hop_limit, in.addr.hop_limit);
            ck_assert_uint_eq(out.addr.flow_label, in.addr.flow_label);
            ck_assert_uint_eq(out.addr.udp_sport, in.addr.udp_sport);
            ck_assert_uint_eq(out.opcode, opcode);
            ck_assert(out.solicited && out.migreq && out.ackreq && out.becn && !out.fecn);
            ck_assert_uint_eq(out.tver, 0);
            ck_assert_uint_eq(out.pad_count, -payload_len & 3);
            ck_assert_uint_eq(out.pkey, in.pkey);
            ck_assert_uint_eq(out.dest_qp, in.dest_qp);
            ck_assert_uint_eq(out.psn, in.psn);
            if (flags & HDR_DETH) {
                ck_assert_uint_eq(out.deth.qkey, in.deth.qkey);
                ck_assert_uint_eq(out.deth.src_qp, in.deth.src_qp);
            }
            if (flags & HDR_RETH) {
                ck_assert_uint_eq(out.reth.va, in.reth.va);
                ck_assert_uint_eq(out.reth.rkey, in.reth.rkey);
                ck_assert_uint_eq(out.reth.len, in.reth.len);
            }
            if (flags & HDR_ATOMIC_ETH) {
                ck_assert_uint_eq(out.atomic.va, in.atomic.va);
                ck_assert_uint_eq(out.atomic.rkey, in.atomic.rkey);
                ck_assert_uint_eq(out.atomic.swap_add, in.atomic.swap_add);
                ck_assert_uint_eq(out.atomic.compare, in.atomic.compare);
            }
            if (flags & HDR_AETH) {
                ck_assert_uint_eq(out.aeth.syndrome, in.aeth.syndrome);
                ck_assert_uint_eq(out.aeth.msn, in.aeth.msn);
            }
            if (flags & HDR_ATOMIC_ACK_ETH) {
                ck_assert_uint_eq(out.atomic_ack, in.atomic_ack);
            }
            if (flags & (HDR_IMM_DT | HDR_IETH)) {
                ck_assert_uint_eq(out.imm, in.imm);
            }
            if (flags & HDR_XRC_ETH) {
                ck_assert_uint_eq(out.xrc_srqn, in.xrc_srqn);
            }
            ck_assert_uint_eq(out.payload_len, payload_len);
            ck_assert_mem_eq(out.payload, bytes, payload_len);
            free(frame);
        }
    }
}
END_TEST

START_TEST(bytes_are_where_the_specification_puts_them)
{
    struct roce_packet pkt;
    size_t len;
    uint8_t *f;

    sample(&pkt, BTH_RC | BTH_WRITE_ONLY_IMM, 0);
    f = make(&pkt, 5, &len);
    ck_assert_uint_eq(f[12] << 8 | f[13], 0x0800);
    ck_assert_uint_eq(f[14], 0x45);
    ck_assert_uint_eq(f[15], 0x6a);
    ck_assert_uint_eq(f[16] << 8 | f[17], len - 14); /* total length: no FCS, ICRC included */
    ck_assert_uint_eq(f[20] << 8 | f[21], 0x4000);   /* don't fragment */
    ck_assert_uint_eq(f[36] << 8 | f[37], 4791);
    ck_assert_uint_eq(f[38] << 8 | f[39], len - 34);
    ck_assert_uint_eq(f[40] << 8 | f[41], 0);        /* no UDP checksum */
    ck_assert_mem_eq(f + 42, "\x0b\xf0\x80\x01", 4); /* SE, M, PadCnt 3, TVer 0 */
    ck_assert_mem_eq(f + 46, "\x40\x12\x34\x56", 4); /* BECN, DestQP */
    ck_assert_mem_eq(f + 50, "\x80\xfe\xdc\xba", 4); /* A, PSN */
    ck_assert_mem_eq(f + 54, "\x01\x23\x45\x67\x89\xab\xcd\xef", 8);
    ck_assert_mem_eq(f + 62, "\xde\xad\xbe\xef\x7f\xff\xff\xff", 8);
    ck_assert_mem_eq(f + 70, "\xca\xfe\xf0\x0d", 4);
    ck_assert_mem_eq(f + 74, "\1\2\3\4\5\0\0\0", 8); /* payload and pad */
    ck_assert_uint_eq(len, 74 + 8 + 4);
    free(f);

    sample(&pkt, BTH_XRC | BTH_SEND_ONLY, CARRY_IPV6 | CARRY_VLAN);
    f = make(&pkt, 4, &len);
    ck_assert_mem_eq(f + 12, "\x81\x00\x61\x23\x86\xdd", 6);
    ck_assert_mem_eq(f + 18, "\x66\xaa\xbc\xde", 4); /* version, class, flow label */
    ck_assert_uint_eq(f[22] << 8 | f[23], len - 58);
    ck_assert_uint_eq(f[24], 17);
    ck_assert_uint_eq(f[25], 63);
    ck_assert_uint_eq(f[64] << 8 | f[65], 0); /* no UDP checksum with IPv6 either */
    ck_assert_mem_eq(f + 78, "\x00\x65\x43\x21", 4);
    free(f);
}
END_TEST

START_TEST(every_truncation_has_a_verdict)
{
    for (int c = 0; c < CARRIES; c++) {
        int carry = carries[c];
        struct roce_packet in, out;
        size_t len;
        uint8_t *frame;

        sample(&in, expected[_i].opcode, carry);
        frame = make(&in, expected[_i].payload ? 9 : 0, &len);
        for (size_t cut = 0; cut < len; cut++) {
            /* Memory of exactly this size, so that a read beyond it is found. */
            uint8_t *piece = malloc(cut ? cut : 1);

            memcpy(piece, frame, cut);
            ck_assert_int_eq(roce_parse(piece, cut, &out), ROCE_TRUNCATED);
            free(piece);
        }
        free(frame);
    }
}
END_TEST

/* Bits that nothing covers: MACs, tag, class, flow label and hop limit of IPv6 and of a GRH, UDP
 * checksum, and BTH byte 4. The header checksum covers IPv4's changeable fields. */
static bool may_change(size_t at, int bit, int carry)
{
    size_t ip = ip_off(carry), udp = udp_off(carry);

    if (at < 12 || (carry & CARRY_VLAN && (at == 14 || at == 15))) {
        return true;
    }
    if (carry & CARRY_IPV6 && ((at == ip && bit < 4) || (at > ip && at < ip + 4) || at == ip + 7)) {
        return true;
    }
    return (!is_v1(carry) && (at == udp + 6 || at == udp + 7)) || at == bth_off(carry) + 4;
}

START_TEST(no_flipped_bit_gets_through)
{
    for (int c = 0; c < CARRIES; c++) {
        int carry = carries[c];
        struct roce_packet in, out;
        size_t len;
        uint8_t *frame;

        sample(&in, expected[_i].opcode, carry);
        frame = make(&in, expected[_i].payload ? 9 : 0, &len);
        for (size_t at = 0; at < len; at++) {
            for (int bit = 0; bit < 8; bit++) {
                enum roce_verdict verdict;

                frame[at] ^= (uint8_t)(1 << bit);
                verdict = roce_parse(frame, len, &out);
                if ((verdict == ROCE_OK) != may_change(at, bit, carry)) {
                    ck_abort_msg("opcode %#x carry %d byte %zu bit %d: verdict %d",
                                 expected[_i].opcode, carry, at, bit, verdict);
                }
                frame[at] ^= (uint8_t)(1 << bit);
            }
        }
        ck_assert_int_eq(roce_parse(frame, len, &out), ROCE_OK);
        free(frame);
    }
}
END_TEST

START_TEST(a_wrong_icrc_is_named)
{
    struct roce_packet in, out;
    size_t len;
    uint8_t *frame;

    sample(&in, BTH_RC | BTH_SEND_ONLY, 0);
    frame = make(&in, 100, &len);
    frame[len - 10] ^= 1;
    ck_assert_int_eq(roce_parse(frame, len, &out), ROCE_BAD_ICRC);
    ck_assert_uint_eq(out.dest_qp, in.dest_qp);
    frame[len - 10] ^= 1;
    frame[len - 1] ^= 0x80;
    ck_assert_int_eq(roce_parse(frame, len, &out), ROCE_BAD_ICRC);
    free(frame);
}
END_TEST

/* A sender and a receiver that share memory leave it out (WIRE_NO_ICRC); a capture inserts it. */
START_TEST(an_icrc_can_be_left_out_and_put_in_later)
{
    struct roce_packet in, out;
    size_t len, cut;
    uint8_t *whole, *frame;

    sample(&in, BTH_RC | BTH_SEND_ONLY, 0);
    for (size_t payload_len = 97; payload_len <= 100; payload_len++) {
        whole = make(&in, payload_len, &len);
        frame = malloc(len);
        memset(frame, 0xee, len);
        memcpy(frame, whole, len - 4 - (-payload_len & 3));
        ck_assert_uint_eq(roce_finish_no_icrc(frame, &in, payload_len), len);
        ck_assert_int_eq(roce_parse(frame, len, &out), ROCE_BAD_ICRC);
        ck_assert_int_eq(roce_parse_unchecked(frame, len, &out), ROCE_OK);
        ck_assert_uint_eq(out.payload_len, payload_len);
        for (cut = 0; cut < len; cut++) {
            ck_assert_int_ne(roce_parse_unchecked(frame, cut, &out), ROCE_OK);
        }
        roce_fill_icrc(frame, len);
        ck_assert_mem_eq(frame, whole, len);
        free(frame);
        free(whole);
    }
}
END_TEST

static void expect_same(const uint8_t *frame, size_t len, struct roce_last *last)
{
    struct roce_packet out = {0};
    enum roce_verdict verdict = roce_parse_unchecked(frame, len, &out);

    ck_assert_int_eq(roce_parse_next(frame, len, last), verdict);
    if (verdict == ROCE_OK) {
        ck_assert_mem_eq(&last->pkt.addr, &out.addr, sizeof(out.addr));
        ck_assert_uint_eq(last->pkt.opcode, out.opcode);
        ck_assert_uint_eq(last->pkt.psn, out.psn);
        ck_assert_uint_eq(last->pkt.dest_qp, out.dest_qp);
        ck_assert_ptr_eq(last->pkt.payload, out.payload);
        ck_assert_uint_eq(last->pkt.payload_len, out.payload_len);
    }
}

/* A frame is parsed as if it were alone, whatever came before it: another frame, a part of it, or a
 * frame with another byte in its headers. */
START_TEST(a_frame_is_parsed_alike_after_any_other)
{
    struct roce_last last = {0};
    struct roce_packet in;

    for (int c = 0; c < CARRIES; c++) {
        int carry = carries[c];
        for (size_t payload_len = 0; payload_len <= 100; payload_len += 50) {
            size_t len;
            uint8_t *frame;

            sample(&in, BTH_RC | BTH_SEND_ONLY, carry);
            frame = make(&in, payload_len, &len);
            for (size_t at = 0; at < len - 4; at++) {
                expect_same(frame, len, &last);
                frame[at] ^= 0x11;
                expect_same(frame, len, &last);
                expect_same(frame, len, &last);
                frame[at] ^= 0x11;
                expect_same(frame, at, &last);
            }
            expect_same(frame, len, &last);
            in.psn++;
            roce_build(frame, &in, payload_len);
            expect_same(frame, len, &last);
            free(frame);
        }
    }
}
END_TEST

START_TEST(a_frame_of_another_protocol_gets_no_icrc)
{
    uint8_t frame[64], before[64];

    memset(frame, 0x45, sizeof(frame));
    memcpy(before, frame, sizeof(frame));
    for (size_t len = 0; len <= sizeof(frame); len++) {
        roce_fill_icrc(frame, len);
    }
    ck_assert_mem_eq(frame, before, sizeof(frame));
}
END_TEST

START_TEST(padding_of_the_ethernet_frame_is_ignored)
{
    struct roce_packet in, out;
    uint8_t frame[1500];
    size_t len;

    sample(&in, BTH_RC | BTH_ACK, 0);
    roce_build(frame, &in, 0);
    len = roce_finish(frame, &in, 0);
    memset(frame + len, 0xa5, sizeof(frame) - len);
    for (size_t more = 1; more < 20; more++) {
        ck_assert_int_eq(roce_parse(frame, len + more, &out), ROCE_OK);
        ck_assert_uint_eq(out.payload_len, 0);
    }
}
END_TEST

/* A frame of another protocol is not an error. */
START_TEST(other_frames_are_not_roce)
{
    struct roce_packet in, out;
    size_t len;
    uint8_t *f;

    for (int carry = 0; carry < 2; carry++) {
        sample(&in, BTH_RC | BTH_SEND_ONLY, carry);
        f = make(&in, 64, &len);
        f[udp_off(carry) + 3] ^= 1; /* another port */
        ck_assert_int_eq(roce_parse(f, len, &out), ROCE_NOT_ROCE);
        f[udp_off(carry) + 3] ^= 1;
        f[ip_off(carry) + (carry ? 6 : 9)] = 6; /* TCP */
        ck_assert_int_eq(roce_parse(f, len, &out), ROCE_NOT_ROCE);
        f[12] = 0x08;
        f[13] = 0x06; /* ARP */
        ck_assert_int_eq(roce_parse(f, len, &out), ROCE_NOT_ROCE);
        free(f);
    }
    /* Fragments: a later one has no UDP header at all, a first one no end. */
    sample(&in, BTH_RC | BTH_SEND_ONLY, 0);
    f = make(&in, 64, &len);
    f[20] = 0x20;
    repair_ipv4(f, 20);
    ck_assert_int_eq(roce_parse(f, len, &out), ROCE_NOT_ROCE);
    f[20] = 0;
    f[21] = 8;
    repair_ipv4(f, 20);
    ck_assert_int_eq(roce_parse(f, len, &out), ROCE_NOT_ROCE);
    free(f);
    /* A second tag. */
    sample(&in, BTH_RC | BTH_SEND_ONLY, CARRY_VLAN);
    f = make(&in, 64, &len);
    f[16] = 0x81;
    f[17] = 0x00;
    ck_assert_int_eq(roce_parse(f, len, &out), ROCE_NOT_ROCE);
    free(f);
}
END_TEST

START_TEST(bad_headers_are_named)
{
    struct roce_packet in, out;
    size_t len;
    uint8_t *f;

    sample(&in, BTH_RC | BTH_SEND_ONLY, 0);
    f = make(&in, 64, &len);
    f[24] ^= 1; /* IPv4 header checksum */
    ck_assert_int_eq(roce_parse(f, len, &out), ROCE_BAD_HEADER);
    f[24] ^= 1;
    f[43] |= 1; /* TVer 1 */
    repair(f, len, 0);
    ck_assert_int_eq(roce_parse(f, len, &out), ROCE_BAD_HEADER);
    f[43] &= 0xf0;
    f[14] = 0x55; /* IP version 5 */
    repair_ipv4(f, 20);
    repair(f, len, 0);
    ck_assert_int_eq(roce_parse(f, len, &out), ROCE_BAD_HEADER);
    free(f);

    for (int op = 0; op < 256; op++) {
        if (bth_opcodes[op].name) {
            continue;
        }
        sample(&in, BTH_RC | BTH_SEND_ONLY, CARRY_IPV6);
        f = make(&in, 64, &len);
        f[62] = (uint8_t)op;
        repair(f, len, CARRY_IPV6);
        ck_assert_int_eq(roce_parse(f, len, &out), ROCE_BAD_HEADER);
        free(f);
    }
}
END_TEST

/* Annex A16: Ethernet type 0x8915, then a GRH (IBTA 8.3): IPVer 6, PayLen up to the end of the
 * ICRC, NxtHdr 0x1b; the BTH follows at once. */
START_TEST(version_1_has_a_grh)
{
    struct roce_packet in, out;
    size_t len;
    uint8_t *f;

    sample(&in, BTH_RC | BTH_SEND_ONLY, CARRY_V1);
    f = make(&in, 64, &len);
    ck_assert_uint_eq(len, 14 + 40 + 12 + 64 + 4);
    ck_assert_mem_eq(f + 12, "\x89\x15\x66\xaa\xbc\xde\x00\x50\x1b\x3f", 10);
    ck_assert_mem_eq(f + 22, in.addr.sgid, 16);
    ck_assert_mem_eq(f + 38, in.addr.dgid, 16);
    ck_assert_uint_eq(f[54], BTH_RC | BTH_SEND_ONLY);
    for (size_t at = 14; at < 21; at += 6) { /* another IPVer; another NxtHdr */
        f[at] ^= 0x10;
        repair(f, len, CARRY_V1);
        ck_assert_int_eq(roce_parse(f, len, &out), ROCE_BAD_HEADER);
        f[at] ^= 0x10;
    }
    f[19] += 4; /* PayLen goes beyond the frame */
    repair(f, len, CARRY_V1);
    ck_assert_int_eq(roce_parse(f, len, &out), ROCE_TRUNCATED);
    f[19] = 3; /* no ICRC */
    ck_assert_int_eq(roce_parse(f, len, &out), ROCE_TRUNCATED);
    free(f);
}
END_TEST

/* Annex A17: the IPv4 header has no options. */
START_TEST(ipv4_options_are_refused)
{
    struct roce_packet in, out;
    size_t len;
    uint8_t *f, *with;

    sample(&in, BTH_RC | BTH_SEND_ONLY, 0);
    f = make(&in, 64, &len);
    with = malloc(len + 4);
    memcpy(with, f, 34);
    memset(with + 34, 1, 4); /* four no-operation options */
    memcpy(with + 38, f + 34, len - 34);
    with[14] = 0x46;
    with[17] = (uint8_t)(with[17] + 4);
    repair_ipv4(with, 24);
    ck_assert_int_eq(roce_parse(with, len + 4, &out), ROCE_BAD_HEADER);
    with[41] ^= 1; /* not to port 4791: then it is not RoCE */
    ck_assert_int_eq(roce_parse(with, len + 4, &out), ROCE_NOT_ROCE);
    /* An IHL below 5 is no IPv4 header. */
    f[14] = 0x44;
    repair_ipv4(f, 20);
    ck_assert_int_eq(roce_parse(f, len, &out), ROCE_BAD_HEADER);
    free(f);
    free(with);
}
END_TEST

START_TEST(lengths_must_agree)
{
    struct roce_packet in, out;
    size_t len;
    uint8_t *f;

    /* UDP's length is not IP's. */
    sample(&in, BTH_RC | BTH_SEND_ONLY, 0);
    f = make(&in, 64, &len);
    f[39] = (uint8_t)(f[39] - 4);
    ck_assert_int_eq(roce_parse(f, len, &out), ROCE_TRUNCATED);
    free(f);

    /* A payload where the opcode has none. */
    f = make(&in, 4, &len);
    f[42] = BTH_RC | BTH_ACK;
    repair(f, len, 0);
    ck_assert_int_eq(roce_parse(f, len, &out), ROCE_OK); /* the 4 bytes are the AETH */
    free(f);
    f = make(&in, 8, &len);
    f[42] = BTH_RC | BTH_ACK;
    repair(f, len, 0);
    ck_assert_int_eq(roce_parse(f, len, &out), ROCE_TRUNCATED);
    free(f);

    /* More pad than there is payload. */
    f = make(&in, 0, &len);
    f[43] |= 0x30;
    repair(f, len, 0);
    ck_assert_int_eq(roce_parse(f, len, &out), ROCE_TRUNCATED);
    free(f);

    /* A packet whose length is no multiple of 4 though ICRC and lengths are right. */
    sample(&in, BTH_RC | BTH_SEND_ONLY, CARRY_IPV6);
    f = make(&in, 64, &len);
    f[19] = (uint8_t)(f[19] - 2);
    f[59] = (uint8_t)(f[59] - 2);
    repair(f, len - 2, CARRY_IPV6);
    ck_assert_int_eq(roce_parse(f, len - 2, &out), ROCE_TRUNCATED);
    free(f);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *s = suite_create("wire packet");
    TCase *tc = tcase_create("packet");

    tcase_add_test(tc, opcode_table_is_the_specifications);
    tcase_add_test(tc, roles_in_a_message);
    tcase_add_test(tc, a_connectx_cnp_is_understood);
    tcase_add_test(tc, a_connectx_cnp_is_built_alike);
    tcase_add_loop_test(tc, build_then_parse_gives_the_same_packet, 0, EXPECTED);
    tcase_add_test(tc, bytes_are_where_the_specification_puts_them);
    tcase_add_loop_test(tc, every_truncation_has_a_verdict, 0, EXPECTED);
    tcase_add_loop_test(tc, no_flipped_bit_gets_through, 0, EXPECTED);
    tcase_add_test(tc, a_wrong_icrc_is_named);
    tcase_add_test(tc, an_icrc_can_be_left_out_and_put_in_later);
    tcase_add_test(tc, a_frame_is_parsed_alike_after_any_other);
    tcase_add_test(tc, a_frame_of_another_protocol_gets_no_icrc);
    tcase_add_test(tc, padding_of_the_ethernet_frame_is_ignored);
    tcase_add_test(tc, other_frames_are_not_roce);
    tcase_add_test(tc, bad_headers_are_named);
    tcase_add_test(tc, version_1_has_a_grh);
    tcase_add_test(tc, ipv4_options_are_refused);
    tcase_add_test(tc, lengths_must_agree);
    suite_add_tcase(s, tc);
    return s;
}
