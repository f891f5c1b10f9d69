/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program that calls verbs with arbitrary values (tests/fuzz/verbs_ops.h) in real time, from one
 * thread and from four; each thread has its own objects on the device that they share.
 *
 * VALUES_RUNS: the number of lists of calls that a thread makes. VALUES_SEED: the seed of the
 * lists.
 */
#include <check.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "tests/fuzz/verbs_ops.h"
#include "tests/programs/own_wire.h"

#define THREADS 4
#define MAX_LEN 1000

static struct verbs_world world;

static unsigned number(const char *name, unsigned otherwise)
{
    const char *value = getenv(name);

    return value ? (unsigned)atoi(value) : otherwise;
}

static void setup(void)
{
    struct ibv_device **list = ibv_get_device_list(NULL);

    ck_assert_ptr_nonnull(list);
    world.ctx = ibv_open_device(list[0]);
    ck_assert_ptr_nonnull(world.ctx);
    ibv_free_device_list(list);
    world.pd = ibv_alloc_pd(world.ctx);
    ck_assert_ptr_nonnull(world.pd);
    ck_assert_int_eq(ibv_query_gid(world.ctx, 1, 1, &world.gid), 0);
}

static void teardown(void)
{
    ck_assert_int_eq(ibv_dealloc_pd(world.pd), 0);
    ck_assert_int_eq(ibv_close_device(world.ctx), 0);
}

static void settle(void *opaque)
{
    usleep(50);
}

static void *thread_main(void *seed)
{
    uint8_t data[MAX_LEN];
    unsigned short state[3] = {(unsigned short)(uintptr_t)seed,
                               (unsigned short)number("VALUES_SEED", 1), 0};

    for (unsigned run = number("VALUES_RUNS", 300); run; run--) {
        size_t len = (size_t)nrand48(state) % (MAX_LEN + 1);

        for (size_t i = 0; i < len; i++) { /* half of them small, which is the common case */
            long v = nrand48(state);

            data[i] = (uint8_t)(v >> 8 & 1 ? v >> 16 : v >> 16 & 3);
        }
        verbs_ops_run(&world, data, len);
    }
    return NULL;
}

static void run(unsigned threads)
{
    pthread_t thread[THREADS];

    world.settle = settle;
    world.flush_polls = 100000;
    world.own_events = threads == 1;
    ck_assert_int_eq(fcntl(world.ctx->async_fd, F_SETFL, O_NONBLOCK), 0);
    for (uintptr_t i = 0; i < threads; i++) {
        ck_assert_int_eq(pthread_create(&thread[i], NULL, thread_main, (void *)(i + 1)), 0);
    }
    for (unsigned i = 0; i < threads; i++) {
        ck_assert_int_eq(pthread_join(thread[i], NULL), 0);
    }
}

START_TEST(no_value_from_one_thread_ends_the_program)
{
    run(1);
}
END_TEST

START_TEST(no_value_from_four_threads_ends_the_program)
{
    run(THREADS);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("values");
    TCase *tc = tcase_create("values");

    tcase_set_timeout(tc, 120);
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, no_value_from_one_thread_ends_the_program);
    tcase_add_test(tc, no_value_from_four_threads_ends_the_program);
    suite_add_tcase(suite, tc);
    return run_on_own_wire(suite, "values");
}
