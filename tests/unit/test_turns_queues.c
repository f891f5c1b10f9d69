/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests that long queues do not make long turns: the effects of one answer, one error, one doorbell
 * or one frame are spread over several turns or bounded, in order, and others continue meanwhile.
 * (unit-turns tests what a turn counts.)
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "model/queue/eq.h"
#include "model/rdma/mcg.h"
#include "model/memory/mkey.h"
#include "model/core/pd.h"
#include "model/core/work.h"
#include "model/rdma/requester_internal.h"
#include "model/queue/srq.h"
#include "model/queue/uar.h"
#include "prm/prm.h"
#include "tests/unit/lab.h"
#include "tests/unit/suite.h"

#define BUDGET 64 /* pieces of a turn that a test takes itself */
#define STEP   16 /* additional cost of the last step of a share: an entry, a CQE, an event each */

static struct lab *lab;
static struct lab_side *left, *right;
static struct lab_qp a, b;           /* with long send queues */
static struct lab_qp other, other_b; /* QPs that must not be affected */

static void setup(void)
{
    lab = lab_new();
    left = &lab->side[0];
    right = &lab->side[1];
    lab_rc_pair(lab, &other, &other_b, &lab_path);
}

static void teardown(void)
{
    lab_free(lab);
}

/* cqn: a's, 0: the side's. */
static void pair_on(uint32_t cqn, uint8_t st, unsigned log_sq)
{
    struct lab_qp_attr attr = {.st = st, .log_sq = (uint8_t)log_sq, .log_rq = 6};

    lab_qp_new(right, &attr, &b);
    attr.cqn = cqn;
    lab_qp_new(left, &attr, &a);
    lab_connect(lab, &a, &b, &lab_path);
    left->hca.most_pieces = 0;
}

static void pair_of(uint8_t st, unsigned log_sq)
{
    pair_on(0, st, log_sq);
}

static struct lab_wr write_wr(uint64_t src, uint64_t dst)
{
    return (struct lab_wr){.opcode = PRM_WQE_OPCODE_RDMA_WRITE,
                           .sge = {{src, 64, 0}},
                           .num_sge = 1,
                           .raddr = dst,
                           .rkey = right->key};
}

static void post_nops(struct lab_qp *qp, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        lab_post(qp, &(struct lab_wr){.opcode = PRM_WQE_OPCODE_NOP});
    }
}

/* Takes one turn of each side, and delivers what is on the cable. */
static bool turn(unsigned budget)
{
    bool more = false;

    for (unsigned i = 0; i < 2; i++) {
        more |= hca_run(&lab->side[i].hca, budget);
        more |= wire_poll(lab->mid[i], 64) > 0;
    }
    return more;
}

static void expect(uint32_t qpn, uint8_t opcode, uint16_t counter, uint8_t syndrome)
{
    struct lab_cqe cqe;

    ck_assert(lab_poll(left, &cqe));
    ck_assert_uint_eq(cqe.qpn, qpn);
    ck_assert_uint_eq(cqe.opcode, opcode);
    ck_assert_uint_eq(cqe.counter, counter);
    ck_assert_uint_eq(cqe.syndrome, syndrome);
}

static void expect_none(void)
{
    struct lab_cqe cqe;

    ck_assert(!lab_poll(left, &cqe));
}

/* Takes completions of a's WQEs from, from + 1... before end; returns the number behind the
 * last. */
static uint16_t take(uint16_t from, uint16_t end, uint8_t opcode, uint8_t syndrome)
{
    struct lab_cqe cqe;

    while (from < end && lab_poll(left, &cqe)) {
        ck_assert_uint_eq(cqe.qpn, a.qp->obj.num);
        ck_assert_uint_eq(cqe.opcode, opcode);
        ck_assert_uint_eq(cqe.syndrome, syndrome);
        ck_assert_uint_eq(cqe.counter, from);
        from++;
    }
    return from;
}

/* -- send queues ------------------------------------------------------------------------------- */

/* A WQE that needs no packet is executed at once, but completes behind earlier WQEs that do. One
 * ACK can complete at most as many WQEs as may be started. */
