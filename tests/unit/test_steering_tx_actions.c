/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests what entries do to frames that are sent: tunnels, tags, header rewrite. */
#include <check.h>
#include <string.h>
#include "model/steering/contexts.h"
#include "model/steering/steering.h"
#include "tests/unit/eth_bench.h"
#include "tests/unit/steer_frames.h"
#include "tests/unit/suite.h"

#define A(name) PRM_FLOW_ACTION_##name
#define NIC_TX  PRM_FLOW_TABLE_TYPE_NIC_TX
#define MSS     500

/* An Ethernet frame of 60 bytes for addresses that nobody has. */
#define PLAIN                                                                                      \
    "0200000000aa0200000000bb88b5000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f" \
    "202122232425262728292a2b2c2d"
/* A tunnel's headers as a program gives them, and as they are before and behind the UDP source port
 * of a frame that carries PLAIN. */
#define VXLAN_GIVEN                                                                                \
    "0200000000ab02000000000208004500dead00004000ff11beefc0000201c000020204d212b5ffffdead08000000" \
    "11223300"
#define VXLAN_BEFORE                                                                               \
    "0200000000ab0200000000020800450000600000"                                                     \
    "4000ff11f788c0000201c0000202"
#define VXLAN_AFTER "12b5004c00000800000011223300"

static struct bench *b;
static struct hca *hca;
static struct bench_queue sq;

static void setup(void)
{
    b = bench_new();
    hca = &b->rig.hca;
    b->table_type = NIC_TX;
    bench_sq_new(b, b->tisn, &sq);
}

static void teardown(void)
{
    bench_free(b);
}

/* What the only rule does. */
struct rule {
    uint16_t action;
    uint32_t reformat, modify;
    uint16_t tpid[2], tci[2];
};

static enum syn try_rule(const struct rule *rule)
{
    struct prm_set_fte_in in[1] = {0};
    struct prm_create_flow_group_in group[1] = {0};
    struct prm_flow_context *ctx = PRM_PTR(set_fte_in, in, flow_context);
    struct prm_flow_table_context table[1] = {0};
    uint32_t table_id, group_id;
    enum syn syn;

    PRM_SET(flow_table_context, table, reformat_en, 1);
    ck_assert_int_eq(flow_table_create(hca, 0, NIC_TX, table, &table_id), SYN_OK);
    PRM_SET(create_flow_group_in, group, table_type, NIC_TX);
    PRM_SET(create_flow_group_in, group, table_id, table_id);
    ck_assert_int_eq(flow_group_create(hca, 0, group, &group_id), SYN_OK);
    PRM_SET(set_fte_in, in, table_type, NIC_TX);
    PRM_SET(set_fte_in, in, table_id, table_id);
    PRM_SET(flow_context, ctx, group_id, group_id);
    PRM_SET(flow_context, ctx, action, rule->action);
    PRM_SET(flow_context, ctx, packet_reformat_id, rule->reformat);
    PRM_SET(flow_context, ctx, modify_header_id, rule->modify);
    for (unsigned i = 0; i < 2; i++) {
        struct prm_vlan *vlan =
            i ? PRM_PTR(flow_context, ctx, push_vlan_2) : PRM_PTR(flow_context, ctx, push_vlan);

        PRM_SET(vlan, vlan, ethtype, rule->tpid[i]);
        PRM_SET(vlan, vlan, prio, rule->tci[i] >> 13);
        PRM_SET(vlan, vlan, vid, rule->tci[i] & 0xfff);
    }
    syn = flow_entry_set(hca, 0, in, sizeof(in), false);
    if (syn == SYN_OK) {
        ck_assert_int_eq(flow_table_set_root(hca, NIC_TX, table_id, true), SYN_OK);
    }
    return syn;
}

static void set_rule(const struct rule *rule)
{
    ck_assert_int_eq(try_rule(rule), SYN_OK);
}

static uint32_t modify(uint16_t field, uint8_t bits, uint32_t value)
{
    struct prm_set_action_in action[1] = {0};
    uint32_t id;

    PRM_SET(set_action_in, action, action_type, PRM_MODIFY_HEADER_ACTION_SET);
    PRM_SET(set_action_in, action, field, field);
    PRM_SET(set_action_in, action, length, bits & 31);
    PRM_SET(set_action_in, action, data, value);
    ck_assert_int_eq(modify_header_create(hca, 0, NIC_TX, action, 1, &id), SYN_OK);
    return id;
}

/* Sends the frame; its WQE completes. */
static void sends(const char *hex)
{
    uint8_t bytes[512];
    struct bench_wr wr = {
        .opcode = PRM_WQE_OPCODE_SEND, .hdr = bytes, .hdr_len = steer_hex(bytes, hex)};
    uint16_t first = sq.pi;

    b->num_frames = 0;
    bench_send(&sq, &wr);
    bench_expect(&sq, PRM_CQE_OPCODE_REQ, 0, first);
}

