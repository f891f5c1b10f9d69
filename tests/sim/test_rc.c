/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests reliable connections between two HCAs: every operation, many sizes, right data, right
 * completions.
 */
#include <check.h>
#include <string.h>
#include "tests/sim/two_hcas.h"
#include "tests/unit/suite.h"

#define MTU  1024
#define MEBI (1u << 20)

static struct two_hcas *t;
static struct qp_pair rc;

static void setup(void)
{
    t = two_hcas_new(NULL);
    rc = qp_pair_new(t, PRM_QP_ST_RC, NULL);
}

/* Checks that the device has reported no problem in any test here. */
static void teardown(void)
{
    ck_assert_uint_eq(t->a.hca->log_guest_errors + t->b.hca->log_guest_errors, 0);
    two_hcas_free(t);
}

static void post_recv(struct drv_qp *qp, struct buf *buf)
{
    struct drv_sge sge = buf_sge(buf, 0, buf->len);

    drv_post_recv(qp, &sge, 1);
}

static void post(struct drv_qp *qp, uint8_t opcode, struct buf *local, struct buf *remote,
                 unsigned flags)
{
    struct drv_sge sge = buf_sge(local, 0, local->len);
    struct drv_send send = {
        .opcode = opcode,
        .flags = flags | DRV_SIGNALED,
        .sge = &sge,
        .num_sge = local->len ? 1 : 0,
        .imm = 0x11223344,
        .raddr = remote ? remote->va : 0,
        .rkey = remote ? remote->mr.key : 0,
    };

    if (flags & DRV_INLINE) {
        sge.va = (uintptr_t)local->ptr;
    }
    drv_post_send(qp, &send);
}

/* Sizes around the boundaries of packets, and messages of thousands of packets. */
static const size_t sizes[] = {0,   1,       2,       3,        7,         64,   MTU - 1,
                               MTU, MTU + 1, 2 * MTU, 10 * MTU, 65536 + 5, MEBI, 3 * MEBI + 1};
#define NUM_SIZES ((int)G_N_ELEMENTS(sizes))

START_TEST(send_brings_the_data_into_the_posted_buffer)
{
    size_t len = sizes[_i];
    struct buf *src = node_buf(&t->a, len, DRV_LOCAL_WRITE, 1);
    struct buf *dst = node_buf(&t->b, len, DRV_LOCAL_WRITE, 0);
    struct drv_wc wc;

    post_recv(rc.b, dst);
    post(rc.a, PRM_WQE_OPCODE_SEND, src, NULL, 0);
    wc = expect_wc(&t->b, rc.b, PRM_CQE_OPCODE_RESP_SEND);
    ck_assert_uint_eq(wc.byte_cnt, len);
    wc = expect_wc(&t->a, rc.a, PRM_CQE_OPCODE_REQ);
    ck_assert_uint_eq(wc.send_opcode, PRM_WQE_OPCODE_SEND);
    ck_assert(memcmp(src->ptr, dst->ptr, len) == 0);
}
END_TEST

START_TEST(write_completes_at_the_writer_only)
{
    size_t len = sizes[_i];
    struct buf *src = node_buf(&t->a, len, DRV_LOCAL_WRITE, 1);
    struct buf *dst = node_buf(&t->b, len, DRV_LOCAL_WRITE | DRV_REMOTE_WRITE, 0);

    post(rc.a, PRM_WQE_OPCODE_RDMA_WRITE, src, dst, 0);
    expect_wc(&t->a, rc.a, PRM_CQE_OPCODE_REQ);
    expect_no_wc(t, &t->b);
    ck_assert(memcmp(src->ptr, dst->ptr, len) == 0);
}
END_TEST

START_TEST(read_fetches_the_data)
{
    size_t len = sizes[_i];
    struct buf *dst = node_buf(&t->a, len, DRV_LOCAL_WRITE, 0);
    struct buf *src = node_buf(&t->b, len, DRV_REMOTE_READ, 1);

    post(rc.a, PRM_WQE_OPCODE_RDMA_READ, dst, src, 0);
    expect_wc(&t->a, rc.a, PRM_CQE_OPCODE_REQ);
    expect_no_wc(t, &t->b);
    ck_assert(memcmp(src->ptr, dst->ptr, len) == 0);
}
END_TEST