START_TEST(one_answer_completes_no_more_than_may_be_started)
{
    uint64_t src = lab_mem(left, 64, 1), dst = lab_mem(right, 64, 0);
    struct lab_wr wr = write_wr(src, dst);
    uint16_t done = 0, most = 0;
    bool more = true;

    pair_of(PRM_QP_ST_RC, 10);
    lab_post(&a, &wr);
    post_nops(&a, 999);
    while (hca_run(&left->hca, BUDGET)) {
    }
    ck_assert_uint_eq(requester_started(a.qp), STARTED_MAX);
    lab_post(&other, &wr);
    while (more) {
        uint16_t before = done;
        struct lab_cqe cqe;

        more = turn(BUDGET);
        while (lab_poll(left, &cqe)) {
            ck_assert_uint_eq(cqe.opcode, PRM_CQE_OPCODE_REQ);
            if (cqe.qpn == a.qp->obj.num) {
                ck_assert_uint_eq(cqe.counter, done);
                done++;
            }
        }
        most = MAX(most, done - before);
    }
    ck_assert_uint_eq(done, 1000);
    ck_assert_uint_lt(most, STARTED_MAX + BUDGET);
    ck_assert_uint_le(left->hca.most_pieces, BUDGET + STARTED_MAX + STEP);
}
END_TEST

/* A queue that may start no more remembers its doorbell when an answer makes room. */
START_TEST(requests_beyond_the_limit_of_a_requester_are_sent_later)
{
    uint64_t src = lab_mem(left, 64, 1), dst = lab_mem(right, 64, 0);
    struct lab_wr wr = write_wr(src, dst);

    pair_of(PRM_QP_ST_RC, 10);
    lab_post(&a, &wr);
    post_nops(&a, STARTED_MAX - 1);
    while (hca_run(&left->hca, BUDGET)) {
    }
    ck_assert_uint_eq(requester_started(a.qp), STARTED_MAX);
    lab_post(&a, &wr);
    while (hca_run(&left->hca, BUDGET)) {
    }
    lab_run(lab);
    ck_assert_uint_eq(take(0, 1000, PRM_CQE_OPCODE_REQ, 0), STARTED_MAX + 1);
}
END_TEST

/* Puts a UC QP's send queue in error with 900 WQEs behind the failed one. */
static void fail_in_front_of_many_on(uint32_t cqn)
{
    struct lab_wr bad = write_wr(0, 0);

    pair_on(cqn, PRM_QP_ST_UC, 10);
    bad.opcode = PRM_WQE_OPCODE_RDMA_READ;
    lab_post(&a, &bad);
    post_nops(&a, 900);
    hca_run(&left->hca, BUDGET);
    ck_assert_uint_eq(a.qp->state, PRM_QP_STATE_SQER);
}

static void fail_in_front_of_many(void)
{
    fail_in_front_of_many_on(0);
    expect(a.qp->obj.num, PRM_CQE_OPCODE_REQ_ERR, 0, PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR);
}

/* IBTA 10.3.1: WQEs posted in SQER are flushed, those posted in RTS are not. SQERR2RTS_QP in
 * between does not change that, and does not flush all the rest at once. */
START_TEST(back_from_sqer_a_long_queue_is_flushed_over_several_turns)
{
    uint64_t src = lab_mem(left, 64, 1), dst = lab_mem(right, 64, 0), pieces;
    struct lab_wr wr = write_wr(src, dst);
    uint16_t done;
    unsigned turns = 0;

    fail_in_front_of_many();
    done = take(1, 901, PRM_CQE_OPCODE_REQ_ERR, PRM_CQE_SYNDROME_WR_FLUSH_ERR);
    ck_assert_uint_lt(done, 2 * BUDGET);
    pieces = left->hca.pieces;
    ck_assert_int_eq(lab_modify(&a, PRM_CMD_OP_SQERR2RTS_QP, &lab_path, 0, &b), SYN_OK);
    ck_assert_uint_le(left->hca.pieces - pieces, 2);
    lab_post(&a, &wr);
    while (done < 901) {
        uint16_t before = done;

        hca_run(&left->hca, BUDGET);
        done = take(done, 901, PRM_CQE_OPCODE_REQ_ERR, PRM_CQE_SYNDROME_WR_FLUSH_ERR);
        ck_assert_uint_gt(done, before);
        if (turns++ == 0) {
            lab_post(&other, &wr);
        } else if (turns == 3) {
            ck_assert_uint_ne(other.qp->req.unacked_psn, other.qp->req.next_psn);
        }
    }
    ck_assert_uint_gt(turns, 900 / BUDGET);
    ck_assert_uint_le(left->hca.most_pieces, BUDGET + STEP);
    while (hca_run(&left->hca, BUDGET)) {
    }
    expect(a.qp->obj.num, PRM_CQE_OPCODE_REQ, 901, 0);
    lab_run(lab);
    expect(other.qp->obj.num, PRM_CQE_OPCODE_REQ, 0, 0);
    ck_assert_uint_eq(a.qp->state, PRM_QP_STATE_RTS);
    expect_none();
}
END_TEST

