/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests ports: the in-process pair, and the capture filter around one of its ends.
 */
#include "wire/capture.h"
#include "wire/open.h"
#include "wire/encap/roce.h"
#include "wire/pair.h"
#include "tests/unit/suite.h"

#include <check.h>
#include <glib/gstdio.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* A client that records its callbacks. */
struct listener {
    struct wire_port *port;
    unsigned frames, tx_readies, link_changes, rx_readies;
    size_t len;
    unsigned flags;
    uint8_t frame[WIRE_FRAME_MAX];
    bool echo; /* send back what comes */
};

static bool send_bytes(struct wire_port *port, uint8_t fill, size_t len)
{
    uint8_t *frame = wire_tx_reserve(port, len);

    if (!frame) {
        return false;
    }
    memset(frame, fill, len);
    wire_tx_commit(port, len);
    return true;
}

static void on_rx(void *client, const uint8_t *frame, size_t len, unsigned flags)
{
    struct listener *l = client;

    l->frames++;
    l->len = len;
    l->flags = flags;
    memcpy(l->frame, frame, len);
    if (l->echo) {
        ck_assert(send_bytes(l->port, (uint8_t)(frame[0] + 1), len));
    }
}

static void on_tx_ready(void *client)
{
    ((struct listener *)client)->tx_readies++;
}

static void on_link_change(void *client)
{
    ((struct listener *)client)->link_changes++;
}

static void on_rx_ready(void *client)
{
    ((struct listener *)client)->rx_readies++;
}

static const struct wire_client listening = {
    .rx = on_rx,
    .tx_ready = on_tx_ready,
    .link_change = on_link_change,
    .rx_ready = on_rx_ready,
};

static void listen_at(struct listener *l, struct wire_port *port)
{
    memset(l, 0, sizeof(*l));
    l->port = port;
    wire_set_client(port, &listening, l);
}

static struct wire_port *ends[2];
static struct listener at[2];

static void plug_in(unsigned slots)
{
    wire_pair_new(slots, ends);
    listen_at(&at[0], ends[0]);
    listen_at(&at[1], ends[1]);
}

static int warnings;

static void count_warning(const gchar *domain, GLogLevelFlags level, const gchar *message,
                          gpointer opaque)
{
    warnings++;
}

START_TEST(frames_arrive_in_order_when_polled)
{
    plug_in(8);
    for (uint8_t i = 1; i <= 3; i++) {
        ck_assert(send_bytes(ends[0], i, 60u + i));
    }
    ck_assert_uint_eq(at[1].frames, 0);
    ck_assert_uint_eq(at[1].rx_readies, 3);
    for (uint8_t i = 1; i <= 3; i++) {
        ck_assert_uint_eq(wire_poll(ends[1], 1), 1);
        ck_assert_uint_eq(at[1].frames, i);
        ck_assert_uint_eq(at[1].frame[0], i);
        ck_assert_uint_eq(at[1].len, 60u + i);
    }
    ck_assert_uint_eq(wire_poll(ends[1], 1), 0);
    ck_assert_uint_eq(at[0].frames, 0);
    wire_close(ends[0]);
    wire_close(ends[1]);
}
END_TEST

/* "Nothing is lost inside a lossless backend": without room there is no reservation, and the
 * sender is told when there is. */
START_TEST(a_full_pair_makes_the_sender_wait)
{
    plug_in(3);
    for (uint8_t i = 0; i < 3; i++) {
        ck_assert(send_bytes(ends[0], i, 100));
    }
    ck_assert(!send_bytes(ends[0], 3, 100));
    ck_assert_ptr_null(wire_tx_reserve_to(ends[0], (const uint8_t[6]){2}, 100));
    ck_assert_uint_eq(at[0].tx_readies, 0);
    ck_assert_uint_eq(wire_poll(ends[1], 1), 1);
    ck_assert_uint_eq(at[0].tx_readies, 1);
    ck_assert(send_bytes(ends[0], 3, 100));
    ck_assert_uint_eq(wire_poll(ends[1], 10), 3);
    ck_assert_uint_eq(at[1].frame[0], 3);
    ck_assert_uint_eq(at[0].tx_readies, 1); /* nobody was waiting any more */
    /* The other direction has its own room. */
    ck_assert(send_bytes(ends[1], 9, 100));
    wire_close(ends[0]);
    wire_close(ends[1]);
}
END_TEST

