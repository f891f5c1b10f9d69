/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests cross channel (model/rdma/cross.h): a master waits for the CQEs of other queues and starts
 * managed queues. Where no public source says what a card does, docs/adr/0029 does.
 */
#include "model/core/pd.h"
#include "model/queue/cq_priv.h"
#include "model/rdma/cross.h"
#include "tests/unit/requester_bench.h"
#include "tests/unit/suite.h"

/* the master, on the left side; its CQ, on which nothing else posts */
static struct lab_qp master;
static uint32_t master_cqn;
static struct {
    uint64_t ring;
    uint32_t ci;
} master_cq;

static const struct lab_qp_attr masters = {
    .st = PRM_QP_ST_RC, .log_sq = 6, .log_rq = 4, .master = true};

static uint32_t new_cq(uint64_t *ring)
{
    uint64_t dbr;

    return lab_cq_new(left, 4, ring, &dbr);
}

/* A master that is connected to a QP which takes its messages. */
static void new_master(const struct lab_qp_attr *attr, struct lab_qp *qp, uint32_t cqn)
{
    struct lab_qp_attr with_cq = *attr;
    struct lab_qp far;

    with_cq.cqn = cqn;
    lab_qp_new(left, &with_cq, qp);
    lab_qp_new(right, &lab_rc, &far);
    lab_connect(lab, qp, &far, &lab_path);
}

/* a and b are connected; a has the managed queues that are asked for, and CQEs on the side's CQ. */
static void setup_cross(bool managed_send, bool managed_recv)
{
    struct lab_qp_attr attr = lab_rc;

    setup_bare();
    master_cqn = new_cq(&master_cq.ring);
    master_cq.ci = 0;
    new_master(&masters, &master, master_cqn);
    attr.managed_send = managed_send;
    attr.managed_recv = managed_recv;
    lab_qp_new(left, &attr, &a);
    lab_qp_new(right, &lab_rc, &b);
    lab_connect(lab, &a, &b, &lab_path);
}

static void setup_plain(void)
{
    setup_cross(false, false);
}

static void setup_managed_send(void)
{
    setup_cross(true, false);
}

static void setup_managed_recv(void)
{
    setup_cross(false, true);
}

static void *write_cross(struct lab_qp *qp, uint8_t opcode, uint32_t num, uint32_t pi,
                         bool unsignaled)
{
    struct prm_wqe_wait_en_seg seg[1] = {0};

    PRM_SET(wqe_wait_en_seg, seg, pi, pi);
    PRM_SET(wqe_wait_en_seg, seg, obj_num, num);
    return lab_write_wqe(qp, &(struct lab_wr){.opcode = opcode,
                                              .operands = seg,
                                              .operands_len = sizeof(seg),
                                              .unsignaled = unsignaled});
}

static void post_cross(struct lab_qp *qp, uint8_t opcode, uint32_t num, uint32_t pi)
{
    write_cross(qp, opcode, num, pi, false);
    lab_ring(qp);
}

static void post_wait(uint32_t cqn, uint32_t pi)
{
    post_cross(&master, PRM_WQE_OPCODE_CQE_WAIT, cqn, pi);
}

static void post_send_enable(const struct lab_qp *qp, uint32_t pi)
{
    post_cross(&master, PRM_WQE_OPCODE_SEND_ENABLE, qp->qp->obj.num, pi);
}

static void post_nop(struct lab_qp *qp)
{
    lab_post(qp, &(struct lab_wr){.opcode = PRM_WQE_OPCODE_NOP});
}

/* Writes a NOP as the legacy library writes the WQEs of a managed queue: no record, no doorbell. */
static void write_nop(struct lab_qp *qp)
{
    lab_write_wqe(qp, &(struct lab_wr){.opcode = PRM_WQE_OPCODE_NOP});
}

