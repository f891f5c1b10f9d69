/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests cross channel in the library: the requests that wait and enable, and ibv_exp_post_task().
 * The rules of the counts are those that libmlx5 and the tests of mellanox-hpc/ibverbs-tests
 * (tests/cross-channel) have.
 */
#include <check.h>
#include <errno.h>
#include <string.h>
#include "guest-lib/verbs/exp/include/infiniband/verbs_exp.h"
#include "guest-lib/verbs/user/queues.h"
#include "tests/unit/suite.h"
#include "tests/verbs/verbs_table.h"

#define DEPTH 8

static struct verbs_table *v;
static struct ibv_cq *cq, *master_cq, *far_cq; /* the first two on host 0 */
static struct ibv_mr *mr, *far_mr;
static struct ibv_qp *master, *managed, *far[2];

static struct ibv_qp *new_qp(struct ibv_cq *on, uint32_t flags)
{
    struct ibv_exp_qp_init_attr attr = {
        .send_cq = on,
        .recv_cq = on,
        .cap = {.max_send_wr = DEPTH, .max_recv_wr = DEPTH, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = IBV_QPT_RC,
        .pd = v->hosts->host[0].pd,
        .comp_mask = IBV_EXP_QP_INIT_ATTR_PD | IBV_EXP_QP_INIT_ATTR_CREATE_FLAGS,
        .exp_create_flags = flags};
    struct ibv_qp *qp = ibv_exp_create_qp(v->a, &attr);

    ck_assert_ptr_nonnull(qp);
    return qp;
}

static void setup_with(uint32_t flags)
{
    v = verbs_table_new();
    cq = ibv_create_cq(v->a, 63, NULL, NULL, 0);
    master_cq = ibv_create_cq(v->a, 63, NULL, NULL, 0);
    far_cq = ibv_create_cq(v->b, 63, NULL, NULL, 0);
    mr = table_mr_new(v, 0);
    far_mr = table_mr_new(v, 1);
    master = new_qp(master_cq, IBV_EXP_QP_CREATE_CROSS_CHANNEL);
    managed = new_qp(cq, flags);
    for (unsigned i = 0; i < 2; i++) {
        far[i] = table_qp_new(v, 1, far_cq, NULL);
        table_connect(v, i ? managed : master, far[i]);
    }
}

static void setup(void)
{
    setup_with(IBV_EXP_QP_CREATE_CROSS_CHANNEL | IBV_EXP_QP_CREATE_MANAGED_SEND |
               IBV_EXP_QP_CREATE_MANAGED_RECV);
}

static void setup_plain(void)
{
    setup_with(IBV_EXP_QP_CREATE_IGNORE_SQ_OVERFLOW | IBV_EXP_QP_CREATE_IGNORE_RQ_OVERFLOW);
}

static void teardown(void)
{
    table_qp_free(master);
    table_qp_free(managed);
    table_qp_free(far[0]);
    table_qp_free(far[1]);
    table_mr_free(mr);
    table_mr_free(far_mr);
    ck_assert_int_eq(ibv_destroy_cq(cq), 0);
    ck_assert_int_eq(ibv_destroy_cq(master_cq), 0);
    ck_assert_int_eq(ibv_destroy_cq(far_cq), 0);
    verbs_table_free(v);
}

static int post(struct ibv_qp *qp, struct ibv_exp_send_wr wr)
{
    struct ibv_exp_send_wr *bad;

    wr.exp_send_flags |= IBV_EXP_SEND_SIGNALED;
    return ibv_exp_post_send(qp, &wr, &bad);
}

static struct ibv_exp_send_wr wait_wr(struct ibv_cq *on, int count, uint64_t flags)
{
    struct ibv_exp_send_wr wr = {.exp_opcode = IBV_EXP_WR_CQE_WAIT, .exp_send_flags = flags};

    wr.task.cqe_wait.cq = on;
    wr.task.cqe_wait.cq_count = count;
    return wr;
}

static struct ibv_exp_send_wr enable_wr(enum ibv_exp_wr_opcode opcode, int count, uint64_t flags)
{
    struct ibv_exp_send_wr wr = {.exp_opcode = opcode, .exp_send_flags = flags};

