/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Control sockets (wire/control): requests and their answers; clients that come, send pieces, do
 * not read, and go; the file; fork(). The test is the server's owner: it runs the server between
 * the steps of its clients, so each test is one thread, except where a client waits for an answer.
 */
#include <errno.h>
#include <glib.h>
#include <glib/gstdio.h>
#include <poll.h>
#include <string.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tests/unit/suite.h"
#include "wire/control/client.h"
#include "wire/control/server.h"

static char *dir, *path;
static struct control *server;
static unsigned runs; /* of the handlers */

/* -- commands of the tests --------------------------------------------------------------------- */

static bool run_add(void *opaque, const json_t *arguments, json_t **result, GError **err)
{
    json_int_t sum = json_integer_value(json_object_get(arguments, "a")) +
                     json_integer_value(json_object_get(arguments, "b"));

    ck_assert_ptr_eq(opaque, &runs);
    runs++;
    *result = json_pack("{sI}", "sum", sum);
    return true;
}

static bool run_nothing(void *opaque, const json_t *arguments, json_t **result, GError **err)
{
    runs++;
    return true;
}

static bool run_fail(void *opaque, const json_t *arguments, json_t **result, GError **err)
{
    g_set_error_literal(err, CONTROL_ERROR, CONTROL_ERROR_NOT_FOUND, "there is no QP 7");
    return false;
}

static bool run_fail_elsewhere(void *opaque, const json_t *arguments, json_t **result, GError **err)
{
    *result = json_array(); /* which nobody takes */
    g_set_error_literal(err, G_FILE_ERROR, G_FILE_ERROR_IO, "the disk is full");
    return false;
}

static bool run_fill(void *opaque, const json_t *arguments, json_t **result, GError **err)
{
    size_t bytes = (size_t)json_integer_value(json_object_get(arguments, "bytes"));
    g_autofree char *text = g_strnfill(bytes, 'x');

    *result = json_string(text);
    return true;
}

static const struct control_arg add_args[] = {
    {.name = "a", .type = CONTROL_INT, .required = true, .help = "the first number"},
    {.name = "b", .type = CONTROL_INT, .least = -5, .most = 5},
    {.name = "exact", .type = CONTROL_BOOL},
    {.name = "unit", .type = CONTROL_TEXT},
    {.name = "factor", .type = CONTROL_NUMBER},
    {.name = "more", .type = CONTROL_ANY},
    {.name = NULL},
};

static const struct control_arg fill_args[] = {
    {.name = "bytes", .type = CONTROL_INT, .required = true},
    {.name = NULL},
};

static const struct control_command table[] = {
    {"add", "adds two numbers", add_args, run_add},
    {"nothing", "does nothing", NULL, run_nothing},
    {"fail", "fails", NULL, run_fail},
    {"fail-elsewhere", "fails with an error of another part", NULL, run_fail_elsewhere},
    {"fill", "answers with many bytes", fill_args, run_fill},
    {.name = NULL},
};

/* -- what the tests share ---------------------------------------------------------------------- */

static void begin(void)
{
    GError *err = NULL;

    dir = g_dir_make_tmp("hcasim-control-XXXXXX", NULL);
    path = g_build_filename(dir, "s", NULL);
    runs = 0;
    server = control_open(path, &err);
    ck_assert_msg(server != NULL, "%s", err ? err->message : "no reason");
    control_add(server, table, &runs);
}

static void end(void)
{
    if (server) {
        control_close(server);
    }
    ck_assert_int_eq(g_unlink(path), -1); /* the file has gone */
    ck_assert_int_eq(g_rmdir(dir), 0);
    g_free(path);
    g_free(dir);
}

static int try_connect(const char *at)
{
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);

    g_strlcpy(un.sun_path, at, sizeof(un.sun_path));
    if (connect(fd, (struct sockaddr *)&un, sizeof(un))) {
        close(fd);
        return -1;
    }
    return fd;
}

static bool is_ready(void)
{
    struct pollfd p = {.fd = control_fd(server), .events = POLLIN};

    return poll(&p, 1, 0) == 1;
}

/* Runs the server until it has nothing to do. */
static void settle(void)
{
    for (unsigned i = 0; i < 10000 && is_ready(); i++) {
        control_run(server);
    }
}

