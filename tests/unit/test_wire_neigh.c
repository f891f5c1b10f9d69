/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests ARP (RFC 826) and neighbour discovery (RFC 4861) byte by byte: what is built, what is
 * understood, and what is dropped.
 */
#include "wire/encap/neigh.h"
#include "tests/unit/suite.h"

#include <stdlib.h>
#include <string.h>

#define SIZE(a) (sizeof(a) / sizeof((a)[0]))

static const uint8_t mac[6] = {0x52, 0x54, 0x00, 0x12, 0x34, 0x56};
static const uint8_t peer[6] = {0x52, 0x54, 0x00, 0x0b, 0xad, 0x01};
static const uint8_t ip[16] = {[10] = 0xff, 0xff, 10, 0, 0, 2};
static const uint8_t peer_ip[16] = {[10] = 0xff, 0xff, 10, 0, 0, 9};
static const uint8_t ip6[16] = {0xfe, 0x80, [8] = 0x50, 0x54, 0, 0xff, 0xfe, 0x12, 0x34, 0x56};
static const uint8_t peer_ip6[16] = {0xfe, 0x80, [11] = 1, 0x2a, 0xab, 0xcd, 0xef};

static const uint8_t request[] = {
    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x52, 0x54, 0x00, 0x12, 0x34, 0x56, 0x08, 0x06,
    0x00, 0x01, 0x08, 0x00, 0x06, 0x04, 0x00, 0x01, 0x52, 0x54, 0x00, 0x12, 0x34, 0x56,
    0x0a, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x0a, 0x00, 0x00, 0x09,
};
static const uint8_t reply[] = {
    0x52, 0x54, 0x00, 0x12, 0x34, 0x56, 0x52, 0x54, 0x00, 0x0b, 0xad, 0x01, 0x08, 0x06,
    0x00, 0x01, 0x08, 0x00, 0x06, 0x04, 0x00, 0x02, 0x52, 0x54, 0x00, 0x0b, 0xad, 0x01,
    0x0a, 0x00, 0x00, 0x09, 0x52, 0x54, 0x00, 0x12, 0x34, 0x56, 0x0a, 0x00, 0x00, 0x02,
};
/* To the group ff02::1:ffab:cdef, with the source link-layer address. */
static const uint8_t solicitation[] = {
    0x33, 0x33, 0xff, 0xab, 0xcd, 0xef, 0x52, 0x54, 0x00, 0x12, 0x34, 0x56, 0x86, 0xdd, 0x60,
    0x00, 0x00, 0x00, 0x00, 0x20, 0x3a, 0xff, 0xfe, 0x80, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x50, 0x54, 0x00, 0xff, 0xfe, 0x12, 0x34, 0x56, 0xff, 0x02, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x01, 0xff, 0xab, 0xcd, 0xef, 0x87, 0x00, 0xaa, 0xed, 0x00, 0x00,
    0x00, 0x00, 0xfe, 0x80, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0x2a,
    0xab, 0xcd, 0xef, 0x01, 0x01, 0x52, 0x54, 0x00, 0x12, 0x34, 0x56,
};
/* Solicited, to override what is known, with the target link-layer address. */
static const uint8_t advertisement[] = {
    0x52, 0x54, 0x00, 0x12, 0x34, 0x56, 0x52, 0x54, 0x00, 0x0b, 0xad, 0x01, 0x86, 0xdd, 0x60,
    0x00, 0x00, 0x00, 0x00, 0x20, 0x3a, 0xff, 0xfe, 0x80, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x01, 0x2a, 0xab, 0xcd, 0xef, 0xfe, 0x80, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x50, 0x54, 0x00, 0xff, 0xfe, 0x12, 0x34, 0x56, 0x88, 0x00, 0xa5, 0xcb, 0x60, 0x00,
    0x00, 0x00, 0xfe, 0x80, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0x2a,
    0xab, 0xcd, 0xef, 0x02, 0x01, 0x52, 0x54, 0x00, 0x0b, 0xad, 0x01,
};

static const struct {
    const uint8_t *question, *answer;
    size_t question_len, answer_len;
    const uint8_t *own, *asked;
} families[] = {
    {request, reply, sizeof(request), sizeof(reply), ip, peer_ip},
    {solicitation, advertisement, sizeof(solicitation), sizeof(advertisement), ip6, peer_ip6},
};

