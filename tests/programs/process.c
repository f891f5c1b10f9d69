/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests what a process does besides verbs: fork(), cancelled threads, late acknowledgements of
 * events, unmapped memory, a wrong configuration. Each ends with an answer, and the rest of the
 * program goes on.
 *
 * Written to libibverbs alone, except for the environment that configures a simulated device.
 */
#define _GNU_SOURCE
#include <check.h>
#include <dirent.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tests/programs/own_wire.h"
#include "tests/programs/pair.h"

/* -- configuration ----------------------------------------------------------------------------- */

static int open_descriptors(void)
{
    DIR *dir = opendir("/proc/self/fd");
    int n = 0;

    must(dir, "errno %d", errno);
    while (readdir(dir)) {
        n++;
    }
    closedir(dir);
    return n;
}

/* Each try behaves like the first: it has released what it acquired. */
START_TEST(a_configuration_that_is_refused_takes_nothing)
{
    int before = open_descriptors(), num = -1;

    setenv("HCASIM_MTU", "12", 1);
    for (int i = 0; i < 40; i++) {
        ibv_free_device_list(ibv_get_device_list(&num));
        must(num == 0, "%d devices", num);
    }
    ck_assert_int_eq(open_descriptors(), before);
    unsetenv("HCASIM_MTU");
    device_open();
    device_close();
}
END_TEST

/* Opens the device while the process may have no more than that number of descriptors. */
static bool opens_with(rlim_t descriptors)
{
    struct rlimit all, few;
    struct ibv_device **devices;
    struct ibv_context *opened;
    int num = 0;

    must_be_0(getrlimit(RLIMIT_NOFILE, &all));
    few = (struct rlimit){.rlim_cur = descriptors, .rlim_max = all.rlim_max};
    must_be_0(setrlimit(RLIMIT_NOFILE, &few));
    devices = ibv_get_device_list(&num);
    opened = num > 0 ? ibv_open_device(devices[0]) : NULL;
    must_be_0(setrlimit(RLIMIT_NOFILE, &all));
    if (opened) {
        must_be_0(ibv_close_device(opened));
    }
    if (devices) {
        ibv_free_device_list(devices);
    }
    return opened;
}

/* Whichever descriptor is the first that it does not get: a device that cannot be opened leaves
 * nothing behind, and can be opened once more descriptors are allowed. */
START_TEST(a_failed_open_leaves_no_descriptor)
{
    rlim_t descriptors = 0;
    int before;

    /* from now on the device has a place on the wire */
    ibv_free_device_list(ibv_get_device_list(NULL));
    before = open_descriptors();
    while (!opens_with(descriptors)) {
        ck_assert_int_eq(open_descriptors(), before);
        ck_assert_uint_lt(++descriptors, 100);
    }
    device_open();
    device_close();
}
END_TEST

/* -- fork -------------------------------------------------------------------------------------- */

/* ThreadSanitizer keeps the parent's threads in a child, where they do not exist, and aborts
 * when a new thread's stack is where one of theirs was. With a larger stack the new thread is
 * elsewhere. */
static void have_threads_elsewhere(void)
{
#ifdef __SANITIZE_THREAD__
    pthread_attr_t attr;

    must_be_0(pthread_getattr_default_np(&attr));
    must_be_0(pthread_attr_setstacksize(&attr, 32u << 20));
    must_be_0(pthread_setattr_default_np(&attr));
    must_be_0(pthread_attr_destroy(&attr));
#endif
}

/* The HCA belongs to the parent. Every call that needs it fails in the child; a device that the
 * child opens is its own. */
