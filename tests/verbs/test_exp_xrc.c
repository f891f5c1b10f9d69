/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests XRC by the calls of OFED 1.5 (<infiniband/ofa_verbs.h>), between two hosts in virtual time:
 * host 0 sends to an SRQ of host 1 through a QP that host 1 knows by number alone.
 */
#include <check.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "guest-lib/verbs/exp/include/infiniband/verbs_exp.h"
#include "tests/unit/suite.h"
#include "tests/verbs/verbs_table.h"

#define TO_INIT   (IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)
#define TO_RTR    (IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN)
#define OF_TARGET (IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define OF_SENDER (IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC)

static struct verbs_table *v;
static struct ibv_cq *cq[2];
static struct ibv_mr *mr[2];
static struct ibv_xrc_domain *domain[2];
static struct ibv_srq *srq;
static const struct ibv_srq_legacy *legacy; /* the same */
static int given;

static struct ibv_srq *srq_new(void)
{
    struct ibv_srq_init_attr attr = {.srq_context = &given, .attr = {.max_wr = 7, .max_sge = 1}};

    return ibv_create_xrc_srq(v->hosts->host[1].pd, domain[1], cq[1], &attr);
}

static void setup(void)
{
    v = verbs_table_new();
    for (int i = 0; i < 2; i++) {
        cq[i] = ibv_create_cq(i ? v->b : v->a, 63, NULL, NULL, 0);
        mr[i] = table_mr_new(v, i);
        domain[i] = ibv_open_xrc_domain(i ? v->b : v->a, -1, O_CREAT);
        ck_assert(cq[i] && domain[i]);
    }
    srq = srq_new();
    ck_assert_ptr_nonnull(srq);
    legacy = (const struct ibv_srq_legacy *)srq;
}

static void teardown(void)
{
    ck_assert_int_eq(ibv_destroy_srq(srq), 0);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(ibv_close_xrc_domain(domain[i]), 0);
        table_mr_free(mr[i]);
        ck_assert_int_eq(ibv_destroy_cq(cq[i]), 0);
    }
    verbs_table_free(v);
}

static uint32_t target_new(void)
{
    struct ibv_xrc_qp_init_attr attr = {.xrc_domain = domain[1]};
    uint32_t qpn = 0;

    ck_assert_int_eq(ibv_create_xrc_rcv_qp(&attr.base, &qpn), 0);
    ck_assert_uint_ne(qpn, 0);
    return qpn;
}

static struct ibv_qp_init_attr sender_attr(void)
{
    return (struct ibv_qp_init_attr){
        .send_cq = cq[0], .recv_cq = cq[0], .cap = {8, 0, 1, 0, 0}, .qp_type = IBV_QPT_XRC};
}

static struct ibv_qp_attr way_to(int host, uint32_t qpn)
{
    return (struct ibv_qp_attr){
        .port_num = 1,
        .path_mtu = IBV_MTU_1024,
        .dest_qp_num = qpn,
        .max_rd_atomic = 1,
        .max_dest_rd_atomic = 1,
        .min_rnr_timer = 1,
        .timeout = 14,
        .retry_cnt = 7,
        .rnr_retry = 7,
        .ah_attr = {.is_global = 1,
                    .port_num = 1,
                    .grh = {.dgid = v->hosts->host[host].config.gid[1], .sgid_index = 1}},
    };
}

static void connect_target(uint32_t qpn, const struct ibv_qp *sender)
{
    struct ibv_qp_attr attr = way_to(0, sender->qp_num);

    attr.qp_state = IBV_QPS_INIT;
    ck_assert_int_eq(ibv_modify_xrc_rcv_qp(domain[1], qpn, &attr, TO_INIT), 0);
    attr.qp_state = IBV_QPS_RTR;
    ck_assert_int_eq(ibv_modify_xrc_rcv_qp(domain[1], qpn, &attr, TO_RTR | OF_TARGET), 0);
}

static void connect_sender(struct ibv_qp *sender, uint32_t qpn)
{
    struct ibv_qp_attr attr = way_to(1, qpn);

    attr.qp_state = IBV_QPS_INIT;
    ck_assert_int_eq(ibv_modify_qp(sender, &attr, TO_INIT), 0);
    attr.qp_state = IBV_QPS_RTR;
    ck_assert_int_eq(ibv_modify_qp(sender, &attr, TO_RTR), 0);
    attr.qp_state = IBV_QPS_RTS;
    ck_assert_int_eq(ibv_modify_qp(sender, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN | OF_SENDER), 0);
}

