/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Programs whose device is removed (HCASIM_REMOVE_WHEN) while their threads use it. Calls fail or
 * do nothing, and none of them hangs or crashes; threads that wait for an event wake up; every
 * object can be destroyed.
 *
 * Written to libibverbs alone. Under ThreadSanitizer it also shows that the removal is synchronized
 * with what threads do meanwhile.
 */
#include <check.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>
#include "tests/programs/own_wire.h"
#include "tests/programs/pair.h"

#define THREADS 6
#define ROUNDS  50 /* rounds that each thread continues after the removal */

static char file[64]; /* the device is removed when this file exists */

static void one_device_open(void)
{
    snprintf(file, sizeof(file), "/tmp/hcasim-removal-%d", (int)getpid());
    setenv("HCASIM_REMOVE_WHEN", file, 1);
    device_open();
}

static void two_devices_open(void)
{
    use_two_devices();
    one_device_open();
}

static void close_all(void)
{
    unlink(file);
    device_close();
}

static void remove_device(void)
{
    int fd = open(file, O_CREAT | O_WRONLY, 0600);

    must(fd >= 0, "errno %d", errno);
    close(fd);
}

/* Waits until the first device's context gets the event. */
static void wait_until_told(void)
{
    struct ibv_async_event event;

    must_be_0(ibv_get_async_event(ctx[0], &event));
    ck_assert_int_eq(event.event_type, IBV_EVENT_DEVICE_FATAL);
    ibv_ack_async_event(&event);
}

static bool gone;

/* Accepts 0, or an errno that a call may return after the removal. */
static void may_be(int err)
{
    must(!err || err == EIO || err == ENOMEM, "errno %d", err);
}

static void poll_all(struct pair *p)
{
    struct ibv_wc wc;

    for (int end = 0; end < 2; end++) {
        for (int n = 0; n < DEPTH; n++) {
            must(ibv_poll_cq(p->cq[end], 1, &wc) >= 0, "errno %d", errno);
        }
    }
}

static void try_recv(struct pair *p, int end, unsigned slot)
{
    struct ibv_sge sge = {(uintptr_t)p->buf[end][slot % DEPTH], MSG, p->mr[end]->lkey};
    struct ibv_recv_wr wr = {.wr_id = slot, .sg_list = &sge, .num_sge = 1}, *bad;

    may_be(ibv_post_recv(p->qp[end], &wr, &bad));
}

/* Sends messages, and registers and deregisters a region. */
static void *uses_it(void *opaque)
{
    struct pair *p = opaque;

    for (unsigned n = 0, after = 0; after < ROUNDS; n++) {
        struct ibv_mr *mr;

        after += __atomic_load_n(&gone, __ATOMIC_ACQUIRE);
        try_recv(p, n & 1, n);
        may_be(try_send(p, !(n & 1), n));
        may_be(ibv_req_notify_cq(p->cq[0], 0));
        poll_all(p);
        mr = ibv_reg_mr(pd[n & 1], p->buf[0], MSG, IBV_ACCESS_LOCAL_WRITE);
        may_be(mr ? ibv_dereg_mr(mr) : errno);
    }
    return NULL;
}

static void *waits_for_a_completion(void *opaque)
{
    struct pair *p = opaque;
    struct ibv_cq *cq;
    void *cookie;

    must(ibv_get_cq_event(p->channel[0], &cq, &cookie) == -1, "there is one");
    must(errno == EIO, "errno %d", errno);
    return NULL;
}

/* Each thread has its own queues; one thread sleeps. */
START_TEST(threads_go_on)
{
    struct pair *p[THREADS], *silent = pair_new(true, false);
    pthread_t thread[THREADS], sleeper;

    gone = false;
    must_be_0(pthread_create(&sleeper, NULL, waits_for_a_completion, silent));
    for (unsigned i = 0; i < THREADS; i++) {
        p[i] = pair_new(false, false);
        must_be_0(pthread_create(&thread[i], NULL, uses_it, p[i]));
    }
    usleep(50000);
    remove_device();
    wait_until_told();
    pthread_join(sleeper, NULL);
    __atomic_store_n(&gone, true, __ATOMIC_RELEASE);
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
        pair_free(p[i]);
    }
    pair_free(silent);
}
END_TEST

