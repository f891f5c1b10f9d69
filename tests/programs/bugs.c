/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Programs with a bug: each bug leads to the errno, the work completion and the asynchronous event
 * that libmlx5, the kernel and the device give, and no other program on the wire notices it.
 */
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>
#include "tests/programs/statements.h"

#define CQE        64
#define WRS        8
#define SGES       2
#define BUF        8192
#define QKEY       0x11111111
#define ACCESS_ALL (REMOTE | IBV_ACCESS_LOCAL_WRITE)

static struct ibv_cq *send_cq, *recv_cq;
/* foreign belongs to the other protection domain */
static struct ibv_mr *mr, *remote, *read_only, *foreign;
static struct ibv_qp *a, *b;
static uint8_t buf[BUF] __attribute__((aligned(4096)));

/* -- queue pairs, completions, events ---------------------------------------------------------- */

static struct ibv_qp *new_qp(enum ibv_qp_type type)
{
    struct ibv_qp_init_attr init = {
        .send_cq = send_cq,
        .recv_cq = recv_cq,
        .cap = {.max_send_wr = WRS,
                .max_recv_wr = WRS,
                .max_send_sge = SGES,
                .max_recv_sge = SGES,
                .max_inline_data = 64},
        .qp_type = type,
    };
    struct ibv_qp *qp = ibv_create_qp(pd, &init);

    ck_assert_ptr_nonnull(qp);
    return qp;
}

static int to_init(struct ibv_qp *qp, unsigned access)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = access, .qkey = QKEY};
    int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;

    return ibv_modify_qp(qp, &attr,
                         mask | (qp->qp_type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS));
}

static void connect_both(unsigned access)
{
    connect_to(a, b->qp_num, ACCESS_ALL);
    connect_to(b, a->qp_num, access);
}

/* Expects the event of that type about that object. Before it may only come the event that a QP was
 * reached. */
static void expect_event(enum ibv_event_type type, const void *element)
{
    for (;;) {
        struct pollfd fd = {.fd = ctx->async_fd, .events = POLLIN};
        struct ibv_async_event event;

        ck_assert_msg(poll(&fd, 1, SECONDS * 1000) == 1, "no %s", ibv_event_type_str(type));
        ck_assert_int_eq(ibv_get_async_event(ctx, &event), 0);
        ibv_ack_async_event(&event);
        if (event.event_type == type && (const void *)event.element.qp == element) {
            return;
        }
        ck_assert_str_eq(ibv_event_type_str(event.event_type),
                         ibv_event_type_str(IBV_EVENT_COMM_EST));
    }
}

static struct ibv_sge sge_of(const struct ibv_mr *in, uint32_t length)
{
    return (struct ibv_sge){.addr = (uintptr_t)buf, .length = length, .lkey = in->lkey};
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr)
{
    struct ibv_send_wr *bad = NULL;
    int err = ibv_post_send(qp, wr, &bad);

    ck_assert_ptr_eq(bad, err ? wr : NULL);
    return err;
}

static int post_recv(struct ibv_qp *qp, struct ibv_sge *sge, int num_sge)
{
    struct ibv_recv_wr wr = {.wr_id = 77, .sg_list = sge, .num_sge = num_sge}, *bad = NULL;
    int err = ibv_post_recv(qp, &wr, &bad);

    ck_assert_ptr_eq(bad, err ? &wr : NULL);
    return err;
}

static int post_write(struct ibv_qp *qp)
{
    struct ibv_sge sge = sge_of(mr, 8);
    struct ibv_send_wr wr = {.sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_RDMA_WRITE,
                             .send_flags = IBV_SEND_SIGNALED,
                             .wr.rdma = {(uintptr_t)buf + 4096, remote->rkey}};

    return post_send(qp, &wr);
}

static void setup(void)
{
    open_device();
    send_cq = ibv_create_cq(ctx, CQE, NULL, NULL, 0);
    recv_cq = ibv_create_cq(ctx, CQE, NULL, NULL, 0);
    mr = ibv_reg_mr(pd, buf, BUF, IBV_ACCESS_LOCAL_WRITE);
    remote = ibv_reg_mr(pd, buf, BUF, ACCESS_ALL);
    read_only = ibv_reg_mr(pd, buf, BUF, 0);
    foreign = ibv_reg_mr(other_pd, buf, BUF, ACCESS_ALL);
    ck_assert(mr && remote && read_only && foreign);
    a = new_qp(IBV_QPT_RC);
    b = new_qp(IBV_QPT_RC);
}

/* After any bug everything can be closed, in order. */
static void teardown(void)
{
    ck_assert_int_eq(ibv_destroy_qp(a), 0);
    ck_assert_int_eq(ibv_destroy_qp(b), 0);
    ck_assert_int_eq(ibv_dereg_mr(mr), 0);
    ck_assert_int_eq(ibv_dereg_mr(remote), 0);
    ck_assert_int_eq(ibv_dereg_mr(read_only), 0);
    ck_assert_int_eq(ibv_dereg_mr(foreign), 0);
    ck_assert_int_eq(ibv_destroy_cq(send_cq), 0);
    ck_assert_int_eq(ibv_destroy_cq(recv_cq), 0);
    close_device();
}

