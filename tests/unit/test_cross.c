/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests cross channel (model/rdma/cross.h): a master waits for the CQEs of other queues and starts
 * managed queues. Where no public source says what a card does, docs/adr/0029 does.
 */
#include "model/core/pd.h"
#include "model/queue/blueflame.h"
#include "tests/unit/cross_bench.h"
#include "tests/unit/dc_lab.h"
#include "tests/unit/suite.h"

/* -- CQE_WAIT ---------------------------------------------------------------------------------- */

/* libmlx5's wait_index is -1 at first, and gpunetio gives the index of the WQE whose CQE it waits
 * for: pi is the index of a CQE, counted from 0. */
START_TEST(a_wait_ends_at_its_completion)
{
    post_wait(left->cqn, 1);
    post_nop(&master);
    expect_master_holds();
    ck_assert_uint_eq(master.qp->req.waits, SEND_WAITS_CQE);
    post_nop(&a);
    expect_master_holds();
    post_nop(&a);
    expect_master(PRM_WQE_OPCODE_CQE_WAIT, 0, 0);
    expect_master(PRM_WQE_OPCODE_NOP, 1, 0);
    ck_assert_ptr_null(master_wait()->cq);
}
END_TEST

START_TEST(a_completion_that_was_there_before_ends_a_wait_at_once)
{
    post_nop(&a);
    post_nop(&a);
    lab_run(lab);
    expect_sent(PRM_WQE_OPCODE_NOP, 0); /* whether it was polled does not matter */
    post_wait(left->cqn, 0);
    post_wait(left->cqn, 1);
    expect_master(PRM_WQE_OPCODE_CQE_WAIT, 0, 0);
    expect_master(PRM_WQE_OPCODE_CQE_WAIT, 1, 0);
}
END_TEST

/* A count of 0 at the start: libmlx5 gives index -1. */
START_TEST(a_wait_for_no_completion_ends_at_once)
{
    post_wait(left->cqn, UINT32_MAX);
    expect_master(PRM_WQE_OPCODE_CQE_WAIT, 0, 0);
}
END_TEST

START_TEST(a_wait_need_not_write_a_cqe)
{
    write_cross(&master, PRM_WQE_OPCODE_CQE_WAIT, left->cqn, 0, true);
    lab_ring(&master);
    post_nop(&master);
    post_nop(&a);
    expect_master(PRM_WQE_OPCODE_NOP, 1, 0);
}
END_TEST

/* The producer counter has 24 bits (cqc.producer_counter; DPDK's MLX5_CQ_INDEX_WIDTH). */
START_TEST(indices_are_compared_modulo_2_to_the_24)
{
    struct cq *cq = cq_find(&left->hca, left->cqn);

    cq->pi = 0xffffff;
    post_wait(left->cqn, 0x12000000); /* the CQE after next; the high byte does not count */
    expect_master_holds();
    cq->pi = 0x1000000 + 0x7fffff;
    post_wait(left->cqn, 0);
    cq_wake_due(&left->hca, cq);
    expect_master(PRM_WQE_OPCODE_CQE_WAIT, 0, 0);
    expect_master(PRM_WQE_OPCODE_CQE_WAIT, 1, 0);
}
END_TEST

/* A CQ that ignores overruns counts CQEs that overwrite others (DPDK and gpunetio wait on such CQs,
 * one of them collapsed). */
START_TEST(a_wait_counts_overwritten_completions)
{
    struct lab_qp_attr attr = lab_rc;
    struct prm_cqc cqc[1] = {0};
    uint64_t ring;

    attr.cqn = new_cq(&ring);
    PRM_SET(cqc, cqc, oi, 1);
    ck_assert_int_eq(cq_modify(&left->hca, 0, attr.cqn, PRM_CQ_MODIFY_OI, cqc, NULL), SYN_OK);
    new_a(&attr);
    post_wait(attr.cqn, 39);
    for (unsigned i = 0; i < 40; i++) {
        expect_master_holds();
        post_nop(&a);
        lab_run(lab);
    }
    expect_master(PRM_WQE_OPCODE_CQE_WAIT, 0, 0);
}
END_TEST

/* The entry that ends the old ring has an index of its own (mlx5_ib's copy_resize_cqes() counts it,
 * too), so it may be the one that a queue waits for. */