static int post(struct ibv_srq *to, uint64_t wr_id)
{
    struct ibv_sge sge = {(uintptr_t)mr[1]->addr, 100, mr[1]->lkey};
    struct ibv_recv_wr *bad, wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1};

    return ibv_post_srq_recv(to, &wr, &bad);
}

/* Programs of OFED 1.5 have the number of the SRQ where the library has bytes of a mutex of its
 * own, and later programs behind that. */
START_TEST(an_srq_names_its_number_in_both_places)
{
    uint32_t number = 0;

    ck_assert_int_eq(ibv_get_srq_num(srq, &number), 0);
    ck_assert_uint_eq(legacy->xrc_srq_num, number);
    ck_assert_uint_eq(legacy->xrc_srq_num_bin_compat, number);
    ck_assert_uint_eq(srq->handle, LEGACY_XRC_SRQ_HANDLE);
    ck_assert_ptr_eq(srq->context, v->b);
    ck_assert_ptr_eq(srq->srq_context, &given);
    ck_assert_ptr_eq(srq->pd, v->hosts->host[1].pd);
    ck_assert_ptr_eq(legacy->xrc_domain, domain[1]);
    ck_assert_ptr_eq(legacy->xrc_domain_bin_compat, domain[1]);
    ck_assert_ptr_eq(legacy->xrc_cq, cq[1]);
    ck_assert_ptr_eq(legacy->xrc_cq_bin_compat, cq[1]);
}
END_TEST

/* made by: 0, ibv_create_qp(); 1, ibv_exp_create_qp(). */
START_TEST(a_message_goes_to_the_srq_that_it_names)
{
    struct ibv_qp_init_attr plain = sender_attr();
    struct ibv_exp_qp_init_attr exp = {.send_cq = cq[0],
                                       .cap = plain.cap,
                                       .qp_type = IBV_QPT_XRC,
                                       .comp_mask = IBV_EXP_QP_INIT_ATTR_PD,
                                       .pd = v->hosts->host[0].pd};
    struct ibv_qp *sender =
        _i ? ibv_exp_create_qp(v->a, &exp) : ibv_create_qp(v->hosts->host[0].pd, &plain);
    struct ibv_srq *other = srq_new();
    struct ibv_sge sge = {(uintptr_t)mr[0]->addr, 64, mr[0]->lkey};
    struct ibv_send_wr *bad, wr = {.sg_list = &sge,
                                   .num_sge = 1,
                                   .opcode = IBV_WR_SEND,
                                   .send_flags = IBV_SEND_SIGNALED,
                                   .qp_type.xrc.remote_srqn = legacy->xrc_srq_num};
    uint32_t qpn = target_new();
    struct ibv_exp_wc wc = {0};

    ck_assert(sender && other);
    ck_assert_int_eq(sender->qp_type, IBV_QPT_XRC_SEND);
    connect_target(qpn, sender);
    connect_sender(sender, qpn);
    ck_assert_int_eq(post(other, 1), 0);
    ck_assert_int_eq(post(srq, 2), 0);
    ck_assert_int_eq(ibv_post_send(sender, &wr, &bad), 0);
    ck_assert_int_eq(table_wc(v, cq[0]).status, IBV_WC_SUCCESS);
    ck_assert_int_eq(ibv_exp_poll_cq(cq[1], 1, &wc, sizeof(wc)), 1);
    ck_assert_uint_eq(wc.wr_id, 2);
    ck_assert_uint_eq(wc.byte_len, 64);
    ck_assert_ptr_eq(wc.srq, srq);
    ck_assert_mem_eq(mr[1]->addr, mr[0]->addr, 64);
    table_qp_free(sender);
    ck_assert_int_eq(ibv_destroy_srq(other), 0);
    ck_assert_int_eq(ibv_unreg_xrc_rcv_qp(domain[1], qpn), 0);
}
END_TEST

