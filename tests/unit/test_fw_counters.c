/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests the counters of a port, of its virtual ports and of the PCI port that software reads by
 * registers and by QUERY_VNIC_ENV: what they count, and who clears what.
 */
#include <check.h>
#include <string.h>
#include "fw/fw_internal.h"
#include "model/port/pause.h"
#include "tests/unit/suite.h"
#include "tests/unit/test_fw_driver.h"

static struct fwd d;

static void setup(void)
{
    fwd_init(&d);
    fwd_bring_up(&d);
}

static void teardown(void)
{
    fwd_clear(&d);
}

/* The last counters that were read, and their group. */
static struct prm_ppcnt_reg reg[1];
#define SET PRM_PTR(ppcnt_reg, reg, counter_set)

static enum syn read_group(uint32_t group, unsigned unit, bool clear)
{
    memset(reg, 0, sizeof(reg));
    PRM_SET(ppcnt_reg, reg, local_port, 1);
    PRM_SET(ppcnt_reg, reg, grp, group);
    PRM_SET(ppcnt_reg, reg, prio_tc, unit);
    PRM_SET(ppcnt_reg, reg, clr, clear);
    return READ(PPCNT, reg);
}

/* Receives n frames of 60 bytes (64 with FCS) with a priority in their VLAN tags; 0: no tag. */
static void receive(unsigned n, unsigned priority)
{
    uint8_t frame[60] = {[12] = 0x81, [14] = (uint8_t)(priority << 5), [16] = 0x08};

    if (priority == 0) {
        frame[12] = 0x08;
    }
    for (unsigned i = 0; i < n; i++) {
        uplink_count_rx(fw_uplink(d.fw), frame, sizeof(frame));
    }
}

static uint32_t frames_received(bool clear)
{
    ck_assert_uint_eq(read_group(PRM_PPCNT_GRP_IEEE_802_3, 0, clear), SYN_OK);
    return PRM_GET(eth_802_3_cntrs_grp_data_layout, SET, a_frames_received_ok_low);
}

static uint32_t packets_received(void)
{
    ck_assert_uint_eq(read_group(PRM_PPCNT_GRP_RFC_2819, 0, false), SYN_OK);
    ck_assert_uint_eq(PRM_GET(eth_2819_cntrs_grp_data_layout, SET, ether_stats_octets_low),
                      64 * PRM_GET(eth_2819_cntrs_grp_data_layout, SET, ether_stats_pkts_low));
    return PRM_GET(eth_2819_cntrs_grp_data_layout, SET, ether_stats_pkts_low);
}

/* PPCNT.clr: the counters of the group are reset after they were read. */
START_TEST(clearing_a_group_changes_no_other)
{
    receive(3, 0);
    ck_assert_uint_eq(frames_received(false), 3);
    ck_assert_uint_eq(frames_received(true), 3);
    ck_assert_uint_eq(frames_received(false), 0);
    ck_assert_uint_eq(packets_received(), 3);
    receive(2, 0);
    ck_assert_uint_eq(frames_received(false), 2);
    ck_assert_uint_eq(packets_received(), 5);
    ck_assert_uint_eq(frames_received(true), 2);
    ck_assert_uint_eq(frames_received(false), 0);
}
END_TEST

static uint32_t frames_of(unsigned priority, bool clear)
{
    ck_assert_uint_eq(read_group(PRM_PPCNT_GRP_PER_PRIORITY, priority, clear), SYN_OK);
    ck_assert_uint_eq(PRM_GET(ppcnt_reg, reg, prio_tc), priority);
    return PRM_GET(eth_per_prio_grp_data_layout, SET, rx_frames_low);
}

