/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests a receiver on a shared-memory segment that lives but does not run: its senders learn that
 * no answer can be expected yet, until it has processed what they sent, or is dead.
 */
#include "tests/unit/wire_nodes.h"
#include "wire/capture.h"
#include "wire/shm/port.h"
#include "tests/unit/suite.h"

#include <check.h>
#include <glib/gstdio.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static struct wire_pause mark;

/* Asks for the first time. */
static bool is_paused(struct node *n, uint8_t to)
{
    uint8_t mac[6];

    mac_of(mac, to);
    mark = (struct wire_pause){0};
    return wire_is_paused(n->port, mac, &mark);
}

/* Asks again about the frames that were under way then. */
static bool is_still_paused(struct node *n, uint8_t to)
{
    uint8_t mac[6];

    mac_of(mac, to);
    return wire_is_paused(n->port, mac, &mark);
}

static bool is_clear(void)
{
    return !mark.receiver && !mark.tx && !mark.rx;
}

START_TEST(frames_that_are_not_taken_pause)
{
    struct node *a, *b;

    two(&a, &b);
    ck_assert(!is_paused(a, 2));
    ck_assert(is_clear());
    ck_assert(send_frame(a, 2, 0, 64));
    ck_assert(is_paused(a, 2));
    for (int i = 0; i < 10; i++) {
        ck_assert(is_still_paused(a, 2));
    }
    ck_assert_uint_eq(drain(b), 1);
    ck_assert(!is_still_paused(a, 2));
    ck_assert(is_clear());
    leave(a);
    leave(b);
}
END_TEST

/* The frame was taken, but not answered yet: the turn must end, which is when its packets are
 * flushed. */
START_TEST(the_turn_that_took_a_frame_has_to_end)
{
    struct node *a, *b;

    two(&a, &b);
    ck_assert(send_frame(a, 2, 0, 64));
    ck_assert_uint_eq(wire_poll(b->port, 64), 1);
    ck_assert(is_paused(a, 2));
    wire_tx_flush(b->port);
    ck_assert(!is_still_paused(a, 2));
    /* An owner that does not flush begins another turn. */
    ck_assert(send_frame(a, 2, 0, 64));
    ck_assert_uint_eq(wire_poll(b->port, 64), 1);
    ck_assert(is_paused(a, 2));
    ck_assert_uint_eq(wire_poll(b->port, 64), 0);
    ck_assert(!is_still_paused(a, 2));
    leave(a);
    leave(b);
}
END_TEST

/* The frame was taken and the turn is over, but the owner still has work from it. */
START_TEST(a_pause_lasts_until_the_owner_owes_nothing)
{
    struct node *a, *b;

    two(&a, &b);
    ck_assert(send_frame(a, 2, 0, 64));
    ck_assert_uint_eq(drain(b), 1);
    wire_owe(b->port, true); /* too late for the first frame */
    ck_assert(!is_paused(a, 2));
    ck_assert(send_frame(a, 2, 0, 64));
    ck_assert(is_paused(a, 2));
    for (int i = 0; i < 10; i++) {
        ck_assert_uint_eq(drain(b), i == 0);
        wire_tx_flush(b->port);
        ck_assert(is_still_paused(a, 2));
    }
    wire_owe(b->port, false);
    ck_assert(!is_still_paused(a, 2));
    leave(a);
    leave(b);
}
END_TEST

/* The answer waits for room here, because this member does not take the frames that fill it. */
START_TEST(an_answer_that_waits_for_room_is_owed)
{
    struct node *a, *b;

    two(&a, &b);
    while (send_frame(b, 1, 0, 64)) {
    }
    ck_assert(send_frame(a, 2, 0, 64));
    ck_assert_uint_eq(drain(b), 1);
    wire_tx_flush(b->port);
    ck_assert(is_paused(a, 2));
    ck_assert_uint_gt(drain(a), 0);
    ck_assert(is_still_paused(a, 2));
    ck_assert_uint_eq(drain(b), 0); /* there is room again, and nothing waits for it */
    wire_tx_flush(b->port);
    ck_assert(!is_still_paused(a, 2));
    leave(a);
    leave(b);
}
END_TEST

