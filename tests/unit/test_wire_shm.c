/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared-memory segments: a switch between processes that may die at any moment, and whose
 * memory anybody in the segment may scribble on. (How it is laid out is used in one test only,
 * the one that scribbles.)
 */
#include "wire/open.h"
#include "wire/shm_segment.h"

#include <check.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATIENCE_MS 10000

struct node {
    struct wire_port *port;
    uint8_t id; /* last byte of its address */
    unsigned frames, tx_readies, rx_readies;
    uint8_t last_from;
    uint32_t last_number;
    size_t last_len;
    uint32_t expect[256]; /* next number from each sender, where a test wants order */
    unsigned out_of_order;
};

static char *dir, *uri;

static void make_dir(void)
{
    char template[] = "/dev/shm/hcasim-test-XXXXXX";

    dir = g_strdup(g_mkdtemp(template));
    uri = g_strdup_printf("shm:%s/seg", dir);
}

static unsigned files_left(void)
{
    GDir *d = g_dir_open(dir, 0, NULL);
    unsigned n = 0;

    while (g_dir_read_name(d)) {
        n++;
    }
    g_dir_close(d);
    return n;
}

static void remove_dir(void)
{
    GDir *d = g_dir_open(dir, 0, NULL);
    const char *name;

    while ((name = g_dir_read_name(d))) {
        char *path = g_build_filename(dir, name, NULL);

        g_remove(path);
        g_free(path);
    }
    g_dir_close(d);
    g_rmdir(dir);
}

static void mac_of(uint8_t mac[6], uint8_t id)
{
    memcpy(mac, (const uint8_t[6]){2, 0, 0, 0, 0, id}, 6);
}

static void on_rx(void *client, const uint8_t *frame, size_t len)
{
    struct node *n = client;

    ck_assert_uint_ge(len, 14);
    ck_assert_uint_le(len, WIRE_FRAME_MAX);
    n->frames++;
    n->last_len = len;
    n->last_from = frame[11];
    if (len >= 18) {
        memcpy(&n->last_number, frame + 14, 4);
        if (n->last_number != n->expect[n->last_from]) {
            n->out_of_order++;
        }
        n->expect[n->last_from] = n->last_number + 1;
    }
}

static void on_tx_ready(void *client)
{
    ((struct node *)client)->tx_readies++;
}

static void on_rx_ready(void *client)
{
    ((struct node *)client)->rx_readies++;
}

static const struct wire_client listening = {
    .rx = on_rx,
    .tx_ready = on_tx_ready,
    .rx_ready = on_rx_ready,
};

static struct node *join(uint8_t id)
{
    struct node *n = g_new0(struct node, 1);
    GError *err = NULL;

    n->id = id;
    n->port = wire_open(uri, &err);
    if (!n->port) {
        fprintf(stderr, "%s\n", err->message);
        abort();
    }
    wire_set_client(n->port, &listening, n);
    return n;
}

static void leave(struct node *n)
{
    wire_close(n->port);
    g_free(n);
}

/* Sends a frame to `to` (0xff: all), with a number in it. */
static bool send_frame(struct node *n, uint8_t to, uint32_t number, size_t len)
{
    uint8_t dmac[6], *frame;

    mac_of(dmac, to);
    if (to == 0xff) {
        memset(dmac, 0xff, 6);
    }
    frame = wire_tx_reserve_to(n->port, dmac, len);
    if (!frame) {
        return false;
    }
    memcpy(frame, dmac, 6);
    mac_of(frame + 6, n->id);
    frame[12] = 0x88;
    frame[13] = 0xb5;
    if (len >= 18) {
        memcpy(frame + 14, &number, 4);
        memset(frame + 18, (uint8_t)number, len - 18);
    }
    wire_tx_commit(n->port, len);
    return true;
}

/* Everybody learns the address of n. */
static void announce(struct node *n)
{
    ck_assert(send_frame(n, 0xff, 0, 64));
}

static struct wire_stats stats_of(struct node *n)
{
    struct wire_stats s;

    wire_get_stats(n->port, &s);
    return s;
}

static unsigned drain(struct node *n)
{
    unsigned total = 0, got;

    while ((got = wire_poll(n->port, 64))) {
        total += got;
    }
    return total;
}

/* Sleeps as an owner does, until the port has something or the time is up. */
static bool sleep_on(struct node *n, int ms)
{
    struct pollfd p = {.fd = wire_fd(n->port), .events = POLLIN};

    if (poll(&p, 1, ms) != 1) {
        return false;
    }
    wire_fd_event(n->port);
    return true;
}

static int64_t ms_now(void)
{
    return g_get_monotonic_time() / 1000;
}

/* Two nodes that know each other's addresses. */
static void two(struct node **a, struct node **b)
{
    *a = join(1);
    *b = join(2);
    announce(*a);
    announce(*b);
    drain(*a);
    drain(*b);
    (*a)->frames = (*b)->frames = 0;
}

