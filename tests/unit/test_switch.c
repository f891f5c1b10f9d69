/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests which ports a frame goes to: stations, islands, VLANs, links, and what the statistics say.
 */
#include "tests/unit/suite.h"
#include "tests/unit/switch_bench.h"
#include "wire/bytes.h"
#include "wire/open.h"
#include "wire/encap/ip.h"
#include "wire/encap/roce.h"
#include "wire/pair.h"

#include <check.h>
#include <string.h>

/* -- stations ---------------------------------------------------------------------------------- */

START_TEST(a_frame_for_an_unknown_address_goes_to_all_other_ports)
{
    bench_begin(NULL, 4, 8);
    ck_assert(bench_send(1, 3));
    bench_turn();
    ck_assert_uint_eq(bench_at[1].frames, 0);
    for (unsigned i = 2; i <= 4; i++) {
        ck_assert_uint_eq(bench_at[i].frames, 1);
    }
    ck_assert_uint_eq(bench_stats(1).flooded, 1);
    bench_end();
}
END_TEST

START_TEST(a_frame_for_a_learnt_address_goes_to_its_port_alone)
{
    bench_begin(NULL, 4, 8);
    ck_assert(bench_send(3, BENCH_ALL));
    bench_turn();
    bench_forget();
    ck_assert(bench_send(1, 3));
    bench_turn();
    ck_assert_uint_eq(bench_at[3].frames, 1);
    ck_assert_uint_eq(bench_at[2].frames + bench_at[4].frames, 0);
    bench_end();
}
END_TEST

/* All pairs of 300 stations: each frame arrives at its station, once, and nowhere else. */
START_TEST(three_hundred_ports_get_their_own_frames)
{
    enum {
        PORTS = 300
    };

    bench_begin(NULL, PORTS, 64);
    bench_announce();
    for (unsigned round = 1; round < PORTS; round++) {
        for (unsigned i = 1; i <= PORTS; i++) {
            ck_assert(bench_send(i, 1 + (i - 1 + round) % PORTS));
        }
        bench_turn();
    }
    for (unsigned i = 1; i <= PORTS; i++) {
        ck_assert_uint_eq(bench_at[i].frames, PORTS - 1);
        ck_assert_uint_eq(bench_at[i].foreign, 0);
    }
    bench_end();
}
END_TEST

START_TEST(a_station_that_moves_is_found_at_its_new_port)
{
    bench_begin(NULL, 4, 8);
    bench_announce();
    ck_assert(bench_send(3, BENCH_ALL)); /* at its own port, */
    bench_turn();
    {
        uint8_t frame[BENCH_SHORT];

        bench_build(frame, 3, BENCH_ALL, sizeof(frame), 0);
        ck_assert(bench_send_bytes(4, frame, sizeof(frame))); /* and then at the next */
    }
    bench_turn();
    bench_forget();
    ck_assert(bench_send(1, 3));
    bench_turn();
    ck_assert_uint_eq(bench_at[3].frames, 0);
    ck_assert_uint_eq(bench_at[4].frames, 1);
    ck_assert_uint_eq(wire_switch_whole(bench_sw).moves, 1);
    bench_end();
}
END_TEST

START_TEST(a_silent_station_is_forgotten)
{
    static const struct wire_switch_config config = {.age_ns = 10 * BENCH_S};

    bench_begin(&config, 3, 8);
    bench_announce();
    bench_pass(10 * BENCH_S);
    ck_assert(bench_send(1, 3));
    bench_turn();
    ck_assert_uint_eq(bench_at[2].frames, 0); /* it is known at that age */
    bench_pass(1);
    ck_assert(bench_send(1, 3));
    bench_turn();
    ck_assert_uint_eq(bench_at[2].frames, 1);
    bench_end();
}
END_TEST

