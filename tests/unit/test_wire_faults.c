/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests the filter that causes faults (wire/fault/port.h): one end of a cable has the filter, the
 * other end receives. Frames that are no RoCE packets carry their number.
 */
#include "wire/capture.h"
#include "wire/fault/port.h"
#include "wire/encap/neigh.h"
#include "wire/encap/roce.h"
#include "wire/pair.h"
#include "tests/unit/suite.h"

#include <check.h>
#include <glib/gstdio.h>
#include <poll.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MS     1000000ull /* ns */
#define FRAMES 1000u
#define LEN    100u

static struct wire_port *sender, *receiver;
static unsigned tx_readies;

static struct {
    unsigned frames, bad_icrcs;
    unsigned times[FRAMES];     /* that each number arrived */
    unsigned order[FRAMES * 2]; /* numbers as they arrived */
} got;

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 * MS + (uint64_t)now.tv_nsec;
}

static void on_rx(void *client, const uint8_t *frame, size_t len, unsigned flags)
{
    struct roce_packet packet;
    uint32_t number;

    ck_assert_uint_lt(got.frames, G_N_ELEMENTS(got.order));
    got.bad_icrcs += roce_parse(frame, len, &packet) == ROCE_BAD_ICRC;
    memcpy(&number, frame + ETH_BYTES, sizeof(number));
    if (len == LEN && number < FRAMES) {
        got.times[number]++;
        got.order[got.frames] = number;
    }
    got.frames++;
}

static void on_tx_ready(void *client)
{
    tx_readies++;
}

/* The rules of the sender, and which random numbers they draw. */
struct rules {
    const char *text;
    uint64_t seed, stream;
};

static struct fault_set *set;

static const struct wire_client receiving = {.rx = on_rx}, sending = {.tx_ready = on_tx_ready};

static struct wire_port *wrap(struct wire_port *inner, const struct rules *rules,
                              struct wire_port *capture)
{
    const struct fault_options options = {.seed = rules->seed, .stream = rules->stream};
    const struct wire_fault_options port = {.capture = capture};

    set = fault_set_new(&options);
    ck_assert(fault_set_add(set, rules->text, NULL));
    return wire_fault_new(inner, set, &port, NULL);
}

static void plug_in(unsigned slots, const struct rules *rules)
{
    struct wire_port *ends[2];

    memset(&got, 0, sizeof(got));
    tx_readies = 0;
    wire_pair_new(slots, ends);
    receiver = ends[1];
    wire_set_client(receiver, &receiving, NULL);
    sender = wrap(ends[0], rules, NULL);
    ck_assert_ptr_nonnull(sender);
    wire_set_client(sender, &sending, NULL);
}

static void unplug(void)
{
    wire_close(sender);
    wire_close(receiver);
    fault_set_free(set);
}

static bool send_number(uint32_t number, uint8_t host)
{
    uint8_t dmac[6] = {2, 0, 0, 0, 0, host};
    uint8_t *frame = wire_tx_reserve_to(sender, dmac, LEN);

    if (!frame) {
        return false;
    }
    memset(frame, 0, LEN);
    memcpy(frame, dmac, sizeof(dmac));
    memcpy(frame + ETH_BYTES, &number, sizeof(number));
    wire_tx_commit(sender, LEN);
    return true;
}

/* Sends FRAMES numbers, and receives each before the next one is sent. */
static void send_all(void)
{
    for (uint32_t i = 0; i < FRAMES; i++) {
        ck_assert(send_number(i, 1));
        wire_poll(receiver, 16);
    }
}

static void send_ack(uint32_t psn)
{
    struct roce_packet pkt = {.opcode = BTH_RC | BTH_ACK, .psn = psn, .addr.is_ipv4 = true};
    uint8_t *frame = wire_tx_reserve(sender, WIRE_FRAME_MAX);

    ck_assert_ptr_nonnull(frame);
    roce_build(frame, &pkt, 0);
    wire_tx_commit(sender, roce_finish(frame, &pkt, 0));
}

static struct wire_fault_stats stats(void)
{
    struct wire_fault_stats s;

    wire_fault_get_stats(sender, &s);
    return s;
}

/* Sleeps until the sender's descriptor is readable, as the owner of a port does. False: it is not
 * within a minute. */
static bool sleep_and_work(void)
{
    struct pollfd fd = {.fd = wire_fd(sender), .events = POLLIN};

    if (poll(&fd, 1, 60000) != 1) {
        return false;
    }
    wire_fd_event(sender);
    return true;
}