START_TEST(immediate_arrives_in_the_completion)
{
    size_t len = sizes[_i];
    struct buf *src = node_buf(&t->a, len, DRV_LOCAL_WRITE, 1);
    struct buf *dst = node_buf(&t->b, len, DRV_LOCAL_WRITE | DRV_REMOTE_WRITE, 0);
    struct drv_wc wc;

    post_recv(rc.b, dst);
    post(rc.a, PRM_WQE_OPCODE_SEND_IMM, src, NULL, 0);
    wc = expect_wc(&t->b, rc.b, PRM_CQE_OPCODE_RESP_SEND_IMM);
    ck_assert_uint_eq(wc.imm, 0x11223344);
    ck_assert_uint_eq(wc.byte_cnt, len);
    ck_assert(memcmp(src->ptr, dst->ptr, len) == 0);
    expect_wc(&t->a, rc.a, PRM_CQE_OPCODE_REQ);

    memset(dst->ptr, 0, len);
    drv_post_recv(rc.b, NULL, 0);
    post(rc.a, PRM_WQE_OPCODE_RDMA_WRITE_IMM, src, dst, 0);
    wc = expect_wc(&t->b, rc.b, PRM_CQE_OPCODE_RESP_WR_IMM);
    ck_assert_uint_eq(wc.imm, 0x11223344);
    ck_assert_uint_eq(wc.byte_cnt, len);
    ck_assert(memcmp(src->ptr, dst->ptr, len) == 0);
    expect_wc(&t->a, rc.a, PRM_CQE_OPCODE_REQ);
}
END_TEST

/* Inline data is copied when the WQE is written: later changes of the buffer are not sent. */
START_TEST(inline_data_travels_in_the_wqe)
{
    static const size_t lens[] = {1, 4, 12, 13, 60, 200, 484};

    for (unsigned i = 0; i < G_N_ELEMENTS(lens); i++) {
        struct buf *src = node_buf(&t->a, lens[i], 0, i + 1);
        struct buf *dst = node_buf(&t->b, lens[i], DRV_LOCAL_WRITE | DRV_REMOTE_WRITE, 0);
        g_autofree uint8_t *copy = g_memdup2(src->ptr, lens[i]);

        post(rc.a, PRM_WQE_OPCODE_RDMA_WRITE, src, dst, DRV_INLINE);
        memset(src->ptr, 0xee, lens[i]);
        expect_wc(&t->a, rc.a, PRM_CQE_OPCODE_REQ);
        ck_assert(memcmp(copy, dst->ptr, lens[i]) == 0);
    }
}
END_TEST

/* A gather list becomes one message; a scatter list receives it in pieces of other sizes. */
START_TEST(gathered_here_and_scattered_there)
{
    struct buf *src = node_buf(&t->a, 10000, 0, 1);
    struct buf *dst = node_buf(&t->b, 10000, DRV_LOCAL_WRITE, 0);
    struct drv_sge gather[] = {buf_sge(src, 0, 1), buf_sge(src, 1, 4999), buf_sge(src, 5000, 3),
                               buf_sge(src, 5003, 4997)};
    struct drv_sge scatter[] = {buf_sge(dst, 0, 2047), buf_sge(dst, 2047, 1),
                                buf_sge(dst, 2048, 7000), buf_sge(dst, 9048, 952)};
    struct drv_send send = {.opcode = PRM_WQE_OPCODE_SEND, .sge = gather, .num_sge = 4};

    drv_post_recv(rc.b, scatter, 4);
    drv_post_send(rc.a, &send);
    expect_wc(&t->b, rc.b, PRM_CQE_OPCODE_RESP_SEND);
    ck_assert(memcmp(src->ptr, dst->ptr, 10000) == 0);
    /* it was unsignaled */
    expect_no_wc(t, &t->a);
}
END_TEST

static uint64_t atomic(uint8_t opcode, struct buf *result, struct buf *target, uint64_t compare,
                       uint64_t swap_add)
{
    struct drv_sge sge = buf_sge(result, 0, 8);
    struct drv_send send = {
        .opcode = opcode,
        .flags = DRV_SIGNALED,
        .sge = &sge,
        .num_sge = 1,
        .raddr = target->va,
        .rkey = target->mr.key,
        .compare = compare,
        .swap_add = swap_add,
    };
    struct drv_wc wc;

    drv_post_send(rc.a, &send);
    wc = expect_wc(&t->a, rc.a, PRM_CQE_OPCODE_REQ);
    ck_assert_uint_eq(wc.byte_cnt, 8);
    return *(uint64_t *)result->ptr;
}

