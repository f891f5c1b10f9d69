/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests captures into a named pipe: what a reader gets, and that none stops the traffic. */
#include "wire/capture_file.h"
#include "wire/port.h"
#include "tests/unit/capture_reader.h"
#include "tests/unit/capture_writer.h"
#include "tests/unit/fork_at_open.h"
#include "tests/unit/suite.h"

#include <check.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    FRAMES = 3000, /* more than a pipe keeps */
    LEN = 1000,
};

static void make_pipe(void)
{
    capture_make_folder("pipe");
    ck_assert_int_eq(mkfifo(capture_path, 0600), 0);
}

/* A writer without a reader looks for a new one every 10 ms (LOOK_NS of capture_pipe.c). */
static void let_it_be_found(void)
{
    g_usleep(50000);
}

static int open_reader(void)
{
    int reader = open(capture_path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);

    ck_assert_int_ge(reader, 0);
    return reader;
}

/* Appends what is in the pipe now. */
static void read_pipe(int reader, GByteArray *stream)
{
    uint8_t bytes[65536];
    ssize_t len;

    while ((len = read(reader, bytes, sizeof(bytes))) > 0) {
        g_byte_array_append(stream, bytes, (guint)len);
    }
}

/* What a reader has got when the writer has closed its end. */
static struct capture_contents read_rest(int reader, GByteArray *stream)
{
    struct capture_contents c;

    read_pipe(reader, stream);
    close(reader);
    c = capture_read(stream->data, stream->len);
    g_byte_array_unref(stream);
    return c;
}

static void *open_late(void *opaque)
{
    g_usleep(100000);
    return GINT_TO_POINTER(open(capture_path, O_RDONLY));
}

/* "opening gives it a few seconds to come" */
START_TEST(a_pipe_waits_for_its_first_reader)
{
    struct capture_file *file;
    struct capture_contents c;
    void *reader;
    pthread_t thread;

    make_pipe();
    ck_assert_int_eq(pthread_create(&thread, NULL, open_late, NULL), 0);
    file = capture_open_as("one", NULL, NULL);
    pthread_join(thread, &reader);
    capture_write_frame(file, 7, 100);
    capture_file_close(file);
    c = read_rest(GPOINTER_TO_INT(reader), g_byte_array_new());
    ck_assert_uint_eq(c.packets, 1);
    ck_assert_uint_eq(c.missing, 0);
    ck_assert_int_eq(capture_warnings, 0);
    capture_remove_folder();
}
END_TEST

/* If none comes, the frames count as missing, and one who comes later gets a whole stream. */
START_TEST(traffic_does_not_wait_for_a_reader)
{
    struct capture_file *file;
    struct capture_contents c;
    int reader;

    make_pipe();
    file = capture_open_as("one", NULL, NULL);
    ck_assert_int_eq(capture_warnings, 1);
    ck_assert_ptr_nonnull(strstr(capture_last_warning, "nobody reads the pipe"));
    for (unsigned i = 0; i < FRAMES; i++) {
        capture_write_frame(file, 7, LEN);
    }
    reader = open_reader();
    let_it_be_found();
    capture_write_frame(file, 7, LEN);
    capture_file_close(file);
    c = read_rest(reader, g_byte_array_new());
    ck_assert_uint_eq(c.interfaces, 1);
    ck_assert_str_eq(c.names[0], "one");
    ck_assert_uint_eq(c.packets, 1);
    ck_assert_uint_eq(c.missing, FRAMES);
    ck_assert_int_eq(capture_warnings, 1);
    capture_remove_folder();
}
END_TEST

/* "A frame for which the pipe has no room is left out; the next one that is written says how many
 * are missing." The lengths are those of small packets, of large ones, and of both. */
START_TEST(a_slow_reader_gets_whole_packets)
{
    static const size_t lens[][2] = {{LEN, LEN}, {9000, 9000}, {60, 9000}, {60, 60}};
    GByteArray *stream = g_byte_array_new();
    struct capture_file *file;
    struct capture_contents c;
    unsigned all = 0;
    int reader;

    make_pipe();
    reader = open_reader();
    file = capture_open_as("one", NULL, NULL);
    for (unsigned i = 0; i < 10 * FRAMES; i++, all++) {
        capture_write_frame(file, 7, lens[_i][i % 2]);
    }
    read_pipe(reader, stream);
    for (unsigned i = 0; i < FRAMES; i++, all++) {
        capture_write_frame(file, 7, lens[_i][i % 2]);
        if (i % 100 == 0) {
            read_pipe(reader, stream);
        }
    }
    read_pipe(reader, stream);
    capture_write_frame(file, 7, LEN);
    all++;
    capture_file_close(file);
    c = read_rest(reader, stream);
    ck_assert_uint_gt(c.packets, 100);
    ck_assert_uint_gt(c.missing, 0);
    ck_assert_uint_eq(c.packets + c.missing, all);
    ck_assert_int_eq(capture_warnings, 0);
    capture_remove_folder();
}
END_TEST

