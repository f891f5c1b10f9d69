/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests inline receive of ibv_exp_create_qp() (max_inl_recv) from end to end: small data stays in
 * the CQE until the program polls it, and is then in the program's buffer.
 */
#include <check.h>
#include <string.h>
#include "guest-lib/verbs/dv.h"
#include "tests/unit/suite.h"
#include "tests/verbs/exp_queues_bench.h"

#define ROOM 100

static struct ibv_cq *sized_cq(int side, unsigned cqe_size)
{
    struct ibv_cq_init_attr_ex attr = {.cqe = 15, .wc_flags = IBV_WC_STANDARD_FLAGS};
    struct mlx5dv_cq_init_attr dv = {.comp_mask = MLX5DV_CQ_INIT_ATTR_MASK_CQE_SIZE,
                                     .cqe_size = (uint16_t)cqe_size};

    return ibv_cq_ex_to_cq(hv_dv_create_cq(side ? v->b : v->a, &attr, &dv));
}

struct kind {
    enum ibv_qp_type type;
    unsigned cqe_size;
    bool sig_all, asks;
};

/* Connects two QPs of that kind in the place of the bench's. */
static void use(struct kind kind)
{
    for (int i = 0; i < 2; i++) {
        struct ibv_exp_qp_init_attr attr;

        table_qp_free(qp[i]);
        ck_assert_int_eq(ibv_destroy_cq(cq[i]), 0);
        cq[i] = sized_cq(i, kind.cqe_size);
        attr = qp_attr(i);
        attr.qp_type = kind.type;
        attr.sq_sig_all = kind.sig_all;
        attr.comp_mask |= IBV_EXP_QP_INIT_ATTR_INL_RECV;
        attr.max_inl_recv = kind.asks;
        qp[i] = qp_new(i, attr);
        ck_assert_ptr_nonnull(qp[i]);
    }
    table_connect(v, qp[0], qp[1]);
}

/* Sends so many bytes; returns whether they stayed in the CQE until it was polled. */
static bool is_send_in_cqe(uint32_t len)
{
    struct ibv_sge to = {(uintptr_t)mr[1]->addr, ROOM, mr[1]->lkey},
                   from = {(uintptr_t)mr[0]->addr, len, mr[0]->lkey};
    struct ibv_recv_wr recv = {.wr_id = len, .sg_list = &to, .num_sge = 1}, *bad;
    struct ibv_exp_send_wr wr = {
        .sg_list = &from, .num_sge = 1, .exp_opcode = IBV_EXP_WR_SEND_WITH_IMM};
    struct ibv_exp_wc wc;
    bool was_there;

    memset(mr[1]->addr, 0, ROOM);
    ck_assert_int_eq(ibv_post_recv(qp[1], &recv, &bad), 0);
    ck_assert_int_eq(complete(&wr).status, IBV_WC_SUCCESS);
    table_wait(v);
    was_there = !memcmp(mr[1]->addr, mr[0]->addr, len);
    wc = wc_of(cq[1]);
    ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
    ck_assert_uint_eq(wc.wr_id, len);
    ck_assert_uint_eq(wc.byte_len, len);
    ck_assert_mem_eq(mr[1]->addr, mr[0]->addr, len);
    ck_assert_uint_eq(((uint8_t *)mr[1]->addr)[len], 0);
    return !was_there;
}

static const uint32_t lens[] = {1, 8, 31, 32, 33, 64, 65, 99};

START_TEST(small_messages_stay_in_the_cqe_until_it_is_polled)
{
    static const enum ibv_qp_type types[] = {IBV_QPT_RC, IBV_QPT_UC};
    unsigned size = _i & 1 ? 128 : 64;

    use((struct kind){types[_i / 2], size, .asks = true});
    for (size_t i = 0; i < G_N_ELEMENTS(lens); i++) {
        ck_assert_int_eq(is_send_in_cqe(lens[i]), lens[i] <= size / 2);
    }
}
END_TEST

/* The libmlx5 of MLNX_OFED asks for small data only if the program does, and reads no
 * MLX5_SCATTER_TO_CQE. */
START_TEST(only_the_program_asks_for_small_data)
{
    use((struct kind){IBV_QPT_RC, 64, .sig_all = true});
    ck_assert(!is_send_in_cqe(8));
    g_setenv("MLX5_SCATTER_TO_CQE", "0", true);
    use((struct kind){IBV_QPT_RC, 64, .asks = true});
    g_unsetenv("MLX5_SCATTER_TO_CQE");
    ck_assert(is_send_in_cqe(8));
}
END_TEST

