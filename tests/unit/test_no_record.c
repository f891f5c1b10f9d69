/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests send queues without a doorbell record (qpc.send_dbr_mode NO_DBR_EXT): the doorbell at
 * offset 0x600 of the UAR page tells the send counter. The sources of the rules are gpunetio
 * (doca_gpu_dev_verbs_submit_db_no_dbr(), doca_verbs_uar.cpp) and rdma-core's test of DevX
 * (test_devx_rc_qp_send_imm_doorbell_less_traffic). The record of these QPs does not answer, so a
 * device that reads it would break the QP.
 */
#include "model/queue/uar.h"
#include "tests/unit/requester_bench.h"
#include "tests/unit/suite.h"

static struct lab_qp_attr no_record;

static void setup_pair(void)
{
    setup_bare();
    no_record = lab_rc;
    no_record.no_rq = true;
    no_record.no_record = true;
    lab_qp_new(left, &no_record, &a);
    lab_qp_new(right, &lab_rc, &b);
    lab_connect(lab, &a, &b, &lab_path);
}

static uint64_t doorbell(const struct lab_qp *qp, uint16_t counter)
{
    return (uint64_t)counter << 40 | (uint64_t)qp->qp->obj.num << 8;
}

/* Stores to that register of the UAR page, and lets the HCAs run. */
static void store(uint32_t reg, uint64_t value, unsigned size)
{
    uar_write(&left->hca, left->uarn, reg, value, size);
    lab_run(lab);
}

static void ring(uint16_t counter)
{
    store(PRM_OFFSET(uar, send_db_no_dbr), doorbell(&a, counter), 8);
}

/* Writes WRITEs of 8 bytes to the ring, without a doorbell. */
static void write_wqes(unsigned num)
{
    struct lab_wr wr =
        rdma_wr(PRM_WQE_OPCODE_RDMA_WRITE, lab_mem(left, 8, 3), 8, lab_mem(right, 8, 0));

    for (unsigned i = 0; i < num; i++) {
        lab_write_wqe(&a, &wr);
    }
}

/* Checks that the WRITEs from..to-1 have completed, and no others. */
static void expect_writes(unsigned from, unsigned to)
{
    for (unsigned i = from; i < to; i++) {
        expect_sent(PRM_WQE_OPCODE_RDMA_WRITE, (uint16_t)i);
    }
    expect_none(left);
}

START_TEST(the_doorbell_tells_how_much_is_posted)
{
    struct prm_qpc qpc[1];

    write_wqes(5);
    lab_run(lab);
    expect_none(left);
    ring(2);
    expect_writes(0, 2);
    ring(3);
    expect_writes(2, 3);
    ring(5);
    expect_writes(3, 5);
    ck_assert_int_eq(qp_query(&left->hca, a.qp->obj.num, qpc), SYN_OK);
    ck_assert_uint_eq(PRM_GET(qpc, qpc, sw_sq_wqebb_counter), 5);
    ck_assert_uint_eq(PRM_GET(qpc, qpc, send_dbr_mode), PRM_SEND_DBR_MODE_NO_DBR_EXT);
}
END_TEST

/* rdma-core's test rings with the first 8 bytes of the WQE: its index and its length. */
START_TEST(the_doorbell_may_be_the_last_wqe)
{
    for (unsigned i = 0; i < 3; i++) {
        write_wqes(1);
        store(PRM_OFFSET(uar, send_db_no_dbr), doorbell(&a, (uint16_t)i) | 3, 8);
        expect_writes(i, i + 1);
    }
    write_wqes(2);
    store(PRM_OFFSET(uar, send_db_no_dbr), doorbell(&a, 4) | 3, 8);
    expect_writes(3, 5);
}
END_TEST

/* Threads raise the counter together, and ring one by one: a late doorbell tells less. */
START_TEST(a_late_doorbell_takes_nothing_back)
{
    write_wqes(8);
    ring(6);
    expect_writes(0, 6);
    ring(4);
    expect_none(left);
    uar_write(&left->hca, left->uarn, PRM_OFFSET(uar, send_db_no_dbr), doorbell(&a, 8), 8);
    ring(7);
    expect_writes(6, 8);
}
END_TEST

