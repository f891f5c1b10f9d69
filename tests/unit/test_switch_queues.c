/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests the queues of a switch: rate, latency, marks, drops, priorities, pauses and credits, in
 * virtual time.
 */
#include "tests/unit/suite.h"
#include "tests/unit/switch_bench.h"
#include "wire/bytes.h"
#include "wire/capture.h"
#include "wire/encap/eth.h"
#include "wire/pair.h"

#include <check.h>
#include <string.h>
#include <unistd.h>

enum {
    LONG = 1000,
    ON_LINE = LONG + 24, /* with preamble, FCS and gap */
    ECT = 2,
};

/* -- the line ---------------------------------------------------------------------------------- */

/* 1024 bytes at 1 Gb/s take 8192 ns. */
START_TEST(a_rate_sets_the_distance_of_frames)
{
    bench_begin(NULL, 2, 64);
    bench_announce();
    bench_set(2, "rate", "1G");
    for (unsigned i = 0; i < 10; i++) {
        ck_assert(bench_send_as(1, 2, LONG, 0));
    }
    bench_turn();
    ck_assert_uint_eq(bench_at[2].frames, 0);
    bench_pass(8191);
    ck_assert_uint_eq(bench_at[2].frames, 0);
    bench_pass(1);
    ck_assert_uint_eq(bench_at[2].frames, 1);
    bench_pass(8ull * 8192);
    ck_assert_uint_eq(bench_at[2].frames, 9);
    bench_pass(8192);
    ck_assert_uint_eq(bench_at[2].frames, 10);
    bench_end();
}
END_TEST

/* "an owner that wakes up late sends what should have left meanwhile" */
START_TEST(a_rate_does_not_depend_on_the_owners_clock)
{
    bench_begin(NULL, 2, 64);
    bench_announce();
    bench_set(2, "rate", "1G");
    for (unsigned i = 0; i < 20; i++) {
        ck_assert(bench_send_as(1, 2, LONG, 0));
    }
    bench_turn();
    bench_now += 10ull * 8192;
    bench_turn();
    ck_assert_uint_eq(bench_at[2].frames, 10);
    bench_end();
}
END_TEST

START_TEST(a_latency_delays_frames_and_keeps_their_order)
{
    bench_begin(NULL, 2, 64);
    bench_announce();
    bench_set(2, "latency", "10us");
    for (unsigned i = 0; i < 3; i++) {
        ck_assert(bench_send_as(1, 2, LONG + i, 0));
        bench_pass(1000);
    }
    ck_assert_uint_eq(bench_at[2].frames, 0);
    for (unsigned i = 0; i < 3; i++) {
        bench_pass(i ? 1000 : 7000);
        ck_assert_uint_eq(bench_at[2].frames, i + 1);
        ck_assert_uint_eq(bench_at[2].len, LONG + i);
    }
    bench_end();
}
END_TEST

START_TEST(a_rate_that_is_raised_holds_at_once)
{
    bench_begin(NULL, 2, 64);
    bench_announce();
    bench_set(2, "rate", "1K");
    for (unsigned i = 0; i < 5; i++) {
        ck_assert(bench_send_as(1, 2, LONG, 0));
    }
    bench_turn();
    bench_set(2, "rate", "1G");
    bench_turn();
    ck_assert_uint_eq(bench_at[2].frames, 1); /* was on the line */
    bench_pass(4 * 8192);
    ck_assert_uint_eq(bench_at[2].frames, 5);
    bench_end();
}
END_TEST

START_TEST(higher_priorities_go_first)
{
    bench_begin(NULL, 2, 64);
    bench_announce();
    bench_set(2, "rate", "1G");
    for (unsigned i = 0; i < 3; i++) {
        ck_assert(bench_send_as(1, 2, LONG, 0));
    }
    bench_turn();
    ck_assert(bench_send_as(1, 2, LONG + 5, 5 << 5)); /* DSCP CS5 */
    bench_turn();
    bench_pass(8192);
    ck_assert_uint_eq(bench_at[2].len, LONG); /* was on the line */
    bench_pass(8192 + 40);
    ck_assert_uint_eq(bench_at[2].len, LONG + 5);
    bench_pass(BENCH_MS);
    ck_assert_uint_eq(bench_at[2].frames, 4);
    bench_end();
}
END_TEST

