/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests RoCE frames and flow tables: sniffers get copies, rules of the RDMA receive domain see a
 * frame before its QP does, and rules of the NIC receive domain see none (driver: RoCE does not
 * reach mlx5e).
 */
#include <check.h>
#include <string.h>
#include "model/steering/steering.h"
#include "model/port/port.h"
#include "tests/unit/eth_bench.h"
#include "tests/unit/suite.h"
#include "wire/encap/roce.h"

static struct bench *b;
static struct bench_queue rq;
static uint32_t tirn;
static uint8_t frame[512];
static size_t frame_len;

static void setup(void)
{
    struct vport_gid gid = {.valid = true, .version = PRM_ROCE_VERSION_V2};
    struct roce_packet pkt = {.opcode = BTH_RC | BTH_SEND_ONLY, .pkey = 0xffff, .dest_qp = 77};

    b = bench_new();
    bench_rq_new(b, NULL, &rq);
    tirn = bench_direct_tir(b, rq.num);
    for (unsigned i = 0; i < 4; i++) {
        bench_post_recv(&rq, bench_mem(b, NULL, BENCH_RX_SIZE), BENCH_RX_SIZE);
    }
    b->rig.hca.vport->roce_enabled = true;
    memcpy(gid.gid, (uint8_t[]){[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 1}, 16);
    vport_set_gid(b->rig.hca.vport, 0, &gid);
    memcpy(pkt.addr.dmac, bench_mac, 6);
    memcpy(pkt.addr.smac, bench_peer_mac, 6);
    memcpy(pkt.addr.dgid, gid.gid, 16);
    memcpy(pkt.addr.sgid, gid.gid, 16);
    pkt.addr.sgid[15] = 2;
    pkt.addr.is_ipv4 = true;
    pkt.addr.hop_limit = 64;
    pkt.addr.udp_sport = 0xc000;
    memset(roce_build(frame, &pkt, 100), 0x5a, 100);
    frame_len = roce_finish(frame, &pkt, 100);
}

static void teardown(void)
{
    bench_free(b);
}

/* Returns whether a RoCE frame reaches the QPs: there is no QP of that number, which is counted. */
static bool reaches_qps(void)
{
    uint64_t before = b->rig.hca.vport->counters.rx_no_qp;

    bench_rx(b, frame, frame_len);
    return b->rig.hca.vport->counters.rx_no_qp > before;
}

/* Makes a root table of that type with one rule for UDP to port 4791, which counts and performs
 * action. */
static uint32_t rule(uint8_t type, uint16_t action, uint32_t *counter)
{
    struct prm_fte_match_set_lyr_2_4 mask[1] = {0};
    struct prm_fte_match_set_lyr_2_4 value[1] = {0};
    struct bench_fte fte = {
        .action = action | PRM_FLOW_ACTION_COUNT, .num_counters = 1, .value = value};

    b->table_type = type;
    PRM_SET(fte_match_set_lyr_2_4, mask, udp_dport, 0xffff);
    PRM_SET(fte_match_set_lyr_2_4, value, udp_dport, 4791);
    ck_assert_int_eq(flow_counter_alloc(&b->rig.hca, 0, 1, counter), SYN_OK);
    fte.counters[0] = *counter;
    fte.table = bench_table(b, 0, 0);
    fte.group = bench_group(b, fte.table, 0, 0, mask);
    if (action & PRM_FLOW_ACTION_FWD_DEST) {
        fte.dests[0] = (struct bench_dest){PRM_FLOW_DESTINATION_TYPE_TIR, tirn};
        fte.num_dests = 1;
    }
    ck_assert_int_eq(bench_fte_set(b, &fte), SYN_OK);
    ck_assert_int_eq(flow_table_set_root(&b->rig.hca, type, fte.table, true), SYN_OK);
    return fte.table;
}

static uint64_t counted(uint32_t counter)
{
    return flow_counter_find(&b->rig.hca, counter)->packets;
}

static void expect_copy(void)
{
    const struct prm_cqe64 *cqe = bench_cqe(&rq);

    ck_assert_ptr_nonnull(cqe);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, byte_cnt), frame_len);
}

START_TEST(without_rules_it_goes_to_qps)
{
    ck_assert(!b->rig.hca.steers_roce);
    ck_assert(reaches_qps());
}
END_TEST