/* What has come to a client by now, or "closed". The caller frees it. */
static char *take(int fd)
{
    GString *got = g_string_new(NULL);
    char piece[4096];
    ssize_t n;

    settle();
    while ((n = recv(fd, piece, sizeof(piece), MSG_DONTWAIT)) > 0) {
        g_string_append_len(got, piece, n);
        settle();
    }
    if (!n && !got->len) {
        g_string_append(got, "closed");
    }
    return g_string_free(got, FALSE);
}

static int client(void)
{
    int fd = try_connect(path);
    g_autofree char *greeting = NULL;

    ck_assert_int_ge(fd, 0);
    greeting = take(fd);
    ck_assert_str_eq(greeting, "{\"hcasim\":{\"version\":\"" VERSION "\"}}\n");
    return fd;
}

static void say(int fd, const char *text)
{
    ck_assert_int_eq(send(fd, text, strlen(text), MSG_NOSIGNAL), (int)strlen(text));
}

static void expect(int fd, const char *answer)
{
    g_autofree char *got = take(fd);

    ck_assert_str_eq(got, answer);
}

static void expect_within(int fd, const char *part)
{
    g_autofree char *got = take(fd);

    ck_assert_msg(strstr(got, part) != NULL, "%s is not in: %s", part, got);
}

/* -- requests ---------------------------------------------------------------------------------- */

START_TEST(requests_are_answered_in_their_order_each_with_its_id)
{
    int fd = client();

    say(fd, "{\"execute\": \"add\", \"arguments\": {\"a\": 2, \"b\": 3}, \"id\": \"x\"}\n"
            "{\"execute\": \"nothing\"}\r\n\n"
            "{\"execute\": \"add\", \"arguments\": {\"a\": 9}, \"id\": {\"n\": [1]}}\n");
    expect(fd, "{\"return\":{\"sum\":5},\"id\":\"x\"}\n"
               "{\"return\":{}}\n"
               "{\"return\":{\"sum\":9},\"id\":{\"n\":[1]}}\n");
    ck_assert_uint_eq(runs, 3);
    close(fd);
}
END_TEST

START_TEST(a_line_may_come_in_pieces)
{
    int fd = client();

    say(fd, "{\"execute\": \"no");
    expect(fd, "");
    say(fd, "thing\"}");
    expect(fd, "");
    say(fd, "\n");
    expect(fd, "{\"return\":{}}\n");
    close(fd);
}
END_TEST

START_TEST(a_client_that_only_sends_gets_its_answers_and_is_closed)
{
    int fd = client();

    say(fd, "{\"execute\": \"nothing\"}\n{\"execute\": \"add\", \"arguments\": {\"a\": 1}}");
    shutdown(fd, SHUT_WR);
    expect(fd, "{\"return\":{}}\n{\"return\":{\"sum\":1}}\n");
    expect(fd, "closed");
    close(fd);
}
END_TEST

static const struct {
    const char *request, *says;
} refusals[] = {
    {"hello", "{\"error\":{\"class\":\"SyntaxError\",\"desc\":\"the line is not JSON: "},
    {"{\"execute\": \"nothing\"} {}", "SyntaxError"},
    {"{\"execute\": \"nothing\", \"execute\": \"add\"}", "SyntaxError"},
    {"{\"execute\": \"\xff\"}", "SyntaxError"},
    {"[1]", "a request is an object"},
    {"{\"id\": 3}", "\"id\":3"},
    {"{\"execute\": 7}", "a request is an object"},
    {"{\"execute\": \"nothing\", \"arguments\": []}", "a request is an object"},
    {"{\"execute\": \"nothing\", \"argument\": {}}", "a request has no member 'argument'"},
    {"{\"execute\": \"quit\"}",
     "{\"error\":{\"class\":\"CommandNotFound\",\"desc\":\"there is no command 'quit', see "
     "query-commands\"}}"},
    {"{\"execute\": \"nothing\", \"arguments\": {\"a\": 1}}", "nothing has no argument 'a'"},
    {"{\"execute\": \"add\"}", "add needs the argument a"},
    {"{\"execute\": \"add\", \"arguments\": {\"a\": \"1\"}}",
     "the argument a of add must be an integer"},
    {"{\"execute\": \"add\", \"arguments\": {\"a\": 1.5}}", "must be an integer"},
    {"{\"execute\": \"add\", \"arguments\": {\"a\": 99999999999999999999}}", "SyntaxError"},
    {"{\"execute\": \"add\", \"arguments\": {\"a\": 1, \"b\": 6}}",
     "the argument b of add must be from -5 to 5"},
    {"{\"execute\": \"add\", \"arguments\": {\"a\": 1, \"b\": -6}}", "must be from -5 to 5"},
    {"{\"execute\": \"add\", \"arguments\": {\"a\": 1, \"exact\": 1}}", "must be true or false"},
    {"{\"execute\": \"add\", \"arguments\": {\"a\": 1, \"unit\": 1}}", "must be a string"},
    {"{\"execute\": \"add\", \"arguments\": {\"a\": 1, \"factor\": \"1\"}}", "must be a number"},
    {"{\"execute\": \"fail\", \"id\": 1}",
     "{\"error\":{\"class\":\"NotFound\",\"desc\":\"there is no QP 7\"},\"id\":1}\n"},
    {"{\"execute\": \"fail-elsewhere\"}",
     "{\"error\":{\"class\":\"GenericError\",\"desc\":\"the disk is full\"}}\n"},
};

