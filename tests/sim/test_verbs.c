/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests programs of the verbs library on a virtual clock, as hosts of one wire: three hosts, each
 * with a reliable connection to each other host, on bad cables. Every operation has its effect
 * exactly once, in order, also if receives come late, CQs are resized meanwhile and some hosts have
 * small data in their CQEs. The same seed repeats bit for bit.
 */
#include <check.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "tests/sim/seeds.h"
#include "tests/sim/verbs_hosts.h"
#include "tests/unit/suite.h"

#define HOSTS  3
#define WINDOW 8    /* outstanding operations of a connection */
#define OPS    40   /* operations of a connection */
#define MSG    8000 /* the longest message */
#define SMALL  70   /* about as much as fits in a CQE */

/* -- connections with a model of what their memories must hold --------------------------------- */

/* Memory for a requester's operations. Each kind has its own, so that unordered operations (IBTA
 * 10.8.3.3, READ before later operations) do not collide. */
struct area {
    uint8_t from[MSG]; /* source of SENDs and WRITEs; READs read the peer's */
    uint8_t written[MSG];
    uint8_t read[WINDOW][MSG];
    uint8_t received[WINDOW][MSG];
    uint64_t counter;
    uint64_t old[WINDOW]; /* the old values that atomics returned */
};

struct side {
    struct verbs_host *host;
    struct ibv_cq *cq;
    struct ibv_qp *qp;
    struct ibv_mr *mr;
    struct area *area, *model;
    bool answers_in_cqe; /* the answers of small READs and atomics are in CQEs */
};

/* One direction: a requests, b responds. */
struct conn {
    struct side a, b;
    unsigned posted, completed;     /* operations */
    unsigned owed, recvs, received; /* receives that a relies on, b posted, b saw completed */
    enum ibv_wr_opcode opcode[OPS]; /* by operation */
    size_t len[OPS], at[OPS];       /* at: address of a READ, at the peer */
    unsigned recv_op[OPS];          /* the operation of each receive */
    uint64_t added;                 /* sum of the atomics that completed */
};

struct run {
    struct verbs_hosts *v;
    struct conn conns[HOSTS * (HOSTS - 1)];
    GRand *rand;
};

static size_t upto(struct run *r, size_t max)
{
    return (size_t)g_rand_int_range(r->rand, 0, (gint32)max + 1);
}

static void fill(struct run *r, uint8_t *at, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        at[i] = (uint8_t)g_rand_int(r->rand) | 1;
    }
}

/* Addresses are on the wire, so each run uses the same ones. Data that is polled out of a CQE
 * (below) must find memory there, as in any program. */
#define AREA_FIRST 0x200000000000ull
#define AREA_BYTES ((sizeof(struct area) + 4095) & ~(size_t)4095)

