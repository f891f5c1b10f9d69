/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests rules of dynamic connections that no workload shows, and that mutants have asked for
 * (scripts/mutate): which initiators are accepted, and when a responder is free for the next
 * initiator.
 */
#include "tests/unit/suite.h"
#include "tests/unit/test_dc.h"

/* DC access key: an initiator with another key gets no answer, and changes nothing. */
START_TEST(a_wrong_key_opens_nothing)
{
    struct lab_wr wr = {.opcode = PRM_WQE_OPCODE_SEND, .sge = {{src, LEN, 0}}, .num_sge = 1};

    lab_dct_post_recv(&dct, dst, LEN);
    lab_to(&wr, &dct);
    wr.dc_key ^= 1;
    lab_post(&dci, &wr);
    lab_advance(lab, 40 * LAB_ACK_TIMEOUT_NS);
    expect_sent(PRM_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR);
    expect_nothing(far);
    ck_assert_uint_eq(responders(), 0);
}
END_TEST

/* The end of a session releases its responder for the next initiator at once: with one responder,
 * two initiators come one after the other and neither is told to wait (CNAK). */
START_TEST(the_end_of_a_session_frees_its_responder)
{
    struct lab_qp second;

    far->hca.limits.dc_responders = 1;
    lab_dci_new(near, &lab_dci, NULL, &second);
    for (unsigned i = 0; i < 6; i++) {
        add_to(i % 2 ? &second : &dci, &dct);
        lab_advance(lab, LOOK);
        expect_sent(0);
        ck_assert_uint_eq(responders(), 0);
    }
    ck_assert_uint_eq(count_cnaks(), 0);
    ck_assert_uint_eq(sum(), 6);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *s = suite_create("dc rules");
    TCase *tc = tcase_create("rules");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, a_wrong_key_opens_nothing);
    tcase_add_test(tc, the_end_of_a_session_frees_its_responder);
    suite_add_tcase(s, tc);
    return s;
}
