/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests Ethernet receive queues that take their WQEs from a receive memory pool (RMP), which DPDK
 * calls shared receive queues (mlx5_devx_rq_shared_create()).
 */
#include <check.h>
#include <string.h>
#include "model/eth/eth_delay.h"
#include "model/eth/eth_queue.h"
#include "model/queue/q_counter.h"
#include "model/queue/srq.h"
#include "model/steering/steering.h"
#include "tests/unit/eth_bench.h"
#include "tests/unit/suite.h"

enum {
    LOG_SIZE = 3,
    LOG_STRIDE = 5,
    SLOTS = 1 << LOG_SIZE,
    FRAME = 100,
    ROOM = 200, /* bytes of a WQE */
    BAD_KEY = 0x777700,
};

static struct bench *b;
static struct srq *rmp;
static struct bench_queue rq[2]; /* both take WQEs from rmp */
static uint32_t tirn[2], counter_set;
static uint8_t *ring;
static uint64_t dbr;
static uint16_t posted;
static uint64_t memory[SLOTS];

static void new_rmp(enum srq_form form, uint16_t uid, struct srq **out)
{
    struct srq_attr attr = {
        .uid = uid,
        .kind = OBJ_RMP,
        .pdn = uid ? b->rig.user_pdn : b->rig.pdn,
        .log_size = LOG_SIZE,
        .log_stride = LOG_STRIDE,
        .form = form,
    };

    ring = rig_ring(&b->rig, 1 << (LOG_SIZE + LOG_STRIDE), &attr.buf);
    dbr = bench_mem(b, NULL, 8);
    attr.dbr = dbr;
    posted = 0;
    ck_assert_int_eq(srq_create(&b->rig.hca, &attr, out), SYN_OK);
}

/* Makes an RQ as DPDK does: its work queue is all zeros. */
static enum syn try_rq(uint16_t uid, uint32_t rmpn, const struct prm_rqc *more,
                       struct bench_queue *out)
{
    struct prm_rqc rqc[1] = {0};
    struct mem_buf none = {0};

    if (more) {
        memcpy(rqc, more, sizeof(rqc));
    }
    PRM_SET(rqc, rqc, mem_rq_type, PRM_RQC_MEM_RQ_TYPE_MEMORY_RQ_RMP);
    PRM_SET(rqc, rqc, rmpn, rmpn);
    PRM_SET(rqc, rqc, cqn, out->cqn);
    PRM_SET(rqc, rqc, rlky, 1);
    PRM_SET(rqc, rqc, counter_set_id, counter_set);
    PRM_SET(rqc, rqc, user_index, BENCH_RQ_INDEX + (out == &rq[1]));
    return eth_rq_create(&b->rig.hca, uid, rqc, &none, 0, &out->num);
}

static void new_rq(struct bench_queue *out, const struct prm_rqc *more)
{
    struct bench_queue plain;

    bench_rq_new(b, NULL, &plain); /* for its CQ */
    *out = plain;
    ck_assert_int_eq(try_rq(0, rmp->obj.num, more, out), SYN_OK);
    ck_assert_int_eq(bench_rq_move(out, PRM_RQC_STATE_RST, PRM_RQC_STATE_RDY), SYN_OK);
}

static void make(enum srq_form form)
{
    b = bench_new();
    ck_assert_int_eq(q_counter_alloc(&b->rig.hca, 0, &counter_set), SYN_OK);
    new_rmp(form, 0, &rmp);
    for (unsigned i = 0; i < 2; i++) {
        new_rq(&rq[i], NULL);
        tirn[i] = bench_direct_tir(b, rq[i].num);
    }
}

static void setup(void)
{
    make(SRQ_RING_BASIC);
}

static void teardown(void)
{
    bench_free(b);
}

/* Posts a WQE of one segment, and ends its list. */
static void post_key(uint32_t key)
{
    unsigned slot = posted % SLOTS;
    bool is_basic = rmp->attr.form == SRQ_RING_BASIC;
    void *seg = ring + ((size_t)slot << LOG_STRIDE) + (is_basic ? 0 : 16);

    memory[slot] = bench_mem(b, NULL, ROOM);
    PRM_SET(wqe_data_seg, seg, byte_count, ROOM);
    PRM_SET(wqe_data_seg, seg, lkey, key);
    PRM_SET(wqe_data_seg, seg, addr, memory[slot]);
    if (is_basic) {
        PRM_SET(wqe_data_seg, seg + 16, lkey, WQE_TERMINATOR_LKEY);
    } else {
        PRM_SET(wqe_srq_next_seg, seg - 16, next_wqe_index, (slot + 3) % SLOTS);
    }
    posted++;
    PRM_SET(srq_dbr, fake_host_ptr(&b->rig.host, dbr, 4), counter, posted);
}

static void post(void)
{
    post_key(b->rig.hca.resd_lkey);
}