/* The event names the program's structure, and ibv_destroy_srq() waits until it is acknowledged. */
START_TEST(its_limit_makes_an_event)
{
    struct ibv_qp_init_attr attr = sender_attr();
    struct ibv_qp *sender = ibv_create_qp(v->hosts->host[0].pd, &attr);
    struct ibv_srq_attr limit = {.srq_limit = 2};
    struct ibv_sge sge = {(uintptr_t)mr[0]->addr, 64, mr[0]->lkey};
    struct ibv_send_wr *bad, wr = {.sg_list = &sge,
                                   .num_sge = 1,
                                   .send_flags = IBV_SEND_SIGNALED,
                                   .opcode = IBV_WR_SEND,
                                   .qp_type.xrc.remote_srqn = legacy->xrc_srq_num};
    struct ibv_async_event event;
    uint32_t qpn = target_new();

    ck_assert_ptr_nonnull(sender);
    connect_target(qpn, sender);
    connect_sender(sender, qpn);
    ck_assert_int_eq(post(srq, 1), 0);
    ck_assert_int_eq(post(srq, 2), 0);
    ck_assert_int_eq(ibv_modify_srq(srq, &limit, IBV_SRQ_LIMIT), 0);
    ck_assert_int_eq(ibv_query_srq(srq, &limit), 0);
    ck_assert_uint_eq(limit.srq_limit, 2);
    ck_assert_int_eq(ibv_post_send(sender, &wr, &bad), 0);
    ck_assert_int_eq(table_wc(v, cq[0]).status, IBV_WC_SUCCESS);
    table_wait(v);
    ck_assert_int_eq(ibv_get_async_event(v->b, &event), 0);
    ck_assert_int_eq(event.event_type, IBV_EVENT_COMM_EST); /* of the target */
    ibv_ack_async_event(&event);
    ck_assert_int_eq(ibv_get_async_event(v->b, &event), 0);
    ck_assert_int_eq(event.event_type, IBV_EVENT_SRQ_LIMIT_REACHED);
    ck_assert_ptr_eq(event.element.srq, srq);
    ibv_ack_async_event(&event);
    table_qp_free(sender);
    ck_assert_int_eq(ibv_unreg_xrc_rcv_qp(domain[1], qpn), 0);
}
END_TEST

/* A program is registered once; the QP ends with its last registration and its last handle. */
START_TEST(a_program_is_registered_once)
{
    struct ibv_qp_open_attr open = {.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD |
                                                 IBV_QP_OPEN_ATTR_TYPE,
                                    .xrcd = (struct ibv_xrcd *)domain[1],
                                    .qp_type = IBV_QPT_XRC_RECV};
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
    struct ibv_qp_init_attr init;
    struct ibv_qp *handle;

    open.qp_num = target_new();
    ck_assert_int_eq(ibv_reg_xrc_rcv_qp(domain[1], open.qp_num), EEXIST);
    handle = ibv_open_qp(v->b, &open);
    ck_assert_ptr_nonnull(handle);
    ck_assert_int_eq(ibv_modify_xrc_rcv_qp(domain[1], open.qp_num, &attr, TO_INIT), 0);
    ck_assert_int_eq(ibv_unreg_xrc_rcv_qp(domain[1], open.qp_num), 0);
    ck_assert_int_eq(ibv_unreg_xrc_rcv_qp(domain[1], open.qp_num), EINVAL);
    ck_assert_int_eq(ibv_query_xrc_rcv_qp(domain[1], open.qp_num, &attr, IBV_QP_STATE, &init),
                     EINVAL);
    ck_assert_int_eq(ibv_reg_xrc_rcv_qp(domain[1], open.qp_num), 0);
    attr.qp_state = IBV_QPS_ERR;
    ck_assert_int_eq(ibv_query_xrc_rcv_qp(domain[1], open.qp_num, &attr, IBV_QP_STATE, &init), 0);
    ck_assert_int_eq(attr.qp_state, IBV_QPS_INIT);
    ck_assert_int_eq(ibv_close_xrc_domain(domain[1]), EBUSY);
    table_qp_free(handle);
    ck_assert_int_eq(ibv_unreg_xrc_rcv_qp(domain[1], open.qp_num), 0);
    ck_assert_int_eq(ibv_reg_xrc_rcv_qp(domain[1], open.qp_num), EINVAL);
}
END_TEST

