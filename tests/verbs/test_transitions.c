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

/* Types as bits. IBV_QPT_DRIVER is a DCI, whose rows are those of modify_dci_qp_is_ok(). */
#define T(type)   (1u << IBV_QPT_##type)
#define DCI       (1u << 30)
#define INIT_PORT "IBV_QP_PKEY_INDEX, IBV_QP_PORT"
#define CONNECT   "IBV_QP_AV, IBV_QP_PATH_MTU, IBV_QP_RQ_PSN, "
#define REQUESTER                                                                                  \
    "IBV_QP_TIMEOUT, IBV_QP_RETRY_CNT, IBV_QP_RNR_RETRY, IBV_QP_MAX_QP_RD_ATOMIC, IBV_QP_SQ_PSN"
#define PATHS "IBV_QP_ACCESS_FLAGS, IBV_QP_ALT_PATH, IBV_QP_PATH_MIG_STATE"
#define PATHS_RNR                                                                                  \
    "IBV_QP_ACCESS_FLAGS, IBV_QP_ALT_PATH, IBV_QP_MIN_RNR_TIMER, IBV_QP_PATH_MIG_STATE"

/* All transitions but those to RESET and ERR. Without the rate limit of raw packet QPs (the device
 * has no packet pacing), and without those to SQD, which mlx5_ib has no command for. */
static const struct expected {
    unsigned types;
    enum ibv_qp_state from, to;
    const char *required, *optional;
} expected[] = {
    {T(RC) | T(UC) | T(XRC_SEND) | T(XRC_RECV), IBV_QPS_RESET, IBV_QPS_INIT,
     "IBV_QP_ACCESS_FLAGS, " INIT_PORT, ""},
    {T(UD), IBV_QPS_RESET, IBV_QPS_INIT, INIT_PORT ", IBV_QP_QKEY", ""},
    {T(RAW_PACKET), IBV_QPS_RESET, IBV_QPS_INIT, "IBV_QP_PORT", ""},
    {DCI, IBV_QPS_RESET, IBV_QPS_INIT, INIT_PORT, ""},

    {T(RC) | T(UC) | T(XRC_SEND) | T(XRC_RECV), IBV_QPS_INIT, IBV_QPS_INIT, "",
     "IBV_QP_ACCESS_FLAGS, " INIT_PORT},
    {T(UD), IBV_QPS_INIT, IBV_QPS_INIT, "", INIT_PORT ", IBV_QP_QKEY"},
    {T(RAW_PACKET), IBV_QPS_INIT, IBV_QPS_INIT, "", ""},
    {DCI, IBV_QPS_INIT, IBV_QPS_INIT, "", INIT_PORT},

    {T(RC) | T(XRC_RECV), IBV_QPS_INIT, IBV_QPS_RTR,
     CONNECT "IBV_QP_MIN_RNR_TIMER, IBV_QP_MAX_DEST_RD_ATOMIC, IBV_QP_DEST_QPN",
     "IBV_QP_ACCESS_FLAGS, IBV_QP_PKEY_INDEX, IBV_QP_ALT_PATH"},
    {T(UC) | T(XRC_SEND), IBV_QPS_INIT, IBV_QPS_RTR, CONNECT "IBV_QP_DEST_QPN",
     "IBV_QP_ACCESS_FLAGS, IBV_QP_PKEY_INDEX, IBV_QP_ALT_PATH"},
    {T(UD), IBV_QPS_INIT, IBV_QPS_RTR, "", "IBV_QP_PKEY_INDEX, IBV_QP_QKEY"},
    {T(RAW_PACKET), IBV_QPS_INIT, IBV_QPS_RTR, "", ""},
    {DCI, IBV_QPS_INIT, IBV_QPS_RTR, "IBV_QP_PATH_MTU", "IBV_QP_PKEY_INDEX, IBV_QP_AV"},

    {T(RC), IBV_QPS_RTR, IBV_QPS_RTS, REQUESTER, PATHS_RNR},
    {T(XRC_SEND), IBV_QPS_RTR, IBV_QPS_RTS, REQUESTER, PATHS},
    {T(XRC_RECV), IBV_QPS_RTR, IBV_QPS_RTS, "IBV_QP_TIMEOUT, IBV_QP_SQ_PSN", PATHS_RNR},
    {T(UC), IBV_QPS_RTR, IBV_QPS_RTS, "IBV_QP_SQ_PSN", PATHS},
    {T(UD), IBV_QPS_RTR, IBV_QPS_RTS, "IBV_QP_SQ_PSN", "IBV_QP_QKEY"},
    {T(RAW_PACKET), IBV_QPS_RTR, IBV_QPS_RTS, "", "IBV_QP_RATE_LIMIT"},
    {DCI, IBV_QPS_RTR, IBV_QPS_RTS, REQUESTER, "IBV_QP_MIN_RNR_TIMER"},

    {T(RC) | T(XRC_RECV), IBV_QPS_RTS, IBV_QPS_RTS, "", PATHS_RNR},
    {T(UC) | T(XRC_SEND), IBV_QPS_RTS, IBV_QPS_RTS, "", PATHS},
    {T(UD), IBV_QPS_RTS, IBV_QPS_RTS, "", "IBV_QP_QKEY"},
    {T(RAW_PACKET), IBV_QPS_RTS, IBV_QPS_RTS, "", "IBV_QP_RATE_LIMIT"},
    {DCI, IBV_QPS_RTS, IBV_QPS_RTS, "", "IBV_QP_MIN_RNR_TIMER"},

    {T(UC), IBV_QPS_SQE, IBV_QPS_RTS, "", "IBV_QP_ACCESS_FLAGS"},
    {T(UD), IBV_QPS_SQE, IBV_QPS_RTS, "", "IBV_QP_QKEY"},

    {T(RC) | T(XRC_RECV), IBV_QPS_SQD, IBV_QPS_RTS, "", PATHS_RNR},
    {T(UC) | T(XRC_SEND), IBV_QPS_SQD, IBV_QPS_RTS, "", PATHS},
    {T(UD), IBV_QPS_SQD, IBV_QPS_RTS, "", "IBV_QP_QKEY"},
};