/* -- drops and marks --------------------------------------------------------------------------- */

START_TEST(a_full_queue_drops_what_comes)
{
    bench_begin(NULL, 2, 64);
    bench_announce();
    bench_set(2, "rate", "1G");
    bench_set(2, "queue", "10K");
    for (unsigned i = 0; i < 30; i++) {
        ck_assert(bench_send_as(1, 2, LONG, 0));
    }
    bench_pass(BENCH_MS);
    ck_assert_uint_eq(bench_at[2].frames, 11); /* ten that wait, and one on the line */
    ck_assert_uint_eq(bench_stats(2).full, 19);
    ck_assert_uint_eq(bench_stats(2).queue_most, 10 * LONG);
    bench_end();
}
END_TEST

/* The first frame goes to the line; so before frame n wait n - 1 frames. */
START_TEST(marks_begin_at_the_minimum)
{
    bench_begin(NULL, 2, 64);
    bench_announce();
    bench_set(2, "rate", "1G");
    bench_set(2, "ecn", "5000:5000:100");
    for (unsigned i = 0; i < 12; i++) {
        ck_assert(bench_send_as(1, 2, LONG, ECT));
    }
    ck_assert(bench_send_as(1, 2, LONG, 0)); /* does not support ECN */
    bench_pass(BENCH_MS);
    ck_assert_uint_eq(bench_at[2].frames, 13);
    ck_assert_uint_eq(bench_at[2].marked, 12 - 6);
    ck_assert_uint_eq(bench_stats(2).marked, 12 - 6);
    bench_end();
}
END_TEST

/* A mark changes the checksum with the field. */
START_TEST(a_marked_packet_is_whole)
{
    struct eth_info info;

    bench_begin(NULL, 2, 64);
    bench_announce();
    bench_set(2, "ecn", "0:1:100");
    bench_set(2, "rate", "1G");
    ck_assert(bench_send_as(1, 2, LONG, ECT));
    ck_assert(bench_send_as(1, 2, LONG, ECT));
    ck_assert(bench_send_as(1, 2, LONG, ECT));
    bench_pass(BENCH_MS);
    ck_assert_uint_ge(bench_at[2].marked, 1);
    ck_assert(eth_parse(bench_at[2].frame, bench_at[2].len, &info));
    ck_assert_uint_eq(info.tos, 3);
    ck_assert(eth_csum_ipv4_ok(bench_at[2].frame, &info));
    bench_end();
}
END_TEST

/* Between the thresholds the probability grows; with the same seed the same packets are marked. */
START_TEST(marks_follow_the_probability_and_the_seed)
{
    unsigned marked[2];

    for (int run = 0; run < 2; run++) {
        bench_begin(NULL, 2, 512);
        bench_announce();
        bench_set(2, "rate", "1G");
        bench_set(2, "ecn", "100K:300K:50"); /* at 200 KB 25 % */
        for (unsigned i = 0; i < 200; i++) {
            ck_assert(bench_send_as(1, 2, LONG, 0));
        }
        bench_turn();
        for (unsigned i = 0; i < 4000; i++) {
            bench_pass(8192);
            ck_assert(bench_send_as(1, 2, LONG, ECT));
        }
        bench_turn();
        marked[run] = (unsigned)bench_stats(2).marked;
        bench_end();
    }
    ck_assert_uint_gt(marked[0], 800);
    ck_assert_uint_lt(marked[0], 1200);
    ck_assert_uint_eq(marked[0], marked[1]);
}
END_TEST

/* -- credits ----------------------------------------------------------------------------------- */

/* "A port whose peer gives no credit holds its queue without holding up other ports." */
START_TEST(a_peer_without_credit_holds_its_own_queue_only)
{
    bench_begin(NULL, 3, 4);
    bench_announce();
    bench_at[2].sleeps = true;
    for (unsigned i = 0; i < 100; i++) {
        ck_assert(bench_send(1, 2));
        bench_turn();
        ck_assert(bench_send(1, 3));
        bench_turn();
    }
    ck_assert_uint_eq(bench_at[3].frames, 100);
    ck_assert_uint_eq(bench_stats(2).waiting, 96);
    bench_pass(10 * BENCH_S); /* however long */
    ck_assert_uint_eq(bench_stats(2).waiting, 96);
    bench_at[2].sleeps = false;
    bench_turn();
    ck_assert_uint_eq(bench_at[2].frames, 100);
    bench_end();
}
END_TEST

