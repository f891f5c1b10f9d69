/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests what entries do to received frames: decapsulation, VLAN pop, header rewrite, encapsulation;
 * what the tables behind them then see, and which combinations are refused.
 */
#include <check.h>
#include <string.h>
#include "model/core/pd.h"
#include "model/steering/contexts.h"
#include "model/steering/steering.h"
#include "tests/unit/eth_bench.h"
#include "tests/unit/steer_frames.h"
#include "tests/unit/suite.h"

#define NIC_RX  PRM_FLOW_TABLE_TYPE_NIC_RX
#define A(name) PRM_FLOW_ACTION_##name
#define QUEUES  2

/* A VXLAN frame from scapy, which carries FRAME_UDP4. */
#define OUTER_VXLAN                                                                                \
    "02000000000102000000000208004500005a12344000ff11e55ac0000201c0000202c00012b50046000008000000" \
    "11223300"
/* A GRE frame, which carries the IP packet of FRAME_UDP4. */
#define FRAME_GRE                                                                                  \
    "0200000000010200000000020800450000441234"                                                     \
    "0000402fe453c0000201c0000202"                                                                 \
    "2000080000000055"                                                                             \
    "450000280007000040116"                                                                        \
    "6bc0a0000020a00000103e807d000144066404142434445464748494a4b"

struct dest {
    uint8_t type; /* PRM_FLOW_DESTINATION_TYPE_ */
    uint32_t id, reformat;
};

/* An entry; it is the only one of its table, and takes all frames unless there is a value. */
struct rule {
    uint32_t table, index;
    uint16_t action, uid;
    struct dest dests[3];
    unsigned num_dests;
    bool extended;
    uint32_t reformat, modify, counter;
    uint16_t tpid[2], tci[2];
};

static struct bench *b;
static struct hca *hca;
static struct bench_queue rqs[QUEUES];
static uint32_t tirs[QUEUES];
static uint64_t buffers[QUEUES];
static uint8_t mac_frame[512];

static void setup(void)
{
    b = bench_new();
    hca = &b->rig.hca;
    for (unsigned i = 0; i < QUEUES; i++) {
        bench_rq_new(b, NULL, &rqs[i]);
        tirs[i] = bench_direct_tir(b, rqs[i].num);
        buffers[i] = bench_mem(b, NULL, BENCH_RX_SIZE);
        bench_post_recv(&rqs[i], buffers[i], BENCH_RX_SIZE);
    }
}

static void teardown(void)
{
    bench_free(b);
}

/* -- helpers ----------------------------------------------------------------------------------- */

static enum syn try_table(unsigned level, bool reformats, bool decaps, uint32_t *id)
{
    struct prm_flow_table_context ctx[1] = {0};

    PRM_SET(flow_table_context, ctx, level, level);
    PRM_SET(flow_table_context, ctx, log_size, 3);
    PRM_SET(flow_table_context, ctx, reformat_en, reformats);
    PRM_SET(flow_table_context, ctx, decap_en, decaps);
    return flow_table_create(hca, 0, b->table_type, ctx, id);
}

static uint32_t table(unsigned level)
{
    uint32_t id;

    ck_assert_int_eq(try_table(level, true, true, &id), SYN_OK);
    return id;
}