START_TEST(a_bad_uri_is_refused_with_the_forms)
{
    static const char *bad[] = {"",         "shm",          "shm:",    "shm:a/b", "shm:.hidden",
                                "shm:/",    "shm:/a/dir/",  "shm:a b", "udp:x",   "/dev/shm/x",
                                "shm:a\nb", "shm:../escape"};

    for (size_t i = 0; i < G_N_ELEMENTS(bad); i++) {
        GError *err = NULL;

        ck_assert_ptr_null(wire_open(bad[i], &err));
        ck_assert_msg(g_error_matches(err, WIRE_ERROR, WIRE_ERROR_URI), "%s", bad[i]);
        ck_assert_ptr_nonnull(strstr(err->message, "shm:NAME"));
        ck_assert_ptr_nonnull(strstr(err->message, "shm:/PATH"));
        g_clear_error(&err);
    }
}
END_TEST

START_TEST(what_the_system_refuses_is_told)
{
    GError *err = NULL;
    char *link = g_build_filename(dir, "link", NULL), *other = g_build_filename(dir, "data", NULL);
    char *u;
    gchar *kept;

    ck_assert_ptr_null(wire_open("shm:/nonexistent/x", &err));
    ck_assert(g_error_matches(err, WIRE_ERROR, WIRE_ERROR_IO));
    ck_assert_ptr_nonnull(strstr(err->message, "/nonexistent/x"));
    g_clear_error(&err);

    /* A file that is something else is neither used nor harmed. */
    ck_assert(g_file_set_contents(other, "precious", -1, NULL));
    u = g_strconcat("shm:", other, NULL);
    ck_assert_ptr_null(wire_open(u, &err));
    ck_assert(g_error_matches(err, WIRE_ERROR, WIRE_ERROR_IO));
    g_clear_error(&err);
    ck_assert(g_file_get_contents(other, &kept, NULL, NULL));
    ck_assert_str_eq(kept, "precious");
    g_free(kept);
    g_free(u);

    /* A link that somebody put there is not followed. */
    ck_assert_int_eq(symlink(other, link), 0);
    u = g_strconcat("shm:", link, NULL);
    ck_assert_ptr_null(wire_open(u, &err));
    ck_assert(g_error_matches(err, WIRE_ERROR, WIRE_ERROR_IO));
    g_clear_error(&err);
    g_free(u);
    g_remove(link);
    g_remove(other);
    g_free(link);
    g_free(other);
}
END_TEST

/* "so that two users do not share unless asked": the uid is in the name, the mode is 0600. */
START_TEST(a_name_is_this_users_own)
{
    char *name = g_strdup_printf("shm:unit-test.%d", (int)getpid());
    char *path = g_strdup_printf("/dev/shm/hcasim-%d-unit-test.%d", (int)geteuid(), (int)getpid());
    struct wire_port *port = wire_open(name, NULL);
    struct stat st;

    ck_assert_ptr_nonnull(port);
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_uint_eq(st.st_mode & 0777, 0600);
    wire_close(port);
    ck_assert_int_eq(access(path, F_OK), -1);
    g_free(name);
    g_free(path);
}
END_TEST

START_TEST(a_file_made_for_a_group_stays_as_it_is)
{
    char *path = g_build_filename(dir, "seg", NULL);
    char *fifo = g_strconcat(path, ".0", NULL);
    int fd = open(path, O_CREAT | O_RDWR, 0600);
    struct stat st;
    struct node *n;

    fchmod(fd, 0660);
    close(fd);
    n = join(1);
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_uint_eq(st.st_mode & 0777, 0660);
    ck_assert_int_eq(stat(fifo, &st), 0);
    ck_assert_uint_eq(st.st_mode & 0777, 0660);
    leave(n);
    g_free(path);
    g_free(fifo);
}
END_TEST

START_TEST(the_last_one_removes_the_files)
{
    struct node *a = join(1), *b = join(2);

    ck_assert_uint_gt(files_left(), 0);
    leave(a);
    ck_assert_uint_gt(files_left(), 0);
    leave(b);
    ck_assert_uint_eq(files_left(), 0);
}
END_TEST

/* A switch: to all until it knows where, then to that one only. */
START_TEST(frames_go_where_the_address_is)
{
    struct node *a = join(1), *b = join(2), *c = join(3);

    ck_assert(wire_link_up(a->port));
    ck_assert(send_frame(a, 2, 1, 100)); /* nobody knows 2 yet */
    ck_assert_uint_eq(drain(b), 1);
    ck_assert_uint_eq(drain(c), 1);
    ck_assert_uint_eq(drain(a), 0);

    ck_assert(send_frame(b, 1, 2, 100)); /* b has now been heard, and a before */
    ck_assert_uint_eq(drain(a), 1);
    ck_assert_uint_eq(a->last_number, 2);
    ck_assert_uint_eq(a->last_len, 100);
    ck_assert_uint_eq(drain(c), 0);
    ck_assert(send_frame(a, 2, 3, WIRE_FRAME_MAX));
    ck_assert_uint_eq(drain(b), 1);
    ck_assert_uint_eq(b->last_len, WIRE_FRAME_MAX);
    ck_assert_uint_eq(drain(c), 0);

    ck_assert(send_frame(a, 0xff, 4, 60)); /* broadcast: all others */
    ck_assert_uint_eq(drain(b) + drain(c), 2);
    ck_assert_uint_eq(drain(a), 0);
    leave(a);
    leave(b);
    leave(c);
}
END_TEST