START_TEST(lost_frames_are_counted_and_all_others_arrive)
{
    plug_in(16, &(struct rules){.text = "loss 30%", .seed = 1});
    send_all();
    ck_assert_uint_eq(stats().frames, FRAMES);
    ck_assert_uint_eq(stats().lost + got.frames, FRAMES);
    ck_assert_uint_gt(stats().lost, FRAMES / 5); /* six deviations from 300 */
    ck_assert_uint_lt(stats().lost, FRAMES * 2 / 5);
    for (unsigned i = 1; i < got.frames; i++) {
        ck_assert_uint_gt(got.order[i], got.order[i - 1]);
    }
    unplug();
}
END_TEST

/* Which frames are lost depends on the seed and the stream, and on no other fault. */
START_TEST(a_seed_repeats_its_decisions)
{
    static unsigned first[FRAMES];
    static const struct rules same[] = {
        {"loss 10%", .seed = 5, .stream = 1},
        {"loss 10%; duplicate 5%; delay 0ns jitter 1ns", .seed = 5, .stream = 1}};
    static const struct rules different[] = {{"loss 10%", .seed = 6, .stream = 1},
                                             {"loss 10%", .seed = 5, .stream = 2}};

    plug_in(16, &same[0]);
    send_all();
    memcpy(first, got.times, sizeof(first));
    unplug();
    for (unsigned i = 0; i < G_N_ELEMENTS(same); i++) {
        plug_in(4 * FRAMES, &same[i]);
        for (uint32_t n = 0; n < FRAMES; n++) {
            ck_assert(send_number(n, 1));
        }
        wire_fault_settle(sender);
        wire_poll(receiver, 4 * FRAMES);
        for (unsigned n = 0; n < FRAMES; n++) {
            ck_assert_uint_eq(got.times[n] > 0, first[n] > 0);
        }
        unplug();
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(different); i++) {
        plug_in(16, &different[i]);
        send_all();
        ck_assert_int_ne(memcmp(got.times, first, sizeof(first)), 0);
        unplug();
    }
}
END_TEST

/* Otherwise nobody would know where the host is, and nothing that it sends would be lost. */
START_TEST(address_resolution_has_no_faults)
{
    static const uint8_t mac[MAC_BYTES] = {2, 0, 0, 0, 0, 9};
    uint8_t gid[GID_BYTES], *frame;

    gid_of_ipv4(gid, (const uint8_t[]){10, 0, 0, 9});
    plug_in(16, &(struct rules){.text = "loss 100%; delay 10s"});
    frame = wire_tx_reserve(sender, NEIGH_FRAME_MAX);
    wire_tx_commit(sender, neigh_build_question(frame, mac, gid, gid, NULL));
    ck_assert_uint_eq(wire_poll(receiver, 16), 1);
    send_ack(1);
    ck_assert_uint_eq(wire_poll(receiver, 16), 0);
    ck_assert_uint_eq(stats().frames, 1);
    ck_assert_uint_eq(stats().lost, 1);
    unplug();
}
END_TEST

START_TEST(a_duplicate_follows_its_original)
{
    plug_in(16, &(struct rules){.text = "duplicate 100%"});
    send_all();
    ck_assert_uint_eq(got.frames, 2 * FRAMES);
    ck_assert_uint_eq(stats().duplicated, FRAMES);
    for (unsigned i = 0; i < FRAMES; i++) {
        ck_assert_uint_eq(got.order[2 * i], i);
        ck_assert_uint_eq(got.order[2 * i + 1], i);
    }
    unplug();
}
END_TEST

/* The ICRC detects each of them. An Ethernet frame without ICRC is lost, as one with a wrong FCS.
 */
START_TEST(a_corrupted_packet_has_a_wrong_icrc)
{
    plug_in(16, &(struct rules){.text = "corrupt 100%"});
    for (unsigned i = 0; i < FRAMES; i++) {
        send_ack(i);
        wire_poll(receiver, 16);
    }
    ck_assert_uint_eq(got.frames, FRAMES);
    ck_assert_uint_eq(got.bad_icrcs, FRAMES);
    ck_assert_uint_eq(stats().corrupted, FRAMES);
    ck_assert_uint_eq(stats().lost, 0);
    ck_assert(send_number(1, 1));
    ck_assert_uint_eq(wire_poll(receiver, 16), 0);
    ck_assert_uint_eq(stats().corrupted, FRAMES);
    ck_assert_uint_eq(stats().lost, 1);
    unplug();
}
END_TEST