START_TEST(a_wait_counts_the_entry_of_a_resize)
{
    struct lab_qp_attr attr = lab_rc;
    struct prm_cqc cqc[1] = {0};
    struct mem_buf buf = lab_buf(lab_mem(left, 64 << 5, 0), 64 << 5);
    uint64_t ring;

    attr.cqn = new_cq(&ring);
    new_a(&attr);
    post_nop(&a);
    post_wait(attr.cqn, 1);
    post_wait(attr.cqn, 2);
    expect_master_holds();
    PRM_SET(cqc, cqc, log_cq_size, 5);
    ck_assert_int_eq(cq_modify(&left->hca, 0, attr.cqn, PRM_CQ_RESIZE_LOG_CQ_SIZE, cqc, &buf),
                     SYN_OK);
    expect_master(PRM_WQE_OPCODE_CQE_WAIT, 0, 0);
    expect_master_holds();
    post_nop(&a);
    expect_master(PRM_WQE_OPCODE_CQE_WAIT, 1, 0);
}
END_TEST

/* Without data in its CQEs, a CQ of 128 bytes leaves the first halves alone. */
START_TEST(a_wait_changes_nothing_in_the_completion)
{
    struct lab_qp_attr attr = lab_rc;
    uint64_t ring, dbr;

    attr.cqn = lab_cq128_new(left, 4, &ring, &dbr);
    memset(lab_ptr(left, ring, 64), 0xa5, 64);
    new_a(&attr);
    post_wait(attr.cqn, 0);
    expect_master_holds();
    post_nop(&a);
    expect_master(PRM_WQE_OPCODE_CQE_WAIT, 0, 0);
    for (unsigned i = 0; i < 64; i++) {
        ck_assert_uint_eq(((uint8_t *)lab_ptr(left, ring, 64))[i], 0xa5);
    }
}
END_TEST

/* Each queue is woken by its own CQE, in whatever order they began to wait. */
START_TEST(many_queues_wait_on_one_cq)
{
    static const uint32_t order[] = {3, 1, 4, 0, 2, 1};
    struct lab_qp qps[G_N_ELEMENTS(order)];
    uint64_t ring;

    for (unsigned i = 0; i < G_N_ELEMENTS(order); i++) {
        new_master(&masters, &qps[i], new_cq(&ring));
        post_cross(&qps[i], PRM_WQE_OPCODE_CQE_WAIT, left->cqn, order[i]);
        lab_run(lab);
    }
    for (unsigned done = 0; done <= 5; done++) {
        for (unsigned i = 0; i < G_N_ELEMENTS(order); i++) {
            ck_assert_int_eq(qps[i].qp->cross->wait.cq != NULL, order[i] >= done);
        }
        post_nop(&a);
        lab_run(lab);
    }
    ck_assert_ptr_null(cq_find(&left->hca, left->cqn)->first_wait);
    ck_assert(!cq_find(&left->hca, left->cqn)->unusual);
}
END_TEST

/* gpunetio: a companion queue waits for the CQE of a WRITE, and then counts in memory. */
START_TEST(what_follows_a_wait_comes_after_the_data)
{
    uint64_t from = lab_mem(left, 64, 1), to = lab_mem(right, 64, 0);

    lab->tap = drop_responses;
    write_from(from, 64, to);
    post_wait(left->cqn, 0);
    post_nop(&master);
    expect_master_holds();
    lab->tap = NULL;
    lab_advance(lab, 2 * LAB_ACK_TIMEOUT_NS);
    expect_master(PRM_WQE_OPCODE_CQE_WAIT, 0, 0);
    expect_master(PRM_WQE_OPCODE_NOP, 1, 0);
    same(from, to, 64);
}
END_TEST

/* -- a wait that cannot end -------------------------------------------------------------------- */

START_TEST(a_wait_on_no_cq_fails)
{
    post_wait(_i ? left->cqn + 77 : 0xffffff, 0);
    expect_master(PRM_WQE_OPCODE_CQE_WAIT, 0, PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR);
    ck_assert_uint_eq(master.qp->state, PRM_QP_STATE_ERR);
}
END_TEST

START_TEST(a_wait_on_the_cq_of_another_user_fails)
{
    uint64_t ring;
    uint32_t cqn = new_cq(&ring);

    cq_obj(cq_find(&left->hca, cqn))->uid = 7;
    master.qp->obj.uid = 9;
    post_wait(cqn, UINT32_MAX);
    expect_master(PRM_WQE_OPCODE_CQE_WAIT, 0, PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR);
}
END_TEST

START_TEST(a_wait_fails_when_its_cq_is_destroyed)
{
    uint64_t ring;
    uint32_t cqn = new_cq(&ring);

    post_wait(cqn, 0);
    expect_master_holds();
    ck_assert_int_eq(cq_destroy(&left->hca, 0, cqn), SYN_OK);
    expect_master(PRM_WQE_OPCODE_CQE_WAIT, 0, PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR);
}
END_TEST