/* RST drops the rest of a flush, in SQER and when the flush continues in RTS. */
START_TEST(to_rst_drops_what_is_left_of_a_flush)
{
    bool resumed = _i;

    fail_in_front_of_many();
    if (resumed) {
        ck_assert_int_eq(lab_modify(&a, PRM_CMD_OP_SQERR2RTS_QP, &lab_path, 0, &b), SYN_OK);
        hca_run(&left->hca, BUDGET);
    }
    ck_assert_uint_lt(take(1, 901, PRM_CQE_OPCODE_REQ_ERR, PRM_CQE_SYNDROME_WR_FLUSH_ERR), 500);
    ck_assert_int_eq(lab_modify(&a, PRM_CMD_OP_2RST_QP, NULL, 0, NULL), SYN_OK);
    lab_run(lab);
    expect_none();

    /* and it begins anew */
    a.sq_pi = 0;
    PRM_SET(qp_dbr, lab_ptr(left, a.dbr, 8), send_counter, 0);
    ck_assert_int_eq(lab_modify(&a, PRM_CMD_OP_RST2INIT_QP, &lab_path, 0, NULL), SYN_OK);
    ck_assert_int_eq(lab_modify(&a, PRM_CMD_OP_INIT2RTR_QP, &lab_path, 0, &b), SYN_OK);
    ck_assert_int_eq(lab_modify(&a, PRM_CMD_OP_RTR2RTS_QP, &lab_path, 0, &b), SYN_OK);
    post_nops(&a, 1);
    lab_run(lab);
    expect(a.qp->obj.num, PRM_CQE_OPCODE_REQ, 0, 0);
    expect_none();
}
END_TEST

/* A CQ that overruns during a flush takes the QP to ERR, also in RTS: requests posted there are not
 * sent. There is one event for the CQ, and one for the QP. */
START_TEST(a_cq_that_overruns_during_a_flush_ends_the_qp)
{
    bool resumed = _i;
    uint64_t src = lab_mem(left, 64, 1), dst = lab_mem(right, 64, 0), ring, dbr;
    struct lab_wr wr = write_wr(src, dst);
    unsigned cq_errors = 0, catas = 0;
    uint32_t cqn = lab_cq_new(left, 6, &ring, &dbr), num;
    uint8_t type;

    fail_in_front_of_many_on(cqn);
    if (resumed) {
        ck_assert_int_eq(lab_modify(&a, PRM_CMD_OP_SQERR2RTS_QP, &lab_path, 0, &b), SYN_OK);
        lab_post(&a, &wr);
    }
    lab_run(lab);
    ck_assert_uint_eq(a.qp->state, PRM_QP_STATE_ERR);
    ck_assert_uint_eq(wq_posted(&a.qp->sq), 0);
    ck_assert_uint_eq(lab_count(lab, 0, BTH_WRITE_ONLY), 0);
    while (lab_event(left, &type, &num)) {
        cq_errors += type == PRM_EVENT_TYPE_CQ_ERROR;
        catas += type == PRM_EVENT_TYPE_WQ_CATAS_ERROR && num == a.qp->obj.num;
    }
    ck_assert_uint_eq(cq_errors, 1);
    ck_assert_uint_eq(catas, 1);
    ck_assert_uint_le(left->hca.most_pieces, LAB_BUDGET + STEP);
    lab_post(&other, &wr);
    lab_run(lab);
    expect(other.qp->obj.num, PRM_CQE_OPCODE_REQ, 0, 0);
}
END_TEST

START_TEST(destruction_ends_a_flush)
{
    fail_in_front_of_many();
    take(1, 901, PRM_CQE_OPCODE_REQ_ERR, PRM_CQE_SYNDROME_WR_FLUSH_ERR);
    ck_assert_int_eq(qp_destroy(&left->hca, 0, a.qp->obj.num), SYN_OK);
    lab_run(lab);
    expect_none();
}
END_TEST

