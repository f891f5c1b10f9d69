/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests unreliable services and shared receive queues between two HCAs. */
#include <check.h>
#include <string.h>
#include "tests/sim/two_hcas.h"
#include "tests/unit/suite.h"

#define QKEY    0x11111111
#define GRH_LEN 40

static struct two_hcas *t;
static struct buf *src, *dst;

static void setup(void)
{
    t = two_hcas_new(NULL);
    src = node_buf(&t->a, 65536, DRV_LOCAL_WRITE, 1);
    dst = node_buf(&t->b, 65536, DRV_ALL, 0);
}

static void teardown(void)
{
    two_hcas_free(t);
}

static void post_recv(struct drv_qp *qp, size_t offset, size_t len)
{
    struct drv_sge sge = buf_sge(dst, offset, len);

    drv_post_recv(qp, &sge, 1);
}

/* -- UD -----------------------------------------------------------------------------------------
 */

static struct drv_qp *ud_qp(struct node *node)
{
    struct drv_qp *qp = node_qp(node, PRM_QP_ST_UD, NULL);
    struct drv_path path = {0};

    qp->qkey = QKEY;
    ck_assert_int_eq(drv_qp_connect(qp, &path), 0);
    return qp;
}

static void post_datagram(struct drv_qp *from, const struct drv_path *to, uint8_t opcode,
                          size_t len, uint32_t qkey)
{
    struct drv_sge sge = buf_sge(src, 0, len);
    struct drv_send send = {
        .opcode = opcode,
        .flags = DRV_SIGNALED,
        .sge = &sge,
        .num_sge = len ? 1 : 0,
        .imm = 77,
        .ah = to,
        .qkey = qkey,
    };

    drv_post_send(from, &send);
}

/* IBTA 11.4.1.2: the first 40 bytes of a UD receive buffer are the GRH's; with RoCEv2 over IPv4
 * the IPv4 header is in the last 20 of them (annex A17.9.1). */
START_TEST(datagram_lands_behind_40_bytes_of_header)
{
    static const size_t sizes[] = {0, 1, 255, 1024, 4096};
    size_t len = sizes[_i];
    struct drv_qp *a = ud_qp(&t->a), *b = ud_qp(&t->b);
    struct drv_path to = path_to(&t->b, b);
    static const uint8_t addresses[8] = {10, 0, 0, 1, 10, 0, 0, 2};
    struct drv_wc wc;

    ck_assert_int_eq(drv_set_port_mtu(t->a.drv, 9000), 0);
    ck_assert_int_eq(drv_set_port_mtu(t->b.drv, 9000), 0);
    post_recv(b, 0, 8192);
    post_datagram(a, &to, PRM_WQE_OPCODE_SEND, len, QKEY);
    expect_wc(&t->a, a, PRM_CQE_OPCODE_REQ);
    wc = expect_wc(&t->b, b, PRM_CQE_OPCODE_RESP_SEND);
    ck_assert_uint_eq(wc.byte_cnt, GRH_LEN + len);
    ck_assert_uint_eq(wc.src_qp, a->qpn);
    ck_assert(wc.grh);
    ck_assert_uint_eq(dst->ptr[20], 0x45); /* version 4, 5 words */
    ck_assert_mem_eq(dst->ptr + 20 + 12, addresses, 8);
    ck_assert(memcmp(src->ptr, dst->ptr + GRH_LEN, len) == 0);
}
END_TEST

START_TEST(datagram_with_immediate)
{
    struct drv_qp *a = ud_qp(&t->a), *b = ud_qp(&t->b);
    struct drv_path to = path_to(&t->b, b);
    struct drv_wc wc;

    post_recv(b, 0, 8192);
    post_datagram(a, &to, PRM_WQE_OPCODE_SEND_IMM, 100, QKEY);
    wc = expect_wc(&t->b, b, PRM_CQE_OPCODE_RESP_SEND_IMM);
    ck_assert_uint_eq(wc.imm, 77);
}
END_TEST

/* A datagram that finds no buffer, no QP, or the wrong Q_Key is dropped without notice (IBTA
 * 9.8.3). */
START_TEST(unwanted_datagrams_are_dropped)
{
    struct drv_qp *a = ud_qp(&t->a), *b = ud_qp(&t->b);
    struct drv_path to = path_to(&t->b, b), nowhere = to;

    nowhere.remote_qpn = 0xabcdef;
    post_datagram(a, &to, PRM_WQE_OPCODE_SEND, 100, QKEY);
    expect_wc(&t->a, a, PRM_CQE_OPCODE_REQ);
    expect_no_wc(t, &t->b);
    post_recv(b, 0, 8192);
    post_datagram(a, &to, PRM_WQE_OPCODE_SEND, 100, QKEY + 1);
    expect_wc(&t->a, a, PRM_CQE_OPCODE_REQ);
    post_datagram(a, &nowhere, PRM_WQE_OPCODE_SEND, 100, QKEY);
    expect_wc(&t->a, a, PRM_CQE_OPCODE_REQ);
    expect_no_wc(t, &t->b);
    post_datagram(a, &to, PRM_WQE_OPCODE_SEND, 100, QKEY);
    expect_wc(&t->b, b, PRM_CQE_OPCODE_RESP_SEND);
}
END_TEST

