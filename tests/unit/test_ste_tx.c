/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests steering of sent frames by software: entries that a test writes into steering memory as
 * bytes, and what then leaves the device.
 */
#include <check.h>
#include <string.h>
#include "model/steering/contexts.h"
#include "model/steering/ste.h"
#include "model/steering/steering.h"
#include "tests/unit/eth_bench.h"
#include "tests/unit/steer_frames.h"
#include "tests/unit/ste_entries.h"
#include "tests/unit/suite.h"

#define NIC_TX PRM_FLOW_TABLE_TYPE_NIC_TX
#define START  SW_ICM_STE_START
#define ANCHOR START
#define TABLE  (START + 0x1000)
#define NEXT   (START + 0x2000)
#define THIRD  (START + 0x3000)
#define DROP   0x1000000000ull /* sw_steering_nic_tx_action_drop_icm_address */
#define ALLOW  0x1100000000ull /* sw_steering_nic_tx_action_allow_icm_address */
#define ANY    STE_ANY
#define L2_DST 0x06
#define TX     1
#define RX     2
#define MODIFY 6
/* Actions of an entry of type TX, in its fourth word. */
#define PUSH_VLAN (1u << 23)
#define ENCAP_L3  (3u << 23)
#define ENCAP     (4u << 23)

/* An Ethernet frame of 60 bytes for addresses that nobody has, and what follows its addresses. */
#define ADDRESSES "0200000000aa0200000000bb"
#define REST                                                                                       \
    "88b5000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f202122232425262728292a2b" \
    "2c2d"
#define PLAIN ADDRESSES REST
/* An Ethernet header for MPLS, and a label. */
#define MPLS "0200000000ab020000000002884700064140"

static struct bench *b;
static struct hca *hca;
static struct bench_queue sq, other;
static uint32_t table;

static void put(uint64_t at, const struct entry *e)
{
    ste_put(hca, TX, at, e);
}

/* An entry that every frame hits. */
static void put_catch_all(uint64_t at, const struct entry *e)
{
    struct entry all = *e;

    all.lookup = all.next_lookup = ANY;
    all.miss = DROP;
    put(at, &all);
}

/* The root table leads every sent frame to the table that software lays out. */
static void setup(void)
{
    uint32_t num;

    b = bench_new();
    hca = &b->rig.hca;
    b->table_type = NIC_TX;
    bench_sq_new(b, b->tisn, &sq);
    bench_sq_new(b, b->tisn, &other);
    ste_take_memory(hca, START, &num);
    ste_take_memory(hca, SW_ICM_MODIFY_START, &num);
    put_catch_all(ANCHOR, &(struct entry){.hit = ALLOW});
    table = ste_table(hca, 0, NIC_TX, ANCHOR);
    bench_root_to(b, table);
}

static void teardown(void)
{
    bench_free(b);
}

/* Sends a frame from a queue, and returns how many frames came out. The WQE completes in any
 * case. */
static unsigned sends_from(struct bench_queue *queue, const char *hex, uint32_t metadata)
{
    uint8_t bytes[512];
    struct bench_wr wr = {
        .opcode = PRM_WQE_OPCODE_SEND, .hdr = bytes, .hdr_len = steer_hex(bytes, hex)};

    return bench_send_metadata(queue, &wr, metadata);
}

static unsigned sends(const char *hex)
{
    return sends_from(&sq, hex, 0);
}

/* Expects that the frame leaves with these bytes. */
static void leaves_as(const char *hex, const char *want)
{
    uint8_t bytes[512];
    size_t len = steer_hex(bytes, want);

    ck_assert_uint_eq(sends(hex), 1);
    ck_assert_uint_eq(b->frames[0].len, len);
    ck_assert_mem_eq(b->frames[0].data, bytes, len);
}

static uint32_t mpls(void)
{
    return steer_reformat(hca, 0, PRM_REFORMAT_TYPE_L2_TO_L2_TUNNEL, MPLS);
}

static uint32_t counter_new(void)
{
    uint32_t id;

    ck_assert_int_eq(flow_counter_alloc(hca, 0, 1, &id), SYN_OK);
    return id;
}

