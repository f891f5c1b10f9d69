/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests that one thread closes a context while another thread is in a call on it, or on objects
 * that it left. Stock rdma-core defines the results: a blocked read() keeps its file, and calls
 * that only access the program's memory continue. Also built for ThreadSanitizer and
 * AddressSanitizer, which find accesses to memory that the closing has freed.
 */
#define _GNU_SOURCE
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "guest-lib/verbs/kernel/devx.h"
#include "guest-lib/verbs/kernel/events.h"
#include "guest-lib/verbs/kernel/hca.h"
#include "tests/programs/own_wire.h"

#define ROUNDS 40

#ifdef __SANITIZE_THREAD__
/* These tests read and close a descriptor at the same time on purpose, and destroy a channel after
 * a thread has begun to read. The kernel orders the two, which ThreadSanitizer does not see. */
const char *__tsan_default_suppressions(void) __attribute__((visibility("default")));
const char *__tsan_default_suppressions(void)
{
    return "race_top:close\nrace:ibv_destroy_comp_channel\n";
}
#endif

static struct ibv_device **list;

static void setup(void)
{
    list = ibv_get_device_list(NULL);
    ck_assert(list && list[0]);
}

static void teardown(void)
{
    ibv_free_device_list(list);
}

static struct ibv_context *open_device(void)
{
    struct ibv_context *ctx = ibv_open_device(list[0]);

    ck_assert_ptr_nonnull(ctx);
    return ctx;
}

/* -- threads ----------------------------------------------------------------------------------- */

struct reader {
    pthread_t thread;
    gint tid; /* the thread's number in the kernel; 0: not begun */
    struct ibv_context *ctx;
    struct ibv_comp_channel *channel;
    int answer, err;
    bool once;   /* it asks for one event */
    gint events; /* told so far */
};

static void begin(struct reader *reader, void *(*run)(void *reader))
{
    ck_assert_int_eq(pthread_create(&reader->thread, NULL, run, reader), 0);
}

/* True: it was cancelled. */
static bool end(struct reader *reader)
{
    void *how;

    ck_assert_int_eq(pthread_join(reader->thread, &how), 0);
    return how == PTHREAD_CANCELED;
}

/* Waits until the thread is in read(). */
static void until_it_reads(struct reader *reader)
{
    char path[64], text[32];
    long number = -1;

    while (number != SYS_read) {
        FILE *file;

        usleep(200);
        snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", g_atomic_int_get(&reader->tid));
        file = g_atomic_int_get(&reader->tid) ? fopen(path, "r") : NULL;
        if (file) {
            number = fgets(text, sizeof(text), file) && strncmp(text, "running", 7) != 0
                         ? strtol(text, NULL, 10)
                         : -1;
            fclose(file);
        }
    }
}

static void note_tid(struct reader *reader)
{
    g_atomic_int_set(&reader->tid, (gint)syscall(SYS_gettid));
}

/* -- asynchronous events ----------------------------------------------------------------------- */

/* It can be cancelled only while it asks for an event: Check must not be left in the middle. */
static void *read_async(void *opaque)
{
    struct reader *reader = opaque;
    struct ibv_async_event event;

    note_tid(reader);
    do {
        pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
        reader->answer = ibv_get_async_event(reader->ctx, &event);
        reader->err = errno;
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
        if (!reader->answer) {
            ck_assert_int_eq(event.event_type, IBV_EVENT_PORT_ACTIVE);
            ck_assert_int_eq(event.element.port_num, 1);
            ibv_ack_async_event(&event);
            g_atomic_int_inc(&reader->events);
        }
    } while (!reader->answer && !reader->once);
    return NULL;
}

/* The kernel's file has no end before its last descriptor is closed: the reader keeps sleeping. */
START_TEST(a_reader_of_asynchronous_events_waits_on)
{
    struct reader reader = {.ctx = open_device()};
    struct ibv_context *other = _i ? open_device() : NULL; /* keeps the HCA in use */

    begin(&reader, read_async);
    until_it_reads(&reader);
    ck_assert_int_eq(ibv_close_device(reader.ctx), 0);
    usleep(5000);
    ck_assert_int_eq(pthread_tryjoin_np(reader.thread, NULL), EBUSY);
    ck_assert_int_eq(pthread_cancel(reader.thread), 0);
    end(&reader);
    if (other) {
        ck_assert_int_eq(ibv_close_device(other), 0);
    }
}
END_TEST

static const struct drv_event port_up = {.type = PRM_EVENT_TYPE_PORT_CHANGE, .sub_type = 4};

/* Returns how many events of the context nobody has read. */
static int unread(struct ibv_context *ctx)
{
    struct reader reader = {.ctx = ctx};

    ck_assert_int_eq(fcntl(ctx->async_fd, F_SETFL, O_NONBLOCK), 0);
    read_async(&reader);
    ck_assert_int_eq(reader.answer, -1);
    ck_assert_int_eq(reader.err, EAGAIN);
    return reader.events;
}