START_TEST(what_is_wrong_with_a_request_is_said)
{
    int fd = client();

    say(fd, refusals[_i].request);
    say(fd, "\n");
    expect_within(fd, refusals[_i].says);
    ck_assert_uint_eq(runs, 0);
    say(fd, "{\"execute\": \"nothing\"}\n"); /* and the client goes on */
    expect(fd, "{\"return\":{}}\n");
    close(fd);
}
END_TEST

START_TEST(arguments_of_each_type_are_taken)
{
    int fd = client();

    say(fd, "{\"execute\": \"add\", \"arguments\": {\"a\": 1, \"b\": -5, \"exact\": false, "
            "\"unit\": \"m\", \"factor\": 1.5, \"more\": [{}]}}\n");
    expect(fd, "{\"return\":{\"sum\":-4}}\n");
    close(fd);
}
END_TEST

START_TEST(query_commands_describes_the_tables)
{
    json_auto_t *list = NULL;
    int fd = client();
    g_autofree char *got = NULL;
    json_t *add, *b;

    say(fd, "{\"execute\": \"query-commands\"}\n");
    got = take(fd);
    list = json_loads(got, 0, NULL);
    ck_assert_uint_eq(json_array_size(json_object_get(list, "return")), G_N_ELEMENTS(table));
    add = json_array_get(json_object_get(list, "return"), 1);
    ck_assert_str_eq(json_string_value(json_object_get(add, "name")), "add");
    ck_assert_str_eq(json_string_value(json_object_get(add, "help")), "adds two numbers");
    b = json_array_get(json_object_get(add, "arguments"), 1);
    ck_assert_str_eq(json_string_value(json_object_get(b, "type")), "int");
    ck_assert(json_is_false(json_object_get(b, "required")));
    ck_assert_int_eq(json_integer_value(json_object_get(b, "least")), -5);
    close(fd);
}
END_TEST

/* -- bounds ------------------------------------------------------------------------------------ */

static char *nested(unsigned depth)
{
    g_autofree char *open = g_strnfill(depth, '['), *shut = g_strnfill(depth, ']');

    return g_strdup_printf(
        "{\"execute\": \"add\", \"arguments\": {\"a\": 1, \"unit\": \"[[\\\"[[\", "
        "\"more\": %s%s}}\n",
        open, shut);
}

START_TEST(json_may_be_nested_so_deep_and_no_deeper)
{
    g_autofree char *deep = nested(CONTROL_DEPTH_MAX - 2), *deeper = nested(CONTROL_DEPTH_MAX - 1);
    int fd = client();

    say(fd, deep);
    expect(fd, "{\"return\":{\"sum\":1}}\n");
    say(fd, deeper);
    expect_within(fd, "more than 32 objects and lists within each other");
    close(fd);
}
END_TEST

START_TEST(the_longest_line_is_taken_and_a_longer_one_ends_the_client)
{
    static const char request[] = "{\"execute\": \"nothing\"}";
    g_autofree char *blanks = g_strnfill(CONTROL_LINE_MAX - strlen(request), ' ');
    int fd = client();

    say(fd, request);
    say(fd, blanks);
    say(fd, "\n");
    expect(fd, "{\"return\":{}}\n");
    say(fd, request);
    say(fd, blanks);
    say(fd, " \n");
    expect_within(fd, "{\"error\":{\"class\":\"TooLong\",\"desc\":\"a request must have at most "
                      "65536 bytes\"}}\n");
    expect(fd, "closed");
    ck_assert_uint_eq(runs, 1);
    close(fd);
}
END_TEST