START_TEST(the_counter_wraps)
{
    for (unsigned i = 0; i < 0x10010; i += 16) {
        lab->num_packets = 0; /* the trace has no room for all */
        write_wqes(16);
        ring((uint16_t)(i + 16));
        expect_writes(i, i + 16);
    }
}
END_TEST

START_TEST(the_register_takes_two_halves)
{
    uint32_t reg = PRM_OFFSET(uar, send_db_no_dbr);

    write_wqes(1);
    store(reg + 4, (uint32_t)doorbell(&a, 1), 4);
    expect_none(left);
    store(reg, doorbell(&a, 1) >> 32, 4);
    expect_none(left);
    store(reg + 4, (uint32_t)doorbell(&a, 1), 4);
    expect_writes(0, 1);
}
END_TEST

/* Where it has no BlueFlame buffer, wqe_index means another thing: the last WQE. */
START_TEST(each_kind_of_queue_has_its_register)
{
    write_wqes(1);
    store(PRM_OFFSET(uar, blue_flame), doorbell(&a, 1), 8);
    expect_none(left);
    ring(1);
    expect_writes(0, 1);

    lab_qp_new(left, &lab_rc, &a);
    lab_qp_new(right, &lab_rc, &b);
    lab_connect(lab, &a, &b, &lab_path);
    write_wqes(1);
    PRM_SET(qp_dbr, lab_ptr(left, a.dbr, 8), send_counter, 1);
    ring(1);
    expect_none(left);
    store(PRM_OFFSET(uar, blue_flame), doorbell(&a, 0), 8);
    expect_writes(0, 1);
}
END_TEST

START_TEST(more_than_the_ring_holds_ends_the_queue)
{
    uint8_t type;
    uint32_t num;

    ring((uint16_t)((1u << lab_rc.log_sq) + 1));
    ck_assert_uint_eq(a.qp->state, PRM_QP_STATE_ERR);
    ck_assert(lab_event(left, &type, &num));
    ck_assert_uint_eq(type, PRM_EVENT_TYPE_WQ_CATAS_ERROR);
    ck_assert_uint_eq(num, a.qp->obj.num);
}
END_TEST

/* In RST nothing can be posted, and afterwards the counter starts again. */
START_TEST(a_reset_forgets_the_counter)
{
    write_wqes(3);
    ring(3);
    expect_writes(0, 3);
    ck_assert_int_eq(lab_modify(&a, PRM_CMD_OP_2RST_QP, NULL, 0, NULL), SYN_OK);
    ring(2);
    a.sq_pi = 0;
    lab_modify(&b, PRM_CMD_OP_2RST_QP, NULL, 0, NULL);
    lab_connect(lab, &a, &b, &lab_path);
    lab_run(lab);
    expect_none(left);
    write_wqes(1);
    ring(1);
    expect_writes(0, 1);
}
END_TEST

/* In ERR what is posted is flushed. */
START_TEST(in_error_what_the_doorbell_tells_is_flushed)
{
    ck_assert_int_eq(lab_modify(&a, PRM_CMD_OP_2ERR_QP, NULL, 0, NULL), SYN_OK);
    write_wqes(2);
    ring(2);
    expect_error(PRM_WQE_OPCODE_RDMA_WRITE, 0, PRM_CQE_SYNDROME_WR_FLUSH_ERR);
    expect_error(PRM_WQE_OPCODE_RDMA_WRITE, 1, PRM_CQE_SYNDROME_WR_FLUSH_ERR);
    expect_none(left);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *s = suite_create("no_record");
    TCase *tc = tcase_create("no_record");

    tcase_add_checked_fixture(tc, setup_pair, teardown);
    tcase_add_test(tc, the_doorbell_tells_how_much_is_posted);
    tcase_add_test(tc, the_doorbell_may_be_the_last_wqe);
    tcase_add_test(tc, a_late_doorbell_takes_nothing_back);
    tcase_add_test(tc, the_counter_wraps);
    tcase_add_test(tc, the_register_takes_two_halves);
    tcase_add_test(tc, each_kind_of_queue_has_its_register);
    tcase_add_test(tc, more_than_the_ring_holds_ends_the_queue);
    tcase_add_test(tc, a_reset_forgets_the_counter);
    tcase_add_test(tc, in_error_what_the_doorbell_tells_is_flushed);
    suite_add_tcase(s, tc);
    return s;
}