/* -- work requests that complete in error ------------------------------------------------------ */

enum {
    NO_KEY = 1,
    FOREIGN,  /* the lkey of the other domain */
    READ_ONLY /* no right except to be read locally */
};

/* 11.6.2 of the verbs chapter: the status at the requester, then at the responder if it consumes a
 * receive, and the responder's affiliated event. A QP in error flushes later work. */
static const struct wr_bug {
    const char *name;
    enum ibv_wr_opcode opcode;
    int lkey, rkey;      /* kinds of the request's keys (the enum above) */
    int recv_key;        /* the key of the waiting receive */
    uint32_t recv_bytes; /* 0: no receive is posted */
    uint32_t bytes;
    unsigned raddr;  /* offset */
    unsigned access; /* rights at the responding QP */
    enum ibv_wc_status status, recv_status;
    enum ibv_event_type event; /* event of the responding QP; 0: none */
} wr_bugs[] = {
    {"send: no such lkey", IBV_WR_SEND, NO_KEY, 0, 0, 64, 64, 0, ACCESS_ALL,
     .status = IBV_WC_LOC_PROT_ERR},
    {"send: lkey of another domain", IBV_WR_SEND, FOREIGN, 0, 0, 64, 64, 0, ACCESS_ALL,
     .status = IBV_WC_LOC_PROT_ERR},
    {"send: beyond the region", IBV_WR_SEND, 0, 0, 0, 64, BUF + 1, 0, ACCESS_ALL,
     .status = IBV_WC_LOC_PROT_ERR},
    {"read into a region without local write", IBV_WR_RDMA_READ, READ_ONLY, 0, 0, 0, 64, 0,
     ACCESS_ALL, .status = IBV_WC_LOC_PROT_ERR},
    {"send: nobody receives", IBV_WR_SEND, 0, 0, 0, 0, 64, 0, ACCESS_ALL,
     .status = IBV_WC_RNR_RETRY_EXC_ERR},
    {"send: longer than the receive", IBV_WR_SEND, 0, 0, 0, 32, 64, 0, ACCESS_ALL,
     .status = IBV_WC_REM_INV_REQ_ERR, .recv_status = IBV_WC_LOC_LEN_ERR},
    {"receive: no such lkey", IBV_WR_SEND, 0, 0, NO_KEY, 64, 64, 0, ACCESS_ALL,
     .status = IBV_WC_REM_OP_ERR, .recv_status = IBV_WC_LOC_PROT_ERR},
    {"receive: without local write", IBV_WR_SEND, 0, 0, READ_ONLY, 64, 64, 0, ACCESS_ALL,
     .status = IBV_WC_REM_OP_ERR, .recv_status = IBV_WC_LOC_PROT_ERR},
    {"write: no such rkey", IBV_WR_RDMA_WRITE, 0, NO_KEY, 0, 0, 64, 0, ACCESS_ALL,
     .status = IBV_WC_REM_ACCESS_ERR, .event = IBV_EVENT_QP_ACCESS_ERR},
    {"write: rkey of another domain", IBV_WR_RDMA_WRITE, 0, FOREIGN, 0, 0, 64, 0, ACCESS_ALL,
     .status = IBV_WC_REM_ACCESS_ERR, .event = IBV_EVENT_QP_ACCESS_ERR},
    {"write: beyond the region", IBV_WR_RDMA_WRITE, 0, 0, 0, 0, 64, BUF - 63, ACCESS_ALL,
     .status = IBV_WC_REM_ACCESS_ERR, .event = IBV_EVENT_QP_ACCESS_ERR},
    {"write: region without the right", IBV_WR_RDMA_WRITE, 0, READ_ONLY, 0, 0, 64, 0, ACCESS_ALL,
     .status = IBV_WC_REM_ACCESS_ERR, .event = IBV_EVENT_QP_ACCESS_ERR},
    {"read: region without the right", IBV_WR_RDMA_READ, 0, READ_ONLY, 0, 0, 64, 0, ACCESS_ALL,
     .status = IBV_WC_REM_ACCESS_ERR, .event = IBV_EVENT_QP_ACCESS_ERR},
    {"atomic: region without the right", IBV_WR_ATOMIC_FETCH_AND_ADD, 0, READ_ONLY, 0, 0, 8, 0,
     ACCESS_ALL, .status = IBV_WC_REM_ACCESS_ERR, .event = IBV_EVENT_QP_ACCESS_ERR},
    {"write: QP without the right", IBV_WR_RDMA_WRITE, 0, 0, 0, 0, 64, 0, 0,
     .status = IBV_WC_REM_INV_REQ_ERR, .event = IBV_EVENT_QP_REQ_ERR},
    {"read: QP without the right", IBV_WR_RDMA_READ, 0, 0, 0, 0, 64, 0, 0,
     .status = IBV_WC_REM_INV_REQ_ERR, .event = IBV_EVENT_QP_REQ_ERR},
    {"atomic: QP without the right", IBV_WR_ATOMIC_CMP_AND_SWP, 0, 0, 0, 0, 8, 0, 0,
     .status = IBV_WC_REM_INV_REQ_ERR, .event = IBV_EVENT_QP_REQ_ERR},
    {"atomic: address is not a multiple of 8", IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 0, 0, 0, 8, 4,
     ACCESS_ALL, .status = IBV_WC_REM_INV_REQ_ERR, .event = IBV_EVENT_QP_REQ_ERR},
};

