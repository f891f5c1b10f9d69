/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests how a program finds experimental verbs: the table before the context, and what rdma-core's
 * programs see of it, which is nothing.
 */
#include <check.h>
#include <string.h>
#include "guest-lib/verbs/exp/include/infiniband/peer_ops.h"
#include "guest-lib/verbs/exp/include/infiniband/verbs_exp.h"
#include "tests/unit/suite.h"
#include "tests/verbs/verbs_table.h"

static struct verbs_table *v;

static void setup(void)
{
    v = verbs_table_new();
}

static void teardown(void)
{
    verbs_table_free(v);
}

/* The old header's verbs_get_exp_ctx(): 8 bytes before the context is sz, 8 bytes before sz is the
 * mask whose bit 62 says that there is a table, and the table ends where the structure of sz bytes
 * begins, with its own size. */
START_TEST(an_old_program_finds_the_table)
{
    char *ctx = (char *)v->a;
    size_t sz, own;
    uint64_t mask;

    ck_assert_ptr_eq(v->a->abi_compat, (void *)(uintptr_t)-1);
    memcpy(&sz, ctx - 8, 8);
    memcpy(&mask, ctx - 16, 8);
    ck_assert_uint_eq(mask, 1ull << 62);
    memcpy(&own, ctx - (sz - sizeof(struct ibv_context)) - 8, 8);
    ck_assert_uint_eq(own, 664);
    ck_assert_ptr_eq((char *)verbs_get_exp_ctx(v->a) + 664,
                     ctx - (sz - sizeof(struct ibv_context)));
}
END_TEST

/* A library with fewer members of struct verbs_context has a table, too, and the table may have
 * fewer calls. */
START_TEST(a_call_beyond_the_end_of_the_table_is_absent)
{
    struct verbs_context_exp *exp = verbs_get_exp_ctx(v->a);
    struct ibv_exp_dm *(*alloc_dm)(struct ibv_context *, struct ibv_exp_alloc_dm_attr *) =
        exp->exp_alloc_dm;
    int (*free_dm)(struct ibv_exp_dm *) = exp->exp_free_dm;

    exp->exp_alloc_dm = (void *)1;
    exp->exp_free_dm = (void *)1;
    exp->sz -= sizeof(void *);
    ck_assert_ptr_null(verbs_get_exp_ctx_op(v->a, exp_alloc_dm));
    ck_assert_ptr_eq(verbs_get_exp_ctx_op(v->a, exp_free_dm), exp);
    exp->sz += sizeof(void *);
    ck_assert_ptr_eq(verbs_get_exp_ctx_op(v->a, exp_alloc_dm), exp);
    exp->exp_alloc_dm = alloc_dm;
    exp->exp_free_dm = free_dm;
}
END_TEST

/* The same library for another device: errno, NULL, or -ENOSYS, as the old header's calls have
 * it. */
START_TEST(a_device_without_the_calls_answers_enosys)
{
    struct verbs_context_exp *exp = verbs_get_exp_ctx(v->a);
    struct verbs_context_exp all = *exp;
    struct ibv_cq *cq = ibv_create_cq(v->a, 1, NULL, NULL, 0);
    struct ibv_exp_device_attr device = {0};
    struct ibv_exp_values values = {0};
    struct ibv_exp_cq_init_attr cq_attr = {0};
    struct ibv_exp_cq_attr cq_mod = {0};
    struct ibv_exp_qp_init_attr qp_attr = {0};
    struct ibv_exp_wc wc;
    struct ibv_exp_reg_mr_in reg = {.pd = v->hosts->host[0].pd};
    struct ibv_exp_ec_calc calc = {.pd = v->hosts->host[0].pd};
    struct ibv_exp_peer_peek peek = {0};
    struct ibv_exp_alloc_dm_attr dm = {0};

    memset(exp, 0, sizeof(*exp) - sizeof(exp->sz));
    ck_assert_int_eq(ibv_exp_query_device(v->a, &device), ENOSYS);
    ck_assert_int_eq(ibv_exp_query_values(v->a, IBV_EXP_VALUES_HW_CLOCK, &values), -ENOSYS);
    ck_assert_int_eq(ibv_exp_modify_cq(cq, &cq_mod, 0), ENOSYS);
    ck_assert_int_eq(ibv_exp_poll_cq(cq, 1, &wc, sizeof(wc)), -ENOSYS);
    ck_assert_int_eq(ibv_exp_ec_encode_sync(&calc, NULL), ENOSYS);
    ck_assert_int_eq(ibv_exp_ec_update_sync(&calc, NULL, NULL, NULL), -ENOSYS);
    ck_assert_int_eq(ibv_exp_peer_peek_cq(cq, &peek), ENOSYS);
    errno = 0;
    ck_assert_ptr_null(ibv_exp_create_cq(v->a, 1, NULL, NULL, 0, &cq_attr));
    ck_assert_int_eq(errno, ENOSYS);
    errno = 0;
    ck_assert_ptr_null(ibv_exp_create_qp(v->a, &qp_attr));
    ck_assert_int_eq(errno, ENOSYS);
    errno = 0;
    ck_assert_ptr_null(ibv_exp_reg_mr(&reg));
    ck_assert_int_eq(errno, ENOSYS);
    errno = 0;
    ck_assert_ptr_null(ibv_exp_alloc_dm(v->a, &dm));
    ck_assert_int_eq(errno, 0);
    ck_assert_int_eq(ibv_exp_use_priv_env(v->a), -1);
    ck_assert_int_eq(ibv_exp_setenv(v->a, "HV_TEST_EXP", "1", 1), 0);
    ck_assert_str_eq(getenv("HV_TEST_EXP"), "1");
    *exp = all;
    ck_assert_int_eq(ibv_destroy_cq(cq), 0);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("verbs-exp-context");
    TCase *tc = tcase_create("context");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, an_old_program_finds_the_table);
    tcase_add_test(tc, a_call_beyond_the_end_of_the_table_is_absent);
    tcase_add_test(tc, a_device_without_the_calls_answers_enosys);
    suite_add_tcase(suite, tc);
    return suite;
}