START_TEST(a_question_is_understood_and_answered)
{
    uint8_t frame[NEIGH_FRAME_MAX];
    struct neigh_msg msg;

    for (size_t i = 0; i < SIZE(families); i++) {
        ck_assert_uint_eq(
            neigh_build_question(frame, mac, families[i].own, families[i].asked, NULL),
            families[i].question_len);
        ck_assert_mem_eq(frame, families[i].question, families[i].question_len);
        ck_assert(neigh_is_one(frame, families[i].question_len));
        ck_assert(neigh_parse(frame, families[i].question_len, &msg));
        ck_assert(msg.is_question && msg.has_sender);
        ck_assert_mem_eq(msg.sender, families[i].own, 16);
        ck_assert_mem_eq(msg.mac, mac, 6);
        ck_assert_mem_eq(msg.asked, families[i].asked, 16);
        ck_assert_uint_eq(neigh_build_answer(frame, peer, &msg), families[i].answer_len);
        ck_assert_mem_eq(frame, families[i].answer, families[i].answer_len);
        ck_assert(neigh_parse(frame, families[i].answer_len, &msg));
        ck_assert(!msg.is_question && msg.has_sender);
        ck_assert_mem_eq(msg.sender, families[i].asked, 16);
        ck_assert_mem_eq(msg.mac, peer, 6);
    }
}
END_TEST

/* Only the last known owner of the address is asked (RFC 1122 2.3.2.1, RFC 4861 7.3.3). */
START_TEST(a_known_owner_is_asked_alone)
{
    uint8_t frame[NEIGH_FRAME_MAX];
    struct neigh_msg msg;

    for (size_t i = 0; i < SIZE(families); i++) {
        size_t len = neigh_build_question(frame, mac, families[i].own, families[i].asked, peer);

        ck_assert_mem_eq(frame, peer, 6);
        ck_assert(neigh_parse(frame, len, &msg));
        ck_assert(msg.is_question);
        ck_assert_mem_eq(msg.asked, families[i].asked, 16);
    }
    ck_assert_mem_eq(frame + 38, peer_ip6, 16); /* the destination, in place of the group */
}
END_TEST

/* Writes the checksum of a message of neighbour discovery, including the pseudo-header (RFC 8200
 * 8.1). */
static void put_csum(uint8_t *frame)
{
    size_t len = (size_t)(frame[18] << 8 | frame[19]);
    uint32_t sum = 58 + (uint32_t)len;

    frame[56] = frame[57] = 0;
    for (size_t i = 22; i < 54 + len; i += 2) {
        sum += (uint32_t)(frame[i] << 8 | frame[i + 1]);
    }
    sum = (sum & 0xffff) + (sum >> 16);
    sum = ~((sum & 0xffff) + (sum >> 16)) & 0xffff;
    frame[56] = (uint8_t)(sum >> 8);
    frame[57] = (uint8_t)sum;
}

/* Makes a frame with one byte changed. For neighbour discovery its checksum is corrected, unless
 * the checksum is what was changed. */
static size_t changed(uint8_t *frame, unsigned family, bool answer, size_t at, uint8_t value)
{
    size_t len = answer ? families[family].answer_len : families[family].question_len;

    memcpy(frame, answer ? families[family].answer : families[family].question, len);
    frame[at] = value;
    if (family && at >= 22 && at != 56) {
        put_csum(frame);
    }
    return len;
}

