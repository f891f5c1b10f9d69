/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests what both sides are told when an operation fails (IBTA 10.6.2: completion return
 * status). */
#include <check.h>
#include <string.h>
#include "tests/sim/two_hcas.h"
#include "tests/unit/suite.h"

static struct two_hcas *t;
static struct buf *src, *dst;

static void setup(void)
{
    t = two_hcas_new(NULL);
    src = node_buf(&t->a, 4096, DRV_LOCAL_WRITE, 1);
    dst = node_buf(&t->b, 4096, DRV_ALL, 0);
}

static void teardown(void)
{
    two_hcas_free(t);
}

static void post(struct drv_qp *qp, uint8_t opcode, struct drv_sge sge, uint64_t raddr,
                 uint32_t rkey)
{
    struct drv_send send = {
        .opcode = opcode,
        .flags = DRV_SIGNALED,
        .sge = &sge,
        .num_sge = 1,
        .raddr = raddr,
        .rkey = rkey,
    };

    drv_post_send(qp, &send);
}

static void post_send(struct drv_qp *qp, size_t len)
{
    post(qp, PRM_WQE_OPCODE_SEND, buf_sge(src, 0, len), 0, 0);
}

static void post_recv(struct drv_qp *qp, size_t len)
{
    struct drv_sge sge = buf_sge(dst, 0, len);

    drv_post_recv(qp, &sge, 1);
}

/* -- remote access ------------------------------------------------------------------------------
 */

static const struct {
    const char *what;
    uint8_t opcode;
    unsigned rights; /* rights of the remote key */
    size_t offset, len;
    uint32_t key_xor;
} refused[] = {
    {"write without the right", PRM_WQE_OPCODE_RDMA_WRITE, DRV_REMOTE_READ, 0, 8, 0},
    {"read without the right", PRM_WQE_OPCODE_RDMA_READ, DRV_REMOTE_WRITE, 0, 8, 0},
    {"atomic without the right", PRM_WQE_OPCODE_ATOMIC_FA, DRV_REMOTE_WRITE, 0, 8, 0},
    {"write beyond the end", PRM_WQE_OPCODE_RDMA_WRITE, DRV_ALL, 4090, 8, 0},
    {"read beyond the end", PRM_WQE_OPCODE_RDMA_READ, DRV_ALL, 4090, 8, 0},
    {"write in front of it", PRM_WQE_OPCODE_RDMA_WRITE, DRV_ALL, -1ul, 8, 0},
    {"write to where addresses wrap", PRM_WQE_OPCODE_RDMA_WRITE, DRV_ALL, 1ul << 63, 8, 0},
    {"key of another variant", PRM_WQE_OPCODE_RDMA_WRITE, DRV_ALL, 0, 8, 1},
    {"key that does not exist", PRM_WQE_OPCODE_RDMA_READ, DRV_ALL, 0, 8, 0x7fff00},
};

/* IBTA C9-131, table 58: NAK remote access error. The requester's CQE reports it, both QPs end in
 * error, and the responder's consumer gets an async event (no receive WQE was used). */
START_TEST(remote_access_error)
{
    struct qp_pair rc = qp_pair_new(t, PRM_QP_ST_RC, NULL);
    struct buf *target = node_buf(&t->b, 4096, DRV_LOCAL_WRITE | refused[_i].rights, 5);
    g_autofree uint8_t *before = g_memdup2(target->ptr, 4096);

    post(rc.a, refused[_i].opcode, buf_sge(src, 0, refused[_i].len),
         target->va + refused[_i].offset, target->mr.key ^ refused[_i].key_xor);
    expect_error(&t->a, rc.a, PRM_CQE_OPCODE_REQ_ERR, PRM_CQE_SYNDROME_REMOTE_ACCESS_ERR);
    ck_assert_uint_eq(qp_state(rc.a), PRM_QP_STATE_ERR);
    expect_event(&t->b, PRM_EVENT_TYPE_WQ_ACCESS_ERROR, rc.b->qpn);
    ck_assert_uint_eq(qp_state(rc.b), PRM_QP_STATE_ERR);
    expect_no_wc(t, &t->b);
    ck_assert(memcmp(before, target->ptr, 4096) == 0);
}
END_TEST

