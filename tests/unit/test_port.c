/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests the port: which frames it accepts, what it counts, link state, loopback, back-pressure. */
#include <check.h>
#include <string.h>
#include "tests/unit/eth_bench.h"
#include "model/steering/steering.h"
#include "model/eth/tir.h"
#include "tests/unit/suite.h"

static struct bench *b;
static struct vport *vport;
static struct bench_queue rq, sq;
static uint32_t tirn;

static const uint8_t broadcast[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
static const uint8_t group[6] = {0x01, 0x50, 0x56, 0x19, 0x20, 0xa7};
static const uint8_t stranger[6] = {2, 0, 0, 0, 0, 9};

static void setup(void)
{
    b = bench_new();
    vport = b->rig.hca.vport;
    bench_rq_new(b, NULL, &rq);
    bench_sq_new(b, b->tisn, &sq);
    tirn = bench_direct_tir(b, rq.num);
    bench_catch_all(b, tirn);
    for (unsigned i = 0; i < 8; i++) {
        bench_post_recv(&rq, bench_mem(b, NULL, WIRE_FRAME_MAX), WIRE_FRAME_MAX);
    }
}

static void teardown(void)
{
    bench_free(b);
}

static size_t frame_to(uint8_t *frame, const uint8_t *dmac, size_t len)
{
    memset(frame, 0x5a, len);
    memcpy(frame, dmac, 6);
    memcpy(frame + 6, bench_peer_mac, 6);
    prm_store16(frame + 12, 0x88b5); /* local experimental */
    return len;
}

/* Returns whether a frame to dmac from the cable is accepted by the port. */
static bool arrives(const uint8_t *dmac)
{
    uint8_t frame[60];
    uint64_t before = traffic_frames(&vport->counters.rx);

    bench_rx(b, frame, frame_to(frame, dmac, sizeof(frame)));
    return traffic_frames(&vport->counters.rx) > before;
}

/* Without rules in flow tables. */
static void without_rules(void)
{
    ck_assert_int_eq(flow_table_set_root(&b->rig.hca, PRM_FLOW_TABLE_TYPE_NIC_RX, 1, false),
                     SYN_OK);
}

/* Sends a frame from sq. */
static void send_to(struct bench_queue *from, const uint8_t *dmac)
{
    uint8_t frame[100];
    struct bench_wr wr = {.opcode = PRM_WQE_OPCODE_SEND, .num_sge = 1};

    frame_to(frame, dmac, sizeof(frame));
    wr.sge[0] = (struct bench_sge){bench_mem(b, frame, sizeof(frame)), sizeof(frame), 0};
    bench_send(from, &wr);
}

static void set_lb_of(uint32_t num, uint8_t bits)
{
    struct prm_modify_tir_bitmask bitmask[1] = {0};
    struct prm_tirc tirc[1] = {0};

    PRM_SET(modify_tir_bitmask, bitmask, self_lb_en, 1);
    PRM_SET(tirc, tirc, self_lb_block, bits);
    ck_assert_int_eq(tir_modify(&b->rig.hca, 0, num, bitmask, tirc), SYN_OK);
}

static void set_lb(uint8_t bits)
{
    set_lb_of(tirn, bits);
}

/* -- addresses --------------------------------------------------------------------------------- */

START_TEST(own_address_is_taken_and_a_strangers_is_not)
{
    without_rules();
    ck_assert(arrives(bench_mac));
    ck_assert(!arrives(stranger));
    ck_assert_uint_eq(vport->counters.rx_no_steering, 1);
}
END_TEST

START_TEST(a_changed_address_replaces_the_old_one)
{
    without_rules();
    vport_set_mac(vport, stranger);
    ck_assert(arrives(stranger));
    ck_assert(!arrives(bench_mac));
}
END_TEST

START_TEST(unicast_list_adds_addresses)
{
    without_rules();
    vport_set_macs(vport, &vport->uc, &stranger, 1);
    ck_assert(arrives(stranger));
    ck_assert(!arrives(group));
}
END_TEST

START_TEST(multicast_list_adds_groups)
{
    without_rules();
    ck_assert(!arrives(group));
    vport_set_macs(vport, &vport->mc, &group, 1);
    ck_assert(arrives(group));
    ck_assert(!arrives(stranger));
}
END_TEST

START_TEST(broadcasts_need_no_list)
{
    without_rules();
    ck_assert(arrives(broadcast));
}
END_TEST

START_TEST(promiscuous_modes_take_all_of_their_kind)
{
    without_rules();
    vport_set_promisc(vport, true, false, false);
    ck_assert(arrives(stranger));
    ck_assert(!arrives(group));
    vport_set_promisc(vport, false, true, false);
    ck_assert(!arrives(stranger));
    ck_assert(arrives(group));
    vport_set_promisc(vport, false, false, true);
    ck_assert(arrives(stranger));
    ck_assert(arrives(group));
}
END_TEST

/* A raw packet QP's flow adds nothing to the lists of the NIC vport context. */
START_TEST(a_flow_rule_receives_addresses_that_are_in_no_list)
{
    ck_assert(arrives(group));
    ck_assert_ptr_nonnull(bench_cqe(&rq));
    ck_assert(arrives(stranger));
    ck_assert_ptr_nonnull(bench_cqe(&rq));
}
END_TEST

START_TEST(nothing_comes_in_while_the_port_is_administratively_down)
{
    vport->uplink->admin_up = false;
    ck_assert(!arrives(bench_mac));
    vport->uplink->admin_up = true;
    ck_assert(arrives(bench_mac));
}
END_TEST

/* -- size -------------------------------------------------------------------------------------- */

/* PMTU.admin_mtu counts header, one VLAN tag and FCS: 1522 lets 1518 bytes pass without FCS. */
START_TEST(frames_longer_than_the_mtu_are_counted_and_dropped)
{
    uint8_t frame[1519];

    bench_rx(b, frame, frame_to(frame, bench_mac, 1518));
    ck_assert_ptr_nonnull(bench_cqe(&rq));
    ck_assert_uint_eq(vport->counters.rx_oversize, 0);
    bench_rx(b, frame, frame_to(frame, bench_mac, 1519));
    bench_expect_none(&rq);
    ck_assert_uint_eq(vport->counters.rx_oversize, 1);
}
END_TEST

/* RFC 2819 classes count frames with FCS: 60 bytes here are 64 there. */
START_TEST(frames_are_counted_by_size_and_class)
{
    static const struct {
        size_t len;
        unsigned class;
    } sizes[] = {{60, 0},  {61, 1},   {123, 1},  {124, 2},  {251, 2},  {252, 3},  {507, 3},
                 {508, 4}, {1019, 4}, {1020, 5}, {1514, 5}, {1515, 6}, {5000, 8}, {9000, 9}};
    uint64_t want[10] = {0};
    static uint8_t frame[WIRE_FRAME_MAX];
    uint64_t bytes = 0;

    vport->uplink->mtu = PORT_MAX_MTU;
    for (size_t i = 0; i < G_N_ELEMENTS(sizes); i++) {
        bench_rx(b, frame, frame_to(frame, bench_mac, sizes[i].len));
        want[sizes[i].class]++;
        bytes += sizes[i].len;
    }
    ck_assert_mem_eq(vport->uplink->counters.rx_sizes, want, sizeof(want));
    bench_rx(b, frame, frame_to(frame, group, 60));
    bench_rx(b, frame, frame_to(frame, broadcast, 70));
    ck_assert_uint_eq(vport->counters.rx.frames[FRAME_UNICAST], G_N_ELEMENTS(sizes));
    ck_assert_uint_eq(vport->counters.rx.bytes[FRAME_UNICAST], bytes);
    ck_assert_uint_eq(vport->counters.rx.frames[FRAME_MULTICAST], 1);
    ck_assert_uint_eq(vport->counters.rx.bytes[FRAME_MULTICAST], 60);
    ck_assert_uint_eq(vport->counters.rx.frames[FRAME_BROADCAST], 1);
    ck_assert_uint_eq(vport->counters.rx.bytes[FRAME_BROADCAST], 70);
    ck_assert_uint_eq(traffic_frames(&vport->counters.rx), G_N_ELEMENTS(sizes) + 2);
    ck_assert_uint_eq(traffic_bytes(&vport->counters.rx), bytes + 130);
}
END_TEST

START_TEST(sent_frames_are_counted_by_class)
{
    send_to(&sq, bench_peer_mac);
    send_to(&sq, group);
    send_to(&sq, broadcast);
    ck_assert_uint_eq(b->num_frames, 3);
    ck_assert_uint_eq(traffic_frames(&vport->counters.tx), 3);
    ck_assert_uint_eq(traffic_bytes(&vport->counters.tx), 300);
    ck_assert_uint_eq(vport->counters.tx.frames[FRAME_UNICAST], 1);
    ck_assert_uint_eq(vport->counters.tx.frames[FRAME_MULTICAST], 1);
    ck_assert_uint_eq(vport->counters.tx.frames[FRAME_BROADCAST], 1);
    ck_assert_uint_eq(vport->uplink->counters.tx_sizes[1], 3);
}
END_TEST

/* -- loopback ---------------------------------------------------------------------------------- */

/* mlx5e runs with self_lb_block 0 and does not see its own frames: "own" is the transport domain.
 */
START_TEST(own_frames_are_not_seen_by_the_own_transport_domain)
{
    send_to(&sq, bench_mac);
    send_to(&sq, group);
    send_to(&sq, broadcast);
    bench_expect_none(&rq);
    ck_assert_uint_eq(b->num_frames, 2); /* the groups' frames went out */
}
END_TEST

/* mlx5e_refresh_tirs(priv, true, false), as in the driver's loopback self-test. */
START_TEST(the_unicast_bit_lets_own_unicasts_in)
{
    set_lb(1 << PRM_SELF_LB_UNICAST);
    send_to(&sq, bench_mac);
    ck_assert_ptr_nonnull(bench_cqe(&rq));
    send_to(&sq, group);
    bench_expect_none(&rq);
    ck_assert_uint_eq(b->num_frames, 1); /* the unicast did not go out */
}
END_TEST

START_TEST(the_multicast_bit_lets_own_groups_in)
{
    set_lb(1 << PRM_SELF_LB_MULTICAST);
    send_to(&sq, group);
    ck_assert_ptr_nonnull(bench_cqe(&rq));
    send_to(&sq, broadcast);
    ck_assert_ptr_nonnull(bench_cqe(&rq));
    send_to(&sq, bench_mac);
    bench_expect_none(&rq);
    ck_assert_uint_eq(b->num_frames, 2);
}
END_TEST

/* A group's frame comes back only while somebody takes it. */
START_TEST(groups_come_back_only_while_a_tir_takes_them)
{
    unsigned before = vport->queued;
    uint32_t second = bench_direct_tir(b, rq.num);

    set_lb(1 << PRM_SELF_LB_MULTICAST);
    set_lb(1 << PRM_SELF_LB_MULTICAST | 1 << PRM_SELF_LB_UNICAST);
    set_lb(1 << PRM_SELF_LB_UNICAST);
    set_lb_of(second, 1 << PRM_SELF_LB_MULTICAST);
    send_to(&sq, group);
    ck_assert_uint_eq(vport->queued, before + 1);
    ck_assert_int_eq(tir_destroy(&b->rig.hca, 0, second), SYN_OK);
    send_to(&sq, group);
    ck_assert_uint_eq(vport->queued, before + 1);
}
END_TEST

/* Two users of one function exchange frames: their transport domains differ. */
START_TEST(frames_of_another_transport_domain_are_not_own)
{
    struct bench_queue other;

    bench_sq_new(b, bench_tis(b, bench_td(b)), &other);
    send_to(&other, bench_mac);
    ck_assert_ptr_nonnull(bench_cqe(&rq));
    send_to(&other, group);
    ck_assert_ptr_nonnull(bench_cqe(&rq));
    bench_sq_new(b, 0, &other); /* no TIS, no domain */
    send_to(&other, broadcast);
    ck_assert_ptr_nonnull(bench_cqe(&rq));
}
END_TEST

/* mlx5_nic_vport_update_local_lb(): the driver forbids it while one program at most has the device.
 * The frames go to the cable instead, as if another card had the address. */
START_TEST(frames_of_another_domain_stay_out_while_loopback_is_disabled)
{
    struct bench_queue other;

    bench_sq_new(b, bench_tis(b, bench_td(b)), &other);
    vport->no_loop_mc = true;
    send_to(&other, group);
    bench_expect_none(&rq);
    ck_assert_uint_eq(b->num_frames, 1);
    send_to(&other, bench_mac); /* unicasts have a bit of their own */
    ck_assert_ptr_nonnull(bench_cqe(&rq));
    ck_assert_uint_eq(b->num_frames, 1);
    vport->no_loop_uc = true;
    vport->no_loop_mc = false;
    send_to(&other, bench_mac);
    bench_expect_none(&rq);
    ck_assert_uint_eq(b->num_frames, 2);
    send_to(&other, group);
    ck_assert_ptr_nonnull(bench_cqe(&rq));
}
END_TEST

START_TEST(a_frame_from_the_cable_is_never_own)
{
    uint8_t frame[60];

    frame_to(frame, bench_mac, sizeof(frame));
    memcpy(frame + 6, bench_mac, 6);
    bench_rx(b, frame, sizeof(frame));
    ck_assert_ptr_nonnull(bench_cqe(&rq));
}
END_TEST

/* Frames of both domains in the loopback path at once: each keeps its sender's domain. */
START_TEST(each_looped_frame_keeps_its_senders_domain)
{
    struct bench_queue other;
    uint8_t frame[64];
    struct bench_wr wr = {.opcode = PRM_WQE_OPCODE_SEND, .num_sge = 1};

    bench_sq_new(b, bench_tis(b, bench_td(b)), &other);
    for (uint8_t i = 0; i < 6; i++) {
        frame_to(frame, i % 2 ? group : bench_mac, sizeof(frame));
        frame[20] = i;
        wr.sge[0] = (struct bench_sge){bench_mem(b, frame, sizeof(frame)), sizeof(frame), 0};
        bench_write_wqe(i % 3 ? &sq : &other, &wr);
    }
    bench_ring_sq(&sq);
    bench_ring_sq(&other);
    bench_run(b);
    for (uint8_t i = 0; i < 6; i += 3) {
        bench_expect(&rq, PRM_CQE_OPCODE_RESP_SEND, 0, i / 3);
    }
    bench_expect_none(&rq);
}
END_TEST

START_TEST(loopback_works_without_a_link)
{
    set_lb(1 << PRM_SELF_LB_UNICAST | 1 << PRM_SELF_LB_MULTICAST);
    port_set_wire(&b->rig.hca, NULL);
    send_to(&sq, bench_mac);
    ck_assert_ptr_nonnull(bench_cqe(&rq));
    send_to(&sq, group);
    ck_assert_ptr_nonnull(bench_cqe(&rq));
}
END_TEST

/* Looped frames that were under way belong to the time before the reset. */
START_TEST(a_reset_empties_the_loopback)
{
    struct hca *hca = &b->rig.hca;
    uint8_t frame[100];

    frame_to(frame, bench_mac, sizeof(frame));
    for (unsigned i = 0; i < VPORT_QUEUE; i++) {
        memcpy(port_tx_reserve(hca, bench_mac, 0, sizeof(frame)), frame, sizeof(frame));
        port_tx_commit(hca, sizeof(frame), PORT_NO_TD);
    }
    ck_assert(port_rx_pending(hca));
    hca_reset(hca);
    bench_run(b);
    ck_assert_uint_eq(traffic_frames(&hca->vport->counters.rx), 0);
    ck_assert_ptr_nonnull(port_tx_reserve(hca, bench_mac, 0, sizeof(frame)));
    port_tx_commit(hca, 0, PORT_NO_TD);
}
END_TEST

/* More looped frames than the path holds: the rest waits, and none is lost. */
START_TEST(loopback_waits_for_room)
{
    uint8_t frame[64];
    struct bench_wr wr = {.opcode = PRM_WQE_OPCODE_SEND, .num_sge = 1, .unsignaled = true};
    uint64_t bufs[8];

    set_lb(1 << PRM_SELF_LB_UNICAST);
    for (unsigned i = 0; i < 8; i++) {
        bufs[i] = bench_mem(b, NULL, BENCH_RX_SIZE);
    }
    frame_to(frame, bench_mac, sizeof(frame));
    wr.sge[0] = (struct bench_sge){bench_mem(b, frame, sizeof(frame)), sizeof(frame), 0};
    for (unsigned round = 0; round < 40; round++) {
        for (unsigned i = 0; i < 8; i++) {
            bench_write_wqe(&sq, &wr);
        }
        bench_ring_sq(&sq);
        bench_run(b);
        for (unsigned i = 0; i < 8; i++) {
            ck_assert_ptr_nonnull(bench_cqe(&rq));
            bench_post_recv(&rq, bufs[i], BENCH_RX_SIZE);
        }
    }
    bench_expect_none(&rq);
}
END_TEST

/* -- link -------------------------------------------------------------------------------------- */

static void expect_port_change(uint8_t subtype)
{
    const struct prm_eqe *eqe = rig_eq_next(&b->rig, &b->eq);

    ck_assert_ptr_nonnull(eqe);
    ck_assert_uint_eq(PRM_GET(eqe, eqe, event_type), PRM_EVENT_TYPE_PORT_CHANGE);
    ck_assert_uint_eq(PRM_GET(eqe, eqe, event_sub_type), subtype);
    ck_assert_uint_eq(PRM_GET(port_state_change_event, PRM_PTR(eqe, eqe, event_data), port_num), 1);
    ck_assert_ptr_null(rig_eq_next(&b->rig, &b->eq));
}

START_TEST(link_changes_are_events_once_each)
{
    ck_assert(port_is_up(&b->rig.hca));
    port_set_wire(&b->rig.hca, NULL);
    expect_port_change(PRM_PORT_CHANGE_SUBTYPE_DOWN);
    ck_assert(!port_is_up(&b->rig.hca));
    port_update_link(&b->rig.hca);
    ck_assert_ptr_null(rig_eq_next(&b->rig, &b->eq));
    port_set_wire(&b->rig.hca, b->wire);
    expect_port_change(PRM_PORT_CHANGE_SUBTYPE_ACTIVE);
    vport->uplink->admin_up = false;
    port_update_link(&b->rig.hca);
    expect_port_change(PRM_PORT_CHANGE_SUBTYPE_DOWN);
    ck_assert_uint_eq(vport->uplink->counters.link_downs, 2);
}
END_TEST

/* As on a NIC without a link: WQEs complete, and their frames are lost. */
START_TEST(frames_sent_while_the_link_is_down_vanish)
{
    vport->uplink->admin_up = false;
    port_update_link(&b->rig.hca);
    send_to(&sq, bench_peer_mac);
    bench_expect(&sq, PRM_CQE_OPCODE_REQ, 0, 0);
    ck_assert_uint_eq(b->num_frames, 0);
    ck_assert_uint_eq(traffic_frames(&vport->counters.tx), 0);
}
END_TEST

/* -- back-pressure ----------------------------------------------------------------------------- */

/* The cable holds 16 frames. A queue that finds it full continues when the far end has taken
 * some. */
START_TEST(a_full_wire_stops_a_queue_until_there_is_room)
{
    struct bench_queue two[2] = {sq};
    uint8_t frame[64];
    struct bench_wr wr = {.opcode = PRM_WQE_OPCODE_SEND, .num_sge = 1};

    bench_sq_new(b, b->tisn, &two[1]);
    frame_to(frame, bench_peer_mac, sizeof(frame));
    wr.sge[0] = (struct bench_sge){bench_mem(b, frame, sizeof(frame)), sizeof(frame), 0};
    for (unsigned i = 0; i < 2; i++) {
        for (unsigned n = 0; n < 12; n++) {
            bench_write_wqe(&two[i], &wr);
        }
        bench_ring_sq(&two[i]);
    }
    rig_run(&b->rig);
    for (unsigned i = 0; i < 12; i++) {
        bench_expect(&two[0], PRM_CQE_OPCODE_REQ, 0, (uint16_t)i);
    }
    for (unsigned i = 0; i < 4; i++) {
        bench_expect(&two[1], PRM_CQE_OPCODE_REQ, 0, (uint16_t)i);
    }
    bench_expect_none(&two[1]);
    bench_run(b);
    ck_assert_uint_eq(b->num_frames, 24);
    for (unsigned i = 4; i < 12; i++) {
        bench_expect(&two[1], PRM_CQE_OPCODE_REQ, 0, (uint16_t)i);
    }
}
END_TEST

/* Sends a frame of that length; returns how many far reads it caused. */
static uint64_t far_reads_of(const uint8_t *dmac, size_t len)
{
    static uint8_t frame[4000];
    struct bench_wr wr = {.opcode = PRM_WQE_OPCODE_SEND, .num_sge = 1};
    uint64_t before = b->rig.host.far_reads;

    frame_to(frame, dmac, len);
    wr.sge[0] = (struct bench_sge){bench_mem(b, frame, len), (uint32_t)len, 0};
    bench_send(&sq, &wr);
    if (dmac == bench_peer_mac) {
        ck_assert_uint_eq(b->frames[b->num_frames - 1].len, len);
        ck_assert_mem_eq(b->frames[b->num_frames - 1].data, frame, len);
    }
    return b->rig.host.far_reads - before;
}

/* If another processor reads a long frame, its data bypasses this processor's caches. */
START_TEST(long_frames_go_far)
{
    vport->uplink->mtu = PORT_MAX_MTU;
    ck_assert_uint_eq(far_reads_of(bench_peer_mac, 4000), 0);
    b->wire->far = true;
    ck_assert_uint_eq(far_reads_of(bench_peer_mac, 64), 0);
    ck_assert_uint_eq(far_reads_of(bench_peer_mac, HOST_FAR_BYTES - 1), 0);
    ck_assert_uint_eq(far_reads_of(bench_peer_mac, HOST_FAR_BYTES), 1);
    ck_assert_uint_eq(far_reads_of(bench_peer_mac, 4000), 1);
    ck_assert_uint_eq(far_reads_of(bench_mac, 4000), 0); /* stays here */
}
END_TEST

START_TEST(a_queue_that_waits_for_room_can_be_reset)
{
    uint8_t frame[64];
    struct bench_wr wr = {.opcode = PRM_WQE_OPCODE_SEND, .num_sge = 1};

    frame_to(frame, bench_peer_mac, sizeof(frame));
    while (wire_tx_reserve(b->wire, 60)) {
        wire_tx_commit(b->wire, 60);
    }
    wr.sge[0] = (struct bench_sge){bench_mem(b, frame, sizeof(frame)), sizeof(frame), 0};
    bench_write_wqe(&sq, &wr);
    bench_ring_sq(&sq);
    rig_run(&b->rig);
    ck_assert_int_eq(bench_sq_move(&sq, PRM_SQC_STATE_RDY, PRM_SQC_STATE_RST), SYN_OK);
    bench_run(b);
    ck_assert_uint_eq(b->num_frames, 16);
    bench_expect_none(&sq);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("port");
    TCase *tcase = tcase_create("port");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, own_address_is_taken_and_a_strangers_is_not);
    tcase_add_test(tcase, a_changed_address_replaces_the_old_one);
    tcase_add_test(tcase, unicast_list_adds_addresses);
    tcase_add_test(tcase, multicast_list_adds_groups);
    tcase_add_test(tcase, broadcasts_need_no_list);
    tcase_add_test(tcase, promiscuous_modes_take_all_of_their_kind);
    tcase_add_test(tcase, a_flow_rule_receives_addresses_that_are_in_no_list);
    tcase_add_test(tcase, nothing_comes_in_while_the_port_is_administratively_down);
    tcase_add_test(tcase, frames_longer_than_the_mtu_are_counted_and_dropped);
    tcase_add_test(tcase, frames_are_counted_by_size_and_class);
    tcase_add_test(tcase, sent_frames_are_counted_by_class);
    tcase_add_test(tcase, own_frames_are_not_seen_by_the_own_transport_domain);
    tcase_add_test(tcase, the_unicast_bit_lets_own_unicasts_in);
    tcase_add_test(tcase, the_multicast_bit_lets_own_groups_in);
    tcase_add_test(tcase, frames_of_another_transport_domain_are_not_own);
    tcase_add_test(tcase, frames_of_another_domain_stay_out_while_loopback_is_disabled);
    tcase_add_test(tcase, a_frame_from_the_cable_is_never_own);
    tcase_add_test(tcase, groups_come_back_only_while_a_tir_takes_them);
    tcase_add_test(tcase, each_looped_frame_keeps_its_senders_domain);
    tcase_add_test(tcase, loopback_works_without_a_link);
    tcase_add_test(tcase, a_reset_empties_the_loopback);
    tcase_add_test(tcase, loopback_waits_for_room);
    tcase_add_test(tcase, link_changes_are_events_once_each);
    tcase_add_test(tcase, frames_sent_while_the_link_is_down_vanish);
    tcase_add_test(tcase, a_full_wire_stops_a_queue_until_there_is_room);
    tcase_add_test(tcase, long_frames_go_far);
    tcase_add_test(tcase, a_queue_that_waits_for_room_can_be_reset);
    suite_add_tcase(suite, tcase);
    return suite;
}