static enum syn set_rule(const struct rule *rule, const struct prm_fte_match_param *mask,
                         const struct prm_fte_match_param *value, uint8_t criteria)
{
    struct {
        struct prm_set_fte_in set[1];
        uint8_t lists[0x100];
    } in = {0};
    struct prm_create_flow_group_in group[1] = {0};
    struct prm_flow_context *ctx = PRM_PTR(set_fte_in, in.set, flow_context);
    uint8_t *list = (uint8_t *)PRM_PTR_AT(flow_context, ctx, destination, 0);
    uint32_t group_id;
    enum syn syn;

    PRM_SET(create_flow_group_in, group, table_type, b->table_type);
    PRM_SET(create_flow_group_in, group, table_id, rule->table);
    PRM_SET(create_flow_group_in, group, start_flow_index, rule->index);
    PRM_SET(create_flow_group_in, group, end_flow_index, rule->index);
    PRM_SET(create_flow_group_in, group, match_criteria_enable, criteria);
    if (mask) {
        memcpy(PRM_PTR(create_flow_group_in, group, match_criteria), mask, sizeof(*mask));
        memcpy(PRM_PTR(flow_context, ctx, match_value), value, sizeof(*value));
    }
    ck_assert_int_eq(flow_group_create(hca, 0, group, &group_id), SYN_OK);
    PRM_SET(set_fte_in, in.set, table_type, b->table_type);
    PRM_SET(set_fte_in, in.set, table_id, rule->table);
    PRM_SET(set_fte_in, in.set, flow_index, rule->index);
    PRM_SET(flow_context, ctx, group_id, group_id);
    PRM_SET(flow_context, ctx, action, rule->action);
    PRM_SET(flow_context, ctx, extended_destination, rule->extended);
    PRM_SET(flow_context, ctx, packet_reformat_id, rule->reformat);
    PRM_SET(flow_context, ctx, modify_header_id, rule->modify);
    PRM_SET(flow_context, ctx, destination_list_size, rule->num_dests);
    PRM_SET(flow_context, ctx, flow_counter_list_size, rule->counter != 0);
    for (unsigned i = 0; i < 2; i++) {
        struct prm_vlan *vlan =
            i ? PRM_PTR(flow_context, ctx, push_vlan_2) : PRM_PTR(flow_context, ctx, push_vlan);

        PRM_SET(vlan, vlan, ethtype, rule->tpid[i]);
        PRM_SET(vlan, vlan, prio, rule->tci[i] >> 13);
        PRM_SET(vlan, vlan, cfi, rule->tci[i] >> 12 & 1);
        PRM_SET(vlan, vlan, vid, rule->tci[i] & 0xfff);
    }
    for (unsigned i = 0; i < rule->num_dests; i++) {
        PRM_SET(dest_format_struct, (void *)list, destination_type, rule->dests[i].type);
        PRM_SET(dest_format_struct, (void *)list, destination_id, rule->dests[i].id);
        if (rule->dests[i].reformat) {
            PRM_SET(dest_format_struct, (void *)list, packet_reformat, 1);
            PRM_SET(extended_dest_format, (void *)list, packet_reformat_id,
                    rule->dests[i].reformat);
        }
        list += rule->extended ? 16 : 8;
    }
    if (rule->counter) {
        PRM_SET(flow_counter_list, (void *)list, flow_counter_id, rule->counter);
    }
    syn = flow_entry_set(hca, 0, in.set, sizeof(in), false);
    if (syn != SYN_OK) {
        ck_assert_int_eq(flow_group_destroy(hca, 0, b->table_type, rule->table, group_id), SYN_OK);
    }
    return syn;
}

static enum syn set_any(const struct rule *rule)
{
    return set_rule(rule, NULL, NULL, 0);
}

static void must(const struct rule *rule)
{
    ck_assert_int_eq(set_any(rule), SYN_OK);
}

static struct dest to_tir(unsigned queue)
{
    return (struct dest){PRM_FLOW_DESTINATION_TYPE_TIR, tirs[queue], 0};
}

static struct dest to_table(uint32_t id)
{
    return (struct dest){PRM_FLOW_DESTINATION_TYPE_FLOW_TABLE, id, 0};
}

/* A context of one action: sets the whole field. */
static uint32_t modify(uint16_t field, uint8_t bits, uint32_t value)
{
    struct prm_set_action_in action[1] = {0};
    uint32_t id;

    PRM_SET(set_action_in, action, action_type, PRM_MODIFY_HEADER_ACTION_SET);
    PRM_SET(set_action_in, action, field, field);
    PRM_SET(set_action_in, action, length, bits & 31);
    PRM_SET(set_action_in, action, data, value);
    ck_assert_int_eq(modify_header_create(hca, 0, b->table_type, action, 1, &id), SYN_OK);
    return id;
}