START_TEST(roce_frames_do_not_reach_the_nic_domain)
{
    uint32_t counter;

    rule(PRM_FLOW_TABLE_TYPE_NIC_RX, PRM_FLOW_ACTION_FWD_DEST, &counter);
    ck_assert(!b->rig.hca.steers_roce);
    ck_assert(reaches_qps());
    ck_assert_uint_eq(counted(counter), 0);
    bench_expect_none(&rq);
    /* it is plain UDP to a function whose RoCE is off */
    b->rig.hca.vport->roce_enabled = false;
    ck_assert(!reaches_qps());
    ck_assert_uint_eq(counted(counter), 1);
    expect_copy();
}
END_TEST

/* Driver: IB_FLOW_ATTR_SNIFFER, create_sniffer_rule(). */
START_TEST(a_sniffer_gets_a_copy)
{
    uint32_t counter;

    rule(PRM_FLOW_TABLE_TYPE_SNIFFER_RX, PRM_FLOW_ACTION_FWD_DEST, &counter);
    ck_assert(reaches_qps());
    ck_assert_uint_eq(counted(counter), 1);
    expect_copy();
}
END_TEST

START_TEST(a_sniffer_sees_other_frames_too)
{
    uint32_t counter;

    rule(PRM_FLOW_TABLE_TYPE_SNIFFER_RX, PRM_FLOW_ACTION_FWD_DEST, &counter);
    b->rig.hca.vport->roce_enabled = false;
    bench_rx(b, frame, frame_len);
    expect_copy();
    /* and nobody else takes it: there are no rules */
    ck_assert_uint_eq(b->rig.hca.vport->counters.rx_no_steering, 1);
    frame[5] ^= 0x40; /* nor does the sniffer see frames for another vport */
    bench_rx(b, frame, frame_len);
    bench_expect_none(&rq);
    ck_assert_uint_eq(counted(counter), 1);
}
END_TEST

static void send(void)
{
    uint8_t *room = port_tx_reserve(&b->rig.hca, bench_peer_mac, 0, frame_len);

    ck_assert_ptr_nonnull(room);
    memcpy(room, frame, frame_len);
    memcpy(room, bench_peer_mac, 6);
    port_tx_commit(&b->rig.hca, frame_len, PORT_NO_TD);
}

/* Driver: create_sniffer_rule() makes one rule in each direction, or none. */
START_TEST(a_sniffer_of_what_is_sent_gets_a_copy)
{
    uint32_t counter;

    send();
    bench_expect_none(&rq);
    rule(PRM_FLOW_TABLE_TYPE_SNIFFER_TX, PRM_FLOW_ACTION_FWD_DEST, &counter);
    ck_assert(b->rig.hca.sniffs_tx && !b->rig.hca.steers_roce);
    send();
    ck_assert_uint_eq(counted(counter), 1);
    expect_copy();
    ck_assert(reaches_qps());
    ck_assert_uint_eq(counted(counter), 1);
    hca_reset(&b->rig.hca);
    ck_assert(!b->rig.hca.sniffs_tx);
}
END_TEST

/* Driver: rdma_rx_root_fs, RDMA_RX_KERNEL_PRIO. */
START_TEST(a_miss_of_the_rdma_domain_follows_its_table)
{
    struct prm_flow_table_context ctx[1] = {0};
    uint32_t counter, nic_counter, table;

    PRM_SET(flow_table_context, ctx, table_miss_action, PRM_FLOW_TABLE_MISS_ACTION_SWITCH_DOMAIN);
    table = rule(PRM_FLOW_TABLE_TYPE_NIC_RX, PRM_FLOW_ACTION_FWD_DEST, &nic_counter);
    ck_assert_int_eq(flow_table_modify(&b->rig.hca, 0, PRM_FLOW_TABLE_TYPE_NIC_RX, table,
                                       PRM_MODIFY_FLOW_TABLE_MISS_TABLE_ID, ctx),
                     SYN_FT_MISS_ACTION);
    table = rule(PRM_FLOW_TABLE_TYPE_RDMA_RX, PRM_FLOW_ACTION_ALLOW, &counter);
    ck_assert_int_eq(flow_table_modify(&b->rig.hca, 0, PRM_FLOW_TABLE_TYPE_RDMA_RX, table,
                                       PRM_MODIFY_FLOW_TABLE_MISS_TABLE_ID, ctx),
                     SYN_OK);
    ck_assert(reaches_qps());
    ck_assert_uint_eq(counted(nic_counter), 0);
    ck_assert_int_eq(flow_entry_delete(&b->rig.hca, 0, PRM_FLOW_TABLE_TYPE_RDMA_RX, table, 0),
                     SYN_OK);
    ck_assert(!reaches_qps());
    ck_assert_uint_eq(counted(nic_counter), 1);
    expect_copy();
}
END_TEST