/* Operands and memory are in the hosts' own byte order (IBTA 9.4.5: 64-bit, atomic at the peer). */
START_TEST(atomics_return_what_was_there)
{
    struct buf *result = node_buf(&t->a, 8, DRV_LOCAL_WRITE, 0);
    struct buf *target = node_buf(&t->b, 8, DRV_LOCAL_WRITE | DRV_REMOTE_ATOMIC, 0);
    uint64_t *word = (uint64_t *)target->ptr;

    *word = 40;
    ck_assert_uint_eq(atomic(PRM_WQE_OPCODE_ATOMIC_FA, result, target, 0, 2), 40);
    ck_assert_uint_eq(*word, 42);
    ck_assert_uint_eq(atomic(PRM_WQE_OPCODE_ATOMIC_FA, result, target, 0, UINT64_MAX), 42);
    ck_assert_uint_eq(*word, 41);
    ck_assert_uint_eq(atomic(PRM_WQE_OPCODE_ATOMIC_CS, result, target, 40, 7), 41);
    ck_assert_uint_eq(*word, 41);
    ck_assert_uint_eq(atomic(PRM_WQE_OPCODE_ATOMIC_CS, result, target, 41, 7), 41);
    ck_assert_uint_eq(*word, 7);
}
END_TEST

/* A full queue of each kind, both directions at once; completions come in the order of posting. */
START_TEST(many_operations_in_both_directions)
{
    enum {
        N = 40,
        LEN = 3000
    };
    struct buf *src[2] = {node_buf(&t->a, LEN * N, DRV_ALL, 1),
                          node_buf(&t->b, LEN * N, DRV_ALL, 2)};
    struct buf *dst[2] = {node_buf(&t->a, LEN * N, DRV_ALL, 0),
                          node_buf(&t->b, LEN * N, DRV_ALL, 0)};
    struct node *node[2] = {&t->a, &t->b};
    struct drv_qp *qp[2] = {rc.a, rc.b};

    for (int side = 0; side < 2; side++) {
        for (unsigned i = 0; i < N; i++) {
            bool read = i % 3 == 0;
            struct buf *local = read ? dst[side] : src[side];
            struct buf *remote = read ? src[!side] : dst[!side];
            struct drv_sge sge = buf_sge(local, i * LEN, LEN);
            struct drv_send send = {
                .opcode = read ? PRM_WQE_OPCODE_RDMA_READ : PRM_WQE_OPCODE_RDMA_WRITE,
                .flags = DRV_SIGNALED,
                .sge = &sge,
                .num_sge = 1,
                .raddr = remote->va + i * LEN,
                .rkey = remote->mr.key,
            };

            drv_post_send(qp[side], &send);
        }
    }
    for (int side = 0; side < 2; side++) {
        uint16_t last = 0;

        for (unsigned i = 0; i < N; i++) {
            struct drv_wc wc = expect_wc(node[side], qp[side], PRM_CQE_OPCODE_REQ);

            ck_assert(i == 0 || wc.wqe_counter > last);
            last = wc.wqe_counter;
        }
    }
    for (int side = 0; side < 2; side++) {
        for (unsigned i = 0; i < N; i++) {
            ck_assert(memcmp(dst[side]->ptr + i * LEN, src[!side]->ptr + i * LEN, LEN) == 0);
        }
    }
}
END_TEST

/* The send queue's ring, the CQ's ring and the PSNs all wrap around in a long run. */
START_TEST(thousands_of_messages)
{
    struct buf *src = node_buf(&t->a, 2 * MTU, 0, 1);
    struct buf *dst = node_buf(&t->b, 2 * MTU, DRV_LOCAL_WRITE, 0);

    for (unsigned i = 0; i < 3000; i++) {
        size_t len = i % (2 * MTU);
        struct drv_sge from = buf_sge(src, 0, len), to = buf_sge(dst, 0, 2 * MTU);
        struct drv_send send = {.opcode = PRM_WQE_OPCODE_SEND,
                                .flags = DRV_SIGNALED | (i & 1 ? DRV_SOLICITED : 0),
                                .sge = &from,
                                .num_sge = len ? 1 : 0};
        struct drv_wc wc;

        drv_post_recv(rc.b, &to, 1);
        drv_post_send(rc.a, &send);
        wc = expect_wc(&t->b, rc.b, PRM_CQE_OPCODE_RESP_SEND);
        ck_assert_uint_eq(wc.byte_cnt, len);
        ck_assert_uint_eq(wc.solicited, i & 1);
        expect_wc(&t->a, rc.a, PRM_CQE_OPCODE_REQ);
    }
}
END_TEST