/* IBTA 10.3.1, SQE: a failed send stops only the sends of a UD QP; a command moves it back to
 * RTS. */
START_TEST(failed_datagram_stops_the_send_queue_only)
{
    struct drv_qp *a = ud_qp(&t->a), *b = ud_qp(&t->b);
    struct drv_path to = path_to(&t->b, b), back = path_to(&t->a, a);
    struct buf *a_dst = node_buf(&t->a, 4096, DRV_ALL, 0);
    struct drv_sge sge = buf_sge(a_dst, 0, 4096), from = buf_sge(dst, 0, 64);
    struct drv_send send = {
        .opcode = PRM_WQE_OPCODE_SEND, .sge = &from, .num_sge = 1, .ah = &back, .qkey = QKEY};
    struct prm_qpc qpc[1] = {0};

    post_datagram(a, &to, PRM_WQE_OPCODE_SEND, 1025, QKEY); /* frames have 1522 bytes */
    expect_error(&t->a, a, PRM_CQE_OPCODE_REQ_ERR, PRM_CQE_SYNDROME_LOCAL_LENGTH_ERR);
    ck_assert_uint_eq(qp_state(a), PRM_QP_STATE_SQER);
    drv_post_recv(a, &sge, 1);
    drv_post_send(b, &send);
    expect_wc(&t->a, a, PRM_CQE_OPCODE_RESP_SEND);
    ck_assert_int_eq(drv_modify_qp(a, PRM_CMD_OP_SQERR2RTS_QP, 0, qpc), 0);
    post_recv(b, 0, 8192);
    post_datagram(a, &to, PRM_WQE_OPCODE_SEND, 50, QKEY);
    expect_wc(&t->a, a, PRM_CQE_OPCODE_REQ);
    expect_wc(&t->b, b, PRM_CQE_OPCODE_RESP_SEND);
}
END_TEST

/* -- UC -----------------------------------------------------------------------------------------
 */

static void post(struct drv_qp *qp, uint8_t opcode, size_t len)
{
    struct drv_sge sge = buf_sge(src, 0, len);
    struct drv_send send = {
        .opcode = opcode,
        .flags = DRV_SIGNALED,
        .sge = &sge,
        .num_sge = len ? 1 : 0,
        .imm = 5,
        .raddr = dst->va,
        .rkey = dst->mr.key,
    };

    drv_post_send(qp, &send);
}

START_TEST(unreliable_connection_sends_and_writes)
{
    static const size_t sizes[] = {0, 1, 1023, 1024, 1025, 60000};
    struct qp_pair uc = qp_pair_new(t, PRM_QP_ST_UC, NULL);
    size_t len = sizes[_i];
    struct drv_wc wc;

    post_recv(uc.b, 0, 65536);
    post(uc.a, PRM_WQE_OPCODE_SEND, len);
    expect_wc(&t->a, uc.a, PRM_CQE_OPCODE_REQ);
    wc = expect_wc(&t->b, uc.b, PRM_CQE_OPCODE_RESP_SEND);
    ck_assert_uint_eq(wc.byte_cnt, len);
    ck_assert(memcmp(src->ptr, dst->ptr, len) == 0);
    memset(dst->ptr, 0, len);
    drv_post_recv(uc.b, NULL, 0);
    post(uc.a, PRM_WQE_OPCODE_RDMA_WRITE_IMM, len);
    expect_wc(&t->b, uc.b, PRM_CQE_OPCODE_RESP_WR_IMM);
    ck_assert(memcmp(src->ptr, dst->ptr, len) == 0);
}
END_TEST

/* IBTA 9.8.2: UC has no acknowledgement: the sender's completion comes, although the message is
 * lost. */
START_TEST(unreliable_sender_never_knows)
{
    struct qp_pair uc = qp_pair_new(t, PRM_QP_ST_UC, NULL);

    post(uc.a, PRM_WQE_OPCODE_SEND, 5000);
    expect_wc(&t->a, uc.a, PRM_CQE_OPCODE_REQ);
    expect_no_wc(t, &t->b);
    node_unplug(&t->b);
    post(uc.a, PRM_WQE_OPCODE_SEND, 5000);
    expect_wc(&t->a, uc.a, PRM_CQE_OPCODE_REQ);
}
END_TEST

START_TEST(unreliable_connection_does_not_read)
{
    struct qp_pair uc = qp_pair_new(t, PRM_QP_ST_UC, NULL);

    post(uc.a, PRM_WQE_OPCODE_RDMA_READ, 8);
    expect_error(&t->a, uc.a, PRM_CQE_OPCODE_REQ_ERR, PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR);
}
END_TEST

/* -- SRQ ----------------------------------------------------------------------------------------
 */

enum {
    SRQ_QPS = 3,
    SLOT = 256
};