/* Posts a request for that many bytes of host 1's page, and returns whether they stayed in the CQE.
 * old: the program polls by ibv_poll_cq(). */
static bool is_answer_in_cqe(struct ibv_exp_send_wr *wr, const void *expected, uint32_t len,
                             bool old)
{
    struct ibv_sge to = {(uintptr_t)mr[0]->addr, len, mr[0]->lkey};
    bool was_there;

    wr->sg_list = &to;
    wr->num_sge = 1;
    wr->exp_send_flags = IBV_EXP_SEND_SIGNALED;
    memset(mr[0]->addr, 0, ROOM);
    ck_assert_int_eq(post(wr), 0);
    table_wait(v);
    was_there = !memcmp(mr[0]->addr, expected, len);
    ck_assert_int_eq(old ? table_wc(v, cq[0]).status : wc_of(cq[0]).status, IBV_WC_SUCCESS);
    ck_assert_mem_eq(mr[0]->addr, expected, len);
    return !was_there;
}

static bool is_read_in_cqe(uint32_t len)
{
    struct ibv_exp_send_wr wr = {.exp_opcode = IBV_EXP_WR_RDMA_READ,
                                 .wr.rdma = {(uintptr_t)mr[1]->addr, mr[1]->rkey}};

    return is_answer_in_cqe(&wr, mr[1]->addr, len, false);
}

/* mlx5_copy_to_send_wqe(): the answer has the host's order, as in memory. */
static bool is_atomic_in_cqe(enum ibv_exp_wr_opcode opcode, bool old)
{
    uint64_t *there = mr[1]->addr, before = *there;
    struct ibv_exp_send_wr wr = {.exp_opcode = opcode,
                                 .wr.atomic = {.remote_addr = (uintptr_t)there,
                                               .compare_add = before,
                                               .swap = 2 * before,
                                               .rkey = mr[1]->rkey}};
    bool in_cqe = is_answer_in_cqe(&wr, &before, sizeof(before), old);

    ck_assert_uint_eq(*there, 2 * before); /* by either opcode */
    return in_cqe;
}

START_TEST(small_answers_of_a_signalled_queue_stay_in_the_cqe)
{
    unsigned size = _i ? 128 : 64;

    use((struct kind){IBV_QPT_RC, size, .sig_all = true, .asks = true});
    for (size_t i = 0; i < G_N_ELEMENTS(lens); i++) {
        ck_assert_int_eq(is_read_in_cqe(lens[i]), lens[i] <= size / 2);
        ck_assert(is_atomic_in_cqe(IBV_EXP_WR_ATOMIC_FETCH_AND_ADD, i & 1));
        ck_assert(is_atomic_in_cqe(IBV_EXP_WR_ATOMIC_CMP_AND_SWP, i & 1));
    }
}
END_TEST

START_TEST(answers_of_other_queues_are_in_memory)
{
    use((struct kind){IBV_QPT_RC, 64, .sig_all = _i == 1, .asks = _i == 2});
    ck_assert(!is_read_in_cqe(8));
    ck_assert(!is_atomic_in_cqe(IBV_EXP_WR_ATOMIC_FETCH_AND_ADD, false));
}
END_TEST

/* Its answer is never in a CQE (docs/adr/0013). */
START_TEST(the_answer_of_a_masked_atomic_is_in_memory)
{
    uint64_t before = *(uint64_t *)mr[1]->addr;
    struct ibv_sge sge;
    struct ibv_exp_send_wr wr = masked(&sge, 3, false);

    use((struct kind){IBV_QPT_RC, 64, .sig_all = true, .asks = true});
    wr.exp_send_flags |= IBV_EXP_SEND_SIGNALED;
    ck_assert_int_eq(post(&wr), 0);
    table_wait(v);
    ck_assert_uint_eq(*(uint64_t *)mr[0]->addr, before);
    ck_assert_int_eq(wc_of(cq[0]).status, IBV_WC_SUCCESS);
    ck_assert_uint_eq(*(uint64_t *)mr[0]->addr, before);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("verbs-exp-inline");
    TCase *tc = tcase_create("inline receive");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, small_messages_stay_in_the_cqe_until_it_is_polled, 0, 4);
    tcase_add_test(tc, only_the_program_asks_for_small_data);
    tcase_add_loop_test(tc, small_answers_of_a_signalled_queue_stay_in_the_cqe, 0, 2);
    tcase_add_loop_test(tc, answers_of_other_queues_are_in_memory, 0, 3);
    tcase_add_test(tc, the_answer_of_a_masked_atomic_is_in_memory);
    suite_add_tcase(suite, tc);
    return suite;
}
