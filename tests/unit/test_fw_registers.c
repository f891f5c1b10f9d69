/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests registers that no transport depends on, as tools and drivers read and write them: byte
 * order, description, waiting times, firmware components, flow control, why a link is down.
 */
#include <check.h>
#include <string.h>
#include "fw/fw_internal.h"
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

/* Driver mlx5_core_set_hca_ctrl(): 0 means little-endian, the only setting of the device. */
START_TEST(the_host_is_little_endian)
{
    struct prm_register_host_endianness reg[1] = {0};

    ck_assert_uint_eq(WRITE(HOST_ENDIANNESS, reg), SYN_OK);
    PRM_SET(register_host_endianness, reg, he, 1);
    ck_assert_uint_eq(WRITE(HOST_ENDIANNESS, reg), SYN_REG_VALUE);
    memset(reg, 0xff, sizeof(reg));
    ck_assert_uint_eq(READ(HOST_ENDIANNESS, reg), SYN_OK);
    ck_assert_uint_eq(PRM_GET(register_host_endianness, reg, he), 0);
}
END_TEST

/* sysfs's node_desc: 64 bytes that the user may choose. */
START_TEST(the_node_description_is_what_was_written)
{
    uint8_t reg[PRM_SIZE(set_node_in)] = {0};

    ck_assert_uint_eq(READ(NODE_DESC, reg), SYN_OK);
    ck_assert_ptr_nonnull(strstr((char *)reg, "hcasim"));
    memset(reg, 'x', sizeof(reg));
    ck_assert_uint_eq(WRITE(NODE_DESC, reg), SYN_OK);
    memset(reg, 0, sizeof(reg));
    ck_assert_uint_eq(READ(NODE_DESC, reg), SYN_OK);
    for (unsigned i = 0; i < sizeof(reg); i++) {
        ck_assert_uint_eq(reg[i], 'x');
    }
}
END_TEST

/* Driver tout.c: each has a unit and a value other than 0 ("not supported"). */
START_TEST(the_device_reports_how_long_to_wait)
{
    struct prm_dtor_reg reg[1] = {0};
    const struct prm_default_timeout *reset = PRM_PTR(dtor_reg, reg, fw_reset_to);
    const struct prm_default_timeout *toggle = PRM_PTR(dtor_reg, reg, pcie_toggle_to);

    ck_assert_uint_eq(READ(DTOR, reg), SYN_OK);
    ck_assert_uint_eq(PRM_GET(default_timeout, reset, to_multiplier), PRM_TIMEOUT_UNIT_SECONDS);
    ck_assert_uint_eq(PRM_GET(default_timeout, reset, to_value), 60);
    ck_assert_uint_eq(PRM_GET(default_timeout, toggle, to_value), 2);
    ck_assert_uint_ne(WRITE(DTOR, reg), SYN_OK); /* it can only be read */
}
END_TEST

/* Driver mlx5_fw_version_query(): components from 0 on until last_index_flag. */
START_TEST(there_is_one_firmware_component)
{
    struct prm_mcqs_reg reg[1] = {0};

    ck_assert_uint_eq(READ(MCQS, reg), SYN_OK);
    ck_assert_uint_eq(PRM_GET(mcqs_reg, reg, last_index_flag), 1);
    ck_assert_uint_eq(PRM_GET(mcqs_reg, reg, identifier), PRM_MCQS_IDENTIFIER_BOOT_IMAGE);
    memset(reg, 0, sizeof(reg));
    PRM_SET(mcqs_reg, reg, component_index, 1);
    ck_assert_uint_eq(READ(MCQS, reg), SYN_REG_VALUE);
}
END_TEST

static enum syn read_mcqi(uint8_t *bytes, size_t size, unsigned component, unsigned type,
                          unsigned offset, unsigned len)
{
    void *reg = bytes;

    memset(bytes, 0, size);
    PRM_SET(mcqi_reg, reg, component_index, component);
    PRM_SET(mcqi_reg, reg, info_type, type);
    PRM_SET(mcqi_reg, reg, offset, offset);
    PRM_SET(mcqi_reg, reg, data_size, len);
    return fwd_reg(&d, PRM_REG_ID_MCQI, false, reg, size);
}