/* Two QPs of one HCA: no frame goes to the cable, which need not exist. */
START_TEST(loopback_stays_inside)
{
    struct drv_qp *x = node_qp(&t->a, PRM_QP_ST_RC, NULL), *y = node_qp(&t->a, PRM_QP_ST_RC, NULL);
    struct buf *src = node_buf(&t->a, 5000, DRV_ALL, 1), *dst = node_buf(&t->a, 5000, DRV_ALL, 0);
    uint64_t frames;

    connect_qps(&t->a, x, &t->a, y, NULL);
    inproc_settle(t->world);
    frames = t->frames;
    post(x, PRM_WQE_OPCODE_RDMA_WRITE, src, dst, 0);
    expect_wc(&t->a, x, PRM_CQE_OPCODE_REQ);
    ck_assert(memcmp(src->ptr, dst->ptr, 5000) == 0);
    node_unplug(&t->a);
    memset(dst->ptr, 0, 5000);
    post(y, PRM_WQE_OPCODE_RDMA_READ, dst, src, 0);
    expect_wc(&t->a, y, PRM_CQE_OPCODE_REQ);
    ck_assert(memcmp(src->ptr, dst->ptr, 5000) == 0);
    ck_assert_uint_eq(t->frames, frames);
}
END_TEST

/* PRM: a CQ makes one event per arming. If armed for solicited completions, only for messages whose
 * sender asked. */
START_TEST(armed_cq_makes_one_event)
{
    struct buf *src = node_buf(&t->a, 8, 0, 1), *dst = node_buf(&t->b, 8, DRV_LOCAL_WRITE, 0);

    for (int round = 0; round < 3; round++) {
        drv_arm_cq(t->b.drv, &t->b.cq, false);
        ck_assert(!drv_wait_cq_event(t->b.drv, &t->b.cq, MS));
        for (int i = 0; i < 3; i++) {
            post_recv(rc.b, dst);
            post(rc.a, PRM_WQE_OPCODE_SEND, src, NULL, 0);
            expect_wc(&t->b, rc.b, PRM_CQE_OPCODE_RESP_SEND);
            expect_wc(&t->a, rc.a, PRM_CQE_OPCODE_REQ);
        }
        ck_assert(drv_wait_cq_event(t->b.drv, &t->b.cq, MS));
        ck_assert(!drv_wait_cq_event(t->b.drv, &t->b.cq, MS));
    }
    drv_arm_cq(t->b.drv, &t->b.cq, true);
    post_recv(rc.b, dst);
    post(rc.a, PRM_WQE_OPCODE_SEND, src, NULL, 0);
    expect_wc(&t->b, rc.b, PRM_CQE_OPCODE_RESP_SEND);
    ck_assert(!drv_wait_cq_event(t->b.drv, &t->b.cq, MS));
    post_recv(rc.b, dst);
    post(rc.a, PRM_WQE_OPCODE_SEND, src, NULL, DRV_SOLICITED);
    expect_wc(&t->b, rc.b, PRM_CQE_OPCODE_RESP_SEND);
    ck_assert(drv_wait_cq_event(t->b.drv, &t->b.cq, MS));
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("two HCAs, RC");
    TCase *tc = tcase_create("rc");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, send_brings_the_data_into_the_posted_buffer, 0, NUM_SIZES);
    tcase_add_loop_test(tc, write_completes_at_the_writer_only, 0, NUM_SIZES);
    tcase_add_loop_test(tc, read_fetches_the_data, 0, NUM_SIZES);
    tcase_add_loop_test(tc, immediate_arrives_in_the_completion, 0, NUM_SIZES);
    tcase_add_test(tc, inline_data_travels_in_the_wqe);
    tcase_add_test(tc, gathered_here_and_scattered_there);
    tcase_add_test(tc, atomics_return_what_was_there);
    tcase_add_test(tc, many_operations_in_both_directions);
    tcase_add_test(tc, thousands_of_messages);
    tcase_add_test(tc, loopback_stays_inside);
    tcase_add_test(tc, armed_cq_makes_one_event);
    suite_add_tcase(suite, tc);
    return suite;
}