/* -- failed CQs -------------------------------------------------------------------------------- */

static struct srq *xrc_srq(uint32_t cqn, uint32_t xrcdn)
{
    struct srq_attr attr = {
        .kind = OBJ_XRC_SRQ,
        .log_size = 3,
        .log_stride = 6,
        .xrcdn = xrcdn,
        .cqn = cqn,
        .pdn = left->pdn,
        .buf = lab_buf(fake_host_alloc(&left->host, 512, 4096), 512),
        .dbr = fake_host_alloc(&left->host, 8, 8),
    };
    struct srq *srq;

    ck_assert_int_eq(srq_create(&left->hca, &attr, &srq), SYN_OK);
    return srq;
}

START_TEST(failing_cq_takes_its_srqs_down_over_several_turns)
{
    enum {
        SRQS = 200
    };
    uint64_t ring, dbr, src = lab_mem(left, 64, 1), dst = lab_mem(right, 64, 0);
    uint32_t cqn = lab_cq_new(left, 0, &ring, &dbr), xrcdn;
    struct lab_wr wr = write_wr(src, dst);
    struct srq *srqs[SRQS];
    unsigned left_up = SRQS, after_first = 0, turns = 0;

    ck_assert_int_eq(xrcd_alloc(&left->hca, 0, &xrcdn), SYN_OK);
    for (unsigned i = 0; i < SRQS; i++) {
        srqs[i] = xrc_srq(cqn, xrcdn);
    }
    for (unsigned i = 0; i < 2; i++) {
        struct prm_cqe64 image[1] = {0};

        cq_post(&left->hca, cq_find(&left->hca, cqn), image, false);
    }
    left->hca.most_pieces = 0;
    while (left_up) {
        hca_run(&left->hca, BUDGET);
        left_up = 0;
        for (unsigned i = 0; i < SRQS; i++) {
            left_up += !srqs[i]->error;
        }
        if (turns++ == 0) {
            after_first = left_up;
            lab_post(&other, &wr);
        }
        ck_assert_uint_lt(turns, 10 * SRQS);
    }
    ck_assert_uint_gt(after_first, 0);
    ck_assert_uint_lt(after_first, SRQS);
    ck_assert_uint_le(left->hca.most_pieces, BUDGET + STEP);
    lab_run(lab);
    expect(other.qp->obj.num, PRM_CQE_OPCODE_REQ, 0, 0);
}
END_TEST

/* -- a full EQ --------------------------------------------------------------------------------- */

enum {
    EQ_SIZE = 1 << LAB_EQ_LOG,
    CQS = 3 * EQ_SIZE,
};

static uint32_t cqns[CQS + 1];
static unsigned next_cq;

static void arm_and_post(unsigned i)
{
    struct prm_cqe64 image[1] = {0};

    cq_doorbell(&left->hca, left->uarn, 0, cqns[i]);
    cq_post(&left->hca, cq_find(&left->hca, cqns[i]), image, false);
}

/* Takes events of CQs in the order in which they came. */
static void take_events(void)
{
    const struct prm_eqe *ring = lab_ptr(left, left->eq_ring, 64 * EQ_SIZE);

    for (;;) {
        const struct prm_eqe *eqe = &ring[left->eq_ci % EQ_SIZE];

        if (PRM_GET(eqe, eqe, owner) != (left->eq_ci >> LAB_EQ_LOG & 1)) {
            return;
        }
        left->eq_ci++;
        if (PRM_GET(eqe, eqe, event_type) == PRM_EVENT_TYPE_COMP) {
            ck_assert_uint_eq(PRM_GET(comp_event, PRM_PTR(eqe, eqe, event_data), cq_number),
                              cqns[next_cq]);
            next_cq++;
        }
    }
}

static void eq_told(bool arm)
{
    eq_doorbell(&left->hca, left->uarn, left->eqn << 24 | (left->eq_ci & 0xffffff), arm);
}

/* Events that wait for a full EQ follow over several turns once it has room, in order, and no later
 * event comes before them. */
