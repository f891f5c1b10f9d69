/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests shared-memory segments: who may join, where frames go, and what waits for what. All members
 * are in this process; test_wire_shm_procs.c tests other processes and their deaths.
 */
#include "tests/unit/wire_nodes.h"
#include "wire/capture.h"
#include "wire/shm/port.h"
#include "tests/unit/suite.h"

#include <check.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

START_TEST(a_bad_uri_is_refused_with_the_forms)
{
    static const char *bad[] = {"",         "shm",          "shm:",    "shm:a/b", "shm:.hidden",
                                "shm:/",    "shm:/a/dir/",  "shm:a b", "sctp:x",  "/dev/shm/x",
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

START_TEST(errors_of_the_system_are_reported)
{
    GError *err = NULL;
    char *link = g_build_filename(nodes_dir, "link", NULL),
         *other = g_build_filename(nodes_dir, "data", NULL);
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

/* Two users do not share shm:NAME: the uid is in the file's name, and the mode is 0600. */
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
    char *path = g_build_filename(nodes_dir, "seg", NULL);
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

    ck_assert_uint_gt(nodes_files_left(), 0);
    leave(a);
    ck_assert_uint_gt(nodes_files_left(), 0);
    leave(b);
    ck_assert_uint_eq(nodes_files_left(), 0);
}
END_TEST

/* A switch sends to all until it knows where an address is, then only there. */
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
    /* More addresses than are remembered: they are reached anyway. */
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

/* A frame to the sender's own address has no destination: a switch does not return frames. */
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

/* Unicast frames are not lost: all accepted frames arrive, in order. If a frame finds no credit,
 * the sender is notified when there is room. */
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
        /* It would otherwise try again by itself, after some time. */
        shm_port_of(a->port)->recheck_at_ms[SHM_RECHECK_BLOCKED] = UINT64_MAX;
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

/* Sets the state as if so many frames had gone from a to b, all of them consumed. */
static void preset(struct node *a, struct node *b, uint32_t positions)
{
    struct shm_port *from = shm_port_of(a->port), *to = shm_port_of(b->port);
    struct shm_peer *peer;

    ck_assert(send_frame(a, b->id, 0, 64)); /* now there is a ring */
    ck_assert_uint_eq(drain(b), 1);
    peer = from->peer[to->seg.id];
    peer->tx_head = peer->tx_tail = positions;
    to->source[from->seg.id].pos = positions;
    atomic_store(&to->seg.region[to->seg.id]->ends[from->seg.id].tail,
                 shm_tail(from->seg.gen, positions));
    b->frames = b->out_of_order = 0;
    b->expect[a->id] = 0;
}

/* Positions in a ring wrap around at 2^32, positions in a stamp at 2^24: frames continue, in order
 * and with back-pressure. */
START_TEST(positions_wrap)
{
    static const uint32_t starts[] = {(1u << 24) - 700, UINT32_MAX - 700, UINT32_MAX - 511};
    struct node *a, *b;
    uint32_t sent = 0;

    two(&a, &b);
    preset(a, b, starts[_i]);
    for (unsigned round = 0; round < 200; round++) {
        while (sent < 2000 && send_frame(a, 2, sent, 64)) {
            sent++;
        }
        ck_assert_uint_le(wire_poll(b->port, 11), 11);
        wire_poll(a->port, 64);
    }
    drain(b);
    ck_assert_uint_eq(sent, 2000);
    ck_assert_uint_eq(b->frames, 2000);
    ck_assert_uint_eq(b->out_of_order, 0);
    ck_assert_uint_eq(stats_of(b).rx_malformed, 0);
    ck_assert_uint_ge(stats_of(a).tx_blocked, 1);
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

/* A sender that waits for one of two full receivers learns which one gives credit, and then the
 * other one. A filter around the port does the same. */
START_TEST(the_sender_learns_which_receiver_has_room)
{
    char *path = g_build_filename(nodes_dir, "capture.pcapng", NULL);
    struct node *a, *b, *c;
    struct shm_port *sender;
    unsigned class_b, class_c;

    two(&a, &b);
    sender = shm_port_of(a->port);
    c = join(3);
    announce(c);
    drain(a), drain(b);
    if (_i) {
        wrap(a, wire_capture_new(a->port, path, NULL, NULL));
    }
    while (send_frame(a, 2, 0, 64)) {
    }
    class_b = wire_tx_credit_class(a->port);
    while (send_frame(a, 3, 0, 64)) {
    }
    class_c = wire_tx_credit_class(a->port);
    ck_assert_uint_ne(class_b, class_c);
    /* It would try both again of itself, after some time. */
    sender->recheck_at_ms[SHM_RECHECK_BLOCKED] = UINT64_MAX;
    drain(c);
    a->tx_readies = 0;
    wire_poll(a->port, 64);
    ck_assert_uint_eq(a->tx_readies, 1);
    ck_assert_uint_eq(a->tx_credits, 1ull << class_c);
    ck_assert(send_frame(a, 3, 0, 64));
    /* If nobody has asked again, the notification comes once. */
    wire_poll(a->port, 64);
    ck_assert_uint_eq(a->tx_readies, 1);
    drain(b);
    wire_poll(a->port, 64);
    ck_assert_uint_eq(a->tx_readies, 2);
    ck_assert_uint_eq(a->tx_credits, 1ull << class_b);
    ck_assert(send_frame(a, 2, 0, 64));
    leave(a);
    leave(b);
    leave(c);
    g_remove(path);
    g_free(path);
}
END_TEST

/* A frame for all uses no room in a receiver: nobody waits, and a full receiver gets it anyway. */
START_TEST(a_flooded_frame_reaches_a_full_receiver)
{
    struct node *a, *b, *c;

    two(&a, &b);
    c = join(3);
    while (send_frame(a, 2, 0, 64)) {
    }
    b->frames = 0;
    ck_assert(send_frame(a, 0xff, 77, 64));
    ck_assert_uint_eq(wire_poll(b->port, 1), 1);
    ck_assert_uint_eq(b->last_number, 77);
    ck_assert_uint_eq(drain(c), 1);
    leave(a);
    leave(b);
    leave(c);
}
END_TEST

/* A receiver that reads too late misses a flooded frame (counted, rx_missed), and gets all later
 * frames, in order. */
START_TEST(a_late_receiver_misses_flooded_frames)
{
    enum {
        FRAMES = 1000,
        LEN = 4000
    };
    struct node *a, *b, *c;
    unsigned of_b;

    two(&a, &b);
    c = join(3);
    for (uint32_t i = 0; i < FRAMES; i++) {
        ck_assert(send_frame(a, 0xff, i, LEN + i % 7));
        ck_assert_uint_eq(drain(c), 1);
        ck_assert_uint_eq(c->last_number, i);
    }
    ck_assert_uint_eq(stats_of(c).rx_missed, 0);
    ck_assert_uint_eq(drain(b), 1); /* that it has been overtaken */
    ck_assert_uint_eq(b->frames, 0);
    for (uint32_t i = FRAMES; i < FRAMES + 60; i++) {
        ck_assert(send_frame(a, 0xff, i, LEN));
    }
    b->expect[1] = FRAMES;
    of_b = drain(b);
    ck_assert_uint_eq(of_b, 60);
    ck_assert_uint_eq(b->last_number, FRAMES + 59);
    ck_assert_uint_eq(b->out_of_order, 0);
    ck_assert_uint_eq(stats_of(b).rx_missed, FRAMES);
    ck_assert_uint_eq(stats_of(b).rx_malformed, 0);
    ck_assert_uint_eq(stats_of(a).tx_no_room, 0);
    leave(a);
    leave(b);
    leave(c);
}
END_TEST

/* A frame in a log that its sender has begun to overwrite during the copy is discarded. */
START_TEST(a_flooded_frame_that_is_overwritten_is_thrown_away)
{
    struct node *a, *b;

    two(&a, &b);
    ck_assert(send_frame(a, 0xff, 1, 64));
    atomic_store(&shm_port_of(a->port)->self->log_tail,
                 shm_port_of(b->port)->source[0].log.pos + 64);
    drain(b);
    ck_assert_uint_eq(b->frames, 0);
    ck_assert(send_frame(a, 0xff, 2, 64));
    drain(b);
    ck_assert_uint_eq(b->frames, 1);
    ck_assert_uint_eq(b->last_number, 2);
    ck_assert_uint_eq(stats_of(b).rx_missed, 1);
    leave(a);
    leave(b);
}
END_TEST

/* A frame for a full receiver that was built before its destination was known waits, and the sender
 * waits with it. */
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

/* A frame without ICRC is built in the receiver's region, copied for all, or kept until there is
 * room. */
START_TEST(a_frame_without_icrc_arrives_as_such)
{
    struct node *a, *b;
    uint8_t *frame;

    two(&a, &b);
    ck_assert_uint_eq(a->port->offers, WIRE_NO_ICRC);
    ck_assert(send_frame_as(a, 2, 1, 64, WIRE_NO_ICRC));
    ck_assert_uint_eq(drain(b), 1);
    ck_assert_uint_eq(b->last_flags, WIRE_NO_ICRC);
    ck_assert(send_frame(a, 2, 2, 64));
    ck_assert_uint_eq(drain(b), 1);
    ck_assert_uint_eq(b->last_flags, 0);
    ck_assert(send_frame_as(a, 0xff, 3, 64, WIRE_NO_ICRC | WIRE_MORE));
    wire_tx_flush(a->port);
    ck_assert_uint_eq(drain(b), 1);
    ck_assert_uint_eq(b->last_flags, WIRE_NO_ICRC);
    while (send_frame(a, 2, 4, 64)) {
    }
    frame = wire_tx_reserve(a->port, 64);
    memset(frame, 0, 64);
    mac_of(frame, 2);
    mac_of(frame + 6, 1);
    wire_tx_commit_as(a->port, 64, WIRE_NO_ICRC);
    drain(b);
    ck_assert_uint_eq(b->last_flags, 0);
    wire_poll(a->port, 64);
    ck_assert_uint_eq(drain(b), 1);
    ck_assert_uint_eq(b->last_flags, WIRE_NO_ICRC);
    leave(a);
    leave(b);
}
END_TEST

START_TEST(the_address_of_a_frame_decides_not_its_reservation)
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

/* However often reservations are returned, or abandoned and made again, none is lost. */
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
 * works, no system call is made for it. */
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
        ck_assert(send_frame(a, 2, 0, 64)); /* it has been woken and has not slept again yet */
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

/* The sender sees that it sleeps, or finds out after the last of several frames. */
START_TEST(a_sleeper_is_woken_by_several_frames)
{
    struct node *a, *b, *c = join(3);
    uint64_t wakeups;

    two(&a, &b);
    announce(c);
    drain(a);
    drain(b);
    drain(c);
    while (sleep_on(b, 0)) {
    }
    ck_assert_uint_eq(wire_poll(b->port, 64), 0);
    wakeups = stats_of(a).wakeups;
    ck_assert(send_frame_as(a, 2, 0, 64, WIRE_MORE));
    ck_assert_uint_eq(stats_of(a).wakeups, wakeups + 1);
    ck_assert(sleep_on(b, PATIENCE_MS));
    /* Awake when the frame is sent, asleep when the sender has no more frames. */
    shm_port_of(b->port)->self->sleep = 0;
    ck_assert(send_frame_as(a, 2, 0, 64, WIRE_MORE));
    shm_port_of(b->port)->self->sleep = 1;
    ck_assert_uint_eq(stats_of(a).wakeups, wakeups + 1);
    wire_tx_flush(a->port);
    ck_assert_uint_eq(stats_of(a).wakeups, wakeups + 2);
    wire_tx_flush(a->port);
    ck_assert_uint_eq(stats_of(a).wakeups, wakeups + 2);
    /* The same if the sender has more frames for another receiver, and if it leaves. */
    shm_port_of(b->port)->self->sleep = 0;
    ck_assert(send_frame_as(a, 2, 0, 64, WIRE_MORE));
    shm_port_of(b->port)->self->sleep = 1;
    shm_port_of(c->port)->self->sleep = 0;
    ck_assert(send_frame_as(a, 3, 0, 64, WIRE_MORE));
    ck_assert_uint_eq(stats_of(a).wakeups, wakeups + 3);
    while (sleep_on(c, 0)) {
    }
    shm_port_of(c->port)->self->sleep = 1;
    leave(a);
    ck_assert(sleep_on(c, PATIENCE_MS));
    ck_assert_uint_eq(drain(c), 1);
    ck_assert_uint_eq(drain(b), 3);
    leave(b);
    leave(c);
}
END_TEST

/* The sender has written to the FIFO and is delayed; the receiver wakes, finds nothing and sleeps
 * again; then the sender records that it woke it. The next frame must wake it anyway. */
START_TEST(a_sender_that_comes_back_late_takes_no_wake_up_away)
{
    struct node *a, *b;
    struct shm_port *receiver;
    uint32_t sleep_seen;
    int fifo;

    two(&a, &b);
    while (sleep_on(b, 0)) {
    }
    drain(b);
    receiver = shm_port_of(b->port);
    sleep_seen = atomic_load(&receiver->self->sleep);
    ck_assert_uint_eq(sleep_seen & 1, 1);
    fifo = shm_segment_open_wake(&shm_port_of(a->port)->seg, receiver->seg.id);
    ck_assert_int_ge(fifo, 0);
    ck_assert_int_eq(write(fifo, "", 1), 1);
    ck_assert(sleep_on(b, PATIENCE_MS));
    ck_assert_uint_eq(drain(b), 0);
    atomic_compare_exchange_strong(&receiver->self->sleep, &sleep_seen, sleep_seen + 1);

    ck_assert(send_frame(a, b->id, 1, 100));
    ck_assert(sleep_on(b, 1000));
    ck_assert_uint_eq(drain(b), 1);
    close(fifo);
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

/* A filter around a segment's port sleeps and wakes as the port itself does. */
START_TEST(a_captured_port_is_woken)
{
    char *path = g_build_filename(nodes_dir, "capture.pcapng", NULL);
    struct node *a, *b;
    GError *err = NULL;

    two(&a, &b);
    wrap(b, wire_capture_new(b->port, path, NULL, &err));
    ck_assert_ptr_null(err);
    ck_assert_int_ge(wire_fd(b->port), 0);
    while (sleep_on(b, 0)) {
    }
    drain(b);
    b->rx_readies = 0;
    ck_assert(send_frame(a, 2, 0, 64));
    ck_assert(sleep_on(b, PATIENCE_MS));
    ck_assert_uint_eq(b->rx_readies, 1);
    ck_assert_uint_eq(drain(b), 1);
    ck_assert(send_frame(b, 1, 5, 64));
    ck_assert_uint_eq(drain(a), 1);
    ck_assert_uint_eq(a->last_number, 5);
    leave(a);
    leave(b);
    ck_assert_int_eq(g_remove(path), 0);
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
    ck_assert_uint_eq(nodes_files_left(), 0);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *s = suite_create("wire shm");
    TCase *tc = tcase_create("shm");

    nodes_make_dir();
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, a_bad_uri_is_refused_with_the_forms);
    tcase_add_test(tc, errors_of_the_system_are_reported);
    tcase_add_test(tc, a_name_is_this_users_own);
    tcase_add_test(tc, a_file_made_for_a_group_stays_as_it_is);
    tcase_add_test(tc, the_last_one_removes_the_files);
    tcase_add_test(tc, frames_go_where_the_address_is);
    tcase_add_test(tc, an_address_follows_whoever_used_it_last);
    tcase_add_test(tc, a_port_may_have_many_addresses);
    tcase_add_test(tc, own_address);
    tcase_add_test(tc, alone_on_the_segment);
    tcase_add_test(tc, a_full_receiver_makes_the_sender_wait);
    tcase_add_loop_test(tc, positions_wrap, 0, 3);
    tcase_add_test(tc, waiting_for_one_is_not_waiting_for_all);
    tcase_add_loop_test(tc, the_sender_learns_which_receiver_has_room, 0, 2);
    tcase_add_test(tc, a_flooded_frame_reaches_a_full_receiver);
    tcase_add_test(tc, a_late_receiver_misses_flooded_frames);
    tcase_add_test(tc, a_flooded_frame_that_is_overwritten_is_thrown_away);
    tcase_add_test(tc, a_frame_without_a_known_destination_is_not_lost);
    tcase_add_test(tc, a_frame_without_icrc_arrives_as_such);
    tcase_add_test(tc, the_address_of_a_frame_decides_not_its_reservation);
    tcase_add_test(tc, reservations_do_not_leak);
    tcase_add_test(tc, a_sleeper_is_woken_and_a_worker_is_not);
    tcase_add_test(tc, a_sleeper_is_woken_by_several_frames);
    tcase_add_test(tc, a_sender_that_comes_back_late_takes_no_wake_up_away);
    tcase_add_test(tc, frames_before_the_first_poll_wake_it);
    tcase_add_test(tc, a_blocked_sender_that_sleeps_is_woken);
    tcase_add_test(tc, a_captured_port_is_woken);
    tcase_add_test(tc, sixteen_members);
    suite_add_tcase(s, tc);
    return s;
}