/* A QP of the program's own handle is not registered. */
START_TEST(a_qp_that_no_call_registered_is_not_found)
{
    struct ibv_qp_init_attr_ex attr = {.qp_type = IBV_QPT_XRC_RECV,
                                       .comp_mask = IBV_QP_INIT_ATTR_XRCD,
                                       .xrcd = (struct ibv_xrcd *)domain[1]};
    struct ibv_qp *qp = ibv_create_qp_ex(v->b, &attr), *rc = table_qp_new(v, 1, cq[1], NULL);
    struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT, .port_num = 1};

    ck_assert_ptr_nonnull(qp);
    ck_assert_int_eq(ibv_modify_xrc_rcv_qp(domain[1], qp->qp_num, &init, TO_INIT), EINVAL);
    ck_assert_int_eq(ibv_unreg_xrc_rcv_qp(domain[1], qp->qp_num), EINVAL);
    ck_assert_int_eq(ibv_unreg_xrc_rcv_qp(domain[1], rc->qp_num), EINVAL);
    ck_assert_int_eq(ibv_reg_xrc_rcv_qp(domain[1], rc->qp_num), EINVAL);
    table_qp_free(rc);
    table_qp_free(qp);
}
END_TEST

/* Host 0's number is free at host 1, whose domain it is not. */
START_TEST(each_device_has_its_own_numbers)
{
    struct ibv_xrc_qp_init_attr attr = {.xrc_domain = domain[0]};
    uint32_t qpn[2] = {0, target_new()};

    ck_assert_int_eq(ibv_create_xrc_rcv_qp(&attr.base, &qpn[0]), 0);
    ck_assert_int_eq(ibv_unreg_xrc_rcv_qp(domain[1], qpn[1]), 0);
    ck_assert_int_eq(ibv_unreg_xrc_rcv_qp(domain[1], qpn[0]), EINVAL);
    ck_assert_int_eq(ibv_unreg_xrc_rcv_qp(domain[0], qpn[0]), 0);
}
END_TEST

START_TEST(what_makes_no_domain_srq_or_qp)
{
    struct ibv_xrc_qp_init_attr none = {0};
    uint32_t qpn;
    char path[] = "/tmp/hcasim-xrc.XXXXXX";
    int file = mkstemp(path);
    struct ibv_xrc_domain *first, *second;

    ck_assert_int_eq(ibv_create_xrc_rcv_qp(NULL, &qpn), EINVAL);
    ck_assert_int_eq(ibv_create_xrc_rcv_qp(&none.base, &qpn), EINVAL);
    ck_assert_ptr_null(ibv_create_xrc_srq(v->hosts->host[1].pd, NULL, cq[1],
                                          &(struct ibv_srq_init_attr){.attr = {7, 1, 0}}));
    ck_assert_int_eq(errno, EINVAL);
    ck_assert_ptr_null(ibv_open_xrc_domain(v->b, file, 0)); /* the file has none yet */
    ck_assert_int_eq(errno, EAGAIN);
    first = ibv_open_xrc_domain(v->b, file, O_CREAT | O_EXCL);
    ck_assert_ptr_nonnull(first);
    ck_assert_ptr_null(ibv_open_xrc_domain(v->b, file, O_CREAT | O_EXCL));
    ck_assert_int_eq(errno, EINVAL);
    second = ibv_open_xrc_domain(v->b, file, 0);
    ck_assert_ptr_nonnull(second);
    ck_assert_int_eq(ibv_close_xrc_domain(first), 0);
    ck_assert_int_eq(ibv_close_xrc_domain(second), 0);
    close(file);
    unlink(path);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("XRC of OFED 1.5");
    TCase *tc = tcase_create("XRC");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, an_srq_names_its_number_in_both_places);
    tcase_add_loop_test(tc, a_message_goes_to_the_srq_that_it_names, 0, 2);
    tcase_add_test(tc, its_limit_makes_an_event);
    tcase_add_test(tc, a_program_is_registered_once);
    tcase_add_test(tc, a_qp_that_no_call_registered_is_not_found);
    tcase_add_test(tc, each_device_has_its_own_numbers);
    tcase_add_test(tc, what_makes_no_domain_srq_or_qp);
    suite_add_tcase(suite, tc);
    return suite;
}