/* The next CQE of the master. */
static void expect_master(uint8_t opcode, uint16_t counter, uint8_t syndrome)
{
    void *raw = lab_ptr(left, master_cq.ring + (master_cq.ci & 15) * 64ull, 64);

    lab_run(lab);
    ck_assert_uint_ne(PRM_GET(cqe64, raw, opcode), PRM_CQE_OPCODE_INVALID);
    ck_assert_uint_eq(PRM_GET(cqe64, raw, send_wqe_opcode), opcode);
    ck_assert_uint_eq(PRM_GET(cqe64, raw, wqe_counter), counter);
    ck_assert_uint_eq(PRM_GET(cqe64, raw, opcode),
                      syndrome ? PRM_CQE_OPCODE_REQ_ERR : PRM_CQE_OPCODE_REQ);
    if (syndrome) {
        ck_assert_uint_eq(PRM_GET(err_cqe, raw, syndrome), syndrome);
    }
    master_cq.ci++;
}

static void expect_master_holds(void)
{
    const void *raw = lab_ptr(left, master_cq.ring + (master_cq.ci & 15) * 64ull, 64);

    lab_run(lab);
    ck_assert_uint_eq(PRM_GET(cqe64, (const struct prm_cqe64 *)raw, opcode),
                      PRM_CQE_OPCODE_INVALID);
    ck_assert_ptr_null(master.qp->req.work.next);
}

static struct cq_wait *master_wait(void)
{
    return &master.qp->cross->wait;
}

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
    lab_qp_new(left, &attr, &a);
    lab_qp_new(right, &lab_rc, &b);
    lab_connect(lab, &a, &b, &lab_path);
    post_wait(attr.cqn, 39);
    for (unsigned i = 0; i < 40; i++) {
        expect_master_holds();
        post_nop(&a);
        lab_run(lab);
    }
    expect_master(PRM_WQE_OPCODE_CQE_WAIT, 0, 0);
}
END_TEST