START_TEST(an_address_follows_whoever_used_it_last)
{
    struct node *a = join(1), *b = join(2), *c = join(3);

    announce(b);
    announce(a);
    drain(a), drain(b), drain(c);
    for (int i = 0; i < 3; i++) {
        c->id = 2; /* c speaks with b's address */
        announce(c);
        drain(a), drain(b), drain(c);
        ck_assert(send_frame(a, 2, 1, 64));
        ck_assert_uint_eq(drain(b), 0);
        ck_assert_uint_eq(drain(c), 1);
        announce(b); /* and b again */
        drain(a), drain(b), drain(c);
        ck_assert(send_frame(a, 2, 1, 64));
        ck_assert_uint_eq(drain(b), 1);
        ck_assert_uint_eq(drain(c), 0);
    }
    leave(a);
    leave(b);
    leave(c);
}
END_TEST

START_TEST(a_port_may_have_many_addresses)
{
    struct node *a, *b;

    two(&a, &b);
    for (int id = 10; id < 70; id++) {
        b->id = (uint8_t)id;
        announce(b);
    }
    ck_assert_uint_eq(drain(a), 60);
    for (int id = 10; id < 70; id++) {
        ck_assert(send_frame(a, (uint8_t)id, 0, 64));
    }
    ck_assert_uint_eq(drain(b), 60);
    /* More than are remembered: they are reached all the same. */
    for (int id = 70; id < 250; id++) {
        b->id = (uint8_t)id;
        ck_assert(send_frame(b, 1, 0, 64));
        drain(a);
        ck_assert(send_frame(a, (uint8_t)id, 0, 64));
        ck_assert(send_frame(a, 10, 0, 64));
        ck_assert_uint_eq(drain(b), 2);
    }
    leave(a);
    leave(b);
}
END_TEST

/* A frame to one's own address has nowhere to go: a switch does not turn frames back. */
START_TEST(own_address)
{
    struct node *a, *b;

    two(&a, &b);
    ck_assert(send_frame(a, 1, 0, 64));
    ck_assert_uint_eq(drain(a) + drain(b), 0);
    ck_assert_uint_eq(stats_of(a).tx_no_dest, 1);
    leave(a);
    leave(b);
}
END_TEST

START_TEST(alone_on_the_segment)
{
    struct node *a = join(1);

    ck_assert(wire_link_up(a->port));
    ck_assert(send_frame(a, 2, 0, 64));
    ck_assert(send_frame(a, 0xff, 0, 64));
    ck_assert_uint_eq(stats_of(a).tx_no_dest, 2);
    ck_assert_uint_eq(drain(a), 0);
    leave(a);
}
END_TEST

/* "Lossless back-pressure for unicast": all that was accepted arrives, in order; what was not is
 * announced when there is room. */
START_TEST(a_full_receiver_makes_the_sender_wait)
{
    struct node *a, *b;
    uint32_t sent = 1, rounds;

    two(&a, &b);
    b->expect[1] = 1;
    for (rounds = 0; rounds < 50; rounds++) {
        unsigned before = a->tx_readies;

        while (send_frame(a, 2, sent, 60 + sent % 3000)) {
            sent++;
            ck_assert_uint_lt(sent, 1000000);
        }
        ck_assert_ptr_null(wire_tx_reserve_to(a->port, (const uint8_t[6]){2, 0, 0, 0, 0, 2}, 64));
        wire_poll(a->port, 64);
        ck_assert_uint_eq(a->tx_readies, before);
        wire_poll(b->port, 1 + rounds);
        wire_poll(a->port, 64);
        ck_assert_uint_eq(a->tx_readies, before + 1);
    }
    drain(b);
    ck_assert_uint_eq(b->frames, sent - 1);
    ck_assert_uint_eq(b->out_of_order, 0);
    ck_assert_uint_ge(stats_of(a).tx_blocked, 50);
    leave(a);
    leave(b);
}
END_TEST

/* One receiver that is full does not stop traffic to others. */
START_TEST(waiting_for_one_is_not_waiting_for_all)
{
    struct node *a, *b, *c = NULL;

    two(&a, &b);
    c = join(3);
    announce(c);
    drain(a), drain(b);
    while (send_frame(a, 2, 0, 64)) {
    }
    for (int i = 0; i < 1000; i++) {
        ck_assert(send_frame(a, 3, 0, 64));
        ck_assert_uint_eq(drain(c), 1);
    }
    leave(a);
    leave(b);
    leave(c);
}
END_TEST