/* The reader is in its call when the context is closed. Its call returns an event that was there,
 * or waits until it is cancelled, or fails because it came too late. The context's unread events
 * disappear with it; another context receives all events. */
START_TEST(events_come_while_it_is_closed)
{
    struct ibv_context *other = open_device();
    int all = 0;

    for (int i = 0; i < ROUNDS; i++) {
        struct reader reader = {.ctx = open_device(), .once = true};
        int events = 1 + i % 4;
        bool is_told = i % 8 >= 4; /* before it is closed */

        begin(&reader, read_async);
        until_it_reads(&reader);
        for (int n = 0; n < events; n++) {
            hv_events_dispatch(hv_hca_of(other), &port_up);
        }
        while (is_told && !g_atomic_int_get(&reader.events)) {
            sched_yield();
        }
        usleep((useconds_t)(i % 5) * 10);
        ck_assert_int_eq(ibv_close_device(reader.ctx), 0);
        hv_events_dispatch(hv_hca_of(other), &port_up); /* which is not for it any more */
        pthread_cancel(reader.thread);
        if (!end(&reader) && reader.answer) {
            ck_assert_int_eq(reader.err, EBADF);
        }
        ck_assert_int_ge(reader.events, is_told);
        ck_assert_int_le(reader.events, 1);
        all += events + 1;
    }
    ck_assert_int_eq(unread(other), all);
    ck_assert_int_eq(ibv_close_device(other), 0);
}
END_TEST

/* -- DevX event channels ----------------------------------------------------------------------- */

static void *close_context(void *ctx)
{
    ck_assert_int_eq(ibv_close_device(ctx), 0);
    return NULL;
}

struct events {
    struct hv_hca *hca;
    gint stop;
};

static void *make_events(void *opaque)
{
    struct events *events = opaque;

    while (!g_atomic_int_get(&events->stop)) {
        hv_dv_event(events->hca, &port_up);
    }
    return NULL;
}

/* One thread closes the context, another one its event channel, while events come. Nobody is
 * subscribed afterwards, whoever was first. */
START_TEST(an_event_channel_goes_beside_its_context)
{
    struct ibv_context *other = open_device();
    struct events events = {.hca = hv_hca_of(other)};
    pthread_t maker, closer;

    ck_assert_int_eq(pthread_create(&maker, NULL, make_events, &events), 0);
    for (int i = 0; i < ROUNDS; i++) {
        struct ibv_context *ctx = open_device();
        struct mlx5dv_devx_event_channel *channel = hv_dv_devx_create_event_channel(ctx, 0);
        uint16_t port = PRM_EVENT_TYPE_PORT_CHANGE;

        ck_assert_ptr_nonnull(channel);
        ck_assert_int_eq(hv_dv_devx_subscribe_devx_event(channel, NULL, sizeof(port), &port, 7), 0);
        ck_assert_int_eq(pthread_create(&closer, NULL, close_context, ctx), 0);
        usleep((useconds_t)(i % 10) * 20);
        hv_dv_devx_destroy_event_channel(channel);
        ck_assert_int_eq(pthread_join(closer, NULL), 0);
        ck_assert_uint_eq(events.hca->subscriptions->len, 0);
    }
    g_atomic_int_set(&events.stop, 1);
    ck_assert_int_eq(pthread_join(maker, NULL), 0);
    ck_assert_int_eq(ibv_close_device(other), 0);
}
END_TEST

/* -- completion channels ----------------------------------------------------------------------- */

static void *read_channel(void *opaque)
{
    struct reader *reader = opaque;
    struct ibv_cq *cq;
    void *cq_context;

    note_tid(reader);
    reader->answer = ibv_get_cq_event(reader->channel, &cq, &cq_context);
    reader->err = errno;
    return NULL;
}

/* uverbs_completion_event_file_destroy_uobj(): a reader is notified, and no longer needs the
 * channel. */
START_TEST(a_reader_of_a_channel_is_notified)
{
    struct ibv_context *other = _i ? open_device() : NULL;

    for (int i = 0; i < ROUNDS; i++) {
        struct reader reader = {.ctx = open_device()};

        reader.channel = ibv_create_comp_channel(reader.ctx);
        ck_assert_ptr_nonnull(reader.channel);
        begin(&reader, read_channel);
        until_it_reads(&reader);
        ck_assert_int_eq(ibv_close_device(reader.ctx), 0);
        ck_assert_int_eq(ibv_destroy_comp_channel(reader.channel), 0);
        end(&reader);
        ck_assert_int_eq(reader.answer, -1);
        ck_assert_int_eq(reader.err, EIO);
    }
    if (other) {
        ck_assert_int_eq(ibv_close_device(other), 0);
    }
}
END_TEST

