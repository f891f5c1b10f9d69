/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests shared receive queues: posting, consuming in any order, limits, XRC. */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "guest-lib/verbs/user/cq.h"
#include "tests/unit/suite.h"
#include "tests/verbs/verbs_table.h"

#define CQE 63
#define WRS 7 /* a power of two minus one: one gets what one asks for */

static struct verbs_table *v;
static struct ibv_cq *send_cq, *recv_cq;
static struct ibv_pd *pd;
static struct ibv_srq *srq;
static struct ibv_qp *a[2], *b[2];
static struct ibv_mr *from, *to;

static void setup(void)
{
    struct ibv_srq_init_attr attr = {.attr = {.max_wr = WRS, .max_sge = 2}};

    v = verbs_table_new();
    pd = v->hosts->host[1].pd;
    send_cq = ibv_create_cq(v->a, CQE, NULL, NULL, 0);
    recv_cq = ibv_create_cq(v->b, CQE, NULL, NULL, 0);
    srq = ibv_create_srq(pd, &attr);
    ck_assert_ptr_nonnull(srq);
    ck_assert_uint_eq(attr.attr.max_wr, WRS);
    ck_assert_uint_ge(attr.attr.max_sge, 2);
    from = table_mr_new(v, 0);
    to = table_mr_new(v, 1);
    for (int i = 0; i < 2; i++) {
        a[i] = table_qp_new(v, 0, send_cq, NULL);
        b[i] = table_qp_new(v, 1, recv_cq, srq);
        table_connect(v, a[i], b[i]);
    }
}

static void teardown(void)
{
    for (int i = 0; i < 2; i++) {
        table_qp_free(a[i]);
        table_qp_free(b[i]);
    }
    ck_assert_int_eq(ibv_destroy_srq(srq), 0);
    table_mr_free(from);
    table_mr_free(to);
    ck_assert_int_eq(ibv_destroy_cq(send_cq), 0);
    ck_assert_int_eq(ibv_destroy_cq(recv_cq), 0);
    verbs_table_free(v);
}

static int post(uint64_t wr_id, size_t offset)
{
    struct ibv_sge sge = {.addr = (uintptr_t)to->addr + offset, .length = 100, .lkey = to->lkey};
    struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1}, *bad = NULL;
    int err = ibv_post_srq_recv(srq, &wr, &bad);

    ck_assert(!err == !bad);
    return err;
}

static void send_from(int i)
{
    struct ibv_sge sge = {.addr = (uintptr_t)from->addr, .length = 64, .lkey = from->lkey};
    struct ibv_send_wr wr = {
        .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
    struct ibv_send_wr *bad;

    ck_assert_int_eq(ibv_post_send(a[i], &wr, &bad), 0);
    ck_assert_int_eq(table_wc(v, send_cq).status, IBV_WC_SUCCESS);
}

static void expect(uint64_t wr_id, int qp)
{
    struct ibv_wc wc = table_wc(v, recv_cq);

    ck_assert_uint_eq(wc.wr_id, wr_id);
    ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
    ck_assert_int_eq(wc.opcode, IBV_WC_RECV);
    ck_assert_uint_eq(wc.byte_len, 64);
    ck_assert_uint_eq(wc.qp_num, b[qp]->qp_num);
}

START_TEST(queues_take_in_turn_what_was_posted)
{
    for (uint64_t round = 0; round < 5 * WRS; round++) {
        ck_assert_int_eq(post(round, 0), 0);
        send_from(round & 1);
        expect(round, round & 1);
    }
    ck_assert_int_eq(memcmp(to->addr, from->addr, 64), 0);
}
END_TEST

START_TEST(a_full_queue_takes_no_more)
{
    for (uint64_t i = 0; i < WRS; i++) {
        ck_assert_int_eq(post(i, 128 * i), 0);
    }
    ck_assert_int_eq(post(99, 0), ENOMEM);
    send_from(0);
    expect(0, 0);
    ck_assert_int_eq(post(WRS, 0), 0);
    ck_assert_int_eq(post(99, 0), ENOMEM);
    for (uint64_t i = 1; i <= WRS; i++) {
        send_from(0);
        expect(i, 0);
    }
}
END_TEST

START_TEST(a_list_is_posted_up_to_the_first_bad_one)
{
    struct ibv_sge sge[64] = {{.addr = (uintptr_t)to->addr, .length = 100, .lkey = to->lkey}};
    struct ibv_recv_wr bad = {.wr_id = 2, .sg_list = sge, .num_sge = 64};
    struct ibv_recv_wr good = {.wr_id = 1, .next = &bad, .sg_list = sge, .num_sge = 1};
    struct ibv_recv_wr *which = NULL;

    ck_assert_int_eq(ibv_post_srq_recv(srq, &good, &which), EINVAL);
    ck_assert_ptr_eq(which, &bad);
    send_from(1);
    expect(1, 1);
}
END_TEST

/* 11.2.3.3 of the verbs chapter: the limit event is raised once, when fewer than limit are left;
 * then it is disarmed. */
START_TEST(the_limit_makes_one_event)
{
    struct ibv_srq_attr attr = {.srq_limit = 3};
    struct ibv_async_event event;

    for (uint64_t i = 0; i < 5; i++) {
        ck_assert_int_eq(post(i, 0), 0);
    }
    ck_assert_int_eq(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT), 0);
    ck_assert_int_eq(ibv_query_srq(srq, &attr), 0);
    ck_assert_uint_eq(attr.srq_limit, 3);
    ck_assert_uint_eq(attr.max_wr, 2 * WRS + 1); /* the kernel's value, which is the whole ring */
    for (int i = 0; i < 3; i++) {
        send_from(0);
    }
    table_wait(v);
    ck_assert_int_eq(ibv_get_async_event(v->b, &event), 0);
    ck_assert_int_eq(event.event_type, IBV_EVENT_SRQ_LIMIT_REACHED);
    ck_assert_ptr_eq(event.element.srq, srq);
    ibv_ack_async_event(&event);
    ck_assert_int_eq(ibv_get_async_event(v->b, &event), -1);
    ck_assert_int_eq(errno, EAGAIN);
    ck_assert_int_eq(ibv_query_srq(srq, &attr), 0);
    ck_assert_uint_eq(attr.srq_limit, 0);
    attr.srq_limit = 2 * WRS + 1; /* limits are checked against it, too */
    ck_assert_int_eq(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT), 0);
    attr.srq_limit = 2 * WRS + 2;
    ck_assert_int_eq(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT), EINVAL);
    ck_assert_int_eq(ibv_modify_srq(srq, &attr, 0), 0);
    ck_assert_int_eq(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR), EINVAL);
}
END_TEST