/* "a flooded frame may be dropped (and counted) for a receiver that is full" */
START_TEST(a_flooded_frame_misses_a_full_receiver_only)
{
    struct node *a, *b, *c;

    two(&a, &b);
    c = join(3);
    while (send_frame(a, 2, 0, 64)) {
    }
    ck_assert(send_frame(a, 0xff, 77, 64));
    ck_assert_uint_eq(stats_of(a).tx_no_room, 1);
    ck_assert_uint_eq(drain(c), 1);
    drain(b);
    ck_assert_uint_ne(b->last_number, 77);
    leave(a);
    leave(b);
    leave(c);
}
END_TEST

/* A frame for a full receiver that was built without its destination's being known waits; the
 * sender waits with it. */
START_TEST(a_frame_without_a_known_destination_is_not_lost)
{
    struct node *a, *b;
    unsigned before, accepted = 0;
    uint8_t *frame;

    two(&a, &b);
    while (send_frame(a, 2, 0, 64)) {
        accepted++;
    }
    frame = wire_tx_reserve(a->port, 64);
    ck_assert_ptr_nonnull(frame);
    memset(frame, 0, 64);
    mac_of(frame, 2);
    mac_of(frame + 6, 1);
    frame[14] = 99;
    wire_tx_commit(a->port, 64);
    ck_assert_ptr_null(wire_tx_reserve(a->port, 64));
    ck_assert_ptr_null(wire_tx_reserve_to(a->port, (const uint8_t[6]){2, 0, 0, 0, 0, 2}, 64));
    before = a->tx_readies;
    ck_assert_uint_eq(drain(b), accepted);
    wire_poll(a->port, 64);
    ck_assert_uint_eq(a->tx_readies, before + 1);
    ck_assert_uint_eq(drain(b), 1);
    ck_assert_uint_eq(b->last_number, 99);
    leave(a);
    leave(b);
}
END_TEST

START_TEST(a_frame_goes_where_it_says_and_not_where_it_was_reserved)
{
    struct node *a, *b, *c;
    uint8_t *frame;

    two(&a, &b);
    c = join(3);
    announce(c);
    drain(a), drain(b);
    frame = wire_tx_reserve_to(a->port, (const uint8_t[6]){2, 0, 0, 0, 0, 2}, 64);
    memset(frame, 0, 64);
    mac_of(frame, 3);
    mac_of(frame + 6, 1);
    wire_tx_commit(a->port, 64);
    ck_assert_uint_eq(drain(b), 0);
    ck_assert_uint_eq(drain(c), 1);
    leave(a);
    leave(b);
    leave(c);
}
END_TEST

/* However often reservations are given back, or left and made again, none is used up. */
START_TEST(reservations_do_not_leak)
{
    const uint8_t dmac[6] = {2, 0, 0, 0, 0, 2};
    struct node *a, *b;

    two(&a, &b);
    for (int i = 0; i < 3000; i++) {
        ck_assert_ptr_nonnull(wire_tx_reserve_to(a->port, dmac, 64));
        if (i % 3) {
            wire_tx_commit(a->port, i % 2 ? 0 : 13);
        }
    }
    ck_assert_uint_eq(drain(b), 0);
    ck_assert(send_frame(a, 2, 5, 64));
    ck_assert_uint_eq(drain(b), 1);
    leave(a);
    leave(b);
}
END_TEST

/* After a poll that emptied the port, a frame makes the descriptor readable; while the receiver
 * is at work no system call is spent on it. */
START_TEST(a_sleeper_is_woken_and_a_worker_is_not)
{
    struct node *a, *b;
    uint64_t wakeups;

    two(&a, &b);
    while (sleep_on(b, 0)) {
    }
    ck_assert_uint_eq(wire_poll(b->port, 64), 0);
    b->rx_readies = 0;
    wakeups = stats_of(a).wakeups;
    ck_assert(send_frame(a, 2, 0, 64));
    ck_assert(sleep_on(b, PATIENCE_MS));
    ck_assert_uint_eq(b->rx_readies, 1);
    ck_assert_uint_eq(stats_of(a).wakeups, wakeups + 1);
    for (int i = 0; i < 20; i++) {
        ck_assert(send_frame(a, 2, 0, 64)); /* it has been woken and has not yet slept again */
    }
    ck_assert_uint_eq(stats_of(a).wakeups, wakeups + 1);
    /* As many as allowed: not asleep. */
    ck_assert_uint_eq(wire_poll(b->port, 10), 10);
    ck_assert(send_frame(a, 2, 0, 64));
    ck_assert_uint_eq(stats_of(a).wakeups, wakeups + 1);
    ck_assert_uint_eq(wire_poll(b->port, 64), 12);
    ck_assert(send_frame(a, 2, 0, 64));
    ck_assert_uint_eq(stats_of(a).wakeups, wakeups + 2);
    ck_assert(sleep_on(b, PATIENCE_MS));
    drain(b);
    /* An owner that never sleeps is never woken. */
    wire_set_busy(b->port, true);
    for (int i = 0; i < 20; i++) {
        ck_assert(send_frame(a, 2, 0, 64));
        ck_assert_uint_eq(drain(b), 1);
    }
    ck_assert_uint_eq(stats_of(a).wakeups, wakeups + 2);
    wire_set_busy(b->port, false);
    drain(b);
    ck_assert(send_frame(a, 2, 0, 64));
    ck_assert(sleep_on(b, PATIENCE_MS));
    leave(a);
    leave(b);
}
END_TEST

