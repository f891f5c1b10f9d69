/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests the registers of traffic classes (QTCT, QETCR) and of receive buffers (PBMC, PPTB). */
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

/* -- traffic classes --------------------------------------------------------------------------- */

static unsigned class_of(unsigned priority)
{
    struct prm_qtct_reg reg[1] = {0};

    PRM_SET(qtct_reg, reg, port_number, 1);
    PRM_SET(qtct_reg, reg, prio, priority);
    ck_assert_uint_eq(READ(QTCT, reg), SYN_OK);
    ck_assert_uint_eq(PRM_GET(qtct_reg, reg, prio), priority);
    return PRM_GET(qtct_reg, reg, tclass);
}

/* mlx5_set_port_prio_tc() names no port, mlx5_query_port_prio_tc() names port 1. */
START_TEST(each_priority_has_a_class)
{
    struct prm_qtct_reg reg[1] = {0};

    for (unsigned i = 0; i < 8; i++) {
        ck_assert_uint_eq(class_of(i), i);
    }
    PRM_SET(qtct_reg, reg, prio, 5);
    PRM_SET(qtct_reg, reg, tclass, 2);
    ck_assert_uint_eq(WRITE(QTCT, reg), SYN_OK);
    ck_assert_uint_eq(class_of(5), 2);
    ck_assert_uint_eq(class_of(4), 4);
    PRM_SET(qtct_reg, reg, port_number, 2);
    ck_assert_uint_eq(WRITE(QTCT, reg), SYN_NO_PORT);
    memset(reg, 0, sizeof(reg)); /* the answer was in its place */
    PRM_SET(qtct_reg, reg, port_number, 2);
    ck_assert_uint_eq(READ(QTCT, reg), SYN_NO_PORT);
}
END_TEST

static struct prm_qetc_reg qetc[1];

static void *tc(unsigned i)
{
    return PRM_PTR_AT(qetc_reg, qetc, tc_configuration, i);
}

static void read_qetcr(void)
{
    memset(qetc, 0, sizeof(qetc));
    ck_assert_uint_eq(READ(QETCR, qetc), SYN_OK);
}

/* A write takes only what its flags name: the driver sets groups, parts and limits one by one. */
START_TEST(settings_of_classes_are_taken_one_by_one)
{
    PRM_SET(ets_tcn_config_reg, tc(3), g, 1);
    PRM_SET(ets_tcn_config_reg, tc(3), group, 7);
    PRM_SET(ets_tcn_config_reg, tc(3), bw_allocation, 11);
    ck_assert_uint_eq(WRITE(QETCR, qetc), SYN_OK);
    memset(qetc, 0, sizeof(qetc));
    PRM_SET(ets_tcn_config_reg, tc(3), b, 1);
    PRM_SET(ets_tcn_config_reg, tc(3), bw_allocation, 25);
    PRM_SET(ets_tcn_config_reg, tc(3), max_bw_value, 1);
    ck_assert_uint_eq(WRITE(QETCR, qetc), SYN_OK);
    memset(qetc, 0, sizeof(qetc));
    PRM_SET(qetc_reg, qetc, port_number, 1);
    PRM_SET(ets_tcn_config_reg, tc(3), r, 1);
    PRM_SET(ets_tcn_config_reg, tc(3), max_bw_units, 3);
    PRM_SET(ets_tcn_config_reg, tc(3), max_bw_value, 40);
    ck_assert_uint_eq(WRITE(QETCR, qetc), SYN_OK);
    read_qetcr();
    ck_assert_uint_eq(PRM_GET(ets_tcn_config_reg, tc(3), group), 7);
    ck_assert_uint_eq(PRM_GET(ets_tcn_config_reg, tc(3), bw_allocation), 25);
    ck_assert_uint_eq(PRM_GET(ets_tcn_config_reg, tc(3), max_bw_units), 3);
    ck_assert_uint_eq(PRM_GET(ets_tcn_config_reg, tc(3), max_bw_value), 40);
    ck_assert_uint_eq(PRM_GET(ets_tcn_config_reg, tc(2), group), 0);
    ck_assert_uint_eq(PRM_GET(ets_tcn_config_reg, tc(2), bw_allocation), 100);
}
END_TEST

