/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests small data in CQEs as programs see it: the data is in their buffers after they have polled,
 * and not before (docs/adr/0013). Also tests when libmlx5 and the kernel request it.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "guest-lib/verbs/dv.h"
#include "tests/unit/suite.h"
#include "tests/verbs/verbs_table.h"

#define CQE 15

static struct verbs_table *v;
static struct ibv_cq_ex *send_ex, *recv_ex;
static struct ibv_cq *send_cq, *recv_cq;
static struct ibv_qp *a, *b;
static struct ibv_mr *from, *to;

static struct ibv_cq_ex *cq_new(struct ibv_context *context, unsigned cqe_size)
{
    struct ibv_cq_init_attr_ex attr = {.cqe = CQE,
                                       .wc_flags = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_TM_INFO};
    struct mlx5dv_cq_init_attr dv = {.comp_mask = MLX5DV_CQ_INIT_ATTR_MASK_CQE_SIZE,
                                     .cqe_size = (uint16_t)cqe_size};
    struct ibv_cq_ex *cq = hv_dv_create_cq(context, &attr, &dv);

    ck_assert_ptr_nonnull(cq);
    return cq;
}

static struct ibv_qp *qp_new(int side, struct ibv_srq *srq, bool sig_all, uint32_t create_flags)
{
    struct ibv_cq *cq = side ? recv_cq : send_cq;
    struct ibv_qp_init_attr_ex attr = {
        .qp_type = IBV_QPT_RC,
        .send_cq = cq,
        .recv_cq = cq,
        .srq = srq,
        .cap = {.max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 4, .max_recv_sge = 4},
        .sq_sig_all = sig_all,
        .comp_mask = IBV_QP_INIT_ATTR_PD,
        .pd = v->hosts->host[side].pd,
    };
    struct mlx5dv_qp_init_attr dv = {.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS,
                                     .create_flags = create_flags};
    struct ibv_qp *qp = hv_dv_create_qp(v->hosts->host[side].ctx, &attr, &dv);

    ck_assert_ptr_nonnull(qp);
    return qp;
}

static void setup(void)
{
    g_unsetenv("MLX5_SCATTER_TO_CQE");
    v = verbs_table_new();
    from = table_mr_new(v, 0);
    to = table_mr_new(v, 1);
}

static void make_qps(unsigned cqe_size, struct ibv_srq *srq, bool sig_all, uint32_t create_flags)
{
    send_ex = cq_new(v->a, cqe_size);
    recv_ex = cq_new(v->b, cqe_size);
    send_cq = ibv_cq_ex_to_cq(send_ex);
    recv_cq = ibv_cq_ex_to_cq(recv_ex);
    a = qp_new(0, NULL, sig_all, create_flags);
    b = qp_new(1, srq, sig_all, create_flags);
    table_connect(v, a, b);
}

static void drop_qps(void)
{
    table_qp_free(a);
    table_qp_free(b);
    ck_assert_int_eq(ibv_destroy_cq(send_cq), 0);
    ck_assert_int_eq(ibv_destroy_cq(recv_cq), 0);
}

static void teardown(void)
{
    table_mr_free(from);
    table_mr_free(to);
    verbs_table_free(v);
}

/* A list of 7, 20 and 64 bytes in the region, with gaps. */
#define PIECES 3
static const struct {
    uint32_t at, len;
} pieces[PIECES] = {{100, 7}, {200, 20}, {300, 64}};

static int list_of(struct ibv_mr *mr, struct ibv_sge *sge, uint32_t len)
{
    int n = 0;

    for (; len && n < PIECES; n++) {
        uint32_t part = MIN(len, pieces[n].len);

        sge[n] = (struct ibv_sge){(uintptr_t)mr->addr + pieces[n].at, part, mr->lkey};
        len -= part;
    }
    return n;
}

/* Returns whether len bytes of the list equal data. */
static bool list_is(struct ibv_mr *mr, const uint8_t *data, uint32_t len)
{
    for (unsigned n = 0; len; n++) {
        uint32_t part = MIN(len, pieces[n].len);

        if (memcmp((uint8_t *)mr->addr + pieces[n].at, data, part)) {
            return false;
        }
        data += part;
        len -= part;
    }
    return true;
}