START_TEST(a_frame_for_a_station_of_the_same_port_goes_nowhere)
{
    uint8_t frame[BENCH_SHORT];

    bench_begin(NULL, 3, 8);
    bench_build(frame, 77, BENCH_ALL, sizeof(frame), 0);
    ck_assert(bench_send_bytes(1, frame, sizeof(frame)));
    bench_turn();
    bench_forget();
    ck_assert(bench_send(1, 77));
    bench_turn();
    ck_assert_uint_eq(bench_at[2].frames + bench_at[3].frames, 0);
    ck_assert_uint_eq(bench_stats(1).local, 1);
    bench_end();
}
END_TEST

/* A station that finds the table full is served by floods, and those that are known stay known. */
START_TEST(a_full_table_learns_no_more)
{
    static const struct wire_switch_config config = {.addresses = 16};
    uint8_t frame[BENCH_SHORT];

    bench_begin(&config, 3, 8);
    bench_announce();
    for (unsigned i = 0; i < 1000; i++) {
        bench_build(frame, 1000 + i, 2, sizeof(frame), 0);
        ck_assert(bench_send_bytes(1, frame, sizeof(frame)));
        bench_turn();
    }
    ck_assert_uint_eq(wire_switch_whole(bench_sw).addresses, 16);
    ck_assert_uint_eq(wire_switch_whole(bench_sw).not_learned, 1000 - 13);
    ck_assert_uint_eq(bench_at[2].frames, 1000);
    ck_assert_uint_eq(bench_at[3].frames, 0);
    ck_assert(bench_send(3, 1999));
    bench_turn();
    ck_assert_uint_eq(bench_at[1].frames, 1);
    ck_assert_uint_eq(bench_at[2].frames, 1001);
    bench_end();
}
END_TEST

/* Sends `num` frames from a station, each from another address. */
static void pretend(unsigned station, unsigned first, unsigned num)
{
    uint8_t frame[BENCH_SHORT];

    for (unsigned i = 0; i < num; i++) {
        bench_build(frame, first + i, 2, sizeof(frame), 0);
        ck_assert(bench_send_bytes(station, frame, sizeof(frame)));
        bench_turn();
    }
}

START_TEST(a_port_cannot_fill_the_table)
{
    static const struct wire_switch_config config = {.addresses = 64};

    bench_begin(&config, 3, 8);
    bench_set(1, "stations", "10");
    bench_announce();
    pretend(1, 1000, 1000);
    ck_assert_uint_eq(wire_switch_whole(bench_sw).addresses, 12);
    ck_assert_uint_eq(wire_switch_whole(bench_sw).not_learned, 1000 - 9);
    /* others are learned as before, and are found */
    pretend(3, 5000, 20);
    ck_assert_uint_eq(wire_switch_whole(bench_sw).addresses, 32);
    bench_forget();
    ck_assert(bench_send(2, 5019));
    bench_turn();
    ck_assert_uint_eq(bench_at[1].frames, 0);
    ck_assert_uint_eq(bench_at[3].frames, 1);
    bench_end();
}
END_TEST

/* It usually stands for 1,024 stations: what a port may have without a setting is bounded, too. */
START_TEST(a_port_may_have_a_part_of_the_table_unless_it_is_set)
{
    bench_begin(NULL, 2, 8);
    bench_announce();
    pretend(1, 1000, 3000);
    ck_assert_uint_eq(wire_switch_whole(bench_sw).addresses, 1024 + 1);
    bench_end();
}
END_TEST

/* A port with too many stations does not take those of others over: frames for them go to all. */
START_TEST(a_station_that_moves_to_a_full_port_is_forgotten)
{
    bench_begin(NULL, 3, 8);
    bench_set(1, "stations", "1");
    bench_announce();
    pretend(1, 3, 1); /* the address of station 3 */
    bench_forget();
    ck_assert(bench_send(2, 3));
    bench_turn();
    ck_assert_uint_eq(bench_at[3].frames, 1);
    ck_assert_uint_eq(bench_at[1].frames, 1);
    /* its station is known again once it has sent */
    ck_assert(bench_send(3, 2));
    bench_turn();
    bench_forget();
    ck_assert(bench_send(2, 3));
    bench_turn();
    ck_assert_uint_eq(bench_at[1].frames, 0);
    bench_end();
}
END_TEST

