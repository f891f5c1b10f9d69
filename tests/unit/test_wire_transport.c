/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests that transport packets do not depend on what carries them: here they use this test's own
 * encapsulation, which is not Ethernet and has no IP. Nothing of wire/encap/ is included.
 *
 * The carriage is 8 bytes: a mark, a hop count (which changes on the way), the length of everything
 * after it except the ICRC, and an address. The ICRC comes behind the transport packet.
 */
#include "wire/packet/icrc.h"
#include "wire/packet/transport.h"
#include "tests/unit/suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

enum {
    CARRIAGE_BYTES = 8,
    CARRIAGE_MARK = 0xca,
    CARRIAGE_HOPS = 1, /* where that is */
    PAYLOAD_MAX = 4096,
    ROOM = CARRIAGE_BYTES + TRANSPORT_HEADER_MAX + PAYLOAD_MAX + ICRC_BYTES,
};

static uint32_t carriage_icrc(const uint8_t *bytes, size_t head_len, const uint8_t *body,
                              size_t body_len)
{
    uint8_t scratch[CARRIAGE_BYTES + TRANSPORT_HEADER_MAX];

    memcpy(scratch, bytes, head_len);
    scratch[CARRIAGE_HOPS] = 0xff;
    return icrc(0, scratch, CARRIAGE_BYTES, head_len, body, body_len);
}

/* Returns the number of bytes. */
static size_t carriage_build(uint8_t *bytes, const struct transport_packet *pkt,
                             const uint8_t *payload, size_t payload_len)
{
    size_t head_len = CARRIAGE_BYTES + transport_header_len(pkt), body_len, len;
    uint8_t *at = transport_build(bytes + CARRIAGE_BYTES, pkt, payload_len);

    ck_assert_ptr_eq(at, bytes + head_len);
    memcpy(at, payload, payload_len);
    body_len = transport_put_pad(at, payload_len);
    len = transport_header_len(pkt) + body_len;
    memcpy(bytes, (const uint8_t[]){CARRIAGE_MARK, 64, len >> 8, len & 0xff, 1, 2, 3, 4},
           CARRIAGE_BYTES);
    icrc_put(at + body_len, carriage_icrc(bytes, head_len, at, body_len));
    return CARRIAGE_BYTES + len + ICRC_BYTES;
}

static enum transport_verdict carriage_parse(const uint8_t *bytes, struct transport_packet *pkt,
                                             bool *icrc_ok)
{
    size_t len = (size_t)bytes[2] << 8 | bytes[3], copied = len;
    uint8_t head[TRANSPORT_HEADER_MAX];
    enum transport_verdict verdict;

    if (copied > sizeof(head)) {
        copied = sizeof(head);
    }
    memset(head, 0xee, sizeof(head));
    memcpy(head, bytes + CARRIAGE_BYTES, copied);
    verdict = transport_parse(head, bytes + CARRIAGE_BYTES, len, pkt);
    if (verdict == TRANSPORT_OK) {
        size_t head_len = CARRIAGE_BYTES + transport_header_len(pkt);

        ck_assert_ptr_eq(pkt->payload, bytes + head_len);
        *icrc_ok = icrc_get(bytes + CARRIAGE_BYTES + len) ==
                   carriage_icrc(bytes, head_len, pkt->payload, pkt->payload_len + pkt->pad_count);
    }
    return verdict;
}

static struct transport_packet sample(uint8_t opcode)
{
    return (struct transport_packet){
        .opcode = opcode,
        .solicited = true,
        .ackreq = true,
        .fecn = true,
        .pkey = 0x7fff,
        .dest_qp = 0xabcdef,
        .psn = 0x123456,
        .deth = {.qkey = 0x11223344, .src_qp = 0x556677},
        .reth = {.va = 0x1122334455667788, .rkey = 0x99aabbcc, .len = 0xddeeff00},
        .atomic = {.va = 0x8877665544332211,
                   .swap_add = 0x0102030405060708,
                   .compare = 0x1112131415161718,
                   .rkey = 0x21222324},
        .aeth = {.syndrome = 0x3f, .msn = 0x313233},
        .atomic_ack = 0x4142434445464748,
        .imm = 0x51525354,
        .xrc_srqn = 0x616263,
        .dceth = {.version = 0x71, .session = 0x727374, .number = 0x757677},
    };
}

static const uint8_t bytes_of_payload[PAYLOAD_MAX] = {1, 2, 3, 4, 5, 6, 7};

