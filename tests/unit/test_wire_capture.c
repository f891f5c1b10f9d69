/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests a capture file that several ports write: of one process, of many, of some that are killed.
 */
#include "wire/capture_file.h"
#include "wire/port.h"
#include "tests/unit/capture_reader.h"
#include "tests/unit/capture_writer.h"
#include "tests/unit/fork_at_open.h"
#include "tests/unit/suite.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    WRITERS = 4,
    FRAMES = 300, /* frames of each writer */
    CLOSERS = 50, /* after them, so that one is written that says how many are missing */
    CLOSER = CAPTURE_CLOSER,
    PACKET = 6,
    /* offset of the count: after the fields of the section and "hcasim; interfaces " */
    RECORD_COUNT = 28 + 19,
};

static struct capture_contents read_file(void)
{
    return capture_read_file(capture_path);
}

static struct capture_file *open_writer(unsigned number)
{
    g_autofree char *name = g_strdup_printf("writer %u", number);
    struct capture_file *file = capture_file_open(capture_path, name, NULL, NULL, NULL);

    if (!file) {
        _exit(1);
    }
    return file;
}

static void write_one(struct capture_file *file, unsigned number, unsigned i)
{
    capture_write_frame(file, (uint8_t)number, 60 + (i * 37 + number * 11) % 9000);
}

static void write_many(unsigned number)
{
    struct capture_file *file = open_writer(number);

    for (unsigned i = 0; i < FRAMES; i++) {
        write_one(file, number, i);
    }
    for (unsigned i = 0; i < CLOSERS; i++) {
        capture_write_frame(file, CLOSER, 60);
        g_usleep(1000);
    }
    capture_file_close(file);
}

START_TEST(processes_share_a_file)
{
    struct capture_file *first;
    struct capture_contents c;
    int status;

    capture_make_folder("shared.pcapng");
    first = capture_open_as("first", NULL, NULL);
    for (unsigned i = 0; i < WRITERS; i++) {
        if (!fork()) {
            write_many(i);
            _exit(0);
        }
    }
    for (unsigned i = 0; i < WRITERS; i++) {
        ck_assert_int_gt(wait(&status), 0);
        ck_assert_int_eq(status, 0);
    }
    capture_file_close(first);
    c = read_file();
    ck_assert_uint_eq(c.interfaces, WRITERS + 1);
    ck_assert_str_eq(c.names[0], "first");
    for (unsigned i = 1; i <= WRITERS; i++) {
        uint64_t all = c.of_interface[i] + c.missing_of[i];

        ck_assert_ptr_nonnull(strstr(c.names[i], "writer "));
        ck_assert_uint_le(c.of_interface[i], FRAMES);
        ck_assert_uint_ge(c.closers[i], 1);
        ck_assert_uint_ge(all, FRAMES);
        ck_assert_uint_le(all + c.closers[i], FRAMES + CLOSERS);
    }
    capture_remove_folder();
}
END_TEST

/* Starts a process that writes until it is killed. It has told so after its first frame. */
static pid_t start_endless_writer(unsigned i, int *told)
{
    int ends[2];
    pid_t pid;

    ck_assert_int_eq(pipe(ends), 0);
    pid = fork();
    ck_assert_int_ge(pid, 0);
    if (!pid) {
        struct capture_file *file = open_writer(i);

        for (unsigned n = 0;; n++) {
            write_one(file, i, n);
            if (!n && write(ends[1], "", 1) != 1) {
                _exit(1);
            }
        }
    }
    close(ends[1]);
    *told = ends[0];
    return pid;
}

/* Each third writer is killed at any time, perhaps before its first frame. The others are killed
 * after it, and what was written before is in the file. */