START_TEST(frames_before_the_first_poll_wake_it)
{
    struct node *a = join(1), *b = join(2);

    while (sleep_on(b, 0)) {
    }
    announce(a);
    ck_assert(sleep_on(b, PATIENCE_MS));
    ck_assert_uint_eq(drain(b), 1);
    leave(a);
    leave(b);
}
END_TEST

START_TEST(a_blocked_sender_that_sleeps_is_woken)
{
    struct node *a, *b;

    two(&a, &b);
    while (send_frame(a, 2, 0, 64)) {
    }
    wire_poll(a->port, 64);
    while (sleep_on(a, 0)) {
    }
    a->tx_readies = 0;
    drain(b);
    while (!a->tx_readies) {
        ck_assert(sleep_on(a, PATIENCE_MS));
    }
    ck_assert(send_frame(a, 2, 0, 64));
    leave(a);
    leave(b);
}
END_TEST

/* ---- processes ---- */

struct child {
    pid_t pid;
    int ready; /* readable once the child is where the test wants it */
};

/* Runs body in a process that then waits to be killed. */
static struct child spawn(void (*body)(void))
{
    struct child c;
    int pipes[2];
    char byte;

    ck_assert_int_eq(pipe(pipes), 0);
    c.pid = fork();
    if (c.pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(pipes[0]);
        body();
        (void)!write(pipes[1], "", 1);
        pause();
        _exit(0);
    }
    close(pipes[1]);
    c.ready = pipes[0];
    ck_assert_int_eq(read(c.ready, &byte, 1), 1);
    return c;
}

static void kill_child(struct child c)
{
    close(c.ready);
    ck_assert_int_eq(kill(c.pid, SIGKILL), 0);
    ck_assert_int_eq(waitpid(c.pid, NULL, 0), c.pid);
}

static void join_and_announce(void)
{
    announce(join(9));
}

static void hold_a_reservation(void)
{
    const uint8_t dmac[6] = {2, 0, 0, 0, 0, 1};
    struct node *n = join(9);

    announce(n);
    memset(wire_tx_reserve_to(n->port, dmac, 1000), 0xee, 500);
}

static void fill_receiver(void)
{
    struct node *n = join(9);

    announce(n);
    while (send_frame(n, 1, 0, 64)) {
    }
}

static void nothing_more(void)
{
    join(9);
}

/* The receiver dies with its room full: whoever waits for it is told, and goes on. */
START_TEST(a_receiver_that_dies_frees_its_senders)
{
    struct node *a = join(1);
    struct child c = spawn(join_and_announce);
    int64_t until;

    drain(a);
    while (send_frame(a, 9, 0, 1000)) {
    }
    wire_poll(a->port, 64);
    kill_child(c);
    a->tx_readies = 0;
    until = ms_now() + PATIENCE_MS;
    while (ms_now() < until && !send_frame(a, 9, 0, 1000)) {
        sleep_on(a, 100);
        wire_poll(a->port, 64);
    }
    ck_assert_uint_ge(a->tx_readies, 1);
    for (int i = 0; i < 1000; i++) {
        ck_assert(send_frame(a, 9, 0, 1000)); /* to nobody, for nobody is there */
    }
    ck_assert_uint_ge(stats_of(a).tx_no_dest, 1000);
    leave(a);
}
END_TEST

/* The same for an owner that does nothing but poll. */
START_TEST(a_receiver_that_dies_frees_busy_senders)
{
    struct node *a = join(1);
    struct child c = spawn(join_and_announce);
    int64_t until = ms_now() + PATIENCE_MS;

    wire_set_busy(a->port, true);
    drain(a);
    while (send_frame(a, 9, 0, 1000)) {
    }
    kill_child(c);
    a->tx_readies = 0;
    while (ms_now() < until && !a->tx_readies) {
        wire_poll(a->port, 64);
    }
    ck_assert(send_frame(a, 9, 0, 1000));
    leave(a);
}
END_TEST

/* What senders had reserved when they were killed comes back to those who need room. */
START_TEST(reservations_of_the_dead_come_back)
{
    struct node *a = join(1), *senders[3];
    struct child dead[6];
    unsigned whole = 0, accepted = 0;

    announce(a);
    for (int i = 0; i < 3; i++) {
        senders[i] = join((uint8_t)(20 + i));
        announce(senders[i]);
    }
    drain(a);
    for (int i = 0; i < 3; i++) {
        while (send_frame(senders[i], 1, 0, 64)) {
            whole++; /* so much room there is for all together */
        }
    }
    drain(a);
    for (int i = 0; i < 6; i++) {
        dead[i] = spawn(hold_a_reservation);
    }
    drain(a);
    for (int i = 0; i < 6; i++) {
        kill_child(dead[i]);
    }
    for (int i = 0; i < 3; i++) {
        drain(senders[i]);
        while (send_frame(senders[i], 1, 0, 64)) {
            accepted++;
        }
    }
    ck_assert_uint_eq(accepted, whole - 6);
    /* Waiting makes the receiver look who is alive. */
    drain(a);
    g_usleep(100000);
    for (int i = 0; i < 3; i++) {
        drain(senders[i]);
    }
    accepted = 0;
    for (int round = 0; round < 30 && accepted != whole; round++) {
        accepted = 0;
        drain(a);
        for (int i = 0; i < 3; i++) {
            drain(senders[i]);
            while (send_frame(senders[i], 1, 0, 64)) {
                accepted++;
            }
        }
        g_usleep(100000);
    }
    ck_assert_uint_eq(accepted, whole);
    for (int i = 0; i < 3; i++) {
        leave(senders[i]);
    }
    leave(a);
}
END_TEST