/* Driver: dr_domain_caps_init(). A miss of all matchers leads to the address "allow". */
START_TEST(a_sent_frame_goes_by_its_entry)
{
    struct entry e = {.lookup = L2_DST, .next_lookup = ANY, .hit = DROP, .miss = ALLOW};
    uint32_t counter = counter_new();

    e.counter = counter;
    steer_hex(e.tag, "0200000000aa");
    memset(e.mask, 0xff, 6);
    put(ANCHOR, &e);
    ck_assert_uint_eq(sends(PLAIN), 0);
    leaves_as("0200000000ac0200000000bb" REST, "0200000000ac0200000000bb" REST);
    ck_assert_uint_eq(flow_counter_find(hca, counter)->packets, 1);
    ck_assert_uint_eq(flow_counter_find(hca, counter)->bytes, 60);
    e.hit = ALLOW;
    e.miss = DROP;
    put(ANCHOR, &e);
    leaves_as(PLAIN, PLAIN);
    ck_assert_uint_eq(sends("0200000000ac0200000000bb" REST), 0);
    ck_assert_uint_eq(flow_counter_find(hca, counter)->packets, 2);
}
END_TEST

/* The tag of the queue that sent the frame, and of register A, which is flow_table_metadata. */
START_TEST(an_entry_knows_queue_and_metadata)
{
    struct entry e = {.lookup = 0x05, .next_lookup = ANY, .hit = DROP, .miss = ALLOW};

    be(e.tag + 5, other.num, 3);
    memset(e.mask + 5, 0xff, 3);
    put(ANCHOR, &e);
    ck_assert_uint_eq(sends_from(&sq, PLAIN, 0), 1);
    ck_assert_uint_eq(sends_from(&other, PLAIN, 0), 0);
    e = (struct entry){.lookup = 0x18, .next_lookup = ANY, .hit = DROP, .miss = ALLOW};
    be(e.tag, 0x12345678, 4);
    memset(e.mask, 0xff, 4);
    put(ANCHOR, &e);
    ck_assert_uint_eq(sends_from(&sq, PLAIN, 0x12345679), 1);
    ck_assert_uint_eq(sends_from(&sq, PLAIN, 0x12345678), 0);
}
END_TEST

/* Driver: dr_ste_v0_set_tx_push_vlan(). */
START_TEST(a_tag_is_inserted)
{
    put_catch_all(ANCHOR, &(struct entry){.hit = ALLOW, .word3 = PUSH_VLAN, .pointer = 0x88a86064});
    leaves_as(PLAIN, ADDRESSES "88a86064" REST);
}
END_TEST

/* Driver: dr_ste_v0_set_tx_encap(). */
START_TEST(a_tunnel_is_inserted)
{
    put_catch_all(ANCHOR,
                  &(struct entry){.hit = ALLOW, .word3 = ENCAP | 9 << 16, .pointer = mpls()});
    leaves_as(PLAIN, MPLS PLAIN);
}
END_TEST

START_TEST(a_tunnel_of_layer_3_is_inserted)
{
    put_catch_all(ANCHOR,
                  &(struct entry){.hit = ALLOW, .word3 = ENCAP_L3 | 9 << 16, .pointer = mpls()});
    /* without the addresses and type of the frame */
    leaves_as(PLAIN, MPLS "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
                          "202122232425262728292a2b2c2d");
}
END_TEST

/* Driver: dr_ste_v0_set_actions_tx() lays out an entry for each: header change, tags, tunnel. The
 * tunnel carries the frame that the others have made. A tag of the entry behind them is that of the
 * outer headers. */