static uint32_t key(int wrong, bool far)
{
    switch (wrong) {
    case NO_KEY:
        return mr->lkey ^ 0x7fff00;
    case FOREIGN:
        return far ? foreign->rkey : foreign->lkey;
    case READ_ONLY:
        return far ? read_only->rkey : read_only->lkey;
    default:
        return far ? remote->rkey : mr->lkey;
    }
}

START_TEST(a_bad_work_request_completes_with_its_cause)
{
    const struct wr_bug *bug = &wr_bugs[_i];
    struct ibv_sge sge = {(uintptr_t)buf, bug->bytes, key(bug->lkey, false)};
    struct ibv_sge into = {(uintptr_t)buf + 4096, bug->recv_bytes, key(bug->recv_key, false)};
    struct ibv_send_wr wr = {
        .wr_id = 5,
        .sg_list = &sge,
        .num_sge = 1,
        .opcode = bug->opcode,
        .send_flags = IBV_SEND_SIGNALED,
    };
    struct ibv_wc wc;

    if (bug->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || bug->opcode == IBV_WR_ATOMIC_CMP_AND_SWP) {
        wr.wr.atomic.remote_addr = (uintptr_t)buf + bug->raddr;
        wr.wr.atomic.rkey = key(bug->rkey, true);
    } else {
        wr.wr.rdma.remote_addr = (uintptr_t)buf + bug->raddr;
        wr.wr.rdma.rkey = key(bug->rkey, true);
    }
    connect_both(bug->access);
    if (bug->recv_bytes) {
        ck_assert_int_eq(post_recv(b, &into, 1), 0);
    }
    ck_assert_int_eq(post_send(a, &wr), 0);
    wc = completion(send_cq);
    ck_assert_msg(wc.status == bug->status, "%s: %s", bug->name, ibv_wc_status_str(wc.status));
    ck_assert_uint_eq(wc.wr_id, 5);
    ck_assert_uint_eq(wc.qp_num, a->qp_num);
    ck_assert_uint_ne(wc.vendor_err, 0);
    if (bug->recv_status) {
        wc = completion(recv_cq);
        ck_assert_msg(wc.status == bug->recv_status, "%s: %s", bug->name,
                      ibv_wc_status_str(wc.status));
        ck_assert_uint_eq(wc.wr_id, 77);
    }
    if (bug->event) {
        expect_event(bug->event, b);
        expect_state(b, IBV_QPS_ERR);
    }
    expect_state(a, IBV_QPS_ERR);
    /* the program does not know about the error yet and posts on */
    ck_assert_int_eq(post_write(a), 0);
    ck_assert_int_eq(completion(send_cq).status, IBV_WC_WR_FLUSH_ERR);
}
END_TEST

START_TEST(a_missing_qp_does_not_answer)
{
    connect_to(a, 0xabcdef, ACCESS_ALL);
    ck_assert_int_eq(post_write(a), 0);
    ck_assert_int_eq(completion(send_cq).status, IBV_WC_RETRY_EXC_ERR);
}
END_TEST

/* -- posting ----------------------------------------------------------------------------------- */

/* libmlx5 in RESET, INIT and RTR: no number of pieces is small enough, so posting fails with
 * ENOMEM. */
START_TEST(sending_waits_for_rts)
{
    struct ibv_qp_attr rtr = rtr_attr(b->qp_num);

    ck_assert_int_eq(post_write(a), ENOMEM);
    ck_assert_int_eq(to_init(a, 0), 0);
    ck_assert_int_eq(post_write(a), ENOMEM);
    ck_assert_int_eq(ibv_modify_qp(a, &rtr, RTR_MASK), 0);
    ck_assert_int_eq(post_write(a), ENOMEM);
}
END_TEST

START_TEST(receives_wait_for_init)
{
    struct ibv_sge sge = sge_of(mr, 64);

    ck_assert_int_eq(post_recv(a, &sge, 1), EINVAL);
    ck_assert_int_eq(to_init(a, 0), 0);
    ck_assert_int_eq(post_recv(a, &sge, 1), 0);
}
END_TEST

START_TEST(what_does_not_fit_is_not_posted)
{
    struct ibv_sge sge[SGES + 1] = {sge_of(mr, 8), sge_of(mr, 8), sge_of(mr, 8)};
    struct ibv_sge big = sge_of(mr, BUF);
    struct ibv_send_wr wr = {.sg_list = sge, .num_sge = SGES + 1, .opcode = IBV_WR_SEND};

    connect_both(ACCESS_ALL);
    ck_assert_int_eq(post_send(a, &wr), ENOMEM);
    wr.send_flags = IBV_SEND_INLINE;
    ck_assert_int_eq(post_send(a, &wr), ENOMEM);
    wr.sg_list = &big;
    wr.num_sge = 1;
    ck_assert_int_eq(post_send(a, &wr), ENOMEM);
    wr.opcode = 99;
    ck_assert_int_eq(post_send(a, &wr), EINVAL);
    ck_assert_int_eq(post_recv(a, sge, 3 * SGES), EINVAL);
    ck_assert_int_eq(post_write(a), 0);
    ck_assert_int_eq(completion(send_cq).status, IBV_WC_SUCCESS);
}
END_TEST

