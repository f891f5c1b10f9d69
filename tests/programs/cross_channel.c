/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Cross channel and the WQEs beside it, by DevX alone: managed queues, waits and enables;
 * requests whose data are calculated; NOP and DUMP. rdma-core has no call for any of them, but a
 * kernel lets users of DevX make the queues, and post to them. docs/adr/0029, 0030 and 0035 give
 * the rules.
 */
#include <time.h>
#include <unistd.h>
#include "prm/prm.h"
#include "tests/programs/devx_queues.h"

#define QUEUES    8
#define LEN       80u  /* of a WRITE; its list has five elements */
#define AREA      512u /* bytes of the memory that one message has */
#define AREAS     16
#define QUIET     200000 /* us: a WQE that has no CQE after this time was not started */
#define IDLE      3.0    /* seconds of an endless wait that are measured */
#define SETTLED   1.0    /* seconds after which the library's thread sleeps */
#define NO_NUMBER 0xfedcba

static struct devx_queue queues[QUEUES];
static unsigned num_queues;
static struct ibv_mr *mr;
static uint8_t area[AREAS][AREA] __attribute__((aligned(4096)));
#define AT(i) ((uintptr_t)area[i])

static void setup(void)
{
    open_device();
    devx_open();
    mr = ibv_reg_mr(pd, area, sizeof(area), REMOTE | IBV_ACCESS_LOCAL_WRITE);
    ck_assert_ptr_nonnull(mr);
}

static void teardown(void)
{
    for (unsigned i = 0; i < num_queues; i++) {
        devx_destroy_qp(&queues[i]);
    }
    for (unsigned i = 0; i < num_queues; i++) {
        devx_queue_free(&queues[i]);
    }
    ck_assert_int_eq(ibv_dereg_mr(mr), 0);
    devx_close();
    close_device();
}

/* -- queues, CQEs ------------------------------------------------------------------------------ */

static struct devx_queue *new_queue(struct ibv_pd *of, unsigned roles)
{
    struct devx_queue *q = &queues[num_queues];

    ck_assert_uint_lt(num_queues, QUEUES);
    devx_queue_new(q, of, roles);
    num_queues++;
    return q;
}

/* A queue that is connected to itself. */
static struct devx_queue *loop(unsigned roles)
{
    struct devx_queue *q = new_queue(pd, roles);

    devx_connect(q, q->qpn);
    return q;
}

static struct devx_cqe next_cqe(struct devx_queue *q)
{
    double end = now() + SECONDS;
    struct devx_cqe cqe;

    while (!devx_poll(q, &cqe)) {
        ck_assert_msg(now() < end, "no CQE %u", q->taken);
        usleep(100);
    }
    return cqe;
}

static void expect_done(struct devx_queue *q, unsigned wqe)
{
    struct devx_cqe cqe = next_cqe(q);

    ck_assert_msg(cqe.opcode == MLX5_CQE_REQ, "WQE %u: opcode 0x%x, syndrome 0x%x", cqe.wqe,
                  cqe.opcode, cqe.syndrome);
    ck_assert_uint_eq(cqe.wqe, wqe);
}

static void expect_error(struct devx_queue *q, unsigned wqe, uint8_t syndrome)
{
    struct devx_cqe cqe = next_cqe(q);

    ck_assert_uint_eq(cqe.opcode, MLX5_CQE_REQ_ERR);
    ck_assert_uint_eq(cqe.wqe, wqe);
    ck_assert_uint_eq(cqe.syndrome, syndrome);
}

static void expect_message(struct devx_queue *q, unsigned wqe, uint32_t bytes)
{
    struct devx_cqe cqe = next_cqe(q);

    ck_assert_uint_eq(cqe.opcode, MLX5_CQE_RESP_SEND);
    ck_assert_uint_eq(cqe.wqe, wqe);
    ck_assert_uint_eq(cqe.bytes, bytes);
}

static void expect_nothing(struct devx_queue *q)
{
    struct devx_cqe cqe;

    usleep(QUIET);
    ck_assert(!devx_poll(q, &cqe));
}

/* -- WQEs -------------------------------------------------------------------------------------- */

/* WQEs of one basic block, but for post_write(). */
static void post_object(struct devx_queue *q, uint8_t opcode, uint32_t number, uint32_t index)
{
    struct devx_wqe wqe = {.opcode = opcode};

    devx_add_object(&wqe, number, index);
    devx_post(q, &wqe);
}