static struct area *area_new(unsigned nth)
{
    void *at = (void *)(uintptr_t)(AREA_FIRST + nth * AREA_BYTES);
    void *area = mmap(at, AREA_BYTES, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

    ck_assert_ptr_eq(area, at);
    return area;
}

/* Puts small data into CQEs of either size, or into memory. */
static void choose_cqes(struct run *r)
{
    g_setenv("MLX5_CQE_SIZE", upto(r, 1) ? "128" : "64", true);
    g_setenv("MLX5_SCATTER_TO_CQE", upto(r, 3) ? "1" : "0", true);
}

static void side_init(struct run *r, struct side *side, struct verbs_host *host, unsigned nth)
{
    struct ibv_qp_init_attr attr = {
        .cap = {.max_send_wr = 64, .max_recv_wr = 64, .max_send_sge = 4, .max_recv_sge = 4},
        .qp_type = IBV_QPT_RC,
    };

    choose_cqes(r);
    side->host = host;
    side->cq = ibv_create_cq(host->ctx, 4 * WINDOW, NULL, NULL, 0);
    ck_assert_ptr_nonnull(side->cq);
    attr.send_cq = attr.recv_cq = side->cq;
    attr.sq_sig_all = (int)upto(r, 1);
    side->answers_in_cqe = attr.sq_sig_all && g_strcmp0(g_getenv("MLX5_SCATTER_TO_CQE"), "1") == 0;
    side->qp = ibv_create_qp(host->pd, &attr);
    ck_assert_ptr_nonnull(side->qp);
    side->area = area_new(nth);
    fill(r, side->area->from, sizeof(side->area->from));
    side->model = g_memdup2(side->area, sizeof(*side->area));
    side->mr = ibv_reg_mr(host->pd, side->area, sizeof(*side->area),
                          IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                              IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
    ck_assert_ptr_nonnull(side->mr);
}

static void side_free(struct side *side)
{
    verbs_must_be_0(ibv_destroy_qp(side->qp));
    verbs_must_be_0(ibv_dereg_mr(side->mr));
    verbs_must_be_0(ibv_destroy_cq(side->cq));
    munmap(side->area, AREA_BYTES);
    g_free(side->model);
}

static void conn_init(struct run *r, unsigned nth, struct verbs_host *a, struct verbs_host *b)
{
    struct conn *c = &r->conns[nth];
    struct verbs_path path = {.psn = 0xffffff - (uint32_t)upto(r, 20)}; /* wraps on the way */

    side_init(r, &c->a, a, 2 * nth);
    side_init(r, &c->b, b, 2 * nth + 1);
    verbs_connect(c->a.qp, b, c->b.qp->qp_num, &path);
    verbs_connect(c->b.qp, a, c->a.qp->qp_num, &path);
}

/* -- operations -------------------------------------------------------------------------------- */

static bool takes_receive(enum ibv_wr_opcode opcode)
{
    return opcode == IBV_WR_SEND_WITH_IMM || opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

/* Posts the next receive that b owes. Until then, b answers RNR NAK. */
static void post_receive(struct conn *c)
{
    uint8_t *to = c->b.area->received[c->recvs % WINDOW];
    struct ibv_sge sge = {.addr = (uintptr_t)to, .length = MSG, .lkey = c->b.mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = c->recvs, .sg_list = &sge, .num_sge = 1}, *bad;

    c->recvs++;
    verbs_must_be_0(ibv_post_recv(c->b.qp, &wr, &bad));
}

/* Plans an operation: its result in the model, and its request in wr. */
static void plan(struct conn *c, unsigned op, struct ibv_send_wr *wr, struct ibv_sge *sge)
{
    struct area *a = c->a.area, *b = c->b.area, *bm = c->b.model;
    size_t len = c->len[op], at = c->at[op];

    sge->addr = (uintptr_t)(a->from + at);
    wr->imm_data = GUINT32_TO_BE(op);
    wr->wr.rdma.rkey = c->b.mr->rkey;
    switch (c->opcode[op]) {
    case IBV_WR_SEND_WITH_IMM:
        break; /* compared with the model when it is received */
    case IBV_WR_RDMA_READ:
        sge->addr = (uintptr_t)(a->read[op % WINDOW]);
        wr->wr.rdma.remote_addr = (uintptr_t)(b->from + at);
        break;
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
        sge->addr = (uintptr_t)(&a->old[op % WINDOW]);
        wr->wr.atomic.remote_addr = (uintptr_t)(&b->counter);
        wr->wr.atomic.compare_add = op + 1;
        wr->wr.atomic.rkey = c->b.mr->rkey;
        bm->counter += op + 1;
        break;
    default:
        wr->wr.rdma.remote_addr = (uintptr_t)(b->written + (MSG - len - at));
        memcpy(bm->written + (MSG - len - at), a->from + at, len);
    }
}

static void post_one(struct run *r, struct conn *c)
{
    static const enum ibv_wr_opcode opcodes[] = {
        IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM,
        IBV_WR_RDMA_READ,     IBV_WR_RDMA_WRITE, IBV_WR_ATOMIC_FETCH_AND_ADD,
    };
    unsigned op = c->posted++;
    struct ibv_sge sge = {.lkey = c->a.mr->lkey};
    struct ibv_send_wr wr = {.wr_id = op, .sg_list = &sge, .num_sge = 1}, *bad;

    c->opcode[op] = opcodes[upto(r, G_N_ELEMENTS(opcodes) - 1)];
    c->len[op] =
        c->opcode[op] == IBV_WR_ATOMIC_FETCH_AND_ADD ? 8 : upto(r, upto(r, 1) ? MSG : SMALL);
    c->at[op] = upto(r, MSG - c->len[op]);
    wr.opcode = c->opcode[op];
    wr.send_flags = IBV_SEND_SIGNALED;
    sge.length = (uint32_t)c->len[op];
    plan(c, op, &wr, &sge);
    if (takes_receive(c->opcode[op])) {
        c->recv_op[c->owed++] = op;
    }
    verbs_must_be_0(ibv_post_send(c->a.qp, &wr, &bad));
}

/* -- completions ------------------------------------------------------------------------------- */

static void check_done(struct conn *c, const struct ibv_wc *wc)
{
    unsigned op = c->completed++;

    ck_assert_int_eq(wc->status, IBV_WC_SUCCESS);
    ck_assert_uint_eq(wc->wr_id, op); /* in order, each once */
    if (c->opcode[op] == IBV_WR_RDMA_READ) {
        ck_assert_int_eq(wc->opcode, IBV_WC_RDMA_READ);
        ck_assert_mem_eq(c->a.area->read[op % WINDOW], c->b.model->from + c->at[op], c->len[op]);
    } else if (c->opcode[op] == IBV_WR_ATOMIC_FETCH_AND_ADD) {
        ck_assert_int_eq(wc->opcode, IBV_WC_FETCH_ADD);
        /* rdma-core copies the CQE's data, in the order of packets (docs/adr/0013) */
        ck_assert_uint_eq(c->a.answers_in_cqe ? GUINT64_FROM_BE(c->a.area->old[op % WINDOW])
                                              : c->a.area->old[op % WINDOW],
                          c->added);
        c->added += op + 1;
    }
}

static void check_received(struct conn *c, const struct ibv_wc *wc)
{
    unsigned nth = c->received++, op = c->recv_op[nth];

    ck_assert_int_eq(wc->status, IBV_WC_SUCCESS);
    ck_assert_uint_eq(wc->wr_id, nth);
    ck_assert_uint_eq(GUINT32_FROM_BE(wc->imm_data), op);
    ck_assert_uint_eq(wc->byte_len, c->len[op]);
    if (c->opcode[op] == IBV_WR_SEND_WITH_IMM) {
        ck_assert_mem_eq(c->b.area->received[nth % WINDOW], c->a.model->from + c->at[op],
                         c->len[op]);
    }
}

static void poll(struct conn *c)
{
    struct ibv_wc wc;

    while (ibv_poll_cq(c->b.cq, 1, &wc)) {
        check_received(c, &wc);
    }
    while (ibv_poll_cq(c->a.cq, 1, &wc)) {
        check_done(c, &wc);
    }
}

/* A receive's memory is used again after WINDOW further receives. */
static bool has_room(const struct conn *c)
{
    return c->posted < OPS && c->posted - c->completed < WINDOW && c->owed - c->received < WINDOW;
}

static bool is_done(const struct conn *c)
{
    return c->completed == OPS && c->received == c->owed;
}

static char *run(uint32_t seed, unsigned hosts, const struct lossy_config *loss, unsigned *faults)
{
    struct run r = {.rand = g_rand_new_with_seed(seed)};
    unsigned n = 0, done;
    uint64_t limit;
    char *trace;

    r.v = verbs_hosts_new(hosts, loss);
    for (unsigned i = 0; i < hosts; i++) {
        for (unsigned j = 0; j < hosts; j++) {
            if (i != j) {
                conn_init(&r, n++, &r.v->host[i], &r.v->host[j]);
            }
        }
    }
    limit = r.v->world->now_ns + 100 * VERBS_SECOND;
    do {
        struct conn *c = &r.conns[upto(&r, n - 1)];

        if (has_room(c)) {
            post_one(&r, c);
        }
        c = &r.conns[upto(&r, n - 1)];
        if (c->recvs < c->owed) {
            post_receive(c);
        }
        if (upto(&r, 20) == 0) {
            verbs_must_be_0(ibv_resize_cq(c->a.cq, (int)(2 * WINDOW + upto(&r, 6 * WINDOW))));
        }
        ck_assert_uint_lt(r.v->world->now_ns, limit);
        inproc_step(r.v->world, r.v->world->now_ns + VERBS_SECOND / 1000);
        done = 0;
        for (unsigned i = 0; i < n; i++) {
            poll(&r.conns[i]);
            done += is_done(&r.conns[i]);
        }
    } while (done < n);
    for (unsigned i = 0; i < n; i++) {
        const struct side *b = &r.conns[i].b;

        ck_assert_mem_eq(b->area->written, b->model->written, MSG);
        ck_assert_mem_eq(b->area->from, b->model->from, MSG);
        ck_assert_uint_eq(b->area->counter, b->model->counter);
        side_free(&r.conns[i].a);
        side_free(&r.conns[i].b);
    }
    *faults = verbs_faults(r.v);
    trace = g_strdup_printf("%s %" G_GUINT64_FORMAT " %" G_GUINT64_FORMAT,
                            g_checksum_get_string(r.v->trace), r.v->frames, r.v->world->now_ns);
    verbs_hosts_free(r.v);
    g_rand_free(r.rand);
    return trace;
}

static struct lossy_config loss_of(uint32_t seed)
{
    return (struct lossy_config){
        .seed = seed, .lose = 5 + seed % 3 * 10, .twice = 10, .late = 20, .corrupt = seed % 2 * 10};
}

static struct seeds seeds;

/* IBTA 9.7: every message arrives unchanged, once and in order, whatever the wire does. */
START_TEST(every_operation_takes_effect_once_and_in_order)
{
    uint32_t seed = seeds.first + (uint32_t)_i;
    struct lossy_config loss = loss_of(seed);
    g_autofree char *trace = NULL;
    unsigned faults;

    trace = run(seed, HOSTS, &loss, &faults);
    ck_assert_uint_gt(faults, 0);
}
END_TEST

START_TEST(same_seed_same_packets)
{
    struct lossy_config loss = loss_of(5);
    g_autofree char *first = NULL, *again = NULL, *other = NULL;
    unsigned faults, faults_again;

    first = run(5, HOSTS, &loss, &faults);
    again = run(5, HOSTS, &loss, &faults_again);
    ck_assert_str_eq(first, again);
    ck_assert_uint_eq(faults, faults_again);
    loss.seed++;
    other = run(5, HOSTS, &loss, &faults);
    ck_assert_str_ne(first, other);
}
END_TEST

/* -- threads and time -------------------------------------------------------------------------- */

static struct verbs_hosts *v;
static struct ibv_comp_channel *channel;
static struct ibv_cq *cq[2];
static struct ibv_qp *qp[2];

static void setup(void)
{
    v = verbs_hosts_new(2, NULL);
    channel = ibv_create_comp_channel(v->host[1].ctx);
    fcntl(channel->fd, F_SETFL, O_NONBLOCK);
    for (int i = 0; i < 2; i++) {
        cq[i] = ibv_create_cq(v->host[i].ctx, 16, NULL, i ? channel : NULL, 0);
        qp[i] = verbs_qp(&v->host[i], IBV_QPT_RC, cq[i], NULL, NULL);
    }
}

static void teardown(void)
{
    for (int i = 0; i < 2; i++) {
        verbs_must_be_0(ibv_destroy_qp(qp[i]));
        verbs_must_be_0(ibv_destroy_cq(cq[i]));
    }
    verbs_must_be_0(ibv_destroy_comp_channel(channel));
    verbs_hosts_free(v);
}

static void connect_both(const struct verbs_path *path)
{
    verbs_connect(qp[0], &v->host[1], qp[1]->qp_num, path);
    verbs_connect(qp[1], &v->host[0], qp[0]->qp_num, path);
}

static void send_empty(void)
{
    struct ibv_send_wr wr = {.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED}, *bad;

    verbs_must_be_0(ibv_post_send(qp[0], &wr, &bad));
}

static void post_empty(void)
{
    struct ibv_recv_wr wr = {.wr_id = 1}, *bad;

    verbs_must_be_0(ibv_post_recv(qp[1], &wr, &bad));
}

START_TEST(nothing_happens_before_the_world_is_stepped)
{
    uint64_t frames, now;
    struct ibv_wc wc;

    connect_both(NULL);
    inproc_settle(v->world);
    frames = v->frames;
    now = v->world->now_ns;
    post_empty();
    send_empty();
    for (int i = 0; i < 1000; i++) {
        ck_assert_int_eq(ibv_poll_cq(cq[0], 1, &wc), 0);
        ck_assert_int_eq(ibv_poll_cq(cq[1], 1, &wc), 0);
    }
    ck_assert_uint_eq(v->frames, frames);
    ck_assert_uint_eq(v->world->now_ns, now);
    ck_assert_int_eq(verbs_wc(v, cq[1]).status, IBV_WC_SUCCESS);
    ck_assert_uint_eq(v->world->now_ns, now + VERBS_LATENCY);
    ck_assert_int_eq(verbs_wc(v, cq[0]).status, IBV_WC_SUCCESS);
    ck_assert_uint_eq(v->world->now_ns, now + 2 * VERBS_LATENCY);
}
END_TEST

START_TEST(an_armed_cq_tells_its_channel_when_its_time_comes)
{
    struct ibv_cq *of;
    void *context;

    connect_both(NULL);
    post_empty();
    verbs_must_be_0(ibv_req_notify_cq(cq[1], 0));
    send_empty();
    ck_assert_int_eq(ibv_get_cq_event(channel, &of, &context), -1);
    ck_assert_int_eq(errno, EAGAIN);
    inproc_advance(v->world, VERBS_SECOND / 1000);
    ck_assert_int_eq(ibv_get_cq_event(channel, &of, &context), 0);
    ck_assert_ptr_eq(of, cq[1]);
    ibv_ack_cq_events(of, 1);
}
END_TEST

/* IBTA 9.7.6.1.3: a QP waits at least 4.096 us * 2^timeout for an answer and at most four times
 * that, and retransmits retry_cnt times. */
START_TEST(a_peer_that_does_not_answer_costs_virtual_time_only)
{
    const struct verbs_path path = {.timeout = 20, .retry_cnt = 3}; /* 4.3 s each */
    const uint64_t wait = 4096ull << path.timeout;
    uint64_t before, passed;
    gint64 began = g_get_monotonic_time();

    verbs_connect(qp[0], &v->host[1], qp[1]->qp_num, &path); /* qp[1] stays in RESET */
    before = v->world->now_ns;
    send_empty();
    ck_assert_int_eq(verbs_wc(v, cq[0]).status, IBV_WC_RETRY_EXC_ERR);
    passed = v->world->now_ns - before;
    ck_assert_uint_ge(passed, (path.retry_cnt + 1u) * wait);
    ck_assert_uint_le(passed, (path.retry_cnt + 1u) * 4 * wait);
    ck_assert_int_lt(g_get_monotonic_time() - began, 4 * G_USEC_PER_SEC);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("verbs hosts in virtual time");
    TCase *traffic = tcase_create("bad cables"), *time = tcase_create("time");

    tcase_set_timeout(traffic, 120);
    seeds = seeds_of_run(12);
    tcase_add_loop_test(traffic, every_operation_takes_effect_once_and_in_order, 0, (int)seeds.num);
    tcase_add_test(traffic, same_seed_same_packets);
    suite_add_tcase(suite, traffic);
    tcase_add_checked_fixture(time, setup, teardown);
    tcase_add_test(time, nothing_happens_before_the_world_is_stepped);
    tcase_add_test(time, an_armed_cq_tells_its_channel_when_its_time_comes);
    tcase_add_test(time, a_peer_that_does_not_answer_costs_virtual_time_only);
    suite_add_tcase(suite, time);
    return suite;
}