START_TEST(a_reservation_can_be_given_back)
{
    plug_in(1);
    ck_assert_ptr_nonnull(wire_tx_reserve(ends[0], 200));
    wire_tx_commit(ends[0], 0);
    ck_assert_uint_eq(wire_poll(ends[1], 10), 0);
    ck_assert(send_bytes(ends[0], 5, 64));
    ck_assert_uint_eq(wire_poll(ends[1], 10), 1);
    ck_assert_ptr_null(wire_tx_reserve(ends[0], WIRE_FRAME_MAX + 1));
    wire_close(ends[0]);
    wire_close(ends[1]);
}
END_TEST

START_TEST(a_callback_may_send)
{
    plug_in(2);
    at[1].echo = true;
    for (uint8_t i = 0; i < 100; i++) {
        ck_assert(send_bytes(ends[0], i, 64));
        ck_assert_uint_eq(wire_poll(ends[1], 10), 1);
        ck_assert_uint_eq(wire_poll(ends[0], 10), 1);
        ck_assert_uint_eq(at[0].frame[0], i + 1u);
    }
    wire_close(ends[0]);
    wire_close(ends[1]);
}
END_TEST

/* Frames onto an unplugged cable are lost; frames that were on their way still arrive. */
START_TEST(closing_one_end_takes_the_link_down)
{
    struct wire_stats stats;

    plug_in(1);
    ck_assert(wire_link_up(ends[0]) && wire_link_up(ends[1]));
    ck_assert(send_bytes(ends[1], 1, 64));
    ck_assert(send_bytes(ends[0], 7, 64));
    ck_assert(!send_bytes(ends[0], 8, 64));
    wire_close(ends[1]);
    ck_assert(!wire_link_up(ends[0]));
    ck_assert_uint_eq(at[0].link_changes, 1);
    ck_assert_uint_eq(at[0].tx_readies, 1);
    for (int i = 0; i < 5; i++) {
        ck_assert(send_bytes(ends[0], 7, WIRE_FRAME_MAX));
    }
    wire_get_stats(ends[0], &stats);
    ck_assert_uint_eq(stats.tx_no_dest, 5);
    ck_assert_uint_eq(wire_poll(ends[0], 10), 1);
    ck_assert_uint_eq(at[0].frame[0], 1);
    wire_close(ends[0]);
}
END_TEST

static uint64_t a_clock(void *opaque)
{
    uint64_t *now = opaque;

    *now += 1000000001;
    return *now;
}

static char *capture_path(void)
{
    return g_strdup_printf("%s/hcasim-capture-%d.pcapng", g_get_tmp_dir(), (int)getpid());
}

/* Reads a file the way a reader would: block by block. */
struct reader {
    uint8_t *bytes;
    size_t len, at;
};

static uint32_t word(const uint8_t *p)
{
    uint32_t v;

    memcpy(&v, p, 4);
    return v;
}

/* Returns the next block of the type, whose length at its end must agree with the length at its
 * start. */
static const uint8_t *next_block(struct reader *r, uint32_t type)
{
    const uint8_t *block = r->bytes + r->at;
    uint32_t len;

    ck_assert_uint_ge(r->len - r->at, 12);
    len = word(block + 4);
    ck_assert_uint_eq(len % 4, 0);
    ck_assert_uint_le(len, r->len - r->at);
    ck_assert_uint_eq(word(block), type);
    ck_assert_uint_eq(word(block + len - 4), len);
    r->at += len;
    return block;
}

static struct reader open_capture(const char *path)
{
    struct reader r = {0};
    const uint8_t *b;
    gchar *bytes;
    gsize len;

    ck_assert(g_file_get_contents(path, &bytes, &len, NULL));
    r.bytes = (uint8_t *)bytes;
    r.len = len;
    b = next_block(&r, 0x0a0d0d0a);
    ck_assert_uint_eq(word(b + 8), 0x1a2b3c4d);
    ck_assert_uint_eq(word(b + 12), 1); /* version 1.0 */
    b = next_block(&r, 1);
    ck_assert_uint_eq(word(b + 8) & 0xffff, 1);          /* LINKTYPE_ETHERNET */
    ck_assert_mem_eq(b + 16, "\x09\x00\x01\x00\x09", 5); /* if_tsresol: nanoseconds */
    return r;
}

/* The reader, the cable and the file go. */
static void end_capture(struct reader *r, struct wire_port *port, char *path)
{
    g_free(r->bytes);
    wire_close(port);
    wire_close(ends[1]);
    g_remove(path);
    g_free(path);
}

