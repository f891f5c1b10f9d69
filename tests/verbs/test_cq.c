/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests completion queues: the contents of a completion, arming, resizing, and destroyed queues. */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "guest-lib/verbs/dv.h"
#include "tests/unit/suite.h"
#include "tests/verbs/verbs_table.h"

#define CQE 15 /* asks for 16 entries */
#define BUF 4096

static struct verbs_table *v;
static struct ibv_comp_channel *send_channel, *recv_channel;
static struct ibv_cq *send_cq, *recv_cq;
static struct ibv_qp *a, *b;
static struct ibv_mr *from, *to;

static struct ibv_comp_channel *channel_new(struct ibv_context *context)
{
    struct ibv_comp_channel *channel = ibv_create_comp_channel(context);

    ck_assert_ptr_nonnull(channel);
    table_do_not_wait(channel->fd);
    return channel;
}

static void setup_on(struct verbs_table *table)
{
    v = table;
    send_channel = channel_new(v->a);
    recv_channel = channel_new(v->b);
    send_cq = ibv_create_cq(v->a, CQE, NULL, send_channel, 0);
    recv_cq = ibv_create_cq(v->b, CQE, NULL, recv_channel, 0);
    ck_assert_ptr_nonnull(send_cq);
    ck_assert_ptr_nonnull(recv_cq);
    a = table_qp_new(v, 0, send_cq, NULL);
    b = table_qp_new(v, 1, recv_cq, NULL);
    table_connect(v, a, b);
    from = table_mr_new(v, 0);
    to = table_mr_new(v, 1);
}

static void setup(void)
{
    setup_on(verbs_table_new());
}

static void setup_with_clock(void)
{
    setup_on(verbs_table_on(verbs_hosts_new_as(2, NULL, "cx7")));
}

static void drop_qps(void)
{
    if (a) {
        table_qp_free(a);
        table_qp_free(b);
    }
    a = b = NULL;
}

static void teardown(void)
{
    drop_qps();
    table_mr_free(from);
    table_mr_free(to);
    ck_assert_int_eq(ibv_destroy_cq(send_cq), 0);
    ck_assert_int_eq(ibv_destroy_cq(recv_cq), 0);
    ck_assert_int_eq(ibv_destroy_comp_channel(send_channel), 0);
    ck_assert_int_eq(ibv_destroy_comp_channel(recv_channel), 0);
    verbs_table_free(v);
}

/* Posts a request of qp, of 100 bytes or an atomic of 8; rkey is the key of the other side's
 * memory, modified by this. */
static void post_wr(struct ibv_qp *qp, enum ibv_wr_opcode opcode, unsigned flags, uint32_t imm,
                    uint32_t wrong, uint64_t wr_id)
{
    bool atomic = opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || opcode == IBV_WR_ATOMIC_CMP_AND_SWP;
    struct ibv_sge sge = {
        .addr = (uintptr_t)from->addr, .length = atomic ? 8 : 100, .lkey = from->lkey};
    struct ibv_send_wr wr = {.wr_id = wr_id,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .opcode = opcode,
                             .send_flags = flags | IBV_SEND_SIGNALED,
                             .imm_data = GUINT32_TO_BE(imm)};
    struct ibv_send_wr *bad;

    if (atomic) {
        wr.wr.atomic.remote_addr = (uintptr_t)to->addr;
        wr.wr.atomic.rkey = to->rkey ^ wrong;
    } else {
        wr.wr.rdma.remote_addr = (uintptr_t)to->addr;
        wr.wr.rdma.rkey = to->rkey ^ wrong;
    }
    ck_assert_int_eq(ibv_post_send(qp, &wr, &bad), 0);
}

static void post(enum ibv_wr_opcode opcode, unsigned flags, uint32_t imm, uint64_t wr_id)
{
    post_wr(a, opcode, flags, imm, 0, wr_id);
}