START_TEST(an_answer_that_is_too_long_becomes_an_error)
{
    int fd = client();

    say(fd, "{\"execute\": \"fill\", \"arguments\": {\"bytes\": 4194304}, \"id\": 4}\n");
    expect_within(fd, "\"class\":\"TooLong\"");
    say(fd, "{\"execute\": \"fill\", \"arguments\": {\"bytes\": 4194000}, \"id\": 4}\n");
    {
        g_autofree char *got = take(fd);

        ck_assert_uint_eq(strlen(got), 4194000 + strlen("{\"return\":\"\",\"id\":4}\n"));
    }
    close(fd);
}
END_TEST

START_TEST(a_client_that_does_not_read_has_one_answer_waiting_and_no_more_of_its_requests_run)
{
    static const char add[] = "{\"execute\": \"add\", \"arguments\": {\"a\": 1}}\n";
    int fd = client(), other;

    say(fd, "{\"execute\": \"fill\", \"arguments\": {\"bytes\": 4000000}}\n");
    for (unsigned i = 0; i < 100; i++) {
        say(fd, add);
    }
    settle();
    ck_assert(!is_ready()); /* the server does not run in circles */
    ck_assert_uint_eq(runs, 0);
    other = client();
    say(other, add);
    expect(other, "{\"return\":{\"sum\":1}}\n");
    {
        g_autofree char *got = take(fd); /* it reads at last */

        ck_assert(g_str_has_suffix(got, "{\"return\":{\"sum\":1}}\n"));
    }
    ck_assert_uint_eq(runs, 101);
    close(fd);
    close(other);
}
END_TEST

START_TEST(one_client_too_many_is_told_so)
{
    int fds[CONTROL_CLIENTS], late;

    for (unsigned i = 0; i < CONTROL_CLIENTS; i++) {
        fds[i] = client();
    }
    late = try_connect(path);
    expect_within(late, "\"class\":\"Busy\"");
    expect(late, "closed");
    close(late);
    close(fds[3]);
    settle();
    fds[3] = client(); /* its place is free again */
    for (unsigned i = 0; i < CONTROL_CLIENTS; i++) {
        close(fds[i]);
    }
}
END_TEST

START_TEST(a_client_that_reads_no_answer_loses_its_place_to_the_next_one)
{
    int fds[CONTROL_CLIENTS], late;
    g_autofree char *rest = NULL;

    for (unsigned i = 0; i < CONTROL_CLIENTS; i++) {
        fds[i] = client();
    }
    for (unsigned i = 5; i < 7; i++) {
        say(fds[i], "{\"execute\": \"fill\", \"arguments\": {\"bytes\": 4000000}}\n");
        settle();
        g_usleep(1000);
    }
    late = client();
    say(fds[6], "{\"execute\": \"nothing\"}\n");
    rest = take(fds[6]);
    ck_assert_uint_gt(strlen(rest), 4000000);
    g_free(rest);
    rest = take(fds[5]); /* what the kernel had */
    ck_assert_uint_lt(strlen(rest), 4000000);
    expect(fds[5], "closed");
    close(late);
    for (unsigned i = 0; i < CONTROL_CLIENTS; i++) {
        close(fds[i]);
    }
}
END_TEST

START_TEST(clients_that_vanish_leave_their_places)
{
    for (unsigned i = 0; i < 5 * CONTROL_CLIENTS; i++) {
        int fd = client();

        say(fd,
            i % 2 ? "{\"execute\": \"fill\", \"arguments\": {\"bytes\": 4000000}}\n" : "{\"exe");
        if (i % 3) {
            settle();
        }
        close(fd);
        settle();
    }
    ck_assert(!is_ready());
}
END_TEST

/* -- the file ---------------------------------------------------------------------------------- */

START_TEST(the_file_is_for_its_owner_alone_whatever_the_umask)
{
    mode_t mask = umask(0);
    struct stat st;

    control_close(server);
    server = control_open(path, NULL);
    umask(mask);
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_uint_eq(st.st_mode & 07777, 0600);
}
END_TEST

