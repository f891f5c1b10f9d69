/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests the reserved lkey in WQEs. It reaches all memory, so a program's queue must not use it,
 * even if its PD is of uid 0 like the kernel's (a program need not have a user context). qpc.rlky
 * distinguishes the two: the driver sets it when it creates the kernel's QPs, and never again
 * (create_kernel_qp(); its RST2INIT_QP has 0 there).
 */
#include "tests/unit/requester_bench.h"
#include "tests/unit/suite.h"

#define LEN 64u

static uint64_t from, to;

/* QPs of the kernel, or (loop 1) of programs. */
static void connect_qps(bool programs)
{
    struct lab_qp_attr attr = lab_rc;

    attr.programs = programs;
    lab_qp_new(left, &attr, &a);
    lab_qp_new(right, &attr, &b);
    lab_connect(lab, &a, &b, &lab_path);
    from = lab_mem(left, LEN, 1);
    to = lab_mem(right, LEN, 0);
}

static struct lab_wr wr_of(uint8_t opcode, uint32_t lkey)
{
    return (struct lab_wr){.opcode = opcode,
                           .sge = {{from, LEN, lkey}},
                           .num_sge = 1,
                           .raddr = to,
                           .rkey = right->key};
}

static void post(uint8_t opcode, uint32_t lkey)
{
    struct lab_wr wr = wr_of(opcode, lkey);

    lab_post(&a, &wr);
    lab_run(lab);
}

static bool has_come(void)
{
    return memcmp(lab_ptr(left, from, LEN), lab_ptr(right, to, LEN), LEN) == 0;
}

START_TEST(what_is_sent)
{
    connect_qps(_i);
    post(PRM_WQE_OPCODE_RDMA_WRITE, left->hca.resd_lkey);
    ck_assert_int_eq(has_come(), !_i);
    if (_i) {
        expect_error(PRM_WQE_OPCODE_RDMA_WRITE, 0, PRM_CQE_SYNDROME_LOCAL_PROT_ERR);
    } else {
        expect_sent(PRM_WQE_OPCODE_RDMA_WRITE, 0);
    }
}
END_TEST

START_TEST(where_read_data_goes)
{
    connect_qps(_i);
    post(PRM_WQE_OPCODE_RDMA_READ, left->hca.resd_lkey);
    ck_assert_int_eq(has_come(), !_i);
    if (_i) {
        expect_error(PRM_WQE_OPCODE_RDMA_READ, 0, PRM_CQE_SYNDROME_LOCAL_PROT_ERR);
    } else {
        expect_sent(PRM_WQE_OPCODE_RDMA_READ, 0);
    }
}
END_TEST

START_TEST(where_a_receive_goes)
{
    connect_qps(_i);
    lab_post_recv(&b, to, LEN);
    PRM_SET(wqe_data_seg, lab_ptr(right, b.rq_ring, 16), lkey, right->hca.resd_lkey);
    post(PRM_WQE_OPCODE_SEND, left->key);
    ck_assert_int_eq(has_come(), !_i);
    if (_i) {
        expect_cqe(right, PRM_CQE_OPCODE_RESP_ERR, 0, 0, PRM_CQE_SYNDROME_LOCAL_PROT_ERR);
        expect_error(PRM_WQE_OPCODE_SEND, 0, PRM_CQE_SYNDROME_REMOTE_OP_ERR);
    } else {
        expect_received(LEN);
        expect_sent(PRM_WQE_OPCODE_SEND, 0);
    }
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("reserved lkey");
    TCase *tcase = tcase_create("WQEs");

    tcase_add_checked_fixture(tcase, setup_bare, teardown);
    tcase_add_loop_test(tcase, what_is_sent, 0, 2);
    tcase_add_loop_test(tcase, where_read_data_goes, 0, 2);
    tcase_add_loop_test(tcase, where_a_receive_goes, 0, 2);
    suite_add_tcase(suite, tcase);
    return suite;
}