START_TEST(a_wait_fails_when_its_cq_fails)
{
    post_wait(left->cqn, 5);
    expect_master_holds();
    left->host.hole = left->cq_ring;
    post_nop(&a);
    expect_master(PRM_WQE_OPCODE_CQE_WAIT, 0, PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR);
}
END_TEST

/* A queue that leaves RTS, or ends, is on no list; its WQEs are flushed. */
START_TEST(a_queue_that_is_flushed_waits_no_more)
{
    post_wait(left->cqn, 0);
    post_nop(&master);
    expect_master_holds();
    switch (_i) {
    case 0:
        ck_assert_int_eq(lab_modify(&master, PRM_CMD_OP_2ERR_QP, NULL, 0, NULL), SYN_OK);
        expect_master(PRM_WQE_OPCODE_CQE_WAIT, 0, PRM_CQE_SYNDROME_WR_FLUSH_ERR);
        expect_master(PRM_WQE_OPCODE_NOP, 1, PRM_CQE_SYNDROME_WR_FLUSH_ERR);
        break;
    case 1:
        ck_assert_int_eq(lab_modify(&master, PRM_CMD_OP_2RST_QP, NULL, 0, NULL), SYN_OK);
        break;
    default:
        ck_assert_int_eq(qp_destroy(&left->hca, 0, master.qp->obj.num), SYN_OK);
        break;
    }
    ck_assert_ptr_null(cq_find(&left->hca, left->cqn)->first_wait);
    post_nop(&a);
    lab_run(lab);
    expect_sent(PRM_WQE_OPCODE_NOP, 0);
}
END_TEST

/* A wait is a posted WQE: the queue drains before it, and waits again in RTS. */
START_TEST(a_queue_that_holds_can_be_drained)
{
    post_wait(left->cqn, 0);
    expect_master_holds();
    ck_assert_int_eq(lab_modify(&master, PRM_CMD_OP_RTS2SQD_QP, NULL, 0, NULL), SYN_OK);
    expect_master_holds();
    ck_assert_uint_eq(master.qp->state, PRM_QP_STATE_SQD);
    post_nop(&a);
    expect_master_holds();
    ck_assert_int_eq(lab_modify(&master, PRM_CMD_OP_SQD_RTS_QP, NULL, 0, NULL), SYN_OK);
    expect_master(PRM_WQE_OPCODE_CQE_WAIT, 0, 0);
}
END_TEST

/* gpunetio's companion queues are no masters, and the reserved half of their segments has what was
 * in the ring before. */
START_TEST(any_queue_may_wait)
{
    uint64_t ring;
    uint8_t *wqe;

    new_master(&lab_rc, &b, new_cq(&ring));
    wqe = write_cross(&b, PRM_WQE_OPCODE_CQE_WAIT, left->cqn, 0, false);
    memset(wqe + PRM_SIZE(wqe_ctrl_seg), 0x5a, 8);
    lab_ring(&b);
    lab_run(lab);
    ck_assert_uint_eq(b.qp->req.waits, SEND_WAITS_CQE);
    post_nop(&a);
    lab_run(lab);
    ck_assert_uint_eq(b.qp->sq.ci, 1);
    ck_assert_uint_eq(b.qp->state, PRM_QP_STATE_RTS);
}
END_TEST

/* libmlx5 writes an address before the segment of an initiator's wait; this library does not. */
START_TEST(an_initiator_may_wait)
{
    struct prm_wqe_wait_en_seg seg[1] = {0};
    struct lab_qp_attr attr = lab_dci;
    struct lab_qp dci;
    uint64_t ring;
    uint8_t *wqe;

    attr.cqn = new_cq(&ring);
    lab_dci_new(left, &attr, NULL, &dci);
    wqe = write_cross(&dci, PRM_WQE_OPCODE_CQE_WAIT, left->cqn, 0, false);
    ck_assert_uint_eq(PRM_GET(wqe_ctrl_seg, (void *)wqe, ds), 5);
    if (_i) {
        PRM_SET(wqe_wait_en_seg, seg, obj_num, left->cqn);
        memcpy(wqe + PRM_SIZE(wqe_ctrl_seg), seg, sizeof(seg));
        PRM_SET(wqe_ctrl_seg, (void *)wqe, ds, 2);
        dci.sq_pi = 1;
    }
    lab_ring(&dci);
    lab_run(lab);
    ck_assert_uint_eq(dci.qp->req.waits, SEND_WAITS_CQE);
    post_nop(&a);
    lab_run(lab);
    ck_assert_uint_eq(dci.qp->sq.ci, _i ? 1 : 2);
    ck_assert_uint_eq(dci.qp->state, PRM_QP_STATE_RTS);
    ck_assert_uint_eq(lab->num_packets, 0);
}
END_TEST