START_TEST(a_live_socket_is_refused_and_stays)
{
    g_autoptr(GError) err = NULL;
    int fd;

    ck_assert_ptr_null(control_open(path, &err));
    ck_assert_msg(g_str_has_prefix(err->message, "another process listens at "), "%s",
                  err->message);
    fd = client();
    close(fd);
}
END_TEST

START_TEST(the_socket_of_a_killed_process_is_replaced)
{
    g_autofree char *at = g_build_filename(dir, "killed", NULL);
    struct control *next;
    int status;
    pid_t pid = fork();

    if (!pid) {
        if (control_open(at, NULL)) {
            kill(getpid(), SIGKILL);
        }
        _exit(1);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFSIGNALED(status));
    ck_assert(g_file_test(at, G_FILE_TEST_EXISTS));
    next = control_open(at, NULL);
    ck_assert_ptr_nonnull(next);
    control_close(next);
    ck_assert(!g_file_test(at, G_FILE_TEST_EXISTS));
}
END_TEST

START_TEST(of_many_that_find_a_stale_socket_one_gets_it)
{
    g_autofree char *at = g_build_filename(dir, "many", NULL);
    int ready[2], winners = 0, status;
    char byte;

    ck_assert_int_eq(pipe(ready), 0);
    if (!fork()) {
        control_open(at, NULL);
        kill(getpid(), SIGKILL);
    }
    wait(&status);
    for (unsigned i = 0; i < 8; i++) {
        if (!fork()) {
            close(ready[1]);
            ck_assert_int_eq(read(ready[0], &byte, 1), 0); /* all at once */
            if (!control_open(at, NULL)) {
                _exit(0);
            }
            g_usleep(200000);
            _exit(7);
        }
    }
    close(ready[0]);
    close(ready[1]);
    for (unsigned i = 0; i < 8; i++) {
        wait(&status);
        winners += WIFEXITED(status) && WEXITSTATUS(status) == 7;
    }
    ck_assert_int_eq(winners, 1);
    g_unlink(at);
}
END_TEST

START_TEST(another_file_is_not_replaced)
{
    g_autofree char *at = g_build_filename(dir, "file", NULL);
    g_autoptr(GError) err = NULL;

    ck_assert(g_file_set_contents(at, "mine", 4, NULL));
    ck_assert_ptr_null(control_open(at, &err));
    ck_assert_msg(strstr(err->message, "is there and is no socket") != NULL, "%s", err->message);
    ck_assert(g_file_test(at, G_FILE_TEST_IS_REGULAR));
    g_unlink(at);
}
END_TEST

START_TEST(a_path_that_cannot_be_a_socket_is_refused)
{
    g_autofree char *longest = g_strnfill(108, 'a');
    g_autoptr(GError) err = NULL;

    ck_assert_ptr_null(control_open(longest, &err));
    ck_assert_msg(strstr(err->message, "must have 1 to 107 bytes") != NULL, "%s", err->message);
    g_clear_error(&err);
    ck_assert_ptr_null(control_open("", &err));
    g_clear_error(&err);
    ck_assert_ptr_null(control_open("/tmp/no/such/folder/s", &err));
    ck_assert_msg(strstr(err->message, "No such file") != NULL, "%s", err->message);
}
END_TEST

START_TEST(closing_leaves_a_file_that_took_the_place)
{
    ck_assert_int_eq(g_unlink(path), 0);
    ck_assert(g_file_set_contents(path, "mine", 4, NULL));
    control_close(server);
    server = NULL;
    ck_assert(g_file_test(path, G_FILE_TEST_IS_REGULAR));
    g_unlink(path);
}
END_TEST

START_TEST(a_child_of_fork_has_no_part_in_the_socket)
{
    int fd = client(), status, lives[2];
    struct pollfd closed = {.fd = fd, .events = POLLIN};
    char byte;
    pid_t pid;

    ck_assert_int_eq(pipe(lives), 0);
    pid = fork();
    if (!pid) {
        bool is_out = control_fd(server) == -1;

        close(lives[1]);
        control_run(server);
        control_close(server); /* which leaves the file */
        ck_assert_int_eq(read(lives[0], &byte, 1), 0);
        _exit(is_out ? 0 : 1);
    }
    say(fd, "{\"execute\": \"nothing\"}\n");
    expect(fd, "{\"return\":{}}\n");
    control_close(server); /* while the child lives, the client is told */
    ck_assert_int_eq(poll(&closed, 1, 10000), 1);
    ck_assert_int_eq(recv(fd, &byte, 1, MSG_DONTWAIT), 0);
    server = control_open(path, NULL);
    ck_assert_ptr_nonnull(server);
    close(lives[1]);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    close(fd);
}
END_TEST