static void *makes_and_destroys(void *opaque)
{
    for (unsigned after = 0; after < ROUNDS; after += __atomic_load_n(&gone, __ATOMIC_ACQUIRE)) {
        struct ibv_cq *cq = ibv_create_cq(ctx[0], 8, NULL, NULL, 0);
        struct ibv_comp_channel *channel;
        struct ibv_context *own;

        may_be(cq ? 0 : errno);
        channel = ibv_create_comp_channel(ctx[0]);
        may_be(channel ? 0 : errno);
        own = ibv_open_device(list[0]);
        must(own || errno == ENOENT || errno == EIO, "errno %d", errno);
        must(!cq || ibv_destroy_cq(cq) == 0, "errno %d", errno);
        must(!channel || ibv_destroy_comp_channel(channel) == 0, "errno %d", errno);
        must(!own || ibv_close_device(own) == 0, "errno %d", errno);
    }
    return NULL;
}

START_TEST(threads_make_and_destroy)
{
    pthread_t thread[THREADS];

    gone = false;
    for (unsigned i = 0; i < THREADS; i++) {
        must_be_0(pthread_create(&thread[i], NULL, makes_and_destroys, NULL));
    }
    usleep(50000);
    remove_device();
    wait_until_told();
    __atomic_store_n(&gone, true, __ATOMIC_RELEASE);
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
    }
}
END_TEST

START_TEST(a_removed_device_is_not_found)
{
    struct ibv_device **found;
    int num = -1;

    remove_device();
    wait_until_told();
    found = ibv_get_device_list(&num);
    ck_assert_ptr_nonnull(found);
    ck_assert_int_eq(num, 0);
    ck_assert_ptr_null(found[0]);
    ibv_free_device_list(found);
    ck_assert_ptr_null(ibv_open_device(list[0]));
    ck_assert_int_eq(errno, ENOENT);
}
END_TEST

/* The first device's peer gets no more answers, and keeps working. */
START_TEST(another_device_stays)
{
    struct pair *p = pair_new(false, false);
    struct ibv_port_attr attr;
    struct ibv_device **found;
    int num;

    message(p, 0, 1);
    remove_device();
    wait_until_told();
    found = ibv_get_device_list(&num);
    ck_assert_int_eq(num, 1);
    ck_assert_str_eq(ibv_get_device_name(found[0]), "mlx5_1");
    ibv_free_device_list(found);
    ck_assert_int_eq(ibv_query_port(ctx[0], 1, &attr), EIO);
    ck_assert_int_eq(ibv_query_port(ctx[1], 1, &attr), 0);
    post_send(p, 1, 2);
    ck_assert_int_eq(completion(p->cq[1]).status, IBV_WC_RETRY_EXC_ERR);
    pair_free(p);
}
END_TEST

static TCase *tests_with(Suite *s, const char *name, SFun open)
{
    TCase *tc = tcase_create(name);

    suite_add_tcase(s, tc);
    tcase_set_timeout(tc, 2 * SECONDS);
    tcase_add_checked_fixture(tc, open, close_all);
    tcase_add_test(tc, threads_go_on);
    tcase_add_test(tc, threads_make_and_destroy);
    return tc;
}

int main(void)
{
    Suite *s = suite_create("removal");
    TCase *one = tests_with(s, "one device", one_device_open);
    TCase *two = tests_with(s, "two devices", two_devices_open);

    tcase_add_test(one, a_removed_device_is_not_found);
    tcase_add_test(two, another_device_stays);
    return run_on_own_wire(s, "removal");
}
