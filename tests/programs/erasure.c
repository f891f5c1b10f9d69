/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests erasure coding with threads, in real time: the calls that wait, the blocks that are sent as
 * soon as they are computed, and calculations that are in flight at their end.
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include "guest-lib/verbs/exp/include/infiniband/verbs_exp.h"
#include "tests/programs/own_wire.h"
#include "tests/programs/pair.h"
#include "tests/unit/gf_ref.h"

#define K      6u
#define M      5u /* more than one calculation of the device has */
#define BLOCKS (K + M)
#define BLOCK  1024u
#define TIMES  20u

static uint8_t memory[BLOCKS][BLOCK], arrived[BLOCKS][BLOCK];
static struct ibv_mr *mr, *arrived_mr;
static struct ibv_sge sge[BLOCKS];
static struct code code;
static struct ibv_exp_ec_calc *calc;
static struct ibv_exp_ec_mem mem;

static void begin(int polling)
{
    struct ibv_exp_ec_calc_init_attr attr = {
        .comp_mask = IBV_EXP_EC_CALC_INIT_ATTR_RESERVED - 1,
        .max_inflight_calcs = 8,
        .k = K,
        .m = M,
        .w = 8,
        .max_data_sge = K,
        .max_code_sge = M,
        .encode_matrix = code.matrix,
        .polling = polling,
    };

    calc = ibv_exp_alloc_ec_calc(pd[0], &attr);
    must(calc, "errno %d", errno);
}

static char removal[64]; /* the device is removed when this file exists */

static void setup(void)
{
    snprintf(removal, sizeof(removal), "/tmp/hcasim-erasure-%d", (int)getpid());
    setenv("HCASIM_REMOVE_WHEN", removal, 1);
    device_open();
    code_make(&code, K, M, 8);
    mr = ibv_reg_mr(pd[0], memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE);
    arrived_mr = ibv_reg_mr(pd[1], arrived, sizeof(arrived), IBV_ACCESS_LOCAL_WRITE);
    must(mr && arrived_mr, "errno %d", errno);
    for (unsigned b = 0; b < BLOCKS; b++) {
        sge[b] = (struct ibv_sge){(uintptr_t)memory[b], BLOCK, mr->lkey};
        memset(memory[b], (int)b + 1, BLOCK);
    }
    mem = (struct ibv_exp_ec_mem){sge, K, sge + K, M, BLOCK};
    begin(0);
}

static void teardown(void)
{
    if (calc) {
        ibv_exp_dealloc_ec_calc(calc);
        calc = NULL;
    }
    must_be_0(ibv_dereg_mr(mr));
    must_be_0(ibv_dereg_mr(arrived_mr));
    unlink(removal);
    device_close();
}

static void fill(unsigned seed)
{
    for (unsigned i = 0; i < K * BLOCK; i++) {
        memory[i / BLOCK][i % BLOCK] = (uint8_t)(i * 37 + i / 251 + seed);
    }
}

static void expect_code(const uint8_t (*blocks)[BLOCK])
{
    uint8_t *data[K];

    for (unsigned i = 0; i < K; i++) {
        data[i] = memory[i];
    }
    for (unsigned i = 0; i < M * BLOCK; i++) {
        ck_assert_uint_eq(blocks[K + i / BLOCK][i % BLOCK],
                          code_byte(&code, data, i / BLOCK, i % BLOCK));
    }
}

START_TEST(calls_wait_for_their_results)
{
    static const uint8_t lost[BLOCKS] = {1, 0, 1, 1, 0, 0, 0, 1, 1};
    uint8_t map[BLOCKS], decoder[K * BLOCKS], was[BLOCKS][BLOCK];

    if (_i) { /* with polling, a call polls itself */
        ibv_exp_dealloc_ec_calc(calc);
        begin(1);
    }
    for (unsigned i = 0; i < TIMES; i++) {
        fill(i);
        ck_assert_int_eq(ibv_exp_ec_encode_sync(calc, &mem), 0);
        expect_code(memory);
        memcpy(was, memory, sizeof(was));
        memcpy(map, lost, sizeof(map));
        code_decoder(&code, map, decoder);
        for (unsigned b = 0; b < BLOCKS; b++) {
            memset(memory[b], lost[b] ? 0 : memory[b][0], lost[b] ? BLOCK : 1);
        }
        ck_assert_int_eq(ibv_exp_ec_decode_sync(calc, &mem, map, decoder), 0);
        ck_assert_mem_eq(memory, was, sizeof(was));
    }
}
END_TEST

/* -- sending ----------------------------------------------------------------------------------- */

struct stripe {
    struct ibv_qp *qp[2];
    struct ibv_send_wr wr;
};

static struct stripe stripes[BLOCKS];
static struct ibv_cq *cq[2];