START_TEST(what_a_dead_sender_had_sent_still_arrives)
{
    struct node *a = join(1);
    struct child c;
    unsigned got;

    announce(a);
    c = spawn(fill_receiver);
    kill_child(c);
    got = drain(a);
    ck_assert_uint_gt(got, 10);
    ck_assert_uint_eq(a->last_from, 9);
    leave(a);
}
END_TEST

/* A new member gets the place of a dead one, and nothing of its past. */
START_TEST(a_place_is_taken_over)
{
    struct node *a = join(1), *n;

    announce(a);
    for (int i = 0; i < 10; i++) {
        struct child c = spawn(i % 3 == 0   ? fill_receiver
                               : i % 3 == 1 ? hold_a_reservation
                                            : join_and_announce);

        if (i % 2) {
            drain(a);
        }
        while (i % 4 == 3 && send_frame(a, 9, 1, 64)) {
        }
        kill_child(c);
        n = join(9);
        drain(a);
        announce(n);
        ck_assert_uint_eq(drain(a), 1);
        drain(n);
        n->frames = a->frames = 0;
        for (uint32_t k = 0; k < 500; k++) {
            g_usleep(k == 0 ? 60000 : 0);
            wire_poll(a->port, 64);
            ck_assert(send_frame(a, 9, k, 64));
            ck_assert_uint_eq(drain(n), 1);
            ck_assert_uint_eq(n->last_number, k);
            ck_assert(send_frame(n, 1, k, 64));
            ck_assert_uint_eq(drain(a), 1);
            ck_assert_uint_eq(a->last_number, k);
        }
        leave(n);
    }
    ck_assert_uint_eq(stats_of(a).rx_malformed, 0);
    leave(a);
}
END_TEST

/* "stale segments reclaimed" */
START_TEST(a_segment_of_the_dead_is_made_anew)
{
    struct child c = spawn(nothing_more), d = spawn(join_and_announce);
    struct node *a, *b;

    kill_child(c);
    kill_child(d);
    ck_assert_uint_gt(files_left(), 0);
    two(&a, &b);
    ck_assert(send_frame(a, 9, 7, 64)); /* flooded: nobody remembers 9 */
    ck_assert_uint_eq(drain(b), 1);
    leave(a);
    leave(b);
    ck_assert_uint_eq(files_left(), 0);
}
END_TEST

#define STRESS_NODES  4
#define STRESS_FRAMES 4000

/* Sends to all others as fast as it may, takes what comes, sleeps when there is nothing to do. */
static int stress(uint8_t self)
{
    struct node *n = join(self);
    uint32_t next[STRESS_NODES + 1] = {0};
    int64_t until = ms_now() + 3 * PATIENCE_MS;
    unsigned known = 0;

    /* All know of each other when three kinds of greeting have been heard. */
    while (known != (1u << STRESS_NODES) - 1 && ms_now() < until) {
        send_frame(n, 0xff, 0, 17);
        if (wire_poll(n->port, 1)) {
            known |= 1u << (n->last_from - 1);
        } else {
            g_usleep(1000);
        }
        known |= 1u << (self - 1);
    }
    send_frame(n, 0xff, 0, 17);
    while (ms_now() < until) {
        bool done = true, progress = false;

        for (uint8_t to = 1; to <= STRESS_NODES; to++) {
            if (to == self) {
                continue;
            }
            if (next[to] < STRESS_FRAMES &&
                send_frame(n, to, next[to], 18 + next[to] * 37 % 4000)) {
                next[to]++;
                progress = true;
            }
            done &= next[to] == STRESS_FRAMES && n->expect[to] == STRESS_FRAMES;
        }
        if (done) {
            bool ok = n->out_of_order == 0 && stats_of(n).rx_malformed == 0;

            leave(n);
            return ok ? 0 : 1;
        }
        if (wire_poll(n->port, 16) < 16 && !progress) {
            sleep_on(n, 1000);
        }
    }
    fprintf(stderr, "%d: to 1..4 %u %u %u %u, from %u %u %u %u\n", self, next[1], next[2], next[3],
            next[4], n->expect[1], n->expect[2], n->expect[3], n->expect[4]);
    return 2;
}

