/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests steering by software: entries that a test writes into steering memory as bytes, and where
 * received frames go.
 */
#include <check.h>
#include <string.h>
#include "model/core/pd.h"
#include "model/eth/tir.h"
#include "model/steering/contexts.h"
#include "model/steering/ste.h"
#include "model/steering/steering.h"
#include "tests/unit/eth_bench.h"
#include "tests/unit/ste_entries.h"
#include "tests/unit/suite.h"

#define NIC_RX PRM_FLOW_TABLE_TYPE_NIC_RX
#define QUEUES 2
#define START  SW_ICM_STE_START
#define DROP   0x1000000000ull /* sw_steering_nic_rx_action_drop_icm_address */
#define ANCHOR START
#define TABLE  (START + 0x1000) /* aligned to the tables that tests put there */
#define CHAIN  (START + 0x8000)
#define END    (START + 0x9000)
#define ANY    STE_ANY
#define L2_DST 0x1b
#define TUPLE  0x20
#define RX     2
#define MODIFY 6
#define TIR(i) ste_end_address(STE_TIR, tirs[i])

static struct bench *b;
static struct hca *hca;
static struct bench_queue rqs[QUEUES];
static uint32_t tirs[QUEUES], table, icm;
static uint64_t memory[QUEUES]; /* that is posted; 0: none is */

static void put_bytes(uint64_t at, const void *bytes, size_t len)
{
    ste_put_bytes(hca, at, bytes, len);
}

static void put(uint64_t at, const struct entry *e)
{
    ste_put(hca, RX, at, e);
}

/* An entry that every frame hits, and which leads to a table. */
static void put_anchor(uint64_t at, uint64_t next, uint32_t entries, uint8_t lookup,
                       uint16_t byte_mask)
{
    const struct entry anchor = {.lookup = ANY,
                                 .next_lookup = lookup,
                                 .byte_mask = byte_mask,
                                 .hit = next,
                                 .entries = entries};

    put(at, &anchor);
}

/* An entry that no frame hits. */
static void put_miss(uint64_t at, uint64_t miss)
{
    const struct entry never = {.lookup = ANY, .next_lookup = ANY, .miss = miss, .never = true};

    put(at, &never);
}

/* The driver's root table leads every frame to the table that software lays out. */
static void setup(void)
{
    uint32_t modify;

    b = bench_new();
    hca = &b->rig.hca;
    for (unsigned i = 0; i < QUEUES; i++) {
        memory[i] = 0;
        bench_rq_new(b, NULL, &rqs[i]);
        tirs[i] = bench_direct_tir(b, rqs[i].num);
    }
    ste_take_memory(hca, START, &icm);
    ste_take_memory(hca, SW_ICM_MODIFY_START, &modify);
    put_miss(ANCHOR, DROP);
    put_miss(END, DROP);
    table = ste_table(hca, 0, NIC_RX, ANCHOR);
    bench_root_to(b, table);
}

static void teardown(void)
{
    bench_free(b);
}

/* -- frames -------------------------------------------------------------------------------------
 */

static const uint8_t taken_mac[6] = {0x02, 0x11, 0x22, 0x33, 0x44, 0x55};

/* What the last frame that was received looked like. */
static uint8_t got[512];
static size_t got_len;
static uint32_t got_tag;

/* Sends the frame in; returns the queue that received it, or -1. */
static int receive(const uint8_t *frame, size_t len)
{
    int by = -1;

    for (unsigned i = 0; i < QUEUES; i++) {
        if (!memory[i]) {
            memory[i] = bench_mem(b, NULL, BENCH_RX_SIZE);
            bench_post_recv(&rqs[i], memory[i], BENCH_RX_SIZE);
        }
    }
    bench_rx(b, frame, len);
    for (unsigned i = 0; i < QUEUES; i++) {
        const struct prm_cqe64 *cqe = bench_cqe(&rqs[i]);

        if (cqe) {
            ck_assert_int_eq(by, -1);
            by = (int)i;
            got_len = PRM_GET(cqe64, cqe, byte_cnt);
            got_tag = prm_load32((const uint8_t *)cqe + 0x38) & 0xffffff;
            ck_assert_uint_le(got_len, sizeof(got));
            memcpy(got, fake_host_ptr(&b->rig.host, memory[i], got_len), got_len);
            memory[i] = 0;
            ck_assert_ptr_null(bench_cqe(&rqs[i]));
        }
    }
    return by;
}

static struct bench_pkt packet(void)
{
    return (struct bench_pkt){.ip_version = 4,
                              .proto = 17,
                              .src = {10, 0, 0, 2},
                              .dst = {10, 0, 0, 1},
                              .sport = 1000,
                              .dport = 2000,
                              .tcp_flags = 0x12,
                              .payload = 40};
}