/* A QP without remote access refuses, whatever the key allows. */
START_TEST(qp_without_remote_access)
{
    struct drv_path path = {.no_remote_access = true};
    struct qp_pair rc = qp_pair_new(t, PRM_QP_ST_RC, &path);

    post(rc.a, PRM_WQE_OPCODE_RDMA_WRITE, buf_sge(src, 0, 8), dst->va, dst->mr.key);
    expect_error(&t->a, rc.a, PRM_CQE_OPCODE_REQ_ERR, PRM_CQE_SYNDROME_REMOTE_INVAL_REQ_ERR);
}
END_TEST

/* IBTA 9.7.5.1.5: an unaligned atomic is an invalid request. */
START_TEST(unaligned_atomic)
{
    struct qp_pair rc = qp_pair_new(t, PRM_QP_ST_RC, NULL);

    post(rc.a, PRM_WQE_OPCODE_ATOMIC_FA, buf_sge(src, 0, 8), dst->va + 4, dst->mr.key);
    expect_error(&t->a, rc.a, PRM_CQE_OPCODE_REQ_ERR, PRM_CQE_SYNDROME_REMOTE_INVAL_REQ_ERR);
}
END_TEST

/* -- the receiver -------------------------------------------------------------------------------
 */

START_TEST(message_longer_than_the_receive_buffer)
{
    struct qp_pair rc = qp_pair_new(t, PRM_QP_ST_RC, NULL);

    post_recv(rc.b, 100);
    post_send(rc.a, 101);
    expect_error(&t->b, rc.b, PRM_CQE_OPCODE_RESP_ERR, PRM_CQE_SYNDROME_LOCAL_LENGTH_ERR);
    expect_error(&t->a, rc.a, PRM_CQE_OPCODE_REQ_ERR, PRM_CQE_SYNDROME_REMOTE_INVAL_REQ_ERR);
}
END_TEST

START_TEST(receive_buffer_with_a_bad_key)
{
    struct qp_pair rc = qp_pair_new(t, PRM_QP_ST_RC, NULL);
    struct drv_sge sge = buf_sge(dst, 0, 100);

    sge.lkey ^= 0xff00;
    drv_post_recv(rc.b, &sge, 1);
    post_send(rc.a, 100);
    expect_error(&t->b, rc.b, PRM_CQE_OPCODE_RESP_ERR, PRM_CQE_SYNDROME_LOCAL_PROT_ERR);
    expect_error(&t->a, rc.a, PRM_CQE_OPCODE_REQ_ERR, PRM_CQE_SYNDROME_REMOTE_OP_ERR);
}
END_TEST

START_TEST(receiver_that_becomes_ready_in_time)
{
    struct qp_pair rc = qp_pair_new(t, PRM_QP_ST_RC, NULL);

    post_send(rc.a, 64);
    inproc_advance(t->world, 5 * MS);
    expect_no_wc(t, &t->a);
    post_recv(rc.b, 64);
    expect_wc(&t->b, rc.b, PRM_CQE_OPCODE_RESP_SEND);
    expect_wc(&t->a, rc.a, PRM_CQE_OPCODE_REQ);
    ck_assert(memcmp(src->ptr, dst->ptr, 64) == 0);
}
END_TEST

START_TEST(receiver_that_never_becomes_ready)
{
    struct drv_path path = {.rnr_retry = 3};
    struct qp_pair rc = qp_pair_new(t, PRM_QP_ST_RC, &path);

    post_send(rc.a, 64);
    expect_error(&t->a, rc.a, PRM_CQE_OPCODE_REQ_ERR, PRM_CQE_SYNDROME_RNR_RETRY_EXC_ERR);
    ck_assert_uint_eq(qp_state(rc.a), PRM_QP_STATE_ERR);
    ck_assert_uint_eq(qp_state(rc.b), PRM_QP_STATE_RTS);
}
END_TEST

