/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests what a host knows of the other hosts of its wire, and whom it asks when
 * (guest-lib/host/neighbours.h). The questions and answers are those of wire/encap/neigh.h.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "guest-lib/host/neighbours.h"
#include "tests/unit/suite.h"

#define S 1000000000ull

static const uint8_t mac[6] = {0x52, 0x54, 0, 0, 0, 1};
static const uint8_t peer[6] = {0x52, 0x54, 0, 0, 0, 2};
static const uint8_t moved[6] = {0x52, 0x54, 0, 0, 0, 3};
static const uint8_t own[2][16] = {{[10] = 0xff, 0xff, 10, 0, 0, 1}, {0xfe, 0x80, [15] = 1}};
static const uint8_t other[2][16] = {{[10] = 0xff, 0xff, 10, 0, 0, 2}, {0xfe, 0x80, [15] = 2}};

static struct neighbours *n;
static uint64_t now;
static unsigned sent, answers;
static uint8_t last[NEIGH_FRAME_MAX];
static size_t last_len;

static void send_frame(void *opaque, const uint8_t *frame, size_t len)
{
    sent++;
    memcpy(last, frame, len);
    last_len = len;
}

static void answered(void *opaque)
{
    answers++;
}

static const struct neighbours_ops ops = {send_frame, answered};

static void setup(void)
{
    n = neighbours_new(&ops, NULL, mac);
    neighbours_add_own(n, own[0]);
    neighbours_add_own(n, own[1]);
    now = S;
    sent = answers = 0;
}

static void teardown(void)
{
    neighbours_free(n);
}

static bool find(const uint8_t *gid, uint8_t *where)
{
    return neighbours_find(n, now, gid, where);
}

/* The peer announces the MAC address of an address. */
static void tell(const uint8_t *from_mac, const uint8_t *gid)
{
    struct neigh_msg question = {.is_question = true};
    uint8_t frame[NEIGH_FRAME_MAX];

    memcpy(question.sender, own[gid[0] != 0], 16);
    memcpy(question.mac, mac, 6);
    memcpy(question.asked, gid, 16);
    neighbours_rx(n, now, frame, neigh_build_answer(frame, from_mac, &question));
}

/* Another host asks. */
static void ask(const uint8_t *from_mac, const uint8_t *gid, const uint8_t *asked)
{
    uint8_t frame[NEIGH_FRAME_MAX];

    neighbours_rx(n, now, frame, neigh_build_question(frame, from_mac, gid, asked, NULL));
}

START_TEST(an_address_is_requested_until_it_is_known)
{
    uint8_t where[6];

    for (unsigned i = 0; i < 2; i++) {
        struct neigh_msg msg;

        sent = answers = 0;
        ck_assert(!find(other[i], where));
        ck_assert(!find(other[i], where));
        ck_assert_uint_eq(sent, 1);
        ck_assert(neigh_parse(last, last_len, &msg));
        ck_assert(msg.is_question);
        ck_assert_mem_eq(msg.asked, other[i], 16);
        ck_assert_mem_eq(msg.sender, own[i], 16);
        now += S;
        ck_assert(!find(other[i], where));
        ck_assert_uint_eq(sent, 2);
        ck_assert_uint_eq(answers, 0);
        tell(peer, other[i]);
        ck_assert_uint_eq(answers, 1);
        ck_assert(neighbours_knows(n, other[i]));
        ck_assert(find(other[i], where));
        ck_assert_mem_eq(where, peer, 6);
        ck_assert_uint_eq(sent, 2);
    }
}
END_TEST

START_TEST(a_request_for_the_host_is_answered)
{
    uint8_t where[6];

    for (unsigned i = 0; i < 2; i++) {
        struct neigh_msg msg;

        sent = 0;
        ask(peer, other[i], own[i]);
        ck_assert_uint_eq(sent, 1);
        ck_assert_mem_eq(last, peer, 6);
        ck_assert(neigh_parse(last, last_len, &msg));
        ck_assert(!msg.is_question);
        ck_assert_mem_eq(msg.sender, own[i], 16);
        ck_assert_mem_eq(msg.mac, mac, 6);
        ck_assert(find(other[i], where)); /* RFC 826: and it need not be asked */
        ck_assert_mem_eq(where, peer, 6);
        ck_assert_uint_eq(sent, 1);
    }
}
END_TEST

/* Questions between other hosts, and unrequested announcements, add nothing to the table. But
 * they update known hosts, which may have moved. The host's own address never belongs to
 * another host. */