static uint8_t frame[512];
static size_t frame_len;

static int receive_packet(const struct bench_pkt *pkt)
{
    frame_len = bench_build(frame, pkt);
    return receive(frame, frame_len);
}

/* -- tables -------------------------------------------------------------------------------------
 */

/* A table of n entries by destination address, all of which miss. */
static void empty_table(uint32_t n)
{
    put_anchor(ANCHOR, TABLE, n, L2_DST, 0xfc00);
    for (uint32_t i = 0; i < n; i++) {
        put_miss(TABLE + i * 64, END);
    }
}

static struct entry entry_of_mac(const uint8_t mac[6], uint64_t hit)
{
    struct entry e = {.lookup = L2_DST, .next_lookup = ANY, .hit = hit, .miss = END};

    memcpy(e.tag, mac, 6);
    memset(e.mask, 0xff, 6);
    return e;
}

START_TEST(a_frame_goes_where_its_entry_leads)
{
    struct bench_pkt pkt = packet();

    empty_table(32);
    for (unsigned i = 0; i < 40; i++) {
        uint8_t mac[6];
        struct entry e;

        memcpy(mac, bench_mac, 6);
        e = entry_of_mac(mac, TIR(i % QUEUES));
        put(TABLE + (ste_hash(e.tag) % 32) * 64, &e);
        ck_assert_int_eq(receive_packet(&pkt), (int)(i % QUEUES));
        put_miss(TABLE + (ste_hash(e.tag) % 32) * 64, END);
        ck_assert_int_eq(receive_packet(&pkt), -1);
    }
    ck_assert_uint_eq(hca->vport->counters.rx_no_steering, 40);
}
END_TEST

/* Entries with the same hash are a list by their miss addresses. */
START_TEST(entries_with_one_hash_are_a_list)
{
    struct entry first = entry_of_mac(taken_mac, TIR(0)), second = entry_of_mac(bench_mac, TIR(1));
    struct bench_pkt pkt = packet();

    empty_table(1);
    first.miss = CHAIN;
    put(TABLE, &first);
    put(CHAIN, &second);
    ck_assert_int_eq(receive_packet(&pkt), 1);
    /* the masked bits alone count */
    second.tag[5] = 0;
    second.mask[5] = 0;
    put(CHAIN, &second);
    ck_assert_int_eq(receive_packet(&pkt), 1);
    second.tag[0] ^= 0x80;
    put(CHAIN, &second);
    ck_assert_int_eq(receive_packet(&pkt), -1);
}
END_TEST

/* Software moves its entries to a larger table while frames come, and changes one anchor last
 * (driver: dr_rule_rehash()). The next frame sees it. */
START_TEST(nothing_of_entries_is_kept)
{
    struct entry e = entry_of_mac(bench_mac, TIR(0));
    struct bench_pkt pkt = packet();

    empty_table(1);
    put(TABLE, &e);
    ck_assert_int_eq(receive_packet(&pkt), 0);
    for (unsigned i = 0; i < 16; i++) {
        put_miss(START + 0x4000 + i * 64, END);
    }
    e.hit = TIR(1);
    put(START + 0x4000 + (ste_hash(e.tag) % 16) * 64, &e);
    ck_assert_int_eq(receive_packet(&pkt), 0);
    put_anchor(ANCHOR, START + 0x4000, 16, L2_DST, 0xfc00);
    ck_assert_int_eq(receive_packet(&pkt), 1);
    sw_icm_free(hca, obj_find(&hca->sw_icms, icm));
    ck_assert_int_eq(receive_packet(&pkt), -1);
}
END_TEST

/* -- tables that grow ---------------------------------------------------------------------------
 */

#define FLOWS       16
#define FIRST_PORT  1000
#define MOST_SLOTS  32
#define SOURCE_PORT 0x00c0 /* byte_mask: bytes 8 and 9 of a 5-tuple */

static unsigned frames_sent;

static struct entry entry_of_port(unsigned flow)
{
    struct entry e = {.lookup = TUPLE, .next_lookup = ANY, .hit = TIR(flow % QUEUES), .miss = END};

    be(e.tag + 8, FIRST_PORT + flow, 2);
    memset(e.mask + 8, 0xff, 2);
    return e;
}

/* Writes an entry. Then a frame of the next flow comes, and goes where its rule says. */
static void put_under_traffic(uint64_t at, const struct entry *e)
{
    struct bench_pkt pkt = packet();
    unsigned flow = frames_sent++ % FLOWS;

    put(at, e);
    pkt.sport = (uint16_t)(FIRST_PORT + flow);
    ck_assert_int_eq(receive_packet(&pkt), (int)(flow % QUEUES));
}

