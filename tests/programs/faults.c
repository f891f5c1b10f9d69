/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program that installs its own handlers for faults after it opened the device. Its handlers get
 * the program's own faults and none of the device's.
 */
#define _GNU_SOURCE
#include <check.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include "tests/programs/own_wire.h"
#include "tests/programs/pair.h"

#define PAGE 4096

static const int signals[] = {SIGSEGV, SIGBUS};
static volatile sig_atomic_t came, info_came, blocked;

static void note(int signal)
{
    sigset_t now;

    came++;
    pthread_sigmask(SIG_SETMASK, NULL, &now);
    blocked = sigismember(&now, signal) + 2 * sigismember(&now, SIGUSR1);
}

static void note_with_info(int signal, siginfo_t *info, void *context)
{
    info_came += info->si_signo == signal && context;
    note(signal);
}

static void setup(void)
{
    device_open();
    came = info_came = blocked = 0;
}

/* Posts a READ of memory that was unmapped meanwhile. */
static void fault_of_the_device(void)
{
    struct pair *p = pair_new(false, false);
    void *gone = map_far_below(PAGE);
    struct ibv_mr *mr = ibv_reg_mr(pd[1], gone, PAGE, IBV_ACCESS_REMOTE_READ);
    struct ibv_sge sge = {(uintptr_t)p->buf[0][0], MSG, p->mr[0]->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_READ}, *bad;

    must(mr, "errno %d", errno);
    wr.wr.rdma.remote_addr = (uintptr_t)gone;
    wr.wr.rdma.rkey = mr->rkey;
    must_be_0(munmap(gone, PAGE));
    must_be_0(ibv_post_send(p->qp[0], &wr, &bad));
    ck_assert_int_eq(completion(p->cq[0]).status, IBV_WC_REM_OP_ERR);
    must_be_0(ibv_dereg_mr(mr));
    pair_free(p);
}

START_TEST(sigaction_gets_the_programs_own)
{
    struct sigaction action = {.sa_sigaction = note_with_info, .sa_flags = SA_SIGINFO}, old;
    int number = signals[_i];

    sigaddset(&action.sa_mask, SIGUSR1);
    must_be_0(sigaction(number, &action, NULL));
    fault_of_the_device();
    ck_assert_int_eq(came, 0);
    must_be_0(raise(number));
    ck_assert_int_eq(came, 1);
    ck_assert_int_eq(info_came, 1);
    ck_assert_int_eq(blocked, 3);
    must_be_0(sigaction(number, NULL, &old));
    ck_assert(old.sa_sigaction == note_with_info && sigismember(&old.sa_mask, SIGUSR1));
    must_be_0(raise(number)); /* and again: the signal is no longer blocked */
    ck_assert_int_eq(came, 2);
}
END_TEST

START_TEST(signal_gets_the_programs_own)
{
    int number = signals[_i];
    sighandler_t before = signal(number, note); /* a sanitizer has a handler */

    ck_assert(before != SIG_ERR && before != note);
    fault_of_the_device();
    ck_assert_int_eq(came, 0);
    must_be_0(raise(number));
    ck_assert_int_eq(came, 1);
    ck_assert(signal(number, SIG_IGN) == note);
    fault_of_the_device();
    must_be_0(raise(number));
    ck_assert_int_eq(came, 1);
    ck_assert(signal(number, before) == SIG_IGN);
}
END_TEST

/* A handler for one fault only (SA_RESETHAND). */
START_TEST(a_handler_for_one_fault_is_gone_after_it)
{
    struct sigaction action = {.sa_handler = note, .sa_flags = (int)SA_RESETHAND | SA_NODEFER}, old;
    int number = signals[_i];

    must_be_0(sigaction(number, &action, NULL));
    fault_of_the_device();
    must_be_0(raise(number));
    ck_assert_int_eq(came, 1);
    ck_assert_int_eq(blocked, 0);
    must_be_0(sigaction(number, NULL, &old));
    ck_assert(old.sa_handler == SIG_DFL);
}
END_TEST

/* Without a handler a fault ends the program, as usual. */
START_TEST(a_fault_of_the_programs_ends_it)
{
    signal(signals[_i], note);
    fault_of_the_device();
    signal(signals[_i], SIG_DFL);
    raise(signals[_i]);
}
END_TEST

/* A fault that happens and is not sent by a process: no program can ignore it. */
START_TEST(a_fault_that_is_ignored_ends_the_program)
{
    volatile char *nowhere = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    signal(SIGSEGV, note);
    fault_of_the_device();
    ck_assert_int_eq(came, 0);
    signal(SIGSEGV, SIG_IGN);
    *nowhere = 1;
}
END_TEST

static volatile char *forbidden;

static void allow(int number, siginfo_t *info, void *context)
{
    came++;
    info_came = info->si_code > 0 && info->si_addr == forbidden;
    must_be_0(mprotect((void *)forbidden, PAGE, PROT_READ | PROT_WRITE));
}

/* A handler that repairs the cause: the program goes on where the fault happened. */
START_TEST(a_handler_mends_a_fault_that_happens)
{
    struct sigaction action = {.sa_sigaction = allow, .sa_flags = SA_SIGINFO};

    forbidden = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    must_be_0(sigaction(SIGSEGV, &action, NULL));
    fault_of_the_device();
    ck_assert_int_eq(came, 0);
    *forbidden = 7;
    ck_assert_int_eq(came, 1);
    ck_assert_int_eq(info_came, 1);
    ck_assert_int_eq(*forbidden, 7);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("faults");
    TCase *tc = tcase_create("faults"), *ends[2];

    tcase_set_timeout(tc, 2 * SECONDS);
    tcase_add_checked_fixture(tc, setup, device_close);
    tcase_add_loop_test(tc, sigaction_gets_the_programs_own, 0, 2);
    tcase_add_loop_test(tc, signal_gets_the_programs_own, 0, 2);
    tcase_add_loop_test(tc, a_handler_for_one_fault_is_gone_after_it, 0, 2);
    tcase_add_test(tc, a_handler_mends_a_fault_that_happens);
    suite_add_tcase(suite, tc);
    for (int i = 0; i < 2; i++) {
        ends[i] = tcase_create("ends");
        tcase_add_checked_fixture(ends[i], setup, device_close);
        tcase_add_loop_test_raise_signal(ends[i], a_fault_of_the_programs_ends_it, signals[i], i,
                                         i + 1);
        suite_add_tcase(suite, ends[i]);
    }
    tcase_add_test_raise_signal(ends[0], a_fault_that_is_ignored_ends_the_program, SIGSEGV);
    return run_on_own_wire(suite, "faults");
}
