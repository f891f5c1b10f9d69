/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What ibv_modify_qp() needs for each transition, against a restatement of IBTA's table of QP
 * states (the InfiniBand Architecture Specification, volume 1, table "QP state transition
 * properties") as ib_modify_qp_is_ok() of Linux has it; and the words for it in the log.
 */
#include <check.h>
#include <string.h>
#include "guest-lib/verbs/kernel/qp.h"
#include "tests/unit/suite.h"

static const struct expected {
    enum ibv_qp_type type;
    enum ibv_qp_state from, to;
    const char *required, *optional;
} expected[] = {
    {IBV_QPT_RC, IBV_QPS_RESET, IBV_QPS_INIT, "IBV_QP_ACCESS_FLAGS, IBV_QP_PKEY_INDEX, IBV_QP_PORT",
     ""},
    {IBV_QPT_UC, IBV_QPS_RESET, IBV_QPS_INIT, "IBV_QP_ACCESS_FLAGS, IBV_QP_PKEY_INDEX, IBV_QP_PORT",
     ""},
    {IBV_QPT_UD, IBV_QPS_RESET, IBV_QPS_INIT, "IBV_QP_PKEY_INDEX, IBV_QP_PORT, IBV_QP_QKEY", ""},
    {IBV_QPT_RAW_PACKET, IBV_QPS_RESET, IBV_QPS_INIT, "IBV_QP_PORT", ""},
    {IBV_QPT_RC, IBV_QPS_INIT, IBV_QPS_RTR,
     "IBV_QP_AV, IBV_QP_PATH_MTU, IBV_QP_RQ_PSN, IBV_QP_MIN_RNR_TIMER, IBV_QP_MAX_DEST_RD_ATOMIC, "
     "IBV_QP_DEST_QPN",
     "IBV_QP_ACCESS_FLAGS, IBV_QP_PKEY_INDEX, IBV_QP_ALT_PATH"},
    {IBV_QPT_UC, IBV_QPS_INIT, IBV_QPS_RTR,
     "IBV_QP_AV, IBV_QP_PATH_MTU, IBV_QP_RQ_PSN, IBV_QP_DEST_QPN",
     "IBV_QP_ACCESS_FLAGS, IBV_QP_PKEY_INDEX, IBV_QP_ALT_PATH"},
    {IBV_QPT_UD, IBV_QPS_INIT, IBV_QPS_RTR, "", "IBV_QP_PKEY_INDEX, IBV_QP_QKEY"},
    {IBV_QPT_RC, IBV_QPS_RTR, IBV_QPS_RTS,
     "IBV_QP_TIMEOUT, IBV_QP_RETRY_CNT, IBV_QP_RNR_RETRY, IBV_QP_MAX_QP_RD_ATOMIC, IBV_QP_SQ_PSN",
     "IBV_QP_ACCESS_FLAGS, IBV_QP_ALT_PATH, IBV_QP_MIN_RNR_TIMER, IBV_QP_PATH_MIG_STATE"},
    {IBV_QPT_UC, IBV_QPS_RTR, IBV_QPS_RTS, "IBV_QP_SQ_PSN",
     "IBV_QP_ACCESS_FLAGS, IBV_QP_ALT_PATH, IBV_QP_PATH_MIG_STATE"},
    {IBV_QPT_UD, IBV_QPS_RTR, IBV_QPS_RTS, "IBV_QP_SQ_PSN", "IBV_QP_QKEY"},
    {IBV_QPT_UD, IBV_QPS_SQE, IBV_QPS_RTS, "", "IBV_QP_QKEY"},
};

static const enum ibv_qp_type types[] = {IBV_QPT_RC,         IBV_QPT_UC,       IBV_QPT_UD,
                                         IBV_QPT_RAW_PACKET, IBV_QPT_XRC_SEND, IBV_QPT_XRC_RECV,
                                         IBV_QPT_DRIVER};

START_TEST(a_transition_needs_what_the_specification_says)
{
    const struct expected *e = &expected[_i];
    int required, optional;
    struct hv_words words;

    ck_assert(hv_qp_transition(e->type, e->from, e->to, &required, &optional));
    ck_assert_str_eq(hv_qp_mask_names(required, &words), e->required);
    ck_assert_str_eq(hv_qp_mask_names(optional, &words), e->optional);
}
END_TEST

/* Every type goes from RESET to INIT, RTR and RTS, one after the other. */
START_TEST(the_way_to_rts_has_no_shortcut)
{
    static const enum ibv_qp_state way[] = {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS};
    int required, optional;

    for (unsigned from = 0; from < G_N_ELEMENTS(way); from++) {
        for (unsigned to = 0; to < G_N_ELEMENTS(way); to++) {
            bool is = hv_qp_transition(types[_i], way[from], way[to], &required, &optional);

            if (to == from + 1) {
                ck_assert(is);
            } else if (to != from) {
                ck_assert_msg(!is, "%s to %s", hv_qp_state_name(way[from]),
                              hv_qp_state_name(way[to]));
            }
        }
    }
}
END_TEST

START_TEST(no_attribute_is_both_required_and_optional)
{
    const int any = IBV_QP_STATE | IBV_QP_CUR_STATE;

    for (enum ibv_qp_state from = IBV_QPS_RESET; from <= IBV_QPS_ERR; from++) {
        for (enum ibv_qp_state to = IBV_QPS_RESET; to <= IBV_QPS_ERR; to++) {
            int required = 0, optional = 0;

            if (hv_qp_transition(types[_i], from, to, &required, &optional)) {
                ck_assert_int_eq(required & optional, 0);
                ck_assert_int_eq((required | optional) & any, 0);
            }
        }
    }
}
END_TEST

START_TEST(a_bit_has_its_name)
{
    struct hv_words words;

    ck_assert_str_eq(hv_qp_mask_names(0, &words), "");
    ck_assert_str_eq(hv_qp_mask_names(IBV_QP_STATE, &words), "IBV_QP_STATE");
    ck_assert_str_eq(hv_qp_mask_names(IBV_QP_CAP | IBV_QP_DEST_QPN, &words),
                     "IBV_QP_CAP, IBV_QP_DEST_QPN");
    ck_assert_str_eq(hv_qp_mask_names(IBV_QP_PORT | 1 << 25, &words), "IBV_QP_PORT, 0x2000000");
    ck_assert_str_eq(hv_qp_state_name(IBV_QPS_SQE), "SQE");
    ck_assert_str_eq(hv_qp_state_name(IBV_QPS_UNKNOWN), "an unknown state");
    ck_assert_str_eq(hv_qp_mask_names(-1, &words) + strlen(words.text) - 10, "0x80000000");
}
END_TEST

Suite *unit_suite(void)
{
    Suite *s = suite_create("transitions");
    TCase *c = tcase_create("table");

    tcase_add_loop_test(c, a_transition_needs_what_the_specification_says, 0,
                        G_N_ELEMENTS(expected));
    tcase_add_loop_test(c, the_way_to_rts_has_no_shortcut, 0, G_N_ELEMENTS(types));
    tcase_add_loop_test(c, no_attribute_is_both_required_and_optional, 0, G_N_ELEMENTS(types));
    tcase_add_test(c, a_bit_has_its_name);
    suite_add_tcase(s, c);
    return s;
}