START_TEST(a_wait_without_memory_fails)
{
    left->hca.memory.limit = left->hca.memory.used;
    post_cross(&a, PRM_WQE_OPCODE_CQE_WAIT, left->cqn, 0);
    lab_run(lab);
    expect_error(PRM_WQE_OPCODE_CQE_WAIT, 0, PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR);
}
END_TEST

/* libmlx5 refuses enables without IBV_EXP_QP_CREATE_CROSS_CHANNEL. A master may do the same. */
START_TEST(a_queue_that_is_no_master_enables_nothing)
{
    static const uint8_t opcodes[] = {PRM_WQE_OPCODE_SEND_ENABLE, PRM_WQE_OPCODE_RECV_ENABLE};
    struct lab_qp_attr attr = lab_rc;

    attr.managed_send = attr.managed_recv = true;
    new_master(&attr, &b, left->cqn);
    post_cross(&a, opcodes[_i], b.qp->obj.num, 1);
    lab_run(lab);
    expect_error(opcodes[_i], 0, PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR);
    ck_assert_uint_eq(b.qp->sq.enabled + b.qp->rq.enabled, 0);
}
END_TEST

START_TEST(a_wqe_without_its_segment_fails)
{
    lab_post(&master, &(struct lab_wr){.opcode = PRM_WQE_OPCODE_CQE_WAIT});
    expect_master(PRM_WQE_OPCODE_CQE_WAIT, 0, PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR);
}
END_TEST

/* On an unreliable QP a failed WQE stops only the send queue. */
START_TEST(an_unreliable_queue_can_be_a_master)
{
    struct lab_qp_attr attr = masters;
    struct lab_qp far;

    attr.cqn = master_cqn;
    attr.st = PRM_QP_ST_UC;
    lab_qp_new(left, &attr, &master);
    attr = lab_rc;
    attr.st = PRM_QP_ST_UC;
    lab_qp_new(right, &attr, &far);
    lab_connect(lab, &master, &far, &lab_path);
    post_wait(left->cqn, 0);
    expect_master_holds();
    post_nop(&a);
    expect_master(PRM_WQE_OPCODE_CQE_WAIT, 0, 0);
    post_wait(0xffffff, 0);
    expect_master(PRM_WQE_OPCODE_CQE_WAIT, 1, PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR);
    ck_assert_uint_eq(master.qp->state, PRM_QP_STATE_SQER);
}
END_TEST

/* -- managed send queues ----------------------------------------------------------------------- */

START_TEST(a_managed_send_queue_starts_when_it_is_enabled)
{
    for (unsigned i = 0; i < 3; i++) {
        post_nop(&a); /* with record and doorbell, as any queue */
    }
    lab_run(lab);
    expect_none(left);
    post_send_enable(&a, 2);
    expect_master(PRM_WQE_OPCODE_SEND_ENABLE, 0, 0);
    expect_sent(PRM_WQE_OPCODE_NOP, 0);
    expect_sent(PRM_WQE_OPCODE_NOP, 1);
    expect_none(left);
    post_send_enable(&a, 3);
    lab_run(lab);
    expect_sent(PRM_WQE_OPCODE_NOP, 2);
    expect_none(left);
}
END_TEST

/* libmlx5 writes neither the record nor a doorbell of a managed send queue. */
START_TEST(enabled_wqes_need_neither_record_nor_doorbell)
{
    write_nop(&a);
    write_nop(&a);
    post_send_enable(&a, 2);
    lab_run(lab);
    expect_sent(PRM_WQE_OPCODE_NOP, 0);
    expect_sent(PRM_WQE_OPCODE_NOP, 1);
    expect_none(left);
}
END_TEST

/* Chains write over WQEs that were posted before, as a WRITE to the ring. */
START_TEST(an_enabled_wqe_is_the_one_in_the_ring)
{
    uint8_t *wqe = lab_write_wqe(&a, &(struct lab_wr){.opcode = 0x3f});

    blueflame_fill(&left->hca, &a.qp->sq, 0, wqe, 64);
    lab_ring(&a);
    lab_run(lab);
    PRM_SET(wqe_ctrl_seg, (void *)wqe, opcode, PRM_WQE_OPCODE_NOP);
    post_send_enable(&a, 1);
    lab_run(lab);
    expect_sent(PRM_WQE_OPCODE_NOP, 0);
}
END_TEST