/* Without data in its CQEs, a CQ of 128 bytes leaves the first halves alone. */
START_TEST(a_wait_changes_nothing_in_the_completion)
{
    struct lab_qp_attr attr = lab_rc;
    uint64_t ring, dbr;

    attr.cqn = lab_cq128_new(left, 4, &ring, &dbr);
    memset(lab_ptr(left, ring, 64), 0xa5, 64);
    lab_qp_new(left, &attr, &a);
    lab_qp_new(right, &lab_rc, &b);
    lab_connect(lab, &a, &b, &lab_path);
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

START_TEST(a_wait_without_memory_fails)
{
    left->hca.memory.limit = left->hca.memory.used;
    post_cross(&a, PRM_WQE_OPCODE_CQE_WAIT, left->cqn, 0);
    lab_run(lab);
    expect_error(PRM_WQE_OPCODE_CQE_WAIT, 0, PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR);
}
END_TEST

/* libmlx5 refuses enables without IBV_EXP_QP_CREATE_CROSS_CHANNEL. */
START_TEST(a_queue_that_is_no_master_enables_nothing)
{
    static const uint8_t opcodes[] = {PRM_WQE_OPCODE_SEND_ENABLE, PRM_WQE_OPCODE_RECV_ENABLE};

    post_cross(&a, opcodes[_i], left->cqn, UINT32_MAX);
    lab_run(lab);
    expect_error(opcodes[_i], 0, PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR);
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
 * another PD. */
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
    default:
        a.qp->pdn++;
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

/* -- chains ------------------------------------------------------------------------------------ */

/* Each queue of the chain is started by the one before, and waits for the CQE of the one after. */
START_TEST(a_chain_over_many_queues_ends)
{
    enum {
        LONG = 12
    };
    struct lab_qp_attr attr = masters;
    struct lab_qp qps[LONG];
    uint32_t cqns[LONG];
    uint64_t ring;

    attr.managed_send = true;
    for (unsigned i = 0; i < LONG; i++) {
        cqns[i] = new_cq(&ring);
        new_master(&attr, &qps[i], cqns[i]);
    }
    for (unsigned i = 0; i < LONG; i++) {
        if (i + 1 < LONG) {
            write_cross(&qps[i], PRM_WQE_OPCODE_SEND_ENABLE, qps[i + 1].qp->obj.num, 3, true);
            write_cross(&qps[i], PRM_WQE_OPCODE_CQE_WAIT, cqns[i + 1], 0, true);
        } else {
            lab_write_wqe(&qps[i],
                          &(struct lab_wr){.opcode = PRM_WQE_OPCODE_NOP, .unsignaled = true});
            lab_write_wqe(&qps[i],
                          &(struct lab_wr){.opcode = PRM_WQE_OPCODE_NOP, .unsignaled = true});
        }
        write_nop(&qps[i]);
    }
    post_wait(cqns[0], 0);
    expect_master_holds();
    post_send_enable(&qps[0], 3);
    expect_master_holds(); /* the enable stands behind the wait: both wait for ever */
    new_master(&masters, &b, left->cqn);
    post_cross(&b, PRM_WQE_OPCODE_SEND_ENABLE, qps[0].qp->obj.num, 3);
    expect_master(PRM_WQE_OPCODE_CQE_WAIT, 0, 0);
    expect_master(PRM_WQE_OPCODE_SEND_ENABLE, 1, 0);
}
END_TEST

/* Two queues that wait for each other are on the lists of their CQs, and nothing runs. */
START_TEST(queues_that_wait_for_each_other_cost_nothing)
{
    struct lab_qp other;
    uint64_t ring, pieces;
    uint32_t cqn = new_cq(&ring);

    new_master(&masters, &other, cqn);
    post_wait(cqn, 0);
    post_cross(&other, PRM_WQE_OPCODE_CQE_WAIT, master_cqn, 0);
    expect_master_holds();
    pieces = left->hca.pieces;
    lab_advance(lab, 10000 * LAB_MS);
    ck_assert_uint_eq(left->hca.pieces, pieces);
}
END_TEST

/* A managed queue that is its own master waits for somebody else's enable first. */
START_TEST(a_queue_cannot_start_itself)
{
    struct lab_qp_attr attr = masters;
    struct lab_qp self;
    uint64_t ring;

    attr.managed_send = true;
    new_master(&attr, &self, new_cq(&ring));
    post_cross(&self, PRM_WQE_OPCODE_SEND_ENABLE, self.qp->obj.num, 1);
    lab_run(lab);
    ck_assert_uint_eq(self.qp->sq.taken, 0);
}
END_TEST

/* Makes the ring's next 256 WQEs enable the next WQE of the other ring or of itself, as a WRITE of
 * some queue could do. */
static void wind(struct lab_qp *qp)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t index = qp->qp->sq.taken + i;
        struct prm_wqe_wait_en_seg *seg =
            lab_ptr(left, qp->sq_ring + index % 256 * 64ull + PRM_SIZE(wqe_ctrl_seg), sizeof(*seg));

        PRM_SET(wqe_wait_en_seg, seg, pi, index + 2);
    }
}

/* Managed queues whose rings enable each other, or themselves, without software: they must not keep
 * the device busy. (A turn that does not end would hang lab_run().) */
START_TEST(rings_that_enable_each_other_for_ever_are_slow)
{
    struct lab_qp_attr attr = masters;
    struct lab_qp ring[2];
    uint16_t before;
    uint64_t cq;

    attr.managed_send = true;
    attr.log_sq = 8;
    for (unsigned i = 0; i < 2; i++) {
        new_master(&attr, &ring[i], new_cq(&cq));
    }
    for (unsigned i = 0; i < 2; i++) {
        for (unsigned n = 0; n < 256; n++) {
            write_cross(&ring[i], PRM_WQE_OPCODE_SEND_ENABLE, ring[_i ? i : !i].qp->obj.num, 0,
                        true);
        }
        wind(&ring[i]);
    }
    post_send_enable(&ring[0], 1);
    post_send_enable(&ring[1], 1);
    lab_run(lab);
    before = ring[0].qp->sq.taken;
    ck_assert_uint_ge(before, 255);
    for (unsigned i = 0; i < 10; i++) {
        uint64_t pieces = left->hca.pieces;

        wind(&ring[0]);
        wind(&ring[1]);
        lab_advance(lab, 100 * LAB_MS);
        ck_assert_uint_le(left->hca.pieces - pieces, 2 * 256 * 8);
    }
    ck_assert_uint_eq(ring[0].qp->req.waits, SEND_WAITS_PAUSE);
    ck_assert_uint_ge((uint16_t)(ring[0].qp->sq.taken - before), 2 * 256);
    ck_assert_uint_le((uint16_t)(ring[0].qp->sq.taken - before), 4 * 256 + 1);
}
END_TEST

