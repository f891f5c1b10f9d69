/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests captures that are a ring of files: what stays, who shares them, and what becomes of them
 * when a writer is killed.
 */
#include "wire/capture_blocks.h"
#include "wire/capture_file.h"
#include "wire/port.h"
#include "tests/unit/capture_reader.h"
#include "tests/unit/capture_writer.h"
#include "tests/unit/suite.h"

#include <check.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    SIZE = CAPTURE_RING_SIZE_MIN,
    WRITERS = 4,
    FRAMES = 400, /* of each writer */
    KILLED = 30,
};

static const struct capture_ring three = {SIZE, 3};

/* How many files there are, and that none is larger than it may be. */
static unsigned count_files(void)
{
    g_autofree char *folder = g_path_get_dirname(capture_path);
    GDir *dir = g_dir_open(folder, 0, NULL);
    unsigned count = 0;

    for (const char *name; (name = g_dir_read_name(dir)); count++) {
        g_autofree char *file = g_build_filename(folder, name, NULL);
        struct stat st;

        ck_assert_int_eq(g_stat(file, &st), 0);
        ck_assert_int_le(st.st_size, SIZE);
    }
    g_dir_close(dir);
    return count;
}

/* Whether the file of that number is there. */
static bool has_number(uint32_t number)
{
    g_autofree char *name = capture_ring_name(capture_path, number);

    return !g_access(name, F_OK);
}

static struct capture_contents read_number(uint32_t number)
{
    g_autofree char *name = capture_ring_name(capture_path, number);

    return capture_read_file(name);
}

START_TEST(the_number_stands_before_the_suffix)
{
    static const struct {
        const char *capture_path, *name;
    } rows[] = {
        {"all.pcapng", "all.00007.pcapng"},     {"/a.b/all.pcapng", "/a.b/all.00007.pcapng"},
        {"/a.b/all", "/a.b/all.00007"},         {"all", "all.00007"},
        {"/tmp/.hidden", "/tmp/.hidden.00007"},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autofree char *name = capture_ring_name(rows[i].capture_path, 7);

        ck_assert_str_eq(name, rows[i].name);
    }
}
END_TEST

/* "When it is full, it gets the name of its number, a new PATH begins, and the oldest file is
 * removed." */
START_TEST(a_ring_keeps_its_newest_files)
{
    struct capture_file *file;
    unsigned per_file, in_path;

    capture_make_folder("ring.pcapng");
    file = capture_open_as("one", NULL, &three);
    while (!has_number(1)) {
        capture_write_frame(file, 1, 1000);
        ck_assert_uint_le(count_files(), 2);
    }
    per_file = read_number(1).packets;
    ck_assert_uint_gt(per_file, SIZE / 1100);
    ck_assert_uint_eq(capture_read_file(capture_path).packets, 1);
    for (unsigned i = 1; i < 4 * per_file; i++) {
        capture_write_frame(file, 1, 1000);
    }
    capture_file_close(file);
    in_path = capture_read_file(capture_path).packets;
    ck_assert_uint_eq(in_path, per_file);
    ck_assert(!has_number(1) && !has_number(2));
    ck_assert(has_number(3) && has_number(4) && !has_number(5));
    ck_assert_uint_eq(read_number(3).packets, per_file);
    ck_assert_uint_eq(read_number(4).packets, per_file);
    ck_assert_uint_eq(count_files(), 3);
    capture_remove_folder();
}
END_TEST

/* A program may change its folder. */
START_TEST(a_ring_stays_where_it_was_begun)
{
    g_autofree char *folder = NULL, *before = g_get_current_dir();
    GError *err = NULL;
    struct capture_file *file;

    capture_make_folder("ring.pcapng");
    folder = g_path_get_dirname(capture_path);
    ck_assert_int_eq(chdir(folder), 0);
    file = capture_file_open("ring.pcapng", "one", NULL, &three, &err);
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(chdir(before), 0);
    for (unsigned i = 0; i < 1000 && !has_number(2); i++) {
        capture_write_frame(file, 1, 1000);
    }
    ck_assert(has_number(2));
    ck_assert_uint_eq(count_files(), 3);
    capture_file_close(file);
    capture_remove_folder();
}
END_TEST

START_TEST(a_ring_of_one_file_begins_anew)
{
    static const struct capture_ring one = {SIZE, 1};
    struct capture_file *file;

    capture_make_folder("ring.pcapng");
    file = capture_open_as("one", NULL, &one);
    for (unsigned i = 0; i < 200; i++) {
        capture_write_frame(file, 1, 9000);
        ck_assert_uint_eq(count_files(), 1);
        ck_assert_uint_ge(capture_read_file(capture_path).packets, 1);
    }
    capture_file_close(file);
    capture_remove_folder();
}
END_TEST