START_TEST(killed_writers_leave_a_whole_file)
{
    struct capture_file *first;
    struct capture_contents c;
    GRand *rand = g_rand_new_with_seed(1);
    unsigned written = 0;

    capture_make_folder("shared.pcapng");
    first = capture_open_as("first", NULL, NULL);
    for (unsigned i = 0; i < 12; i++) {
        int told;
        char nothing;
        pid_t pid = start_endless_writer(i, &told);

        if (i % 3) {
            ck_assert_int_eq(read(told, &nothing, 1), 1);
        }
        g_usleep((gulong)g_rand_int_range(rand, 500, 5000));
        capture_write_frame(first, 0xff, 100);
        kill(pid, SIGKILL);
        ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
        close(told);
        capture_write_frame(first, 0xff, 100);
        if (i % 4 == 3) {
            /* The reader above can only handle a few interfaces at a time. */
            capture_file_close(first);
            first = capture_open_as("first", NULL, NULL);
        }
        capture_write_frame(first, 0xff, 100);
        c = read_file();
        ck_assert_uint_ge(c.packets, 1);
        for (unsigned k = 1; k < c.interfaces; k++) {
            written += c.of_interface[k];
        }
    }
    ck_assert_uint_gt(written, 0); /* those that were killed had written */
    capture_file_close(first);
    g_rand_free(rand);
    capture_remove_folder();
}
END_TEST

/* A process that is killed between two pages of a block leaves a part of it, which may be longer
 * than the next block. */
START_TEST(a_part_of_a_block_is_cut_off)
{
    static const uint8_t part[4096] = {PACKET};
    struct capture_file *file;
    struct capture_contents c;
    FILE *killed;

    capture_make_folder("shared.pcapng");
    file = capture_open_as("first", NULL, NULL);
    capture_write_frame(file, 1, 100);
    killed = fopen(capture_path, "ab");
    ck_assert_uint_eq(fwrite(part, 1, sizeof(part), killed), sizeof(part));
    fclose(killed);
    capture_write_frame(file, 2, 60);
    c = read_file();
    ck_assert_uint_eq(c.packets, 2);
    capture_file_close(file);
    capture_remove_folder();
}
END_TEST

START_TEST(the_frames_of_a_run_stay)
{
    struct capture_file *file;
    struct capture_contents c;

    capture_make_folder("shared.pcapng");
    for (unsigned i = 0; i < 3; i++) {
        file = capture_open_as("one", "4711.1", NULL);
        capture_write_frame(file, 1, 100);
        capture_file_close(file);
    }
    c = read_file();
    ck_assert_uint_eq(c.interfaces, 3);
    ck_assert_uint_eq(c.packets, 3);
    /* Frames of another run are dropped, and a writer without a run drops all. */
    file = capture_open_as("two", _i ? "4711.2" : NULL, NULL);
    capture_file_close(file);
    c = read_file();
    ck_assert_uint_eq(c.interfaces, 1);
    ck_assert_uint_eq(c.packets, 0);
    capture_remove_folder();
}
END_TEST

START_TEST(the_name_of_a_run_may_have_blanks)
{
    static const char *const runs[] = {"make check 1",
                                       "make check 1",
                                       "make check 1  ",
                                       "make check",
                                       " make check",
                                       "make\ncheck",
                                       ""};
    static const unsigned interfaces[] = {1, 2, 3, 1, 1, 1, 1};

    capture_make_folder("shared.pcapng");
    for (size_t i = 0; i < G_N_ELEMENTS(runs); i++) {
        capture_file_close(capture_open_as("one", runs[i], NULL));
        ck_assert_msg(read_file().interfaces == interfaces[i], "'%s'", runs[i]);
    }
    capture_file_close(capture_open_as("one", "", NULL)); /* no run's, like the one before */
    ck_assert_uint_eq(read_file().interfaces, 1);
    capture_remove_folder();
}
END_TEST

/* A child of fork() that lives on without exec() would keep its parent's locks: then no later run
 * could replace the file. */