/* Expects the bytes of a frame from offset at on. */
static size_t expect_at(size_t at, const char *hex)
{
    const struct bench_frame *frame = &b->frames[0];
    uint8_t bytes[512];
    size_t len = steer_hex(bytes, hex);

    ck_assert_uint_eq(b->num_frames, 1);
    ck_assert_uint_ge(frame->len, at + len);
    for (size_t i = 0; i < len; i++) {
        ck_assert_msg(frame->data[at + i] == bytes[i], "byte %zu is 0x%02x, not 0x%02x", at + i,
                      frame->data[at + i], bytes[i]);
    }
    return at + len;
}

/* pyverbs test_tx_packet_reformat: the device fills in lengths, identification, checksum and source
 * port. */
START_TEST(a_tunnel_is_inserted)
{
    size_t at;

    set_rule(&(struct rule){
        .action = A(ALLOW) | A(PACKET_REFORMAT),
        .reformat = steer_reformat(hca, 0, PRM_REFORMAT_TYPE_L2_TO_L2_TUNNEL, VXLAN_GIVEN)});
    sends(PLAIN);
    at = expect_at(0, VXLAN_BEFORE);
    ck_assert_uint_ge(b->frames[0].data[at], 0xc0);
    at = expect_at(at + 2, VXLAN_AFTER);
    ck_assert_uint_eq(expect_at(at, PLAIN), b->frames[0].len);
}
END_TEST

START_TEST(an_l3_tunnel_takes_the_ethernet_header_away)
{
    set_rule(&(struct rule){.action = A(ALLOW) | A(PACKET_REFORMAT),
                            .reformat = steer_reformat(hca, 0, PRM_REFORMAT_TYPE_L2_TO_L3_TUNNEL,
                                                       "0200000000ab0200000000028847"
                                                       "00064140")});
    sends(PLAIN);
    /* 60 - 14 + 18 bytes */
    ck_assert_uint_eq(b->frames[0].len, 64);
    expect_at(0, "0200000000ab0200000000028847"
                 "00064140"
                 "000102030405");
}
END_TEST

/* The second tag is the outer one, as with two actions "vlan push" of tc (driver:
 * parse_tc_vlan_action()). */
START_TEST(tags_are_inserted)
{
    set_rule(&(struct rule){.action = A(ALLOW) | A(VLAN_PUSH) | A(VLAN_PUSH_2),
                            .tpid = {0x8100, 0x88a8},
                            .tci = {0x6064, 7}});
    sends(PLAIN);
    ck_assert_uint_eq(b->frames[0].len, 68);
    expect_at(0, "0200000000aa0200000000bb"
                 "88a80007"
                 "81006064"
                 "88b5000102");
}
END_TEST

/* pyverbs test_root_tbl_modify_header_rule changes the source address; another rule changes the
 * destination, by which the wire finds the receiver. */
START_TEST(addresses_are_rewritten)
{
    set_rule(
        &(struct rule){.action = A(ALLOW) | A(MOD_HDR),
                       .modify = modify(PRM_MODIFY_HEADER_FIELD_OUT_SMAC_47_16, 32, 0x88888888)});
    sends(PLAIN);
    expect_at(0, "0200000000aa8888888800bb88b5");
    set_rule(&(struct rule){.action = A(ALLOW) | A(MOD_HDR),
                            .modify = modify(PRM_MODIFY_HEADER_FIELD_OUT_DMAC_15_0, 16, 0x1234)});
    sends(PLAIN);
    expect_at(0, "0200000012340200000000bb88b5");
}
END_TEST

/* The order is that of the device: the rewrite is of the frame inside, the tag is inside, too. */
START_TEST(actions_come_in_the_order_of_the_device)
{
    set_rule(
        &(struct rule){.action = A(ALLOW) | A(MOD_HDR) | A(VLAN_PUSH) | A(PACKET_REFORMAT),
                       .modify = modify(PRM_MODIFY_HEADER_FIELD_OUT_SMAC_47_16, 32, 0x88888888),
                       .reformat = steer_reformat(hca, 0, PRM_REFORMAT_TYPE_L2_TO_L2_TUNNEL,
                                                  "0200000000ab0200000000028847"
                                                  "00064140"),
                       .tpid = {0x8100},
                       .tci = {5}});
    sends(PLAIN);
    expect_at(0, "0200000000ab0200000000028847"
                 "00064140"
                 "0200000000aa8888888800bb"
                 "81000005"
                 "88b5");
}
END_TEST

