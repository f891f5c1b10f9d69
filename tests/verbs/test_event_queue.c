/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests queues of events with a descriptor (guest-lib/host/event_queue.h): the descriptor matches
 * the queue's contents, whoever takes, leaves or waits.
 */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include "guest-lib/host/event_queue.h"
#include "tests/unit/suite.h"

#define THREADS 4
#define EVENTS  1000 /* events that each thread puts */

static struct hv_event_queue queue;
static unsigned taken; /* number of calls of take() */

static void setup(void)
{
    ck_assert_int_eq(hv_event_queue_init(&queue, NULL), 0);
    taken = 0;
}

static void teardown(void)
{
    hv_event_queue_fini(&queue);
}

static void *event(uintptr_t n)
{
    return (void *)n; /* never NULL */
}

static bool take(void *ev, void *arg)
{
    taken++;
    return true;
}

static bool refuse(void *ev, void *arg)
{
    errno = ENOSPC;
    return false;
}

static bool is(const void *ev, const void *obj)
{
    return ev == obj;
}

static bool is_readable(void)
{
    struct pollfd fd = {.fd = queue.fd, .events = POLLIN};

    return poll(&fd, 1, 0) == 1;
}

static void dont_wait(void)
{
    ck_assert_int_eq(fcntl(queue.fd, F_SETFL, O_NONBLOCK), 0);
}

static void expect_nothing(void)
{
    dont_wait();
    errno = 0;
    ck_assert_ptr_null(hv_event_take(&queue, take, NULL));
    ck_assert_int_eq(errno, EAGAIN);
    ck_assert(!is_readable());
}

/* -- one thread -------------------------------------------------------------------------------- */

START_TEST(events_come_in_order_and_the_descriptor_tells_of_each)
{
    ck_assert(!is_readable());
    for (uintptr_t i = 1; i <= 3; i++) {
        hv_event_put(&queue, event(i));
    }
    for (uintptr_t i = 1; i <= 3; i++) {
        ck_assert(is_readable());
        ck_assert_ptr_eq(hv_event_take(&queue, take, NULL), event(i));
        ck_assert_uint_eq(taken, i);
    }
    expect_nothing();
    ck_assert_uint_eq(taken, 3);
}
END_TEST

/* ENOSPC of devx_async_cmd_event_read(): a message that does not fit stays first in the queue. */
START_TEST(an_event_that_is_refused_stays_the_first)
{
    hv_event_put(&queue, event(1));
    hv_event_put(&queue, event(2));
    for (int i = 0; i < 3; i++) {
        errno = 0;
        ck_assert_ptr_null(hv_event_take(&queue, refuse, NULL));
        ck_assert_int_eq(errno, ENOSPC);
        ck_assert(is_readable());
    }
    ck_assert_ptr_eq(hv_event_take(&queue, take, NULL), event(1));
    ck_assert_ptr_eq(hv_event_take(&queue, take, NULL), event(2));
    expect_nothing();
}
END_TEST

START_TEST(the_descriptor_forgets_events_that_are_taken_out)
{
    for (uintptr_t i = 0; i < 6; i++) {
        hv_event_put(&queue, event(1 + i % 2));
    }
    hv_event_take_out(&queue, is, event(1), NULL);
    for (int i = 0; i < 3; i++) {
        ck_assert_ptr_eq(hv_event_take(&queue, take, NULL), event(2));
    }
    expect_nothing();
    hv_event_take_out(&queue, is, event(1), NULL);
    expect_nothing();
}
END_TEST

/* A reader had the token, but not yet the lock, when the event was removed. Nobody waits for that
 * token here, and the reader goes back to waiting. */
START_TEST(a_token_that_a_reader_has_is_not_waited_for)
{
    uint64_t token;

    hv_event_put(&queue, event(1));
    ck_assert_int_eq(read(queue.fd, &token, sizeof(token)), sizeof(token));
    hv_event_take_out(&queue, is, event(1), NULL);
    hv_event_put(&queue, event(2));
    ck_assert_ptr_eq(hv_event_take(&queue, take, NULL), event(2));
    expect_nothing();
}
END_TEST

static unsigned freed;

static void count_freed(void *ev)
{
    freed++;
}

START_TEST(unread_events_are_freed)
{
    struct hv_event_queue other;

    ck_assert_int_eq(hv_event_queue_init(&other, count_freed), 0);
    hv_event_put(&other, event(1));
    hv_event_put(&other, event(2));
    hv_event_put(&other, event(2));
    hv_event_take_out(&other, is, event(1), count_freed);
    ck_assert_uint_eq(freed, 1);
    hv_event_queue_fini(&other);
    ck_assert_uint_eq(freed, 3);
}
END_TEST

/* A closed queue gets no more events: waiting events are dropped, later ones too, and every read
 * returns the end. */