/* A frame comes to one of the queues. */
static void come_long(unsigned to, uint8_t mark, size_t len)
{
    uint8_t frame[ROOM + 1];

    memset(frame, mark, sizeof(frame));
    memcpy(frame, bench_mac, 6);
    prm_store16(frame + 12, 0x88b5);
    bench_catch_all(b, tirn[to]);
    bench_rx(b, frame, len);
}

static void come(unsigned to, uint8_t mark)
{
    come_long(to, mark, FRAME);
}

/* Expects a frame in this slot, whose CQE has this counter. */
static void expect(unsigned at, uint16_t counter, unsigned slot, uint8_t mark)
{
    const struct prm_cqe64 *cqe = bench_cqe(&rq[at]);

    ck_assert_ptr_nonnull(cqe);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, opcode), PRM_CQE_OPCODE_RESP_SEND);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, wqe_counter), counter);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, srqn), BENCH_RQ_INDEX + at);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, byte_cnt), FRAME);
    ck_assert_uint_eq(*(uint8_t *)fake_host_ptr(&b->rig.host, memory[slot] + FRAME - 1, 1), mark);
}

static struct q_counter *counters(void)
{
    return q_counter_get(&b->rig.hca, counter_set);
}

START_TEST(queues_of_a_pool_take_its_wqes_in_turn)
{
    for (unsigned i = 0; i < 3 * SLOTS; i++) {
        post();
        come(i % 3 == 1, (uint8_t)i);
        expect(i % 3 == 1, (uint16_t)i, i % SLOTS, (uint8_t)i);
    }
    bench_expect_none(&rq[0]);
    bench_expect_none(&rq[1]);
    ck_assert_uint_eq(counters()->out_of_buffer, 0);
}
END_TEST

/* A linked list names its next slot itself. */
START_TEST(a_pool_may_be_a_list)
{
    static const uint8_t order[] = {0, 3, 6, 1};

    bench_free(b);
    make(SRQ_LIST);
    for (unsigned i = 0; i < SLOTS; i++) {
        post();
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(order); i++) {
        come(i % 2, (uint8_t)(0x40 + i));
        expect(i % 2, order[i], order[i], (uint8_t)(0x40 + i));
    }
}
END_TEST

START_TEST(an_empty_pool_drops_and_counts)
{
    come(0, 1);
    come(1, 2);
    ck_assert_uint_eq(counters()->out_of_buffer, 2);
    post();
    come(1, 3);
    expect(1, 0, 0, 3);
    ck_assert_uint_eq(counters()->out_of_buffer, 2);
}
END_TEST

/* The WQE stays for the next frame, of whichever queue. */
START_TEST(a_frame_that_is_too_long_uses_up_no_wqe)
{
    post();
    come_long(0, 1, ROOM + 1);
    ck_assert_uint_eq(b->rig.hca.vport->counters.rx_wqe_too_small, 1);
    bench_expect_none(&rq[0]);
    come(1, 2);
    expect(1, 0, 0, 2);
}
END_TEST

START_TEST(the_limit_of_the_pool_raises_its_event)
{
    const struct prm_eqe *eqe;

    post();
    post();
    ck_assert_int_eq(srq_arm(&b->rig.hca, rmp, 2), SYN_OK);
    ck_assert_ptr_null(rig_eq_peek(&b->rig, &b->eq));
    come(0, 1);
    eqe = rig_eq_next(&b->rig, &b->eq);
    ck_assert_ptr_nonnull(eqe);
    ck_assert_uint_eq(PRM_GET(eqe, eqe, event_type), PRM_EVENT_TYPE_SRQ_RQ_LIMIT);
    expect(0, 0, 0, 1);
}
END_TEST

/* Only the queue whose frame found the WQE fails. Its WQE is used up. */
START_TEST(a_wqe_without_access_fails_one_queue)
{
    post_key(BAD_KEY);
    post();
    come(0, 1);
    bench_expect(&rq[0], PRM_CQE_OPCODE_RESP_ERR, PRM_CQE_SYNDROME_LOCAL_PROT_ERR, 0);
    bench_expect_none(&rq[0]); /* WQEs of the pool are not flushed */
    ck_assert(!rmp->error);
    come(0, 2);
    bench_expect_none(&rq[0]);
    come(1, 3);
    expect(1, 1, 1, 3);
}
END_TEST

START_TEST(a_queue_in_error_flushes_nothing_of_the_pool)
{
    struct prm_rqc rqc[1] = {0};
    uint64_t reads;

    PRM_SET(rqc, rqc, flush_in_error_en, 1);
    new_rq(&rq[0], rqc);
    post();
    bench_run(b);
    reads = b->rig.host.reads;
    ck_assert_int_eq(bench_rq_move(&rq[0], PRM_RQC_STATE_RDY, PRM_RQC_STATE_ERR), SYN_OK);
    bench_run(b);
    bench_expect_none(&rq[0]);
    ck_assert_uint_eq(b->rig.host.reads, reads); /* it has no doorbell record */
    come(1, 3);
    expect(1, 0, 0, 3);
}
END_TEST