static void receive(uint64_t wr_id)
{
    struct ibv_sge sge = {.addr = (uintptr_t)to->addr, .length = 200, .lkey = to->lkey};
    struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1}, *bad;

    ck_assert_int_eq(ibv_post_recv(b, &wr, &bad), 0);
}

static void expect_send(uint64_t wr_id, enum ibv_wc_opcode opcode)
{
    struct ibv_wc wc = table_wc(v, send_cq);

    ck_assert_uint_eq(wc.wr_id, wr_id);
    ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
    ck_assert_int_eq(wc.opcode, opcode);
    ck_assert_uint_eq(wc.qp_num, a->qp_num);
}

START_TEST(a_send_is_seen_on_both_sides)
{
    struct ibv_wc wc;

    receive(7);
    post(IBV_WR_SEND_WITH_IMM, 0, 0x01020304, 8);
    expect_send(8, IBV_WC_SEND);
    wc = table_wc(v, recv_cq);
    ck_assert_uint_eq(wc.wr_id, 7);
    ck_assert_int_eq(wc.opcode, IBV_WC_RECV);
    ck_assert_uint_eq(wc.byte_len, 100);
    ck_assert_uint_eq(wc.wc_flags, IBV_WC_WITH_IMM);
    ck_assert_uint_eq(wc.imm_data, GUINT32_TO_BE(0x01020304));
    ck_assert_uint_eq(wc.qp_num, b->qp_num);
    ck_assert_uint_eq(hv_qp(b)->rq.tail, 1);
    ck_assert_uint_eq(hv_qp(a)->sq.tail, 1);
}
END_TEST

START_TEST(every_opcode_has_its_name)
{
    static const struct {
        enum ibv_wr_opcode wr;
        enum ibv_wc_opcode wc;
        uint32_t byte_len;
    } table[] = {
        {IBV_WR_RDMA_WRITE, IBV_WC_RDMA_WRITE, 0},
        {IBV_WR_RDMA_READ, IBV_WC_RDMA_READ, 100},
        {IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WC_FETCH_ADD, 8},
        {IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WC_COMP_SWAP, 8},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(table); i++) {
        struct ibv_wc wc;

        post(table[i].wr, 0, 0, i);
        wc = table_wc(v, send_cq);
        ck_assert_uint_eq(wc.wr_id, i);
        ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
        ck_assert_int_eq(wc.opcode, table[i].wc);
        if (table[i].byte_len) {
            ck_assert_uint_eq(wc.byte_len, table[i].byte_len);
        }
    }
}
END_TEST

