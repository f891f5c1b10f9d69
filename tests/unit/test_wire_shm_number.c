/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests numbers on a wire (wire/open.h): who owns them, and for how long.
 */
#include "tests/unit/fork_at_open.h"
#include "tests/unit/wire_nodes.h"
#include "wire/open.h"
#include "wire/shm/file.h"
#include "tests/unit/suite.h"

#include <check.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static struct wire_number *take(const char *name, unsigned wanted)
{
    char *uri = g_strdup_printf("shm:%s/%s", nodes_dir, name);
    GError *err = NULL;
    struct wire_number *number = wire_number_take(uri, wanted, &err);

    ck_assert_int_eq(number == NULL, err != NULL);
    if (err) {
        ck_assert(g_error_matches(err, WIRE_ERROR, WIRE_ERROR_TAKEN));
        ck_assert_ptr_nonnull(strstr(err->message, "is taken"));
        g_error_free(err);
    }
    g_free(uri);
    return number;
}

/* A process that takes a number of "seg" and forks a child, then waits to be killed. */
static pid_t taker(unsigned wanted, unsigned expected)
{
    int pipes[2];
    char byte = 0;
    pid_t pid;

    ck_assert_int_eq(pipe(pipes), 0);
    pid = fork();
    if (pid == 0) {
        struct wire_number *number = take("seg", wanted);

        prctl(PR_SET_PDEATHSIG, SIGKILL);
        byte = number && wire_number_get(number) == expected;
        if (fork() == 0) {
            /* The child reports, because it has then released what it inherited. */
            (void)!write(pipes[1], &byte, 1);
            alarm(5); /* outlives its parent by a little */
        }
        pause();
        _exit(0);
    }
    close(pipes[1]);
    ck_assert_int_eq(read(pipes[0], &byte, 1), 1);
    close(pipes[0]);
    ck_assert_int_eq(byte, 1);
    return pid;
}

static void end(pid_t pid)
{
    ck_assert_int_eq(kill(pid, SIGKILL), 0);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
}

START_TEST(the_lowest_free_number_is_given)
{
    struct wire_number *n[4];

    for (unsigned i = 0; i < 4; i++) {
        n[i] = take("seg", 0);
        ck_assert_uint_eq(wire_number_get(n[i]), i + 1);
    }
    wire_number_release(n[1]);
    n[1] = take("seg", 0);
    ck_assert_uint_eq(wire_number_get(n[1]), 2);
    for (unsigned i = 0; i < 4; i++) {
        wire_number_release(n[i]);
    }
    ck_assert_uint_eq(nodes_files_left(), 0);
}
END_TEST

START_TEST(a_number_is_taken_once)
{
    struct wire_number *last = take("seg", WIRE_NUMBER_MAX), *other;

    ck_assert_uint_eq(wire_number_get(last), WIRE_NUMBER_MAX);
    ck_assert_ptr_null(take("seg", WIRE_NUMBER_MAX));
    other = take("another", WIRE_NUMBER_MAX); /* each wire has its own */
    ck_assert_ptr_nonnull(other);
    wire_number_release(last);
    last = take("seg", WIRE_NUMBER_MAX);
    ck_assert_ptr_nonnull(last);
    wire_number_release(last);
    wire_number_release(other);
}
END_TEST

/* Processes are distinguished by the wire's file, whatever namespaces they are in. A number ends
 * with its process, even if that leaves children. */
START_TEST(a_number_is_its_process_s)
{
    struct wire_number *own = take("seg", 0), *again;
    pid_t second = taker(0, 2), fifth = taker(5, 5);

    ck_assert_ptr_null(take("seg", 2));
    ck_assert_ptr_null(take("seg", 5));
    end(second);
    again = take("seg", 0);
    ck_assert_uint_eq(wire_number_get(again), 2);
    end(fifth);
    wire_number_release(own);
    wire_number_release(again);
    ck_assert_uint_eq(nodes_files_left(), 0);
}
END_TEST

/* A look at the number that would be free takes none, and makes no wire. */
START_TEST(a_look_takes_nothing)
{
    g_autofree char *uri = g_strdup_printf("shm:%s/seg", nodes_dir);
    struct wire_number *second;

    ck_assert_uint_eq(wire_number_look(uri, 0), 1);
    ck_assert_uint_eq(wire_number_look(uri, 0), 1);
    ck_assert_uint_eq(nodes_files_left(), 0);
    second = take("seg", 2);
    ck_assert_uint_eq(wire_number_look(uri, 0), 1);
    ck_assert_uint_eq(wire_number_look(uri, 1), 3);
    ck_assert_uint_eq(wire_number_look(uri, WIRE_NUMBER_MAX), 0);
    ck_assert_uint_eq(wire_number_look("nothing", 0), 0);
    wire_number_release(second);
    ck_assert_uint_eq(nodes_files_left(), 0);
}
END_TEST