START_TEST(a_malformed_arp_or_neighbour_message_is_dropped)
{
    static const struct {
        unsigned family;
        bool answer;
        size_t at;
        uint8_t value;
    } cases[] = {
        {0, false, 12, 9},    /* another type of frame */
        {0, false, 15, 6},    /* not Ethernet */
        {0, false, 16, 9},    /* not IPv4 */
        {0, false, 18, 8},    /* another length of MAC addresses */
        {0, false, 19, 16},   /* of IP addresses */
        {0, false, 21, 3},    /* neither request nor reply */
        {0, false, 22, 1},    /* from a group */
        {0, true, 28, 224},   /* about one */
        {0, true, 28, 127},   /* about the loopback */
        {1, false, 14, 0x40}, /* not IPv6 */
        {1, false, 18, 1},    /* longer than the frame */
        {1, false, 19, 16},   /* too short for a target */
        {1, false, 20, 17},   /* UDP */
        {1, false, 21, 254},  /* a router has had it */
        {1, false, 22, 0xff}, /* from a group */
        {1, false, 54, 133},  /* a router is asked for */
        {1, false, 55, 1},    /* a code */
        {1, false, 56, 0},    /* a wrong checksum */
        {1, false, 62, 0xff}, /* a group is asked for */
        {1, false, 79, 0},    /* an option of no length */
        {1, false, 79, 2},    /* longer than the message */
        {1, false, 80, 1},    /* the answer would go to a group */
        {1, true, 80, 1},     /* the target is a group's */
        {1, true, 78, 1},     /* it says nothing of the target */
    };
    struct neigh_msg msg;

    for (size_t i = 0; i < SIZE(cases); i++) {
        uint8_t frame[NEIGH_FRAME_MAX];
        size_t len = changed(frame, cases[i].family, cases[i].answer, cases[i].at, cases[i].value);

        ck_assert_msg(!neigh_parse(frame, len, &msg), "case %zu", i);
    }
    for (unsigned family = 0; family < SIZE(families); family++) {
        for (size_t len = 0; len < families[family].question_len; len++) {
            uint8_t *frame = malloc(len ? len : 1); /* so that an access beyond it is found */

            memcpy(frame, families[family].question, len);
            ck_assert(!neigh_parse(frame, len, &msg));
            free(frame);
        }
    }
}
END_TEST

/* Checks that the changes above caused the refusal: a change of a byte that does not matter is
 * accepted. */
START_TEST(the_changes_above_are_what_was_refused)
{
    uint8_t frame[NEIGH_FRAME_MAX];
    struct neigh_msg msg;

    for (unsigned family = 0; family < SIZE(families); family++) {
        for (unsigned answer = 0; answer < 2; answer++) {
            ck_assert(neigh_parse(frame, changed(frame, family, answer, 0, 0x02), &msg));
            ck_assert(neigh_parse(frame, changed(frame, family, answer, 41, 0x07), &msg));
        }
    }
}
END_TEST

/* RFC 5227 2.1.1, RFC 4862 5.4: a host that is about to take an address asks for it from no
 * address. The answer goes to all, or to its MAC address, and nothing is learned. */
START_TEST(a_probe_is_answered)
{
    uint8_t frame[NEIGH_FRAME_MAX], answer[NEIGH_FRAME_MAX];
    struct neigh_msg msg;
    size_t len;

    memcpy(frame, request, sizeof(request));
    memset(frame + 28, 0, 4);
    ck_assert(neigh_parse(frame, sizeof(request), &msg));
    ck_assert(msg.is_question && !msg.has_sender);
    ck_assert_uint_eq(neigh_build_answer(answer, peer, &msg), sizeof(reply));
    ck_assert_mem_eq(answer, mac, 6);

    memcpy(frame, solicitation, sizeof(solicitation));
    memset(frame + 22, 0, 16);
    put_csum(frame);
    ck_assert(!neigh_parse(frame, sizeof(solicitation), &msg)); /* it names a MAC address */
    frame[19] = 24;
    put_csum(frame);
    ck_assert(neigh_parse(frame, sizeof(solicitation), &msg));
    ck_assert(msg.is_question && !msg.has_sender);
    len = neigh_build_answer(answer, peer, &msg);
    ck_assert_mem_eq(answer, "\x33\x33\0\0\0\1", 6);
    ck_assert_mem_eq(answer + 38, "\xff\2\0\0\0\0\0\0\0\0\0\0\0\0\0\1", 16);
    ck_assert_uint_eq(answer[58], 0x20); /* not solicited */
    ck_assert(neigh_parse(answer, len, &msg));
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("wire-neigh");
    TCase *tc = tcase_create("neigh");

    tcase_add_test(tc, a_question_is_understood_and_answered);
    tcase_add_test(tc, a_known_owner_is_asked_alone);
    tcase_add_test(tc, a_malformed_arp_or_neighbour_message_is_dropped);
    tcase_add_test(tc, the_changes_above_are_what_was_refused);
    tcase_add_test(tc, a_probe_is_answered);
    suite_add_tcase(suite, tc);
    return suite;
}
