/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests a DC target on an XRQ: its responders match what their initiators send. Initiators are on
 * side 0, the target on side 1; the path MTU is 1024 bytes.
 */
#include <stdlib.h>
#include "tests/unit/dc_tags_lab.h"
#include "tests/unit/suite.h"

START_TEST(messages_of_all_initiators_are_matched)
{
    uint16_t first = append(1, ROOM), second = append(2, ROOM);

    lab_dct_post_recv(&dct, wqes, ROOM);
    send_tagged(&one, PRM_TM_OP_EAGER, 2, 50);
    lab_run(lab);
    EXPECT(CONSUMED_MSG, second);
    expect_data(&one, second, 50);
    send_tagged(&two, PRM_TM_OP_EAGER, 1, 3000);
    lab_run(lab);
    EXPECT(CONSUMED, first);
    EXPECT(EXPECTED, first);
    expect_data(&two, first, 3000);
    send_tagged(&two, PRM_TM_OP_EAGER, 1, 10);
    lab_run(lab);
    EXPECT(UNEXPECTED, 0);
    ck_assert_uint_eq(xrq->tags->hw_phase, 1);
    expect_none();
}
END_TEST

/* The responder of one initiator ends; the other initiator's responder continues. */
START_TEST(a_fault_cancels_one_initiators_message)
{
    uint16_t narrow = append(1, 20), wide = append(2, ROOM);

    send_tagged(&one, PRM_TM_OP_EAGER, 1, 21);
    lab_run(lab);
    EXPECT(MSG_COMPLETION_CANCELED, narrow);
    ck_assert_uint_eq(xrq->tags->entries[narrow].state, TAG_FREE);
    ck_assert_uint_eq(one.qp->state, PRM_QP_STATE_ERR);
    send_tagged(&two, PRM_TM_OP_EAGER, 2, 21);
    lab_run(lab);
    EXPECT(CONSUMED_MSG, wide);
    expect_none();
}
END_TEST

/* Loses the second packet of a message, and everything that is sent instead. */
static bool only_first(struct lab *l, unsigned from, const struct roce_packet *pkt)
{
    uint8_t op = pkt->opcode & 0x1f;

    return from == 1 || (op != BTH_SEND_MIDDLE && op != BTH_SEND_LAST);
}

START_TEST(a_message_ends_with_its_target)
{
    uint16_t handle = append(1, ROOM);

    lab_dct_post_recv(&dct, wqes, ROOM);
    lab->tap = only_first;
    send_tagged(&one, PRM_TM_OP_EAGER, 1, 2000);
    send_tagged(&two, PRM_TM_OP_EAGER, 2, 2000);
    lab_run(lab);
    EXPECT(CONSUMED, handle);
    ck_assert_uint_eq(xrq->tags->hw_phase, 1);
    ck_assert_int_eq(dct_destroy(&far->hca, 0, dct.dctn), SYN_OK);
    ck_assert_uint_eq(PRM_GET(cqe64, next_cqe(), app_op), PRM_CQE_TM_OP_MSG_COMPLETION_CANCELED);
    ck_assert_uint_eq(xrq->tags->hw_phase, 0);
    expect_none();
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("tag matching over DC");
    TCase *tc = tcase_create("target");

    tcase_add_checked_fixture(tc, dc_tags_setup, dc_tags_teardown);
    tcase_add_test(tc, messages_of_all_initiators_are_matched);
    tcase_add_test(tc, a_fault_cancels_one_initiators_message);
    tcase_add_test(tc, a_message_ends_with_its_target);
    suite_add_tcase(suite, tc);
    return suite;
}
