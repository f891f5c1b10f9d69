/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests raw packet QPs on two hosts in virtual time: their transitions to ERR, and sniffers. */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "guest-lib/verbs/kernel/hca.h"
#include "tests/unit/suite.h"
#include "tests/verbs/verbs_table.h"

#define DEPTH 16
#define ROOM  256

static struct verbs_table *v;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_mr *mr;

static void setup(void)
{
    v = verbs_table_new();
    pd = v->hosts->host[0].pd;
    cq = ibv_create_cq(v->a, 63, NULL, NULL, 0);
    mr = table_mr_new(v, 0);
}

static void teardown(void)
{
    table_mr_free(mr);
    ck_assert_int_eq(ibv_destroy_cq(cq), 0);
    verbs_table_free(v);
}

static struct ibv_qp *raw_qp(struct ibv_cq *of)
{
    struct ibv_qp_init_attr init = {.send_cq = of,
                                    .recv_cq = of,
                                    .cap = {DEPTH, DEPTH, 1, 1, 0},
                                    .qp_type = IBV_QPT_RAW_PACKET};
    struct ibv_qp *qp = ibv_create_qp(pd, &init);

    ck_assert_ptr_nonnull(qp);
    return qp;
}

static int move(struct ibv_qp *qp, enum ibv_qp_state state)
{
    struct ibv_qp_attr attr = {.qp_state = state, .port_num = 1};

    return ibv_modify_qp(qp, &attr, IBV_QP_STATE | (state == IBV_QPS_INIT ? IBV_QP_PORT : 0));
}

static void post(struct ibv_qp *qp, uint64_t wr_id)
{
    struct ibv_sge sge = {(uintptr_t)mr->addr + wr_id % DEPTH * ROOM, ROOM, mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1}, *bad;

    ck_assert_int_eq(ibv_post_recv(qp, &wr, &bad), 0);
}

static enum ibv_qp_state state_of(struct ibv_qp *qp)
{
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;

    ck_assert_int_eq(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init), 0);
    return attr.qp_state;
}

/* -- ERR --------------------------------------------------------------------------------------- */

/* modify_raw_packet_qp(): both queues go to ERR, whether or not they had begun. Requests that are
 * posted afterwards are flushed, too, in this life of the QP and in the next. */
START_TEST(every_state_leads_to_err)
{
    static const enum ibv_qp_state way[] = {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS};
    struct ibv_qp *qp = raw_qp(cq);
    struct ibv_send_wr send = {.wr_id = 7, .opcode = IBV_WR_SEND}, *bad;

    for (int life = 0; life < 2; life++) {
        for (size_t last = 0; last < G_N_ELEMENTS(way); last++) {
            for (size_t i = 0; i <= last; i++) {
                ck_assert_int_eq(move(qp, way[i]), 0);
            }
            ck_assert_msg(move(qp, IBV_QPS_ERR) == 0, "from state %d", way[last]);
            ck_assert_int_eq(state_of(qp), IBV_QPS_ERR);
            for (uint64_t i = 0; i < 3; i++) {
                struct ibv_wc wc;

                post(qp, i);
                wc = table_wc(v, cq);
                ck_assert_int_eq(wc.status, IBV_WC_WR_FLUSH_ERR);
                ck_assert_uint_eq(wc.wr_id, i);
            }
            if (way[last] == IBV_QPS_RTS) { /* before RTS, libmlx5 posts no sends */
                ck_assert_int_eq(ibv_post_send(qp, &send, &bad), 0);
                ck_assert_int_eq(table_wc(v, cq).status, IBV_WC_WR_FLUSH_ERR);
            }
            ck_assert_int_eq(move(qp, IBV_QPS_RESET), 0);
            ck_assert_int_eq(state_of(qp), IBV_QPS_RESET);
        }
    }
    ck_assert_int_eq(move(qp, IBV_QPS_ERR), EINVAL);
    ck_assert_int_eq(ibv_destroy_qp(qp), 0);
}
END_TEST