/* Stations that move away make room at their old port. */
START_TEST(stations_that_move_away_make_room)
{
    bench_begin(NULL, 3, 8);
    bench_set(1, "stations", "4");
    for (unsigned round = 0; round < 3; round++) {
        pretend(1, 1000 + 10 * round, 4);
        pretend(3, 1000 + 10 * round, 4);
    }
    bench_forget();
    pretend(1, 2000, 4);
    bench_forget();
    for (unsigned i = 0; i < 4; i++) {
        ck_assert(bench_send(2, 2000 + i));
        bench_turn();
    }
    ck_assert_uint_eq(bench_at[1].frames, 4);
    ck_assert_uint_eq(bench_at[3].frames, 0);
    bench_end();
}
END_TEST

/* Stations that are forgotten make room at their port. */
START_TEST(a_full_port_has_room_again)
{
    static const struct wire_switch_config config = {.addresses = 64, .age_ns = BENCH_S};

    bench_begin(&config, 2, 8);
    bench_set(1, "stations", "4");
    pretend(1, 1000, 8);
    ck_assert_uint_eq(wire_switch_whole(bench_sw).addresses, 4);
    bench_pass(2 * BENCH_S);
    pretend(1, 2000, 16); /* each makes the switch look at some old entries */
    ck_assert_uint_eq(wire_switch_whole(bench_sw).addresses, 4);
    bench_forget();
    ck_assert(bench_send(2, 2015));
    bench_turn();
    ck_assert_uint_eq(bench_at[1].frames, 1);
    bench_end();
}
END_TEST

/* -- ports ------------------------------------------------------------------------------------- */

START_TEST(a_port_beyond_the_limit_is_refused)
{
    static const struct wire_switch_config config = {.ports = 2};
    struct wire_port *ends[2];
    GError *err = NULL;

    bench_begin(&config, 2, 8);
    wire_pair_new(1, ends);
    ck_assert_uint_eq(wire_switch_add(bench_sw, ends[1], "a pair", false, &err), 0);
    ck_assert_str_eq(err->message, "all 2 ports of the switch are used");
    g_error_free(err);
    wire_close(ends[0]);
    wire_close(ends[1]);
    bench_end();
}
END_TEST

/* Its stations are forgotten, its number is used again, and what it has counted stays counted. */
START_TEST(a_removed_port_leaves_nothing_behind)
{
    struct switch_stats before;

    bench_begin(NULL, 3, 8);
    bench_announce();
    bench_at[2].sleeps = true;
    for (unsigned i = 0; i < 20; i++) {
        ck_assert(bench_send(1, 2));
        bench_turn();
    }
    ck_assert_uint_eq(bench_stats(2).waiting, 12);
    before = wire_switch_total(bench_sw);
    wire_switch_remove(bench_sw, bench_at[2].number);
    ck_assert_uint_eq(wire_switch_total(bench_sw).offered, before.offered);
    ck_assert_uint_eq(wire_switch_total(bench_sw).waiting, 0);
    ck_assert_uint_eq(wire_switch_whole(bench_sw).frames, 0);
    bench_forget();
    ck_assert(bench_send(1, 2));
    bench_turn();
    ck_assert_uint_eq(bench_at[3].frames, 1); /* unknown again */
    bench_plug(8);
    ck_assert_uint_eq(bench_at[4].number, bench_at[2].number);
    bench_end();
}
END_TEST