/* The suite of ibverbs-tests has three enables of the same two WQEs. */
START_TEST(an_index_that_is_passed_changes_nothing)
{
    for (unsigned i = 0; i < 4; i++) {
        post_nop(&a);
    }
    post_send_enable(&a, 2);
    post_send_enable(&a, 2);
    post_send_enable(&a, 1);
    for (uint16_t i = 0; i < 3; i++) {
        expect_master(PRM_WQE_OPCODE_SEND_ENABLE, i, 0);
    }
    expect_sent(PRM_WQE_OPCODE_NOP, 0);
    expect_sent(PRM_WQE_OPCODE_NOP, 1);
    expect_none(left);
}
END_TEST

/* libmlx5 counts work requests (sq.head), and DPDK enables queues whose WQEs have two basic blocks
 * each by the number of WQEs (mlx5_txpp_fill_wqe_rearm_queue()). */
START_TEST(indices_of_enables_count_wqes_and_not_basic_blocks)
{
    uint8_t data[100] = {0};
    struct lab_wr wr = {
        .opcode = PRM_WQE_OPCODE_SEND, .inline_data = data, .inline_len = sizeof(data)};

    for (unsigned i = 0; i < 3; i++) {
        lab_post_recv(&b, lab_mem(right, 100, 0), 100);
        lab_post(&a, &wr);
    }
    ck_assert_uint_eq(a.sq_pi, 6);
    post_send_enable(&a, 2);
    lab_run(lab);
    expect_sent(PRM_WQE_OPCODE_SEND, 0);
    expect_sent(PRM_WQE_OPCODE_SEND, 2);
    expect_none(left);
}
END_TEST

/* 16 bits, as DPDK's MLX5_WQ_INDEX_WIDTH; libmlx5 gives 32. */
START_TEST(indices_of_enables_run_modulo_2_to_the_16)
{
    a.qp->sq.taken = a.qp->sq.enabled = 0xfffd;
    for (uint32_t n = 0xffff; n < 0x10006; n += 2) {
        post_nop(&a);
        post_nop(&a);
        post_send_enable(&a, n);
        lab_run(lab);
        expect_sent(PRM_WQE_OPCODE_NOP, (uint16_t)(n - 0xffff));
        expect_sent(PRM_WQE_OPCODE_NOP, (uint16_t)(n - 0xfffe));
        expect_none(left);
    }
    ck_assert_uint_eq(a.qp->sq.taken, 5);
}
END_TEST

/* A ring of 2^n basic blocks has no more WQEs than that. */
START_TEST(an_enable_beyond_the_ring_fails)
{
    post_send_enable(&a, (1u << a.log_sq) + (unsigned)_i);
    expect_master(PRM_WQE_OPCODE_SEND_ENABLE, 0, _i ? PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR : 0);
    ck_assert_uint_eq(master.qp->state, _i ? PRM_QP_STATE_ERR : PRM_QP_STATE_RTS);
}
END_TEST

/* No such QP; a QP that is not managed; a queue of a QP that is managed on the other side; a QP of
 * another PD; a QP of another user context in the same PD. */
START_TEST(an_enable_of_another_object_fails)
{
    uint32_t num = a.qp->obj.num;
    uint8_t opcode = PRM_WQE_OPCODE_SEND_ENABLE;

    switch (_i) {
    case 0:
        num = 0xfffff0;
        break;
    case 1:
        num = master.qp->obj.num;
        break;
    case 2:
        opcode = PRM_WQE_OPCODE_RECV_ENABLE;
        break;
    case 3:
        a.qp->pdn++;
        break;
    default:
        a.qp->obj.uid = 7;
        master.qp->obj.uid = 9;
        break;
    }
    post_cross(&master, opcode, num, 1);
    expect_master(opcode, 0, PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR);
    ck_assert_uint_eq(a.qp->state, PRM_QP_STATE_RTS);
}
END_TEST