/* rnr_retry 7 retries for ever (IBTA 9.7.5.2.8). */
START_TEST(receiver_not_ready_for_a_minute)
{
    struct drv_path path = {.rnr_retry = 7, .min_rnr_nak = 26 /* 81.92 ms */};
    struct qp_pair rc = qp_pair_new(t, PRM_QP_ST_RC, &path);

    post_send(rc.a, 64);
    inproc_advance(t->world, 60 * SECOND);
    post_recv(rc.b, 64);
    expect_wc(&t->a, rc.a, PRM_CQE_OPCODE_REQ);
}
END_TEST

/* -- the cable ----------------------------------------------------------------------------------
 */

START_TEST(retries_end_when_the_cable_is_out)
{
    struct drv_path path = {.retry_count = 3, .ack_timeout = 10};
    struct qp_pair rc = qp_pair_new(t, PRM_QP_ST_RC, &path);

    node_unplug(&t->b);
    expect_event(&t->b, PRM_EVENT_TYPE_PORT_CHANGE, DRV_ANY_NUM);
    expect_event(&t->a, PRM_EVENT_TYPE_PORT_CHANGE, DRV_ANY_NUM);
    post_send(rc.a, 64);
    post_send(rc.a, 64);
    expect_error(&t->a, rc.a, PRM_CQE_OPCODE_REQ_ERR, PRM_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR);
    expect_error(&t->a, rc.a, PRM_CQE_OPCODE_REQ_ERR, PRM_CQE_SYNDROME_WR_FLUSH_ERR);
    ck_assert_uint_eq(qp_state(rc.a), PRM_QP_STATE_ERR);
}
END_TEST

START_TEST(peer_that_is_gone)
{
    struct drv_path path = {.retry_count = DRV_NO_RETRY};
    struct qp_pair rc = qp_pair_new(t, PRM_QP_ST_RC, &path);

    ck_assert_int_eq(drv_modify_qp(rc.b, PRM_CMD_OP_2RST_QP, 0, NULL), 0);
    post_send(rc.a, 64);
    expect_error(&t->a, rc.a, PRM_CQE_OPCODE_REQ_ERR, PRM_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR);
}
END_TEST

/* -- the sender's own mistakes ------------------------------------------------------------------
 */

START_TEST(local_key_that_does_not_cover_the_data)
{
    struct qp_pair rc = qp_pair_new(t, PRM_QP_ST_RC, NULL);

    post_recv(rc.b, 64);
    post(rc.a, PRM_WQE_OPCODE_SEND, buf_sge(src, 4090, 64), 0, 0);
    expect_error(&t->a, rc.a, PRM_CQE_OPCODE_REQ_ERR, PRM_CQE_SYNDROME_LOCAL_PROT_ERR);
    expect_no_wc(t, &t->b);
}
END_TEST

START_TEST(read_into_memory_without_local_write)
{
    struct qp_pair rc = qp_pair_new(t, PRM_QP_ST_RC, NULL);
    struct buf *readonly = node_buf(&t->a, 64, 0, 3);

    post(rc.a, PRM_WQE_OPCODE_RDMA_READ, buf_sge(readonly, 0, 64), dst->va, dst->mr.key);
    expect_error(&t->a, rc.a, PRM_CQE_OPCODE_REQ_ERR, PRM_CQE_SYNDROME_LOCAL_PROT_ERR);
}
END_TEST

START_TEST(unknown_send_opcode)
{
    struct qp_pair rc = qp_pair_new(t, PRM_QP_ST_RC, NULL);

    post(rc.a, 0x3e, buf_sge(src, 0, 8), 0, 0);
    expect_error(&t->a, rc.a, PRM_CQE_OPCODE_REQ_ERR, PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR);
}
END_TEST

/* -- queues in error ----------------------------------------------------------------------------
 */

/* IBTA 10.3.1.6: in the error state all requests, posted before or after, complete as flushed. */
START_TEST(error_state_flushes_both_queues)
{
    struct qp_pair rc = qp_pair_new(t, PRM_QP_ST_RC, NULL);

    node_unplug(&t->b);
    for (int i = 0; i < 3; i++) {
        post_recv(rc.a, 64);
        post_send(rc.a, 64);
    }
    ck_assert_int_eq(drv_modify_qp(rc.a, PRM_CMD_OP_2ERR_QP, 0, NULL), 0);
    post_send(rc.a, 64);
    for (int i = 0; i < 7; i++) {
        struct drv_wc wc = next_wc(&t->a);

        ck_assert(wc.opcode == PRM_CQE_OPCODE_REQ_ERR || wc.opcode == PRM_CQE_OPCODE_RESP_ERR);
        ck_assert_uint_eq(wc.syndrome, PRM_CQE_SYNDROME_WR_FLUSH_ERR);
    }
    expect_no_wc(t, &t->a);
}
END_TEST