START_TEST(a_write_with_immediate_takes_a_receive)
{
    struct ibv_wc wc;

    receive(1);
    post(IBV_WR_RDMA_WRITE_WITH_IMM, 0, 5, 2);
    wc = table_wc(v, recv_cq);
    ck_assert_int_eq(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
    ck_assert_uint_eq(wc.byte_len, 100);
    ck_assert_uint_eq(wc.wc_flags, IBV_WC_WITH_IMM);
    expect_send(2, IBV_WC_RDMA_WRITE);
}
END_TEST

/* C10-42 and after: the WQE in error completes with its error, all others with a flush error. */
START_TEST(errors_and_flushes_have_their_status)
{
    struct ibv_wc wc;

    post_wr(a, IBV_WR_RDMA_WRITE, 0, 0, 0x55, 1);
    post_wr(a, IBV_WR_RDMA_WRITE, 0, 0, 0x55, 2);
    wc = table_wc(v, send_cq);
    ck_assert_uint_eq(wc.wr_id, 1);
    ck_assert_int_eq(wc.status, IBV_WC_REM_ACCESS_ERR);
    wc = table_wc(v, send_cq);
    ck_assert_uint_eq(wc.wr_id, 2);
    ck_assert_int_eq(wc.status, IBV_WC_WR_FLUSH_ERR);
    ck_assert_uint_eq(wc.qp_num, a->qp_num);
}
END_TEST

START_TEST(sizes_are_rounded_up_and_checked)
{
    struct ibv_cq *cq;

    cq = ibv_create_cq(v->a, 16, NULL, NULL, 0);
    ck_assert_int_eq(cq->cqe, 31);
    ck_assert_int_eq(ibv_destroy_cq(cq), 0);
    cq = ibv_create_cq(v->a, 1, NULL, NULL, 0);
    ck_assert_int_eq(cq->cqe, 1);
    ck_assert_int_eq(ibv_destroy_cq(cq), 0);
    ck_assert_ptr_null(ibv_create_cq(v->a, 0, NULL, NULL, 0));
    ck_assert_int_eq(errno, EINVAL);
    ck_assert_ptr_null(ibv_create_cq(v->a, -1, NULL, NULL, 0));
    ck_assert_ptr_null(ibv_create_cq(v->a, 1 << HV_CAP(v->hca[0], log_max_cq_sz), NULL, NULL, 0));
    ck_assert_ptr_null(ibv_create_cq(v->a, 10, NULL, NULL, v->a->num_comp_vectors));
    ck_assert_ptr_null(ibv_create_cq(v->a, 10, NULL, NULL, -1));
    ck_assert_int_eq(errno, EINVAL);
    table_refuse(v, 0, PRM_CMD_STATUS_LIM_ERR);
    ck_assert_ptr_null(ibv_create_cq(v->a, 10, NULL, NULL, 0));
    ck_assert_int_eq(errno, ENOMEM);
}
END_TEST

START_TEST(a_cq_in_use_cannot_be_destroyed)
{
    g_atomic_int_inc(&hv_cq(send_cq)->users);
    ck_assert_int_eq(ibv_destroy_cq(send_cq), EBUSY);
    g_atomic_int_add(&hv_cq(send_cq)->users, -1);
}
END_TEST

/* Completions that were not polled come out of the new ring, in order, before later ones. */
START_TEST(a_cq_is_resized_with_completions_in_it)
{
    static const int sizes[] = {100, 10, 1000, 40, 7};
    uint64_t posted = 0, polled = 0;

    for (size_t i = 0; i < G_N_ELEMENTS(sizes); i++) {
        for (int n = 0; n < 5; n++) {
            post(IBV_WR_RDMA_WRITE, 0, 0, posted++);
        }
        table_wait(v);
        expect_send(polled++, IBV_WC_RDMA_WRITE);
        expect_send(polled++, IBV_WC_RDMA_WRITE);
        ck_assert_int_eq(ibv_resize_cq(send_cq, sizes[i]), 0);
        ck_assert_int_ge(send_cq->cqe, sizes[i]);
        ck_assert_int_lt(send_cq->cqe, 2 * sizes[i]);
        post(IBV_WR_RDMA_WRITE, 0, 0, posted++);
        while (polled < posted) {
            expect_send(polled++, IBV_WC_RDMA_WRITE);
        }
    }
}
END_TEST

START_TEST(a_cq_does_not_shrink_below_what_is_in_it)
{
    for (int n = 0; n < 10; n++) {
        post(IBV_WR_RDMA_WRITE, 0, 0, (uint64_t)n);
    }
    table_wait(v);
    ck_assert_int_ne(ibv_resize_cq(send_cq, 3), 0);
    ck_assert_int_eq(send_cq->cqe, CQE);
    ck_assert_int_eq(ibv_resize_cq(send_cq, -1), EINVAL);
    ck_assert_int_eq(ibv_resize_cq(send_cq, 0), EINVAL);
    for (int n = 0; n < 10; n++) {
        expect_send((uint64_t)n, IBV_WC_RDMA_WRITE);
    }
}
END_TEST

static bool comp_event(struct ibv_comp_channel *channel, struct ibv_cq *cq)
{
    struct ibv_cq *of;
    void *context;
    uint32_t before = cq->comp_events_completed;

    table_wait(v);
    if (ibv_get_cq_event(channel, &of, &context)) {
        ck_assert_int_eq(errno, EAGAIN);
        return false;
    }
    ck_assert_ptr_eq(of, cq);
    ck_assert_uint_eq(cq->comp_events_completed, before);
    ibv_ack_cq_events(of, 1);
    ck_assert_uint_eq(cq->comp_events_completed, before + 1);
    return true;
}

/* 11.4.2.2: one event for the first completion after the request, and none for earlier
 * completions. */
START_TEST(an_armed_cq_makes_one_event)
{
    post(IBV_WR_RDMA_WRITE, 0, 0, 0);
    ck_assert(!comp_event(send_channel, send_cq));
    expect_send(0, IBV_WC_RDMA_WRITE);
    for (unsigned round = 0; round < 6; round++) {
        ck_assert_int_eq(ibv_req_notify_cq(send_cq, 0), 0);
        post(IBV_WR_RDMA_WRITE, 0, 0, 1);
        post(IBV_WR_RDMA_WRITE, 0, 0, 2);
        ck_assert(comp_event(send_channel, send_cq));
        ck_assert(!comp_event(send_channel, send_cq));
        expect_send(1, IBV_WC_RDMA_WRITE);
        expect_send(2, IBV_WC_RDMA_WRITE);
    }
}
END_TEST

/* Programs arm before they poll; a completion whose event was delivered causes no second event. */
START_TEST(a_cq_armed_before_it_is_polled_waits_for_new_completions)
{
    ck_assert_int_eq(ibv_req_notify_cq(send_cq, 0), 0);
    post(IBV_WR_RDMA_WRITE, 0, 0, 1);
    ck_assert(comp_event(send_channel, send_cq));
    ck_assert_int_eq(ibv_req_notify_cq(send_cq, 0), 0);
    ck_assert(!comp_event(send_channel, send_cq));
    post(IBV_WR_RDMA_WRITE, 0, 0, 2);
    ck_assert(comp_event(send_channel, send_cq));
    post(IBV_WR_RDMA_WRITE, 0, 0, 3); /* after the event, before the request */
    ck_assert_int_eq(ibv_req_notify_cq(send_cq, 0), 0);
    ck_assert(comp_event(send_channel, send_cq));
}
END_TEST

static uint32_t eqn_of_cq(struct ibv_cq *cq)
{
    struct prm_query_cq_in in[1] = {0};
    g_autofree struct prm_query_cq_out *out = g_malloc0(PRM_SIZE(query_cq_out));

    PRM_SET(query_cq_in, in, opcode, PRM_CMD_OP_QUERY_CQ);
    PRM_SET(query_cq_in, in, cqn, hv_cq(cq)->cqn);
    ck_assert_int_eq(hv_cmd(v->hca[0], in, sizeof(in), out, PRM_SIZE(query_cq_out)), 0);
    return PRM_GET(cqc, PRM_PTR(query_cq_out, out, cq_context), c_eqn_or_apu_element);
}

/* Returns which completion EQs have had events, a bit each. */
static unsigned eqs_with_events(void)
{
    const struct drv *drv = hv_drv(v->hca[0]);
    unsigned seen = 0;

    for (unsigned i = 0; i < drv->num_comp_eqs; i++) {
        seen |= (drv->comp_eq[i].ci != 0) << i;
    }
    return seen;
}

/* 11.2.8.1: a CQ's events go to the EQ of its completion vector. No event goes to another vector's
 * EQ, or to the EQ of asynchronous events. */
START_TEST(events_go_by_the_vector_of_their_cq)
{
    unsigned num = (unsigned)v->a->num_comp_vectors, seen = 0;
    uint32_t async = hv_drv(v->hca[0])->eq.ci, eqn;
    struct ibv_cq *cq;

    ck_assert_uint_gt(num, 1);
    for (unsigned i = 0; i < num; i++) {
        cq = ibv_create_cq(v->a, CQE, NULL, send_channel, (int)i);
        ck_assert_ptr_nonnull(cq);
        drop_qps();
        a = table_qp_new(v, 0, cq, NULL);
        b = table_qp_new(v, 1, recv_cq, NULL);
        table_connect(v, a, b);
        ck_assert_int_eq(hv_dv_devx_query_eqn(v->a, i, &eqn), 0);
        ck_assert_uint_eq(eqn_of_cq(cq), eqn);
        ck_assert_uint_eq(eqs_with_events(), seen);
        ck_assert_int_eq(ibv_req_notify_cq(cq, 0), 0);
        post(IBV_WR_RDMA_WRITE, 0, 0, i);
        ck_assert(comp_event(send_channel, cq));
        ck_assert_uint_eq(eqs_with_events(), seen |= 1u << i);
        drop_qps();
        ck_assert_int_eq(ibv_destroy_cq(cq), 0);
    }
    ck_assert_uint_eq(hv_drv(v->hca[0])->eq.ci, async);
    ck_assert_ptr_null(ibv_create_cq(v->a, CQE, NULL, NULL, (int)num));
    ck_assert_int_eq(errno, EINVAL);
    ck_assert_int_eq(hv_dv_devx_query_eqn(v->a, num, &eqn), ENOENT);
}
END_TEST

START_TEST(a_cq_armed_for_solicited_ones_waits_for_one)
{
    ck_assert_int_eq(ibv_req_notify_cq(recv_cq, 1), 0);
    receive(1);
    receive(2);
    post(IBV_WR_SEND, 0, 0, 1);
    ck_assert(!comp_event(recv_channel, recv_cq));
    post(IBV_WR_SEND, IBV_SEND_SOLICITED, 0, 2);
    ck_assert(comp_event(recv_channel, recv_cq));
}
END_TEST

START_TEST(moderation_is_checked)
{
    struct ibv_modify_cq_attr attr = {.attr_mask = IBV_CQ_ATTR_MODERATE,
                                      .moderate = {.cq_count = 4, .cq_period = 100}};

    ck_assert_int_eq(ibv_modify_cq(send_cq, &attr), 0);
    attr.moderate.cq_period = 0x1000;
    ck_assert_int_eq(ibv_modify_cq(send_cq, &attr), EINVAL);
    attr.attr_mask = 0;
    ck_assert_int_eq(ibv_modify_cq(send_cq, &attr), EINVAL);
    attr.attr_mask = 2;
    ck_assert_int_eq(ibv_modify_cq(send_cq, &attr), EOPNOTSUPP);
}
END_TEST

/* mlx5_cq_clean(): the remaining completions are in order, and none is of the destroyed queue. */
START_TEST(completions_of_a_queue_that_is_gone_are_gone)
{
    struct ibv_qp *a2 = table_qp_new(v, 0, send_cq, NULL);
    struct ibv_qp *b2 = table_qp_new(v, 1, recv_cq, NULL);
    struct ibv_wc wc;

    table_connect(v, a2, b2);
    for (uint64_t i = 0; i < 5; i++) {
        post(IBV_WR_RDMA_WRITE, 0, 0, i);
        table_wait(v);
        post_wr(a2, IBV_WR_RDMA_WRITE, 0, 0, 0, 100 + i);
        table_wait(v);
    }
    table_qp_free(a2);
    for (uint64_t i = 0; i < 5; i++) {
        expect_send(i, IBV_WC_RDMA_WRITE);
    }
    ck_assert_int_eq(ibv_poll_cq(send_cq, 1, &wc), 0);
    /* the entries are free again: uses more than one round of the ring */
    for (uint64_t i = 0; i < 3 * CQE; i++) {
        post(IBV_WR_RDMA_WRITE, 0, 0, i);
        expect_send(i, IBV_WC_RDMA_WRITE);
    }
    table_qp_free(b2);
}
END_TEST

/* -- extended CQs -------------------------------------------------------------------------------
 */

START_TEST(extended_polling_reads_the_same)
{
    struct ibv_cq_init_attr_ex attr = {
        .cqe = CQE,
        .wc_flags = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP,
    };
    struct ibv_poll_cq_attr poll = {0};
    struct ibv_cq_ex *ex;
    uint64_t before = 0;

    ex = ibv_create_cq_ex(v->b, &attr);
    ck_assert_ptr_nonnull(ex);
    ck_assert_int_eq(ibv_start_poll(ex, &poll), ENOENT);
    drop_qps();
    a = table_qp_new(v, 0, send_cq, NULL);
    b = table_qp_new(v, 1, ibv_cq_ex_to_cq(ex), NULL);
    table_connect(v, a, b);
    receive(11);
    receive(12);
    post(IBV_WR_SEND_WITH_IMM, 0, 0x99, 1);
    post(IBV_WR_RDMA_WRITE_WITH_IMM, 0, 0x77, 2);
    table_wait(v);
    ck_assert_int_eq(ibv_start_poll(ex, &poll), 0);
    ck_assert_uint_eq(ex->wr_id, 11);
    ck_assert_int_eq(ex->status, IBV_WC_SUCCESS);
    ck_assert_int_eq(ibv_wc_read_opcode(ex), IBV_WC_RECV);
    ck_assert_uint_eq(ibv_wc_read_byte_len(ex), 100);
    ck_assert_uint_eq(ibv_wc_read_imm_data(ex), GUINT32_TO_BE(0x99));
    ck_assert_uint_eq(ibv_wc_read_wc_flags(ex), IBV_WC_WITH_IMM);
    ck_assert_uint_eq(ibv_wc_read_qp_num(ex), b->qp_num);
    before = ibv_wc_read_completion_ts(ex);
    ck_assert_uint_gt(before, 0);
    ck_assert_int_eq(ibv_next_poll(ex), 0);
    ck_assert_uint_eq(ex->wr_id, 12);
    ck_assert_int_eq(ibv_wc_read_opcode(ex), IBV_WC_RECV_RDMA_WITH_IMM);
    ck_assert_uint_ge(ibv_wc_read_completion_ts(ex), before);
    ck_assert_int_eq(ibv_next_poll(ex), ENOENT);
    ibv_end_poll(ex);
    poll.comp_mask = 1;
    ck_assert_int_eq(ibv_start_poll(ex, &poll), EINVAL);
    drop_qps();
    ck_assert_int_eq(ibv_destroy_cq(ibv_cq_ex_to_cq(ex)), 0);
}
END_TEST

static int64_t ns_of(clockid_t id)
{
    struct timespec t;

    clock_gettime(id, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Both formats of the device's time denote one moment: they differ as the host's two clocks do. */
START_TEST(wall_clock_stamps_are_the_same_moment)
{
    struct ibv_cq_init_attr_ex attr = {
        .cqe = CQE,
        .wc_flags =
            IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK,
    };
    struct ibv_poll_cq_attr poll = {0};
    struct ibv_cq_ex *ex = ibv_create_cq_ex(v->b, &attr);
    int64_t apart, want;

    ck_assert_ptr_nonnull(ex);
    drop_qps();
    a = table_qp_new(v, 0, send_cq, NULL);
    b = table_qp_new(v, 1, ibv_cq_ex_to_cq(ex), NULL);
    table_connect(v, a, b);
    receive(1);
    post(IBV_WR_SEND, 0, 0, 1);
    table_wait(v);
    ck_assert_int_eq(ibv_start_poll(ex, &poll), 0);
    apart = (int64_t)(ibv_wc_read_completion_wallclock_ns(ex) - ibv_wc_read_completion_ts(ex));
    want = ns_of(CLOCK_REALTIME) - ns_of(CLOCK_MONOTONIC);
    ck_assert_int_lt(ABS(apart - want), 1000000000);
    ibv_end_poll(ex);
    drop_qps();
    ck_assert_int_eq(ibv_destroy_cq(ibv_cq_ex_to_cq(ex)), 0);
}
END_TEST

static uint64_t raw_clock(struct ibv_context *context)
{
    struct ibv_values_ex values = {.comp_mask = IBV_VALUES_MASK_RAW_CLOCK};

    ck_assert_int_eq(ibv_query_rt_values_ex(context, &values), 0);
    return (uint64_t)values.raw_clock.tv_sec * 1000000000 + (uint64_t)values.raw_clock.tv_nsec;
}

static struct ibv_cq_ex *real_time_cq(struct ibv_context *context)
{
    struct ibv_cq_init_attr_ex attr = {.cqe = CQE,
                                       .wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK};
    struct ibv_cq_ex *ex = ibv_create_cq_ex(context, &attr);

    ck_assert_ptr_nonnull(ex);
    return ex;
}

/* The time stamp of the next receive completion, in nanoseconds. libmlx5 returns it as it is in the
 * CQE: seconds and nanoseconds (mlx5_cq_fill_pfns()). */
static uint64_t next_stamp(struct ibv_cq_ex *ex)
{
    struct ibv_poll_cq_attr poll = {0};
    uint64_t stamp;

    receive(1);
    post(IBV_WR_SEND, 0, 0, 1);
    table_wait(v);
    ck_assert_int_eq(ibv_start_poll(ex, &poll), 0);
    stamp = ibv_wc_read_completion_wallclock_ns(ex);
    ibv_end_poll(ex);
    ck_assert_uint_lt((uint32_t)stamp, 1000000000);
    return (stamp >> 32) * 1000000000 + (uint32_t)stamp;
}

/* On a card with a real-time clock, a CQ of wall clock stamps has those of that clock. The clock
 * shows the free-running timer until it is set. */
START_TEST(real_time_stamps_are_those_of_the_card_s_clock)
{
    struct mlx5dv_context caps = {0};
    struct ibv_cq_ex *ex = real_time_cq(v->b);
    uint64_t before, stamp, set_to = 1700000000ull * 1000000000 + 7, set_at;

    ck_assert_int_eq(hv_dv_query_device(v->b, &caps), 0);
    ck_assert(caps.flags & MLX5DV_CONTEXT_FLAGS_REAL_TIME_TS);
    drop_qps();
    a = table_qp_new(v, 0, send_cq, NULL);
    b = table_qp_new(v, 1, ibv_cq_ex_to_cq(ex), NULL);
    table_connect(v, a, b);
    before = raw_clock(v->b);
    stamp = next_stamp(ex);
    ck_assert_uint_ge(stamp, before);
    ck_assert_uint_le(stamp, raw_clock(v->b));
    set_at = raw_clock(v->b);
    ck_assert_int_eq(drv_set_real_time(hv_drv(v->hca[1]), set_to), 0);
    stamp = next_stamp(ex);
    ck_assert_uint_ge(stamp, set_to);
    ck_assert_uint_le(stamp - set_to, raw_clock(v->b) - set_at);
    drop_qps();
    ck_assert_int_eq(ibv_destroy_cq(ibv_cq_ex_to_cq(ex)), 0);
}
END_TEST

/* mlx5_ib: get_qp_ts_format(). */
START_TEST(the_cqs_of_a_qp_ask_for_the_same_clock)
{
    struct ibv_cq_ex *ex = real_time_cq(v->a);
    struct ibv_qp_init_attr attr = {.send_cq = send_cq,
                                    .recv_cq = ibv_cq_ex_to_cq(ex),
                                    .cap = {.max_send_wr = 1, .max_recv_wr = 1},
                                    .qp_type = IBV_QPT_RC};

    errno = 0;
    ck_assert_ptr_null(ibv_create_qp(v->hosts->host[0].pd, &attr));
    ck_assert_int_eq(errno, EOPNOTSUPP);
    ck_assert_int_eq(ibv_destroy_cq(ibv_cq_ex_to_cq(ex)), 0);
}
END_TEST

START_TEST(a_connectx_5_has_no_real_time_stamps)
{
    struct mlx5dv_context caps = {0};

    ck_assert_int_eq(hv_dv_query_device(v->b, &caps), 0);
    ck_assert(!(caps.flags & MLX5DV_CONTEXT_FLAGS_REAL_TIME_TS));
}
END_TEST

START_TEST(extended_attributes_are_checked)
{
    struct ibv_cq_init_attr_ex attr = {.cqe = CQE, .comp_mask = 1u << 7};

    ck_assert_ptr_null(ibv_create_cq_ex(v->a, &attr));
    ck_assert_int_eq(errno, EINVAL);
    attr.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS;
    attr.flags = 1u << 9;
    ck_assert_ptr_null(ibv_create_cq_ex(v->a, &attr));
    ck_assert_int_eq(errno, EINVAL);
    attr.flags = 0;
    attr.wc_flags = 1ull << 40;
    ck_assert_ptr_null(ibv_create_cq_ex(v->a, &attr));
    ck_assert_int_eq(errno, EOPNOTSUPP);
    attr.wc_flags = 0;
    attr.comp_mask = IBV_CQ_INIT_ATTR_MASK_PD;
    attr.parent_domain = NULL;
    ck_assert_ptr_null(ibv_create_cq_ex(v->a, &attr));
    ck_assert_int_eq(errno, EINVAL);
    attr.parent_domain = v->hosts->host[0].pd; /* no parent domain */
    errno = 0;
    ck_assert_ptr_null(ibv_create_cq_ex(v->a, &attr));
    ck_assert_int_eq(errno, EINVAL);
}
END_TEST

Suite *unit_suite(void)
{
    TCase *tc = tcase_create("cq"), *clock = tcase_create("clock");
    Suite *suite = suite_create("verbs-cq");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, a_send_is_seen_on_both_sides);
    tcase_add_test(tc, every_opcode_has_its_name);
    tcase_add_test(tc, a_write_with_immediate_takes_a_receive);
    tcase_add_test(tc, errors_and_flushes_have_their_status);
    tcase_add_test(tc, sizes_are_rounded_up_and_checked);
    tcase_add_test(tc, a_cq_in_use_cannot_be_destroyed);
    tcase_add_test(tc, a_cq_is_resized_with_completions_in_it);
    tcase_add_test(tc, a_cq_does_not_shrink_below_what_is_in_it);
    tcase_add_test(tc, an_armed_cq_makes_one_event);
    tcase_add_test(tc, a_cq_armed_before_it_is_polled_waits_for_new_completions);
    tcase_add_test(tc, events_go_by_the_vector_of_their_cq);
    tcase_add_test(tc, a_cq_armed_for_solicited_ones_waits_for_one);
    tcase_add_test(tc, moderation_is_checked);
    tcase_add_test(tc, completions_of_a_queue_that_is_gone_are_gone);
    tcase_add_test(tc, extended_polling_reads_the_same);
    tcase_add_test(tc, wall_clock_stamps_are_the_same_moment);
    tcase_add_test(tc, extended_attributes_are_checked);
    tcase_add_test(tc, a_connectx_5_has_no_real_time_stamps);
    suite_add_tcase(suite, tc);
    tcase_add_checked_fixture(clock, setup_with_clock, teardown);
    tcase_add_test(clock, real_time_stamps_are_those_of_the_card_s_clock);
    tcase_add_test(clock, the_cqs_of_a_qp_ask_for_the_same_clock);
    suite_add_tcase(suite, clock);
    return suite;
}