/* A doorbell before RTS is kept, and so is an enable; in RST both have no effect. */
START_TEST(an_enable_before_rts_is_kept_but_not_in_rst)
{
    struct lab_qp_attr attr = lab_rc;

    attr.managed_send = true;
    lab_qp_new(left, &attr, &a);
    lab_qp_new(right, &lab_rc, &b);
    post_send_enable(&a, 1);
    expect_master(PRM_WQE_OPCODE_SEND_ENABLE, 0, 0);
    ck_assert_int_eq(lab_modify(&a, PRM_CMD_OP_RST2INIT_QP, &lab_path, 0, &b), SYN_OK);
    write_nop(&a);
    write_nop(&a);
    if (_i) {
        post_send_enable(&a, 2);
        expect_master(PRM_WQE_OPCODE_SEND_ENABLE, 1, 0);
    }
    ck_assert_int_eq(lab_modify(&a, PRM_CMD_OP_INIT2RTR_QP, &lab_path, lab_path.psn, &b), SYN_OK);
    ck_assert_int_eq(lab_modify(&a, PRM_CMD_OP_RTR2RTS_QP, &lab_path, lab_path.psn, &b), SYN_OK);
    lab_run(lab);
    if (_i) {
        expect_sent(PRM_WQE_OPCODE_NOP, 0);
        expect_sent(PRM_WQE_OPCODE_NOP, 1);
    }
    expect_none(left);
}
END_TEST

/* Posted WQEs, not only the enabled ones; so a program finds all its requests. */
START_TEST(all_posted_wqes_of_a_managed_queue_are_flushed)
{
    for (unsigned i = 0; i < 3; i++) {
        post_nop(&a);
    }
    post_send_enable(&a, 1);
    lab_run(lab);
    expect_sent(PRM_WQE_OPCODE_NOP, 0);
    ck_assert_int_eq(lab_modify(&a, PRM_CMD_OP_2ERR_QP, NULL, 0, NULL), SYN_OK);
    lab_run(lab);
    expect_error(PRM_WQE_OPCODE_NOP, 1, PRM_CQE_SYNDROME_WR_FLUSH_ERR);
    expect_error(PRM_WQE_OPCODE_NOP, 2, PRM_CQE_SYNDROME_WR_FLUSH_ERR);
    expect_none(left);
    post_nop(&a); /* also one that is posted later */
    lab_run(lab);
    expect_error(PRM_WQE_OPCODE_NOP, 3, PRM_CQE_SYNDROME_WR_FLUSH_ERR);
    post_send_enable(&a, 9);
    expect_master(PRM_WQE_OPCODE_SEND_ENABLE, 0, 0);
    expect_master(PRM_WQE_OPCODE_SEND_ENABLE, 1, 0);
    expect_none(left);
}
END_TEST

/* Without a record the device knows of the enabled WQEs alone. */
START_TEST(enabled_wqes_are_flushed_if_no_record_tells)
{
    struct lab_wr read =
        rdma_wr(PRM_WQE_OPCODE_RDMA_READ, lab_mem(left, 8, 0), 8, lab_mem(right, 8, 1));

    lab->tap = drop_all;
    lab_write_wqe(&a, &read);
    lab_write_wqe(&a, &(struct lab_wr){.opcode = PRM_WQE_OPCODE_NOP, .fence = PRM_WQE_FM_FENCE});
    write_nop(&a);
    write_nop(&a); /* is not enabled */
    post_send_enable(&a, 3);
    lab_run(lab);
    expect_none(left);
    ck_assert_int_eq(lab_modify(&a, PRM_CMD_OP_2ERR_QP, NULL, 0, NULL), SYN_OK);
    lab_run(lab);
    expect_error(PRM_WQE_OPCODE_RDMA_READ, 0, PRM_CQE_SYNDROME_WR_FLUSH_ERR);
    expect_error(PRM_WQE_OPCODE_NOP, 1, PRM_CQE_SYNDROME_WR_FLUSH_ERR);
    expect_error(PRM_WQE_OPCODE_NOP, 2, PRM_CQE_SYNDROME_WR_FLUSH_ERR);
    expect_none(left);
}
END_TEST

/* After its reset nothing is enabled, and counting begins anew. */
START_TEST(a_reset_closes_the_queue_again)
{
    post_nop(&a);
    post_send_enable(&a, 1);
    lab_run(lab);
    expect_sent(PRM_WQE_OPCODE_NOP, 0);
    ck_assert_int_eq(lab_modify(&a, PRM_CMD_OP_2RST_QP, NULL, 0, NULL), SYN_OK);
    ck_assert_int_eq(lab_modify(&b, PRM_CMD_OP_2RST_QP, NULL, 0, NULL), SYN_OK);
    a.sq_pi = 0;
    lab_connect(lab, &a, &b, &lab_path);
    post_nop(&a);
    lab_run(lab);
    expect_none(left);
    post_send_enable(&a, 1);
    lab_run(lab);
    expect_sent(PRM_WQE_OPCODE_NOP, 0);
}
END_TEST

/* An unreliable managed queue that comes back from SQER: what was posted is flushed and counts as
 * taken; then only enabled WQEs start. */
