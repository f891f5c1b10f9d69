/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests the descriptions of packets in traces, word for word (wire/packet/describe.h). */
#include "tests/unit/suite.h"
#include "wire/packet/describe.h"

#include <check.h>
#include <stdlib.h>

static const struct {
    uint8_t syndrome;
    const char *name;
} syndromes[] = {
    {0x1f, "ACK"}, /* no end-to-end credits */
    /* IBTA table 46 */
    {0x00, "ACK credits 0"},
    {0x01, "ACK credits 1"},
    {0x02, "ACK credits 2"},
    {0x03, "ACK credits 3"},
    {0x04, "ACK credits 4"},
    {0x05, "ACK credits 6"},
    {0x06, "ACK credits 8"},
    {0x09, "ACK credits 24"},
    {0x1e, "ACK credits 32768"},
    /* IBTA table 45 */
    {0x20, "RNR NAK 655.36 ms"},
    {0x21, "RNR NAK 0.01 ms"},
    {0x2c, "RNR NAK 0.64 ms"},
    {0x3f, "RNR NAK 491.52 ms"},
    {0x40, "reserved syndrome 0x40"},
    {0x60, "NAK PSN sequence error"},
    {0x61, "NAK invalid request"},
    {0x62, "NAK remote access error"},
    {0x63, "NAK remote operational error"},
    {0x64, "CNAK no free responder"},
    {0x65, "reserved syndrome 0x65"},
    {0x7f, "reserved syndrome 0x7f"},
    {0xff, "reserved syndrome 0xff"},
};

START_TEST(each_syndrome_has_its_name)
{
    g_autoptr(GString) line = g_string_new(NULL);

    aeth_describe(line, syndromes[_i].syndrome);
    ck_assert_str_eq(line->str, syndromes[_i].name);
}
END_TEST

static const struct {
    struct transport_packet packet;
    const char *text;
} packets[] = {
    {{.opcode = BTH_RC | BTH_SEND_ONLY,
      .dest_qp = 0x4b,
      .psn = 100,
      .ackreq = true,
      .solicited = true,
      .pkey = 0xffff,
      .payload_len = 64},
     "RC_SEND_ONLY qp 0x4b psn 100, 64 bytes, solicited, ackreq"},
    {{.opcode = BTH_UC | BTH_WRITE_ONLY_IMM,
      .dest_qp = 0x4b,
      .psn = 0xffffff,
      .pkey = 0x8001,
      .reth = {.va = 0x7f3a10, .rkey = 0x1800, .len = 5},
      .imm = 0x2a,
      .payload_len = 5},
     "UC_WRITE_ONLY_IMM qp 0x4b psn 16777215 va 0x7f3a10 rkey 0x1800 len 5 imm 0x2a, 5 bytes, "
     "pkey 0x8001"},
    {{.opcode = BTH_RC | BTH_SEND_ONLY_INV, .dest_qp = 1, .pkey = 0xffff, .imm = 0x1900},
     "RC_SEND_ONLY_INV qp 0x1 psn 0 inval_rkey 0x1900, 0 bytes"},
    {{.opcode = BTH_RC | BTH_ACK,
      .dest_qp = 0x4a,
      .psn = 7,
      .pkey = 0xffff,
      .aeth = {.syndrome = AETH_NAK_SEQ, .msn = 3}},
     "RC_ACK qp 0x4a psn 7 NAK PSN sequence error msn 3"},
    {{.opcode = BTH_RC | BTH_ATOMIC_ACK,
      .dest_qp = 0x4a,
      .psn = 8,
      .pkey = 0xffff,
      .aeth = {.syndrome = AETH_ACK, .msn = 4},
      .atomic_ack = 0x11},
     "RC_ATOMIC_ACK qp 0x4a psn 8 ACK msn 4 value 0x11"},
    {{.opcode = BTH_XRC | BTH_FETCH_ADD,
      .dest_qp = 0x4a,
      .psn = 9,
      .pkey = 0xffff,
      .xrc_srqn = 0x5,
      .atomic = {.va = 0x1000, .rkey = 0x1800, .swap_add = 2, .compare = 0}},
     "XRC_FETCH_ADD qp 0x4a psn 9 srqn 0x5 va 0x1000 rkey 0x1800 swap_add 0x2 compare 0x0"},
    {{.opcode = BTH_UD | BTH_SEND_ONLY,
      .dest_qp = 0xffffff,
      .psn = 1,
      .pkey = 0xffff,
      .deth = {.src_qp = 0x4a, .qkey = 0x11111111},
      .payload_len = 12},
     "UD_SEND_ONLY qp 0xffffff psn 1 from qp 0x4a qkey 0x11111111, 12 bytes"},
    {{.opcode = BTH_DC | BTH_ACK,
      .dest_qp = 0x4a,
      .psn = 2,
      .pkey = 0xffff,
      .dceth = {.session = 0x77, .number = 0x50},
      .aeth = {.syndrome = AETH_CNAK}},
     "DC_ACK qp 0x4a psn 2 session 0x77 of 0x50 CNAK no free responder msn 0"},
    {{.opcode = BTH_CNP_OPCODE, .dest_qp = 0x4a, .pkey = 0xffff, .fecn = true, .becn = true},
     "CNP qp 0x4a psn 0, FECN, BECN"},
    {{.opcode = 0x1e, .dest_qp = 0x4a, .psn = 3, .pkey = 0xffff, .payload_len = 9},
     "unknown opcode 0x1e qp 0x4a psn 3"},
};

START_TEST(each_header_has_its_words)
{
    g_autoptr(GString) line = g_string_new(NULL);

    transport_describe(line, &packets[_i].packet);
    ck_assert_str_eq(line->str, packets[_i].text);
}
END_TEST

/* Whatever a peer sends has a description, and a short one. */
START_TEST(each_opcode_and_syndrome_has_a_short_description)
{
    struct transport_packet packet;

    for (unsigned op = 0; op < 256; op++) {
        g_autoptr(GString) line = g_string_new(NULL);

        memset(&packet, 0xff, sizeof(packet));
        packet.solicited = packet.migreq = packet.ackreq = packet.fecn = packet.becn = true;
        packet.opcode = (uint8_t)op;
        packet.aeth.syndrome = (uint8_t)op;
        transport_describe(line, &packet);
        ck_assert_uint_gt(line->len, 0);
        ck_assert_uint_lt(line->len, 250);
        ck_assert_msg((strstr(line->str, "unknown") != NULL) == !bth_opcodes[op].name, "%s",
                      line->str);
    }
}
END_TEST

Suite *unit_suite(void)
{
    Suite *s = suite_create("wire describe");
    TCase *tc = tcase_create("describe");

    tcase_add_loop_test(tc, each_syndrome_has_its_name, 0, G_N_ELEMENTS(syndromes));
    tcase_add_loop_test(tc, each_header_has_its_words, 0, G_N_ELEMENTS(packets));
    tcase_add_test(tc, each_opcode_and_syndrome_has_a_short_description);
    suite_add_tcase(s, tc);
    return s;
}