/* After 2RST the QP connects again as a new one. */
static void expect_vendor(struct node *node, uint8_t syndrome, uint8_t vendor)
{
    struct drv_wc wc = next_wc(node);

    ck_assert_uint_eq(wc.syndrome, syndrome);
    ck_assert_uint_eq(wc.vendor_syndrome, vendor);
}

/* The pairs that ConnectX adapters are known to report (model/queue/cqe_vendor.c has the sources).
 */
START_TEST(vendor_syndromes_are_those_of_a_connectx)
{
    struct drv_path path = {.retry_count = 1, .ack_timeout = 10};
    struct qp_pair rc = qp_pair_new(t, PRM_QP_ST_RC, NULL);
    struct drv_sge sge = buf_sge(dst, 0, 100);

    post(rc.a, PRM_WQE_OPCODE_RDMA_WRITE, buf_sge(src, 0, 8), dst->va, dst->mr.key ^ 0x55);
    post_send(rc.a, 8);
    post_recv(rc.a, 8);
    expect_vendor(&t->a, PRM_CQE_SYNDROME_REMOTE_ACCESS_ERR, 0x88);
    expect_vendor(&t->a, PRM_CQE_SYNDROME_WR_FLUSH_ERR, 0xf9);
    expect_vendor(&t->a, PRM_CQE_SYNDROME_WR_FLUSH_ERR, 0xf9);

    rc = qp_pair_new(t, PRM_QP_ST_RC, NULL);
    post(rc.a, PRM_WQE_OPCODE_SEND, buf_sge(src, 4090, 64), 0, 0);
    expect_vendor(&t->a, PRM_CQE_SYNDROME_LOCAL_PROT_ERR, 0x51);
    rc = qp_pair_new(t, PRM_QP_ST_RC, NULL);
    post(rc.a, 0x3e, buf_sge(src, 0, 8), 0, 0);
    expect_vendor(&t->a, PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR, 0x68);

    rc = qp_pair_new(t, PRM_QP_ST_RC, &path);
    sge.lkey ^= 0xff00;
    drv_post_recv(rc.b, &sge, 1);
    post_send(rc.a, 100);
    expect_vendor(&t->b, PRM_CQE_SYNDROME_LOCAL_PROT_ERR, 0x32);
    expect_vendor(&t->a, PRM_CQE_SYNDROME_REMOTE_OP_ERR, 0x89);
    rc = qp_pair_new(t, PRM_QP_ST_RC, &(struct drv_path){.rnr_retry = DRV_NO_RETRY});
    post_send(rc.a, 100); /* no receive is posted */
    expect_vendor(&t->a, PRM_CQE_SYNDROME_RNR_RETRY_EXC_ERR, 0x87);
    rc = qp_pair_new(t, PRM_QP_ST_RC, NULL);
    post_recv(rc.b, 8);
    post_send(rc.a, 100);                                          /* longer than the receive */
    expect_vendor(&t->b, PRM_CQE_SYNDROME_LOCAL_LENGTH_ERR, 0xa1); /* hcasim's own choice */
    expect_vendor(&t->a, PRM_CQE_SYNDROME_REMOTE_INVAL_REQ_ERR, 0x8a);
    rc = qp_pair_new(t, PRM_QP_ST_RC, &path);
    node_unplug(&t->b);
    post_send(rc.a, 64);
    expect_vendor(&t->a, PRM_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR, 0x81);
}
END_TEST

