/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests what is said of error completions of which the library does not know everything: keys that
 * it did not make, and a wire that does not list its hosts. Word for word, on two hosts in virtual
 * time. tests/programs/mistakes.c has the usual explanations.
 */
#include <check.h>
#include <inttypes.h>
#include <stdlib.h>
#include "guest-lib/host/local_internal.h"
#include "guest-lib/verbs/dv.h"
#include "guest-lib/verbs/kernel/hca.h"
#include "guest-lib/verbs/kernel/refuse.h"
#include "tests/programs/said.h"
#include "tests/unit/suite.h"
#include "tests/verbs/verbs_table.h"

static struct verbs_table *v;
static struct ibv_cq *cq;
static struct ibv_qp *a, *b;
static const char *name;

static void setup_on(struct verbs_table *table)
{
    v = table;
    v->hca[0]->explains = true;
    v->hca[0]->local->log_level = HCA_LOG_GUEST_ERROR;
    name = v->hca[0]->local->name;
    cq = ibv_create_cq(v->a, 64, NULL, NULL, 0);
    ck_assert_ptr_nonnull(cq);
    a = table_qp_new(v, 0, cq, NULL);
    b = verbs_qp(&v->hosts->host[1], IBV_QPT_RC, ibv_create_cq(v->b, 64, NULL, NULL, 0), NULL,
                 NULL);
}

static void setup(void)
{
    setup_on(verbs_table_new());
}

static void setup_strangers(void)
{
    setup_on(verbs_table_on(verbs_hosts_new(2, &(struct lossy_config){.strangers = true})));
}

static void teardown(void)
{
    struct ibv_cq *other = b->send_cq;

    table_qp_free(a);
    table_qp_free(b);
    verbs_must_be_0(ibv_destroy_cq(cq));
    verbs_must_be_0(ibv_destroy_cq(other));
    verbs_table_free(v);
}

static void post(struct ibv_sge *list, int num)
{
    struct ibv_send_wr *bad, wr = {.wr_id = 7,
                                   .sg_list = list,
                                   .num_sge = num,
                                   .opcode = IBV_WR_SEND,
                                   .send_flags = IBV_SEND_SIGNALED};

    verbs_must_be_0(ibv_post_send(a, &wr, &bad));
}

/* A key of direct verbs is no region of the library's. */
START_TEST(a_key_of_direct_verbs)
{
    struct mlx5dv_mkey_init_attr attr = {.pd = v->hosts->host[0].pd,
                                         .create_flags = MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT,
                                         .max_entries = 4};
    struct mlx5dv_mkey *mkey = hv_dv_create_mkey(&attr);
    struct ibv_sge sge = {0, 8, 0};

    ck_assert_ptr_nonnull(mkey);
    sge.lkey = mkey->lkey;
    table_connect(v, a, b);
    said_catch();
    post(&sge, 1);
    ck_assert_int_eq(table_wc(v, cq).status, IBV_WC_LOC_PROT_ERR);
    said("%s: qp 0x%x: WQE 0 (SEND 0xa) fails with LOCAL_PROT_ERR (syndrome 0x4): lkey 0x%x is "
         "free: it was invalidated, or is not registered\n"
         "%s: QP 0x%x, WR 0 (SEND, wr_id 7): IBV_WC_LOC_PROT_ERR (vendor_err 0x51): lkey 0x%x was "
         "made by mlx5dv or DevX, so only the device knows what it allows; look at the device's "
         "line above\n",
         name, a->qp_num, mkey->lkey, name, a->qp_num, mkey->lkey);
    ck_assert_int_eq(hv_dv_destroy_mkey(mkey), 0);
}
END_TEST

/* A wire that does not list its hosts: nothing is said of who is there. */
START_TEST(a_wire_of_strangers)
{
    struct ibv_mr *mr = table_mr_new(v, 0);
    struct ibv_sge sge = {(uintptr_t)mr->addr, 8, mr->lkey};
    struct hv_words address;

    verbs_connect(a, &v->hosts->host[1], 0x999999, &(struct verbs_path){.retry_cnt = 1});
    said_catch();
    post(&sge, 1);
    ck_assert_int_eq(table_wc(v, cq).status, IBV_WC_RETRY_EXC_ERR);
    said("%s: qp 0x%x: WQE 0 (SEND 0xa) fails with TRANSPORT_RETRY_EXC_ERR (syndrome 0x15)\n"
         "%s: QP 0x%x, WR 0 (SEND, wr_id 7): IBV_WC_RETRY_EXC_ERR (vendor_err 0x81): QP 0x999999 "
         "at %s did not answer after retry_cnt 1 retries (timeout 10); whether a host has this "
         "address is not known, so look at whether the peer has ended, at its address and QP "
         "number, and at whether its QP is in RTR or RTS and connected to this QP\n",
         name, a->qp_num, name, a->qp_num, hv_gid_name(&v->hosts->host[1].config.gid[1], &address));
    table_mr_free(mr);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *s = suite_create("explain");
    TCase *known = tcase_create("known"), *strangers = tcase_create("strangers");

    tcase_add_checked_fixture(known, setup, teardown);
    tcase_add_test(known, a_key_of_direct_verbs);
    suite_add_tcase(s, known);
    tcase_add_checked_fixture(strangers, setup_strangers, teardown);
    tcase_add_test(strangers, a_wire_of_strangers);
    suite_add_tcase(s, strangers);
    return s;
}