/* Posts one more than the queue takes. The queue takes more after completions were polled. */
START_TEST(a_full_queue_takes_no_more)
{
    struct ibv_sge sge = sge_of(mr, 64);
    struct ibv_qp_init_attr init;
    struct ibv_qp_attr attr;

    connect_both(ACCESS_ALL);
    ck_assert_int_eq(ibv_query_qp(a, &attr, IBV_QP_CAP, &init), 0);
    for (unsigned i = 0; i < init.cap.max_send_wr; i++) {
        ck_assert_int_eq(post_write(a), 0);
    }
    ck_assert_int_eq(post_write(a), ENOMEM);
    ck_assert_int_eq(completion(send_cq).status, IBV_WC_SUCCESS);
    ck_assert_int_eq(post_write(a), 0);
    for (unsigned i = 0; i < init.cap.max_recv_wr; i++) {
        ck_assert_int_eq(post_recv(a, &sge, 1), 0);
    }
    ck_assert_int_eq(post_recv(a, &sge, 1), ENOMEM);
}
END_TEST

/* An address vector has no protection domain: a handle of another domain than the QP's also
 * works. */
START_TEST(an_address_handle_of_another_domain_is_taken)
{
    struct ibv_qp *ud = new_qp(IBV_QPT_UD);
    struct ibv_ah_attr ah_attr = path();
    struct ibv_ah *ah = ibv_create_ah(other_pd, &ah_attr);
    struct ibv_sge sge = sge_of(mr, 64);
    struct ibv_send_wr wr = {.sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_SEND,
                             .send_flags = IBV_SEND_SIGNALED,
                             .wr.ud = {ah, ud->qp_num, QKEY}};
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR};

    ck_assert_ptr_nonnull(ah);
    ck_assert_int_eq(to_init(ud, 0), 0);
    ck_assert_int_eq(ibv_modify_qp(ud, &attr, IBV_QP_STATE), 0);
    attr.qp_state = IBV_QPS_RTS;
    ck_assert_int_eq(ibv_modify_qp(ud, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
    ck_assert_int_eq(ibv_dealloc_pd(other_pd), EBUSY);
    ck_assert_int_eq(post_send(ud, &wr), 0);
    ck_assert_int_eq(completion(send_cq).status, IBV_WC_SUCCESS);
    ck_assert_int_eq(ibv_destroy_ah(ah), 0);
    ck_assert_int_eq(ibv_destroy_qp(ud), 0);
}
END_TEST

/* libmlx5 examines the opcode only to find which segments it needs. */
START_TEST(the_device_says_what_a_service_does_not_do)
{
    static const struct {
        enum ibv_qp_type type;
        enum ibv_wr_opcode opcode;
    } table[] = {
        {IBV_QPT_UD, IBV_WR_RDMA_WRITE},         {IBV_QPT_UD, IBV_WR_RDMA_READ},
        {IBV_QPT_UD, IBV_WR_SEND_WITH_INV},      {IBV_QPT_UC, IBV_WR_RDMA_READ},
        {IBV_QPT_UC, IBV_WR_ATOMIC_CMP_AND_SWP},
    };
    struct ibv_qp *qp = new_qp(table[_i].type);
    struct ibv_ah_attr ah_attr = path();
    struct ibv_ah *ah = ibv_create_ah(pd, &ah_attr);
    struct ibv_sge sge = sge_of(mr, 8);
    struct ibv_send_wr wr = {
        .sg_list = &sge, .num_sge = 1, .opcode = table[_i].opcode, .send_flags = IBV_SEND_SIGNALED};
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR};

    ck_assert_ptr_nonnull(ah);
    ck_assert_int_eq(to_init(qp, 0), 0);
    if (table[_i].type == IBV_QPT_UD) {
        wr.wr.ud.ah = ah;
        wr.wr.ud.remote_qpn = qp->qp_num;
        wr.wr.ud.remote_qkey = QKEY;
        ck_assert_int_eq(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
    } else {
        wr.wr.rdma.remote_addr = (uintptr_t)buf;
        wr.wr.rdma.rkey = remote->rkey;
        attr = rtr_attr(qp->qp_num);
        ck_assert_int_eq(
            ibv_modify_qp(qp, &attr,
                          RTR_MASK & ~(IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)),
            0);
    }
    attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS};
    ck_assert_int_eq(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
    ck_assert_int_eq(post_send(qp, &wr), 0);
    ck_assert_int_eq(completion(send_cq).status, IBV_WC_LOC_QP_OP_ERR);
    ck_assert_int_eq(ibv_destroy_ah(ah), 0);
    ck_assert_int_eq(ibv_destroy_qp(qp), 0);
}
END_TEST

/* ibv_query_qp(): the structure contains the state that was last requested. */
START_TEST(a_qp_shows_the_state_that_was_asked_for)
{
    struct ibv_sge sge = {(uintptr_t)buf, 8, mr->lkey ^ 0x7fff00};
    struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND};
    struct ibv_qp_init_attr init;
    struct ibv_qp_attr attr;

    connect_both(ACCESS_ALL);
    ck_assert_int_eq(post_send(a, &wr), 0);
    ck_assert_int_eq(completion(send_cq).status, IBV_WC_LOC_PROT_ERR);
    ck_assert_int_eq(a->state, IBV_QPS_RTS);
    ck_assert_int_eq(ibv_query_qp(a, &attr, IBV_QP_PATH_MTU, &init), 0);
    ck_assert_int_eq(attr.path_mtu, IBV_MTU_1024);
    ck_assert_int_eq(a->state, IBV_QPS_RTS);
    ck_assert_int_eq(ibv_query_qp(a, &attr, IBV_QP_STATE, &init), 0);
    ck_assert_int_eq(attr.qp_state, IBV_QPS_ERR);
    ck_assert_int_eq(a->state, IBV_QPS_ERR);
}
END_TEST