static void stripes_make(void)
{
    for (unsigned e = 0; e < 2; e++) {
        cq[e] = ibv_create_cq(ctx[e], 64, NULL, NULL, 0);
        must(cq[e], "errno %d", errno);
    }
    for (unsigned b = 0; b < BLOCKS; b++) {
        for (int e = 0; e < 2; e++) {
            stripes[b].qp[e] = new_qp(e, cq[e], NULL);
        }
        for (int e = 0; e < 2; e++) {
            to_rts(e, stripes[b].qp[e], stripes[b].qp[!e]->qp_num, 14);
        }
        stripes[b].wr = (struct ibv_send_wr){.wr_id = b,
                                             .sg_list = &sge[b],
                                             .num_sge = 1,
                                             .opcode = IBV_WR_SEND,
                                             .send_flags = IBV_SEND_SIGNALED};
    }
}

static void stripes_free(void)
{
    for (unsigned b = 0; b < BLOCKS; b++) {
        must_be_0(ibv_destroy_qp(stripes[b].qp[0]));
        must_be_0(ibv_destroy_qp(stripes[b].qp[1]));
    }
    must_be_0(ibv_destroy_cq(cq[0]));
    must_be_0(ibv_destroy_cq(cq[1]));
}

static void stripes_receive(void)
{
    for (unsigned b = 0; b < BLOCKS; b++) {
        struct ibv_sge to = {(uintptr_t)arrived[b], BLOCK, arrived_mr->lkey};
        struct ibv_recv_wr wr = {.sg_list = &to, .num_sge = 1}, *bad;

        must_be_0(ibv_post_recv(stripes[b].qp[1], &wr, &bad));
    }
}

/* Each block of code is sent when it is computed: what arrives is the new code, not the old. */
START_TEST(blocks_are_sent_when_they_are_computed)
{
    struct ibv_exp_ec_stripe to[BLOCKS];

    stripes_make();
    for (unsigned b = 0; b < BLOCKS; b++) {
        to[b] = (struct ibv_exp_ec_stripe){stripes[b].qp[0], &stripes[b].wr};
    }
    for (unsigned i = 0; i < TIMES; i++) {
        fill(i);
        stripes_receive();
        must_be_0(ibv_exp_ec_encode_send(calc, &mem, to, to + K));
        for (unsigned b = 0; b < BLOCKS; b++) {
            success(cq[0]);
            success(cq[1]);
        }
        ck_assert_mem_eq(arrived, memory, K * BLOCK);
        expect_code(arrived);
    }
    stripes_free();
}
END_TEST

/* Otherwise a block of data would be sent for a code that is not. */
START_TEST(nothing_is_sent_if_code_cannot_be)
{
    struct ibv_exp_ec_stripe to[BLOCKS];
    struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET};
    struct ibv_wc wc;

    stripes_make();
    for (unsigned b = 0; b < BLOCKS; b++) {
        to[b] = (struct ibv_exp_ec_stripe){stripes[b].qp[0], &stripes[b].wr};
    }
    stripes_receive();
    must_be_0(ibv_modify_qp(stripes[K + 2].qp[0], &reset, IBV_QP_STATE));
    ck_assert_int_ne(ibv_exp_ec_encode_send(calc, &mem, to, to + K), 0);
    usleep(20000); /* far longer than a block takes */
    ck_assert_int_eq(ibv_poll_cq(cq[1], 1, &wc), 0);
    to_rts(0, stripes[K + 2].qp[0], stripes[K + 2].qp[1]->qp_num, 14);
    must_be_0(ibv_exp_ec_encode_send(calc, &mem, to, to + K));
    for (unsigned b = 0; b < BLOCKS; b++) {
        success(cq[1]);
    }
    expect_code(arrived);
    stripes_free();
}
END_TEST

/* libmlx5: -EINVAL. */
START_TEST(with_polling_nothing_is_sent)
{
    struct ibv_exp_ec_stripe none[BLOCKS] = {0};

    ibv_exp_dealloc_ec_calc(calc);
    begin(1);
    ck_assert_int_eq(ibv_exp_ec_encode_send(calc, &mem, none, none + K), -EINVAL);
}
END_TEST

/* -- the end ----------------------------------------------------------------------------------- */

static int ended;

static void note(struct ibv_exp_ec_comp *comp)
{
    __atomic_add_fetch(&ended, 1, __ATOMIC_RELAXED);
}

/* The program hears of each calculation, whether it was carried out or not. */
START_TEST(calculations_in_flight_end_with_it)
{
    struct ibv_exp_ec_comp comp = {.done = note};
    int begun = 0;

    ended = 0;
    for (unsigned i = 0; i < 8; i++) {
        begun += ibv_exp_ec_encode_async(calc, &mem, &comp) == 0;
    }
    ibv_exp_dealloc_ec_calc(calc);
    calc = NULL;
    ck_assert_int_eq(begun, 8);
    ck_assert_int_eq(ended, begun);
}
END_TEST