START_TEST(mcqi_answers_only_the_advertised_kinds_of_information)
{
    uint8_t bytes[PRM_SIZE(mcqi_reg) + PRM_SIZE(mcqi_version)];
    const void *reg = bytes;
    const struct prm_mcqi_cap *cap = (const void *)PRM_PTR(mcqi_reg, reg, data);

    ck_assert_uint_eq(
        read_mcqi(bytes, sizeof(bytes), 0, PRM_MCQI_INFO_TYPE_CAPABILITIES, 0, PRM_SIZE(mcqi_cap)),
        SYN_OK);
    ck_assert_uint_eq(PRM_GET(mcqi_cap, cap, supported_info_bitmask),
                      1u << PRM_MCQI_INFO_TYPE_CAPABILITIES | 1u << PRM_MCQI_INFO_TYPE_VERSION);
    /* each of those answers, and no other */
    for (unsigned type = 0; type < 8; type++) {
        bool told = type == PRM_MCQI_INFO_TYPE_CAPABILITIES || type == PRM_MCQI_INFO_TYPE_VERSION;

        ck_assert_uint_eq(read_mcqi(bytes, sizeof(bytes), 0, type, 0, 4),
                          told ? SYN_OK : SYN_REG_VALUE);
    }
    ck_assert_uint_eq(read_mcqi(bytes, sizeof(bytes), 1, 1, 0, 4), SYN_REG_VALUE);
    ck_assert_uint_eq(read_mcqi(bytes, sizeof(bytes), 0, 1, 4, 4), SYN_REG_VALUE);
    /* mstflint asks for more than exists */
    ck_assert_uint_eq(read_mcqi(bytes, sizeof(bytes), 0, 1, 0, 128), SYN_OK);
    ck_assert_uint_eq(PRM_GET(mcqi_reg, reg, info_size), PRM_SIZE(mcqi_version));
}
END_TEST

/* MCAM and PCAM: groups of registers and features that do not exist are refused. */
START_TEST(groups_that_are_not_there_are_refused)
{
    struct prm_mcam_reg mcam[1] = {0};
    struct prm_pcam_reg pcam[1] = {0};

    PRM_SET(mcam_reg, mcam, access_reg_group, 4);
    ck_assert_uint_eq(READ(MCAM, mcam), SYN_REG_VALUE);
    memset(mcam, 0, sizeof(mcam));
    PRM_SET(mcam_reg, mcam, feature_group, 1);
    ck_assert_uint_eq(READ(MCAM, mcam), SYN_REG_VALUE);
    PRM_SET(pcam_reg, pcam, access_reg_group, 1);
    ck_assert_uint_eq(READ(PCAM, pcam), SYN_REG_VALUE);
    memset(pcam, 0, sizeof(pcam));
    PRM_SET(pcam_reg, pcam, feature_group, 1);
    ck_assert_uint_eq(READ(PCAM, pcam), SYN_REG_VALUE);
}
END_TEST

/* -- the real-time clock ----------------------------------------------------------------------- */

static void be(const char *profile)
{
    fwd_clear(&d);
    fwd_init_as(&d, profile);
    fwd_bring_up(&d);
}

/* Seconds and nanoseconds in the initialization segment (driver: mlx5_read_time()). */
static uint64_t clock_now(void)
{
    size_t at = PRM_OFFSET(initial_seg, real_time_h);
    uint64_t h = fw_mmio_read(d.fw, at, 4), l = fw_mmio_read(d.fw, at + 4, 4);

    return h * 1000000000ull + l;
}

static enum syn write_clock(unsigned operation, uint32_t sec, uint32_t nsec, int32_t shift,
                            unsigned unit, int32_t freq)
{
    struct prm_mtutc_reg reg[1] = {0};

    PRM_SET(mtutc_reg, reg, operation, operation);
    PRM_SET(mtutc_reg, reg, utc_sec, sec);
    PRM_SET(mtutc_reg, reg, utc_nsec, nsec);
    PRM_SET(mtutc_reg, reg, time_adjustment, (uint32_t)shift);
    PRM_SET(mtutc_reg, reg, freq_adj_units, unit);
    PRM_SET(mtutc_reg, reg, freq_adjustment, (uint32_t)freq);
    return WRITE(MTUTC, reg);
}