static const enum ibv_qp_type types[] = {IBV_QPT_RC,         IBV_QPT_UC,       IBV_QPT_UD,
                                         IBV_QPT_RAW_PACKET, IBV_QPT_XRC_SEND, IBV_QPT_XRC_RECV,
                                         IBV_QPT_DRIVER};

static const struct expected *expected_find(enum ibv_qp_type type, enum ibv_qp_state from,
                                            enum ibv_qp_state to)
{
    unsigned bit = type == IBV_QPT_DRIVER ? DCI : 1u << type;

    for (size_t i = 0; i < G_N_ELEMENTS(expected); i++) {
        if (expected[i].types & bit && expected[i].from == from && expected[i].to == to) {
            return &expected[i];
        }
    }
    return NULL;
}

START_TEST(a_transition_needs_what_the_specification_says)
{
    for (enum ibv_qp_state from = IBV_QPS_RESET; from <= IBV_QPS_ERR; from++) {
        for (enum ibv_qp_state to = IBV_QPS_RESET; to <= IBV_QPS_ERR; to++) {
            const struct expected *e = expected_find(types[_i], from, to);
            int required, optional;
            bool is = hv_qp_transition(types[_i], from, to, &required, &optional);
            struct hv_words words;

            ck_assert_msg(is == (e != NULL), "%s to %s", hv_qp_state_name(from),
                          hv_qp_state_name(to));
            if (e) {
                ck_assert_str_eq(hv_qp_mask_names(required, &words), e->required);
                ck_assert_str_eq(hv_qp_mask_names(optional, &words), e->optional);
            }
        }
    }
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
    ck_assert_str_eq(hv_qp_mask_names(IBV_QP_PORT | 1 << 26, &words), "IBV_QP_PORT, 0x4000000");
    ck_assert_str_eq(hv_qp_state_name(IBV_QPS_SQE), "SQE");
    ck_assert_str_eq(hv_qp_state_name(IBV_QPS_UNKNOWN), "an unknown state");
    ck_assert_str_eq(hv_qp_mask_names(-1, &words) + strlen(words.text) - 10, "0x80000000");
}
END_TEST

Suite *unit_suite(void)
{
    Suite *s = suite_create("transitions");
    TCase *c = tcase_create("table");

    tcase_add_loop_test(c, a_transition_needs_what_the_specification_says, 0, G_N_ELEMENTS(types));
    tcase_add_loop_test(c, the_way_to_rts_has_no_shortcut, 0, G_N_ELEMENTS(types));
    tcase_add_loop_test(c, no_attribute_is_both_required_and_optional, 0, G_N_ELEMENTS(types));
    tcase_add_test(c, a_bit_has_its_name);
    suite_add_tcase(s, c);
    return s;
}