/* Members come and go; the numbers stay, and so does the file. */
START_TEST(a_number_does_not_need_a_member)
{
    struct wire_number *one = take("seg", 0), *two;
    struct node *a = join(1), *b;

    leave(a);
    ck_assert_ptr_null(take("seg", 1));
    a = join(1);
    b = join(2);
    announce(b);
    ck_assert_uint_eq(drain(a), 1);
    two = take("seg", 0);
    ck_assert_uint_eq(wire_number_get(two), 2);
    wire_number_release(one);
    wire_number_release(two);
    ck_assert(send_frame(a, 2, 0, 64));
    ck_assert_uint_eq(drain(b), 1);
    leave(a);
    leave(b);
    ck_assert_uint_eq(nodes_files_left(), 0);
}
END_TEST

/* A descriptor of the program replaces the number's descriptor, which the program closed. */
static struct wire_number *take_and_close(const char *name, int pipes[2])
{
    int place = dup(STDIN_FILENO);
    struct wire_number *number;

    close(place);
    number = take(name, 0);
    ck_assert_ptr_nonnull(number);
    ck_assert_int_ne(fcntl(place, F_GETFD), -1);
    close(place);
    ck_assert_int_eq(pipe(pipes), 0);
    ck_assert_int_eq(pipes[0], place);
    return number;
}

/* A program that becomes a daemon closes descriptors that it does not know. Descriptors that it
 * opens later are its own, in a child as well. */
START_TEST(a_number_whose_descriptor_is_closed_takes_no_other)
{
    int pipes[2], status;
    struct wire_number *number = take_and_close("seg", pipes);
    pid_t pid = fork();

    if (!pid) {
        _exit(fcntl(pipes[0], F_GETFD) < 0);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    wire_number_release(number);
    ck_assert_int_ne(fcntl(pipes[0], F_GETFD), -1);
    number = take("seg", 0);
    wire_number_release(number);
    ck_assert_uint_eq(nodes_files_left(), 0);
}
END_TEST

/* A child of fork() that keeps a descriptor holds the locks that its parent takes with it, also
 * when the parent has ended. Another thread may fork at any moment. */
START_TEST(a_child_of_the_moment_of_opening_has_no_copy)
{
    g_autofree char *seg = g_build_filename(nodes_dir, "seg", NULL);
    struct wire_number *number;

    fork_at_open_begin(seg);
    number = take("seg", 0);
    ck_assert(!fork_at_open_end());
    wire_number_release(number);
    ck_assert(g_file_set_contents(seg, "", 0, NULL));
    fork_at_open_begin(seg);
    shm_file_sweep_one(seg, true, NULL);
    ck_assert(!fork_at_open_end());
    ck_assert_uint_eq(nodes_files_left(), 0);
}
END_TEST

START_TEST(a_bad_uri_has_no_numbers)
{
    GError *err = NULL;

    ck_assert_ptr_null(wire_number_take("sctp:x", 0, &err));
    ck_assert(g_error_matches(err, WIRE_ERROR, WIRE_ERROR_URI));
    g_clear_error(&err);
    ck_assert_ptr_null(wire_number_take("shm:/nonexistent/x", 0, &err));
    ck_assert(g_error_matches(err, WIRE_ERROR, WIRE_ERROR_IO));
    g_clear_error(&err);
}
END_TEST

/* "On a wire of sockets, whose hosts are not known, `wanted` is the answer, and 0 is refused." */
START_TEST(a_number_on_a_socket_is_chosen)
{
    const char *uri = "udp:1:127.0.0.1:2";
    struct wire_number *number;
    GError *err = NULL;

    ck_assert_ptr_null(wire_number_take(uri, 0, &err));
    ck_assert(g_error_matches(err, WIRE_ERROR, WIRE_ERROR_URI));
    ck_assert_ptr_nonnull(strstr(err->message, "choose a host number"));
    g_clear_error(&err);
    number = wire_number_take(uri, 5, &err);
    ck_assert_uint_eq(wire_number_get(number), 5);
    ck_assert(wire_number_is_held(number));
    ck_assert_uint_eq(wire_number_look(uri, 5), 6);
    ck_assert_uint_eq(wire_number_look(uri, WIRE_NUMBER_MAX), 0);
    wire_number_release(number);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *s = suite_create("wire shm number");
    TCase *tc = tcase_create("number");

    nodes_make_dir();
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, the_lowest_free_number_is_given);
    tcase_add_test(tc, a_number_is_taken_once);
    tcase_add_test(tc, a_look_takes_nothing);
    tcase_add_test(tc, a_number_is_its_process_s);
    tcase_add_test(tc, a_number_does_not_need_a_member);
    tcase_add_test(tc, a_number_whose_descriptor_is_closed_takes_no_other);
    tcase_add_test(tc, a_child_of_the_moment_of_opening_has_no_copy);
    tcase_add_test(tc, a_bad_uri_has_no_numbers);
    tcase_add_test(tc, a_number_on_a_socket_is_chosen);
    suite_add_tcase(s, tc);
    return s;
}