/* -- completion queues ------------------------------------------------------------------------- */

/* Two QPs; the first completes to a CQ that it has overrun. */
struct overrun {
    struct ibv_cq *small;
    struct ibv_qp *c, *d;
};

static struct overrun new_overrun(void)
{
    struct overrun o = {.small = ibv_create_cq(ctx, 1, NULL, NULL, 0)};
    struct ibv_cq *own = send_cq;

    ck_assert_ptr_nonnull(o.small);
    send_cq = o.small;
    o.c = new_qp(IBV_QPT_RC);
    send_cq = own;
    o.d = new_qp(IBV_QPT_RC);
    connect_to(o.c, o.d->qp_num, ACCESS_ALL);
    connect_to(o.d, o.c->qp_num, ACCESS_ALL);
    return o;
}

static void overrun(struct overrun *o)
{
    for (int i = 0; i < o->small->cqe + 2; i++) {
        ck_assert_int_eq(post_write(o->c), 0);
    }
    expect_event(IBV_EVENT_CQ_ERR, o->small);
}

static void free_overrun(struct overrun *o)
{
    ck_assert_int_eq(ibv_destroy_qp(o->c), 0);
    ck_assert_int_eq(ibv_destroy_qp(o->d), 0);
    ck_assert_int_eq(ibv_destroy_cq(o->small), 0);
}

/* C11-39 and after: the CQ stays in error, its program gets the event, and QPs that complete to it
 * stop. Completions that were written before can still be polled. */
START_TEST(an_overrun_cq_is_in_error)
{
    struct overrun o = new_overrun();
    struct ibv_wc wc;

    overrun(&o);
    for (int n = 1; n;) {
        n = ibv_poll_cq(o.small, 1, &wc);
        ck_assert_int_ge(n, 0);
    }
    /* other queues of the process still work */
    connect_both(ACCESS_ALL);
    ck_assert_int_eq(post_write(a), 0);
    ck_assert_int_eq(completion(send_cq).status, IBV_WC_SUCCESS);
    free_overrun(&o);
}
END_TEST

/* A work queue that completes to it stops, too: mlx5_ib_wq_event(). The device then has it in ERR,
 * whatever the library and the kernel remember; a program that passes ERR as the current state can
 * start it again. */
START_TEST(an_overrun_cq_is_fatal_to_its_wqs)
{
    struct overrun o = new_overrun();
    struct ibv_wq_init_attr init = {
        .wq_type = IBV_WQT_RQ, .max_wr = 1, .max_sge = 1, .pd = pd, .cq = o.small};
    struct ibv_wq *wq = ibv_create_wq(ctx, &init);
    struct ibv_wq_attr ready = {.attr_mask = IBV_WQ_ATTR_STATE, .wq_state = IBV_WQS_RDY};
    struct ibv_wq_attr reset = {.attr_mask = IBV_WQ_ATTR_STATE, .wq_state = IBV_WQS_RESET};

    ck_assert_ptr_nonnull(wq);
    ck_assert_int_eq(ibv_modify_wq(wq, &ready), 0);
    overrun(&o);
    expect_event(IBV_EVENT_QP_FATAL, o.c);
    expect_event(IBV_EVENT_WQ_FATAL, wq);
    ck_assert_int_eq(wq->state, IBV_WQS_RDY);
    ck_assert_int_eq(ibv_modify_wq(wq, &reset), EINVAL);
    reset.attr_mask |= IBV_WQ_ATTR_CURR_STATE;
    reset.curr_wq_state = IBV_WQS_ERR;
    ck_assert_int_eq(ibv_modify_wq(wq, &reset), 0);
    ck_assert_int_eq(wq->state, IBV_WQS_RESET);
    ck_assert_int_eq(ibv_modify_wq(wq, &ready), 0);
    ck_assert_int_eq(ibv_destroy_wq(wq), 0);
    free_overrun(&o);
}
END_TEST

/* -- states ------------------------------------------------------------------------------------ */

/* ib_modify_qp_is_ok(): a transition needs all required attributes, and accepts no attribute that
 * it cannot have. */