START_TEST(a_closed_one_is_readable_for_good)
{
    struct hv_event_queue other;
    struct pollfd fd;

    ck_assert_int_eq(hv_event_queue_init(&other, count_freed), 0);
    fd = (struct pollfd){.fd = other.fd, .events = POLLIN};
    hv_event_put(&other, event(1));
    hv_event_put(&other, event(2));
    freed = 0;
    hv_event_queue_close(&other);
    ck_assert_uint_eq(freed, 2);
    hv_event_put(&other, event(3));
    ck_assert_uint_eq(freed, 3);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(poll(&fd, 1, 0), 1);
        errno = 0;
        ck_assert_ptr_null(hv_event_take(&other, take, NULL));
        ck_assert_int_eq(errno, EIO);
    }
    hv_event_queue_fini(&other);
    ck_assert_uint_eq(freed, 3);
}
END_TEST

static void *wait_in_vain(void *opaque)
{
    errno = 0;
    return hv_event_take(&queue, take, NULL) ? NULL : GINT_TO_POINTER(errno);
}

START_TEST(closing_wakes_all_waiting_threads)
{
    pthread_t waiting[3];
    void *err;

    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(pthread_create(&waiting[i], NULL, wait_in_vain, NULL), 0);
    }
    hv_event_queue_close(&queue);
    for (int i = 0; i < 3; i++) {
        pthread_join(waiting[i], &err);
        ck_assert_int_eq(GPOINTER_TO_INT(err), EIO);
    }
}
END_TEST

static void count_moved(void *ev, void *arg)
{
    ++*(unsigned *)arg;
}

/* Moved events are in order, behind the present events, and have their tokens. */
START_TEST(moved_events_take_their_tokens_along)
{
    struct hv_event_queue from;
    unsigned moved = 0;

    ck_assert_int_eq(hv_event_queue_init(&from, NULL), 0);
    hv_event_put(&queue, event(9));
    for (uintptr_t i = 0; i < 4; i++) {
        hv_event_put(&from, event(1 + i % 2));
    }
    hv_event_move(&from, &queue, is, event(1), count_moved, &moved);
    ck_assert_uint_eq(moved, 2);
    ck_assert_ptr_eq(hv_event_take(&queue, take, NULL), event(9));
    ck_assert_ptr_eq(hv_event_take(&queue, take, NULL), event(1));
    ck_assert_ptr_eq(hv_event_take(&queue, take, NULL), event(1));
    expect_nothing();
    ck_assert_ptr_eq(hv_event_take(&from, take, NULL), event(2));
    ck_assert_ptr_eq(hv_event_take(&from, take, NULL), event(2));
    hv_event_queue_fini(&from);
}
END_TEST

/* -- several threads --------------------------------------------------------------------------- */

static void *take_one(void *opaque)
{
    return hv_event_take(&queue, take, NULL);
}

START_TEST(a_waiting_thread_gets_the_next_event)
{
    pthread_t thread;
    void *got;

    ck_assert_int_eq(pthread_create(&thread, NULL, take_one, NULL), 0);
    hv_event_put(&queue, event(7));
    pthread_join(thread, &got);
    ck_assert_ptr_eq(got, event(7));
    expect_nothing();
}
END_TEST

/* A cancelled thread leaves its stack frames poisoned, and ASan then takes its own sigaltstack() at
 * the thread's end for an access to one of them. */
#ifdef __SANITIZE_ADDRESS__
#define UNDER_ASAN true
#else
#define UNDER_ASAN false
#endif

/* The thread is cancelled in read(), if not before, and holds nothing then. */
START_TEST(a_waiting_thread_can_be_cancelled)
{
    pthread_t thread;
    void *got;

    ck_assert_int_eq(pthread_create(&thread, NULL, take_one, NULL), 0);
    pthread_cancel(thread);
    pthread_join(thread, &got);
    ck_assert_ptr_eq(got, PTHREAD_CANCELED);
    hv_event_put(&queue, event(1));
    ck_assert_ptr_eq(hv_event_take(&queue, take, NULL), event(1));
    expect_nothing();
}
END_TEST

static sem_t is_inside, may_leave;

/* With the queue's lock. */
static bool take_slowly(void *ev, void *arg)
{
    sem_post(&is_inside);
    while (sem_wait(&may_leave)) {
    }
    return true;
}

static void *take_one_slowly(void *opaque)
{
    return hv_event_take(&queue, take_slowly, NULL);
}