    wr.task.wqe_enable.qp = managed;
    wr.task.wqe_enable.wqe_count = count;
    return wr;
}

static int enable(int count, uint64_t flags)
{
    return post(master, enable_wr(IBV_EXP_WR_SEND_ENABLE, count, flags));
}

static void post_writes(unsigned n)
{
    struct ibv_sge sge = {(uintptr_t)mr->addr, 64, mr->lkey};
    struct ibv_exp_send_wr wr = {
        .exp_opcode = IBV_EXP_WR_RDMA_WRITE, .sg_list = &sge, .num_sge = 1};

    wr.wr.rdma.remote_addr = (uintptr_t)far_mr->addr;
    wr.wr.rdma.rkey = far_mr->rkey;
    for (unsigned i = 0; i < n; i++) {
        wr.wr_id = i;
        ck_assert_int_eq(post(managed, wr), 0);
    }
}

/* Takes all completions of a CQ, which must be successful, and returns their number. */
static unsigned completed(struct ibv_cq *of)
{
    struct ibv_wc wc;
    unsigned n = 0;

    table_wait(v);
    for (; ibv_poll_cq(of, 1, &wc) == 1; n++) {
        ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
    }
    return n;
}

/* -- enables ----------------------------------------------------------------------------------- */

START_TEST(a_managed_queue_sends_what_is_enabled)
{
    post_writes(3);
    ck_assert_uint_eq(completed(cq), 0);
    ck_assert_mem_ne(mr->addr, far_mr->addr, 64);
    ck_assert_int_eq(enable(2, IBV_EXP_SEND_WAIT_EN_LAST), 0);
    ck_assert_uint_eq(completed(cq), 2);
    ck_assert_mem_eq(mr->addr, far_mr->addr, 64);
    ck_assert_int_eq(enable(0, IBV_EXP_SEND_WAIT_EN_LAST), 0);
    ck_assert_uint_eq(completed(cq), 1);
    ck_assert_uint_eq(completed(master_cq), 2);
}
END_TEST

/* "internal index is relative previous post and incremented after special WAIT posted" (TI.9 and
 * TI.10 of post_send_en.cc). */
START_TEST(counts_are_counted_from_the_last_request_with_the_flag)
{
    post_writes(8);
    for (unsigned i = 0; i < 3; i++) {
        ck_assert_int_eq(enable(2, i < 2 ? 0 : IBV_EXP_SEND_WAIT_EN_LAST), 0);
    }
    ck_assert_uint_eq(completed(cq), 2);
    for (unsigned i = 0; i < 2; i++) {
        ck_assert_int_eq(enable(2, IBV_EXP_SEND_WAIT_EN_LAST), 0);
    }
    ck_assert_uint_eq(completed(cq), 4);
    ck_assert_uint_eq(completed(master_cq), 5);
    /* the largest count since the last flag counts */
    ck_assert_int_eq(enable(2, 0), 0);
    ck_assert_int_eq(enable(1, IBV_EXP_SEND_WAIT_EN_LAST), 0);
    ck_assert_uint_eq(completed(cq), 2);
    ck_assert_int_eq(enable(1, 0), EINVAL);
}
END_TEST

START_TEST(an_enable_of_more_than_is_posted_is_refused)
{
    post_writes(2);
    ck_assert_int_eq(enable(3, 0), EINVAL);
    ck_assert_int_eq(post(master, enable_wr(IBV_EXP_WR_RECV_ENABLE, 1, 0)), EINVAL);
    ck_assert_int_eq(enable(2, 0), 0);
    ck_assert_uint_eq(completed(cq), 2);
}
END_TEST

START_TEST(a_reset_queue_counts_anew)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};

    post_writes(2);
    ck_assert_int_eq(enable(2, IBV_EXP_SEND_WAIT_EN_LAST), 0);
    ck_assert_uint_eq(completed(cq), 2);
    ck_assert_int_eq(ibv_modify_qp(managed, &attr, IBV_QP_STATE), 0);
    ck_assert_int_eq(ibv_modify_qp(far[1], &attr, IBV_QP_STATE), 0);
    table_connect(v, managed, far[1]);
    post_writes(1);
    ck_assert_int_eq(enable(0, 0), 0);
    ck_assert_uint_eq(completed(cq), 1);
}
END_TEST