/* For a lost frame nothing is owed: other frames that never end prolong the wait only so far. */
START_TEST(frames_of_a_sender_that_never_ends_prolong_a_pause_only_so_far)
{
    struct node *a, *b;
    unsigned sent = 0;

    two(&a, &b);
    while (send_frame(b, 1, 0, 64)) {
    }
    ck_assert(send_frame(a, 2, 0, 64));
    ck_assert_uint_eq(drain(b), 1);
    wire_tx_flush(b->port);
    mark = (struct wire_pause){0};
    while (is_still_paused(a, 2)) {
        drain(a);
        drain(b);
        while (send_frame(b, 1, 0, 64)) {
            sent++;
        }
        wire_tx_flush(b->port);
        ck_assert_uint_le(sent, 258 * SHM_RING);
    }
    ck_assert_uint_ge(sent, 255 * SHM_RING);
    leave(a);
    leave(b);
}
END_TEST

/* Later frames of others do not prolong it: only the frames at the time of the question count. */
START_TEST(later_frames_do_not_prolong_it)
{
    struct node *a, *b;

    two(&a, &b);
    ck_assert(send_frame(a, 2, 0, 64));
    ck_assert(send_frame(a, 2, 0, 64));
    ck_assert(is_paused(a, 2));
    ck_assert(send_frame(a, 2, 0, 64));
    ck_assert_uint_eq(wire_poll(b->port, 1), 1);
    wire_tx_flush(b->port);
    ck_assert(is_still_paused(a, 2));
    ck_assert_uint_eq(wire_poll(b->port, 1), 1);
    wire_tx_flush(b->port);
    ck_assert(!is_still_paused(a, 2));
    ck_assert(is_paused(a, 2)); /* the third one still lies there */
    leave(a);
    leave(b);
}
END_TEST

/* The answer may be waiting here: it was this member that did not run. */
START_TEST(an_answer_that_was_not_looked_at_may_be_the_one)
{
    struct node *a, *b;

    two(&a, &b);
    ck_assert(send_frame(b, 1, 0, 64));
    ck_assert(is_paused(a, 2));
    ck_assert(is_still_paused(a, 2));
    ck_assert_uint_eq(drain(a), 1);
    ck_assert(!is_still_paused(a, 2));
    /* Not for ever, if its frames never end: so many as can have waited. */
    ck_assert(send_frame(b, 1, 0, 64));
    ck_assert(is_paused(a, 2));
    for (int i = 0; i < SHM_RING; i++) {
        ck_assert(is_still_paused(a, 2));
        ck_assert(send_frame(b, 1, 0, 64));
        ck_assert_uint_eq(wire_poll(a->port, 1), 1);
    }
    ck_assert(!is_still_paused(a, 2));
    leave(a);
    leave(b);
}
END_TEST

START_TEST(positions_that_wrap_pause_as_well)
{
    struct node *a, *b;
    struct shm_port *from, *to;
    uint32_t start = UINT32_MAX - (uint32_t)_i;

    two(&a, &b);
    from = shm_port_of(a->port);
    to = shm_port_of(b->port);
    ck_assert(send_frame(a, 2, 0, 64)); /* now there is a ring */
    ck_assert_uint_eq(drain(b), 1);
    from->peer[1]->tx_head = from->peer[1]->tx_tail = start;
    to->source[0].pos = start;
    ck_assert_uint_eq(drain(b), 0);
    atomic_store(&to->seg.region[1]->ends[0].settled, shm_tail(from->seg.gen, start));
    ck_assert(!is_paused(a, 2));
    for (int i = 0; i < 300; i++) {
        ck_assert(send_frame(a, 2, 0, 64));
    }
    ck_assert(is_paused(a, 2));
    ck_assert_uint_eq(drain(b), 300);
    ck_assert(!is_still_paused(a, 2));
    leave(a);
    leave(b);
}
END_TEST

START_TEST(a_missing_member_and_the_own_port_do_not_pause)
{
    struct node *a, *b;

    two(&a, &b);
    ck_assert(send_frame(a, 2, 0, 64));
    ck_assert(!is_paused(a, 1));
    ck_assert(!is_paused(a, 7));
    ck_assert(!is_paused(a, 0xff));
    leave(b); /* with the frame untaken */
    ck_assert(!is_paused(a, 2));
    leave(a);
}
END_TEST

