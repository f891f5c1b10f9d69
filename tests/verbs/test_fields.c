/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests the fields of objects that a program can read. They contain what libibverbs writes there:
 * what the program gave, used or not, and what it requested through this handle.
 */
#include <check.h>
#include <fcntl.h>
#include <stdlib.h>
#include "guest-lib/verbs/kernel/kernel.h"
#include "tests/unit/suite.h"
#include "tests/verbs/verbs_table.h"

static struct verbs_table *v;
static struct ibv_pd *pd;
static struct ibv_cq *send_cq, *recv_cq;
static struct ibv_srq *srq;
static struct ibv_xrcd *xrcd;
static int given; /* a value of the program's own */

static void setup(void)
{
    struct ibv_srq_init_attr srq_attr = {.srq_context = &given,
                                         .attr = {.max_wr = 7, .max_sge = 1}};
    struct ibv_xrcd_init_attr domain = {.comp_mask =
                                            IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
                                        .fd = -1,
                                        .oflags = O_CREAT};

    v = verbs_table_new();
    pd = v->hosts->host[0].pd;
    send_cq = ibv_create_cq(v->a, 15, &given, NULL, 0);
    recv_cq = ibv_create_cq(v->a, 15, NULL, NULL, 0);
    srq = ibv_create_srq(pd, &srq_attr);
    xrcd = ibv_open_xrcd(v->a, &domain);
    ck_assert(send_cq && recv_cq && srq && xrcd);
}

static void teardown(void)
{
    ck_assert_int_eq(ibv_close_xrcd(xrcd), 0);
    ck_assert_int_eq(ibv_destroy_srq(srq), 0);
    ck_assert_int_eq(ibv_destroy_cq(send_cq), 0);
    ck_assert_int_eq(ibv_destroy_cq(recv_cq), 0);
    verbs_table_free(v);
}

static struct ibv_qp *make(enum ibv_qp_type type)
{
    bool target = type == IBV_QPT_XRC_RECV;
    struct ibv_qp_init_attr_ex attr = {
        .qp_context = &given,
        .qp_type = type,
        .send_cq = send_cq,
        .recv_cq = recv_cq,
        .srq = srq,
        .cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
        .comp_mask = target ? IBV_QP_INIT_ATTR_XRCD : IBV_QP_INIT_ATTR_PD,
        .pd = pd,
        .xrcd = xrcd};

    return ibv_create_qp_ex(v->a, &attr);
}

/* set_qp(): contains whatever the type uses. Objects that it does not use are not held. */
START_TEST(a_qps_fields_are_what_was_given)
{
    static const enum ibv_qp_type types[] = {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD, IBV_QPT_XRC_SEND,
                                             IBV_QPT_XRC_RECV};

    for (size_t i = 0; i < G_N_ELEMENTS(types); i++) {
        bool target = types[i] == IBV_QPT_XRC_RECV;
        bool receives = !target && types[i] != IBV_QPT_XRC_SEND;
        struct ibv_qp *qp = make(types[i]);

        ck_assert_msg(qp, "type %d: errno %d", types[i], errno);
        ck_assert_ptr_eq(qp->context, v->a);
        ck_assert_ptr_eq(qp->qp_context, &given);
        ck_assert_ptr_eq(qp->pd, pd);
        ck_assert_ptr_eq(qp->send_cq, send_cq);
        ck_assert_ptr_eq(qp->recv_cq, recv_cq);
        ck_assert_ptr_eq(qp->srq, srq);
        ck_assert_uint_eq(qp->qp_type, types[i]);
        ck_assert_uint_eq(qp->state, IBV_QPS_RESET);
        ck_assert_uint_eq(qp->events_completed, 0);
        ck_assert_int_eq(hv_qp_check(qp), 0);
        ck_assert_int_eq(hv_cq(send_cq)->users, target ? 0 : 1);
        ck_assert_int_eq(hv_cq(recv_cq)->users, receives ? 1 : 0);
        ck_assert_int_eq(hv_srq(srq)->users, receives ? 1 : 0);
        ck_assert_int_eq(ibv_destroy_qp(qp), 0);
    }
}
END_TEST

static enum ibv_qp_state queried(struct ibv_qp *qp, int mask)
{
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;

