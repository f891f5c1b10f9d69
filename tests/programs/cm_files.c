/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests files of the connection manager (/dev/infiniband/rdma_cm) that several users share:
 * threads, signal handlers, children. Under hcasim run; written to the ABI (rdma/rdma_user_cm.h),
 * so that the same must hold with a kernel.
 */
#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <rdma/rdma_user_cm.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "tests/programs/own_wire.h"

#define PS_TCP   0x106
#define QPT_RC   2
#define PORT     7174
#define PATIENT  20 /* seconds; longer is a hang */
#define WRITERS  3
#define RACE_MS  1500
#define CHILDREN 40
#define ENDINGS  60

static int rdma_cm(void)
{
    int fd;

    ibv_free_device_list(ibv_get_device_list(NULL)); /* loads the library */
    fd = open("/dev/infiniband/rdma_cm", O_RDWR | O_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    return fd;
}

/* Returns 0 or an errno. */
static int command(int fd, uint32_t cmd, const void *in, size_t len, size_t out)
{
    uint8_t buf[512];
    struct rdma_ucm_cmd_hdr hdr = {.cmd = cmd, .in = (uint16_t)len, .out = (uint16_t)out};

    memcpy(buf, &hdr, sizeof(hdr));
    memcpy(buf + sizeof(hdr), in, len);
    return write(fd, buf, sizeof(hdr) + len) == (ssize_t)(sizeof(hdr) + len) ? 0 : errno;
}

static int create(int fd, uint32_t *id)
{
    struct rdma_ucm_create_id_resp resp = {0};
    struct rdma_ucm_create_id cmd = {
        .uid = 1, .response = (uintptr_t)&resp, .ps = PS_TCP, .qp_type = QPT_RC};
    int err = command(fd, RDMA_USER_CM_CMD_CREATE_ID, &cmd, sizeof(cmd), sizeof(resp));

    *id = resp.id;
    return err;
}

static int destroy(int fd, uint32_t id)
{
    struct rdma_ucm_destroy_id_resp resp;
    struct rdma_ucm_destroy_id cmd = {.id = id, .response = (uintptr_t)&resp};

    return command(fd, RDMA_USER_CM_CMD_DESTROY_ID, &cmd, sizeof(cmd), sizeof(resp));
}

static int listen_at_port(int fd, uint32_t id)
{
    struct rdma_ucm_bind_ip bind = {.id = id};
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    struct rdma_ucm_listen cmd = {.id = id, .backlog = 4};
    int err;

    memcpy(&bind.addr, &addr, sizeof(addr));
    err = command(fd, RDMA_USER_CM_CMD_BIND_IP, &bind, sizeof(bind), 0);
    return err ? err : command(fd, RDMA_USER_CM_CMD_LISTEN, &cmd, sizeof(cmd), 0);
}

static void get_event(int fd)
{
    struct rdma_ucm_event_resp resp;
    struct rdma_ucm_get_event cmd = {.response = (uintptr_t)&resp};

    command(fd, RDMA_USER_CM_CMD_GET_EVENT, &cmd, sizeof(cmd), sizeof(resp));
}

static void create_and_destroy(int fd)
{
    uint32_t id;

    if (!create(fd, &id)) {
        destroy(fd, id);
    }
}

static bool is_later(const struct timespec *since, unsigned ms)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (now.tv_sec - since->tv_sec) * 1000 + (now.tv_nsec - since->tv_nsec) / 1000000 > ms;
}

/* -- threads ------------------------------------------------------------------------------------
 */

static volatile int shared = -1;
static volatile bool stop;

static void *write_to_shared(void *opaque)
{
    uint32_t id;

    while (!stop) {
        create(shared, &id);
    }
    return NULL;
}

/* A kernel keeps the file open during a call. (Only files of rdma_cm are opened meanwhile.) */
START_TEST(a_file_stays_while_somebody_writes_to_it)
{
    pthread_t thread[WRITERS];
    struct timespec start;

    close(rdma_cm());
    clock_gettime(CLOCK_MONOTONIC, &start);
    for (unsigned i = 0; i < WRITERS; i++) {
        ck_assert_int_eq(pthread_create(&thread[i], NULL, write_to_shared, NULL), 0);
    }
    for (unsigned i = 0; !is_later(&start, RACE_MS); i++) {
        int fd = open("/dev/infiniband/rdma_cm", O_RDWR | O_CLOEXEC);

        ck_assert_int_ge(fd, 0);
        shared = fd;
        for (volatile unsigned k = 0; k < 2000 + i % 7 * 3000; k++) {
        }
        ck_assert_int_eq(close(fd), 0);
    }
    stop = true;
    for (unsigned i = 0; i < WRITERS; i++) {
        pthread_join(thread[i], NULL);
    }
}
END_TEST

static void *wait_for_event(void *opaque)
{
    get_event(*(int *)opaque);
    return NULL;
}