/* The device learns of requests that were posted in INIT together with later requests
 * (mlx5_post_recv()). */
START_TEST(what_was_posted_before_is_flushed_with_it)
{
    struct ibv_qp *qp = raw_qp(cq);

    ck_assert_int_eq(move(qp, IBV_QPS_INIT), 0);
    post(qp, 1);
    ck_assert_int_eq(move(qp, IBV_QPS_ERR), 0);
    post(qp, 2);
    ck_assert_uint_eq(table_wc(v, cq).wr_id, 1);
    ck_assert_uint_eq(table_wc(v, cq).wr_id, 2);
    ck_assert_int_eq(ibv_destroy_qp(qp), 0);
}
END_TEST

/* -- sniffers ---------------------------------------------------------------------------------- */

/* A sniffer, with room for the frames of a message. */
struct sniffer {
    struct ibv_cq *cq;
    struct ibv_qp *qp;
    struct ibv_flow *flow;
};

static struct ibv_flow *sniff(struct ibv_qp *qp)
{
    struct ibv_flow_attr attr = {.type = IBV_FLOW_ATTR_SNIFFER, .size = sizeof(attr), .port = 1};
    struct ibv_flow *flow = ibv_create_flow(qp, &attr);

    ck_assert_msg(flow, "errno %d", errno);
    return flow;
}

static struct sniffer sniffer_new(void)
{
    struct sniffer s = {.cq = ibv_create_cq(v->a, 63, NULL, NULL, 0)};

    s.qp = raw_qp(s.cq);
    ck_assert_int_eq(move(s.qp, IBV_QPS_INIT), 0);
    ck_assert_int_eq(move(s.qp, IBV_QPS_RTR), 0);
    for (uint64_t i = 0; i < DEPTH; i++) {
        post(s.qp, i);
    }
    s.flow = sniff(s.qp);
    return s;
}

static void sniffer_free(struct sniffer *s)
{
    if (s->flow) {
        ck_assert_int_eq(ibv_destroy_qp(s->qp), EBUSY);
        ck_assert_int_eq(ibv_destroy_flow(s->flow), 0);
    }
    ck_assert_int_eq(ibv_destroy_qp(s->qp), 0);
    ck_assert_int_eq(ibv_destroy_cq(s->cq), 0);
}

/* Counts how many frames it got from host 0 and from host 1. */
static void count(struct sniffer *s, unsigned from[2])
{
    struct ibv_wc wc;

    from[0] = from[1] = 0;
    while (ibv_poll_cq(s->cq, 1, &wc) > 0) {
        const uint8_t *frame = (uint8_t *)mr->addr + wc.wr_id % DEPTH * ROOM;

        ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
        if (frame[12] == 8 && frame[13] == 0 && frame[23] == 17) {
            from[!!memcmp(frame + 6, v->hosts->host[0].config.mac, 6)]++;
        }
        post(s->qp, wc.wr_id);
    }
}

static struct ibv_qp *a, *b;
static struct ibv_cq *a_cq, *b_cq;

static void connect_two(void)
{
    a_cq = ibv_create_cq(v->a, 15, NULL, NULL, 0);
    b_cq = ibv_create_cq(v->b, 15, NULL, NULL, 0);
    a = table_qp_new(v, 0, a_cq, NULL);
    b = table_qp_new(v, 1, b_cq, NULL);
    table_connect(v, a, b);
}

static void part(void)
{
    ck_assert_int_eq(ibv_destroy_qp(a), 0);
    ck_assert_int_eq(ibv_destroy_qp(b), 0);
    ck_assert_int_eq(ibv_destroy_cq(a_cq), 0);
    ck_assert_int_eq(ibv_destroy_cq(b_cq), 0);
}