START_TEST(a_transition_needs_its_attributes)
{
    struct ibv_qp_attr rtr = rtr_attr(b->qp_num), bad;
    struct ibv_qp_attr rts = {.qp_state = IBV_QPS_RTS, .timeout = 10, .max_rd_atomic = 1};

    ck_assert_int_eq(ibv_modify_qp(a, &rtr, RTR_MASK), EINVAL); /* from RESET to RTR */
    ck_assert_int_eq(ibv_modify_qp(a, &rts, RTS_MASK), EINVAL);
    ck_assert_int_eq(to_init(a, 0), 0);
    for (int bit = 1; bit <= IBV_QP_DEST_QPN; bit <<= 1) {
        if (RTR_MASK & bit) {
            ck_assert_int_eq(ibv_modify_qp(a, &rtr, RTR_MASK & ~bit), EINVAL);
        }
    }
    ck_assert_int_eq(ibv_modify_qp(a, &rtr, RTR_MASK | IBV_QP_QKEY), EINVAL);
    bad = rtr;
    bad.ah_attr.is_global = 0;
    ck_assert_int_eq(ibv_modify_qp(a, &bad, RTR_MASK), EINVAL);
    bad = rtr;
    bad.ah_attr.grh.sgid_index = 200;
    ck_assert_int_ne(ibv_modify_qp(a, &bad, RTR_MASK), 0);
    bad = rtr;
    bad.path_mtu = 6;
    ck_assert_int_eq(ibv_modify_qp(a, &bad, RTR_MASK), EINVAL);
    bad = rtr;
    bad.max_dest_rd_atomic = 255;
    ck_assert_int_eq(ibv_modify_qp(a, &bad, RTR_MASK), EINVAL);
    ck_assert_int_eq(ibv_modify_qp(a, &rtr, RTR_MASK), 0);
    for (int bit = 1; bit <= IBV_QP_DEST_QPN; bit <<= 1) {
        if (RTS_MASK & bit && bit != IBV_QP_STATE) {
            ck_assert_int_eq(ibv_modify_qp(a, &rts, RTS_MASK & ~bit), EINVAL);
        }
    }
    ck_assert_int_eq(ibv_modify_qp(a, &rts, RTS_MASK), 0);
    ck_assert_int_eq(ibv_modify_qp(a, &rtr, RTR_MASK), EINVAL); /* back to RTR */
    expect_state(a, IBV_QPS_RTS);
}
END_TEST

/* -- objects ----------------------------------------------------------------------------------- */

START_TEST(what_is_in_use_stays)
{
    ck_assert_int_eq(ibv_destroy_cq(send_cq), EBUSY);
    ck_assert_int_eq(ibv_destroy_cq(recv_cq), EBUSY);
    ck_assert_int_eq(ibv_dealloc_pd(pd), EBUSY);       /* there are regions and QPs */
    ck_assert_int_eq(ibv_dealloc_pd(other_pd), EBUSY); /* there is a region */
    connect_both(ACCESS_ALL);
    ck_assert_int_eq(post_write(a), 0);
    ck_assert_int_eq(completion(send_cq).status, IBV_WC_SUCCESS);
}
END_TEST

static struct ibv_qp *open_target(struct ibv_context *by, struct ibv_xrcd *xrcd, uint32_t num)
{
    struct ibv_qp_open_attr attr = {.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD |
                                                 IBV_QP_OPEN_ATTR_TYPE,
                                    .qp_num = num,
                                    .xrcd = xrcd,
                                    .qp_type = IBV_QPT_XRC_RECV};

    errno = 0;
    return ibv_open_qp(by, &attr);
}

/* ib_open_qp() opens a target QP of the domain by its number, and only a target. The QP exists
 * until its last handle is destroyed. */