START_TEST(a_link_that_goes_down_takes_its_frames_and_stations)
{
    bench_begin(NULL, 3, 4);
    bench_announce();
    bench_at[2].sleeps = true;
    for (unsigned i = 0; i < 8; i++) {
        ck_assert(bench_send(1, 2));
        bench_turn();
    }
    bench_unplug(2);
    bench_turn();
    ck_assert_uint_eq(bench_stats(2).waiting, 0);
    ck_assert_uint_eq(bench_stats(2).down, 4);
    bench_forget();
    ck_assert(bench_send(1, 2));
    bench_turn();
    ck_assert_uint_eq(bench_at[3].frames, 1);
    ck_assert_uint_eq(bench_stats(2).down, 5);
    bench_end();
}
END_TEST

START_TEST(a_port_set_down_neither_sends_nor_takes)
{
    bench_begin(NULL, 3, 8);
    bench_announce();
    bench_set(2, "link", "down");
    ck_assert(bench_send(2, 1));
    ck_assert(bench_send(1, BENCH_ALL));
    bench_turn();
    ck_assert_uint_eq(bench_at[1].frames, 0);
    ck_assert_uint_eq(bench_at[2].frames, 0);
    ck_assert_uint_eq(bench_at[3].frames, 1);
    ck_assert_uint_eq(bench_stats(2).rx_down, 1);
    ck_assert_uint_eq(bench_stats(2).down, 1);
    bench_set(2, "link", "up");
    ck_assert(bench_send(2, 1));
    bench_turn();
    ck_assert_uint_eq(bench_at[1].frames, 1);
    bench_end();
}
END_TEST

START_TEST(islands_do_not_hear_each_other)
{
    bench_begin(NULL, 4, 8);
    bench_announce();
    bench_set(3, "island", "1");
    bench_set(4, "island", "1");
    ck_assert(bench_send(1, BENCH_ALL));
    ck_assert(bench_send(1, 3));
    ck_assert(bench_send(3, 4));
    bench_turn();
    ck_assert_uint_eq(bench_at[2].frames, 1);
    ck_assert_uint_eq(bench_at[3].frames, 0);
    ck_assert_uint_eq(bench_at[4].frames, 1);
    ck_assert_uint_eq(bench_stats(3).parted, 2);
    ck_assert_uint_eq(bench_stats(4).parted, 1);
    bench_set(3, "island", "0");
    ck_assert(bench_send(1, 3));
    bench_turn();
    ck_assert_uint_eq(bench_at[3].frames, 1);
    bench_end();
}
END_TEST

/* -- VLANs ------------------------------------------------------------------------------------- */

START_TEST(vlans_are_isolated)
{
    bench_begin(NULL, 4, 8);
    bench_set(1, "vlan", "10");
    bench_set(2, "vlan", "10");
    bench_set(3, "vlan", "20");
    bench_announce();
    ck_assert(bench_send(1, BENCH_ALL));
    bench_turn();
    ck_assert_uint_eq(bench_at[2].frames, 1);
    ck_assert_uint_eq(bench_at[3].frames, 0);
    ck_assert_uint_eq(bench_at[4].frames, 1); /* a port of all VLANs gets it, with its tag */
    ck_assert_uint_eq(get32(bench_at[4].frame + 12), 0x8100000a);
    ck_assert(bench_send(1, 3)); /* the station is known in another VLAN */
    bench_turn();
    ck_assert_uint_eq(bench_at[3].frames, 0);
    bench_end();
}
END_TEST