START_TEST(many_processes_lose_nothing)
{
    pid_t pids[STRESS_NODES];

    for (uint8_t i = 0; i < STRESS_NODES; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            _exit(stress((uint8_t)(i + 1)));
        }
    }
    for (int i = 0; i < STRESS_NODES; i++) {
        int status;

        ck_assert_int_eq(waitpid(pids[i], &status, 0), pids[i]);
        ck_assert(WIFEXITED(status));
        ck_assert_int_eq(WEXITSTATUS(status), 0);
    }
    ck_assert_uint_eq(files_left(), 0);
}
END_TEST

/* Talks to its neighbours for ever. */
static void chatter(uint8_t self)
{
    struct node *n = join(self);

    announce(n);
    for (uint32_t i = 0;; i++) {
        send_frame(n, (uint8_t)(1 + i % 4), i, 64 + i % 1000);
        if (i % 64 == 0) {
            announce(n);
        }
        wire_poll(n->port, 32);
    }
}

/* Processes are killed wherever they happen to be; one that stays goes on being served. */
START_TEST(kills_at_random_moments)
{
    pid_t pids[3] = {0};
    struct node *a = join(1), *b = join(2);
    uint32_t got = 0, number = 0;

    announce(a);
    announce(b);
    for (int round = 0; round < 24; round++) {
        int victim = round % 3;

        if (pids[victim]) {
            kill(pids[victim], SIGKILL);
            waitpid(pids[victim], NULL, 0);
        }
        pids[victim] = fork();
        if (pids[victim] == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            chatter((uint8_t)(3 + victim));
        }
        for (int i = 0; i < 40; i++) {
            if (send_frame(a, 2, number, 64)) {
                number++;
            }
            wire_poll(b->port, 64);
            wire_poll(a->port, 64);
            g_usleep(20 + (unsigned)(i * round % 50));
        }
    }
    for (int v = 0; v < 3; v++) {
        kill(pids[v], SIGKILL);
        waitpid(pids[v], NULL, 0);
    }
    /* With all of them gone, a and b still have each other, without loss. */
    for (int64_t until = ms_now() + PATIENCE_MS; ms_now() < until;) {
        sleep_on(a, 10);
        sleep_on(b, 10);
        if (!drain(a) && !drain(b)) {
            break;
        }
    }
    b->frames = 0;
    for (int64_t until = ms_now() + PATIENCE_MS; got < 2000 && ms_now() < until;) {
        got += send_frame(a, 2, got, 64);
        wire_poll(b->port, 64);
        wire_poll(a->port, 64);
    }
    drain(b);
    ck_assert_uint_eq(got, 2000);
    ck_assert_uint_eq(b->frames, 2000);
    ck_assert_uint_eq(b->last_number, 1999);
    leave(a);
    leave(b);
    ck_assert_uint_eq(files_left(), 0);
}
END_TEST

/* Whatever stands in the shared memory, a port neither crashes nor hangs nor hands out a frame
 * that is none. */
