/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A process forks while another of its threads opens the first device, or the connection manager's
 * file. The child does not have that thread, and must be able to do the same. Under hcasim run.
 *
 * The process has called the library before the fork. The first call makes hcasim run's front load
 * the library, and fork() does not wait for the loader: a child would have a library whose symbols
 * are only partly bound.
 *
 * Written to libibverbs alone.
 */
#include <check.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tests/programs/own_wire.h"

#define LAST_US 20000 /* an opening takes less time */
#define STEP_US 1000
#define PATIENT 30 /* seconds */

static void open_device(void)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_context *context = list && list[0] ? ibv_open_device(list[0]) : NULL;

    if (!context || ibv_close_device(context)) {
        exit(1);
    }
    ibv_free_device_list(list);
}

static void open_rdma_cm(void)
{
    int fd;

    fd = open("/dev/infiniband/rdma_cm", O_RDWR | O_CLOEXEC);
    if (fd < 0 || close(fd)) {
        exit(1);
    }
}

static void *in_a_thread(void *opaque)
{
    (*(void (**)(void))opaque)();
    return NULL;
}

static void wait_for(pid_t pid)
{
    int status;

    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
}

static void fork_while_a_thread(void (*opens)(void), useconds_t after_us)
{
    pthread_t thread;
    pid_t pid;

    ibv_node_type_str(IBV_NODE_CA); /* loads the library */
    ck_assert_int_eq(pthread_create(&thread, NULL, in_a_thread, &opens), 0);
    usleep(after_us);
    pid = fork();
    if (!pid) {
        alarm(PATIENT);
        opens();
        exit(0);
    }
    wait_for(pid);
    pthread_join(thread, NULL);
}

/* Forks each time in a process that has not opened anything yet. */
static void fork_early(void (*opens)(void))
{
    for (useconds_t us = 0; us < LAST_US; us += STEP_US) {
        pid_t pid = fork();

        if (!pid) {
            fork_while_a_thread(opens, us);
            exit(0);
        }
        wait_for(pid);
    }
}

START_TEST(a_child_opens_the_device_that_a_thread_was_opening)
{
    fork_early(open_device);
}
END_TEST

START_TEST(a_child_opens_the_connection_manager_that_a_thread_was_opening)
{
    fork_early(open_rdma_cm);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("fork-early");
    Suite *suite = suite_create("verbs-fork-early");

    tcase_set_timeout(tc, 2 * PATIENT);
    tcase_add_test(tc, a_child_opens_the_device_that_a_thread_was_opening);
    tcase_add_test(tc, a_child_opens_the_connection_manager_that_a_thread_was_opening);
    suite_add_tcase(suite, tc);
    return run_on_own_wire(suite, "fork-early");
}
