/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests multicast groups of a switch: IGMP and MLD in each version, queriers, leaves, and messages
 * that are none.
 */
#include "tests/unit/suite.h"
#include "tests/unit/switch_bench.h"
#include "wire/bytes.h"
#include "wire/encap/eth.h"
#include "wire/switch/groups.h"
#include "wire/switch/snoop.h"

#include <check.h>
#include <string.h>

enum {
    SENDER = 1,
    MEMBER = 2,
    OTHER = 3,
    QUERIER = 4,
    STATIONS = 4,
};

/* The ways to report, and to leave. */
enum way {
    IGMP_V1,
    IGMP_V2,
    IGMP_V3,
    MLD_V1,
    MLD_V2,
    WAYS,
};

static bool is_ipv6(enum way way)
{
    return way >= MLD_V1;
}

/* 239.1.2.3 or ff15::1:0203. */
static void group_of(enum way way, uint8_t address[16])
{
    static const uint8_t v4[4] = {239, 1, 2, 3};
    static const uint8_t v6[16] = {0xff, 0x15, [13] = 1, [14] = 2, [15] = 3};

    memset(address, 0, 16);
    memcpy(address, is_ipv6(way) ? v6 : v4, is_ipv6(way) ? 16 : 4);
}

static void group_mac(enum way way, uint8_t mac[6])
{
    static const uint8_t v4[6] = {0x01, 0x00, 0x5e, 1, 2, 3}, v6[6] = {0x33, 0x33, 0, 1, 2, 3};

    memcpy(mac, is_ipv6(way) ? v6 : v4, 6);
}

/* -- messages ---------------------------------------------------------------------------------- */

static size_t igmp(uint8_t *frame, const uint8_t *msg, size_t len, uint32_t from)
{
    uint8_t *ip = frame + ETH_BYTES;

    memset(frame, 0, ETH_BYTES + 24);
    memcpy(frame, (uint8_t[]){1, 0, 0x5e, 0, 0, 22}, 6);
    put16(frame + 12, ETH_TYPE_IPV4);
    ip[0] = 0x46;
    put16(ip + 2, (uint16_t)(24 + len));
    ip[8] = 1;
    ip[9] = 2;
    put32(ip + 12, from);
    put32(ip + 16, 0xe0000016);
    put32(ip + 20, 0x94040000);
    put16(ip + 10, (uint16_t)~csum_partial(ip, 24));
    memcpy(ip + 24, msg, len);
    put16(ip + 24 + 2, (uint16_t)~csum_partial(ip + 24, len));
    return ETH_BYTES + 24 + len;
}

static size_t mld(uint8_t *frame, const uint8_t *msg, size_t len, unsigned from)
{
    uint8_t *ip = frame + ETH_BYTES, *at = ip + 48, pseudo[40] = {0};

    memset(frame, 0, ETH_BYTES + 48);
    memcpy(frame, (uint8_t[]){0x33, 0x33, 0, 0, 0, 22}, 6);
    put16(frame + 12, ETH_TYPE_IPV6);
    ip[0] = 0x60;
    put16(ip + 4, (uint16_t)(8 + len));
    ip[7] = 1;
    put16(ip + 8, 0xfe80);
    ip[23] = (uint8_t)from;
    memcpy(ip + 24, (uint8_t[]){0xff, 2, [15] = 22}, 16);
    memcpy(ip + 40, (uint8_t[]){58, 0, 5, 2, 0, 0, 1, 0}, 8);
    memcpy(at, msg, len);
    memcpy(pseudo, ip + 8, 32);
    pseudo[35] = (uint8_t)len;
    pseudo[39] = 58;
    put16(at + 2, (uint16_t)~csum_add(csum_partial(pseudo, 40), csum_partial(at, len)));
    return ETH_BYTES + 48 + len;
}