/* More CQs have an event than the EQ has entries. */
static void fill_eq(void)
{
    uint64_t ring, dbr;

    next_cq = 0;
    for (unsigned i = 0; i <= CQS; i++) {
        cqns[i] = lab_cq_new(left, 0, &ring, &dbr);
    }
    take_events();
    eq_told(false);
    for (unsigned i = 0; i < CQS; i++) {
        arm_and_post(i);
    }
    take_events();
    ck_assert_uint_eq(next_cq, EQ_SIZE);
}

START_TEST(room_in_an_eq_lets_many_events_follow_over_several_turns)
{
    unsigned turns = 0, irqs;
    uint64_t pieces;

    fill_eq();
    pieces = left->hca.pieces;
    irqs = left->host.irqs[0];
    eq_told(true);
    ck_assert_uint_eq(left->hca.pieces, pieces);
    arm_and_post(CQS);
    take_events();
    ck_assert_uint_eq(next_cq, EQ_SIZE);
    left->hca.most_pieces = 0;
    while (next_cq <= CQS) {
        unsigned before = next_cq;

        hca_run(&left->hca, BUDGET);
        take_events();
        ck_assert_uint_gt(next_cq, before);
        eq_told(true);
        turns++;
    }
    ck_assert_uint_gt(left->host.irqs[0], irqs);
    ck_assert_uint_gt(turns, (CQS - EQ_SIZE) / BUDGET);
    ck_assert_uint_le(left->hca.most_pieces, BUDGET + STEP);
}
END_TEST

/* One doorbell is enough for several turns. */
START_TEST(an_eq_with_room_takes_events_until_it_is_full)
{
    unsigned turns = 1;

    fill_eq();
    eq_told(true);
    while (hca_run(&left->hca, BUDGET / 16)) {
        turns++;
    }
    take_events();
    ck_assert_uint_eq(next_cq, 2 * EQ_SIZE);
    ck_assert_uint_gt(turns, 1);
}
END_TEST

/* Waiting CQs may be destroyed, and so may their EQ's function. */
START_TEST(a_cq_that_waits_for_an_eq_can_be_destroyed)
{
    uint64_t ring, dbr;

    next_cq = 0;
    for (unsigned i = 0; i < CQS; i++) {
        cqns[i] = lab_cq_new(left, 0, &ring, &dbr);
    }
    take_events();
    eq_told(false);
    for (unsigned i = 0; i < CQS; i++) {
        arm_and_post(i);
    }
    take_events();
    eq_told(true);
    for (unsigned i = EQ_SIZE; i < CQS; i += 2) {
        ck_assert_int_eq(cq_destroy(&left->hca, 0, cqns[i]), SYN_OK);
    }
    hca_run(&left->hca, BUDGET);
    hca_reset(&left->hca);
    ck_assert(!hca_run(&left->hca, BUDGET));
    ck_assert_uint_eq(left->hca.eqs.count, 0);
}
END_TEST

/* -- the wire ---------------------------------------------------------------------------------- */

/* Room on the wire is announced to all waiting queues at once, whatever their number. */
START_TEST(credit_wakes_many_queues_in_one_step)
{
    enum {
        WORKS = 5000
    };
    struct work *works = g_new0(struct work, WORKS);
    unsigned wakes;

    for (unsigned i = 0; i < WORKS; i++) {
        hca_wait_tx(&left->hca, &works[i]);
    }
    wakes = left->host.wakes;
    hca_tx_ready(&left->hca);
    ck_assert_uint_eq(left->host.wakes, wakes + 1);
    ck_assert(!hca_tx_awaited(&left->hca));
    for (unsigned i = 0; i < WORKS; i++) {
        ck_assert_ptr_eq(left->hca.ready.next, &works[i]);
        hca_unschedule(&works[i]);
    }
    hca_tx_ready(&left->hca);
    ck_assert_uint_eq(left->host.wakes, wakes + 1);
    g_free(works);
}
END_TEST

static void find_no_room(struct hca *hca, struct work *work)
{
    hca_wait_tx(hca, work);
}

static void fill_the_wire(struct hca *hca, struct work *work)
{
    while (port_tx_reserve(hca, right->mac, 0, 64)) {
        port_tx_commit(hca, 64, PORT_NO_TD);
    }
    hca_wait_tx(hca, work);
}