/* Its descriptor stays open, and a later read gets the answer. */
START_TEST(a_channel_says_so_afterwards)
{
    struct reader reader = {.ctx = open_device()};

    reader.channel = ibv_create_comp_channel(reader.ctx);
    ck_assert_ptr_nonnull(reader.channel);
    ck_assert_int_eq(ibv_close_device(reader.ctx), 0);
    for (int i = 0; i < 2; i++) {
        read_channel(&reader);
        ck_assert_int_eq(reader.answer, -1);
        ck_assert_int_eq(reader.err, EIO);
    }
    ck_assert_int_eq(ibv_destroy_comp_channel(reader.channel), 0);
}
END_TEST

/* -- polling ----------------------------------------------------------------------------------- */

struct poller {
    pthread_t thread;
    struct ibv_cq *cq;
    gint polls, stop;
};

static void *poll_empty(void *opaque)
{
    struct poller *poller = opaque;
    struct ibv_wc wc;

    while (!g_atomic_int_get(&poller->stop)) {
        ck_assert_int_eq(ibv_poll_cq(poller->cq, 1, &wc), 0);
        g_atomic_int_inc(&poller->polls);
    }
    return NULL;
}

static void until_it_polled(struct poller *poller, gint more)
{
    gint polls = g_atomic_int_get(&poller->polls);

    while (g_atomic_int_get(&poller->polls) - polls < more) {
        sched_yield();
    }
}

/* mlx5_poll_cq() reads the CQ's ring, which belongs to the program, whatever happened to the
 * context. */
START_TEST(an_empty_cq_stays_empty)
{
    static struct ibv_cq *left[ROUNDS]; /* nobody frees these any more */
    struct ibv_context *other = _i ? open_device() : NULL;

    for (int i = 0; i < ROUNDS; i++) {
        struct ibv_context *ctx = open_device();
        struct poller pollers[2] = {{0}};

        left[i] = ibv_create_cq(ctx, 15, NULL, NULL, 0);
        ck_assert_ptr_nonnull(left[i]);
        for (int p = 0; p < 2; p++) {
            pollers[p].cq = left[i];
            ck_assert_int_eq(pthread_create(&pollers[p].thread, NULL, poll_empty, &pollers[p]), 0);
            until_it_polled(&pollers[p], 1 + i);
        }
        ck_assert_int_eq(ibv_close_device(ctx), 0);
        for (int p = 0; p < 2; p++) {
            until_it_polled(&pollers[p], 3);
            g_atomic_int_set(&pollers[p].stop, 1);
            ck_assert_int_eq(pthread_join(pollers[p].thread, NULL), 0);
        }
    }
    if (other) {
        ck_assert_int_eq(ibv_close_device(other), 0);
    }
}
END_TEST

/* mlx5_post_recv() only writes to memory, too. */
START_TEST(a_receive_is_posted_to_what_is_left)
{
    struct ibv_context *ctx = open_device();
    struct ibv_pd *pd = ibv_alloc_pd(ctx);
    struct ibv_cq *cq = ibv_create_cq(ctx, 15, NULL, NULL, 0);
    struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC,
                                    .send_cq = cq,
                                    .recv_cq = cq,
                                    .cap = {.max_recv_wr = 4, .max_recv_sge = 1}};
    static struct ibv_qp *qp;
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
    struct ibv_recv_wr wr = {.wr_id = 1}, *bad;
    struct ibv_wc wc;

    qp = ibv_create_qp(pd, &init);
    ck_assert_ptr_nonnull(qp);
    ck_assert_int_eq(
        ibv_modify_qp(qp, &attr,
                      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
        0);
    ck_assert_int_eq(ibv_close_device(ctx), 0);
    ck_assert_int_eq(ibv_post_recv(qp, &wr, &bad), 0);
    ck_assert_int_eq(ibv_poll_cq(cq, 1, &wc), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("verbs-closing");
    TCase *tc = tcase_create("closing");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 120);
    tcase_add_loop_test(tc, a_reader_of_asynchronous_events_waits_on, 0, 2);
    tcase_add_test(tc, events_come_while_it_is_closed);
    tcase_add_test(tc, an_event_channel_goes_beside_its_context);
    tcase_add_loop_test(tc, a_reader_of_a_channel_is_notified, 0, 2);
    tcase_add_test(tc, a_channel_says_so_afterwards);
    tcase_add_loop_test(tc, an_empty_cq_stays_empty, 0, 2);
    tcase_add_test(tc, a_receive_is_posted_to_what_is_left);
    suite_add_tcase(suite, tc);
    return run_on_own_wire(suite, "verbs-closing");
}