START_TEST(actions_follow_each_other)
{
    static const uint8_t list[2 * 8] = {
        2, 1, 16, 0,  0xca, 0xfe, 0xba, 0xbe, /* SET source 47:16 */
        2, 1, 0,  16, 0,    0,    0xf0, 0x0d, /* SET source 15:0 */
    };
    struct entry last = {.lookup = L2_DST, .next_lookup = ANY, .hit = ALLOW, .miss = DROP};

    ste_put_bytes(hca, SW_ICM_MODIFY_START + 64, list, sizeof(list));
    put_catch_all(ANCHOR,
                  &(struct entry){.type = MODIFY, .hit = TABLE, .word3 = 2 << 16, .pointer = 1});
    put_catch_all(TABLE, &(struct entry){.hit = NEXT, .word3 = PUSH_VLAN, .pointer = 0x81000005});
    put_catch_all(NEXT, &(struct entry){.hit = THIRD, .word3 = ENCAP, .pointer = mpls()});
    steer_hex(last.tag, "0200000000ab"
                        "8847");
    memset(last.mask, 0xff, 8);
    put(THIRD, &last);
    leaves_as(PLAIN, MPLS "0200000000aacafebabef00d"
                          "81000005" REST);
    last.tag[5]++;
    put(THIRD, &last);
    ck_assert_uint_eq(sends(PLAIN), 0);
}
END_TEST

/* Driver: dr_action_create_dest_array_tbl() and tables of level 0. A table of the device that
 * follows sees the changed frame, and so does the wire. */
START_TEST(entries_lead_to_tables_of_the_device)
{
    uint32_t counter = counter_new(), last = bench_table(b, 99, 0);
    struct prm_fte_match_param mask[1] = {0}, value[1] = {0};
    struct bench_fte fte = {.table = last,
                            .param = value,
                            .action = PRM_FLOW_ACTION_ALLOW | PRM_FLOW_ACTION_COUNT,
                            .counters = {counter},
                            .num_counters = 1};

    PRM_SET(fte_match_set_lyr_2_4, PRM_PTR(fte_match_param, mask, outer_headers), first_vid, 0xfff);
    PRM_SET(fte_match_set_lyr_2_4, PRM_PTR(fte_match_param, value, outer_headers), first_vid, 5);
    ck_assert_int_eq(
        bench_try_group(b, last, 1 << PRM_MATCH_CRITERIA_OUTER_HEADERS, mask, &fte.group), SYN_OK);
    ck_assert_int_eq(bench_fte_set(b, &fte), SYN_OK);
    put_catch_all(ANCHOR, &(struct entry){.hit = ste_end_address(STE_TABLE, last),
                                          .word3 = PUSH_VLAN,
                                          .pointer = 0x81000005});
    leaves_as(PLAIN, ADDRESSES "81000005" REST);
    ck_assert_uint_eq(flow_counter_find(hca, counter)->packets, 1);
}
END_TEST

/* Each segment of a large send is a frame of its own. */
START_TEST(segments_go_by_their_entries)
{
    struct bench_pkt pkt = {.dmac = bench_peer_mac, .ip_version = 4, .proto = 6, .payload = 1200};
    uint32_t counter = counter_new();
    uint8_t packet[2048];
    size_t len = bench_build(packet, &pkt), header = bench_headers(&pkt);
    struct bench_wr wr = {.opcode = PRM_WQE_OPCODE_TSO, .mss = 500, .num_sge = 1};

    wr.hdr = packet;
    wr.hdr_len = header;
    wr.sge[0] = (struct bench_sge){bench_mem(b, packet + header, len - header),
                                   (uint32_t)(len - header), 0};
    put_catch_all(ANCHOR,
                  &(struct entry){
                      .hit = ALLOW, .counter = counter, .word3 = PUSH_VLAN, .pointer = 0x81000005});
    b->num_frames = 0;
    bench_send(&sq, &wr);
    ck_assert_uint_eq(b->num_frames, 3);
    ck_assert_uint_eq(flow_counter_find(hca, counter)->packets, 3);
    for (unsigned i = 0; i < 3; i++) {
        ck_assert_mem_eq(b->frames[i].data + 12, "\x81\0\0\5\x08", 5);
    }
}
END_TEST