/* Nobody but the descriptor tells the owner, who sleeps, that a frame is due. */
START_TEST(a_delayed_frame_wakes_its_owner)
{
    uint64_t begin;

    plug_in(16, &(struct rules){.text = "delay 20ms"});
    for (unsigned i = 0; i < 3; i++) {
        begin = now_ns();
        ck_assert(send_number(2 * i, 1));
        ck_assert(send_number(2 * i + 1, 1));
        ck_assert_uint_eq(wire_poll(receiver, 16), 0);
        while (got.frames < 2 * i + 2) {
            ck_assert(sleep_and_work());
            wire_poll(receiver, 16);
        }
        ck_assert_uint_ge(now_ns() - begin, 20 * MS);
        ck_assert_uint_eq(got.order[2 * i], 2 * i);
        ck_assert_uint_eq(got.order[2 * i + 1], 2 * i + 1);
    }
    ck_assert_uint_eq(stats().delayed, 6);
    unplug();
}
END_TEST

/* A program that polls all the time sleeps nowhere. */
START_TEST(a_delayed_frame_leaves_in_a_poll)
{
    uint64_t begin = now_ns();

    plug_in(16, &(struct rules){.text = "delay 5ms jitter 5ms"});
    for (uint32_t i = 0; i < 10; i++) {
        ck_assert(send_number(i, 1));
    }
    while (got.frames < 10) {
        wire_poll(sender, 16);
        wire_poll(receiver, 16);
    }
    ck_assert_uint_ge(now_ns() - begin, 5 * MS);
    for (unsigned i = 0; i < 10; i++) {
        ck_assert_uint_eq(got.order[i], i); /* jitter keeps the order */
    }
    unplug();
}
END_TEST

START_TEST(later_frames_pass_a_reordered_one)
{
    unsigned passed = 0;

    plug_in(FRAMES, &(struct rules){.text = "reorder 10%"});
    for (uint32_t i = 0; i < FRAMES; i++) {
        ck_assert(send_number(i, 1));
    }
    do {
        wire_poll(receiver, FRAMES);
    } while (got.frames < FRAMES && sleep_and_work());
    for (unsigned i = 0; i < FRAMES; i++) {
        ck_assert_uint_eq(got.times[i], 1);
        passed += i && got.order[i] < got.order[i - 1];
    }
    ck_assert_uint_gt(stats().reordered, 0);
    ck_assert_uint_gt(passed, 0);
    ck_assert_uint_le(passed, stats().reordered);
    unplug();
}
END_TEST

START_TEST(delayed_frames_wait_for_credit)
{
    plug_in(2, &(struct rules){.text = "delay 1ms"});
    for (uint32_t i = 0; i < 20; i++) {
        ck_assert(send_number(i, 1));
    }
    while (got.frames < 20) {
        /* The pair tells the filter that there is room. */
        if (!wire_poll(receiver, 2)) {
            ck_assert(sleep_and_work());
        }
    }
    for (unsigned i = 0; i < 20; i++) {
        ck_assert_uint_eq(got.order[i], i);
    }
    unplug();
}
END_TEST

/* A wire on which one host gives no credit, or refuses some reservations. */
static struct {
    struct wire_port port;
    uint8_t frame[WIRE_FRAME_MAX];
    uint8_t stopped;
    unsigned refusals; /* that are to come */
    unsigned sent_to[3];
    uint32_t numbers[20], num_numbers; /* of the frames that were sent */
} wire;

static uint8_t *wire_of_hosts_reserve_to(struct wire_port *port, const uint8_t dmac[6], size_t len)
{
    if (wire.refusals) {
        wire.refusals--;
        return NULL;
    }
    return dmac[5] == wire.stopped ? NULL : wire.frame;
}

static uint8_t *wire_of_hosts_reserve(struct wire_port *port, size_t len)
{
    return wire.frame;
}

static void wire_of_hosts_commit(struct wire_port *port, size_t len, unsigned flags)
{
    wire.sent_to[wire.frame[5]]++;
    ck_assert_uint_lt(wire.num_numbers, G_N_ELEMENTS(wire.numbers));
    memcpy(&wire.numbers[wire.num_numbers++], wire.frame + ETH_BYTES, sizeof(wire.numbers[0]));
}

static unsigned wire_of_hosts_poll(struct wire_port *port, unsigned max)
{
    return 0;
}

static void wire_of_hosts_close(struct wire_port *port)
{
}

static const struct wire_port_ops wire_of_hosts = {.tx_reserve = wire_of_hosts_reserve,
                                                   .tx_reserve_to = wire_of_hosts_reserve_to,
                                                   .tx_commit = wire_of_hosts_commit,
                                                   .poll = wire_of_hosts_poll,
                                                   .close = wire_of_hosts_close};