/* Driver: mlx5_ib_fs_add_op_fc() makes rules that count and let frames pass. */
START_TEST(a_rule_of_the_rdma_domain_counts)
{
    uint32_t counter;

    rule(PRM_FLOW_TABLE_TYPE_RDMA_RX, PRM_FLOW_ACTION_ALLOW, &counter);
    ck_assert(b->rig.hca.steers_roce);
    ck_assert(reaches_qps());
    ck_assert(reaches_qps());
    ck_assert_uint_eq(counted(counter), 2);
}
END_TEST

START_TEST(a_rule_of_the_rdma_domain_drops)
{
    uint32_t counter, table;

    table = rule(PRM_FLOW_TABLE_TYPE_RDMA_RX, PRM_FLOW_ACTION_DROP, &counter);
    ck_assert(!reaches_qps());
    ck_assert_uint_eq(counted(counter), 1);
    /* what no rule matches goes on */
    ck_assert_int_eq(flow_entry_delete(&b->rig.hca, 0, PRM_FLOW_TABLE_TYPE_RDMA_RX, table, 0),
                     SYN_OK);
    ck_assert(reaches_qps());
    ck_assert_int_eq(flow_table_set_root(&b->rig.hca, PRM_FLOW_TABLE_TYPE_RDMA_RX, table, false),
                     SYN_OK);
    ck_assert(!b->rig.hca.steers_roce);
    ck_assert(reaches_qps());
}
END_TEST

START_TEST(a_rule_of_the_rdma_domain_leads_elsewhere)
{
    uint32_t counter;

    rule(PRM_FLOW_TABLE_TYPE_RDMA_RX, PRM_FLOW_ACTION_FWD_DEST, &counter);
    ck_assert(!reaches_qps());
    expect_copy();
    hca_reset(&b->rig.hca);
    ck_assert(!b->rig.hca.steers_roce);
}
END_TEST