/* Priority 0 has the frames that have no other priority, also since they were cleared. */
START_TEST(each_priority_is_cleared_alone)
{
    receive(5, 0);
    receive(4, 3);
    receive(1, 7);
    ck_assert_uint_eq(frames_of(3, true), 4);
    ck_assert_uint_eq(frames_of(3, false), 0);
    ck_assert_uint_eq(frames_of(0, false), 5);
    ck_assert_uint_eq(frames_of(7, false), 1);
    ck_assert_uint_eq(frames_of(0, true), 5);
    receive(2, 0);
    receive(1, 3);
    ck_assert_uint_eq(frames_of(0, false), 2);
    ck_assert_uint_eq(frames_of(3, false), 1);
    ck_assert_uint_eq(frames_of(7, false), 1);
    ck_assert_uint_eq(frames_of(8, true), 0); /* no such priority: nothing to clear */
    ck_assert_uint_eq(frames_of(7, false), 1);
}
END_TEST

/* Receives a pause of priority flow control. */
static void receive_pause(uint8_t priority, uint16_t quanta)
{
    uint8_t frame[60] = {0x01, 0x80, 0xc2, 0, 0, 1, [12] = 0x88, 0x08, 0x01, 0x01};

    frame[17] = (uint8_t)(1u << priority);
    prm_store16(frame + 18 + 2 * priority, quanta);
    pause_rx(d.fw->hca.vport->sw, frame, sizeof(frame));
}

/* 1,000 quanta take 5.12 us at 100 Gb/s. */
START_TEST(pauses_are_counted_by_priority)
{
    fw_uplink(d.fw)->phy.pfc_rx = 1u << 4;
    receive_pause(4, 1000);
    receive_pause(5, 1000); /* PFCC does not obey it */
    d.host.now += 1000000;
    frames_of(4, false);
#define C(field) PRM_GET(eth_per_prio_grp_data_layout, SET, field##_low)
    ck_assert_uint_eq(C(rx_pause), 1);
    ck_assert_uint_eq(C(rx_pause_duration), 5);
    ck_assert_uint_eq(C(rx_pause_transition), 1);
    frames_of(5, false);
    ck_assert_uint_eq(C(rx_pause) + C(rx_pause_duration) + C(rx_pause_transition), 0);
#undef C
    frames_received(false);
#define C(field) PRM_GET(eth_802_3_cntrs_grp_data_layout, SET, field##_low)
    ck_assert_uint_eq(C(a_mac_control_frames_received), 2);
    ck_assert_uint_eq(C(a_pause_mac_ctrl_frames_received), 2);
    ck_assert_uint_eq(C(a_unsupported_opcodes_received), 0);
#undef C
}
END_TEST

static uint32_t age(uint32_t group, bool clear)
{
    ck_assert_uint_eq(read_group(group, 0, clear), SYN_OK);
    return group == PRM_PPCNT_GRP_PHYSICAL_LAYER
               ? PRM_GET(phys_layer_cntrs, SET, time_since_last_clear_low)
               : PRM_GET(phys_layer_statistical_cntrs, SET, time_since_last_clear_low);
}

/* Driver: time_since_last_clear, milliseconds. */
START_TEST(the_physical_layer_says_how_long_it_has_counted)
{
    age(PRM_PPCNT_GRP_PHYSICAL_LAYER, true);
    age(PRM_PPCNT_GRP_PHYSICAL_LAYER_STATISTICAL, true);
    fw_uplink(d.fw)->counters.link_downs += 2;
    receive(1, 0);
    d.host.now += 7000000;
    ck_assert_uint_eq(age(PRM_PPCNT_GRP_PHYSICAL_LAYER, true), 7);
    ck_assert_uint_eq(PRM_GET(phys_layer_cntrs, SET, link_down_events), 2);
    d.host.now += 5000000;
    ck_assert_uint_eq(age(PRM_PPCNT_GRP_PHYSICAL_LAYER, false), 5);
    ck_assert_uint_eq(PRM_GET(phys_layer_cntrs, SET, link_down_events), 0);
    ck_assert_uint_eq(age(PRM_PPCNT_GRP_PHYSICAL_LAYER_STATISTICAL, false), 12);
    ck_assert_uint_eq(PRM_GET(phys_layer_statistical_cntrs, SET, phy_received_bits_low), 64 * 8);
}
END_TEST