/* A QP that is destroyed gives back the WQEs of its unpolled completions. */
START_TEST(wqes_of_unpolled_completions_come_back)
{
    for (uint64_t i = 0; i < WRS; i++) {
        ck_assert_int_eq(post(i, 0), 0);
    }
    for (int i = 0; i < WRS; i++) {
        send_from(0);
    }
    table_qp_free(b[0]);
    b[0] = table_qp_new(v, 1, recv_cq, srq);
    for (uint64_t i = 0; i < WRS; i++) {
        ck_assert_int_eq(post(100 + i, 0), 0);
    }
    ck_assert_int_eq(post(99, 0), ENOMEM);
    send_from(1);
    expect(100, 1);
}
END_TEST

START_TEST(sizes_are_checked)
{
    struct ibv_srq_init_attr attr = {
        .attr = {.max_wr = 1u << HV_CAP(v->hca[1], log_max_srq_sz), .max_sge = 1}};

    ck_assert_ptr_null(ibv_create_srq(pd, &attr));
    ck_assert_int_eq(errno, EINVAL);
    attr.attr.max_wr = 1;
    attr.attr.max_sge = HV_CAP(v->hca[1], max_wqe_sz_rq) / 16 + 1;
    ck_assert_ptr_null(ibv_create_srq(pd, &attr));
    ck_assert_int_eq(errno, EINVAL);
    attr.attr.max_sge = 1;
    table_refuse(v, 1, PRM_CMD_STATUS_LIM_ERR);
    ck_assert_ptr_null(ibv_create_srq(pd, &attr));
    ck_assert_int_eq(errno, ENOMEM);
}
END_TEST

