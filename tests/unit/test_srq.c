/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests shared receive queues: lists and rings, the limit event, invalid lists. */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "model/core/pd.h"
#include "model/queue/srq.h"
#include "tests/unit/lab.h"
#include "tests/unit/suite.h"

#define LOG_SIZE   3
#define LOG_STRIDE 6

static struct lab *lab;
static struct lab_side *side;
static struct srq *srq;
static struct srq_attr attr;
static uint64_t ring, dbr;
static struct recv_wqe wqe;

static void *slot(unsigned index)
{
    return lab_ptr(side, ring + ((uint64_t)index << LOG_STRIDE), 1 << LOG_STRIDE);
}

static void set_next(unsigned index, unsigned next)
{
    PRM_SET(wqe_srq_next_seg, slot(index), next_wqe_index, next);
}

static void set_posted(uint16_t counter)
{
    PRM_SET(srq_dbr, lab_ptr(side, dbr, 4), counter, counter);
}

/* Makes a list 0, 1, ... 7, each slot with one element of length 100 + its index. */
static void setup(void)
{
    lab = lab_new();
    side = &lab->side[0];
    ring = lab_mem(side, 1 << (LOG_SIZE + LOG_STRIDE), 0);
    dbr = lab_mem(side, 4, 0);
    attr = (struct srq_attr){
        .kind = OBJ_RMP,
        .pdn = side->pdn,
        .log_size = LOG_SIZE,
        .log_stride = LOG_STRIDE,
        .buf = lab_buf(ring, 1 << (LOG_SIZE + LOG_STRIDE)),
        .dbr = dbr,
    };
    for (unsigned i = 0; i < 1 << LOG_SIZE; i++) {
        void *seg = slot(i) + PRM_SIZE(wqe_srq_next_seg);

        set_next(i, (i + 1) % (1 << LOG_SIZE));
        PRM_SET(wqe_data_seg, seg, byte_count, 100 + i);
        PRM_SET(wqe_data_seg, seg, lkey, side->key);
        PRM_SET(wqe_data_seg, seg + 16, lkey, WQE_TERMINATOR_LKEY);
    }
    ck_assert_int_eq(srq_create(&side->hca, &attr, &srq), SYN_OK);
}

static void teardown(void)
{
    lab_free(lab);
}

static void take(unsigned index)
{
    ck_assert_int_eq(srq_take(&side->hca, srq, &wqe), RECV_OK);
    ck_assert_uint_eq(wqe.index, index);
    ck_assert_uint_eq(wqe.num_sge, 1);
    ck_assert_uint_eq(wqe.len, 100 + index);
}

static void expect_event(uint8_t type)
{
    uint8_t got;
    uint32_t num;

    ck_assert(lab_event(side, &got, &num));
    ck_assert_uint_eq(got, type);
    ck_assert_uint_eq(num, srq->obj.num);
}

static void expect_no_event(void)
{
    uint8_t type;
    uint32_t num;

    ck_assert(!lab_event(side, &type, &num));
}

START_TEST(wqes_come_in_the_order_of_the_list)
{
    set_next(0, 5);
    set_next(5, 2);
    ck_assert_int_eq(srq_take(&side->hca, srq, &wqe), RECV_EMPTY);
    set_posted(3);
    take(0);
    take(5);
    take(2);
    ck_assert_int_eq(srq_take(&side->hca, srq, &wqe), RECV_EMPTY);
}
END_TEST

START_TEST(counter_wraps)
{
    uint16_t posted = 0;

    for (unsigned i = 0; i < 70000; i++) {
        set_posted(++posted);
        take(i % 8);
    }
    expect_no_event();
}
END_TEST

/* IBTA 10.2.9: the limit event comes once, when fewer WQEs than the limit are left. */
START_TEST(limit_event_comes_once)
{
    set_posted(5);
    ck_assert_int_eq(srq_arm(&side->hca, srq, 3), SYN_OK);
    take(0);
    take(1);
    expect_no_event(); /* 3 are left */
    take(2);
    expect_event(PRM_EVENT_TYPE_SRQ_RQ_LIMIT);
    take(3);
    expect_no_event();
    ck_assert_uint_eq(srq->lwm, 0);
}
END_TEST