/* A report of the group; leaves: that it is left. */
static size_t build_report(uint8_t *frame, enum way way, bool leaves, unsigned from)
{
    uint8_t msg[64] = {0}, group[16];
    size_t len;

    group_of(way, group);
    switch (way) {
    case IGMP_V1:
    case IGMP_V2:
        msg[0] = leaves ? 0x17 : way == IGMP_V1 ? 0x12 : 0x16;
        memcpy(msg + 4, group, 4);
        len = igmp(frame, msg, 8, 0x0a000000 + from);
        break;
    case IGMP_V3:
        msg[0] = 0x22;
        msg[7] = 1;
        msg[8] = leaves ? 3 : 4; /* to include nothing, or to exclude nothing */
        memcpy(msg + 12, group, 4);
        len = igmp(frame, msg, 16, 0x0a000000 + from);
        break;
    case MLD_V1:
        msg[0] = leaves ? 132 : 131;
        memcpy(msg + 8, group, 16);
        len = mld(frame, msg, 24, from);
        break;
    default:
        msg[0] = 143;
        msg[7] = 1;
        msg[8] = leaves ? 3 : 4;
        memcpy(msg + 12, group, 16);
        len = mld(frame, msg, 28, from);
    }
    bench_mac(frame + 6, from);
    return len;
}

static void report(enum way way, bool leaves, unsigned from)
{
    uint8_t frame[200];
    size_t len = build_report(frame, way, leaves, from);

    ck_assert(bench_send_bytes(from, frame, len));
    bench_turn();
}

/* A query with the addresses of one station, at the port of another. */
static void query_as(enum way way, unsigned from, unsigned at)
{
    uint8_t frame[200], msg[28] = {0};
    size_t len;

    msg[0] = is_ipv6(way) ? 130 : 0x11;
    len = is_ipv6(way) ? mld(frame, msg, 28, from) : igmp(frame, msg, 8, 0x0a000000 + from);
    bench_mac(frame + 6, from);
    ck_assert(bench_send_bytes(at, frame, len));
    bench_turn();
}

static void query(enum way way, unsigned from)
{
    query_as(way, from, from);
}

static void send_to_group(enum way way)
{
    uint8_t frame[BENCH_SHORT];

    bench_build(frame, SENDER, BENCH_ALL, sizeof(frame), 0);
    group_mac(way, frame);
    bench_forget();
    ck_assert(bench_send_bytes(SENDER, frame, sizeof(frame)));
    bench_turn();
}

/* Which stations got the frame, a bit each. */
static unsigned who_got(void)
{
    unsigned who = 0;

    for (unsigned i = 1; i <= STATIONS; i++) {
        ck_assert_uint_le(bench_at[i].frames, 1);
        who |= bench_at[i].frames << i;
    }
    return who;
}

enum {
    ALL = 1 << MEMBER | 1 << OTHER | 1 << QUERIER,
};

/* -- groups ------------------------------------------------------------------------------------ */

START_TEST(a_group_goes_to_its_members_and_the_querier)
{
    bench_begin(NULL, STATIONS, 16);
    query((enum way)_i, QUERIER);
    report((enum way)_i, false, MEMBER);
    send_to_group((enum way)_i);
    ck_assert_uint_eq(who_got(), 1 << MEMBER | 1 << QUERIER);
    bench_end();
}
END_TEST

START_TEST(without_a_querier_a_group_goes_everywhere)
{
    bench_begin(NULL, STATIONS, 16);
    report((enum way)_i, false, MEMBER);
    ck_assert_uint_eq(bench_at[OTHER].frames, 1); /* and so does the report */
    send_to_group((enum way)_i);
    ck_assert_uint_eq(who_got(), ALL);
    bench_end();
}
END_TEST

/* "Hosts without a kernel report none." */
START_TEST(a_group_that_nobody_reported_goes_everywhere)
{
    bench_begin(NULL, STATIONS, 16);
    query((enum way)_i, QUERIER);
    send_to_group((enum way)_i);
    ck_assert_uint_eq(who_got(), ALL);
    bench_end();
}
END_TEST