START_TEST(others_are_overheard_if_they_are_known)
{
    uint8_t where[6];

    ask(peer, other[0], other[1]);
    tell(peer, other[0]);
    ck_assert(!neighbours_knows(n, other[0]));
    ck_assert_uint_eq(sent, 0);
    find(other[0], where);
    tell(peer, other[0]);
    ask(moved, other[0], other[0]); /* an announcement */
    ck_assert(find(other[0], where));
    ck_assert_mem_eq(where, moved, 6);
    tell(peer, own[0]);
    ck_assert(!neighbours_knows(n, own[0]));
    ask(mac, other[0], own[0]); /* the host's own frame, which came back */
    ck_assert_uint_eq(sent, 1);
}
END_TEST

/* An entry that has been known long enough is used and asked for again, first only from its last
 * MAC address. Without an answer it is forgotten, and everybody is asked. */
START_TEST(what_is_known_grows_stale)
{
    uint8_t where[6];

    find(other[0], where);
    tell(peer, other[0]);
    now += (NEIGHBOURS_FRESH_S - 1) * S;
    ck_assert(find(other[0], where));
    ck_assert_uint_eq(sent, 1);
    for (unsigned i = 0; i < NEIGHBOURS_ASKS; i++) {
        now += S;
        ck_assert(find(other[0], where));
        ck_assert_uint_eq(sent, 2 + i);
        ck_assert_mem_eq(last, peer, 6);
    }
    now += S;
    ck_assert(!find(other[0], where));
    ck_assert_uint_eq(sent, 2 + NEIGHBOURS_ASKS);
    ck_assert_mem_eq(last, "\xff\xff\xff\xff\xff\xff", 6);
    tell(moved, other[0]);
    ck_assert(find(other[0], where));
    ck_assert_mem_eq(where, moved, 6);
}
END_TEST

START_TEST(an_answer_renews_an_entry)
{
    uint8_t where[6];

    find(other[0], where);
    tell(peer, other[0]);
    now += NEIGHBOURS_FRESH_S * S;
    ck_assert(find(other[0], where));
    tell(peer, other[0]);
    now += (NEIGHBOURS_FRESH_S - 1) * S;
    ck_assert(find(other[0], where));
    ck_assert_uint_eq(sent, 2);
}
END_TEST

static void number(uint8_t *gid, unsigned i)
{
    static const uint8_t some[16] = {[10] = 0xff, 0xff, 10, 1};

    memcpy(gid, some, 16);
    gid[14] = (uint8_t)(i >> 8);
    gid[15] = (uint8_t)i;
}

/* However many hosts ask or are asked for, only so many are known. Strangers replace each other
 * first; then the least recently used entries are replaced. */
START_TEST(the_number_of_known_hosts_is_bounded)
{
    uint8_t gid[16], where[6];

    find(other[0], where);
    tell(peer, other[0]);
    for (unsigned i = 0; i < 4 * NEIGHBOURS_MAX; i++) {
        number(gid, i);
        ask(peer, gid, own[0]);
    }
    ck_assert(neighbours_knows(n, other[0]));
    for (unsigned i = 0, known = 0; i < 4 * NEIGHBOURS_MAX; i++) {
        number(gid, i);
        known += neighbours_knows(n, gid);
        ck_assert_uint_lt(known, NEIGHBOURS_MAX);
    }
    for (unsigned i = 0; i < 4 * NEIGHBOURS_MAX; i++) {
        number(gid, i);
        find(gid, where);
        if (i % (NEIGHBOURS_MAX / 2) == 0) {
            ck_assert(find(other[0], where)); /* it was used */
        }
    }
    ck_assert(neighbours_knows(n, other[0]));
    for (unsigned i = 0; i < NEIGHBOURS_MAX; i++) {
        number(gid, i);
        find(gid, where);
    }
    ck_assert(!neighbours_knows(n, other[0]));
}
END_TEST

START_TEST(the_host_announces_itself)
{
    neighbours_announce(n);
    ck_assert_uint_eq(sent, 1); /* only for its IPv4 address */
    ck_assert_mem_eq(last + 28, own[0] + 12, 4);
    ck_assert_mem_eq(last + 38, own[0] + 12, 4);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("verbs-neighbours");
    TCase *tc = tcase_create("neighbours");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, an_address_is_requested_until_it_is_known);
    tcase_add_test(tc, a_request_for_the_host_is_answered);
    tcase_add_test(tc, others_are_overheard_if_they_are_known);
    tcase_add_test(tc, what_is_known_grows_stale);
    tcase_add_test(tc, an_answer_renews_an_entry);
    tcase_add_test(tc, the_number_of_known_hosts_is_bounded);
    tcase_add_test(tc, the_host_announces_itself);
    suite_add_tcase(suite, tc);
    return suite;
}