START_TEST(limit_counts_what_was_posted_since)
{
    set_posted(2);
    ck_assert_int_eq(srq_arm(&side->hca, srq, 2), SYN_OK);
    set_posted(6); /* the device has not read the record since */
    take(0);
    expect_no_event();
    ck_assert_uint_eq(srq->lwm, 2);
}
END_TEST

START_TEST(limit_above_what_is_posted_fires_at_once)
{
    set_posted(2);
    ck_assert_int_eq(srq_arm(&side->hca, srq, 3), SYN_OK);
    expect_event(PRM_EVENT_TYPE_SRQ_RQ_LIMIT);
}
END_TEST

START_TEST(limit_0_disarms)
{
    set_posted(3);
    ck_assert_int_eq(srq_arm(&side->hca, srq, 3), SYN_OK);
    ck_assert_int_eq(srq_arm(&side->hca, srq, 0), SYN_OK);
    take(0);
    expect_no_event();
    ck_assert_int_eq(srq_arm(&side->hca, srq, 9), SYN_SRQ_LIMIT);
}
END_TEST

static void expect_broken(void)
{
    ck_assert_int_eq(srq_take(&side->hca, srq, &wqe), RECV_ERROR);
    expect_event(PRM_EVENT_TYPE_SRQ_CATAS_ERROR);
    ck_assert_int_eq(srq_take(&side->hca, srq, &wqe), RECV_ERROR);
    expect_no_event();
    ck_assert_int_eq(srq_arm(&side->hca, srq, 1), SYN_SRQ_STATE);
}

START_TEST(next_outside_the_queue)
{
    set_next(0, 8);
    set_posted(1);
    expect_broken();
}
END_TEST

START_TEST(next_far_outside_the_queue)
{
    set_next(0, 0xffff);
    set_posted(1);
    expect_broken();
}
END_TEST

START_TEST(more_posted_than_the_queue_holds)
{
    set_posted(9);
    expect_broken();
}
END_TEST

START_TEST(malformed_wqe)
{
    PRM_SET(wqe_data_seg, slot(0) + 16, inl, 1);
    set_posted(1);
    expect_broken();
}
END_TEST

START_TEST(a_list_of_wqes_with_a_loop_has_an_end)
{
    set_next(0, 0);
    set_posted(8);
    for (unsigned i = 0; i < 8; i++) {
        take(0);
    }
    ck_assert_int_eq(srq_take(&side->hca, srq, &wqe), RECV_EMPTY);
}
END_TEST

/* Uses the same slots as a ring, as UCX makes its RMPs: the next segments do not matter. */
static void make_ring(enum srq_form form)
{
    struct srq_attr ring_attr = attr;

    ck_assert_int_eq(srq_destroy(&side->hca, 0, srq->obj.num, OBJ_RMP), SYN_OK);
    ring_attr.form = form;
    ring_attr.buf = lab_buf(ring, 1 << (LOG_SIZE + LOG_STRIDE));
    ck_assert_int_eq(srq_create(&side->hca, &ring_attr, &srq), SYN_OK);
    for (unsigned i = 0; i < 1 << LOG_SIZE; i++) {
        set_next(i, 0xffff - i);
    }
}

/* The number of a ring's WQE continues where the ring wraps around: the driver takes it modulo the
 * ring's size. */
START_TEST(a_ring_is_taken_from_slot_by_slot)
{
    uint16_t posted = 0;

    make_ring(SRQ_RING);
    ck_assert_int_eq(srq_take(&side->hca, srq, &wqe), RECV_EMPTY);
    for (unsigned i = 0; i < 70000; i++) {
        set_posted(++posted);
        ck_assert_int_eq(srq_take(&side->hca, srq, &wqe), RECV_OK);
        ck_assert_uint_eq(wqe.index, i & 0xffff);
        ck_assert_uint_eq(wqe.len, 100 + i % 8);
        ck_assert_int_eq(srq_read(&side->hca, srq, i & 0xffff, &wqe, NULL), RECV_OK);
        ck_assert_uint_eq(wqe.len, 100 + i % 8);
    }
    ck_assert_int_eq(srq_take(&side->hca, srq, &wqe), RECV_EMPTY);
    expect_no_event();
}
END_TEST

