/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests page faults at a target (model/core/fault.h): one initiator's fault does not affect the
 * other initiators. */
#include "model/memory/mkey_priv.h"
#include "tests/unit/suite.h"
#include "tests/unit/test_dc.h"

static struct {
    struct pager pager;
    unsigned told;
} os;

static struct lab_qp second;
static uint32_t keys[2]; /* each key has one page, which is missing */
static uint64_t pages[2];

static bool note_fault(struct pager *pager, struct qp *qp, enum fault_side side,
                       const struct mem_fault *fault)
{
    os.told++;
    ck_assert_ptr_eq(qp, &lab_dct_of(&dct)->qp);
    ck_assert_int_eq(side, FAULT_RESPONDER);
    return true;
}

static uint64_t *page_of(unsigned i)
{
    return &mkey_find(&far->hca, keys[i] >> 8)->mtt[0];
}

static void setup_paging(void)
{
    setup();
    os.told = 0;
    os.pager.fault = note_fault;
    far->hca.pager = &os.pager;
    lab_dci_new(near, &lab_dci, NULL, &second);
    for (unsigned i = 0; i < 2; i++) {
        keys[i] = lab_mr(far, dst + 4096 * i, LEN, MEM_REMOTE_WRITE | MEM_REMOTE_READ);
        pages[i] = *page_of(i);
        *page_of(i) = 0;
    }
}

static void write_page(struct lab_qp *from, unsigned i)
{
    struct lab_wr wr = {.opcode = PRM_WQE_OPCODE_RDMA_WRITE,
                        .sge = {{src, LEN, 0}},
                        .num_sge = 1,
                        .raddr = dst + 4096 * i,
                        .rkey = keys[i]};

    lab_post(from, lab_to(&wr, &dct));
    lab_run(lab);
}

static void resume(bool error)
{
    qp_resume(&lab_dct_of(&dct)->qp, FAULT_RESPONDER, error);
    lab_advance(lab, 20 * LAB_ACK_TIMEOUT_NS);
}

static void page_in(unsigned i)
{
    *page_of(i) = pages[i];
    resume(false);
}

START_TEST(a_request_waits_for_its_page)
{
    write_page(&dci, 0);
    lab_advance(lab, 20 * LAB_ACK_TIMEOUT_NS);
    ck_assert_uint_eq(os.told, 1);
    expect_nothing(near);
    page_in(0);
    expect_sent(0);
    ck_assert_uint_eq(os.told, 1);
}
END_TEST

/* The pager's answer for one page is no answer for the other page. */
START_TEST(two_initiators_miss_a_page_each)
{
    write_page(&dci, 0);
    write_page(&second, 1);
    lab_advance(lab, 20 * LAB_ACK_TIMEOUT_NS);
    ck_assert_uint_eq(os.told, 1);
    expect_nothing(near);
    resume(true);
    expect_sent(PRM_CQE_SYNDROME_REMOTE_ACCESS_ERR);
    ck_assert_uint_eq(dci.qp->state, PRM_QP_STATE_ERR);
    ck_assert_uint_eq(os.told, 2);
    expect_nothing(near);
    page_in(1);
    expect_sent(0);
    ck_assert_uint_eq(second.qp->state, PRM_QP_STATE_RTS);
}
END_TEST

/* No other request gets the answer for a request that is gone. */
START_TEST(an_initiator_that_missed_a_page_leaves)
{
    write_page(&dci, 0);
    ck_assert_uint_eq(os.told, 1);
    ck_assert_int_eq(lab_modify(&dci, PRM_CMD_OP_2ERR_QP, NULL, 0, NULL), SYN_OK);
    lab_advance(lab, LOOK);
    ck_assert_uint_eq(responders(), 0);
    expect_sent(PRM_CQE_SYNDROME_WR_FLUSH_ERR);
    write_page(&second, 1);
    lab_advance(lab, 4 * LAB_ACK_TIMEOUT_NS);
    resume(true);
    ck_assert_uint_eq(os.told, 2);
    expect_nothing(near);
    page_in(1);
    expect_sent(0);
}
END_TEST

static bool lose_disconnect(struct lab *l, unsigned from, const struct roce_packet *pkt)
{
    return pkt->opcode != (BTH_DC | BTH_CONNECT) || !pkt->solicited;
}

/* The same initiator's next session is not the session that missed the page. */
START_TEST(the_next_session_after_a_missed_page)
{
    write_page(&dci, 0);
    lab->tap = lose_disconnect;
    ck_assert_int_eq(lab_modify(&dci, PRM_CMD_OP_2RST_QP, NULL, 0, NULL), SYN_OK);
    ck_assert_int_eq(lab_modify(&dci, PRM_CMD_OP_RST2INIT_QP, &lab_path, 0, NULL), SYN_OK);
    ck_assert_int_eq(lab_modify(&dci, PRM_CMD_OP_INIT2RTR_QP, &lab_path, 0, NULL), SYN_OK);
    ck_assert_int_eq(lab_modify(&dci, PRM_CMD_OP_RTR2RTS_QP, &lab_path, 77, NULL), SYN_OK);
    dci.sq_pi = 0;
    expect_nothing(near);
    write_page(&dci, 1);
    ck_assert_uint_eq(responders(), 1);
    lab_advance(lab, 4 * LAB_ACK_TIMEOUT_NS);
    resume(true);
    ck_assert_uint_eq(os.told, 2);
    expect_nothing(near);
    page_in(1);
    expect_sent(0);
}
END_TEST

START_TEST(the_target_goes_while_it_waits)
{
    write_page(&dci, 0);
    ck_assert_uint_eq(os.told, 1);
    ck_assert_int_eq(dct_destroy(&far->hca, 0, dct.dctn), SYN_OK);
    lab_advance(lab, 40 * LAB_ACK_TIMEOUT_NS);
    expect_sent(PRM_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR);
    ck_assert_uint_eq(os.told, 1);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *s = suite_create("page faults at a DC target");
    TCase *tc = tcase_create("faults");

    tcase_add_checked_fixture(tc, setup_paging, teardown);
    tcase_add_test(tc, a_request_waits_for_its_page);
    tcase_add_test(tc, two_initiators_miss_a_page_each);
    tcase_add_test(tc, an_initiator_that_missed_a_page_leaves);
    tcase_add_test(tc, the_next_session_after_a_missed_page);
    tcase_add_test(tc, the_target_goes_while_it_waits);
    suite_add_tcase(s, tc);
    return s;
}