START_TEST(a_child_keeps_no_lock)
{
    struct capture_file *file;
    pid_t child;

    capture_make_folder("shared.pcapng");
    file = capture_open_as("one", NULL, NULL);
    capture_write_frame(file, 1, 100);
    child = fork();
    if (!child) {
        capture_write_frame(file, 2, 100); /* the file is the parent's */
        pause();
        _exit(0);
    }
    g_usleep(20000);
    capture_write_frame(file, 1, 100);
    ck_assert_uint_eq(read_file().packets, 2);
    capture_file_close(file);
    file = capture_open_as("two", NULL, NULL);
    ck_assert_uint_eq(read_file().interfaces, 1);
    capture_file_close(file);
    ck_assert_int_eq(kill(child, SIGKILL), 0);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    capture_remove_folder();
}
END_TEST

/* The same for a child that another thread forks when the file has just been opened. */
START_TEST(a_child_of_the_moment_of_opening_has_no_copy)
{
    struct capture_file *file;

    capture_make_folder("shared.pcapng");
    fork_at_open_begin(capture_path);
    file = capture_open_as("one", NULL, NULL);
    ck_assert(!fork_at_open_end());
    capture_file_close(file);
    capture_remove_folder();
}
END_TEST

/* "If another port writes path, the frames are appended in any case." */
START_TEST(a_file_that_is_written_is_not_emptied)
{
    struct capture_file *one, *two;
    struct capture_contents c;

    capture_make_folder("shared.pcapng");
    one = capture_open_as("one", "4711.1", NULL);
    capture_write_frame(one, 1, 100);
    two = capture_open_as("two", "4711.2", NULL);
    capture_write_frame(two, 2, 101);
    capture_write_frame(one, 3, 102);
    c = read_file();
    ck_assert_uint_eq(c.interfaces, 2);
    ck_assert_uint_eq(c.of_interface[0], 2);
    ck_assert_uint_eq(c.of_interface[1], 1);
    capture_file_close(one);
    capture_file_close(two);
    capture_remove_folder();
}
END_TEST

/* "the next one that is written says how many are missing" */
START_TEST(a_stopped_writer_holds_nobody_up)
{
    struct flock turn = {.l_type = F_WRLCK, .l_start = 1, .l_len = 1};
    struct capture_file *file;
    struct capture_contents c;
    int fd;

    capture_make_folder("shared.pcapng");
    file = capture_open_as("one", NULL, NULL);
    fd = open(capture_path, O_RDWR);
    ck_assert_int_eq(fcntl(fd, F_OFD_SETLK, &turn), 0);
    for (unsigned i = 0; i < 1000; i++) {
        capture_write_frame(file, 1,
                            100); /* the first one waits for some milliseconds; the others do not */
    }
    ck_assert_uint_eq(read_file().packets, 0);
    close(fd);
    capture_write_frame(file, 2, 100);
    c = read_file();
    ck_assert_uint_eq(c.packets, 1);
    ck_assert_uint_eq(c.missing, 1000);
    capture_write_frame(file, 2, 100);
    ck_assert_uint_eq(read_file().missing, 1000);
    capture_file_close(file);
    capture_remove_folder();
}
END_TEST

START_TEST(an_emptied_file_ends_the_capture)
{
    struct capture_file *file;
    struct stat st;

    capture_make_folder("shared.pcapng");
    file = capture_open_as("one", NULL, NULL);
    capture_write_frame(file, 1, 100);
    ck_assert_int_eq(truncate(capture_path, 0), 0);
    capture_write_frame(file, 2, 100);
    capture_write_frame(file, 2, 100);
    ck_assert_int_eq(capture_warnings, 1);
    ck_assert_ptr_nonnull(
        strstr(capture_last_warning, "somebody else has emptied or replaced what it had"));
    ck_assert_int_eq(g_stat(capture_path, &st), 0);
    ck_assert_int_eq(st.st_size, 0);
    capture_file_close(file);
    /* The next writer begins anew. */
    file = capture_open_as("two", NULL, NULL);
    capture_write_frame(file, 2, 100);
    ck_assert_uint_eq(read_file().packets, 1);
    capture_file_close(file);
    capture_remove_folder();
}
END_TEST