/* -- the client that waits --------------------------------------------------------------------- */

static gint stop;

static void *serve(void *unused)
{
    while (!g_atomic_int_get(&stop)) {
        struct pollfd p = {.fd = control_fd(server), .events = POLLIN};

        poll(&p, 1, 10);
        control_run(server);
    }
    return NULL;
}

/* The child of vfork() has all descriptors of its parent until it executes a program, and runs no
 * handlers of fork(). clone() makes such a child here that lives on. */
START_TEST(a_client_that_goes_while_a_child_of_vfork_lives_is_forgotten)
{
    int fd = client(), status;
    pid_t pid = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);

    if (!pid) {
        pause();
        _exit(0);
    }
    say(fd, "{\"execute\": \"fill\", \"arguments\": {\"bytes\": 4000000}}\n");
    settle();
    shutdown(fd, SHUT_RDWR);
    settle();
    ck_assert(!is_ready());
    control_run(server);
    close(client());
    settle();
    ck_assert(!is_ready());
    kill(pid, SIGKILL);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    close(fd);
}
END_TEST

START_TEST(a_client_calls_commands_one_after_another)
{
    GThread *thread = g_thread_new("server", serve, NULL);
    struct control_client *c = control_connect(path, 10000, NULL);
    json_auto_t *arguments = json_pack("{si si}", "a", 40, "b", 2), *result = NULL;
    g_autoptr(GError) err = NULL;

    ck_assert_ptr_nonnull(c);
    ck_assert_str_eq(json_string_value(json_object_get(control_greeting(c), "version")), VERSION);
    result = control_call(c, "add", arguments, &err);
    ck_assert_int_eq(json_integer_value(json_object_get(result, "sum")), 42);
    ck_assert_ptr_null(control_call(c, "fail", NULL, &err));
    ck_assert(g_error_matches(err, CONTROL_ERROR, CONTROL_ERROR_NOT_FOUND));
    ck_assert_str_eq(err->message, "there is no QP 7");
    control_disconnect(c);
    g_atomic_int_set(&stop, 1);
    g_thread_join(thread);
}
END_TEST

START_TEST(a_client_gives_up_when_nobody_answers)
{
    g_autoptr(GError) err = NULL;

    ck_assert_ptr_null(control_connect(path, 50, &err)); /* the server does not run */
    ck_assert_msg(g_str_has_suffix(err->message, ": there is no answer after 50 ms"), "%s",
                  err->message);
}
END_TEST

START_TEST(a_client_says_why_it_cannot_connect)
{
    g_autofree char *stale = g_build_filename(dir, "stale", NULL);
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    g_autoptr(GError) err = NULL;

    g_strlcpy(un.sun_path, stale, sizeof(un.sun_path));
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&un, sizeof(un)), 0);
    ck_assert_ptr_null(control_connect(stale, 50, &err));
    ck_assert_msg(g_str_has_suffix(err->message, "/stale: no process listens there any more"), "%s",
                  err->message);
    g_clear_error(&err);
    g_unlink(stale);
    close(fd);
    ck_assert_ptr_null(control_connect(stale, 50, &err));
    ck_assert_msg(strstr(err->message, "there is no such socket") != NULL, "%s", err->message);
}
END_TEST

/* What a server may send that is none. The first line is its greeting. */
static const struct {
    const char *sends, *says;
} strangers[] = {
    {"220 ready\n", "the answer is wrong: the line is not JSON"},
    {"{\"QMP\": {}}\n", "this is no control socket of hcasim"},
    {"", "the process has closed the socket"},
    {"{\"error\": {\"class\": \"Busy\", \"desc\": \"too many\"}}\n", "too many"},
    {"{\"hcasim\": {}}\n{\"return\": 1, \"id\": 9}\n", "the answer is to another request"},
    {"{\"hcasim\": {}}\n{\"id\": 1}\n", "neither a result nor an error"},
    {"{\"hcasim\": {}}\n{\"error\": {}}\n", "neither a result nor an error"},
    {"{\"hcasim\": {}}\n{\"ret", "the process has closed the socket"},
};

