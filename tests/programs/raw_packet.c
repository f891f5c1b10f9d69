/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Raw packet QPs that share one CQ with other QPs: each completion comes back with its own work
 * request.
 */
#include "tests/programs/statements.h"

#define FRAME 64

static struct ibv_qp *new_qp(struct ibv_cq *cq, enum ibv_qp_type type)
{
    struct ibv_qp_init_attr init = {
        .send_cq = cq,
        .recv_cq = cq,
        .cap = {.max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = type,
    };
    struct ibv_qp *qp = ibv_create_qp(pd, &init);

    ck_assert_ptr_nonnull(qp);
    return qp;
}

static void move(struct ibv_qp *qp, enum ibv_qp_state state, int mask)
{
    struct ibv_qp_attr attr = {.qp_state = state, .port_num = 1};

    ck_assert_int_eq(ibv_modify_qp(qp, &attr, IBV_QP_STATE | mask), 0);
}

/* libmlx5 finds a completion's queue by the user index in the CQE (get_req_context(),
 * get_resp_ctx() of its cq.c). The SQ and the RQ of a raw packet QP carry the QP's index, as an RC
 * QP does, in successful and in failed completions. */
START_TEST(a_completion_belongs_to_its_own_queue)
{
    struct ibv_cq *cq = ibv_create_cq(ctx, 16, NULL, NULL, 0);
    struct ibv_qp *rc = new_qp(cq, IBV_QPT_RC), *raw = new_qp(cq, IBV_QPT_RAW_PACKET);
    static uint8_t buf[FRAME] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 9, 0x88, 0xb5};
    struct ibv_mr *mr = ibv_reg_mr(pd, buf, sizeof(buf), IBV_ACCESS_LOCAL_WRITE);
    struct ibv_sge sge = {(uintptr_t)buf, sizeof(buf), mr->lkey};
    struct ibv_send_wr send = {.wr_id = 77,
                               .sg_list = &sge,
                               .num_sge = 1,
                               .opcode = IBV_WR_SEND,
                               .send_flags = IBV_SEND_SIGNALED},
                       *bad_send;
    struct ibv_recv_wr recv = {.wr_id = 88, .sg_list = &sge, .num_sge = 1}, *bad_recv;
    struct ibv_wc wc;

    move(raw, IBV_QPS_INIT, IBV_QP_PORT);
    move(raw, IBV_QPS_RTR, 0);
    move(raw, IBV_QPS_RTS, 0);
    ck_assert_int_eq(ibv_post_send(raw, &send, &bad_send), 0);
    wc = completion(cq);
    ck_assert_uint_eq(wc.status, IBV_WC_SUCCESS);
    ck_assert_uint_eq(wc.wr_id, 77);

    ck_assert_int_eq(ibv_post_recv(raw, &recv, &bad_recv), 0);
    move(raw, IBV_QPS_ERR, 0);
    wc = completion(cq);
    ck_assert_uint_eq(wc.status, IBV_WC_WR_FLUSH_ERR);
    ck_assert_uint_eq(wc.wr_id, 88);

    ck_assert_int_eq(ibv_destroy_qp(raw), 0);
    ck_assert_int_eq(ibv_destroy_qp(rc), 0);
    ck_assert_int_eq(ibv_dereg_mr(mr), 0);
    ck_assert_int_eq(ibv_destroy_cq(cq), 0);
}
END_TEST

static enum ibv_qp_state state_of(struct ibv_qp *qp)
{
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;

    ck_assert_int_eq(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init), 0);
    return attr.qp_state;
}

/* mlx5_ib sqrq_state_to_qp_state(): if the SQ is in ERR and the RQ is ready, the state is SQE. Only
 * the device knows this, because nothing notified the driver. */
START_TEST(a_send_that_fails_is_an_error_of_the_send_queue)
{
    struct ibv_cq *cq = ibv_create_cq(ctx, 16, NULL, NULL, 0);
    struct ibv_qp *raw = new_qp(cq, IBV_QPT_RAW_PACKET);
    static uint8_t buf[FRAME];
    struct ibv_sge sge = {(uintptr_t)buf, sizeof(buf), 0xbad00};
    struct ibv_send_wr send = {
        .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
    struct ibv_send_wr *bad;

    ck_assert_uint_eq(state_of(raw), IBV_QPS_RESET);
    move(raw, IBV_QPS_INIT, IBV_QP_PORT);
    ck_assert_uint_eq(state_of(raw), IBV_QPS_INIT);
    move(raw, IBV_QPS_RTR, 0);
    move(raw, IBV_QPS_RTS, 0);
    ck_assert_uint_eq(state_of(raw), IBV_QPS_RTS);

    ck_assert_int_eq(ibv_post_send(raw, &send, &bad), 0);
    ck_assert_uint_eq(completion(cq).status, IBV_WC_LOC_PROT_ERR);
    ck_assert_uint_eq(state_of(raw), IBV_QPS_SQE);
    move(raw, IBV_QPS_ERR, 0);
    ck_assert_uint_eq(state_of(raw), IBV_QPS_ERR);
    move(raw, IBV_QPS_RESET, 0);
    ck_assert_uint_eq(state_of(raw), IBV_QPS_RESET);

    ck_assert_int_eq(ibv_destroy_qp(raw), 0);
    ck_assert_int_eq(ibv_destroy_cq(cq), 0);
}
END_TEST

int main(int argc, char **argv)
{
    TCase *tc = tcase_create("raw_packet");
    Suite *suite = suite_create("verbs-raw-packet");

    tcase_set_timeout(tc, 2 * SECONDS);
    tcase_add_checked_fixture(tc, open_device, close_device);
    tcase_add_test(tc, a_completion_belongs_to_its_own_queue);
    tcase_add_test(tc, a_send_that_fails_is_an_error_of_the_send_queue);
    suite_add_tcase(suite, tc);
    return run_statements(suite, "raw", argc, argv);
}
