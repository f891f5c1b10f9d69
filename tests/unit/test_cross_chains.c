/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests chains of cross channel: queues that start each other, or wait for each other, in lines and
 * in circles (model/rdma/cross.h). */
#include "tests/unit/cross_bench.h"
#include "tests/unit/suite.h"

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

/* A managed ring of 256 WQEs, most of which enable the ring's next WQEs. After one lap it has taken
 * as many WQEs without a sign of software as it may. */
static void setup_pausing(struct lab_qp *ring, uint16_t write_at)
{
    struct lab_qp_attr attr = masters;
    struct lab_wr write =
        rdma_wr(PRM_WQE_OPCODE_RDMA_WRITE, lab_mem(left, 8, 1), 8, lab_mem(right, 8, 0));
    uint64_t cq;

    write.unsignaled = true;
    attr.managed_send = true;
    attr.log_sq = 8;
    new_master(&attr, ring, new_cq(&cq));
    for (uint32_t i = 0; i < 256; i++) {
        if (i == write_at) {
            lab_write_wqe(ring, &write);
        } else {
            write_cross(ring, PRM_WQE_OPCODE_SEND_ENABLE, ring->qp->obj.num, i + 3, true);
        }
    }
    post_send_enable(ring, 2);
    lab_run(lab);
    ck_assert_uint_eq(ring->qp->sq.taken, 256);
    ck_assert_uint_eq(ring->qp->req.waits, SEND_WAITS_PAUSE);
}

/* A doorbell of the ring, or an enable by a queue that software feeds. */
START_TEST(software_ends_a_pause)
{
    struct lab_qp ring;

    setup_pausing(&ring, UINT16_MAX);
    wind(&ring);
    if (_i) {
        lab_ring(&ring);
    } else {
        post_send_enable(&ring, 257);
    }
    lab_run(lab);
    ck_assert_uint_ge(ring.qp->sq.taken, 2 * 256);
}
END_TEST

START_TEST(time_ends_a_pause)
{
    struct lab_qp ring;

    setup_pausing(&ring, UINT16_MAX);
    wind(&ring);
    lab_advance(lab, 240 * LAB_MS);
    ck_assert_uint_eq(ring.qp->sq.taken, 256);
    lab_advance(lab, 20 * LAB_MS);
    ck_assert_uint_ge(ring.qp->sq.taken, 2 * 256);
}
END_TEST

/* The pause is about WQEs that have not started. */
START_TEST(a_queue_that_pauses_sends_lost_packets_again)
{
    struct lab_qp ring;

    lab->tap = drop_responses;
    setup_pausing(&ring, 250);
    ck_assert_uint_eq(lab_count(lab, 0, BTH_WRITE_ONLY), 1);
    lab->tap = NULL;
    lab_advance(lab, 2 * LAB_ACK_TIMEOUT_NS);
    ck_assert_uint_eq(lab_count(lab, 0, BTH_WRITE_ONLY), 2);
    ck_assert_uint_eq(requester_started(ring.qp), 0);
    ck_assert_uint_eq(ring.qp->sq.taken, 256);
}
END_TEST

/* A queue that pauses is on no list any more when it leaves RTS or ends. */
START_TEST(a_queue_may_end_while_it_pauses)
{
    struct lab_qp ring;

    setup_pausing(&ring, UINT16_MAX);
    switch (_i) {
    case 0:
        ck_assert_int_eq(lab_modify(&ring, PRM_CMD_OP_2ERR_QP, NULL, 0, NULL), SYN_OK);
        break;
    case 1:
        ck_assert_int_eq(lab_modify(&ring, PRM_CMD_OP_2RST_QP, NULL, 0, NULL), SYN_OK);
        break;
    default:
        ck_assert_int_eq(qp_destroy(&left->hca, 0, ring.qp->obj.num), SYN_OK);
        break;
    }
    ck_assert_ptr_eq(left->hca.late.next, &left->hca.late);
    lab_advance(lab, 1000 * LAB_MS);
}
END_TEST

/* A reset frees the queues before the CQs for which they wait, and whatever they wait for. */
START_TEST(a_reset_ends_waits_and_pauses)
{
    struct lab_qp ring, other;
    uint64_t cq;
    uint32_t cqn = new_cq(&cq);

    setup_pausing(&ring, UINT16_MAX);
    new_master(&masters, &other, cqn);
    post_wait(cqn, 0);
    post_cross(&other, PRM_WQE_OPCODE_CQE_WAIT, master_cqn, 7);
    lab_run(lab);
    ck_assert_uint_eq(master.qp->req.waits, SEND_WAITS_CQE);
    hca_reset(&left->hca);
    ck_assert_uint_eq(left->hca.memory.used, 0);
    ck_assert(!hca_run(&left->hca, LAB_BUDGET));
}
END_TEST