/* AddressSanitizer confuses the stack of a cancelled thread's cleanup with what the cancelled call
 * left there. And its malloc() does not know of fork(): a child inherits the allocator's lock as
 * another thread held it at that moment, and waits for it for ever. */
#ifdef __SANITIZE_ADDRESS__
#define IS_ASAN true
#else
#define IS_ASAN false
#endif

/* A thread that is cancelled while it waits no longer holds the file. */
START_TEST(a_cancelled_thread_keeps_no_file)
{
    int fd = rdma_cm(), other = rdma_cm();
    pthread_t thread;
    uint32_t id, next;

    ck_assert_int_eq(create(fd, &id), 0);
    ck_assert_int_eq(listen_at_port(fd, id), 0);
    ck_assert_int_eq(create(other, &next), 0);
    ck_assert_int_ne(listen_at_port(other, next), 0);
    ck_assert_int_eq(pthread_create(&thread, NULL, wait_for_event, &fd), 0);
    usleep(20000);
    ck_assert_int_eq(pthread_cancel(thread), 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    close(fd);
    ck_assert_int_eq(destroy(other, next), 0);
    ck_assert_int_eq(create(other, &next), 0);
    ck_assert_int_eq(listen_at_port(other, next), 0);
    close(other);
}
END_TEST

/* -- signals ------------------------------------------------------------------------------------
 */

static void end_the_program(int sig)
{
    exit(0);
}

/* A child that uses the file until a signal comes. */
static void use_until_signal(unsigned us)
{
    struct itimerval timer = {.it_value = {.tv_usec = us}};
    int fd = rdma_cm();

    alarm(PATIENT); /* ends a hang */
    signal(SIGVTALRM, end_the_program);
    setitimer(ITIMER_VIRTUAL, &timer, NULL);
    for (;;) {
        create_and_destroy(fd);
    }
}

/* A signal handler runs after the interrupted system call has ended, so the handler may use the
 * file. */
START_TEST(a_handler_ends_a_program_that_is_in_a_command)
{
    for (unsigned i = 0; i < ENDINGS; i++) {
        pid_t pid = fork();
        int status;

        if (!pid) {
            use_until_signal(1000 + i * 731);
        }
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        ck_assert_int_eq(status, 0);
    }
}
END_TEST

static volatile unsigned handled;

static void use_the_file(int sig)
{
    create_and_destroy(shared);
    handled++;
}

START_TEST(a_handler_uses_the_file_that_it_interrupted)
{
    struct itimerval timer = {.it_interval = {.tv_usec = 1000}, .it_value = {.tv_usec = 1000}},
                     none = {0};

    shared = rdma_cm();
    signal(SIGVTALRM, use_the_file);
    setitimer(ITIMER_VIRTUAL, &timer, NULL);
    while (handled < ENDINGS) {
        create_and_destroy(shared);
    }
    setitimer(ITIMER_VIRTUAL, &none, NULL);
    close(shared);
}
END_TEST

/* -- children -----------------------------------------------------------------------------------
 */

static void *create_and_destroy_in_shared(void *opaque)
{
    while (!stop) {
        create_and_destroy(shared);
    }
    return NULL;
}

/* The child has a connection manager of its own. It inherits a copy of its parent's connection
 * manager that is for ever in the middle of a call. */
START_TEST(a_child_with_files_of_its_own_closes_its_parent_s)
{
    pthread_t thread;

    shared = rdma_cm();
    ck_assert_int_eq(pthread_create(&thread, NULL, create_and_destroy_in_shared, NULL), 0);
    for (unsigned i = 0; i < CHILDREN; i++) {
        pid_t pid = fork();
        int status;

        if (!pid) {
            alarm(PATIENT);
            rdma_cm();
            _exit(close(shared));
        }
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        ck_assert_int_eq(status, 0);
    }
    stop = true;
    pthread_join(thread, NULL);
}
END_TEST

int main(void)
{
    const TTest *const statements[] = {
        a_file_stays_while_somebody_writes_to_it,
        a_handler_ends_a_program_that_is_in_a_command,
        a_handler_uses_the_file_that_it_interrupted,
    };
    const TTest *const not_asan_s[] = {
        a_cancelled_thread_keeps_no_file,
        a_child_with_files_of_its_own_closes_its_parent_s,
    };
    TCase *tc = tcase_create("cm-files");
    Suite *suite = suite_create("verbs-cm-files");

    tcase_set_timeout(tc, 120);
    for (size_t i = 0; i < sizeof(statements) / sizeof(statements[0]); i++) {
        tcase_add_test(tc, statements[i]);
    }
    for (size_t i = 0; !IS_ASAN && i < sizeof(not_asan_s) / sizeof(not_asan_s[0]); i++) {
        tcase_add_test(tc, not_asan_s[i]);
    }
    suite_add_tcase(suite, tc);
    return run_on_own_wire(suite, "cm-files");
}