/* The pool's counter claims more WQEs than the pool holds. */
START_TEST(a_broken_pool_fails_its_queues)
{
    const struct prm_eqe *eqe;

    PRM_SET(srq_dbr, fake_host_ptr(&b->rig.host, dbr, 4), counter, SLOTS + 1);
    come(0, 1);
    eqe = rig_eq_next(&b->rig, &b->eq);
    ck_assert_ptr_nonnull(eqe);
    ck_assert_uint_eq(PRM_GET(eqe, eqe, event_type), PRM_EVENT_TYPE_SRQ_CATAS_ERROR);
    bench_expect_fatal(&rq[0], PRM_EVENT_QUEUE_TYPE_RQ);
    come(1, 2);
    bench_expect_fatal(&rq[1], PRM_EVENT_QUEUE_TYPE_RQ);
    ck_assert_ptr_null(rig_eq_peek(&b->rig, &b->eq));
}
END_TEST

START_TEST(frames_may_wait_for_wqes_of_the_pool)
{
    struct prm_rqc rqc[1] = {0};

    PRM_SET(rqc, rqc, delay_drop_en, 1);
    new_rq(&rq[0], rqc);
    tirn[0] = bench_direct_tir(b, rq[0].num);
    eth_delay_set(&b->rig.hca, 50);
    come(0, 1);
    post();
    rig_advance(&b->rig, ETH_DELAY_UNIT_NS);
    expect(0, 0, 0, 1);
    ck_assert_uint_eq(counters()->out_of_buffer, 0);
}
END_TEST

START_TEST(a_pool_ends_after_its_queues)
{
    struct hca *hca = &b->rig.hca;
    uint32_t num = rmp->obj.num;
    struct bench_queue last = {.bench = b, .cqn = rq[0].cqn};

    ck_assert_int_eq(try_rq(0, num, NULL, &last), SYN_OK);
    ck_assert_int_eq(srq_destroy(hca, 0, num, OBJ_RMP), SYN_IN_USE);
    ck_assert_uint_eq(rmp->obj.refs, 3);
    ck_assert_int_eq(eth_rq_destroy(hca, 0, last.num), SYN_OK);
    ck_assert_uint_eq(rmp->obj.refs, 2);
    hca_reset(hca);
    ck_assert_ptr_null(srq_find(hca, num));
}
END_TEST

START_TEST(what_is_not_a_pool_of_the_user_is_refused)
{
    struct bench_queue out = {.bench = b, .cqn = rq[0].cqn};
    struct prm_rqc rqc[1] = {0};
    struct srq *users, *list;
    struct srq_attr attr = rmp->attr;

    ck_assert_int_eq(try_rq(0, 0, NULL, &out), SYN_SRQ_NUM);
    ck_assert_int_eq(try_rq(0, rmp->obj.num + 1, NULL, &out), SYN_SRQ_NUM);
    attr.kind = OBJ_SRQ;
    rig_ring(&b->rig, 1 << (LOG_SIZE + LOG_STRIDE), &attr.buf);
    ck_assert_int_eq(srq_create(&b->rig.hca, &attr, &list), SYN_OK);
    ck_assert_int_eq(try_rq(0, list->obj.num, NULL, &out), SYN_SRQ_NUM);
    new_rmp(SRQ_RING_BASIC, RIG_USER, &users);
    ck_assert_int_eq(try_rq(0, users->obj.num, NULL, &out), SYN_OK);
    cq_obj(cq_find(&b->rig.hca, out.cqn))->uid = RIG_USER;
    ck_assert_int_eq(try_rq(RIG_USER, users->obj.num, NULL, &out), SYN_OK);
    ck_assert_int_eq(try_rq(RIG_USER, rmp->obj.num, NULL, &out), SYN_BAD_UID);
    PRM_SET(rqc, rqc, hairpin, 1);
    ck_assert_int_eq(try_rq(0, rmp->obj.num, rqc, &out), SYN_ETH_WQ);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("eth_rmp");
    TCase *tc = tcase_create("pool");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, queues_of_a_pool_take_its_wqes_in_turn);
    tcase_add_test(tc, a_pool_may_be_a_list);
    tcase_add_test(tc, an_empty_pool_drops_and_counts);
    tcase_add_test(tc, a_frame_that_is_too_long_uses_up_no_wqe);
    tcase_add_test(tc, the_limit_of_the_pool_raises_its_event);
    tcase_add_test(tc, a_wqe_without_access_fails_one_queue);
    tcase_add_test(tc, a_queue_in_error_flushes_nothing_of_the_pool);
    tcase_add_test(tc, a_broken_pool_fails_its_queues);
    tcase_add_test(tc, frames_may_wait_for_wqes_of_the_pool);
    tcase_add_test(tc, a_pool_ends_after_its_queues);
    tcase_add_test(tc, what_is_not_a_pool_of_the_user_is_refused);
    suite_add_tcase(suite, tc);
    return suite;
}