static const struct {
    unsigned group, percent, units, port;
} bad_classes[] = {{8, 0, 0, 1}, {15, 0, 0, 1}, {0, 101, 0, 1}, {0, 127, 0, 1},
                   {0, 0, 1, 1}, {0, 0, 15, 1}, {0, 0, 0, 2}};

/* A write that is refused changes no class, also none before the bad one. */
START_TEST(bad_settings_of_classes_change_nothing)
{
    memset(qetc, 0, sizeof(qetc));
    PRM_SET(qetc_reg, qetc, port_number, bad_classes[_i].port);
    PRM_SET(ets_tcn_config_reg, tc(0), b, 1);
    PRM_SET(ets_tcn_config_reg, tc(0), bw_allocation, 33);
    PRM_SET(ets_tcn_config_reg, tc(1), g, 1);
    PRM_SET(ets_tcn_config_reg, tc(1), group, bad_classes[_i].group);
    PRM_SET(ets_tcn_config_reg, tc(1), b, 1);
    PRM_SET(ets_tcn_config_reg, tc(1), bw_allocation, bad_classes[_i].percent);
    PRM_SET(ets_tcn_config_reg, tc(1), r, 1);
    PRM_SET(ets_tcn_config_reg, tc(1), max_bw_units, bad_classes[_i].units);
    ck_assert_uint_eq(WRITE(QETCR, qetc), bad_classes[_i].port == 1 ? SYN_REG_VALUE : SYN_NO_PORT);
    read_qetcr();
    ck_assert_uint_eq(PRM_GET(ets_tcn_config_reg, tc(0), bw_allocation), 100);
}
END_TEST

START_TEST(the_port_has_a_limit_of_its_own)
{
    void *port = PRM_PTR(qetc_reg, qetc, global_configuration);

    memset(qetc, 0, sizeof(qetc));
    PRM_SET(ets_global_config_reg, port, r, 1);
    PRM_SET(ets_global_config_reg, port, max_bw_units, 4);
    PRM_SET(ets_global_config_reg, port, max_bw_value, 10);
    ck_assert_uint_eq(WRITE(QETCR, qetc), SYN_OK);
    memset(qetc, 0, sizeof(qetc));
    PRM_SET(ets_global_config_reg, port, r, 1);
    PRM_SET(ets_global_config_reg, port, max_bw_units, 2);
    ck_assert_uint_eq(WRITE(QETCR, qetc), SYN_REG_VALUE);
    read_qetcr();
    ck_assert_uint_eq(PRM_GET(ets_global_config_reg, port, max_bw_units), 4);
    ck_assert_uint_eq(PRM_GET(ets_global_config_reg, port, max_bw_value), 10);
}
END_TEST

/* -- buffers ----------------------------------------------------------------------------------- */

static struct prm_pbmc_reg pbmc[1];

static void *buffer(unsigned i)
{
    return PRM_PTR_AT(pbmc_reg, pbmc, buffer, i);
}

static void read_pbmc(void)
{
    memset(pbmc, 0, sizeof(pbmc));
    PRM_SET(pbmc_reg, pbmc, local_port, 1);
    ck_assert_uint_eq(READ(PBMC, pbmc), SYN_OK);
}

static void set_buffer(unsigned i, unsigned size, unsigned xoff, unsigned xon)
{
    PRM_SET(bufferx_reg, buffer(i), size, size);
    PRM_SET(bufferx_reg, buffer(i), xoff_threshold, xoff);
    PRM_SET(bufferx_reg, buffer(i), xon_threshold, xon);
    PRM_SET(bufferx_reg, buffer(i), lossy, 0);
}