/* EINVAL, as libmlx5: the requests need a master, and enables a managed queue. */
START_TEST(other_qps_have_no_cross_channel)
{
    struct ibv_exp_send_wr wr = enable_wr(IBV_EXP_WR_SEND_ENABLE, 0, 0);

    ck_assert_int_eq(post(managed, wait_wr(cq, 0, 0)), EINVAL);
    ck_assert_int_eq(post(managed, wr), EINVAL);
    ck_assert_int_eq(post(master, wr), EINVAL);
    wr.exp_opcode = IBV_EXP_WR_RECV_ENABLE;
    ck_assert_int_eq(post(master, wr), EINVAL);
    ck_assert_uint_eq(completed(master_cq), 0);
}
END_TEST

/* The program finds all its requests, enabled or not. */
START_TEST(all_requests_of_a_managed_queue_are_flushed)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

    post_writes(3);
    ck_assert_int_eq(ibv_modify_qp(managed, &attr, IBV_QP_STATE), 0);
    for (unsigned i = 0; i < 3; i++) {
        struct ibv_wc wc = table_wc(v, cq);

        ck_assert_int_eq(wc.status, IBV_WC_WR_FLUSH_ERR);
        ck_assert_uint_eq(wc.wr_id, i);
    }
}
END_TEST

START_TEST(a_managed_queue_receives_into_what_is_enabled)
{
    struct ibv_sge to = {(uintptr_t)mr->addr, 64, mr->lkey},
                   from = {(uintptr_t)far_mr->addr, 64, far_mr->lkey};
    struct ibv_recv_wr recv = {.sg_list = &to, .num_sge = 1}, *bad_recv;
    struct ibv_send_wr send = {
        .opcode = IBV_WR_SEND, .sg_list = &from, .num_sge = 1, .send_flags = IBV_SEND_SIGNALED};
    struct ibv_send_wr *bad;

    for (unsigned i = 0; i < 2; i++) {
        ck_assert_int_eq(ibv_post_recv(managed, &recv, &bad_recv), 0);
        ck_assert_int_eq(ibv_post_send(far[1], &send, &bad), 0);
    }
    ck_assert_uint_eq(completed(cq), 0);
    ck_assert_int_eq(post(master, enable_wr(IBV_EXP_WR_RECV_ENABLE, 1, IBV_EXP_SEND_WAIT_EN_LAST)),
                     0);
    ck_assert_uint_eq(completed(cq), 1);
    ck_assert_int_eq(post(master, enable_wr(IBV_EXP_WR_RECV_ENABLE, 1, IBV_EXP_SEND_WAIT_EN_LAST)),
                     0);
    ck_assert_uint_eq(completed(cq), 1);
    ck_assert_uint_eq(completed(far_cq), 2);
}
END_TEST

/* -- waits ------------------------------------------------------------------------------------- */

START_TEST(a_wait_ends_with_its_count_of_completions)
{
    ck_assert_int_eq(post(master, wait_wr(cq, 2, IBV_EXP_SEND_WAIT_EN_LAST)), 0);
    ck_assert_int_eq(post(master, wait_wr(cq, 1, 0)), 0);
    ck_assert_int_eq(post(master, wait_wr(cq, 1, 0)), 0);
    ck_assert_uint_eq(completed(master_cq), 0);
    post_writes(1);
    ck_assert_uint_eq(completed(master_cq), 0);
    post_writes(1);
    ck_assert_uint_eq(completed(master_cq), 1);
    post_writes(1);
    ck_assert_uint_eq(completed(master_cq), 2);
}
END_TEST

/* The entry that ends the old ring is no completion. */
START_TEST(a_wait_counts_completions_after_a_resize)
{
    post_writes(1);
    ck_assert_uint_eq(completed(cq), 1);
    ck_assert_int_eq(ibv_resize_cq(cq, 127), 0);
    ck_assert_int_eq(post(master, wait_wr(cq, 1, IBV_EXP_SEND_WAIT_EN_LAST)), 0);
    ck_assert_uint_eq(completed(master_cq), 1);
    ck_assert_int_eq(post(master, wait_wr(cq, 1, IBV_EXP_SEND_WAIT_EN_LAST)), 0);
    ck_assert_uint_eq(completed(master_cq), 0);
    post_writes(1);
    ck_assert_uint_eq(completed(master_cq), 1);
}
END_TEST