/* "tags added and taken": from an access port to a trunk and back, with the priority. */
START_TEST(a_trunk_carries_tags)
{
    bench_begin(NULL, 3, 8);
    bench_set(1, "vlan", "10");
    bench_set(2, "vlan", "trunk:10,20-29:1");
    bench_set(3, "vlan", "25");
    ck_assert(bench_send_as(1, BENCH_ALL, BENCH_SHORT, 5 << 5));
    bench_turn();
    ck_assert_uint_eq(bench_at[2].frames, 1);
    ck_assert_uint_eq(bench_at[2].len, BENCH_SHORT + 4);
    ck_assert_uint_eq(get32(bench_at[2].frame + 12), 0x8100a00a);
    ck_assert_uint_eq(get16(bench_at[2].frame + 16), ETH_TYPE_IPV4);
    ck_assert_uint_eq(bench_at[3].frames, 0);

    ck_assert(bench_send_tagged(2, BENCH_ALL, 25, 3));
    bench_turn();
    ck_assert_uint_eq(bench_at[3].frames, 1);
    ck_assert_uint_eq(bench_at[3].len, BENCH_SHORT);
    ck_assert_uint_eq(get16(bench_at[3].frame + 12), ETH_TYPE_IPV4);
    ck_assert_uint_eq(bench_at[1].frames, 0);

    ck_assert(bench_send_tagged(2, BENCH_ALL, 30, 0)); /* not of this trunk */
    ck_assert(bench_send_tagged(3, BENCH_ALL, 25, 0)); /* tagged at an access port */
    bench_turn();
    ck_assert_uint_eq(bench_stats(2).vlan_refused, 1);
    ck_assert_uint_eq(bench_stats(3).vlan_refused, 1);
    ck_assert_uint_eq(bench_at[3].frames, 1);
    bench_end();
}
END_TEST

START_TEST(ports_of_all_vlans_pass_tags_as_they_are)
{
    bench_begin(NULL, 3, 8);
    bench_announce();
    ck_assert(bench_send_tagged(1, BENCH_ALL, 4094, 7));
    bench_turn();
    ck_assert_uint_eq(bench_at[2].len, BENCH_SHORT + 4);
    ck_assert_uint_eq(get32(bench_at[2].frame + 12), 0x8100effe);
    ck_assert(bench_send_tagged(1, 2, 0, 5)); /* a tag for the priority alone */
    bench_turn();
    ck_assert_uint_eq(bench_at[2].frames, 2);
    ck_assert_uint_eq(bench_at[2].len, BENCH_SHORT);
    ck_assert_uint_eq(bench_at[3].frames, 1);
    ck_assert(bench_send_tagged(1, 2, 4095, 0)); /* no VLAN has this number */
    bench_turn();
    ck_assert_uint_eq(bench_stats(1).vlan_refused, 1);
    bench_end();
}
END_TEST

/* The longest frame has no room for a tag more. */
START_TEST(a_tag_that_does_not_fit_drops_the_frame)
{
    bench_begin(NULL, 3, 8);
    bench_set(1, "vlan", "10");
    bench_set(2, "vlan", "trunk:10");
    bench_set(3, "vlan", "10");
    ck_assert(bench_send_as(1, BENCH_ALL, WIRE_FRAME_MAX, 0));
    ck_assert(bench_send_as(1, BENCH_ALL, WIRE_FRAME_MAX - 4, 0));
    bench_turn();
    ck_assert_uint_eq(bench_at[2].frames, 1);
    ck_assert_uint_eq(bench_at[2].len, WIRE_FRAME_MAX);
    ck_assert_uint_eq(bench_stats(2).too_long, 1);
    ck_assert_uint_eq(bench_at[3].frames, 2);
    bench_end();
}
END_TEST

/* -- bytes ------------------------------------------------------------------------------------- */

START_TEST(what_no_bridge_forwards_stays)
{
    uint8_t frame[BENCH_SHORT];
    static const uint8_t lldp[6] = {0x01, 0x80, 0xc2, 0, 0, 0x0e};

    bench_begin(NULL, 2, 8);
    bench_build(frame, 1, 2, sizeof(frame), 0);
    memcpy(frame, lldp, sizeof(lldp));
    ck_assert(bench_send_bytes(1, frame, sizeof(frame)));
    bench_build(frame, 1, 2, sizeof(frame), 0);
    frame[6] |= 1; /* from a group */
    ck_assert(bench_send_bytes(1, frame, sizeof(frame)));
    bench_build(frame, 1, 2, sizeof(frame), 0);
    put16(frame + 12, ETH_TYPE_VLAN);
    ck_assert(bench_send_bytes(1, frame, 17)); /* half a tag */
    bench_turn();
    ck_assert_uint_eq(bench_at[2].frames, 0);
    ck_assert_uint_eq(bench_stats(1).control, 1);
    ck_assert_uint_eq(bench_stats(1).rx_malformed, 2);
    bench_end();
}
END_TEST