/* "Each port describes its interface in each file before its first frame there." */
START_TEST(each_file_has_the_interfaces_of_its_frames)
{
    struct capture_file *file[2];
    struct capture_contents c;

    capture_make_folder("ring.pcapng");
    file[0] = capture_open_as("zero", NULL, &three);
    file[1] = capture_open_as("one", NULL, &three);
    while (!has_number(2)) {
        capture_write_frame(file[0], 1, 3000);
        capture_write_frame(file[1], 2, 3000);
    }
    c = read_number(2);
    ck_assert_uint_eq(c.interfaces, 2);
    ck_assert_uint_gt(c.of_interface[0], 5);
    ck_assert_uint_gt(c.of_interface[1], 5);
    /* A file without frames of a port does not name it. */
    while (!has_number(5)) {
        capture_write_frame(file[1], 2, 3000);
    }
    c = read_number(5);
    ck_assert_uint_eq(c.interfaces, 1);
    ck_assert_str_eq(c.names[0], "one");
    capture_write_frame(file[0], 1, 60);
    c = capture_read_file(capture_path);
    ck_assert_uint_eq(c.interfaces, 2);
    ck_assert_str_eq(c.names[1], "zero");
    capture_file_close(file[0]);
    capture_file_close(file[1]);
    capture_remove_folder();
}
END_TEST

START_TEST(processes_share_a_ring)
{
    static const struct capture_ring all = {SIZE, 5000}; /* so that every frame stays */
    unsigned packets = 0, missing = 0;
    struct capture_contents c;
    int status;

    capture_make_folder("ring.pcapng");
    for (unsigned i = 0; i < WRITERS; i++) {
        if (!fork()) {
            struct capture_file *file = capture_open_as("writer", "4711.1", &all);

            for (unsigned n = 0; n < FRAMES; n++) {
                capture_write_frame(file, (uint8_t)i, 60 + (n * 37 + i * 11) % 9000);
            }
            /* says how many are missing */
            for (unsigned n = 0; n < 50; n++) {
                capture_write_frame(file, CAPTURE_CLOSER, 60);
                g_usleep(1000);
            }
            capture_file_close(file);
            _exit(0);
        }
    }
    for (unsigned i = 0; i < WRITERS; i++) {
        ck_assert_int_gt(wait(&status), 0);
        ck_assert_int_eq(status, 0);
    }
    for (uint32_t number = 1; has_number(number); number++) {
        c = read_number(number);
        ck_assert_uint_le(c.interfaces, WRITERS);
        packets += c.packets;
        missing += (unsigned)c.missing;
    }
    c = capture_read_file(capture_path);
    packets += c.packets;
    missing += (unsigned)c.missing;
    ck_assert(has_number(50)); /* the file was changed often */
    ck_assert_uint_le(packets + missing, WRITERS * (FRAMES + 50));
    ck_assert_uint_ge(packets + missing, WRITERS * (FRAMES + 1));
    capture_remove_folder();
}
END_TEST

static void mark_as_full(void)
{
    struct capture_section section;
    struct capture_record record;
    int fd = open(capture_path, O_RDWR);

    ck_assert_int_eq(pread(fd, &section, sizeof(section), 0), sizeof(section));
    ck_assert(capture_record_parse((uint8_t *)&section, sizeof(section), &record));
    record.is_full = true;
    capture_record_print(section.record, &record);
    ck_assert_int_eq(pwrite(fd, &section, sizeof(section), 0), sizeof(section));
    close(fd);
}

/* A writer marks the full file, then puts the next one into its place. Even a small frame goes into
 * a next file if the writer was killed between the two. */
START_TEST(a_marked_file_at_path_takes_no_frame)
{
    struct capture_file *file;

    capture_make_folder("ring.pcapng");
    file = capture_open_as("first", "4711.1", &three);
    capture_write_frame(file, 1, 100);
    mark_as_full();
    capture_write_frame(file, 2, 100);
    ck_assert(has_number(1));
    ck_assert_uint_eq(read_number(1).packets, 1);
    ck_assert_uint_eq(capture_read_file(capture_path).packets, 1);
    capture_file_close(file);
    capture_remove_folder();
}
END_TEST

/* Writers of large frames change the file all the time, and one is killed at any moment. */
START_TEST(killed_writers_leave_a_ring)
{
    struct capture_file *first;
    GRand *rand = g_rand_new_with_seed(1);

    capture_make_folder("ring.pcapng");
    first = capture_open_as("first", "4711.1", &three);
    for (unsigned i = 0; i < KILLED; i++) {
        pid_t pid = fork();
        unsigned before;

        ck_assert_int_ge(pid, 0);
        if (!pid) {
            struct capture_file *file = capture_open_as("killed", "4711.1", &three);

            for (;;) {
                capture_write_frame(file, 1, 9000);
            }
        }
        g_usleep((gulong)g_rand_int_range(rand, 2000, 20000));
        kill(pid, SIGKILL);
        ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
        capture_write_frame(first, 2, 100); /* as often as the killed one may have had the turn */
        capture_write_frame(first, 2, 100);
        before = capture_read_file(capture_path).packets;
        capture_write_frame(first, 2, 100);
        ck_assert_uint_eq(capture_read_file(capture_path).packets, before + 1);
        ck_assert_uint_le(count_files(), 3 + 1); /* the next one, half made */
    }
    capture_file_close(first);
    g_rand_free(rand);
    capture_remove_folder();
}
END_TEST