/* Another member in the same place, with the same address: frames to its predecessor are lost. */
START_TEST(a_successor_does_not_pause)
{
    struct node *a, *b;

    two(&a, &b);
    ck_assert(send_frame(a, 2, 0, 64));
    ck_assert(is_paused(a, 2));
    leave(b);
    b = join(2);
    announce(b);
    drain(a);
    ck_assert(!is_still_paused(a, 2));
    /* From now on it owes its own answers: it takes the old frames, and continues. */
    drain(b);
    ck_assert(!is_paused(a, 2));
    ck_assert(send_frame(a, 2, 0, 64));
    ck_assert(is_paused(a, 2));
    drain(b);
    ck_assert(!is_still_paused(a, 2));
    leave(a);
    leave(b);
}
END_TEST

START_TEST(a_filter_passes_it_on)
{
    char *path = g_build_filename(nodes_dir, "capture.pcapng", NULL);
    struct node *a, *b;

    two(&a, &b);
    wrap(a, wire_capture_new(a->port, path, NULL, NULL));
    ck_assert(send_frame(a, 2, 0, 64));
    ck_assert(is_paused(a, 2));
    drain(b);
    ck_assert(!is_still_paused(a, 2));
    leave(a);
    leave(b);
    ck_assert_int_eq(g_remove(path), 0);
    g_free(path);
}
END_TEST

/* "A stopped peer lives": a stopped process pauses as long as it is stopped; a killed process,
 * stopped or not, does not. */
START_TEST(stopped_is_paused_and_killed_is_not)
{
    struct node *a = join(1);
    int pipes[2], status;
    char byte;
    pid_t pid;

    announce(a);
    ck_assert_int_eq(pipe(pipes), 0);
    pid = fork();
    if (pid == 0) {
        struct node *n = join(9);

        prctl(PR_SET_PDEATHSIG, SIGKILL);
        announce(n);
        (void)!write(pipes[1], "", 1);
        for (;;) {
            sleep_on(n, 1000);
            drain(n);
        }
    }
    ck_assert_int_eq(read(pipes[0], &byte, 1), 1);
    drain(a);
    kill(pid, SIGSTOP);
    ck_assert_int_eq(waitpid(pid, &status, WUNTRACED), pid);
    ck_assert(send_frame(a, 9, 0, 64));
    ck_assert(is_paused(a, 9));
    g_usleep(200000);
    ck_assert(is_still_paused(a, 9));
    kill(pid, SIGCONT);
    for (int64_t until = ms_now() + PATIENCE_MS; is_still_paused(a, 9) && ms_now() < until;) {
        g_usleep(1000);
    }
    ck_assert(is_clear());
    kill(pid, SIGSTOP);
    ck_assert_int_eq(waitpid(pid, &status, WUNTRACED), pid);
    ck_assert(send_frame(a, 9, 0, 64));
    ck_assert(is_paused(a, 9));
    kill(pid, SIGKILL);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(!is_still_paused(a, 9));
    leave(a);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *s = suite_create("wire shm pause");
    TCase *tc = tcase_create("pause");

    nodes_make_dir();
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, frames_that_are_not_taken_pause);
    tcase_add_test(tc, the_turn_that_took_a_frame_has_to_end);
    tcase_add_test(tc, a_pause_lasts_until_the_owner_owes_nothing);
    tcase_add_test(tc, an_answer_that_waits_for_room_is_owed);
    tcase_add_test(tc, frames_of_a_sender_that_never_ends_prolong_a_pause_only_so_far);
    tcase_add_test(tc, later_frames_do_not_prolong_it);
    tcase_add_test(tc, an_answer_that_was_not_looked_at_may_be_the_one);
    tcase_add_loop_test(tc, positions_that_wrap_pause_as_well, 0, 3);
    tcase_add_test(tc, a_missing_member_and_the_own_port_do_not_pause);
    tcase_add_test(tc, a_successor_does_not_pause);
    tcase_add_test(tc, a_filter_passes_it_on);
    tcase_add_test(tc, stopped_is_paused_and_killed_is_not);
    suite_add_tcase(s, tc);
    return s;
}