/* Each segment of a message gets a tunnel that is right for it, and for the checksums inside. */
START_TEST(segments_are_tunnelled)
{
    struct bench_pkt pkt = {.dmac = bench_peer_mac,
                            .ip_version = 4,
                            .proto = 6,
                            .tcp_flags = 0x10,
                            .payload = 3 * MSS - 100};
    uint8_t message[3 * MSS + 100];
    size_t headers = bench_headers(&pkt);
    struct bench_wr wr = {.opcode = PRM_WQE_OPCODE_TSO,
                          .cs_flags = 0xc0,
                          .mss = MSS,
                          .hdr = message,
                          .hdr_len = headers,
                          .num_sge = 1};

    set_rule(&(struct rule){
        .action = A(ALLOW) | A(PACKET_REFORMAT),
        .reformat = steer_reformat(hca, 0, PRM_REFORMAT_TYPE_L2_TO_L2_TUNNEL, VXLAN_GIVEN)});
    bench_build(message, &pkt);
    wr.sge[0] =
        (struct bench_sge){bench_mem(b, message + headers, pkt.payload), (uint32_t)pkt.payload, 0};
    bench_send(&sq, &wr);
    bench_expect(&sq, PRM_CQE_OPCODE_REQ, 0, 0);
    ck_assert_uint_eq(b->num_frames, 3);
    for (unsigned i = 0; i < 3; i++) {
        const struct bench_frame *frame = &b->frames[i];
        size_t len = 50 + headers + (i < 2 ? MSS : MSS - 100);

        ck_assert_uint_eq(frame->len, len);
        ck_assert_uint_eq(frame->data[16] << 8 | frame->data[17], len - 14);
        ck_assert_uint_eq(frame->data[18] << 8 | frame->data[19], i); /* identification */
        ck_assert_uint_eq(bench_sum(frame->data + 14, 20, 0), 0xffff);
        ck_assert_uint_eq(frame->data[38] << 8 | frame->data[39], len - 34);
        ck_assert(bench_sums_ok(frame->data + 50, frame->len - 50));
    }
}
END_TEST

START_TEST(a_frame_that_becomes_too_long_is_lost)
{
    struct bench_wr wr = {.opcode = PRM_WQE_OPCODE_SEND, .num_sge = 1};
    uint8_t mac[14] = {2, [5] = 0xaa, 2, [11] = 2, 0x88, 0xb5};

    set_rule(&(struct rule){
        .action = A(ALLOW) | A(PACKET_REFORMAT),
        .reformat = steer_reformat(hca, 0, PRM_REFORMAT_TYPE_L2_TO_L2_TUNNEL, VXLAN_GIVEN)});
    for (unsigned longer = 0; longer < 2; longer++) {
        uint32_t len = WIRE_FRAME_MAX - 50 + longer;

        wr.hdr = mac;
        wr.hdr_len = sizeof(mac);
        wr.sge[0] = (struct bench_sge){bench_mem(b, NULL, len - 14), len - 14, 0};
        b->num_frames = 0;
        bench_send(&sq, &wr);
        ck_assert_uint_eq(b->num_frames, !longer);
    }
}
END_TEST

START_TEST(a_sent_frame_is_not_decapsulated)
{
    struct rule rule = {.action = A(ALLOW) | A(DECAP)};

    ck_assert_int_eq(try_rule(&rule), SYN_FTE_ACTION);
    rule.action = A(ALLOW) | A(VLAN_POP);
    ck_assert_int_eq(try_rule(&rule), SYN_FTE_ACTION);
    rule.action = A(ALLOW) | A(VLAN_PUSH); /* its type is 0 */
    ck_assert_int_eq(try_rule(&rule), SYN_FTE_ACTION);
    rule.tpid[0] = 0x8100;
    ck_assert_int_eq(try_rule(&rule), SYN_OK);
    rule.action = A(ALLOW) | A(PACKET_REFORMAT);
    rule.reformat =
        steer_reformat(hca, 0, PRM_REFORMAT_TYPE_L3_TUNNEL_TO_L2, "0200000000ab0200000000020800");
    ck_assert_int_eq(try_rule(&rule), SYN_FTE_ACTION);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *s = suite_create("steering-tx-actions");
    TCase *tc = tcase_create("actions");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, a_tunnel_is_inserted);
    tcase_add_test(tc, an_l3_tunnel_takes_the_ethernet_header_away);
    tcase_add_test(tc, tags_are_inserted);
    tcase_add_test(tc, addresses_are_rewritten);
    tcase_add_test(tc, actions_come_in_the_order_of_the_device);
    tcase_add_test(tc, segments_are_tunnelled);
    tcase_add_test(tc, a_frame_that_becomes_too_long_is_lost);
    tcase_add_test(tc, a_sent_frame_is_not_decapsulated);
    suite_add_tcase(s, tc);
    return s;
}