static void set_root(uint32_t id)
{
    ck_assert_int_eq(flow_table_set_root(hca, b->table_type, id, true), SYN_OK);
}

/* A frame to this device. */
static size_t load(const char *hex)
{
    size_t len = steer_hex(mac_frame, hex);

    memcpy(mac_frame, bench_mac, 6);
    return len;
}

static void receive(const char *hex)
{
    size_t len = load(hex);

    bench_rx(b, mac_frame, len);
}

/* Expects that the queue received exactly these bytes. own_mac: they begin with the device's
 * address. Returns the CQE. */
static const void *expect_frame(unsigned queue, const char *hex, bool own_mac)
{
    const void *cqe = bench_cqe(&rqs[queue]);
    const uint8_t *bytes = fake_host_ptr(&b->rig.host, buffers[queue], BENCH_RX_SIZE);
    uint8_t expected[512];
    size_t len = steer_hex(expected, hex);

    ck_assert_ptr_nonnull(cqe);
    if (own_mac) {
        memcpy(expected, bench_mac, 6);
    }
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, byte_cnt), len);
    for (size_t i = 0; i < len; i++) {
        ck_assert_msg(bytes[i] == expected[i], "byte %zu is 0x%02x, not 0x%02x", i, bytes[i],
                      expected[i]);
    }
    bench_post_recv(&rqs[queue], buffers[queue], BENCH_RX_SIZE);
    return cqe;
}

/* -- what entries do --------------------------------------------------------------------------- */

START_TEST(a_decapsulated_frame_is_matched_by_what_was_inside)
{
    struct prm_fte_match_param mask[1] = {0}, value[1] = {0};
    struct prm_fte_match_set_lyr_2_4 *m = PRM_PTR(fte_match_param, mask, outer_headers);
    struct prm_fte_match_set_lyr_2_4 *v = PRM_PTR(fte_match_param, value, outer_headers);
    uint32_t root = table(0), next = table(1);
    const void *cqe;

    PRM_SET(fte_match_set_lyr_2_4, m, udp_dport, 0xffff);
    PRM_SET(fte_match_set_lyr_2_4, v, udp_dport, 2000);
    must(&(struct rule){.table = root,
                        .action = A(DECAP) | A(FWD_DEST),
                        .dests = {to_table(next)},
                        .num_dests = 1});
    ck_assert_int_eq(set_rule(&(struct rule){.table = next,
                                             .action = A(FWD_DEST),
                                             .dests = {to_tir(0)},
                                             .num_dests = 1},
                              mask, value, 1 << PRM_MATCH_CRITERIA_OUTER_HEADERS),
                     SYN_OK);
    set_root(root);
    receive(OUTER_VXLAN FRAME_UDP4);
    cqe = expect_frame(0, FRAME_UDP4, false);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, l3_ok), 1);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, l4_ok), 1);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, l4_hdr_type), PRM_CQE_L4_HDR_TYPE_UDP);
}
END_TEST

START_TEST(an_l3_tunnel_becomes_an_ethernet_frame)
{
    uint32_t root = table(0);
    uint32_t id =
        steer_reformat(hca, 0, PRM_REFORMAT_TYPE_L3_TUNNEL_TO_L2, "248a07a52801248a07a528c80800");

    must(&(struct rule){.table = root,
                        .action = A(PACKET_REFORMAT) | A(FWD_DEST),
                        .reformat = id,
                        .dests = {to_tir(0)},
                        .num_dests = 1});
    set_root(root);
    receive(FRAME_GRE);
    expect_frame(0, FRAME_UDP4, false);
    receive(OUTER_VXLAN FRAME_UDP4); /* the Ethernet header in the tunnel goes, too */
    expect_frame(0, FRAME_UDP4, false);
}
END_TEST