/* A card's power-on begins the counters anew; what was cleared before must not be subtracted. */
START_TEST(a_reset_port_counts_from_0)
{
    receive(9, 0);
    ck_assert_uint_eq(frames_received(true), 9);
    uplink_reset(fw_uplink(d.fw));
    receive(4, 0);
    ck_assert_uint_eq(frames_received(false), 4);
}
END_TEST

/* The InfiniBand counters stop at their largest value, and count again when they are cleared. */
START_TEST(a_counter_that_stopped_counts_again)
{
    d.fw->hca.vport->counters.rx_bad_icrc = 70000;
    ck_assert_uint_eq(read_group(PRM_PPCNT_GRP_INFINIBAND_PORT, 0, true), SYN_OK);
    ck_assert_uint_eq(PRM_GET(ib_port_cntrs_grp_data_layout, SET, port_rcv_errors), 65535);
    d.fw->hca.vport->counters.rx_bad_icrc += 3;
    ck_assert_uint_eq(read_group(PRM_PPCNT_GRP_INFINIBAND_PORT, 0, false), SYN_OK);
    ck_assert_uint_eq(PRM_GET(ib_port_cntrs_grp_data_layout, SET, port_rcv_errors), 3);
}
END_TEST

/* Frames that were whole and are lost. */
START_TEST(discards_have_a_group)
{
    d.fw->hca.vport->counters.rx_discards = 1ull << 32 | 6;
    d.fw->hca.vport->counters.tx_oversize = 4;
    d.fw->hca.vport->counters.rx_oversize = 8; /* an error, no discard */
    ck_assert_uint_eq(read_group(PRM_PPCNT_GRP_ETHERNET_DISCARD, 0, false), SYN_OK);
    ck_assert_uint_eq(PRM_GET(eth_discard_cntrs_grp, SET, ingress_general_high), 1);
    ck_assert_uint_eq(PRM_GET(eth_discard_cntrs_grp, SET, ingress_general_low), 6);
    ck_assert_uint_eq(PRM_GET(eth_discard_cntrs_grp, SET, egress_general_low), 4);
}
END_TEST

/* Nothing waits in a class and nothing is dropped for congestion; all groups are there. */
START_TEST(traffic_classes_have_nothing_to_report)
{
    static const uint8_t zero[248];

    receive(3, 0);
    for (unsigned class = 0; class < 8; class ++) {
        ck_assert_uint_eq(read_group(PRM_PPCNT_GRP_PER_TRAFFIC_CLASS, class, true), SYN_OK);
        ck_assert_mem_eq(SET, zero, sizeof(zero));
        ck_assert_uint_eq(read_group(PRM_PPCNT_GRP_PER_TRAFFIC_CLASS_CONGESTION, class, true),
                          SYN_OK);
        ck_assert_mem_eq(SET, zero, sizeof(zero));
    }
    ck_assert_uint_eq(read_group(0x3f, 0, true), SYN_REG_VALUE);
    ck_assert_uint_eq(read_group(PRM_PPCNT_GRP_INFINIBAND_EXTENDED_PORT, 0, true), SYN_REG_VALUE);
}
END_TEST

/* Driver mlx5e_stats_grp_pcie: it reads the group that MCAM reports. */
START_TEST(the_pci_port_never_stalls)
{
    struct prm_mpcnt_reg pci[1] = {0};
    struct prm_mcam_reg mcam[1] = {0};
    const void *set = PRM_PTR(mpcnt_reg, pci, counter_set);
    const void *features = PRM_PTR(mcam_reg, mcam, mng_feature_cap_mask_enhanced_features);

    ck_assert_uint_eq(READ(MCAM, mcam), SYN_OK);
    ck_assert_uint_eq(PRM_GET(mcam_enhanced_features, features, pcie_performance_group), 1);
    ck_assert_uint_eq(PRM_GET(mcam_enhanced_features, features, pcie_outbound_stalled), 1);
    PRM_SET(mpcnt_reg, pci, clr, 1);
    ck_assert_uint_eq(READ(MPCNT, pci), SYN_OK);
    ck_assert_uint_eq(PRM_GET(pcie_perf_cntrs_grp_data_layout, set, rx_errors), 0);
    ck_assert_uint_eq(PRM_GET(pcie_perf_cntrs_grp_data_layout, set, outbound_stalled_reads), 0);
    PRM_SET(mpcnt_reg, pci, grp, PRM_MPCNT_GRP_LANE);
    ck_assert_uint_eq(READ(MPCNT, pci), SYN_REG_VALUE);
    PRM_SET(mpcnt_reg, pci, grp, PRM_MPCNT_GRP_PERFORMANCE);
    PRM_SET(mpcnt_reg, pci, pcie_index, 1);
    ck_assert_uint_eq(READ(MPCNT, pci), SYN_REG_VALUE);
}
END_TEST