START_TEST(capture_holds_both_directions)
{
    char *path = capture_path();
    struct wire_port *port;
    struct reader r;
    const uint8_t *b;
    uint64_t now = 5000000000ull;

    plug_in(4);
    at[1].echo = true;
    port = wire_capture_new(
        ends[0], path, &(struct wire_capture_options){.clock_ns = a_clock, .clock_opaque = &now},
        NULL);
    ck_assert_ptr_nonnull(port);
    listen_at(&at[0], port);
    for (uint8_t i = 0; i < 4; i++) {
        ck_assert(send_bytes(port, (uint8_t)(16 * i), 61u + i)); /* every padding */
        wire_poll(ends[1], 1);
        ck_assert_uint_eq(wire_poll(port, 1), 1);
        ck_assert_uint_eq(at[0].frame[0], 16 * i + 1);
    }
    ck_assert_ptr_nonnull(wire_tx_reserve(port, 64));
    wire_tx_commit(port, 0); /* what is not sent is not captured */

    /* Readable before it is closed. */
    r = open_capture(path);
    for (uint8_t i = 0; i < 8; i++) {
        uint32_t len = 61u + i / 2, pad = -len & 3;

        b = next_block(&r, 6);
        ck_assert_uint_eq(word(b + 8), 0);
        ck_assert_uint_eq((uint64_t)word(b + 12) << 32 | word(b + 16),
                          5000000000ull + (i + 1u) * 1000000001ull);
        ck_assert_uint_eq(word(b + 20), len);
        ck_assert_uint_eq(word(b + 24), len);
        ck_assert_uint_eq(b[28], 16 * (i / 2) + i % 2);
        ck_assert_uint_eq(b[28 + len - 1], b[28]);
        ck_assert_mem_eq(b + 28 + len + pad, "\x02\x00\x04\x00", 4); /* epb_flags */
        ck_assert_uint_eq(word(b + 28 + len + pad + 4), i % 2 ? 1 : 2);
    }
    ck_assert_uint_eq(r.at, r.len);
    end_capture(&r, port, path);
}
END_TEST

/* Readers of the file expect an ICRC, although sender and receiver do not need it; the frame itself
 * is passed on unchanged. */
START_TEST(a_captured_frame_has_its_icrc)
{
    struct roce_packet pkt = {.opcode = BTH_RC | BTH_ACK, .addr.is_ipv4 = true}, seen;
    char *path = capture_path();
    struct wire_port *port;
    struct reader r;
    uint8_t *frame;
    const uint8_t *b;
    size_t len = roce_frame_len(&pkt, 0);

    plug_in(4);
    port = wire_capture_new(ends[0], path, NULL, NULL);
    ck_assert_uint_eq(port->offers, 0); /* so that the client computes it */
    listen_at(&at[0], port);
    frame = wire_tx_reserve(ends[1], len);
    roce_build(frame, &pkt, 0);
    wire_tx_commit_as(ends[1], roce_finish_no_icrc(frame, &pkt, 0), WIRE_NO_ICRC);
    ck_assert_uint_eq(wire_poll(port, 1), 1);
    ck_assert_uint_eq(at[0].flags, WIRE_NO_ICRC);
    ck_assert_int_eq(roce_parse(at[0].frame, len, &seen), ROCE_BAD_ICRC);

    r = open_capture(path);
    b = next_block(&r, 6);
    ck_assert_uint_eq(word(b + 20), len);
    ck_assert_int_eq(roce_parse(b + 28, len, &seen), ROCE_OK);
    end_capture(&r, port, path);
}
END_TEST

START_TEST(capture_passes_everything_else_through)
{
    char *path = capture_path();
    struct wire_port *port;
    struct wire_stats stats;

    plug_in(1);
    port = wire_capture_new(ends[0], path, NULL, NULL);
    port = wire_capture_new(port, path, NULL, NULL); /* filters stack */
    listen_at(&at[0], port);
    ck_assert(wire_link_up(port));
    ck_assert(send_bytes(port, 1, 64));
    ck_assert(!send_bytes(port, 1, 64));
    ck_assert(send_bytes(ends[1], 2, 64));
    ck_assert_uint_eq(at[0].rx_readies, 1);
    wire_poll(ends[1], 1);
    ck_assert_uint_eq(at[0].tx_readies, 1);
    ck_assert_int_eq(wire_fd(port), -1);
    wire_fd_event(port);
    wire_get_stats(port, &stats);
    ck_assert_uint_eq(stats.tx_frames, 1);
    wire_close(ends[1]);
    ck_assert_uint_eq(at[0].link_changes, 1);
    ck_assert(!wire_link_up(port));
    wire_close(port);
    g_remove(path);
    g_free(path);
}
END_TEST