/* A frame without a tunnel cannot be decapsulated. It is lost, and counted as a frame for which
 * there is no rule. */
START_TEST(a_frame_without_a_tunnel_is_lost)
{
    uint32_t root = table(0);
    uint64_t before = hca->vport->counters.rx_no_steering;

    must(&(struct rule){
        .table = root, .action = A(DECAP) | A(FWD_DEST), .dests = {to_tir(0)}, .num_dests = 1});
    set_root(root);
    receive(FRAME_UDP4);
    receive(FRAME_GRE); /* it carries no Ethernet frame */
    bench_expect_none(&rqs[0]);
    ck_assert_uint_eq(hca->vport->counters.rx_no_steering, before + 2);
}
END_TEST

START_TEST(tags_are_removed)
{
    uint32_t root = table(0);

    must(&(struct rule){.table = root,
                        .action = A(VLAN_POP) | A(VLAN_POP_2) | A(FWD_DEST),
                        .dests = {to_tir(0)},
                        .num_dests = 1});
    set_root(root);
    receive("248a07a52801248a07a528c888a8000a8100006488b5"
            "0102030405060708");
    expect_frame(0,
                 "248a07a52801248a07a528c888b5"
                 "0102030405060708",
                 true);
    receive("248a07a52801248a07a528c88100006488b5"
            "0102030405060708");
    expect_frame(0,
                 "248a07a52801248a07a528c888b5"
                 "0102030405060708",
                 true);
}
END_TEST

START_TEST(a_rewritten_frame_is_matched_as_it_is_now)
{
    struct prm_fte_match_param mask[1] = {0}, value[1] = {0};
    uint32_t root = table(0), next = table(1), counter;
    const void *cqe;

    memset(PRM_PTR(fte_match_set_lyr_2_4, PRM_PTR(fte_match_param, mask, outer_headers),
                   dst_ipv4_dst_ipv6) +
               12,
           0xff, 4);
    memcpy(PRM_PTR(fte_match_set_lyr_2_4, PRM_PTR(fte_match_param, value, outer_headers),
                   dst_ipv4_dst_ipv6) +
               12,
           "\xc0\x00\x02\x4d", 4);
    ck_assert_int_eq(flow_counter_alloc(hca, 0, 1, &counter), SYN_OK);
    must(&(struct rule){.table = root,
                        .action = A(MOD_HDR) | A(FWD_DEST) | A(COUNT),
                        .modify = modify(PRM_MODIFY_HEADER_FIELD_OUT_DIPV4, 32, 0xc000024d),
                        .dests = {to_table(next)},
                        .num_dests = 1,
                        .counter = counter});
    ck_assert_int_eq(set_rule(&(struct rule){.table = next,
                                             .action = A(FWD_DEST),
                                             .dests = {to_tir(0)},
                                             .num_dests = 1},
                              mask, value, 1 << PRM_MATCH_CRITERIA_OUTER_HEADERS),
                     SYN_OK);
    set_root(root);
    receive(FRAME_UDP4);
    cqe = bench_cqe(&rqs[0]);
    ck_assert_ptr_nonnull(cqe);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, l3_ok), 1);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, l4_ok), 1);
    ck_assert_uint_eq(flow_counter_find(hca, counter)->bytes, 54);
    ck_assert(bench_sums_ok(fake_host_ptr(&b->rig.host, buffers[0], 64), 54));
}
END_TEST