START_TEST(a_ring_of_basic_wqes_has_data_segments_alone)
{
    make_ring(SRQ_RING_BASIC);
    for (unsigned i = 0; i < 1 << LOG_SIZE; i++) {
        PRM_SET(wqe_data_seg, slot(i), byte_count, 7 + i);
        PRM_SET(wqe_data_seg, slot(i), lkey, side->key);
    }
    set_posted(1 << LOG_SIZE);
    for (unsigned i = 0; i < 1 << LOG_SIZE; i++) {
        ck_assert_int_eq(srq_take(&side->hca, srq, &wqe), RECV_OK);
        ck_assert_uint_eq(wqe.num_sge, 2);
        ck_assert_uint_eq(wqe.len, 7 + i + 100 + i);
    }
    ck_assert_int_eq(srq_take(&side->hca, srq, &wqe), RECV_EMPTY);
}
END_TEST

START_TEST(a_ring_has_its_limit_too)
{
    make_ring(SRQ_RING);
    set_posted(3);
    ck_assert_int_eq(srq_arm(&side->hca, srq, 3), SYN_OK);
    ck_assert_int_eq(srq_take(&side->hca, srq, &wqe), RECV_OK);
    expect_event(PRM_EVENT_TYPE_SRQ_RQ_LIMIT);
    expect_no_event();
}
END_TEST

START_TEST(more_posted_than_the_ring_holds)
{
    make_ring(SRQ_RING);
    set_posted(9);
    expect_broken();
}
END_TEST

START_TEST(malformed_wqe_of_a_ring)
{
    make_ring(SRQ_RING);
    PRM_SET(wqe_data_seg, slot(0) + 16, inl, 1);
    set_posted(1);
    expect_broken();
}
END_TEST

START_TEST(malformed_basic_wqe)
{
    make_ring(SRQ_RING_BASIC);
    PRM_SET(wqe_data_seg, slot(0), inl, 1);
    set_posted(1);
    expect_broken();
}
END_TEST

/* Two QPs receive from one ring, in the order in which their messages come, past its end. */
START_TEST(qps_share_a_ring)
{
    enum {
        ROUNDS = 3 << LOG_SIZE
    };
    uint64_t memory = lab_mem(side, 1 << LOG_SIZE, 0);
    struct lab_qp_attr qp_attr = lab_rc;
    struct lab_qp to[2], from[2];
    struct lab_cqe cqe;

    make_ring(SRQ_RING);
    qp_attr.srqn = srq->obj.num;
    for (unsigned i = 0; i < 2; i++) {
        lab_qp_new(side, &qp_attr, &to[i]);
        lab_qp_new(&lab->side[1], &lab_rc, &from[i]);
        lab_connect(lab, &to[i], &from[i], &lab_path);
    }
    for (unsigned i = 0; i < 1 << LOG_SIZE; i++) {
        PRM_SET(wqe_data_seg, slot(i) + 16, addr, memory + i);
    }
    for (unsigned i = 0; i < ROUNDS; i++) {
        const uint8_t byte = 0x40 + i;
        unsigned which = i % 3 == 0;

        set_posted(i + 1);
        lab_post(
            &from[which],
            &(struct lab_wr){.opcode = PRM_WQE_OPCODE_SEND, .inline_data = &byte, .inline_len = 1});
        lab_run(lab);
        ck_assert(lab_poll(side, &cqe));
        ck_assert_uint_eq(cqe.opcode, PRM_CQE_OPCODE_RESP_SEND);
        ck_assert_uint_eq(cqe.counter, i);
        ck_assert_uint_eq(*(uint8_t *)lab_ptr(side, memory + i % (1 << LOG_SIZE), 1), byte);
        ck_assert(lab_poll(&lab->side[1], &cqe));
        ck_assert_uint_eq(cqe.opcode, PRM_CQE_OPCODE_REQ);
    }
}
END_TEST

START_TEST(creation_checks_its_attributes)
{
    struct srq *other;
    struct srq_attr bad;

#define EXPECT(field, value, syn)                                                                  \
    bad = attr;                                                                                    \
    bad.field = (value);                                                                           \
    ck_assert_int_eq(srq_create(&side->hca, &bad, &other), syn)

    EXPECT(pdn, 0xffffff, SYN_SRQ_PD);
    EXPECT(log_size, 4, SYN_BAD_PAS);
    EXPECT(log_size, 16, SYN_SRQ_SIZE);
    EXPECT(log_stride, 4, SYN_SRQ_SIZE);
    EXPECT(log_stride, 10, SYN_SRQ_SIZE);
    EXPECT(log_stride, 255, SYN_SRQ_SIZE);
    EXPECT(offset, 1, SYN_BAD_PAS);
    EXPECT(kind, OBJ_XRC_SRQ, SYN_SRQ_XRCD);
    attr.form = SRQ_RING;
    EXPECT(log_stride, 4, SYN_SRQ_SIZE);
    attr.form = SRQ_RING_BASIC;
    EXPECT(log_stride, 3, SYN_SRQ_SIZE);
    attr.buf = lab_buf(ring, 1 << (LOG_SIZE + LOG_STRIDE));
    EXPECT(log_stride, 4, SYN_OK);
#undef EXPECT
}
END_TEST

