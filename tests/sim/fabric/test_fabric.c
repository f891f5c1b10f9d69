/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests the fabric itself: how long a frame takes, what a full queue drops and marks, where the
 * switch sends a frame, and that a seed determines all of it. There is no HCA here; the test uses
 * the ports.
 */
#include <check.h>
#include <string.h>
#include "tests/sim/fabric/fabric.h"
#include "tests/unit/suite.h"
#include "wire/encap/eth.h"
#include "wire/encap/roce.h"

#define PORTS   3
#define LATENCY 1000
#define GIGABIT 1000000000ull

static struct inproc_world *world;
static struct fabric *fabric;
static struct fabric_config config;
static struct wire_port *port[PORTS];
static GArray *got[PORTS]; /* struct arrival */
static uint64_t start;

struct arrival {
    uint64_t after_ns;
    size_t len;
    uint8_t bytes[128];
};

static void test_rx(void *opaque, const uint8_t *frame, size_t len, unsigned flags)
{
    struct arrival a = {.after_ns = world->now_ns - start, .len = len};

    memcpy(a.bytes, frame, MIN(len, sizeof(a.bytes)));
    g_array_append_val(*(GArray **)opaque, a);
}

static void test_rx_ready(void *opaque)
{
    for (int i = 0; i < PORTS; i++) {
        if (&got[i] == opaque) {
            wire_poll(port[i], 1000);
        }
    }
}

static const struct wire_client client = {.rx = test_rx, .rx_ready = test_rx_ready};

/* Begins with the test's config. */
static void begin(void)
{
    world = inproc_world_new();
    fabric = fabric_new(world, &config);
    for (int i = 0; i < PORTS; i++) {
        port[i] = fabric_plug(fabric);
        got[i] = g_array_new(FALSE, FALSE, sizeof(struct arrival));
        wire_set_client(port[i], &client, &got[i]);
    }
    start = world->now_ns;
}

static void end(void)
{
    for (int i = 0; i < PORTS; i++) {
        wire_close(port[i]);
        g_array_free(got[i], TRUE);
    }
    fabric_free(fabric);
    inproc_world_free(world);
}

static void setup(void)
{
    config = (struct fabric_config){.seed = 1, .downlink.latency_ns = LATENCY};
}

#define FLOOD 0xff

/* Sends an IPv4 packet of port from; to: a port, or FLOOD. Its number is behind the headers. */
static void send(unsigned from, unsigned to, unsigned number, size_t len, unsigned ecn)
{
    uint8_t *frame = wire_tx_reserve(port[from], len);
    struct eth_info info;

    ck_assert_ptr_nonnull(frame);
    memset(frame, 0, len);
    memset(frame, to == FLOOD ? 0xff : 0, 6);
    frame[5] = (uint8_t)to;
    frame[11] = (uint8_t)from;
    frame[12] = ETH_TYPE_IPV4 >> 8;
    frame[14] = 0x45;
    frame[15] = (uint8_t)ecn;
    frame[16] = (uint8_t)((len - 14) >> 8);
    frame[17] = (uint8_t)(len - 14);
    frame[22] = 64;
    frame[23] = IP_PROTO_UDP;
    frame[36] = ROCE_UDP_DPORT >> 8;
    frame[37] = ROCE_UDP_DPORT & 0xff;
    frame[40] = (uint8_t)number;
    eth_parse(frame, len, &info);
    eth_csum_fill_ipv4(frame, &info);
    wire_tx_commit(port[from], len);
}

static struct arrival *arrival(unsigned at, unsigned nth)
{
    ck_assert_uint_lt(nth, got[at]->len);
    return &g_array_index(got[at], struct arrival, nth);
}

static void all_say_who_they_are(void)
{
    for (unsigned i = 0; i < PORTS; i++) {
        send(i, FLOOD, 0, 64, 0);
    }
    inproc_advance(world, GIGABIT);
    for (unsigned i = 0; i < PORTS; i++) {
        g_array_set_size(got[i], 0);
    }
    start = world->now_ns;
}