START_TEST(an_xrc_target_stays_as_long_as_it_is_open)
{
    char path_of[] = "/tmp/hcasim-xrcd-XXXXXX";
    int fd = mkstemp(path_of);
    struct ibv_context *second = ibv_open_device(ctx->device);
    struct ibv_xrcd_init_attr domain = {.comp_mask =
                                            IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
                                        .fd = fd,
                                        .oflags = O_CREAT};
    struct ibv_xrcd_init_attr none = {.comp_mask = domain.comp_mask, .fd = -1, .oflags = O_CREAT};
    struct ibv_xrcd *xrcd = ibv_open_xrcd(ctx, &domain), *same, *other;
    struct ibv_qp_init_attr_ex init = {
        .qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD, .xrcd = xrcd};
    struct ibv_qp_open_attr no_number = {.comp_mask = IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE,
                                         .xrcd = xrcd,
                                         .qp_type = IBV_QPT_XRC_RECV};
    struct ibv_qp_attr attr = rtr_attr(a->qp_num);
    struct ibv_qp *target, *opened[2];

    ck_assert_int_ge(fd, 0);
    ck_assert_ptr_nonnull(second);
    same = ibv_open_xrcd(second, &domain);
    other = ibv_open_xrcd(ctx, &none);
    ck_assert(xrcd && same && other);
    target = ibv_create_qp_ex(ctx, &init);
    ck_assert_ptr_nonnull(target);
    ck_assert_ptr_null(open_target(ctx, other, target->qp_num));
    ck_assert_int_eq(errno, EINVAL);
    ck_assert_ptr_null(open_target(ctx, xrcd, a->qp_num));
    ck_assert_int_eq(errno, EINVAL);
    ck_assert_ptr_null(ibv_open_qp(ctx, &no_number));
    ck_assert_int_eq(errno, EINVAL);
    opened[0] = open_target(second, same, target->qp_num);
    opened[1] = open_target(ctx, xrcd, target->qp_num);
    ck_assert(opened[0] && opened[1]);
    ck_assert_uint_eq(opened[0]->qp_num, target->qp_num);

    ck_assert_int_eq(to_init(target, ACCESS_ALL), 0);
    ck_assert_int_eq(ibv_modify_qp(opened[0], &attr, RTR_MASK), 0);
    expect_state(target, IBV_QPS_RTR);
    ck_assert_int_eq(ibv_destroy_qp(target), 0);
    ck_assert_int_eq(ibv_close_xrcd(xrcd), EBUSY);
    expect_state(opened[1], IBV_QPS_RTR);
    ck_assert_int_eq(ibv_destroy_qp(opened[1]), 0);
    expect_state(opened[0], IBV_QPS_RTR);
    attr.qp_state = IBV_QPS_RESET;
    ck_assert_int_eq(ibv_modify_qp(opened[0], &attr, IBV_QP_STATE), 0);
    target = open_target(ctx, xrcd, opened[0]->qp_num);
    ck_assert_ptr_nonnull(target);
    ck_assert_int_eq(ibv_destroy_qp(opened[0]), 0);
    expect_state(target, IBV_QPS_RESET);
    attr.dest_qp_num = target->qp_num;
    ck_assert_int_eq(ibv_destroy_qp(target), 0);
    ck_assert_ptr_null(open_target(ctx, xrcd, attr.dest_qp_num));
    ck_assert_int_eq(errno, EINVAL);

    ck_assert_int_eq(ibv_close_xrcd(xrcd), 0);
    ck_assert_int_eq(ibv_close_xrcd(same), 0);
    ck_assert_int_eq(ibv_close_xrcd(other), 0);
    ck_assert_int_eq(ibv_close_device(second), 0);
    close(fd);
    unlink(path_of);
}
END_TEST

/* ib_check_mr_access(), ib_umem_get() */
START_TEST(regions_are_checked)
{
    /* Nothing is mapped below vm.mmap_min_addr. A higher address that was unmapped might be mapped
     * again by another thread. */
    void *unmapped = (void *)4096;
    const struct {
        void *addr;
        size_t length;
        int access, err;
    } table[] = {
        {buf, BUF, IBV_ACCESS_REMOTE_WRITE, EINVAL},
        {buf, BUF, IBV_ACCESS_REMOTE_ATOMIC, EINVAL},
        {buf, BUF, 1 << 18, EINVAL},
        {buf, 0, 0, EINVAL},
        {buf, SIZE_MAX - 4096, 0, EINVAL},
    };

    for (size_t i = 0; i < COUNT(table); i++) {
        errno = 0;
        ck_assert_ptr_null(ibv_reg_mr(pd, table[i].addr, table[i].length, table[i].access));
        ck_assert_msg(errno == table[i].err, "%zu: %s", i, strerror(errno));
    }
    errno = 0;
    ck_assert_ptr_null(ibv_reg_mr(pd, unmapped, 4096, 0));
    ck_assert_int_eq(errno, EFAULT);
}
END_TEST

START_TEST(what_the_device_cannot_make_is_refused)
{
    struct ibv_device_attr dev;
    struct ibv_qp_init_attr good = {
        .send_cq = send_cq,
        .recv_cq = recv_cq,
        .cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = IBV_QPT_RC};
    struct ibv_qp_init_attr bad[5];
    struct ibv_srq_init_attr srq = {.attr = {.max_wr = 1, .max_sge = 1}};
    struct ibv_ah_attr ah = path();

    ck_assert_int_eq(ibv_query_device(ctx, &dev), 0);
    for (size_t i = 0; i < COUNT(bad); i++) {
        bad[i] = good;
    }
    bad[0].cap.max_send_wr = (uint32_t)dev.max_qp_wr + 1;
    bad[1].cap.max_recv_wr = 1 << 20; /* max_qp_wr limits sends only */
    bad[2].cap.max_send_sge = 1000;
    bad[3].cap.max_recv_sge = (uint32_t)dev.max_sge + 1000;
    bad[4].cap.max_inline_data = 100000;
    for (size_t i = 0; i < COUNT(bad); i++) {
        errno = 0;
        ck_assert_msg(!ibv_create_qp(pd, &bad[i]), "%zu is made", i);
        ck_assert_msg(errno == EINVAL, "%zu: %s", i, strerror(errno));
    }
    ck_assert_ptr_null(ibv_create_cq(ctx, dev.max_cqe + 1, NULL, NULL, 0));
    ck_assert_int_eq(errno, EINVAL);
    srq.attr.max_wr = (uint32_t)dev.max_srq_wr + 1;
    ck_assert_ptr_null(ibv_create_srq(pd, &srq));
    ck_assert_int_eq(errno, EINVAL);
    ah.port_num = 2;
    ck_assert_ptr_null(ibv_create_ah(pd, &ah));
    ck_assert_int_eq(errno, EINVAL);
    ah.port_num = 1;
    ah.is_global = 0; /* RoCE requires is_global */
    ck_assert_ptr_null(ibv_create_ah(pd, &ah));
    ck_assert_int_eq(errno, EINVAL);
}
END_TEST