static bool wire_of_hosts_knows(struct wire_port *port, const uint8_t mac[6])
{
    return mac[5] == 1;
}

/* A filter knows what its wire knows, and does not claim more. */
START_TEST(a_filter_tells_hosts_if_its_wire_does)
{
    static const uint8_t mac[6] = {2, 0, 0, 0, 0, 1};
    struct wire_port_ops ops = wire_of_hosts;

    ops.knows = _i == 1 ? wire_of_hosts_knows : NULL;
    wire.port.ops = &ops;
    sender = wrap(&wire.port, &(struct rules){.text = "delay 1ns"}, NULL);
    ck_assert_int_eq(wire_tells_hosts(&wire.port), _i == 1);
    ck_assert_int_eq(wire_tells_hosts(sender), _i == 1);
    ck_assert_int_eq(wire_knows(sender, mac), _i == 1);
    wire_close(sender);
    fault_set_free(set);
}
END_TEST

START_TEST(a_receiver_without_credit_holds_up_no_other)
{
    wire.port.ops = &wire_of_hosts;
    wire.stopped = 1;
    sender = wrap(&wire.port, &(struct rules){.text = "delay 1ns"}, NULL);
    for (uint32_t i = 0; i < 10; i++) {
        ck_assert(send_number(i, 1));
        ck_assert(send_number(i, 2));
    }
    while (wire.sent_to[2] < 10) {
        wire_poll(sender, 1);
    }
    ck_assert_uint_eq(wire.sent_to[1], 0);
    wire.stopped = 0;
    wire.port.client->tx_ready(wire.port.opaque);
    ck_assert_uint_eq(wire.sent_to[1], 10);
    wire_close(sender);
    fault_set_free(set);
}
END_TEST

/* Credit may come between two frames to one receiver. */
START_TEST(frames_without_credit_keep_their_order)
{
    wire.port.ops = &wire_of_hosts;
    wire.stopped = 1;
    sender = wrap(&wire.port, &(struct rules){.text = "delay 1ns"}, NULL);
    for (uint32_t i = 0; i < 3; i++) {
        ck_assert(send_number(i, 1));
    }
    wire.stopped = 0;
    wire.refusals = 1;
    for (unsigned i = 0; i < 2; i++) {
        wire.port.client->tx_ready(wire.port.opaque);
    }
    ck_assert_uint_eq(wire.num_numbers, 3);
    for (uint32_t i = 0; i < 3; i++) {
        ck_assert_uint_eq(wire.numbers[i], i);
    }
    wire_close(sender);
    fault_set_free(set);
}
END_TEST

/* Credit may come while the client builds a frame, and the client may give that frame up. Then only
 * the timer wakes the owner, who sleeps, for the frames that waited for the credit. */
START_TEST(credit_that_comes_within_a_reservation_is_used)
{
    static const uint8_t dmac[6] = {2, 0, 0, 0, 0, 2};

    wire.port.ops = &wire_of_hosts;
    wire.stopped = 1;
    sender = wrap(&wire.port, &(struct rules){.text = "delay 1ns"}, NULL);
    ck_assert(send_number(0, 1));
    ck_assert(sleep_and_work()); /* the frame is due, and has no credit */
    ck_assert_ptr_nonnull(wire_tx_reserve_to(sender, dmac, LEN));
    wire.stopped = 0;
    wire.port.client->tx_ready(wire.port.opaque);
    ck_assert_uint_eq(wire.sent_to[1], 0);
    wire_tx_commit(sender, 0);
    ck_assert(sleep_and_work());
    ck_assert_uint_eq(wire.sent_to[1], 1);
    wire_close(sender);
    fault_set_free(set);
}
END_TEST

/* Backpressure, not loss: the client is told when there is room again. */
START_TEST(a_full_store_stops_its_client)
{
    unsigned sent = 0;
    uint8_t *frame;

    plug_in(20000, &(struct rules){.text = "delay 500ms"});
    while ((frame = wire_tx_reserve(sender, WIRE_FRAME_MAX))) {
        memset(frame, 0, WIRE_FRAME_MAX);
        wire_tx_commit(sender, WIRE_FRAME_MAX);
        ck_assert_uint_lt(++sent, 20000);
    }
    ck_assert_uint_ge(sent, (8u << 20) / WIRE_FRAME_MAX - 10);
    ck_assert_uint_eq(tx_readies, 0);
    while (!tx_readies) {
        ck_assert(sleep_and_work());
    }
    ck_assert(send_number(FRAMES, 1));
    ck_assert_uint_eq(stats().frames, sent + 1);
    ck_assert_uint_eq(stats().lost + stats().unsent, 0);
    unplug();
}
END_TEST