/* A master starts a queue, waits for it, and then writes itself: both rounds are posted before
 * the first begins. */
START_TEST(a_chain_goes_on_by_itself)
{
    struct ibv_sge sge = {(uintptr_t)mr->addr + 64, 8, mr->lkey};
    struct ibv_exp_send_wr write = {
        .exp_opcode = IBV_EXP_WR_RDMA_WRITE, .sg_list = &sge, .num_sge = 1};

    write.wr.rdma.remote_addr = (uintptr_t)far_mr->addr + 64;
    write.wr.rdma.rkey = far_mr->rkey;
    post_writes(6);
    for (unsigned i = 0; i < 2; i++) {
        ck_assert_int_eq(enable(3, IBV_EXP_SEND_WAIT_EN_LAST), 0);
        ck_assert_int_eq(post(master, wait_wr(cq, 3, IBV_EXP_SEND_WAIT_EN_LAST)), 0);
        ck_assert_int_eq(post(master, write), 0);
    }
    ck_assert_uint_eq(completed(master_cq), 6);
    ck_assert_uint_eq(completed(cq), 6);
    ck_assert_mem_eq((char *)mr->addr + 64, (char *)far_mr->addr + 64, 8);
}
END_TEST

/* -- ibv_exp_post_task() ----------------------------------------------------------------------- */

START_TEST(tasks_are_posted_in_order_until_one_fails)
{
    struct ibv_sge sge = {(uintptr_t)mr->addr, 64, mr->lkey};
    struct ibv_exp_send_wr write = {.exp_opcode = IBV_EXP_WR_RDMA_WRITE,
                                    .sg_list = &sge,
                                    .num_sge = 1,
                                    .exp_send_flags = IBV_EXP_SEND_SIGNALED};
    struct ibv_recv_wr recv = {.sg_list = &sge, .num_sge = 1};
    struct ibv_exp_send_wr wait = wait_wr(cq, 1, IBV_EXP_SEND_SIGNALED | IBV_EXP_SEND_WAIT_EN_LAST),
                           start = enable_wr(IBV_EXP_WR_SEND_ENABLE, 1, IBV_EXP_SEND_SIGNALED),
                           more = enable_wr(IBV_EXP_WR_SEND_ENABLE, 9, 0);
    struct ibv_exp_task tasks[] = {
        {.task_type = IBV_EXP_TASK_SEND, .item = {.qp = managed, .send_wr = &write}},
        {.task_type = IBV_EXP_TASK_RECV, .item = {.qp = managed, .recv_wr = &recv}},
        {.task_type = IBV_EXP_TASK_SEND, .item = {.qp = master, .send_wr = &start}},
        {.task_type = IBV_EXP_TASK_SEND, .item = {.qp = master, .send_wr = &wait}},
        {.task_type = IBV_EXP_TASK_SEND, .item = {.qp = master, .send_wr = &more}},
        {.task_type = IBV_EXP_TASK_SEND, .item = {.qp = master, .send_wr = &start}},
    };
    struct ibv_exp_task *bad = NULL;

    write.wr.rdma.remote_addr = (uintptr_t)far_mr->addr;
    write.wr.rdma.rkey = far_mr->rkey;
    for (unsigned i = 0; i + 1 < G_N_ELEMENTS(tasks); i++) {
        tasks[i].next = &tasks[i + 1];
    }
    ck_assert_int_eq(ibv_exp_post_task(v->a, tasks, &bad), EINVAL);
    ck_assert_ptr_eq(bad, &tasks[4]);
    ck_assert_uint_eq(completed(cq), 1);
    ck_assert_uint_eq(completed(master_cq), 2);
    tasks[0].next = NULL;
    tasks[0].task_type = (enum ibv_exp_task_type)2;
    ck_assert_int_eq(ibv_exp_post_task(v->a, tasks, NULL), -1);
    tasks[0].comp_mask = 1;
    ck_assert_int_eq(ibv_exp_post_task(v->a, tasks, &bad), EINVAL);
}
END_TEST