START_TEST(a_frame_for_a_known_address_goes_there_only)
{
    begin();
    send(0, 1, 1, 64, 0); /* its address is not known yet */
    inproc_advance(world, GIGABIT);
    ck_assert_uint_eq(got[1]->len, 1);
    ck_assert_uint_eq(got[2]->len, 1);
    send(1, 0, 2, 64, 0);
    inproc_advance(world, GIGABIT);
    ck_assert_uint_eq(got[0]->len, 1);
    ck_assert_uint_eq(got[2]->len, 1);
    end();
}
END_TEST

START_TEST(a_multicast_frame_goes_to_all_others)
{
    begin();
    all_say_who_they_are();
    send(2, FLOOD, 1, 64, 0);
    inproc_advance(world, GIGABIT);
    ck_assert_uint_eq(got[0]->len, 1);
    ck_assert_uint_eq(got[1]->len, 1);
    ck_assert_uint_eq(got[2]->len, 0);
    end();
}
END_TEST

/* 1,000 bytes and the line's 24 take 8.192 us at 1 Gb/s, once on each of two cables. */
START_TEST(a_frame_takes_its_length_by_the_rate_and_the_latency)
{
    config.uplink.rate = config.downlink.rate = GIGABIT;
    begin();
    all_say_who_they_are();
    send(0, 1, 1, 1000, 0);
    send(0, 1, 2, 1000, 0);
    inproc_advance(world, GIGABIT);
    ck_assert_uint_eq(arrival(1, 0)->after_ns, 2 * 8192 + LATENCY);
    ck_assert_uint_eq(arrival(1, 1)->after_ns, 3 * 8192 + LATENCY);
    end();
}
END_TEST

START_TEST(two_senders_to_one_fill_its_queue_which_drops_what_does_not_fit)
{
    config.uplink.rate = config.downlink.rate = GIGABIT;
    config.downlink.queue = 5000;
    begin();
    all_say_who_they_are();
    for (unsigned i = 0; i < 20; i++) {
        send(0, 2, i, 1000, 0);
        send(1, 2, i, 1000, 0);
    }
    inproc_advance(world, GIGABIT);
    ck_assert_uint_ge(fabric_downlink(fabric, 2)->stats.queue_most, 4000);
    ck_assert_uint_le(fabric_downlink(fabric, 2)->stats.queue_most, 5000);
    ck_assert_uint_gt(fabric_stats(fabric).dropped, 0);
    ck_assert_uint_eq(fabric_stats(fabric).dropped + got[2]->len, 40);
    end();
}
END_TEST

/* RFC 3168 5: CE is set on packets of ECN-capable transports only; the IPv4 checksum stays right.
 */
START_TEST(a_queue_above_its_threshold_marks_what_knows_ecn)
{
    unsigned ce = 0;

    config.uplink.rate = config.downlink.rate = GIGABIT;
    config.downlink.ecn_min = config.downlink.ecn_max = 3000;
    begin();
    all_say_who_they_are();
    for (unsigned i = 0; i < 20; i++) {
        send(0, 2, i, 1000, 0); /* not ECT */
        send(1, 2, i, 1000, 2); /* ECT(0) */
    }
    inproc_advance(world, GIGABIT);
    ck_assert_uint_eq(got[2]->len, 40);
    for (unsigned i = 0; i < 40; i++) {
        const struct arrival *a = arrival(2, i);
        struct eth_info info;

        ck_assert(eth_parse_headers(a->bytes, sizeof(a->bytes), &info));
        ck_assert(eth_csum_ipv4_ok(a->bytes, &info));
        ck_assert_uint_eq(a->bytes[11] == 0 && info.tos, 0);
        ce += info.tos == 3;
    }
    ck_assert_uint_gt(ce, 10);
    ck_assert_uint_lt(ce, 20);
    ck_assert_uint_eq(ce, fabric_stats(fabric).marked);
    end();
}
END_TEST