static void use_what_is_the_parents(struct pair *p)
{
    struct ibv_sge sge = {(uintptr_t)p->buf, MSG, p->mr[0]->lkey};
    struct ibv_send_wr send = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad_send;
    struct ibv_recv_wr recv = {.sg_list = &sge, .num_sge = 1}, *bad_recv;
    struct ibv_async_event event;
    struct ibv_wc wc;
    struct ibv_cq *cq;
    void *context;

    must(ibv_post_send(p->qp[0], &send, &bad_send) == EIO && bad_send == &send, "a send");
    must(ibv_post_recv(p->qp[0], &recv, &bad_recv) == EIO && bad_recv == &recv, "a receive");
    must(ibv_post_srq_recv(p->srq, &recv, &bad_recv) == EIO && bad_recv == &recv, "a receive");
    must(ibv_poll_cq(p->cq[0], 1, &wc) < 0, "a poll");
    must(ibv_req_notify_cq(p->cq[0], 0) == EIO, "an arm");
    errno = 0;
    must(ibv_get_cq_event(p->channel[0], &cq, &context) && errno == EIO, "a wait");
    errno = 0;
    must(ibv_get_async_event(ctx[0], &event) && errno == EIO, "a wait");
    errno = 0;
    must(!ibv_reg_mr(pd[0], p->buf, MSG, 0) && errno == EIO, "errno %d", errno);
    have_threads_elsewhere();
    device_open();
    p = pair_new(false, false);
    message(p, 0, 1);
    pair_free(p);
    device_close();
}

/* Opens a listed device. librdmacm knows a device by its GUID, so the opened device must have the
 * listed GUID. */
static void open_what_is_listed(void)
{
    struct ibv_device **listed = ibv_get_device_list(NULL);
    __be64 guid;
    struct ibv_context *context;
    struct ibv_device_attr attr;

    must(listed && listed[0], "no device");
    have_threads_elsewhere();
    guid = ibv_get_device_guid(listed[0]);
    must((context = ibv_open_device(listed[0])), "errno %d", errno);
    must_be_0(ibv_query_device(context, &attr));
    must(attr.node_guid == guid, "GUID %" PRIx64 " is listed, %" PRIx64 " is opened",
         (uint64_t)guid, (uint64_t)attr.node_guid);
    must_be_0(ibv_close_device(context));
    ibv_free_device_list(listed);
}

/* Makes a child do so while the parent has the device open and a list of devices. */
static void have_a_child_open_what_is_listed(void)
{
    int status;
    pid_t pid;

    device_open();
    fflush(NULL);
    pid = fork();
    if (!pid) {
        open_what_is_listed();
        _exit(0);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    device_close();
}

START_TEST(a_child_lists_what_it_opens)
{
    have_a_child_open_what_is_listed();
}
END_TEST

/* A device belongs to the parent, whatever the child asks about it: the child joins the wire only
 * when it opens a device. */
START_TEST(a_child_that_asks_about_a_device_is_no_host)
{
    struct ibv_device_attr attr;
    int status;
    pid_t pid;

    device_open();
    fflush(NULL);
    pid = fork();
    if (!pid) {
        int before = open_descriptors();

        ibv_query_device(ctx[0], &attr);
        _exit(open_descriptors() != before);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    device_close();
}
END_TEST

/* Sends a descriptor, as programs that share a device do. */
static void send_descriptor(int to, int fd)
{
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int))];
    } control = {.header = {.cmsg_len = CMSG_LEN(sizeof(int)),
                            .cmsg_level = SOL_SOCKET,
                            .cmsg_type = SCM_RIGHTS}};
    struct iovec byte = {(char[]){0}, 1};
    struct msghdr message = {.msg_iov = &byte,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof(control.room)};

    memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
    must(sendmsg(to, &message, 0) == 1, "errno %d", errno);
}

static int receive_descriptor(int from)
{
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int))];
    } control;
    char byte;
    struct iovec room = {&byte, 1};
    struct msghdr message = {.msg_iov = &room,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof(control.room)};
    int fd;

    must(recvmsg(from, &message, 0) == 1, "errno %d", errno);
    memcpy(&fd, CMSG_DATA(&control.header), sizeof(fd));
    return fd;
}

static void must_not_import(int fd)
{
    errno = 0;
    must(!ibv_import_device(fd) && errno == EINVAL, "errno %d", errno);
}

/* The HCA is in the process that opened it. Another process, with a device of its own or without,
 * is refused the device, and with it all that is imported through a device: PDs, regions, device
 * memory. */