/* The registers accompany a frame through the tables, and are 0 in the next frame. */
START_TEST(registers_are_matched)
{
    struct prm_fte_match_param mask[1] = {0}, value[1] = {0};
    uint32_t root = table(0), next = table(1);

    PRM_SET(fte_match_set_misc2, PRM_PTR(fte_match_param, mask, misc_parameters_2),
            metadata_reg_c_0, 0xffffffff);
    PRM_SET(fte_match_set_misc2, PRM_PTR(fte_match_param, value, misc_parameters_2),
            metadata_reg_c_0, 0x1234);
    must(&(struct rule){.table = root,
                        .action = A(MOD_HDR) | A(FWD_DEST),
                        .modify = modify(PRM_MODIFY_HEADER_FIELD_METADATA_REG_C_0, 32, 0x1234),
                        .dests = {to_table(next)},
                        .num_dests = 1});
    ck_assert_int_eq(set_rule(&(struct rule){.table = next,
                                             .action = A(FWD_DEST),
                                             .dests = {to_tir(0)},
                                             .num_dests = 1},
                              mask, value, 1 << PRM_MATCH_CRITERIA_MISC_PARAMETERS_2),
                     SYN_OK);
    set_root(root);
    receive(FRAME_UDP4);
    expect_frame(0, FRAME_UDP4, true);
    set_root(next);
    receive(FRAME_UDP4);
    bench_expect_none(&rqs[0]);
}
END_TEST

/* Each destination gets the frame as the entry leaves it, whatever the tables of other destinations
 * do to it. */
START_TEST(destinations_do_not_see_each_others_changes)
{
    uint32_t root = table(0), next = table(1);

    must(&(struct rule){.table = root,
                        .action = A(MOD_HDR) | A(FWD_DEST),
                        .modify = modify(PRM_MODIFY_HEADER_FIELD_OUT_SMAC_15_0, 16, 0x1111),
                        .dests = {to_table(next), to_tir(1)},
                        .num_dests = 2});
    must(&(struct rule){.table = next,
                        .action = A(MOD_HDR) | A(FWD_DEST),
                        .modify = modify(PRM_MODIFY_HEADER_FIELD_OUT_SMAC_47_16, 32, 0x22222222),
                        .dests = {to_tir(0)},
                        .num_dests = 1});
    set_root(root);
    for (unsigned i = 0; i < 3; i++) {
        receive("248a07a52801248a07a528c888b50102");
        expect_frame(0,
                     "248a07a52801222222221111"
                     "88b50102",
                     true);
        expect_frame(1,
                     "248a07a52801248a07a51111"
                     "88b50102",
                     true);
    }
}
END_TEST

/* With extended destinations, each has a tunnel of its own, or none. */
START_TEST(a_tunnel_is_inserted_on_the_way_to_one_destination)
{
    uint32_t root = table(0);
    struct rule rule = {.table = root,
                        .action = A(FWD_DEST),
                        .dests = {to_tir(0), to_tir(1)},
                        .num_dests = 2,
                        .extended = true};

    rule.dests[0].reformat = steer_reformat(hca, 0, PRM_REFORMAT_TYPE_L2_TO_L2_TUNNEL,
                                            "020000000001020000000002884700064140");
    must(&rule);
    set_root(root);
    receive(FRAME_UDP4);
    expect_frame(1, FRAME_UDP4, true);
    load(FRAME_UDP4);
    ck_assert_ptr_nonnull(bench_cqe(&rqs[0]));
    ck_assert_mem_eq(fake_host_ptr(&b->rig.host, buffers[0] + 18, 54), mac_frame, 54);
}
END_TEST

/* Rules of which each keeps the frame for a second destination need more scratch places than there
 * are: the copies that have none are lost, all others arrive. */