/* Between two thresholds some packets are marked, and more of them if more packets wait. */
START_TEST(marks_begin_at_the_lower_threshold)
{
    config.downlink.rate = GIGABIT;
    config.downlink.ecn_min = 2000;
    config.downlink.ecn_max = 200000;
    config.downlink.ecn_most = CHANCE_MILLION;
    begin();
    all_say_who_they_are();
    for (unsigned i = 0; i < 100; i++) {
        send(0, 2, i, 1000, 1);
    }
    inproc_advance(world, GIGABIT);
    ck_assert_uint_gt(fabric_stats(fabric).marked, 10);
    ck_assert_uint_lt(fabric_stats(fabric).marked, 60);
    end();
}
END_TEST

START_TEST(a_sender_faster_than_its_cable_waits_and_loses_nothing)
{
    unsigned sent = 0;

    config.uplink.rate = GIGABIT;
    begin();
    all_say_who_they_are();
    while (wire_tx_reserve(port[0], 1000)) {
        wire_tx_commit(port[0], 0);
        send(0, 1, sent++, 1000, 0);
    }
    ck_assert_uint_ge(sent, 64);
    inproc_advance(world, GIGABIT);
    ck_assert_uint_eq(got[1]->len, sent);
    ck_assert_ptr_nonnull(wire_tx_reserve(port[0], 1000));
    end();
}
END_TEST

START_TEST(jitter_keeps_the_order)
{
    config.downlink.jitter_ns = 10000;
    begin();
    all_say_who_they_are();
    for (unsigned i = 0; i < 100; i++) {
        send(0, 1, i, 64, 0);
        inproc_advance(world, 100);
    }
    inproc_advance(world, GIGABIT);
    for (unsigned i = 0; i < 100; i++) {
        ck_assert_uint_eq(arrival(1, i)->bytes[40], i);
    }
    end();
}
END_TEST

static char *faulty(uint64_t seed)
{
    GString *trace = g_string_new(NULL);

    config.seed = seed;
    config.downlink.faults = (struct link_faults){
        .lose = 100000, .twice = 100000, .late = 100000, .corrupt = 100000, .late_ns = 5000};
    begin();
    all_say_who_they_are();
    for (unsigned i = 0; i < 200; i++) {
        send(0, 1, i, 64, 0);
        inproc_advance(world, 1000);
    }
    inproc_advance(world, GIGABIT);
    for (unsigned i = 0; i < got[1]->len; i++) {
        g_string_append_printf(trace, "%u@%" G_GUINT64_FORMAT " ", arrival(1, i)->bytes[40],
                               arrival(1, i)->after_ns);
    }
    ck_assert_uint_gt(fabric_downlink(fabric, 1)->stats.lost, 5);
    ck_assert_uint_gt(fabric_downlink(fabric, 1)->stats.doubled, 5);
    ck_assert_uint_gt(fabric_downlink(fabric, 1)->stats.delayed, 5);
    ck_assert_uint_gt(fabric_downlink(fabric, 1)->stats.corrupted, 5);
    end();
    return g_string_free(trace, FALSE);
}

START_TEST(a_seed_decides_every_fault)
{
    g_autofree char *first = faulty(1), *again = faulty(1), *other = faulty(2);

    ck_assert_str_eq(first, again);
    ck_assert_str_ne(first, other);
}
END_TEST

/* How many frames had each fate, at the ports where they arrived or would have arrived. */
struct fates {
    unsigned lost, dropped, no_link, no_host, partitioned, corrupted, duplicates, late;
};

static void count_fates(void *opaque, unsigned number, bool arrives, const uint8_t *frame,
                        size_t len, unsigned fate)
{
    struct fates *fates = opaque;

    fates->lost += (fate & FRAME_LOST) != 0;
    fates->dropped += (fate & FRAME_DROPPED) != 0;
    fates->no_link += (fate & FRAME_NO_LINK) != 0;
    fates->no_host += (fate & FRAME_NO_HOST) != 0;
    fates->partitioned += (fate & FRAME_PARTITIONED) != 0;
    if (arrives && !(fate & FRAME_GONE)) {
        fates->corrupted += (fate & FRAME_CORRUPTED) != 0;
        fates->duplicates += (fate & FRAME_DUPLICATE) != 0;
        fates->late += (fate & FRAME_LATE) != 0;
    }
}