/* RFC 4541, 2.1.1: hosts that hear a report of another host keep quiet about the group. */
START_TEST(a_report_goes_to_the_querier_alone)
{
    bench_begin(NULL, STATIONS, 16);
    query((enum way)_i, QUERIER);
    bench_forget();
    report((enum way)_i, false, MEMBER);
    ck_assert_uint_eq(who_got(), 1 << QUERIER);
    bench_end();
}
END_TEST

/* IGMPv1 has no leave: its members time out. */
START_TEST(a_member_that_leaves_gets_no_more)
{
    bench_begin(NULL, STATIONS, 16);
    query((enum way)_i, QUERIER);
    report((enum way)_i, false, MEMBER);
    report((enum way)_i, true, MEMBER);
    send_to_group((enum way)_i);
    ck_assert_uint_eq(who_got(), 1 << MEMBER | 1 << QUERIER); /* others may be behind the port */
    bench_pass(GROUPS_LEAVE_NS + 1);
    send_to_group((enum way)_i);
    ck_assert_uint_eq(who_got(), 1 << QUERIER);
    bench_end();
}
END_TEST

START_TEST(a_member_that_reports_again_stays)
{
    bench_begin(NULL, STATIONS, 16);
    query((enum way)_i, QUERIER);
    report((enum way)_i, false, MEMBER);
    report((enum way)_i, true, MEMBER);
    report((enum way)_i, false, MEMBER);
    bench_pass(GROUPS_LEAVE_NS + 1);
    send_to_group((enum way)_i);
    ck_assert_uint_eq(who_got(), 1 << MEMBER | 1 << QUERIER);
    bench_end();
}
END_TEST

START_TEST(a_silent_member_is_forgotten)
{
    bench_begin(NULL, STATIONS, 16);
    query((enum way)_i, QUERIER);
    report((enum way)_i, false, MEMBER);
    bench_pass(130 * BENCH_S);
    query((enum way)_i, QUERIER);
    report((enum way)_i, false, OTHER);
    bench_pass(131 * BENCH_S);
    send_to_group((enum way)_i);
    ck_assert_uint_eq(who_got(), 1 << OTHER | 1 << QUERIER);
    bench_end();
}
END_TEST

START_TEST(without_its_querier_a_group_goes_everywhere_again)
{
    bench_begin(NULL, STATIONS, 16);
    query((enum way)_i, QUERIER);
    bench_pass(GROUPS_OTHER_QUERIER_NS - BENCH_S);
    report((enum way)_i, false, MEMBER);
    bench_pass(2 * BENCH_S);
    send_to_group((enum way)_i);
    ck_assert_uint_eq(who_got(), ALL);
    bench_end();
}
END_TEST

/* The switch asks itself: at once, then every 125 s, in IPv4 and IPv6; and its messages are right.
 */
START_TEST(a_querier_of_its_own_asks)
{
    static const struct wire_switch_config config = {.querier = true};
    struct snoop *said = g_new0(struct snoop, 1);

    bench_begin(&config, STATIONS, 16);
    bench_announce(); /* makes the VLAN known */
    bench_pass(GROUPS_QUERY_FIRST_NS);
    ck_assert_uint_eq(bench_at[MEMBER].frames, 2);
    snoop_read(bench_at[MEMBER].frame, bench_at[MEMBER].len, said);
    ck_assert_int_eq(said->kind, SNOOP_QUERY);
    ck_assert_int_eq(said->family, GROUPS_IPV6);
    bench_forget();
    bench_pass(GROUPS_QUERY_NS);
    ck_assert_uint_eq(bench_at[MEMBER].frames, 2);
    report((enum way)_i, false, MEMBER);
    send_to_group((enum way)_i);
    ck_assert_uint_eq(who_got(), 1 << MEMBER);
    bench_end();
    g_free(said);
}
END_TEST