/* The program's signals find no thread of the library. */
START_TEST(callbacks_run_without_the_programs_signals)
{
    sigset_t all;

    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    must_be_0(kill(getpid(), SIGUSR1)); /* would end the program */
    for (unsigned i = 0; i < TIMES; i++) {
        ck_assert_int_eq(ibv_exp_ec_encode_sync(calc, &mem), 0);
    }
}
END_TEST

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t has_ended = PTHREAD_COND_INITIALIZER;
static int result;

static void await_end(void)
{
    pthread_mutex_lock(&lock);
    while (!ended) {
        pthread_cond_wait(&has_ended, &lock);
    }
    pthread_mutex_unlock(&lock);
}

static void tell_end(void)
{
    pthread_mutex_lock(&lock);
    ended++;
    pthread_cond_signal(&has_ended);
    pthread_mutex_unlock(&lock);
}

static void end_it(struct ibv_exp_ec_comp *comp)
{
    ibv_exp_dealloc_ec_calc(calc);
    tell_end();
}

/* The callback runs on the library's thread, which cannot wait for its own end. */
START_TEST(a_callback_may_end_the_calculation)
{
    struct ibv_exp_ec_comp comp = {.done = end_it};

    ended = 0;
    must_be_0(ibv_exp_ec_encode_async(calc, &mem, &comp));
    await_end();
    calc = NULL;
    for (unsigned i = 0; i < TIMES; i++) { /* its resources are free */
        ended = 0;
        begin(0);
        must_be_0(ibv_exp_ec_encode_async(calc, &mem, &comp));
        await_end();
        calc = NULL;
    }
}
END_TEST

static void encode_again(struct ibv_exp_ec_comp *comp)
{
    result = ibv_exp_ec_encode_sync(calc, &mem);
    tell_end();
}

START_TEST(a_callback_may_wait_for_another_result)
{
    struct ibv_exp_ec_comp comp = {.done = encode_again};

    fill(3);
    ended = 0;
    must_be_0(ibv_exp_ec_encode_async(calc, &mem, &comp));
    await_end();
    ck_assert_int_eq(result, 0);
    expect_code(memory);
}
END_TEST

/* The child has no thread and no device. Its calls have no effect on the parent's. */
START_TEST(a_child_does_not_end_its_parents_calculation)
{
    int status;
    pid_t pid = fork();

    must(pid >= 0, "errno %d", errno);
    if (!pid) {
        int err = ibv_exp_ec_encode_sync(calc, &mem);

        ibv_exp_dealloc_ec_calc(calc);
        _exit(err == EIO ? 0 : 1);
    }
    must(waitpid(pid, &status, 0) == pid, "errno %d", errno);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    for (unsigned i = 0; i < TIMES; i++) {
        fill(i);
        ck_assert_int_eq(ibv_exp_ec_encode_sync(calc, &mem), 0);
        expect_code(memory);
    }
}
END_TEST

static void *encode_for_ever(void *opaque)
{
    int *err = opaque;

    while (!*err) {
        *err = ibv_exp_ec_encode_sync(calc, &mem);
    }
    return NULL;
}

/* A call that waits is not left alone, with polling or without. */
START_TEST(calls_end_when_the_device_is_removed)
{
    pthread_t thread;
    int err = 0, fd;

    if (_i) {
        ibv_exp_dealloc_ec_calc(calc);
        begin(1);
    }
    must_be_0(pthread_create(&thread, NULL, encode_for_ever, &err));
    fd = open(removal, O_CREAT | O_WRONLY, 0600);
    must(fd >= 0, "errno %d", errno);
    close(fd);
    must_be_0(pthread_join(thread, NULL));
    ck_assert(err == EIO || err == IBV_EXP_EC_CALC_FAIL);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("erasure");
    TCase *tc = tcase_create("erasure");

    tcase_set_timeout(tc, 2 * SECONDS);
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, calls_wait_for_their_results, 0, 2);
    tcase_add_test(tc, blocks_are_sent_when_they_are_computed);
    tcase_add_test(tc, nothing_is_sent_if_code_cannot_be);
    tcase_add_test(tc, with_polling_nothing_is_sent);
    tcase_add_test(tc, calculations_in_flight_end_with_it);
    tcase_add_test(tc, callbacks_run_without_the_programs_signals);
    tcase_add_test(tc, a_callback_may_end_the_calculation);
    tcase_add_test(tc, a_callback_may_wait_for_another_result);
    tcase_add_test(tc, a_child_does_not_end_its_parents_calculation);
    tcase_add_loop_test(tc, calls_end_when_the_device_is_removed, 0, 2);
    suite_add_tcase(s, tc);
    return run_on_own_wire(s, "erasure");
}