/* Sends an empty SEND, which is acknowledged. */
static void send_one(void)
{
    struct ibv_recv_wr recv = {.wr_id = 1}, *bad_recv;
    struct ibv_send_wr send = {.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED}, *bad_send;

    ck_assert_int_eq(ibv_post_recv(b, &recv, &bad_recv), 0);
    ck_assert_int_eq(ibv_post_send(a, &send, &bad_send), 0);
    ck_assert_int_eq(table_wc(v, a_cq).status, IBV_WC_SUCCESS);
    ck_assert_int_eq(table_wc(v, b_cq).status, IBV_WC_SUCCESS);
    table_wait(v);
}

static void expect(struct sniffer *s, unsigned sent, unsigned received)
{
    unsigned from[2];

    count(s, from);
    ck_assert_msg(from[0] == sent && from[1] == received, "%u sent and %u received, not %u and %u",
                  from[0], from[1], sent, received);
}

/* mlx5_ib create_sniffer_rule(): a sniffer gets everything that is sent and received, RoCE too.
 * Each sniffer has its own copy, and the message still arrives. */
START_TEST(a_sniffer_gets_copies_in_both_directions)
{
    struct sniffer one, two;

    connect_two();
    send_one();
    one = sniffer_new();
    send_one();
    expect(&one, 1, 1);
    two = sniffer_new();
    send_one();
    expect(&one, 1, 1);
    expect(&two, 1, 1);
    ck_assert_int_eq(ibv_destroy_flow(one.flow), 0);
    one.flow = NULL;
    send_one();
    expect(&one, 0, 0);
    expect(&two, 1, 1);
    sniffer_free(&two);
    ck_assert_ptr_null(v->hca[0]->sniffers);
    send_one();
    expect(&one, 0, 0);
    one.flow = sniff(one.qp); /* sniffs again, like the first time */
    send_one();
    expect(&one, 1, 1);
    sniffer_free(&one);
    part();
}
END_TEST

/* A rule that exists already gets no second copy, and stays as long as both flows exist
 * (tree_add_fte()). */
START_TEST(two_flows_of_a_sniffer_bring_one_copy)
{
    struct sniffer s;
    struct ibv_flow *again;

    connect_two();
    s = sniffer_new();
    again = sniff(s.qp);
    send_one();
    expect(&s, 1, 1);
    ck_assert_int_eq(ibv_destroy_flow(again), 0);
    send_one();
    expect(&s, 1, 1);
    sniffer_free(&s);
    ck_assert_ptr_null(v->hca[0]->sniffers);
    part();
}
END_TEST

/* Further conditions; and if the device has no room, the call fails and keeps nothing. */
START_TEST(what_is_no_sniffer_is_refused)
{
    struct ibv_flow_attr attr = {.type = IBV_FLOW_ATTR_SNIFFER, .size = sizeof(attr), .port = 2};
    struct ibv_qp *rc = table_qp_new(v, 0, cq, NULL), *raw = raw_qp(cq);

    ck_assert_ptr_null(ibv_create_flow(raw, &attr));
    ck_assert_int_eq(errno, EINVAL);
    attr.port = 1;
    ck_assert_ptr_null(ibv_create_flow(rc, &attr));
    ck_assert_int_eq(errno, EINVAL);
    table_refuse(v, 0, PRM_CMD_STATUS_LIM_ERR);
    ck_assert_ptr_null(ibv_create_flow(raw, &attr));
    ck_assert_int_eq(errno, ENOMEM);
    ck_assert_ptr_null(v->hca[0]->sniffers);
    ck_assert_int_eq(ibv_destroy_qp(raw), 0);
    ck_assert_int_eq(ibv_destroy_qp(rc), 0);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("raw");
    TCase *tc = tcase_create("raw");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, every_state_leads_to_err);
    tcase_add_test(tc, what_was_posted_before_is_flushed_with_it);
    tcase_add_test(tc, a_sniffer_gets_copies_in_both_directions);
    tcase_add_test(tc, two_flows_of_a_sniffer_bring_one_copy);
    tcase_add_test(tc, what_is_no_sniffer_is_refused);
    suite_add_tcase(suite, tc);
    return suite;
}