/* Software is seen in the record, or by its doorbell if the record does not answer. So the queue
 * does not pause, although another managed queue starts it. */
START_TEST(a_managed_queue_with_software_does_not_pause)
{
    struct lab_qp_attr attr = masters;
    struct lab_qp middle;
    uint64_t ring;

    attr.managed_send = true;
    new_master(&attr, &middle, new_cq(&ring));
    left->host.hole = _i ? a.dbr + PRM_OFFSET(qp_dbr, send_counter) : 0;
    for (uint32_t n = 1; n <= 500; n++) {
        write_nop(&a);
        if (_i) {
            lab_ring(&a);
        } else {
            PRM_SET(qp_dbr, lab_ptr(left, a.dbr, 8), send_counter, a.sq_pi);
        }
        write_cross(&middle, PRM_WQE_OPCODE_SEND_ENABLE, a.qp->obj.num, n, true);
        write_cross(&master, PRM_WQE_OPCODE_SEND_ENABLE, middle.qp->obj.num, n, true);
        lab_ring(&master);
        lab_run(lab);
        expect_sent(PRM_WQE_OPCODE_NOP, (uint16_t)(n - 1));
    }
}
END_TEST

/* Queue a gets so many NOPs, numbered from 0 on, which a managed queue enables one by one: neither
 * a doorbell nor the record tells of them. */
static void run_unannounced(struct lab_qp *middle, uint32_t num)
{
    for (uint32_t n = 1; n <= num; n++) {
        write_nop(&a);
        write_cross(middle, PRM_WQE_OPCODE_SEND_ENABLE, a.qp->obj.num, n, true);
        write_cross(&master, PRM_WQE_OPCODE_SEND_ENABLE, middle->qp->obj.num, middle->sq_pi, true);
        lab_ring(&master);
        lab_run(lab);
        expect_sent(PRM_WQE_OPCODE_NOP, (uint16_t)(n - 1));
    }
}

static void new_middle(struct lab_qp *middle)
{
    struct lab_qp_attr attr = masters;
    uint64_t ring;

    attr.managed_send = true;
    new_master(&attr, middle, new_cq(&ring));
}

/* A record that was written counts once: afterwards the queue pauses until it changes again. */
START_TEST(a_record_that_stands_still_shows_no_software)
{
    struct lab_qp middle;
    uint32_t lap = 1u << a.log_sq;

    new_middle(&middle);
    PRM_SET(qp_dbr, lab_ptr(left, a.dbr, 8), send_counter, 1);
    run_unannounced(&middle, 2 * lap);
    write_nop(&a);
    write_cross(&middle, PRM_WQE_OPCODE_SEND_ENABLE, a.qp->obj.num, 2 * lap + 1, true);
    post_send_enable(&middle, 2 * lap + 1);
    lab_run(lab);
    expect_none(left);
    ck_assert_uint_eq(a.qp->req.waits, SEND_WAITS_PAUSE);
}
END_TEST

START_TEST(a_reset_begins_a_new_run)
{
    struct lab_qp middle;
    uint32_t lap = 1u << a.log_sq;

    new_middle(&middle);
    run_unannounced(&middle, lap);
    ck_assert_int_eq(lab_modify(&a, PRM_CMD_OP_2RST_QP, NULL, 0, NULL), SYN_OK);
    ck_assert_int_eq(lab_modify(&b, PRM_CMD_OP_2RST_QP, NULL, 0, NULL), SYN_OK);
    a.sq_pi = 0;
    lab_connect(lab, &a, &b, &lab_path);
    run_unannounced(&middle, lap);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *s = suite_create("cross_chains");
    TCase *tc = cross_case("masters", setup_plain);

    tcase_add_test(tc, a_chain_over_many_queues_ends);
    tcase_add_test(tc, queues_that_wait_for_each_other_cost_nothing);
    tcase_add_test(tc, a_queue_cannot_start_itself);
    tcase_add_loop_test(tc, rings_that_enable_each_other_for_ever_are_slow, 0, 2);
    tcase_add_loop_test(tc, software_ends_a_pause, 0, 2);
    tcase_add_test(tc, time_ends_a_pause);
    tcase_add_test(tc, a_queue_that_pauses_sends_lost_packets_again);
    tcase_add_loop_test(tc, a_queue_may_end_while_it_pauses, 0, 3);
    tcase_add_test(tc, a_reset_ends_waits_and_pauses);
    suite_add_tcase(s, tc);

    tc = cross_case("managed send", setup_managed_send);
    tcase_add_loop_test(tc, a_managed_queue_with_software_does_not_pause, 0, 2);
    tcase_add_test(tc, a_record_that_stands_still_shows_no_software);
    tcase_add_test(tc, a_reset_begins_a_new_run);
    suite_add_tcase(s, tc);
    return s;
}