static void receive(struct ibv_srq *srq, uint64_t wr_id)
{
    struct ibv_sge sge[PIECES];
    struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = sge, .num_sge = list_of(to, sge, 91)}, *bad;

    ck_assert_int_eq(srq ? ibv_post_srq_recv(srq, &wr, &bad) : ibv_post_recv(b, &wr, &bad), 0);
}

static void send_len(uint32_t len)
{
    struct ibv_sge sge = {(uintptr_t)from->addr, len, from->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_SEND_WITH_IMM,
                             .imm_data = GUINT32_TO_BE(len),
                             .send_flags = IBV_SEND_SIGNALED};
    struct ibv_send_wr *bad;

    ck_assert_int_eq(ibv_post_send(a, &wr, &bad), 0);
    ck_assert_int_eq(table_wc(v, send_cq).status, IBV_WC_SUCCESS);
}

/* Sends one message; returns whether its data stayed in the CQE until the CQE was polled. */
static bool is_send_in_cqe(struct ibv_srq *srq, uint32_t len)
{
    uint8_t *data = from->addr;
    struct ibv_wc wc;
    bool was_there;

    memset(to->addr, 0, 512);
    for (uint32_t i = 0; i < len; i++) {
        data[i] = (uint8_t)(len + i);
    }
    receive(srq, len);
    send_len(len);
    was_there = list_is(to, data, len);
    wc = table_wc(v, recv_cq);
    ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
    ck_assert_uint_eq(wc.wr_id, len);
    ck_assert_uint_eq(wc.byte_len, len);
    ck_assert_uint_eq(wc.wc_flags, IBV_WC_WITH_IMM); /* the data does not look like a GRH */
    ck_assert_uint_eq(wc.imm_data, GUINT32_TO_BE(len));
    ck_assert(list_is(to, data, len));
    return !was_there;
}

static bool is_read_in_cqe(uint32_t len)
{
    struct ibv_sge sge[PIECES];
    struct ibv_send_wr wr = {.wr_id = len,
                             .sg_list = sge,
                             .num_sge = list_of(from, sge, len),
                             .opcode = IBV_WR_RDMA_READ,
                             .send_flags = IBV_SEND_SIGNALED};
    struct ibv_send_wr *bad;
    struct ibv_wc wc;
    bool was_there;

    memset(from->addr, 0, 512);
    wr.wr.rdma.remote_addr = (uintptr_t)to->addr + 1000;
    wr.wr.rdma.rkey = to->rkey;
    ck_assert_int_eq(ibv_post_send(a, &wr, &bad), 0);
    table_wait(v);
    was_there = list_is(from, (uint8_t *)to->addr + 1000, len);
    wc = table_wc(v, send_cq);
    ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
    ck_assert_int_eq(wc.opcode, IBV_WC_RDMA_READ);
    ck_assert_uint_eq(wc.byte_len, len);
    ck_assert(list_is(from, (uint8_t *)to->addr + 1000, len));
    return !was_there;
}

static bool is_atomic_in_cqe(void)
{
    struct ibv_sge sge = {(uintptr_t)from->addr, 8, from->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
                             .send_flags = IBV_SEND_SIGNALED};
    struct ibv_send_wr *bad;
    struct ibv_wc wc;
    uint64_t before = *(uint64_t *)to->addr = 77;
    bool was_there;

    memset(from->addr, 0, 8);
    wr.wr.atomic.remote_addr = (uintptr_t)to->addr;
    wr.wr.atomic.rkey = to->rkey;
    wr.wr.atomic.compare_add = 3;
    ck_assert_int_eq(ibv_post_send(a, &wr, &bad), 0);
    table_wait(v);
    was_there = *(uint64_t *)from->addr == before;
    wc = table_wc(v, send_cq);
    ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
    ck_assert_int_eq(wc.opcode, IBV_WC_FETCH_ADD);
    ck_assert_uint_eq(wc.byte_len, 8);
    /* libmlx5 copies the CQE's data in the order of packets (docs/adr/0013) */
    ck_assert_uint_eq(*(uint64_t *)from->addr, was_there ? before : GUINT64_TO_BE(before));
    return !was_there;
}