/* The first queue takes all the room: next time it is behind the queues that got none. */
START_TEST(credit_goes_first_to_queues_that_had_none)
{
    struct work greedy = {.run = fill_the_wire};
    struct work works[2] = {{.run = find_no_room}, {.run = find_no_room}};

    hca_schedule(&left->hca, &works[0]);
    hca_schedule(&left->hca, &greedy);
    hca_schedule(&left->hca, &works[1]);
    while (hca_work_pending(&left->hca)) {
        hca_run(&left->hca, BUDGET);
    }
    hca_tx_ready(&left->hca);
    ck_assert_ptr_eq(left->hca.ready.next, &works[0]);
    ck_assert_ptr_eq(works[0].next, &works[1]);
    ck_assert_ptr_eq(works[1].next, &greedy);
    for (unsigned i = 0; i < 2; i++) {
        hca_unschedule(&works[i]);
    }
    hca_unschedule(&greedy);
}
END_TEST

#define SENDERS 16

static struct work senders[SENDERS];
static unsigned served[SENDERS], credit;

static void send_if_there_is_credit(struct hca *hca, struct work *work)
{
    if (credit) {
        credit--;
        hca->tx_frames++;
        served[work - senders]++;
    }
    hca_wait_tx(hca, work);
}

/* Credit comes for one frame at a time, and a turn lets few of the senders try. Some senders begin
 * anew in each turn, as notices do (model/rdma/notice.c). However these numbers fit each other, a
 * sender that does not begin anew waits at most for two turns for each sender. Sender 0 never
 * begins anew; the others do so in turns, unless none does. */
START_TEST(the_sender_that_has_waited_longest_is_the_first_to_try)
{
    struct hca *hca = &left->hca;
    unsigned num = 2 + (unsigned)_i % (SENDERS - 1), tries = 1 + (unsigned)_i / (SENDERS - 1) % 8;

    for (unsigned anew = 0; anew < num; anew++) {
        unsigned first = 0, waited[SENDERS] = {0};

        memset(served, 0, sizeof(served));
        for (unsigned i = 0; i < num; i++) {
            senders[i] = (struct work){.run = send_if_there_is_credit};
            hca_schedule(hca, &senders[i]);
        }
        for (unsigned turn = 0; turn < 8 * SENDERS; turn++) {
            for (unsigned i = 0; i < anew; i++, first++) {
                hca_unschedule(&senders[1 + first % (num - 1)]);
                hca_schedule(hca, &senders[1 + first % (num - 1)]);
            }
            hca->pieces_end = hca->pieces + tries;
            hca_work_run(hca);
            credit = 1;
            hca_tx_ready(hca);
            for (unsigned i = 0; i < (anew ? 1 : num); i++) {
                waited[i] = served[i] ? 0 : waited[i] + 1;
                served[i] = 0;
                ck_assert_msg(waited[i] <= 2 * num,
                              "sender %u of %u, %u tries, %u begin anew: %u turns", i, num, tries,
                              anew, waited[i]);
            }
        }
        for (unsigned i = 0; i < num; i++) {
            hca_unschedule(&senders[i]);
        }
    }
}
END_TEST

/* Credit of one receiver is announced to the queues that wait for it, and not to others
 * (wire_tx_credits()). */
START_TEST(credit_wakes_only_the_queues_that_wait_for_it)
{
    struct work works[HCA_CREDIT_CLASSES] = {0};

    for (unsigned i = 0; i < HCA_CREDIT_CLASSES; i++) {
        left->hca.credit_class = i;
        hca_wait_tx(&left->hca, &works[i]);
    }
    hca_credits_back(&left->hca, 1ull << 5 | 1ull << 63);
    ck_assert_ptr_eq(left->hca.ready.next, &works[5]);
    ck_assert_ptr_eq(works[5].next, &works[63]);
    ck_assert_ptr_eq(works[63].next, &left->hca.ready);
    ck_assert(hca_tx_awaited(&left->hca));
    hca_tx_ready(&left->hca);
    ck_assert(!hca_tx_awaited(&left->hca));
    for (unsigned i = 0; i < HCA_CREDIT_CLASSES; i++) {
        ck_assert_ptr_nonnull(works[i].next);
        hca_unschedule(&works[i]);
    }
}
END_TEST

/* -- multicast --------------------------------------------------------------------------------- */

#define MEMBER_BYTES 2048
#define GRH_BYTES    40

static const uint8_t mgid[16] = {[10] = 0xff, 0xff, 224, 1, 2, 3};
static struct lab_qp members[MCG_MAX_QPS];