/* It asks the port that a member has left, since another may be there. */
START_TEST(a_querier_of_its_own_asks_after_a_leave)
{
    static const struct wire_switch_config config = {.querier = true};

    bench_begin(&config, STATIONS, 16);
    bench_announce();
    report((enum way)_i, false, MEMBER);
    bench_forget();
    report((enum way)_i, true, MEMBER);
    ck_assert_uint_eq(who_got(), 1 << MEMBER);
    bench_end();
}
END_TEST

START_TEST(the_switch_leaves_the_asking_to_another)
{
    static const struct wire_switch_config config = {.querier = true};

    bench_begin(&config, STATIONS, 16);
    bench_announce();
    query(IGMP_V3, QUERIER);
    query_as(MLD_V2, 0, QUERIER); /* the lowest address */
    bench_forget();
    bench_pass(2 * GROUPS_QUERY_NS);
    ck_assert_uint_eq(bench_at[MEMBER].frames, 0);
    bench_pass(GROUPS_QUERY_NS);
    ck_assert_uint_eq(bench_at[MEMBER].frames, 2); /* the other one asks no more */
    bench_end();
}
END_TEST

/* 224.0.0.0/24 and ff02::1 and its like are not reported, or not by all. */
START_TEST(groups_of_the_link_go_everywhere)
{
    static const uint8_t macs[][6] = {{1, 0, 0x5e, 0, 0, 251}, {0x33, 0x33, 0, 0, 0, 1}};
    uint8_t frame[BENCH_SHORT];

    bench_begin(NULL, STATIONS, 16);
    query(IGMP_V2, QUERIER);
    query(MLD_V1, QUERIER);
    bench_build(frame, SENDER, BENCH_ALL, sizeof(frame), 0);
    memcpy(frame, macs[_i], 6);
    bench_forget();
    ck_assert(bench_send_bytes(SENDER, frame, sizeof(frame)));
    bench_turn();
    ck_assert_uint_eq(who_got(), ALL);
    bench_end();
}
END_TEST

START_TEST(groups_of_vlans_are_apart)
{
    bench_begin(NULL, STATIONS, 16);
    query(IGMP_V2, QUERIER); /* in the network of untagged frames */
    report(IGMP_V2, false, MEMBER);
    for (unsigned i = 1; i <= STATIONS; i++) {
        bench_set(i, "vlan", "7");
    }
    send_to_group(IGMP_V2);
    ck_assert_uint_eq(who_got(), ALL); /* no querier here */
    query(IGMP_V2, QUERIER);
    report(IGMP_V2, false, OTHER);
    send_to_group(IGMP_V2);
    ck_assert_uint_eq(who_got(), 1 << OTHER | 1 << QUERIER);
    bench_end();
}
END_TEST

/* A table that cannot hold all members does not prune, and no member goes without. */
START_TEST(a_full_table_prunes_no_more)
{
    static const struct wire_switch_config config = {.groups = 8};
    uint8_t frame[200];

    bench_begin(&config, STATIONS, 16);
    query(IGMP_V2, QUERIER);
    for (unsigned i = 0; i < 50; i++) {
        uint8_t msg[8] = {0x16, [4] = 239, [5] = 9, [6] = 9, [7] = (uint8_t)i};
        size_t len = igmp(frame, msg, sizeof(msg), 0x0a000002);

        bench_mac(frame + 6, MEMBER);
        ck_assert(bench_send_bytes(MEMBER, frame, len));
        bench_turn();
    }
    ck_assert_uint_eq(wire_switch_whole(bench_sw).memberships, 8);
    report(IGMP_V2, false, OTHER);
    send_to_group(IGMP_V2);
    ck_assert_uint_eq(who_got(), ALL);
    bench_end();
}
END_TEST