/* Sends a RoCE packet of that opcode, and returns how many frames came out. */
static unsigned sends_roce(uint8_t opcode)
{
    struct roce_packet pkt = {.opcode = opcode, .pkey = 0xffff, .dest_qp = 77};

    memcpy(pkt.addr.dmac, bench_peer_mac, 6);
    memcpy(pkt.addr.smac, bench_mac, 6);
    memcpy(pkt.addr.dgid, (uint8_t[]){[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 2}, 16);
    memcpy(pkt.addr.sgid, (uint8_t[]){[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 1}, 16);
    pkt.addr.is_ipv4 = true;
    pkt.addr.hop_limit = 64;
    pkt.addr.udp_sport = 0xc000;
    b->num_frames = 0;
    ck_assert_ptr_nonnull(port_tx_reserve_roce(&b->rig.hca, &pkt, 16));
    port_tx_commit_roce(&b->rig.hca, &pkt, 16);
    bench_run(b);
    return b->num_frames;
}

/* Makes a root table of the RDMA transmit domain with one rule for packets of an opcode. */
static void rule_for_opcode(uint8_t opcode, uint16_t action, uint32_t *counter)
{
    struct prm_fte_match_param mask[1] = {0}, value[1] = {0};
    struct bench_fte fte = {
        .param = value, .action = action | PRM_FLOW_ACTION_COUNT, .num_counters = 1};

    b->table_type = PRM_FLOW_TABLE_TYPE_RDMA_TX;
    PRM_SET(fte_match_set_misc, PRM_PTR(fte_match_param, mask, misc_parameters), bth_opcode, 0xff);
    PRM_SET(fte_match_set_misc, PRM_PTR(fte_match_param, value, misc_parameters), bth_opcode,
            opcode);
    ck_assert_int_eq(flow_counter_alloc(&b->rig.hca, 0, 1, counter), SYN_OK);
    fte.counters[0] = *counter;
    fte.table = bench_table(b, 0, 0);
    ck_assert_int_eq(
        bench_try_group(b, fte.table, 1 << PRM_MATCH_CRITERIA_MISC_PARAMETERS, mask, &fte.group),
        SYN_OK);
    ck_assert_int_eq(bench_fte_set(b, &fte), SYN_OK);
    ck_assert_int_eq(flow_table_set_root(&b->rig.hca, b->table_type, fte.table, true), SYN_OK);
}

/* Driver: mlx5_ib_fs_add_op_fc(), cc_tx_cnp_pkts: a rule for the opcode of a CNP that counts. */
START_TEST(a_rule_counts_packets_that_are_sent)
{
    uint32_t counter;

    ck_assert_uint_eq(sends_roce(BTH_CNP_OPCODE), 1);
    rule_for_opcode(BTH_CNP_OPCODE, PRM_FLOW_ACTION_ALLOW, &counter);
    ck_assert_uint_eq(sends_roce(BTH_CNP_OPCODE), 1);
    ck_assert_uint_eq(sends_roce(BTH_RC | BTH_SEND_ONLY), 1);
    ck_assert_uint_eq(sends_roce(BTH_CNP_OPCODE), 1);
    ck_assert_uint_eq(counted(counter), 2);
    hca_reset(&b->rig.hca);
    ck_assert(!b->rig.hca.sniffs_tx);
}
END_TEST

START_TEST(a_rule_drops_packets_that_are_sent)
{
    uint32_t counter;

    rule_for_opcode(BTH_RC | BTH_SEND_ONLY, PRM_FLOW_ACTION_DROP, &counter);
    ck_assert_uint_eq(sends_roce(BTH_RC | BTH_SEND_ONLY), 0);
    ck_assert_uint_eq(counted(counter), 1);
    ck_assert_uint_eq(sends_roce(BTH_CNP_OPCODE), 1);
    ck_assert_int_eq(flow_table_set_root(&b->rig.hca, b->table_type, 1, false), SYN_OK);
    ck_assert_uint_eq(sends_roce(BTH_RC | BTH_SEND_ONLY), 1);
}
END_TEST

/* Each domain has tables of its own type: no table leads into another domain. */
START_TEST(domains_do_not_mix)
{
    uint32_t counter,
        sniffer = rule(PRM_FLOW_TABLE_TYPE_SNIFFER_RX, PRM_FLOW_ACTION_ALLOW, &counter);

    ck_assert_int_eq(flow_table_set_root(&b->rig.hca, PRM_FLOW_TABLE_TYPE_NIC_RX, sniffer, true),
                     SYN_FT_NOT_FOUND);
    ck_assert_int_eq(flow_table_destroy(&b->rig.hca, 0, PRM_FLOW_TABLE_TYPE_RDMA_RX, sniffer),
                     SYN_FT_NOT_FOUND);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("steering_roce");
    TCase *tcase = tcase_create("steering_roce");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, without_rules_it_goes_to_qps);
    tcase_add_test(tcase, roce_frames_do_not_reach_the_nic_domain);
    tcase_add_test(tcase, a_sniffer_gets_a_copy);
    tcase_add_test(tcase, a_sniffer_sees_other_frames_too);
    tcase_add_test(tcase, a_sniffer_of_what_is_sent_gets_a_copy);
    tcase_add_test(tcase, a_miss_of_the_rdma_domain_follows_its_table);
    tcase_add_test(tcase, a_rule_of_the_rdma_domain_counts);
    tcase_add_test(tcase, a_rule_of_the_rdma_domain_drops);
    tcase_add_test(tcase, a_rule_of_the_rdma_domain_leads_elsewhere);
    tcase_add_test(tcase, a_rule_counts_packets_that_are_sent);
    tcase_add_test(tcase, a_rule_drops_packets_that_are_sent);
    tcase_add_test(tcase, domains_do_not_mix);
    suite_add_tcase(suite, tcase);
    return suite;
}