/* Driver lib/clock.c: mlx5_ptp_settime_real_time(), _adjtime_real_time(), _freq_adj_real_time(). */
START_TEST(the_real_time_clock_is_set_shifted_and_tuned)
{
    struct prm_mtutc_reg reg[1] = {0};
    struct prm_mcam_reg mcam[1] = {0};
    void *features = PRM_PTR(mcam_reg, mcam, mng_feature_cap_mask_enhanced_features);
    uint8_t cap[4096];

    be("cx7");
    d.host.now += 3000000005;
    ck_assert_uint_eq(clock_now(), d.host.now); /* until it is set */
    ck_assert_uint_eq(READ(MCAM, mcam), SYN_OK);
    ck_assert_uint_eq(PRM_GET(mcam_enhanced_features, features, ptpcyc2realtime_modify), 1);
    ck_assert_uint_eq(fwd_query_cap(&d, PRM_HCA_CAP_TYPE_ROCE, true, cap), SYN_OK);
    ck_assert_uint_eq(PRM_GET(roce_cap, (void *)cap, qp_ts_format),
                      PRM_CAP_TS_FORMAT_FREE_RUNNING_AND_REAL_TIME);

    ck_assert_int_eq(write_clock(1, 1000, 500, 0, 0, 0), SYN_OK);
    ck_assert_uint_eq(clock_now(), 1000000000500ull);
    ck_assert_int_eq(write_clock(2, 0, 0, -200000, 0, 0), SYN_OK);
    ck_assert_uint_eq(clock_now(), 999999800500ull);
    ck_assert_int_eq(write_clock(3, 0, 0, 0, PRM_MTUTC_UNIT_PPB, 1000), SYN_OK);
    d.host.now += 1000000000;
    ck_assert_uint_eq(clock_now(), 1000999800500ull + 1000);
    ck_assert_int_eq(write_clock(3, 0, 0, 0, PRM_MTUTC_UNIT_SCALED_PPM, -65536), SYN_OK);
    d.host.now += 1000000000;
    ck_assert_uint_eq(clock_now(), 1001999800500ull);
    ck_assert_uint_eq(READ(MTUTC, reg), SYN_OK);
    ck_assert_uint_eq(PRM_GET(mtutc_reg, reg, time_stamp_mode), PRM_MTUTC_MODE_REAL_TIME);
    ck_assert_uint_eq(PRM_GET(mtutc_reg, reg, utc_sec), 1001);
    ck_assert_uint_eq(PRM_GET(mtutc_reg, reg, utc_nsec), 999800500);

    /* beyond what the driver asks for, nothing changes */
    ck_assert_int_eq(write_clock(2, 0, 0, 200001, 0, 0), SYN_REG_VALUE);
    ck_assert_int_eq(write_clock(2, 0, 0, INT32_MIN, 0, 0), SYN_REG_VALUE);
    ck_assert_int_eq(write_clock(3, 0, 0, 0, PRM_MTUTC_UNIT_PPB, 50001000), SYN_REG_VALUE);
    ck_assert_int_eq(write_clock(3, 0, 0, 0, 2, 0), SYN_REG_VALUE);
    ck_assert_int_eq(write_clock(1, 0, 1000000001, 0, 0, 0), SYN_REG_VALUE);
    ck_assert_int_eq(write_clock(0, 0, 0, 0, 0, 0), SYN_REG_VALUE);
    ck_assert_uint_eq(clock_now(), 1001999800500ull);
}
END_TEST

START_TEST(a_connectx_5_has_the_free_running_timer_alone)
{
    struct prm_mtutc_reg reg[1] = {0};
    struct prm_mcam_reg mcam[1] = {0};
    void *features = PRM_PTR(mcam_reg, mcam, mng_feature_cap_mask_enhanced_features);

    ck_assert_uint_eq(READ(MTUTC, reg), SYN_OK);
    ck_assert_uint_eq(PRM_GET(mtutc_reg, reg, time_stamp_mode), PRM_MTUTC_MODE_INTERNAL_TIMER);
    ck_assert_int_eq(write_clock(1, 1000, 0, 0, 0, 0), SYN_REG_ACCESS);
    ck_assert_uint_eq(clock_now(), 0);
    ck_assert_uint_eq(READ(MCAM, mcam), SYN_OK);
    ck_assert_uint_eq(PRM_GET(mcam_enhanced_features, features, ptpcyc2realtime_modify), 0);
}
END_TEST