/* Lists of one context do not mix; those of other contexts go on meanwhile. */
START_TEST(a_list_waits_for_no_list_of_another_context)
{
    struct ibv_sge sge = {(uintptr_t)mr->addr, 64, mr->lkey};
    struct ibv_recv_wr recv = {.sg_list = &sge, .num_sge = 1};
    struct ibv_exp_task task = {.task_type = IBV_EXP_TASK_RECV,
                                .item = {.qp = managed, .recv_wr = &recv}};
    pthread_mutex_t *other = &hv_context(v->b)->task_lock;

    ck_assert_int_eq(pthread_mutex_lock(other), 0);
    ck_assert_int_eq(ibv_exp_post_task(v->a, &task, NULL), 0);
    ck_assert_int_eq(pthread_mutex_unlock(other), 0);
    ck_assert_int_eq(pthread_mutex_trylock(&hv_context(v->a)->task_lock), 0); /* it is free again */
    ck_assert_int_eq(pthread_mutex_unlock(&hv_context(v->a)->task_lock), 0);
}
END_TEST

/* -- overflow ---------------------------------------------------------------------------------- */

/* The library does not count requests of such a queue. */
START_TEST(a_queue_may_ignore_its_overflow)
{
    struct ibv_sge sge = {(uintptr_t)mr->addr, 64, mr->lkey};
    struct ibv_recv_wr recv = {.sg_list = &sge, .num_sge = 1}, *bad_recv;

    for (unsigned i = 0; i < 3; i++) {
        post_writes(DEPTH);
        table_wait(v); /* carried out, but not polled */
    }
    ck_assert_uint_eq(completed(cq), 3 * DEPTH);
    for (unsigned i = 0; i < 2 * DEPTH; i++) {
        ck_assert_int_eq(ibv_post_recv(managed, &recv, &bad_recv), 0);
    }
}
END_TEST

/* Waits count completions that the program has not polled and that others have overwritten. */
START_TEST(a_cq_may_ignore_its_overrun)
{
    struct ibv_exp_cq_attr attr = {.comp_mask = IBV_EXP_CQ_ATTR_CQ_CAP_FLAGS,
                                   .cq_cap_flags = IBV_EXP_CQ_IGNORE_OVERRUN};

    ck_assert_int_eq(ibv_exp_modify_cq(cq, &attr, IBV_EXP_CQ_CAP_FLAGS), 0);
    ck_assert_int_eq(post(master, wait_wr(cq, 25 * DEPTH, 0)), 0);
    for (unsigned i = 0; i < 25; i++) {
        ck_assert_uint_eq(completed(master_cq), 0);
        post_writes(DEPTH);
        table_wait(v);
    }
    ck_assert_uint_eq(completed(master_cq), 1);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *s = suite_create("experimental verbs: cross channel");
    TCase *tc = tcase_create("managed");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, a_managed_queue_sends_what_is_enabled);
    tcase_add_test(tc, counts_are_counted_from_the_last_request_with_the_flag);
    tcase_add_test(tc, an_enable_of_more_than_is_posted_is_refused);
    tcase_add_test(tc, a_reset_queue_counts_anew);
    tcase_add_test(tc, all_requests_of_a_managed_queue_are_flushed);
    tcase_add_test(tc, a_managed_queue_receives_into_what_is_enabled);
    tcase_add_test(tc, a_chain_goes_on_by_itself);
    tcase_add_test(tc, tasks_are_posted_in_order_until_one_fails);
    tcase_add_test(tc, a_list_waits_for_no_list_of_another_context);
    suite_add_tcase(s, tc);

    tc = tcase_create("plain");
    tcase_add_checked_fixture(tc, setup_plain, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, other_qps_have_no_cross_channel);
    tcase_add_test(tc, a_wait_ends_with_its_count_of_completions);
    tcase_add_test(tc, a_wait_counts_completions_after_a_resize);
    tcase_add_test(tc, a_queue_may_ignore_its_overflow);
    tcase_add_test(tc, a_cq_may_ignore_its_overrun);
    suite_add_tcase(s, tc);
    return s;
}