/* Lays out a table with the rules of all flows. Those whose place is taken are in a list. */
static void lay_out(uint64_t at, uint64_t lists, uint32_t slots,
                    void (*write)(uint64_t at, const struct entry *e))
{
    const struct entry never = {.lookup = ANY, .next_lookup = ANY, .miss = END, .never = true};
    struct entry first[MOST_SLOTS];
    bool used[MOST_SLOTS] = {false};

    for (uint32_t i = 0; i < slots; i++) {
        write(at + i * 64, &never);
    }
    for (unsigned flow = 0; flow < FLOWS; flow++) {
        struct entry e = entry_of_port(flow);
        uint32_t slot = ste_hash(e.tag) % slots;

        if (used[slot]) {
            e.miss = first[slot].miss;
            write(lists + flow * 64, &e);
            first[slot].miss = lists + flow * 64;
        } else {
            first[slot] = e;
            used[slot] = true;
        }
        write(at + slot * 64, &first[slot]);
    }
}

/* Driver: dr_rule_rehash_htbl(). The larger table is written while frames use the smaller one; then
 * the anchor changes. No frame of any flow is lost at any moment. */
START_TEST(tables_grow_under_traffic)
{
    frames_sent = 0;
    lay_out(START + 0x2000, START + 0x4000, 1, put);
    put_anchor(ANCHOR, START + 0x2000, 1, TUPLE, SOURCE_PORT);
    for (unsigned log = 1; 1u << log <= MOST_SLOTS; log++) {
        uint64_t at = START + (log & 1 ? 0x3000 : 0x2000);
        struct entry anchor = {.lookup = ANY,
                               .next_lookup = TUPLE,
                               .byte_mask = SOURCE_PORT,
                               .hit = at,
                               .entries = 1u << log};

        lay_out(at, at + 0x2000, 1u << log, put_under_traffic);
        put_under_traffic(ANCHOR, &anchor);
    }
    ck_assert_uint_gt(frames_sent, 10 * FLOWS);
}
END_TEST

/* -- tags ---------------------------------------------------------------------------------------
 */

enum kind {
    UDP4,
    TCP4,
    TCP6,
    VXLAN,
    GRE,
    GENEVE,
    GPE,
    KINDS
};

static size_t build(enum kind kind, uint8_t *to)
{
    struct bench_pkt pkt = packet(), outer = packet();
    uint8_t inner[256];
    size_t len, headers;

    pkt.vlan = kind == UDP4;
    pkt.tci = 3 << 13 | 0x123;
    if (kind == TCP4 || kind == TCP6) {
        pkt.proto = 6;
        pkt.seq = 0x01020304;
    }
    if (kind == TCP6) {
        pkt.ip_version = 6;
        memcpy(pkt.src,
               "\x20\x01\x0d\xb8"
               "aaaabbbbcccc",
               16);
        memcpy(pkt.dst,
               "\x20\x01\x0d\xb8"
               "ddddeeeeffff",
               16);
    }
    if (kind < VXLAN) {
        return bench_build(to, &pkt);
    }
    pkt.dmac = taken_mac;
    len = bench_build(inner, &pkt);
    outer.src[3] = 22;
    outer.sport = 0xc123;
    outer.dport = kind == GENEVE ? 6081 : kind == GPE ? 4790 : 4789;
    outer.payload = len + 8;
    outer.no_csum = true;
    headers = bench_headers(&outer);
    bench_build(to, &outer);
    if (kind != GRE) {
        memcpy(to + headers,
               kind == GENEVE ? "\x00\x80\x65\x58\xab\xcd\xef\0"
               : kind == GPE  ? "\x0c\0\0\x03\xab\xcd\xef\0"
                              : "\x08\0\0\0\xab\xcd\xef\0",
               8);
        memcpy(to + headers + 8, inner, len);
        be(to + headers - 2, 0, 2);
        be(to + 14 + 10, 0, 2);
        be(to + 14 + 10, (uint16_t)~bench_sum(to + 14, 20, 0), 2);
        return headers + 8 + len;
    }
    /* GRE with a key, of an Ethernet frame, in place of UDP */
    memcpy(to + 34, "\x20\0\x65\x58\x11\x22\x33\x44", 8);
    memcpy(to + 42, inner, len);
    to[14 + 9] = 47;
    be(to + 14 + 2, 20 + 8 + len, 2);
    be(to + 14 + 10, 0, 2);
    be(to + 14 + 10, (uint16_t)~bench_sum(to + 14, 20, 0), 2);
    return 42 + len;
}