START_TEST(qp_in_error_starts_over)
{
    struct qp_pair rc = qp_pair_new(t, PRM_QP_ST_RC, NULL);

    post(rc.a, PRM_WQE_OPCODE_RDMA_WRITE, buf_sge(src, 0, 8), 0, 0xdeadbeef);
    expect_error(&t->a, rc.a, PRM_CQE_OPCODE_REQ_ERR, PRM_CQE_SYNDROME_REMOTE_ACCESS_ERR);
    ck_assert_int_eq(drv_modify_qp(rc.a, PRM_CMD_OP_2RST_QP, 0, NULL), 0);
    ck_assert_int_eq(drv_modify_qp(rc.b, PRM_CMD_OP_2RST_QP, 0, NULL), 0);
    rc.a->sq_pi = rc.b->sq_pi = rc.a->rq_pi = rc.b->rq_pi = 0;
    memset(rc.a->dbr, 0, 8);
    memset(rc.b->dbr, 0, 8);
    connect_qps(&t->a, rc.a, &t->b, rc.b, NULL);
    post(rc.a, PRM_WQE_OPCODE_RDMA_WRITE, buf_sge(src, 0, 8), dst->va, dst->mr.key);
    expect_wc(&t->a, rc.a, PRM_CQE_OPCODE_REQ);
    ck_assert(memcmp(src->ptr, dst->ptr, 8) == 0);
}
END_TEST

/* vnic_diagnostic_statistics, which devlink health displays. */
static uint32_t cq_overruns(struct node *node)
{
    struct prm_query_vnic_env_in in[1] = {0};
    struct prm_query_vnic_env_out out[1] = {0};
    const struct prm_vnic_diagnostic_statistics *env = PRM_PTR(query_vnic_env_out, out, vport_env);

    PRM_SET(query_vnic_env_in, in, opcode, PRM_CMD_OP_QUERY_VNIC_ENV);
    ck_assert_int_eq(drv_cmd(node->drv, in, sizeof(in), out, sizeof(out)), 0);
    return PRM_GET(vnic_diagnostic_statistics, env, cq_overrun);
}

/* IBTA 10.2.9.3: an overrun causes a CQ error event; the QP that could not complete enters the
 * error state. */
START_TEST(cq_overrun)
{
    struct drv_cq small;
    struct drv_qp_attr attr = {.st = PRM_QP_ST_RC,
                               .pdn = t->a.drv->pdn,
                               .send_cq = &small,
                               .recv_cq = &small,
                               .log_sq = LOG_SQ,
                               .log_rq = LOG_RQ,
                               .max_recv_sge = 1};
    struct drv_qp a, *b = node_qp(&t->b, PRM_QP_ST_RC, NULL);
    struct drv_qp *other = node_qp(&t->a, PRM_QP_ST_RC, NULL);
    unsigned got = 0;
    struct drv_wc wc;

    ck_assert_int_eq(drv_create_cq(t->a.drv, 2, &small), 0);
    ck_assert_int_eq(drv_create_qp(t->a.drv, &attr, &a), 0);
    connect_qps(&t->a, &a, &t->b, b, NULL);
    for (int i = 0; i < 10; i++) {
        post(&a, PRM_WQE_OPCODE_RDMA_WRITE, buf_sge(src, 0, 8), dst->va, dst->mr.key);
    }
    inproc_settle(t->world);
    expect_event(&t->a, PRM_EVENT_TYPE_CQ_ERROR, small.cqn);
    ck_assert_uint_eq(qp_state(&a), PRM_QP_STATE_ERR);
    ck_assert_uint_eq(qp_state(other), PRM_QP_STATE_RST);
    ck_assert_uint_eq(cq_overruns(&t->a), 1);
    ck_assert_uint_eq(cq_overruns(&t->b), 0);
    while (drv_poll_cq(t->a.drv, &small, &wc)) {
        got++;
    }
    ck_assert_uint_le(got, 4);
    ck_assert_int_eq(drv_destroy_cq(t->a.drv, &small), PRM_CMD_STATUS_BAD_RES_STATE);
    ck_assert_int_eq(drv_destroy_qp(&a), 0);
    ck_assert_int_eq(drv_destroy_cq(t->a.drv, &small), 0);
}
END_TEST

/* -- states -------------------------------------------------------------------------------------
 */

