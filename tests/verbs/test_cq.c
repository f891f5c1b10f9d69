/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion queues: what a completion says, arming, resizing, queues that go away. */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "tests/verbs/verbs_table.h"

#define CQE 15 /* entries asked for: 16 */
#define BUF 4096

static struct verbs_table *v;
static struct ibv_cq *send_cq, *recv_cq;
static struct table_qp *a, *b;
static struct buf *from, *to;

static void setup(void)
{
    v = verbs_table_new();
    table_use(0);
    send_cq = ibv_create_cq(v->a, CQE, NULL, NULL, 0);
    table_use(1);
    recv_cq = ibv_create_cq(v->b, CQE, NULL, NULL, 0);
    ck_assert_ptr_nonnull(send_cq);
    ck_assert_ptr_nonnull(recv_cq);
    a = table_qp_new(v, 0, send_cq, NULL, PRM_QP_ST_RC);
    b = table_qp_new(v, 1, recv_cq, NULL, PRM_QP_ST_RC);
    table_connect(v, a, b);
    from = node_buf(&v->t->a, BUF, DRV_ALL, 1);
    to = node_buf(&v->t->b, BUF, DRV_ALL, 2);
}

static void drop_qps(void)
{
    if (a) {
        table_qp_free(a);
        table_qp_free(b);
    }
    a = b = NULL;
}

static void teardown(void)
{
    drop_qps();
    ck_assert_int_eq(ibv_destroy_cq(send_cq), 0);
    ck_assert_int_eq(ibv_destroy_cq(recv_cq), 0);
    verbs_table_free(v);
}

static void post(uint8_t opcode, unsigned flags, uint32_t imm, uint64_t wr_id)
{
    struct drv_sge sge = buf_sge(from, 0, 100);
    struct drv_send send = {
        .opcode = opcode,
        .flags = flags | DRV_SIGNALED,
        .sge = &sge,
        .num_sge = 1,
        .imm = imm,
        .raddr = to->va,
        .rkey = to->mr.key,
    };

    if (opcode == PRM_WQE_OPCODE_ATOMIC_FA || opcode == PRM_WQE_OPCODE_ATOMIC_CS) {
        sge.len = 8;
    }
    table_send(a, &send, wr_id);
}

static void receive(uint64_t wr_id)
{
    struct drv_sge sge = buf_sge(to, 0, 200);

    table_recv(b, &sge, 1, wr_id);
}

static void expect_send(uint64_t wr_id, enum ibv_wc_opcode opcode)
{
    struct ibv_wc wc = table_wc(v, send_cq);

    ck_assert_uint_eq(wc.wr_id, wr_id);
    ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
    ck_assert_int_eq(wc.opcode, opcode);
    ck_assert_uint_eq(wc.qp_num, a->drv->qpn);
}

START_TEST(a_send_is_seen_on_both_sides)
{
    struct ibv_wc wc;

    receive(7);
    post(PRM_WQE_OPCODE_SEND_IMM, 0, 0x01020304, 8);
    expect_send(8, IBV_WC_SEND);
    wc = table_wc(v, recv_cq);
    ck_assert_uint_eq(wc.wr_id, 7);
    ck_assert_int_eq(wc.opcode, IBV_WC_RECV);
    ck_assert_uint_eq(wc.byte_len, 100);
    ck_assert_uint_eq(wc.wc_flags, IBV_WC_WITH_IMM);
    ck_assert_uint_eq(wc.imm_data, GUINT32_TO_BE(0x01020304));
    ck_assert_uint_eq(wc.qp_num, b->drv->qpn);
    ck_assert_uint_eq(b->hv.rq.tail, 1);
    ck_assert_uint_eq(a->hv.sq.tail, 1);
}
END_TEST