/* libibverbs checks for a vendor first, then mlx5_set_ece() its own. */
START_TEST(connection_options_are_those_of_the_vendor)
{
    static const struct {
        struct ibv_ece ece;
        int err;
    } wrong[] = {
        {{.vendor_id = 0, .comp_mask = 1}, EOPNOTSUPP},
        {{.vendor_id = 1, .options = 2}, EINVAL},
        {{.vendor_id = 0x15b3, .comp_mask = 1}, EINVAL},
    };

    for (size_t i = 0; i < COUNT(wrong); i++) {
        struct ibv_ece ece = wrong[i].ece;

        errno = 0;
        ck_assert_int_eq(ibv_set_ece(a, &ece), wrong[i].err);
        ck_assert_int_eq(errno, wrong[i].err);
    }
}
END_TEST

/* The sequence of programs such as NCCL: they ask for the peer's options, change the QP's state,
 * and query which options the device has enabled. The device has no such option, so the answer is
 * 0. */
START_TEST(requested_connection_options_are_not_enabled)
{
    struct ibv_ece ece = {.vendor_id = 1, .options = 2, .comp_mask = 3};
    struct ibv_qp *qp = new_qp(IBV_QPT_RC);

    ck_assert_int_eq(ibv_query_ece(qp, &ece), 0);
    ck_assert_uint_eq(ece.vendor_id, 0x15b3);
    ck_assert_uint_eq(ece.options, 0);
    ck_assert_uint_eq(ece.comp_mask, 0);
    ece.options = 0x30000002;
    ck_assert_int_eq(ibv_set_ece(qp, &ece), 0);
    ck_assert_int_eq(to_init(qp, 0), 0);
    ck_assert_int_eq(ibv_query_ece(qp, &ece), 0);
    ck_assert_uint_eq(ece.vendor_id, 0x15b3);
    ck_assert_uint_eq(ece.options, 0);
    ck_assert_int_eq(ibv_destroy_qp(qp), 0);
}
END_TEST

/* mlx5_modify_qp_rate_limit(); ib_modify_qp_is_ok() allows it for raw packet QPs only. */
START_TEST(a_connected_qp_has_no_rate_limit)
{
    struct ibv_qp_rate_limit_attr attr = {.rate_limit = 1000};

    connect_both(ACCESS_ALL);
    ck_assert_int_eq(ibv_modify_qp_rate_limit(a, &attr), EINVAL);
    attr.max_burst_sz = 1;
    ck_assert_int_eq(ibv_modify_qp_rate_limit(a, &attr), EINVAL);
    attr = (struct ibv_qp_rate_limit_attr){.comp_mask = 1};
    ck_assert_int_eq(ibv_modify_qp_rate_limit(a, &attr), EINVAL);
}
END_TEST

int main(int argc, char **argv)
{
    TCase *tc = tcase_create("bugs");
    Suite *suite = suite_create("verbs-bugs");

    if (argc == 1) {
        /* libmlx5 of rdma-core 56 crashes when an opened QP is destroyed: mlx5_free_db(NULL). */
        tcase_add_test(tc, an_xrc_target_stays_as_long_as_it_is_open);
        /* mlx5_ib of Linux 6.2 and later keeps the reference that it takes for the event of a WQ:
         * rsc_event_notifier() leaves it to mlx5_ib_wq_event(). Destroying the WQ waits for ever.
         */
        tcase_add_test(tc, an_overrun_cq_is_fatal_to_its_wqs);
    }
    tcase_set_timeout(tc, 2 * SECONDS);
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, a_bad_work_request_completes_with_its_cause, 0, COUNT(wr_bugs));
    tcase_add_test(tc, a_missing_qp_does_not_answer);
    tcase_add_test(tc, sending_waits_for_rts);
    tcase_add_test(tc, receives_wait_for_init);
    tcase_add_test(tc, what_does_not_fit_is_not_posted);
    tcase_add_test(tc, a_full_queue_takes_no_more);
    tcase_add_test(tc, an_address_handle_of_another_domain_is_taken);
    tcase_add_loop_test(tc, the_device_says_what_a_service_does_not_do, 0, 5);
    tcase_add_test(tc, a_qp_shows_the_state_that_was_asked_for);
    tcase_add_test(tc, an_overrun_cq_is_in_error);
    tcase_add_test(tc, a_transition_needs_its_attributes);
    tcase_add_test(tc, what_is_in_use_stays);
    tcase_add_test(tc, regions_are_checked);
    tcase_add_test(tc, a_connected_qp_has_no_rate_limit);
    tcase_add_test(tc, what_the_device_cannot_make_is_refused);
    tcase_add_test(tc, connection_options_are_those_of_the_vendor);
    tcase_add_test(tc, requested_connection_options_are_not_enabled);
    suite_add_tcase(suite, tc);
    return run_statements(suite, "bugs", argc, argv);
}