START_TEST(another_process_cannot_import_a_device)
{
    int pair[2], status;
    pid_t pid[2];

    must_be_0(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
    fflush(NULL);
    pid[0] = fork();
    if (!pid[0]) {
        int fd = receive_descriptor(pair[1]);

        must_not_import(fd);
        device_open();
        must_not_import(fd);
        device_close();
        _exit(0);
    }
    device_open();
    send_descriptor(pair[0], ctx[0]->cmd_fd);
    pid[1] = fork();
    if (!pid[1]) {
        must_not_import(ctx[0]->cmd_fd);
        _exit(0);
    }
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(waitpid(pid[i], &status, 0), pid[i]);
        ck_assert_int_eq(status, 0);
    }
    device_close();
    close(pair[0]);
    close(pair[1]);
}
END_TEST

static __be64 listed_guid(void)
{
    struct ibv_device **listed = ibv_get_device_list(NULL);
    __be64 guid;

    must(listed && listed[0], "no device");
    guid = ibv_get_device_guid(listed[0]);
    ibv_free_device_list(listed);
    return guid;
}

/* Lists the devices, closes descriptors that it did not open, and opens a device. */
static void become_a_daemon(void)
{
    struct ibv_device **listed = ibv_get_device_list(NULL);
    struct ibv_context *context;
    struct ibv_device_attr attr;
    int status;
    pid_t pid;

    must(listed && listed[0], "no device");
    must_be_0(close_range(3, ~0u, 0));
    have_threads_elsewhere();
    must((context = ibv_open_device(listed[0])), "errno %d", errno);
    must_be_0(ibv_query_device(context, &attr));
    fflush(NULL);
    pid = fork();
    if (!pid) { /* the child is another host */
        _exit(listed_guid() == attr.node_guid);
    }
    must(waitpid(pid, &status, 0) == pid && !status, "another host has the same GUID");
    must_be_0(ibv_close_device(context));
    ibv_free_device_list(listed);
}

/* libibverbs has no descriptor open before a device is open. So a daemon that closes all
 * descriptors must not lose what identifies a device. */