/* So it is behind a capture, whose table has all operations. */
START_TEST(a_captured_peer_without_credit_holds_its_queue)
{
    g_autofree char *path =
        g_strdup_printf("%s/hcasim-switch-%d.pcapng", g_get_tmp_dir(), getpid());
    struct wire_port *ends[2], *captured;

    bench_begin(NULL, 1, 4);
    wire_pair_new(4, ends);
    captured = wire_capture_new(ends[1], path, NULL, NULL);
    ck_assert_ptr_nonnull(captured);
    ck_assert_uint_eq(wire_switch_add(bench_sw, captured, "captured", false, NULL), 2);
    for (unsigned i = 0; i < 10; i++) {
        ck_assert(bench_send(1, 2));
        bench_turn();
    }
    bench_pass(10 * BENCH_S);
    ck_assert_uint_eq(wire_switch_total(bench_sw).waiting, 6);
    ck_assert_uint_eq(wire_switch_total(bench_sw).stuck, 0);
    bench_end();
    wire_close(ends[0]);
    ck_assert_int_eq(unlink(path), 0);
}
END_TEST

/* Many peers that sleep share the buffer, and do not take what others need. */
START_TEST(sleeping_peers_do_not_take_the_whole_buffer)
{
    static const struct wire_switch_config config = {.buffer = 4 << 20};

    bench_begin(&config, 20, 4);
    bench_announce();
    for (unsigned i = 3; i <= 20; i++) {
        bench_at[i].sleeps = true;
        bench_set(i, "queue", "1G");
    }
    for (unsigned round = 0; round < 100; round++) {
        for (unsigned i = 3; i <= 20; i++) {
            ck_assert(bench_send(1, i));
            bench_turn();
        }
    }
    ck_assert_uint_lt(wire_switch_whole(bench_sw).frames, wire_switch_whole(bench_sw).frames_most);
    bench_set(2, "rate", "1G");
    for (unsigned i = 0; i < 4; i++) {
        ck_assert(bench_send(1, 2));
    }
    bench_pass(BENCH_MS);
    ck_assert_uint_eq(bench_at[2].frames, 4);
    ck_assert_uint_gt(bench_stats(3).no_buffer, 0);
    bench_end();
}
END_TEST

START_TEST(a_flood_is_stored_once)
{
    bench_begin(NULL, 300, 64);
    bench_announce();
    for (unsigned i = 2; i <= 300; i++) {
        bench_set(i, "rate", "1G");
    }
    ck_assert(bench_send(1, BENCH_ALL));
    bench_turn();
    ck_assert_uint_eq(wire_switch_whole(bench_sw).frames, 1);
    bench_pass(BENCH_MS);
    ck_assert_uint_eq(wire_switch_whole(bench_sw).frames, 0);
    for (unsigned i = 2; i <= 300; i++) {
        ck_assert_uint_eq(bench_at[i].frames, 1);
    }
    bench_end();
}
END_TEST

/* A port with a receiver for each last byte of an address, each with a credit of its own. */
struct many {
    struct wire_port port;
    uint8_t asleep, failed; /* last bytes: who gives no credit, who was asked last */
    unsigned got[256];
    uint64_t credits;
    uint8_t frame[WIRE_FRAME_MAX];
};

static struct many many;

static uint8_t *many_reserve_to(struct wire_port *port, const uint8_t dmac[6], size_t len)
{
    if (dmac[5] == many.asleep) {
        many.failed = dmac[5];
        return NULL;
    }
    return many.frame;
}

static uint8_t *many_reserve(struct wire_port *port, size_t len)
{
    return many.frame;
}

static void many_commit(struct wire_port *port, size_t len, unsigned flags)
{
    many.got[many.frame[5]]++;
}

static unsigned many_class(struct wire_port *port)
{
    return many.failed % WIRE_CREDIT_CLASSES;
}