struct stranger {
    int fd;
    const char *sends;
};

static void *be_strange(void *opaque)
{
    struct stranger *s = opaque;
    int fd = accept(s->fd, NULL, NULL);

    ck_assert_int_eq(send(fd, s->sends, strlen(s->sends), MSG_NOSIGNAL), (int)strlen(s->sends));
    shutdown(fd, SHUT_WR);
    return GINT_TO_POINTER(fd);
}

START_TEST(a_client_refuses_what_is_no_answer)
{
    g_autofree char *at = g_build_filename(dir, "strange", NULL);
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    struct stranger stranger = {socket(AF_UNIX, SOCK_STREAM, 0), strangers[_i].sends};
    g_autoptr(GError) err = NULL;
    struct control_client *c;
    GThread *thread;

    g_strlcpy(un.sun_path, at, sizeof(un.sun_path));
    ck_assert_int_eq(bind(stranger.fd, (struct sockaddr *)&un, sizeof(un)), 0);
    ck_assert_int_eq(listen(stranger.fd, 1), 0);
    thread = g_thread_new("stranger", be_strange, &stranger);
    c = control_connect(at, 10000, &err);
    if (c) {
        ck_assert_ptr_null(control_call(c, "nothing", NULL, &err));
        control_disconnect(c);
    }
    ck_assert_msg(err && strstr(err->message, strangers[_i].says) != NULL, "%s",
                  err ? err->message : "no error");
    close(GPOINTER_TO_INT(g_thread_join(thread)));
    close(stranger.fd);
    g_unlink(at);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *s = suite_create("control");
    TCase *tc = tcase_create("control");

    suite_add_tcase(s, tc);
    tcase_set_timeout(tc, 60);
    tcase_add_checked_fixture(tc, begin, end);
    tcase_add_test(tc, requests_are_answered_in_their_order_each_with_its_id);
    tcase_add_test(tc, a_line_may_come_in_pieces);
    tcase_add_test(tc, a_client_that_only_sends_gets_its_answers_and_is_closed);
    tcase_add_loop_test(tc, what_is_wrong_with_a_request_is_said, 0, G_N_ELEMENTS(refusals));
    tcase_add_test(tc, arguments_of_each_type_are_taken);
    tcase_add_test(tc, query_commands_describes_the_tables);
    tcase_add_test(tc, json_may_be_nested_so_deep_and_no_deeper);
    tcase_add_test(tc, the_longest_line_is_taken_and_a_longer_one_ends_the_client);
    tcase_add_test(tc, an_answer_that_is_too_long_becomes_an_error);
    tcase_add_test(
        tc, a_client_that_does_not_read_has_one_answer_waiting_and_no_more_of_its_requests_run);
    tcase_add_test(tc, one_client_too_many_is_told_so);
    tcase_add_test(tc, a_client_that_reads_no_answer_loses_its_place_to_the_next_one);
    tcase_add_test(tc, clients_that_vanish_leave_their_places);
    tcase_add_test(tc, the_file_is_for_its_owner_alone_whatever_the_umask);
    tcase_add_test(tc, a_live_socket_is_refused_and_stays);
    tcase_add_test(tc, the_socket_of_a_killed_process_is_replaced);
    tcase_add_test(tc, of_many_that_find_a_stale_socket_one_gets_it);
    tcase_add_test(tc, another_file_is_not_replaced);
    tcase_add_test(tc, a_path_that_cannot_be_a_socket_is_refused);
    tcase_add_test(tc, closing_leaves_a_file_that_took_the_place);
    tcase_add_test(tc, a_child_of_fork_has_no_part_in_the_socket);
    tcase_add_test(tc, a_client_that_goes_while_a_child_of_vfork_lives_is_forgotten);
    tcase_add_test(tc, a_client_calls_commands_one_after_another);
    tcase_add_test(tc, a_client_gives_up_when_nobody_answers);
    tcase_add_test(tc, a_client_says_why_it_cannot_connect);
    tcase_add_loop_test(tc, a_client_refuses_what_is_no_answer, 0, G_N_ELEMENTS(strangers));
    return s;
}