START_TEST(an_xrc_srq_holds_its_domain_and_cq)
{
    struct ibv_xrcd_init_attr xrcd_attr = {
        .comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = -1};
    struct ibv_xrcd *xrcd = ibv_open_xrcd(v->b, &xrcd_attr);
    struct ibv_srq_init_attr_ex attr = {
        .attr = {.max_wr = 10, .max_sge = 1},
        .comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD |
                     IBV_SRQ_INIT_ATTR_CQ,
        .srq_type = IBV_SRQT_XRC,
        .pd = pd,
        .xrcd = xrcd,
        .cq = recv_cq,
    };
    struct ibv_srq *xsrq = ibv_create_srq_ex(v->b, &attr);
    struct ibv_srq_attr limit = {.srq_limit = 2};
    uint32_t num = 0;

    ck_assert_ptr_nonnull(xsrq);
    ck_assert_uint_eq(attr.attr.max_wr, 15);
    ck_assert_int_eq(ibv_get_srq_num(xsrq, &num), 0);
    ck_assert_uint_eq(num, hv_srq(xsrq)->srqn);
    ck_assert_int_eq(ibv_close_xrcd(xrcd), EBUSY);
    ck_assert_int_eq(ibv_destroy_cq(recv_cq), EBUSY);
    ck_assert_int_eq(ibv_modify_srq(xsrq, &limit, IBV_SRQ_LIMIT), 0);
    ck_assert_int_eq(ibv_query_srq(xsrq, &limit), 0);
    ck_assert_int_eq(ibv_destroy_srq(xsrq), 0);
    ck_assert_int_eq(ibv_close_xrcd(xrcd), 0);
    attr.comp_mask &= ~(uint32_t)IBV_SRQ_INIT_ATTR_CQ;
    ck_assert_ptr_null(ibv_create_srq_ex(v->b, &attr));
    ck_assert_int_eq(errno, EINVAL);
}
END_TEST

/* libmlx5's mlx5_complete_odp_fault(): the device gives a receive back whose pages are missing. The
 * program does not hear of it, and the receive is posted again. The device has such a CQE by the
 * rule "receive returned" alone, so the test writes it. */
static void give_back(uint16_t index)
{
    struct user_cq *cq = user_cq(recv_cq);
    struct prm_err_cqe *cqe =
        (void *)(cq->ring + (size_t)(cq->ci & ((1u << cq->log_size) - 1)) * 64);

    memset(cqe, 0, sizeof(*cqe));
    PRM_SET(err_cqe, cqe, syndrome, PRM_CQE_SYNDROME_REMOTE_ABORTED_ERR);
    PRM_SET(err_cqe, cqe, vendor_err_synd, 0x93);
    PRM_SET(err_cqe, cqe, srqn, (uint32_t)hv_qp(b[0])->uidx);
    PRM_SET(err_cqe, cqe, wqe_counter, index);
    PRM_SET(err_cqe, cqe, opcode, PRM_CQE_OPCODE_RESP_ERR);
    PRM_SET(err_cqe, cqe, owner, cq->ci >> cq->log_size & 1);
}

START_TEST(a_receive_whose_pages_are_missing_is_posted_again)
{
    struct hv_srq *s = hv_srq(srq);
    uint16_t given = (uint16_t)s->head;
    struct ibv_wc wc;

    ck_assert_uint_gt(s->ring_cnt, s->wqe_cnt);
    ck_assert_int_eq(post(77, 300), 0);
    for (unsigned round = 1; round <= 5 * s->ring_cnt; round++) {
        uint16_t again = (uint16_t)s->head;
        const struct prm_wqe_data_seg *seg =
            (void *)(s->ring + ((size_t)again << s->wqe_shift) + PRM_SIZE(wqe_srq_next_seg));

        give_back(given);
        ck_assert_int_eq(ibv_poll_cq(recv_cq, 1, &wc), 0);
        ck_assert_uint_ne(again, given);
        ck_assert_uint_eq(s->rest_tail, given);
        ck_assert_uint_eq(s->counter, (uint16_t)(round + 1));
        ck_assert_uint_eq(s->wrid[again], 77);
        ck_assert_uint_eq(PRM_GET(wqe_data_seg, seg, addr), (uintptr_t)to->addr + 300);
        given = again;
    }
    /* as many receives fit as before */
    for (unsigned i = 1; i < WRS; i++) {
        ck_assert_int_eq(post(i, 0), 0);
    }
    ck_assert_int_eq(post(0, 0), ENOMEM);
    give_back((uint16_t)s->ring_cnt);
    ck_assert_int_lt(ibv_poll_cq(recv_cq, 1, &wc), 0);
}
END_TEST

Suite *unit_suite(void)
{
    TCase *tc = tcase_create("srq");
    Suite *suite = suite_create("verbs-srq");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, queues_take_in_turn_what_was_posted);
    tcase_add_test(tc, a_full_queue_takes_no_more);
    tcase_add_test(tc, a_list_is_posted_up_to_the_first_bad_one);
    tcase_add_test(tc, the_limit_makes_one_event);
    tcase_add_test(tc, wqes_of_unpolled_completions_come_back);
    tcase_add_test(tc, sizes_are_checked);
    tcase_add_test(tc, an_xrc_srq_holds_its_domain_and_cq);
    tcase_add_test(tc, a_receive_whose_pages_are_missing_is_posted_again);
    suite_add_tcase(suite, tc);
    return suite;
}