/* Without a duplicate, a frame has each fate at most once. */
START_TEST(the_trace_has_the_fate_of_each_frame)
{
    struct fates fates = {0};
    struct link_stats stats;

    config.downlink.faults =
        (struct link_faults){.lose = 100000, .late = 100000, .corrupt = 100000, .late_ns = 5000};
    begin();
    all_say_who_they_are();
    fabric_downlink(fabric, 1)->stats = (struct link_stats){0};
    fabric_set_trace(fabric, count_fates, &fates);
    for (unsigned i = 0; i < 200; i++) {
        send(0, 1, i, 64, 0);
        inproc_advance(world, 1000);
    }
    inproc_advance(world, GIGABIT);
    stats = fabric_downlink(fabric, 1)->stats;
    ck_assert_uint_eq(fates.lost, stats.lost);
    ck_assert_uint_eq(fates.corrupted, stats.corrupted);
    ck_assert_uint_eq(fates.late, stats.delayed);
    ck_assert_uint_eq(got[1]->len, 200 - fates.lost);
    ck_assert_uint_eq(fates.dropped + fates.no_link + fates.partitioned + fates.duplicates, 0);
    end();
}
END_TEST

/* The duplicate is marked, and its original is not. */
START_TEST(the_trace_has_every_other_fate)
{
    struct fates fates = {0};

    config.downlink.faults.twice = CHANCE_MILLION;
    begin();
    all_say_who_they_are();
    fabric_set_trace(fabric, count_fates, &fates);
    send(0, 1, 1, 64, 0);
    inproc_advance(world, GIGABIT);
    ck_assert_uint_eq(got[1]->len, 2);
    ck_assert_uint_eq(fates.duplicates, 1);
    fabric_config(fabric)->downlink.faults.twice = 0;
    fabric_set_island(fabric, 1, 1);
    send(0, 1, 2, 64, 0);
    inproc_advance(world, GIGABIT);
    ck_assert_uint_eq(fates.partitioned, 1);
    fabric_set_island(fabric, 1, 0);
    fabric_set_cable(fabric, 1, false);
    send(0, 1, 3, 64, 0); /* the receiver's cable is out */
    inproc_advance(world, GIGABIT);
    send(1, 0, 4, 64, 0); /* the sender's cable is out */
    inproc_advance(world, GIGABIT);
    ck_assert_uint_eq(fates.no_link, 2);
    fabric_set_cable(fabric, 1, true);
    wire_close(port[1]);
    send(0, 1, 5, 64, 0);
    inproc_advance(world, GIGABIT);
    ck_assert_uint_eq(fates.no_host, 1);
    ck_assert_uint_eq(fates.no_link, 2);
    fabric_plug_again(fabric, 1);
    fabric_config(fabric)->downlink.rate = GIGABIT;
    fabric_config(fabric)->downlink.queue = 100;
    for (unsigned i = 0; i < 3; i++) {
        send(0, 1, 6 + i, 64, 0);
    }
    inproc_advance(world, GIGABIT);
    ck_assert_uint_gt(fates.dropped, 0);
    ck_assert_uint_eq(fates.dropped, fabric_downlink(fabric, 1)->stats.dropped);
    ck_assert_uint_eq(fates.duplicates, 1);
    end();
}
END_TEST

START_TEST(a_fate_has_a_name)
{
    g_autofree char *lost = frame_describe_fate(FRAME_LOST);
    g_autofree char *more = frame_describe_fate(FRAME_LATE | FRAME_DUPLICATE | FRAME_CORRUPTED);

    ck_assert_str_eq(lost, "lost");
    ck_assert_str_eq(more, "corrupted, duplicate, late");
    ck_assert_ptr_null(frame_describe_fate(0));
}
END_TEST