START_TEST(a_daemon_closes_nothing_that_a_device_needs)
{
    int status;
    pid_t pid;

    fflush(NULL);
    pid = fork();
    if (!pid) {
        become_a_daemon();
        _exit(0);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
}
END_TEST

/* A child must not depend on locks that other threads of the parent held. (The device has been
 * opened only now: its thread begins.) */
START_TEST(a_child_need_not_wait_for_the_devices_thread)
{
    for (int i = 0; i < 20; i++) {
        have_a_child_open_what_is_listed();
    }
}
END_TEST

START_TEST(a_child_cannot_use_its_parents_device)
{
    struct pair *p;
    int status;
    pid_t pid;

    device_open();
    p = pair_new(true, true);
    message(p, 0, 1);
    fflush(NULL);
    pid = fork();
    if (!pid) {
        use_what_is_the_parents(p);
        _exit(0);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    message(p, 0, 2);
    pair_free(p);
    device_close();
}
END_TEST

/* -- the end of a process ---------------------------------------------------------------------- */

/* Makes a QP of this process, in RTS, that is connected to a QP of the process at the other ends of
 * two pipes. */
static struct ibv_qp *qp_towards_process(struct ibv_cq *cq, int in, int out)
{
    struct ibv_qp *qp = new_qp(0, cq, NULL);
    struct {
        union ibv_gid gid;
        uint32_t qpn;
    } own = {.qpn = qp->qp_num}, other;

    gid_of(0, &own.gid);
    must(write(out, &own, sizeof(own)) == sizeof(own), "errno %d", errno);
    must(read(in, &other, sizeof(other)) == sizeof(other), "errno %d", errno);
    to_rts_towards(qp, &other.gid, other.qpn, 14);
    return qp;
}

/* Returns when both processes are ready. */
static void meet(int in, int out)
{
    char ready = 1;

    must(write(out, &ready, 1) == 1 && read(in, &ready, 1) == 1, "errno %d", errno);
}

/* Polls for so long that its doorbells are batched, posts, and ends. */
static void post_and_exit(int in, int out, unsigned messages)
{
    static uint8_t byte;
    struct ibv_send_wr *bad;
    struct ibv_cq *cq;
    struct ibv_qp *qp;
    struct ibv_mr *mr;
    struct ibv_wc wc;
    double until;

    device_open();
    must((cq = ibv_create_cq(ctx[0], DEPTH, NULL, NULL, 0)), "errno %d", errno);
    must((mr = ibv_reg_mr(pd[0], &byte, 1, 0)), "errno %d", errno);
    qp = qp_towards_process(cq, in, out);
    meet(in, out);
    for (until = now() + 0.005; now() < until;) {
        must_be_0(ibv_poll_cq(cq, 1, &wc));
    }
    for (unsigned i = 0; i < messages; i++) {
        struct ibv_sge sge = {(uintptr_t)&byte, 1, mr->lkey};
        struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND};

        must_be_0(ibv_post_send(qp, &wr, &bad));
    }
    exit(0);
}

/* A card carries out what was posted even if the program does nothing more. */
START_TEST(what_was_posted_goes_out_although_the_process_ends)
{
    static uint8_t buf[MSG];
    const unsigned messages = 5;
    int there[2], back[2], status;
    struct ibv_recv_wr *bad;
    struct ibv_cq *cq;
    struct ibv_qp *qp;
    struct ibv_mr *mr;
    pid_t pid;

    must_be_0(pipe(there));
    must_be_0(pipe(back));
    fflush(NULL);
    pid = fork();
    if (!pid) {
        post_and_exit(there[0], back[1], messages);
    }
    device_open();
    must((cq = ibv_create_cq(ctx[0], DEPTH, NULL, NULL, 0)), "errno %d", errno);
    must((mr = ibv_reg_mr(pd[0], buf, sizeof(buf), IBV_ACCESS_LOCAL_WRITE)), "errno %d", errno);
    qp = qp_towards_process(cq, back[0], there[1]);
    for (unsigned i = 0; i < messages; i++) {
        struct ibv_sge sge = {(uintptr_t)buf, sizeof(buf), mr->lkey};
        struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1};

        must_be_0(ibv_post_recv(qp, &wr, &bad));
    }
    meet(back[0], there[1]);
    for (unsigned i = 0; i < messages; i++) {
        success(cq);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    must_be_0(ibv_destroy_qp(qp));
    must_be_0(ibv_dereg_mr(mr));
    must_be_0(ibv_destroy_cq(cq));
    device_close();
}
END_TEST

/* -- ibv_fork_init() --------------------------------------------------------------------------- */

/* Since rdma-core 51 ibv_fork_init() does nothing where the kernel copies registered memory, and
 * may be called at any time; earlier versions require it first. ibv_is_fork_initialized() reports
 * what the kernel does. */
static void register_a_page(void)
{
    static uint8_t byte;
    struct ibv_mr *mr;

    device_open();
    must((mr = ibv_reg_mr(pd[0], &byte, 1, 0)), "errno %d", errno);
    must_be_0(ibv_dereg_mr(mr));
    device_close();
}

START_TEST(fork_protection_comes_first)
{
    ck_assert_int_eq(ibv_fork_init(), 0);
    ck_assert_int_eq(ibv_is_fork_initialized(), IBV_FORK_UNNEEDED);
    register_a_page();
    ck_assert_int_eq(ibv_fork_init(), 0);
}
END_TEST

START_TEST(fork_protection_comes_too_late)
{
    register_a_page();
    ck_assert_int_eq(ibv_fork_init(), RDMA_CORE < 51 ? EINVAL : 0);
    ck_assert_int_eq(ibv_is_fork_initialized(), IBV_FORK_UNNEEDED);
}
END_TEST

START_TEST(fork_protection_is_asked_for_by_the_environment)
{
    static const char *const names[] = {"RDMAV_FORK_SAFE", "IBV_FORK_SAFE"};

    ck_assert_int_eq(setenv(names[_i % 2], _i < 2 ? "1" : "0", 1), 0);
    register_a_page();
    ck_assert_int_eq(ibv_fork_init(), _i < 2 || RDMA_CORE >= 51 ? 0 : EINVAL);
}
END_TEST

/* -- sleep ------------------------------------------------------------------------------------- */

/* The device keeps time although no thread polls and nothing arrives: the retries of a queue pair
 * without a peer run out long after anything else happened. */
START_TEST(retries_run_out_while_the_program_sleeps)
{
    static uint8_t byte;
    struct pollfd fd = {.events = POLLIN};
    struct ibv_comp_channel *channel;
    struct ibv_send_wr wr, *bad;
    struct ibv_sge sge;
    struct ibv_cq *cq;
    struct ibv_qp *qp;
    struct ibv_mr *mr;
    struct ibv_wc wc;

    device_open();
    must((channel = ibv_create_comp_channel(ctx[0])), "errno %d", errno);
    must((cq = ibv_create_cq(ctx[0], DEPTH, NULL, channel, 0)), "errno %d", errno);
    must((mr = ibv_reg_mr(pd[0], &byte, 1, 0)), "errno %d", errno);
    qp = new_qp(0, cq, NULL);
    to_rts(0, qp, qp->qp_num ^ 1u << 22, 8);
    must_be_0(ibv_req_notify_cq(cq, 0));
    poll(NULL, 0, 300);
    sge = (struct ibv_sge){(uintptr_t)&byte, 1, mr->lkey};
    wr = (struct ibv_send_wr){.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND};
    must_be_0(ibv_post_send(qp, &wr, &bad));
    fd.fd = channel->fd;
    must(poll(&fd, 1, SECONDS / 4 * 1000) == 1, "nothing happens");
    wc = completion(cq);
    ck_assert_int_eq(wc.status, IBV_WC_RETRY_EXC_ERR);
    must_be_0(ibv_destroy_qp(qp));
    must_be_0(ibv_dereg_mr(mr));
    must_be_0(ibv_destroy_cq(cq));
    must_be_0(ibv_destroy_comp_channel(channel));
    device_close();
}
END_TEST

/* -- cancellation ------------------------------------------------------------------------------ */

static void *waits_for_an_event(void *arg)
{
    struct pair *p = arg;
    struct ibv_cq *cq;
    void *context;

    ibv_get_cq_event(p->channel[0], &cq, &context);
    return NULL;
}

static void *posts_and_polls(void *arg)
{
    struct pair *p = arg;
    struct ibv_wc wc;

    for (unsigned n = 0;; n++) {
        ibv_req_notify_cq(p->cq[0], 0);
        try_send(p, 0, n);
        ibv_poll_cq(p->cq[0], 1, &wc);
        ibv_dereg_mr(ibv_reg_mr(pd[0], p->buf, MSG, 0));
        pthread_testcancel();
    }
    return NULL;
}

/* A cancelled thread leaves its stack frames poisoned, and ASan then takes its own sigaltstack() at
 * the thread's end for an access to one of them. */
#ifdef __SANITIZE_ADDRESS__
#define UNDER_ASAN true
#else
#define UNDER_ASAN false
#endif

/* A cancelled thread ends where it waits, and never holds a lock of the library: all other threads
 * go on. */
START_TEST(a_cancelled_thread_holds_nothing)
{
    struct pair *p, *other;
    pthread_t thread;
    void *end;

    device_open();
    for (int i = 0; i < 50; i++) {
        p = pair_new(true, false);
        other = pair_new(false, false);
        for (unsigned n = 0; n < DEPTH; n++) {
            post_recv(p, 1, n);
        }
        must_be_0(pthread_create(&thread, NULL, i & 1 ? posts_and_polls : waits_for_an_event, p));
        for (int n = 0; n < i; n++) {
            message(other, 0, (unsigned)n);
        }
        must_be_0(pthread_cancel(thread));
        must_be_0(pthread_join(thread, &end));
        must(end == PTHREAD_CANCELED, "it went on");
        message(other, 0, 0);
        must_be_0(ibv_req_notify_cq(p->cq[0], 0));
        pair_free(p);
        pair_free(other);
    }
    device_close();
}
END_TEST

/* -- events ------------------------------------------------------------------------------------ */

static void *acknowledges_later(void *arg)
{
    struct ibv_cq *cq = arg;

    usleep(20000);
    cq->cq_context = NULL; /* the CQ exists as long as the event is not acknowledged */
    ibv_ack_cq_events(cq, 1);
    return NULL;
}

START_TEST(a_cq_stays_until_its_events_are_acknowledged)
{
    struct pair *p;
    struct ibv_cq *cq;
    pthread_t thread;
    void *context;

    device_open();
    p = pair_new(true, false);
    must_be_0(ibv_req_notify_cq(p->cq[1], 0));
    message(p, 0, 0);
    must_be_0(ibv_get_cq_event(p->channel[1], &cq, &context));
    must_be_0(pthread_create(&thread, NULL, acknowledges_later, cq));
    pair_free(p);
    must_be_0(pthread_join(thread, NULL));
    device_close();
}
END_TEST

/* An event that no thread took is destroyed with its CQ, and so is its notification: a program that
 * checks the channel's descriptor does not wait for a destroyed event. */
START_TEST(an_event_goes_with_its_cq)
{
    struct ibv_comp_channel *channel;
    struct pollfd fd = {.events = POLLIN};
    struct pair *p;
    struct ibv_cq *cq;

    device_open();
    channel = ibv_create_comp_channel(ctx[1]);
    for (unsigned n = 0; n < 20; n++) {
        p = pair_new(false, false);
        cq = p->cq[1];
        must_be_0(ibv_destroy_qp(p->qp[1]));
        must_be_0(ibv_destroy_cq(cq));
        p->cq[1] = ibv_create_cq(ctx[1], DEPTH, NULL, channel, 0);
        p->qp[1] = new_qp(1, p->cq[1], NULL);
        must_be_0(ibv_destroy_qp(p->qp[0]));
        p->qp[0] = new_qp(0, p->cq[0], NULL);
        to_rts(0, p->qp[0], p->qp[1]->qp_num, 14);
        to_rts(1, p->qp[1], p->qp[0]->qp_num, 14);
        must_be_0(ibv_req_notify_cq(p->cq[1], 0));
        message(p, 0, n);
        fd.fd = channel->fd;
        must(poll(&fd, 1, SECONDS * 1000) == 1, "no event");
        pair_free(p);
        must(poll(&fd, 1, 0) == 0, "something tells of an event that is gone");
    }
    must_be_0(ibv_destroy_comp_channel(channel));
    device_close();
}
END_TEST

/* -- memory ------------------------------------------------------------------------------------ */

#define REGION 8192u

static struct ibv_wc post_on(struct pair *p, const struct ibv_mr *mr, enum ibv_wr_opcode opcode,
                             bool is_target)
{
    struct ibv_sge sge = {(uintptr_t)mr->addr, REGION, mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = opcode}, *bad;

    if (is_target) {
        sge = (struct ibv_sge){(uintptr_t)p->buf, 8, p->mr[0]->lkey};
        if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
            wr.wr.atomic.remote_addr = (uintptr_t)mr->addr;
            wr.wr.atomic.rkey = mr->rkey;
        } else {
            wr.wr.rdma.remote_addr = (uintptr_t)mr->addr;
            wr.wr.rdma.rkey = mr->rkey;
        }
    }
    must_be_0(ibv_post_send(p->qp[0], &wr, &bad));
    return completion(p->cq[0]);
}