/* IBTA 10.3.1: transitions go step by step. */
START_TEST(transitions_out_of_order_are_refused)
{
    struct drv_qp *qp = node_qp(&t->a, PRM_QP_ST_RC, NULL),
                  *peer = node_qp(&t->b, PRM_QP_ST_RC, NULL);
    struct drv_path path = path_to(&t->b, peer);

    ck_assert_int_eq(drv_qp_to_rtr(qp, &path), PRM_CMD_STATUS_BAD_QP_STATE);
    ck_assert_int_eq(drv_qp_to_rts(qp, &path), PRM_CMD_STATUS_BAD_QP_STATE);
    ck_assert_uint_eq(qp_state(qp), PRM_QP_STATE_RST);
    ck_assert_int_eq(drv_qp_to_init(qp, &path), 0);
    ck_assert_int_eq(drv_qp_to_init(qp, &path), PRM_CMD_STATUS_BAD_QP_STATE);
    ck_assert_int_eq(drv_qp_to_rts(qp, &path), PRM_CMD_STATUS_BAD_QP_STATE);
    path.sgid_index = 9; /* not set */
    ck_assert_int_eq(drv_qp_to_rtr(qp, &path), PRM_CMD_STATUS_BAD_INDEX);
    ck_assert_uint_eq(qp_state(qp), PRM_QP_STATE_INIT);
    path.sgid_index = 0;
    ck_assert_int_eq(drv_qp_to_rtr(qp, &path), 0);
    ck_assert_int_eq(drv_qp_to_rts(qp, &path), 0);
    ck_assert_int_eq(drv_modify_qp(qp, PRM_CMD_OP_2ERR_QP, 0, NULL), 0);
    ck_assert_int_eq(drv_qp_to_rts(qp, &path), PRM_CMD_STATUS_BAD_QP_STATE);
}
END_TEST

/* A message to a QP that cannot receive yet is treated as lost (IBTA 10.3.1.2). */
START_TEST(sending_before_the_peer_is_ready)
{
    struct drv_qp *a = node_qp(&t->a, PRM_QP_ST_RC, NULL), *b = node_qp(&t->b, PRM_QP_ST_RC, NULL);
    struct drv_path to_b = path_to(&t->b, b), to_a = path_to(&t->a, a);

    ck_assert_int_eq(drv_qp_connect(a, &to_b), 0);
    ck_assert_int_eq(drv_qp_to_init(b, &to_a), 0);
    post_recv(b, 64);
    post_send(a, 64);
    inproc_advance(t->world, 100 * MS);
    expect_no_wc(t, &t->b);
    ck_assert_int_eq(drv_qp_to_rtr(b, &to_a), 0);
    expect_wc(&t->b, b, PRM_CQE_OPCODE_RESP_SEND);
    expect_wc(&t->a, a, PRM_CQE_OPCODE_REQ);
}
END_TEST

/* -- objects in use -----------------------------------------------------------------------------
 */

START_TEST(objects_in_use_stay)
{
    struct qp_pair rc = qp_pair_new(t, PRM_QP_ST_RC, NULL);

    ck_assert_int_eq(drv_destroy_cq(t->a.drv, &t->a.cq), PRM_CMD_STATUS_BAD_RES_STATE);
    ck_assert_int_eq(drv_dealloc_pd(t->a.drv, t->a.drv->pdn), PRM_CMD_STATUS_BAD_RES_STATE);
    post(rc.a, PRM_WQE_OPCODE_RDMA_WRITE, buf_sge(src, 0, 8), dst->va, dst->mr.key);
    expect_wc(&t->a, rc.a, PRM_CQE_OPCODE_REQ);
}
END_TEST

/* A QP is destroyed in the middle of a message: the device accesses nothing of it any more. */
START_TEST(qp_destroyed_while_it_sends)
{
    struct qp_pair rc = qp_pair_new(t, PRM_QP_ST_RC, NULL);
    struct buf *big = node_buf(&t->a, 2 << 20, 0, 1), *far = node_buf(&t->b, 2 << 20, DRV_ALL, 0);

    post(rc.a, PRM_WQE_OPCODE_RDMA_WRITE, buf_sge(big, 0, big->len), far->va, far->mr.key);
    for (int i = 0; i < 4; i++) {
        inproc_run_ready(t->world);
    }
    ck_assert_int_eq(drv_destroy_qp(rc.a), 0);
    g_ptr_array_remove(t->a.qps, rc.a);
    g_free(rc.a);
    inproc_advance(t->world, 10 * SECOND);
    expect_no_wc(t, &t->a);
    ck_assert_uint_eq(far->ptr[far->len - 1], 0);
}
END_TEST