START_TEST(rules_that_fan_out_far_lose_copies)
{
    uint32_t tables[8];

    for (unsigned i = 0; i < G_N_ELEMENTS(tables); i++) {
        tables[i] = table(i);
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(tables); i++) {
        bool last = i + 1 == G_N_ELEMENTS(tables);

        must(&(struct rule){.table = tables[i],
                            .action = A(MOD_HDR) | A(FWD_DEST),
                            .modify = modify(PRM_MODIFY_HEADER_FIELD_OUT_SMAC_15_0, 16, i),
                            .dests = {last ? to_tir(0) : to_table(tables[i + 1]), to_tir(1)},
                            .num_dests = last ? 1 : 2});
    }
    set_root(tables[0]);
    for (unsigned i = 0; i < 7; i++) {
        bench_post_recv(&rqs[1], buffers[1], BENCH_RX_SIZE);
    }
    for (unsigned i = 0; i < 2; i++) { /* the places are free again */
        unsigned copies = 0;

        receive(FRAME_UDP4);
        bench_expect_none(&rqs[0]);
        while (bench_cqe(&rqs[1])) {
            copies++;
        }
        ck_assert_uint_eq(copies, 4);
        for (unsigned n = 0; n < copies; n++) {
            bench_post_recv(&rqs[1], buffers[1], BENCH_RX_SIZE);
        }
    }
}
END_TEST

/* Frames that change need memory, which the ledger pays for as long as there is such an entry. */
START_TEST(the_last_entry_that_changes_frames_gives_their_memory_back)
{
    uint32_t list = modify(PRM_MODIFY_HEADER_FIELD_OUT_SMAC_15_0, 16, 1);
    struct rule rule = {.table = table(0),
                        .action = A(MOD_HDR) | A(FWD_DEST),
                        .modify = list,
                        .dests = {to_tir(0)},
                        .num_dests = 1};
    uint64_t before = hca->memory.used, with_one;

    hca->memory.limit = before + WIRE_FRAME_MAX;
    ck_assert_int_eq(set_any(&rule), SYN_NO_MEMORY);
    ck_assert_uint_eq(hca->memory.used, before);
    hca->memory.limit = UINT64_MAX;
    must(&rule);
    with_one = hca->memory.used;
    ck_assert_uint_ge(with_one, before + WIRE_FRAME_MAX);
    rule.index = 1;
    must(&rule);
    ck_assert_uint_lt(hca->memory.used, with_one + WIRE_FRAME_MAX);
    for (unsigned i = 0; i < 2; i++) {
        ck_assert_uint_ge(hca->memory.used, before + WIRE_FRAME_MAX);
        ck_assert_int_eq(flow_entry_delete(hca, 0, NIC_RX, rule.table, i), SYN_OK);
    }
    ck_assert_uint_lt(hca->memory.used, before + WIRE_FRAME_MAX); /* the groups are left */
}
END_TEST

/* -- what is refused --------------------------------------------------------------------------- */

START_TEST(a_context_in_use_stays)
{
    uint32_t root = table(0);
    uint32_t id =
        steer_reformat(hca, 0, PRM_REFORMAT_TYPE_L3_TUNNEL_TO_L2, "248a07a52801248a07a528c80800");
    uint32_t list = modify(PRM_MODIFY_HEADER_FIELD_OUT_SMAC_15_0, 16, 1);

    must(&(struct rule){.table = root,
                        .action = A(PACKET_REFORMAT) | A(MOD_HDR) | A(FWD_DEST),
                        .reformat = id,
                        .modify = list,
                        .dests = {to_tir(0)},
                        .num_dests = 1});
    ck_assert_int_eq(obj_dealloc(hca, &hca->packet_reformats, 0, id, SYN_NO_REFORMAT), SYN_IN_USE);
    ck_assert_int_eq(obj_dealloc(hca, &hca->modify_headers, 0, list, SYN_NO_MODIFY_HEADER),
                     SYN_IN_USE);
    ck_assert_int_eq(flow_entry_delete(hca, 0, NIC_RX, root, 0), SYN_OK);
    ck_assert_int_eq(obj_dealloc(hca, &hca->packet_reformats, 0, id, SYN_NO_REFORMAT), SYN_OK);
    ck_assert_int_eq(obj_dealloc(hca, &hca->modify_headers, 0, list, SYN_NO_MODIFY_HEADER), SYN_OK);
}
END_TEST

