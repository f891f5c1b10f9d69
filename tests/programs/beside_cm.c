/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests the descriptors of the connection manager's file, /dev/infiniband/rdma_cm: duplicates, ways
 * to close them, and those of a child that shares its parent's memory. Run by `hcasim run`; each
 * statement has its own process and wire.
 */
#define _GNU_SOURCE
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <limits.h>
#include <pthread.h>
#include <rdma/rdma_user_cm.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tests/programs/beside.h"
#include "tests/programs/own_wire.h"

static int open_rdma_cm(void)
{
    int fd;

    beside_own_wire();
    ibv_free_device_list(ibv_get_device_list(NULL));
    fd = open("/dev/infiniband/rdma_cm", O_RDWR | O_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    return fd;
}

static bool is_rdma_cm(int fd)
{
    struct stat st;

    return !fstat(fd, &st) && S_ISCHR(st.st_mode);
}

START_TEST(a_new_file_takes_a_closed_descriptors_number)
{
    int fd = open_rdma_cm(), other;
    uint64_t sent = 5, got = 0;

    ck_assert(is_rdma_cm(fd));
    ck_assert_int_eq(syscall(SYS_close, fd), 0); /* as some libraries do */
    other = eventfd(0, EFD_CLOEXEC);
    ck_assert_int_eq(other, fd);
    ck_assert(!is_rdma_cm(fd));
    ck_assert_int_eq(write(other, &sent, sizeof(sent)), sizeof(sent));
    ck_assert_int_eq(read(other, &got, sizeof(got)), sizeof(got));
    ck_assert_uint_eq(got, sent);
    close(other);
}
END_TEST

START_TEST(a_duplicate_is_the_same_file)
{
    int fd = open_rdma_cm(), other, copy;

    other = open("/dev/null", O_RDWR | O_CLOEXEC);
    ck_assert_int_ge(other, 0);
    ck_assert_int_eq(dup2(-1, fd), -1); /* fails, and closes nothing */
    ck_assert(is_rdma_cm(fd));
    copy = dup(fd);
    ck_assert(is_rdma_cm(copy));
    ck_assert_int_eq(dup2(fd, copy), copy);
    ck_assert_int_eq(dup3(fd, other, O_CLOEXEC), other);
    close(fd);
    ck_assert(is_rdma_cm(copy) && is_rdma_cm(other));
    ck_assert_int_eq(dup2(fileno(stdin), copy), copy);
    ck_assert_int_eq(write(other, "", 1), -1); /* it is not a command */
    ck_assert_int_eq(errno, EINVAL);
    close(other);
    close(copy);
}
END_TEST

START_TEST(other_ways_to_duplicate_and_to_close)
{
    int fd = open_rdma_cm(), copy = fcntl(fd, F_DUPFD_CLOEXEC, fd + 10), other;

    ck_assert_int_ge(copy, fd + 10);
    ck_assert(is_rdma_cm(copy));
    close(fd);
    ck_assert_int_eq(write(copy, "", 1), -1); /* it is not a command */
    ck_assert_int_eq(errno, EINVAL);
    ck_assert_int_eq(close_range((unsigned)copy, (unsigned)copy, 0), 0);
    ck_assert_int_eq(fcntl(copy, F_GETFD), -1);
    other = open("/dev/infiniband/rdma_cm", O_RDWR | O_CLOEXEC);
    ck_assert(is_rdma_cm(other));
    close(other);
}
END_TEST

#define CLOSINGS 200

static atomic_uint asked;

/* Asks until the answer is not that the buffer has no room; returns that answer. */
static void *ask_until_it_is_closed(void *opaque)
{
    const int *fd = opaque;
    struct rdma_ucm_cmd_hdr hdr[2] = {{.cmd = RDMA_USER_CM_CMD_GET_EVENT, .in = sizeof(hdr[1])}};

    while (write(*fd, hdr, sizeof(hdr)) < 0 && errno == ENOSPC) {
        asked++;
    }
    return (void *)(intptr_t)errno;
}

/* As with any file, the descriptor either is a file or it is not. */
START_TEST(a_descriptor_is_either_open_or_closed)
{
    for (unsigned i = 0; i < CLOSINGS; i++) {
        int fd = open_rdma_cm();
        pthread_t thread;
        void *err;

        asked = 0;
        ck_assert_int_eq(pthread_create(&thread, NULL, ask_until_it_is_closed, &fd), 0);
        while (!asked) {
            sched_yield();
        }
        ck_assert_int_eq(close(fd), 0);
        ck_assert_int_eq(pthread_join(thread, &err), 0);
        ck_assert_int_eq((intptr_t)err, EBADF);
    }
}
END_TEST

static int borrowed_fd;

/* Makes a child that shares its parent's memory until it ends. */
__attribute__((noinline)) static void close_and_look_in_a_borrower(void)
{
    pid_t pid = vfork();
    int status;

    if (!pid) {
        close(borrowed_fd);
        _exit(access(IBDEV, F_OK) ? 1 : 0);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
}

START_TEST(a_child_s_doings_are_its_own)
{
    char before[PATH_MAX], after[PATH_MAX];

    borrowed_fd = open_rdma_cm();
    beside_root(before);
    close_and_look_in_a_borrower();
    ck_assert(is_rdma_cm(borrowed_fd));
    beside_root(after);
    ck_assert_str_eq(after, before);
    close(borrowed_fd);
}
END_TEST

int main(void)
{
    const TTest *const statements[] = {
        a_new_file_takes_a_closed_descriptors_number,
        a_duplicate_is_the_same_file,
        other_ways_to_duplicate_and_to_close,
        a_descriptor_is_either_open_or_closed,
        a_child_s_doings_are_its_own,
    };
    TCase *tc = tcase_create("descriptors");
    Suite *suite = suite_create("verbs-beside-cm");

    tcase_set_timeout(tc, 60);
    for (size_t i = 0; i < sizeof(statements) / sizeof(statements[0]); i++) {
        tcase_add_test(tc, statements[i]);
    }
    suite_add_tcase(suite, tc);
    return run_on_own_wire(suite, "beside-cm");
}