START_TEST(a_managed_queue_comes_back_from_sqer)
{
    struct lab_qp_attr attr = lab_rc;

    attr.st = PRM_QP_ST_UC;
    attr.managed_send = true;
    lab_qp_new(left, &attr, &a);
    attr.managed_send = false;
    lab_qp_new(right, &attr, &b);
    lab_connect(lab, &a, &b, &lab_path);
    lab_post(&a, &(struct lab_wr){.opcode = 0x3f});
    post_nop(&a);
    post_send_enable(&a, 1);
    lab_run(lab);
    expect_error(0x3f, 0, PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR);
    expect_error(PRM_WQE_OPCODE_NOP, 1, PRM_CQE_SYNDROME_WR_FLUSH_ERR);
    ck_assert_int_eq(lab_modify(&a, PRM_CMD_OP_SQERR2RTS_QP, &lab_path, 0, &b), SYN_OK);
    post_nop(&a);
    post_nop(&a);
    lab_run(lab);
    expect_none(left);
    post_send_enable(&a, 3);
    lab_run(lab);
    expect_sent(PRM_WQE_OPCODE_NOP, 2);
    expect_none(left);
}
END_TEST

START_TEST(a_managed_queue_is_not_made_without_memory)
{
    struct ledger *memory = &left->hca.memory;
    struct mem_buf buf = lab_buf(a.rq_ring, (64ull << a.log_rq) + (64ull << a.log_sq));
    struct prm_qpc qpc[1];
    uint64_t before, needs;
    uint32_t qpn;

    memcpy(qpc, a.qp->qpc, sizeof(qpc));
    before = memory->used;
    ck_assert_int_eq(qp_create(&left->hca, 0, qpc, &buf, a.dbr, &qpn), SYN_OK);
    needs = memory->used - before;
    ck_assert_int_eq(qp_destroy(&left->hca, 0, qpn), SYN_OK);
    buf = lab_buf(a.rq_ring, (64ull << a.log_rq) + (64ull << a.log_sq));
    for (uint64_t room = 0; room < needs; room += 8) {
        memory->limit = before + room;
        ck_assert_int_eq(qp_create(&left->hca, 0, qpc, &buf, a.dbr, &qpn), SYN_NO_MEMORY);
        ck_assert_uint_eq(memory->used, before);
    }
    mem_buf_clear(&buf);
}
END_TEST

/* -- managed receive queues -------------------------------------------------------------------- */

static void send_to_managed(void)
{
    lab_post(&b, &(struct lab_wr){.opcode = PRM_WQE_OPCODE_SEND,
                                  .sge = {{lab_mem(right, 8, 1), 8, 0}},
                                  .num_sge = 1});
    lab_advance(lab, 20 * LAB_MS);
}

static void expect_taken(uint16_t counter)
{
    struct lab_cqe cqe;

    ck_assert(lab_poll(left, &cqe));
    ck_assert_uint_eq(cqe.opcode, PRM_CQE_OPCODE_RESP_SEND);
    ck_assert_uint_eq(cqe.counter, counter);
}

/* The message finds no receive WQE, as if none was posted, and its sender tries again. */
START_TEST(a_managed_receive_queue_has_only_enabled_wqes)
{
    uint64_t to = lab_mem(left, 8, 0);

    for (unsigned i = 0; i < 3; i++) {
        lab_post_recv(&a, to, 8);
    }
    send_to_managed();
    expect_none(left);
    post_cross(&master, PRM_WQE_OPCODE_RECV_ENABLE, a.qp->obj.num, 1);
    expect_master(PRM_WQE_OPCODE_RECV_ENABLE, 0, 0);
    lab_advance(lab, 20 * LAB_MS);
    expect_taken(0);
    send_to_managed();
    send_to_managed();
    expect_none(left);
    post_cross(&master, PRM_WQE_OPCODE_RECV_ENABLE, a.qp->obj.num, 3);
    lab_run(lab);
    lab_advance(lab, 20 * LAB_MS);
    expect_taken(1);
    expect_taken(2);
    expect_none(left);
}
END_TEST

START_TEST(enabled_receives_must_be_posted_too)
{
    post_cross(&master, PRM_WQE_OPCODE_RECV_ENABLE, a.qp->obj.num, 2);
    send_to_managed();
    expect_none(left);
    lab_post_recv(&a, lab_mem(left, 8, 0), 8);
    lab_advance(lab, 20 * LAB_MS);
    expect_taken(0);
    post_cross(&master, PRM_WQE_OPCODE_RECV_ENABLE, a.qp->obj.num, (1u << a.log_rq) + 2);
    expect_master(PRM_WQE_OPCODE_RECV_ENABLE, 0, 0);
    expect_master(PRM_WQE_OPCODE_RECV_ENABLE, 1, PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR);
}
END_TEST