START_TEST(actions_that_do_not_go_together_are_refused)
{
    uint32_t root = table(0), plain;
    uint32_t l3 =
        steer_reformat(hca, 0, PRM_REFORMAT_TYPE_L3_TUNNEL_TO_L2, "248a07a52801248a07a528c80800");
    uint32_t encap_l3 =
        steer_reformat(hca, 0, PRM_REFORMAT_TYPE_L2_TO_L3_TUNNEL, "248a07a52801248a07a528c80800");
    uint32_t list = modify(PRM_MODIFY_HEADER_FIELD_OUT_SMAC_15_0, 16, 1);
    struct rule rule = {.table = root, .dests = {to_tir(0)}, .num_dests = 1};
    struct {
        uint16_t action;
        uint32_t reformat, modify;
        enum syn syn;
    } refused[] = {
        {A(DECAP) | A(PACKET_REFORMAT), l3, 0, SYN_FTE_ACTION},
        {A(VLAN_POP_2), 0, 0, SYN_FTE_ACTION},
        {A(VLAN_PUSH), 0, 0, SYN_FTE_ACTION}, /* for frames that are sent */
        {A(PACKET_REFORMAT), encap_l3, 0, SYN_FTE_ACTION},
        {A(PACKET_REFORMAT), 0, 0, SYN_NO_REFORMAT},
        {A(PACKET_REFORMAT), 999, 0, SYN_NO_REFORMAT},
        {A(MOD_HDR), 0, 0, SYN_NO_MODIFY_HEADER},
        {A(MOD_HDR), 0, 999, SYN_NO_MODIFY_HEADER},
        {A(CRYPTO_DECRYPT), 0, 0, SYN_FTE_ACTION},
        {A(EXECUTE_ASO), 0, 0, SYN_FTE_ACTION},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(refused); i++) {
        rule.action = refused[i].action | A(FWD_DEST);
        rule.reformat = refused[i].reformat;
        rule.modify = refused[i].modify;
        ck_assert_msg(set_any(&rule) == refused[i].syn, "number %zu", i);
    }
    rule = (struct rule){.table = root, .action = A(DROP) | A(MOD_HDR), .modify = list};
    ck_assert_int_eq(set_any(&rule), SYN_FTE_ACTION);

    /* tables that were made for neither */
    ck_assert_int_eq(try_table(1, false, false, &plain), SYN_OK);
    rule = (struct rule){
        .table = plain, .action = A(DECAP) | A(FWD_DEST), .dests = {to_tir(0)}, .num_dests = 1};
    ck_assert_int_eq(set_any(&rule), SYN_FTE_ACTION);
    rule.action = A(PACKET_REFORMAT) | A(FWD_DEST);
    rule.reformat = l3;
    ck_assert_int_eq(set_any(&rule), SYN_FTE_ACTION);

    /* sniffers and RDMA tables change nothing */
    b->table_type = PRM_FLOW_TABLE_TYPE_SNIFFER_RX;
    ck_assert_int_eq(try_table(0, true, false, &plain), SYN_FT_FEATURE);
    ck_assert_int_eq(try_table(0, false, true, &plain), SYN_FT_FEATURE);
    ck_assert_int_eq(try_table(0, false, false, &plain), SYN_OK);
    rule = (struct rule){.table = plain,
                         .action = A(MOD_HDR) | A(FWD_DEST),
                         .modify = list,
                         .dests = {to_tir(0)},
                         .num_dests = 1};
    ck_assert_int_eq(set_any(&rule), SYN_FTE_ACTION);
}
END_TEST