/* Hardware keeps a region's pages as long as it is registered, so a peer can still read memory that
 * the program has unmapped. Here the memory is gone or inaccessible. The answer is that of a
 * function whose DMA gets no answer: an operational error for the peer and a protection error for
 * the program's own work request. The program never ends by it. */
START_TEST(a_peer_is_refused_memory_that_is_gone)
{
    static const struct {
        enum ibv_wr_opcode opcode;
        bool is_target;
        enum ibv_wc_status status;
    } table[] = {
        {IBV_WR_RDMA_READ, true, IBV_WC_REM_OP_ERR},
        {IBV_WR_RDMA_WRITE, true, IBV_WC_REM_OP_ERR},
        {IBV_WR_ATOMIC_FETCH_AND_ADD, true, IBV_WC_REM_OP_ERR},
        {IBV_WR_SEND, false, IBV_WC_LOC_PROT_ERR},
    };
    struct pair *p;

    device_open();
    for (unsigned i = 0; i < 2 * sizeof(table) / sizeof(table[0]); i++) {
        uint8_t *at = map_far_below(REGION);
        struct ibv_mr *mr;
        struct ibv_wc wc;

        mr = ibv_reg_mr(pd[0], at, REGION,
                        IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE |
                            IBV_ACCESS_REMOTE_ATOMIC);
        must(mr, "errno %d", errno);
        p = pair_new(false, false);
        post_recv(p, 1, 0);
        must_be_0(i & 1 ? mprotect(at, REGION, PROT_NONE) : munmap(at, REGION));
        wc = post_on(p, mr, table[i / 2].opcode, table[i / 2].is_target);
        must(wc.status == table[i / 2].status, "%u: %s", i, ibv_wc_status_str(wc.status));
        pair_free(p);
        must_be_0(ibv_dereg_mr(mr));
        must_be_0(i & 1 ? munmap(at, REGION) : 0);
    }
    p = pair_new(false, false);
    message(p, 0, 1);
    pair_free(p);
    device_close();
}
END_TEST