/* No SIGPIPE, no end: the next reader gets a stream from its beginning. */
START_TEST(a_reader_may_go_and_another_one_come)
{
    struct capture_file *file;
    struct capture_contents c;
    int reader;

    make_pipe();
    reader = open_reader();
    file = capture_open_as("one", NULL, NULL);
    capture_write_frame(file, 7, LEN);
    close(reader);
    for (unsigned i = 0; i < FRAMES; i++) {
        capture_write_frame(file, 7, LEN);
    }
    reader = open_reader();
    let_it_be_found();
    capture_write_frame(file, 7, LEN);
    capture_write_frame(file, 7, LEN);
    capture_file_close(file);
    c = read_rest(reader, g_byte_array_new());
    ck_assert_uint_eq(c.packets, 2);
    ck_assert_uint_eq(c.missing, FRAMES);
    ck_assert_int_eq(capture_warnings, 0);
    capture_remove_folder();
}
END_TEST

START_TEST(ports_of_a_process_share_a_pipe)
{
    GByteArray *stream = g_byte_array_new();
    struct capture_file *file[3];
    struct capture_contents c;
    int reader;

    make_pipe();
    reader = open_reader();
    for (unsigned i = 0; i < 3; i++) {
        file[i] = capture_open_as("one", NULL, NULL);
    }
    for (unsigned i = 0; i < 10; i++) {
        capture_write_frame(file[i % 2], 7, 100); /* the third one has no frame */
    }
    read_pipe(reader, stream);
    c = capture_read(stream->data, stream->len);
    ck_assert_uint_eq(c.interfaces, 2);
    ck_assert_uint_eq(c.of_interface[0], 5);
    ck_assert_uint_eq(c.of_interface[1], 5);
    /* The next reader is told of the interfaces anew, in the order of their frames. */
    close(reader);
    capture_file_close(file[0]);
    capture_write_frame(file[1], 7, 100);
    reader = open_reader();
    let_it_be_found();
    capture_write_frame(file[2], 7, 100);
    capture_write_frame(file[1], 7, 100);
    capture_file_close(file[1]);
    capture_write_frame(file[2], 7, 100);
    capture_file_close(file[2]);
    g_byte_array_set_size(stream, 0);
    c = read_rest(reader, stream);
    ck_assert_uint_eq(c.interfaces, 2);
    ck_assert_uint_eq(c.of_interface[0], 2);
    ck_assert_uint_eq(c.of_interface[1], 1);
    ck_assert_uint_eq(c.missing_of[1], 1);
    capture_remove_folder();
}
END_TEST

/* "another process writes it now" */
START_TEST(a_pipe_has_one_process_that_writes)
{
    struct capture_file *file;
    struct capture_contents c;
    int reader, status;
    pid_t child;

    make_pipe();
    reader = open_reader();
    file = capture_open_as("one", NULL, NULL);
    capture_write_frame(file, 7, 100);
    child = fork();
    if (!child) {
        g_autoptr(GError) err = NULL;

        capture_write_frame(file, 7, 100); /* the pipe is the parent's */
        _exit(capture_file_open(capture_path, "two", NULL, NULL, &err) ||
              !strstr(err->message, "a pipe has one writer"));
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    capture_write_frame(file, 7, 100);
    capture_file_close(file);
    c = read_rest(reader, g_byte_array_new());
    ck_assert_uint_eq(c.packets, 2);
    ck_assert_uint_eq(c.interfaces, 1);
    capture_remove_folder();
}
END_TEST

/* The reader would wait for the end of the child, too. */
START_TEST(a_child_of_the_moment_of_opening_has_no_copy)
{
    g_autofree char *other_name = NULL;
    struct capture_file *file;
    int reader;

    make_pipe();
    other_name = g_strconcat(capture_path, ".reader", NULL);
    ck_assert_int_eq(link(capture_path, other_name), 0);
    reader = open(other_name, O_RDONLY | O_NONBLOCK);
    fork_at_open_begin(capture_path);
    file = capture_open_as("one", NULL, NULL);
    ck_assert(!fork_at_open_end());
    capture_file_close(file);
    close(reader);
    g_remove(other_name);
    capture_remove_folder();
}
END_TEST

/* A file that is neither a regular file nor a pipe takes what it takes. */
START_TEST(a_device_is_written_as_a_stream)
{
    struct capture_file *file;

    make_pipe();
    capture_remove_folder();
    capture_path = g_strdup("/dev/null");
    file = capture_open_as("one", NULL, NULL);
    capture_write_frame(file, 7, 100);
    capture_file_close(file);
    ck_assert_int_eq(capture_warnings, 0);
    g_free(capture_path);
    capture_path = g_strdup("/dev/full");
    ck_assert_ptr_null(capture_file_open(capture_path, "one", NULL, NULL, NULL));
    g_free(capture_path);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *s = suite_create("capture pipe");
    TCase *tc = tcase_create("pipe");

    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, a_pipe_waits_for_its_first_reader);
    tcase_add_test(tc, traffic_does_not_wait_for_a_reader);
    tcase_add_loop_test(tc, a_slow_reader_gets_whole_packets, 0, 4);
    tcase_add_test(tc, a_reader_may_go_and_another_one_come);
    tcase_add_test(tc, ports_of_a_process_share_a_pipe);
    tcase_add_test(tc, a_pipe_has_one_process_that_writes);
    tcase_add_test(tc, a_child_of_the_moment_of_opening_has_no_copy);
    tcase_add_test(tc, a_device_is_written_as_a_stream);
    suite_add_tcase(s, tc);
    return s;
}