START_TEST(each_opcode_comes_back_out_of_any_encapsulation)
{
    static const size_t lengths[] = {0, 1, 2, 3, 4, 1023, PAYLOAD_MAX};
    const struct bth_opcode_info *info = &bth_opcodes[_i];

    for (size_t i = 0; info->name && i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        size_t payload_len = info->flags & HDR_PAYLOAD ? lengths[i] : 0;
        struct transport_packet in = sample((uint8_t)_i), out;
        uint8_t bytes[ROOM];
        bool icrc_ok = false;
        size_t len = carriage_build(bytes, &in, bytes_of_payload, payload_len);

        memset(&out, 0xee, sizeof(out));
        ck_assert_uint_eq(len % 4, 0);
        ck_assert_int_eq(carriage_parse(bytes, &out, &icrc_ok), TRANSPORT_OK);
        ck_assert(icrc_ok);
        ck_assert_uint_eq(out.opcode, _i);
        ck_assert(out.solicited && out.ackreq && out.fecn && !out.migreq && !out.becn);
        ck_assert_uint_eq(out.tver, 0);
        ck_assert_uint_eq(out.pkey, in.pkey);
        ck_assert_uint_eq(out.dest_qp, in.dest_qp);
        ck_assert_uint_eq(out.psn, in.psn);
        ck_assert_uint_eq(out.payload_len, payload_len);
        ck_assert_mem_eq(out.payload, bytes_of_payload, payload_len);
        if (info->flags & HDR_XRC_ETH) {
            ck_assert_uint_eq(out.xrc_srqn, in.xrc_srqn);
        }
        if (info->flags & HDR_DC_ETH) {
            ck_assert_uint_eq(out.dceth.version, in.dceth.version);
            ck_assert_uint_eq(out.dceth.session, in.dceth.session);
            ck_assert_uint_eq(out.dceth.number, in.dceth.number);
        }
        if (info->flags & HDR_DETH) {
            ck_assert_uint_eq(out.deth.qkey, in.deth.qkey);
            ck_assert_uint_eq(out.deth.src_qp, in.deth.src_qp);
        }
        if (info->flags & HDR_RETH) {
            ck_assert_uint_eq(out.reth.va, in.reth.va);
            ck_assert_uint_eq(out.reth.rkey, in.reth.rkey);
            ck_assert_uint_eq(out.reth.len, in.reth.len);
        }
        if (info->flags & HDR_ATOMIC_ETH) {
            ck_assert_uint_eq(out.atomic.va, in.atomic.va);
            ck_assert_uint_eq(out.atomic.rkey, in.atomic.rkey);
            ck_assert_uint_eq(out.atomic.swap_add, in.atomic.swap_add);
            ck_assert_uint_eq(out.atomic.compare, in.atomic.compare);
        }
        if (info->flags & HDR_AETH) {
            ck_assert_uint_eq(out.aeth.syndrome, in.aeth.syndrome);
            ck_assert_uint_eq(out.aeth.msn, in.aeth.msn);
        }
        if (info->flags & HDR_ATOMIC_ACK_ETH) {
            ck_assert_uint_eq(out.atomic_ack, in.atomic_ack);
        }
        if (info->flags & (HDR_IMM_DT | HDR_IETH)) {
            ck_assert_uint_eq(out.imm, in.imm);
        }
    }
}
END_TEST

/* Extended headers are where IBTA 9.3 puts them, with the DCETH before them: a DC atomic has the
 * most headers. */
START_TEST(the_longest_headers_byte_by_byte)
{
    static const uint8_t want[TRANSPORT_HEADER_MAX] = {
        0x53, 0x80, 0x7f, 0xff, 0x80, 0xab, 0xcd, 0xef, 0x80, 0x12, 0x34, 0x56, /* BTH */
        0x71, 0x72, 0x73, 0x74, 0x00, 0x75, 0x76, 0x77,                         /* DCETH */
        0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 0x21, 0x22, 0x23, 0x24, /* AtomicETH */
        0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08,                         /* swap */
        0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18,                         /* compare */
    };
    struct transport_packet pkt = sample(BTH_DC | BTH_CMP_SWAP);
    uint8_t bytes[TRANSPORT_HEADER_MAX];

    ck_assert_ptr_eq(transport_build(bytes, &pkt, 0), bytes + sizeof(bytes));
    ck_assert_mem_eq(bytes, want, sizeof(want));
}
END_TEST

/* The contents of a CONNECT's header. */
START_TEST(the_dcceth_byte_by_byte)
{
    static const uint8_t want[DCC_ETH_BYTES] = {0x15, 0x12, 0x34, 0x56, 0, 0, 0, 0,
                                                0x01, 0x02, 0x03, 0x04, 5, 6, 7, 8};
    struct dcceth in = {.reconnect = true, .rsl = 5, .psn = 0x123456, .key = 0x0102030405060708};
    struct dcceth out;
    uint8_t bytes[DCC_ETH_BYTES];

    memset(bytes, 0xee, sizeof(bytes));
    dcceth_build(bytes, &in);
    ck_assert_mem_eq(bytes, want, sizeof(want));
    dcceth_parse(bytes, &out);
    ck_assert(out.reconnect);
    ck_assert_uint_eq(out.rsl, in.rsl);
    ck_assert_uint_eq(out.psn, in.psn);
    ck_assert_uint_eq(out.key, in.key);
}
END_TEST