/* A frame from shared memory comes without its ICRC; elsewhere it needs it. */
START_TEST(a_missing_icrc_is_written)
{
    struct roce_packet pkt = {.addr = {.hop_limit = 64}}, parsed;
    static const uint8_t ours[4] = {10, 0, 0, 1}, theirs[4] = {10, 0, 0, 2};
    uint8_t *room, payload[64] = {1};
    size_t len;

    bench_begin(NULL, 2, 8);
    gid_of_ipv4(pkt.addr.sgid, ours);
    gid_of_ipv4(pkt.addr.dgid, theirs);
    bench_mac(pkt.addr.smac, 1);
    bench_mac(pkt.addr.dmac, 2);
    pkt.opcode = 0x04; /* RC SEND_ONLY */
    room = wire_tx_reserve(bench_at[1].port, 512);
    memcpy(roce_build(room, &pkt, sizeof(payload)), payload, sizeof(payload));
    len = roce_finish_no_icrc(room, &pkt, sizeof(payload));
    wire_tx_commit_as(bench_at[1].port, len, WIRE_NO_ICRC);
    bench_turn();
    ck_assert_uint_eq(bench_at[2].frames, 1);
    ck_assert_int_eq(roce_parse(bench_at[2].frame, bench_at[2].len, &parsed), ROCE_OK);
    bench_end();
}
END_TEST

/* -- settings ---------------------------------------------------------------------------------- */

static const struct {
    const char *key, *value, *reads; /* reads NULL: refused */
} settings[] = {
    {"rate", "10G", "10G"},
    {"rate", "2500M", "2500M"},
    {"rate", "0", "0"},
    {"rate", "999", NULL},
    {"rate", "10001G", NULL},
    {"rate", "-1", NULL},
    {"rate", "", NULL},
    {"latency", "10us", "10us"},
    {"latency", "1000us", "1ms"},
    {"latency", "0", "0"},
    {"latency", "10", NULL},
    {"latency", "11s", NULL},
    {"queue", "64K", "64K"},
    {"queue", "1048576", "1M"},
    {"queue", "x", NULL},
    {"queue", "99999999999999999999", NULL},
    {"ecn", "100K:400K:10", "100K:400K:10"},
    {"ecn", "off", "off"},
    {"ecn", "400K:100K:10", NULL},
    {"ecn", "1:2", NULL},
    {"ecn", "1:2:101", NULL},
    {"ecn", "1:2:3:4", NULL},
    {"pfc", "200K:100K", "200K:100K"},
    {"pfc", "200K:100K:3", "200K:100K:3"},
    {"pfc", "200K:100K:0,3-4", "200K:100K:0,3,4"},
    {"pfc", "200K:100K:8", NULL},
    {"pfc", "100K:200K", NULL},
    {"pfc", "0:0", NULL},
    {"pause", "200K:100K", "200K:100K"},
    {"pause", "200K:100K:3", NULL},
    {"link", "down", "down"},
    {"link", "half", NULL},
    {"island", "7", "7"},
    {"island", "7a", NULL},
    {"vlan", "all", "all"},
    {"vlan", "10", "10"},
    {"vlan", "0", NULL},
    {"vlan", "4095", NULL},
    {"vlan", "trunk:1-4094", "trunk:1-4094"},
    {"vlan", "trunk:10,11,12,20:1", "trunk:10-12,20:1"},
    {"vlan", "trunk:", NULL},
    {"vlan", "trunk:20-10", NULL},
    {"vlan", "trunk:1:2:3", NULL},
    {"priority", "7", "7"},
    {"priority", "8", NULL},
    {"stations", "17", "17"},
    {"stations", "many", NULL},
    {"groups", "0", "0"},
    {"groups", "1000001", NULL},
    {"speed", "1", NULL},
};

