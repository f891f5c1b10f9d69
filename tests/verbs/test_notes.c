/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests notes that threads leave for the thread that works (guest-lib/host/notes.h): each note is
 * taken once, with everything that was written before it, however many threads leave notes at the
 * same moment.
 */
#include <check.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "guest-lib/host/notes.h"
#include "tests/unit/suite.h"

#define QUEUES  6
#define THREADS 3 /* threads that post, to any queue */
#define ROUNDS  4000
#define POSTS   40 /* posts of each thread in a round */

static struct notes notes;
static struct queue {
    uint64_t posted; /* like a doorbell record */
    uint64_t seen, taken;
} queues[QUEUES];
static unsigned ready; /* posters that have posted all of a round */

static void setup(void)
{
    memset(&notes, 0, sizeof(notes));
    memset(queues, 0, sizeof(queues));
}

static void take(void *opaque, uint64_t note)
{
    struct queue *queue = &queues[note - 1];
    uint64_t posted = __atomic_load_n(&queue->posted, __ATOMIC_ACQUIRE);

    ck_assert_uint_ge(posted, queue->seen);
    queue->seen = posted;
    queue->taken++;
}

START_TEST(a_note_is_taken_once_however_often_it_was_left)
{
    ck_assert(!notes_any(&notes));
    for (unsigned i = 0; i < 3; i++) {
        ck_assert(notes_leave(&notes, 1));
        ck_assert(notes_leave(&notes, 2));
    }
    ck_assert(notes_any(&notes));
    notes_take(&notes, take, NULL);
    ck_assert(!notes_any(&notes));
    notes_take(&notes, take, NULL);
    ck_assert_uint_eq(queues[0].taken, 1);
    ck_assert_uint_eq(queues[1].taken, 1);
    ck_assert(notes_leave(&notes, 1));
    notes_take(&notes, take, NULL);
    ck_assert_uint_eq(queues[0].taken, 2);
}
END_TEST

static unsigned taken;

static void count(void *opaque, uint64_t note)
{
    taken++;
}

START_TEST(a_note_without_room_is_refused)
{
    unsigned left = 0;
    uint64_t note;

    taken = 0;
    for (note = 1; notes_leave(&notes, note); note++) {
        left++;
        ck_assert_uint_le(left, NOTES_ROOM);
    }
    ck_assert(notes_leave(&notes, note - 1)); /* a note that is there */
    notes_take(&notes, count, NULL);
    ck_assert_uint_eq(taken, left);
    ck_assert(notes_leave(&notes, note));
}
END_TEST

static pthread_barrier_t begin, end;

static void *posts(void *opaque)
{
    unsigned at = *(unsigned *)opaque;

    for (unsigned round = 0; round < ROUNDS; round++) {
        pthread_barrier_wait(&begin);
        for (unsigned i = 0; i < POSTS; i++) {
            at = at * 1103515245u + 12345u;
            __atomic_fetch_add(&queues[(at >> 16) % QUEUES].posted, 1, __ATOMIC_RELEASE);
            while (!notes_leave(&notes, (at >> 16) % QUEUES + 1)) {
            }
        }
        __atomic_fetch_add(&ready, 1, __ATOMIC_RELEASE);
        pthread_barrier_wait(&end);
    }
    return NULL;
}

/* The last look of a round is after its last post: each queue's last post is seen then, or was seen
 * before. */
START_TEST(no_post_is_lost_between_threads)
{
    unsigned seeds[THREADS];
    pthread_t poster[THREADS];

    pthread_barrier_init(&begin, NULL, THREADS + 1);
    pthread_barrier_init(&end, NULL, THREADS + 1);
    for (unsigned i = 0; i < THREADS; i++) {
        seeds[i] = i + 1;
        ck_assert_int_eq(pthread_create(&poster[i], NULL, posts, &seeds[i]), 0);
    }
    for (unsigned round = 0; round < ROUNDS; round++) {
        bool last;

        __atomic_store_n(&ready, 0, __ATOMIC_RELAXED);
        pthread_barrier_wait(&begin);
        do {
            last = __atomic_load_n(&ready, __ATOMIC_ACQUIRE) == THREADS;
            if (notes_any(&notes)) {
                notes_take(&notes, take, NULL);
            }
        } while (!last);
        for (unsigned i = 0; i < QUEUES; i++) {
            ck_assert_uint_eq(queues[i].seen, queues[i].posted);
        }
        pthread_barrier_wait(&end);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(poster[i], NULL);
    }
    pthread_barrier_destroy(&begin);
    pthread_barrier_destroy(&end);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("notes");
    TCase *tc = tcase_create("notes");

    tcase_add_checked_fixture(tc, setup, NULL);
    tcase_add_test(tc, a_note_is_taken_once_however_often_it_was_left);
    tcase_add_test(tc, a_note_without_room_is_refused);
    tcase_add_test(tc, no_post_is_lost_between_threads);
    suite_add_tcase(suite, tc);
    return suite;
}
