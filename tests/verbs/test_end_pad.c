/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests the padding of received data as programs ask for it: IBV_QP_CREATE_PCI_WRITE_END_PADDING,
 * IBV_WQ_FLAGS_PCI_WRITE_END_PADDING. tests/unit/test_end_pad.c tests which bytes are written.
 */
#include <check.h>
#include <string.h>
#include "tests/unit/suite.h"
#include "tests/verbs/verbs_table.h"

#define OLD 0xee
#define LEN 100 /* too long for a CQE; the cache line ends at 128 */

static struct verbs_table *v;

static void setup(void)
{
    v = verbs_table_new();
}

static void teardown(void)
{
    verbs_table_free(v);
}

START_TEST(the_device_says_that_it_pads)
{
    struct ibv_device_attr_ex attr;

    ck_assert_int_eq(ibv_query_device_ex(v->a, NULL, &attr), 0);
    ck_assert(attr.device_cap_flags_ex & IBV_DEVICE_PCI_WRITE_END_PADDING);
}
END_TEST

static struct ibv_qp *padding_qp(struct ibv_cq *cq, uint32_t create_flags)
{
    struct ibv_qp_init_attr_ex attr = {
        .qp_type = IBV_QPT_RC,
        .send_cq = cq,
        .recv_cq = cq,
        .cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
        .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS,
        .pd = v->hosts->host[1].pd,
        .create_flags = create_flags,
    };
    struct ibv_qp *qp = ibv_create_qp_ex(v->b, &attr);

    ck_assert_ptr_nonnull(qp);
    return qp;
}

START_TEST(a_qp_pads_what_it_receives)
{
    uint32_t flags = _i ? IBV_QP_CREATE_PCI_WRITE_END_PADDING : 0;
    struct ibv_cq *from_cq = ibv_create_cq(v->a, 4, NULL, NULL, 0);
    struct ibv_cq *to_cq = ibv_create_cq(v->b, 4, NULL, NULL, 0);
    struct ibv_qp *a = table_qp_new(v, 0, from_cq, NULL), *b = padding_qp(to_cq, flags);
    struct ibv_mr *from = table_mr_new(v, 0), *to = table_mr_new(v, 1);
    struct ibv_sge sge = {(uintptr_t)to->addr, 1000, to->lkey};
    struct ibv_recv_wr recv = {.sg_list = &sge, .num_sge = 1}, *bad_recv;
    struct ibv_sge data = {(uintptr_t)from->addr, LEN, from->lkey};
    struct ibv_send_wr send = {.sg_list = &data,
                               .num_sge = 1,
                               .opcode = IBV_WR_SEND,
                               .send_flags = IBV_SEND_SIGNALED},
                       *bad_send;
    const uint8_t *bytes = memset(to->addr, OLD, 1000);

    memset(from->addr, 0x5a, LEN);
    table_connect(v, a, b);
    ck_assert_int_eq(ibv_post_recv(b, &recv, &bad_recv), 0);
    ck_assert_int_eq(ibv_post_send(a, &send, &bad_send), 0);
    ck_assert_uint_eq(table_wc(v, to_cq).byte_len, LEN);
    for (unsigned i = 0; i < 1000; i++) {
        ck_assert_uint_eq(bytes[i], i < LEN ? 0x5a : i < 128 && _i ? 0 : OLD);
    }
    table_wait(v);
    table_qp_free(a);
    table_qp_free(b);
    table_mr_free(from);
    table_mr_free(to);
    ck_assert_int_eq(ibv_destroy_cq(from_cq), 0);
    ck_assert_int_eq(ibv_destroy_cq(to_cq), 0);
}
END_TEST

/* What a WQ asks for is in its context. */
START_TEST(a_wq_asks_for_it)
{
    struct ibv_cq *cq = ibv_create_cq(v->a, 4, NULL, NULL, 0);
    struct ibv_wq_init_attr attr = {.wq_type = IBV_WQT_RQ,
                                    .max_wr = 4,
                                    .max_sge = 1,
                                    .pd = v->hosts->host[0].pd,
                                    .cq = cq,
                                    .comp_mask = IBV_WQ_INIT_ATTR_FLAGS,
                                    .create_flags = IBV_WQ_FLAGS_PCI_WRITE_END_PADDING};
    struct ibv_wq *wq = ibv_create_wq(v->a, &attr);
    struct prm_query_rq_in in[1] = {0};
    struct prm_query_rq_out out[1] = {0};

    ck_assert_ptr_nonnull(wq);
    PRM_SET(query_rq_in, in, opcode, PRM_CMD_OP_QUERY_RQ);
    PRM_SET(query_rq_in, in, rqn, wq->wq_num);
    ck_assert_int_eq(hv_cmd(v->hca[0], in, sizeof(in), out, sizeof(out)), 0);
    ck_assert_uint_eq(
        PRM_GET(wq, PRM_PTR(rqc, PRM_PTR(query_rq_out, out, rq_context), wq), end_padding_mode),
        PRM_WQ_END_PADDING_ALIGN);
    ck_assert_int_eq(ibv_destroy_wq(wq), 0);
    ck_assert_int_eq(ibv_destroy_cq(cq), 0);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("end padding");
    TCase *tc = tcase_create("end padding");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, the_device_says_that_it_pads);
    tcase_add_loop_test(tc, a_qp_pads_what_it_receives, 0, 2);
    tcase_add_test(tc, a_wq_asks_for_it);
    suite_add_tcase(suite, tc);
    return suite;
}