static void post_data(struct devx_queue *q, uint8_t opcode, unsigned from, uint32_t len,
                      uint32_t lkey)
{
    struct devx_wqe wqe = {.opcode = opcode};

    devx_add_data(&wqe, AT(from), len, lkey);
    devx_post(q, &wqe);
}

static void post_nop(struct devx_queue *q)
{
    devx_post(q, &(struct devx_wqe){.opcode = MLX5_OPCODE_NOP});
}

/* A WRITE of LEN bytes from one area to another, of two basic blocks. */
static void post_write(struct devx_queue *q, unsigned from, unsigned to)
{
    struct devx_wqe wqe = {.opcode = MLX5_OPCODE_RDMA_WRITE};

    devx_add_remote(&wqe, AT(to), mr->rkey);
    for (uint32_t at = 0; at < LEN; at += 16) {
        devx_add_data(&wqe, AT(from) + at, 16, mr->lkey);
    }
    devx_post(q, &wqe);
}

static void fill(unsigned i, uint8_t with)
{
    memset(area[i], with, LEN);
}

static void expect_same(unsigned one, unsigned other)
{
    ck_assert_mem_eq(area[one], area[other], LEN);
}

/* -- waits ------------------------------------------------------------------------------------- */

/* A wait needs no master. */
START_TEST(a_wait_holds_what_follows_until_the_cq_has_had_the_cqe)
{
    struct devx_queue *first = loop(0), *waiter = loop(_i ? DEVX_MASTER : 0);

    fill(0, 7);
    post_object(waiter, DEVX_WAIT, first->cqn, 1);
    post_write(waiter, 0, 1);
    devx_ring(waiter);
    expect_nothing(waiter);
    post_nop(first);
    devx_ring(first);
    expect_done(first, 0);
    expect_nothing(waiter); /* that was the CQE of index 0 */
    post_nop(first);
    devx_ring(first);
    expect_done(waiter, 0);
    expect_done(waiter, 1);
    expect_same(0, 1);
}
END_TEST

START_TEST(a_wait_for_the_past_ends_at_once)
{
    struct devx_queue *first = loop(0), *waiter = loop(DEVX_MASTER);

    for (unsigned i = 0; i < 3; i++) {
        post_nop(first);
        devx_ring(first);
        expect_done(first, i);
    }
    for (unsigned i = 0; i < 3; i++) {
        post_object(waiter, DEVX_WAIT, first->cqn, 2 - i);
        devx_ring(waiter);
        expect_done(waiter, i);
    }
}
END_TEST

/* A CQ that ignores its overrun goes on counting; any other CQ fails, and with it the queues that
 * wait for its later CQEs. */
START_TEST(a_wait_counts_cqes_that_were_overwritten)
{
    enum {
        NOPS = 30
    };
    struct devx_queue *first = loop(0), *waiter = loop(DEVX_MASTER);

    if (_i) {
        devx_ignore_overrun(first);
    }
    for (unsigned round = 0; round < 3; round++) {
        post_object(waiter, DEVX_WAIT, first->cqn, NOPS * (round + 1) - 1);
        devx_ring(waiter);
        for (unsigned i = 0; i < NOPS; i++) {
            post_nop(first);
        }
        devx_ring(first);
        if (round == 2 && !_i) {
            expect_error(waiter, round, DEVX_BAD_WQE);
        } else {
            expect_done(waiter, round);
        }
    }
}
END_TEST

/* -- managed queues ---------------------------------------------------------------------------- */

/* Indices count WQEs, of however many basic blocks. */
START_TEST(a_managed_send_queue_starts_what_is_enabled)
{
    struct devx_queue *master = loop(DEVX_MASTER), *managed = loop(DEVX_MANAGED_SEND);
    bool rings = _i;

    for (unsigned i = 0; i < 3; i++) {
        fill(i, (uint8_t)(i + 1));
        post_write(managed, i, 8 + i);
    }
    if (rings) {
        devx_ring(managed);
    }
    expect_nothing(managed);
    post_object(master, DEVX_SEND_EN, managed->qpn, 1);
    devx_ring(master);
    expect_done(master, 0);
    expect_done(managed, 0);
    expect_same(0, 8);
    expect_nothing(managed);
    post_object(master, DEVX_SEND_EN, managed->qpn, 3);
    post_object(master, DEVX_SEND_EN, managed->qpn, 2); /* it has passed that */
    devx_ring(master);
    expect_done(master, 1);
    expect_done(master, 2);
    expect_done(managed, 2);
    expect_done(managed, 4);
    expect_same(1, 9);
    expect_same(2, 10);
    expect_nothing(managed);
}
END_TEST