START_TEST(bad_entries_drop_the_frame)
{
    uint32_t decap =
        steer_reformat(hca, 0, PRM_REFORMAT_TYPE_L3_TUNNEL_TO_L2, "0200000000ab0200000000020800");
    const struct entry bad[] = {
        {.hit = ANCHOR},
        {.hit = ste_end_address(STE_TIR, 1)},
        {.hit = ste_end_address(STE_TABLE, 0x3fff)},
        {.hit = ste_end_address(STE_ENDS, 0)},
        {.hit = ALLOW, .hit_gvmi = 1},
        {.hit = ALLOW, .type = RX},
        {.hit = ALLOW, .type = MODIFY, .tunneling = 2}, /* there is no tunnel */
        {.hit = ALLOW, .word3 = 2u << 23},              /* no such action */
        {.hit = ALLOW, .word3 = ENCAP, .pointer = 0x3fff},
        {.hit = ALLOW, .word3 = ENCAP, .pointer = decap},
        {.hit = ALLOW, .word3 = ENCAP_L3, .pointer = 0},
    };

    put_catch_all(ANCHOR, &bad[_i]);
    ck_assert_uint_eq(sends(PLAIN), 0);
    put_catch_all(ANCHOR, &(struct entry){.hit = ALLOW});
    ck_assert_uint_eq(sends(PLAIN), 1);
}
END_TEST
#define BAD_ENTRIES 11

/* A walk through the entries of received frames does not become one of sent frames. */
START_TEST(tables_of_received_frames_are_not_reached)
{
    uint32_t rx;

    b->table_type = PRM_FLOW_TABLE_TYPE_NIC_RX;
    rx = bench_table(b, 99, 0);
    put_catch_all(ANCHOR, &(struct entry){.hit = ste_end_address(STE_TABLE, rx)});
    ck_assert_uint_eq(sends(PLAIN), 0);
}
END_TEST

START_TEST(entries_name_what_their_owner_may_use)
{
    uint32_t theirs = steer_reformat(hca, RIG_USER + 1, PRM_REFORMAT_TYPE_L2_TO_L2_TUNNEL, MPLS);
    uint32_t mine = steer_reformat(hca, RIG_USER, PRM_REFORMAT_TYPE_L2_TO_L2_TUNNEL, MPLS);

    ck_assert_int_eq(
        flow_table_set_root(hca, NIC_TX, ste_table(hca, RIG_USER, NIC_TX, ANCHOR), true), SYN_OK);
    put_catch_all(ANCHOR, &(struct entry){.hit = ALLOW, .word3 = ENCAP, .pointer = theirs});
    ck_assert_uint_eq(sends(PLAIN), 0);
    put_catch_all(ANCHOR, &(struct entry){.hit = ALLOW, .word3 = ENCAP, .pointer = mine});
    ck_assert_uint_eq(sends(PLAIN), 1);
}
END_TEST

/* An entry inserts a tag and leads to itself: the frame has no more room at some time, and is
 * dropped. */
START_TEST(a_frame_that_grows_without_end_is_dropped)
{
    put_catch_all(ANCHOR,
                  &(struct entry){.hit = ANCHOR, .word3 = PUSH_VLAN, .pointer = 0x81000005});
    ck_assert_uint_eq(sends(PLAIN), 0);
    put_catch_all(ANCHOR, &(struct entry){.hit = ALLOW});
    ck_assert_uint_eq(sends(PLAIN), 1);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *s = suite_create("ste-tx");
    TCase *tc = tcase_create("ste-tx");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, a_sent_frame_goes_by_its_entry);
    tcase_add_test(tc, an_entry_knows_queue_and_metadata);
    tcase_add_test(tc, a_tag_is_inserted);
    tcase_add_test(tc, a_tunnel_is_inserted);
    tcase_add_test(tc, a_tunnel_of_layer_3_is_inserted);
    tcase_add_test(tc, actions_follow_each_other);
    tcase_add_test(tc, entries_lead_to_tables_of_the_device);
    tcase_add_test(tc, segments_go_by_their_entries);
    tcase_add_loop_test(tc, bad_entries_drop_the_frame, 0, BAD_ENTRIES);
    tcase_add_test(tc, tables_of_received_frames_are_not_reached);
    tcase_add_test(tc, entries_name_what_their_owner_may_use);
    tcase_add_test(tc, a_frame_that_grows_without_end_is_dropped);
    suite_add_tcase(s, tc);
    return s;
}