/* A child of fork() has the lock as it was, and not the thread that would give it back. */
START_TEST(a_child_ends_a_queue_whose_lock_is_taken)
{
    pthread_t thread;
    void *got;
    pid_t pid;
    int status;

    sem_init(&is_inside, 0, 0);
    sem_init(&may_leave, 0, 0);
    hv_event_put(&queue, event(1));
    hv_event_put(&queue, event(2));
    ck_assert_int_eq(pthread_create(&thread, NULL, take_one_slowly, NULL), 0);
    while (sem_wait(&is_inside)) {
    }
    pid = fork();
    ck_assert_int_ge(pid, 0);
    if (!pid) {
        signal(SIGALRM, SIG_DFL);
        alarm(10); /* ends it if it waits for the lock */
        hv_event_queue_fini(&queue);
        _exit(0);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    sem_post(&may_leave);
    pthread_join(thread, &got);
    ck_assert_ptr_eq(got, event(1));
    ck_assert_ptr_eq(hv_event_take(&queue, take, NULL), event(2));
    expect_nothing();
}
END_TEST

static void *put_many(void *opaque)
{
    for (unsigned i = 0; i < EVENTS; i++) {
        hv_event_put(&queue, opaque);
        if (i % 8 == 7) { /* objects come and go, with their waiting events */
            hv_event_put(&queue, event(THREADS + 1));
            hv_event_take_out(&queue, is, event(THREADS + 1), NULL);
        }
    }
    return NULL;
}

static void *take_many(void *opaque)
{
    unsigned *counts = opaque;

    for (unsigned n = 0; n < EVENTS;) {
        uintptr_t got = (uintptr_t)hv_event_take(&queue, take, NULL);

        n += got <= THREADS;
        counts[got]++;
    }
    return NULL;
}

/* No wake-up is lost, and no event is delivered twice: as many readers end as there are events that
 * were not removed. */
START_TEST(nothing_is_lost_between_threads)
{
    pthread_t put[THREADS], get[THREADS];
    unsigned counts[THREADS][THREADS + 2] = {{0}};

    for (uintptr_t i = 0; i < THREADS; i++) {
        ck_assert_int_eq(pthread_create(&get[i], NULL, take_many, counts[i]), 0);
        ck_assert_int_eq(pthread_create(&put[i], NULL, put_many, event(i + 1)), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(put[i], NULL);
        pthread_join(get[i], NULL);
    }
    for (unsigned ev = 1; ev <= THREADS; ev++) {
        unsigned sum = 0;

        for (unsigned i = 0; i < THREADS; i++) {
            sum += counts[i][ev];
        }
        ck_assert_uint_eq(sum, EVENTS);
    }
    expect_nothing();
}
END_TEST

static void *move_many(void *opaque)
{
    struct hv_event_queue *from = opaque;

    for (unsigned i = 0; i < EVENTS; i++) {
        unsigned moved = 0;

        hv_event_put(from, event(1));
        hv_event_move(from, &queue, is, event(1), count_moved, &moved);
    }
    return NULL;
}

/* A moving event is taken from one queue or the other, once, whoever reads meanwhile. */
START_TEST(what_moves_is_taken_once)
{
    struct hv_event_queue from;
    unsigned here = 0, there = 0;
    pthread_t mover;

    ck_assert_int_eq(hv_event_queue_init(&from, NULL), 0);
    ck_assert_int_eq(fcntl(from.fd, F_SETFL, O_NONBLOCK), 0);
    dont_wait();
    ck_assert_int_eq(pthread_create(&mover, NULL, move_many, &from), 0);
    while (here + there < EVENTS) {
        here += hv_event_take(&from, take, NULL) != NULL;
        there += hv_event_take(&queue, take, NULL) != NULL;
    }
    pthread_join(mover, NULL);
    expect_nothing();
    ck_assert_ptr_null(hv_event_take(&from, take, NULL));
    hv_event_queue_fini(&from);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("event-queue");
    TCase *tc = tcase_create("event-queue");

    tcase_set_timeout(tc, 60);
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, events_come_in_order_and_the_descriptor_tells_of_each);
    tcase_add_test(tc, an_event_that_is_refused_stays_the_first);
    tcase_add_test(tc, the_descriptor_forgets_events_that_are_taken_out);
    tcase_add_test(tc, a_token_that_a_reader_has_is_not_waited_for);
    tcase_add_test(tc, unread_events_are_freed);
    tcase_add_test(tc, a_closed_one_is_readable_for_good);
    tcase_add_test(tc, closing_wakes_all_waiting_threads);
    tcase_add_test(tc, moved_events_take_their_tokens_along);
    tcase_add_test(tc, a_waiting_thread_gets_the_next_event);
    if (!UNDER_ASAN) {
        tcase_add_test(tc, a_waiting_thread_can_be_cancelled);
    }
    tcase_add_test(tc, a_child_ends_a_queue_whose_lock_is_taken);
    tcase_add_test(tc, nothing_is_lost_between_threads);
    tcase_add_test(tc, what_moves_is_taken_once);
    suite_add_tcase(suite, tc);
    return suite;
}