START_TEST(a_managed_receive_queue_takes_what_is_enabled)
{
    struct devx_queue *master = loop(DEVX_MASTER), *sender = new_queue(pd, 0),
                      *receiver = new_queue(pd, DEVX_MANAGED_RECV);

    devx_connect(receiver, sender->qpn);
    devx_connect(sender, receiver->qpn);
    for (unsigned i = 0; i < 2; i++) {
        fill(i, (uint8_t)(i + 1));
        devx_receive(receiver, AT(8 + i), LEN, mr->lkey);
        post_data(sender, MLX5_OPCODE_SEND, i, LEN, mr->lkey);
    }
    devx_ring(sender);
    expect_nothing(receiver);
    for (unsigned i = 0; i < 2; i++) {
        post_object(master, DEVX_RECV_EN, receiver->qpn, i + 1);
        devx_ring(master);
        expect_done(master, i);
        expect_message(receiver, i, LEN);
        expect_done(sender, i);
        expect_same(i, 8 + i);
        expect_nothing(receiver);
    }
}
END_TEST

/* Each link waits for the one before; all is posted before the trigger. */
START_TEST(a_chain_runs_by_itself)
{
    enum {
        LINKS = 4
    };
    struct devx_queue *trigger = loop(0), *master = loop(DEVX_MASTER), *link[LINKS];
    uint32_t before = trigger->cqn;

    for (unsigned i = 0; i < LINKS; i++) {
        link[i] = loop(DEVX_MANAGED_SEND);
        post_write(link[i], i, i + 1);
        post_object(master, DEVX_WAIT, before, 0);
        post_object(master, DEVX_SEND_EN, link[i]->qpn, 1);
        before = link[i]->cqn;
    }
    devx_ring(master);
    expect_nothing(master);
    fill(0, 0x5a);
    post_nop(trigger);
    devx_ring(trigger);
    for (unsigned i = 0; i < LINKS; i++) {
        expect_done(master, 2 * i);
        expect_done(master, 2 * i + 1);
        expect_done(link[i], 0);
        expect_same(0, i + 1);
    }
}
END_TEST

/* -- endless waits ----------------------------------------------------------------------------- */

static struct devx_queue *waits_for_ever(struct devx_queue *first)
{
    struct devx_queue *waiter = loop(DEVX_MASTER);

    post_object(waiter, DEVX_WAIT, first->cqn, 1000);
    post_nop(waiter);
    devx_ring(waiter);
    expect_nothing(waiter);
    return waiter;
}

static void other_queues_work(struct devx_queue *q)
{
    unsigned wqe = q->posted;

    fill(2, (uint8_t)(wqe + 1));
    post_write(q, 2, 3);
    devx_ring(q);
    expect_done(q, wqe);
    expect_same(2, 3);
}

START_TEST(a_queue_that_waits_for_ever_is_destroyed)
{
    struct devx_queue *first = loop(0), *waiter = waits_for_ever(first);

    other_queues_work(first);
    devx_destroy_qp(waiter);
    other_queues_work(first);
    expect_nothing(waiter);
}
END_TEST

START_TEST(a_wait_is_flushed)
{
    struct devx_queue *first = loop(0), *waiter = waits_for_ever(first);

    devx_move(waiter, PRM_CMD_OP_2ERR_QP);
    expect_error(waiter, 0, DEVX_FLUSHED);
    expect_error(waiter, 1, DEVX_FLUSHED);
    other_queues_work(first);
}
END_TEST

START_TEST(a_wait_ends_with_a_reset)
{
    struct devx_queue *first = loop(0), *waiter = waits_for_ever(first);

    devx_move(waiter, PRM_CMD_OP_2RST_QP);
    expect_nothing(waiter);
    devx_connect(waiter, waiter->qpn);
    other_queues_work(waiter);
}
END_TEST

START_TEST(a_wait_fails_with_its_cq)
{
    struct devx_queue *first = loop(0), *waiter = waits_for_ever(first);

    devx_destroy_qp(first);
    devx_destroy_cq(first);
    expect_error(waiter, 0, DEVX_BAD_WQE);
    expect_error(waiter, 1, DEVX_FLUSHED);
}
END_TEST

/* The CQ of a queue that waits has no CQE, so nothing but the end of one queue ends the other's
 * wait. */