START_TEST(xrc_srq_holds_its_domain_and_cq)
{
    struct srq_attr xrc = attr;
    struct srq *other;
    uint32_t xrcdn;

    ck_assert_int_eq(xrcd_alloc(&side->hca, 0, &xrcdn), SYN_OK);
    xrc.kind = OBJ_XRC_SRQ;
    xrc.xrcdn = xrcdn;
    ck_assert_int_eq(srq_create(&side->hca, &xrc, &other), SYN_SRQ_CQ);
    xrc.cqn = side->cqn;
    xrc.buf = lab_buf(ring, 1 << (LOG_SIZE + LOG_STRIDE));
    ck_assert_int_eq(srq_create(&side->hca, &xrc, &other), SYN_OK);
    ck_assert_int_eq(xrcd_dealloc(&side->hca, 0, xrcdn), SYN_IN_USE);
    ck_assert_int_eq(cq_destroy(&side->hca, 0, side->cqn), SYN_IN_USE);
    ck_assert_int_eq(srq_destroy(&side->hca, 0, other->obj.num, OBJ_SRQ), SYN_SRQ_NUM);
    ck_assert_int_eq(srq_destroy(&side->hca, 0, other->obj.num, OBJ_XRC_SRQ), SYN_OK);
    ck_assert_int_eq(xrcd_dealloc(&side->hca, 0, xrcdn), SYN_OK);
    ck_assert_int_eq(cq_destroy(&side->hca, 0, side->cqn), SYN_OK);
}
END_TEST

START_TEST(destruction_waits_for_the_qps)
{
    uint32_t srqn = srq->obj.num;

    srq->obj.refs++;
    ck_assert_int_eq(srq_destroy(&side->hca, 0, srqn, OBJ_RMP), SYN_IN_USE);
    srq->obj.refs--;
    ck_assert_int_eq(srq_destroy(&side->hca, 7, srqn, OBJ_RMP), SYN_BAD_UID);
    ck_assert_int_eq(srq_destroy(&side->hca, 0, srqn, OBJ_RMP), SYN_OK);
    ck_assert_int_eq(srq_destroy(&side->hca, 0, srqn, OBJ_RMP), SYN_SRQ_NUM);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("srq");
    TCase *tc = tcase_create("srq");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, wqes_come_in_the_order_of_the_list);
    tcase_add_test(tc, counter_wraps);
    tcase_add_test(tc, limit_event_comes_once);
    tcase_add_test(tc, limit_counts_what_was_posted_since);
    tcase_add_test(tc, limit_above_what_is_posted_fires_at_once);
    tcase_add_test(tc, limit_0_disarms);
    tcase_add_test(tc, next_outside_the_queue);
    tcase_add_test(tc, next_far_outside_the_queue);
    tcase_add_test(tc, more_posted_than_the_queue_holds);
    tcase_add_test(tc, malformed_wqe);
    tcase_add_test(tc, a_list_of_wqes_with_a_loop_has_an_end);
    tcase_add_test(tc, a_ring_is_taken_from_slot_by_slot);
    tcase_add_test(tc, a_ring_of_basic_wqes_has_data_segments_alone);
    tcase_add_test(tc, a_ring_has_its_limit_too);
    tcase_add_test(tc, more_posted_than_the_ring_holds);
    tcase_add_test(tc, malformed_wqe_of_a_ring);
    tcase_add_test(tc, malformed_basic_wqe);
    tcase_add_test(tc, qps_share_a_ring);
    tcase_add_test(tc, creation_checks_its_attributes);
    tcase_add_test(tc, xrc_srq_holds_its_domain_and_cq);
    tcase_add_test(tc, destruction_waits_for_the_qps);
    suite_add_tcase(suite, tc);
    return suite;
}