static struct drv_srq *srq;
static struct drv_qp *sender[SRQ_QPS], *receiver[SRQ_QPS];

static void srq_setup(void)
{
    setup();
    srq = node_srq(&t->b, 5);
    for (int i = 0; i < SRQ_QPS; i++) {
        sender[i] = node_qp(&t->a, PRM_QP_ST_RC, NULL);
        receiver[i] = node_qp(&t->b, PRM_QP_ST_RC, srq);
        connect_qps(&t->a, sender[i], &t->b, receiver[i], NULL);
    }
}

static void srq_post(unsigned slot)
{
    struct drv_sge sge = buf_sge(dst, slot * SLOT, SLOT);

    drv_post_srq_recv(t->b.drv, srq, &sge, 1);
}

START_TEST(queue_pairs_share_the_buffers)
{
    for (unsigned i = 0; i < 9; i++) {
        srq_post(i);
    }
    for (unsigned i = 0; i < 9; i++) {
        post(sender[i % SRQ_QPS], PRM_WQE_OPCODE_SEND, i + 1);
        struct drv_wc wc = expect_wc(&t->b, receiver[i % SRQ_QPS], PRM_CQE_OPCODE_RESP_SEND);

        ck_assert_uint_eq(wc.byte_cnt, i + 1);
        ck_assert_uint_eq(wc.srqn, srq->srqn);
        ck_assert_uint_eq(wc.wqe_counter, i);
        ck_assert(memcmp(src->ptr, dst->ptr + i * SLOT, i + 1) == 0);
    }
}
END_TEST

START_TEST(empty_srq_is_receiver_not_ready)
{
    post(sender[0], PRM_WQE_OPCODE_SEND, 9);
    inproc_advance(t->world, 3 * MS);
    expect_no_wc(t, &t->b);
    srq_post(0);
    expect_wc(&t->b, receiver[0], PRM_CQE_OPCODE_RESP_SEND);
    expect_wc(&t->a, sender[0], PRM_CQE_OPCODE_REQ);
}
END_TEST

/* IBTA 10.2.9.4 (SRQ limit): one event when fewer WQEs than the limit are left, then disarmed. */
START_TEST(srq_limit_event)
{
    struct drv_event event;

    for (unsigned i = 0; i < 4; i++) {
        srq_post(i);
    }
    ck_assert_int_eq(drv_arm_srq(t->b.drv, srq, 3), 0);
    post(sender[0], PRM_WQE_OPCODE_SEND, 9);
    expect_wc(&t->b, receiver[0], PRM_CQE_OPCODE_RESP_SEND);
    ck_assert(!drv_wait_event(t->b.drv, PRM_EVENT_TYPE_SRQ_RQ_LIMIT, srq->srqn, &event, MS));
    post(sender[1], PRM_WQE_OPCODE_SEND, 9);
    expect_event(&t->b, PRM_EVENT_TYPE_SRQ_RQ_LIMIT, srq->srqn);
    post(sender[2], PRM_WQE_OPCODE_SEND, 9);
    ck_assert(!drv_wait_event(t->b.drv, PRM_EVENT_TYPE_SRQ_RQ_LIMIT, srq->srqn, &event, MS));
}
END_TEST

/* IBTA 10.2.9.5: a QP that enters the error state leaves the SRQ to the others, and reports its
 * last WQE. */
START_TEST(qp_in_error_leaves_the_srq_alone)
{
    srq_post(0);
    ck_assert_int_eq(drv_modify_qp(receiver[0], PRM_CMD_OP_2ERR_QP, 0, NULL), 0);
    expect_event(&t->b, PRM_EVENT_TYPE_SRQ_LAST_WQE, receiver[0]->qpn);
    expect_no_wc(t, &t->b);
    post(sender[1], PRM_WQE_OPCODE_SEND, 9);
    expect_wc(&t->b, receiver[1], PRM_CQE_OPCODE_RESP_SEND);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("two HCAs, datagrams and SRQs");
    TCase *tc = tcase_create("datagram"), *srqs = tcase_create("srq");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, datagram_lands_behind_40_bytes_of_header, 0, 5);
    tcase_add_test(tc, datagram_with_immediate);
    tcase_add_test(tc, unwanted_datagrams_are_dropped);
    tcase_add_test(tc, failed_datagram_stops_the_send_queue_only);
    tcase_add_loop_test(tc, unreliable_connection_sends_and_writes, 0, 6);
    tcase_add_test(tc, unreliable_sender_never_knows);
    tcase_add_test(tc, unreliable_connection_does_not_read);
    tcase_add_checked_fixture(srqs, srq_setup, teardown);
    tcase_set_timeout(srqs, 60);
    tcase_add_test(srqs, queue_pairs_share_the_buffers);
    tcase_add_test(srqs, empty_srq_is_receiver_not_ready);
    tcase_add_test(srqs, srq_limit_event);
    tcase_add_test(srqs, qp_in_error_leaves_the_srq_alone);
    suite_add_tcase(suite, tc);
    suite_add_tcase(suite, srqs);
    return suite;
}