START_TEST(two_queues_that_wait_for_each_other_wait_until_one_ends)
{
    struct devx_queue *one = loop(0), *other = loop(DEVX_MASTER), *third = loop(0);

    post_object(one, DEVX_WAIT, other->cqn, 0);
    post_object(other, DEVX_WAIT, one->cqn, 0);
    devx_ring(one);
    devx_ring(other);
    expect_nothing(one);
    expect_nothing(other);
    other_queues_work(third);
    devx_destroy_qp(one);
    devx_destroy_cq(one);
    expect_error(other, 0, DEVX_BAD_WQE);
    other_queues_work(third);
}
END_TEST

static double seconds_of_cpu(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Without a VM the device works in the program's process. In a guest tests/vm/two-paths measures
 * the QEMU meanwhile. */
START_TEST(an_endless_wait_costs_nothing)
{
    struct devx_queue *first = loop(0);
    double spent;

    waits_for_ever(first);
    usleep((useconds_t)(SETTLED * 1e6));
    spent = seconds_of_cpu();
    usleep((useconds_t)(IDLE * 1e6));
    spent = seconds_of_cpu() - spent;
    ck_assert_msg(spent < IDLE / 20, "%.3f s of a processor in %.0f s", spent, IDLE);
    other_queues_work(first);
}
END_TEST

/* -- bad objects ------------------------------------------------------------------------------- */

enum bad {
    NO_CQ,
    CQ_OF_ANOTHER_USER,
    NO_QP,
    QP_THAT_IS_NOT_MANAGED,
    QP_WHOSE_OTHER_QUEUE_IS_MANAGED,
    QP_OF_ANOTHER_PD,
    MORE_THAN_THE_RING,
    BY_NO_MASTER,
    BADS
};

static struct ibv_context *another_user(struct ibv_cq **cq, uint32_t *cqn)
{
    struct ibv_context *user = ibv_open_device(ctx->device);
    struct mlx5dv_cq dv = {0};
    struct mlx5dv_obj obj = {.cq = {.out = &dv}};

    ck_assert_ptr_nonnull(user);
    *cq = obj.cq.in = ibv_create_cq(user, 1, NULL, NULL, 0);
    ck_assert(*cq && !mlx5dv_init_obj(&obj, MLX5DV_OBJ_CQ));
    *cqn = dv.cqn;
    return user;
}

static void post_bad(struct devx_queue *q, struct devx_queue *managed, enum bad bad, uint32_t cqn)
{
    switch (bad) {
    case NO_CQ:
        post_object(q, DEVX_WAIT, NO_NUMBER, 0);
        break;
    case CQ_OF_ANOTHER_USER:
        post_object(q, DEVX_WAIT, cqn, 0);
        break;
    case NO_QP:
        post_object(q, DEVX_SEND_EN, NO_NUMBER, 1);
        break;
    case QP_THAT_IS_NOT_MANAGED:
        post_object(q, DEVX_SEND_EN, loop(0)->qpn, 1);
        break;
    case QP_WHOSE_OTHER_QUEUE_IS_MANAGED:
        post_object(q, DEVX_RECV_EN, managed->qpn, 1);
        break;
    case QP_OF_ANOTHER_PD:
        post_object(q, DEVX_SEND_EN, new_queue(other_pd, DEVX_MANAGED_SEND)->qpn, 1);
        break;
    case MORE_THAN_THE_RING:
        post_object(q, DEVX_SEND_EN, managed->qpn, DEVX_BLOCKS + 1);
        break;
    default: /* BY_NO_MASTER */
        post_object(q, DEVX_SEND_EN, managed->qpn, 1);
    }
}

START_TEST(a_bad_object_is_an_error)
{
    struct devx_queue *q = loop(_i == BY_NO_MASTER ? 0 : DEVX_MASTER),
                      *managed = loop(DEVX_MANAGED_SEND);
    struct ibv_context *user;
    struct ibv_cq *cq;
    uint32_t cqn;

    user = another_user(&cq, &cqn);
    post_write(managed, 0, 1);
    post_nop(q);
    post_bad(q, managed, (enum bad)_i, cqn);
    post_nop(q);
    devx_ring(q);
    expect_done(q, 0);
    expect_error(q, 1, DEVX_BAD_WQE);
    expect_error(q, 2, DEVX_FLUSHED);
    expect_nothing(managed);
    ck_assert_int_eq(ibv_destroy_cq(cq), 0);
    ck_assert_int_eq(ibv_close_device(user), 0);
}
END_TEST

/* -- calculated data --------------------------------------------------------------------------- */

/* Operands and results are a value and an id, of 8 bytes each in network byte order. */
static const struct {
    const char *what;
    uint8_t opmod;
    uint64_t operand[3][2], result[2];
} calculations[] = {
    {"ADD", 1, {{1, 10}, {2, 20}, {UINT64_MAX, 30}}, {2, 10}},
    /* 1.5 + 2.25 - 0.25 */
    {"ADD of floating point numbers",
     2,
     {{0x3ff8000000000000, 10}, {0x4002000000000000, 20}, {0xbfd0000000000000, 30}},
     {0x400c000000000000, 10}},
    {"MAXLOC", 3, {{5, 10}, {9, 20}, {9, 30}}, {9, 20}},
    {"AND", 4, {{0xff, 10}, {0x3c, 20}, {0x18f, 30}}, {0x0c, 10}},
    {"OR", 5, {{1, 10}, {1ull << 63, 20}, {4, 30}}, {1ull << 63 | 5, 10}},
    {"XOR", 6, {{0xf0, 10}, {0x3c, 20}, {0xff, 30}}, {0x33, 10}},
};

static const uint8_t calculating[] = {MLX5_OPCODE_SEND, MLX5_OPCODE_RDMA_WRITE,
                                      MLX5_OPCODE_RDMA_READ};

/* A READ calculates with what it has read; the others calculate with their lists. */
START_TEST(a_request_carries_the_result_of_a_calculation)
{
    unsigned n = (unsigned)_i / COUNT(calculating);
    uint64_t *operands = (uint64_t *)(void *)area[0], *result = (uint64_t *)(void *)area[8];
    struct devx_wqe wqe = {.opcode = calculating[(unsigned)_i % COUNT(calculating)],
                           .opmod = calculations[n].opmod};
    struct devx_queue *q = loop(DEVX_MASTER);

    for (unsigned i = 0; i < 6; i++) {
        operands[i] = htobe64(calculations[n].operand[i / 2][i % 2]);
    }
    if (wqe.opcode != MLX5_OPCODE_SEND) {
        devx_add_remote(&wqe, AT(wqe.opcode == MLX5_OPCODE_RDMA_READ ? 0 : 8), mr->rkey);
    }
    if (wqe.opcode == MLX5_OPCODE_RDMA_READ) {
        devx_add_data(&wqe, AT(8), 48, mr->lkey);
    } else {
        for (unsigned i = 0; i < 3; i++) {
            devx_add_data(&wqe, AT(0) + 16 * i, 16, mr->lkey);
        }
    }
    devx_receive(q, AT(8), AREA, mr->lkey);
    devx_post(q, &wqe);
    devx_ring(q);
    if (wqe.opcode == MLX5_OPCODE_SEND) {
        expect_message(q, 0, 16);
    }
    expect_done(q, 0);
    for (unsigned i = 0; i < 2; i++) {
        ck_assert_msg(be64toh(result[i]) == calculations[n].result[i],
                      "%s, opcode 0x%x: word %u is 0x%llx", calculations[n].what, wqe.opcode, i,
                      (unsigned long long)be64toh(result[i]));
    }
    ck_assert_uint_eq(result[2], 0); /* a result has 16 bytes */
}
END_TEST

enum {
    VECTORS = 3,
    VECTOR = 160,
    CHUNK = 64
};

/* GF(2^8) with the polynomial x^8 + x^4 + x^3 + x^2 + 1. */
static uint8_t product(uint8_t a, uint8_t b)
{
    unsigned p = 0;

    for (unsigned bit = 0x80; bit; bit >>= 1) {
        p = p << 1 ^ (b & bit ? a : 0);
        p ^= p & 0x100 ? 0x11d : 0;
    }
    return (uint8_t)p;
}

/* Vectors and, in area 2, the matrix: a row for each vector. */
static void post_vectors(struct devx_queue *q, unsigned results, bool matrix)
{
    struct devx_wqe wqe = {.opcode = MLX5_OPCODE_SEND, .opmod = 0xff};
    const uint32_t words[12] = {[0] = results == 2 ? 0x05050000 : 0x05000000,
                                [3] = (matrix ? 1u << 23 | 1u << 20 : 0) | VECTORS,
                                [5] = mr->lkey,
                                [6] = (uint32_t)(AT(2) >> 32),
                                [7] = (uint32_t)AT(2),
                                [8] = VECTOR,
                                [9] = mr->lkey,
                                [10] = (uint32_t)(AT(0) >> 32),
                                [11] = (uint32_t)AT(0)};

    devx_add_words(&wqe, words, 12);
    devx_post(q, &wqe);
}

/* The message has a chunk of each result in turn; the last chunks are shorter. */
static size_t place(unsigned results, unsigned result, unsigned byte)
{
    unsigned chunk = byte / CHUNK * CHUNK, len = VECTOR - chunk < CHUNK ? VECTOR - chunk : CHUNK;

    return chunk * results + result * len + byte % CHUNK;
}

START_TEST(a_send_carries_results_of_vectors)
{
    static const uint8_t constants[VECTORS][2] = {{1, 1}, {2, 0x8e}, {0xff, 0}};
    struct devx_queue *q = loop(0);
    unsigned results = _i ? 2 : 1;

    for (unsigned i = 0; i < VECTORS * VECTOR; i++) {
        area[0][i] = (uint8_t)(i * i * 31 + i);
    }
    memcpy(area[2], constants, sizeof(constants));
    devx_receive(q, AT(8), AREA, mr->lkey);
    post_vectors(q, results, _i);
    devx_ring(q);
    expect_message(q, 0, results * VECTOR);
    expect_done(q, 0);
    for (unsigned r = 0; r < results; r++) {
        for (unsigned byte = 0; byte < VECTOR; byte++) {
            uint8_t expected = 0;

            for (unsigned v = 0; v < VECTORS; v++) {
                expected ^= product(area[0][v * VECTOR + byte], _i ? constants[v][r] : 1);
            }
            ck_assert_uint_eq(area[8][place(results, r, byte)], expected);
        }
    }
}
END_TEST

/* -- NOP, DUMP --------------------------------------------------------------------------------- */

START_TEST(a_nop_and_a_dump_complete)
{
    struct devx_queue *q = loop(0);

    post_nop(q);
    post_data(q, DEVX_DUMP, 0, AREA, mr->lkey);
    devx_ring(q);
    expect_done(q, 0);
    expect_done(q, 1);
    other_queues_work(q);
}
END_TEST

START_TEST(a_dump_needs_its_key)
{
    struct devx_queue *q = loop(0);

    post_data(q, DEVX_DUMP, 0, AREA, mr->lkey ^ 0x7fff00);
    post_nop(q);
    devx_ring(q);
    expect_error(q, 0, DEVX_BAD_KEY);
    expect_error(q, 1, DEVX_FLUSHED);
}
END_TEST

/* ---------------------------------------------------------------------------------------------- */

int main(int argc, char **argv)
{
    TCase *queue = tcase_create("queues"), *endless = tcase_create("endless"),
          *data = tcase_create("data");
    TCase *all[] = {queue, endless, data};
    Suite *suite = suite_create("verbs-cross-channel");

    tcase_add_loop_test(queue, a_wait_holds_what_follows_until_the_cq_has_had_the_cqe, 0, 2);
    tcase_add_test(queue, a_wait_for_the_past_ends_at_once);
    tcase_add_loop_test(queue, a_wait_counts_cqes_that_were_overwritten, 0, 2);
    tcase_add_loop_test(queue, a_managed_send_queue_starts_what_is_enabled, 0, 2);
    tcase_add_test(queue, a_managed_receive_queue_takes_what_is_enabled);
    tcase_add_test(queue, a_chain_runs_by_itself);
    tcase_add_test(queue, a_queue_that_waits_for_ever_is_destroyed);
    tcase_add_test(queue, a_wait_is_flushed);
    tcase_add_test(queue, a_wait_ends_with_a_reset);
    tcase_add_test(queue, a_wait_fails_with_its_cq);
    tcase_add_test(queue, two_queues_that_wait_for_each_other_wait_until_one_ends);
    tcase_add_loop_test(queue, a_bad_object_is_an_error, 0, BADS);

    tcase_add_test(endless, an_endless_wait_costs_nothing);

    tcase_add_loop_test(data, a_request_carries_the_result_of_a_calculation, 0,
                        COUNT(calculations) * COUNT(calculating));
    tcase_add_loop_test(data, a_send_carries_results_of_vectors, 0, 2);
    tcase_add_test(data, a_nop_and_a_dump_complete);
    tcase_add_test(data, a_dump_needs_its_key);

    for (size_t i = 0; i < COUNT(all); i++) {
        tcase_add_checked_fixture(all[i], setup, teardown);
        tcase_set_timeout(all[i], 2 * SECONDS);
        suite_add_tcase(suite, all[i]);
    }
    return run_statements(suite, "cross-channel", argc, argv);
}