/* Registers can also be accessed without commands: Mellanox's tools use the vendor specific
 * capability. */
START_TEST(registers_are_accessed_without_commands_too)
{
    struct prm_pmtu_reg reg[1] = {0};

    ck_assert_uint_eq(fw_hw_id(d.fw), 0x20d);
    PRM_SET(pmtu_reg, reg, local_port, 1);
    ck_assert_int_eq(fw_access_reg(d.fw, PRM_REG_ID_PMTU, false, reg, sizeof(reg)), FW_REG_OK);
    ck_assert_uint_eq(PRM_GET(pmtu_reg, reg, admin_mtu), 1522);
    PRM_SET(pmtu_reg, reg, admin_mtu, 9000);
    ck_assert_int_eq(fw_access_reg(d.fw, PRM_REG_ID_PMTU, true, reg, sizeof(reg)), FW_REG_OK);
    ck_assert_uint_eq(fw_uplink(d.fw)->mtu, 9000);
    ck_assert_int_eq(fw_access_reg(d.fw, 0x9021, false, reg, sizeof(reg)), FW_REG_UNKNOWN);
    ck_assert_int_eq(fw_access_reg(d.fw, PRM_REG_ID_PPCNT, true, reg, sizeof(reg)),
                     FW_REG_BAD_METHOD);
    PRM_SET(pmtu_reg, reg, local_port, 2);
    ck_assert_int_eq(fw_access_reg(d.fw, PRM_REG_ID_PMTU, false, reg, sizeof(reg)),
                     FW_REG_BAD_PARAM);
    /* firmware that has failed does not answer */
    fw_set_health(d.fw, 1, true);
    ck_assert_int_eq(fw_access_reg(d.fw, PRM_REG_ID_PMTU, false, reg, sizeof(reg)), FW_REG_BUSY);
    fw_set_health(d.fw, 0, false);
    /* nor does firmware that is busy: the function's own DMA writes to its configuration space */
    ck_assert(entry_begin(d.fw));
    ck_assert_int_eq(fw_access_reg(d.fw, PRM_REG_ID_PMTU, false, reg, sizeof(reg)), FW_REG_BUSY);
    entry_end(d.fw);
}
END_TEST

static void read_pfcc(struct prm_pfcc_reg *reg)
{
    memset(reg, 0, PRM_SIZE(pfcc_reg));
    PRM_SET(pfcc_reg, reg, local_port, 1);
    ck_assert_uint_eq(fwd_reg(&d, PRM_REG_ID_PFCC, false, reg, PRM_SIZE(pfcc_reg)), SYN_OK);
}

/* Driver mlx5_set_port_pause() and mlx5_set_port_pfc(): each masks out what the other sets. */
START_TEST(pause_and_priority_flow_control_are_set_apart)
{
    struct prm_pfcc_reg reg[1] = {0};

    PRM_SET(pfcc_reg, reg, local_port, 1);
    PRM_SET(pfcc_reg, reg, pptx, 1);
    ck_assert_uint_eq(WRITE(PFCC, reg), SYN_OK);
    read_pfcc(reg);
    ck_assert_uint_eq(PRM_GET(pfcc_reg, reg, pptx), 1);
    ck_assert_uint_eq(PRM_GET(pfcc_reg, reg, pprx), 0);

    memset(reg, 0, sizeof(reg));
    PRM_SET(pfcc_reg, reg, local_port, 1);
    PRM_SET(pfcc_reg, reg, pptx_mask_n, 1);
    PRM_SET(pfcc_reg, reg, pprx_mask_n, 1);
    PRM_SET(pfcc_reg, reg, pprx, 1);
    PRM_SET(pfcc_reg, reg, pfctx, 0xff);
    PRM_SET(pfcc_reg, reg, pfcrx, 0x0f);
    PRM_SET(pfcc_reg, reg, prio_mask_tx, 0x08);
    PRM_SET(pfcc_reg, reg, prio_mask_rx, 0xff);
    ck_assert_uint_eq(WRITE(PFCC, reg), SYN_OK);
    read_pfcc(reg);
    ck_assert_uint_eq(PRM_GET(pfcc_reg, reg, pptx), 1);
    ck_assert_uint_eq(PRM_GET(pfcc_reg, reg, pprx), 0);
    ck_assert_uint_eq(PRM_GET(pfcc_reg, reg, pfctx), 0x08);
    ck_assert_uint_eq(PRM_GET(pfcc_reg, reg, pfcrx), 0x0f);
}
END_TEST