START_TEST(every_opcode_has_its_name)
{
    static const struct {
        uint8_t wqe;
        enum ibv_wc_opcode wc;
        uint32_t byte_len;
    } table[] = {
        {PRM_WQE_OPCODE_RDMA_WRITE, IBV_WC_RDMA_WRITE, 0},
        {PRM_WQE_OPCODE_RDMA_READ, IBV_WC_RDMA_READ, 100},
        {PRM_WQE_OPCODE_ATOMIC_FA, IBV_WC_FETCH_ADD, 8},
        {PRM_WQE_OPCODE_ATOMIC_CS, IBV_WC_COMP_SWAP, 8},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(table); i++) {
        struct ibv_wc wc;

        post(table[i].wqe, 0, 0, i);
        wc = table_wc(v, send_cq);
        ck_assert_uint_eq(wc.wr_id, i);
        ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
        ck_assert_int_eq(wc.opcode, table[i].wc);
        if (table[i].byte_len) {
            ck_assert_uint_eq(wc.byte_len, table[i].byte_len);
        }
    }
}
END_TEST

START_TEST(a_write_with_immediate_takes_a_receive)
{
    struct ibv_wc wc;

    receive(1);
    post(PRM_WQE_OPCODE_RDMA_WRITE_IMM, 0, 5, 2);
    wc = table_wc(v, recv_cq);
    ck_assert_int_eq(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
    ck_assert_uint_eq(wc.byte_len, 100);
    ck_assert_uint_eq(wc.wc_flags, IBV_WC_WITH_IMM);
    expect_send(2, IBV_WC_RDMA_WRITE);
}
END_TEST

/* C10-42 and after: the WQE in error completes with its cause, all others with a flush error. */
START_TEST(errors_and_flushes_have_their_status)
{
    struct drv_sge sge = buf_sge(from, 0, 100);
    struct drv_send send = {.opcode = PRM_WQE_OPCODE_RDMA_WRITE,
                            .flags = DRV_SIGNALED,
                            .sge = &sge,
                            .num_sge = 1,
                            .raddr = to->va,
                            .rkey = to->mr.key ^ 0x55};
    struct ibv_wc wc;

    table_send(a, &send, 1);
    table_send(a, &send, 2);
    wc = table_wc(v, send_cq);
    ck_assert_uint_eq(wc.wr_id, 1);
    ck_assert_int_eq(wc.status, IBV_WC_REM_ACCESS_ERR);
    wc = table_wc(v, send_cq);
    ck_assert_uint_eq(wc.wr_id, 2);
    ck_assert_int_eq(wc.status, IBV_WC_WR_FLUSH_ERR);
    ck_assert_uint_eq(wc.qp_num, a->drv->qpn);
}
END_TEST

START_TEST(sizes_are_rounded_up_and_checked)
{
    struct ibv_cq *cq;

    table_use(0);
    cq = ibv_create_cq(v->a, 16, NULL, NULL, 0);
    ck_assert_int_eq(cq->cqe, 31);
    ck_assert_int_eq(ibv_destroy_cq(cq), 0);
    cq = ibv_create_cq(v->a, 1, NULL, NULL, 0);
    ck_assert_int_eq(cq->cqe, 1);
    ck_assert_int_eq(ibv_destroy_cq(cq), 0);
    ck_assert_ptr_null(ibv_create_cq(v->a, 0, NULL, NULL, 0));
    ck_assert_int_eq(errno, EINVAL);
    ck_assert_ptr_null(ibv_create_cq(v->a, -1, NULL, NULL, 0));
    ck_assert_ptr_null(ibv_create_cq(v->a, 1 << HV_CAP(&v->hca[0], log_max_cq_sz), NULL, NULL, 0));
    ck_assert_ptr_null(ibv_create_cq(v->a, 10, NULL, NULL, 1));
    ck_assert_ptr_null(ibv_create_cq(v->a, 10, NULL, NULL, -1));
    ck_assert_int_eq(errno, EINVAL);
    v->hca[0].fail_cmd = ENOMEM;
    ck_assert_ptr_null(ibv_create_cq(v->a, 10, NULL, NULL, 0));
    ck_assert_int_eq(errno, ENOMEM);
}
END_TEST

START_TEST(a_cq_in_use_cannot_be_destroyed)
{
    g_atomic_int_inc(&hv_cq(send_cq)->users);
    ck_assert_int_eq(ibv_destroy_cq(send_cq), EBUSY);
    g_atomic_int_add(&hv_cq(send_cq)->users, -1);
}
END_TEST

/* What was not polled comes out of the new ring, in order, and what completes later behind it. */
START_TEST(a_cq_is_resized_with_completions_in_it)
{
    static const int sizes[] = {100, 10, 1000, 40, 7};
    uint64_t posted = 0, polled = 0;

    for (size_t i = 0; i < G_N_ELEMENTS(sizes); i++) {
        for (int n = 0; n < 5; n++) {
            post(PRM_WQE_OPCODE_RDMA_WRITE, 0, 0, posted++);
        }
        inproc_advance(v->t->world, SECOND);
        expect_send(polled++, IBV_WC_RDMA_WRITE);
        expect_send(polled++, IBV_WC_RDMA_WRITE);
        table_use(0);
        ck_assert_int_eq(ibv_resize_cq(send_cq, sizes[i]), 0);
        ck_assert_int_ge(send_cq->cqe, sizes[i]);
        ck_assert_int_lt(send_cq->cqe, 2 * sizes[i]);
        post(PRM_WQE_OPCODE_RDMA_WRITE, 0, 0, posted++);
        while (polled < posted) {
            expect_send(polled++, IBV_WC_RDMA_WRITE);
        }
    }
}
END_TEST

START_TEST(a_cq_does_not_shrink_below_what_is_in_it)
{
    for (int n = 0; n < 10; n++) {
        post(PRM_WQE_OPCODE_RDMA_WRITE, 0, 0, (uint64_t)n);
    }
    inproc_advance(v->t->world, SECOND);
    ck_assert_int_ne(ibv_resize_cq(send_cq, 3), 0);
    ck_assert_int_eq(send_cq->cqe, CQE);
    ck_assert_int_eq(ibv_resize_cq(send_cq, -1), EINVAL);
    ck_assert_int_eq(ibv_resize_cq(send_cq, 0), EINVAL);
    for (int n = 0; n < 10; n++) {
        expect_send((uint64_t)n, IBV_WC_RDMA_WRITE);
    }
}
END_TEST

static bool comp_event(struct node *node, uint32_t cqn)
{
    struct drv_event event;

    return drv_wait_event(node->drv, PRM_EVENT_TYPE_COMP, cqn, &event, SECOND);
}

/* 11.4.2.2: one event for the first completion after the request, none before. */
START_TEST(an_armed_cq_makes_one_event)
{
    uint32_t cqn = hv_cq(send_cq)->cqn;

    post(PRM_WQE_OPCODE_RDMA_WRITE, 0, 0, 0);
    ck_assert(!comp_event(&v->t->a, cqn));
    expect_send(0, IBV_WC_RDMA_WRITE);
    for (unsigned round = 0; round < 6; round++) {
        ck_assert_int_eq(ibv_req_notify_cq(send_cq, 0), 0);
        post(PRM_WQE_OPCODE_RDMA_WRITE, 0, 0, 1);
        post(PRM_WQE_OPCODE_RDMA_WRITE, 0, 0, 2);
        ck_assert(comp_event(&v->t->a, cqn));
        hv_cq(send_cq)->arm_sn++; /* ibv_get_cq_event() */
        ck_assert(!comp_event(&v->t->a, cqn));
        expect_send(1, IBV_WC_RDMA_WRITE);
        expect_send(2, IBV_WC_RDMA_WRITE);
    }
}
END_TEST

/* Programs arm before they poll; what the last event was about is not told again. */
START_TEST(a_cq_armed_before_it_is_polled_waits_for_new_completions)
{
    uint32_t cqn = hv_cq(send_cq)->cqn;

    ck_assert_int_eq(ibv_req_notify_cq(send_cq, 0), 0);
    post(PRM_WQE_OPCODE_RDMA_WRITE, 0, 0, 1);
    ck_assert(comp_event(&v->t->a, cqn));
    hv_cq(send_cq)->arm_sn++; /* ibv_get_cq_event() */
    ck_assert_int_eq(ibv_req_notify_cq(send_cq, 0), 0);
    ck_assert(!comp_event(&v->t->a, cqn));
    post(PRM_WQE_OPCODE_RDMA_WRITE, 0, 0, 2);
    ck_assert(comp_event(&v->t->a, cqn));
    hv_cq(send_cq)->arm_sn++;
    post(PRM_WQE_OPCODE_RDMA_WRITE, 0, 0, 3); /* after the event, before the request */
    ck_assert_int_eq(ibv_req_notify_cq(send_cq, 0), 0);
    ck_assert(comp_event(&v->t->a, cqn));
}
END_TEST

START_TEST(a_cq_armed_for_solicited_ones_waits_for_one)
{
    uint32_t cqn = hv_cq(recv_cq)->cqn;

    ck_assert_int_eq(ibv_req_notify_cq(recv_cq, 1), 0);
    receive(1);
    receive(2);
    post(PRM_WQE_OPCODE_SEND, 0, 0, 1);
    ck_assert(!comp_event(&v->t->b, cqn));
    post(PRM_WQE_OPCODE_SEND, DRV_SOLICITED, 0, 2);
    ck_assert(comp_event(&v->t->b, cqn));
}
END_TEST

START_TEST(moderation_is_checked)
{
    struct ibv_modify_cq_attr attr = {.attr_mask = IBV_CQ_ATTR_MODERATE,
                                      .moderate = {.cq_count = 4, .cq_period = 100}};

    ck_assert_int_eq(ibv_modify_cq(send_cq, &attr), 0);
    attr.moderate.cq_period = 0x1000;
    ck_assert_int_eq(ibv_modify_cq(send_cq, &attr), EINVAL);
    attr.attr_mask = 0;
    ck_assert_int_eq(ibv_modify_cq(send_cq, &attr), EINVAL);
    attr.attr_mask = 2;
    ck_assert_int_eq(ibv_modify_cq(send_cq, &attr), EOPNOTSUPP);
}
END_TEST

/* mlx5_cq_clean(): what is left is in order, and nothing of the old queue is. */
START_TEST(completions_of_a_queue_that_is_gone_are_gone)
{
    struct table_qp *a2 = table_qp_new(v, 0, send_cq, NULL, PRM_QP_ST_RC);
    struct table_qp *b2 = table_qp_new(v, 1, recv_cq, NULL, PRM_QP_ST_RC);
    struct drv_sge sge = buf_sge(from, 0, 100);
    struct drv_send send = {.opcode = PRM_WQE_OPCODE_RDMA_WRITE,
                            .flags = DRV_SIGNALED,
                            .sge = &sge,
                            .num_sge = 1,
                            .raddr = to->va,
                            .rkey = to->mr.key};
    struct ibv_wc wc;

    table_connect(v, a2, b2);
    for (uint64_t i = 0; i < 5; i++) {
        table_send(a, &send, i);
        inproc_advance(v->t->world, SECOND);
        table_send(a2, &send, 100 + i);
        inproc_advance(v->t->world, SECOND);
    }
    table_qp_free(a2);
    for (uint64_t i = 0; i < 5; i++) {
        expect_send(i, IBV_WC_RDMA_WRITE);
    }
    ck_assert_int_eq(ibv_poll_cq(send_cq, 1, &wc), 0);
    /* the entries are free again: more than a round of the ring */
    for (uint64_t i = 0; i < 3 * CQE; i++) {
        table_send(a, &send, i);
        expect_send(i, IBV_WC_RDMA_WRITE);
    }
    table_qp_free(b2);
}
END_TEST

/* -- extended CQs -------------------------------------------------------------------------------
 */

START_TEST(extended_polling_reads_the_same)
{
    struct ibv_cq_init_attr_ex attr = {
        .cqe = CQE,
        .wc_flags = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP,
    };
    struct ibv_poll_cq_attr poll = {0};
    struct ibv_cq_ex *ex;
    struct table_qp *peer;
    uint64_t before = 0;

    table_use(1);
    ex = ibv_create_cq_ex(v->b, &attr);
    ck_assert_ptr_nonnull(ex);
    ck_assert_int_eq(ibv_start_poll(ex, &poll), ENOENT);
    drop_qps();
    a = table_qp_new(v, 0, send_cq, NULL, PRM_QP_ST_RC);
    b = peer = table_qp_new(v, 1, ibv_cq_ex_to_cq(ex), NULL, PRM_QP_ST_RC);
    table_connect(v, a, b);
    receive(11);
    receive(12);
    post(PRM_WQE_OPCODE_SEND_IMM, 0, 0x99, 1);
    post(PRM_WQE_OPCODE_RDMA_WRITE_IMM, 0, 0x77, 2);
    inproc_advance(v->t->world, SECOND);
    ck_assert_int_eq(ibv_start_poll(ex, &poll), 0);
    ck_assert_uint_eq(ex->wr_id, 11);
    ck_assert_int_eq(ex->status, IBV_WC_SUCCESS);
    ck_assert_int_eq(ibv_wc_read_opcode(ex), IBV_WC_RECV);
    ck_assert_uint_eq(ibv_wc_read_byte_len(ex), 100);
    ck_assert_uint_eq(ibv_wc_read_imm_data(ex), GUINT32_TO_BE(0x99));
    ck_assert_uint_eq(ibv_wc_read_wc_flags(ex), IBV_WC_WITH_IMM);
    ck_assert_uint_eq(ibv_wc_read_qp_num(ex), b->drv->qpn);
    before = ibv_wc_read_completion_ts(ex);
    ck_assert_uint_gt(before, 0);
    ck_assert_int_eq(ibv_next_poll(ex), 0);
    ck_assert_uint_eq(ex->wr_id, 12);
    ck_assert_int_eq(ibv_wc_read_opcode(ex), IBV_WC_RECV_RDMA_WITH_IMM);
    ck_assert_uint_ge(ibv_wc_read_completion_ts(ex), before);
    ck_assert_int_eq(ibv_next_poll(ex), ENOENT);
    ibv_end_poll(ex);
    poll.comp_mask = 1;
    ck_assert_int_eq(ibv_start_poll(ex, &poll), EINVAL);
    drop_qps();
    ck_assert_int_eq(ibv_destroy_cq(ibv_cq_ex_to_cq(ex)), 0);
}
END_TEST

START_TEST(extended_attributes_are_checked)
{
    struct ibv_cq_init_attr_ex attr = {.cqe = CQE, .comp_mask = 1u << 7};

    ck_assert_ptr_null(ibv_create_cq_ex(v->a, &attr));
    ck_assert_int_eq(errno, EINVAL);
    attr.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS;
    attr.flags = 1u << 9;
    ck_assert_ptr_null(ibv_create_cq_ex(v->a, &attr));
    ck_assert_int_eq(errno, EINVAL);
    attr.flags = 0;
    attr.wc_flags = 1ull << 40;
    ck_assert_ptr_null(ibv_create_cq_ex(v->a, &attr));
    ck_assert_int_eq(errno, EOPNOTSUPP);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("cq");
    Suite *suite = suite_create("verbs-cq");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, a_send_is_seen_on_both_sides);
    tcase_add_test(tc, every_opcode_has_its_name);
    tcase_add_test(tc, a_write_with_immediate_takes_a_receive);
    tcase_add_test(tc, errors_and_flushes_have_their_status);
    tcase_add_test(tc, sizes_are_rounded_up_and_checked);
    tcase_add_test(tc, a_cq_in_use_cannot_be_destroyed);
    tcase_add_test(tc, a_cq_is_resized_with_completions_in_it);
    tcase_add_test(tc, a_cq_does_not_shrink_below_what_is_in_it);
    tcase_add_test(tc, an_armed_cq_makes_one_event);
    tcase_add_test(tc, a_cq_armed_before_it_is_polled_waits_for_new_completions);
    tcase_add_test(tc, a_cq_armed_for_solicited_ones_waits_for_one);
    tcase_add_test(tc, moderation_is_checked);
    tcase_add_test(tc, completions_of_a_queue_that_is_gone_are_gone);
    tcase_add_test(tc, extended_polling_reads_the_same);
    tcase_add_test(tc, extended_attributes_are_checked);
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