START_TEST(a_capture_that_cannot_be_made_is_refused)
{
    GError *err = NULL;

    plug_in(1);
    ck_assert_ptr_null(wire_capture_new(ends[0], "/nonexistent/x.pcapng", NULL, &err));
    ck_assert(g_error_matches(err, WIRE_ERROR, WIRE_ERROR_IO));
    ck_assert_ptr_nonnull(strstr(err->message, "/nonexistent/x.pcapng"));
    g_clear_error(&err);
    /* The port is as before. */
    ck_assert(send_bytes(ends[1], 3, 64));
    wire_poll(ends[0], 1);
    ck_assert_uint_eq(at[0].frames, 1);
    wire_close(ends[0]);
    wire_close(ends[1]);
}
END_TEST

/* A limit on the size of files simulates a full disk. (It applies to Check's own file, too, so
 * nothing is asserted under it.) */
START_TEST(a_full_disk_ends_the_capture_and_not_the_traffic)
{
    struct rlimit before, limit;
    char *path = capture_path();
    unsigned arrived = 0;
    struct wire_port *port;
    struct reader r;

    signal(SIGXFSZ, SIG_IGN);
    g_log_set_handler(NULL, G_LOG_LEVEL_WARNING, count_warning, NULL);
    plug_in(4);
    port = wire_capture_new(ends[0], path, NULL, NULL);
    ck_assert_ptr_nonnull(port);
    listen_at(&at[0], port);
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &before), 0);
    limit = before;
    limit.rlim_cur = 1000;
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    for (uint8_t i = 0; i < 5; i++) {
        arrived += send_bytes(port, i, 300) && wire_poll(ends[1], 1) && at[1].frame[0] == i;
    }
    setrlimit(RLIMIT_FSIZE, &before);
    ck_assert_uint_eq(arrived, 5);
    ck_assert_int_eq(warnings, 1);
    /* Everything that fitted is there and whole. */
    r = open_capture(path);
    ck_assert_uint_eq(next_block(&r, 6)[28], 0);
    ck_assert_uint_eq(next_block(&r, 6)[28], 1);
    ck_assert_uint_eq(r.at, r.len);
    end_capture(&r, port, path);
}
END_TEST

/* "so a killed process leaves a readable file" */
START_TEST(a_killed_process_leaves_a_readable_capture)
{
    char *path = capture_path();
    struct reader r;
    int ready[2];
    pid_t pid;
    char c;

    ck_assert_int_eq(pipe(ready), 0);
    pid = fork();
    if (pid == 0) {
        struct wire_port *port;

        plug_in(64);
        port = wire_capture_new(ends[0], path, NULL, NULL);
        for (uint8_t i = 0; i < 10; i++) {
            send_bytes(port, i, 1000);
        }
        (void)!write(ready[1], "", 1);
        pause();
        _exit(0);
    }
    ck_assert_int_eq(read(ready[0], &c, 1), 1);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    r = open_capture(path);
    for (uint8_t i = 0; i < 10; i++) {
        ck_assert_uint_eq(next_block(&r, 6)[28], i);
    }
    ck_assert_uint_eq(r.at, r.len);
    g_free(r.bytes);
    g_remove(path);
    g_free(path);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *s = suite_create("wire port");
    TCase *tc = tcase_create("port");

    tcase_add_test(tc, frames_arrive_in_order_when_polled);
    tcase_add_test(tc, a_full_pair_makes_the_sender_wait);
    tcase_add_test(tc, a_reservation_can_be_given_back);
    tcase_add_test(tc, a_callback_may_send);
    tcase_add_test(tc, closing_one_end_takes_the_link_down);
    tcase_add_test(tc, capture_holds_both_directions);
    tcase_add_test(tc, a_captured_frame_has_its_icrc);
    tcase_add_test(tc, capture_passes_everything_else_through);
    tcase_add_test(tc, a_capture_that_cannot_be_made_is_refused);
    tcase_add_test(tc, a_full_disk_ends_the_capture_and_not_the_traffic);
    tcase_add_test(tc, a_killed_process_leaves_a_readable_capture);
    suite_add_tcase(s, tc);
    return s;
}