static const uint32_t lens[] = {1, 8, 24, 27, 32, 33, 60, 64, 65, 90};

/* use_scatter_to_cqe(): messages are accepted by default, if CQEs have room for them. */
START_TEST(small_messages_are_in_cqes)
{
    unsigned size = _i ? 128 : 64;

    make_qps(size, NULL, false, 0);
    for (unsigned round = 0; round < 3; round++) {
        for (size_t i = 0; i < G_N_ELEMENTS(lens); i++) {
            ck_assert_int_eq(is_send_in_cqe(NULL, lens[i]), lens[i] <= size / 2);
        }
    }
    drop_qps();
}
END_TEST

START_TEST(small_messages_of_a_shared_queue_are_in_cqes)
{
    struct ibv_srq_init_attr attr = {.attr = {.max_wr = 7, .max_sge = 3}};
    struct ibv_srq *srq = ibv_create_srq(v->hosts->host[1].pd, &attr);

    make_qps(_i ? 128 : 64, srq, false, 0);
    for (unsigned round = 0; round < 3; round++) {
        for (size_t i = 0; i < G_N_ELEMENTS(lens); i++) {
            ck_assert_int_eq(is_send_in_cqe(srq, lens[i]), lens[i] <= (_i ? 64 : 32));
        }
    }
    drop_qps();
    ck_assert_int_eq(ibv_destroy_srq(srq), 0);
}
END_TEST

/* configure_requester_scat_cqe(): applies to what was requested, on queues all of whose WQEs are
 * signalled. */
START_TEST(what_signalled_queues_read_is_in_cqes)
{
    unsigned size = _i ? 128 : 64;

    make_qps(size, NULL, true, 0);
    for (unsigned round = 0; round < 20; round++) { /* once around the ring */
        for (size_t i = 0; i < G_N_ELEMENTS(lens); i++) {
            ck_assert_int_eq(is_read_in_cqe(lens[i]), lens[i] <= size / 2);
        }
        ck_assert(is_atomic_in_cqe());
    }
    drop_qps();
}
END_TEST

/* Checks whether the data of sends, reads and atomics is in CQEs. */
static void expect_in_cqes(bool sig_all, uint32_t create_flags, bool sends, bool reads)
{
    make_qps(64, NULL, sig_all, create_flags);
    ck_assert_int_eq(is_send_in_cqe(NULL, 20), sends);
    ck_assert_int_eq(is_read_in_cqe(20), reads);
    ck_assert_int_eq(is_atomic_in_cqe(), reads);
    drop_qps();
}

/* mlx5_create_qp(): flags have precedence over the environment. */
START_TEST(flags_have_precedence_over_the_environment)
{
    const uint32_t allow = MLX5DV_QP_CREATE_ALLOW_SCATTER_TO_CQE;
    const uint32_t disable = MLX5DV_QP_CREATE_DISABLE_SCATTER_TO_CQE;

    expect_in_cqes(false, 0, true, false);
    expect_in_cqes(true, 0, true, true);
    expect_in_cqes(false, allow, true, true);
    expect_in_cqes(true, disable, false, false);
    g_setenv("MLX5_SCATTER_TO_CQE", "0", true);
    expect_in_cqes(true, 0, false, false);
    expect_in_cqes(false, allow, true, true);
    expect_in_cqes(true, disable, false, false);
    g_setenv("MLX5_SCATTER_TO_CQE", "1", true);
    expect_in_cqes(true, 0, true, true);
    expect_in_cqes(true, disable, false, false);
    g_unsetenv("MLX5_SCATTER_TO_CQE");
}
END_TEST