/* A port reports or leaves the group 239.9.HIGH.LOW. */
static void report_one(unsigned station, unsigned number, bool leaves)
{
    uint8_t frame[200];
    uint8_t msg[8] = {leaves ? 0x17 : 0x16, [4] = 239, [5] = 9, [6] = (uint8_t)(number >> 8),
                      [7] = (uint8_t)number};
    size_t len = igmp(frame, msg, sizeof(msg), 0x0a000002);

    bench_mac(frame + 6, station);
    ck_assert(bench_send_bytes(station, frame, len));
    bench_turn();
}

/* The port that reports too many groups gets them all; for others, nothing changes. */
START_TEST(a_port_cannot_fill_the_table_of_groups)
{
    static const struct wire_switch_config config = {.groups = 64};

    bench_begin(&config, STATIONS, 16);
    bench_set(MEMBER, "groups", "10");
    query(IGMP_V2, QUERIER);
    for (unsigned i = 0; i < 1000; i++) {
        report_one(MEMBER, i, false);
    }
    ck_assert_uint_eq(wire_switch_whole(bench_sw).memberships, 20); /* ten, and ten known groups */
    report(IGMP_V2, false, OTHER);
    send_to_group(IGMP_V2);
    ck_assert_uint_eq(who_got(), 1u << MEMBER | 1u << OTHER | 1u << QUERIER);
    bench_end();
}
END_TEST

/* The same with groups that others have reported before. */
START_TEST(a_port_has_a_limit_in_groups_that_are_known)
{
    static const struct wire_switch_config config = {.groups = 128};

    bench_begin(&config, STATIONS, 16);
    bench_set(MEMBER, "groups", "10");
    query(IGMP_V2, QUERIER);
    for (unsigned i = 0; i < 40; i++) {
        report_one(OTHER, i, false);
    }
    for (unsigned i = 0; i < 40; i++) {
        report_one(MEMBER, i, false);
    }
    ck_assert_uint_eq(wire_switch_whole(bench_sw).memberships, 40 + 40 + 10);
    bench_end();
}
END_TEST

/* The same with memberships that do not last. */
START_TEST(a_port_that_joins_and_leaves_cannot_fill_the_table)
{
    static const struct wire_switch_config config = {.groups = 64};

    bench_begin(&config, STATIONS, 16);
    bench_set(MEMBER, "groups", "10");
    query(IGMP_V2, QUERIER);
    for (unsigned i = 0; i < 40; i++) {
        report_one(MEMBER, i, false);
        report_one(MEMBER, i, true);
        bench_pass(3 * BENCH_S);
    }
    ck_assert_uint_le(wire_switch_whole(bench_sw).memberships, 20);
    report(IGMP_V2, false, OTHER);
    send_to_group(IGMP_V2);
    ck_assert_uint_eq(who_got(), 1u << MEMBER | 1u << OTHER | 1u << QUERIER);
    bench_end();
}
END_TEST

/* A station that goes takes the mark with it. */
START_TEST(a_port_that_is_new_gets_its_groups_alone)
{
    bench_begin(NULL, STATIONS, 16);
    bench_set(MEMBER, "groups", "1");
    query(IGMP_V2, QUERIER);
    report_one(MEMBER, 1, false);
    report_one(MEMBER, 2, false);
    report(IGMP_V2, false, OTHER);
    send_to_group(IGMP_V2);
    ck_assert_uint_eq(who_got(), 1u << MEMBER | 1u << OTHER | 1u << QUERIER);
    bench_set(MEMBER, "link", "down");
    bench_set(MEMBER, "link", "up");
    bench_forget();
    send_to_group(IGMP_V2);
    ck_assert_uint_eq(who_got(), 1u << OTHER | 1u << QUERIER);
    bench_end();
}
END_TEST

/* -- hostile bytes ----------------------------------------------------------------------------- */