START_TEST(settings_are_read_and_written)
{
    const char *key = settings[_i].key, *reads = settings[_i].reads;
    g_autofree char *before = NULL, *after = NULL;
    GError *err = NULL;

    bench_begin(NULL, 2, 8);
    before = wire_switch_get(bench_sw, 1, key);
    ck_assert_int_eq(wire_switch_set(bench_sw, 1, key, settings[_i].value, &err), reads != NULL);
    after = wire_switch_get(bench_sw, 1, key);
    if (reads) {
        ck_assert_str_eq(after, reads);
    } else {
        ck_assert_msg(strstr(err->message, key), "%s", err->message);
        ck_assert_int_eq(g_strcmp0(before, after), 0);
        g_error_free(err);
    }
    bench_end();
}
END_TEST

static void expect_setting(unsigned port, const char *key, const char *value)
{
    g_autofree char *found = wire_switch_get(bench_sw, port, key);

    ck_assert_str_eq(found, value);
}

START_TEST(a_port_that_is_not_there_has_no_settings)
{
    GError *err = NULL;

    bench_begin(NULL, 2, 8);
    ck_assert(!wire_switch_set(bench_sw, 3, "rate", "1G", &err));
    ck_assert_str_eq(err->message, "there is no port 3");
    g_error_free(err);
    bench_set(0, "rate", "1G");
    bench_plug(8);
    expect_setting(3, "rate", "1G");
    expect_setting(1, "rate", "0");
    bench_end();
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("a switch");
    TCase *tc = tcase_create("forwarding");

    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, a_frame_for_an_unknown_address_goes_to_all_other_ports);
    tcase_add_test(tc, a_frame_for_a_learnt_address_goes_to_its_port_alone);
    tcase_add_test(tc, three_hundred_ports_get_their_own_frames);
    tcase_add_test(tc, a_station_that_moves_is_found_at_its_new_port);
    tcase_add_test(tc, a_silent_station_is_forgotten);
    tcase_add_test(tc, a_frame_for_a_station_of_the_same_port_goes_nowhere);
    tcase_add_test(tc, a_full_table_learns_no_more);
    tcase_add_test(tc, a_port_cannot_fill_the_table);
    tcase_add_test(tc, a_port_may_have_a_part_of_the_table_unless_it_is_set);
    tcase_add_test(tc, a_station_that_moves_to_a_full_port_is_forgotten);
    tcase_add_test(tc, a_full_port_has_room_again);
    tcase_add_test(tc, stations_that_move_away_make_room);
    tcase_add_test(tc, a_port_beyond_the_limit_is_refused);
    tcase_add_test(tc, a_removed_port_leaves_nothing_behind);
    tcase_add_test(tc, a_link_that_goes_down_takes_its_frames_and_stations);
    tcase_add_test(tc, a_port_set_down_neither_sends_nor_takes);
    tcase_add_test(tc, islands_do_not_hear_each_other);
    tcase_add_test(tc, vlans_are_isolated);
    tcase_add_test(tc, a_trunk_carries_tags);
    tcase_add_test(tc, ports_of_all_vlans_pass_tags_as_they_are);
    tcase_add_test(tc, a_tag_that_does_not_fit_drops_the_frame);
    tcase_add_test(tc, what_no_bridge_forwards_stays);
    tcase_add_test(tc, a_missing_icrc_is_written);
    tcase_add_loop_test(tc, settings_are_read_and_written, 0, G_N_ELEMENTS(settings));
    tcase_add_test(tc, a_port_that_is_not_there_has_no_settings);
    suite_add_tcase(suite, tc);
    return suite;
}
