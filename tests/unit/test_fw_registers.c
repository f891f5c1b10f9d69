/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Registers that no transport depends on, as tools and drivers read and write them: byte order,
 * description, waiting times, firmware components, flow control, why a link is down.
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

#define READ(id, reg)  fwd_reg(&d, PRM_REG_ID_##id, false, reg, sizeof(reg))
#define WRITE(id, reg) fwd_reg(&d, PRM_REG_ID_##id, true, reg, sizeof(reg))

/* Driver mlx5_core_set_hca_ctrl(): 0 is little-endian, which is all that the device can be told. */
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

/* Driver tout.c: each has a unit and a value, which is not 0 ("not supported"). */
START_TEST(the_driver_is_told_how_long_to_wait)
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

START_TEST(a_component_says_what_is_known_of_it)
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
    /* mstflint asks for more than there is */
    ck_assert_uint_eq(read_mcqi(bytes, sizeof(bytes), 0, 1, 0, 128), SYN_OK);
    ck_assert_uint_eq(PRM_GET(mcqi_reg, reg, info_size), PRM_SIZE(mcqi_version));
}
END_TEST

/* MCAM and PCAM: groups of registers and features that are not there are not answered. */
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

/* By another way than the command: Mellanox's tools by the vendor specific capability. */
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
    /* a firmware that has failed answers nobody */
    fw_set_health(d.fw, 1, true);
    ck_assert_int_eq(fw_access_reg(d.fw, PRM_REG_ID_PMTU, false, reg, sizeof(reg)), FW_REG_BUSY);
    fw_set_health(d.fw, 0, false);
    /* nor one in the midst of something: the function's own DMA to its configuration space */
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
    PRM_SET(pddr_reg, other, page_select, PRM_PDDR_PAGE_TROUBLESHOOTING + 1); /* the PHY's */
    ck_assert_uint_eq(READ(PDDR, other), SYN_REG_VALUE);
}
END_TEST

/* SFF-8636: a module answers at address 0x50 of its bus, and at no other. */
START_TEST(nothing_else_is_on_the_modules_bus)
{
    struct prm_mcia_reg reg[1] = {0};

    fwd_plug(&d);
    PRM_SET(mcia_reg, reg, i2c_device_address, 0x51);
    PRM_SET(mcia_reg, reg, size, 2);
    ck_assert_uint_eq(READ(MCIA, reg), SYN_OK);
    ck_assert_uint_eq(PRM_GET(mcia_reg, reg, status), PRM_MCIA_STATUS_NO_EEPROM);
}
END_TEST

START_TEST(what_error_correction_there_is_not_is_refused)
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

/* "the counters run on for every reader" */
START_TEST(port_counters_cannot_be_cleared)
{
    uint8_t bytes[PRM_SIZE(ppcnt_reg)] = {0};
    void *reg = bytes;

    PRM_SET(ppcnt_reg, reg, local_port, 1);
    PRM_SET(ppcnt_reg, reg, grp, PRM_PPCNT_GRP_RFC_3635);
    ck_assert_uint_eq(fwd_reg(&d, PRM_REG_ID_PPCNT, false, reg, sizeof(bytes)), SYN_OK);
    PRM_SET(ppcnt_reg, reg, clr, 1);
    ck_assert_uint_eq(fwd_reg(&d, PRM_REG_ID_PPCNT, false, reg, sizeof(bytes)), SYN_REG_VALUE);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *s = suite_create("fw registers");
    TCase *tc = tcase_create("registers");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, the_host_is_little_endian);
    tcase_add_test(tc, the_node_description_is_what_was_written);
    tcase_add_test(tc, the_driver_is_told_how_long_to_wait);
    tcase_add_test(tc, there_is_one_firmware_component);
    tcase_add_test(tc, a_component_says_what_is_known_of_it);
    tcase_add_test(tc, groups_that_are_not_there_are_refused);
    tcase_add_test(tc, registers_are_accessed_without_commands_too);
    tcase_add_test(tc, pause_and_priority_flow_control_are_set_apart);
    tcase_add_test(tc, a_link_that_is_down_says_why);
    tcase_add_test(tc, nothing_else_is_on_the_modules_bus);
    tcase_add_test(tc, what_error_correction_there_is_not_is_refused);
    tcase_add_test(tc, port_counters_cannot_be_cleared);
    suite_add_tcase(s, tc);
    return s;
}
