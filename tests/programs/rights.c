/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests what keys, windows and shared queues allow, and who is notified when they refuse: what a
 * program sees of memory protection if several things are wrong at once, or two queues share one
 * domain. Its QPs a and b are connected to each other.
 */
#include <poll.h>
#include <unistd.h>
#include "tests/programs/statements.h"

#define CQE   64
#define WRS   8
#define HALF  4096
#define QKEY  0x11111111
#define GRH   40
#define QUIET 200000 /* us: a packet that has not come after this time was not sent */
#define ALL   (REMOTE | IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND)

static struct ibv_comp_channel *channel;
static struct ibv_cq *send_cq, *recv_cq; /* receives notify the channel */
static struct ibv_mr *mr, *foreign;      /* foreign belongs to the other protection domain */
static struct ibv_srq *srq;              /* in the other domain; used by b if it exists */
static struct ibv_qp *a, *b;
/* a sends from and reads to the first half; it reaches the second half at b */
static uint8_t buf[2 * HALF] __attribute__((aligned(4096)));
#define NEAR     ((uintptr_t)buf)
#define FAR      ((uintptr_t)buf + HALF)
#define FAR_WORD (*(volatile uint64_t *)(buf + HALF))

/* -- queue pairs, completions -------------------------------------------------------------------
 */

static struct ibv_qp *new_qp(enum ibv_qp_type type, struct ibv_srq *shared, struct ibv_cq *to)
{
    struct ibv_qp_init_attr init = {
        .send_cq = send_cq,
        .recv_cq = to,
        .srq = shared,
        .cap = {.max_send_wr = WRS, .max_recv_wr = WRS, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = type,
    };
    struct ibv_qp *qp = ibv_create_qp(pd, &init);