/* The descriptor of this process's open capture. */
static int find_descriptor(void)
{
    struct stat st, found;

    ck_assert_int_eq(g_stat(capture_path, &st), 0);
    for (int fd = 3; fd < 1000; fd++) {
        if (!fstat(fd, &found) && found.st_ino == st.st_ino && found.st_dev == st.st_dev) {
            return fd;
        }
    }
    ck_abort_msg("the capture is not open");
}

START_TEST(a_file_that_cannot_be_read_ends_the_capture)
{
    struct capture_file *file;
    int write_only;

    capture_make_folder("shared.pcapng");
    file = capture_open_as("one", NULL, NULL);
    capture_write_frame(file, 1, 100);
    write_only = open(capture_path, O_WRONLY);
    ck_assert_int_ge(dup2(write_only, find_descriptor()), 0);
    capture_write_frame(file, 2, 100);
    ck_assert_int_eq(capture_warnings, 1);
    ck_assert_ptr_nonnull(strstr(capture_last_warning, g_strerror(EBADF)));
    capture_file_close(file);
    close(write_only);
    capture_remove_folder();
}
END_TEST

/* A file that no capture wrote is replaced, as any program replaces its output file. */
START_TEST(a_foreign_file_is_replaced)
{
    struct capture_file *file;

    capture_make_folder("shared.pcapng");
    ck_assert(g_file_set_contents(capture_path, "somebody's text", -1, NULL));
    file = capture_open_as("one", "4711.1", NULL);
    capture_write_frame(file, 1, 100);
    ck_assert_uint_eq(read_file().packets, 1);
    capture_file_close(file);
    capture_remove_folder();
}
END_TEST

/* A number of interfaces that is longer than its place in the record is not printed into it. The
 * file is replaced if nobody writes it. If another port writes it, capturing fails. */
START_TEST(a_record_that_counts_too_many_interfaces_is_refused)
{
    static const char many[] = "4294967290; bytes 150; run 4711.1";
    struct capture_file *file, *other;
    g_autoptr(GError) err = NULL;
    int fd;

    capture_make_folder("shared.pcapng");
    file = capture_open_as("one", "4711.1", NULL);
    fd = open(capture_path, O_RDWR | O_CLOEXEC);
    ck_assert_int_eq(pwrite(fd, many, sizeof(many) - 1, RECORD_COUNT), sizeof(many) - 1);
    other = capture_file_open(capture_path, "two", "4711.1", NULL, &err);
    ck_assert_ptr_null(other);
    ck_assert_ptr_nonnull(err);
    capture_file_close(file);
    close(fd);
    file = capture_open_as("two", "4711.1", NULL);
    ck_assert_uint_eq(read_file().interfaces, 1);
    capture_file_close(file);
    capture_remove_folder();
}
END_TEST

Suite *unit_suite(void)
{
    Suite *s = suite_create("capture file");
    TCase *tc = tcase_create("shared");

    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, processes_share_a_file);
    tcase_add_test(tc, killed_writers_leave_a_whole_file);
    tcase_add_test(tc, a_part_of_a_block_is_cut_off);
    tcase_add_test(tc, the_name_of_a_run_may_have_blanks);
    tcase_add_test(tc, a_child_keeps_no_lock);
    tcase_add_test(tc, a_child_of_the_moment_of_opening_has_no_copy);
    tcase_add_test(tc, a_file_that_cannot_be_read_ends_the_capture);
    tcase_add_loop_test(tc, the_frames_of_a_run_stay, 0, 2);
    tcase_add_test(tc, a_file_that_is_written_is_not_emptied);
    tcase_add_test(tc, a_stopped_writer_holds_nobody_up);
    tcase_add_test(tc, an_emptied_file_ends_the_capture);
    tcase_add_test(tc, a_foreign_file_is_replaced);
    tcase_add_test(tc, a_record_that_counts_too_many_interfaces_is_refused);
    suite_add_tcase(s, tc);
    return s;
}