static unsigned trust(bool is_write, unsigned state, enum syn want)
{
    struct prm_qpts_reg reg[1] = {0};

    PRM_SET(qpts_reg, reg, local_port, 1);
    PRM_SET(qpts_reg, reg, trust_state, state);
    ck_assert_uint_eq(fwd_reg(&d, PRM_REG_ID_QPTS, is_write, reg, sizeof(reg)), want);
    return PRM_GET(qpts_reg, reg, trust_state);
}

/* Whether the paths of QPs are worked out again: the priority decides whether packets may be
 * marked.
 */
static bool paths_have_changed(void)
{
    static uint32_t seen;
    uint32_t now = d.fw->hca.vport->gid_version;
    bool changed = now != seen;

    seen = now;
    return changed;
}

/* Driver MLX5_CAP_QCAM_REG(): QCAM names exactly the registers of its group that exist. */
START_TEST(where_priorities_come_from_can_be_set)
{
    struct prm_qcam_reg qcam[1] = {0};
    const uint8_t *mask = (void *)PRM_PTR(qcam_reg, qcam, qos_access_reg_cap_mask_reg_cap);

    ck_assert_uint_eq(READ(QCAM, qcam), SYN_OK);
    ck_assert_mem_eq(mask, ((uint8_t[16]){[12] = 0x02, [13] = 0x08, [14] = 0x04, [15] = 0x24}), 16);
    PRM_SET(qcam_reg, qcam, feature_group, 1);
    ck_assert_uint_eq(READ(QCAM, qcam), SYN_REG_VALUE);

    ck_assert_uint_eq(trust(false, 0, SYN_OK), PRM_QPTS_TRUST_PCP);
    paths_have_changed();
    trust(true, PRM_QPTS_TRUST_DSCP, SYN_OK);
    ck_assert(paths_have_changed());
    ck_assert_uint_eq(trust(false, 0, SYN_OK), PRM_QPTS_TRUST_DSCP);
    trust(true, PRM_QPTS_TRUST_BOTH, SYN_REG_VALUE); /* feature qpts_trust_both is missing */
    trust(true, 0, SYN_REG_VALUE);
    ck_assert_uint_eq(trust(false, 0, SYN_OK), PRM_QPTS_TRUST_DSCP);
}
END_TEST

static void read_qpdpm(struct prm_qpdpm_reg *reg)
{
    memset(reg, 0, PRM_SIZE(qpdpm_reg));
    PRM_SET(qpdpm_reg, reg, local_port, 1);
    ck_assert_uint_eq(fwd_reg(&d, PRM_REG_ID_QPDPM, false, reg, PRM_SIZE(qpdpm_reg)), SYN_OK);
}

static unsigned dscp_priority(unsigned dscp)
{
    struct prm_qpdpm_reg reg[1];

    read_qpdpm(reg);
    return PRM_GET(qpdpm_dscp_reg, PRM_PTR_AT(qpdpm_reg, reg, dscp, dscp), prio);
}

/* Driver mlx5_set_dscp2prio(): one at a time, with e. */
START_TEST(each_dscp_has_a_priority)
{
    struct prm_qpdpm_reg reg[1];
    struct prm_qpdpm_dscp_reg *entry = PRM_PTR_AT(qpdpm_reg, reg, dscp, 26);

    for (unsigned dscp = 0; dscp < 64; dscp++) {
        ck_assert_uint_eq(dscp_priority(dscp), dscp / 8);
    }
    read_qpdpm(reg);
    PRM_SET(qpdpm_dscp_reg, entry, e, 1);
    PRM_SET(qpdpm_dscp_reg, entry, prio, 5);
    PRM_SET(qpdpm_dscp_reg, PRM_PTR_AT(qpdpm_reg, reg, dscp, 0), prio, 7); /* without e */
    paths_have_changed();
    ck_assert_uint_eq(WRITE(QPDPM, reg), SYN_OK);
    ck_assert(paths_have_changed());
    ck_assert_uint_eq(dscp_priority(26), 5);
    ck_assert_uint_eq(dscp_priority(0), 0);
    PRM_SET(qpdpm_dscp_reg, entry, prio, 8);
    ck_assert_uint_eq(WRITE(QPDPM, reg), SYN_REG_VALUE);
    ck_assert_uint_eq(dscp_priority(26), 5);
}
END_TEST