START_TEST(scribbled_memory_harms_nobody)
{
    struct node *a, *b, *c;
    char *path = g_build_filename(dir, "seg", NULL);
    GRand *rnd = g_rand_new_with_seed((guint32)_i + 1);
    size_t header = sizeof(struct shm_header), regions;
    uint8_t *map;
    int fd;

    two(&a, &b);
    c = join(3);
    announce(c);
    fd = open(path, O_RDWR);
    ck_assert_int_ge(fd, 0);
    header = (header + 4095) / 4096 * 4096;
    regions = 3 * ((sizeof(struct shm_region) + 4095) / 4096 * 4096);
    map = mmap(NULL, header + regions, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    ck_assert(map != MAP_FAILED);

    for (int i = 0; i < 1500; i++) {
        /* Small values, plausible values, wild values, into the parts that steer. */
        struct shm_header *h = (struct shm_header *)map;
        unsigned r = (unsigned)g_rand_int_range(rnd, 0, 3);
        struct shm_region *region =
            (struct shm_region *)(map + header +
                                  r * ((sizeof(struct shm_region) + 4095) / 4096 * 4096));
        unsigned s = (unsigned)g_rand_int_range(rnd, 0, i % 2 ? 3 : SHM_MEMBERS);
        unsigned k = (unsigned)g_rand_int_range(rnd, 0, SHM_SLOTS);
        uint32_t gen = h->member[s].gen;
        uint64_t wild = (uint64_t)g_rand_int(rnd) << 32 | g_rand_int(rnd);
        struct node *nodes[] = {a, b, c}, *n = nodes[g_rand_int_range(rnd, 0, 3)];

        switch (g_rand_int_range(rnd, 0, 13)) {
        case 0:
            region->slot[k].len = g_rand_int(rnd) >> g_rand_int_range(rnd, 0, 32);
            break;
        case 1:
            region->slot[k].owner = g_rand_boolean(rnd) ? shm_tag(s, gen) : (uint32_t)wild;
            break;
        case 2:
            region->slot[k].stamp = g_rand_boolean(rnd) ? shm_stamp(gen, k) : wild;
            break;
        case 3:
            region->ring[s].tail = g_rand_boolean(rnd) ? (uint64_t)gen << 40 | k : wild;
            break;
        case 4:
            region->ring[s].entry[k % SHM_RING] =
                g_rand_boolean(rnd) ? shm_stamp(gen, k) << 16 | (wild & 0x1ff) : wild;
            break;
        case 5:
            for (unsigned e = 0; e < SHM_RING; e++) { /* a whole ring of forged entries */
                region->ring[s].entry[e] = shm_stamp(gen, e + (k & ~127u)) << 16 | (wild & 0xff);
            }
            break;
        case 6:
            h->member[s].gen = g_rand_boolean(rnd) ? gen + 1 : (uint32_t)wild;
            break;
        case 7:
            h->member[s].attached = g_rand_boolean(rnd);
            break;
        case 8:
            h->member[s].senders[k % 2] = wild;
            break;
        case 9:
            h->member[s].waiters[k % 2] = wild;
            break;
        case 10:
            h->member[s].macs_used = (uint32_t)wild;
            h->member[s].mac[k % SHM_MACS].mac = 0x020000000000 | k % 4;
            break;
        case 11:
            h->member[s].sleep = (uint32_t)wild;
            h->member[s].tx_wake = (uint32_t)wild >> 8;
            break;
        default:
            ((uint64_t *)map)[wild % ((header + regions) / 8)] = wild;
            break;
        }
        send_frame(n, (uint8_t)g_rand_int_range(rnd, 1, 5), 0, 64);
        send_frame(n, 0xff, 0, 64);
        wire_poll(n->port, (unsigned)g_rand_int_range(rnd, 1, 100));
        wire_fd_event(n->port);
    }
    munmap(map, header + regions);
    close(fd);
    leave(a);
    leave(b);
    leave(c);
    g_rand_free(rnd);
    g_free(path);
}
END_TEST

START_TEST(sixteen_members)
{
    struct node *n[16];

    for (int i = 0; i < 16; i++) {
        n[i] = join((uint8_t)(i + 1));
    }
    for (int i = 0; i < 16; i++) {
        announce(n[i]);
    }
    for (int i = 0; i < 16; i++) {
        ck_assert_uint_eq(drain(n[i]), 15);
    }
    for (int i = 0; i < 16; i++) {
        for (int k = 0; k < 16; k++) {
            if (k != i) {
                ck_assert(send_frame(n[i], (uint8_t)(k + 1), 0, 64));
            }
        }
    }
    for (int i = 0; i < 16; i++) {
        ck_assert_uint_eq(drain(n[i]), 15);
        leave(n[i]);
    }
    ck_assert_uint_eq(files_left(), 0);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("wire shm");
    TCase *tc = tcase_create("shm");
    SRunner *sr;
    int failed;

    make_dir();
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, a_bad_uri_is_refused_with_the_forms);
    tcase_add_test(tc, what_the_system_refuses_is_told);
    tcase_add_test(tc, a_name_is_this_users_own);
    tcase_add_test(tc, a_file_made_for_a_group_stays_as_it_is);
    tcase_add_test(tc, the_last_one_removes_the_files);
    tcase_add_test(tc, frames_go_where_the_address_is);
    tcase_add_test(tc, an_address_follows_whoever_used_it_last);
    tcase_add_test(tc, a_port_may_have_many_addresses);
    tcase_add_test(tc, own_address);
    tcase_add_test(tc, alone_on_the_segment);
    tcase_add_test(tc, a_full_receiver_makes_the_sender_wait);
    tcase_add_test(tc, waiting_for_one_is_not_waiting_for_all);
    tcase_add_test(tc, a_flooded_frame_misses_a_full_receiver_only);
    tcase_add_test(tc, a_frame_without_a_known_destination_is_not_lost);
    tcase_add_test(tc, a_frame_goes_where_it_says_and_not_where_it_was_reserved);
    tcase_add_test(tc, reservations_do_not_leak);
    tcase_add_test(tc, a_sleeper_is_woken_and_a_worker_is_not);
    tcase_add_test(tc, frames_before_the_first_poll_wake_it);
    tcase_add_test(tc, a_blocked_sender_that_sleeps_is_woken);
    tcase_add_test(tc, a_receiver_that_dies_frees_its_senders);
    tcase_add_test(tc, a_receiver_that_dies_frees_busy_senders);
    tcase_add_test(tc, reservations_of_the_dead_come_back);
    tcase_add_test(tc, what_a_dead_sender_had_sent_still_arrives);
    tcase_add_test(tc, a_place_is_taken_over);
    tcase_add_test(tc, a_segment_of_the_dead_is_made_anew);
    tcase_add_test(tc, many_processes_lose_nothing);
    tcase_add_test(tc, kills_at_random_moments);
    tcase_add_loop_test(tc, scribbled_memory_harms_nobody, 0, 6);
    tcase_add_test(tc, sixteen_members);
    suite_add_tcase(s, tc);
    sr = srunner_create(s);
    srunner_run_all(sr, CK_NORMAL);
    failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    remove_dir();
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