/* A frame's FCS, which is not carried here, would detect a wrong bit. A RoCE packet may get a wrong
 * bit behind the last FCS, which is what its ICRC is for. */
START_TEST(only_what_has_an_icrc_arrives_with_a_wrong_bit)
{
    static const uint8_t arp[64] = {[5] = 1, [11] = 0, [12] = ETH_TYPE_ARP >> 8, [13] = 6};

    begin();
    all_say_who_they_are();
    fabric_config(fabric)->downlink.faults.corrupt = CHANCE_MILLION;
    send(0, 1, 1, 64, 0);
    memcpy(wire_tx_reserve(port[0], sizeof(arp)), arp, sizeof(arp));
    wire_tx_commit(port[0], sizeof(arp));
    inproc_advance(world, GIGABIT);
    ck_assert_uint_eq(got[1]->len, 1);
    ck_assert_uint_eq(arrival(1, 0)->len, 64);
    ck_assert_uint_eq(fabric_downlink(fabric, 1)->stats.corrupted, 2);
    end();
}
END_TEST

START_TEST(islands_do_not_hear_each_other)
{
    begin();
    all_say_who_they_are();
    fabric_set_island(fabric, 0, 1);
    send(0, 1, 1, 64, 0);
    send(2, 1, 2, 64, 0);
    inproc_advance(world, GIGABIT);
    ck_assert_uint_eq(got[1]->len, 1);
    fabric_set_island(fabric, 0, 0);
    send(0, 1, 3, 64, 0);
    inproc_advance(world, GIGABIT);
    ck_assert_uint_eq(got[1]->len, 2);
    end();
}
END_TEST

START_TEST(nothing_passes_a_cable_that_is_out)
{
    begin();
    all_say_who_they_are();
    fabric_set_cable(fabric, 1, false);
    ck_assert(!wire_link_up(port[1]));
    ck_assert(wire_link_up(port[0]));
    send(0, 1, 1, 64, 0);
    send(1, 0, 2, 64, 0);
    inproc_advance(world, GIGABIT);
    fabric_set_cable(fabric, 1, true);
    inproc_advance(world, GIGABIT);
    ck_assert_uint_eq(got[0]->len + got[1]->len, 0);
    send(0, 1, 3, 64, 0);
    inproc_advance(world, GIGABIT);
    ck_assert_uint_eq(got[1]->len, 1);
    end();
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("simulated fabric");
    TCase *tcase = tcase_create("links and switch");

    tcase_add_checked_fixture(tcase, setup, NULL);
    tcase_add_test(tcase, a_frame_for_a_known_address_goes_there_only);
    tcase_add_test(tcase, a_multicast_frame_goes_to_all_others);
    tcase_add_test(tcase, a_frame_takes_its_length_by_the_rate_and_the_latency);
    tcase_add_test(tcase, two_senders_to_one_fill_its_queue_which_drops_what_does_not_fit);
    tcase_add_test(tcase, a_queue_above_its_threshold_marks_what_knows_ecn);
    tcase_add_test(tcase, marks_begin_at_the_lower_threshold);
    tcase_add_test(tcase, a_sender_faster_than_its_cable_waits_and_loses_nothing);
    tcase_add_test(tcase, jitter_keeps_the_order);
    tcase_add_test(tcase, a_seed_decides_every_fault);
    tcase_add_test(tcase, the_trace_has_the_fate_of_each_frame);
    tcase_add_test(tcase, the_trace_has_every_other_fate);
    tcase_add_test(tcase, a_fate_has_a_name);
    tcase_add_test(tcase, only_what_has_an_icrc_arrives_with_a_wrong_bit);
    tcase_add_test(tcase, islands_do_not_hear_each_other);
    tcase_add_test(tcase, nothing_passes_a_cable_that_is_out);
    suite_add_tcase(suite, tcase);
    return suite;
}
