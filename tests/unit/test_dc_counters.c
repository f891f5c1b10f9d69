/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests what the Q counter sets of initiators and targets count: each counts its own half, as those
 * of any reliable QP do (the driver's counters.rst, "hw_counters"). */
#include "tests/unit/suite.h"
#include "tests/unit/test_dc.h"

static struct lab_dct counted;
static uint32_t near_set, far_set;

static struct q_counter *set_of(struct lab_side *side, uint32_t id)
{
    return q_counter_get(&side->hca, id);
}

static void setup_counted(void)
{
    struct prm_qpc qpc[1] = {0};
    struct prm_dctc dctc[1];

    setup();
    ck_assert_int_eq(q_counter_alloc(&near->hca, 0, &near_set), SYN_OK);
    ck_assert_int_eq(q_counter_alloc(&far->hca, 0, &far_set), SYN_OK);
    lab_dctc(far, dctc);
    PRM_SET(dctc, dctc, counter_set_id, far_set);
    counted = dct; /* its SRQ */
    ck_assert_int_eq(lab_dct_create(far, dctc, &counted), SYN_OK);
    PRM_SET(qpc, qpc, counter_set_id, near_set);
    ck_assert_int_eq(qp_modify(&near->hca, 0, dci.qp->obj.num, PRM_CMD_OP_RTS2RTS_QP,
                               1ull << PRM_QP_OPTPAR_COUNTER_SET_ID, qpc, NULL),
                     SYN_OK);
}

static void read_from(const struct lab_dct *from, uint32_t rkey)
{
    struct lab_wr wr = {.opcode = PRM_WQE_OPCODE_RDMA_READ,
                        .sge = {{src, LEN, 0}},
                        .num_sge = 1,
                        .raddr = dst,
                        .rkey = rkey};

    lab_post(&dci, lab_to(&wr, from));
}

START_TEST(a_target_counts_requests)
{
    const struct q_counter *c = set_of(far, far_set);

    write_to(&counted, far->key, LEN, 0);
    read_from(&counted, far->key);
    add_to(&dci, &counted);
    lab_run(lab);
    ck_assert_uint_eq(c->rx_dct_connect, 1);
    ck_assert_uint_eq(c->rx_write_requests, 1);
    ck_assert_uint_eq(c->rx_read_requests, 1);
    ck_assert_uint_eq(c->rx_atomic_requests, 1);
    ck_assert_uint_eq(far->hca.scratch_q_counter->rx_write_requests, 0);
}
END_TEST

START_TEST(each_counts_its_half_of_an_empty_queue)
{
    send_from(&dci, &counted, LEN, 0);
    lab_run(lab);
    ck_assert_uint_eq(set_of(far, far_set)->out_of_buffer, 1);
    ck_assert_uint_eq(set_of(near, near_set)->rnr_nak_retry_err, 1);
}
END_TEST

START_TEST(each_counts_its_half_of_a_refusal)
{
    write_to(&counted, far->key ^ 1, LEN, 0);
    lab_run(lab);
    ck_assert_uint_eq(set_of(far, far_set)->resp_remote_access_errors, 1);
    ck_assert_uint_eq(set_of(near, near_set)->req_remote_access_errors, 1);
    ck_assert_uint_eq(set_of(near, near_set)->req_cqe_error, 1);
}
END_TEST

static bool drop_second(struct lab *l, unsigned from, const struct roce_packet *pkt)
{
    return from != 0 || l->tap_count++ != 2; /* CONNECT, the first, the second */
}

START_TEST(each_counts_its_half_of_a_gap)
{
    lab->tap = drop_second;
    write_to(&counted, far->key, 8000, 0);
    lab_run(lab);
    expect_sent(0);
    ck_assert_uint_gt(set_of(far, far_set)->out_of_sequence, 0);
    ck_assert_uint_eq(set_of(near, near_set)->packet_seq_err, 1);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("dc counters");
    TCase *tc = tcase_create("dc counters");

    tcase_add_checked_fixture(tc, setup_counted, teardown);
    tcase_add_test(tc, a_target_counts_requests);
    tcase_add_test(tc, each_counts_its_half_of_an_empty_queue);
    tcase_add_test(tc, each_counts_its_half_of_a_refusal);
    tcase_add_test(tc, each_counts_its_half_of_a_gap);
    suite_add_tcase(suite, tc);
    return suite;
}