/* Makes right's QPs members, with receives whose memory has the key. */
static void make_members(uint64_t mem, uint32_t key, unsigned receives)
{
    struct lab_qp_attr attr = {.st = PRM_QP_ST_UD, .log_sq = 0, .log_rq = 5};

    for (unsigned i = 0; i < MCG_MAX_QPS; i++) {
        struct lab_qp *qp = &members[i];

        lab_qp_new(right, &attr, qp);
        ck_assert_int_eq(lab_modify(qp, PRM_CMD_OP_RST2INIT_QP, &lab_path, 0, NULL), SYN_OK);
        ck_assert_int_eq(lab_modify(qp, PRM_CMD_OP_INIT2RTR_QP, &lab_path, 0, NULL), SYN_OK);
        ck_assert_int_eq(mcg_attach(&right->hca, 0, qp->qp->obj.num, mgid), SYN_OK);
        for (unsigned n = 0; n < receives; n++) {
            uint32_t slot = qp->rq_pi % (1u << qp->log_rq);
            struct prm_wqe_data_seg *wqe = lab_ptr(right, qp->rq_ring + ((uint64_t)slot << 6), 64);

            lab_post_recv(qp, mem, MEMBER_BYTES);
            PRM_SET(wqe_data_seg, wqe, lkey, key);
        }
    }
    right->hca.most_pieces = 0;
}

static void multicast(void)
{
    static uint8_t frame[WIRE_FRAME_MAX], data[MEMBER_BYTES];
    size_t bytes = 1024, len;
    struct roce_packet pkt = {
        .opcode = BTH_UD | BTH_SEND_ONLY,
        .migreq = true,
        .pkey = 0xffff,
        .dest_qp = 0xffffff,
        .deth = {.qkey = lab_path.qkey, .src_qp = 77},
    };
    uint8_t *room;

    memcpy(pkt.addr.dmac, (const uint8_t[]){0x01, 0x00, 0x5e, 1, 2, 3}, 6);
    memcpy(pkt.addr.smac, left->mac, 6);
    memcpy(pkt.addr.sgid, left->hca.vport->gids[3].gid, 16);
    memcpy(pkt.addr.dgid, mgid, 16);
    pkt.addr.is_ipv4 = true;
    pkt.addr.udp_sport = 0xd000;
    pkt.addr.hop_limit = 1;
    memcpy(roce_build(frame, &pkt, bytes), data, bytes);
    len = roce_finish(frame, &pkt, bytes);
    room = wire_tx_reserve(lab->mid[1], len);
    ck_assert_ptr_nonnull(room);
    memcpy(room, frame, len);
    wire_tx_commit(lab->mid[1], len);
}

static unsigned received(void)
{
    struct lab_cqe cqe;
    unsigned n = 0;

    while (lab_poll(right, &cqe)) {
        ck_assert_uint_eq(cqe.opcode, PRM_CQE_OPCODE_RESP_SEND);
        n++;
    }
    return n;
}

/* max_qp_mcg members each get every one of some frames that come at once. */
START_TEST(a_multicast_reaches_as_many_members_as_there_may_be)
{
    enum {
        FRAMES = 12
    };

    make_members(lab_mem(right, MEMBER_BYTES, 0), right->key, FRAMES);
    for (unsigned i = 0; i < FRAMES; i++) {
        multicast();
    }
    lab_run(lab);
    ck_assert_uint_eq(received(), FRAMES * MCG_MAX_QPS);
    ck_assert_uint_eq(right->hca.vport->counters.rx_discards, 0);
}
END_TEST

/* If memory in single bytes makes a copy cost thousands of pieces, a turn's frames reach only as
 * many members as fit a turn's share for copies. The rest is dropped and counted, as by a card
 * whose buffer overflows behind a slow bus. The first member has all frames. */
START_TEST(a_multicast_to_memory_in_crumbs_ends)
{
    enum {
        FRAMES = 16,
        COPY = 2 * (GRH_BYTES + 1024) + 32,
        BATCH = 8 /* frames that are taken before their cost is checked */
    };
    uint64_t mem = lab_mem(right, MEMBER_BYTES, 0);
    unsigned seen;

    make_members(mem, lab_crumbs(right, mem, MEMBER_BYTES, mem), FRAMES);
    for (unsigned i = 0; i < FRAMES; i++) {
        multicast();
    }
    lab_run(lab);
    ck_assert_uint_le(right->hca.most_pieces, LAB_BUDGET + PORT_COPY_PIECES + (BATCH + 1) * COPY);
    ck_assert_uint_eq(members[0].qp->rq.ci, FRAMES);
    seen = received();
    ck_assert_uint_gt(seen, FRAMES);
    ck_assert_uint_lt(seen, FRAMES * MCG_MAX_QPS);
    ck_assert_uint_eq(right->hca.vport->counters.rx_discards, FRAMES * MCG_MAX_QPS - seen);
}
END_TEST