static uint64_t many_credits(struct wire_port *port)
{
    return many.credits;
}

static unsigned many_poll(struct wire_port *port, unsigned max)
{
    return 0;
}

static bool many_tells_hosts(struct wire_port *port)
{
    return true;
}

static bool many_link_up(struct wire_port *port)
{
    return true;
}

static void many_close(struct wire_port *port)
{
}

static const struct wire_port_ops many_ops = {.tx_reserve = many_reserve,
                                              .tx_reserve_to = many_reserve_to,
                                              .tx_commit = many_commit,
                                              .tx_credit_class = many_class,
                                              .tx_credits = many_credits,
                                              .poll = many_poll,
                                              .tells_hosts = many_tells_hosts,
                                              .link_up = many_link_up,
                                              .close = many_close};

/* "one of them holds up the others for SWITCH_WAIT_NS, and then its own frames are dropped until it
 * gives credit" */
START_TEST(one_of_several_receivers_does_not_hold_up_the_others)
{
    bench_begin(NULL, 1, 64);
    many = (struct many){.port = {.ops = &many_ops}, .asleep = 50};
    ck_assert_uint_eq(wire_switch_add(bench_sw, &many.port, "many", false, NULL), 2);
    ck_assert(bench_send(1, 50));
    ck_assert(bench_send(1, 51));
    ck_assert(bench_send(1, 50));
    bench_pass(50 * BENCH_MS - 1);
    ck_assert_uint_eq(many.got[51], 0);
    bench_pass(1);
    ck_assert_uint_eq(many.got[51], 1);
    ck_assert(bench_send(1, 50));
    ck_assert(bench_send(1, 51));
    bench_turn();
    ck_assert_uint_eq(many.got[51], 2);
    ck_assert_uint_eq(wire_switch_total(bench_sw).stuck, 3);
    many.asleep = 0;
    many.credits = 1ull << 50;
    many.port.client->tx_ready(many.port.opaque);
    ck_assert(bench_send(1, 50));
    bench_turn();
    ck_assert_uint_eq(many.got[50], 1);
    many.asleep = 50;
    ck_assert(bench_send(1, 50)); /* it is waited for again */
    bench_turn();
    ck_assert_uint_eq(wire_switch_total(bench_sw).waiting, 1);
    bench_end();
}
END_TEST

/* -- pauses ------------------------------------------------------------------------------------ */

/* Two senders at full speed into a slow port: nothing is lost, and the queue has a bound. */
static void incast(const char *key, bool obeys)
{
    unsigned sent = 0;

    bench_begin(NULL, 3, 16);
    bench_announce();
    for (unsigned i = 1; i <= 2; i++) {
        bench_set(i, key, "20K:10K");
        bench_at[i].obeys = obeys;
    }
    bench_set(3, "rate", "1G");
    bench_set(3, "queue", "1K"); /* would drop all but one */
    for (unsigned round = 0; round < 2000; round++) {
        for (unsigned i = 1; i <= 2; i++) {
            for (unsigned n = 0; n < 3; n++) {
                sent += bench_send_as(i, 3, LONG, 0);
            }
        }
        bench_pass(4096);
    }
    ck_assert_uint_gt(bench_at[1].pauses, 0);
    ck_assert_uint_lt(bench_stats(3).queue_most,
                      2 * (obeys ? 30000 : 20480 + (64 << 10) + 16 * LONG));
    bench_pass(BENCH_S);
    ck_assert_uint_eq(bench_at[3].frames, sent);
    ck_assert_uint_eq(bench_stats(3).full + bench_stats(3).no_buffer, 0);
    ck_assert_uint_gt(bench_at[1].resumes, 0);
    ck_assert(!bench_at[1].paused[0] && !bench_at[2].paused[0]);
    bench_end();
}

START_TEST(a_full_queue_pauses_its_senders_and_loses_nothing_with_pfc)
{
    incast("pfc", true);
    ck_assert_uint_eq(bench_at[1].pause_opcode, 0x0101);
}
END_TEST

START_TEST(a_full_queue_pauses_its_senders_and_loses_nothing_with_pause)
{
    incast("pause", true);
    ck_assert_uint_eq(bench_at[1].pause_opcode, 0x0001);
}
END_TEST