/* The device does not know a freed number: the driver's mistake does no harm. */
START_TEST(destroying_twice_is_refused)
{
    struct drv *drv = t->a.drv;
    struct drv_cq cq;
    struct drv_srq srq;
    struct drv_qp qp;
    struct drv_qp_attr attr = {.st = PRM_QP_ST_RC,
                               .send_cq = &cq,
                               .recv_cq = &cq,
                               .log_sq = 4,
                               .log_rq = 4,
                               .max_recv_sge = 1};
    struct drv_mem mem = {.ptr = src->ptr, .bus = (uintptr_t)src->ptr, .size = 4096};
    struct drv_mr mr;
    uint32_t pdn;

    ck_assert_int_eq(drv_alloc_pd(drv, &pdn), 0);
    ck_assert_int_eq(drv_reg_mr(drv, pdn, &mem, 0, 4096, DRV_ALL, &mr), 0);
    ck_assert_int_eq(drv_create_cq(drv, 4, &cq), 0);
    ck_assert_int_eq(drv_create_srq(drv, pdn, 4, &srq), 0);
    attr.pdn = pdn;
    ck_assert_int_eq(drv_create_qp(drv, &attr, &qp), 0);
    ck_assert_int_eq(drv_destroy_qp(&qp), 0);
    ck_assert_int_eq(drv_destroy_qp(&qp), PRM_CMD_STATUS_BAD_RES);
    ck_assert_int_eq(drv_destroy_srq(drv, &srq), 0);
    ck_assert_int_eq(drv_destroy_srq(drv, &srq), PRM_CMD_STATUS_BAD_RES);
    ck_assert_int_eq(drv_destroy_cq(drv, &cq), 0);
    ck_assert_int_eq(drv_destroy_cq(drv, &cq), PRM_CMD_STATUS_BAD_RES);
    ck_assert_int_eq(drv_dereg_mr(drv, &mr), 0);
    ck_assert_int_eq(drv_dereg_mr(drv, &mr), PRM_CMD_STATUS_BAD_RES);
    ck_assert_int_eq(drv_dealloc_pd(drv, pdn), 0);
    ck_assert_int_eq(drv_dealloc_pd(drv, pdn), PRM_CMD_STATUS_BAD_RES);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("two HCAs, errors");
    TCase *tc = tcase_create("errors");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, remote_access_error, 0, (int)G_N_ELEMENTS(refused));
    tcase_add_test(tc, qp_without_remote_access);
    tcase_add_test(tc, unaligned_atomic);
    tcase_add_test(tc, message_longer_than_the_receive_buffer);
    tcase_add_test(tc, receive_buffer_with_a_bad_key);
    tcase_add_test(tc, receiver_that_becomes_ready_in_time);
    tcase_add_test(tc, receiver_that_never_becomes_ready);
    tcase_add_test(tc, receiver_not_ready_for_a_minute);
    tcase_add_test(tc, retries_end_when_the_cable_is_out);
    tcase_add_test(tc, peer_that_is_gone);
    tcase_add_test(tc, local_key_that_does_not_cover_the_data);
    tcase_add_test(tc, read_into_memory_without_local_write);
    tcase_add_test(tc, unknown_send_opcode);
    tcase_add_test(tc, error_state_flushes_both_queues);
    tcase_add_test(tc, vendor_syndromes_are_those_of_a_connectx);
    tcase_add_test(tc, qp_in_error_starts_over);
    tcase_add_test(tc, cq_overrun);
    tcase_add_test(tc, transitions_out_of_order_are_refused);
    tcase_add_test(tc, sending_before_the_peer_is_ready);
    tcase_add_test(tc, objects_in_use_stay);
    tcase_add_test(tc, qp_destroyed_while_it_sends);
    tcase_add_test(tc, destroying_twice_is_refused);
    suite_add_tcase(suite, tc);
    return suite;
}
