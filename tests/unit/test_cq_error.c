/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests when a CQ overruns, and what a failed CQ does to its QPs.
 *
 * The CQ has its CQ_ERROR event, every QP on it enters the error state with WQ_CATAS_ERROR, and QPs
 * on other CQs continue.
 */
#include <check.h>
#include <stdlib.h>
#include "tests/unit/lab.h"
#include "tests/unit/suite.h"

static struct lab *lab;

static void setup(void)
{
    lab = lab_new();
}

static void teardown(void)
{
    lab_free(lab);
}

static void write_message(struct lab_qp *qp, uint64_t from, uint64_t to)
{
    const struct lab_wr wr = {
        .opcode = PRM_WQE_OPCODE_RDMA_WRITE,
        .sge = {{from, 64, 0}},
        .num_sge = 1,
        .raddr = to,
        .rkey = lab->side[1].key,
    };

    lab_post(qp, &wr);
}

START_TEST(overrun_takes_the_qps_down)
{
    struct lab_qp_attr attr = lab_rc;
    struct lab_qp a, b, other_a, other_b;
    uint64_t from = lab_mem(&lab->side[0], 64, 1), to = lab_mem(&lab->side[1], 64, 0), ring, dbr;
    bool cq_error = false, catas = false;
    uint32_t num, cqn = lab_cq_new(&lab->side[0], 2, &ring, &dbr);
    struct lab_cqe cqe;
    uint8_t type;

    lab_rc_pair(lab, &other_a, &other_b, &lab_path);
    attr.cqn = cqn;
    lab_qp_new(&lab->side[0], &attr, &a);
    lab_qp_new(&lab->side[1], &lab_rc, &b);
    lab_connect(lab, &a, &b, &lab_path);

    for (unsigned i = 0; i < 4; i++) {
        write_message(&a, from, to);
    }
    lab_run(lab);
    ck_assert_uint_eq(a.qp->state, PRM_QP_STATE_RTS);
    write_message(&a, from, to); /* a fifth completion for four entries that nobody polls */
    lab_run(lab);
    ck_assert_uint_eq(a.qp->state, PRM_QP_STATE_ERR);
    while (lab_event(&lab->side[0], &type, &num)) {
        cq_error |= type == PRM_EVENT_TYPE_CQ_ERROR;
        catas |= type == PRM_EVENT_TYPE_WQ_CATAS_ERROR && num == a.qp->obj.num;
    }
    ck_assert(cq_error);
    ck_assert(catas);

    ck_assert_uint_eq(other_a.qp->state, PRM_QP_STATE_RTS);
    write_message(&other_a, from, to);
    lab_run(lab);
    ck_assert(lab_poll(&lab->side[0], &cqe));
    ck_assert_uint_eq(cqe.opcode, PRM_CQE_OPCODE_REQ);
}
END_TEST

/* DPDK counts in 16 bits (cq_ci of struct mlx5_txq_data) and writes this counter to the record. The
 * room depends on the low bits alone: the number of the slot, and the owner bit. */
START_TEST(a_program_may_count_in_16_bits)
{
    struct lab_side *side = &lab->side[0];
    uint64_t ring, dbr;
    struct cq *cq = cq_find(&side->hca, lab_cq_new(side, 2, &ring, &dbr));
    struct prm_cqe64 cqe[1] = {0};

    for (uint32_t i = 1; i < 3 << 16; i++) {
        ck_assert(cq_post(&side->hca, cq, cqe, false));
        prm_store32(fake_host_ptr(&side->host, dbr, 4), i & 0xffff);
    }
    for (unsigned i = 0; i < 4; i++) {
        ck_assert(cq_post(&side->hca, cq, cqe, false));
    }
    ck_assert(!cq_post(&side->hca, cq, cqe, false));
    ck_assert(cq_has_overrun(cq));
    lab_run(lab);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("cq-error");
    TCase *tc = tcase_create("cq-error");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, overrun_takes_the_qps_down);
    tcase_add_test(tc, a_program_may_count_in_16_bits);
    suite_add_tcase(suite, tc);
    return suite;
}
