/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests which targets of dynamic connections cannot be created, and which packets a target does not
 * accept. */
#include "tests/unit/suite.h"
#include "tests/unit/test_dc.h"

static enum syn create_with(unsigned field, uint64_t value)
{
    struct prm_dctc dctc[1];
    struct lab_dct made = dct;

    lab_dctc(far, dctc);
    prm_set(dctc, field, value, "dctc");
    return lab_dct_create(far, dctc, &made);
}

static const struct {
    unsigned field;
    uint64_t value;
    enum syn syn;
} wrong[] = {
    {PRM_dctc_state_FIELD, 1, SYN_DCT_STATE},
    {PRM_dctc_atomic_like_write_en_FIELD, 1, SYN_QP_FEATURE},
    {PRM_dctc_cs_res_FIELD, 1, SYN_DCT_CS_RES},
    {PRM_dctc_mtu_FIELD, 0, SYN_QP_MTU},
    {PRM_dctc_mtu_FIELD, 6, SYN_QP_MTU},
    {PRM_dctc_port_FIELD, 2, SYN_QP_PORT},
    {PRM_dctc_pkey_index_FIELD, 1, SYN_QP_PKEY},
    {PRM_dctc_my_addr_index_FIELD, 0xff, SYN_QP_GID},
    {PRM_dctc_pd_FIELD, 0xffffff, SYN_QP_PD},
    {PRM_dctc_cqn_FIELD, 0xffffff, SYN_QP_CQ},
};

START_TEST(a_target_that_cannot_be_is_refused)
{
    ck_assert_int_eq(create_with(PRM_dctc_mtu_FIELD, PRM_QP_MTU_512), SYN_OK);
    ck_assert_int_eq(create_with(wrong[_i].field, wrong[_i].value), wrong[_i].syn);
}
END_TEST

/* IBTA 9.6.1.5: a packet of another partition than the target's is dropped and counted. */
START_TEST(a_packet_of_another_partition_is_dropped)
{
    dci.qp->pkey = 0x1234;
    add_to(&dci, &dct);
    lab_advance(lab, 40 * LAB_ACK_TIMEOUT_NS);
    expect_sent(PRM_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR);
    ck_assert_uint_eq(sum(), 0);
    ck_assert_uint_eq(responders(), 0);
    ck_assert_uint_gt(far->hca.vport->counters.rx_bad_pkey, 0);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *s = suite_create("dc refusals");
    TCase *tc = tcase_create("refusals");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, a_target_that_cannot_be_is_refused, 0, G_N_ELEMENTS(wrong));
    tcase_add_test(tc, a_packet_of_another_partition_is_dropped);
    suite_add_tcase(s, tc);
    return s;
}