/* An unsignalled read has no CQE, whatever was allowed. */
START_TEST(an_unsignalled_read_is_in_memory)
{
    struct ibv_sge sge = {(uintptr_t)from->addr, 16, from->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_READ}, *bad;

    make_qps(64, NULL, false, MLX5DV_QP_CREATE_ALLOW_SCATTER_TO_CQE);
    wr.wr.rdma.remote_addr = (uintptr_t)to->addr;
    wr.wr.rdma.rkey = to->rkey;
    ck_assert_int_eq(ibv_post_send(a, &wr, &bad), 0);
    table_wait(v);
    ck_assert_mem_eq(from->addr, to->addr, 16);
    drop_qps();
}
END_TEST

/* The readers of extended polling do not show where the data was. */
START_TEST(extended_polling_has_the_data)
{
    struct ibv_poll_cq_attr attr = {0};
    struct ibv_wc_tm_info info;

    make_qps(64, NULL, false, 0);
    memset(from->addr, 0xff, 64);
    memset(to->addr, 0, 512);
    receive(NULL, 5);
    send_len(32);
    ck_assert_int_eq(ibv_start_poll(recv_ex, &attr), 0);
    ck_assert_uint_eq(recv_ex->wr_id, 5);
    ck_assert_int_eq(recv_ex->status, IBV_WC_SUCCESS);
    ck_assert(list_is(to, from->addr, 32));
    ck_assert_uint_eq(ibv_wc_read_byte_len(recv_ex), 32);
    ck_assert_uint_eq(ibv_wc_read_wc_flags(recv_ex), IBV_WC_WITH_IMM);
    ck_assert_uint_eq(ibv_wc_read_src_qp(recv_ex), 0);
    ck_assert_uint_eq(ibv_wc_read_slid(recv_ex), 0);
    ck_assert_uint_eq(ibv_wc_read_sl(recv_ex), 0);
    ck_assert_uint_eq(ibv_wc_read_dlid_path_bits(recv_ex), 0);
    ibv_wc_read_tm_info(recv_ex, &info);
    ck_assert_uint_eq(info.tag, 0);
    ck_assert_uint_eq(ibv_wc_read_qp_num(recv_ex), b->qp_num);
    ibv_end_poll(recv_ex);
    drop_qps();
}
END_TEST

/* Data that waits in a ring moves to the next ring. */
START_TEST(a_resized_cq_keeps_its_data)
{
    const unsigned sent = 10;

    make_qps(_i ? 128 : 64, NULL, false, 0);
    for (unsigned i = 0; i < sent; i++) {
        struct ibv_sge sge = {(uintptr_t)to->addr + 64 * i, 64, to->lkey};
        struct ibv_recv_wr wr = {.wr_id = i, .sg_list = &sge, .num_sge = 1}, *bad;

        ck_assert_int_eq(ibv_post_recv(b, &wr, &bad), 0);
    }
    memset(to->addr, 0, 64 * sent);
    for (unsigned i = 0; i < sent; i++) {
        memset(from->addr, (int)i + 1, 64);
        send_len(10 + i);
    }
    ck_assert_int_eq(ibv_resize_cq(recv_cq, 100), 0);
    for (unsigned i = 0; i < sent; i++) {
        struct ibv_wc wc = table_wc(v, recv_cq);
        const uint8_t *data = (const uint8_t *)to->addr + 64 * i;

        ck_assert_uint_eq(wc.wr_id, i);
        ck_assert_uint_eq(data[0], i + 1);
        ck_assert_uint_eq(data[9 + i], i + 1);
        ck_assert_uint_eq(data[10 + i], 0);
    }
    drop_qps();
}
END_TEST

Suite *unit_suite(void)
{
    TCase *tc = tcase_create("cqe_data");
    Suite *suite = suite_create("verbs-cqe_data");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, small_messages_are_in_cqes, 0, 2);
    tcase_add_loop_test(tc, small_messages_of_a_shared_queue_are_in_cqes, 0, 2);
    tcase_add_loop_test(tc, what_signalled_queues_read_is_in_cqes, 0, 2);
    tcase_add_test(tc, flags_have_precedence_over_the_environment);
    tcase_add_test(tc, an_unsignalled_read_is_in_memory);
    tcase_add_test(tc, extended_polling_has_the_data);
    tcase_add_loop_test(tc, a_resized_cq_keeps_its_data, 0, 2);
    suite_add_tcase(suite, tc);
    return suite;
}