/* For each type of tag, bytes that a frame has there. Driver: mlx5_ifc_ste_*_bits. */
static const struct {
    enum kind kind;
    uint8_t lookup, at, len;
    uint8_t bytes[16];
} tags[] = {
    {UDP4, 0x1b, 6, 2, {0x08, 0x00}},             /* ETHL2_DST: ethertype */
    {UDP4, 0x1c, 8, 4, {0x00, 0x06, 0x81, 0x23}}, /* ETHL2_SRC: priority 3, C-VLAN 0x123 */
    {UDP4, 0x08, 12, 1, {0x06}},                  /* IPv4, UDP */
    {TCP6, 0x1b, 12, 1, {0x09}},                  /* IPv6, TCP */
    {TCP4, 0x38, 12, 1, {0x04}},                  /* ETHL2_SRC_DST: IPv4 */
    {UDP4, 0x38, 14, 2, {0x81, 0x23}},            /* its VLAN */
    {UDP4, 0x20, 0, 12, {10, 0, 0, 1, 10, 0, 0, 2, 0x03, 0xe8, 0x07, 0xd0}}, /* 5_TUPLE */
    {TCP4, 0x20, 12, 4, {0x00, 0x12, 0x00, 0x06}}, /* its TCP flags and protocol */
    {TCP4, 0x11, 12, 4, {0x00, 0x12, 0x00, 0x06}},
    {TCP6, 0x1e, 0, 4, {0x20, 0x01, 0x0d, 0xb8}}, /* IPV6_DST */
    {TCP6, 0x1e, 4, 4, {'d', 'd', 'd', 'd'}},
    {TCP6, 0x1f, 12, 4, {'c', 'c', 'c', 'c'}},                            /* IPV6_SRC */
    {TCP6, 0x21, 0, 8, {0x00, 0x06, 0x07, 0xd0, 0x60, 0x12, 0x03, 0xe8}}, /* ETHL4 */
    {TCP6, 0x21, 10, 1, {64}},                                            /* hop limit */
    {TCP4, 0x2e, 4, 4, {1, 2, 3, 4}},                                     /* ETHL4_MISC: sequence */
    {UDP4, 0x2b, 0, 1, {0x45}},                                           /* IPV4_MISC */
    {UDP4, 0x2b, 8, 1, {64}},                                             /* its TTL */
    {VXLAN, 0x19, 0, 8, {8, 0, 0, 0, 0xab, 0xcd, 0xef, 0}},               /* TNL_HEADER */
    {GENEVE, 0x19, 0, 8, {0, 0x80, 0x65, 0x58, 0xab, 0xcd, 0xef, 0}},
    {GPE, 0x19, 0, 8, {0x0c, 0, 0, 3, 0xab, 0xcd, 0xef, 0}},
    {VXLAN, 0x34, 4, 4, {0xab, 0xcd, 0xef, 0}},
    {VXLAN, 0x0a, 8, 4, {0xab, 0xcd, 0xef, 0}},                /* L2_TUNNELING: network */
    {VXLAN, 0x0a, 0, 6, {0x02, 0x11, 0x22, 0x33, 0x44, 0x55}}, /* inner address */
    {VXLAN, 0x07, 0, 6, {0x02, 0x11, 0x22, 0x33, 0x44, 0x55}}, /* ETHL2_DST_I */
    {VXLAN, 0x12, 4, 8, {10, 0, 0, 2, 0x03, 0xe8, 0x07, 0xd0}},
    {VXLAN, 0x20, 4, 8, {10, 0, 0, 22, 0xc1, 0x23, 0x12, 0xb5}},
    {GRE, 0x16, 0, 4, {0x20, 0, 0x65, 0x58}},    /* GRE */
    {GRE, 0x16, 8, 4, {0x11, 0x22, 0x33, 0x44}}, /* its key */
    {GRE, 0x0a, 8, 4, {0x11, 0x22, 0x33, 0x44}},
    {GRE, 0x12, 4, 4, {10, 0, 0, 2}},
};