static volatile sig_atomic_t faults;
static sigjmp_buf after_fault;

static void program_handler(int signal)
{
    faults++;
    siglongjmp(after_fault, 1);
}

static void write_to(volatile uint8_t *at)
{
    if (!sigsetjmp(after_fault, 1)) {
        *at = 1;
    }
}

/* The program's own faults go to its own handler. */
START_TEST(a_fault_of_the_program_goes_to_its_handler)
{
    struct sigaction action = {.sa_handler = program_handler};
    uint8_t *at = mmap(NULL, REGION, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    must(at != MAP_FAILED, "errno %d", errno);
    must_be_0(sigaction(SIGSEGV, &action, NULL));
    device_open();
    for (int i = 0; i < 2; i++) {
        write_to(at);
    }
    must(faults == 2, "%d", (int)faults);
    device_close();
}
END_TEST

/* If the program has no handler, its own fault ends it. */
START_TEST(a_fault_of_a_program_without_a_handler_ends_it)
{
    uint8_t *at = mmap(NULL, REGION, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    signal(SIGSEGV, SIG_DFL);
    device_open();
    *(volatile uint8_t *)at = 1;
}
END_TEST

/* -- main() ------------------------------------------------------------------------------------ */

int main(void)
{
    Suite *s = suite_create("process");
    TCase *tc = tcase_create("process");

    tcase_set_timeout(tc, 2 * SECONDS);
    tcase_add_test(tc, a_configuration_that_is_refused_takes_nothing);
    tcase_add_test(tc, a_failed_open_leaves_no_descriptor);
    tcase_add_test(tc, a_child_lists_what_it_opens);
    tcase_add_test(tc, a_child_that_asks_about_a_device_is_no_host);
    tcase_add_test(tc, another_process_cannot_import_a_device);
    tcase_add_test(tc, a_daemon_closes_nothing_that_a_device_needs);
    tcase_add_test(tc, a_child_need_not_wait_for_the_devices_thread);
    tcase_add_test(tc, a_child_cannot_use_its_parents_device);
    tcase_add_test(tc, what_was_posted_goes_out_although_the_process_ends);
    tcase_add_test(tc, fork_protection_comes_first);
    tcase_add_test(tc, fork_protection_comes_too_late);
    tcase_add_loop_test(tc, fork_protection_is_asked_for_by_the_environment, 0, 4);
    tcase_add_test(tc, retries_run_out_while_the_program_sleeps);
    if (!UNDER_ASAN) {
        tcase_add_test(tc, a_cancelled_thread_holds_nothing);
    }
    tcase_add_test(tc, a_cq_stays_until_its_events_are_acknowledged);
    tcase_add_test(tc, an_event_goes_with_its_cq);
    tcase_add_test(tc, a_peer_is_refused_memory_that_is_gone);
    tcase_add_test(tc, a_fault_of_the_program_goes_to_its_handler);
    tcase_add_test_raise_signal(tc, a_fault_of_a_program_without_a_handler_ends_it, SIGSEGV);
    suite_add_tcase(s, tc);
    return run_on_own_wire(s, "process");
}