/* The steps of a change after which a writer may be killed, by hand. */
START_TEST(a_change_that_was_not_finished_is_finished)
{
    g_autofree char *next = NULL, *name = NULL, *moved = NULL;
    struct capture_file *file, *other;

    capture_make_folder("ring.pcapng");
    next = g_strconcat(capture_path, ".next", NULL);
    name = capture_ring_name(capture_path, 1);
    file = capture_open_as("one", "4711.1", &three);
    capture_write_frame(file, 1, 1000);
    /* The next file was made, and the full one got its name. */
    ck_assert(g_file_set_contents(next, "half", -1, NULL));
    ck_assert_int_eq(link(capture_path, name), 0);
    while (!has_number(2)) {
        capture_write_frame(file, 1, 1000);
    }
    ck_assert_int_ne(g_access(next, F_OK), 0);
    ck_assert_uint_gt(read_number(1).packets, 10);
    /* The next file got its place, and the full one was not marked: its writers go on there until
     * it is full, and no file is made a second time. */
    moved = capture_ring_name(capture_path, 3);
    ck_assert_int_eq(rename(capture_path, moved), 0);
    other = capture_open_as("two", "4711.1", &three);
    capture_write_frame(other, 2, 1000);
    for (unsigned i = 0; i < 100 && capture_read_file(capture_path).interfaces < 2; i++) {
        capture_write_frame(file, 1, 1000);
    }
    ck_assert_uint_eq(capture_read_file(capture_path).interfaces, 2);
    ck_assert_uint_eq(capture_read_file(capture_path).of_interface[0], 1);
    capture_file_close(file);
    capture_file_close(other);
    capture_remove_folder();
}
END_TEST

/* "All who write the file must ask for the same ring." */
START_TEST(another_ring_is_refused)
{
    static const struct capture_ring others[] = {{SIZE, 4}, {2 * SIZE, 3}, {0, 0}};
    struct capture_file *file;

    capture_make_folder("ring.pcapng");
    file = capture_open_as("one", NULL, &three);
    for (size_t i = 0; i < G_N_ELEMENTS(others); i++) {
        g_autoptr(GError) err = NULL;

        ck_assert_ptr_null(capture_file_open(capture_path, "two", NULL, &others[i], &err));
        ck_assert_ptr_nonnull(strstr(err->message, "capture_size and capture_files"));
    }
    capture_write_frame(file, 1, 100);
    ck_assert_uint_eq(capture_read_file(capture_path).packets, 1);
    capture_file_close(file);
    /* When nobody writes it any more, it is replaced. */
    file = capture_open_as("two", NULL, NULL);
    capture_file_close(file);
    ck_assert_uint_eq(capture_read_file(capture_path).packets, 0);
    capture_remove_folder();
}
END_TEST

/* "If the file is emptied, the older files of its ring are removed." */
START_TEST(another_run_removes_the_files_of_the_ring)
{
    struct capture_file *file;

    capture_make_folder("ring.pcapng");
    file = capture_open_as("one", "4711.1", &three);
    while (!has_number(4)) {
        capture_write_frame(file, 1, 1000);
    }
    capture_file_close(file);
    ck_assert_uint_eq(count_files(), 3);
    file = capture_open_as("same run", "4711.1", &three);
    capture_write_frame(file, 1, 1000);
    capture_file_close(file);
    ck_assert_uint_eq(count_files(), 3);
    file = capture_open_as("another run", "4711.2", &three);
    capture_write_frame(file, 1, 1000);
    ck_assert_uint_eq(count_files(), 1);
    ck_assert_uint_eq(capture_read_file(capture_path).interfaces, 1);
    while (!has_number(1)) {
        capture_write_frame(file, 1, 1000);
    }
    capture_file_close(file);
    capture_remove_folder();
}
END_TEST

Suite *unit_suite(void)
{
    Suite *s = suite_create("capture ring");
    TCase *tc = tcase_create("ring");

    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, the_number_stands_before_the_suffix);
    tcase_add_test(tc, a_ring_keeps_its_newest_files);
    tcase_add_test(tc, a_ring_stays_where_it_was_begun);
    tcase_add_test(tc, a_ring_of_one_file_begins_anew);
    tcase_add_test(tc, each_file_has_the_interfaces_of_its_frames);
    tcase_add_test(tc, processes_share_a_ring);
    tcase_add_test(tc, a_marked_file_at_path_takes_no_frame);
    tcase_add_test(tc, killed_writers_leave_a_ring);
    tcase_add_test(tc, a_change_that_was_not_finished_is_finished);
    tcase_add_test(tc, another_ring_is_refused);
    tcase_add_test(tc, another_run_removes_the_files_of_the_ring);
    suite_add_tcase(s, tc);
    return s;
}