/* A frame on a cable arrives, whatever becomes of its sender. */
START_TEST(delayed_frames_leave_when_the_sender_ends)
{
    plug_in(3, &(struct rules){.text = "delay 10s"});
    for (uint32_t i = 0; i < 5; i++) {
        ck_assert(send_number(i, 1));
    }
    ck_assert_uint_eq(wire_poll(receiver, 16), 0);
    wire_fault_settle(sender);
    ck_assert_uint_eq(stats().unsent, 2); /* the cable holds three */
    wire_close(sender);
    ck_assert_uint_eq(wire_poll(receiver, 16), 3);
    wire_close(receiver);
    fault_set_free(set);
}
END_TEST

/* Whether the capture has a packet with a comment that begins so. */
static unsigned comments(const char *path, const char *begin)
{
    g_autofree char *bytes = NULL;
    unsigned found = 0;
    gsize len;

    ck_assert(g_file_get_contents(path, &bytes, &len, NULL));
    for (gsize at = 0; at < len; at += *(uint32_t *)(bytes + at + 4)) {
        if (*(uint32_t *)(bytes + at) == 6) { /* an enhanced packet block */
            const char *option = bytes + at + 28 + ((*(uint32_t *)(bytes + at + 20) + 3) & ~3u);

            found += *(uint16_t *)option == 1 && !strncmp(option + 4, begin, strlen(begin));
        }
    }
    return found;
}

START_TEST(a_capture_tells_the_fate_of_frames)
{
    static const struct {
        struct rules rules;
        const char *comment;
        unsigned times;
    } rows[] = {
        {{.text = "loss 100%"}, "lost: never sent", 1},
        {{.text = "duplicate 100%"}, "duplicate", 1},
        {{.text = "corrupt 100%"}, "corrupted: bit ", 1},
        {{.text = "delay 1500ns"}, "delayed by 1.5 us", 1},
        {{.text = "reorder 100%"}, "reordered: held back by ", 1},
        {{.text = "duplicate 100%; delay 1500ns"}, "duplicate, delayed by 1.5 us", 1},
        {{.text = "loss 0.0001%"}, "", 0},
    };
    g_autofree char *folder = g_dir_make_tmp("hcasim-XXXXXX", NULL);
    g_autofree char *path = g_build_filename(folder, "fate.pcapng", NULL);

    for (unsigned i = 0; i < G_N_ELEMENTS(rows); i++) {
        struct wire_port *ends[2], *capture;

        memset(&got, 0, sizeof(got));
        wire_pair_new(4, ends);
        receiver = ends[1];
        wire_set_client(receiver, &receiving, NULL);
        capture = wire_capture_new(ends[0], path, NULL, NULL);
        sender = wrap(capture, &rows[i].rules, capture);
        send_ack(1);
        unplug();
        ck_assert_msg(comments(path, rows[i].comment) == rows[i].times, "%s", rows[i].comment);
    }
    g_remove(path);
    g_rmdir(folder);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("wire faults");
    TCase *tc = tcase_create("faults");

    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, lost_frames_are_counted_and_all_others_arrive);
    tcase_add_test(tc, a_seed_repeats_its_decisions);
    tcase_add_test(tc, address_resolution_has_no_faults);
    tcase_add_test(tc, a_duplicate_follows_its_original);
    tcase_add_test(tc, a_corrupted_packet_has_a_wrong_icrc);
    tcase_add_test(tc, a_delayed_frame_wakes_its_owner);
    tcase_add_test(tc, a_delayed_frame_leaves_in_a_poll);
    tcase_add_test(tc, later_frames_pass_a_reordered_one);
    tcase_add_test(tc, delayed_frames_wait_for_credit);
    tcase_add_loop_test(tc, a_filter_tells_hosts_if_its_wire_does, 0, 2);
    tcase_add_test(tc, a_receiver_without_credit_holds_up_no_other);
    tcase_add_test(tc, frames_without_credit_keep_their_order);
    tcase_add_test(tc, credit_that_comes_within_a_reservation_is_used);
    tcase_add_test(tc, a_full_store_stops_its_client);
    tcase_add_test(tc, delayed_frames_leave_when_the_sender_ends);
    tcase_add_test(tc, a_capture_tells_the_fate_of_frames);
    suite_add_tcase(suite, tc);
    return suite;
}