START_TEST(contexts_of_another_user_are_refused)
{
    struct prm_set_action_in action[1] = {0};
    uint32_t root, id;
    struct prm_flow_table_context ctx[1] = {0};
    struct rule rule = {.action = A(MOD_HDR)};

    PRM_SET(set_action_in, action, action_type, PRM_MODIFY_HEADER_ACTION_SET);
    PRM_SET(set_action_in, action, field, PRM_MODIFY_HEADER_FIELD_METADATA_REG_A);
    ck_assert_int_eq(modify_header_create(hca, 7, NIC_RX, action, 1, &id), SYN_OK);
    PRM_SET(flow_table_context, ctx, log_size, 3);
    ck_assert_int_eq(flow_table_create(hca, 8, NIC_RX, ctx, &root), SYN_OK);
    rule.table = root;
    rule.modify = id;
    ck_assert_int_eq(set_any(&rule), SYN_BAD_UID);
}
END_TEST

START_TEST(a_query_says_what_an_entry_does)
{
    uint32_t root = table(0);
    uint32_t id =
        steer_reformat(hca, 0, PRM_REFORMAT_TYPE_L3_TUNNEL_TO_L2, "248a07a52801248a07a528c80800");
    uint32_t list = modify(PRM_MODIFY_HEADER_FIELD_OUT_SMAC_15_0, 16, 1);
    struct {
        struct prm_flow_context ctx[1];
        uint8_t lists[0x40];
    } out = {0};
    struct rule rule = {.table = root,
                        .action = A(PACKET_REFORMAT) | A(MOD_HDR) | A(FWD_DEST),
                        .reformat = id,
                        .modify = list,
                        .dests = {to_tir(0), to_tir(1)},
                        .num_dests = 2,
                        .extended = true};
    const struct prm_extended_dest_format *dest;

    rule.dests[1].reformat = id;
    must(&rule);
    ck_assert_int_eq(flow_entry_query(hca, NIC_RX, root, 0, out.ctx, PRM_SIZE(flow_context) + 31),
                     SYN_OUT_LEN);
    ck_assert_int_eq(flow_entry_query(hca, NIC_RX, root, 0, out.ctx, PRM_SIZE(flow_context) + 32),
                     SYN_OK);
    ck_assert_uint_eq(PRM_GET(flow_context, out.ctx, packet_reformat_id), id);
    ck_assert_uint_eq(PRM_GET(flow_context, out.ctx, modify_header_id), list);
    ck_assert_uint_eq(PRM_GET(flow_context, out.ctx, extended_destination), 1);
    dest = (const void *)((uint8_t *)PRM_PTR_AT(flow_context, out.ctx, destination, 0) + 16);
    ck_assert_uint_eq(PRM_GET(extended_dest_format, dest, packet_reformat_id), id);
    ck_assert_int_eq(obj_dealloc(hca, &hca->packet_reformats, 0, id, SYN_NO_REFORMAT), SYN_IN_USE);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *s = suite_create("steering-actions");
    TCase *tc = tcase_create("actions");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, a_decapsulated_frame_is_matched_by_what_was_inside);
    tcase_add_test(tc, an_l3_tunnel_becomes_an_ethernet_frame);
    tcase_add_test(tc, a_frame_without_a_tunnel_is_lost);
    tcase_add_test(tc, tags_are_removed);
    tcase_add_test(tc, a_rewritten_frame_is_matched_as_it_is_now);
    tcase_add_test(tc, registers_are_matched);
    tcase_add_test(tc, destinations_do_not_see_each_others_changes);
    tcase_add_test(tc, a_tunnel_is_inserted_on_the_way_to_one_destination);
    tcase_add_test(tc, rules_that_fan_out_far_lose_copies);
    tcase_add_test(tc, the_last_entry_that_changes_frames_gives_their_memory_back);
    tcase_add_test(tc, a_context_in_use_stays);
    tcase_add_test(tc, actions_that_do_not_go_together_are_refused);
    tcase_add_test(tc, contexts_of_another_user_are_refused);
    tcase_add_test(tc, a_query_says_what_an_entry_does);
    suite_add_tcase(s, tc);
    return s;
}