/* A sender that does not know pauses is held up by its wire. */
START_TEST(a_sender_that_does_not_obey_loses_nothing)
{
    incast("pfc", false);
}
END_TEST

START_TEST(pfc_pauses_only_its_priorities)
{
    bench_begin(NULL, 2, 64);
    bench_announce();
    bench_set(1, "pfc", "5000:1000:3");
    bench_set(2, "rate", "1G");
    bench_set(2, "queue", "4K");
    for (unsigned i = 0; i < 20; i++) {
        ck_assert(bench_send_as(1, 2, LONG, 0));
        ck_assert(bench_send_as(1, 2, LONG, 3 << 5));
    }
    bench_turn();
    ck_assert(bench_at[1].paused[3]);
    ck_assert(!bench_at[1].paused[0] && !bench_at[1].paused[4]);
    bench_pass(BENCH_MS);
    ck_assert(!bench_at[1].paused[3]);
    ck_assert_uint_gt(bench_stats(2).full, 0);
    ck_assert_uint_eq(bench_at[2].frames, 40 - bench_stats(2).full);
    bench_end();
}
END_TEST

/* The time of a pause ends by itself, so the switch repeats it while it lasts. */
START_TEST(a_pause_that_lasts_is_repeated)
{
    bench_begin(NULL, 2, 64);
    bench_announce();
    bench_set(1, "pfc", "5000:1000");
    bench_set(2, "rate", "10M");
    for (unsigned i = 0; i < 10; i++) {
        ck_assert(bench_send_as(1, 2, LONG, 0));
    }
    bench_turn();
    ck_assert_uint_eq(bench_at[1].pauses, 1);
    bench_pass(BENCH_MS); /* 65,535 times 512 bits are 335 us at 100 Gb/s */
    ck_assert_uint_ge(bench_at[1].pauses, 4);
    ck_assert_uint_le(bench_at[1].pauses, 8);
    bench_pass(20 * BENCH_MS);
    ck_assert_uint_eq(bench_at[1].resumes, 1);
    ck_assert_uint_eq(bench_at[2].frames, 10);
    bench_end();
}
END_TEST

static void send_pause(unsigned station, bool pfc, unsigned priorities, unsigned quanta)
{
    uint8_t frame[60] = {0x01, 0x80, 0xc2, 0, 0, 1};

    bench_mac(frame + 6, station);
    put16(frame + 12, 0x8808);
    put16(frame + 14, pfc ? 0x0101 : 1);
    put16(frame + 16, (uint16_t)(pfc ? priorities : quanta));
    for (unsigned i = 0; pfc && i < 8; i++) {
        put16(frame + 18 + 2 * i, (uint16_t)quanta);
    }
    ck_assert(bench_send_bytes(station, frame, sizeof(frame)));
    bench_turn();
}

/* 1,000 quanta of 512 bits are 512 us at 1 Gb/s. */
START_TEST(a_peers_pause_is_obeyed_until_its_end)
{
    bench_begin(NULL, 3, 64);
    bench_announce();
    bench_set(2, "rate", "1G");
    send_pause(2, false, 0, 1000);
    ck_assert_uint_eq(bench_stats(2).pauses_taken, 1);
    ck_assert(bench_send(1, 2));
    ck_assert(bench_send(1, 3));
    bench_pass(511 * 1000);
    ck_assert_uint_eq(bench_at[2].frames, 0);
    ck_assert_uint_eq(bench_at[3].frames, 1); /* other ports go on */
    bench_pass(3 * 1000);
    ck_assert_uint_eq(bench_at[2].frames, 1);
    ck_assert_uint_eq(bench_at[1].frames, 0); /* pauses are not forwarded */
    bench_end();
}
END_TEST

START_TEST(a_peers_pfc_stops_its_priorities_and_zero_ends_it)
{
    bench_begin(NULL, 2, 64);
    bench_announce();
    send_pause(2, true, 1 << 3, 0xffff);
    ck_assert(bench_send_as(1, 2, BENCH_SHORT, 3 << 5));
    ck_assert(bench_send_as(1, 2, BENCH_SHORT, 0));
    bench_turn();
    ck_assert_uint_eq(bench_at[2].frames, 1);
    send_pause(2, true, 1 << 3, 0);
    ck_assert_uint_eq(bench_at[2].frames, 2);
    bench_end();
}
END_TEST