/* Software that posts to a managed queue is seen in its record, so the queue does not pause. */
START_TEST(a_managed_queue_with_software_does_not_pause)
{
    struct lab_qp_attr attr = masters;
    struct lab_qp middle;
    uint64_t ring;

    attr.managed_send = true;
    new_master(&attr, &middle, new_cq(&ring));
    for (uint32_t n = 1; n <= 500; n++) {
        post_nop(&a);
        write_cross(&middle, PRM_WQE_OPCODE_SEND_ENABLE, a.qp->obj.num, n, true);
        write_cross(&master, PRM_WQE_OPCODE_SEND_ENABLE, middle.qp->obj.num, n, true);
        lab_ring(&master);
        lab_run(lab);
        expect_sent(PRM_WQE_OPCODE_NOP, (uint16_t)(n - 1));
    }
}
END_TEST

static TCase *suite_cross_case(const char *name, void (*up)(void))
{
    TCase *tc = tcase_create(name);

    tcase_add_checked_fixture(tc, up, teardown);
    return tc;
}

Suite *unit_suite(void)
{
    Suite *s = suite_create("cross");
    TCase *tc = suite_cross_case("wait", setup_plain);

    tcase_add_test(tc, a_wait_ends_at_its_completion);
    tcase_add_test(tc, a_completion_that_was_there_before_ends_a_wait_at_once);
    tcase_add_test(tc, a_wait_for_no_completion_ends_at_once);
    tcase_add_test(tc, a_wait_need_not_write_a_cqe);
    tcase_add_test(tc, indices_are_compared_modulo_2_to_the_24);
    tcase_add_test(tc, a_wait_counts_overwritten_completions);
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
    tcase_add_test(tc, a_wait_without_memory_fails);
    tcase_add_loop_test(tc, a_queue_that_is_no_master_enables_nothing, 0, 2);
    tcase_add_test(tc, a_wqe_without_its_segment_fails);
    tcase_add_test(tc, an_unreliable_queue_can_be_a_master);
    tcase_add_test(tc, a_chain_over_many_queues_ends);
    tcase_add_test(tc, queues_that_wait_for_each_other_cost_nothing);
    tcase_add_test(tc, a_queue_cannot_start_itself);
    tcase_add_loop_test(tc, rings_that_enable_each_other_for_ever_are_slow, 0, 2);
    suite_add_tcase(s, tc);

    tc = suite_cross_case("managed send", setup_managed_send);
    tcase_add_test(tc, a_managed_send_queue_starts_when_it_is_enabled);
    tcase_add_test(tc, enabled_wqes_need_neither_record_nor_doorbell);
    tcase_add_test(tc, an_index_that_is_passed_changes_nothing);
    tcase_add_test(tc, indices_of_enables_count_wqes_and_not_basic_blocks);
    tcase_add_test(tc, indices_of_enables_run_modulo_2_to_the_16);
    tcase_add_loop_test(tc, an_enable_beyond_the_ring_fails, 0, 2);
    tcase_add_loop_test(tc, an_enable_of_another_object_fails, 0, 4);
    tcase_add_loop_test(tc, an_enable_before_rts_is_kept_but_not_in_rst, 0, 2);
    tcase_add_test(tc, all_posted_wqes_of_a_managed_queue_are_flushed);
    tcase_add_test(tc, enabled_wqes_are_flushed_if_no_record_tells);
    tcase_add_test(tc, a_reset_closes_the_queue_again);
    tcase_add_test(tc, a_managed_queue_comes_back_from_sqer);
    tcase_add_test(tc, a_managed_queue_with_software_does_not_pause);
    suite_add_tcase(s, tc);

    tc = suite_cross_case("managed receive", setup_managed_recv);
    tcase_add_test(tc, a_managed_receive_queue_has_only_enabled_wqes);
    tcase_add_test(tc, enabled_receives_must_be_posted_too);
    tcase_add_test(tc, all_posted_receives_are_flushed);
    suite_add_tcase(s, tc);
    return s;
}