START_TEST(all_posted_receives_are_flushed)
{
    for (unsigned i = 0; i < 2; i++) {
        lab_post_recv(&a, lab_mem(left, 8, 0), 8);
    }
    ck_assert_int_eq(lab_modify(&a, PRM_CMD_OP_2ERR_QP, NULL, 0, NULL), SYN_OK);
    lab_run(lab);
    for (uint16_t i = 0; i < 2; i++) {
        struct lab_cqe cqe;

        ck_assert(lab_poll(left, &cqe));
        ck_assert_uint_eq(cqe.syndrome, PRM_CQE_SYNDROME_WR_FLUSH_ERR);
        ck_assert_uint_eq(cqe.counter, i);
    }
    expect_none(left);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *s = suite_create("cross");
    TCase *tc = cross_case("wait", setup_plain);

    tcase_add_test(tc, a_wait_ends_at_its_completion);
    tcase_add_test(tc, a_completion_that_was_there_before_ends_a_wait_at_once);
    tcase_add_test(tc, a_wait_for_no_completion_ends_at_once);
    tcase_add_test(tc, a_wait_need_not_write_a_cqe);
    tcase_add_test(tc, indices_are_compared_modulo_2_to_the_24);
    tcase_add_test(tc, a_wait_counts_overwritten_completions);
    tcase_add_test(tc, a_wait_counts_the_entry_of_a_resize);
    tcase_add_test(tc, a_wait_changes_nothing_in_the_completion);
    tcase_add_test(tc, many_queues_wait_on_one_cq);
    tcase_add_test(tc, what_follows_a_wait_comes_after_the_data);
    tcase_add_loop_test(tc, a_wait_on_no_cq_fails, 0, 2);
    tcase_add_test(tc, a_wait_on_the_cq_of_another_user_fails);
    tcase_add_test(tc, a_wait_fails_when_its_cq_is_destroyed);
    tcase_add_test(tc, a_wait_fails_when_its_cq_fails);
    tcase_add_loop_test(tc, a_queue_that_is_flushed_waits_no_more, 0, 3);
    tcase_add_test(tc, a_queue_that_holds_can_be_drained);
    tcase_add_test(tc, any_queue_may_wait);
    tcase_add_loop_test(tc, an_initiator_may_wait, 0, 2);
    tcase_add_test(tc, a_wait_without_memory_fails);
    tcase_add_loop_test(tc, a_queue_that_is_no_master_enables_nothing, 0, 2);
    tcase_add_test(tc, a_wqe_without_its_segment_fails);
    tcase_add_test(tc, an_unreliable_queue_can_be_a_master);
    suite_add_tcase(s, tc);

    tc = cross_case("managed send", setup_managed_send);
    tcase_add_test(tc, a_managed_send_queue_starts_when_it_is_enabled);
    tcase_add_test(tc, enabled_wqes_need_neither_record_nor_doorbell);
    tcase_add_test(tc, an_enabled_wqe_is_the_one_in_the_ring);
    tcase_add_test(tc, an_index_that_is_passed_changes_nothing);
    tcase_add_test(tc, indices_of_enables_count_wqes_and_not_basic_blocks);
    tcase_add_test(tc, indices_of_enables_run_modulo_2_to_the_16);
    tcase_add_loop_test(tc, an_enable_beyond_the_ring_fails, 0, 2);
    tcase_add_loop_test(tc, an_enable_of_another_object_fails, 0, 5);
    tcase_add_loop_test(tc, an_enable_before_rts_is_kept_but_not_in_rst, 0, 2);
    tcase_add_test(tc, all_posted_wqes_of_a_managed_queue_are_flushed);
    tcase_add_test(tc, enabled_wqes_are_flushed_if_no_record_tells);
    tcase_add_test(tc, a_reset_closes_the_queue_again);
    tcase_add_test(tc, a_managed_queue_comes_back_from_sqer);
    tcase_add_test(tc, a_managed_queue_is_not_made_without_memory);
    suite_add_tcase(s, tc);

    tc = cross_case("managed receive", setup_managed_recv);
    tcase_add_test(tc, a_managed_receive_queue_has_only_enabled_wqes);
    tcase_add_test(tc, enabled_receives_must_be_posted_too);
    tcase_add_test(tc, all_posted_receives_are_flushed);
    suite_add_tcase(s, tc);
    return s;
}