    ck_assert_int_eq(ibv_query_qp(qp, &attr, mask, &init), 0);
    return attr.qp_state;
}

/* ibv_cmd_open_qp(): a handle contains only what was passed through it. Its state is the last state
 * that was requested or set through it; the QP itself has one state. */
START_TEST(a_handle_knows_what_was_set_through_it)
{
    struct ibv_qp *qp = make(IBV_QPT_XRC_RECV), *handle;
    struct ibv_qp_open_attr open = {.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD |
                                                 IBV_QP_OPEN_ATTR_TYPE,
                                    .qp_num = qp->qp_num,
                                    .xrcd = xrcd,
                                    .qp_context = &given,
                                    .qp_type = IBV_QPT_XRC_RECV};
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
    const int to_init = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;

    handle = ibv_open_qp(v->a, &open);
    ck_assert_ptr_nonnull(handle);
    ck_assert_ptr_eq(handle->context, v->a);
    ck_assert_ptr_eq(handle->qp_context, &given);
    ck_assert(!handle->pd && !handle->send_cq && !handle->recv_cq && !handle->srq);
    ck_assert_uint_eq(handle->qp_num, qp->qp_num);
    ck_assert_uint_ne(handle->handle, qp->handle);
    ck_assert_uint_eq(handle->qp_type, IBV_QPT_XRC_RECV);
    ck_assert_uint_eq(handle->state, IBV_QPS_UNKNOWN);

    ck_assert_int_eq(ibv_modify_qp(qp, &attr, to_init), 0);
    ck_assert_uint_eq(qp->state, IBV_QPS_INIT);
    ck_assert_uint_eq(handle->state, IBV_QPS_UNKNOWN);
    ck_assert_uint_eq(queried(handle, 0), IBV_QPS_INIT);
    ck_assert_uint_eq(handle->state, IBV_QPS_UNKNOWN);
    ck_assert_uint_eq(queried(handle, IBV_QP_STATE), IBV_QPS_INIT);
    ck_assert_uint_eq(handle->state, IBV_QPS_INIT);

    attr.qp_state = IBV_QPS_ERR;
    ck_assert_int_eq(ibv_modify_qp(handle, &attr, IBV_QP_STATE), 0);
    ck_assert_uint_eq(handle->state, IBV_QPS_ERR);
    ck_assert_uint_eq(qp->state, IBV_QPS_INIT);
    attr.qp_state = IBV_QPS_RESET; /* from its present state */
    ck_assert_int_eq(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
    attr.qp_state = IBV_QPS_INIT;
    ck_assert_int_eq(ibv_modify_qp(handle, &attr, to_init), 0);
    ck_assert_int_eq(ibv_destroy_qp(qp), 0);
    ck_assert_int_eq(ibv_destroy_qp(handle), 0);
}
END_TEST

/* Whatever a program writes there, the library does not use these fields for lookups. */
START_TEST(a_program_may_write_to_its_fields)
{
    struct ibv_qp *qp = make(IBV_QPT_RC);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};

    qp->send_cq = qp->recv_cq = NULL;
    qp->srq = NULL;
    qp->state = IBV_QPS_RTS;
    ck_assert_int_eq(
        ibv_modify_qp(qp, &attr,
                      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
        0);
    ck_assert_uint_eq(qp->state, IBV_QPS_INIT);
    ck_assert_int_eq(ibv_destroy_qp(qp), 0);
    ck_assert_int_eq(hv_cq(send_cq)->users, 0);
    ck_assert_int_eq(hv_srq(srq)->users, 0);
}
END_TEST

/* ibv_create_srq() writes what was given; ibv_create_srq_ex() of an XRC SRQ writes less. */
START_TEST(an_srqs_fields)
{
    struct ibv_srq_init_attr_ex attr = {.srq_context = &given,
                                        .attr = {.max_wr = 4, .max_sge = 1},
                                        .comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
                                                     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
                                        .srq_type = IBV_SRQT_XRC,
                                        .pd = pd,
                                        .xrcd = xrcd,
                                        .cq = recv_cq};
    struct ibv_srq *xsrq = ibv_create_srq_ex(v->a, &attr);

    ck_assert_ptr_nonnull(xsrq);
    ck_assert_ptr_eq(xsrq->context, v->a);
    ck_assert_ptr_eq(xsrq->pd, pd);
    ck_assert_ptr_null(xsrq->srq_context);
    ck_assert_int_eq(ibv_destroy_srq(xsrq), 0);
    ck_assert_ptr_eq(srq->context, v->a);
    ck_assert_ptr_eq(srq->pd, pd);
    ck_assert_ptr_eq(srq->srq_context, &given);
    ck_assert_uint_eq(srq->events_completed, 0);
}
END_TEST

/* The fields of other kinds of objects. */
START_TEST(other_objects_fields)
{
    struct ibv_comp_channel *channel = ibv_create_comp_channel(v->a);
    struct ibv_cq *cq = ibv_create_cq(v->a, 15, &given, channel, 0);
    struct ibv_mr *mr = table_mr_new(v, 0);
    struct ibv_mw *mw = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
    struct ibv_wq_init_attr wq_attr = {
        .wq_context = &given, .wq_type = IBV_WQT_RQ, .max_wr = 4, .max_sge = 1, .pd = pd, .cq = cq};
    struct ibv_wq *wq = ibv_create_wq(v->a, &wq_attr);
    struct ibv_rwq_ind_table_init_attr table_attr = {.ind_tbl = &wq};
    struct ibv_rwq_ind_table *table = ibv_create_rwq_ind_table(v->a, &table_attr);
    struct ibv_wq_attr ready = {.attr_mask = IBV_WQ_ATTR_STATE, .wq_state = IBV_WQS_RDY};

    ck_assert(channel && cq && mr && mw && wq && table);
    ck_assert_ptr_eq(channel->context, v->a);
    ck_assert_int_eq(channel->refcnt, 1);
    ck_assert_ptr_eq(cq->context, v->a);
    ck_assert_ptr_eq(cq->channel, channel);
    ck_assert_ptr_eq(cq->cq_context, &given);
    ck_assert_int_eq(cq->cqe, 15);
    ck_assert_uint_eq(cq->comp_events_completed + cq->async_events_completed, 0);
    ck_assert_ptr_eq(mr->context, v->a);
    ck_assert_ptr_eq(mr->pd, pd);
    ck_assert_uint_eq(mr->length, 4096);
    ck_assert_ptr_eq(mw->context, v->a);
    ck_assert_ptr_eq(mw->pd, pd);
    ck_assert_uint_eq(mw->type, IBV_MW_TYPE_2);
    ck_assert_ptr_eq(wq->context, v->a);
    ck_assert_ptr_eq(wq->wq_context, &given);
    ck_assert_ptr_eq(wq->pd, pd);
    ck_assert_ptr_eq(wq->cq, cq);
    ck_assert_uint_eq(wq->wq_type, IBV_WQT_RQ);
    ck_assert_uint_eq(wq->state, IBV_WQS_RESET);
    ck_assert_int_eq(ibv_modify_wq(wq, &ready), 0);
    ck_assert_uint_eq(wq->state, IBV_WQS_RDY);
    ck_assert_ptr_eq(table->context, v->a);
    ck_assert_int_gt(table->ind_tbl_num, 0); /* the device's number (mlx5_ib) */
    ck_assert_ptr_eq(xrcd->context, v->a);

    ck_assert_int_eq(ibv_destroy_rwq_ind_table(table), 0);
    ck_assert_int_eq(ibv_destroy_wq(wq), 0);
    ck_assert_int_eq(ibv_dealloc_mw(mw), 0);
    table_mr_free(mr);
    ck_assert_int_eq(ibv_destroy_cq(cq), 0);
    ck_assert_int_eq(channel->refcnt, 0);
    ck_assert_int_eq(ibv_destroy_comp_channel(channel), 0);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("fields");
    TCase *tc = tcase_create("fields");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, a_qps_fields_are_what_was_given);
    tcase_add_test(tc, a_handle_knows_what_was_set_through_it);
    tcase_add_test(tc, a_program_may_write_to_its_fields);
    tcase_add_test(tc, an_srqs_fields);
    tcase_add_test(tc, other_objects_fields);
    suite_add_tcase(suite, tc);
    return suite;
}