#define ENV(out, name)                                                                             \
    PRM_GET(vnic_diagnostic_statistics, PRM_PTR(query_vnic_env_out, out, vport_env), name)

static void read_env(struct prm_query_vnic_env_out out[1])
{
    struct prm_query_vnic_env_in in[1] = {0};

    PRM_SET(query_vnic_env_in, in, opcode, PRM_CMD_OP_QUERY_VNIC_ENV);
    ck_assert_uint_eq(fwd_cmd(&d, in, sizeof(in), out, sizeof(*out)), SYN_OK);
}

/* Driver mlx5_reporter_vnic_diagnose_counters(): quota_exceeded_command counts the commands that
 * failed for want of a resource, which count as invalid commands, too. */
START_TEST(commands_without_room_are_counted_apart)
{
    struct prm_query_hca_vport_pkey_in too_far[1] = {0};
    uint8_t keys[PRM_SIZE(query_hca_vport_pkey_out) + 4];
    struct prm_query_vnic_env_out before[1], after[1];

    read_env(before);
    PRM_SET(query_hca_vport_pkey_in, too_far, opcode, PRM_CMD_OP_QUERY_HCA_VPORT_PKEY);
    PRM_SET(query_hca_vport_pkey_in, too_far, pkey_index, 128);
    ck_assert_uint_eq(fwd_cmd(&d, too_far, sizeof(too_far), keys, sizeof(keys)), SYN_LIMIT);
    ck_assert_uint_ne(fwd_simple(&d, PRM_CMD_OP_QUERY_VNIC_ENV, 7), SYN_OK);
    read_env(after);
    ck_assert_uint_eq(ENV(after, quota_exceeded_command), ENV(before, quota_exceeded_command) + 1);
    ck_assert_uint_eq(ENV(after, invalid_command), ENV(before, invalid_command) + 2);
}
END_TEST

START_TEST(lost_events_and_long_frames_are_counted)
{
    struct prm_query_vnic_env_out env[1];

    d.fw->hca.eq_overruns = 3;
    d.fw->hca.vport->counters.rx_wqe_too_small = 5;
    read_env(env);
    ck_assert_uint_eq(ENV(env, async_eq_overrun), 3);
    ck_assert_uint_eq(ENV(env, comp_eq_overrun), 0);
    ck_assert_uint_eq(ENV(env, eth_wqe_too_small), 5);
    ck_assert_uint_eq(ENV(env, internal_rq_out_of_buffer), 0);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *s = suite_create("fw counters");
    TCase *tc = tcase_create("counters");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, clearing_a_group_changes_no_other);
    tcase_add_test(tc, each_priority_is_cleared_alone);
    tcase_add_test(tc, pauses_are_counted_by_priority);
    tcase_add_test(tc, the_physical_layer_says_how_long_it_has_counted);
    tcase_add_test(tc, a_reset_port_counts_from_0);
    tcase_add_test(tc, a_counter_that_stopped_counts_again);
    tcase_add_test(tc, discards_have_a_group);
    tcase_add_test(tc, traffic_classes_have_nothing_to_report);
    tcase_add_test(tc, the_pci_port_never_stalls);
    tcase_add_test(tc, commands_without_room_are_counted_apart);
    tcase_add_test(tc, lost_events_and_long_frames_are_counted);
    suite_add_tcase(s, tc);
    return s;
}