static uint64_t frames_of_priority(unsigned priority, bool sent)
{
    struct prm_ppcnt_reg reg[1] = {0};
    const void *set = PRM_PTR(ppcnt_reg, reg, counter_set);

    PRM_SET(ppcnt_reg, reg, local_port, 1);
    PRM_SET(ppcnt_reg, reg, grp, PRM_PPCNT_GRP_PER_PRIORITY);
    PRM_SET(ppcnt_reg, reg, prio_tc, priority);
    ck_assert_uint_eq(READ(PPCNT, reg), SYN_OK);
    ck_assert_uint_eq(PRM_GET(eth_per_prio_grp_data_layout, set, rx_octets_low),
                      64 * PRM_GET(eth_per_prio_grp_data_layout, set, rx_frames_low));
    return sent ? PRM_GET(eth_per_prio_grp_data_layout, set, tx_frames_low)
                : PRM_GET(eth_per_prio_grp_data_layout, set, rx_frames_low);
}

START_TEST(frames_are_counted_by_their_priority)
{
    struct frame {
        const char *head; /* what follows the addresses */
        size_t len;
        unsigned by_tag, by_dscp;
    } frames[] = {
        {"\x08\x00\x45\x68", 4, 0, 3},                 /* IPv4, DSCP 26 */
        {"\x86\xdd\x6b\x80", 4, 0, 5},                 /* IPv6, DSCP 46 */
        {"\x81\x00\xc0\x07\x08\x00\x45\x68", 8, 6, 3}, /* IPv4 in a VLAN, priority 6 */
        {"\x81\x00\x40\x07\x08\x06", 6, 2, 0},         /* ARP in a VLAN, priority 2 */
        {"\x88\xa8\xc0\x07\x08\x00\x45\x68", 8, 0, 3}, /* IPv4 behind an S-tag */
        /* IPv6 behind an S-tag and a C-tag, IPv4 behind two C-tags; three tags are not passed by */
        {"\x88\xa8\xc0\x07\x81\x00\x40\x07\x86\xdd\x6b\x80", 12, 0, 5},
        {"\x81\x00\xc0\x07\x81\x00\x40\x07\x08\x00\x45\x68", 12, 6, 3},
        {"\x81\x00\xc0\x07\x81\x00\x40\x07\x81\x00\x40\x07\x08\x00\x45\x68", 16, 6, 0},
        {"\x08\x06", 2, 0, 0}, /* ARP */
    };

    for (unsigned by_dscp = 0; by_dscp < 2; by_dscp++) {
        unsigned want[8] = {0};

        fw_uplink(d.fw)->phy.trusts_dscp = by_dscp;
        memset(&fw_uplink(d.fw)->counters, 0, sizeof(fw_uplink(d.fw)->counters));
        for (size_t i = 0; i < G_N_ELEMENTS(frames); i++) {
            uint8_t frame[60] = {0};

            memcpy(frame + 12, frames[i].head, frames[i].len);
            uplink_count_rx(fw_uplink(d.fw), frame, sizeof(frame));
            uplink_count_tx(fw_uplink(d.fw), frame, sizeof(frame));
            uplink_count_tx(fw_uplink(d.fw), frame, sizeof(frame));
            want[by_dscp ? frames[i].by_dscp : frames[i].by_tag]++;
        }
        for (unsigned priority = 0; priority < 8; priority++) {
            ck_assert_uint_eq(frames_of_priority(priority, false), want[priority]);
            ck_assert_uint_eq(frames_of_priority(priority, true), 2 * want[priority]);
        }
    }
    /* a header that ends with the frame */
    uplink_count_rx(fw_uplink(d.fw), (uint8_t[14]){[12] = 0x08}, 14);
    uplink_count_rx(fw_uplink(d.fw), (uint8_t[15]){[12] = 0x81}, 15);
    uplink_count_rx(fw_uplink(d.fw), (uint8_t[19]){[12] = 0x88, 0xa8, 0, 0, 0x81}, 19);
}
END_TEST