/* A stopped peer of a lossless port would hold up all its senders for ever: after a second its
 * frames are dropped, until it gives credit. */
START_TEST(a_stuck_peer_holds_up_its_senders_for_a_second)
{
    bench_begin(NULL, 3, 4);
    bench_announce();
    bench_set(1, "pfc", "5000:1000");
    bench_at[2].sleeps = true;
    for (unsigned i = 0; i < 20; i++) {
        ck_assert(bench_send_as(1, 2, LONG, 0));
        bench_turn();
    }
    ck_assert(bench_at[1].paused[0]);
    bench_pass(BENCH_S - 1);
    ck_assert(bench_at[1].paused[0]);
    bench_pass(1);
    ck_assert(!bench_at[1].paused[0]);
    ck_assert_uint_eq(bench_stats(2).stuck, 16);
    ck_assert(bench_send_as(1, 2, LONG, 0));
    ck_assert(bench_send_as(1, 3, LONG, 0));
    bench_turn();
    ck_assert_uint_eq(bench_stats(2).stuck, 17);
    ck_assert_uint_eq(bench_at[3].frames, 1);
    bench_at[2].sleeps = false;
    bench_turn();
    ck_assert(bench_send_as(1, 2, LONG, 0));
    bench_turn();
    ck_assert_uint_eq(bench_at[2].frames, 5);
    bench_end();
}
END_TEST

START_TEST(a_setting_that_ends_pauses_resumes_the_sender)
{
    bench_begin(NULL, 2, 64);
    bench_announce();
    bench_set(1, "pfc", "5000:1000");
    bench_set(2, "rate", "1M");
    for (unsigned i = 0; i < 10; i++) {
        ck_assert(bench_send_as(1, 2, LONG, 0));
    }
    bench_turn();
    ck_assert(bench_at[1].paused[0]);
    bench_set(1, "pfc", "off");
    bench_turn();
    ck_assert(!bench_at[1].paused[0]);
    bench_end();
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("queues of a switch");
    TCase *tc = tcase_create("queues");

    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, a_rate_sets_the_distance_of_frames);
    tcase_add_test(tc, a_rate_does_not_depend_on_the_owners_clock);
    tcase_add_test(tc, a_latency_delays_frames_and_keeps_their_order);
    tcase_add_test(tc, a_rate_that_is_raised_holds_at_once);
    tcase_add_test(tc, higher_priorities_go_first);
    tcase_add_test(tc, a_full_queue_drops_what_comes);
    tcase_add_test(tc, marks_begin_at_the_minimum);
    tcase_add_test(tc, a_marked_packet_is_whole);
    tcase_add_test(tc, marks_follow_the_probability_and_the_seed);
    tcase_add_test(tc, a_peer_without_credit_holds_its_own_queue_only);
    tcase_add_test(tc, a_captured_peer_without_credit_holds_its_queue);
    tcase_add_test(tc, sleeping_peers_do_not_take_the_whole_buffer);
    tcase_add_test(tc, a_flood_is_stored_once);
    tcase_add_test(tc, one_of_several_receivers_does_not_hold_up_the_others);
    tcase_add_test(tc, a_full_queue_pauses_its_senders_and_loses_nothing_with_pfc);
    tcase_add_test(tc, a_full_queue_pauses_its_senders_and_loses_nothing_with_pause);
    tcase_add_test(tc, a_sender_that_does_not_obey_loses_nothing);
    tcase_add_test(tc, pfc_pauses_only_its_priorities);
    tcase_add_test(tc, a_pause_that_lasts_is_repeated);
    tcase_add_test(tc, a_peers_pause_is_obeyed_until_its_end);
    tcase_add_test(tc, a_peers_pfc_stops_its_priorities_and_zero_ends_it);
    tcase_add_test(tc, a_stuck_peer_holds_up_its_senders_for_a_second);
    tcase_add_test(tc, a_setting_that_ends_pauses_resumes_the_sender);
    suite_add_tcase(suite, tc);
    return suite;
}