/* Every wrong byte makes the checksum wrong; no message that is cut is believed. */
START_TEST(a_damaged_report_is_no_report)
{
    uint8_t frame[200], damaged[200];
    size_t len = build_report(frame, (enum way)_i, false, MEMBER);
    struct snoop *s = g_new0(struct snoop, 1);
    size_t from = is_ipv6((enum way)_i) ? ETH_BYTES + 48 : ETH_BYTES;

    for (size_t at = from; at < len; at++) {
        memcpy(damaged, frame, len);
        damaged[at] ^= 0x10;
        snoop_read(damaged, len, s);
        ck_assert_msg(s->kind != SNOOP_REPORT, "byte %zu", at);
    }
    for (size_t cut = ETH_BYTES; cut < len; cut++) {
        uint8_t *exact = g_memdup2(frame, cut);

        snoop_read(exact, cut, s);
        ck_assert_msg(s->kind != SNOOP_REPORT, "%zu bytes", cut);
        g_free(exact);
    }
    snoop_read(frame, len, s);
    ck_assert_int_eq(s->kind, SNOOP_REPORT);
    ck_assert_uint_eq(s->num, 1);
    g_free(s);
}
END_TEST

/* Records that claim more than the message has. */
START_TEST(records_beyond_the_message_are_refused)
{
    static const struct {
        uint8_t at, value;
    } wrong[] = {{7, 2}, {6, 1}, {9, 1}, {10, 1}, {11, 1}, {8, 0}, {8, 7}, {12, 10}};
    uint8_t frame[200], msg[16] = {0x22, [7] = 1, [8] = 4, [12] = 239, [15] = 1};
    struct snoop *s = g_new0(struct snoop, 1);

    msg[wrong[_i].at] = wrong[_i].value;
    snoop_read(frame, igmp(frame, msg, sizeof(msg), 1), s);
    ck_assert_int_eq(s->kind, SNOOP_BAD);
    g_free(s);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("groups of a switch");
    TCase *tc = tcase_create("groups");

    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, a_group_goes_to_its_members_and_the_querier, 0, WAYS);
    tcase_add_loop_test(tc, without_a_querier_a_group_goes_everywhere, 0, WAYS);
    tcase_add_loop_test(tc, a_group_that_nobody_reported_goes_everywhere, 0, WAYS);
    tcase_add_loop_test(tc, a_report_goes_to_the_querier_alone, 0, WAYS);
    tcase_add_loop_test(tc, a_member_that_leaves_gets_no_more, IGMP_V2, WAYS);
    tcase_add_loop_test(tc, a_member_that_reports_again_stays, IGMP_V2, WAYS);
    tcase_add_loop_test(tc, a_silent_member_is_forgotten, 0, WAYS);
    tcase_add_loop_test(tc, without_its_querier_a_group_goes_everywhere_again, 0, WAYS);
    tcase_add_loop_test(tc, a_querier_of_its_own_asks, 0, WAYS);
    tcase_add_loop_test(tc, a_querier_of_its_own_asks_after_a_leave, IGMP_V2, WAYS);
    tcase_add_test(tc, the_switch_leaves_the_asking_to_another);
    tcase_add_loop_test(tc, groups_of_the_link_go_everywhere, 0, 2);
    tcase_add_test(tc, groups_of_vlans_are_apart);
    tcase_add_test(tc, a_full_table_prunes_no_more);
    tcase_add_test(tc, a_port_cannot_fill_the_table_of_groups);
    tcase_add_test(tc, a_port_has_a_limit_in_groups_that_are_known);
    tcase_add_test(tc, a_port_that_joins_and_leaves_cannot_fill_the_table);
    tcase_add_test(tc, a_port_that_is_new_gets_its_groups_alone);
    tcase_add_loop_test(tc, a_damaged_report_is_no_report, 0, WAYS);
    tcase_add_loop_test(tc, records_beyond_the_message_are_refused, 0, 8);
    suite_add_tcase(suite, tc);
    return suite;
}