/* -- receive queues ---------------------------------------------------------------------------- */

/* No doorbell begins the turns in which a receive queue is flushed. */
START_TEST(a_receive_queue_is_flushed_over_several_turns)
{
    enum {
        RECVS = 60
    };
    struct lab_cqe cqe;
    unsigned turns = 0;

    pair_of(PRM_QP_ST_RC, 4);
    for (unsigned i = 0; i < RECVS; i++) {
        lab_post_recv(&a, lab_mem(left, 64, 0), 64);
    }
    qp_set_state(a.qp, PRM_QP_STATE_ERR);
    do {
        turns++;
    } while (hca_run(&left->hca, BUDGET / 4));
    for (unsigned i = 0; i < RECVS; i++) {
        ck_assert(lab_poll(left, &cqe));
        ck_assert_uint_eq(cqe.counter, i);
        ck_assert_uint_eq(cqe.syndrome, PRM_CQE_SYNDROME_WR_FLUSH_ERR);
    }
    ck_assert_uint_gt(turns, RECVS / (BUDGET / 4));
}
END_TEST

/* -- work that nothing wakes ------------------------------------------------------------------- */

static unsigned late_runs;

static void late_run(struct hca *hca, struct work *work)
{
    late_runs++;
}

/* Only so much of it runs at a time. The rest runs the next times. */
START_TEST(all_late_work_runs_in_the_end)
{
    enum {
        WORKS = 600,
        MOST = 256 /* at a time */
    };
    struct work *works = g_new0(struct work, WORKS);

    late_runs = 0;
    for (unsigned i = 0; i < WORKS; i++) {
        works[i].run = late_run;
        hca_wait_late(&left->hca, &works[i]);
    }
    for (unsigned i = 1; i <= 3; i++) {
        lab_advance(lab, 250 * LAB_MS);
        ck_assert_uint_eq(late_runs, MIN(i * MOST, WORKS));
    }
    g_free(works);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("turns-queues");
    TCase *tcase = tcase_create("all");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 100);
    tcase_add_test(tcase, one_answer_completes_no_more_than_may_be_started);
    tcase_add_test(tcase, requests_beyond_the_limit_of_a_requester_are_sent_later);
    tcase_add_test(tcase, back_from_sqer_a_long_queue_is_flushed_over_several_turns);
    tcase_add_loop_test(tcase, to_rst_drops_what_is_left_of_a_flush, 0, 2);
    tcase_add_loop_test(tcase, a_cq_that_overruns_during_a_flush_ends_the_qp, 0, 2);
    tcase_add_test(tcase, destruction_ends_a_flush);
    tcase_add_test(tcase, failing_cq_takes_its_srqs_down_over_several_turns);
    tcase_add_test(tcase, room_in_an_eq_lets_many_events_follow_over_several_turns);
    tcase_add_test(tcase, an_eq_with_room_takes_events_until_it_is_full);
    tcase_add_test(tcase, a_cq_that_waits_for_an_eq_can_be_destroyed);
    tcase_add_test(tcase, credit_wakes_many_queues_in_one_step);
    tcase_add_test(tcase, credit_goes_first_to_queues_that_had_none);
    tcase_add_test(tcase, credit_wakes_only_the_queues_that_wait_for_it);
    tcase_add_loop_test(tcase, the_sender_that_has_waited_longest_is_the_first_to_try, 0,
                        8 * (SENDERS - 1));
    tcase_add_test(tcase, a_receive_queue_is_flushed_over_several_turns);
    tcase_add_test(tcase, all_late_work_runs_in_the_end);
    tcase_add_test(tcase, a_multicast_reaches_as_many_members_as_there_may_be);
    tcase_add_test(tcase, a_multicast_to_memory_in_crumbs_ends);
    suite_add_tcase(suite, tcase);
    return suite;
}