START_TEST(each_type_of_tag_is_compared)
{
    struct entry e = {.lookup = tags[_i].lookup, .next_lookup = ANY, .hit = TIR(0), .miss = END};

    memcpy(e.tag + tags[_i].at, tags[_i].bytes, tags[_i].len);
    memset(e.mask + tags[_i].at, 0xff, tags[_i].len);
    put_anchor(ANCHOR, TABLE, 1, tags[_i].lookup, 0);
    put(TABLE, &e);
    frame_len = build(tags[_i].kind, frame);
    ck_assert_int_eq(receive(frame, frame_len), 0);
    for (unsigned bit = 0; bit < tags[_i].len * 8u; bit += 5) {
        e.tag[tags[_i].at + bit / 8] ^= (uint8_t)(1u << bit % 8);
        put(TABLE, &e);
        ck_assert_int_eq(receive(frame, frame_len), -1);
        e.tag[tags[_i].at + bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
}
END_TEST

/* A tag of headers that the frame does not have hits no entry with a mask, but one without. */
START_TEST(without_the_headers_an_entry_is_missed)
{
    static const uint8_t lookups[] = {0x07, 0x0a, 0x0e, 0x12, 0x14, 0x16,
                                      0x19, 0x1e, 0x15, 0xff, 0};
    struct bench_pkt pkt = packet();

    for (unsigned i = 0; i < sizeof(lookups); i++) {
        struct entry e = {.lookup = lookups[i], .hit = TIR(0), .miss = END};

        put_anchor(ANCHOR, TABLE, 1, lookups[i], 0xffff);
        put(TABLE, &e);
        ck_assert_int_eq(receive_packet(&pkt), 0);
        e.mask[3] = 1;
        put(TABLE, &e);
        ck_assert_int_eq(receive_packet(&pkt), -1);
    }
}
END_TEST

/* -- actions ------------------------------------------------------------------------------------
 */

static void put_catch_all(const struct entry *e)
{
    struct entry all = *e;

    all.lookup = ANY;
    all.miss = DROP;
    put(ANCHOR, &all);
}

START_TEST(a_hit_counts_and_tags)
{
    struct bench_pkt pkt = packet();
    const struct flow_counter *counter;
    uint32_t mine, theirs;

    ck_assert_int_eq(flow_counter_alloc(hca, 0, 1, &mine), SYN_OK);
    ck_assert_int_eq(flow_counter_alloc(hca, 0, 1, &theirs), SYN_OK);
    put_catch_all(&(struct entry){.hit = TIR(1), .counter = mine, .pointer = 0x80abcdef});
    ck_assert_int_eq(receive_packet(&pkt), 1);
    ck_assert_int_eq(receive_packet(&pkt), 1);
    ck_assert_uint_eq(got_tag, 0xabcdef);
    counter = flow_counter_find(hca, mine);
    ck_assert_uint_eq(counter->packets, 2);
    ck_assert_uint_eq(counter->bytes, 2 * frame_len);
    ck_assert_uint_eq(flow_counter_find(hca, theirs)->packets, 0);
    put_catch_all(&(struct entry){.hit = DROP, .counter = mine, .pointer = 0xabcdef});
    ck_assert_int_eq(receive_packet(&pkt), -1);
    ck_assert_uint_eq(counter->packets, 3);
}
END_TEST

START_TEST(a_vlan_tag_is_removed)
{
    uint8_t want[512];
    size_t len;
    struct bench_pkt pkt = packet();

    len = bench_build(want, &pkt);
    pkt.vlan = true;
    put_catch_all(&(struct entry){.hit = TIR(0), .tunneling = 4});
    ck_assert_int_eq(receive_packet(&pkt), 0);
    ck_assert_uint_eq(got_len, len);
    ck_assert_mem_eq(got, want, len);
}
END_TEST

/* After the outer headers are gone, the frame has the inner ones: the types D are about these. */
START_TEST(a_tunnel_is_removed)
{
    struct entry e = entry_of_mac(taken_mac, TIR(1));

    for (enum kind kind = VXLAN; kind <= GRE; kind++) {
        frame_len = build(kind, frame);
        put(ANCHOR, &(struct entry){.lookup = ANY,
                                    .next_lookup = L2_DST,
                                    .byte_mask = 0xfc00,
                                    .hit = TABLE,
                                    .tunneling = 2,
                                    .miss = DROP});
        put(TABLE, &e);
        ck_assert_int_eq(receive(frame, frame_len), 1);
        ck_assert_uint_eq(got_len, frame_len - (kind == VXLAN ? 50 : 42));
        ck_assert_mem_eq(got, frame + (kind == VXLAN ? 50 : 42), got_len);
    }
    frame_len = build(UDP4, frame); /* no tunnel to remove */
    ck_assert_int_eq(receive(frame, frame_len), -1);
}
END_TEST

/* Driver: dr_ste_v0_set_action_decap_l3_list() fills in the new Ethernet header. */
START_TEST(a_tunnel_of_layer_3_is_removed)
{
    static const uint8_t list[5 * 8] = {
        2, 0, 16, 0,  0x0a, 0x0b, 0x0c, 0x0d, /* destination 47:16 */
        2, 1, 16, 0,  0x1a, 0x1b, 0x1c, 0x1d, /* source 47:16 */
        2, 0, 0,  16, 0,    0,    0x0e, 0x0f, /* destination 15:0 */
        2, 2, 32, 16, 0,    0,    0x08, 0x00, /* Ethernet type */
        2, 1, 0,  16, 0,    0,    0x1e, 0x1f, /* source 15:0 */
    };
    static const uint8_t header[14] = {0x0a, 0x0b, 0x0c, 0x0d, 0x0e, 0x0f, 0x1a,
                                       0x1b, 0x1c, 0x1d, 0x1e, 0x1f, 8,    0};

    put_bytes(SW_ICM_MODIFY_START + 3 * 64, list, sizeof(list));
    put_catch_all(&(struct entry){
        .type = MODIFY, .hit = TIR(0), .word3 = 5 << 16, .pointer = 3, .tunneling = 3});
    frame_len = build(GRE, frame);
    ck_assert_int_eq(receive(frame, frame_len), 0);
    ck_assert_uint_eq(got_len, frame_len - 42);
    ck_assert_mem_eq(got, header, sizeof(header));
    ck_assert_mem_eq(got + 14, frame + 42 + 14, got_len - 14);
}
END_TEST

START_TEST(headers_are_changed)
{
    static const uint8_t list[5 * 8] = {
        2, 1,  16, 0,  0xca, 0xfe, 0xba, 0xbe, /* SET source 47:16 */
        2, 3,  0,  0,  10,   9,    8,    7,    /* SET IPv4 source */
        3, 4,  8,  8,  0,    0,    0,    0xff, /* ADD -1 to the TTL */
        1, 8,  16, 16, 0,    8,    0,    0,    /* COPY the source port to the destination port */
        2, 14, 32, 0,  0x12, 0x34, 0x56, 0x78, /* SET register C4 */
    };
    struct entry e = {.lookup = 0x30, .hit = TIR(0), .miss = DROP};
    struct bench_pkt pkt = packet(), want_pkt = packet();
    uint8_t want[512];
    size_t len;

    memcpy(want_pkt.src, "\x0a\x09\x08\x07", 4);
    want_pkt.dport = want_pkt.sport;
    len = bench_build(want, &want_pkt);
    memcpy(want + 6, "\xca\xfe\xba\xbe", 4);
    want[14 + 8] = 63;
    be(want + 14 + 10, 0, 2);
    be(want + 14 + 10, (uint16_t)~bench_sum(want + 14, 20, 0), 2);

    memcpy(e.tag, "\x12\x34\x56\x78", 4);
    memset(e.mask, 0xff, 4);
    put_bytes(SW_ICM_MODIFY_START, list, sizeof(list));
    put(ANCHOR, &(struct entry){.type = MODIFY,
                                .lookup = ANY,
                                .next_lookup = 0x30,
                                .byte_mask = 0xf000,
                                .hit = TABLE,
                                .word3 = 5 << 16,
                                .miss = DROP});
    put(TABLE, &e);
    ck_assert_int_eq(receive_packet(&pkt), 0);
    ck_assert_uint_eq(got_len, len);
    ck_assert_mem_eq(got, want, len);
}
END_TEST

static GString *said;

static void note_trace(void *host, enum hca_log_level level, const char *line)
{
    g_string_append_printf(said, "%s\n", line);
}

/* The trace says where the entries of software lead a frame, and that they drop it. */
START_TEST(the_trace_names_the_end_of_the_way)
{
    struct hca_host_ops ops = *hca->ops;
    const struct hca_host_ops *untraced = hca->ops;
    struct bench_pkt pkt = packet();
    g_autofree char *line = g_strdup_printf(
        "NIC_RX table 0x%x: entries of software, 1 steps: to TIR 0x%x\n", table, tirs[0]);

    said = g_string_new(NULL);
    ops.log = note_trace;
    hca->ops = &ops;
    hca->tracing = HCA_TRACES_TEXT;
    put(ANCHOR, &(struct entry){.hit = TIR(0)});
    ck_assert_int_eq(receive_packet(&pkt), 0);
    ck_assert_msg(strstr(said->str, line), "not '%s' but '%s'", line, said->str);
    put(ANCHOR, &(struct entry){.hit = TIR(0), .tunneling = 2}); /* there is no tunnel */
    ck_assert_int_eq(receive_packet(&pkt), -1);
    ck_assert_msg(strstr(said->str, "1 steps: dropped\n"), "%s", said->str);
    hca->tracing = 0;
    hca->ops = untraced;
    g_string_free(said, true);
}
END_TEST

/* -- what entries may not do --------------------------------------------------------------------
 */

START_TEST(bad_entries_drop_the_frame)
{
    const struct entry bad[] = {
        {.hit = ANCHOR, .next_lookup = ANY},                    /* leads to itself */
        {.never = true, .miss = ANCHOR},                        /* misses to itself */
        {.hit = START + SW_ICM_BLOCK, .next_lookup = ANY},      /* no memory */
        {.hit = START + SW_ICM_BLOCK - 64, .next_lookup = ANY}, /* never written */
        {.never = true, .miss = 0},
        {.hit = SW_ICM_MODIFY_START, .next_lookup = ANY}, /* zeros */
        {.hit = TIR(0), .hit_gvmi = 1},                   /* of another function */
        {.never = true, .miss = TIR(0), .miss_gvmi = 1},
        {.hit = TIR(0) + 0x40 * 0x1000}, /* no such TIR */
        {.hit = ste_end_address(STE_TABLE, 0x3fff)},
        {.hit = ste_end_address(STE_ENDS, 0)},
        {.hit = ste_end_address(STE_ALLOW, 0)}, /* an end of sent frames */
        {.hit = 0xff00000000, .entries = 1},
        {.hit = TIR(0), .type = 1}, /* an entry of sent frames */
        {.hit = TIR(0), .type = 15},
        {.hit = TIR(0), .tunneling = 2}, /* there is no tunnel */
        {.hit = TIR(0), .tunneling = 7},
        {.hit = TIR(0), .type = MODIFY, .word3 = 1 << 16, .pointer = 0xffffffff},
        {.hit = TIR(0), .type = MODIFY, .word3 = 0xffffu << 16},
        {.hit = TIR(0), .type = MODIFY, .word3 = 8 << 16, .pointer = SW_ICM_BLOCK / 64},
    };
    struct bench_pkt pkt = packet();

    put(ANCHOR, &bad[_i]);
    ck_assert_int_eq(receive_packet(&pkt), -1);
    ck_assert_uint_eq(hca->vport->counters.rx_no_steering, 1);
    put_catch_all(&(struct entry){.hit = TIR(0)});
    ck_assert_int_eq(receive_packet(&pkt), 0);
}
END_TEST
#define BAD_ENTRIES 20

/* Entries of a user's table may name what the user may use. */
START_TEST(entries_name_what_their_owner_may_use)
{
    uint32_t root = bench_table(b, 1, 0), counter;
    struct bench_pkt pkt = packet();
    uint32_t theirs = ste_table(hca, RIG_USER, NIC_RX, ANCHOR);

    ck_assert_int_eq(
        bench_fte_set(b,
                      &(struct bench_fte){.table = root,
                                          .group = bench_group(b, root, 0, 0, NULL),
                                          .dests = {{PRM_FLOW_DESTINATION_TYPE_FLOW_TABLE, theirs}},
                                          .num_dests = 1}),
        SYN_OK);
    ck_assert_int_eq(flow_table_set_root(hca, NIC_RX, root, true), SYN_OK);
    ck_assert_int_eq(flow_counter_alloc(hca, RIG_USER + 1, 1, &counter), SYN_OK);
    obj_find(&hca->tirs, tirs[0])->uid = RIG_USER;
    put_catch_all(&(struct entry){.hit = TIR(0), .counter = counter});
    ck_assert_int_eq(receive_packet(&pkt), 0);
    ck_assert_uint_eq(flow_counter_find(hca, counter)->packets, 0);
    obj_find(&hca->tirs, tirs[0])->uid = RIG_USER + 1;
    ck_assert_int_eq(receive_packet(&pkt), -1);
    obj_find(&hca->tirs, tirs[0])->uid = 0;
}
END_TEST

/* Any bytes in the memory, any frame: each frame's way ends, and costs a bounded number of steps.
 */
START_TEST(any_bytes_end_the_walk)
{
    GRand *rand = g_rand_new_with_seed(1);
    uint8_t bytes[0x2000];

    for (unsigned round = 0; round < 300; round++) {
        uint64_t before;

        for (unsigned i = 0; i < sizeof(bytes); i++) {
            bytes[i] = (uint8_t)g_rand_int(rand);
        }
        for (unsigned i = 0; i < sizeof(bytes); i += 64) {
            /* entries that lead somewhere, and whose masks are weak */
            bytes[i] = (uint8_t)((g_rand_int(rand) & 1 ? RX : MODIFY) << 4);
            be(bytes + i + 4, 0, 2);
            be(bytes + i + 24, 0, 2);
            bytes[i + 7] = bytes[i + 27] = 1;
            be(bytes + i + 8, g_rand_int_range(rand, 0, sizeof(bytes) / 64) << 6 | 0x20, 4);
            be(bytes + i + 28, (uint32_t)g_rand_int_range(rand, 0, sizeof(bytes) / 64) << 6, 4);
            memset(bytes + i + 48, 0, 16);
            if (g_rand_int(rand) & 1) {
                memset(bytes + i + 32, 0, 16);
            }
        }
        put_bytes(START, bytes, sizeof(bytes));
        put_bytes(SW_ICM_MODIFY_START, bytes, sizeof(bytes));
        frame_len = build((enum kind)(round % KINDS), frame);
        before = hca->pieces;
        receive(frame, frame_len);
        ck_assert_uint_lt(hca->pieces - before, 1000);
    }
    g_rand_free(rand);
}
END_TEST

/* -- commands -----------------------------------------------------------------------------------
 */

START_TEST(a_table_of_software_has_no_groups)
{
    struct prm_create_flow_group_in in[1] = {0};
    struct prm_flow_table_context ctx[1] = {0};
    uint32_t id;

    PRM_SET(create_flow_group_in, in, table_id, table);
    ck_assert_int_eq(flow_group_create(hca, 0, in, &id), SYN_FT_FEATURE);
    ck_assert_int_eq(flow_table_query(hca, NIC_RX, table, ctx), SYN_OK);
    ck_assert_uint_eq(PRM_GET(flow_table_context, ctx, sw_owner), 1);
    ck_assert_uint_eq(PRM_GET(flow_table_context, ctx, sws_sw_owner_icm_root_0), ANCHOR);
    memset(ctx, 0, sizeof(ctx));
    PRM_SET(flow_table_context, ctx, sw_owner, 1);
    ck_assert_int_eq(flow_table_create(hca, 0, PRM_FLOW_TABLE_TYPE_RDMA_RX, ctx, &id),
                     SYN_FT_FEATURE);
}
END_TEST

/* Driver: dr_action_create_dest_array_tbl(). A table of the device tells the address at which
 * entries reach it; there, one frame goes to several TIRs. */
START_TEST(entries_lead_to_tables_of_the_device)
{
    struct prm_flow_table_context ctx[1] = {0};
    uint32_t many = bench_table(b, 99, 0);
    struct bench_pkt pkt = packet();

    ck_assert_int_eq(
        bench_fte_set(b, &(struct bench_fte){.table = many,
                                             .group = bench_group(b, many, 0, 0, NULL),
                                             .dests = {{PRM_FLOW_DESTINATION_TYPE_TIR, tirs[0]},
                                                       {PRM_FLOW_DESTINATION_TYPE_TIR, tirs[1]}},
                                             .num_dests = 2}),
        SYN_OK);
    ck_assert_int_eq(flow_table_query(hca, NIC_RX, many, ctx), SYN_OK);
    pkt.vlan = true;
    put_catch_all(&(struct entry){.hit = PRM_GET(flow_table_context, ctx, sws_sw_owner_icm_root_0),
                                  .tunneling = 4});
    frame_len = bench_build(frame, &pkt);
    for (unsigned i = 0; i < QUEUES; i++) {
        bench_post_recv(&rqs[i], bench_mem(b, NULL, BENCH_RX_SIZE), BENCH_RX_SIZE);
    }
    bench_rx(b, frame, frame_len);
    for (unsigned i = 0; i < QUEUES; i++) {
        const struct prm_cqe64 *cqe = bench_cqe(&rqs[i]);

        ck_assert_ptr_nonnull(cqe);
        ck_assert_uint_eq(PRM_GET(cqe64, cqe, byte_cnt), frame_len - 4);
    }
}
END_TEST

Suite *unit_suite(void)
{
    Suite *s = suite_create("ste");
    TCase *tc = tcase_create("ste");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, a_frame_goes_where_its_entry_leads);
    tcase_add_test(tc, entries_with_one_hash_are_a_list);
    tcase_add_test(tc, nothing_of_entries_is_kept);
    tcase_add_test(tc, tables_grow_under_traffic);
    tcase_add_loop_test(tc, each_type_of_tag_is_compared, 0, G_N_ELEMENTS(tags));
    tcase_add_test(tc, without_the_headers_an_entry_is_missed);
    tcase_add_test(tc, a_hit_counts_and_tags);
    tcase_add_test(tc, a_vlan_tag_is_removed);
    tcase_add_test(tc, a_tunnel_is_removed);
    tcase_add_test(tc, a_tunnel_of_layer_3_is_removed);
    tcase_add_test(tc, headers_are_changed);
    tcase_add_test(tc, the_trace_names_the_end_of_the_way);
    tcase_add_loop_test(tc, bad_entries_drop_the_frame, 0, BAD_ENTRIES);
    tcase_add_test(tc, entries_name_what_their_owner_may_use);
    tcase_add_test(tc, any_bytes_end_the_walk);
    tcase_add_test(tc, a_table_of_software_has_no_groups);
    tcase_add_test(tc, entries_lead_to_tables_of_the_device);
    suite_add_tcase(s, tc);
    return s;
}