START_TEST(buffers_divide_what_the_port_has)
{
    uint32_t all;

    read_pbmc();
    all = PRM_GET(pbmc_reg, pbmc, port_buffer_size);
    ck_assert_uint_eq(all, 262016 / 128);
    ck_assert_uint_eq(PRM_GET(bufferx_reg, buffer(0), size), all);
    ck_assert_uint_eq(PRM_GET(bufferx_reg, buffer(0), lossy), 1);
    set_buffer(0, all - 1000, 0, 0);
    set_buffer(7, 1000, 700, 600);
    ck_assert_uint_eq(WRITE(PBMC, pbmc), SYN_OK);
    set_buffer(0, all - 999, 0, 0); /* more than there is */
    ck_assert_uint_eq(WRITE(PBMC, pbmc), SYN_REG_VALUE);
    read_pbmc();
    set_buffer(7, 1000, 1001, 600);
    ck_assert_uint_eq(WRITE(PBMC, pbmc), SYN_REG_VALUE);
    read_pbmc();
    set_buffer(7, 1000, 700, 701);
    ck_assert_uint_eq(WRITE(PBMC, pbmc), SYN_REG_VALUE);
    read_pbmc();
    ck_assert_uint_eq(PRM_GET(bufferx_reg, buffer(0), size), all - 1000);
    ck_assert_uint_eq(PRM_GET(bufferx_reg, buffer(7), size), 1000);
    ck_assert_uint_eq(PRM_GET(bufferx_reg, buffer(7), xoff_threshold), 700);
    ck_assert_uint_eq(PRM_GET(bufferx_reg, buffer(7), xon_threshold), 600);
    ck_assert_uint_eq(PRM_GET(bufferx_reg, buffer(7), lossy), 0);
    ck_assert_uint_eq(PRM_GET(bufferx_reg, buffer(1), lossy), 1);
}
END_TEST

START_TEST(each_priority_has_a_buffer)
{
    struct prm_pptb_reg reg[1] = {0};

    PRM_SET(pptb_reg, reg, local_port, 1);
    PRM_SET(pptb_reg, reg, pm, 0x81);
    PRM_SET(pptb_reg, reg, prio_x_buff, 0x7fffffff); /* 0 and 7 are taken: 15 is too much */
    ck_assert_uint_eq(WRITE(PPTB, reg), SYN_REG_VALUE);
    PRM_SET(pptb_reg, reg, local_port, 1);
    PRM_SET(pptb_reg, reg, pm, 0x81);
    PRM_SET(pptb_reg, reg, prio_x_buff, 0x7ffffff6);
    ck_assert_uint_eq(WRITE(PPTB, reg), SYN_OK);
    memset(reg, 0, sizeof(reg));
    PRM_SET(pptb_reg, reg, local_port, 1);
    ck_assert_uint_eq(READ(PPTB, reg), SYN_OK);
    ck_assert_uint_eq(PRM_GET(pptb_reg, reg, prio_x_buff), 0x70000006);
}
END_TEST

/* QCAM and PCAM name the registers, so that drivers ask for them. */
START_TEST(the_masks_name_the_registers)
{
    struct prm_pcam_reg pcam[1] = {0};
    void *regs = PRM_PTR(pcam_reg, pcam, port_access_reg_cap_mask_regs_5000_to_507f);

    ck_assert_uint_eq(READ(PCAM, pcam), SYN_OK);
    ck_assert_uint_eq(PRM_GET(pcam_regs_5000_to_507f, regs, pbmc), 1);
    ck_assert_uint_eq(PRM_GET(pcam_regs_5000_to_507f, regs, pptb), 1);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("fw qos");
    TCase *tcase = tcase_create("fw qos");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, each_priority_has_a_class);
    tcase_add_test(tcase, settings_of_classes_are_taken_one_by_one);
    tcase_add_loop_test(tcase, bad_settings_of_classes_change_nothing, 0,
                        G_N_ELEMENTS(bad_classes));
    tcase_add_test(tcase, the_port_has_a_limit_of_its_own);
    tcase_add_test(tcase, buffers_divide_what_the_port_has);
    tcase_add_test(tcase, each_priority_has_a_buffer);
    tcase_add_test(tcase, the_masks_name_the_registers);
    suite_add_tcase(suite, tcase);
    return suite;
}