    ck_assert_ptr_nonnull(qp);
    return qp;
}

static void connect_both(struct ibv_srq *shared, struct ibv_cq *to)
{
    a = new_qp(IBV_QPT_RC, NULL, recv_cq);
    b = new_qp(IBV_QPT_RC, shared, to);
    connect_to(a, b->qp_num, REMOTE);
    connect_to(b, a->qp_num, REMOTE);
}

static void expect(struct ibv_cq *cq, enum ibv_wc_status status)
{
    struct ibv_wc wc = completion(cq);

    ck_assert_str_eq(ibv_wc_status_str(wc.status), ibv_wc_status_str(status));
}

static uint32_t no_key(void)
{
    return mr->lkey ^ 0x7fff00;
}

static void post(struct ibv_qp *qp, struct ibv_send_wr *wr)
{
    struct ibv_send_wr *bad;

    wr->send_flags |= IBV_SEND_SIGNALED;
    ck_assert_int_eq(ibv_post_send(qp, wr, &bad), 0);
}

/* Posts a SEND, WRITE or READ of a: bytes of the first half with lkey, of the second half with
 * rkey. */
static void post_rdma(enum ibv_wr_opcode opcode, uint32_t lkey, uint32_t rkey, uint32_t bytes)
{
    struct ibv_sge sge = {NEAR, bytes, lkey};
    struct ibv_send_wr wr = {
        .sg_list = &sge, .num_sge = bytes > 0, .opcode = opcode, .wr.rdma = {FAR, rkey}};

    post(a, &wr);
}

static void post_atomic(uint32_t lkey, uint32_t rkey, unsigned offset)
{
    struct ibv_sge sge = {NEAR, 8, lkey};
    struct ibv_send_wr wr = {
        .sg_list = &sge,
        .num_sge = 1,
        .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
        .wr.atomic = {.remote_addr = FAR + offset, .compare_add = 7, .rkey = rkey}};

    post(a, &wr);
}

static void post_inv(struct ibv_qp *qp, enum ibv_wr_opcode opcode, uint32_t rkey)
{
    struct ibv_send_wr wr = {.opcode = opcode, .invalidate_rkey = rkey};

    post(qp, &wr);
}

static void post_recv(uint32_t lkey, uint32_t bytes)
{
    struct ibv_sge sge = {FAR, bytes, lkey};
    struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;

    ck_assert_int_eq(srq ? ibv_post_srq_recv(srq, &wr, &bad) : ibv_post_recv(b, &wr, &bad), 0);
}

static void setup(void)
{
    open_device();
    channel = ibv_create_comp_channel(ctx);
    send_cq = ibv_create_cq(ctx, CQE, NULL, NULL, 0);
    recv_cq = ibv_create_cq(ctx, CQE, NULL, channel, 0);
    mr = ibv_reg_mr(pd, buf, sizeof(buf), ALL);
    foreign = ibv_reg_mr(other_pd, buf, sizeof(buf), ALL);
    ck_assert(channel && send_cq && recv_cq && mr && foreign);
}

static void setup_pair(void)
{
    setup();
    connect_both(NULL, recv_cq);
}

static void teardown(void)
{
    ck_assert(!a || ibv_destroy_qp(a) == 0);
    ck_assert(!b || ibv_destroy_qp(b) == 0);
    ck_assert(!srq || ibv_destroy_srq(srq) == 0);
    ck_assert_int_eq(ibv_dereg_mr(mr), 0);
    ck_assert_int_eq(ibv_dereg_mr(foreign), 0);
    ck_assert_int_eq(ibv_destroy_cq(send_cq), 0);
    ck_assert_int_eq(ibv_destroy_cq(recv_cq), 0);
    ck_assert_int_eq(ibv_destroy_comp_channel(channel), 0);
    close_device();
}

/* -- who checks a key, and when
 * ----------------------------------------------------------------- */

START_TEST(an_atomic_with_a_bad_local_key_is_carried_out)
{
    post_atomic(no_key(), mr->rkey, 0);
    expect(send_cq, IBV_WC_LOC_PROT_ERR);
    ck_assert_uint_eq(FAR_WORD, 7);
    expect_state(a, IBV_QPS_ERR);
    expect_state(b, IBV_QPS_RTS);
}
END_TEST

START_TEST(a_responder_refuses_before_the_local_key_is_looked_at)
{
    switch (_i) {
    case 0:
        post_rdma(IBV_WR_RDMA_READ, no_key(), no_key(), 64);
        expect(send_cq, IBV_WC_REM_ACCESS_ERR);
        break;
    case 1:
        post_atomic(no_key(), no_key(), 0);
        expect(send_cq, IBV_WC_REM_ACCESS_ERR);
        break;
    case 2:
        post_atomic(no_key(), no_key(), 1);
        expect(send_cq, IBV_WC_REM_INV_REQ_ERR);
        break;
    case 3: /* the bytes to send are read first */
        post_rdma(IBV_WR_RDMA_WRITE, no_key(), no_key(), 64);
        expect(send_cq, IBV_WC_LOC_PROT_ERR);
        break;
    }
    ck_assert_uint_eq(FAR_WORD, 0);
}
END_TEST

START_TEST(no_bytes_need_no_key)
{
    post_rdma(IBV_WR_RDMA_WRITE, 0, no_key(), 0);
    expect(send_cq, IBV_WC_SUCCESS);
    post_rdma(IBV_WR_RDMA_READ, 0, no_key(), 0);
    expect(send_cq, IBV_WC_SUCCESS);
    post_recv(mr->lkey, 64);
    post_rdma(IBV_WR_SEND, 0, 0, 0);
    expect(send_cq, IBV_WC_SUCCESS);
    expect(recv_cq, IBV_WC_SUCCESS);
}
END_TEST

START_TEST(a_write_with_immediate_and_a_bad_key_completes_its_receive)
{
    post_recv(mr->lkey, 64);
    post_rdma(IBV_WR_RDMA_WRITE_WITH_IMM, mr->lkey, no_key(), 64);
    expect(send_cq, IBV_WC_REM_ACCESS_ERR);
    expect(recv_cq, IBV_WC_LOC_ACCESS_ERR);
}
END_TEST

/* -- shared queues ------------------------------------------------------------------------------
 */

static void setup_srq(void)
{
    struct ibv_srq_init_attr attr = {.attr = {.max_wr = WRS, .max_sge = 1}};

    setup();
    srq = ibv_create_srq(other_pd, &attr);
    ck_assert_ptr_nonnull(srq);
    connect_both(srq, recv_cq);
}

/* IBTA 10.2.3.1: an SRQ's receives belong to the SRQ's domain; the keys that the peer names belong
 * to the QP's domain. */
START_TEST(receives_of_an_srq_are_of_its_domain)
{
    post_recv(foreign->lkey, 64);
    post_rdma(IBV_WR_SEND, mr->lkey, 0, 64);
    expect(send_cq, IBV_WC_SUCCESS);
    expect(recv_cq, IBV_WC_SUCCESS);
    post_recv(foreign->lkey, 64);
    post_rdma(IBV_WR_RDMA_WRITE_WITH_IMM, mr->lkey, mr->rkey, 64);
    expect(send_cq, IBV_WC_SUCCESS);
    expect(recv_cq, IBV_WC_SUCCESS);
    post_recv(mr->lkey, 64);
    post_rdma(IBV_WR_SEND, mr->lkey, 0, 64);
    expect(send_cq, IBV_WC_REM_OP_ERR);
    expect(recv_cq, IBV_WC_LOC_PROT_ERR);
}
END_TEST

/* A message whose completion has no room in the CQ is not acknowledged. */
START_TEST(a_message_that_overruns_the_receivers_cq_is_not_acknowledged)
{
    struct ibv_cq *small = ibv_create_cq(ctx, 1, NULL, NULL, 0);

    ck_assert_ptr_nonnull(small);
    connect_both(NULL, small);
    for (int i = 0; i <= small->cqe + 1; i++) { /* libmlx5 reserves one entry */
        post_recv(mr->lkey, 64);
        post_rdma(IBV_WR_SEND, mr->lkey, 0, 64);
        expect(send_cq, i <= small->cqe ? IBV_WC_SUCCESS : IBV_WC_RETRY_EXC_ERR);
    }
    expect_state(b, IBV_QPS_ERR);
    ck_assert_int_eq(ibv_destroy_qp(b), 0);
    b = NULL;
    ck_assert_int_eq(ibv_destroy_cq(small), 0);
}
END_TEST

/* -- datagrams ----------------------------------------------------------------------------------
 */

/* IBTA 9.9.3, class D. */
START_TEST(a_datagram_longer_than_its_receive_is_dropped)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY};
    struct ibv_ah_attr ah_attr = path();
    struct ibv_ah *ah = ibv_create_ah(pd, &ah_attr);
    struct ibv_sge sge = {NEAR, 101, mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND};
    struct ibv_wc wc;

    ck_assert_ptr_nonnull(ah);
    b = new_qp(IBV_QPT_UD, NULL, recv_cq);
    ck_assert_int_eq(
        ibv_modify_qp(b, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY), 0);
    attr.qp_state = IBV_QPS_RTR;
    ck_assert_int_eq(ibv_modify_qp(b, &attr, IBV_QP_STATE), 0);
    attr.qp_state = IBV_QPS_RTS;
    ck_assert_int_eq(ibv_modify_qp(b, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
    post_recv(mr->lkey, GRH + 100);
    wr.wr.ud.ah = ah;
    wr.wr.ud.remote_qpn = b->qp_num;
    wr.wr.ud.remote_qkey = QKEY;
    post(b, &wr);
    expect(send_cq, IBV_WC_SUCCESS);
    sge.length = 100;
    post(b, &wr);
    expect(send_cq, IBV_WC_SUCCESS);
    wc = completion(recv_cq);
    ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
    ck_assert_uint_eq(wc.byte_len, GRH + 100);
    ck_assert_int_eq(ibv_poll_cq(recv_cq, 1, &wc), 0);
    ck_assert_int_eq(ibv_destroy_ah(ah), 0);
}
END_TEST

/* -- notification -------------------------------------------------------------------------------
 */

static bool is_notified(int milliseconds)
{
    struct pollfd fd = {.fd = channel->fd, .events = POLLIN};

    return poll(&fd, 1, milliseconds) == 1;
}

/* IBTA 11.4.2.2. */
START_TEST(a_request_for_any_completion_is_not_narrowed)
{
    struct ibv_cq *cq;
    void *context;

    post_recv(mr->lkey, 64);
    post_recv(mr->lkey, 64);
    ck_assert_int_eq(ibv_req_notify_cq(recv_cq, 0), 0);
    ck_assert_int_eq(ibv_req_notify_cq(recv_cq, 1), 0);
    post_rdma(IBV_WR_SEND, mr->lkey, 0, 64);
    expect(send_cq, IBV_WC_SUCCESS);
    ck_assert(is_notified(SECONDS * 1000));
    ck_assert_int_eq(ibv_get_cq_event(channel, &cq, &context), 0);
    ibv_ack_cq_events(cq, 1);
    expect(recv_cq, IBV_WC_SUCCESS);
    /* a request of its own for any completion */
    ck_assert_int_eq(ibv_req_notify_cq(recv_cq, 1), 0);
    post_rdma(IBV_WR_SEND, mr->lkey, 0, 64);
    expect(send_cq, IBV_WC_SUCCESS);
    expect(recv_cq, IBV_WC_SUCCESS);
    ck_assert(!is_notified(QUIET / 1000));
}
END_TEST

/* -- windows ------------------------------------------------------------------------------------
 */

static struct ibv_mw *window;

static void setup_window(void)
{
    setup_pair();
    window = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
    ck_assert_ptr_nonnull(window);
}

static void teardown_window(void)
{
    ck_assert_int_eq(ibv_dealloc_mw(window), 0);
    teardown();
}

/* Posts a bind of a type 2 window over the second half on qp. variant: the low byte of its key. */
static uint32_t post_bind(struct ibv_qp *qp, uint8_t variant, struct ibv_mr *region, int access)
{
    uint32_t rkey = (window->rkey & ~0xffu) | variant;
    struct ibv_send_wr wr = {.opcode = IBV_WR_BIND_MW,
                             .bind_mw = {.mw = window,
                                         .rkey = rkey,
                                         .bind_info = {.mr = region,
                                                       .addr = FAR,
                                                       .length = HALF,
                                                       .mw_access_flags = (unsigned)access}}};

    post(qp, &wr);
    return rkey;
}

static uint32_t bound(uint8_t variant)
{
    uint32_t before = window->rkey, rkey = post_bind(b, variant, mr, REMOTE);

    expect(send_cq, IBV_WC_SUCCESS);
    /* The program chose the key and knows it: only ibv_bind_mw() writes to mw->rkey. */
    ck_assert_uint_eq(window->rkey, before);
    return rkey;
}

START_TEST(a_window_is_bound_invalidated_and_bound_again)
{
    uint32_t rkey = bound(1);

    post_rdma(IBV_WR_RDMA_WRITE, mr->lkey, rkey, 64);
    expect(send_cq, IBV_WC_SUCCESS);
    post_inv(b, IBV_WR_LOCAL_INV, rkey);
    expect(send_cq, IBV_WC_SUCCESS);
    rkey = bound(2);
    post_rdma(IBV_WR_RDMA_WRITE, mr->lkey, rkey, 64);
    expect(send_cq, IBV_WC_SUCCESS);
    post_rdma(IBV_WR_RDMA_READ, mr->lkey, rkey - 1, 64);
    expect(send_cq, IBV_WC_REM_ACCESS_ERR);
}
END_TEST

START_TEST(an_invalidated_window_is_closed)
{
    uint32_t rkey = bound(1);

    post_inv(b, IBV_WR_LOCAL_INV, rkey);
    expect(send_cq, IBV_WC_SUCCESS);
    post_rdma(IBV_WR_RDMA_READ, mr->lkey, rkey, 64);
    expect(send_cq, IBV_WC_REM_ACCESS_ERR);
}
END_TEST

START_TEST(a_bound_window_is_not_bound_again)
{
    bound(1);
    post_bind(_i ? a : b, 2, mr, REMOTE);
    expect(send_cq, IBV_WC_MW_BIND_ERR);
}
END_TEST

START_TEST(a_window_is_invalidated_by_the_qp_it_is_bound_to)
{
    uint32_t rkey = bound(1);

    post_inv(a, IBV_WR_LOCAL_INV, rkey);
    expect(send_cq, IBV_WC_MW_BIND_ERR);
}
END_TEST

START_TEST(a_window_is_reached_through_the_qp_it_is_bound_to)
{
    uint32_t rkey = post_bind(a, 1, mr, REMOTE);

    expect(send_cq, IBV_WC_SUCCESS);
    post_rdma(IBV_WR_RDMA_READ, mr->lkey, rkey, 64);
    expect(send_cq, IBV_WC_REM_ACCESS_ERR);
}
END_TEST

START_TEST(a_send_invalidates_the_window)
{
    uint32_t rkey = bound(1);
    struct ibv_wc wc;

    post_recv(mr->lkey, 64);
    post_inv(a, IBV_WR_SEND_WITH_INV, rkey);
    expect(send_cq, IBV_WC_SUCCESS);
    wc = completion(recv_cq);
    ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
    ck_assert(wc.wc_flags & IBV_WC_WITH_INV);
    ck_assert_uint_eq(wc.invalidated_rkey, rkey);
    rkey = bound(2);
    post_rdma(IBV_WR_RDMA_READ, mr->lkey, rkey, 64);
    expect(send_cq, IBV_WC_SUCCESS);
    post_rdma(IBV_WR_RDMA_READ, mr->lkey, rkey - 1, 64);
    expect(send_cq, IBV_WC_REM_ACCESS_ERR);
}
END_TEST

/* IBTA 9.9.3, class J: the receiver gets an error; the sender gets no answer and gives up. */
START_TEST(a_send_that_may_not_invalidate_gets_no_answer)
{
    struct ibv_mw *one = ibv_alloc_mw(pd, IBV_MW_TYPE_1);
    struct ibv_mw_bind bind = {.send_flags = IBV_SEND_SIGNALED,
                               .bind_info = {mr, FAR, HALF, REMOTE}};
    uint32_t rkey;

    ck_assert_ptr_nonnull(one);
    switch (_i) {
    case 0: /* another variant of the key */
        rkey = bound(1) + 1;
        break;
    case 1: /* the window belongs to another QP */
        rkey = post_bind(a, 1, mr, REMOTE);
        expect(send_cq, IBV_WC_SUCCESS);
        break;
    case 2: /* a window of type 1 */
        ck_assert_int_eq(ibv_bind_mw(b, one, &bind), 0);
        expect(send_cq, IBV_WC_SUCCESS);
        rkey = one->rkey;
        break;
    default: /* a region instead of a window */
        rkey = mr->rkey;
        break;
    }
    post_recv(mr->lkey, 64);
    post_inv(a, IBV_WR_SEND_WITH_INV, rkey);
    expect(recv_cq, IBV_WC_MW_BIND_ERR);
    expect(send_cq, IBV_WC_RETRY_EXC_ERR);
    expect_state(b, IBV_QPS_ERR);
    ck_assert_int_eq(ibv_dealloc_mw(one), 0);
}
END_TEST

/* Neither libmlx5 nor the kernel's driver passes on IBV_ACCESS_MW_BIND, and a bind writes a list of
 * keys that the device follows when the window is used. A window grants no more than its region
 * has. */
START_TEST(a_window_grants_what_its_region_has)
{
    struct ibv_mr *region = ibv_reg_mr(pd, buf, sizeof(buf), 0);
    uint32_t rkey;

    ck_assert_ptr_nonnull(region);
    rkey = post_bind(b, 1, region, REMOTE);
    expect(send_cq, IBV_WC_SUCCESS);
    post_rdma(IBV_WR_RDMA_READ, mr->lkey, rkey, 64);
    expect(send_cq, IBV_WC_SUCCESS);
    post_rdma(IBV_WR_RDMA_WRITE, mr->lkey, rkey, 64);
    expect(send_cq, IBV_WC_REM_ACCESS_ERR);
    ck_assert_int_eq(ibv_dereg_mr(region), 0);
}
END_TEST

/* IBTA 10.6.7.2.6 leaves it to the device whether a region with windows can be deregistered. Here
 * it can, and its windows end with it. */
START_TEST(a_window_ends_with_its_region)
{
    struct ibv_mr *region = ibv_reg_mr(pd, buf, sizeof(buf), ALL);
    uint32_t rkey;

    ck_assert_ptr_nonnull(region);
    rkey = post_bind(b, 1, region, REMOTE);
    expect(send_cq, IBV_WC_SUCCESS);
    ck_assert_int_eq(ibv_dereg_mr(region), 0);
    post_rdma(IBV_WR_RDMA_READ, mr->lkey, rkey, 64);
    expect(send_cq, IBV_WC_REM_ACCESS_ERR);
}
END_TEST

int main(int argc, char **argv)
{
    TCase *bare = tcase_create("bare"), *pair = tcase_create("pair"), *shared = tcase_create("srq"),
          *windows = tcase_create("windows");
    Suite *suite = suite_create("verbs-rights");

    tcase_add_checked_fixture(bare, setup, teardown);
    tcase_add_test(bare, a_message_that_overruns_the_receivers_cq_is_not_acknowledged);
    tcase_add_test(bare, a_datagram_longer_than_its_receive_is_dropped);

    tcase_add_checked_fixture(pair, setup_pair, teardown);
    tcase_add_test(pair, an_atomic_with_a_bad_local_key_is_carried_out);
    tcase_add_loop_test(pair, a_responder_refuses_before_the_local_key_is_looked_at, 0, 4);
    tcase_add_test(pair, no_bytes_need_no_key);
    tcase_add_test(pair, a_write_with_immediate_and_a_bad_key_completes_its_receive);
    tcase_add_test(pair, a_request_for_any_completion_is_not_narrowed);

    tcase_add_checked_fixture(shared, setup_srq, teardown);
    tcase_add_test(shared, receives_of_an_srq_are_of_its_domain);

    tcase_add_checked_fixture(windows, setup_window, teardown_window);
    tcase_add_test(windows, a_window_is_bound_invalidated_and_bound_again);
    tcase_add_test(windows, an_invalidated_window_is_closed);
    tcase_add_loop_test(windows, a_bound_window_is_not_bound_again, 0, 2);
    tcase_add_test(windows, a_window_is_invalidated_by_the_qp_it_is_bound_to);
    tcase_add_test(windows, a_window_is_reached_through_the_qp_it_is_bound_to);
    tcase_add_test(windows, a_send_invalidates_the_window);
    tcase_add_loop_test(windows, a_send_that_may_not_invalidate_gets_no_answer, 0, 4);
    tcase_add_test(windows, a_window_grants_what_its_region_has);
    tcase_add_test(windows, a_window_ends_with_its_region);

    suite_add_tcase(suite, bare);
    suite_add_tcase(suite, pair);
    suite_add_tcase(suite, shared);
    suite_add_tcase(suite, windows);
    for (size_t i = 0; i < 4; i++) {
        tcase_set_timeout((TCase *[]){bare, pair, shared, windows}[i], 2 * SECONDS);
    }
    return run_statements(suite, "rights", argc, argv);
}