/* ethtool's extended link state (driver mlx5e_get_link_ext_state()): "No cable", or nothing. */
static uint32_t why_down(void)
{
    struct prm_pddr_reg reg[1] = {0};

    PRM_SET(pddr_reg, reg, local_port, 1);
    PRM_SET(pddr_reg, reg, page_select, PRM_PDDR_PAGE_TROUBLESHOOTING);
    ck_assert_uint_eq(READ(PDDR, reg), SYN_OK);
    return PRM_GET(
        pddr_troubleshooting_page,
        (const struct prm_pddr_troubleshooting_page *)(void *)PRM_PTR(pddr_reg, reg, page_data),
        status_opcode);
}

START_TEST(a_link_that_is_down_says_why)
{
    struct prm_pddr_reg other[1] = {0};

    ck_assert_uint_eq(why_down(), PRM_PDDR_STATUS_OPCODE_NO_CABLE);
    fwd_plug(&d);
    ck_assert_uint_eq(why_down(), PRM_PDDR_STATUS_OPCODE_NO_ISSUE);
    fwd_leave_alone(&d);
    ck_assert_uint_eq(why_down(), PRM_PDDR_STATUS_OPCODE_NO_PARTNER);
    PRM_SET(pddr_reg, other, local_port, 1);
    PRM_SET(pddr_reg, other, page_select, PRM_PDDR_PAGE_TROUBLESHOOTING + 1); /* the PHY's value */
    ck_assert_uint_eq(READ(PDDR, other), SYN_REG_VALUE);
}
END_TEST

/* SFF-8636: a module answers at address 0x50 of its bus, and at no other. */
START_TEST(the_bus_of_a_module_has_no_other_address)
{
    struct prm_mcia_reg reg[1] = {0};

    fwd_plug(&d);
    PRM_SET(mcia_reg, reg, i2c_device_address, 0x51);
    PRM_SET(mcia_reg, reg, size, 2);
    ck_assert_uint_eq(READ(MCIA, reg), SYN_OK);
    ck_assert_uint_eq(PRM_GET(mcia_reg, reg, status), PRM_MCIA_STATUS_NO_EEPROM);
}
END_TEST

START_TEST(unsupported_error_correction_is_refused)
{
    struct prm_pplm_reg reg[1] = {0};

    PRM_SET(pplm_reg, reg, local_port, 1);
    PRM_SET(pplm_reg, reg, rs_fec_correction_bypass_admin, 1);
    ck_assert_uint_eq(WRITE(PPLM, reg), SYN_REG_VALUE);
    memset(reg, 0, sizeof(reg));
    PRM_SET(pplm_reg, reg, local_port, 1);
    PRM_SET(pplm_reg, reg, fec_override_admin_56g, 1);
    ck_assert_uint_eq(WRITE(PPLM, reg), SYN_REG_VALUE);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *s = suite_create("fw registers");
    TCase *tc = tcase_create("registers");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, the_host_is_little_endian);
    tcase_add_test(tc, the_node_description_is_what_was_written);
    tcase_add_test(tc, the_device_reports_how_long_to_wait);
    tcase_add_test(tc, there_is_one_firmware_component);
    tcase_add_test(tc, mcqi_answers_only_the_advertised_kinds_of_information);
    tcase_add_test(tc, groups_that_are_not_there_are_refused);
    tcase_add_test(tc, registers_are_accessed_without_commands_too);
    tcase_add_test(tc, pause_and_priority_flow_control_are_set_apart);
    tcase_add_test(tc, where_priorities_come_from_can_be_set);
    tcase_add_test(tc, each_dscp_has_a_priority);
    tcase_add_test(tc, frames_are_counted_by_their_priority);
    tcase_add_test(tc, a_link_that_is_down_says_why);
    tcase_add_test(tc, the_bus_of_a_module_has_no_other_address);
    tcase_add_test(tc, unsupported_error_correction_is_refused);
    tcase_add_test(tc, the_real_time_clock_is_set_shifted_and_tuned);
    tcase_add_test(tc, a_connectx_5_has_the_free_running_timer_alone);
    suite_add_tcase(s, tc);
    return s;
}