/* IBTA 7.8.1: fields that may change on the way do not count for the ICRC, everything else does. */
START_TEST(an_icrc_covers_what_stays_the_same)
{
    struct transport_packet in = sample(BTH_RC | BTH_WRITE_ONLY_IMM), out;
    uint8_t bytes[ROOM];
    size_t len = carriage_build(bytes, &in, bytes_of_payload, 9);

    for (size_t at = 0; at < len; at++) {
        bool icrc_ok = false, changes = at == CARRIAGE_HOPS || at == CARRIAGE_BYTES + 4;
        enum transport_verdict verdict;

        if (at == 2 || at == 3) {
            continue; /* the length: another packet is read */
        }
        bytes[at] ^= 0x40;
        verdict = carriage_parse(bytes, &out, &icrc_ok);
        ck_assert_msg((verdict == TRANSPORT_OK && icrc_ok) == changes, "byte %zu", at);
        bytes[at] ^= 0x40;
    }
}
END_TEST

/* The CRC itself, by 802.3's check value: the CRC of "123456789" is cbf43926. */
START_TEST(the_crc_is_ethernets)
{
    uint8_t head[] = "1234\xff" /* stands for the BTH's byte 4, which counts as ff */;

    ck_assert_uint_eq(
        icrc(0, (uint8_t[]){'1', '2', '3', '4', 0}, 0, 4, (const uint8_t *)"56789", 5), 0xcbf43926);
    ck_assert_uint_eq(icrc(0, (uint8_t[]){'1', '2', '3', '4', 0}, 0, 5, NULL, 0),
                      icrc(0, head, 0, 5, NULL, 0));
}
END_TEST

START_TEST(lengths_that_do_not_agree_are_refused)
{
    struct transport_packet pkt = sample(BTH_RC | BTH_READ_REQUEST), out;
    uint8_t head[TRANSPORT_HEADER_MAX] = {0};

    transport_build(head, &pkt, 0);
    for (size_t len = 0; len < BTH_BYTES + RETH_BYTES; len++) {
        ck_assert_int_eq(transport_parse(head, head, len, &out), TRANSPORT_TRUNCATED);
    }
    ck_assert_int_eq(transport_parse(head, head, BTH_BYTES + RETH_BYTES, &out), TRANSPORT_OK);
    /* A READ request has no payload. */
    ck_assert_int_eq(transport_parse(head, head, BTH_BYTES + RETH_BYTES + 4, &out),
                     TRANSPORT_TRUNCATED);
    /* Three bytes of pad, and no payload. */
    pkt = sample(BTH_RC | BTH_SEND_ONLY);
    transport_build(head, &pkt, 1);
    ck_assert_int_eq(transport_parse(head, head, BTH_BYTES, &out), TRANSPORT_TRUNCATED);
    ck_assert_int_eq(transport_parse(head, head, BTH_BYTES + 4, &out), TRANSPORT_OK);
    ck_assert_uint_eq(out.payload_len, 1);
}
END_TEST

START_TEST(unknown_opcodes_and_versions_are_refused)
{
    struct transport_packet pkt = sample(BTH_RC | BTH_SEND_ONLY), out;
    uint8_t head[TRANSPORT_HEADER_MAX] = {0};

    transport_build(head, &pkt, 0);
    head[1] |= 1;
    ck_assert_int_eq(transport_parse(head, head, BTH_BYTES, &out), TRANSPORT_BAD_HEADER);
    for (int op = 0; op < 256; op++) {
        enum transport_verdict verdict;

        head[0] = (uint8_t)op;
        head[1] = 0;
        verdict = transport_parse(head, head, BTH_BYTES, &out);
        ck_assert_msg((verdict == TRANSPORT_BAD_HEADER) == !bth_opcodes[op].name, "%#x", op);
    }
}
END_TEST

Suite *unit_suite(void)
{
    Suite *s = suite_create("wire transport");
    TCase *tc = tcase_create("transport");

    tcase_add_loop_test(tc, each_opcode_comes_back_out_of_any_encapsulation, 0, 256);
    tcase_add_test(tc, the_longest_headers_byte_by_byte);
    tcase_add_test(tc, the_dcceth_byte_by_byte);
    tcase_add_test(tc, an_icrc_covers_what_stays_the_same);
    tcase_add_test(tc, the_crc_is_ethernets);
    tcase_add_test(tc, lengths_that_do_not_agree_are_refused);
    tcase_add_test(tc, unknown_opcodes_and_versions_are_refused);
    suite_add_tcase(s, tc);
    return s;
}
